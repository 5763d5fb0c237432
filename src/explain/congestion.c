/* layer 3 (explain): congestion: CNPs, and pause frames (IEEE 802.3x and 802.1Qbb): which port was paused, for how
 * long, and what that explains. And packets that are neither request nor response. */
#include "dissect/ip/mpa.h"
#include "dissect/link/macc.h"
#include "dissect/pkt.h"
#include "src/explain/explain_impl.h"

#include <stdlib.h>

#define PAUSE_LONG NS_PER_MS /* a pause whose length is printed */
/* The longest pause of one frame, at 10 Gbit/s: no RDMA port is slower. */
#define PAUSE_MAX (PAUSE_QUANTA_MAX * (ns_t)PAUSE_QUANTUM_BITS / 10)

/* --- CNPs ------------------------------------------------------------------------------------- */

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

static void explain_cnp(struct explainer *x, const struct pkt *p, uint32_t flow)
{
    uint32_t peer = flow == FLOW_NONE ? FLOW_NONE : conn_flow_at(observer_conns(x->observer), flow)->peer;
    struct flow_notes *t = flow == FLOW_NONE ? NULL : notes_of(x, peer == FLOW_NONE ? flow : peer);

    if (!t)
        return;
    if (peer == FLOW_NONE) {
        t->marks.early_cnps++;
        return;
    }
    if (t->marks.cnps++ == 0)
        first_cnp(&t->marks, p);
    t->marks.latest_cnp = p->frame->ts;
}

/* --- Pause frames ------------------------------------------------------------------------------ */

/* The priorities that a frame pauses, a mask; 0: PAUSE, which pauses all. *on: it begins a pause, else it ends one. The
 * times of PFC may be cut off: then it is taken to pause what its vector names. */
static uint8_t classes_of(const struct pause_frame *f, bool *on)
{
    uint16_t classes = f->whole ? pause_frame_paused(f) : f->classes;

    *on = classes != 0;
    return f->opcode == MACC_PAUSE ? 0 : (uint8_t)classes;
}

static struct pauser *pauser_of(struct explainer *x, const struct pkt *p)
{
    uint64_t mac = load_be64(p->data + 4) & UINT64_C(0xffffffffffff);
    uint32_t tap = conn_tap_of(p->frame);

    for (uint32_t i = 0; i < x->n_pausers; i++)
        if (x->pausers[i].mac == mac && x->pausers[i].tap == tap)
            return &x->pausers[i];
    if (x->n_pausers == PAUSERS)
        return NULL;
    x->pausers[x->n_pausers] = (struct pauser){.mac = mac, .tap = tap, .frame = frame_u32(p), .from = p->frame->ts};
    return &x->pausers[x->n_pausers++];
}

/* Add the paused time since the latest pause frame, at most as long as that frame demanded. */
static void add_paused(struct pauser *a, ns_t now)
{
    if (a->on && now > a->last)
        a->paused += now - a->last < PAUSE_MAX ? now - a->last : PAUSE_MAX;
}

void explain_pause(struct explainer *x, const struct pkt *p)
{
    struct pause_frame f;
    struct pauser *a = pause_frame_of(&f, p) ? pauser_of(x, p) : NULL;

    if (!a)
        return;
    add_paused(a, p->frame->ts);
    a->classes |= classes_of(&f, &a->on);
    a->last = p->frame->ts;
    a->n++;
}

#define PAUSE_PART 4 /* of an ACK timeout by a pause, at most such a part lies outside the pause */

/* True if the connection waited long while no pause held it: its class was not paused, or not so long. */
static bool outlasts_pauses(const struct incident *st, ns_t took)
{
    return st->states[TIME_ACK_TIMEOUT] > took / PAUSE_PART;
}

/* True if the pause explains the incident: it is a silence within the paused time, and the retransmission did not come
 * later. */
static bool is_of_pause(const struct incident *st, const struct pauser *a)
{
    bool timeout =
        st->cause == CAUSE_LOST_LAST_PACKET || st->cause == CAUSE_EARLY_TIMEOUT || st->cause == CAUSE_LOST_ACK;
    bool late = timeout || (st->cause == CAUSE_PAUSE && st->flow != FLOW_NONE) ||
                (st->cause == CAUSE_PACKET_LOSS && st->unanswered);
    ns_t took = st->lost > st->silence ? st->lost : st->silence, latest = st->start + st->lost - st->arrival;

    if (!late || st->tap != a->tap || !incident_stands(st) || outlasts_pauses(st, took))
        return false;
    return st->start <= a->last && st->start + took >= a->from && (!st->arrived || latest <= a->last + PAUSE_MAX);
}

