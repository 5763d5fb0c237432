/* layer 3 (show): what remains of iWARP in anonymized packets: the headers of MPA, DDP and RDMAP, and right CRCs. */
#ifndef RDMATRACE_SHOW_ANONYMIZE_IWARP_H
#define RDMATRACE_SHOW_ANONYMIZE_IWARP_H

#include "dissect/pkt.h"
#include "src/show/pseudonym.h"

#define IWARP_NAMES                                                                                                    \
    512 /* directions of TCP connections that are followed; then the one unused for longest is given up */

/* Where in a stream the next byte belongs. Internal. */
struct iwarp_place {
    uint32_t next;     /* sequence number of the next byte */
    bool unknown;      /* where in an FPDU it is, is not known */
    bool start;        /* the unit is an MPA request or reply, not an FPDU */
    uint32_t at, len;  /* bytes of the unit so far; all of it, 0: not known yet */
    uint8_t head[84];  /* its first bytes: headers, and payload that has headers */
    uint32_t keep;     /* so many of its first bytes remain */
    uint32_t was, now; /* CRC so far: of the unit as it was, as it is written */
    bool wrong;        /* its CRC is wrong */
    bool none;         /* it has no CRC: it is 0 */
};

/* One direction of a TCP connection with iWARP. Internal. */
struct iwarp_names {
    uint8_t ends[36];         /* addresses and ports, of the sender first */
    uint64_t used;            /* when it was used last; 0: free */
    bool markers;             /* its FPDUs have markers: nothing of them remains */
    struct iwarp_place front; /* behind the latest bytes */
    struct iwarp_place again; /* behind the latest ones that came behind later ones */
};

struct iwarp_names_table {
    struct iwarp_names of[IWARP_NAMES];
    uint64_t clock;
};

/* Write what remains of the payload of `p`, if it is a TCP segment of iWARP, to `to`, a frame of the same length whose
 * payload is zero: the headers, in which STags are replaced; the CRC of an FPDU is that of what is written, or another
 * one if it was wrong. Of a stream that began before the capture, and of FPDUs with markers, nothing remains; of a
 * segment behind a gap only what begins with an FPDU, or follows what did. */
void anonymize_iwarp(struct iwarp_names_table *t, const struct pseudonyms *names, const struct pkt *p, uint8_t *to);

#endif
