/* layer 2b (conn): datagrams from one queue pair to another, at one tap: reordered, missing, duplicated.
 *
 * A queue pair numbers all its datagrams in the order in which it sends them, whatever their destination. So a PSN that
 * comes after later ones was reordered, but a missing PSN may have been sent to another destination. */
#ifndef RDMATRACE_CONN_UD_GAPS_H
#define RDMATRACE_CONN_UD_GAPS_H

#include "src/conn/requests.h"

#define DATAGRAMS_SEEN 256 /* PSNs remembered; a PSN further back than this means that the queue pair was reset */

struct datagrams {
    bool begun;           /* a datagram was seen */
    uint32_t start, next; /* lowest PSN seen, and the PSN after the highest */
    /* PSNs that the latest datagram skipped: their number, and the first of them */
    uint32_t gap, passed;
    ns_t begin; /* time of the first datagram, ns since 1970 */
    struct {
        bool used;      /* false: empty slot */
        uint16_t ip_id; /* 0 for IPv6 */
        uint32_t psn, icrc;
        ns_t ts;
    } seen[DATAGRAMS_SEEN]; /* the first copy of each PSN, at PSN modulo DATAGRAMS_SEEN */
};

/* Classify a datagram: SEEN_NEW, SEEN_GAP, SEEN_LATE, SEEN_COPY or SEEN_RESTART; and remember it. */
enum seen_as datagrams_take(struct datagrams *d, const struct pkt *p);

#endif
