/* layer 2b (account): where the time of each direction of requests went: what each host sends at each tap, all its
 * queue pairs together. */
#include "src/account/timeline_impl.h"

#include <stdlib.h>

/* Its place in the table, or the free one where it belongs. */
static struct port **place_of(const struct timeline *t, const struct conn_addr *a, uint32_t tap)
{
    uint64_t h = (conn_addr_hash(a) + a->network + tap) * HASH_MULTIPLIER;
    uint32_t i = (uint32_t)(h >> 32) & (t->ports_cap - 1);

    while (t->ports[i] && !(t->ports[i]->tap == tap && conn_addr_eq(&t->ports[i]->addr, a)))
        i = (i + 1) & (t->ports_cap - 1);
    return &t->ports[i];
}

/* Room for one more, so that half of the places are free. */
static bool make_room(struct timeline *t)
{
    uint32_t cap = t->ports_cap ? 2 * t->ports_cap : 64;
    struct port **old = t->ports;

    if (t->n_ports < t->ports_cap / 2)
        return true;
    t->ports = calloc(cap, sizeof(struct port *));
    if (!t->ports) {
        t->ports = old;
        return false;
    }
    t->ports_cap = cap;
    for (uint32_t i = 0; i < cap / 2 && old; i++)
        if (old[i])
            *place_of(t, &old[i]->addr, old[i]->tap) = old[i];
    free(old);
    return true;
}

struct port *timeline_port(struct timeline *t, const struct conn_addr *a, uint32_t tap)
{
    struct port **place = t->ports ? place_of(t, a, tap) : NULL;

    if (place && *place)
        return *place;
    if (t->n_ports == PORTS_MOST || !make_room(t))
        return &t->spare;
    place = place_of(t, a, tap);
    *place = calloc(1, sizeof **place);
    if (!*place)
        return &t->spare;
    t->n_ports++;
    (*place)->addr = *a;
    (*place)->tap = tap;
    return *place;
}

void timeline_ports_free(struct timeline *t)
{
    for (uint32_t i = 0; i < t->ports_cap; i++)
        free(t->ports[i]);
    free(t->ports);
}

bool timeline_others_sent(const struct timeline *t, uint32_t flow, ns_t ts)
{
    const struct direction *d = t->dirs[flow];
    const struct turn *before = d && d->host ? port_turn(d->host, 2) : NULL; /* the latest one is that request */

    return before && before->ts <= ts && d->peer && arrivals_went_on(&d->peer->in, ts);
}

/* --- What hosts share ------------------------------------------------------------------------- */

void timeline_last_frame(struct timeline *t, uint32_t tap, ns_t ts)
{
    ns_t *last = timeline_last(t, tap);

    *last = ts > *last ? ts : *last;
}

struct timeline_use timeline_use(const struct timeline *t)
{
    struct timeline_use u = {.episodes = t->n,
                             .ports = t->n_ports,
                             .guesses = t->cnp_guesses,
                             .pauses = t->n_pauses != 0,
                             .peers = t->peers,
                             .gathers = t->gathers};

    for (unsigned i = 0; i < EARLY_CNPS && t->have_cnps; i++)
        u.cnps += t->cnps[i].got.n != 0;
    return u;
}

bool timeline_use_fits(const struct timeline_use *u)
{
    return u->episodes < EPISODES_MAX && u->ports < PORTS_MOST && u->guesses < GUESSES_MOST && u->cnps <= EARLY_NEAR;
}
