/* layer 3 tests: backends: each carries frames unchanged; the kernel's filter passes what libpcap's compiler passes. */
#include "clock.h"
#include "dissect/pkt.h"
#include "gen/endpoint/policy.h"
#include "gen/live/backends/be_filter.h"
#include "src/cap/live.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static const char TEXT[] =
    "\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\x06 not really ARP but it will do as a frame of some length";

static struct backend *must_open(const char *spec, const char *iface)
{
    struct backend_error err = {""};
    struct backend *b = NULL;
    int r = backend_open(&b, spec, iface, &err);

    cr_assert_eq(r, 0, "%s: %s", spec, err.msg);
    return b;
}

/* A directory for sockets; removed with what is in it by end(). */
static char dir[] = "/tmp/backendXXXXXX";
static char spec_a[200], spec_b[200];
static void begin(void)
{
    cr_assert(mkdtemp(dir));
    snprintf(spec_a, sizeof spec_a, "unix:%s/a,%s/b", dir, dir);
    snprintf(spec_b, sizeof spec_b, "unix:%s/b,%s/a", dir, dir);
}
static void end(void)
{
    cr_assert_eq(rmdir(dir), 0, "a socket was left behind");
}

/* Wait up to a second for a frame. */
static int take(struct backend *b, struct backend_frame *f)
{
    for (int i = 0, r; i < 100; i++)
        if ((r = b->ops->rx(b, f)) != 0)
            return r;
        else
            usleep(10000);
    return 0;
}

static void send_and_compare(struct backend *from, struct backend *to)
{
    struct backend_frame f;

    for (uint32_t len = 14; len <= sizeof TEXT; len += 11) {
        cr_assert_eq(backend_send(from, (const uint8_t *)TEXT, len), 0);
        cr_assert_eq(from->ops->flush(from), 0);
        cr_assert_eq(take(to, &f), 1, "nothing came");
        cr_assert_eq(f.len, len);
        cr_assert_eq(memcmp(f.data, TEXT, len), 0);
    }
    cr_assert_eq(to->ops->rx(to, &f), 0);
    cr_assert_eq(backend_stats(from)->sent, backend_stats(to)->received);
}

Test(backend, unknown_kinds_and_wrong_arguments_are_refused_with_a_message)
{
    static const struct {
        const char *spec, *says;
        int err;
    } wrong[] = {{"carrier-pigeon", "no backend 'carrier-pigeon'", -ENOENT},
                 {"unix", "unix:OWN,PEER", -EINVAL},
                 {"unix:/tmp/x", "unix:OWN,PEER", -EINVAL},
                 {"unix:,", "a path has", -EINVAL},
                 {"file", "file:PATH", -EINVAL},
                 {"file:/nowhere/x.pcap", "/nowhere/x.pcap", -ENOENT},
                 {"packet", "-I", -EINVAL}};

    for (unsigned i = 0; i < ARRAY_LEN(wrong); i++) {
        struct backend_error err = {""};
        struct backend *b = NULL;
        cr_expect_eq(backend_open(&b, wrong[i].spec, NULL, &err), wrong[i].err, "%s", wrong[i].spec);
        cr_expect(strstr(err.msg, wrong[i].says), "%s: %s", wrong[i].spec, err.msg);
    }
    backend_close(NULL);
}

Test(backend, memory_connects_two_openers_of_a_name)
{
    struct backend *a = must_open("memory:x", NULL), *b = must_open("memory:x", NULL), *c = must_open("memory:y", NULL);
    struct backend_error err = {""};
    struct backend *third = NULL;
    struct backend_frame f;

    cr_assert_eq(backend_open(&third, "memory:x", NULL, &err), -EBUSY);
    send_and_compare(a, b);
    send_and_compare(b, a);
    cr_assert_eq(c->ops->rx(c, &f), 0);
    cr_assert_eq(backend_send(c, (const uint8_t *)TEXT, 60), 0);
    cr_assert_eq(c->stats.unsent, 1);
    backend_close(a);
    backend_close(c);
    cr_assert_eq(backend_send(b, (const uint8_t *)TEXT, 60), 0);
    cr_assert_eq(b->stats.unsent, 1);
    backend_close(b);
}

