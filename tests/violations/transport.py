"""Violations of the transport: requests, responses, ACKs and NAKs. Each line is a violation with its clean twin, or one for each of several kinds of
packets; build.py has the language, and the letters of the settings in which a violation has to be found."""
from build import CM, EVERYWHERE, ON, case

MID = "".join(">so %d; <ack %d m=%d; " % (i, i, 7 + i) for i in range(-17, 1))  # mid-stream: so many answers prove who talks to whom
LOST = " at=100000"                        # after an ACK timeout
REQUESTER, NOT_REQUESTER, RESPONDER, COMPLETE, NOT_COMPLETE = "qQ", "ncrR", "rR", "cQR", "nqr"
ONLY = ("so", "soi", "soe", "wo", "woi")
LAST = ("sl", "sli", "sle", "wl", "wli")
BEFORE = {"sl": ">sf 1; >sm 2; ", "sli": ">sf 1; >sm 2; ", "sle": ">sf 1; >sm 2; ", "wl": ">wf 1 dl=576; >wm 2; ", "wli": ">wf 1 dl=576; >wm 2; "}

# what an operation carries besides its payload, and two values of it
CARRIED = [("soi", "imm", "{1|2}"), ("woi", "imm", "{1|2}"), ("soe", "ie", "{1|2}"), ("wo", "va", "{0x8000|0x9000}"), ("wo", "rk", "{7|8}"),
           ("faa", "add", "{1|2}"), ("faa", "va", "{8|16}"), ("faa", "rk", "{7|8}"), ("cas", "add", "{1|2}"), ("cas", "cmp", "{1|2}")]


def answer(kind, psn, m):
    return "<%s %d m=%d" % ({"faa": "aack", "cas": "aack", "rd": "ro", "aw": "ro n=0"}.get(kind, "ack"), psn, m)


def acked(first, last, m):
    """New SENDs, each of which is acknowledged; m messages are complete with the first one."""
    return "".join(">so %d; <ack %d m=%d; " % (i, i, m + i - first) for i in range(first, last + 1))


def answered_again(first, last, m, wait=""):
    """SENDs that are retransmitted, each of which is acknowledged once more; m messages are complete."""
    return "".join(">so %d%s; <ack %d m=%d; " % (i, wait * (i == first), i, m) for i in range(first, last + 1))


CASES = []
CASES += [case("%s that nobody asked for, before a %s" % (ghost, use), "RDA-05", MID + "!{<%s 1 m=7|}; >%s 1; <ack 1 m=8; >so 2; <ack 2 m=9" % (ghost, use))
          for ghost in ("ro", "aack") for use in ONLY]
CASES += [case("%s that nobody asked for, before the message of its PSN" % ghost, "RDA-05",
               start + "!{<%s 2 m=%d|}; >%sf 1 dl=576; >%sm 2; >%sl 3; <ack 3 m=%d" % (ghost, m, k, k, k, m + 1))
          for ghost in ("rf", "rm", "rl", "ro", "aack") for k in "sw" for start, m in ((MID, 7), (ON, 1))]
CASES += [case("%s that answers a %s" % (ghost, use), "RDA-05", MID + ">%s 1; !{<%s 1 m=8|}; <ack 1 m=8" % (use, ghost)) for ghost in ("ro", "aack") for use in ("so", "wo")]
CASES += [case("%s far ahead" % ghost, "RDA-05", ON + "!{<%s 900 m=1|}; >so 1; <ack 1 m=2; >so 2; <ack 2 m=3" % ghost, COMPLETE, NOT_COMPLETE) for ghost in ("ro", "aack")]

CASES += [case("%s behind a fatal NAK, of a later PSN" % kind, "NAK-04", ON + ">so 1; >so 2; <nak2 1 m=1; {!<%s 2 m=%d|}" % (nak, m))
          for kind, nak, m in (("another fatal NAK", "nak2", 1), ("a fatal NAK with another MSN", "nak2", 2), ("an RNR NAK", "rnr1", 1), ("a sequence NAK", "nak0", 1))]

CASES += [case("MSN stuck, %s" % k, "ACK-06", MID + ">%s 1; %s={7|8}" % (k, "!" + answer(k, 1, 0)[:-2])) for k in ONLY + ("faa", "cas")]
CASES += [case("MSN jumps, %s" % k, "ACK-06", MID + ">%s 1; %s={12|8}" % (k, "!" + answer(k, 1, 0)[:-2]), COMPLETE, NOT_COMPLETE) for k in ONLY + ("faa", "cas")]  # requests that the capture lacks may count, too
CASES += [case("MSN counts packets, %s" % k, "ACK-06", MID + BEFORE[k] + ">%s 3; !<ack 3 m={10|8}" % k, COMPLETE, NOT_COMPLETE) for k in LAST]  # requests that the capture lacks may count, too
CASES += [case("MSN counts a message before its end, %s" % k, "ACK-06", MID + ">%sf 1 dl=576 f=a; !<ack 1 m={8|7}; >%sm 2; >%sl 3; <ack 3 m=8" % (k, k, k), COMPLETE, NOT_COMPLETE) for k in "sw"]  # requests that the capture lacks may count, too
CASES += [case("MSN goes back by %d" % (7 - m), "ACK-06", MID + ">so 1; !<ack 1 m={%d|8}" % m) for m in (6, 3, -200)]
CASES += [case("MSN stuck for many messages", "ACK-06", MID + "; ".join(">so %d; !<ack %d m={7|%d}" % (i, i, 7 + i) for i in range(1, 6)))]
CASES += [case("MSN stuck across the wrap", "ACK-06", "".join(">so %d; <ack %d m=%d; " % (i, i, i - 1) for i in range(-17, 1)) + ">so 1; !<ack 1 m={0xffffff|0}; ?>so 2; ?<ack 2 m={0|1}")]
CASES += [case("MSN stuck in the upper half of the PSNs, before all is sent again from far behind", "ACK-06",
               acked(0x783000 - 17, 0x783000, -10) + ">so 0x783001; !<ack 0x783001 m={7|8}; " + answered_again(0x780000 - 17, 0x780000, 8, LOST))]
