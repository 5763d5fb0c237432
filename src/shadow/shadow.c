/* layer 2b (shadow): replicas of a requester and of a responder. */
#include "src/shadow/shadow.h"

#include "dissect/pkt.h"

#include <stdlib.h>

#define PMTU_MAX 4096

#define MSGS_MIN 16 /* entries of the rings, at first */
#define RES_MIN  8

static size_t ring_bytes(uint32_t msgs, uint32_t res)
{
    return msgs * sizeof(struct req_msg) + res * sizeof(struct rsp_res);
}

static struct shadow *allocate(uint32_t msgs, uint32_t res)
{
    return calloc(1, sizeof(struct shadow) + ring_bytes(msgs, res));
}

struct shadow *shadow_new(struct room *room)
{
    struct shadow *r = allocate(MSGS_MIN, RES_MIN);

    if (!r)
        return NULL;
    r->room = room;
    r->req.r.msg_mask = MSGS_MIN - 1;
    r->rsp.r.res_mask = RES_MIN - 1;
    return r;
}

void shadow_free(struct shadow *r)
{
    if (r)
        room_give(r->room, ring_bytes(r->req.r.msg_mask + 1, r->rsp.r.res_mask + 1) - ring_bytes(MSGS_MIN, RES_MIN));
    free(r);
}

/* Replicas with larger rings, each entry at its number modulo the new size. */
static struct shadow *moved(struct shadow *old, uint32_t msgs, uint32_t res)
{
    struct shadow *r = allocate(msgs, res);
    struct requester *q;
    struct responder *s;

    if (!r)
        return NULL;
    *r = *old;
    q = &r->req.r;
    q->msg_off = (int32_t)((char *)shadow_msgs(r) - (char *)q);
    q->msg_mask = msgs - 1;
    s = &r->rsp.r;
    s->res_off = (int32_t)((char *)shadow_res(r, msgs) - (char *)s);
    s->res_mask = res - 1;
    for (uint32_t i = 1; i <= old->req.r.msg_mask + 1; i++)
        *req_msg(q, q->msg_tail - i) = *req_msg(&old->req.r, q->msg_tail - i);
    for (uint32_t i = 1; i <= old->rsp.r.res_mask + 1; i++)
        *rsp_res(s, s->res_tail - i) = *rsp_res(&old->rsp.r, s->res_tail - i);
    return r;
}

struct shadow *shadow_grow(struct shadow *r)
{
    const struct requester *q = &r->req.r;
    const struct responder *s = &r->rsp.r;
    uint32_t had_msgs = q->msg_mask + 1, had_res = s->res_mask + 1, msgs = had_msgs, res = had_res;
    bool open = !req_has_room(q);
    struct shadow *grown;

    if (msgs < SHADOW_MSGS && q->msg_tail >= msgs && room_take(r->room, ring_bytes(msgs, 0), open))
        msgs *= 2;
    if (res < SHADOW_RES && s->res_tail - s->res_head >= res &&
        room_take(r->room, ring_bytes(0, res), s->res_next == s->res_head))
        res *= 2;
    if (msgs == had_msgs && res == had_res)
        return r;
    grown = moved(r, msgs, res);
    if (!grown) {
        room_give(r->room, ring_bytes(msgs - had_msgs, res - had_res));
        return r;
    }
    free(r);
    return grown;
}

void shadow_begin(struct shadow *r, const struct shadow_params *k)
{
    const struct req_params q = {
        .service = k->service,
        .timeout = k->timeout,
        .retry_cnt = k->retry_cnt,
        .rnr_retry = k->rnr_retry,
        .max_rd = k->depth,
        .credits = true,
        .rxe = k->rxe,
        .pmtu = k->pmtu ? k->pmtu : PMTU_MAX,
        .psn = k->psn,
    };
    const struct req_unknown u = {.complete = k->complete, .from_start = k->from_start, .pmtu_unknown = !k->pmtu};
    const struct rsp_params s = {
        .service = k->service,
        .max_rd = k->depth,
        .credits = true,
        .rxe = k->rxe,
        .pmtu = q.pmtu,
        .psn = k->psn,
    };
    const struct rsp_unknown w = {.from_start = k->from_start, .pmtu_unknown = !k->pmtu};

    const uint32_t msgs = r->req.r.msg_mask + 1, res = r->rsp.r.res_mask + 1;

    r->thorough = k->thorough;
    r->start = k->psn;
    shadow_req_init(&r->req, &q, &u, shadow_msgs(r), msgs);
    shadow_rsp_init(&r->rsp, &s, &w, shadow_res(r, msgs), res);
    memset(req_msg(&r->req.r, r->req.r.msg_tail - 1), 0, sizeof(struct req_msg)); /* no open message before the first */
}

unsigned shadow_check_request(const struct shadow *r, const struct pkt *p, struct verdict *out)
{
    return req_tx_check_all(&r->req.r, &r->req.u, p, p->frame->ts, out, SHADOW_FOUND);
}

/* A request was captured after requests of later PSNs. The messages were counted without it until now, and responses
 * may be captured out of order, too. */
static void take_late(struct shadow *r, const struct pkt *p)
{
    r->req.u.counted = false;
    r->rsp.u.all_seen = false;
    if (p->bth.psn != r->rsp.r.epsn_hi)
        r->rsp.u.counted = false;
}

/* Apply a request to the responder's replica: it may have arrived. */
static inline void arrive(struct shadow *r, const struct pkt *p, enum seen_as as, const struct req_dir *h)
{
    if (UNLIKELY(r->rsp.u.pmtu_unknown && as == SEEN_NEW && psn_diff(p->bth.psn, r->rsp.r.epsn_hi) > 0))
        r->rsp.r.epsn_hi = p->bth.psn; /* the READ before it may take all PSNs up to this one */
    shadow_rsp_rx(&r->rsp, p, p->frame->ts);
    if (UNLIKELY(!r->rsp.u.all_seen && psn_diff(h->contig, r->rsp.r.epsn_hi) > 0))
        shadow_rsp_may_expect(&r->rsp, h->contig);
}

void shadow_request(struct shadow *r, const struct pkt *p, enum seen_as as, const struct req_dir *h, bool usual)
{
    if (UNLIKELY(as == SEEN_LATE))
        take_late(r, p);
    /* SEEN_LATE while a retransmission is due: it was lost before the tap and is retransmitted, not reordered */
    if (LIKELY(usual))
        shadow_req_tx_usual(&r->req, p, p->frame->ts);
    else if ((as != SEEN_COPY && as != SEEN_LATE) || (as == SEEN_LATE && shadow_req_is_due_again(&r->req, p->bth.psn)))
        shadow_req_tx(&r->req, p, p->frame->ts);
    arrive(r, p, as, h);
}

unsigned shadow_check_response(struct shadow *r, const struct pkt *p, bool at_responder, struct verdict *out)
{
    r->rsp.u.all_seen = at_responder;
    if (LIKELY(shadow_rsp_tx_is_usual(&r->rsp, p) && !r->thorough))
        return 0;
    return rsp_tx_check_all(&r->rsp.r, &r->rsp.u, p, p->frame->ts, out, SHADOW_FOUND);
}

void shadow_response(struct shadow *r, const struct pkt *p)
{
    shadow_rsp_tx(&r->rsp, p);
    shadow_req_rx(&r->req, p, p->frame->ts);
}
