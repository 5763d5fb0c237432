"""Compare the packet lines of upper protocols with the Info column of tshark: every part of its line is in ours, or stands here with the reason why not."""
import collections
import re

CM = {"ConnectRequest": "REQ", "ConnectReply": "REP", "ReadyToUse": "RTU", "ConnectReject": "REJ", "DisconnectRequest": "DREQ", "DisconnectReply": "DREP", "MsgRcptAck": "MRA"}
# Names that differ: tshark's, ours.
SAME = {"Async Event Request": "Asynchronous Event Request", "Active Namespace List": "Active Namespace ID list", "Namespace Identification Descriptor": "Namespace Identification Descriptor list",
        "NVMeOF Discovery": "Discovery", "SMART/Health Information": "SMART / Health Information", "Service Action In(16)": "READ CAPACITY(16)", "Mgmt Protocol In": "REPORT SUPPORTED OPERATION CODES",
        "Negotiate Protocol": "Negotiate", "Session Logoff": "Logoff", "Logout": "Logout", "Closed": "Close",
        "Write Zero": "Write Zeroes", "Reserve Register": "Reservation Register", "Reserve Report": "Reservation Report", "Reserve Acquire": "Reservation Acquire",
        "Reserve Release": "Reservation Release", "Authentication Recv": "Authentication Receive"}
SMB2_NAMES = {"GetInfo": "Query Info", "SetInfo": "Set Info", "Find": "Query Directory", "KeepAlive": "Echo", "Notify": "Change Notify"}
RIGHTS = {"RD": "READ", "LU": "LOOKUP", "MD": "MODIFY", "XT": "EXTEND", "DL": "DELETE", "XE": "EXECUTE"}
# Commands of NVMe that it calls unknown, as it does those without a name; of Authentication Receive it does so where the data are.
UNKNOWN = ("Verify", "Zone Management Send", "Zone Management Receive", "Zone Append", "Authentication Receive", r"opcode 0x\w\w")


def name(text):
    if text == "Unknown Command":
        return "(?:%s)" % "|".join(UNKNOWN)
    return re.escape(SAME.get(text, text))


def number(text):
    """A number that tshark writes as hexadecimal."""
    return str(int(text, 16))


def nvme(m, more=""):
    """A command by its name; what it is about stands in parentheses, or behind it."""
    words = m[1]
    for verb in ("Identify", "Property Get", "Property Set", "Get Log Page", "Set Features", "Get Features"):
        if words.startswith(verb + " "):
            return name(verb) + r" \(" + name(words[len(verb) + 1:]) + ".*" + more if not more else name(verb) + " cid" + more
    return name(words) + r"(?: \(.*\))? cid" + more


