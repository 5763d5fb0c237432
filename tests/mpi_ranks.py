"""Jobs of rdmatrace-mpi: the environment of mpirun, and the processes that are ranks."""
import glob
import os

ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_btl_vader_single_copy_mechanism="none")


def ranks_of(job):
    """Process numbers of the ranks of a job: each is the child of a process that watches over it, as is the one that releases its memory, which leads
    a session of its own."""
    parent = {}
    for status in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(status) as f:
                pid, rest = f.read().split(" (", 1)
            words = rest[rest.rindex(")") + 2:].split()
            parent[int(pid)] = (rest[:rest.rindex(")")], int(words[1]), words[3] == pid)
        except (OSError, ValueError):
            pass
    mine = {pid for pid, (name, _, leads) in parent.items() if name.startswith("rdmatrace-mpi") and not leads}
    return sorted(pid for pid in mine if parent[pid][1] in mine and parent.get(parent[parent[pid][1]][1], ("", 0))[1] in (job, os.getpid()))