CASES += [case("MSN stuck behind what was sent before the capture", "ACK-06", ">so -18; <ack 0 m=8; " + answered_again(-17, 0, 8) + ">so 1; <ack 1 m=9; >so 2; !<ack 2 m={9|10}", COMPLETE, NOT_COMPLETE)]
CASES += [case("MSN stuck in a pipeline", "ACK-06", MID + ">so 1; >so 2; >so 3; >so 4; <ack 1 m=8; <ack 3 m=10; !<ack 4 m={10|11}")]
CASES += [case("coalesced ACK whose MSN counts ACKs", "ACK-06", MID + ">so 1; >so 2; >so 3; !<ack 3 m={8|10}")]
CASES += [case("MSN of a READ response %s, %s" % (what, kind), "ACK-07", MID + ">rd 1 dl=%d; " % size + text, "", EVERYWHERE)  # likewise, and queue pairs paired by PSN may be others
          for what, m in (("stuck", 7), ("jumps", 12)) for kind, size, text in (
              ("Only", 64, "!<ro 1 m={%d|8}" % m), # a First may have the MSN before the READ, which may count only when it is complete: so stuck it breaks the rule in the Last
              ("First", 576, "%s<rf 1 m={%d|8}; <rm 2; %s<rl 3 m={%d|8}" % (*(("?", m, "!") if m == 7 else ("!", m, "?")), m)), ("Last", 576, "<rf 1 m=8; <rm 2; !<rl 3 m={%d|8}" % m))]
CASES += [case("an ACK after a READ counts its responses", "ACK-06", MID + ">rd 1 dl=576; <rf 1 m=8; <rm 2; <rl 3 m=8; >so 4; !<ack 4 m={11|9}", COMPLETE, NOT_COMPLETE)]  # requests that the capture lacks may count, too
CASES += [case("MSN of a NAK counts the message refused, code %d" % c, "ACK-06", MID + ">so 1; !<nak%d 1 m={8|7}" % c) for c in (1, 2, 3)]
CASES += [case("MSN of an RNR NAK counts the message refused", "ACK-06", MID + ">%s 1; !<rnr14 1 m={8|7}; >%s 1 at=5000; <ack 1 m=8" % (k, k)) for k in ("so", "woi")]
CASES += [case("MSN of a sequence NAK counts the message missing", "ACK-06", MID + ">so 1; >so 2; !<nak0 1 m={8|7}; >so 1; >so 2; <ack 2 m=9")]
CASES += [case("from the REQ on: MSN %s" % what, "ACK-06", ON + ">so 1; !<ack 1 m={%d|2}" % m, COMPLETE, NOT_COMPLETE) for what, m in (("stuck", 1), ("jumps", 9), ("goes back", 0))]

CASES += [case("%s sent again with another %s" % (kind, field), "SEQ-11", start + ">%s 1 %s=%s; !>%s 1 %s=2%s" % (kind, field, values, kind, field, LOST) + "; " + answer(kind, 1, m),
               "nqQ") for start, m in ((MID, 8),) for kind, field, values in [(k, f, "{1|2}") for k, f, _ in CARRIED if f not in ("va",)]]
CASES += [case("%s sent again to another address" % kind, "SEQ-11", MID + ">%s 1 va={0x8000|0x9000}; !>%s 1 va=0x9000%s; " % (kind, kind, LOST) + answer(kind, 1, 8), "nqQ")
          for kind in ("wo", "woi", "faa", "cas")]
CASES += [case("%s sent again with another %s, its ACK was lost" % (kind, field), "SEQ-11",
               start + ">%s 1 %s={1|2}; %s; !>%s 1 %s=2%s; %s" % (kind, field, answer(kind, 1, m), kind, field, LOST, answer(kind, 1, m)), *("rR", "") if start == ON else ("", "rR"))
          # from mid-stream on a PSN that was acknowledged may belong to a new connection
          for start, m in ((MID, 8), (ON, 2)) for kind, field in (("soi", "imm"), ("soe", "ie"), ("faa", "add"), ("cas", "cmp"))]
CASES += [case("%s sent again with another %s" % (kind, field), "SEQ-11",
               ON + BEFORE[kind] + ">%s 3 %s={1|2}; " % (kind, field) + BEFORE[kind].replace("1", "1" + LOST, 1) + "!>%s 3 %s=2; <ack 3 m=2" % (kind, field), "nqQ")
          for kind, field in (("sli", "imm"), ("sle", "ie"), ("wli", "imm"))]
CASES += [case("a PSN used again after its ACK for another operation, %s then %s" % (a, b), "SEQ-11",
               ON + ">%s 1; %s; !>{%s|%s} 1%s; ?{%s|%s}" % (a, answer(a, 1, 2), b, a, LOST, answer(b, 1, 2), answer(a, 1, 2)), "R", "r")  # else the messages of CM between may be missing
          for a, b in (("so", "wo"), ("wo", "so"), ("so", "soi"), ("soi", "soe"), ("wo", "rd"), ("faa", "cas"))]

CASES += [case("%s with syndrome 0x%02x" % (kind, s), "ACK-01", MID + (">rd 1 dl=576; " if kind in ("rf", "rl") else ">rd 1 dl=64; " if kind == "ro" else ">faa 1; ") +
               {"rf": "!<rf 1 m=8 s={%d|31}; <rm 2; <rl 3 m=8", "rl": "<rf 1 m=8; <rm 2; !<rl 3 m=8 s={%d|31}", "ro": "!<ro 1 m=8 s={%d|31}",
                "aack": "!<aack 1 m=8 s={%d|31}"}[kind] % s) for kind in ("rf", "rl", "ro", "aack") for s in (0x2e, 0x60, 0x62)]

CASES += [case("sequence NAK %d ahead of anything sent" % n, "NAK-01", MID + ">so 1; <ack 1 m=8; !{<nak0 %d m=8|}; >so 2; <ack 2 m=9" % n, "", EVERYWHERE) for n in (500, 100000)]  # a queue pair paired by PSN may be another one
CASES += [case("from the REQ on: sequence NAK %d ahead of anything sent" % n, "NAK-01", ON + ">so 1; <ack 1 m=2; !{<nak0 %d m=2|}; >so 2; <ack 2 m=3" % n, COMPLETE, NOT_COMPLETE)
          for n in (5, 40)]

