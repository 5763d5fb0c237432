"""Memory windows of both types, SEND with Invalidate and LOCAL_INV between soft-RoCE (rdmagen agent) and our endpoint (rdmagen play): what one side
binds the other one uses, and no longer once it is unbound or invalidated. Ranges are not asked of soft-RoCE of Linux 6.1: it writes beyond a window."""
from agent_client import initrd
from case_agent import Ends, endpoint, gone
from case_pingpong import free_port
from case_rdmagen import RDMAGEN, behind_wire

RIGHTS = "local_write,remote_write,remote_read,remote_atomic,mw_bind"
ALL = "remote_write,remote_read,remote_atomic"
# Keys of host a in a live scenario: its first object's is 0x201, the next one's 0x301; a bind moves the low byte on by one.
OURS = 0x302


def guests(lab):
    port = free_port()
    wire, guest = behind_wire(lab, forward=[(port, 18517)], ramdisk=initrd(lab, RDMAGEN))
    return wire, guest, port


def next_key(key):
    return key & ~0xff | key + 1 & 0xff


class Window:
    """A window of the guest's, on bytes 4096 to 8191 of its memory. `key`: the one that the bind gives it (ibv_inc_rkey() of the present one)."""
    def __init__(self, guest, port, kind):
        self.ends = Ends(guest, port, RIGHTS)
        made = self.ends.agent("mw", pd=self.ends.pd, type=kind)
        self.kind, self.mw, self.key = kind, made["mw"], next_key(int(made["rkey"], 0))

    def done(self, opcode, status="SUCCESS"):
        done, = self.ends.agent.completions(self.ends.cq, 1)
        assert (done["status"], done["opcode"]) == (status, opcode), done
        return done

    def bind(self, length=4096, access=ALL):
        a, where = self.ends.agent, dict(mw=self.mw, mr=self.ends.mr, mw_addr=self.ends.addr + 4096, mw_len=length, access=access)
        if self.kind == 1:
            got = int(a("mw bind", qp=self.ends.qp, **where)["rkey"], 0)
            assert got == self.key or length == 0, "the key is 0x%x, expected 0x%x" % (got, self.key)
        else:
            a("post send", qp=self.ends.qp, op="BIND_MW", rkey=self.key, **where)
        self.done("BIND_MW")

    def unbind(self):
        """By the verb, or by LOCAL_INV."""
        if self.kind == 1:
            return self.bind(0)
        self.ends.agent("post send", qp=self.ends.qp, op="LOCAL_INV", inv=self.key)
        return self.done("LOCAL_INV")

    def receive(self, n=1):
        for i in range(n):
            self.ends.agent("post recv", qp=self.ends.qp, sge="%s+%d:64" % (self.ends.mr, 64 * i))

    def say(self):
        """An empty SEND, for which host a waits."""
        self.ends.agent("post send", qp=self.ends.qp)
        self.done("SEND")

    def end(self):
        self.ends.agent("quit")


def bound_of(window, access=ALL):
    def before():
        window.bind(access=access)
        window.receive()
    return before


def case_windows_of_the_guest(lab, wire, guest, port):
    """WRITE, READ and atomic through its window; unbound (type 1) or invalidated by LOCAL_INV (type 2) it refuses."""
    for kind in (1, 2):
        window = Window(guest, port, kind)

        def during():
            window.done("RECV")
            window.unbind()
            window.say()

        endpoint(lab, guest, window.ends, "windows_guest%d" % kind, """qp 1 rc psn=0xfffffe timeout=18
mem a.src 3000 fill=0x7b
mem a.back 3000
mem a.old 8
mem b.dst 8192
a post recv 1 old
a post write 1 src to b.dst+4096 rkey={0}
a wc 1 SUCCESS RDMA_WRITE
a post read 1 back from b.dst+4096 rkey={0}
a wc 1 SUCCESS RDMA_READ
a mem back == a.src
a post faa 1 old at b.dst+4096 rkey={0} add=1
a wc 1 SUCCESS FETCH_ADD
a mem old = fill:0x7b
a post send 1 -
a wc 1 SUCCESS SEND
a wc 1 SUCCESS RECV
a post write 1 src+0:8 to b.dst+8000 rkey={0}
b > a until NAK_ACCESS
a wc 1 REM_ACCESS_ERR
""".format(window.key), before=bound_of(window), during=during)
        assert window.ends.agent("mem compare", mem=window.ends.mem, off=8000, len=8, pattern="byte", arg=0)["same"] == "1", "nothing later"
        window.end()
        gone(guest)


def case_windows_rights_of_the_guest(lab, wire, guest, port):
    """A window without the right to write refuses a WRITE, and serves a READ."""
    for kind in (1, 2):
        window = Window(guest, port, kind)
        endpoint(lab, guest, window.ends, "windows_rights%d" % kind, """qp 1 rc timeout=18
mem a.src 100 fill=0x7b
mem b.dst 8192
a post read 1 src from b.dst+4096 rkey={0}
a wc 1 SUCCESS RDMA_READ
a post write 1 src to b.dst+4096 rkey={0}
b > a until NAK_ACCESS
a wc 1 REM_ACCESS_ERR
""".format(window.key), before=bound_of(window, "remote_read"))
        window.end()


