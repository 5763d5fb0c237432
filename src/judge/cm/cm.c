/* layer 3 (judge): rules about connection management. The transport checks whether a message is well-formed and
 * permitted in the state of its exchange (src/transport/cm.h). This file keeps the exchanges, calls those checks and
 * reports failures with the frames that prove them. */
#include "src/judge/cm/cm.h"

#define PATHS_TRIED 16 /* first paths between other addresses that are tried for a message */

void cm_found(struct judge *j, const struct pkt *p, struct found f)
{
    f.severity = f.severity ? f.severity : rule_table[f.rule].severity;
    f.flow = FLOW_NONE;
    f.has |= N_CM | N_RSP | N_START;
    judge_found(j, p, f);
}

/* --- Exchanges -------------------------------------------------------------------------------- */

/* Set c->s, the exchange of a message between c->src and c->dst, and c->from_active. */
static bool exchange_at(struct judge *j, struct cm_packet *c)
{
    /* every message except REQ and SIDR messages begins with the two communication ids */
    const struct cm_rtu *ids = &c->m->rtu;
    struct cm_exchange *own = cm_exchange_find(j, cm_key(c->p, &c->src, &c->dst, ids->local_id)),
                       *peers = cm_exchange_find(j, cm_key(c->p, &c->dst, &c->src, ids->remote_id));
    /* peer to peer an end may give the id of its own REQ, which lost, to the exchange that its peer began */
    bool lost = own && peers && (c->m->mad.attr_id == CM_REP || (peers->rep.copies && !own->rep.copies));

    c->both = own && peers;
    c->from_active = own && !lost;
    c->s = c->from_active ? own : peers;
    return c->s != NULL;
}

/* The same; a message along an alternate path gets the addresses of the first one. */
static bool exchange_along(struct judge *j, struct cm_packet *c)
{
    const struct conn_addr src = c->src, dst = c->dst;
    uint32_t path = 0, tries = 0;

    while (!exchange_at(j, c)) {
        c->src = src;
        c->dst = dst;
        path = tries++ < PATHS_TRIED ? conn_path_between(j->conns, path, &c->src, &c->dst) : 0;
        if (!path)
            return cm_exchange_named(j, c);
    }
    return true;
}

/* Set c->s, the exchange of a message other than a REQ, and c->from_active. False if the REQ was not seen. */
static bool exchange_of(struct judge *j, struct cm_packet *c)
{
    return exchange_along(j, c) && !cm_rep_is_of_other(c->m, c->s->req.m.mad.tid, c->s->ended, c->s->passive_id);
}

unsigned cm_lacks(const struct judge *j, const struct cm_exchange *s)
{
    ns_t timeout = cm_time(s->req.m.req.remote_timeout), doubt = timeout > COPY_WITHIN ? timeout : COPY_WITHIN;
    ns_t began = 0;

    if (s->established)
        return 0;
    if (!CM_HAS(&s->req.m, req, remote_timeout))
        return N_COMPLETE;
    return !stamps_began(&j->stamps, s->tap, &began) || s->begun - began <= doubt ? N_COMPLETE : 0;
}

/* --- Requests before the connection is established --------------------------------------------- */

/* The REP may be stamped so much too late, ns: its RTU was stamped before it. */
static ns_t may_be_late(const struct judge *j, const struct cm_packet *c)
{
    bool answered = c->s->early.frame && c->s->early.m.mad.attr_id == CM_RTU;

    return answered ? CROSSES_WITHIN + judge_step(j, c->p) : 0;
}

/* The flow from `src` to queue pair `qpn` at `dst`, if it has requests; else FLOW_NONE. */
static uint32_t requests_to(const struct judge *j, uint32_t tap, const struct conn_addr *src,
                            const struct conn_addr *dst, uint32_t qpn)
{
    uint32_t flow = conn_flow_named(j->conns, tap, src, dst, qpn);
    const struct req_dir *h = flow == FLOW_NONE ? NULL : j->flows[flow].dir;

    return h && h->have_next ? flow : FLOW_NONE;
}

