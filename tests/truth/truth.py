#!/usr/bin/env python3
"""`rdmatrace explain` held against the truth of simulated networks with trouble: how much of the time that each lost is in its true
state, and whether what is said of it is so.

    tests/truth/truth.py [--count N] [--fabrics N] [--seed N] [--build DIR] [--clean N] [--trouble NAME] [--number N] [--keep DIR] [--jobs N] [--strict]

--count   networks of two hosts (50)       --fabrics of many hosts (as many as that, of 10)
                                           --clean   of networks without trouble, which must give no incident (a fifth of those)
--seed    of all of them (1)               --number  only this network, with every account and incident, and its files kept
--build   where the programs are (build)   --keep    the folder for files ($OUT, else a temporary one)
--trouble only networks with this trouble                  --jobs    networks at a time (1)

--strict  the floors that are aimed at, for each trouble and network: captures.py has them

Exit status 1 if a floor is missed. Without --strict the floors are those that are held: see HELD."""
import argparse
import concurrent.futures
import functools
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import captures  # noqa: E402
import fabrics  # noqa: E402
import networks  # noqa: E402
import score  # noqa: E402

LIKELY = 0.95  # of the statements that are "likely", per cause
WRONG = 0.02   # of lost time at most in a wrong state, at taps with a floor
FILE_MAX = 64 << 20  # bytes: a network that writes more is played for half the time
TOO_BIG = -signal.SIGXFSZ  # how a program ends that writes more than RLIMIT_FSIZE
OVER = 0.01    # of lost time that may be billed above it
RUN_MAX = 600  # seconds of a program, until the test ends
FABRICS = 10 ** 7  # from this number on networks are fabrics


# What is held today, over all networks of a view: the mean share of lost time in its true state at least, and at most: time billed above
# what was lost, and of the statements that are certain those that the truth refutes.
HELD = {"both ends": (0.99, 0.002, 0), "requester": (0.99, 0.002, 0)}
# The same views, of networks with one trouble: mean and 5th percentile of that share. Other troubles differ more from seed to seed.
HELD_OF = {"black_hole": (0.99, 0.98), "burst": (0.99, 0.99), "cnp": (0.99, 0.98), "corrupt": (0.99, 0.98), "credit": (0.99, 0.99), "dead": (0.99, 0.99),
           "depth": (0.99, 0.98), "every": (0.99, 0.98), "loss": (0.99, 0.99), "migrate": (0.99, 0.98), "pause": (0.99, 0.98), "rate": (0.99, 0.98),
           "reorder": (0.99, 0.98), "rnr": (0.99, 0.99), "several": (0.98, 0.97), "slow": (0.99, 0.98)}
# Likewise, of fabrics with one trouble.
HELD_OF |= {"classes": (0.98, 0.98), "dcqcn": (0.98, 0.97), "leafspine": (0.99, 0.98), "incast": (0.99, 0.98), "link_down": (0.99, 0.98), "link_loss": (0.99, 0.98), "pauses": (0.99, 0.98),
            "reads": (0.99, 0.98), "spray": (0.99, 0.98), "storm": (0.98, 0.95)}
# Of statements that are likely, by cause: how many are right. Other causes are named more seldom, or more often wrong.
HELD_LIKELY = {"credit-wait": 0.9, "lost-ack": 0.9, "reorder": 0.9, "mtu-black-hole": 0.9, "lost-read-response": 0.95, "packet-loss": 0.95,
               "read-depth": 0.95, "throttled": 0.95, "silent-peer": 0.95, "retry-exceeded": 0.95,
               "wrong-class": 0.95}
