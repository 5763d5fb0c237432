"""Whether this machine is busy with something else: a process that does nothing but sleep for a millisecond says how late it wakes, and the
kernel how much time a hypervisor took away. It asks no program of ours."""
import os
import subprocess
import sys
import time

NAP = 0.001    # s that it sleeps,
LATE = 0.001   # and from so much on that it oversleeps it was late
SHARE = 0.03   # of the time: a machine that lets it wait, or is taken away, for longer is busy

SLEEPER = """
import sys, time, threading
late = [0.0, 0]
def nap():
    while True:
        begin = time.monotonic()
        time.sleep(%g)
        over = time.monotonic() - begin - %g
        if over >= %g:
            late[0] += over
            late[1] += 1
threading.Thread(target=nap, daemon=True).start()
for line in sys.stdin:
    print(late[0], late[1], flush=True)
""" % (NAP, NAP, LATE)


def stolen():
    """s that a hypervisor took from all processors."""
    with open("/proc/stat") as f:
        fields = f.readline().split()
    return int(fields[8]) / 100 if len(fields) > 8 else 0.0


def too_busy(seconds, late, steal, processors):
    """The rule, of what was seen in so many seconds."""
    return late > SHARE * seconds or steal > SHARE * seconds * processors


class Witness:
    """Use it in a `with` statement."""
    def __enter__(self):
        self.child = subprocess.Popen([sys.executable, "-c", SLEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.now, self.ever = self.look(), False  # ever: it was busy once
        return self

    def __exit__(self, *error):
        self.child.kill()
        self.child.wait()

    def look(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        late, n = self.child.stdout.readline().split()
        return time.monotonic(), float(late), int(n), stolen()

    def busy(self):
        """Since it was asked before: whether the machine was too busy, and what was seen, as text."""
        before, self.now = self.now, self.look()
        seconds, late, n, steal = (a - b for a, b in zip(self.now, before))
        said = "a process that only sleeps was late %d times, %.1f %% of %.0f s; %.1f s were stolen" % (n, 100 * late / seconds, seconds, steal)
        is_busy = too_busy(seconds, late, steal, os.cpu_count())
        self.ever |= is_busy
        return is_busy, said


def verdict(missing, most, busy):
    """`missing`: how many tests were not measured. "fine": few enough for any machine; "busy": the machine explains it; "red"."""
    return "fine" if missing <= most else "busy" if busy else "red"


def measured(play, late, most, witness, seconds, say):
    """Of the tests `late` that were not measured, those that still are not: while they are more than `most`, and the machine is busy, play(those) plays
    them again, if that may be done within so many seconds, and returns what is late now."""
    end, longest = time.monotonic() + seconds, 0
    while True:
        busy, said = witness.busy()
        judged = verdict(len(late), most, busy)
        if late:
            say("not measured: %d tests (%d may be): %s: %s; %s" % (len(late), most, " ".join(sorted(late)), judged, said))
        assert judged != "red", "not measured, though this machine is not busy (%s): %s" % (said, " ".join(sorted(late)))
        begin = time.monotonic()
        if judged == "fine" or begin + longest > end:
            return late
        late = play(late)
        longest = max(longest, 1.5 * (time.monotonic() - begin))
