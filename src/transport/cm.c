/* layer 2 (transport): Communication Management: the state machine of one connection. */
#include "src/transport/cm_impl.h"

/* --- Helpers ---------------------------------------------------------------------------------- */

static void raise(struct cm_conn *c, enum cm_event e)
{
    c->events |= (uint16_t)(1u << e);
}

/* How long the peer may take to respond to a request of this side, path included. */
static ns_t answer_time(const struct cm_conn *c)
{
    return c->active ? cm_time(c->own.remote_timeout) + 2 * cm_time(c->own.path.life) : cm_time(c->peer.local_timeout);
}

/* After this time no packet of the connection is left in the network. */
static ns_t timewait_time(const struct cm_conn *c)
{
    if (!c->active && c->peer.ack_timeout)
        return cm_time(c->peer.ack_timeout);
    return 2 * cm_time(c->own.path.life) + cm_time(c->active ? c->peer.ack_delay : c->own.ack_delay);
}

/* `out` is a request: sent now, and retransmitted until a response arrives. */
static void request(struct cm_conn *c, enum cm_state s, ns_t now)
{
    c->state = (uint8_t)s;
    c->pending = 1;
    c->tries = 1;
    c->expiry = now + answer_time(c);
}

/* `out` is a response: sent now, and again only if the peer retransmits its request. */
static void answer(struct cm_conn *c, enum cm_state s)
{
    c->state = (uint8_t)s;
    c->pending = 1;
    c->tries = 1;
    c->expiry = NS_NEVER;
}

static void close_conn(struct cm_conn *c)
{
    c->state = CM_ST_CLOSED;
    c->expiry = NS_NEVER;
}

static void timewait(struct cm_conn *c, ns_t now)
{
    c->state = CM_ST_TIMEWAIT;
    c->expiry = now + timewait_time(c);
}

static void ready(struct cm_conn *c)
{
    cm_build_rtu(c);
    answer(c, CM_ST_ESTABLISHED);
    raise(c, CM_EV_CONNECTED);
}

/* --- Calls of the consumer -------------------------------------------------------------------- */

static bool private_fits(const struct cm_params *p, unsigned attr)
{
    unsigned header = p->has_ip && (attr == CM_REQ || attr == CM_SIDR_REQ) ? CM_IP_LEN : 0;

    return p->private_len + header <= cm_private_max(attr);
}

static void start(struct cm_conn *c, uint32_t local_id, const struct cm_params *own)
{
    memset(c, 0, sizeof *c);
    c->active = 1;
    c->local_id = local_id;
    c->own = *own;
    c->tid = own->tid;
}

bool cm_connect(struct cm_conn *c, uint32_t local_id, const struct cm_params *own, ns_t now)
{
    if (!private_fits(own, CM_REQ))
        return false;
    start(c, local_id, own);
    cm_build_req(c);
    request(c, CM_ST_REQ_SENT, now);
    return true;
}

bool cm_sidr_connect(struct cm_conn *c, uint32_t request_id, const struct cm_params *own, ns_t now)
{
    if (!private_fits(own, CM_SIDR_REQ))
        return false;
    start(c, request_id, own);
    cm_build_sidr_req(c);
    request(c, CM_ST_SIDR_REQ_SENT, now);
    return true;
}

void cm_listen(struct cm_conn *c, uint32_t local_id)
{
    memset(c, 0, sizeof *c);
    c->local_id = local_id;
    c->expiry = NS_NEVER;
}

static bool has_request(const struct cm_conn *c)
{
    return c->state == CM_ST_REQ_RCVD || c->state == CM_ST_MRA_REQ_SENT;
}

static bool has_reply(const struct cm_conn *c)
{
    return c->state == CM_ST_REP_RCVD || c->state == CM_ST_MRA_REP_SENT;
}

