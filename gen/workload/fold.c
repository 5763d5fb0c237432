/* layer 3 (workload): ranks beyond a power of two, folded into the others before an all-reduce and out of them again.
 */
#include "gen/workload/collective.h"

unsigned coll_power(unsigned n)
{
    return 1u << (coll_log2(n) - (n & (n - 1) ? 1 : 0));
}

unsigned coll_folded(unsigned n, unsigned inner)
{
    return inner + (coll_power(n) == n ? 0 : 2);
}

bool coll_fold(const struct coll *c, unsigned rank, unsigned *step, const struct coll_places *at, struct coll_move *m,
               bool *sends)
{
    unsigned power = coll_power(c->n);

    if (power == c->n)
        return false;
    if (*step == 0) {
        *m = (struct coll_move){.to = rank - power, .to_at = at->in, .bytes = c->bytes};
        *sends = rank >= power;
        return true;
    }
    if (*step == c->steps - 1) {
        *m = (struct coll_move){.to = rank + power, .from_at = at->result, .to_at = at->out, .bytes = c->bytes};
        *sends = m->to < c->n;
        return true;
    }
    --*step;
    *sends = false;
    return rank >= power;
}

bool coll_fold_finish(struct coll *c, unsigned rank, unsigned *step, uint64_t in)
{
    if (coll_power(c->n) == c->n)
        return false;
    if (*step == 0)
        coll_add(c, rank, 0, in, c->bytes);
    else if (*step < c->steps - 1)
        return --*step, false;
    return true;
}

bool coll_fold_right(const struct coll *c, unsigned rank, const struct coll_places *at)
{
    return coll_is_sum(c, rank, rank < coll_power(c->n) ? at->result : at->out, 0, c->bytes);
}
