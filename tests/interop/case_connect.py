"""rdmagen connect against ucmatose and udaddy: many connections at once, private data, refusals, datagram services (SIDR), receives that
are not there (RNR), and how connections end."""
import re
import time

from case_rdmagen import OWN, OWN6, Rdmagen, behind_wire as guests  # noqa: F401
from counters import SILENCE
from frames import Crossing, SEND, Silence, THEIRS

COUNTS = "%d connection%s, %d sent, %d received, 0 wrong"


def client(lab, guest, name, tool, connections, count, size, address, *extra):
    """The guest listens."""
    server = guest.start("%s -c %d -C %d -S %d -b %s" % (tool, connections, count, size, address))
    guest.listening(tool)
    us = Rdmagen(lab, guest, name, "connect", address, "-c", str(connections), "-C", str(count), "-S", str(size), "-V", "-v",
                 *(["--datagram"] if tool == "udaddy" else []), *extra)
    out = us.wait()
    assert COUNTS % (connections, "s" if connections != 1 else "", connections * count, connections * count) in out, out
    status, seen = server.wait()
    assert status == 0 and "return status 0" in seen and (count == 0 or "data transfers complete" in seen), seen
    return us, out


def server(lab, guest, name, tool, connections, count, size, own, *extra, status=0):
    """The guest connects."""
    us = Rdmagen(lab, guest, name, "connect", "-s", "-c", str(connections), "-C", str(count), "-S", str(size), "-V", "-v",
                 *(["--datagram"] if tool == "udaddy" else []), "--addr", own, *extra)
    got, seen = guest.run("%s -c %d -C %d -S %d -s %s" % (tool, connections, count, size, own))
    out = us.wait()
    assert got == status, "status %d: %s%s" % (got, seen, out)
    if not status:
        assert "return status 0" in seen and "data transfers complete" in seen, seen
        assert COUNTS % (connections, "s" if connections != 1 else "", connections * count, connections * count) in out, out
    return out, seen


def case_connect_ucmatose_server(lab, wire, guest):
    client(lab, guest, "uc1", "ucmatose", 1, 10, 100, guest.ip)


def case_connect_ucmatose_server_ipv6_eight_connections(lab, wire, guest):
    client(lab, guest, "uc8", "ucmatose", 8, 20, 5000, guest.ip6)


def case_connect_ucmatose_client(lab, wire, guest):
    server(lab, guest, "us1", "ucmatose", 1, 10, 100, OWN)


def case_connect_ucmatose_client_ipv6_eight_connections(lab, wire, guest):
    server(lab, guest, "us8", "ucmatose", 8, 20, 5000, OWN6)


def case_connect_udaddy_server(lab, wire, guest):
    client(lab, guest, "ud1", "udaddy", 1, 10, 1000, guest.ip)


def case_connect_udaddy_server_ipv6_four_services(lab, wire, guest):
    client(lab, guest, "ud4", "udaddy", 4, 10, 200, guest.ip6)


def case_connect_udaddy_client(lab, wire, guest):
    server(lab, guest, "us_ud1", "udaddy", 1, 10, 1000, OWN)


def case_connect_udaddy_client_ipv6_four_services(lab, wire, guest):
    server(lab, guest, "us_ud4", "udaddy", 4, 10, 200, OWN6)


def case_connect_service_without_listener_is_refused(lab, wire, guest):
    out = Rdmagen(lab, guest, "noservice", "connect", guest.ip, "--datagram").wait(status=1)
    assert "the service was refused" in out, out


def case_connect_refuses_with_a_reason(lab, wire, guest):
    out, seen = server(lab, guest, "refuse", "ucmatose", 1, 10, 100, OWN, "--reject", "3", status=3)
    assert "RDMA_CM_EVENT_REJECTED, error: 3" in seen and "1 refused" in out, seen + out


def case_connect_refuses_a_service(lab, wire, guest):
    out, seen = server(lab, guest, "refuse_ud", "udaddy", 1, 10, 100, OWN, "--reject", "2", status=2)
    assert "error: 2" in seen and "1 refused" in out, seen + out


