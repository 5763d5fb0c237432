/* layer 5 (test): congestion control of endpoints: rates, CNPs for marked packets, paced responses. */
#include "dissect/pkt.h"
#include "tests/unit/ep_pair.h"

#include "gen/endpoint/rewrite.h"

#define GBPS UINT64_C(1000000000)

/* Both sides with congestion control `cc` on links of 10 Gbit/s. */
static struct pair *congested(const char *cc, const char *cnp)
{
    struct pair_opts o = pair_defaults();
    struct text_error e;

    for (int i = 0; i < 2; i++) {
        struct ep_congestion *c = &o.cfg[i].congestion;
        cr_assert(cc_parse(&c->cc, cc, &e), "%s", e.msg);
        c->np = np_config_default();
        cr_assert(np_parse(&c->np, cnp, &e), "%s", e.msg);
        c->cnps = true;
        o.cfg[i].link_rate = 10 * GBPS;
    }
    return pair_new(&o);
}

static unsigned cnp_tos[PAIR_LOG], n_tos, to_mark;

/* Mark the first `to_mark` packets with payload; remember the TOS of CNPs. */
static int mark(struct pair *p, int from, uint8_t *frame, uint32_t len, ns_t *extra)
{
    (void)from, (void)extra;
    if (p->log[p->n_log - 1].opcode == OPCODE_CNP)
        cnp_tos[n_tos++] = frame[15];
    else if (to_mark && p->log[p->n_log - 1].len)
        to_mark -= frame_mark_ce(frame, len, LINK_ETHERNET, false);
    return 1;
}

static unsigned cnps(const struct pair *p, int from)
{
    unsigned n = 0;

    for (unsigned i = 0; i < p->n_log; i++)
        n += p->log[i].from == from && p->log[i].opcode == OPCODE_CNP;
    return n;
}

/* Time from the first to the last packet with payload of side `from`. */
static ns_t data_time(const struct pair *p, int from)
{
    ns_t first = -1, last = 0;

    for (unsigned i = 0; i < p->n_log; i++)
        if (p->log[i].from == from && p->log[i].len && p->log[i].opcode != OPCODE_CNP) {
            first = first < 0 ? p->log[i].at : first;
            last = p->log[i].at;
        }
    return last - first;
}

static void transfer(struct pair *p, bool read)
{
    struct send_wr wr = write_wr(p, 0);

    wr.opcode = read ? WR_RDMA_READ : WR_RDMA_WRITE;
    n_tos = 0;
    p->hook = mark;
    cr_assert_eq(pair_post(p, 0, wr, 0, 100 * 1024), 0);
    pair_run(p, NS_PER_S);
    cr_expect_eq(pair_wc(p, 0).status, WC_SUCCESS);
    no_own_failures(p);
}

/* 100 packets of 1024 bytes and 58 of headers (74 in the first). */
#define AT_LINE ((ns_t)((99 * 1082 + 16) * 8 / 10))

Test(ep_congestion, requests_and_read_responses_leave_at_the_rate_of_the_link)
{
    for (int read = 0; read < 2; read++) {
        struct pair *p = congested("dcqcn", "interval=50us");
        to_mark = 0;
        transfer(p, read);
        cr_expect_float_eq((double)data_time(p, read), (double)AT_LINE, 20, "%lld", (long long)data_time(p, read));
        cr_expect_eq(cnps(p, 0) + cnps(p, 1), 0);
        pair_free(p);
    }
}

Test(ep_congestion, a_marked_packet_is_answered_by_a_cnp_that_halves_the_rate)
{
    for (int read = 0; read < 2; read++) {
        struct pair *p = congested("dcqcn:t=1s", "interval=50us");
        to_mark = 1;
        transfer(p, read);
        cr_expect_eq(cnps(p, !read), 1);
        cr_expect_eq(cnp_tos[0] >> 2, 48);
        cr_expect_eq(ep_stats(p->ep[read])->rp_cnp_handled, 1);
        cr_expect_gt(data_time(p, read), AT_LINE * 19 / 10);
        cr_expect_lt(data_time(p, read), AT_LINE * 2);
        pair_free(p);
    }
}

Test(ep_congestion, cnps_have_the_interval_scope_and_class_that_was_set)
{
    static const struct {
        const char *cnp;
        unsigned least, most, dscp;
    } as[] = {{"interval=50us", 2, 4, 48},
              {"interval=20us,scope=dest_ip", 5, 9, 48},
              {"interval=20us,scope=port,dscp=5", 5, 9, 5},
              {"per_ce=yes,dscp=64", 100, 100, 0},
              {"interval=50us,delay=100us", 2, 4, 48}};

    for (unsigned i = 0; i < ARRAY_LEN(as); i++) {
        struct pair *p = congested("dcqcn:min=5G", as[i].cnp);
        to_mark = 100;
        transfer(p, false);
        cr_expect_geq(cnps(p, 1), as[i].least, "%s: %u", as[i].cnp, cnps(p, 1));
        cr_expect_leq(cnps(p, 1), as[i].most, "%s: %u", as[i].cnp, cnps(p, 1));
        cr_expect_eq(cnp_tos[0] >> 2, as[i].dscp, "%s", as[i].cnp);
        pair_free(p);
    }
}

Test(ep_congestion, no_cnp_for_read_responses_if_so_configured)
{
    struct pair *p = congested("dcqcn", "reads=no");

    to_mark = 10;
    transfer(p, true);
    cr_expect_eq(cnps(p, 0) + cnps(p, 1), 0);
    pair_free(p);
}

Test(ep_congestion, a_queue_pair_that_is_reset_begins_at_the_rate_of_the_link_again)
{
    struct pair *p = congested("dcqcn:t=1s", "interval=50us");
    struct qp_attr attr = {.state = QPS_RESET};

    to_mark = 1;
    transfer(p, false);
    cr_assert_eq(ep_qp_modify(p->ep[0], p->qp[0], &attr, QPA_STATE, p->now), 0);
    cr_expect_eq(ep_next_expiry(p->ep[0]), NS_NEVER);
    pair_free(p);
}
