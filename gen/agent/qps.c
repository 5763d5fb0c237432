/* layer 3 (agent): the commands of queue pairs: created, modified by any attributes, queried; multicast groups. */
#include "gen/agent/names.h"

#include <errno.h>
#include <stdio.h>

/* --- Creation --------------------------------------------------------------------------------- */

static bool queue_sizes(struct request *r, struct rnic_qp_init *q)
{
    return request_u32(r, "max_send_wr", 0, UINT32_MAX, &q->max_send_wr) &&
           request_u32(r, "max_recv_wr", 0, UINT32_MAX, &q->max_recv_wr) &&
           request_u32(r, "max_send_sge", 0, UINT32_MAX, &q->max_send_sge) &&
           request_u32(r, "max_recv_sge", 0, UINT32_MAX, &q->max_recv_sge) &&
           request_u32(r, "max_inline", 0, UINT32_MAX, &q->max_inline);
}

static bool queue_flags(struct request *r, struct rnic_qp_init *q)
{
    return request_u32(r, "create_flags", 0, UINT32_MAX, &q->create_flags) &&
           request_u32(r, "send_ops", 0, UINT32_MAX, &q->send_ops_flags) && request_bool(r, "sig_all", &q->sig_all);
}

static bool queue_objects(struct agent *a, struct request *r, struct rnic_qp_init *q)
{
    struct object *pd, *srq, *xrcd, *send_cq, *recv_cq, *cq;

    if (!agent_object(a, r, "pd", OBJECT_PD, &pd) || !agent_object(a, r, "srq", OBJECT_SRQ, &srq) ||
        !agent_object(a, r, "xrcd", OBJECT_XRCD, &xrcd))
        return false;
    q->pd = agent_impl(pd);
    q->srq = agent_impl(srq);
    q->xrcd = agent_impl(xrcd);
    if (!agent_object(a, r, "cq", OBJECT_CQ, &cq) || !agent_object(a, r, "send_cq", OBJECT_CQ, &send_cq) ||
        !agent_object(a, r, "recv_cq", OBJECT_CQ, &recv_cq))
        return false;
    q->send_cq = agent_impl(send_cq ? send_cq : cq);
    q->recv_cq = agent_impl(recv_cq ? recv_cq : cq);
    return true;
}

static int cmd_qp(struct agent *a, struct request *r)
{
    struct rnic_qp_init q = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1};
    uint64_t type = 0;
    struct object *o;
    int e;

    if (!request_name(r, "type", type_names, &type) || !queue_sizes(r, &q) || !queue_flags(r, &q) ||
        !queue_objects(a, r, &q))
        return -EINVAL;
    q.type = (uint32_t)type;
    o = object_new(&a->objects, OBJECT_QP);
    if (!o)
        return -ENOMEM;
    e = agent_made(a, o, a->rnic->ops->qp_create(a->rnic, &q, o, &o->impl));
    if (e < 0)
        return e;
    o->type = q.type;
    o->qpn = q.qpn;
    o->max_inline = q.max_inline;
    o->send_ops = q.send_ops_flags;
    buf_printf(&a->reply, " qpn=0x%x max_send_wr=%u max_recv_wr=%u max_send_sge=%u max_recv_sge=%u max_inline=%u",
               q.qpn, q.max_send_wr, q.max_recv_wr, q.max_send_sge, q.max_recv_sge, q.max_inline);
    return 0;
}

/* --- Attributes ------------------------------------------------------------------------------- */

#define AT(member) offsetof(struct rnic_qp_attr, member)

