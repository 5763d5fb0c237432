"""What packets say about connections, computed from tshark's fields alone. Knows nothing of the project's own code.

A stream is what one address sends to one queue pair of another at one interface. PSNs are unwrapped to numbers that grow."""
import functools
import ipaddress
import os
import struct
import subprocess

import shared
from tally import sample

FIELDS = ["frame.number", "frame.time_epoch", "frame.interface_id", "frame.len", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "ip.id",
          "ip.dsfield.ecn", "ipv6.tclass.ecn", "udp.length", "infiniband.grh.sgid", "infiniband.grh.dgid", "infiniband.grh.paylen",
          "infiniband.lrh.slid", "infiniband.lrh.dlid", "infiniband.lrh.pktlen", "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn",
          "infiniband.bth.padcnt", "infiniband.aeth.syndrome", "infiniband.reth.dmalen", "infiniband.reth.va", "infiniband.reth.r_key", "infiniband.immdt", "infiniband.ieth",
          "infiniband.deth.srcqp",
          "infiniband.invariant.crc", "infiniband.mad.transactionid", "infiniband.cm.req.localqpn", "infiniband.cm.rep.localqpn", "infiniband.cm.req.prim_localacktout",
          "erf.flags.cap", "icmp.type", "icmpv6.type"]
UNDEFINED = {0x18, 0x19, 0x1a, 0x1b, 0x1e, 0x1f}  # operations
MANUFACTURERS = 6  # services from here on
# Bytes of the extended headers, by the lower five bits of a connected opcode.
EXTENDED = {3: 4, 5: 4, 6: 16, 9: 4, 10: 16, 11: 20, 12: 16, 13: 4, 15: 4, 16: 4, 17: 4, 18: 12, 19: 28, 20: 28, 22: 4, 23: 4}
FIRST, MIDDLE, LAST, ONLY = {0, 6}, {1, 7}, {2, 3, 8, 9, 22}, {4, 5, 10, 11, 23}
READ, ATOMICS, RESPONSES, ACK = 12, {19, 20}, set(range(13, 19)), 17
SEQUENCE_NAK, RNR = 0x60, 1
# Credit counts of an ACK's syndrome, 0 to 30; 31 is "not valid".
CREDITS = [0, 1] + [c for k in range(1, 15) for c in (1 << k, 3 << k - 1)] + [1 << 15]
SHOWN = "infiniband.bth and (infiniband.lrh or (not icmp and not icmpv6))"  # a display filter: the packets that are compared


class Packet:
    def __init__(self, f):
        one = {k: v.split(",") for k, v in f.items()}

        def number(name):
            return int(one[name][-1], 0) if f[name] else None

        self.frame, self.len = int(f["frame.number"]), int(f["frame.len"])
        s, ns = f["frame.time_epoch"].split(".")
        self.ts = int(s) * 10**9 + int((ns + "000000000")[:9])
        # The ports of a card that writes ERF are one tap: each may see one direction.
        self.iface = 0 if f["erf.flags.cap"] else number("frame.interface_id") or 0
        self.src, self.dst, length = self.addresses(f, one, number)
        self.opcode, self.dqpn, self.psn = number("infiniband.bth.opcode"), number("infiniband.bth.destqp"), number("infiniband.bth.psn")
        self.syndrome, self.dmalen, self.sqpn = number("infiniband.aeth.syndrome"), number("infiniband.reth.dmalen"), number("infiniband.deth.srcqp")
        self.va, self.rkey = number("infiniband.reth.va"), number("infiniband.reth.r_key")
        self.imm, self.invalidated = (int(one[name][-1].replace(":", ""), 16) if f[name] else None for name in ("infiniband.immdt", "infiniband.ieth"))
        self.service, self.op = self.opcode >> 5, self.opcode & 31
        extended = 8 + (4 if self.op == 5 else 0) if self.service == 3 else 16 if self.opcode == 0x81 else EXTENDED.get(self.op, 0)
        self.payload = length - 12 - extended - 4 - (number("infiniband.bth.padcnt") or 0)
        self.same = (self.psn, self.opcode, f["ip.id"], f["infiniband.invariant.crc"])
        self.has_id = f["ip.id"] != "" and number("ip.id") != 0
        self.ce = 3 in (number("ip.dsfield.ecn"), number("ipv6.tclass.ecn"))
        self.cnp = self.opcode == 0x81
        self.tid, self.req_qpn, self.rep_qpn = f["infiniband.mad.transactionid"], number("infiniband.cm.req.localqpn"), number("infiniband.cm.rep.localqpn")
        self.timeout = number("infiniband.cm.req.prim_localacktout")
        self.request = not self.cnp and self.op not in RESPONSES

    @staticmethod
    def addresses(f, one, number):
        """Source, destination, and the bytes from the BTH to the ICRC."""
        def gid(name):
            a = ipaddress.ip_address(one[name][-1])
            return str(a.ipv4_mapped or a)

        if f["infiniband.grh.sgid"]:
            return gid("infiniband.grh.sgid"), gid("infiniband.grh.dgid"), number("infiniband.grh.paylen")
        if not f["infiniband.lrh.slid"]:  # else the addresses are those of IP over InfiniBand
            v = "ip" if f["ip.src"] else "ipv6"
            return one[v + ".src"][-1], one[v + ".dst"][-1], number("udp.length") - 8
        return "lid %d" % number("infiniband.lrh.slid"), "lid %d" % number("infiniband.lrh.dlid"), number("infiniband.lrh.pktlen") * 4 - 8

    key = property(lambda p: (p.iface, p.src, p.dst, p.dqpn) + ((p.sqpn,) if p.service == 3 else ()))


