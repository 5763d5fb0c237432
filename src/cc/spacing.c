/* layer 2 (cc): the spacing of CNPs, by scope. */
#include "src/cc/spacing.h"

#include "prng.h"

#define TRIES 8 /* slots looked at */

static uint64_t mix_address(uint64_t key, const uint8_t a[16])
{
    return prng_mix(prng_mix(key ^ load_le64(a)) ^ load_le64(a + 8));
}

static uint64_t key_of(const struct spacing_cnp *c, unsigned scope)
{
    uint64_t key = prng_mix(c->adapter * NP_SCOPES + scope + 1);

    if (scope != NP_PORT)
        key = mix_address(key, c->dst);
    if (scope == NP_QP || scope == NP_IP_PAIR)
        key = mix_address(key, c->src);
    if (scope == NP_QP)
        key = prng_mix(key ^ c->qpn);
    return key | 1;
}

/* The slot of a key; NULL: there is no room. */
static struct spacing_slot *slot_of(struct spacing *s, uint64_t key)
{
    for (unsigned i = 0; i < TRIES; i++) {
        struct spacing_slot *a = &s->slot[((key >> 1) + i) % SPACING_SLOTS];
        if (a->key == key)
            return a;
        if (!a->key) {
            a->key = key;
            return a;
        }
    }
    return NULL;
}

void spacing_take(struct spacing *s, struct spacing_times *t, const struct spacing_cnp *c, ns_t span[NP_SCOPES])
{
    bool crowded = false;

    for (unsigned scope = 0; scope < NP_SCOPES; scope++) {
        struct spacing_slot *a = slot_of(s, key_of(c, scope));
        span[scope] = NS_NEVER;
        crowded |= !a;
        if (!a)
            continue;
        if (a->n)
            hist_add(&t->of[scope], c->ts - a->ts[(a->n - 1) % SPACING_RUN]);
        a->ts[a->n++ % SPACING_RUN] = c->ts;
        if (a->n >= SPACING_RUN)
            span[scope] = c->ts - a->ts[a->n % SPACING_RUN];
    }
    s->crowded += crowded;
}

enum np_scope spacing_scope(const struct spacing_times *t)
{
    if (!t->of[NP_QP].n || t->of[NP_QP].n == t->of[NP_PORT].n) /* all are for one queue pair */
        return (enum np_scope)NP_SCOPES;
    for (unsigned scope = NP_QP; scope < NP_PORT; scope++) {
        const struct hist *a = &t->of[scope], *wider = &t->of[scope + 1];
        if (a->min > 2 * wider->min)
            return (enum np_scope)scope;
    }
    return NP_PORT;
}
