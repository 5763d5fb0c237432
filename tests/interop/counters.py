"""What the guests count (`rdma statistic`) in a case, compared with what the captures of that case show: packets sent and received exactly,
but for those that the wire took away, doubled or made up; NAKs and retransmissions as far as they were to be seen. Errors are zero, and so
are sequence and RNR NAKs, where the case does not say that it means to cause them: `lab.expect(rcvd_rnr_err=range(1, 400))`."""
import collections
import os
import subprocess
import time

from lab import Failure

RDMATRACE = os.path.abspath(os.path.join(os.environ.get("BUILD", "build"), "rdmatrace"))
FIELDS = ("frame.interface_id", "eth.src", "eth.dst", "infiniband.bth.opcode", "infiniband.aeth.syndrome", "rdma.retransmission")
RESPONSES, ACK, SEQUENCE_NAK, CNP = range(0x0d, 0x13), 0x11, 0x60, 0x81
LATE = 16  # frames that were under way when one side ended: they wait in a socket that closes, or find no queue pair any more
ZERO = ("retry_exceeded_err", "retry_rnr_exceeded_err", "send_err", "link_downed", "out_of_seq_request", "rcvd_seq_err", "send_rnr_err", "rcvd_rnr_err")
# With a peer that has died: the guest goes on, and at last finds no way to it any more, which it does not count.
SILENCE = {"sent_pkts": range(0, 10**6), "completer_retry_err": range(0, 10**6)}
EXACT = ("out_of_seq_request", "send_rnr_err", "rcvd_rnr_err")  # follow from the capture also where the case names a range

# A capture in which all frames of a guest are to be seen: at this interface, or (None) at any.
Tape = collections.namedtuple("Tape", "guest path interface")


class Seen:
    """What a guest sent and was sent."""
    def __init__(self):
        self.sent = self.received = 0
        # Of these: sequence NAKs and RNR NAKs, requests sent again; by the guest, and to it.
        self.seq_out = self.seq_in = self.rnr_out = self.rnr_in = self.again_out = self.again_in = 0
        self.lost_out = self.lost_in = 0  # taken away by the wire behind the guest, and before it; negative: added

    def add(self, tape):
        r = subprocess.run([RDMATRACE, "decode", "-T", "fields", *[x for n in FIELDS for x in ("-e", n)], "-Y", "infiniband.bth and not icmp and not icmpv6",
                            tape.path], capture_output=True, text=True)
        if r.returncode:
            raise Failure(r.stderr)
        for line in r.stdout.splitlines():
            interface, src, dst, opcode, syndrome, again = line.split("\t")
            out = src == tape.guest.mac
            if (out or dst == tape.guest.mac) and tape.interface in (None, int(interface or 0)):
                self.frame(out, int(opcode), int(syndrome, 0) if syndrome else 0, again == "1")

    def frame(self, out, opcode, syndrome, again):
        seq, rnr = opcode == ACK and syndrome == SEQUENCE_NAK, opcode == ACK and syndrome >> 5 == 1
        again = again and opcode not in RESPONSES
        if out:
            self.sent, self.seq_out, self.rnr_out, self.again_out = self.sent + 1, self.seq_out + seq, self.rnr_out + rnr, self.again_out + again
        elif opcode != CNP:  # soft-RoCE drops them before it counts
            self.received, self.seq_in, self.rnr_in, self.again_in = self.received + 1, self.seq_in + seq, self.rnr_in + rnr, self.again_in + again

    def allowed(self):
        """What the counters may have gone up by."""
        sent, received = self.sent + self.lost_out, self.received - self.lost_in
        moved = abs(self.lost_out) + abs(self.lost_in)
        doubtful = LATE if moved or self.again_out else 0  # frames of the wire, and of the case before, that the capture has or has not
        return {
            "sent_pkts": range(max(0, sent - doubtful), sent + LATE + 1),
            "rcvd_pkts": range(max(0, received - LATE - self.again_in), received + doubtful + 1),
            "out_of_seq_request": range(self.seq_out, self.seq_out + max(0, self.lost_out) + 1),
            "rcvd_seq_err": range(0, self.seq_in + 1),
            "send_rnr_err": range(self.rnr_out, self.rnr_out + max(0, self.lost_out) + 1),
            "rcvd_rnr_err": range(max(0, self.rnr_in - LATE), self.rnr_in + 1),
            "duplicate_request": range(0, 2 * self.again_in + moved + LATE + 1),  # a READ of what is missing is not the same packet again
            "completer_retry_err": range(0, self.again_out + moved + LATE + 1),
        }


class Ledger:
    """Of one case."""
    def __init__(self, lab, guests):
        self.lab, self.before = lab, {g: g.counters() for g in guests}
        lab.tapes, lab.expected = [], {}
        for w in lab.wires:
            w.rdma = [[0, 0], [0, 0]]

    def close(self):
        """The case came to its end: complain, when what is still under way has come to rest."""
        for _ in range(10):
            found = [text for g in self.before for text in self.complaints(g)]
            if not found:
                break
            time.sleep(0.2)
        else:
            raise Failure("counters of `rdma statistic`\n" + "\n".join(found))

    def complaints(self, guest):
        after, tapes, seen = guest.counters(), [t for t in self.lab.tapes if t.guest is guest], Seen()
        for t in tapes:
            seen.add(t)
        for w in self.lab.wires:
            (seen.lost_out, seen.lost_in) = [came - went for came, went in w.rdma] if w.guest is guest else (seen.lost_out, seen.lost_in)
        allowed = seen.allowed() if tapes else {}
        for name in after:
            rise, want = after[name] - self.before[guest][name], self.lab.expected.get(name)
            if want is not None and rise != want and not (isinstance(want, range) and rise in want):
                yield "    %s: %s rose by %d, the case expects %s" % (guest.name, name, rise, want)
            elif want is None and name in ZERO and rise:
                yield "    %s: %s rose by %d, nobody expects it: %s" % (guest.name, name, rise, vars(seen))
            elif rise not in allowed.get(name, (rise,)) and (want is None or isinstance(want, range) and name in EXACT):
                yield "    %s: %s rose by %d, the capture allows %s: %s" % (guest.name, name, rise, allowed[name], vars(seen))
