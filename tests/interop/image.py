#!/usr/bin/env python3
"""Build the guest of the soft-RoCE laboratory: a kernel and an initial ramdisk made of Debian packages, about 75 MB, which are
fetched once into ${XDG_CACHE_HOME:-~/.cache}/rdmatrace. Prints the directory with `vmlinux` and `initrd`. Exit status 77, with the
reason, where it cannot be done. Needs apt-get, dpkg-deb, readelf; neither root nor any of the packages installed."""
import fcntl
import glob
import hashlib
import lzma
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "rdmatrace")
PACKAGES = """busybox-static dash ibverbs-providers ibverbs-utils iproute2 libbpf1 libbsd0 libc6 libcap2 libelf1 libgcc-s1 libibmad5
libibumad3 libibverbs1 libmd0 libmnl0 libnl-3-200 libnl-route-3-200 libnuma1 libpci3 libpcre2-8-0 librdmacm1 libselinux1 libudev1
libxtables12 libzstd1 perftest rdmacm-utils zlib1g""".split()
MODULES = "virtio_pci virtio_net 8021q crc32_generic rdma_rxe ib_uverbs rdma_ucm ib_umad".split()
PROGRAMS = "usr/bin/ibv_* usr/bin/ib_* usr/bin/rping usr/bin/udaddy usr/bin/udpong usr/bin/ucmatose usr/bin/cmtime usr/bin/mckey usr/bin/rstream " \
           "bin/ip sbin/ip bin/rdma usr/bin/rdma sbin/rdma usr/sbin/rdma".split()
APPLETS = """awk base64 cat chmod cmp cp cut date dd dmesg echo env expr false find free grep head hexdump hostname id insmod kill
killall ln ls md5sum mkdir mount mv nc netstat od pgrep pkill ping ping6 poweroff printf ps rm sed seq sha1sum sleep sort stty tail test
timeout touch tr true umount uname uniq usleep wc xargs""".split()


def skip(why):
    print("interop: skipped: " + why, file=sys.stderr)
    sys.exit(77)


def need(*commands):
    for c in commands:
        if not shutil.which(c):
            skip("no " + c)


def debs(folder):
    """Package name -> file of what is there already. Any linux-image-VERSION counts as "kernel"."""
    found = {}
    for f in glob.glob(folder + "/*.deb"):
        name = os.path.basename(f).split("_")[0]
        found["kernel" if name.startswith("linux-image-") else name] = f
    return found


def kernel_package():
    """The package that linux-image-amd64 stands for."""
    r = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True)
    m = re.search(r"Depends: (linux-image-[0-9]\S*)", r.stdout)
    if not m:
        skip("apt knows no package linux-image-amd64")
    return m.group(1)


def fetch(folder):
    os.makedirs(folder, exist_ok=True)
    have = debs(folder)
    missing = [p for p in PACKAGES if p not in have]
    if "kernel" not in have:
        missing.append(kernel_package())
    if missing:
        print("interop: fetching %d packages" % len(missing), file=sys.stderr)
        part = tempfile.mkdtemp(dir=CACHE)
        options = ["-o", "APT::Sandbox::User=root"] if os.getuid() == 0 else []
        r = subprocess.run(["apt-get", *options, "-q", "download", *missing], cwd=part, capture_output=True, text=True)
        for f in glob.glob(part + "/*.deb") if r.returncode == 0 else []:
            os.rename(f, os.path.join(folder, os.path.basename(f)))
        shutil.rmtree(part)
        if r.returncode:
            skip("apt-get download failed: " + (r.stderr.strip().splitlines() or ["?"])[-1])
    return debs(folder)


def module_order(root, wanted):
    """Files of the modules in an order in which they can be loaded; dependencies are read from their .modinfo."""
    files = {os.path.basename(f)[:-3].replace("-", "_"): f
             for f in glob.glob(root + "/lib/modules/*/kernel/**/*.ko", recursive=True)}
    order = []

    def add(name):
        f = files.get(name)
        if not f or f in order:
            return
        with open(f, "rb") as o:
            m = re.search(rb"\0depends=([^\0]*)\0", o.read())
        for d in (m.group(1).decode() if m else "").split(","):
            add(d.replace("-", "_"))
        order.append(f)
    for w in wanted:
        add(w)
    missing = [w for w in wanted if w not in files]
    if missing:
        skip("the kernel package lacks the modules " + " ".join(missing))
    return order


def needed(files):
    """Names of the shared libraries that these files ask for."""
    r = subprocess.run(["readelf", "-d", *files], capture_output=True, text=True)
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", r.stdout))


