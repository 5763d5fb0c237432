/* layer 2b (conn) tests: a conversation and the account of its first direction. */
#ifndef RDMATRACE_TEST_TIMELINE_TALK_H
#define RDMATRACE_TEST_TIMELINE_TALK_H

#include "src/account/timeline_impl.h"
#include "tests/unit/talk.h"

static struct talk t;

static inline struct timeline *start(void)
{
    talk_start(&t, true); /* without a REP */
    cr_assert_not_null(timeline_of(t.observer));
    return timeline_of(t.observer);
}

/* The account of the first host's requests at the first tap; its sum is checked. */
static inline const struct timeline_row *account(void)
{
    struct timeline *l = timeline_of(t.observer);
    const struct timeline_row *r;
    ns_t sum = 0;

    timeline_end(l);
    cr_assert_geq(timeline_n(l), 1);
    r = timeline_row(l, 0);
    cr_assert_eq(r->tap, 0);
    for (unsigned i = 0; i < TIME_STATES; i++)
        sum += r->states[i];
    cr_assert_eq(sum, r->last - r->first, "%lld is not %lld", (long long)sum, (long long)(r->last - r->first));
    return r;
}

static inline const struct episode *only_episode(void)
{
    struct timeline *l = timeline_of(t.observer);

    cr_assert_eq(timeline_episodes(l), 1, "%u episodes", timeline_episodes(l));
    return timeline_episode(l, 0);
}

#endif
