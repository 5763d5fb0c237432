/* layer 3 (explain): incidents of several taps about one event become one. */
#include "bits.h"
#include "dissect/pkt.h"
#include "src/explain/compare/compare.h"

#include <stdlib.h>

#define SAME_TIME NS_PER_S /* longest time between incidents of two interfaces of a file about one event */

enum {
    GATHERS = 1u << 0,   /* one incident gathers all events of a flow */
    BOTH_WAYS = 1u << 1, /* it is about both directions */
    /* a packet was retransmitted: another tap may give another one of these causes for it */
    REPEATS = 1u << 2,
    VAGUE = 1u << 3, /* a failure seen at another tap says more */
};

static const uint8_t kinds[CAUSE_COUNT] = {
    [CAUSE_RETRY_EXCEEDED] = GATHERS,
    [CAUSE_SILENT_PEER] = GATHERS,
    [CAUSE_RNR] = GATHERS,
    [CAUSE_RNR_EXCEEDED] = GATHERS,
    [CAUSE_CE_WITHOUT_CNP] = GATHERS,
    [CAUSE_CNP_WITHOUT_SLOWDOWN] = GATHERS,
    [CAUSE_DUPLICATE] = GATHERS,
    [CAUSE_SWEEP] = GATHERS,
    [CAUSE_PKEY_MISMATCH] = GATHERS | BOTH_WAYS,
    [CAUSE_MIGREQ_MISMATCH] = GATHERS | BOTH_WAYS,
    [CAUSE_BAD_ICRC] = REPEATS,
    [CAUSE_PACKET_LOSS] = REPEATS,
    [CAUSE_LOST_READ_RESPONSE] = REPEATS,
    [CAUSE_LOST_ACK] = REPEATS,
    [CAUSE_EARLY_TIMEOUT] = REPEATS,
    [CAUSE_REORDER] = REPEATS,
    [CAUSE_LOST_LAST_PACKET] = REPEATS | VAGUE,
    [CAUSE_CANNOT_TELL] = REPEATS | VAGUE,
};

/* --- Incidents by a key ------------------------------------------------------------------------ */

#define CHAIN_END UINT32_MAX

/* Chains of `n` incidents at most; false: no memory. */
static bool chains_init(struct incident_chains *c, uint32_t n)
{
    *c = (struct incident_chains){.slots = n + 1};
    c->head = malloc(c->slots * sizeof *c->head);
    c->tail = malloc(c->slots * sizeof *c->tail);
    c->next = malloc(c->slots * sizeof *c->next);
    if (!c->head || !c->tail || !c->next) {
        incident_chains_free(c);
        return false;
    }
    memset(c->head, 0xff, c->slots * sizeof *c->head);
    return true;
}

void incident_chains_free(struct incident_chains *c)
{
    free(c->head);
    free(c->tail);
    free(c->next);
    *c = (struct incident_chains){0};
}

static uint32_t chain_slot(const struct incident_chains *c, uint64_t key)
{
    return (uint32_t)((key * HASH_MULTIPLIER >> 32) % c->slots);
}

/* The first incident with this key, and maybe with others; CHAIN_END: there is none. */
static uint32_t chain_first(const struct incident_chains *c, uint64_t key)
{
    return c->slots ? c->head[chain_slot(c, key)] : CHAIN_END;
}

static void chain_append(struct incident_chains *c, uint64_t key, uint32_t i)
{
    uint32_t slot = chain_slot(c, key);

    *(c->head[slot] == CHAIN_END ? &c->head[slot] : &c->next[c->tail[slot]]) = i;
    c->tail[slot] = i;
    c->next[i] = CHAIN_END;
}

static bool chains_of_events(struct incident_chains *c, const struct explainer *x)
{
    if (!chains_init(c, x->n))
        return false;
    for (uint32_t i = 0; i < x->n; i++)
        if (x->incidents[i].event)
            chain_append(c, x->incidents[i].event, i);
    return true;
}

