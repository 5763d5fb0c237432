"""Packets of RoCEv2 over IPv4 and MADs of the connection manager, built by hand, with an ICRC of its own: knows nothing of the project's code.

A line of a table of violations is a case(): its packets are written in a short language, with the violation and its clean twin in one text.

    >so 0; <ack 0 m=1; !<ack 1 m={7|2}

Packets are separated by ";". ">" is sent by host a, "<" by host b. A kind of packet (KINDS; "nak2" is a NAK with code 2, "rnr14" an RNR NAK with timer
code 14) is followed by its PSN, counted from the first PSN of its requester, and by fields (FIELDS, cm_fields of each MAD). In "{x|y}", x stands in
the violation and y in the clean twin. "!" marks the packet that has to be named, "?" one that may be named, too: of what follows from the violation.
"""
import re
import socket
import struct
import zlib

RC, UC, XRC = 0x00, 0x20, 0xa0
MTU = 256
GSI_QKEY = 0x80010000

# opcode, headers behind the BTH, payload bytes unless "n" says it, AckReq unless "f" says it
KINDS = {
    "sf": (0, "", MTU, 0), "sm": (1, "", MTU, 0), "sl": (2, "", 64, 1), "sli": (3, "I", 64, 1), "so": (4, "", 64, 1), "soi": (5, "I", 64, 1),
    "wf": (6, "R", MTU, 0), "wm": (7, "", MTU, 0), "wl": (8, "", 64, 1), "wli": (9, "I", 64, 1), "wo": (10, "R", 64, 1), "woi": (11, "RI", 64, 1),
    "rd": (12, "R", 0, 1), "rf": (13, "A", MTU, 0), "rm": (14, "", MTU, 0), "rl": (15, "A", 64, 0), "ro": (16, "A", 64, 0),
    "ack": (17, "A", 0, 0), "aack": (18, "AO", 0, 0), "cas": (19, "T", 0, 1), "faa": (20, "T", 0, 1), "sle": (22, "E", 64, 1), "soe": (23, "E", 64, 1),
    "flush": (28, "FR", 0, 1), "aw": (29, "R", 8, 1), "cnp": (0x81, "", 16, 0),
}
# MAC control frames: opcode
CONTROL = {"pause": 1, "pfc": 0x101}
RESPONSES = ("rf", "rm", "rl", "ro", "ack", "aack")

# of a packet: op opcode, q DestQP, f flags (s SE, a AckReq, m MigReq, "-" none), n payload bytes, fill their value, at microseconds since the packet before
FIELDS = {"m": 0, "s": 0x1f, "va": 0x10000, "rk": 0x1234, "dl": None, "imm": 0xcafe, "ie": 0x1234, "add": 1, "cmp": 0, "orig": 0, "op": None, "q": None, "f": None,
          "n": None, "fill": 0x5a, "at": 10, "class": RC, "pkey": 0xffff, "tver": 0, "mac": None, "vlan": None, "dscp": 26, "ecn": 2, "ttl": 64, "sport": None,
          "src": None, "dst": None, "srq": 0}

