/* layer 3 (explain) tests: what the facts of an incident make of its certainty; for which incidents is kept what taps
 * saw. */
#include "src/explain/compare/compare.h"
#include "src/explain/explain_impl.h"

#include <criterion/criterion.h>

/* A hypothesis that rests on what was not seen. */
static struct incident overtaken(void)
{
    struct incident s = {0};

    incident_is(&s, SAY(OVERTAKEN, .psn = 5));
    cr_assert_eq(s.certainty, PROBABLE);
    return s;
}

Test(incident, a_capture_that_lacks_packets_leaves_what_another_tap_proves)
{
    struct incident alone = overtaken(), told = overtaken(), proved = overtaken();

    incident_doubt(&alone);
    cr_expect_eq(alone.certainty, POSSIBLE);
    incident_add(&told, SAY(CM_REQ_LOST, .time = 1));
    incident_doubt(&told);
    cr_expect_eq(told.certainty, POSSIBLE, "a fact that proves nothing");
    incident_add(&proved, SAY(TAP_LACKS, .lost = 7));
    cr_expect_eq(proved.certainty, CERTAIN);
    incident_doubt(&proved);
    cr_expect_eq(proved.certainty, CERTAIN);
}

Test(incident, a_hypothesis_about_what_was_seen_stays)
{
    struct incident s = {0}, none = {0};

    incident_is(&s, SAY(DAMAGED_NAK, .lost = 3));
    uint8_t before = s.certainty;
    incident_doubt(&s);
    cr_expect_eq(s.certainty, before);
    none.certainty = CERTAIN;
    incident_doubt(&none);
    cr_expect_eq(none.certainty, CERTAIN, "nothing is said yet");
}

Test(incident, a_frame_is_named_once_and_those_beyond_the_room_are_counted)
{
    struct incident s = {.tap = 3 << 16};

    incident_frame(&s, ROLE_LOST, 0);
    cr_expect_eq(s.n_frames, 0);
    for (uint32_t i = 1; i <= INCIDENT_FRAMES + 2; i++)
        for (unsigned again = 0; again < 2 && i <= INCIDENT_FRAMES; again++)
            incident_frame(&s, ROLE_LOST, i);
    cr_expect_eq(s.n_frames, INCIDENT_FRAMES);
    cr_expect_eq(s.times, 0);
    incident_frame(&s, ROLE_LOST, INCIDENT_FRAMES + 1);
    cr_expect_eq(s.times, 1);
    cr_expect(incident_has(&s, 3 << 16, 1));
    cr_expect_not(incident_has(&s, 4 << 16, 1), "of another file");
    incident_unframe(&s, 1);
    cr_expect_eq(s.n_frames, INCIDENT_FRAMES - 1);
    cr_expect_not(incident_has(&s, 3 << 16, 1));
    cr_expect_eq(s.frames[0], 2);
}

/* What the tap saw is kept for KEPT_MOST incidents, of those that were not compared yet. */
Test(incident, what_was_compared_makes_room_for_another_incident)
{
    static struct explainer x;
    static struct incident all[KEPT_MOST + 2];
    static struct sent sent[16];
    struct req_dir h = {.sent = sent, .slots = ARRAY_LEN(sent)};
    struct flow_notes *notes = notes_new();

    cr_assert_not_null(notes);
    x.incidents = all;
    x.n = ARRAY_LEN(all);
    x.notes = &notes;
    for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
        all[i].psn = i;
        if (i == KEPT_MOST + 1)
            kept_compared(&x, &all[7]);
        kept_take(&x, &all[i], &h);
        cr_assert_eq(all[i].kept, i < KEPT_MOST ? i + 1 : i == KEPT_MOST ? 0 : 8, "incident %u", i);
    }
    cr_expect_eq(all[7].kept, 0);
    cr_expect(x.kept[7]->psn == KEPT_MOST + 1 && x.n_kept == KEPT_MOST);
    kept_free(&x);
    notes_free(notes, NULL);
}
