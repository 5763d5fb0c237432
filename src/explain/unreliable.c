/* layer 3 (explain): unreliable services: gaps of PSNs, and packets that fill them late. Nothing is acknowledged. */
#include "dissect/pkt.h"
#include "src/explain/explain_impl.h"

#include <stdlib.h>

#define GAP_LOOK 1024 /* latest incidents searched for the one about a gap */

/* The first PSN from `psn` to before `end` of which no copy was captured; `end`: all were. The packet of `e` counts as
 * captured. */
static uint32_t missing_from(const struct event *e, const struct flow_notes *t, uint32_t psn, uint32_t end)
{
    while (psn != end && (psn == e->p->bth.psn || req_dir_sent(e->h, psn) || damaged_frame(t, psn)))
        psn = psn_add(psn, 1);
    return psn;
}

/* How many packets of the gap from `psn` to before `end` came with a bad ICRC. */
static uint32_t damaged(const struct flow_notes *t, uint32_t psn, uint32_t end)
{
    uint32_t n = 0;

    for (unsigned i = 0; i < NOTED_BAD; i++)
        n += t->requests.bad[i].frame && psn_in(t->requests.bad[i].psn, psn, (end - psn) & PSN_MASK);
    return n;
}

static void state_missing(struct incident *st)
{
    incident_is(st, SAY(GAP, .psn = st->psn, .n = st->missing - 1, .instead = st->frames[0]));
}

/* The first packet of the message that goes on behind the latest one; NULL: the latest one ends a message, or a packet
 * of it is missing, or is remembered no more. *again: one is missing, so that the message is known to be lost; *far: it
 * began so long ago that this is not known. */
static const struct sent *open_message(const struct event *e, bool *again, bool *far)
{
    uint32_t psn = psn_prev(e->h->next);
    const struct sent *s = req_dir_sent(e->h, psn);

    *again = *far = false;
    if (!s || opcode_table[s->opcode].flags & OPF_END)
        return NULL;
    for (unsigned n = 0; s && !(opcode_table[s->opcode].flags & OPF_START) && n < TRACK_SENT; n++)
        s = req_dir_sent(e->h, psn = psn_prev(psn));
    *far = !s && ((e->h->next - psn) & PSN_MASK) >= TRACK_SENT;
    *again = !s && !*far;
    return s;
}

/* Whether packets of the flow were lost before the incident `now`, the latest one. */
static bool was_gap(const struct explainer *x, const struct incident *now)
{
    for (const struct incident *st = now; st > x->incidents && now - st < GAP_LOOK;)
        if ((--st)->flow == now->flow && st->cause == CAUSE_PACKET_LOSS && !st->moot)
            return true;
    return false;
}

/* What is lost with the packets of a gap: nothing repeats them, and a receiver drops what came of the message. */
static void state_message(struct explainer *x, struct incident *st, const struct event *e)
{
    bool again, far, goes_on = !(e->p->op->flags & OPF_START);
    const struct sent *first = open_message(e, &again, &far);

    st->messages = far ? !was_gap(x, st) : !again; /* an earlier gap may be of the same message */
    if (far)
        return;
    if (first)
        incident_add(st, SAY(LOST_WITH_FIRST, .other = first->first));
    else if (goes_on && !again)
        incident_add(st, SAY(LOST_WITH_LAST, .other = frame_u32(e->p)));
    else if (!again)
        incident_add(st, SAY(LOST_WHOLE));
}

static void report_gap(struct explainer *x, const struct event *e, const struct flow_notes *t)
{
    uint32_t end = e->p->bth.psn, n = (end - e->h->next) & PSN_MASK, bad = damaged(t, e->h->next, end);
    struct incident *st = n <= bad ? NULL : incident_new(x, CAUSE_PACKET_LOSS, e->flow, e->p);

    if (!st)
        return;
    incident_frame(st, ROLE_INSTEAD, frame_u32(e->p));
    st->place = PLACE_BEFORE;
    st->end = end;
    st->missing = n - bad;
    incident_concerns(st, missing_from(e, t, e->h->next, end), 0, true);
    state_missing(st);
    state_message(x, st, e);
}

/* The incident about the gap that includes `psn`; NULL: none. */
static struct incident *about_gap(struct explainer *x, uint32_t flow, uint32_t psn)
{
    for (uint32_t i = x->n; i > 0 && x->n - i < GAP_LOOK; i--) {
        struct incident *st = &x->incidents[i - 1];
        if (st->flow == flow && st->cause == CAUSE_PACKET_LOSS && !st->moot &&
            psn_in(psn, st->psn, (st->end - st->psn) & PSN_MASK))
            return st;
    }
    return NULL;
}

