/* layer 3 (verbs) tests: messages posted in a window and completed in order, over a provider that only notes them. */
#include "gen/verbs/sender.h"

#include <criterion/criterion.h>
#include <errno.h>

#define DEPTH 4
#define ID    (UINT64_C(7) << 48)

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
static struct sender_message message[DEPTH];
static struct sender sender;

static void open_sender(void)
{
    full = false;
    sender = (struct sender){.verbs = &verbs,
                             .qp = 3,
                             .id = ID,
                             .iters = 10,
                             .depth = DEPTH,
                             .signal_every = 3,
                             .lkey = 0x11,
                             .rkey = 0x22,
                             .message = message};
}

static int post(enum traffic_op op, uint32_t len, ns_t now)
{
    struct sender_message m = {.op = (uint8_t)op, .len = len};

    return sender_post(&sender, &m, 0x1000, 0x2000, now);
}

/* A completion of message `k`: how many messages it completes. */
static unsigned complete(uint64_t k)
{
    struct wc wc = {.wr_id = ID + k, .status = WC_SUCCESS};
    unsigned n = 0;

    while (sender_completed(&sender, &wc))
        n++;
    return n;
}

Test(sender, window_has_room_for_its_depth_and_no_more_than_are_left, .init = open_sender)
{
    cr_expect_eq(sender_room(&sender), DEPTH);
    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(post(TRAFFIC_WRITE, 100, i), 0);
    cr_expect_eq(sender_room(&sender), 1);
    cr_expect_eq(complete(2), 3);
    cr_expect_eq(sender_room(&sender), DEPTH);
    for (unsigned i = 3; i < 9; i++) {
        cr_assert_eq(post(TRAFFIC_WRITE, 100, i), 0);
        complete(i);
    }
    cr_expect_eq(sender_room(&sender), 1, "nine of ten are posted");
    cr_assert_eq(post(TRAFFIC_WRITE, 100, 9), 0);
    complete(9);
    cr_expect_eq(sender_room(&sender), 0);
}

Test(sender, every_nth_message_and_the_last_are_signaled, .init = open_sender)
{
    static const bool want[10] = {[2] = true, [5] = true, [8] = true, [9] = true};

    for (unsigned k = 0; k < 10; k++) {
        cr_assert_eq(post(TRAFFIC_SEND, 100, 0), 0);
        cr_expect_eq(wr.flags, want[k] ? SEND_SIGNALED : 0, "message %u", k);
        cr_expect_eq(wr.wr_id, ID + k);
        cr_expect_eq(wr.imm_data, k);
        complete(k);
    }
}

Test(sender, work_request_has_the_addresses_of_both_sides, .init = open_sender)
{
    sender.imm = sender.solicited = true;
    cr_assert_eq(post(TRAFFIC_WRITE, 100, 0), 0);
    cr_expect_eq(wr.opcode, WR_RDMA_WRITE_WITH_IMM);
    cr_expect_eq(wr.flags, SEND_SOLICITED);
    cr_expect_eq(wr.num_sge, 1);
    cr_expect_eq(wr.remote_addr, 0x2000);
    cr_expect_eq(wr.rkey, 0x22);
    cr_expect_eq(sge.addr, 0x1000);
    cr_expect_eq(sge.length, 100);
    cr_expect_eq(sge.lkey, 0x11);
    cr_assert_eq(post(TRAFFIC_SEND, 0, 0), 0);
    cr_expect_eq(wr.num_sge, 0, "an empty message has no data");
}

Test(sender, completion_covers_all_messages_before_it_once, .init = open_sender)
{
    struct wc wc = {.wr_id = ID + 2};
    const struct sender_message *m;

    for (unsigned i = 0; i < DEPTH; i++)
        cr_assert_eq(post(TRAFFIC_READ, 10 + i, 100 * i), 0);
    for (unsigned i = 0; i < 3; i++) {
        m = sender_completed(&sender, &wc);
        cr_assert(m);
        cr_expect_eq(m->posted, 100 * i);
        cr_expect_eq(m->len, 10 + i);
        cr_expect_eq(m->op, TRAFFIC_READ);
        cr_expect_eq(sender.completed, i + 1);
    }
    cr_expect_null(sender_completed(&sender, &wc));
    cr_expect_eq(complete(1), 0, "a duplicate");
    cr_expect_eq(complete(9), 1, "never more than were posted");
}

Test(sender, atomics_count_on_from_what_is_expected, .init = open_sender)
{
    sender.next[0] = 50;
    sender.next[1] = 90;
    cr_assert_eq(post(TRAFFIC_FAA, 8, 0), 0);
    cr_expect_eq(wr.compare_add, 1);
    cr_expect_eq(message[0].expect, 50);
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(post(TRAFFIC_CAS, 8, 0), 0);
        cr_expect_eq(wr.compare_add, 90 + i);
        cr_expect_eq(wr.swap, 91 + i);
        cr_expect_eq(message[1 + i].expect, 90 + i);
    }
    cr_assert_eq(post(TRAFFIC_FAA, 8, 0), 0);
    cr_expect_eq(message[3].expect, 51);
}

Test(sender, refused_message_is_posted_again_as_it_was, .init = open_sender)
{
    full = true;
    cr_expect_eq(post(TRAFFIC_CAS, 8, 0), -ENOMEM);
    cr_expect_eq(sender.posted, 0);
    full = false;
    cr_assert_eq(post(TRAFFIC_CAS, 8, 0), 0);
    cr_expect_eq(wr.wr_id, ID);
    cr_expect_eq(message[0].expect, 0);
}
