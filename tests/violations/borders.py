"""Violations where they begin: the first PSN, length or time that breaks a rule, and in the clean twin the last one that keeps it."""
from build import CM, EVERYWHERE, ON, case
from cm import case as managed
from transport import MID, acked

CREDITS = ON.replace("<rep", "<rep flow=1").replace("m=1", "m=1 s={1|8}")  # the responder counts its receives

CASES = [
    case("an ACK of the very PSN that is missing", "ACK-03", ON + ">so 1; <ack 1 m=2; {|>so 2;} ?>so 3; !<ack 2 m=3; >so 4", "cQ", "nqr"),  # at the responder it is ACK-02
    case("NAK of reliable datagrams", "NAK-06", MID + ">so 1; !<nak{4|2} 1 m=7"),
    managed("a request along a path that a LAP proposes for its receiver alone", "CM-14",
         CM + ">so 0; <ack 0 m=1; >lap qpn=$qb dgid=0xffff0a090909 at=1000; !>so 1{ dst=10.9.9.9|}; {|<ack 1 m=2}", "cQR", "nqr"),
    managed("a request along another path than the one that a LAP proposes", "CM-14",
            CM + ">so 0; <ack 0 m=1; >lap qpn=$qb dgid=0xffff0a090909 at=1000; !>so 1{ dst=10.9.9.8|}; {|<ack 1 m=2}", "", "ncqQrR"),
    case("a READ that begins with a Middle", "RDA-02", MID + ">rd 1 dl=576; {!<rm 1|<rf 1 m=8}; <rm 2; <rl 3 m=8", "cQR", "nqr"),
    case("a READ that begins with a Last", "RDA-02", MID + ">rd 1 dl=64; {!<rl 1 m=8|<ro 1 m=8}", "cQR", "nqr"),
    *(case("a SEND %d ahead of its credits, %d more come soon" % (n, credits), "ACK-08",
           CREDITS + ">so 1; <ack 1 m=2 s={0|8}; " + "".join("%s>so %d f=-; " % ("?" * (i > 0), 2 + i) for i in range(n)) + "!>so %d; <ack 2 m=3 s={%d|8}; "
           "?>so %d; <ack %d m=%d s=8" % (2 + n, credits, 3 + n, 3 + n, 4 + n), "", "ncqQrR") for n in (1, 2) for credits in (0, 1, 2)),
    # After three responses to all that had been sent the clocks of both directions are known to agree, and nothing is missing.
    *(case("%s ahead of a connection that has had %d responses" % (what, n), rule,
           CM + acked(0, n - 1, 1) + "!{%s|}; >so %d; <ack %d m=%d; >so %d; <ack %d m=%d" % (text % (n + 20, n), n, n, n + 1, n + 1, n + 1, n + 2),
           "" if n < 3 else everywhere, everywhere if n < 3 else "")
      for n in (2, 3, 8) for what, rule, text, everywhere in (("an ACK", "ACK-03", "<ack %d m=%d", "ncqQr"), ("a NAK", "NAK-01", "<nak0 %d m=%d", EVERYWHERE),
                                                              ("a READ response", "RDA-05", "<ro %d m=%d", EVERYWHERE))),
]