# What the captures have too little of: other encapsulations, credits, many RNR NAKs and timeouts, all operations.
GENERATED = {
    "rocev1": "mixed -n 60 -s 5000 --vary --loss 2% --rocev1 --imm", "ib": "mixed -n 60 -s 5000 --vary --loss 2% --ib", "grh": "write -n 60 -s 9000 --loss 2% --ib --grh",
    "erf": "read -n 40 -s 9000 --loss 2% --ib --erf", "ipv6": "mixed -n 60 -s 3000 --vary --loss 3% --ipv6 -b", "uc": "send -c UC -n 60 -s 5000 --ib", "ud": "send -c UD -n 60 --rocev1",
    "credits": "send -n 200 -s 3000 -r 3 --credits --loss 1%", "rnr": "send -n 60 -s 3000 -r 1 --net rate=1G", "coalesced": "write -n 200 -s 6000 --ack coalesce=4 --loss 1% -q 2",
    "timeouts": "write -n 30 -s 2000 --loss 20% -u 10", "atomics": "cas -n 60 --loss 5% -u 10", "wrap": "write -n 60 -s 9000 --psn 16777100 --loss 2%",
    "overtaken": "mixed -n 60 -t 32 -m 512 -s 1500 -b --net reorder=3%/2 --net loss=1% -u 10 --window 6 --delay 200ns", "passed": "cas -n 60 -t 16 --net rsp:burst=2%/40% -u 8 --window 8",
    "doubled": "read -n 40 -s 9000 --net dup=5%", "reordered": "write -n 60 -s 9000 --net reorder=3%/4",
    "ud-mixed-up": "send -c UD -n 100 --net loss=0.02 --net reorder=20%/5 --net dup=10% -w responder:PATH",
    "ud-overtaken": "send -c UD -n 60 -q 2 -b --net reorder=10%/3 --net dup=10% -w responder:PATH",
    "mixed-up": "mixed -c UC -n 60 -s 8K --vary --imm --net reorder=20%/12 --net loss=3% -w responder:PATH",
}


def generated():
    """These captures, written once."""
    def write(folder):
        rdmagen = os.environ.get("BUILD", "build") + "/rdmagen"
        for name, argv in GENERATED.items():
            argv = argv if "PATH" in argv else argv + " -w PATH"
            subprocess.run([rdmagen, "sim"] + argv.replace("PATH", "%s/%s.pcap" % (folder, name)).split() + ["--seed", "7"], check=True, stdout=subprocess.DEVNULL)

    folder = shared.once("generated", write)
    return ["%s/%s.pcap" % (folder, name) for name in GENERATED]


