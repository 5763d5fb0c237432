#!/usr/bin/python3
"""Write captures with RoCEv2 inside every tunnel and link type that the dissectors know: gen_tunnels.py DIRECTORY.

The frames are built by scapy and the ICRCs calculated here with zlib, so that nothing of the program under test is used.
Every file holds one link type and one group of encapsulations; tests compare their decoding with tshark's.
"""
import os
import struct
import sys
import zlib

import logging

logging.getLogger("scapy").setLevel(logging.ERROR)
from scapy.all import (ARP, Dot1AD, Dot1Q, Ether, GRE, ICMP, IP, IPOption, IPOption_NOP, IPOption_RR, IPOption_Router_Alert,
                       IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, LLC, PadN, RawPcapWriter, Raw,
                       RouterAlert, SNAP, STP, TCP, UDP, ICMPv6DestUnreach, ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6PacketTooBig)
from scapy.contrib.erspan import ERSPAN, ERSPAN_II, ERSPAN_III, ERSPAN_PlatformSpecific
from scapy.contrib.geneve import GENEVE, GeneveOptions
from scapy.contrib.mpls import MPLS
from scapy.layers.inet6 import ICMPv6EchoReply
from scapy.layers.vxlan import VXLAN

MAC_A, MAC_B, MAC_C, MAC_D = ("02:00:00:00:00:0%d" % i for i in range(1, 5))
OUT4 = dict(src="10.0.0.1", dst="10.0.0.2")
OUT6 = dict(src="2001:db8::1", dst="2001:db8::2")
IN4 = dict(src="192.168.77.1", dst="192.168.77.2")
IN6 = dict(src="fd00::1", dst="fd00::2")


def le32(v):
    return struct.pack("<I", v & 0xffffffff)


def icrc(ip, ip_len, rest):
    """ICRC of the RoCEv2 packet whose IP header (with options) is the first ip_len bytes of ip."""
    h = bytearray(ip[:ip_len])
    if h[0] >> 4 == 4:
        h[1] = h[8] = h[10] = h[11] = 0xff
    else:
        h[0] |= 0x0f
        h[1] = h[2] = h[3] = h[7] = 0xff
    r = bytearray(rest)
    r[6] = r[7] = 0xff  # UDP checksum
    r[12] = 0xff        # FECN, BECN
    return le32(zlib.crc32(b"\xff" * 8 + bytes(h) + bytes(r)))


def bth(opcode=4, psn=0, pad=0, qp=0x11):
    return struct.pack(">BBHII", opcode, pad << 4, 0xffff, qp, psn)


def roce(ip, opcode=0x04, ext=b"", data=b"0123456789abcdef", psn=0, sport=49192):
    """`ip` (an IP header, maybe with options or extension headers) with UDP, BTH and a good ICRC."""
    pad = -len(data) % 4
    body = bth(opcode, psn, pad) + ext + data + b"\0" * pad
    p = bytes(ip / UDP(sport=sport, dport=4791, chksum=0) / Raw(body + b"\0\0\0\0"))
    ip_len = len(p) - len(body) - 12
    return Raw(p[:-4] + icrc(p, ip_len, p[ip_len:-4]))


def roce4(**kw):
    return roce(IP(**IN4, id=7, tos=0x68), **kw)


def roce6(**kw):
    return roce(IPv6(**IN6, tc=0x6a, fl=0x12345, hlim=9), **kw)


def rocev1(data=b"roce version 1!!"):
    """GRH, BTH, payload and ICRC."""
    grh = bytes(IPv6(src="fe80::1", dst="fe80::2", nh=0x1b, plen=12 + len(data) + 4, hlim=1))
    b = bth(4, 3) + data
    masked = bytearray(grh)
    masked[0] |= 0x0f
    masked[1] = masked[2] = masked[3] = masked[7] = 0xff
    mb = bytearray(b)
    mb[4] = 0xff
    return Raw(grh + b + le32(zlib.crc32(b"\xff" * 8 + bytes(masked) + bytes(mb))))


def eth(t=0x800, dst=MAC_B):
    return Ether(src=MAC_A, dst=dst, type=t)


def inner(t=0x800):
    return Ether(src=MAC_C, dst=MAC_D, type=t)


