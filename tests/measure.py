"""What packets say about connections, computed from tshark's fields alone. Knows nothing of the project's own code.

A stream is what one address sends to one queue pair of another at one interface. PSNs are unwrapped to numbers that grow."""
import os
import subprocess

FIELDS = ["frame.number", "frame.time_epoch", "frame.interface_id", "frame.len", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "ip.id",
          "ip.dsfield.ecn", "ipv6.tclass.ecn", "udp.length", "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn",
          "infiniband.bth.padcnt", "infiniband.aeth.syndrome", "infiniband.reth.dmalen", "infiniband.deth.srcqp",
          "infiniband.invariant.crc", "infiniband.mad.transactionid", "infiniband.cm.req.localqpn", "infiniband.cm.rep.localqpn"]
UNDEFINED = {0x18, 0x19, 0x1a, 0x1b, 0x1e, 0x1f}  # operations
# Bytes of the extended headers, by the lower five bits of a connected opcode.
EXTENDED = {3: 4, 5: 4, 6: 16, 9: 4, 10: 16, 11: 20, 12: 16, 13: 4, 15: 4, 16: 4, 17: 4, 18: 12, 19: 28, 20: 28, 22: 4, 23: 4}
FIRST, MIDDLE, LAST, ONLY = {0, 6}, {1, 7}, {2, 3, 8, 9, 22}, {4, 5, 10, 11, 23}
READ, ATOMICS, RESPONSES, ACK = 12, {19, 20}, set(range(13, 19)), 17
SEQUENCE_NAK, RNR = 0x60, 1


class Packet:
    def __init__(self, f):
        one = {k: v.split(",") for k, v in f.items()}

        def number(name):
            return int(one[name][-1], 0) if f[name] else None

        self.frame, self.len = int(f["frame.number"]), int(f["frame.len"])
        s, ns = f["frame.time_epoch"].split(".")
        self.ts = int(s) * 10**9 + int((ns + "000000000")[:9])
        self.iface = number("frame.interface_id") or 0
        self.src, self.dst = ((one["ip.src"][-1], one["ip.dst"][-1]) if f["ip.src"] else (one["ipv6.src"][-1], one["ipv6.dst"][-1]))
        self.opcode, self.dqpn, self.psn = number("infiniband.bth.opcode"), number("infiniband.bth.destqp"), number("infiniband.bth.psn")
        self.syndrome, self.dmalen, self.sqpn = number("infiniband.aeth.syndrome"), number("infiniband.reth.dmalen"), number("infiniband.deth.srcqp")
        self.service, self.op = self.opcode >> 5, self.opcode & 31
        extended = 8 + (4 if self.op == 5 else 0) if self.service == 3 else 16 if self.opcode == 0x81 else EXTENDED.get(self.op, 0)
        self.payload = number("udp.length") - 8 - 12 - extended - 4 - (number("infiniband.bth.padcnt") or 0)
        self.same = (self.psn, self.opcode, f["ip.id"], f["infiniband.invariant.crc"])
        self.has_id = f["ip.id"] != ""
        self.ce = (number("ip.dsfield.ecn") if f["ip.src"] else number("ipv6.tclass.ecn")) == 3
        self.cnp = self.opcode == 0x81
        self.tid, self.req_qpn, self.rep_qpn = f["infiniband.mad.transactionid"], number("infiniband.cm.req.localqpn"), number("infiniband.cm.rep.localqpn")
        self.request = not self.cnp and self.op not in RESPONSES

    key = property(lambda p: (p.iface, p.src, p.dst, p.dqpn) + ((p.sqpn,) if p.service == 3 else ()))


def captures():
    """Names of the capture files to test with."""
    found = []
    for d in ["captures"] + [d for d in os.environ.get("RDMATRACE_CAPTURES", "").split(":") if d]:
        found += sorted(os.path.join(d, f) for f in os.listdir(d) if f.endswith((".pcap", ".pcapng")))
    return found


def read(path):
    """RoCEv2 packets in the order of time."""
    argv = ["tshark", "-n", "-r", path, "-Y", "infiniband.bth && udp.dstport == 4791 && !icmp", "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a"]
    for f in FIELDS:
        argv += ["-e", f]
    out = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout.decode()
    packets = [Packet(dict(zip(FIELDS, line.split("\t")))) for line in out.splitlines() if line]
    packets = [p for p in packets if p.op not in UNDEFINED]
    return sorted(packets, key=lambda p: p.ts)  # stable: equal times keep the order of the file


class Message:
    """A work request: its packets' PSNs are first to last."""

    def __init__(self, p, first, last):
        self.first, self.last, self.op, self.start, self.first_frame, self.bytes = first, last, p.op, p.ts, p.frame, 0
        self.last_frame = self.last_ts = self.done = self.done_frame = None
        self.begun, self.ended, self.got, self.again, self.error, self.rnr = p.op in FIRST | ONLY or p.op >= READ, False, 0, 0, None, 0
        self.announced, self.answered = False, p.op == READ or p.op in ATOMICS


