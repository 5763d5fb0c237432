"""rdmagen agent in a guest, on soft-RoCE: each kind of object; its queue pair against our own endpoint outside, by `rdmagen play`; what goes
with a client. Expected statuses are those of the verbs' manual pages and of the transport's rules (NAK code and completion)."""
import hashlib
import os
import re
import socket
import threading
import time
import zlib

from agent_client import Agent, initrd, start
from case_pingpong import free_port, gid_index
from case_rdmagen import OWN, RDMAGEN, Rdmagen, behind_wire
from lab import SLOW, Failure


def guests(lab):
    port = free_port()
    wire, guest = behind_wire(lab, forward=[(port, 18517)], ramdisk=initrd(lab, RDMAGEN))
    return wire, guest, port


def connect(guest, port):
    """A client of the agent, which is started if need be: a case that failed has ended it."""
    if guest.run("netstat -ltn | grep -q :18517")[0] != 0:
        start(guest)
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
    def __init__(self, guest, port, rights="local_write,remote_write,remote_read,remote_atomic", length=16384):
        self.agent = a = connect(guest, port)
        a("dev open")
        self.index = gid_index(guest)["4"]
        self.pd, self.cq = a("pd")["pd"], a("cq", n=64)["cq"]
        self.memory = a("mem", len=length)
        self.mem = self.memory["mem"]
        self.region = a("mr", pd=self.pd, mem=self.mem, access=rights)
        self.mr, self.rkey, self.addr = self.region["mr"], int(self.region["rkey"], 0), int(self.region["addr"], 0)
        self.made = a("qp", type="rc", pd=self.pd, cq=self.cq, max_inline=64, max_send_sge=2, max_recv_sge=2)
        self.qp, self.qpn = self.made["qp"], int(self.made["qpn"], 0)

    def join(self, qpn, psn, gid, own_psn=0x100):
        """From RESET to RTS, with the attributes that each step needs (ibv_modify_qp(3))."""
        a = self.agent
        a("qp modify", qp=self.qp, state="INIT", pkey_index=0, port=1, access="remote_write,remote_read,remote_atomic")
        a("qp modify", qp=self.qp, state="RTR", path_mtu=1024, dest_qpn=qpn, rq_psn=psn, max_dest_rd_atomic=4, min_rnr_timer=12, dgid=gid,
          sgid_index=self.index, port_num=1)
        a("qp modify", qp=self.qp, state="RTS", timeout=17, retry_cnt=7, rnr_retry=7, sq_psn=own_psn, max_rd_atomic=4)


def endpoint(lab, guest, ends, name, text, before=lambda: None, during=lambda: None):
    """Our endpoint plays the scenario `text` with the agent's queue pair: this end of the exchange of ibv_rc_pingpong is ours."""
    path, listener = lab.path(name + ".rdma"), socket.create_server(("127.0.0.1", 0))
    listener.settimeout(20 * SLOW)
    with open(path, "w") as f:
        f.write(text)
    us = Rdmagen(lab, guest, name, "play", guest.ip, path, "--exchange", "pingpong", "--tcp", "127.0.0.1", "-p", str(listener.getsockname()[1]),
                 "--mtu", "1024", "--rkey", hex(ends.rkey), "--va", hex(ends.addr), "-v")
    us.judge = lambda: None  # what is wrong on purpose is the scenario's to expect
    try:
        channel = listener.accept()[0]
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
