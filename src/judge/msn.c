/* layer 3 (judge): ACK-06, ACK-07: the MSN of responses. */
#include "src/judge/judge_impl.h"
#include "src/transport/transport_impl.h"

/* The messages that were seen up to and including PSN `psn`, counted from any: false if that is not known. */
static bool messages_to(struct req_dir *h, uint32_t psn, uint32_t *n)
{
    const struct read_req *k = req_dir_read(h, psn, 0), *first = k;
    const struct sent *s;

    for (unsigned nth = 0; k && nth < 8; k = req_dir_read(h, psn, ++nth))
        first = k;
    if (first && req_dir_data(h, psn))
        return false; /* RDA-01 */
    s = req_dir_sent(h, first ? first->psn : psn);
    *n = 0;
    if (!s || !s->msg || s->late)
        return !s && psn == psn_prev(h->start); /* before all of them */
    *n = s->msg - !(opcode_table[s->opcode].flags & OPF_END);
    if (first && psn != psn_add(first->psn, first->span - 1))
        --*n; /* inside a READ, which counts when its request is executed, or when it is complete */
    return true;
}

/* True if the responder must have dropped what was sent ahead of the request that it lacked, unless requests that were
 * not captured may have closed the gap. */
static bool drops_ahead(const struct judge *j, const struct judged *a)
{
    const struct req_dir *h = a->h;

    return judge_tap_at_responder(j, a->flow, a->p) && !h->vague && psn_diff(a->p->bth.psn, h->gbn) < 0;
}

/* The PSN up to which the responder may have executed requests. */
static uint32_t executed_end(const struct judge *j, const struct judged *a)
{
    return drops_ahead(j, a) ? a->h->gbn : a->h->next;
}

static bool is_plain_ack(const struct pkt *p)
{
    return p->op->flags & OPF_ACK && response_type(p) == AETH_ACK && p->have & H_AETH;
}

static bool is_nak(const struct pkt *p)
{
    return p->op->flags & OPF_ACK && response_type(p) != AETH_ACK;
}

/* True if NAK `a->p` refuses the rest of a READ that the responder has begun to execute, and may have counted: the NAK
 * is in the middle of the responses, or some were sent before it, to this request or an earlier copy. */
static bool refuses_rest_of_read(const struct judge *j, const struct judged *a)
{
    const struct pkt *p = a->p;
    const struct read_req *k = req_dir_read(a->h, p->bth.psn, 0);
    const struct sent *s = k ? req_dir_sent(a->h, k->psn) : NULL;
    /* an earlier copy may have been answered, and the response lost before the tap */
    bool began = k && s && s->copies > 1 && !judge_tap_at_responder(j, a->flow, p);

    for (unsigned nth = 0; k && !began && nth < 8; k = req_dir_read(a->h, p->bth.psn, ++nth))
        began = k->opcode == OP_READ_REQUEST && (k->psn != p->bth.psn || k->rsp_first);
    return began;
}

/* The least and the most messages that the MSN of `a->p` may count. A NAK excludes the message that it refuses, unless
 * that is a READ whose responses have begun. */
static bool messages_counted(const struct judge *j, const struct judged *a, uint32_t *least, uint32_t *most)
{
    const struct pkt *p = a->p;
    bool nak = is_nak(p);
    uint32_t last = nak ? psn_prev(p->bth.psn) : p->bth.psn;

    if (!messages_to(a->h, last, least))
        return false;
    *most = *least;
    *most += nak && refuses_rest_of_read(j, a);
    return nak || messages_to(a->h, psn_prev(executed_end(j, a)), most);
}

/* True if nothing indicates that the responder received or sent packets in another order than captured. */
static bool order_is_certain(const struct judge *j, const struct judged *a)
{
    const struct req_dir *h = a->h;
    bool seen_disorder = h->disorder || h->copies || h->loose || h->vague || a->f->history->reordered;

    return !seen_disorder && !j->backwards && j->o.profile != PROFILE_NV;
}

/* True if `s` continues the message of the packet before it, or begins one behind its end (SEQ-02, SEQ-03). */
static bool continues(const struct sent *before, const struct sent *s)
{
    uint32_t was = opcode_table[before->opcode].flags, is = opcode_table[s->opcode].flags;

    return was & OPF_END ? is & OPF_START : !(is & OPF_START) && !((was ^ is) & OPF_SEND);
}

