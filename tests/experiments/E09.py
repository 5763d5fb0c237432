#!/usr/bin/env python3
"""E9: collectives on an ideal network. Source: analytic; Thakur et al. 2005 for steps and bytes. A star of links of 100 Gbit/s and 1 us: a step of
b bytes takes b/B + alpha, B being 1024/1106 of the rate, alpha two delays and the last packet's time on the second link. Messages, bytes and
packets are exact; times within 1 %."""
import math
from lab import PACKET, QUICK, end, head, network, row

RATE, DELAY, SIZE = 100e9, 1000, 1 << 20
LARGER = {"broadcast-binomial": 4}  # the root sends to one rank at a time, and to the next one after the ACK: the ACK's way has to be small


def times(n, size):
    """For each algorithm: steps, bytes that all ranks send together, messages, ns of a round."""
    packet = PACKET * 8e9 / RATE
    log, block = math.ceil(math.log2(n)), size / n
    alpha = 2 * DELAY + packet

    def step(b):
        return alpha + b / 1024 * packet
    moved = [sum(i >> k & 1 for i in range(n)) * block for k in range(log)]
    t = {
        "allreduce-ring": (2 * (n - 1) * n, 2 * (n - 1) * size, 2 * (n - 1) * step(block)),
        "reducescatter-ring": ((n - 1) * n, (n - 1) * size, (n - 1) * step(block)),
        "allgather-ring": ((n - 1) * n, (n - 1) * size, (n - 1) * step(block)),
        "alltoall-pairwise": ((n - 1) * n, (n - 1) * size, (n - 1) * step(block)),
        "alltoall-bruck": (log * n, n * sum(moved), sum(map(step, moved))),
        "broadcast-binomial": (n - 1, (n - 1) * size, log * step(size)),
    }
    if n & (n - 1) == 0:
        t["allreduce-doubling"] = (log * n, log * n * size, log * step(size))
        t["allreduce-halving"] = (2 * log * n, 2 * (n - 1) * size, 2 * sum(step(size / 2 ** (k + 1)) for k in range(log)))
    return t


head(__doc__)
for n in (4,) if QUICK else (2, 3, 4, 8, 12, 16):
    for name in times(n, SIZE):
        size = SIZE * LARGER.get(name, 1) // (1024 * n) * 1024 * n  # whole packets in each block
        messages, total, ns = times(n, size)[name]
        j = network("star:%d" % n, name, "-s", size, "--window", 4096)
        row("%s N=%d messages" % (name, n), messages, j["messages"], 0)
        row("%s N=%d bytes" % (name, n), total, j["bytes"], 0)
        row("%s N=%d packets" % (name, n), total / 1024, j["packets"], 0)
        row("%s N=%d ns" % (name, n), ns, j["collective"]["mean_ns"], 0.01)
        row("%s N=%d ranks with a wrong result" % (name, n), 0, j["collective"]["wrong"], 0)
end()
