/* layer 2b (conn): datagrams from one queue pair to another, at one tap: what their PSNs prove.
 *
 * A queue pair numbers all its datagrams in the order in which it sends them, whatever their destination. So a PSN that
 * comes after later ones was reordered, but a PSN that is missing may have gone to another destination. */
#ifndef RDMATRACE_CONN_UD_GAPS_H
#define RDMATRACE_CONN_UD_GAPS_H

#include "src/conn/requests.h"

#define DATAGRAMS_SEEN                                                                                                 \
    256 /* PSNs remembered; a PSN further behind than this belongs to a queue pair that was set up anew */

struct datagrams {
    bool begun;
    uint32_t start, next; /* lowest PSN, and that behind the highest one */
    /* PSNs that the latest datagram skipped: how many, and the first of them */
    uint32_t gap, passed;
    ns_t begin; /* of the first datagram */
    struct {
        bool used;
        uint16_t ip_id;
        uint32_t psn, icrc;
        ns_t ts;
    } seen[DATAGRAMS_SEEN]; /* by PSN: the first copy */
};

/* Take a datagram: SEEN_NEW, SEEN_GAP, SEEN_LATE, SEEN_COPY or SEEN_RESTART. */
enum seen_as datagrams_take(struct datagrams *d, const struct pkt *p);

#endif