/* Count the messages whose last packet has a PSN from `psn` to `last`; false if one of these packets was not seen, or
 * breaks a message. */
static bool count_ends(struct req_dir *h, uint32_t psn, uint32_t last, uint32_t *ends)
{
    const struct sent *before = req_dir_sent(h, psn_prev(psn));

    *ends = 0;
    if (psn_diff(last, psn) >= TRACK_SENT)
        return false;
    for (; psn_diff(psn, last) <= 0; psn = psn_add(psn, 1)) {
        const struct sent *s = req_dir_data(h, psn);
        if (!s || (before && !continues(before, s)))
            return false;
        *ends += !!(opcode_table[s->opcode].flags & OPF_END);
        before = s;
    }
    return true;
}

/* After a gap messages are not counted until all has been retransmitted. But behind an ACK of all that had come in
 * order, the MSN of the next one must advance by the messages that end until its PSN, and by no more than were sent. */
static void check_msn_after_gap(struct judge *j, const struct judged *a)
{
    const struct pkt *p = a->p;
    struct history *t = a->f->history;
    struct found f = found_of(RULE_ACK_06, a->flow);
    uint32_t from = psn_add(t->msn_base.psn, 1), more = (p->aeth.msn - t->msn_base.msn) & PSN_MASK, ends;
    bool above;

    if (!is_plain_ack(p) || LIKELY(a->f->shadow->rsp.u.counted) || !t->msn_base.have)
        return;
    if (psn_diff(p->bth.psn, t->msn_base.psn) <= 0 || psn_diff(p->aeth.msn, t->msn_base.msn) < 0)
        return; /* an ACK of before */
    above = count_ends(a->h, from, psn_prev(executed_end(j, a)), &ends) && more > ends;
    if (!above && (!count_ends(a->h, from, p->bth.psn, &ends) || more >= ends))
        return;
    f.cause = t->msn_base.frame;
    f.needs = N_COMPLETE | N_TAP_RSP; /* else packets that were not captured may explain the MSN */
    f.lacks = order_is_certain(j, a) ? 0 : N_TAP_RSP;
    f.expected = say(j, "MSN %u at %s", psn_add(t->msn_base.msn, ends), above ? "most" : "least");
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

#define MSN_AGREED 16 /* so many equal values make the number of messages before the capture certain */

/* False if requests that were missed, or that were captured behind the response that counts them, may explain its MSN.
 */
static bool is_sure(const struct judged *a, bool above)
{
    const struct msn_known *t = &a->f->history->msn;
    bool known = t->from_start || (t->agreed >= MSN_AGREED && !(a->p->op->flags & OPF_READ_RESP));

    return known && (!above || is_nak(a->p));
}

/* Needs (N_*) of the verdict. Messages counted from the first one on need no other response, unless some may have been
 * missed behind a READ of which the number of PSNs is not known. */
static unsigned msn_needs(const struct judged *a, bool above)
{
    bool counted = a->f->history->msn.from_start && !a->h->vague;

    return (counted ? 0 : N_CLOCK) | (is_sure(a, above) ? 0 : N_COMPLETE);
}

/* True if this MSN is wrong for the same fault as an earlier one: none since has agreed with the messages, or the MSN
 * is still that one. What is undecided is told of each response. */
static bool is_consequence(const struct judge *j, const struct judged *a, bool above)
{
    const struct msn_known *t = &a->f->history->msn;

    return t->fault.finding && t->fault.above == above && (t->odd || a->p->aeth.msn == t->fault.msn) &&
           findings_at(j->findings, t->fault.finding - 1)->result == V_FAIL;
}

/* Add the failure, or what follows from an earlier one to that. */
static void add_msn(struct judge *j, const struct judged *a, const struct found *f, bool above)
{
    struct msn_known *t = &a->f->history->msn;
    size_t n = findings_n(j->findings);

    if (is_consequence(j, a, above)) {
        judge_is_broken(j, a->p);
        findings_follows(j->findings, t->fault.finding - 1, a->p->frame->number);
        return;
    }
    judge_found(j, a->p, *f);
    t->fault.finding = findings_n(j->findings) > n ? (uint32_t)n + 1 : 0;
    t->fault.msn = a->p->aeth.msn;
    t->fault.above = above;
}

/* True if all requests seen may be duplicates, whose first copies were not captured: each response counts all of their
 * messages. */
static bool may_be_duplicates(const struct msn_known *t)
{
    return !t->from_start && !t->advanced;
}

/* Once a response counts a new message, the requests seen are those that it counts: what followed from responses to
 * duplicates is forgotten. */
static void note_advance(const struct judged *a)
{
    struct msn_known *t = &a->f->history->msn;
    bool was = t->advanced;

    if (!rsp_has_msn(a->p) || psn_diff(a->p->bth.psn, a->h->start) < 0)
        return;
    /* a duplicate SEND or WRITE is acknowledged by the latest PSN: what is sent after that is new */
    t->advanced |= is_plain_ack(a->p) || (t->answered && psn_diff(a->p->aeth.msn, t->answer) > 0);
    t->answered = true;
    t->answer = a->p->aeth.msn;
    if (t->advanced && !was && !t->from_start) {
        t->have = t->odd = false;
        t->agreed = 0;
    }
}

static void report_msn(struct judge *j, const struct judged *a, uint32_t limit, bool above)
{
    const struct msn_known *t = &a->f->history->msn;
    struct found f = found_of(rsp_msn_rule(a->p), a->flow);
    bool start = !above && may_be_duplicates(t),
         other_pair = f.rule == RULE_ACK_07 && j->flow[a->flow].paired_by == PAIR_PSN;
    /* packets that the responder must have dropped may have reached it late, behind the one that it lacked */
    bool late = above && drops_ahead(j, a) && a->h->gbn != a->h->next;

    f.cause = t->frame;
    /* the number of messages before the capture follows from the previous response, if both answer these requests */
    f.has = other_pair || start ? 0 : N_START;
    f.lacks = order_is_certain(j, a) && !late ? 0 : N_CLOCK;
    f.needs = msn_needs(a, above) | (start ? N_START : 0) | (late ? N_CLOCK : 0);
    f.expected = say(j, "MSN %u at %s", limit & PSN_MASK, above ? "most" : "least");
    f.seen = say(j, "%u", a->p->aeth.msn);
    f.text = !t->frame ? rule_table[f.rule].reason.text
                       : say(j,
                             "Frame %u had MSN %u. By the messages seen since then this response counts %s. The MSN "
                             "of one of the two is wrong.",
                             t->frame, t->seen, above ? "too many" : "too few");
    if (!judge_was_broken(j, a->p)) /* else it follows from another fault of this response */
        add_msn(j, a, &f, above);
}

/* The number of messages before the first one seen, as a range, from the MSN of a response; false: not known. */
static bool messages_before(const struct judge *j, const struct judged *a, struct msn_range *carried, uint32_t *least,
                            uint32_t *most)
{
    const struct pkt *p = a->p;

    if (!rsp_has_msn(p) || psn_diff(p->bth.psn, a->f->history->msn.from) < 0 || a->h->loose ||
        !messages_counted(j, a, least, most))
        return false;
    *carried = (struct msn_range){(p->aeth.msn - *most) & PSN_MASK, (p->aeth.msn - *least) & PSN_MASK};
    return true;
}

static bool is_above(struct msn_range carried, struct msn_range known)
{
    return psn_diff(carried.least, known.most) > 0;
}

static bool contradicts(struct msn_range carried, struct msn_range known)
{
    return is_above(carried, known) || psn_diff(carried.most, known.least) < 0;
}

/* What both say. */
static struct msn_range common_range(struct msn_range a, struct msn_range b)
{
    return (struct msn_range){psn_diff(a.least, b.least) > 0 ? a.least : b.least,
                              psn_diff(a.most, b.most) < 0 ? a.most : b.most};
}

bool msn_is_told(const struct judge *j, const struct judged *a)
{
    const struct msn_known *t = &a->f->history->msn;
    struct msn_range carried;
    uint32_t least, most;

    if (!t->have || !messages_before(j, a, &carried, &least, &most))
        return false;
    if (!contradicts(carried, t->known))
        return t->fault.finding; /* it may contradict the wrong one */
    return is_sure(a, is_above(carried, t->known)) || j->o.complete;
}

/* True if the response is one of those to the READ that the last odd one answers, too: they have the same MSN for the
 * same fault. */
static bool is_of_odd_read(const struct judged *a)
{
    const struct read_req *k = req_dir_read(a->h, a->p->bth.psn, 0);

    return k && psn_in(a->f->history->msn.odd_psn, k->psn, k->span);
}

static void take_msn(struct judge *j, const struct judged *a)
{
    struct msn_known *t = &a->f->history->msn;
    const struct jflow *peer = &j->flows[j->flow[a->flow].peer];
    struct msn_range carried;
    uint32_t least, most;
    bool counted;

    if (UNLIKELY(!t->have && peer->unmatched)) /* responses that came before these requests: as in msn_early() */
        t->from = history_later(t->from, psn_add(peer->unmatched_last, 1));
    counted = messages_before(j, a, &carried, &least, &most);
    if (UNLIKELY(!counted || !t->have))
        check_msn_after_gap(j, a);
    note_msn(a);
    if (!counted)
        return;
    if (UNLIKELY(psn_diff(a->p->bth.psn, t->from) > (int32_t)PSN_HALF / 2))
        t->from = a->p->bth.psn; /* PSNs wrap */
    if (LIKELY(t->have && !contradicts(carried, t->known))) {
        t->known = common_range(carried, t->known);
        t->odd = false;
    } else if (t->odd && !contradicts(carried, t->other) && !is_of_odd_read(a)) {
        t->known = common_range(carried, t->other);
        t->odd = t->from_start = false;
        t->agreed = 1;
    } else if (t->have) {
        bool above = is_above(carried, t->known);
        report_msn(j, a, above ? t->known.most + most : t->known.least + least, above);
        t->odd = true;
        t->odd_psn = a->p->bth.psn;
        t->other = carried;
    } else {
        t->have = true;
        t->known = carried;
    }
    if (t->odd)
        return;
    t->agreed = carried.least == carried.most ? t->agreed + 1 : t->agreed;
    t->frame = frame_u32(a->p);
    t->seen = a->p->aeth.msn;
}

void msn_response(struct judge *j, const struct judged *a)
{
    note_advance(a);
    take_msn(j, a);
}

/* Messages were missed, or the queue pair may belong to a new connection: the count restarts at PSN `from`. */
static void forget_msn(struct history *t, uint32_t from)
{
    t->msn = (struct msn_known){.from = history_later(from, t->msn.from),
                                .answered = t->msn.answered,
                                .advanced = t->msn.advanced,
                                .answer = t->msn.answer,
                                .fault = t->msn.fault};
}

void msn_request(const struct judged *a)
{
    struct req_dir *h = a->h;
    bool data = a->p->op->flags & (OPF_SEND | OPF_WRITE);

    if (a->as == SEEN_GAP)
        forget_msn(a->f->history, a->p->bth.psn);
    else if (a->as == SEEN_LATE && data && req_dir_read(h, a->p->bth.psn, 0))
        forget_msn(a->f->history, h->next); /* RDA-01 */
    else if (a->as == SEEN_LATE && psn_diff(a->p->bth.psn, a->f->history->msn.from) >= 0)
        forget_msn(a->f->history, h->next); /* a message that was not counted: its PSN seemed to be that of a READ */
    else if (a->as == SEEN_OLD || (a->as == SEEN_AGAIN && h->have_una && psn_diff(a->p->bth.psn, h->una) < 0))
        forget_msn(a->f->history, h->next);
}

void msn_broken_message(const struct judged *a)
{
    struct shadow *r = a->f->shadow;

    r->req.u.counted = r->rsp.u.counted = false;
    forget_msn(a->f->history, a->as == SEEN_NEW ? a->p->bth.psn : a->h->next);
}

void msn_early(struct judge *j, const struct judged *a)
{
    struct history *t = a->f->history;

    (void)j;
    if (!t->msn.from_start)
        forget_msn(t, response_proves(a->p));
}
