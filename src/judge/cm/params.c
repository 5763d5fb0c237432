/* layer 3 (judge): packets of a connection compared with the parameters in its CM messages. */
#include "src/judge/cm/cm.h"

#include <stdlib.h>

/* True if a copy of the REQ or REP that the parameters of the connection are from differs from another one: CM-03. */
static bool has_other_copy(const struct judge *j, const struct flow *c)
{
    for (unsigned i = 0; i < j->n_cm_used; i++) {
        const struct cm_ends *e = &j->cm_ends[j->cm_used[i]];
        if (e->differs && (e->frame == c->params.req_frame || e->rep_frame == c->params.rep_frame))
            return true;
    }
    return false;
}

static void check_first_psn(struct judge *j, const struct pkt *p, uint32_t flow, struct jflow *f)
{
    const struct flow *c = &j->flow[flow];
    int32_t d = psn_diff(p->bth.psn, c->psn);
    struct found g = found_of(RULE_CM_06, flow);

    g.by_clock = true;
    f->psn_checked = true;
    if (!c->have_psn || c->paired_by != PAIR_CM || d == 0)
        return;
    if (f->before_rep.have && f->before_rep.psn == c->psn)
        return; /* the first one came before the REP: CM-12 */
    if (has_other_copy(j, c))
        return;
    g.needs = d > 0 ? N_TAP_REQ : 0; /* the first packets may have been lost before the tap */
    /* a packet that could not be decoded may have been the first one */
    g.lacks = j->last_unreadable > c->params.rep_frame ? N_COMPLETE : 0;
    if (c->peer != FLOW_NONE && j->flows[c->peer].has_rsp)
        g.lacks |= N_COMPLETE; /* the captured REP is a retransmission: packets came before it */
    g.cause = c->params.rep_frame;
    g.expected = say(j, "PSN %u", c->psn);
    g.seen = say(j, "PSN %u", p->bth.psn);
    g.text = "The starting PSN of a REQ or REP is the one from which its receiver sends. The peer expects that PSN and "
             "refuses this packet.";
    judge_found(j, p, g);
}

static void report_too_long(struct judge *j, const struct pkt *p, uint32_t flow, const struct flow *c)
{
    struct found g = found_of(RULE_CM_08, flow);

    g.needs = judge_needs_of_another(j, flow);
    g.cause = c->params.req_frame;
    g.expected = say(j, "at most %u bytes", c->pmtu);
    g.seen = say(j, "%u", p->payload_len);
    g.text = "The packet is longer than the path MTU that the REQ states.";
    judge_found(j, p, g);
}

void judge_cm_request(struct judge *j, const struct judged *a)
{
    const struct pkt *p = a->p;
    const struct flow *c = &j->flow[a->flow];

    if (LIKELY(keeps_cm_params(a->f, c, p)))
        return;
    if (UNLIKELY(!a->f->psn_checked))
        check_first_psn(j, p, a->flow, a->f);
    if (UNLIKELY(c->paired_by == PAIR_CM && c->pmtu && p->payload_len > c->pmtu))
        report_too_long(j, p, a->flow, c);
    if (UNLIKELY(a->f->closed.frame))
        judge_cm_late_request(j, a);
}

/* A sequence NAK, before any request was acknowledged, with a PSN before the starting PSN that its sender announced. */
bool judge_cm_response(struct judge *j, const struct judged *a, struct found *f)
{
    const struct pkt *p = a->p;
    const struct flow *c = &j->flow[a->flow];

    if (!(p->have & H_AETH) || response_type(p) != AETH_NAK || aeth_value(p->aeth.syndrome) != NAK_PSN_SEQ) {
        a->f->acked = true;
        return false;
    }
    if (c->paired_by != PAIR_CM || !c->have_psn || !a->f->packets || psn_diff(p->bth.psn, c->psn) >= 0)
        return false;
    *f = found_of(RULE_CM_06, a->flow);
    f->by_clock = true;
    f->cause = c->params.rep_frame;
    f->wrong = "the NAK expects PSN {seen}, announced was {expected}";
    f->expected = say(j, "PSN %u", c->psn);
    f->seen = say(j, "PSN %u", p->bth.psn);
    f->text =
        "The NAK tells which PSN its sender expects: not the one that its own REQ or REP gave the peer to start from.";
    return true;
}

