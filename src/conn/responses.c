/* layer 2b (conn): evidence about the requests of one direction: what responses prove. */
#include "dissect/pkt.h"
#include "src/conn/packet.h"
#include "src/conn/requests_impl.h"

#define COPIES 8 /* a READ and its retransmissions: at most so many are examined, the latest */

static void nak_put(struct nak *n, const struct pkt *p)
{
    bool again = n->have && n->psn == p->bth.psn;

    if (again && !n->resent && n->icrc == icrc_of(p) && p->frame->ts - n->ts < DUPLICATE_WITHIN)
        return; /* a duplicate: its receiver acted on the first one */
    n->times = again ? n->times + 1 : 1;
    if (!again)
        n->ts_first = p->frame->ts;
    n->have = true;
    n->resent = false;
    n->syndrome = p->aeth.syndrome;
    n->psn = p->bth.psn;
    n->msn = p->aeth.msn;
    n->frame = frame_u32(p);
    n->icrc = icrc_of(p);
    n->ts = p->frame->ts;
}

static void take_nak(struct req_dir *h, const struct pkt *p)
{
    if (!h->seq.have || h->seq.resent || psn_diff(p->bth.psn, h->seq_low) < 0)
        h->seq_low = p->bth.psn;
    if (h->have_next && psn_in(h->gbn, p->bth.psn, TRACK_SENT))
        h->gbn = p->bth.psn; /* a NAK names the PSN that the responder expects */
    if (response_type(p) == AETH_RNR) {
        h->rnr_naks++;
        nak_put(&h->rnr, p);
    } else if (aeth_value(p->aeth.syndrome) == NAK_PSN_SEQ) {
        h->seq_naks++;
        nak_put(&h->seq, p);
    } else {
        h->fatal_naks++;
        nak_put(&h->fatal, p);
    }
}

/* A plain ACK; `a` is the READ or atomic with its PSN, NULL: none. */
static void take_ack(struct req_dir *h, const struct pkt *p, const struct read_req *a)
{
    h->plain = a && !a->answered;
    h->acks++;
    if (!h->have_ack || psn_diff(p->bth.psn, h->ack_psn) >= 0) {
        h->have_ack = true;
        h->ack_psn = p->bth.psn;
        h->ack_msn = p->aeth.msn;
        h->ack_frame = frame_u32(p);
    }
}

/* READ or atomic `a` completed only after a later response: the requester has dropped the responses to later requests
 * that arrived before this one. */
static void take_late(struct req_dir *h, struct read_req *a)
{
    h->late_end = psn_add(a->psn, a->span);
    h->late_rsps = h->rsp_packets;
    a->early = false;
    for (uint32_t i = 0; i < h->read_slots; i++) {
        struct read_req *b = &h->reads[i];
        if (!b->span || !b->answered || psn_diff(b->psn, a->psn) <= 0)
            continue;
        b->early = true;
        b->got = 0; /* from now on the repeated ones count */
    }
}

bool req_dir_is_under_way(const struct req_dir *h, const struct pkt *p)
{
    bool goes_on = !(p->op->flags & OPF_ACK) && p->bth.psn == h->proves && p->bth.psn != h->back_psn;

    return h->under_way && (goes_on || p->frame->ts - h->back_ts < h->rtt - 1 - h->rtt / 8); /* 1: no time at all */
}

const struct read_req *req_dir_answered(struct req_dir *h, const struct pkt *p)
{
    uint32_t at = 0;
    const struct read_req *latest = req_dir_read_before(h, p->bth.psn, &at), *a = latest;

    for (unsigned n = 1; a && a->rsp_last != frame_u32(p) && n < COPIES; n++)
        a = req_dir_read_before(h, p->bth.psn, &at);
    return a ? a : latest;
}

/* A READ response or ATOMIC ACK; `a` is the latest READ or atomic with its PSN, number `at`; NULL: none. */
static void take_answer(struct req_dir *h, const struct pkt *p, struct read_req *a, uint32_t at)
{
    bool behind = h->have_una && psn_diff(h->proves, h->una) < 0;
    uint32_t psn = p->bth.psn;

    for (unsigned n = 1; a && n <= COPIES; n++) {
        if (LIKELY(!h->under_way || !a->again || a->replay || a->ts < h->back_ts)) {
            a->rsp_first = a->rsp_first ? a->rsp_first : frame_u32(p);
            a->rsp_last = frame_u32(p);
        }
        if (psn == psn_add(a->psn, a->got))
            a->got++;
        if (a->got == a->span && !a->answered) {
            a->answered = true;
            a->done = h->rsp_packets;
            if (UNLIKELY(behind))
                take_late(h, a);
            if (p->have & H_ATOMICACKETH)
                a->orig = p->atomicacketh.orig;
        } else if (UNLIKELY(behind && a->early) && a->got == a->span) {
            take_late(h, a);
        }
        a = req_dir_read_before(h, psn, &at);
    }
}

