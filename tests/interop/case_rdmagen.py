"""rdmagen against one guest, over UNIX datagram sockets: it has the address 10.77.0.9 or fd77::9."""
import os
import re
import signal
import subprocess
import time

from counters import RDMATRACE, Tape
from lab import Failure

RDMAGEN = os.path.abspath(os.path.join(os.environ.get("BUILD", "build"), "rdmagen"))
OWN, OWN6 = "10.77.0.9", "fd77::9"


def fields(capture, *names):
    """A tuple of texts for each packet, empty where a packet has no such field."""
    r = subprocess.run([RDMATRACE, "decode", "-T", "fields", *[x for n in names for x in ("-e", n)], capture], capture_output=True, text=True)
    if r.returncode:
        raise Failure(r.stderr)
    return [tuple(line.split("\t")) for line in r.stdout.splitlines()]


def wrapped(capture, op):
    """A message whose packets have this opcode goes on from PSN 0xffffff to 0."""
    psns = [int(psn) for opcode, psn in fields(capture, "infiniband.bth.opcode", "infiniband.bth.psn") if opcode == str(op)]
    assert 0xffffff in psns and 0 in psns, sorted(set(psns))


def link(guest, mtu):
    """Options for the way to the guest."""
    return ["-I", guest.tap] if guest.tap else ["--backend", "unix:%s,%s,%d" % (guest.to, guest.at, mtu)]


class Rdmagen:
    """A run of rdmagen. What it records is judged at its end; `spoiled` packets in it have a wrong ICRC. `mtu`: of the guest."""
    def __init__(self, lab, guest, name, *args, spoiled=0, mtu=1500):
        self.spoiled = spoiled
        self.capture = lab.path(name + ".pcapng")
        six = ":" in " ".join(args[:2])
        command = [RDMAGEN, *args, *link(guest, mtu), "-w", self.capture]
        if "--addr" not in args and not guest.tap:
            command += ["--addr", OWN6 if six else OWN]
        self.command = command
        lab.tapes.append(Tape(guest, self.capture, None))
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

    def decoded(self, tail=6000):
        """The lines of `rdmatrace decode`, the last so many characters of them (None: all)."""
        out = subprocess.run([RDMATRACE, "decode", self.capture], capture_output=True, text=True).stdout
        return out[-tail:] if tail else out

    def packets(self):
        r = subprocess.run([RDMATRACE, "decode", "-T", "ndjson", self.capture], capture_output=True, text=True)
        if r.returncode:
            raise Failure(r.stderr)
        return r.stdout

    def fields(self, *names):
        return fields(self.capture, *names)

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


def behind_wire(lab, **options):
    """A wire, whose hook sees all frames, and the guest behind it; rdmagen takes the guest's place on the wire."""
    at, ours = (lab.path("g"), lab.path("gw")), (lab.path("r"), lab.path("rw"))
    wire = lab.wire(at, ours)
    guest = lab.guest(1, *at, **options)
    guest.ready()
    guest.at, guest.to, wire.guest = ours[1], ours[0], guest
    return wire, guest


def ended(status, seen):
    """rping has ended well. It may close its channel while its own thread still waits at it: no fault of the peer's."""
    assert status == 0 or "rdma_get_cm_event: Bad file descriptor" in seen, "status %d: %s" % (status, seen)


def pings(guest, count, size, address, lab, name, *extra, **options):
    server = guest.start("rping -s -a %s -C %d -S %d -v" % (address, count, size))
    guest.listening("rping")
    out = Rdmagen(lab, guest, name, "ping", address, "-C", str(count), "-S", str(size), "-V", "-v", *extra,
                  **options).wait()
    assert "%d pings, 0 wrong" % count in out, out
    ended(*server.wait())
    seen = server.log()
    assert seen.count("server ping data: rdma-ping-") == count, seen
    data = re.findall(r"^ping data: (.*)", out, re.M)
    theirs = [x[:len(d)] for x, d in zip(re.findall(r"server ping data: (.*)", seen), data)]
    assert data == theirs and len(data) == count, out + seen


def case_ping_rping_server_ipv4(lab, guest):
    pings(guest, 5, 64, guest.ip, lab, "ping4")


def case_ping_rping_server_ipv6(lab, guest):
    pings(guest, 5, 64, guest.ip6, lab, "ping6")


def case_ping_many_packets(lab, guest):
    pings(guest, 10, 65000, guest.ip, lab, "ping64k")


