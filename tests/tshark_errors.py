"""What tshark 4.0 gets wrong, or chooses to show otherwise, field by field: the differences that compare-tshark accepts."""
import re


class Packet:
    """A packet with a difference: the values of all compared fields by name, as rdmatrace (ours) and tshark (theirs) print them."""

    def __init__(self, path, ours, theirs):
        self.path, self.ours, self.theirs = path, ours, theirs

    def has(self, name):
        return self.ours.get(name, "") != ""

    def opcodes(self):
        return self.ours["infiniband.bth.opcode"].split("|")


class Known:
    """One error: `fields` is a regular expression for whole names; `when(ours, theirs, packet)` must hold for the two values."""

    def __init__(self, fields, when, reason):
        self.fields, self.when, self.reason = fields, when, reason
        self.name = re.compile(fields)

    def explains(self, name, ours, theirs, packet):
        return self.name.fullmatch(name) is not None and self.when(ours, theirs, packet)


def twice(ours, theirs, _packet):
    return ours != "" and theirs == ours + "|" + ours


def number(text):
    return int(text, 0) if text and "|" not in text else -1


def lost(ours, theirs, _packet):
    return ours != "" and theirs == ""


def quoted(ours, theirs, packet):
    """Inside of an ICMP error that quotes the packet."""
    return ours == "" and theirs != "" and (packet.ours.get("icmp.type") in ("3", "11", "12") or packet.ours.get("icmpv6.type") in list("1234"))


def fair_rate(ours, theirs, packet):
    """The packet that rdmagen's own message of a fair rate quotes."""
    return packet.ours.get("icmp.type") == "253" and (theirs == "" or ours.startswith(theirs + "|"))


def forgotten(_ours, _theirs, packet):
    """A reply, of which it does not know the call."""
    return packet.ours.get("rpc.msgtyp") == "1" and packet.ours.get("rpc.program") != "" and packet.theirs.get("rpc.program") in ("0", "")


def cut(ours, theirs, packet):
    """A packet that the snap length cut: it is not handed on."""
    return lost(ours, theirs, packet) and int(packet.ours["frame.cap_len"]) < int(packet.ours["frame.len"])


def undecoded(packet):
    """rdmatrace knows nothing of the packet's link type."""
    return all(value == "" for name, value in packet.ours.items() if not name.startswith("frame."))


def added(ours, theirs, _packet):
    return ours == "" and theirs != ""


def capsule(packet):
    """A packet of a SEND of several packets."""
    return set(packet.opcodes()) & {"0", "1", "2", "3", "22"}


def among(ours, theirs, _packet):
    """Some of the values, in their order."""
    rest = iter(theirs.split("|"))
    return ours != "" and all(value in rest for value in ours.split("|"))


def first(ours, theirs, _packet):
    """The first of our values."""
    return theirs != "" and ours.startswith(theirs + "|")


def unanswered(_ours, theirs, packet):
    """A completion that tshark leaves undecoded."""
    return theirs == "" and packet.has("nvme.cqe.cid") and packet.theirs.get("nvme.cqe.cid", "") == ""


