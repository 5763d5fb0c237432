/* layer 3 (explain): PSNs first seen after later ones: lost and retransmitted, or reordered. */
#include "dissect/pkt.h"
#include "src/conn/packet.h"
#include "src/explain/explain_impl.h"

#define OVERTAKEN_WITHIN (4 * NS_PER_MS) /* a packet later than this after its successors was retransmitted */

#define LATE_IN_A_ROW 4 /* so many packets that follow each other may come late together; more are retransmitted */

/* The NAK for the first packets of a flow, which came before its flow was known; 0: none. */
static uint32_t early_nak(const struct explainer *x, const struct flow *f, uint32_t psn, uint32_t since)
{
    for (unsigned i = 0; i < EARLY_NAKS; i++) {
        const struct early_nak *n = &x->naks[i];
        if (n->frame > since && n->tap == f->tap && n->psn == psn && is_same_way(&n->src, &n->dst, &f->dst, &f->src))
            return n->frame;
    }
    return 0;
}

/* The request packet before a PSN: of a READ, that of its request. NULL: it was not seen. */
static const struct sent *sent_before(const struct event *e, uint32_t psn)
{
    const struct read_req *a = req_dir_read(e->h, psn_prev(psn), 0);

    return req_dir_sent(e->h, a ? a->psn : psn_prev(psn));
}

/* sent_order() of a late packet with IP identification `id` and the packet `before` it. One whose identification is far
 * ahead was sent later as well, if those of its host count up: other queue pairs have sent meanwhile. */
static int late_order(const struct event *e, uint16_t id, const struct sent *before)
{
    const struct sent *o = before ? sent_before(e, before->psn) : NULL;
    int order = before ? sent_order(id, before->ip_id) : 0;
    bool counts = o && before->copies == 1 && o->copies == 1 && sent_order(before->ip_id, o->ip_id) > 0;

    return !order && counts && id && (int16_t)(id - before->ip_id) >= SENT_NEAR ? 1 : order;
}

void explain_comes_late(struct explainer *x, const struct event *e, struct flow_notes *t, const struct incident *st,
                        uint32_t resume)
{
    uint32_t due = resume == UINT32_MAX ? e->h->next : resume;
    const struct sent *before = sent_before(e, due),
                      *late = st && st->psn != e->p->bth.psn ? req_dir_sent(e->h, st->psn) : NULL;
    uint16_t id = late ? late->ip_id : frame_ip_id(e->p);

    t->hypotheses.late = incident_number(x, st);
    t->hypotheses.resume = resume;
    t->hypotheses.late_order = late_order(e, id, before);
}

/* A request with a PSN before the first one captured. A NAK for it may exist but not be assigned to the flow yet, so
 * early in the capture. The request was retransmitted or reordered; explain_reordered() decides. */
static void report_missed(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    const struct flow *c = conn_flow_at(observer_conns(x->observer), e->flow);
    struct incident *st = incident_at(x, t->hypotheses.open);
    uint32_t psn = e->p->bth.psn, bad = damaged_frame(t, psn), frame = frame_u32(e->p);
    uint32_t nak = early_nak(x, c, psn, e->h->first_frame);
    bool certain = c->have_psn && psn_diff(psn, c->psn) >= 0;

    if (st && psn == e->h->cursor && psn_diff(psn, st->psn) > 0)
        return; /* it continues the retransmission */
    st = bad ? damaged_incident(x, t, bad, e->p) : incident_new(x, CAUSE_PACKET_LOSS, e->flow, e->p);
    if (!st)
        return;
    incident_frame(st, bad ? ROLE_LOST : ROLE_INSTEAD, bad ? bad : e->h->first_frame);
    incident_frame(st, ROLE_NAK, nak);
    incident_frame(st, ROLE_RETRANSMISSION, frame);
    st->start = e->h->first_ts;
    st->place = bad || certain ? PLACE_BEFORE : PLACE_UNKNOWN;
    incident_concerns(st, psn, 0, true);
    t->hypotheses.open = incident_number(x, st);
    explain_comes_late(x, e, t, st, UINT32_MAX);
    incident_is(
        st, bad   ? SAY(DAMAGED_BEFORE, .psn = psn, .lost = bad, .again = frame)
            : nak ? SAY(MISSED_NAK, .psn = psn, .instead = e->h->first_frame, .nak = nak, .again = frame, .n = certain)
            : certain ? SAY(MISSED_FIRST, .psn = psn, .instead = e->h->first_frame, .again = frame)
                      : SAY(MISSED, .psn = psn, .instead = e->h->first_frame, .again = frame));
}

