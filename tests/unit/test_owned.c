/* layer 3 (judge) tests: packets that are left to the owner of their pair of addresses are judged as if they were not.
 */
#include "tests/unit/judge_rig.h"

#define PAIRS  60 /* SENDs, each with its ACK */
#define FRAMES (2 * PAIRS)

/* A capture: frames stay where they are, as owners have their packets later. */
struct capture {
    uint8_t bytes[FRAMES][256];
    struct frame frames[FRAMES];
    struct pkt pkts[FRAMES];
    struct buf logs[FRAMES];
};

/* SENDs and ACKs, at times that are no multiples of 10 ns. `ahead`: the ACK with this number acknowledges a PSN that is
 * not sent for long; -1: none does. */
static struct capture *captured(int ahead)
{
    static struct capture c;

    for (int i = 0; i < PAIRS; i++) {
        uint32_t psn = 10 + (uint32_t)i, acked = i == ahead ? psn + PAIRS / 2 : psn;
        const struct line lines[2] = {SEND(i * 10 * US + 1, psn, (uint16_t)(2 * i + 1)),
                                      ACK(i * 10 * US + 5001, acked, psn - 9, (uint16_t)(2 * i + 2))};
        for (int k = 0; k < 2; k++) {
            int n = 2 * i + k;
            uint32_t len = line_frame(&lines[k], c.bytes[n]);
            decode_line(&c.pkts[n], &c.frames[n], &lines[k], c.bytes[n], len, (uint64_t)n + 1, true);
        }
    }
    return &c;
}

static struct judge *new_judge(enum tap_side tap)
{
    struct judge_opts o = {.complete = true, .ack_timeout = 10, .retry_cnt = 1};
    struct judge *j;

    o.tap[0] = tap;
    j = judge_new(&o);
    learn(j);
    return j;
}

/* What was left to owners. */
struct left {
    unsigned packets;
    unsigned logs; /* of these, packets of which something was put off */
};

/* Give owners the packets from `from` to before `to` that were left to them, and settle them. */
static void settle(struct judge *j, struct capture *c, const uint32_t flow[FRAMES], int from, int to, struct left *left)
{
    for (int i = from; i < to; i++)
        judge_owned(j, &c->pkts[i], flow[i], &c->logs[i]);
    for (int i = from; i < to; i++) {
        judge_settle(j, &c->pkts[i], c->logs[i].p, c->logs[i].len);
        left->packets++;
        left->logs += c->logs[i].len != 0;
        buf_free(&c->logs[i]);
    }
}

/* Judge the capture, with owners that are as late as they may be. */
static struct left judge_with_owners(struct judge *j, struct capture *c)
{
    uint32_t flow[FRAMES];
    struct left left = {0};
    int from = 0;

    for (int i = 0; i < FRAMES; i++) {
        flow[i] = judge_hand_over(j, &c->pkts[i]);
        if (flow[i] != FLOW_NONE)
            continue;
        settle(j, c, flow, from, i, &left);
        judge_packet(j, &c->pkts[i]);
        from = i + 1;
    }
    settle(j, c, flow, from, FRAMES, &left);
    judge_end(j);
    return left;
}

static void expect_same(const struct judge *a, const struct judge *b)
{
    const struct findings *x = a->findings, *y = b->findings;

    cr_assert_eq(findings_n(x), findings_n(y));
    for (size_t i = 0; i < findings_n(x); i++) {
        const struct finding *f = findings_at(x, i), *g = findings_at(y, i);
        cr_expect_eq(f->rule, g->rule);
        cr_expect_eq(f->result, g->result);
        cr_expect_eq(f->missing, g->missing);
        cr_expect_eq(f->frames[0], g->frames[0]);
        cr_expect_eq(f->ts, g->ts);
        cr_expect_str_eq(findings_string(x, f->seen), findings_string(y, g->seen));
        cr_expect_str_eq(findings_string(x, f->text), findings_string(y, g->text));
    }
}

static struct left compare(int ahead, enum tap_side tap)
{
    struct capture *c = captured(ahead);
    struct judge *a = new_judge(tap), *b = new_judge(tap);
    struct left left;

    for (int i = 0; i < FRAMES; i++)
        judge_packet(a, &c->pkts[i]);
    judge_end(a);
    left = judge_with_owners(b, c);
    expect_same(a, b);
    judge_free(a);
    judge_free(b);
    return left;
}

Test(judge_owned, almost_all_packets_of_a_connection_are_left_to_their_owner)
{
    struct left left = compare(-1, TAP_UNKNOWN);

    cr_expect_geq(left.packets, FRAMES * 9 / 10, "%u of %d", left.packets, FRAMES);
    cr_expect_eq(left.logs, 0);
}

Test(judge_owned, what_an_owner_finds_is_found_in_the_order_of_all_packets)
{
    struct left left = compare(PAIRS / 3, TAP_UNKNOWN);

    cr_expect_geq(left.packets, FRAMES * 9 / 10, "%u of %d", left.packets, FRAMES);
    cr_expect_geq(left.logs, 1);
}

Test(judge_owned, nothing_is_left_to_owners_where_all_connections_tell_at_which_end_the_tap_is)
{
    cr_expect_eq(compare(PAIRS / 3, TAP_RESPONDER).packets, 0);
}

Test(judge_owned, both_directions_have_one_owner)
{
    struct capture *c = captured(-1);
    struct judge *j = new_judge(TAP_UNKNOWN);
    uint32_t there, back;

    for (int i = 0; i < FRAMES; i++)
        judge_packet(j, &c->pkts[i]);
    there = conn_flow_find(j->conns, &c->pkts[0]);
    back = conn_flow_find(j->conns, &c->pkts[1]);
    cr_expect_neq(there, back);
    cr_expect_eq(judge_owner(j, there), judge_owner(j, back));
    judge_free(j);
}
