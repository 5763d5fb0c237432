/* layer 2b (ulp): SMC-R: the links of a link group have the same memory, with other R_Keys.
 *
 *     link 1    Add Link 2: QPN, R_Keys here and on link 2      Confirm RKey: R_Keys here, on links 2 and 3
 *     link 2    Confirm Link 2: QPN                             data in memory that link 1 told
 *
 * Several links may be added at once, and each may be told on any link that is there. */
#include "src/ulp/smcr/smcr.h"

#define WALKED 4096 /* connections that are looked at, to find another link */
#define JOINS  4    /* Confirm Link messages of a connection that it is looked for by */
#define LOOKS  200  /* tokens of a connection that are looked for on other links */

/* --- Other links ------------------------------------------------------------------------------ */

/* Another link of the same group behind `last` (NULL: the first one); NULL: none. *walked counts, from 0. */
static struct ulp_conn *next_of_group(struct ulp_conn *c, struct ulp_conn *last, unsigned *walked)
{
    const struct link *l = ulp_state(c);
    struct ulp_conn *o = l->group ? ulp_next_conn(c, last) : NULL;

    while (o && ((struct link *)ulp_state(o))->group != l->group)
        o = (*walked)++ < WALKED ? ulp_next_conn(c, o) : NULL;
    return o;
}

static bool is_same(const struct ring *a, const struct ring *b)
{
    return a->shared && b->shared && !a->gone && !b->gone && a->owner == b->owner && a->first_link == b->first_link &&
           a->first_rkey == b->first_rkey;
}

/* The ring of link `l` that is the same memory; NULL: none. */
static struct ring *same_of(struct link *l, const struct ring *r)
{
    for (unsigned i = 0; i < l->n; i++)
        if (is_same(&l->ring[i], r))
            return &l->ring[i];
    return NULL;
}

/* A ring that other links have, too. */
static void mark_shared(const struct link *l, struct ring *r)
{
    if (r->shared)
        return;
    r->shared = true;
    r->first_link = l->number;
    r->first_rkey = r->rkey;
}

/* The link has this memory of `owner`, which is `same` on another one (NULL: not known). */
static void share(struct ulp_conn *c, const struct ulp_message *m, const struct ring *same, enum ulp_side owner,
                  uint32_t rkey, uint64_t va)
{
    struct link *l = ulp_state(c);
    struct ring *r = ring_add(l, owner, rkey, va), *known = r ? r : ring_with(l, owner, rkey);

    if (known && same && !known->shared) {
        known->shared = true;
        known->first_link = same->first_link;
        known->first_rkey = same->first_rkey;
    }
    if (!r)
        return;
    if (same) {
        r->has_token = same->has_token;
        r->token = same->token;
        r->size = same->size;
        r->at = same->at;
    }
    if (l->begun)
        ring_begin(c, m, (unsigned)(r - l->ring));
}

void links_delete(struct ulp_conn *c, struct ring *r)
{
    unsigned walked = 0;

    for (struct ulp_conn *o = next_of_group(c, NULL, &walked); o && r->shared; o = next_of_group(c, o, &walked)) {
        struct ring *other = same_of(ulp_state(o), r);
        if (other)
            other->gone = true;
    }
    r->gone = true;
}

struct ring *links_ring_of(struct ulp_conn *c, enum ulp_side owner, uint32_t token, const struct ring **same)
{
    struct link *l = ulp_state(c);
    unsigned walked = 0;

    if (!l->group || l->looks >= LOOKS)
        return NULL;
    l->looks++;
    for (struct ulp_conn *o = next_of_group(c, NULL, &walked); o; o = next_of_group(c, o, &walked)) {
        const struct link *other = ulp_state(o);
        for (unsigned i = 0; i < other->n; i++) {
            const struct ring *r = &other->ring[i];
            struct ring *mine = r->has_token && r->token == token && r->owner == owner ? same_of(l, r) : NULL;
            if (mine) {
                *same = r;
                return mine;
            }
        }
    }
    return NULL;
}

/* --- What links tell of others ---------------------------------------------------------------- */

