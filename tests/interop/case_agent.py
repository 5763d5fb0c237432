"""rdmagen agent in a guest, on soft-RoCE: each kind of object; its queue pair against our own endpoint outside, by `rdmagen play`; what goes
with a client. Expected statuses are those of the verbs' manual pages and of the transport's rules (NAK code and completion)."""
import hashlib
import re
import socket
import threading
import time

from agent_client import RUN, Agent, Refused, initrd, start
from case_pingpong import free_port, gid_index
from case_rdmagen import OWN, RDMAGEN, Rdmagen, behind_wire
from counters import ZERO
from lab import SLOW, Failure


def guests(lab):
    port = free_port()
    wire, guest = behind_wire(lab, forward=[(port, 18517)], ramdisk=initrd(lab, RDMAGEN))
    return wire, guest, port


def connect(guest, port, run=RUN):
    """A client of the agent, which is started if need be: a case that failed has ended it."""
    if guest.run("netstat -ltn | grep -q :18517")[0] != 0:
        start(guest, run=run)
    return Agent(port)


def resources(guest):
    """What the kernel still holds for the processes of rdmagen, by kind."""
    out = guest.run("for k in qp cq mr pd cm_id srq; do rdma resource show $k; done")[1]
    return [line for line in out.splitlines() if "comm rdmagen" in line]


def gone(guest):
    """Wait until nothing is left."""
    end = time.time() + 10 * SLOW
    while resources(guest):
        if time.time() > end:
            raise Failure("left behind: %s" % resources(guest))
        time.sleep(0.1)


class Ends:
    """An open device with a protection domain, memory, a region, a completion queue and a queue pair of RC."""
    def __init__(self, guest, port, rights="local_write,remote_write,remote_read,remote_atomic", length=16384, run=RUN, **more):
        self.agent, self.ip = connect(guest, port, run), guest.ip
        a = self.agent
        a("dev open")
        self.index = gid_index(guest)["4"]
        self.pd, self.cq = a("pd")["pd"], a("cq", n=64)["cq"]
        self.memory = a("mem", len=length)
        self.mem = self.memory["mem"]
        self.region = a("mr", pd=self.pd, mem=self.mem, access=rights)
        self.mr, self.rkey, self.addr = self.region["mr"], int(self.region["rkey"], 0), int(self.region["addr"], 0)
        self.made = a("qp", type="rc", pd=self.pd, cq=self.cq, max_inline=64, max_send_sge=2, max_recv_sge=2, **more)
        self.access = "remote_write,remote_read,remote_atomic"  # of queue pairs
        self.qp, self.qpn = self.made["qp"], int(self.made["qpn"], 0)

    def join(self, qpn, psn, gid, own_psn=0x100):
        """From RESET to RTS, with the attributes that each step needs (ibv_modify_qp(3))."""
        a = self.agent
        a("qp modify", qp=self.qp, state="INIT", pkey_index=0, port=1, access=self.access)
        a("qp modify", qp=self.qp, state="RTR", path_mtu=1024, dest_qpn=qpn, rq_psn=psn, max_dest_rd_atomic=4, min_rnr_timer=12, dgid=gid,
          sgid_index=self.index, port_num=1)
        a("qp modify", qp=self.qp, state="RTS", timeout=17, retry_cnt=7, rnr_retry=7, sq_psn=own_psn, max_rd_atomic=4)


def accept(listener, us):
    """The connection of `us`, unless it ends before."""
    listener.settimeout(0.5)
    for _ in range(40 * SLOW):
        try:
            return listener.accept()[0]
        except TimeoutError:
            if us.process.poll() is not None:
                break
    raise Failure("no connection: " + us.text())


def endpoint(lab, guest, ends, name, text, before=lambda: None, during=lambda: None):
    """Our endpoint plays the scenario `text` with the agent's queue pair: this end of the exchange of ibv_rc_pingpong is ours."""
    path, listener = lab.path(name + ".rdma"), socket.create_server(("127.0.0.1", 0))
    with open(path, "w") as f:
        f.write(text)
    us = Rdmagen(lab, guest, name, "play", guest.ip, path, "--exchange", "pingpong", "--tcp", "127.0.0.1", "-p", str(listener.getsockname()[1]),
                 "--mtu", "1024", "--rkey", hex(ends.rkey), "--va", hex(ends.addr), "-v")
    us.judge = lambda: None  # what is wrong on purpose is the scenario's to expect
    try:
        channel = accept(listener, us)
        channel.settimeout(20 * SLOW)
        _, qpn, psn, gid = channel.recv(64).split(b"\0")[0].decode().split(":")
        ends.join(int(qpn, 16), int(psn, 16), "::ffff:" + OWN)
        before()
        channel.sendall(("%04x:%06x:%06x:%s" % (0, ends.qpn, 0x100, bytes(10).hex() + "ffff" + socket.inet_aton(guest.ip).hex())).encode() + b"\0")
        thread = threading.Thread(target=lambda: channel.recv(64), daemon=True)
        thread.start()
        during()
        out = us.wait()
    finally:
        listener.close()
    assert "all as expected" in out, out
    return out


