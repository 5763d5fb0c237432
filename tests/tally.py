"""What a test in Python counts: expectations that hold, and those that do not; which of many cases it takes; how long it waits."""
import os
import random
import sys

FAST = os.environ.get("FAIL_FAST") == "1"  # one failure is enough (tests/mutate)
FULL = os.environ.get("TEST_FULL") == "1"
passed = failed = 0


def expect(good, what):
    """Count whether `good` is so; `what`, a text or a function that gives it, says what is not, if it is not."""
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("FAILED: " + (what() if callable(what) else what))
        if FAST:
            end()


def sample(what, cases, few, seed=1):
    """`few` of the cases, under ASan half as many, in their order, drawn by a fixed seed, and a line that says so; all of them in `make soak`."""
    cases = list(cases)
    few = few // 2 if os.environ.get("SANITIZE") == "1" else few
    if FULL or len(cases) <= few:
        print("all %d %s" % (len(cases), what))
        return cases
    chosen = sorted(random.Random(seed).sample(range(len(cases)), few))
    print("%d of %d %s, drawn by seed %d; with TEST_FULL=1 all of them" % (few, len(cases), what, seed), flush=True)
    return [cases[i] for i in chosen]


def patience(seconds):
    """A limit of time, on a machine that may be slow just now."""
    return seconds * int(os.environ.get("TIME_SCALE", "1"))


def end():
    """The last line, which tests/run counts, and the exit status."""
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    sys.exit(1 if failed else 0)
