/* layer 3 (explain): outages: times in which a host, or all behind a port, responded to nothing, and then went on. */
#include "dissect/pkt.h"
#include "src/explain/compare/taps.h"
#include "src/explain/explain_impl.h"

#include <stdlib.h>

#define OUTAGE_VAIN  3  /* packets without a response at least, sent meanwhile */
#define OUTAGE_SEEDS 64 /* the longest times without a response are tried */
#define OUTAGE_PART  64 /* packets sent this part of it earlier or later may have been in flight */

/* --- Times without a response ------------------------------------------------------------------ */

/* How worth keeping a gap is: one in which a response was due before any other, then the longer. */
static ns_t worth(const struct response_gap *g)
{
    return g->from ? (INT64_MAX / 2) + (g->to - g->from) / 2 : (g->to - g->last) / 2;
}

void explain_gap(const struct event *e, struct flow_notes *t)
{
    struct response_gap *gaps = t->responses.gaps, *least = &gaps[0];
    bool due = t->requests.wanted.frame && !(e->h->have_una && psn_diff(e->h->una, t->requests.wanted.psn) > 0);
    ns_t last = t->responses.last_ts, from = last > t->requests.wanted.ts ? last : t->requests.wanted.ts;
    struct response_gap g = {.last = last,
                             .cnp = t->marks.latest_cnp,
                             .from = due && e->p->frame->ts - from >= RESPONSE_GAP_LEAST ? from : 0,
                             .to = e->p->frame->ts,
                             .frame = frame_u32(e->p)};

    for (unsigned i = 1; i < RESPONSE_GAPS; i++)
        if (worth(&gaps[i]) < worth(least))
            least = &gaps[i];
    if (worth(&g) > worth(least))
        *least = g;
}

/* --- Outages ----------------------------------------------------------------------------------- */

/* A time without a response to a flow of requests, though one was due. */
struct wait {
    uint32_t flow;
    ns_t last, cnp, from, to; /* as in response_gap; to INT64_MAX: none came any more */
    uint32_t frame;
    bool in_outage; /* part of an outage */
};

/* The connections that an outage may be about: those of a tap, and of these with one requester, one responder. */
struct scope {
    uint32_t flow; /* one of them */
    bool src, dst; /* the same requester; responder */
};

struct outage {
    struct scope scope;
    ns_t from, to;         /* no response from then, until then; INT64_MAX: none any more */
    ns_t all_from, all_to; /* the time that all of its waits share */
    bool by_cm;            /* connection management was responded to first, */
    bool doubt;            /* and at once: packets of that kind may have arrived all the time */
    uint32_t responded;    /* connections that had responses before */
    uint32_t frame;        /* of the response that ended it; 0: none */
    uint32_t conns;        /* connections */
    uint32_t waiting;      /* of these, which sent packets meanwhile that had no response, */
    uint32_t unanswered;   /* and these packets */
    uint32_t srcs, dsts;   /* hosts: requesters, responders */
};

#define VAIN 2 /* its packets were sent meanwhile */
struct search {
    struct explainer *x;
    struct wait *waits; /* longest first */
    uint32_t n;
    uint8_t *in;     /* by flow: it waits in the outage that is tried, and VAIN */
    uint32_t *conns; /* room for a list of connections, of hosts */
    struct conn_addr *hosts;
};

static const struct flow *flow_at(const struct explainer *x, uint32_t flow)
{
    return conn_flow_at(observer_conns(x->observer), flow);
}

static uint32_t flows_of(const struct explainer *x)
{
    return conn_counts(observer_conns(x->observer)).flows;
}

static bool in_scope(const struct explainer *x, const struct scope *s, uint32_t flow)
{
    const struct flow *f = flow_at(x, flow), *g = flow_at(x, s->flow);

    return f->tap == g->tap && (!s->src || conn_addr_eq(&f->src, &g->src)) &&
           (!s->dst || conn_addr_eq(&f->dst, &g->dst));
}

static int by_length(const void *a, const void *b)
{
    const struct wait *v = a, *w = b;
    ns_t k = v->to - v->from, l = w->to - w->from;

    return k != l ? (k < l ? 1 : -1) : v->flow < w->flow ? -1 : v->flow > w->flow;
}