/* --- Events ------------------------------------------------------------------------------------ */

/* True if both tell of the same NAK, which was lost between two taps: the one nearer to the responder saw it, and what
 * it is for, the other one the ACK timeout that followed. */
static bool by_same_nak(const struct incident *a, const struct incident *b)
{
    return a->has_nak && b->has_nak && (a->nak_gone || b->nak_gone) && a->nak_psn == b->nak_psn;
}

static bool causes_agree(const struct incident *a, const struct incident *b)
{
    unsigned ka = kinds[a->cause], kb = kinds[b->cause];

    return a->cause == b->cause || (ka & kb & REPEATS) || by_same_nak(a, b) || (incident_failure(a) && kb & VAGUE) ||
           (incident_failure(b) && ka & VAGUE);
}

uint32_t explain_requests_of(struct explainer *x, const struct incident *s)
{
    uint32_t peer = conn_flow_at(observer_conns(x->observer), s->flow)->peer;

    return s->cause == CAUSE_BAD_ICRC && !s->is_request && peer != FLOW_NONE ? peer : s->flow;
}

/* True if both are about the same flow, or the same datagrams, at different taps. Connection management is compared in
 * cm_finish.c. */
static bool at_two_taps(struct explainer *x, const struct incident *a, const struct incident *b)
{
    uint32_t peer;

    if (a->tap == b->tap || (a->flow == FLOW_NONE) != (b->flow == FLOW_NONE))
        return false;
    if (a->flow == FLOW_NONE)
        return a->cause == b->cause &&
               (a->cause == CAUSE_QKEY_MISMATCH || a->cause == CAUSE_PKEY_MISMATCH || a->cause == CAUSE_BAD_ICRC);
    peer = conn_flow_at(observer_conns(x->observer), b->flow)->peer;
    return explain_same_flow(x, explain_requests_of(x, a), explain_requests_of(x, b)) ||
           (kinds[a->cause] & BOTH_WAYS && peer != FLOW_NONE && explain_same_flow(x, a->flow, peer));
}

/* True if both happened at the same time. Two files may have different clocks: then any times match. */
static bool at_one_time(const struct incident *a, const struct incident *b)
{
    return a->tap >> 16 != b->tap >> 16 ||
           (a->start <= b->start + b->lost + SAME_TIME && b->start <= a->start + a->lost + SAME_TIME);
}

/* True if the same packet led to both, or both concern the same packet. */
static bool by_same_packet(const struct incident *a, const struct incident *b)
{
    return a->by && a->by == b->by;
}
static bool about_same_packet(const struct incident *a, const struct incident *b)
{
    if (a->flow == FLOW_NONE || a->psn != b->psn || a->is_request != b->is_request || a->has_psn != b->has_psn)
        return false;
    return a->has_psn ? at_one_time(a, b) : a->cause == b->cause && kinds[a->cause] & GATHERS;
}

/* Incidents of which by_same_packet(), about_same_packet() may hold have the same key; 0: it holds of no other one. */
static uint64_t key_of_packet(struct explainer *x, const struct incident *s)
{
    (void)x;
    return s->by;
}
/* `about` and the ends of the requests, which are the same in both directions. */
static uint64_t key_with_ends(struct explainer *x, const struct incident *s, uint64_t about)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), explain_requests_of(x, s));
    uint64_t ends[2 * CONN_ADDR_WORDS];

    conn_addr_words(&f->src, ends);
    conn_addr_words(&f->dst, ends + CONN_ADDR_WORDS);
    for (unsigned i = 0; i < ARRAY_LEN(ends); i++)
        about += ends[i] * HASH_MULTIPLIER;
    return kinds[s->cause] & BOTH_WAYS ? about : about + ((uint64_t)f->dqpn << 40);
}
static uint64_t key_about_packet(struct explainer *x, const struct incident *s)
{
    uint64_t about = (uint64_t)s->psn << 16 | (s->has_psn ? 256u : s->cause) << 1 | s->is_request;

    return s->flow == FLOW_NONE ? 0 : key_with_ends(x, s, about);
}
static uint64_t key_of_nak(struct explainer *x, const struct incident *s)
{
    return s->flow == FLOW_NONE || !s->has_nak ? 0 : key_with_ends(x, s, s->nak_psn);
}

