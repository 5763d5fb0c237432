"""rdmagen pingpong against ibv_rc_pingpong, ibv_uc_pingpong, ibv_ud_pingpong and ibv_srq_pingpong, both sides: many queue pairs, shared
receive queues, too few receives, PSNs that wrap, a peer that dies. The addresses are exchanged over QEMU's user network."""
import re
import socket

from case_rdmagen import OWN, OWN6, Rdmagen, behind_wire, wrapped
from counters import SILENCE
from frames import ACK, BTH, OURS, PAYLOAD, SEND, SEND_MIDDLE, THEIRS, UC_SEND_MIDDLE, Silence, opcode, with_icrc

FILL = 500  # messages each way
PATIENT = ("-u", "19")  # 2 s: with 67 ms, seven retries are over in half a second, for which a busy machine may well stop


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def gid_index(guest):
    """Of the guest's GIDs by family."""
    gids = guest.run("cd /sys/class/infiniband/rxe0/ports/1/gids; for i in 0 1 2 3 4 5; do cat $i; done")[1].split()
    index = {}
    for i, g in enumerate(gids):
        index.setdefault("6" if g.startswith("fd77") else "4" if g.endswith("ffff:0a4d:0001") else "other", i)
    return index


def guests(lab):
    port = free_port()
    wire, guest = behind_wire(lab, forward=[(port, 18515)])
    return wire, guest, port, gid_index(guest)


def client(lab, wire, guest, port, index, kind, size, family="4", ours=(), theirs="", count=FILL, status=0, before=""):
    """rdmagen is the client. Its output, and the peer's."""
    peer = guest.start("%sibv_%s_pingpong -g %d -s %d -n %d %s" % (before, kind.lower(), index[family], size, count, theirs))
    guest.listening("tcp:18515")
    us = Rdmagen(lab, guest, "pp%s%d" % (kind, size), "pingpong", guest.ip if family == "4" else guest.ip6, "-c", kind, "-S", str(size),
                 "-n", str(count), "--tcp", "127.0.0.1", "-p", str(port), "-V", *(() if status else PATIENT), *ours)
    out = us.wait(status)
    got, seen = peer.wait()
    if not status:
        exchanged(out, count)
        assert got == 0 and "%d iters in" % count in seen, seen
    return us, out, seen


def server(lab, wire, guest, port, index, kind, size, family="4", ours=(), theirs="", count=FILL, status=0, before=""):
    """rdmagen is the server."""
    listen = free_port()
    own = OWN if family == "4" else OWN6
    us = Rdmagen(lab, guest, "ppd%s%d" % (kind, size), "pingpong", "-s", "-c", kind, "-S", str(size), "-n", str(count), "-p", str(listen),
                 "-V", "--addr", own, *(() if status else PATIENT), *ours)
    got, seen = guest.run("%sibv_%s_pingpong -g %d -s %d -n %d -p %d %s 10.0.2.2" % (before, kind.lower(), index[family], size, count,
                                                                                     listen, theirs), timeout=40)
    out = us.wait(status)
    if not status:
        exchanged(out, count)
        assert got == 0 and "%d iters in" % count in seen, seen + out
    return us, out, seen


def exchanged(out, count):
    """With many queue pairs a few more messages may be under way at the end."""
    m = re.search(r"^([0-9]+) sent, ([0-9]+) received, 0 wrong", out, re.M)
    assert m and int(m[1]) >= count and int(m[2]) >= count, out


def make(role, *args):
    def case(lab, wire, guest, port, index):
        role(lab, wire, guest, port, index, *args)
    return case


for role_ in (client, server):
    for kind_, size_, family_ in (("RC", 4096, "4"), ("RC", 1, "6"), ("UC", 4096, "4"), ("UC", 3000, "6"), ("UD", 1024, "4"), ("UD", 77, "6"),
                                 ("SRQ", 4096, "4"), ("SRQ", 100, "6")):
        globals()["case_pingpong_%s_%d_ipv%s_%s" % (kind_.lower(), size_, family_, role_.__name__)] = make(role_, kind_, size_, family_)


