/* layer 3 (explain): marks and CNPs: who does not react to them. */
#include "dissect/pkt.h"
#include "src/explain/congestion/congestion_impl.h"

/* The requests of the latest slices, and the time since the first of these began, or since the first request. */
static void first_cnp(struct marks *m, const struct pkt *p)
{
    uint64_t at = (uint64_t)p->frame->ts / CNP_SLICE, first = at - (CNP_SLICES - 1);
    ns_t from = (ns_t)(first * CNP_SLICE);

    m->cnp_frame = frame_u32(p);
    m->cnp_ts = p->frame->ts;
    if (!m->first_ts)
        return;
    m->look = p->frame->ts - (m->first_ts > from ? m->first_ts : from);
    for (unsigned i = 0; i < CNP_SLICES; i++)
        if (m->slices[i].n && (uint32_t)at - m->slices[i].at < CNP_SLICES)
            m->before_cnp += m->slices[i].n;
}

static bool is_notifier(const struct congestion *c, const struct conn_addr *host, uint32_t tap)
{
    for (uint32_t i = 0; i < c->n_notifiers; i++)
        if (c->notifiers[i].tap == tap && conn_addr_eq(&c->notifiers[i].addr, host))
            return true;
    return false;
}

static void note_notifier(struct explainer *x, const struct pkt *p)
{
    struct congestion *c = congestion_of(x);
    struct conn_addr src, dst;

    conn_addr_of(p, &src, &dst);
    if (c && c->n_notifiers < NOTIFIERS && !is_notifier(c, &src, conn_tap_of(p->frame)))
        c->notifiers[c->n_notifiers++] = (struct notifier){.addr = src, .tap = conn_tap_of(p->frame)};
}

/* Nothing is known that the CNP tells of: neither a mark, nor a loss, of which adapters tell likewise. */
static bool is_without_reason(struct explainer *x, const struct marks *m, uint32_t peer, ns_t now)
{
    const struct req_dir *h = observer_req_dir(x->observer, peer);
    bool all_seen = h && (h->from_start || h->began == BEGAN_SEEN);

    return all_seen && !m->ce_packets && !req_dir_is_near_loss(h, now);
}

void explain_cnp(struct explainer *x, const struct pkt *p, uint32_t flow)
{
    uint32_t peer = flow == FLOW_NONE ? FLOW_NONE : conn_flow_at(observer_conns(x->observer), flow)->peer;
    struct flow_notes *t = flow == FLOW_NONE ? NULL : notes_of(x, peer == FLOW_NONE ? flow : peer);

    note_notifier(x, p);
    if (!t)
        return;
    if (peer == FLOW_NONE) {
        t->marks.early_cnps++;
        return;
    }
    if (is_without_reason(x, &t->marks, peer, p->frame->ts) && t->marks.unmarked_cnps++ == 0)
        t->marks.unmarked_frame = frame_u32(p);
    if (t->marks.cnps++ == 0)
        first_cnp(&t->marks, p);
    t->marks.cnp_class = p->have & H_VLAN ? (uint8_t)(p->vlan >> 13) : p->addr_len ? p->tos >> 5 : 0;
    t->marks.latest_cnp = p->frame->ts > t->marks.latest_cnp ? p->frame->ts : t->marks.latest_cnp;
}

/* --- The end of the capture -------------------------------------------------------------------- */

#define CNP_LOSSES     2  /* lost packets, from which on they follow from it */
#define THROTTLED_PART 10 /* of the time behind the first CNP: less is no slowdown */

/* True if the account of the flow says that CNPs, the first at `since`, slowed it down for a good part of the time. */
static bool is_throttled(const struct explainer *x, uint32_t flow, ns_t since)
{
    for (size_t i = 0; i < timeline_n(x->timeline); i++) {
        const struct timeline_row *r = timeline_row(x->timeline, i);
        if (r->flow == flow)
            return r->states[TIME_THROTTLED] > (r->last - since) / THROTTLED_PART;
    }
    return false;
}

/* So many marks for so long, and no CNP, are more than marks behind the receiver's tap, or CNPs on their way. */
#define MARKS_MANY 100
#define MARKS_TIME (10 * NS_PER_MS)

static void report_unmarked(struct explainer *x, uint32_t flow, const struct flow_notes *t)
{
    const struct marks *m = &t->marks;
    bool many = m->ce_packets >= MARKS_MANY && time_between(m->first_ce, m->latest_ce) >= MARKS_TIME;
    struct incident *st = incident_new(x, CAUSE_CE_WITHOUT_CNP, flow, NULL);

    if (!st)
        return;
    for (unsigned i = 0; i < m->ce_packets && i < NOTED_CE; i++)
        incident_frame(st, ROLE_EVIDENCE, m->ce_frames[i]);
    st->times = (uint32_t)m->ce_packets - st->n_frames;
    st->start = t->headers.ts;
    incident_is(
        st, many ? SAY(CE_UNHEEDED, .n = (uint32_t)m->ce_packets, .time = (ns_t)time_between(m->first_ce, m->latest_ce))
                 : SAY(CE_FEW, .n = (uint32_t)m->ce_packets));
}

