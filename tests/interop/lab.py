"""Guests with soft-RoCE under software emulation, their commands, and what is between them. Everything runs without root: frames
travel over UNIX datagram sockets (QEMU's `-netdev dgram`), TCP connections to the guest over QEMU's user network."""
import ctypes
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import image  # noqa: E402

PR_SET_PDEATHSIG = 1
SLOW = int(os.environ.get("TIME_SCALE", "1"))  # limits of time are multiplied by it (tests/run)
CASE_SECONDS = int(os.environ.get("INTEROP_CASE_SECONDS", "120"))  # likewise: that a case may take
PATIENCE = 4000  # times half a millisecond that a frame waits for a guest, or for rdmagen, whose queue is full


def die_with_parent():
    """In a child, before exec: it does not survive this program, however that ends. Interrupts are ours to handle."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setpgid(0, 0)


def end_with_parent():
    """In a child that is a laboratory of its own, before exec: it is told to end with this program, and takes down what it made."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    os.setpgid(0, 0)


def exit_on_signals():
    """Leave through the `finally` and `with` statements."""
    for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(s, lambda n, f: sys.exit(128 + n))


def check():
    """The directory of the guest's image. Ends the program with status 77, with the reason, where there can be no guests."""
    image.need("qemu-system-x86_64")
    return image.image()


def is_rdma(frame):
    """To UDP port 4791 over IPv4 without options, or over IPv6; with or without a VLAN tag."""
    ip = 18 if frame[12:14] == b"\x81\0" else 14
    kind, v4 = frame[ip - 2:ip], frame[ip:ip + 1] == b"\x45"
    if kind == b"\x08\0" and v4:
        return frame[ip + 9:ip + 10] == b"\x11" and frame[ip + 22:ip + 24] == b"\x12\xb7"
    return kind == b"\x86\xdd" and frame[ip + 6:ip + 7] == b"\x11" and frame[ip + 42:ip + 44] == b"\x12\xb7"


class Failure(Exception):
    """A case did not come out as expected."""


class Skip(Exception):
    """The cases of this file cannot run here."""


CLONE_NEWNET = 0x40000000


def own_network():
    """From now on this process and its children have a network of their own, which nobody sees and which goes with the last of them."""
    if os.geteuid() != 0:
        raise Skip("needs root")
    if not os.path.exists("/dev/net/tun"):
        raise Skip("no /dev/net/tun")
    if not shutil.which("ip"):
        raise Skip("no ip (iproute2)")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise Skip("no network namespace: " + os.strerror(ctypes.get_errno()))
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


class Lab:
    """A folder, the programs started in it, and their end. Use it in a `with` statement."""
    def __init__(self):
        exit_on_signals()
        self.image = check()
        self.dir = tempfile.mkdtemp(prefix="lab", dir="/tmp")  # short: the path of a UNIX socket has at most 107 bytes
        self.children, self.wires, self.guests = [], [], []
        self.tapes, self.expected = [], {}  # of the case that runs, see counters.py

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for w in self.wires:
            w.stop()
        for c in self.children:
            c.kill()
        for c in self.children:
            c.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def popen(self, command, **options):
        p = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent, **options)
        self.children.append(p)
        return p

    def guest(self, *args, **options):
        self.guests.append(Guest(self, *args, **options))
        return self.guests[-1]

    def expect(self, **counters):
        """What the guests' counters will rise by in this case: numbers, or ranges."""
        self.expected.update(counters)

    def wire(self, a, b):
        w = Wire(a, b)
        self.wires.append(w)
        return w


