"""Violations that are one field of one packet: so the rules that tests/violations/fields.tsv names for a field are seen to read it."""
import struct
import zlib

from build import CM, EVERYWHERE, ON, icrc6, summed
from cm import BY_B, DATA, ELSE, MUST_COMPLETE, case, marked_as, put, v1, v6
from transport import MID

MORE = ">so 3 at=80; <ack 3 m=4"
RD = "; <ro 1 m=2 at=300; <ro 2 m=3"


def every(form, bad_form):
    """All frames in another form, the frame marked "!" of the violation in a wrong one."""
    return lambda frames, bad: [(us, (bad_form if bad and mark == "!" else form)(data), mark) for us, data, mark in frames]


def byte_of(form, at, value):
    """That form, with another byte behind its Ethernet header, and the ICRC that it asks for."""
    def change(data):
        data = form(data)
        data = data[:at] + bytes([value]) + data[at + 1:-4]
        return data + icrc6(data[14:])
    return change


def options(data):
    """The frame with four bytes of IP options."""
    ip = summed(b"\x46" + data[15:16] + struct.pack(">H", struct.unpack_from(">H", data, 16)[0] + 4) + data[18:34] + b"\1\1\1\0") + data[34:-4]
    m = bytearray(ip)
    for masked in (1, 8, 10, 11, 24 + 6, 24 + 7, 24 + 8 + 4):
        m[masked] = 0xff
    return data[:14] + ip + struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(m)))


def broken(data):
    return data[:-1] + bytes([data[-1] ^ 1])


def service_tag(data):
    return data[:12] + b"\x88\xa8" + data[14:]


def field(name, rule, text, change=None, must=EVERYWHERE, may=""):
    return case("one field: " + name, rule, text, must, may, change)