def state(ends):
    return ends.agent("qp query", qp=ends.qp)["state"]


def sha(data):
    return hashlib.sha256(data).hexdigest()


def prng_bytes(seed, n):
    """What `pattern=prng` is: splitmix64, each number from its lowest byte."""
    out, s, mask = b"", seed, (1 << 64) - 1
    while len(out) < n:
        s = s + 0x9e3779b97f4a7c15 & mask
        z = (s ^ s >> 30) * 0xbf58476d1ce4e5b9 & mask
        z = (z ^ z >> 27) * 0x94d049bb133111eb & mask
        out += (z ^ z >> 31).to_bytes(8, "little")
    return out[:n]


def case_agent_device_and_objects(lab, wire, guest, port):
    a = connect(guest, port)
    assert "dev=rxe0" in a("dev list")["all"], "the device is listed"
    assert a.refused("pd") == "ENODEV", "no device is open"
    assert a("dev open", name="rxe0")["dev"] == "rxe0"
    assert int(a("dev query")["max_qp"]) > 0
    at = a("port")
    assert (at["state"], at["active_mtu"], at["link_layer"]) == ("4", "3", "2"), "active, 1024 bytes, Ethernet: %s" % at
    assert a("pkey")["all"] == ["pkey=0,0xffff"], "soft-RoCE has one P_Key"
    gids = [w.split(",") for w in a("gid")["all"] if w.startswith("gid=")]
    assert any(g[1].endswith("::ffff:" + guest.ip) and g[2] == "ROCE_V2" and g[3] == "eth0" for g in gids), gids
    pd, other, channel = a("pd")["pd"], a("pd")["pd"], a("channel")["channel"]
    cq, srq = a("cq", n=10, channel=channel)["cq"], a("srq", pd=pd, max_wr=16)["srq"]
    mem = a("mem", len=65536)["mem"]
    mr = a("mr", pd=pd, mem=mem, access="local_write,remote_read")["mr"]
    for kind in ("1", "2"):
        assert a("mw", pd=pd, type=kind)["mw"]
    for kind, more in (("rc", {}), ("uc", {}), ("ud", {}), ("rc", {"srq": srq})):
        assert a("qp", type=kind, pd=pd, cq=cq, **more)["qp"]
    assert a("ah", pd=pd, dgid=guest.ip, sgid_index=gid_index(guest)["4"], port_num=1)["ah"]
    a("srq modify", srq=srq, limit=3)
    assert a("srq query", srq=srq)["limit"] == "3"
    for verb, values in (("xrcd", {}), ("qp", {"type": "raw", "pd": pd, "cq": cq}), ("mr rereg", {"mr": mr, "access": "local_write"})):
        assert a.refused(verb, **values) in ("EOPNOTSUPP", "EINVAL", "EPERM"), "soft-RoCE has no %s" % verb
    # ibv_alloc_dm(3), ibv_advise_mr(3), ibv_query_ece(3), ibv_create_flow(3), ibv_create_srq_ex(3): what a driver lacks it refuses
    qp = a("qp", type="rc", pd=pd, cq=cq)["qp"]
    for verb, values in (("null_mr", {"pd": pd}), ("advise", {"pd": pd, "mr": mr, "len": 4096}), ("dm", {"len": 4096}), ("ece", {"qp": qp}), ("ece set", {"qp": qp, "vendor_id": 1}),
                         ("flow", {"qp": qp, "mac": "020000000001", "ip": guest.ip, "udp_port": 4791}), ("srq", {"pd": pd, "cq": cq, "max_tags": 4, "max_tag_ops": 4})):
        assert a.refused(verb, **values) in ("EOPNOTSUPP", "EPERM"), "soft-RoCE has no %s" % verb
    why = a.refused("mem", len=4096, dmabuf=1)
    assert why in ("ENOENT", "ENODEV"), "the guest has no /dev/udmabuf: %s" % why
    # ibv_dealloc_pd(3), ibv_destroy_cq(3): EBUSY while something uses it
    assert a.refused("destroy", object=pd) == a.refused("destroy", object=cq) == a.refused("destroy", object=mem) == "EBUSY"
    a("destroy", object=other)
    assert len(resources(guest)) >= 8, "the kernel has them: %s" % resources(guest)
    held = a("objects")
    assert held["n"] == str(len([w for w in held["all"] if not w.startswith(("n=", "bytes="))]))
    a("quit")
    gone(guest)


