/* layer 3 (measure): work requests, put together from packets and their evidence. */
#include "dissect/pkt.h"
#include "src/conn/retries.h"
#include "src/measure/wqe_impl.h"

#include <stdlib.h>

#define WQE_FIRST 8 /* slots at first */

const char *wqe_op_str(enum wqe_op op)
{
    static const char *const names[] = {
        "SEND",      "SEND_WITH_IMM",      "SEND_WITH_INV",        "RDMA_WRITE", "RDMA_WRITE_WITH_IMM",
        "RDMA_READ", "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD", "FLUSH",      "ATOMIC_WRITE"};
    return names[op];
}

const char *wqe_reason_str(enum wqe_reason r)
{
    static const char *const names[] = {"",
                                        "this transport service has no acknowledgements",
                                        "capture ends",
                                        "no response seen",
                                        "acknowledged, but an earlier request has no response",
                                        "responses missing from the capture",
                                        "RNR NAK, not retransmitted",
                                        "queue pair reconnected",
                                        "evicted, too many flows at a time",
                                        "no response, although 256 later requests were seen",
                                        "disconnected before the response",
                                        "acknowledged, but the requester used its last retry"};
    return names[r];
}

/* --- The ring --------------------------------------------------------------------------------- */

bool wqe_ring_init(struct wqe_ring *r)
{
    *r = (struct wqe_ring){.slots = WQE_FIRST, .slot = malloc(WQE_FIRST * sizeof *r->slot)};
    return r->slot != NULL;
}

bool wqe_ring_copy(struct wqe_ring *to, const struct wqe_ring *from)
{
    *to = *from;
    to->slot = malloc(from->slots * sizeof *to->slot);
    if (to->slot)
        memcpy(to->slot, from->slot, from->slots * sizeof *to->slot);
    return to->slot != NULL;
}

void wqe_ring_free(struct wqe_ring *r)
{
    free(r->slot);
    r->slot = NULL;
}

static struct wqe *at(struct wqe_ring *r, uint32_t i)
{
    return &r->slot[(r->head + i) & (r->slots - 1)];
}

uint32_t wqe_end(const struct req_dir *h, const struct wqe *w)
{
    return w->op == WQE_READ ? psn_add(w->psn, h->pmtu ? psn_span(w->bytes, h->pmtu) : 1) : w->end;
}

/* The position, from 1, of the last work request that begins at or before `psn`; 0: all begin after it. */
static uint32_t place_of(struct wqe_ring *r, uint32_t psn)
{
    uint32_t i = r->n;

    while (i > 0 && psn_diff(at(r, i - 1)->psn, psn) > 0)
        i--;
    return i;
}

static struct wqe *find(struct wqe_ring *r, const struct req_dir *h, uint32_t psn)
{
    uint32_t i = place_of(r, psn);
    struct wqe *w = i ? at(r, i - 1) : NULL;

    return w && wqe_covers(h, w, psn) ? w : NULL;
}

static void pop(struct wqe_ring *r, const struct wqe_env *e, enum wqe_reason why, ns_t now)
{
    struct wqe *w = at(r, 0);

    wqe_decide(r, e, w, why, now);
    e->user->over(e->user->user, w, e->dir->flow);
    r->head = (r->head + 1) & (r->slots - 1);
    r->n--;
    r->open -= r->open > 0;
}

void wqe_flush(struct wqe_ring *r, const struct wqe_env *e, enum wqe_reason why, ns_t now)
{
    while (r->n)
        pop(r, e, why, now);
    r->dead = r->blocked = r->stopped = r->left = r->unheeded = r->in_vain = false;
    r->silence = r->closed = 0;
    r->backs = 0;
}

/* `p` belongs to `w`: call back. */
static void tell_packet(const struct wqe_env *e, const struct wqe *w, const struct pkt *p)
{
    if (UNLIKELY(e->user->packet != NULL))
        e->user->packet(e->user->user, w, p, e->dir->flow);
}

/* --- Requests --------------------------------------------------------------------------------- */

static enum wqe_op op_of(const struct pkt *p)
{
    uint32_t flags = p->op->flags;
    unsigned op = p->bth.opcode & 31;