/* --- Flows with requests, by where they come from --------------------------------------------- */

struct asker {
    struct conn_addr src, dst;
    uint32_t tap, flow;
};
struct askers {
    struct asker *of;
    uint32_t n;
    uint64_t tries; /* so many more are compared with other flows */
};
#define ASKER_TRIES 256 /* for each flow there is */

static int by_asker(const void *a, const void *b)
{
    const struct asker *x = a, *y = b;
    int d = memcmp(&x->src, &y->src, sizeof x->src);

    d = d ? d : (x->tap > y->tap) - (x->tap < y->tap);
    d = d ? d : memcmp(&x->dst, &y->dst, sizeof x->dst);
    return d ? d : (x->flow > y->flow) - (x->flow < y->flow);
}

static struct askers askers_of(const struct judge *j)
{
    uint32_t n = conn_counts(j->conns).flows;
    struct askers a = {.of = calloc(n + (size_t)1, sizeof *a.of), .tries = ASKER_TRIES * (n + UINT64_C(1))};

    for (uint32_t i = 0; a.of && i < n; i++) {
        if (!j->flows[i].dir || !j->flows[i].dir->have_next)
            continue;
        a.of[a.n].tap = j->flow[i].tap;
        a.of[a.n].flow = i;
        memcpy(&a.of[a.n].src, &j->flow[i].src, sizeof a.of->src);
        memcpy(&a.of[a.n++].dst, &j->flow[i].dst, sizeof a.of->dst);
    }
    if (a.n)
        qsort(a.of, a.n, sizeof *a.of, by_asker);
    return a;
}