def case_agent_states_of_queue_pairs(lab, wire, guest, port):
    """Legal steps, and illegal ones (ibv_modify_qp(3): EINVAL); what is posted in an illegal state is refused."""
    ends = Ends(guest, port)
    a = ends.agent
    assert state(ends) == "RESET"
    assert a.refused("post recv", qp=ends.qp, sge=ends.mr + "+0:64") == "EINVAL", "receives are refused in RESET"
    assert a.refused("qp modify", qp=ends.qp, state="RTS", timeout=14, retry_cnt=7, rnr_retry=7, sq_psn=0, max_rd_atomic=1) == "EINVAL"
    assert state(ends) == "RESET"
    ends.join(0x123456, 0, "::ffff:" + guest.ip)
    assert state(ends) == "RTS"
    is_ = a("qp query", qp=ends.qp)
    assert (is_["path_mtu"], is_["dest_qpn"], is_["min_rnr_timer"], is_["timeout"], is_["dgid"]) == ("1024", "0x123456", "12", "17", "::ffff:" + guest.ip)
    a("post recv", qp=ends.qp, wr_id=5, sge=ends.mr + "+0:64")
    a("qp modify", qp=ends.qp, state="SQD")
    a("qp modify", qp=ends.qp, state="ERR")
    done, = ends.agent.completions(ends.cq, 1)
    assert (done["wr_id"], done["status"]) == ("5", "WR_FLUSH_ERR"), done
    a("qp modify", qp=ends.qp, state="RESET")
    assert state(ends) == "RESET"
    a("quit")
    gone(guest)


def case_agent_memory(lab, wire, guest, port):
    a = connect(guest, port)
    mem = a("mem", len=100)["mem"]
    a("mem write", mem=mem, off=5, data=b"123456789")
    assert a("mem hash", mem=mem, off=5, len=9)["crc32c"] == "0xe3069283", "the check value of CRC-32C"
    assert a("mem hash", mem=mem, off=5, len=9)["sha256"] == sha(b"123456789")
    a("mem fill", mem=mem, off=8, len=1000, pattern="prng", arg=7)
    a("mem read", mem=mem, off=8, len=1000)
    assert a.bulk == prng_bytes(7, 1000)
    assert a("mem compare", mem=mem, off=8, len=1000, pattern="prng", arg=7)["same"] == "1"
    a("mem write", mem=mem, off=507, data=b"\0" if a.bulk[499] else b"\1")
    assert a("mem compare", mem=mem, off=8, len=1000, pattern="prng", arg=7)["at"] == "499"
    assert a.refused("mem", len="1G") == "ENOMEM", "more than --max-mem"
    a("quit")


