/* layer 3 (judge): messages of connection management compared with earlier ones of the same sender: what its receiver
 * permits, by the states of src/transport/cm.h, its sender need not. */
#include "src/judge/cm/cm.h"

/* The failure lacks what a message out of order lacks. */
static void needs_whole_exchange(const struct judge *j, const struct cm_packet *c, struct found *f)
{
    f->needs |= N_COMPLETE;
    f->lacks |= cm_lacks(j, c->s);
}

/* An MRA or REJ is about a message of its receiver: only the passive side gets a REQ, only the active side a REP. */
static bool is_about_other(struct judge *j, const struct cm_packet *c, struct found *f)
{
    static const char *const of[] = {
        [CM_ABOUT_REQ] = "a REQ", [CM_ABOUT_REP] = "a REP", [CM_ABOUT_OTHER] = "another message"};
    bool mra = c->m->mad.attr_id == CM_MRA;
    unsigned about = mra ? c->m->mra.about : c->m->rej.about;

    if (mra ? !CM_HAS(c->m, mra, about) : !CM_HAS(c->m, rej, about))
        return false;
    if (c->both || about == CM_ABOUT_OTHER || about == (c->from_active ? CM_ABOUT_REP : CM_ABOUT_REQ))
        return false;
    f->expected = say(j, "one of %s", of[c->from_active ? CM_ABOUT_REP : CM_ABOUT_REQ]);
    f->seen = about > CM_ABOUT_OTHER ? say(j, "%s of message code %u", cm_attr_str(c->m->mad.attr_id), about)
                                     : say(j, "%s of %s", cm_attr_str(c->m->mad.attr_id), of[about]);
    f->text = "It is about a message that its sender did not get: by this its receiver looks for the exchange.";
    return true;
}

/* The passive side has refused the only REQ, and accepts it all the same. */
static bool accepts_refused(struct judge *j, const struct cm_packet *c, struct found *f)
{
    const struct cm_ends *e = cm_ends_of(j, c->s);
    const struct cm_closed *rej = &e->closed[0];

    if (c->from_active || !e->refused || !rej->frame || c->s->rep.copies || c->s->req.copies > 1)
        return false;
    if (c->p->frame->ts - rej->ts <= COPY_WITHIN + judge_step(j, c->p))
        return false; /* the two may have been reordered */
    needs_whole_exchange(j, c, f);
    f->cause = rej->frame;
    f->expected = "no answer but the REJ";
    f->seen = "REP";
    f->text = "Its sender has refused the REQ, and no other has come.";
    return true;
}

/* The passive side gives its end another communication id than in its MRA. */
static bool has_other_id(struct judge *j, const struct cm_packet *c, struct found *f)
{
    uint32_t before = c->s->mra_id;

    if (c->from_active || !before || c->s->rep.copies || c->m->rep.local_id == before)
        return false;
    needs_whole_exchange(j, c, f);
    f->cause = c->s->mra_frame;
    f->expected = say(j, "local comm id 0x%x as in the MRA", before);
    f->seen = say(j, "0x%x", c->m->rep.local_id);
    f->text = "An end has one communication id for an exchange.";
    return true;
}

/* The active side closes a connection that it has never confirmed. Nothing is said at another tap than its own, before
 * which the RTU may have been lost. */
static bool was_not_confirmed(struct judge *j, const struct cm_packet *c, struct found *f)
{
    if (!c->from_active || !cm_tap_at_sender(j, c) || !c->s->rep.copies || c->s->established || c->s->rtu_names ||
        c->s->dreq[1].copies)
        return false;
    needs_whole_exchange(j, c, f);
    f->needs |= N_TAP_REQ;
    f->has |= N_TAP_REQ;
    f->cause = c->s->rep.frame;
    f->expected = "an RTU, or a REJ of the REP";
    f->seen = "DREQ";
    f->text = "Its sender has established the connection without an RTU: its peer learns of that from data alone.";
    return true;
}

/* A message of an end that has closed the connection, or refused it; for another copy of the REQ it may begin anew. */
static bool was_closed(struct judge *j, const struct cm_packet *c, struct found *f)
{
    const struct cm_ends *e = cm_ends_of(j, c->s);
    const struct cm_closed *k = &e->closed[c->from_active];
    bool late = c->p->frame->ts - k->ts > CLOSED_FOR + judge_step(j, c->p);

    if (!k->frame || (e->refused && c->s->req.copies > 1))
        return false;
    *f = cm_after_close(k->frame);
    needs_whole_exchange(j, c, f);
    f->needs |= late ? 0 : c->from_active ? N_TAP_REQ : N_TAP_RSP; /* else it may have been reordered with the DREQ */
    f->has |= cm_tap_at_sender(j, c) ? N_TAP_REQ | N_TAP_RSP : 0;
    f->expected = "silence";
    f->seen = cm_attr_str(c->m->mad.attr_id);
    f->wrong = e->refused ? "{seen} follows a REJ, expected {expected}" : NULL;
    f->text =
        e->refused ? "Its sender has refused the connection." : "Its sender has said that the connection is over.";
    return true;
}

/* An MRA of a REQ that its sender has answered already. */
static bool delays_answered(struct judge *j, const struct cm_packet *c, struct found *f)
{
    const struct cm_copies *rep = &c->s->rep;

    if (c->from_active || c->both || !rep->copies || c->s->req.copies > 1 || !CM_HAS(c->m, mra, about) ||
        c->m->mra.about != CM_ABOUT_REQ || c->p->frame->ts - rep->ts <= COPY_WITHIN + judge_step(j, c->p))
        return false;
    needs_whole_exchange(j, c, f);
    f->cause = rep->frame;
    f->expected = "an MRA of the REQ before its REP";
    f->seen = "MRA of a REQ behind it";
    f->text = "Its sender has answered the REQ, and no other has come.";
    return true;
}

void cm_check_sender(struct judge *j, const struct cm_packet *c)
{
    static const struct {
        uint16_t attr;
        bool (*check)(struct judge *j, const struct cm_packet *c, struct found *f);
    } checks[] = {{CM_MRA, is_about_other}, {CM_REJ, is_about_other},     {CM_REP, accepts_refused},
                  {CM_REP, has_other_id},   {CM_DREQ, was_not_confirmed}, {CM_LAP, was_closed},
                  {CM_RTU, was_closed},     {CM_MRA, was_closed},         {CM_MRA, delays_answered},
                  {CM_APR, was_closed}};

    for (unsigned i = 0; i < ARRAY_LEN(checks); i++) {
        struct found f = cm_out_of_place(c->s->req.frame);
        if (checks[i].attr == c->m->mad.attr_id && checks[i].check(j, c, &f))
            cm_found(j, c->p, f);
    }
}
