/* layer 3 (net): learning connections from what passes between two hosts. */
#include "gen/net/conns_learn.h"
#include "dissect/ip/tcp.h"
#include "dissect/mad/cm.h"
#include "psn.h"

#define QPN_MULTICAST 0xffffffu
#define READ_SPAN     16384 /* PSNs by which responses may run ahead of the newest request: those of one large READ */

static unsigned learnt(struct conns_learner *l, struct conns *t, const struct conn_id *c)
{
    unsigned n = t->n < CONNS_LEARN_MAX ? conns_add(t, c) : 0;

    l->too_many += n == 0;
    return n;
}

/* --- Communication management ----------------------------------------------------------------- */

static void learn_req(struct conns_learner *l, struct conns *t, const struct conn_id *c)
{
    unsigned n = conns_find_cm(t, c->host, c->cm_id[0], c->addr[0], c->addr[1]);

    if (n && t->c[n - 1].host == c->host && t->c[n - 1].ud == c->ud && (c->ud || t->c[n - 1].qpn[0] == c->qpn[0]))
        return; /* sent again */
    learnt(l, t, c);
}

/* The starting PSN of a message is the one from which its receiver sends. */
static void learn_cm(struct conns_learner *l, struct conns *t, unsigned host, const struct pkt *p)
{
    struct conn_id c = {.host = (uint8_t)host, .no_psn = 1, .no_qpn = 2};
    struct cm_msg m;
    unsigned n = 0;

    if (!cm_msg_of(&m, p))
        return;
    conns_addr(p, c.addr[0], c.addr[1]);
    if (m.mad.attr_id == CM_REQ) {
        c.cm_id[0] = m.req.local_id;
        c.qpn[0] = m.req.qpn;
        c.psn[1] = m.req.psn;
        learn_req(l, t, &c);
    } else if (m.mad.attr_id == CM_SIDR_REQ) {
        c.cm_id[0] = m.sidr_req.request_id;
        c.no_psn = c.no_qpn = 3;
        c.ud = true;
        learn_req(l, t, &c);
    } else if (m.mad.attr_id == CM_REP || (m.mad.attr_id == CM_SIDR_REP && m.sidr_rep.status == CM_SIDR_SUCCESS)) {
        bool sidr = m.mad.attr_id == CM_SIDR_REP;
        n = conns_find_cm(t, host ^ 1, sidr ? m.sidr_rep.request_id : m.rep.remote_id, c.addr[1], c.addr[0]);
        if (!n || t->c[n - 1].host == host || t->c[n - 1].ud != sidr)
            return;
        conns_set_qpn(t, n, 1, sidr ? m.sidr_rep.qpn : m.rep.qpn);
        if (sidr)
            return;
        conns_set_cm(t, n, 1, m.rep.local_id);
        t->c[n - 1].psn[0] = m.rep.psn;
        t->c[n - 1].no_psn &= 2;
    }
}

/* --- The TCP exchange ------------------------------------------------------------------------- */

static bool same_end(const struct exchange_half *a, const struct exchange_half *b)
{
    return a->host == b->host && a->sport == b->sport && a->dport == b->dport && a->end.qpn == b->end.qpn &&
           a->end.psn == b->end.psn && memcmp(a->src, b->src, 16) == 0 && memcmp(a->dst, b->dst, 16) == 0;
}

static bool answers(const struct exchange_half *a, const struct exchange_half *b)
{
    return a->host != b->host && a->sport == b->dport && a->dport == b->sport && memcmp(a->src, b->dst, 16) == 0 &&
           memcmp(a->dst, b->src, 16) == 0;
}

static void learn_pair(struct conns_learner *l, struct conns *t, const struct exchange_half *first,
                       const struct exchange_half *second)
{
    const struct exchange_half *h[2] = {first, second};
    struct conn_id c = {.host = first->host};
    unsigned n;

    for (unsigned i = 0; i < 2; i++) {
        c.qpn[i] = h[i]->end.qpn;
        c.psn[i] = h[i]->end.psn;
        memcpy(c.addr[i], h[i]->end.addr, 16);
    }
    n = conns_find_qpn(t, c.host, c.qpn[0], c.addr[0], c.addr[1]);
    if (n && n == conns_find_qpn(t, c.host ^ 1u, c.qpn[1], c.addr[1], c.addr[0]) && t->c[n - 1].psn[0] == c.psn[0] &&
        t->c[n - 1].psn[1] == c.psn[1])
        return; /* exchanged again, as perftest does at its end */
    learnt(l, t, &c);
}

/* A half that was seen before teaches nothing: it was sent again, by TCP or by the program. */
static void learn_exchange(struct conns_learner *l, struct conns *t, unsigned host, const struct pkt *p)
{
    struct exchange_half h = {.used = true, .host = (uint8_t)host, .sport = p->sport, .dport = p->dport}, *other = NULL;
    const uint8_t *data;
    struct tcp tcp;
    uint32_t len;

    data = tcp_payload(p, &tcp, &len);
    if (!data || !exchange_parse(&h.end, data, len))
        return;
    conns_addr(p, h.src, h.dst);
    if (!h.end.have_addr || (load_be64(h.end.addr) == 0 && load_be32(h.end.addr + 8) == 0))
        memcpy(h.end.addr, h.src, 16); /* a LID says nothing on Ethernet */
    for (unsigned i = 0; i < CONNS_LEARN_HALVES; i++) {
        struct exchange_half *x = &l->half[(l->half_at + i) % CONNS_LEARN_HALVES];
        if (!x->used)
            continue;
        if (same_end(x, &h))
            return;
        if (!other && !x->paired && answers(x, &h))
            other = x;
    }
    if (other) {
        other->paired = h.paired = true;
        learn_pair(l, t, other, &h);
    }
    l->half[l->half_at++ % CONNS_LEARN_HALVES] = h;
}

