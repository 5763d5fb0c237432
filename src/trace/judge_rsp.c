/* layer 3 (trace): the judge: rules about the responses of a connection. */
#include "src/trace/judge_impl.h"

/* A response, and the requests that it answers. */
struct answer {
    const struct pkt *p;
    uint32_t flow;    /* of the requests */
    struct jflow *f;  /* likewise */
    struct half *h;
    uint32_t psn;
};

static struct found about(const struct answer *a, enum rule rule)
{
    return (struct found){.rule = rule, .severity = rule_table[rule].severity, .flow = a->flow};
}

/* Messages certainly complete when PSN `psn` was executed, and the frame of that packet; false if that is not known. */
static bool messages_at(const struct answer *a, uint32_t psn, uint32_t *messages, uint32_t *frame)
{
    const struct sent *s = half_sent(a->h, psn);
    const struct ask *k;

    if (!a->h->counted)
        return false;
    if (!s && (k = half_ask(a->h, psn, 0)) != NULL)
        s = half_sent(a->h, k->psn);
    if (!s || !s->msg)
        return false;
    *messages = opcode_table[s->opcode].flags & OPF_END ? s->msg : s->msg - 1;
    *frame = s->first;
    return true;
}

/* --- Positive acknowledgements ---------------------------------------------------------------------------------------------------- */

static void check_ack_order(struct judge *j, const struct answer *a)
{
    struct half *h = a->h;
    struct found f = about(a, RULE_ACK_02);

    if (h->from_start && a->psn == psn_add(h->start, PSN_MASK) && j->o.profile != PROFILE_RXE && !h->have_ack) {
        f.expected = say(j, "a PSN from %u on", h->start);
        f.seen = say(j, "PSN %u", a->psn);
        f.text = "Nothing has been completed yet, and the ACK is for the PSN before the first one.";
        judge_found(j, a->p, f);
        return;
    }
    if (!h->have_ack || psn_diff(a->psn, h->ack_psn) >= 0 || h->again || h->copies || h->late)
        return;
    f.cause = h->ack_frame;
    f.expected = say(j, "PSN %u or a later one", h->ack_psn);
    f.seen = say(j, "PSN %u", a->psn);
    f.text = "A later PSN was acknowledged before, and nothing was sent again since.";
    judge_found(j, a->p, f);
}

/* A plain ACK inside the answer to a READ; its last PSN is allowed, as that of the request executed last. */
static void check_ack_place(struct judge *j, const struct answer *a)
{
    struct found f = about(a, RULE_ACK_05);
    const struct ask *k = NULL, *first = a->h->asks_at ? half_ask(a->h, a->psn, 0) : NULL;

    if (LIKELY(!first) || first->span == 1)
        return;
    for (unsigned n = 0; n < 8 && (k = half_ask(a->h, a->psn, n)) != NULL; n++)
        if (a->psn == psn_add(k->psn, k->span - 1))
            return;
    f.cause = first->frame;
    f.expected = "a READ response";
    f.seen = say(j, "ACK of PSN %u, inside the READ at %u", a->psn, first->psn);
    f.text = "What a READ asks for is answered by READ responses.";
    judge_found(j, a->p, f);
}

/* The MSN against the messages seen. `exact`: a NAK, which excludes the message of its PSN. */
static void check_msn(struct judge *j, const struct answer *a, bool exact)
{
    uint32_t low, high, frame = 0, msn = a->p->aeth.msn;
    struct found f = about(a, RULE_ACK_06);

    if (!messages_at(a, a->psn, &low, &frame))
        return;
    high = a->h->ends & PSN_MASK;
    if (exact) {
        const struct sent *s = half_sent(a->h, a->psn);
        low = high = s ? s->msg - 1 : low;
    }
    if (LIKELY(psn_diff(msn, low) >= 0 && psn_diff(msn, high) <= 0))
        return;
    f.needs = psn_diff(msn, low) >= 0 ? N_COMPLETE : 0; /* requests that were not captured count, too */
    f.cause = frame;
    f.expected = low == high ? say(j, "MSN %u", low & PSN_MASK) : say(j, "MSN %u to %u", low & PSN_MASK, high);
    f.seen = say(j, "MSN %u", msn);
    f.text = exact ? "The MSN of a NAK counts the messages before the one that it refuses."
                   : "The MSN counts the messages completed: at least those acknowledged, at most those sent.";
    judge_found(j, a->p, f);
}

