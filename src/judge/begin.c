/* layer 3 (judge): when the replicas of a flow begin or are reset: at its first request, at a new connection of the
 * same queue pairs, at a migration. */
#include "src/judge/judge_impl.h"

/* Initialise the replicas of flow `f` with request `p`; `new_conn`: of a new connection. */
static void begin_replicas(struct judge *j, const struct pkt *p, uint32_t flow, struct jflow *f, bool new_conn)
{
    const struct flow *c = &j->flow[flow];
    /* the first packets may have been lost before the tap: `p` need not have the first PSN */
    bool from_start = !new_conn && c->have_psn && psn_in(p->bth.psn, c->psn, TRACK_SENT);
    const struct conn_params *k = &c->params;
    int timeout = k->timeout_known == PARAM_STATED ? k->timeout : j->o.ack_timeout,
        retries = k->retry_known == PARAM_STATED ? k->retry_cnt : j->o.retry_cnt;
    const struct shadow_params r = {
        .service = p->bth.opcode >> 5,
        .timeout = timeout > 0 ? (uint8_t)timeout : 0,
        .retry_cnt = retries >= 0 ? (uint8_t)retries : UINT8_MAX,
        .rnr_retry = k->have_rnr ? k->rnr_retry : 7,
        .depth = k->have_depth ? k->depth : UINT8_MAX,
        .rxe = j->o.profile == PROFILE_RXE,
        .complete = judge_is_complete(j),
        .from_start = from_start,
        .pmtu = f->dir->pmtu,
        .psn = from_start ? c->psn : p->bth.psn,
        .thorough = j->o.thorough,
    };

    shadow_begin(f->shadow, &r);
}

bool judge_begin(struct judge *j, const struct event *e, struct jflow *f)
{
    f->shadow = shadow_new(j->room);
    if (!f->shadow || !history_begin(j, f, e->p->bth.psn, e->h->from_start)) {
        shadow_free(f->shadow);
        f->shadow = NULL;
        return false;
    }
    f->dir = e->h;
    f->mid_stream = !e->h->from_start;
    begin_replicas(j, e->p, e->flow, f, false);
    pending_first_request(j, e->p, e->flow);
    return true;
}

#define PATH_PROVED 16 /* requests along a guessed path, until they certainly are those of this flow */

/* The requester has migrated: its retry count is reset, and the alternate path may have another ACK timeout. */
static void begin_path(const struct judge *j, uint32_t flow, struct jflow *f)
{
    const struct conn_params *k = &j->flow[flow].params;
    struct requester *r = &f->shadow->req.r;

    r->retry_left = (uint8_t)min_u32(r->p.retry_cnt + 1u, UINT8_MAX);
    if (k->timeout_known == PARAM_STATED)
        r->p.timeout = k->timeout;
    if (conn_path_is_guessed(j->conns, flow))
        f->sure_from = f->packets + PATH_PROVED;
}

/* --- Another connection of the same queue pairs ----------------------------------------------- */

/* The message with which the sender of the requests of `flow`, or else its peer, has closed the connection. */
static const struct cm_closed *closed_of(const struct judge *j, uint32_t flow)
{
    const struct cm_closed *own = &j->flows[flow].closed;
    uint32_t peer = j->flow[flow].peer;

    return own->frame || peer == FLOW_NONE ? own : &j->flows[peer].closed;
}

/* True if the sender of the requests of `a`, or its peer, has closed the connection, and the request is no late one of
 * that connection. */
static bool follows_close(const struct judge *j, const struct judged *a)
{
    const struct cm_closed *k = closed_of(j, a->flow);
    bool elsewhere = a->as == SEEN_GAP || a->as == SEEN_LATE || a->as == SEEN_OLD;

    return k->frame && (elsewhere || a->p->frame->ts - k->ts > CLOSED_FOR);
}

/* True if a requester sends the request either because the response to it was lost, or as one of the first of a new
 * connection: it was answered in full, or its PSN is before the first one seen. */
