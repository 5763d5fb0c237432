/* layer 2b (conn): evidence about the requests of one direction: what the requests themselves prove. */
#include "dissect/pkt.h"
#include "fetch.h"
#include "src/conn/packet.h"
#include "src/conn/requests_impl.h"
#include "src/transport/verbs.h"

#include <stdlib.h>

#define SLOTS_MIN 16 /* slots for request packets, at first */
#define READS_MIN 8  /* likewise for READs and atomics, with the first of them */

/* An array of empty slots; NULL without memory. */
static struct sent *slots_new(uint32_t n)
{
    struct sent *s = malloc(n * sizeof *s);

    for (uint32_t i = 0; s && i < n; i++)
        s[i].psn = UINT32_MAX;
    return s;
}

static struct read_req no_read; /* the ring of a flow without READs and atomics; never written */

bool req_dir_init(struct req_dir *h, uint32_t flow)
{
    uint64_t restarts = h->restarts;
    struct room *room = h->room;

    memset(&h->next, 0, sizeof *h - offsetof(struct req_dir, next)); /* what is before it stays */
    h->flow = flow;
    h->restarts = restarts;
    h->room = room;
    if (!h->sent) {
        h->sent = slots_new(SLOTS_MIN);
        h->slots = SLOTS_MIN;
        h->reads = &no_read;
        h->read_slots = 1;
        return h->sent != NULL;
    }
    if (h->reads != &no_read)
        memset(h->reads, 0, h->read_slots * sizeof *h->reads);
    for (uint32_t i = 0; i < h->slots; i++)
        h->sent[i].psn = UINT32_MAX;
    return true;
}

void req_dir_end(struct req_dir *h)
{
    if (!h->sent)
        return;
    room_give(h->room, (h->slots - SLOTS_MIN) * sizeof *h->sent);
    free(h->sent);
    h->sent = NULL;
    if (h->reads == &no_read)
        return;
    room_give(h->room, (h->read_slots - READS_MIN) * sizeof *h->reads);
    free(h->reads);
}

/* Double the slots; PSNs in different slots stay in different slots. `outstanding`: else `s`, acknowledged, would be
 * replaced. False: there are TRACK_SENT slots already, or no room. */
static __attribute__((noinline)) bool slots_grow(struct req_dir *h, const struct sent *s)
{
    uint32_t slots = 2 * h->slots;
    bool outstanding = h->service != SVC_UC && !req_dir_was_answered(h, s->psn);
    struct sent *grown =
        slots <= TRACK_SENT && room_take(h->room, h->slots * sizeof *s, outstanding) ? slots_new(slots) : NULL;

    if (!grown) {
        h->replaced = true;
        return false;
    }
    for (uint32_t i = 0; i < h->slots; i++)
        if (h->sent[i].psn != UINT32_MAX)
            grown[h->sent[i].psn & (slots - 1)] = h->sent[i];
    free(h->sent);
    h->sent = grown;
    h->slots = slots;
    return true;
}

/* The slot for `psn`; with TRACK_SENT slots, or without room, it may hold another PSN, which is replaced. */
static inline struct sent *slot_for(struct req_dir *h, uint32_t psn)
{
    struct sent *s = &h->sent[psn & (h->slots - 1)];

    while (UNLIKELY(h->slots < TRACK_SENT && s->psn != UINT32_MAX && s->psn != psn) && slots_grow(h, s))
        s = &h->sent[psn & (h->slots - 1)];
    return s;
}

struct read_req *req_dir_read_before(struct req_dir *h, uint32_t psn, uint32_t *at)
{
    while (*at < h->read_slots) {
        struct read_req *a = req_dir_latest_read(h, ++*at);
        if (!a->span)
            return NULL;
        if (psn_in(psn, a->psn, a->span))
            return a;
        if (!a->again && !a->late && psn_diff(psn, a->psn) >= 0)
            return NULL; /* older requests have earlier PSNs */
    }
    return NULL;
}