def libraries(root, programs):
    """Closure of shared libraries within the unpacked packages: name -> file. libgcc_s is opened by glibc at thread exit."""
    there = {}
    for d in ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"):
        for f in glob.glob("%s/%s/*.so*" % (root, d)):
            there.setdefault(os.path.basename(f), os.path.realpath(f))
    todo, found = needed(programs) | {"libgcc_s.so.1", "ld-linux-x86-64.so.2"}, {}
    while todo:
        new = {n: there[n] for n in todo if n in there}
        absent = todo - set(new)
        if absent:
            raise SystemExit("interop: no package has " + " ".join(sorted(absent)))
        found.update(new)
        todo = needed(list(new.values())) - set(found)
    return found


class Cpio:
    """An archive in the "new ASCII" format that the kernel unpacks."""
    def __init__(self, out):
        self.out, self.ino, self.dirs = out, 0, set()

    def entry(self, name, mode, data=b""):
        self.ino += 1
        n = name.encode() + b"\0"
        head = "070701" + "".join("%08X" % v for v in (self.ino, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(n), 0))
        head = head.encode() + n
        self.out.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))

    def parents(self, name):
        d = os.path.dirname(name)
        if d and d not in self.dirs:
            self.parents(d)
            self.directory(d)

    def directory(self, name):
        if name not in self.dirs:
            self.parents(name)
            self.dirs.add(name)
            self.entry(name, stat.S_IFDIR | 0o755)

    def file(self, name, source, mode=0o755):
        self.parents(name)
        with open(source, "rb") as f:
            self.entry(name, stat.S_IFREG | mode, f.read())

    def text(self, name, text):
        self.parents(name)
        self.entry(name, stat.S_IFREG | 0o644, text.encode())

    def link(self, name, target):
        self.parents(name)
        self.entry(name, stat.S_IFLNK | 0o777, target.encode())

    def close(self):
        self.entry("TRAILER!!!", 0)


def write_initrd(path, kroot, root):
    programs = sorted({f for p in PROGRAMS for f in glob.glob(root + "/" + p) if not os.path.islink(f)})
    provider = glob.glob(root + "/usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav*.so")[0]
    with open(path, "wb") as out:
        c = Cpio(out)
        for d in "proc sys dev tmp run root lib64 usr/sbin sbin".split():
            c.directory(d)
        c.file("init", HERE + "/init")
        c.file("bin/agent", HERE + "/agent")
        c.file("bin/sh", root + "/bin/dash")
        c.file("bin/busybox", root + "/bin/busybox")
        for a in APPLETS:
            c.link("bin/" + a, "busybox")
        for p in programs:
            c.file("usr/bin/" + os.path.basename(p), p)
        for name, f in sorted(libraries(root, programs + [provider, root + "/bin/dash"]).items()):
            c.file("lib/x86_64-linux-gnu/" + name, f)
        c.link("lib64/ld-linux-x86-64.so.2", "../lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")
        c.file("usr/lib/x86_64-linux-gnu/libibverbs/" + os.path.basename(provider), provider)
        c.text("etc/libibverbs.d/rxe.driver", "driver rxe\n")
        c.text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
        c.text("etc/hosts", "127.0.0.1 localhost\n")
        order = module_order(kroot, MODULES)
        for m in order:
            c.file("lib/modules/" + os.path.basename(m), m, 0o644)
        c.text("lib/modules/order", "".join(os.path.basename(m) + "\n" for m in order))
        c.close()


def write_vmlinux(path, kroot):
    """The kernel out of its self-extracting image: booted through PVH it saves seconds of emulated decompression."""
    with open(glob.glob(kroot + "/boot/vmlinuz-*")[0], "rb") as f:
        image = f.read()
    start = image.find(b"\xfd7zXZ\0")
    if start < 0:
        skip("the kernel is not packed with xz")
    with open(path, "wb") as f:
        f.write(lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(image[start:]))


def stamp():
    h = hashlib.sha256()
    for f in ("image.py", "init", "agent"):
        with open(os.path.join(HERE, f), "rb") as o:
            h.update(o.read())
    return h.hexdigest()[:12]


def build(target):
    packages = fetch(CACHE + "/debs")
    work = tempfile.mkdtemp(dir=CACHE)
    try:
        for name, f in packages.items():
            subprocess.run(["dpkg-deb", "-x", f, work + ("/kernel" if name == "kernel" else "/root")], check=True)
        os.mkdir(work + "/out")
        write_initrd(work + "/out/initrd", work + "/kernel", work + "/root")
        write_vmlinux(work + "/out/vmlinux", work + "/kernel")
        for old in glob.glob(CACHE + "/guest-*"):
            if os.path.getmtime(old) < time.time() - 86400:
                shutil.rmtree(old, ignore_errors=True)
        os.rename(work + "/out", target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def image():
    """Directory of the image, built if need be."""
    if platform.machine() != "x86_64":
        skip("the guest's packages are for amd64")
    target = "%s/guest-%s" % (CACHE, stamp())
    os.makedirs(CACHE, exist_ok=True)
    with open(CACHE + "/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(target):
            need("apt-get", "apt-cache", "dpkg-deb", "readelf")
            build(target)
    return target


if __name__ == "__main__":
    print(image())