# Behind the name of a feature whose value it has no field for.
BUG = r"(?:\[Dissector bug, protocol NVMe Fabrics RDMA: [^]]*\(Unregistered hf!\)\])?"
DATA = r" data \d"
# Protocols, a part of their line in tshark; the regular expression that is in our line then, or None and the reason.
PARTS = (
    (".*", r"CM: (\w+)$", lambda m: "CM %s " % CM[m[1]], ""),
    (".*", r"RC (Send|RDMA Write|RDMA Read Response) (\w+)( Immediate| Invalidate)? QP=(0x\w+) ?",
     lambda m: "RC %s %s(?: with %s)? QP %s" % (m[1].upper().replace("RESPONSE", "Response"), m[2], (m[3] or " Invalidate").strip(), m[4]), ""),
    (".*", r"RC RDMA Read Request QP=(0x\w+) ", lambda m: "RC RDMA READ Request QP " + m[1], ""),
    (".*", r" ?\[Malformed Packet\]", None, "it is not: another protocol was taken for it, or parts of it were in other packets"),
    ("NVMe.*", r"\| NVMe(?:OF)? CQE for (.+?)(?: Unknown)?" + BUG + "$", lambda m: nvme(m, ".*: "), "what the command is about stands in its own line, which has the same cid"),
    ("NVMe.*", r"\| NVMeOF Data Request for (.+)$", lambda m: nvme(m, ".* data requested"), ""),
    ("NVMe.*", r"\| NVMe[oO]F Data for (.+?)(?: Unknown)?(?:, offset (\d+))?$", lambda m: nvme(m, ".* data %s-" % (m[2] or 0)), "likewise"),
    ("NVMe.*", r"\| NVMe Identify Unknown$", lambda m: r"Identify (?:\(|cid 0x\w+ cns 0x)", "it has a name, or a number"),
    ("NVMe.*", r"\| NVMe Get Log Page Vendor Specific Page$", lambda m: r"Get Log Page cid 0x\w+ .*lid 0x[c-f]\w\b", "the number says so: those are from 0xc0 on"),
    ("NVMe.*", r"\| NVMeOF Property ([GS]et) Reserved$", lambda m: r"Property %s \(Interrupt Mask (?:Set|Clear)\) cid" % m[1], "reserved for fabrics, and named as what a host asked for"),
    ("NVMe.*", r"\| NVMe(?:OF)? (?!CQE |Data )(.+?)" + BUG + "$", nvme, ""),
    ("NFS", r"V(\d) NULL (?:Call|Reply)", lambda m: "NFS NULL xid", ""),
    ("NFS", r"V3 (?!NULL )([A-Z]\w+) (?:Call|Reply)", lambda m: "NFS %s xid" % m[1], ""),
    ("NFS", r"V(\d) (?:Call|Reply)", lambda m: "NFS ", "the version is rpc.programversion; a reply has a status behind the colon"),
    ("NFS", r" \((?:Call|Reply) In \d+\)", None, "a capture is read once: -V of the reply names the frame of the call (rpc.repframe, rdma.ulp)"),
    ("NFS", r" (?:PUTROOTFH|SAVEFH|PUTFH|SEQUENCE|GETFH|RESTOREFH) \|", None, "the main operation is named; -V and JSON (operations) list all"),
    ("NFS", r" Status: (\w+)", lambda m: ": " + m[1], ""),
    ("NFS", r" Error: (\w+)", lambda m: ": %s$" % m[1], ""),
    ("NFS", r",? From DH: (0x\w+)(?:/\S+)? To DH: (0x\w+)/(\S+)", lambda m: ' fh %s "%s"' % (m[2], re.escape(m[3])), "the new name is shown, as with a compound"),
    ("NFS", r", From DH: (0x\w+)/(\S+) To (\S+)", lambda m: ' fh %s "%s" count %d$' % (m[1], re.escape(m[2]), len(m[3])), "of what a symbolic link names the length"),
    ("NFS", r",? (?:FH|DH): (0x\w+)/?([^\s,]*)", lambda m: " fh %s.*%s| data \\d" % (m[1], re.escape(m[2])), "of the data see below"),
    ("NFS", r" Mode: (?:UNCHECKED|GUARDED|EXCLUSIVE)", None, "what CREATE does with a file that is there is not decoded"),
    ("NFS", r" (FILE_SYNC|DATA_SYNC|UNSTABLE)", lambda m: " %s$| data \\d" % m[1], "of the data see below"),
    ("NFS", r"  (?:Regular File|Directory|Symbolic Link) mode: \d+ uid: \d+ gid: \d+", None, "attributes are not decoded"),
    ("NFS", r" \. \.\.(?: \S+)*", None, "nor are the entries of directories"),
    ("NFS", r", \[(?:Check|Allowed): ([A-Z ]+)\]", lambda m: " access%s$" % "".join(" " + RIGHTS[w] for w in m[1].split()), ""),
    ("NFS", r", \[Access Denied: [A-Z ]+\]", None, "those that are asked for stand in the line of the call"),
    ("NFS", r" StateID: 0x\w+", None, "a CRC of the state identifier that tshark makes up: rdma has the file handle"),
    ("NFS", r" Offset: (\d+)", lambda m: " offset %s\\b|%s" % (m[1], DATA), "where the last of the data came tshark tells of the call again"),
    ("NFS", r" Len: (\d+)", lambda m: " count %s\\b|%s" % (m[1], DATA), "likewise"),
    ("NFS", r" From: \S+ To: (\S+)", lambda m: '"%s"' % re.escape(m[1]), "the latest name of a compound is kept: the new one"),
    ("NFS", r" ([A-Z][A-Z_]+)", lambda m: "NFS %s xid" % m[1], ""),
    ("RPCoRDMA", r"RDMA_(?:MSG|NOMSG|ERROR) XID 0x(\w+)", lambda m: "xid 0x0*%s\\b" % m[1], ""),
    ("iSCSI", r"(Login|Text|Logout) (?:Command|Response)(?: \((Success|Close session)\))?", lambda m: "iSER %s itt .*%s" % (m[1], m[2] if m[2] == "Success" else ""), ""),
    ("iSCSI", r"NOP (?:Out|In)", lambda m: "iSER NOP-Out", ""),
    ("iSCSI", r"SCSI: Data Out LUN: 0x\w+ \(.* Request Data\) ?", None, "the data of the command in the same message"),
    ("iSCSI", r"SCSI: Response LUN: 0x\w+ \((.+)\) \((.+)\)", lambda m: "(?i)iSER %s itt .*: %s" % (name(m[1]), m[2]), "the LUN stands in the line of the command, which has the same itt"),
    ("iSCSI", r"SCSI Response \((.+)\) LUN:0x\w+ ?", lambda m: ": " + m[1], "likewise"),
    ("iSCSI", r"SCSI Command: (0x\w+) LUN:0x(\w+) ?", lambda m: "iSER opcode %s .* lun %s" % (m[1], number(m[2])), ""),
    ("iSCSI", r"SCSI: (.+?) LUN: 0x(\w+) ", lambda m: "(?i)iSER %s itt .*(?: lun %s|: part)" % (name(m[1]), number(m[2])), "in several packets: the last one has all"),
    ("iSCSI", r"\(LBA: 0x(\w+), Len: (\d+)\)", lambda m: " lba %s blocks %s\\b|: part" % (number(m[1]), m[2]), "likewise"),
    ("iSCSI", r" ?(?:READCAPACITY16|Report Supported Opcodes)", lambda m: "READ CAPACITY|SUPPORTED", ""),
    ("iSCSI", r" (.+?)(?: Page)?\s*$", lambda m: r"page 0x\w\w \(%s" % m[1], ""),
    ("SMB2", r"((?:Negotiate Protocol|Session Setup|Session Logoff|Tree (?:Connect|Disconnect)|Create|Close|Read|Write|Flush|Ioctl|Find|GetInfo|SetInfo|Cancel|KeepAlive|Notify|Lock)) (?:Request|Response)",
     lambda m: "(?i)SMB Direct %s mid" % SMB2_NAMES.get(m[1], name(m[1])), ""),
    ("SMB2", r", Error: (\w+)", lambda m: ": " + m[1], ""),
    ("SMB2", r"(, NTLMSSP_\w+|, User: \S+| Tree: \S+| FSCTL_\w+| \w+_INFO/\w+| Pattern: [^\s;]+|,? File: [^\s;]*| SMB2_FIND_\w+|[, ]*(?:Len|Off):\d+)+", None, "of SMB2 the bodies of READ and WRITE are decoded, nothing else"),
    ("SMB2", r";Find Request SMB2_FIND_\w+ Pattern: \S+;Create Request File: .*", None, "over iWARP: a message is joined with parts of the one before it"),
    ("SMB2", r" ?;([A-Z]\w+) (?:Request|Response)", lambda m: "(?i); " + SMB2_NAMES.get(m[1], m[1]), ""),
    ("SMBDirect", r"Negotiate(?:Request|Response)", lambda m: "SMBD Negotiate version", ""),
    ("SMBDirect", r"DataMessage", lambda m: "SMB Direct ", ""),
    ("SMCv2", r"\[SMC-Dv2-(\w+)\]", lambda m: "SMC-D CLC %s, version 2" % m[1], ""),
    ("SMCv2", r"\[(?:SMC-Dv2/)?SMC-Rv2-(\w+)\]", lambda m: "SMC-R CLC %s, version 2" % m[1], ""),
    ("SMCv2", r",.*", None, "the line is that of the message, not of TCP"),
    ("SMC-R", r"\[SMC-R\] CDC Message", lambda m: "SMC-R (?:CDC|Data) token", ""),
    ("MPA", r"(\d+) > (\d+) MPA (Request|Reply) Frame", lambda m: "MPA " + m[3].lower(), "the ports are tcp.port, and the line of its TCP segment"),
    ("DDP/RDMA", r"\[TCP (?:Out-Of-Order|(?:Fast |Spurious )?Retransmission|Previous segment not captured)\] ", None, "what TCP did is told by explain and flows"),
    ("DDP/RDMA", r"(\d+) > (\d+) ", None, "as with MPA"),
    ("DDP/RDMA", r"(Send|Write|Read Request|Read Response|Terminate)( with SE| with Invalidate)? \[(last|more) DDP segments?\]",
     lambda m: "(?i)%s%s" % (m[1], (m[2] or "").replace(" with SE", " with Solicited Event")), "more segments: the line has no `last`"),
    ("LNET", r"LNET IBLND_MSG_(CONNREQ|CONNACK)", lambda m: "CM RE[QP]", ""),
    ("LNET", r"LNET IBLND_MSG_(NOOP|PUT_NAK)", lambda m: "LNet " + m[1], ""),
    ("LNET", r"LNET IBLND_MSG_(PUT|GET)_(?:ACK|DONE)", lambda m: "LNet %s cookie" % m[1], ""),
    ("LNET", r"LNET_(PUT|GET), Unknown ?\(\d+\)", lambda m: "LNet (?:%s cookie|IMMEDIATE)" % m[1], ""),
)
PROTOCOLS = re.compile("NVMe.*|NFS|RPCoRDMA|iSCSI|SMB2|SMBDirect|SMCv2|SMC-R|MPA|DDP/RDMA|LNET")