struct read_req *req_dir_read(struct req_dir *h, uint32_t psn, unsigned nth)
{
    uint32_t at = 0;
    struct read_req *a = req_dir_read_before(h, psn, &at);

    while (a && nth--)
        a = req_dir_read_before(h, psn, &at);
    return a;
}

uint32_t req_dir_outstanding(struct req_dir *h, struct read_req **oldest)
{
    uint32_t n = 0;

    *oldest = NULL;
    for (uint32_t i = 1; i <= h->read_slots; i++) {
        struct read_req *a = req_dir_latest_read(h, i);
        if (!a->span)
            break;
        if (a->again || a->answered || (h->have_una && psn_diff(psn_add(a->psn, a->span), h->una) <= 0))
            continue;
        n++;
        *oldest = a;
    }
    return n;
}

uint32_t req_dir_outstanding_at(const struct req_dir *h, const struct read_req *a)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < h->read_slots; i++) {
        const struct read_req *o = &h->reads[i];
        n += o->span && psn_diff(o->psn, a->psn) <= 0 && !(o->answered && o->done <= a->rsps);
    }
    return n;
}

bool req_dir_was_hole(const struct req_dir *h, uint32_t psn, uint32_t *frame)
{
    for (uint32_t i = 0; i < TRACK_HOLES && i < h->holes_at; i++)
        if (h->holes[(h->holes_at - 1 - i) % TRACK_HOLES] == psn) {
            if (frame)
                *frame = h->hole_frames[(h->holes_at - 1 - i) % TRACK_HOLES];
            return true;
        }
    return false;
}

bool req_dir_has_psn(struct req_dir *h, uint32_t psn)
{
    const struct read_req *latest = req_dir_latest_read(h, 1);

    if (req_dir_sent(h, psn) || req_dir_read(h, psn, 0))
        return true;
    if (h->loose && latest->span && psn_in(psn, latest->psn, psn_span(latest->len, 256)))
        return true; /* a READ has at most one response for each 256 bytes */
    return h->have_next && psn_in(psn, h->start, (h->next - h->start) & PSN_MASK) &&
           psn_diff(h->next, psn) < TRACK_SENT;
}

uint32_t req_dir_span(const struct req_dir *h, const struct pkt *p)
{
    if (!(p->op->flags & OPF_READ_REQ) || !(p->have & H_RETH) || !h->pmtu)
        return 1;
    return psn_span(p->reth.dmalen, h->pmtu);
}

bool req_dir_is_unknown_read(const struct req_dir *h, const struct pkt *p)
{
    return p->op->flags & OPF_READ_REQ && !h->pmtu && p->reth.dmalen > 256;
}

void req_dir_set_pmtu(struct req_dir *h, uint32_t pmtu)
{
    const struct read_req *last;
    bool at_cursor;

    if (h->pmtu || pmtu < 256 || pmtu > UINT16_MAX || pmtu & (pmtu - 1))
        return;
    last = req_dir_latest_read(h, 1);
    at_cursor = last->span && last->opcode == OP_READ_REQUEST && h->cursor == psn_add(last->psn, 1);
    h->pmtu = (uint16_t)pmtu;
    h->loose = false;
    for (uint32_t i = h->read_slots; i > 0; i--) {
        struct read_req *a = req_dir_latest_read(h, i);
        uint32_t end;
        if (!a->span || a->opcode != OP_READ_REQUEST)
            continue;
        a->span = psn_span(a->len, pmtu);
        end = psn_add(a->psn, a->span);
        if (psn_diff(end, h->next) > 0)
            h->next = h->cursor = end;
        if (psn_in(h->contig, a->psn, a->span))
            h->contig = end;
        if (h->gbn != a->psn && psn_in(h->gbn, a->psn, a->span))
            h->gbn = end;
    }
    if (at_cursor)
        h->cursor = psn_add(last->psn, last->span); /* also if it is a retransmission */
}

/* The second byte of the BTH: SE, MigReq, pad count, version. */
static inline uint8_t bth_flags(const struct pkt *p)
{
    return (uint8_t)(p->bth.se << 7 | p->bth.migreq << 6 | p->bth.padcnt << 4 | p->bth.tver);
}

