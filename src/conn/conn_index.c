/* layer 2b (conn): connections learnt beforehand, found by an end; flows found by a PSN that they requested. */
#include "src/conn/conn_impl.h"
#include "zeros.h"

#include <stdlib.h>

#define NONE UINT32_MAX

/* --- Connections ------------------------------------------------------------------------------ */

/* A connection, in a chain for each of its ends: the latest first. */
struct known_entry {
    struct conn_known k;
    uint32_t next[2]; /* link: entry * 2 + end; NONE: the last */
};

struct known {
    struct known_entry *entries; /* a ring */
    uint32_t *chains;            /* by hash of an end */
    uint32_t mask;
    uint32_t max, n, at; /* entries, those in use, the oldest once all are */
};

struct known *known_new(uint32_t max)
{
    struct known *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->max = max;
    t->entries = zeros_new(max, sizeof *t->entries);
    if (!t->entries) {
        known_free(t);
        return NULL;
    }
    return t;
}

void known_free(struct known *t)
{
    if (!t)
        return;
    zeros_free(t->entries, t->max, sizeof *t->entries);
    free(t->chains);
    free(t);
}

static uint32_t *chain_of(const struct known *t, const struct conn_addr *addr, uint32_t qpn)
{
    return &t->chains[hash_of(addr, addr, qpn) & t->mask];
}

static uint32_t *link_at(const struct known *t, uint32_t link)
{
    return &t->entries[link >> 1].next[link & 1];
}

static void link_entry(struct known *t, uint32_t entry)
{
    const struct conn_known *k = &t->entries[entry].k;

    for (unsigned end = 2; end-- > 0;) { /* end 0 is found first */
        uint32_t *chain = chain_of(t, &k->addr[end], k->qpn[end]);
        t->entries[entry].next[end] = *chain;
        *chain = entry * 2 + end;
    }
}

static void unlink_entry(struct known *t, uint32_t entry)
{
    const struct conn_known *k = &t->entries[entry].k;

    for (unsigned end = 0; end < 2; end++) {
        uint32_t *at = chain_of(t, &k->addr[end], k->qpn[end]);
        while (*at != entry * 2 + end)
            at = link_at(t, *at);
        *at = t->entries[entry].next[end];
    }
}

/* Twice as many chains once there are more entries than chains; false: there are none yet, and no memory. */
static bool make_chains(struct known *t)
{
    uint32_t size = t->chains ? 2 * (t->mask + 1) : 64;
    uint32_t *chains = !t->chains || t->n > t->mask ? malloc(size * sizeof *chains) : NULL;

    if (!chains)
        return t->chains != NULL;
    free(t->chains);
    t->chains = memset(chains, 0xff, size * sizeof *chains);
    t->mask = size - 1;
    for (uint32_t i = 0; i < t->n; i++)
        link_entry(t, (t->at + i) % t->max);
    return true;
}

void known_add(struct known *t, const struct conn_known *k)
{
    uint32_t entry;

    if (!make_chains(t))
        return;
    if (t->n < t->max) {
        entry = t->n++;
    } else {
        entry = t->at;
        t->at = (t->at + 1) % t->max;
        unlink_entry(t, entry);
    }
    t->entries[entry].k = *k;
    link_entry(t, entry);
}

bool known_fits(const struct conn_known *k, const struct conn_addr *src, const struct conn_addr *dst, uint32_t dqpn,
                unsigned end)
{
    bool (*fits)(const struct conn_addr *, const struct conn_addr *) =
        k->how == PAIR_USER ? conn_addr_alike : conn_addr_eq; /* the user names no network */

    return k->qpn[end] == dqpn && fits(&k->addr[end], dst) && fits(&k->addr[!end], src);
}

struct conn_known *known_of(struct known *t, const struct conn_addr *src, const struct conn_addr *dst, uint32_t dqpn,
                            unsigned *end)
{
    uint32_t link = t->chains ? *chain_of(t, dst, dqpn) : NONE;

    for (; link != NONE; link = *link_at(t, link)) {
        *end = link & 1;
        if (known_fits(&t->entries[link >> 1].k, src, dst, dqpn, *end))
            return &t->entries[link >> 1].k;
    }
    return NULL;
}