/* What `side` told of this link; NULL: nothing. */
static struct told *told_of(struct link *l, enum ulp_side side, uint8_t number)
{
    for (unsigned i = 0; i < TOLD; i++)
        if (l->told[side][i].used && l->told[side][i].link == number)
            return &l->told[side][i];
    return NULL;
}

static void tell(struct link *l, const struct ulp_message *m, struct told *t)
{
    unsigned n = smc_rkeys(m->body.b, m->body.len);

    for (unsigned i = 0; i < n && t->n < RINGS; i++) {
        struct smc_rkey k;
        struct ring *r;
        smc_rkey_get(&k, m->body.b, i);
        t->memory[t->n].here = k.rkey;
        t->memory[t->n].rkey = k.rkey_new;
        t->memory[t->n++].va = k.va;
        if ((r = ring_with(l, m->side, k.rkey)))
            mark_shared(l, r);
    }
}

void links_told(struct ulp_conn *c, struct ulp_message *m, const struct smc *s)
{
    struct link *l = ulp_state(c);
    struct told *t = told_of(l, m->side, s->link);
    unsigned n = smc_rkeys(m->body.b, m->body.len);
    struct smc_new_end e;

    for (unsigned i = 0; i < n; i++) { /* the address is that on the new link, and mostly also that on this one */
        struct smc_rkey k;
        struct ring *r;
        smc_rkey_get(&k, m->body.b, i);
        if (!ring_with(l, m->side, k.rkey) && (r = ring_add(l, m->side, k.rkey, k.va)))
            ring_begin(c, m, (unsigned)(r - l->ring));
    }
    if (s->type == SMC_ADD_LINK && smc_new_end_get(&e, m->body.b, m->body.len)) {
        t = t ? t : &l->told[m->side][l->next_told[m->side]++ % TOLD];
        *t = (struct told){.used = true, .link = s->link, .qpn = e.qpn};
        memcpy(t->gid, e.gid, sizeof t->gid);
    }
    if (t)
        tell(l, m, t);
}

void links_join(struct ulp_conn *c, const struct ulp_message *m, const struct smc *s)
{
    struct link *l = ulp_state(c);
    struct smc_new_end e;
    unsigned walked = 0;

    l->number = s->link;
    if (l->joins >= JOINS || !smc_new_end_get(&e, m->body.b, m->body.len))
        return;
    l->joins++;
    for (struct ulp_conn *o = ulp_next_conn(c, NULL); o && walked++ < WALKED; o = ulp_next_conn(c, o)) {
        struct link *other = ulp_state(o);
        const struct told *t = told_of(other, m->side, s->link);
        if (!t || !t->qpn || t->qpn != e.qpn || memcmp(t->gid, e.gid, sizeof t->gid) != 0)
            continue;
        other->group = other->group ? other->group : (load_le64(e.gid + 8) ^ e.qpn) | 1;
        l->group = other->group;
        for (unsigned side = 0; side < ULP_SIDES; side++) {
            t = told_of(other, (enum ulp_side)side, s->link);
            for (unsigned i = 0; t && i < t->n; i++)
                share(c, m, ring_with(other, (enum ulp_side)side, t->memory[i].here), (enum ulp_side)side,
                      t->memory[i].rkey, t->memory[i].va);
        }
        return;
    }
}

void links_share(struct ulp_conn *c, const struct ulp_message *m, uint32_t rkey)
{
    struct link *l = ulp_state(c);
    unsigned n = l->group ? smc_others(m->body.b, m->body.len) : 0;
    struct ring *r = ring_with(l, m->side, rkey);

    if (n && r)
        mark_shared(l, r);
    for (unsigned i = 0; i < n; i++) {
        struct smc_other k;
        unsigned walked = 0;
        smc_other_get(&k, m->body.b, i);
        for (struct ulp_conn *o = next_of_group(c, NULL, &walked); o; o = next_of_group(c, o, &walked))
            if (((struct link *)ulp_state(o))->number == k.link)
                share(o, m, r, m->side, k.rkey, k.va);
    }
}
