/* layer 3 (explain) tests: notes of a flow, and the memory that they may take. */
#include "src/explain/notes.h"
#include "tests/unit/mkpkt.h"

#include <criterion/criterion.h>

/* A response with this PSN is noted. */
static void note(struct flow_notes *t, uint32_t psn, struct room *room)
{
    struct noted_response *r = response_slot_new(t, psn, room);

    r->psn = psn;
    r->frame = psn + 1;
}

Test(notes, responses_are_forgotten_only_where_no_room_is_left)
{
    struct room plenty = {.limit = 1 << 20},
                little = {.limit = 2 * 3 * NOTED_RESPONSES_MIN * sizeof(struct noted_response)};
    struct flow_notes *all = notes_new(), *some = notes_new();

    cr_assert(all && some);
    for (uint32_t psn = 0; psn < 2 * NOTED_RESPONSES; psn++) {
        note(all, psn, &plenty);
        note(some, psn, &little);
    }
    cr_expect_eq(all->responses.slots, NOTED_RESPONSES, "no more are kept, whatever the room");
    cr_expect_eq(response_frame(all, NOTED_RESPONSES), NOTED_RESPONSES + 1);
    cr_expect_eq(response_frame(all, NOTED_RESPONSES - 1), 0, "forgotten for a later one");
    cr_expect_eq(plenty.used, (NOTED_RESPONSES - NOTED_RESPONSES_MIN) * sizeof(struct noted_response));
    cr_expect_eq(some->responses.slots, 4 * NOTED_RESPONSES_MIN, "48 more: half of its room");
    cr_expect_eq(little.used, little.limit / 2, "half of it is for what is outstanding");
    notes_free(all, &plenty);
    notes_free(some, &little);
    cr_expect_eq(plenty.used, 0);
    cr_expect_eq(little.used, 0);
}

/* How many slots there are for the PSNs of a hundred requests of a service, of which all before `una` were responded
 * to, with room for 48 more. */
static uint32_t slots_of_requests(uint8_t service, uint32_t una)
{
    struct room room = {.limit = 3 * ROUNDS_MIN * sizeof(struct copies)};
    struct req_dir h = {.have_next = true, .service = service, .room = &room, .have_una = true, .una = una};
    struct flow_notes *t = notes_new();
    uint32_t slots;

    cr_assert(t);
    for (; h.cursor < 100; h.cursor++) {
        struct frame f = {.number = h.cursor + 1};
        struct pkt p = mk(OP_SEND_ONLY, h.cursor, 0);
        p.frame = &f;
        rounds_request(&t->rounds, &(struct event){.h = &h, .p = &p, .as = SEEN_NEW});
    }
    slots = t->rounds.slots;
    notes_free(t, &room);
    cr_expect_eq(room.used, 0);
    return slots;
}

Test(notes, requests_that_are_still_outstanding_may_take_the_other_half_of_the_room)
{
    cr_expect_eq(slots_of_requests(SVC_RC, 0), 4 * ROUNDS_MIN);
    cr_expect_eq(slots_of_requests(SVC_RC, 100), 2 * ROUNDS_MIN);
    cr_expect_eq(slots_of_requests(SVC_UC, 0), 2 * ROUNDS_MIN, "nothing responds to them");
}
