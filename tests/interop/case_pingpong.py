"""rdmagen pingpong against ibv_rc_pingpong, ibv_uc_pingpong and ibv_ud_pingpong, both sides. The addresses are exchanged over QEMU's
user network."""
import socket


from case_rdmagen import OWN, OWN6, Rdmagen

FILL = 500  # messages each way


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def guests(lab):
    port = free_port()
    guest = lab.guest(1, lab.path("g"), lab.path("r"), forward=[(port, 18515)])
    guest.ready()
    gids = guest.run("cd /sys/class/infiniband/rxe0/ports/1/gids; for i in 0 1 2 3 4 5; do cat $i; done")[1].split()
    index = {}
    for i, g in enumerate(gids):
        index.setdefault("6" if g.startswith("fd77") else "4" if g.endswith("ffff:0a4d:0001") else "other", i)
    return guest, port, index


def client(lab, guest, port, index, kind, size, family="4"):
    """rdmagen is the client."""
    peer = guest.start("ibv_%s_pingpong -g %d -s %d -n %d" % (kind.lower(), index[family], size, FILL))
    guest.listening("tcp:18515")
    out = Rdmagen(lab, guest, "pp%s%d" % (kind, size), "pingpong", guest.ip if family == "4" else guest.ip6, "-c", kind, "-S", str(size),
                  "-n", str(FILL), "--tcp", "127.0.0.1", "-p", str(port), "-V").wait()
    assert "%d sent, %d received, 0 wrong" % (FILL, FILL) in out, out
    status, seen = peer.wait()
    assert status == 0 and "%d iters in" % FILL in seen, seen


def server(lab, guest, port, index, kind, size, family="4"):
    """rdmagen is the server."""
    listen = free_port()
    own = OWN if family == "4" else OWN6
    us = Rdmagen(lab, guest, "ppd%s%d" % (kind, size), "pingpong", "-s", "-c", kind, "-S", str(size), "-n", str(FILL), "-p", str(listen),
                 "-V", "--addr", own)
    status, seen = guest.run("ibv_%s_pingpong -g %d -s %d -n %d -p %d 10.0.2.2" % (kind.lower(), index[family], size, FILL, listen), timeout=40)
    assert status == 0 and "%d iters in" % FILL in seen, seen + us.text()
    out = us.wait()
    assert "%d sent, %d received, 0 wrong" % (FILL, FILL) in out, out


def make(role, *args):
    def case(lab, guest, port, index):
        return role(lab, guest, port, index, *args)
    return case


for role_ in (client, server):
    for kind_, size_, family_ in (("RC", 4096, "4"), ("RC", 1, "6"), ("UC", 4096, "4"), ("UC", 3000, "6"), ("UD", 1024, "4"), ("UD", 77, "6")):
        globals()["case_pingpong_%s_%d_ipv%s_%s" % (kind_.lower(), size_, family_, role_.__name__)] = make(role_, kind_, size_, family_)