CM_CLASS = 7
# attribute id, and of each field its first bit behind the MAD header, its width, and its value unless a packet says it
MADS = {
    "req": (0x10, {"lid": (0, 32, 1), "service": (64, 64, 0x0000000001061c06), "guid": (128, 64, 0x1122334455667788), "qkey": (224, 32, 0), "qpn": (256, 24, 0),
                   "resources": (280, 8, 16), "depth": (312, 8, 16), "rtimeout": (344, 5, 20), "type": (349, 2, 0), "flow": (351, 1, 0), "psn": (352, 24, 0),
                   "ltimeout": (376, 5, 20), "retries": (381, 3, 7), "pkey": (384, 16, 0xffff), "mtu": (400, 4, 1), "rnr": (405, 3, 7), "cmretries": (408, 4, 15),
                   "srq": (412, 1, 0), "slid": (416, 16, 0xffff), "dlid": (432, 16, 0xffff), "sgid": (448, 128, 0), "dgid": (576, 128, 0), "label": (704, 20, 0),
                   "rate": (730, 6, 10), "tclass": (736, 8, 104), "hops": (744, 8, 64), "sl": (752, 4, 0), "local": (756, 1, 0), "timeout": (760, 5, 14),
                   "alid": (768, 16, 0), "adlid": (784, 16, 0), "asgid": (800, 128, 0), "adgid": (928, 128, 0), "atimeout": (1112, 5, 0), "xt": (413, 3, 0),
                   "version": (1120, 8, 0), "ipversion": (1128, 4, 4), "port": (1136, 16, 40000), "sip": (1152, 128, 0), "dip": (1280, 128, 0)}),
    "mra": (0x11, {"lid": (0, 32, 1), "rid": (32, 32, 2), "of": (64, 2, 0), "timeout": (72, 5, 20)}),
    "rej": (0x12, {"lid": (0, 32, 1), "rid": (32, 32, 2), "of": (64, 2, 0), "length": (72, 7, 0), "reason": (80, 16, 28)}),
    "rep": (0x13, {"lid": (0, 32, 2), "rid": (32, 32, 1), "qkey": (64, 32, 0), "qpn": (96, 24, 0), "psn": (160, 24, 0), "resources": (192, 8, 16),
                   "depth": (200, 8, 16), "delay": (208, 5, 15), "failover": (213, 2, 0), "flow": (215, 1, 0), "rnr": (216, 3, 7), "srq": (219, 1, 0),
                   "guid": (224, 64, 0x1122334455667799)}),
    "rtu": (0x14, {"lid": (0, 32, 1), "rid": (32, 32, 2)}),
    "dreq": (0x15, {"lid": (0, 32, 1), "rid": (32, 32, 2), "qpn": (64, 24, 0)}),
    "drep": (0x16, {"lid": (0, 32, 2), "rid": (32, 32, 1)}),
    "sreq": (0x17, {"id": (0, 32, 1), "pkey": (32, 16, 0xffff), "service": (64, 64, 0x0000000001111c06)}),
    "srep": (0x18, {"id": (0, 32, 1), "status": (32, 8, 0), "length": (40, 8, 0), "qpn": (64, 24, 0), "service": (96, 64, 0x0000000001111c06),
                    "qkey": (160, 32, 0x01234567)}),
    "lap": (0x19, {"lid": (0, 32, 1), "rid": (32, 32, 2), "qpn": (96, 24, 0), "rtimeout": (120, 5, 20), "slid": (160, 16, 0xffff), "dlid": (176, 16, 0xffff),
                   "sgid": (192, 128, 0), "dgid": (320, 128, 0), "label": (448, 20, 0), "tclass": (472, 8, 104), "hops": (480, 8, 64), "rate": (490, 6, 10),
                   "timeout": (504, 5, 14)}),
    "apr": (0x1a, {"lid": (0, 32, 2), "rid": (32, 32, 1), "length": (64, 8, 0), "status": (72, 8, 0)}),
}
# of the MAD header: first bit, width, value
MAD_HEADER = {"base": (0, 8, 1), "mclass": (8, 8, CM_CLASS), "mversion": (16, 8, 2), "method": (24, 8, 3), "mstatus": (32, 16, 0), "tid": (64, 64, 1),
              "attr": (128, 16, None), "modifier": (160, 32, 0)}


def icrc(ip):
    """The ICRC of an IPv4 packet up to its ICRC: what routers change is ones, behind 8 bytes of ones."""
    m = bytearray(ip)
    for masked in (1, 8, 10, 11, 20 + 6, 20 + 7, 20 + 8 + 4):
        m[masked] = 0xff
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(m)))


def icrc6(ip):
    """The ICRC of an IPv6 packet, or of a GRH and what is behind it, up to its ICRC."""
    m = bytearray(ip)
    m[0] |= 0x0f
    for masked in (1, 2, 3, 7) + ((40 + 6, 40 + 7, 40 + 8 + 4) if m[6] == 17 else (40 + 4,)):
        m[masked] = 0xff
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(m)))


def bth(opcode, qpn, psn, flags="", pad=0, pkey=0xffff, tver=0):
    first = ("s" in flags) << 7 | ("m" in flags) << 6 | pad << 4 | tver
    return struct.pack(">BBHII", opcode, first, pkey, qpn, ("a" in flags) << 31 | psn & 0xffffff)


