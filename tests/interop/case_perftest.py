"""rdmagen write, read, send, cas and faa against perftest's servers. The parameters are exchanged over QEMU's user network, or by
RDMA-CM, which is IPv4: perftest 4.5 listens at 0.0.0.0 only with -R, and refuses IPv6 addresses, whatever --ipv6 says."""
import json
import re

import case_pingpong
from case_rdmagen import Rdmagen

N = 100  # messages of each queue pair


def guests(lab):
    return case_pingpong.guests(lab)[1:]


def client(lab, guest, port, index, op, tool, size=65536, family="4", qps=1, kind="RC", mtu=1024, cm=False, more=()):
    """rdmagen is the client."""
    name = "%s%d%s%d%s%d.%d" % (op, size, family, qps, kind, cm, mtu)
    command = "%s -d rxe0 -x %d -F -n %d -m %d" % (tool, index[family], N, mtu)
    command += "" if "atomic" in tool else " -s %d" % size
    command += {"cas": " -A CMP_AND_SWAP", "faa": " -A FETCH_AND_ADD"}.get(op, "")
    command += " -q %d" % qps if qps > 1 else ""
    command += " -c %s" % kind if kind != "RC" else ""
    command += " -R" if cm else ""
    command += " -o 16" if cm and ("read" in tool or "atomic" in tool) else ""  # it says 128 in its REP, whatever the REQ says
    guest.run("killall -9 %s" % tool)  # left behind by a case that failed
    peer = guest.start(command)
    guest.listening(tool if cm else "tcp:18515")
    us = Rdmagen(lab, guest, name, op, guest.ip if family == "4" else guest.ip6, "-s", str(size), "-n", str(N), "-q", str(qps), "-c", kind,
                 "-m", str(mtu), "-u", "19", *(["-R"] if cm else ["--tcp", "127.0.0.1", "-p", str(port)]), "--validate", "--profile", "rxe", "--json=" + lab.path(name + ".json"), *more,
                 mtu=1500 if mtu <= 1024 else 4200)
    out = us.wait()
    status, seen = peer.wait()
    assert status == 0, "status %d: %s" % (status, seen)
    with open(lab.path(name + ".json")) as f:
        j = json.load(f)
    assert j["messages"] == qps * N and j["bytes"] == qps * N * size and j["mismatches"] == 0 and not j["error"], j
    assert [q["messages"] for q in j["queue_pairs"]] == [N] * qps and j["mtu"] == mtu, j
    # perftest's programs tell nothing of the data that they got.
    assert j["validated"] is (True if op in ("read", "cas", "faa") else None) and j["compared"] == (qps * N if j["validated"] else 0), j
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
    client(*args, "write", "ib_write_lat", size=64, more=("--latency",))


def case_perftest_send_lat(*args):
    client(*args, "send", "ib_send_lat", size=64, more=("--latency",))


def case_perftest_read_lat(*args):
    client(*args, "read", "ib_read_lat", size=64, more=("--latency",))


def case_perftest_atomic_lat(*args):
    client(*args, "faa", "ib_atomic_lat", size=8, more=("--latency",))


def case_perftest_write_bw_cm(*args):
    client(*args, "write", "ib_write_bw", size=4096, cm=True)


def case_perftest_write_bw_cm_4_queue_pairs(*args):
    client(*args, "write", "ib_write_bw", size=4096, qps=4, cm=True)


def case_perftest_read_bw_cm(*args):
    client(*args, "read", "ib_read_bw", size=4096, cm=True)


def case_perftest_send_bw_cm(*args):
    client(*args, "send", "ib_send_bw", size=4096, cm=True)


def case_perftest_cas_cm(*args):
    client(*args, "cas", "ib_atomic_bw", size=8, cm=True)


def case_perftest_faa_cm_2_queue_pairs(*args):
    client(*args, "faa", "ib_atomic_bw", size=8, qps=2, cm=True)


def case_perftest_send_lat_cm(*args):
    client(*args, "send", "ib_send_lat", size=64, cm=True, more=("--latency",))


def case_perftest_write_lat_cm(*args):
    client(*args, "write", "ib_write_lat", size=64, cm=True, more=("--latency",))


def path_mtu(args, op, tool, mtu):
    guest = args[1]
    guest.run("ip link set eth0 mtu %d" % (1500 if mtu <= 1024 else 4200))
    try:
        client(*args, op, tool, size=20000, mtu=mtu)
    finally:
        guest.run("ip link set eth0 mtu 1500")


def make(op, tool, mtu):
    def case(*args):
        path_mtu(args, op, tool, mtu)
    return case


for o, m in (("write", 256), ("read", 256), ("send", 512), ("read", 2048), ("write", 4096), ("read", 4096)):
    globals()["case_perftest_%s_path_mtu_%d" % (o, m)] = make(o, "ib_%s_bw" % o, m)
