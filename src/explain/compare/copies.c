/* layer 3 (explain): compare taps: which copies of a request each of them saw. */
#include "src/explain/compare/copies.h"
#include "src/explain/compare/taps.h"

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

struct seen_copies copies_of_request(const struct explainer *x, const struct req_dir *h, const struct sent *s)
{
    return (struct seen_copies){.flow = h->flow,
                                .tap = copies_tap(x, h->flow),
                                .psn = s->psn,
                                .n = s->copies,
                                .frame = s->first,
                                .icrc_first = s->icrc_first,
                                .icrc = s->icrc,
                                .ts_first = s->ts_first,
                                .ts = s->ts,
                                .doubled = s->same,
                                .unlike = s->ip_id || s->copies + s->same <= 2};
}

struct seen_copies copies_of_response(const struct explainer *x, uint32_t flow, const struct noted_response *r)
{
    return (struct seen_copies){.flow = flow,
                                .tap = copies_tap(x, flow),
                                .psn = r->psn,
                                .n = r->first == r->frame ? 1 : 2,
                                .frame = r->first,
                                .response = true,
                                .icrc_first = r->icrc_first,
                                .icrc = r->icrc,
                                .ts_first = r->ts_first,
                                .ts = r->ts,
                                .unlike = r->ip_id || r->first == r->frame};
}

bool copies_at(const struct explainer *x, uint32_t flow, uint32_t psn, bool response, struct seen_copies *c)
{
    struct req_dir *h = observer_req_dir(x->observer, flow);
    const struct sent *s = !response && h && h->have_next ? req_dir_sent(h, psn) : NULL;
    const struct noted_response *r = response ? response_noted(x->notes[flow], psn) : NULL;

    if (s)
        *c = copies_of_request(x, h, s);
    else if (r)
        *c = copies_of_response(x, flow, r);
    return s || r;
}

/* The clocks of two taps at copies `b` and `a`: the time of tap `a` is that of tap `b` plus `shift`, within `error`. */
struct clocks_at {
    bool known;
    ns_t shift, error;
};

/* A packet just before, of which both taps saw as many copies, tells how much later tap `b` sees a packet: no clock has
 * to be known for that. */
static struct clocks_at clocks_at(const struct explainer *x, const struct seen_copies *a, const struct seen_copies *b)
{
    struct clocks_at c = {0};
    struct seen_copies near_a, near_b;
    ns_t ts = b->ts_first;
    bool differ;

    for (unsigned i = 1; i <= BEHIND_LOOK; i++) {
        uint32_t psn = psn_add(a->psn, PSN_MASK + 1 - i);
        if (!copies_at(x, a->flow, psn, a->response, &near_a) || !copies_at(x, b->flow, psn, b->response, &near_b))
            continue;
        differ = near_a.icrc_first && near_b.icrc_first && near_a.icrc_first != near_b.icrc_first;
        if (near_a.n == near_b.n && !differ && !near_a.doubled && !near_b.doubled)
            return (struct clocks_at){.known = true, .shift = near_a.ts_first - near_b.ts_first};
    }
    c.known = explain_clock_known(x, b->tap, a->tap, &ts, &c.error);
    c.shift = ts - b->ts_first;
    return c;
}

/* No ICRC tells copies apart: whether the first copy of `b` is a later one than the first copy of `a`, whose tap saw
 * more copies. Its time says so: it is longer behind than any packet takes from tap to tap, or it is the only one, and
 * near the latest copy.
 *
 *     a     first .................... latest
 *     b                                 first
 */
static bool is_later_copy(const struct seen_copies *a, const struct seen_copies *b, ns_t shift, ns_t error)
{
    ns_t ts = b->ts_first + shift, first = ts - a->ts_first, latest = ts > a->ts ? ts - a->ts : a->ts - ts;

    if (a->n <= b->n || a->doubled || b->doubled)
        return false;
    return first > BEHIND_MOST + error || (b->n == 1 && first / NEARER > latest + error);
}

