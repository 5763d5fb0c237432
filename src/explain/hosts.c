/* layer 3 (explain): hosts that stopped responding to everyone, and dead peers; hosts of which nothing came for a time.
 */
#include "dissect/pkt.h"
#include "src/explain/explain_impl.h"

#include <stdlib.h>

#define HOST_CONNS   2               /* connections at least, of a silent host */
#define HUSH_CONNS   2               /* connections at least that sent nothing for the same time, */
#define HUSH_MISSING 4               /* and PSNs that they then skipped, in all */
#define HUSH_SEEDS   64              /* flows that are tried */
#define HUSH_LEAST   (5 * NS_PER_MS) /* the shortest such time */
#define HUSH_PART    8               /* each one begins and ends within this part of it */

/* --- Hosts
 * ------------------------------------------------------------------------------------------------------------ */

static struct host_seen *host_place(struct explainer *x, const struct conn_addr *a, uint32_t tap)
{
    uint64_t h[CONN_ADDR_WORDS];

    conn_addr_words(a, h);
    return &x->hosts[((h[0] ^ h[1] ^ tap) * HASH_MULTIPLIER) >> 56 & (HOSTS_SEEN - 1)];
}

void explain_host(struct explainer *x, const struct pkt *p)
{
    struct conn_addr src, dst;
    struct host_seen *s;

    if (!p->addr_len)
        return;
    conn_addr_of(p, &src, &dst);
    s = host_place(x, &src, conn_tap_of(p->frame));
    if (!s->frame || s->tap != conn_tap_of(p->frame) || !conn_addr_eq(&s->addr, &src)) {
        *s = (struct host_seen){.addr = src, .tap = conn_tap_of(p->frame)};
    } else if (p->frame->ts - s->ts > s->gap_to - s->gap_from) {
        s->gap_from = s->ts;
        s->gap_to = p->frame->ts;
        s->gap_frame = frame_u32(p);
    }
    s->frame = frame_u32(p);
    s->ts = p->frame->ts;
}

const struct host_seen *host_seen_at(struct explainer *x, const struct conn_addr *host, uint32_t tap)
{
    const struct host_seen *s = host_place(x, host, tap);

    return s->frame && s->tap == tap && conn_addr_eq(&s->addr, host) ? s : NULL;
}

/* When the tap saw the last packet of a host; 0: never. */
static ns_t last_of(struct explainer *x, const struct conn_addr *host, uint32_t tap)
{
    const struct host_seen *s = host_seen_at(x, host, tap);
    ns_t last = s ? s->ts : 0;

    for (uint32_t i = 0; i < conn_counts(observer_conns(x->observer)).flows; i++) {
        const struct flow *f = conn_flow_at(observer_conns(x->observer), i);
        const struct flow_notes *t = x->notes[i];
        if (t && f->tap == tap && conn_addr_eq(&f->src, host) && t->headers.last_ts > last)
            last = t->headers.last_ts;
    }
    return last;
}

/* A request to the host of incident `st` after its last packet, at `last`: that of the incident, or the first one that
 * asks for a response. */
static uint32_t asked_in_vain(struct explainer *x, const struct incident *st, ns_t last)
{
    uint32_t frame = st->start > last ? st->frames[0] : 0;

    for (uint32_t i = 0; i < conn_counts(observer_conns(x->observer)).flows; i++) {
        const struct flow *f = conn_flow_at(observer_conns(x->observer), i);
        const struct flow_notes *t = x->notes[i];
        bool to = t && f->tap == st->tap && conn_addr_eq(&f->dst, &st->dst) && t->requests.wanted.frame;
        if (to && t->requests.wanted.ts > last && (!frame || t->requests.wanted.frame < frame))
            frame = t->requests.wanted.frame;
    }
    return frame ? frame : st->frames[0];
}

