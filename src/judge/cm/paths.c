/* layer 3 (judge): rules about alternate paths: that of a REQ is used unless the REP refuses it, one that a LAP
 * proposes once an APR has accepted it. */
#include "src/judge/cm/cm.h"

void cm_take_failover(struct judge *j, const struct cm_packet *c)
{
    static const uint8_t none[16];
    const struct cm_req *r = &c->s->req.m.req;
    bool offered = CM_HAS(&c->s->req.m, req, alt_rgid) && memcmp(r->alt_rgid, none, sizeof none) != 0;
    bool another = memcmp(r->alt_lgid, r->prim_lgid, 16) != 0 || memcmp(r->alt_rgid, r->prim_rgid, 16) != 0;
    struct lap *l;

    if (!offered || !another || !CM_HAS(c->m, rep, failover) || c->m->rep.failover == CM_FAILOVER_ACCEPTED)
        return;
    l = &j->lap[j->lap_at++ % LAPS];
    *l = (struct lap){.tap = conn_tap_of(c->p->frame),
                      .frame = frame_u32(c->p),
                      .exchange = c->s->key,
                      .tid = c->m->mad.tid,
                      .from_active = true,
                      .refused = true};
    l->addr[0].network = l->addr[1].network = c->p->network;
    memcpy(l->addr[0].b, r->alt_lgid, 16);
    memcpy(l->addr[1].b, r->alt_rgid, 16);
    l->qpn[0] = cm_qpn_of(c, false);
    l->qpn[1] = cm_qpn_of(c, true);
}

void cm_take_lap(struct judge *j, struct cm_packet *c)
{
    struct lap *l = &j->lap[j->lap_at++ % LAPS];

    cm_ends_of(j, c->s)->lap = true;
    if (!c->s->rep.copies)
        return;
    *l = (struct lap){.tap = conn_tap_of(c->p->frame),
                      .frame = frame_u32(c->p),
                      .exchange = c->s->key,
                      .tid = c->m->mad.tid,
                      .from_active = c->from_active};
    if (!CM_HAS(c->m, lap, rgid)) {
        l->accepted = true; /* a path that is not known */
        return;
    }
    l->addr[0].network = l->addr[1].network = c->p->network;
    memcpy(l->addr[0].b, c->m->lap.lgid, 16);
    memcpy(l->addr[1].b, c->m->lap.rgid, 16);
    l->qpn[0] = cm_qpn_of(c, !c->from_active);
    l->qpn[1] = cm_qpn_of(c, c->from_active);
}

/* The transaction id of an APR is that of a LAP of its receiver. */
static void check_apr_tid(struct judge *j, const struct cm_packet *c)
{
    const struct lap *of = NULL;

    for (unsigned i = 0; i < LAPS; i++) {
        const struct lap *l = &j->lap[i];
        if (!l->frame || l->refused || l->exchange != c->s->key || l->from_active == c->from_active)
            continue;
        if (l->tid == c->m->mad.tid)
            return;
        of = l;
    }
    if (of)
        cm_check_tid(j, c, of->tid, of->frame);
}

void cm_take_apr(struct judge *j, struct cm_packet *c)
{
    bool any = false;

    check_apr_tid(j, c);
    for (unsigned i = 0; i < LAPS; i++)
        if (j->lap[i].frame && j->lap[i].exchange == c->s->key) {
            any |= !j->lap[i].refused;
            j->lap[i].accepted |= c->m->apr.status == CM_APR_SUCCESS; /* also if it was not captured: 0 */
        }
    if (any)
        return;
    struct found f = {.rule = RULE_CM_14,
                      .needs = N_COMPLETE,
                      .lacks = cm_lacks(j, c->s),
                      .cause = c->s->req.frame,
                      .expected = "a LAP first",
                      .seen = "APR",
                      .text = "The message answers another one, which was never sent."};
    judge_needs_peer(j, &f, conn_tap_of(c->p->frame), &c->dst, &c->src, c->from_active);
    cm_found(j, c->p, f);
}

void judge_cm_path(struct judge *j, const struct pkt *p, uint32_t flow)
{
    const struct flow *c = &j->flow[flow];

    for (unsigned i = 0; i < LAPS; i++) {
        const struct lap *l = &j->lap[i];
        if (!l->frame || l->accepted || l->tap != c->tap)
            continue;
        for (unsigned from = 0; from < 2; from++) {
            if (!conn_addr_eq(&c->src, &l->addr[from]) || !conn_addr_eq(&c->dst, &l->addr[!from]) ||
                c->dqpn != l->qpn[!from])
                continue;
            struct found f = found_of(RULE_CM_14, flow);
            f.has = N_CM;
            f.needs = N_COMPLETE;
            f.cause = l->frame;
            f.expected = l->refused ? "the path that the REP accepts" : "an APR first that accepts the path";
            f.seen = "a packet on the alternate path";
            f.text = l->refused ? "The REQ offered this path, and the REP has not accepted it."
                                : "The LAP proposed this path, and nobody has accepted it yet.";
            judge_found(j, p, f);
        }
    }
}
