"""Changes of captures: which packet is meant, and what becomes of it. A change is a function that gets the packets and returns the
number of the frame that then breaks a rule, or None."""
import struct
import zlib

from judge import Packet


def nth(packets, n, *opcodes, after=-1):
    """Index of the n-th packet (from 0) with one of these opcodes, behind index `after`."""
    found = [i for i, p in enumerate(packets) if p.roce and p.opcode in opcodes and i > after]
    return found[n]


def cm(packets, attr, n=0):
    found = [i for i, p in enumerate(packets) if p.roce and p.opcode == 0x64 and p.dqpn == 1 and p.get(p.bth + 20 + 16, 2) == attr]
    return found[n]


BODY = 12 + 8 + 24  # from the BTH to the body of a CM message


def edit(i, change):
    """Mutation: change(packet) of the packet that i(packets) finds, then seal it. Returns the frame number."""
    def mutate(packets):
        n = i(packets)
        change(packets[n])
        packets[n].seal()
        return n + 1
    return mutate


def attr(name, value):
    def change(p):
        setattr(p, name, value(getattr(p, name)) if callable(value) else value)
    return change


def byte(off, value):
    return lambda p: p.put(p.bth + off, 1, value(p.get(p.bth + off, 1)) if callable(value) else value)


def number(off, n, value):
    return lambda p: p.put(p.bth + off, n, value(p.get(p.bth + off, n)) if callable(value) else value)


def body(new):
    return lambda p: p.resize(new(p.body))


def ack(syndrome, psn=None):
    def change(p):
        p.put(p.bth + 12, 1, syndrome)
        if psn is not None:
            p.psn = p.psn + psn
    return change


def again(i, change=lambda p: None, later=1000, at=None):
    """Insert a changed copy (with another IP identification) of a packet behind it."""
    def mutate(packets):
        n = i(packets)
        p = packets[n].copy()
        p.put(18, 2, p.get(18, 2) + 0x1000)
        p.ts += later
        change(p)
        packets.insert(n + 1 if at is None else at(packets), p.seal())
        return n + 2 if at is None else None
    return mutate


def drop(*indices):
    def mutate(packets):
        for n in sorted((i(packets) for i in indices), reverse=True):
            del packets[n]
    return mutate


def cnp(i, **fields):
    def mutate(packets):
        n = i(packets)
        p = packets[n].copy()
        p.opcode, p.flags, p.psn = 0x81, 0, fields.get("psn", 0)
        p.put(p.bth + 8, 1, 0)
        p.resize(bytes(fields.get("body", bytes(16))))
        packets.insert(n + 1, p.seal())
        return n + 2
    return mutate


def both(*mutations):
    def mutate(packets):
        return [m(packets) for m in mutations][-1]
    return mutate


def one_way(i, change):
    """All packets from the source of packet i."""
    def mutate(packets):
        src = packets[i(packets)].src
        for p in packets:
            if p.roce and p.src == src and p.opcode >> 5 == 0:
                change(p)
                p.seal()
    return mutate


def unanswered(pkey):
    """What the active side sends behind its RTU has this P_Key, and no answer."""
    def mutate(packets):
        src = packets[nth(packets, 0, 4)].src
        packets[:] = [p for p in packets if not p.roce or p.dqpn == 1 or (p.src == src and p.opcode == 4)]
        for p in packets:
            if p.roce and p.dqpn != 1:
                p.pkey = pkey
                p.seal()
        return None
    return mutate


def move(i, k):
    """Packet i is moved before packet k."""
    def mutate(packets):
        a, b = i(packets), k(packets)
        packets[a].ts = packets[b].ts - 1
        packets.insert(b, packets.pop(a))
        return b + 1
    return mutate


def put_before(k, i, change):
    """A changed copy of packet i before packet k."""
    def mutate(packets):
        at, p = k(packets), packets[i(packets)].copy()
        p.ts = packets[at].ts - 1
        change(p)
        packets.insert(at, p.seal())
        return at + 1
    return mutate