    if (flags & OPF_SEND)
        return p->have & H_IMMDT ? WQE_SEND_IMM : p->have & H_IETH ? WQE_SEND_INV : WQE_SEND;
    if (flags & OPF_WRITE)
        return p->have & H_IMMDT ? WQE_WRITE_IMM : WQE_WRITE;
    if (flags & OPF_READ_REQ)
        return WQE_READ;
    if (flags & OPF_FLUSH)
        return WQE_FLUSH;
    if (flags & OPF_ATOMIC_WRITE)
        return WQE_ATOMIC_WRITE;
    return op == OP_COMPARE_SWAP ? WQE_CMP_SWAP : WQE_FETCH_ADD;
}

/* True for operations that only the last packet shows: immediate data or the key to invalidate. The last packet may
 * come first, out of order. */
static bool comes_last(enum wqe_op op)
{
    return op == WQE_SEND_IMM || op == WQE_SEND_INV || op == WQE_WRITE_IMM;
}

/* Take the header fields of one packet of the work request. */
static void take_headers(struct wqe *w, const struct pkt *p)
{
    enum wqe_op op = op_of(p);

    if (comes_last(op) || (p->op->flags & OPF_START && !comes_last((enum wqe_op)w->op)))
        w->op = (uint8_t)op;
    if (p->have & H_IMMDT)
        w->imm = p->immdt.data;
    else if (p->have & H_IETH)
        w->imm = p->ieth.rkey;
    if (p->have & H_RETH && !w->have_remote) {
        w->have_remote = true;
        w->va = p->reth.va;
        w->rkey = p->reth.rkey;
        w->bytes = p->reth.dmalen;
    } else if (p->have & H_ATOMICETH && !w->have_remote) {
        w->have_remote = true;
        w->va = p->atomiceth.va;
        w->rkey = p->atomiceth.rkey;
        w->bytes = 8;
    }
}

/* Add a new packet of `w`. */
static void take_packet(struct wqe *w, const struct pkt *p)
{
    uint32_t flags = p->op->flags;

    take_headers(w, p);
    w->begun |= (flags & OPF_START) != 0;
    w->ended |= (flags & OPF_END) != 0 || flags & (OPF_READ_REQ | OPF_ATOMIC_REQ);
    if (!w->have_remote)
        w->bytes += p->payload_len;
}

/* Work request number `id` begins with `p`. */
static void begin(struct wqe *w, const struct pkt *p, uint64_t id)
{
    *w = (struct wqe){.id = id,
                      .first_frame = p->frame->number,
                      .start = p->frame->ts,
                      .last = p->frame->ts,
                      .psn = p->bth.psn,
                      .end = psn_add(p->bth.psn, 1),
                      .op = (uint8_t)op_of(p),
                      .service = p->bth.opcode >> 5,
                      .status = WQE_STATUS_UNKNOWN};
    take_packet(w, p);
}

/* Twice as many slots, in order from the first one on; without memory, or with WQE_MAX of them, they remain as they
 * are. */
static void grow(struct wqe_ring *r)
{
    uint32_t before = r->slots - r->head; /* slots from the head to the end */
    struct wqe *more = r->slots < WQE_MAX ? malloc(2 * r->slots * sizeof *more) : NULL;

    if (!more)
        return;
    memcpy(more, &r->slot[r->head], before * sizeof *more);
    memcpy(&more[before], r->slot, r->head * sizeof *more);
    free(r->slot);
    r->slot = more;
    r->slots *= 2;
    r->head = 0;
}

/* A place for a new work request at position `i`, which is filled by the caller; its latest packet came at `last`. */
static struct wqe *insert(struct wqe_ring *r, const struct wqe_env *e, ns_t last, uint32_t i)
{
    if (r->n == r->slots)
        grow(r);
    if (r->n == r->slots) {
        pop(r, e, WQE_TOO_MANY, last);
        i -= i > 0;
    }
    for (uint32_t k = r->n++; k > i; k--)
        *at(r, k) = *at(r, k - 1);
    if (r->open > i)
        r->open = i;
    return at(r, i);
}

/* The operation without immediate data or invalidation, as First and Middle packets show it. */
static uint8_t plain_op(uint8_t op)
{
    return op == WQE_SEND_IMM || op == WQE_SEND_INV ? WQE_SEND : op == WQE_WRITE_IMM ? WQE_WRITE : op;
}