def case_windows_invalidated_by_our_send(lab, wire, guest, port):
    """Our SEND with Invalidate ends a window of type 2. The completion of the receive does not say so: soft-RoCE of Linux 6.1 has another flag."""
    window = Window(guest, port, 2)

    def during():
        window.done("RECV")
        window.say()

    endpoint(lab, guest, window.ends, "windows_invalidated", """qp 1 rc timeout=18
mem a.src 64 fill=0x7b
mem b.dst 8192
a post recv 1 -
a post write 1 src to b.dst+4096 rkey={0}
a post send 1 src inv={0}
a > b until SEND_ONLY_INV
a wc 1 SUCCESS RDMA_WRITE
a wc 1 SUCCESS SEND
a wc 1 SUCCESS RECV
a post write 1 src to b.dst+8000 rkey={0}
b > a until NAK_ACCESS
a wc 1 REM_ACCESS_ERR
""".format(window.key), before=bound_of(window), during=during)
    assert window.ends.agent("mem compare", mem=window.ends.mem, off=8000, len=64, pattern="byte", arg=0)["same"] == "1", "nothing later"
    window.end()


def uses(window, how, last="REM_ACCESS_ERR"):
    """What the guest does with our window at 0x10000: WRITE and READ; how(agent, queue pair) ends it, or our side does (None); WRITE again."""
    def during():
        a, qp, far = window.ends.agent, window.ends.qp, dict(raddr=0x10000, rkey=OURS, sge=window.ends.mr + "+0:64")
        a("mem fill", mem=window.ends.mem, len=64, pattern="byte", arg=0x7b)
        window.done("RECV")  # it is bound
        a("post send", qp=qp, op="RDMA_WRITE", **far)
        window.done("RDMA_WRITE")
        a("post send", qp=qp, op="RDMA_READ", **far)
        window.done("RDMA_READ")
        how(a, qp)
        window.done("SEND")
        window.done("RECV")  # it is no more
        a("post send", qp=qp, op="RDMA_WRITE", **dict(far, raddr=0x10020, sge=window.ends.mr + "+0:8"))
        done, = a.completions(window.ends.cq, 1)
        assert done["status"] == last, done
    return during


OUR_WINDOW = """qp 1 rc timeout=18
mem a.dst 128 at=0x10000
mw a.w %d
a post recv 1 -
a post bind 1 w dst+0:64
a wc 1 SUCCESS BIND_MW
a post send 1 -
a wc 1 SUCCESS SEND
a wc 1 SUCCESS RECV%s
a mem dst+0:64 = fill:0x7b
a mem dst+64:64 = fill:0
%sa post send 1 -
a wc 1 SUCCESS SEND
b > a until WRITE_ONLY va=dst+32
a > b until NAK_ACCESS
"""


def plain(a, qp):
    a("post send", qp=qp)


def case_windows_of_ours(lab, wire, guest, port):
    """The guest uses our windows: of type 1, unbound by the verb; of type 2, invalidated by LOCAL_INV, and by its SEND with Invalidate."""
    unbind, invalidate = "a post bind 1 w dst:0\na wc 1 SUCCESS BIND_MW\n", "a post inv 1 w\na wc 1 SUCCESS LOCAL_INV\n"
    for n, (kind, said, ends_it, how) in enumerate((
            (1, "", unbind, plain), (2, "", invalidate, plain),
            (2, " inv=w", "", lambda a, qp: a("post send", qp=qp, op="SEND_WITH_INV", inv=OURS)))):
        window = Window(guest, port, 2)  # its queue pair is what counts
        endpoint(lab, guest, window.ends, "windows_ours%d" % n, OUR_WINDOW % (kind, said, ends_it), before=lambda: window.receive(2), during=uses(window, how))
        window.end()
    gone(guest)


def case_windows_of_ours_range_and_rights(lab, wire, guest, port):
    """What our window does not cover or permit is refused: no byte is written."""
    for n, (far, op) in enumerate((((0x10000 + 57, 8), "RDMA_WRITE"), ((0x10000 - 1, 8), "RDMA_WRITE"), ((0x10000, 8), "ATOMIC_FETCH_AND_ADD"))):
        window = Window(guest, port, 2)

        def during():
            window.done("RECV")
            window.ends.agent("post send", qp=window.ends.qp, op=op, raddr=far[0], rkey=OURS, sge="%s+0:%d" % (window.ends.mr, far[1]), compare_add=1)
            done, = window.ends.agent.completions(window.ends.cq, 1)
            assert done["status"] == "REM_ACCESS_ERR", done

        endpoint(lab, guest, window.ends, "windows_range%d" % n, """qp 1 rc timeout=18
mem a.dst 128 at=0x10000
mw a.w 2
a post bind 1 w dst+0:64 access=RW
a wc 1 SUCCESS BIND_MW
a post send 1 -
a wc 1 SUCCESS SEND
a > b until NAK_ACCESS
a mem dst = fill:0
""", before=window.receive, during=during)
        window.end()
