"""RoCEv2 frames as they pass the laboratory's wire: what they hold, and how to change it with the ICRC made anew. For a Wire's hook."""
import struct
import zlib

UC_SEND_MIDDLE = 0x21
THEIRS, OURS = 0, 1  # sides of the wire: from the guest, from rdmagen
SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND = 0x00, 0x01, 0x02, 0x04
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, READ_REQ = 0x06, 0x07, 0x08, 0x0c
RESP_FIRST, RESP_MIDDLE, RESP_LAST, ACK = 0x0d, 0x0e, 0x0f, 0x11
REQ, REJ, REP, RTU, DREQ, DREP = 0x10, 0x12, 0x13, 0x14, 0x15, 0x16
BTH, PAYLOAD = 42, 54  # offsets in a frame over IPv4: of the BTH, and of what follows it


def is_roce(frame):
    """IPv4 without options, to UDP port 4791."""
    return frame[12:14] == b"\x08\x00" and frame[14] == 0x45 and frame[23] == 17 and frame[36:38] == b"\x12\xb7"


def opcode(frame):
    return frame[BTH] if is_roce(frame) else None


def cm_attr(frame):
    """Attribute of a message of the connection manager, else None."""
    if not is_roce(frame) or frame[BTH + 5:BTH + 8] != b"\0\0\1" or frame[PAYLOAD + 9] != 7:
        return None
    return struct.unpack_from(">H", frame, PAYLOAD + 8 + 16)[0]


def with_icrc(frame):
    """The frame with a right ICRC."""
    end = 14 + struct.unpack_from(">H", frame, 16)[0]
    b = bytearray(frame[14:end - 4])
    b[1] = b[8] = b[10] = b[11] = 0xff            # TOS, TTL, header checksum
    b[26] = b[27] = b[32] = 0xff                  # UDP checksum, FECN/BECN
    return frame[:end - 4] + struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(b))) + frame[end:]


def changed(frame, offset, data):
    """The frame with `data` at `offset` behind the BTH."""
    at = PAYLOAD + offset
    return with_icrc(frame[:at] + data + frame[at + len(data):])


class Hook:
    """Does something to the n-th packet of a kind that comes from one side; `done` tells whether it came."""
    def __init__(self, side, op, n, what):
        self.side, self.op, self.n, self.what, self.seen, self.done = side, op, n, what, 0, False

    def __call__(self, side, frame):
        if side == self.side and opcode(frame) == self.op and not self.done:
            self.seen += 1
            if self.seen == self.n:
                self.done = True
                return self.what(frame)
        return (frame,)


class Silence:
    """From the n-th packet of a kind that comes from one side on nothing gets through from either side: the peer has died."""
    def __init__(self, side, op, n):
        self.side, self.op, self.n, self.seen = side, op, n, 0

    def __call__(self, side, frame):
        self.seen += side == self.side and opcode(frame) == self.op
        return () if self.seen >= self.n else (frame,)


class Crossing:
    """Holds the DREQ of either side until the other one has sent its own, then lets both go."""
    def __init__(self, wire):
        self.wire, self.held, self.done = wire, {}, False

    def __call__(self, side, frame):
        if cm_attr(frame) != DREQ or self.done:
            return (frame,)
        self.held[side] = frame
        if len(self.held) == 2:
            self.done = True
            self.wire.send(side, self.held[1 - side])
            return (frame,)
        return ()


class PsnShift:
    """The guest's REQ asks for another first PSN, and what belongs to it is translated both ways: so a peer that chooses its PSNs by chance
    has those that a test needs."""
    STARTING_PSN = 8 + 24 + 44  # behind the BTH: DETH, MAD header, in the REQ

    def __init__(self, first):
        self.first, self.by = first, None

    def __call__(self, side, frame):
        if side == THEIRS and cm_attr(frame) == REQ:
            at = PAYLOAD + self.STARTING_PSN
            self.by = (self.first - int.from_bytes(frame[at:at + 3], "big")) & 0xffffff
            return (changed(frame, self.STARTING_PSN, self.first.to_bytes(3, "big")),)
        # Our requests, and the guest's answers to them.
        if self.by is None or not is_roce(frame) or opcode(frame) >> 5 or (RESP_FIRST <= opcode(frame) <= 0x12) == (side == OURS):
            return (frame,)
        by = self.by if side == THEIRS else -self.by
        psn = (int.from_bytes(frame[BTH + 9:BTH + 12], "big") + by) & 0xffffff
        return (with_icrc(frame[:BTH + 9] + psn.to_bytes(3, "big") + frame[BTH + 12:]),)