CASES += [case("ATOMIC WRITE at an address of %d modulo 8" % n, "RDA-12", MID + "!>aw 1 va={%d|4096}; <ro 1 n=0 m=8" % (4096 + n)) for n in (1, 4)]
CASES += [case("%s by an R_Key that was invalidated" % k, "RDA-13", MID + ">soe 1 ie=77; <ack 1 m=8; !>%s 2 rk={77|78}; " % k + answer(k, 2, 9), COMPLETE, NOT_COMPLETE)
          for k in ("wo", "woi", "rd", "faa")]
CASES += [case("%s to QP 1" % k, "SVC-02", MID + "!>%s 1{ q=1|}; " % k + "{|%s}" % answer(k, 1, 8)) for k in ("soi", "rd")]  # with those below five: what belongs to no connection is listed five times
CASES += [case("ACK to QP 1", "SVC-02", MID + ">so 1; !{<ack 1 m=8 q=1|}; <ack 1 m=8")]
CASES += [case("UC %s to QP 1" % k, "SVC-02", "".join(">%s %d class=0x20 f=-; " % (k, i) for i in range(-17, 1)) + "!>%s 1 class=0x20 f=-{ q=1|}" % k)
          for k in ("so", "wo")]

# from mid-stream on nothing tells which end opened the connection, and so which one --tap requester means
CASES += [case("%s after NAK code %d" % (k, c), "NAK-08", start + ">so 1; <nak%d 1 m=%d; !{>%s 2%s|}" % (c, m, k, LOST), *(REQUESTER, NOT_REQUESTER) if start == ON else ("", EVERYWHERE))
          for c in (1, 2, 3) for k in ("so", "wo", "rd") for start, m in ((MID, 7), (ON, 1)) if c == 2 or k == "so"]
CASES += [case("%s of a PSN never sent" % k, "NAK-09", ON + ">so 1; <ack 1 m=2; !{<%s 11 m=2|}; >so 2; <ack 2 m=3" % k, COMPLETE, NOT_COMPLETE) for k in ("rnr14", "nak1", "nak2", "nak3")]
CASES += [case("%s of a PSN far beyond anything sent" % k, "NAK-09", MID + ">so 1; <ack 1 m=8; !{<%s 3000 m=8|}; >so 2; <ack 2 m=9" % k, "", EVERYWHERE) for k in ("rnr14", "nak2")]  # likewise
CASES += [case("%s of a PSN acknowledged before" % k, # this is RTX-09, which was there before, and needs a complete capture: else the PSN may be used anew
               "RTX-09", start + ">so 1; <ack 1 m=%d; >so 2; <ack 2 m=%d; !{<rnr14 %d m=%d|}; >so 3; <ack 3 m=%d" % (m, m + 1, psn, m + 1, m + 2), COMPLETE, NOT_COMPLETE)
          for start, m in ((MID, 8), (ON, 2)) for k, psn in (("RNR NAK", 2), ("RNR NAK", 1))]
CASES += [case("a gap that the responder does not answer, %s" % what, "NAK-10", start + "{|<ack 0 m=%d;} !>%s 2; {|<nak0 1 m=%d;} >so 3; >so 4 at=10000; >so 1%s; <ack 1 m=%d; >%s 2; >so 3; >so 4; <ack 4 m=%d"
               % (m, k, m, LOST, m + 1, k, m + 4), "R" if start == ON else "", "r" if start == ON else "rR") for what, k in (("SEND", "so"), ("WRITE", "wo")) for start, m in ((MID, 7), (ON, 1))]
CASES += [case("new %s while an RNR NAK is waited out" % k, "RTX-15", start + ">so 1; <rnr26 1 m=%d; !{>%s 2 at=20000|}; >so 1 at=90000; <ack 1 m=%d" % (m, k, m + 1), *(REQUESTER, NOT_REQUESTER) if start == ON else ("", EVERYWHERE))
          for k in ("so", "wo", "rd") for start, m in ((MID, 7), (ON, 1))]

CASES += [case("%s in a response, %s" % (what, kind), "SEQ-14", MID + text % ("{f=%s|}" % flag, )) for what, flag in (("SE", "s"), ("AckReq", "a")) for kind, text in (
    ("ACK", ">so 1; !<ack 1 m=8 %s"), ("RNR NAK", ">so 1; !<rnr14 1 m=7 %s; >so 1 at=5000; <ack 1 m=8"), ("NAK", ">so 1; !<nak2 1 m=7 %s"), ("READ response Only", ">rd 1 dl=64; !<ro 1 m=8 %s"),
    ("READ response Middle", ">rd 1 dl=576; <rf 1 m=8; !<rm 2 %s; <rl 3 m=8"), ("ATOMIC ACK", ">faa 1; !<aack 1 m=8 %s"))]
CASES += [case("address range of a %s wraps" % k, "RDA-14", MID + "!>%s 1 dl=%d va={0xffffffffffffffc0|0xffffffffffff0000}; " % (k, n) + rest)
          for k, n, rest in (("wo", 128, "<ack 1 m=8"), ("wf", 576, ">wm 2; >wl 3; <ack 3 m=8"), ("rd", 128, "<ro 1 n=128 m=8"), ("woi", 65, "<ack 1 m=8"))
          for rest, k in ((rest, k + " n=%d" % n if k in ("wo", "woi") else k),)]
CASES += [case("%s sent again with other payload" % k, "SEQ-13", MID + ">%s 1 fill={1|2}%s; !>%s 1 fill=2%s%s; " % (k, x, k, LOST, x) + rest, "nqQ")
          for k, x, rest in (("so", "", "<ack 1 m=8"), ("soi", "", "<ack 1 m=8"), ("wo", "", "<ack 1 m=8"), ("sf", " f=a", ">sl 2; <ack 2 m=8"), ("wf", " dl=320", ">wl 2; <ack 2 m=8"))]
CASES += [case("FETCH_ADDs that get the same value", "RDA-15", MID + ">faa 1 add=3; <aack 1 m=8 orig=5; >faa 2 add=3; !<aack 2 m=9 orig={5|8}")]

# rules that are older, at places that are not those of the captures of tests/judge.test
CASES += [case("%s without a First" % k, "SEQ-03", MID + ("{|>%sf 1 dl=%d;} " % (k[0], 576 if k[1] == "m" else 320)) + ("!>%s {1|2}; " % k) + ("{|>%sl 3; }" % k[0] if k[1] == "m" else "") +
               "{|<ack %d m=8}" % (3 if k[1] == "m" else 2)) for k in ("sm", "sl", "wm", "wl")]