/* It never goes back from one ACK to one of a later PSN. */
static void check_msn_order(struct judge *j, const struct answer *a, enum rule rule)
{
    struct half *h = a->h;
    int32_t d = psn_diff(a->psn, h->ack_psn), m = psn_diff(a->p->aeth.msn, h->ack_msn);
    struct found f = about(a, rule);

    if (!h->have_ack || (d > 0 ? m >= 0 : d < 0 ? m <= 0 : true) || (d < 0 && rule == RULE_ACK_07))
        return;
    f.cause = h->ack_frame;
    f.expected = say(j, "MSN %u or %s", h->ack_msn, d > 0 ? "more" : "less");
    f.seen = say(j, "MSN %u", a->p->aeth.msn);
    f.text = say(j, "PSN %u was acknowledged with MSN %u; the number of messages completed does not decrease.", h->ack_psn, h->ack_msn);
    judge_found(j, a->p, f);
}

/* An ACK beyond a READ or atomic of whose answer nothing was seen. */
static void check_ack_passes(struct judge *j, const struct answer *a)
{
    struct found f = about(a, RULE_RDA_11);
    struct ask *oldest;

    if (LIKELY(!a->h->asks_at) || !half_outstanding(a->h, &oldest) || oldest->rsp_first ||
        psn_diff(a->psn, psn_add(oldest->psn, oldest->span)) < 0)
        return;
    f.cause = oldest->frame;
    f.expected = say(j, "the answer to PSN %u first", oldest->psn);
    f.seen = say(j, "ACK of PSN %u", a->psn);
    f.text = "Responses are strongly ordered: an answer to a READ or atomic leaves before acknowledgements of what follows it.";
    judge_found(j, a->p, f);
}

static void check_credits(struct judge *j, const struct answer *a)
{
    const struct conn_params *c = &conn_flow_at(j->conns, a->flow)->params;
    unsigned code = a->p->aeth.syndrome & 31;
    struct found f = about(a, RULE_CM_11);

    if (LIKELY(code == AETH_CREDIT_INVALID || !c->no_credits))
        return;
    f.cause = c->rep_frame;
    f.expected = "credit code 31";
    f.seen = say(j, "%u", code);
    f.text = "This end announced no flow control, or a shared receive queue, and yet its ACK carries credits.";
    judge_found(j, a->p, f);
}

/* --- After a fatal NAK -------------------------------------------------------------------------------------------------------------- */

static void check_dead(struct judge *j, const struct answer *a)
{
    const struct nak *n = &a->h->fatal;
    struct found f = about(a, RULE_NAK_04);

    if (LIKELY(!n->have) || psn_diff(a->psn, n->psn) < 0)
        return;
    f.cause = n->frame;
    f.expected = "silence, or answers to earlier requests";
    f.seen = say(j, "%s of PSN %u", a->p->op->name, a->psn);
    f.text = say(j, "The request of PSN %u was refused (%s), so nothing from it on can succeed.", n->psn, nak_code_str(n->syndrome & 31));
    judge_found(j, a->p, f);
}

/* --- NAKs --------------------------------------------------------------------------------------------------------------------------- */

static uint32_t icrc_in(const struct pkt *p)
{
    return p->icrc_off + 4 <= p->caplen ? load_be32(p->data + p->icrc_off) : 0;
}

static void check_second_nak(struct judge *j, const struct answer *a)
{
    const struct nak *n = &a->h->seq, *rnr = &a->h->rnr;
    struct found f = about(a, RULE_NAK_02);

    if (rnr->have && rnr->psn == a->psn && !rnr->resent) {
        f = about(a, RULE_NAK_07);
        f.cause = rnr->frame;
        f.expected = "silence until the PSN arrives again";
        f.seen = say(j, "sequence NAK of PSN %u", a->psn);
        f.text = "The packets behind the one that found no receive posted are not out of sequence: the requester knows that it must send all again.";
        if (j->o.profile != PROFILE_RXE)
            judge_found(j, a->p, f);
        return;
    }
    if (!n->have || n->psn != a->psn || n->resent)
        return;
    if (n->icrc == icrc_in(a->p))
        f.needs |= N_TAP_RSP; /* else it may be a copy */
    if (n->icrc == icrc_in(a->p) && a->h->copies * 4 >= a->h->packets)
        f.lacks |= N_TAP_RSP; /* and is one where all is captured twice */
    f.cause = n->frame;
    f.expected = say(j, "silence until PSN %u arrives", a->psn);
    f.seen = "another sequence NAK";
    f.text = "After a sequence NAK the responder ignores what is ahead, until the PSN that it expects has arrived.";
    judge_found(j, a->p, f);
}

