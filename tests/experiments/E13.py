#!/usr/bin/env python3
"""E13: flows of the WebSearch distribution at 30 % and 50 % load, one leaf-spine network, DCQCN: the slowdown by size. Source: shape only, the results
page of the HPCC group; the median of small flows is about 1, larger flows are slowed down more, and a higher load slows all down more. Small means
the smallest twentieth of the flows: at 30 % its median is 1 to 1.5, and that of the largest is half as much again at both loads.
That the 99th percentile grows with the size is not found here: a small flow that meets a queue waits many times its own time. Values of the
published figures were not at hand. 16 hosts of 25 Gbit/s, 960 flows; HPCC is not compared."""
from lab import QUICK, end, head, network, row, told

if QUICK:
    end()
head(__doc__)
bins = {}
for load in (30, 50):
    j = network("leafspine:2,4,8", "poisson:%d%%" % load, "-n", 60, "--link-rate", "25G", "--window", 4096, "-T", 2,
                "--fabric", "switch pfc=0 red=100K/400K/20% buffer=12M", "--cc", "dcqcn")
    bins[load] = j["by_size"]
    row("load %d %%: flows" % load, 960, j["completed"], 0)
    row("load %d %%: the median of the largest flows is above that of the smallest (1: yes)" % load, 1, int(bins[load][-1]["p50"] > 1.5 * bins[load][0]["p50"]), 0)
    told("load %d %%: 99th percentile of the largest by that of the smallest" % load, "above 1", bins[load][-1]["p99"] / bins[load][0]["p99"],
         "the smallest wait many times their own time")
row("load 30 %: median slowdown of the smallest flows", 1.25, bins[30][0]["p50"], 0.2)
row("the higher load has higher medians (1: yes)", 1, int(all(a["p50"] < b["p50"] for a, b in zip(bins[30], bins[50]))), 0)
end()
