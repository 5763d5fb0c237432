/* layer 3 (endpoint): congestion control: the objects of src/cc fed with what a queue pair sends and receives; CNPs.
 *
 * Requests, and responses with the data of a READ, leave at the rate of the queue pair; ACKs and CNPs leave at once. */
#include "gen/endpoint/endpoint_impl.h"

#include <errno.h>
#include <stdlib.h>

#define LINK_RATE UINT64_C(100000000000)
#define NP_SLOTS  1024
#define CE        3 /* ECN bits: congestion experienced */

static bool has_cc(const struct endpoint *ep)
{
    return ep->cfg.congestion.cc.scheme && strcmp(ep->cfg.congestion.cc.scheme->name, "none") != 0;
}

const char *ep_cc_lacks(const struct cc_scheme *scheme, bool switches)
{
    if (scheme->needs & CC_NEEDS_FAIR && !switches)
        return "switches that tell the fair rate";
    return scheme->needs & CC_NEEDS_INT && !switches ? "switches that write telemetry" : NULL;
}

int ep_cc_open(struct endpoint *ep)
{
    bool addresses = ep->cfg.congestion.np.scope == NP_IP_PAIR || ep->cfg.congestion.np.scope == NP_DEST_IP;
    struct np_slot *slot = NULL;

    if (!ep->cfg.congestion.cnps)
        return 0;
    if (addresses && !(slot = calloc(NP_SLOTS, sizeof *slot)))
        return -ENOMEM;
    np_init(&ep->np, &ep->cfg.congestion.np, slot, slot ? NP_SLOTS : 0);
    return 0;
}

void ep_cc_close(struct endpoint *ep)
{
    free(ep->np.slot);
    ep_grants_close(ep);
}

int ep_cc_create(struct ep_qp *q)
{
    const struct cc_scheme *scheme = q->ep->cfg.congestion.cc.scheme;

    if (!has_cc(q->ep) || (q->qp.type == QPT_UD && scheme->needs & CC_NEEDS_CREDIT)) /* nobody grants datagrams */
        return 0;
    q->cc = calloc(1, sizeof *q->cc);
    return q->cc ? 0 : -ENOMEM;
}

uint64_t ep_link_rate(const struct endpoint *ep)
{
    return ep->cfg.link_rate ? ep->cfg.link_rate : LINK_RATE;
}

/* --- Sending ---------------------------------------------------------------------------------- */

/* The objects begin with the first packet, when the path and its MTU are known. */
struct cc *ep_cc_begun(struct ep_qp *q, ns_t now)
{
    const struct ep_config *cfg = &q->ep->cfg;
    struct ep_cc *e = q->cc;
    struct cc_limits limits = {.line = ep_link_rate(q->ep), .slack = cfg->pace_slack, .seed = cfg->seed ^ q->qp.qpn};

    if (e->started)
        return &e->c;
    limits.mtu = build_size(&q->path, &opcode_table[OPCODE(SVC_RC, OP_SEND_MIDDLE)], q->qp.req.p.pmtu);
    cc_start(&e->c, &cfg->congestion.cc, &limits, now);
    e->started = true;
    if (e->c.segment)
        e->ackreq_every = max_u32((uint32_t)(e->c.segment / limits.mtu), 1);
    return &e->c;
}

static ns_t later(ns_t a, ns_t b)
{
    return a > b ? a : b;
}

ns_t ep_next_send(struct ep_qp *q, ns_t now)
{
    struct cc *c;

    if (LIKELY(!q->cc))
        return q->ps.next_send;
    c = ep_cc_begun(q, now);
    q->ps.usual_send = later(q->ps.next_send, cc_next_send_at_line(c));
    return later(q->ps.next_send, cc_next_send(c));
}

bool ep_cc_has_budget(const struct ep_qp *q)
{
    return LIKELY(!q->cc) || !q->cc->started || cc_budget(&q->cc->c) > 0;
}

