"""Clients of perftest, ibv_*_pingpong and rping against rdmagen serve, which is not told what they will do."""
import re

import case_pingpong
from case_pingpong import free_port
from case_rdmagen import OWN, OWN6, Rdmagen

N = 100  # messages of each queue pair


def guests(lab):
    return case_pingpong.guests(lab)[1:]


def serve(lab, guest, name, clients, own=OWN, ours=(), mtu=1500, timeout=60):
    """Serve these clients, (command, text in its output) each; {port} and {peer} are filled in. Our output."""
    port = free_port()
    us = Rdmagen(lab, guest, name, "serve", "--max", str(len(clients)), "-p", str(port), "--profile", "rxe", "-u", "19", "--addr", own, *ours, mtu=mtu)
    for command, text in clients:
        status, seen = guest.run(command.format(port=port, peer=own), timeout=timeout)
        assert status == 0 and text in seen, "status %d: %s\n%s" % (status, seen, us.text())
    return us.wait()


def client(lab, guest, port, index, tool, options="", want="", qps=1, size=None, family="4", cm=False, ours=(), mtu=1500):
    size = size or {"ib_write_lat": 2, "ib_send_lat": 2}.get(tool, 4096)
    command = "%s -d rxe0 -x %d -F -n %d -p {port} %s" % (tool, index[family], N, options)
    command += "" if "atomic" in tool else " -s %d" % size
    command += " -q %d" % qps if qps > 1 else ""
    command += " -R {peer}" if cm else " 10.0.2.2"
    name = "".join(c for c in command if c.isalnum())
    out = serve(lab, guest, "s" + name, [(command, " %d" % (8 if "atomic" in tool else size))], OWN if family == "4" else OWN6, ours, mtu)
    assert want in out and "queue pairs %d," % qps in out and "wrong 0" in out, out
    return out


def counted(out, messages=None, octets=None):
    assert messages is None or "messages %d," % messages in out, out
    assert octets is None or "bytes received %d," % octets in out, out


def case_serve_write_bw(*args):
    counted(client(*args, "ib_write_bw", "-m 1024", "WRITE,"), octets=N * 4096)


def case_serve_write_bw_4_queue_pairs(*args):
    counted(client(*args, "ib_write_bw", "", "WRITE,", qps=4), octets=4 * N * 4096)


def case_serve_write_bw_ipv6(*args):
    counted(client(*args, "ib_write_bw", "", "WRITE,", family="6"), octets=N * 4096)


def case_serve_write_bw_uc(*args):
    client(*args, "ib_write_bw", "-c UC", "WRITE,", ours=("-c", "UC"))


def case_serve_read_bw(*args):
    counted(client(*args, "ib_read_bw", "", "READ", size=8192), N)


def case_serve_send_bw(*args):
    counted(client(*args, "ib_send_bw", "", "SEND,"), N, N * 4096)


def case_serve_send_bw_2_queue_pairs_ipv6(*args):
    counted(client(*args, "ib_send_bw", "", "SEND,", qps=2, family="6"), 2 * N, 2 * N * 4096)


def case_serve_send_bw_ud(*args):
    client(*args, "ib_send_bw", "-c UD", "SEND,", size=1024, ours=("-c", "UD"))


def case_serve_send_bw_slowly(*args):
    """Not to be taken for ib_send_lat, which waits for an answer."""
    out = client(*args, "ib_send_bw", "-n 20 -t 5 --rate_limit=0.02 --rate_units=M --rate_limit_type=SW --burst_size=1", "SEND,")
    args[0].expect(send_rnr_err=1, out_of_seq_request=range(0, 2))  # what it is asked, once
    counted(out, 20, 20 * 4096)


def case_serve_cas(*args):
    client(*args, "ib_atomic_bw", "-A CMP_AND_SWAP", "atomics")


def case_serve_faa(*args):
    client(*args, "ib_atomic_bw", "-A FETCH_AND_ADD", "atomics")


def case_serve_write_lat(*args):
    counted(client(*args, "ib_write_lat", "", "WRITE with answers"), N, 2 * N)


def case_serve_write_lat_of_a_size(*args):
    counted(client(*args, "ib_write_lat", "", "WRITE with answers", size=3000, ours=("-s", "3000")), N, N * 3000)


def case_serve_send_lat_is_found_out(*args):
    counted(client(*args, "ib_send_lat", "", "SEND with answers", size=64), N, N * 64)


def case_serve_send_lat_told(*args):
    counted(client(*args, "ib_send_lat", "", "SEND with answers", size=64, ours=("--latency",)), N, N * 64)


def case_serve_send_lat_ud(*args):
    client(*args, "ib_send_lat", "-c UD", "SEND with answers", size=64, ours=("--latency", "-c", "UD"))


def case_serve_read_lat(*args):
    client(*args, "ib_read_lat", "", "READ", size=64)


def case_serve_atomic_lat(*args):
    client(*args, "ib_atomic_lat", "", "atomics")


