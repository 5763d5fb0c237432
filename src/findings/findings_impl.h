/* layer 2b (findings): internal: findings and counts. */
#ifndef RDMATRACE_FINDINGS_FINDINGS_IMPL_H
#define RDMATRACE_FINDINGS_FINDINGS_IMPL_H

#include "src/findings/findings.h"

#define TALLIES (2 * FINDINGS_KINDS) /* size of the hash table of tallies, a power of two */

/* Number of findings of a kind: see FINDINGS_EACH. */
struct tally {
    uint64_t key; /* 0: free */
    uint32_t n;
    uint32_t first; /* index of the first of them + 1; 0: none is kept */
};

struct findings {
    struct finding *findings;
    size_t n, cap;
    struct tally *tallies;
    uint32_t n_tallies;
    struct buf strings;
    bool judged[RULE_COUNT], lost[RULE_COUNT];
    uint64_t fails[RULE_COUNT], warns[RULE_COUNT], unsure[RULE_COUNT];
    uint64_t packets, rdma_packets, unjudged[UNJUDGED_KINDS];
    uint32_t connections, highest;
    void (*left_out)(void *user, const struct finding *f); /* NULL: no callback */
    void *user;
};

/* The tally of findings like `f`; NULL: the table is full. */
struct tally *findings_tally(struct findings *r, const struct finding *f);
/* Count a finding among those like it. True if it is to be kept. */
bool findings_is_kept(struct findings *r, const struct finding *f);
/* A new entry for a finding; NULL: out of memory. */
struct finding *findings_grow(struct findings *r);
/* Keep a text; its offset, 0: none. */
uint32_t findings_string_put(struct findings *r, const char *s);

#endif