HELD_POSSIBLE = 0.98  # of statements that are possible: one of the causes that they leave open is the true one
# Networks of other seeds, each held by itself: seed and number. 98% of the lost time is in its true state, 2% at most are billed above it, and
# no statement that is certain is refuted.
ALSO = (
    (2, 92),   # RNR NAKs and sequence NAKs follow each other, and NAKs are lost
    (4, 112),  # the first response is slow, while all that may be outstanding is; then another one
    (4, 266),  # one ACK answers all that came while it was late
    (4, 215),  # the responder pauses between the packets of the first READ response
    (5, 215),  # the late ACK answers a long message
    (7, 212),  # the late response is an RNR NAK
    (3, 19),   # responses that wait in a queue come in vain for longer than a round trip
    (8, 84),   # READ responses overtake each other, and what was dropped is asked for much later
    (8, 74),   # retry count 0
    (2, 190),  # CNPs to several queue pairs that share a port
    (6, 59),   # the spacing behind a CNP is seen first between two messages
    (8, 290),  # pauses within less than half a round trip
    (3, 29),   # packets pass between a pause frame at the other tap and the silence
    (8, 255),  # a requester gives up behind the last packet of its connection
    (4, 11),   # damaged responses are none
    (5, 124),  # the other path is down as well, and no retry is left
    (3, 97),   # a NAK asks for more than the response that is missing before it
    (7, 97),   # the first responses to a READ that is asked for again are lost once more
    (5, 62),   # slow responses among those that follow each other closely
    (8, 48),   # the credits of the first response
    (7, 145),  # the MSN of the first response counts messages behind it
    (3, 261),  # a READ response is missing, and its requester goes back later
    (2, 65),   # responses without a READ of their own come while a READ is sent again
    (2, 166),  # what was sent again in vain ends with the first response that its requester accepts
    (3, 38),   # a responder is slow when its requester goes back for a NAK
    (1, 191),  # connections with no retry left, beside others that go on
    (3, 294),  # an ACK proves delivered what its requester, who misses a READ response, still sends again
    (7, 279),  # the first responses are slow, but for the REP
    (2, 177),  # no more messages under way than the program posts
    (2, 90),   # READ responses that are dropped bring no credits
    (5, 236),  # responses were under way when their requester went back
    (8, 5),    # a NAK comes while its packet is being sent again already
    (5, 139),  # a NAK comes sooner than a round trip after its packet was sent again: it reports the copy before
    (2, 295),  # the same, and packets overtake each other
    (9, 91),   # between paced packets, responses let the requester start a message
    (7, 122),  # RNR waits between paced packets
    (7, 250),  # an RNR NAK overtakes the response to an earlier READ: its requester drops it
    (1, 134),  # an RNR NAK comes while what it is for is still to be retransmitted
    (7, 69),   # more than two copies of a packet, one of which the NAK reports
    (1, 166),  # the same, through a queue
    (4, 71),   # a NAK ends the retransmission for the one before
    (3, 17),   # credits came while the port was busy
    (7, 283),  # a response lets the requester go on while its port is busy
    (10, 71),  # a NAK comes 10 ms late, and nothing was sent meanwhile
    (12, 104), # NAKs come late through a full queue, while new requests are sent
    (9, 187),  # the turns of other queue pairs hide how far CNPs space the packets of one
    (12, 283), # a paced packet is due while the port is busy; responses come by chance at the same distance as paced packets
    (2, 123),  # a response takes the turn of its queue pair
    (15, 261), # over IPv6, READs are retransmitted within 1 ms: without identification they are like duplicates
    (8, 147),  # the same, and the first responses that come then were under way
    (6, 37),   # a READ response that was dropped early is not repeated
    (11, 11),  # an ACK that skips an atomic is dropped, and what it acknowledges is retransmitted
    (11, 101), # a READ response is lost among those repeated
    (1, 186),  # an ACK has the PSN of an atomic
    (14, 221), # after a pause the queue pair first sends its own responses
    (9, 174),  # the peer closes the connection when the ACK timer without a retry expires
    (15, 102), # of a go-back-N only the first packet and then a new one pass
    (3, 46),   # the same: the one packet behind the retransmitted one is lost, and then dropped ones are asked for again
    (2, 92),   # a NAK is lost on its way to the other tap
    (14, 154), # a request that was held back comes after an RNR wait, instead of a retransmission
    (14, 134), # a loss costs time only when the ACK timeout for an earlier one has expired
    (16, 148), # a response is held back, and the responder dies before it passes
    (18, 54),  # a requester dies in the middle of a retransmission
    (4, 284),  # the same
    (16, 193), # of a READ response that is repeated, cut copies at two taps
    (1, 652),  # over IPv6 a packet is sent three times, and the other tap sees one of the copies
    (1, 6540), # the same
    (1, 13352), # packets that came twice are lost, and sent again, as well
    (1, 12840), # behind an RNR wait a packet is overtaken, and what follows is sent again
    (20, FABRICS + 13),  # the same, five times
    (1, FABRICS + 17),   # before any response a link is down: the ACK timer runs while packets are sent, and is silent for less
    (19, FABRICS + 7),   # the same, of all connections
    (1, FABRICS + 31),   # CNPs slow requesters down before any response
    (30, FABRICS + 41),  # a response passes while its requester is paused, which CNPs name as well
    (30, FABRICS + 39),  # while READ responses are repeated one is lost, and the port that asks for it again is busy
    (31, FABRICS + 23),  # no packet of the class that is not paused is sent during a pause
    (30, FABRICS + 48),  # a host pauses its switch: the clocks of the taps tell when
    (1, 12110),          # the first RTU is lost, while its requester works
    (1, 11062),          # an ACK comes in place of the response to a READ that is repeated
    (79, FABRICS + 43),  # a class is paused of which requests passed before all pauses only
    (60, 1367),          # responses that are late pass the other tap before the retransmission
    (4, 60),             # an RNR NAK that is dropped comes before the last retry for a READ response
    (1, 122),            # an RNR NAK that is dropped, and two for one packet, of which the first counts
    (77, 173),           # responses go out when an RNR wait ends, and the next RNR NAK begins another one
)
# The same, of whose accounts nothing is held.
STATED = (
    (5, 4),  # responses to READs are late in a full queue, while the depth holds further READs back: 96.2% at both ends
    (30, FABRICS + 20),  # times of an incident that another tap, whose clock is not comparable, bills
    (50, FABRICS + 30),  # the same
    (1, 4464),  # an RNR NAK is overtaken by an ACK, and much later a packet is retransmitted on ACK timeout
    (1, 7494),  # an incident of the second of two taps whose clocks cannot be compared
    (1, 3736),  # an incident of a connection that carries nothing, and one of which another tap saw more
    (19, FABRICS + 3),  # between two reports about one lost packet come those about other connections
    (80, FABRICS + 5),  # packets that take turns on two paths overtake each other in each go-back-N
    (1, 1112),  # responses that came twice are lost, and asked for, as well
)
# The same, at all taps, of captures that lack frames as well.
STATED_ANYWHERE = (
    (1, 3378),   # what comes late, on ACK timeout, is the retransmission of a packet that came damaged
    (1, 12202),  # sliced READs that ask for the rest of others
    (1, 1896),   # the same, of a dead responder
    (1, 13925),  # a sliced retransmission is the first copy at the other tap
    (1, 5069),  # a sequence NAK behind an RNR NAK that was not captured
    (1, 1712),  # a copy that was held back since before an RNR wait comes first behind it
    (1, 9692),  # an RNR NAK that is over when its requester goes back for another reason
    (1, 15368),  # a packet that passed before the capture began has an RNR NAK and a sequence NAK
    (1, 19518),  # sliced READs, one of which is retransmitted for a NAK, and again on ACK timeout
    (1, 13912),  # the MSN of an atomic's response counts a later request that was executed meanwhile
)
# Of these, at taps with a floor, no statement that is likely is refuted either.
STATED_LIKELY = (
    (2, 332),  # of three copies of an atomic, the first one is held back until the others have passed
    (4, 4),    # READ responses that came before an earlier one are requested again
    (4, 65),   # a READ response is lost behind the tap, and its READ arrived
)
# The same at all taps.
STATED_LIKELY_ANYWHERE = (
    (77, 212),  # an atomic is requested again before the response to the copy before can have come
    (901, 115), # a NAK is dropped as a READ response is missing, and all copies of what it acknowledges are lost then
)
# The same of those that are possible, at taps with a floor.
STATED_POSSIBLE = (
    (1, 122),  # an atomic is requested again, with others, behind one whose response is missing, and then once more
    (1, 5),    # a request to an atomic, or the response to it, is lost while others are sent again
    (1, 60),   # an MTU black hole, while connection management is answered
    (1, 63),   # over IPv6 what is retransmitted at once looks like a duplicate
    (1, 76),   # over IPv6 ACKs are alike, and some of them are held back until the retransmission, others lost
    (1, 125),  # responses wait behind a pause, of which no frame was captured
    (1, 144),  # the responder dies in the middle of a READ response
    (1, 195),  # a requester goes back for an earlier response, and it looks like an ACK timeout
    (1, 227),  # a response is lost twice, and then there are two to three copies
)
# Accounts that are held at the requester alone as well.
AT_REQUESTER = (
    (5, FABRICS + 1),  # behind a pause queue pairs that CNPs have slowed down take turns
)
# A tap cannot tell a requester that the depth of READs holds back from one that has no more to send.
CLEAN_MAY = {"read-depth"}


