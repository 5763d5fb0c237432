"""Networks of many hosts, drawn by a seed: incasts and collectives through switches with PFC, ECN and every scheme of congestion control, small
buffers, sprayed paths, links that lose frames or go down. The taps are hosts and ports of switches, and captures lack frames as well: no endpoint,
all of which keep the rules, is accused.

    tests/property/fabrics.py [--seed N] [--count N] [--jobs N] [NUMBER...]"""
import argparse
import concurrent.futures
import functools
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import captures  # noqa: E402

BUILD = os.environ.get("BUILD", "build")
SCHEMES = ("none", "dcqcn", "dcqcn-cx", "timely", "timely-patched", "swift", "rocc", "rttcc", "sq", "hpcc")
MARKING = ("dcqcn", "dcqcn-cx")
REWRITES = ("allreduce-ring", "nccl")  # a rank writes to memory from which its neighbour may still retransmit: SEQ-13 says so, and no end is at fault
WORKLOADS = ("incast", "incast", "incast", "permutation", "alltoall", "shuffle", "storage", "messages:auto", "server", "nccl", "allreduce-ring",
             "alltoall-bruck")


class Fabric:
    """One simulation: the arguments of `rdmagen sim`, its taps, and what is known of its endpoints."""

    def __init__(self, seed, number):
        self.rng = rng = random.Random("property %d %d" % (seed, number))
        self.leaves, self.hosts = rng.choice(((0, 3), (0, 4), (0, 6), (0, 8), (2, 4), (2, 6)))
        self.workload, self.cc = rng.choice(WORKLOADS), rng.choice(SCHEMES)
        self.profile = rng.choice(("strict", "strict", "strict", "rxe", "nv"))
        self.cnp = rng.choice((None, None, "interval=%s,scope=%s" % (rng.choice(("4us", "50us")), rng.choice(("qp", "ip_pair", "dest_ip", "port")))))
        self.cnp = self.cnp if self.cc in MARKING else None
        self.rate = rng.choice(("10G", "25G", "100G"))

    def switches(self):
        """Lines of the topology."""
        rng = self.rng
        lines = [rng.choice(("switch buffer=%s" % rng.choice(("60K", "100K", "500K")),
                             "switch pfc=0 buffer=%s xoff=%s" % (rng.choice(("2M", "4M")), rng.choice(("10K", "50K")))))]
        if self.cc in MARKING or rng.random() < 0.3:
            lines.append("switch red=5K/%s/%s" % (rng.choice(("50K", "200K")), rng.choice(("1%", "10%", "100%"))))
        if self.leaves and rng.random() < 0.5:
            lines += ["switch paths=spray", "link leaf1 spine1 delay=%dus" % rng.choice((1, 3, 8))]
        at, first = rng.randrange(5, 60), "leaf1" if self.leaves else "s"
        trouble = rng.choice((None, None, "link loss=%s" % rng.choice(("0.1%", "1%")), "link h1 %s down=%dus/%dus" % (first, at, at + 100)))
        return lines + ([trouble] if trouble else [])

    def words(self):
        rng = self.rng
        words = ["--topology", "leafspine:%d,2,%d" % (self.leaves, self.hosts // self.leaves) if self.leaves else "star:%d" % self.hosts,
                 "--workload", self.workload, "-n", rng.choice((1, 2, 4)), "-s", rng.choice((1000, 20000, 100000)), "-q", rng.choice((1, 1, 2)),
                 "-m", rng.choice((1024, 4096)), "-u", rng.choice((8, 10, 14)), "--delay", "%dus" % rng.choice((1, 2, 5)), "--link-rate", self.rate,
                 "--seed", rng.randrange(1 << 32), "--profile", self.profile, "--time-limit", "50ms", "--cc", self.cc]
        for line in self.switches():
            words += ["--fabric", line]
        for chance, more in ((0.5 if self.cnp else 0, ["--cnp", self.cnp]), (0.2, ["--ipv6"]), (0.2, ["--vlan", 7]), (0.2, ["--ack", "coalesce=4"]),
                             (0.2, ["--sport", "flow"])):
            if rng.random() < chance:
                words += more
            elif more[0] == "--cnp":
                self.cnp = None
        return [str(w) for w in words]

    def taps(self):
        """Place: at which side of all connections it is."""
        other, incast = "h%d" % self.rng.randrange(2, self.hosts + 1), self.workload == "incast"
        first = "leaf1" if self.leaves else "s"
        taps = {"h1": "responder" if incast else "unknown", other: "requester" if incast else "unknown", first + ".h1": "middle"}
        return dict(taps, **{"leaf1.spine1": "middle"} if self.leaves else {})


def lacks(c, rng):
    """Take frames away; whether any is missing."""
    change = rng.choice((None, None, captures.sample, captures.cut_head, captures.cut_tail, one_way, captures.slice64))
    if change:
        change(c, rng)
    return change is not None


def one_way(c, rng):
    macs = sorted({data[6:12] for _, _, data in c.frames})
    by = rng.choice(macs) if macs else None
    c.frames = [f for f in c.frames if f[2][6:12] == by]


def accused(fabric, path, tap, whole):
    """The findings that accuse an end."""
    options = ["--profile", fabric.profile, "--tap", tap, *(["--complete"] if whole and tap != "middle" else [])]
    options += ["--cnp", fabric.cnp] if fabric.cnp else []
    r = subprocess.run([BUILD + "/rdmatrace", "check", "-T", "json", *options, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, check=False)
    if r.returncode not in (0, 1):
        return ["exit status %d: %s" % (r.returncode, r.stderr.decode())], options
    permitted = ("SEQ-13",) if fabric.workload in REWRITES else ()
    return [f for f in json.loads(r.stdout)["findings"]
            if f["verdict"] == "fail" and f["severity"] in ("error", "warning") and f["rule"] not in permitted], options


def play(seed, number, folder, *more):
    """Captures judged, and what is wrong. `more`: arguments of `rdmagen sim`."""
    fabric, wrong, judged = Fabric(seed, number), [], 0
    words, taps = [*fabric.words(), *more], fabric.taps()
    files = {place: os.path.join(folder, place + ".pcap") for place in taps}
    r = subprocess.run([BUILD + "/rdmagen", "sim", *words, *(a for place, f in files.items() for a in ("-w", place + ":" + f))], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=600, check=False)
    if r.returncode not in (0, 1):
        return 0, ["fabric %d: rdmagen sim %s: exit status %d: %s" % (number, " ".join(words), r.returncode, r.stderr.decode())]
    for place, tap in taps.items():
        c = captures.Capture(files[place]).copy()
        for lacking in (False, True):
            if lacking and not lacks(c, fabric.rng):
                continue
            c.write(files[place])
            found, options = accused(fabric, files[place], tap, not lacking)
            judged += 1
            if found:
                wrong.append("fabric %d, %s%s, %s: %s\n  rdmagen sim %s" % (
                    number, place, " with frames missing" if lacking else "", " ".join(options), str(found[0])[:600], " ".join(words)))
    return judged, wrong


def part(numbers, seed):
    with tempfile.TemporaryDirectory(dir=os.environ.get("OUT")) as folder:
        return [play(seed, n, folder) for n in numbers]


def main():
    p = argparse.ArgumentParser(usage=__doc__, add_help=False)
    for name, default in (("seed", 1), ("count", 40), ("jobs", 1)):
        p.add_argument("--" + name, type=int, default=default)
    p.add_argument("numbers", type=int, nargs="*")
    args = p.parse_args()
    numbers, judged, wrong = args.numbers or list(range(args.count)), 0, []
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        for results in pool.map(functools.partial(part, seed=args.seed), [numbers[i:i + 20] for i in range(0, len(numbers), 20)]):
            for n, w in results:
                judged += n
                wrong += w
                print("".join("FAILED: %s\n" % x for x in w), end="", flush=True)
    print("%d networks of many hosts, %d captures judged, %d wrongly" % (len(numbers), judged, len(wrong)))
    with tempfile.TemporaryDirectory(dir=os.environ.get("OUT")) as folder:  # hosts that break a rule are accused
        blind = not play(args.seed, numbers[0], folder, "--fault", "FMT-15")[1]
    if blind:
        print("FAILED: network %d, with --fault FMT-15: no host is accused" % numbers[0])
    return 1 if wrong or blind or judged < 2 * len(numbers) else 0


if __name__ == "__main__":
    sys.exit(main())
