#!/usr/bin/env python3
"""E15: weights of a scheduler, and dynamic thresholds. Source: analytic. Two senders in classes of weights 1 and 3, both always waiting, get 25 and
75 % within 1 percentage point; a queue of a lossy class with alpha 1/8 is one ninth of the shared buffer at most (Choudhury and Hahne)."""
import os
import tempfile
from lab import end, head, network, row

head(__doc__)
with tempfile.TemporaryDirectory() as folder:
    flows = os.path.join(folder, "flows")
    open(flows, "w").write("h2 h1 1000M 0 0\nh3 h1 1000M 50ns 1\n")
    j = network("star:3", "flows:" + flows, "--time-limit", "10ms", "--window", 100000, "--link-rate", "40G",
                "--fabric", "switch pfc=0,1 xoff=200K weight=0:1,1:3", partly=True)
    sent = [j["port"][h]["sent"] for h in ("h2", "h3")]
    row("share of weight 1, %", 25, 100 * sent[0] / sum(sent), 0.04)
    row("share of weight 3, %", 75, 100 * sent[1] / sum(sent), 0.0134)
    open(flows, "w").write("h2 h1 20M\nh3 h1 20M\n")
    buffer = 9 << 20
    j = network("star:3", "flows:" + flows, "--time-limit", "5ms", "--window", 100000, "--link-rate", "40G",
                "--fabric", "switch buffer=%d alpha=1/8" % buffer, partly=True)
    row("longest queue, bytes", buffer / 9, j["port"]["s.h1"]["depth_max"], 0.01)
    row("frames are dropped (1: yes)", 1, int(j["port"]["s.h1"]["dropped"] > 0), 0)
end()
