/* layer 3 (endpoint): the policies built in. */
#include "gen/endpoint/policy.h"

#include "psn.h"

/* --- ACK -------------------------------------------------------------------------------------- */

#define COALESCE_WAIT (10 * NS_PER_US)

static ns_t every_due(struct policy_state *s, bool asks, ns_t now, const struct policies *p)
{
    (void)s, (void)p;
    return asks ? now : NS_NEVER;
}
const struct ack_policy ack_every = {"every", every_due, "unused"};

static ns_t coalesce_due(struct policy_state *s, bool asks, ns_t now, const struct policies *p)
{
    if (!asks)
        return NS_NEVER;
    return ++s->unacked >= p->ack_arg ? now : now + (p->ack_wait ? p->ack_wait : COALESCE_WAIT);
}
const struct ack_policy ack_coalesce = {"coalesce", coalesce_due, "packets with AckReq that share an ACK"};

static ns_t delay_due(struct policy_state *s, bool asks, ns_t now, const struct policies *p)
{
    (void)s;
    return asks ? now + (ns_t)p->ack_arg : NS_NEVER;
}
const struct ack_policy ack_delay = {"delay", delay_due, "ns"};

/* --- Window, pacing --------------------------------------------------------------------------- */

static uint32_t fixed_packets(const struct policy_state *s, uint64_t arg)
{
    (void)s;
    return arg == 0 ? 128 : arg < PSN_HALF ? (uint32_t)arg : PSN_HALF - 1;
}
const struct window_policy window_fixed = {"fixed", fixed_packets, "packets"};

static ns_t none_sent(struct policy_state *s, uint32_t bytes, ns_t now, const struct policies *p)
{
    (void)s, (void)bytes, (void)p;
    return now;
}
const struct pace_policy pace_none = {"none", none_sent, NULL, "unused"};

/* Time of a frame at `rate` bit/s; 0: no time. */
static ns_t frame_time(uint32_t bytes, uint64_t rate)
{
    return rate ? (ns_t)((uint64_t)bytes * 8 * NS_PER_S / rate) : 0;
}

static ns_t rate_sent(struct policy_state *s, uint32_t bytes, ns_t now, const struct policies *p)
{
    return (s->next_send > now ? s->next_send : now) + frame_time(bytes, p->pace_arg);
}
const struct pace_policy pace_rate = {"rate", rate_sent, NULL, "bit/s of frame bytes"};

static ns_t cut_sent(struct policy_state *s, uint32_t bytes, ns_t now, const struct policies *p)
{
    ns_t start = s->next_send > now ? s->next_send : now, time = frame_time(bytes, p->pace_arg);

    s->usual_send = start + time;
    return start + (start < s->cut_until ? time * p->cnp_cut : time);
}

static void cut_cnp(struct policy_state *s, ns_t now, const struct policies *p)
{
    s->cut_until = now + p->cnp_time;
}
const struct pace_policy pace_cut = {"cut", cut_sent, cut_cnp, "bit/s of frame bytes"};

/* --- Refill ----------------------------------------------------------------------------------- */

static uint32_t none_post(uint32_t posted, uint32_t depth, ns_t now, ns_t *when, uint64_t arg)
{
    (void)posted, (void)depth, (void)now, (void)arg;
    *when = NS_NEVER;
    return 0;
}
const struct refill_policy refill_none = {"none", none_post, "unused"};

static uint32_t full_post(uint32_t posted, uint32_t depth, ns_t now, ns_t *when, uint64_t arg)
{
    (void)arg;
    *when = now;
    return depth - posted;
}
const struct refill_policy refill_full = {"full", full_post, "unused"};

static uint32_t late_post(uint32_t posted, uint32_t depth, ns_t now, ns_t *when, uint64_t arg)
{
    *when = now + (ns_t)arg;
    return posted ? 0 : depth;
}
const struct refill_policy refill_late = {"late", late_post, "ns after the queue ran empty"};

/* --- Numbers ---------------------------------------------------------------------------------- */

static uint32_t random_pick(struct prng *r, uint32_t n, uint64_t arg)
{
    (void)n, (void)arg;
    return (uint32_t)(prng_next(r) >> 40);
}
const struct number_policy number_random = {"random", random_pick, "unused"};

static uint32_t part_pick(struct prng *r, uint32_t n, uint64_t arg)
{
    uint32_t v;

    do
        v = random_pick(r, n, 0);
    while (qpn_part(v, (unsigned)(arg >> 8)) != (arg & 0xff));
    return v;
}
const struct number_policy number_part = {"part", part_pick, "parts and part"};

static uint32_t sequential_pick(struct prng *r, uint32_t n, uint64_t arg)
{
    (void)r;
    return ((uint32_t)arg + n) & PSN_MASK;
}
const struct number_policy number_sequential = {"sequential", sequential_pick, "first number"};

static uint32_t fixed_pick(struct prng *r, uint32_t n, uint64_t arg)
{
    (void)r, (void)n;
    return (uint32_t)arg & PSN_MASK;
}
const struct number_policy number_fixed = {"fixed", fixed_pick, "the number"};

static uint16_t flow_sport(struct prng *r, uint32_t src_qpn, uint32_t dst_qpn, uint32_t flow, uint64_t arg)
{
    uint64_t v = (uint64_t)src_qpn * dst_qpn;

    (void)r, (void)arg;
    if (!flow && !dst_qpn)
        return (uint16_t)(0xc000 | src_qpn * UINT32_C(0x61c88647) >> 18);
    if (!flow) {
        v ^= v >> 20;
        v ^= v >> 40;
        flow = (uint32_t)v & 0xfffff;
    }
    return (uint16_t)(0xc000 | ((flow & 0x3fff) ^ flow >> 14));
}
const struct sport_policy sport_flow = {"flow", flow_sport, "unused"};

static uint16_t fixed_sport(struct prng *r, uint32_t src_qpn, uint32_t dst_qpn, uint32_t flow, uint64_t arg)
{
    (void)r, (void)src_qpn, (void)dst_qpn, (void)flow;
    return (uint16_t)arg;
}
const struct sport_policy sport_fixed = {"fixed", fixed_sport, "UDP port"};

static uint16_t random_sport(struct prng *r, uint32_t src_qpn, uint32_t dst_qpn, uint32_t flow, uint64_t arg)
{
    (void)src_qpn, (void)dst_qpn, (void)flow, (void)arg;
    return (uint16_t)(0xc000 | prng_below(r, 0x4000));
}
const struct sport_policy sport_random = {"random", random_sport, "unused"};

struct policies policies_default(void)
{
    return (struct policies){
        .ack = &ack_every,
        .window = &window_fixed,
        .pace = &pace_none,
        .refill = &refill_none,
        .psn = &number_random,
        .qpn = &number_sequential,
        .qpn_arg = 17,
        .sport = &sport_flow,
        .ackreq_every = 64,
    };
}

static const struct ack_policy *const ack_policies[] = {&ack_every, &ack_coalesce, &ack_delay, NULL};
static const struct sport_policy *const sport_policies[] = {&sport_flow, &sport_fixed, &sport_random, NULL};

#define FIND(type, table)                                                                                              \
    const struct type *type##_find(const char *name)                                                                   \
    {                                                                                                                  \
        for (unsigned i = 0; table[i]; i++)                                                                            \
            if (strcmp(table[i]->name, name) == 0)                                                                     \
                return table[i];                                                                                       \
        return NULL;                                                                                                   \
    }
FIND(ack_policy, ack_policies)
FIND(sport_policy, sport_policies)
