/* layer 2b (ulp): commands, and responses, of which the snap length cut what ties them: identifiers and descriptors.
 *
 * A response without an identifier answers the only open command that it may answer, where all that the client sent was
 * captured. If it may answer several, it is `vague`: none of them is known to be open from then on. Once as many such
 * responses came as commands are open, these have all been answered. */
#include "src/ulp/ulp_impl.h"

#define OPEN_MAX 64 /* open commands among which one is looked for */

void ulp_offer_untold(struct ulp_command *cmd, enum ulp_dir dir, uint32_t rkey, uint64_t va)
{
    struct command *d = (struct command *)cmd;

    cmd->untold[dir] = true;
    d->untold[dir].known = true;
    d->untold[dir].rkey = rkey;
    d->untold[dir].va = va;
    d->untold[dir].base = d->offered[dir];
}

/* Whether the memory begins where the command offered some of an unknown length. */
static bool offered_there(const struct command *d, const struct ulp_unasked *u)
{
    return d->untold[u->dir].known && d->untold[u->dir].rkey == u->rkey && u->va >= d->untold[u->dir].va;
}

/* The only open command of which the way was untold, with its R_Key (`there`), or without; NULL: none, or several. */
static struct command *untold_one(const struct ulp_conn *c, const struct ulp_unasked *u, bool there)
{
    struct command *found = NULL;

    for (struct command *d = c->open.first; d; d = d->newer) {
        if (d->c.by_server || !d->c.untold[u->dir] || (there ? !offered_there(d, u) : d->untold[u->dir].known))
            continue;
        if (found)
            return NULL;
        found = d;
    }
    return found;
}

bool ulp_give_untold(struct ulp_conn *c, const struct ulp_unasked *u)
{
    struct command *d;

    if (u->owner != ULP_CLIENT || !u->len || c->open.n > OPEN_MAX)
        return false;
    d = untold_one(c, u, true);
    if (d && ulp_offer(c, &d->c, u->dir, u->rkey, u->va, u->len)) {
        d->segments[d->n_segments - 1]->base = d->untold[u->dir].base + (u->va - d->untold[u->dir].va);
        return true;
    }
    d = d || !has_all(c, ULP_CLIENT) ? NULL : untold_one(c, u, false);
    return d && ulp_offer(c, &d->c, u->dir, u->rkey, u->va, u->len);
}

struct ulp_command *ulp_begin_nameless(struct ulp_conn *c, struct ulp_message *m)
{
    struct ulp_command *cmd;

    if (c->open.n >= OPEN_MAX)
        command_close(c, &c->open.first->c, ULP_CUT);
    cmd = ulp_begin(c, m, ~c->ulp->numbers);
    if (cmd)
        cmd->nameless = true;
    return cmd;
}

/* Whether it offered memory with this R_Key. */
static bool offered(const struct command *d, uint32_t rkey)
{
    for (unsigned dir = 0; dir < ULP_DIRS; dir++)
        if (d->untold[dir].known && d->untold[dir].rkey == rkey)
            return true;
    for (uint32_t i = 0; i < d->n_segments; i++)
        if (d->segments[i]->rkey == rkey)
            return true;
    return false;
}

/* All open commands were answered: which one by which response, nobody knows. */
static void settle_vague(struct ulp_conn *c)
{
    uint32_t n = 0;

    for (struct command *d = c->open.first; d; d = d->newer)
        n += !d->c.by_server;
    if (n > c->vague)
        return;
    c->vague = 0;
    for (struct command *d = c->open.first, *next; d; d = next) {
        next = d->newer;
        if (!d->c.by_server)
            command_close(c, &d->c, ULP_CUT);
    }
}

struct ulp_command *ulp_find_nameless(struct ulp_conn *c, const struct ulp_message *m, ulp_fits *fits)
{
    struct command *found = NULL, *by_memory = NULL;
    uint32_t n = 0;

    for (struct command *d = c->open.first; d && c->open.n <= OPEN_MAX; d = d->newer) {
        enum ulp_fit fit = d->c.by_server ? ULP_FITS_NOT : fits(&d->c, m);
        if (fit == ULP_FITS && m->invalidated && offered(d, m->invalidated))
            by_memory = d;
        found = fit == ULP_FITS ? d : found;
        n += fit != ULP_FITS_NOT;
    }
    if (by_memory && is_doubtful(c, by_memory)) { /* its R_Key may be that of another command, too */
        command_close(c, &by_memory->c, ULP_DOUBTFUL);
        return NULL;
    }
    if (by_memory)
        found = by_memory;
    else if (n != 1 || c->vague || !has_all(c, ULP_CLIENT))
        found = NULL;
    c->vague += n && !found;
    if (!found)
        settle_vague(c);
    return found ? &found->c : NULL;
}