def write(name, linktype, frames):
    w = RawPcapWriter(name, linktype=linktype, nano=False, sync=True)
    w.write_header(None)
    for i, f in enumerate(frames):
        f = bytes(f)
        w.write_packet(f, sec=1700000000, usec=i, caplen=len(f), wirelen=len(f))
    w.close()


READ = struct.pack(">QII", 0x1000, 0x4705, 4096)


def plain():
    a = [eth() / roce4(), eth(0x86dd) / roce6(), eth(0x8915) / rocev1(), eth() / roce4(opcode=0x0c, ext=READ, data=b"", sport=69),
         eth() / roce4(data=b"x", sport=4791)]
    a.append(eth(0x8100) / Dot1Q(vlan=5, prio=3, type=0x800) / roce4())
    a.append(eth(0x8100) / Dot1Q(vlan=4095, prio=7, id=1, type=0x86dd) / roce6())
    a.append(eth(0x88a8) / Dot1AD(vlan=100, prio=1, type=0x8100) / Dot1Q(vlan=5, type=0x800) / roce4())
    a.append(eth(0x9100) / Raw(struct.pack(">HH", 0x2005, 0x8100)) / Raw(struct.pack(">HH", 6, 0x800)) / roce4())
    a.append(eth(0x8100) / Dot1Q(vlan=9, type=0x8915) / rocev1())
    a.append(eth() / Raw(bytes(roce4(data=b"")) + b"\0" * 20))  # padded behind the IP packet
    return a


def options():
    rr = IPOption_RR(pointer=8, routers=["1.1.1.1", "0.0.0.0"])
    a = [eth() / roce(IP(**IN4, options=[IPOption_NOP(), rr])),
         eth() / roce(IP(**IN4, options=[IPOption_Router_Alert()])),
         eth() / IP(**IN4, options=[IPOption(b"\x82\x0b" + b"\0" * 9)], proto=6) / TCP(sport=1, dport=2),
         eth(0x86dd) / roce(IPv6(**IN6) / IPv6ExtHdrHopByHop(options=[RouterAlert()])),
         eth(0x86dd) / roce(IPv6(**IN6) / IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 4)])),
         eth(0x86dd) / roce(IPv6(**IN6) / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt()),
         eth(0x86dd) / IPv6(**IN6) / IPv6ExtHdrRouting(addresses=["fd00::9"], segleft=0) / UDP(sport=1, dport=2) / Raw(b"1234"),
         eth(0x86dd) / roce(IPv6(**IN6) / IPv6ExtHdrFragment(id=77, offset=0, m=0))]
    ah = struct.pack(">BBHII", 17, 4, 0, 0x100, 5) + b"\xaa" * 12
    u = bytes(UDP(sport=3, dport=5, chksum=0) / Raw(b"abcd"))
    a.append(eth() / IP(**IN4, proto=51) / Raw(ah + u))
    a.append(eth(0x86dd) / IPv6(**IN6, nh=51) / Raw(ah + u))
    return a


def fragments():
    whole = bytes(roce4(data=bytes(range(256)) * 8))[20:]
    first, second = whole[:1480], whole[1480:]
    head = dict(**IN4, id=99, proto=17)
    a = [eth() / IP(**head, flags="MF") / Raw(first), eth() / IP(**head, frag=185) / Raw(second)]
    a.append(eth(0x86dd) / IPv6(**IN6) / IPv6ExtHdrFragment(nh=17, id=5, m=1) / Raw(first))
    a.append(eth(0x86dd) / IPv6(**IN6) / IPv6ExtHdrFragment(nh=17, id=5, offset=185) / Raw(second))
    return a


def mpls():
    a = [eth(0x8847) / MPLS(label=16, s=1, ttl=9) / roce4(),
         eth(0x8847) / MPLS(label=16, cos=5, s=0, ttl=9) / MPLS(label=0xfffff, s=1, ttl=1) / roce6(),
         eth(0x8847) / MPLS(label=17, s=1, ttl=9) / Raw(b"\0\0\0\0") / inner() / roce4(),
         eth(0x8847) / MPLS(label=17, s=1, ttl=9) / Raw(b"\0\0\0\0") / inner(0x8915) / rocev1(),
         eth(0x8848) / MPLS(label=18, s=1, ttl=9) / roce4()]
    return a


