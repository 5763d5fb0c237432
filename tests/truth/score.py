"""What an explanation says against what is true: the account state by state, and each incident."""
import os
import re
import struct

import captures

COSTS = ("loss_nak", "loss_retransmission", "loss_resend", "ack_timeout", "rnr", "credit", "read_depth", "peer_slow", "paused", "throttled",
         "given_up", "peer_dead")
INCAST_HOSTS = 4  # that send to one
COMPARED = 5 * 10**8  # ns: clocks that were compared do not differ by more
HELD = 10 * 10**6  # ns: no queue of a network takes longer
NEAR = 16  # packets between one that was lost and the first that came in its place, at most
CNP = 0x81  # opcode
SLACK = 2000  # ns of lost time that are not counted: taps and clocks are no better
LOST = {"packet-loss", "lost-last-packet", "lost-ack", "lost-read-response", "bad-icrc", "reorder", "mtu-black-hole"}
DEAD = {"retry-exceeded", "silent-peer", "mtu-black-hole", "host-silent", "half-open"}
# What may be said of each true cause: a tap that sees a packet once does not know what stopped it behind the tap.
SAID = {
    "packet-loss": {"packet-loss", "bad-icrc", "reorder", "mtu-black-hole", "lost-last-packet"},
    "lost-last-packet": LOST,
    "lost-ack": {"lost-ack", "lost-last-packet", "bad-icrc", "reorder", "lost-read-response", "mtu-black-hole"},
    "lost-read-response": {"lost-read-response", "lost-ack", "lost-last-packet", "bad-icrc", "reorder", "mtu-black-hole"},
    "retry-exceeded": DEAD | LOST, "silent-peer": DEAD, "half-open": DEAD, "host-silent": DEAD, "mtu-black-hole": {"mtu-black-hole"},
    "early-timeout": {"early-timeout", "peer-slow"},  # a peer that is slower than the ACK timer makes it expire early
    "rnr": {"rnr", "rnr-exceeded"}, "rnr-exceeded": {"rnr-exceeded"},
}
# Statements that cost no time, or are about something else than time: the lists of frames decide, or nothing does.
FATE = {"duplicate": "duplicated", "reorder": "reordered", "bad-icrc": "damaged"}
NOT_JUDGED = {"cannot-tell", "migreq-mismatch", "lost-rtu", "cm-timeout", "cm-reject", "ce-without-cnp", "cnp-without-slowdown", "missing-datagram"}


def lost(states):
    return sum(states.get(s, 0) for s in COSTS)


class Share:
    """Of the time that was really lost (ns): what is in its true state, not known, and elsewhere; and what is billed above it. `hidden`: lost
    time whose state the tap does not see; it is not part of `lost`."""

    def __init__(self):
        self.lost = self.right = self.unknown = self.wrong = self.over = self.hidden = 0

    def add(self, true, said, hidden=(), holds=False, undecided=None, clocks=1):
        """The states of one account, and those that an explanation gives it (None: it has none). What is `hidden` is not counted: the tap
        does not see what tells these states from others; it may say anything of that time. If the network `holds` frames back, a response that
        comes later than usual is late, by the definition of peer_slow, but no responder was slow; and late, not a wait for the
        depth of READs, as that definition goes first (src/account/account.h). This last is for one tap: with both ends, the
        responder's tells that it was not slow. `undecided`: time in states
        that no tap tells from the work of a program that posts no more. A pause that the clock of another tap dates is as exact as
        clocks can be compared."""
        late = (said or {}).get("peer_slow", 0) - true.get("peer_slow", 0) if holds else 0
        shared = 0 if "read_depth" in hidden or clocks > 1 else max(0, min(late, true.get("read_depth", 0) - (said or {}).get("read_depth", 0)))
        spare = max(0, min(late - shared, true.get("response", 0) + true.get("transfer", 0))) + sum(true.get(s, 0) for s in hidden)
        for s, ns in (undecided or {}).items():
            spare += max(0, min((said or {}).get(s, 0), ns) - true.get(s, 0)) if s not in hidden else 0
        self.hidden += sum(true.get(s, 0) for s in hidden)
        true = {s: ns for s, ns in true.items() if s not in hidden}
        t, said = lost(true), said or {}
        right = sum(min(true.get(s, 0), said.get(s, 0)) for s in COSTS) + shared
        right += max(0, min(true.get("paused", 0) - said.get("paused", 0), SLACK, t - right)) if clocks > 1 else 0
        unknown = min(t - right, said.get("not_known", 0)) if said else t - right
        self.lost += t
        self.right += right
        self.unknown += unknown
        self.wrong += t - right - unknown
        self.over += max(0, lost(said) - t - spare)

    def is_over_billed(self, part):
        """Whether more than this part of all that was lost is billed above it."""
        return self.over > part * (self.lost + self.hidden) + SLACK

    def part(self, ns):
        return ns / self.lost if self.lost else 0.0


