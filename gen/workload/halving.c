/* layer 3 (workload): all-reduce by recursive halving and doubling (Rabenseifner): first two ranks exchange the halves
 * of their range and add the half that each keeps, down to one block; then ranges are put together again. */
#include "gen/workload/collective.h"

static unsigned steps(unsigned n)
{
    return 2 * coll_log2(n);
}

static uint64_t memory(const struct coll *c)
{
    return 2 * c->bytes;
}

/* Step `step` of the halving: first block and blocks of the half that a rank keeps. */
static unsigned kept(const struct coll *c, unsigned rank, unsigned step, unsigned *blocks)
{
    *blocks = c->n >> (step + 1);
    return rank / *blocks * *blocks;
}

/* Where the half that arrives in this step is: behind the data, one behind the other. */
static uint64_t arrives_at(const struct coll *c, unsigned step)
{
    return 2 * c->bytes - (c->bytes >> step);
}

static bool move(const struct coll *c, unsigned rank, unsigned step, struct coll_move *m)
{
    unsigned half = c->steps / 2, blocks, back = step - half;

    if (step < half) {
        m->to = rank ^ c->n >> (step + 1);
        m->from_at = kept(c, m->to, step, &blocks) * c->block;
        m->to_at = arrives_at(c, step);
    } else {
        m->to = rank ^ 1u << back;
        blocks = 1u << back;
        m->from_at = m->to_at = (rank >> back << back) * c->block;
    }
    m->bytes = blocks * c->block;
    return true;
}

static void finish(struct coll *c, unsigned rank, unsigned step)
{
    unsigned blocks, first;

    if (step >= c->steps / 2)
        return;
    first = kept(c, rank, step, &blocks);
    coll_add(c, rank, first * c->block, arrives_at(c, step), blocks * c->block);
}

static bool right(const struct coll *c, unsigned rank)
{
    return coll_is_sum(c, rank, 0, 0, c->bytes);
}

const struct collective allreduce_halving = {.steps = steps,
                                             .power_of_two = true,
                                             .factor = coll_factor_allreduce,
                                             .memory = memory,
                                             .move = move,
                                             .finish = finish,
                                             .right = right};
