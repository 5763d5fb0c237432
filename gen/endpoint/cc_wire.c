/* layer 3 (endpoint): what congestion control tells by packets of our own (dissect/ib/cc_wire.h): what a sender asks
 * for and its receiver grants, the telemetry that a receiver returns, the fair rate of a switch. */
#include "dissect/ib/cc_wire.h"

#include "dissect/ip/ip.h"
#include "gen/endpoint/endpoint_impl.h"
#include "src/cc/credit.h"

#include <errno.h>
#include <stdlib.h>

static uint8_t needs(const struct ep_qp *q)
{
    return q->ep->cfg.congestion.cc.scheme->needs;
}

/* --- Quotas: the sender ----------------------------------------------------------------------- */

/* Frame bytes that wait to be sent, for the first time or again. */
static uint64_t backlog(const struct ep_qp *q)
{
    const struct requester *r = &q->qp.req;
    uint32_t repeats = (uint32_t)psn_diff(r->psn_next, r->psn_tx);
    bool waits = q->sq_tail != r->msg_tail || r->msg_tx != r->msg_tail;
    uint64_t bytes = q->cc->unsent + (uint64_t)repeats * q->cc->c.limits.mtu;

    return waits && !bytes ? q->cc->c.limits.mtu : bytes;
}

static uint64_t frame_bytes(const struct ep_qp *q, uint8_t operation, uint32_t payload)
{
    return build_size(&q->path, &opcode_table[OPCODE(q->qp.req.p.service, operation)], payload);
}

void ep_cc_posted(struct ep_qp *q, const struct wr_info *i, uint32_t len)
{
    uint32_t pmtu = q->qp.req.p.pmtu, data = i->data ? len : 0, middle;

    if (i->kind == MSG_LOCAL)
        return;
    if (data <= pmtu) {
        q->cc->unsent += frame_bytes(q, i->only, data);
        return;
    }
    middle = (data - 1) / pmtu - 1;
    q->cc->unsent += frame_bytes(q, i->first, pmtu) + middle * frame_bytes(q, i->middle, pmtu) +
                     frame_bytes(q, i->last, data - (middle + 1) * pmtu);
}

bool ep_cc_asks(struct ep_qp *q, ns_t now)
{
    struct cc *c;

    if (!(needs(q) & CC_NEEDS_CREDIT) || !qp_can_send(&q->qp))
        return false;
    c = ep_cc_begun(q, now);
    cc_demand(c, q->cc->sent + backlog(q), now);
    return c->want_ask;
}

static int send_quota(struct ep_qp *q, const struct cc_quota *m, const struct path *path, uint8_t *buf, uint32_t cap)
{
    struct endpoint *ep = q->ep;
    struct frame_out out = {.buf = buf, .cap = cap};
    struct pkt *p = &ep->tx;

    ep_fill_bth(q, p, CC_QUOTA_OPCODE, 0);
    if (build_begin(&out, path, p, CC_QUOTA_LEN, ep->ip_id, NULL))
        return -ENOSPC;
    cc_quota_put(out.payload, m);
    build_end(&out, path, p, CC_QUOTA_LEN, NULL);
    ep->ip_id++;
    ep->sent.request = false;
    return (int)out.len;
}

int ep_cc_send_ask(struct ep_qp *q, uint8_t *buf, uint32_t cap, ns_t now)
{
    struct cc *c = &q->cc->c;
    struct cc_quota m = {.magic = CC_QUOTA_MAGIC,
                         .kind = CC_QUOTA_ASK,
                         .bytes = cc_look(c, "demand"),
                         .sent = q->cc->sent,
                         .quota = cc_look(c, "quota")};

    cc_asked(c, now);
    return send_quota(q, &m, &q->path, buf, cap);
}

/* --- Quotas: the receiver --------------------------------------------------------------------- */

#define AROUND_FRAME 24 /* bytes of the line that a frame takes besides: preamble, check sequence, gap */

/* Who may send how much to this endpoint. */
struct ep_grants {
    struct credit c;
    struct credit_config config;
    uint32_t cap; /* senders for which there is memory; by handle of the queue pair */
};

void ep_grants_close(struct endpoint *ep)
{
    if (ep->grants)
        free(ep->grants->c.sender);
    free(ep->grants);
}

