"""Two guests that talk to each other through `rdmagen inject`: every kind of event. The programs succeed, the hosts stand up to `rdmatrace
check`, and `rdmatrace explain` finds the cause and the very frames; which those are is found out here, by comparing what went in with what
came out."""
import collections
import json
import os
import signal
import struct
import subprocess
import time

from case_rdmagen import RDMAGEN, RDMATRACE
from counters import Tape
from lab import Failure

# What soft-RoCE does when it is slow: its timer, or that of an earlier packet, makes it send again what is on its way, or answered already.
BY_ITSELF = {"lost-ack", "lost-last-packet", "early-timeout", "peer-slow"}
Frame = collections.namedtuple("Frame", "number iface time inbound data comment")


def read_pcapng(path):
    """Names of the interfaces, and all frames, of a little-endian file with nanoseconds."""
    with open(path, "rb") as f:
        data = f.read()
    names, frames, at = [], [], 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        body, options = data[at + 8:at + size - 4], {}
        start = {1: 8, 6: 20 + (struct.unpack_from("<I", body, 12)[0] + 3 & ~3) if kind == 6 else 0}.get(kind)
        while start is not None and start + 4 <= len(body):
            code, length = struct.unpack_from("<HH", body, start)
            if code == 0:
                break
            options[code] = body[start + 4:start + 4 + length]
            start += 4 + (length + 3 & ~3)
        if kind == 1:
            names.append(options[2].decode())
            assert options[9] == b"\x09", "time stamps of nanoseconds"
        elif kind == 6:
            iface, high, low, length = struct.unpack_from("<IIII", body, 0)
            frames.append(Frame(len(frames) + 1, iface, high << 32 | low, struct.unpack("<I", options[2])[0] & 3 == 1,
                                body[20:20 + length], options.get(1, b"").decode()))
        at += size
    return names, frames


def hit(frames):
    """Numbers of the frames that did not come through as they were: all frames of which something was lost, changed, doubled or overtaken; of
    these the ones that show it: lost ones as they came in, the others as they went out. And by how much a frame was late at most."""
    touched, shown, late = set(), set(), 0
    for side in (0, 1):
        here = [f for f in frames if f.iface == side and f.inbound]
        there = [f for f in frames if f.iface == 1 - side and not f.inbound]
        came, went = [collections.Counter(f.data for f in x) for x in (here, there)]
        gone, new = [f for f in here if not went[f.data]], [f for f in there if not came[f.data]]
        touched |= {f.number for f in gone + new} | {f.number for f in here + there if went[f.data] > came[f.data] > 0}
        shown |= {f.number for f in new} if new else {f.number for f in gone}
        first = set()
        for f in there:
            if went[f.data] > came[f.data] > 0 and f.data in first:
                shown.add(f.number)
            first.add(f.data)
        # Of those that are there once on both sides: which came out behind one that had come in later?
        one = {f.data: f for f in here if came[f.data] == 1 and went[f.data] == 1}
        newest = 0
        for f in (f for f in there if f.data in one):
            origin = one[f.data]
            if origin.number < newest:
                touched |= {origin.number, f.number}
                shown.add(f.number)
            newest = max(newest, origin.number)
            late = max(late, f.time - origin.time)
    return touched, shown, late


class Inject:
    """A run of the bridge; call end() when the programs are done."""
    def __init__(self, lab, ports, name, events):
        self.lab, self.events, self.name = lab, events, name
        self.capture, self.json = lab.path(name + ".pcapng"), lab.path(name + ".json")
        self.command = [RDMAGEN, "inject", *["unix:%s,%s" % (to, at) for at, to in ports], "-w", self.capture, "--json=" + self.json]
        for e in events:
            self.command += ["--event", e]
        self.out = open(lab.path(name + ".out"), "w+")
        self.process = lab.popen(self.command, stdout=self.out, stderr=subprocess.STDOUT)
        deadline = time.time() + 20
        while "forwarding" not in self.text():
            if self.process.poll() is not None or time.time() > deadline:
                raise Failure("%s: %s" % (" ".join(self.command), self.text()))
            time.sleep(0.02)

    def text(self):
        self.out.seek(0)
        return self.out.read()

    def decoded(self, tail=6000):
        return subprocess.run([RDMATRACE, "decode", self.capture], capture_output=True, text=True).stdout[-tail:]

    def end(self):
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(10)
        assert status == 0, "status %d of %s\n%s\n%s" % (status, " ".join(self.command), self.text(), self.decoded())
        with open(self.json) as f:
            return json.load(f)


