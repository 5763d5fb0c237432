/* layer 3 (judge): rules that compare a packet with much earlier packets. */
#include "src/judge/judge_impl.h"
#include "src/transport/transport_impl.h"

#include <stdlib.h>

#define PAYLOAD_BYTES (HISTORY_PAYLOADS * sizeof(struct read_payload))

bool history_begin(struct jflow *f, uint32_t psn, bool from_start)
{
    struct history *t = f->history ? f->history : calloc(1, sizeof *t);

    if (!t)
        return false;
    f->history = t;
    t->msn = (struct msn_known){.have = from_start, .from_start = from_start, .from = psn};
    if (t->payloads)
        memset(t->payloads, 0, PAYLOAD_BYTES); /* the counts for the notes are kept */
    memset(t->keys, 0, sizeof t->keys);
    t->late.have = t->msn_base.have = false;
    t->have_syndrome = t->duplicates.have = t->demand.have = f->crossing = false;
    return true;
}

void history_end_flow(struct judge *j, struct jflow *f)
{
    if (f->history && f->history->payloads) {
        room_give(observer_room(j->observer), PAYLOAD_BYTES);
        free(f->history->payloads);
    }
    free(f->history);
    f->history = NULL;
}

/* The place of the READ response with this PSN; NULL: no room. */
static struct read_payload *payload_of(struct judge *j, struct history *t, uint32_t psn)
{
    if (UNLIKELY(!t->payloads) && room_take(observer_room(j->observer), PAYLOAD_BYTES, false)) {
        t->payloads = calloc(1, PAYLOAD_BYTES);
        if (!t->payloads)
            room_give(observer_room(j->observer), PAYLOAD_BYTES);
    }
    return t->payloads ? &t->payloads[psn % HISTORY_PAYLOADS] : NULL;
}

/* The later one of two PSNs; `psn` if the other one is that of another connection. */
static uint32_t later(uint32_t psn, uint32_t other)
{
    return psn_in(other, psn, TRACK_FAR) ? other : psn;
}

uint32_t history_new_psn(const struct jflow *f, uint32_t psn)
{
    return later(later(psn, f->dir->next), f->history->msn.from);
}

/* --- RDA-10: retransmitted READs -------------------------------------------------------------- */

/* Four independent sums, so that the processor need not wait for each multiplication. */
static uint32_t payload_hash(const struct pkt *p)
{
    const uint64_t k = HASH_MULTIPLIER;
    const uint8_t *d = p->data + p->payload_off;
    uint64_t h[4] = {p->payload_len, 1, 2, 3}, all = 0;
    uint32_t i = 0;

    for (; i + 32 <= p->payload_len; i += 32)
        for (unsigned n = 0; n < 4; n++)
            h[n] = ((h[n] ^ load_be64(d + i + 8 * n)) * k) ^ h[n] >> 29;
    for (; i < p->payload_len; i++)
        h[i & 3] = (h[i & 3] ^ d[i]) * k;
    for (unsigned n = 0; n < 4; n++)
        all = (all ^ h[n] ^ h[n] >> 32) * k;
    return (uint32_t)(all >> 32);
}

static void compare_payload(struct judge *j, const struct judged *a)
{
    const struct pkt *p = a->p;
    struct history *t = a->f->history;
    struct read_payload now = {p->bth.psn, frame_u32(p), 0}, *old;
    const struct read_req *k = req_dir_read(a->h, p->bth.psn, 0), *first = k;

    if (!(p->op->flags & OPF_READ_RESP) || !k || p->payload_cap < p->payload_len || p->flags & PKT_CUT || !now.frame)
        return;
    old = payload_of(j, t, p->bth.psn);
    if (!old)
        return;
    for (unsigned n = 1; n < 8 && (k = req_dir_read(a->h, p->bth.psn, n)) != NULL; n++)
        first = k;
    now.hash = payload_hash(p);
    if (UNLIKELY(old->frame && old->psn == now.psn && old->frame >= first->frame &&
                 req_dir_read(a->h, p->bth.psn, 1))) {
        t->reread++;
        if (old->hash != now.hash && t->differ++ == 0)
            t->differ_frame = now.frame;
        t->reread_frame = t->reread_frame ? t->reread_frame : now.frame;
    }
    *old = now;
}

