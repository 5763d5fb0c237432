/* layer 3 (judge): the table of CM exchanges, and the rules that compare several of them: messages that match no
 * exchange, connections closed or refused, queue pairs reused within timewait. */
#include "src/judge/cm/cm.h"
#include "zeros.h"

#define REJECTED_REP 1 /* what an MRA or a REJ is about: 0 a REQ, 1 a REP */
#define REQ_AGAIN                                                                                                      \
    (4096 * (INT64_C(1) << 20))          /* ns: after so long Linux sends a REQ or REP that is not answered again */
#define FORGET_AFTER (10000 * NS_PER_MS) /* so long after its end an exchange may have lent its ids to another one */

static const char *addr_str(struct judge *j, const struct conn_addr *a)
{
    struct buf b = {0};
    const char *s;

    conn_addr_put(&b, a);
    s = say(j, "%s", buf_str(&b));
    buf_free(&b);
    return s;
}

/* --- The table of exchanges ------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, const struct conn_addr *a)
{
    uint64_t v[CONN_ADDR_WORDS];

    conn_addr_words(a, v);
    for (unsigned i = 0; i < CONN_ADDR_WORDS; i++)
        h = (h ^ v[i]) * HASH_MULTIPLIER, h ^= h >> 31;
    return h;
}

uint64_t cm_key(const struct pkt *p, const struct conn_addr *active, const struct conn_addr *passive, uint32_t id)
{
    uint64_t h = mix(mix(conn_tap_of(p->frame), active), passive);

    return (h ^ id) * HASH_MULTIPLIER | 1;
}

/* The places where an exchange can be. */
static struct cm_exchange *group_of(const struct judge *j, uint64_t key)
{
    return &j->cm[(key >> 32) % (CM_EXCHANGES / CM_WAYS) * CM_WAYS];
}

struct cm_exchange *cm_exchange_find(struct judge *j, uint64_t key)
{
    struct cm_exchange *s = j->cm ? group_of(j, key) : NULL;

    for (unsigned i = 0; s && i < CM_WAYS; i++)
        if (s[i].key == key)
            return &s[i];
    return NULL;
}

struct cm_exchange *cm_exchange_place(struct judge *j, uint64_t key)
{
    struct cm_exchange *s, *to;

    if (!j->cm && !(j->cm = zeros_new(CM_EXCHANGES, sizeof *j->cm)))
        return NULL;
    s = to = group_of(j, key);
    for (unsigned i = 0; i < CM_WAYS && to->key; i++)
        if (!s[i].key || (s[i].ended == to->ended ? s[i].begun < to->begun : s[i].ended))
            to = &s[i];
    return to;
}

struct cm_ends *cm_ends_of(struct judge *j, const struct cm_exchange *s)
{
    return &j->cm_ends[s - j->cm];
}

static bool is_named(const struct conn_addr *a, const uint8_t gid[16])
{
    static const uint8_t none[16];

    return memcmp(a->b, gid, 16) == 0 && memcmp(gid, none, 16) != 0;
}

/* True if REQ `m` names these addresses as the GIDs of one of its paths, or may: of one that was cut, the alternate
 * path is not known. */
static bool names_gids(const struct cm_msg *m, const struct conn_addr *active, const struct conn_addr *passive)
{
    const struct cm_req *r = &m->req;

    return (is_named(active, r->prim_lgid) && is_named(passive, r->prim_rgid)) || !CM_HAS(m, req, alt_rgid) ||
           (is_named(active, r->alt_lgid) && is_named(passive, r->alt_rgid));
}

/* True if the message has both communication ids of an exchange, as sent by its active (else its passive) end: not if
 * it goes from the address of the other end to that of this one. */
static bool names_ids(const struct cm_ends *e, const struct cm_packet *c, bool active)
{
    const struct cm_rtu *ids = &c->m->rtu;
    bool back = conn_addr_eq(&e->addr[active], &c->dst) && conn_addr_eq(&e->addr[!active], &c->src);

    return !back && e->used && !e->sidr && e->tap == conn_tap_of(c->p->frame) && e->addr[0].network == c->src.network &&
           ids->local_id && ids->remote_id && e->id[active] == ids->local_id && e->id[!active] == ids->remote_id;
}

