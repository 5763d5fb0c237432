/* layer 2b (account): where the time of each direction of requests went: which responses to READs and atomics the
 * requester accepts. */
#include "dissect/pkt.h"
#include "src/account/timeline_impl.h"
#include "src/conn/packet.h"

bool timeline_skips(const struct direction *d, const struct event *e)
{
    /* an ACK is no response to a READ or atomic: with the PSN of one it skips that, too */
    uint32_t behind =
        e->p->have & H_ATOMICACKETH || !(e->p->op->flags & OPF_ACK) ? e->p->bth.psn : response_proves(e->p);
    const struct read_req *a;

    if (!d->have_rsp || psn_diff(behind, d->rsp_next) <= 0)
        return false;
    a = req_dir_read(e->h, d->rsp_next, 0);
    return a && (!a->answered || a->early) && psn_diff(e->p->bth.psn, a->psn) >= 0;
}

void timeline_pass_others(struct direction *d, const struct event *e)
{
    const struct sent *s;

    for (; psn_diff(e->p->bth.psn, d->rsp_next) > 0; d->rsp_next = psn_add(d->rsp_next, 1)) {
        s = req_dir_sent(e->h, d->rsp_next);
        if (!s || opcode_table[s->opcode].flags & (OPF_READ_REQ | OPF_ATOMIC_REQ))
            return;
    }
}

/* Whether response `e` was already in flight at the last go-back-N: it arrives sooner than a round trip after the
 * retransmission, or after the latest copy of its own request. */
static bool is_under_way(const struct event *e)
{
    const struct req_dir *h = e->h;
    const struct sent *s = psn_diff(e->p->bth.psn, h->back_psn) > 0 ? req_dir_sent(e->h, e->p->bth.psn) : NULL;
    ns_t now = e->p->frame->ts, again;

    if (req_dir_is_under_way(h, e->p))
        return true;
    if (!s)
        return false;
    again = e->p->op->flags & OPF_ACK || s->ts < h->back_ts ? h->back_ts : s->ts; /* an ACK may answer any request */
    return now - again < h->rtt - 1 && now - s->ts_first >= h->rtt;
}

void timeline_note_skip(struct direction *d, const struct event *e, ns_t now)
{
    if (d->stuck.open || !timeline_skips(d, e) || is_under_way(e))
        return;
    d->stuck.open = true;
    d->stuck.ignored = d->by_nak;
    d->stuck.ts = now;
    d->stuck.frame = frame_u32(e->p);
}

/* The skipped response arrives, so it was reordered: note those that overtook it, from `psn` on. */
static void note_overtaken(struct direction *d, uint32_t psn)
{
    unsigned i = d->n_overtaken++ % OVERTAKEN;

    d->overtaken[i].psn = psn;
    d->overtaken[i].behind = d->rsp_high;
    d->overtaken[i].frame = d->stuck.frame;
    d->overtaken[i].ts = d->stuck.ts;
}

void timeline_note_read_response(struct direction *d, const struct event *e)
{
    uint32_t behind = psn_add(e->p->bth.psn, 1);
    bool under_way = is_under_way(e);
    bool dropped = under_way && psn_diff(e->p->bth.psn, d->rsp_next) > 0;

    if (d->stuck.open && e->p->bth.psn == d->rsp_next) {
        d->stuck.open = false;
        /* else it is a repeated response: those that skipped it were sent before and dropped */
        if (!d->resend.responses && !d->stuck.ignored) {
            note_overtaken(d, behind);
            behind = d->rsp_high;
        }
    }
    dropped |= d->stuck.open;
    if (!d->have_rsp || (!dropped && psn_diff(behind, d->rsp_next) > 0)) {
        d->rsp_next = behind;
        d->resend.answered = true;
        d->backs = 0;
        d->by_nak = false;
    }
    if (!d->have_rsp || psn_diff(behind, d->rsp_high) > 0)
        d->rsp_high = behind;
    d->have_rsp = true;
    d->resend.answered |= d->resend.back && e->p->bth.psn == psn_add(d->rsp_latest, 1); /* the responder repeats them */
    d->resend.back = !under_way && psn_diff(e->p->bth.psn, d->rsp_latest) < 0;
    d->rsp_latest = e->p->bth.psn;
    if (d->resend.responses && d->resend.answered) /* responses still in flight since before are dropped */
        d->resend.responses = psn_diff(behind, d->resend.rsp) < 0;
}
