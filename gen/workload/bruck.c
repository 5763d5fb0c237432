/* layer 3 (workload): all-to-all as Bruck does it, in the logarithm of the ranks: blocks are sorted by how far they
 * have to go; in step k those that have to go 2^k farther are sent together. */
#include "gen/workload/collective.h"

/* The memory of a rank: data, blocks by distance, then what is sent and what arrives, step by step. */
static uint64_t packed(const struct coll *c, unsigned step, unsigned arrives)
{
    return 2 * c->bytes + (2 * step + arrives) * (c->n / 2 + 1) * c->block;
}

static uint64_t memory(const struct coll *c)
{
    return packed(c, c->steps, 0);
}

static uint64_t by_distance(const struct coll *c, unsigned distance)
{
    return c->bytes + distance * c->block;
}

static void init(struct coll *c, unsigned rank)
{
    for (unsigned i = 0; i < c->n; i++)
        memcpy(c->mem[rank] + by_distance(c, i), c->mem[rank] + (rank + i) % c->n * c->block, c->block);
}

/* Copy the blocks of a step, to or from where they lie together; returns their bytes. */
static uint64_t pack(struct coll *c, unsigned rank, unsigned step, bool arrives)
{
    uint64_t at = packed(c, step, arrives);

    for (unsigned i = 0; i < c->n; i++) {
        uint8_t *block = c->mem[rank] + by_distance(c, i), *together = c->mem[rank] + at;
        if (!(i >> step & 1))
            continue;
        memcpy(arrives ? block : together, arrives ? together : block, c->block);
        at += c->block;
    }
    return at - packed(c, step, arrives);
}

static void begin(struct coll *c, unsigned rank, unsigned step)
{
    pack(c, rank, step, false);
}

static void finish(struct coll *c, unsigned rank, unsigned step)
{
    pack(c, rank, step, true);
}

static bool move(const struct coll *c, unsigned rank, unsigned step, struct coll_move *m)
{
    unsigned blocks = 0;

    for (unsigned i = 0; i < c->n; i++)
        blocks += i >> step & 1;
    *m = (struct coll_move){.to = (rank + (1u << step)) % c->n,
                            .from_at = packed(c, step, 0),
                            .to_at = packed(c, step, 1),
                            .bytes = blocks * c->block};
    return true;
}

static bool right(const struct coll *c, unsigned rank)
{
    for (unsigned i = 0; i < c->n; i++) {
        unsigned of = (rank + c->n - i) % c->n;
        if (!coll_is_data(c, rank, by_distance(c, i), of, rank * c->block, c->block))
            return false;
    }
    return true;
}

const struct collective alltoall_bruck = {.steps = coll_log2,
                                          .factor = coll_factor_others,
                                          .memory = memory,
                                          .init = init,
                                          .begin = begin,
                                          .move = move,
                                          .finish = finish,
                                          .right = right};