class View:
    """What an explanation sees: the captures of some taps, changed; `clock`: of the first one."""

    def __init__(self, spec, files, rng, network=None):
        self.holds = network is not None and network.holds
        # A burst of losses is an interruption of some frames.
        self.down = network is not None and any(w in a for a in network.args for w in ("down=", "burst="))
        self.name, taps, change, self.floor = spec
        self.clock = captures.Clock()
        self.captures = []
        self.asked_at = taps if self.name == "requester" else None
        for tap in taps:
            c = files[tap].copy()
            change(c, rng)
            clock = captures.Clock() if tap == taps[0] and len(taps) > 1 else captures.drifting(rng, network.offsets)
            captures.set_clock(c, clock)
            self.clock = self.clock if self.captures else clock
            self.captures.append(c)
        for c, tap in zip(self.captures, taps):
            c.write(os.path.join(os.path.dirname(c.path), "view-%s.pcap" % tap))
        self.paths = [c.path for c in self.captures]
        # Where the other side sends nothing at all, a capture of one direction alone looks the same.
        self.heard = network.is_heard(self) if network else True


def too_long(*_):
    raise TimeoutError("a program takes longer than %d s" % RUN_MAX)


def run(*args, allowed=(0, 1)):
    signal.signal(signal.SIGALRM, too_long)  # it ends the program, too
    signal.alarm(RUN_MAX)  # a timeout of subprocess.run() would poll
    r = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    signal.alarm(0)
    if r.returncode not in allowed:
        sys.exit("%s: exit status %d: %s" % (" ".join(args), r.returncode, r.stderr.decode()))
    return r


