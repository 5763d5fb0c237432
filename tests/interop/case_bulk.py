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
    before, start = guest.counters(), time.time()
    us = run(lab, "bulk_server", guest, "ping", "-s", "-V", "-q", "--addr", OWN, "--profile", "rxe")
    ended(*guest.run("rping -c -a %s -C %d -S %d -V" % (OWN, COUNT, SIZE), timeout=3600))
    us.wait(timeout=60)
    moved(start)
    counted(guest, before)


def case_bulk_rping_server(lab, guest):
    """rping READs and WRITEs back; we compare."""
    before, start = guest.counters(), time.time()
    server = guest.start("rping -s -a %s -C %d -S %d" % (guest.ip, COUNT, SIZE))
    guest.listening("rping")
    us = run(lab, "bulk_client", guest, "ping", guest.ip, "-C", str(COUNT), "-S", str(SIZE), "-V", "-q", "--addr", OWN)
    us.wait(timeout=3600)
    ended(*server.wait())
    moved(start)
    counted(guest, before)


def counted(guest, before):
    after = guest.counters()
    # Soft-RoCE's packet counters: all of the data at 4096 bytes a packet, and little else.
    packets = after["sent_pkts"] - before["sent_pkts"] + after["rcvd_pkts"] - before["rcvd_pkts"]
    least = 2 * MIB * 1048576 // 4096
    assert least <= packets <= 3 * least, "%d packets" % packets
    assert after["retry_exceeded_err"] == before["retry_exceeded_err"]