def ipip():
    return [eth() / IP(**OUT4, proto=4) / roce4(), eth() / IP(**OUT4, proto=41) / roce6(),
            eth(0x86dd) / IPv6(**OUT6, nh=4) / roce4(), eth(0x86dd) / IPv6(**OUT6, nh=41) / roce6()]


def gre():
    o = eth() / IP(**OUT4, proto=47)
    a = [o / GRE(proto=0x800) / roce4(), o / GRE(proto=0x86dd, key_present=1, key=0x1234) / roce6(),
         o / GRE(proto=0x800, key_present=1, key=7, seqnum_present=1, sequence_number=9, chksum_present=1) / roce4(),
         o / GRE(proto=0x6558, key_present=1, key=0xabcdef) / inner() / roce4(),
         o / GRE(proto=0x8915) / rocev1(), o / GRE(proto=0x6558) / inner(0x8915) / rocev1(),
         eth(0x86dd) / IPv6(**OUT6, nh=47) / GRE(proto=0x800) / roce4(),
         o / GRE(proto=0x8847) / MPLS(label=33, s=1, ttl=3) / roce4()]
    return a


def erspan():
    o = eth() / IP(**OUT4, proto=47)
    e = bytes(inner() / roce4())
    v2 = struct.pack(">HHI", 0x1000 | 100, 3 << 13 | 2 << 11 | 1 << 10 | 0x155, 0x12345)
    v3 = struct.pack(">HHIHH", 0x2000 | 101, 5 << 13 | 1 << 11 | 0x2aa, 0x89abcdef, 0x1111, 0x8000 | 0x3f0 | 8 | 4)
    v3o = v3[:-2] + struct.pack(">H", 0x8000 | 1) + struct.pack(">II", 3 << 26 | 0x155, 0x01020304)
    v3ip = v3[:-2] + struct.pack(">H", 2 << 10)
    seq = dict(seqnum_present=1, sequence_number=5)
    return [o / GRE(proto=0x88be) / Raw(e), o / GRE(proto=0x88be, **seq) / Raw(v2 + e), o / GRE(proto=0x22eb, **seq) / Raw(v3 + e),
            o / GRE(proto=0x22eb, **seq) / Raw(v3o + e), o / GRE(proto=0x22eb, **seq) / Raw(v3ip) / roce4(),
            o / GRE(proto=0x88be, **seq) / Raw(v2) / inner(0x8915) / rocev1()]


def vxlan():
    o = eth() / IP(**OUT4)
    u = UDP(sport=5555, dport=4789, chksum=0)
    a = [o / u / VXLAN(vni=42, flags=8) / inner() / roce4(), eth(0x86dd) / IPv6(**OUT6) / u / VXLAN(vni=43, flags=8) / inner(0x86dd) / roce6(),
         o / u / Raw(struct.pack(">HHI", 0x8848, 77, 0xffffff00)) / inner() / roce4(),
         o / u / VXLAN(vni=42, flags=8) / inner(0x8100) / Dot1Q(vlan=8, type=0x800) / roce4(),
         o / u / VXLAN(vni=1, flags=8) / inner(0x8915) / rocev1(),
         o / UDP(sport=5555, dport=4790, chksum=0) / Raw(bytes([0x0c, 0, 0, 1, 0, 0, 99, 0])) / roce4(),
         o / UDP(sport=5555, dport=4790, chksum=0) / Raw(bytes([0x0c, 0, 0, 3, 0, 0, 99, 0])) / inner() / roce4()]
    return a


def geneve():
    o = eth() / IP(**OUT4) / UDP(sport=5555, dport=6081, chksum=0)
    opts = struct.pack(">HBB", 0x0102, 0x80, 1) + b"\x01\x02\x03\x04" + struct.pack(">HBB", 0x0103, 3, 0)
    return [o / Raw(struct.pack(">BBHI", 0, 0, 0x6558, 42 << 8)) / inner() / roce4(),
            o / Raw(struct.pack(">BBHI", 3, 0x40, 0x6558, 43 << 8) + opts) / inner() / roce4(),
            o / Raw(struct.pack(">BBHI", 0, 0x80, 0x800, 44 << 8)) / roce4(),
            o / Raw(struct.pack(">BBHI", 0, 0, 0x86dd, 44 << 8)) / roce6()]


