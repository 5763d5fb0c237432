"""What keeps every rule, though it looks like a violation: nothing may fail in any setting. A rule is named by which it could be accused."""
from build import CM, EVERYWHERE
from cm import case as managed
from cm import put


def sums(value, n=99):
    """The first `n` frames of host a with this checksum of their IPv4 headers, or with a wrong one each (None)."""
    def change(frames, _bad):
        left = n
        for i, (us, data, mark) in enumerate(frames):
            if data[29] == 1 and left:
                left -= 1
                frames[i] = us, put(24, value or bytes([data[24] ^ 0x5a, data[25]]))([(us, data, "!")], True)[0][1], mark
        return frames
    return change


def innocent(name, rule, text, change=None):
    return managed("innocent: " + name, rule, text, "", EVERYWHERE, change)


DATA = ">so 0; <ack 0 m=1; >so 1; <ack 1 m=2; >so 2; <ack 2 m=3"

CASES = [
    innocent("checksums of IPv4 headers that hardware computes", "FMT-09", CM + DATA, sums(b"\0\0")),
    innocent("only the first checksums of IPv4 headers are 0", "FMT-09", DATA, sums(b"\0\0", 2)),
    innocent("the DSCP of a host's packets was rewritten by a tap", "FMT-09", CM + DATA, sums(None)),
]
