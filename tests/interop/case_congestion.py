"""rdmagen and a guest with a congested network between them: `rdmagen inject` marks packets CE, and turns ACKs into CNPs.
Soft-RoCE neither sends CNPs nor obeys them. What DCQCN does to the rate is compared with its equations, calculated here once more."""
import statistics

from case_inject import Inject
from notified import early
from case_pingpong import free_port, gid_index
from case_rdmagen import OWN, Rdmagen, behind_wire, fields
from lab import Failure

CNP, CE, WRITES = "129", "3", ("6", "7", "8", "10")  # opcodes; ECN
LINE = 8e6  # bit/s; a packet takes a millisecond
G, K, T, F, AI = 1 / 4, .15, .2, 2, 2e6  # as in SIGCOMM 2015: gain, periods of alpha and of the rate, steps of fast recovery, additive increase
TOLD = "dcqcn:line=8M,g=1/4,k=150ms,t=200ms,f=2,ai=2M,b=4G"
MESSAGES, NOTED = 160, (25, 28, 31, 60)  # WRITEs; those of which the ACK becomes a CNP


def guests(lab):
    port = free_port()
    wire, guest = behind_wire(lab, forward=[(port, 18515)])
    return wire, guest, port, gid_index(guest)["4"]


class Congested:
    """`rdmagen inject` between the guest, its port 0, and rdmagen."""
    def __init__(self, lab, guest, name, *events):
        self.guest, self.was = guest, (guest.at, guest.to)
        near, far = lab.path(name + ".near"), lab.path(name + ".far")
        self.bridge = Inject(lab, [(guest.at, guest.to), (near, far)], name, events)
        guest.at, guest.to = far, near

    def __enter__(self):
        return self.bridge

    def __exit__(self, kind, error, trace):
        self.guest.at, self.guest.to = self.was
        try:
            self.bridge.end()
        except Exception as e:  # pylint: disable=broad-except
            raise Failure("%s\n%s" % (error, e)) from e


def passed(bridge, side):
    """RDMA packets at one side of the bridge: seconds, opcode, ECN, frame length, source."""
    rows = fields(bridge.capture, "frame.time_relative", "infiniband.bth.opcode", "ip.dsfield.ecn", "frame.len", "frame.interface_id", "ip.src")
    return [(float(t), op, ecn, int(n), src) for t, op, ecn, n, iface, src in rows if op and iface == str(side)]


def notified(lab, guest, name, run, event, interval):
    """The packets of the guest are marked; it gets a CNP at once, and then one in each interval in which a marked packet reached us."""
    with Congested(lab, guest, name + "bridge", event) as bridge:
        run()
    marks = [t for t, op, ecn, _, src in passed(bridge, 1) if src == guest.ip and ecn == CE]
    cnps = [t for t, op, _, _, src in passed(bridge, 1) if src == OWN and op == CNP]
    arrived = [t for t, op, _, _, src in passed(bridge, 0) if src == OWN and op == CNP]
    ours = [(float(t), op, ecn) for t, op, ecn in fields(lab.path(name + ".pcapng"), "frame.time_relative", "infiniband.bth.opcode", "ip.dsfield.ecn") if op]
    sent = [t for t, op, _ in ours if op == CNP]
    gaps = [b - a for a, b in zip(sent, sent[1:])]  # the bridge may be late
    assert len(marks) > 100 and len(cnps) > 3 and len(arrived) == len(cnps) == len(sent), (len(marks), len(cnps), len(arrived))
    wrong = early([t for t, _, ecn in ours if ecn == CE], sent, interval)
    assert not wrong and statistics.median(gaps) < 5 * interval, "CNPs %s apart, too early: %s" % (gaps, wrong)
    most = 1 + (marks[-1] - marks[0]) / interval
    assert len(cnps) <= most, "%d CNPs, at most %d" % (len(cnps), most)


def case_congestion_marked_write(lab, wire, guest, port, index):
    """What a WRITE of soft-RoCE brings, marked, is answered with CNPs, and the bytes arrive."""
    ours = free_port()

    def run():
        us = Rdmagen(lab, guest, "writes", "serve", "--max", "1", "-p", str(ours), "--profile", "rxe", "-u", "19", "--addr", OWN, "--cnp", "interval=5ms")
        status, seen = guest.run("ib_write_bw -d rxe0 -x %d -F -m 1024 -s 65536 -n 40 -p %d 10.0.2.2" % (index, ours), timeout=60)
        assert status == 0, seen + us.text()
        assert "wrong 0" in us.wait()
    notified(lab, guest, "writes", run, "dir=req class=write nth=* ce", .005)