/* Requests to one host without a response. */
struct silence {
    uint32_t first;        /* the earliest incident */
    uint32_t conns, hosts; /* connections; hosts that sent the requests */
    uint32_t failed;       /* connections that failed of it */
    ns_t since;            /* when the first of the requests behind the last packet of the host was sent */
    ns_t until;            /* when each of them had been retransmitted at least once */
};

static bool is_same_silence(const struct incident *a, const struct incident *b)
{
    return a->tap == b->tap && a->flow != FLOW_NONE && b->flow != FLOW_NONE && has_no_response(a) &&
           has_no_response(b) && conn_addr_eq(&a->dst, &b->dst);
}

static bool has_failed(const struct incident *st)
{
    return incident_failure(st) > 0;
}

static bool same_host(const struct incident *a, const struct incident *b)
{
    return conn_addr_eq(&a->src, &b->src);
}
static bool same_conn(const struct incident *a, const struct incident *b)
{
    return a->conn == b->conn;
}
static bool same_failure(const struct incident *a, const struct incident *b)
{
    return same_conn(a, b) && has_failed(a) == has_failed(b);
}

static bool same_spent(const struct incident *a, const struct incident *b)
{
    return same_conn(a, b) && (a->cause == CAUSE_RETRY_EXCEEDED) == (b->cause == CAUSE_RETRY_EXCEEDED);
}

/* True if incident `i` is the first of its silence with its host, connection, or failed connection. */
static bool is_first(const struct explainer *x, uint32_t i,
                     bool (*same)(const struct incident *a, const struct incident *b))
{
    for (uint32_t k = 0; k < i; k++)
        if (is_same_silence(&x->incidents[k], &x->incidents[i]) && same(&x->incidents[k], &x->incidents[i]))
            return false;
    return true;
}

/* True if incident `a` tells sooner than `b` when a host, whose last packet came at `last`, went silent: of requests
 * sent after it, the first; of those before, whose responses may have been lost, the last. */
static bool tells_sooner(const struct incident *a, const struct incident *b, ns_t last)
{
    if (b->cause == CAUSE_SILENT_PEER)
        return true; /* its start is the last response */
    if (a->start <= last || b->start <= last)
        return a->start > b->start;
    return a->start < b->start;
}

/* The silence of which incident `first` is one; `last`: when the last packet of the host came. */
static struct silence silence_of(const struct explainer *x, uint32_t first, ns_t last)
{
    const struct incident *st = &x->incidents[first];
    struct silence s = {.first = first};

    for (uint32_t i = first; i < x->n; i++) {
        const struct incident *o = &x->incidents[i];
        if (!is_same_silence(st, o))
            continue;
        s.conns += is_first(x, i, same_conn);
        s.hosts += is_first(x, i, same_host);
        s.failed += has_failed(o) && is_first(x, i, same_failure);
        if (o->cause == CAUSE_SILENT_PEER)
            continue; /* its start is the last response */
        if (tells_sooner(o, &x->incidents[s.first], last))
            s.first = i;
        if (o->start + o->silence > s.until)
            s.until = o->start + o->silence;
    }
    s.since = x->incidents[s.first].start > last ? x->incidents[s.first].start : last;
    return s;
}

/* Another host at that tap that still responded after `since`; NULL: none. */
static const struct conn_addr *who_goes_on(struct explainer *x, const struct conn_addr *host, uint32_t tap, ns_t since)
{
    const struct conn_addr *found = NULL;
    ns_t last = since;

    for (uint32_t i = 0; i < conn_counts(observer_conns(x->observer)).flows; i++) {
        const struct flow *f = conn_flow_at(observer_conns(x->observer), i);
        const struct flow_notes *t = x->notes[i];
        if (!t || f->tap != tap || conn_addr_eq(&f->dst, host) || t->responses.last_ts <= last)
            continue;
        last = t->responses.last_ts;
        found = &f->dst;
    }
    return found;
}

