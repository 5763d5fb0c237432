/* layer 2 (cc): Shaped-Quota as we define it, after EQDS and the receiver's control of Ultra Ethernet: a sender may
 * send a first quota at once, then what its receiver grants; the receiver grants at the rate of its link, in turn. */
#include "src/cc/cc_impl.h"
#include "src/cc/credit.h"

/* --- The sender ------------------------------------------------------------------------------- */

enum { P_QUOTA, P_REPEAT, P_QUANTUM, P_ETA, P_OPEN, P_CHARGE };

static const char ours[] = "ours";

static const struct cc_param params[] = {
    [P_QUOTA] = {"quota", CC_BYTES, "52000", "0", "1G", NULL, "bytes that are sent unasked; one round trip at 100G",
                 ours},
    [P_REPEAT] = {"repeat", CC_TIME, "200us", "1us", "1s", NULL, "without a grant for so long it asks again", ours},
    /* of the receiver */
    [P_QUANTUM] = {"quantum", CC_COUNT, "4", "1", "1024", "packets", "granted at a time",
                   "ours, after Ultra Ethernet's receiver"},
    [P_ETA] = {"eta", CC_SHARE, "0.97", "0.1", "1", NULL, "share of the line that is granted", ours},
    [P_OPEN] = {"open", CC_BYTES, "78000", "64", "1G", NULL, "bytes granted and not arrived; 1.5 round trips at 100G",
                ours},
    [P_CHARGE] = {"charge", CC_WORD, "yes", NULL, "no,yes", NULL, "what comes unasked counts as granted", ours},
    {0}};

#define ASKS_IN_VAIN 16
#define ASK_PACKETS  16 /* it asks again for so much more, even if not all that it asked for is granted */

struct CC_STATE sq {
    uint64_t demand;  /* bytes in all that are to be sent beyond the first quota */
    uint64_t asked;   /* of these, what the receiver was told */
    uint64_t granted; /* bytes in all; the first quota is not among them */
    uint32_t in_vain; /* times that it asked again and was never granted anything */
    uint64_t debt;    /* bytes of a packet that began with less budget than it took */
};

static void start(struct cc *c, ns_t now)
{
    (void)now;
    c->budget = c->config->v[P_QUOTA];
}

static void sent(struct cc *c, uint32_t bytes, ns_t now)
{
    uint64_t paid = min_u64(c->budget, bytes);

    (void)now;
    if (c->budget == CC_NO_LIMIT)
        return;
    c->budget -= paid;
    CC_STATE_OF(c, struct sq)->debt += bytes - paid;
}

static void wait_for_grant(struct cc *c, const struct sq *s, ns_t now)
{
    c->deadline = s->granted < s->demand ? now + (ns_t)c->config->v[P_REPEAT] : NS_NEVER;
}

static void demand(struct cc *c, uint64_t bytes, ns_t now)
{
    struct sq *s = CC_STATE_OF(c, struct sq);
    uint64_t quota = c->config->v[P_QUOTA];

    if (bytes <= quota || bytes - quota <= s->demand || c->budget == CC_NO_LIMIT)
        return;
    s->demand = bytes - quota;
    if (s->granted >= s->asked || s->demand - s->asked >= ASK_PACKETS * (uint64_t)c->limits.mtu)
        c->want_ask = true;
    if (c->deadline == NS_NEVER)
        wait_for_grant(c, s, now);
}

static void asked(struct cc *c, ns_t now)
{
    struct sq *s = CC_STATE_OF(c, struct sq);

    c->want_ask = false;
    s->asked = s->demand;
    wait_for_grant(c, s, now);
}

static void credit(struct cc *c, uint64_t granted, ns_t now)
{
    struct sq *s = CC_STATE_OF(c, struct sq);
    uint64_t more, paid;

    if (granted <= s->granted || c->budget == CC_NO_LIMIT)
        return;
    more = granted - s->granted;
    s->granted = granted;
    paid = min_u64(more, s->debt);
    s->debt -= paid;
    c->budget += more - paid;
    if (s->granted >= s->asked && s->asked < s->demand)
        c->want_ask = true;
    wait_for_grant(c, s, now);
}

static bool look(const struct cc *c, unsigned i, struct cc_value *v)
{
    const struct sq *s = CC_STATE_OF(c, const struct sq);

    if (i == 0)
        *v = (struct cc_value){"demand", s->demand, CC_BYTES};
    else if (i == 1)
        *v = (struct cc_value){"quota", c->config->v[P_QUOTA], CC_BYTES};
    else
        *v = (struct cc_value){"granted", s->granted, CC_BYTES};
    return i < 3;
}

/* A receiver that never grants knows nothing of quotas: then there is none. */
static void expire(struct cc *c, ns_t now)
{
    struct sq *s = CC_STATE_OF(c, struct sq);

    s->in_vain += !s->granted;
    if (s->in_vain > ASKS_IN_VAIN) {
        c->budget = CC_NO_LIMIT;
        c->deadline = NS_NEVER;
        return;
    }
    c->want_ask = true;
    wait_for_grant(c, s, now);
}