/* Its ninth byte: AckReq and reserved bits. */
static inline uint8_t bth_ackreq(const struct pkt *p)
{
    return (uint8_t)(p->bth.ackreq << 7 | p->bth.resv7);
}

/* Whether NAK `n` came after the latest copy of `s`, and names its PSN or one before it. */
static bool nak_covers(const struct nak *n, const struct sent *s)
{
    return n->have && psn_diff(n->psn, s->psn) <= 0 && n->ts >= s->ts;
}

/* Whether a later response skipped READ or atomic `s` after its latest copy: an implied NAK. If its requester dropped
 * the responses that came early, it is skipped when they are not repeated. */
static bool was_skipped(struct req_dir *h, const struct sent *s)
{
    const struct read_req *a = req_dir_read(h, s->psn, 0);
    bool by_latest = psn_diff(h->proves, s->psn) > 0 && h->rsp_ts >= s->ts && !h->under_way;
    bool by_una = h->have_una && psn_diff(h->una, s->psn) > 0 && h->una_ts >= s->ts;

    if (!a || (a->answered && !a->early))
        return false;
    return by_latest || (by_una && !a->early);
}

/* Whether a retransmission of `s` is due: a NAK that covers it came after its latest copy, or `s` continues a
 * go-back-N in progress, of which packets may have been lost before the tap: what is ahead there was not sent since the
 * requester went back. */
static bool retransmission_is_due(struct req_dir *h, const struct sent *s)
{
    int32_t ahead = psn_diff(s->psn, h->cursor);
    bool resumes = ((h->back || h->unsettled) && ahead >= 0) || (h->vague && !ahead);
    bool seq_open = !h->seq.resent || psn_diff(s->psn, h->cursor) >= 0;

    return resumes || (seq_open && nak_covers(&h->seq, s)) || (!h->rnr.resent && nak_covers(&h->rnr, s)) ||
           was_skipped(h, s);
}

enum seen_as req_dir_classify(struct req_dir *h, const struct pkt *p)
{
    int32_t d = psn_diff(p->bth.psn, h->next);
    const struct sent *s;

    if (UNLIKELY(!h->have_next))
        return SEEN_NEW;
    if (LIKELY(d == 0))
        return SEEN_NEW;
    if (d > TRACK_FAR || d < -TRACK_FAR || p->bth.opcode >> 5 != h->service)
        return SEEN_RESTART;
    if (d > 0)
        return h->loose && d < (1 << 16) ? SEEN_NEW : SEEN_GAP;
    s = req_dir_sent(h, p->bth.psn);
    if (!s && p->op->flags & OPF_READ_REQ && req_dir_read(h, p->bth.psn, 0))
        return SEEN_AGAIN; /* a READ retry for the rest of a READ */
    if (!s && h->replaced && d >= -TRACK_SENT && req_dir_was_answered(h, p->bth.psn))
        return SEEN_AGAIN; /* it is acknowledged, and no longer remembered */
    if (!s)
        return d < -TRACK_SENT ? SEEN_OLD : SEEN_LATE;
    h->identical = s->opcode == p->bth.opcode && s->len == (uint16_t)p->payload_len && s->ip_id == frame_ip_id(p) &&
                   s->icrc == icrc_of(p);
    if (h->identical && (s->ip_id || (p->frame->ts - s->ts < DUPLICATE_WITHIN && !retransmission_is_due(h, s))))
        return SEEN_COPY;
    if (req_dir_was_answered(h, p->bth.psn) && s->opcode != p->bth.opcode && !(p->op->flags & OPF_READ_REQ))
        return SEEN_RESTART;
    return SEEN_AGAIN;
}