/* A packet taken for lost comes after later ones: unreliable services do not retransmit, so it was reordered. */
static void report_overtaken(struct explainer *x, const struct event *e, const struct flow_notes *t)
{
    struct incident *st = about_gap(x, e->flow, e->p->bth.psn);

    if (st && --st->missing == 0) {
        st->moot = true;
    } else if (st) { /* which message the rest belongs to is not looked up again */
        st->psn = missing_from(e, t, st->psn, st->end);
        state_missing(st);
    }
    st = incident_overtaken(x, e);
    if (!st)
        return;
    incident_is(st, SAY(UC_OVERTAKEN, .psn = e->p->bth.psn, .lost = frame_u32(e->p)));
}

void explain_unreliable(struct explainer *x, const struct event *e, const struct flow_notes *t)
{
    if (e->as == SEEN_GAP)
        report_gap(x, e, t);
    else if (e->as == SEEN_LATE)
        report_overtaken(x, e, t);
}

/* --- Datagrams -------------------------------------------------------------------------------- */

static bool same_ends(const struct datagram_flow *a, const struct datagram_flow *b)
{
    return a->tap == b->tap && a->sqpn == b->sqpn && a->dqpn == b->dqpn &&
           is_same_way(&a->src, &a->dst, &b->src, &b->dst);
}

/* NULL without room. */
static struct datagram_flow *datagram_flow_of(struct explainer *x, const struct pkt *p)
{
    struct datagram_flow k = {.sqpn = p->deth.srcqp, .dqpn = p->bth.dqpn, .dup = NO_INCIDENT, .late = NO_INCIDENT}, *f;

    k.tap = conn_tap_of(p->frame);
    conn_addr_of(p, &k.src, &k.dst);
    for (uint32_t i = 0; i < x->n_datagrams; i++)
        if (same_ends(x->datagrams[i], &k))
            return x->datagrams[i];
    f = x->n_datagrams < DATAGRAM_FLOWS ? malloc(sizeof *f) : NULL;
    if (!f) {
        x->more_datagrams = true;
        return NULL;
    }
    *f = k;
    x->datagrams[x->n_datagrams++] = f;
    return f;
}

/* Add a frame to the incident that gathers them. */
static void gather(struct explainer *x, const struct datagram_flow *f, const struct pkt *p, uint32_t *about,
                   enum cause cause, const struct fact *what)
{
    struct incident *st = incident_at(x, *about);

    if (!st) {
        st = incident_new(x, cause, FLOW_NONE, p);
        if (!st)
            return;
        *about = incident_number(x, st);
        st->place = cause == CAUSE_REORDER ? PLACE_BEFORE : PLACE_UNKNOWN;
        st->sqpn = f->sqpn;
        incident_is(st, what);
    }
    incident_frame(st, cause == CAUSE_REORDER ? ROLE_LOST : ROLE_EVIDENCE, frame_u32(p));
}

static void note_gap(struct datagram_flow *f, const struct pkt *p)
{
    if (!f->missing)
        f->first_gap = p->frame->ts;
    f->missing += f->seen.gap;
    for (unsigned i = 0; i < ARRAY_LEN(f->gaps); i++)
        if (!f->gaps[i].missing) {
            f->gaps[i].psn = f->seen.passed;
            f->gaps[i].end = psn_add(f->seen.passed, f->seen.gap);
            f->gaps[i].frame = frame_u32(p);
            f->gaps[i].missing = f->seen.gap;
            return;
        }
}

static void note_late(struct datagram_flow *f, uint32_t psn)
{
    f->missing--;
    for (unsigned i = 0; i < ARRAY_LEN(f->gaps); i++)
        if (f->gaps[i].missing && psn_in(psn, f->gaps[i].psn, (f->gaps[i].end - f->gaps[i].psn) & PSN_MASK))
            f->gaps[i].missing--;
}

/* A datagram with another Q_Key or P_Key than the first datagram to its queue pair: one incident for all of them. */
static void report_other_key(struct explainer *x, const struct pkt *p, const struct qkey_seen *q, uint32_t *about,
                             enum cause cause, uint32_t key, uint32_t first)
{
    struct incident *st = incident_at(x, *about);

