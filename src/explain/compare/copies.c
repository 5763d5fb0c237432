/* layer 3 (explain): compare taps: which copies of a request each of them saw. */
#include "src/explain/compare/copies.h"

uint32_t copies_tap(const struct explainer *x, uint32_t flow)
{
    return conn_flow_at(observer_conns(x->observer), flow)->tap;
}

/* True if a later PSN has replaced request `psn`, or may have: whether the tap saw it is not known. */
static bool is_forgotten(const struct req_dir *h, uint32_t psn)
{
    const struct sent *at = &h->sent[psn & (h->slots - 1)];

    return at->psn != UINT32_MAX && psn_diff(at->psn, psn) > 0;
}

#define NEARER 8 /* so many times nearer to one copy than to another: it is that one */

/* Frames are cut, so that no ICRC tells copies apart: whether the first copy `o` that tap `there` saw is a later one
 * than the first copy `s` of tap `here`, which saw more copies. Its time says so: it is longer behind `s` than any
 * packet takes from tap to tap, or it is the only one, and near the latest copy.
 *
 *     here     s ........................ s'
 *     there                                o
 */
static bool is_later_copy(const struct explainer *x, uint32_t here, const struct sent *s, uint32_t there,
                          const struct sent *o)
{
    ns_t ts = o->ts_first, first, latest, error;

    if (s->copies <= o->copies || s->same || o->same || !explain_clock_known(x, there, here, &ts, &error))
        return false;
    first = ts - s->ts_first;
    latest = ts > s->ts ? ts - s->ts : s->ts - ts;
    return first > BEHIND_MOST + error || (o->copies == 1 && first / NEARER > latest + error);
}

static struct missing_copy later_copy_between(const struct explainer *x, const struct req_dir *a, const struct sent *s,
                                              const struct req_dir *b, const struct sent *o)
{
    uint32_t here = copies_tap(x, a->flow), there = copies_tap(x, b->flow);

    if (is_later_copy(x, here, s, there, o))
        return (struct missing_copy){s->first, false, s};
    if (is_later_copy(x, there, o, here, s))
        return (struct missing_copy){o->first, true, o};
    return (struct missing_copy){0};
}

struct missing_copy copies_lost_between(const struct explainer *x, struct req_dir *a, struct req_dir *b, uint32_t psn)
{
    const struct sent *s = req_dir_sent(a, psn), *o = req_dir_sent(b, psn);
    ns_t there; /* when the first copy passed `b`, by the clock of `a` */

    if (!s || is_forgotten(b, psn))
        return (struct missing_copy){0};
    if (!o)
        return (struct missing_copy){s->first, false, s};
    if (!s->icrc_first || !o->icrc_first)
        return later_copy_between(x, a, s, b, o);
    if (s->icrc_first == o->icrc_first)
        return (struct missing_copy){0};
    there = explain_clock(x, copies_tap(x, b->flow), copies_tap(x, a->flow), o->ts_first);
    return s->ts_first < there ? (struct missing_copy){s->first, false, s} : (struct missing_copy){o->first, true, o};
}

bool copies_are_alike(const struct sent *s)
{
    bool differ = s->icrc_first && !s->same && s->ip_id; /* without an IP ID only AckReq may */

    return !differ && s->copies + s->same > 2;
}

/* Whether the first copies `s` and `o` that two taps saw were both seen before either tap saw the latest copy: then
 * they are one, although no ICRC tells copies apart. */
static bool are_before_latest(const struct explainer *x, uint32_t tap, const struct sent *s, uint32_t there,
                              const struct sent *o)
{
    ns_t first = o->ts_first, latest = o->ts, error;

    if (!explain_clock_known(x, there, tap, &first, &error) || !explain_clock_known(x, there, tap, &latest, &error))
        return false;
    return s->ts > s->ts_first && first < s->ts - error && (o->ts == o->ts_first || s->ts_first < latest - error);
}

bool copies_are_one(const struct explainer *x, uint32_t flow, uint32_t other, const struct sent *s, uint32_t psn)
{
    const struct sent *o = req_dir_sent(observer_req_dir(x->observer, flow), psn);
    bool differ = o && o->icrc_first && s->icrc_first && o->icrc_first != s->icrc_first;

    if (!o || differ || copies_are_alike(s))
        return false;
    if (!o->icrc_first || !s->icrc_first || s->same)
        return are_before_latest(x, copies_tap(x, flow), o, copies_tap(x, other), s);
    return s->copies == 1 || o->ts_first < explain_clock(x, copies_tap(x, other), copies_tap(x, flow), s->ts);
}

struct missing_copy copies_first_missing(const struct explainer *x, struct req_dir *a, struct req_dir *b, uint32_t psn,
                                         unsigned n)
{
    struct missing_copy copy = {0};

    for (unsigned i = 0; i < n && !copy.frame; i++)
        copy = copies_lost_between(x, a, b, psn_add(psn, i));
    return copy;
}