/* The first of them at `tap` from `src`, to `dst` (NULL: to anybody), or what is behind it. */
static uint32_t askers_from(const struct askers *a, uint32_t tap, const struct conn_addr *src,
                            const struct conn_addr *dst)
{
    uint32_t low = 0, high = a->n;
    struct asker key = {.tap = tap};

    memcpy(&key.src, src, sizeof *src);
    if (dst)
        memcpy(&key.dst, dst, sizeof *dst);
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (by_asker(&a->of[mid], &key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Whether connection `o` skipped the first PSN of `f` at the time of that packet: behind its REP and the PSN before. */
static bool skipped_it(const struct flow *o, struct req_dir *h, const struct jflow *f)
{
    const struct sent *before = h ? req_dir_sent(h, psn_prev(f->dir->start)) : NULL;
    uint32_t hole;

    return h && req_dir_was_hole(h, f->dir->start, &hole) && f->first_frame < hole &&
           f->first_frame > o->params.rep_frame && (!before || f->first_frame > before->first);
}

/* Flow `flow` has packets for a queue pair without a known connection. If a connection between the same hosts
 * skipped their first PSN at that time, they belong to that connection and have a wrong queue pair number. Nothing is
 * said if too many connections have to be compared. */
static void check_wrong_qpn(struct judge *j, uint32_t flow, const struct jflow *f, struct askers *a)
{
    const struct flow *c = &j->flow[flow];

    for (uint32_t at = askers_from(a, c->tap, &c->src, &c->dst); at < a->n && a->tries; at++, a->tries--) {
        uint32_t i = a->of[at].flow;
        const struct flow *o = &j->flow[i];
        struct found g = found_of(RULE_CM_07, i);
        if (o->tap != c->tap || !conn_addr_eq(&o->src, &c->src) || !conn_addr_eq(&o->dst, &c->dst))
            return;
        if (i == flow || o->paired_by != PAIR_CM || !skipped_it(o, j->flows[i].dir, f))
            continue;
        /* else a lost packet and a connection set up before the capture look the same */
        g.needs = N_COMPLETE | N_TAP_REQ;
        g.frame = f->first_frame;
        g.cause = o->params.rep_frame;
        g.expected = say(j, "QP 0x%06x for PSN %u", o->dqpn, f->dir->start);
        g.seen = say(j, "QP 0x%06x", c->dqpn);
        g.text = "The connection skips this PSN, which a packet for another queue pair carries: it was meant for "
                 "the one that CM has named.";
        judge_found(j, NULL, g);
        return;
    }
}

void judge_wrong_qpns(struct judge *j)
{
    uint32_t n = conn_counts(j->conns).flows;
    struct askers a = {0};

    for (uint32_t i = 0; i < n && j->o.complete && judge_wants(j, RULE_CM_07); i++) {
        const struct jflow *f = &j->flows[i];
        judge_share_flow(j, PHASE_QPNS, i);
        if (!f->dir || !f->dir->have_next || f->packets >= 16 || j->flow[i].peer != FLOW_NONE ||
            judge_is_special(j->flow[i].dqpn))
            continue;
        if (!a.of)
            a = askers_of(j);
        check_wrong_qpn(j, i, f, &a);
    }
    free(a.of);
}

/* --- Flows that belong to another connection -------------------------------------------------- */

/* The end of a connection that sends the requests of `flow`, from their first PSN on, but to another queue pair; NULL:
 * none. *side is that end. */
static const struct cm_ends *ends_of_first(const struct judge *j, uint32_t flow, unsigned *side)
{
    const struct flow *c = &j->flow[flow];

    for (unsigned i = 0; i < 2 * j->n_cm_used; i++) {
        const struct cm_ends *e = &j->cm_ends[j->cm_used[i / 2]];
        bool made_before = e->rep_frame && e->rep_frame < j->flows[flow].first_frame;
        *side = i % 2;
        if (made_before && e->psn[*side] == j->flows[flow].dir->start && e->qpn[!*side] != c->dqpn &&
            cm_ends_are(e, *side, c->tap, &c->src, &c->dst))
            return e;
    }
    return NULL;
}

/* True if flow `r` has the addresses of `c` in the opposite direction, at the same tap. */
static bool is_reverse(const struct flow *r, const struct flow *c)
{
    return r->tap == c->tap && conn_addr_eq(&r->src, &c->dst) && conn_addr_eq(&r->dst, &c->src);
}

/* True if the other direction has responses to a queue pair other than `qpn`, for which no requests are known. */
static bool has_unmatched_back(const struct judge *j, const struct flow *c, uint32_t qpn)
{
    for (uint32_t i = 0; i < conn_counts(j->conns).flows; i++) {
        const struct flow *r = &j->flow[i];
        bool unmatched = j->flows[i].unmatched && r->peer == FLOW_NONE;
        if (unmatched && r->dqpn != qpn && is_reverse(r, c))
            return true;
    }
    return false;
}

/* True if the end `side` of `e` has received responses. */
static bool is_answered(const struct judge *j, const struct cm_ends *e, unsigned side)
{
    uint32_t flow = conn_flow_named(j->conns, e->tap, &e->addr[!side], &e->addr[side], e->qpn[side]);

    return flow != FLOW_NONE && j->flows[flow].has_rsp;
}

/* CM-07: the requests of a flow go to an unknown queue pair, but begin with the PSN that CM named for a connection
 * whose flow is missing. No responses come back from there, or they go to that connection's queue pair: the requests
 * carry a wrong destination QP. Requests to QP 0xffffff are reported by FMT-14. */
static void check_first_qpn(struct judge *j, uint32_t flow, const struct jflow *f)
{
    const struct flow *c = &j->flow[flow];
    struct found g = found_of(RULE_CM_07, flow);
    unsigned side;
    const struct cm_ends *e = judge_is_special(c->dqpn) ? NULL : ends_of_first(j, flow, &side);
    uint32_t named = e ? conn_flow_named(j->conns, c->tap, &c->src, &c->dst, e->qpn[!side]) : FLOW_NONE;
    bool has_requests = named != FLOW_NONE && j->flows[named].dir;

    if (!e || judge_is_special(e->qpn[!side]) || has_requests || !(f->dir->again || is_answered(j, e, side)) ||
        has_unmatched_back(j, c, e->qpn[side]))
        return;
    g.has = N_CM;
    g.needs = N_COMPLETE; /* else it may be another connection, and the packets of this one were not captured */
    g.frame = f->first_frame;
    g.cause = e->rep_frame;
    g.expected = say(j, "QP 0x%06x for PSN %u", e->qpn[!side], f->dir->start);
    g.seen = say(j, "QP 0x%06x", c->dqpn);
    g.text =
        is_answered(j, e, side)
            ? "These requests begin with the PSN that CM has named for a connection between these hosts, which sends "
              "none, and the queue pair that it has named for their sender gets answers."
            : "These requests begin with the PSN that CM has named for a connection between these hosts, which sends "
              "none; nothing is known of the queue pair that they go to, and none is answered from there.";
    judge_found(j, NULL, g);
}

void judge_psn_fact(const struct judge *j, uint32_t i, struct flow_fact *x)
{
    const struct flow *c = &j->flow[i];
    const struct jflow *f = &j->flows[i];
    const struct req_dir *h = f->dir;

    x->src = c->src;
    x->dst = c->dst;
    x->tap = c->tap;
    x->dqpn = c->dqpn;
    x->first_frame = f->first_frame;
    x->have_sqpn = c->have_sqpn;
    x->sqpn = c->sqpn;
    x->paired = c->peer != FLOW_NONE;
    x->by_cm = c->paired_by == PAIR_CM;
    x->asks = h && h->have_next && h->service == SVC_RC;
    x->orphan = !x->paired && c->dqpn > 1 && f->packets && !h && f->unmatched;
    x->psn = x->orphan ? f->unmatched_first : x->asks ? h->start : 0;
    x->psn_to = x->orphan ? f->unmatched_last : x->asks ? h->next : 0;
    x->have_una = x->asks && h->have_una;
    x->una = x->have_una ? h->una : 0;
}

/* True if all responses of `r` have PSNs of the requests of `q`, which were sent before. */
static bool has_answered(const struct flow_fact *r, const struct flow_fact *q)
{
    uint32_t n = (q->psn_to - q->psn) & PSN_MASK;

    if (q->have_una && psn_diff(q->una, r->psn) > 0 && !q->by_cm)
        return false; /* these requests were answered by their own peer */
    return q->asks && q->first_frame < r->first_frame && psn_in(r->psn, q->psn, n) && psn_in(r->psn_to, q->psn, n);
}

bool judge_may_answer(const struct flow_fact *r, const struct flow_fact *q)
{
    bool same_host = conn_addr_eq(&q->dst, &r->src), same_qp = q->have_sqpn && q->sqpn == r->dqpn;
    bool from_here = q->tap == r->tap && conn_addr_eq(&q->src, &r->dst);
    /* one of the two is another, the address or the queue pair */
    bool may_be_its_own = q->have_sqpn ? same_qp != same_host : same_host || !q->paired;

    return from_here && may_be_its_own && has_answered(r, q);
}

/* True if a connection is known of which both directions were captured at `tap`. */
static bool sees_both_directions(const struct judge *j, uint32_t tap)
{
    for (uint32_t i = 0; i < conn_counts(j->conns).flows; i++)
        if (j->flow[i].tap == tap && j->flow[i].peer != FLOW_NONE && j->flows[i].has_rsp)
            return true;
    return false;
}

/* True if the responses in `flow` certainly answer the requests of `of`. Their PSNs alone do not prove it: another
 * queue pair of the same host may have sent requests with these PSNs before the capture. Retransmissions in `of` do:
 * that requester received none of these responses. */
static bool is_sure(struct judge *j, uint32_t flow, uint32_t of, bool address)
{
    const struct flow *q = &j->flow[of];
    bool again = j->flows[of].dir->again && j->flows[flow].unmatched > 1;

    if (!address || q->have_sqpn || again || sees_both_directions(j, q->tap))
        return address;
    judge_share_not(j, "responses to requests that were not captured may be those to another address");
    return false;
}

/* Responses in `flow` whose requests go to another host, or come from another queue pair, which `of` is. */
static void report_wrong_flow(struct judge *j, uint32_t flow, uint32_t of)
{
    const struct flow *c = &j->flow[flow], *q = &j->flow[of];
    bool address = !conn_addr_eq(&q->dst, &c->src);
    struct found g = found_of(address ? RULE_FMT_25 : RULE_CM_07, of);
    struct buf expected = {0}, seen = {0};

    g.frame = j->flows[flow].first_frame;
    g.cause = j->flows[of].first_frame;
    g.needs = address && q->have_sqpn ? 0 : N_COMPLETE;
    g.lacks = is_sure(j, flow, of, address) ? 0 : N_COMPLETE;
    g.has = N_CM;
    if (address) {
        conn_addr_put(&expected, &q->dst);
        conn_addr_put(&seen, &c->src);
        g.expected = say(j, "%s", buf_str(&expected));
        g.seen = say(j, "%s", buf_str(&seen));
        g.text = "The requests with these PSNs go to another address: the peer answers by another GID index, and the "
                 "requester drops the answers.";
    } else {
        g.expected = say(j, "QP 0x%06x for PSN %u", q->sqpn, j->flows[flow].unmatched_first);
        g.seen = say(j, "QP 0x%06x", c->dqpn);
        g.text = "These answer requests of a connection whose other end is another queue pair.";
    }
    buf_free(&expected);
    buf_free(&seen);
    judge_found(j, NULL, g);
}

/* Responses in `flow`, whose requests are not known: those that have their PSNs. Nothing is said if too many flows of
 * that host have to be compared. */
static void check_orphan(struct judge *j, uint32_t flow, const struct flow_fact *r, struct askers *a)
{
    const struct flow *c = &j->flow[flow];
    uint32_t found = FLOW_NONE;

    for (uint32_t at = askers_from(a, c->tap, &c->dst, NULL); at < a->n; at++) {
        uint32_t i = a->of[at].flow;
        const struct flow *q = &j->flow[i];
        struct flow_fact of;
        if (q->tap != c->tap || !conn_addr_eq(&q->src, &c->dst))
            break;
        if (!a->tries)
            return;
        a->tries--;
        judge_psn_fact(j, i, &of);
        if (!judge_may_answer(r, &of))
            continue;
        if (found != FLOW_NONE || (conn_addr_eq(&q->dst, &c->src) && !q->have_sqpn))
            return; /* which one is not certain */
        found = i;
    }
    if (found != FLOW_NONE)
        report_wrong_flow(j, flow, found);
}

void judge_wrong_flows(struct judge *j)
{
    uint32_t n = conn_counts(j->conns).flows;
    struct askers a = {0};

    for (uint32_t i = 0; i < n && !conn_counts(j->conns).evicted; i++) {
        const struct jflow *f = &j->flows[i];
        const struct flow *c = &j->flow[i];
        struct flow_fact r;
        judge_share_flow(j, PHASE_WRONG_FLOWS, i);
        if (c->peer != FLOW_NONE || c->dqpn <= 1 || !f->packets) /* QP 0 and 1: SVC-02 */
            continue;
        if (f->dir && f->dir->have_next && f->dir->service == SVC_RC && j->have_cm && !c->have_sqpn)
            check_first_qpn(j, i, f);
        judge_psn_fact(j, i, &r);
        if (r.orphan && !a.of)
            a = askers_of(j);
        if (r.orphan)
            check_orphan(j, i, &r, &a);
    }
    free(a.of);
}

/* --- The P_Key and the service that the REQ names --------------------------------------------- */

void judge_flow_pkey(struct judge *j, uint32_t flow)
{
    const struct flow *c = &j->flow[flow];
    struct jflow *f = &j->flows[flow];
    struct found g = found_of(RULE_FMT_15, flow);
    const struct jflow *peer = c->peer == FLOW_NONE ? NULL : &j->flows[c->peer];
    bool known = f->pkey.have && c->paired_by == PAIR_CM && c->params.pkey;
    bool ends_differ = peer && peer->pkey.have && (peer->pkey.value ^ f->pkey.value) & 0x7fff;

    if (LIKELY(!known || !((c->params.pkey ^ f->pkey.value) & 0x7fff)) || ends_differ)
        return; /* that both ends differ is reported by compare_ends(), values.c */
    g.frame = f->first_frame;
    g.cause = c->params.req_frame;
    g.expected = say(j, "P_Key 0x%04x as in the REQ", c->params.pkey);
    g.seen = say(j, "0x%04x", f->pkey.value);
    g.text = "The REQ names the partition of the connection: an end that is in no other drops what comes from one.";
    judge_found(j, NULL, g);
}

/* Service of the packets of a connection whose REQ names `transport`; SVC_MANUF1: not known. */
static enum service service_of(const struct conn_params *c)
{
    static const uint8_t of[] = {[CM_TRANSPORT_RC] = SVC_RC,
                                 [CM_TRANSPORT_UC] = SVC_UC,
                                 [CM_TRANSPORT_RD] = SVC_RD,
                                 [CM_TRANSPORT_EXT] = SVC_XRC};

    return c->transport == CM_TRANSPORT_EXT && c->ext_transport != 1 ? SVC_MANUF1 : (enum service)of[c->transport & 3];
}

#define USED_WITHIN NS_PER_S

/* True if the first packet of a flow came so long after its REQ and REP that the connection may have ended before. */
static bool is_long_after(const struct jflow *f, const struct conn_params *c)
{
    ns_t set_up = c->rep_ts > c->req_ts ? c->rep_ts : c->req_ts;

    return !set_up || f->first_ts - set_up > USED_WITHIN;
}

/* True if the sender of `flow` is the passive end of its connection: the one that its REQ began. */
static bool is_from_passive(const struct judge *j, uint32_t flow)
{
    const struct flow *c = &j->flow[flow];

    for (unsigned i = 0; i < j->n_cm_used; i++) {
        const struct cm_ends *e = &j->cm_ends[j->cm_used[i]];
        if (e->frame == c->params.req_frame && e->qpn[1] == c->dqpn && cm_ends_are(e, 0, c->tap, &c->src, &c->dst))
            return true;
    }
    return false;
}

/* The passive end of an XRC connection is its target, whose queue pair has no send queue. */
static void check_target(struct judge *j, uint32_t flow)
{
    const struct flow *c = &j->flow[flow];
    const struct jflow *f = &j->flows[flow];
    struct found g = found_of(RULE_CM_18, flow);

    if (f->service.value != SVC_XRC || !f->dir || !f->dir->have_next || !is_from_passive(j, flow))
        return;
    g.frame = f->dir->first_frame;
    g.cause = c->params.req_frame;
    g.needs = is_long_after(f, &c->params) ? N_COMPLETE : 0; /* else the REQ of another one may be missing */
    g.expected = "an XRC target, which receives only";
    g.seen = "a request";
    g.text = "The REQ connects the queue pair of an initiator to that of a target; the passive side is the target.";
    judge_found(j, NULL, g);
}

void judge_flow_transport(struct judge *j, uint32_t flow)
{
    const struct flow *c = &j->flow[flow];
    const struct jflow *f = &j->flows[flow];
    enum service named = service_of(&c->params);
    struct found g = found_of(RULE_CM_18, flow);

    if (!f->service.have || c->paired_by != PAIR_CM || !c->params.have_transport || named == SVC_MANUF1)
        return;
    if (f->service.value == named)
        check_target(j, flow);
    if (f->service.value == named || f->service.value == SVC_UD)
        return;
    g.frame = f->first_frame;
    g.cause = c->params.req_frame;
    g.needs = is_long_after(f, &c->params) ? N_COMPLETE : 0; /* else the REQ of another one may be missing */
    g.expected = say(j, "service %s as in the REQ", service_str(named));
    g.seen = service_str((enum service)f->service.value);
    g.text = "The REQ names the transport of the queue pairs that it is to connect.";
    judge_found(j, NULL, g);
}
