/* layer 3 (explain): explanations at the end of a capture: what never ended well, and the order of all. */
#include "src/conn/retries.h"
#include "src/explain/explain_impl.h"
#include "src/transport/verbs.h"

#include <stdio.h>
#include <stdlib.h>

#define SILENT_AFTER  (500 * NS_PER_MS) /* a request that asks for an answer has one long before */
#define USUAL_TIMEOUT 18                /* a long ACK timeout code, where none is stated */
#define RNR_OVERDUE   (100 * NS_PER_MS)
#define RNR_FOR_EVER  7 /* the RNR retry count that has no end */

/* --- What is left ----------------------------------------------------------------------------- */

/* A packet was sent as often as is allowed. */
static void say_tries(struct explainer *x, struct statement *st, const struct flow *c, const struct req_dir *h,
                      const struct sent *s)
{
    statement_say(
        x, st,
        "%s sent the packet with PSN %u %u times from frame %u to frame %u, about %.3f ms apart, and had no "
        "answer; nothing follows. "
        "%s: completion RETRY_EXC_ERR.",
        addr_text(x, &c->src), st->psn, s ? s->copies : h->retries + 1, s ? s->first : st->frames[0],
        s ? s->last : h->last_frame, s && s->copies > 1 ? (double)(s->ts - s->ts_first) / 1e6 / (s->copies - 1) : 0.0,
        st->cause == CAUSE_HALF_OPEN ? "The other end had closed the connection" : "The retries were used up");
}

/* Nothing that passed the tap asks for an answer. */
static void say_cut(struct explainer *x, struct statement *st, const struct flow *c, const struct sent *s,
                    uint32_t next)
{
    st->where = WHERE_BEFORE;
    statement_say(x, st,
                  "%s sent the packet with PSN %u %u times from frame %u to frame %u; nothing follows. Up to PSN %u, "
                  "the last that passed the tap, "
                  "nothing asks for an answer, so %s owed none: what does was lost before the tap. The retries were "
                  "used up: completion RETRY_EXC_ERR.",
                  addr_text(x, &c->src), st->psn, s->copies, s->first, s->last, psn_prev(next), addr_text(x, &c->dst));
}

/* The DREP by which the receiver of a flow answered its sender, if any: its host is alive. */
static void say_host(struct explainer *x, struct statement *st, const struct flow *c)
{
    char more[80];

    for (unsigned i = 0; i < CM_SENT; i++) {
        const struct cm_sent *m = &x->cm[i];
        if (!m->n || m->attr != CM_DREQ || m->answer.attr != CM_DREP || m->tap != c->tap || m->qpn != c->dqpn ||
            !conn_addr_eq(&m->src, &c->src))
            continue;
        snprintf(more, sizeof more, "Its host still answered the DREQ (frame %u).", m->answer.frame);
        statement_frame(st, m->answer.frame);
        statement_add(x, st, more);
        return;
    }
}

