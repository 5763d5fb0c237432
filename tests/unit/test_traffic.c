/* layer 3 (traffic) tests: messages posted in a window and completed in order, over a provider that only notes them. */
#include "gen/traffic/traffic.h"

#include <criterion/criterion.h>
#include <errno.h>

#define DEPTH 4
#define ID    (UINT64_C(1) << TRAFFIC_FLOW) /* of the second flow */

static struct send_wr wr; /* the last one */
static struct sge sge;    /* its data */
static bool full;

static int post_send(struct verbs *v, int qp, const struct send_wr *w, ns_t now)
{
    (void)v, (void)now;
    cr_assert_eq(qp, 3);
    if (full)
        return -ENOMEM;
    wr = *w;
    sge = *w->sg_list;
    return 0;
}

static const struct verbs_ops ops = {.post_send = post_send};
static struct verbs verbs = {.ops = &ops};
static uint8_t memory[DEPTH * 64];
static struct traffic traffic;
static struct traffic_flow first, flow;

static void open_traffic(const struct traffic_config *c)
{
    static const struct traffic_ways none;

    full = false;
    cr_assert_eq(traffic_init(&traffic, c, &none, false), 0);
    cr_assert_eq(traffic_add(&traffic, &first, &verbs, 2), 0);
    cr_assert_eq(traffic_add(&traffic, &flow, &verbs, 3), 0);
    flow.lkey = 0x11;
    flow.rkey = 0x22;
    flow.from = (struct traffic_slots){memory, 0x1000, DEPTH, 64};
    flow.to = (struct traffic_slots){.addr = 0x2000, .n = 1};
    flow.counter[0] = 0x3000;
    flow.counter[1] = 0x3008;
}

/* A rate lets one message pass at a time. */
static void open_one_by_one(void)
{
    open_traffic(&(struct traffic_config){
        .type = QPT_RC, .qps = 2, .iters = 10, .tx_depth = DEPTH, .signal_every = 3, .rate = 1, .size = 50});
}

static void close_traffic(void)
{
    traffic_free(&traffic);
}

/* Post one message. */
static int post(enum traffic_op op, uint32_t len, ns_t now)
{
    traffic.c.op = (uint8_t)op;
    traffic.c.size = len;
    traffic.next = 0;
    return traffic_post(&flow, now);
}

/* A completion of message `k`: how many messages it completes. */
static uint64_t complete(uint64_t k, ns_t when)
{
    uint64_t before = flow.completed;

    traffic_took(&traffic, &(struct wc){.wr_id = ID + k, .status = WC_SUCCESS, .when = when});
    return flow.completed - before;
}

Test(traffic, window_has_room_for_its_depth_and_no_more_than_are_left, .init = open_one_by_one, .fini = close_traffic)
{
    for (unsigned i = 1; i <= DEPTH + 1; i++) {
        cr_assert_eq(post(TRAFFIC_WRITE, 50, i), 0);
        cr_expect_eq(flow.posted, min_u32(i, DEPTH));
    }
    cr_expect_eq(complete(2, 9), 3);
    for (unsigned i = 0; i < 9; i++) {
        post(TRAFFIC_WRITE, 50, 10 + i);
        complete(flow.posted - 1, 10 + i);
    }
    cr_expect_eq(flow.posted, 10, "and no more");
    cr_expect(traffic_flow_done(&flow, 100));
    cr_expect_eq(traffic.r.completed, 10);
    cr_expect_eq(traffic.r.bytes, 500);
}

Test(traffic, rate_holds_the_next_batch_back, .fini = close_traffic)
{
    open_traffic(&(struct traffic_config){
        .type = QPT_RC, .qps = 2, .iters = 10, .tx_depth = DEPTH, .batch = 2, .rate = 8 * 1000000, .size = 50});
    cr_assert_eq(traffic_post(&flow, NS_PER_S), 0);
    cr_expect_eq(flow.posted, 2);
    cr_expect_eq(traffic.next, NS_PER_S + 100 * NS_PER_US, "100 bytes at a megabyte a second");
    traffic_post(&flow, traffic.next - 1);
    cr_expect_eq(flow.posted, 2);
    traffic_post(&flow, traffic.next);
    cr_expect_eq(flow.posted, 4);
}

Test(traffic, duration_begins_with_the_first_message, .fini = close_traffic)
{
    open_traffic(&(struct traffic_config){.type = QPT_RC, .qps = 2, .duration = 100, .tx_depth = 1, .size = 50});
    cr_expect_not(traffic_flow_done(&flow, 5000));
    traffic_post(&flow, 5000);
    complete(0, 5050);
    traffic_post(&flow, 5099);
    cr_expect_eq(flow.posted, 2);
    complete(1, 5100);
    cr_expect_not(traffic_flow_done(&flow, 5099));
    cr_expect(traffic_flow_done(&flow, 5100));
    traffic_post(&flow, 5100);
    cr_expect_eq(flow.posted, 2);
}

