/* layer 2b (conn): connections as they pass by. */
#include "src/conn/observer.h"

#include <stdlib.h>

#define LONG_AFTER (40 * NS_PER_MS) /* an answer that passes over another is acted upon sooner, over any distance */
#define NAKS       4                /* sequence NAKs that are remembered of a flow */

/* A sequence NAK to which no request has gone back yet. That its PSN was seen since, in passing or for the first time,
 * does not answer it: the packet may have been overtaken. */
struct open_nak {
    bool open;
    uint32_t psn;
};

#define ENDS 16 /* pairs of hosts that are remembered */

/* Who sent what is no RDMA to whom. */
struct ends {
    struct conn_addr src, dst;
    uint32_t tap;
    bool used;
};

struct watch {
    struct conn_table *conns;
    struct learner learner;
    struct req_dir *halves[WATCH_FLOWS];
    struct open_nak naks[WATCH_FLOWS][NAKS];
    uint32_t naks_at[WATCH_FLOWS];
    struct tries tries[WATCH_FLOWS];
    bool seen[WATCH_FLOWS]; /* a request or response came in the flow */
    bool partial;           /* packets were not to be told */
    struct ends others[ENDS];
    uint32_t others_at;
    struct watch_user u;
};

static void fresh_flow(void *user, uint32_t flow)
{
    struct watch *w = user;

    if (w->u.fresh)
        w->u.fresh(w->u.user, flow);
    free(w->halves[flow]);
    w->halves[flow] = NULL;
    memset(w->naks[flow], 0, sizeof w->naks[flow]);
    w->tries[flow].n = 0;
    w->seen[flow] = false;
}

static bool has_psn(void *user, uint32_t flow, uint32_t psn)
{
    struct req_dir *h = ((struct watch *)user)->halves[flow];

    return h && req_dir_has_psn(h, psn);
}

struct watch *watch_new(const struct watch_user *u)
{
    struct watch *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    w->u = *u;
    w->conns = conn_table_new(WATCH_FLOWS);
    if (!w->conns) {
        free(w);
        return NULL;
    }
    conn_table_user(w->conns, w, fresh_flow, has_psn);
    return w;
}

void watch_free(struct watch *w)
{
    if (!w)
        return;
    for (unsigned i = 0; i < WATCH_FLOWS; i++)
        free(w->halves[i]);
    conn_table_free(w->conns);
    free(w);
}

struct conn_table *watch_conns(struct watch *w)
{
    return w->conns;
}

struct req_dir *watch_half(struct watch *w, uint32_t flow)
{
    return w->halves[flow];
}

const struct tries *watch_tries(const struct watch *w, uint32_t flow)
{
    return &w->tries[flow];
}

/* Whether `src` sent `dst` anything that is no RDMA. */
static bool is_talking(const struct watch *w, uint32_t tap, const struct conn_addr *src, const struct conn_addr *dst)
{
    for (unsigned i = 0; i < ENDS; i++) {
        const struct ends *e = &w->others[i];
        if (e->used && e->tap == tap && conn_addr_eq(&e->src, src) && conn_addr_eq(&e->dst, dst))
            return true;
    }
    return false;
}

bool watch_heard(const struct watch *w, uint32_t flow)
{
    const struct flow *flows = conn_flows(w->conns), *f = &flows[flow];

    if (!w->partial && (f->params.rep_frame || is_talking(w, f->tap, &f->dst, &f->src)))
        return true;
    if (f->peer != FLOW_NONE)
        return w->seen[f->peer];
    for (uint32_t i = 0; i < conn_counts(w->conns).flows; i++)
        if (w->seen[i] && flows[i].tap == f->tap && conn_addr_eq(&flows[i].src, &f->dst) &&
            conn_addr_eq(&flows[i].dst, &f->src))
            return true;
    return false;
}

static struct req_dir *req_dir_of(struct watch *w, const struct pkt *p, uint32_t flow)
{
    const struct flow *c = conn_flow_at(w->conns, flow);
    struct req_dir *h = w->halves[flow];

    if (LIKELY(h != NULL))
        return h;
    h = w->halves[flow] = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    req_dir_init(h, flow);
    req_dir_set_pmtu(h, c->pmtu);
    h->from_start = c->have_psn && c->psn == p->bth.psn;
    h->gbn_known = c->have_psn && psn_in(p->bth.psn, c->psn, TRACK_SENT);
    h->gbn = h->gbn_known ? c->psn : 0;
    return h;
}

static void nak_put(struct watch *w, uint32_t flow, uint32_t psn)
{
    w->naks[flow][w->naks_at[flow]++ % NAKS] = (struct open_nak){true, psn};
}

/* Whether a NAK asked to go back to `psn`; it is answered now. */
static bool nak_take(struct watch *w, uint32_t flow, uint32_t psn)
{
    for (unsigned i = 0; i < NAKS; i++)
        if (w->naks[flow][i].open && w->naks[flow][i].psn == psn) {
            w->naks[flow][i].open = false;
            return true;
        }
    return false;
}

