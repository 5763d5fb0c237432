#!/usr/bin/env python3
"""E14: collisions of ECMP: 4 flows from one leaf to another over 4 spines, 1000 seeds. Source: analytic; no two flows share a spine with probability
4!/4^4 = 9.4 %, and 4 (3/4)^4 = 1.27 spines are empty. The tolerances are three standard deviations of 1000 draws (0.92 %, and
0.68/sqrt(1000)).
Spraying with go-back-N is worse than ECMP without collisions: packets that overtake each other are asked for again. With data placed out of order
(profile nv) it takes as long as ECMP without collisions, but for what the spines' queues hold: 5 %."""
import os
import tempfile
from lab import QUICK, end, head, network, row

SEEDS = 1000
head(__doc__)
with tempfile.TemporaryDirectory() as folder:
    flows = os.path.join(folder, "flows")
    open(flows, "w").write("".join("h%d h%d 1000 %dns\n" % (i + 1, i + 5, 30 * i) for i in range(4)))
    empty = []
    for seed in range(SEEDS):
        if QUICK and 0 in empty:
            break
        j = network("leafspine:2,4,4", "flows:" + flows, "--seed", seed)
        empty.append(sum(j["port"]["leaf1.spine%d" % (i + 1)]["sent"] == 0 for i in range(4)))
    if not QUICK:
        row("no collision", 24 / 256, empty.count(0) / SEEDS, 0.29)
        row("empty spines", 4 * 0.75 ** 4, sum(empty) / SEEDS, 0.051)
    open(flows, "w").write("".join("h%d h%d 4M %dns\n" % (i + 1, i + 5, 30 * i) for i in range(4)))
    run = ["leafspine:2,4,4", "flows:" + flows, "--seed", empty.index(0), "--window", 512]
    ecmp = network(*run)
    spray = network(*run, "--fabric", "switch paths=spray")
    placed = network(*run, "--fabric", "switch paths=spray", "--profile", "nv")
    row("ECMP without collision: packets again", 0, ecmp["retransmitted"], 0)
    row("spraying is slower (1: yes)", 1, int(spray["end_ns"] > 1.05 * ecmp["end_ns"] and spray["retransmitted"] > 0), 0)
    row("spraying, data placed out of order: share of ECMP's time", 1, placed["end_ns"] / ecmp["end_ns"], 0.05)
    row("the same: packets again", 0, placed["retransmitted"], 0)
end()