static void add_wait(struct search *w, uint32_t flow, const struct response_gap *g)
{
    w->waits[w->n++] =
        (struct wait){.flow = flow, .last = g->last, .cnp = g->cnp, .from = g->from, .to = g->to, .frame = g->frame};
}

/* The gap up to the end of the capture; `from` 0: no response was due. */
static struct response_gap last_gap(struct explainer *x, uint32_t flow)
{
    const struct flow_notes *t = x->notes[flow];
    const struct req_dir *h = observer_req_dir(x->observer, flow);
    bool due = h && t->requests.wanted.frame && !(h->have_una && psn_diff(h->una, t->requests.wanted.psn) > 0);
    ns_t last = t->responses.last_ts, wanted = t->requests.wanted.ts;

    return (struct response_gap){
        .last = last, .cnp = t->marks.latest_cnp, .from = due ? (last > wanted ? last : wanted) : 0, .to = INT64_MAX};
}

static void collect(struct search *w)
{
    for (uint32_t i = 0; i < flows_of(w->x); i++) {
        const struct flow_notes *t = w->x->notes[i];
        struct response_gap last;
        if (!t || (!t->responses.last_ts && !t->requests.wanted.frame))
            continue;
        for (unsigned k = 0; k < RESPONSE_GAPS; k++)
            if (t->responses.gaps[k].from)
                add_wait(w, i, &t->responses.gaps[k]);
        last = last_gap(w->x, i);
        if (last.from)
            add_wait(w, i, &last);
    }
    if (w->n)
        qsort(w->waits, w->n, sizeof *w->waits, by_length);
}

static ns_t shared_time(const struct outage *o, const struct wait *v)
{
    return (o->all_to < v->to ? o->all_to : v->to) - (o->all_from > v->from ? o->all_from : v->from);
}

/* True if a wait most likely belongs to the same outage: both share at least half of the shorter one. */
static bool is_of_outage(const struct outage *o, const struct wait *v)
{
    ns_t a = o->all_to - o->all_from, b = v->to - v->from, shared = shared_time(o, v);

    return shared >= RESPONSE_GAP_LEAST && shared >= (a < b ? a : b) / 2;
}

/* Collect the waits in the scope that most likely belong to the same outage as `seed`. A CNP is no response, but comes
 * from the host, for a packet that it got.
 *
 *   connection 1   response |------------------| response
 *   connection 2     response |--------------| response
 *   connection 3       response |---------------------| response
 *   outage                      |------------|             from the last response or CNP before to the first one after
 */
static void gather(struct search *w, struct outage *o, const struct wait *seed)
{
    ns_t last = 0, first = INT64_MAX;

    memset(w->in, 0, flows_of(w->x));
    o->all_from = seed->from;
    o->all_to = seed->to;
    for (uint32_t i = 0; i < w->n; i++) {
        const struct wait *v = &w->waits[i];
        if (v->in_outage || w->in[v->flow] || !in_scope(w->x, &o->scope, v->flow) || !is_of_outage(o, v))
            continue;
        w->in[v->flow] = 1;
        o->all_from = v->from > o->all_from ? v->from : o->all_from;
        o->responded += v->last != 0;
        last = v->last > last ? v->last : last;
        last = v->cnp > last ? v->cnp : last;
        first = v->from < first ? v->from : first;
        if (v->to < o->all_to || (v->to == o->all_to && !o->frame)) {
            o->all_to = v->to;
            o->frame = v->frame;
        }
    }
    o->from = last > first ? last : first;
    o->to = o->all_to;
}

/* True if a response or a CNP came to a flow meanwhile. */
static bool was_answered(struct explainer *x, uint32_t flow, const struct outage *o)
{
    const struct flow_notes *t = x->notes[flow];

    if (t && t->marks.latest_cnp > o->from && t->marks.latest_cnp < o->to)
        return true;
    if (!t || !t->responses.last_ts || t->responses.last_ts <= o->from)
        return false;
    for (unsigned k = 0; k < RESPONSE_GAPS; k++)
        if (t->responses.gaps[k].to >= o->to && t->responses.gaps[k].last <= o->from)
            return false;
    return true;
}

/* True if none of the scope had a response meanwhile. */
static bool is_silent(const struct search *w, const struct outage *o)
{
    for (uint32_t i = 0; i < flows_of(w->x); i++)
        if (!w->in[i] && w->x->notes[i] && in_scope(w->x, &o->scope, i) && was_answered(w->x, i, o))
            return false;
    return true;
}

