/* layer 2 (cc): TIMELY, which follows the gradient of the round trip, and its patched form, which has one fixed point
 * (CoNEXT 2016, "ECN or Delay", where both are analysed). The rate changes once for each completed segment. */
#include "src/cc/cc_impl.h"

enum { P_BETA, P_TLOW, P_THIGH, P_DELTA, P_W, P_MINRTT, P_HAI, P_SEGMENT, P_START, P_MIN };

static const char conext[] = "CoNEXT 2016";
static const char ours[] = "ours: the text read gives none";

#define PARAMS(beta)                                                                                                   \
    [P_BETA] = {"beta", CC_SHARE, beta, "0.0001", "1", NULL, "weight of a decrease", conext},                          \
    [P_TLOW] = {"tlow", CC_TIME, "50us", "1us", "1s", NULL, "below this round trip the rate rises", conext},           \
    [P_THIGH] = {"thigh", CC_TIME, "500us", "1us", "1s", NULL, "above it the rate falls", conext},                     \
    [P_DELTA] = {"delta", CC_RATE, "10M", "1K", "100G", NULL, "additive increase", conext},                            \
    [P_W] = {"w", CC_SHARE, "0.875", "0", "1", NULL, "weight of the newest difference of round trips", conext},        \
    [P_MINRTT] =                                                                                                       \
        {"minrtt", CC_TIME, "20us", "1us", "1s", NULL, "round trip that the gradient is measured in", conext},         \
    [P_HAI] = {"n", CC_COUNT, "5", "1", "100", "steps", "so many rises in a row, and delta counts so often", conext},  \
    [P_SEGMENT] = {"segment", CC_BYTES, "16K", "1K", "1M", NULL, "bytes between two samples", conext},                 \
    [P_START] = {"start", CC_RATE, "0", "0", "1600G", NULL, "rate at the start; 0: that of the line", "ours"},         \
    [P_MIN] = {"min", CC_RATE, "1M", "1K", "100G", NULL, "the rate is never less", ours},                              \
    {                                                                                                                  \
        0                                                                                                              \
    }

static const struct cc_param params[] = {PARAMS("0.8")};
static const struct cc_param patched_params[] = {PARAMS("0.008")};

struct CC_STATE timely {
    ns_t rtt;     /* the latest sample; 0: none */
    int64_t diff; /* smoothed difference of round trips, 2^-10 ns */
    uint64_t bytes;
    uint32_t rises; /* in a row, by the gradient */
};

#define DIFF_BITS 10

static void start(struct cc *c, ns_t now)
{
    const uint64_t *p = c->config->v;

    (void)now;
    c->segment = (uint32_t)p[P_SEGMENT];
    if (p[P_START])
        c->rate = min_u64(p[P_START], c->line);
}

/* Signed part: x * share / CC_ONE. */
static int64_t part(int64_t x, uint64_t share)
{
    return (int64_t)((__int128)x * (int64_t)share / (int64_t)CC_ONE);
}

/* diff / minRTT, of CC_ONE. */
static int64_t gradient(const struct cc *c, struct timely *t, ns_t rtt)
{
    const uint64_t *p = c->config->v;
    int64_t d = (rtt - t->rtt) * (1 << DIFF_BITS);

    t->diff = part(t->diff, CC_ONE - p[P_W]) + part(d, p[P_W]);
    return (int64_t)((__int128)t->diff * (int64_t)CC_ONE / ((int64_t)p[P_MINRTT] << DIFF_BITS));
}

/* The rate times 1 - share. */
static void lower(struct cc *c, uint64_t share)
{
    cc_set_rate(c, c->rate - cc_part(c->rate, min_u64(share, CC_ONE)), c->config->v[P_MIN]);
}

static void as_published(struct cc *c, struct timely *t, ns_t rtt, int64_t g)
{
    const uint64_t *p = c->config->v;
    uint64_t over;

    t->rises = rtt >= (ns_t)p[P_TLOW] && rtt <= (ns_t)p[P_THIGH] && g <= 0 ? t->rises + 1 : 0;
    if (rtt < (ns_t)p[P_TLOW]) {
        cc_set_rate(c, c->rate + p[P_DELTA], p[P_MIN]);
    } else if (rtt > (ns_t)p[P_THIGH]) {
        over = cc_mul_div((uint64_t)(rtt - (ns_t)p[P_THIGH]), CC_ONE, (uint64_t)rtt);
        lower(c, cc_part(over, p[P_BETA]));
    } else if (g <= 0) {
        cc_set_rate(c, c->rate + (t->rises >= p[P_HAI] ? p[P_HAI] : 1) * p[P_DELTA], p[P_MIN]);
    } else {
        lower(c, cc_part((uint64_t)g, p[P_BETA]));
    }
}

/* 0 below -1/4, 1 above 1/4, and a line between; of CC_ONE. */
static uint64_t weight(int64_t g)
{
    int64_t quarter = (int64_t)CC_ONE / 4;

    return g < -quarter ? 0 : g > quarter ? CC_ONE : (uint64_t)(2 * g + 2 * quarter);
}

static void as_patched(struct cc *c, struct timely *t, ns_t rtt, int64_t g)
{
    const uint64_t *p = c->config->v;
    uint64_t w = weight(g), delta = cc_part(p[P_DELTA], CC_ONE - w);
    int64_t error = (int64_t)((__int128)(rtt - (ns_t)p[P_TLOW]) * (int64_t)CC_ONE / (int64_t)p[P_TLOW]);
    int64_t change = (int64_t)((__int128)cc_part(c->rate, cc_part(p[P_BETA], w)) * error / (int64_t)CC_ONE);

    (void)t;
    if (change >= (int64_t)c->rate)
        change = (int64_t)c->rate;
    cc_set_rate(c, (uint64_t)((int64_t)(c->rate + delta) - change), p[P_MIN]);
}

typedef void rule_fn(struct cc *c, struct timely *t, ns_t rtt, int64_t g);

static void sample(struct cc *c, const struct cc_ack *a, rule_fn *rule)
{
    struct timely *t = CC_STATE_OF(c, struct timely);
    int64_t g;

    t->bytes += a->bytes;
    if (!a->rtt || t->bytes < c->config->v[P_SEGMENT])
        return;
    t->bytes = 0;
    if (!t->rtt)
        t->rtt = a->rtt;
    g = gradient(c, t, a->rtt);
    t->rtt = a->rtt;
    rule(c, t, a->rtt, g);
}

static void acked(struct cc *c, const struct cc_ack *a, ns_t now)
{
    (void)now;
    sample(c, a, as_published);
}

static void patched_acked(struct cc *c, const struct cc_ack *a, ns_t now)
{
    (void)now;
    sample(c, a, as_patched);
}

static bool look(const struct cc *c, unsigned i, struct cc_value *v)
{
    *v = (struct cc_value){"rtt", (uint64_t)CC_STATE_OF(c, const struct timely)->rtt, CC_TIME};
    return i < 1;
}

const struct cc_scheme cc_timely = {.name = "timely",
                                    .help = "the gradient of the round trip lowers and raises the rate",
                                    .needs = CC_NEEDS_RTT,
                                    .params = params,
                                    .start = start,
                                    .acked = acked,
                                    .look = look};

const struct cc_scheme cc_timely_patched = {.name = "timely-patched",
                                            .help = "TIMELY with one fixed point: the patch of CoNEXT 2016",
                                            .needs = CC_NEEDS_RTT,
                                            .params = patched_params,
                                            .start = start,
                                            .acked = patched_acked,
                                            .look = look};
