"""Two guests with each other: the laboratory itself works, and what travels is decoded without a complaint."""
import json
import struct
import subprocess

from counters import RDMATRACE, Tape


class Recorder:
    """Writes the frames of a wire to a capture file (pcap, nanoseconds)."""
    def __init__(self, path):
        self.file = open(path, "wb")
        self.file.write(struct.pack("<IHHIIII", 0xa1b23c4d, 2, 4, 0, 0, 65536, 1))
        self.time = 0

    def __call__(self, side, frame):
        self.time += 1000
        self.file.write(struct.pack("<IIII", self.time // 10**9, self.time % 10**9, len(frame), len(frame)) + frame)
        self.file.flush()
        return (frame,)


def guests(lab):
    a, b = [(lab.path(n), lab.path(n + ".wire")) for n in "ab"]
    wire = lab.wire(a, b)
    one, two = lab.guest(1, *a), lab.guest(2, *b)
    one.ready()
    two.ready()
    return wire, one, two


def rping(lab, wire, one, two, address, name):
    wire.hook = Recorder(lab.path(name + ".pcap"))
    lab.tapes += [Tape(g, lab.path(name + ".pcap"), None) for g in (one, two)]
    server = two.start("rping -s -a %s -C 3 -v" % address)
    two.listening("rping")
    status, out = one.run("rping -c -a %s -C 3 -v" % address)
    assert status == 0 and out.count("ping data: rdma-ping-") == 3, out
    status, out = server.wait()
    assert status == 0 and out.count("server ping data: rdma-ping-") == 3, out
    wire.hook = None
    r = subprocess.run([RDMATRACE, "decode", "-T", "ndjson", lab.path(name + ".pcap")], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    packets = [json.loads(x) for x in r.stdout.splitlines()]
    text = r.stdout
    assert len(packets) > 30 and '"bad"' not in text and "alformed" not in text, text


def case_guests_rping_ipv4(lab, wire, one, two):
    rping(lab, wire, one, two, two.ip, "rping4")


def case_guests_rping_ipv6(lab, wire, one, two):
    rping(lab, wire, one, two, two.ip6, "rping6")
