"""Captures full of what names a host or an adapter, made here byte by byte: two hosts in every header and record that has such a thing.

write(folder) makes one file for each link type and gives [Capture]. Layouts: RFC 826, 4391, 4861, 7348 and 8926, and the IBTA specification
as OpenSM's ib_types.h has it. The trace record is as Wireshark has it. Values are
drawn by a fixed seed, so that each occurs only where it was put."""
import collections
import os
import random
import string
import struct
import zlib

Capture = collections.namedtuple("Capture", "path frames")
# `text`: what the frame is; `zeroed`: it is payload, of which nothing is left, else each value is replaced.
Frame = collections.namedtuple("Frame", "text data zeroed")
ETHERNET, SLL, ERF, IPOIB, INFINIBAND, SLL2 = 1, 113, 197, 242, 247, 276


class Host:
    def __init__(self, draw, of_mac):
        self.mac = bytes([draw.randrange(64) << 2]) + draw.randbytes(5)
        self.ip4 = bytes([draw.randrange(20, 100)]) + draw.randbytes(3)
        self.inner4, self.inner_mac = bytes([draw.randrange(20, 100)]) + draw.randbytes(3), bytes([draw.randrange(64) << 2]) + draw.randbytes(5)
        self.prefix = bytes([0x20 | draw.randrange(16)]) + draw.randbytes(7)
        eui = bytes([self.mac[0] ^ 2]) + self.mac[1:3] + b"\xff\xfe" + self.mac[3:]
        self.port, self.node, self.system, self.chassis = (eui if of_mac else draw.randbytes(8)), draw.randbytes(8), draw.randbytes(8), draw.randbytes(8)
        self.gid, self.ip6 = self.prefix + self.port, bytes([0xfd]) + draw.randbytes(15)
        self.local = bytes.fromhex("fe80000000000000") + self.port
        self.name = "".join(draw.choice(string.ascii_lowercase) for _ in range(24)).encode()
        self.hw = b"\0\0\1\2" + self.gid  # of IPoIB: flags, QPN, GID

    def values(self):
        return {k: v for k, v in vars(self).items() if k not in ("gid", "local", "hw")}  # these are made of others


def sum16(data):
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data[:len(data) & ~1]))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def vcrc(data):
    crc = 0xffff
    for x in data:
        crc ^= x
        for _ in range(8):
            crc = crc >> 1 ^ 0xd008 if crc & 1 else crc >> 1
    return struct.pack("<H", ~crc & 0xffff)


def eth(a, b, kind, rest):
    return b + a + struct.pack(">H", kind) + rest


def ip4(a, b, proto, rest):
    h = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(rest), 7, 0x4000, 64, proto, 0, a, b)
    return h[:10] + struct.pack(">H", sum16(h)) + h[12:] + rest


def ip6(a, b, proto, rest):
    return struct.pack(">IHBB", 6 << 28, len(rest), proto, 64) + a + b + rest


def udp(port, rest):
    return struct.pack(">HHHH", 50000, port, 8 + len(rest), 0) + rest


def bth(opcode, qp, psn):
    return struct.pack(">BBHII", opcode, 0, 0xffff, qp, psn)


def icrc(masked, damage=0, before=b"\xff" * 8):
    return struct.pack("<I", zlib.crc32(before + masked) ^ damage)


def icrc_of_ib(lrh, grh, ib, damage=0):
    """The ICRC of a packet with a GRH, which counts the LRH as ones, or without one."""
    masked = bytearray(grh + ib)
    if grh:
        masked[0] |= 0x0f
        masked[1:4] = b"\xff\xff\xff"
        masked[7] = 0xff
    masked[len(grh) + 4] = 0xff
    return icrc(bytes(masked), damage, b"\xff" * 8 if grh else bytes([lrh[0] | 0xf0]) + lrh[1:])


