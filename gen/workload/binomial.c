/* layer 3 (workload): along a binomial tree from rank 0 or to it: broadcast, where in step k the 2^k ranks that have
 * the data send them on, each to one rank at a time; reduce, its mirror; scatter and gather of one block for each rank,
 * where those of a subtree travel together; broadcast by a scatter and an all-gather around a ring. And a barrier by
 * dissemination: empty messages, in step k to the rank 2^k farther on. */
#include "gen/workload/collective.h"

static uint64_t memory(const struct coll *c)
{
    return c->bytes;
}

static bool broadcast_move(const struct coll *c, unsigned rank, unsigned step, struct coll_move *m)
{
    *m = (struct coll_move){.to = rank + (1u << step), .bytes = c->bytes};
    return rank < 1u << step && m->to < c->n;
}

static bool broadcast_right(const struct coll *c, unsigned rank)
{
    return coll_is_data(c, rank, 0, 0, 0, c->bytes);
}

const struct collective broadcast_binomial = {.steps = coll_log2,
                                              .in_order = coll_log2,
                                              .factor = coll_factor_broadcast,
                                              .memory = memory,
                                              .move = broadcast_move,
                                              .right = broadcast_right};

/* --- Reduce ----------------------------------------------------------------------------------- */

/* What arrives in a step has a place of its own, behind the data. */
static uint64_t data_and_sums(const struct coll *c)
{
    return c->bytes * (c->steps + 1);
}

static bool reduce_move(const struct coll *c, unsigned rank, unsigned step, struct coll_move *m)
{
    unsigned far = 1u << (c->steps - 1 - step);

    *m = (struct coll_move){.to = rank - far, .to_at = c->bytes * (step + 1), .bytes = c->bytes};
    return rank >= far && rank < 2 * far;
}

static void reduce_finish(struct coll *c, unsigned rank, unsigned step)
{
    coll_add(c, rank, 0, c->bytes * (step + 1), c->bytes);
}

/* A rank has the sum of its subtree: of the ranks that have its bits, and others above them. */
static bool reduce_right(const struct coll *c, unsigned rank)
{
    unsigned apart = 1u << coll_log2(rank + 1);

    if (rank == 0)
        return coll_is_sum(c, rank, 0, 0, c->bytes);
    for (uint64_t i = 0; i < c->bytes / 4; i++) {
        uint32_t v, sum = 0;
        for (unsigned of = rank; of < c->n; of += apart)
            sum += coll_value(of, i);
        memcpy(&v, c->mem[rank] + 4 * i, 4);
        if (v != sum)
            return false;
    }
    return true;
}

const struct collective reduce_binomial = {.steps = coll_log2,
                                           .factor = coll_factor_broadcast,
                                           .memory = data_and_sums,
                                           .move = reduce_move,
                                           .finish = reduce_finish,
                                           .right = reduce_right};

/* --- Gather and scatter ----------------------------------------------------------------------- */

/* The blocks of the ranks from `first` on, of which there are at most `n`, travel to `to`. */
static bool blocks_move(const struct coll *c, unsigned first, unsigned n, unsigned to, struct coll_move *m)
{
    uint64_t at = first * c->block;

    n = first + n > c->n && first < c->n ? c->n - first : n;
    *m = (struct coll_move){.to = to, .from_at = at, .to_at = at, .bytes = n * c->block};
    return first < c->n;
}

/* The ranks of the subtree of `rank`; those of rank 0 are all. */
static unsigned subtree(const struct coll *c, unsigned rank)
{
    return rank ? rank & -rank : c->n;
}

static bool gather_move(const struct coll *c, unsigned rank, unsigned step, struct coll_move *m)
{
    return rank && subtree(c, rank) == 1u << step && blocks_move(c, rank, 1u << step, rank - (1u << step), m);
}

static bool gather_right(const struct coll *c, unsigned rank)
{
    return coll_is_gathered(c, rank, rank, subtree(c, rank));
}

const struct collective gather_binomial = {
    .steps = coll_log2, .factor = coll_factor_others, .memory = memory, .move = gather_move, .right = gather_right};

static bool scatter_move(const struct coll *c, unsigned rank, unsigned step, struct coll_move *m)
{
    unsigned far = 1u << (coll_log2(c->n) - 1 - step);

    return rank % (2 * far) == 0 && blocks_move(c, rank + far, far, rank + far, m);
}

static bool scatter_right(const struct coll *c, unsigned rank)
{
    uint64_t first = rank * c->block, end = (rank + subtree(c, rank)) * c->block;

    return coll_is_data(c, rank, first, 0, first, (end < c->bytes ? end : c->bytes) - first);
}

const struct collective scatter_binomial = {.steps = coll_log2,
                                            .in_order = coll_log2,
                                            .factor = coll_factor_others,
                                            .memory = memory,
                                            .move = scatter_move,
                                            .right = scatter_right};

static unsigned scatter_then_ring(unsigned n)
{
    return coll_log2(n) + n - 1;
}

static bool long_broadcast_move(const struct coll *c, unsigned rank, unsigned step, struct coll_move *m)
{
    unsigned scatter = coll_log2(c->n);

    return step < scatter ? scatter_move(c, rank, step, m) : allgather_ring.move(c, rank, step - scatter, m);
}

const struct collective broadcast_scatter = {.steps = scatter_then_ring,
                                             .in_order = coll_log2,
                                             .factor = coll_factor_broadcast,
                                             .memory = memory,
                                             .move = long_broadcast_move,
                                             .right = broadcast_right};

/* --- Barrier ---------------------------------------------------------------------------------- */

static bool barrier_move(const struct coll *c, unsigned rank, unsigned step, struct coll_move *m)
{
    *m = (struct coll_move){.to = (rank + (1u << step)) % c->n};
    return true;
}

static bool barrier_right(const struct coll *c, unsigned rank)
{
    return c->step[rank] == c->steps;
}

const struct collective barrier_dissemination = {.steps = coll_log2,
                                                 .empty = true,
                                                 .factor = coll_factor_others,
                                                 .memory = memory,
                                                 .move = barrier_move,
                                                 .right = barrier_right};
