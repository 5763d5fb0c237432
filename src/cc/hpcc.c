/* layer 2 (cc): HPCC: a window by the telemetry of the switches on the path (SIGCOMM 2019; constants of its simulator).
 *
 * Each ACK brings, for each hop, how much has left by its port until when, and its queue. How busy the busiest hop was
 * since the ACK before, averaged over a round trip, is held at eta. Every ACK computes the window from a reference
 * window, which takes its place once in a round trip only. */
#include "src/cc/cc_impl.h"

enum { P_ETA, P_STAGES, P_AI, P_RTT, P_MIN };

static const char simulator[] = "HPCC simulator, rdma-hw.cc and run.py";

static const struct cc_param params[] = {
    [P_ETA] = {"eta", CC_SHARE, "0.95", "0.5", "1", NULL, "share of the line that is to be used", simulator},
    [P_STAGES] = {"stages", CC_COUNT, "0", "0", "32", "steps",
                  "additive steps before a multiplicative one (the paper's 5 is a typo, says its group)", simulator},
    [P_AI] = {"ai", CC_RATE, "0", "0", "100G", NULL, "additive increase; 0: 10 Mbit/s for each 25 Gbit/s of the line",
              simulator},
    [P_RTT] = {"rtt", CC_TIME, "0", "0", "1s", NULL, "round trip of the empty network; 0: the least one seen", "ours"},
    [P_MIN] = {"min", CC_RATE, "1M", "1K", "100G", NULL, "the rate is never less", "ours"},
    {0}};

struct CC_STATE hpcc {
    struct {
        uint64_t tx_bytes;
        ns_t ts;
        uint32_t queue;
    } hop[CC_HOPS];     /* of the ACK before */
    uint64_t reference; /* window, 2^-8 bytes */
    uint64_t use;       /* of CC_ONE */
    ns_t rtt;           /* of the empty network */
    ns_t replaced;      /* when the reference was */
    uint32_t stage;
    uint32_t hops; /* known */
};

#define FRACTION_BITS 8 /* of a window */

static uint64_t bdp(const struct cc *c, const struct hpcc *h)
{
    return cc_bytes_in(c->line, h->rtt) << FRACTION_BITS;
}

static void start(struct cc *c, ns_t now)
{
    struct hpcc *h = CC_STATE_OF(c, struct hpcc);

    h->rtt = (ns_t)c->config->v[P_RTT];
    if (!h->rtt)
        h->rtt = c->limits.base_rtt;
    h->replaced = now;
    c->segment = c->limits.mtu;
    h->reference = bdp(c, h);
    if (h->rtt)
        c->window = h->reference >> FRACTION_BITS;
}

/* How busy a hop was since the ACK before, of CC_ONE; *dt: that time. */
static uint64_t use_of(const struct hpcc *h, const struct cc_hop *hop, unsigned i, ns_t *dt)
{
    uint64_t carried, held;

    *dt = (int32_t)((uint32_t)hop->ts - (uint32_t)h->hop[i].ts);
    if (*dt <= 0 || !hop->line)
        return 0;
    carried =
        cc_mul_div((hop->tx_bytes - h->hop[i].tx_bytes) & UINT32_MAX, CC_ONE, max_u64(cc_bytes_in(hop->line, *dt), 1));
    held = cc_mul_div(min_u32(hop->queue, h->hop[i].queue), CC_ONE, max_u64(cc_bytes_in(hop->line, h->rtt), 1));
    return min_u64(carried + held, 1024 * CC_ONE);
}

/* The smoothed use of the busiest hop; false: nothing to compare with yet. */
static bool update_use(struct hpcc *h, const struct cc_hop *hop, unsigned n)
{
    uint64_t busiest = 0, weight;
    ns_t time = 0, dt;
    bool known = h->hops == n;

    for (unsigned i = 0; i < n; i++) {
        uint64_t u = known ? use_of(h, &hop[i], i, &dt) : 0;
        if (known && u > busiest) {
            busiest = u;
            time = dt;
        }
        h->hop[i].tx_bytes = hop[i].tx_bytes;
        h->hop[i].ts = hop[i].ts;
        h->hop[i].queue = hop[i].queue;
    }
    h->hops = n;
    if (!known || !time)
        return false;
    weight = (uint64_t)min_ns(time, h->rtt) * CC_ONE / (uint64_t)h->rtt;
    h->use = h->use - cc_part(h->use, weight) + cc_part(busiest, weight);
    return true;
}

static uint64_t increase_of(const struct cc *c, const struct hpcc *h)
{
    uint64_t ai = c->config->v[P_AI] ? c->config->v[P_AI] : c->line / 2500;

    return max_u64(cc_bytes_in(ai, h->rtt << FRACTION_BITS), 1);
}

static void telemetry(struct cc *c, const struct cc_hop *hop, unsigned n, ns_t rtt, ns_t now)
{
    struct hpcc *h = CC_STATE_OF(c, struct hpcc);
    const uint64_t *p = c->config->v;
    bool multiply, replace = now - rtt >= h->replaced;
    uint64_t window;

    if (rtt > 0 && (!h->rtt || (rtt < h->rtt && !p[P_RTT]))) {
        h->rtt = rtt;
        h->reference = h->reference ? h->reference : bdp(c, h);
    }
    if (!h->rtt || !update_use(h, hop, n))
        return;
    multiply = h->use >= p[P_ETA] || h->stage >= p[P_STAGES];
    window = multiply ? cc_mul_div(h->reference, p[P_ETA], max_u64(h->use, CC_ONE / 1024)) : h->reference;
    window = min_u64(window + increase_of(c, h), bdp(c, h));
    cc_set_rate(c, cc_mul_div(window, 8 * (uint64_t)NS_PER_S, (uint64_t)h->rtt << FRACTION_BITS), p[P_MIN]);
    c->window = max_u64(window >> FRACTION_BITS, 1);
    if (!replace)
        return;
    h->reference = window;
    h->stage = multiply ? 0 : h->stage + 1;
    h->replaced = now;
}

static bool look(const struct cc *c, unsigned i, struct cc_value *v)
{
    *v = (struct cc_value){"use", CC_STATE_OF(c, const struct hpcc)->use, CC_SHARE};
    return i < 1;
}

const struct cc_scheme cc_hpcc = {.name = "hpcc",
                                  .help = "a window by the telemetry of switches",
                                  .needs = CC_NEEDS_INT,
                                  .params = params,
                                  .start = start,
                                  .telemetry = telemetry,
                                  .look = look};
