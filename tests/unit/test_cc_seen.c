/* layer 5 (test): congestion control as a capture shows it: the spacing of CNPs, and what they do to a rate. */
#include "src/cc/cuts.h"
#include "src/cc/spacing.h"
#include "zeros.h"

#include <criterion/criterion.h>

/* CNPs of two queue pairs of each of two senders, in turn, each queue pair's `gap` apart; the scope that is seen. */
static enum np_scope seen(ns_t qp_gap, unsigned shift)
{
    struct spacing *s = zeros_new(1, sizeof *s);
    struct spacing_times *t = zeros_new(1, sizeof *t);
    ns_t span[NP_SCOPES];
    enum np_scope scope;

    for (unsigned i = 0; i < 400; i++) {
        struct spacing_cnp c = {.adapter = 1, .qpn = i % 4, .ts = (ns_t)(i / 4) * qp_gap + (i % 4) * (ns_t)shift};
        c.dst[0] = (uint8_t)(i % 4 / 2);
        spacing_take(s, t, &c, span);
    }
    cr_expect_eq(t->of[NP_QP].min, qp_gap);
    cr_expect_eq(span[NP_QP], (SPACING_RUN - 1) * qp_gap);
    scope = spacing_scope(t);
    zeros_free(t, 1, sizeof *t);
    zeros_free(s, 1, sizeof *s);
    return scope;
}

Test(cc_seen, the_narrowest_scope_that_is_kept_apart)
{
    cr_expect_eq(seen(50000, 100), NP_QP);
    cr_expect_eq(seen(50000, 12500), NP_QP); /* by chance all are 12.5 us apart: those of a queue pair 50 */
}

Test(cc_seen, an_interval_of_the_adapter)
{
    static struct spacing s;
    static struct spacing_times t;
    ns_t span[NP_SCOPES];

    for (unsigned i = 0; i < 100; i++)
        spacing_take(&s, &t, &(struct spacing_cnp){.qpn = i / 2 % 4, .ts = i * 50000}, span);
    cr_expect_eq(spacing_scope(&t), NP_PORT);
    cr_expect_eq(span[NP_PORT], (SPACING_RUN - 1) * 50000);
}

Test(cc_seen, one_queue_pair_shows_no_scope)
{
    static struct spacing s;
    static struct spacing_times t;
    ns_t span[NP_SCOPES];

    for (unsigned i = 0; i < 3; i++)
        spacing_take(&s, &t, &(struct spacing_cnp){.qpn = 7, .ts = i * 1000}, span);
    cr_expect_eq(span[NP_PORT], NS_NEVER);
    cr_expect_eq(spacing_scope(&t), NP_SCOPES);
}

/* Packets of 1000 bytes, `gap` apart, with a CNP every 20 us; after each the gap grows by `more` per mille. */
static bool run(struct cuts *c, unsigned cnps, unsigned more, bool inside, struct cuts_run *r)
{
    ns_t now = 1, gap = 400000, next = 20000;
    uint32_t psn = 0;
    bool over = false;

    for (unsigned n = 0; n < cnps; now += gap / 1000) {
        cuts_packet(c, 1000, psn++, inside, now);
        if (now < next)
            continue;
        over |= cuts_cnp(c, ++n, now, r);
        next += 20000;
        gap += gap * more / 1000;
    }
    return over;
}

Test(cc_seen, a_run_of_cnps_and_the_rates_of_its_halves)
{
    struct cuts c = {0};
    struct cuts_run r;

    cr_expect_not(run(&c, CUTS_RUN, 0, true, &r));
    c = (struct cuts){0};
    cr_assert(run(&c, CUTS_RUN + 1, 0, true, &r));
    cr_expect_eq(r.frame, 1u);
    cr_expect_eq(r.before, UINT64_C(20000000000));
    cr_expect_eq(r.after, r.before);
    c = (struct cuts){0};
    cr_assert(run(&c, CUTS_RUN + 1, 5, true, &r));
    cr_expect_lt(r.after * 100, r.before * 85);
    c = (struct cuts){0};
    cr_assert(run(&c, CUTS_RUN + 1, 0, false, &r));
    cr_expect_eq(r.before, 0u, "between messages nothing is known");
}

Test(cc_seen, a_retransmission_or_a_pause_ends_a_run)
{
    struct cuts c = {0};
    struct cuts_run r;

    run(&c, CUTS_RUN, 0, true, &r);
    cuts_packet(&c, 1000, 3, true, c.last + 100);
    cr_expect_not(cuts_cnp(&c, 1, c.last + 10000, &r));
    c = (struct cuts){0};
    run(&c, CUTS_RUN, 0, true, &r);
    cr_expect_not(cuts_cnp(&c, 1, c.cnp + CUTS_RUN_GAP + 1, &r));
}

/* The rate halves at a CNP that stands alone, or at one of two. */
static uint64_t ratios(bool second)
{
    struct cuts c = {0};
    struct cuts_run r;
    ns_t now = 1;

    for (uint32_t psn = 0; psn < 4000; psn++) {
        cuts_packet(&c, 1000, psn, true, now);
        if (psn == 100 || (second && psn == 120))
            cuts_cnp(&c, 1, now + 1, &r);
        now += psn > 100 ? 800 : 400;
    }
    cr_expect(second || (c.ratio_min == 500 && c.ratio_max == 500));
    return c.ratios;
}

Test(cc_seen, the_cut_of_a_cnp_alone)
{
    cr_expect_eq(ratios(false), 1u);
    cr_expect_eq(ratios(true), 0u);
}

Test(cc_seen, time_stamps_that_jump_tell_no_rate)
{
    struct cuts c = {0};
    struct cuts_run r;

    for (uint32_t psn = 0; psn < 40; psn++)
        cuts_packet(&c, 1000, psn, true, psn % 2 ? 1 : INT64_MAX);
    cr_expect_not(cuts_cnp(&c, 1, 2, &r));
    cr_expect_eq(c.sum.time, 0);
    cr_expect_eq(c.recovery.n, 0u);
}

/* Levels from one gap between packets to the next; the gaps of the last one then get as much longer as still fits. */
static struct recovery rise(unsigned later)
{
    static const ns_t gaps[] = {20000, 16000, 14000, 12000, 10013, 10000};
    struct recovery r = {0};
    ns_t ts = 1;

    for (unsigned i = 0; i < ARRAY_LEN(gaps); i++)
        for (unsigned n = 0; n < 2; n++)
            recovery_packet(&r, 1000, gaps[i], ts += gaps[i]);
    for (; later; later--) {
        const struct recovery_level *l = &r.level[ARRAY_LEN(gaps) - 1];
        ns_t usual = l->time * 1000 / (ns_t)l->bytes, gap = usual + usual / 1000;
        recovery_packet(&r, 1000, gap, ts += gap);
    }
    cr_expect_eq(r.n, ARRAY_LEN(gaps));
    recovery_end(&r);
    return r;
}

Test(cc_seen, a_level_that_falls_below_the_one_before_is_no_recovery)
{
    struct recovery steady = rise(0), slows = rise(40);

    cr_expect_eq(steady.period.n, 1u);
    cr_expect_eq(slows.period.n, 0u);
    cr_expect_eq(slows.increase.n, 0u);
}