bool cm_exchange_named(struct judge *j, struct cm_packet *c)
{
    const struct cm_ends *e;

    c->s = NULL;
    for (unsigned i = 0; i < 2 * j->n_cm_used; i++) {
        struct cm_exchange *s = &j->cm[j->cm_used[i / 2]];
        bool active = i % 2;
        if ((c->s && c->s->begun > s->begun) || !names_ids(cm_ends_of(j, s), c, active) ||
            !names_gids(&s->req.m, active ? &c->src : &c->dst, active ? &c->dst : &c->src))
            continue;
        c->s = s;
        c->from_active = active;
    }
    if (!c->s)
        return false;
    e = cm_ends_of(j, c->s);
    c->src = e->addr[c->from_active];
    c->dst = e->addr[!c->from_active];
    return true;
}

/* --- What the exchanges prove ----------------------------------------------------------------- */

/* CM-13: side `active` of message `c` reuses a queue pair that is still in time-wait, with a PSN that packets of the
 * old connection may still carry.
 *
 *   active   ... DREQ                REQ QPN 17 PSN 100       earlier than the time-wait:
 *   passive            DREP                                   an old packet with PSN 100 may still arrive
 */
static void check_timewait(struct judge *j, const struct cm_packet *c, bool active, uint32_t qpn, uint32_t psn)
{
    uint32_t flow = conn_flow_named(j->conns, conn_tap_of(c->p->frame), &c->dst, &c->src, qpn);
    const struct req_dir *h = flow == FLOW_NONE ? NULL : j->flows[flow].dir;

    for (unsigned i = 0; i < j->n_cm_used; i++) {
        const struct cm_ends *e = &j->cm_ends[j->cm_used[i]];
        unsigned side = e->closed[0].frame ? 0 : 1;
        ns_t since = c->p->frame->ts - e->closed[side].ts;
        bool in_timewait = e->closed[side].frame && !e->refused && since < cm_time(e->ack_timeout);
        if (!in_timewait || e->qpn[active] != qpn ||
            !cm_ends_are(e, active, conn_tap_of(c->p->frame), &c->src, &c->dst))
            continue;
        if (active && e->id[1] == c->m->req.local_id && e->tid == c->m->mad.tid)
            continue; /* a copy of the REQ before, which the network delayed, begins no connection by itself */
        if (psn != e->psn[!active] && !(h && h->have_next && psn_in(psn, h->start, (h->next - h->start) & PSN_MASK)))
            continue;
        struct found f = found_of(RULE_CM_13, FLOW_NONE);
        f.has = N_CM;
        f.by_clock = true;
        f.needs = N_CLOCK;
        f.lacks = judge_step(j, c->p) == STEP_MAX ? N_CLOCK : 0; /* all time stamps may be the same */
        f.cause = e->closed[side].frame;
        f.wrong = "a queue pair is used again too early: {seen}, expected {expected}";
        f.expected = say(j, "another PSN, or %.3f ms of time-wait", (double)cm_time(e->ack_timeout) / 1e6);
        f.seen = say(j, "QP 0x%06x from PSN %u after %.3f ms", qpn, psn, (double)since / 1e6);
        f.text = "A packet of the connection before that is still on its way is taken for one of this connection.";
        judge_found(j, c->p, f);
        return;
    }
}

void cm_ends_req(struct judge *j, const struct cm_packet *c)
{
    const struct cm_req *m = &c->m->req;
    struct cm_ends *e = cm_ends_of(j, c->s);

    if (CM_HAS(c->m, req, psn))
        check_timewait(j, c, true, m->qpn, m->psn);
    *e = (struct cm_ends){.used = true,
                          .tap = conn_tap_of(c->p->frame),
                          .addr = {c->dst, c->src},
                          .id = {0, m->local_id},
                          .qpn = {CONN_NO_QPN, CM_HAS(c->m, req, qpn) ? m->qpn : CONN_NO_QPN},
                          .psn = {CM_HAS(c->m, req, psn) ? m->psn : CM_NO_PSN, CM_NO_PSN},
                          .tid = c->m->mad.tid,
                          .frame = frame_u32(c->p),
                          .ack_timeout = m->prim_ack_timeout};
}