/* --- Queue pairs that come from nowhere ------------------------------------------------------- */

static void learn_unknown(struct conns_learner *l, struct conns *t, unsigned host, const struct pkt *p)
{
    struct conn_id c = {.host = (uint8_t)host, .no_psn = 2, .no_qpn = 1, .newest = p->bth.psn};
    unsigned n;

    conns_addr(p, c.addr[0], c.addr[1]);
    c.qpn[1] = p->bth.dqpn;
    c.psn[0] = p->bth.psn;
    if (p->have & H_DETH) {
        c.qpn[0] = p->deth.srcqp;
        c.no_qpn = 0;
        c.ud = true;
    }
    n = learnt(l, t, &c);
    if (n && c.no_qpn)
        l->open[l->open_at++ % CONNS_LEARN_HALVES] = n;
}

/* The connection of which only the requests are known so far, and that this response of `host` answers: the one whose
 * newest request is nearest. 0: there is none. */
static unsigned answered(const struct conns_learner *l, const struct conns *t, unsigned host, const struct pkt *p)
{
    int32_t best = INT32_MAX;
    uint8_t src[16], dst[16];
    unsigned found = 0;

    conns_addr(p, src, dst);
    for (unsigned i = 0; i < CONNS_LEARN_HALVES; i++) {
        const struct conn_id *c = l->open[i] ? &t->c[l->open[i] - 1] : NULL;
        int32_t behind;
        if (!c || c->host == host || c->no_qpn != 1 || memcmp(c->addr[0], dst, 16) != 0 ||
            memcmp(c->addr[1], src, 16) != 0)
            continue;
        behind = psn_diff(c->newest, p->bth.psn);
        if (behind < -READ_SPAN || psn_diff(p->bth.psn, c->psn[0]) < 0)
            continue;
        behind = behind < 0 ? -behind : behind;
        if (behind < best) {
            best = behind;
            found = l->open[i];
        }
    }
    return found;
}

/* Connections `a` and `b` are the two directions of one, which keeps the lower number. */
static void join(struct conns *t, unsigned a, unsigned b)
{
    unsigned keep = a < b ? a : b, drop = a < b ? b : a;
    const struct conn_id *d = &t->c[drop - 1];
    uint32_t qpn = d->qpn[1], psn = d->psn[0];

    conns_unset_qpn(t, drop, 1);
    conns_set_qpn(t, keep, 0, qpn);
    t->c[keep - 1].psn[1] = psn;
    t->c[keep - 1].no_psn = 0;
}

static void learn_response(struct conns_learner *l, struct conns *t, unsigned host, const struct pkt *p, unsigned conn)
{
    unsigned n = answered(l, t, host, p);

    if (n && conn && t->c[conn - 1].no_qpn == 1 && conn != n)
        join(t, conn, n);
    else if (n && !conn)
        conns_set_qpn(t, n, 0, p->bth.dqpn);
}

static void learn_known(struct conn_id *c, const struct pkt *p, const struct conns_view *v)
{
    if (c->no_psn >> v->from & 1) {
        c->psn[v->from] = p->bth.psn;
        c->no_psn &= (uint8_t) ~(1u << v->from);
    }
    if (v->from == 0 && psn_diff(p->bth.psn, c->newest) > 0)
        c->newest = p->bth.psn;
}

/* True: *v has to be made again. */
static bool learn_packet_of_qp(struct conns_learner *l, struct conns *t, unsigned host, const struct pkt *p,
                               const struct conns_view *v)
{
    struct conn_id *c = v->conn ? &t->c[v->conn - 1] : NULL;

    if (v->class == PC_CNP || p->bth.dqpn <= 1 || p->bth.dqpn == QPN_MULTICAST || p->flags & PKT_MALFORMED)
        return false;
    if (c && !c->no_qpn && !c->no_psn)
        return false;
    if (v->request && c) {
        if (c->ud && p->have & H_DETH && c->no_qpn >> v->from & 1)
            conns_set_qpn(t, v->conn, v->from, p->deth.srcqp);
        learn_known(c, p, v);
    } else if (v->request) {
        learn_unknown(l, t, host, p);
    } else if (!v->has_psn) {
        learn_response(l, t, host, p, v->conn);
    }
    return true;
}

void conns_learn(struct conns_learner *l, struct conns *t, unsigned host, const struct pkt *p, struct conns_view *v)
{
    if (p->have & H_MAD)
        learn_cm(l, t, host, p);
    else if (!(p->have & H_BTH))
        learn_exchange(l, t, host, p);
    conns_view(t, host, p, v);
    if (v->rdma && v->class != PC_CM && learn_packet_of_qp(l, t, host, p, v))
        conns_view(t, host, p, v);
}
