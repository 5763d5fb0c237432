/* layer 2b (conn): learning connections from CM messages and from the TCP parameter exchange of test programs. */
#include "src/conn/setup.h"

#include "dissect/ip/tcp.h"
#include "dissect/pkt.h"
#include "dissect/socket/smc.h"
#include "dissect/ulp/service.h"
#include "src/transport/cm.h"

#define REQ_DELAYED (100 * NS_PER_MS) /* no network delivers a REQ so long after the RTU that was sent behind it */

/* --- One half --------------------------------------------------------------------------------- */

static void half_cm(struct setup_half *h, const struct cm_msg *m)
{
    if (m->mad.attr_id == CM_REQ && CM_HAS(m, req, qpn)) {
        h->kind = SETUP_REQ;
        h->id = m->req.local_id;
        h->qpn = m->req.qpn;
        h->psn = m->req.psn;
        h->any_psn = !CM_HAS(m, req, psn);
    } else if (m->mad.attr_id == CM_REP && cm_has_rep_qpn(m)) {
        h->kind = SETUP_REP;
        h->id = m->rep.local_id;
        h->peer_id = m->rep.remote_id;
        h->qpn = cm_rep_qpn(&m->rep);
        h->psn = m->rep.psn;
        h->any_psn = !CM_HAS(m, rep, psn);
    } else if (m->mad.attr_id == CM_SIDR_REQ) {
        h->kind = SETUP_SIDR_REQ;
        h->id = m->sidr_req.request_id;
    } else if (m->mad.attr_id == CM_SIDR_REP && m->sidr_rep.status == CM_SIDR_SUCCESS && CM_HAS(m, sidr_rep, qpn)) {
        h->kind = SETUP_SIDR_REP;
        h->peer_id = m->sidr_rep.request_id;
        h->qpn = m->sidr_rep.qpn;
    }
}

static void half_exchange(struct setup_half *h, const struct pkt *p, const struct exchange *e)
{
    h->kind = SETUP_EXCHANGE;
    h->id = (uint32_t)p->sport << 16 | p->dport;
    h->peer_id = (uint32_t)p->dport << 16 | p->sport;
    h->qpn = e->qpn;
    h->psn = e->psn;
    if (e->have_addr)
        memcpy(h->end.b, e->addr, sizeof h->end.b);
}

/* Whether a line of an exchange names a queue pair that is connected to the one in the reply. Over XRC this is not so:
 * ib_*_lat sends initiators and targets in turn, and connects each to the one in the peer's next line. */
static bool is_of_connection(struct exchange *e, const uint8_t *line, size_t len)
{
    return exchange_parse(e, line, len) && !e->srqn;
}

static bool exchange_of(struct exchange *e, const struct pkt *p)
{
    const uint8_t *data;
    struct tcp tcp;
    uint32_t len;

    data = tcp_payload(p, &tcp, &len);
    return data && is_of_connection(e, data, len);
}

bool setup_msg_of(struct setup_msg *m, const struct pkt *p)
{
    bool cm = (p->have & H_MAD) != 0;
    struct setup_half *h = &m->half;
    struct exchange e;

    if (cm ? p->icrc == CRC_BAD || !cm_msg_of(&m->cm, p) : p->have & H_BTH || !exchange_of(&e, p))
        return false;
    *h = (struct setup_half){.tap = conn_tap_of(p->frame), .peer_tap = conn_tap_of(p->frame)};
    conn_addr_of(p, &h->src, &h->dst);
    h->end = h->src;
    if (cm)
        half_cm(h, &m->cm);
    else
        half_exchange(h, p, &e);
    return h->kind != SETUP_NONE;
}

/* --- Two halves ------------------------------------------------------------------------------- */

bool setup_answers(const struct setup_half *answer, const struct setup_half *first)
{
    static const uint8_t answered_by[] = {
        [SETUP_REQ] = SETUP_REP, [SETUP_SIDR_REQ] = SETUP_SIDR_REP, [SETUP_EXCHANGE] = SETUP_EXCHANGE};

    return answered_by[first->kind] == answer->kind && answer->peer_id == first->id && answer->peer_tap == first->tap &&
           conn_addr_eq(&answer->src, &first->dst) && conn_addr_eq(&answer->dst, &first->src);
}

