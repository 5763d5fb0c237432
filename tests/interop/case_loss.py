"""rdmagen ping against rping through a wire that loses, repeats, swaps or spoils chosen packets: all data arrives, and both sides
behaved by the rules."""
import re

from case_rdmagen import OWN, Rdmagen, behind_wire as guests, pings as ping, serve_pings as serve, wrapped  # noqa: F401
from counters import SILENCE
from frames import (ACK, OURS, PsnShift, READ_REQ, RESP_FIRST, RESP_LAST, RESP_MIDDLE, SEND, Silence, THEIRS, WRITE_FIRST, WRITE_LAST, WRITE_MIDDLE, is_roce,
                    opcode)

SIZE = 20000         # 20 packets


class Impair:
    """Does something to the n-th packet of a kind that comes from one side."""
    def __init__(self, side, opcode, n, what):
        self.side, self.opcode, self.n, self.what = side, opcode, n, what
        self.seen, self.done, self.held = 0, False, None

    def __call__(self, side, frame):
        if side != self.side or not is_roce(frame):
            return (frame,)
        if self.held:
            held, self.held = self.held, None
            return (frame, held)
        if opcode(frame) == self.opcode and not self.done:
            self.seen += 1
            if self.seen == self.n:
                self.done = True
                return getattr(self, self.what)(frame)
        return (frame,)

    def lose(self, frame):
        return ()

    def repeat(self, frame):
        return (frame, frame)

    def swap(self, frame):
        self.held = frame
        return ()

    def spoil(self, frame):
        return (frame[:-20] + bytes([frame[-20] ^ 0x10]) + frame[-19:],)


def client(lab, wire, guest, side, opcode, n, what):
    """rdmagen is the client: it sends READ responses, the guest WRITEs."""
    name = "client%d%02x%d%s" % (side, opcode, n, what)
    wire.hook = Impair(side, opcode, n, what)
    try:
        ping(guest, 3, SIZE, guest.ip, lab, name, "--profile", "rxe", "--timeout", "30",
             spoiled=int(what == "spoil" and side == THEIRS))
        assert wire.hook.done, "the packet to %s never came" % what
    finally:
        wire.hook = None


def server(lab, wire, guest, side, opcode, n, what):
    """rdmagen is the server: it sends WRITEs, the guest READ responses."""
    name = "server%d%02x%d%s" % (side, opcode, n, what)
    wire.hook = Impair(side, opcode, n, what)
    try:
        serve(guest, 3, SIZE, OWN, lab, name, "--profile", "rxe", "--timeout", "30",
             spoiled=int(what == "spoil" and side == THEIRS))
        assert wire.hook.done, "the packet to %s never came" % what
    finally:
        wire.hook = None


CASES = [
    (client, OURS, RESP_FIRST, 1, "lose"), (client, OURS, RESP_MIDDLE, 5, "lose"), (client, OURS, RESP_LAST, 1, "lose"),
    (client, OURS, RESP_MIDDLE, 7, "spoil"), (client, OURS, RESP_MIDDLE, 3, "swap"), (client, OURS, SEND, 2, "lose"),
    (client, THEIRS, WRITE_FIRST, 1, "lose"), (client, THEIRS, WRITE_MIDDLE, 5, "lose"), (client, THEIRS, WRITE_LAST, 2, "lose"),
    (client, THEIRS, WRITE_MIDDLE, 9, "repeat"), (client, THEIRS, WRITE_MIDDLE, 4, "swap"), (client, THEIRS, WRITE_MIDDLE, 6, "spoil"),
    (client, THEIRS, READ_REQ, 2, "lose"), (client, THEIRS, READ_REQ, 2, "repeat"), (client, OURS, ACK, 2, "lose"),
    (client, THEIRS, SEND, 2, "repeat"),
    (server, OURS, WRITE_FIRST, 1, "lose"), (server, OURS, WRITE_MIDDLE, 5, "lose"), (server, OURS, WRITE_LAST, 2, "lose"),
    (server, OURS, WRITE_MIDDLE, 9, "repeat"), (server, OURS, WRITE_MIDDLE, 4, "swap"), (server, OURS, WRITE_MIDDLE, 6, "spoil"),
    (server, OURS, READ_REQ, 2, "lose"), (server, OURS, READ_REQ, 2, "repeat"), (server, THEIRS, ACK, 2, "lose"),
    (server, THEIRS, RESP_FIRST, 2, "lose"), (server, THEIRS, RESP_MIDDLE, 5, "lose"), (server, THEIRS, RESP_LAST, 1, "lose"),
    (server, THEIRS, RESP_MIDDLE, 7, "spoil"), (server, THEIRS, RESP_MIDDLE, 3, "swap"), (server, OURS, SEND, 2, "repeat"),
]
NAMES = {SEND: "send", READ_REQ: "read_request", WRITE_FIRST: "write_first", WRITE_MIDDLE: "write_middle", WRITE_LAST: "write_last",
         RESP_FIRST: "response_first", RESP_MIDDLE: "response_middle", RESP_LAST: "response_last", ACK: "ack"}