static bool is_first_of_silence(const struct explainer *x, uint32_t i)
{
    if (x->incidents[i].flow == FLOW_NONE || !has_no_response(&x->incidents[i]))
        return false;
    for (uint32_t k = 0; k < i; k++)
        if (is_same_silence(&x->incidents[k], &x->incidents[i]))
            return false;
    return true;
}

/* Connections whose retries were used up against the silent host. */
static uint32_t spent_conns(const struct explainer *x, const struct incident *st)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < x->n; i++)
        n += x->incidents[i].cause == CAUSE_RETRY_EXCEEDED && is_same_silence(st, &x->incidents[i]) &&
             is_first(x, i, same_spent);
    return n;
}

/* True if `i` is a CM message to the host of incident `st` that had no response, and was still waited for after
 * `since`. */
static bool is_silent_cm(const struct incident *i, const struct incident *st, ns_t since)
{
    return i->cause == CAUSE_CM_TIMEOUT && i->flow == FLOW_NONE && i->tap == st->tap && i->start + i->lost >= since &&
           conn_addr_eq(&i->dst, &st->dst);
}

/* Add to incident `by` about the host of `st` that messages of CM had no response from it either, and for how long. */
static void add_cm_in_vain(const struct explainer *x, struct incident *by, const struct incident *st, ns_t since)
{
    struct fact f = {.sentence = SENTENCE_CM_IN_VAIN};

    for (uint32_t i = 0; i < x->n; i++) {
        const struct incident *cm = &x->incidents[i];
        if (!is_silent_cm(cm, st, since))
            continue;
        f.n++;
        f.time = cm->start + cm->lost - since > f.time ? cm->start + cm->lost - since : f.time;
    }
    if (f.n)
        incident_add(by, &f);
}

/* True if `i` is about the same silence, at another tap. */
static bool is_silence_elsewhere(const struct incident *i, const struct incident *st)
{
    return i->cause == CAUSE_SILENT_PEER && i->tap != st->tap && has_no_response(i) && conn_addr_eq(&i->dst, &st->dst);
}

/* True if it is the host, and not a path to it, that went silent: another host behind the tap goes on (`other`),
 * several hosts wait for it, or all its connections failed. */
static bool is_host_silent(const struct silence *s, const struct conn_addr *other)
{
    return s->conns >= HOST_CONNS && (other || s->hosts >= HOST_CONNS || s->failed >= s->conns);
}

static void end_host(struct explainer *x, uint32_t i)
{
    ns_t last = last_of(x, &x->incidents[i].dst, x->incidents[i].tap);
    struct silence s = silence_of(x, i, last);
    struct incident st = x->incidents[s.first], *by;
    const struct conn_addr *other = who_goes_on(x, &st.dst, st.tap, s.until);
    uint32_t number, lost = asked_in_vain(x, &st, last), spent = spent_conns(x, &st);

    if (!last || last >= s.until || !is_host_silent(&s, other))
        return;
    number = cross_new(x, CAUSE_HOST_SILENT, st.tap, s.since);
    by = incident_at(x, number);
    if (!by)
        return;
    by->dst = st.dst;
    incident_frame(by, ROLE_LOST, lost);
    incident_is(by, other ? SAY(WENT_SILENT, .time2 = last, .lost = lost, .n = s.conns, .m = s.hosts, .end = *other)
                          : SAY(WENT_SILENT_ALONE, .time2 = last, .lost = lost, .n = s.conns, .m = s.hosts));
    if (spent)
        incident_add(by, SAY(SPENT_ON, .n = spent));
    add_cm_in_vain(x, by, &st, s.since);
    for (uint32_t k = 0; k < number; k++)
        if ((k >= i && is_same_silence(&st, &x->incidents[k])) || is_silent_cm(&x->incidents[k], &st, s.since) ||
            is_silence_elsewhere(&x->incidents[k], &st))
            cross_supersede(x, number, k);
}

void explain_hosts(struct explainer *x)
{
    uint32_t n = x->n;

    for (uint32_t i = 0; i < n; i++)
        if (is_first_of_silence(x, i))
            end_host(x, i);
}

