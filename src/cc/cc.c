/* layer 2 (cc): what all schemes have: events passed on, the pacer, the cap on bytes in flight. */
#include "src/cc/cc_impl.h"

#define MTU_DEFAULT (1024 + 82)

void cc_start(struct cc *c, const struct cc_config *config, const struct cc_limits *limits, ns_t now)
{
    memset(c, 0, sizeof *c);
    c->config = config;
    c->limits = *limits;
    if (!c->limits.mtu)
        c->limits.mtu = MTU_DEFAULT;
    c->line = config->common.line ? config->common.line : limits->line;
    if (!c->line)
        c->line = 1;
    c->rate = c->line;
    c->window = c->budget = CC_NO_LIMIT;
    c->deadline = NS_NEVER;
    config->scheme->start(c, now);
}

void cc_set_rate(struct cc *c, uint64_t rate, uint64_t least)
{
    rate = max_u64(min_u64(rate, c->line), max_u64(min_u64(least, c->line), 1));
    c->cuts += rate < c->rate;
    c->rate = rate;
}

/* --- The pacer -------------------------------------------------------------------------------- */

#define FRACTION_BITS 16

/* Time of `bytes` at `rate`, in 2^-16 ns: below 2^55 for CC_PACKET_MAX bytes. */
static uint64_t time_of(uint32_t bytes, uint64_t rate)
{
    return ((uint64_t)bytes * 8 * (uint64_t)NS_PER_S << FRACTION_BITS) / rate;
}

/* The end of the last packet at `rate`; *fraction: what is behind it. */
static ns_t end_of_last(const struct cc *c, uint64_t rate, uint32_t *fraction)
{
    uint64_t t = time_of(c->last_bytes, rate) + c->last_fraction;

    *fraction = (uint32_t)(t & ((1u << FRACTION_BITS) - 1));
    return c->last + (ns_t)(t >> FRACTION_BITS);
}

static ns_t next_at(const struct cc *c, uint64_t rate)
{
    uint32_t fraction;
    ns_t t = end_of_last(c, rate, &fraction);

    return t + (fraction != 0);
}

ns_t cc_next_send(const struct cc *c)
{
    return next_at(c, c->rate);
}

ns_t cc_next_send_at_line(const struct cc *c)
{
    return next_at(c, c->line);
}

void cc_sent(struct cc *c, uint32_t bytes, ns_t now)
{
    uint32_t fraction = 0;
    ns_t due = end_of_last(c, c->rate, &fraction), slack = c->limits.slack;

    bytes = min_u32(bytes, CC_PACKET_MAX);
    if (!slack)
        slack = (ns_t)(time_of(bytes, c->rate) >> FRACTION_BITS);
    if (!c->last_bytes || due + slack < now) {
        due = c->last_bytes && c->limits.slack ? now - slack : now;
        fraction = 0;
    }
    c->last = due;
    c->last_fraction = fraction;
    c->last_bytes = bytes;
    if (c->config->scheme->sent)
        c->config->scheme->sent(c, bytes, now);
}

/* --- Events that only schemes know of ----------------------------------------------------------- */

void cc_acked(struct cc *c, const struct cc_ack *a, ns_t now)
{
    if (c->config->scheme->acked)
        c->config->scheme->acked(c, a, now);
}

void cc_cnp(struct cc *c, ns_t now)
{
    if (c->config->scheme->cnp)
        c->config->scheme->cnp(c, now);
}

void cc_fair_rate(struct cc *c, uint64_t bps, uint32_t cp, ns_t now)
{
    if (c->config->scheme->fair_rate)
        c->config->scheme->fair_rate(c, bps, cp, now);
}

void cc_credit(struct cc *c, uint64_t granted, ns_t now)
{
    if (c->config->scheme->credit)
        c->config->scheme->credit(c, granted, now);
}

void cc_demand(struct cc *c, uint64_t bytes, ns_t now)
{
    if (c->config->scheme->demand)
        c->config->scheme->demand(c, bytes, now);
}

void cc_telemetry(struct cc *c, const struct cc_hop *hop, unsigned n, ns_t rtt, ns_t now)
{
    if (c->config->scheme->telemetry && n)
        c->config->scheme->telemetry(c, hop, min_u32(n, CC_HOPS), rtt, now);
}

void cc_asked(struct cc *c, ns_t now)
{
    if (c->config->scheme->asked)
        c->config->scheme->asked(c, now);
}

void cc_probe_sent(struct cc *c, ns_t now)
{
    if (c->config->scheme->probe_sent)
        c->config->scheme->probe_sent(c, now);
}

void cc_probe_reply(struct cc *c, ns_t sent, ns_t got, ns_t answered, ns_t now)
{
    ns_t inside = answered > got ? answered - got : 0, rtt = now - sent;

    if (c->config->scheme->probe_reply && rtt >= inside)
        c->config->scheme->probe_reply(c, rtt - inside, now);
}

void cc_expire(struct cc *c, ns_t now)
{
    if (c->config->scheme->expire && c->deadline <= now)
        c->config->scheme->expire(c, now);
}

uint64_t cc_look(const struct cc *c, const char *name)
{
    const struct cc_scheme *s = c->config->scheme;
    struct cc_value v;

    for (unsigned i = 0; s->look && s->look(c, i, &v); i++)
        if (strcmp(v.name, name) == 0)
            return v.value;
    return 0;
}

uint64_t cc_window(const struct cc *c)
{
    const struct cc_common *m = &c->config->common;
    uint64_t w = c->window;

    if (m->cap)
        w = min_u64(w, m->scaled ? cc_mul_div(m->cap, c->rate, c->line) : m->cap);
    return max_u64(w, c->limits.mtu);
}
