/* layer 3 (explain): end of the capture: P_Keys that differ, incidents that never ended, the order of all. */
#include "bitset.h"
#include "src/explain/compare/taps.h"
#include "src/explain/congestion/congestion.h"
#include "src/explain/explain_impl.h"
#include "src/explain/security/security.h"
#include "src/transport/verbs.h"

#include <stdlib.h>

/* --- P_Keys and MigReq bits ------------------------------------------------------------------- */

static void end_keys(struct explainer *x, uint32_t flow, const struct flow_notes *t, const struct flow_notes *o)
{
    enum cause cause = (t->headers.pkey ^ o->headers.pkey) & 0x7fff ? CAUSE_PKEY_MISMATCH : CAUSE_MIGREQ_MISMATCH;
    struct incident *st;

    if (cause == CAUSE_MIGREQ_MISMATCH && t->headers.migreq == o->headers.migreq)
        return;
    st = incident_new(x, cause, flow, NULL);
    if (!st)
        return;
    st->start = t->headers.ts;
    incident_frame(st, ROLE_LOST, t->headers.frame);
    incident_frame(st, ROLE_EVIDENCE, o->headers.frame);
    if (cause == CAUSE_PKEY_MISMATCH)
        incident_is(st, SAY(PKEY_DIFFERS, .lost = t->headers.frame, .key = t->headers.pkey, .other = o->headers.frame,
                            .key2 = o->headers.pkey));
    else
        incident_is(st, SAY(MIGREQ_DIFFERS, .lost = t->headers.frame, .n = t->headers.migreq, .other = o->headers.frame,
                            .m = o->headers.migreq));
}

/* Whether `st` is about the loss of a packet of `flow`. */
static bool is_loss_of(const struct incident *st, uint32_t flow, uint32_t peer, const struct odd_key *k)
{
    bool request =
        st->cause == CAUSE_PACKET_LOSS || st->cause == CAUSE_LOST_LAST_PACKET || st->cause == CAUSE_CANNOT_TELL;

    if (st->moot || !st->has_psn || !st->n_frames)
        return false;
    if (st->flow == flow && request && st->is_request)
        return st->psn == k->psn ||
               (st->cause == CAUSE_LOST_LAST_PACKET && psn_in(k->psn, st->psn, (st->end - st->psn) & PSN_MASK));
    return st->flow == peer && (st->cause == CAUSE_LOST_ACK || st->cause == CAUSE_LOST_READ_RESPONSE) &&
           st->frames[0] == k->frame;
}

/* A packet with the wrong P_Key was dropped by its receiver: it is no loss in the network. */
static void moot_loss(struct explainer *x, uint32_t flow, const struct odd_key *k, uint32_t odd)
{
    uint32_t peer = conn_flow_at(observer_conns(x->observer), flow)->peer;

    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *st = &x->incidents[i];
        if (i == odd || !is_loss_of(st, flow, peer, k))
            continue;
        x->incidents[odd].again += st->again;
        x->incidents[odd].lost += st->lost;
        st->moot = true;
    }
}

/* True if all packets but the first have the P_Key of the other direction, or else that of the REQ: then the first one
 * is wrong. */
static bool first_is_odd(const struct flow_notes *t, const struct flow_notes *o, const struct conn_params *c)
{
    uint16_t right = o && o->headers.seen && !o->headers.n_odd ? o->headers.pkey : c->pkey;

    return right && (right ^ t->headers.pkey) & 0x7fff && !((right ^ t->headers.odd[0].pkey) & 0x7fff);
}

/* One queue pair sends several P_Keys. */
static void end_odd_key(struct explainer *x, uint32_t flow, struct flow_notes *t, const struct flow_notes *o)
{
    struct odd_key first = {t->headers.psn, t->headers.frame, t->headers.pkey}, right = first;
    struct incident *st = t->headers.seen && t->headers.n_odd ? incident_new(x, CAUSE_PKEY_MISMATCH, flow, NULL) : NULL;

    if (!st)
        return;
    if (first_is_odd(t, o, &conn_flow_at(observer_conns(x->observer), flow)->params)) {
        right = t->headers.odd[0];
        t->headers.pkey = right.pkey;
        t->headers.frame = right.frame;
        t->headers.odd[0] = first;
        t->headers.n_odd = 1;
    }
    st->start = t->headers.ts;
    incident_frame(st, ROLE_LOST, t->headers.odd[0].frame);
    incident_frame(st, ROLE_EVIDENCE, right.frame);
    for (uint32_t i = 0; i < t->headers.n_odd; i++) {
        incident_frame(st, ROLE_LOST, t->headers.odd[i].frame);
        moot_loss(x, flow, &t->headers.odd[i], incident_number(x, st));
    }
    incident_is(st, SAY(PKEY_ODD, .lost = t->headers.odd[0].frame, .key = t->headers.odd[0].pkey, .other = right.frame,
                        .key2 = right.pkey));
}