/* CNPs without any mark, where all marks are seen. */
static void report_baseless(struct explainer *x, uint32_t flow, const struct flow_notes *t)
{
    struct incident *st = incident_new(x, CAUSE_CNP_WITHOUT_CE, flow, NULL);

    if (!st)
        return;
    incident_frame(st, ROLE_EVIDENCE, t->marks.unmarked_frame);
    st->start = t->marks.cnp_ts;
    st->times = t->marks.unmarked_cnps - 1;
    incident_is(
        st, SAY(CNP_BASELESS, .n = t->marks.unmarked_cnps, .m = t->headers.packets, .other = t->marks.unmarked_frame));
}

static void report_unheeded(struct explainer *x, uint32_t flow, const struct flow_notes *t, const struct fact *f)
{
    struct incident *st = incident_new(x, CAUSE_CNP_WITHOUT_SLOWDOWN, flow, NULL);

    if (!st)
        return;
    incident_frame(st, ROLE_EVIDENCE, t->marks.cnp_frame);
    st->start = t->marks.cnp_ts;
    incident_is(st, f);
}

#define SPACING_CNPS 8  /* CNPs at least, */
#define SPACING_SEEN 32 /* and so many packets within messages after the CNPs, to know the spacing */
#define SPACING_PART 4  /* part of these that follow at once; of a requester that slows down none does */

/* True if the requester sends packets as closely after CNPs as any do. */
static bool is_as_close(const struct marks *m)
{
    return m->cnps >= SPACING_CNPS && m->near >= SPACING_SEEN && m->near_close >= m->near / SPACING_PART;
}

/* `o`: of the other direction, in which CNPs come; NULL: no packet of it was captured. */
void end_congestion(struct explainer *x, uint32_t flow, const struct flow_notes *t, const struct flow_notes *o)
{
    const struct marks *m = &t->marks;
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);
    bool told = x->congestion && is_notifier(x->congestion, &f->dst, f->tap);

    if (m->ce_packets && !told && o && !o->marks.early_cnps)
        report_unmarked(x, flow, t);
    if (m->unmarked_cnps && !m->ce_packets && m->at_receiver)
        report_baseless(x, flow, t);
    if (!m->cnps || is_throttled(x, flow, m->cnp_ts))
        return;
    if (m->look >= CNP_LOOK && m->before_cnp >= 16 && m->after_cnp >= m->before_cnp)
        report_unheeded(
            x, flow, t,
            SAY(CNP_UNHEEDED, .n = m->before_cnp, .other = m->cnp_frame, .m = m->after_cnp, .time = m->look));
    else if (is_as_close(m))
        report_unheeded(
            x, flow, t,
            SAY(CNP_NO_WIDER, .n = (uint32_t)m->cnps, .other = m->cnp_frame, .m = m->near_close, .k = m->near));
}

/* Whether packets to `dst` were lost after `tap`. */
static bool are_lost_after(const struct explainer *x, uint32_t tap, const struct conn_addr *dst)
{
    for (uint32_t i = 0; i < x->n; i++) {
        const struct incident *s = &x->incidents[i];
        const struct flow *f = s->flow == FLOW_NONE ? NULL : conn_flow_at(observer_conns(x->observer), s->flow);
        if (f && s->place == PLACE_AFTER && incident_is_lost_request(s) && f->tap == tap && conn_addr_eq(&f->dst, dst))
            return true;
    }
    return false;
}

/* CNPs without a mark say nothing of their sender if packets to it are lost after the tap: what loses them there may
 * mark them there, too. */
void explain_baseless(struct explainer *x)
{
    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *st = &x->incidents[i];
        const struct flow *f = st->flow == FLOW_NONE ? NULL : conn_flow_at(observer_conns(x->observer), st->flow);
        if (f && st->cause == CAUSE_CNP_WITHOUT_CE)
            st->moot = are_lost_after(x, f->tap, &f->dst);
    }
}

/* A requester that does not slow down after CNPs: what little time its account calls throttled is no slowdown. If it
 * loses packets, they follow from it. */
void explain_unheeded(struct explainer *x, uint32_t number)
{
    struct incident *st = &x->incidents[number];
    const struct flow_notes *t = st->flow == FLOW_NONE ? NULL : x->notes[st->flow];
    uint32_t losses = 0;

    if (st->cause != CAUSE_CNP_WITHOUT_SLOWDOWN || st->moot || st->merged || !t)
        return;
    for (uint32_t i = 0; i < x->n; i++)
        losses += x->incidents[i].flow == st->flow && incident_is_lost_request(&x->incidents[i]) &&
                  x->incidents[i].start >= st->start;
    for (uint32_t i = 0; i < x->n; i++)
        if (x->incidents[i].flow == st->flow && x->incidents[i].cause == CAUSE_THROTTLED)
            cross_supersede(x, number, i);
    if (losses < CNP_LOSSES)
        return;
    if (st->facts[0].sentence == SENTENCE_CNP_NO_WIDER)
        st->facts[0].code = 1;
    else
        incident_is(st, SAY(CNP_IGNORED, .n = (uint32_t)t->marks.cnps, .other = t->marks.cnp_frame,
                            .m = t->marks.before_cnp, .k = t->marks.after_cnp, .time = t->marks.look));
    for (uint32_t i = 0; i < x->n; i++)
        if (x->incidents[i].flow == st->flow && incident_is_lost_request(&x->incidents[i]) &&
            x->incidents[i].start >= st->start)
            cross_supersede(x, number, i);
}