/* --- RDA-13: R_Keys that were invalidated ----------------------------------------------------- */

static void forget_keys(struct history *t)
{
    memset(t->keys, 0, sizeof t->keys);
}

/* Request `p` uses R_Key `rkey`: note the first use of an invalidated key. */
static void use_key(struct history *t, const struct pkt *p, uint32_t rkey)
{
    bool known = false;

    for (unsigned i = 0; i < HISTORY_KEYS; i++) {
        struct history_key *k = &t->keys[i];
        if (!k->frame || k->rkey != rkey || psn_diff(p->bth.psn, k->psn) <= 0)
            continue;
        known = true;
        if (k->use_frame)
            continue;
        k->use_frame = frame_u32(p);
        k->use_psn = p->bth.psn;
        k->use_opcode = p->bth.opcode;
    }
    if (!known && p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ))
        forget_keys(t); /* the data that it reads may contain a new R_Key */
}

static void take_keys(const struct judged *a, enum seen_as as)
{
    const struct pkt *p = a->p;
    struct history *t = a->f->history;

    if (as != SEEN_NEW)
        return;
    if (p->have & H_IETH && p->op->flags & OPF_SEND)
        t->keys[t->keys_at++ % HISTORY_KEYS] =
            (struct history_key){.rkey = p->ieth.rkey, .psn = p->bth.psn, .frame = frame_u32(p)};
    else if (p->have & H_RETH && p->op->flags & (OPF_WRITE | OPF_READ_REQ) && p->reth.dmalen)
        use_key(t, p, p->reth.rkey); /* the responder does not check the R_Key of a request of length 0 */
    else if (p->have & H_ATOMICETH)
        use_key(t, p, p->atomiceth.rkey);
}

/* True if the responder may have sent requests after frame `since`: they may have carried a new R_Key. */
static bool may_have_sent_rkey(const struct judge *j, const struct judged *a, uint32_t since)
{
    uint32_t peer = conn_flow_at(j->conns, a->flow)->peer;
    const struct req_dir *o = peer == FLOW_NONE ? NULL : j->flows[peer].dir;

    return peer == FLOW_NONE || (o && o->have_next && (!o->last_frame || o->last_frame >= since));
}

static void check_key(struct judge *j, const struct judged *a, struct history_key *k)
{
    const struct pkt *p = a->p;
    bool asks = opcode_table[k->use_opcode].flags & (OPF_READ_REQ | OPF_ATOMIC_REQ);
    struct found f = found_of(RULE_RDA_13, a->flow);

    if (response_type(p) != AETH_ACK ||
        (asks ? p->op->flags & OPF_ACK || p->bth.psn != k->use_psn : psn_diff(p->bth.psn, k->use_psn) < 0))
        return;
    f.frame = k->use_frame;
    f.cause = p->frame->number;
    f.lacks = j->backwards || a->h->disorder ? N_COMPLETE : 0;
    f.expected = "NAK, remote access error";
    f.seen = say(j, "%s of PSN %u", p->op->name, p->bth.psn);
    f.text = say(j,
                 "R_Key 0x%x was invalidated in frame %u, and %s uses it with success. Nothing that its responder sent "
                 "on this connection in between could have told of a new registration.",
                 k->rkey, k->frame, opcode_name(k->use_opcode));
    if (!may_have_sent_rkey(j, a, k->frame))
        judge_found(j, p, f);
    *k = (struct history_key){0};
}

/* --- RTX-10: responses to duplicates in PSN order --------------------------------------------- */

/* True if `k` is the only retransmission of a READ or atomic whose response had been seen: a further response
 * answers `k`. */