/* The passive side's parameters: its own, limited by those of the REQ. */
static void take_own(struct cm_conn *c, const struct cm_params *own)
{
    const struct cm_path *theirs = &c->peer.path;
    struct cm_params *o = &c->own;

    *o = *own;
    o->service_id = c->peer.service_id;
    o->pkey = c->peer.pkey;
    o->transport = c->peer.transport;
    o->ext_transport = c->peer.ext_transport;
    o->mtu = c->peer.mtu;
    o->max_retries = c->peer.max_retries;
    o->resp_res = (uint8_t)min_u32(own->resp_res, c->peer.init_depth);
    o->init_depth = (uint8_t)min_u32(own->init_depth, c->peer.resp_res);
    o->path = *theirs;
    o->path.life = own->path.life;
    o->path.slid = theirs->dlid;
    o->path.dlid = theirs->slid;
    memcpy(o->path.sgid, theirs->dgid, 16);
    memcpy(o->path.dgid, theirs->sgid, 16);
}

bool cm_accept(struct cm_conn *c, const struct cm_params *own, ns_t now)
{
    if (!has_request(c) || !private_fits(own, CM_REP))
        return false;
    take_own(c, own);
    cm_build_rep(c);
    request(c, CM_ST_REP_SENT, now);
    return true;
}

bool cm_reject(struct cm_conn *c, unsigned reason, const void *info, unsigned info_len, const void *data, unsigned len)
{
    bool req = has_request(c);

    if ((!req && !has_reply(c)) || info_len > sizeof c->out.rej.info || len > cm_private_max(CM_REJ))
        return false;
    cm_build_rej(c, req ? CM_ABOUT_REQ : CM_ABOUT_REP, reason, info, info_len, data, len);
    if (c->state == CM_ST_REQ_RCVD)
        c->out.rej.local_id = 0; /* the peer does not know it */
    answer(c, CM_ST_CLOSED);
    return true;
}

bool cm_mra(struct cm_conn *c, unsigned n)
{
    bool req = has_request(c);

    if (c->state == CM_ST_ESTABLISHED && c->lap == CM_LAP_RCVD) {
        cm_build_mra(c, CM_ABOUT_OTHER, n);
        c->out.mad.tid = c->lap_tid;
        c->pending = 1;
        return true;
    }
    if (!req && !has_reply(c))
        return false;
    cm_build_mra(c, req ? CM_ABOUT_REQ : CM_ABOUT_REP, n);
    answer(c, req ? CM_ST_MRA_REQ_SENT : CM_ST_MRA_REP_SENT);
    return true;
}

bool cm_ready(struct cm_conn *c)
{
    if (!has_reply(c))
        return false;
    ready(c);
    return true;
}

bool cm_established(struct cm_conn *c)
{
    if (c->state != CM_ST_REP_SENT && c->state != CM_ST_MRA_REP_RCVD)
        return false;
    c->state = CM_ST_ESTABLISHED;
    c->expiry = NS_NEVER;
    raise(c, CM_EV_CONNECTED);
    return true;
}

bool cm_disconnect(struct cm_conn *c, const void *data, unsigned len, ns_t now)
{
    if (c->state != CM_ST_ESTABLISHED || len > cm_private_max(CM_DREQ))
        return false;
    c->lap = CM_LAP_IDLE;
    cm_build_dreq(c, data, len);
    request(c, CM_ST_DREQ_SENT, now);
    return true;
}

bool cm_load(struct cm_conn *c, const struct cm_path *alt, uint8_t ack_timeout, uint64_t tid, ns_t now)
{
    if (c->state != CM_ST_ESTABLISHED || c->lap != CM_LAP_IDLE)
        return false;
    c->offered = *alt;
    c->offered_timeout = ack_timeout;
    c->lap_tid = tid;
    c->lap = CM_LAP_SENT;
    cm_build_lap(c);
    request(c, CM_ST_ESTABLISHED, now);
    return true;
}

bool cm_load_reply(struct cm_conn *c, unsigned status)
{
    if (c->state != CM_ST_ESTABLISHED || c->lap != CM_LAP_RCVD)
        return false;
    c->lap = CM_LAP_IDLE;
    c->lap_answered = 1;
    c->apr_status = (uint8_t)status;
    cm_build_apr(c, c->lap_tid, status);
    c->pending = 1;
    return true;
}