def others():
    quoted = bytes(roce4())
    a = [eth(0x806) / ARP(op=1, hwsrc=MAC_A, psrc="192.168.77.1", hwdst="00:00:00:00:00:00", pdst="192.168.77.2"),
         eth(0x806) / ARP(op=2, hwsrc=MAC_B, psrc="192.168.77.2", hwdst=MAC_A, pdst="192.168.77.1"),
         eth(0x806) / Raw(bytes(ARP(op=1, hwsrc=MAC_A, psrc="192.168.77.1", pdst="192.168.77.2")) + b"\0" * 18),
         eth() / IP(**IN4) / ICMP(type=8, id=5, seq=9) / Raw(b"ping"), eth() / IP(**IN4) / ICMP(type=0, id=5, seq=9) / Raw(b"ping"),
         eth() / IP(src=IN4["dst"], dst=IN4["src"]) / ICMP(type=3, code=3) / Raw(quoted),
         eth() / IP(src=IN4["dst"], dst=IN4["src"]) / ICMP(type=3, code=3) / Raw(quoted[:28]),
         eth() / IP(**IN4) / ICMP(type=3, code=4, nexthopmtu=1400) / Raw(quoted[:28]),
         eth() / IP(**IN4) / ICMP(type=11, code=0) / Raw(quoted[:28]),
         eth(0x86dd) / IPv6(**IN6) / ICMPv6EchoRequest(id=1, seq=2, data=b"ping"), eth(0x86dd) / IPv6(**IN6) / ICMPv6EchoReply(id=1, seq=2),
         eth(0x86dd) / IPv6(**IN6) / ICMPv6ND_NS(tgt="fd00::2"), eth(0x86dd) / IPv6(**IN6) / ICMPv6ND_NA(tgt="fd00::2", R=1, S=1),
         eth(0x86dd) / IPv6(**IN6) / ICMPv6DestUnreach(code=4) / Raw(bytes(roce6())),
         eth(0x86dd) / IPv6(**IN6) / ICMPv6PacketTooBig(mtu=1280) / Raw(bytes(roce6())),
         eth() / IP(**IN4) / TCP(sport=40000, dport=18515, seq=0xfffffff0, ack=0, flags="S", window=1000, options=[("MSS", 1460), ("NOP", None)]),
         eth() / IP(**IN4) / TCP(sport=40000, dport=18515, seq=77, ack=88, flags="PAC") / Raw(b"hello"),
         eth(0x86dd) / IPv6(**IN6) / TCP(sport=1, dport=2, flags="RA"),
         eth() / IP(**IN4) / UDP(sport=1000, dport=60001) / Raw(b"hello"), eth() / IP(**IN4) / UDP(sport=4791, dport=60001) / Raw(b"hello, not RoCE at all"),
         eth() / IP(**IN4, proto=2) / Raw(bytes([0x16, 0, 0, 0, 239, 1, 1, 1])), eth() / IP(**IN4, proto=253) / Raw(b"what"),
         Ether(src=MAC_A, dst="01:80:c2:00:00:0e", type=0x88cc) / Raw(b"\x02\x07\x04\x02\0\0\0\0\x01\x04\x03\x05a\x06\x02\0\x78\0\0"),
         Ether(src=MAC_A, dst="01:80:c2:00:00:00", type=38) / LLC(dsap=0x42, ssap=0x42, ctrl=3) / STP() / Raw(b"\0" * 8),
         Ether(src=MAC_A, dst=MAC_B, type=8 + len(roce4())) / LLC(dsap=0xaa, ssap=0xaa, ctrl=3) / SNAP(OUI=0, code=0x800) / roce4(),
         eth(0x1234) / Raw(b"unknown type")]
    pause = "01:80:c2:00:00:01"
    for ctl in ("0001ffff", "00010000", "01010008" + "000000000000" + "1234" + "00" * 8, "010100ff" + "00010002000300041234ffff00070008",
                "010100ff" + "00" * 16, "0002"):
        a.append(eth(0x8808, pause) / Raw(bytes.fromhex(ctl).ljust(46, b"\0")))
    segment = IP(**IN4) / TCP(sport=40000, dport=4420, seq=0xfffffff0, flags="S", options=[("MSS", 1460)])
    a += [eth() / IP(src=IN4["dst"], dst=IN4["src"]) / ICMP(type=3, code=1) / Raw(bytes(q)[:n])
          for q, n in ((segment, 28), (segment, 44), (segment / b"payload", 99), (IP(**IN4) / ICMP(type=8, id=5, seq=9), 28))]
    return a + [eth(0x86dd) / IPv6(**IN6) / ICMPv6DestUnreach(code=1) / Raw(bytes(IPv6(**IN6) / TCP(sport=1, dport=2, flags="RA")))]