Test(backend, memory_tells_when_its_queue_is_full)
{
    struct backend *a = must_open("memory:x", NULL), *b = must_open("memory:x", NULL);
    struct backend_frame f;
    unsigned n = 0;

    while (backend_send(a, (const uint8_t *)TEXT, 60) == 0)
        n++;
    cr_assert_eq(backend_send(a, (const uint8_t *)TEXT, 60), -EAGAIN);
    for (unsigned i = 0; i < n; i++)
        cr_assert_eq(b->ops->rx(b, &f), 1);
    cr_assert_eq(b->ops->rx(b, &f), 0);
    cr_assert_eq(backend_send(a, (const uint8_t *)TEXT, 60), 0);
    backend_close(a);
    backend_close(b);
}

Test(backend, unix_sockets_carry_frames_both_ways, .init = begin, .fini = end)
{
    struct backend *a = must_open(spec_a, NULL), *b = must_open(spec_b, NULL);

    send_and_compare(a, b);
    send_and_compare(b, a);
    backend_close(a);
    backend_close(b);
}

Test(backend, unix_frames_have_the_time_at_which_they_were_sent, .init = begin, .fini = end)
{
    struct backend *a = must_open(spec_a, NULL), *b = must_open(spec_b, NULL);
    struct backend_frame f = {0};
    ns_t sent;

    cr_assert_eq(backend_send(a, (const uint8_t *)TEXT, 60), 0);
    cr_assert_eq(a->ops->flush(a), 0);
    sent = clock_ns(CLOCK_REALTIME);
    usleep(20000);
    cr_assert_eq(take(b, &f), 1);
    cr_expect_eq(b->stamps, BACKEND_STAMPS_KERNEL);
    cr_expect_eq(f.stamp, BACKEND_STAMPS_KERNEL);
    cr_expect(f.ts <= sent && f.ts > sent - NS_PER_S, "%lld and %lld", (long long)f.ts, (long long)sent);
    backend_close(a);
    backend_close(b);
}

Test(backend, unix_frames_to_nobody_are_counted_and_do_no_harm, .init = begin, .fini = end)
{
    struct backend *a = must_open(spec_a, NULL), *b;

    cr_assert_eq(backend_send(a, (const uint8_t *)TEXT, 60), 0);
    cr_assert_eq(a->ops->flush(a), 0);
    cr_assert_eq(a->stats.unsent, 1);
    b = must_open(spec_b, NULL);
    backend_close(b);
    cr_assert_eq(backend_send(a, (const uint8_t *)TEXT, 60), 0);
    cr_assert_eq(a->ops->flush(a), 0);
    cr_assert_eq(a->stats.unsent, 2);
    backend_close(a);
}

Test(backend, unix_socket_in_use_is_left_alone_and_a_dead_one_replaced, .init = begin, .fini = end)
{
    struct backend *a = must_open(spec_a, NULL), *again = NULL;
    struct sockaddr_un dead = {.sun_family = AF_UNIX};
    struct backend_error err = {""};
    int s = socket(AF_UNIX, SOCK_DGRAM, 0);

    cr_assert_eq(backend_open(&again, spec_a, NULL, &err), -EADDRINUSE, "%s", err.msg);
    backend_close(a);
    snprintf(dead.sun_path, sizeof dead.sun_path, "%s/a", dir);
    cr_assert_eq(bind(s, (struct sockaddr *)&dead, sizeof dead), 0);
    close(s);
    backend_close(must_open(spec_a, NULL));
}

Test(backend, unix_leaves_alone_what_is_no_socket, .init = begin, .fini = end)
{
    struct backend_error err = {""};
    struct backend *b = NULL;
    char file[100], link[100];
    FILE *f;

    snprintf(file, sizeof file, "%s/precious", dir);
    snprintf(link, sizeof link, "%s/a", dir);
    f = fopen(file, "w");
    cr_assert(f && fclose(f) == 0 && symlink(file, link) == 0);
    cr_assert_eq(backend_open(&b, spec_a, NULL, &err), -ENOTSOCK, "%s", err.msg);
    cr_assert_eq(unlink(link), 0, "the link is gone");
    cr_assert_eq(rename(file, link), 0, "the file is gone");
    cr_assert_eq(backend_open(&b, spec_a, NULL, &err), -ENOTSOCK, "%s", err.msg);
    cr_assert(strstr(err.msg, "is no socket"), "%s", err.msg);
    cr_assert_eq(unlink(link), 0, "the file is gone");
}

