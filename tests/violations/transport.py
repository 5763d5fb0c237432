"""Violations of the transport: requests, responses, ACKs and NAKs. Each line is a violation with its clean twin; build.py has the language."""
from build import CM, case

CASES = [
    case("ACK with an MSN too high", "ACK-06", CM + ">so 0; !<ack 0 m={5|1}; ?>so 1; ?<ack 1 m=2", "cQR", "nqr"),
]
