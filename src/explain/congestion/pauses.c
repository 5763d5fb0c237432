/* layer 3 (explain): pause frames (IEEE 802.3x and 802.1Qbb): which port was paused, for how long, and what that
 * explains. */
#include "dissect/pkt.h"
#include "src/explain/congestion/congestion_impl.h"

#include <stdlib.h>

/* The priorities that a frame pauses, a mask; 0: PAUSE, which pauses all. *on: it begins a pause, else it ends one. The
 * times of PFC may be cut off: then it is taken to pause what its vector names. */
static uint8_t classes_of(const struct pause_frame *f, bool *on)
{
    uint16_t classes = f->whole ? pause_frame_paused(f) : f->classes;

    *on = classes != 0;
    return f->opcode == MACC_PAUSE ? 0 : (uint8_t)classes;
}

static struct pauser *pauser_of(struct congestion *c, const struct pkt *p)
{
    uint64_t mac = load_be64(p->data + 4) & UINT64_C(0xffffffffffff);
    uint32_t tap = conn_tap_of(p->frame);
    struct pauser *a;

    for (uint32_t i = 0; i < c->n_pausers; i++)
        if (c->pausers[i].mac == mac && c->pausers[i].tap == tap)
            return &c->pausers[i];
    if (c->n_pausers == PAUSERS)
        return NULL;
    if (!c->width) {
        c->origin = p->frame->ts;
        c->width = SLICE_FIRST;
    }
    a = &c->pausers[c->n_pausers++];
    *a = (struct pauser){.mac = mac,
                         .tap = tap,
                         .frame = frame_u32(p),
                         .from = p->frame->ts,
                         .incident = NO_INCIDENT,
                         .way = frame_way(p->frame),
                         .slices = calloc(SLICES, sizeof(ns_t))};
    return a;
}

/* Add the paused time since the latest pause frame, at most as long as that frame demanded. */
static void add_paused(struct congestion *c, struct pauser *a, ns_t now)
{
    uint64_t since = time_between(a->last, now), took = since < PAUSE_MAX ? since : PAUSE_MAX;
    ns_t till = a->on ? a->last + (ns_t)took : a->last;

    if (!a->on || !took)
        return;
    a->paused += (ns_t)took;
    for (ns_t at = a->last; a->slices && at < till;) {
        unsigned k = slice_of(c, at);
        uint64_t end = (uint64_t)c->origin + (at < c->origin ? 0 : (uint64_t)(k + 1) * (uint64_t)c->width);
        uint64_t left = end - (uint64_t)at, rest = time_between(at, till);
        ns_t part = (ns_t)(left < rest ? left : rest);
        a->slices[k] += part;
        at += part;
    }
    if (time_between(a->since, till) > time_between(a->long_from, a->long_to)) {
        a->long_from = a->since;
        a->long_to = till;
    }
}

/* The longest time that the frame asks for, in which no packet can pass whatever the rate of the link. */
static ns_t sure_time(const struct pause_frame *f)
{
    unsigned most = 0;

    for (unsigned i = 0; i < PAUSE_CLASSES; i++)
        most = f->classes >> i & 1 && f->quanta[i] > most ? f->quanta[i] : most;
    return (ns_t)most * PAUSE_QUANTUM_BITS / 400;
}

void explain_pause(struct explainer *x, const struct pkt *p)
{
    struct pause_frame f;
    bool is_pause = pause_frame_of(&f, p);
    struct congestion *c = is_pause ? congestion_of(x) : NULL;
    struct pauser *a = c ? pauser_of(c, p) : NULL;
    ns_t now = p->frame->ts;
    bool on;

    if (!a)
        return;
    add_paused(c, a, now);
    a->classes |= classes_of(&f, &on);
    if (on && (!a->on || now < a->last || time_between(a->last, now) > PAUSE_MAX))
        a->since = now;
    a->on = on;
    a->last = now;
    a->sure = ns_sum(now, sure_time(&f));
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
    ns_t all = file < EXPLAIN_FILES ? x->ended[file] - x->began[file] : 0;

    return all > 0 && a->paused <= all ? (uint32_t)(a->paused * 100 / all) : 0;
}

#define STORM (200 * NS_PER_MS) /* a pause without a break: switches take it for a storm after times like this */

/* What is said of a port that was paused; `lost`: packets were lost meanwhile. */
static void tell_pause(const struct explainer *x, struct incident *st, const struct pauser *a, bool lost)
{
    uint32_t share = share_of(x, a);

    if (a->paused < PAUSE_LONG) {
        incident_is(st, SAY(PAUSED, .n = a->classes ? MACC_PFC : MACC_PAUSE, .code = a->classes, .address = a->mac,
                            .other = a->frame));
    } else if (time_between(a->long_from, a->long_to) >= STORM) {
        st->cause = CAUSE_PAUSE_STORM;
        incident_is(st, SAY(PAUSE_STORM, .code = a->classes, .time = (ns_t)time_between(a->long_from, a->long_to),
                            .address = a->mac, .time2 = a->long_from, .m = share));
    } else {
        incident_is(st, a->classes ? SAY(PAUSED_CLASS, .code = a->classes, .time = a->paused, .address = a->mac,
                                         .n = !lost, .m = share)
                                   : SAY(PAUSED_LINK, .time = a->paused, .address = a->mac, .n = !lost, .m = share));
    }
}

static void end_pauser(struct explainer *x, struct congestion *c, struct pauser *a)
{
    uint32_t n = x->n, by = cross_new(x, CAUSE_PAUSE, a->tap, a->from);
    struct incident *st = incident_at(x, by);
    bool lost = false;

    if (!st)
        return;
    a->incident = by;
    add_paused(c, a, explain_end_of(x, a->tap));
    incident_frame(st, ROLE_EVIDENCE, a->frame);
    st->times = a->n - 1;
    for (uint32_t i = 0; i < n; i++)
        lost |= is_loss_meanwhile(&x->incidents[i], a);
    tell_pause(x, st, a, lost);
    for (uint32_t i = 0; i < n; i++)
        if (is_time_of_pause(&x->incidents[i], a) || (a->paused >= PAUSE_LONG && is_of_pause(&x->incidents[i], a)))
            cross_supersede(x, by, i);
}

void explain_pauses(struct explainer *x)
{
    struct congestion *c = x->congestion;

    if (!c)
        return;
    for (uint32_t i = 0; i < c->n_pausers; i++)
        end_pauser(x, c, &c->pausers[i]);
    explain_spread(x, c);
}