CASES += [case("WRITE of other length than its RETH says", "SEQ-06", MID + "!>wo 1 dl={72|64}; {<nak1 1 m=7|<ack 1 m=8}")]
CASES += [case("an ACK of a PSN never sent", rule, ON + ">so 1; <ack 1 m=2; !{<ack 9 m=2|}; >so 2; <ack 2 m=3", must, may)
          for rule, must, may in (("ACK-02", "R", ""), ("ACK-03", "cQ", "nqr"))]  # ACK-02 is for the responder's tap only
CASES += [case("two sequence NAKs for one gap", "NAK-02", ON + ">so 2; <nak0 1 m=1; >so 3; !{<nak0 1 m=1 at=5000|}; >so 1 at=100; >so 2; >so 3; <ack 3 m=4", "R", "r")]
CASES += [case("an atomic at an address of 4 modulo 8, %s" % k, "RDA-08", MID + "!>%s 1 va={4|8}; {<nak1 1 m=7|<aack 1 m=8}" % k) for k in ("faa", "cas")]

CASES += [case("%s inside the PSNs of a READ that was answered" % k, "RDA-01", ON + ">rd 1 dl=576; <rf 1 m=2; <rm 2; <rl 3 m=2; {!>%s 2|>%s 4}; ?<ack {2|4} m=3" % (k, k))
          for k in ("so", "wo")]
CASES += [case("from mid-stream on: %s inside the PSNs of a READ that was answered, %d" % (k, n), "RDA-01",  # it may begin another connection of the queue pairs
               MID + ">rd 1 dl=576; <rf 1 m=8; <rm 2; <rl 3 m=8; {!>%s %d|>%s 4}; ?<ack {%d|4} m=9; >so {%d|5}; <ack {%d|5} m=10" % (k, n, k, n, 4 if n == 3 else n + 1, 4 if n == 3 else n + 1),
               "", EVERYWHERE) for k, n in (("so", 3), ("wo", 3))]
CASES += [case("from mid-stream on: %s inside the PSNs of a READ, before its responses show the path MTU" % k, "RDA-01",
               MID + ">rd 1 dl=576; {!>%s 2|>%s 4}; <rf 1 m=8; <rm 2; <rl 3 m=8; ?<ack {2|4} m=9" % (k, k)) for k in ("so", "wo")]
CASES += [case("from mid-stream on: %s inside the PSNs of a READ before it" % k, "RDA-01",
               MID + ">rd 1 dl=576; <rf 1 m=8; <rm 2; <rl 3 m=8; >rd 4 dl=576; {!>%s 5|>%s 7}; <rf 4 m=9; <rm 5; <rl 6 m=9; ?<ack {5|7} m=10" % (k, k)) for k in ("so", "wo")]
CASES += [case("%s behind an RNR NAK is completed although it was not sent again" % k, "NAK-11",
               start + ">%s 1; <rnr14 1 m=%d; {|>%s 1 at=5000;} !%s at=100; >so 2; <ack 2 m=%d" % (k, m, k, answer(k, 1, m + 1), m + 2), *("R", "ncqQr") if start == ON else ("", EVERYWHERE))
          for start, m in ((MID, 7), (ON, 1)) for k in ("so", "soi", "woi", "rd", "faa")]
CASES += [case("what follows an RNR NAK is completed, %s" % what, "NAK-11", ON + ">so 1; >%s 2; <rnr14 1 m=1; {|>so 1 at=5000; >%s 2;} !%s at=100; >so 3; <ack 3 m=4" % (k, k, answer(k, 2, 3)), "R", "ncqQr")
          for what, k in (("a SEND", "so"), ("a READ", "rd"))]
CASES += [case("a READ is answered by a plain ACK", "RDA-11", ON + ">rd 1; {!<ack 1 m=2|<ro 1 m=2}; >so 2; <ack 2 m=3", "R", "r")]
CASES += [case("an ACK of a PSN before the first one", "ACK-02", ON + ">so 1; <ack 1 m=2; !{<ack -%d m=2 at=2000|}; >so 2; <ack 2 m=3" % n, "R", "") for n in (4, 300)]
CASES += [case("a sequence NAK of a PSN before the first one", "NAK-01", ON + ">so 1; <ack 1 m=2; !{<nak0 -%d m=2|}; >so 2; <ack 2 m=3" % n, "R", "") for n in (4, 300)]
CASES += [case("a READ response of a PSN before the first one", "RDA-05", ON + ">so 1; <ack 1 m=2; !{<ro -%d m=2|}; >so 2; <ack 2 m=3" % n, COMPLETE, NOT_COMPLETE) for n in (4, 300)]
CASES += [case("a READ response before the first PSN of the only READ", "RDA-05", CM + ">rd 0 dl=576; {!<rf -1 m=1;|} <rf 0 m=1; <rm 1; <rl 2 m=1; >so 3; <ack 3 m=2", COMPLETE, NOT_COMPLETE)]
CASES += [case("%s before the first request" % kind, rule, CM + "{!<%s %d m=0;|} >so 0 at=500; <ack 0 m=1; >so 1; <ack 1 m=2" % (kind, psn), must, may)
          for kind, psn, rule, must, may in (("ro", -1, "RDA-05", COMPLETE, NOT_COMPLETE), ("ro", 0, "RDA-05", COMPLETE, NOT_COMPLETE), ("aack", 5, "RDA-05", COMPLETE, NOT_COMPLETE),
                                             ("ack", 0, "ACK-03", "cQ", "nqr"), ("ack", -1, "ACK-02", "R", ""), ("nak0", 0, "NAK-01", COMPLETE, NOT_COMPLETE), ("rnr14", 0, "NAK-09", COMPLETE, NOT_COMPLETE))]
CASES += [case("from mid-stream on: %s of a PSN before all requests" % kind, rule, MID + ">so 1; <ack 1 m=8; {!<%s -40 m=8|}; >so 2; <ack 2 m=9" % kind, "", EVERYWHERE)  # it may answer what came before the capture
          for kind, rule in (("ro", "RDA-05"), ("aack", "RDA-05"), ("ack", "ACK-02"), ("nak0", "NAK-01"))]
