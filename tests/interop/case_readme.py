"""The commands of the README with which rdmagen talks to rping, as they stand there, typed into a shell."""
import os
import re
import subprocess

import lab as laboratory

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def guests(lab):
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        raise laboratory.Skip("no /dev/net/tun")
    if subprocess.run(["unshare", "-rn", "true"], stderr=subprocess.DEVNULL).returncode:
        raise laboratory.Skip("no network namespaces can be made here")
    return ()


def commands():
    """The block of the section that begins with `unshare`."""
    with open(ROOT + "/README.md") as f:
        section = re.search(r"^## A peer without an adapter$(.*?)^## ", f.read(), re.M | re.S)[1]
    return re.search(r"(?:^    .*\n)+", section[section.index("    unshare"):], re.M)[0]


def case_readme_three_commands(lab):
    lines = [x.strip() for x in commands().splitlines()]
    assert len(lines) == 3, lines
    build = os.path.abspath(os.environ.get("BUILD", "build"))
    typed = "\n".join(lines).replace("build/", build + "/") + "\n"
    p = subprocess.run(["bash"], input=typed, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, timeout=120,
                       env=dict(os.environ, SHELL="/bin/bash"))
    assert p.returncode == 0 and "3 pings, 0 wrong" in p.stdout, p.stdout
    assert p.stdout.count("server ping data: rdma-ping-") == 3, p.stdout
