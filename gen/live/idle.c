/* layer 3 (live): time that the program has waited, by the frames between which it has. */
#include "gen/live/idle.h"

#include "gen/live/times.h"

void idle_begin(struct idle *l)
{
    l->sum = 0;
    l->n = l->skipped = 0;
    l->each = 1;
}

void idle_waited(struct idle *l, ns_t from, ns_t to)
{
    l->sum += to > from ? to - from : 0;
}

/* Keep each second mark only. */
static void thin(struct idle *l)
{
    for (unsigned i = 0; i < IDLE_MARKS / 2; i++)
        l->mark[i] = l->mark[2 * i];
    l->n = IDLE_MARKS / 2;
    l->each *= 2;
}

void idle_frame(struct idle *l, ns_t now)
{
    if (l->n && ++l->skipped < l->each)
        return;
    if (l->n == IDLE_MARKS)
        thin(l);
    l->mark[l->n++] = (struct idle_mark){now, l->sum};
    l->skipped = 0;
}

/* How long it had waited at `t`. */
static double waited_at(const struct idle *l, ns_t t)
{
    unsigned i = times_behind(&l->mark[0].at, sizeof l->mark[0], l->n, t);
    const struct idle_mark *a, *b;

    if (i == 0)
        return l->n ? (double)l->mark[0].idle : 0;
    a = &l->mark[i - 1];
    if (i == l->n) { /* behind the last mark; all that it has waited since may be behind `t`, too */
        ns_t since = l->sum - a->idle;
        return (double)(a->idle + (since < t - a->at ? since : t - a->at));
    }
    b = a + 1;
    return (double)a->idle + (double)(b->idle - a->idle) * (double)(t - a->at) / (double)(b->at - a->at);
}

ns_t idle_within(const struct idle *l, ns_t from, ns_t to)
{
    return to > from ? (ns_t)(waited_at(l, to) - waited_at(l, from) + 0.5) : 0;
}
