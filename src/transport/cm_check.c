/* layer 2 (transport): Communication Management: messages permitted in a state, the connection of a message, checks. */
#include "src/transport/cm_impl.h"

#include "dissect/pkt.h"

/* --- States and messages ---------------------------------------------------------------------- */

#define ROW(...)                                                                                                       \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define M(attr) [attr - CM_REQ]

/* All others are not permitted. Which side may receive a message at all is checked before. */
static const uint8_t acts[CM_ST_COUNT][CM_APR - CM_REQ + 1] = {
    [CM_ST_IDLE] = ROW(M(CM_REQ) = CM_ACT_REQ, M(CM_SIDR_REQ) = CM_ACT_SIDR_REQ),
    [CM_ST_REQ_SENT] = ROW(M(CM_REP) = CM_ACT_REP, M(CM_MRA) = CM_ACT_MRA, M(CM_REJ) = CM_ACT_REJ),
    [CM_ST_MRA_REQ_RCVD] = ROW(M(CM_REP) = CM_ACT_REP, M(CM_MRA) = CM_ACT_MRA, M(CM_REJ) = CM_ACT_REJ),
    [CM_ST_REP_RCVD] = ROW(M(CM_REP) = CM_ACT_IGNORE, M(CM_MRA) = CM_ACT_IGNORE, M(CM_REJ) = CM_ACT_REJ),
    [CM_ST_MRA_REP_SENT] = ROW(M(CM_REP) = CM_ACT_REPEAT, M(CM_MRA) = CM_ACT_IGNORE, M(CM_REJ) = CM_ACT_REJ),
    [CM_ST_REQ_RCVD] = ROW(M(CM_REQ) = CM_ACT_IGNORE, M(CM_REJ) = CM_ACT_REJ),
    [CM_ST_MRA_REQ_SENT] = ROW(M(CM_REQ) = CM_ACT_REPEAT, M(CM_REJ) = CM_ACT_REJ),
    [CM_ST_REP_SENT] = ROW(M(CM_REQ) = CM_ACT_REPEAT, M(CM_RTU) = CM_ACT_RTU, M(CM_MRA) = CM_ACT_MRA,
                           M(CM_REJ) = CM_ACT_REJ, M(CM_DREQ) = CM_ACT_DREQ),
    [CM_ST_MRA_REP_RCVD] = ROW(M(CM_REQ) = CM_ACT_IGNORE, M(CM_RTU) = CM_ACT_RTU, M(CM_MRA) = CM_ACT_MRA,
                               M(CM_REJ) = CM_ACT_REJ, M(CM_DREQ) = CM_ACT_DREQ),
    [CM_ST_ESTABLISHED] =
        ROW(M(CM_REQ) = CM_ACT_IGNORE, M(CM_REP) = CM_ACT_RTU_AGAIN, M(CM_RTU) = CM_ACT_IGNORE, M(CM_MRA) = CM_ACT_MRA,
            M(CM_REJ) = CM_ACT_REJ, M(CM_DREQ) = CM_ACT_DREQ, M(CM_LAP) = CM_ACT_LAP, M(CM_APR) = CM_ACT_APR),
    [CM_ST_DREQ_SENT] = ROW(M(CM_REQ) = CM_ACT_IGNORE, M(CM_REP) = CM_ACT_IGNORE, M(CM_RTU) = CM_ACT_IGNORE,
                            M(CM_MRA) = CM_ACT_IGNORE, M(CM_REJ) = CM_ACT_REJ, M(CM_DREQ) = CM_ACT_DREQ,
                            M(CM_DREP) = CM_ACT_DREP, M(CM_LAP) = CM_ACT_IGNORE, M(CM_APR) = CM_ACT_IGNORE),
    [CM_ST_TIMEWAIT] = ROW(M(CM_REQ) = CM_ACT_STALE, M(CM_REP) = CM_ACT_IGNORE, M(CM_RTU) = CM_ACT_IGNORE,
                           M(CM_MRA) = CM_ACT_IGNORE, M(CM_REJ) = CM_ACT_IGNORE, M(CM_DREQ) = CM_ACT_DREP_AGAIN,
                           M(CM_DREP) = CM_ACT_IGNORE, M(CM_LAP) = CM_ACT_IGNORE, M(CM_APR) = CM_ACT_IGNORE),
    [CM_ST_SIDR_REQ_SENT] = ROW(M(CM_SIDR_REP) = CM_ACT_SIDR_REP),
    [CM_ST_SIDR_REQ_RCVD] = ROW(M(CM_SIDR_REQ) = CM_ACT_IGNORE),
    [CM_ST_CLOSED] = ROW(M(CM_REQ) = CM_ACT_REJ_AGAIN, M(CM_REP) = CM_ACT_REJ_AGAIN, M(CM_RTU) = CM_ACT_IGNORE,
                         M(CM_MRA) = CM_ACT_IGNORE, M(CM_REJ) = CM_ACT_IGNORE, M(CM_DREQ) = CM_ACT_DREP_AGAIN,
                         M(CM_DREP) = CM_ACT_IGNORE, M(CM_SIDR_REQ) = CM_ACT_SIDR_REP_AGAIN,
                         M(CM_SIDR_REP) = CM_ACT_IGNORE, M(CM_LAP) = CM_ACT_IGNORE, M(CM_APR) = CM_ACT_IGNORE),
};

