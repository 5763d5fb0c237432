/* layer 3 (explain): how busy ports are while pauses hold others: bytes to the host behind a tap, by slices of time. */
#include "dissect/pkt.h"
#include "src/explain/congestion/congestion_impl.h"

#include <stdlib.h>

#define LINK_OVERHEAD  24  /* bytes of Ethernet around a captured frame: frame check sequence, preamble, gap */
#define LEN_LEAST      512 /* bytes of packets whose spacing tells the rate of the link */
#define PAUSE_REACTION (20 * NS_PER_US)

struct congestion *congestion_of(struct explainer *x)
{
    if (!x->congestion)
        x->congestion = calloc(1, sizeof *x->congestion);
    return x->congestion;
}

void congestion_free(struct congestion *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->n_pausers; i++)
        free(c->pausers[i].slices);
    for (uint32_t i = 0; i < c->n_ports; i++) {
        for (unsigned k = 0; k < 2; k++)
            free(c->ports[i]->end[k].slices);
        free(c->ports[i]);
    }
    free(c->incasts);
    free(c);
}

/* --- Slices ----------------------------------------------------------------------------------- */

static void halve(uint64_t *slices)
{
    for (unsigned i = 0; slices && i < SLICES; i++)
        slices[i] = i < SLICES / 2 ? slices[2 * i] + slices[2 * i + 1] : 0;
}

static void halve_times(ns_t *slices)
{
    for (unsigned i = 0; slices && i < SLICES; i++)
        slices[i] = i < SLICES / 2 ? slices[2 * i] + slices[2 * i + 1] : 0;
}

unsigned slice_of(struct congestion *c, ns_t ts)
{
    if (ts <= c->origin)
        return 0;
    while (time_between(c->origin, ts) / (uint64_t)c->width >= SLICES) {
        for (uint32_t i = 0; i < c->n_pausers; i++)
            halve_times(c->pausers[i].slices);
        for (uint32_t i = 0; i < c->n_ports; i++)
            for (unsigned k = 0; k < 2; k++)
                halve(c->ports[i]->end[k].slices);
        c->width *= 2;
    }
    return (unsigned)(time_between(c->origin, ts) / (uint64_t)c->width);
}

/* --- While packets pass ----------------------------------------------------------------------- */

static struct port_load *port_new(struct congestion *c, uint32_t tap, const struct conn_addr *src,
                                  const struct conn_addr *dst)
{
    struct port_load *l = c->n_ports < PORTS ? calloc(1, sizeof *l) : NULL;

    if (!l)
        return NULL;
    l->tap = tap;
    l->end[0] = (struct port_end){.addr = *dst, .always = true, .slices = calloc(SLICES, sizeof(uint64_t))};
    l->end[1] = (struct port_end){.addr = *src, .always = true, .slices = calloc(SLICES, sizeof(uint64_t))};
    return c->ports[c->n_ports++] = l;
}

static struct port_load *port_at(const struct congestion *c, uint32_t tap)
{
    for (uint32_t i = 0; i < c->n_ports; i++)
        if (c->ports[i]->tap == tap)
            return c->ports[i];
    return NULL;
}

/* Two packets of one length follow each other: one of the shortest times, by PER_BYTES? */
static void note_closest(struct port_end *e, ns_t gap, uint32_t len)
{
    uint64_t per = (uint64_t)gap * PER_BYTES / len;

    for (unsigned i = 0; i < ARRAY_LEN(e->closest) && per; i++) {
        uint64_t was = e->closest[i];
        if (was && was <= per)
            continue;
        e->closest[i] = per;
        per = was;
    }
}

static void take(struct congestion *c, struct port_end *e, const struct pkt *p)
{
    ns_t now = p->frame->ts;
    uint32_t len = p->frame->len + LINK_OVERHEAD;

    if (len == e->len && len >= LEN_LEAST && time_between(e->last, now) < NS_PER_S)
        note_closest(e, (ns_t)time_between(e->last, now), len);
    e->last = now;
    e->len = len;
    if (e->slices)
        e->slices[slice_of(c, now)] += len;
}

/* A packet passes although pauses of its port surely hold: it does not go to where they come from. */
static void note_passed(const struct explainer *x, const struct pkt *p, uint32_t tap, uint32_t own)
{
    struct flow_notes *t = own == FLOW_NONE ? NULL : x->notes[own];
    ns_t now = p->frame->ts;

    for (uint32_t i = 0; t && i < x->congestion->n_pausers; i++) {
        const struct pauser *a = &x->congestion->pausers[i];
        if (a->tap == tap && a->on && time_between(a->since, now) > PAUSE_REACTION && now < a->sure)
            t->headers.passed |= UINT64_C(1) << i;
    }
}

void explain_load(struct explainer *x, const struct pkt *p, uint32_t own)
{
    struct congestion *c = x->congestion;
    uint32_t tap = conn_tap_of(p->frame);
    struct port_load *l;
    struct conn_addr src, dst;

    if (!c->width || !p->addr_len)
        return;
    conn_addr_of(p, &src, &dst);
    if (!(l = port_at(c, tap)) && !(l = port_new(c, tap, &src, &dst)))
        return;
    for (unsigned k = 0; k < 2; k++) {
        struct port_end *e = &l->end[k];
        bool to = conn_addr_eq(&e->addr, &dst);
        e->always &= to || conn_addr_eq(&e->addr, &src);
        if (to && e->always)
            take(c, e, p);
    }
    note_passed(x, p, tap, own);
}

/* --- At the end ------------------------------------------------------------------------------- */

const struct port_end *port_of_host(const struct congestion *c, uint32_t tap, const struct conn_addr *host)
{
    const struct port_load *l = port_at(c, tap);

    for (unsigned k = 0; l && k < 2; k++)
        if (l->end[k].always && conn_addr_eq(&l->end[k].addr, host))
            return &l->end[k];
    return NULL;
}

int port_used(const struct congestion *c, const struct port_end *e, const struct pauser *a)
{
    uint64_t bytes = 0, per = e->closest[ARRAY_LEN(e->closest) - 1], time = 0;
    double used;

    if (!per || !e->slices || !a->slices)
        return -1;
    for (unsigned i = 0; i < SLICES; i++)
        if (a->slices[i]) {
            bytes += e->slices[i];
            time += (uint64_t)c->width;
        }
    if (!time)
        return -1;
    used = (double)bytes * (double)per / PER_BYTES * 100 / (double)time;
    return used < 100 ? (int)used : 100;
}
