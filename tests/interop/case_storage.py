"""rdmagen's ends of storage protocols with those of Linux, both roles."""
import json
import signal
import subprocess
import time

import storage
from case_rdmagen import Rdmagen, behind_wire
from counters import RDMATRACE
from lab import Failure

NQN = "nqn.2024-01.lab:sub1"
HOST = "nqn.2024-01.lab:host"
HOSTID = "11111111-2222-3333-4444-555555555555"


def guests(lab):
    wire, guest = behind_wire(lab, ramdisk=storage.ramdisk(lab))
    return (guest,)


def must(guest, command, timeout=60):
    status, out = guest.run(command, timeout)
    if status:
        raise Failure("`%s` in the guest: status %d: %s" % (command, status, out))
    return out


def ready(us):
    """Wait until our end listens."""
    end = time.time() + 10
    while "port" not in us.text() and us.process.poll() is None and time.time() < end:
        time.sleep(0.05)


def commands(us, name):
    """The commands of this name in what our end recorded, of which none may have failed: how many, and the bytes that they moved."""
    r = subprocess.run([RDMATRACE, "ops", "--commands", "-T", "json", us.capture], capture_output=True, text=True)
    rows = [c for c in json.loads(r.stdout) if c["name"] == name]
    assert not [c["command"] for c in rows if c["failed"]], rows
    for c in rows:
        left = c["values"].get("residual") or 0  # of SCSI: fewer bytes than the initiator has room for
        assert c["bytes_to_client"] + c["bytes_from_client"] + left == c["asked_bytes_to_client"] + c["asked_bytes_from_client"], c
    return len(rows), sum(c["bytes_to_client"] + c["bytes_from_client"] for c in rows)


def load(guest, *names):
    must(guest, "set -- %s; . /lib/storage/load" % " ".join(names))
    guest.run("mount -t configfs none /sys/kernel/config")


def case_storage_nvme_host_and_linux_target(lab, guest):
    """Our host: blocks written, read back and compared; a subsystem that the target does not know."""
    load(guest, "brd", "nvmet_rdma")
    c = "/sys/kernel/config/nvmet"
    must(guest, "mkdir -p {0}/subsystems/{1}/namespaces/1 && echo 1 >{0}/subsystems/{1}/attr_allow_any_host && "
         "echo -n /dev/ram0 >{0}/subsystems/{1}/namespaces/1/device_path && echo 1 >{0}/subsystems/{1}/namespaces/1/enable && "
         "mkdir {0}/ports/1 && cd {0}/ports/1 && echo rdma >addr_trtype && echo ipv4 >addr_adrfam && echo {2} >addr_traddr && "
         "echo 4420 >addr_trsvcid && ln -s {0}/subsystems/{1} subsystems/{1}".format(c, NQN, guest.ip))
    for n, (size, more) in enumerate(((16384, ()), (4096, ("--nr-io-queues", "2")))):
        us = Rdmagen(lab, guest, "nvmehost%d" % n, "nvme", guest.ip, "--nqn", NQN, "--rw", "write", "-n", "20", "-S", str(size), "-t", "4", *more)
        out = us.wait()
        assert "20 compared, 0 differed" in out, out
        assert commands(us, "Write") == commands(us, "Read") == (20, 20 * size), us.decoded()
    wrong = Rdmagen(lab, guest, "nvmewrong", "nvme", guest.ip, "--nqn", NQN + "x").wait(status=1)
    assert "Connect Invalid Parameters" in wrong, wrong
    found = Rdmagen(lab, guest, "nvmediscover", "nvme", guest.ip, "--discover").wait()
    assert "NVM subsystem %s by RDMA at %s port 4420\n" % (NQN, guest.ip) in found and "discovery subsystem nqn.2014-08" in found, found


