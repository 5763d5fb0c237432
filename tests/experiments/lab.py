"""What the experiments of networks share: runs of `rdmagen sim`, and a line for each number that is expected, with tabs:
NAME, value, expected, found, verdict; before them "# NAME", what it is about, [source]. A script does nothing but what takes about a second if its
argument is --quick."""
import csv
import json
import os
import re
import subprocess
import sys

BUILD = os.environ.get("BUILD", "build")
NAME = os.path.basename(sys.argv[0])[:-3]
QUICK = "--quick" in sys.argv
PACKET = 1106  # bytes that a packet with 1024 bytes of payload occupies on Ethernet: with preamble, headers, check sequence and gap
failed = 0


def head(what):
    """Print what the experiment is about, from its description: the sentence before "Source:", and that."""
    text = re.sub(r"\s+", " ", what)
    about, source = re.match(r"E\d+[^:]*: (.*?) Source: (.*)", text).groups()
    print("# %s\t%s\t[%s]" % (NAME, about, source), flush=True)


def row(what, expected, found, tolerance, low=None):
    """Print a line: `found` may differ from `expected` by the share `tolerance` (below it by `low`, if given)."""
    global failed
    lowest = expected - abs(expected) * (tolerance if low is None else low)
    good = lowest <= found <= expected + abs(expected) * tolerance
    failed += not good
    shown = "%.5g" % expected + (" -%g %% +%g %%" % (100 * low, 100 * tolerance) if low is not None else " +-%g %%" % (100 * tolerance) if tolerance else "")
    print("%s\t%s\t%s\t%.5g\t%s" % (NAME, what, shown, found, "ok" if good else "WRONG"), flush=True)


def told(what, expected, found, why):
    """Print a line for what is no failure: `why`."""
    print("%s\t%s\t%s\t%.5g\ttold: %s" % (NAME, what, expected, found, why), flush=True)


def by_equations(*args):
    """What tests/experiments/fixed_point.c computes: numbers by name."""
    words = subprocess.run([BUILD + "/experiments", *map(str, args)], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return {k: float(v) for k, v in zip(words[::2], words[1::2])}


def sim(*args, partly=False):
    """The result as JSON; with `partly` the time limit may end the run."""
    r = subprocess.run([BUILD + "/rdmagen", "sim", "--json=-", *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert r.returncode in (0, partly), "rdmagen sim %s: status %d" % (" ".join(map(str, args)), r.returncode)
    return json.loads(r.stdout)


def network(topology, workload, *args, partly=False):
    """The same of a workload; ports by name in it."""
    j = sim("--topology", topology, "--workload", workload, *args, partly=partly)
    j["port"] = {p["name"]: p for p in j["ports"]}
    return j


class Samples:
    """The counters of ports over time: a run with --stats writes to `path`."""

    def __init__(self, path):
        self.rows = {}
        for r in csv.DictReader(open(path)):
            if r["what"] == "port":
                self.rows.setdefault(r["name"], []).append((int(r["ns"]), int(r["sent_bytes"]) + 24 * int(r["sent_frames"]), int(r["pauses_sent"])))

    def at(self, name, ns):
        """Bytes on the wire, and pauses, of a port until then: those of its last row."""
        return max((r for r in self.rows.get(name, []) if r[0] <= ns), default=(0, 0, 0))

    def gbit(self, name, start, stop):
        return (self.at(name, stop)[1] - self.at(name, start)[1]) * 8 / (stop - start)

    def pauses(self, start, stop):
        return sum(self.at(name, stop)[2] - self.at(name, start)[2] for name in self.rows)


def end():
    sys.exit(failed != 0)