/* Double the ring of READs and atomics, as long as there is room. */
static void reads_grow(struct req_dir *h)
{
    bool first = h->reads == &no_read;
    const struct read_req *oldest = req_dir_latest_read(h, h->read_slots);
    bool outstanding = !oldest->answered && !req_dir_was_answered(h, oldest->psn);
    uint32_t n = first ? READS_MIN : 2 * h->read_slots;
    struct read_req *grown = n > TRACK_READS ? NULL
                             : first || room_take(h->room, n / 2 * sizeof *grown, outstanding)
                                 ? calloc(n, sizeof *grown)
                                 : NULL;

    if (!grown)
        return;
    for (uint32_t i = 1; i <= h->read_slots && !first; i++)
        grown[(h->reads_at - i) & (n - 1)] = *req_dir_latest_read(h, i);
    if (!first)
        free(h->reads);
    h->reads = grown;
    h->read_slots = n;
}

static void read_put(struct req_dir *h, const struct pkt *p, uint32_t span)
{
    const struct read_req *latest, *before;
    struct read_req *a;
    bool late;

    if (h->reads == &no_read || req_dir_latest_read(h, h->read_slots)->span)
        reads_grow(h);
    if (h->reads == &no_read)
        return;
    before = req_dir_read(h, p->bth.psn, 0);
    latest = req_dir_latest_read(h, 1);
    late = latest->span && psn_diff(psn_add(p->bth.psn, span), h->next) < 0;
    a = &h->reads[h->reads_at++ & (h->read_slots - 1)];
    *a = (struct read_req){.psn = p->bth.psn,
                           .span = span,
                           .frame = frame_u32(p),
                           .ts = p->frame->ts,
                           .rsps = h->rsp_packets,
                           .opcode = p->bth.opcode & 31};
    a->replay = before != NULL && before != a && !before->again && before->answered;
    a->again = before != NULL && before != a;
    a->late = late;
    if (p->have & H_RETH) {
        a->va = p->reth.va;
        a->rkey = p->reth.rkey;
        a->len = p->op->flags & OPF_READ_REQ ? p->reth.dmalen : 0;
    } else if (p->have & H_ATOMICETH) {
        a->va = p->atomiceth.va;
        a->rkey = p->atomiceth.rkey;
        a->add = p->atomiceth.swap;
        a->len = 8;
    }
}

/* Number of the message that a packet not seen before belongs to. */
static uint32_t message_of(struct req_dir *h, const struct pkt *p, enum seen_as as)
{
    uint32_t flags = p->op->flags;

    if (as == SEEN_LATE) {
        const struct sent *before = req_dir_sent(h, psn_prev(p->bth.psn));
        return before && !(flags & OPF_START) ? before->msg : 0;
    }
    if (flags & OPF_START || as != SEEN_NEW || !h->msgs)
        h->msgs++;
    if (flags & OPF_END)
        h->ends++;
    return h->msgs;
}

ALWAYS_INLINE void sent_put(struct req_dir *h, const struct pkt *p, uint32_t msg)
{
    *slot_for(h, p->bth.psn) = (struct sent){.psn = p->bth.psn,
                                             .first = frame_u32(p),
                                             .last = frame_u32(p),
                                             .icrc = icrc_of(p),
                                             .icrc_first = icrc_of(p),
                                             .reth = request_reth(p),
                                             .args = request_args(p),
                                             .ts = p->frame->ts,
                                             .ts_first = p->frame->ts,
                                             .msg = msg,
                                             .len = (uint16_t)p->payload_len,
                                             .ip_id = frame_ip_id(p),
                                             .sport = p->sport,
                                             .flags = bth_flags(p),
                                             .ackreq = bth_ackreq(p),
                                             .opcode = p->bth.opcode,
                                             .way = packet_way(p),
                                             .way_first = packet_way(p),
                                             .copies = 1};
}

void req_dir_advance_contig(struct req_dir *h)
{
    if (((h->next - h->contig) & PSN_MASK) > TRACK_SENT)
        h->contig = h->next; /* the gap is older than what is remembered */
    for (unsigned i = 0; i < TRACK_SENT && h->contig != h->next; i++) {
        const struct sent *s = req_dir_sent(h, h->contig);
        const struct read_req *a;
        if (!s)
            return;
        a = req_dir_read(h, h->contig, 0);
        h->contig = a && a->psn == h->contig ? psn_add(h->contig, a->span) : psn_add(h->contig, 1);
    }
}