static bool is_sole_retransmission(struct req_dir *h, const struct read_req *k)
{
    const struct sent *s = req_dir_sent(h, k->psn);

    return k->replay && req_dir_read(h, k->psn, 0) == k && !req_dir_read(h, k->psn, 2) && s && !s->same;
}

/* The first response to a retransmitted READ or atomic: a READ or atomic with a later PSN that was retransmitted
 * after it must not have been answered earlier. */
static void check_duplicates(struct judge *j, const struct judged *a)
{
    struct req_dir *h = a->h;
    const struct read_req *k = req_dir_read(h, a->p->bth.psn, 0), *b = NULL;
    struct found f = found_of(RULE_RTX_10, a->flow);

    if (!k || k->rsp_first || !(a->p->op->flags & (OPF_READ_RESP | OPF_ATOMIC_ACK)) || !is_sole_retransmission(h, k))
        return;
    for (uint32_t i = 1; i <= h->read_slots; i++) {
        b = req_dir_latest_read(h, i);
        if (!b->span || b == k)
            return;
        if (b->rsp_first && psn_diff(b->psn, psn_add(k->psn, k->span)) >= 0 && is_sole_retransmission(h, b))
            break;
    }
    f.lacks = j->backwards || h->unsettled || h->copies ? N_COMPLETE : 0;
    f.cause = b->rsp_first;
    f.expected = say(j, "this response before that of PSN %u", b->psn);
    f.seen = say(j, "%s of PSN %u behind it", a->p->op->name, a->p->bth.psn);
    f.text = say(j,
                 "Duplicates are answered in the order of their PSNs. Both had been answered before, and were asked "
                 "for again once, in frames %u and %u.",
                 k->frame, b->frame);
    judge_found(j, a->p, f);
}

/* --- ACK-06, ACK-07: the MSN ------------------------------------------------------------------- */

/* The messages that were seen up to and including PSN `psn`, counted from any: false if that is not known. */
static bool messages_to(struct req_dir *h, uint32_t psn, uint32_t *n)
{
    const struct read_req *k = req_dir_read(h, psn, 0), *first = k;
    const struct sent *s;

    for (unsigned nth = 1; k && nth < 8; nth++, k = req_dir_read(h, psn, nth))
        first = k;
    s = req_dir_sent(h, first ? first->psn : psn);
    *n = 0;
    if (!s || !s->msg || s->late)
        return !s && psn == psn_prev(h->start); /* before all of them */
    *n = s->msg - !(opcode_table[s->opcode].flags & OPF_END);
    if (first && psn != psn_add(first->psn, first->span - 1))
        --*n; /* inside a READ, which counts when its request is executed, or when it is complete */
    return true;
}

/* The PSN up to which the responder may have executed requests: what is behind a gap it drops, if nothing but what was
 * seen can have arrived. */
static uint32_t executed_end(const struct judge *j, const struct judged *a)
{
    const struct req_dir *h = a->h;
    bool certain = judge_tap_at_responder(j, a->flow, a->p) && !h->vague && psn_diff(a->p->bth.psn, h->gbn) < 0;

    return certain ? h->gbn : h->next;
}

static bool is_plain_ack(const struct pkt *p)
{
    return p->op->flags & OPF_ACK && response_type(p) == AETH_ACK && p->have & H_AETH;
}

static bool is_nak(const struct pkt *p)
{
    return p->op->flags & OPF_ACK && response_type(p) != AETH_ACK;
}

/* The least and the most messages that the MSN of `a->p` may count. A NAK excludes the message that it refuses. */
static bool messages_counted(const struct judge *j, const struct judged *a, uint32_t *least, uint32_t *most)
{
    const struct pkt *p = a->p;
    bool nak = is_nak(p);
    uint32_t last = nak ? psn_prev(p->bth.psn) : p->bth.psn;

    if (!messages_to(a->h, last, least))
        return false;
    *most = *least;
    return nak || messages_to(a->h, psn_prev(executed_end(j, a)), most);
}

