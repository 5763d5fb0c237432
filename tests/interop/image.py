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


class Skip(SystemExit):
    """It cannot be done here: exit status 77."""
    def __init__(self, why):
        super().__init__(77)
        self.why = why


def skip(why):
    print("interop: skipped: " + why, file=sys.stderr)
    raise Skip(why)


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


def kernel_package(options):
    """The package that linux-image-amd64 stands for."""
    r = subprocess.run(["apt-cache", *options, "depends", "linux-image-amd64"], capture_output=True, text=True)
    m = re.search(r"Depends: (linux-image-[0-9]\S*)", r.stdout)
    if not m:
        skip("apt knows no package linux-image-amd64")
    return m.group(1)


def missing(folder, packages):
    """Those that are not there yet."""
    have = debs(folder)
    return [p for p in [*packages, "kernel"] if p not in have]


def fetch(folder, packages, options=()):
    """The kernel and the packages by apt with `options`, as debs() gives them."""
    os.makedirs(folder, exist_ok=True)
    wanted = [kernel_package(options) if p == "kernel" else p for p in missing(folder, packages)]
    if wanted:
        print("interop: fetching %d packages" % len(wanted), file=sys.stderr)
        part = tempfile.mkdtemp(dir=CACHE)
        root = ["-o", "APT::Sandbox::User=root"] if os.getuid() == 0 else []
        r = subprocess.run(["apt-get", *options, *root, "-q", "download", *wanted], cwd=part, capture_output=True, text=True)
        for f in glob.glob(part + "/*.deb") if r.returncode == 0 else []:
            os.rename(f, os.path.join(folder, os.path.basename(f)))
        shutil.rmtree(part)
        if r.returncode:
            skip("apt-get download failed: " + (r.stderr.strip().splitlines() or ["?"])[-1])
    return debs(folder)


def read_module(path):
    with open(path, "rb") as f:
        data = f.read()
    return lzma.decompress(data) if path.endswith(".xz") else data


def modules(root, wanted, built_in=()):
    """(name, contents) of the modules in an order in which they can be loaded; dependencies are read from their .modinfo."""
    files = {os.path.basename(f).split(".ko")[0].replace("-", "_"): f
             for d in ("lib", "usr/lib") for f in glob.glob("%s/%s/modules/*/kernel/**/*.ko*" % (root, d), recursive=True)}
    order = {}

    def add(name):
        if name not in files or name in order:
            return
        data = read_module(files[name])
        m = re.search(rb"\0depends=([^\0]*)\0", data)
        for d in (m.group(1).decode() if m else "").split(","):
            add(d.replace("-", "_"))
        order[name] = data
    for w in wanted:
        add(w)
    lacking = [w for w in wanted if w not in files and w not in built_in]
    if lacking:
        skip("the kernel package lacks the modules " + " ".join(lacking))
    return list(order.items())


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

    def data(self, name, data):
        self.parents(name)
        self.entry(name, stat.S_IFREG | 0o644, data)

    def text(self, name, text):
        self.data(name, text.encode())

    def link(self, name, target):
        self.parents(name)
        self.entry(name, stat.S_IFLNK | 0o777, target.encode())

    def close(self):
        self.entry("TRAILER!!!", 0)


def write_initrd(path, kroot, root, built_in=(), more=lambda c: None):
    """The ramdisk with the modules of `kroot` and the programs of `root`; more(archive) adds to it."""
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
        order = modules(kroot, MODULES, built_in)
        for name, data in order:
            c.data("lib/modules/%s.ko" % name, data)
        c.text("lib/modules/order", "".join(name + ".ko\n" for name, _ in order))
        more(c)
        c.close()


def unpacked(image):
    """The kernel in its self-extracting image, which is packed with xz or zstd."""
    xz, zstd = image.find(b"\xfd7zXZ\0"), image.find(b"\x28\xb5\x2f\xfd")
    if xz >= 0:
        return lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(image[xz:])
    if zstd < 0:
        skip("the kernel is packed neither with xz nor with zstd")
    need("zstd")
    # What follows the kernel is no zstd frame, which zstd says at the end.
    return subprocess.run(["zstd", "-dcq"], input=image[zstd:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def write_vmlinux(path, kroot):
    """Booted through PVH the unpacked kernel saves seconds of emulated decompression."""
    with open(glob.glob(kroot + "/boot/vmlinuz-*")[0], "rb") as f:
        image = unpacked(f.read())
    with open(path, "wb") as f:
        f.write(image)


def stamp(*files):
    h = hashlib.sha256()
    for f in files:
        with open(os.path.join(HERE, f), "rb") as o:
            h.update(o.read())
    return h.hexdigest()[:12]


def unpack(packages, work):
    """Into work/kernel and work/root."""
    for name, f in packages.items():
        subprocess.run(["dpkg-deb", "-x", f, work + ("/kernel" if name == "kernel" else "/root")], check=True)


def build(out, work):
    unpack(fetch(CACHE + "/debs", PACKAGES), work)
    write_initrd(out + "/initrd", work + "/kernel", work + "/root")
    write_vmlinux(out + "/vmlinux", work + "/kernel")


def cached(kind, how, *files):
    """Directory of an image, built by how(out, work) if it is not there or older than the `files` that say how it is made."""
    if platform.machine() != "x86_64":
        skip("the guest's packages are for amd64")
    target = "%s/%s-%s" % (CACHE, kind, stamp(*files))
    os.makedirs(CACHE, exist_ok=True)
    with open(CACHE + "/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(target):
            need("apt-get", "apt-cache", "dpkg-deb", "readelf")
            work = tempfile.mkdtemp(dir=CACHE)
            try:
                os.mkdir(work + "/out")
                how(work + "/out", work)
                for old in glob.glob("%s/%s-*" % (CACHE, kind)):
                    if os.path.getmtime(old) < time.time() - 86400:
                        shutil.rmtree(old, ignore_errors=True)
                os.rename(work + "/out", target)
            finally:
                shutil.rmtree(work, ignore_errors=True)
    return target


def image():
    """Directory of the image, built if need be."""
    return cached("guest", build, "image.py", "init", "agent")


if __name__ == "__main__":
    print(image())