def found(*folders):
    return [os.path.join(d, f) for d in folders for f in sorted(os.listdir(d)) if f.endswith((".pcap", ".pcapng"))]


def additional():
    return [d for d in os.environ.get("RDMATRACE_CAPTURES", "").split(":") if d]


def real():
    """The captures of captures/, and those of soft-RoCE in RDMATRACE_CAPTURES, whose names tell what went wrong: {file name: path}."""
    return {os.path.basename(p): p for p in found("captures", *[d for d in additional() if "softroce" in os.path.abspath(d)])}


@functools.cache
def captures():
    """Names of the capture files to test with: all of captures/, and a sample of what RDMATRACE_CAPTURES has besides."""
    more = found(*additional())
    return found("captures") + (sample("captures of RDMATRACE_CAPTURES", more, 60) if more else [])


def tshark(data):
    """The fields of each frame of a capture, as text. Link type 247 (InfiniBand), which tshark 4.0 does not know, is shown to it as a type of the
    user's."""
    if link_type(data) == 247:
        data = data[:20] + b"\x93" + data[21:]
    argv = ["tshark", "-n", "-o", 'uat:user_dlts:"User 0 (DLT=147)","infiniband","0","","0",""', "-r", "-", "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a"]
    argv += [word for f in FIELDS for word in ("-e", f)]
    return subprocess.run(argv, input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout.decode().splitlines()


def link_type(data):
    """That of a pcap file with times of either kind; else None."""
    return data[20] if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else None


def records(data):
    """The records of a pcap file as one with times in nanoseconds has them."""
    at, found, scale = 24, [], 1000 if data[0] == 0xd4 else 1
    while at + 16 <= len(data):
        sec, part, caught, length = struct.unpack_from("<IIII", data, at)
        found.append(struct.pack("<IIII", sec, part * scale, caught, length) + data[at + 16:at + 16 + caught])
        at += 16 + caught
    return found


def keep(data, lines):
    """For all tests: what tshark says of this capture."""
    def write(folder):
        with open(folder + "/fields", "w", encoding="utf-8") as f:
            f.write("".join(line + "\n" for line in lines()))
    return shared.once("tshark/" + shared.digest(data), write) + "/fields"


def dissect(paths):
    """Have tshark, which takes long to start, read many captures at once: those of a link type as one file."""
    together = {}
    for data in sorted({open(path, "rb").read() for path in paths}):
        if link_type(data) not in (None, 197):  # the interfaces of ERF are counted in a file
            together.setdefault(link_type(data), []).append(data)

    def read_all(_):
        for link, files in together.items():
            parts = [records(data) for data in files]
            lines = tshark(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 262144, link) + b"".join(r for part in parts for r in part))
            if len(lines) != sum(map(len, parts)):
                continue  # each by itself, when it is asked for
            for data, part in zip(files, parts):
                mine, lines = lines[:len(part)], lines[len(part):]
                keep(data, lambda mine=mine: ["%d\t%s" % (n, line.split("\t", 1)[1]) for n, line in enumerate(mine, 1)])

    shared.once("dissected/" + shared.digest(*sum(together.values(), [])), read_all)


def fields(path):
    """What tshark says of each frame."""
    with open(path, "rb") as f:
        data = f.read()
    with open(keep(data, lambda: tshark(data)), encoding="utf-8") as f:
        return [dict(zip(FIELDS, line.rstrip("\n").split("\t"))) for line in f]


def is_shown(f):
    """What SHOWN says."""
    return f["infiniband.bth.opcode"] and (f["infiniband.lrh.slid"] or not (f["icmp.type"] or f["icmpv6.type"]))


def read(path):
    """RDMA packets in the order of time."""
    packets = [Packet(f) for f in fields(path) if is_shown(f)]
    packets = [p for p in packets if p.op not in UNDEFINED and p.service < MANUFACTURERS]
    return sorted(packets, key=lambda p: p.ts)  # stable: equal times keep the order of the file