/* --- Dead peers
 * ------------------------------------------------------------------------------------------------------------ */

/* True if `i` is another effect of the peer's death that incident `st` reports: the silence of the peer, or a CM
 * message to it, such as the DREQ, without a response. */
static bool is_of_death(const struct incident *i, const struct incident *st, ns_t last)
{
    if (!incident_stands(i) || !conn_addr_eq(&i->src, &st->src) || !conn_addr_eq(&i->dst, &st->dst))
        return false;
    if (i->cause == CAUSE_SILENT_PEER && st->cause != CAUSE_SILENT_PEER)
        return i->conn == st->conn;
    return is_silent_cm(i, st, st->start > last ? st->start : last + 1);
}

static void end_dead(struct explainer *x, uint32_t number)
{
    struct incident *st = &x->incidents[number];
    ns_t last = last_of(x, &st->dst, st->tap), lost = st->lost;

    for (uint32_t i = 0; i < x->n; i++) {
        const struct incident *o = &x->incidents[i];
        if (!is_of_death(o, st, last))
            continue;
        for (unsigned k = 0; k < o->n_facts && o->cause == CAUSE_SILENT_PEER && o->tap == st->tap; k++)
            incident_add(st, &o->facts[k]);
        lost = o->lost > lost ? o->lost : lost;
        cross_supersede(x, number, i);
    }
    st->lost = lost;
}

void explain_dead(struct explainer *x)
{
    static const enum cause causes[] = {CAUSE_RETRY_EXCEEDED, CAUSE_HALF_OPEN, CAUSE_SILENT_PEER};

    for (unsigned k = 0; k < ARRAY_LEN(causes); k++)
        for (uint32_t i = 0; i < x->n; i++) {
            const struct incident *st = &x->incidents[i];
            if (st->cause == causes[k] && st->flow != FLOW_NONE && incident_stands(st))
                end_dead(x, i);
        }
}

/* --- Nothing came, and then behind missing PSNs
 * ------------------------------------------------------------------------------------------------------------ */

void explain_hush(const struct event *e, struct flow_notes *t)
{
    ns_t since = e->h->last_ts, now = e->p->frame->ts, longest = t->requests.hush.to - t->requests.hush.from;

    if (now - since < HUSH_LEAST || now - since <= longest)
        return;
    t->requests.hush.from = since;
    t->requests.hush.to = now;
    t->requests.hush.frame = frame_u32(e->p);
    t->requests.hush.missing = (e->p->bth.psn - e->h->next) & PSN_MASK;
}

/* A time without requests of several connections. */
struct hush {
    uint32_t seed;     /* flow of one of them */
    bool to_one;       /* all that go to the same host; else all at its tap */
    ns_t from, to;     /* the time that all share */
    uint32_t *numbers; /* of the connections, of each flow one; the caller's, with room for all flows */
    uint32_t flows;    /* of `numbers` */
    uint32_t conns;    /* connections */
    uint32_t missing;  /* PSNs that they skipped after it */
    uint32_t frame;    /* first one that came then */
    bool one_src;      /* they have one requester: */
    struct conn_addr src;
};

static bool in_hush(const struct explainer *x, const struct hush *u, uint32_t flow)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow),
                      *seed = conn_flow_at(observer_conns(x->observer), u->seed);

    return f->tap == seed->tap && (!u->to_one || conn_addr_eq(&f->dst, &seed->dst));
}

/* True if the flow was silent for the time of `u`, give or take a part of it. */
static bool is_hushed(const struct explainer *x, const struct hush *u, uint32_t flow)
{
    const struct flow_notes *t = x->notes[flow];
    ns_t slack = (u->to - u->from) / HUSH_PART, from, to;

    if (!t || !t->requests.hush.to)
        return false;
    from = t->requests.hush.from;
    to = t->requests.hush.to;
    return from >= u->from - slack && from <= u->from + slack && to >= u->to - slack && to <= u->to + slack;
}