def guests(lab):
    ports = [(lab.path(n), lab.path(n + ".wire")) for n in "ab"]
    one, two = lab.guest(1, *ports[0]), lab.guest(2, *ports[1])
    one.ready()
    two.ready()
    index = {}
    for g in (one, two):
        gids = g.run("cd /sys/class/infiniband/rxe0/ports/1/gids; for i in 0 1 2 3 4 5; do cat $i; done")[1].split()
        index[g] = [i for i, x in enumerate(gids) if x.endswith("ffff:0a4d:%04x" % g.number)][0]
    return ports, one, two, index


# --- Programs: the client is guest 1, the requester's side. ---

def rping(one, two, index, count=3, size=20000, six=False):
    address = two.ip6 if six else two.ip
    server = two.start("rping -s -a %s -C %d -S %d -v" % (address, count, size))
    two.listening("rping")
    status, out = one.run("rping -c -a %s -C %d -S %d -V -v" % (address, count, size))
    assert status == 0 and out.count("ping data: rdma-ping-") == count, out
    status, out = server.wait()
    assert status == 0 and out.count("server ping data: rdma-ping-") == count, out


def pingpong(one, two, index, kind="rc", size=4096, count=100):
    command = "ibv_%s_pingpong -g %%d -s %d -n %d -c" % (kind, size, count)
    server = two.start(command % index[two])
    two.listening("tcp:18515")
    status, out = one.run(command % index[one] + " " + two.ip)
    assert status == 0 and "%d iters in" % count in out, out
    status, out = server.wait()
    assert status == 0 and "%d iters in" % count in out, out


def rping6(one, two, index):
    rping(one, two, index, six=True)


def pingpong_uc(one, two, index):
    pingpong(one, two, index, kind="uc")


def pingpong_ud(one, two, index):
    pingpong(one, two, index, kind="ud", size=1024)


def perftest(tool, *words):
    def run(one, two, index):
        command = "%s -x %%d -F %s" % (tool, " ".join(words))
        server = two.start(command % index[two])
        two.listening("tcp:18515")
        status, out = one.run(command % index[one] + " " + two.ip)
        assert status == 0 and "#bytes" in out, out
        status, out = server.wait()
        assert status == 0, out
    return run


write_bw = perftest("ib_write_bw", "-s 8192", "-n 40")
write_bw_2 = perftest("ib_write_bw", "-s 8192", "-n 40", "-q 2")
read_bw = perftest("ib_read_bw", "-s 8192", "-n 20")
atomic_bw = perftest("ib_atomic_bw", "-n 40")
send_bw = perftest("ib_send_bw", "-s 8192", "-n 40")


def play(lab, ports, one, two, index, name, program, events, causes, connections=1, spared=(), hits=1, late=0):
    """`causes`: what explain finds; `spared`: rules that the changed packets themselves break; `late`: by how many nanoseconds a packet is."""
    bridge = Inject(lab, ports, name, events)
    lab.tapes += [Tape(g, bridge.capture, i) for i, g in enumerate((one, two))]
    if events:
        lab.expect(out_of_seq_request=range(0, 20), rcvd_seq_err=range(0, 20), duplicate_request=range(0, 1000), completer_retry_err=range(0, 500))
    try:
        program(one, two, index)
    except Exception as e:
        bridge.process.send_signal(signal.SIGINT)
        bridge.process.wait(10)
        raise Failure("%s\n%s\n%s" % (e, bridge.text(), bridge.decoded())) from e
    result = bridge.end()
    assert [e["packets"] for e in result["events"]] == [hits] * len(events), result["events"]
    assert len(result["connections"]) == connections, result["connections"]
    assert all(c["requester_port"] == 0 and c["requester"]["addr"].endswith((one.ip, one.ip6)) and "qpn" in c["requester"] and "psn" in c["responder"]
               for c in result["connections"]), result["connections"]
    assert all(p["too_long"] + p["overflow"] + p["missed"] == 0 for p in result["ports"]), result["ports"]
    names, frames = read_pcapng(bridge.capture)
    assert names == [p["name"] for p in result["ports"]], names
    touched, shown, most = hit(frames)
    commented = {f.number for f in frames if f.comment}
    assert commented if events else not commented, bridge.decoded()
    assert late or touched == commented, "frames %s were hit, %s have comments\n%s" % (sorted(touched), sorted(commented), bridge.decoded())
    assert most >= late, "%d ns of delay" % most
    r = subprocess.run([RDMATRACE, "check", "--complete", "--profile", "rxe", "--tap", "0=requester,1=responder", *sum((["--no-rule", s] for s in spared), []),
                        bridge.capture], capture_output=True, text=True)
    assert r.returncode == 0, r.stdout + r.stderr + bridge.decoded()
    statements = json.loads(subprocess.run([RDMATRACE, "explain", "-T", "json", bridge.capture], capture_output=True, text=True).stdout)["incidents"]
    found = {s["cause"] for s in statements}
    assert set(causes) <= found <= set(causes) | BY_ITSELF, "causes %s\n%s" % (
        [(s["cause"], s["frame_list"], s["text"]) for s in statements], bridge.decoded())
    assert late or shown <= {f for s in statements for f in s["frame_list"]}, "frames %s were hit: %s" % (shown, statements)