def case_congestion_marked_read(lab, wire, guest, port, index):
    """Marked READ responses of soft-RoCE, likewise."""
    def run():
        peer = guest.start("ib_read_bw -d rxe0 -x %d -F -m 1024 -s 65536 -n 40" % index)
        guest.listening("tcp:18515")
        Rdmagen(lab, guest, "reads", "read", guest.ip, "--tcp", "127.0.0.1", "-p", str(port), "-m", "1024", "-s", "65536", "-n", "40", "-u", "19", "--profile", "rxe",
                "--cnp", "interval=5ms").wait()
        assert peer.wait()[0] == 0
    notified(lab, guest, "reads", run, "dir=rsp class=resp nth=* ce", .005)


def dcqcn(cnps, end):
    """The rate after CNPs at these times, as [(from, to, bit/s)]."""
    rate = target = LINE
    alpha, steps, now, out = 1., 0, 0., []
    alpha_due = rate_due = float("inf")
    cnps = list(cnps)
    while now < end:
        cnp = cnps[0] if cnps else float("inf")
        at = min(cnp, alpha_due, rate_due, end)
        out.append((now, at, rate))
        now = at
        if at == end:
            break
        if at == cnp:
            cnps.pop(0)
            target, rate, alpha = rate, rate * (1 - alpha / 2), (1 - G) * alpha + G
            alpha_due, rate_due, steps = at + K, at + T, 0
        elif at == alpha_due:
            alpha, alpha_due = (1 - G) * alpha, at + K
        else:
            steps, rate_due = steps + 1, at + T
            target = min(LINE, target + AI) if steps >= F else target
            rate = (target + rate) / 2
    return out


def case_congestion_dcqcn_obeys(lab, wire, guest, port, index):
    """CNPs cut the rate at which WRITEs leave, and it rises again, as the equations say: half of the packets that follow each other at one rate are
    no farther apart than it allows; a host that is busy wakes late for some of the others."""
    peer = guest.start("ib_write_bw -d rxe0 -x %d -F -m 1024 -s 16384 -n %d" % (index, MESSAGES))
    guest.listening("tcp:18515")
    with Congested(lab, guest, "cnps", *["dir=rsp class=ack nth=%d as=CNP" % n for n in NOTED]) as bridge:
        us = Rdmagen(lab, guest, "obeys", "write", guest.ip, "--tcp", "127.0.0.1", "-p", str(port), "-m", "1024", "-s", "16384", "-n", str(MESSAGES), "-u", "19",
                     "--profile", "rxe", "--cc", TOLD)
        us.wait()
        assert peer.wait()[0] == 0
    packets = passed(bridge, 1)
    writes = [(t, n) for t, op, _, n, src in packets if src == OWN and op in WRITES]
    first, last = writes[0][0], writes[-1][0]
    cnps = [t - first for t, op, _, _, src in packets if src == guest.ip and op == CNP]
    assert len(cnps) == len(NOTED), cnps
    compared = []
    for begin, end, rate in dcqcn(cnps, last - first):
        inside = [(t - first, n) for t, n in writes if begin <= t - first < end]
        gaps = [(b - a) * rate / (8 * n) for (a, n), (b, _) in zip(inside, inside[1:])]
        if len(gaps) >= 10:
            compared.append((round(begin, 3), round(rate / 1e6, 2), round(statistics.median(gaps), 3)))
            assert sum(n for _, n in inside) * 8 <= 1.05 * rate * (end - begin) + 3 * 8 * inside[0][1], "faster than the equations allow: %s" % compared
    rates = [rate for _, rate, _ in compared]
    assert all(.9 < gap < 1.1 for _, _, gap in compared), "begin, Mbit/s, gap in times of what it should be: %s" % compared
    assert len(rates) > 10 and min(rates) < LINE / 3e6 and rates[0] == LINE / 1e6 and rates[-1] > .9 * LINE / 1e6, compared