KNOWN = [
    Known("(ip|udp|infiniband)[.].*|frame[.]protocols", fair_rate, "an ICMP message of type 253 is rdmagen's own: what it quotes is data"),
    # RPC over RDMA and NFS.
    Known(r"(rpc|nfs)[.].*|data[.]len|frame[.]protocols", forgotten, "a call that the snap length cut is forgotten: what its reply says is data of an unknown program"),
    Known("(rpcordma|rpc|nfs)[.].*", cut, "what the snap length cut is not decoded"),
    Known("smc[.].*", cut, "likewise an Accept or Confirm of SMC-R, before its GID"),
    Known(r"infiniband[.](reth|aeth|immdt|invariant[.]crc)([.].*)?", lambda o, t, p: lost(o, t, p) and int(p.ours["infiniband.bth.opcode"]) >= 0xc0,
          "MRC is not known: what is behind the BTH is not decoded"),
    Known("(rpcordma|rpc|nfs)[.].*", lambda a, b, p: a == "" and p.has("tcp.srcport"), "RPC over TCP is decoded, too"),
    Known("(rpcordma|rpc|nfs)[.].*", lambda a, b, p: p.has("iwarp_mpa.ulpdulength") and twice(a, b, p), "over iWARP it is shown twice"),
    Known("(rpc|nfs)[.].*", lambda a, b, p: p.has("rpcordma.position") and b == "",
          "a call with a read list is shown where the last of its data came; here where the call came, which has all but the data"),
    Known("(rpc|nfs)[.].*", lambda a, b, p: a == "" and set(p.opcodes()) & {"15", "16"}, "likewise"),
    Known("rpc[.]repframe", lambda a, b, p: 0 < number(a) < number(b),
          "likewise: the reply refers to that packet"),
    Known("rpc[.]time", lambda a, b, p: a != "" and b != "" and "|" not in a + b and float(b) < float(a) and p.ours["rpc.repframe"] == p.theirs["rpc.repframe"],
          "the time of a call of several packets begins with the last one; here with the first one"),
    Known("rpc[.]time", lambda a, b, p: a != "" and b != "" and "|" not in a + b and float(b) < float(a) and p.ours["rpc.repframe"] != p.theirs["rpc.repframe"],
          "likewise: the time begins there"),
    Known("nfs[.](fh[.].*|fhandle)", lambda a, b, p: b.startswith(a) and (p.ours["rpc.procedure"] == "17" or "26" in p.ours["nfs.opcode"]),
          "the entries of READDIR and READDIRPLUS are decoded"),
    Known("nfs[.]nfsstat4", lambda a, b, p: b.startswith(a + "|") and "26" in p.ours["nfs.opcode"], "an attribute of entries in READDIR has this name, too"),
    Known("rpc[.]programversion", lambda a, b, p: p.has("iwarp_mpa.ulpdulength") and b == "|".join([a] * 4), "likewise, by both, over iWARP"),
    Known("rpc[.]programversion", twice, "the version is shown by RPC and by the program"),
    # NVMe over RDMA.
    Known("nvme-rdma[.]cm[.]re[qj][.].*", lost, "the private data of a REQ or REJ is never shown"),
    Known("nvme.*", lambda a, b, p: capsule(p) and not b, "a capsule of several packets is not put together"),
    Known("nvme-rdma[.]cmd[.]qid", lambda a, b, p: capsule(p) and not a,
          "the queue is shown in each packet of a capsule, the command in none; here both where its last packet came"),
    Known("nvme.*", unanswered, "the completion of a command that it did not decode is not decoded"),
    Known(r"nvme[.]cmd[.](identify[.](ctrl[.]psds|ns[.]lbaf|nslist)|get_logpage[.](changed_nslist|cmd_and_eff|selftest[.]res|.*_agg?reg|ana[.]grp|lba_status[.]nel))([.].*)?", among,
          "lists are shown to their end, with what is not used; here 16 of them at most: power states and formats that exist, namespaces, commands that are supported"),
    Known(r"nvme[.]set_features[.]lbart[.]apst([.].*)?", among, "likewise, of 32 transitions"),
    Known(r"nvme[.]cmd[.]get_logpage[.]errinf[.].*", first, "of several entries the first one is shown"),
    Known(r"nvme[.]cmd[.]get_logpage[.](errinf[.](nsid|rsvd[01]|sf[.].*|pel[.].*)|fw_slot[.]rsvd0)", lambda a, b, p: a != "" and b != "",
          "the namespace has two bytes, reserved ones are read in the other order, the phase tag is bit 15 and not 0, the masks of the location overlap"),
    Known(r"nvme[.]cmd[.]set_features[.]dword11[.]arb[.].pw|nvme[.]cqe[.]dword0[.]get_features[.]arb[.].pw", lost, "the weights are never filled in"),
    Known(r"nvme[.]cmd[.](set_features[.]dword14([.].*)?|dword1[235])", lambda a, b, p: lost(a, b, p) and p.has("nvme.cmd.set_features.dword11.arb"), "nothing behind the value of Arbitration is shown"),
    Known(r"nvme[.]cmd[.]get_logpage[.]telemetry[.]rsvd0", lambda a, b, p: all(x.endswith(y[2:]) for x, y in zip(a.split("|"), b.split("|"))), "of four bytes the first one is shown"),
    Known(r"nvme[.]cqe[.]dword0[.]aev([.].*)?", lambda a, b, p: added(a, b, p) and p.ours["nvme.cqe.dword0"] != "", "the completion of Verify, too, is taken for an event"),
    Known(r"nvme[.]cmd[.](prinfo|dsm[.]incompressible)", lambda a, b, p: a != "" and b != "", "its mask is that of other bits"),
    Known(r"nvme[.](cmd[.](set_features[.]dword11|identify[.]ctrl)|cqe[.]dword0[.]get_features)[.](irqc[.](thr|time)|irqv[.](iv|cd)|hctm[.]tmt[12]|sanicap([.].*)?)",
          lambda a, b, p: a != "" and b != "",
          "its mask is that of other bits, or of all; of the four bytes of the sanitize capabilities two are read"),
    Known(r"nvme[.]cmd[.]get_logpage[.]cmd_and_eff[.](cs|cseds([.]csupp)?)", lambda a, b, p: a != "" and b != "" and set(p.opcodes()) & {"6", "7", "8", ""},
          "a page of several packets is malformed from the second one on"),
    Known("nvme[.](cmd[.](identify|get_logpage)|set_features)[.].*",
          lambda a, b, p: bool(set(p.opcodes()) & {"6", "7", "8"}) and (not a or not b or among(b, a, p) or a.endswith(b)),
          "the data of a command are shown by the packet that has the bytes; here all of them where the last packet came"),
    Known(r"nvme[.]cmd[.]get_logpage[.]changed_nslist", lambda a, b, p: set(b.split("|")) == {"0x00000000"}, "likewise: in later packets the list has ended"),
    Known("nvme[.]cmd[.]identify[.]ns[.]vs", lambda a, b, p: a.replace("|", "") == b.replace("|", ""), "likewise: each packet shows its part of the bytes"),
    Known(r"nvme[.]cmd[.]get_logpage[.]errinf[.]rsvd1", lambda a, b, p: lost(a, b, p) or first(a, b, p) or a in b, "these bytes reach beyond their entry"),
    Known(r"nvme[.]cmd[.]get_logpage[.]ana[.].*", lambda a, b, p: added(a, b, p) or b.startswith(a), "what is read from the middle of the page is shown as if it began there"),
    Known("infiniband[.]invariant[.]crc", lambda a, b, p: lost(a, b, p) and p.has("nvme-rdma.cmd.qid"),
          "later packets of Get Log Page, Commands Supported and Effects, are taken for malformed"),
    Known("nvme[.]cqe[.]dword0", lost, "the first dword of the result has another name for each feature"),
    # iSER.
    Known("(iser|iscsi|scsi|scsi_sbc)[.].*", lambda a, b, p: capsule(p) and (not a or not b),
          "a message of several packets is not put together, and shown by its first one; here by its last one"),
    Known("iscsi[.](request_frame|time)", lambda a, b, p: p.ours["iscsi.request_frame"] > p.theirs["iscsi.request_frame"] != "", "likewise: its answer refers to that packet"),
    Known("scsi[.]lun", lambda a, b, p: b == "|".join([a] * b.count("|") + [a]) or (a == "" and p.has("iscsi.scsiresponse.status")),
          "shown by iSCSI, by the CDB and by the data; and once more with the response"),
    Known("scsi_sbc[.]opcode", lambda a, b, p: twice(a, b, p) or (a == "" and p.has("iscsi.scsiresponse.status")), "shown again with the data and with the response"),
    Known("(scsi|scsi_sbc)[.].*", lambda a, b, p: lost(a, b, p) and not p.has("iser.flags"), "SRP is not known"),
    Known("frame[.]protocols", lambda a, b, p: b == re.sub(":(srp|scsi|rtrs|rnbd|rping|perftest)", "", a), "likewise, and RTRS"),
    Known("data[.]len|frame[.]protocols", lambda a, b, p: p.has("scsi.spc.opcode"), "a CDB whose opcode has no name counts as data"),
    # SMB Direct.
    Known("smb2[.]channel", lambda a, b, p: added(a, b, p) and p.has("smb2.cmd"), "a field of Session Setup has this name, too"),
    Known("smb2[.]flags", lambda a, b, p: b == a + "|0x00000000", "a field of FSCTL_QUERY_NETWORK_INTERFACE_INFO has this name, too"),
    Known("(smb2|smb_direct)[.].*", lambda a, b, p: p.has("iwarp_mpa.ulpdulength") and (lost(a, b, p) or a.startswith(b + "|") or b.endswith("|" + a)),
          "over iWARP, of several messages in a TCP segment only the first one is decoded; the next one is then joined with its parts"),
    Known("smb2[.]time", lambda a, b, p: float(b.split("|")[0] or 0) < float(a.split("|")[0] or 0),
          "the time of a request in several messages begins with the last one; here with the first one"),
    # SMC-R.
    Known("lnet[.].*|frame[.]protocols|infiniband[.](payload|invariant[.]crc)|data[.].*", lambda a, b, p: p.has("lnet.ib.magic") and p.theirs.get("lnet.ib.magic", "") == "",
          "messages of big-endian senders, and those in private data, are not decoded"),
    Known("lnet[.]ib_csum", lost, "the checksum has no value"),
    Known("(lnet[.](o2ib[.]cookie|rdma.*)|infiniband[.]invariant[.]crc)", lambda a, b, p: p.ours.get("lnet.ib.type") == "0xd6", "what follows the LNet header of a GET_REQ is read four bytes early"),
    Known("smc[.].*|frame[.]protocols", lambda a, b, p: p.ours.get("smc.llc_msg", "").startswith("0x2"), "LLC messages of version 2 are malformed to it"),
    # iWARP.
    Known("iwarp_rdma[.](term_.*|hdrct_[dr])", lambda a, b, p: p.has("iwarp_rdma.term_layer") and not p.has("iwarp_rdma.term_rsvd"),
          "siw writes the bit fields of a Terminate in the order of its CPU, which is read in that of the network"),
    Known("(iwarp|smb2|smb_direct)[_.].*", lambda a, b, p: lost(a, b, p) and p.has("tcp.srcport") and all(v == "" for n, v in p.theirs.items() if n.startswith("iwarp_")),
          "behind a segment that was not captured, and was acknowledged, nothing of the stream is put together any more"),
    Known("frame[.]protocols", lambda a, b, p: p.has("iwarp_mpa.ulpdulength") and ":iwarp_mpa:" in a and ":iwarp_mpa:" in b,
          "of several FPDUs in a packet MPA counts once if the stream was put together, and payload is a protocol"),
    Known("nvme.*", lambda a, b, p: lost(a, b, p) and p.has("iwarp_mpa.ulpdulength"), "NVMe over iWARP is not decoded"),
    # InfiniBand transport.
    Known("infiniband[.](immdt|ieth)", twice, "ImmDt and IETH are added to the tree twice"),
    Known("infiniband[.]invariant[.]crc", lambda a, b, p: lost(a, b, p) and "129" in p.opcodes(),
          "a CNP is an unknown opcode: what follows its BTH is vendor data, the ICRC included"),
    Known("infiniband[.]invariant[.]crc", lambda a, b, p: lost(a, b, p) and "31" in p.opcodes(),
          "behind an undefined opcode everything is vendor data, the ICRC included"),
    Known("(ipoib|ip|ipv6|udp|tcp|icmp|icmpv6|arp)[.].*|frame[.]protocols", lambda a, b, p: p.has("ipoib.type") and (b == "" or "infiniband:data" in b),
          "IP over InfiniBand is not taken out of datagrams, as heuristics are not tried first here; tests/tunnels.test compares it"),
    Known("infiniband[.]payload", lost, "payload is handed on to other dissectors and has this name only when it might be Ethernet or IPoIB"),
    Known("frame[.]protocols", lambda a, b, p: a != "" and b != "" and (a.startswith(b) or b.startswith(a)),
          "what a payload is handed on to, and whether a cut or a repeated one is data, depends on guesses and on packets before it"),
    Known("frame[.]protocols", lambda a, b, p: "ipv6." in b and re.sub(r"ipv6[.]\w+:", "", b) == a, "IPv6 extension headers count as protocols"),
    Known("frame[.]protocols", lambda a, b, p: b.endswith(":nfsacl") and a.startswith(b[:-len(":nfsacl")]), "NFSACL is a protocol of its own; here it is shown as NFS"),
    Known("frame[.]protocols", lambda a, b, p: a.startswith("ipv6:") and b.startswith("ip:" + a),
          "a packet of IP version 6 behind the link type of IPv4 counts as one of both, and its payload is decoded further"),
    Known("frame[.]protocols", lambda a, b, p: b == "", "left empty for some packets that are decoded"),
    Known("frame[.]protocols", lambda a, b, p: a.endswith(":data") and b.startswith(a[:-len("data")]), "the payload of TCP or UDP is decoded further"),
    Known("frame[.]interface_name", lambda a, b, p: p.ours["frame.interface_id"] == p.theirs["frame.interface_id"] and a != "" and b != "",
          "an interface of a later section has the name of the first section's"),
    Known("frame[.]interface_name", lambda a, b, p: a == "" and ("ERF Interface" in b or b == "unknown"), "an interface that the file gives no name gets one"),
    Known("frame[.]time_delta(_displayed)?", lambda a, b, p: float(a or 1) == 0 and b == p.ours["frame.time_epoch"], "a first packet without time counts as one of 1970"),
    Known("data[.]len", lambda a, b, p: 0 < number(b) - number(a) < 4, "the pad bytes are counted"),
    Known("data[.]len", lambda a, b, p: lost(a, b, p) or added(a, b, p), "what was handed on, cut or repeated is no data"),
    # Communication Management.
    Known("infiniband[.]cm[.]req[.]prim_flowlabel", lambda a, b, p: number(b) == number(a) >> 8,
          "the REQ's flow label lacks its low 8 bits: 20 bits are taken from 3 bytes with the mask for 4"),
    Known("infiniband[.]cm[.]req[.]prim_reserved0", lambda a, b, p: number(b) == number(p.ours["infiniband.cm.req.prim_flowlabel"]) >> 18,
          "the REQ's 6 reserved bits behind the flow label are taken from the label's first byte"),
    Known("infiniband[.]cm[.]req[.]prim_pktrate",
          lambda a, b, p: number(b) == number(p.ours["infiniband.cm.req.prim_flowlabel"]) >> 12 & 0x3f,
          "the REQ's packet rate is taken from the flow label's first byte"),
    # Management.
    Known("infiniband[.](mad|cm)([.].*)?", lambda a, b, p: lost(a, b, p) and number(p.ours["frame.cap_len"]) < number(p.ours["frame.len"]),
          "a datagram that the snap length cut is not decoded"),
    Known("infiniband[.]smpdirected", lambda a, b, p: b == p.theirs["infiniband.mad"],
          "the value spans the datagram from its first byte on"),
    Known("infiniband[.]sa[.]drdlid", lambda a, b, p: a in b and b.split("|")[0] == p.theirs["infiniband.mad"],
          "the name stands for several headings, whose values span what follows"),
    Known("infiniband[.]smpdirected[.]d", lambda a, b, p: number(a) == 1 and number(b) == 0, "the direction bit always reads 0"),
    # Packets that ICMP errors quote: rdmatrace shows their headers up to the transport header's.
    Known("infiniband[.](invariant[.]crc|mad([.].*)?|cm([.].*)?)", quoted,
          "a packet quoted by an ICMP error is decoded to its end, although what is quoted may be cut"),
    # Below RDMA.
    Known("vxlan[.].*", lambda a, b, p: lost(a, b, p) and number(p.ours["udp.srcport"]) < number(p.ours["udp.dstport"]),
          "the lower port decides the protocol, even if it is the source's"),
    Known("tcp[.]len", lambda a, b, p: lost(a, b, p) and p.ours["ip.flags.mf"] == "1", "no segment length in a first fragment"),
    Known("ip[.].*", lambda a, b, p: lost(a, b, p) and number(p.ours["ip.hdr_len"]) < 20,
          "an IPv4 header whose length is below 20 is not shown further"),
    Known("(ip|udp)[.].*", lambda a, b, p: lost(a, b, p) and number(p.ours["ip.len"]) < number(p.ours["ip.hdr_len"]),
          "an IPv4 header whose total length is below its own is not shown further, nor what follows it"),
    Known("ip[.]opt[.].*", lambda a, b, p: lost(a, b, p) and number(p.ours["frame.cap_len"]) < 14 + number(p.ours["ip.hdr_len"]),
          "IPv4 options cut by the snap length are not shown at all"),
    Known("ipv6[.]opt[.].*", lambda a, b, p: added(a, b, p) and number(p.theirs["ipv6.opt.length"]) > 4,
          "an option that does not fit its extension header of 8 bytes is shown"),
    Known("frame[.]time_relative", lambda a, b, p: a != "" and b == p.ours["frame.time_epoch"],
          "a first packet without time counts as one of 1970"),
    # Link types that rdmatrace does not decode: frame relay, Juniper; SUNATM, whose pseudo header of 4 bytes tshark does not count.
    Known("(eth|ip)[.].*|frame[.]protocols", lambda a, b, p: added(a, b, p) and undecoded(p), "a link type unknown to rdmatrace is decoded"),
    Known("frame[.](len|cap_len)", lambda a, b, p: undecoded(p) and number(b) == number(a) - 4,
          "the pseudo header of a link type unknown to rdmatrace is not counted"),
]

