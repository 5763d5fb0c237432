/* layer 3 (explain): what went wrong on connections: packets as they come, and refusals. */
#include "src/explain/explain_impl.h"

#include <stdio.h>
#include <stdlib.h>

/* --- Requests --------------------------------------------------------------------------------- */

/* The same packet twice: gathered in one statement. */
static void tell_copy(struct explainer *x, const struct event *e, struct told *t)
{
    struct statement *st = statement_at(x, t->dup);

    if (!st) {
        st = statement_new(x, CAUSE_DUPLICATE, e->flow, e->p);
        if (!st)
            return;
        t->dup = statement_number(x, st);
        st->is_request = true;
        statement_say(x, st,
                      frame_ip_id(e->p)
                          ? "Requests of %s are there twice, identical to the last bit."
                          : "Requests of %s are there twice, identical to the last bit: captured twice, doubled on "
                            "their way, or sent again, for without an IP ID nothing tells these apart.",
                      src_text(x, e->flow));
    }
    statement_frame(st, frame_u32(e->p));
}

static void note_flow(struct told *t, const struct pkt *p)
{
    if (!t->seen) {
        t->seen = true;
        t->pkey = p->bth.pkey;
        t->migreq = p->bth.migreq;
        t->frame = frame_u32(p);
        t->psn = p->bth.psn;
        t->have_dscp = p->have & (H_IP4 | H_IP6);
        t->dscp = p->tos >> 2;
        t->have_sl = p->have & H_LRH;
        t->sl = t->have_sl ? p->lrh.sl : 0;
    }
    if (UNLIKELY((p->bth.pkey ^ t->pkey) & 0x7fff) && t->n_odd < TOLD_ODD)
        t->odd[t->n_odd++] = (struct odd_key){p->bth.psn, frame_u32(p), p->bth.pkey};
    t->packets++;
    if ((p->tos & 3) == 3 && p->addr_len) {
        if (t->ce_packets < STATEMENT_FRAMES)
            t->ce_frames[t->ce_packets] = frame_u32(p);
        t->ce_packets++;
    }
}

/* The queue pair begins anew. */
static void forget(struct told *t)
{
    t->seen = t->asked = false;
    t->asks = t->answers = 0;
    t->wanted.frame = t->n_odd = 0;
    passes_init(&t->passes);
}

static bool is_answered(const struct req_dir *h, uint32_t psn)
{
    return h->have_una && psn_diff(h->una, psn) > 0;
}

static void note_wanted(const struct event *e, struct told *t)
{
    if (!t->asked || psn_diff(e->p->bth.psn, t->asked_psn) > 0)
        t->asked_psn = e->p->bth.psn;
    t->asked_ts = e->p->frame->ts;
    t->asks++;
    t->asked = true;
    if (t->wanted.frame && !is_answered(e->h, t->wanted.psn))
        return;
    t->wanted.psn = e->p->bth.psn;
    t->wanted.frame = frame_u32(e->p);
    t->wanted.ts = e->p->frame->ts;
}

/* A READ or atomic that goes beyond the depth agreed on. */
static void note_depth(struct explainer *x, const struct event *e, struct told *t)
{
    const struct conn_params *c = &conn_flow_at(observer_conns(x->observer), e->flow)->params;
    struct read_req *oldest;
    uint32_t out;

    if (!c->have_depth || !(e->p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ)) ||
        (e->as != SEEN_NEW && e->as != SEEN_GAP))
        return;
    out = req_dir_outstanding(e->h, &oldest) + 1;
    if (out > c->depth) {
        t->deep_psn = e->p->bth.psn;
        t->deep = out;
    }
}

static void bad_put(struct told *t, uint32_t psn, uint32_t frame, uint32_t statement)
{
    unsigned at = t->bad_at++ % TOLD_BAD;

    t->bad[at].psn = psn;
    t->bad[at].frame = frame;
    t->bad[at].statement = statement;
}

/* Damaged packets that came before the first good one of their flow. */
static void adopt_strays(struct explainer *x, uint32_t flow, struct told *t)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);

    for (unsigned i = 0; i < TOLD_BAD; i++) {
        struct stray *s = &x->strays[i];
        struct statement *st = statement_at(x, s->statement);
        if (!s->frame || !st || s->tap != f->tap || s->dqpn != f->dqpn || !conn_addr_eq(&s->src, &f->src) ||
            !conn_addr_eq(&s->dst, &f->dst))
            continue;
        bad_put(t, s->psn, s->frame, s->statement);
        st->flow = flow;
        st->conn = f->conn;
        s->frame = 0;
    }
}

