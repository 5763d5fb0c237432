"""What keeps every rule, though it looks like a violation: nothing may fail in any setting. A rule is named by which it could be accused."""
from build import CM, EVERYWHERE
from cm import LATE
from cm import case as managed
from cm import put


def sums(value, n=99):
    """The first `n` frames of host a with this checksum of their IPv4 headers, or with a wrong one each (None)."""
    def change(frames, _bad):
        left = n
        for i, (us, data, mark) in enumerate(frames):
            if data[29] == 1 and left:
                left -= 1
                frames[i] = us, put(24, value or bytes([data[24] ^ 0x5a, data[25]]))([(us, data, "!")], True)[0][1], mark
        return frames
    return change


def datagrams(qkey, fields=""):
    """Three datagrams: a DETH of this Q_Key and of source queue pair 0; `fields` are those of the first one."""
    sent = ">soe %d op=0x64 f=- n=72 fill=0 ie=%d q=77 %s; "
    return sent % (0, qkey, fields) + sent % (1, qkey, "") + sent % (2, qkey, "")


def innocent(name, rule, text, change=None):
    return managed("innocent: " + name, rule, text, "", EVERYWHERE, change)


DATA = ">so 0; <ack 0 m=1; >so 1; <ack 1 m=2; >so 2; <ack 2 m=3"
MANY = "".join(">so %d; <ack %d m=%d; " % (i, i, i + 1) for i in range(20))
IDLE = " at=60000000"  # for a minute: the queue pairs are reset, and connected again without CM
AFRESH = "<ack %d m=1; >wo %d; <ack %d m=2"


SHORT = CM.replace(">req", ">req timeout=8")  # an ACK timeout of 1 ms


def afresh(psn):
    return ">wo %d%s va=0x9000; " % (psn, IDLE) + AFRESH % (psn, psn + 1, psn + 1)


CASES = [
    innocent("checksums of IPv4 headers that hardware computes", "FMT-09", CM + DATA, sums(b"\0\0")),
    innocent("only the first checksums of IPv4 headers are 0", "FMT-09", DATA, sums(b"\0\0", 2)),
    innocent("the PSN of a refused WRITE, after a reset", "SEQ-11", ">wo 0 rk=9; <nak2 0 m=0; " + afresh(0)),
    innocent("a PSN behind that of a refused WRITE, after a reset", "NAK-04", MANY + ">wo 20 rk=9; <nak2 20 m=20; " + afresh(100)),
    innocent("the PSN next to that of a refused WRITE, after a reset", "NAK-08", MANY + ">wo 20 rk=9; <nak2 20 m=20; " + afresh(21)),
    innocent("the PSN of a SEND that got no answer, after a reset", "SEQ-11", "".join(">so 0 at=%d; " % (300000 * i) for i in range(8)) + afresh(0)),
    innocent("a later PSN, after a reset", "SEQ-01", MANY + afresh(900)),
    innocent("numbers of a closed connection, agreed on anew without CM", "CM-13", CM + DATA + "; >dreq at=1000; <drep at=1000; " + afresh(500)),
    innocent("another Q_Key of a queue pair that got no datagrams for a minute", "FMT-16", datagrams(1) + datagrams(7, IDLE)),
    innocent("another Q_Key than a SIDR_REP has named, a minute later", "CM-15", ">sreq service=0x4711; <srep qpn=77; " + datagrams(7, IDLE)),
    innocent("a request of the passive side that was captured just before the RTU", "CM-12", LATE + "<rep at=1000; <so 0 at=1000; >rtu at=50; >ack 0 m=1; <so 1; >ack 1 m=2"),
    innocent("a connection of the same numbers that was never confirmed", "CM-12",
             LATE + "<rep at=1000; >req lid=11 tid=2 at=30000000; <rep lid=12 rid=11 tid=2; >rtu lid=11 rid=12 tid=2; <so 0 at=1000; >ack 0 m=1; >so 0; <ack 0 m=1"),
    # at the responder's tap the NAK would be behind the RNR NAK
    managed("innocent: a sequence NAK that an RNR NAK has overtaken", "NAK-07",
            CM + ">so 0; <ack 0 m=1; >so 1; >so 2; >so 1 at=90000; <rnr14 1 m=1; <nak0 1 m=1; >so 1 at=1400; >so 2; <ack 2 m=3", "", "ncqQ"),
    managed("innocent: an RNR NAK of the copy before the one that is taken", "RTX-15",
            CM + ">rd 0; >rd 1; >so 2; <ro 1 m=2; >rd 0; >rd 1; >so 2; <rnr14 2 m=2; <ro 0 m=2; <ro 1 m=2; >so 3 at=1100; <ack 3 m=4", "", "ncqQr"),
    managed("innocent: a communication id that is used again, and the answers were not captured", "CM-02",
            ">req; >rtu at=1000; >so 0; >req tid=2 at=9000000 psn=77 qpn=99 guid=5; >rtu at=1000", "", "nqr"),
    innocent("the RNR NAK of a copy is identical to that of the first one, and has no IP identification", "RTX-02",
             SHORT + "<so 0 f=-; >rnr12 0 m=0; <so 0 f=- at=828; >rnr12 0 m=0; <so 0 at=655; >ack 0 m=1"),
    managed("innocent: a second implied NAK is identical to the first one, and has no IP identification", "RTX-02",
            SHORT + "<rd 0 f=-; <rd 1 f=-; >ro 1 m=2; <rd 0 f=- at=56; <rd 1 f=-; >ro 1 m=2; <rd 0 at=56; <rd 1; >ro 0 m=1; >ro 1 m=2", "", "ncrR"),
    managed("innocent: a copy that the network has made was taken behind the RNR NAK", "RTX-15",
            CM + ">so 0; <ack 0 m=1; >so 1; <rnr20 1 m=1; <ack 1 m=2 at=1300; >so 2 at=100; <ack 2 m=3", "", "ncqQ"),
    innocent("the DSCP of a host's packets was rewritten by a tap", "FMT-09", CM + DATA, sums(None)),
]