# Names that tshark has for NVMe over RDMA and that are not here, as regular expressions for whole names, and why.
ABSENT = [
    (r"nvme(-rdma)?[.](fabrics[.])?(data[.]tr0|data_tr\d+|cqe_pkt|data_resp)", "the frames of what follows, of which a packet that is read once cannot tell; the later packets refer to the command"),
    (r"nvme-rdma[.](read_from|write_to)_host_(prev|next)", "the packet before or behind it in the same message: rdma.msg and rdma.msg.packet find it"),
    (r"nvme-rdma[.](write_to_host_req|read_to_host_req|read_from_host_resp|unknown_data)|nvme[.]data", "a heading: the opcode and rdma.ulp say that the packet moves data of a command"),
    (r"nvme[.]fabrics[.](cmd|cqe)", "a heading: the name of a header here"),
    (r"nvme[.](fabrics[.])?data_req", "the frame of the READ request: rdma.request_in"),
    (r"nvme[.]cmd[.]get_logpage[.](ana[.]grp|lba_status[.]nel([.]ne)?)", "a heading for things of different lengths, which are layers here"),
    (r"nvme[.]cqe[.]dword0[.]get_features[.]plmw[.](nvmsetid|rsvd)", "what is returned is the window, not the set: rdma.nvme.get_features.plmw.ws"),
    (r"nvme[.]cmd[.]get_logpage[.]sanitize[.]rsvd", "never filled in: the bytes behind the page"),
    (r"nvme[.]cqe[.]dword0[.]set_features[.]err", "never filled in over fabrics: the failure of Set Features for interrupts"),
    (r"nvme[.]fabrics[.]cmd[.](generic[.].*|prop_attr[.]set[.]nssr([.]nssrc)?)", "never filled in: commands that are not named, and the property of a reset"),
    (r"nvme[.]fabrics[.]prop_get_set[.]data[.]4B", "never filled in: values of four bytes have the names of their property"),
]
