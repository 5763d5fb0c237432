#!/usr/bin/env python3
"""E3 (c) with endpoints: the incast of E3 (a), and DCQCN with the defaults of ConnectX. Source: a model with packets of 1000 bytes: no pauses; the use
of the link is about .94 in the first 20 ms, while the rates settle. Times and thresholds are scaled as in E3 (a). Tolerance 10 % of the use. The first
burst, before CNPs are back, fills 99 to 101 packets of each sender; so pauses are none with an XOFF of 105 packets, and at most one for each sender with
100, which the model leaves by less than a packet."""
from lab import PACKET, end, head, network, row

head(__doc__)
N, BUFFERED, LIMIT = 8, 1086, 20e6 * PACKET / 1000
for xoff, pauses in ((105, 0), (100, N)):
    j = network("star:%d" % (N + 1), "incast", "-s", "50000000", "--time-limit", "%dns" % LIMIT, "--delay", "%dns" % PACKET, "--window", 100000, "--link-rate", "40G", "-T", 2,
                "--fabric", "switch pfc=0 xoff=%d xon=%d red=%d/%d/1%%" % (xoff * BUFFERED, 3 * BUFFERED, 5 * BUFFERED, 200 * BUFFERED), "--cc", "dcqcn-cx", partly=True)
    p = j["port"]["s.h1"]
    found = sum(q["pauses_sent"] for q in j["ports"])
    row("XOFF of %d packets: more than %d pauses in the first 20 ms (1: yes; %d)" % (xoff, pauses, found), 0, int(found > pauses), 0)
    row("XOFF of %d packets: use of the link in the first 20 ms" % xoff, .94, (p["sent_bytes"] + 24 * p["sent"]) * 8 / LIMIT / 40, 0.1)
    row("XOFF of %d packets: frames dropped" % xoff, 0, sum(q["dropped"] for q in j["ports"]), 0)
end()
