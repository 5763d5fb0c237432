"""Violations where they begin: the first PSN, length or time that breaks a rule, and in the clean twin the last one that keeps it."""
from build import ON, case

CASES = [
    case("an ACK of the very PSN that is missing", "ACK-03", ON + ">so 1; <ack 1 m=2; {|>so 2;} ?>so 3; !<ack 2 m=3; >so 4", "", "ncqQr"),  # at the responder it is ACK-02
]
