"""What the scripts of a run share: folders that one of them fills for all, in $SHARED (tests/run). A script that is run by itself has its own."""
import atexit
import fcntl
import hashlib
import os
import shutil
import tempfile

ROOT = os.environ.get("SHARED")
if not ROOT:  # not kept: the next run may be of another build
    ROOT = os.environ["SHARED"] = tempfile.mkdtemp(prefix="shared.")
    atexit.register(shutil.rmtree, ROOT, ignore_errors=True)


def digest(*parts):
    """A name for what follows from these texts and bytes."""
    h = hashlib.sha256()
    for p in parts:
        p = p if isinstance(p, bytes) else str(p).encode()
        h.update(b"%d:" % len(p) + p)
    return h.hexdigest()[:24]


def once(name, fill):
    """The folder `name` as fill(folder) has left it: whoever comes first fills it, others wait for that."""
    folder = os.path.join(ROOT, name)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    if os.path.isdir(folder):
        return folder
    with open(folder + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(folder):
            part = folder + ".part"
            shutil.rmtree(part, ignore_errors=True)
            os.makedirs(part)
            fill(part)
            os.rename(part, folder)
    return folder
