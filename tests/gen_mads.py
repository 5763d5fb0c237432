#!/usr/bin/env python3
"""Write a pcap of RoCEv2 management datagrams, every known attribute of every class but Communication Management.

usage: gen_mads.py FILE [SEED] [ROUNDS]

Contents are random where any value is allowed, plausible where values steer decoding (RMPP type, trap number, counts).
Only the standard library is used. Tables hold one record each, so that decoders that show only the first agree.
"""
# Where tshark 4.0.17 differs on these frames, and why it is not followed:
#   infiniband.mad, .smplid, .smpdirected, .sa.drdlid: tshark's value is all 256 bytes, ours the header itself.
#   infiniband.smpdirected.d: tshark looks for the direction bit in the wrong one of 8 bytes and always shows 0.
#   infiniband.multicastforwardingtable.portmask: tshark shows 16 of the 32 entries of a block.
#   infiniband.rmpp.rresptime, .rmppflags: tshark splits the byte 4:4, the fields are 5 and 3 bits wide (OpenSM, libibmad);
#     equal here because the response time is 0.
#   trap 259: tshark fetches DataValid (2 bytes) as an IPv6 address and gives up: all that follows in the packet is missing,
#     the ICRC too. Ours are rdma.trap.datavalid and rdma.trap.swlidaddr.
#   RMPP ACK, STOP, ABORT: tshark reads a record from bytes that are not one (infiniband.pathrecord.*).
#   infiniband.classportinfo: tshark has the header's name only in PerfMgt, and no ClassPortInfo in CongestionControl.
#   infiniband.rmpp*: tshark decodes no RMPP header in vendor classes 0x30 to 0x4f.
#   infiniband.invariant.crc: tshark leaves it out for vendor and application classes and performance attributes that it does not know.
#   tables of several records: tshark shows the first (none of these frames has one).
import random
import struct
import sys
import zlib

GET, SET, TRAP, REPORT, GETTABLE, GETRESP, TABLERESP = 1, 2, 5, 6, 0x12, 0x81, 0x92

SMP = [0x10, 0x11, 0x12, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x20, 0x30, 0x31, 0x33, 0xFF90]
# attribute of subnet administration and length of its record
SA = {0x01: 72, 0x03: 36, 0x11: 108, 0x12: 68, 0x13: 16, 0x14: 24, 0x15: 72, 0x16: 72, 0x17: 72, 0x18: 25, 0x20: 6,
      0x30: 72, 0x31: 176, 0x33: 72, 0x35: 64, 0x36: 72, 0x38: 52, 0x39: 46, 0x3A: 24, 0x3B: 80, 0xF3: 60}
PERF = [0x01, 0x10, 0x11, 0x12, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F,
        0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37]
CC = [0x01, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]
TRAPS = [64, 65, 66, 67, 68, 69, 128, 129, 130, 131, 144, 145, 256, 257, 258, 259, 1234]
OTHER = [0x05, 0x06, 0x08, 0x09, 0x0F, 0x10, 0x2F, 0x30, 0x4F]
NAME = b"switch-7 port 3"