def case_agent_answers_our_requests(lab, wire, guest, port):
    """SEND, RDMA WRITE, READ and both atomics of our endpoint's to the agent's queue pair."""
    ends = Ends(guest, port)
    a = ends.agent
    a("mem fill", mem=ends.mem, off=4096, len=4096, pattern="byte", arg=0x5a)
    a("mem write", mem=ends.mem, off=2048, data=(40).to_bytes(8, "little") + bytes(8))
    endpoint(lab, guest, ends, "agent_serves", """qp 1 rc psn=0xfffffe timeout=18
mem a.src 3000 fill=0x7b
mem a.back 2000
mem a.old 8
mem b.dst 8192
a post send 1 src
a wc 1 SUCCESS SEND
a post write 1 src+0:1000 to b.dst+1024
a wc 1 SUCCESS RDMA_WRITE
a post read 1 back from b.dst+4096
a wc 1 SUCCESS RDMA_READ
a mem back = fill:0x5a
a post faa 1 old at b.dst+2048 add=2
a wc 1 SUCCESS FETCH_ADD
a mem old = u64:40
a post cas 1 old at b.dst+2048 compare=42 swap=77
a wc 1 SUCCESS COMP_SWAP
a mem old = u64:42
""", before=lambda: a("post recv", qp=ends.qp, wr_id=9, sge="%s+0:1000,%s+8192:3000" % (ends.mr, ends.mr)))
    done, = a.completions(ends.cq, 1)
    assert (done["wr_id"], done["status"], done["opcode"], done["byte_len"], int(done["qpn"], 0)) == ("9", "SUCCESS", "RECV", "3000", ends.qpn), done
    want = (b"\x7b" * 1000 + bytes(24) + b"\x7b" * 1000 + bytes(24) + (77).to_bytes(8, "little")).ljust(4096, b"\0")
    assert a("mem hash", mem=ends.mem, len=4096)["sha256"] == sha(want), "what was received, written, added and swapped"
    assert a("mem hash", mem=ends.mem, off=8192, len=2000)["sha256"] == sha(b"\x7b" * 2000), "the second piece of the receive"
    a("quit")
    gone(guest)


def case_agent_wrong_keys_of_ours(lab, wire, guest, port):
    """An R_Key that is not the region's: NAK 62, and REM_ACCESS_ERR at the requester (C9-88; 11.6.2)."""
    ends = Ends(guest, port)
    ends.rkey ^= 0x1
    endpoint(lab, guest, ends, "agent_wrong_key", """qp 1 rc timeout=18
mem a.src 100 fill=0x7b
mem b.dst 8192
a post write 1 src to b.dst
b > a until NAK_ACCESS psn=0
a wc 1 REM_ACCESS_ERR
""")
    assert ends.agent("mem compare", mem=ends.mem, pattern="byte", arg=0)["same"] == "1", "nothing was written"
    ends.agent("quit")
    gone(guest)


def case_agent_posts(lab, wire, guest, port):
    """The agent's queue pair SENDs to our endpoint, with its own memory, and with an L_Key that is none (LOC_PROT_ERR or LOC_QP_OP_ERR)."""
    ends = Ends(guest, port)
    a = ends.agent
    a("mem fill", mem=ends.mem, len=3000, pattern="byte", arg=0x7b)

    def post():
        a.send("b1 batch n=2\nx post send qp=%s wr_id=1 sge=%s+0:2000,%s+2000:1000\nx post send qp=%s wr_id=2 op=SEND_WITH_IMM imm=0x11223344"
               % (ends.qp, ends.mr, ends.mr, ends.qp))
        assert a.answer("b1")["posted"] == "2"
        done = a.completions(ends.cq, 2)
        assert [(d["wr_id"], d["status"], d["opcode"]) for d in done] == [("1", "SUCCESS", "SEND"), ("2", "SUCCESS", "SEND")], done

    endpoint(lab, guest, ends, "agent_posts", """qp 1 rc timeout=18
mem a.dst 8192
a post recv 1 dst+0:4096
a post recv 1 dst+4096:4096
b > a until SEND_LAST
a wc 1 SUCCESS RECV len=3000
a mem dst+0:3000 = fill:0x7b
a wc 1 SUCCESS RECV len=0 imm=0x11223344
""", during=post)
    a("post send", qp=ends.qp, wr_id=3, sge="%d:100:0x%x" % (ends.addr, ends.rkey ^ 0x1))
    done, = a.completions(ends.cq, 1)
    assert done["wr_id"] == "3" and done["status"] in ("LOC_PROT_ERR", "LOC_QP_OP_ERR"), done
    assert state(ends) == "ERR"
    assert a.refused("post send", qp=ends.qp, flags="inline", sge="0x1000:16:0") == "EINVAL", "inline data comes from memory of the client's only"
    a("quit")
    gone(guest)


def other_pair(ends, **more):
    """A second queue pair of the agent's, connected with the first."""
    a = ends.agent
    made = a("qp", type="rc", pd=ends.pd, cq=ends.cq, **more)
    first, ends.qp = ends.qp, made["qp"]
    ends.join(ends.qpn, 0x100, "::ffff:" + ends.ip)
    ends.qp = first
    ends.join(int(made["qpn"], 0), 0x100, "::ffff:" + ends.ip)
    return made["qp"]