/* True if the packet is the one that a NAK requests, for the first time. */
static bool is_requested_by_nak(const struct event *e)
{
    return e->h->seq.have && !e->h->seq.resent && e->h->seq.psn == e->p->bth.psn;
}

/* Request `e`, seen after later ones, is the good copy of one that was damaged, in frame `bad`. */
static void came_for_damaged(struct incident *st, const struct event *e, uint32_t bad)
{
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    incident_concerns(st, e->p->bth.psn, 0, true);
    incident_is(st, SAY(DAMAGED_BEFORE, .psn = e->p->bth.psn, .lost = bad, .again = frame_u32(e->p)));
}

/* True if it continues the go-back-N that the latest NAK demanded, as far as the capture shows: the PSN of that NAK was
 * not acknowledged yet, or the requester is going back still. */
static bool continues_nak(const struct event *e)
{
    const struct req_dir *h = e->h;

    return h->seq.have && psn_diff(e->p->bth.psn, h->seq.psn) >= 0 &&
           (h->cursor != h->next || !h->have_una || psn_diff(h->una, h->seq.psn) <= 0);
}

static void report_late(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    bool nak = is_requested_by_nak(e);
    struct incident *st = incident_at(x, t->hypotheses.open);
    bool missed = st && st->cause == CAUSE_PACKET_LOSS && st->place == PLACE_BEFORE;

    if (nak && e->h->rnr.have && e->h->rnr.psn == e->p->bth.psn)
        return; /* it had arrived when its RNR NAK was sent: part of that incident */
    if (nak && missed && st->has_psn && st->psn == e->p->bth.psn) {
        if (st->n_frames > 1 && st->frames[1] == e->h->seq.frame)
            incident_add(st, SAY(CAME, .again = frame_u32(e->p)));
        else
            incident_add(st, SAY(NAK_AND_ARRIVAL, .nak = e->h->seq.frame, .again = frame_u32(e->p)));
        incident_frame(st, ROLE_NAK, e->h->seq.frame);
        incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    } else if (nak) {
        st = explain_loss(x, e, t);
        t->hypotheses.open = incident_number(x, st);
        explain_comes_late(x, e, t, st, UINT32_MAX);
    } else if (continues_nak(e)) {
        return;
    } else if (psn_diff(e->p->bth.psn, e->h->start) < 0) {
        report_missed(x, e, t);
    } else if (e->p->frame->ts - e->h->last_ts < OVERTAKEN_WITHIN && !e->h->back &&
               t->hypotheses.late_single == NO_INCIDENT) {
        if (damaged_frame(t, e->p->bth.psn) && (st = damaged_incident(x, t, damaged_frame(t, e->p->bth.psn), e->p))) {
            came_for_damaged(st, e, damaged_frame(t, e->p->bth.psn));
            return;
        }
        st = incident_overtaken(x, e);
        if (!st)
            return;
        t->hypotheses.reorder = t->hypotheses.late_single = incident_number(x, st);
        t->hypotheses.reorder_end = e->h->next;
        incident_is(st, SAY(OVERTAKEN, .psn = e->p->bth.psn, .lost = frame_u32(e->p)));
    }
}