static bool is_start(const struct pkt *p)
{
    return p->op->flags & OPF_START || wqe_has_answer(&(struct wqe){.op = (uint8_t)op_of(p)});
}

/* True if `p`, which does not directly follow the packets of `w`, belongs to another work request: its operation
 * differs, or `w` ends before it by its length. */
static bool is_other(const struct req_dir *h, const struct wqe *w, const struct pkt *p)
{
    if (psn_diff(p->bth.psn, w->end) <= 0)
        return false;
    if (plain_op(w->op) != plain_op((uint8_t)op_of(p)))
        return true;
    return w->begun && w->have_remote && h->pmtu && !psn_in(p->bth.psn, w->psn, psn_span(w->bytes, h->pmtu));
}

/* The work request that the new packet `p` continues; NULL: it begins one. */
static struct wqe *continued(struct wqe_ring *r, const struct wqe_env *e, const struct pkt *p, uint32_t i)
{
    struct wqe *w = i ? at(r, i - 1) : NULL;

    if (!w || w->psn == p->bth.psn)
        return w; /* counted to `w` by mistake */
    if (is_start(p) || (w->ended && !wqe_covers(e->dir, w, p->bth.psn)) || wqe_has_answer(w) || is_other(e->dir, w, p))
        return NULL;
    return w;
}

/* PSNs from `from` to before `to` were counted to `w` but are a work request of their own: build it from the requests
 * noted. */
static struct wqe known_of(const struct wqe_env *e, const struct wqe *w, uint32_t from, uint32_t to)
{
    uint32_t n = min_u32((to - from) & PSN_MASK, TRACK_SENT);
    struct wqe k = *w;

    k.packets = k.again = 0;
    k.bytes = k.last_frame = 0;
    k.begun = k.have_remote = false;
    for (; n; n--) {
        const struct sent *s = req_dir_sent(e->dir, (to - n) & PSN_MASK);
        if (!s)
            continue;
        if (!k.packets) {
            k.psn = s->psn;
            k.start = s->ts_first;
            k.first_frame = s->first;
        }
        k.first_frame = s->first < k.first_frame ? s->first : k.first_frame;
        if (s->last > k.last_frame) {
            k.last_frame = s->last;
            k.last = s->ts;
        }
        k.packets += s->copies + s->same;
        k.again += s->copies - 1u;
        k.bytes += s->len;
    }
    return k;
}

/* `p` begins a work request, or ends `w`, inside the PSNs counted to `w`: split `w`. */
static void cut(struct wqe_ring *r, const struct wqe_env *e, const struct pkt *p, uint32_t i)
{
    struct wqe *w = i ? at(r, i - 1) : NULL, rest, kept;
    bool start = is_start(p), boundary = start || p->op->flags & OPF_END;

    if (!w || !boundary || wqe_has_answer(w))
        return;
    if (w->psn == p->bth.psn || !wqe_covers(e->dir, w, p->bth.psn))
        return;
    rest = known_of(e, w, psn_add(p->bth.psn, 1), w->end);
    kept = known_of(e, w, w->psn, p->bth.psn);
    w->end = start ? p->bth.psn : psn_add(p->bth.psn, 1);
    if (!rest.packets)
        return;
    rest.id = ++*e->next_id;
    w->packets -= min_u32(w->packets, rest.packets);
    w->again -= min_u32(w->again, rest.again);
    w->bytes -= w->have_remote ? 0 : rest.bytes;
    if (kept.packets) {
        w->first_frame = kept.psn == w->psn ? kept.first_frame : w->first_frame;
        w->last_frame = kept.last_frame;
        w->last = kept.last;
    }
    if (w->ended)
        w->imm = 0;
    w->op = plain_op(w->op);
    w->ended = false;
    *insert(r, e, rest.last, i) = rest;
}

static struct wqe *take_unseen(struct wqe_ring *r, const struct wqe_env *e, const struct pkt *p)
{
    uint32_t i = place_of(r, p->bth.psn);
    struct wqe *w, *next;

