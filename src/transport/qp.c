/* layer 2 (transport): queue pair states and the attributes of each transition. */
#include "src/transport/qp.h"

#include <errno.h>

#include "dissect/ib/opcode.h"
#include "src/transport/ud.h"

size_t qp_size(uint32_t n_msg, uint32_t n_res)
{
    return sizeof(struct qp) + n_msg * sizeof(struct req_msg) + n_res * sizeof(struct rsp_res);
}

void qp_init(struct qp *qp, enum qp_type type, uint32_t qpn, uint32_t n_msg, uint32_t n_res,
             const struct qp_options *opt)
{
    memset(qp, 0, sizeof *qp);
    qp->type = (uint8_t)type;
    qp->state = QPS_RESET;
    qp->qpn = qpn;
    qp->n_msg = n_msg;
    qp->n_res = n_res;
    qp->opt = *opt;
}

/* One row per transition: required and optional attributes, by enum qp_type. QPA_STATE is always required. */
struct transition {
    uint8_t from, to;
    uint32_t required[QP_TYPES], optional[QP_TYPES];
};

#define INIT_CONN (QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS)
#define INIT_UD   (QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY)
#define RTR_UC    (QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN)
#define RTR_RC    (RTR_UC | QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER)
#define RTS_TGT   (QPA_TIMEOUT | QPA_SQ_PSN)
#define RTS_RC    (QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_SQ_PSN | QPA_MAX_QP_RD_ATOMIC)
#define MIGRATE   (QPA_ALT_PATH | QPA_PATH_MIG_STATE)
#define RUN_UC    (QPA_CUR_STATE | QPA_ACCESS_FLAGS | MIGRATE)
#define RUN_RC    (RUN_UC | QPA_MIN_RNR_TIMER)
#define RUN_UD    (QPA_CUR_STATE | QPA_QKEY)
#define SQD_RC                                                                                                         \
    (QPA_PORT | QPA_AV | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_QP_RD_ATOMIC | QPA_MAX_DEST_RD_ATOMIC | \
     QPA_ACCESS_FLAGS | QPA_PKEY_INDEX | QPA_MIN_RNR_TIMER | MIGRATE)

#define SQD_UC   (QPA_AV | QPA_ACCESS_FLAGS | QPA_PKEY_INDEX | MIGRATE)
#define RTR_MORE (QPA_ACCESS_FLAGS | QPA_PKEY_INDEX | QPA_ALT_PATH)
#define RUN_ALL                                                                                                        \
    {                                                                                                                  \
        RUN_RC, RUN_UC, RUN_UD, RUN_UC, RUN_RC                                                                         \
    }
#define INIT_ALL                                                                                                       \
    {                                                                                                                  \
        INIT_CONN, INIT_CONN, INIT_UD, INIT_CONN, INIT_CONN                                                            \
    }
#define NOTIFY QPA_EN_SQD_ASYNC_NOTIFY

static const struct transition transitions[] = {
    {QPS_RESET, QPS_INIT, INIT_ALL, {0}},
    {QPS_INIT, QPS_INIT, {0}, INIT_ALL},
    {QPS_INIT,
     QPS_RTR,
     {RTR_RC, RTR_UC, 0, RTR_UC, RTR_RC},
     {RTR_MORE, RTR_MORE, QPA_PKEY_INDEX | QPA_QKEY, RTR_MORE, RTR_MORE}},
    {QPS_RTR, QPS_RTS, {RTS_RC, QPA_SQ_PSN, QPA_SQ_PSN, RTS_RC, RTS_TGT}, RUN_ALL},
    {QPS_RTS, QPS_RTS, {0}, RUN_ALL},
    {QPS_RTS, QPS_SQD, {0}, {NOTIFY, NOTIFY, NOTIFY, NOTIFY, NOTIFY}},
    {QPS_SQD, QPS_RTS, {0}, RUN_ALL},
    {QPS_SQD, QPS_SQD, {0}, {SQD_RC, SQD_UC, QPA_PKEY_INDEX | QPA_QKEY, SQD_RC, SQD_RC}},
};