/* True if the first copy has the ICRC of the latest one: the IP header does not tell them apart. */
static bool are_alike(const struct seen_copies *c)
{
    return c->n > 1 && c->icrc == c->icrc_first;
}

/* Copies between the first and the latest one, which no tap keeps, may be like the first one. */
static bool are_told_by_icrc(const struct seen_copies *a, const struct seen_copies *b)
{
    if (!a->icrc_first || !b->icrc_first)
        return false;
    return a->icrc_first != b->icrc_first || (!are_alike(a) && !are_alike(b) && a->unlike && b->unlike);
}

enum first_copies copies_compare(const struct explainer *x, const struct seen_copies *a, const struct seen_copies *b)
{
    bool told = are_told_by_icrc(a, b);
    struct clocks_at c;

    if (told && a->icrc_first == b->icrc_first)
        return FIRST_SAME;
    if (told && a->unlike && b->unlike &&
        (a->icrc == b->icrc_first || b->icrc == a->icrc_first)) /* the latest copy of the other tap */
        return a->icrc == b->icrc_first ? FIRST_LATER : FIRST_EARLIER;
    c = clocks_at(x, a, b);
    if (!c.known)
        return FIRST_UNKNOWN;
    if (told)
        return a->ts_first < b->ts_first + c.shift ? FIRST_LATER : FIRST_EARLIER;
    if (is_later_copy(a, b, c.shift, c.error))
        return FIRST_LATER;
    if (is_later_copy(b, a, -c.shift, c.error))
        return FIRST_EARLIER;
    return a->n == b->n ? FIRST_SAME : FIRST_UNKNOWN;
}

struct missing_copy copies_lost_between(const struct explainer *x, struct req_dir *a, struct req_dir *b, uint32_t psn)
{
    const struct sent *s = a ? req_dir_sent(a, psn) : NULL, *o = b ? req_dir_sent(b, psn) : NULL;
    struct seen_copies here, there;
    enum first_copies first;

    if (!s || !b || is_forgotten(b, psn))
        return (struct missing_copy){0};
    if (!o)
        return (struct missing_copy){s->first, false, s};
    here = copies_of_request(x, a, s);
    there = copies_of_request(x, b, o);
    first = copies_compare(x, &here, &there);
    if (first == FIRST_LATER)
        return (struct missing_copy){s->first, false, s};
    return first == FIRST_EARLIER ? (struct missing_copy){o->first, true, o} : (struct missing_copy){0};
}

bool copies_are_alike(const struct sent *s)
{
    bool differ = s->icrc_first && !s->same && s->ip_id; /* without an IP ID only AckReq may */

    return !differ && s->copies + s->same > 2;
}

/* Whether the first copies `s` and `o` that two taps saw were both seen before either tap saw the latest copy: then
 * they are one, although no ICRC tells copies apart. Of more than two the tap that they pass first does not keep when
 * it saw the second one.
 *
 *     s     first ... 2nd ................. latest
 *     o               first ............... latest        it may be the 2nd one
 */
static bool are_before_latest(const struct explainer *x, const struct req_dir *a, const struct sent *s,
                              const struct req_dir *b, const struct sent *o)
{
    ns_t first = o->ts_first, latest = o->ts, error;
    uint32_t tap = copies_tap(x, a->flow), there = copies_tap(x, b->flow);
    bool more = s->copies + s->same > 2 && !copies_pass_first(x, b->flow, a->flow),
         more_there = o->copies + o->same > 2 && !copies_pass_first(x, a->flow, b->flow);

    if (more || more_there)
        return false;
    if (!explain_clock_known(x, there, tap, &first, &error) || !explain_clock_known(x, there, tap, &latest, &error))
        return false;
    return s->ts > s->ts_first && first < s->ts - error && (o->ts == o->ts_first || s->ts_first < latest - error);
}