static void count_try(struct tries *t, const struct req_dir *h, uint32_t psn, bool silence)
{
    t->n = !silence ? 0 : t->n && t->psn == psn ? t->n + 1 : 1;
    t->psn = psn;
    t->next = h->next;
}

static void watch_request(struct watch *w, const struct pkt *p, uint32_t flow)
{
    struct watched e = {.p = p, .own = flow, .flow = flow, .h = req_dir_of(w, p, flow)};

    if (!e.h)
        return;
    e.as = (uint8_t)req_dir_classify(e.h, p);
    if (UNLIKELY(e.as == SEEN_AGAIN) && psn_diff(p->bth.psn, e.h->cursor) < 0) {
        bool nak = nak_take(w, flow, p->bth.psn);
        const struct conn_params *c = &conn_flow_at(w->conns, flow)->params;
        e.h->timeout = c->have_timeout || c->have_asked ? c->timeout : 0;
        e.why = (uint8_t)req_dir_why_back(e.h, p->bth.psn, p->frame->ts);
        if (nak && (e.why == BACK_SILENCE || e.why == BACK_NONE))
            e.why = BACK_SEQ_NAK;
        if (e.why == BACK_IMPLIED && !e.h->timeout && p->frame->ts - e.h->rsp_ts >= LONG_AFTER)
            e.why = BACK_SILENCE; /* its timer, which is not stated, ran out */
        count_try(&w->tries[flow], e.h, p->bth.psn, e.why == BACK_SILENCE);
    }
    w->u.request(w->u.user, &e);
    e.h->told = e.why; /* a NAK for an earlier PSN is known here only */
    req_dir_request(e.h, p, (enum seen_as)e.as);
    if (w->u.requested)
        w->u.requested(w->u.user, &e);
}

static void watch_response(struct watch *w, const struct pkt *p, uint32_t flow)
{
    struct flow *c = conn_flow_at(w->conns, flow);
    struct watched e = {.p = p, .own = flow};

    if (UNLIKELY(c->peer == FLOW_NONE))
        conn_pair_by_psn(w->conns, flow, p->bth.psn);
    if (c->peer == FLOW_NONE || (p->op->flags & OPF_ACK && !(p->have & H_AETH)))
        return; /* cut before its AETH it may be anything */
    e.flow = c->peer;
    e.h = w->halves[e.flow];
    if (e.h && p->op->flags & OPF_READ_RESP && p->op->flags & (OPF_FIRST | OPF_MIDDLE))
        req_dir_set_pmtu(e.h, p->payload_len);
    w->u.response(w->u.user, &e);
    if (!e.h)
        return;
    req_dir_response(e.h, p);
    if (UNLIKELY(p->op->flags & OPF_ACK && p->aeth.syndrome == (AETH_NAK << 5 | NAK_PSN_SEQ)))
        nak_put(w, e.flow, p->bth.psn);
    if (w->u.responded)
        w->u.responded(w->u.user, &e);
}

static void note_other(struct watch *w, const struct pkt *p)
{
    struct ends e = {.tap = conn_tap_of(p->frame), .used = true};

    conn_addr_of(p, &e.src, &e.dst);
    if (!is_talking(w, e.tap, &e.src, &e.dst))
        w->others[w->others_at++ % ENDS] = e;
}

static void learn(struct watch *w, const struct pkt *p)
{
    if (UNLIKELY(!(p->have & H_BTH)) && p->addr_len)
        note_other(w, p);
    if (UNLIKELY(p->have & H_MAD || !(p->have & H_BTH)))
        learn_packet(&w->learner, w->conns, p);
}

void watch_learn(struct watch *w, const struct pkt *p)
{
    w->partial |= (p->have & (H_BTH | H_MAD)) == H_BTH;
    learn(w, p);
}

void watch_packet(struct watch *w, const struct pkt *p)
{
    bool bth = p->have & H_BTH, usable = bth && !(p->flags & PKT_MALFORMED) && p->op->name;
    uint32_t flow;

    learn(w, p);
    if (UNLIKELY(p->icrc == CRC_BAD)) {
        if (w->u.bad_icrc)
            w->u.bad_icrc(w->u.user, p, usable && !(p->op->ext & H_DETH) ? conn_flow_find(w->conns, p) : FLOW_NONE);
        return;
    }
    if (!usable || p->op->ext & H_DETH || p->op->flags & OPF_CNP) {
        if (w->u.other)
            w->u.other(w->u.user, p, usable && p->op->flags & OPF_CNP ? conn_flow_find(w->conns, p) : FLOW_NONE);
        return;
    }
    flow = conn_flow(w->conns, p);
    w->seen[flow] = true;
    if (w->u.packet)
        w->u.packet(w->u.user, p, flow);
    if (p->op->flags & OPF_REQUEST)
        watch_request(w, p, flow);
    else
        watch_response(w, p, flow);
}