    cut(r, e, p, i);
    i = place_of(r, p->bth.psn);
    w = continued(r, e, p, i);
    if (w) {
        take_packet(w, p);
        if (p->op->flags & OPF_END || psn_diff(psn_add(p->bth.psn, 1), w->end) > 0)
            w->end = psn_add(p->bth.psn, 1);
        return w;
    }
    next = i < r->n ? at(r, i) : NULL;
    if (UNLIKELY(next && !next->begun && p->op->flags & (OPF_FIRST | OPF_MIDDLE) &&
                 plain_op(next->op) == plain_op((uint8_t)op_of(p)))) {
        uint64_t sum = next->bytes; /* what was seen of it was its middle or end */
        next->psn = p->bth.psn;
        next->start = p->frame->ts;
        next->bytes = 0;
        take_packet(next, p);
        next->bytes += next->have_remote ? 0 : sum;
        return next;
    }
    w = insert(r, e, p->frame->ts, i);
    begin(w, p, ++*e->next_id);
    return w;
}

/* `w` is not complete for its requester: the response that completed it may have been lost. Keep that response as
 * proof. */
static void reopen(struct wqe *w)
{
    if (w->done_frame && !w->refused) {
        w->proof_frame = w->done_frame;
        w->proof = w->done;
    }
    w->done_frame = 0;
}

/* The requester retransmits `p`: so it has completed neither this work request nor a later one. */
static struct wqe *take_again(struct wqe_ring *r, const struct req_dir *h, const struct pkt *p, enum seen_as as)
{
    struct wqe *w = find(r, h, p->bth.psn);

    if (!w || as == SEEN_COPY)
        return w;
    if (h->back_ts == p->frame->ts && h->back_psn == p->bth.psn) {
        r->unheeded = (r->unheeded && r->unheeded_psn == p->bth.psn) || (w->done_frame && !w->refused);
        r->unheeded_psn = p->bth.psn;
        r->backs = r->backs && psn_diff(p->bth.psn, r->backs_psn) <= 0 ? r->backs + 1 : 1;
        r->backs_psn = p->bth.psn;
    }
    w->again++;
    w->refused = false;
    w->status = WQE_STATUS_UNKNOWN;
    if (r->dead && psn_diff(p->bth.psn, r->dead_psn) <= 0)
        r->dead = false;
    if (wqe_has_answer(w)) {
        uint32_t from = (p->bth.psn - w->psn) & PSN_MASK;
        w->got = min_u32(w->got, from);
        w->missed |= h->have_una && psn_diff(h->una, wqe_end(h, w)) >= 0;
    }
    for (; r->open && psn_diff(at(r, r->open - 1)->psn, w->psn) >= 0; r->open--)
        reopen(at(r, r->open - 1));
    reopen(w);
    w->proof_frame = 0;
    return w;
}

void wqe_request(struct wqe_ring *r, const struct wqe_env *e, const struct pkt *p, enum seen_as as)
{
    struct wqe *w;

    r->stopped = r->left = false;
    if (as == SEEN_AGAIN || as == SEEN_COPY || as == SEEN_OLD) {
        w = take_again(r, e->dir, p, as);
    } else {
        w = take_unseen(r, e, p);
        r->fresh = p->frame->ts;
        r->fresh_frame = p->frame->number;
    }
    if (!w)
        return;
    w->packets++;
    w->last_frame = p->frame->number;
    w->last = p->frame->ts;
    tell_packet(e, w, p);
}

/* --- Responses -------------------------------------------------------------------------------- */

static void complete(const struct wqe_env *e, struct wqe *w, const struct pkt *p)
{
    w->done_frame = p->frame->number;
    w->done = p->frame->ts;
    tell_packet(e, w, p);
}

/* `p` responds to or acknowledges `w`. With `early` the response to an earlier READ or atomic is missing: then the
 * requester drops `p` and retransmits both, unless only the capture lacks that response. */
static void prove(const struct wqe_env *e, struct wqe *w, const struct pkt *p, bool early)
{
    if (!early) {
        complete(e, w, p);
        return;
    }
    if (!w->proof_frame) {
        w->proof_frame = p->frame->number;
        w->proof = p->frame->ts;
    }
    tell_packet(e, w, p);
}

/* The next work request becomes the oldest open one. Its responses that arrived before those of the previous request
 * were complete have been dropped by the requester. */
static void advance_open(struct wqe_ring *r)
{
    while (r->open < r->n && at(r, r->open)->done_frame)
        if (++r->open < r->n)
            at(r, r->open)->got = 0;
}

/* All requests before PSN `before` were delivered: SENDs and WRITEs are complete; READs and atomics complete with their
 * own response. */
