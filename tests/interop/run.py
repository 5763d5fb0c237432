#!/usr/bin/env python3
"""Run the interoperability cases against soft-RoCE guests: run.py [REGEX...] by name, all by default. Exit status 0: all passed, 77: skipped,
with the reason; the last line counts."""
import importlib
import os
import re
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lab as laboratory  # noqa: E402

# A module holds case_NAME(lab, ...) functions and `def guests(lab)`, which boots what they need and returns their other arguments.
MODULES = ["case_guests", "case_rdmagen", "case_loss", "case_pingpong"]


def cases(module, wanted):
    """The functions in the order in which they were defined."""
    found = [(n[5:], f) for n, f in vars(module).items() if n.startswith("case_") and callable(f)]
    return [(n, f) for n, f in found if not wanted or any(re.fullmatch(w, n) for w in wanted)]


def run(lab, module, wanted):
    passed = failed = skipped = 0
    todo = cases(module, wanted)
    if not todo:
        return 0, 0, 0
    start = time.time()
    args = module.guests(lab)
    print("# guests of %s ready after %.1f s" % (module.__name__, time.time() - start))
    for name, f in todo:
        start = time.time()
        try:
            why = f(lab, *args)
        except Exception as e:  # pylint: disable=broad-except
            failed += 1
            print("not ok %s (%.1f s)" % (name, time.time() - start))
            print(re.sub("^", "    ", "".join(traceback.format_exception(e)), flags=re.M))
        else:
            passed, skipped = passed + (not why), skipped + bool(why)
            print("ok %s%s (%.1f s)" % (name, " # SKIP " + why if why else "", time.time() - start))
        sys.stdout.flush()
    return passed, failed, skipped


def main():
    total = [0, 0, 0]
    for name in MODULES:
        with laboratory.Lab() as lab:
            total = [a + b for a, b in zip(total, run(lab, importlib.import_module(name), sys.argv[1:]))]
    print("%d passed, %d failed, %d skipped" % tuple(total))
    return 1 if total[1] or not sum(total) else 0


if __name__ == "__main__":
    sys.exit(main())
