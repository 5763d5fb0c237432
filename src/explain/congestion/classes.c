/* layer 3 (explain): classes of traffic: all that is lost is in one. */
#include "src/explain/congestion/congestion_impl.h"

#define CLASS_LOSSES 8  /* this many losses at least, all in one class */
#define CLASS_OTHERS 10 /* the other classes have this many times as many packets at least */

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
        const struct flow_notes *t = incident_is_lost_request(st) ? x->notes[st->flow] : NULL;
        if (!t || !t->headers.have_dscp)
            continue;
        c->lossy = t->headers.dscp & 63;
        if (!c->losses[c->lossy]++)
            c->first[c->lossy] = i;
        c->n++;
    }
}

/* Classes that pause frames are for, a mask; *first: the pauser seen first. */
static uint8_t paused_classes(const struct explainer *x, const struct pauser **first)
{
    uint8_t mask = 0;

    *first = NULL;
    for (uint32_t i = 0; x->congestion && i < x->congestion->n_pausers; i++) {
        const struct pauser *a = &x->congestion->pausers[i];
        mask |= a->classes ? a->classes : 0xff;
        *first = *first ? *first : a;
    }
    return mask;
}

/* What is said of the class in which all losses are: pauses may protect only others. */
static void tell_class(struct explainer *x, struct incident *st, const struct classes *c, uint32_t others)
{
    const struct flow_notes *t = x->notes[x->incidents[c->first[c->lossy]].flow];
    const struct pauser *a;
    uint8_t paused = paused_classes(x, &a);

    if (!paused || paused >> t->headers.class & 1) {
        incident_is(st, SAY(ONE_CLASS, .n = c->n, .m = c->lossy, .k = others));
        return;
    }
    st->cause = CAUSE_WRONG_CLASS;
    incident_is(st, SAY(UNPROTECTED, .n = c->n, .m = c->lossy, .k = others, .psn2 = t->headers.class, .code = paused,
                        .other = a->frame, .tap = a->tap == st->tap ? 0 : fact_tap(a->tap)));
    incident_frame_at(st, ROLE_EVIDENCE, a->tap, a->frame);
}

/* All losses are in one class while the others carried far more packets: the class is the cause. */
void explain_classes(struct explainer *x)
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
    tell_class(x, st, &c, (uint32_t)others);
    for (uint32_t i = 0; i < n; i++)
        if (incident_is_lost_request(&x->incidents[i]))
            cross_supersede(x, by, i);
}
