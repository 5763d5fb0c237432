#!/usr/bin/env python3
"""E17: the judge on networks with congestion. Each behaviour that is switched off is found by exactly its rule, at the tap that can know; conforming
endpoints are accused of nothing, whatever they do about congestion, in an 8:1 incast, lossless and lossy (E2, E3), in E1, E10, E14 and E15. A line counts the rules that accuse: failures, and
the notes that say that something is not as it should be (CC-05, CC-06, CC-09, CC-10). Source: the mutation table; all values are exact."""
import json
import os
import subprocess
import tempfile
from lab import BUILD, QUICK, end, head, row

NOTES = {"CC-05", "CC-06", "CC-09", "CC-10"}
TAPS = {"q": ("h2", "requester"), "r": ("h1", "responder"), "m": ("s.h1", "middle")}
RED, DEEP = "red=5K/200K/1%", "red=5K/50K/1%"
# name, rules that accuse by tap (with q and r together: "both"), options of the simulation
MUTANTS = [
    ("a receiver sends no CNPs", {"q": set(), "r": {"CC-03"}}, ["--fabric", "switch pfc=0 " + RED, "--cc", "dcqcn", "--fault", "CC-03"]),
    ("a sender ignores CNPs", {"q": {"CC-06"}}, ["--fabric", "switch pfc=0 " + DEEP, "--cnp", "interval=50us", "-T", "2"]),
    ("a sender ignores pauses", {"q": {"CC-07"}}, ["--fabric", "switch pfc=0 xoff=50K xon=3K headroom=50K", "--fabric", "link h2 s reaction=1s"]),
    ("CNPs in the class of the data", {"q": {"CC-09"}}, ["--fabric", "switch pfc=0 xoff=50K xon=3K " + RED, "--cnp", "prio=8,dscp=64", "--cc", "dcqcn"]),
    ("a sender recovers by other values", {"q": {"CC-13"}, "r": set()},
     ["--fabric", "switch pfc=0 " + RED, "--cc", "dcqcn:f=3,t=80us,ai=100M", "--window", "1024"]),
    ("a switch marks Not-ECT", {"r": {"FMT-12"}, "both": {"CC-11", "FMT-12"}}, ["--fabric", "switch pfc=0 mark=kmin=5K,kmax=200K,all=yes", "--cnp", "interval=50us"]),
    ("CNPs with a PSN", {"q": {"CC-01"}, "r": {"CC-01"}}, ["-s", "100K", "--fabric", "switch pfc=0 " + RED, "--fault", "CC-01"]),
    ("a CNP for each mark", {"r": {"CC-04"}, "q": set()}, ["--fabric", "switch pfc=0 mark=kmin=0,kmax=1,pmax=1", "--cc", "dcqcn", "--fault", "CC-04"]),
]
SCHEMES = ["none", "dcqcn", "dcqcn-cx", "timely", "timely-patched", "swift", "rttcc", "rocc", "sq", "hpcc"]


def play(folder, hosts, options, size="60M"):
    files = [x for name, (port, _) in TAPS.items() for x in ("-w", "%s:%s/%s.pcapng" % (port, folder, name))]
    if os.path.exists(folder + "/q.pcapng"):
        for name in TAPS:
            os.remove("%s/%s.pcapng" % (folder, name))
    command = [BUILD + "/rdmagen", "sim", "--topology", "star:%d" % (hosts + 1), "--workload", "incast", "-s", size, "--link-rate", "40G", "--vlan", "5",
               "--snaplen", "128", *files, *options]
    r = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    assert r.returncode in (0, 1), " ".join(command)