static bool may_begin_new_conn(const struct judged *a)
{
    const struct req_dir *h = a->h;
    uint32_t psn = a->p->bth.psn;
    const struct read_req *k = req_dir_read(a->h, psn, 0);
    bool behind = a->as == SEEN_AGAIN || a->as == SEEN_LATE || a->as == SEEN_OLD;

    return behind && !(k && !k->answered) &&
           ((h->have_una && psn_diff(psn, h->una) < 0) || psn_diff(psn, h->start) < 0);
}

#define LEAP 65536 /* PSNs; a capture that misses so many may have missed the end of a connection, and the next REQ */

static bool leaps(const struct judged *a)
{
    uint32_t psn = a->p->bth.psn;

    return (a->as == SEEN_GAP && psn_diff(psn, a->h->next) >= LEAP) ||
           (a->as == SEEN_OLD && psn_diff(psn, a->h->start) <= -LEAP);
}

/* True if nothing tells a new connection from skipped PSNs: of RC a response may, UC has none. */
static bool may_leap(const struct judge *j, const struct judged *a)
{
    return leaps(a) && (!judge_is_complete(j) || a->h->service == SVC_UC);
}

/* Note that a new connection of the same queue pairs may have begun unnoticed: neither CM nor a jump of the PSN showed
 * it. */
static void note_another(const struct judge *j, const struct judged *a)
{
    struct another *n = &a->f->another;

    if (follows_close(j, a))
        *n = (struct another){.is = ANOTHER_LIKELY};
    else if (n->is != ANOTHER_LIKELY && may_leap(j, a))
        *n = (struct another){.is = ANOTHER_LIKELY, .leapt = true, .end = psn_add(a->p->bth.psn, PSN_HALF / 2)};
    else if (n->is == ANOTHER_NO && may_begin_new_conn(a))
        *n = (struct another){.is = ANOTHER_MAYBE, .end = a->h->next};
    n->msgs += n->is != ANOTHER_NO && a->p->op->flags & OPF_START;
}

/* Request `p` may be the first one of a new connection: reset the state of the old one. */
static void begin_new_conn(struct judge *j, const struct pkt *p, uint32_t flow, struct jflow *f)
{
    const struct flow *c = &j->flow[flow];

    begin_replicas(j, p, flow, f, true);
    history_begin(j, f, c->have_psn && p->bth.psn == c->psn ? p->bth.psn : history_new_psn(f, p->bth.psn), false);
    f->ack_wait.frame = 0;
    f->is_refused = false;
    f->has_gap = false;
    f->another.leapt = false;
    f->another.is = closed_of(j, flow)->frame ? ANOTHER_LIKELY : ANOTHER_NO; /* it ended the old connection */
    f->closed.frame = 0;
    f->mtu.have = f->mtu.pending = false;
}

void judge_follow_conn(struct judge *j, const struct judged *a, bool moved)
{
    struct jflow *f = a->f;

    if (moved)
        begin_path(j, a->flow, f);
    if (a->as == SEEN_RESTART)
        begin_new_conn(j, a->p, a->flow, f);
    else if (f->shadow->req.u.pmtu_unknown && a->h->pmtu)
        shadow_learn_pmtu(f->shadow, a->h->pmtu);
    if (a->as != SEEN_NEW || f->another.is || f->closed.frame)
        note_another(j, a);
}

void judge_another_answered(struct judge *j, const struct judged *a)
{
    struct another *n = &a->f->another;
    const struct pkt *p = a->p;
    uint32_t known = a->f->shadow->rsp.r.msn_lo;

    (void)j;
    if (!(p->have & H_AETH))
        return;
    if (psn_diff(p->bth.psn, n->end) >= 0 || psn_diff(p->aeth.msn, n->msgs & PSN_MASK) > 0)
        *n = (struct another){0}; /* a new connection counts its messages from 1 */
    else if (known && psn_diff(p->aeth.msn, known) < 0)
        *n = (struct another){.is = ANOTHER_LIKELY};
}
