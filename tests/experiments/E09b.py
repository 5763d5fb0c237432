#!/usr/bin/env python3
"""E9b: a ring all-reduce over a non-blocking fabric, with DCQCN and marks. Source: inferred; no queue grows beyond a packet, so nothing is marked, no
CNP is sent, and it takes as long as without congestion control (E9). Marking begins at 5 KB."""
import os
import subprocess
import tempfile
from lab import BUILD, QUICK, end, head, network, row

head(__doc__)
for n in (4,) if QUICK else (4, 8, 16):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "h1.pcapng")
        args = ["star:%d" % n, "allreduce-ring", "-s", 1 << 20, "--window", 4096, "-T", 2]
        plain = network(*args)
        j = network(*args, "--fabric", "switch red=5K/200K/1%", "--cc", "dcqcn", "-w", "h1:" + path)
        cnps = subprocess.run([BUILD + "/rdmatrace", "decode", "-Y", "infiniband.bth.opcode == 129", path], stdout=subprocess.PIPE, check=True).stdout.count(b"\n")
    row("N=%d marks" % n, 0, sum(p["marked"] for p in j["ports"]), 0)
    row("N=%d CNPs at host 1" % n, 0, cnps, 0)
    row("N=%d ns" % n, plain["collective"]["mean_ns"], j["collective"]["mean_ns"], 0.01)
    row("N=%d ranks with a wrong result" % n, 0, j["collective"]["wrong"], 0)
end()
