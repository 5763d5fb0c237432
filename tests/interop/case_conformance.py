"""rdmagen conformance against rdmagen agent in a guest: soft-RoCE fails exactly the tests that the profile rxe lists, in the way it says."""
import json
import os
import signal
import socket
import subprocess
import threading
import time

import busy
from agent_client import TOKEN, Agent, initrd, start
from case_agent import gone
from case_pingpong import free_port
from case_rdmagen import OWN, OWN6, RDMAGEN, behind_wire, link
from counters import ZERO
from frames import opcode
from lab import CASE_SECONDS, SLOW, is_rdma

WRITE_ONLY = 10
MTU = 4200  # so that the path MTU may be 4096
PROFILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "gen", "conform", "battery", "known_rxe.tsv")
# --full also plays the tests that take long; `make soak` does.
LENGTH = "--full" if os.environ.get("CONFORMANCE_FULL") else "--quick"
# What neither the guest's soft-RoCE nor its libibverbs has.
LACKED = {"wire/limited-members", "atom/device-write8", "mem/registered-again", "atom/write8", "xrc/device-sends", "wire/rocev1", *(["seg/largest", "read/largest", "seg/device-whole", "seg/whole", "read/whole", "read/device-whole", "uc/whole"] if LENGTH == "--full" else [])}
# Deviations that not every run shows: the kernel's timers count ticks, so that a message may be sent again some ms early;
# and not every packet that is changed at random comes behind an RNR NAK. A load of this machine that comes and goes may look like a rate
# that falls and recovers.
SOMETIMES = {"cm/dreq-lost", "cm/retries", "wire/changed-million", "time/rate-back"}
# Deviations over IPv6 only.
OVER_IPV6 = {"ud/multicast"}
# The tests cause every error that the guest counts.
ERRORS = {name: range(0, 1000) for name in ZERO if name != "link_downed"}


def guests(lab):
    port = free_port()
    wire, guest = behind_wire(lab, forward=[(port, 18517)], ramdisk=initrd(lab, RDMAGEN), mtu=MTU)
    return wire, guest, port


def listed():
    """The tests of the profile's rows."""
    with open(PROFILE) as f:
        return sorted({line.split("\t")[0] for line in f.read().splitlines() if line and line[0] != "#"})


def load_again(guest):
    """Soft-RoCE, and its device."""
    module = guest.run("grep rdma_rxe /lib/modules/order")[1].strip()
    status, said = guest.run("rdma link delete rxe0 && busybox rmmod rdma_rxe && insmod /lib/modules/%s && rdma link add rxe0 type rxe netdev eth0" % module)
    assert status == 0 and "ACTIVE" in guest.run("rdma link show")[1], said


def ends_within(us, seconds):
    """What rdmagen prints. Then its time is up: interrupted, it writes a card of the tests that have ended."""
    try:
        return us.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        us.send_signal(signal.SIGINT)
        return us.communicate(timeout=20 * SLOW)


