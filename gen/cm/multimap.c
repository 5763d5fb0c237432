/* layer 3 (cm): a multimap from keys to things: a hash table with chains. */
#include "gen/cm/multimap.h"

#include <stdlib.h>

bool chains_init(struct chains *c, uint32_t limit)
{
    uint32_t size = 1;

    while (size < limit)
        size *= 2;
    c->mask = size - 1;
    c->first = calloc(size, sizeof *c->first);
    c->next = calloc(limit, sizeof *c->next);
    return c->first && c->next;
}

void chains_free(struct chains *c)
{
    free(c->first);
    free(c->next);
}

static uint32_t *chain_of(struct chains *c, uint32_t key)
{
    return &c->first[(key * UINT32_C(2654435761)) >> 8 & c->mask];
}

void chains_put(struct chains *c, uint32_t key, uint32_t thing)
{
    uint32_t *first = chain_of(c, key);

    c->next[thing] = *first;
    *first = thing + 1;
}

void chains_drop(struct chains *c, uint32_t key, uint32_t thing)
{
    uint32_t *link = chain_of(c, key);

    while (*link != thing + 1)
        link = &c->next[*link - 1];
    *link = c->next[thing];
}
