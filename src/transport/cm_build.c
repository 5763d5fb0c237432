/* layer 2 (transport): Communication Management: parameters to messages and back, and to a queue pair. */
#include "src/transport/cm_impl.h"

#include "src/transport/flow_label.h"

static void mad_init(struct cm_msg *m, unsigned attr, uint64_t tid)
{
    memset(m, 0, sizeof *m);
    m->mad.base_version = 1;
    m->mad.mgmt_class = CM_CLASS;
    m->mad.class_version = CM_CLASS_VERSION;
    m->mad.method = CM_METHOD_SEND;
    m->mad.tid = tid;
    m->mad.attr_id = (uint16_t)attr;
}

/* Members with the same name in struct cm_params and in the message. */
#define REQ_SAME(X)                                                                                                    \
    X(service_id)                                                                                                      \
    X(ca_guid)                                                                                                         \
    X(qkey)                                                                                                            \
    X(qpn)                                                                                                             \
    X(psn)                                                                                                             \
    X(vendor_id)                                                                                                       \
    X(pkey)                                                                                                            \
    X(transport)                                                                                                       \
    X(ext_transport)                                                                                                   \
    X(mtu)                                                                                                             \
    X(resp_res)                                                                                                        \
    X(init_depth) X(retry_count) X(rnr_retry) X(max_retries) X(local_timeout) X(remote_timeout) X(flow_ctrl) X(srq)
#define REP_SAME(X)                                                                                                    \
    X(ca_guid) X(qkey) X(qpn) X(psn) X(resp_res) X(init_depth) X(rnr_retry) X(ack_delay) X(flow_ctrl) X(srq)