enum cm_act cm_act_of(const struct cm_conn *c, const struct cm_msg *m)
{
    unsigned attr = m->mad.attr_id;

    return attr < CM_REQ || attr > CM_APR ? CM_ACT_BAD : (enum cm_act)acts[c->state][attr - CM_REQ];
}

/* Which side may receive a message: the passive (0), the active (1), either (2). */
static unsigned side_of(unsigned attr)
{
    switch (attr) {
    case CM_REQ:
    case CM_RTU:
    case CM_SIDR_REQ:
        return 0;
    case CM_REP:
    case CM_SIDR_REP:
        return 1;
    default:
        return 2;
    }
}

/* Is a message with this attribute id permitted at the active (else the passive) side in state `s`? */
static struct verdict order_check(enum cm_state s, bool active, unsigned attr)
{
    unsigned side = side_of(attr);

    if (s != CM_ST_IDLE && side != 2 && side != active)
        return verdict_fail(RULE_CM_01, CM_WRONG_SIDE, 0, attr);
    if (attr < CM_REQ || attr > CM_APR || acts[s][attr - CM_REQ] == CM_ACT_BAD)
        return verdict_fail(RULE_CM_01, CM_MISPLACED, 0, attr);
    return verdict_pass();
}

struct verdict cm_late_rej(void)
{
    return verdict_fail(RULE_CM_01, CM_LATE_REJ, 0, CM_REJ);
}

uint64_t cm_msg_hash(const struct cm_msg *m)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    uint8_t bytes[MAD_LEN];

    cm_msg_encode(bytes, m);
    for (unsigned i = 0; i < sizeof bytes; i++)
        h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* A REJ (timeout) from a peer that never learnt this side's id names the request by the peer's own id and CA GUID. */
static bool rejects_by_guid(const struct cm_conn *c, const struct cm_msg *m)
{
    const struct cm_rej *r = &m->rej;
    bool names_guid = m->mad.attr_id == CM_REJ && r->reason == CM_REJ_TIMEOUT && r->remote_id == 0 && r->info_len >= 8;

    return names_guid && !c->active && r->local_id == c->remote_id && load_be64(r->info) == c->peer.ca_guid;
}

struct verdict cm_ids_check(const struct cm_msg *m, uint32_t local, uint32_t remote)
{
    uint32_t sender, receiver;

    cm_msg_ids(m, &sender, &receiver);
    if (receiver != remote)
        return verdict_fail(RULE_CM_01, "remote comm id", remote, receiver);
    if (local && sender != local && !(m->mad.attr_id == CM_REJ && sender == 0))
        return verdict_fail(RULE_CM_01, "local comm id", local, sender);
    return verdict_pass();
}

static struct verdict ids_check(const struct cm_conn *c, const struct cm_msg *m)
{
    uint32_t sender;

    switch (m->mad.attr_id) {
    case CM_REQ:
        if (c->state != CM_ST_IDLE && m->req.local_id != c->remote_id)
            return verdict_fail(RULE_CM_01, "local comm id", c->remote_id, m->req.local_id);
        return verdict_pass();
    case CM_SIDR_REQ:
    case CM_SIDR_REP:
        sender = m->mad.attr_id == CM_SIDR_REQ ? c->remote_id : c->local_id;
        if (c->state != CM_ST_IDLE && m->sidr_req.request_id != sender)
            return verdict_fail(RULE_CM_01, "request id", sender, m->sidr_req.request_id);
        return verdict_pass();
    default:
        return rejects_by_guid(c, m) ? verdict_pass() : cm_ids_check(m, c->remote_id, c->local_id);
    }
}

