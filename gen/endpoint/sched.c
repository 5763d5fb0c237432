/* layer 3 (endpoint): scheduling: a list of queue pairs that may have something to send, and a heap of timers. */
#include "gen/endpoint/endpoint_impl.h"

void ep_ready(struct ep_qp *q)
{
    struct endpoint *ep = q->ep;

    if (UNLIKELY(q->parked && q->cnps_due)) /* a CNP is of another class */
        ep_unready(q);
    if (q->ready)
        return;
    q->ready = true;
    q->next_ready = NULL;
    if (ep->ready_tail)
        ep->ready_tail->next_ready = q;
    else
        ep->ready_head = q;
    ep->ready_tail = q;
}

static bool is_stopped(const struct endpoint *ep, const struct path *path)
{
    return ep->stopped >> frame_class(path->head, path->head_len) & 1;
}

/* Whether the queue pair must not send, a CNP that is due excepted; it then waits aside. */
static bool park(struct endpoint *ep, struct ep_qp *q, ns_t now)
{
    if (LIKELY(!ep->stopped) || !is_stopped(ep, &q->path) || (q->cnps_due && q->cnp_at <= now && ep_cnp_may_go(q)))
        return false;
    q->next_ready = ep->parked;
    ep->parked = q;
    q->parked = true;
    return true;
}

static struct ep_qp *pop_ready(struct endpoint *ep, ns_t now)
{
    struct ep_qp *q;

    do {
        q = ep->ready_head;
        if (!q)
            return NULL;
        ep->ready_head = q->next_ready;
        if (!ep->ready_head)
            ep->ready_tail = NULL;
    } while (park(ep, q, now));
    q->ready = false;
    return q;
}

void ep_stop(struct endpoint *ep, uint8_t classes)
{
    struct ep_qp *q = ep->parked, *first = NULL;

    if (LIKELY(ep->stopped == classes))
        return;
    ep->stopped = classes;
    ep->parked = NULL;
    while (q) { /* in the order in which they were parked */
        struct ep_qp *next = q->next_ready;
        q->next_ready = first;
        first = q;
        q = next;
    }
    while (first) {
        q = first;
        first = q->next_ready;
        q->ready = q->parked = false;
        ep_ready(q);
    }
}

void ep_unready(struct ep_qp *q)
{
    struct endpoint *ep = q->ep;
    struct ep_qp *p, *last = NULL;

    if (!q->ready)
        return;
    for (struct ep_qp **link = &ep->parked; *link; link = &(*link)->next_ready)
        if (*link == q) {
            *link = q->next_ready;
            q->ready = q->parked = false;
            return;
        }
    for (struct ep_qp **link = &ep->ready_head; *link; link = &(*link)->next_ready)
        if (*link == q) {
            *link = q->next_ready;
            break;
        }
    for (p = ep->ready_head; p; p = p->next_ready)
        last = p;
    ep->ready_tail = last;
    q->ready = false;
}

int ep_tx(struct endpoint *ep, uint8_t *buf, uint32_t cap, ns_t now)
{
    struct ep_qp *q;
    int n;

    while ((q = pop_ready(ep, now))) {
        n = ep_tx_response(q, buf, cap, now);
        if (!n)
            n = ep_tx_request(q, buf, cap, now);
        ep_check_overflow(q, now);
        if (n)
            ep_ready(q);
        if (n > 0) {
            ep->sent.qp = q->handle;
            ep_count_tx(q, (uint32_t)n);
        } else if (!n) {
            ep_timer(q, ep_qp_deadline(q));
        }
        if (n)
            return n;
    }
    return 0;
}

/* --- Timers may be set too early: first_due() then moves them to the deadline. ------------------ */

void ep_timer_remove(struct ep_qp *q)
{
    timer_stop(&q->ep->timers, &q->timer);
}

void ep_timer(struct ep_qp *q, ns_t when)
{
    if (when == NS_NEVER || (q->timer.place && q->timer.when <= when))
        return;
    timer_set(&q->ep->timers, &q->timer, when);
}