def row_of(rows, account):
    """The row of an explanation that is about a true account: that of the tap at its requester, if there are several. Without a response and
    without connection management no packet tells the QPN of the requester."""
    names = (account["requester"], account["requester"].split()[0])
    same = [r for r in rows if r["requester"] in names and r["responder"] == account["responder"]]
    same.sort(key=lambda r: captures.asked_at(account) + "." not in (r["tap"] or ""))
    return same[0] if same else None


def share(truth, explained, hidden=(), taps=None, holds=False, clocks=1):
    """Of the accounts whose requester is at one of the taps (None: all); of captures with so many clocks."""
    s = Share()
    for a in truth["account"]:
        if taps is None or captures.asked_at(a) in taps:
            r = row_of(explained["account"], a)
            s.add(a["states"], r and r["states"], hidden, holds, next((x["states"] for x in truth["undecided"] if x["requester"] == a["requester"]), None), clocks)
    return s


def overlaps(x, start, end, slack):
    return x["start_ns"] - slack <= end and start <= x["end_ns"] + slack


def bth_at(frame):
    """Where the BTH of a RoCEv2 frame is; None: it has none."""
    at = 14
    kind = struct.unpack_from(">H", frame, 12)[0]
    if kind == 0x8100:
        kind = struct.unpack_from(">H", frame, 16)[0]
        at = 18
    at += 28 if kind == 0x800 else 48
    return at if kind in (0x800, 0x86dd) and len(frame) >= at + 12 else None


def bth(frame):
    """PSN, opcode and IPv4 identification of a RoCEv2 frame; None: it is none."""
    at = bth_at(frame)
    if at is None:
        return None
    ident = struct.unpack_from(">H", frame, at - 24)[0] if struct.unpack_from(">H", frame, at - 30)[0] == 0x800 else None
    return struct.unpack_from(">I", frame, at + 8)[0] & 0xffffff, frame[at], ident


def overtook(lost, psn, at):
    """Whether a packet that was sent at `at` (ns) arrived before a held back one that should have come first: its receiver dropped it."""
    return "reordered" in lost["fates"] and 0 < (psn - lost["psn"]) % (1 << 24) < 1 << 23 and lost["sent_ns"] <= at <= (lost["arrived_ns"] or 0)


def is_that(lost, b):
    """Whether a captured frame with PSN, opcode and identification `b` is a frame that suffered. Damage changes one of them at most."""
    same = (lost["psn"] == b[0]) + (lost["opcode"] == b[1]) + (lost.get("ip_id") in (b[2], None))
    return same >= (2 if "damaged" in lost["fates"] else 3)


def frame_suffered(truth, frame, at=0):
    """Whether a captured frame (sent at `at`, ns) is one of those that the network lost, damaged or overtook, or that overtook another."""
    b = bth(frame)
    return b is None or any(is_that(f, b) or overtook(f, b[0], at) for f in truth["lost_frames"])