unsigned cm_msg_differs(const struct cm_msg *a, const struct cm_msg *b)
{
    uint32_t len = (uint32_t)cm_msg_captured(a->cut > b->cut ? a : b);
    uint8_t x[MAD_LEN], y[MAD_LEN];
    unsigned bit = 0;

    cm_msg_encode(x, a);
    cm_msg_encode(y, b);
    cm_clear_halves(x + MAD_HDR_LEN, a->mad.attr_id, len);
    cm_clear_halves(y + MAD_HDR_LEN, a->mad.attr_id, len);
    if (memcmp(x, y, MAD_HDR_LEN + len) == 0)
        return MAD_LEN * 8;
    while (bits_get(x, bit, 1) == bits_get(y, bit, 1))
        bit++;
    return bit;
}

bool cm_msg_same(const struct cm_msg *a, const struct cm_msg *b)
{
    return cm_msg_differs(a, b) == MAD_LEN * 8;
}

/* Compare a retransmission with the first copy: transaction id, content, number of copies. */
static struct verdict same_check(const struct cm_msg *m, uint64_t tid, bool same, unsigned copies, unsigned max_retries)
{
    if (m->mad.tid != tid)
        return verdict_fail(RULE_CM_02, "transaction id", tid, m->mad.tid);
    if (!same)
        return verdict_fail(RULE_CM_03, CM_COPY_DIFFERS, 0, 0);
    if (copies > max_retries + 1)
        return verdict_fail(RULE_CM_03, "copies", max_retries + 1, copies);
    return verdict_pass();
}

/* A retransmitted REQ or REP must be identical. The limit on REPs is set by the active side itself: no check. */
static struct verdict copy_check(const struct cm_conn *c, const struct cm_msg *m)
{
    if (m->mad.attr_id != (c->active ? CM_REP : CM_REQ) || c->copies == 0)
        return verdict_pass();
    return same_check(m, c->tid, cm_msg_hash(m) == c->rx_hash, c->copies + 1u,
                      c->active ? UINT8_MAX : c->peer.max_retries);
}

struct verdict cm_rep_check(const struct cm_msg *m, uint64_t tid, unsigned resp_res)
{
    if (m->mad.tid != tid)
        return verdict_fail(RULE_CM_02, "transaction id", tid, m->mad.tid);
    if (m->rep.init_depth > resp_res)
        return verdict_fail(RULE_CM_09, "initiator depth", resp_res, m->rep.init_depth);
    return verdict_pass();
}

bool cm_rep_is_of_other(const struct cm_msg *m, uint64_t tid, bool over, uint32_t passive_id)
{
    return m->mad.attr_id == CM_REP && m->mad.tid != tid && (over || (passive_id && m->rep.local_id != passive_id));
}

struct verdict cm_qpn_check(const struct cm_msg *m, uint32_t qpn)
{
    if (m->mad.attr_id == CM_DREQ && CM_HAS(m, dreq, remote_qpn) && m->dreq.remote_qpn != qpn)
        return verdict_fail(RULE_CM_07, "remote QPN", qpn, m->dreq.remote_qpn);
    if (m->mad.attr_id == CM_LAP && CM_HAS(m, lap, remote_qpn) && m->lap.remote_qpn != qpn)
        return verdict_fail(RULE_CM_07, "remote QPN", qpn, m->lap.remote_qpn);
    return verdict_pass();
}

struct verdict cm_rx_check(const struct cm_conn *c, const struct cm_msg *m)
{
    struct verdict v = cm_msg_check(m, NULL), w;

    if (v.rule == RULE_CM_02)
        return v;
    w = order_check((enum cm_state)c->state, c->active, m->mad.attr_id);
    if (verdict_ok(w))
        w = ids_check(c, m);
    if (verdict_ok(w) && m->mad.attr_id == CM_DREQ) /* a LAP is declined */
        w = cm_qpn_check(m, c->own.qpn);
    if (verdict_ok(w))
        w = copy_check(c, m);
    if (verdict_ok(w) && m->mad.attr_id == CM_REP)
        w = cm_rep_check(m, c->tid, c->own.resp_res);
    return verdict_ok(w) ? v : w;
}

