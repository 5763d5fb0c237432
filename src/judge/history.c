/* layer 3 (judge): rules that compare a packet with much earlier packets. */
#include "src/judge/judge_impl.h"
#include "src/transport/transport_impl.h"

#include <stdlib.h>

#define PAYLOAD_BYTES (HISTORY_PAYLOADS * sizeof(struct read_payload))

bool history_begin(struct judge *j, struct jflow *f, uint32_t psn, bool from_start)
{
    struct history *t = f->history ? f->history : pool_take(&j->histories);

    if (!t)
        return false;
    f->history = t;
    t->msn = (struct msn_known){.have = from_start, .from_start = from_start, .from = psn};
    if (t->payloads)
        memset(t->payloads, 0, PAYLOAD_BYTES); /* the counts for the notes are kept */
    memset(t->keys, 0, sizeof t->keys);
    t->late.have = t->msn_base.have = false;
    t->have_syndrome = t->duplicates.have = t->demand.have = t->crossing.told = f->crossing = t->ignored = false;
    t->gap.frame = 0;
    return true;
}

void history_end_flow(struct judge *j, struct jflow *f)
{
    if (!f->history)
        return;
    if (f->history->payloads)
        room_give(j->room, PAYLOAD_BYTES);
    free(f->history->payloads);
    pool_give(&j->histories, f->history);
    f->history = NULL;
}

/* The place of the READ response with this PSN; NULL: no room. */
static struct read_payload *payload_of(struct judge *j, struct history *t, uint32_t psn)
{
    if (UNLIKELY(!t->payloads) && room_take(j->room, PAYLOAD_BYTES, false)) {
        t->payloads = calloc(1, PAYLOAD_BYTES);
        if (!t->payloads)
            room_give(j->room, PAYLOAD_BYTES);
    }
    return t->payloads ? &t->payloads[psn % HISTORY_PAYLOADS] : NULL;
}

uint32_t history_new_psn(const struct jflow *f, uint32_t psn)
{
    return history_later(history_later(psn, f->dir->next), f->history->msn.from);
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
    uint32_t peer = j->flow[a->flow].peer;
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
                 "on this connection in between could have shown a new registration.",
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

/* --- RDA-15: FETCH_ADDs that return one value ------------------------------------------------- */

/* True if `now` is the FETCH_ADD right behind `before`, to the same address, and returned the same value, although
 * `before` added to it. */
static bool is_same_value(const struct fetch_add *before, const struct fetch_add *now)
{
    bool same_place = before->va == now->va && before->rkey == now->rkey,
         adjacent = now->psn == psn_add(before->psn, 1);

    return before->have && before->add && same_place && adjacent && before->orig == now->orig;
}

static void note_fetch_add(const struct judged *a)
{
    struct history *t = a->f->history;
    const struct fetch_add before = t->add;
    const struct read_req *k = req_dir_read(a->h, a->p->bth.psn, 0);

    t->add.have = k && k->opcode == OP_FETCH_ADD && !k->again;
    if (!t->add.have)
        return;
    t->add = (struct fetch_add){true, k->psn, k->rkey, k->va, k->add, a->p->atomicacketh.orig};
    if (is_same_value(&before, &t->add) && t->repeated++ == 0)
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
        msn_request(a);
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
    msn_response(j, a);
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
