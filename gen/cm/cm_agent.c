/* layer 3 (cm): a connection manager over the GSI queue pair of an endpoint. */
#include "gen/cm/cm_agent_impl.h"

#include <errno.h>
#include <stdlib.h>

#define LOOK_AGAIN (100 * NS_PER_MS) /* between two searches for a connection to evict, during a flood of REQs */

static bool gsi_open(struct cm_agent *a)
{
    struct endpoint *ep = a->cfg.ep;
    struct ep_qp_init init = {.type = QPT_UD,
                              .qpn = 1,
                              .max_send_wr = GSI_SENDS,
                              .max_recv_wr = GSI_RECVS,
                              .max_inline = MAD_LEN,
                              .sq_sig_all = true,
                              .srq = EP_NO_SRQ};
    struct ep_peer peer = ep_peer_default();

    a->pd = init.pd = ep_pd_alloc(ep);
    a->cq = init.send_cq = init.recv_cq = ep_cq_create(ep, GSI_RECVS + GSI_SENDS);
    if (a->cq < 0 || ep_mr_reg(ep, a->pd, a->mem, sizeof a->mem, RECV_IOVA, ACCESS_LOCAL_WRITE, &a->lkey) < 0)
        return false;
    a->gsi = ep_qp_create(ep, &init);
    a->ah = a->cfg.path ? 0 : ep_ah_create(ep, a->pd, &a->cfg.peer);
    peer.qkey = 0x80010000;
    peer.sq_psn = (uint32_t)prng_next(&a->prng) & 0xffffff;
    if (a->gsi < 0 || a->ah < 0 || ep_qp_connect(ep, a->gsi, &peer, 0) < 0)
        return false;
    a->receives = (struct receives){.verbs = ep_verbs(ep),
                                    .qp = a->gsi,
                                    .srq = EP_NO_SRQ,
                                    .mem = a->mem[0],
                                    .iova = RECV_IOVA,
                                    .lkey = a->lkey,
                                    .pitch = RECV_BYTES,
                                    .bytes = RECV_BYTES,
                                    .grh = UD_GRH_BYTES,
                                    .slots = GSI_RECVS};
    receives_post_all(&a->receives, 0);
    return true;
}

struct cm_agent *cm_agent_new(const struct cm_agent_config *config)
{
    struct cm_agent *a = calloc(1, sizeof *a);

    if (!a)
        return NULL;
    a->cfg = *config;
    a->cap = config->max_conns ? config->max_conns : 65536;
    if (!a->cfg.max_paths)
        a->cfg.max_paths = PATHS;
    a->paths = calloc(a->cfg.max_paths, sizeof *a->paths);
    prng_seed(&a->prng, config->seed);
    a->last_id = (uint32_t)prng_next(&a->prng) & 0x7ff00000;
    if (!a->paths || !agent_tables(a) || !gsi_open(a)) {
        cm_agent_free(a);
        return NULL;
    }
    a->rdmacm.ops = &cm_ids_ops;
    ep_verbs(config->ep)->cm = &a->rdmacm;
    return a;
}

void cm_agent_free(struct cm_agent *a)
{
    if (!a)
        return;
    ep_verbs(a->cfg.ep)->cm = NULL;
    cm_ids_free(a);
    for (uint32_t i = 0; i < a->n; i++)
        free(a->conn[i]);
    agent_tables_free(a);
    free(a->paths);
    free(a);
}

void agent_wake(struct cm_agent *a, struct agent_conn *c)
{
    a->news[c->number] = 1;
    a->dirty = true;
}

/* A free connection, cleared; NULL: none. */
static struct agent_conn *conn_room(struct cm_agent *a)
{
    struct agent_conn *c;

    for (uint32_t i = 0; a->n == a->cap && i < a->cap; i++) {
        c = a->conn[a->reuse];
        a->reuse = (a->reuse + 1) % a->cap;
        if (agent_is_over(c)) {
            agent_clear(a, c);
            return c;
        }
    }
    if (a->n == a->cap || !(c = calloc(1, sizeof *c)))
        return NULL;
    c->number = a->n;
    return a->conn[a->n++] = c;
}

