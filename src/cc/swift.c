/* layer 2 (cc): Swift: a window that keeps the round trip at a target, which grows as the window shrinks (flow
 * scaling). Below one packet the window becomes a pause between packets. Constants are those of csg-htsim, whose author
 * calls them guesses. */
#include "src/cc/cc_impl.h"

enum { P_BASE, P_HOP, P_HOPS, P_AI, P_BETA, P_MDF, P_RANGE, P_FS_MIN, P_FS_MAX, P_LEAST, P_MIN };

static const char htsim[] = "csg-htsim, swift.cpp";

static const struct cc_param params[] = {
    [P_BASE] = {"base", CC_TIME, "20us", "1us", "1s", NULL, "target without hops and flow scaling", htsim},
    [P_HOP] = {"hop", CC_TIME, "0", "0", "1s", NULL, "of the target, for each hop; 0: base / 6.55", htsim},
    [P_HOPS] = {"hops", CC_COUNT, "1", "0", "64", "hops", "switches on the path", "ours"},
    [P_AI] = {"ai", CC_SHARE, "1", "0.001", "64", NULL, "packets that the window grows by in a round trip", htsim},
    [P_BETA] = {"beta", CC_SHARE, "0.8", "0.001", "1", NULL, "weight of a decrease", htsim},
    [P_MDF] = {"mdf", CC_SHARE, "0.5", "0.001", "1", NULL, "a decrease is by this share at most", htsim},
    [P_RANGE] = {"fs_range", CC_TIME, "0", "0", "10s", NULL, "flow scaling adds up to this; 0: 5 x base; see fs",
                 htsim},
    [P_FS_MIN] = {"fs_min", CC_SHARE, "0.1", "0.001", "1", NULL, "window, in packets, that it is added at", htsim},
    [P_FS_MAX] = {"fs_max", CC_COUNT, "100", "0", "10000", "packets",
                  "window from which nothing is added; 0: no scaling", htsim},
    [P_LEAST] = {"least", CC_SHARE, "0.001", "0.0001", "1", NULL, "the window, in packets, is never less", "ours"},
    [P_MIN] = {"min", CC_RATE, "1M", "1K", "100G", NULL, "the rate is never less", "ours"},
    {0}};

#define HOPS_PER_BASE 655 /* of 100 */

struct CC_STATE swift {
    uint64_t window;  /* packets, of CC_ONE */
    uint64_t most;    /* of the window: twice what the line carries in a target */
    ns_t target0;     /* without flow scaling */
    uint64_t a;       /* ns x CC_ONE: a / sqrt(window) */
    uint64_t b;       /* ns: minus this */
    uint64_t range;   /* ns */
    ns_t rtt, cut_at; /* latest sample; latest decrease */
};

static uint64_t root(uint64_t x)
{
    uint64_t r = 0;

    for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1)
        if ((r | bit) * (r | bit) <= x)
            r |= bit;
    return r;
}

#define ROOT_ONE (UINT64_C(1) << 15) /* root(CC_ONE) */

/* Window and rate as the endpoint needs them. */
static void publish(struct cc *c, const struct swift *s)
{
    uint64_t bytes = cc_part(c->limits.mtu, s->window);

    c->window = max_u64(bytes, c->limits.mtu);
    if (s->window >= CC_ONE || !s->rtt)
        c->rate = c->line;
    else
        cc_set_rate(c, cc_mul_div(bytes, 8 * (uint64_t)NS_PER_S, (uint64_t)s->rtt), c->config->v[P_MIN]);
}

static void start(struct cc *c, ns_t now)
{
    struct swift *s = CC_STATE_OF(c, struct swift);
    const uint64_t *p = c->config->v;
    uint64_t hop = p[P_HOP] ? p[P_HOP] : p[P_BASE] * 100 / HOPS_PER_BASE, low, high;

    (void)now;
    s->target0 = (ns_t)(p[P_BASE] + hop * p[P_HOPS]);
    s->range = p[P_RANGE] ? p[P_RANGE] : 5 * p[P_BASE];
    if (p[P_FS_MAX]) { /* a (1/sqrt(fs_min) - 1/sqrt(fs_max)) = range; b = a / sqrt(fs_max) */
        low = ROOT_ONE * CC_ONE / root(p[P_FS_MIN]);
        high = ROOT_ONE * CC_ONE / root(p[P_FS_MAX] * CC_ONE);
        s->a = cc_mul_div(s->range, CC_ONE, max_u64(low - min_u64(high, low - 1), 1));
        s->a = cc_mul_div(s->a, CC_ONE, 1);
        s->b = cc_mul_div(s->a / CC_ONE, high, CC_ONE);
    }
    s->most = cc_mul_div(2 * cc_bytes_in(c->line, s->target0 + (ns_t)s->range), CC_ONE, c->limits.mtu);
    s->window = cc_mul_div(cc_bytes_in(c->line, (ns_t)p[P_BASE]), CC_ONE, c->limits.mtu);
    s->window = max_u64(s->window, CC_ONE);
    s->most = max_u64(s->most, s->window);
    s->cut_at = now - NS_PER_S;
    c->segment = c->limits.mtu;
    publish(c, s);
}

static ns_t target(const struct swift *s)
{
    uint64_t more = s->a ? s->a / root(s->window) * ROOT_ONE / CC_ONE : 0;

    more = more > s->b ? more - s->b : 0;
    return s->target0 + (ns_t)min_u64(more, s->range);
}

static void decrease(struct cc *c, struct swift *s, uint64_t share, ns_t now)
{
    s->window -= cc_part(s->window, min_u64(share, c->config->v[P_MDF]));
    s->cut_at = now;
    c->cuts++;
}

static void acked(struct cc *c, const struct cc_ack *a, ns_t now)
{
    struct swift *s = CC_STATE_OF(c, struct swift);
    const uint64_t *p = c->config->v;
    ns_t goal = target(s);
    uint64_t packets = a->bytes * CC_ONE / c->limits.mtu, grow;

    if (a->rtt)
        s->rtt = a->rtt;
    if (!s->rtt)
        return;
    if (a->nack && now - s->cut_at >= s->rtt) {
        decrease(c, s, CC_ONE, now);
    } else if (a->rtt && a->rtt < goal) {
        grow = cc_part(p[P_AI], packets);
        s->window += s->window >= CC_ONE ? cc_mul_div(grow, CC_ONE, s->window) : grow;
    } else if (a->rtt && now - s->cut_at >= s->rtt) {
        decrease(c, s, cc_part(cc_mul_div((uint64_t)(a->rtt - goal), CC_ONE, (uint64_t)a->rtt), p[P_BETA]), now);
    }
    s->window = max_u64(min_u64(s->window, s->most), p[P_LEAST]);
    publish(c, s);
}

static bool look(const struct cc *c, unsigned i, struct cc_value *v)
{
    const struct swift *s = CC_STATE_OF(c, const struct swift);

    if (i == 0)
        *v = (struct cc_value){"window", s->window, CC_SHARE};
    else
        *v = (struct cc_value){"target", (uint64_t)target(s), CC_TIME};
    return i < 2;
}

const struct cc_scheme cc_swift = {.name = "swift",
                                   .help = "a window that keeps the round trip at a target",
                                   .needs = CC_NEEDS_RTT,
                                   .params = params,
                                   .start = start,
                                   .acked = acked,
                                   .look = look};
