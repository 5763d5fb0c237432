"""Fabrics with trouble, drawn by a seed: the arguments of `rdmagen sim --topology` for each, and what taps there see."""
import os
import random

import captures


class Fabric:
    """One simulation of many hosts: its number, its trouble, and the arguments of `rdmagen sim`."""

    offsets = (0, 3000, -10**9, 2 * 10**9)  # ns, of the clocks of taps

    def __init__(self, seed, number, trouble):
        self.number, self.trouble = number, trouble
        self.rng = rng = random.Random("fabric %d %d" % (seed, number))
        self.leaves, self.hosts = 0, rng.choice((3, 4, 5, 6))
        self.args, self.options, self.flows = [], [], None
        self.workload, self.size = "incast", rng.choice((3000, 20000, 100000, 200000))
        self.messages, self.rate = rng.choice((1, 2, 4)), rng.choice(("10G", "25G", "100G"))
        self.delay = rng.choice((1, 2, 5))  # us, of a link
        self.holds = True                   # queues hold frames back: no tap at one end tells that from a responder that is slow

    def topology(self):
        return "leafspine:%d,2,2" % self.leaves if self.leaves else "star:%d" % self.hosts

    def names(self):
        return ["h%d" % (i + 1) for i in range(2 * self.leaves or self.hosts)]

    def switch_of(self, host):
        return "leaf%d" % ((host + 1) // 2) if self.leaves else "s"

    @property
    def taps(self):
        """Of all hosts, and the port of the switch to the first one, where an incast gathers."""
        return [*self.names(), self.switch_of(1) + ".h1"]

    def words(self, folder):
        rng = self.rng
        if self.flows:
            path = os.path.join(folder, "flows.txt")
            with open(path, "w", encoding="ascii") as f:
                f.write("".join("%s %s %d %dus %d\n" % flow for flow in self.flows))
            self.workload = "flows:" + path
        words = ["--topology", self.topology(), "--workload", self.workload, "-n", self.messages, "-s", self.size, "-q", rng.choice((1, 1, 2)),
                 "-m", rng.choice((1024, 1024, 4096)), "-u", rng.choice((8, 9, 10)), "--delay", "%dus" % self.delay, "--link-rate", self.rate,
                 "--seed", rng.randrange(1 << 32), "--time-limit", "200ms"]
        for line in self.args:
            words += ["--fabric", line]
        if rng.random() < 0.1:
            words.append("--ipv6")
        return [str(w) for w in words + self.options]

    @staticmethod
    def hidden_from(view, truth):
        """At one host no tap sees which other ports are paused."""
        places = {x["place"] for x in truth["incidents"] if x["cause"] == "pause"}
        return ("paused", "peer_slow") if view.asked_at and places - set(view.asked_at) else ()

    def is_heard(self, view):
        """Whether all hosts that requests are for send something."""
        sent = [(data[:6], data[6:12]) for c in view.captures for _, _, data in c.frames if data[12:14] != b"\x88\x08"]
        return {to for to, _ in sent} <= {by for _, by in sent}

    def views(self):
        """Both ends: all hosts; the requester: one host that asks, the other hosts' requests are not its."""
        asks = self.rng.choice(self.names()[1:])
        return (("both ends", tuple(self.names()), captures.as_it_is, 0.98), ("requester", (asks,), captures.as_it_is, 0.90),
                ("responder", ("h1",), captures.as_it_is, None), ("switch port", (self.taps[-1],), captures.as_it_is, None))


def small_buffer(f):
    f.args.append("switch buffer=%s" % f.rng.choice(("60K", "100K", "200K")))


def lossless(f):
    f.args.append("switch pfc=0 buffer=%s xoff=%s" % (f.rng.choice(("2M", "4M")), f.rng.choice(("10K", "20K", "50K"))))
    f.messages = 24  # enough responses to compare the clocks of the taps by


def incast(f):
    small_buffer(f)


def dcqcn(f):
    f.size = f.rng.choice((100000, 300000))
    f.rng.choice((lossless, lambda f: None))(f)
    f.args.append("switch red=5K/%s/%s" % (f.rng.choice(("50K", "200K")), f.rng.choice(("1%", "10%"))))
    f.options += ["--cc", f.rng.choice(("dcqcn", "dcqcn-cx"))]


def pauses(f):
    lossless(f)


def classes(f):
    """A lossless class beside a lossy one."""
    f.args.append("switch pfc=3 buffer=1M xoff=20K alpha=1/16")
    f.flows = [("h%d" % f.rng.randrange(2, f.hosts + 1), "h1", f.size, f.rng.randrange(0, 50), f.rng.choice((0, 3))) for _ in range(6)]


def leafspine(f):
    f.leaves, f.workload = 2, f.rng.choice(("alltoall", "permutation", "incast"))
    f.rng.choice((small_buffer, lossless))(f)


def spray(f):
    f.leaves, f.workload = 2, f.rng.choice(("alltoall", "permutation"))
    f.args += ["switch paths=spray", "link leaf1 spine1 delay=%dus" % f.rng.choice((3, 8))]


def link_loss(f):
    f.args.append("link loss=%s" % f.rng.choice(("0.1%", "0.5%", "1%")))


def link_down(f):
    at = f.rng.randrange(5, 60)
    f.args.append("link h%d %s down=%dus/%dus" % (f.rng.randrange(1, f.hosts + 1), f.switch_of(1), at, at + f.rng.choice((20, 100, 400))))


def storm(f):
    at = f.rng.randrange(5, 40)
    f.messages = 12  # enough responses to compare the clocks of the taps by
    f.args += ["switch pfc=0 buffer=4M", "link h1 s storm=%dus/%dus" % (at, at + f.rng.choice((50, 200)))]


def reads(f):
    f.workload = f.rng.choice(("shuffle", "storage"))
    f.rng.choice((small_buffer, link_loss))(f)


TROUBLES = {f.__name__: f for f in (incast, dcqcn, pauses, classes, leafspine, spray, link_loss, link_down, storm, reads)}


def draw(seed, number, trouble=None):
    """Fabric `number` of a seed: every trouble in turn."""
    names = list(TROUBLES)
    f = Fabric(seed, number, trouble or names[number % len(names)])
    TROUBLES[f.trouble](f)
    return f