def roce(a, b, ib, damage=0):
    """RoCEv2 over IPv4 or IPv6, from the IP header on."""
    whole = bytearray((ip4 if len(a) == 4 else ip6)(a, b, 17, udp(4791, ib + bytes(4))))
    at = len(whole) - len(ib) - 12
    masked = whole[:-4]
    for i in (1, 8, 10, 11) if len(a) == 4 else (1, 2, 3, 7):
        masked[i] = 0xff
    masked[0] |= 0 if len(a) == 4 else 0x0f
    for i in (6, 7, 12):
        masked[at + i] = 0xff
    whole[-4:] = icrc(bytes(masked), damage)
    return bytes(whole)


def native(ib, gids=None, bad_icrc=0, bad_vcrc=0):
    """InfiniBand from the LRH on, with a GRH if there are GIDs."""
    grh = struct.pack(">IHBB", 6 << 28, len(ib) + 4, 0x1b, 9) + gids[0] + gids[1] if gids else b""
    lrh = struct.pack(">BBHHH", 0x00, 3 if gids else 2, 11, (8 + len(grh) + len(ib) + 4) // 4, 12)
    out = lrh + grh + ib + icrc_of_ib(lrh, grh, ib, bad_icrc)
    v = vcrc(out)
    return out + bytes([v[0] ^ bad_vcrc]) + v[1:]


def ud(payload, qp=1):
    return bth(0x64, qp, 5) + struct.pack(">II", 0x80010000, 1) + payload


def mad(cls, method, attr, body, spec=0):
    return (struct.pack(">BBBBHHQHHI", 1, cls, 2 if cls == 3 else 1, method, 0, spec, 0x55, attr, 0, 0) + body).ljust(256, b"\0")


def smp(attr, data):
    return mad(1, 0x81, attr, bytes(40) + data)


def sa(attr, data, records=1):
    rmpp = struct.pack(">BBBBII", 1, *((1, 7, 0, 1, len(data) + 20) if records > 1 else (0, 0, 0, 0, 0)))
    return mad(3, 0x92 if records > 1 else 0x81, attr, rmpp + bytes(8) + struct.pack(">HH", (len(data) // records + 7) // 8, 0) + bytes(8) + data)


def cm(attr, fields):
    """A message of connection management: {offset behind the MAD header: bytes}."""
    body = bytearray(232)
    for at, v in fields.items():
        body[at:at + len(v)] = v
    return mad(7, 3, attr, bytes(body))


def notice(trap, details):
    return bytes([0x80, 0, 0, 1]) + struct.pack(">HHH", trap, 3, 1) + details.ljust(54, b"\0")


def node_info(h):
    return bytes([1, 1, 1, 1]) + h.system + h.node + h.port + bytes(12)


def name(h):
    return h.name.ljust(64, b"\0")


def records(a, b):
    """Every attribute of management that names somebody: text, MAD, queue pair, zeroed."""
    lid = bytes([0, 9, 0, 0])
    yield from (("NodeInfo", smp(0x11, node_info(a)), 0, 0), ("NodeDescription", smp(0x10, name(a)), 0, 0), ("GUIDInfo", smp(0x14, a.port + b.port + a.node + b.system), 0, 0),
                ("PortInfo", smp(0x15, bytes(8) + a.prefix + bytes(48)), 0, 0), ("SMInfo", smp(0x20, a.node + bytes(13)), 0, 0),
                ("vendor's SMP", smp(0xff77, a.name + a.node), 0, 1), ("NodeRecord", sa(0x11, lid + node_info(a) + name(a)), 1, 0),
                ("SMInfoRecord", sa(0x18, lid + a.node + bytes(13)), 1, 0), ("GUIDInfoRecord", sa(0x30, lid + bytes(4) + a.port + b.port), 1, 0),
                ("PortInfoRecord", sa(0x12, lid + bytes(8) + a.prefix + bytes(48)), 1, 0), ("PathRecord", sa(0x35, bytes(8) + a.gid + b.gid + bytes(24)), 1, 0),
                ("MCMemberRecord", sa(0x38, bytes(16) + a.gid + bytes(20)), 1, 0), ("ServiceRecord", sa(0x31, bytes(8) + a.gid + bytes(24) + bytes(128)), 1, 0),
                ("ServiceRecord with names", sa(0x31, bytes(24) + bytes(8) + a.system + a.node + name(b) + a.name.ljust(64, b"\0")), 1, 1),
                ("InformInfoRecord", sa(0xf3, a.gid + bytes(8) + b.gid + bytes(20)), 1, 0), ("InformInfo", sa(0x03, b.gid + bytes(20)), 1, 0),
                ("MultiPathRecord", sa(0x3a, bytes(15) + bytes([1, 2]) + bytes(7) + a.gid + b.gid + a.gid), 1, 0),
                ("TraceRecord", sa(0x39, a.prefix + bytes([0, 1, 0, 1]) + a.node + a.chassis + b.node + b.port + bytes([1, 2])), 1, 0),
                ("ServiceAssociationRecord", sa(0x3b, bytes(16) + name(b)), 1, 0), ("two PathRecords", sa(0x35, (bytes(8) + a.gid + b.gid + bytes(24)) * 2, 2), 1, 0),
                ("ClassPortInfo", mad(4, 0x81, 1, bytes(40) + bytes(8) + a.gid + bytes(16) + b.gid + bytes(16)), 1, 0),
                ("ClassPortInfo of SA", sa(1, bytes(8) + a.gid + bytes(16) + b.gid + bytes(16)), 1, 0), ("vendor's class", mad(0x30, 1, 0x10, bytes(24) + a.name + a.gid), 1, 1))
    for trap, details in ((64, bytes(6) + a.gid), (66, bytes(6) + b.gid), (145, bytes(6) + a.system), (257, bytes(18) + a.gid + b.gid), (258, bytes(18) + b.gid + a.gid)):
        yield "trap %d" % trap, mad(3, 6, 2, bytes(12) + bytes(8) + struct.pack(">HH", 10, 0) + bytes(8) + notice(trap, details) + b.gid), 1, 0
    yield "an unknown trap", smp(2, notice(1234, a.gid + a.name)), 0, 1
    paths = {16: a.node, 56: a.gid, 72: b.gid, 100: a.prefix + a.system, 116: b.prefix + b.node}
    yield "REQ", cm(0x10, paths), 1, 0
    yield "REQ of the RDMA-CM", cm(0x10, {8: bytes.fromhex("0000000001061c06"), **paths, 140: b"\0\x40" + struct.pack(">H", 7), 144: bytes(12) + a.ip4 + bytes(12) + b.ip4}), 1, 0
    yield "private data of a REQ", cm(0x10, {140: a.name + a.ip6 + a.mac + a.node}), 1, 1
    yield "REP", cm(0x13, {28: b.node}), 1, 0
    yield "private data of a REP", cm(0x13, {36: b.name + b.gid}), 1, 1
    yield "REJ", cm(0x12, {9: b"\x20", 10: struct.pack(">H", 12), 12: a.gid}), 1, 0
    yield "LAP", cm(0x19, {24: a.gid, 40: b.gid}), 1, 0


def neighbours(a, b):
    """ARP and neighbour discovery over Ethernet, and what no dissector knows."""
    arp = struct.pack(">HHBBH", 1, 0x800, 6, 4, 2) + a.mac + a.ip4 + b.mac + b.ip4
    ns = bytes([135, 0, 0, 0]) + bytes(4) + b.ip6 + bytes([1, 1]) + a.mac
    yield "ARP", eth(a.mac, b.mac, 0x806, arp), 0
    yield "neighbour solicitation", eth(a.mac, b.mac, 0x86dd, ip6(a.ip6, b.ip6, 58, ns[:24])), 0
    yield "LLDP", eth(bytes(5) + b"\1", bytes.fromhex("0180c200000e"), 0x88cc, b"\2\7\4" + a.mac + b"\x0a" + bytes([len(a.name)]) + a.name), 1
    yield "its option", eth(bytes(5) + b"\1", bytes(5) + b"\2", 0x86dd, ip6(bytes(15) + b"\1", bytes(15) + b"\1", 58, bytes([135, 0, 0, 0]) + bytes(20) + bytes([1, 1]) + a.mac)), 1
    yield "text over UDP", eth(bytes(5) + b"\1", bytes(5) + b"\2", 0x800, ip4(bytes(4), b"\xff" * 4, 17, udp(9999, a.name + a.mac + b.node + b.ip6))), 1
    quoted = roce(a.ip4, b.ip4, bth(4, 3, 9) + bytes(16))
    icmp = bytes([3, 3, 0, 0]) + bytes(4) + quoted
    yield "ICMP", eth(b.mac, a.mac, 0x800, ip4(b.ip4, a.ip4, 1, icmp[:2] + struct.pack(">H", sum16(icmp)) + icmp[4:])), 0
    yield "RoCEv1", eth(a.mac, b.mac, 0x8915, rocev1(a.gid, b.gid)), 0
    yield "link-local RoCEv1", eth(a.mac, b.mac, 0x8915, rocev1(a.local, b.local)), 0


def rocev1(a, b):
    ib = bth(4, 3, 9) + b"rocev1, payload."
    grh = struct.pack(">IHBB", 6 << 28, len(ib) + 4, 0x1b, 1) + a + b
    return grh + ib + icrc_of_ib(b"", grh, ib)


def tunnels(a, b):
    """RoCEv2 inside of each, with a good and with a wrong ICRC."""
    for damage in (0, 1):
        ib = bth(4, 3, 9) + b"data of a SEND.."
        inner4 = eth(a.inner_mac, b.inner_mac, 0x800, roce(a.inner4, b.inner4, ib, damage))
        inner6 = eth(a.inner_mac, b.inner_mac, 0x86dd, roce(a.ip6, b.ip6, ib, damage))

        def gre(kind, rest):
            return ip4(a.ip4, b.ip4, 47, struct.pack(">HHI", 0x1000, kind, 5) + rest)
        for text, outer in (("VXLAN", ip4(a.ip4, b.ip4, 17, udp(4789, bytes([8, 0, 0, 0, 0, 0, 42, 0]) + inner4))),
                            ("GENEVE", ip4(a.ip4, b.ip4, 17, udp(6081, struct.pack(">BBHI", 0, 0, 0x6558, 42 << 8) + inner6))),
                            ("ERSPAN II", gre(0x88be, struct.pack(">HHI", 0x1064, 3 << 13, 1) + inner4)),
                            ("ERSPAN III", gre(0x22eb, struct.pack(">HHIHH", 0x2065, 5 << 13, 0x89abcdef, 0, 0) + inner6)),
                            ("GRE", gre(0x800, roce(a.inner4, b.inner4, ib, damage))), ("IP in IP", ip4(a.ip4, b.ip4, 4, roce(a.inner4, b.inner4, ib, damage)))):
            yield text, eth(a.mac, b.mac, 0x800, outer), 0
    yield "an option of GENEVE", eth(bytes(6), bytes(6), 0x800, ip4(bytes(4), bytes(4), 17, udp(6081, struct.pack(">BBHI", 5, 0, 0x6558, 42 << 8)
          + struct.pack(">HBB", 0x102, 1, 4) + a.gid + eth(bytes(6), bytes(6), 0x800, b"")))), 1


def erf(data):
    """A record of type InfiniBand, with an extension header that tells the host."""
    body = bytes([17]) + b"\0\0\0\0\0\1\2" + data
    body += bytes(-(len(body) + 16) % 8)
    return struct.pack("<Q", 0x6553f10040000000) + struct.pack(">BBHHH", 21 | 0x80, 4, 16 + len(body), 0, len(data)) + body


def ipoib(a, b):
    pseudo = bytes(20) + b.hw
    arp = struct.pack(">HHBBH", 32, 0x800, 20, 4, 1) + a.hw + a.ip4 + b.hw + b.ip4
    yield "ARP over IPoIB", pseudo + struct.pack(">HH", 0x806, 0) + arp, 0
    yield "IP over IPoIB", pseudo + struct.pack(">HH", 0x800, 0) + ip4(a.ip4, b.ip4, 17, udp(9999, bytes(8))), 0
    yield "GRH of IPoIB", struct.pack(">IHBB", 6 << 28, 0, 0, 0) + a.gid + b.gid + struct.pack(">HH", 0x86dd, 0) + ip6(a.ip6, b.ip6, 17, udp(9999, bytes(8))), 0


def infiniband(a, b):
    for text, m, qp, zeroed in records(a, b):
        yield text, native(ud(m, qp), None if zeroed or qp == 0 else (a.gid, b.gid)), zeroed
    data = bth(4, 3, 9) + b"payload of RC..."
    yield "RC", native(data, (a.gid, b.gid)), 0
    yield "RC, link-local", native(data, (a.local, b.local)), 0
    yield "RC, wrong ICRC", native(data, (a.gid, b.gid), bad_icrc=1), 0
    yield "RC, wrong VCRC", native(data, (a.gid, b.gid), bad_vcrc=1), 0
    arp = struct.pack(">HHHHBBH", 0x806, 0, 32, 0x800, 20, 4, 1) + a.hw + a.ip4 + b.hw + b.ip4
    yield "ARP in a datagram", native(ud(arp, 0x1234)), 0
    inner = ip4(a.ip4, b.ip4, 17, udp(9999, bytes(8)))
    yield "IPv4 in a datagram", native(ud(struct.pack(">HH", 0x800, 0) + inner, 0x1234)), 0
    yield "IPv4 in a datagram of another length", native(ud(struct.pack(">HH", 0x800, 0) + inner + bytes(4), 0x1234)), 1


def write(folder):
    draw = random.Random(11)
    a, b = Host(draw, False), Host(draw, True)
    files = {("ethernet", ETHERNET): [*neighbours(a, b), *tunnels(a, b)] + [(t, eth(a.mac, b.mac, 0x800, roce(a.ip4, b.ip4, ud(m, q))), 0) for t, m, q, z in records(a, b) if not z],
             ("infiniband", INFINIBAND): infiniband(a, b), ("erf", ERF): [(t, erf(d), z) for t, d, z in infiniband(b, a)], ("ipoib", IPOIB): ipoib(a, b),
             ("sll", SLL): [("SLL", struct.pack(">HHH", 0, 1, 6) + a.mac + b"\0\0\x08\0" + roce(a.ip4, b.ip4, bth(4, 3, 9)), 0),
                            ("SLL of IPoIB", struct.pack(">HHH", 0, 32, 20) + a.node + b"\x88\xb5", 1)],
             ("sll2", SLL2): [("SLL2", struct.pack(">HHIHBB", 0x800, 0, 2, 1, 0, 6) + a.mac + b"\0\0" + roce(a.ip4, b.ip4, bth(4, 3, 9)), 0)]}
    captures = []
    for (file, linktype), frames in files.items():
        c = Capture(os.path.join(folder, file + ".pcap"), [Frame(*f) for f in frames])
        with open(c.path, "wb") as f:
            f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, linktype))
            for i, frame in enumerate(c.frames):
                f.write(struct.pack("<IIII", 1700000000, i, len(frame.data), len(frame.data)) + frame.data)
        captures.append(c)
    return captures, [v for h in (a, b) for v in h.values().items()]