def erf(kind, payload, ext=(), color=0, flags=4):
    """One ERF record, padded to 8 bytes."""
    t = kind | (0x80 if ext else 0)
    e = b"".join(bytes([(k | (0x80 if i + 1 < len(ext) else 0))]) + body for i, (k, body) in enumerate(ext))
    body = e + (b"\0\0" if kind in (2, 11, 16, 20) else b"") + payload
    body += b"\0" * (-(len(body) + 16) % 8)
    return struct.pack("<Q", 0x6553f10040000000) + struct.pack(">BBHHH", t, flags, 16 + len(body), color, len(payload)) + body


def vcrc(p):
    crc = 0xffff
    for x in p:
        crc ^= x
        for _ in range(8):
            crc = crc >> 1 ^ 0xd008 if crc & 1 else crc >> 1
    return struct.pack("<H", ~crc & 0xffff)


def ib(grh, data=b"native infiniband payload 32byte", opcode=4, ext=b""):
    """A native packet, LRH to VCRC."""
    pad = -len(data) % 4
    data = ext + data + b"\0" * pad
    g = bytes(IPv6(src="fe80::1", dst="fe80::2", nh=0x1b, plen=12 + len(data) + 4, hlim=1)) if grh else b""
    b = bth(opcode, 3, pad) + data
    n = (8 + len(g) + len(b) + 4) // 4
    lrh = struct.pack(">BBHHH", 0x10, 0x30 | (3 if grh else 2), 7, n, 9)
    mb = bytearray(b)
    mb[4] = 0xff
    if grh:
        mg = bytearray(g)
        mg[0] |= 0x0f
        mg[1] = mg[2] = mg[3] = mg[7] = 0xff
        covered = b"\xff" * 8 + bytes(mg)
    else:
        covered = bytes([lrh[0] | 0xf0]) + lrh[1:]
    p = lrh + g + b + le32(zlib.crc32(covered + bytes(mb)))
    return p + vcrc(p)


def over_ib():
    """Native datagrams (SEND Only of UD, Q_Key 0xb1b) that carry IP over InfiniBand: RFC 4391."""
    deth, r4, r6 = struct.pack(">II", 0xb1b, 0x12), IP(**IN4), IPv6(**IN6)
    gid = bytes.fromhex("00000012fe800000000000000000000000000001")
    arp = struct.pack(">HHBBH", 32, 0x800, 20, 4, 1) + gid + bytes([192, 168, 77, 1]) + b"\0" * 20 + bytes([192, 168, 77, 2])
    inner = [(0x800, r4 / UDP(sport=7, dport=9) / b"odd"), (0x800, r4 / TCP(sport=22, dport=40000, flags="SA", options=[("MSS", 1960)])),
             (0x800, r4 / ICMP() / b"12345678"), (0x86dd, r6 / TCP(sport=22, dport=40000, flags="PA") / b"ssh"), (0x86dd, r6 / ICMPv6EchoRequest()),
             (0x800, IP(flags="MF", **IN4) / UDP(sport=7, dport=9, len=99) / Raw(b"01234567")), (0x800, IP(frag=3, **IN4) / Raw(b"01234567")),
             (0x806, arp), (0x800, r4 / ICMP(type=3, code=3) / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=7, dport=9, len=99) / b"odd"),
             (0x86dd, r6 / ICMPv6DestUnreach(code=4) / IPv6(src="fd00::1", dst="fd00::2") / UDP(sport=7, dport=9, len=99) / b"odd")]
    return [ib(i % 2 == 1, struct.pack(">HH", proto, 0) + bytes(data), 0x64, deth) for i, (proto, data) in enumerate(inner)]