/* The queue pairs of the exchange are connected: what was closed was a connection before. */
static void reopen(struct judge *j, const struct cm_ends *e)
{
    for (unsigned i = 0; i < 2; i++) {
        uint32_t flow = conn_flow_named(j->conns, e->tap, &e->addr[i], &e->addr[!i], e->qpn[!i]);
        if (flow != FLOW_NONE)
            j->flows[flow].closed.frame = 0;
    }
}

void cm_ends_rep(struct judge *j, const struct cm_packet *c)
{
    const struct cm_rep *m = &c->m->rep;
    struct cm_ends *e = cm_ends_of(j, c->s);

    if (!e->rep_frame && CM_HAS(c->m, rep, psn))
        check_timewait(j, c, false, cm_rep_qpn(m), m->psn);
    e->id[0] = m->local_id;
    if (cm_has_rep_qpn(c->m))
        e->qpn[0] = cm_rep_qpn(m);
    if (CM_HAS(c->m, rep, psn))
        e->psn[1] = m->psn;
    if (!e->rep_frame)
        reopen(j, e);
    if (e->refused && e->closed[0].frame) { /* that it accepts what it has refused is told (sender.c) */
        e->refused = false;
        e->closed[0].frame = 0;
    }
    e->rep_frame = e->rep_frame ? e->rep_frame : frame_u32(c->p);
}

void cm_ends_close(struct judge *j, const struct cm_packet *c, uint32_t flow)
{
    struct cm_ends *e = cm_ends_of(j, c->s);
    struct cm_closed *k = &e->closed[c->from_active];
    bool refused = c->m->mad.attr_id == CM_REJ;

    if (k->frame || (refused && (!CM_HAS(c->m, rej, reason) || c->m->rej.reason == CM_REJ_STALE_CONN)))
        return; /* a stale queue pair is that of another connection */
    *k = (struct cm_closed){.frame = frame_u32(c->p), .ts = c->p->frame->ts, .agreed = c->m->mad.attr_id == CM_DREP};
    e->refused = refused;
    if (flow == FLOW_NONE || j->flows[flow].closed.frame)
        return;
    j->flows[flow].closed = *k;
    j->flows[flow].refused = refused;
}

void judge_cm_opened(struct judge *j, uint32_t flow)
{
    const struct flow *c = &j->flow[flow];
    const struct cm_ends *newest = NULL;
    unsigned side = 0;

    if (LIKELY(!j->have_cm))
        return;
    for (unsigned i = 0; i < 2 * j->n_cm_used; i++) {
        const struct cm_ends *e = &j->cm_ends[j->cm_used[i / 2]];
        bool its_own = cm_ends_are(e, i % 2, c->tap, &c->src, &c->dst) && e->qpn[!(i % 2)] == c->dqpn;
        if (its_own && (!newest || e->frame > newest->frame)) {
            newest = e;
            side = i % 2;
        }
    }
    if (!newest || j->flows[flow].closed.frame)
        return;
    j->flows[flow].closed = newest->closed[side];
    j->flows[flow].refused = newest->refused;
}

struct found cm_out_of_place(uint32_t cause)
{
    struct found f = found_of(RULE_CM_01, FLOW_NONE);

    f.cause = cause;
    return f;
}

struct found cm_after_close(uint32_t cause)
{
    struct found f = found_of(RULE_CM_13, FLOW_NONE);

    f.cause = cause;
    return f;
}

/* --- Messages that belong to no exchange ------------------------------------------------------ */

enum mismatch { FITS_NOT, OTHER_ADDRESS, OTHER_SIDE, OTHER_LOCAL_ID, OTHER_REMOTE_ID };

/* Communication ids of a message, or its request id as that of the receiver. */
static void ids_of(const struct cm_msg *m, uint32_t *sender, uint32_t *receiver)
{
    cm_msg_ids(m, sender, receiver);
    if (m->mad.attr_id == CM_SIDR_REP)
        *receiver = m->sidr_rep.request_id;
}

