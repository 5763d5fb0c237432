/* layer 2b (conn): connections learnt beforehand, from CM, a TCP exchange or the user. */
#include "dissect/pkt.h"
#include "src/conn/conn_impl.h"

/* Apply a learnt connection to a flow whose destination is end `end` of `k`. */
static void apply_known(struct conn_table *t, uint32_t flow, const struct conn_known *k, unsigned end)
{
    struct flow *f = &t->flows[flow];
    const struct conn_key reverse = {f->dst, f->src, f->tap, k->qpn[!end]};
    uint32_t peer;

    f->sqpn = k->qpn[!end];
    f->have_sqpn = true;
    f->paired_by = (uint8_t)k->how;
    f->unlearnt = false;
    f->have_psn = !k->any_psn[!end];
    f->psn = k->psn[!end];
    f->params = k->params[!end];
    conn_changed(t, FLOW_SENDER, flow, FLOW_NONE);
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

const struct conn_known *conn_known_to(const struct conn_table *t, uint32_t flow, unsigned *end)
{
    const struct flow *f = &t->flows[flow];

    return known_of(t->known, &f->src, &f->dst, f->dqpn, end);
}

/* All but who talks to whom: what is left of a connection whose setup may be that of an earlier one. */
static void discard(struct conn_known *k)
{
    k->how = PAIR_PSN;
    k->any_psn[0] = k->any_psn[1] = true;
    k->pmtu = 0;
    k->upper = NULL;
    memset(k->params, 0, sizeof k->params);
    k->n_setup = 0;
}

/* Whether it was discarded at the tap of a flow, by what the flow of the other direction showed. */
static bool is_discarded(const struct conn_table *t, uint32_t flow, const struct conn_known *k, unsigned end)
{
    const struct flow *f = &t->flows[flow];
    uint32_t peer = conn_find(t, &(struct conn_key){f->dst, f->src, f->tap, k->qpn[!end]});

    return peer != FLOW_NONE && t->flows[peer].unlearnt;
}

void conn_recall(struct conn_table *t, uint32_t flow)
{
    unsigned end;
    const struct conn_known *k = conn_known_to(t, flow, &end);
    struct conn_known less;

    if (!k)
        return;
    if (!is_discarded(t, flow, k, end)) {
        apply_known(t, flow, k, end);
        return;
    }
    less = *k;
    discard(&less);
    apply_known(t, flow, &less, end);
    t->flows[flow].unlearnt = true;
}

bool conn_is_known(const struct conn_table *t, const struct pkt *p)
{
    struct conn_key k = {.dqpn = p->bth.dqpn};
    unsigned end;

    conn_addr_of(p, &k.src, &k.dst);
    paths_resolve(t->paths, &k);
    return known_of(t->known, &k.src, &k.dst, k.dqpn, &end) != NULL;
}

/* Whether a flow seen before `k` was learnt may carry an earlier connection of the same queue pairs. The clock of
 * another file may be ahead: of a flow there of which nothing was learnt yet, `k` tells no more than who sends it. */
static bool may_be_earlier(const struct flow *f, const struct conn_known *k)
{
    return f->have_psn || k->how != PAIR_CM || f->tap >> 16 == k->tap >> 16;
}

/* Apply `k` to flows seen before it. The user's state of those that may carry an earlier connection is reset. */
static void learn_seen(struct conn_table *t, const struct conn_known *k, unsigned end)
{
    uint32_t i = conn_first_with(t, &k->addr[!end], &k->addr[end], k->qpn[end]);

    for (; i != FLOW_NONE; i = conn_next_in(t, BY_KEY, i))
        if (known_fits(k, &t->flows[i].src, &t->flows[i].dst, t->flows[i].dqpn, end)) {
            if (t->over && may_be_earlier(&t->flows[i], k))
                t->over(t->user, i, true);
            apply_known(t, i, k, end);
        }
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
    struct conn_known *already = known_already(t->known, k);

    t->newest = FLOW_NONE;
    if (already) {
        note_setup(already, k);
        return;
    }
    paths_forget(t->paths, k->addr, k->qpn);
    known_add(t->known, k);
    learn_seen(t, k, 0);
    learn_seen(t, k, 1);
}

void conn_learn_all(struct conn_table *t, const struct conn_known *k, size_t n)
{
    for (size_t i = 0; i < n; i++)
        conn_learn(t, &k[i]);
}

void conn_close(struct conn_table *t, uint32_t tap, const struct conn_addr *end, uint32_t qpn)
{
    struct conn_known *k = known_at_end(t->known, tap, end, qpn);

    if (k)
        k->over = true;
}

static void unlearn(struct flow *f)
{
    f->paired_by = f->peer == FLOW_NONE ? PAIR_NONE : PAIR_PSN;
    f->unlearnt = true;
    f->have_psn = f->have_sqpn = false;
    f->pmtu = 0;
    f->upper = NULL;
    f->params = (struct conn_params){0};
}

void conn_unlearn(struct conn_table *t, uint32_t flow)
{
    const struct flow *f = &t->flows[flow];
    uint32_t peer = f->peer;

    unlearn(&t->flows[flow]);
    conn_changed(t, FLOW_SENDER, flow, FLOW_NONE);
    if (peer == FLOW_NONE)
        return;
    unlearn(&t->flows[peer]);
    conn_changed(t, FLOW_SENDER, peer, FLOW_NONE);
}
