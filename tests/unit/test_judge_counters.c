/* layer 3 (judge) tests: what adapters counted, beside what the trace shows; the class of their CNPs. */
#include "src/judge/share/part.h"
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

/* Judge a CNP of end 1 that travels with this DSCP, in a VLAN with this priority. */
static void judge_own_cnp(struct judge *j, uint64_t number, uint8_t dscp, uint8_t priority)
{
    struct link_addr own = end_addr(1), other = end_addr(0);
    struct av av = {.hop_limit = 64, .sport = 0xc001, .tclass = (uint8_t)(dscp << 2)};
    uint8_t buf[256], tagged[256];
    struct frame_out out = {.buf = buf, .cap = sizeof buf};
    struct pkt made = mk(OPCODE_CNP, 0, 16), p;
    struct path path;
    struct frame f;

    memcpy(av.dgid, other.gid, 16);
    memcpy(av.dmac, other.mac, 6);
    made.bth.dqpn = 0x11;
    cr_assert_eq(path_init(&path, &own, &av), 0);
    cr_assert_eq(build_begin(&out, &path, &made, 16, 1, NULL), 0);
    memset(out.payload, 0, 16);
    build_end(&out, &path, &made, 16, NULL);
    memcpy(tagged, buf, 12);
    memcpy(tagged + 12, (const uint8_t[]){0x81, 0, (uint8_t)(priority << 5), 5}, 4);
    memcpy(tagged + 16, buf + 12, out.len - 12);
    decode_line(&p, &f, &(struct line){.ts = (ns_t)number * US}, tagged, out.len + 4, number, true);
    cr_assert_eq(p.icrc, CRC_GOOD);
    judge_packet(j, &p);
}

/* Whether processes that each judge some flows may share a trace with a CNP like this behind one of DSCP 48, priority
 * 6. */
static bool may_share(uint8_t dscp, uint8_t priority)
{
    struct judge *j = judge_new(&(struct judge_opts){.complete = true});
    bool may;

    cr_assert(judge_share(j, &(struct conn_owners){{1}}, true));
    judge_own_cnp(j, 1, 48, 6);
    judge_own_cnp(j, 2, dscp, priority);
    may = !j->share->why_not;
    judge_free(j);
    return may;
}

Test(judge_counters, a_trace_is_not_shared_if_cnps_of_an_adapter_travel_in_several_classes)
{
    cr_expect(may_share(48, 6));
    cr_expect_not(may_share(48, 7));
    cr_expect_not(may_share(47, 6));
}
