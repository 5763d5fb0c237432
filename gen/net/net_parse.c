/* layer 3 (net): nodes of the simulated network written as text. */
#include "gen/net/net.h"

static const char *const kinds[] = {"delay",   "rate",     "loss", "burst", "every", "reorder", "dup",
                                    "corrupt", "truncate", "mtu",  "pause", "down",  "tap",     "events"};

/* Where the nodes of some words are. */
struct place {
    unsigned dir; /* host whose frames pass them */
    bool before;  /* the middle tap */
    uint8_t path; /* 0: both */
};

/* Add a node. */
static struct net_node *node_add(struct net_config *c, const struct place *at, enum net_kind kind)
{
    unsigned i = c->n[at->dir]++;
    struct net_node *n = &c->node[at->dir][i];

    *n = (struct net_node){.kind = (uint8_t)kind, .path = at->path};
    c->before[at->dir][i] = at->before;
    return n;
}

/* "A/B" */
static bool pair(const struct token *v, struct token *a, struct token *b)
{
    return token_cut(v, '/', a, b);
}

static bool parse_u32(const struct token *t, uint32_t min, uint32_t *v)
{
    uint64_t x;

    if (!token_size(t, &x) || x < min || x > UINT32_MAX)
        return false;
    *v = (uint32_t)x;
    return true;
}

static bool parse_red(struct net_node *n, const struct token *v)
{
    struct token a, rest, b, p;

    n->ecn = NET_ECN_RED;
    return pair(v, &a, &rest) && pair(&rest, &b, &p) && token_size(&a, &n->kmin) && token_size(&b, &n->kmax) &&
           n->kmin < n->kmax && token_ppb(&p, &n->ppb);
}

static bool parse_corrupt(struct net_node *n, const struct token *v)
{
    struct token p, what;

    n->damage = DAMAGE_PAYLOAD;
    if (!pair(v, &p, &what))
        return token_ppb(v, &n->ppb);
    if (token_is(&what, "icrc"))
        n->damage = DAMAGE_ICRC;
    else if (!token_is(&what, "payload")) {
        n->damage = DAMAGE_FIELD;
        if (!frame_field_find(&n->field, what.p, what.len))
            return false;
    }
    return token_ppb(&p, &n->ppb);
}

/* "FROM" or "FROM/TIME" */
static bool parse_down(struct net_node *n, const struct token *v)
{
    struct token a, b;
    ns_t time;

    n->until = NS_NEVER;
    if (!pair(v, &a, &b))
        return token_time(v, &n->from);
    if (!token_time(&a, &n->from) || !token_time(&b, &time) || !time || time > NS_NEVER - n->from)
        return false;
    n->until = n->from + time;
    return true;
}

/* A word that names a node. */
static bool parse_value(struct net_node *n, const struct token *v)
{
    struct token a = *v, b = *v;

    switch ((enum net_kind)n->kind) {
    case NET_DELAY:
        return token_time(v, &n->delay);
    case NET_RATE:
        n->limit = 1 << 20;
        return token_rate(v, &n->rate) && n->rate;
    case NET_LOSS:
    case NET_DUP:
        return token_ppb(v, &n->ppb);
    case NET_BURST:
        return pair(v, &a, &b) && token_ppb(&a, &n->ppb) && token_ppb(&b, &n->ppb_back) && n->ppb_back;
    case NET_EVERY:
    case NET_MTU:
        return parse_u32(v, 1, &n->n);
    case NET_REORDER:
        n->delay = 10 * NS_PER_MS;
        return pair(v, &a, &b) && token_ppb(&a, &n->ppb) && parse_u32(&b, 1, &n->n);
    case NET_PAUSE:
        return pair(v, &a, &b) && token_ppb(&a, &n->ppb) && token_time(&b, &n->delay) && n->delay;
    case NET_DOWN:
        return parse_down(n, v);
    case NET_TRUNCATE:
        return pair(v, &a, &b) && token_ppb(&a, &n->ppb) && parse_u32(&b, 1, &n->n);
    default:
        return parse_corrupt(n, v);
    }
}