def case_agent_windows(lab, wire, guest, port):
    """A window of each type: bound, written through, unbound or invalidated: REM_ACCESS_ERR (ibv_bind_mw(3), ibv_alloc_mw(3)). Its length is not
    asked for: soft-RoCE of Linux 6.1 writes beyond it, as far as the region goes."""
    for kind in (1, 2):
        ends = Ends(guest, port, "local_write,remote_write,remote_read,mw_bind")
        a, pair = ends.agent, other_pair(ends)
        a("mem fill", mem=ends.mem, len=64, pattern="byte", arg=0x7b)
        window = a("mw", pd=ends.pd, type=kind)
        where = dict(mw=window["mw"], mr=ends.mr, mw_addr=ends.addr + 4096, mw_len=64, access="remote_write")
        key = (int(window["rkey"], 0) & ~0xff) | 0x42
        if kind == 1:
            key = int(a("mw bind", qp=ends.qp, wr_id=1, **where)["rkey"], 0)
        else:
            a("post send", qp=ends.qp, op="BIND_MW", wr_id=1, rkey=key, **where)
        bound, = a.completions(ends.cq, 1)
        assert (bound["status"], bound["opcode"]) == ("SUCCESS", "BIND_MW"), bound
        write = dict(qp=pair, op="RDMA_WRITE", raddr=ends.addr + 4096, rkey=key)
        a("post send", wr_id=2, sge=ends.mr + "+0:64", **write)
        assert a.completions(ends.cq, 1)[0]["status"] == "SUCCESS"
        assert a("mem compare", mem=ends.mem, off=4096, len=64, pattern="byte", arg=0x7b)["same"] == "1"
        if kind == 1:
            a("mw bind", qp=ends.qp, wr_id=3, **dict(where, mw_len=0))
        else:
            a("post send", qp=ends.qp, op="LOCAL_INV", wr_id=3, inv=key)
        assert a.completions(ends.cq, 1)[0]["status"] == "SUCCESS"
        a("post send", wr_id=4, sge=ends.mr + "+64:64", **write)
        done, = a.completions(ends.cq, 1)
        assert (done["wr_id"], done["status"]) == ("4", "REM_ACCESS_ERR"), "through a window that is no more: %s" % done
        assert a("mem compare", mem=ends.mem, off=4096, len=64, pattern="byte", arg=0x7b)["same"] == "1"
        a("quit")
        gone(guest)


def case_agent_shared_receives(lab, wire, guest, port):
    """A queue pair takes receives of a shared receive queue; below its limit an event says so (ibv_modify_srq(3)); a completion notifies, too."""
    ends = Ends(guest, port)
    a = ends.agent
    srq, channel = a("srq", pd=ends.pd, max_wr=8)["srq"], a("channel")["channel"]
    cq = a("cq", n=8, channel=channel)["cq"]
    pair = other_pair(ends, srq=srq, recv_cq=cq)
    for i in range(3):
        a("post srq", srq=srq, wr_id=10 + i, sge="%s+%d:64" % (ends.mr, 64 * i))
    a("srq modify", srq=srq, limit=3)
    a("cq arm", cq=cq)
    a("post send", qp=ends.qp, wr_id=1, op="SEND_WITH_IMM", imm=7, sge=ends.mr + "+4096:64")
    a("wait event", after=0, ms=5000 * SLOW)
    a("wait event", after=1, ms=5000 * SLOW)
    assert any(x.startswith("event name=SRQ_LIMIT_REACHED srq=%s " % srq) for x in a.said), a.said
    assert any(x.startswith("notify cq=%s " % cq) for x in a.said), a.said
    done, = a.completions(cq, 1)
    assert (done["wr_id"], done["status"], done["opcode"], done["imm"]) == ("10", "SUCCESS", "RECV", "0x7") and "with_imm" in done["flags"], done
    assert a("srq query", srq=srq)["limit"] == "0", "the limit is taken back with its event"
    assert pair and a.completions(ends.cq, 1)[0]["wr_id"] == "1"
    a("quit")
    gone(guest)


