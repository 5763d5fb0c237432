#!/usr/bin/env python3
"""E13: flows of the WebSearch distribution at 30 % and 50 % load, one leaf-spine network, DCQCN and HPCC: the slowdown by size. Source: shape only, the
results page of the HPCC group; the median of small flows is about 1, larger flows are slowed down more, and a higher load slows all down more; the
99th percentile of small flows, below 200 KB, is clearly higher with DCQCN than with HPCC, and grows with the size. Small means the smallest twentieth
of the flows: at 30 % its median is 1 to 1.5, and that of the largest is half as much again at both loads. Clearly higher means by half. A percentile
of a range of sizes is the mean of those of its twentieths: with 48 flows in each, a single one depends on one flow, and that of the smallest, which
may wait many times its own time in a queue, is above that of the largest with DCQCN. Values of the published figures were not at hand. 16 hosts of
25 Gbit/s, 960 flows."""
from lab import QUICK, end, head, network, row

SCHEMES = {"dcqcn": "switch pfc=0 red=100K/400K/20% buffer=12M", "hpcc": "switch pfc=0 buffer=12M"}


def play(load, cc):
    j = network("leafspine:2,4,8", "poisson:%d%%" % load, "-n", 60, "--link-rate", "25G", "--window", 4096, "-T", 2, "--fabric", SCHEMES[cc], "--cc", cc)
    row("load %d %% with %s: flows" % (load, cc), 960, j["completed"], 0)
    return j["by_size"]


def mean_p99(bins, below=None, above=None):
    p99 = [b["p99"] for b in bins if (not below or b["bytes"] < below) and (not above or b["bytes"] > above)]
    return sum(p99) / len(p99)


if QUICK:
    end()
head(__doc__)
bins = {load: {cc: play(load, cc) for cc in SCHEMES} for load in (30, 50)}
for load, of in bins.items():
    for cc, b in of.items():
        row("load %d %% with %s: the median of the largest flows is above that of the smallest (1: yes)" % (load, cc), 1, int(b[-1]["p50"] > 1.5 * b[0]["p50"]), 0)
    small = {cc: mean_p99(b, below=200e3) for cc, b in of.items()}
    row("load %d %%: 99th percentile below 200 KB: DCQCN's is above that of HPCC by half (1: yes; %.3g and %.3g)" % (load, small["dcqcn"], small["hpcc"]), 1,
        int(small["dcqcn"] > 1.5 * small["hpcc"]), 0)
    for cc, b in of.items():
        row("load %d %% with %s: the 99th percentile above 200 KB is higher than below (1: yes)" % (load, cc), 1, int(mean_p99(b, above=200e3) > small[cc]), 0)
for cc in SCHEMES:
    row("load 30 %% with %s: median slowdown of the smallest flows" % cc, 1.25, bins[30][cc][0]["p50"], 0.2)
    row("with %s the higher load has higher medians in so many of 20" % cc, 20, sum(a["p50"] < b["p50"] for a, b in zip(bins[30][cc], bins[50][cc])), 0)
end()