static void check_sequence_nak(struct judge *j, const struct answer *a)
{
    struct half *h = a->h;
    struct found f = about(a, RULE_NAK_01);

    check_second_nak(j, a);
    if (psn_diff(a->psn, h->start) < 0)
        return; /* the first packets were lost before the tap, or were sent before the capture began */
    f.seen = say(j, "PSN %u", a->psn);
    if (h->have_ack && psn_diff(a->psn, h->ack_psn) <= 0) {
        f.cause = h->ack_frame;
        f.expected = say(j, "a PSN behind %u", h->ack_psn);
        f.text = "That PSN was acknowledged before, so the responder cannot be waiting for it.";
        f.needs = N_TAP_RSP;
        judge_found(j, a->p, f);
    } else if (psn_diff(a->psn, h->contig) > 0) {
        f.expected = say(j, "at most PSN %u", h->contig);
        f.text = "A PSN before that has not arrived yet: the responder expects it, and not a later one.";
        judge_found(j, a->p, f);
    } else if (!half_was_hole(h, a->psn, NULL) && !(h->rnr.have && h->rnr.psn == a->psn) && h->holes_at < TRACK_HOLES && !h->vague) {
        f.rule = RULE_NAK_03;
        f.severity = SEV_W;
        f.expected = "a gap";
        f.text = "Every packet that came to this responder came in order.";
        judge_found(j, a->p, f);
    }
    if (UNLIKELY(a->f->gap.have && a->f->gap.psn == a->psn)) {
        f = about(a, (enum rule)a->f->gap.rule);
        f.frame = a->f->gap.frame;
        f.cause = a->p->frame->number;
        f.expected = say(j, "PSN %u", a->psn);
        f.seen = say(j, "PSN %u", a->f->gap.other);
        f.text = "The requester passed over a PSN.";
        a->f->gap.have = false;
        judge_found(j, a->p, f);
    }
}

static void check_refusal(struct judge *j, const struct answer *a)
{
    struct half *h = a->h;
    const struct sent *s = half_sent(h, a->psn);
    struct found f = about(a, RULE_RTX_09);
    const char *code = nak_code_str(a->p->aeth.syndrome & 31);

    if (h->have_ack && psn_diff(a->psn, h->ack_psn) <= 0) {
        f.cause = h->ack_frame;
        f.expected = "an ACK";
        f.seen = say(j, "NAK, %s", code);
        f.text = "The request was acknowledged before; sent again, it is acknowledged again.";
        judge_found(j, a->p, f);
    }
    judge_note(j, RULE_NAK_05, a->flow, a->p->frame->number, say(j, "%s", code),
               s ? say(j, "It refuses the %s in frame %u. The connection ends here.", opcode_table[s->opcode].name, s->last)
                 : "The request that it refuses was not captured. The connection ends here.");
}

static void check_rnr_nak(struct judge *j, const struct answer *a)
{
    const struct sent *s = half_sent(a->h, a->psn);
    uint32_t code = (a->p->aeth.syndrome & 31) + 1, flags = s ? opcode_table[s->opcode].flags : 0;

    if (a->f->rnr_code && a->f->rnr_code != code && !a->f->rnr_codes_differ) {
        a->f->rnr_codes_differ = true;
        judge_note(j, RULE_RTX_07, a->flow, a->p->frame->number, say(j, "code %u after %u", code - 1, a->f->rnr_code - 1),
                   "The responder's RNR timer has changed.");
    }
    a->f->rnr_code = code;
    if (s && (flags & (OPF_READ_REQ | OPF_ATOMIC_REQ) || (flags & OPF_WRITE && !(opcode_table[s->opcode].ext & H_IMMDT))))
        judge_note(j, RULE_RTX_06, a->flow, a->p->frame->number, opcode_table[s->opcode].name,
                   "This request takes no receive: its memory was not ready (a page fault at the responder).");
}

