/* layer 3 (cm): a multimap from keys to things: a hash table with chains. Several things may have the same
 * key. */
#ifndef RDMATRACE_GEN_CM_MULTIMAP_H
#define RDMATRACE_GEN_CM_MULTIMAP_H

#include "types.h"

/* Things are numbers below a limit; each is in one chain at most. */
struct chains {
    uint32_t *first; /* of each chain: a thing + 1; 0: none */
    uint32_t *next;  /* of each thing: the next thing + 1 */
    uint32_t mask;
};

/* Room for the things 0 to limit - 1, limit at least 1. False: out of memory. */
bool chains_init(struct chains *c, uint32_t limit);
void chains_free(struct chains *c);
void chains_put(struct chains *c, uint32_t key, uint32_t thing);
/* Remove a thing that was added with this key. */
void chains_drop(struct chains *c, uint32_t key, uint32_t thing);
/* The first thing + 1 of the chain of this key; 0: the chain is empty. The chain holds all things with the key, and
 * some with other keys. */
static inline uint32_t chains_first(const struct chains *c, uint32_t key)
{
    return c->first[(key * UINT32_C(2654435761)) >> 8 & c->mask];
}
/* The next thing + 1 of the chain after `thing`; 0: none. */
static inline uint32_t chains_next(const struct chains *c, uint32_t thing)
{
    return c->next[thing];
}

#endif
