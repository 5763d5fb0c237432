/* layer 2 (cc): RoCC (CoNEXT 2020): switches find the fair rate of a queue, and tell it to the senders, which obey. */
#include "src/cc/cc_impl.h"
#include "src/cc/fair.h"

/* --- The sender ------------------------------------------------------------------------------- */

enum { P_RECOVER, P_MIN };

static const struct cc_param params[] = {
    [P_RECOVER] = {"recover", CC_TIME, "160us", "1us", "1s", NULL, "without a message for so long the rate doubles",
                   "ours: four periods; the paper gives no length"},
    [P_MIN] = {"min", CC_RATE, "1M", "1K", "100G", NULL, "the rate is never less", "ours"},
    {0}};

struct CC_STATE rocc {
    uint32_t cp; /* congestion point that has set the rate */
    bool told;   /* one has */
};

static void start(struct cc *c, ns_t now)
{
    (void)c, (void)now;
}

/* A lower rate counts, and whatever comes from the point that has set it. */
static void fair_rate(struct cc *c, uint64_t bps, uint32_t cp, ns_t now)
{
    struct rocc *r = CC_STATE_OF(c, struct rocc);

    if (bps > c->rate && !(r->told && cp == r->cp))
        return;
    cc_set_rate(c, bps, c->config->v[P_MIN]);
    r->cp = cp;
    r->told = true;
    c->deadline = c->rate < c->line ? now + (ns_t)c->config->v[P_RECOVER] : NS_NEVER;
}

static void expire(struct cc *c, ns_t now)
{
    while (c->deadline <= now) {
        cc_set_rate(c, c->rate * 2, 1);
        c->deadline = c->rate < c->line ? c->deadline + (ns_t)c->config->v[P_RECOVER] : NS_NEVER;
    }
}

const struct cc_scheme cc_rocc = {.name = "rocc",
                                  .help = "switches tell the fair rate",
                                  .needs = CC_NEEDS_FAIR,
                                  .params = params,
                                  .start = start,
                                  .fair_rate = fair_rate,
                                  .expire = expire};

/* --- The congestion point --------------------------------------------------------------------- */

#define UNIT_BYTES    600                   /* of a queue */
#define UNIT_RATE     10000000              /* bit/s */
#define FRACTION_BITS 16                    /* of a rate */
#define LEVELS        64                    /* the weights are divided by half of it, at most */
#define AT_100G       UINT64_C(70000000000) /* bit/s */

static const char conext[] = "CoNEXT 2020, at 40G";

const struct cc_param fair_params[] = {
    {"period", CC_TIME, "40us", "1us", "1s", NULL, "time between two messages", conext},
    {"ref", CC_BYTES, "150000", "600", "1G", NULL, "queue that is held", conext},
    {"mid", CC_BYTES, "300000", "600", "1G", NULL, "a rise by so much halves the rate", conext},
    {"max", CC_BYTES, "360000", "600", "1G", NULL, "such a queue sets the least rate", conext},
    {"alpha", CC_SHARE, "0.3", "0", "64", NULL, "weight of what the queue is above ref", conext},
    {"beta", CC_SHARE, "1.5", "0", "64", NULL, "weight of what it has risen by", conext},
    {"least", CC_RATE, "100M", "10M", "1600G", NULL, "least fair rate", conext},
    {"most", CC_RATE, "40G", "10M", "1600G", NULL, "largest fair rate", conext},
    {0}};

static void from_values(struct fair_config *c, const uint64_t *v)
{
    *c = (struct fair_config){v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
}

struct fair_config fair_config_default(void)
{
    struct fair_config c;
    uint64_t v[CC_PARAMS_MAX] = {0};

    cc_params_default(fair_params, v);
    from_values(&c, v);
    return c;
}

struct fair_config fair_config_for(uint64_t bps)
{
    struct fair_config c = fair_config_default();

    if (bps >= AT_100G) {
        c.reference = c.middle;
        c.middle = 600000;
        c.top = 660000;
        c.alpha = c.alpha * 3 / 2;
        c.beta = c.beta * 3 / 2;
    }
    c.most = bps;
    c.least = min_u64(c.least, bps);
    return c;
}

bool fair_parse(struct fair_config *config, const char *text, struct text_error *e)
{
    struct fair_config *c = config;
    uint64_t v[CC_PARAMS_MAX] = {c->period, c->reference, c->middle, c->top, c->alpha, c->beta, c->least, c->most};
    struct token t = token_of(text);

    if (!cc_params_parse(&(struct cc_params){fair_params, v}, 1, &t, e))
        return false;
    from_values(config, v);
    return c->least <= c->most || text_fail(e, NULL, "least is above most");
}

static int64_t units(uint64_t bps)
{
    return (int64_t)cc_mul_div(bps, 1 << FRACTION_BITS, UNIT_RATE);
}

void fair_init(struct fair *f, const struct fair_config *config, ns_t now)
{
    *f = (struct fair){.config = config, .rate = units(config->most), .next = now + (ns_t)config->period};
}

/* weight * bytes, as a rate. */
static int64_t weighted(uint64_t weight, int64_t bytes, uint64_t divisor)
{
    __int128 x = (__int128)bytes * (int64_t)weight * (1 << FRACTION_BITS);

    return (int64_t)(x / UNIT_BYTES / (int64_t)CC_ONE / (int64_t)divisor);
}

/* The smaller the rate, the smaller the steps. */
static uint64_t divisor_of(const struct fair *f)
{
    uint64_t level = 2;

    while (f->rate < units(f->config->most) / (int64_t)level && level < LEVELS)
        level *= 2;
    return level / 2;
}

bool fair_is_idle(const struct fair *f)
{
    return !f->queue && f->rate == units(f->config->most);
}

uint64_t fair_step(struct fair *f, uint64_t queue)
{
    const struct fair_config *c = f->config;
    int64_t rise = (int64_t)(queue - f->queue), most = units(c->most), least = units(c->least);
    uint64_t divisor;

    if (queue >= c->top && f->rate > most / 8) {
        f->rate = least;
    } else if (rise >= (int64_t)c->middle && f->rate > most / 8) {
        f->rate /= 2;
    } else {
        divisor = divisor_of(f);
        f->rate -= weighted(c->alpha, (int64_t)(queue - c->reference), divisor) + weighted(c->beta, rise, divisor);
    }
    f->rate = f->rate < least ? least : f->rate > most ? most : f->rate;
    f->queue = queue;
    f->next += (ns_t)c->period;
    return cc_mul_div((uint64_t)f->rate, UNIT_RATE, 1 << FRACTION_BITS);
}