static void add_hushed(const struct explainer *x, struct hush *u, uint32_t flow)
{
    const struct flow_notes *t = x->notes[flow];
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);

    if (!u->flows || t->requests.hush.frame < u->frame)
        u->frame = t->requests.hush.frame;
    u->one_src = !u->flows || (u->one_src && conn_addr_eq(&f->src, &u->src));
    u->src = f->src;
    u->missing += t->requests.hush.missing;
    u->numbers[u->flows++] = f->conn;
}

/* True if all connections in question that had not ended before the time of the seed, nor begun after it, sent no
 * request meanwhile, and then skipped PSNs. */
static bool all_are_hushed(struct explainer *x, struct hush *u)
{
    const struct flow_notes *seed = x->notes[u->seed];

    u->from = seed->requests.hush.from;
    u->to = seed->requests.hush.to;
    for (uint32_t i = 0; i < conn_counts(observer_conns(x->observer)).flows; i++) {
        const struct req_dir *h = in_hush(x, u, i) ? observer_req_dir(x->observer, i) : NULL;
        bool goes_on = h && h->have_next && h->first_ts < u->to && h->last_ts > u->from;
        if (is_hushed(x, u, i) && h)
            add_hushed(x, u, i);
        else if (goes_on)
            return false;
    }
    u->conns = explain_count_values(u->numbers, u->flows);
    return u->conns >= HUSH_CONNS && u->missing >= HUSH_MISSING;
}

/* True if the incident is the loss of the packets that were missing behind the silence. */
static bool is_of_hush(struct explainer *x, const struct hush *u, const struct incident *st)
{
    bool lost = st->cause == CAUSE_PACKET_LOSS && st->place == PLACE_BEFORE && incident_stands(st);

    return lost && st->flow != FLOW_NONE && in_hush(x, u, st->flow) && is_hushed(x, u, st->flow) &&
           incident_has(st, st->tap, x->notes[st->flow]->requests.hush.frame);
}

static void report_hush(struct explainer *x, const struct hush *u)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), u->seed);
    uint32_t n = x->n, follow = 0, number;
    struct incident *by;

    for (uint32_t i = 0; i < n; i++)
        follow += is_of_hush(x, u, &x->incidents[i]);
    number = follow < HUSH_CONNS ? NO_INCIDENT : cross_new(x, CAUSE_LINK_DOWN, f->tap, u->from);
    by = incident_at(x, number);
    if (!by)
        return;
    by->dst = u->to_one ? f->dst : by->dst;
    by->src = u->one_src ? u->src : by->src;
    incident_frame(by, ROLE_INSTEAD, u->frame);
    incident_is(by, &(const struct fact){.sentence = u->to_one ? SENTENCE_NOTHING_CAME_TO : SENTENCE_NOTHING_CAME,
                                         .time = u->to - u->from,
                                         .time2 = u->from,
                                         .n = u->conns,
                                         .m = u->missing,
                                         .instead = u->frame});
    for (uint32_t i = 0; i < n; i++)
        if (is_of_hush(x, u, &x->incidents[i]))
            cross_supersede(x, number, i);
}

void explain_hushes(struct explainer *x)
{
    uint32_t flows = conn_counts(observer_conns(x->observer)).flows, *numbers = calloc(flows + 1u, sizeof *numbers);
    unsigned tried = 0;

    for (uint32_t i = 0; numbers && i < flows && tried < HUSH_SEEDS; i++) {
        struct hush all = {.seed = i, .numbers = numbers}, one = {.seed = i, .numbers = numbers, .to_one = true};
        if (!x->notes[i] || !x->notes[i]->requests.hush.to)
            continue;
        tried++;
        if (all_are_hushed(x, &one))
            report_hush(x, &one);
        else if (all_are_hushed(x, &all))
            report_hush(x, &all);
    }
    free(numbers);
}
