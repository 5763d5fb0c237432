/* layer 3 (trace): what went wrong on connections: the causes of repetitions and refusals. */
#include "src/trace/explain_impl.h"

#include <stdlib.h>

#define OVERTAKEN_WITHIN (4 * NS_PER_MS) /* a packet that comes behind later ones by more was sent again */

static const char *name_of(const struct sent *s)
{
    return s && opcode_table[s->opcode].name ? opcode_table[s->opcode].name : "packet";
}

/* --- Requests that are sent again ------------------------------------------------------------------------------------------------- */

/* What is sent again because a packet was overtaken: its receiver dropped what came before it, and asked for it as it came. */
static struct statement *about_overtaken(struct explainer *x, const struct watched *e, const struct told *t)
{
    struct statement *st = statement_at(x, t->reorder);

    if (!st || !psn_in(e->p->bth.psn, st->psn, (t->reorder_end - st->psn) & PSN_MASK))
        return NULL;
    if (e->why == BACK_SEQ_NAK)
        statement_frame(st, e->h->seq.frame);
    statement_frame(st, frame_u32(e->p));
    return st;
}

/* The frame that came instead of a PSN: of one before all that was seen, the first; 0: not known. */
static uint32_t came_instead(const struct half *h, uint32_t psn)
{
    uint32_t hole = 0;

    if (psn_diff(psn, h->start) < 0)
        return h->first_frame;
    half_was_hole(h, psn, &hole);
    return hole;
}

/* "PSN 5 never passed the tap: frame 4 came instead." */
static void say_never_passed(struct explainer *x, struct statement *st, uint32_t psn, uint32_t hole)
{
    if (hole)
        statement_say(x, st, "PSN %u never passed the tap: frame %u came instead.", psn, hole);
    else
        statement_say(x, st, "PSN %u never passed the tap.", psn);
}

/* A sequence NAK brought it back. */
static struct statement *tell_loss(struct explainer *x, const struct watched *e, struct told *t)
{
    uint32_t psn = e->h->seq.psn == e->p->bth.psn || e->h->seq_low != e->p->bth.psn ? e->h->seq.psn : e->h->seq_low, hole = came_instead(e->h, psn), bad = told_bad_frame(t, psn);
    const struct sent *s = half_sent(e->h, psn);
    enum cause cause = bad ? CAUSE_BAD_ICRC : s && s->late ? CAUSE_REORDER : CAUSE_PACKET_LOSS;
    struct statement *st = bad ? told_about_bad(x, t, bad) : cause == CAUSE_REORDER ? statement_at(x, t->reorder) : NULL;

    if (!st || (cause == CAUSE_REORDER && st->psn != psn))
        st = statement_new(x, cause, e->flow, e->p);
    if (!st)
        return NULL;
    statement_frame(st, bad ? bad : s ? s->first : hole);
    statement_frame(st, e->h->seq.frame);
    statement_frame(st, frame_u32(e->p));
    st->start = s ? s->ts_first : e->h->seq.ts;
    statement_concerns(st, psn, s ? s->icrc_first : 0, true);
    if (bad)
        statement_say(x, st, "PSN %u (frame %u) reached %s damaged and was dropped; a NAK (frame %u) asked for it, and it was sent again in frame %u.", psn, bad,
                      dst_text(x, e->flow), e->h->seq.frame, frame_u32(e->p));
    else if (cause == CAUSE_REORDER)
        statement_say(x, st, "PSN %u (frame %u) came behind later packets; %s dropped those, asked for it with a NAK (frame %u), and all was sent again from frame %u on.",
                      psn, s->first, dst_text(x, e->flow), e->h->seq.frame, frame_u32(e->p));
    else if (s && s->ts_first <= e->h->seq.ts)
        statement_say(x, st, "%s with PSN %u (frame %u) passed the tap and was lost, damaged or overtaken behind it: %s asked for it with a NAK (frame %u), and it was sent again in frame %u.",
                      name_of(s), psn, s->first, dst_text(x, e->flow), e->h->seq.frame, frame_u32(e->p));
    else {
        say_never_passed(x, st, psn, hole);
        statement_say(x, st, "%s %s asked for it with a NAK (frame %u), and it was sent again in frame %u.",
                      explain_text_of(x, st), dst_text(x, e->flow), e->h->seq.frame, frame_u32(e->p));
    }
    st->where = bad || cause == CAUSE_REORDER ? WHERE_BEFORE : s && s->ts_first <= e->h->seq.ts ? WHERE_AFTER : WHERE_BEFORE;
    return st;
}

