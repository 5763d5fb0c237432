/* layer 3 (endpoint): an endpoint: created, queried, freed. */
#include "gen/endpoint/endpoint.h"

#include <stdlib.h>

#include "gen/endpoint/endpoint_impl.h"

static void fill_defaults(struct ep_config *c)
{
    struct policies d = policies_default();

#define DEFAULT(member)                                                                                                \
    if (!c->policies.member) {                                                                                         \
        c->policies.member = d.member;                                                                                 \
        c->policies.member##_arg = d.member##_arg;                                                                     \
    }
    DEFAULT(ack)
    DEFAULT(window)
    DEFAULT(pace)
    DEFAULT(refill)
    DEFAULT(psn)
    DEFAULT(qpn)
    DEFAULT(sport)
#undef DEFAULT
    if (!c->policies.ackreq_every)
        c->policies.ackreq_every = d.ackreq_every;
    if (!c->mtu)
        c->mtu = 1024;
    if (!c->pkey)
        c->pkey = 0xffff;
    if (!c->max_qp)
        c->max_qp = 65536;
    if (!c->max_mr)
        c->max_mr = 4096;
    if (c->profile == EP_RXE) {
        c->credits = false;
        c->migreq = false;
    }
}

int ep_profile_find(const char *name)
{
    static const char *const names[] = {[EP_STRICT] = "strict", [EP_RXE] = "rxe", [EP_NV] = "nv"};

    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return (int)i;
    return -1;
}

static void take_faults(struct endpoint *ep)
{
    for (unsigned i = 0; i < ep->cfg.n_faults; i++) {
        enum rule rule = ep->cfg.faults[i];
        ep->fault_rules[rule / 64] |= UINT64_C(1) << (rule % 64);
        for (unsigned k = 0; k < fault_count && ep->n_fault < ARRAY_LEN(ep->fault); k++)
            if (fault_table[k].rule == rule) {
                ep->fault[ep->n_fault++] = &fault_table[k];
                ep->fault_choices |= 1u << fault_table[k].choice;
            }
    }
    ep->cfg.faults = NULL;
}

struct endpoint *ep_new(const struct ep_config *config)
{
    struct endpoint *ep = calloc(1, sizeof *ep);
    struct mr *mr;

    if (!ep)
        return NULL;
    ep->verbs.ops = &ep_verbs_ops;
    ep->cfg = *config;
    fill_defaults(&ep->cfg);
    take_faults(ep);
    prng_seed(&ep->rng, ep->cfg.seed);
    mr = calloc(ep->cfg.max_mr + 1, sizeof *mr);
    ep->mem = calloc(ep->cfg.max_mr + 1, sizeof *ep->mem);
    ep->map_mask = 63;
    ep->map = calloc(ep->map_mask + 1, sizeof *ep->map);
    if (mr)
        mr_table_init(&ep->mrs, mr, ep->cfg.max_mr + 1);
    if (!mr || !ep->mem || !ep->map || ep_cc_open(ep)) {
        free(mr);
        ep->mrs.mr = NULL;
        ep_free(ep);
        return NULL;
    }
    ep->sent.qp = -1;
    return ep;
}

void ep_free(struct endpoint *ep)
{
    if (!ep)
        return;
    for (uint32_t i = 0; i < ep->n_qp; i++)
        ep_qp_destroy(ep, (int)i);
    for (uint32_t i = 0; i < ep->n_cq; i++) {
        free(ep->cq[i]->wc);
        free(ep->cq[i]);
    }
    for (uint32_t i = 0; i < ep->n_srq; i++) {
        rq_free(&ep->srq[i]->rq);
        free(ep->srq[i]);
    }
    free(ep->cq);
    free(ep->cq_full);
    free(ep->srq);
    free(ep->qp);
    free(ep->map);
    free(ep->free_qp);
    free(ep->timers.heap);
    free(ep->ah);
    free(ep->group);
    free(ep->mem);
    free(ep->mrs.mr);
    ep_cc_close(ep);
    free(ep);
}

const struct qp *ep_qp(const struct endpoint *ep, int qp)
{
    const struct ep_qp *q = qp_of(ep, qp);

    return q ? &q->qp : NULL;
}