def case_storage_nvme_target_and_linux_host(lab, guest):
    """Our target: a Linux host connects, writes, reads back and compares, and disconnects."""
    load(guest, "nvme_rdma")
    us = Rdmagen(lab, guest, "nvmetarget", "nvme", "-s", "--nqn", NQN)
    ready(us)
    must(guest, "echo nqn=%s,transport=rdma,traddr=10.77.0.9,trsvcid=4420,nr_io_queues=1,queue_size=16,hostnqn=%s,hostid=%s >/dev/nvme-fabrics" %
         (NQN, HOST, HOSTID))
    must(guest, "i=0; while [ ! -b /dev/nvme0n1 ] && [ $i -lt 50 ]; do usleep 100000; i=$((i+1)); done; [ -b /dev/nvme0n1 ]")
    must(guest, "dd if=/dev/urandom of=/tmp/x bs=4096 count=8 && dd if=/tmp/x of=/dev/nvme0n1 bs=16384 count=2 oflag=direct && "
         "dd if=/tmp/x of=/dev/nvme0n1 bs=512 seek=128 count=8 oflag=direct && "
         "dd if=/dev/nvme0n1 of=/tmp/y bs=16384 count=2 iflag=direct && cmp /tmp/x /tmp/y")
    must(guest, "echo 1 >/sys/class/nvme/nvme0/delete_controller")
    out = us.wait()
    assert "nvme server: 10 writes of 36864 bytes" in out, out
    assert commands(us, "Write") == (10, 36864) and commands(us, "Read")[1] >= 32768 and commands(us, "Connect")[0] == 2, us.decoded()


def case_storage_nvme_target_is_discovered(lab, guest):
    """Our target's discovery log page, as nvme-cli prints it; it goes the kernel's way: a discovery controller, Identify, Get Log Page."""
    load(guest, "nvme_rdma")
    us = Rdmagen(lab, guest, "nvmediscovered", "nvme", "-s", "--nqn", NQN)
    ready(us)
    out = must(guest, "nvme discover -t rdma -a 10.77.0.9 -s 4420 --hostnqn=%s --hostid=%s" % (HOST, HOSTID))
    told = dict(line.split(":", 1) for line in out.splitlines() if ":" in line)
    told = {name.strip(): value.strip() for name, value in told.items()}
    want = {"trtype": "rdma", "adrfam": "ipv4", "subtype": "nvme subsystem", "trsvcid": "4420", "subnqn": NQN, "traddr": "10.77.0.9", "portid": "1",
            "rdma_prtype": "roce-v2", "rdma_qptype": "connected", "rdma_cms": "rdma-cm"}
    assert {name: told.get(name) for name in want} == want, out
    us.wait()
    assert commands(us, "Get Log Page")[0] >= 2, us.decoded()


def case_storage_nfs_client_and_linux_server(lab, guest):
    """Our client: a file written, read back and compared. The kernel's caches get what exportfs and mountd would tell it."""
    load(guest, "rpcrdma", "nfsd")
    guest.start("rpcstub 111 1")
    must(guest, "mkdir -p /tmp/exp && dd if=/dev/zero of=/tmp/exp/data bs=65536 count=8 && mount -t nfsd nfsd /proc/fs/nfsd")
    must(guest, "cd /proc/net/rpc && echo 'nfsd 10.77.0.9 2147483647 lab' >auth.unix.ip/channel && echo '0 2147483647 0' >auth.unix.gid/channel && "
         "echo 'lab /tmp/exp 2147483647 9234 65534 65534 7' >nfsd.export/channel && echo 'lab 1 \\\\x07000000 2147483647 /tmp/exp' >nfsd.fh/channel")
    must(guest, "cd /proc/fs/nfsd && echo 'rdma 20049' >portlist && echo 1 >threads && cat portlist threads")
    handle = must(guest, "exec 3<>/proc/fs/nfsd/filehandle; echo 'lab /tmp/exp 64' >&3; cat <&3").strip()
    assert handle.startswith("\\x"), handle
    us = Rdmagen(lab, guest, "nfsclient", "nfs", guest.ip, "--fh", handle[2:], "--rw", "write", "-n", "16", "-S", "32768", "-t", "4")
    out = us.wait()
    assert "16 compared, 0 differed" in out, out
    assert commands(us, "WRITE") == commands(us, "READ") == (16, 16 * 32768) and commands(us, "COMMIT")[0] == 1, us.decoded()
    stale = Rdmagen(lab, guest, "nfsstale", "nfs", guest.ip, "--fh", handle[2:], "--file", "none").wait(status=1)
    assert "LOOKUP: NFS3ERR_NOENT" in stale, stale


