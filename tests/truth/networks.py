"""Networks with trouble, drawn by a seed: the arguments of `rdmagen sim` for each."""
import random

import captures

PACKETS = 1000  # of a network, about
WINDOW = 128    # packets that a queue pair keeps under way at most
WRITTEN = 40 << 20
PERCENT = (0.05, 0.1, 0.3, 0.5, 1, 2, 3, 5)


class Network:
    """One simulation: its number, the trouble that it is about, and the arguments of `rdmagen sim`."""

    def __init__(self, seed, number, trouble):
        self.number, self.trouble = number, trouble
        self.rng = rng = random.Random("%d %d" % (seed, number))
        self.args, self.given = [], {}
        self.ops = ["mixed", "mixed", "mixed", "send", "write", "read", "faa"]
        self.op = rng.choice(self.ops)
        self.qps = rng.choice((1, 1, 1, 2, 3, 4))
        self.depth = rng.choice((1, 2, 4, 8, 12, 32))  # not the 16 READs that are agreed on: who has no more to ask for looks the same
        self.timeout = rng.choice((8, 9, 10, 12))
        self.delay = rng.choice((1, 2, 5, 10, 30))  # us, one way
        self.silent = False  # the peer does not answer: soft-RoCE, which retries for ever, has no place there
        self.least = 1       # messages of a connection
        self.hidden = {}     # tap: states that it cannot tell from others
        self.holds = False   # the network holds frames back: no tap at one end tells that from a responder that is slow

    def option(self, name, value=None):
        """Give an option once: the first who wants it wins."""
        if name not in self.given:
            self.given[name] = value
            self.args += [name] if value is None else [name, str(value)]

    taps = ("requester", "middle", "responder")
    offsets = (0, 3 * 10**3, -8 * 10**4, 5 * 10**6, -10**9)  # ns, of the clocks of taps

    def words(self, folder):
        """The arguments; no file is needed."""
        del folder
        return self.finish()

    def views(self):
        return [v for v in captures.VIEWS if v[1]]

    def hidden_from(self, view, truth):
        """States that a view cannot tell from others, whoever loses the time."""
        del truth
        return self.hidden.get(view.name.split()[0], ())

    @staticmethod
    def is_heard(view):
        return any(data[6:12] != captures.REQUESTER for _, _, data in view.captures[0].frames)

    def net(self, words):
        self.args += ["--net", words]

    def finish(self):
        rng = self.rng
        self.option("--seed", rng.randrange(1 << 32))
        mtu = self.given.get("-m") or rng.choice((256, 1024, 1024, 4096))
        size = 8 if self.op == "faa" else self.given.get("-s") or rng.choice((8, 100, 1000, 3000, 8000, 20000))
        messages = min(rng.choice((20, 50, 100, 200, 500)), max(20, PACKETS // (size // mtu + 1)))
        self.option("-n", max(self.least, messages // self.qps))
        self.option("-m", mtu)
        if self.op != "faa":
            self.option("-s", size)
            if rng.random() < 0.3:
                self.option("--vary")
        self.option("-q", self.qps)
        self.option("-t", self.depth)
        self.option("-u", self.timeout)
        self.option("--delay", "%dus" % self.delay)
        self.option("--link-rate", rng.choice(("10G", "25G", "100G", "100G")))
        if rng.random() < 0.2:
            self.option("--no-cm")
            for tap in ("both", "requester"):  # nothing tells the depth that was agreed on
                self.hidden[tap] = self.hidden.get(tap, ()) + ("read_depth",)
        elif rng.random() < 0.2:  # without CM the two directions of a queue pair are known by their PSNs
            self.option("--psn", 0x1000000 - rng.randrange(1, 200))
        for chance, name, value in ((0.15, "-b", None),
                                    (0.2, "--ack", "coalesce=%d" % rng.choice((2, 4, 8))), (0.0 if self.silent else 0.1, "--profile", "rxe"),
                                    (0.1, "--window", rng.choice((16, 32, 64))), (0.1, "--vlan", 7), (0.1, "--ipv6", None)):
            if rng.random() < chance:
                self.option(name, value)
        self.option("--time-limit", "%dus" % self.time_limit(mtu, size))
        return [self.op, *self.args]

    def shorten(self):
        """Half the time limit: the network has written too much."""
        at = self.args.index("--time-limit") + 1
        self.args[at] = "%dus" % (int(self.args[at][:-2]) // 2)
        return [self.op, *self.args]

    def time_limit(self, mtu, size):
        """In us. soft-RoCE goes back for ever: what its timeouts make it send again may be WRITTEN bytes in all."""
        timeout = 4.096 * 2 ** self.given["-u"]
        again = self.qps * (2 if "-b" in self.given else 1) * min(WINDOW * (mtu + 100), self.given["-t"] * (size + size // mtu * 100 + 100))
        return min(5000000, timeout * max(32, WRITTEN // again)) if "--profile" in self.given else 5000000


def percent(n):
    return "%g%%" % n.rng.choice(PERCENT)


def way(n):
    return n.rng.choice(("", "", "req:", "rsp:")) + n.rng.choice(("", "before "))


def only(n, *ops):
    """Work of these kinds, as far as other troubles leave a choice."""
    n.ops = [op for op in n.ops if op in ops] or ["mixed"]
    if n.op not in n.ops:
        n.op = n.rng.choice(n.ops)


def clean(n):
    del n


def loss(n):
    n.net(way(n) + "loss=" + percent(n))


def burst(n):
    n.net(way(n) + "burst=%g%%/%g%%" % (n.rng.choice((0.05, 0.1, 0.3)), n.rng.choice((10, 30, 50))))


def every(n):
    n.net(way(n) + "every=%d" % n.rng.choice((20, 50, 100, 300)))


def reorder(n):
    n.holds = True
    n.net(way(n) + "reorder=%s/%d" % (percent(n), n.rng.choice((1, 2, 3, 8))))


def duplicate(n):
    n.net(way(n) + "dup=" + percent(n))


def corrupt(n):
    n.net(way(n) + "corrupt=%s%s" % (percent(n), n.rng.choice(("", "/icrc"))))


def rnr(n):
    only(n, "send", "mixed")
    n.depth = n.rng.choice((4, 8, 16))
    n.option("-r", n.rng.choice((1, 2)))
    n.option("--rnr_timer", n.rng.choice((1, 5, 8, 12)))
    n.option("--recv-delay", n.rng.choice(("5us", "30us", "200us")))


def depth(n):
    only(n, "read", "faa", "mixed")
    n.depth = n.rng.choice((8, 16, 32))
    n.option("-o", n.rng.choice((1, 2)))


def credit(n):
    only(n, "send", "mixed")
    n.depth = n.rng.choice((8, 16, 32))
    n.option("--credits")
    n.option("-r", n.rng.choice((1, 2, 4)))


def rate(n):
    n.holds = True
    n.net(way(n) + "rate=%s queue=%s" % (n.rng.choice(("1G", "2G", "5G")), n.rng.choice(("16K", "64K", "1M"))))


def rate_change(n):
    n.holds = True
    n.net(way(n) + "rate=%s queue=1M change=%s" % (n.rng.choice(("10G", "25G")), n.rng.choice(("1G/50us", "2G/200us"))))


def slow(n):
    n.least = 30  # or nothing tells what is usual
    n.option("--slow", "%s/%s" % (percent(n), n.rng.choice(("300us", "1ms"))))


def dead(n):
    n.silent = True  # for at least two tries: after one a response may have been lost
    n.option("--die", "responder:%d" % n.rng.randrange(5, 60))
    n.option("--retry_count", n.rng.choice((2, 3, 7)))


def cnp(n):
    only(n, "write", "send")
    n.option("-T", 2)
    n.option("-s", 8000)
    n.option("--link-rate", "25G")
    n.option("--cnp-cut", "%d/%s" % (n.rng.choice((4, 8)), n.rng.choice(("50us", "200us"))))
    n.net("req:rate=20G ecn=10K")


def lost_cnp(n):
    cnp(n)
    for nth in n.rng.sample(range(1, 6), 2):
        n.args += ["--event", "dir=rsp class=cnp nth=%d drop" % nth]


def pause(n):
    where, before = n.rng.choice(("req:", "rsp:")), n.rng.choice(("", "before "))
    n.net("%s%spause=%s/%s" % (where, before, percent(n), n.rng.choice(("50us", "200us"))))
    if (where == "req:") != bool(before):  # the port that pauses, or is paused, is the responder's: only a tap there sees the pause frames
        n.hidden["requester"] = ("paused", "peer_slow")


def black_hole(n):
    n.silent = True
    only(n, "send", "write", "mixed")
    n.option("-s", n.rng.choice((3000, 8000)))
    n.option("-m", n.rng.choice((1024, 4096)))
    n.option("--retry_count", n.rng.choice((2, 3, 7)))
    n.net("req:mtu=700")


def migrate(n):
    n.silent = True
    n.given["--no-cm"] = None  # only REQ and REP tell that the other path is one of the connection
    n.option("--alternate")
    n.option("--retry_count", n.rng.choice((0, 1, 2, 7)))
    n.net("path=1 down=%dus" % n.rng.randrange(5, 400))


TROUBLES = {f.__name__: f for f in (loss, burst, every, reorder, duplicate, corrupt, rnr, depth, credit, rate, rate_change, slow, dead, cnp, pause,
                                      black_hole)}
RARE = {f.__name__: f for f in (migrate,)}  # one in so many networks:
RARELY = 25
RAREST = {f.__name__: f for f in (lost_cnp,)}  # one in so many networks:
SELDOM, SELDOM_AT = 100, 33


def draw(seed, number, trouble=None):
    """Network `number` of a seed: every troubles in turn, and as often several at once."""
    names = list(TROUBLES)
    rng = random.Random("%d %d which" % (seed, number))
    if trouble is None:
        trouble = names[number // 2 % len(names)] if number % 2 else "several"
        if number % RARELY == RARELY - 1:
            trouble = rng.choice(list(RARE))
        elif number % SELDOM == SELDOM_AT:
            trouble = rng.choice(list(RAREST))
    n = Network(seed, number, trouble)
    if trouble == "several":
        for name in rng.sample(names, rng.choice((2, 2, 3))):
            TROUBLES[name](n)
    elif trouble != "clean":
        (TROUBLES | RARE | RAREST)[trouble](n)
    return n