uint32_t ep_pick_psn(struct endpoint *ep)
{
    return ep->cfg.policies.psn->pick(&ep->rng, ep->psn_n++, ep->cfg.policies.psn_arg) & PSN_MASK;
}

void ep_qp_hold(struct endpoint *ep, int qp, ns_t until)
{
    struct ep_qp *q = qp_of(ep, qp);

    if (q)
        q->ps.next_send = until;
}

void ep_qp_set_user(struct endpoint *ep, int qp, void *user)
{
    struct ep_qp *q = qp_of(ep, qp);

    if (q)
        q->user = user;
}

void *ep_qp_user(const struct endpoint *ep, int qp)
{
    struct ep_qp *q = qp_of(ep, qp);

    return q ? q->user : NULL;
}

void ep_set_watch(struct endpoint *ep, const struct ep_watch *w)
{
    ep->watch = w;
}

struct ep_sent ep_tx_last(const struct endpoint *ep)
{
    return ep->sent;
}

uint16_t ep_linktype(const struct endpoint *ep)
{
    return ep->cfg.addr.encap == ENCAP_IB ? LINK_INFINIBAND : LINK_ETHERNET;
}

static const struct {
    const char *name;
    size_t at;
} counters[] = {
#define COUNTER(x)                                                                                                     \
    {                                                                                                                  \
#x, offsetof(struct ep_stats, x)                                                                               \
    }
    COUNTER(tx_packets),
    COUNTER(tx_bytes),
    COUNTER(rx_packets),
    COUNTER(rx_bytes),
    COUNTER(tx_payload),
    COUNTER(rx_payload),
    COUNTER(messages),
    COUNTER(served),
    COUNTER(fetched),
    COUNTER(retransmitted),
    COUNTER(out_of_sequence),
    COUNTER(packet_seq_err),
    COUNTER(duplicate_request),
    COUNTER(implied_nak_seq_err),
    COUNTER(local_ack_timeout_err),
    COUNTER(rnr_nak_retry_err),
    COUNTER(out_of_buffer),
    COUNTER(nak_sent),
    COUNTER(seq_nak_sent),
    COUNTER(rnr_nak_sent),
    COUNTER(acks_sent),
    COUNTER(rp_cnp_handled),
    COUNTER(dropped),
    COUNTER(rx_icrc_encapsulated),
    COUNTER(bad_qkey),
    COUNTER(bad_pkey),
    COUNTER(malformed),
    COUNTER(unknown_qp),
    COUNTER(other_source),
    COUNTER(other_service),
    COUNTER(faults),
    COUNTER(own_check_failures),
    COUNTER(migrated),
#undef COUNTER
};
_Static_assert(ARRAY_LEN(counters) == EP_COUNTERS, "every counter has a name");

const char *ep_counter_str(unsigned i)
{
    return counters[i].name;
}

uint64_t ep_counter(const struct ep_stats *s, unsigned i)
{
    uint64_t v;

    memcpy(&v, (const char *)s + counters[i].at, sizeof v);
    return v;
}

const struct ep_stats *ep_stats(const struct endpoint *ep)
{
    return &ep->st;
}

const struct ep_stats *ep_qp_stats(const struct endpoint *ep, int qp)
{
    const struct ep_qp *q = qp_of(ep, qp);

    return q ? &q->st : NULL;
}

const struct path *ep_qp_path(const struct endpoint *ep, int qp)
{
    const struct ep_qp *q = qp_of(ep, qp);

    return q ? &q->path : NULL;
}

const struct cc *ep_qp_cc(const struct endpoint *ep, int qp)
{
    const struct ep_qp *q = qp_of(ep, qp);

    return q && q->cc && q->cc->started ? &q->cc->c : NULL;
}

struct verdict ep_first_refused(const struct endpoint *ep)
{
    return ep->refused;
}

bool ep_has_fault(const struct endpoint *ep, enum rule rule)
{
    return ep_faulty(ep, rule);
}

void ep_count_tx(struct ep_qp *q, uint32_t len)
{
    q->st.tx_packets++;
    q->st.tx_bytes += len;
    q->ep->st.tx_packets++;
    q->ep->st.tx_bytes += len;
}