/* True if `b` comes from the sender of `a`, to the same receiver, with the same id. */
static bool same_id(const struct setup_half *a, const struct setup_half *b)
{
    return a->kind == b->kind && a->id == b->id && a->tap == b->tap && conn_addr_eq(&a->src, &b->src) &&
           conn_addr_eq(&a->dst, &b->dst);
}

bool setup_exchange_join(struct setup_exchanges *x, const struct setup_half *h, struct setup_half *first)
{
    struct setup_half *other = NULL;

    for (uint32_t i = 0; i < LEARN_PENDING; i++) {
        struct setup_half *old = &x->half[(x->at + i) % LEARN_PENDING];
        if (same_id(old, h) && old->qpn == h->qpn && old->psn == h->psn)
            return false;
        if (!other && !old->answered && setup_answers(h, old))
            other = old;
    }
    if (other) {
        other->answered = true;
        *first = *other;
    }
    x->half[x->at % LEARN_PENDING] = *h;
    x->half[x->at++ % LEARN_PENDING].answered = other != NULL;
    return other != NULL;
}

/* --- Captures --------------------------------------------------------------------------------- */

/* True if a REQ at `now` that equals `r` begins another connection: the one of `r` was closed, or its active side has
 * sent the RTU, after which it does not send the REQ again. */
static bool is_past(const struct setup_req *r, ns_t now)
{
    return r->over || (r->ready && now - r->ready > REQ_DELAYED);
}

/* The slot for a new REQ: that of an earlier REQ of the same sender with the same communication id but another queue
 * pair or PSN (the id is reused), else the oldest. NULL: the REQ is a retransmission. */
static struct setup_req *req_place(struct learner *l, const struct setup_half *h, ns_t now)
{
    for (uint32_t i = 0; i < LEARN_PENDING; i++) {
        struct setup_req *old = &l->req[(l->req_at + i) % LEARN_PENDING];
        if (same_id(&old->half, h))
            return !is_past(old, now) && old->half.qpn == h->qpn && old->half.psn == h->psn ? NULL : old;
    }
    return &l->req[l->req_at++ % LEARN_PENDING];
}

static struct conn_addr addr_of_lid(uint16_t lid, uint64_t network)
{
    struct conn_addr a = {.network = network};

    store_be16(a.b + 14, lid);
    return a;
}

/* The alternate path of a REQ. Its first path is known by the addresses of the packet, and by its GIDs. */
static void learn_alternate(struct setup_req *r, const struct cm_req *m)
{
    static const uint8_t none[16];
    uint64_t network = r->gid[0].network;

    r->has_alt = memcmp(m->alt_lgid, none, sizeof none) != 0 || m->alt_llid;
    r->lid_path = (struct conn_path){.addr = {r->half.src, r->half.dst},
                                     .alt = {addr_of_lid(m->alt_llid, network), addr_of_lid(m->alt_rlid, network)},
                                     .qpn = {r->half.qpn},
                                     .timeout = {CONN_TIMEOUT_KEPT, m->alt_ack_timeout}};
    r->gid_path = r->lid_path;
    memcpy(r->gid_path.alt[0].b, m->alt_lgid, 16);
    memcpy(r->gid_path.alt[1].b, m->alt_rgid, 16);
}

/* Where the consumer's private data begin, and how many bytes of them are kept. */
static uint32_t consumers(const struct cm_msg *msg, uint32_t *from)
{
    uint32_t there = cm_private_captured(msg);

    *from = cm_service_is_ip(msg->req.service_id) ? CM_IP_LEN : 0;
    return min_u32(there > *from ? there - *from : 0, CONN_GREETING);
}

struct ulp_named setup_upper(const struct cm_msg *msg)
{
    uint32_t from, len = consumers(msg, &from);

    return ulp_of_req(msg->req.service_id, msg->req.private_data + from, len);
}

/* The upper protocol, and the consumer's private data. */
static void learn_upper(struct setup_req *r, const struct cm_msg *msg)
{
    const struct cm_req *m = &msg->req;
    uint32_t from, len = consumers(msg, &from);
    struct ulp_named upper = setup_upper(msg);

    r->upper = upper.name;
    r->upper_by_private = upper.by_private;
    r->upper_vague = upper.vague;
    r->port = cm_service_is_ip(m->service_id) ? (uint16_t)m->service_id : 0;
    r->greeting_len = (uint8_t)len;
    memcpy(r->greeting, m->private_data + from, len);
}

/* True if an end announces that it sends no end-to-end credits: no flow control, or a shared receive queue. What was
 * not captured announces nothing. */