def first_time(path):
    """Of the earliest frame of all, in nanoseconds."""
    return min([int(s) * 10**9 + int((ns + "000000000")[:9]) for s, ns in (f["frame.time_epoch"].split(".") for f in fields(path) if "." in f["frame.time_epoch"])] or [0])


def plain(op):
    """The same for all packets of a message."""
    return 0 if op < 6 or op in (22, 23) else 6 if op < 12 else op


class Message:
    """A work request: its packets' PSNs are first to last."""

    def __init__(self, p, first, last):
        self.first, self.last, self.op, self.start, self.first_frame, self.bytes = first, last, p.op, p.ts, p.frame, 0
        self.last_frame = self.last_ts = self.done = self.done_frame = None
        self.begun, self.ended, self.got, self.again, self.error, self.rnr = p.op in FIRST | ONLY or p.op >= READ, False, 0, 0, None, 0
        self.va = self.rkey = self.imm = self.invalidated = None
        self.announced, self.answered = False, p.op == READ or p.op in ATOMICS
        self.taken = 0       # responses that came in order, when all before was complete: only those its requester takes
        self.early = False   # answered before an earlier one was: the requester drops that
        self.held = None     # what would have completed it, had the answer to one before it not been missing: time and frame
        self.missed = False  # asked for again although its answer had been passed over
        self.asked = self.last_ts = 0  # responses seen, and the time, when it was sent last
        self.seen = []       # its packets: number, packet, whether it was sent again

    whole = property(lambda m: bool(m.done or m.held))  # its own answer or acknowledgement was seen


class Going:
    """Whether a requester that goes back was told to, by the rules of the transport: a NAK, or an answer that was passed over."""

    def __init__(self):
        self.cursor = None   # behind the request packet before
        self.naks, self.rnr = set(), None  # sequence NAKs that no request has answered yet; an RNR NAK (PSN, time), likewise
        self.proved = self.proved_at = None  # all before this PSN arrived; when that was shown
        self.run = 0         # timeouts since
        self.unsent = set()  # sequence NAKs whose PSN was not seen since
        self.late = (None, 0)     # behind the READ or atomic whose answer was complete only after a later response; the number of that
        self.passed_over = False  # the latest ACK names a READ or atomic that has no answer
        self.back = False    # something is being sent again, up to where it was
        self.last_nak = (None, 0)  # the latest sequence NAK: PSN and time
        self.told = []       # all sequence and RNR NAKs: PSN and time
        self.timeout, self.heard = 0, None  # code of the local ACK timeout, 0: not known; when the latest response came
        self.responses = self.latest = self.proving = self.went_back = self.back_at = 0  # responses so far, up to which the latest goes; how many there were when as much was shown as ever, and when it went back last, and at what time

    def let_pass(self, ts):
        """It has acted on nothing for so long that it was the timeout that ran out."""
        return self.heard is not None and ts - self.heard >= (2048 << self.timeout if self.timeout else 40 * 10**6)

    def no_timer_since(self, then, ts):
        """Half the time of its timer, or of the shortest that there is."""
        return ts - then < 2048 << (self.timeout or 1)

    def reason(self, psn, message, ts):
        answered = not message or not message.answered or message.whole
        first = psn == self.proved  # the first that is not acknowledged: what was asked for may have been acknowledged since
        if self.rnr and (psn <= self.rnr[0] or first):
            return "rnr"
        if first and any(psn > n for n in self.naks):
            return "nak"
        n, then = self.last_nak
        if n in self.unsent and n < psn < n + 1024 and (self.proved is None or n >= self.proved) and self.no_timer_since(then, ts) and not self.let_pass(ts):
            return "nak"  # it has overtaken what the NAK asked for
        if first and self.passed_over and self.responses > self.went_back and not self.let_pass(ts):
            return "implied"
        late = psn == self.late[0] and self.late[1] > self.went_back
        if psn in self.naks or (not answered and any(psn < n for n in self.unsent)):
            return "nak"
        if not answered and self.proved is not None and not self.let_pass(ts) and ((self.proving > message.asked and psn < self.proved) or (self.responses > message.asked and psn < self.latest)):
            return "implied"
        if message and message.early and psn < self.latest and not self.let_pass(ts):
            return "implied"  # what was dropped has not come again, but an answer behind it
        return "implied" if late and not self.let_pass(ts) else "silence"