/* The same, if the requests begin with PSN `psn`. */
static uint32_t requests_from(const struct judge *j, uint32_t tap, const struct conn_addr *src,
                              const struct conn_addr *dst, uint32_t qpn, uint32_t psn)
{
    uint32_t flow = requests_to(j, tap, src, dst, qpn);

    return flow != FLOW_NONE && j->flows[flow].dir->start == psn ? flow : FLOW_NONE;
}

/* CM-12: requests to queue pair `qpn`, from PSN `psn` on, were sent before the REP, when neither end can know that its
 * peer is ready. */
static void check_data_before_rep(struct judge *j, const struct cm_packet *c, const struct conn_addr *src,
                                  const struct conn_addr *dst, uint32_t qpn, uint32_t psn)
{
    uint32_t flow = requests_from(j, conn_tap_of(c->p->frame), src, dst, qpn, psn);
    ns_t first = flow == FLOW_NONE ? 0 : j->flows[flow].first_ts;
    struct found f = found_of(RULE_CM_12, flow);

    if (flow == FLOW_NONE || j->flow[flow].paired_by >= PAIR_EXCHANGE || first < c->s->begun ||
        first >= c->p->frame->ts - may_be_late(j, c))
        return;
    f.by_clock = true;
    f.has = N_CM;
    f.lacks = cm_lacks(j, c->s);
    f.frame = j->flows[flow].first_frame;
    f.cause = frame_u32(c->p);
    f.expected = "no requests before the REP";
    f.seen = say(j, "a request to QP 0x%06x from PSN %u on", qpn, psn);
    f.text = "Before the REP the active side does not know the queue pair, and the passive side's peer is not ready to "
             "receive.";
    judge_found(j, NULL, f);
}

/* CM-12: the passive side has sent requests before `rtu`, the first RTU (NULL: none has come), and before any packet of
 * the active side. */
static void check_data_before_rtu(struct judge *j, const struct cm_exchange *s, const struct pkt *rtu)
{
    const struct cm_ends *e = cm_ends_of(j, s);
    uint32_t flow = requests_from(j, e->tap, &e->addr[0], &e->addr[1], e->qpn[1], e->psn[0]),
             back = conn_flow_named(j->conns, e->tap, &e->addr[1], &e->addr[0], e->qpn[0]);
    ns_t permits = back != FLOW_NONE && j->flows[back].packets ? j->flows[back].first_ts : NS_NEVER;
    struct found f = found_of(RULE_CM_12, flow);
    const struct req_dir *h;

    permits = rtu && rtu->frame->ts < permits ? rtu->frame->ts : permits;
    if (flow == FLOW_NONE || !e->rep_frame || j->flow[flow].params.req_frame != e->frame)
        return; /* or it is another connection's, with the same numbers */
    h = j->flows[flow].dir;
    if (h->first_frame < e->rep_frame || permits - h->first_ts <= CLOCK_SLACK + (rtu ? judge_step(j, rtu) : 0))
        return;
    f.by_clock = true;
    f.has = N_CM;
    f.needs =
        N_COMPLETE | N_TAP_REQ; /* else what permits it may have been lost before the tap, or come by another way */
    f.lacks = cm_lacks(j, s) | (stamps_go_on(&j->stamps, s->tap, h->first_ts, CLOCK_SLACK) ? 0 : N_COMPLETE);
    f.frame = h->first_frame;
    f.cause = e->rep_frame;
    f.expected = "an RTU or a packet of the active side first";
    f.seen = say(j, "a request from PSN %u on", h->start);
    f.text = "The passive side does not know yet that its peer has received the REP, and is ready to receive.";
    judge_found(j, NULL, f);
}

/* --- One function per message type ------------------------------------------------------------ */

/* True if the REQ is a copy that was due when it was sent, before the connection was established, and that the network
 * delayed, or doubled. */
static bool is_delayed_req(const struct cm_packet *c, ns_t since)
{
    const struct cm_copies *req = &c->s->req;
    ns_t gap = c->p->frame->ts - req->ts;

    return !c->s->ended && since <= COPY_WITHIN && CM_HAS(&req->m, req, remote_timeout) &&
           (gap >= cm_time(req->m.req.remote_timeout) || (gap <= COPY_WITHIN && req->copies > 1)) &&
           cm_msg_same(c->m, &req->m);
}