/* --- One message alone ------------------------------------------------------------------------ */

#define CLASS_PORT_INFO 1 /* an attribute of every class, read by Get and Set */

static struct verdict header_check(const struct cm_msg *m, const struct cm_wire *w)
{
    const struct mad *h = &m->mad;

    if (h->base_version != 1)
        return verdict_fail(RULE_CM_02, "base version", 1, h->base_version);
    if (h->mgmt_class != CM_CLASS)
        return verdict_fail(RULE_CM_02, "class", CM_CLASS, h->mgmt_class);
    if (h->class_version != CM_CLASS_VERSION)
        return verdict_fail(RULE_CM_02, "class version", CM_CLASS_VERSION, h->class_version);
    if (h->attr_id != CLASS_PORT_INFO && !cm_attr_str(h->attr_id))
        return verdict_fail(RULE_CM_02, "attribute", 0, h->attr_id);
    if (h->attr_id != CLASS_PORT_INFO && h->method != CM_METHOD_SEND)
        return verdict_fail(RULE_CM_02, "method", CM_METHOD_SEND, h->method);
    if (h->attr_id != CLASS_PORT_INFO && h->status)
        return verdict_fail(RULE_CM_02, "MAD status", 0, h->status);
    if (w && w->mad_len != MAD_LEN)
        return verdict_fail(RULE_CM_02, "MAD bytes", MAD_LEN, w->mad_len);
    if (w && w->source_qpn != 1)
        return verdict_fail(RULE_CM_02, CM_SOURCE_QPN, 1, w->source_qpn);
    return verdict_pass();
}

/* True if a queue pair of a connection may have this number: 0 and 1 are those of management, 0xffffff is a group. */
static bool is_qpn(uint32_t qpn)
{
    return qpn > 1 && qpn != 0xffffff;
}

/* What a REQ or REP names has to exist. */
static struct verdict names_check(const struct cm_msg *m, const struct cm_wire *w)
{
    if (m->mad.attr_id == CM_REQ && CM_HAS(m, req, qpn) && !is_qpn(m->req.qpn))
        return verdict_fail(RULE_CM_18, "queue pair", 0, m->req.qpn);
    if (m->mad.attr_id == CM_REP && cm_has_rep_qpn(m) && !is_qpn(cm_rep_qpn(&m->rep)))
        return verdict_fail(RULE_CM_18, "queue pair", 0, cm_rep_qpn(&m->rep));
    if (m->mad.attr_id == CM_SIDR_REP && m->sidr_rep.status == CM_SIDR_SUCCESS && CM_HAS(m, sidr_rep, qpn) &&
        (m->sidr_rep.qpn == 0 || m->sidr_rep.qpn == 0xffffff)) /* a service may be that of QP 1 */
        return verdict_fail(RULE_CM_18, "queue pair", 0, m->sidr_rep.qpn);
    if (m->mad.attr_id == CM_REQ && w && w->roce && CM_HAS(m, req, mtu) && !cm_mtu_bytes(m->req.mtu))
        return verdict_fail(RULE_CM_18, "path MTU code", 0, m->req.mtu);
    return verdict_pass();
}

static struct verdict rej_check(const struct cm_msg *m, bool roce)
{
    const struct cm_rej *r = &m->rej;
    bool of_lid = r->reason == CM_REJ_INVALID_LID || r->reason == CM_REJ_INVALID_ALT_LID;

    if (CM_HAS(m, rej, reason) && (!cm_rej_reason_str(r->reason) || (roce && of_lid)))
        return verdict_fail(RULE_CM_05, "reason", 0, r->reason);
    if (r->info_len > sizeof r->info)
        return verdict_fail(RULE_CM_05, "bytes of additional information", sizeof r->info, r->info_len);
    return verdict_pass();
}

static struct verdict codes_check(const struct cm_msg *m, const struct cm_wire *w)
{
    bool roce = w && w->roce;

