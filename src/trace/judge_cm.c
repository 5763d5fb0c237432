/* layer 3 (trace): the judge: rules about communication management. */
#include "dissect/cm.h"
#include "dissect/icrc.h"
#include "src/trace/judge_impl.h"

#define COPY_WITHIN (10 * NS_PER_MS) /* a message again this soon is a copy made on the way */

static void found(struct judge *j, const struct pkt *p, enum rule rule, uint32_t cause, const char *expected, const char *seen, const char *text)
{
    judge_found(j, p,
                (struct found){.rule = rule, .severity = rule_table[rule].severity, .flow = FLOW_NONE, .has = N_CM | N_RSP | N_START, .cause = cause,
                               .expected = expected, .seen = seen, .text = text});
}

/* --- States ------------------------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, const struct conn_addr *a)
{
    uint64_t v[2];

    memcpy(v, a->b, 16);
    for (unsigned i = 0; i < 2; i++)
        h = (h ^ v[i]) * UINT64_C(0x9e3779b97f4a7c15), h ^= h >> 31;
    return h;
}

static uint64_t key_of(const struct pkt *p, const struct conn_addr *active, const struct conn_addr *passive, uint32_t id)
{
    uint64_t h = mix(mix(conn_tap_of(p->frame), active), passive);

    return (h ^ id) * UINT64_C(0x9e3779b97f4a7c15) | 1;
}

static struct cm_state *state_find(struct judge *j, uint64_t key)
{
    struct cm_state *s = &j->cm[key >> 54];

    return s->key == key ? s : NULL;
}

/* The exchange that a message belongs to, and whether the active side sent it; NULL if its REQ was not seen. */
static struct cm_state *state_of(struct judge *j, const struct pkt *p, uint32_t local, uint32_t remote, bool *from_active)
{
    struct conn_addr src, dst;
    struct cm_state *s;

    conn_addr_of(p, &src, &dst);
    s = state_find(j, key_of(p, &src, &dst, local));
    *from_active = s != NULL;
    return s ? s : state_find(j, key_of(p, &dst, &src, remote));
}

/* --- Messages ----------------------------------------------------------------------------------------------------------------- */

static void check_mad(struct judge *j, const struct pkt *p, const struct mad *m)
{
    if (p->payload_len != MAD_LEN)
        found(j, p, RULE_CM_02, 0, "a MAD of 256 bytes", say(j, "%u", p->payload_len), "Every MAD is 256 bytes long.");
    else if (m->base_version != 1 || m->class_version != CM_CLASS_VERSION || m->method != CM_METHOD_SEND)
        found(j, p, RULE_CM_02, 0, "base version 1, class version 2, method 3",
              say(j, "%u, %u, %u", m->base_version, m->class_version, m->method), "The receiver does not understand the message.");
}

/* An address of the REQ against that in the packet. */
static bool gid_fits(const uint8_t *gid, const struct conn_addr *a)
{
    return memcmp(gid, a->b, 16) == 0;
}

static void check_ip_header(struct judge *j, const struct pkt *p, const struct cm_req *m, const struct conn_addr *src, const struct conn_addr *dst)
{
    const uint8_t *q = m->private_data;
    unsigned version = q[1] >> 4, skip = version == 4 ? 12 : 0;

    if (!cm_service_is_ip(m->service_id))
        return;
    if (q[0] || (version != 4 && version != 6))
        found(j, p, RULE_CM_16, 0, "version 0.0, IPv4 or IPv6", say(j, "version %u.%u, IPv%u", q[0] >> 4, q[0] & 15, version),
              "The passive side cannot read the header of the RDMA-CM service and rejects the REQ.");
    else if (p->encap == ENCAP_ROCEV2 && (memcmp(q + 4 + skip, src->b + skip, 16 - skip) || memcmp(q + 20 + skip, dst->b + skip, 16 - skip)))
        found(j, p, RULE_CM_16, 0, "the addresses of the packet", "others", "The header of the RDMA-CM service names other addresses than those that the packet travels between.");
}