def missed_one_suffered(truth, incident, view, ends, start, end):
    """Whether a request that the incident says never passed the tap, by its PSN, is one of those that suffered at that time, or just before the
    frame that came instead. No frame of the capture is that packet; what is named lost beside it is an earlier copy, which was dropped behind a gap."""
    claim = re.match(r"PSN (\d+)[^:.]* never passed the tap", incident["text"] or "")
    held = HELD if view.holds else 0  # the frame that came instead may have waited for so long
    instead = [b[2] for n, frame in frames_of(incident, view) if n in incident["frames"].get("instead", []) and (b := bth(frame[2])) and b[2]]
    return bool(claim) and any(f["psn"] == int(claim.group(1)) and f["request"] and f["sender"] in ends and
                               (start - held <= f["sent_ns"] <= end or any(0 < i - f.get("ip_id", i) <= NEAR for i in instead)) for f in truth["lost_frames"])


def psns_suffered(truth, ends, start, end, answers=False):
    """The PSNs of what these requesters sent, or of the responses to it, that suffered at that time."""
    of = {a["connection"] for a in truth["account"] if a["requester"] in ends}
    return {f["psn"] for f in truth["lost_frames"] if start <= f["sent_ns"] <= end and
            (not f["request"] and f["connection"] in of if answers else f["request"] and f["sender"] in ends)}


def answer_suffered(truth, incident, ends, start, end):
    """Whether the response to a READ or atomic that the incident says was lost, by its PSN, is one of those that suffered at that time: the truth has
    one incident for a loss and for what is lost while it is repaired."""
    claim = re.match(r"The response (?:to the \w+ )?with PSN (\d+) .*(?: was lost| never passed)", incident["text"] or "")
    return bool(claim) and int(claim.group(1)) in psns_suffered(truth, ends, start, end, answers=True)


EARLIER = 256  # PSNs: so far before a response is one for which it was dropped, at most


def one_may_have_suffered(truth, incident, view, ends, start, end):
    """Whether one of the frames that an incident calls lost may be so, which says no more than that it, what followed it or a response to it was
    lost, or, if it says so, what was before it: what suffered at that time has its PSN or one of those behind."""
    psns = psns_suffered(truth, ends, start, end) | psns_suffered(truth, ends, start, end, answers=True)
    before = EARLIER if "an earlier one was missing" in (incident["text"] or "") else 0
    named = [frame for n, frame in frames_of(incident, view) if n in incident["frames"].get("lost", [])]
    return any(frame_suffered(truth, data) or any((psn - bth(data)[0] + before) % (1 << 24) < 1 << 23 for psn in psns) for _, _, data in named)


def captures_by_name(view):
    """The captures of a view, by the names that an explanation gives their files: those without folders."""
    return {os.path.basename(p): c for p, c in zip(view.paths, view.captures)}


def frames_of(incident, view):
    """Its frames: number, and the frame as a capture has it: time (ns), length, bytes."""
    files, numbers = captures_by_name(view), incident.get("frame_list", [])
    for n, name in zip(numbers, incident.get("files", [os.path.basename(p) for p in view.paths] * len(numbers))):
        if name in files and n <= len(files[name].frames):
            yield n, files[name].frames[n - 1]


def first_seen(incident, view):
    """When the first of its frames passed: what it says of them may be older than the time that it bills."""
    return min([frame[0] for _, frame in frames_of(incident, view)] + [incident["start_ns"]])


def lost_one_suffered(truth, incident, view):
    """Whether a frame that the incident calls lost is one of those: the truth has one incident for a loss and for what is lost while it is
    repaired."""
    return any(n in incident["frames"].get("lost", []) and bth(frame[2]) and frame_suffered(truth, frame[2]) for n, frame in frames_of(incident, view))