/* A silence without end. */
static void end_silence(struct explainer *x, uint32_t flow, struct told *t, struct req_dir *h)
{
    struct statement *st = statement_at(x, t->open), *more;
    const struct flow *c = conn_flow_at(observer_conns(x->observer), flow);
    const struct sent *s = st ? req_dir_sent(h, st->psn) : NULL, *burst = req_dir_sent(h, psn_prev(h->next));

    if (!st || h->why != BACK_SILENCE || !st->has_psn || (h->have_una && psn_diff(h->una, h->back_psn) > 0) ||
        st->cause == CAUSE_LOST_ACK)
        return;
    if (!retries_gave_up(x->observer, h, &c->params, st->silence, x->last))
        return; /* the capture may have ended before the next try */
    if (st->cause != CAUSE_HALF_OPEN)
        st->cause = CAUSE_RETRY_EXCEEDED;
    st->lost = h->last_ts - st->start;
    if (burst && burst->psn != st->psn)
        statement_unframe(st, burst->first);
    st->where = WHERE_UNKNOWN;
    if (st->is_request && !t->owed && s) {
        say_cut(x, st, c, s, h->next);
        return;
    }
    if (st->is_request)
        say_tries(x, st, c, h, s);
    else
        statement_say(x, st,
                      "%s %s asked for it %s from frame %u on and had no more of it; nothing follows. The retries were "
                      "used up: completion RETRY_EXC_ERR.",
                      explain_text_of(x, st), addr_text(x, &c->src), count_str(h->retries, "time"),
                      s ? s->first : st->frames[0]);
    if (st->cause == CAUSE_HALF_OPEN)
        return;
    more = statement_new(x, CAUSE_SILENT_PEER, flow, NULL);
    if (!more)
        return;
    if (t->last_rsp_frame) {
        statement_frame(more, t->last_rsp_frame);
        statement_say(x, more, "%s (QP 0x%x) answered for the last time in frame %u.", addr_text(x, &c->dst), c->dqpn,
                      t->last_rsp_frame);
    } else {
        statement_frame(more, h->first_frame);
        statement_say(x, more, "%s (QP 0x%x) never answered a request, of which frame %u is the first.",
                      addr_text(x, &c->dst), c->dqpn, h->first_frame);
    }
    say_host(x, more, c);
}

/* Whether so long after an RNR NAK the next try is overdue: four times what was asked for, or what the tries before
 * took. */
static bool is_overdue(const struct req_dir *h, ns_t waited)
{
    ns_t asked = rnr_time(aeth_value(h->rnr.syndrome)),
         took = h->rnr.times > 1 ? (h->rnr.ts - h->rnr.ts_first) / (h->rnr.times - 1) : 0;

    return waited > RNR_OVERDUE + 4 * (asked > took ? asked : took);
}

/* An RNR NAK without a further try: the retries were used up, unless more were allowed; then its sender stopped, or the
 * capture. */
static void end_rnr(struct explainer *x, uint32_t flow, struct told *t, struct req_dir *h)
{
    const struct conn_params *c = &conn_flow_at(observer_conns(x->observer), flow)->params;
    struct statement *st = statement_at(x, t->rnr);
    bool closed = st && t->closed_ts > h->rnr.ts,
         left = c->have_rnr && (c->rnr_retry == RNR_FOR_EVER || h->rnr.times <= c->rnr_retry);
    ns_t waited = (closed ? t->closed_ts : x->last) - h->rnr.ts;

    if (!st || !h->rnr.have || h->rnr.resent || h->last_ts > h->rnr.ts ||
        (h->have_una && psn_diff(h->una, h->rnr.psn) > 0))
        return;
    st->lost = h->rnr.ts - st->start;
    if (left || (!c->have_rnr && !is_overdue(h, waited))) {
        statement_say(x, st,
                      left ? "%s It was not sent again after frame %u, though its sender had retries left: it stopped, "
                             "or the capture ends before."
                           : "%s After frame %u the capture ends, too early to tell whether it is sent again.",
                      explain_text_of(x, st), h->rnr.frame);
        return;
    }
    st->cause = CAUSE_RNR_EXCEEDED;
    statement_say(x, st, "PSN %u was answered by %s, the last in frame %u; it was not sent again after that%s.",
                  h->rnr.psn, count_str(h->rnr.times, "RNR NAK"), h->rnr.frame,
                  c->have_rnr
                      ? ""
                      : ": the retries were used up, whose number the capture does not state, or its sender stopped");
}