bool cm_sidr_reply(struct cm_conn *c, unsigned status, const struct cm_params *own)
{
    if (c->state != CM_ST_SIDR_REQ_RCVD || own->private_len > cm_private_max(CM_SIDR_REP))
        return false;
    c->own = *own;
    cm_build_sidr_rep(c, status);
    answer(c, CM_ST_CLOSED);
    return true;
}

bool cm_abort(struct cm_conn *c)
{
    uint8_t guid[8];

    switch (c->state) {
    case CM_ST_REQ_SENT:
    case CM_ST_MRA_REQ_RCVD:
        /* The peer's communication id is not known: the peer finds the request by the own CA GUID. */
        store_be64(guid, c->own.ca_guid);
        cm_build_rej(c, CM_ABOUT_OTHER, CM_REJ_TIMEOUT, guid, sizeof guid, NULL, 0);
        break;
    case CM_ST_REP_SENT:
    case CM_ST_MRA_REP_RCVD:
        cm_build_rej(c, CM_ABOUT_OTHER, CM_REJ_TIMEOUT, NULL, 0, NULL, 0);
        break;
    default:
        return false;
    }
    answer(c, CM_ST_CLOSED);
    return true;
}

/* --- What arrives ----------------------------------------------------------------------------- */

/* A REQ or SIDR_REQ of the peer, which calls it `id`. */
static void take_request(struct cm_conn *c, const struct cm_msg *m, uint32_t id, enum cm_state state,
                         enum cm_event event)
{
    c->remote_id = id;
    c->tid = m->mad.tid;
    c->rx_hash = cm_msg_hash(m);
    c->copies = 1;
    c->state = state;
    c->expiry = NS_NEVER;
    raise(c, event);
}

static void on_req(struct cm_conn *c, const struct cm_msg *m)
{
    cm_params_of_req(&c->peer, m);
    take_request(c, m, m->req.local_id, CM_ST_REQ_RCVD, CM_EV_REQUEST);
}

static void on_rep(struct cm_conn *c, const struct cm_msg *m)
{
    cm_params_of_rep(&c->peer, m);
    c->remote_id = m->rep.local_id;
    c->rx_hash = cm_msg_hash(m);
    c->copies = 1;
    c->expiry = NS_NEVER;
    c->pending = 0; /* a REQ due for retransmission */
    if (!c->own.ask) {
        ready(c);
        return;
    }
    c->state = CM_ST_REP_RCVD;
    raise(c, CM_EV_REPLY);
}

/* An MRA to the LAP: the APR takes longer. */
static void prolong_lap(struct cm_conn *c, const struct cm_msg *m, ns_t now)
{
    if (c->lap != CM_LAP_SENT || m->mra.about != CM_ABOUT_OTHER)
        return;
    c->pending = 0;
    c->expiry = now + cm_time(m->mra.service_timeout) + 2 * cm_time(c->own.path.life);
}

static void on_mra(struct cm_conn *c, const struct cm_msg *m, ns_t now)
{
    if (c->state == CM_ST_ESTABLISHED) {
        prolong_lap(c, m, now);
        return;
    }
    if (m->mra.about != (c->active ? CM_ABOUT_REQ : CM_ABOUT_REP))
        return;
    c->state = c->active ? CM_ST_MRA_REQ_RCVD : CM_ST_MRA_REP_RCVD;
    if (c->active)
        c->remote_id = m->mra.local_id;
    c->pending = 0;
    c->expiry = now + cm_time(m->mra.service_timeout) + 2 * cm_time(c->own.path.life);
    raise(c, CM_EV_DELAYED);
}