class Lines:
    """What of tshark's lines is not in ours."""

    def __init__(self):
        self.lacking = collections.OrderedDict()  # protocol and part: [count, file, frame, ours, theirs]
        self.explained = collections.Counter()
        self.packets = 0

    def _part(self, protocol, text):
        for i, (protocols, pattern, ours, _) in enumerate(PARTS):
            m = re.match(pattern, text) if re.fullmatch(protocols, protocol) else None
            if m:
                return i, m, ours
        return None

    def packet(self, path, frame, protocol, ours, theirs):
        if not PROTOCOLS.fullmatch(protocol) or not theirs:
            return
        self.packets += 1
        text = theirs
        while text.strip():
            found = self._part(protocol, text)
            wanted = found and found[2] and found[2](found[1])
            if not found or (wanted and not re.search(wanted, ours)):
                self.lacking.setdefault((protocol, wanted or text), [0, path, frame, ours, theirs])[0] += 1
                return
            self.explained[found[0]] += wanted is None
            text = text[found[1].end():]

    def report(self, whole_set):
        for (protocol, part), (count, path, frame, ours, theirs) in list(self.lacking.items())[:20]:
            print("LINE of %s, %d times; first %s frame %s: %r is not in ours\n    ours   %s\n    tshark %s" % (protocol, count, path, frame, part, ours, theirs))
        for i, (protocols, pattern, ours, reason) in enumerate(PARTS):
            if ours is None and self.explained[i]:
                print("lines of %s: %r, %d times not in ours: %s" % (protocols, pattern, self.explained[i], reason))
            elif ours is None and whole_set:
                print("UNUSED, no line has it: %s: %s" % (protocols, pattern))
        print("%d lines of upper protocols compared, %d without a part of tshark's" % (self.packets, sum(c[0] for c in self.lacking.values())))
