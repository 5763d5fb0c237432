"""ATOMIC WRITE and FLUSH with soft-RoCE of Linux 6.12 (newer.py), by rdmagen agent with a libibverbs that has both. Expected statuses are those of
the transport's rules: an address that is no multiple of 8 is an invalid request, a key or right that is missing a remote access error.

The ICRC of its FLUSH covers the headers from the BTH to the RETH twice, in what it sends and in what it expects, so that it understands itself only:
`Mended` on the wire changes the ICRC in both directions. Its libibverbs (56.1) posts every FLUSH with address 0."""
import struct
import zlib

import image
import newer
from agent_client import initrd
from case_agent import Ends, endpoint
from case_pingpong import free_port
from case_rdmagen import RDMAGEN, behind_wire
from lab import Failure, Skip

OPERATIONS = 0x1aff  # send_ops: those that soft-RoCE has (ibv_create_qp_ex(3))
RIGHTS = "local_write,remote_write,remote_read,remote_atomic,flush_global"
FLUSH = 0x1c


def flush_icrc(frame, again):
    """The ICRC of a FLUSH over IPv4, over its headers once more if `again`."""
    ip, udp, bth = bytearray(frame[14:34]), bytearray(frame[34:42]), bytearray(frame[42:-4])
    headers = bytes(bth) if again else b""
    ip[1] = ip[8] = ip[10] = ip[11] = udp[6] = udp[7] = bth[4] = 0xff
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(ip + udp + bth) + headers))


class Mended:
    """A hook of the wire. `seen`: FLUSHes of the guest, which is at side 0."""
    def __init__(self):
        self.seen = 0

    def __call__(self, side, frame):
        if frame[12:14] != b"\x08\0" or frame[23] != 17 or frame[42] != FLUSH:
            return (frame,)
        self.seen += side == 0
        if frame[-4:] != flush_icrc(frame, side == 0):
            raise Failure("the ICRC of a FLUSH of side %d is neither right nor that of soft-RoCE" % side)
        return (frame[:-4] + flush_icrc(frame, side != 0),)


def guests(lab):
    try:
        lab.image = newer.directory()
    except image.Skip as e:
        raise Skip("no guest with Linux 6.12: " + e.why)
    port = free_port()
    wire, guest = behind_wire(lab, forward=[(port, 18517)], ramdisk=initrd(lab, RDMAGEN))
    wire.hook = Mended()
    return wire, guest, port


def ends_of(guest, port, rights=RIGHTS):
    ends = Ends(guest, port, rights, run=newer.RUN, send_ops=OPERATIONS)
    ends.access = "remote_write,remote_read,remote_atomic,flush_global"
    return ends


def case_newer_answers_our_requests(lab, wire, guest, port):
    """Our endpoint's ATOMIC WRITE and FLUSH, of a range and of the whole region."""
    ends = ends_of(guest, port)
    endpoint(lab, guest, ends, "newer_serves", """qp 1 rc psn=0xfffffe timeout=18
mem a.src 1024 fill=0x7b
mem b.dst 8192
a post awrite 1 src+8:8 to b.dst+64
a > b ATOMIC_WRITE psn=0 len=8
b > a until READ_RESP_ONLY psn=0 len=0 msn=1
a wc 1 SUCCESS ATOMIC_WRITE
a post write 1 src to b.dst+2048
a post flush 1 at b.dst+2048:1024 global
a > b until FLUSH psn=2 infiniband.feth.plt=1 infiniband.feth.sel=0
b > a until READ_RESP_ONLY psn=2 len=0 msn=3
a wc 1 SUCCESS RDMA_WRITE
a wc 1 SUCCESS FLUSH
a post flush 1 at b.dst global whole
b > a until READ_RESP_ONLY psn=3 len=0 msn=4
a wc 1 SUCCESS FLUSH
""")
    a, src = ends.agent, b"\x7b" * 1024
    a("mem read", mem=ends.mem, off=2048, len=1024)
    assert a.bulk == src, "what was written and flushed"
    a("mem read", mem=ends.mem, off=56, len=24)
    assert a.bulk == bytes(8) + src[8:16] + bytes(8), "8 bytes, and no more: %s" % a.bulk
    a("quit")


def case_newer_answers_again(lab, wire, guest, port):
    """Its answer is lost: it answers the same ATOMIC WRITE again, and neither writes nor counts it twice. A FLUSH that is sent again it does not
    answer."""
    ends = ends_of(guest, port)
    lab.expect(duplicate_request=range(1, 100))
    endpoint(lab, guest, ends, "newer_again", """event psn=0 class=resp drop
qp 1 rc timeout=17
mem a.src 64 fill=0x7b
mem b.dst 8192
a post awrite 1 src:8 to b.dst
a > b ATOMIC_WRITE psn=0
a > b ATOMIC_WRITE psn=0
b > a until READ_RESP_ONLY psn=0 len=0 msn=1
a wc 1 SUCCESS ATOMIC_WRITE
a post write 1 src to b.dst
b > a until ACK psn=1 msn=2
a wc 1 SUCCESS RDMA_WRITE
""")
    ends.agent("quit")