def flow(op, fctbs, vl, fccl):
    p = struct.pack(">HH", op << 12 | fctbs, vl << 12 | fccl)
    return p + vcrc(p)


def erfs():
    e4 = bytes(eth() / roce4())
    return [erf(2, e4 + b"\0\0\0\0"), erf(11, e4, color=0x1234), erf(16, e4, color=0x4321), erf(20, e4), erf(21, ib(False)), erf(21, ib(True)),
            erf(25, flow(0, 0x123, 2, 0x456)), erf(25, flow(1, 0xfff, 15, 0)), erf(21, ib(False), ext=[(5, b"\1\2\3\4\5\6\7")]),
            erf(2, e4, ext=[(3, b"\0" * 7), (17, b"\1\0\0\0\0\0\2")]), erf(22, bytes(roce4())), erf(23, bytes(roce6())), erf(3, b"\0" * 53)]


def sll(proto, data, hatype=1, halen=6, pkttype=0):
    return struct.pack(">HHH8sH", pkttype, hatype, halen, bytes.fromhex("0200000000010000"), proto) + bytes(data)


def sll2(proto, data, hatype=1, halen=6, pkttype=4, ifindex=3):
    return struct.pack(">HHIHBB8s", proto, 0, ifindex, hatype, pkttype, halen, bytes.fromhex("0200000000010000")) + bytes(data)


def ipoib(proto, data, grh=False):
    """As Solaris captures it: 20 zero bytes and the destination's link address, or the GRH; then the header of RFC 4391."""
    gid = bytes.fromhex("fe80000000000000000000000000000e")
    head = bytes(IPv6(src="fe80::1", dst="fe80::2")) if grh else b"\0" * 21 + b"\0\0\x11" + gid
    return head + struct.pack(">HH", proto, 0) + bytes(data)


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    r4, r6 = bytes(roce4()), bytes(roce6())
    files = [("eth-plain", 1, plain()), ("eth-options", 1, options()), ("eth-fragments", 1, fragments()), ("eth-mpls", 1, mpls()),
             ("eth-ipip", 1, ipip()), ("eth-gre", 1, gre()), ("eth-erspan", 1, erspan()), ("eth-vxlan", 1, vxlan()), ("eth-geneve", 1, geneve()),
             ("eth-others", 1, others()), ("raw", 101, [r4, r6]), ("ipv4", 228, [r4]), ("ipv6", 229, [r6]),
             ("null", 0, [struct.pack("<I", 2) + r4, struct.pack(">I", 2) + r4, struct.pack("<I", 30) + r6, struct.pack("<I", 24) + r6,
                          struct.pack(">I", 28) + r6]),
             ("loop", 108, [struct.pack(">I", 2) + r4, struct.pack(">I", 24) + r6]),
             ("sll", 113, [sll(0x800, r4), sll(0x86dd, r6, pkttype=4), sll(0x8100, struct.pack(">HH", 5, 0x800) + r4), sll(0x800, r4, 772, 6),
                           sll(0x806, bytes(ARP(psrc="1.2.3.4", pdst="1.2.3.5")), pkttype=1), sll(0x800, r4, 32, 20), sll(0x8915, rocev1()),
                           sll(4, bytes(LLC(dsap=0x42, ssap=0x42, ctrl=3)) + b"\0" * 35), sll(0x800, r4, 512, 0)]),
             ("sll2", 276, [sll2(0x800, r4), sll2(0x86dd, r6, pkttype=0), sll2(0x800, r4, 32, 20, ifindex=0xfffffff0), sll2(0x8915, rocev1())]),
             ("erf", 197, erfs()), ("infiniband", 247, [ib(False), ib(True), flow(0, 1, 2, 3)]),
             ("over-ib", 197, [erf(21, p) for p in over_ib()]),
             ("ipoib", 242, [ipoib(0x800, r4), ipoib(0x86dd, r6), ipoib(0x800, r4, True), ipoib(0x806, bytes(ARP(psrc="1.2.3.4", pdst="1.2.3.5")))])]
    for name, linktype, frames in files:
        write(os.path.join(sys.argv[1], name + ".pcap"), linktype, frames)


if __name__ == "__main__":
    main()