def pause(k, before, body, count=1, gap=0, dst=b"\x01\x80\xc2\x00\x00\x01"):
    """`count` pause frames of the station that packet k is for, the last one `before` ns ahead of that packet."""
    def mutate(packets):
        n = k(packets)
        p = packets[n]
        for i in range(count):
            packets.insert(n + i, Packet(p.ts - before - (count - 1 - i) * gap, dst + bytes(p.data[:6]) + b"\x88\x08" + body.ljust(46, b"\0")))
        return n + count
    return mutate


PAUSE, PFC = b"\0\1\xff\xff", b"\1\1\0\xff" + b"\xff\xff" * 8


def to_xrc(packets):
    """The connection becomes one of XRC: requests get an XRCETH, responses do not."""
    for p in packets:
        if p.roce and p.opcode >> 5 == 0:
            response = p.opcode in range(0xd, 0x13)
            p.opcode = p.opcode | 0xa0
            p.resize(p.body if response else b"\0\0\0\x11" + p.body)
            p.seal()


def placed(n, opcode, feth, payload, answer=0x10, data=b""):
    """The n-th WRITE Only becomes an ATOMIC WRITE or FLUSH, and its ACK what answers that."""
    def mutate(packets):
        at = nth(packets, n, 0x0a)
        back = next(i for i in range(at, len(packets)) if packets[i].roce and packets[i].opcode == 0x11 and packets[i].psn == packets[at].psn)
        p, a = packets[at], packets[back]
        p.opcode, a.opcode = opcode, answer
        p.resize(feth + p.body[:12] + (b"\0\0\0\x08" if opcode == 0x1d else p.body[12:16]) + payload)
        a.resize(a.body[:4] + data)
        p.seal()
        a.seal()
        return back + 1 if answer != 0x10 or data else at + 1
    return mutate


def slower(k, factor):
    """Packets behind packet k come `factor` times as slowly."""
    def mutate(packets):
        n = k(packets)
        for p in packets[n:]:
            p.ts = packets[n].ts + (p.ts - packets[n].ts) * factor
    return mutate


def op(n, *opcodes):
    return lambda packets: nth(packets, n, *opcodes)


def msg(attribute, n=0):
    return lambda packets: cm(packets, attribute, n)


def acked_use(p):
    """A NAK of the third message becomes its ACK."""
    p.put(p.bth + 12, 4, 0x1f000003)


def told(packets):
    """The WRITE with a key that was invalidated succeeds, but its responder had sent a SEND before."""
    edit(op(2, 0x11), acked_use)(packets)
    at = nth(packets, 2, 0x0a, 0x17)
    p, ack_of = packets[nth(packets, 0, 0x17)].copy(), packets[nth(packets, 1, 0x11)].copy()
    p.data[:14], p.data[26:34] = ack_of.data[:14], ack_of.data[26:34]
    p.dqpn, p.opcode, p.psn, p.ts = ack_of.dqpn, 0x04, 0x777, packets[at].ts - 1000
    p.resize(p.body[4:])
    packets.insert(at, p.seal())
    return at + 1


def asked_again(requests, responses):
    """At the end both atomics of vt_imm_ops.pcap are sent again, in this order, and answered in that one."""
    def mutate(packets):
        asks, answers = ([packets[nth(packets, 0, 0x14)], packets[nth(packets, 0, 0x13)]], [packets[nth(packets, n, 0x12)] for n in (0, 1)])
        for n, original in enumerate([asks[i] for i in requests] + [answers[i] for i in responses]):
            p = original.copy()
            p.put(18, 2, p.get(18, 2) + 0x1000)
            p.ts = packets[-1].ts + (10 ** 9 if n == 0 else 10 ** 5)
            packets.append(p.seal())
        return len(packets)
    return mutate


def overtaken(packets):
    """The first two Middle packets of a WRITE change places."""
    i = nth(packets, 0, 7)
    packets[i].ts, packets[i + 1].ts = packets[i + 1].ts, packets[i].ts
    packets[i], packets[i + 1] = packets[i + 1], packets[i]


def to_ud(p):
    p.opcode = 0x64
    p.resize(bytes(8) + p.body)