bool qp_transition(enum qp_type type, enum qp_state from, enum qp_state to, uint32_t *required, uint32_t *optional)
{
    *required = *optional = 0;
    if (to == QPS_RESET || to == QPS_ERR)
        return true;
    if (from == QPS_SQE && to == QPS_RTS && !qp_is_reliable(type)) {
        *optional = type == QPT_UC ? QPA_CUR_STATE | QPA_ACCESS_FLAGS : RUN_UD;
        return true;
    }
    for (unsigned i = 0; i < ARRAY_LEN(transitions); i++)
        if (transitions[i].from == from && transitions[i].to == to) {
            *required = transitions[i].required[type];
            *optional = transitions[i].optional[type];
            return true;
        }
    return false;
}

static bool values_ok(const struct qp_attr *a, uint32_t mask)
{
    const struct {
        uint32_t bit;
        bool ok;
    } values[] = {
        {QPA_PATH_MTU, is_path_mtu(a->path_mtu)},
        {QPA_TIMEOUT, a->timeout <= 31},
        {QPA_RETRY_CNT, a->retry_cnt <= 7},
        {QPA_RNR_RETRY, a->rnr_retry <= 7},
        {QPA_MIN_RNR_TIMER, a->min_rnr_timer <= 31},
        {QPA_DEST_QPN, a->dest_qpn <= PSN_MASK},
        {QPA_PORT, a->port == 1},
        {QPA_ALT_PATH, a->alt_timeout <= 31},
        {QPA_PATH_MIG_STATE, a->mig_state == MIG_MIGRATED || a->mig_state == MIG_REARM},
        {QPA_ACCESS_FLAGS, !(a->access & ~ACCESS_REMOTE)},
        {QPA_RQ_PSN, a->rq_psn <= PSN_MASK},
        {QPA_SQ_PSN, a->sq_psn <= PSN_MASK},
    };

    for (unsigned i = 0; i < ARRAY_LEN(values); i++)
        if (mask & values[i].bit && !values[i].ok)
            return false;
    return true;
}