/* A connection with a new communication id; the caller starts it. */
static struct agent_conn *conn_new(struct cm_agent *a, int qp, const struct ep_peer *peer, const uint8_t gid[16])
{
    struct agent_conn *c = conn_room(a);

    if (!c)
        return NULL;
    c->qp = qp;
    memcpy(c->gid, gid, 16);
    if (peer)
        c->peer = *peer;
    if (!++a->last_id)
        ++a->last_id;
    agent_wake(a, c);
    return c;
}

/* Undo conn_new(): the connection was not started. */
static void conn_drop(struct cm_agent *a, struct agent_conn *c)
{
    agent_clear(a, c);
    c->cm.state = CM_ST_CLOSED;
    c->cm.expiry = NS_NEVER;
}

uint64_t cm_agent_ignored(const struct cm_agent *a)
{
    return a->ignored;
}

uint64_t cm_agent_raised(const struct cm_agent *a)
{
    return a->raised;
}

/* Which of its own addresses `gid` is. */
static uint16_t index_of(const struct cm_agent *a, const uint8_t gid[16])
{
    int n = ep_sgid_index(a->cfg.ep, gid);

    return n < 0 ? 0 : (uint16_t)n;
}

struct agent_conn *agent_start(struct cm_agent *a, bool sidr, int qp, const struct cm_params *own,
                               const struct ep_peer *peer, ns_t now)
{
    struct agent_conn *c = conn_new(a, qp, peer, own->path.dgid);
    struct cm_params p = *own;

    if (!c)
        return NULL;
    if (!p.tid)
        p.tid = prng_next(&a->prng);
    p.alternates = a->cfg.alternate != NULL;
    c->sgid_index = index_of(a, own->path.sgid);
    if (!(sidr ? cm_sidr_connect : cm_connect)(&c->cm, a->last_id, &p, now)) {
        conn_drop(a, c);
        return NULL;
    }
    agent_settle(a, c);
    return c;
}

uint32_t cm_agent_connect(struct cm_agent *a, int qp, const struct cm_params *own, const struct ep_peer *peer, ns_t now)
{
    const struct agent_conn *c = agent_start(a, false, qp, own, peer, now);

    return c ? c->cm.local_id : 0;
}

uint32_t cm_agent_resolve(struct cm_agent *a, int qp, const struct cm_params *own, ns_t now)
{
    const struct agent_conn *c = agent_start(a, true, qp, own, NULL, now);

    return c ? c->cm.local_id : 0;
}

int cm_agent_disconnect(struct cm_agent *a, int qp, ns_t now)
{
    struct agent_conn *c = agent_of_qp(a, qp);

    if (!c || !cm_disconnect(&c->cm, NULL, 0, now))
        return -ENOTCONN;
    agent_settle(a, c);
    agent_wake(a, c);
    return 0;
}

int cm_agent_load(struct cm_agent *a, int qp, const struct cm_path *alt, ns_t now)
{
    struct agent_conn *c = agent_of_qp(a, qp);
    const struct qp *q = ep_qp(a->cfg.ep, qp);

    if (!c || !q || c->cm.state != CM_ST_ESTABLISHED)
        return -ENOTCONN;
    if (!cm_load(&c->cm, alt, q->attr.timeout, prng_next(&a->prng), now))
        return -EBUSY;
    agent_settle(a, c);
    agent_wake(a, c);
    return 0;
}

void cm_agent_established(struct cm_agent *a, int qp)
{
    struct agent_conn *c = agent_of_qp(a, qp);

    if (!c)
        return;
    cm_established(&c->cm);
    agent_settle(a, c);
    agent_wake(a, c);
}

ns_t cm_agent_next(const struct cm_agent *a)
{
    ns_t timer = timers_first(&a->timers) ? timers_first(&a->timers)->when : NS_NEVER, ids = cm_ids_next(a);

    return a->dirty ? 0 : ids < timer ? ids : timer;
}

uint64_t cm_agent_sent(const struct cm_agent *a, enum cm_attr attr)
{
    return attr >= CM_REQ && attr < CM_REQ + ARRAY_LEN(a->sent) ? a->sent[attr - CM_REQ] : 0;
}

