"""Packets of a capture, with what differs from run to run made relative, so that two runs of the same work can be compared."""
import os
import subprocess

NAMES = ("ip.dst", "infiniband.bth.destqp", "infiniband.bth.opcode", "infiniband.bth.psn", "frame.len", "infiniband.bth.a", "infiniband.bth.padcnt",
         "infiniband.bth.se", "infiniband.aeth.syndrome", "infiniband.aeth.msn", "infiniband.reth.va",
         "infiniband.reth.dmalen", "infiniband.reth.r_key", "rdma.ieth.r_key", "infiniband.atomiceth.swapdt")
RESPONSES = range(0x0d, 0x13)
CM = 1


def number(text):
    return int(text, 0) if text else None


class Relative:
    """Values as differences to the first one of their kind."""
    def __init__(self):
        self.first = {}

    def __call__(self, kind, value, bits):
        return None if value is None else (value - self.first.setdefault(kind, value)) % (1 << bits)


def packets(path):
    """Of each packet of queue pairs: which queue pair it is for, opcode, PSN, bytes, AckReq, pad, SE, syndrome, MSN, address, length, keys (R_Key and the
    one that is invalidated), what is added. Queue pairs are numbered in their order; PSN, address and keys count from the first one."""
    r = subprocess.run([os.environ["BUILD"] + "/rdmatrace", "decode", "-T", "fields", *[w for n in NAMES for w in ("-e", n)], path],
                       stdout=subprocess.PIPE, text=True, check=True)
    seen, relative, found = [], Relative(), []
    for line in r.stdout.splitlines():
        host, line = line.split("\t", 1)
        qp, opcode, psn, size, ackreq, pad, se, syndrome, msn, va, length, key, gone, value = map(number, line.split("\t"))
        if qp is None or qp == CM:
            continue
        if (host, qp) not in seen:
            seen.append((host, qp))
        side = seen.index((host, qp))
        space = side ^ (opcode in RESPONSES)  # a response has the PSN of its request, which went to the other queue pair
        found.append((side, opcode, relative(space, psn, 24), size, ackreq, pad, se, syndrome, msn, relative("va", va, 64), length,
                      relative("key", key, 32), relative("key", gone, 32), value))
    return found