static bool same_ends(const struct conn_known *a, const struct conn_known *b)
{
    return a->qpn[0] == b->qpn[0] && a->qpn[1] == b->qpn[1] && addr_eq(&a->addr[0], &b->addr[0]) &&
           addr_eq(&a->addr[1], &b->addr[1]);
}

struct conn_known *known_already(struct known *t, const struct conn_known *k)
{
    uint32_t link = t->chains ? *chain_of(t, &k->addr[0], k->qpn[0]) : NONE;

    for (; link != NONE; link = *link_at(t, link)) {
        struct conn_known *o = &t->entries[link >> 1].k;
        bool same = o->psn[0] == k->psn[0] && o->psn[1] == k->psn[1] && o->id[0] == k->id[0] && o->id[1] == k->id[1] &&
                    o->how == k->how;
        if (same_ends(o, k))
            return same && !(o->over && o->tap == k->tap) ? o : NULL;
    }
    return NULL;
}

struct conn_known *known_at_end(struct known *t, uint32_t tap, const struct conn_addr *addr, uint32_t qpn)
{
    uint32_t link = t->chains ? *chain_of(t, addr, qpn) : NONE;

    for (; link != NONE; link = *link_at(t, link)) {
        struct conn_known *k = &t->entries[link >> 1].k;
        if (k->tap == tap && k->qpn[link & 1] == qpn && addr_eq(&k->addr[link & 1], addr))
            return k;
    }
    return NULL;
}

/* --- PSNs ------------------------------------------------------------------------------------- */

#define SIGHTS CONN_SIGHTS /* kept; memory that is not used is not touched */

/* A flow that has requested PSNs of a block; link 0: none, else its number plus 1. */
struct sight {
    uint32_t hash, flow, next;
    bool used;
};

struct psn_index {
    struct sight sights[SIGHTS]; /* a ring */
    uint32_t chains[SIGHTS];
    uint32_t n;
};

struct psn_index *psn_index_new(void)
{
    return zeros_new(1, sizeof(struct psn_index));
}

void psn_index_free(struct psn_index *x)
{
    zeros_free(x, 1, sizeof *x);
}

static void drop(struct psn_index *x, struct sight *s)
{
    uint32_t number = (uint32_t)(s - x->sights) + 1, *at = &x->chains[s->hash % SIGHTS];

    while (*at && *at != number)
        at = &x->sights[*at - 1].next;
    *at = s->next;
    s->used = false;
}

static uint32_t block_hash(const struct conn_addr *src, const struct conn_addr *dst, uint32_t psn)
{
    return hash_of(src, dst, psn / PSN_BLOCK);
}

uint32_t psn_index_count(const struct psn_index *x)
{
    return x->n;
}

void psn_index_add(struct psn_index *x, const struct conn_addr *src, const struct conn_addr *dst, uint32_t psn,
                   uint32_t flow)
{
    uint32_t hash = block_hash(src, dst, psn), number = x->n++ % SIGHTS + 1;
    struct sight *s = &x->sights[number - 1];

    if (s->used)
        drop(x, s);
    *s = (struct sight){.hash = hash, .flow = flow, .next = x->chains[hash % SIGHTS], .used = true};
    x->chains[hash % SIGHTS] = number;
}

void psn_index_find(struct psn_index *x, const struct conn_addr *src, const struct conn_addr *dst, uint32_t psn,
                    enum psn_sight (*examine)(void *user, uint32_t flow), void *user)
{
    uint32_t hash = block_hash(src, dst, psn), *at = &x->chains[hash % SIGHTS];

    while (*at) {
        struct sight *s = &x->sights[*at - 1];
        enum psn_sight as = s->hash == hash ? examine(user, s->flow) : SIGHT_KEEP;
        if (as == SIGHT_STOP)
            return;
        s->used = as == SIGHT_KEEP;
        if (s->used)
            at = &s->next;
        else
            *at = s->next;
    }
}
