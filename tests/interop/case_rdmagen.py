"""rdmagen against one guest, over UNIX datagram sockets: it has the address 10.77.0.9 or fd77::9."""
import json
import os
import re
import subprocess

from lab import Failure

BUILD = os.environ.get("BUILD", "build")
RDMAGEN, RDMATRACE = [os.path.abspath(os.path.join(BUILD, n)) for n in ("rdmagen", "rdmatrace")]
OWN, OWN6 = "10.77.0.9", "fd77::9"


class Rdmagen:
    """A run of rdmagen. What it records is judged at its end; `spoiled` packets in it have a wrong ICRC."""
    def __init__(self, lab, guest, name, *args, spoiled=0):
        self.spoiled = spoiled
        self.capture = lab.path(name + ".pcapng")
        six = ":" in " ".join(args[:2])
        command = [RDMAGEN, *args, "--backend", "unix:%s,%s" % (guest.to, guest.at), "-w", self.capture]
        if "--addr" not in args:
            command += ["--addr", OWN6 if six else OWN]
        self.command = command
        self.out = open(lab.path(name + ".out"), "w+")
        self.process = lab.popen(command, stdout=self.out, stderr=subprocess.STDOUT)

    def text(self):
        self.out.seek(0)
        return self.out.read()

    def wait(self, status=0, timeout=30):
        """Wait for its end; its output. Fails with another exit status, or when the capture does not stand up."""
        try:
            got = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failure("not done after %g s: %s\n%s%s" % (timeout, " ".join(self.command), self.text(), self.decoded()))
        if got != status:
            raise Failure("exit status %d instead of %d: %s\n%s%s" % (got, status, " ".join(self.command), self.text(), self.decoded()))
        self.judge()
        return self.text()

    def decoded(self):
        return subprocess.run([RDMATRACE, "decode", self.capture], capture_output=True, text=True).stdout[-6000:]

    def packets(self):
        r = subprocess.run([RDMATRACE, "decode", "-T", "ndjson", self.capture], capture_output=True, text=True)
        if r.returncode:
            raise Failure(r.stderr)
        return r.stdout

    def judge(self):
        out = self.packets()
        if out.count('"rdma.icrc.status":"bad"') != self.spoiled or "alformed" in out:
            raise Failure("packets with a wrong ICRC, or malformed ones\n" + self.decoded())
        spared = ["--no-rule", "FMT-01"] if self.spoiled else []
        r = subprocess.run([RDMATRACE, "check", "--profile", "rxe", *spared, self.capture], capture_output=True, text=True)
        if r.returncode:
            raise Failure("rdmatrace check --profile rxe: status %d\n%s%s%s" % (r.returncode, r.stdout, r.stderr, self.decoded()))


def guests(lab):
    guest = lab.guest(1, lab.path("g"), lab.path("r"))
    guest.ready()
    return (guest,)


def pings(guest, count, size, address, lab, name, *extra, spoiled=0):
    server = guest.start("rping -s -a %s -C %d -S %d -v" % (address, count, size))
    guest.listening("rping")
    out = Rdmagen(lab, guest, name, "ping", address, "-C", str(count), "-S", str(size), "-V", "-v", *extra,
                  spoiled=spoiled).wait()
    assert "%d pings, 0 wrong" % count in out, out
    status, seen = server.wait()
    # rping may close its channel while its own thread still waits at it: no fault of the peer's.
    assert status == 0 or "rdma_get_cm_event: Bad file descriptor" in seen, "status %d: %s" % (status, seen)
    assert seen.count("server ping data: rdma-ping-") == count, seen
    data = re.findall(r"^ping data: (.*)", out, re.M)
    theirs = [x[:len(d)] for x, d in zip(re.findall(r"server ping data: (.*)", seen), data)]
    assert data == theirs and len(data) == count, out + seen


def case_ping_rping_server_ipv4(lab, guest):
    pings(guest, 5, 64, guest.ip, lab, "ping4")


def case_ping_rping_server_ipv6(lab, guest):
    pings(guest, 5, 64, guest.ip6, lab, "ping6")


def case_ping_many_packets(lab, guest):
    before = guest.counters()
    pings(guest, 10, 65000, guest.ip, lab, "ping64k")
    after = guest.counters()
    for what in ("out_of_seq_request", "rcvd_seq_err", "retry_exceeded_err"):
        assert before[what] == after[what], "%s: %d, then %d" % (what, before[what], after[what])


def serve_pings(guest, count, size, own, lab, name, *extra, spoiled=0):
    server = Rdmagen(lab, guest, name, "ping", "-s", "-V", "-v", "--addr", own, *extra, spoiled=spoiled)
    status, out = guest.run("rping -c -a %s -C %d -S %d -V -v" % (own, count, size))
    assert status == 0 and out.count("ping data: rdma-ping-") == count, out + server.text()
    text = server.wait()
    assert "%d pings served, 0 wrong" % count in text, text


def case_ping_rping_client_ipv4(lab, guest):
    serve_pings(guest, 5, 64, OWN, lab, "pong4")


def case_ping_rping_client_ipv6(lab, guest):
    serve_pings(guest, 5, 64, OWN6, lab, "pong6")


def case_ping_rping_client_many_packets(lab, guest):
    serve_pings(guest, 10, 65000, OWN, lab, "pong64k", "--profile", "rxe")


def case_ping_without_listener_is_refused(lab, guest):
    out = Rdmagen(lab, guest, "refused", "ping", guest.ip, "-C", "1").wait(status=1)
    assert "refused" in out, out


def case_ping_nobody_is_reported(lab, guest):
    out = Rdmagen(lab, guest, "nobody", "ping", "10.77.0.77", "-C", "1").wait(status=1)
    assert "10.77.0.77 does not answer" in out, out