static void note_keys(struct told *t, const struct pkt *p)
{
    unsigned at = t->keys_at++ % TOLD_KEYS;

    t->keys[at].psn = p->bth.psn;
    t->keys[at].rkey = p->have & H_RETH ? p->reth.rkey : p->atomiceth.rkey;
    t->keys[at].va = p->have & H_RETH ? p->reth.va : p->atomiceth.va;
    t->keys[at].len = p->have & H_RETH ? p->reth.dmalen : 8;
}

/* A request that is sent again, or comes late. What goes on behind it is sent again for the same reason, answered or
 * not. */
static void note_again(struct explainer *x, const struct event *e, struct told *t)
{
    struct statement *st;

    if (t->open != NO_STATEMENT || e->why != BACK_NONE)
        t->cost = t->open;
    st = statement_at(x, t->cost);
    t->follows = psn_add(e->p->bth.psn, req_dir_span(e->h, e->p));
    if (st)
        st->again++;
}

/* A request like the copy before to the last bit. Where no IP ID tells them apart, one that goes on what is sent again
 * is sent again too. */
static void on_copy(struct explainer *x, const struct event *e, struct told *t)
{
    if (e->p->bth.psn == t->follows && !(e->p->have & H_IP4 && frame_ip_id(e->p)))
        note_again(x, e, t);
    else
        tell_copy(x, e, t);
}

static void on_request(struct explainer *x, const struct event *e)
{
    struct told *t = told_of(x, e->flow);

    if (!t)
        return;
    if (UNLIKELY(!t->packets))
        adopt_strays(x, e->flow, t);
    if (UNLIKELY(e->as == SEEN_RESTART))
        forget(t);
    passes_request(&t->passes, e);
    note_flow(t, e->p);
    if (UNLIKELY(e->why != BACK_NONE))
        t->owed = t->asked && !is_answered(e->h, t->asked_psn);
    if (e->p->bth.ackreq || e->p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ))
        note_wanted(e, t);
    t->recent[t->recent_at++ % ARRAY_LEN(t->recent)] = e->p->frame->ts;
    if (t->cnps && e->p->frame->ts - t->cnp_ts < CNP_LOOK)
        t->after_cnp++;
    if (e->p->have & (H_RETH | H_ATOMICETH))
        note_keys(t, e->p);
    if (e->as == SEEN_COPY) {
        on_copy(x, e, t);
        return;
    }
    note_depth(x, e, t);
    if (UNLIKELY(t->late != NO_STATEMENT))
        explain_overtaken(x, e, t);
    if (UNLIKELY(t->unheard != NO_STATEMENT) && e->h->back)
        explain_skips(x, e, t);
    if (UNLIKELY(t->late_alone != NO_STATEMENT))
        explain_resent(x, e, t);
    if (LIKELY(e->as == SEEN_NEW)) {
        t->follows = UINT32_MAX;
        t->cost = NO_STATEMENT;
        return;
    }
    if (e->as == SEEN_GAP) {
        t->gaps[t->gaps_at % TOLD_GAPS].psn = e->h->next;
        t->gaps[t->gaps_at++ % TOLD_GAPS].frame = frame_u32(e->p);
    }
    if (e->h->service == SVC_UC)
        explain_unreliable(x, e, t);
    else if (e->as == SEEN_LATE)
        explain_late(x, e, t);
    else if (e->as == SEEN_AGAIN && e->why != BACK_NONE)
        explain_back(x, e, t);
    if (e->as == SEEN_AGAIN && e->p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ))
        explain_misses(x, e);
    if (e->as == SEEN_AGAIN || e->as == SEEN_LATE)
        note_again(x, e, t);
    else
        t->follows = UINT32_MAX;
}

/* --- Responses -------------------------------------------------------------------------------- */