static void req_again(struct judge *j, const struct pkt *p, const struct cm_msg *m, struct cm_state *s, uint32_t sum)
{
    ns_t since = p->frame->ts - s->req_ts;

    if (since < COPY_WITHIN && sum == s->req_sum)
        return;
    if (sum != s->req_sum)
        found(j, p, m->mad.tid != s->req_tid ? RULE_CM_02 : RULE_CM_03, s->req_frame, "the REQ of the first time", "another one",
              "A message that is sent again is the same message.");
    else if (since < s->timeout && s->req_copies)
        found(j, p, RULE_CM_03, s->req_frame, say(j, "a wait of %.0f ms", (double)s->timeout / 1e6), say(j, "%.0f ms", (double)since / 1e6),
              "The passive side was not given the time to answer that the REQ grants it.");
    if (++s->req_copies > s->max_retries + 1)
        found(j, p, RULE_CM_03, s->req_frame, say(j, "at most %u retries", s->max_retries), say(j, "%u", s->req_copies - 1),
              "The REQ itself says how often it may be sent again.");
    s->req_ts = p->frame->ts;
}

static void take_req(struct judge *j, const struct pkt *p, const struct cm_msg *m)
{
    const struct cm_req *r = &m->req;
    uint32_t sum = icrc_update(0, p->data + p->payload_off, MAD_LEN);
    struct conn_addr src, dst;
    struct cm_state *s;
    uint64_t key;

    conn_addr_of(p, &src, &dst);
    key = key_of(p, &src, &dst, r->local_id);
    s = state_find(j, key);
    if (s && !(s->seen & (CM_SEEN_REJ | CM_SEEN_DREQ | CM_SEEN_DREP))) {
        req_again(j, p, m, s, sum);
        return;
    }
    j->cm[key >> 54] = (struct cm_state){.key = key, .seen = CM_SEEN_REQ, .req_copies = 1, .max_retries = r->max_retries, .resp_res = r->resp_res,
                                         .file = p->frame->file, .req_frame = frame_u32(p), .req_qpn = r->qpn, .req_ts = p->frame->ts,
                                         .timeout = cm_time(r->remote_timeout), .req_sum = sum, .req_tid = m->mad.tid};
    if (p->encap == ENCAP_ROCEV2 && (!gid_fits(r->prim_lgid, &src) || !gid_fits(r->prim_rgid, &dst)))
        found(j, p, RULE_CM_17, 0, "the addresses of the packet as GIDs", "others", "The passive side answers to the GID that the REQ names, which may lead elsewhere, or rejects it.");
    check_ip_header(j, p, r, &src, &dst);
}

static void take_rep(struct judge *j, const struct pkt *p, const struct cm_rep *r)
{
    bool from_active;
    struct cm_state *s = state_of(j, p, r->local_id, r->remote_id, &from_active);

    if (!s || from_active)
        return;
    s->seen |= CM_SEEN_REP;
    s->rep_qpn = r->qpn;
    if (r->init_depth > s->resp_res)
        found(j, p, RULE_CM_09, s->req_frame, say(j, "an initiator depth of at most %u", s->resp_res), say(j, "%u", r->init_depth),
              "The passive side announces that it will have more READs and atomics outstanding than the active side serves.");
}

static void take_rej(struct judge *j, const struct pkt *p, const struct cm_rej *r)
{
    bool from_active;
    struct cm_state *s = state_of(j, p, r->local_id, r->remote_id, &from_active);

    if (s)
        s->seen |= CM_SEEN_REJ;
    if (!cm_rej_reason_str(r->reason))
        found(j, p, RULE_CM_05, 0, "a defined reason", say(j, "%u", r->reason), "Its receiver cannot tell why the connection was refused.");
    else if (p->encap == ENCAP_ROCEV2 && (r->reason == CM_REJ_INVALID_LID || r->reason == CM_REJ_INVALID_ALT_LID))
        found(j, p, RULE_CM_05, 0, "another reason", say(j, "%u, %s", r->reason, cm_rej_reason_str(r->reason)), "There are no LIDs on RoCE.");
}