def conformance(lab, guest, port, *words, six=False, token=TOKEN, timeout=1500 if LENGTH == "--full" else 170, begun=lambda pid: None):
    """Exit status, the card (if it is one), what is said besides. The agent is started if need be: a case that failed has ended it.
    `begun`: is told the process."""
    lab.expect(**ERRORS)
    if guest.run("netstat -ltn | grep -q :18517")[0] != 0:
        start(guest)
    path = lab.path("token")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
        f.write(token + "\n")
    us = subprocess.Popen([RDMAGEN, "conformance", ("[%s]:%d" if six else "%s:%d") % (guest.ip6 if six else guest.ip, port), "--tcp", "127.0.0.1", "--token-file", path, "--addr", OWN6 if six else OWN, "--addresses", "2", *link(guest, MTU),
                        "--timeout", "%d" % ((25 if LENGTH == "--full" else 3) * SLOW), "-T", "json", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    begun(us.pid)
    try:
        out, said = ends_within(us, timeout * SLOW)
    finally:
        us.kill()
    return us.returncode, json.loads(out) if out else None, said


def told(card):
    return {t["id"]: t["result"] for t in card["tests"]}


# The battery in parts, each of which is done within the time of a case; the last one has all other groups.
PARTS = (("seg", "psn", "ack", "nak"), ("rnr", "rto", "read", "atom"), ("mem", "st", "srq"), ("ud", "uc", "xrc", "wire"), ("time", "perf"))


def tests(*chosen):
    r = subprocess.run([RDMAGEN, "conformance", "--list", LENGTH, *chosen], capture_output=True, text=True, check=True)
    return [line.split()[1] for line in r.stdout.splitlines()]


def groups():
    return list(dict.fromkeys(t.split("/")[0] for t in tests()))


def sequence_naks(lab, card, late):
    """One is sent, and counted, for each gap: in each test as many as its capture shows, but for a few that a queue behind the guest loses
    where it is slow; in all as many as that and in what was played again."""
    rows = {t["id"]: [c for c in t["counters"] if c["counters"] == "out_of_seq_request"][0] for t in card["tests"] if "counters" in t}
    wrong = {t: c for t, c in rows.items() if not c["traced"] <= c["counted"] <= c["traced"] + 2 + c["traced"] // 100}
    assert (rows or late) and not wrong, wrong
    counted = sum(c["counted"] for c in rows.values())
    again = late or any("this side was late" in t["reason"] for t in card["tests"])
    lab.expect(out_of_seq_request=range(counted, 2 * counted + 100 if not again else 10**6))


def odd(card):
    return [t["id"] for t in card["tests"] if t["result"] not in ("pass", "known", "unsupported")]


def failing(card):
    """Whether conformance ends with status 1 because of them: a weak result is none of those."""
    return any(t["result"] not in ("pass", "known", "unsupported", "weak", "info") for t in card["tests"])


def say(text):
    print("# " + text, flush=True)


def until_measured(play, tests, most, seconds):
    """A card of the tests, and those that are not measured, as this machine is busy with something else: they showed nothing in all their tries, or
    the time was up. More than `most` are played again while it is busy, for so many seconds in all, and what they show then counts; where it is not
    busy, they are a failure (busy.py). What came out otherwise on a busy machine, behind which the guest or the wire to it was late, is played
    again twice; speed that is weak then is not measured. play(TESTS, SECONDS) returns exit status, card, what was said."""
    begin, cards = time.time(), []

    def missing(chosen):
        status, card, said = play(chosen, begin + seconds - time.time())
        good = card and len(card["tests"]) == len(chosen) and not failing(card)
        assert card and status == (not good), (status, said)
        cards.append(card)
        late = {t["id"] for t in card["tests"] if t["result"] == "inconclusive" and "this side was late" in t["reason"]}
        ended = {t["id"] for t in card["tests"] if t["id"] not in late}
        if len(cards) > 1:
            cards[0]["tests"] = [t for t in cards[0]["tests"] if t["id"] not in ended] + [t for t in card["tests"] if t["id"] in ended]
        return set(chosen) - ended
    with busy.Witness() as witness:
        late = busy.measured(missing, missing(tests), most, witness, begin + seconds - time.time(), say)
        for _ in range(2):
            again = set(odd(cards[0])) - late
            if again and witness.ever and time.time() < begin + seconds:
                say("once more, as this machine is busy: %s" % " ".join(sorted(again)))
                late |= missing(sorted(again))
        if witness.ever:
            late |= {t["id"] for t in cards[0]["tests"] if t["result"] == "weak" and t["id"].split("/")[0] in ("time", "perf")}
    cards[0]["tests"].sort(key=lambda t: tests.index(t["id"]))
    return cards[0], late


def quick(lab, guest, port, chosen):
    def play(some, seconds):
        return conformance(lab, guest, port, LENGTH, "--profile", "rxe", "--keep", lab.path("kept"), *some, timeout=seconds / SLOW)
    card, late = until_measured(play, tests(*chosen), 3, CASE_SECONDS * SLOW - 15)
    wrong = ["%s %s: %s; %s" % (t["result"], t["id"], t["reason"], t["judge"]) for t in card["tests"] if t["result"] not in ("pass", "known") and t["id"] not in LACKED | late]
    assert not wrong, "\n".join([*late, *wrong])
    known = {t["id"]: t["known"] for t in card["tests"] if t["result"] == "known"}
    expected = sorted(set(listed()) & set(tests(*chosen)) - OVER_IPV6)
    assert set(expected) - SOMETIMES - late <= set(known) <= set(expected), "known: %s, listed: %s" % (sorted(known), expected)
    assert all("[" in reason for reason in known.values()), "each with its source: %s" % known
    assert {i for i, r in told(card).items() if r == "unsupported"} == {t for t in LACKED - late if t.split("/")[0] in chosen}, "unsupported: %s" % told(card)
    rates = [m for m in card["metrics"] if m["unit"] in ("bps", "per_s") and not m["id"].startswith("pause")]
    assert all(m["bound"] in ("device", "tester", "both") and 0 <= m["idle_permille"] <= 1000 for m in rates), rates
    assert card["judged"] and len(card["tests"]) + len(late) > 20 and sum(t["result"] == "pass" for t in card["tests"]) + len(late) > 10, card["score"]
    counted = {c.pop("counters"): c for c in card["counters"]}
    # What soft-RoCE drops at once it does not count as received; of what it sends it counts less in some tests.
    # The first card's: of so many tests.
    n = card["score"]["M"]["tests"] + card["score"]["S"]["tests"] + card["score"]["I"]["tests"]
    assert not n or ("rcvd_pkts" in counted and counted["sent_pkts"]["exact"] > 0.6 * n), counted
    assert all(counted[c]["exact"] > 0.8 * n for c in ("rcvd_seq_err", "rcvd_rnr_err", "send_rnr_err") if n), counted
    sequence_naks(lab, card, late)
    device = card["dut"]
    assert device["device"] == "rxe0" and device["kernel"].startswith("6.") and device["settings"]["eth0.mtu"] == MTU and device["mtu"] in (1024, 2048, 4096) and card["tester"]["backend"] == "unix", (device, card["tester"])
    assert device["name"].startswith(guest.ip + ": rxe0") and "Linux 6" in device["name"], device
    assert all(os.path.getsize(t["capture"]) > 0 for t in card["tests"]), "a capture of each test"
    gone(guest)
    bad = guest.run("dmesg | grep -A12 'BUG\\|Oops\\|WARNING'")[1].strip()
    # Soft-RoCE of Linux 6.1 warns, once, when read/wrong-response sends it a READ response of a wrong opcode.
    assert all("rxe_completer" in line for line in bad.splitlines() if "WARNING" in line or "BUG" in line or "Oops" in line), bad


def case_conformance_quick(lab, wire, guest, port):
    quick(lab, guest, port, PARTS[0])


def case_conformance_quick_repeated(lab, wire, guest, port):
    quick(lab, guest, port, PARTS[1])


def case_conformance_quick_memory(lab, wire, guest, port):
    quick(lab, guest, port, PARTS[2])


def case_conformance_quick_packets(lab, wire, guest, port):
    quick(lab, guest, port, PARTS[3])


def case_conformance_quick_times(lab, wire, guest, port):
    quick(lab, guest, port, PARTS[4])


def case_conformance_quick_rest(lab, wire, guest, port):
    quick(lab, guest, port, [g for g in groups() if not any(g in part for part in PARTS)])


def case_conformance_driver_that_is_loaded_again(lab, wire, guest, port):
    """What the device chooses, whenever its driver was loaded: --baseline says whether it is the same again."""
    path = [lab.path("first.json"), lab.path("second.json")]
    for p in path:
        guest.run("killall rdmagen")
        gone(guest)
        load_again(guest)
        status, card, said = conformance(lab, guest, port, "mem/unknown-key", "mem/range", "mem/far-end", "cm/accepts", "cm/connects", "psn", "--profile", "rxe")
        assert card, (p, status, said)
        with open(p, "w") as f:
            json.dump(card, f)
    lab.expect(**{name: range(-10**6, 10**6) for name in ZERO})  # the driver counts from 0 again
    first, second = ({row["id"]: row["first"] for row in json.load(open(p))["identities"]} for p in path)
    same = {i for i in first if first[i] == second[i]}
    r = subprocess.run([RDMAGEN, "conformance", "--stored", path[1], "--baseline", path[0]], capture_output=True, text=True)
    assert {line.split()[1] for line in r.stdout.splitlines() if line.startswith("repeated ")} == same, (r.stdout, first, second)
    # Soft-RoCE of Linux 6.1: numbers of queue pairs begin anew, keys have a part that is drawn.
    assert "qpn" in same and "rkey" not in same and "psn" not in same, (first, second)


def case_conformance_deviation_that_is_not_known(lab, wire, guest, port):
    status, card, said = conformance(lab, guest, port, "mem/send-too-long", "psn/gap", "--repeat", "2")
    assert status == 1 and told(card) == {"mem/send-too-long": "fail", "psn/gap": "pass"}, (card, said)
    wrong = [t for t in card["tests"] if t["result"] == "fail"][0]
    assert wrong["runs"] == 2 and wrong["passed"] == 0 and "actual b > a NAK_OPERATIONAL" in wrong["reason"], wrong


def case_conformance_what_the_port_does_not_carry(lab, wire, guest, port):
    guest.run("ip link set eth0 mtu 1500")
    try:
        status, card, said = conformance(lab, guest, port, "seg/mtu-4096", "seg/mtu-256")
    finally:
        guest.run("ip link set eth0 mtu %d" % MTU)
    assert status == 0 and told(card) == {"seg/mtu-4096": "unsupported", "seg/mtu-256": "pass"}, (card, said)
    assert "active_mtu" in card["tests"][1]["reason"], card["tests"]


def case_conformance_device_that_falls_silent(lab, wire, guest, port):
    """From the first ACK on, nothing of the device's arrives: after the test it serves nothing, and no further test is run."""
    silent = []

    def hook(side, frame):
        silent.extend([1] if side == 0 and is_rdma(frame) else [])
        return () if silent and is_rdma(frame) else (frame,)
    wire.hook = hook
    try:
        status, card, said = conformance(lab, guest, port, "ack/asked-for", "psn/gap", "psn/wrap")
    finally:
        wire.hook = None
    assert status == 1 and told(card) == {"psn/gap": "crash"} and "2 tests not run: the device serves nothing any more" in said, (card, said)
    assert "the device serves no new queue pair" in card["tests"][0]["reason"], card["tests"]
    gone(guest)


def stalling(port, sessions):
    """A port of this host that leads to the agent, for so many sessions; in each later one nothing of what the agent says arrives."""
    server = socket.create_server(("127.0.0.1", 0))

    def copy(a, b, stalled):
        try:
            while got := a.recv(65536):
                if not stalled:
                    b.sendall(got)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def serve():
        for n in range(100):
            try:
                client = server.accept()[0]
            except OSError:
                return
            agent = socket.create_connection(("127.0.0.1", port))
            threading.Thread(target=copy, args=(client, agent, False), daemon=True).start()
            threading.Thread(target=copy, args=(agent, client, n >= sessions), daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()
    return server


def case_conformance_agent_that_falls_silent(lab, wire, guest, port):
    """The first session names the device, the second one plays a test, the third one asks whether it is alive: what that test showed stays. The
    waits for an answer in the fourth and in the fifth one end the run."""
    with stalling(port, 3) as server:
        begin = time.time()
        status, card, said = conformance(lab, guest, server.getsockname()[1], "psn/gap", "psn/wrap", "ack/asked-for", "--agent-timeout", "%d" % (3 * SLOW))
        took = time.time() - begin
    assert status == 1 and told(card) == {"psn/gap": "pass", "psn/wrap": "crash"} and "1 test not run: the device serves nothing any more" in said, (card, said)
    assert "no answer within" in card["tests"][1]["reason"] and card["score"]["M"]["pass"] == 1 and took < 40 * SLOW, (took, card["tests"][1])
    gone(guest)


def send_signal(pid, number):
    """To a process that may have ended meanwhile."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def late(lab, wire, guest, port, times):
    """The result of a test in which the tester stands still for 0.8 s when a WRITE of the device arrives, so often: its ACK, which it holds back
    for 0.5 s, comes behind the ACK timeout."""
    held, pid = [], []

    def hook(side, frame):
        if side == 0 and is_rdma(frame) and len(held) < times and opcode(frame) == WRITE_ONLY and pid:
            held.append(1)
            send_signal(pid[0], signal.SIGSTOP)
            threading.Timer(0.8, send_signal, (pid[0], signal.SIGCONT)).start()
        return (frame,)
    wire.hook = hook
    try:
        status, card, said = conformance(lab, guest, port, "ack/late", begun=pid.append)
    finally:
        wire.hook = None
    assert card and len(held) >= min(times, 5), (said, held)
    return status, card["tests"][0]


def case_conformance_tester_that_is_late(lab, wire, guest, port):
    """What the device does because the tester's host is busy is no fault of the device: the test is played again, or shows nothing."""
    status, test = late(lab, wire, guest, port, 1)
    assert status == 0 and test["result"] == "pass", test
    status, test = late(lab, wire, guest, port, 1000)
    assert status == 1 and test["result"] == "inconclusive" and "in every try this side was late" in test["reason"], test


def case_conformance_ipv6(lab, wire, guest, port):
    """Over IPv6, the tester with two addresses, for which it answers neighbour discovery. Not wire/changed: soft-RoCE of Linux 6.1 ends in a kernel
    panic for some packet of it (rxe_rcv() puts a queue pair that was never found)."""
    chosen = ["wire/addresses", "wire/hop-limit", "wire/fragment", "psn/gap", "cm/accepts", "cm/connects", "cm/sidr", "ud/device-path", "ud/multicast"]
    status, card, said = conformance(lab, guest, port, "--profile", "rxe", *chosen, six=True)
    late = {t["id"] for t in card["tests"] if t["result"] == "inconclusive" and "this side was late" in t["reason"]}
    wanted = {"wire/fragment": "unsupported", "ud/device-path": "known", "ud/multicast": "known"}
    assert {i: r for i, r in told(card).items() if i not in late} == {i: wanted.get(i, "pass") for i in chosen if i not in late} and len(late) < 4, (late, told(card), said)
    assert "fd77::1" in card["dut"]["name"], card["dut"]


def case_conformance_without_an_agent(lab, wire, guest, port):
    for more, why in (({"token": TOKEN[::-1]}, "the agent does not take this token"), ({"port": free_port()}, "Connection refused")):
        status, card, said = conformance(lab, guest, more.get("port", port), "psn", token=more.get("token", TOKEN))
        assert status == 3 and card is None and why in said, said
    other = Agent(port)
    other("dev open")
    status, card, said = conformance(lab, guest, port, "psn")
    assert status == 3 and "the agent serves another client" in said, said
    other("quit")
    other.close()