/* Room for the sender of `q`. */
static bool make_room(struct ep_grants *g, const struct ep_qp *q)
{
    uint32_t cap = g->cap ? g->cap : 16;
    struct credit_sender *s;

    while (cap <= (uint32_t)q->handle)
        cap *= 2;
    if (cap > g->cap) {
        s = realloc(g->c.sender, cap * sizeof *s);
        if (!s)
            return false;
        memset(s + g->cap, 0, (cap - g->cap) * sizeof *s);
        g->c.sender = s;
        g->cap = g->c.n = cap;
    }
    return true;
}

/* The grants of the endpoint, begun by its first sender; NULL: no memory. */
static struct ep_grants *grants_of(const struct ep_qp *q)
{
    struct endpoint *ep = q->ep;
    struct ep_grants *g = ep->grants;
    uint64_t mtu, line;

    if (!g) {
        g = ep->grants = calloc(1, sizeof *g);
        if (!g)
            return NULL;
        mtu = build_size(&q->path, &opcode_table[OPCODE(SVC_RC, OP_SEND_MIDDLE)], q->qp.req.p.pmtu);
        line = ep_link_rate(ep) / (mtu + AROUND_FRAME) * mtu;
        g->config = credit_config_of(&ep->cfg.congestion.cc);
        credit_init(&g->c, &g->config, NULL, 0, line, (uint32_t)mtu);
    }
    return make_room(g, q) ? g : NULL;
}

void ep_grants_forget(const struct ep_qp *q)
{
    struct ep_grants *g = q->ep->grants;

    if (g && (uint32_t)q->handle < g->cap)
        credit_forget(&g->c, (uint32_t)q->handle, 0);
}

ns_t ep_grants_next(const struct endpoint *ep)
{
    return LIKELY(!ep->grants) ? NS_NEVER : ep->grants->c.next;
}

void ep_grants_expire(struct endpoint *ep, ns_t now)
{
    while (ep_grants_next(ep) <= now) {
        uint64_t granted;
        int i = credit_grant(&ep->grants->c, &granted, now);
        struct ep_qp *q = i < 0 ? NULL : ep->qp[i];
        if (!q || !q->cc)
            continue;
        q->cc->granted = granted;
        q->cc->grant_due = true;
        ep_ready(q);
    }
}

int ep_cc_send_grant(struct ep_qp *q, uint8_t *buf, uint32_t cap)
{
    struct cc_quota m = {.magic = CC_QUOTA_MAGIC, .kind = CC_QUOTA_GRANT, .bytes = q->cc->granted};
    struct path path = ep_cnp_path(q);

    q->cc->grant_due = false;
    return send_quota(q, &m, &path, buf, cap);
}

static void take_ask(struct ep_grants *g, struct ep_qp *q, const struct cc_quota *m, ns_t now)
{
    uint32_t i = (uint32_t)q->handle;

    credit_asked(&g->c, i, m->bytes, m->quota, now);
    credit_sent(&g->c, i, m->sent, now);
    q->cc->granted = g->c.sender[i].granted;
    q->cc->grant_due |= m->bytes && q->cc->granted >= m->bytes; /* the grant was lost */
}

bool ep_cc_quota(struct ep_qp *q, const struct pkt *p, ns_t now)
{
    struct ep_grants *g;
    struct cc_quota m;

    if (!cc_quota_of(&m, p))
        return false;
    if (!q->cc || !(needs(q) & CC_NEEDS_CREDIT))
        return true;
    if (m.kind == CC_QUOTA_GRANT)
        cc_credit(ep_cc_begun(q, now), m.bytes, now);
    else if ((g = grants_of(q)) != NULL)
        take_ask(g, q, &m, now);
    ep_ready(q);
    return true;
}

/* --- Telemetry -------------------------------------------------------------------------------- */

static uint32_t put_telemetry(const struct ep_cc *e, uint8_t kind, uint8_t hops, uint8_t *at, uint32_t room)
{
    struct cc_int t = {.magic = CC_INT_MAGIC, .kind = kind, .hops = hops};
    uint32_t len = CC_INT_LEN + hops * (uint32_t)INT_HOP_LEN;

    if (room < len)
        return 0;
    cc_int_put(at, &t);
    for (unsigned i = 0; i < hops; i++)
        int_hop_put(at + CC_INT_LEN + i * INT_HOP_LEN, &e->hop[i]);
    return len;
}