/* Attributes of the queue pair: the caller's, and those that the CM negotiated. */
static struct ep_peer negotiated(const struct agent_conn *c)
{
    struct ep_peer p = c->peer;
    struct qp_attr at;

    cm_qp_attr(&c->cm, &at);
    memcpy(at.av.dmac, c->peer.av.dmac, sizeof at.av.dmac);
    at.av.port = c->peer.av.port;
    at.av.sgid_index = c->peer.av.sgid_index;
    if (!at.av.tclass)
        at.av.tclass = c->peer.av.tclass;
    p.av = at.av;
    p.qpn = at.dest_qpn;
    p.rq_psn = at.rq_psn;
    p.sq_psn = at.sq_psn;
    p.path_mtu = at.path_mtu;
    p.max_rd_atomic = at.max_rd_atomic;
    p.max_dest_rd_atomic = at.max_dest_rd_atomic;
    p.timeout = at.timeout;
    p.retry_cnt = at.retry_cnt;
    p.rnr_retry = at.rnr_retry;
    return p;
}

/* No connection is free for a REQ: end passive connections whose peers send no RTU. */
static void make_room(struct cm_agent *a, ns_t now)
{
    if (!a->cfg.half_open_short || now < a->look_again)
        return;
    a->look_again = now + LOOK_AGAIN;
    for (uint32_t i = 0; i < a->n; i++) {
        struct agent_conn *c = a->conn[i];
        if (agent_half_open(c) && c->limit > c->replied + a->cfg.half_open_short) {
            c->limit = c->replied + a->cfg.half_open_short;
            agent_settle(a, c);
        }
    }
}

bool agent_answer(struct cm_agent *a, struct agent_conn *c, const struct cm_answer *ans, ns_t now)
{
    bool accept = ans->qp >= 0, sidr = c->cm.state == CM_ST_SIDR_REQ_RCVD, good;
    struct cm_params own = ans->own;

    own.alternates = a->cfg.alternate != NULL;
    if (accept && !sidr)
        own.failover = (uint8_t)agent_take_alternate(a, c);
    if (sidr)
        good = cm_sidr_reply(&c->cm, accept ? CM_SIDR_SUCCESS : ans->reason, &ans->own);
    else if (accept)
        good = cm_accept(&c->cm, &own, now);
    else
        good = cm_reject(&c->cm, ans->reason, NULL, 0, ans->own.private_data, ans->own.private_len);
    if (!good)
        return false;
    c->qp = ans->qp;
    if (c->cm.state == CM_ST_REP_SENT) {
        c->replied = now;
        c->limit = a->cfg.half_open ? now + a->cfg.half_open : NS_NEVER;
        c->peer = ans->peer;
        struct ep_peer peer = negotiated(c);
        ep_qp_to_rtr(a->cfg.ep, c->qp, &peer, now);
    } else if (!accept && !sidr && (ans->reason == CM_REJ_NO_QP || ans->reason == CM_REJ_NO_RESOURCES)) {
        make_room(a, now);
    }
    agent_settle(a, c);
    agent_wake(a, c);
    return true;
}

/* A REQ or SIDR_REQ: ask the caller, then reply; unless an id listens for it, whose user will reply. */
static void take_request(struct cm_agent *a, struct agent_conn *c, bool sidr, ns_t now)
{
    struct cm_answer ans = {
        .qp = -1, .reason = sidr ? CM_SIDR_UNSUPPORTED : CM_REJ_INVALID_SERVICE_ID, .peer = ep_peer_default()};

    if (cm_ids_request(a, c, now))
        return;
    cm_params_linux(&ans.own);
    if (a->cfg.request)
        a->cfg.request(a->cfg.user, &c->cm, &ans);
    c->ask_again = ans.ask_again;
    if (ans.ask_again && ans.mra)
        cm_mra(&c->cm, ans.mra);
    if (ans.ask_again || agent_answer(a, c, &ans, now))
        return;
    ans.qp = -1;
    ans.own.private_len = 0;
    agent_answer(a, c, &ans, now);
}