/* True if this tap has an incident of the event already. */
static bool has_incident_at(const struct explainer *x, const struct incident_chains *events, uint32_t event,
                            uint32_t tap)
{
    for (uint32_t i = event ? chain_first(events, event) : CHAIN_END; i != CHAIN_END; i = events->next[i])
        if (x->incidents[i].event == event && x->incidents[i].tap == tap)
            return true;
    return false;
}

/* Incidents `i` and `j`, of which at least one belongs to no event yet, are of one event. */
static void join_two(struct explainer *x, struct incident_chains *events, uint32_t i, uint32_t j)
{
    struct incident *a = &x->incidents[i], *b = &x->incidents[j];
    uint32_t event = a->event ? a->event : b->event ? b->event : i + 1;

    if (!a->event)
        chain_append(events, event, i);
    if (!b->event)
        chain_append(events, event, j);
    a->event = b->event = event;
}

/* Incidents for which `same` holds become one event, in the order of time: the first of one tap with the first of
 * another. */
static void join(struct explainer *x, struct incident_chains *events,
                 uint64_t (*key_of)(struct explainer *x, const struct incident *s),
                 bool (*same)(const struct incident *a, const struct incident *b))
{
    struct incident_chains before;

    if (!chains_init(&before, x->n))
        return;
    for (uint32_t j = 0; j < x->n; j++) {
        const struct incident *b = &x->incidents[j];
        uint64_t key = key_of(x, b);
        for (uint32_t i = key ? chain_first(&before, key) : CHAIN_END; i != CHAIN_END; i = before.next[i]) {
            const struct incident *a = &x->incidents[i];
            if ((a->event && b->event) || !same(a, b) || !causes_agree(a, b) || !at_two_taps(x, a, b))
                continue;
            if (a->nak_gone || b->nak_gone ||
                (!has_incident_at(x, events, a->event, b->tap) && !has_incident_at(x, events, b->event, a->tap)))
                join_two(x, events, i, j);
        }
        if (key)
            chain_append(&before, key, j);
    }
    incident_chains_free(&before);
}

/* How much an incident says about its event: the higher, the more. */
static unsigned precision(const struct incident *s)
{
    bool proved = s->proved || s->cause == CAUSE_EARLY_TIMEOUT || s->cause == CAUSE_BAD_ICRC,
         vague = kinds[s->cause] & VAGUE;

    return 32u * !!incident_failure(s) + 16u * s->nak_gone + 8u * proved + 4u * !vague +
           2u * (s->place != PLACE_UNKNOWN) + (s->place == PLACE_AFTER);
}

static bool says_more(const struct incident *a, const struct incident *b)
{
    uint32_t na = a->n_frames + a->times, nb = b->n_frames + b->times;

    if (precision(a) != precision(b))
        return precision(a) > precision(b);
    return na != nb ? na > nb : a->start < b->start;
}

/* Show the most precise incident of each event. */
static void choose(struct explainer *x, const struct incident_chains *events)
{
    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *s = &x->incidents[i];
        uint32_t j = s->event ? chain_first(events, s->event) : CHAIN_END;
        for (; j != CHAIN_END && !s->merged; j = events->next[j]) {
            const struct incident *o = &x->incidents[j];
            s->merged = j != i && o->event == s->event && !o->merged && !says_more(s, o);
            s->merged_here = s->merged && o->conn == s->conn;
        }
    }
}