static void end_keys(struct explainer *x, uint32_t flow, const struct told *t, const struct told *o)
{
    enum cause cause = (t->pkey ^ o->pkey) & 0x7fff ? CAUSE_PKEY_MISMATCH : CAUSE_MIGREQ_MISMATCH;
    struct statement *st;

    if (cause == CAUSE_MIGREQ_MISMATCH && t->migreq == o->migreq)
        return;
    st = statement_new(x, cause, flow, NULL);
    if (!st)
        return;
    statement_frame(st, t->frame);
    statement_frame(st, o->frame);
    if (cause == CAUSE_PKEY_MISMATCH)
        statement_say(x, st, "Frame %u carries P_Key 0x%04x, frame %u of the other direction 0x%04x.", t->frame,
                      t->pkey, o->frame, o->pkey);
    else
        statement_say(x, st, "Frame %u carries MigReq %u, frame %u of the other direction %u.", t->frame, t->migreq,
                      o->frame, o->migreq);
}

/* Whether `st` is about the loss of a packet of `flow`. */
static bool is_loss_of(const struct statement *st, uint32_t flow, uint32_t peer, const struct odd_key *k)
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

/* The loss of a packet with another P_Key is no loss: its receiver dropped it. */
static void moot_loss(struct explainer *x, uint32_t flow, const struct odd_key *k, uint32_t odd)
{
    uint32_t peer = conn_flow_at(observer_conns(x->observer), flow)->peer;

    for (uint32_t i = 0; i < x->n; i++) {
        struct statement *st = &x->st[i];
        if (i == odd || !is_loss_of(st, flow, peer, k))
            continue;
        x->st[odd].again += st->again;
        x->st[odd].lost += st->lost;
        st->moot = true;
    }
}

/* All but the first packet have the P_Key of the other direction, or else of the REQ: the first one is odd. */
static bool first_is_odd(const struct told *t, const struct told *o, const struct conn_params *c)
{
    uint16_t right = o && o->seen && !o->n_odd ? o->pkey : c->pkey;

    return right && (right ^ t->pkey) & 0x7fff && !((right ^ t->odd[0].pkey) & 0x7fff);
}

/* Packets of one queue pair with several P_Keys. */
static void end_odd_key(struct explainer *x, uint32_t flow, struct told *t, const struct told *o)
{
    struct odd_key first = {t->psn, t->frame, t->pkey}, right = first;
    struct statement *st = t->seen && t->n_odd ? statement_new(x, CAUSE_PKEY_MISMATCH, flow, NULL) : NULL;

    if (!st)
        return;
    if (first_is_odd(t, o, &conn_flow_at(observer_conns(x->observer), flow)->params)) {
        right = t->odd[0];
        t->pkey = right.pkey;
        t->frame = right.frame;
        t->odd[0] = first;
        t->n_odd = 1;
    }
    statement_frame(st, t->odd[0].frame);
    statement_frame(st, right.frame);
    for (uint32_t i = 0; i < t->n_odd; i++) {
        statement_frame(st, t->odd[i].frame);
        moot_loss(x, flow, &t->odd[i], statement_number(x, st));
    }
    statement_say(x, st,
                  "Frame %u carries P_Key 0x%04x, frame %u of the same queue pair 0x%04x: its receiver drops what is "
                  "not of its partition.",
                  t->odd[0].frame, t->odd[0].pkey, right.frame, right.pkey);
}

/* A P_Key other than that in the REQ, and no packet of the other direction. */
static bool end_req_key(struct explainer *x, uint32_t flow, const struct told *t)
{
    const struct conn_params *c = &conn_flow_at(observer_conns(x->observer), flow)->params;
    struct statement *st;

    if (!t->seen || !c->pkey || !((c->pkey ^ t->pkey) & 0x7fff))
        return false;
    st = statement_new(x, CAUSE_PKEY_MISMATCH, flow, NULL);
    if (!st)
        return true;
    statement_frame(st, t->frame);
    statement_frame(st, (uint32_t)c->req_frame);
    statement_say(x, st,
                  "Frame %u carries P_Key 0x%04x, the REQ of the connection (frame %u) has 0x%04x; nothing came back.",
                  t->frame, t->pkey, (uint32_t)c->req_frame, c->pkey);
    return true;
}

ns_t longest_timer(const struct conn_params *c)
{
    bool known = (c->have_timeout || c->have_asked) && c->timeout;

    return (ns_t)(4096 * 4) << (known ? c->timeout : USUAL_TIMEOUT);
}

