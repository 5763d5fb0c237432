#!/usr/bin/env python3
"""Run the interoperability cases against soft-RoCE guests: run.py [REGEX...] by name, all by default. The files case_*.py are run two
at a time (INTEROP_JOBS), each in a process with guests and a folder of its own. Each result comes with its seconds; the last line counts.
A case that takes too long fails; behind a guest that no longer answers its file goes on with new guests. With LIMIT=SECONDS (tests/run) all of
it ends before that: what has not begun by then is skipped, and that is said. With INTEROP_AGAIN=N, up to N cases that failed are run once more, alone and with fresh guests, and the last run counts: for machines whose
load is not ours; and every case that failed while this machine was busy with something else, as busy.py saw it, is, however many they are. INTEROP_KEEP=DIR: the captures of cases that failed are kept there. Exit status 0: all passed, 1: not, 77: skipped, with the reason."""
import glob
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import busy  # noqa: E402
import lab as laboratory  # noqa: E402
import counters  # noqa: E402

# A file holds case_NAME(lab, ...) functions and `def guests(lab)`, which boots what they need and returns their other arguments. What a case
# returns is the reason why it was skipped.
NEW_GUESTS = 2  # times that a file gets new guests in place of those that no longer answer
END = float(os.environ.get("INTEROP_END", "inf"))  # seconds since 1970 after which no case begins
COUNTS = re.compile(r"^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$")
FAILED = re.compile(r"^not ok (\w+) \(.*?\)( # busy)?")


def modules():
    return sorted(os.path.basename(f)[:-3] for f in glob.glob(HERE + "/case_*.py"))


def cases(module, wanted):
    """The functions in the order in which they were defined."""
    found = [(n[5:], f) for n, f in vars(module).items() if n.startswith("case_") and callable(f)]
    return [(n, f) for n, f in found if not wanted or any(re.fullmatch(w, n) for w in wanted)]


def say(text):
    print(text, flush=True)


class TimeUp(Exception):
    """A case has run for its time."""


def time_up(signum, frame):
    raise TimeUp("not done after %d s" % (laboratory.CASE_SECONDS * laboratory.SLOW))


def tidy(lab, name):
    """A case has failed: keep its captures, end what it started. False if a guest no longer answers."""
    for n, t in enumerate(lab.tapes):
        if os.environ.get("INTEROP_KEEP") and os.path.exists(t.path):
            shutil.copy(t.path, os.path.join(os.environ["INTEROP_KEEP"], "%s.%d%s" % (name, n, os.path.splitext(t.path)[1])))
    try:
        for g in lab.guests:
            g.tidy()
    except (laboratory.Failure, OSError) as e:
        say("# %s" % e)
        return False
    return True


def run_case(lab, f, args):
    """The reason why it was skipped, if it was."""
    signal.signal(signal.SIGALRM, time_up)
    signal.alarm(laboratory.CASE_SECONDS * laboratory.SLOW)
    try:
        ledger = counters.Ledger(lab, lab.guests)
        why = f(lab, *args)
        if not why:
            ledger.close()
        return why
    finally:
        signal.alarm(0)


def run(lab, module, todo, total):
    """Run the cases of `todo` and take them from it, and add to what passed, failed and was skipped, until it is empty or a guest no longer
    answers."""
    start = time.time()
    try:
        args = module.guests(lab)
    except laboratory.Skip as why:
        for name, f in todo:
            say("ok %s # SKIP %s" % (name, why))
        total[2] += len(todo)
        todo.clear()
        return
    except (laboratory.Failure, OSError) as e:
        say("# guests of %s: %s" % (module.__name__, e))
        return
    say("# guests of %s ready after %.1f s" % (module.__name__, time.time() - start))
    while todo:
        (name, f), start = todo.pop(0), time.time()
        was_busy, seen = False, ""
        if start > END:
            total[2] += 1
            say("ok %s # SKIP the time is up" % name)
            continue
        try:
            with busy.Witness() as witness:
                try:
                    why = run_case(lab, f, args)
                finally:
                    was_busy, seen = witness.busy()
        except Exception as e:  # pylint: disable=broad-except
            total[1] += 1
            say("not ok %s (%.1f s)%s" % (name, time.time() - start, " # busy: " + seen if was_busy else ""))
            say(re.sub("^", "    ", "".join(traceback.format_exception(e)), flags=re.M))
            if not tidy(lab, name):
                return
        else:
            total[bool(why) * 2] += 1
            say("ok %s%s (%.1f s)" % (name, " # SKIP " + why if why else "", time.time() - start))