CASES += [case("a gap that is acknowledged and never filled, %s, %s" % (what, rule), rule, ON + text, must, "nqr") for rule, must in (("ACK-02", "R"), ("ACK-03", "cQ")) for what, text in (
    ("a message", ">so 1; <ack 1 m=2; {|>so 2;} ?>so 3; !<ack 3 m=4; >so 4; <ack 4 m=5"), ("the Middle of one", ">sf 1; {|>sm 2;} ?>sl 3; !<ack 3 m=2; >so 4; <ack 4 m=3"),
    ("by a later ACK", ">so 1; {|>so 2;} ?>so 3 f=-; >so 4; !<ack 4 m=5; >so 5; <ack 5 m=6"))]
CASES += [case("a READ within the depth is refused as an invalid request, although %s" % what, "RDA-07",
               ON.replace(">req", ">req resources=%d depth=%d" % (depth, depth)).replace("<rep", "<rep resources=%d depth=%d" % (depth, depth)) +
               ">rd 1; <ro 1 m=2; " + text, COMPLETE, NOT_COMPLETE)
          for what, depth, text in (("another was served", 1, ">rd 2; {!<nak1 2 m=2|<ro 2 m=3}"), ("four may be outstanding", 4, ">rd 2; >rd 3; >rd 4; {!<nak1 2 m=2|<ro 2 m=3; <ro 3 m=4; <ro 4 m=5}"),
                                    ("the PSN before it is that of a WRITE", 1, ">wo 2; <ack 2 m=3; >rd 3; {!<nak1 3 m=3|<ro 3 m=4}"))]
CASES += [case("a SEND without credit is sent beyond its first packet", "ACK-08",
               ON.replace("<rep", "<rep flow=1").replace("m=1", "m=1 s=1") + ">so 1; <ack 1 m=2 s=0; >sf 2 f=a; {!>sm 3|<ack 2 m=2 s=1 at=1000; >sm 3}; >sl 4; <ack 4 m=3 s=0", "Q", "ncqrR")]
# WRITEs, READs and atomics take no receive: each gives its place to the next message, as Linux' rdmavt counts (its LSN).
CASES += [case("a SEND ahead of its credits behind two of %s" % k, "ACK-08",
               ON.replace("<rep", "<rep flow=1").replace("m=1", "m=1 s=1") + ">so 1; <ack 1 m=2 s=1; >%s 2%s; >%s 3%s; >so 4 f=-; >so 5; %s"
               "{!>so 6|<ack 5 m=6 s=1 at=1000; >so 6}; <ack 6 m=7 s=1 at=1000" % (k, f, k, f, answers), "Q", "ncqrR")
          for k, f, answers in (("wo", " f=-", ""), ("rd", "", "<ro 2 m=3 s=1; <ro 3 m=4 s=1; "))]
CASES += [case("a sequence NAK is ignored", "RTX-01", ON + ">so 1; >so 2; <nak0 1 m=1; {|>so 1; >so 2;} >so 3 at=5000; {|<ack 3 m=4;} {!>so 4 at=2000000|>so 4 at=2000000; <ack 4 m=5}", "Q", "ncqrR")]
CASES += [case("%s is never answered, nor sent again" % k, "RTX-11", ON + ">%s 1; >so 2; {|%s; }?<ack 2 m=3; >so 3 at=5000; <ack 3 m=4; {!|}>so 4 at=2000000; <ack 4 m=5" % (k, answer(k, 1, 2)), "Q", "ncqrR")
          for k in ("rd", "faa")]
CASES += [case("a request of a PSN before the first one, %d" % n, "CM-06", ON + ">so 1; <ack 1 m=2; !{>so -%d|}; >so 2; <ack 2 m=3" % n, COMPLETE, NOT_COMPLETE) for n in (4, 300)]
CASES += [case("READs beyond the depth", "RDA-06", ON.replace(">req", ">req resources=1 depth=1").replace("<rep", "<rep resources=1 depth=1") +
               ">rd 1; {|<ro 1 m=2;} !>rd 2; {<ro 1 m=2 at=60;|} <ro 2 m=3", COMPLETE, NOT_COMPLETE)]

# Packets of somebody else. In the clean twins one try less; a request that is sent again the way of the others; a route that has changed for all.
SWEEPS = (("PSN after another, far ahead", lambda i: ">so %d f=- n=0 at=1; " % (3000000 + i), (EVERYWHERE, "")),
          ("PSN after another, far behind", lambda i: ">so %d f=- n=0 at=1; " % (-3000000 + i), (EVERYWHERE, "")),
          ("queue pair after another", lambda i: ">so 5 q=%d at=100; " % (0x700000 + i), (COMPLETE, NOT_COMPLETE)))
CASES += [case("one %s" % what, "SEC-02", ON + ">so 1; <ack 1 m=2; !" + "".join(one(i) for i in range(63)) + "{%s|}" % one(63).rstrip("; ") + "; >so 2 at=200000; <ack 2 m=3; >so 3; <ack 3 m=4",
               *where) for what, one, where in SWEEPS]
CASES += [case("one R_Key after another", "SEC-02", ON + "".join(">wo %d q=%d rk=%d; %s<nak2 %d q=%d m=0; " % (i, 0x700100 + i, 0x100 + i, "!" if i == 15 else "", i, 0x700200 + i) for i in range(15)) +
               "{>wo 15 q=7340303 rk=4000|>wo 15 q=7340303 rk=256}; !<nak2 15 q=7340559 m=0", EVERYWHERE)]
# One stale R_Key on queue pairs that are all open when the first of them is refused is no sweep.
CASES += [case("one address after another, each on a new connection", "SEC-02", ON +
               "{" + "".join(">wo %d q=%d va=%d; %s<nak2 %d q=%d m=0; " % (i, 0x700100 + i, 0x1000 * i, "!" if i == 15 else "", i, 0x700200 + i) for i in range(16)) + "|" +
               "".join(">wo %d q=%d va=%d; " % (i, 0x700100 + i, 0x1000 * i) for i in range(16)) + "".join("<nak2 %d q=%d m=0; " % (i, 0x700200 + i) for i in range(16)) + "} >so 1; <ack 1 m=2",
               EVERYWHERE)]
CASES += [case("%s of another sender is taken for that of the requester" % k, "SEC-03",
               start + "!>%s 1 {ttl=61 fill=1|fill=2}; {<ack 1 m=%d at=1;|} >%s 1 fill=2 at=20; <ack 1 m=%d" % (k, m, k, m), *(("", EVERYWHERE) if start == MID else (EVERYWHERE, )))
          for start, m in ((MID, 8), (ON, 2)) for k in ("so", "wo")]
