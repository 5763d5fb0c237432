#!/usr/bin/env python3
"""E08_endpoints: E8b and E8c once more, through endpoints and switches of `rdmagen sim`: quotas and telemetry on the wire; and E8b with a buffer
of 1 MB, in which the first quotas of 32 senders find no room. Source: eta C and a queue of two packets by our definition of Shaped-Quota; eta C
by HPCC's simulator."""
import csv
import os
import tempfile
from lab import PACKET, QUICK, Samples, end, head, network, row

FROM, TO = 3000000, 6000000


def play(folder, flows, cc, buffer):
    """Counters of all ports, mean and longest queue from FROM to TO, and use of the link to the receiver then."""
    stats = os.path.join(folder, "stats")
    j = network("star:%d" % (flows + 1), "incast", "--link-rate", "100G", "-s", "%dM" % (80 // flows), "--window", 4096, "--cc", cc,
                "--fabric", "switch pfc=none alpha=8 buffer=" + buffer, "--time-limit", "6ms", "--stats", stats + ":10us", partly=True)
    queue = [int(r["depth_bytes"]) for r in csv.DictReader(open(stats)) if r["name"] == "s.h1" and FROM <= int(r["ns"]) <= TO]
    return j["port"], sum(queue) / len(queue), max(queue), Samples(stats).gbit("s.h1", FROM, TO) / 100


head(__doc__)
with tempfile.TemporaryDirectory() as folder:
    for flows in (8,) if QUICK else (2, 8, 32):
        ports, _, longest, use = play(folder, flows, "sq:charge=no", "8M")
        row("SQ: use of the link, N=%d" % flows, .97, use, 0.01)
        row("SQ: longest queue later, in two packets at most (1: yes), N=%d" % flows, 1, int(longest <= 2 * PACKET), 0)
        row("SQ: frames dropped, N=%d" % flows, 0, ports["s.h1"]["dropped"], 0)
    ports, _, longest, use = play(folder, 32, "sq", "1M")
    row("SQ, 1 MB, N=32: frames are dropped (1: yes)", 1, int(ports["s.h1"]["dropped"] > 0), 0)
    row("SQ, 1 MB, N=32: use of the link later", .97, use, 0.01)
    row("SQ, 1 MB, N=32: longest queue later, in two packets at most (1: yes)", 1, int(longest <= 2 * PACKET), 0)
    for flows in () if QUICK else (2, 8, 16):
        _, mean, _, use = play(folder, flows, "hpcc", "8M")
        row("HPCC: use of the link, N=%d" % flows, .945, use, 0.016)
        row("HPCC: mean queue of 5 KB at most (1: yes), N=%d" % flows, 1, int(mean <= 5000), 0)
end()
