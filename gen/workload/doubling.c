/* layer 3 (workload): all-reduce by recursive doubling: in step k two ranks whose numbers differ in bit k exchange all
 * that they have. What arrives in a step has a place of its own, where the sum is made: what is sent does not change.
 */
#include "gen/workload/collective.h"

static uint64_t memory(const struct coll *c)
{
    return c->bytes * (c->steps + 1);
}

static bool move(const struct coll *c, unsigned rank, unsigned step, struct coll_move *m)
{
    *m = (struct coll_move){
        .to = rank ^ 1u << step, .from_at = step * c->bytes, .to_at = (step + 1) * c->bytes, .bytes = c->bytes};
    return true;
}

static void finish(struct coll *c, unsigned rank, unsigned step)
{
    coll_add(c, rank, (step + 1) * c->bytes, step * c->bytes, c->bytes);
}

static bool right(const struct coll *c, unsigned rank)
{
    return coll_is_sum(c, rank, c->steps * c->bytes, 0, c->bytes);
}

const struct collective allreduce_doubling = {.steps = coll_log2,
                                              .power_of_two = true,
                                              .factor = coll_factor_allreduce,
                                              .memory = memory,
                                              .move = move,
                                              .finish = finish,
                                              .right = right};