CASES += [case("%s of another sender is taken for a %s of the requester" % (k, by), "SEC-03", ON + "!>%s 1 {ttl=61|}; {<ack 1 m=2 at=1;|} {>%s 1 at=20|>%s 1 at=20}; <ack 1 m=2" % (k, by, k), EVERYWHERE)
          for k, by in (("so", "wo"), ("wo", "so"))]
CASES += [case("%s of another sender, before that of the requester was acknowledged" % k, "SEC-03",
               ON + "!>%s 1 {ttl=61 fill=1|fill=2}; >%s 1 fill=2 at={20|100000}; <ack 1 m=2" % (k, k), "R", "ncqQr") for k in ("so", "wo")]
# The requester goes on without a credit for longer than a response takes: one finding.
CASES += [case("a message of four packets is sent behind the one that probes for credits", "ACK-08",
               ON.replace("<rep", "<rep flow=1").replace("m=1", "m=1 s=1") + ">so 1; <ack 1 m=2 s={0|8}; >so 2 f=-; !>sf 3; >sm 4; >sm 5; >sl 6; <ack 6 m=4 s=8 at=1000",
               "Q", "ncqrR")]
# Of several messages without a credit the first one is named.
CASES += [case("three SENDs are sent behind the one that probes for credits", "ACK-08",
               ON.replace("<rep", "<rep flow=1").replace("m=1", "m=1 s=1") + ">so 1; <ack 1 m=2 s={0|8}; >so 2 f=-; !>so 3 f=-; >so 4 f=-; >so 5; <ack 5 m=6 s=8 at=1000",
               "Q", "ncqrR")]
# A packet inside the second or a later one of them needs no more than that one: the credits of the clean twin come within the time that a response may take.
FLOW = ON.replace("<rep", "<rep flow=1").replace("m=1", "m=1 s=1") + ">so 1; <ack 1 m=2 s=0; "
CASES += [case("a SEND and the next message are sent behind the one that probes for credits", "ACK-08",
               FLOW + ">so 2 f=-; !>so 3 f=- at=1; >sf 4 at=1; >sm 5 at=1; <ack 1 m=2 s={0|2} at=0; <ack 3 m=4 s=8 at=1000; >sl 6; <ack 6 m=5 s=8", "Q", "ncqrR")]
# That a message which probes for credits goes on is a warning, which hides nothing.
CASES += [case("a SEND is sent behind the Last packet of the message that probes for credits", "ACK-08",
               FLOW.replace("s=0", "s={0|8}") + ">sf 2; ?>sl 3 at=1 f=-; !>so 4 at=1; <ack 4 m=4 s=8 at=1000", "Q", "ncqrR")]
# The requests behind it give the first one no longer time.
CASES += [case("SENDs without a credit are sent at once, until all of them are permitted", "ACK-08",
               FLOW + ">so 2 f=-; !>so 3 f=- at=1; {|<ack 1 m=2 s=8 at=2;} " + "".join(">so %d f=- at=1; " % n for n in range(4, 30)) + ">so 30 at=1; <ack 30 m=31 s=8 at=1",
               "Q", "ncqrR")]
# Where a requester resumes: packets without an IP identification, as many adapters send them. Of host b, whose timeout the REQ tells, --tap responder is the requester's end.
BACK = ON + "<so 0; >ack 0 m=1; <so 1; <so 2; <so 3; "
CASES += [case("a requester resumes %s the PSN of a sequence NAK, %d" % (what, n), "RTX-01", BACK + text, "R", "ncqQr") for what, n, text in (
    ("before", 1, ">nak0 2 m=2; {!<so 1 at=6000; ?<so 2|<so 2 at=6000}; <so 3; >ack 3 m=4"), ("before", 2, "<so 4; >nak0 3 m=3; {!<so 1 at=6000; ?<so 2; ?<so 3|<so 3 at=6000}; <so 4; >ack 4 m=5"),
    ("behind", 1, ">nak0 1 m=1; {!|<so 1 at=6000; }<so 2 at=6000; ?<so 3; {?<so 1 at=70000; ?<so 2; ?<so 3;|} >ack 3 m=4"),
    ("behind", 2, ">nak0 1 m=1; {|<so 1 at=6000; <so 2;} {!|}<so 3 at=6000; {?<so 1 at=70000; ?<so 2; ?<so 3;|} >ack 3 m=4"))]
CASES += [case("a requester resumes behind the oldest PSN after %s" % what, "RTX-01", ON + ">so 1; >so 2; >so 3; " + text, "Q", "ncqrR") for what, text in (
    ("a timeout", "{|>so 1 at=80000;} {!>so 2 at=80000|>so 2}; ?>so 3; {?>so 1 at=80000; ?>so 2; ?>so 3;|} <ack 3 m=4"),
    ("an RNR NAK", "<rnr14 1 m=1; {|>so 1 at=2000;} {!>so 2 at=2000|>so 2}; ?>so 3; {?>so 1 at=80000; ?>so 2; ?>so 3;|} <ack 3 m=4"))]
# XRC, whose answers are of XRC, too; the number of the shared receive queue is that of a message.
X = " class=0xa0"
MIDX = "".join(">so %d%s srq=5; <ack %d m=%d%s; " % (i, X, i, 7 + i, X) for i in range(-17, 1))
CASES += [case("requests of %s are answered by responses of %s" % names, "FMT-03", "; ".join(">so %d%s srq=5; {!<ack %d m=%d%s|<ack %d m=%d%s}" % (i, a, i, 18 + i, b, i, 18 + i, a) for i in range(-17, 3)))
          for names, a, b in ((("XRC", "RC"), X, ""), (("RC", "XRC"), "", X))]