/* True if nothing indicates that the responder received or sent packets in another order than captured. */
static bool order_is_certain(const struct judge *j, const struct judged *a)
{
    const struct req_dir *h = a->h;
    bool seen_disorder = h->disorder || h->copies || h->loose || h->vague || a->f->history->reordered;

    return !seen_disorder && !j->backwards && j->o.profile != PROFILE_NV;
}

/* Count the messages that end in PSNs `psn` to `last`; false if one of these packets is not known. */
static bool count_ends(struct req_dir *h, uint32_t psn, uint32_t last, uint32_t *ends)
{
    *ends = 0;
    if (psn_diff(last, psn) >= TRACK_SENT)
        return false;
    for (; psn_diff(psn, last) <= 0; psn = psn_add(psn, 1)) {
        const struct sent *s = req_dir_sent(h, psn);
        if (!s || !(opcode_table[s->opcode].flags & (OPF_SEND | OPF_WRITE)))
            return false;
        *ends += !!(opcode_table[s->opcode].flags & OPF_END);
    }
    return true;
}

/* After a gap messages are not counted until all has been retransmitted. But between two ACKs the MSN must advance by
 * the messages that end between their PSNs. */
static void check_msn_after_gap(struct judge *j, const struct judged *a)
{
    const struct pkt *p = a->p;
    struct history *t = a->f->history;
    struct found f = found_of(RULE_ACK_06, a->flow);
    uint32_t ends;

    if (!is_plain_ack(p) || LIKELY(a->f->shadow->rsp.u.counted) || !t->msn_base.have ||
        psn_diff(p->bth.psn, t->msn_base.psn) <= 0 || psn_diff(p->aeth.msn, t->msn_base.msn) < 0 ||
        !count_ends(a->h, psn_add(t->msn_base.psn, 1), p->bth.psn, &ends) ||
        psn_diff(p->aeth.msn, psn_add(t->msn_base.msn, ends)) >= 0)
        return;
    f.cause = t->msn_base.frame;
    f.needs = N_COMPLETE | N_TAP_RSP; /* else packets that were not captured may explain the MSN */
    f.lacks = order_is_certain(j, a) ? 0 : N_TAP_RSP;
    f.expected = say(j, "MSN %u at least", psn_add(t->msn_base.msn, ends));
    f.seen = say(j, "MSN %u", p->aeth.msn);
    f.text =
        say(j, "The ACK in frame %u has MSN %u, and %s behind it until this one. The MSN of one of the two is wrong.",
            t->msn_base.frame, t->msn_base.msn,
            ends == 1 ? "a message was completed" : say(j, "%u messages were completed", ends));
    judge_found(j, p, f);
}

static void note_msn(const struct judged *a)
{
    const struct pkt *p = a->p;
    struct history *t = a->f->history;

    if (!is_plain_ack(p) || psn_add(p->bth.psn, 1) != a->h->gbn)
        return;
    t->msn_base.have = true;
    t->msn_base.psn = p->bth.psn;
    t->msn_base.msn = p->aeth.msn;
    t->msn_base.frame = frame_u32(p);
}

#define MSN_AGREED 16 /* responses that tell the same make the number of messages before the capture certain */

/* False if requests that were missed, or that were captured behind the response that counts them, may explain its MSN.
 */
static bool is_sure(const struct judged *a, bool above)
{
    const struct msn_known *t = &a->f->history->msn;
    bool known = t->from_start || (t->agreed >= MSN_AGREED && !(a->p->op->flags & OPF_READ_RESP));

    return known && (!above || is_nak(a->p));
}

/* Needs (N_*) of the verdict. Messages counted from the first one on need no other response. */
static unsigned msn_needs(const struct judged *a, bool above)
{
    return (a->f->history->msn.from_start ? 0 : N_CLOCK) | (is_sure(a, above) ? 0 : N_COMPLETE);
}