/* The attributes, with the bit of the mask that each of them sets. */
static const struct attribute {
    const char *key;
    size_t at;
    uint32_t bit;
    const struct line_name *names; /* NULL: a number */
    bool flags;
} attributes[] = {
    {"state", AT(state), QPA_STATE, state_names, false},
    {"cur_state", AT(cur_state), QPA_CUR_STATE, state_names, false},
    {"en_sqd_async_notify", AT(en_sqd_async_notify), QPA_EN_SQD_ASYNC_NOTIFY, NULL, false},
    {"access", AT(access), QPA_ACCESS_FLAGS, access_names, true},
    {"pkey_index", AT(pkey_index), QPA_PKEY_INDEX, NULL, false},
    {"port", AT(port), QPA_PORT, NULL, false},
    {"qkey", AT(qkey), QPA_QKEY, NULL, false},
    {"path_mtu", AT(path_mtu), QPA_PATH_MTU, NULL, false},
    {"timeout", AT(timeout), QPA_TIMEOUT, NULL, false},
    {"retry_cnt", AT(retry_cnt), QPA_RETRY_CNT, NULL, false},
    {"rnr_retry", AT(rnr_retry), QPA_RNR_RETRY, NULL, false},
    {"rq_psn", AT(rq_psn), QPA_RQ_PSN, NULL, false},
    {"max_rd_atomic", AT(max_rd_atomic), QPA_MAX_QP_RD_ATOMIC, NULL, false},
    {"min_rnr_timer", AT(min_rnr_timer), QPA_MIN_RNR_TIMER, NULL, false},
    {"sq_psn", AT(sq_psn), QPA_SQ_PSN, NULL, false},
    {"max_dest_rd_atomic", AT(max_dest_rd_atomic), QPA_MAX_DEST_RD_ATOMIC, NULL, false},
    {"path_mig_state", AT(path_mig_state), RNIC_QPA_PATH_MIG_STATE, migration_names, false},
    {"dest_qpn", AT(dest_qpn), QPA_DEST_QPN, NULL, false},
    {"rate_limit", AT(rate_limit), RNIC_QPA_RATE_LIMIT, NULL, false},
    {"alt_pkey_index", AT(alt_pkey_index), RNIC_QPA_ALT_PATH, NULL, false},
    {"alt_timeout", AT(alt_timeout), RNIC_QPA_ALT_PATH, NULL, false},
    {"max_send_wr", AT(max_send_wr), RNIC_QPA_CAP, NULL, false},
    {"max_recv_wr", AT(max_recv_wr), RNIC_QPA_CAP, NULL, false},
    {"max_send_sge", AT(max_send_sge), RNIC_QPA_CAP, NULL, false},
    {"max_recv_sge", AT(max_recv_sge), RNIC_QPA_CAP, NULL, false},
    {"max_inline", AT(max_inline), RNIC_QPA_CAP, NULL, false},
};

static bool take_attribute(struct request *r, const struct attribute *row, struct rnic_qp_attr *to, uint32_t *mask)
{
    uint32_t *at = (uint32_t *)(void *)((char *)to + row->at);
    uint64_t v = 0;
    bool good;

    if (!request_arg(r, row->key))
        return true;
    if (!row->names)
        good = request_u64(r, row->key, 0, UINT32_MAX, &v);
    else
        good = (row->flags ? request_flags : request_name)(r, row->key, row->names, &v);
    *at = (uint32_t)v;
    *mask |= row->bit;
    return good;
}

static int cmd_modify(struct agent *a, struct request *r)
{
    struct rnic_qp_attr at = {.av = {.hop_limit = 64, .is_global = 1, .port = 1},
                              .alt_av = {.hop_limit = 64, .is_global = 1, .port = 1}};
    uint32_t mask = 0;
    struct object *o;

    if (!agent_object(a, r, "qp", OBJECT_QP, &o))
        return -EINVAL;
    for (unsigned i = 0; i < ARRAY_LEN(attributes); i++)
        if (!take_attribute(r, &attributes[i], &at, &mask))
            return -EINVAL;
    if (!request_av(r, "", &at.av) || !request_av(r, "alt_", &at.alt_av))
        return -EINVAL;
    mask |= (request_has_av(r, "") ? QPA_AV : 0) | (request_has_av(r, "alt_") ? RNIC_QPA_ALT_PATH : 0);
    at.alt_port = at.alt_av.port;
    if (!request_u32(r, "mask", 0, UINT32_MAX, &mask))
        return -EINVAL;
    return a->rnic->ops->qp_modify(a->rnic, o->impl, mask, &at);
}

static void say_attribute(struct buf *b, const struct attribute *row, const struct rnic_qp_attr *is)
{
    uint32_t v = *(const uint32_t *)(const void *)((const char *)is + row->at);
    const char *name = row->names && !row->flags ? line_name_of(row->names, v) : NULL;

    buf_printf(b, " %s=", row->key);
    if (row->flags)
        line_flags(b, row->names, v);
    else if (name)
        buf_puts(b, name);
    else
        buf_printf(b, strstr(row->key, "key") || strstr(row->key, "qpn") ? "0x%x" : "%u", v);
}