static ns_t earlier(ns_t a, ns_t b)
{
    return a < b ? a : b;
}

/* When the responder sends its next delayed response; NS_NEVER: none is delayed. An ACK goes behind a READ response
 * that congestion control holds back. */
static ns_t answer_deadline(const struct ep_qp *q)
{
    ns_t t = q->qp.rsp.ack_due && !q->data_waits ? q->ps.ack_due : NS_NEVER;

    if (q->ps.answer_due != NS_NEVER && q->qp.rsp.res_next != q->qp.rsp.res_tail)
        t = earlier(t, q->ps.answer_due);
    if (UNLIKELY(q->ps.slow_until != 0))
        return q->ps.slow_until;
    return UNLIKELY(q->mute) ? q->mute_until : t;
}

ns_t ep_qp_deadline(const struct ep_qp *q)
{
    ns_t t = NS_NEVER;

    if (q->qp.state == QPS_RTS || q->qp.state == QPS_SQD) {
        t = req_expiry(&q->qp.req);
        if (q->paced && !q->cc)
            t = earlier(t, q->ps.next_send);
    }
    if (qp_can_receive(&q->qp))
        t = earlier(t, answer_deadline(q));
    if (UNLIKELY(q->cc != NULL))
        t = earlier(t, ep_cc_deadline(q));
    if (UNLIKELY(q->cnps_due != 0))
        t = earlier(t, q->cnp_at);
    if (UNLIKELY(q->stray_at != 0))
        t = earlier(t, q->stray_at);
    if (UNLIKELY(q->ep->cfg.profile == EP_NV))
        t = earlier(t, ep_reorder_deadline(q));
    return earlier(t, q->refill_at);
}

/* The queue pair whose deadline is earliest; a timer that is set too early is moved to the deadline. NULL: none. */
static struct ep_qp *first_due(struct endpoint *ep)
{
    struct timer *first;

    while ((first = timers_first(&ep->timers))) {
        struct ep_qp *q = TIMER_OF(first, struct ep_qp, timer);
        ns_t t = ep_qp_deadline(q);
        if (t == first->when)
            return q;
        ep_timer_remove(q);
        ep_timer(q, t);
    }
    return NULL;
}

ns_t ep_next_expiry(struct endpoint *ep)
{
    struct ep_qp *q = first_due(ep);

    return earlier(q ? q->timer.when : NS_NEVER, ep_grants_next(ep));
}

static void qp_expire(struct ep_qp *q, ns_t now)
{
    struct requester *r = &q->qp.req;
    struct effects e = {0};

    if (q->refill_at <= now)
        ep_refill(q, now);
    if (UNLIKELY(q->cc != NULL))
        ep_cc_expire(q, now);
    if (q->ps.slow_until <= now)
        q->ps.slow_until = 0;
    if (UNLIKELY(q->ep->cfg.profile == EP_NV))
        ep_reorder_expire(q, now);
    if (qp_can_send(&q->qp))
        e = req_expire(r, now);
    if (e.reason == WHY_TIMEOUT) {
        q->st.local_ack_timeout_err++;
        q->ep->st.local_ack_timeout_err++;
    }
    if (UNLIKELY(e.flags & EFF_ERROR) && ep_migrate_instead(q, &e, now))
        e = req_expire(r, now);
    ep_tell_requester(q, &e, now);
    if (e.flags & EFF_ERROR) {
        if (ep_one_more_try(q, &e))
            req_expire(r, now);
        else
            ep_qp_fail(q, (enum wc_status)e.status, now);
    }
    ep_ready(q);
}

void ep_expire(struct endpoint *ep, ns_t now)
{
    struct ep_qp *q;

    while ((q = first_due(ep)) && q->timer.when <= now) {
        ep_timer_remove(q);
        qp_expire(q, now);
    }
    ep_grants_expire(ep, now);
}