def play_flows(folder, topology, flows, places, options):
    """Flows of a list, "FROM TO BYTES START" each, captured at the places of the taps."""
    for name in TAPS:
        if os.path.exists("%s/%s.pcapng" % (folder, name)):
            os.remove("%s/%s.pcapng" % (folder, name))
    open(folder + "/flows", "w").write("\n".join(flows))
    files = [x for name, place in zip(TAPS, places) for x in ("-w", "%s:%s/%s.pcapng" % (place, folder, name))]
    r = subprocess.run([BUILD + "/rdmagen", "sim", "--topology", topology, "--workload", "flows:" + folder + "/flows", "--link-rate", "40G", "--vlan", "5",
                        "--snaplen", "128", *files, *options], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    assert r.returncode in (0, 1), topology


def accusers(folder, tap, *options):
    """The rules that accuse somebody at a tap, or at both ends together."""
    if tap == "both":
        args = ["--tap", "1:0=requester,2:0=responder", folder + "/q.pcapng", folder + "/r.pcapng"]
    else:
        args = ["--tap", TAPS[tap][1], "%s/%s.pcapng" % (folder, tap)]
    r = subprocess.run([BUILD + "/rdmatrace", "check", "-T", "json", "--no-icrc", "--cnp", "interval=50us", "--cc", "dcqcn", *options, *args], stdout=subprocess.PIPE, text=True)
    return {f["rule"] for f in json.loads(r.stdout)["findings"] if f["verdict"] == "fail" or (f["rule"] in NOTES and f["verdict"] is None)}


def compare(what, found, expected):
    if expected:
        row(what + ": " + " ".join(sorted(expected)), len(expected), len(found & expected), 0)
    others = sorted(found - expected)
    row(what + ": rules besides" + "".join(" " + r for r in others), 0, len(others), 0)


SPREAD = ["h%d h%d 1M %dns" % (i + 1, i + 5, 30 * i) for i in range(4)]
OTHERS = [
    ("E1, a third flow joins", "star:4", ["h2 h1 20M", "h3 h1 20M 50ns", "h4 h1 10M 2ms"], ("h2", "h1", "s.h1"), ["--fabric", "switch pfc=0 " + RED, "--cc", "dcqcn"]),
    ("E14, ECMP", "leafspine:2,4,4", SPREAD, ("h1", "h5", "leaf1.spine1"), []),
    ("E14, spraying with go-back-N", "leafspine:2,4,4", SPREAD, ("h1", "h5", "leaf1.spine1"), ["--fabric", "switch paths=spray"]),
    ("E14, spraying with data placed out of order", "leafspine:2,4,4", SPREAD, ("h1", "h5", "leaf1.spine1"), ["--fabric", "switch paths=spray", "--profile", "nv"]),
    ("E15, two classes", "star:3", ["h2 h1 4M 0 0", "h3 h1 4M 50ns 1"], ("h2", "h1", "s.h1"), ["--fabric", "switch pfc=0,1 xoff=200K weight=0:1,1:3", "--window", "10000"]),
]


def clean(what, folder, *options):
    compare(what, set().union(*(accusers(folder, tap, *options) for tap in TAPS)), set())


head(__doc__)
with tempfile.TemporaryDirectory() as folder:
    for name, wanted, options in MUTANTS[:2] if QUICK else MUTANTS:
        play(folder, 2, options)
        for tap in ("q", "r", "both") if "both" in wanted else ("q", "r"):
            compare("%s, at %s" % (name, tap), accusers(folder, tap), wanted.get(tap, set()))
    for scheme in SCHEMES[1:2] if QUICK else SCHEMES:
        for fabric, what in (("pfc=0 xoff=100000 xon=3000 " + RED, "lossless"), ("buffer=2M " + RED, "lossy"))[:1 if QUICK else 2]:
            play(folder, 8, ["--fabric", "switch " + fabric, "--cc", scheme], "8M")
            others = ["--no-rule", "CC-04", "--cc", "dcqcn-cx"] if scheme == "dcqcn-cx" else []  # 4 us, not 50
            clean("8:1 with %s, %s" % (scheme, what), folder, *others)
    for name, topology, flows, places, options in OTHERS[:1] if QUICK else OTHERS:
        play_flows(folder, topology, flows, places, options)
        clean(name, folder)
    if not QUICK:
        net = folder + "/net"
        lines = ["switch left s pfc=0 xoff=100000 xon=3000 " + RED, "host h2 v h1 d b1 b2 b3", "link h2 left", "link v left", "link h1 s", "link d s", "link left s"]
        open(net, "w").write("\n".join(lines + ["link b%d s" % i for i in (1, 2, 3)]))
        flows = ["%s %s 40M %dns" % (a, b, i * 50) for i, (a, b) in enumerate([("h2", "h1"), ("v", "d"), ("b1", "h1"), ("b2", "h1"), ("b3", "h1")])]
        for scheme in ("none", "dcqcn"):
            play_flows(folder, net, flows, [place for place, _ in TAPS.values()], ["--cc", scheme, "--time-limit", "15ms"])
            clean("E10 with %s" % scheme, folder)
end()
