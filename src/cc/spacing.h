/* layer 2 (cc): the spacing of the CNPs of an adapter, as a capture shows it: by queue pair, by pair of addresses, by
 * destination, and all. Which of them an adapter keeps apart is its choice (np.h). */
#ifndef RDMATRACE_CC_SPACING_H
#define RDMATRACE_CC_SPACING_H

#include "hist.h"
#include "src/cc/np.h"

#define NP_SCOPES (NP_PORT + 1)
/* As many CNPs are looked at together: one that waited behind other packets is closer to the next one than the adapter
 * had them. */
#define SPACING_RUN 8

/* The latest CNPs of one scope: of one queue pair, one pair of addresses, ... */
struct spacing_slot {
    uint64_t key; /* 0: unused */
    uint64_t n;
    ns_t ts[SPACING_RUN]; /* a ring */
};
#define SPACING_SLOTS 8192

/* Zero at first. */
struct spacing {
    struct spacing_slot slot[SPACING_SLOTS];
    uint64_t crowded; /* CNPs of which some scope had no room: their spacing is not known */
};

/* The times between two CNPs of an adapter, by scope (enum np_scope). */
struct spacing_times {
    struct hist of[NP_SCOPES];
};

/* A CNP. */
struct spacing_cnp {
    uint64_t adapter; /* whose it is, any number but the same for all of its CNPs */
    uint8_t src[16], dst[16];
    uint32_t qpn;
    ns_t ts;
};

/* Note a CNP, in *t. span[scope]: the time since the CNP SPACING_RUN - 1 before it; NS_NEVER: there were fewer. */
void spacing_take(struct spacing *s, struct spacing_times *t, const struct spacing_cnp *c, ns_t span[NP_SCOPES]);
/* The scope that the adapter seems to keep apart: the narrowest one whose shortest time is more than twice that of the
 * next wider one; NP_PORT: none is. NP_SCOPES: there are too few CNPs to tell. */
enum np_scope spacing_scope(const struct spacing_times *t);

#endif