def case_agent_datagrams(lab, wire, guest, port):
    """UD by an address handle: 40 bytes of network header precede the data (ibv_post_recv(3)); another Q_Key: nothing arrives."""
    ends = Ends(guest, port)
    a = ends.agent
    pair = [a("qp", type="ud", pd=ends.pd, cq=ends.cq) for _ in range(2)]
    for q in pair:
        a("qp modify", qp=q["qp"], state="INIT", pkey_index=0, port=1, qkey=0x1234)
        a("qp modify", qp=q["qp"], state="RTR")
        a("qp modify", qp=q["qp"], state="RTS", sq_psn=0)
    ah = a("ah", pd=ends.pd, dgid=guest.ip, sgid_index=ends.index)["ah"]
    assert a.refused("post send", qp=pair[0]["qp"], sge=ends.mr + "+0:100") == "EINVAL", "a datagram needs an address handle"
    a("mem fill", mem=ends.mem, len=100, pattern="seq", arg=9)
    a("post recv", qp=pair[1]["qp"], wr_id=5, sge=ends.mr + "+4096:140")
    for qkey, arrives in ((0x4321, False), (0x1234, True)):
        a("post send", qp=pair[0]["qp"], wr_id=qkey, ah=ah, dest_qpn=pair[1]["qpn"], qkey=qkey, sge=ends.mr + "+0:100")
        done = a.completions(ends.cq, 1 + arrives)
        assert sorted((d["wr_id"], d["status"]) for d in done) == sorted([(str(qkey), "SUCCESS")] + [("5", "SUCCESS")] * arrives), done
    got = next(d for d in done if d["wr_id"] == "5")
    assert (got["byte_len"], got["flags"], got["src_qp"]) == ("140", "grh", pair[0]["qpn"]), got
    assert a("mem compare", mem=ends.mem, off=4136, len=100, pattern="seq", arg=9)["same"] == "1"
    a("mcast attach", qp=pair[1]["qp"], gid="239.1.2.3")
    a("mcast detach", qp=pair[1]["qp"], gid="239.1.2.3")
    a("quit")
    gone(guest)


def told(agent, start, name):
    """Wait for an event of RDMA-CM, among what was said from `start` on; its values."""
    for _ in range(10):
        for line in agent.said[start:]:
            if line.startswith("cm name=%s " % name):
                return dict(w.split("=", 1) for w in line.split()[1:])
        known = sum(line.startswith(("cm ", "event ", "notify ")) for line in agent.said)
        try:
            agent("wait event", after=known, ms=5000 * SLOW)
        except Refused:
            break
    raise Failure("no %s: %s" % (name, agent.said[start:]))


def case_agent_connection_manager(lab, wire, guest, port):
    """Two ids of one client: REQ, REP, RTU with private data, a SEND, DREQ (rdma_connect(3), rdma_accept(3), rdma_establish(3))."""
    ends = Ends(guest, port)
    a, start_ = ends.agent, 0
    pair = a("qp", type="rc", pd=ends.pd, cq=ends.cq)
    listener, active = a("cm create")["id"], a("cm create")["id"]
    a("cm bind", id=listener, addr=guest.ip, port=7471)
    a("cm listen", id=listener)
    a("cm resolve", id=active, addr=guest.ip, port=7471)
    told(a, start_, "ADDR_RESOLVED")
    a("cm route", id=active)
    told(a, start_, "ROUTE_RESOLVED")
    a("cm modify", id=active, qp=ends.qp, state="INIT")
    a("cm connect", id=active, qp=ends.qp, private="c0ffee", responder_resources=3)
    request = told(a, start_, "CONNECT_REQUEST")
    assert (request["id"], request["private"][:6], int(request["qpn"], 0), request["initiator_depth"]) == (listener, "c0ffee", ends.qpn, "3"), request
    passive = request["new"]
    for state_ in ("INIT", "RTR", "RTS"):
        a("cm modify", id=passive, qp=pair["qp"], state=state_)
    a("cm accept", id=passive, qp=pair["qp"], private="decaf0")
    response = told(a, start_, "CONNECT_RESPONSE")
    assert response["private"][:6] == "decaf0", response
    for state_ in ("RTR", "RTS"):
        a("cm modify", id=active, qp=ends.qp, state=state_)
    a("cm establish", id=active)
    assert told(a, start_, "ESTABLISHED")["id"] == passive
    a("post recv", qp=pair["qp"], wr_id=1, sge=ends.mr + "+0:64")
    a("post send", qp=ends.qp, wr_id=2, sge=ends.mr + "+64:64")
    assert sorted(d["wr_id"] + d["status"] for d in a.completions(ends.cq, 2)) == ["1SUCCESS", "2SUCCESS"]
    a("cm disconnect", id=active)
    told(a, start_, "DISCONNECTED")
    refused = a("cm create")["id"]
    start_ = len(a.said)
    a("cm resolve", id=refused, addr=guest.ip, port=7472)
    told(a, start_, "ADDR_RESOLVED")
    a("cm route", id=refused)
    told(a, start_, "ROUTE_RESOLVED")
    a("cm connect", id=refused, qpn=0x123)
    assert told(a, start_, "REJECTED")["status"] == "8", "invalid service id: nobody listens there"
    a("quit")
    gone(guest)