def case_storage_nfs_server_and_linux_client(lab, guest):
    """Our server: a Linux client mounts it, lists it, writes through its cache and past it, and reads back. MOUNT is not RDMA: in the guest somebody
    tells the client the handle of our directory."""
    load(guest, "rpcrdma", "nfsv3")
    guest.start("rpcstub 20048 0 c %s 1 1" % " ".join(b"rdmagen root"[n:n + 4].hex() for n in (0, 4, 8)))
    us = Rdmagen(lab, guest, "nfsserver", "nfs", "-s")
    ready(us)
    must(guest, "mkdir -p /mnt && mount -t nfs -o vers=3,proto=rdma,port=20049,mountproto=tcp,mountport=20048,mountaddr=127.0.0.1,addr=10.77.0.9,nolock,noacl,"
         "rsize=32768,wsize=32768 10.77.0.9:/x /mnt")
    listed = must(guest, "ls -l /mnt")
    assert " 16777216 " in listed and " data" in listed, listed
    must(guest, "dd if=/dev/urandom of=/tmp/x bs=4096 count=25 && dd if=/tmp/x of=/mnt/data bs=4096 conv=notrunc,fsync && "
         "dd if=/tmp/x of=/mnt/data bs=500 count=3 seek=400 conv=notrunc,fsync && "
         "echo 3 >/proc/sys/vm/drop_caches && dd if=/mnt/data of=/tmp/y bs=4096 count=25 && cmp /tmp/x /tmp/y && busybox df /mnt")
    must(guest, "dd if=/mnt/data of=/tmp/z bs=500 skip=400 count=3 && dd if=/tmp/x of=/tmp/w bs=500 count=3 && cmp /tmp/z /tmp/w")
    status, said = guest.run("touch /mnt/none")
    assert status, said
    must(guest, "umount /mnt")
    out = us.wait()
    assert "nfs server: " in out, out
    names = {name: commands(us, name) for name in ("FSINFO", "PATHCONF", "ACCESS", "READDIRPLUS", "READ", "WRITE")}
    assert all(n for n, _ in names.values()) and names["WRITE"][1] >= 102400, names


def case_storage_iser_initiator_and_linux_target(lab, guest):
    """Our initiator: blocks written, read back and compared; a target that is not there."""
    load(guest, "crc32c_generic", "ib_isert")
    t, name = "/sys/kernel/config/target", "iqn.2024-01.lab:t1"
    must(guest, "mkdir -p {0}/core/rd_mcp_1/ram1 && echo rd_pages=512 >{0}/core/rd_mcp_1/ram1/control && echo 1 >{0}/core/rd_mcp_1/ram1/enable && "
         "mkdir -p {0}/iscsi/{1}/tpgt_1/np/{2}:3260 {0}/iscsi/{1}/tpgt_1/lun/lun_0 && echo 1 >{0}/iscsi/{1}/tpgt_1/np/{2}:3260/iser && "
         "ln -s {0}/core/rd_mcp_1/ram1 {0}/iscsi/{1}/tpgt_1/lun/lun_0/x && cd {0}/iscsi/{1}/tpgt_1/attrib && echo 0 >authentication && "
         "echo 1 >generate_node_acls && echo 1 >cache_dynamic_acls && echo 0 >demo_mode_write_protect && echo 1 >../enable".format(t, name, guest.ip))
    us = Rdmagen(lab, guest, "iserinitiator", "iser", guest.ip, "--targetname", name, "--rw", "write", "-n", "20", "-S", "16384", "-t", "4")
    out = us.wait()
    assert "20 compared, 0 differed" in out, out
    assert commands(us, "WRITE(10)") == commands(us, "READ(10)") == (20, 20 * 16384), us.decoded()
    wrong = Rdmagen(lab, guest, "iserwrong", "iser", guest.ip, "--targetname", name + "x").wait(status=1)
    assert "Login: " in wrong, wrong