def expected(side, op, what):
    """What the guest counts: its own repetitions, our packets out of order, or our repetitions."""
    request = op in (SEND, READ_REQ, WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST)
    if (side == THEIRS) == request:  # on its way from the guest, or to it as an answer
        return {} if what == "repeat" else {"completer_retry_err": range(1, 60), "rcvd_seq_err": range(0, 4)}
    if side == THEIRS or what == "repeat":
        return {"duplicate_request": range(1, 200)}
    return {"out_of_seq_request": range(1, 4)} if op in (WRITE_FIRST, WRITE_MIDDLE) else {}


def make(role, side, op, n, what):
    def case(lab, wire, guest):
        lab.expect(**expected(side, op, what))
        role(lab, wire, guest, side, op, n, what)
    case.__doc__ = role.__doc__
    return case


for c in CASES:
    globals()["case_%s_%s_of_%s_with_ping_%s" % (c[4], NAMES[c[2]], "rdmagen" if c[1] == OURS else "guest", c[0].__name__)] = make(*c)


# What the guest requests begins with READ (20 packets), SEND, WRITE (20 packets).
def case_psn_wraps_in_response_of_rdmagen(lab, wire, guest):
    ping(guest, 2, SIZE, guest.ip, lab, "wrap_response", "--psn", str(0x1000000 - 10))
    wrapped(lab.path("wrap_response.pcapng"), RESP_MIDDLE)


def case_psn_wraps_in_write_of_guest(lab, wire, guest):
    ping(guest, 2, SIZE, guest.ip, lab, "wrap_write", "--psn", str(0x1000000 - 31))
    wrapped(lab.path("wrap_write.pcapng"), WRITE_MIDDLE)


def case_psn_wraps_in_response_of_guest(lab, wire, guest):
    wrap(lab, wire, guest, 0x1000000 - 10, RESP_MIDDLE)


def case_psn_wraps_in_write_of_rdmagen(lab, wire, guest):
    wrap(lab, wire, guest, 0x1000000 - 31, WRITE_MIDDLE)


def wrap(lab, wire, guest, first, op):
    wire.hook = shift = PsnShift(first)
    try:
        serve(guest, 2, SIZE, OWN, lab, "wrap%d" % first, "--profile", "rxe")
    finally:
        wire.hook = None
    wrapped(lab.path("wrap%d.pcapng" % first), op)


def case_peer_dies_in_mid_write(lab, wire, guest):
    """Nothing comes through from the guest's fifth middle packet on."""
    peer = guest.start("rping -s -a %s -S %d" % (guest.ip, SIZE))
    guest.listening("rping")
    lab.expect(**SILENCE)
    wire.hook = Silence(THEIRS, WRITE_MIDDLE, 5)
    try:
        out = Rdmagen(lab, guest, "dies_client", "ping", guest.ip, "-S", str(SIZE), "-V", "--timeout", "3").wait(status=1)
    finally:
        wire.hook = None
        peer.kill()
    assert "no answer within 3 s" in out and "\n0 pings\n" in out, out


def case_peer_dies_in_mid_read(lab, wire, guest):
    dies_in_mid_read(lab, wire, guest, "3", "no answer within 3 s")


def case_peer_dies_in_mid_read_retries(lab, wire, guest):
    """Seven retries, 2.1 s each."""
    dies_in_mid_read(lab, wire, guest, "30", "a? ?RDMA_READ completed with RETRY_EXC_ERR")


def dies_in_mid_read(lab, wire, guest, timeout, said):
    """Nothing comes through from the fifth packet of the guest's response on."""
    us = Rdmagen(lab, guest, "dies_server", "ping", "-s", "-V", "--addr", OWN, "--timeout", timeout)
    lab.expect(**SILENCE)
    wire.hook = Silence(THEIRS, RESP_MIDDLE, 5)
    try:
        peer = guest.start("rping -c -a %s -S %d" % (OWN, SIZE))
        out = us.wait(status=1)
    finally:
        wire.hook = None
        peer.kill()
    assert re.search(said, out) and "0 pings served" in out, out