/* A READ is complete, too, if its READ retry for the rest is. */
static void settle_reads(struct req_dir *h)
{
    for (uint32_t i = 1; i <= h->read_slots; i++) {
        struct read_req *a = req_dir_latest_read(h, i), *rest;
        if (!a->span)
            return;
        if (a->answered || !a->got)
            continue;
        rest = req_dir_read(h, psn_add(a->psn, a->got), 0);
        if (rest && rest != a && rest->again && rest->answered && rest->psn == psn_add(a->psn, a->got)) {
            a->answered = true;
            a->done = rest->done;
        }
    }
}

/* Whether the MSN of the first response counts no more messages than were seen up to its PSN: the capture has the first
 * request. */
static bool begins_here(struct req_dir *h, const struct pkt *p, const struct read_req *a)
{
    const struct sent *s = req_dir_sent(h, a ? a->psn : p->bth.psn);

    return h->first_is_start && s && p->aeth.msn <= s->msg;
}

/* *shortest becomes `took` if that is shorter; equal time stamps count as 1 ns. */
static inline void note_shortest(ns_t *shortest, ns_t took)
{
    if (LIKELY(took < 0 || (*shortest && took >= *shortest)))
        return;
    *shortest = took ? took : 1;
}

/* `a`: the READ or atomic with the PSN of the response, NULL: none. */
static inline void note_rtt(struct req_dir *h, const struct pkt *p, const struct read_req *a)
{
    const struct sent *s = req_dir_sent(h, p->bth.psn);
    /* a READ retry for the rest of a READ is sent once, too, but what comes may be part of the first execution */
    bool may_answer_retry = h->again && a && a->again;

    if (!s)
        return;
    h->rtt_latest = s->copies == 1 ? p->frame->ts - s->ts : 0;
    note_shortest(&h->rtt_first, p->frame->ts - s->ts_first);
    if (s->copies == 1 && !may_answer_retry)
        note_shortest(&h->rtt, p->frame->ts - s->ts);
}

void req_dir_response(struct req_dir *h, const struct pkt *p)
{
    uint32_t proves = response_proves(p), at = 0;
    struct read_req *a = req_dir_read_before(h, p->bth.psn, &at);

    if (UNLIKELY(h->began == BEGAN_UNKNOWN && p->have & H_AETH))
        h->began = begins_here(h, p, a) ? BEGAN_SEEN : BEGAN_BEFORE;
    if (h->retries && psn_diff(proves, h->back_psn) > 0)
        h->retries = 0; /* the response to the latest retry; those to earlier ones may have been lost after the tap */
    h->under_way = req_dir_is_under_way(h, p);
    note_rtt(h, p, a);
    h->rsp_packets++;
    h->rsp_inside += p->op->flags & OPF_READ_RESP && !(p->op->flags & OPF_START);
    h->rsp_bytes += p->payload_len;
    h->rsp_ts = p->frame->ts;
    h->proves = proves;
    if (h->have_una && h->una == proves)
        h->una_rsps = h->rsp_packets;
    if (!h->first_rsp_frame) {
        h->first_rsp_frame = frame_u32(p);
        h->first_rsp_ts = p->frame->ts;
    }
    if (UNLIKELY(h->have_una && psn_diff(proves, h->una) < 0))
        h->disorder = true;
    if (p->op->flags & OPF_ACK) {
        if (!(p->have & H_AETH))
            return;
        if (response_type(p) == AETH_ACK)
            take_ack(h, p, a);
        else
            take_nak(h, p);
    } else {
        take_answer(h, p, a, at);
        if (UNLIKELY(h->again) && p->op->flags & OPF_END)
            settle_reads(h);
    }
    if (h->have_next && (!h->have_una || psn_diff(proves, h->una) > 0) && psn_diff(proves, h->next) <= 0) {
        h->una = proves;
        h->have_una = true;
        h->una_frame = frame_u32(p);
        h->una_rsps = h->rsp_packets;
        h->una_ts = p->frame->ts;
        h->retries = 0;
        h->plain = h->plain && p->op->flags & OPF_ACK && response_type(p) == AETH_ACK;
        if (UNLIKELY(psn_diff(h->una, h->contig) > 0)) {
            h->contig = h->una;
            req_dir_advance_contig(h);
        }
        if (UNLIKELY(psn_diff(h->una, h->gbn) > 0))
            h->gbn = h->una;
    }
    req_dir_settle(h);
}
