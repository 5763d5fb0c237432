"""Much data at path MTU 4096: what a client sends, and comes back, is compared on both sides. BULK_MIB says how much, each way (64; the
soak: 1024)."""
import os
import subprocess
import time

from case_rdmagen import OWN, RDMAGEN, Rdmagen, ended, link

MIB = int(os.environ.get("BULK_MIB", "64"))
SIZE = 65535  # what rping takes at most
COUNT = MIB * 1048576 // SIZE + 1


def guests(lab):
    guest = lab.guest(1, lab.path("g"), lab.path("r"), mtu=4200)
    guest.ready()
    return (guest,)


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


def moved(start):
    seconds = time.time() - start
    print("# %d MiB each way in %.1f s, %.1f MiB/s" % (MIB, seconds, 2 * MIB / seconds))


def run(lab, name, guest, *args):
    return (Rdmagen if MIB <= 64 else Unrecorded)(lab, guest, name, *args, mtu=4200)


def case_bulk_rping_client(lab, guest):
    """We READ, compare with rping's pattern, and WRITE back; rping compares."""
    start = time.time()
    us = run(lab, "bulk_server", guest, "ping", "-s", "-V", "-q", "--addr", OWN, "--profile", "rxe")
    ended(*guest.run("rping -c -a %s -C %d -S %d -V" % (OWN, COUNT, SIZE), timeout=3600))
    us.wait(timeout=60)
    moved(start)


def case_bulk_rping_server(lab, guest):
    """rping READs and WRITEs back; we compare."""
    start = time.time()
    server = guest.start("rping -s -a %s -C %d -S %d" % (guest.ip, COUNT, SIZE))
    guest.listening("rping")
    us = run(lab, "bulk_client", guest, "ping", guest.ip, "-C", str(COUNT), "-S", str(SIZE), "-V", "-q", "--addr", OWN)
    us.wait(timeout=3600)
    ended(*server.wait())
    moved(start)