static struct statement *tell_silence(struct explainer *x, const struct watched *e, struct told *t)
{
    const struct sent *s = half_sent(e->h, e->p->bth.psn);
    bool answered = e->h->have_una && psn_diff(e->h->una, e->p->bth.psn) > 0;
    enum cause cause = answered ? CAUSE_LOST_ACK : t->closed_frame ? CAUSE_HALF_OPEN : CAUSE_LOST_LAST_PACKET;
    const struct sent *last = half_sent(e->h, psn_add(e->h->next, PSN_MASK));
    struct statement *st = statement_new(x, cause, e->flow, e->p);

    if (!st)
        return NULL;
    if (answered)
        statement_frame(st, e->h->una_frame);
    statement_frame(st, s ? s->first : 0);
    if (!answered && last)
        statement_frame(st, last->first);
    statement_frame(st, frame_u32(e->p));
    st->start = s ? s->ts_first : e->p->frame->ts;
    if (s)
        st->silence = silence_before(e, s);
    st->where = answered ? WHERE_AFTER : WHERE_UNKNOWN;
    statement_concerns(st, e->p->bth.psn, s ? s->icrc_first : 0, true);
    if (answered)
        statement_say(x, st, "Frame %u answers PSN %u, but was lost behind the tap: %s sent the packet again in frame %u after a silence.", e->h->una_frame,
                      e->p->bth.psn, src_text(x, e->flow), frame_u32(e->p));
    else if (cause == CAUSE_HALF_OPEN)
        statement_say(x, st, "%s closed the connection in frame %u; requests to it go unanswered since.", dst_text(x, e->flow), t->closed_frame);
    else
        statement_say(x, st, "%s with PSN %u (frame %u)%s was not answered, and %s sent it again from frame %u on when the ACK timeout had run out: a packet was lost behind the tap, or the answer before the tap.",
                      name_of(s), e->p->bth.psn, s ? s->first : 0, last && last != s ? ", or what follows it," : "", src_text(x, e->flow), frame_u32(e->p));
    return st;
}

/* A repetition that goes on with the silence of the one before. */
static bool goes_on(struct explainer *x, const struct watched *e, struct told *t)
{
    uint32_t number = t->open == NO_STATEMENT ? t->unheard : t->open;
    struct statement *st = statement_at(x, number);

    if (!st || e->why != BACK_SILENCE || !st->has_psn || st->psn != e->p->bth.psn || st->where == WHERE_BEFORE)
        return false;
    if (st->cause == CAUSE_LOST_ACK)
        statement_frame(st, e->h->una_frame);
    statement_frame(st, frame_u32(e->p));
    t->open = number;
    return true;
}

/* Its sender went back, but the packet that is missing was lost again before the tap: what comes first is one behind
 * it. */
static struct statement *tell_lost_again(struct explainer *x, const struct watched *e, struct told *t)
{
    uint32_t gap = e->h->gbn, hole = 0;
    struct statement *st = statement_at(x, t->open);

