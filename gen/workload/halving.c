/* layer 3 (workload): reduce-scatter by recursive halving: two ranks exchange the halves of their range and add the
 * half that each keeps, down to one block; all-gather by recursive doubling: ranges are put together again; and
 * all-reduce (Rabenseifner), which is both. */
#include "gen/workload/collective.h"

static unsigned halvings(const struct coll *c)
{
    return coll_log2(coll_power(c->n));
}

static unsigned all_steps(unsigned n)
{
    return coll_folded(n, 2 * coll_log2(coll_power(n)));
}

/* Where block `i` of a power of two begins: blocks differ by one number at most. */
static uint64_t block_at(const struct coll *c, unsigned i)
{
    return c->bytes / 4 * i / coll_power(c->n) * 4;
}

/* Blocks from `first` on, `n` of them. */
static uint64_t range(const struct coll *c, unsigned first, unsigned n, uint64_t *bytes)
{
    *bytes = block_at(c, first + n) - block_at(c, first);
    return block_at(c, first);
}

/* The half that a rank keeps in this step. */
static uint64_t kept(const struct coll *c, unsigned rank, unsigned step, uint64_t *bytes)
{
    unsigned blocks = coll_power(c->n) >> (step + 1);

    return range(c, rank / blocks * blocks, blocks, bytes);
}

/* Where the half that arrives in this step is: behind the data, one behind the other. */
static uint64_t arrives_at(const struct coll *c, unsigned step)
{
    uint64_t at = c->bytes;

    for (unsigned i = 1; i <= step; i++)
        at += 4 * ((c->bytes / 4 + (1u << i) - 1) >> i);
    return at;
}

static struct coll_places places(const struct coll *c)
{
    return (struct coll_places){.in = arrives_at(c, halvings(c)), .result = 0, .out = c->bytes};
}

static uint64_t memory(const struct coll *c)
{
    return places(c).in + (coll_power(c->n) == c->n ? 0 : c->bytes);
}

static bool scatter_move(const struct coll *c, unsigned rank, unsigned step, struct coll_move *m)
{
    m->to = rank ^ coll_power(c->n) >> (step + 1);
    m->from_at = kept(c, m->to, step, &m->bytes);
    m->to_at = arrives_at(c, step);
    return true;
}

static void scatter_finish(struct coll *c, unsigned rank, unsigned step)
{
    uint64_t bytes, at = kept(c, rank, step, &bytes);

    coll_add(c, rank, at, arrives_at(c, step), bytes);
}

static bool scatter_right(const struct coll *c, unsigned rank)
{
    uint64_t bytes, at = range(c, rank, 1, &bytes);

    return coll_is_sum(c, rank, at, at, bytes);
}

const struct collective reducescatter_halving = {.steps = coll_log2,
                                                 .power_of_two = true,
                                                 .factor = coll_factor_others,
                                                 .memory = memory,
                                                 .move = scatter_move,
                                                 .finish = scatter_finish,
                                                 .right = scatter_right};

static bool gather_move(const struct coll *c, unsigned rank, unsigned step, struct coll_move *m)
{
    m->to = rank ^ 1u << step;
    m->from_at = m->to_at = range(c, rank >> step << step, 1u << step, &m->bytes);
    return true;
}

static uint64_t data_only(const struct coll *c)
{
    return c->bytes;
}

static bool gather_right(const struct coll *c, unsigned rank)
{
    return coll_is_gathered(c, rank, 0, c->n);
}

const struct collective allgather_doubling = {.steps = coll_log2,
                                              .power_of_two = true,
                                              .factor = coll_factor_others,
                                              .memory = data_only,
                                              .move = gather_move,
                                              .right = gather_right};

static bool reduce_move(const struct coll *c, unsigned rank, unsigned step, struct coll_move *m)
{
    struct coll_places at = places(c);
    bool sends;

    if (coll_fold(c, rank, &step, &at, m, &sends))
        return sends;
    return step < halvings(c) ? scatter_move(c, rank, step, m) : gather_move(c, rank, step - halvings(c), m);
}

static void reduce_finish(struct coll *c, unsigned rank, unsigned step)
{
    if (!coll_fold_finish(c, rank, &step, places(c).in) && step < halvings(c))
        scatter_finish(c, rank, step);
}

static bool reduce_right(const struct coll *c, unsigned rank)
{
    struct coll_places at = places(c);

    return coll_fold_right(c, rank, &at);
}

const struct collective allreduce_halving = {.steps = all_steps,
                                             .factor = coll_factor_allreduce,
                                             .memory = memory,
                                             .move = reduce_move,
                                             .finish = reduce_finish,
                                             .right = reduce_right};
