/* layer 3 (judge): messages of connection management compared with earlier ones of the same sender: what its receiver
 * permits, by the states of src/transport/cm.h, its sender need not. */
#include "src/judge/cm/cm.h"

/* The frame that proves a failure, and its texts. True. */
static bool fails(struct found *f, uint32_t cause, const char *expected, const char *seen, const char *text)
{
    f->cause = cause;
    f->expected = expected;
    f->seen = seen;
    f->text = text;
    return true;
}

/* The failure lacks what a message out of order lacks. */
static void needs_whole_exchange(const struct judge *j, const struct cm_packet *c, struct found *f)
{
    f->needs |= N_COMPLETE;
    f->lacks |= cm_lacks(j, c->s);
}

/* The failure takes a tap at the sender if the network may have reordered the message and one of its sender that was
 * captured at `ts`, as it may within `time`. */
static void needs_order(const struct judge *j, const struct cm_packet *c, ns_t ts, ns_t time, struct found *f)
{
    bool may_be_reordered = c->p->frame->ts - ts <= time + judge_step(j, c->p);

    f->needs |= !may_be_reordered ? 0 : c->from_active ? N_TAP_REQ : N_TAP_RSP;
    f->has |= cm_tap_at_sender(j, c) ? N_TAP_REQ | N_TAP_RSP : 0;
}

/* What an MRA or REJ is about, enum cm_about; CM_ABOUT_OTHER if that was not captured. */
static unsigned about(const struct cm_msg *m)
{
    if (m->mad.attr_id == CM_MRA)
        return CM_HAS(m, mra, about) ? m->mra.about : CM_ABOUT_OTHER;
    return CM_HAS(m, rej, about) ? m->rej.about : CM_ABOUT_OTHER;
}

/* An MRA or REJ is about a message of its receiver: only the passive side gets a REQ, only the active side a REP. */
static bool is_about_other(struct judge *j, const struct cm_packet *c, struct found *f)
{
    static const char *const of[] = {[CM_ABOUT_REQ] = "a REQ", [CM_ABOUT_REP] = "a REP"};
    unsigned is = about(c->m), may_be = c->from_active ? CM_ABOUT_REP : CM_ABOUT_REQ;
    const char *what = cm_attr_str(c->m->mad.attr_id);

    if (is == CM_ABOUT_OTHER || is == may_be)
        return false;
    return fails(f, c->s->req.frame, say(j, "one of %s", of[may_be]),
                 is < ARRAY_LEN(of) ? say(j, "%s of %s", what, of[is]) : say(j, "%s of message code %u", what, is),
                 "It is about a message that its sender did not get: by this its receiver looks for the exchange.");
}

/* The passive side has refused the only REQ, and accepts it all the same. */
static bool accepts_refused(struct judge *j, const struct cm_packet *c, struct found *f)
{
    const struct cm_ends *e = cm_ends_of(j, c->s);
    const struct cm_closed *rej = &e->closed[0];

    if (c->from_active || !e->refused || !rej->frame || c->s->rep.copies || c->s->req.copies > 1)
        return false;
    needs_whole_exchange(j, c, f);
    needs_order(j, c, rej->ts, COPY_WITHIN, f);
    return fails(f, rej->frame, "no answer but the REJ", "REP",
                 "Its sender has refused the REQ, and no other has come.");
}

/* The passive side gives its end another communication id than in its MRA; for another copy of the REQ it may. */
static bool has_other_id(struct judge *j, const struct cm_packet *c, struct found *f)
{
    uint32_t before = c->s->mra_id;

    if (c->from_active || !before || c->s->rep.copies || c->s->req.copies > 1 || c->m->rep.local_id == before)
        return false;
    needs_whole_exchange(j, c, f);
    return fails(f, c->s->mra_frame, say(j, "local comm id 0x%x as in the MRA", before),
                 say(j, "0x%x", c->m->rep.local_id), "An end has one communication id for an exchange.");
}

/* The active side closes a connection that it has never confirmed, or proposes another path for it. Nothing is said at
 * another tap than its own, before which the RTU may have been lost. */
static bool was_not_confirmed(struct judge *j, const struct cm_packet *c, struct found *f)
{
    if (!c->from_active || !cm_tap_at_sender(j, c) || !c->s->rep.copies || c->s->established || c->s->rtu_names ||
        c->s->dreq[1].copies)
        return false;
    needs_whole_exchange(j, c, f);
    f->needs |= N_TAP_REQ;
    f->has |= N_TAP_REQ;
    return fails(f, c->s->rep.frame, c->m->mad.attr_id == CM_DREQ ? "an RTU, or a REJ of the REP" : "an RTU",
                 cm_attr_str(c->m->mad.attr_id),
                 "Its sender has established the connection without an RTU: its peer learns of that from data alone.");
}