/* What keeps the message from being one of the exchange `e`, sent by its active (else its passive) side. */
static enum mismatch mismatch_of(const struct cm_ends *e, const struct cm_packet *c, bool active)
{
    bool to = conn_addr_eq(&e->addr[!active], &c->dst), from = conn_addr_eq(&e->addr[active], &c->src);
    bool sidr = c->m->mad.attr_id == CM_SIDR_REP,
         answer = sidr || c->m->mad.attr_id == CM_REP || c->m->mad.attr_id == CM_MRA;
    bool tid = c->m->mad.tid && c->m->mad.tid == e->tid;
    bool qpn =
        c->m->mad.attr_id == CM_DREQ && CM_HAS(c->m, dreq, remote_qpn) && c->m->dreq.remote_qpn == e->qpn[!active];
    uint32_t sender, receiver;
    bool mine, theirs;

    ids_of(c->m, &sender, &receiver);
    mine = sender && sender == e->id[active];
    theirs = receiver && receiver == e->id[!active];
    if (!to || e->sidr != sidr)
        return FITS_NOT;
    if (sidr && active)
        return from && receiver == e->id[1] ? OTHER_SIDE : FITS_NOT;
    if (!from)
        return theirs && (mine || tid || qpn) ? OTHER_ADDRESS : FITS_NOT;
    if (c->m->mad.attr_id == CM_REJ)
        return FITS_NOT;
    if (theirs && e->id[active] && !mine)
        return OTHER_LOCAL_ID;
    if (qpn && e->rep_frame && !theirs && !mine)
        return OTHER_REMOTE_ID;
    return !theirs && (mine || (answer && !active && tid && !e->rep_frame)) ? OTHER_REMOTE_ID : FITS_NOT;
}

/* Report what is wrong with a message of `e`. */
static void report_unmatched(struct judge *j, const struct cm_packet *c, const struct cm_ends *e, enum mismatch how,
                             bool active, bool sure)
{
    const char *what = cm_attr_str(c->m->mad.attr_id);
    struct found f = cm_out_of_place(e->frame);
    uint32_t sender, receiver;

    ids_of(c->m, &sender, &receiver);
    f.has = N_CM | N_RSP | N_START;
    f.needs = sure ? 0 : N_COMPLETE;
    if (how == OTHER_ADDRESS) {
        f.wrong = "the CM message comes from {seen}, expected {expected}";
        f.expected = addr_str(j, &e->addr[active]);
        f.seen = addr_str(j, &c->src);
        f.text = "It names a connection of two other hosts. Its receiver must not let another host answer, change or "
                 "end it.";
    } else if (how == OTHER_SIDE) {
        f.expected = "a message of this side";
        f.seen = what;
        f.text = "Of two ends only the other one sends this message.";
    } else {
        bool local = how == OTHER_LOCAL_ID;
        f.expected = say(j, "%s of the %s 0x%x",
                         local     ? "local comm id"
                         : e->sidr ? "request id"
                                   : "remote comm id",
                         what, local ? e->id[active] : e->id[!active]);
        f.seen = say(j, "0x%x", local ? sender : receiver);
        f.text =
            "Messages of an exchange carry the communication ids that its ends have given it; this one belongs to no "
            "connection.";
    }
    judge_found(j, c->p, f);
}

/* True if a REQ must have been sent shortly before the message: a REP, an RTU, or an MRA or REJ about a REQ or REP. */
static bool follows_req(const struct cm_msg *m)
{
    switch (m->mad.attr_id) {
    case CM_REP:
    case CM_RTU:
        return true;
    case CM_MRA:
        return CM_HAS(m, mra, about) && m->mra.about <= REJECTED_REP;
    case CM_REJ: /* for these two reasons the tap need not have seen the REQ or REP that the REJ is about */
        return CM_HAS(m, rej, reason) && m->rej.about <= REJECTED_REP && m->rej.reason != CM_REJ_TIMEOUT &&
               m->rej.reason != CM_REJ_INVALID_COMM_ID;
    default:
        return false;
    }
}

/* True if `now` duplicates the earlier message `s`, or answers it. */
static bool follows(const struct cm_unmatched *now, const struct cm_unmatched *s)
{
    bool same = conn_addr_eq(&s->src, &now->src) && conn_addr_eq(&s->dst, &now->dst),
         back = conn_addr_eq(&s->src, &now->dst) && conn_addr_eq(&s->dst, &now->src);

    if (s->tap != now->tap)
        return false;
    return (same && s->sender == now->sender && s->receiver == now->receiver) || (back && s->sender == now->receiver);
}