static void tell(struct cm_agent *a, struct agent_conn *c, enum cm_event e)
{
    if (c->id)
        cm_ids_tell(a, c, e);
    else if (a->cfg.event)
        a->cfg.event(a->cfg.user, c->qp, e, &c->cm);
}

static void connected(struct cm_agent *a, struct agent_conn *c, ns_t now)
{
    struct ep_peer peer = negotiated(c);

    if (c->cm.active) {
        ep_qp_connect(a->cfg.ep, c->qp, &peer, now);
        c->tell_connected = true;
    } else {
        ep_qp_to_rts(a->cfg.ep, c->qp, &peer, now);
    }
    agent_load_agreed(a, c, now);
    if (!c->cm.active)
        tell(a, c, CM_EV_CONNECTED);
}

static void disconnected(struct cm_agent *a, struct agent_conn *c, ns_t now)
{
    struct qp_attr at = {.state = QPS_ERR};

    if (c->qp >= 0)
        ep_qp_modify(a->cfg.ep, c->qp, &at, QPA_STATE, now);
    tell(a, c, CM_EV_DISCONNECTED);
}

static void conn_events(struct cm_agent *a, struct agent_conn *c, ns_t now)
{
    enum cm_event e;

    while ((e = cm_poll(&c->cm)) != CM_EV_NONE) {
        agent_wake(a, c);
        switch (e) {
        case CM_EV_REQUEST:
        case CM_EV_SIDR_REQUEST:
            take_request(a, c, e == CM_EV_SIDR_REQUEST, now);
            break;
        case CM_EV_CONNECTED:
            connected(a, c, now);
            break;
        case CM_EV_DISCONNECTED:
            disconnected(a, c, now);
            break;
        case CM_EV_LAP:
        case CM_EV_APR:
        case CM_EV_LAP_ERROR:
            agent_lap_event(a, c, e, now);
            tell(a, c, e);
            break;
        default:
            tell(a, c, e);
        }
    }
}

/* Hand a message to the endpoint; `ah`: from agent_path_to(); `c`: its connection, NULL: none; `again`: the message is
 * retransmitted. */
static void send_msg(struct cm_agent *a, struct cm_msg *m, int ah, const struct agent_conn *c, bool again, ns_t now)
{
    uint8_t mad[MAD_LEN];
    struct sge sge = {(uintptr_t)mad, MAD_LEN, 0};
    struct send_wr wr = {.wr_id = c ? c->number + 1 : 0,
                         .opcode = WR_SEND,
                         .flags = SEND_SIGNALED | SEND_INLINE,
                         .num_sge = 1,
                         .sg_list = &sge,
                         .remote_qpn = 1,
                         .remote_qkey = 0x80010000};

    if (ah < 0 || !cm_fault_apply(a->cfg.ep, m, again))
        return;
    wr.ah = (uint32_t)ah;
    cm_msg_encode(mad, m);
    if (ep_post_send(a->cfg.ep, a->gsi, &wr, now) == 0) {
        a->sending++;
        if (m->mad.attr_id >= CM_REQ && m->mad.attr_id < CM_REQ + ARRAY_LEN(a->sent))
            a->sent[m->mad.attr_id - CM_REQ]++;
    }
}

/* Send the responses for no connection. */
static void send_answers(struct cm_agent *a, ns_t now)
{
    for (unsigned i = 0; i < a->n_answers; i++) {
        struct answer *ans = &a->answers[i];
        send_msg(a, &ans->m, agent_path_to(a, NULL, ans->sgid_index, ans->gid), NULL, false, now);
    }
    a->n_answers = 0;
}

