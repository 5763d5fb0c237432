/* layer 3 (explain): at the end of a capture: partitions and MigReq bits that differ. */
#include "src/explain/explain_impl.h"

void end_keys(struct explainer *x, uint32_t flow, const struct flow_notes *t, const struct flow_notes *o)
{
    enum cause cause = (t->headers.pkey ^ o->headers.pkey) & 0x7fff ? CAUSE_PKEY_MISMATCH : CAUSE_MIGREQ_MISMATCH;
    struct incident *st;

    if (cause == CAUSE_MIGREQ_MISMATCH && t->headers.migreq == o->headers.migreq)
        return;
    st = incident_new(x, cause, flow, NULL);
    if (!st)
        return;
    st->start = t->headers.ts;
    incident_frame(st, ROLE_LOST, t->headers.frame);
    incident_frame(st, ROLE_EVIDENCE, o->headers.frame);
    if (cause == CAUSE_PKEY_MISMATCH)
        incident_is(st, SAY(PKEY_DIFFERS, .lost = t->headers.frame, .key = t->headers.pkey, .other = o->headers.frame,
                            .key2 = o->headers.pkey));
    else
        incident_is(st, SAY(MIGREQ_DIFFERS, .lost = t->headers.frame, .n = t->headers.migreq, .other = o->headers.frame,
                            .m = o->headers.migreq));
}

/* Whether `st` is about the loss of a packet of `flow`. */
static bool is_loss_of(const struct incident *st, uint32_t flow, uint32_t peer, const struct odd_key *k)
{
    bool request =
        st->cause == CAUSE_PACKET_LOSS || st->cause == CAUSE_LOST_LAST_PACKET || st->cause == CAUSE_CANNOT_TELL;

    if (st->moot || !st->has_psn || !st->n_frames)
        return false;
    if (st->flow == flow && request && st->is_request)
        return st->psn == k->psn ||
               (st->cause == CAUSE_LOST_LAST_PACKET && psn_in(k->psn, st->psn, (st->end - st->psn) & PSN_MASK));
    return st->flow == peer && (st->cause == CAUSE_LOST_ACK || st->cause == CAUSE_LOST_READ_RESPONSE) &&
           st->frames[0] == k->frame;
}

/* A packet with the wrong P_Key was dropped by its receiver: it is no loss in the network. */
static void moot_loss(struct explainer *x, uint32_t flow, const struct odd_key *k, uint32_t odd)
{
    uint32_t peer = conn_flow_at(observer_conns(x->observer), flow)->peer;

    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *st = &x->incidents[i];
        if (i == odd || !is_loss_of(st, flow, peer, k))
            continue;
        x->incidents[odd].again += st->again;
        x->incidents[odd].lost += st->lost;
        st->moot = true;
    }
}

/* True if all packets but the first have the P_Key of the other direction, or else that of the REQ: then the first one
 * is wrong. */
static bool first_is_odd(const struct flow_notes *t, const struct flow_notes *o, const struct conn_params *c)
{
    uint16_t right = o && o->headers.seen && !o->headers.n_odd ? o->headers.pkey : c->pkey;

    return right && (right ^ t->headers.pkey) & 0x7fff && !((right ^ t->headers.odd[0].pkey) & 0x7fff);
}

/* One queue pair sends several P_Keys. */
void end_odd_key(struct explainer *x, uint32_t flow, struct flow_notes *t, const struct flow_notes *o)
{
    struct odd_key first = {t->headers.psn, t->headers.frame, t->headers.pkey}, right = first;
    struct incident *st = t->headers.seen && t->headers.n_odd ? incident_new(x, CAUSE_PKEY_MISMATCH, flow, NULL) : NULL;

    if (!st)
        return;
    if (first_is_odd(t, o, &conn_flow_at(observer_conns(x->observer), flow)->params)) {
        right = t->headers.odd[0];
        t->headers.pkey = right.pkey;
        t->headers.frame = right.frame;
        t->headers.odd[0] = first;
        t->headers.n_odd = 1;
    }
    st->start = t->headers.ts;
    incident_frame(st, ROLE_LOST, t->headers.odd[0].frame);
    incident_frame(st, ROLE_EVIDENCE, right.frame);
    for (uint32_t i = 0; i < t->headers.n_odd; i++) {
        incident_frame(st, ROLE_LOST, t->headers.odd[i].frame);
        moot_loss(x, flow, &t->headers.odd[i], incident_number(x, st));
    }
    incident_is(st, SAY(PKEY_ODD, .lost = t->headers.odd[0].frame, .key = t->headers.odd[0].pkey, .other = right.frame,
                        .key2 = right.pkey));
}

/* The P_Key differs from that in the REQ, and the other direction has no packet. */
bool end_req_key(struct explainer *x, uint32_t flow, const struct flow_notes *t)
{
    const struct conn_params *c = &conn_flow_at(observer_conns(x->observer), flow)->params;
    struct incident *st;

    if (!t->headers.seen || !c->pkey || !((c->pkey ^ t->headers.pkey) & 0x7fff))
        return false;
    st = incident_new(x, CAUSE_PKEY_MISMATCH, flow, NULL);
    if (!st)
        return true;
    st->start = t->headers.ts;
    incident_frame(st, ROLE_LOST, t->headers.frame);
    incident_frame(st, ROLE_EVIDENCE, (uint32_t)c->req_frame);
    incident_is(st, SAY(PKEY_REQ, .lost = t->headers.frame, .key = t->headers.pkey, .other = (uint32_t)c->req_frame,
                        .key2 = c->pkey));
    return true;
}
