/* layer 2b (conn): why a requester went back. */
#include "src/conn/go_back.h"

#include "dissect/pkt.h"
#include "src/conn/requests_impl.h"
#include "src/transport/verbs.h"

#define LONG_AFTER (40 * NS_PER_MS) /* a requester acts on an implied NAK sooner than this, at any round-trip time */

const char *why_back_str(enum why_back w)
{
    static const char *const names[] = {"", "sequence NAK", "implied NAK", "RNR NAK", "no answer"};
    return names[w];
}

/* Whether a response skipped response PSN `psn` of READ or atomic `a` after its latest request. */
static bool was_skipped_by_response(const struct req_dir *h, const struct read_req *a, uint32_t psn)
{
    return (h->una_rsps > a->rsps && psn_diff(h->una, psn) > 0) ||
           (h->rsp_packets > a->rsps && psn_diff(h->proves, psn) > 0);
}

/* Whether the requester ignored the latest response. It acts on an implied NAK at once: after half an ACK timeout
 * without a reaction, only the timeout explains a retransmission. */
static bool ignored_response(const struct req_dir *h, ns_t now)
{
    return now - h->rsp_ts >= ack_timeout(h->timeout) / 2;
}

/* Whether the ACK timer cannot have expired between `since` and `now`. If the timeout is not known, the shortest one
 * (code 1) is assumed. */
static bool no_timer_since(const struct req_dir *h, ns_t since, ns_t now)
{
    return now - since < ack_timeout(h->timeout ? h->timeout : 1) / 2;
}

/* Whether `psn` belongs to the go-back-N in progress, and was reordered: it was not seen since the requester went back,
 * and no timer can have expired since. */
static bool reordered_in_go_back(struct req_dir *h, uint32_t psn, ns_t now)
{
    const struct sent *s = req_dir_sent(h, psn);

    return s && s->ts < h->back_ts && no_timer_since(h, h->back_ts, now);
}

/* Whether a sequence NAK waits for its retransmission. */
static bool is_naked(const struct req_dir *h)
{
    return h->seq.have && !h->seq.resent;
}

/* Whether the requester cannot have waited for the latest RNR NAK when it sends READ or atomic `psn` again, one before
 * the NAK's PSN: the RNR timer has not expired. It dropped the NAK, as the response to that request was missing. */
static bool is_before_rnr(struct req_dir *h, uint32_t psn, ns_t now)
{
    return psn_diff(psn, h->rnr.psn) < 0 && req_dir_read(h, psn, 0) &&
           now - h->rnr.ts < rnr_time(aeth_value(h->rnr.syndrome)) / 2;
}

/* Whether the RNR NAK that waits for its retransmission demands `psn`: at its PSN or at the start of its message; or
 * after it, if it has been acknowledged since, and no sequence NAK demands that. What was first sent behind the NAK
 * shows that the requester did not wait. */
static bool is_for_rnr(struct req_dir *h, uint32_t psn, ns_t now)
{
    const struct sent *s = req_dir_sent(h, psn);

    if (!h->rnr.have || h->rnr.resent || is_before_rnr(h, psn, now))
        return false;
    if (psn_in(h->rnr.psn, psn, TRACK_SENT))
        return true;
    if (!h->have_una || h->una != psn || psn_diff(psn, h->rnr.psn) <= 0 || (s && s->ts_first > h->rnr.ts))
        return false;
    return !is_naked(h) || h->seq.psn != psn;
}

/* The reason that the evidence about requests and responses gives. */
static enum why_back why_by_evidence(struct req_dir *h, uint32_t psn, ns_t now)
{
    const struct read_req *a = req_dir_read(h, psn, 0);
    bool nak = is_naked(h), is_una = h->have_una && h->una == psn;

    if (is_for_rnr(h, psn, now))
        return BACK_RNR;
    if (nak && (h->seq.psn == psn || h->seq_low == psn || (a && psn_diff(psn, h->seq.psn) < 0)))
        return BACK_SEQ_NAK;
    if (nak && is_una && psn_diff(psn, h->seq.psn) > 0)
        return BACK_SEQ_NAK; /* the NAK was for a PSN that has been acknowledged since */
    if (ignored_response(h, now))
        return BACK_SILENCE;
    if (nak && psn_in(psn, h->seq.psn, TRACK_SENT) && !req_dir_was_answered(h, h->seq.psn) &&
        no_timer_since(h, h->seq.ts, now))
        return BACK_SEQ_NAK; /* reordered: captured before the retransmission of the NAK's own PSN */
    if (a && !a->answered && h->have_una && was_skipped_by_response(h, a, psn))
        return BACK_IMPLIED;
    if (a && a->early && psn_diff(h->proves, psn) > 0)
        return BACK_IMPLIED; /* it dropped the early response, and got a later one instead of a copy */
    if (h->plain && is_una && h->rsp_packets > h->back_rsps)
        return BACK_IMPLIED;
    if (psn == h->late_end && h->late_rsps > h->back_rsps)
        return BACK_IMPLIED; /* the requester dropped the responses captured before that one */
    return reordered_in_go_back(h, psn, now) ? BACK_NONE : BACK_SILENCE;
}

/* Whether a sequence NAK for `psn` was open; it is closed now. `due`: the PSN that would have been next. */
static bool take_nak(struct go_backs *g, uint32_t psn, uint32_t due)
{
    for (unsigned i = 0; i < GO_BACK_NAKS; i++)
        if (g->naks[i].open && g->naks[i].psn == psn) {
            g->naks[i].open = false;
            g->taken = psn_diff(due, psn_add(psn, 1)) > 0 ? i + 1 : 0;
            g->due = due;
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

enum why_back go_back_why(struct go_backs *g, struct req_dir *h, const struct pkt *p)
{
    uint32_t psn = p->bth.psn;
    bool nak = take_nak(g, psn, h->cursor);
    enum why_back why = why_by_evidence(h, psn, p->frame->ts);

    if (nak && (why == BACK_SILENCE || why == BACK_NONE))
        why = BACK_SEQ_NAK;
    if (why == BACK_IMPLIED && !h->timeout && p->frame->ts - h->rsp_ts >= LONG_AFTER)
        why = BACK_SILENCE; /* its ACK timer expired; the timeout is not known */
    count_try(&g->tries, h, psn, why == BACK_SILENCE);
    return why;
}
