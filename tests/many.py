"""A capture of many RC connections that are all open at once: many.capture(path, connections). In each round every connection sends
its requests, 16 SENDs and WRITEs, then every connection gets its ACKs, so that each has 16 outstanding meanwhile. No packet of connection
management: who belongs to whom is told by PSNs."""
import random
import struct
import sys
import zlib

OUTSTANDING = 16
SEND_FIRST, SEND_MIDDLE, SEND_ONLY, WRITE_ONLY, ACK = 0, 1, 4, 10, 17


def checksum(header):
    s = sum(struct.unpack(">10H", header))
    while s >> 16:
        s = (s & 0xffff) + (s >> 16)
    return ~s & 0xffff


class End:
    """One direction of a connection: the bytes that all its packets have in common."""

    def __init__(self, src, dst, qpn, psn, sport):
        self.addr, self.qpn, self.psn, self.sport, self.headers = struct.pack(">II", src, dst), qpn, psn, sport, {}

    def frame(self, opcode, psn, ack, body):
        length = 20 + 8 + 12 + len(body) + 4
        if length not in self.headers:
            ip = struct.pack(">BBHHHBBH", 0x45, 0, length, 0, 0x4000, 64, 17, 0) + self.addr
            ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
            udp = struct.pack(">HHHH", self.sport, 4791, length - 20, 0)
            masked = b"\xff" * 8 + ip[:1] + b"\xff" + ip[2:8] + b"\xff" + ip[9:10] + b"\xff\xff" + ip[12:] + udp[:6] + b"\xff\xff"
            self.headers[length] = bytes(6) + b"\x02" + bytes(4) + b"\x01\x08\x00" + ip + udp, zlib.crc32(masked)
        head, crc = self.headers[length]
        bth = struct.pack(">BBHII", opcode, 0x40, 0xffff, self.qpn, ack << 31 | psn)
        icrc = zlib.crc32(body, zlib.crc32(bth[:4] + b"\xff" + bth[5:], crc))
        return head + bth + body + struct.pack("<I", icrc)


def connection(n, rng, hosts):
    a, b = rng.sample(range(hosts), 2)
    psn, sport = rng.getrandbits(24), 49152 + rng.getrandbits(14)
    return (End(0x0a000001 + a, 0x0a000001 + b, 0x100 + n, psn, sport), End(0x0a000001 + b, 0x0a000001 + a, 0x100000 + n, psn, sport))


def request(end, i):
    psn = (end.psn + i) & 0xffffff
    if i % 4 == 3:
        return end.frame(WRITE_ONLY, psn, 1, struct.pack(">QII", 0x1000 * i, 0x1234, 8) + bytes(8))
    return end.frame(SEND_ONLY, psn, 1, bytes(8))


def capsule(end, i):
    """Request number i: a Read of NVMe, which offers 4096 bytes and is not answered."""
    sqe = struct.pack("<BBHI16xQ", 2, 0x40, i, 1, 0x100000 + 4096 * i) + (4096).to_bytes(3, "little") + struct.pack("<IBQI12x", 0x1000 + i, 0x40, 8 * i, 7)
    return end.frame(SEND_ONLY, (end.psn + i) & 0xffffff, 1, sqe)


def unfinished(end, i):
    """Likewise, but for two Reads: from number 2 on the packets of one command whose last packet never comes."""
    if i < 2:
        return capsule(end, i)
    return end.frame(SEND_FIRST if i == 2 else SEND_MIDDLE, (end.psn + i) & 0xffffff, 0, capsule(end, 2)[54:118] + bytes(960) if i == 2 else bytes(1024))


def stream(n, start):
    """Segments of an iWARP connection of NVMe: MPA request and reply, or (not `start`) an FPDU that begins a SEND whose end never comes."""
    a, b, port = struct.pack(">I", 0x0a000001 + n // 20000), b"\x0a\x7f\x00\x01", 20000 + n % 20000

    def segment(src, dst, sport, dport, seq, body):
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 40 + len(body), 0, 0x4000, 64, 6, 0) + src + dst
        tcp = struct.pack(">HHIIBBHHH", sport, dport, seq, 1, 0x50, 0x10, 0xffff, 0, 0)
        return bytes(6) + b"\x02" + bytes(4) + b"\x01\x08\x00" + ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:] + tcp + body

    private = struct.pack("<HHHH24x", 0, 1, 32, 31)
    if start:
        return [segment(a, b, port, 4420, 1, b"MPA ID Req Frame" + struct.pack(">BBH", 0, 1, len(private)) + private),
                segment(b, a, 4420, port, 1, b"MPA ID Rep Frame" + struct.pack(">BBH", 0, 1, len(private)) + private)]
    fpdu = struct.pack(">BBIIII", 0x01, 0x43, 0, 0, 1, 0) + bytes(1000)
    return [segment(a, b, port, 4420, 1 + 20 + len(private), struct.pack(">H", len(fpdu)) + fpdu + bytes(-(2 + len(fpdu)) % 4) + bytes(4))]


def streams(path, connections):
    ts = 0
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1))
        for start in (True, False):
            for n in range(connections):
                for frame in stream(n, start):
                    ts += 1000
                    f.write(struct.pack("<IIII", 1700000000 + ts // 10**9, ts % 10**9, len(frame), len(frame)) + frame)


def capture(path, connections, rounds=2, skip=0, hosts=40, seed=1, request=request, skip_all=False):
    """`skip`: when all was acknowledged, the first connection sends one more request, and skips so many PSNs before it; with `skip_all` each
    of them does. Returns the number of packets."""
    rng = random.Random(seed)
    ends = [connection(n, rng, hosts) for n in range(connections)]
    ts = n = 0
    with open(path, "wb") as f:
        def put(frame):
            nonlocal ts, n
            ts, n = ts + 1000, n + 1
            f.write(struct.pack("<IIII", 1700000000 + ts // 10**9, ts % 10**9, len(frame), len(frame)) + frame)

        f.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1))
        for r in range(rounds):
            for i in range(r * OUTSTANDING, (r + 1) * OUTSTANDING):
                for forth, _ in ends:
                    put(request(forth, i))
            for i in range(r * OUTSTANDING, (r + 1) * OUTSTANDING):
                for forth, back in ends:
                    put(back.frame(ACK, (forth.psn + i) & 0xffffff, 0, struct.pack(">I", 0x1f << 24 | i + 1)))
        if skip:
            for forth, _ in ends if skip_all else ends[:1]:
                put(request(forth, rounds * OUTSTANDING + skip))
    return n


if __name__ == "__main__":  # what, file, connections: a caller whose own memory stays small
    kind, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if kind == "streams":
        streams(name, count)
    else:
        capture(name, count, rounds=1, request={"commands": capsule, "messages": unfinished}[kind])
