#!/usr/bin/env python3
"""E16: messages of 8 KB, eager and by rendezvous, on a path of 5 us. Source: analytic; eager L + s/B, get and put 3 L + s/B until the receiver has the
message, with one way L of an empty message and the bytes of s on the wire. The time of a packet's header that a frame of 64 bytes takes longer than an
empty one is below 0.1 % of it. The threshold of `auto` is UCX's formula: 0.99 * 4 L / (1/min(B, copy) - 0.99/B); eager below it is as fast as the
formula says, and slower than get where copying is slow: eager L + s/copy."""
import csv
import os
import tempfile
from lab import PACKET, end, head, network, row

RATE, DELAY, SIZE = 100e9, 2500, 8192
FRAME = {0: 58 + 24, 64: 58 + 64 + 24}  # of a SEND: on the wire


def arrived(*args, rate=RATE):
    """ns until the receiver has the message."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "messages.csv")
        j = network("star:2", *args, "--delay", "%dns" % DELAY, "--link-rate", int(rate), "--window", 4096, "--completions", path)
        r = next(csv.DictReader(open(path)))
        return int(r["arrived_ns"]) - int(r["posted_ns"]), j


def bytes_ns(n, rate=RATE):
    return n * 8e9 / rate


head(__doc__)
L = 2 * DELAY + 2 * bytes_ns(FRAME[64])
DATA = bytes_ns(SIZE / 1024 * PACKET) + bytes_ns(PACKET) - 2 * bytes_ns(FRAME[64])  # beside L: the last packet passes two links
for protocol, ways in (("eager", 1), ("get", 3), ("put", 3)):
    found, _ = arrived("messages:" + protocol, "-s", SIZE)
    row("%s of 8 KB: ns" % protocol, ways * L + DATA, found, 0.01)
for copy in (40e9, 20e9):
    empty = 2 * DELAY + 2 * bytes_ns(FRAME[0])
    least = 0.99 * 4 * empty / (8e9 / copy - 0.99 * 8e9 / RATE)
    _, j = arrived("messages:auto,copy=%dG" % (copy / 1e9), "-s", SIZE)
    row("threshold with copying at %d Gbit/s: bytes" % (copy / 1e9), least, j["eager_below"], 0.01)
    for what, size in (("half of", int(least / 2)), ("twice", int(2 * least))):
        eager, get = (arrived("messages:%s,copy=%dG" % (protocol, copy / 1e9), "-s", size)[0] for protocol in ("eager", "get"))
        row("%s the threshold: a rendezvous is faster (1: yes)" % what, int(size > least), int(get < eager), 0)
end()
