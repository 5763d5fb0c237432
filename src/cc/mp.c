/* layer 2 (cc): the marking point: RED, and the PI controller. */
#include "src/cc/mp.h"

#include "prng.h"

#define PI_BITS 16   /* of a probability behind those of CC_ONE */
#define PI_UNIT 1000 /* bytes */

static const char conext[] = "CoNEXT 2016, the SIGCOMM 2015 values at 40G";

const struct cc_param mp_params[] = {
    {"kind", CC_WORD, "red", NULL, "off,red,pi", NULL, "how the probability is found", conext},
    {"kmin", CC_BYTES, "5000", "0", "4G", NULL, "red: no mark up to this queue", conext},
    {"kmax", CC_BYTES, "200000", "1", "4G", NULL, "red: every packet is marked above this queue", conext},
    {"pmax", CC_SHARE, "1%", "0", "1", NULL, "red: probability at kmax", conext},
    {"ref", CC_BYTES, "200000", "1", "4G", NULL, "pi: queue that is held", "CoNEXT 2016"},
    {"k1", CC_SHARE, "0.000018", "0", "1", NULL, "pi: change of the probability per 1000 bytes of change",
     "CoNEXT 2016"},
    {"k2", CC_SHARE, "0.0006", "0", "1", NULL, "pi: per 1000 bytes away from ref and second", "CoNEXT 2016"},
    {"step", CC_TIME, "10us", "1us", "1s", NULL, "pi: time between two steps", "ours: the text read gives none"},
    {"all", CC_WORD, "no", NULL, "no,yes", NULL, "yes, a fault: packets that are Not-ECT are marked, too", "ours"},
    {"drop", CC_WORD, "no", NULL, "no,yes", NULL, "yes: packets that are Not-ECT are dropped instead", "ours"},
    {0}};

static void from_values(struct mp_config *c, const uint64_t *v)
{
    *c = (struct mp_config){v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9]};
}

struct mp_config mp_config_default(void)
{
    struct mp_config c;
    uint64_t v[CC_PARAMS_MAX] = {0};

    cc_params_default(mp_params, v);
    from_values(&c, v);
    return c;
}

bool mp_parse(struct mp_config *config, const char *text, struct text_error *e)
{
    struct mp_config *c = config;
    uint64_t v[CC_PARAMS_MAX] = {c->kind, c->kmin, c->kmax, c->pmax, c->reference,
                                 c->k1,   c->k2,   c->step, c->all,  c->drop};
    struct token t = token_of(text);

    if (!cc_params_parse(&(struct cc_params){mp_params, v}, 1, &t, e))
        return false;
    from_values(config, v);
    return config->kmin <= config->kmax || text_fail(e, NULL, "kmin is above kmax");
}

void mp_init(struct mp *mp, const struct mp_config *config, uint64_t seed, ns_t now)
{
    *mp = (struct mp){.config = config, .seed = seed, .next = now + (ns_t)config->step};
}

/* Of CC_ONE. */
static uint64_t red(const struct mp_config *c, uint64_t queue)
{
    if (queue <= c->kmin)
        return 0;
    if (queue > c->kmax)
        return CC_ONE;
    return (uint64_t)((unsigned __int128)c->pmax * (queue - c->kmin) / (c->kmax - c->kmin));
}

/* p += k1 * change + k2 * error * step, both in units of 1000 bytes. */
static void pi_step(struct mp *mp, uint64_t queue)
{
    const struct mp_config *c = mp->config;
    __int128 one = (__int128)1 << PI_BITS, most = (__int128)CC_ONE * one;
    __int128 change = (__int128)(int64_t)(queue - mp->queue) * (int64_t)c->k1 * one;
    __int128 error = (__int128)(int64_t)(queue - c->reference) * (int64_t)c->k2 * (int64_t)c->step * one;
    __int128 p = mp->p + change / PI_UNIT + error / NS_PER_S / PI_UNIT;

    mp->p = (int64_t)(p < 0 ? 0 : p > most ? most : p);
    mp->queue = queue;
}

#define PI_STEPS 1000 /* made up at most, if no packet came for long */

static uint64_t pi(struct mp *mp, uint64_t queue, ns_t now)
{
    ns_t step = (ns_t)mp->config->step;

    if (now - mp->next > PI_STEPS * step)
        mp->next = now - PI_STEPS * step;
    for (; mp->next <= now; mp->next += step)
        pi_step(mp, queue);
    return (uint64_t)mp->p >> PI_BITS;
}

/* 0 to CC_ONE - 1, for packet `n`. */
static uint64_t draw(uint64_t seed, uint64_t n)
{
    return prng_mix(seed + n * UINT64_C(0x9e3779b97f4a7c15)) >> 34;
}

bool mp_marks(struct mp *mp, uint64_t queue, ns_t now)
{
    uint64_t p = mp->config->kind == MP_RED  ? red(mp->config, queue)
                 : mp->config->kind == MP_PI ? pi(mp, queue, now)
                                             : 0;
    bool mark = p && draw(mp->seed, mp->n) < p;

    mp->n++;
    mp->marked += mark;
    return mark;
}