static bool sends_no_credits(bool have_flow_ctrl, bool flow_ctrl, bool srq)
{
    return (have_flow_ctrl && !flow_ctrl) || srq;
}

/* What the REQ `m`, in frame `frame`, states of the requests of the passive side. */
static struct conn_params params_of_req(const struct cm_msg *msg, uint64_t frame)
{
    const struct cm_req *m = &msg->req;

    return (struct conn_params){
        .passive = true,
        .timeout_known = CM_HAS(msg, req, prim_ack_timeout) ? PARAM_STATED : PARAM_UNKNOWN,
        .retry_known = CM_HAS(msg, req, retry_count) ? PARAM_STATED : PARAM_UNKNOWN,
        .have_rnr = CM_HAS(msg, req, rnr_retry),
        .have_transport = CM_HAS(msg, req, transport),
        .no_credits = sends_no_credits(CM_HAS(msg, req, flow_ctrl), m->flow_ctrl, m->srq),
        .timeout = m->prim_ack_timeout,
        .retry_cnt = m->retry_count,
        .rnr_retry = m->rnr_retry,
        .pkey = m->pkey,
        .transport = m->transport,
        .ext_transport = m->ext_transport,
        .req_frame = frame,
    };
}

static void learn_req(struct learner *l, struct conn_table *t, const struct pkt *p, const struct setup_msg *msg)
{
    struct setup_req *r = req_place(l, &msg->half, p->frame->ts);
    const struct cm_req *m = &msg->cm.req;

    if (!r)
        return;
    if (r->ready && !r->over && same_id(&r->half, &msg->half))
        conn_close(t, r->half.tap, &r->half.src, r->half.qpn);
    *r = (struct setup_req){.half = msg->half,
                            .ts = p->frame->ts,
                            .tid = msg->cm.mad.tid,
                            .pmtu = cm_mtu_bytes(m->mtu),
                            .have_depth = CM_HAS(&msg->cm, req, init_depth),
                            .depth = m->init_depth};
    learn_upper(r, &msg->cm);
    r->has_gids = CM_HAS(&msg->cm, req, prim_rgid);
    r->gid[0].network = r->gid[1].network = p->network;
    memcpy(r->gid[0].b, m->prim_lgid, sizeof r->gid[0].b);
    memcpy(r->gid[1].b, m->prim_rgid, sizeof r->gid[1].b);
    if (CM_HAS(&msg->cm, req, alt_ack_timeout))
        learn_alternate(r, m);
    r->peer = params_of_req(&msg->cm, p->frame->number);
}

/* The oldest REQ that `rep` answers; NULL: none. */
static struct setup_req *req_of(struct learner *l, const struct setup_half *rep)
{
    for (uint32_t i = 0; i < LEARN_PENDING; i++) {
        struct setup_req *r = &l->req[(l->req_at + i) % LEARN_PENDING];
        if (setup_answers(rep, &r->half))
            return r;
    }
    return NULL;
}

/* Both ends have accepted the paths of `r`. */
static void learn_paths(struct conn_table *t, const struct setup_req *r, bool ib)
{
    struct conn_path p = r->gid_path;

    conn_learn_path(t, ib ? &r->lid_path : &r->gid_path);
    if (!ib)
        return;
    memcpy(p.addr, r->gid, sizeof p.addr);
    conn_learn_path(t, &p);
}

static void learn_lap(struct learner *l, const struct pkt *p, const struct cm_lap *m)
{
    struct setup_lap *x = &l->lap[l->lap_at++ % LEARN_LAPS];

    *x = (struct setup_lap){.tap = conn_tap_of(p->frame),
                            .id = {m->local_id, m->remote_id},
                            .timeout = m->ack_timeout,
                            .lid = {addr_of_lid(m->llid, p->network), addr_of_lid(m->rlid, p->network)}};
    x->gid[0].network = x->gid[1].network = p->network;
    memcpy(x->gid[0].b, m->lgid, 16);
    memcpy(x->gid[1].b, m->rgid, 16);
}

/* The REQ of the connection with these communication ids; *from_active: the first one is the active side's. */
static struct setup_req *req_of_ids(struct learner *l, uint32_t tap, const uint32_t id[2], bool *from_active)
{
    for (uint32_t i = 0; i < LEARN_PENDING; i++) {
        struct setup_req *r = &l->req[i];
        if (r->half.kind != SETUP_REQ || r->half.tap != tap || r->over)
            continue;
        *from_active = r->half.id == id[0] && r->passive_id == id[1];
        if (*from_active || (r->half.id == id[1] && r->passive_id == id[0]))
            return r;
    }
    return NULL;
}