SO2 = CM + DATA + "!>so 2%s; ?<ack 2 m=3; ?" + MORE
V6 = DATA + "!>so 2; ?<ack 2 m=3; ?>so 3 at=80; <ack 3 m=4"  # without messages of CM, which name IPv4 addresses
CASES = [
    field("TVer", "FMT-02", SO2 % " tver={1|0}"),
    field("opcode that is reserved", "FMT-03", CM + DATA + "!>so 2 op={0x1f|4}; ?<ack 2 m=3"),
    field("reserved bits behind AckReq", "FMT-04", SO2 % "", put(50, b"\x81")),
    field("reserved bits behind BECN", "FMT-04", SO2 % "", put(46, b"\x01")),
    field("reserved byte of the DETH", "FMT-04", "!>req; <rep; >rtu", put(58, b"\1")),
    field("reserved byte of the XRCETH", "FMT-04", ">so 0 class=0xa0 srq=5; !>so 1 class=0xa0 srq=5; >so 2 class=0xa0 srq=5", put(54, b"\1")),
    field("reserved bits of the FETH", "FMT-04", MID + "!>flush 1 dl=64; <ro 1 n=0 m=8", put(54, b"\x80")),
    field("PLT of a FLUSH", "RDA-12", MID + "!>flush 1 dl=64; {<nak1 1 m=7|<ro 1 n=0 m=8}", put(57, b"\x1f")),
    field("selectivity of a FLUSH", "RDA-12", MID + "!>flush 1 dl=64; {<nak1 1 m=7|<ro 1 n=0 m=8}", put(57, b"\x31")),
    field("pad count", "FMT-05", SO2 % "", put(43, b"\x10")),
    field("don't fragment", "FMT-08", SO2 % "", put(20, b"\0\0")),
    field("more fragments", "FMT-08", SO2 % "", put(20, b"\x60\0")),
    field("IP options", "FMT-08", SO2 % "", marked_as(options)),
    field("UDP checksum", "FMT-09", SO2 % "", put(40, b"\x12\x34")),
    field("IPv4 header checksum", "FMT-09", SO2 % "", put(24, b"\x12\x34")),
    field("IPv4 header checksum in mid-stream", "FMT-09", MID + "!>so 1; ?<ack 1 m=8; ?>so 2; ?<ack 2 m=9", put(24, b"\x12\x34")),
    field("IPv4 header checksum, and the receiver discards the packet", "FMT-09",
          CM + DATA + "!>so 2; >so 3; {<nak0 2 m=2; >so 2 at=100; >so 3|}; <ack 3 m=4", put(24, b"\x12\x34")),
    field("UDP source port", "FMT-10", SO2 % "", put(34, b"\x10\0")),
    field("DSCP", "FMT-11", SO2 % " dscp={10|26}"),
    field("ECN", "FMT-12", SO2 % " ecn={0|2}"),
    field("FECN", "FMT-13", SO2 % "", put(46, b"\x80")),
    field("BECN", "FMT-13", SO2 % "", put(46, b"\x40")),
    field("DestQP 0xffffff", "FMT-14", CM + DATA + "!>so 2{ q=0xffffff|}; ?<ack 2 m=3; ?>so 3 at=80; ?<ack 3 m=4", must="ncqr"),
    field("MigReq", "FMT-17", SO2 % " f={am|a}"),
    field("Q_Key of datagrams", "FMT-16", ">so 0 op=0x64 f=- q=77 fill=0; !>so 1 op=0x64 f=- q=77 fill=0; ?>so 2 op=0x64 f=- q=77 fill=0", put(54, b"\0\0\0\5")),
    field("IP version of the GRH", "FMT-18", SO2 % "", every(v1, byte_of(v1, 14, 0x46))),
    field("next header of the GRH", "FMT-18", SO2 % "", every(v1, byte_of(v1, 20, 0x11)), must="ncqQr"),
    field("payload length of the GRH", "FMT-18", SO2 % "", every(v1, byte_of(v1, 19, 0x54)), must="ncqQr"),
    field("traffic class of the GRH, DSCP", "FMT-11", SO2 % "", every(v1, byte_of(v1, 14, 0x61))),
    field("traffic class of the GRH, ECN", "FMT-12", SO2 % "", every(v1, byte_of(v1, 15, 0x80))),
    field("VLAN id", "FMT-22", ">so 0 vlan=0x6003; <ack 0 m=1 vlan=0x6003; !>so 1 vlan={0x6004|0x6003}; <ack 1 m=2 vlan=0x6003"),
    field("DEI", "FMT-22", ">so 0 vlan=0x6003; <ack 0 m=1 vlan=0x6003; !>so 1 vlan={0x7003|0x6003}; <ack 1 m=2 vlan=0x6003"),
    field("id of a service tag", "FMT-22", ">so 0 vlan=0x6003; <ack 0 m=1 vlan=0x6003; !>so 1 vlan={0x6004|0x6003}; <ack 1 m=2 vlan=0x6003", every(service_tag, service_tag)),
    field("priority of a service tag", "FMT-22", ">so 0 vlan=0x6003; <ack 0 m=1 vlan=0x6003; !>so 1 vlan={0x4003|0x6003}; <ack 1 m=2 vlan=0x6003", every(service_tag, service_tag)),
    field("DEI of a service tag", "FMT-22", ">so 0 vlan=0x6003; <ack 0 m=1 vlan=0x6003; !>so 1 vlan={0x7003|0x6003}; <ack 1 m=2 vlan=0x6003", every(service_tag, service_tag)),
    field("DestQP 0xffffff of all requests", "FMT-14", CM + "!>so 0{ q=0xffffff|}; {|<ack 0 m=1}; ?>so 1{ q=0xffffff|}; {|<ack 1 m=2}; ?>so 0{ q=0xffffff|} at=70000; {|<ack 0 m=2}", must="ncqr", may=ELSE),
    field("MAC address of a multicast", "SVC-05", "!>so 0 op=0x64 f=- fill=0 q=0xffffff dst=239.0.0.1 mac={01005e000002|01005e000001}"),
    field("multicast address", "SVC-05", "!>so 0 op=0x64 f=- fill=0 q=0xffffff dst={239.0.0.2|239.0.0.1} mac=01005e000001"),
    field("queue pair of a multicast", "SVC-05", "!>so 0 op=0x64 f=- fill=0 q={77|0xffffff} dst=239.0.0.1 mac=01005e000001"),
    field("source MAC address", "SEC-04", SO2 % "", put(10, b"\x66\x11")),
    field("TTL", "SEC-04", SO2 % " ttl={61|64}"),
    field("credits without flow control", "CM-11", ON + ">so 1; !<ack 1 m=2 s={5|0x1f}"),
    field("flow control of the REP", "CM-11", CM.replace("<rep", "<rep flow={0|1}") + ">so 0; !<ack 0 m=1 s=5"),
    field("flow control of the REQ", "CM-11", CM.replace(">req", ">req flow={0|1}") + "<so 0; !>ack 0 m=1 s=5"),
    field("shared receive queue of the REP", "CM-11", CM.replace("<rep", "<rep flow=1 srq={1|0}") + ">so 0; !<ack 0 m=1 s=5"),
    field("shared receive queue of the REQ", "CM-11", CM.replace(">req", ">req flow=1 srq={1|0}") + "<so 0; !>ack 0 m=1 s=5"),
    field("reserved bit of the syndrome", "ACK-01", ON + ">so 1; !<ack 1 m=2 s={0x9f|0x1f}"),
    field("NAK code after which all is completed", "NAK-04", ON + ">so 1; >so 2; <nak{2|0} 1 m=1; ?>so 1; ?>so 2; !<ack 2 m=3"),
    field("timer of RNR NAKs that differ", "RTX-07", ON + ">so 1; <rnr14 1 m=1; >so 1 at=5000; <ack 1 m=2; >so 2; !<rnr{13|14} 2 m=2; >so 2 at=5000; <ack 2 m=3"),
    field("opcode of another operation inside a message", "SEQ-02", MID + ">sf 1; >sm 2; !>sm 3 op={7|1}; {|>sl 4; <ack 4 m=8}"),
    field("opcode of a Middle", "SEQ-03", MID + "!>so 1 op={2|4}; {<nak1 1 m=7|<ack 1 m=8}"),
    field("PSN of a request", "SEQ-01", ON + ">so 1; <ack 1 m=2; !>so {4|2}; {|<ack 2 m=3}", must="Q", may="ncqrR"),
    field("original value of a repeated atomic", "RDA-09", ON + ">faa 1; <aack 1 m=2 orig=5; >faa 1 at=70000; !<aack 1 m=2 orig={6|5}"),
    field("PSN of an ACK", "ACK-02", ON + ">so 1; <ack 1 m=2; >so 2; !<ack {9|2} m=3 at=80; >so 3 at=2000; <ack 3 m=4", must="R", may=ELSE),
    field("Solicited Event of a First", "SEQ-08", MID + "!>sf 1 f={s|-}; >sl 2; <ack 2 m=8"),
    field("attribute of a MAD", "CM-02", ">req; <rep; !>rtu attr={0x1b|0x14}; " + DATA),
    field("Q_Key of a MAD", "FMT-16", "!>req; ?<rep; ?>rtu; " + DATA, put(54, b"\0\0\0\5")),
    field("MAD status: redirect", "CM-02", ">req; <rep; !>rtu mstatus={2|0}; " + DATA),
    field("length of the reason", "CM-05", ">req; !<rej %s of=0 length={73|0}" % BY_B),
    field("local id of an APR", "CM-01", CM + DATA + ">lap qpn=$qb at=1000; !<apr at=1000 lid={9|2}", must=MUST_COMPLETE, may=ELSE),
    field("status of an APR", "CM-14", CM + DATA + ">lap qpn=$qb at=1000; !<apr at=1000 status={20|0}"),
    field("local id of a LAP", "CM-01", CM + DATA + "!>lap qpn=$qb at=1000 lid={9|1}; {|<apr at=1000}"),
    field("remote id of a LAP", "CM-01", CM + DATA + "!>lap qpn=$qb at=1000 rid={9|2}; {|<apr at=1000}", must=MUST_COMPLETE, may=ELSE),
    field("local id of an MRA", "CM-01", ">req at=1000; <rep at=1000; !>mra of=1 at=1000 lid={9|1}; >rtu at=1000"),
    field("id of a SIDR_REQ", "CM-01", ">sreq service=0x4711 id={5|1}; !<srep qpn=77"),
    field("Q_Key of a SIDR_REP", "CM-15", ">sreq service=0x4711; <srep qpn=77 qkey={5|0}; !>so 0 op=0x64 f=- q=77 fill=0"),
    field("Q_Key of a datagram", "CM-15", ">sreq service=0x4711; <srep qpn=77 qkey=0; !>so 0 op=0x64 f=- q=77 fill=0", put(54, b"\0\0\0\5")),
    field("destination in the RDMA-CM header", "CM-16", "!>req {dip=0x01020304|}; <rej %s of=0" % BY_B),
    field("IP version of the RDMA-CM header", "CM-16", "!>req ipversion={6|4}; <rej %s of=0" % BY_B),
    field("minor version of the RDMA-CM header", "CM-16", "!>req version={1|0}; <rej %s of=0" % BY_B),
    field("service id of a SIDR_REQ with an RDMA-CM header", "CM-16", "!>sreq service={0x0000000001111c06|0x4711}; <srep qpn=77"),
    field("source of a REQ that names itself", "CM-17", "!>req service=0x4711 src={$s|$a}; <rej %s of=0{ dst=$s|}" % BY_B),
    field("destination of a REQ that names another", "CM-17", "!>req service=0x4711 dst={$s|$b}; {|<rej %s of=0}" % BY_B),
    field("most retries of CM", "CM-03", ">req cmretries={1|15}; >req cmretries={1|15} at=5000000; !>req cmretries={1|15} at=5000000; <rep; >rtu"),
    field("response timeout of the REQ", "CM-03", ">req rtimeout={22|20}; !>req rtimeout={22|20} at=5000000; <rep; >rtu", must="Q", may="ncqrR"),
    field("response timeout of the REP", "CM-03", ">req ltimeout={22|20}; <rep; <rep at=5000000; !<rep at=5000000; >rtu", must="R", may="ncqQr"),
    field("first PSN in the REP", "CM-06", CM.replace("<rep", "<rep{ psn=7|}") + "!>so 0; ?<ack 0 m=1; ?>so 1; ?<ack 1 m=2", must="Q", may="ncqrR"),
    field("first PSN in the REQ", "CM-06", CM.replace(">req", ">req{ psn=7|}") + "!<so 0; ?>ack 0 m=1; ?<so 1; ?>ack 1 m=2", must="R", may="ncqQr"),
    field("queue pair in the REP", "CM-07", CM.replace("<rep", "<rep{ qpn=$x|}") + "!>so 0; ?<ack 0 m=1; ?>so 1; ?<ack 1 m=2", must=MUST_COMPLETE, may=ELSE),
    field("queue pair in the REQ", "CM-07", CM.replace(">req", ">req{ qpn=$x|}") + "!<so 0; ?>ack 0 m=1; ?<so 1; ?>ack 1 m=2", must=MUST_COMPLETE, may=ELSE),
    field("path MTU of the REQ", "CM-08", CM.replace(">req", ">req mtu={1|2}") + "!>sf 0 n=512 dl=576; >sl 1; <ack 1 m=1"),
    field("resources of the REQ", "CM-09", ">req resources={4|16}; !<rep depth=16; >rtu"),
    field("depth of the REQ", "RDA-06", ON.replace(">req", ">req depth={1|16}") + ">rd 1; !>rd 2" + RD, must=MUST_COMPLETE, may=ELSE),
    field("resources of the REP", "RDA-06", ON.replace("<rep", "<rep resources={1|16}") + ">rd 1; !>rd 2" + RD, must=MUST_COMPLETE, may=ELSE),
    field("resources of the REQ, for READs of the passive side", "RDA-06", CM.replace(">req", ">req resources={1|16}").replace("<rep", "<rep depth={1|16}") + "<rd 0; !<rd 1; >ro 0 m=1 at=300; >ro 1 m=2", must=MUST_COMPLETE, may=ELSE),
    field("length of a READ", "RDA-01", ON + ">rd 1 dl={320|64}; !>so 2; ?<ro 1 m=2; ?<ack 2 m=3"),
    field("R_Key of a READ sent again", "RDA-04", ON + ">rd 1 dl=64 rk={1|2}; !>rd 1 dl=64 rk=2 at=70000; <ro 1 m=2"),
    field("address of a READ sent again", "RDA-04", ON + ">rd 1 dl=64 va={0x100|0x200}; !>rd 1 dl=64 va=0x200 at=70000; <ro 1 m=2"),
    field("length of a RETH beyond 2^31", "SEQ-07", ON + "!>wf 1 dl={0x80000001|576} f=a; {<nak1 1 m=1|<ack 1 m=1}"),
    field("ICRC", "FMT-01", CM + DATA + "!>so 2; >so 2 at=70000; <ack 2 m=3", marked_as(broken)),
    field("MAC address of a multicast, which is no group's", "SVC-05", "!>so 0 op=0x64 f=- fill=0 q=0xffffff dst=239.0.0.1 mac={00005e000001|01005e000001}"),
    field("queue pair in a SIDR_REP", "CM-15", ">sreq service=0x4711; <srep qpn={77|78} qkey=5; !>so 0 op=0x64 f=- q=77 fill=0"),
    field("service id that says an RDMA-CM header follows", "CM-16", "!>req service={0x0000000001061c06|0x4711} version=0x55; <rej %s of=0" % BY_B),
    field("source GID of a RoCEv1 REQ", "CM-17", "!>req service=0x4711 src={$s|$a}; <rej %s of=0{ dst=$s|}" % BY_B, every(v1, v1)),
    field("destination GID of a RoCEv1 REQ", "CM-17", "!>req service=0x4711 dst={$s|$b}; {|<rej %s of=0}" % BY_B, every(v1, v1)),
    field("source GID of a RoCEv1 ACK", "FMT-25", CM + DATA + ">so 2; !<ack 2 m=3 src={$s|$b}; >so 3; <ack 3 m=4", every(v1, v1)),
    field("source GID of a RoCEv1 DREQ", "CM-01", CM + DATA + "!>dreq at=1000 src={$s|$a}; {>so 2; <ack 2 m=3|<drep}", every(v1, v1)),
    field("source address of an ACK over IPv6", "FMT-25", ">sf 0; >sm 1; >sl 2; !<ack 2 m=1 src={$s|$b}; {>sf 0 at=70000; >sm 1; >sl 2; ?<ack 2 m=1 src=$s|}", every(v6, v6), must=MUST_COMPLETE, may=ELSE),
    field("DSCP of IPv6", "FMT-11", V6, every(v6, byte_of(v6, 14, 0x61))),
    field("ECN of IPv6", "FMT-12", V6, every(v6, byte_of(v6, 15, 0x80))),
    field("payload length of IPv6", "FMT-07", V6, every(v6, byte_of(v6, 19, 0x50))),
]
