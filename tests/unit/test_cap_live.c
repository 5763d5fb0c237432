/* layer 1 (io) tests: capture filters and live capture. */
#include "src/cap/live.h"
#include "tests/unit/capfile.h"
#include "tests/unit/patience.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <time.h>

Test(cap_filter, the_expression_decides_per_link_type)
{
    static const uint8_t arp[60] = {[12] = 8, [13] = 6}, ip[60] = {[12] = 8, [13] = 0, [14] = 0x45};
    struct frame f = {.data = arp, .caplen = 60, .len = 60, .linktype = LINK_ETHERNET};
    struct cap_filter *filter;
    struct cap_error e;
    cr_assert_eq(cap_filter_compile(&filter, "arp", LINK_ETHERNET, 0, &e), 0, "%s", e.msg);
    cr_expect_eq(cap_filter_match(filter, &f), 1);
    f.data = ip;
    cr_expect_eq(cap_filter_match(filter, &f), 0);
    f.linktype = LINK_SLL;
    f.data = (const uint8_t[60]){[14] = 8, [15] = 6};
    cr_expect_eq(cap_filter_match(filter, &f), 1);
    f.linktype = LINK_ETHERNET;
    f.data = arp;
    cr_expect_eq(cap_filter_match(filter, &f), 1);
    cap_filter_free(filter);
    /* Raw IP has another number in libpcap than in files. */
    f = (struct frame){.data = ip + 14, .caplen = 20, .len = 20, .linktype = LINK_RAW};
    cr_assert_eq(cap_filter_compile(&filter, "ip", LINK_RAW, 0, &e), 0, "%s", e.msg);
    cr_expect_eq(cap_filter_match(filter, &f), 1);
    cap_filter_free(filter);
}

Test(cap_filter, a_wrong_expression_is_explained)
{
    struct cap_filter *filter;
    struct cap_error e;
    cr_expect_eq(cap_filter_compile(&filter, "udp prot 4791", LINK_ETHERNET, 0, &e), -EINVAL);
    cr_expect_str_eq(e.file, "filter");
    cr_expect(strlen(e.msg) > 10, "%s", e.msg);
}

Test(cap_live, an_unknown_interface_is_an_error)
{
    struct cap_error e;
    struct cap *c;
    cr_expect_lt(cap_live_open(&c, "no-such-if0", 0, NULL, &e), 0);
    cr_expect_str_eq(e.file, "no-such-if0");
    cr_expect(*e.msg);
}

/* A capture of the loopback interface as file number `file`; the test is skipped where capturing is not permitted. */
static struct cap *capture_loopback(uint16_t file, const struct cap_live_opts *o)
{
    struct cap_error e;
    struct cap *c;
    int rc = cap_live_open(&c, "lo", file, o, &e);

    hangs_after(20);
    if (rc == -EPERM || rc == -ENODEV || rc == -ENETDOWN)
        cr_skip_test("no permission to capture, or no loopback interface");
    cr_assert_eq(rc, 0, "%s", e.msg);
    return c;
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

Test(cap_live, a_datagram_on_the_loopback_interface_is_captured)
{
    struct cap_live_opts o = {.filter = "udp port 47911 and dst host 127.0.0.1"};
    const struct sockaddr_in to = loopback(47911);
    struct cap_live_stats st;
    struct cap *c = capture_loopback(3, &o);
    struct frame f;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    cr_assert_eq(sendto(fd, "payload!", 8, 0, (struct sockaddr *)&to, sizeof to), 8);
    close(fd);
    cr_assert_eq(cap_next(c, &f), 1, "%s", cap_error(c)->msg);
    cr_expect_eq(f.linktype, LINK_ETHERNET);
    cr_expect_eq(f.file, 3);
    cr_expect_eq(f.caplen, 14 + 20 + 8 + 8);
    cr_expect_arr_eq(f.data + 42, "payload!", 8);
    cr_expect_lt(llabs(f.ts / NS_PER_S - (ns_t)time(NULL)), 60);
    cr_expect_eq(cap_info(c)->format, CAP_LIVE);
    cr_expect_str_eq(cap_info(c)->ifaces[0].name, "lo");
    cr_expect_eq(cap_live_stats(c, &st), 0);
    cr_expect_geq(st.received, 1);
    cap_live_break(c);
    cr_expect_eq(cap_next(c, &f), 0);
    cap_close(c);
}

/* The first hundred times there is more to do. */
static bool count_idle(void *user)
{
    return ++*(unsigned *)user < 100;
}

Test(cap_live, frames_that_came_before_the_break_are_delivered)
{
    unsigned idle = 0;
    struct cap_live_opts o = {.filter = "udp dst port 47912", .idle = count_idle, .user = &idle};
    const struct sockaddr_in to = loopback(47912);
    struct cap *c = capture_loopback(0, &o);
    struct frame f;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    for (uint8_t k = 0; k < 50; k++)
        cr_assert_eq(sendto(fd, &k, 1, 0, (struct sockaddr *)&to, sizeof to), 1);
    cap_live_break(c);
    for (uint8_t k = 0; k < 50; k++) {
        cr_assert_eq(cap_next(c, &f), 1, "%s", cap_error(c)->msg);
        cr_assert_eq(f.data[42], k);
    }
    cr_expect_geq(idle, 1);
    /* What comes later is not. */
    cr_assert_eq(sendto(fd, "late", 4, 0, (struct sockaddr *)&to, sizeof to), 4);
    cr_expect_eq(cap_next(c, &f), 0);
    cr_expect_eq(cap_next(c, &f), 0);
    cr_expect_eq(cap_info(c)->frames, 50);
    cr_expect_geq(idle, 100, "called %u times: at once while it has more to do", idle);
    close(fd);
    cap_close(c);
}

Test(cap_live, a_wrong_filter_is_explained)
{
    struct cap_error e;
    struct cap *c;
    int rc = cap_live_open(&c, "lo", 0, &(struct cap_live_opts){.filter = "udp prot 1"}, &e);
    if (rc == -EPERM || rc == -ENODEV)
        cr_skip_test("no permission to capture, or no loopback interface");
    cr_expect_eq(rc, -EINVAL);
    cr_expect_eq(strncmp(e.msg, "filter: ", 8), 0, "%s", e.msg);
}

Test(cap_live, the_interfaces_are_listed)
{
    struct buf b = {0};
    struct cap_error e;
    cr_expect_eq(cap_live_list(&b, &e), 0);
    for (char *line = strtok((char *)buf_str(&b), "\n"); line; line = strtok(NULL, "\n"))
        cr_expect(strchr(line, '\t') > line, "%s", line);
    buf_free(&b);
}