Test(backend, unix_sends_again_what_a_slow_peer_did_not_take, .init = begin, .fini = end)
{
    struct backend *a = must_open(spec_a, NULL), *b = must_open(spec_b, NULL);
    struct backend_frame f;
    unsigned sent = 0, got = 0;

    while (sent < 20000 && backend_send(a, (const uint8_t *)TEXT, 60) == 0) {
        sent++;
        a->ops->flush(a);
    }
    cr_assert_lt(sent, 20000, "the peer's queue never filled");
    while (got < sent) {
        cr_assert_eq(take(b, &f), 1, "%u of %u came", got, sent);
        got++;
        a->ops->flush(a);
    }
    cr_assert_eq(a->stats.unsent, 0);
    backend_close(a);
    backend_close(b);
}

Test(backend, file_holds_what_was_sent)
{
    char path[] = "/tmp/backendXXXXXX.pcap", spec[64];
    int fd = mkstemps(path, 5);
    struct backend_frame none;
    struct cap_error err;
    struct backend *b;
    struct frame f;
    struct cap *c;

    close(fd);
    snprintf(spec, sizeof spec, "file:%s", path);
    b = must_open(spec, NULL);
    cr_assert_eq(backend_send(b, (const uint8_t *)TEXT, 60), 0);
    cr_assert_eq(backend_send(b, (const uint8_t *)TEXT, 14), 0);
    cr_assert_eq(b->ops->flush(b), 0);
    cr_assert_eq(b->ops->rx(b, &none), 0);
    cr_assert_eq(backend_stats(b)->sent, 2);
    backend_close(b);
    cr_assert_eq(cap_open(&c, path, 0, NULL, &err), 0);
    cr_assert_eq(cap_next(c, &f), 1);
    cr_assert_eq(f.len, 60);
    cr_assert_eq(memcmp(f.data, TEXT, 60), 0);
    cr_assert_eq(f.linktype, LINK_ETHERNET);
    cr_assert_eq(cap_next(c, &f), 1);
    cr_assert_eq(f.len, 14);
    cr_assert_eq(cap_next(c, &f), 0);
    cap_close(c);
    unlink(path);
}

/* --- The kernel's filter, run by the kernel on a pair of sockets ------------------------------ */

static int filtered[2];

static bool kernel_passes(const uint8_t *data, uint32_t len)
{
    uint8_t got[65536];

    cr_assert(send(filtered[0], data, len, MSG_DONTWAIT) >= 0 || errno == EPERM);
    return recv(filtered[1], got, sizeof got, MSG_DONTWAIT) == (ssize_t)len;
}