const struct cc_scheme cc_sq = {.name = "sq",
                                .help = "the receiver grants bytes: Shaped-Quota by our definition",
                                .needs = CC_NEEDS_CREDIT,
                                .params = params,
                                .start = start,
                                .sent = sent,
                                .demand = demand,
                                .asked = asked,
                                .credit = credit,
                                .look = look,
                                .expire = expire};

/* --- The receiver ----------------------------------------------------------------------------- */

struct credit_config credit_config_of(const struct cc_config *config)
{
    const uint64_t *v = config->v;

    return (struct credit_config){v[P_QUANTUM], v[P_ETA], v[P_OPEN], v[P_CHARGE]};
}

void credit_init(struct credit *c, const struct credit_config *config, struct credit_sender *sender, uint32_t n,
                 uint64_t line, uint32_t mtu)
{
    *c = (struct credit){.config = config, .sender = sender, .n = n, .line = line, .mtu = mtu, .next = NS_NEVER};
}

#define FRACTION_BITS 16
#define WRITE_OFF     (200 * NS_PER_US) /* so long after the latest arrival or grant, what is open will not come */

/* Give away the time of `bytes` at the rate that is granted. */
static void pay(struct credit *c, uint64_t bytes, ns_t now)
{
    uint64_t rate = max_u64(cc_part(c->line, c->config->eta), 1);
    uint64_t time = cc_mul_div(bytes << FRACTION_BITS, 8 * (uint64_t)NS_PER_S, rate);

    if (c->paid < now) {
        c->paid = now;
        c->paid_fraction = 0;
    }
    time += c->paid_fraction;
    c->paid += (ns_t)(time >> FRACTION_BITS);
    c->paid_fraction = (uint32_t)(time & ((1u << FRACTION_BITS) - 1));
}

static uint64_t quantum(const struct credit *c)
{
    return c->config->quantum * c->mtu;
}

static bool wants(const struct credit_sender *s)
{
    return s->granted < s->asked;
}

/* What was granted and has not arrived keeps more from being granted. */
static bool is_full(const struct credit *c)
{
    return c->open && c->open + quantum(c) > c->config->most;
}

static void plan(struct credit *c, ns_t now)
{
    c->next = c->paid > now ? c->paid : now;
    if (!c->wanting)
        c->next = NS_NEVER;
    else if (is_full(c))
        c->next = c->moved + WRITE_OFF;
}

void credit_asked(struct credit *c, uint32_t i, uint64_t bytes, uint64_t quota, ns_t now)
{
    struct credit_sender *s = &c->sender[i];

    if (!s->quota)
        s->quota = quota;
    if (bytes <= s->asked)
        return;
    c->wanting += !wants(s);
    s->asked = bytes;
    plan(c, now);
}

/* Bytes of a sender that have arrived as granted, or were lost. */
static uint64_t used(const struct credit_sender *s)
{
    return s->arrived > s->quota ? min_u64(s->arrived - s->quota, s->granted) : 0;
}

void credit_arrived(struct credit *c, uint32_t i, uint32_t bytes, ns_t now)
{
    struct credit_sender *s = &c->sender[i];
    uint64_t before = used(s), unasked = s->quota - min_u64(s->arrived, s->quota);

    s->arrived += bytes;
    c->moved = now;
    c->open -= used(s) - before;
    unasked = min_u64(unasked, bytes);
    if (unasked && c->config->charge)
        pay(c, unasked, now);
    plan(c, now);
}

void credit_sent(struct credit *c, uint32_t i, uint64_t bytes, ns_t now)
{
    struct credit_sender *s = &c->sender[i];
    uint64_t before = used(s);

    if (bytes <= s->arrived)
        return;
    s->arrived = bytes;
    c->open -= used(s) - before;
    plan(c, now);
}

void credit_forget(struct credit *c, uint32_t i, ns_t now)
{
    struct credit_sender *s = &c->sender[i];

    c->open -= s->granted - used(s);
    c->wanting -= wants(s);
    *s = (struct credit_sender){0};
    plan(c, now);
}

/* Senders may have less to send than they asked for, or be gone. */
static void write_off(struct credit *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        c->sender[i].arrived = max_u64(c->sender[i].arrived, c->sender[i].quota + c->sender[i].granted);
    c->open = 0;
}

int credit_grant(struct credit *c, uint64_t *granted, ns_t now)
{
    if (is_full(c))
        write_off(c);
    c->moved = now;
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t k = (c->turn + i) % c->n;
        struct credit_sender *s = &c->sender[k];
        uint64_t bytes, before = used(s);
        if (!wants(s))
            continue;
        bytes = min_u64(quantum(c), s->asked - s->granted);
        s->granted += bytes;
        c->wanting -= !wants(s);
        c->open += bytes - (used(s) - before); /* a packet may have come on credit */
        pay(c, bytes, now);
        c->turn = (k + 1) % c->n;
        *granted = s->granted;
        plan(c, now);
        return (int)k;
    }
    c->next = NS_NEVER;
    return -1;
}