/* Count the connections whose packets had no response, and these packets, by the episodes that begin with one. What is
 * sent soon after the last response to anyone may have been dropped by a queue that was full then. */
static void count_unanswered(struct search *w, struct outage *o)
{
    uint32_t n = 0, max = flows_of(w->x);
    ns_t end = o->to == INT64_MAX ? explain_end_of(w->x, flow_at(w->x, o->scope.flow)->tap) : o->to,
         margin = (end - o->from) / OUTAGE_PART;

    if (margin < RESPONSE_GAP_LEAST)
        margin = RESPONSE_GAP_LEAST;
    o->unanswered = 0;
    for (uint32_t i = 0; i < timeline_episodes(w->x->timeline); i++) {
        const struct episode *e = timeline_episode(w->x->timeline, i);
        bool lost = e->why == TROUBLE_TIMEOUT || e->why == TROUBLE_DEAD || e->why == TROUBLE_SEQ_NAK ||
                    e->why == TROUBLE_IMPLIED,
             meanwhile = e->start >= o->from + margin && e->start < o->to,
             member = e->flow < max && w->in[e->flow] && e->conn == flow_at(w->x, e->flow)->conn;
        if (!lost || !meanwhile || !member)
            continue;
        o->unanswered += 1 + (e->why == TROUBLE_DEAD ? e->tries : 0);
        w->in[e->flow] = VAIN;
        if (n < max)
            w->conns[n++] = e->conn;
    }
    o->waiting = n ? explain_count_values(w->conns, n) : 0;
}

/* The requesters (`src`) or responders of the flows that wait, or are VAIN (`least`). */
static uint32_t count_of_hosts(struct search *w, uint8_t least, bool src)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < flows_of(w->x); i++)
        if (w->in[i] >= least)
            w->hosts[n++] = src ? flow_at(w->x, i)->src : flow_at(w->x, i)->dst;
    return explain_count_hosts(w->hosts, n);
}

/* Its connections and hosts. */
static void count_members(struct search *w, struct outage *o)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < flows_of(w->x); i++)
        if (w->in[i])
            w->conns[n++] = flow_at(w->x, i)->conn;
    o->conns = explain_count_values(w->conns, n);
    o->srcs = count_of_hosts(w, 1, true);
    o->dsts = count_of_hosts(w, 1, false);
}

/* True if incident `st` is a CM message to or from the scope, retransmitted without a response during the outage. */
static bool cm_follows(const struct explainer *x, const struct outage *o, const struct incident *st)
{
    const struct flow *f = flow_at(x, o->scope.flow);

    return st->cause == CAUSE_CM_TIMEOUT && st->flow == FLOW_NONE && incident_stands(st) && st->tap == f->tap &&
           (!o->scope.src || conn_addr_eq(&st->src, &f->src)) && (!o->scope.dst || conn_addr_eq(&st->dst, &f->dst)) &&
           st->start >= o->from && st->start < o->to;
}

/* True if connection management had no response during the outage either. If it had, the host is alive, and only
 * packets from or to these queue pairs are lost. */
static bool is_cm_silent(const struct search *w, const struct outage *o)
{
    for (uint32_t i = 0; i < w->x->n; i++)
        if (cm_follows(w->x, o, &w->x->incidents[i]))
            return true;
    return false;
}

/* The outage may have ended before the first response: with a CM message of the host. */
static void end_by_cm(const struct search *w, struct outage *o)
{
    for (uint32_t i = 0; i < flows_of(w->x); i++) {
        const struct host_seen *s = w->in[i] ? host_seen_at(w->x, &flow_at(w->x, i)->dst, flow_at(w->x, i)->tap) : NULL;
        if (s && s->gap_from <= o->from && s->gap_to > o->from && s->gap_to < o->to) {
            o->to = s->gap_to;
            o->frame = s->gap_frame;
            o->by_cm = true;
        }
    }
}

/* True if packets were sent to one host in vain, and nothing else waits but, perhaps, requests of that host: it sends
 * none any more, either. */