CASES += [case("one answer of RC to requests of XRC", "FMT-03", MIDX + ">so 1%s srq=5; !<ack 1 m=8{|%s}; >so 2%s srq=5; <ack 2 m=9%s; >so 3%s srq=5; <ack 3 m=10%s" % ((X,) * 6))]
CASES += [case("another SRQ in the %s of a message" % what, "SVC-04", MIDX + text.replace(";", X + ";") + "<ack 3 m=8" + X) for what, text in (
    ("Middle", ">sf 1 srq=5; !>sm 2 srq={6|5}; ?>sl 3 srq=5; "), ("Last", ">sf 1 srq=5; >sm 2 srq=5; !>sl 3 srq={6|5}; "), ("Last with immediate", ">sf 1 srq=5; >sm 2 srq=5; !>sli 3 srq={6|5}; "),
    ("Middle of a WRITE", ">wf 1 srq=5 dl=576; !>wm 2 srq={6|5}; ?>wl 3 srq=5; "))]
CASES += [case("a %s of XRC sent again for another SRQ" % k, "SEQ-11", MIDX + ">%s 1 srq={6|5}%s; !>%s 1 srq=5%s%s; <ack 1 m=8%s" % (k, X, k, X, LOST, X)) for k in ("so", "soi", "wo")]
# A gap stays one after its NAK: what is missing is neither acknowledged nor refused before it has come. At the requester's tap the gap itself is SEQ-01, in the clean twin, too.
GAP = ON + ">so 1; <ack 1 m=2; "
CASES += [case("a gap that is acknowledged behind its NAK", rule, GAP + "?>so 3; <nak0 2 m=2; {|>so 2 at=5000; >so 3;} !<ack 3 m=4 at=100; >so 4; <ack 4 m=5", must, may)
          for rule, must, may in (("ACK-02", "R", "r"), ("ACK-03", "c", "n"))]
CASES += [case("%s of a PSN that is missing, and was asked for" % k, "NAK-09", GAP + "?>so 3; <nak0 2 m=2; {|>so 2 at=5000; >so 3;} !<%s 2 m=2 at=100" % k + rest, "cR", "nr")
          for k, rest in (("RNR NAK", "; >so 2 at=5000; >so 3; <ack 3 m=4"), ("fatal NAK", "")) for k in (k.replace("RNR NAK", "rnr14").replace("fatal NAK", "nak2"),)]
CASES += [case("%s of a PSN behind a missing one" % what, "NAK-09", GAP + "{|>so 2;} ?>so 3; !<%s 3 m={2|3}" % k + rest, "cR", "nr")
          for what, k, rest in (("RNR NAK", "rnr14", "; >so 3 at=5000; <ack 3 m=4; >so 4; <ack 4 m=5"), ("fatal NAK", "nak2", ""))]
CASES += [case("a sequence NAK of a PSN behind a missing one", "NAK-01", GAP + "{|>so 2;} ?>so 3; >so 5; !<nak0 4 m={2|4}; {?>so 2 at=5000;|} >so 4 at=5000; >so 5; <ack 5 m=6", "R", "r")]
# Behind an RNR NAK the responder knows of nothing but the request that has to come again.
CASES += [case("%s behind an RNR NAK, of a later PSN" % k, "NAK-11", ON + ">so 1; >so 2; <rnr14 1 m=1; {|>so 1 at=5000; >so 2;} !<%s 2 m={1|2} at=100" % k + rest, "R", "ncqQr")
          for k, rest in (("rnr14", "; {>so 1 at=5000;|} >so 2 at=5000; <ack 2 m=3"), ("nak2", ""))]
CASES += [case("a fatal NAK behind an RNR NAK of the same PSN", "NAK-11", ON + ">so 1; <rnr14 1 m=1; {|>so 1 at=5000;} !<nak2 1 m=1 at=100", "R", "ncqQr")]
# ACKs do not go back behind other responses, either.
CASES += [case("an ACK of a PSN before %s" % what, "ACK-02", ON + ">so 1; " + text % "{!<ack 1 m=2 at=1000|}" + "; >so %d; <ack %d m=%d" % (n, n, m), "R", "ncqQr") for what, text, n, m in (
    ("that of a READ response", ">rd 2 dl=64; <ro 2 m=3; %s", 3, 4), ("that of an ATOMIC ACK", ">faa 2; <aack 2 m=3; %s", 3, 4), ("those of READ responses", ">rd 2 dl=576; <rf 2 m=3; <rm 3; <rl 4 m=3; %s", 5, 4),
    ("the one of an RNR NAK", ">so 2; >so 3; <rnr14 3 m=3; %s; >so 3 at=5000; <ack 3 m=4", 4, 5))]
# The MSN of the first ACK behind a loss, by the messages since the ACK before it.
CASES += [case("the MSN behind a loss %s" % what, "ACK-06", GAP + "?>so 3; <nak0 2 m=2; >so 2 at=5000; >so 3; !<ack 3 m={%d|4}; >so 4; <ack 4 m={%d|5}; >so 5; <ack 5 m={%d|6}" % (m, m + 1, m + 2), "R", "cr")
          for what, m in (("counts a duplicate", 5), ("counts too many messages", 10), ("lacks a message", 3))]
# Retries that never come, and queue pairs that go on though they are in error.
CASES += [case("a request without an answer is never sent again", "RTX-03", ON + "<so 0; >ack 0 m=1; <so 1; <so 2 at=1000; {|<so 1 at=90000; <so 2; >ack 2 m=3;} {!|}<so 3 at=400000; {|>ack 3 m=4;} <so 4; {<so 1 at=90000; <so 2; <so 3; <so 4;|} >ack 4 m=5", "R", "ncqr")]
CASES += [case("the request of an RNR NAK is never sent again", "RTX-15", ON + ">so 1; <rnr14 1 m=1; {|>so 1 at=5000; <ack 1 m=2;} {!|}>so 2 at=2000000; {>so 1 at=90000; >so 2;|} <ack 2 m=3", "Q", "ncqrR")]
CASES += [case("the refused request is sent again", "NAK-08", ON + ">so 1; >so 2; <nak2 1 m=1; {!>so 1 at=80000|}", "Q", "ncqrR")]
CASES += [case("the end that was refused answers %s" % what, "NAK-08", ON + "<so 0; >ack 0 m=1; >so 1; <nak2 1 m=1; <%s 1 at=80000; {!%s|}" % (k, a), "Q", "ncqrR")
          for what, k, a in (("a SEND", "so", ">ack 1 m=2"), ("a READ", "rd", ">ro 1 m=2"))]
