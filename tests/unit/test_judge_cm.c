/* layer 3 (judge) tests: messages of connection management. */
#include "tests/unit/cm_frames.h"
#include "tests/unit/judge_rig.h"

/* Judge a message as frame `number`, at `ts`, cut to `len` bytes; one byte of its private data is `changed`. */
static void judge_cut_message(struct judge *j, const struct cm_frame *m, uint64_t number, ns_t ts, uint32_t len,
                              uint8_t changed)
{
    static const struct decode_opts unverified = {0};
    uint8_t bytes[400];
    const uint32_t whole = cm_frame_bytes(m, bytes);
    struct frame f = {.ts = ts,
                      .has_ts = true,
                      .data = bytes,
                      .caplen = min_u32(len, whole),
                      .len = whole,
                      .number = number,
                      .linktype = LINK_ETHERNET};
    struct pkt p;

    bytes[m->mad_off + MAD_HDR_LEN + 200] = changed;
    pkt_decode(&p, &f, &unverified);
    judge_packet(j, &p);
}

static void judge_req(struct judge *j, uint64_t number, ns_t seconds, uint32_t len, uint8_t changed)
{
    judge_cut_message(j, &CM_FRAME_REQ, number, seconds * NS_PER_S, len, changed);
}

Test(judge_cm, a_copy_of_a_cm_message_differs_from_the_one_that_it_was_compared_with)
{
    struct judge *j = judge_new(&(struct judge_opts){0});
    const struct finding *found = NULL;

    judge_req(j, 3, 1, CM_FRAME_REQ.mad_off + MAD_HDR_LEN + 60, 0);
    judge_req(j, 9, 11, UINT32_MAX, 0);
    judge_req(j, 15, 21, UINT32_MAX, 1);
    judge_end(j);
    for (size_t i = 0; i < findings_n(judge_findings(j)); i++)
        if (findings_at(judge_findings(j), i)->rule == RULE_CM_03)
            found = findings_at(judge_findings(j), i);
    cr_assert_not_null(found);
    cr_expect_eq(found->frames[0], 15);
    cr_expect_eq(found->causes[0], 9, "frame 3 was cut");
    judge_free(j);
}

/* Whether a REQ with other private data, `after` the last of these messages, is a retransmission of the first. */
static bool is_retransmission(const struct cm_frame *const *messages, unsigned n, ns_t after)
{
    struct judge *j = judge_new(&(struct judge_opts){0});
    bool found = false;

    for (unsigned i = 0; i < n; i++)
        judge_cut_message(j, messages[i], i + 1, NS_PER_S + i * 100 * US, UINT32_MAX, 0);
    judge_cut_message(j, &CM_FRAME_REQ, n + 1, NS_PER_S + (n - 1) * 100 * US + after, UINT32_MAX, 1);
    judge_end(j);
    for (size_t i = 0; i < findings_n(judge_findings(j)); i++)
        found |= findings_at(judge_findings(j), i)->rule == RULE_CM_03;
    judge_free(j);
    return found;
}

Test(judge_cm, a_req_of_the_same_id_begins_another_connection_once_none_can_cross_what_was_captured)
{
    static const struct cm_frame *const set_up[] = {&CM_FRAME_REQ, &CM_FRAME_REP, &CM_FRAME_RTU, &CM_FRAME_DREQ};

    cr_expect(is_retransmission(set_up, 1, 5 * NS_PER_S), "no response");
    cr_expect(is_retransmission(set_up, 3, 2 * US));
    cr_expect_not(is_retransmission(set_up, 3, 5 * MS), "behind the RTU");
    cr_expect(is_retransmission(set_up, 4, 2 * US));
    cr_expect_not(is_retransmission(set_up, 4, 5 * MS), "behind the DREQ");
}
