"""Scenarios whose counts and times hold in virtual time and with a live peer, each spoiled: both ways of playing it must see that."""

# Scenario, what is replaced by what, and what is then said.
MUTANTS = [
    ("rc_coalesced_acks", "coalesce/4/", "coalesce/3/", "expected  b > a ACK psn=3 msn=4 after=0us-300ms"),
    ("rc_coalesced_acks", "coalesce/4/", "coalesce/5/", "expected  b > a ACK psn=3 msn=4 after=0us-300ms"),
    ("rc_coalesced_acks", "after=400ms-", "after=0us-100ms", "expected  b > a ACK psn=4 msn=5 after=0us-100ms"),
    ("rc_read_exceeds_resources", "resources=16/2", "resources=16/3", "expected  b > a NAK_INVALID psn=16"),
    ("rc_read_exceeds_resources", "after=50ms-", "after=1s-10s", "expected  b > a READ_RESP_FIRST psn=0 after=1s-10s"),
    ("rc_rnr_infinite", "rnr_retry=7", "rnr_retry=6", "actual    a wc 1 RNR_RETRY_EXC_ERR"),
    ("rc_rnr_infinite", "= 8334 live=8-", "= 8333 live=1-7", "a stat rnr_nak_retry_err is "),
]


def spoiled():
    """Name and text of each, and what is to be said of it."""
    for name, good, bad, says in MUTANTS:
        text = open("tests/scenarios/%s.rdma" % name).read()
        assert text.count(good) == 1, (name, good)
        yield name, text.replace(good, bad), says
