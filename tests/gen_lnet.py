#!/usr/bin/env python3
"""Write a capture of LNet over RDMA (o2iblnd): gen_lnet.py FILE. No real one was to be had: the messages are laid out as tshark reads them, in
frames of captures/nvme_discover_1.pcap with ICRCs made anew: a connection by CM, then transfers by a little-endian and by a big-endian sender."""
import struct
import sys

sys.path.insert(0, "tests")
import judge  # noqa: E402

PSN = [11266219, 4239084]  # that the REP and the REQ of the frames state
CLIENT, SERVER = 0, 1
ADDRESSES = [bytes((192, 168, 77, n)) for n in (1, 2)]


class Capture:
    """Frames between two hosts; each SEND is acknowledged."""

    def __init__(self, frames):
        self.frames, self.out, self.psn, self.ts = frames, [], list(PSN), frames[2].ts

    def setup(self):
        """REQ, REP and RTU, for the port of LNet, with its private data."""
        for n, frame in enumerate(self.frames[:3]):
            p = frame.copy()
            mad = p.bth + 20
            body = message("<", 0xc0 + n, struct.pack("<HHI", 128, 256, 4096))
            at = mad + (200, 60, 0)[n]
            if n < 2:
                p.data[at:at + len(body)] = body
            if n == 0:
                p.put(bytes(p.data).index(bytes.fromhex("0000000001061144")), 8, 0x01060000 | 987)
            self.out.append(p.seal())

    def send(self, side, body):
        """A SEND Only of the frames with another message, and its acknowledgement."""
        self.ts += 1000000
        for frame, more in ((self.frames[(3, 11)[side]], 0), (self.frames[(4, 8)[side]], 1000)):
            p = frame.copy()
            p.ts, p.opcode, p.psn = self.ts + more, (4, 17)[more > 0], self.psn[side]
            if more:
                p.put(p.bth + 13, 3, self.psn[side] - PSN[side] + 1)
            else:
                p.flags = (p.flags & ~0x30) | (-len(body) % 4) << 4
                p.resize(body + bytes(-len(body) % 4))
            p.put(18, 2, len(self.out) + 1)
            self.out.append(p.seal())
        self.psn[side] += 1


def nid(address, order):
    return struct.pack(order + "Q", 5 << 48 | int.from_bytes(address, "big"))


def message(order, kind, body):
    head = struct.pack(order + "IHBBII", 0x0be91b91, 0x12, kind, 3, 48 + len(body), 0)
    return head + nid(ADDRESSES[0], order) + struct.pack(order + "Q", 0x11223344) + nid(ADDRESSES[1], order) + struct.pack(order + "Q", 0x55667788) + body


def lnet(order, what, length):
    """An LNet header."""
    return nid(ADDRESSES[1], order) + nid(ADDRESSES[0], order) + struct.pack(order + "IIII", 12345, 12345, what, length) + bytes(40)


def transfers(capture, order):
    """A PUT and a GET with an error, a message with its data, a PUT that is refused, and credits."""
    def pack(form, *values):
        return struct.pack(order + form, *values)

    for side, kind, body in (
            (CLIENT, 0xd2, lnet(order, 1, 2048) + pack("Q", 0xa1)),
            (SERVER, 0xd4, pack("QQIIIQ", 0xa1, 0xb1, 0x4711, 1, 2048, 0x7f0000001000)),
            (CLIENT, 0xd5, pack("Qi", 0xb1, 0)),
            (CLIENT, 0xd6, lnet(order, 2, 4096) + pack("QII", 0xa2, 0x4712, 2) + pack("IQ", 1024, 0x7f0000002000) + pack("IQ", 3072, 0x7f0000004000)),
            (SERVER, 0xd7, pack("Qi", 0xa2, -5)),
            (CLIENT, 0xd1, lnet(order, 1, 16) + bytes(range(16))),
            (SERVER, 0xd3, pack("Qi", 0xa3, -12)),
            (CLIENT, 0xd0, b"")):
        capture.send(side, message(order, kind, body))


made = Capture(judge.read_pcap("captures/nvme_discover_1.pcap"))
made.setup()
for byte_order in "<>":
    transfers(made, byte_order)
judge.write_pcap(sys.argv[1], made.out)