/* The memory that the request with this PSN is for, if one of the latest requests is for any. */
static const char *place_text(const struct told *t, uint32_t psn, char *to, size_t size)
{
    uint32_t best = TOLD_KEYS;

    for (uint32_t i = 0; i < TOLD_KEYS; i++)
        if (t->keys[i].len && psn_diff(psn, t->keys[i].psn) >= 0 && psn_diff(psn, t->keys[i].psn) < TRACK_SENT &&
            (best == TOLD_KEYS || psn_diff(t->keys[i].psn, t->keys[best].psn) >= 0))
            best = i;
    if (best == TOLD_KEYS)
        return "";
    snprintf(to, size, " (R_Key 0x%x, address 0x%llx, %s)", t->keys[best].rkey, (unsigned long long)t->keys[best].va,
             count_str(t->keys[best].len, "byte"));
    return to;
}

static void tell_refusal(struct explainer *x, const struct event *e, const struct told *t)
{
    const struct conn_params *c = &conn_flow_at(observer_conns(x->observer), e->flow)->params;
    uint32_t pmtu = conn_flow_at(observer_conns(x->observer), e->flow)->pmtu;
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);
    unsigned code = aeth_value(e->p->aeth.syndrome);
    char place[80];
    enum cause cause = code == NAK_REMOTE_ACCESS     ? CAUSE_ACCESS_ERROR
                       : code == NAK_INVALID_REQUEST ? CAUSE_INVALID_REQUEST
                                                     : CAUSE_OPERATION_ERROR;
    struct statement *st;

    if (cause == CAUSE_INVALID_REQUEST && t->deep && t->deep_psn == e->p->bth.psn)
        cause = CAUSE_DEPTH_EXCEEDED;
    else if (cause == CAUSE_INVALID_REQUEST && s && pmtu && s->len > pmtu)
        cause = CAUSE_PMTU_MISMATCH;
    st = statement_new(x, cause, e->flow, e->p);
    if (!st)
        return;
    statement_frame(st, s ? s->last : 0);
    statement_frame(st, frame_u32(e->p));
    if (cause == CAUSE_DEPTH_EXCEEDED)
        statement_say(
            x, st, "%s refused the %s of frame %u (NAK in frame %u): READs and atomics outstanding: %u, agreed on: %u.",
            dst_text(x, e->flow), request_name(s), s ? s->last : 0, frame_u32(e->p), t->deep, c->depth);
    else
        statement_say(x, st,
                      "%s refused the %s%s with PSN %u%s: NAK, %s, in frame %u. The queue pair fails, and what was "
                      "posted behind it is flushed.",
                      dst_text(x, e->flow), request_name(s), s ? "" : " (not captured)", e->p->bth.psn,
                      cause == CAUSE_ACCESS_ERROR ? place_text(t, e->p->bth.psn, place, sizeof place) : "",
                      nak_code_str(code), frame_u32(e->p));
}

static void tell_rnr(struct explainer *x, const struct event *e, struct told *t)
{
    struct statement *st = t->rnr_psn == e->p->bth.psn ? statement_at(x, t->rnr) : NULL;
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);

    if (!st) {
        st = statement_new(x, CAUSE_RNR, e->flow, e->p);
        if (!st)
            return;
        t->rnr = t->open = statement_number(x, st);
        t->rnr_psn = st->psn = e->p->bth.psn;
        st->has_psn = false;
        statement_frame(st, s ? s->first : 0);
        if (s)
            st->start = s->ts_first;
        statement_say(
            x, st,
            "%s was not ready for the %s with PSN %u: it asks to wait %.3f ms (timer code %u) before each further try.",
            dst_text(x, e->flow), request_name(s), e->p->bth.psn,
            (double)rnr_time(aeth_value(e->p->aeth.syndrome)) / 1e6, aeth_value(e->p->aeth.syndrome));
    }
    statement_frame(st, frame_u32(e->p));
}

/* Progress beyond what was being sent again ends the episode. */
static void settle(struct explainer *x, const struct event *e, struct told *t)
{
    struct statement *st = statement_at(x, t->open);
    uint32_t psn, proves = response_proves(e->p);

    if (!st)
        return;
    psn = st->has_psn ? st->psn : t->rnr_psn;
    if (psn_diff(proves, psn) <= 0 ||
        (e->p->op->flags & OPF_ACK && response_type(e->p) != AETH_ACK && st->cause == CAUSE_RNR))
        return;
    st->lost = e->p->frame->ts - st->start;
    if (st->has_psn && st->is_request && req_dir_sent(e->h, st->psn)) {
        st->arrived = frame_u32(e->p);
        st->arrival = e->p->frame->ts - req_dir_sent(e->h, st->psn)->ts;
    }
    t->open = NO_STATEMENT;
}