class Gen:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.frames = []

    def bytes(self, n):
        return bytes(self.r.getrandbits(8) for _ in range(n))

    def mad(self, cls, method, attr, body, status=0, spec=0, mod=None):
        head = struct.pack(">BBBBHHQHHI", 1, cls, 2 if cls in (3, 7, 0x21) else 1, method, status, spec,
                           self.r.getrandbits(64), attr, 0, self.r.getrandbits(32) if mod is None else mod)
        return (head + body).ljust(256, b"\0")[:256]

    def add(self, mad, qp=1):
        """Wrap a datagram as RoCEv2 UD SEND Only with a right ICRC."""
        bth = struct.pack(">BBHII", 100, 0, 0xFFFF, qp, self.r.getrandbits(24))
        deth = struct.pack(">II", 0x80010000 if qp else 0, qp)
        ib = bth + deth + mad
        udp = struct.pack(">HHHH", 49152 + self.r.getrandbits(13), 4791, 8 + len(ib) + 4, 0)
        ip = bytearray(struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp) + len(ib) + 4, len(self.frames) + 1, 0x4000,
                                   64, 17, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])))
        total = sum(struct.unpack(">10H", ip))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        ip[10:12] = struct.pack(">H", ~total & 0xFFFF)
        masked_ip = bytearray(ip)
        masked_ip[1] = masked_ip[8] = 0xFF
        masked_ip[10:12] = b"\xff\xff"
        masked_ib = bytearray(ib)
        masked_ib[4] = 0xFF
        crc = zlib.crc32(b"\xff" * 8 + bytes(masked_ip) + udp[:6] + b"\xff\xff" + bytes(masked_ib))
        eth = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0])
        self.frames.append(eth + bytes(ip) + udp + ib + struct.pack("<I", crc))

    def notice(self, trap, generic=True):
        kind = (0x80 if generic else 0) | self.r.choice([0, 1, 2, 3, 4])
        return (bytes([kind]) + struct.pack(">I", self.r.choice([1, 2, 3, 4]))[1:] + struct.pack(">HHH", trap,
                self.r.getrandbits(16), self.r.getrandbits(16)) + self.bytes(54) + self.bytes(16))

    def node_text(self):
        return NAME.ljust(64, b"\0")

    def smp(self, cls, attr, data):
        if cls == 1:
            body = self.bytes(8) + bytes(32) + data[:64].ljust(64, b"\0")
            return self.mad(cls, self.r.choice([GET, SET, GETRESP]), attr, body)
        body = self.bytes(8) + struct.pack(">HH", 0xFFFF, 0xFFFF) + bytes(28) + data[:64].ljust(64, b"\0")
        hops = self.r.randrange(1, 8)
        path = bytes([0] + [self.r.randrange(1, 37) for _ in range(hops)]).ljust(64, b"\0")
        back = bytes([0] + [self.r.randrange(1, 37) for _ in range(hops)]).ljust(64, b"\0")
        method = self.r.choice([GET, SET, GETRESP])
        return self.mad(cls, method, attr, body + path + back, status=0x8000 if method == GETRESP else 0,
                        spec=self.r.randrange(hops + 1) << 8 | hops)

    def smps(self):
        for cls in (1, 0x81):
            for attr in SMP:
                self.add(self.smp(cls, attr, self.node_text() if attr == 0x10 else self.bytes(64)), qp=0)
            for trap in TRAPS:
                m = bytearray(self.smp(cls, 2, self.notice(trap)))
                m[3] = TRAP
                self.add(bytes(m), qp=0)
        self.add(self.smp(1, 2, self.notice(0x1234, generic=False)), qp=0)

    def sa_head(self, rtype, flags, seg, length, offset):
        """RMPP header without response time, and SA header."""
        return (struct.pack(">BBBBII", 1, rtype, flags, 0, seg, length) + self.bytes(8) +
                struct.pack(">HH", offset, 0) + self.bytes(8))

    def record(self, attr, n):
        data = bytearray(self.bytes(n))
        if attr == 0x11:
            data[44:108] = self.node_text()
        elif attr == 0x3A:
            data[15:17] = bytes([self.r.randrange(1, 4), self.r.randrange(1, 4)])
            data += self.bytes(16 * (data[15] + data[16]))
        elif attr == 0x3B:
            data[16:80] = b"a service".ljust(64, b"\0")
        return bytes(data)

    def sa(self):
        for attr, n in SA.items():
            rec = self.record(attr, n)
            self.add(self.mad(3, GETRESP, attr, self.sa_head(1, 0, 0, 0, (len(rec) + 7) // 8) + rec))
            pad = rec.ljust((len(rec) + 7) // 8 * 8, b"\0")
            self.add(self.mad(3, TABLERESP, attr, self.sa_head(1, 7, 1, 20 + len(pad), len(pad) // 8) + pad))
        for trap in TRAPS:
            self.add(self.mad(3, REPORT, 2, self.sa_head(1, 0, 0, 0, 0) + self.notice(trap)))
        for rtype in (2, 3, 4):
            self.add(self.mad(3, GETTABLE, 0x35, self.sa_head(rtype, 1, 3, 67, 0)))

    def others(self):
        for attr in PERF:
            self.add(self.mad(4, self.r.choice([GET, SET, GETRESP]), attr, bytes(40) + self.bytes(192)))
        for attr in CC:
            body = bytearray(self.bytes(232))
            if attr == 0x13:
                body[8] = self.r.choice([1, 2])
            self.add(self.mad(0x21, self.r.choice([GET, SET, GETRESP]), attr, bytes(body)))
        for cls in OTHER:
            self.add(self.mad(cls, GET, 0x10, self.bytes(232)))

    def write(self, path):
        with open(path, "wb") as f:
            f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
            for i, frame in enumerate(self.frames):
                f.write(struct.pack("<IIII", 1700000000 + i // 1000, i % 1000 * 1000, len(frame), len(frame)) + frame)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    gen = Gen(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 3):
        gen.smps()
        gen.sa()
        gen.others()
    gen.write(sys.argv[1])


main()