/* An RTU. */
static void learn_rtu(struct learner *l, const struct pkt *p, const struct cm_rtu *m)
{
    const uint32_t ids[2] = {m->local_id, m->remote_id};
    bool from_active;
    struct setup_req *r = req_of_ids(l, conn_tap_of(p->frame), ids, &from_active);

    if (r && from_active)
        r->ready = p->frame->ts;
}

/* An APR that accepts the path of a LAP. */
static void learn_apr(struct learner *l, struct conn_table *t, const struct pkt *p, const struct cm_apr *m)
{
    uint32_t tap = conn_tap_of(p->frame);
    struct setup_req *r;
    bool active;

    for (uint32_t i = LEARN_LAPS; i-- > 0 && m->status == CM_APR_SUCCESS;) { /* the latest first */
        struct setup_lap *x = &l->lap[(l->lap_at + i) % LEARN_LAPS];
        if (x->tap != tap || x->id[0] != m->remote_id || x->id[1] != m->local_id)
            continue;
        r = req_of_ids(l, tap, x->id, &active);
        if (!r)
            return;
        for (unsigned end = 0; end < 2; end++) {
            r->lid_path.alt[end] = x->lid[end ^ !active];
            r->gid_path.alt[end] = x->gid[end ^ !active];
            r->lid_path.timeout[end] = r->gid_path.timeout[end] = end == active ? x->timeout : CONN_TIMEOUT_KEPT;
        }
        learn_paths(t, r, p->encap == ENCAP_IB);
        return;
    }
}

/* What a REP, in frame `frame`, and the REQ `r` before it state of the requests of the active side. */
static struct conn_params params_of_rep(const struct setup_req *r, const struct cm_msg *msg, uint64_t frame)
{
    const struct cm_rep *m = &msg->rep;

    return (struct conn_params){
        .have_depth = r->have_depth && CM_HAS(msg, rep, resp_res),
        .have_rnr = CM_HAS(msg, rep, rnr_retry),
        .timeout_known = r->peer.timeout_known ? PARAM_SUPPOSED : PARAM_UNKNOWN,
        .retry_known = r->peer.retry_known ? PARAM_SUPPOSED : PARAM_UNKNOWN,
        .have_transport = r->peer.have_transport,
        .no_credits = sends_no_credits(CM_HAS(msg, rep, flow_ctrl), m->flow_ctrl, m->srq),
        .depth = r->depth < m->resp_res ? r->depth : m->resp_res,
        .timeout = r->peer.timeout,
        .retry_cnt = r->peer.retry_cnt,
        .rnr_retry = m->rnr_retry,
        .pkey = r->peer.pkey,
        .transport = r->peer.transport,
        .ext_transport = r->peer.ext_transport,
        .req_frame = r->peer.req_frame,
        .rep_frame = frame,
    };
}

/* Learn the connection once more by the GIDs that the REQ names: on InfiniBand, packets without a GRH have others. */
static void learn_gids(struct conn_table *t, struct conn_known *k, const struct setup_req *r)
{
    if (!r->has_gids || memcmp(k->addr, r->gid, sizeof k->addr) == 0)
        return;
    memcpy(k->addr, r->gid, sizeof k->addr);
    conn_learn(t, k);
}

/* Whether a REP connects the queue pairs of the REQ `r`: not one that is sent again behind the DREQ, as the RTU was
 * lost. */
static bool connects(const struct setup_req *r, const struct setup_msg *rep)
{
    return !cm_rep_is_of_other(&rep->cm, r->tid, r->over, r->passive_id) && !(r->over && r->passive_id == rep->half.id);
}

