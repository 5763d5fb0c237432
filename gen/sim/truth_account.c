/* layer 3 (sim): the truth of a simulation: overlapping spans of time become a timeline, each moment in one state.
 *
 * The state with the higher rank wins:
 *
 *   spans      |-- transfer -----------------------------------------|
 *                        |-- ACK timeout -----------------|
 *                                  |-- pause ---|
 *   timeline   | transfer| timeout | pause      | timeout | transfer |
 */
#include "gen/sim/truth_impl.h"

#include <stdlib.h>

/* The order of src/account/account.h: a higher rank wins. Responses to READs come in order: a late one holds back all
 * behind it, whatever the depth. */
static const uint8_t ranks[TIME_STATES] = {
    [TIME_IDLE] = 0,        [TIME_TRANSFER] = 1,     [TIME_RESPONSE] = 2,
    [TIME_READ_DEPTH] = 3,  [TIME_PEER_SLOW] = 4,    [TIME_CREDIT] = 5,
    [TIME_THROTTLED] = 6,   [TIME_LOSS_NAK] = 7,     [TIME_LOSS_RETRANSMISSION] = 8,
    [TIME_LOSS_RESEND] = 9, [TIME_ACK_TIMEOUT] = 10, [TIME_RNR] = 11,
    [TIME_PAUSED] = 12,     [TIME_PEER_DEAD] = 13,   [TIME_GIVEN_UP] = 14,
    [TIME_CM] = 15,         [TIME_NOT_KNOWN] = 16,
};

void truth_paint(struct truth *t, struct truth_spans *out, enum time_state state, ns_t from, ns_t to, uint32_t incident)
{
    if (from >= to || !truth_grow(t, &out->s, &out->cap, out->n, sizeof *out->s))
        return;
    out->s[out->n++] = (struct truth_span){.from = from, .to = to, .state = (uint8_t)state, .incident = incident};
}

static int by_start(const void *a, const void *b)
{
    const struct truth_span *x = a, *y = b;

    return x->from < y->from ? -1 : x->from > y->from;
}

/* Append a span to a timeline; joined with the last span if state and incident are the same. */
static void append(struct truth *t, struct truth_spans *out, struct truth_span s)
{
    struct truth_span *last = out->n ? &out->s[out->n - 1] : NULL;

    if (last && last->to == s.from && last->state == s.state && last->incident == s.incident)
        last->to = s.to;
    else
        truth_paint(t, out, (enum time_state)s.state, s.from, s.to, s.incident);
}

/* True if `a` wins over `b`: by the rank of its state; then the earlier span, then the older incident. */
static bool wins(const struct truth_span *a, const struct truth_span *b)
{
    if (ranks[a->state] != ranks[b->state])
        return ranks[a->state] > ranks[b->state];
    return a->from != b->from ? a->from < b->from : a->incident < b->incident;
}

/* The span of `open` that wins at `at`; spans that have ended are removed. *until: the next change. */
static struct truth_span ruler(struct truth_spans *open, ns_t at, ns_t *until)
{
    struct truth_span best = {.state = TIME_IDLE};
    size_t kept = 0;

    for (size_t i = 0; i < open->n; i++) {
        struct truth_span *s = &open->s[i];
        if (s->to <= at)
            continue;
        if (!kept || wins(s, &best))
            best = *s;
        *until = s->to < *until ? s->to : *until;
        open->s[kept++] = *s;
    }
    open->n = kept;
    return best;
}

void truth_resolve(struct truth *t, struct truth_spans *in, ns_t first, ns_t last, struct truth_spans *out)
{
    struct truth_spans open = {0};
    size_t next = 0;

    if (in->n)
        qsort(in->s, in->n, sizeof *in->s, by_start);
    for (ns_t at = first, until; at < last; at = until) {
        for (; next < in->n && in->s[next].from <= at; next++)
            truth_paint(t, &open, (enum time_state)in->s[next].state, in->s[next].from, in->s[next].to,
                        in->s[next].incident);
        until = next < in->n && in->s[next].from < last ? in->s[next].from : last;
        struct truth_span s = ruler(&open, at, &until);
        s.from = at;
        s.to = until;
        append(t, out, s);
    }
    free(open.s);
}

void truth_sum(const struct truth_spans *line, ns_t from, ns_t to, ns_t states[TIME_STATES])
{
    size_t lo = 0, hi = line->n;

    while (lo < hi) { /* the first span that ends after `from` */
        size_t mid = (lo + hi) / 2;
        if (line->s[mid].to > from)
            hi = mid;
        else
            lo = mid + 1;
    }
    for (; lo < line->n && line->s[lo].from < to; lo++) {
        const struct truth_span *s = &line->s[lo];
        states[s->state] += (s->to < to ? s->to : to) - (s->from > from ? s->from : from);
    }
}