def case_pingpong_srq_sixty_queue_pairs(lab, *at):
    client(lab, *at, "SRQ", 2000, ours=("--qp", "60"), theirs="-q 60", count=1000)


def case_pingpong_srq_rdmagen_with_few_receives(lab, wire, guest, *at):
    """Our RNR NAKs: the guest sends again."""
    lab.expect(rcvd_rnr_err=range(1, 5000))
    server(lab, wire, guest, *at, "SRQ", 2000, ours=("--qp", "8", "-r", "1"), theirs="-q 8")


def case_pingpong_psn_wraps_client(lab, *at):
    """From 0xfffff5 on, 20 packets a message."""
    us, out, seen = client(lab, *at, "RC", 20000, ours=("--psn", "16777205"), count=20)
    wrapped(us.capture, SEND_MIDDLE)


def case_pingpong_psn_wraps_server(lab, *at):
    us, out, seen = server(lab, *at, "RC", 20000, ours=("--psn", "16777205"), count=20)
    wrapped(us.capture, SEND_MIDDLE)


def case_pingpong_psn_wraps_uc(lab, *at):
    us, out, seen = client(lab, *at, "UC", 20000, ours=("--psn", "16777205"), count=20)
    wrapped(us.capture, UC_SEND_MIDDLE)


def silent(role, lab, wire, *at, side, more=()):
    """From the 100th message of one side on nothing comes through any more."""
    lab.expect(**SILENCE)
    wire.hook = Silence(side, SEND, 100)
    try:
        us, out, seen = role(lab, wire, *at, "RC", 500, status=1, ours=("--timeout", "3", *more), before="timeout 5 ")
    finally:
        wire.hook = None
    return out, seen


def case_pingpong_peer_dies_client(lab, *at):
    out, seen = silent(client, lab, *at, side=OURS)
    assert "a message completed with RETRY_EXC_ERR" in out, out


def case_pingpong_peer_dies_server(lab, *at):
    out, seen = silent(server, lab, *at, side=OURS)
    assert "a message completed with RETRY_EXC_ERR" in out, out


def case_pingpong_rdmagen_dies(lab, *at):
    """Seven retries are without end for soft-RoCE: the peer goes on."""
    out, seen = silent(client, lab, *at, side=THEIRS, more=PATIENT)
    assert "nothing came for 3 s" in out and "Terminated" in seen, out + seen


class NotReady:
    """Takes the n-th message of ours away and answers in the peer's name that it is not ready (RNR timer 0: 655 ms; 14: 1 ms)."""
    def __init__(self, wire, n, timer):
        self.wire, self.n, self.timer, self.ack, self.seen = wire, n, timer, None, 0

    def __call__(self, side, frame):
        if side == THEIRS and opcode(frame) == ACK:
            self.ack = frame
        if side == OURS and opcode(frame) == SEND:
            self.seen += 1
            if self.seen == self.n:
                nak = self.ack[:BTH + 9] + frame[BTH + 9:BTH + 12] + bytes([0x20 | self.timer]) + self.ack[PAYLOAD + 1:]
                self.wire.send(OURS, with_icrc(nak))
                return ()
        return (frame,)


def case_pingpong_peer_is_not_ready(lab, wire, *at):
    lab.expect(send_rnr_err=0)  # the wire says so, not the guest
    for timer, wait in ((14, 0.001), (0, 0.655)):
        wire.hook = hook = NotReady(wire, 50, timer)
        try:
            us, out, seen = client(lab, wire, *at, "RC", 100, ours=("--profile", "rxe"), count=100)
        finally:
            wire.hook = None
        assert hook.seen >= 101 and us.decoded(None).count("RNR NAK") == 1, out + us.decoded()
        took = float(re.search(r"wrong, ([0-9.]+) s", out)[1])
        assert took >= wait, "done after %g s" % took