/* True if the last request seen before this PSN is a READ. */
static bool follows_read(const struct event *e)
{
    const struct sent *s = NULL;

    for (uint32_t n = 1, psn = e->p->bth.psn; !s && n < TRACK_SENT && psn_diff(psn, e->h->start) > 0; n++)
        s = req_dir_sent(e->h, psn = psn_prev(psn));
    return s && (s->opcode & 31) == OP_READ_REQUEST;
}

/* A PSN first seen after later ones. */
void explain_late(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    if (e->p->op->flags & OPF_READ_REQ && !(e->p->have & H_RETH) && follows_read(e) && !is_requested_by_nak(e))
        return; /* most likely the rest of the READ before, whose length was not captured */
    if (!e->h->pmtu && e->p->op->flags & OPF_READ_REQ && explain_rest(x, e, t))
        return;
    report_late(x, e, t);
}

/* The packets after the late one are retransmitted too, without a NAK for it: so the late packet was not reordered but
 * retransmitted, too. Several late ones in order tell nothing yet.
 *
 *   request 5 .. 9 . 6 7 . 10         6 and 7 came late, then new PSNs: reordered
 *   request 5 .. 9 . 6 7 . 8 9        6 and 7 came late, then PSNs seen before: go-back-N */
void explain_resent(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    struct incident *st = incident_at(x, t->hypotheses.late_single);
    bool behind = st && st->cause == CAUSE_REORDER && psn_diff(e->p->bth.psn, st->psn) > 0;

    if (behind && e->as == SEEN_LATE) {
        incident_frame(st, ROLE_LOST, frame_u32(e->p));
        return;
    }
    t->hypotheses.late_single = NO_INCIDENT;
    if (!behind || e->as != SEEN_AGAIN || is_requested_by_nak(e))
        return;
    if (e->p->bth.psn != e->h->cursor && st->n_frames <= 2)
        return;
    st->cause = CAUSE_PACKET_LOSS;
    st->again++;
    t->hypotheses.open = incident_number(x, st);
    t->hypotheses.reorder = NO_INCIDENT;
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    incident_is(st, SAY(RESENT, .psn = st->psn, .again = st->frames[0], .other = frame_u32(e->p)));
}

/* The request before came late, not instead of the one that the incident is about. */
static void overtaken_instead(struct incident *st, const struct event *e)
{
    st->n_frames = 0;
    incident_frame(st, ROLE_LOST, e->h->last_frame);
    incident_concerns(st, psn_prev(e->h->cursor), 0, true);
    incident_is(st, SAY(OVERTAKEN, .psn = st->psn, .lost = e->h->last_frame));
}

/* The frame in which the PSN of the incident came: others may have come late behind it. */
static uint32_t frame_that_came(const struct incident *st, const struct event *e)
{
    bool behind = psn_prev(e->h->cursor) != st->psn;

    for (unsigned i = 0; i < st->n_frames && behind; i++)
        if (st->roles[i] == ROLE_RETRANSMISSION)
            return st->frames[i];
    return e->h->last_frame;
}

#define FAR_SOONER                                                                                                     \
    8 /* a packet that came so many times sooner behind a NAK than the next copy was not sent for the NAK */

bool explain_copy_is_sent(struct explainer *x, const struct event *e, const struct flow_notes *t)
{
    const struct incident *st = incident_at(x, t->hypotheses.late);
    const struct sent *s = st ? req_dir_sent(e->h, st->psn) : NULL;
    const struct nak *nak = &e->h->seq;

    if (!s || s->ip_id || e->p->bth.psn != st->psn || !nak->have || nak->psn != st->psn)
        return false;
    return s->ts >= nak->ts && s->ts - nak->ts < (e->p->frame->ts - s->ts) / FAR_SOONER;
}

/* Whether request `e`, which follows the late one that `st` is about, may have come late in the same go-back-N, too: it
 * is not the one that was `due`. */
static bool is_late_as_well(const struct event *e, const struct incident *st, uint32_t due)
{
    return st->cause == CAUSE_PACKET_LOSS && e->p->bth.psn != due && psn_diff(e->p->bth.psn, st->psn) < LATE_IN_A_ROW;
}

