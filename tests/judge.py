"""Captures changed on purpose: reading and writing pcap, field access by offset, ICRC made right again. Knows nothing of the
project's own code."""
import json
import os
import struct
import subprocess
import zlib

import shared

BUILD = os.environ.get("BUILD", "build")


class Packet:
    """A RoCEv2 packet over Ethernet (no VLAN) in a bytearray, with its time in nanoseconds."""

    def __init__(self, ts, data):
        self.ts, self.data = ts, bytearray(data)
        self.cut = None  # bytes captured; None: all
        ethertype = struct.unpack_from(">H", data, 12)[0] if len(data) > 14 else 0
        self.v4 = ethertype == 0x0800
        self.udp = 34 if self.v4 else 54
        proto = data[23] if self.v4 else data[20] if ethertype == 0x86dd else 0
        self.roce = (ethertype in (0x0800, 0x86dd) and proto == 17 and len(data) >= self.udp + 24 and
                     struct.unpack_from(">H", data, self.udp + 2)[0] == 4791)
        self.bth = self.udp + 8

    def copy(self):
        return Packet(self.ts, bytes(self.data))

    def get(self, off, n):
        return int.from_bytes(self.data[off:off + n], "big")

    def put(self, off, n, value):
        self.data[off:off + n] = (value & (1 << 8 * n) - 1).to_bytes(n, "big")

    opcode = property(lambda s: s.data[s.bth], lambda s, v: s.put(s.bth, 1, v))
    flags = property(lambda s: s.data[s.bth + 1], lambda s, v: s.put(s.bth + 1, 1, v))
    pkey = property(lambda s: s.get(s.bth + 2, 2), lambda s, v: s.put(s.bth + 2, 2, v))
    dqpn = property(lambda s: s.get(s.bth + 5, 3), lambda s, v: s.put(s.bth + 5, 3, v))
    psn = property(lambda s: s.get(s.bth + 9, 3), lambda s, v: s.put(s.bth + 9, 3, v))
    src = property(lambda s: bytes(s.data[26:30] if s.v4 else s.data[22:38]))

    def resize(self, payload):
        """Replace what lies between the BTH and the ICRC; lengths follow."""
        self.data = self.data[:self.bth + 12] + bytearray(payload) + bytearray(4)
        self.put(self.udp + 4, 2, len(self.data) - self.udp)
        if self.v4:
            self.put(16, 2, len(self.data) - 14)
        else:
            self.put(18, 2, len(self.data) - 54)

    body = property(lambda s: bytes(s.data[s.bth + 12:s.udp + s.get(s.udp + 4, 2) - 4]))

    def seal(self):
        """IPv4 header checksum and ICRC."""
        d, end = self.data, self.udp + self.get(self.udp + 4, 2)
        if self.v4:
            self.put(24, 2, 0)
            s = sum(struct.unpack(">10H", d[14:34]))
            while s >> 16:
                s = (s & 0xffff) + (s >> 16)
            self.put(24, 2, ~s)
        m = bytearray(d[14:end - 4])
        if self.v4:
            m[1] = m[8] = m[10] = m[11] = 0xff
        else:
            m[0] |= 0x0f
            m[1] = m[2] = m[3] = m[7] = 0xff
        u = self.udp - 14
        m[u + 6] = m[u + 7] = m[u + 8 + 4] = 0xff
        d[end - 4:end] = struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(m)) & 0xffffffff)
        return self


def block(kind, body):
    """A block of pcapng."""
    body += bytes(-len(body) % 4)
    return struct.pack("<2I", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def write_dropped(path, packets, drops):
    """A pcapng file that says, behind the frames, that its interface dropped so many."""
    blocks = block(0x0a0d0d0a, struct.pack("<I2Hq", 0x1a2b3c4d, 1, 0, -1)) + block(1, struct.pack("<2HI3H", 1, 0, 0, 9, 1, 9) + bytes(6))
    for p in packets:
        blocks += block(6, struct.pack("<5I", 0, p.ts >> 32, p.ts & 0xffffffff, len(p.data), len(p.data)) + p.data)
    with open(path, "wb") as f:
        f.write(blocks + block(5, struct.pack("<3I2HQI", 0, 0, 0, 5, 8, drops, 0)))


def read_pcap(path):
    raw = open(path, "rb").read()
    magic = struct.unpack_from("<I", raw)[0]
    assert magic in (0xa1b2c3d4, 0xa1b23c4d), path
    scale = 1000 if magic == 0xa1b2c3d4 else 1
    at, packets = 24, []
    while at < len(raw):
        sec, frac, cap, _ = struct.unpack_from("<IIII", raw, at)
        packets.append(Packet(sec * 10 ** 9 + frac * scale, raw[at + 16:at + 16 + cap]))
        at += 16 + cap
    return packets


def write_pcap(path, packets):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 262144, 1))
        for p in packets:
            data = bytes(p.data[:p.cut])
            f.write(struct.pack("<IIII", p.ts // 10 ** 9, p.ts % 10 ** 9, len(data), len(p.data)) + data)


checked = {}


def check(path, *options):
    """Exit status and JSON of `rdmatrace check`, which is asked once for the same packets and options."""
    with open(path, "rb") as f:
        key = shared.digest(f.read(), *options)
    if key not in checked or "--counters" in options:  # those are in files of their own
        r = subprocess.run([BUILD + "/rdmatrace", "check", "-T", "json", *options, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        checked[key] = r.returncode, r.stdout
    status, out = checked[key]
    return status, json.loads(out) if out else None


def judged():
    """What tests/judge.test has found, which is run once for itself and for tests/matrix.test: a folder with its output, its exit status, and in the
    files "matrix" and "matrix.notes" what the taps say."""
    def run(folder):
        r = subprocess.run(["tests/judge.test"], env=dict(os.environ, MATRIX=folder + "/matrix"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for name, text in (("output", r.stdout), ("status", str(r.returncode))):
            with open(folder + "/" + name, "w", encoding="utf-8") as f:
                f.write(text)
    return shared.once("judge", run)


def failed(result, causes=False):
    """{rule: frames} of what failed; with `causes` those that it was wrong because of, too."""
    rules = {}
    for f in result["findings"]:
        if f["verdict"] == "fail":
            rules.setdefault(f["rule"], []).extend(f["frames"] + (f["cause_frames"] if causes else []))
    return rules