static void learn_rep(struct learner *l, struct conn_table *t, const struct pkt *p, const struct setup_msg *msg)
{
    struct setup_req *req = req_of(l, &msg->half);
    struct conn_known k = {.how = PAIR_CM, .tap = msg->half.tap};
    const struct cm_rep *m = &msg->cm.rep;

    if (!req || !connects(req, msg))
        return;
    k.addr[0] = req->half.src;
    k.addr[1] = req->half.dst;
    k.qpn[0] = req->half.qpn;
    k.qpn[1] = msg->half.qpn;
    k.psn[0] = msg->half.psn;
    k.psn[1] = req->half.psn;
    k.any_psn[0] = msg->half.any_psn;
    k.any_psn[1] = req->half.any_psn;
    k.id[0] = req->half.id;
    k.id[1] = msg->half.id;
    k.pmtu = req->pmtu;
    k.upper = req->upper;
    k.upper_by_private = req->upper_by_private;
    k.upper_vague = req->upper_vague;
    k.port = req->port;
    k.greeting_len = req->greeting_len;
    memcpy(k.greeting, req->greeting, sizeof k.greeting);
    k.answer_len = (uint8_t)min_u32(cm_private_captured(&msg->cm), CONN_ANSWER);
    memcpy(k.answer, m->private_data, k.answer_len);
    k.params[1] = req->peer;
    k.params[1].have_depth = CM_HAS(&msg->cm, rep, init_depth);
    k.params[1].depth = m->init_depth;
    k.params[1].rep_frame = p->frame->number;
    k.params[0] = params_of_rep(req, &msg->cm, p->frame->number);
    k.setup[k.n_setup++] = (struct conn_setup){msg->half.tap, req->ts, p->frame->ts};
    conn_learn(t, &k);
    if (p->encap == ENCAP_IB)
        learn_gids(t, &k, req);
    req->passive_id = msg->half.id;
    req->lid_path.qpn[1] = req->gid_path.qpn[1] = msg->half.qpn;
    if (req->has_alt && CM_HAS(&msg->cm, rep, failover) && m->failover == CM_FAILOVER_ACCEPTED)
        learn_paths(t, req, p->encap == ENCAP_IB);
}

static void learn_exchange(struct learner *l, struct conn_table *t, const struct setup_half *h)
{
    struct setup_half first;

    if (setup_exchange_join(&l->exchanges, h, &first))
        conn_learn(t, &(struct conn_known){.how = PAIR_EXCHANGE,
                                           .tap = h->tap,
                                           .addr = {first.end, h->end},
                                           .qpn = {first.qpn, h->qpn},
                                           .psn = {first.psn, h->psn}});
}

/* --- TCP segments ----------------------------------------------------------------------------- */

static struct setup_stream *stream_of(struct learner *l, const struct setup_half *h)
{
    struct setup_stream *s;

    for (uint32_t i = 0; i < LEARN_STREAMS; i++) {
        s = &l->stream[i];
        if (s->id == h->id && s->tap == h->tap && conn_addr_eq(&s->src, &h->src) && conn_addr_eq(&s->dst, &h->dst))
            return s;
    }
    s = &l->stream[l->stream_at++ % LEARN_STREAMS];
    *s = (struct setup_stream){.tap = h->tap, .id = h->id, .src = h->src, .dst = h->dst};
    return s;
}

/* A line, or what there is of it. False: it describes no queue pair. */
static bool learn_line(struct learner *l, struct conn_table *t, const struct pkt *p, const uint8_t *line, size_t n)
{
    struct setup_half h = {.tap = conn_tap_of(p->frame), .peer_tap = conn_tap_of(p->frame)};
    struct exchange e;

    if (!is_of_connection(&e, line, n))
        return false;
    conn_addr_of(p, &h.src, &h.dst);
    h.end = h.src;
    half_exchange(&h, p, &e);
    learn_exchange(l, t, &h);
    return true;
}

/* The lines of a segment, each up to a NUL; the last one may go on in the next segment. */
static void learn_lines(struct learner *l, struct conn_table *t, const struct pkt *p, struct setup_stream *s,
                        const uint8_t *data, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++) {
        if (s->n < LEARN_PART)
            s->part[s->n++] = data[i];
        if (data[i])
            continue;
        learn_line(l, t, p, s->part, s->n);
        s->n = 0;
    }
    if (s->n && learn_line(l, t, p, s->part, s->n))
        s->n = 0; /* the program ends its lines in another way */
}