static void take_values(struct qp *qp, const struct qp_attr *a, uint32_t mask)
{
#define TAKE(bit, member)                                                                                              \
    if (mask & (bit))                                                                                                  \
    qp->attr.member = a->member
    TAKE(QPA_ACCESS_FLAGS, access);
    TAKE(QPA_PKEY_INDEX, pkey);
    TAKE(QPA_PORT, port);
    TAKE(QPA_QKEY, qkey);
    TAKE(QPA_AV, av);
    TAKE(QPA_PATH_MTU, path_mtu);
    TAKE(QPA_TIMEOUT, timeout);
    TAKE(QPA_RETRY_CNT, retry_cnt);
    TAKE(QPA_RNR_RETRY, rnr_retry);
    TAKE(QPA_RQ_PSN, rq_psn);
    TAKE(QPA_SQ_PSN, sq_psn);
    TAKE(QPA_MAX_QP_RD_ATOMIC, max_rd_atomic);
    TAKE(QPA_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
    TAKE(QPA_MIN_RNR_TIMER, min_rnr_timer);
    TAKE(QPA_DEST_QPN, dest_qpn);
    TAKE(QPA_ALT_PATH, alt_av);
    TAKE(QPA_ALT_PATH, alt_pkey);
    TAKE(QPA_ALT_PATH, alt_timeout);
#undef TAKE
    qp->attr_set |= mask;
}

static void responder_start(struct qp *qp)
{
    struct rsp_params p = {
        .service = (uint8_t)qp_service((enum qp_type)qp->type),
        .access = qp->attr.access,
        .max_rd = qp->attr.max_dest_rd_atomic,
        .rnr_timer = qp->attr.min_rnr_timer,
        .credits = qp->opt.credits_rx && qp->type == QPT_RC,
        .rxe = qp->opt.rxe,
        .pmtu = qp->type == QPT_UD ? qp->opt.port_mtu : qp->attr.path_mtu,
        .psn = qp->attr.rq_psn,
        .qkey = qp->attr.qkey,
    };
    struct req_msg *msgs = (struct req_msg *)(qp + 1);

    rsp_init(&qp->rsp, &p, (struct rsp_res *)(msgs + qp->n_msg), qp->n_res);
}

static void requester_start(struct qp *qp)
{
    struct req_params p = {
        .service = (uint8_t)qp_service((enum qp_type)qp->type),
        .timeout = qp->attr.timeout,
        .retry_cnt = qp->attr.retry_cnt,
        .rnr_retry = qp->attr.rnr_retry,
        .max_rd = qp->attr.max_rd_atomic,
        .credits = qp->opt.credits_tx && qp->type == QPT_RC,
        .rxe = qp->opt.rxe,
        .selective = qp->opt.selective,
        .pmtu = qp->type == QPT_UD ? qp->opt.port_mtu : qp->attr.path_mtu,
        .psn = qp->attr.sq_psn,
    };

    req_init(&qp->req, &p, (struct req_msg *)(qp + 1), qp->n_msg);
}

/* Apply attributes that may change while the queue pair runs. */
static void refresh(struct qp *qp)
{
    qp->rsp.p.access = qp->attr.access;
    qp->rsp.p.qkey = qp->attr.qkey;
    qp->rsp.p.rnr_timer = qp->attr.min_rnr_timer;
    qp->rsp.p.max_rd = qp->attr.max_dest_rd_atomic;
    qp->req.p.timeout = qp->attr.timeout;
    qp->req.p.retry_cnt = qp->attr.retry_cnt;
    qp->req.p.rnr_retry = qp->attr.rnr_retry;
    qp->req.p.max_rd = qp->attr.max_rd_atomic;
}

void qp_migrate(struct qp *qp)
{
    struct qp_attr *a = &qp->attr;

    a->av = a->alt_av;
    a->pkey = a->alt_pkey;
    a->timeout = a->alt_timeout;
    a->mig_state = MIG_MIGRATED;
    qp->attr_set &= ~(uint32_t)QPA_ALT_PATH;
    refresh(qp);
}

/* Rearm, or migrate by software: from Armed only. */
static void set_migration(struct qp *qp, enum mig_state to)
{
    if (to == MIG_MIGRATED && qp->attr.mig_state == MIG_ARMED)
        qp_migrate(qp);
    qp->attr.mig_state = (uint8_t)to;
}

int qp_modify(struct qp *qp, const struct qp_attr *attr, uint32_t mask)
{
    enum qp_state to = mask & QPA_STATE ? (enum qp_state)attr->state : (enum qp_state)qp->state;
    uint32_t required, optional, given = mask & ~(uint32_t)QPA_STATE;
    uint8_t from = qp->state;

    if (to > QPS_ERR || (mask & QPA_CUR_STATE && attr->cur_state != from))
        return -EINVAL;
    if (!qp_transition((enum qp_type)qp->type, (enum qp_state)from, to, &required, &optional))
        return -EINVAL;
    if ((given & required) != required || given & ~(required | optional) || !values_ok(attr, mask))
        return -EINVAL;
    if (mask & QPA_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > qp->n_res)
        return -EINVAL;
    if (mask & QPA_PATH_MIG_STATE && attr->mig_state == MIG_REARM && !((qp->attr_set | mask) & QPA_ALT_PATH))
        return -EINVAL;
    take_values(qp, attr, given);
    qp->state = (uint8_t)to;
    if (mask & QPA_PATH_MIG_STATE)
        set_migration(qp, (enum mig_state)attr->mig_state);
    if (to == QPS_RESET) {
        memset(&qp->attr, 0, sizeof qp->attr);
        memset(&qp->req, 0, sizeof qp->req);
        memset(&qp->rsp, 0, sizeof qp->rsp);
        qp->attr_set = 0;
    } else if (from == QPS_INIT && to == QPS_RTR) {
        responder_start(qp);
    } else if (from == QPS_RTR && to == QPS_RTS) {
        requester_start(qp);
    }
    if (to >= QPS_RTR && to <= QPS_SQE)
        refresh(qp);
    qp->attr.state = qp->state;
    return 0;
}

void qp_error(struct qp *qp)
{
    qp->state = QPS_ERR;
    qp->attr.state = QPS_ERR;
}