ATTR = 12 + 8 + 16  # from the BTH to the attribute id of a MAD


def cut_short(i, n):
    """Packet i keeps n bytes."""
    def mutate(packets):
        at = i(packets)
        packets[at].cut = n
        return at + 1
    return mutate


def exact_copy(i):
    def mutate(packets):
        at = i(packets)
        packets.insert(at + 1, packets[at].copy())
    return mutate


def only_from(i):
    """Only one direction was captured."""
    def mutate(packets):
        src = packets[i(packets)].src
        packets[:] = [p for p in packets if p.roce and p.src == src]
    return mutate


def same_time(i, k):
    """Packet i is recorded before packet k, with the same time."""
    def mutate(packets):
        a, b = i(packets), k(packets)
        packets[a].ts = packets[b].ts
        packets.insert(b, packets.pop(a))
    return mutate


def begun_at(i, k):
    """Packet i comes late, right before packet k, and there the capture begins."""
    def mutate(packets):
        at, late = k(packets), packets[i(packets)]
        late.ts = packets[at].ts - 1
        packets[:at] = [late]
    return mutate


def late_on(mutate):
    """The change, in a capture that has begun long before the connection: its REQ can be no late copy of an earlier one."""
    def changed(packets):
        frame = mutate(packets)
        packets.insert(0, Packet(packets[0].ts - 10 ** 10, b"\xff" * 12 + b"\x08\x06" + bytes(46)))
        return frame and frame + 1
    return changed


def lap(p):
    """A DREQ becomes a LAP that proposes 192.168.78.1 and .2, to queue pair 0x11."""
    p.put(p.bth + ATTR, 2, 0x19)
    p.data[p.bth + BODY + 8:p.bth + BODY + 232] = bytes(224)
    p.put(p.bth + BODY + 12, 3, 0x11)
    for off, last in ((24, 1), (40, 2)):
        p.data[p.bth + BODY + off:p.bth + BODY + off + 16] = bytes(10) + b"\xff\xff" + bytes((192, 168, 78, last))


def apr(status):
    """A DREP becomes an APR."""
    def change(p):
        p.put(p.bth + ATTR, 2, 0x1a)
        p.data[p.bth + BODY + 8:p.bth + BODY + 232] = bytes(224)
        p.put(p.bth + BODY + 9, 1, status)
    return change


def mra(p):
    """A REP becomes an MRA of 4.096 us x 2^20."""
    p.put(p.bth + ATTR, 2, 0x11)
    p.data[p.bth + BODY + 8:p.bth + BODY + 232] = bytes((0, 20 << 3)) + bytes(222)
    p.ts -= 10 ** 6


def as_v1(i):
    """Packet i goes by RoCEv1, with the GIDs of its IPv4 addresses."""
    def mutate(packets):
        n = i(packets)
        p = packets[n]
        ib, mapped = bytes(p.data[p.bth:-4]), bytes(10) + b"\xff\xff"
        grh = struct.pack(">IHBB", 6 << 28, len(ib) + 4, 0x1b, 64) + mapped + bytes(p.data[26:30]) + mapped + bytes(p.data[30:34])
        m = bytearray(grh + ib)
        m[0] |= 0x0f
        m[1] = m[2] = m[3] = m[7] = m[40 + 4] = 0xff
        data = bytes(p.data[:12]) + b"\x89\x15" + grh + ib + struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(m)))
        packets[n] = Packet(p.ts, data)
        return n + 1
    return mutate


def tagged(which):
    """Some packets have a VLAN tag."""
    def mutate(packets):
        for n, p in enumerate(packets):
            if p.roce and p.dqpn != 1 and which(p):
                packets[n] = Packet(p.ts, bytes(p.data[:12]) + b"\x81\x00\x60\x05" + bytes(p.data[12:]))
    return mutate


def other_path(p):
    p.data[28] = p.data[32] = 78


def wrong_icrc(packets):
    n = nth(packets, 0, 4)
    packets[n].data[packets[n].bth + 12] ^= 1
    return n + 1


def longer(n):
    return lambda b: b + bytes(n)
