#!/usr/bin/env python3
"""E3 (a): an 8:1 incast at 40 Gbit/s over links of 1 us, XOFF 100 KB, XON 97 KB, PFC only. Source: the share of the pause, (N - 1)/N, and the rates
are analytic; the longest queue, N (XOFF + C 2d), and the pauses in 20 ms are of a model with packets of 1000 bytes. Ours have 1106 on the wire and
1086 in the buffer: times and thresholds are scaled, so that they are the same in packets. Tolerance 10 %."""
from lab import PACKET, end, head, network, row

head(__doc__)
N, LIMIT, BUFFERED = 8, 20e6 * PACKET / 1000, 1086
j = network("star:%d" % (N + 1), "incast", "-s", "12500000", "--time-limit", "%dns" % LIMIT, "--delay", "%dns" % PACKET, "--window", 100000, "--link-rate", "40G",
            "--fabric", "switch pfc=0 xoff=%d xon=%d" % (100 * BUFFERED, 3 * BUFFERED), partly=True)
senders = [j["port"]["h%d" % (i + 2)] for i in range(N)]
for i, p in enumerate(senders):
    row("rate of sender %d, Gbit/s" % (i + 1), 5.0, (p["sent_bytes"] + 24 * p["sent"]) * 8 / LIMIT, 0.10)
row("share of the pause", 0.876, sum(p["paused_ns"] for p in senders) / N / LIMIT, 0.10)
row("longest queue, packets", 865, j["port"]["s.h1"]["depth_max"] / BUFFERED, 0.10)
row("pauses", 6258, sum(j["port"]["s.h%d" % (i + 2)]["pauses_sent"] for i in range(N)), 0.10)
row("frames dropped", 0, sum(p["dropped"] for p in j["ports"]), 0)
end()