    if (m->mad.attr_id == CM_REJ)
        return rej_check(m, roce);
    if (m->mad.attr_id == CM_APR && CM_HAS(m, apr, status) &&
        (!cm_apr_status_str(m->apr.status) || (roce && m->apr.status == CM_APR_INVALID_LID)))
        return verdict_fail(RULE_CM_14, "status", 0, m->apr.status);
    if (m->mad.attr_id == CM_REP && CM_HAS(m, rep, failover) && m->rep.failover > CM_FAILOVER_REJECTED)
        return verdict_fail(RULE_CM_14, "failover code", 0, m->rep.failover);
    if (m->mad.attr_id == CM_SIDR_REP && !cm_sidr_status_str(m->sidr_rep.status))
        return verdict_fail(RULE_CM_15, "status", 0, m->sidr_rep.status);
    return verdict_pass();
}

/* The GID of a 16-byte address of the RDMA-CM header: IPv4 becomes IPv4-mapped. False if the 12 bytes before an IPv4
 * address are not zero. */
static bool ip_gid(uint8_t *gid, const uint8_t *addr, unsigned version)
{
    static const uint8_t zero[12];

    memcpy(gid, addr, 16);
    if (version != 4)
        return true;
    gid[10] = gid[11] = 0xff;
    return memcmp(addr, zero, sizeof zero) == 0;
}

static struct verdict gid_check(enum rule rule, const char *about, const uint8_t *want, const uint8_t *got)
{
    if (memcmp(want, got, 16) == 0)
        return verdict_pass();
    return verdict_fail(rule, about, load_be64(want + 8), load_be64(got + 8));
}

static struct verdict ip_check(const struct cm_ip *ip, const uint8_t *src, const uint8_t *dst)
{
    uint8_t s[16], d[16];
    struct verdict v;

    if (ip->major != 0 || ip->minor != 0)
        return verdict_fail(RULE_CM_16, "version", 0, (uint64_t)ip->major << 4 | ip->minor);
    if (ip->ip_version != 4 && ip->ip_version != 6)
        return verdict_fail(RULE_CM_16, "IP version", 4, ip->ip_version);
    if (!ip_gid(s, ip->src, ip->ip_version) || !ip_gid(d, ip->dst, ip->ip_version))
        return verdict_fail(RULE_CM_16, "bytes before an IPv4 address", 0, 1);
    if (!src)
        return verdict_pass();
    v = gid_check(RULE_CM_16, "source address", src, s);
    return verdict_ok(v) ? gid_check(RULE_CM_16, "destination address", dst, d) : v;
}

/* Check the RDMA-CM header of a REQ or SIDR_REQ whose service id requires one. */
static struct verdict service_check(const struct cm_msg *m, const struct cm_wire *w)
{
    bool req = m->mad.attr_id == CM_REQ, addr = w && w->roce && w->addr;
    struct cm_ip ip;

    if ((!req && m->mad.attr_id != CM_SIDR_REQ) || !cm_has_ip(m) ||
        !cm_service_is_ip(req ? m->req.service_id : m->sidr_req.service_id))
        return verdict_pass();
    cm_ip_get(&ip, req ? m->req.private_data : m->sidr_req.private_data);
    return ip_check(&ip, addr ? w->src : NULL, addr ? w->dst : NULL);
}

static struct verdict path_check(const struct cm_msg *m, const struct cm_wire *w)
{
    struct verdict v;

    if (m->mad.attr_id != CM_REQ || !w || !w->roce || !w->addr || !CM_HAS(m, req, prim_lgid))
        return verdict_pass();
    v = gid_check(RULE_CM_17, "primary local GID", w->src, m->req.prim_lgid);
    return verdict_ok(v) && CM_HAS(m, req, prim_rgid)
               ? gid_check(RULE_CM_17, "primary remote GID", w->dst, m->req.prim_rgid)
               : v;
}

struct verdict cm_msg_check_one(unsigned i, const struct cm_msg *m, const struct cm_wire *w)
{
    static struct verdict (*const checks[CM_MSG_CHECKS])(const struct cm_msg *, const struct cm_wire *) = {
        header_check, codes_check, service_check, path_check, names_check};

    return checks[i](m, w);
}

struct verdict cm_msg_check(const struct cm_msg *m, const struct cm_wire *w)
{
    struct verdict v = verdict_pass();

    for (unsigned i = 0; i < CM_MSG_CHECKS && verdict_ok(v); i++)
        v = cm_msg_check_one(i, m, w);
    return v;
}

/* An address of a packet as a GID. */
static void gid_of(uint8_t *gid, const uint8_t *addr, unsigned len)
{
    memset(gid, 0, 16);
    if (len == 4)
        gid[10] = gid[11] = 0xff;
    memcpy(gid + 16 - len, addr, len);
}

