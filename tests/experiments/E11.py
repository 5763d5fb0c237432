#!/usr/bin/env python3
"""E11: goodput of go-back-N against loss. Source: G ~ (1 - p) / (1 + p W + p^2 RTO), with W packets in flight, an ACK timeout of RTO = 20 W packet
times, and a lost retransmission, which the responder does not ask for again, costing that timeout; and a table computed with a model of such a
pipe. Requests are lost, responses are not. The ACK timeout is 4.096 us x 2^k, so that the rate follows from W.
Tolerance 10 % of the table up to p = 1e-2. At p = 5e-2 table and formula differ (W = 50: .173 and .158, 100: .109 and .086, 500: .031 and .019):
there the endpoint is held to the formula, of which every term is a rule of the transport. Half of that time is timeouts: it takes 60,000 messages
until their number varies by less than the tolerance."""
from lab import QUICK, end, head, row, sim

PACKET = 1122  # bytes on the wire of an RDMA WRITE Only with 1024 of payload
TABLE = {10: (.999, .987, .869), 50: (.995, .949, .615), 100: (.990, .906, .449), 500: (.953, .663, .149)}
CODE = {10: 3, 50: 5, 100: 6, 500: 8}


def goodput(window, p, n):
    packet = 4096 * 2 ** CODE[window] / (20 * window)  # ns
    j = sim("write", "-s", 1024, "-n", n, "-t", 2 * window, "--window", window, "-u", CODE[window], "--link-rate", int(PACKET * 8e9 / packet),
            "--delay", "%dns" % (window * packet / 2), "--net", "req:loss=%g" % p, "--no-cm")
    return n * packet / (j["end_ns"] - j["start_ns"])


head(__doc__)
for W, goodputs in TABLE.items():
    for p, expected in zip((1e-4, 1e-3, 1e-2), goodputs):
        if QUICK and (W, p) != (100, 1e-3):
            continue
        row("W=%d p=%g" % (W, p), expected, goodput(W, p, int(max(40000, min(200000, 200 / p)))), 0.10)
    p = 5e-2
    if QUICK:
        continue
    row("W=%d p=%g" % (W, p), (1 - p) / (1 + p * W + p * p * 20 * W), goodput(W, p, 60000), 0.10)
end()