def explain(args, *paths):
    return json.loads(run(args.build + "/rdmatrace", "explain", "-T", "json", *paths).stdout)


def simulate(build, network, folder):
    """Play it: the captures of its taps, and the truth."""
    files = {tap: os.path.join(folder, tap + ".pcap") for tap in network.taps}
    truth, words = os.path.join(folder, "truth.json"), network.words(folder)
    written = ["--truth", truth, *[a for tap in network.taps for a in ("-w", tap + ":" + files[tap])]]
    while run(build + "/rdmagen", "sim", *words, *written, allowed=(0, 1, TOO_BIG)).returncode == TOO_BIG:
        words = network.shorten()
    return {tap: captures.Capture(files[tap]) for tap in network.taps}, json.load(open(truth, encoding="utf-8"))


class Results:
    """All figures: shares by view and trouble; statements by view, cause and certainty."""

    def __init__(self):
        self.shares, self.said, self.clean, self.refuted, self.worst = {}, {}, [], [], []
        self.no_incidents = False

    def add(self, other):
        for key, shares in other.shares.items():
            self.shares.setdefault(key, []).extend(shares)
        for key, n in other.said.items():
            self.said[key] = [a + b for a, b in zip(self.said.get(key, (0, 0, 0)), n)]
        self.clean += other.clean
        self.refuted += other.refuted
        self.worst += other.worst
        self.no_incidents |= other.no_incidents

    def take(self, network, view, truth, explained):
        hidden = network.hidden_from(view, truth) if view.heard else score.COSTS
        s = score.share(truth, explained, hidden, view.asked_at, view.holds, len(view.paths))
        self.shares.setdefault((view.name, network.trouble), []).append(s)
        if view.asked_at == ("requester",):  # what the other side asks for is seen from its responder
            other = score.share(truth, explained, hidden, ("responder",), view.holds)
            self.shares.setdefault(("responder", network.trouble), []).append(other)
        if view.floor and s.lost > score.SLACK and (s.part(s.right) < view.floor or s.part(s.over) > OVER):
            self.worst.append((s.part(s.right), s.part(s.over), network.number, view.name, network.trouble))
        if "incidents" not in explained:
            self.no_incidents = True
        for x in explained.get("incidents", []):
            good, why = score.judge(truth, explained, x, view, slack=network.delay * 4000 + 100000)
            n = self.said.setdefault((view.name, x["cause"], x["certainty"]), [0, 0, 0])
            n[0 if good else 2 if good is None else 1] += 1
            if good is False and x["certainty"] == "certain":
                self.refuted.append("network %d, %s, %s: incident %d is %s at %s: %s" % (network.number, view.name, network.trouble, x["number"],
                                                                                         x["cause"], x.get("place"), why))

    def take_clean(self, network, explained):
        billed = sum(score.lost(a["states"]) for a in explained["account"])
        if {x["cause"] for x in explained.get("incidents", [])} - CLEAN_MAY or (billed and not explained.get("incidents")):
            self.clean.append("network %d without trouble: %d incidents, %d ns lost: %s" % (
                network.number, len(explained.get("incidents", [])), billed, sorted({x["cause"] for x in explained.get("incidents", [])})))


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p * len(values)))]


