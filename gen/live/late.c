/* layer 3 (live): delays of the program, in order of time. */
#include "gen/live/late.h"

#include "gen/live/times.h"

static ns_t lesser(ns_t a, ns_t b)
{
    return a < b ? a : b;
}

static ns_t greater(ns_t a, ns_t b)
{
    return a > b ? a : b;
}

void late_begin(struct late *l)
{
    l->most = l->sum = l->mark = 0;
    l->n = 0;
    l->behind = false;
}

/* Add a delay that does not begin before the latest one has begun, or joins those that it overlaps. */
static void add(struct late *l, ns_t from, ns_t to)
{
    while (l->n && (from < l->delay[l->n - 1].to || l->n == LATE_DELAYS)) {
        const struct late_delay *d = &l->delay[--l->n];
        l->sum -= d->to - d->from;
        from = lesser(from, d->from);
        to = greater(to, d->to);
    }
    l->delay[l->n++] = (struct late_delay){from, to};
    l->sum += to - from;
}

void late_note(struct late *l, ns_t from, ns_t now)
{
    l->most = greater(l->most, now - from);
    if (now - from < LATE_LEAST)
        return;
    add(l, from, now);
    l->behind = true;
}

void late_waited(struct late *l, ns_t begin, ns_t when, ns_t now)
{
    ns_t until = lesser(when, begin + NS_PER_S);

    if (until > begin && now > until)
        late_note(l, until, now);
}

void late_mark(struct late *l, ns_t now)
{
    if (l->mark)
        late_note(l, l->mark, now);
    l->mark = now;
}

void late_mark_waited(struct late *l, ns_t now)
{
    l->mark = now;
}

void late_caught_up(struct late *l, ns_t now)
{
    if (l->behind && l->n)
        add(l, l->delay[l->n - 1].from, now);
    l->behind = false;
}

ns_t late_within(const struct late *l, ns_t from, ns_t to)
{
    ns_t sum = 0;

    for (unsigned i = times_behind(&l->delay[0].to, sizeof l->delay[0], l->n, from); i < l->n && l->delay[i].from < to;
         i++)
        sum += lesser(to, l->delay[i].to) - greater(from, l->delay[i].from);
    return sum;
}

void late_on_clock(const struct late *l, ns_t least, ns_t most, struct late *to)
{
    late_begin(to);
    to->most = l->most;
    for (unsigned i = 0; i < l->n; i++)
        add(to, l->delay[i].from + least, l->delay[i].to + most);
}