static bool several_taps(const struct explainer *x)
{
    for (uint32_t i = 1; i < x->n; i++)
        if (x->incidents[i].tap != x->incidents[0].tap)
            return true;
    return false;
}

const struct incident *explain_also(const struct explainer *x, const struct incident *s, uint32_t *i)
{
    if (!s->event || !x->events.slots)
        return NULL;
    do
        *i = *i == CHAIN_END ? chain_first(&x->events, s->event) : x->events.next[*i];
    while (*i != CHAIN_END && (&x->incidents[*i] == s || x->incidents[*i].event != s->event));
    return *i == CHAIN_END ? NULL : &x->incidents[*i];
}

void explain_events(struct explainer *x)
{
    incident_chains_free(&x->events);
    if (several_taps(x))
        chains_of_events(&x->events, x);
}

void explain_once(struct explainer *x)
{
    struct incident_chains events;

    if (!several_taps(x) || !chains_init(&events, x->n))
        return;
    join(x, &events, key_of_nak, by_same_nak);
    join(x, &events, key_of_packet, by_same_packet);
    join(x, &events, key_about_packet, about_same_packet);
    choose(x, &events);
    incident_chains_free(&events);
}

/* --- Which tap's account counts ---------------------------------------------------------------- */

static bool is_same_direction(const struct timeline_row *a, const struct timeline_row *b)
{
    return a->conn == b->conn && a->dqpn == b->dqpn && is_same_way(&a->src, &a->dst, &b->src, &b->dst);
}

/* Shortest time from a request to its response: the longer, the nearer is the tap to the requester. */
static ns_t trip_of(const struct explainer *x, const struct timeline_row *r)
{
    return x->notes[r->flow] ? x->notes[r->flow]->responses.least_trip : -1;
}

/* The time in which another tap, that saw these requests `longest`, saw them and this one did not, if that is more than
 * a sixteenth: they passed it by another path before, or afterwards, or its capture is shorter. */
static ns_t not_seen(const struct timeline_row *r, ns_t longest)
{
    ns_t seen = r->last - r->first;

    return seen < longest / 16 * 15 ? longest - seen : 0;
}

/* The time that an account tells nothing of. */
static ns_t untold(const struct timeline_row *r, ns_t longest)
{
    return r->states[TIME_NOT_KNOWN] + not_seen(r, longest);
}

static bool counts_before(const struct explainer *x, const struct timeline_row *a, const struct timeline_row *b,
                          ns_t longest)
{
    if (untold(a, longest) != untold(b, longest))
        return untold(a, longest) < untold(b, longest);
    return trip_of(x, a) != trip_of(x, b) ? trip_of(x, a) > trip_of(x, b) : a < b;
}

bool account_counts(const struct explainer *x, const struct timeline_row *r)
{
    const struct timeline *t = x->timeline;
    size_t first = timeline_first(t, r->conn), end = first;
    ns_t longest = 0;

    for (; end < timeline_n(t) && timeline_row(t, end)->conn == r->conn; end++) {
        const struct timeline_row *o = timeline_row(t, end);
        if (is_same_direction(o, r) && o->last - o->first > longest)
            longest = o->last - o->first;
    }
    for (size_t i = first; i < end; i++) {
        const struct timeline_row *o = timeline_row(t, i);
        if (o != r && is_same_direction(o, r) && counts_before(x, o, r, longest))
            return false;
    }
    return true;
}

bool explain_counts(const struct explainer *x, uint32_t conn, uint32_t flow, uint32_t tap)
{
    const struct timeline *t = x->timeline;

    for (size_t i = timeline_first(t, conn); flow != FLOW_NONE && i < timeline_n(t); i++) {
        const struct timeline_row *r = timeline_row(t, i);
        if (r->conn != conn)
            break;
        if (r->flow == flow && r->tap == tap)
            return account_counts(x, r);
    }
    return true;
}

/* True if the bill of an incident is of an account that does not count. */
static bool is_billed_elsewhere(const struct explainer *x, const struct incident *s)
{
    return !explain_counts(x, s->conn, s->flow, s->tap);
}

