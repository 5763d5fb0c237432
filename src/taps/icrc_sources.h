/* layer 2b (taps): the senders that a tap sees, and whether their ICRCs are right: a tap may stand before the place
 * where the adapter inserts the ICRC, and then no ICRC of a sender is. Memory is bounded: senders beyond ICRC_SOURCES
 * are not counted. */
#ifndef RDMATRACE_TAPS_ICRC_SOURCES_H
#define RDMATRACE_TAPS_ICRC_SOURCES_H

#include "src/conn/conn.h"

#define ICRC_SOURCES 256

/* One sender at one tap. */
struct icrc_source {
    struct conn_addr addr;
    uint32_t tap;
    uint32_t first;         /* frame of its first packet with a wrong ICRC; 0: none */
    ns_t first_ts;          /* time of that frame; 0: it has none */
    uint64_t bad;           /* its packets with a wrong ICRC */
    bool used, good, other; /* the place is used; a packet had a right ICRC; one had a wrong ICRC other than 0 */
    bool answered;          /* responses to it were captured, with wrong ICRCs */
};

/* All zero: empty. */
struct icrc_sources {
    struct icrc_source of[ICRC_SOURCES];
};

/* Count a packet whose ICRC is right (CRC_GOOD) or wrong (CRC_BAD). Returns its sender; NULL: there is no room for it.
 */
struct icrc_source *icrc_sources_count(struct icrc_sources *t, const struct pkt *p);
/* Whether a sender's ICRCs are wrong in the capture only: captured before its adapter inserted them, or with rewritten
 * addresses. None of its ICRCs is right, and either no other sender's is, or all are 0, or its peers respond to its
 * packets. `answered`: good responses to it were captured. */
bool icrc_source_is_early(const struct icrc_sources *t, const struct icrc_source *s, bool answered);
/* Whether no ICRC of several packets of a sender is right. */
bool icrc_source_all_wrong(const struct icrc_source *s);

#endif
