/* layer 3b (tui): ascending numbers by key, as differences in linked blocks. */
#include "src/tui/groups.h"

#include "zeros.h"

struct group {
    uint32_t first, last; /* blocks, plus 1; 0: none */
    uint32_t number;      /* the latest one */
};

/* As long as a line of the cache. */
struct block {
    uint32_t before, next; /* block of the same key, plus 1; 0: none */
    uint32_t key;
    uint32_t number;   /* the first one: later blocks, of any key, have higher ones */
    uint8_t n;         /* numbers */
    uint8_t used;      /* bytes in `steps` */
    uint8_t steps[46]; /* from number to number, 7 bits a byte, the lowest first */
};

#define LOOK_BACK 1024 /* blocks among which the latest one of a key is looked for */

#define STEP_MAX 5 /* bytes of a step */

bool groups_init(struct groups *c, uint32_t keys, uint64_t memory)
{
    *c = (struct groups){.keys = keys, .of = zeros_new(keys, sizeof *c->of)};
    far_init(&c->blocks, sizeof(struct block), memory);
    return c->of != NULL;
}

void groups_free(struct groups *c)
{
    far_free(&c->blocks);
    zeros_free(c->of, c->keys, sizeof *c->of);
    c->of = NULL;
}

static struct block *block_at(const struct groups *c, uint32_t block)
{
    return (struct block *)far_at(&c->blocks, block - 1);
}

/* Begin a block with `number`. */
static bool block_begin(struct groups *c, uint32_t key, uint32_t number)
{
    struct group *of = &c->of[key];
    const struct block b = {.before = of->last, .key = key, .number = number, .n = 1};

    if (!far_add(&c->blocks, &b))
        return false;
    if (of->last)
        block_at(c, of->last)->next = (uint32_t)c->blocks.n;
    else
        of->first = (uint32_t)c->blocks.n;
    of->last = (uint32_t)c->blocks.n;
    of->number = number;
    return true;
}

bool groups_add(struct groups *c, uint32_t key, uint32_t number)
{
    struct group *of = &c->of[key];
    struct block *b = of->last ? block_at(c, of->last) : NULL;
    uint32_t step = number - of->number;

    if (!b || b->used + STEP_MAX > (int)sizeof b->steps)
        return block_begin(c, key, number);
    for (; step >= 0x80; step >>= 7)
        b->steps[b->used++] = (uint8_t)(step | 0x80);
    b->steps[b->used++] = (uint8_t)step;
    b->n++;
    of->number = number;
    return true;
}

/* The number behind `number`, whose step begins at *at. */
static uint32_t next_of(const struct block *b, uint32_t number, unsigned *at)
{
    uint32_t step = 0;

    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = b->steps[(*at)++];
        step |= (uint32_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return number + step;
    }
}

/* A block of the key that begins below `at`, near to it if the key has one there; else its first one. */
static uint32_t block_below(const struct groups *c, uint32_t key, uint32_t at)
{
    uint32_t low = 0, high = (uint32_t)c->blocks.n;

    while (low < high) { /* blocks up to `low` begin below `at` */
        uint32_t half = low + (high - low + 1) / 2;
        if (block_at(c, half)->number < at)
            low = half;
        else
            high = half - 1;
    }
    for (uint32_t i = 0; i < LOOK_BACK && i < low; i++)
        if (block_at(c, low - i)->key == key)
            return low - i;
    return c->of[key].first;
}

/* The block from which on there are at least `before` numbers below `at`, or all; 0: the key has no number. */
static uint32_t block_before(const struct groups *c, uint32_t key, uint32_t at, uint32_t before)
{
    uint32_t block = block_below(c, key, at), n = 0;

    while (block && block_at(c, block)->next && block_at(c, block_at(c, block)->next)->number < at)
        block = block_at(c, block)->next;
    while (block && block_at(c, block)->before && n < before) {
        block = block_at(c, block)->before;
        n += block_at(c, block)->n;
    }
    return block;
}

/* Of the `n` numbers below `at`, keep the last `before`. */
static size_t keep_last(uint64_t *to, size_t n, uint32_t before)
{
    if (n <= before)
        return n;
    memmove(to, to + (n - before), before * sizeof *to);
    return before;
}

size_t groups_near(const struct groups *c, uint32_t key, uint32_t at, uint32_t before, uint32_t after, uint64_t *to)
{
    size_t n = 0, below = SIZE_MAX; /* of the numbers written; not known yet */

    for (uint32_t block = block_before(c, key, at, before); block; block = block_at(c, block)->next) {
        const struct block *b = block_at(c, block);
        uint32_t number = b->number;
        for (unsigned i = 0, step = 0; i < b->n; i++) {
            if (below == SIZE_MAX && number >= at)
                below = n = keep_last(to, n, before);
            if (below != SIZE_MAX && n == below + after)
                return n;
            to[n++] = number;
            if (below == SIZE_MAX && n == before + GROUPS_SPARE)
                n = keep_last(to, n, before);
            if (i + 1u < b->n)
                number = next_of(b, number, &step);
        }
    }
    return below == SIZE_MAX ? keep_last(to, n, before) : n;
}
