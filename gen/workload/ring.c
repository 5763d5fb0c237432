/* layer 3 (workload): around a ring, in blocks: all-reduce, and its two halves, reduce-scatter and all-gather. A rank
 * sends to the next one in each step. The blocks of others that are to be added arrive behind the data. */
#include "gen/workload/collective.h"

/* (`a` - `b`) mod `n` */
static unsigned less(unsigned a, unsigned b, unsigned n)
{
    return (a + n - b % n) % n;
}

static unsigned one_round(unsigned n)
{
    return n - 1;
}
static unsigned two_rounds(unsigned n)
{
    return 2 * (n - 1);
}
static uint64_t data_and_sums(const struct coll *c)
{
    return 2 * c->bytes;
}
static uint64_t data_only(const struct coll *c)
{
    return c->bytes;
}

/* The block on its way around in this step leaves `rank`, to be added. */
static bool scatter_move(const struct coll *c, unsigned rank, unsigned step, struct coll_move *m)
{
    *m = (struct coll_move){.to = (rank + 1) % c->n,
                            .from_at = less(rank, step, c->n) * c->block,
                            .to_at = c->bytes + step * c->block,
                            .bytes = c->block};
    return true;
}

static void scatter_finish(struct coll *c, unsigned rank, unsigned step)
{
    coll_add(c, rank, less(rank, step + 1, c->n) * c->block, c->bytes + step * c->block, c->block);
}

static bool scatter_right(const struct coll *c, unsigned rank)
{
    uint64_t at = (rank + 1) % c->n * c->block;

    return coll_is_sum(c, rank, at, at, c->block);
}

const struct collective reducescatter_ring = {.steps = one_round,
                                              .factor = coll_factor_others,
                                              .memory = data_and_sums,
                                              .move = scatter_move,
                                              .finish = scatter_finish,
                                              .right = scatter_right};

/* A block leaves `rank` to its place in the next one; rank r begins with block r + `first`. */
static bool gather(const struct coll *c, unsigned rank, unsigned step, unsigned first, struct coll_move *m)
{
    uint64_t at = less(rank + first, step, c->n) * c->block;

    *m = (struct coll_move){.to = (rank + 1) % c->n, .from_at = at, .to_at = at, .bytes = c->block};
    return true;
}

static bool gather_move(const struct coll *c, unsigned rank, unsigned step, struct coll_move *m)
{
    return gather(c, rank, step, 0, m);
}

static bool gather_right(const struct coll *c, unsigned rank)
{
    return coll_is_gathered(c, rank, 0, c->n);
}

const struct collective allgather_ring = {
    .steps = one_round, .factor = coll_factor_others, .memory = data_only, .move = gather_move, .right = gather_right};

static bool reduce_move(const struct coll *c, unsigned rank, unsigned step, struct coll_move *m)
{
    return step < c->n - 1 ? scatter_move(c, rank, step, m) : gather(c, rank, step - (c->n - 1), 1, m);
}

static void reduce_finish(struct coll *c, unsigned rank, unsigned step)
{
    if (step < c->n - 1)
        scatter_finish(c, rank, step);
}

static bool reduce_right(const struct coll *c, unsigned rank)
{
    return coll_is_sum(c, rank, 0, 0, c->bytes);
}

const struct collective allreduce_ring = {.steps = two_rounds,
                                          .factor = coll_factor_allreduce,
                                          .memory = data_and_sums,
                                          .move = reduce_move,
                                          .finish = reduce_finish,
                                          .right = reduce_right};