void cm_wire_of(struct cm_wire *w, const struct pkt *p)
{
    memset(w, 0, sizeof *w);
    w->roce = p->encap == ENCAP_ROCEV1 || p->encap == ENCAP_ROCEV2;
    w->mad_len = p->payload_len;
    w->source_qpn = p->have & H_DETH ? p->deth.srcqp : 0;
    w->addr = p->addr_len == 4 || p->addr_len == 16;
    if (w->addr) {
        gid_of(w->src, p->src, p->addr_len);
        gid_of(w->dst, p->dst, p->addr_len);
    }
}

struct verdict cm_retry_check(const struct cm_msg *first, const struct cm_msg *again, unsigned copies,
                              unsigned max_retries, unsigned timeout, ns_t gap)
{
    /* A mirror cuts all messages at one length: of two cut differently, the shorter one was damaged on its way. */
    bool alike = first->cut == again->cut;
    struct verdict v = same_check(again, alike ? first->mad.tid : again->mad.tid, !alike || cm_msg_same(first, again),
                                  copies, max_retries);

    if (verdict_ok(v) && gap < cm_time(timeout))
        return verdict_fail(RULE_CM_03, CM_COPY_EARLY, (uint64_t)cm_time(timeout), (uint64_t)gap);
    return v;
}

/* --- Both ends, as seen at a tap -------------------------------------------------------------- */

#define BIT(s) (1u << (s))

/* States that an end may enter without a message. */
static unsigned closure(unsigned may)
{
    if (may & BIT(CM_ST_MRA_REQ_RCVD))
        may |= BIT(CM_ST_REQ_SENT);
    if (may & BIT(CM_ST_MRA_REP_RCVD))
        may |= BIT(CM_ST_REP_SENT);
    if (may & BIT(CM_ST_REP_SENT))
        may |= BIT(CM_ST_ESTABLISHED); /* data arrived */
    if (may & BIT(CM_ST_DREQ_SENT))
        may |= BIT(CM_ST_TIMEWAIT);
    if (may & BIT(CM_ST_TIMEWAIT))
        may |= BIT(CM_ST_CLOSED);
    return may;
}

/* State transitions that a message causes at its sender and receiver. */
static const struct {
    uint16_t sender[2], receiver[2]; /* of the passive and of the active side */
} leads[CM_APR - CM_REQ + 1] = {
    M(CM_REQ) = {.sender = {0, BIT(CM_ST_REQ_SENT)}, .receiver = {BIT(CM_ST_REQ_RCVD), 0}},
    M(CM_MRA) = {.sender = {BIT(CM_ST_MRA_REQ_SENT), BIT(CM_ST_MRA_REP_SENT)},
                 .receiver = {BIT(CM_ST_MRA_REP_RCVD), BIT(CM_ST_MRA_REQ_RCVD)}},
    M(CM_REJ) = {.sender = {BIT(CM_ST_TIMEWAIT), BIT(CM_ST_TIMEWAIT)},
                 .receiver = {BIT(CM_ST_TIMEWAIT), BIT(CM_ST_TIMEWAIT)}},
    M(CM_REP) = {.sender = {BIT(CM_ST_REP_SENT), 0}, .receiver = {0, BIT(CM_ST_REP_RCVD) | BIT(CM_ST_ESTABLISHED)}},
    M(CM_RTU) = {.sender = {0, BIT(CM_ST_ESTABLISHED)}, .receiver = {BIT(CM_ST_ESTABLISHED), 0}},
    M(CM_DREQ) = {.sender = {BIT(CM_ST_DREQ_SENT), BIT(CM_ST_DREQ_SENT)},
                  .receiver = {BIT(CM_ST_TIMEWAIT), BIT(CM_ST_TIMEWAIT)}},
    M(CM_DREP) = {.sender = {BIT(CM_ST_TIMEWAIT), BIT(CM_ST_TIMEWAIT)},
                  .receiver = {BIT(CM_ST_TIMEWAIT), BIT(CM_ST_TIMEWAIT)}},
};

void cm_watch_start(struct cm_watch *w)
{
    w->may[1] = BIT(CM_ST_REQ_SENT);
    w->may[0] = BIT(CM_ST_IDLE) | BIT(CM_ST_REQ_RCVD);
}