/* The P_Key differs from that in the REQ, and the other direction has no packet. */
bool end_req_key(struct explainer *x, uint32_t flow, const struct flow_notes *t)
{
    const struct conn_params *c = &conn_flow_at(observer_conns(x->observer), flow)->params;
    struct incident *st;

    if (!t->headers.seen || !c->pkey || !((c->pkey ^ t->headers.pkey) & 0x7fff))
        return false;
    st = incident_new(x, CAUSE_PKEY_MISMATCH, flow, NULL);
    if (!st)
        return true;
    st->start = t->headers.ts;
    incident_frame(st, ROLE_LOST, t->headers.frame);
    incident_frame(st, ROLE_EVIDENCE, (uint32_t)c->req_frame);
    incident_is(st, SAY(PKEY_REQ, .lost = t->headers.frame, .key = t->headers.pkey, .other = (uint32_t)c->req_frame,
                        .key2 = c->pkey));
    return true;
}

/* --- A flow ----------------------------------------------------------------------------------- */

/* Without any response it cannot be told whether a last packet was lost. */
static void end_last_packets(struct explainer *x)
{
    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *st = &x->incidents[i];
        bool last = st->cause == CAUSE_LOST_LAST_PACKET && st->flow != FLOW_NONE;
        const struct flow_notes *t = last ? x->notes[st->flow] : NULL;
        if (t && !t->responses.last_frame)
            cannot_tell(x, st, observer_req_dir(x->observer, st->flow));
    }
}

static void end_flow(struct explainer *x, uint32_t flow)
{
    uint32_t peer = conn_flow_at(observer_conns(x->observer), flow)->peer;
    struct flow_notes *t = x->notes[flow], *o = peer == FLOW_NONE ? NULL : x->notes[peer];
    struct req_dir *h = observer_req_dir(x->observer, flow);

    if (!t)
        return;
    if (h && h->have_next) {
        end_silence(x, flow, t, h);
        end_rnr(x, flow, t, h);
    }
    end_odd_key(x, flow, t, o);
    end_overtaken(x, flow, t);
    if (h && h->have_next)
        end_slower(x, flow, t, h);
    end_early(x, flow, t);
    if (h && h->have_next)
        end_spent(x, flow, t, h);
    if (h && h->have_next)
        end_not_received(x, flow, t, h);
    if (o && t->headers.seen && o->headers.seen && flow < peer)
        end_keys(x, flow, t, o);
    end_congestion(x, flow, t, o && o->headers.seen ? o : NULL);
}

/* --- The end ---------------------------------------------------------------------------------- */

#define MUCH_LOST 10 /* a part of so many of all time: it is told before a refusal */

/* A refused connection costs those that exist nothing: where these lost much of their time, that is told first. */
static void settle_refusals(struct explainer *x)
{
    ns_t time, lost;

    explain_times(x, 0, &time, &lost);
    for (uint32_t i = 0; lost >= time / MUCH_LOST && lost && i < x->n; i++)
        x->incidents[i].minor =
            x->incidents[i].cause == CAUSE_NO_SUCH_SERVICE || x->incidents[i].cause == CAUSE_CM_REJECT;
}

/* Failures first, then by lost time, that of setting up a connection among it. */
static int by_weight(const void *a, const void *b)
{
    const struct incident *s = a, *t = b;
    int v = cause_table[s->cause].weight, w = cause_table[t->cause].weight;
    ns_t cost = ns_sum(s->bill, incident_setup_wait(s)), other = ns_sum(t->bill, incident_setup_wait(t));

    if (incident_failure(s) != incident_failure(t))
        return incident_failure(t) - incident_failure(s);
    if (cost != other)
        return cost < other ? 1 : -1;
    if (v != w)
        return w - v;
    return s->frames[0] < t->frames[0] ? -1 : s->frames[0] > t->frames[0];
}

static void drop_moot(struct explainer *x)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < x->n; i++)
        if (!x->incidents[i].moot)
            x->incidents[n++] = x->incidents[i];
    x->n = n;
}

/* Sort incidents, worst first, and renumber the references between them. */
static void sort(struct explainer *x)
{
    uint32_t *place = x->n ? malloc((x->n + 1) * sizeof *place) : NULL;

    if (!place)
        return;
    for (uint32_t i = 0; i < x->n; i++)
        x->incidents[i].number = i + 1;
    qsort(x->incidents, x->n, sizeof *x->incidents, by_weight);
    place[0] = 0;
    for (uint32_t i = 0; i < x->n; i++)
        place[x->incidents[i].number] = i + 1;
    for (uint32_t i = 0; i < x->n; i++) {
        x->incidents[i].superseded_by = place[x->incidents[i].superseded_by];
        x->incidents[i].number = i + 1;
    }
    free(place);
}

#define MERGED_PART 5 /* a capture that has two of this many requests twice is of two taps */