/* True if the REQ has neither the transaction id nor the contents of the first one: the active side has given the
 * communication id anew, and what became of the exchange before was not captured. */
static bool is_other_req(const struct cm_packet *c)
{
    const struct cm_msg *first = &c->s->req.m;

    return c->m->mad.tid != first->mad.tid && c->m->cut == first->cut && !cm_msg_same(c->m, first);
}

/* True if the REQ begins another connection, to which the active side gives the communication id of one that ended, or
 * that it gave up. A retransmitted REQ may cross a REJ; it is not sent any more once the connection is established or
 * being closed, but may be captured a little later: behind the RTU of its sender, or the DREP of its peer. */
static bool begins_anew(const struct judge *j, const struct cm_packet *c)
{
    const struct cm_exchange *s = c->s;
    ns_t step = judge_step(j, c->p), since = c->p->frame->ts - (s->ended ? s->ended_ts : s->established_ts),
         crosses = s->closed || !s->ended ? CROSSES_WITHIN : COPY_WITHIN;

    if (c->p->ttl != s->req.ttl && c->p->frame->ts - s->req.ts <= COPY_WITHIN && cm_msg_same(c->m, &s->req.m))
        return false; /* a copy from the other side of a router, captured after a short connection has ended */
    if (!s->ended && !s->established)
        return is_other_req(c);
    if (is_delayed_req(c, since))
        return false;
    if (s->closed && step > COPY_WITHIN)
        return true; /* the time stamps do not tell, and a REQ rarely crosses a DREP */
    return (s->ended && s->req.m.mad.tid != c->m->mad.tid) || since > crosses + step;
}

static void take_req(struct judge *j, struct cm_packet *c)
{
    uint64_t key = cm_key(c->p, &c->src, &c->dst, c->m->req.local_id);

    c->from_active = true;
    c->s = cm_exchange_find(j, key);
    if (c->s && !begins_anew(j, c)) {
        cm_check_copy(j, &c->s->req, c);
        c->s->req_retransmitted = true;
        return;
    }
    if (!c->s)
        c->s = cm_exchange_place(j, key);
    j->cm_lost |= !c->s || (c->s->key && c->s->key != key);
    if (!c->s)
        return;
    if (!c->s->key)
        j->cm_used[j->n_cm_used++] = (uint16_t)(c->s - j->cm);
    *c->s = (struct cm_exchange){
        .key = key, .file = c->p->frame->file, .tap = conn_tap_of(c->p->frame), .begun = c->p->frame->ts};
    cm_watch_start(&c->s->watch);
    cm_first_copy(&c->s->req, c);
    if (cm_answered_before(j, c))
        judge_skewed(j, c->s->tap);
    if (CM_HAS(c->m, req, qpn))
        judge_chosen(j, conn_tap_of(c->p->frame), &c->src, CHOSE_QPN, c->m->req.qpn);
    if (CM_HAS(c->m, req, psn))
        judge_chosen(j, conn_tap_of(c->p->frame), &c->src, CHOSE_PSN, c->m->req.psn);
    cm_ends_req(j, c);
}

static void take_rep(struct judge *j, struct cm_packet *c)
{
    const struct cm_msg *req = &c->s->req.m;
    struct verdict v;

    if (c->from_active)
        return;
    cm_check_copy(j, &c->s->rep, c);
    if (c->s->rep.copies == 1 && CM_HAS(c->m, rep, psn)) {
        judge_chosen(j, conn_tap_of(c->p->frame), &c->src, CHOSE_QPN, cm_rep_qpn(&c->m->rep));
        judge_chosen(j, conn_tap_of(c->p->frame), &c->src, CHOSE_PSN, c->m->rep.psn);
    }
    if (c->s->rep.copies == 1)
        cm_take_failover(j, c);
    cm_ends_rep(j, c);
    /* after REPs with different ids (CM-03) either may be in use */
    c->s->passive_id = c->s->rep.copies > 1 && c->s->passive_id != c->m->rep.local_id ? 0 : c->m->rep.local_id;
    v = cm_rep_check(c->m, req->mad.tid, CM_HAS(req, req, resp_res) ? req->req.resp_res : UINT8_MAX);
    if (!verdict_ok(v))
        cm_found(j, c->p, cm_found_of(j, c->m, v, c->s->req.frame));
}