ns_t ep_cc_deadline(const struct ep_qp *q)
{
    const struct cc *c = &q->cc->c;
    ns_t t = NS_NEVER;

    if (!q->cc->started)
        return NS_NEVER;
    if ((q->paced && ep_cc_has_budget(q)) || q->data_waits)
        t = later(q->ps.next_send, cc_next_send(c));
    return t < cc_deadline(c) ? t : cc_deadline(c);
}

uint32_t ep_window(const struct ep_qp *q)
{
    uint32_t packets = q->pol.window->packets(&q->ps, q->pol.window_arg);
    uint64_t most;

    if (LIKELY(!q->cc) || !q->cc->started)
        return packets;
    most = cc_window(&q->cc->c);
    return most == CC_NO_LIMIT || most / q->cc->c.limits.mtu >= packets ? packets
                                                                        : (uint32_t)(most / q->cc->c.limits.mtu);
}

/* At a low rate the ACK timeout would expire before the usual number of packets has left. */
static bool is_slow(const struct ep_qp *q)
{
    const struct cc *c = &q->cc->c;
    ns_t timeout = ack_timeout(q->qp.req.p.timeout);
    unsigned __int128 bits = (unsigned __int128)q->ps.since_ackreq * c->limits.mtu * 8;

    return q->cc->started && timeout != NS_NEVER &&
           bits * 4 * (uint64_t)NS_PER_S >= (unsigned __int128)cc_rate(c) * (uint64_t)timeout;
}

bool ep_ackreq_is_due(const struct ep_qp *q)
{
    if (LIKELY(!q->cc))
        return q->ps.since_ackreq >= q->pol.ackreq_every;
    return q->ps.since_ackreq >= (q->cc->ackreq_every ? q->cc->ackreq_every : q->pol.ackreq_every) || is_slow(q);
}

void ep_cc_sent(struct ep_qp *q, const struct pkt *p, uint32_t len, bool repeat, ns_t now)
{
    struct ep_cc *e = q->cc;
    bool request = p->op->flags & OPF_REQUEST;

    if (!request && q->ep->cfg.congestion.cc.scheme->needs & CC_NEEDS_CREDIT)
        return; /* who reads has asked for it */
    cc_sent(ep_cc_begun(q, now), len, now);
    ep_flaw_rate(q);
    if (request) {
        e->sent += len;
        e->unsent -= !repeat && e->unsent >= len ? len : 0;
    }
    if (repeat) /* a response may be to either of the two */
        e->head = e->tail;
    else if (p->bth.ackreq && request && e->tail - e->head < EP_TIMED) {
        e->timed[e->tail % EP_TIMED].psn = p->bth.psn;
        e->timed[e->tail++ % EP_TIMED].sent = now;
    }
}

/* --- What the network says -------------------------------------------------------------------- */

/* Round-trip time measured by response `p`; 0: none. Only the packet whose PSN the ACK carries counts: an ACK that
 * covers several packets came late for the earlier ones.
 *
 *   request  5 6 7
 *   ACK              7         measures 7 only: the responder may have delayed the ACKs of 5 and 6
 */
static ns_t round_trip(struct ep_cc *e, const struct pkt *p, ns_t now)
{
    while (e->head != e->tail) {
        int d = psn_diff(e->timed[e->head % EP_TIMED].psn, p->bth.psn);
        if (d > 0)
            return 0;
        e->head++;
        if (d == 0)
            return now - e->timed[(e->head - 1) % EP_TIMED].sent;
    }
    return 0;
}

/* Rate, window or timers may have changed: schedule the queue pair again. One that never runs out of packets is not
 * asked for its deadlines when it has sent one. */
static void changed(struct ep_qp *q)
{
    ep_timer(q, cc_deadline(&q->cc->c));
    ep_ready(q);
}

