/* layer 3 (cores): owners: packets of a pair of addresses, taken in their order by one thread at a time, and settled in
 * the order of all. An owner's packets are those of a lane, of which there are as many as threads. */
#include "src/cores/cores_impl.h"

/* Take the packets of a lane in one batch, from `from` to before `to`.
 *
 * Inline, as gcc 12 drops calls of it: the loop reads arrays whose elements have different sizes by one register, as
 * MEM[0 + offset + register], which the search for pure functions takes for an access through a null pointer; what lies
 * behind it, the call of own() above all, then does not count (-fno-delete-null-pointer-checks: it does). */
ALWAYS_INLINE void own(struct cores *c, struct batch *b, unsigned lane, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (b->owner[i] != OWNER_NONE && b->owner[i] % c->o.threads == lane) {
            c->o.own(c->o.user, &b->logs[lane], &b->pkts[i], b->tags[i]);
            b->logged[i] = (uint32_t)b->logs[lane].len;
        }
}

/* A lane that is behind, and that no thread does; o.threads: there is none. The same thread prefers the same one. */
static unsigned lane_behind(const struct cores *c, unsigned prefers)
{
    for (unsigned i = 0; c->o.own && i < c->o.threads; i++) {
        unsigned lane = (prefers + i) % c->o.threads;
        if (!c->lanes[lane].busy && c->lanes[lane].next < c->given)
            return lane;
    }
    return c->o.threads;
}

bool owners_help(struct cores *c, unsigned prefers)
{
    unsigned i = lane_behind(c, prefers);
    struct lane *lane = &c->lanes[i];
    uint64_t to = c->given;

    if (i == c->o.threads)
        return false;
    lane->busy = true;
    pthread_mutex_unlock(&c->lock);
    for (uint64_t n = lane->next; n < to; n++)
        own(c, batch_of(c, n), i, 0, batch_of(c, n)->n);
    pthread_mutex_lock(&c->lock);
    lane->busy = false;
    lane->next = to;
    pthread_cond_signal(&c->done);
    return true;
}

bool owners_may_settle(const struct cores *c)
{
    bool done = c->o.own && c->settled < c->given;

    for (unsigned i = 0; done && i < c->o.threads; i++)
        done = c->lanes[i].next > c->settled;
    return done;
}

/* Settle the packets of a batch, which own() had, from `from` to before `to`. */
static void settle_part(struct cores *c, struct batch *b, uint32_t from, uint32_t to)
{
    uint32_t at[CORES_MAX] = {0};

    for (uint32_t i = from; i < to; i++) {
        unsigned lane = b->owner[i] % c->o.threads;
        if (b->owner[i] == OWNER_NONE)
            continue;
        c->o.settle(c->o.user, &b->pkts[i], b->logs[lane].p + at[lane], b->logged[i] - at[lane]);
        at[lane] = b->logged[i];
        c->n_owned--;
        b->owner[i] = OWNER_NONE;
    }
    for (unsigned i = 0; i < c->o.threads; i++)
        b->logs[i].len = 0;
}

void owners_settle_one(struct cores *c)
{
    struct batch *b = batch_of(c, c->settled);

    pthread_mutex_unlock(&c->lock);
    settle_part(c, b, 0, b->n);
    pthread_mutex_lock(&c->lock);
    c->settled++;
}

bool cores_has_owners(const struct cores *c)
{
    return c && c->o.own && c->n_threads;
}

void cores_own(struct cores *c, uint32_t owner, uint32_t tag)
{
    c->batch->owner[c->at - 1] = (uint16_t)(owner % CORES_OWNERS);
    c->batch->tags[c->at - 1] = tag;
    c->n_owned++;
}

/* The packets of the batch at hand that were left to owners: nobody has begun with them. */
static void settle_here(struct cores *c)
{
    struct batch *b = c->batch;
    uint32_t to = c->at;

    for (unsigned lane = 0; lane < c->o.threads; lane++)
        own(c, b, lane, c->owned_from, to);
    settle_part(c, b, c->owned_from, to);
    c->owned_from = to;
}

void cores_settle(struct cores *c)
{
    if (!c || !c->n_owned)
        return;
    pthread_mutex_lock(&c->lock);
    while (c->settled < c->given)
        if (owners_may_settle(c))
            owners_settle_one(c);
        else if (!owners_help(c, 0))
            pthread_cond_wait(&c->done, &c->lock);
    pthread_mutex_unlock(&c->lock);
    if (c->batch && c->n_owned)
        settle_here(c);
}
