/* layer 3 (sim): the messages of the traffic: the data of each, which both hosts know, and its row of the ledger. */
#include "gen/sim/traffic_impl.h"

#define PATTERN_STEP UINT64_C(0xbf58476d1ce4e5b9)

/* --- Data: every message has its own ---------------------------------------------------------- */

static uint64_t pattern_start(const struct traffic_flow *f, uint64_t k)
{
    const struct sim_flow *d = sim_flow_of(f);
    uint64_t v = (k + 1) * HASH_MULTIPLIER ^ ((uint64_t)d->c->number << 40 | (uint64_t)d->host << 32);

    return v ^ v >> 29;
}

void sim_pattern_put(const struct traffic_flow *f, uint64_t k, uint8_t *p, uint32_t len)
{
    uint64_t v = pattern_start(f, k);

    for (; len >= 8; len -= 8, p += 8, v += PATTERN_STEP)
        memcpy(p, &v, 8);
    memcpy(p, &v, len);
}

bool sim_pattern_is(const struct traffic_flow *f, uint64_t k, const uint8_t *p, uint32_t len)
{
    uint64_t v = pattern_start(f, k);

    for (; len >= 8; len -= 8, p += 8, v += PATTERN_STEP)
        if (memcmp(p, &v, 8) != 0)
            return false;
    return memcmp(p, &v, len) == 0;
}

/* --- The ledger ------------------------------------------------------------------------------- */

static struct ledger_row *row_of(struct sim_flow *d, uint64_t k)
{
    return &d->rows[k % d->f.t->c.tx_depth];
}

static void posted(struct traffic_flow *f, const struct traffic_message *m, uint64_t remote, ns_t now)
{
    struct sim_flow *d = sim_flow_of(f);
    uint64_t k = f->posted - 1;

    *row_of(d, k) = (struct ledger_row){.conn = d->c->number,
                                        .host = d->host,
                                        .qpn = verbs_qp_num(f->verbs, f->qp),
                                        .remote_qpn = verbs_qp_num(f->recvs.verbs, f->recvs.qp),
                                        .number = k,
                                        .va = remote,
                                        .rkey = f->rkey,
                                        .imm = (uint32_t)k,
                                        .bytes = m->len,
                                        .opcode = (uint8_t)traffic_opcode(m->op, f->t->c.with_imm),
                                        .status = LEDGER_OPEN,
                                        .posted = now,
                                        .sent = NS_NEVER,
                                        .completed = NS_NEVER};
}

/* Only the last work request may have a completion; it then means success of the others. */
static void completed(struct traffic_flow *f, uint64_t k, const struct wc *wc)
{
    struct sim_flow *d = sim_flow_of(f);
    struct ledger *l = sim_traffic_of(d)->ledger;

    for (; l && d->entered <= k && d->entered < f->posted; d->entered++) {
        struct ledger_row *r = row_of(d, d->entered);
        if (wc)
            r->status = d->entered == k ? wc->status : WC_SUCCESS;
        if (wc && d->entered == k)
            r->completed = wc->when;
        ledger_put(l, r);
    }
}

void sim_ledger_end(struct sim_flow *d)
{
    completed(&d->f, UINT64_MAX, NULL);
}

void sim_ledger_sent(void *user, unsigned host, const uint8_t *data, uint32_t len, ns_t now)
{
    struct sim_traffic *t = user;
    struct ep_sent sent = ep_tx_last(t->s->ep[host]);
    const struct sim_conn *c = sent.request ? ep_qp_user(t->s->ep[host], sent.qp) : NULL;
    struct sim_flow *d = c ? sim_flow_from(t, c->number - 1, host) : NULL;
    struct ledger_row *r;

    (void)data, (void)len;
    if (!d || sent.wr_id & TRAFFIC_FOREIGN)
        return;
    r = row_of(d, sent.wr_id % (UINT64_C(1) << TRAFFIC_FLOW));
    r->packets++;
    r->again += sent.repeat;
    if (r->sent == NS_NEVER) {
        r->sent = now;
        r->psn = sent.psn;
    }
}

const struct traffic_ways sim_ways = {.put = sim_pattern_put,
                                      .is = sim_pattern_is,
                                      .lend = sim_lend,
                                      .arrived = sim_loan_arrived,
                                      .posted = posted,
                                      .completed = completed};