static void on_rej(struct cm_conn *c, const struct cm_msg *m, ns_t now)
{
    const struct cm_rej *r = &m->rej;
    bool was_connected = c->state == CM_ST_ESTABLISHED || c->state == CM_ST_DREQ_SENT;

    c->rej_reason = r->reason;
    c->about = r->about;
    c->info_len = (uint8_t)min_u32(r->info_len, sizeof c->info);
    memcpy(c->info, r->info, sizeof c->info);
    c->peer.private_len = sizeof r->private_data;
    memcpy(c->peer.private_data, r->private_data, sizeof r->private_data);
    c->pending = 0;
    c->out.mad.attr_id = 0; /* nothing to retransmit */
    raise(c, CM_EV_REJECTED);
    if (was_connected)
        timewait(c, now);
    else
        close_conn(c);
}

static void on_dreq(struct cm_conn *c, const struct cm_msg *m, ns_t now)
{
    cm_build_drep(c, m->mad.tid);
    answer(c, CM_ST_TIMEWAIT);
    timewait(c, now);
    raise(c, CM_EV_DISCONNECTED);
}

static void on_drep(struct cm_conn *c, ns_t now)
{
    c->pending = 0;
    timewait(c, now);
    raise(c, CM_EV_DISCONNECTED);
}

static void on_lap(struct cm_conn *c, const struct cm_msg *m)
{
    uint64_t hash = cm_msg_hash(m);

    if (c->lap == CM_LAP_RCVD || (c->lap_answered && hash == c->lap_hash)) {
        if (c->lap == CM_LAP_RCVD) /* its copy: the consumer has not decided yet */
            return;
        cm_build_apr(c, m->mad.tid, c->apr_status);
        c->pending = 1;
        return;
    }
    if (c->lap == CM_LAP_SENT) /* both sides have sent one: the own LAP goes on */
        return;
    c->lap_hash = hash;
    c->lap_tid = m->mad.tid;
    c->lap_answered = 0;
    c->lap = CM_LAP_RCVD;
    cm_path_of_lap(&c->offered, m);
    c->offered_timeout = m->lap.ack_timeout;
    if (!c->own.alternates)
        cm_load_reply(c, CM_APR_UNSUPPORTED);
    else if (m->lap.remote_qpn != c->own.qpn)
        cm_load_reply(c, CM_APR_INVALID_QPN_EECN);
    else
        raise(c, CM_EV_LAP);
}

static void on_apr(struct cm_conn *c, const struct cm_msg *m)
{
    if (c->lap != CM_LAP_SENT || m->mad.tid != c->lap_tid)
        return;
    c->lap = CM_LAP_IDLE;
    c->apr_status = m->apr.status;
    c->pending = 0;
    c->expiry = NS_NEVER;
    raise(c, CM_EV_APR);
}

static void on_sidr_req(struct cm_conn *c, const struct cm_msg *m)
{
    cm_params_of_sidr_req(&c->peer, m);
    take_request(c, m, m->sidr_req.request_id, CM_ST_SIDR_REQ_RCVD, CM_EV_SIDR_REQUEST);
}

static void on_sidr_rep(struct cm_conn *c, const struct cm_msg *m)
{
    cm_params_of_sidr_rep(&c->peer, m);
    c->sidr_status = m->sidr_rep.status;
    c->info_len = (uint8_t)min_u32(m->sidr_rep.info_len, sizeof c->info);
    memcpy(c->info, m->sidr_rep.info, sizeof c->info);
    c->pending = 0;
    c->out.mad.attr_id = 0;
    close_conn(c);
    raise(c, CM_EV_SIDR_RESPONSE);
}

/* A duplicate of a message that was answered already. */
static void on_copy(struct cm_conn *c, enum cm_act act, const struct cm_msg *m)
{
    if (act == CM_ACT_RTU_AGAIN)
        cm_build_rtu(c);
    else if (act == CM_ACT_DREP_AGAIN)
        cm_build_drep(c, m->mad.tid);
    else if (act == CM_ACT_STALE)
        cm_build_rej(c, CM_ABOUT_REQ, CM_REJ_STALE_CONN, NULL, 0, NULL, 0);
    else if (act == CM_ACT_REJ_AGAIN && c->out.mad.attr_id != CM_REJ)
        return;
    else if (act == CM_ACT_SIDR_REP_AGAIN && c->out.mad.attr_id != CM_SIDR_REP)
        return;
    c->pending = 1;
}

