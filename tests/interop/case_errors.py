"""What must not work: wrong keys, addresses out of bounds, rights that were not given. The wire changes what a side of rping tells the
other."""
import re
import struct

from case_rdmagen import OWN, Rdmagen, behind_wire as guests  # noqa: F401
from frames import OURS, SEND, THEIRS, Hook, changed, PAYLOAD

# In rping's message: address (8 bytes), R_Key (4), size (4), all big-endian.
def wrong_key(frame):
    return (changed(frame, 8, bytes(x ^ 0x5a for x in frame[PAYLOAD + 8:PAYLOAD + 12])),)


def out_of_bounds(frame):
    va, = struct.unpack_from(">Q", frame, PAYLOAD)
    return (changed(frame, 0, struct.pack(">Q", va + 1)),)


class NoRight:
    """The second message tells of the buffer of the first, which the peer may read and not write."""
    def __init__(self, side):
        self.first, self.done, self.hook = None, False, [Hook(side, SEND, 1, self.remember), Hook(side, SEND, 2, self.replace)]

    def remember(self, frame):
        self.first = frame[PAYLOAD:PAYLOAD + 12]
        return (frame,)

    def replace(self, frame):
        self.done = True
        return (changed(frame, 0, self.first),)

    def __call__(self, side, frame):
        frame, = self.hook[0](side, frame)
        return self.hook[1](side, frame)


def naks(us, kind):
    return len(re.findall(r"NAK %s" % kind, us.decoded(None)))


def ours(lab, wire, guest, name, hook, kind="remote access error"):
    """The guest's READ or WRITE does what we did not allow: we refuse, and nothing is read or written."""
    server = guest.start("rping -s -a %s -C 2 -S 3000 -v" % guest.ip)
    guest.listening("rping")
    wire.hook = hook
    try:
        us = Rdmagen(lab, guest, name, "ping", guest.ip, "-C", "2", "-S", "3000", "-V", "--timeout", "5")
        out = us.wait(status=1)
    finally:
        wire.hook = None
    assert hook.done and naks(us, kind) == 1 and "asked for memory that it may not" in out, out + us.decoded()
    seen = server.wait()[1]  # its exit status is at times 0
    assert re.search("failed status (10|9)", seen), seen


def theirs(lab, wire, guest, name, hook, op, kind="remote access error"):
    """Our READ or WRITE does what the guest did not allow."""
    us = Rdmagen(lab, guest, name, "ping", "-s", "-V", "--addr", OWN, "--timeout", "5")
    wire.hook = hook
    try:
        guest.run("timeout 10 rping -c -a %s -C 2 -S 3000 -V" % OWN)
    finally:
        wire.hook = None
    out = us.wait(status=1)
    assert hook.done and naks(us, kind) == 1, out + us.decoded()
    assert re.search("%s completed with REM_(ACCESS|INV_REQ)_ERR" % op, out), out


def case_error_guest_reads_with_a_wrong_key(lab, wire, guest):
    ours(lab, wire, guest, "o_rkey_read", Hook(OURS, SEND, 1, wrong_key))


def case_error_guest_reads_out_of_bounds(lab, wire, guest):
    ours(lab, wire, guest, "o_bounds_read", Hook(OURS, SEND, 1, out_of_bounds))


def case_error_guest_writes_with_a_wrong_key(lab, wire, guest):
    ours(lab, wire, guest, "o_rkey_write", Hook(OURS, SEND, 2, wrong_key))


def case_error_guest_writes_out_of_bounds(lab, wire, guest):
    ours(lab, wire, guest, "o_bounds_write", Hook(OURS, SEND, 2, out_of_bounds))


def case_error_guest_writes_where_it_may_read(lab, wire, guest):
    ours(lab, wire, guest, "o_right", NoRight(OURS))


def case_error_rdmagen_reads_with_a_wrong_key(lab, wire, guest):
    theirs(lab, wire, guest, "t_rkey_read", Hook(THEIRS, SEND, 1, wrong_key), "RDMA_READ")


def case_error_rdmagen_reads_out_of_bounds(lab, wire, guest):
    theirs(lab, wire, guest, "t_bounds_read", Hook(THEIRS, SEND, 1, out_of_bounds), "RDMA_READ")


def case_error_rdmagen_writes_with_a_wrong_key(lab, wire, guest):
    theirs(lab, wire, guest, "t_rkey_write", Hook(THEIRS, SEND, 2, wrong_key), "RDMA_WRITE")


def case_error_rdmagen_writes_out_of_bounds(lab, wire, guest):
    theirs(lab, wire, guest, "t_bounds_write", Hook(THEIRS, SEND, 2, out_of_bounds), "RDMA_WRITE")