/* Whether a go-back-N continues with request `e` as if the late one had not come: with the PSN that was `due` then, or
 * with a later one if the late request was sent before the one that overtook it (`order` < 0). If all PSNs from the
 * late one on come again, the requester went back to it. */
static bool is_ahead(const struct event *e, uint32_t due, int order)
{
    int ahead = psn_diff(e->p->bth.psn, due);

    return e->p->bth.psn != e->h->cursor && (ahead == 0 || (ahead > 0 && order < 0));
}

/* The requester did not go back to the late PSN: it continues with new PSNs, or goes back to that PSN only now; or it
 * continues the go-back-N to which the late PSN belongs. So the packet was reordered, and the NAK came before it.
 *
 *   request 5 .. 7 8 . 6 . 9          6 came late, then new PSNs: reordered
 *   request 5 .. 8 9 . 6 7 . 10       likewise
 *   request 5 .. 7 8 . 6 . 6 7        6 came late, then it comes again for the NAK: reordered
 *   request 5 .. 7 8 . 6 ..... 6 7    it comes again only when the ACK timeout has run out: 6 was retransmitted twice
 *   request 5 .. 7 8 . 6 . 7 8        6 came late, then 7 again: go-back-N, so 6 was retransmitted
 *   request 5 .. 20 . 5 7 8 6 9 10    6 is retransmitted, and came late, then 9, which was due: reordered
 *   request 5 .. 20 . 5 8 9 6 7 10    likewise
 *   request 5 .. 20 . 5 7 8 6 10      likewise, and 9 is late, too, if IP IDs show that 6 was sent before 8 */
void explain_reordered(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    struct incident *st = incident_at(x, t->hypotheses.late);
    bool new = e->as == SEEN_NEW || e->as == SEEN_GAP, again = t->hypotheses.resume != UINT32_MAX,
         soon = e->p->bth.psn == (st ? st->psn : 0) && e->p->frame->ts - e->h->last_ts < OVERTAKEN_WITHIN;
    uint32_t came;
    int order;

    if (st && e->p->bth.psn == e->h->cursor &&
        (again ? is_late_as_well(e, st, t->hypotheses.resume) : e->as == SEEN_LATE))
        return; /* the one behind it came late, too: what follows them tells */
    t->hypotheses.late = NO_INCIDENT;
    if (st && st->cause == CAUSE_REORDER && again && e->p->bth.psn == t->hypotheses.resume)
        t->hypotheses.reorder_end = e->h->next;
    if (!st || st->cause != CAUSE_PACKET_LOSS)
        return;
    order = t->hypotheses.late_order;
    if (order > 0 || !(again ? is_ahead(e, t->hypotheses.resume, order) : new || soon))
        return; /* it was retransmitted, and what followed it was lost */
    if (!order && t->rounds.selective && st->has_nak)
        return; /* it was retransmitted alone */
    st->cause = CAUSE_REORDER;
    st->place = PLACE_BEFORE;
    st->again = 0;
    st->repeated = false;
    if (again)
        st->start = e->h->last_ts;
    if (st->facts[0].sentence == SENTENCE_SENT_AGAIN_MISSED) {
        overtaken_instead(st, e);
        return;
    }
    t->hypotheses.reorder = incident_number(x, st);
    t->hypotheses.reorder_end = e->h->next;
    came = frame_that_came(st, e);
    incident_role(st, came, ROLE_LOST);
    if (e->h->seq.have && e->h->seq.psn == st->psn)
        incident_is(st, SAY(OVERTAKEN_NAK, .psn = st->psn, .lost = came, .nak = e->h->seq.frame));
    else
        incident_is(st, SAY(OVERTAKEN, .psn = st->psn, .lost = came));
    if (!order && st->certainty == CERTAIN)
        st->certainty = PROBABLE; /* or it was retransmitted, and what followed it was lost */
}
