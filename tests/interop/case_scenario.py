"""rdmagen play against ibv_rc_pingpong: scenarios with a live peer. A lost packet in the middle, a wrong PSN, a wrong ICRC, a receive that
is missing; and an expectation that is not met."""
import os

from case_pingpong import guests  # noqa: F401  (one guest, whose TCP port 18515 is forwarded)
from case_rdmagen import Rdmagen

HERE = os.path.dirname(os.path.abspath(__file__))


class Play(Rdmagen):
    """What is broken on purpose is the scenario's to expect, not the judge's."""
    def judge(self):
        pass


def play(lab, guest, port, index, name, text=None, status=0):
    """The scenario of that name, or of a text, with a new peer. What rdmagen says, and the peer's exit status and output."""
    path = os.path.join(HERE, "..", "scenarios", "live", name + ".rdma")
    if text:
        path = lab.path(name + ".rdma")
        with open(path, "w") as f:
            f.write(text)
    peer = guest.start("ibv_rc_pingpong -g %d -n 1" % index["4"])
    guest.listening("tcp:18515")
    us = Play(lab, guest, "play_" + name, "play", guest.ip, path, "--exchange", "pingpong", "--tcp", "127.0.0.1", "-p", str(port),
              "--mtu", "1024", "-v")
    out = us.wait(status)
    if status:
        peer.kill()
        return us, out
    got, seen = peer.wait()
    assert got == 0 and "1 iters in" in seen, "%s\n%s" % (seen, out)
    assert "all as expected (times by the kernel" in out, out
    return us, out


def case_scenario_lost_middle(lab, wire, guest, port, index):
    lab.expect(out_of_seq_request=1)
    us, _ = play(lab, guest, port, index, "drop_middle")
    assert us.fields("infiniband.bth.opcode").count(("1",)) >= 2, "the Middle was lost and sent again: " + us.decoded()


def case_scenario_wrong_psn(lab, wire, guest, port, index):
    lab.expect(out_of_seq_request=1)
    play(lab, guest, port, index, "wrong_psn")


def case_scenario_wrong_icrc(lab, wire, guest, port, index):
    us, _ = play(lab, guest, port, index, "bad_icrc")
    assert us.packets().count('"rdma.icrc.status":"bad"') == 1, us.decoded()


def case_scenario_receive_is_missing(lab, wire, guest, port, index):
    lab.expect(rcvd_rnr_err=range(1, 10))
    play(lab, guest, port, index, "rnr")


def case_scenario_not_met(lab, wire, guest, port, index):
    text = "qp 1 rc\nmem a.src 100\nmem a.dst 4096\na post recv 1 dst\na post send 1 src\nb > a until ACK psn=0 msn=7\n"
    _, out = play(lab, guest, port, index, "not_met", text.replace("until ", ""), 1)
    assert ":6: expected  b > a ACK psn=0 msn=7" in out and "differs   msn=7" in out and "times are those of the kernel" in out, out


def case_scenario_refused(lab, wire, guest, port, index):
    _, out = play(lab, guest, port, index, "refused", "qp 1 rc\nmem a.src 100\na post send 1 src\nb wc 1 SUCCESS RECV\n", 2)
    assert ":4:1: host b is a live peer" in out, out