def table(results):
    """Print the shares; what misses its floor."""
    missed = []
    floors = {v[0]: v[3] for v in captures.VIEWS}
    print("%-22s %-12s %8s %12s %8s %8s %10s %8s %10s" % ("tap", "trouble", "networks", "lost ms", "true", "5th pct", "not known", "wrong", "over-billed"))
    for view, trouble in sorted(results.shares, key=lambda k: ([v[0] for v in captures.VIEWS].index(k[0]), k[1])):
        shares = [s for s in results.shares[view, trouble] if s.lost > score.SLACK]
        over = sum(s.over for s in results.shares[view, trouble])
        if not shares:
            continue
        right = [s.part(s.right) for s in shares]
        wrong = [s.part(s.wrong) for s in shares]
        low, high = percentile(right, 0.05), percentile(wrong, 0.95)
        print("%-22s %-12s %8d %12.3f %7.2f%% %7.2f%% %9.2f%% %7.2f%% %9.2f%%" % (
            view, trouble, len(shares), sum(s.lost for s in shares) / 1e6, 100 * statistics.mean(right), 100 * low,
            100 * statistics.mean(s.part(s.unknown) for s in shares), 100 * statistics.mean(wrong), 100 * over / sum(s.lost for s in shares)))
        if floors[view] and (low < floors[view] or high > WRONG):
            missed.append("%s, %s: 5th percentile %.2f%% in the true state, 95th percentile %.2f%% in a wrong one" % (view, trouble, 100 * low, 100 * high))
        if floors[view] and any(s.is_over_billed(OVER) for s in results.shares[view, trouble]):
            missed.append("%s, %s: more is billed than was lost" % (view, trouble))
    return missed


def statements(results):
    """Print how the statements fare; what misses its floor."""
    missed = []
    print("\n%-22s %-20s %-9s %8s %8s %10s" % ("tap", "cause", "certainty", "right", "refuted", "not judged"))
    for (view, cause, certainty), (good, bad, not_judged) in sorted(results.said.items()):
        print("%-22s %-20s %-9s %8d %8d %10d" % (view, cause, certainty, good, bad, not_judged))
    total = {}
    for (_, cause, certainty), (good, bad, _) in results.said.items():
        n = total.setdefault((cause, certainty), [0, 0])
        n[0], n[1] = n[0] + good, n[1] + bad
    for (cause, certainty), (good, bad) in sorted(total.items()):
        if certainty == "certain" and bad:
            missed.append("%s, certain: %d of %d refuted" % (cause, bad, good + bad))
        if certainty == "likely" and good + bad and good < LIKELY * (good + bad):
            missed.append("%s, likely: right %d times of %d" % (cause, good, good + bad))
    return missed


def likely(results):
    """Print, by cause, how often a statement that is likely is right at taps with a floor; those that are more often wrong than LIKELY."""
    total = {}
    for (view, cause, certainty), (good, bad, _) in results.said.items():
        if view in HELD and certainty == "likely" and good + bad:
            n = total.setdefault(cause, [0, 0])
            n[0], n[1] = n[0] + good, n[1] + bad
    print("likely, and right: " + ", ".join("%s %d of %d%s" % (c, n[0], sum(n), "" if n[0] >= LIKELY * sum(n) else " (below %.0f%%)" % (100 * LIKELY))
                                            for c, n in sorted(total.items())))
    missed = []
    for cause, least in HELD_LIKELY.items():
        good, bad = total.get(cause, (0, 0))
        if good < least * (good + bad):
            missed.append("%s, likely: right %d times of %d, held are %.0f%%" % (cause, good, good + bad, 100 * least))
    return missed