static void shorten(ns_t *shortest, ns_t took)
{
    if (took >= 0 && (*shortest < 0 || took < *shortest))
        *shortest = took;
}

/* A NAK for a packet sent once takes no longer than one, until something is sent again. */
static void note_round_trip(const struct event *e, struct told *t)
{
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);
    bool ack = response_type(e->p) == AETH_ACK;

    if (!s || s->same)
        return;
    if (s->copies == 1 && !s->late && (ack || !(e->h->again || e->h->late)))
        shorten(&t->round_trip, e->p->frame->ts - s->ts);
    if (ack)
        shorten(&t->least_trip, e->p->frame->ts - s->ts);
}

/* The same answer twice: gathered in one statement. Without an IP ID it may have been sent twice. */
static void tell_answer_copy(struct explainer *x, const struct event *e, struct told *t)
{
    struct statement *st = statement_at(x, t->dup_rsp);

    if (!st) {
        st = statement_new(x, CAUSE_DUPLICATE, e->flow, e->p);
        if (!st)
            return;
        t->dup_rsp = statement_number(x, st);
        statement_say(x, st, "Answers of %s are there twice, identical to the last bit.", dst_text(x, e->flow));
    }
    statement_frame(st, frame_u32(e->p));
}

/* The responses of READs and atomics come in the order of their PSNs, from anew each time that they are asked for
 * again. */
static void note_run(struct told *t, const struct pkt *p)
{
    if (t->run_last != UINT32_MAX && psn_diff(p->bth.psn, t->run_last) <= 0) {
        t->run_frame = frame_u32(p);
        t->run_psn = p->bth.psn;
    }
    t->run_last = p->bth.psn;
}

static void note_answer(struct explainer *x, const struct event *e, struct told *t)
{
    uint32_t psn = e->p->bth.psn, icrc = icrc_of(e->p), at = psn % TOLD_RESPONSES;

    if (t->rsp[at].psn != psn) {
        t->rsp[at].first = frame_u32(e->p);
        t->rsp[at].answer = 0;
    } else if (UNLIKELY(icrc && t->rsp[at].icrc == icrc) && frame_ip_id(e->p)) {
        tell_answer_copy(x, e, t);
    }
    if (!(e->p->op->flags & OPF_ACK)) {
        t->rsp[at].answer = frame_u32(e->p);
        t->rsp[at].acked = e->h->have_ack && psn_diff(e->h->ack_psn, psn) >= 0;
        note_run(t, e->p);
    }
    t->rsp[at].psn = psn;
    t->rsp[at].frame = frame_u32(e->p);
    t->rsp[at].icrc = icrc;
    t->rsp[at].ts = e->p->frame->ts;
}

static void on_response(struct explainer *x, const struct event *e)
{
    struct told *t = e->h ? told_of(x, e->flow) : NULL, *own = told_of(x, e->own);

    if (!t)
        return;
    if (own && UNLIKELY(!own->packets))
        adopt_strays(x, e->own, own);
    if (own)
        note_flow(own, e->p);
    if (e->p->op->flags & OPF_READ_RESP)
        explain_read_response(x, e, t);
    note_answer(x, e, t);
    t->answers += (e->p->op->flags & OPF_ACK) != 0 || !(e->p->op->flags & OPF_READ_RESP) || e->p->op->flags & OPF_END;
    t->last_rsp_frame = frame_u32(e->p);
    t->last_rsp_ts = e->p->frame->ts;
    note_round_trip(e, t);
    if (UNLIKELY(t->open != NO_STATEMENT) && e->p->have & H_AETH)
        explain_repeated_answer(x, e, t);
    if (UNLIKELY(t->open != NO_STATEMENT))
        settle(x, e, t);
    if (!(e->p->op->flags & OPF_ACK))
        return;
    if (response_type(e->p) == AETH_RNR)
        tell_rnr(x, e, t);
    else if (response_type(e->p) == AETH_NAK && aeth_value(e->p->aeth.syndrome) != NAK_PSN_SEQ)
        tell_refusal(x, e, t);
    else if (response_type(e->p) == AETH_NAK)
        passes_nak(&t->passes, e, t->least_trip, t->round_trip);
}

