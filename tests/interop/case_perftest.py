"""rdmagen write, read, send, cas and faa against perftest's servers. The parameters are exchanged over QEMU's user network."""
import json
import re

from case_pingpong import free_port, guests
from case_rdmagen import Rdmagen

N = 100  # messages of each queue pair


def client(lab, guest, port, index, op, tool, size=65536, family="4", qps=1, kind="RC", mtu=1024, more=()):
    """rdmagen is the client."""
    name = "%s%d%s%d%s" % (op, size, family, qps, kind)
    command = "%s -d rxe0 -x %d -F -n %d -m %d" % (tool, index[family], N, mtu)
    command += "" if "atomic" in tool else " -s %d" % size
    command += {"cas": " -A CMP_AND_SWAP", "faa": " -A FETCH_AND_ADD"}.get(op, "")
    command += " -q %d" % qps if qps > 1 else ""
    command += " -c %s" % kind if kind != "RC" else ""
    peer = guest.start(command)
    guest.listening("tcp:18515")
    us = Rdmagen(lab, guest, name, op, guest.ip if family == "4" else guest.ip6, "-s", str(size), "-n", str(N), "-q", str(qps), "-c", kind,
                 "-m", str(mtu), "--tcp", "127.0.0.1", "-p", str(port), "-V", "--profile", "rxe", "--json=" + lab.path(name + ".json"), *more)
    out = us.wait()
    status, seen = peer.wait()
    assert status == 0, "status %d: %s" % (status, seen)
    with open(lab.path(name + ".json")) as f:
        j = json.load(f)
    assert j["messages"] == qps * N and j["bytes"] == qps * N * size and j["mismatches"] == 0 and not j["error"], j
    assert [q["messages"] for q in j["queue_pairs"]] == [N] * qps and j["mtu"] == mtu, j
    assert 0 < j["t_min"] <= j["t_typical"] <= j["t_99"] <= j["t_max"], j
    # What the peer prints itself: bandwidth tests repeat what we told them, the others count.
    assert re.search(r"^ %d +%d " % (size, qps * N), seen, re.M) or op == "read" and j["latency"] or "atomic_lat" in tool, seen


def case_perftest_write_bw(*args):
    client(*args, "write", "ib_write_bw")


def case_perftest_write_bw_4_queue_pairs(*args):
    client(*args, "write", "ib_write_bw", size=4096, qps=4)


def case_perftest_write_bw_ipv6(*args):
    client(*args, "write", "ib_write_bw", size=3000, family="6")


def case_perftest_write_bw_uc(*args):
    client(*args, "write", "ib_write_bw", size=4096, kind="UC")


def case_perftest_read_bw(*args):
    client(*args, "read", "ib_read_bw", size=8192)


def case_perftest_send_bw(*args):
    client(*args, "send", "ib_send_bw", size=8192)


def case_perftest_send_bw_ud(*args):
    client(*args, "send", "ib_send_bw", size=1024, kind="UD")


def case_perftest_cas(*args):
    client(*args, "cas", "ib_atomic_bw", size=8)


def case_perftest_faa(*args):
    client(*args, "faa", "ib_atomic_bw", size=8)


def case_perftest_write_lat(*args):
    client(*args, "write", "ib_write_lat", size=64, more=("-L",))


def case_perftest_send_lat(*args):
    client(*args, "send", "ib_send_lat", size=64, more=("-L",))


def case_perftest_read_lat(*args):
    client(*args, "read", "ib_read_lat", size=64, more=("-L",))


def case_perftest_atomic_lat(*args):
    client(*args, "faa", "ib_atomic_lat", size=8, more=("-L",))