/* For how long nothing followed the request that asked for an answer and has none; 0 if there is none, or if others may
 * tell why. One who goes on beyond the longest timer has answers that were not captured. */
static ns_t unanswered(struct explainer *x, const struct told *t, struct req_dir *h, struct req_dir *back, ns_t longest)
{
    ns_t end = t->closed_ts > t->wanted.ts ? t->closed_ts : x->last;

    if (!t->wanted.frame || t->open != NO_STATEMENT || (h->service != SVC_RC && h->service != SVC_XRC) || h->restarts)
        return 0;
    if ((h->have_una && psn_diff(h->una, t->wanted.psn) > 0) || t->last_rsp_ts >= t->wanted.ts)
        return 0;
    if ((back && back->have_next && back->last_ts >= t->wanted.ts) || (t->closed_ts && t->closed_ts <= t->wanted.ts))
        return 0;
    return h->last_ts - t->wanted.ts <= longest && end > h->last_ts ? end - h->last_ts : 0;
}

/* A request that asks for an answer, was sent once and had none. */
static void end_unanswered(struct explainer *x, uint32_t flow, const struct told *t, ns_t waited)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);
    const struct conn_params *c = &f->params;
    bool was_closed = t->closed_ts > t->wanted.ts, once = retries_timed_out(c, waited, was_closed);
    ns_t longest = longest_timer(c);
    struct statement *st;

    if (!once && waited < (was_closed || longest < SILENT_AFTER ? SILENT_AFTER : longest))
        return;
    for (int i = once ? 0 : 1; i < 2; i++) {
        st = statement_new(x, i ? CAUSE_SILENT_PEER : CAUSE_RETRY_EXCEEDED, flow, NULL);
        if (!st)
            return;
        statement_frame(st, t->wanted.frame);
        st->lost = waited;
        if (i)
            statement_say(x, st,
                          "Frame %u (PSN %u) asks for an answer; nothing came from %s (QP 0x%x) in %.3f ms, until %s.",
                          t->wanted.frame, t->wanted.psn, addr_text(x, &f->dst), f->dqpn, (double)waited / 1e6,
                          was_closed ? "the connection was closed" : "the capture ended");
        else
            statement_say(x, st,
                          "%s sent the packet with PSN %u once, in frame %u, and had no answer; the retry count in the "
                          "REQ is 0: completion RETRY_EXC_ERR.",
                          addr_text(x, &f->src), t->wanted.psn, t->wanted.frame);
    }
}

/* Why a request has no answer, and was not sent again. */
static void end_unheard(struct explainer *x, uint32_t flow, const struct told *t, struct req_dir *h)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);
    const struct told *o = f->peer == FLOW_NONE ? NULL : x->told[f->peer];
    ns_t waited;

    if (!t->last_rsp_frame && !(o && o->seen) && end_req_key(x, flow, t))
        return;
    waited = unanswered(x, t, h, o ? observer_req_dir(x->observer, f->peer) : NULL, longest_timer(&f->params));
    if (waited && observer_heard(x->observer, flow))
        end_unanswered(x, flow, t, waited);
}

/* `heard`: packets of the other direction were seen, in which CNPs would come. */
static void end_congestion(struct explainer *x, uint32_t flow, const struct told *t, bool heard)
{
    struct statement *st;

    if (t->ce_packets && !t->cnps && heard) {
        st = statement_new(x, CAUSE_CE_WITHOUT_CNP, flow, NULL);
        if (!st)
            return;
        for (unsigned i = 0; i < t->ce_packets && i < STATEMENT_FRAMES; i++)
            statement_frame(st, t->ce_frames[i]);
        st->times = t->ce_packets > STATEMENT_FRAMES ? (uint32_t)t->ce_packets - STATEMENT_FRAMES : 0;
        statement_say(x, st, "%s with the mark of a congested switch (CE), and %s sent no CNP.",
                      count_str(t->ce_packets, "packet"),
                      addr_text(x, &conn_flow_at(observer_conns(x->observer), flow)->dst));
    }
    if (t->cnps && t->before_cnp >= 16 && t->after_cnp >= t->before_cnp) {
        st = statement_new(x, CAUSE_CNP_WITHOUT_SLOWDOWN, flow, NULL);
        if (!st)
            return;
        statement_frame(st, t->cnp_frame);
        statement_say(x, st, "%s in the 200 us before the CNP in frame %u, %u in the 200 us after it.",
                      count_str(t->before_cnp, "request"), t->cnp_frame, t->after_cnp);
    }
}

