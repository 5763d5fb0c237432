"""rdmagen conformance against programs without an agent: ib_write_bw, ibv_rc_pingpong and rping, each started anew for every test."""
import json
import subprocess

from case_conformance import ERRORS, LENGTH, ends_within, tests, until_measured
from case_pingpong import guests  # noqa: F401  (one guest, whose TCP port 18515 is forwarded)
from case_rdmagen import OWN, RDMAGEN, link
from lab import CASE_SECONDS, SLOW

# What soft-RoCE does otherwise than it should: rows of the profile rxe.
PATIENCE = (12 if LENGTH == "--full" else 5) * SLOW  # seconds after which a program is ended that a test has left
PROGRAMS = {"perftest": "ib_write_bw -d rxe0 -x %d -F -s 65536 -m 1024 -n 1000",
            "pingpong": "timeout -s KILL %d ibv_rc_pingpong -g %%d -n 1000" % PATIENCE, "rping": "rping -s -P -a 10.77.0.1 -p 18515; : %d"}

# A sample of the tests; `make soak` plays all of them.
SOME = {"perftest": "seg/write-too-long psn/far-ahead ack/asked-for rto/device-misses-several mem/unknown-key wire/migreq cc/unmarked time/link",
        "pingpong": "seg/first-inside psn/gap psn/wrap rto/bad-icrc wire/other-service", "rping": "cm"}


def conformance(lab, guest, port, index, name):
    lab.expect(**ERRORS)
    job = guest.start("while :; do %s; sleep 0.1; done" % (PROGRAMS[name] % index["4"]))
    guest.listening("rping" if name == "rping" else "tcp:18515")

    def play(some, seconds):
        us = subprocess.Popen([*command, *some], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            out, said = ends_within(us, seconds)
        finally:
            us.kill()
        return us.returncode, json.loads(out) if out else None, said
    command = [RDMAGEN, "conformance", "--exchange", name, LENGTH, "%s:%d" % (guest.ip, port), "--tcp", "127.0.0.1", "--addr", OWN, *link(guest, 1500),
               "-m", "1024", "--timeout", "%d" % ((25 if LENGTH == "--full" else 10) * SLOW), "--profile", "rxe", "-T", "json"]
    card, late = until_measured(play, tests("--exchange", name, *([] if LENGTH == "--full" else SOME[name].split())), 1, CASE_SECONDS * SLOW - 15)
    job.kill()
    guest.run("killall -9 ib_write_bw ibv_rc_pingpong rping")
    wrong = ["%s %s: %s; %s" % (t["result"], t["id"], t["reason"], t["judge"]) for t in card["tests"] if t["result"] not in ("pass", "known") and t["id"] not in late]
    assert not wrong, "\n".join(wrong)
    assert card["dut"]["name"] == "%s: %s, without an agent" % (guest.ip, name), card["dut"]
    return {t["id"]: t for t in card["tests"] if t["id"] not in late}, late


def case_bare_perftest(lab, wire, guest, port, index):
    told, late = conformance(lab, guest, port, index, "perftest")
    assert len(told) + len(late) >= 8 and told, told
    assert "mem/unknown-key" in late or "without an agent" in told["mem/unknown-key"]["reason"], told
    assert "wire/migreq" in late or told["wire/migreq"]["reason"] == "", told


def case_bare_pingpong(lab, wire, guest, port, index):
    told, late = conformance(lab, guest, port, index, "pingpong")
    assert len(told) + len(late) >= 5 and ("psn/gap" in late or told["psn/gap"]["result"] == "pass"), told


def case_bare_rping(lab, wire, guest, port, index):
    told, late = conformance(lab, guest, port, index, "rping")
    assert "cm/disconnected" in late or told["cm/disconnected"]["result"] == "pass", told
