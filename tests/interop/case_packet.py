"""rdmagen on a network interface (AF_PACKET) against one guest, as root in a network namespace of its own: with the interface's addresses,
10.77.0.8 and fd77::8, and with those that no host has, 10.77.0.9 and fd77::9."""
import re
import subprocess

import lab as laboratory
from case_rdmagen import OWN, OWN6, Rdmagen, fields, pings, serve_pings

HOST, HOST6 = "10.77.0.8", "fd77::8"


def ip(*args):
    subprocess.run(["ip", *args], check=True)


def guests(lab):
    laboratory.own_network()
    ip("tuntap", "add", "dev", "guest0", "mode", "tap")
    ip("addr", "add", HOST + "/24", "dev", "guest0")
    ip("addr", "add", HOST6 + "/64", "dev", "guest0", "nodad")
    ip("link", "set", "guest0", "mtu", "4200", "up")
    guest = lab.guest(1, tap="guest0", mtu=4200)
    guest.ready()
    return (guest,)


def quiet(lab, name):
    """The host's own stack has not told the guest that UDP port 4791 is closed."""
    lines = fields(lab.path(name + ".pcapng"), "_ws.col.Protocol", "_ws.col.Info")
    assert not [x for x in lines if "nreachable" in " ".join(x)], lines


def case_packet_ping_rping_server_from_the_interface_ipv4(lab, guest):
    pings(guest, 5, 20000, guest.ip, lab, "host4", mtu=4200)
    quiet(lab, "host4")


def case_packet_ping_rping_server_from_the_interface_ipv6(lab, guest):
    pings(guest, 5, 20000, guest.ip6, lab, "host6", mtu=4200)
    quiet(lab, "host6")


def case_packet_ping_rping_server_from_an_own_address_ipv4(lab, guest):
    pings(guest, 5, 20000, guest.ip, lab, "own4", "--addr", OWN, mtu=4200)
    quiet(lab, "own4")


def case_packet_ping_rping_server_from_an_own_address_ipv6(lab, guest):
    pings(guest, 5, 20000, guest.ip6, lab, "own6", "--addr", OWN6, mtu=4200)
    quiet(lab, "own6")


def case_packet_ping_rping_client_to_the_interface_ipv4(lab, guest):
    serve_pings(guest, 5, 20000, HOST, lab, "to_host4")
    quiet(lab, "to_host4")


def case_packet_ping_rping_client_to_the_interface_ipv6(lab, guest):
    serve_pings(guest, 5, 20000, HOST6, lab, "to_host6")
    quiet(lab, "to_host6")


def case_packet_ping_rping_client_to_an_own_address(lab, guest):
    serve_pings(guest, 5, 20000, OWN, lab, "to_own4")


def case_packet_path_mtu_is_the_interfaces(lab, guest):
    for mtu, longest in ((4200, 4096), (1500, 1024), (600, 512)):
        ip("link", "set", "guest0", "mtu", str(mtu)) if mtu >= 1280 else None
        name = "mtu%d" % mtu
        pings(guest, 2, 20000, guest.ip, lab, name, *(["--mtu", "512"] if mtu < 1280 else []), mtu=mtu)
        sizes = [int(x[0]) for x in fields(lab.path(name + ".pcapng"), "frame.len")]
        assert longest <= max(sizes) <= longest + 80, max(sizes)
    ip("link", "set", "guest0", "mtu", "4200")


def case_packet_pingpong(lab, guest):
    """The exchange of addresses goes over the same interface by TCP."""
    gids = guest.run("cd /sys/class/infiniband/rxe0/ports/1/gids; for i in 0 1 2 3 4 5; do cat $i; done")[1].split()
    index = [i for i, g in enumerate(gids) if g.endswith("ffff:0a4d:0001")][0]
    for kind in ("RC", "UC", "UD", "SRQ"):
        peer = guest.start("ibv_%s_pingpong -g %d -s 1000 -n 200" % (kind.lower(), index))
        guest.listening("tcp:18515")
        out = Rdmagen(lab, guest, "pp" + kind, "pingpong", guest.ip, "-c", kind, "-S", "1000", "-n", "200", "--mtu", "1024", "-V").wait()
        assert re.search("^2[01][0-9] sent, 2[01][0-9] received, 0 wrong", out, re.M), out
        status, seen = peer.wait()
        assert status == 0 and "200 iters in" in seen, seen


def case_packet_connect_ucmatose(lab, guest):
    server = guest.start("ucmatose -c 4 -b %s" % guest.ip)
    guest.listening("ucmatose")
    out = Rdmagen(lab, guest, "ucmatose", "connect", guest.ip, "-c", "4").wait()
    assert "4 connections, 40 sent, 40 received, 0 wrong" in out, out
    status, seen = server.wait()
    assert status == 0 and "return status 0" in seen, seen


def case_packet_connect_udaddy(lab, guest):
    us = Rdmagen(lab, guest, "udaddy", "connect", "-s", "--datagram", "-V")
    status, seen = guest.run("udaddy -s %s" % HOST)
    out = us.wait()
    assert status == 0 and "1 connection, 10 sent, 10 received, 0 wrong" in out, out + seen
