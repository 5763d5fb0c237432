/* layer 3 (judge): messages of connection management that are sent again, and the transaction ids of answers. */
#include "src/judge/cm/cm.h"

#define ALL_COPIES_WITHIN (COPY_WITHIN + DUPLICATE_WITHIN) /* and each copy may be captured twice */

bool cm_tap_at_sender(const struct judge *j, const struct cm_packet *c)
{
    const struct conn_addr *end[2] = {c->from_active ? &c->src : &c->dst, c->from_active ? &c->dst : &c->src};
    enum tap_side side = judge_side_of(j, conn_tap_of(c->p->frame), end);

    return side == (c->from_active ? TAP_REQUESTER : TAP_RESPONDER);
}

void cm_first_copy(struct cm_copies *o, const struct cm_packet *c)
{
    const uint32_t frame = frame_u32(c->p);

    *o = (struct cm_copies){.m = *c->m,
                            .tid = c->m->mad.tid,
                            .ts = c->p->frame->ts,
                            .frame = frame,
                            .m_frame = frame,
                            .copies = 1,
                            .ttl = c->p->ttl};
}

void cm_check_copy(struct judge *j, struct cm_copies *o, const struct cm_packet *c)
{
    const struct cm_req *req = &c->s->req.m.req;
    unsigned max_retries = CM_HAS(&c->s->req.m, req, max_retries) ? req->max_retries : UINT8_MAX;
    ns_t gap = c->p->frame->ts - o->ts,
         tolerance = judge_step(j, c->p) + (j->o.profile == PROFILE_RXE ? 4 * NS_PER_MS : CLOCK_SLACK);
    struct verdict v;
    struct found f;

    if (!o->copies) {
        cm_first_copy(o, c);
        return;
    }
    o->tid = c->m->mad.tid;
    if (gap <= ALL_COPIES_WITHIN && cm_msg_same(c->m, &o->m))
        return;
    bool answers = c->m->mad.attr_id == CM_REP && (c->s->req_retransmitted || o->copies == 1);
    if (answers)
        gap = INT64_MAX / 2; /* one copy may answer a duplicate REQ: then no timer was involved */
    if (!answers || !c->s->req_retransmitted)
        o->copies += o->copies < UINT8_MAX;
    v = cm_retry_check(&o->m, c->m, o->copies, max_retries, c->from_active ? req->remote_timeout : req->local_timeout,
                       gap + tolerance);
    o->ts = c->p->frame->ts;
    if (!verdict_ok(v) && strcmp(v.about, CM_COPY_DIFFERS) == 0)
        cm_ends_of(j, c->s)->differs = true;
    if (!verdict_ok(v))
        f = strcmp(v.about, CM_COPY_DIFFERS) == 0
                ? cm_found_differing(j, c->m, &o->m, o->m_frame)
                : cm_found_of(j, c->m, v, v.rule == RULE_CM_02 ? o->m_frame : o->frame);
    if (c->m->cut < o->m.cut) {
        o->m = *c->m;
        o->m_frame = frame_u32(c->p);
    }
    if (verdict_ok(v))
        return;
    if (strcmp(v.about, CM_COPY_EARLY) == 0) {
        f.needs = c->from_active ? N_TAP_REQ : N_TAP_RSP; /* the earlier copy may have been delayed before the tap */
        f.has = cm_tap_at_sender(j, c) ? f.needs : 0;
    }
    if (strcmp(v.about, CM_COPY_EARLY) == 0 && c->m->mad.attr_id == CM_REP)
        f.needs |= N_COMPLETE; /* the REP may answer a duplicate REQ that was not captured */
    cm_found(j, c->p, f);
}

void cm_check_tid(struct judge *j, const struct cm_packet *c, uint64_t tid, uint32_t cause)
{
    struct found f;

    if (c->m->mad.tid == tid)
        return;
    f = cm_found_of(j, c->m, verdict_fail(RULE_CM_02, "transaction id", tid, c->m->mad.tid), cause);
    f.severity = SEV_W;   /* receivers go by the communication ids */
    f.needs = N_COMPLETE; /* else it may answer another message */
    cm_found(j, c->p, f);
}