Test(backend, kernel_filter_passes_what_libpcap_passes_for_the_same_words)
{
    static const char *files[] = {"captures/rping_ipv4.pcap", "captures/rping_ipv6.pcap",
                                  "captures/mckey_multicast.pcap", "captures/host_peer_noudp_icmp.pcap"};
    struct sock_filter code[BE_FILTER_LEN];
    struct sock_fprog prog = {.len = BE_FILTER_LEN, .filter = code};
    struct cap_filter *words = NULL;
    struct cap_error err;
    unsigned passed = 0, dropped = 0;

    be_filter(code, 0, 1);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, filtered), 0);
    cr_assert_eq(setsockopt(filtered[1], SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof prog), 0);
    cr_assert_eq(cap_filter_compile(&words,
                                    "arp or ether proto 0x8915 or ether proto 0x8808 or udp dst port 4791 or"
                                    " (icmp6 and (ip6[40] = 135 or ip6[40] = 136 or ip6[40] = 1)) or icmp[0] = 3",
                                    LINK_ETHERNET, 0, &err),
                 0, "%s", err.msg);
    for (unsigned i = 0; i < ARRAY_LEN(files); i++) {
        struct frame f;
        struct cap *c;
        cr_assert_eq(cap_open(&c, files[i], 0, NULL, &err), 0);
        while (cap_next(c, &f) == 1) {
            uint8_t data[2048];
            uint32_t len = min_u32(f.caplen, 100);
            for (unsigned at = 11; at < 64 && at < len; at++) /* 11: unchanged but for the source address */
                for (unsigned v = 0; v < 3; v++) {
                    memcpy(data, f.data, len);
                    data[at] = (uint8_t[]){0, 17, 135}[v];
                    struct frame changed = {.data = data, .caplen = len, .len = len, .linktype = LINK_ETHERNET};
                    bool want = cap_filter_match(words, &changed) == 1;
                    cr_assert_eq(kernel_passes(data, len), want, "%s frame %d, byte %u = %u", files[i], (int)f.number,
                                 at, data[at]);
                    passed += want;
                    dropped += !want;
                }
        }
        cap_close(c);
    }
    static const uint8_t pause[60] = {1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0x08, 1, 1, 0, 8};
    cr_expect(kernel_passes(pause, sizeof pause));
    cap_filter_free(words);
    cr_assert_gt(passed, 1000);
    cr_assert_gt(dropped, 1000);
}

Test(backend, kernel_filter_of_a_part_passes_what_is_for_its_queue_pairs)
{
    static const char *files[] = {"captures/rping_ipv4.pcap", "captures/rping_ipv6.pcap", "captures/vt_send_inv.pcap"};
    struct sock_filter code[BE_FILTER_LEN];
    struct sock_fprog prog = {.len = BE_FILTER_LEN, .filter = code};
    unsigned roce = 0, others = 0;
    struct cap_error err;

    cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, filtered), 0);
    for (unsigned k = 0; k < 3 * ARRAY_LEN(files); k++) {
        unsigned part = k % 3;
        struct frame f;
        struct cap *c;
        be_filter(code, part, 3);
        cr_assert_eq(setsockopt(filtered[1], SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof prog), 0);
        cr_assert_eq(cap_open(&c, files[k / 3], 0, NULL, &err), 0);
        while (cap_next(c, &f) == 1) {
            struct pkt p;
            pkt_decode(&p, &f, &(struct decode_opts){0});
            bool is_roce = p.have & H_BTH;
            bool arp = load_be16(f.data + 12) == 0x0806;
            if (!is_roce && !arp)
                continue;
            cr_assert_eq(kernel_passes(f.data, f.caplen), arp || qpn_part(p.bth.dqpn, 3) == part,
                         "%s frame %d, part %u", files[k / 3], (int)f.number, part);
            roce += is_roce;
            others += arp;
        }
        cap_close(c);
    }
    cr_assert_gt(roce, 100);
    cr_assert_gt(others, 3);
    cr_assert_eq(qpn_part(0, 3) | qpn_part(1, 3), 0); /* management */
}

/* --- AF_PACKET, between the ends of a veth pair in a namespace of its own --------------------- */

static bool own_namespace(void)
{
    if (unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) < 0)
        return false;
    return system("ip link add va type veth peer name vb 2>/dev/null && sysctl -qw net.ipv6.conf.all.disable_ipv6=1 "
                  "2>/dev/null;"
                  "ip link set va mtu 4200 up && ip link set vb mtu 4200 up") == 0;
}

Test(backend, libnet_and_libpcap_carry_frames_over_a_veth_pair)
{
    struct backend *a, *b, *c;
    struct backend_error err = {""};

    if (!own_namespace())
        cr_skip_test("no network namespace of its own with a veth pair");
    cr_assert_eq(backend_open(&a, "libnet", "nosuch0", &err), -ENODEV);
    cr_assert(strstr(err.msg, "nosuch0"));
    cr_assert_eq(backend_open(&a, "libnet", "lo", &err), -ENETDOWN);
    cr_assert_eq(backend_open(&a, "libnet:fast", "va", &err), -EINVAL);
    a = must_open("libnet", "va");
    b = must_open("libnet", "vb");
    c = must_open("packet", "vb");
    cr_assert_eq(a->mtu, 4200);
    cr_assert(a->has_mac);
    send_and_compare(a, b);
    send_and_compare(b, a);
    cr_assert_eq(memcmp(b->mac, c->mac, 6), 0);
    backend_close(a);
    backend_close(b);
    backend_close(c);
}