def case_serve_read_bw_one_at_a_time(*args):
    client(*args, "ib_read_bw", "-o 1", "READ")


def case_serve_read_bw_one_at_a_time_2_queue_pairs(*args):
    client(*args, "ib_read_bw", "-o 1", "READ", qps=2)


def case_serve_read_lat_one_at_a_time(*args):
    client(*args, "ib_read_lat", "-o 1", "READ", size=64)


def case_serve_faa_one_at_a_time(*args):
    client(*args, "ib_atomic_bw", "-A FETCH_AND_ADD -o 1", "atomics")


def case_serve_atomic_lat_one_at_a_time(*args):
    client(*args, "ib_atomic_lat", "-o 1", "atomics")


def case_serve_read_bw_cm_one_at_a_time(*args):
    client(*args, "ib_read_bw", "-o 1", "READ", cm=True)


def case_serve_read_lat_cm_one_at_a_time(*args):
    client(*args, "ib_read_lat", "-o 1", "READ", size=64, cm=True)


def case_serve_write_bw_cm(*args):
    counted(client(*args, "ib_write_bw", "", "WRITE,", cm=True), octets=N * 4096)


def case_serve_write_bw_cm_4_queue_pairs(*args):
    counted(client(*args, "ib_write_bw", "", "WRITE,", cm=True, qps=4), octets=4 * N * 4096)


def case_serve_read_bw_cm(*args):
    client(*args, "ib_read_bw", "", "READ", cm=True)


def case_serve_send_bw_cm(*args):
    counted(client(*args, "ib_send_bw", "", "SEND,", cm=True), N, N * 4096)


def case_serve_faa_cm(*args):
    client(*args, "ib_atomic_bw", "", "atomics", cm=True)


def case_serve_write_lat_cm(*args):
    client(*args, "ib_write_lat", "", "WRITE with answers", cm=True)


def case_serve_send_lat_cm(*args):
    client(*args, "ib_send_lat", "", "SEND with answers", cm=True)


def case_serve_many_clients(lab, guest, port, index):
    """One after the other, of all kinds."""
    tool = "%s -d rxe0 -x %d -F -n 50 -s 2000 -p {port} 10.0.2.2"
    out = serve(lab, guest, "many", [(tool % ("ib_write_bw", index["4"]), " 2000 "), (tool % ("ib_send_bw", index["4"]), " 2000 "),
                                     (tool % ("ib_read_bw", index["4"]), " 2000 "),
                                     ("ibv_rc_pingpong -g %d -n 200 -p {port} 10.0.2.2" % index["4"], "200 iters"),
                                     ("rping -c -a {peer} -C 5 -v", "ping data"),
                                     (tool % ("ib_write_bw", index["4"]), " 2000 ")])
    assert out.count("WRITE,") == 2 and "SEND," in out and "READ" in out and "SEND with answers" in out and "rping, 5 pings" in out, out


def case_serve_ud_pingpong(lab, guest, port, index):
    out = serve(lab, guest, "udpp", [("ibv_ud_pingpong -g %d -s 512 -n 200 -p {port} 10.0.2.2" % index["4"], "200 iters")], ours=("-c", "UD"))
    counted(out, 200)


def case_serve_uc_pingpong_ipv6(lab, guest, port, index):
    out = serve(lab, guest, "ucpp", [("ibv_uc_pingpong -g %d -n 200 -p {port} 10.0.2.2" % index["6"], "200 iters")], OWN6, ours=("-c", "UC"))
    counted(out, 200)


def srq(lab, guest, port, index, family, qps, count):
    """Queue pairs that share a receive queue: on our side each has its own."""
    out = serve(lab, guest, "srq%d" % qps, [("ibv_srq_pingpong -g %d -s 2000 -q %d -n %d -p {port} 10.0.2.2" % (index[family], qps, count), "%d iters" % count)],
                OWN if family == "4" else OWN6, ("--room", "8K"))
    got = int(re.search(r"SEND with answers, queue pairs %d, messages ([0-9]+)," % qps, out)[1])
    assert count <= got < count + qps, out  # the last ones may still be under way


def case_serve_srq_pingpong(lab, guest, port, index):
    srq(lab, guest, port, index, "4", 16, 500)


def case_serve_srq_pingpong_one_queue_pair_ipv6(lab, guest, port, index):
    srq(lab, guest, port, index, "6", 1, 200)


def make(tool, mtu):
    def case(*args):
        guest = args[1]
        guest.run("ip link set eth0 mtu %d" % (1500 if mtu <= 1024 else 4200))
        try:
            client(*args, tool, "-m %d" % mtu, size=20000, mtu=1500 if mtu <= 1024 else 4200)
        finally:
            guest.run("ip link set eth0 mtu 1500")
    return case


for o, m in (("read", 256), ("write", 512), ("send", 2048), ("write", 4096), ("read", 4096)):
    globals()["case_serve_%s_bw_path_mtu_%d" % (o, m)] = make("ib_%s_bw" % o, m)