    if (psn_diff(e->p->bth.psn, gap) <= 0 || !half_was_hole(e->h, gap, &hole))
        return NULL;
    if (!st || !st->has_psn || st->psn != gap || st->cause != CAUSE_PACKET_LOSS) {
        st = statement_new(x, CAUSE_PACKET_LOSS, e->flow, e->p);
        if (!st)
            return NULL;
        st->where = WHERE_BEFORE;
        statement_concerns(st, gap, 0, true);
        statement_frame(st, hole);
        statement_say(x, st, "PSN %u never passed the tap: frame %u came instead, and frame %u when %s sent again.",
                      gap, hole, frame_u32(e->p), src_text(x, e->flow));
    } else if (st->n_frames < STATEMENT_FRAMES) {
        statement_say(x, st, "%s Sent again it was lost once more: frame %u came instead.", explain_text_of(x, st),
                      frame_u32(e->p));
    }
    statement_frame(st, frame_u32(e->p));
    return st;
}

static void tell_back(struct explainer *x, const struct watched *e, struct told *t)
{
    struct ask *a = half_ask(e->h, e->p->bth.psn, 0), *older;
    struct statement *st;

    for (unsigned n = 1; a && n < 8 && (older = half_ask(e->h, e->p->bth.psn, n)) != NULL; n++)
        a = older;
    if (e->why == BACK_RNR || goes_on(x, e, t))
        return;
    if (e->why == BACK_SEQ_NAK && e->h->rnr.have && e->h->rnr.psn == e->h->seq.psn)
        return; /* part of the RNR */
    st = tell_lost_again(x, e, t);
    if (!st)
        st = e->why == BACK_SEQ_NAK || (e->why == BACK_SILENCE && psn_diff(e->p->bth.psn, e->h->start) < 0) ? about_overtaken(x, e, t) : NULL;
    if (!st)
        st = e->why == BACK_SEQ_NAK ? tell_loss(x, e, t) : a ? explain_read(x, e, t, a) : tell_silence(x, e, t);
    t->open = statement_number(x, st);
    t->unheard = st && st->cause == CAUSE_LOST_ACK && e->why == BACK_SILENCE ? t->open : NO_STATEMENT;
}

/* A PSN before all that was seen, and no NAK is known to ask for it: whose NAK it was is often not known that early. It was sent
 * again, or overtaken; tell_overtaken() finds out. */
static void tell_missed(struct explainer *x, const struct watched *e, struct told *t)
{
    const struct flow *c = conn_flow_at(watch_conns(x->watch), e->flow);
    struct statement *st = statement_at(x, t->open);
    uint32_t psn = e->p->bth.psn, bad = told_bad_frame(t, psn), frame = frame_u32(e->p);
    bool certain = c->have_psn && psn_diff(psn, c->psn) >= 0;

    if (st && psn == e->h->cursor && psn_diff(psn, st->psn) > 0)
        return; /* goes on what is being sent again */
    st = bad ? told_about_bad(x, t, bad) : statement_new(x, CAUSE_PACKET_LOSS, e->flow, e->p);
    if (!st)
        return;
    statement_frame(st, bad ? bad : e->h->first_frame);
    statement_frame(st, frame);
    st->start = e->h->first_ts;
    st->where = bad || certain ? WHERE_BEFORE : WHERE_UNKNOWN;
    statement_concerns(st, psn, 0, true);
    t->open = t->late = statement_number(x, st);
    if (bad)
        statement_say(x, st, "PSN %u (frame %u) reached %s damaged and was dropped; it was sent again in frame %u.", psn, bad, dst_text(x, e->flow), frame);
    else
        statement_say(x, st, certain ? "PSN %u never passed the tap: frame %u came instead. It was sent again from frame %u on."
                                     : "PSN %u was not seen before frame %u and what follows it, and is sent again from frame %u on: it was lost "
                                       "before the tap, or passed before the capture began.",
                      psn, e->h->first_frame, frame);
}