static void hole_put(struct req_dir *h, const struct pkt *p)
{
    if (req_dir_was_hole(h, h->gbn, NULL))
        return;
    h->holes[h->holes_at % TRACK_HOLES] = h->gbn;
    h->hole_frames[h->holes_at++ % TRACK_HOLES] = frame_u32(p);
}

/* A request at or after `next`, seen for the first time. */
static void take_new(struct req_dir *h, const struct pkt *p, uint32_t span, enum seen_as as)
{
    uint32_t psn = p->bth.psn;
    bool at_edge = h->contig == psn || (as == SEEN_NEW && h->contig == h->next);

    if (UNLIKELY(!h->have_next)) {
        h->have_next = true;
        h->start = h->contig = psn;
        h->gbn = h->gbn_known ? h->gbn : psn;
        h->first_is_start = p->op->flags & OPF_START;
        h->first_frame = frame_u32(p);
        h->first_ts = p->frame->ts;
        h->counted = h->from_start;
        at_edge = true;
    }
    if (as == SEEN_GAP) {
        h->gaps += (psn - h->next) & PSN_MASK;
        h->counted = false;
    }
    sent_put(h, p, message_of(h, p, as));
    h->next = h->cursor = psn_add(psn, span);
    fetch_to_write(&h->sent[h->next & (h->slots - 1)], sizeof *h->sent);
    h->back = false;
    if (LIKELY(at_edge))
        h->contig = h->next;
}

/* Update the PSN that a go-back-N responder expects. */
static void advance_gbn(struct req_dir *h, const struct pkt *p, uint32_t span)
{
    if (LIKELY(p->bth.psn == h->gbn))
        h->gbn = psn_add(p->bth.psn, span);
    else if (psn_diff(p->bth.psn, h->gbn) > 0)
        hole_put(h, p);
}

/* The requester goes back to the PSN of `p`. */
static void go_back(struct req_dir *h, const struct pkt *p, enum why_back why)
{
    h->why = (uint8_t)why;
    h->backs[why]++;
    h->retries = why == BACK_SILENCE ? h->retries + 1 : 0;
    h->back_psn = p->bth.psn;
    h->back_ts = p->frame->ts;
    h->under_way = true;
    h->back_rsps = h->rsp_packets;
}

/* A request before `next`: retransmitted, or seen for the first time after later PSNs. */
static void take_behind(struct req_dir *h, const struct pkt *p, uint32_t span, enum seen_as as, enum why_back why)
{
    uint32_t psn = p->bth.psn;
    struct sent *s = req_dir_sent(h, psn);

    if (psn_diff(psn, h->cursor) < 0 && as == SEEN_AGAIN) {
        h->back = true;
        if (why != BACK_NONE)
            go_back(h, p, why);
    }
    if (s) {
        s->last = frame_u32(p);
        s->ts = p->frame->ts;
        s->icrc = icrc_of(p);
        s->ip_id = frame_ip_id(p);
        s->sport = p->sport;
        s->flags = bth_flags(p);
        s->ackreq = bth_ackreq(p);
        s->way = packet_way(p);
        s->copies += s->copies < UINT8_MAX;
        s->same = 0;
    } else if (as != SEEN_OLD) { /* a later PSN has its slot */
        sent_put(h, p, message_of(h, p, SEEN_LATE));
        req_dir_sent(h, psn)->late = true;
    }
    h->cursor = psn_add(psn, span);
    if (h->cursor == h->next || psn_diff(h->cursor, h->next) > 0) {
        h->back = false;
        h->cursor = h->next;
    }
    req_dir_advance_contig(h);
}

static void count_request(struct req_dir *h, const struct pkt *p, enum seen_as as)
{
    h->packets++;
    h->bytes += p->payload_len;
    if (LIKELY(as == SEEN_NEW))
        return;
    h->copies += as == SEEN_COPY;
    h->late += as == SEEN_LATE;
    if (as == SEEN_LATE) {
        h->unsettled = true;
        h->settles = h->next;
    }
    if (as == SEEN_AGAIN || as == SEEN_OLD) {
        h->again++;
        h->again_bytes += p->payload_len;
    }
}

