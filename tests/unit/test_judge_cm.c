/* layer 3 (judge) tests: messages of connection management. */
#include "tests/unit/cm_frames.h"
#include "tests/unit/judge_rig.h"

/* Judge a REQ as frame `number`, `at` seconds, cut to `len` bytes; one byte of its private data is `changed`. */
static void judge_req(struct judge *j, uint64_t number, ns_t at, uint32_t len, uint8_t changed)
{
    static const struct decode_opts unverified = {0};
    uint8_t bytes[400];
    const uint32_t whole = cm_frame_bytes(&CM_FRAME_REQ, bytes);
    struct frame f = {.ts = at * NS_PER_S,
                      .has_ts = true,
                      .data = bytes,
                      .caplen = min_u32(len, whole),
                      .len = whole,
                      .number = number,
                      .linktype = LINK_ETHERNET};
    struct pkt p;

    bytes[CM_FRAME_REQ.mad_off + MAD_HDR_LEN + 200] = changed;
    pkt_decode(&p, &f, &unverified);
    judge_packet(j, &p);
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
