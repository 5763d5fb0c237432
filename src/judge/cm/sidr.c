/* layer 3 (judge): the exchange of a SIDR_REQ and its SIDR_REP, which resolve a service to a datagram queue pair. */
#include "src/judge/cm/cm.h"

/* The latest exchange with this request id, as seen from the sender of the message: the active, or else the passive
 * side; NULL: there is none. */
static struct cm_ends *sidr_find(struct judge *j, const struct cm_packet *c, bool active, uint32_t id)
{
    for (unsigned i = CM_EXCHANGES; i < CM_EXCHANGES + CM_SIDRS; i++) {
        struct cm_ends *e = &j->cm_ends[i];
        if (e->used && e->tap == conn_tap_of(c->p->frame) && e->id[1] == id &&
            conn_addr_eq(&e->addr[active], &c->src) && conn_addr_eq(&e->addr[!active], &c->dst))
            return e;
    }
    return NULL;
}

/* The messages of an exchange. */
static struct sidr *messages_of(struct judge *j, const struct cm_ends *e)
{
    return &j->sidr[e - j->cm_ends - CM_EXCHANGES];
}

/* CM-03: a message that is sent again, with the same transaction id, is the same message. The first copy is kept. */
static void check_copy(struct judge *j, struct cm_copies *o, const struct cm_packet *c)
{
    if (!o->copies)
        cm_first_copy(o, c);
    else if (o->m.mad.tid == c->m->mad.tid && o->m.cut == c->m->cut && !cm_msg_same(&o->m, c->m))
        cm_found(j, c->p, cm_found_differing(j, c->m, &o->m, o->frame));
}

void cm_take_sidr_req(struct judge *j, const struct cm_packet *c)
{
    struct cm_ends *e = sidr_find(j, c, true, c->m->sidr_req.request_id);
    bool again = e && e->tid == c->m->mad.tid;

    if (!e)
        e = &j->cm_ends[CM_EXCHANGES + j->sidr_at++ % CM_SIDRS];
    if (!again) {
        *e = (struct cm_ends){.used = true,
                              .sidr = true,
                              .tap = conn_tap_of(c->p->frame),
                              .addr = {c->dst, c->src},
                              .id = {0, c->m->sidr_req.request_id},
                              .tid = c->m->mad.tid,
                              .frame = frame_u32(c->p)};
        *messages_of(j, e) = (struct sidr){0};
    }
    check_copy(j, &messages_of(j, e)->req, c);
}

void cm_take_sidr_rep(struct judge *j, const struct cm_packet *c)
{
    struct cm_ends *e = sidr_find(j, c, false, c->m->sidr_rep.request_id);
    struct ud_dest *d;

    if (e) {
        cm_check_tid(j, c, e->tid, e->frame);
        check_copy(j, &messages_of(j, e)->rep, c);
        e->rep_frame = e->rep_frame ? e->rep_frame : frame_u32(c->p);
    } else {
        judge_cm_unmatched(j, c);
    }
    if (c->m->sidr_rep.status != CM_SIDR_SUCCESS || !CM_HAS(c->m, sidr_rep, qkey))
        return;
    d = ud_dest(j, conn_tap_of(c->p->frame), &c->src, c->m->sidr_rep.qpn);
    d->have = d->from_sidr = true;
    d->qkey = c->m->sidr_rep.qkey;
    d->frame = frame_u32(c->p);
    d->ts = c->p->frame->ts;
}
