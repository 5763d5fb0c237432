#!/usr/bin/env python3
"""E10: a victim of PFC. Hosts a, v at one switch; b1 to bm, r, d at another; all links, that between the switches included, 40 Gbit/s and 1 us; a and
each b send to r, v sends to d, which is idle. XOFF 100 KB, XON 97 KB. Source: a model; v gets C/(m + 1), not the C - C/(m + 1) of max-min.
Tolerance of the rate -7 % and +0, of the share of the pause of the trunk 10 %."""
import os
import tempfile
from lab import QUICK, end, head, network, row

LIMIT = 40e6
head(__doc__)
for m, share in ((1, .04), (2, .36), (3, .52), (7, .76))[:1 if QUICK else 4]:
    lines = ["switch left right pfc=0 xoff=100000 xon=3000", "host a v r d " + " ".join("b%d" % i for i in range(m)), "link a left", "link v left",
             "link r right", "link d right", "link left right"] + ["link b%d right" % i for i in range(m)]
    with tempfile.TemporaryDirectory() as folder:
        net, flows = os.path.join(folder, "net"), os.path.join(folder, "flows")
        open(net, "w").write("\n".join(lines))
        open(flows, "w").write("\n".join("%s %s 1000M %dns" % (s, d, i * 50) for i, (s, d) in enumerate([("a", "r"), ("v", "d")] + [("b%d" % i, "r") for i in range(m)])))
        j = network(net, "flows:" + flows, "--time-limit", "%dns" % LIMIT, "--window", 200000, "--link-rate", "40G", partly=True)
    v = j["port"]["v"]
    row("m=%d rate of v, Gbit/s" % m, 40 / (m + 1), (v["sent_bytes"] + 24 * v["sent"]) * 8 / LIMIT, 0, low=0.07)
    row("m=%d share of the pause of the trunk" % m, share, j["port"]["left.right"]["paused_ns"] / LIMIT, 0.10)
    row("m=%d frames dropped" % m, 0, sum(p["dropped"] for p in j["ports"]), 0)
end()