uint32_t cm_qpn_of(const struct cm_packet *c, bool of_active)
{
    const struct cm_msg *req = &c->s->req.m, *rep = &c->s->rep.m;

    if (!of_active)
        return CM_HAS(req, req, qpn) ? req->req.qpn : CONN_NO_QPN;
    return c->s->rep.copies && cm_has_rep_qpn(rep) ? cm_rep_qpn(&rep->rep) : CONN_NO_QPN;
}

/* The flow of the connection whose packets the sender of message `c` sends; FLOW_NONE: not known. */
static uint32_t flow_from(struct judge *j, const struct cm_packet *c)
{
    uint32_t qpn = cm_qpn_of(c, c->from_active);

    /* without a REP the queue pair may still be that of another connection */
    return c->s->rep.copies ? conn_flow_named(j->conns, conn_tap_of(c->p->frame), &c->src, &c->dst, qpn) : FLOW_NONE;
}

static void take_end(struct cm_packet *c)
{
    c->s->ended = true;
    c->s->ended_ts = c->p->frame->ts;
}

static void take_rtu(struct judge *j, struct cm_packet *c)
{
    if (!c->from_active || !c->s->rep.copies)
        return;
    if (!c->s->ended && c->m->rtu.remote_id == c->s->passive_id)
        cm_check_tid(j, c, c->s->req.m.mad.tid, c->s->req.frame);
    if (!c->s->established && !c->s->ended && !c->s->rtu_names)
        check_data_before_rtu(j, c->s, c->p);
    c->s->established = true;
    c->s->established_ts = c->p->frame->ts;
}

/* A DREQ or DREP: its sender sends no further requests. */
static void take_close(struct judge *j, struct cm_packet *c)
{
    const struct cm_copies *dreq = &c->s->dreq[!c->from_active];

    take_end(c);
    c->s->closed = true;
    if (c->m->mad.attr_id == CM_DREP && dreq->copies && c->m->mad.tid != dreq->tid)
        cm_check_tid(j, c, dreq->m.mad.tid, dreq->frame);
    if (c->m->mad.attr_id == CM_DREP)
        c->s->drep[c->from_active] = frame_u32(c->p);
    cm_ends_close(j, c, flow_from(j, c));
}

static void take_rej(struct judge *j, struct cm_packet *c)
{
    take_end(c);
    cm_ends_close(j, c, flow_from(j, c));
}

/* True if the sender of the DREQ has sent all requests to the queue pair that it names, and none to that of the REQ or
 * REP, which is told at the end (params.c). */
static bool uses_named(const struct judge *j, const struct cm_packet *c)
{
    uint32_t tap = conn_tap_of(c->p->frame);

    return j->o.complete && c->m->mad.attr_id == CM_DREQ &&
           requests_to(j, tap, &c->src, &c->dst, c->m->dreq.remote_qpn) != FLOW_NONE &&
           requests_to(j, tap, &c->src, &c->dst, cm_qpn_of(c, c->from_active)) == FLOW_NONE;
}

/* Whether a DREQ or LAP names the queue pair of its receiver, which ignores another one. */
static bool names_receiver(struct judge *j, const struct cm_packet *c)
{
    uint32_t qpn = cm_qpn_of(c, c->from_active);
    struct verdict v = qpn == CONN_NO_QPN ? verdict_pass() : cm_qpn_check(c->m, qpn);

    if (!verdict_ok(v) && !uses_named(j, c))
        cm_found(j, c->p, cm_found_of(j, c->m, v, c->from_active ? c->s->rep.frame : c->s->req.frame));
    return verdict_ok(v);
}

static void take_dreq(struct judge *j, struct cm_packet *c)
{
    if (names_receiver(j, c)) /* else no DREP is due */
        cm_check_copy(j, &c->s->dreq[c->from_active], c);
    take_close(j, c);
}