/* A message of an end that has closed the connection, or refused it; for another copy of the REQ it may begin anew. */
static bool was_closed(struct judge *j, const struct cm_packet *c, struct found *f)
{
    const struct cm_ends *e = cm_ends_of(j, c->s);
    const struct cm_closed *k = &e->closed[c->from_active];

    if (!k->frame || (e->refused && c->s->req.copies > 1))
        return false;
    *f = cm_after_close(k->frame);
    needs_whole_exchange(j, c, f);
    needs_order(j, c, k->ts, CLOSED_FOR, f);
    f->wrong = e->refused ? "{seen} follows a REJ, expected {expected}" : NULL;
    return fails(f, k->frame, "silence", cm_attr_str(c->m->mad.attr_id),
                 e->refused ? "Its sender has refused the connection."
                            : "Its sender has said that the connection is over.");
}

/* An MRA of a REQ that its sender has answered already. */
static bool delays_answered(struct judge *j, const struct cm_packet *c, struct found *f)
{
    const struct cm_copies *rep = &c->s->rep;

    if (c->from_active || !rep->copies || c->s->req.copies > 1 || about(c->m) != CM_ABOUT_REQ)
        return false;
    needs_whole_exchange(j, c, f);
    needs_order(j, c, rep->ts, COPY_WITHIN, f);
    return fails(f, rep->frame, "an MRA of the REQ before its REP", "MRA of a REQ behind it",
                 "Its sender has answered the REQ, and no other has come.");
}

void cm_check_asked(struct judge *j, const struct cm_exchange *s, bool from_active)
{
    const struct cm_ends *e = cm_ends_of(j, s);
    const struct conn_addr *end[2] = {&e->addr[1], &e->addr[0]};
    struct found f = cm_out_of_place(s->dreq[from_active].frame);

    if (!s->drep[from_active] || !s->dreq[from_active].copies || e->closed[!from_active].frame ||
        s->dreq[!from_active].copies || e->odd_dreq || e->lap ||
        judge_side_of(j, e->tap, end) != (from_active ? TAP_REQUESTER : TAP_RESPONDER))
        return;
    f.frame = s->drep[from_active];
    f.needs = N_COMPLETE;
    f.lacks = cm_lacks(j, s);
    fails(&f, f.cause, "a DREQ of its receiver", "DREP", "It answers a DREQ, and its sender has got none.");
    j->file = s->file;
    cm_found(j, NULL, f);
}

void cm_check_confirmed(struct judge *j, const struct cm_exchange *s)
{
    const struct cm_ends *e = cm_ends_of(j, s);
    const struct conn_addr *end[2] = {&e->addr[1], &e->addr[0]};
    uint32_t flow = conn_flow_named(j->conns, e->tap, end[0], end[1], e->qpn[0]);
    struct found f = cm_out_of_place(s->rep.frame);

    if (!s->rep.copies || s->established || s->rtu_names || s->ended || flow == FLOW_NONE || !j->flows[flow].dir ||
        j->flow[flow].params.req_frame != e->frame || judge_side_of(j, e->tap, end) != TAP_REQUESTER ||
        j->flows[flow].dir->first_frame < s->rep.frame ||
        !stamps_go_on(&j->stamps, s->tap, j->flows[flow].dir->first_ts, NS_PER_S))
        return; /* or the capture ends before the RTU may have come */
    f.frame = j->flows[flow].dir->first_frame;
    f.needs = N_COMPLETE;
    f.lacks = cm_lacks(j, s);
    f.wrong = "a connection is used that was never confirmed: {seen}, expected {expected}";
    fails(&f, s->rep.frame, "an RTU first", "a request",
          "The active side establishes the connection with an RTU: its peer learns of that from data alone.");
    j->file = s->file;
    cm_found(j, NULL, f);
}

void cm_check_sender(struct judge *j, const struct cm_packet *c)
{
    static const struct {
        uint16_t attr;
        bool (*check)(struct judge *j, const struct cm_packet *c, struct found *f);
    } checks[] = {{CM_MRA, is_about_other}, {CM_REJ, is_about_other},     {CM_REP, accepts_refused},
                  {CM_REP, has_other_id},   {CM_DREQ, was_not_confirmed}, {CM_LAP, was_closed},
                  {CM_RTU, was_closed},     {CM_MRA, was_closed},         {CM_MRA, delays_answered},
                  {CM_APR, was_closed},     {CM_LAP, was_not_confirmed}};

    for (unsigned i = 0; i < ARRAY_LEN(checks) && !c->both; i++) {
        struct found f = cm_out_of_place(c->s->req.frame);
        if (checks[i].attr == c->m->mad.attr_id && checks[i].check(j, c, &f))
            cm_found(j, c->p, f);
    }
}