/* Packets for which a NAK asked, and that arrived sooner than what was sent again can have: they came late, and what
 * had come before them was dropped. A NAK for one of those tells of no further loss. */
static void end_overtaken(struct explainer *x, uint32_t flow, const struct told *t)
{
    struct statement *late = NULL;

    for (uint32_t i = 0; i < x->n; i++) {
        struct statement *st = &x->st[i];
        if (st->flow != flow || st->moot || st->cause != CAUSE_PACKET_LOSS || st->where != WHERE_AFTER ||
            st->n_frames < 3)
            continue;
        if (late && psn_in(st->psn, late->psn, (late->end - late->psn) & PSN_MASK) && st->frames[1] >= late->arrived) {
            st->moot = true;
            late->again += st->again;
            late->lost = st->start + st->lost - late->start;
            statement_frame(late, st->frames[1]);
            statement_frame(late, st->frames[2]);
        } else if (st->once && st->arrived && st->arrival < t->round_trip / AT_ONCE &&
                   !explain_lost_between(x, flow, st->psn)) {
            late = st;
            st->cause = CAUSE_REORDER;
            statement_say(
                x, st,
                "PSN %u (frame %u) was most likely overtaken behind the tap: %s asked for it with a NAK (frame %u), "
                "and had it before its repetition in frame %u can have arrived, for frame %u shows that %.3f us later.",
                st->psn, st->frames[0], dst_text(x, flow), st->frames[1], st->frames[2], st->arrived,
                (double)st->arrival / 1e3);
        }
    }
}

/* A request that was sent again for want of an answer, which came later. */
static bool is_late_answered(const struct statement *st)
{
    return (st->cause == CAUSE_LOST_LAST_PACKET || (st->cause == CAUSE_PACKET_LOSS && st->unanswered)) && !st->moot &&
           st->arrived && st->silence > 0;
}

/* What is sent again for want of an answer, which comes sooner then than any to a packet sent once: it was on its way
 * already. */
static bool is_early(const struct statement *st, const struct told *t)
{
    return is_late_answered(st) && st->arrival < t->round_trip / AT_ONCE;
}

/* Whether each request that asks for an answer has one of its own: nothing was lost on either side of the tap. */
static bool is_each_answered(const struct told *t, const struct req_dir *h)
{
    return t->asks == t->answers && (h->from_start || h->began == BEGAN_SEEN) && !h->seq_naks && !h->rnr_naks &&
           !h->fatal_naks;
}

/* A silence that was shorter than what the answer took, as answers take at the end as well. */
static bool is_slower(const struct statement *st, const struct told *t)
{
    ns_t took = t->last_rsp_ts - t->asked_ts;

    return is_late_answered(st) && !is_early(st, t) && st->lost > st->silence && took > st->lost / 4 * 3 &&
           took < st->lost / 4 * 5;
}

/* The timer is shorter than the round trip: every copy is answered, and the first answer comes behind some repetitions.
 * Those that follow it at a tap between the ends are part of that. */
