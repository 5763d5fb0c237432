#!/usr/bin/env python3
"""Build what guests with storage protocols have besides image.py's: modules of the same kernel, which
/lib/storage/load loads, nvme-cli and open-iscsi, and stand-ins for rpcbind and mountd. Prints
the directory, which holds an archive to be appended to the initial ramdisk."""
import glob
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import image  # noqa: E402

MODULES = "brd nvme-rdma nvmet-rdma rpcrdma nfsd nfsv3 crc32c_generic ib_isert ib_iser sd_mod".replace("-", "_").split()
PACKAGES = """libblkid1 libdbus-1-3 libgcrypt20 libgpg-error0 libisns0 libjson-c5 libkmod2 liblz4-1 liblzma5 libmount1 libnvme1 libopeniscsiusr
libssl3 libsystemd0 nvme-cli open-iscsi""".split()
PROGRAMS = "usr/sbin/nvme sbin/iscsid sbin/iscsiadm".split()
# Loads the modules of /lib/storage/NAME.order that are not there yet.
LOAD = """for name; do
    while read -r module; do
        [ -d /sys/module/"$module" ] || insmod /lib/storage/"$module".ko || return 1
    done </lib/storage/"$name".order
done
"""


def build(out, work):
    image.unpack(image.fetch(image.CACHE + "/debs", image.PACKAGES + PACKAGES), work)
    root = work + "/root"
    programs = [f for p in PROGRAMS for f in glob.glob(root + "/" + p)]
    with open(out + "/modules", "wb") as f:
        c = image.Cpio(f)
        there = set()
        for name in MODULES:
            order = image.modules(work + "/kernel", [name])
            for module, data in order:
                if module not in there:
                    c.data("lib/storage/%s.ko" % module, data)
                    there.add(module)
            c.text("lib/storage/%s.order" % name, "".join(m + "\n" for m, _ in order))
        c.text("lib/storage/load", LOAD)
        image.need("gcc")
        subprocess.run(["gcc", "-O1", "-static", "-o", work + "/rpcstub", image.HERE + "/rpcstub.c"], check=True)
        c.file("bin/rpcstub", work + "/rpcstub")
        for p in programs:
            c.file("usr/bin/" + os.path.basename(p), p)
        for name, f in sorted(image.libraries(root, programs).items()):
            c.file("lib/x86_64-linux-gnu/" + name, f)
        c.close()


def directory():
    """Directory of the archive, built if need be."""
    return image.cached("storage", build, "storage.py", "image.py", "rpcstub.c")


def ramdisk(lab):
    """The path of a ramdisk with them."""
    path = lab.path("storage.initrd")
    with open(path, "wb") as out:
        for part in (lab.image + "/initrd", directory() + "/modules"):
            with open(part, "rb") as f:
                out.write(f.read())
    return path


if __name__ == "__main__":
    print(directory())