/* True if almost all requests of the flow of duplicates `s` came twice: two captures were merged into one interface. */
static bool is_merged(struct explainer *x, const struct incident *s)
{
    const struct req_dir *h =
        s->cause == CAUSE_DUPLICATE && s->flow != FLOW_NONE ? observer_req_dir(x->observer, s->flow) : NULL;

    return h && s->is_request && (uint64_t)MERGED_PART * (s->n_frames + s->times) >= 2 * h->packets;
}

/* Which of two taps saw a packet is not known then: nothing is sure of that connection. */
static void doubt_merged(struct explainer *x)
{
    struct bitset merged = {0}; /* connections */

    for (uint32_t i = 0; i < x->n; i++)
        if (is_merged(x, &x->incidents[i]))
            bitset_add(&merged, x->incidents[i].conn);
    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *st = &x->incidents[i];
        if (st->conn && st->cause != CAUSE_DUPLICATE && bitset_has(&merged, st->conn))
            incident_add(st, SAY(MERGED, .n = 0));
    }
    bitset_free(&merged);
}

/* Whether the file of a tap says that its capture dropped frames. */
static bool tap_dropped(const struct explainer *x, uint32_t tap)
{
    return tap >> 16 < EXPLAIN_FILES && x->drops[tap >> 16];
}

/* What was not seen may have passed where the capture lacks packets of the connection. */
static void doubt(struct explainer *x)
{
    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *s = &x->incidents[i];
        uint32_t peer = s->flow == FLOW_NONE ? FLOW_NONE : conn_flow_at(observer_conns(x->observer), s->flow)->peer;
        if (tap_dropped(x, s->tap))
            incident_doubt_seen(s);
        else if (explain_lacks(x, s->flow) || explain_lacks(x, peer))
            incident_doubt(s);
    }
}

/* A flow of requests that knows round trips. */
struct to_host {
    const struct flow *f;
    struct flow_notes *t;
};

static int by_host(const void *a, const void *b)
{
    const struct flow *f = ((const struct to_host *)a)->f, *g = ((const struct to_host *)b)->f;

    return f->tap != g->tap ? (f->tap < g->tap ? -1 : 1) : memcmp(&f->dst, &g->dst, sizeof f->dst);
}

/* The shortest round trips to each host at a tap: a single flow may know only those of a congested queue. */
static void share_round_trips(struct explainer *x, uint32_t flows)
{
    struct to_host *all = calloc(flows + 1u, sizeof *all);
    uint32_t n = 0;

    for (uint32_t i = 0; all && i < flows; i++)
        if (x->notes[i] && x->notes[i]->responses.round_trip >= 0)
            all[n++] = (struct to_host){conn_flow_at(observer_conns(x->observer), i), x->notes[i]};
    if (n)
        qsort(all, n, sizeof *all, by_host);
    for (uint32_t i = 0, k; i < n; i = k) {
        ns_t least = all[i].t->responses.round_trip;
        for (k = i; k < n && !by_host(&all[i], &all[k]); k++)
            least = all[k].t->responses.round_trip < least ? all[k].t->responses.round_trip : least;
        for (uint32_t m = i; m < k; m++)
            all[m].t->responses.path_trip = least;
    }
    free(all);
}

/* What turned out to be no trouble of one place lies between no taps. */
static void settle_places(struct explainer *x)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (x->incidents[i].place == PLACE_UNKNOWN)
            x->incidents[i].passed = x->incidents[i].missed = 0;
}

void explain_drops(struct explainer *x, uint16_t file, uint64_t n)
{
    if (file < EXPLAIN_FILES)
        x->drops[file] += n;
}

void explain_end(struct explainer *x)
{
    struct conn_table *conns = observer_conns(x->observer);
    uint32_t flows = conn_counts(conns).flows;

    if (x->taps) {
        taps_end(x->taps);
        timeline_share_pauses(x->timeline, explain_convert, x);
    }
    explain_unheard(x);
    guesses_end(x);
    timeline_end(x->timeline);
    explain_streams_end(x);
    for (uint32_t i = 0; i < x->n; i++)
        x->incidents[i].conn = conn_number_now(conns, x->incidents[i].conn);
    share_round_trips(x, flows);
    explain_receiver_taps(x);
    end_last_packets(x);
    for (uint32_t i = 0; i < flows; i++)
        end_flow(x, i);
    end_reordering_paths(x, flows);
    explain_taps(x);
    explain_cm_end(x);
    explain_datagrams_end(x);
    explain_early_icrcs(x);
    explain_unmatched_naks(x);
    explain_baseless(x);
    drop_moot(x);
    explain_once(x);
    explain_bill(x);
    explain_cross(x);
    explain_had(x);
    settle_places(x);
    doubt(x);
    doubt_merged(x);
    settle_refusals(x);
    explain_or_causes(x);
    sort(x);
    explain_events(x);
    explain_set_clocks(x);
}