/* A CM message arrived from `gid` at the own address `own`. */
static void take_msg(struct cm_agent *a, const struct cm_msg *m, const uint8_t gid[16], const uint8_t own[16], ns_t now)
{
    struct agent_conn *c = agent_of_msg(a, m);
    struct answer *ans = a->answers + a->n_answers;

    a->dirty = true;
    if (c && a->cfg.path && memcmp(c->moved ? c->av.dgid : c->gid, gid, 16) != 0) {
        a->ignored++;
        return;
    }
    if (!c && (m->mad.attr_id == CM_REQ || m->mad.attr_id == CM_SIDR_REQ)) {
        c = conn_new(a, -1, NULL, gid);
        if (c) {
            c->sgid_index = index_of(a, own);
            cm_listen(&c->cm, a->last_id);
        }
    }
    if (c) {
        cm_rx(&c->cm, m, now);
        agent_settle(a, c);
        agent_wake(a, c);
    } else if (a->n_answers < ARRAY_LEN(a->answers) && cm_stray(m, &ans->m)) {
        memcpy(ans->gid, gid, 16);
        ans->sgid_index = index_of(a, own);
        a->n_answers++;
    } else {
        a->ignored++;
    }
}

static void send_done(struct cm_agent *a, uint64_t id)
{
    struct agent_conn *c = id && id <= a->n ? a->conn[id - 1] : NULL;

    a->sending--;
    if (c && c->tell_connected) {
        c->tell_connected = false;
        tell(a, c, CM_EV_CONNECTED);
    }
}

static void poll_gsi(struct cm_agent *a, ns_t now)
{
    uint8_t gid[16], own[16];
    struct cm_msg m;
    struct wc wc;

    while (ep_poll(a->cfg.ep, a->cq, &wc, 1) == 1) {
        a->dirty = true;
        if (wc.opcode != WC_RECV) {
            send_done(a, wc.wr_id);
            continue;
        }
        receives_source(a->mem[wc.wr_id], gid);
        receives_destination(a->mem[wc.wr_id], own);
        if (wc.status == WC_SUCCESS && wc.byte_len >= UD_GRH_BYTES &&
            cm_msg_decode(&m, a->mem[wc.wr_id] + UD_GRH_BYTES, wc.byte_len - UD_GRH_BYTES))
            take_msg(a, &m, gid, own, now);
        else
            a->ignored++;
        receives_post(&a->receives, wc.wr_id, now);
    }
}

/* Report the events of a connection, and send its messages. */
static void run_conn(struct cm_agent *a, struct agent_conn *c, ns_t now)
{
    struct cm_msg m;

    a->news[c->number] = 0;
    if (agent_half_open(c) && c->limit <= now && cm_abort(&c->cm))
        tell(a, c, CM_EV_UNREACHABLE);
    if (cm_next_expiry(&c->cm) <= now)
        cm_expire(&c->cm, now);
    if (agent_undecided(c) && c->ask_again <= now)
        take_request(a, c, false, now);
    conn_events(a, c, now);
    while (a->sending < GSI_SENDS && cm_tx(&c->cm, &m))
        send_msg(a, &m, agent_path_to(a, c, c->sgid_index, c->gid), c, c->cm.tries > 1, now);
    a->unsent[c->number] = c->cm.pending;
    agent_settle(a, c);
}

/* Run the timers of connections that have expired. */
static void take_timers(struct cm_agent *a, ns_t now)
{
    struct timer *t;

    while ((t = timers_first(&a->timers)) && t->when <= now) {
        timer_stop(&a->timers, t);
        agent_wake(a, TIMER_OF(t, struct agent_conn, timer));
    }
}

/* The first 1 from `i` on; n: there is none. */
static uint32_t next_of(const uint8_t *set, uint32_t i, uint32_t n)
{
    const uint8_t *at = i < n ? memchr(set + i, 1, n - i) : NULL;

    return at ? (uint32_t)(at - set) : n;
}

/* The next connection from `i` on that has an event to report, or a message that can be sent now; a->n: none. */
static uint32_t next_busy(const struct cm_agent *a, uint32_t i)
{
    uint32_t next = next_of(a->news, i, a->n);

    return a->sending < GSI_SENDS ? next_of(a->unsent, i, next) : next;
}

void cm_agent_run(struct cm_agent *a, ns_t now)
{
    poll_gsi(a, now);
    cm_ids_run(a, now);
    take_timers(a, now);
    while (a->dirty) {
        a->dirty = false;
        send_answers(a, now);
        for (uint32_t i = next_busy(a, 0); i < a->n; i = next_busy(a, i + 1))
            run_conn(a, a->conn[i], now);
        take_timers(a, now);
    }
}
