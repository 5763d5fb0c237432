/* layer 3 (show): counts over all packets of a run. */
#ifndef RDMATRACE_SHOW_SUMMARY_H
#define RDMATRACE_SHOW_SUMMARY_H

#include "buf.h"

struct pkt;

/* Counters. Zero-initialise. */
struct summary {
    uint64_t packets;
    uint64_t bytes;       /* on the wire */
    uint64_t payload;     /* bytes of InfiniBand payload, without pad */
    uint64_t encap[4];    /* by enum encap */
    uint64_t opcode[256]; /* InfiniBand packets by opcode */
    uint64_t icrc[4];     /* by enum crc_status */
    uint64_t vcrc[4];     /* by enum crc_status */
    uint64_t malformed;   /* packets */
    uint64_t cut;         /* packets cut by the snap length */
    uint64_t naks;        /* AETH with a NAK code */
    uint64_t rnr_naks;    /* AETH with an RNR NAK */
    uint64_t ce;          /* packets with ECN "congestion experienced" in the IP header */
    ns_t first, last;     /* earliest and latest time stamp, ns since 1970 */
    bool timed;           /* first and last are valid */
};

/* Count a packet. */
void summary_add(struct summary *s, const struct pkt *p);
/* Append the counters as text, those that are not 0. */
void summary_print(struct buf *b, const struct summary *s);

#endif