def has_rnr_nak(incident, view):
    """Whether a frame that the incident calls a NAK is an RNR NAK: that a responder was not ready is what it says."""
    for n, (_, _, data) in frames_of(incident, view):
        at = bth_at(data) if n in incident["frames"].get("nak", []) else None
        if at is not None and len(data) > at + 12 and data[at] & 31 == 17 and data[at + 12] >> 5 == 1:
            return True
    return False


def cnps_lost(truth, incident):
    """How many CNPs were lost that the responder of an incident's requests sent for them."""
    sender = "%s 0x%06x" % (incident["destination"], incident["destination_qpn"])
    return sum(f["opcode"] == CNP and f["sender"] == sender and "dropped" in f["fates"] for f in truth["lost_frames"])


def has_pause_frames(view):
    """Whether a capture of the view has a MAC control frame (IEEE 802.3 annex 31D)."""
    return any(data[12:14] == b"\x88\x08" for c in view.captures for _, _, data in c.frames)


def class_of(frame):
    """The class of a frame with a BTH: the priority of its VLAN tag, else the upper bits of its DSCP."""
    if frame[12:14] == b"\x81\x00":
        return frame[14] >> 5
    return frame[15] >> 5 if frame[12:14] == b"\x08\x00" else (frame[14] & 15) >> 1


def lost_in_other_classes(truth, view):
    """Whether frames were dropped, none of which is of a class for which a capture has pause frames (IEEE 802.1Qbb)."""
    dropped = {(f["psn"], f["opcode"], f.get("ip_id")) for f in truth["lost_frames"] if "dropped" in f["fates"]}
    frames = [data for c in view.captures for _, _, data in c.frames]
    paused = {i for data in frames if data[12:16] == b"\x88\x08\x01\x01" for i in range(8) if data[17] >> i & 1}
    lost = {class_of(data) for data in frames if data[12:14] != b"\x88\x08" and bth(data) in dropped}
    return bool(lost and paused) and not lost & paused


def clock_of(truth, explained, incident, view):
    """The clock by which an explanation gives the times of an incident: that of the first tap, or that of its own tap where the clocks could not
    be compared: then those of fabrics are a second or more apart."""
    row = next((r for r in explained["account"] if r["connection"] == incident["connection"] and r["tap"] == incident.get("tap")), None)
    true = next((a for a in truth["account"] if row and a["requester"] == row["requester"] and a["responder"] == row["responder"]), None)
    if len(view.captures) == 2:
        first = next((r for r in explained["account"] if r["connection"] == incident["connection"] and (r["tap"] or "").startswith(os.path.basename(view.paths[0]) + ":")), row)
        known = not row or first["first_ns"] - COMPARED <= incident["start_ns"] <= first["last_ns"] + COMPARED
        return view.clock if known else captures.Clock(view.clock.offset + row["first_ns"] - first["first_ns"], view.clock.skew)
    if len(view.captures) < 2 or not true or abs(view.clock.true(incident["start_ns"]) - true["first_ns"]) < COMPARED:
        return view.clock
    return captures.Clock(row["first_ns"] - true["first_ns"])


def senders_to_one(truth):
    """The most hosts that had requests for the same host."""
    pairs = {(a["requester"].split()[0], a["responder"].split()[0]) for a in truth["account"]}
    return max(sum(1 for _, to in pairs if to == one) for _, one in pairs)


CAUSES_MAX = 3  # that a statement may leave open
# Words of which one is in its text for each cause that it leaves open.
WORDS = {"packet-loss": ("request", "lost"), "lost-last-packet": ("lost",), "lost-ack": ("response", "acknowledges", "RNR NAK"), "lost-read-response": ("response",),
         "silent-peer": ("could not respond", "stopped", "are gone"), "early-timeout": ("not sent it yet", "expired"), "duplicate": ("duplicated",),
         "peer-slow": ("busy",), "pause": ("pause",), "reorder": ("reordered",), "link-down": ("interrupted",), "mtu-black-hole": ("too long", "carries no")}