static void check_acknowledge(struct judge *j, const struct answer *a)
{
    switch (aeth_type(a->p)) {
    case AETH_ACK:
        check_dead(j, a);
        check_ack_order(j, a);
        check_ack_place(j, a);
        check_msn_order(j, a, RULE_ACK_06);
        check_msn(j, a, false);
        check_ack_passes(j, a);
        check_credits(j, a);
        break;
    case AETH_RNR:
        check_rnr_nak(j, a);
        check_msn(j, a, true);
        break;
    case AETH_NAK:
        if ((a->p->aeth.syndrome & 31) == NAK_PSN_SEQ)
            check_sequence_nak(j, a);
        else
            check_refusal(j, a);
        check_msn(j, a, true);
        break;
    default:
        break;
    }
}

/* --- READ and atomic responses ------------------------------------------------------------------------------------------------------ */

/* What a response must be to fit `k`; RULE_NONE if it does. */
static enum rule misfit(const struct judge *j, const struct answer *a, const struct ask *k, uint32_t *want)
{
    uint32_t off = (a->psn - k->psn) & PSN_MASK, flags = a->p->op->flags;
    bool first = off == 0, last = off + 1 == k->span, loose = j->o.profile == PROFILE_RXE && first && (k->again || !a->h->from_start);

    if ((k->opcode == OP_COMPARE_SWAP || k->opcode == OP_FETCH_ADD) != !!(flags & OPF_ATOMIC_ACK)) {
        *want = flags & OPF_ATOMIC_ACK ? OP_READ_RESP_ONLY : OP_ATOMIC_ACKNOWLEDGE;
        return RULE_RDA_08;
    }
    if (flags & OPF_ATOMIC_ACK)
        return RULE_NONE;
    *want = first && last ? OP_READ_RESP_ONLY : first ? OP_READ_RESP_FIRST : last ? OP_READ_RESP_LAST : OP_READ_RESP_MIDDLE;
    if ((a->p->bth.opcode & 31) != *want && !(loose && (a->p->bth.opcode & 31) == (last ? OP_READ_RESP_LAST : OP_READ_RESP_MIDDLE)))
        return RULE_RDA_02;
    *want = !last ? a->h->pmtu : k->opcode == OP_READ_REQUEST ? k->len - off * a->h->pmtu : 0;
    return a->p->payload_len == *want ? RULE_NONE : RULE_RDA_03;
}

static void check_position(struct judge *j, const struct answer *a)
{
    struct ask *k, *first = half_ask(a->h, a->psn, 0);
    enum rule rule = RULE_NONE, best = RULE_NONE;
    uint32_t want = 0, best_want = 0;
    struct found f;

    for (unsigned n = 0; n < 8 && (k = half_ask(a->h, a->psn, n)) != NULL; n++) {
        if (k->opcode == OP_READ_REQUEST && !a->h->pmtu && k->len > 256)
            return;
        rule = misfit(j, a, k, &want);
        if (rule == RULE_NONE)
            return;
        if (n == 0 || rule == RULE_RDA_03) {
            best = rule;
            best_want = want;
        }
    }
    f = about(a, best);
    f.cause = first->frame;
    if (psn_diff(first->psn, a->h->start) <= 0 && !a->h->from_start)
        f.lacks = N_REQ; /* it may be the rest of a READ that was sent before the capture began */
    if (best == RULE_RDA_03) {
        f.needs = a->h->again ? N_COMPLETE : 0;
        f.expected = say(j, "%u bytes", best_want);
        f.seen = say(j, "%u", a->p->payload_len);
        f.text = say(j, "The READ asks for %u bytes; at a path MTU of %u that leaves another length for this response.", first->len, a->h->pmtu);
    } else {
        f.needs = best == RULE_RDA_08 ? N_RSP : a->h->again ? N_COMPLETE : 0;
        f.expected = opcode_table[best_want].name;
        f.seen = a->p->op->name;
        f.text = best == RULE_RDA_08 ? "An atomic is answered by an ATOMIC Acknowledge, and nothing else is."
                                     : say(j, "The READ takes the PSNs %u to %u.", first->psn, psn_add(first->psn, first->span - 1));
    }
    judge_found(j, a->p, f);
}