Test(traffic, answer_lets_the_next_message_go, .fini = close_traffic)
{
    open_traffic(&(struct traffic_config){
        .op = TRAFFIC_WRITE, .type = QPT_RC, .qps = 2, .iters = 3, .latency = true, .size = 50});
    traffic_pair(&first, &flow); /* of which the first has no memory here: the peer's */
    first.verbs = NULL;
    first.to = (struct traffic_slots){.mem = memory + 64, .n = 1};
    traffic_post(&flow, 100);
    cr_expect_eq(flow.posted, 0, "the peer begins");
    memory[64 + 49] = 1;
    traffic_look(&traffic, 110);
    traffic_post(&flow, 120);
    cr_expect_eq(flow.posted, 1);
    cr_expect_eq(memory[49], 1, "the last byte is the number");
    complete(0, 130);
    traffic_look(&traffic, 140);
    traffic_post(&flow, 140);
    cr_expect_eq(flow.posted, 1, "no answer yet");
    memory[64 + 49] = 2;
    traffic_look(&traffic, 160);
    cr_expect_eq(traffic.r.samples, 1);
    cr_expect_eq(traffic.r.max, 20, "half of the time since 120");
    traffic_post(&flow, 170);
    cr_expect_eq(flow.posted, 2);
}

Test(traffic, every_nth_message_and_the_last_are_signaled, .init = open_one_by_one, .fini = close_traffic)
{
    static const bool want[10] = {[2] = true, [5] = true, [8] = true, [9] = true};

    for (unsigned k = 0; k < 10; k++) {
        cr_assert_eq(post(TRAFFIC_WRITE, 50, 0), 0);
        cr_expect_eq(wr.flags, want[k] ? SEND_SIGNALED : 0, "message %u", k);
        cr_expect_eq(wr.wr_id, ID + k);
        cr_expect_eq(wr.imm_data, k);
        complete(k, 0);
    }
}

Test(traffic, work_request_has_the_addresses_of_both_sides, .init = open_one_by_one, .fini = close_traffic)
{
    traffic.c.with_imm = traffic.c.solicited = true;
    cr_assert_eq(post(TRAFFIC_WRITE, 50, 0), 0);
    cr_expect_eq(wr.opcode, WR_RDMA_WRITE_WITH_IMM);
    cr_expect_eq(wr.flags, SEND_SOLICITED);
    cr_expect_eq(wr.num_sge, 1);
    cr_expect_eq(wr.remote_addr, 0x2000);
    cr_expect_eq(wr.rkey, 0x22);
    cr_expect_eq(sge.addr, 0x1000);
    cr_expect_eq(sge.length, 50);
    cr_expect_eq(sge.lkey, 0x11);
    cr_assert_eq(post(TRAFFIC_WRITE, 50, 0), 0);
    cr_expect_eq(sge.addr, 0x1040, "the next slot");
    cr_assert_eq(post(TRAFFIC_SEND, 0, 0), 0);
    cr_expect_eq(wr.num_sge, 0, "an empty message has no data");
}

Test(traffic, completion_covers_all_messages_before_it_once, .init = open_one_by_one, .fini = close_traffic)
{
    for (unsigned i = 0; i < DEPTH; i++)
        cr_assert_eq(post(TRAFFIC_WRITE, 10 + i, 100 * i), 0);
    cr_expect_eq(complete(2, 1000), 3);
    cr_expect_eq(traffic.r.bytes, 10 + 11 + 12);
    cr_expect_eq(traffic.r.max, 1000);
    cr_expect_eq(traffic.r.min, 800);
    cr_expect_eq(traffic.r.mismatches, 0);
    cr_expect_eq(complete(1, 1000), 0, "a duplicate");
    cr_expect_eq(traffic.r.mismatches, 1);
    cr_expect_eq(complete(9, 1000), 1, "never more than were posted");
}

Test(traffic, atomics_count_on_from_what_is_expected, .init = open_one_by_one, .fini = close_traffic)
{
    flow.next[0] = 50;
    flow.next[1] = 90;
    cr_assert_eq(post(TRAFFIC_FAA, 8, 0), 0);
    cr_expect_eq(wr.compare_add, 1);
    cr_expect_eq(wr.remote_addr, 0x3000);
    cr_expect_eq(flow.message[0].expect, 50);
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(post(TRAFFIC_CAS, 8, 0), 0);
        cr_expect_eq(wr.compare_add, 90 + i);
        cr_expect_eq(wr.swap, 91 + i);
        cr_expect_eq(wr.remote_addr, 0x3008);
        cr_expect_eq(flow.message[1 + i].expect, 90 + i);
    }
    cr_assert_eq(post(TRAFFIC_FAA, 8, 0), 0);
    cr_expect_eq(flow.message[3].expect, 51);
}

Test(traffic, refused_message_is_posted_again_as_it_was, .init = open_one_by_one, .fini = close_traffic)
{
    full = true;
    cr_expect_eq(post(TRAFFIC_CAS, 8, 0), -ENOMEM);
    cr_expect_eq(flow.posted, 0);
    full = false;
    cr_assert_eq(post(TRAFFIC_CAS, 8, 0), 0);
    cr_expect_eq(wr.wr_id, ID);
    cr_expect_eq(flow.message[0].expect, 0);
}