static void learn_segment(struct learner *l, struct conn_table *t, const struct pkt *p)
{
    struct setup_half h = {.tap = conn_tap_of(p->frame), .id = (uint32_t)p->sport << 16 | p->dport};
    struct setup_stream *s;
    struct tcp tcp;
    uint32_t len;
    const uint8_t *data = tcp_payload(p, &tcp, &len);

    if (data && data[0] == SMC_CLC_FIRST)
        learn_smc(l, t, p, data, len);
    if (!data || data[0] > 'f')
        return; /* no hexadecimal digits, nor colons, nor NUL */
    conn_addr_of(p, &h.src, &h.dst);
    s = stream_of(l, &h);
    if (tcp.seq != s->next) {
        if (s->next && (int32_t)(tcp.seq + len - s->next) <= 0)
            return; /* retransmitted */
        s->n = 0;
    }
    s->next = tcp.seq + len;
    learn_lines(l, t, p, s, data, len);
}

/* --- Packets ---------------------------------------------------------------------------------- */

/* An RTU, LAP or APR; or a DREQ or DREP: either side may send it, and the active side's id is in it. */
static void learn_later(struct learner *l, struct conn_table *t, const struct pkt *p)
{
    uint32_t tap = conn_tap_of(p->frame);
    struct conn_addr src, dst;
    struct cm_msg m;

    if (p->icrc == CRC_BAD || !cm_msg_of(&m, p))
        return;
    if (m.mad.attr_id == CM_RTU)
        learn_rtu(l, p, &m.rtu);
    if (m.mad.attr_id == CM_LAP && CM_HAS(&m, lap, ack_timeout))
        learn_lap(l, p, &m.lap);
    if (m.mad.attr_id == CM_APR && CM_HAS(&m, apr, status))
        learn_apr(l, t, p, &m.apr);
    if (m.mad.attr_id != CM_DREQ && m.mad.attr_id != CM_DREP)
        return;
    conn_addr_of(p, &src, &dst);
    for (uint32_t i = 0; i < LEARN_PENDING; i++) {
        struct setup_req *r = &l->req[i];
        const struct setup_half *h = &r->half;
        bool active = h->id == m.rtu.local_id && conn_addr_eq(&h->src, &src) && conn_addr_eq(&h->dst, &dst),
             passive = h->id == m.rtu.remote_id && conn_addr_eq(&h->src, &dst) && conn_addr_eq(&h->dst, &src);
        bool both_ids = r->passive_id && ((h->id == m.rtu.local_id && r->passive_id == m.rtu.remote_id) ||
                                          (h->id == m.rtu.remote_id && r->passive_id == m.rtu.local_id));
        bool is_open = h->kind == SETUP_REQ && h->tap == tap && !r->over;
        if (!is_open || (!active && !passive && !both_ids))
            continue;
        r->over = true;
        conn_close(t, tap, &h->src, h->qpn);
    }
}

/* A TCP connection begins: discard the halves from an earlier one between the same ports. */
static void learn_syn(struct learner *l, struct conn_table *t, const struct pkt *p)
{
    uint32_t tap = conn_tap_of(p->frame), id = (uint32_t)p->sport << 16 | p->dport;
    struct conn_addr src, dst;

    conn_addr_of(p, &src, &dst);
    for (uint32_t i = 0; i < LEARN_STREAMS; i++) {
        struct setup_stream *s = &l->stream[i];
        if (s->tap == tap && (s->id == id || s->id == (id << 16 | id >> 16)))
            s->n = s->next = 0;
    }
    for (uint32_t i = 0; i < LEARN_PENDING; i++) {
        struct setup_half *h = &l->exchanges.half[i];
        bool mine = h->id == id && conn_addr_eq(&h->src, &src) && conn_addr_eq(&h->dst, &dst),
             its = h->peer_id == id && conn_addr_eq(&h->src, &dst) && conn_addr_eq(&h->dst, &src);
        if (h->kind != SETUP_EXCHANGE || h->tap != tap || (!mine && !its))
            continue;
        conn_close(t, tap, &h->end, h->qpn);
        *h = (struct setup_half){0};
    }
}

void learn_packet(struct learner *l, struct conn_table *t, const struct pkt *p)
{
    struct setup_msg m = {.half.kind = SETUP_NONE};

    if (UNLIKELY(p->have & H_MAD))
        learn_later(l, t, p);
    else if (UNLIKELY(tcp_opens(p)))
        learn_syn(l, t, p);
    if (!(p->have & (H_MAD | H_BTH)))
        learn_segment(l, t, p);
    else if (setup_msg_of(&m, p) && m.half.kind == SETUP_REQ)
        learn_req(l, t, p, &m);
    else if (m.half.kind == SETUP_REP)
        learn_rep(l, t, p, &m);
}