/* True if the message duplicates or answers an earlier message that matched no exchange. */
static bool follows_unmatched(const struct judge *j, const struct cm_unmatched *now)
{
    for (unsigned i = 0; i < CM_UNMATCHED && i < j->n_cm_unmatched; i++)
        if (follows(now, &j->cm_unmatched[i]))
            return true;
    return false;
}

/* Where a message is noted: in place of an earlier one with the same ids, or of the oldest. */
static struct cm_unmatched *unmatched_place(struct judge *j, const struct cm_unmatched *now)
{
    for (unsigned i = 0; i < CM_UNMATCHED && i < j->n_cm_unmatched; i++) {
        struct cm_unmatched *u = &j->cm_unmatched[i];
        if (u->tap == now->tap && u->sender == now->sender && u->receiver == now->receiver &&
            conn_addr_eq(&u->src, &now->src) && conn_addr_eq(&u->dst, &now->dst))
            return u;
    }
    return &j->cm_unmatched[j->n_cm_unmatched++ % CM_UNMATCHED];
}

bool cm_answered_before(const struct judge *j, const struct cm_packet *req)
{
    for (unsigned i = 0; i < CM_UNMATCHED && i < j->n_cm_unmatched; i++) {
        const struct cm_unmatched *u = &j->cm_unmatched[i];
        if (u->tap == conn_tap_of(req->p->frame) && u->receiver && u->receiver == req->m->req.local_id &&
            conn_addr_eq(&u->src, &req->dst) && conn_addr_eq(&u->dst, &req->src) &&
            req->p->frame->ts - u->ts <= SKEW_MOST)
            return true;
    }
    return false;
}

/* How long after the beginning of the capture a REP may be retransmitted for a REQ sent before it: until the REQ itself
 * would have been retransmitted, plus the time in flight. At a tap that may be between the ends twice as long: both
 * retransmissions may have been lost before it once more; at one that is, several times. */
static ns_t may_lack_req(const struct judge *j, const struct cm_packet *c)
{
    enum tap_side side = judge_side(j, conn_tap_of(c->p->frame));
    bool at_end = side == TAP_REQUESTER || side == TAP_RESPONDER;

    return REQ_AGAIN * (side == TAP_MIDDLE ? 4 : at_end ? 1 : 2) + REQ_AGAIN / 10;
}

/* True if the message was sent so late in the capture that this would have the REQ that it follows. */
static bool is_of_this_capture(const struct judge *j, const struct cm_packet *c)
{
    ns_t began = 0;

    return follows_req(c->m) && stamps_began(&j->stamps, conn_tap_of(c->p->frame), &began) &&
           c->p->frame->ts - began > may_lack_req(j, c);
}

/* A message with ids of no captured REQ. A REQ that was sent during the capture would have been captured, or been
 * retransmitted by now; other messages may belong to a connection that is older than the capture. */
static void report_unknown(struct judge *j, const struct cm_packet *c)
{
    struct cm_unmatched now = {.tap = conn_tap_of(c->p->frame), .ts = c->p->frame->ts, .src = c->src, .dst = c->dst};
    struct found f = found_of(RULE_CM_01, FLOW_NONE);
    bool known, late = is_of_this_capture(j, c), sidr = c->m->mad.attr_id == CM_SIDR_REP;

    ids_of(c->m, &now.sender, &now.receiver);
    known = follows_unmatched(j, &now);
    *unmatched_place(j, &now) = now;
    if (known || (!late && c->m->mad.attr_id == CM_REJ)) /* a REJ may name communication ids that were never assigned */
        return;
    f.severity = SEV_W; /* an MRA before the capture may have extended the timeout */
    f.has = N_CM | N_RSP | (late ? N_START : 0);
    f.needs = late ? N_COMPLETE : 0;
    f.lacks = j->cm_lost || j->malformed || j->n_cm_unmatched > CM_UNMATCHED ? N_COMPLETE : 0;
    judge_needs_peer(j, &f, now.tap, &c->dst, &c->src, c->m->mad.attr_id == CM_RTU);
    f.expected = sidr ? "a SIDR_REQ first" : "a REQ first";
    f.seen = cm_attr_str(c->m->mad.attr_id);
    f.text = late ? "No REQ and no REP gave the communication ids that it names: there is no such exchange."
                  : "No REQ and no REP gave the communication ids that it names: the connection is older than the "
                    "capture, or there is none.";
    judge_found(j, c->p, f);
}

