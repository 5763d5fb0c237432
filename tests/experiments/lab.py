"""What the experiments share: runs of `rdmagen sim`, and a line for each number that is expected."""
import json
import os
import subprocess
import sys

BUILD = os.environ.get("BUILD", "build")
PACKET = 1106  # bytes that a packet with 1024 bytes of payload occupies on Ethernet: with preamble, headers, check sequence and gap
failed = 0


def row(what, expected, found, tolerance, low=None):
    """Print a line: `found` may differ from `expected` by the share `tolerance` (below it by `low`, if given)."""
    global failed
    lowest = expected - abs(expected) * (tolerance if low is None else low)
    good = lowest <= found <= expected + abs(expected) * tolerance
    failed += not good
    name = os.path.basename(sys.argv[0]).replace("E0", "E")
    shown = "%g%%" % (100 * tolerance) if low is None else "-%g%% +%g%%" % (100 * low, 100 * tolerance)
    print("%s %s: expected %.5g found %.5g tolerance %s %s" % (name, what, expected, found, shown, "ok" if good else "FAILED"))


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


def end():
    sys.exit(failed != 0)
