/* layer 2 (cc): DCQCN as ConnectX adapters have it, with their parameters and by the names of the driver's cc_params:
 * cuts and alpha have periods of their own.
 *
 * alpha has a period of one microsecond by default: it is brought up to date when it is needed, not by a timer. */
#include "src/cc/cc_impl.h"

enum {
    P_CLAMP,
    P_CLAMP_ATI,
    P_TIME_RESET,
    P_BYTE_RESET,
    P_THRESHOLD,
    P_MAX,
    P_AI,
    P_HAI,
    P_GD,
    P_MIN_DEC,
    P_MIN,
    P_FIRST,
    P_TCP_G,
    P_TCP_RTT,
    P_MONITOR,
    P_ALPHA,
    P_G,
};

#define ALPHA_BITS  10 /* alpha is 0 to 1023 there */
#define BYTE_BLOCK  64
#define MBPS        1000000
#define TCP_G_SCALE 1024

static const char mlx[] = "mstflint, NVIDIA's documentation";

static const struct cc_param params[] = {
    [P_CLAMP] = {"rp_clamp_tgt_rate", CC_COUNT, "0", "0", "1", NULL, "1: each cut lowers the target, too", mlx},
    [P_CLAMP_ATI] = {"rp_clamp_tgt_rate_ati", CC_COUNT, "1", "0", "1", NULL,
                     "1: a cut lowers the target once the timer has raised the rate", mlx},
    [P_TIME_RESET] = {"rp_time_reset", CC_COUNT, "300", "1", "131071", "us", "time between two increases", mlx},
    [P_BYTE_RESET] = {"rp_byte_reset", CC_COUNT, "32767", "0", "32767", "blocks",
                      "bytes between two increases, in blocks of 64 (the block is ours); 0: only the timer", mlx},
    [P_THRESHOLD] = {"rp_threshold", CC_COUNT, "1", "1", "31", "steps", "steps of fast recovery", mlx},
    [P_MAX] = {"rp_max_rate", CC_COUNT, "0", "0", "1600000", "Mb/s", "the rate is never more; 0: the line", mlx},
    [P_AI] = {"rp_ai_rate", CC_COUNT, "5", "1", "100000", "Mb/s", "additive increase of the target", mlx},
    [P_HAI] = {"rp_hai_rate", CC_COUNT, "50", "1", "100000", "Mb/s", "hyper increase of the target", mlx},
    [P_GD] = {"rp_gd", CC_COUNT, "11", "0", "15", NULL, "a cut is by alpha / 2^gd, with alpha up to 1023", mlx},
    [P_MIN_DEC] = {"rp_min_dec_fac", CC_COUNT, "50", "1", "100", "%", "a cut leaves at least so much", mlx},
    [P_MIN] = {"rp_min_rate", CC_COUNT, "1", "1", "100000", "Mb/s", "the rate is never less", mlx},
    [P_FIRST] = {"rp_rate_to_set_on_first_cnp", CC_COUNT, "0", "0", "1600000", "Mb/s",
                 "rate from the first CNP on; 0: as it is", mlx},
    [P_TCP_G] = {"rp_dce_tcp_g", CC_COUNT, "1019", "0", "1023", NULL,
                 "weight of alpha's past, of 1024: g = 1 - this / 1024",
                 "DOC-2790, SURF (mstflint describes the opposite)"},
    [P_TCP_RTT] = {"rp_dce_tcp_rtt", CC_COUNT, "1", "1", "131071", "us", "period of alpha", mlx},
    [P_MONITOR] = {"rp_rate_reduce_monitor_period", CC_COUNT, "4", "1", "131071", "us", "time between two cuts", mlx},
    [P_ALPHA] = {"rp_initial_alpha_value", CC_COUNT, "1023", "1", "1023", NULL, "alpha at the first CNP, of 1023", mlx},
    [P_G] = {"g", CC_SHARE, "0", "0", "1", NULL, "the same as rp_dce_tcp_g, as a share such as 1/205; 0: not given",
             "ours"},
    {0}};

struct CC_STATE cx {
    uint64_t target; /* RT, bit/s */
    uint64_t alpha;  /* of CC_ONE, at `alpha_at` */
    ns_t alpha_at;   /* end of its latest period */
    ns_t grid;       /* a time at which cuts may be; they are multiples of their period away */
    ns_t cut_due, raise_due;
    uint64_t bytes;
    uint32_t time_stage, byte_stage;
    bool seen; /* a CNP came in this period of alpha */
    bool active;
};

static ns_t us(const struct cc *c, unsigned p)
{
    return (ns_t)c->config->v[p] * NS_PER_US;
}

static uint64_t mbps(const struct cc *c, unsigned p)
{
    return c->config->v[p] * MBPS;
}

static uint64_t weight(const struct cc *c)
{
    const uint64_t *p = c->config->v;

    return p[P_G] ? p[P_G] : CC_ONE - p[P_TCP_G] * CC_ONE / TCP_G_SCALE;
}

static uint64_t most(const struct cc *c)
{
    return c->config->v[P_MAX] ? min_u64(mbps(c, P_MAX), c->line) : c->line;
}