def run_module(name, wanted):
    """In a process of its own."""
    module, total = importlib.import_module(name), [0, 0, 0]
    todo = cases(module, wanted)
    for _ in range(1 + NEW_GUESTS):
        if todo:
            with laboratory.Lab() as lab:
                run(lab, module, todo, total)
    for name, f in todo:
        say("not ok %s (no guest that answers)" % name)
    say("%d passed, %d failed, %d skipped" % (total[0], total[1] + len(todo), total[2]))


class Runner:
    """Runs the files, so many at a time, and passes on what they print, each line whole."""
    def __init__(self, wanted):
        self.wanted, self.total, self.lock = wanted, [0, 0, 0], threading.Lock()
        self.children, self.failed, self.stopping = [], [], False  # failed: names, and whether the machine was busy
        todo = {m: len(cases(importlib.import_module(m), wanted)) for m in modules()}
        self.queue = sorted((m for m in todo if todo[m]), key=todo.get)  # the one with most cases is taken first, from the end

    def one(self, name):
        with self.lock:
            if self.stopping:
                return
            child = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--file", name, *self.wanted], text=True,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=laboratory.end_with_parent)
            self.children.append(child)
        counts = None
        for line in child.stdout:
            counts = COUNTS.match(line)
            self.failed += [(name, bool(was)) for name, was in FAILED.findall(line)]
            if not counts:
                with self.lock:
                    say(line.rstrip("\n"))
        status = child.wait()
        with self.lock:
            if not counts or status:
                self.total[1] += 1
                say("not ok %s: ended with status %d" % (name, status))
            if counts:
                self.total = [a + int(b) for a, b in zip(self.total, counts.groups())]

    def worker(self):
        while True:
            with self.lock:
                if not self.queue or self.stopping:
                    return
                name = self.queue.pop()
            self.one(name)

    def stop(self):
        with self.lock:
            self.stopping = True
        for c in self.children:
            if c.poll() is None:
                c.terminate()
        for c in self.children:
            c.wait()


def rounds(wanted, jobs):
    """Run the cases that match, so many files at a time."""
    runner = Runner(wanted)
    threads = [threading.Thread(target=runner.worker, daemon=True) for i in range(jobs)]
    try:
        for t in threads:
            t.start()
        for t in threads:
            while t.is_alive():
                t.join(0.2)
    finally:
        runner.stop()
    return runner


def to_repeat(failed, most):
    """Which of the cases that failed, with whether the machine was busy then, are run once more: all if they are few, else those of a busy machine."""
    return [name for name, was_busy in failed if len(failed) <= most or (most and was_busy)]


def main(wanted):
    laboratory.check()  # skips everything where it cannot run
    laboratory.exit_on_signals()
    start = time.time()
    if "LIMIT" in os.environ:
        os.environ["INTEROP_END"] = "%d" % (start + 0.75 * int(os.environ["LIMIT"]))
    first = rounds(wanted, int(os.environ.get("INTEROP_JOBS", "2")))
    passed, failed, skipped = first.total
    chosen = to_repeat(first.failed, int(os.environ.get("INTEROP_AGAIN", "0")))
    if chosen:
        say("# once more: %s" % " ".join(chosen))
        again = rounds(chosen, 1).total
        passed, failed, skipped = passed + again[0], failed - len(chosen) + again[1], skipped + again[2]
    say("# %.0f s" % (time.time() - start))
    say("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
    return 1 if failed or not passed + skipped else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--file"]:
        run_module(sys.argv[2], sys.argv[3:])
    else:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        sys.exit(main(sys.argv[1:]))