/* A PSN that comes for the first time behind later ones. */
static void tell_late(struct explainer *x, const struct watched *e, struct told *t)
{
    bool nak = e->h->seq.have && !e->h->seq.resent && e->h->seq.psn == e->p->bth.psn;
    struct statement *st = statement_at(x, t->open);

    if (nak && st && st->has_psn && st->psn == e->p->bth.psn && st->cause == CAUSE_PACKET_LOSS &&
        st->where == WHERE_BEFORE) {
        statement_frame(st, e->h->seq.frame);
        statement_frame(st, frame_u32(e->p));
        statement_say(x, st, "%s %s asked for it with a NAK (frame %u), and it came in frame %u.",
                      explain_text_of(x, st), dst_text(x, e->flow), e->h->seq.frame, frame_u32(e->p));
    } else if (nak) {
        t->open = t->late = statement_number(x, tell_loss(x, e, t));
    } else if (e->h->seq.have && psn_diff(e->p->bth.psn, e->h->seq.psn) >= 0) {
        return; /* goes on what the NAK asked for */
    } else if (psn_diff(e->p->bth.psn, e->h->start) < 0 && e->h->service != SVC_UC) {
        tell_missed(x, e, t);
    } else if (e->p->frame->ts - e->h->last_ts < OVERTAKEN_WITHIN && !e->h->back) {
        st = statement_new(x, CAUSE_REORDER, e->flow, e->p);
        if (!st)
            return;
        statement_frame(st, frame_u32(e->p));
        statement_frame(st, e->h->last_frame);
        st->where = WHERE_BEFORE;
        statement_concerns(st, e->p->bth.psn, 0, true);
        t->reorder = statement_number(x, st);
        statement_say(x, st, "PSN %u (frame %u) was overtaken by later packets.", e->p->bth.psn, frame_u32(e->p));
    }
}

/* Its sender did not go back with the PSN that came late: it goes on where it was, or comes back to that PSN. So the packet was
 * overtaken, and the NAK came before it. */
static void tell_overtaken(struct explainer *x, const struct watched *e, struct told *t)
{
    struct statement *st = statement_at(x, t->late);

    t->late = NO_STATEMENT;
    if (!st || st->cause != CAUSE_PACKET_LOSS || !(e->as == SEEN_NEW || e->as == SEEN_GAP || e->p->bth.psn == st->psn))
        return;
    st->cause = CAUSE_REORDER;
    st->where = WHERE_BEFORE;
    st->again = 0;
    t->reorder = statement_number(x, st);
    t->reorder_end = e->h->next;
    if (e->h->seq.have && e->h->seq.psn == st->psn)
        statement_say(x, st, "PSN %u (frame %u) was overtaken by later packets; %s had asked for it before it came (frame %u).", st->psn,
                      e->h->last_frame, dst_text(x, e->flow), e->h->seq.frame);
    else
        statement_say(x, st, "PSN %u (frame %u) was overtaken by later packets.", st->psn, e->h->last_frame);
}

/* The same packet twice: gathered in one statement. */
static void tell_copy(struct explainer *x, const struct watched *e, struct told *t)
{
    struct statement *st = statement_at(x, t->dup);

    if (!st) {
        st = statement_new(x, CAUSE_DUPLICATE, e->flow, e->p);
        if (!st)
            return;
        t->dup = statement_number(x, st);
        statement_say(x, st, "Requests of %s are there twice, identical to the last bit.", src_text(x, e->flow));
    }
    statement_frame(st, frame_u32(e->p));
}

/* Unreliable connections: a gap is all there is to see. */
static void tell_uc_gap(struct explainer *x, const struct watched *e)
{
    struct statement *st = statement_new(x, CAUSE_PACKET_LOSS, e->flow, e->p);

    if (!st)
        return;
    statement_frame(st, frame_u32(e->p));
    st->where = WHERE_BEFORE;
    statement_concerns(st, e->h->next, 0, true);
    statement_say(x, st, "PSN %u never passed the tap: frame %u came instead. This is an unreliable connection: the message is lost.", e->h->next, frame_u32(e->p));
}