static void end_slower(struct explainer *x, uint32_t flow, struct told *t, const struct req_dir *h)
{
    struct statement *early = NULL;
    bool lost;

    for (uint32_t i = 0; i < x->n && is_each_answered(t, h); i++) {
        struct statement *st = &x->st[i];
        if (st->flow != flow)
            continue;
        lost = !st->moot && (st->cause == CAUSE_LOST_ACK || st->cause == CAUSE_LOST_READ_RESPONSE);
        if (early && lost && psn_in(st->psn, early->psn, (early->end - early->psn) & PSN_MASK)) {
            st->moot = true;
            early->again += st->again;
            if (t->unheard == i)
                t->unheard = statement_number(x, early);
        } else if (is_slower(st, t)) {
            early = st;
            st->cause = CAUSE_EARLY_TIMEOUT;
            statement_frame(st, st->arrived);
            statement_say(x, st,
                          "PSN %u (frame %u) was answered in frame %u, %s after it was sent first, as was every copy "
                          "of what asks for an "
                          "answer: the ACK timeout of %s, which ran out after %s, was too short for it.",
                          st->psn, st->frames[0], st->arrived, time_text(x, st->lost), src_text(x, flow),
                          time_text(x, st->silence));
        }
    }
}

/* What was sent again to the last try though the tap saw answers: whether the last one arrived is not known; or all of
 * them came when the connection was closed. */
static void end_spent(struct explainer *x, uint32_t flow, const struct told *t, struct req_dir *h)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);
    const struct tries *tries = observer_tries(x->observer, flow);
    struct statement *st = statement_at(x, t->unheard), *dead;
    const struct sent *s = req_dir_sent(h, tries->psn);
    char more[200];

    if (!s || !retries_spent(x->observer, h, &f->params))
        return;
    if (st && st->psn == s->psn) {
        snprintf(more, sizeof more,
                 "It was sent %u times, last in frame %u, and nothing follows: unless its last answer arrived, the "
                 "retries were used up "
                 "(RETRY_EXC_ERR).",
                 s->copies, s->last);
        statement_add(x, st, more);
    }
    for (uint32_t i = 0; i < x->n; i++) {
        st = &x->st[i];
        if (st->flow != flow || st->moot || !st->arrived || st->psn != s->psn || !t->left_frame ||
            st->arrived < t->left_frame || t->left_ts - h->back_ts < timer_earliest(st->silence) ||
            !(dead = statement_new(x, CAUSE_RETRY_EXCEEDED, flow, NULL)))
            continue;
        st = &x->st[i];
        statement_concerns(dead, s->psn, s->icrc_first, true);
        dead->silence = st->silence;
        dead->start = s->ts_first;
        dead->lost = t->left_ts - s->ts_first;
        statement_frame(dead, s->first);
        statement_frame(dead, s->last);
        statement_frame(dead, t->left_frame);
        statement_frame(dead, st->arrived);
        statement_say(x, dead,
                      "%s sent the packet with PSN %u %u times from frame %u to frame %u and closed the connection in "
                      "frame %u, before the "
                      "first answer came (frame %u). The retries were used up: completion RETRY_EXC_ERR.",
                      src_text(x, flow), s->psn, s->copies, s->first, s->last, t->left_frame, st->arrived);
        return;
    }
}

/* Nothing was lost, but the timer ran out: told of once, however often it happened. */
static void end_early(struct explainer *x, uint32_t flow, const struct told *t)
{
    struct statement *first = NULL;
    uint32_t times = 1;
    char text[60];
    bool early;

    for (uint32_t i = 0; i < x->n; i++) {
        struct statement *st = &x->st[i];
        early = is_early(st, t);
        if (st->flow != flow || !(early || st->cause == CAUSE_EARLY_TIMEOUT))
            continue;
        if (first) {
            first->again += st->again;
            first->lost += st->lost;
            statement_frame(first, st->frames[0]);
            st->moot = true;
            times++;
            continue;
        }
        first = st;
        if (!early)
            continue;
        st->cause = CAUSE_EARLY_TIMEOUT;
        st->where = WHERE_UNKNOWN;
        st->n_frames = 1;
        statement_frame(st, st->back);
        statement_frame(st, st->arrived);
        statement_say(x, st,
                      "PSN %u (frame %u) was answered in frame %u, %s after it was sent, but %s had sent it again %s "
                      "before that, sooner than an answer can come (%s at least): the answer was on its way, nothing "
                      "was lost, and the ACK timeout, which ran out after %s without an answer, was too short for it.",
                      st->psn, st->frames[0], st->arrived, time_text(x, st->lost), src_text(x, flow),
                      time_text(x, st->arrival), time_text(x, t->round_trip), time_text(x, st->silence));
    }
    if (times == 1)
        return;
    snprintf(text, sizeof text, "The same happened %s more.", count_str(times - 1, "time"));
    statement_add(x, first, text);
}