static void report_msn(struct judge *j, const struct judged *a, uint32_t limit, bool above)
{
    const struct msn_known *t = &a->f->history->msn;
    struct found f = found_of(rsp_msn_rule(a->p), a->flow);

    f.cause = t->frame;
    /* the response before tells how many messages came before the capture, if both belong to these requests */
    f.has = f.rule == RULE_ACK_07 && j->flow[a->flow].paired_by == PAIR_PSN ? 0 : N_START;
    f.lacks = order_is_certain(j, a) ? 0 : N_CLOCK;
    f.needs = msn_needs(a, above);
    f.expected = say(j, "MSN %u at %s", limit & PSN_MASK, above ? "most" : "least");
    f.seen = say(j, "%u", a->p->aeth.msn);
    f.text = !t->frame ? rule_table[f.rule].reason.text
                       : say(j,
                             "Frame %u had MSN %u. By the messages seen since then this response counts %s. The MSN "
                             "of one of the two is wrong.",
                             t->frame, t->seen, above ? "too many" : "too few");
    if (j->last_found_frame != a->p->frame->number) /* else it follows from another fault of this response */
        judge_found(j, a->p, f);
}

/* What the MSN of a response says of the messages before those seen; false: nothing. */
static bool msn_told(const struct judge *j, const struct judged *a, struct msn_range *told, uint32_t *least,
                     uint32_t *most)
{
    const struct pkt *p = a->p;

    if (!rsp_has_msn(p) || psn_diff(p->bth.psn, a->f->history->msn.from) < 0 || a->h->loose ||
        !messages_counted(j, a, least, most))
        return false;
    *told = (struct msn_range){(p->aeth.msn - *most) & PSN_MASK, (p->aeth.msn - *least) & PSN_MASK};
    return true;
}

static bool is_above(struct msn_range told, struct msn_range known)
{
    return psn_diff(told.least, known.most) > 0;
}

static bool contradicts(struct msn_range told, struct msn_range known)
{
    return is_above(told, known) || psn_diff(told.most, known.least) < 0;
}

/* What both say. */
static struct msn_range common_range(struct msn_range a, struct msn_range b)
{
    return (struct msn_range){psn_diff(a.least, b.least) > 0 ? a.least : b.least,
                              psn_diff(a.most, b.most) < 0 ? a.most : b.most};
}

bool history_msn_is_wrong(const struct judge *j, const struct judged *a)
{
    const struct msn_known *t = &a->f->history->msn;
    struct msn_range told;
    uint32_t least, most;

    return t->have && msn_told(j, a, &told, &least, &most) && contradicts(told, t->known) &&
           (is_sure(a, is_above(told, t->known)) || j->o.complete);
}

/* The MSN of each response limits how many messages were completed before the first one seen, and so what the next
 * response may count: whatever the capture missed at its beginning. After a wrong one the next fits to the others, if
 * one MSN was wrong, or to the wrong one, if counting went wrong there: reported once. */
static void check_msn(struct judge *j, const struct judged *a)
{
    struct msn_known *t = &a->f->history->msn;
    const struct jflow *peer = &j->flows[j->flow[a->flow].peer];
    struct msn_range told;
    uint32_t least, most;
    bool counted;

    if (UNLIKELY(!t->have && peer->strays)) /* responses that came before these requests: as in history_early() */
        t->from = later(t->from, psn_add(peer->stray_last, 1));
    counted = msn_told(j, a, &told, &least, &most);
    if (UNLIKELY(!counted || !t->have))
        check_msn_after_gap(j, a);
    note_msn(a);
    if (!counted)
        return;
    if (UNLIKELY(psn_diff(a->p->bth.psn, t->from) > (int32_t)PSN_HALF / 2))
        t->from = a->p->bth.psn; /* PSNs wrap */
    if (LIKELY(t->have && !contradicts(told, t->known))) {
        t->known = common_range(told, t->known);
        t->odd = false;
    } else if (t->odd && !contradicts(told, t->other)) {
        t->known = common_range(told, t->other);
        t->odd = t->from_start = false;
        t->agreed = 1;
    } else if (t->have) {
        bool above = is_above(told, t->known);
        report_msn(j, a, above ? t->known.most + most : t->known.least + least, above);
        t->odd = true;
        t->other = told;
    } else {
        t->have = true;
        t->known = told;
    }
    if (t->odd)
        return;
    t->agreed = told.least == told.most ? t->agreed + 1 : t->agreed;
    t->frame = frame_u32(a->p);
    t->seen = a->p->aeth.msn;
}