def settled(a):
    """The counters, once no packet of what went before is sent any more."""
    for _ in range(20):
        now = a("counters")
        time.sleep(0.2)
        if a("counters")["rdma.sent_pkts"] == now["rdma.sent_pkts"]:
            return now
    raise AssertionError("packets are sent all the time: %s" % now)


def case_agent_counters(lab, wire, guest, port):
    """The counters rise by what was sent: by one SEND and its ACK, each counted as sent and received, on the loop of soft-RoCE."""
    ends = Ends(guest, port)
    a, pair = ends.agent, other_pair(ends)
    before = settled(a)
    assert int(before["rdma.sent_pkts"]) >= 0 and any(w.startswith("eth0.") for w in before["all"]), before
    a("post recv", qp=pair, wr_id=1, sge=ends.mr + "+0:64")
    a("post send", qp=ends.qp, wr_id=2, sge=ends.mr + "+64:64")
    a.completions(ends.cq, 2)
    after = settled(a)
    assert int(after["rdma.sent_pkts"]) == int(before["rdma.sent_pkts"]) + 2, (before, after)
    a("quit")
    gone(guest)


def case_agent_walk(lab, wire, guest, port):
    """Random verbs, on queue pairs connected with each other: the device survives, serves a new client, and nothing is left."""
    lab.expect(**{name: range(0, 10**6) for name in ZERO})
    for seed in (1, 2):
        a = connect(guest, port)
        a("dev open")
        got = a("walk", steps=1500, seed=seed, dgid=guest.ip, sgid_index=gid_index(guest)["4"])
        assert int(got["done"]) > 500, got
        a("quit")
        a.close()
        gone(guest)
    assert "panic" not in guest.console() and guest.run("dmesg | grep -c 'BUG\\|Oops\\|WARNING'")[1].strip() == "0", guest.run("dmesg | tail -50")[1]
    ends = Ends(guest, port)
    pair = other_pair(ends)
    ends.agent("post recv", qp=pair, wr_id=1, sge=ends.mr + "+0:64")
    ends.agent("post send", qp=ends.qp, wr_id=2, sge=ends.mr + "+64:64")
    assert sorted(d["status"] for d in ends.agent.completions(ends.cq, 2)) == ["SUCCESS"] * 2
    ends.agent("quit")
    gone(guest)


def case_agent_client_is_killed(lab, wire, guest, port):
    """A client that vanishes in the middle of a wait leaves nothing behind, and the next one is served."""
    ends = Ends(guest, port)
    ends.join(0x123456, 0, "::ffff:" + guest.ip)
    ends.agent("post recv", qp=ends.qp, sge=ends.mr + "+0:64")
    assert resources(guest)
    ends.agent.send("w wait wc cq=%s ms=60000" % ends.cq)
    time.sleep(0.2)
    ends.agent.close()
    gone(guest)
    a = connect(guest, port)
    assert a("objects")["n"] == "0"
    a("quit")


def case_agent_one_client(lab, wire, guest, port):
    """One at a time; without the token nothing is answered."""
    a = connect(guest, port)
    other = Agent(port, prove=False)
    assert other.greeting == "rdmagen-agent busy", other.greeting
    a("quit")
    a.close()
    time.sleep(0.3)
    stranger = Agent(port, prove=False)
    assert re.match(r"rdmagen-agent 1 nonce=[0-9a-f]{64}$", stranger.greeting), stranger.greeting
    assert stranger.refused("auth", hmac="00" * 32) == "EACCES"
    try:
        stranger("objects")
    except (Failure, OSError):
        pass
    else:
        raise Failure("a stranger is served")


def case_agent_ends(lab, wire, guest, port):
    """The agent's end is the end of its client."""
    guest.tidy()
    gone(guest)
    job = start(guest)
    ends = Ends(guest, port)
    assert resources(guest)
    job.kill("TERM")
    gone(guest)
    assert job.wait()[0] == 0, "an orderly end"
    ends.agent.close()