def case_newer_refuses_wrong_requests_of_ours(lab, wire, guest, port):
    """An ATOMIC WRITE at an address that is no multiple of 8, one with a wrong key, a FLUSH to persistence of plain memory, one without the right."""
    for request, nak, status, rights in (("awrite 1 src:8 to b.dst+4", "INVALID", "REM_INV_REQ_ERR", RIGHTS),
                                         ("awrite 1 src:8 to b.dst rkey=0x7f", "ACCESS", "REM_ACCESS_ERR", RIGHTS),
                                         ("flush 1 at b.dst:64 persistent", "ACCESS", "REM_ACCESS_ERR", RIGHTS),
                                         ("flush 1 at b.dst:64 global", "ACCESS", "REM_ACCESS_ERR", RIGHTS.replace(",flush_global", ""))):
        ends = ends_of(guest, port, rights)
        if "persistent" in request:
            ends.access += ",flush_persistent"
        endpoint(lab, guest, ends, "newer_refuses", """host a nocheck
qp 1 rc timeout=18
mem a.src 64 fill=0x7b
mem b.dst 8192
a post %s
b > a until NAK_%s psn=0
a wc 1 %s
""" % (request, nak, status))
        assert ends.agent("mem compare", mem=ends.mem, pattern="byte", arg=0)["same"] == "1", "nothing was written"
        ends.agent("quit")


def posts(ends, *requests):
    """A function that posts them one after the other, and compares the status of each."""
    def post():
        a = ends.agent
        a("mem fill", mem=ends.mem, len=64, pattern="byte", arg=0x7b)
        for n, (values, status) in enumerate(requests):
            a("post send", qp=ends.qp, wr_id=n, **values)
            done, = a.completions(ends.cq, 1)
            assert (done["wr_id"], done["status"]) == (str(n), status), "%s: %s" % (values, done)
            assert status != "SUCCESS" or done["opcode"] == values["op"], done
    return post


def awrite(ends, raddr, rkey):
    return dict(op="ATOMIC_WRITE", sge=ends.mr + "+0:8", raddr=raddr, rkey=rkey)


def case_newer_posts(lab, wire, guest, port):
    """Its ATOMIC WRITE and FLUSH to our endpoint; the keys of our regions are 0x201, 0x301."""
    ends = ends_of(guest, port)
    endpoint(lab, guest, ends, "newer_posts", """qp 1 rc timeout=18
mem a.dst 64 at=0x10000
mem a.low 64 at=0
b > a ATOMIC_WRITE va=dst+8 dmalen=8 len=8
a > b READ_RESP_ONLY len=0 msn=1
b > a FLUSH infiniband.feth.plt=1 infiniband.feth.sel=0 va=low dmalen=64
a > b READ_RESP_ONLY len=0 msn=2
b > a FLUSH infiniband.feth.plt=1 infiniband.feth.sel=1
a > b READ_RESP_ONLY len=0 msn=3
a mem dst+0:8 = fill:0
a mem dst+8:8 = fill:0x7b
a mem dst+16:48 = fill:0
""", during=posts(ends, (awrite(ends, 0x10008, 0x201), "SUCCESS"), (dict(op="FLUSH", raddr=0, rkey=0x301, flush_len=64), "SUCCESS"),
                  (dict(op="FLUSH", rkey=0x201, whole=1), "SUCCESS")))
    assert wire.hook.seen >= 2, "its FLUSHes were seen"
    ends.agent("quit")


def case_newer_is_refused(lab, wire, guest, port):
    """What our endpoint refuses: the completion statuses at soft-RoCE are those of the NAKs."""
    for request, nak, status in ((lambda e: awrite(e, 0x1000c, 0x201), "INVALID", "REM_INV_REQ_ERR"),
                                 (lambda e: awrite(e, 0x10000, 0x202), "ACCESS", "REM_ACCESS_ERR"),
                                 (lambda e: dict(op="FLUSH", rkey=0x201, whole=1, placement="persistent"), "ACCESS", "REM_ACCESS_ERR")):
        ends = ends_of(guest, port)
        endpoint(lab, guest, ends, "newer_refused", """qp 1 rc timeout=18
mem a.dst 64 at=0x10000
b > a *
a > b NAK_%s msn=0
a mem dst = fill:0
""" % nak, during=posts(ends, (request(ends), status)))
        ends.agent("quit")