Test(backend, packet_says_that_an_interface_has_no_clock_and_goes_on)
{
    struct backend *a, *b;

    if (!own_namespace())
        cr_skip_test("no network namespace of its own with a veth pair");
    a = must_open("packet:hw,bypass", "va");
    b = must_open("packet", "vb");
    cr_assert_eq(a->stamps, BACKEND_STAMPS_KERNEL);
    cr_assert(strstr(a->note, "no time stamps by interface va"), "%s", a->note);
    cr_assert_str_eq(b->note, "");
    send_and_compare(b, a);
    cr_assert_eq(backend_stats(a)->late_stamps, 0);
    backend_close(a);
    backend_close(b);
}

/* An interface with a clock, as its driver answers: errors, and what is switched on. */
static struct {
    bool there;
    int set, get; /* errno */
    int filter;
    unsigned asked;
} device;

/* Replaces the function of the C library in the whole program. */
int ioctl(int fd, unsigned long request, ...)
{
    struct hwtstamp_config *c;
    struct ifreq *r;
    va_list ap;

    va_start(ap, request);
    r = va_arg(ap, void *);
    va_end(ap);
    if (!device.there || (request != SIOCSHWTSTAMP && request != SIOCGHWTSTAMP))
        return (int)syscall(SYS_ioctl, fd, request, r);
    c = (void *)r->ifr_data;
    device.asked++;
    cr_assert_str_eq(r->ifr_name, "va");
    if (request == SIOCGHWTSTAMP)
        c->rx_filter = device.filter;
    else
        cr_assert(c->rx_filter == HWTSTAMP_FILTER_ALL && c->tx_type == HWTSTAMP_TX_OFF && c->flags == 0);
    errno = request == SIOCSHWTSTAMP ? device.set : device.get;
    return errno ? -1 : 0;
}

/* The source from which the kernel takes time stamps. */
static int source_of(const struct backend *b)
{
    int source = -1;
    socklen_t n = sizeof source;

    cr_assert_eq(getsockopt(b->fd, SOL_PACKET, PACKET_TIMESTAMP, &source, &n), 0);
    return source;
}

Test(backend, packet_asks_the_interface_for_its_stamps)
{
    static const struct {
        int set, get, filter;
        unsigned asked;
        const char *note; /* NULL: they are had */
    } cases[] = {
        {0, 0, 0, 1, NULL},
        {EPERM, 0, HWTSTAMP_FILTER_ALL, 2, NULL}, /* another program has switched them on */
        {EPERM, 0, HWTSTAMP_FILTER_NONE, 2, "CAP_NET_ADMIN is needed"},
        {EPERM, EOPNOTSUPP, 0, 2, "CAP_NET_ADMIN is needed"},
        {EOPNOTSUPP, EOPNOTSUPP, 0, 2, "it cannot make them"},
        {ERANGE, 0, HWTSTAMP_FILTER_PTP_V2_EVENT, 2, "Numerical result out of range"},
    };
    struct backend *a, *b;

    if (!own_namespace())
        cr_skip_test("no network namespace of its own with a veth pair");
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        device.there = true;
        device.set = cases[i].set;
        device.get = cases[i].get;
        device.filter = cases[i].filter;
        device.asked = 0;
        a = must_open("packet:hw", "va");
        device.there = false;
        cr_assert_eq(device.asked, cases[i].asked, "case %u", i);
        cr_assert_eq(a->stamps, cases[i].note ? BACKEND_STAMPS_KERNEL : BACKEND_STAMPS_HARDWARE, "case %u", i);
        cr_assert_eq(source_of(a), cases[i].note ? 0 : SOF_TIMESTAMPING_RAW_HARDWARE, "case %u", i);
        cr_assert(cases[i].note ? strstr(a->note, cases[i].note) != NULL : *a->note == '\0', "case %u: %s", i, a->note);
        backend_close(a);
    }
    /* The driver accepts them, but the device makes none: each frame says so. */
    device.there = true;
    device.set = 0;
    a = must_open("packet:hw", "va");
    device.there = false;
    b = must_open("packet", "vb");
    for (unsigned i = 1; i <= 3; i++) {
        struct backend_frame f = {0};
        cr_assert_eq(backend_send(b, (const uint8_t *)TEXT, sizeof TEXT), 0);
        cr_assert_eq(b->ops->flush(b), 0);
        cr_assert_eq(take(a, &f), 1);
        cr_assert_eq(f.stamp, BACKEND_STAMPS_KERNEL);
        cr_assert_eq(backend_stats(a)->late_stamps, i);
        cr_assert(f.ts > 1000000000 * NS_PER_S, "the time of day");
    }
    backend_close(a);
    backend_close(b);
}