# One fault, one finding: what follows from it is none of its own.
CASES += [case("the answer to %s is overtaken by that to the next one" % what, "RDA-11", ON + ">%s 1; >%s 2; {!<%s 2 m=3; <%s 1 m=2|<%s 1 m=2; <%s 2 m=3}; >so 3; <ack 3 m=4" % ((k, k) + (a,) * 4), "R", "ncqQr")
          for what, k, a in (("a READ", "rd", "ro"), ("an atomic", "faa", "aack"))]
CASES += [case("READ responses that mix with those to another READ", "RDA-11", ON + ">rd 1 dl=320; >rd 3 dl=320; <rf 1 m=2; {!<rf 3 m=3; <rl 2 m=2|<rl 2 m=2; <rf 3 m=3}; <rl 4 m=3; >so 5; <ack 5 m=4", "R", "ncqQr")]
CASES += [case("a WRITE breaks into a SEND, which then goes on", "SEQ-02", ON + ">sf 1; {!>wo 2|>sm 2}; >sm 3; >sl 4; <ack 4 m={3|2}")]
CASES += [case("the Last packet of a WRITE is shorter when it is sent again", "SEQ-11", ON + ">wf 1 dl=576; >wm 2; >wl 3; >wf 1 dl=576%s; >wm 2; !>wl 3 n={32|64}; <ack 3 m=2" % LOST, "nqQ", "crR")]
CASES += [case("a second fatal NAK, for another reason", "NAK-04", ON + ">so 1; <nak2 1 m=1; {!<nak3 1 m=1 at=1000|}")]
CASES += [case("MSN of the responses of a READ %s" % what, "ACK-07", ON + ">rd 1 dl=576; !<rf 1 m={%d|2}; <rm 2; ?<rl 3 m={%d|2}; >so 4; <ack 4 m=3" % (m, m), COMPLETE, NOT_COMPLETE) for what, m in (("jumps", 6), ("goes back", 0))]
CASES += [case("a SEND to a group", "FMT-21", ON + "!>so 1{ dst=239.0.0.1|}; <ack 1 m=2; >so 2; <ack 2 m=3")]
UD = ">so %d op=0x64 f=- q=77 fill=0; "
CASES += [case("%s among datagrams" % what, "SVC-02", UD % 0 + UD % 1 + UD % 2 + "!>so 3 q=77 f=- fill=0 op={%d|0x64}; " % op + UD % 4 + UD % 5) for what, op in (("a SEND of RC", 4), ("a SEND of UC", 0x24))]
# What nothing has asked for a second time.
CASES += [case("a second RNR NAK, %s" % what, "NAK-11", ON + ">%s 1; <rnr14 1 m=1; {!<rnr14 1 m=1 at=1000|}; >%s 1 at=5000; <ack 1 m=2" % (k, k), "R", "ncqQr") for what, k in (("of a SEND", "so"), ("of a WRITE with immediate", "woi"))]
CASES += [case("the same fatal NAK a second time", "NAK-04", ON + ">so 1; <nak2 1 m=1; {!<nak2 1 m=1 at=1000|}", "R", "ncqQr")]
CASES += [case("an ATOMIC ACK is sent a second time, %s" % k, "RDA-05", ON + ">%s 1; <aack 1 m=2; {!<aack 1 m=2 at=1000|}; >so 2; <ack 2 m=3" % k, "R", "ncqQr") for k in ("faa", "cas")]
CASES += [case("an ATOMIC ACK is repeated twice for one duplicate", "RDA-05", ON + ">faa 1; <aack 1 m=2; >faa 1 at=90000; <aack 1 m=2; {!<aack 1 m=2 at=1000|}; >so 2; <ack 2 m=3", "R", "ncqQr")]
CASES += [case("the responses of a READ are repeated twice for one duplicate, %s" % what, "RDA-02", ON + ">rd 1 dl=%d; %s; >rd 1 dl=%d at=90000; %s; {!%s|}; >so %d; <ack %d m=3" % (dl, a, dl, a, a.replace("m=2", "m=2 at=1000", 1).replace("; ", "; ?"), n, n), "R", "ncqQr")
          for what, dl, a, n in (("Only", 64, "<ro 1 m=2", 2), ("First to Last", 320, "<rf 1 m=2; <rl 2 m=2", 3))]
CASES += [case("P_Key 0x%04x, %s" % (key, what), "FMT-15", start + text % key) for key in (0, 0x8000) for what, start, text in (
    ("of one packet", MID, "!>so 1 pkey={0x%04x|0xffff}; <ack 1 m=8; >so 2; <ack 2 m=9"), ("of one end", ON, "!>so 1 pkey={0x%04x|0xffff}; <ack 1 m=2"))]
CASES += [case("%s of a PSN that was answered" % what, "RTX-09", ON + ">rd 1 dl=576; <rf 1 m=2; <rm 2; <rl 3 m=2; >so 4; {!<%s 2 m=2|<%s 4 m=2}" % (k, k) + rest, "R", "ncqQr")
          for what, k, rest in (("a fatal NAK", "nak2", ""), ("an RNR NAK", "rnr14", "; >so 4 at=5000; <ack 4 m=3"))]
CASES += [case("a requester that waits for an answer for ever", "RTX-03", ON + "<so 0; >ack 0 m=1; <so 1; {|<so 1 at=90000;} {!>ack 1 m=2 at=2000000|>ack 1 m=2}; <so 2; >ack 2 m=3", "R", "ncqr")]
CASES += [case("a WRITE Middle stands in a SEND, which goes on", "SEQ-02", ON + ">sf 1; {!>wm 2|>sm 2}; >sl 3; <ack 3 m=2")]
CASES += [case("the First of a WRITE is too short", "SEQ-04", ON + "!>wf 1 n={252|256} dl=576; >wm 2; >wl 3; <ack 3 m=2")]
CASES += [case("a sequence NAK of a PSN behind the missing one, and then the right one", "NAK-01", GAP + "?>so 4; !<nak0 {3|2} m=2; {>so 3 at=5000; >so 4; <nak0 2 m=2 at=1000;|} >so 2 at=5000; >so 3; >so 4; <ack 4 m=5", "R", "r")]
CASES += [case("another R_Key in the RETH of a WRITE that is sent again", "SEQ-11", ON + ">wf 1 dl=576; >wm 2; >wl 3; !>wf 1 rk={9|0x1234} dl=576%s; >wm 2; >wl 3; <ack 3 m=2" % LOST, "nqQ", "crR")]
