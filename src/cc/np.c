/* layer 2 (cc): the notification point: interval, scope, delay. */
#include "src/cc/np.h"

#include "prng.h"

#include <stddef.h>

#define TRIES 8 /* slots looked at */

static const char paper[] = "CoNEXT 2016, 3.1: one CNP in 50 us and flow";
static const char mlxconfig[] = "mstflint and mlxconfig: np_cnp_dscp, np_cnp_802p_prio";

const struct cc_param np_params[] = {
    {"interval", CC_TIME, "50us", "0", "1s", NULL, "time between two CNPs, at least (mlx5: 4us)", paper},
    {"scope", CC_WORD, "qp", NULL, "qp,ip_pair,dest_ip,port", NULL, "what the interval is about", paper},
    {"per_ce", CC_WORD, "no", NULL, "no,yes", NULL, "a CNP for every marked packet (some adapters of NSDI 2023, 7.2)",
     "ours"},
    {"delay", CC_TIME, "0", "0", "1s", NULL, "time from the mark to the CNP (55us was measured)", "ours"},
    {"reads", CC_WORD, "yes", NULL, "no,yes", NULL, "also for READ responses, to the responder", "ours"},
    {"dscp", CC_COUNT, "48", "0", "64", NULL, "DSCP of CNPs; 64: the queue pair's own", mlxconfig},
    {"prio", CC_COUNT, "6", "0", "8", NULL, "802.1p priority of CNPs; 8: the queue pair's own", mlxconfig},
    {0}};

static void from_values(struct np_config *c, const uint64_t *v)
{
    *c = (struct np_config){v[0], v[1], v[2], v[3], v[4], v[5], v[6]};
}

struct np_config np_config_default(void)
{
    struct np_config c;
    uint64_t v[CC_PARAMS_MAX] = {0};

    cc_params_default(np_params, v);
    from_values(&c, v);
    return c;
}

bool np_parse(struct np_config *config, const char *text, struct text_error *e)
{
    struct np_config *c = config;
    uint64_t v[CC_PARAMS_MAX] = {c->interval, c->scope, c->per_ce, c->delay, c->reads, c->dscp, c->prio};
    struct token t = token_of(text);

    if (!cc_params_parse(&(struct cc_params){np_params, v}, 1, &t, e))
        return false;
    from_values(config, v);
    return true;
}

void np_init(struct np *np, const struct np_config *config, struct np_slot *slot, uint32_t n)
{
    *np = (struct np){.config = config, .slot = slot, .mask = n ? n - 1 : 0};
}

static uint64_t mix_address(uint64_t key, const uint8_t a[16])
{
    return prng_mix(prng_mix(key ^ load_le64(a)) ^ load_le64(a + 8));
}

/* CNPs go to the source of the marked packet. */
static uint64_t key_of(const struct np_config *c, const uint8_t *src, const uint8_t *dst)
{
    uint64_t key = mix_address(prng_mix(c->scope + 1), src);

    return c->scope == NP_IP_PAIR ? mix_address(key, dst) : key;
}

/* The slot of a key: its own, else a free one, else that which is free soonest. */
static struct np_slot *slot_of(struct np *np, uint64_t key, ns_t now)
{
    struct np_slot *best = &np->slot[key & np->mask];

    for (uint32_t i = 0; i < TRIES && i <= np->mask; i++) {
        struct np_slot *s = &np->slot[(key + i) & np->mask];
        if (s->key == key && s->until)
            return s;
        if (s->until < best->until)
            best = s;
    }
    np->crowded += best->until > now;
    *best = (struct np_slot){.key = key};
    return best;
}

ns_t np_marked(struct np *np, const uint8_t src[16], const uint8_t dst[16], ns_t *qp_until, bool read, ns_t now)
{
    const struct np_config *c = np->config;
    ns_t *until = c->scope == NP_QP ? qp_until : &np->port_until;

    if (read && !c->reads)
        return NS_NEVER;
    if (c->per_ce || !c->interval)
        return now + (ns_t)c->delay;
    if (c->scope == NP_IP_PAIR || c->scope == NP_DEST_IP)
        until = &slot_of(np, key_of(c, src, dst), now)->until;
    if (*until > now)
        return NS_NEVER;
    *until = now + (ns_t)c->interval;
    return now + (ns_t)c->delay;
}
