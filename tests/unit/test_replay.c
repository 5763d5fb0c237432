/* layer 3 (replay) tests: a peer that does something else than in the capture; waiting times. */
#include "gen/replay/replay.h"
#include "tests/fuzz/storage_peer.h"

#include <criterion/criterion.h>

/* The peer's message tells where a WRITE of ours goes. It comes as a WRITE with immediate data, whose bytes are not in
 * the receive that it takes, and there are more of them than the receive has. */
Test(replay, other_message)
{
    struct story_op op = {
        .opcode = WR_RDMA_WRITE, .va = 0x1000, .rkey = 7, .needs = 1, .named = 0, .named_at = {0, 4, false}};
    struct story_msg msg = {.len = 16, .is_send = true, .whole = true};
    struct story s = {.ops = &op, .n_ops = 1, .msgs = &msg, .n_msgs = 1, .longest = 16};
    const struct replay_opts o = {.topspeed = true};
    struct replay r;

    peer_begin(NULL, 0);
    buf_fill(&s.bytes, '\0', 16);
    cr_assert_eq(replay_init(&r, &peer.verbs, &s, &o), 0);
    peer.qp[r.qp].up = true;
    replay_ready(&r, 1);
    replay_start(&r, 1);
    peer_write_imm((unsigned)r.qp, 1 << 20);
    replay_poll(&r, 2);
    cr_expect(r.counts.arrived == 1 && r.counts.other_length == 1, "%u %u", r.counts.arrived, r.counts.other_length);
    cr_expect_eq(r.heard_bytes.len, 0, "no bytes of it are known");
    cr_expect(strstr(r.why, "is shorter than in the capture"), "%s", r.why);
    replay_free(&r);
    buf_free(&s.bytes);
}

/* No memory is asked for. */
Test(replay, long_read)
{
    struct story_op op = {.opcode = WR_RDMA_READ, .frame = 12, .len = UINT32_MAX, .named = STORY_NONE};
    struct story s = {.ops = &op, .n_ops = 1};
    const struct replay_opts o = {.has_memory = true};
    struct replay r;

    peer_begin(NULL, 0);
    cr_expect_eq(replay_init(&r, &peer.verbs, &s, &o), -ENOMEM);
    cr_expect_str_eq(r.why, "frame 12 READs 4294967295 bytes: at most 536870912 can be");
    replay_free(&r);
    buf_free(&s.bytes);
}

Test(replay, wait)
{
    const struct replay_opts usual = {0}, slow = {.speed = 1}, top = {.topspeed = true};

    cr_expect_eq(replay_wait(&usual, 5, 12), 7);
    cr_expect_eq(replay_wait(&usual, 12, 5), 0);
    cr_expect_eq(replay_wait(&slow, 5, 12), 7000);
    cr_expect_eq(replay_wait(&top, 5, 12), 0);
    cr_expect_eq(replay_wait(&slow, INT64_MIN, INT64_MAX), INT64_MAX / 4, "no overflow");
}