static bool is_one_host(struct search *w)
{
    const struct conn_addr *host = NULL;

    if (count_of_hosts(w, VAIN, false) != 1)
        return false;
    for (uint32_t i = 0; i < flows_of(w->x) && !host; i++)
        host = w->in[i] == VAIN ? &flow_at(w->x, i)->dst : NULL;
    for (uint32_t i = 0; i < flows_of(w->x); i++)
        if (w->in[i] && !conn_addr_eq(&flow_at(w->x, i)->dst, host) && !conn_addr_eq(&flow_at(w->x, i)->src, host))
            return false;
    return true;
}

/* True if the waits in the scope around `seed` are one outage: several connections waited at the same time, and none of
 * the packets sent meanwhile had a response. A single host that never responds again is left to hosts.c; that it sends
 * no requests of its own any more, either, makes it no other. */
static bool is_outage(struct search *w, struct outage *o, const struct wait *seed)
{
    gather(w, o, seed);
    end_by_cm(w, o);
    o->doubt = o->by_cm && !is_cm_silent(w, o);
    if (o->to <= o->from || (o->doubt && o->responded < OUTAGE_CONNS) || !is_silent(w, o))
        return false;
    count_unanswered(w, o);
    if (o->waiting < OUTAGE_CONNS || o->unanswered < OUTAGE_VAIN)
        return false; /* before the costly part: this is so in nearly all captures */
    count_members(w, o);
    if (o->waiting < o->conns / 2)
        return false;
    return o->to != INT64_MAX || !is_one_host(w);
}

/* True if an incident is about packets without a response. */
static bool may_follow(const struct incident *st)
{
    static const bool without[CAUSE_COUNT] = {
        [CAUSE_RETRY_EXCEEDED] = true,   [CAUSE_SILENT_PEER] = true, [CAUSE_CANNOT_TELL] = true,
        [CAUSE_LOST_LAST_PACKET] = true, [CAUSE_PACKET_LOSS] = true, [CAUSE_LOST_READ_RESPONSE] = true,
        [CAUSE_LOST_ACK] = true,
    };

    return incident_stands(st) && st->flow != FLOW_NONE && without[st->cause];
}

/* True if an incident is a consequence of the outage: it is about packets without a response, and most of its time lies
 * in the outage. */
static bool follows(const struct search *w, const struct outage *o, const struct incident *st)
{
    const struct explainer *x = w->x;
    ns_t end = o->to == INT64_MAX ? INT64_MAX : o->to + (o->to - o->from) / OUTAGE_PART;
    ns_t from = st->episodes ? st->from : st->start, to = st->episodes ? st->stop : st->start + st->lost;
    ns_t early = o->from - (to - from) / OUTAGE_PART;

    if (!may_follow(st) || !in_scope(x, &o->scope, st->flow))
        return false;
    if (st->cause == CAUSE_SILENT_PEER && !st->episodes && w->in[st->flow])
        return st->start < o->to; /* its start is the last response */
    if ((from >= early && from < o->to) || (st->start >= o->from && st->start < o->to))
        return true;
    if (from >= early && st->n_frames && st->roles[0] == ROLE_LOST && st->frames[0] < o->frame && st->is_request)
        return true; /* sent before it ended */
    from = from > o->from ? from : o->from;
    return (to < end ? to : end) - from >= (st->stop - st->from) / 2 && st->episodes;
}

/* True if a host waits in the outage that is tried. */
static bool is_requester(const struct search *w, const struct conn_addr *host)
{
    for (uint32_t i = 0; i < flows_of(w->x); i++)
        if (w->in[i] && conn_addr_eq(&flow_at(w->x, i)->src, host))
            return true;
    return false;
}

/* Another host at that tap that responded meanwhile; NULL: none. */
static const struct conn_addr *who_answers(const struct search *w, const struct outage *o)
{
    for (uint32_t i = 0; i < flows_of(w->x); i++)
        if (!in_scope(w->x, &o->scope, i) && flow_at(w->x, i)->tap == flow_at(w->x, o->scope.flow)->tap &&
            !is_requester(w, &flow_at(w->x, i)->dst) && was_answered(w->x, i, o))
            return &flow_at(w->x, i)->dst;
    return NULL;
}

/* Connections that failed of it. */
static uint32_t spent_conns(struct search *w, uint32_t by)
{
    uint32_t n = 0, max = flows_of(w->x);

    for (uint32_t i = 0; i < w->x->n && n < max; i++)
        if (w->x->incidents[i].cause == CAUSE_RETRY_EXCEEDED && w->x->incidents[i].superseded_by == by + 1)
            w->conns[n++] = w->x->incidents[i].conn;
    return n ? explain_count_values(w->conns, n) : 0;
}