/* A damaged packet before the first good one of its flow, whose flow is not known yet. */
static void stray_put(struct explainer *x, const struct pkt *p, uint32_t statement)
{
    struct stray *s = &x->strays[x->strays_at++ % TOLD_BAD];

    *s = (struct stray){.tap = conn_tap_of(p->frame),
                        .dqpn = p->bth.dqpn,
                        .psn = p->bth.psn,
                        .frame = frame_u32(p),
                        .statement = statement,
                        .answer = !(p->op->flags & OPF_REQUEST)};
    conn_addr_of(p, &s->src, &s->dst);
}

static void on_bad_icrc(struct explainer *x, const struct pkt *p, uint32_t flow)
{
    struct statement *st = statement_new(x, CAUSE_BAD_ICRC, flow, p);
    struct told *t = flow == FLOW_NONE ? NULL : told_of(x, flow);

    if (st) {
        statement_frame(st, frame_u32(p));
        st->where = WHERE_BEFORE;
        statement_say(x, st,
                      "Frame %u carries ICRC 0x%08x where 0x%08x is right: it was damaged before the tap, and is "
                      "dropped by its receiver.",
                      frame_u32(p), p->icrc_got, p->icrc_want);
    }
    if (t && p->have & H_BTH)
        bad_put(t, p->bth.psn, frame_u32(p), statement_number(x, st));
    else if (st && p->have & H_BTH && !(p->op->flags & OPF_CNP))
        stray_put(x, p, statement_number(x, st));
}

/* A NAK for the very first packets, which did not pass, comes before it is known whose requests it is about. */
static void on_unpaired(struct explainer *x, const struct pkt *p)
{
    struct stray_nak *n;

    if (LIKELY(!(p->op->flags & OPF_ACK)) || !(p->have & H_AETH) || p->aeth.syndrome != (AETH_NAK << 5 | NAK_PSN_SEQ))
        return;
    n = &x->naks[x->naks_at++ % STRAY_NAKS];
    *n = (struct stray_nak){.tap = conn_tap_of(p->frame), .psn = p->bth.psn, .frame = frame_u32(p)};
    conn_addr_of(p, &n->src, &n->dst);
}

static void on_fresh(void *user, uint32_t flow)
{
    struct explainer *x = user;

    free(x->told[flow]);
    x->told[flow] = NULL;
}

/* What any packet adds: counts, and the times of the capture. */
static inline void count_packet(struct explainer *x, const struct pkt *p)
{
    x->packets++;
    x->rdma_packets += (p->have & H_BTH) != 0;
    if (p->frame->has_ts && p->frame->ts > x->last)
        x->last = p->frame->ts;
    if (UNLIKELY(p->frame->file < EXPLAIN_FILES && !x->begun[p->frame->file])) {
        x->begun[p->frame->file] = true;
        x->began[p->frame->file] = p->frame->ts;
    }
}

static void on_event(void *user, const struct event *e)
{
    struct explainer *x = user;

    count_packet(x, e->p);
    switch (e->kind) {
    case EVENT_REQUEST:
        if (e->h)
            on_request(x, e);
        break;
    case EVENT_RESPONSE:
        if (UNLIKELY(e->unpaired))
            on_unpaired(x, e->p);
        if (e->flow != FLOW_NONE)
            on_response(x, e);
        break;
    case EVENT_BAD_ICRC:
        on_bad_icrc(x, e->p, e->own);
        break;
    default:
        explain_other(x, e->p, e->own);
    }
}

/* --- From start to end ------------------------------------------------------------------------ */

struct explainer *explain_new(struct observer *o)
{
    struct explainer *x = calloc(1, sizeof *x);
    const struct observer_sub s = {.user = x, .fresh = on_fresh, .before = on_event};

    if (!x)
        return NULL;
    x->observer = o;
    x->pause = NO_STATEMENT;
    x->timeline = timeline_of(o);
    buf_char(&x->strings, '\0');
    if (!x->timeline || x->strings.err || !observer_subscribe(o, &s)) {
        explain_free(x);
        return NULL;
    }
    return x;
}

void explain_free(struct explainer *x)
{
    if (!x)
        return;
    for (unsigned i = 0; i < OBSERVER_FLOWS; i++)
        free(x->told[i]);
    for (unsigned i = 0; i < x->n_datagrams; i++)
        free(x->datagrams[i]);
    free(x->st);
    buf_free(&x->strings);
    free(x);
}

size_t explain_n(const struct explainer *x)
{
    return x->n;
}
const struct statement *explain_at(const struct explainer *x, size_t i)
{
    return &x->st[i];
}
