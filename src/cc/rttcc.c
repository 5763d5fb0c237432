/* layer 2 (cc): a rate by the round trip of one timed packet at a time: the rule of NVIDIA's open sample of a
 * programmable congestion control (doca-samples, rtt_template), with gentler defaults. The shipped algorithm is not
 * public. What is timed is a probe, or a packet that asks for an ACK. */
#include "src/cc/cc_impl.h"

enum { P_AI, P_UNIT, P_BASE, P_TIMES, P_MAX, P_FIRST, P_MIN };

static const char doca[] = "doca-samples, rtt_template";

static const struct cc_param params[] = {
    [P_AI] = {"ai", CC_SHARE, "0.5%", "0.001%", "100%", NULL, "of the line: increase for a sample below base",
              "ours (the sample: 5%, which builds long queues)"},
    [P_UNIT] = {"u", CC_SHARE, "10%", "0.1%", "20%", NULL,
                "decrease above base; twice above max; fivefold when packets "
                "are lost there",
                doca},
    [P_BASE] = {"base", CC_TIME, "0", "0", "1s", NULL,
                "round trip that is accepted (the sample: 13us); 0: times x the "
                "least one",
                "ours"},
    [P_TIMES] = {"times", CC_SHARE, "2", "1", "64", NULL, "base, in least round trips", "ours"},
    [P_MAX] = {"max", CC_TIME, "150us", "1us", "1s", NULL, "round trip that counts as severe", doca},
    [P_FIRST] = {"first", CC_TIME, "200us", "1us", "1s", NULL, "least round trip before the first sample", doca},
    [P_MIN] = {"min", CC_SHARE, "1/16384", "1/1048576", "1", NULL, "of the line: the rate is never less", doca},
    {0}};

#define ABORT     (300 * NS_PER_US) /* a probe without an answer is lost after this, then after twice as long ... */
#define DOUBLINGS 6

struct CC_STATE rttcc {
    ns_t least, latest; /* round trips */
    ns_t sampled;       /* when the latest sample came: a packet counts if it was sent later */
    uint32_t lost;      /* probes in a row */
    bool severe;        /* the latest sample was above max */
};

static void start(struct cc *c, ns_t now)
{
    struct rttcc *r = CC_STATE_OF(c, struct rttcc);

    r->least = (ns_t)c->config->v[P_FIRST];
    r->sampled = now;
    c->want_probe = c->limits.probes;
    if (!c->want_probe)
        c->segment = c->limits.mtu;
}

static void lower(struct cc *c, unsigned times)
{
    const uint64_t *p = c->config->v;

    cc_set_rate(c, c->rate - cc_part(c->rate, min_u64(p[P_UNIT] * times, CC_ONE)), cc_part(c->line, p[P_MIN]));
}

static void sample(struct cc *c, ns_t rtt, ns_t now)
{
    struct rttcc *r = CC_STATE_OF(c, struct rttcc);
    const uint64_t *p = c->config->v;
    ns_t base;

    if (rtt < r->least)
        r->least = rtt;
    base = p[P_BASE] ? (ns_t)p[P_BASE] : (ns_t)cc_part((uint64_t)r->least, p[P_TIMES]);
    r->latest = rtt;
    r->sampled = now;
    r->lost = 0;
    r->severe = rtt >= (ns_t)p[P_MAX];
    if (r->severe)
        lower(c, 2);
    else if (rtt > base)
        lower(c, 1);
    else
        cc_set_rate(c, c->rate + cc_part(c->line, p[P_AI]), 1);
}

/* A packet's round trip is a sample if the packet was sent after the latest one: one in flight at a time. */
static void acked(struct cc *c, const struct cc_ack *a, ns_t now)
{
    struct rttcc *r = CC_STATE_OF(c, struct rttcc);

    if (a->nack && r->severe)
        lower(c, 5);
    if (a->rtt && !c->limits.probes && now - a->rtt >= r->sampled)
        sample(c, a->rtt, now);
}

static void cnp(struct cc *c, ns_t now)
{
    (void)now;
    lower(c, 2);
}

static void probe_sent(struct cc *c, ns_t now)
{
    struct rttcc *r = CC_STATE_OF(c, struct rttcc);

    c->want_probe = false;
    c->deadline = now + (ABORT << min_u32(r->lost, DOUBLINGS));
}

static void probe_reply(struct cc *c, ns_t rtt, ns_t now)
{
    c->deadline = NS_NEVER;
    c->want_probe = true;
    sample(c, rtt, now);
}

static void expire(struct cc *c, ns_t now)
{
    (void)now;
    CC_STATE_OF(c, struct rttcc)->lost++;
    c->deadline = NS_NEVER;
    c->want_probe = true;
}

static bool look(const struct cc *c, unsigned i, struct cc_value *v)
{
    const struct rttcc *r = CC_STATE_OF(c, const struct rttcc);

    *v = (struct cc_value){i ? "least" : "rtt", (uint64_t)(i ? r->least : r->latest), CC_TIME};
    return i < 2;
}

const struct cc_scheme cc_rttcc = {.name = "rttcc",
                                   .help = "the round trip of one timed packet at a time sets the rate",
                                   .needs = CC_NEEDS_RTT,
                                   .params = params,
                                   .start = start,
                                   .acked = acked,
                                   .cnp = cnp,
                                   .probe_sent = probe_sent,
                                   .probe_reply = probe_reply,
                                   .look = look,
                                   .expire = expire};
