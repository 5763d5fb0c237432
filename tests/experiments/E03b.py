#!/usr/bin/env python3
"""E3 (b) with endpoints: the incast of E3 (a), and DCQCN as published. Source: a model with packets of 1000 bytes: 39 pauses in the first 20 ms, in
which the use of the link is .855; none later, and .999 or more. Times and thresholds are scaled as in E3 (a). Tolerance 20 % of the pauses, 10 %
of the use in the beginning."""
import os
import tempfile
from lab import PACKET, Samples, end, head, network, row

head(__doc__)
N, BUFFERED, STEP = 8, 1086, 20e6 * PACKET / 1000
with tempfile.TemporaryDirectory() as folder:
    stats = os.path.join(folder, "stats.csv")
    network("star:%d" % (N + 1), "incast", "-s", "50000000", "--time-limit", "%dns" % (3 * STEP), "--delay", "%dns" % PACKET, "--window", 100000, "--link-rate", "40G", "-T", 2,
            "--fabric", "switch pfc=0 xoff=%d xon=%d red=%d/%d/1%%" % (100 * BUFFERED, 3 * BUFFERED, 5 * BUFFERED, 200 * BUFFERED), "--cc", "dcqcn:f=6",
            "--stats", stats + ":%dns" % (STEP / 100), partly=True)
    s = Samples(stats)
row("pauses in the first 20 ms", 39, s.pauses(0, STEP), 0.2)
row("use of the link in the first 20 ms", .855, s.gbit("s.h1", 0, STEP) / 40, 0.1)
row("pauses later", 0, s.pauses(STEP, 3 * STEP), 0)
row("use of the link later", 1, s.gbit("s.h1", STEP, 2.95 * STEP) / 40, 0.001)
end()