/* An MRA: its sender announces how long its response will take at most. */
static void take_mra(struct judge *j, struct cm_packet *c)
{
    (void)j;
    if (!c->from_active && !c->s->rep.copies && !c->s->mra_id) {
        c->s->mra_id = c->m->mra.local_id;
        c->s->mra_frame = frame_u32(c->p);
    }
    if (c->s->mra.frame || !CM_HAS(c->m, mra, service_timeout))
        return;
    c->s->mra.frame = frame_u32(c->p);
    c->s->mra.ts = c->p->frame->ts;
    c->s->mra.time = cm_time(c->m->mra.service_timeout);
    c->s->mra.from_active = c->from_active;
}

static void note_mra(struct judge *j, struct cm_exchange *s, const struct pkt *p)
{
    const char *announced = say(j, "%.3f ms announced", (double)s->mra.time / 1e6);
    const char *seen = announced;

    if (p)
        seen = say(j, "%s, answer after %.3f ms", announced, (double)(p->frame->ts - s->mra.ts) / 1e6);
    j->file = s->file;
    judge_note(j, RULE_CM_04, FLOW_NONE, s->mra.frame, seen,
               "The sender of the MRA asks for more time: its peer waits that long before it sends its message again.");
    s->mra.frame = 0;
}

/* --- Any message ------------------------------------------------------------------------------ */

static void check_message(struct judge *j, const struct pkt *p, const struct cm_msg *m, unsigned checks)
{
    struct cm_wire w;

    cm_wire_of(&w, p);
    for (unsigned i = 0; i < checks; i++) {
        struct verdict v = cm_msg_check_one(i, m, &w);
        if (!verdict_ok(v))
            cm_found(j, p, cm_found_of(j, m, v, 0));
    }
}

/* Where an exchange was captured, as found.at. */
static uint32_t place_of(const struct cm_exchange *s)
{
    return ((uint32_t)s->file << 16 | (s->tap & 0xffff)) + 1;
}

/* True if the message may answer one that names the exchange by wrong ids, which is told. */
static bool answers_odd(const struct cm_ends *e, const struct cm_msg *m)
{
    return (m->mad.attr_id == CM_DREP && e->odd_dreq) || (m->mad.attr_id == CM_RTU && e->odd_rep);
}

/* Decide about a message that was not permitted when it was seen (s->early). The message that permits it may be
 * captured after it, as the clocks of the two directions may differ a little. `now`: time stamp of the next message of
 * the exchange; NS_NEVER: there is none. */
static void settle_early(struct judge *j, struct cm_exchange *s, ns_t now)
{
    struct verdict v = s->early.frame ? cm_watch_check(&s->watch, &s->early.m, s->early.from_active) : verdict_pass();
    struct found f;

    if (!s->early.frame || (!verdict_ok(v) && now <= s->early.ts + CROSSES_WITHIN))
        return;
    if (!verdict_ok(v) && !answers_odd(cm_ends_of(j, s), &s->early.m)) {
        f = cm_found_of(j, &s->early.m, v, s->req.frame);
        f.needs = N_COMPLETE;
        f.lacks = cm_lacks(j, s);
        f.frame = s->early.frame;
        f.at = place_of(s);
        judge_needs_peer(j, &f, s->tap, &cm_ends_of(j, s)->addr[!s->early.from_active],
                         &cm_ends_of(j, s)->addr[s->early.from_active], s->early.from_active);
        j->file = s->file;
        cm_found(j, NULL, f);
    }
    s->early.frame = 0;
    cm_watch_take(&s->watch, &s->early.m, s->early.from_active);
}

/* True if the passive end, which sends to flow `flow`, has established the connection: it has sent requests, or
 * acknowledged some; a NAK it sends before anything has come in its turn, too. */
static bool has_begun(const struct judge *j, uint32_t flow)
{
    uint32_t peer = j->flow[flow].peer;
    const struct req_dir *asked = peer == FLOW_NONE ? NULL : j->flows[peer].dir;

    return j->flows[flow].dir || (asked && asked->have_una && psn_diff(asked->una, asked->start) > 0);
}

