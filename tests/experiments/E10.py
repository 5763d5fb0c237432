#!/usr/bin/env python3
"""E10: a victim of PFC. Hosts a, v at one switch; b1 to bm, r, d at another; all links, that between the switches included, 40 Gbit/s and 1 us; a and
each b send to r, v sends to d, which is idle. XOFF 100 KB, XON 97 KB. Source: a model with packets of 1000 bytes; v gets C/(m + 1), not the
C - C/(m + 1) of max-min. Ours have 1106 on the wire and 1086 in the buffer: delays and thresholds are scaled, so that they are the same in packets.
Tolerance of the rate -7 % and +0; of the share of the pause of the trunk 10 %, and half of the last of its two decimals. With DCQCN (inferred) v gets
within 10 % of max-min after 100 ms for m > 1. DCQCN is not max-min fair: a's packets are marked at two queues, those of v and of each b at one. The
equations of its fixed point (CoNEXT 2016, 3.1) with the marks of both queues tell how much v gets then, 25.3 Gbit/s for m = 1, not 20. Tolerance 10 %."""
import os
import tempfile
from lab import PACKET, QUICK, Samples, by_equations, end, head, network, row

LIMIT, BUFFERED = 40e6, 1086
head(__doc__)
for m, share in ((1, .04), (2, .36), (3, .52), (7, .76))[:1 if QUICK else 4]:
    lines = ["switch left right pfc=0 xoff=%d xon=%d" % (100 * BUFFERED, 3 * BUFFERED), "host a v r d " + " ".join("b%d" % i for i in range(m)), "link a left", "link v left",
             "link r right", "link d right", "link left right"] + ["link b%d right" % i for i in range(m)]
    with tempfile.TemporaryDirectory() as folder:
        net, flows = os.path.join(folder, "net"), os.path.join(folder, "flows")
        open(net, "w").write("\n".join(lines))
        open(flows, "w").write("\n".join("%s %s 1000M %dns" % (s, d, i * 50) for i, (s, d) in enumerate([("a", "r"), ("v", "d")] + [("b%d" % i, "r") for i in range(m)])))
        args = [net, "flows:" + flows, "--window", 200000, "--link-rate", "40G", "--delay", "%dns" % PACKET]
        j = network(*args, "--time-limit", "%dns" % LIMIT, partly=True)
        if not QUICK:
            stats = os.path.join(folder, "stats.csv")
            network(*args, "--time-limit", "130ms", "-T", 2, "--fabric", "switch red=5K/200K/1%", "--cc", "dcqcn:f=6", "--stats", stats + ":1ms", partly=True)
            found = Samples(stats).gbit("v", 100e6, 129e6)
            row("m=%d with DCQCN: rate of v by the fixed point, Gbit/s" % m, by_equations("--two-links", m, PACKET)["first"] / 1e9, found, 0.10)
            if m > 1:
                row("m=%d with DCQCN: rate of v by max-min, Gbit/s" % m, 40 - 40 / (m + 1), found, 0.10)
    v = j["port"]["v"]
    row("m=%d rate of v, Gbit/s" % m, 40 / (m + 1), (v["sent_bytes"] + 24 * v["sent"]) * 8 / LIMIT, 0, low=0.07)
    row("m=%d share of the pause of the trunk" % m, share, j["port"]["left.right"]["paused_ns"] / LIMIT, 0.10 + 0.005 / share)
    row("m=%d frames dropped" % m, 0, sum(p["dropped"] for p in j["ports"]), 0)
end()
