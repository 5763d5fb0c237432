/* layer 3 (workload): all-reduce by recursive doubling: in step k two ranks whose numbers differ in bit k exchange all
 * that they have. What arrives in a step has a place of its own, where the sum is made: what is sent does not change.
 */
#include "gen/workload/collective.h"

static unsigned steps(unsigned n)
{
    return coll_folded(n, coll_log2(coll_power(n)));
}

/* The sum of step k is the one behind k others; then what is folded in. */
static struct coll_places places(const struct coll *c)
{
    uint64_t last = coll_log2(coll_power(c->n)) * c->bytes;

    return (struct coll_places){.in = last + c->bytes, .result = last, .out = last};
}

static uint64_t memory(const struct coll *c)
{
    return places(c).in + (coll_power(c->n) == c->n ? 0 : c->bytes);
}

static bool move(const struct coll *c, unsigned rank, unsigned step, struct coll_move *m)
{
    struct coll_places at = places(c);
    bool sends;

    if (coll_fold(c, rank, &step, &at, m, &sends))
        return sends;
    *m = (struct coll_move){
        .to = rank ^ 1u << step, .from_at = step * c->bytes, .to_at = (step + 1) * c->bytes, .bytes = c->bytes};
    return true;
}

static void finish(struct coll *c, unsigned rank, unsigned step)
{
    if (!coll_fold_finish(c, rank, &step, places(c).in))
        coll_add(c, rank, (step + 1) * c->bytes, step * c->bytes, c->bytes);
}

static bool right(const struct coll *c, unsigned rank)
{
    struct coll_places at = places(c);

    return coll_fold_right(c, rank, &at);
}

const struct collective allreduce_doubling = {
    .steps = steps, .factor = coll_factor_allreduce, .memory = memory, .move = move, .finish = finish, .right = right};
