/* layer 2b (conn): how often a requester has retried, and whether it has given up. */
#include "src/conn/retries.h"

#include "src/conn/packet.h"
#include "src/transport/verbs.h"

#define STOPPED_AFTER 3 /* a requester that sends nothing for this many times its last ACK timeout has given up */

uint32_t retries_used(const struct observer *w, const struct req_dir *h)
{
    return min_u32(h->retries, observer_tries(w, h->flow)->n);
}

/* Whether the retries of requests timed out, in a capture without any response to compare with: the tap sees the other
 * direction, the silence is at least an ACK timeout, and no new request followed. */
static bool is_unanswered(const struct observer *w, const struct req_dir *h, const struct conn_params *c, ns_t silence)
{
    bool known = c->timeout_known && c->timeout;

    return silence >= timer_earliest(ack_timeout(known ? c->timeout : 1)) &&
           observer_tries(w, h->flow)->next == h->next && observer_sees_responses(w, h->flow);
}

bool retries_gave_up(const struct observer *w, const struct req_dir *h, const struct conn_params *c, ns_t silence,
                     ns_t now)
{
    uint32_t tries = retries_used(w, h);

    if (!tries || (!h->rsp_packets && !is_unanswered(w, h, c, silence)))
        return false;
    if (now > h->last_ts && now - h->back_ts < timer_earliest(silence))
        return false; /* others were captured on, and the ACK timer of the last try had not expired */
    if (tries >= RETRIES_MAX || (c->retry_known == PARAM_STATED && tries >= c->retry_cnt))
        return true;
    if (silence <= 0)
        return false;
    if (c->retry_known && tries >= c->retry_cnt && now - h->last_ts >= timer_earliest(silence))
        return true; /* the ACK timer expired again */
    return now - h->last_ts > STOPPED_AFTER * silence;
}

bool retries_spent(const struct observer *w, const struct req_dir *h, const struct conn_params *c)
{
    const struct tries *t = observer_tries(w, h->flow);

    return t->n && t->n >= (c->retry_known ? c->retry_cnt : RETRIES_MAX) && t->next == h->next;
}

bool retries_timed_out(const struct conn_params *c, ns_t waited, bool closed)
{
    ns_t timer = ack_timeout(c->timeout);

    return c->timeout_known && c->timeout && c->retry_known && c->retry_cnt == 0 &&
           waited >= (closed ? timer_earliest(timer) : timer_latest(timer));
}

#define RNR_TICKS (10 * NS_PER_MS) /* a host that counts in ticks may wait so much longer than the RNR timer */
#define RNR_TIMES 4                /* and no host waits for so many times the RNR timer */
#define NEAR_CODE 16               /* an ACK timer that expires differs from its code by at most such a part */

#define RNR_FOR_EVER 7 /* RNR retry count 7: no limit */

bool retries_left_rnr(const struct conn_params *c, const struct req_dir *h)
{
    return c->have_rnr && (c->rnr_retry == RNR_FOR_EVER || h->rnr.times <= c->rnr_retry);
}

bool retries_outlast_rnr(const struct req_dir *h, ns_t now)
{
    return h->rnr.have && now - h->rnr.ts >= RNR_TICKS + RNR_TIMES * rnr_time(aeth_value(h->rnr.syndrome));
}

ns_t retries_timer_of_rnr(const struct req_dir *h, unsigned timeout, ns_t now)
{
    ns_t waited = now - h->rnr.ts, timer = ack_timeout(timeout);

    if (!retries_outlast_rnr(h, now))
        return 0;
    if (timeout)
        return waited >= timer_earliest(timer) && waited <= timer_latest(timer) + RNR_TICKS ? timer : 0;
    for (unsigned code = 1; code <= 31; code++) {
        timer = ack_timeout(code);
        if (waited >= timer - timer / NEAR_CODE && waited <= timer + timer / NEAR_CODE)
            return timer;
    }
    return 0;
}
