"""What a test in Python counts: expectations that hold, and those that do not."""
import sys

passed = failed = 0


def expect(good, what):
    """Count whether `good` is so; `what` says what is not, if it is not."""
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("FAILED: " + what)


def end():
    """The last line, which tests/run counts, and the exit status."""
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    sys.exit(1 if failed else 0)