static void act_on(struct cm_conn *c, enum cm_act act, const struct cm_msg *m, ns_t now)
{
    switch (act) {
    case CM_ACT_REQ:
        on_req(c, m);
        break;
    case CM_ACT_REP:
        on_rep(c, m);
        break;
    case CM_ACT_RTU:
        c->pending = 0;
        cm_established(c);
        break;
    case CM_ACT_MRA:
        on_mra(c, m, now);
        break;
    case CM_ACT_REJ:
        on_rej(c, m, now);
        break;
    case CM_ACT_DREQ:
        on_dreq(c, m, now);
        break;
    case CM_ACT_DREP:
        on_drep(c, now);
        break;
    case CM_ACT_SIDR_REQ:
        on_sidr_req(c, m);
        break;
    case CM_ACT_SIDR_REP:
        on_sidr_rep(c, m);
        break;
    case CM_ACT_LAP:
        on_lap(c, m);
        break;
    case CM_ACT_APR:
        on_apr(c, m);
        break;
    case CM_ACT_BAD:
    case CM_ACT_IGNORE:
        break;
    default:
        on_copy(c, act, m);
    }
}

struct verdict cm_rx(struct cm_conn *c, const struct cm_msg *m, ns_t now)
{
    struct verdict v = cm_rx_check(c, m);
    uint16_t first = c->active ? CM_REP : CM_REQ;

    if (cm_is_ignored(v))
        return v;
    if (m->mad.attr_id == first && c->copies && c->copies < 255)
        c->copies++;
    act_on(c, cm_act_of(c, m), m, now);
    return v;
}

bool cm_tx(struct cm_conn *c, struct cm_msg *out)
{
    if (!c->pending)
        return false;
    c->pending = 0;
    *out = c->out;
    return true;
}

/* --- Time ------------------------------------------------------------------------------------- */

ns_t cm_next_expiry(const struct cm_conn *c)
{
    return c->state == CM_ST_IDLE ? NS_NEVER : c->expiry;
}

/* No response came after the last retry. */
static void give_up(struct cm_conn *c, ns_t now)
{
    if (c->state == CM_ST_DREQ_SENT) {
        timewait(c, now);
        raise(c, CM_EV_DISCONNECTED);
        return;
    }
    if (c->state == CM_ST_ESTABLISHED) {
        c->lap = CM_LAP_IDLE;
        c->expiry = NS_NEVER;
        raise(c, CM_EV_LAP_ERROR);
        return;
    }
    raise(c, CM_EV_UNREACHABLE);
    if (!cm_abort(c)) { /* SIDR: no REJ is sent */
        c->out.mad.attr_id = 0;
        close_conn(c);
    }
}

void cm_expire(struct cm_conn *c, ns_t now)
{
    if (now < cm_next_expiry(c))
        return;
    if (c->state == CM_ST_TIMEWAIT) {
        close_conn(c);
        raise(c, CM_EV_TIMEWAIT_EXIT);
        return;
    }
    if (c->tries > c->own.max_retries) {
        give_up(c, now);
        return;
    }
    if (c->state == CM_ST_MRA_REQ_RCVD)
        c->state = CM_ST_REQ_SENT;
    else if (c->state == CM_ST_MRA_REP_RCVD)
        c->state = CM_ST_REP_SENT;
    else if (c->state == CM_ST_ESTABLISHED)
        cm_build_lap(c); /* another message may have been sent since */
    c->tries++;
    c->pending = 1;
    c->expiry = now + answer_time(c);
}

enum cm_event cm_poll(struct cm_conn *c)
{
    unsigned e;

    if (!c->events)
        return CM_EV_NONE;
    e = (unsigned)__builtin_ctz(c->events);
    c->events &= (uint16_t) ~(1u << e);
    return (enum cm_event)e;
}