/* True if `s`, made for lost time alone, and `o`, of another tap, are about the same lost time. */
static bool is_same_lost_time(const struct incident *s, const struct incident *o)
{
    ns_t most = s->bill > o->bill ? s->bill : o->bill, least = s->bill < o->bill ? s->bill : o->bill;

    if (o->tap == s->tap || o->conn != s->conn || o->merged || o->moot || !o->bill)
        return false;
    if (o->cause == s->cause && !s->has_psn)
        return true;
    return least >= most - most / 8 && (o->psn == s->psn || most >= NS_PER_MS);
}

/* Several taps saw the same wait: show one of the incidents. */
static void merge_same_lost_time(struct explainer *x)
{
    struct incident_chains conns;
    uint32_t event = 0;

    if (!chains_init(&conns, x->n))
        return;
    for (uint32_t i = 0; i < x->n; i++) {
        event = max_u32(event, x->incidents[i].event);
        chain_append(&conns, x->incidents[i].conn, i);
    }
    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *s = &x->incidents[i];
        uint32_t j = s->of_time && s->bill ? chain_first(&conns, s->conn) : CHAIN_END;
        for (; j != CHAIN_END && !s->merged; j = conns.next[j]) {
            struct incident *o = &x->incidents[j];
            if (!is_same_lost_time(s, o) || (o->of_time && is_billed_elsewhere(x, o)))
                continue;
            if (!o->event)
                o->event = ++event;
            s->event = o->event;
            s->merged = s->merged_here = true;
        }
    }
    incident_chains_free(&conns);
}

static void drop_bill(struct incident *s)
{
    memset(s->states, 0, sizeof s->states);
    s->bill = s->worst_bill = 0;
    s->episodes = 0;
    s->merged |= s->of_time; /* it is about nothing but that time */
}

/* Each nanosecond is billed once: at the tap whose account counts, to the incident shown of the event. */
static void share_bills(struct explainer *x)
{
    struct incident_chains events;

    for (uint32_t i = 0; i < x->n; i++)
        if ((x->incidents[i].bill || x->incidents[i].of_time) && is_billed_elsewhere(x, &x->incidents[i]))
            drop_bill(&x->incidents[i]);
    if (!chains_of_events(&events, x))
        return;
    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *s = &x->incidents[i];
        uint32_t j = s->event && s->merged ? chain_first(&events, s->event) : CHAIN_END;
        for (; j != CHAIN_END && s->bill; j = events.next[j])
            if (x->incidents[j].event == s->event && !x->incidents[j].merged && !x->incidents[j].moot)
                bill_move(x, &x->incidents[j], s);
    }
    incident_chains_free(&events);
}

/* True if several taps have accounts, even if all incidents are of one of them. */
static bool has_accounts_of_several(const struct timeline *t)
{
    for (size_t i = 1; i < timeline_n(t); i++)
        if (timeline_row(t, i)->tap != timeline_row(t, 0)->tap)
            return true;
    return false;
}

void explain_share_bills(struct explainer *x)
{
    if (!has_accounts_of_several(x->timeline))
        return;
    merge_same_lost_time(x);
    share_bills(x);
}

/* --- Taps on one path: requests that reached only one of them ---------------------------------- */

#define WAY_BYTES 12 /* after the IPv4 header: the ports and the sequence number of TCP */

/* A hash that is the same at every tap on the path of an IPv4 packet; 0: none. */
static uint32_t packet_hash(const struct pkt *p)
{
    uint32_t at = p->ip_off, len;
    uint64_t h;

    if (!(p->have & H_IP4) || at + 20 > p->caplen)
        return 0;
    len = (p->data[at] & 15u) * 4;
    if (len < 20 || at + len + WAY_BYTES > p->caplen)
        return 0;
    h = load_be32(p->data + at + 2) ^ (uint64_t)p->data[at + 9] << 32;
    for (unsigned i = 0; i < WAY_BYTES; i += 4)
        h = (h ^ load_be32(p->data + at + len + i)) * HASH_MULTIPLIER;
    return (uint32_t)(h >> 32) | 1;
}

