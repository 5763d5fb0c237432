#!/usr/bin/env python3
"""E9: collectives on an ideal network. Source: analytic; Thakur et al. 2005 for steps and bytes. A star of links of 100 Gbit/s and 1 us: a step of
b bytes takes b/B + alpha, B being 1024/1106 of the rate, alpha two delays and the last packet's time on the second link. Messages, bytes and
packets are exact; times within 1 %. Ranks beyond a power of two are folded in and out of an all-reduce by doubling: two steps more of all data, at least.
At most two more: nobody tells the other ranks to wait, so that a rank may get or send, while one is folded into it or out of it, its next message.
The parts of a scatter, which rank 0 sends one after the other, and of a gather, which arrive in the order of their size, are 1/2, 1/4, ... of all."""
import math
from lab import PACKET, QUICK, end, head, network, row

RATE, DELAY, SIZE = 100e9, 1000, 1 << 20
# The root sends to one rank at a time, and to the next one after the ACK: the ACK's way has to be small, and alpha where messages share a link.
LARGER = {"broadcast-binomial": 4, "reduce-binomial": 2, "scatter-binomial": 16, "broadcast-scatter": 16}


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
    power = 1 << n.bit_length() - 1
    log, folded = power.bit_length() - 1, n - power
    more, again = 2 * folded, 2 * step(size) if folded else 0
    halves = sum(step(size / 2 ** (k + 1)) for k in range(log))
    t["allreduce-doubling"] = (log * power + more, (log * power + more) * size, log * step(size) + again)
    t["allreduce-halving"] = (2 * log * power + more, (2 * (power - 1) + more) * size, 2 * halves + again)
    t["reduce-binomial"] = (n - 1, (n - 1) * size, math.ceil(math.log2(n)) * step(size))
    if not folded:
        t["reducescatter-halving"] = t["allgather-doubling"] = (log * n, (n - 1) * size, halves)
        t["gather-binomial"] = t["scatter-binomial"] = (n - 1, log * n // 2 * block, halves)
        t["broadcast-scatter"] = (n - 1 + (n - 1) * n, (log * n // 2 + (n - 1) * n) * block, halves + (n - 1) * step(block))
    return t


head(__doc__)
for n in (4,) if QUICK else (2, 3, 4, 8, 12, 16):
    for name in times(n, SIZE):
        whole = 1024 * n * (1 << n.bit_length() - 1)  # whole packets in each block, of all ranks and of a power of two
        size = SIZE * LARGER.get(name, 1) // whole * whole
        messages, total, ns = times(n, size)[name]
        j = network("star:%d" % n, name, "-s", size, "--window", 4096)
        row("%s N=%d messages" % (name, n), messages, j["messages"], 0)
        row("%s N=%d bytes" % (name, n), total, j["bytes"], 0)
        row("%s N=%d packets" % (name, n), total / 1024, j["packets"], 0)
        folded = name in ("allreduce-doubling", "allreduce-halving") and n & (n - 1)
        row("%s N=%d ns" % (name, n), ns, j["collective"]["mean_ns"], 0.01 + (2 * (size / 1024 * PACKET * 8e9 / RATE) / ns if folded else 0), low=0.01)
        row("%s N=%d ranks with a wrong result" % (name, n), 0, j["collective"]["wrong"], 0)
end()
