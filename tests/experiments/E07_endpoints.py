#!/usr/bin/env python3
"""E07_endpoints: E7 once more, through endpoints and switches of `rdmagen sim`, messages with fair rates on the wire. Source: CoNEXT 2020: the
queue is Qref, the rate C/N."""
import csv
import os
import tempfile
from lab import QUICK, Samples, end, head, network, row

FROM, TO = 8000000, 16000000

head(__doc__)
with tempfile.TemporaryDirectory() as folder:
    for flows in (2,) if QUICK else (2, 10):
        stats = os.path.join(folder, "stats")
        j = network("star:%d" % (flows + 1), "incast", "--link-rate", "40G", "-s", "%dM" % (200 // flows), "--window", 4096, "--cc", "rocc",
                    "--fabric", "switch pfc=0 xoff=800K", "--time-limit", "16ms", "--stats", stats + ":20us", partly=True)
        queue = [int(r["depth_bytes"]) for r in csv.DictReader(open(stats)) if r["name"] == "s.h1" and FROM <= int(r["ns"]) <= TO]
        row("mean queue, bytes, N=%d" % flows, 150000, sum(queue) / len(queue), 0.02)
        ports = Samples(stats)
        rates = [ports.gbit("h%d" % (i + 2), FROM, TO) for i in range(flows)]
        row("least Gbit/s of a flow, N=%d" % flows, 40 / flows, min(rates), 0.01)
        row("most Gbit/s of a flow, N=%d" % flows, 40 / flows, max(rates), 0.01)
        row("frames are dropped, N=%d" % flows, 0, j["port"]["s.h1"]["dropped"], 0)
end()