    if (st) {
        incident_frame(st, ROLE_LOST, frame_u32(p));
        return;
    }
    st = incident_new(x, cause, FLOW_NONE, p);
    if (!st)
        return;
    *about = incident_number(x, st);
    incident_frame(st, ROLE_LOST, frame_u32(p));
    incident_frame(st, ROLE_EVIDENCE, q->frame);
    if (cause == CAUSE_QKEY_MISMATCH)
        incident_is(st, SAY(QKEY_DATAGRAM, .lost = frame_u32(p), .key = key, .other = q->frame, .key2 = first));
    else
        incident_is(st, SAY(PKEY_DATAGRAM, .lost = frame_u32(p), .key = key, .other = q->frame, .key2 = first));
}

static void check_keys(struct explainer *x, const struct pkt *p)
{
    struct conn_addr src, dst;
    struct qkey_seen *q;
    uint64_t key = conn_tap_of(p->frame), a[CONN_ADDR_WORDS];

    conn_addr_of(p, &src, &dst);
    conn_addr_words(&dst, a);
    for (unsigned i = 0; i < CONN_ADDR_WORDS; i++)
        key = (key ^ a[i]) * HASH_MULTIPLIER;
    key = (key ^ p->bth.dqpn) * HASH_MULTIPLIER | 1;
    q = &x->qkeys[key >> 56];
    if (q->key != key) {
        *q = (struct qkey_seen){key, p->deth.qkey, frame_u32(p), p->bth.pkey, NO_INCIDENT, NO_INCIDENT};
        return;
    }
    if (q->qkey != p->deth.qkey)
        report_other_key(x, p, q, &q->q_incident, CAUSE_QKEY_MISMATCH, p->deth.qkey, q->qkey);
    if ((q->pkey ^ p->bth.pkey) & 0x7fff)
        report_other_key(x, p, q, &q->p_incident, CAUSE_PKEY_MISMATCH, p->bth.pkey, q->pkey);
}

void explain_datagram(struct explainer *x, const struct pkt *p)
{
    struct datagram_flow *f = p->bth.dqpn == 1 ? NULL : datagram_flow_of(x, p);
    enum seen_as as = f ? datagrams_take(&f->seen, p) : SEEN_NEW;

    if (p->bth.dqpn != 1)
        check_keys(x, p);
    if (!f)
        return;
    f->packets += as != SEEN_COPY;
    if (f->seen.gap)
        note_gap(f, p);
    if (as == SEEN_LATE) {
        note_late(f, p->bth.psn);
        gather(x, f, p, &f->late, CAUSE_REORDER, SAY(DATAGRAMS_LATE));
    } else if (as == SEEN_COPY) {
        gather(x, f, p, &f->dup, CAUSE_DUPLICATE, SAY(DATAGRAMS_TWICE));
    }
}

/* True if the queue pair sends to another destination as well: its PSNs count the datagrams to all of them. */
static bool has_others(const struct explainer *x, const struct datagram_flow *f)
{
    for (uint32_t i = 0; i < x->n_datagrams; i++) {
        const struct datagram_flow *o = x->datagrams[i];
        if (o != f && o->tap == f->tap && o->sqpn == f->sqpn && conn_addr_eq(&o->src, &f->src))
            return true;
    }
    return x->more_datagrams;
}

/* Most datagrams of a queue pair came, all to one destination: those missing were lost. */
static void end_datagrams(struct explainer *x, const struct datagram_flow *f)
{
    bool tell = f->missing && f->missing < f->packets && !has_others(x, f);
    struct incident *st = tell ? incident_new(x, CAUSE_MISSING_DATAGRAM, FLOW_NONE, NULL) : NULL;

    if (!st)
        return;
    st->tap = f->tap;
    st->src = f->src;
    st->dst = f->dst;
    st->sqpn = f->sqpn;
    st->qpn = f->dqpn;
    st->start = f->first_gap;
    for (unsigned i = 0; i < ARRAY_LEN(f->gaps); i++)
        incident_frame(st, ROLE_INSTEAD, f->gaps[i].missing ? f->gaps[i].frame : 0);
    incident_is(st, SAY(DATAGRAMS_MISSING, .n = (uint32_t)f->missing, .m = f->packets));
}

void explain_datagrams_end(struct explainer *x)
{
    for (uint32_t i = 0; i < x->n_datagrams; i++)
        end_datagrams(x, x->datagrams[i]);
}
