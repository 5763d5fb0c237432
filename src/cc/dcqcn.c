/* layer 2 (cc): DCQCN as its paper has it: a CNP cuts the rate by alpha / 2; a timer and a byte counter raise it again
 * (SIGCOMM 2015; order of the steps and values as in CoNEXT 2016, "ECN or Delay", 3.1).
 *
 *   rate      RT (target) and RC (current): fast recovery halves the distance, F times
 *   RT  -----.                    .---------------------
 *            |            .------'          .---  additive increase raises RT
 *   RC  -----'.     .----'
 *             '----'  CNP: RT = RC, RC -= RC * alpha / 2 */
#include "src/cc/cc_impl.h"

enum { P_G, P_K, P_T, P_B, P_F, P_AI, P_HAI, P_MIN };

static const char conext[] = "CoNEXT 2016, 3.1";

static const struct cc_param params[] = {
    [P_G] = {"g", CC_SHARE, "1/256", "1/65536", "1", NULL, "weight of a CNP in alpha", conext},
    [P_K] = {"k", CC_TIME, "55us", "1us", "1s", NULL, "period in which alpha decays without a CNP", conext},
    [P_T] = {"t", CC_TIME, "55us", "1us", "1s", NULL, "period of the timer that raises the rate", conext},
    [P_B] = {"b", CC_BYTES, "10000000", "1000", "4G", NULL, "bytes after which the rate is raised", conext},
    [P_F] = {"f", CC_COUNT, "5", "1", "1000", "steps", "steps of fast recovery", conext},
    [P_AI] = {"ai", CC_RATE, "40M", "1K", "100G", NULL, "additive increase of the target, per step", conext},
    [P_HAI] = {"hai", CC_RATE, "400M", "1K", "100G", NULL, "hyper increase of the target, per step",
               "ours: the texts read give no value"},
    [P_MIN] = {"min", CC_RATE, "1M", "1K", "100G", NULL, "the rate is never less",
               "mlx5's rp_min_rate: the texts read give no value"},
    {0}};

struct CC_STATE dcqcn {
    uint64_t target;       /* RT, bit/s */
    uint64_t alpha;        /* of CC_ONE */
    uint64_t bytes;        /* since the byte counter's latest step */
    uint32_t timer, count; /* steps of the timer and of the byte counter since the latest CNP */
    ns_t alpha_due, rate_due;
    bool active; /* a CNP has come */
};

static void set_deadline(struct cc *c, const struct dcqcn *d)
{
    c->deadline = min_ns(d->alpha_due, d->rate_due);
}

static void start(struct cc *c, ns_t now)
{
    struct dcqcn *d = CC_STATE_OF(c, struct dcqcn);

    (void)now;
    d->target = c->rate;
    d->alpha = CC_ONE;
    d->alpha_due = d->rate_due = NS_NEVER;
}

static void cnp(struct cc *c, ns_t now)
{
    struct dcqcn *d = CC_STATE_OF(c, struct dcqcn);
    const uint64_t *p = c->config->v;

    d->target = c->rate;
    cc_set_rate(c, c->rate - cc_part(c->rate, d->alpha) / 2, p[P_MIN]);
    d->alpha += cc_part(CC_ONE - d->alpha, p[P_G]);
    d->timer = d->count = 0;
    d->bytes = 0;
    d->alpha_due = now + (ns_t)p[P_K];
    d->rate_due = now + (ns_t)p[P_T];
    d->active = true;
    set_deadline(c, d);
}

/* One step of the timer or of the byte counter. At the rate of the line there is nothing left to raise. */
static void increase(struct cc *c, struct dcqcn *d)
{
    const uint64_t *p = c->config->v;
    uint32_t most = max_u32(d->timer, d->count), least = min_u32(d->timer, d->count), f = (uint32_t)p[P_F];

    if (least > f)
        d->target += (least - f) * p[P_HAI];
    else if (most >= f)
        d->target += p[P_AI];
    d->target = min_u64(d->target, c->line);
    cc_set_rate(c, (d->target + c->rate + 1) / 2, p[P_MIN]);
    if (c->rate == c->line)
        d->rate_due = NS_NEVER;
}

static void sent(struct cc *c, uint32_t bytes, ns_t now)
{
    struct dcqcn *d = CC_STATE_OF(c, struct dcqcn);

    (void)now;
    if (!d->active || c->rate == c->line)
        return;
    d->bytes += bytes;
    for (; d->bytes >= c->config->v[P_B]; d->bytes -= c->config->v[P_B]) {
        d->count++;
        increase(c, d);
    }
    set_deadline(c, d);
}

static void expire(struct cc *c, ns_t now)
{
    struct dcqcn *d = CC_STATE_OF(c, struct dcqcn);
    const uint64_t *p = c->config->v;

    while (c->deadline <= now) {
        if (d->alpha_due <= d->rate_due) {
            d->alpha -= max_u64(cc_part(d->alpha, p[P_G]), d->alpha != 0);
            d->alpha_due = d->alpha ? d->alpha_due + (ns_t)p[P_K] : NS_NEVER;
        } else {
            d->rate_due += (ns_t)p[P_T];
            d->timer++;
            increase(c, d);
        }
        set_deadline(c, d);
    }
}

static bool look(const struct cc *c, unsigned i, struct cc_value *v)
{
    const struct dcqcn *d = CC_STATE_OF(c, const struct dcqcn);

    if (i == 0)
        *v = (struct cc_value){"alpha", d->alpha, CC_SHARE};
    else
        *v = (struct cc_value){"target", d->target, CC_RATE};
    return i < 2;
}

const struct cc_scheme cc_dcqcn = {.name = "dcqcn",
                                   .help = "CNPs cut the rate, a timer and a byte counter raise it (the paper's)",
                                   .needs = CC_NEEDS_CNP,
                                   .params = params,
                                   .start = start,
                                   .sent = sent,
                                   .cnp = cnp,
                                   .look = look,
                                   .expire = expire};
