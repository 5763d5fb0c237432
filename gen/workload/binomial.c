/* layer 3 (workload): broadcast from rank 0 along a binomial tree: in step k the 2^k ranks that have the data send them
 * on, each to one rank at a time. And a barrier by dissemination: empty messages, in step k to the rank 2^k farther on.
 */
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
                                              .in_order = true,
                                              .factor = coll_factor_broadcast,
                                              .memory = memory,
                                              .move = broadcast_move,
                                              .right = broadcast_right};

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