def summed(ip):
    """An IPv4 header with the checksum that it asks for."""
    ip = ip[:10] + b"\0\0" + ip[12:]
    total = sum(struct.unpack(">%dH" % (len(ip) // 2), ip))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ip[:10] + struct.pack(">H", total ^ 0xffff) + ip[12:]


def frame(src, dst, sport, ib, dscp=26, ecn=2, ttl=64, mac=None, vlan=None):
    """A frame of `ib`, a BTH and what is behind it, from address to address ("10.0.0.1")."""
    a, b = socket.inet_aton(src), socket.inet_aton(dst)
    ip = summed(struct.pack(">BBHHHBBH4s4s", 0x45, dscp << 2 | ecn, 20 + 8 + len(ib) + 4, 0, 0x4000, ttl, 17, 0, a, b))
    packet = ip + struct.pack(">HHHH", sport, 4791, 8 + len(ib) + 4, 0) + ib
    tag = struct.pack(">HH", 0x8100, vlan) if vlan is not None else b""
    return (mac or b"\x02\x00" + b) + b"\x02\x00" + a + tag + b"\x08\x00" + packet + icrc(packet)


class Conn:
    """A connection of two queue pairs, the n-th of a capture: addresses, QPNs and first PSNs of host a and host b."""

    def __init__(self, n):
        self.n = n
        self.addr = ["10.%d.%d.%d" % (1 + n // 200, n % 200, host) for host in (1, 2)]
        self.qpn = [0x1000 + 2 * n, 0x1001 + 2 * n]
        self.psn = [0x100000 + 0x1000 * n & 0xffffff, 0x500000 + 0x1000 * n & 0xffffff]
        self.mad_psn = 0

    def gid(self, host):
        return int.from_bytes(b"\0" * 10 + b"\xff\xff" + socket.inet_aton(self.addr[host]), "big")

    def send(self, host, ib, f):
        return frame(f["src"] or self.addr[host], f["dst"] or self.addr[not host], f["sport"] or 0xc000 + self.n, ib, f["dscp"], f["ecn"], f["ttl"],
                     bytes.fromhex(f["mac"]) if f["mac"] else None, f["vlan"])

    def packet(self, host, kind, psn, given):
        """A packet of the transport that `host` sends, with the fields `given`."""
        f = dict(FIELDS, **given)
        if kind.startswith("nak"):
            kind, f["s"] = "ack", 0x60 | int(kind[3:])
        elif kind.startswith("rnr"):
            kind, f["s"] = "ack", 0x20 | int(kind[3:])
        opcode, headers, payload, ack = KINDS[kind]
        n = payload if f["n"] is None else f["n"]
        flags = ("a" if ack else "") if f["f"] is None else f["f"]
        length = (64 if kind == "rd" else n) if f["dl"] is None else f["dl"]
        parts = {"R": struct.pack(">QII", f["va"], f["rk"], length), "A": struct.pack(">I", f["s"] << 24 | f["m"] & 0xffffff), "I": struct.pack(">I", f["imm"]),
                 "E": struct.pack(">I", f["ie"]), "T": struct.pack(">QIQQ", f["va"], f["rk"], f["add"], f["cmp"]), "O": struct.pack(">Q", f["orig"]),
                 "F": struct.pack(">I", 0x11), "X": struct.pack(">I", f["srq"])}
        first = self.psn[not host if kind in RESPONSES else host]
        if f["class"] == XRC and kind not in RESPONSES:
            headers = "X" + headers
        opcode, qpn = opcode | f["class"] if f["op"] is None else f["op"], self.qpn[not host] if f["q"] is None else f["q"]
        ib = bth(opcode, qpn, first + psn, flags, -n % 4, f["pkey"], f["tver"])
        return f["at"], self.send(host, ib + b"".join(parts[h] for h in headers) + bytes([f["fill"]]) * n + b"\0" * (-n % 4), f)

    def mad(self, host, kind, given):
        """A MAD of the connection manager that `host` sends; other fields than those of MADS and MAD_HEADER are those of a packet."""
        attribute, fields = MADS[kind]
        f = dict(FIELDS, q=1, qsrc=1, qkd=GSI_QKEY, **{name: value[2] for name, value in MAD_HEADER.items()})
        mine = dict({name: value[2] for name, value in fields.items()}, **{k: v for k, v in given.items() if k in fields})
        f.update((k, v) for k, v in given.items() if k not in fields)
        for name, value in {"qpn": self.qpn[not host if kind == "dreq" else host], "psn": self.psn[not host], "sgid": self.gid(host), "dgid": self.gid(not host),
                            "sip": self.gid(host) & 0xffffffff, "dip": self.gid(not host) & 0xffffffff}.items():
            if name in fields and name not in given:
                mine[name] = value
        f["attr"] = attribute if f["attr"] is None else f["attr"]
        body = 0
        for values, table, base in ((f, MAD_HEADER, 0), (mine, fields, 192)):
            for name, (bit, width, _) in table.items():
                body |= (values[name] & (1 << width) - 1) << 2048 - base - bit - width
        self.mad_psn += 1
        ib = bth(0x64, f["q"], self.mad_psn, f["f"] or "", 0, f["pkey"] if "pkey" not in fields else 0xffff, f["tver"])
        return f["at"], self.send(host, ib + struct.pack(">II", f["qkd"], f["qsrc"]) + body.to_bytes(256, "big"), f)


    def control(self, host, kind, given):
        """A pause frame of `host`: op opcode, en class-enable vector, c0 to c7 quanta, mac and smac addresses, vlan tag."""
        f = dict({"at": 10, "op": CONTROL[kind], "en": 1 << 3, "mac": "0180c2000001", "smac": "0200" + socket.inet_aton(self.addr[host]).hex(), "vlan": None},
                 **dict({"c%d" % i: 0 for i in range(8)}, **given))
        quanta = [f["c%d" % i] for i in range(8)]
        body = struct.pack(">HH", f["op"], quanta[0]) if kind == "pause" else struct.pack(">HH8H", f["op"], f["en"], *quanta)
        tag = struct.pack(">HH", 0x8100, f["vlan"]) if f["vlan"] is not None else b""
        return f["at"], bytes.fromhex(f["mac"] + f["smac"]) + tag + b"\x88\x08" + body.ljust(46, b"\0")


def packets(conn, text, bad):
    """[(microseconds since the one before, frame, its mark)] of a text in the language above."""
    text = re.sub(r"\{([^{}|]*)\|([^{}|]*)\}", lambda m: m.group(1 if bad else 2), text)
    found = []
    for words in (part.split() for part in text.split(";")):
        if not words or words in (["!"], ["?"]):
            continue
        mark, side, kind = re.fullmatch(r"([!?]?)([<>])(\w+)", words[0]).groups()
        numbers = [w for w in words[1:] if "=" not in w]
        given = {k: v if k in ("f", "mac", "smac", "src", "dst") else int(v, 0) for k, v in (w.split("=") for w in words[1:] if "=" in w)}
        host = side == "<"
        if kind in CONTROL:
            at, data = conn.control(host, kind, given)
        else:
            at, data = conn.mad(host, kind, given) if kind in MADS else conn.packet(host, kind, int(numbers[0], 0), given)
        found.append((at, data, mark))
    return found


CM = ">req at=1000; <rep at=1000; >rtu at=1000; "  # a connection set up, of which host a was the active side
ON = CM + ">so 0; <ack 0 m=1; "  # and its first message

# where a capture was made: options of rdmatrace check
SETTINGS = {"n": [], "c": ["--complete"], "q": ["--tap", "requester"], "Q": ["--tap", "requester", "--complete"],
            "r": ["--tap", "responder"], "R": ["--tap", "responder", "--complete"]}
EVERYWHERE = "ncqQrR"


class Case:
    """One violation: its name; the rule that it breaks; `make(conn, bad)`, its packets() with and without it; the settings in which it has to be found,
    and others in which nothing is required of it. The clean twin must not fail in any of them. `apart`: what is found of it may belong to no
    connection."""

    def __init__(self, name, rule, make, must, may="", apart=False):
        self.name, self.rule, self.make, self.must, self.may, self.apart = name, rule, make, must, may, apart


def case(name, rule, text, must=EVERYWHERE, may=""):
    return Case(name, rule, lambda conn, bad: packets(conn, text, bad), must, may)
