"""rdmagen conformance between two guests with rdmagen agent: what passes between them is forwarded, changed and recorded on the way; what soft-RoCE
does otherwise than it should is known, at either end."""
import json
import os
import subprocess

from agent_client import TOKEN, initrd, start
from case_agent import gone
from case_conformance import ERRORS, listed
from case_pingpong import free_port
from case_rdmagen import RDMAGEN, RDMATRACE
from lab import SLOW


def guests(lab):
    ports, sockets = [free_port(), free_port()], [(lab.path(n), lab.path(n + ".wire")) for n in "ab"]
    both = [lab.guest(i + 1, *sockets[i], forward=[(ports[i], 18517)], ramdisk=initrd(lab, RDMAGEN)) for i in (0, 1)]
    for g in both:
        g.ready()
    return both, ports, sockets


def case_pair_of_devices(lab, both, ports, sockets):
    """Tests of most groups, with losses and damage on the way, and by RDMA-CM."""
    chosen = ("seg/device-sends psn/wrap nak/resume rnr/no-receive rto/several-lost read/response-lost atom/once mem/unknown-key ud/send "
              "cm/accepts wire/damaged psn/gap").split()
    names = ["%s:%d" % (g.ip, p) for g, p in zip(both, ports)]
    lab.expect(**ERRORS)
    path = lab.path("token")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
        f.write(TOKEN + "\n")
    for g in both:
        start(g)
    between = [w for at, to in sockets for w in ("--between", "unix:%s,%s" % (to, at))]
    r = subprocess.run([RDMAGEN, "conformance", *between, "--tcp", "127.0.0.1", "--token-file", path, "--timeout", "%d" % (3 * SLOW), "-T", "json",
                        "--profile", "rxe", "--keep", lab.path("kept"), *names, *chosen], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=110 * SLOW)
    assert r.stdout, r.stderr
    card = json.loads(r.stdout)
    told = {t["id"]: t["result"] for t in card["tests"]}
    odd = ["%s %s: %s; %s" % (t["result"], t["id"], t["reason"], t["judge"]) for t in card["tests"] if t["result"] not in ("pass", "known") and t["id"] != "psn/gap"]
    assert not odd and r.returncode == 0, "\n".join([r.stderr, *odd])
    assert told["psn/gap"] == "unsupported" and sum(x == "pass" for x in told.values()) == len(chosen) - 1, told
    assert {i for i, x in told.items() if x == "known"} <= set(listed()), told
    assert " against " in card["dut"]["name"] and all(g.ip + ": rxe0" in card["dut"]["name"] for g in both), card["dut"]
    assert card["dut"]["device"] == card["against"]["device"] == "rxe0", card["against"]
    lost = next(t for t in card["tests"] if t["id"] == "nak/resume")
    seen = subprocess.run([RDMATRACE, "explain", "-T", "ndjson", lost["capture"]], capture_output=True, text=True).stdout
    assert '"packet-loss"' in seen, "the loss on the way is in the capture: %s" % seen
    for g in both:
        gone(g)