/* True if an incident gathers the time that pause frames took, of which another tap than its own saw the frames. */
static bool is_time_of_pause(const struct incident *st, const struct pauser *a)
{
    return st->cause == CAUSE_PAUSE && st->of_time && !st->n_frames && !st->merged && !st->superseded_by &&
           st->tap != a->tap;
}

/* True if a packet was lost while the port was paused, or may have been: what was retransmitted is not known to have
 * only waited. */
static bool is_loss_meanwhile(const struct incident *st, const struct pauser *a)
{
    static const uint64_t losses = UINT64_C(1) << CAUSE_PACKET_LOSS | UINT64_C(1) << CAUSE_LOST_READ_RESPONSE |
                                   UINT64_C(1) << CAUSE_LOST_LAST_PACKET | UINT64_C(1) << CAUSE_LOST_ACK |
                                   UINT64_C(1) << CAUSE_BAD_ICRC | UINT64_C(1) << CAUSE_RETRY_EXCEEDED |
                                   UINT64_C(1) << CAUSE_SILENT_PEER;
    bool during = st->tap == a->tap && st->start <= a->last && st->start + st->lost >= a->from;

    return !st->moot && during && losses >> st->cause & 1;
}

/* Percent of the capture of its file that the port was paused. */
static uint32_t share_of(const struct explainer *x, const struct pauser *a)
{
    uint32_t file = a->tap >> 16;
    ns_t all = file < EXPLAIN_FILES ? x->last - x->began[file] : 0;

    return all > 0 && a->paused <= all ? (uint32_t)(a->paused * 100 / all) : 0;
}

static void end_pauser(struct explainer *x, struct pauser *a)
{
    uint32_t n = x->n, by = cross_new(x, CAUSE_PAUSE, a->tap, a->from);
    struct incident *st = incident_at(x, by);
    bool lost = false;

    if (!st)
        return;
    add_paused(a, x->last);
    incident_frame(st, ROLE_EVIDENCE, a->frame);
    st->times = a->n - 1;
    if (a->paused < PAUSE_LONG) {
        incident_is(st, SAY(PAUSED, .n = a->classes ? MACC_PFC : MACC_PAUSE, .code = a->classes, .address = a->mac,
                            .other = a->frame));
    } else {
        for (uint32_t i = 0; i < n; i++)
            lost |= is_loss_meanwhile(&x->incidents[i], a);
        incident_is(st, a->classes
                            ? SAY(PAUSED_CLASS, .code = a->classes, .time = a->paused, .address = a->mac, .n = !lost,
                                  .m = share_of(x, a))
                            : SAY(PAUSED_LINK, .time = a->paused, .address = a->mac, .n = !lost, .m = share_of(x, a)));
    }
    for (uint32_t i = 0; i < n; i++)
        if (is_time_of_pause(&x->incidents[i], a) || (a->paused >= PAUSE_LONG && is_of_pause(&x->incidents[i], a)))
            cross_supersede(x, by, i);
}

void explain_pauses(struct explainer *x)
{
    for (uint32_t i = 0; i < x->n_pausers; i++)
        end_pauser(x, &x->pausers[i]);
}

/* --- Incast ----------------------------------------------------------------------------------- */

static struct incast *incast_of(struct explainer *x, uint32_t tap, const struct conn_addr *dst)
{
    if (!x->incasts && !(x->incasts = calloc(INCASTS, sizeof *x->incasts)))
        return NULL;
    for (uint32_t i = 0; i < x->n_incasts; i++)
        if (x->incasts[i].tap == tap && conn_addr_eq(&x->incasts[i].dst, dst))
            return &x->incasts[i];
    if (x->n_incasts == INCASTS)
        return NULL;
    x->incasts[x->n_incasts] = (struct incast){.tap = tap, .dst = *dst};
    return &x->incasts[x->n_incasts++];
}

/* The sender; where there is no room, in place of the one that was marked longest ago. */
static struct incast_sender *sender_of(struct incast *c, const struct conn_addr *src)
{
    struct incast_sender *oldest = &c->sender[0];