def held(results):
    """What misses the floors that are held."""
    missed = likely(results)
    for view, (right, over, refuted) in HELD.items():
        shares = [s for (v, _), all_of in results.shares.items() if v == view for s in all_of]
        lossy = [s for s in shares if s.lost > score.SLACK]
        mean = statistics.mean(s.part(s.right) for s in lossy)
        above = sum(s.over for s in shares) / sum(s.lost for s in lossy)
        good, bad = (sum(n[i] for (v, _, c), n in results.said.items() if v == view and c == "certain") for i in (0, 1))
        print("%s: %.1f%% in the true state, %.2f%% billed above what was lost, %d of %d certain statements refuted" % (view, 100 * mean, 100 * above, bad, good + bad))
        if mean < right:
            missed.append("%s: %.1f%% of lost time in its true state, held are %.0f%%" % (view, 100 * mean, 100 * right))
        if above > over:
            missed.append("%s: %.2f%% are billed above what was lost, held are %.0f%%" % (view, 100 * above, 100 * over))
        open_good, open_bad = (sum(n[i] for (v, _, c), n in results.said.items() if v == view and c == "possible") for i in (0, 1))
        print("%s: of %d possible statements %d have the true cause among those that they leave open" % (view, open_good + open_bad, open_good))
        if open_good < HELD_POSSIBLE * (open_good + open_bad):
            missed.append("%s: %d of %d possible statements have the true cause among theirs, held are %.0f%%" % (view, open_good, open_good + open_bad, 100 * HELD_POSSIBLE))
        if refuted is not None and bad > refuted * (good + bad):
            missed.append("%s: %d of %d certain statements are refuted, held are %.0f%%" % (view, bad, good + bad, 100 * refuted))
    return missed + held_of_each(results)


def held_of_each(results):
    """Likewise, by trouble."""
    missed = []
    for view in HELD:
        for trouble, floors in HELD_OF.items():
            right = [s.part(s.right) for s in results.shares.get((view, trouble), []) if s.lost > score.SLACK]
            if right and (statistics.mean(right) < floors[0] or percentile(right, 0.05) < floors[1]):
                missed.append("%s, %s: %.1f%% in the true state, 5th percentile %.1f%%; held are %.0f%% and %.0f%%" % (
                    view, trouble, 100 * statistics.mean(right), 100 * percentile(right, 0.05), 100 * floors[0], 100 * floors[1]))
    return missed


def show(network, view, truth, explained):
    """All of one network, for people."""
    print("\n== %s: %s" % (view.name, " ".join(view.paths)))
    for a in truth["account"]:
        r = score.row_of(explained["account"], a)
        print("%s\n  true %s\n  said %s" % (a["requester"], a["states"], r and r["states"]))
    for x in explained.get("incidents", []):
        good, why = score.judge(truth, explained, x, view, slack=network.delay * 4000 + 100000)
        print("  %s %s %s at %s, %d ns from %d on, %s %s" % (x["number"], x["certainty"], x["cause"], x.get("place"), x["bill_ns"], x["start_ns"],
                                                          {True: "right", False: "REFUTED", None: "not judged"}[good], why))


def try_network(args, network, folder, results, everywhere=False):
    """`everywhere`: at all taps, not only at one by chance beside those with a floor."""
    files, truth = simulate(args.build, network, folder)
    views = list(network.views())
    if args.number is None and not everywhere and views[0][1] == ("requester", "responder"):
        views = views[:2] + ([network.rng.choice(views[2:])] if network.trouble != "clean" else [])
    for spec in views:
        view = View(spec, files, network.rng, network)
        explained = explain(args, *view.paths)
        if "account" not in explained:
            sys.exit("FAILED: `rdmatrace explain -T json` has no account: there is nothing to hold against the truth")
        if args.number is not None:
            show(network, view, truth, explained)
        if network.trouble == "clean":
            results.take_clean(network, explained)
        else:
            results.take(network, view, truth, explained)
    if args.number is not None:
        for x in truth["incidents"]:
            print("truth: %s" % x)


