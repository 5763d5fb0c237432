"""The captures of a network, as each tap would have them: changed after the simulation wrote them."""
import copy
import re
import struct

EPOCH = 1767225600 * 10**9
HEAD = 24  # bytes of a file's header
RECORD = struct.Struct("<IIII")
REQUESTER = bytes((2, 0, 50, 50, 50, 1))  # MAC address of the first host
FIRST_HOST = ("50.50.50.1 ", "2001:db8::1 ")  # its addresses, before a QPN
HOST = re.compile(r"(?:50\.60\.0\.(\d+)|2001:db8:0:3c::([0-9a-f]+)) ")  # address of a host of a fabric


class Capture:
    """A pcap file with nanoseconds: frames (time in ns, length on the wire, bytes)."""

    def __init__(self, path):
        data, self.path, self.frames, at = open(path, "rb").read(), path, [], HEAD
        assert struct.unpack_from("<I", data)[0] == 0xa1b23c4d, path
        self.head, size, unpack = data[:HEAD], len(data), RECORD.unpack_from
        while at < size:
            s, ns, kept, length = unpack(data, at)
            self.frames.append((s * 10**9 + ns, length, data[at + 16:at + 16 + kept]))
            at += 16 + kept

    def copy(self):
        """Another one with the same frames, which may get others."""
        c = copy.copy(self)
        c.written = c.frames
        return c

    def write(self, path):
        """Nothing if the frames are those of the file that was read."""
        if self.frames is self.written:
            return
        out, pack = [self.head], RECORD.pack
        for t, length, data in self.frames:
            out += (pack(t // 10**9, t % 10**9, len(data), length), data)
        with open(path, "wb") as f:
            f.write(b"".join(out))
        self.path = path


class Clock:
    """A clock that is ahead by `offset` ns and runs faster by `skew` parts per billion."""

    def __init__(self, offset=0, skew=0):
        self.offset, self.skew = offset, skew

    def reads(self, t):
        return t + self.offset + (t - EPOCH) * self.skew // 10**9

    def true(self, t):
        return EPOCH + (t - EPOCH - self.offset) * 10**9 // (10**9 + self.skew)


def asked_at(account):
    """The tap at the side that asks. The requests of the other side (`-b`) leave from the tap that is named after their responder. In a fabric it
    has the name of the host."""
    host = HOST.match(account["requester"] + " ")
    if host:
        return "h%d" % (int(host[1]) if host[1] else int(host[2], 16))
    return "requester" if account["requester"].startswith(FIRST_HOST) else "responder"


def drifting(rng, offsets):
    return Clock(rng.choice(offsets), rng.choice((0, 0, 20000, -50000)))


def set_clock(c, clock):
    offset, skew = clock.offset, clock.skew
    if offset or skew:
        c.frames = [(t + offset + (t - EPOCH) * skew // 10**9, n, d) for t, n, d in c.frames]


def cut_head(c, rng):
    c.frames = c.frames[rng.randrange(1, len(c.frames) // 2 + 2):]


def cut_tail(c, rng):
    c.frames = c.frames[:rng.randrange(len(c.frames) // 2, len(c.frames) + 1)]


def sample(c, rng):
    part = rng.choice((0.5, 0.9, 0.99))
    c.frames = [f for f in c.frames if rng.random() < part]


def one_way(c, rng):
    want = rng.random() < 0.5
    c.frames = [f for f in c.frames if (f[2][6:12] == REQUESTER) == want]


def slice64(c, rng):
    del rng
    c.frames = [(t, n, d[:64]) for t, n, d in c.frames]


def as_it_is(c, rng):
    del c, rng


# A view: its name, the taps whose captures it has, what is done to them, the share of lost time that must be in its true state (None: reported).
VIEWS = (
    ("both ends", ("requester", "responder"), as_it_is, 0.98),
    ("requester", ("requester",), as_it_is, 0.90),
    ("both sliced", ("requester", "responder"), slice64, None),
    ("requester sliced", ("requester",), slice64, None),
    ("responder", ("responder",), as_it_is, None),
    ("switch port", (), as_it_is, None),  # of fabrics alone
    ("middle", ("middle",), as_it_is, None),
    ("requester, one way", ("requester",), one_way, None),
    ("requester, head cut", ("requester",), cut_head, None),
    ("requester, tail cut", ("requester",), cut_tail, None),
    ("requester, sampled", ("requester",), sample, None),
)
