/* layer 2b (account): the time of one direction of requests, in spans of one state each. */
#include "src/account/spans.h"

void spans_init(struct spans *s, ns_t first, span_bill *bill, void *user)
{
    *s = (struct spans){.first = first, .at = first, .bill = bill, .user = user};
}

/* Add the part of a span between `from` and `to` to `states`. Time in responses is shared out evenly. */
static void add_part(const struct span *p, ns_t from, ns_t to, ns_t states[TIME_STATES])
{
    ns_t a = p->start > from ? p->start : from, b = p->end < to ? p->end : to, response = 0;

    if (b <= a)
        return;
    if (p->response)
        response = (ns_t)((__int128)p->response * (b - a) / (p->end - p->start));
    states[TIME_RESPONSE] += response;
    states[p->state] += b - a - response;
}

static void bill(const struct spans *s, const struct span *p, int sign)
{
    if (p->episode != NO_EPISODE && s->bill)
        s->bill(s->user, p->episode, (enum time_state)p->state, sign * (p->end - p->start));
}

static void forget_oldest_half(struct spans *s)
{
    unsigned half = SPANS_MAX / 2;

    for (unsigned i = 0; i < half; i++)
        add_part(&s->span[i], s->span[i].start, s->span[i].end, s->sums);
    s->n -= half;
    memmove(s->span, s->span + half, s->n * sizeof *s->span);
}

static void put(struct spans *s, const struct span *p)
{
    struct span *last = s->n ? &s->span[s->n - 1] : NULL;

    if (p->end <= p->start)
        return;
    s->at = p->end;
    bill(s, p, 1);
    if (last && last->state == p->state && last->episode == p->episode) {
        last->end = p->end;
        last->response += p->response;
        return;
    }
    if (s->n == SPANS_MAX)
        forget_oldest_half(s);
    s->span[s->n++] = *p;
}

static struct span span_of(ns_t start, ns_t end, enum time_state state, uint32_t episode)
{
    bool response = state == TIME_RESPONSE;

    return (struct span){.start = start,
                         .end = end,
                         .response = response ? end - start : 0,
                         .episode = episode,
                         .state = (uint8_t)(response ? TIME_TRANSFER : state)};
}

void spans_add(struct spans *s, ns_t to, enum time_state state, uint32_t episode)
{
    const struct span p = span_of(s->at, to, state, episode);

    put(s, &p);
}

/* The part of `p` between `a` and `b`, as it is. */
static struct span part_of(const struct span *p, ns_t a, ns_t b)
{
    struct span q = *p;

    q.start = a;
    q.end = b;
    if (p->response)
        q.response = (ns_t)((__int128)p->response * (b - a) / (p->end - p->start));
    return q;
}

ns_t spans_change(struct spans *s, ns_t from, ns_t to, uint32_t over, enum time_state state, uint32_t episode)
{
    struct span old[SPANS_MAX];
    unsigned at = s->n, n;
    ns_t changed = 0;

    while (at && s->span[at - 1].end > from)
        at--;
    n = s->n - at;
    memcpy(old, s->span + at, n * sizeof *old);
    s->n = at;
    for (unsigned i = 0; i < n; i++)
        bill(s, &old[i], -1);
    for (unsigned i = 0; i < n; i++) {
        const struct span *p = &old[i];
        bool may = over & 1u << p->state;
        ns_t a = from > p->start ? from : p->start, b = to < p->end ? to : p->end;
        if (!may || b <= a) {
            put(s, p);
            continue;
        }
        const struct span before = part_of(p, p->start, a), it = span_of(a, b, state, episode),
                          behind = part_of(p, b, p->end); /* empty ones are not put */
        put(s, &before);
        put(s, &it);
        put(s, &behind);
        changed += b - a;
    }
    return changed;
}

void spans_between(const struct spans *s, ns_t from, ns_t to, ns_t states[TIME_STATES])
{
    ns_t known = 0;

    memset(states, 0, TIME_STATES * sizeof *states);
    for (unsigned i = s->n; i && s->span[i - 1].end > from; i--)
        add_part(&s->span[i - 1], from, to, states);
    for (unsigned i = 0; i < TIME_STATES; i++)
        known += states[i];
    if (to - from > known)
        states[TIME_NOT_KNOWN] += to - from - known;
}

void spans_total(const struct spans *s, ns_t states[TIME_STATES])
{
    memcpy(states, s->sums, TIME_STATES * sizeof *states);
    for (unsigned i = 0; i < s->n; i++)
        add_part(&s->span[i], s->span[i].start, s->span[i].end, states);
}
