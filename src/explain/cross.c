/* layer 3 (explain): hypotheses about several connections: one incident explains others. */
#include "src/explain/explain_impl.h"

#define CLASS_LOSSES 8  /* this many losses at least, all in one class */
#define CLASS_OTHERS 10 /* the other classes have this many times as many packets at least */
#define CNP_LOSSES   2

uint32_t cross_new(struct explainer *x, enum cause cause, uint32_t tap, ns_t start)
{
    struct incident *st = incident_new(x, cause, FLOW_NONE, NULL);

    if (!st)
        return NO_INCIDENT;
    st->tap = tap;
    st->start = start;
    return incident_number(x, st);
}

void cross_supersede(struct explainer *x, uint32_t by, uint32_t i)
{
    struct incident *st = &x->incidents[i], *o = &x->incidents[by];

    if (st->moot || st->merged || st->superseded_by || by == i)
        return;
    st->superseded_by = by + 1;
    o->supersedes++;
    o->again += st->again;
    o->lost += st->lost > 0 ? st->lost : 0;
    bill_move(x, o, st);
    if (o->flow == FLOW_NONE)
        o->conn = o->supersedes == 1 || o->conn == st->conn ? st->conn : 0;
    if (st->n_frames)
        incident_frame_at(o, (enum frame_role)st->roles[0], (uint32_t)st->files[0] << 16, st->frames[0]);
}

void incident_of_flow(struct explainer *x, struct incident *st, uint32_t flow)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);

    st->flow = flow;
    st->conn = f->conn;
    st->src = f->src;
    st->dst = f->dst;
    st->qpn = f->dqpn;
}

bool is_unheard(const struct incident *i)
{
    if (i->moot || i->merged || i->superseded_by)
        return false;
    switch (i->cause) {
    case CAUSE_RETRY_EXCEEDED:
    case CAUSE_SILENT_PEER:
    case CAUSE_CANNOT_TELL:
    case CAUSE_CM_TIMEOUT:
        return true;
    case CAUSE_LOST_LAST_PACKET:
        return !i->arrived;
    default:
        return false;
    }
}

/* --- Classes
 * ---------------------------------------------------------------------------------------------------------- */

static bool is_loss(const struct incident *st)
{
    return (st->cause == CAUSE_PACKET_LOSS || st->cause == CAUSE_LOST_LAST_PACKET) && st->is_request && !st->moot &&
           !st->merged && !st->superseded_by && st->flow != FLOW_NONE;
}

/* By DSCP: packets of all flows over IP, and lost packets. */
struct classes {
    uint64_t packets[64];
    uint32_t losses[64], first[64];
    uint32_t lossy; /* the DSCP of the latest loss counted */
    uint32_t n;     /* losses */
};

static void count_classes(struct explainer *x, struct classes *c)
{
    for (uint32_t i = 0; i < conn_counts(observer_conns(x->observer)).flows; i++) {
        const struct flow_notes *t = x->notes[i];
        if (t && t->headers.have_dscp && observer_req_dir(x->observer, i))
            c->packets[t->headers.dscp & 63] += t->headers.packets;
    }
    for (uint32_t i = 0; i < x->n; i++) {
        const struct incident *st = &x->incidents[i];
        const struct flow_notes *t = is_loss(st) ? x->notes[st->flow] : NULL;
        if (!t || !t->headers.have_dscp)
            continue;
        c->lossy = t->headers.dscp & 63;
        if (!c->losses[c->lossy]++)
            c->first[c->lossy] = i;
        c->n++;
    }
}

/* All losses are in one class while the others carried far more packets: the class is the cause. */
static void explain_classes(struct explainer *x)
{
    struct classes c = {0};
    uint64_t others = 0;
    struct incident *st;
    uint32_t by, n = x->n;

    count_classes(x, &c);
    for (unsigned d = 0; d < 64; d++)
        others += d == c.lossy ? 0 : c.packets[d];
    if (c.n < CLASS_LOSSES || c.losses[c.lossy] != c.n || others < (uint64_t)CLASS_OTHERS * c.n ||
        others * c.n < CLASS_LOSSES * c.packets[c.lossy])
        return;
    by = cross_new(x, CAUSE_PACKET_LOSS, x->incidents[c.first[c.lossy]].tap, x->incidents[c.first[c.lossy]].start);
    st = incident_at(x, by);
    if (!st)
        return;
    incident_is(st, SAY(ONE_CLASS, .n = c.n, .m = c.lossy, .k = (uint32_t)others));
    for (uint32_t i = 0; i < n; i++)
        if (is_loss(&x->incidents[i]))
            cross_supersede(x, by, i);
}

/* --- CNPs
 * ------------------------------------------------------------------------------------------------------------- */

/* A requester that does not slow down after CNPs: what little time its account calls throttled is no slowdown. If it
 * loses packets, they follow from it. */
static void explain_unheeded(struct explainer *x, uint32_t number)
{
    struct incident *st = &x->incidents[number];
    const struct flow_notes *t = st->flow == FLOW_NONE ? NULL : x->notes[st->flow];
    uint32_t losses = 0;

    if (st->cause != CAUSE_CNP_WITHOUT_SLOWDOWN || st->moot || st->merged || !t)
        return;
    for (uint32_t i = 0; i < x->n; i++)
        losses += x->incidents[i].flow == st->flow && is_loss(&x->incidents[i]) && x->incidents[i].start >= st->start;
    for (uint32_t i = 0; i < x->n; i++)
        if (x->incidents[i].flow == st->flow && x->incidents[i].cause == CAUSE_THROTTLED)
            cross_supersede(x, number, i);
    if (losses < CNP_LOSSES)
        return;
    incident_is(st, SAY(CNP_IGNORED, .n = (uint32_t)t->marks.cnps, .other = t->marks.cnp_frame,
                        .m = t->marks.before_cnp, .k = t->marks.after_cnp, .time = t->marks.look));
    for (uint32_t i = 0; i < x->n; i++)
        if (x->incidents[i].flow == st->flow && is_loss(&x->incidents[i]) && x->incidents[i].start >= st->start)
            cross_supersede(x, number, i);
}

void explain_cross(struct explainer *x)
{
    uint32_t n = x->n;

    explain_paths(x);
    explain_pauses(x);
    explain_hosts(x);
    explain_dead(x);
    explain_links(x);
    for (uint32_t i = 0; i < n; i++)
        explain_unheeded(x, i);
    explain_classes(x);
}