static void take_proof(struct wqe_ring *r, const struct wqe_env *e, const struct pkt *p, uint32_t before)
{
    struct req_dir *h = e->dir;
    bool early = false;

    if (!h->have_next || psn_diff(before, h->next) > 0)
        return;
    for (uint32_t i = r->open; i < r->n; i++) {
        struct wqe *w = at(r, i);
        if (psn_diff(wqe_end(h, w), before) > 0)
            break;
        if (!w->done_frame && wqe_has_answer(w))
            early = true;
        else if (!w->done_frame && (w->ended || i + 1 < r->n))
            prove(e, w, p, early);
    }
    advance_open(r);
}

static void take_answer(struct wqe_ring *r, const struct wqe_env *e, const struct pkt *p)
{
    uint32_t i = place_of(r, p->bth.psn), span;
    struct wqe *w = find(r, e->dir, p->bth.psn);

    if (!w || !wqe_has_answer(w))
        return;
    span = (wqe_end(e->dir, w) - w->psn) & PSN_MASK;
    if (p->bth.psn == psn_add(w->psn, w->got))
        w->got++;
    if (!w->done_frame && w->got >= span) {
        advance_open(r);
        prove(e, w, p, r->open + 1 < i);
        advance_open(r);
    } else {
        tell_packet(e, w, p);
    }
}

static enum wc_status status_of_nak(unsigned code)
{
    switch (code) {
    case NAK_INVALID_REQUEST:
        return WC_REM_INV_REQ_ERR;
    case NAK_REMOTE_ACCESS:
        return WC_REM_ACCESS_ERR;
    case NAK_REMOTE_OPERATIONAL:
        return WC_REM_OP_ERR;
    case NAK_INVALID_RD_REQUEST:
        return WC_REM_INV_RD_REQ_ERR;
    default:
        return WC_BAD_RESP_ERR;
    }
}

static void take_nak(struct wqe_ring *r, const struct wqe_env *e, const struct pkt *p)
{
    struct wqe *w = find(r, e->dir, p->bth.psn);
    unsigned code = aeth_value(p->aeth.syndrome);

    if (!w)
        return;
    if (response_type(p) == AETH_RNR) {
        w->rnr_naks++;
    } else if (code == NAK_PSN_SEQ) {
        w->seq_naks++;
    } else if (!w->refused) {
        w->refused = true;
        w->status = (uint8_t)status_of_nak(code);
        r->dead = true;
        r->dead_psn = w->psn;
        complete(e, w, p);
        return;
    }
    tell_packet(e, w, p);
}

void wqe_response(struct wqe_ring *r, const struct wqe_env *e, const struct pkt *p)
{
    bool ack = p->op->flags & OPF_ACK;

    if (!r->n || r->stopped || r->left || (ack && !(p->have & H_AETH)))
        return;
    if (ack && response_type(p) == AETH_ACK) {
        struct wqe *w = find(r, e->dir, p->bth.psn);
        if (w && (w->op == WQE_FLUSH || w->op == WQE_ATOMIC_WRITE) && !w->proof_frame)
            take_answer(r, e, p);
        take_proof(r, e, p, psn_add(p->bth.psn, 1));
        return;
    }
    take_proof(r, e, p, p->bth.psn);
    if (ack)
        take_nak(r, e, p);
    else
        take_answer(r, e, p);
}

void wqe_stop(struct wqe_ring *r)
{
    r->stopped = true;
}

void wqe_close(struct wqe_ring *r, const struct wqe_env *e, ns_t now, bool own)
{
    if (!r->closed)
        r->closed = now;
    if (!own || r->left)
        return;
    r->left = true;
    r->gave_up = retries_gave_up(e->observer, e->dir, e->params, r->silence, now) &&
                 now - e->dir->back_ts >= timer_earliest(r->silence);
}

/* --- Datagrams -------------------------------------------------------------------------------- */

void wqe_datagram(const struct wqe_user *u, uint64_t *next_id, const struct pkt *p, uint32_t flow)
{
    struct wqe w;

    begin(&w, p, ++*next_id);
    w.packets = 1;
    w.last_frame = p->frame->number;
    w.last = p->frame->ts;
    w.reason = WQE_UNRELIABLE;
    if (u->packet)
        u->packet(u->user, &w, p, flow);
    u->over(u->user, &w, flow);
}