def case_storage_iser_target_and_linux_initiator(lab, guest):
    """Our target: open-iscsi discovers it, logs in and finds a disk of one unit; blocks written, read back and compared; a logout."""
    load(guest, "crc32c_generic", "ib_iser", "sd_mod")
    must(guest, "mkdir -p /etc/iscsi /run/lock/iscsi && echo InitiatorName=iqn.2024-01.lab:hostA >/etc/iscsi/initiatorname.iscsi && "
         "printf 'node.startup = manual\\nnode.session.initial_login_retry_max = 2\\n' >/etc/iscsi/iscsid.conf")
    guest.start("iscsid -f")
    us = Rdmagen(lab, guest, "isertarget", "iser", "-s", "--persistent")
    ready(us)
    name = "iqn.2026-01.rdmagen:target"
    found = must(guest, "i=0; until iscsiadm -m discovery -t sendtargets -p 10.77.0.9:3260 -I iser || [ $i -gt 20 ]; do usleep 200000; i=$((i+1)); done")
    assert "10.77.0.9:3260,1 " + name in found, found
    must(guest, "iscsiadm -m node -T %s -p 10.77.0.9:3260 --login" % name)
    must(guest, "i=0; while [ ! -b /dev/sda ] && [ $i -lt 50 ]; do usleep 100000; i=$((i+1)); done; [ -b /dev/sda ] && [ ! -e /dev/sdb ] && "
         "[ $(cat /sys/block/sda/size) = 32768 ]")
    must(guest, "dd if=/dev/urandom of=/tmp/x bs=4096 count=16 && dd if=/tmp/x of=/dev/sda bs=65536 count=1 oflag=direct && "
         "dd if=/tmp/x of=/dev/sda bs=512 seek=32760 count=8 oflag=direct && echo 3 >/proc/sys/vm/drop_caches && "
         "dd if=/dev/sda of=/tmp/y bs=16384 count=4 iflag=direct && cmp /tmp/x /tmp/y")
    must(guest, "iscsiadm -m node -T %s -p 10.77.0.9:3260 --logout" % name)
    us.process.send_signal(signal.SIGINT)
    us.wait(timeout=10)
    rows = {n: commands(us, n) for n in ("Login", "Text", "REPORT LUNS", "WRITE(10)", "READ(10)", "Logout")}
    assert all(n for n, _ in rows.values()) and rows["WRITE(10)"][1] == 65536 + 4096 and rows["READ(10)"][1] >= 65536, rows


def case_storage_linux_host_refuses_memory(lab, guest):
    """Our target's first WRITE, of Identify, has another R_Key: the kernel refuses it, and the command says why. The kernel waits a minute for its
    command, so that this is the guest's last case, and our end is interrupted."""
    load(guest, "nvme_rdma")
    us = Rdmagen(lab, guest, "nvmerefused", "nvme", "-s", "--nqn", NQN, "--event", "dir=rsp class=write nth=1 set infiniband.reth.r_key=0x77")
    ready(us)
    guest.start("echo nqn=%s,transport=rdma,traddr=10.77.0.9,trsvcid=4420,nr_io_queues=1,hostnqn=%s,hostid=%s >/dev/nvme-fabrics" % (NQN, HOST, HOSTID))
    must(guest, "usleep 2000000")
    us.process.send_signal(signal.SIGINT)
    us.wait(status=1, timeout=10)
    r = subprocess.run([RDMATRACE, "ops", "--commands", "-T", "json", us.capture], capture_output=True, text=True)
    refused = [(c["command"].split(" cid")[0], c["refused_for"]) for c in json.loads(r.stdout) if c["remote_access_errors"]]
    assert refused == [("Identify (Controller)", "wrong_rkey")], (refused, us.decoded())
