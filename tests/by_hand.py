"""Exchange keys with a server of perftest's kind in the name of a queue pair that another program then plays: by_hand.py [--send] SERVER
OWN-ADDRESS COMMAND..., to which --dest-qp, --psn, --qpn and, without --send, --rkey and --va are added."""
import socket
import subprocess
import sys

QPN, PSN = 0x123456, 0x00beef
sends = sys.argv[1] == "--send"
server, own, *command = sys.argv[1 + sends:]
s = socket.create_connection((server, 18515))


def swap(data):
    s.sendall(data)
    got = b""
    while len(got) < len(data):
        got += s.recv(len(data) - len(got)) or sys.exit("the server has gone")
    return got


assert swap(b"6.06".ljust(16, b"\0"))[:4] == b"6.06"
assert swap(bytes((0, 0, 16, 0))) == bytes((0, 0, 16, 0)) and swap(bytes((0, 0, 0, 64))) == bytes((0, 0, 0, 64))
assert swap(b"5\0") == b"5\0"
gid = ":".join("%02x" % b for b in bytes(10) + b"\xff\xff" + socket.inet_aton(own))
keys = ("0000:0001:%06x:%06x:%08x:%016x:%s:00000000:" % (QPN, PSN, not sends, 0x10000, gid)).encode() + b"\0"
for _ in range(4 if sends else 3):
    answer = swap(keys).decode().split(":")
qpn, psn, rkey, va = (int(x, 16) for x in answer[2:6])
status = subprocess.call(command + ["--dest-qp", str(qpn), "--psn", "%d:%d" % (PSN, psn), "--qpn", str(QPN)] +
                         ([] if sends else ["--rkey", str(rkey), "--va", str(va)]))
swap(keys)
assert swap(b"done\0") == b"done\0"
sys.exit(status)
