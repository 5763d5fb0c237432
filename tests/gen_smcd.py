#!/usr/bin/env python3
"""Write a capture of CLC messages of SMC-D and of IP prefixes: gen_smcd.py FILE. No real one was to be had: the messages are laid out as the kernel's
net/smc/smc_clc.h says, in segments of captures/smcr_v2_3.pcap: a Proposal of both versions and kinds, Accept and Confirm of versions 1 and 2."""
import ipaddress
import struct
import sys

sys.path.insert(0, "tests")
import judge  # noqa: E402

SMCR, SMCD = bytes.fromhex("e2d4c3d9"), bytes.fromhex("e2d4c3c4")


def clc(eye, kind, flags, body):
    return eye + struct.pack(">BHB", kind, 12 + len(body), flags) + body + eye


def proposal():
    """Both versions, SMC-R and SMC-D: device, subnet, two IPv6 prefixes; two EIDs, the machine's EID, two devices."""
    prefixes = b"".join(ipaddress.ip_address(a).packed + bytes([n]) for a, n in (("2001:db8:1::", 48), ("fd00:77::", 64)))
    subnet = bytes([192, 168, 77, 0, 24, 0, 0, 2]) + prefixes
    device = struct.pack(">QH", 0x1122334455667788, 0x1234)
    extension = 28 + len(subnet) + 4  # from byte 52 on
    seid = b"IBM-SYSZ-ISMSEID00000000ABCD1970" + bytes(16) + struct.pack(">QHQH", 0xa1, 0x8001, 0xa2, 0x8002)
    v2 = struct.pack(">BBBBHH", 2, 2, 0, 0x11, 0, 32 + 2 * 32) + bytes(10) + b"\xff\xff" + bytes([192, 168, 77, 1]) + bytes(16)
    v2 += b"EID-ONE".ljust(32) + b"EID-TWO".ljust(32) + seid
    peer = struct.pack(">Q", 0x67d0525400770001) + bytes(10) + b"\xff\xff" + bytes([192, 168, 77, 1]) + bytes.fromhex("525400770001")
    return clc(SMCR, 1, 0x2f, peer + struct.pack(">H", 40) + device + struct.pack(">H", extension) + bytes(28) + subnet + bytes(4) + v2)


def end(kind, version):
    """An Accept or Confirm."""
    body = struct.pack(">QQBBHI", 0xa1 + kind, 0xb000 + kind, kind, 0x30, 0, 0xc0de0000 + kind)
    if version == 1:
        body += bytes(12)
    else:
        body += struct.pack(">H", 0x8000 + kind) + b"EID-ONE".ljust(32) + bytes(8) + bytes([0, 0x20, 0, 0]) + b"HOST".ljust(32)
    return clc(SMCD, kind, version << 4 | 0x08 | 1, body)


frames = judge.read_pcap("captures/smcr_v2_3.pcap")
out, seq = [], {}
for number, message in ((6, proposal()), (8, end(2, 2)), (10, end(3, 2)), (6, proposal()), (8, end(2, 1)), (10, end(3, 1))):
    p = frames[number - 1].copy()
    p.ts += 10 ** 9 * (len(out) // 3)
    ports = bytes(p.data[34:38])
    seq.setdefault(ports, p.get(38, 4))
    p.data = p.data[:34 + 4 * (p.data[46] >> 4)] + bytearray(message)
    p.put(38, 4, seq[ports])
    p.put(42, 4, seq.get(ports[2:] + ports[:2], p.get(42, 4)))
    seq[ports] += len(message)
    p.put(16, 2, len(p.data) - 14)
    p.put(24, 2, 0)
    total = sum(struct.unpack(">10H", p.data[14:34]))
    p.put(24, 2, ~((total & 0xffff) + (total >> 16)))
    out.append(p)
judge.write_pcap(sys.argv[1], out)