struct verdict cm_watch_check(const struct cm_watch *w, const struct cm_msg *m, bool from_active)
{
    struct verdict v = verdict_pass();

    if (m->mad.attr_id == CM_LAP || m->mad.attr_id == CM_APR)
        return v;
    for (unsigned s = 0; s < CM_ST_COUNT; s++)
        if (w->may[!from_active] >> s & 1) {
            struct verdict one = order_check((enum cm_state)s, !from_active, m->mad.attr_id);
            if (verdict_ok(one))
                return one;
            if (s != CM_ST_IDLE)
                v = one;
        }
    return v;
}

void cm_watch_take(struct cm_watch *w, const struct cm_msg *m, bool from_active)
{
    unsigned attr = m->mad.attr_id;

    if (attr < CM_REQ || attr > CM_APR)
        return;
    w->may[from_active] |= (uint16_t)closure(leads[attr - CM_REQ].sender[from_active]);
    w->may[!from_active] |= (uint16_t)closure(leads[attr - CM_REQ].receiver[!from_active]);
}

/* --- Many connections ------------------------------------------------------------------------- */

/* True if a message is for connection `c`. */
static bool is_for(const struct cm_conn *c, const struct cm_msg *m)
{
    switch (m->mad.attr_id) {
    case CM_REQ:
        return !c->active && c->remote_id == m->req.local_id && c->peer.ca_guid == m->req.ca_guid &&
               (c->state != CM_ST_CLOSED || c->out.mad.attr_id == CM_REJ);
    case CM_SIDR_REQ:
        return !c->active && c->remote_id == m->sidr_req.request_id && c->peer.service_id == m->sidr_req.service_id &&
               c->tid == m->mad.tid;
    case CM_SIDR_REP:
        return c->active && c->local_id == m->sidr_rep.request_id;
    default:
        return c->local_id == m->rtu.remote_id || rejects_by_guid(c, m);
    }
}

static bool stale_for(const struct cm_conn *c, const struct cm_msg *m)
{
    return c->peer.qpn == m->req.qpn && c->peer.ca_guid == m->req.ca_guid && c->remote_id != m->req.local_id &&
           c->state != CM_ST_CLOSED && c->remote_id != 0;
}

enum cm_route cm_route(struct cm_conn *conns, unsigned n, const struct cm_msg *m, struct cm_conn **c)
{
    unsigned attr = m->mad.attr_id;

    *c = NULL;
    for (unsigned i = 0; i < n; i++)
        if (conns[i].state != CM_ST_IDLE && is_for(&conns[i], m)) {
            *c = &conns[i];
            return CM_ROUTE_CONN;
        }
    if (attr != CM_REQ)
        return attr == CM_SIDR_REQ ? CM_ROUTE_NEW : CM_ROUTE_STRAY;
    for (unsigned i = 0; i < n; i++)
        if (conns[i].state != CM_ST_IDLE && stale_for(&conns[i], m)) {
            *c = &conns[i];
            return CM_ROUTE_STALE;
        }
    return CM_ROUTE_NEW;
}

unsigned cm_refusal(const struct cm_conn *c, const struct cm_params *listener)
{
    const struct cm_params *p = &c->peer;
    uint8_t dst[16];

    if (p->service_id != listener->service_id)
        return CM_REJ_INVALID_SERVICE_ID;
    if (memcmp(p->path.dgid, listener->path.sgid, 16) != 0 || (p->pkey & 0x7fff) != (listener->pkey & 0x7fff))
        return CM_REJ_INVALID_GID;
    if (p->transport != listener->transport || p->ext_transport != listener->ext_transport)
        return CM_REJ_CONSUMER_DEFINED;
    if (p->has_ip && (!verdict_ok(ip_check(&p->ip, NULL, NULL)) || !ip_gid(dst, p->ip.dst, p->ip.ip_version) ||
                      memcmp(dst, listener->path.sgid, 16) != 0))
        return CM_REJ_CONSUMER_DEFINED;
    if (cm_mtu_bytes(p->mtu) == 0 || (listener->mtu && p->mtu > listener->mtu))
        return CM_REJ_INVALID_MTU;
    return 0;
}

bool cm_is_ignored(struct verdict v)
{
    return v.rule == RULE_CM_01 || v.rule == RULE_CM_02 || v.rule == RULE_CM_07;
}