void ep_cc_response(struct ep_qp *q, const struct pkt *p, const struct effects *e, uint32_t packets, ns_t now)
{
    struct cc_ack a = {.bytes = packets * q->cc->c.limits.mtu,
                       .nack = e->flags & EFF_RETRANSMIT && e->reason == WHY_SEQUENCE_NAK};

    if (!q->cc->started || e->flags & EFF_DROP)
        return;
    if (e->flags & EFF_RETRANSMIT)
        q->cc->head = q->cc->tail;
    a.rtt = round_trip(q->cc, p, now);
    cc_acked(&q->cc->c, &a, now);
    ep_flaw_rate(q);
    ep_cc_telemetry(q, p, a.rtt, now);
    changed(q);
}

void ep_cc_slow_down(struct ep_qp *q, ns_t now)
{
    if (q->pol.pace->cnp)
        q->pol.pace->cnp(&q->ps, now, &q->pol);
    if (LIKELY(!q->cc) || !q->cc->started)
        return;
    cc_cnp(&q->cc->c, now);
    q->cc->kept = cc_rate(&q->cc->c);
    changed(q);
}

void ep_cc_cnp(struct ep_qp *q, ns_t now)
{
    q->st.rp_cnp_handled++;
    q->ep->st.rp_cnp_handled++;
    if (!ep_flaw_cnp(q, now))
        ep_cc_slow_down(q, now);
}

void ep_cc_expire(struct ep_qp *q, ns_t now)
{
    if (!q->cc->started)
        return;
    cc_expire(&q->cc->c, now);
    ep_flaw_rate(q);
}

/* --- CNPs ------------------------------------------------------------------------------------- */

/* True if `q` breaks the rule whenever it can. */
static bool always_chooses(struct ep_qp *q, enum fault_choice c)
{
    ep_fault_choice(q, c); /* counts it once */
    return ep_may_choose(q->ep, c);
}

void ep_cc_mark(struct ep_qp *q, const struct pkt *p, ns_t now)
{
    uint8_t src[16] = {0}, dst[16] = {0};
    ns_t due;

    if ((p->tos & 3) != CE || !(p->have & H_UDP) || q->qp.type == QPT_UD)
        return;
    memcpy(src, p->src, min_u32(p->addr_len, sizeof src));
    memcpy(dst, p->dst, min_u32(p->addr_len, sizeof dst));
    due = np_marked(&q->ep->np, src, dst, &q->cnp_next, p->op->flags & OPF_READ_RESP, now);
    if (UNLIKELY(q->ep->n_fault) && always_chooses(q, CHOICE_NO_CNP))
        due = NS_NEVER;
    else if (UNLIKELY(q->ep->n_fault) && always_chooses(q, CHOICE_CNP_EACH))
        due = now;
    if (due == NS_NEVER)
        return;
    if (!q->cnps_due++)
        q->cnp_at = due;
    if (due <= now)
        ep_ready(q);
    else
        ep_timer(q, due);
}

#define CNP_BYTES 16 /* after the BTH: zero */

struct path ep_cnp_path(const struct ep_qp *q)
{
    struct path path = q->path;

    path_set_class(&path, q->ep->cfg.congestion.np.dscp, q->ep->cfg.congestion.np.prio);
    return path;
}

bool ep_cnp_may_go(const struct ep_qp *q)
{
    struct path path = ep_cnp_path(q);

    return !(q->ep->stopped >> frame_class(path.head, path.head_len) & 1);
}

int ep_cc_send_cnp(struct ep_qp *q, uint8_t *buf, uint32_t cap, ns_t now)
{
    struct endpoint *ep = q->ep;
    struct frame_out out = {.buf = buf, .cap = cap};
    struct path path = ep_cnp_path(q);
    struct pkt *p = &ep->tx;

    ep_fill_bth(q, p, OPCODE_CNP, 0);
    p->bth.migreq = false;
    p->bth.becn = true;
    if (build_begin(&out, &path, p, CNP_BYTES, ep->ip_id, NULL))
        return -ENOSPC;
    memset(out.payload, 0, CNP_BYTES);
    build_end(&out, &path, p, CNP_BYTES, NULL);
    ep->ip_id++;
    ep->sent.request = false;
    q->cnps_due--;
    q->cnp_at = now; /* what is due besides was due at most one delay later */
    return (int)out.len;
}
