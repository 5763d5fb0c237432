#!/usr/bin/env python3
"""Build a guest whose soft-RoCE has ATOMIC WRITE and FLUSH: the kernel of Debian 13 (Linux 6.12) and, for rdmagen, its libibverbs with the C
library that it needs; everything else is that of image.py. Fetches 110 MB once, by an apt configuration of its own. Prints the directory."""
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import image  # noqa: E402

SOURCE = "deb [signed-by=%s] %s trixie main\n"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
PACKAGES = "ibverbs-providers libc6 libgcc-s1 libibverbs1 libnl-3-200 libnl-route-3-200 librdmacm1t64".split()
BUILT_IN = ("virtio_pci",)
PLACE = "opt/newer"  # in the guest
PATIENCE = 60  # seconds for a step of fetching
# How rdmagen runs in the guest, with the libraries of `more` before its own.
RUN = "/%s/ld-linux-x86-64.so.2 --library-path /%s:%%s /usr/bin/rdmagen" % (PLACE, PLACE)


def mirror():
    """The archive of Debian that this machine uses."""
    r = subprocess.run(["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Created-By: Packages"], stdout=subprocess.PIPE, text=True)
    found = re.search(r"^Debian\|Debian\|(\S+)$", r.stdout, re.M)
    if not found:
        image.skip("apt has no list of Debian's packages (apt-get update)")
    return found.group(1)


def apt_options():
    """Of an apt that knows Debian 13 only; its lists are fetched."""
    folder = image.CACHE + "/newer"
    if not os.path.exists(KEYS):
        image.skip("no " + KEYS)
    for d in ("lists/partial", "cache/archives/partial"):
        os.makedirs("%s/%s" % (folder, d), exist_ok=True)
    with open(folder + "/sources.list", "w") as f:
        f.write(SOURCE % (KEYS, mirror()))
    options = ["-o", "Dir::Etc::sourcelist=%s/sources.list" % folder, "-o", "Dir::Etc::sourceparts=-", "-o", "Dir::State::lists=%s/lists" % folder,
               "-o", "Dir::Cache=%s/cache" % folder, "-o", "Acquire::Languages=none", "-o", "APT::Sandbox::User="]
    run("apt-get", *options, "-q", "update")
    return options


def run(*command):
    try:
        r = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        image.skip("%s: not done after %d s" % (" ".join(command[:1] + command[-1:]), PATIENCE))
    if r.returncode:
        image.skip("%s failed: %s" % (" ".join(command[:1] + command[-1:]), (r.stderr.strip().splitlines() or ["?"])[-1]))


def add_libraries(c, root):
    """libibverbs, librdmacm, the provider of soft-RoCE and what they need, in a folder of their own."""
    libs = root + "/usr/lib/x86_64-linux-gnu/"
    provider = glob.glob(libs + "libibverbs/librxe-rdmav*.so")[0]
    roots = [provider, libs + "librdmacm.so.1", libs + "libibverbs.so.1"]
    found = image.libraries(root, [os.path.realpath(f) for f in roots])
    for f in roots[1:]:
        found[os.path.basename(f)] = os.path.realpath(f)
    for name, f in sorted(found.items()):
        c.file("%s/%s" % (PLACE, name), f)
    c.file("usr/lib/x86_64-linux-gnu/libibverbs/" + os.path.basename(provider), os.path.realpath(provider))


def build(out, work):
    folder = image.CACHE + "/debs-newer"
    fetched = image.fetch(folder, PACKAGES, apt_options() if image.missing(folder, PACKAGES) else ())
    os.mkdir(work + "/new")
    os.mkdir(work + "/old")
    image.unpack(fetched, work + "/new")
    image.unpack(image.fetch(image.CACHE + "/debs", image.PACKAGES), work + "/old")
    image.write_initrd(out + "/initrd", work + "/new/kernel", work + "/old/root", BUILT_IN, lambda c: add_libraries(c, work + "/new/root"))
    image.write_vmlinux(out + "/vmlinux", work + "/new/kernel")
    with open(out + "/release", "w") as f:
        f.write(re.sub(".*vmlinuz-", "", glob.glob(work + "/new/kernel/boot/vmlinuz-*")[0]) + "\n")


def directory():
    """Directory of the image, built if need be."""
    return image.cached("newer", build, "newer.py", "image.py", "init", "agent")


if __name__ == "__main__":
    print(directory())