/* A DREQ or DREP: its sender sends no further requests. */
static void take_close(struct judge *j, const struct pkt *p, uint32_t local, uint32_t remote, bool drep)
{
    bool from_active;
    struct cm_state *s = state_of(j, p, local, remote, &from_active);
    struct conn_addr src, dst;
    uint32_t flow;

    if (!s)
        return;
    s->seen |= drep ? CM_SEEN_DREP : CM_SEEN_DREQ;
    if (drep)
        s->drep_frame = frame_u32(p);
    if (!(s->seen & CM_SEEN_REP))
        return;
    conn_addr_of(p, &src, &dst);
    flow = conn_flow_named(j->conns, conn_tap_of(p->frame), &src, &dst, from_active ? s->rep_qpn : s->req_qpn);
    if (flow == FLOW_NONE || j->flows[flow].closed)
        return;
    j->flows[flow].closed = true;
    j->flows[flow].closed_frame = frame_u32(p);
}

static void take_rtu(struct judge *j, const struct pkt *p, const struct cm_rtu *r)
{
    bool from_active;
    struct cm_state *s = state_of(j, p, r->local_id, r->remote_id, &from_active);

    if (!s || !from_active)
        return;
    s->seen |= CM_SEEN_RTU;
    s->rtu_frame = frame_u32(p);
}

static void take_sidr_rep(struct judge *j, const struct pkt *p, const struct cm_sidr_rep *r)
{
    struct conn_addr src, dst;
    struct ud_dest *d;

    if (r->status != CM_SIDR_SUCCESS)
        return;
    conn_addr_of(p, &src, &dst);
    d = ud_dest(j, conn_tap_of(p->frame), &src, r->qpn);
    d->have = d->from_sidr = true;
    d->qkey = r->qkey;
    d->frame = frame_u32(p);
}

void judge_cm(struct judge *j, const struct pkt *p)
{
    struct cm_msg m;

    if (p->payload_cap < MAD_HDR_LEN)
        return;
    mad_get(&m.mad, p->data + p->payload_off);
    if (m.mad.mgmt_class != CM_CLASS)
        return;
    check_mad(j, p, &m.mad);
    if (!cm_msg_of(&m, p))
        return;
    switch (m.mad.attr_id) {
    case CM_REQ:
        take_req(j, p, &m);
        break;
    case CM_REP:
        take_rep(j, p, &m.rep);
        break;
    case CM_REJ:
        take_rej(j, p, &m.rej);
        break;
    case CM_RTU:
        take_rtu(j, p, &m.rtu);
        break;
    case CM_DREQ:
        take_close(j, p, m.dreq.local_id, m.dreq.remote_id, false);
        break;
    case CM_DREP:
        take_close(j, p, m.drep.local_id, m.drep.remote_id, true);
        break;
    case CM_SIDR_REP:
        take_sidr_rep(j, p, &m.sidr_rep);
        break;
    default:
        break;
    }
}

/* An answer without what it answers: at the end, as the order of two frames may have been swapped. */
static void check_unasked(struct judge *j, const struct cm_state *s, unsigned answer, unsigned asked, uint32_t frame, const char *expected, const char *seen)
{
    if (!(s->seen & answer) || s->seen & (asked | CM_SEEN_REJ))
        return;
    j->file = s->file;
    judge_found(j, NULL,
                (struct found){.rule = RULE_CM_01, .severity = SEV_E, .flow = FLOW_NONE, .has = N_RSP | N_START, .needs = N_COMPLETE, .frame = frame,
                               .cause = s->req_frame, .expected = expected, .seen = seen,
                               .text = "The message answers another one, which was never sent."});
}

void judge_cm_end(struct judge *j)
{
    for (unsigned i = 0; i < CM_STATES; i++) {
        const struct cm_state *s = &j->cm[i];
        if (!s->key)
            continue;
        check_unasked(j, s, CM_SEEN_RTU, CM_SEEN_REP, s->rtu_frame, "a REP first", "RTU");
        check_unasked(j, s, CM_SEEN_DREP, CM_SEEN_DREQ, s->drep_frame, "a DREQ first", "DREP");
    }
}