/* The time of the latest request in it. */
static ns_t last_request(const struct search *w, const struct outage *o)
{
    ns_t last = o->from;

    for (uint32_t i = 0; i < flows_of(w->x); i++) {
        ns_t at = w->in[i] ? w->x->notes[i]->headers.last_ts : 0;
        last = at > last && at < o->to ? at : last;
    }
    return last;
}

static void state_outage(struct search *w, const struct outage *o, struct incident *st)
{
    const struct conn_addr *other = who_answers(w, o);
    bool ended = o->to != INT64_MAX;
    ns_t took = (ended && !o->by_cm ? o->to : last_request(w, o)) - o->from;
    struct fact f = {.time = took, .time2 = o->from, .n = o->conns};

    st->dst = o->dsts == 1 ? flow_at(w->x, o->scope.flow)->dst : st->dst;
    if (o->scope.src && o->dsts == 1) {
        f.sentence = SENTENCE_OUTAGE_PAIR;
        other = NULL;
    } else if (o->dsts == 1) {
        f.sentence = SENTENCE_OUTAGE_TO;
        f.m = o->srcs > 1 ? o->srcs : 0;
    } else if (o->srcs == 1) {
        f.sentence = SENTENCE_OUTAGE_FROM;
        f.m = o->dsts;
    } else {
        f.sentence = SENTENCE_OUTAGE;
    }
    if (o->srcs == 1)
        st->src = flow_at(w->x, o->scope.flow)->src;
    incident_is(st, &f);
    if (other)
        incident_add(st, SAY(OTHERS_WENT_ON, .end = *other));
    incident_add(st, o->doubt   ? SAY(OUTAGE_CM_AT_ONCE, .answer = o->frame, .time = o->to - o->from)
                     : o->by_cm ? SAY(OUTAGE_CM, .answer = o->frame, .time = o->to - o->from)
                     : ended    ? SAY(OUTAGE_OVER, .answer = o->frame)
                                : SAY(OUTAGE_OPEN, 0));
}

/* The sentence about a migration, if the incident has one. */
static const struct fact *migration_of(const struct incident *st)
{
    for (unsigned i = 0; i < st->n_facts; i++)
        if (st->facts[i].sentence == SENTENCE_MIGRATED)
            return &st->facts[i];
    return NULL;
}

/* Queue pairs that migrated, and the frame with which the first one did. */
static void report_migrations(struct explainer *x, uint32_t by)
{
    struct fact f = {.sentence = SENTENCE_MIGRATED_ON};

    for (uint32_t i = 0; i < x->n; i++) {
        const struct fact *m = x->incidents[i].superseded_by == by + 1 ? migration_of(&x->incidents[i]) : NULL;
        if (m && (!f.n++ || m->again < f.again))
            f.again = m->again;
    }
    if (f.n)
        incident_add(incident_at(x, by), &f);
}

/* True if incident `st`, of whichever tap, is about requests of the host that did not respond to one of its requesters,
 * and most of its time lies in the outage. */
static bool is_way_back(const struct search *w, const struct outage *o, const struct incident *st)
{
    const struct flow *f = flow_at(w->x, o->scope.flow), *g = may_follow(st) ? flow_at(w->x, st->flow) : NULL;
    ns_t from, to;

    if (!g || !st->episodes || o->dsts != 1 || !conn_addr_eq(&g->src, &f->dst) || !is_requester(w, &g->dst))
        return false;
    from = explain_clock(w->x, st->tap, f->tap, st->from);
    to = explain_clock(w->x, st->tap, f->tap, st->stop);
    return (to < o->to ? to : o->to) - (from > o->from ? from : o->from) > (to - from) / 2;
}