static void check_original(struct judge *j, const struct answer *a)
{
    struct found f = about(a, RULE_RDA_09);
    const struct ask *k;

    for (unsigned n = 0; n < 8 && (k = half_ask(a->h, a->psn, n)) != NULL; n++)
        if (k->answered && k->orig != a->p->atomicacketh.orig) {
            f.cause = k->rsp_first;
            f.expected = say(j, "original value 0x%llx", (unsigned long long)k->orig);
            f.seen = say(j, "0x%llx", (unsigned long long)a->p->atomicacketh.orig);
            f.text = "The same atomic was answered before with another value: it was executed more than once.";
            judge_found(j, a->p, f);
            return;
        }
}

static void check_answer(struct judge *j, const struct answer *a)
{
    struct found f = about(a, RULE_RDA_05);

    check_dead(j, a);
    if (!half_ask(a->h, a->psn, 0)) {
        const struct sent *s = half_sent(a->h, a->psn);
        if (!s || a->h->asks_at >= TRACK_ASKS)
            return;
        f.cause = s->last;
        f.expected = say(j, "an answer to %s", opcode_table[s->opcode].name);
        f.seen = a->p->op->name;
        f.text = "No READ or atomic has this PSN.";
        judge_found(j, a->p, f);
        return;
    }
    check_position(j, a);
    if (a->p->op->flags & OPF_ATOMIC_ACK)
        check_original(j, a);
    if (a->p->have & H_AETH)
        check_msn_order(j, a, RULE_ACK_07);
}

/* --- All of it ------------------------------------------------------------------------------------------------------------------------ */

/* A response to what was not sent yet: its request may have been recorded late. */
static void early_begins(const struct answer *a)
{
    struct jflow *f = a->f;

    if (f->early.have)
        return;
    f->early = (struct pending_fail){.have = true,
                                     .psn = a->psn,
                                     .frame = frame_u32(a->p),
                                     .conn_packets = (uint32_t)f->packets,
                                     .rule = a->p->op->flags & OPF_ACK ? RULE_ACK_03 : RULE_RDA_05,
                                     .opcode = a->p->bth.opcode,
                                     .other = psn_add(a->h->next, PSN_MASK)};
}

static void check_uc(struct judge *j, const struct answer *a)
{
    struct found f = about(a, RULE_SVC_03);

    f.cause = a->h->last_frame;
    f.expected = "silence";
    f.seen = a->p->op->name;
    f.text = "The requests that it answers are of an unreliable connection.";
    judge_found(j, a->p, f);
}

void judge_response(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct answer a = {.p = p, .psn = p->bth.psn};
    struct flow *c = conn_flow_at(j->conns, flow);

    if (UNLIKELY(!j->flows[flow].has_rsp))
        j->flows[flow].rsp_frame = frame_u32(p);
    j->flows[flow].has_rsp = true;
    if (UNLIKELY(c->peer == FLOW_NONE))
        conn_pair_by_psn(j->conns, flow, p->bth.psn);
    if (c->peer == FLOW_NONE)
        return;
    a.flow = c->peer;
    a.f = &j->flows[a.flow];
    a.h = a.f->half;
    if (!a.h || !a.h->have_next)
        return;
    if (UNLIKELY(p->have & H_AETH && p->aeth.msn > a.h->msgs))
        a.h->began = BEGAN_BEFORE;
    if (p->op->flags & OPF_READ_RESP && p->op->flags & OPF_FIRST)
        half_set_pmtu(a.h, p->payload_len);
    if (UNLIKELY(a.h->service == SVC_UC)) {
        check_uc(j, &a);
        return;
    }
    if (UNLIKELY(psn_diff(a.psn, a.h->next) >= 0 && !(p->op->flags & OPF_ACK && aeth_type(p) != AETH_ACK)))
        early_begins(&a);
    else if (UNLIKELY(psn_diff(a.psn, psn_add(a.h->start, PSN_MASK)) < 0) && !half_sent(a.h, a.psn) && (a.h->began = BEGAN_BEFORE))
        return; /* it answers what was sent before the capture began */
    else if (p->op->flags & OPF_ACK && p->have & H_AETH)
        check_acknowledge(j, &a);
    else if (!(p->op->flags & OPF_ACK))
        check_answer(j, &a);
    half_response(a.h, p);
}

