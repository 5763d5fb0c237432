/* layer 2b (conn): learning connections from CM messages and from the TCP parameter exchange of test programs. */
#include "src/conn/setup.h"

#include "dissect/ip/tcp.h"
#include "dissect/mad/cm.h"
#include "dissect/ulp/service.h"

/* A place in a ring of pending halves; the oldest is given up. */
static struct pending *pending_new(struct pending *ring, uint32_t *at)
{
    return &ring[(*at)++ % LEARN_PENDING];
}

/* The oldest pending half that `p`, in the opposite direction, answers. */
static struct pending *pending_find(struct pending *ring, uint32_t at, const struct pending *answer)
{
    for (uint32_t i = 0; i < LEARN_PENDING; i++) {
        struct pending *h = &ring[(at + i) % LEARN_PENDING];
        if (h->used && h->id == answer->id && h->tap == answer->tap && conn_addr_eq(&h->src, &answer->dst) &&
            conn_addr_eq(&h->dst, &answer->src))
            return h;
    }
    return NULL;
}

static struct pending pending_of(const struct pkt *p, uint32_t id)
{
    struct pending h = {.used = true, .id = id, .tap = conn_tap_of(p->frame)};

    conn_addr_of(p, &h.src, &h.dst);
    return h;
}

static void learn_req(struct learner *l, const struct pkt *p, const struct cm_req *m)
{
    struct pending h = pending_of(p, m->local_id), *old;

    h.end.qpn = m->qpn;
    h.end.psn = m->psn;
    h.pmtu = cm_mtu_bytes(m->mtu);
    h.upper = ulp_of_service(m->service_id);
    h.depth = m->init_depth;
    memcpy(h.gid[0].b, m->prim_lgid, sizeof h.gid[0].b);
    memcpy(h.gid[1].b, m->prim_rgid, sizeof h.gid[1].b);
    h.peer = (struct conn_params){.have_timeout = true,
                                  .have_rnr = true,
                                  .no_credits = !m->flow_ctrl || m->srq,
                                  .timeout = m->prim_ack_timeout,
                                  .retry_cnt = m->retry_count,
                                  .rnr_retry = m->rnr_retry,
                                  .pkey = m->pkey,
                                  .req_frame = p->frame->number};
    old = pending_find(l->req, l->req_at, &(struct pending){.id = h.id, .tap = h.tap, .src = h.dst, .dst = h.src});
    if (old && old->end.qpn == h.end.qpn && old->end.psn == h.end.psn)
        return;                                         /* sent again */
    *(old ? old : pending_new(l->req, &l->req_at)) = h; /* its sender gives the id to another connection */
}

/* The starting PSN of a message is the one from which its receiver sends. */
static void learn_rep(struct learner *l, struct conn_table *t, const struct pkt *p, const struct cm_rep *m)
{
    struct pending rep = pending_of(p, m->remote_id), *req = pending_find(l->req, l->req_at, &rep);
    struct conn_known k = {.how = PAIR_CM};

    if (!req)
        return;
    k.addr[0] = req->src;
    k.addr[1] = req->dst;
    k.qpn[0] = req->end.qpn;
    k.qpn[1] = m->qpn;
    k.psn[0] = m->psn;
    k.psn[1] = req->end.psn;
    k.id[0] = m->remote_id;
    k.id[1] = m->local_id;
    k.pmtu = req->pmtu;
    k.upper = req->upper;
    k.params[1] = req->peer;
    k.params[1].have_depth = true;
    k.params[1].depth = m->init_depth;
    k.params[1].rep_frame = p->frame->number;
    k.params[0] = (struct conn_params){.have_depth = true,
                                       .have_rnr = true,
                                       .have_asked = true,
                                       .timeout = req->peer.timeout,
                                       .retry_cnt = req->peer.retry_cnt,
                                       .no_credits = !m->flow_ctrl || m->srq,
                                       .depth = req->depth < m->resp_res ? req->depth : m->resp_res,
                                       .rnr_retry = m->rnr_retry,
                                       .pkey = req->peer.pkey,
                                       .req_frame = req->peer.req_frame,
                                       .rep_frame = p->frame->number};
    conn_learn(t, &k);
    if (memcmp(k.addr, req->gid, sizeof k.addr) != 0 && p->encap == ENCAP_IB) {
        memcpy(k.addr, req->gid, sizeof k.addr);
        conn_learn(t, &k);
    }
}

static void learn_cm(struct learner *l, struct conn_table *t, const struct pkt *p)
{
    struct cm_msg m;

    if (!cm_msg_of(&m, p))
        return;
    if (m.mad.attr_id == CM_REQ)
        learn_req(l, p, &m.req);
    else if (m.mad.attr_id == CM_REP)
        learn_rep(l, t, p, &m.rep);
}

static void learn_exchange(struct learner *l, struct conn_table *t, const struct pkt *p, const uint8_t *data,
                           uint32_t len)
{
    uint32_t ports = p->sport < p->dport ? (uint32_t)p->sport << 16 | p->dport : (uint32_t)p->dport << 16 | p->sport;
    struct pending h = pending_of(p, ports), *other;
    struct conn_known k = {.how = PAIR_EXCHANGE};

    if (!exchange_parse(&h.end, data, len))
        return;
    if (!h.end.have_addr)
        memcpy(h.end.addr, h.src.b, sizeof h.end.addr);
    other = pending_find(l->exchange, l->exchange_at, &h);
    if (!other) {
        *pending_new(l->exchange, &l->exchange_at) = h;
        return;
    }
    memcpy(k.addr[0].b, other->end.addr, sizeof k.addr[0].b);
    memcpy(k.addr[1].b, h.end.addr, sizeof k.addr[1].b);
    k.qpn[0] = other->end.qpn;
    k.qpn[1] = h.end.qpn;
    k.psn[0] = other->end.psn;
    k.psn[1] = h.end.psn;
    other->used = false;
    conn_learn(t, &k);
}

void learn_packet(struct learner *l, struct conn_table *t, const struct pkt *p)
{
    struct tcp tcp;
    const uint8_t *data;
    uint32_t len;

    if (p->have & H_MAD && p->icrc != CRC_BAD)
        learn_cm(l, t, p);
    else if (!(p->have & H_BTH) && (data = tcp_payload(p, &tcp, &len)) != NULL)
        learn_exchange(l, t, p, data, len);
}