static void note_flow(struct told *t, const struct pkt *p)
{
    if (!t->seen) {
        t->seen = true;
        t->pkey = p->bth.pkey;
        t->migreq = p->bth.migreq;
        t->frame = frame_u32(p);
        t->have_dscp = p->have & (H_IP4 | H_IP6);
        t->dscp = p->tos >> 2;
        t->have_sl = p->have & H_LRH;
        t->sl = t->have_sl ? p->lrh.sl : 0;
    }
    if (UNLIKELY((p->bth.pkey ^ t->pkey) & 0x7fff) && !t->odd.frame) {
        t->odd.psn = p->bth.psn;
        t->odd.frame = frame_u32(p);
        t->odd.pkey = p->bth.pkey;
    }
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
    t->seen = false;
    t->wanted.frame = t->odd.frame = 0;
}

static void note_wanted(const struct watched *e, struct told *t)
{
    bool answered = e->h->have_una && psn_diff(e->h->una, t->wanted.psn) > 0;

    if (t->wanted.frame && !answered)
        return;
    t->wanted.psn = e->p->bth.psn;
    t->wanted.frame = frame_u32(e->p);
    t->wanted.ts = e->p->frame->ts;
}

/* A READ or atomic that goes beyond the depth agreed on. */
static void note_depth(struct explainer *x, const struct watched *e, struct told *t)
{
    const struct conn_params *c = &conn_flow_at(watch_conns(x->watch), e->flow)->params;
    struct ask *oldest;
    uint32_t out;

    if (!c->have_depth || !(e->p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ)) || (e->as != SEEN_NEW && e->as != SEEN_GAP))
        return;
    out = half_outstanding(e->h, &oldest) + 1;
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
    const struct flow *f = conn_flow_at(watch_conns(x->watch), flow);

    for (unsigned i = 0; i < TOLD_BAD; i++) {
        struct stray *s = &x->strays[i];
        struct statement *st = statement_at(x, s->statement);
        if (!s->frame || !st || s->tap != f->tap || s->dqpn != f->dqpn || memcmp(&s->src, &f->src, sizeof f->src) != 0 ||
            memcmp(&s->dst, &f->dst, sizeof f->dst) != 0)
            continue;
        bad_put(t, s->psn, s->frame, s->statement);
        st->flow = flow;
        st->conn = f->conn;
        s->frame = 0;
    }
}

static void on_request(void *user, const struct watched *e)
{
    struct explainer *x = user;
    struct told *t = told_of(x, e->flow);
    struct statement *st;

    if (!t)
        return;
    if (UNLIKELY(!t->packets))
        adopt_strays(x, e->flow, t);
    if (UNLIKELY(e->as == SEEN_RESTART))
        forget(t);
    note_flow(t, e->p);
    if (e->p->bth.ackreq || e->p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ))
        note_wanted(e, t);
    t->recent[t->recent_at++ % ARRAY_LEN(t->recent)] = e->p->frame->ts;
    if (t->cnps && e->p->frame->ts - t->cnp_ts < CNP_LOOK)
        t->after_cnp++;
    if (e->as == SEEN_COPY) {
        tell_copy(x, e, t);
        return;
    }
    note_depth(x, e, t);
    if (UNLIKELY(t->late != NO_STATEMENT))
        tell_overtaken(x, e, t);
    if (LIKELY(e->as == SEEN_NEW))
        return;
    if (e->as == SEEN_GAP && e->h->service == SVC_UC)
        tell_uc_gap(x, e);
    else if (e->as == SEEN_LATE)
        tell_late(x, e, t);
    else if (e->as == SEEN_AGAIN && e->why != BACK_NONE)
        tell_back(x, e, t);
    st = statement_at(x, t->open);
    if (st && (e->as == SEEN_AGAIN || e->as == SEEN_LATE))
        st->again++;
}

