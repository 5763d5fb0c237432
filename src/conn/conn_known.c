/* layer 2b (conn): connections learnt beforehand, from CM, a TCP exchange or the user. */
#include "dissect/pkt.h"
#include "src/conn/conn_impl.h"

/* Apply a learnt connection to a flow whose destination is end `end` of `k`. */
static void apply_known(struct conn_table *t, uint32_t flow, const struct conn_known *k, unsigned end)
{
    struct flow *f = &t->flows[flow];
    const struct conn_key reverse = {k->addr[end], k->addr[!end], f->tap, k->qpn[!end]};
    uint32_t peer;

    f->sqpn = k->qpn[!end];
    f->have_sqpn = true;
    f->paired_by = (uint8_t)k->how;
    f->have_psn = !k->any_psn;
    f->psn = k->psn[!end];
    f->params = k->params[!end];
    for (unsigned i = 0; i < k->n_setup; i++)
        if (k->setup[i].tap == f->tap) {
            f->params.req_ts = k->setup[i].req_ts;
            f->params.rep_ts = k->setup[i].rep_ts;
        }
    if (k->upper)
        f->upper = k->upper;
    peer = conn_find(t, &reverse);
    if (peer != FLOW_NONE)
        conn_join(t, flow, peer, k->how);
    f->pmtu = k->pmtu; /* not that of an earlier connection of the same queue pairs */
    if (peer != FLOW_NONE)
        t->flows[peer].pmtu = k->pmtu;
}

/* Whether end `end` of `k` is the destination of `f`. */
static bool known_fits(const struct conn_known *k, const struct flow *f, unsigned end)
{
    return k->qpn[end] == f->dqpn && addr_eq(&k->addr[end], &f->dst) && addr_eq(&k->addr[!end], &f->src);
}

/* The latest learnt connection of a flow, NULL: none. *end is the end that is the flow's destination. */
static struct conn_known *known_of(struct conn_table *t, const struct flow *f, unsigned *end)
{
    for (uint32_t i = t->n_known; i-- > 0;) {
        struct conn_known *k = &t->known[(t->known_at + i) % KNOWN_MAX];
        for (*end = 0; *end < 2; ++*end)
            if (known_fits(k, f, *end))
                return k;
    }
    return NULL;
}

void conn_recall(struct conn_table *t, uint32_t flow)
{
    unsigned end;
    const struct conn_known *k = known_of(t, &t->flows[flow], &end);

    if (k)
        apply_known(t, flow, k, end);
}

bool conn_is_known(struct conn_table *t, const struct pkt *p)
{
    struct flow f = {.dqpn = p->bth.dqpn};
    unsigned end;

    conn_addr_of(p, &f.src, &f.dst);
    return known_of(t, &f, &end) != NULL;
}

/* Apply `k` to flows seen before it. They may carry an earlier connection of the same queue pairs, so the user's state
 * of them is reset. */
static void learn_seen(struct conn_table *t, const struct conn_known *k, unsigned end)
{
    for (uint32_t i = *conn_pair_chain(t, &k->addr[!end], &k->addr[end]); i != FLOW_NONE; i = t->flows[i].pair_next)
        if (known_fits(k, &t->flows[i], end)) {
            if (t->over)
                t->over(t->user, i, true);
            apply_known(t, i, k, end);
        }
}

static bool same_ends(const struct conn_known *a, const struct conn_known *b)
{
    return a->qpn[0] == b->qpn[0] && a->qpn[1] == b->qpn[1] && addr_eq(&a->addr[0], &b->addr[0]) &&
           addr_eq(&a->addr[1], &b->addr[1]);
}

/* The latest connection learnt between these queue pairs, if it is `k`: setup messages are retransmitted, and seen at
 * several taps. A later connection between them may begin with the same PSNs, but has other communication ids. */
static struct conn_known *known_already(struct conn_table *t, const struct conn_known *k)
{
    for (uint32_t i = t->n_known; i-- > 0;) {
        struct conn_known *o = &t->known[(t->known_at + i) % KNOWN_MAX];
        bool same = o->psn[0] == k->psn[0] && o->psn[1] == k->psn[1] && o->id[0] == k->id[0] && o->id[1] == k->id[1] &&
                    o->how == k->how;
        if (same_ends(o, k))
            return same && !(o->over && o->tap == k->tap) ? o : NULL;
    }
    return NULL;
}

/* Another tap saw the connection set up, too. */
static void note_setup(struct conn_known *o, const struct conn_known *k)
{
    for (unsigned i = 0; i < o->n_setup; i++)
        if (o->setup[i].tap == k->setup[0].tap)
            return;
    if (k->n_setup && o->n_setup < SETUP_TAPS)
        o->setup[o->n_setup++] = k->setup[0];
}

void conn_learn(struct conn_table *t, const struct conn_known *k)
{
    struct conn_known *already = known_already(t, k);
    uint32_t at;

    t->newest = FLOW_NONE;
    if (already) {
        note_setup(already, k);
        return;
    }
    at = t->n_known < KNOWN_MAX ? t->n_known++ : t->known_at;
    if (t->n_known == KNOWN_MAX && at == t->known_at)
        t->known_at = (t->known_at + 1) % KNOWN_MAX;
    t->known[at] = *k;
    learn_seen(t, k, 0);
    learn_seen(t, k, 1);
}

void conn_close(struct conn_table *t, uint32_t tap, const struct conn_addr *end, uint32_t qpn)
{
    for (uint32_t i = t->n_known; i-- > 0;) {
        struct conn_known *k = &t->known[(t->known_at + i) % KNOWN_MAX];
        for (unsigned e = 0; e < 2; e++)
            if (k->tap == tap && k->qpn[e] == qpn && addr_eq(&k->addr[e], end)) {
                k->over = true;
                return;
            }
    }
}

static void unlearn(struct flow *f)
{
    f->paired_by = f->peer == FLOW_NONE ? PAIR_NONE : PAIR_PSN;
    f->have_psn = f->have_sqpn = false;
    f->pmtu = 0;
    f->upper = NULL;
    f->params = (struct conn_params){0};
}

void conn_unlearn(struct conn_table *t, uint32_t flow)
{
    uint32_t peer = t->flows[flow].peer;
    unsigned end;
    struct conn_known *k = known_of(t, &t->flows[flow], &end);

    if (k) { /* new flows between these queue pairs do not get it either */
        k->how = PAIR_PSN;
        k->any_psn = true;
        k->pmtu = 0;
        k->upper = NULL;
        memset(k->params, 0, sizeof k->params);
        k->n_setup = 0;
    }
    unlearn(&t->flows[flow]);
    if (peer != FLOW_NONE)
        unlearn(&t->flows[peer]);
}
