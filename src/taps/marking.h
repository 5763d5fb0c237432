/* layer 2b (taps): how packets are marked (CE) between two taps, by the delay of the queue.
 *
 * A packet that was matched at two taps has a delay between them, by clocks that are known; less the least one of its
 * two hosts it is the delay of the queues on the way. Of ECN-capable packets with payload a sample is kept:
 * MARKING_SAMPLE of two hosts at two taps, 24 bytes each, for at most TAPS_LINKS of these; until one is marked between
 * the taps the latest MARKING_EARLY only. When it is full every second block of MARKING_BLOCK packets is dropped,
 * whatever they are: packets that follow each other are needed, see below.
 *
 * The curve is that of RED: none are marked up to Kmin, a share that rises evenly to Pmax at Kmax, all above. Where the
 * port marks a packet that leaves by the queue that it leaves behind (as switches with DCQCN do), that is another one
 * than the packet itself waited for: it is what a packet would wait for that comes at this moment, between those of the
 * sample that came just before and after. Shares and curve are those of the delay that tells more of the marks; if
 * both tell as much, ranges are those of both. */
#ifndef RDMATRACE_TAPS_MARKING_H
#define RDMATRACE_TAPS_MARKING_H

#include "src/conn/addr.h"
#include "types.h"

#define MARKING_SAMPLE  16384
#define MARKING_EARLY   1024
#define MARKING_BLOCK   128
#define MARKING_SHARES  8   /* rows of equal width */
#define MARKING_REPORTS 16  /* the most marked ones are reported */
#define MARKING_PACKETS 200 /* needed to say anything, */
#define MARKING_MARKS   50  /* of these, marked between the taps, */
#define MARKING_CLOCKS  8   /* and the largest delay is so many times the bound of the clocks */

/* A packet at both taps of a link. */
struct marking_sight {
    ns_t t[2];
    uint16_t len; /* payload */
    bool up;      /* from the lower address to the higher */
    uint8_t tos[2];
};

struct marking {
    struct marking_sight *of; /* NULL: none yet; a ring, until one was marked */
    uint32_t n;
    uint32_t seen; /* counted from the first one that was kept when one was marked */
    uint8_t thin;  /* only blocks whose number is a multiple of 2^thin are kept */
    bool marked;   /* a packet was marked between the taps */
};

void marking_add(struct marking *m, const struct marking_sight *s);

/* The best value, and the range in which it is with 95 % confidence, if the marks follow the curve. */
struct marking_value {
    double is, least, most;
};

/* The curve, as far as the packets tell it. */
struct marking_curve {
    bool known;
    uint32_t packets;          /* that it rests on */
    struct marking_value kmin; /* ns */
    bool full;                 /* there are packets above Kmax: this and Pmax are known; else */
    struct marking_value kmax; /* ns; `least` holds without `full`, too */
    struct marking_value pmax; /* 0 to 1 */
    struct marking_value rise; /* without `full`: of the share, in a ns */
};

enum marking_by {
    MARKING_OWN,    /* the queue that the packet waited for */
    MARKING_BEHIND, /* the queue that it left behind */
};

struct marking_share {
    uint32_t packets, marked;
};

/* Packets to one host, of one DSCP and size, between two taps. */
struct marking_report {
    uint32_t tap[2]; /* in the order in which they pass these */
    struct conn_addr dst;
    uint8_t dscp;
    uint32_t packets, marked;
    enum marking_by by; /* of the shares */
    ns_t width;         /* of a share */
    struct marking_share shares[MARKING_SHARES];
    struct marking_curve curve;
};

/* What becomes of a sight when the clocks are known. */
struct marking_point {
    uint32_t tap[2]; /* as in the report */
    struct conn_addr dst;
    uint8_t dscp;
    bool marked;
    uint16_t len;
    uint32_t link; /* points of one link have one least delay */
    ns_t left;     /* time at the later tap */
    ns_t delay;    /* from the earlier one, with an error that is about the same for all of a link */
    ns_t bound;    /* of the clocks */
    double behind; /* delay of the queue that it left behind; < 0: not known */
};

/* Group `n` points, which are reordered, and report the groups, most marked first; returns how many are in `to`. */
size_t marking_make(struct marking_point *points, size_t n, struct marking_report to[MARKING_REPORTS]);

/* Fit the curve to delays `x` from 0 to `most`, ns (marking_fit.c). The curve is not known if the marks follow none.
 * *likelihood: its logarithm, of the marks if each of 64 steps of the delay had a share of its own. */
struct marking_curve marking_fit(const double *x, const bool *marked, size_t n, double most, double *likelihood);

#endif