def make(*args, **more):
    def case(lab, ports, one, two, index):
        play(lab, ports, one, two, index, *args, **more)
    return case


SPOILED = {"spared": ["FMT-01"]}
CASES = [
    ("rping_untouched", rping, [], []),
    ("rping_ipv6_untouched", rping6, [], []),
    ("pingpong_untouched", pingpong, [], []),
    ("pingpong_uc_untouched", pingpong_uc, [], []),
    ("pingpong_ud_untouched", pingpong_ud, [], []),
    ("write_bw_untouched", write_bw, [], []),
    ("write_first_lost", write_bw, ["conn=1 class=write psn=8 drop"], ["packet-loss"]),
    ("write_middle_lost", write_bw, ["conn=1 class=write psn=19 drop"], ["packet-loss"]),
    # Its second loss is mended by a timeout: the responder does not ask twice.
    ("write_middle_lost_twice", write_bw, ["conn=1 class=write psn=19 iter=1-2 drop"], ["packet-loss"], {"hits": 2}),
    ("last_packet_lost", write_bw, ["conn=1 class=write psn=319 drop"], ["lost-last-packet"]),
    ("ack_lost", write_bw, ["conn=1 class=ack psn=319 drop"], ["lost-ack"]),
    ("second_connection", write_bw_2, ["conn=2 class=write psn=21 drop"], ["packet-loss"], {"connections": 2}),
    ("read_response_lost", read_bw, ["conn=1 class=resp psn=11 drop"], ["lost-read-response"]),
    ("read_request_lost", read_bw, ["conn=1 class=read nth=3 drop"], ["packet-loss"]),
    ("atomic_ack_lost", atomic_bw, ["conn=1 class=resp psn=5 drop"], ["lost-ack"]),
    ("send_lost_in_pingpong", pingpong, ["conn=1 dir=req class=send psn=30 drop"], ["packet-loss"]),
    ("send_of_the_server_lost", pingpong, ["conn=1 dir=rsp class=send psn=33 drop"], ["packet-loss"]),
    ("reply_of_cm_lost", rping, ["conn=1 dir=rsp class=cm nth=1 drop"], ["cm-timeout"]),
    ("ce", write_bw, ["conn=1 class=write psn=20 ce"], ["ce-without-cnp"], {"spared": ["CC-11"]}),  # soft-RoCE sends packets that are not ECN-capable
    ("corrupt_payload", write_bw, ["conn=1 class=write psn=20 corrupt"], ["bad-icrc"], SPOILED),
    ("corrupt_icrc", send_bw, ["conn=1 class=send psn=20 corrupt=icrc"], ["bad-icrc"], SPOILED),
    ("corrupt_field", rping, ["conn=1 dir=rsp class=write psn=31 corrupt=infiniband.bth.destqp"], ["bad-icrc", "packet-loss"], SPOILED),
    ("delay", pingpong, ["conn=1 dir=req class=send psn=39 delay=20ms"], [], {"late": 20000000}),
    ("reorder", write_bw, ["conn=1 class=write psn=20 reorder=2"], ["reorder"]),
    ("duplicate", write_bw, ["conn=1 class=write psn=20 dup=1"], ["duplicate"]),
    ("truncate", write_bw, ["conn=1 class=write psn=20 truncate=100"], ["bad-icrc", "packet-loss"], {"spared": ["FMT-07"]}),
    ("rewrite", write_bw, ["conn=1 class=write psn=20 set infiniband.bth.p_key=0x8001"], ["packet-loss", "pkey-mismatch"], {"spared": ["FMT-15"]}),
    ("rewrite_raw", write_bw, ["conn=1 class=write psn=20 set infiniband.bth.a=1 raw"], ["bad-icrc"], SPOILED),
    ("several", rping, ["conn=1 dir=rsp class=write psn=31 drop", "conn=1 dir=req class=resp nth=30 drop", "conn=1 dir=rsp class=write psn=75 dup=1"],
     ["packet-loss", "lost-read-response", "duplicate"]),
]
for c in CASES:
    globals()["case_inject_" + c[0]] = make(*c[:4], **(c[4] if len(c) > 4 else {}))
