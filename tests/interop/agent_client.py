"""A client of `rdmagen agent`, and what a guest needs to run it: rdmagen with its libraries as a second part of the initial ramdisk."""
import hashlib
import hmac
import io
import os
import re
import shutil
import socket
import subprocess

import image
from lab import Failure, SLOW

TOKEN = "a token for tests only"[:22].replace(" ", "-")
LIBRARIES = "/opt/rdmagen"
RUN = "env LD_LIBRARY_PATH=%s rdmagen"


def initrd(lab, rdmagen):
    """The image's ramdisk with rdmagen in it, in the laboratory's folder."""
    path, part = lab.path("initrd"), io.BytesIO()
    found = re.findall(r"=> (/\S+)", subprocess.run(["ldd", rdmagen], capture_output=True, text=True, check=True).stdout)
    c = image.Cpio(part)
    c.file("usr/bin/rdmagen", rdmagen)
    for f in found:
        if not os.path.basename(f).startswith(("libc.so", "ld-linux")):
            c.file(LIBRARIES[1:] + "/" + os.path.basename(f), os.path.realpath(f))
    c.close()
    shutil.copy(lab.image + "/initrd", path)
    with open(path, "ab") as out:
        out.write(b"\0" * (-out.tell() % 4) + part.getvalue())
    return path


def start(guest, *options, run=RUN):
    """Run the agent in the guest; the job. `run` is how rdmagen is run with the libraries of a folder."""
    guest.run("umask 077; echo %s >/tmp/token" % TOKEN)
    job = guest.start("exec %s agent --bind 10.0.2.15 --token-file /tmp/token %s" % (run % LIBRARIES, " ".join(options)))
    guest.listening("tcp:18517")
    return job


class Refused(Exception):
    """The agent answered with an error: its name, and the text."""
    def __init__(self, name, text):
        super().__init__("%s %s" % (name, text))
        self.name = name


class Agent:
    """A connection. A call sends a request and returns the answer's values; lines that begin with ! are kept in `said`."""
    def __init__(self, port, token=TOKEN, prove=True):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30 * SLOW)
        self.file, self.count, self.said, self.bulk = self.socket.makefile("rb"), 0, [], b""
        self.greeting = self.line()
        if not prove:
            return
        nonce, own = bytes.fromhex(self.greeting.split("nonce=")[1]), os.urandom(32)
        proof = hmac.new(token.encode(), nonce + b"client", hashlib.sha256).hexdigest()
        got = self("auth", hmac=proof, nonce=own.hex())
        if got["hmac"] != hmac.new(token.encode(), own + b"agent", hashlib.sha256).hexdigest():
            raise Failure("the agent does not know the token")

    def line(self):
        line = self.file.readline().decode()
        if not line:
            raise Failure("the agent has gone")
        return line.rstrip("\n")

    def send(self, text, data=b""):
        self.socket.sendall(text.encode() + b"\n" + data)

    def answer(self, tag):
        while True:
            line = self.line()
            if line.startswith("! "):
                self.said.append(line[2:])
                continue
            got, state, *rest = line.split(" ")
            if got != tag:
                raise Failure("an answer to nothing: " + line)
            if state == "err":
                raise Refused(rest[0], " ".join(rest[1:]))
            values = {}
            for word in rest:
                values.setdefault(*word.split("=", 1))
            values["all"] = rest
            if "data" in values:
                self.bulk = self.file.read(int(values["data"]))
            return values

    def __call__(self, verb, data=None, **values):
        self.count += 1
        if data is not None:
            values["data"] = len(data)
        self.send(" ".join([str(self.count), verb, *("%s=%s" % v for v in values.items())]), data or b"")
        return self.answer(str(self.count))

    def refused(self, verb, **values):
        """The errno with which a request fails."""
        try:
            got = self(verb, **values)
        except Refused as e:
            return e.name
        raise Failure("%s %s succeeds: %s" % (verb, values, got))

    def completions(self, cq, n, ms=5000):
        """The next so many completions, as dictionaries."""
        before = len(self.said)
        self("wait wc", cq=cq, n=n, ms=ms * SLOW)
        return [dict(w.split("=", 1) for w in line.split()[1:]) for line in self.said[before:] if line.startswith("wc ")]

    def close(self):
        self.file.close()
        self.socket.close()