uint32_t ep_cc_collect(const struct ep_qp *q, uint8_t *at, uint32_t room)
{
    return needs(q) & CC_NEEDS_INT ? put_telemetry(q->cc, CC_INT_COLLECT, 0, at, room) : 0;
}

uint32_t ep_cc_return(const struct ep_qp *q, uint8_t *at, uint32_t room)
{
    return q->cc->hops ? put_telemetry(q->cc, CC_INT_RETURN, q->cc->hops, at, room) : 0;
}

/* The telemetry of a packet; false: it has none of this kind. */
static bool telemetry_of(struct cc_int *t, struct int_hop hop[INT_HOPS_MAX], const struct pkt *p, uint8_t kind)
{
    return p->end <= p->caplen && cc_telemetry_get(t, hop, p->data + p->end, p->caplen - p->end) && t->kind == kind;
}

void ep_cc_arrived(struct ep_qp *q, const struct pkt *p, uint32_t len, ns_t now)
{
    struct ep_grants *g = q->ep->grants;
    struct int_hop hop[INT_HOPS_MAX];
    struct cc_int t;

    if (!(p->op->flags & OPF_REQUEST))
        return;
    if (UNLIKELY(g != NULL) && (uint32_t)q->handle < g->cap)
        credit_arrived(&g->c, (uint32_t)q->handle, len, now);
    if (!(needs(q) & CC_NEEDS_INT) || !telemetry_of(&t, hop, p, CC_INT_COLLECT))
        return;
    q->cc->hops = t.hops;
    memcpy(q->cc->hop, hop, t.hops * sizeof *hop);
}

void ep_cc_telemetry(struct ep_qp *q, const struct pkt *p, ns_t rtt, ns_t now)
{
    struct cc_hop to[INT_HOPS_MAX];
    struct int_hop hop[INT_HOPS_MAX];
    struct cc_int t;

    if (!rtt || !(needs(q) & CC_NEEDS_INT) || !telemetry_of(&t, hop, p, CC_INT_RETURN))
        return;
    for (unsigned i = 0; i < t.hops; i++)
        to[i] = (struct cc_hop){
            .line = hop[i].rate * UINT64_C(1000000), .ts = hop[i].time, .tx_bytes = hop[i].sent, .queue = hop[i].queue};
    cc_telemetry(&q->cc->c, to, t.hops, rtt, now);
}

/* --- Fair rates ------------------------------------------------------------------------------- */

/* What a message with a fair rate quotes: whom the packet in the queue is for. */
static bool quoted(const struct pkt *p, struct cc_fair *f, uint8_t gid[16], struct bth *bth)
{
    bool fair = false, packet = false;

    memset(gid, 0, 16);
    for (unsigned i = 0; i < p->n_layers; i++) {
        const struct layer *l = &p->layers[i];
        if (l->hdr == &cc_fair_hdr) {
            cc_fair_get(f, p->data + l->off);
            fair = true;
        } else if (fair && l->hdr == &ip4_hdr) {
            gid_from_ipv4(gid, load_be32(p->data + l->off + 16));
        } else if (fair && l->hdr == &ip6_hdr) {
            memcpy(gid, p->data + l->off + 24, 16);
        } else if (fair && l->hdr == &bth_hdr && l->len >= 12) {
            bth_get(bth, p->data + l->off);
            packet = true;
        }
    }
    return fair && packet;
}

bool ep_cc_fair(struct endpoint *ep, const struct pkt *p, ns_t now)
{
    struct cc_fair f = {0};
    struct bth bth = {0};
    uint8_t gid[16];

    if (!ep->cfg.congestion.cc.scheme || !(p->flags & PKT_QUOTED) || !quoted(p, &f, gid, &bth))
        return false;
    for (uint32_t i = 0; i < ep->n_qp; i++) {
        struct ep_qp *q = ep->qp[i];
        bool meant = q && q->cc && q->cc->started && q->qp.attr.dest_qpn == bth.dqpn;
        if (!meant || memcmp(q->qp.attr.av.dgid, gid, 16) != 0)
            continue;
        cc_fair_rate(&q->cc->c, f.rate * UINT64_C(1000), f.cp, now);
        ep_ready(q);
        return true;
    }
    return false;
}