void judge_cm_unmatched(struct judge *j, const struct cm_packet *c)
{
    struct cm_ends *of = NULL;
    enum mismatch how = FITS_NOT;
    bool active = false;
    unsigned n = 0;

    for (unsigned i = 0; i < 2 * (j->n_cm_used + CM_SIDRS); i++) {
        unsigned k = i / 2, at = k < j->n_cm_used ? j->cm_used[k] : CM_EXCHANGES + k - j->n_cm_used;
        struct cm_ends *e = &j->cm_ends[at];
        enum mismatch m = e->used && e->tap == conn_tap_of(c->p->frame) ? mismatch_of(e, c, i % 2) : FITS_NOT;
        const struct cm_closed *end = &e->closed[e->closed[0].frame ? 0 : 1];
        if (m == FITS_NOT || (e->lap && m == OTHER_ADDRESS) || (end->frame && c->p->frame->ts - end->ts > FORGET_AFTER))
            continue;
        if (n++ && m >= how)
            continue;
        of = e;
        how = m;
        active = i % 2;
    }
    if (!n) {
        report_unknown(j, c);
        return;
    }
    of->odd_dreq |= c->m->mad.attr_id == CM_DREQ;
    of->odd_rep |= c->m->mad.attr_id == CM_REP && how != OTHER_ADDRESS;
    report_unmatched(j, c, of, how, active, how <= OTHER_SIDE || (n == 1 && c->m->mad.tid && c->m->mad.tid == of->tid));
}

/* --- After the end of a connection ------------------------------------------------------------ */

/* True if the queue pair numbers may be those of another connection, which was agreed on elsewhere. */
static bool is_of_another(const struct pkt *p, const struct jflow *f)
{
    return p->frame->ts - f->closed.ts > QPN_REUSED_AFTER;
}

/* True if the packet comes so long after its sender closed the connection that it was not in flight then. */
static bool is_long_after(const struct judge *j, const struct pkt *p, const struct jflow *f)
{
    return p->frame->ts - f->closed.ts > CLOSED_FOR + judge_step(j, p);
}

static void report_after_close(struct judge *j, const struct pkt *p, uint32_t of, const struct jflow *f, unsigned needs)
{
    struct found g = found_of(RULE_CM_13, of);

    g.by_clock = true;
    g.needs = needs | (f->refused ? N_COMPLETE : 0); /* else a further REQ may have been accepted */
    g.has = N_CM;
    g.wrong = f->refused ? "{seen} follows a REJ, expected {expected}" : NULL;
    g.cause = f->closed.frame;
    g.expected = "silence";
    g.seen = p->op->name;
    g.text = f->refused ? "Its sender has refused the connection." : "Its sender has said that the connection is over.";
    judge_found(j, p, g);
}

/* Behind its DREQ an end may still be retransmitting, and answering, until it gets the DREP. */
void judge_cm_late_request(struct judge *j, const struct judged *a)
{
    bool late = is_long_after(j, a->p, a->f), fresh = a->as == SEEN_NEW || a->as == SEEN_GAP,
         again = a->as == SEEN_AGAIN && (late || a->f->closed.agreed);

    if ((fresh || again) && !is_of_another(a->p, a->f)) /* not late: it may have been reordered with the DREQ or DREP */
        report_after_close(j, a->p, a->flow, a->f, late ? N_COMPLETE : N_TAP_REQ);
}

void judge_cm_late_response(struct judge *j, const struct judged *a)
{
    const struct jflow *f = &j->flows[a->own];
    bool late = is_long_after(j, a->p, f),
         under_way = !f->closed.agreed || a->p->frame->ts - f->closed.ts <= COPY_WITHIN + judge_step(j, a->p);

    if ((late || !under_way) && !is_of_another(a->p, f) &&
        psn_in(a->p->bth.psn, a->h->start, (a->h->next - a->h->start) & PSN_MASK))
        report_after_close(j, a->p, a->flow, f, N_COMPLETE | (late ? 0 : N_TAP_RSP));
}
