/* layer 3 (trace): what went wrong where nothing is acknowledged: a gap, and what fills it late, is all there is to see. */
#include "src/trace/explain_impl.h"

#define GAP_LOOK 1024 /* statements among which that about a gap is looked for */

/* The first PSN from `psn` to before `end` of which no copy came, if `now` comes just now; `end` if there is none. */
static uint32_t missing_from(const struct watched *e, const struct told *t, uint32_t psn, uint32_t end)
{
    while (psn != end && (psn == e->p->bth.psn || half_sent(e->h, psn) || told_bad_frame(t, psn)))
        psn = psn_add(psn, 1);
    return psn;
}

/* How many PSNs of the gap from `psn` to before `end` came damaged. */
static uint32_t damaged(const struct told *t, uint32_t psn, uint32_t end)
{
    uint32_t n = 0;

    for (unsigned i = 0; i < TOLD_BAD; i++)
        n += t->bad[i].frame && psn_in(t->bad[i].psn, psn, (end - psn) & PSN_MASK);
    return n;
}

static void say_missing(struct explainer *x, struct statement *st)
{
    const char *lost = "This is an unreliable connection: what is lost is not sent again.";

    if (st->missing > 1)
        statement_say(x, st, "PSN %u and %s behind it never passed the tap: frame %u came instead. %s", st->psn, count_str(st->missing - 1, "packet"),
                      st->frames[0], lost);
    else
        statement_say(x, st, "PSN %u never passed the tap: frame %u came instead. %s", st->psn, st->frames[0], lost);
}

static void tell_gap(struct explainer *x, const struct watched *e, const struct told *t)
{
    uint32_t end = e->p->bth.psn, n = (end - e->h->next) & PSN_MASK, bad = damaged(t, e->h->next, end);
    struct statement *st = n <= bad ? NULL : statement_new(x, CAUSE_PACKET_LOSS, e->flow, e->p);

    if (!st)
        return;
    statement_frame(st, frame_u32(e->p));
    st->where = WHERE_BEFORE;
    st->end = end;
    st->missing = n - bad;
    statement_concerns(st, missing_from(e, t, e->h->next, end), 0, true);
    say_missing(x, st);
}

/* The statement about the gap that `psn` lies in; NULL for none. */
static struct statement *about_gap(struct explainer *x, uint32_t flow, uint32_t psn)
{
    for (uint32_t i = x->n; i > 0 && x->n - i < GAP_LOOK; i--) {
        struct statement *st = &x->st[i - 1];
        if (st->flow == flow && st->cause == CAUSE_PACKET_LOSS && !st->moot && psn_in(psn, st->psn, (st->end - st->psn) & PSN_MASK))
            return st;
    }
    return NULL;
}

/* A packet that was taken for lost comes behind later ones: nothing is ever sent again here, so it was overtaken. */
static void tell_overtaken(struct explainer *x, const struct watched *e, const struct told *t)
{
    struct statement *st = about_gap(x, e->flow, e->p->bth.psn);

    if (st && --st->missing == 0) {
        st->moot = true;
    } else if (st) {
        st->psn = missing_from(e, t, st->psn, st->end);
        say_missing(x, st);
    }
    st = statement_new(x, CAUSE_REORDER, e->flow, e->p);
    if (!st)
        return;
    statement_frame(st, frame_u32(e->p));
    statement_frame(st, e->h->last_frame);
    st->where = WHERE_BEFORE;
    statement_concerns(st, e->p->bth.psn, 0, true);
    statement_say(x, st, "PSN %u (frame %u) was overtaken by later packets. This is an unreliable connection: a message out of order is dropped.",
                  e->p->bth.psn, frame_u32(e->p));
}

void explain_unreliable(struct explainer *x, const struct watched *e, const struct told *t)
{
    if (e->as == SEEN_GAP)
        tell_gap(x, e, t);
    else if (e->as == SEEN_LATE)
        tell_overtaken(x, e, t);
}