/* True if an end sends a REJ after it has established the connection: the active end has sent the RTU. */
static bool rejects_late(struct judge *j, const struct cm_packet *c)
{
    uint32_t flow = c->from_active ? FLOW_NONE : flow_from(j, c);

    return c->m->mad.attr_id == CM_REJ && c->s->established && !c->s->ended &&
           (c->from_active || (flow != FLOW_NONE && has_begun(j, flow)));
}

/* Check that the message is permitted in the state of its exchange, and its communication ids. False: it is not one of
 * the exchange. */
static bool check_order(struct judge *j, const struct cm_packet *c)
{
    struct verdict v = cm_watch_check(&c->s->watch, c->m, c->from_active);
    bool wrong_side = !verdict_ok(v) && strcmp(v.about, CM_WRONG_SIDE) == 0,
         out_of_order = !verdict_ok(v) && !wrong_side;
    uint32_t active = c->s->req.m.req.local_id, passive = c->s->passive_id;
    struct found f;

    if (out_of_order && !c->s->early.frame) {
        c->s->early.m = *c->m;
        c->s->early.frame = frame_u32(c->p);
        c->s->early.ts = c->p->frame->ts;
        c->s->early.from_active = c->from_active;
        return true;
    }
    if (verdict_ok(v) && rejects_late(j, c))
        v = cm_late_rej();
    if (verdict_ok(v) && passive && c->m->mad.attr_id != CM_REP && c->m->mad.attr_id != CM_REJ)
        v = cm_ids_check(c->m, c->from_active ? active : passive, c->from_active ? passive : active);
    if (verdict_ok(v))
        return true;
    cm_ends_of(j, c->s)->odd_dreq |= c->m->mad.attr_id == CM_DREQ && !wrong_side;
    f = cm_found_of(j, c->m, v, c->s->req.frame);
    f.needs = wrong_side ? 0 : N_COMPLETE;
    f.lacks = out_of_order ? cm_lacks(j, c->s) : 0;
    if (out_of_order)
        judge_needs_peer(j, &f, conn_tap_of(c->p->frame), &c->dst, &c->src, c->from_active);
    cm_found(j, c->p, f);
    return wrong_side || out_of_order || c->m->mad.attr_id == CM_REJ;
}

static void take(struct judge *j, struct cm_packet *c)
{
    switch (c->m->mad.attr_id) {
    case CM_REP:
        take_rep(j, c);
        break;
    case CM_REJ:
        take_rej(j, c);
        break;
    case CM_RTU:
        take_rtu(j, c);
        break;
    case CM_DREQ:
        take_dreq(j, c);
        break;
    case CM_DREP:
        take_close(j, c);
        break;
    case CM_MRA:
        take_mra(j, c);
        break;
    case CM_LAP:
        names_receiver(j, c);
        cm_take_lap(j, c);
        break;
    case CM_APR:
        cm_take_apr(j, c);
        break;
    default:
        break;
    }
}

/* The id in a REP is chosen by its sender: if an RTU that names it was captured before, the active end had received the
 * REP by then, and the clocks of the directions differ. */
static void learn_skew(struct judge *j, const struct cm_packet *c)
{
    if (c->m->mad.attr_id == CM_RTU && !c->s->rep.copies)
        c->s->rtu_names = c->m->rtu.remote_id;
    if (c->m->mad.attr_id == CM_REP && c->s->rtu_names && c->s->rtu_names == c->m->rep.local_id)
        judge_skewed(j, conn_tap_of(c->p->frame));
}