def serve_pings(guest, count, size, own, lab, name, *extra, spoiled=0):
    address = ["--addr", own] if own in (OWN, OWN6) else ["-6"] if ":" in own else []
    server = Rdmagen(lab, guest, name, "ping", "-s", "-V", "-v", *address, *extra, spoiled=spoiled)
    status, out = guest.run("rping -c -a %s -C %d -S %d -V -v" % (own, count, size))
    ended(status, out)
    assert out.count("ping data: rdma-ping-") == count, out + server.text()
    text = server.wait()
    assert "%d ping%s served, 0 wrong" % (count, "s" if count != 1 else "") in text, text


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


def path_mtu(lab, guest, mtu):
    guest.run("ip link set eth0 mtu %d" % (1500 if mtu <= 1024 else 4200))
    try:
        name = "mtu%d" % mtu
        pings(guest, 5, 20000, guest.ip, lab, name, "--mtu", str(mtu), mtu=1500 if mtu <= 1024 else 4200)
        r = subprocess.run([RDMATRACE, "decode", "-T", "fields", "-e", "frame.len", lab.path(name + ".pcapng")],
                           capture_output=True, text=True)
        longest = max(int(x) for x in r.stdout.split())
        assert mtu <= longest <= mtu + 80, "the longest frame has %d bytes" % longest
    finally:
        guest.run("ip link set eth0 mtu 1500")


def case_ping_path_mtu_256(lab, guest):
    path_mtu(lab, guest, 256)


def case_ping_path_mtu_512(lab, guest):
    path_mtu(lab, guest, 512)


def case_ping_path_mtu_2048(lab, guest):
    path_mtu(lab, guest, 2048)


def case_ping_path_mtu_4096(lab, guest):
    path_mtu(lab, guest, 4096)


def case_ping_vlan(lab, guest):
    status, out = guest.run("ip link add link eth0 name v42 type vlan id 42 && ip addr add 10.78.0.1/24 dev v42 && ip link set v42 up")
    assert status == 0, out
    pings(guest, 3, 3000, "10.78.0.1", lab, "vlan", "--addr", "10.78.0.9", "--vlan", "42:5")
    guest.run("ip link del v42")


def case_replay_rping_client(lab, guest):
    """The client of a capture against a live server, which READs what the capture's server READ, and WRITEs it back."""
    server = guest.start("rping -s -a %s -C 3 -S 100 -V -v" % guest.ip)
    guest.listening("rping")
    out = Rdmagen(lab, guest, "replay_client", "replay", guest.ip, "captures/rping_ipv4.pcap").wait()
    assert "6 of 6 work requests completed" in out and "6 of 6 messages of the peer came" in out, out
    ended(*server.wait())
    assert server.log().count("server ping data: rdma-ping-") == 3, server.log()


def case_replay_rping_server(lab, guest):
    """The server of a capture against a live client, which has told other keys and addresses."""
    server = Rdmagen(lab, guest, "replay_server", "replay", "-s", "captures/rping_ipv4.pcap", "--addr", OWN)
    status, out = guest.run("rping -c -a %s -C 3 -S 100 -V -v" % OWN)
    ended(status, out)
    assert out.count("ping data: rdma-ping-") == 3, out
    text = server.wait()
    assert "12 of 12 work requests completed" in text, text


def case_ping_peer_killed(lab, guest):
    server = guest.start("rping -s -a %s -S 10000" % guest.ip)
    guest.listening("rping")
    us = Rdmagen(lab, guest, "killed", "ping", guest.ip, "-S", "10000", "-q")
    before, end = guest.counters()["rcvd_pkts"], time.time() + 10
    while guest.counters()["rcvd_pkts"] < before + 100 and time.time() < end:
        time.sleep(0.05)
    server.kill()
    out = us.wait(status=1)
    assert "disconnected" in out, out + us.decoded()


def case_ping_interrupted(lab, guest):
    server = guest.start("rping -s -a %s -v" % guest.ip)
    guest.listening("rping")
    us = Rdmagen(lab, guest, "interrupted", "ping", guest.ip, "-V")
    end = time.time() + 10
    while us.text().count("bytes from") < 3 and us.process.poll() is None and time.time() < end:
        time.sleep(0.05)
    us.process.send_signal(signal.SIGINT)
    out = us.wait()
    assert re.search(r"^[0-9]+ pings, 0 wrong", out, re.M), out
    while "DISCONNECT" not in server.log() and time.time() < end + 10:
        time.sleep(0.1)
    assert "DISCONNECT" in server.log(), server.log()
    server.kill()  # it does not always end by itself: a thread of its may go on waiting for a completion
