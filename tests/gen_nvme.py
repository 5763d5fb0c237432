"""Exchanges of an NVMe controller's admin queue that no real one was captured with: commands, data of pseudo-random bytes and results, written as the packets
that the first queue pair of captures/nvme_discover_1.pcap would have carried after its controller was ready."""
import random
import struct

from judge import read_pcap, write_pcap

HEAD, READ, DATA, COMMAND, WRITE, RESPONSE, ACK = 37, 6, 7, 62, 64, 12, 63  # frames of that capture
FABRICS, GET_LOG, IDENTIFY, SET, GET, EVENT = 0x7f, 0x02, 0x06, 0x09, 0x0a, 0x0c


class Queue:
    def __init__(self, seed):
        self.source = read_pcap("captures/nvme_discover_1.pcap")
        self.packets = self.source[:HEAD]
        self.host, self.target = self.source[34 - 1].psn, self.source[36 - 1].psn  # the last PSN of each side's requests
        self.random, self.cid, self.key = random.Random(seed), 0x100, 0x9000

    def put(self, frame, payload, psn):
        p = self.source[frame - 1].copy()
        p.resize(payload)
        p.ts, p.psn = self.packets[-1].ts + 10000, psn
        self.packets.append(p.seal())

    def command(self, opcode, dwords=(), length=0, data=None, result=0, nsid=0, sgl=None, at=()):
        """A command with these dwords from 10 on; `length`: bytes of data, all of them random unless `data` begins with them, and
        but for those that `at` places; `nsid`: of a fabrics command, its type; `sgl`: 16 bytes, else a keyed data block."""
        body = (data or b"") + self.random.randbytes(max(0, length - len(data or b"")))
        for place, some in at:
            body = body[:place] + some + body[place + len(some):]
        self.cid += 1
        self.key += 1
        address = 0xffff888000000000 + 0x10000 * self.cid
        sgl = sgl or struct.pack("<Q", address) + len(body).to_bytes(3, "little") + struct.pack("<IB", self.key, 0x40)
        sqe = struct.pack("<BBHI16x", opcode, 0x40, self.cid, nsid) + sgl + struct.pack("<6I", *(tuple(dwords) + (0,) * 6)[:6])
        self.host += 1
        self.put(COMMAND, sqe, self.host)
        reth = struct.pack(">QII", address, self.key, len(body))
        if body and (nsid if opcode == FABRICS else opcode) & 2:
            self.target += 1
            self.put(WRITE, reth + body, self.target)
        elif body:
            self.target += 1
            self.put(READ, reth, self.target)
            self.put(DATA, self.source[DATA - 1].body[:4] + body, self.target)
        self.target += 1
        self.put(RESPONSE, struct.pack("<QHHHH", result, self.cid, 0, self.cid, 0), self.target)


# Feature identifiers whose value is in a dword, and those with data: bytes.
FEATURES = (0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
            0x80, 0x81, 0x82, 0x83, 0x84)
FEATURE_DATA = {0x03: 64, 0x0c: 256, 0x0e: 8, 0x13: 512, 0x16: 512, 0x81: 16}
# Log pages: bytes, and how they begin where what follows depends on it.
LOGS = {0x01: (192, b""), 0x02: (512, b""), 0x03: (512, b""), 0x04: (64, b""), 0x05: (1024, b""), 0x06: (564, b""), 0x07: (1024, b""), 0x08: (1024, b""), 0x09: (512, b""),
        0x0a: (512, b""), 0x0b: (64, struct.pack("<Q", 3)), 0x0c: (128, struct.pack("<QH6x", 5, 2)), 0x0e: (256, b""), 0x0f: (64, struct.pack("<Q", 3)),
        0x70: (3072, struct.pack("<QQH", 7, 2, 0)), 0x80: (64, b""), 0x81: (512, b"")}


def admin(seed=1):
    """An exchange for each structure of Identify, log page, feature and kind of event."""
    q = Queue(seed)
    texts = [(4, b"S3R1AL".ljust(20)), (24, b"a model".ljust(40)), (768, b"nqn.2024-01.lab:x".ljust(256, b"\0"))]
    for cns, at in ((0, [(25, b"\3")]), (1, texts + [(263, b"\3")])):  # formats, power states: four
        q.command(IDENTIFY, (cns, 0x1234, 0, 0, 0x15), 4096, nsid=1, at=at)
    q.command(IDENTIFY, (2,), 4096, data=struct.pack("<4I", 1, 2, 7, 0) + bytes(4080))
    for lid, (length, begin) in LOGS.items():
        numd = length // 4 - 1
        at = [(a + 1024 * n, b"text".ljust(k, b"\0")) for n in (1, 2) for a, k in ((32, 32), (256, 256), (512, 256))]
        at = at + [(1024, b"\1"), (2048, b"\3")] if lid == 0x70 else ()  # one entry of RDMA, one of TCP
        q.command(GET_LOG, (lid | 0xa00 | 0x8000 | (numd & 0xffff) << 16, 0x4560000, 0, 0, 0x2b), length, data=begin, nsid=0xffffffff, at=at)
    for fid in FEATURES:
        for _ in range(2):
            values = [q.random.getrandbits(32) for _ in range(3)]
            q.command(SET, (fid | 1 << 31, values[0], values[1], values[2], 0x33), FEATURE_DATA.get(fid, 0), nsid=1, result=q.random.getrandbits(32))
            q.command(GET, (fid | 0x100, values[1], 0, 0, 0x44), FEATURE_DATA.get(fid, 0), nsid=1, result=q.random.getrandbits(32))
    for kind in (0, 1, 2, 3, 6, 7):
        q.command(EVENT, result=kind | q.random.getrandbits(13) << 8)
    for kind, length in ((5, 32), (6, 32), (8, 0)):  # Authentication Send and Receive, Disconnect
        q.command(FABRICS, (0x00e90101, 32), length, nsid=kind)
    return q.packets


def blocks(seed=1):
    """The same queue as one of I/O: each command that moves blocks, and each kind of SGL descriptor."""
    q = Queue(seed)
    for frame, at in ((1, 20 + 200 + 2), (4, 12 + 42)):  # the queue's number in the REQ's private data, and in Connect
        p = q.packets[frame - 1]
        p.put(p.bth + at, 2, 0x0100)
        p.seal()
    for opcode in (0x00, 0x01, 0x02, 0x04, 0x05, 0x08, 0x09, 0x0c, 0x0d, 0x0e, 0x11, 0x15, 0x79, 0x7a, 0x7d):
        for _ in range(3):
            q.command(opcode, [q.random.getrandbits(32) for _ in range(6)], 64 if opcode & 3 else 0, nsid=1)
    for kind in (0x00, 0x01, 0x10, 0x20, 0x30, 0x40, 0x4f, 0x50):
        q.command(0x01, (7, 0, 3), 0, nsid=1, sgl=q.random.randbytes(15) + bytes([kind]))
    return q.packets


def write(folder):
    """The names of the captures written there."""
    paths = []
    for make in (admin, blocks):
        paths.append("%s/nvme_%s_made.pcap" % (folder, make.__name__))
        write_pcap(paths[-1], make())
    return paths
