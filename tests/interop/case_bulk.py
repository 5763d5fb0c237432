"""Much data at path MTU 4096: what is sent and comes back is compared: by rping on both sides, with ibv_rc_pingpong, which returns what
it has received, on ours. BULK_MIB says how much, each way (64; the soak: 1024)."""
import os
import subprocess
import time

import lab as laboratory
from case_pingpong import PATIENT, exchanged, free_port, gid_index
from case_rdmagen import OWN, RDMAGEN, Rdmagen, ended, link

MIB = int(os.environ.get("BULK_MIB", "64"))
SIZE = 65535  # what rping takes at most
COUNT = MIB * 1048576 // SIZE + 1
ONE = 1048576  # bytes of a message of ibv_rc_pingpong
PATIENCE = 100 * max(1, MIB // 64)  # seconds that a ping-pong may take; 10 here
WAITING = (*PATIENT, "--timeout", "60")  # for a message: where the machine is busy, one of 1 MiB may be lost in part several times, 2 s each
PINGPONG = "ibv_rc_pingpong -g %%d -m 4096 -s %d -n %d" % (ONE, MIB)


def guests(lab):
    port = free_port()
    guest = lab.guest(1, lab.path("g"), lab.path("r"), mtu=4200, forward=[(port, 18515)])
    guest.ready()
    return guest, port, gid_index(guest)["4"]


class Unrecorded(Rdmagen):
    """Without a capture, which would be as large as the data."""
    def __init__(self, lab, guest, name, *args, mtu):
        self.command = [RDMAGEN, *args, *link(guest, mtu)]
        self.out = open(lab.path(name + ".out"), "w+")
        self.process = lab.popen(self.command, stdout=self.out, stderr=subprocess.STDOUT)

    def judge(self):
        pass

    def decoded(self, tail=0):
        return ""


def full_size(us):
    """Packets of the path MTU: 4096 bytes of payload."""
    assert isinstance(us, Unrecorded) or ("4154",) in us.fields("frame.len"), us.decoded(5)


def moved(start):
    seconds = time.time() - start
    print("# %d MiB each way in %.1f s, %.1f MiB/s" % (MIB, seconds, 2 * MIB / seconds))


def together(us, peer):
    """The end of the program in the guest: its exit status and output. If we end first, or both wait for each other, what both said and the
    last packets are told."""
    end = time.time() + PATIENCE * laboratory.SLOW
    while time.time() < end:
        try:
            ours = us.process.wait(1)
        except subprocess.TimeoutExpired:
            ours = 0
        if ours == 0 and peer.ended():
            return peer.wait()
        if ours:
            break
        time.sleep(0.1)
    raise laboratory.Failure("exit status of rdmagen: %s\n%s\nthe peer:\n%s\n%s" % (us.process.poll(), us.text(), peer.log(), us.decoded()))


def run(lab, name, guest, *args):
    return (Rdmagen if MIB <= 64 else Unrecorded)(lab, guest, name, *args, mtu=4200)


def case_bulk_rping_client(lab, guest, *_):
    """We READ, compare with rping's pattern, and WRITE back; rping compares."""
    start = time.time()
    us = run(lab, "bulk_server", guest, "ping", "-s", "-V", "-q", "--addr", OWN, "--profile", "rxe")
    ended(*guest.run("rping -c -a %s -C %d -S %d -V" % (OWN, COUNT, SIZE), timeout=3600))
    us.wait(timeout=60)
    moved(start)


def case_bulk_rping_server(lab, guest, *_):
    """rping READs and WRITEs back; we compare."""
    start = time.time()
    server = guest.start("rping -s -a %s -C %d -S %d" % (guest.ip, COUNT, SIZE))
    guest.listening("rping")
    us = run(lab, "bulk_client", guest, "ping", guest.ip, "-C", str(COUNT), "-S", str(SIZE), "-V", "-q", "--addr", OWN)
    us.wait(timeout=3600)
    ended(*server.wait())
    moved(start)


def case_bulk_pingpong_server(lab, guest, port, index):
    """ibv_rc_pingpong returns what we send, all bytes of one value; we compare."""
    start = time.time()
    peer = guest.start(PINGPONG % index)
    guest.listening("tcp:18515")
    us = run(lab, "bulk_pp", guest, "pingpong", guest.ip, "-S", str(ONE), "-n", str(MIB), "--tcp", "127.0.0.1", "-p", str(port), "-V", "--addr", OWN, *WAITING)
    exchanged(us.wait(timeout=3600), MIB)
    status, seen = peer.wait()
    assert status == 0 and "%d iters in" % MIB in seen, seen
    full_size(us)
    moved(start)


def case_bulk_pingpong_client(lab, guest, port, index):
    """It sends first, the same value; we return it."""
    start, listen = time.time(), free_port()
    us = run(lab, "bulk_ppd", guest, "pingpong", "-s", "-S", str(ONE), "-n", str(MIB), "-p", str(listen), "-V", "--addr", OWN, *WAITING)
    peer = guest.start(PINGPONG % index + " -p %d 10.0.2.2" % listen)
    status, seen = together(us, peer)
    exchanged(us.wait(timeout=60), MIB)
    assert status == 0 and "%d iters in" % MIB in seen, seen
    full_size(us)
    moved(start)