    for (uint32_t i = 0; i < c->n; i++) {
        if (conn_addr_eq(&c->sender[i].addr, src))
            return &c->sender[i];
        oldest = c->sender[i].latest < oldest->latest ? &c->sender[i] : oldest;
    }
    if (c->n < INCAST_KEPT)
        oldest = &c->sender[c->n++];
    *oldest = (struct incast_sender){.addr = *src};
    return oldest;
}

/* The incast under way is over. */
static void end_incast(struct incast *c)
{
    if (c->marks > c->worst.marks) {
        c->worst =
            (struct incast_worst){.marks = c->marks, .reads = c->reads, .n = c->n, .from = c->from, .last = c->last};
        memcpy(c->worst.sender, c->sender, sizeof c->sender);
    }
    for (uint32_t i = 0; i < c->n; i++)
        c->sender[i].marks = 0;
    c->all_marks += c->marks;
    c->marks = c->reads = 0;
}

void explain_mark(struct explainer *x, const struct pkt *p)
{
    struct conn_addr src, dst;
    struct incast *c;
    struct incast_sender *s;
    ns_t now = p->frame->ts;
    uint32_t n = 0;

    conn_addr_of(p, &src, &dst);
    if (!(c = incast_of(x, conn_tap_of(p->frame), &dst)))
        return;
    s = sender_of(c, &src);
    s->latest = now;
    for (uint32_t i = 0; i < c->n; i++)
        n += now - c->sender[i].latest < INCAST_WITHIN;
    if (c->marks && now - c->last >= INCAST_WITHIN)
        end_incast(c);
    if (n < INCAST_HOSTS)
        return;
    if (!c->marks) {
        c->from = now;
        c->times++;
    }
    if (s->marks++ == 0) {
        s->first = now;
        s->frame = frame_u32(p);
    }
    c->marks++;
    c->reads += (p->op->flags & OPF_READ_RESP) != 0;
    c->last = now;
}

/* Every sender of the worst incast, the earliest first, as far as there is room. */
static void tell_senders(struct incident *st, struct incast_worst *w)
{
    for (;;) {
        struct incast_sender *first = NULL;
        for (uint32_t i = 0; i < w->n; i++)
            if (w->sender[i].marks && (!first || w->sender[i].first < first->first))
                first = &w->sender[i];
        if (!first)
            return;
        incident_frame(st, ROLE_EVIDENCE, first->frame);
        incident_add(st, SAY(INCAST_FROM, .end = first->addr, .time = first->first - w->from, .m = first->marks,
                             .other = first->frame));
        first->marks = 0;
    }
}

void explain_incasts(struct explainer *x)
{
    for (uint32_t i = 0; i < x->n_incasts; i++) {
        struct incast *c = &x->incasts[i];
        struct incast_worst *w = &c->worst;
        struct incident *st;
        uint32_t n = 0;
        end_incast(c);
        for (uint32_t k = 0; k < w->n; k++)
            n += w->sender[k].marks != 0;
        st = n < INCAST_HOSTS ? NULL : incident_at(x, cross_new(x, CAUSE_INCAST, c->tap, w->from));
        if (!st)
            continue;
        st->dst = c->dst;
        incident_is(st, w->reads == w->marks
                            ? SAY(INCAST_READ, .n = n, .m = w->marks, .time = w->last - w->from,
                                  .k = (uint32_t)c->all_marks - w->marks, .code = (uint8_t)min_u32(c->times - 1, 255))
                            : SAY(INCAST, .n = n, .m = w->marks, .time = w->last - w->from,
                                  .k = (uint32_t)c->all_marks - w->marks, .code = (uint8_t)min_u32(c->times - 1, 255)));
        tell_senders(st, w);
    }
}

/* --- Neither request nor response ------------------------------------------------------------- */

void explain_other(struct explainer *x, const struct pkt *p, uint32_t flow)
{
    if (!(p->have & H_BTH) || p->have & H_MAD) {
        explain_at_taps(x, p);
        explain_host(x, p);
    }
    if (!(p->have & H_BTH)) {
        if (p->addr_len && mpa_is_request(p))
            x->mpa_frame = x->mpa++ ? x->mpa_frame : frame_u32(p);
        else if (p->addr_len)
            explain_icmp(x, p);
        else
            explain_pause(x, p);
    } else if (p->op->flags & OPF_CNP) {
        explain_cnp(x, p, flow);
    } else if (p->have & H_MAD) {
        explain_cm(x, p);
    } else if (p->have & H_DETH && !(p->flags & PKT_MALFORMED)) {
        explain_datagram(x, p);
    }
}