static int cmd_query(struct agent *a, struct request *r)
{
    struct rnic_qp_attr is = {0};
    struct object *o;
    int e;

    if (!agent_object(a, r, "qp", OBJECT_QP, &o))
        return -EINVAL;
    e = a->rnic->ops->qp_query(a->rnic, o->impl, &is);
    if (e < 0)
        return e;
    for (unsigned i = 0; i < ARRAY_LEN(attributes); i++)
        if (attributes[i].bit != QPA_CUR_STATE)
            say_attribute(&a->reply, &attributes[i], &is);
    buf_puts(&a->reply, " dgid=");
    buf_ipv6(&a->reply, is.av.dgid);
    buf_printf(&a->reply, " sgid_index=%u hop_limit=%u tclass=%u flow=%u sl=%u qpn=0x%x posted=%llu", is.av.sgid_index,
               is.av.hop_limit, is.av.tclass, is.av.flow, is.av.sl, o->qpn, (unsigned long long)o->posted);
    return 0;
}

static int group(struct agent *a, struct request *r, bool attach)
{
    uint8_t gid[16] = {0};
    uint32_t lid = 0;
    struct object *o;

    if (!agent_object(a, r, "qp", OBJECT_QP, &o) || !request_gid(r, "gid", gid) ||
        !request_u32(r, "lid", 0, 65535, &lid))
        return -EINVAL;
    return a->rnic->ops->mcast(a->rnic, o->impl, gid, (uint16_t)lid, attach);
}

static int cmd_attach(struct agent *a, struct request *r)
{
    return group(a, r, true);
}

static int cmd_detach(struct agent *a, struct request *r)
{
    return group(a, r, false);
}

const struct agent_command agent_qps[] = {
    {"qp",
     "type=rc|uc|ud|raw|xrc_send|xrc_recv [pd=PD] [cq=CQ] [send_cq=CQ] [recv_cq=CQ] [srq=SRQ] [xrcd=XRCD] "
     "[max_send_wr=N] "
     "[max_recv_wr=N] [max_send_sge=N] [max_recv_sge=N] [max_inline=N] [sig_all=0|1] [create_flags=BITS] "
     "[send_ops=BITS]",
     "create a queue pair", cmd_qp, AGENT_DEVICE},
    {"qp modify",
     "qp=QP [state=STATE] [cur_state=STATE] [en_sqd_async_notify=N] [access=RIGHTS] [pkey_index=N] [port=N] [qkey=N] "
     "[path_mtu=BYTES] "
     "[timeout=CODE] [retry_cnt=N] [rnr_retry=N] [rq_psn=N] [max_rd_atomic=N] [min_rnr_timer=CODE] [sq_psn=N] "
     "[max_dest_rd_atomic=N] [path_mig_state=STATE] [dest_qpn=N] [rate_limit=N] [max_send_wr=N] [max_recv_wr=N] "
     "[max_send_sge=N] [max_recv_sge=N] [max_inline=N] " AV_ARGS " [alt_dgid=GID] [alt_sgid_index=N] [alt_hop_limit=N] "
     "[alt_tclass=N] [alt_flow=N] [alt_sl=N] [alt_dlid=N] [alt_src_path_bits=N] [alt_static_rate=N] "
     "[alt_is_global=0|1] "
     "[alt_port_num=N] [alt_pkey_index=N] [alt_timeout=CODE] [mask=BITS]",
     "set the attributes that are given; mask= says otherwise which", cmd_modify, AGENT_DEVICE},
    {"qp query", "qp=QP", "its attributes", cmd_query, AGENT_DEVICE},
    {"mcast attach", "qp=QP gid=GID [lid=N]", "attach a queue pair to a multicast group", cmd_attach, AGENT_DEVICE},
    {"mcast detach", "qp=QP gid=GID [lid=N]", "detach it", cmd_detach, AGENT_DEVICE},
    {NULL, NULL, NULL, NULL, 0},
};
