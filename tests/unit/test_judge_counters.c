/* layer 3 (judge) tests: what adapters counted, beside what the trace shows. */
#include "tests/unit/judge_rig.h"

static void put_counted(void *user, const struct judge_counted *c)
{
    buf_printf(user, "%s %llu of %llu %s; ", c->names, (unsigned long long)c->counted, (unsigned long long)c->seen,
               c->verdict);
}

/* What the counters of `end` say of these packets. */
static const char *counted(const struct line *l, size_t n, int end, const char *counters)
{
    static struct buf b;
    static struct judge_opts o;
    struct judge *j;

    o.n_hosts = 1;
    memcpy(o.hosts[0].addr.b, end_addr(end).gid, 16);
    counter_read(&o.hosts[0].after, counters, strlen(counters));
    j = judge_new(&o);
    learn(j);
    for (size_t i = 0; i < n; i++)
        judge_line(j, &l[i], i + 1);
    b.len = 0;
    judge_counted(judge_host(j, 0), put_counted, &b);
    judge_free(j);
    return buf_str(&b);
}

Test(judge_counters, packets_are_counted_by_kind_at_their_sender_and_their_receiver)
{
    static const struct line l[] = {READ(0, 10, 1),
                                    READ_RESPONSE(10 * US, 10, 1, 2),
                                    READ(20 * US, 11, 3),
                                    READ_RESPONSE(30 * US, 11, 2, 4),
                                    SEND(40 * US, 12, 5),
                                    RNR(50 * US, 12, 2, 1, 6),
                                    SEND(MS, 12, 7),
                                    SEND(MS + US, 14, 8),
                                    NAK(MS + 9 * US, 13, 3, 9)};

    cr_expect_str_eq(
        counted(l, ARRAY_LEN(l), 0, "sent_pkts 5 rcvd_pkts 3 rcvd_rnr_err 1 rcvd_seq_err 2"),
        "sent_pkts 5 of 5 exact; rcvd_pkts 3 of 4 under; rcvd_seq_err 2 of 1 over; rcvd_rnr_err 1 of 1 exact; ");
    cr_expect_str_eq(counted(l, ARRAY_LEN(l), 1, "sent_pkts 4 rcvd_pkts 5 send_rnr_err 1 out_of_seq_request 0"),
                     "sent_pkts 4 of 4 exact; rcvd_pkts 5 of 5 exact; send_rnr_err 1 of 1 exact; "
                     "out_of_seq_request 0 of 1 stuck; ");
    cr_expect_str_eq(counted(l, ARRAY_LEN(l), 1, "rx_read_requests 2"), "rx_read_requests 2 of 2 exact; ");
    cr_expect_str_eq(counted(l, ARRAY_LEN(l), 0, "rdma_read_wrs 2"), "rdma_read_wrs 2 of 0 not compared; ",
                     "of work requests");
}
