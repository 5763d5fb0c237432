"""Runs of `rdmagen conformance --twin`, for the tests of the battery, of what it measures, of its score cards and of agents that misbehave."""
import json
import os
import subprocess

from tally import patience

BUILD, OUT = os.environ["BUILD"], os.environ["OUT"]


def run(*args, program=BUILD + "/rdmagen"):
    return subprocess.run([program, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=patience(120))


def play(*args, **kw):
    """Exit status and the JSON of a run."""
    r = run("conformance", "--twin", "-T", "json", *args, **kw)
    return r.returncode, json.loads(r.stdout) if r.stdout else {"error": r.stderr}


def listed(*args):
    """The tests that are chosen."""
    return [line.split()[1] for line in run("conformance", "--list", *args).stdout.splitlines()]


def asked_rows():
    """What can be asked of a device, each row with its four columns."""
    with open("gen/conform/battery/coverage.tsv") as f:
        return [line.split("\t") for line in f.read().splitlines() if line[:1] != "#"]


def token_file():
    """A file with a token."""
    path = OUT + "/token"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
        f.write("0123456789abcdef" * 4 + "\n")
    return path