/* Messages were missed, or the queue pair may belong to a new connection: from PSN `from` on they are counted anew. */
static void forget_msn(struct history *t, uint32_t from)
{
    t->msn = (struct msn_known){.from = later(from, t->msn.from)};
}

static void note_counted(const struct judged *a)
{
    const struct req_dir *h = a->h;

    if (a->as == SEEN_GAP)
        forget_msn(a->f->history, a->p->bth.psn);
    else if (a->as == SEEN_OLD || (a->as == SEEN_AGAIN && h->have_una && psn_diff(a->p->bth.psn, h->una) < 0))
        forget_msn(a->f->history, h->next);
}

void history_early(struct judge *j, const struct judged *a)
{
    struct history *t = a->f->history;

    (void)j;
    if (!t->msn.from_start)
        forget_msn(t, response_proves(a->p));
}

/* --- RDA-15: FETCH_ADDs that return one value ------------------------------------------------- */

static void note_fetch_add(const struct judged *a)
{
    struct history *t = a->f->history;
    const struct fetch_add before = t->add;
    const struct read_req *k = req_dir_read(a->h, a->p->bth.psn, 0);

    t->add.have = k && k->opcode == OP_FETCH_ADD && !k->again;
    if (!t->add.have)
        return;
    t->add = (struct fetch_add){true, k->psn, k->rkey, k->va, k->add, a->p->atomicacketh.orig};
    if (!before.have || !before.add || before.va != k->va || before.rkey != k->rkey ||
        k->psn != psn_add(before.psn, 1) || before.orig != t->add.orig)
        return;
    if (t->repeated++ == 0)
        t->repeated_frame = frame_u32(a->p);
}

/* --- RTX-13, ACK-09: notes -------------------------------------------------------------------- */

/* True if `psn` may be retransmitted: a retransmission is in progress, or a NAK demands one. */
static bool is_retransmission_due(const struct req_dir *h, uint32_t psn)
{
    return h->back || (h->seq.have && h->seq.psn == psn) || (h->rnr.have && !h->rnr.resent);
}

static void note_late_request(const struct judged *a, enum seen_as as)
{
    struct req_dir *h = a->h;
    struct history *t = a->f->history;
    uint32_t psn = a->p->bth.psn;

    if (as == SEEN_AGAIN || as == SEEN_OLD)
        t->late.have = false;
    if (as != SEEN_LATE || h->service == SVC_UC || t->late.have || is_retransmission_due(h, psn))
        return;
    if (!req_dir_was_hole(h, psn, NULL))
        return;
    t->late.have = true;
    t->late.frame = frame_u32(a->p);
    t->late.end = h->next;
}

static void settle_late_request(struct judge *j, const struct judged *a)
{
    struct history *t = a->f->history;

    if (a->p->op->flags & OPF_ACK && response_type(a->p) != AETH_ACK) {
        t->late.have = false;
        return;
    }
    if (psn_diff(response_proves(a->p), t->late.end) < 0)
        return;
    t->late.have = false;
    if (t->reordered++ == 0)
        t->reordered_frame = t->late.frame;
    t->at_responder = (judge_have(j, a->flow, a->p) & (N_TAP_RSP | N_COMPLETE)) == (N_TAP_RSP | N_COMPLETE);
}

/* Each duplicate of a request may be acknowledged by an ACK that looks the same, until a PSN sent after all
 * duplicates is acknowledged. */
