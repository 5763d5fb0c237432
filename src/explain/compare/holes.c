/* layer 3 (explain): between which taps a path drops large packets; said once for all taps. */
#include "src/explain/compare/tap_way.h"
#include "src/explain/compare/taps.h"

#include <stdlib.h>

#define TAPS_MOST 8 /* of the packets to one host */

/* A tap on the way of the packets of a hole. */
struct hole_tap {
    struct tap_way way; /* first */
    uint32_t tap;
    bool saw; /* it saw one of those that were lost */
};

static bool is_of_requests(const struct incident *st)
{
    unsigned said = st->facts[0].sentence;

    return said == SENTENCE_BLACK_HOLE || said == SENTENCE_BLACK_HOLE_SINCE || said == SENTENCE_BLACK_HOLE_BEFORE;
}

/* True if both are about packets to the same host, requests or responses. */
static bool is_about_same(const struct incident *a, const struct incident *b)
{
    return conn_addr_eq(&a->dst, &b->dst) && is_of_requests(a) == is_of_requests(b);
}

/* Whether the tap of another flow of the same requests as `flow` saw what is lost of them. */
static bool is_seen(struct explainer *x, const struct incident *st, uint32_t tap)
{
    struct conn_table *conns = observer_conns(x->observer);
    uint32_t psn;

    for (struct flows_to to = explain_flows_to(x, &st->dst, st->tap); to.at < to.end; to.at++) {
        uint32_t i = explain_flow_to(x, to.at);
        bool own = (is_of_requests(st) ? mtu_lacks_request : mtu_lacks_response)(x, i, &psn);
        for (uint32_t k = own ? conn_flow_alike(conns, i, 0) : FLOW_NONE; k != FLOW_NONE;
             k = conn_flow_alike(conns, i, k + 1)) {
            struct req_dir *h = observer_req_dir(x->observer, k);
            if (conn_flow_at(conns, k)->tap != tap)
                continue;
            if (is_of_requests(st) ? h && h->have_next && req_dir_sent(h, psn)
                                   : x->notes[k] && answer_frame(x->notes[k], psn))
                return true;
        }
    }
    return false;
}

static void shorten(ns_t *shortest, ns_t trip)
{
    if (trip >= 0 && (*shortest < 0 || trip < *shortest))
        *shortest = trip;
}

/* The taps that saw packets to that host and responses to them, in the order of the way of those lost: how many. */
static unsigned taps_of(struct explainer *x, const struct incident *st, struct hole_tap *taps)
{
    struct conn_table *conns = observer_conns(x->observer);
    unsigned n = 0, k;

    for (struct flows_to to = explain_flows_to(x, &st->dst, FLOWS_OF_ALL_TAPS); to.at < to.end; to.at++) {
        uint32_t i = explain_flow_to(x, to.at), tap = conn_flow_at(conns, i)->tap;
        const struct flow_notes *t = x->notes[i];
        if (!t || t->responses.least_trip < 0)
            continue;
        for (k = 0; k < n && taps[k].tap != tap;)
            k++;
        if (k == TAPS_MOST)
            continue;
        if (k == n)
            taps[n++] = (struct hole_tap){.way = {.trip = -1, .exact = -1}, .tap = tap, .saw = is_seen(x, st, tap)};
        shorten(&taps[k].way.trip, t->responses.least_trip);
        shorten(&taps[k].way.exact, t->responses.round_trip);
    }
    tap_way_order(taps, n, sizeof *taps, is_of_requests(st));
    return n;
}

/* Name the last tap that saw the packets, and the first that did not. */
static void place(struct explainer *x, struct incident *st)
{
    struct hole_tap taps[TAPS_MOST];
    unsigned n = taps_of(x, st, taps), last = n;

    for (unsigned i = 0; i < n; i++)
        last = taps[i].saw ? i : last;
    if (last + 1 >= n)
        return;
    st->passed = fact_tap(taps[last].tap);
    st->missed = fact_tap(taps[last + 1].tap);
    if (st->tap == taps[last].tap)
        incident_add(st, SAY(HOLE_MISSED, .tap = st->missed));
    else if (st->tap == taps[last + 1].tap)
        incident_add(st, SAY(HOLE_PASSED, .tap = st->passed));
    else
        incident_add(st, SAY(HOLE_BETWEEN, .tap = st->passed, .m = st->missed));
}

/* Number `i` of the incidents, in the order of by_packets(). */
struct hole {
    const struct incident *st;
    uint32_t i;
};

static int by_packets(const void *a, const void *b)
{
    const struct hole *p = a, *q = b;
    int d = memcmp(&p->st->dst, &q->st->dst, sizeof p->st->dst);

    d = d ? d : (int)is_of_requests(p->st) - (int)is_of_requests(q->st);
    return d ? d : (p->i > q->i) - (p->i < q->i);
}

/* Merge those of other taps into `first`. What follows it with other packets is about another hole. */
static void merge(struct explainer *x, const struct hole *first, const struct hole *end)
{
    for (const struct hole *o = first + 1; o < end && is_about_same(first->st, o->st); o++) {
        struct incident *st = &x->incidents[o->i];
        if (st->tap == first->st->tap)
            continue;
        st->merged = true;
        st->merged_here = st->conn == first->st->conn;
    }
}

void explain_holes(struct explainer *x, uint32_t from)
{
    struct hole *holes = calloc(x->n - from + (size_t)1, sizeof *holes);
    uint32_t n = 0;

    for (uint32_t i = from; holes && i < x->n; i++)
        if (x->incidents[i].cause == CAUSE_MTU_BLACK_HOLE)
            holes[n++] = (struct hole){&x->incidents[i], i};
    if (n)
        qsort(holes, n, sizeof *holes, by_packets);
    for (uint32_t i = 0; i < n; i++)
        if (!holes[i].st->merged)
            merge(x, &holes[i], holes + n);
    for (uint32_t i = 0; i < n; i++)
        if (!holes[i].st->merged)
            place(x, &x->incidents[holes[i].i]);
    free(holes);
}