def is_said(incident):
    """Whether its causes are few, more than one only if it is possible, and all in its text."""
    causes, text = incident["causes"], incident["text"] or ""
    one = len(causes) == 1
    return causes[0] == incident["cause"] and (one or (incident["certainty"] == "possible" and len(set(causes)) == len(causes) <= CAUSES_MAX and
                                                       all(any(w in text for w in WORDS[c]) for c in causes)))


def judge(truth, explained, incident, view, slack):
    """True: the truth agrees; False: it refutes the incident, of which nothing that it leaves open is so; None: it is not judged. With the reason."""
    if not is_said(incident):
        return False, "it may be %s, which its text does not say: %s" % (incident["causes"], incident["text"])
    judged = [judge_cause(truth, explained, incident, cause, view, slack) for cause in incident["causes"]]
    return next((j for j in judged if j[0]), judged[0])


def judge_cause(truth, explained, incident, cause, view, slack):
    """The same, of one of its causes."""
    clock = clock_of(truth, explained, incident, view)
    rows = [r for r in explained["account"] if r["connection"] == incident["connection"]]
    ends = {r["requester"] for r in rows}
    near = [x for x in truth["incidents"] if (not ends or x["requester"] in ends or x["requester"].split()[0] in ends) and
            overlaps(x, clock.true(incident["start_ns"]), clock.true(incident["end_ns"]), slack)]
    if cause == "lost-cnp":
        gone = cnps_lost(truth, incident)
        # of a capture that lacks packets others may be missing as well
        return gone == incident["congestion"]["cnps_lost"] or (gone and not view.floor), "%d CNPs were lost" % gone
    if cause == "incast":
        return senders_to_one(truth) >= INCAST_HOSTS, "no host had requests of so many others"
    if cause in NOT_JUDGED or (cause == "peer-slow" and view.holds and len(view.paths) == 1):
        return None, ""
    if cause == "rnr" and has_rnr_nak(incident, view):
        return True, ""
    if cause == "wrong-class":  # the truth names the losses, not why their packets were not protected
        return lost_in_other_classes(truth, view), "packets of a class with pause frames were lost"
    if cause == "link-down":  # the truth names each loss of an outage by itself
        return view.down and any(x["cause"] in LOST | DEAD for x in near), "no path was down"
    if cause == "pause" and not incident["bill_ns"]:  # it says no more than that pause frames passed
        return has_pause_frames(view), "no pause frame was captured"
    if cause in FATE and not incident["bill_ns"]:
        return any(FATE[cause] in f["fates"] for f in truth["lost_frames"]), "no frame was " + FATE[cause]
    good = [x for x in near if x["cause"] in SAID.get(cause, {cause})]
    start, end = clock.true(first_seen(incident, view)) - slack, clock.true(incident["end_ns"]) + slack
    if cause in LOST and (missed_one_suffered(truth, incident, view, ends, start, end) or answer_suffered(truth, incident, ends, start, end)):
        return True, ""
    if not good and (near or not incident["bill_ns"]) and cause in LOST and lost_one_suffered(truth, incident, view):
        return True, ""
    if not good:
        return False, "true are " + (", ".join(sorted({x["cause"] for x in near})) or "none")
    unsure = incident["certainty"] == "possible" and incident.get("place") is None
    lost = incident.get("frames", {}).get("lost", []) if cause in LOST and len(view.captures) == 1 else []
    if unsure and lost:
        return one_may_have_suffered(truth, incident, view, ends, start, end), "none of the frames %s was lost, nor what followed, nor a response" % lost
    for n in lost if not unsure and cause == incident["cause"] else []:
        frames = view.captures[0].frames
        if n > len(frames) or not frame_suffered(truth, frames[n - 1][2], clock.true(frames[n - 1][0])):
            return False, "frame %d arrived" % n
    places = {x["place"] for x in good if x["place"]}
    if incident.get("place") in ("requester to middle", "middle to responder", "responder to middle", "middle to requester") and places:
        return incident["place"] in places, "it was lost " + ", ".join(places)
    return True, ""