/* --- What a packet recorded late would refute ------------------------------------------------------------------------------------------ */

static void pending_report(struct judge *j, const struct pkt *p, uint32_t flow, struct pending_fail *w, bool gap)
{
    struct found f = {.rule = (enum rule)w->rule, .severity = rule_table[w->rule].severity, .flow = flow, .frame = w->frame};

    w->have = false;
    if (gap) {
        f.expected = say(j, "PSN %u", w->psn);
        f.seen = say(j, "PSN %u", w->other);
        f.text = "The requester passed over a PSN.";
    } else {
        f.expected = say(j, "PSN %u at most", w->other);
        f.seen = say(j, "%s of PSN %u", opcode_table[w->opcode].name, w->psn);
        f.text = "No such request was seen.";
    }
    judge_found(j, p, f);
}

/* Whether the packets of either direction that may still refute it have passed. */
static bool has_waited(const struct jflow *f, const struct pending_fail *w, bool now)
{
    return now || (uint32_t)f->packets - w->conn_packets > PENDING_PACKETS;
}

static void pending_look(struct judge *j, const struct pkt *p, uint32_t flow, bool now)
{
    struct jflow *f = &j->flows[flow];

    if (!f->half)
        return;
    if (f->gap.have && half_sent(f->half, f->gap.psn))
        f->gap.have = false;
    if (f->gap.have && has_waited(f, &f->gap, now))
        pending_report(j, p, flow, &f->gap, true);
    if (f->early.have && psn_diff(f->early.psn, f->half->next) < 0)
        f->early.have = false;
    if (f->early.have && has_waited(f, &f->early, now))
        pending_report(j, p, flow, &f->early, false);
}

void judge_pending(struct judge *j, const struct pkt *p, uint32_t flow, bool now)
{
    pending_look(j, p, flow, now);
}

/* --- Notes at the end ------------------------------------------------------------------------------------------------------------------- */

static void note_requests(struct judge *j, uint32_t flow, const struct jflow *f)
{
    const struct half *h = f->half;

    if (f->spurious)
        judge_note(j, RULE_RTX_14, flow, f->spurious_frame, say(j, "%llu packets", (unsigned long long)f->spurious),
                   "They were sent again although an answer to them had passed the tap: it was lost, or came late.");
    if (f->nak_reaction)
        judge_note(j, RULE_RTX_12, flow, h->seq.frame, say(j, "%.3f us", (double)f->nak_reaction / 1e3),
                   "The longest time from a sequence NAK to the packet sent again.");
    if (h->service == SVC_RC && f->ackreq_run_max > 1)
        judge_note(j, RULE_SEQ_09, flow, 0, say(j, "%u packets", f->ackreq_run_max), "The longest run of requests without AckReq.");
    if (h->acks)
        judge_note(j, RULE_ACK_10, flow, 0, say(j, "%.1f packets", (double)h->packets / (double)h->acks), "Requests for each ACK, on average.");
    if (f->mid_stream)
        judge_note(j, RULE_CAP_04, flow, h->first_frame, say(j, "PSN %u", h->start), "How this queue pair began was not captured: its state is learnt as far as packets show it.");
}

void judge_flow_end(struct judge *j, uint32_t flow)
{
    const struct jflow *f = &j->flows[flow];
    uint32_t peer = conn_flow_at(j->conns, flow)->peer;

    judge_congestion(j, flow);
    if (!f->half)
        return;
    note_requests(j, flow, f);
    if (f->half->service == SVC_RC && (peer == FLOW_NONE || !j->flows[peer].packets))
        judge_note(j, RULE_CAP_02, flow, f->first_frame, "one direction", "No packet of the other direction was seen.");
    if (f->half->copies)
        judge_note(j, RULE_CAP_02, flow, 0, say(j, "%llu packets", (unsigned long long)f->half->copies),
                   "They are there twice, to the last bit: captured, or duplicated on their way.");
}