class Job:
    """A command running in the background of a guest."""
    def __init__(self, guest, tag, command):
        self.guest, self.tag, self.command = guest, tag, command
        guest.run("rm -f /tmp/{0}.*; ({1} & echo $! >/tmp/{0}.pid; wait $!; echo $? >/tmp/{0}.rc) >/tmp/{0}.log 2>&1 &".format(tag, command))

    def log(self):
        return self.guest.run("cat /tmp/%s.log" % self.tag)[1]

    def ended(self):
        """Its exit status, once it has one, as text."""
        status, out = self.guest.run("cat /tmp/%s.rc" % self.tag)
        return out.strip() if status == 0 else ""

    def wait(self, timeout=20):
        """Exit status and output."""
        end = time.time() + timeout * SLOW
        while time.time() < end:
            status = self.ended()
            if status:
                return int(status), self.log()
            time.sleep(0.1)
        self.kill()
        raise Failure("%s in the guest: not done after %g s\n%s" % (self.command, timeout, self.log()))

    def kill(self, sig="KILL"):
        """End the command, which must be a single program."""
        self.guest.run("kill -%s $(cat /tmp/%s.pid)" % (sig, self.tag))


class Guest:
    """A virtual machine. Its frames go to the socket `to` and come from the socket `at`; or to and from the network interface `tap`, which
    QEMU makes. Number n has the addresses 10.77.0.n and fd77::n and the MAC address 52:54:00:77:00:0n."""
    def __init__(self, lab, number, at=None, to=None, mtu=1500, vlan=None, forward=(), tap=None, ramdisk=None):
        self.lab, self.number, self.at, self.to, self.mtu, self.tap = lab, number, at, to, mtu, tap
        self.name, self.ip, self.ip6 = "guest%d" % number, "10.77.0.%d" % number, "fd77::%d" % number
        self.mac = "52:54:00:77:00:%02x" % number
        self.serial, self.count, self.lock = None, 0, threading.Lock()
        words = "g.name=%s g.mtu=%d g.ip=%s/24 g.ip6=%s/64 g.ctl=10.0.2.15/24" % (self.name, mtu, self.ip, self.ip6)
        if vlan:
            words += " g.vlan=%d:10.78.0.%d/24" % (vlan, number)
        user = "user,id=n1,ipv6=off" + "".join(",hostfwd=tcp:127.0.0.1:%d-:%d" % f for f in forward)
        wire = "tap,id=n0,ifname=%s,script=no,downscript=no,vhost=off,vnet_hdr=off" % tap if tap else \
               "dgram,id=n0,local.type=unix,local.path=%s,remote.type=unix,remote.path=%s" % (at, to)
        self.log = lab.path(self.name + ".log")
        self.port = lab.path(self.name + ".agent")
        self.started = time.time()
        # no_timer_check: where the emulation is slow, the kernel would conclude that the timer does not work, and panic.
        self.process = lab.popen([
            "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-machine", "q35", "-accel", "tcg,thread=multi",
            "-cpu", "max,la57=off", "-m", "256", "-smp", "1", "-no-reboot", "-display", "none",
            "-kernel", lab.image + "/vmlinux", "-initrd", ramdisk or lab.image + "/initrd", "-append",
            "console=ttyS0 quiet panic=-1 random.trust_cpu=on mitigations=off nokaslr tsc=reliable no_timer_check " + words,
            "-netdev", wire,
            "-device", "virtio-net-pci,netdev=n0,romfile=,mac=" + self.mac,
            "-netdev", user, "-device", "virtio-net-pci,netdev=n1,romfile=",
            "-device", "virtio-rng-pci",
            "-chardev", "file,id=c0,path=" + self.log, "-serial", "chardev:c0",
            "-chardev", "socket,id=c1,path=%s,server=on,wait=off" % self.port, "-serial", "chardev:c1"],
            stdout=open(lab.path(self.name + ".qemu"), "w"), stderr=subprocess.STDOUT)

    def console(self):
        try:
            with open(self.log, errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def ready(self, timeout=120):
        """Wait until it has booted; seconds since its start."""
        while "READY" not in self.console():
            if self.process.poll() is not None or time.time() > self.started + timeout * SLOW:
                with open(self.lab.path(self.name + ".qemu")) as f:
                    raise Failure("%s did not boot\n%s%s" % (self.name, f.read(), self.console()))
            time.sleep(0.05)
        self.serial = socket.socket(socket.AF_UNIX)
        self.serial.connect(self.port)
        status, out = self.run("rdma link show")
        if "ACTIVE" not in out:
            raise Failure("%s has no RDMA link: %s" % (self.name, out))
        return time.time() - self.started

    def run(self, command, timeout=60):
        """Run a shell command: its exit status and output."""
        with self.lock:
            self.count += 1
            end, got, deadline = b"@@END %d " % self.count, b"", time.time() + timeout * SLOW
            self.serial.sendall(b"%d %s\n" % (self.count, command.replace("\n", ";").encode()))
            while True:
                if not select.select([self.serial], [], [], max(0, deadline - time.time()))[0]:
                    raise Failure("%s: no answer to `%s` in %g s: %s" % (self.name, command, timeout, got.decode(errors="replace")))
                data = self.serial.recv(65536)
                if not data:
                    raise Failure("%s has gone\n%s" % (self.name, self.console()))
                got += data
                at = got.find(end)
                if at >= 0 and got.find(b"\n", at) >= 0:
                    return int(got[at + len(end):].split()[0]), got[:at].decode(errors="replace")

    def start(self, command):
        """Run a command in the background."""
        self.count += 1
        return Job(self, "job%d" % self.count, command)

    def listening(self, pattern, timeout=10):
        """Wait until a program that waits for connections shows up in `rdma resource` (or, "tcp:PORT", in netstat)."""
        ask = "netstat -ltn | grep -q ':%s '" % pattern[4:] if pattern.startswith("tcp:") else \
              "rdma resource show cm_id | grep -q 'state LISTEN.*comm %s\\|comm %s.*state LISTEN'" % (pattern, pattern)
        end = time.time() + timeout * SLOW
        while self.run(ask)[0] != 0:
            if time.time() > end:
                raise Failure("%s: %s does not listen: %s" % (self.name, pattern, self.run("rdma resource show cm_id; netstat -ltn")[1]))
            time.sleep(0.05)

    def tidy(self):
        """End what runs in the background, which would be in the way of the next case."""
        self.run("for f in /tmp/job*.pid; do [ -e ${f%.pid}.rc ] || kill -KILL $(cat $f); done", timeout=20)

    def counters(self):
        """What `rdma statistic` counts."""
        words = self.run("rdma statistic show link rxe0/1")[1].split()
        return {k: int(v) for k, v in zip(words[2::2], words[3::2]) if v.isdigit()}


class Wire:
    """Carries frames between two guests: (`at`, `to`) of each as given to Guest; `hook(side, frame)` returns the frames to pass on. `rdma`
    counts RoCE frames: from each side how many came, and how many of them went on. `guest`: the one at side 0, if the other is none."""
    def __init__(self, a, b, hook=None):
        self.hook, self.running, self.guest, self.rdma = hook, True, None, [[0, 0], [0, 0]]
        self.sides = []
        for at, to in (a, b):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            s.bind(to)
            s.setblocking(False)
            self.sides.append((s, at))
        self.thread = threading.Thread(target=self.loop, daemon=True)
        self.thread.start()

    def loop(self):
        socks = [s for s, at in self.sides]
        while self.running:
            for s in select.select(socks, [], [], 0.2)[0]:
                side = socks.index(s)
                frame = s.recv(65536)
                self.rdma[side][0] += is_rdma(frame)
                for f in self.hook(side, frame) if self.hook else (frame,):
                    self.send(1 - side, f)

    def send(self, side, frame):
        sock, at = self.sides[side]
        for _ in range(PATIENCE):
            try:
                sock.sendto(frame, at)
                self.rdma[1 - side][1] += is_rdma(frame)
                return
            except BlockingIOError:
                time.sleep(0.0005)  # its queue is full
            except OSError:
                return  # it is not there (yet): the frame is lost

    def stop(self):
        self.running = False
        self.thread.join()
