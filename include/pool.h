/* layer 0 (base): objects of one size, packed closely, of which little memory is taken as long as there are few. */
#ifndef RDMATRACE_POOL_H
#define RDMATRACE_POOL_H

#include "types.h"
#include "zeros.h"

#include <string.h>

struct pool {
    uint8_t *all; /* zeros_new(); NULL: no memory */
    size_t size;  /* bytes of an object */
    uint32_t max; /* objects at a time */
    uint32_t n;   /* places that were ever taken: the first ones */
    void *free; /* the latest of them that was given back, which begins with a pointer to the one before; NULL: none */
};

/* A pool for `max` (at least 1) objects of `size` bytes, at least that of a pointer. Without memory `all` is NULL. */
static inline struct pool pool_new(uint32_t max, size_t size)
{
    return (struct pool){.all = zeros_new(max, size), .size = size, .max = max};
}

/* Release the memory of all objects; `p` may have none. */
static inline void pool_end(struct pool *p)
{
    zeros_free(p->all, p->max, p->size);
    p->all = NULL;
}

/* There will be many objects: see zeros_many(). */
static inline void pool_many(const struct pool *p)
{
    zeros_many(p->all, p->max, p->size);
}

/* An object, all zero; NULL: `max` are taken. */
static inline void *pool_take(struct pool *p)
{
    void *object = p->free;

    if (!object)
        return p->n < p->max ? p->all + p->n++ * p->size : NULL;
    memcpy(&p->free, object, sizeof p->free);
    memset(object, 0, sizeof p->free);
    return object;
}

/* Give back an object of pool_take(). */
static inline void pool_give(struct pool *p, void *object)
{
    memset(object, 0, p->size);
    memcpy(object, &p->free, sizeof p->free);
    p->free = object;
}

#endif