class Stream:
    """Packets of one direction, and what became of the requests in it."""

    def __init__(self, p):
        self.packets = self.bytes = self.payload = self.requests = self.responses = self.ce = self.cnps = 0
        self.again = self.again_bytes = self.duplicates = self.seq_naks = self.rnr_naks = self.errors = self.acks = 0
        self.rnr_ns = self.timeout_ns = self.timeouts = self.implied = self.most_timeouts = self.invalid = self.access = 0
        self.silences, self.credits, self.cnp_times, self.ack_latencies, self.acked, self.pmtu_seen = [], [], [], [], 0, None
        self.late = self.missing = self.low = 0  # of datagrams
        self.service, self.sent, self.latest, self.messages = p.service, {}, {}, []
        self.first_frame, self.last_frame, self.next, self.pmtu, self.going, self.events = p.frame, p.frame, None, None, Going(), []

    def count(self, p, name, n=1):
        """Add to a counter, and remember when."""
        setattr(self, name, getattr(self, name) + n)
        self.events.append((p.ts, name, n))

    def datagram(self, p):
        """What its PSN tells: a sender numbers its datagrams, whoever they are for. True: a copy of one, made on the way."""
        psn = self.unwrap(p.psn)
        before = self.latest.get(psn)
        if before and before.same == p.same and (p.has_id or p.ts - before.ts < 10**6):
            self.duplicates += 1
            return True
        oldest = max(self.next - 256, self.low - (256 if p.ts - self.began < 4 * 10**6 else 0)) if self.next is not None else 0  # of those that may be late
        if self.next is None or before or psn < oldest:  # the queue pair begins, or begins anew
            self.latest, self.low, self.next, self.began = {}, psn, psn, p.ts
        if psn < self.low:
            self.missing, self.low = self.missing + self.low - psn, psn
        self.latest[psn] = p
        if psn >= self.next:
            self.missing, self.next = self.missing + psn - self.next, psn + 1
        else:
            self.late += 1
        return False

    def unwrap(self, psn):
        """The number nearest to the next one expected."""
        if self.next is None:
            return psn
        d = (psn - self.next) & 0xffffff
        return self.next + (d - (1 << 24) if d & 0x800000 else d)

    def span(self, p):
        return max(1, -(-p.dmalen // self.pmtu)) if p.op == READ and self.pmtu else 1

    def find(self, psn):
        for m in reversed(self.messages):
            if m.first <= psn <= m.last:
                return m
        return None

    def is_copy(self, p, psn, before):
        """The same packet twice, and not sent twice: what has an identification does not repeat it; what has none comes at once, and
        without a NAK in between that asks for it, in words or by passing over it; and it does not go on with what is sent again, of which
        packets may have been lost before the tap."""
        if not before or before.same != p.same:
            return False
        g, m = self.going, self.find(psn)
        asked = any(n <= psn and ts >= before.ts for n, ts in g.told) or (g.back and psn >= g.cursor)
        if m and m.answered and not m.whole and g.proved is not None and g.proved > psn and g.proved_at >= before.ts:
            asked = True
        return p.has_id or (p.ts - before.ts < 10**6 and not asked)

    def go_back(self, p, psn, old):
        """A request packet that was seen before comes again, behind what was sent last."""
        g, why = self.going, self.going.reason(psn, old, p.ts)
        if why == "silence" and psn in self.latest and self.latest[psn].ts < g.back_at and g.no_timer_since(g.back_at, p.ts):
            return  # it was overtaken: it has not come yet since the sender went back, and no timer has run out since
        self.implied += why == "implied"
        g.went_back, g.back_at = g.responses, p.ts
        if why != "silence":
            g.run = 0
            return
        self.count(p, "timeouts")
        g.run += 1
        since = self.latest[psn].ts if psn in self.latest else self.last_request
        silence = p.ts - max(since, g.proved_at or 0)
        if silence > 0:
            self.timeout_ns += silence
            self.silences.append(silence)

    def cut(self, m, psn, starts):
        """A packet begins a message, or ends `m`, amid what was taken for packets of `m`: those behind it are of a later message."""
        rest, last = [x for x in m.seen if x[0] > psn], m.last
        m.last = psn - starts
        if not rest:
            return
        m.seen = [x for x in m.seen if x[0] < psn]
        one = min(rest, key=lambda x: (x[0], x[1].frame))
        b = Message(one[1], one[0], last)
        b.begun, b.seen, b.again, b.bytes = False, rest, sum(again is True for _, _, again in rest), sum(p.payload for _, p, again in rest if again is None)
        m.again, m.bytes = m.again - b.again, m.bytes - (0 if m.announced else b.bytes)
        for x in (m, b):
            x.first_frame = min((p.frame for _, p, _ in x.seen), default=x.first_frame)
            x.last_frame, x.last_ts = max(((p.frame, p.ts) for _, p, _ in x.seen), default=(x.last_frame, x.last_ts))
        if m.ended:
            b.op, b.imm, b.invalidated, b.ended, m.imm, m.invalidated, m.ended = m.op, m.imm, m.invalidated, True, None, None, False
        b.done, b.done_frame, b.held, b.error = m.done, m.done_frame, m.held, m.error
        m.op = plain(m.op)
        self.messages.insert(self.messages.index(m) + 1, b)

    def message_of(self, p, psn):
        """The message of a packet that was not seen before: that of the packets before it, unless it begins one, or their end was seen, or it
        is too far for their length, or of another kind. What comes before a message of which only the rest was seen so far joins it."""
        starts = p.op in FIRST | ONLY or p.op >= READ and p.op not in LAST
        before = [m for m in self.messages if m.first <= psn]
        m = before[-1] if before else None
        if m and not m.answered and m.first < psn <= m.last and (starts or p.op in LAST):
            self.cut(m, psn, starts)
        behind = [m for m in self.messages if m.first > psn]
        if m and not starts and (not m.ended or psn <= m.last):
            beyond = m.begun and m.announced and self.pmtu and psn >= m.first + max(1, -(-m.bytes // self.pmtu))
            if psn <= m.last + 1 or not (beyond or plain(p.op) != plain(m.op)):
                m.last = psn if p.op in LAST else max(m.last, psn)
                return m
        if p.op in FIRST | MIDDLE and behind and not behind[0].begun and plain(p.op) == plain(behind[0].op):
            m = behind[0]
            m.first, m.start, m.begun = psn, p.ts, p.op in FIRST
            return m
        m = Message(p, psn, psn + self.span(p) - 1)
        self.messages = before + [m] + behind
        return m

    def request(self, p):
        psn = self.unwrap(p.psn)
        self.requests, self.service = self.requests + 1, p.service
        if p.op in FIRST | MIDDLE:
            self.pmtu_seen = max(self.pmtu_seen or 0, p.payload)
        before, old, g = self.latest.get(psn), self.find(psn), self.going
        copy = self.is_copy(p, psn, before)
        if g.rnr and g.rnr[0] == psn and not copy:
            self.rnr_ns += p.ts - g.rnr[1]
        again = not copy and (before or (old and old.op == READ))
        if again and psn < g.cursor:
            self.go_back(p, psn, old)
        self.most_timeouts = max(self.most_timeouts, g.run)
        g.unsent.discard(psn)
        if again and psn < g.cursor:
            g.naks.discard(psn)
        if g.rnr and g.rnr[0] == psn:
            g.rnr = None
        self.last_request = p.ts
        if not copy or p.ts - before.ts >= 10**6:
            self.latest[psn] = p  # a copy that comes at once left when the first one did
        if copy:
            self.duplicates += 1
            if old:
                old.last_frame, old.last_ts = p.frame, p.ts
                old.seen.append((psn, p, False))
            return
        g.back = (g.back or (bool(again) and psn < g.cursor)) and self.next is not None and psn + self.span(p) < self.next
        g.cursor = psn + self.span(p)
        if again:
            self.count(p, "again")
            self.again_bytes += p.payload
            if old:
                for m in self.messages:  # nor was anything behind it complete
                    if m.first >= old.first and m.done and not m.error:
                        m.held, m.done, m.done_frame = (m.done, m.done_frame), None, None
                        m.taken = m.taken if m is old else 0
                old.missed |= old.answered and g.proved is not None and g.proved > old.last
                old.again, old.done, old.error, old.last_frame, old.held, old.asked, old.last_ts = old.again + 1, None, None, p.frame, None, g.responses, p.ts
                old.got, old.taken = min(old.got, psn - old.first), min(old.taken, psn - old.first)
                old.seen.append((psn, p, True))
            return
        m = self.message_of(p, psn)
        m.seen.append((psn, p, None))
        if p.dmalen is not None and not m.announced:
            m.announced, m.bytes, m.va, m.rkey = True, p.dmalen, p.va, p.rkey
        elif not m.announced:
            m.bytes += 8 if p.op in ATOMICS else p.payload
        m.ended |= p.op in LAST | ONLY or m.answered
        m.op = p.op if p.op in (3, 5, 9, 11, 22, 23) else m.op
        m.asked, m.last_ts = g.responses, p.ts
        m.last_frame, m.imm, m.invalidated = p.frame, m.imm or p.imm, m.invalidated or p.invalidated
        self.next = max(self.next or 0, psn + self.span(p))

    def prove(self, p, before, plain=False):
        """All PSNs below `before` arrived."""
        if self.next is None or before > self.next:
            return  # it names a PSN that was never sent
        g = self.going
        first = g.proved if g.proved is not None else min(m.first for m in self.messages)
        if before > first or g.proved is None:
            self.acked += max(0, before - first) if plain else 0
            g.proved, g.proved_at, g.run, g.proving = before, p.ts, 0, g.responses
            g.passed_over = g.passed_over and plain
        early = False
        for m in self.messages:
            if m.last >= before:
                break
            if not m.done and m.answered:
                early = True
            elif not m.done and m.ended:
                self.complete(m, p, early)

    def complete(self, m, p, early):
        """A requester drops what comes while it misses an answer before, and asks again; unless it was only missed here."""
        if not early:
            m.done, m.done_frame = p.ts, p.frame
        else:
            m.held = m.held or (p.ts, p.frame)

    def settle(self):
        """At the end: what was held back is complete, unless the one before it was not."""
        blocked = None
        for m in self.messages:
            if not m.done and m.held and not (blocked and (m.again or blocked.last_ts > m.held[0])):
                m.done, m.done_frame = m.held
            elif not m.done and not m.held:
                blocked = m if m.missed else None

    def response(self, p):
        psn, g = self.unwrap(p.psn), self.going
        g.responses, g.heard, g.latest = g.responses + 1, p.ts, psn + (p.op != ACK or p.syndrome >> 5 == 0)
        if g.latest == g.proved:
            g.proving = g.responses
        if p.op in (13, 14):
            self.pmtu_seen = max(self.pmtu_seen or 0, p.payload)
        if p.op == ACK and p.syndrome >> 5 == 0:
            self.acks += 1
            if p.syndrome != 31:
                self.credits.append(CREDITS[p.syndrome])
            if psn in self.latest and p.ts >= self.latest[psn].ts:
                self.ack_latencies.append(p.ts - self.latest[psn].ts)
            named = self.find(psn)
            self.going.passed_over = bool(named and named.answered and not named.whole)
            self.prove(p, psn + 1, True)
            return
        m = self.find(psn)
        self.prove(p, psn + (p.op != ACK))
        if p.op != ACK:
            if m and m.answered:
                m.got += psn == m.first + m.got
                if psn + 1 < g.proved and ((m.got > m.last - m.first and not m.whole) or (m.early and psn == m.last)):
                    g.late, m.early = (m.last + 1, g.responses), False
                    for b in self.messages:
                        b.early |= b.first > m.first and b.answered and b.whole
                due = all(b.done for b in self.messages if b.first < m.first)
                m.taken += due and psn == m.first + m.taken
                if (m.taken if due else m.got) > m.last - m.first and not m.done:
                    self.complete(m, p, not due)
            return
        if p.syndrome >> 5 == RNR:
            self.count(p, "rnr_naks")
            self.going.rnr = (psn, p.ts)
            self.going.told.append(self.going.rnr)
            if m:
                m.rnr += 1
        elif p.syndrome == SEQUENCE_NAK:
            self.count(p, "seq_naks")
            self.going.naks.add(psn)
            self.going.unsent.add(psn)
            self.going.last_nak = (psn, p.ts)
            self.going.told.append((psn, p.ts))
        else:
            self.errors, self.invalid, self.access = self.errors + 1, self.invalid + (p.syndrome == 0x61), self.access + (p.syndrome == 0x62)
            if m and not m.error:
                m.error = {0x61: "REM_INV_REQ_ERR", 0x62: "REM_ACCESS_ERR", 0x63: "REM_OP_ERR"}.get(p.syndrome)
                m.done, m.done_frame = p.ts, p.frame


def find_pmtu(packets):
    """Path MTU by stream: the payload of First and Middle packets, which those of the other direction share between the same addresses."""
    found = {}
    for p in packets:
        if p.service != 3 and p.op in FIRST | MIDDLE | {13, 14}:
            found.setdefault((p.iface, frozenset((p.src, p.dst))), p.payload)
    return found


def pair(streams, packets):
    """The stream of requests that each stream of responses answers: as REQ and REP say, else the one where its PSNs fit best."""
    peers, asked_by, timeouts = {}, {}, {}
    for p in packets:
        if p.req_qpn is not None:
            asked_by[p.iface, p.src, p.dst, p.tid] = p.req_qpn
            timeouts[p.iface, p.src, p.dst, p.tid] = p.timeout
        if p.rep_qpn is not None and (p.iface, p.dst, p.src, p.tid) in asked_by:
            a, b = (p.iface, p.dst, p.src, p.rep_qpn), (p.iface, p.src, p.dst, asked_by[p.iface, p.dst, p.src, p.tid])
            peers[a], peers[b] = b, a
            for key in (a, b):  # the REQ asks it of the other end, and its sender uses as a rule the same
                if key in streams:
                    streams[key].going.timeout = timeouts[p.iface, p.dst, p.src, p.tid]
    peers = {a: b for a, b in peers.items() if b in streams}
    for key, s in streams.items():
        psns = {p.psn for p in packets if p.key == key and not p.request and not p.cnp}
        if not psns or s.service == 3 or key in peers:
            continue
        best = []
        for other in streams:
            if len(other) == 4 and other[0] == key[0] and other[1:3] == (key[2], key[1]):
                asked = set()
                for p in packets:
                    if p.key == other and p.request:
                        asked |= {(p.psn + i) & 0xffffff for i in range(streams[other].span(p))}
                best.append((len(psns & asked), other))
        if best and max(best)[0]:
            peers[key] = max(best)[1]
    return peers


def measure(path, bad_frames=()):
    """Streams by key; packets whose frame is in `bad_frames` (a wrong ICRC) are dropped by their receivers."""
    packets = [p for p in read(path) if p.frame not in bad_frames]
    pmtu, streams = find_pmtu(packets), {}
    for p in packets:
        if p.key not in streams:
            streams[p.key] = Stream(p)
            streams[p.key].pmtu = pmtu.get((p.iface, frozenset((p.src, p.dst))))
    peers = pair(streams, packets)
    for p in packets:
        s = streams[p.key]
        for name, n in (("packets", 1), ("bytes", p.len), ("payload", 0 if p.cnp else p.payload), ("ce", int(p.ce)), ("cnps", int(p.cnp))):
            s.count(p, name, n)
        s.last_frame = p.frame
        if p.cnp:
            s.cnp_times.append(p.ts)
            continue
        if p.request and p.service == 3:
            s.requests += 1
            if s.datagram(p):
                continue
            m = Message(p, 0, 0)
            m.bytes, m.last_frame, m.ended, m.imm = p.payload, p.frame, True, p.imm
            s.messages.append(m)
        elif p.request:
            s.request(p)
        else:
            s.responses += 1
            if p.key in peers and streams[peers[p.key]].packets:
                streams[peers[p.key]].response(p)
    for s in streams.values():
        s.settle()
    return streams