/* Members of struct cm_path and of a path in a message, whose names begin with `m`. */
#define SAME_PATH(X, m)                                                                                                \
    X(slid, m##llid)                                                                                                   \
    X(dlid, m##rlid)                                                                                                   \
    X(flow, m##flow)                                                                                                   \
    X(tclass, m##tclass) X(hop, m##hop) X(sl, m##sl) X(rate, m##rate) X(subnet_local, m##subnet_local)

/* Private data of a REQ or SIDR_REQ: the RDMA-CM header, if any, then the data of the consumer. */
static void private_put(uint8_t *p, const struct cm_params *own)
{
    if (own->has_ip) {
        cm_ip_put(p, &own->ip);
        p += CM_IP_LEN;
    }
    memcpy(p, own->private_data, own->private_len);
}

/* Likewise, from a message with `size` bytes of private data. */
static void private_get(struct cm_params *p, const uint8_t *data, unsigned size)
{
    p->has_ip = cm_service_is_ip(p->service_id);
    if (p->has_ip) {
        cm_ip_get(&p->ip, data);
        data += CM_IP_LEN;
        size -= CM_IP_LEN;
    }
    p->private_len = (uint8_t)size;
    memcpy(p->private_data, data, size);
}

static void put_alternate(struct cm_req *r, const struct cm_params *o)
{
#define X(ours, theirs) r->theirs = o->alt.ours;
    SAME_PATH(X, alt_)
#undef X
    memcpy(r->alt_lgid, o->alt.sgid, 16);
    memcpy(r->alt_rgid, o->alt.dgid, 16);
    r->alt_ack_timeout = o->alt_timeout;
}

/* The alternate path of a REQ. Without one its fields are zero; its GIDs or LIDs are not. */
static void get_alternate(struct cm_params *p, const struct cm_req *r)
{
    static const uint8_t none[16];

#define X(ours, theirs) p->alt.ours = r->theirs;
    SAME_PATH(X, alt_)
#undef X
    memcpy(p->alt.sgid, r->alt_lgid, 16);
    memcpy(p->alt.dgid, r->alt_rgid, 16);
    p->alt_timeout = r->alt_ack_timeout;
    p->has_alt = memcmp(r->alt_lgid, none, 16) != 0 || r->alt_llid != 0;
}

void cm_build_req(struct cm_conn *c)
{
    const struct cm_params *o = &c->own;
    struct cm_req *r = &c->out.req;

    mad_init(&c->out, CM_REQ, c->tid);
    c->out.mad.attr_mod = o->options;
    r->local_id = c->local_id;
#define X(member) r->member = o->member;
    REQ_SAME(X)
#undef X
#define X(ours, theirs) r->theirs = o->path.ours;
    SAME_PATH(X, prim_)
#undef X
    memcpy(r->prim_lgid, o->path.sgid, 16);
    memcpy(r->prim_rgid, o->path.dgid, 16);
    r->prim_ack_timeout = o->ack_timeout;
    if (o->has_alt)
        put_alternate(r, o);
    private_put(r->private_data, o);
}

void cm_params_of_req(struct cm_params *p, const struct cm_msg *m)
{
    const struct cm_req *r = &m->req;

    memset(p, 0, sizeof *p);
    p->tid = m->mad.tid;
    p->options = m->mad.attr_mod;
#define X(member) p->member = r->member;
    REQ_SAME(X)
#undef X
#define X(ours, theirs) p->path.ours = r->theirs;
    SAME_PATH(X, prim_)
#undef X
    memcpy(p->path.sgid, r->prim_lgid, 16);
    memcpy(p->path.dgid, r->prim_rgid, 16);
    p->ack_timeout = r->prim_ack_timeout;
    get_alternate(p, r);
    private_get(p, r->private_data, sizeof r->private_data);
}

void cm_build_rep(struct cm_conn *c)
{
    const struct cm_params *o = &c->own;
    struct cm_rep *r = &c->out.rep;

    mad_init(&c->out, CM_REP, c->tid);
    c->out.mad.attr_mod = o->options;
    r->local_id = c->local_id;
    r->remote_id = c->remote_id;
#define X(member) r->member = o->member;
    REP_SAME(X)
#undef X
    r->vendor_h = (uint8_t)(o->vendor_id >> 16);
    r->vendor_m = (uint8_t)(o->vendor_id >> 8);
    r->vendor_l = (uint8_t)o->vendor_id;
    r->failover = o->failover;
    if (o->transport == CM_TRANSPORT_EXT) { /* XRC: the target has no send queue */
        r->eecn = o->qpn;
        r->qpn = 0;
        r->init_depth = r->flow_ctrl = 0;
        r->srq = 1;
    }
    memcpy(r->private_data, o->private_data, o->private_len);
}

void cm_params_of_rep(struct cm_params *p, const struct cm_msg *m)
{
    const struct cm_rep *r = &m->rep;

    memset(p, 0, sizeof *p);
    p->tid = m->mad.tid;
    p->options = m->mad.attr_mod;
#define X(member) p->member = r->member;
    REP_SAME(X)
#undef X
    p->qpn = cm_rep_qpn(r);
    p->vendor_id = cm_rep_vendor(r);
    p->failover = r->failover;
    p->private_len = sizeof r->private_data;
    memcpy(p->private_data, r->private_data, sizeof r->private_data);
}

void cm_build_rtu(struct cm_conn *c)
{
    mad_init(&c->out, CM_RTU, c->tid);
    c->out.rtu.local_id = c->local_id;
    c->out.rtu.remote_id = c->remote_id;
}

void cm_build_mra(struct cm_conn *c, enum cm_about about, unsigned n)
{
    mad_init(&c->out, CM_MRA, c->tid);
    c->out.mra.local_id = c->local_id;
    c->out.mra.remote_id = c->remote_id;
    c->out.mra.about = (uint8_t)about;
    c->out.mra.service_timeout = n & 31;
}

void cm_build_rej(struct cm_conn *c, enum cm_about about, unsigned reason, const void *info, unsigned info_len,
                  const void *data, unsigned len)
{
    struct cm_rej *r = &c->out.rej;

    mad_init(&c->out, CM_REJ, c->tid);
    r->local_id = c->local_id;
    r->remote_id = c->remote_id;
    r->about = (uint8_t)about;
    r->reason = (uint16_t)reason;
    r->info_len = (uint8_t)info_len;
    if (info_len)
        memcpy(r->info, info, info_len);
    if (len)
        memcpy(r->private_data, data, len);
}

void cm_build_dreq(struct cm_conn *c, const void *data, unsigned len)
{
    mad_init(&c->out, CM_DREQ, c->own.tid ? c->own.tid : c->tid);
    c->out.dreq.local_id = c->local_id;
    c->out.dreq.remote_id = c->remote_id;
    c->out.dreq.remote_qpn = c->peer.qpn;
    if (len)
        memcpy(c->out.dreq.private_data, data, len);
}

void cm_build_drep(struct cm_conn *c, uint64_t tid)
{
    mad_init(&c->out, CM_DREP, tid);
    c->out.drep.local_id = c->local_id;
    c->out.drep.remote_id = c->remote_id;
}

void cm_build_lap(struct cm_conn *c)
{
    struct cm_lap *l = &c->out.lap;

    mad_init(&c->out, CM_LAP, c->lap_tid);
    l->local_id = c->local_id;
    l->remote_id = c->remote_id;
    l->remote_qpn = c->peer.qpn;
    l->remote_timeout = c->own.remote_timeout;
#define X(ours, theirs) l->theirs = c->offered.ours;
    SAME_PATH(X, )
#undef X
    memcpy(l->lgid, c->offered.sgid, 16);
    memcpy(l->rgid, c->offered.dgid, 16);
    l->ack_timeout = c->offered_timeout;
}

void cm_path_of_lap(struct cm_path *p, const struct cm_msg *m)
{
    const struct cm_lap *l = &m->lap;

    memset(p, 0, sizeof *p);
#define X(ours, theirs) p->ours = l->theirs;
    SAME_PATH(X, )
#undef X
    p->slid = l->rlid;
    p->dlid = l->llid;
    memcpy(p->sgid, l->rgid, 16);
    memcpy(p->dgid, l->lgid, 16);
}

void cm_build_apr(struct cm_conn *c, uint64_t tid, unsigned status)
{
    mad_init(&c->out, CM_APR, tid);
    c->out.apr.local_id = c->local_id;
    c->out.apr.remote_id = c->remote_id;
    c->out.apr.status = (uint8_t)status;
}

void cm_build_sidr_req(struct cm_conn *c)
{
    mad_init(&c->out, CM_SIDR_REQ, c->tid);
    c->out.sidr_req.request_id = c->local_id;
    c->out.sidr_req.pkey = c->own.pkey;
    c->out.sidr_req.service_id = c->own.service_id;
    private_put(c->out.sidr_req.private_data, &c->own);
}

void cm_params_of_sidr_req(struct cm_params *p, const struct cm_msg *m)
{
    memset(p, 0, sizeof *p);
    p->tid = m->mad.tid;
    p->pkey = m->sidr_req.pkey;
    p->service_id = m->sidr_req.service_id;
    private_get(p, m->sidr_req.private_data, sizeof m->sidr_req.private_data);
}

void cm_build_sidr_rep(struct cm_conn *c, unsigned status)
{
    const struct cm_params *o = &c->own;
    struct cm_sidr_rep *r = &c->out.sidr_rep;

    mad_init(&c->out, CM_SIDR_REP, c->tid);
    c->out.mad.attr_mod = o->options;
    r->request_id = c->remote_id;
    r->status = (uint8_t)status;
    r->service_id = c->peer.service_id;
    r->vendor_h = (uint16_t)(o->vendor_id >> 8);
    r->vendor_l = (uint8_t)o->vendor_id;
    if (status == CM_SIDR_SUCCESS) {
        r->qpn = o->qpn;
        r->qkey = o->qkey;
    }
    memcpy(r->private_data, o->private_data, o->private_len);
}

void cm_params_of_sidr_rep(struct cm_params *p, const struct cm_msg *m)
{
    const struct cm_sidr_rep *r = &m->sidr_rep;

    memset(p, 0, sizeof *p);
    p->tid = m->mad.tid;
    p->options = m->mad.attr_mod;
    p->service_id = r->service_id;
    p->qpn = r->qpn;
    p->qkey = r->qkey;
    p->vendor_id = cm_sidr_rep_vendor(r);
    p->private_len = sizeof r->private_data;
    memcpy(p->private_data, r->private_data, sizeof r->private_data);
}

void cm_refuse(const struct cm_msg *m, unsigned reason, const void *info, unsigned info_len, struct cm_msg *out)
{
    info_len = min_u32(info_len, sizeof out->rej.info);
    if (m->mad.attr_id == CM_SIDR_REQ) {
        mad_init(out, CM_SIDR_REP, m->mad.tid);
        out->sidr_rep.request_id = m->sidr_req.request_id;
        out->sidr_rep.service_id = m->sidr_req.service_id;
        out->sidr_rep.status = (uint8_t)reason;
        out->sidr_rep.info_len = (uint8_t)info_len;
        if (info_len)
            memcpy(out->sidr_rep.info, info, info_len);
        return;
    }
    mad_init(out, CM_REJ, m->mad.tid);
    out->rej.remote_id = m->req.local_id;
    out->rej.about = CM_ABOUT_REQ;
    out->rej.reason = (uint16_t)reason;
    out->rej.info_len = (uint8_t)info_len;
    if (info_len)
        memcpy(out->rej.info, info, info_len);
}

bool cm_stray(const struct cm_msg *m, struct cm_msg *out)
{
    switch (m->mad.attr_id) {
    case CM_DREQ:
        mad_init(out, CM_DREP, m->mad.tid);
        out->drep.local_id = m->dreq.remote_id;
        out->drep.remote_id = m->dreq.local_id;
        return true;
    case CM_REP:
        mad_init(out, CM_REJ, m->mad.tid);
        out->rej.local_id = m->rep.remote_id;
        out->rej.remote_id = m->rep.local_id;
        out->rej.about = CM_ABOUT_REP;
        out->rej.reason = CM_REJ_INVALID_COMM_ID;
        return true;
    case CM_LAP:
        mad_init(out, CM_APR, m->mad.tid);
        out->apr.local_id = m->lap.remote_id;
        out->apr.remote_id = m->lap.local_id;
        out->apr.status = CM_APR_INVALID_COMM_ID;
        return true;
    default:
        return false;
    }
}

void cm_params_linux(struct cm_params *p)
{
    *p = (struct cm_params){.pkey = 0xffff,
                            .mtu = 3,
                            .resp_res = 1,
                            .init_depth = 1,
                            .retry_count = 7,
                            .rnr_retry = 7,
                            .max_retries = 15,
                            .local_timeout = 20,
                            .remote_timeout = 20,
                            .ack_timeout = 19,
                            .ack_delay = 15,
                            .path = {.slid = 0xffff, .dlid = 0xffff, .hop = 64, .life = 18}};
}

void cm_params_ip(struct cm_params *p, const uint8_t *src, const uint8_t *dst, uint8_t port_space, uint16_t sport,
                  uint16_t dport)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    bool v4 = memcmp(dst, mapped, sizeof mapped) == 0;

    memcpy(p->path.sgid, src, 16);
    memcpy(p->path.dgid, dst, 16);
    p->service_id = cm_service_ip(port_space, dport);
    p->has_ip = 1;
    p->ip = (struct cm_ip){.ip_version = v4 ? 4 : 6, .sport = sport};
    memcpy(p->ip.src, src, 16);
    memcpy(p->ip.dst, dst, 16);
    if (v4) {
        memset(p->ip.src, 0, 12);
        memset(p->ip.dst, 0, 12);
    }
}

/* --- Negotiated attributes -------------------------------------------------------------------- */

/* Local ACK timeout for a peer with ACK delay `delay`, over a path with this packet life time; all of them exponents.
 * Twice the life time plus the delay, rounded up to the next exponent only where both are about as long (kernel cm.c
 * does the same). */
static uint8_t ack_exponent(unsigned delay, unsigned life)
{
    unsigned twice = life + 1, longer = max_u32(twice, delay), apart = longer - min_u32(twice, delay);

    return (uint8_t)min_u32(longer + (apart <= 1), 31);
}

void cm_qp_attr(const struct cm_conn *c, struct qp_attr *a)
{
    const struct cm_params *o = &c->own, *p = &c->peer;
    const struct cm_path *path = &o->path;

    memset(a, 0, sizeof *a);
    a->pkey = o->pkey;
    a->dest_qpn = p->qpn;
    a->rq_psn = o->psn;
    a->sq_psn = p->psn;
    a->path_mtu = (uint16_t)cm_mtu_bytes(o->mtu);
    a->max_rd_atomic = c->active ? (uint8_t)min_u32(o->init_depth, p->resp_res) : o->init_depth;
    a->max_dest_rd_atomic = c->active ? (uint8_t)min_u32(o->resp_res, p->init_depth) : o->resp_res;
    a->timeout = c->active ? ack_exponent(p->ack_delay, path->life) : p->ack_timeout;
    a->retry_cnt = c->active ? o->retry_count : p->retry_count;
    a->rnr_retry = p->rnr_retry;
    memcpy(a->av.dgid, path->dgid, 16);
    a->av.dlid = path->dlid;
    a->av.flow = path->flow;
    a->av.sport = flow_sport(path->flow ? path->flow : flow_of_qpns(o->qpn, p->qpn));
    a->av.tclass = path->tclass;
    a->av.hop_limit = path->hop;
    a->av.sl = path->sl;
    a->av.grh = !path->subnet_local;
}
