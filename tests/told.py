"""What is told of simulated networks with trouble: each line of tests/told.tsv is a conversation of `rdmagen sim`, or a scenario, captured at its
requester and its responder; tests/told/NAME has what explain, check and flows say of it (tests/golden.test)."""
import json
import os
import shlex
import subprocess

BUILD, OUT = os.path.abspath(os.environ.get("BUILD", "build")), os.environ.get("OUT", "/tmp")
TAPS = ("requester", "responder")
FILES = [tap + ".pcap" for tap in TAPS]
ENV = dict(os.environ, TZ="UTC", LC_ALL="C.UTF-8", NO_COLOR="1", COLUMNS="120")


def run(program, *args):
    """What a program says of files in the folder of the captures."""
    return subprocess.run(["%s/%s" % (BUILD, program), *args], cwd=OUT, env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False).stdout


def verdicts(*args):
    """The totals, and a line for each finding, of check."""
    said = json.loads(run("rdmatrace", "check", "-T", "json", "--complete", *args))
    lines = ["%s %s, connection %s, frames %s%s, needs %s, %d times: %s" % (
        f["rule"], f["verdict"] or f["severity"], f["connection"], f["frames"], " for %s" % f["cause_frames"] if f["cause_frames"] else "",
        ", ".join(f["needs"]) or "nothing", f["times"], f["headline"]) for f in said["findings"]]
    return "".join(line + "\n" for line in [", ".join("%s %s" % item for item in said["summary"].items()), *lines])


def told(words):
    """All that is said of a conversation."""
    for f in FILES:
        if os.path.exists(OUT + "/" + f):
            os.unlink(OUT + "/" + f)
    args = [os.path.abspath(w) if os.path.isfile(w) else w for w in words]
    run("rdmagen", "sim", *args, *(a for tap, f in zip(TAPS, FILES) for a in ("-w", "%s:%s" % (tap, f))))
    parts = [("explain --all " + f, run("rdmatrace", "explain", "--all", f)) for f in FILES]
    parts.append(("explain " + " ".join(FILES), run("rdmatrace", "explain", *FILES)))
    parts += [("check --complete --tap %s %s" % (tap, f), verdicts("--tap", tap, f)) for tap, f in zip(TAPS, FILES)]
    parts.append(("flows -V " + FILES[0], run("rdmatrace", "flows", "-V", FILES[0])))
    return "$ rdmagen sim %s\n" % shlex.join(words) + "".join("\n$ rdmatrace %s\n%s" % part for part in parts)


def conversations():
    """Name of each, and what is told of it."""
    with open("tests/told.tsv", encoding="utf-8") as table:
        lines = [line.rstrip("\n").split("\t") for line in table if line.strip() and not line.startswith("#")]
    for name, words in lines:
        yield name, told(shlex.split(words))
