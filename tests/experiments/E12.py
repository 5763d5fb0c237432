#!/usr/bin/env python3
"""E12: headroom of PFC under the incast of E3 (a). Source: analytic; what arrives behind a pause frame is at most 2 d C + response C + a frame of
each side. With that much nothing is dropped; with none, frames certainly are; with a frame less they may be, which
is no verdict. The response takes 1.51 us, that of 40 Gbit/s in 802.3."""
from lab import end, head, network, row

RATE, DELAY, RESPONSE, FRAME = 40e9, 1000, 1510, 1106
bound = int(RATE / 8e9 * (2 * DELAY + RESPONSE)) + 2 * FRAME


def dropped(headroom):
    j = network("star:9", "incast", "-s", "12500000", "--time-limit", "10ms", "--window", 100000, "--link-rate", "40G",
                "--fabric", "switch pfc=0 xoff=100000 xon=3000 headroom=%d" % headroom, "--fabric", "link reaction=%dns" % RESPONSE, partly=True)
    return sum(p["dropped"] for p in j["ports"])


head(__doc__)
row("frames dropped with headroom of %d bytes" % bound, 0, dropped(bound), 0)
row("without headroom frames are dropped (1: yes)", 1, int(dropped(0) > 0), 0)
end()