/* True if `w` is a packet on the way of `q` that the tap of `q`, and then `tap` saw. */
static bool is_shared_by(const struct shared_packet *w, const struct passed *q, uint32_t tap)
{
    return w->taps[0] == q->tap && w->taps[1] == tap && is_same_way(&w->src, &w->dst, &q->src, &q->dst);
}

void explain_at_taps(struct explainer *x, const struct pkt *p)
{
    uint32_t hash = packet_hash(p), tap = conn_tap_of(p->frame);
    struct passed *q = &x->passed[hash >> 24 & (PASSED - 1)];
    struct shared_packet *w = &x->shared[0];
    struct conn_addr src, dst;

    if (!hash)
        return;
    conn_addr_of(p, &src, &dst);
    if (q->hash != hash || q->tap == tap || !is_same_way(&q->src, &q->dst, &src, &dst)) {
        *q = (struct passed){hash, tap, frame_u32(p), src, dst};
        return;
    }
    while (w < &x->shared[SHARED_PACKETS - 1] && w->frame[0] && !is_shared_by(w, q, tap))
        w++;
    *w = (struct shared_packet){{q->tap, tap}, {q->frame, frame_u32(p)}, p->frame->ts, src, dst};
}

/* Another tap on the path of the flow that shares a packet seen after `since` with the flow's tap; `here`: index of the
 * flow's tap in it. NULL: none. */
static const struct shared_packet *shared_packet_since(const struct explainer *x, const struct flow *f, ns_t since,
                                                       unsigned *here)
{
    for (const struct shared_packet *w = x->shared; w < &x->shared[SHARED_PACKETS]; w++) {
        *here = w->taps[1] == f->tap;
        if (w->frame[0] && w->taps[*here] == f->tap && w->ts >= since &&
            is_same_way(&w->src, &w->dst, &f->src, &f->dst))
            return w;
    }
    return NULL;
}

/* True if a tap saw this request of the flow. */
static bool is_seen_at(struct explainer *x, uint32_t flow, uint32_t tap, uint32_t psn)
{
    for (uint32_t i = 0; i < conn_counts(observer_conns(x->observer)).flows; i++) {
        struct req_dir *h = explain_same_flow(x, flow, i) && conn_flow_at(observer_conns(x->observer), i)->tap == tap
                                ? observer_req_dir(x->observer, i)
                                : NULL;
        if (h && h->have_next && psn_diff(psn, h->next) < 0)
            return true;
    }
    return false;
}

bool explain_is_unreached(struct explainer *x, const struct incident *st)
{
    unsigned here = 0;
    const struct shared_packet *w =
        shared_packet_since(x, conn_flow_at(observer_conns(x->observer), st->flow), st->start, &here);

    return w && st->is_request && !is_seen_at(x, st->flow, w->taps[!here], st->psn);
}

void explain_unreached(struct explainer *x, struct incident *st)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), st->flow);
    unsigned here = 0;
    const struct shared_packet *w = shared_packet_since(x, f, st->start, &here);

    if (!w || !explain_is_unreached(x, st))
        return;
    st->place = PLACE_AFTER;
    st->proved = true;
    st->passed = fact_tap(f->tap);
    st->missed = fact_tap(w->taps[!here]);
    incident_add(
        st, SAY(TAP_UNREACHED, .tap = fact_tap(w->taps[!here]), .other = w->frame[!here], .again = w->frame[here]));
    for (uint32_t i = 0; i < x->n; i++)
        if (x->incidents[i].flow == st->flow && x->incidents[i].cause == CAUSE_SILENT_PEER)
            x->incidents[i].moot = true;
}