bool copies_are_one(const struct explainer *x, uint32_t flow, uint32_t other, const struct sent *s, uint32_t psn)
{
    const struct req_dir *a = observer_req_dir(x->observer, flow), *b = observer_req_dir(x->observer, other);
    const struct sent *o = req_dir_sent(observer_req_dir(x->observer, flow), psn);
    struct seen_copies here, there;

    if (!o || copies_are_alike(s))
        return false;
    here = copies_of_request(x, a, o);
    there = copies_of_request(x, b, s);
    if (!are_told_by_icrc(&here, &there) || s->same)
        return are_before_latest(x, a, o, b, s);
    if (o->icrc_first != s->icrc_first)
        return false;
    return s->copies == 1 || o->ts_first < explain_clock(x, there.tap, here.tap, s->ts);
}

struct missing_copy copies_first_missing(const struct explainer *x, struct req_dir *a, struct req_dir *b, uint32_t psn,
                                         unsigned n)
{
    struct missing_copy copy = {0};

    for (unsigned i = 0; i < n && !copy.frame; i++)
        copy = copies_lost_between(x, a, b, psn_add(psn, i));
    return copy;
}

void copies_between(const struct explainer *x, struct incident *st, uint32_t from, uint32_t to)
{
    st->passed = fact_tap(copies_tap(x, from));
    st->missed = fact_tap(copies_tap(x, to));
}

bool copies_pass_first(const struct explainer *x, uint32_t first, uint32_t then)
{
    const struct flow_notes *f = x->notes[first], *n = x->notes[then];
    ns_t far = f ? f->responses.least_trip : -1, near = n ? n->responses.least_trip : -1;

    if (f && n && f->responses.round_trip >= 0 && n->responses.round_trip >= 0) { /* not to an earlier copy: exact */
        far = f->responses.round_trip;
        near = n->responses.round_trip;
    }
    return far >= 0 && near >= 0 && far > near;
}

void copies_only_lost(struct incident *st, uint32_t tap, uint32_t frame)
{
    incident_frame_at(st, ROLE_LOST, tap, frame);
    for (unsigned i = 0; i < st->n_frames; i++) {
        bool it = st->frames[i] == frame && st->files[i] == tap >> 16;
        if (it || st->roles[i] == ROLE_LOST)
            st->roles[i] = it ? ROLE_LOST : ROLE_EVIDENCE;
    }
}

void copies_gone(struct incident *st, enum gone_how how, const struct seen_copies *c)
{
    st->gone.known = true;
    st->gone.how = (uint8_t)how;
    st->gone.response = c->response;
    st->gone.doubled = c->doubled;
    st->gone.unlike = c->unlike;
    st->gone.fact = (uint8_t)(st->n_facts - 1);
    st->gone.n = (uint16_t)c->n;
    st->gone.tap = c->tap;
    st->gone.psn = c->psn;
    st->gone.icrc_first = c->icrc_first;
    st->gone.icrc = c->icrc;
    st->gone.ts_first = c->ts_first;
    st->gone.ts = c->ts;
}

void copies_request_gone(const struct explainer *x, struct incident *st, uint32_t flow, const struct sent *s)
{
    const struct seen_copies c = copies_of_request(x, observer_req_dir(x->observer, flow), s);

    copies_gone(st, GONE_LOST, &c);
}

void copies_request_late(const struct explainer *x, struct incident *st, uint32_t flow, const struct sent *s)
{
    const struct seen_copies c = copies_of_request(x, observer_req_dir(x->observer, flow), s);

    copies_gone(st, GONE_LATE, &c);
}

void copies_retransmission_gone(struct incident *st, unsigned fact)
{
    const struct seen_copies c = {.tap = st->tap, .psn = st->psn, .icrc = st->icrc};

    copies_gone(st, GONE_AGAIN, &c);
    st->gone.fact = (uint8_t)fact;
}

void copies_response_gone(const struct explainer *x, struct incident *st, uint32_t flow, const struct noted_response *r)
{
    const struct seen_copies c = copies_of_response(x, flow, r);

    copies_gone(st, GONE_LOST, &c);
}