/* What both directions lost, and between which two taps, if those that know agree. */
static void report_place(struct search *w, uint32_t by, uint32_t n, const struct outage *o)
{
    struct incident *st = incident_at(w->x, by);
    uint32_t back = 0, passed = 0, missed = 0;
    bool differ = false;

    for (uint32_t i = 0; i < n && back < flows_of(w->x); i++) {
        const struct incident *s = &w->x->incidents[i];
        bool other = is_way_back(w, o, s);
        if (other) {
            w->conns[back++] = s->conn;
            cross_supersede(w->x, by, i);
        }
        if (s->superseded_by != by + 1 || !s->passed || !s->missed)
            continue;
        differ |= passed && (passed != (other ? s->missed : s->passed) || missed != (other ? s->passed : s->missed));
        passed = other ? s->missed : s->passed;
        missed = other ? s->passed : s->missed;
    }
    if (back)
        incident_add(st, SAY(OUTAGE_BACK, .n = explain_count_values(w->conns, back)));
    if (!passed || differ)
        return;
    st->place = PLACE_AFTER;
    st->passed = passed;
    st->missed = missed;
    incident_add(st, SAY(OUTAGE_BETWEEN, 0));
}

/* Report the outage, if at least two incidents are its consequences. */
static void report_outage(struct search *w, const struct outage *o)
{
    struct explainer *x = w->x;
    uint32_t n = x->n, follow = 0, number, spent;

    for (uint32_t i = 0; i < n; i++)
        follow += follows(w, o, &x->incidents[i]);
    number =
        follow < OUTAGE_CONNS ? NO_INCIDENT : cross_new(x, CAUSE_LINK_DOWN, flow_at(x, o->scope.flow)->tap, o->from);
    if (number == NO_INCIDENT)
        return;
    state_outage(w, o, incident_at(x, number));
    for (uint32_t i = 0; i < n; i++)
        if (follows(w, o, &x->incidents[i]) || cm_follows(x, o, &x->incidents[i]))
            cross_supersede(x, number, i);
    incident_frame(incident_at(x, number), ROLE_ANSWER, o->frame);
    report_place(w, number, n, o);
    spent = spent_conns(w, number);
    if (spent)
        incident_add(incident_at(x, number), SAY(SPENT_ON, .n = spent));
    report_migrations(x, number);
    for (uint32_t i = 0; i < w->n; i++)
        w->waits[i].in_outage |=
            in_scope(x, &o->scope, w->waits[i].flow) && w->waits[i].from < o->to && w->waits[i].to > o->from;
}

/* Of the scopes that fit, the one with the most connections, and of these the widest. */
static void try_outage(struct search *w, const struct wait *seed)
{
    struct outage best = {0};

    for (unsigned k = 0; k < 4; k++) {
        struct outage o = {.scope = {seed->flow, (k & 1) != 0, (k & 2) != 0}};
        if (is_outage(w, &o, seed) && o.conns > best.conns)
            best = o;
    }
    if (best.conns && is_outage(w, &(struct outage){.scope = best.scope}, seed)) /* fills w->in once more */
        report_outage(w, &best);
}

/* A queue pair had no response until it migrated: its path failed. */
static void report_path(struct incident *st)
{
    const struct fact *m = incident_stands(st) ? migration_of(st) : NULL;
    ns_t lost = st->silence > st->bill ? st->silence : st->bill;

    if (!m || st->cause != CAUSE_LOST_LAST_PACKET || st->flow == FLOW_NONE)
        return;
    st->cause = CAUSE_LINK_DOWN;
    st->place = PLACE_UNKNOWN;
    incident_is(st, SAY(PATH_FAILED, .time = lost, .time2 = st->start, .psn = st->psn, .lost = st->frames[0],
                        .again = m->again, .answer = st->arrived));
}

void explain_outages(struct explainer *x)
{
    uint32_t flows = flows_of(x);
    struct search w = {.x = x,
                       .waits = calloc(flows + 1u, (RESPONSE_GAPS + 1) * sizeof *w.waits),
                       .in = calloc(flows + 1u, 1),
                       .conns = calloc(flows + 1u, sizeof *w.conns),
                       .hosts = calloc(flows + 1u, sizeof *w.hosts)};

    if (timeline_episodes(x->timeline) && w.waits && w.in && w.conns && w.hosts) { /* else nothing was in vain */
        collect(&w);
        for (uint32_t i = 0, tried = 0; i < w.n && tried < OUTAGE_SEEDS; i++)
            if (!w.waits[i].in_outage) {
                try_outage(&w, &w.waits[i]);
                tried++;
            }
    }
    for (uint32_t i = 0; i < x->n; i++)
        report_path(&x->incidents[i]);
    free(w.waits);
    free(w.in);
    free(w.conns);
    free(w.hosts);
}