/* Whether `p`, which is SEEN_NEW, continues without a gap: only counts and the last PSNs change. */
static inline bool is_plain_next(const struct req_dir *h, const struct pkt *p)
{
    uint32_t psn = p->bth.psn, flags = p->op->flags;
    bool no_gap = psn == h->contig && psn == h->gbn && psn == h->next;

    return h->have_next && no_gap && !h->loose && flags & (OPF_SEND | OPF_WRITE) && (h->pmtu || flags & OPF_END);
}

static void take_plain_next(struct req_dir *h, const struct pkt *p)
{
    h->packets++;
    h->bytes += p->payload_len;
    h->service = p->bth.opcode >> 5;
    h->last_frame = frame_u32(p);
    h->last_ts = p->frame->ts;
    sent_put(h, p, message_of(h, p, SEEN_NEW));
    h->next = h->cursor = h->contig = h->gbn = psn_add(p->bth.psn, 1);
    h->back = false;
}

/* A request with the PSN of a NAK: the NAK has had its retransmission. */
static inline void settle_naks(struct req_dir *h, uint32_t psn)
{
    if (UNLIKELY(h->seq_naks && psn == h->seq.psn))
        h->seq.resent = true;
    if (UNLIKELY(h->rnr_naks && psn == h->rnr.psn))
        h->rnr.resent = true;
}

/* Any request. Apart from req_dir_request(), so that this stays short. */
static __attribute__((noinline)) void take_any(struct req_dir *h, const struct pkt *p, enum seen_as as,
                                               enum why_back why)
{
    uint32_t span, psn = p->bth.psn;
    bool was_loose = h->loose;

    if (UNLIKELY(as == SEEN_RESTART)) {
        uint16_t pmtu = h->pmtu;
        h->restarts++;
        req_dir_init(h, h->flow);
        h->pmtu = pmtu;
        as = SEEN_NEW;
    }
    h->service = p->bth.opcode >> 5;
    if (UNLIKELY(!h->pmtu && p->op->flags & (OPF_FIRST | OPF_MIDDLE)))
        req_dir_set_pmtu(h, p->payload_len);
    span = req_dir_span(h, p);
    h->loose = req_dir_is_unknown_read(h, p) || (was_loose && !h->pmtu && as != SEEN_NEW && as != SEEN_GAP);
    count_request(h, p, as);
    h->last_frame = frame_u32(p);
    h->last_ts = p->frame->ts;
    if (as == SEEN_COPY) {
        struct sent *s = req_dir_sent(h, psn);
        s->same += s->same < UINT8_MAX;
        s->last = frame_u32(p);
        if (p->frame->ts - s->ts >= DUPLICATE_WITHIN)
            s->ts = p->frame->ts; /* else it is a duplicate that was sent together with the first copy */
    } else if (LIKELY(as == SEEN_NEW || as == SEEN_GAP)) {
        take_new(h, p, span, as);
    } else {
        take_behind(h, p, span, as, why);
    }
    if (UNLIKELY(as != SEEN_NEW && psn_diff(psn, h->start) < 0))
        h->vague = true; /* the responder may have dropped all requests seen so far */
    if (UNLIKELY(was_loose && as == SEEN_NEW)) {
        h->gbn = psn;
        h->vague = true;
    }
    advance_gbn(h, p, span);
    if (p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ | OPF_ATOMIC_WRITE | OPF_FLUSH) && as != SEEN_COPY)
        read_put(h, p, span);
    settle_naks(h, psn);
    req_dir_settle(h);
}

void req_dir_request(struct req_dir *h, const struct pkt *p, enum seen_as as, enum why_back why)
{
    if (UNLIKELY(as != SEEN_NEW || !is_plain_next(h, p))) {
        take_any(h, p, as, why);
        return;
    }
    take_plain_next(h, p);
    settle_naks(h, p->bth.psn);
}