def case_connect_disconnects_first(lab, wire, guest):
    us, out = client(lab, guest, "leave", "ucmatose", 3, 10, 100, guest.ip, "-d")
    assert us.packets().count("DREQ") >= 3, us.decoded()


def case_connect_crossing_disconnects(lab, wire, guest):
    wire.hook = crossing = Crossing(wire)
    try:
        us, out = client(lab, guest, "crossing", "ucmatose", 1, 10, 100, guest.ip, "-d")
    finally:
        wire.hook = None
    assert crossing.done, us.decoded()


def case_connect_with_few_receives(lab, wire, guest):
    """Our RNR NAKs: the guest sends again."""
    lab.expect(rcvd_rnr_err=range(1, 200))
    server(lab, guest, "rnr", "ucmatose", 1, 50, 3000, OWN, "-r", "1")


def case_connect_peer_without_receives(lab, wire, guest):
    """The guest's RNR NAKs; ucmatose asks for no retries."""
    lab.expect(send_rnr_err=1, out_of_seq_request=range(0, 20))  # it asks for what was behind the message as well
    us = Rdmagen(lab, guest, "no_receives", "connect", "-s", "-C", "20", "-S", "3000", "--addr", OWN)
    got, seen = guest.run("ucmatose -C 5 -S 3000 -s %s" % OWN)
    out = us.wait(status=1)
    assert "a message completed with RNR_RETRY_EXC_ERR" in out and "5 sent" in out, out
    assert got == 0, seen


# What rsockets put into REQ and REP: version 1, flags, credits (16 bits), 4 bytes; then twice an address (64 bits), R_Key (32 bits) and length
# (32 bits): where the peer may write data, and where it tells of more room.
RSOCKETS = "0101010000000000" + ("00000000000010000000123400010000" + "00000000000020000000123400010000")


def private(lab, guest, name, data, status=0):
    us = Rdmagen(lab, guest, name, "connect", "-s", "-C", "0", "--hold", "2", "-v", "--addr", OWN, "--private", "hex:" + data)
    seen = guest.run("timeout 5 rstream -s %s -S 64 -I 1 -C 1" % OWN)[1]
    out = us.wait(status)
    assert ", private data 01" in out, out + seen  # theirs, in the request
    return us.decoded(), seen


def case_connect_private_data_of_another_version(lab, wire, guest):
    packets, seen = private(lab, guest, "private_2", "02")
    assert "CM RTU" in packets and "RDMA WRITE" not in packets, seen + packets


def case_connect_private_data_is_obeyed(lab, wire, guest):
    """Its first message tells of its room or carries data, whichever the guest comes to first."""
    packets, seen = private(lab, guest, "private_1", RSOCKETS, 1)
    assert re.search("RDMA WRITE Only with Immediate .* va 0x(1010|2000) rkey 0x1234 len 16", packets), seen + packets


def case_connect_private_data_to_ucmatose(lab, wire, guest):
    client(lab, guest, "private_56", "ucmatose", 1, 10, 100, guest.ip, "--private", "x" * 56)


def case_connect_rdmagen_dies(lab, wire, guest):
    """The guest's message is never acknowledged: it gives up after the five retries that ucmatose asks for, 2.1 s each."""
    before = guest.counters()["retry_exceeded_err"]
    lab.expect(retry_exceeded_err=1, **SILENCE)
    us = Rdmagen(lab, guest, "dies", "connect", "-s", "-C", "1", "--addr", OWN, "--timeout", "2")
    wire.hook = Silence(THEIRS, SEND, 1)
    try:
        peer = guest.start("ucmatose -C 1 -s %s" % OWN)
        out = us.wait(status=1)
        assert "nothing came for 2 s" in out, out
        end = time.time() + 30
        while guest.counters()["retry_exceeded_err"] == before and time.time() < end:
            time.sleep(0.5)
    finally:
        wire.hook = None
        peer.kill()