class Stream:
    """Packets of one direction, and what became of the requests in it."""

    def __init__(self, p):
        self.packets = self.bytes = self.payload = self.requests = self.responses = self.ce = self.cnps = 0
        self.again = self.again_bytes = self.duplicates = self.seq_naks = self.rnr_naks = self.errors = self.acks = 0
        self.service, self.sent, self.latest, self.messages, self.base, self.latencies = p.service, {}, {}, [], None, []
        self.first_frame, self.last_frame, self.next, self.pmtu = p.frame, p.frame, None, None

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

    def request(self, p):
        psn = self.unwrap(p.psn)
        self.requests, self.service = self.requests + 1, p.service
        before, old = self.latest.get(psn), self.find(psn)
        if before and before.same == p.same and (p.has_id or p.ts - before.ts < 10**6):
            self.duplicates += 1
            if old:
                old.last_frame = p.frame
            return
        self.latest[psn] = p
        if before or (old and old.op == READ):
            self.again += 1
            self.again_bytes += p.payload
            if old:
                old.again, old.done, old.error, old.last_frame = old.again + 1, None, None, p.frame
                old.got = min(old.got, psn - old.first)
            return
        if p.op in FIRST | ONLY or p.op >= READ and p.op not in LAST or not self.messages:
            m = Message(p, psn, psn + self.span(p) - 1)
            self.messages.append(m)
            self.messages.sort(key=lambda m: m.first)
        else:
            m = [m for m in self.messages if m.first <= psn] or self.messages
            m = m[-1]
            m.last = max(m.last, psn)
        if p.dmalen is not None and not m.announced:
            m.announced, m.bytes = True, p.dmalen
        elif not m.announced:
            m.bytes += 8 if p.op in ATOMICS else p.payload
        m.ended |= p.op in LAST | ONLY or m.answered
        m.op = p.op if p.op in (3, 5, 9, 11, 22, 23) else m.op
        m.last_frame = p.frame
        self.next = max(self.next or 0, psn + self.span(p))

    def prove(self, p, before):
        if self.next is None or before > self.next:
            return  # it names a PSN that was never sent
        for m in self.messages:
            if m.last < before and not m.done and not m.answered and m.ended:
                m.done, m.done_frame = p.ts, p.frame

    def response(self, p):
        psn = self.unwrap(p.psn)
        if p.op == ACK and p.syndrome >> 5 == 0:
            self.acks += 1
            self.prove(p, psn + 1)
            return
        self.prove(p, psn)
        m = self.find(psn)
        if p.op != ACK:
            if m and m.answered:
                m.got += psn == m.first + m.got
                if m.got > m.last - m.first and not m.done:
                    m.done, m.done_frame = p.ts, p.frame
            return
        if p.syndrome >> 5 == RNR:
            self.rnr_naks += 1
            if m:
                m.rnr += 1
        elif p.syndrome == SEQUENCE_NAK:
            self.seq_naks += 1
        else:
            self.errors += 1
            if m and not m.error:
                m.error = {0x61: "REM_INV_REQ_ERR", 0x62: "REM_ACCESS_ERR", 0x63: "REM_OP_ERR"}.get(p.syndrome)
                m.done, m.done_frame = p.ts, p.frame


def find_pmtu(packets):
    """Path MTU by stream: the payload of First packets, which those of the other direction share between the same addresses."""
    found = {}
    for p in packets:
        if p.service != 3 and (p.op in FIRST or p.op == 13):
            found.setdefault((p.iface, frozenset((p.src, p.dst))), p.payload)
    return found


def pair(streams, packets):
    """The stream of requests that each stream of responses answers: as REQ and REP say, else the one where its PSNs fit best."""
    peers, asked_by = {}, {}
    for p in packets:
        if p.req_qpn is not None:
            asked_by[p.iface, p.src, p.dst, p.tid] = p.req_qpn
        if p.rep_qpn is not None and (p.iface, p.dst, p.src, p.tid) in asked_by:
            a, b = (p.iface, p.dst, p.src, p.rep_qpn), (p.iface, p.src, p.dst, asked_by[p.iface, p.dst, p.src, p.tid])
            peers[a], peers[b] = b, a
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
        s.packets, s.bytes, s.payload, s.last_frame = s.packets + 1, s.bytes + p.len, s.payload + p.payload, p.frame
        s.ce, s.cnps = s.ce + p.ce, s.cnps + p.cnp
        if p.cnp:
            continue
        if p.request and p.service == 3:
            s.requests += 1
            m = Message(p, 0, 0)
            m.bytes, m.last_frame, m.ended = p.payload, p.frame, True
            s.messages.append(m)
        elif p.request:
            s.request(p)
        else:
            s.responses += 1
            if p.key in peers and streams[peers[p.key]].packets:
                streams[peers[p.key]].response(p)
    return streams