void judge_cm(struct judge *j, const struct pkt *p)
{
    struct cm_msg m;
    struct cm_packet c = {.p = p, .m = &m};

    if (!(p->have & H_MAD) || p->payload_cap < MAD_HDR_LEN)
        return;
    mad_get(&m.mad, p->data + p->payload_off);
    if (m.mad.mgmt_class != CM_CLASS)
        return;
    if (!cm_msg_of(&m, p)) {
        check_message(j, p, &m, 1);
        return;
    }
    check_message(j, p, &m, CM_MSG_CHECKS);
    conn_addr_of(p, &c.src, &c.dst);
    judge_hear(j, conn_tap_of(p->frame), &c.src, &c.dst);
    if (m.mad.attr_id == CM_REQ)
        take_req(j, &c);
    if (m.mad.attr_id == CM_SIDR_REQ)
        cm_take_sidr_req(j, &c);
    if (m.mad.attr_id == CM_SIDR_REP)
        cm_take_sidr_rep(j, &c);
    if (m.mad.attr_id == CM_REQ || m.mad.attr_id == CM_SIDR_REQ || m.mad.attr_id == CM_SIDR_REP)
        return;
    if (!exchange_of(j, &c)) {
        judge_cm_unmatched(j, &c);
        return;
    }
    learn_skew(j, &c);
    settle_early(j, c.s, p->frame->ts);
    if (!check_order(j, &c))
        return;
    if (c.s->mra.frame && c.s->mra.from_active == c.from_active && m.mad.attr_id != CM_MRA)
        note_mra(j, c.s, p);
    cm_check_sender(j, &c);
    take(j, &c);
    if (c.s->early.frame != frame_u32(p))
        cm_watch_take(&c.s->watch, &m, c.from_active);
    settle_early(j, c.s, p->frame->ts);
}

void judge_cm_early(struct judge *j, const struct pkt *p)
{
    struct cm_msg m;
    struct cm_packet c = {.p = p, .m = &m};

    if (LIKELY(!(p->have & H_MAD)) || !cm_msg_of(&m, p) || m.mad.attr_id != CM_REP || p->icrc == CRC_BAD)
        return;
    conn_addr_of(p, &c.src, &c.dst);
    if (!exchange_of(j, &c) || c.from_active || c.s->rep.copies)
        return;
    if (CM_HAS(&m, rep, psn))
        check_data_before_rep(j, &c, &c.dst, &c.src, cm_rep_qpn(&m.rep), m.rep.psn);
    if (CM_HAS(&c.s->req.m, req, psn))
        check_data_before_rep(j, &c, &c.src, &c.dst, c.s->req.m.req.qpn, c.s->req.m.req.psn);
}

/* --- The end ---------------------------------------------------------------------------------- */

/* A DREQ that was retransmitted and got no DREP. */
static void check_unanswered(struct judge *j, const struct cm_exchange *s, bool from_active)
{
    const struct cm_copies *o = &s->dreq[from_active];
    const struct cm_ends *e = cm_ends_of(j, s);
    const struct conn_addr *end[2] = {&e->addr[1], &e->addr[0]};
    enum tap_side side = judge_side_of(j, e->tap, end);
    struct found f = cm_after_close(s->req.frame);

    if (o->copies < 2 || s->drep[!from_active])
        return;
    f.frame = o->frame;
    f.at = place_of(s);
    f.wrong = "a DREQ was not answered: {seen}";
    f.expected = "a DREP";
    f.seen = say(j, "DREQ sent %s, and no DREP", count_str(o->copies, "time"));
    f.needs = N_COMPLETE | (from_active ? N_TAP_RSP : N_TAP_REQ);
    f.has = side == TAP_RESPONDER ? N_TAP_RSP : side == TAP_REQUESTER ? N_TAP_REQ : 0;
    f.text = "A DREQ is answered whenever it comes: without the DREP its sender waits until its retries are used up.";
    j->file = s->file;
    judge_needs_peer(j, &f, s->tap, end[from_active], end[!from_active], from_active);
    cm_found(j, NULL, f);
}

void judge_cm_end(struct judge *j)
{
    for (unsigned i = 0; i < j->n_cm_used; i++) {
        struct cm_exchange *s = &j->cm[j->cm_used[i]];
        const struct cm_ends *e = cm_ends_of(j, s);
        judge_share_pair(j, PHASE_CM, i, e);
        settle_early(j, s, NS_NEVER);
        check_unanswered(j, s, false);
        check_unanswered(j, s, true);
        if (s->rep.copies && !s->established && !s->ended)
            check_data_before_rtu(j, s, NULL);
        cm_check_asked(j, s, false);
        cm_check_asked(j, s, true);
        cm_check_confirmed(j, s);
        if (s->mra.frame)
            note_mra(j, s, NULL);
    }
}