/* --- Responses ---------------------------------------------------------------------------------------------------------------------- */

static void tell_refusal(struct explainer *x, const struct watched *e, const struct told *t)
{
    const struct conn_params *c = &conn_flow_at(watch_conns(x->watch), e->flow)->params;
    uint32_t pmtu = conn_flow_at(watch_conns(x->watch), e->flow)->pmtu;
    const struct sent *s = half_sent(e->h, e->p->bth.psn);
    unsigned code = e->p->aeth.syndrome & 31;
    enum cause cause = code == NAK_REMOTE_ACCESS ? CAUSE_ACCESS_ERROR : code == NAK_INVALID_REQUEST ? CAUSE_INVALID_REQUEST : CAUSE_OPERATION_ERROR;
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
        statement_say(x, st, "%s refused the %s of frame %u (NAK in frame %u): READs and atomics outstanding: %u, agreed on: %u.", dst_text(x, e->flow),
                      name_of(s), s ? s->last : 0, frame_u32(e->p), t->deep, c->depth);
    else
        statement_say(x, st, "%s refused the %s%s with PSN %u: NAK, %s, in frame %u. The queue pair fails, and what was posted behind it is flushed.",
                      dst_text(x, e->flow), name_of(s), s ? "" : " (not captured)", e->p->bth.psn, nak_code_str(code), frame_u32(e->p));
}

static void tell_rnr(struct explainer *x, const struct watched *e, struct told *t)
{
    struct statement *st = t->rnr_psn == e->p->bth.psn ? statement_at(x, t->rnr) : NULL;
    const struct sent *s = half_sent(e->h, e->p->bth.psn);

    if (!st) {
        st = statement_new(x, CAUSE_RNR, e->flow, e->p);
        if (!st)
            return;
        t->rnr = t->open = statement_number(x, st);
        t->rnr_psn = e->p->bth.psn;
        st->has_psn = false;
        statement_frame(st, s ? s->first : 0);
        if (s)
            st->start = s->ts_first;
        statement_say(x, st, "%s was not ready for the %s with PSN %u: it asks to wait %.3f ms (timer code %u) before each further try.", dst_text(x, e->flow),
                      name_of(s), e->p->bth.psn, (double)rnr_time(e->p->aeth.syndrome & 31) / 1e6, e->p->aeth.syndrome & 31);
    }
    statement_frame(st, frame_u32(e->p));
}

/* Progress beyond what was being sent again ends the episode. */
static void settle(struct explainer *x, const struct watched *e, struct told *t)
{
    struct statement *st = statement_at(x, t->open);
    uint32_t psn, proves = response_proves(e->p);

    if (!st)
        return;
    psn = st->has_psn ? st->psn : t->rnr_psn;
    if (psn_diff(proves, psn) <= 0 || (e->p->op->flags & OPF_ACK && aeth_type(e->p) != AETH_ACK && st->cause == CAUSE_RNR))
        return;
    st->lost = e->p->frame->ts - st->start;
    t->open = NO_STATEMENT;
}

static void on_response(void *user, const struct watched *e)
{
    struct explainer *x = user;
    struct told *t = e->h ? told_of(x, e->flow) : NULL, *own = told_of(x, e->own);

    if (!t)
        return;
    if (own)
        note_flow(own, e->p);
    if (e->p->op->flags & OPF_READ_RESP)
        explain_read_response(x, e, t);
    if (t->rsp[e->p->bth.psn % TOLD_RESPONSES].psn != e->p->bth.psn)
        t->rsp[e->p->bth.psn % TOLD_RESPONSES].first = frame_u32(e->p);
    t->rsp[e->p->bth.psn % TOLD_RESPONSES].psn = e->p->bth.psn;
    t->rsp[e->p->bth.psn % TOLD_RESPONSES].frame = frame_u32(e->p);
    t->last_rsp_frame = frame_u32(e->p);
    t->last_rsp_ts = e->p->frame->ts;
    if (UNLIKELY(t->open != NO_STATEMENT))
        settle(x, e, t);
    if (!(e->p->op->flags & OPF_ACK))
        return;
    if (aeth_type(e->p) == AETH_RNR)
        tell_rnr(x, e, t);
    else if (aeth_type(e->p) == AETH_NAK && (e->p->aeth.syndrome & 31) != NAK_PSN_SEQ)
        tell_refusal(x, e, t);
}