/* What is sent again last, whose answers are not captured, may not have had any. */
static void say_unheard(struct explainer *x, struct statement *st, struct req_dir *h)
{
    const struct sent *s = req_dir_sent(h, st->psn);
    char more[160];

    if (!s || s->copies < 3 || observer_tries(x->observer, h->flow)->next != h->next ||
        (s->ts - s->ts_first) / (s->copies - 1) < timer_earliest(ack_timeout(1)))
        return;
    snprintf(more, sizeof more,
             "It was sent %u times, last in frame %u, and nothing follows: its retries may have been used up.",
             s->copies, s->last);
    statement_add(x, st, more);
}

/* Not one answer was captured. */
static void cannot_tell(struct explainer *x, struct statement *st, struct req_dir *h)
{
    bool last = h && st == statement_at(x, x->told[st->flow]->open);

    st->cause = CAUSE_CANNOT_TELL;
    statement_say(
        x, st,
        "PSN %u (frame %u), and what follows it, was sent again by %s from frame %u on, %s after it had been sent: the "
        "capture has no answer of %s, so whether a NAK or the ACK timeout brought it back cannot be told.",
        st->psn, st->frames[0], src_text(x, st->flow), st->back, time_text(x, st->silence), dst_text(x, st->flow));
    if (last)
        say_unheard(x, st, h);
}

static void end_flow(struct explainer *x, uint32_t flow)
{
    uint32_t peer = conn_flow_at(observer_conns(x->observer), flow)->peer;
    struct told *t = x->told[flow], *o = peer == FLOW_NONE ? NULL : x->told[peer];
    struct req_dir *h = observer_req_dir(x->observer, flow);

    if (!t)
        return;
    for (uint32_t i = 0; !t->last_rsp_frame && i < x->n; i++)
        if (x->st[i].flow == flow && x->st[i].cause == CAUSE_LOST_LAST_PACKET)
            cannot_tell(x, &x->st[i], h);
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
        end_unheard(x, flow, t, h);
    if (o && t->seen && o->seen && flow < peer)
        end_keys(x, flow, t, o);
    end_congestion(x, flow, t, o && o->seen);
}

/* --- The end ---------------------------------------------------------------------------------- */

static int by_weight(const void *a, const void *b)
{
    const struct statement *s = a, *t = b;
    int d = cause_table[t->cause].weight - cause_table[s->cause].weight;

    if (d)
        return d;
    if (s->lost != t->lost)
        return s->lost < t->lost ? 1 : -1;
    return s->frames[0] < t->frames[0] ? -1 : s->frames[0] > t->frames[0];
}

static void drop_moot(struct explainer *x)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < x->n; i++)
        if (!x->st[i].moot)
            x->st[n++] = x->st[i];
    x->n = n;
}

void explain_end(struct explainer *x)
{
    uint32_t flows = conn_counts(observer_conns(x->observer)).flows;

    timeline_end(x->timeline);
    for (uint32_t i = 0; i < flows; i++)
        end_flow(x, i);
    explain_taps(x);
    explain_cm_end(x);
    explain_datagrams_end(x);
    drop_moot(x);
    explain_once(x);
    if (x->n)
        qsort(x->st, x->n, sizeof *x->st, by_weight);
}