Test(backend, packet_carries_frames_over_a_veth_pair)
{
    struct backend *a, *b;
    struct backend_error err = {""};

    if (!own_namespace())
        cr_skip_test("no network namespace of its own with a veth pair");
    cr_assert_eq(backend_open(&a, "packet", "nosuch0", &err), -ENODEV);
    cr_assert(strstr(err.msg, "nosuch0"));
    cr_assert_eq(backend_open(&a, "packet", "lo", &err), -ENETDOWN);
    cr_assert_eq(backend_open(&a, "packet:fast", "va", &err), -EINVAL);
    a = must_open("packet", "va");
    b = must_open("packet:bypass", "vb");
    cr_assert_eq(a->mtu, 4200);
    cr_assert(a->has_mac);
    send_and_compare(a, b);
    send_and_compare(b, a);
    backend_close(a);
    backend_close(b);
}

static void tag_and_time(const char *kind)
{
    uint8_t frame[1000] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0x00, 0x60, 0x2a, 0x08, 0x06, 1, 2, 3};
    struct backend_frame f;
    struct backend *a, *b;

    a = must_open(kind, "va");
    b = must_open(kind, "vb");
    cr_assert_eq(backend_send(a, frame, sizeof frame), 0);
    cr_assert_eq(a->ops->flush(a), 0);
    cr_assert_eq(take(b, &f), 1);
    cr_assert_eq(f.len, sizeof frame);
    cr_assert_eq(memcmp(f.data, frame, sizeof frame), 0);
    cr_assert_gt(f.ts, INT64_C(1600000000) * NS_PER_S);
    backend_close(a);
    backend_close(b);
}

Test(backend, interfaces_put_the_vlan_tag_back_and_stamp_the_time)
{
    if (!own_namespace())
        cr_skip_test("no network namespace of its own with a veth pair");
    tag_and_time("packet");
    tag_and_time("libnet");
}

static void slow_receiver(const char *kind, unsigned frames)
{
    struct backend_frame f;
    struct backend *a, *b;
    uint64_t got = 0;

    a = must_open(kind, "va");
    b = must_open(kind, "vb");
    for (unsigned i = 0; i < frames; i++) {
        while (backend_send(a, (const uint8_t *)TEXT, 60) == -EAGAIN)
            cr_assert_eq(a->ops->flush(a), 0);
    }
    cr_assert_eq(a->ops->flush(a), 0);
    while (got + backend_stats(b)->dropped < frames && take(b, &f) == 1) {
        cr_assert_eq(memcmp(f.data, TEXT, 60), 0);
        got++;
    }
    cr_assert_gt(got, 100);
    cr_assert_gt(backend_stats(b)->dropped, 0);
    cr_assert_eq(got + backend_stats(b)->dropped, frames);
    cr_assert_eq(backend_stats(a)->sent, frames);
    backend_close(a);
    backend_close(b);
}

Test(backend, interfaces_count_what_a_slow_receiver_lost)
{
    if (!own_namespace())
        cr_skip_test("no network namespace of its own with a veth pair");
    slow_receiver("packet", 4000);
    slow_receiver("libnet", 40000);
}
