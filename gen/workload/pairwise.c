/* layer 3 (workload): all-to-all, pair by pair: in step k a rank sends a block to the rank k + 1 behind it. */
#include "gen/workload/collective.h"

static unsigned steps(unsigned n)
{
    return n - 1;
}

static uint64_t memory(const struct coll *c)
{
    return 2 * c->bytes;
}

static void init(struct coll *c, unsigned rank)
{
    memset(c->mem[rank] + c->bytes, 0, c->bytes);
    memcpy(c->mem[rank] + c->bytes + rank * c->block, c->mem[rank] + rank * c->block, c->block);
}

static bool move(const struct coll *c, unsigned rank, unsigned step, struct coll_move *m)
{
    unsigned to = (rank + step + 1) % c->n;

    *m = (struct coll_move){.to = to, .from_at = to * c->block, .to_at = c->bytes + rank * c->block, .bytes = c->block};
    return true;
}

static bool right(const struct coll *c, unsigned rank)
{
    for (unsigned of = 0; of < c->n; of++)
        if (!coll_is_data(c, rank, c->bytes + of * c->block, of, rank * c->block, c->block))
            return false;
    return true;
}

const struct collective alltoall_pairwise = {
    .steps = steps, .factor = coll_factor_others, .memory = memory, .init = init, .move = move, .right = right};