/* A damaged packet before the first good one of its flow, whose flow is not known yet. */
static void stray_put(struct explainer *x, const struct pkt *p, uint32_t statement)
{
    struct stray *s = &x->strays[x->strays_at++ % TOLD_BAD];

    *s = (struct stray){.tap = conn_tap_of(p->frame), .dqpn = p->bth.dqpn, .psn = p->bth.psn, .frame = frame_u32(p), .statement = statement};
    conn_addr_of(p, &s->src, &s->dst);
}

static void on_bad_icrc(void *user, const struct pkt *p, uint32_t flow)
{
    struct explainer *x = user;
    struct statement *st = statement_new(x, CAUSE_BAD_ICRC, flow, p);
    struct told *t = flow == FLOW_NONE ? NULL : told_of(x, flow);

    if (st) {
        statement_frame(st, frame_u32(p));
        st->where = WHERE_BEFORE;
        statement_say(x, st, "Frame %u carries ICRC 0x%08x where 0x%08x is right: it was damaged before the tap, and is dropped by its receiver.", frame_u32(p),
                      p->icrc_got, p->icrc_want);
    }
    if (t && p->have & H_BTH)
        bad_put(t, p->bth.psn, frame_u32(p), statement_number(x, st));
    else if (st && p->have & H_BTH && p->op->flags & OPF_REQUEST)
        stray_put(x, p, statement_number(x, st));
}

static void on_other(void *user, const struct pkt *p, uint32_t flow)
{
    explain_other(user, p, flow);
}

static void on_fresh(void *user, uint32_t flow)
{
    struct explainer *x = user;

    free(x->told[flow]);
    x->told[flow] = NULL;
}

/* --- From start to end ------------------------------------------------------------------------------------------------------------------ */

struct explainer *explain_new(void)
{
    struct explainer *x = calloc(1, sizeof *x);
    struct watch_user u = {.user = x, .fresh = on_fresh, .request = on_request, .response = on_response, .bad_icrc = on_bad_icrc, .other = on_other};

    if (!x)
        return NULL;
    x->watch = watch_new(&u);
    x->pause = NO_STATEMENT;
    buf_char(&x->strings, '\0');
    if (!x->watch || x->strings.err) {
        explain_free(x);
        return NULL;
    }
    return x;
}

void explain_free(struct explainer *x)
{
    if (!x)
        return;
    for (unsigned i = 0; i < WATCH_FLOWS; i++)
        free(x->told[i]);
    watch_free(x->watch);
    free(x->st);
    buf_free(&x->strings);
    free(x);
}

struct conn_table *explain_conns(struct explainer *x)
{
    return watch_conns(x->watch);
}

void explain_packet(struct explainer *x, const struct pkt *p)
{
    x->packets++;
    x->rdma_packets += (p->have & H_BTH) != 0;
    if (p->frame->has_ts && p->frame->ts > x->last)
        x->last = p->frame->ts;
    if (UNLIKELY(p->frame->file < EXPLAIN_FILES && !x->begun[p->frame->file])) {
        x->begun[p->frame->file] = true;
        x->began[p->frame->file] = p->frame->ts;
    }
    watch_packet(x->watch, p);
}

size_t explain_n(const struct explainer *x)
{
    return x->n;
}
const struct statement *explain_at(const struct explainer *x, size_t i)
{
    return &x->st[i];
}