static void note_duplicate(const struct judged *a)
{
    struct history *t = a->f->history;

    t->duplicates.have = true;
    t->duplicates.end = a->h->next;
}

static void note_unsolicited_ack(const struct judged *a)
{
    const struct req_dir *h = a->h;
    struct history *t = a->f->history;
    bool other = t->have_syndrome && t->syndrome != a->p->aeth.syndrome;

    if (!(a->p->op->flags & OPF_ACK) || response_type(a->p) != AETH_ACK || !(a->p->have & H_AETH))
        return;
    if (UNLIKELY(h->have_ack && h->ack_psn == a->p->bth.psn && h->last_frame < h->ack_frame && !t->duplicates.have)) {
        if (t->unsolicited++ == 0)
            t->unsolicited_frame = frame_u32(a->p);
        t->unsolicited_credits += other;
    }
    if (UNLIKELY(t->duplicates.have && psn_diff(a->p->bth.psn, t->duplicates.end) >= 0))
        t->duplicates.have = false;
    t->have_syndrome = true;
    t->syndrome = a->p->aeth.syndrome;
}

/* --- Requests, responses, end ----------------------------------------------------------------- */

void history_request(struct judge *j, const struct judged *a)
{
    enum seen_as as = (enum seen_as)a->as;

    (void)j;
    if (UNLIKELY(a->p->have & (H_IETH | H_RETH | H_ATOMICETH)))
        take_keys(a, as);
    if (UNLIKELY(as != SEEN_NEW)) {
        note_late_request(a, as);
        note_counted(a);
    }
    if (UNLIKELY(as != SEEN_NEW && as != SEEN_GAP && as != SEEN_RESTART))
        note_duplicate(a);
}

void history_response(struct judge *j, const struct judged *a)
{
    struct history *t = a->f->history;

    if (UNLIKELY(t->late.have))
        settle_late_request(j, a);
    compare_payload(j, a);
    if (UNLIKELY(a->h->again))
        check_duplicates(j, a);
    note_unsolicited_ack(a);
    check_msn(j, a);
    if (UNLIKELY(a->p->op->flags & OPF_ATOMIC_ACK))
        note_fetch_add(a);
    for (unsigned i = 0; i < HISTORY_KEYS && t->keys_at; i++)
        if (UNLIKELY(t->keys[i].use_frame))
            check_key(j, a, &t->keys[i]);
}

void history_end(struct judge *j, uint32_t flow)
{
    const struct history *t = j->flows[flow].history;

    if (t->reread)
        judge_note(j, RULE_RDA_10, flow, t->differ ? t->differ_frame : t->reread_frame,
                   say(j, "%llu of %s differ", (unsigned long long)t->differ, count_str(t->reread, "packet")),
                   t->differ
                       ? "Responses to retransmitted READs are compared with the first ones: the memory has changed "
                         "in between, or the responder reads something else."
                       : "Retransmitted READs returned the same data as the first time.");
    if (t->repeated)
        judge_note(
            j, RULE_RDA_15, flow, t->repeated_frame, count_str(t->repeated, "FETCH_ADD"),
            "The FETCH_ADD before added something to the same address: it had no effect, or something else wrote "
            "the old value again.");
    if (t->unsolicited)
        judge_note(j, RULE_ACK_09, flow, t->unsolicited_frame,
                   say(j, "%s, %llu with other credits", count_str(t->unsolicited, "ACK"),
                       (unsigned long long)t->unsolicited_credits),
                   "No request seen since the ACK before asks for them, and they acknowledge nothing new.");
    if (t->reordered)
        judge_note(
            j, RULE_RTX_13, flow, t->reordered_frame, count_str(t->reordered, "time"),
            t->at_responder
                ? "A packet arrived out of order, and was accepted without a NAK: the responder puts packets in order "
                  "by itself (--profile nv), or they were recorded out of order."
                : "A packet arrived out of order, and was accepted without a NAK: the responder puts packets in order "
                  "by itself (--profile nv), the network did so behind this tap, or they were recorded out of order.");
}