/* "RATE/TIME" */
static bool parse_change(struct net_node *n, const struct token *v)
{
    struct token a, b;

    return pair(v, &a, &b) && token_rate(&a, &n->other_rate) && n->other_rate && token_time(&b, &n->delay) && n->delay;
}

/* A parameter of the preceding rate node: 1: accepted; 0: another word; -1: wrong. */
static int parse_rate_more(struct net_node *rate, const struct token *key, const struct token *v)
{
    bool good;

    if (token_is(key, "queue"))
        good = rate && token_size(v, &rate->limit);
    else if (token_is(key, "ecn"))
        good = rate && (rate->ecn = NET_ECN_THRESHOLD, token_size(v, &rate->kmin));
    else if (token_is(key, "red"))
        good = rate && parse_red(rate, v);
    else if (token_is(key, "change"))
        good = rate && parse_change(rate, v);
    else
        return 0;
    return good ? 1 : -1;
}

static bool parse_word(struct net_config *c, const struct token *t, const struct place *at, struct net_node **rate,
                       struct text_error *e)
{
    struct token key, v;
    int kind = 0, r;

    if (!token_key(t, &key, &v))
        return text_fail(e, t, "expected a word like loss=1%%, found '%.*s'", (int)t->len, t->p);
    r = parse_rate_more(*rate, &key, &v);
    if (r)
        return r > 0 ||
               text_fail(e, *rate ? &v : t, *rate ? "'%.*s' is not understood" : "'%.*s' needs rate= before it",
                         (int)t->len, t->p);
    if (c->n[at->dir] + 8 > NET_CHAIN_MAX)
        return text_fail(e, t, "more than %d nodes in one direction", NET_CHAIN_MAX - 8);
    if (token_is(&key, "jitter"))
        return token_time(&v, &node_add(c, at, NET_DELAY)->jitter) || text_fail(e, &v, "expected a time such as 5us");
    while (kind < NET_TAP && !token_is(&key, kinds[kind]))
        kind++;
    if (kind == NET_TAP)
        return text_fail(e, t, "the network has no '%.*s'", (int)key.len, key.p);
    struct net_node *n = node_add(c, at, (enum net_kind)kind);
    if (kind == NET_RATE)
        *rate = n;
    return parse_value(n, &v) || text_fail(e, &v, "'%.*s' is no value of %s", (int)v.len, v.p, kinds[kind]);
}

/* Whether a word is a place for the nodes that the other words name. *bad: it is wrong. */
static bool is_place(const struct token *t, struct place *at, bool *bad)
{
    struct token key, v;
    uint64_t path;

    at->before |= token_is(t, "before");
    if (token_is(t, "before"))
        return true;
    if (!token_key(t, &key, &v) || !token_is(&key, "path"))
        return false;
    *bad = !token_u64(&v, &path) || path < 1 || path > 2 || (at->path && at->path != path);
    at->path = (uint8_t)path;
    return true;
}

bool net_parse(struct net_config *c, const struct token *t, unsigned n, unsigned dirs, struct text_error *e)
{
    struct place at = {0}, again = {0};
    bool bad = false;

    for (unsigned i = 0; i < n; i++)
        if (is_place(&t[i], &at, &bad) && bad)
            return text_fail(e, &t[i], "expected one path=1 or path=2, found '%.*s'", (int)t[i].len, t[i].p);
    for (at.dir = 0; at.dir < NET_HOSTS; at.dir++) {
        struct net_node *rate = NULL;
        for (unsigned i = 0; i < n && (dirs >> at.dir & 1); i++)
            if (!is_place(&t[i], &again, &bad) && !parse_word(c, &t[i], &at, &rate, e))
                return false;
    }
    return true;
}
