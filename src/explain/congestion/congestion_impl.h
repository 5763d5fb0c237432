/* layer 3 (explain): internal: what the files about congestion share. */
#ifndef RDMATRACE_EXPLAIN_CONGESTION_IMPL_H
#define RDMATRACE_EXPLAIN_CONGESTION_IMPL_H

#include "dissect/link/macc.h"
#include "src/explain/congestion/congestion.h"
#include "src/explain/explain_impl.h"

/* --- Pauses and ports -------------------------------------------------------------------------- */

/* Time since the first pause frame in slices, whose width doubles when the capture goes on beyond the last one. */
#define SLICES      1024u
#define SLICE_FIRST (16 * NS_PER_US)

/* Pause frames of one port, at one tap. */
struct pauser {
    uint64_t mac;
    uint32_t tap, frame, n;  /* tap and frame of the first one, how many */
    uint32_t incident;       /* about it; NO_INCIDENT: none yet */
    uint8_t classes;         /* priorities paused, a mask; 0: the whole link */
    uint8_t way;             /* direction of its frames at the tap, as enum way */
    bool on;                 /* paused by the latest one */
    bool deadlocked;         /* it is part of a cycle */
    ns_t from, last;         /* of the first and of the latest one */
    ns_t paused;             /* how long it was paused */
    ns_t since;              /* paused without a break since then, if `on` */
    ns_t sure;               /* until then no packet can pass, whatever the rate of the link */
    ns_t long_from, long_to; /* the longest time without a break */
    ns_t *slices;            /* how long it was paused, by slice; NULL: no memory */
};
#define PAUSERS    64
#define PAUSE_LONG NS_PER_MS /* a pause in all, whose length is told */
/* The longest pause of one frame, at 10 Gbit/s: no RDMA port is slower. */
#define PAUSE_MAX (PAUSE_QUANTA_MAX * (ns_t)PAUSE_QUANTUM_BITS / 10)

/* Packets at one tap to one host, of those to or from which all packets there may be. */
struct port_end {
    struct conn_addr addr;
    bool always;         /* every packet so far goes to the host, or comes from it: the tap is at its link */
    ns_t last;           /* of the latest packet to it */
    uint32_t len;        /* its bytes on the link */
    uint64_t closest[4]; /* the shortest times between two packets of one length, by PER_BYTES; 0: not known */
    uint64_t *slices;    /* bytes on the link, by slice */
};
#define PER_BYTES 4096
struct port_load {
    uint32_t tap;
    struct port_end end[2];
};
#define PORTS 64

/* --- Incast ----------------------------------------------------------------------------------- */

/* Marks (CE) on packets to one host, by their senders. */
#define INCAST_KEPT 64 /* senders */
struct incast_sender {
    struct conn_addr addr;
    ns_t latest;           /* mark */
    ns_t first;            /* mark of the incast under way */
    uint32_t frame, marks; /* likewise; marks 0: it takes no part */
    bool part;             /* it took part in an incast */
};
struct incast {
    struct conn_addr dst;
    uint32_t tap;
    char iface[64];               /* name of the interface that captured them; "": not recorded, longer, or several */
    uint32_t n;                   /* senders kept */
    uint32_t times, marks, reads; /* incasts; marks, of READ responses, of the one under way */
    uint64_t all_marks;           /* of all incasts */
    ns_t from, last;              /* of the one under way; from 0: there was none yet */
    ns_t first;                   /* when the first one began */
    struct incast_sender sender[INCAST_KEPT];
    /* The one with the most marks. */
    struct incast_worst {
        uint32_t marks, reads, n;
        ns_t from, last;
        struct incast_sender sender[INCAST_KEPT];
    } worst;
};
#define INCASTS 16 /* hosts that are kept */

/* A host that sends CNPs, at a tap. */
struct notifier {
    struct conn_addr addr;
    uint32_t tap;
};
#define NOTIFIERS 256

struct congestion {
    struct notifier notifiers[NOTIFIERS];
    uint32_t n_notifiers;
    struct pauser pausers[PAUSERS];
    uint32_t n_pausers;
    struct port_load *ports[PORTS];
    uint32_t n_ports;
    ns_t origin, width;     /* of the slices; width 0: there was no pause frame */
    struct incast *incasts; /* INCASTS; NULL: no packet was marked */
    uint32_t n_incasts;
};

/* Time from `a` to `b`, whatever time stamps say; 0: `b` is earlier. */
static inline uint64_t time_between(ns_t a, ns_t b)
{
    return b > a ? (uint64_t)b - (uint64_t)a : 0;
}

/* ports.c */
/* What is kept of congestion; NULL: no memory. */
struct congestion *congestion_of(struct explainer *x);
/* The slice of a time. */
unsigned slice_of(struct congestion *c, ns_t ts);
/* Percent of what the link of a port carries to an end that was used in the slices in which `a` paused; -1: not known.
 */
int port_used(const struct congestion *c, const struct port_end *e, const struct pauser *a);
/* The port of tap `tap`, if all packets there are to or from `host`; NULL: it is no such port. */
const struct port_end *port_of_host(const struct congestion *c, uint32_t tap, const struct conn_addr *host);

/* spread.c: at the end, when each pauser has its incident: whom it paused, what is behind it, who is a victim; cycles.
 */
void explain_spread(struct explainer *x, struct congestion *c);
/* True if packets of the flow go to where `a` sends its pause frames from. */
bool pause_is_ahead(const struct explainer *x, const struct pauser *a, uint32_t flow);

/* The order of flows in which those of several taps that are one follow each other: 0. */
static inline int flow_order(const struct flow *f, const struct flow *g)
{
    int c = memcmp(&f->dst, &g->dst, sizeof f->dst);

    if (f->dqpn != g->dqpn)
        return f->dqpn < g->dqpn ? -1 : 1;
    return c ? c : memcmp(&f->src, &g->src, sizeof f->src);
}
/* True if the packets of a flow pass the tap of `a` before that of `b`, as its first packet shows. */
bool passes_first(const struct explainer *x, uint32_t a, uint32_t b);

#endif