/* share^n, of CC_ONE */
static uint64_t power(uint64_t share, uint64_t n)
{
    uint64_t r = CC_ONE;

    for (; n && r; n >>= 1) {
        if (n & 1)
            r = cc_part(r, share);
        share = cc_part(share, share);
    }
    return r;
}

/* The periods of alpha that ended up to `now`. */
static void update_alpha(struct cc *c, struct cx *x, ns_t now)
{
    uint64_t g = weight(c);
    ns_t period = us(c, P_TCP_RTT);
    uint64_t n = now > x->alpha_at ? (uint64_t)((now - x->alpha_at) / period) : 0;

    if (!n)
        return;
    x->alpha_at += (ns_t)n * period;
    x->alpha = cc_part(x->alpha, CC_ONE - g) + (x->seen ? g : 0);
    x->seen = false;
    x->alpha = cc_part(x->alpha, power(CC_ONE - g, n - 1));
}

static void set_deadline(struct cc *c, const struct cx *x)
{
    c->deadline = min_ns(x->cut_due, x->raise_due);
}

static void start(struct cc *c, ns_t now)
{
    struct cx *x = CC_STATE_OF(c, struct cx);

    (void)now;
    c->rate = x->target = most(c);
    x->cut_due = x->raise_due = NS_NEVER;
}

static void first_cnp(struct cc *c, struct cx *x, ns_t now)
{
    x->active = true;
    x->alpha = c->config->v[P_ALPHA] * CC_ONE / ((1u << ALPHA_BITS) - 1);
    x->alpha_at = now;
    x->grid = now + 1;
    if (c->config->v[P_FIRST])
        cc_set_rate(c, min_u64(mbps(c, P_FIRST), most(c)), mbps(c, P_MIN));
    x->target = c->rate;
}

static void cnp(struct cc *c, ns_t now)
{
    struct cx *x = CC_STATE_OF(c, struct cx);
    ns_t period = us(c, P_MONITOR);

    if (!x->active) {
        first_cnp(c, x, now);
    } else {
        update_alpha(c, x, now);
        x->seen = true;
    }
    if (x->cut_due == NS_NEVER)
        x->cut_due = x->grid + (now >= x->grid ? (now - x->grid) / period + 1 : 1) * period;
    set_deadline(c, x);
}

static void cut(struct cc *c, struct cx *x, ns_t at)
{
    const uint64_t *p = c->config->v;
    uint64_t share, least;

    update_alpha(c, x, at);
    share = min_u64((x->alpha << ALPHA_BITS) >> p[P_GD], CC_ONE);
    least = max_u64(mbps(c, P_MIN), cc_mul_div(c->rate, p[P_MIN_DEC], 100));
    if (p[P_CLAMP] || x->byte_stage || (p[P_CLAMP_ATI] && x->time_stage))
        x->target = c->rate;
    cc_set_rate(c, c->rate - cc_part(c->rate, share), least);
    x->time_stage = x->byte_stage = 0;
    x->bytes = 0;
    x->cut_due = NS_NEVER;
    x->raise_due = at + us(c, P_TIME_RESET);
}

/* A step of the timer or of the byte counter, whose stage is *stage. */
static void raise(struct cc *c, struct cx *x, uint32_t *stage)
{
    uint64_t threshold = c->config->v[P_THRESHOLD];

    if (*stage >= threshold)
        x->target += mbps(c, *stage == threshold ? P_AI : P_HAI);
    x->target = min_u64(x->target, most(c));
    cc_set_rate(c, (x->target + c->rate + 1) / 2, mbps(c, P_MIN));
    ++*stage;
}

static void sent(struct cc *c, uint32_t bytes, ns_t now)
{
    struct cx *x = CC_STATE_OF(c, struct cx);
    uint64_t every = c->config->v[P_BYTE_RESET] * BYTE_BLOCK;

    (void)now;
    if (!every || x->raise_due == NS_NEVER)
        return;
    x->bytes += bytes;
    for (; x->bytes >= every; x->bytes -= every)
        raise(c, x, &x->byte_stage);
}

static void expire(struct cc *c, ns_t now)
{
    struct cx *x = CC_STATE_OF(c, struct cx);

    while (c->deadline <= now) {
        if (x->cut_due <= x->raise_due) {
            cut(c, x, x->cut_due);
        } else {
            raise(c, x, &x->time_stage);
            x->raise_due = c->rate < most(c) ? x->raise_due + us(c, P_TIME_RESET) : NS_NEVER;
        }
        set_deadline(c, x);
    }
}

static bool look(const struct cc *c, unsigned i, struct cc_value *v)
{
    const struct cx *x = CC_STATE_OF(c, const struct cx);

    if (i == 0)
        *v = (struct cc_value){"alpha", x->alpha, CC_SHARE};
    else
        *v = (struct cc_value){"target", x->target, CC_RATE};
    return i < 2;
}

const struct cc_scheme cc_dcqcn_cx = {.name = "dcqcn-cx",
                                      .help = "DCQCN with the parameters of ConnectX adapters",
                                      .needs = CC_NEEDS_CNP,
                                      .np = "interval=4us",
                                      .params = params,
                                      .start = start,
                                      .sent = sent,
                                      .cnp = cnp,
                                      .look = look,
                                      .expire = expire};