def held_alone(args, which, folder):
    """What is wrong with the account (if it is held) at both ends of one network, or at its requester, or with a statement at a tap; None: nothing."""
    network, results, account = draw(*which), Results(), which in ALSO
    try_network(args, network, folder, results, everywhere=which in STATED_ANYWHERE + STATED_LIKELY_ANYWHERE)
    if results.refuted:
        return results.refuted[0]
    held_in = [certainty for certainty, those in (("likely", STATED_LIKELY + STATED_LIKELY_ANYWHERE), ("possible", STATED_POSSIBLE)) if which in those]
    wrong = ["%s, %s, is refuted at %s" % (cause, certainty, view) for (view, cause, certainty), n in results.said.items()
             if (view in HELD or which in STATED_LIKELY_ANYWHERE) and certainty in held_in and n[1]]
    if wrong:
        return wrong[0]
    for view in ("both ends", "requester") if which in AT_REQUESTER else ("both ends",) if account else ():
        s = results.shares[(view, network.trouble)][0]
        if s.part(s.right) < 0.98 or s.part(s.over) > 0.02:
            return "%s: %.1f%% in the true state, %.1f%% billed above" % (view, 100 * s.part(s.right), 100 * s.part(s.over))
    return None


def parse():
    p = argparse.ArgumentParser(usage=__doc__, add_help=False)
    for name, kind, default in (("count", int, 50), ("fabrics", int, None), ("seed", int, 1), ("build", str, os.environ.get("BUILD", "build")), ("clean", int, None),
                                ("trouble", str, None), ("number", int, None), ("jobs", int, 1), ("keep", str, os.environ.get("OUT"))):
        p.add_argument("--" + name, type=kind, default=default)
    p.add_argument("--strict", action="store_true")
    return p.parse_args()


def draw(seed, number, trouble=None):
    """Network `number` of a seed."""
    return fabrics.draw(seed, number - FABRICS, trouble) if number >= FABRICS else networks.draw(seed, number, trouble)


def part(args, seed, numbers, trouble, folder):
    """The results of some networks; `folder`: None: a temporary one."""
    results = Results()
    with tempfile.TemporaryDirectory(dir=MEMORY) as temporary:
        for number in numbers:
            try_network(args, draw(seed, number, trouble), folder or temporary, results)
    return results


PART = 50  # networks that a process takes at a time
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # files there cost no writes to a disk


def all_of(args, seed, numbers, trouble, results):
    """Likewise, added to `results`, in several processes."""
    parts = [numbers[i:i + PART] for i in range(0, len(numbers), PART)]
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        for r in pool.map(functools.partial(part, args, seed, trouble=trouble, folder=args.keep if args.jobs == 1 else None), parts):
            results.add(r)


def main():
    args, results = parse(), Results()
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_MAX, FILE_MAX))
    if args.keep:
        os.makedirs(args.keep, exist_ok=True)
    if args.number is not None:
        part(args, args.seed, [args.number], args.trouble, args.keep)
        return 0
    if args.trouble not in fabrics.TROUBLES:
        all_of(args, args.seed, range(args.count), args.trouble, results)
    if args.trouble in (None, *fabrics.TROUBLES):
        count = args.count // 10 if args.fabrics is None else args.fabrics
        all_of(args, args.seed, range(FABRICS, FABRICS + count), args.trouble, results)
    with tempfile.TemporaryDirectory() as folder:
        also = () if args.trouble or not args.count else dict.fromkeys(ALSO + AT_REQUESTER + STATED + STATED_ANYWHERE + STATED_LIKELY + STATED_LIKELY_ANYWHERE + STATED_POSSIBLE)
        alone = [(*which, held_alone(args, which, folder)) for which in also]
    all_of(args, args.seed, range(1000000, 1000000 + (args.count // 5 if args.clean is None else args.clean)), "clean", results)
    missed = table(results) + statements(results) + results.refuted[:20]
    missed = missed if args.strict else held(results)
    if results.no_incidents:
        missed.append("`rdmatrace explain -T json` has no incidents: no statement was judged")
    missed += results.clean[:10] + ["network %d of seed %d: %s" % (number, seed, wrong) for seed, number, wrong in alone if wrong]
    for right, over, number, view, trouble in sorted(results.worst)[:10]:
        print("worst: network %d (%s), %s: %.2f%% in the true state, %.2f%% billed above" % (number, trouble, view, 100 * right, 100 * over))
    print("".join("FAILED: %s\n" % m for m in missed), end="")
    print("%d passed, %d failed, 0 skipped" % (len(alone) + len(results.shares) + len(results.said) - min(len(missed), len(results.shares)), len(missed)))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
