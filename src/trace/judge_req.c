/* layer 3 (trace): the judge: rules about the requests of a connection. */
#include "src/trace/judge_impl.h"

#include <stdlib.h>

#define NAK_ON_ITS_WAY (5 * NS_PER_US) /* at the requester's tap: a NAK this young may not have been read yet */

/* The common start of a finding about a request. */
static struct found about(enum rule rule, uint32_t flow)
{
    return (struct found){.rule = rule, .severity = rule_table[rule].severity, .flow = flow};
}

static const char *opcode_name(uint8_t opcode)
{
    return opcode_table[opcode].name ? opcode_table[opcode].name : "another";
}

/* --- Order and length of messages ----------------------------------------------------------------------------------------------- */

static uint32_t operation_of(uint32_t flags)
{
    return flags & (OPF_SEND | OPF_WRITE | OPF_READ_REQ | OPF_ATOMIC_REQ | OPF_FLUSH | OPF_ATOMIC_WRITE);
}

/* A packet not seen before against the packet of the PSN before it, whenever that was sent. */
static void check_neighbour(struct judge *j, const struct pkt *p, uint32_t flow, struct half *h)
{
    const struct sent *before = half_sent(h, psn_add(p->bth.psn, PSN_MASK));
    uint32_t flags = p->op->flags, prev;
    struct found f = about(RULE_SEQ_03, flow);

    if (!before)
        return;
    prev = opcode_table[before->opcode].flags;
    if (flags & OPF_START ? prev & OPF_END : prev & (OPF_FIRST | OPF_MIDDLE) && operation_of(prev) == operation_of(flags))
        return;
    if (!(flags & OPF_START) && prev & OPF_END) {
        f.expected = "a First or Only: the message before is complete";
        f.text = "A Middle or Last packet continues a message, but the packet before it has ended one.";
    } else if (operation_of(prev) != operation_of(flags) && !(flags & OPF_START && prev & OPF_END)) {
        f.rule = RULE_SEQ_02;
        f.expected = say(j, "a packet that continues %s", opcode_name(before->opcode));
        f.text = "Messages of one queue pair do not interleave: the responder refuses the request as invalid.";
    } else {
        f.expected = say(j, "a packet that continues %s", opcode_name(before->opcode));
        f.text = "A new message begins although the one before it has not ended.";
    }
    f.seen = p->op->name;
    f.cause = before->first;
    judge_found(j, p, f);
}

/* The payloads of a WRITE, all of whose packets were seen in order, against its RETH. */
static void check_write(struct judge *j, const struct pkt *p, uint32_t flow, struct jflow *f)
{
    uint32_t flags = p->op->flags;
    struct found g = about(RULE_SEQ_06, flow);

    if (flags & OPF_START) {
        f->wr_open = true;
        f->wr_sum = 0;
        f->wr_total = p->reth.dmalen;
        f->wr_frame = frame_u32(p);
    } else if (!f->wr_open || p->bth.psn != f->wr_next) {
        f->wr_open = false;
        return;
    }
    f->wr_sum += p->payload_len;
    f->wr_next = psn_add(p->bth.psn, 1);
    if (LIKELY(flags & OPF_END ? f->wr_sum == f->wr_total : f->wr_sum < f->wr_total))
        return;
    f->wr_open = false;
    g.cause = f->wr_frame != p->frame->number ? f->wr_frame : 0;
    g.expected = say(j, "%u bytes as the RETH says", f->wr_total);
    g.seen = say(j, "%llu%s", (unsigned long long)f->wr_sum, flags & OPF_END ? "" : " and more to come");
    g.text = "The packets of the WRITE carry another number of bytes than its first packet announces.";
    judge_found(j, p, g);
}

/* A request among the PSNs that the answer to a READ takes. */
static void check_inside_read(struct judge *j, const struct pkt *p, uint32_t flow, struct half *h)
{
    const struct ask *a = h->asks_at ? half_ask(h, p->bth.psn, 0) : NULL;
    struct found f = about(RULE_RDA_01, flow);

    if (LIKELY(!a) || a->psn == p->bth.psn || p->op->flags & OPF_READ_REQ || !h->pmtu || a->answered)
        return;
    f.cause = a->frame;
    f.expected = say(j, "PSN %u, behind the %u PSNs of the READ at %u", psn_add(a->psn, a->span), a->span, a->psn);
    f.seen = say(j, "PSN %u", p->bth.psn);
    f.text = "A READ request takes as many PSNs as it has responses; the next request follows them.";
    judge_found(j, p, f);
}

static void check_depth(struct judge *j, const struct pkt *p, uint32_t flow, struct half *h)
{
    const struct conn_params *c = &conn_flow_at(j->conns, flow)->params;
    struct found f = about(RULE_RDA_06, flow);
    struct ask *oldest;
    uint32_t n;

    if (LIKELY(!(p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ))) || !c->have_depth)
        return;
    n = half_outstanding(h, &oldest) + 1;
    if (LIKELY(n <= c->depth))
        return;
    f.cause = oldest ? oldest->frame : c->rep_frame;
    f.expected = say(j, "at most %u READs and atomics outstanding", c->depth);
    f.seen = say(j, "%u", n);
    f.text = "REQ and REP agreed on fewer: the responder may refuse this one as invalid, which ends the connection.";
    judge_found(j, p, f);
}

/* --- Sending again --------------------------------------------------------------------------------------------------------------- */

/* The oldest READ or atomic remembered whose answer takes `psn`: the original of those asked for again. */
static struct ask *original_ask(struct half *h, uint32_t psn)
{
    struct ask *a = half_ask(h, psn, 0), *older;

    for (unsigned n = 1; n < 8 && (older = half_ask(h, psn, n)) != NULL; n++)
        a = older;
    return a;
}

/* A READ asked for again, or a further part of it. */
static void check_reread(struct judge *j, const struct pkt *p, uint32_t flow, struct half *h)
{
    struct ask *a = original_ask(h, p->bth.psn);
    struct found f = about(RULE_RDA_04, flow);
    uint64_t skip, va;

    if (!a || a->answered || a->opcode != OP_READ_REQUEST || (a->psn != p->bth.psn && !h->pmtu))
        return;
    skip = (uint64_t)((p->bth.psn - a->psn) & PSN_MASK) * h->pmtu;
    va = a->va + skip;
    f.cause = a->frame;
    if (p->reth.va != va) {
        f.expected = say(j, "address 0x%llx", (unsigned long long)va);
        f.seen = say(j, "0x%llx", (unsigned long long)p->reth.va);
    } else if (p->reth.rkey != a->rkey) {
        f.expected = say(j, "R_Key 0x%x", a->rkey);
        f.seen = say(j, "0x%x", p->reth.rkey);
    } else if (p->reth.dmalen + skip > a->len) {
        f.expected = say(j, "at most %llu bytes", (unsigned long long)(a->len - skip));
        f.seen = say(j, "%u", p->reth.dmalen);
    } else {
        return;
    }
    f.text = "A READ that is asked for again, in whole or from its first missing response on, stays inside of the original.";
    judge_found(j, p, f);
}

static void check_same(struct judge *j, const struct pkt *p, uint32_t flow, struct half *h)
{
    const struct sent *s = half_sent(h, p->bth.psn);
    struct found f = about(RULE_SEQ_11, flow);

    if (!s)
        return;
    f.cause = s->first;
    if (s->opcode != p->bth.opcode) {
        f.expected = opcode_name(s->opcode);
        f.seen = p->op->name;
    } else if (p->op->flags & OPF_READ_REQ) {
        return;
    } else if (s->len != (uint16_t)p->payload_len) {
        f.expected = say(j, "%u bytes", s->len);
        f.seen = say(j, "%u", p->payload_len);
    } else if (s->reth != reth_hash(p)) {
        f.expected = "the RETH or AtomicETH of the first time";
        f.seen = "another one";
    } else {
        return;
    }
    f.text = "A packet that is sent again is the same packet.";
    judge_found(j, p, f);
}

static ns_t tolerance(const struct judge *j)
{
    return j->o.profile == PROFILE_RXE ? 4 * NS_PER_MS : 0;
}

/* The transport timer of the requests of `flow`; false if it is not known. */
static bool timeout_of(const struct judge *j, uint32_t flow, ns_t *t, unsigned *retries)
{
    const struct conn_params *c = &conn_flow_at(j->conns, flow)->params;
    int n = c->have_timeout ? c->timeout : j->o.ack_timeout;
    int r = c->have_timeout ? c->retry_cnt : j->o.retry_cnt;

    *t = n > 0 ? INT64_C(4096) << (n & 31) : NS_NEVER;
    *retries = r >= 0 ? (unsigned)r : UINT32_MAX;
    return n >= 0;
}

/* Sent again without a NAK: the timer explains it, if it has run out. */
static void check_silence(struct judge *j, const struct pkt *p, uint32_t flow, struct half *h)
{
    const struct sent *s = half_sent(h, p->bth.psn);
    ns_t start = s->ts, elapsed, wait;
    unsigned retries;
    bool known = timeout_of(j, flow, &wait, &retries);
    struct found f = about(RULE_RTX_02, flow);

    if (h->have_una && h->una_ts > start)
        start = h->una_ts;
    elapsed = p->frame->ts - start;
    f.cause = s->last;
    f.has = known ? N_CM : 0;
    f.lacks = (known ? 0 : N_CM) | (h->twin || h->disorder || half_is_unknown_read(h, p) ? N_COMPLETE : 0);
    f.seen = say(j, "%.6f ms", (double)elapsed / 1e6);
    if (!known || elapsed < wait - tolerance(j)) {
        f.expected = !known ? "the timeout" : wait == NS_NEVER ? "no timeout: it is off" : say(j, "at least %.6f ms", (double)wait / 1e6);
        f.text = "The packet was sent again although neither a NAK nor a gap in the answers was seen, before the ACK timeout had run out.";
        if (j->o.profile != PROFILE_NV)
            judge_found(j, p, f);
    } else if (wait != NS_NEVER && elapsed / 4 > wait) {
        f.rule = RULE_RTX_03;
        f.severity = SEV_W;
        f.expected = say(j, "at most %.6f ms", (double)wait / 250e3);
        f.text = "The ACK timeout had run out long ago; the requester was slow to react.";
        judge_found(j, p, f);
    }
    if (h->retries + 1 > retries && !(retries == 7 && j->o.profile == PROFILE_RXE)) {
        f = about(RULE_RTX_04, flow);
        f.has = known ? N_CM : 0;
        f.lacks = (known ? 0 : N_CM) | (h->disorder ? N_COMPLETE : 0);
        f.cause = s->first;
        f.expected = say(j, "at most %u retries", retries);
        f.seen = say(j, "%u", h->retries + 1);
        f.text = "After the last retry the queue pair fails, and sends nothing more.";
        judge_found(j, p, f);
    }
}

static void check_rnr(struct judge *j, const struct pkt *p, uint32_t flow, struct half *h)
{
    const struct conn_params *c = &conn_flow_at(j->conns, flow)->params;
    ns_t wait = rnr_time(h->rnr.syndrome & 31), elapsed = p->frame->ts - h->rnr.ts;
    struct found f = about(RULE_RTX_05, flow);

    f.cause = h->rnr.frame;
    if (h->rnr.psn == p->bth.psn && !h->back && elapsed > NAK_ON_ITS_WAY && elapsed < wait - tolerance(j) - (j->o.complete ? 0 : CLOCK_SLACK)) {
        f.expected = say(j, "a wait of %.3f ms", (double)wait / 1e6);
        f.seen = say(j, "%.3f ms", (double)elapsed / 1e6);
        f.text = "The RNR NAK names the time to wait before the next try.";
        judge_found(j, p, f);
    }
    if (c->have_rnr && c->rnr_retry != 7 && h->rnr.times > c->rnr_retry) {
        f = about(RULE_RTX_08, flow);
        f.cause = h->rnr.frame;
        f.expected = say(j, "at most %u retries", c->rnr_retry);
        f.seen = say(j, "%u", h->rnr.times);
        f.text = "After the last RNR retry the queue pair fails, and sends nothing more.";
        judge_found(j, p, f);
    }
}

/* Whether the requester may have gone back to `psn` because its timer ran out; *known: the timer is. */
static bool may_be_timeout(const struct judge *j, const struct pkt *p, uint32_t flow, struct half *h, bool *known)
{
    const struct sent *s = half_sent(h, p->bth.psn);
    unsigned retries;
    ns_t wait;

    *known = timeout_of(j, flow, &wait, &retries);
    return *known && s && p->frame->ts - s->ts >= wait - tolerance(j);
}

/* Where it resumes after a sequence NAK. */
static void check_resume(struct judge *j, const struct pkt *p, uint32_t flow, struct half *h)
{
    int32_t d = psn_diff(p->bth.psn, h->seq.psn);
    struct found f = about(RULE_RTX_01, flow);
    bool known;

    if (d == 0 || p->bth.psn == h->seq_low || j->o.profile == PROFILE_NV || p->frame->ts - h->seq.ts < NAK_ON_ITS_WAY || h->back)
        return;
    if (d > 0 ? h->have_una && psn_diff(h->una, h->seq.psn) > 0 : half_ask(h, p->bth.psn, 0) != NULL)
        return;
    if (may_be_timeout(j, p, flow, h, &known))
        return;
    f.lacks = (known || d > 0 ? 0 : N_CM) | (h->disorder ? N_COMPLETE : 0);
    f.cause = h->seq.frame;
    f.expected = say(j, "PSN %u", h->seq.psn);
    f.seen = say(j, "PSN %u", p->bth.psn);
    f.text = d > 0 ? "The responder waits for the PSN that its NAK names, and ignores what follows it."
                   : "The NAK acknowledges what lies before its PSN; that need not be sent again.";
    judge_found(j, p, f);
}

/* After an answer that passed over part of a READ, that part is asked for. */
static void check_implied(struct judge *j, const struct pkt *p, uint32_t flow, struct half *h)
{
    struct ask *a = half_ask(h, p->bth.psn, 0);
    struct found f = about(RULE_RTX_11, flow);
    bool known;

    if (!a || a->answered || h->back || j->o.profile == PROFILE_NV || !(p->op->flags & OPF_READ_REQ))
        return;
    if (psn_diff(p->bth.psn, psn_add(a->psn, a->got)) <= 0 || may_be_timeout(j, p, flow, h, &known))
        return;
    f.lacks = h->disorder ? N_COMPLETE : 0;
    f.cause = a->rsp_last ? a->rsp_last : a->frame;
    f.expected = say(j, "PSN %u, the first response that is missing", psn_add(a->psn, a->got));
    f.seen = say(j, "PSN %u", p->bth.psn);
    f.text = "A part of the answer was lost, and is not asked for again.";
    judge_found(j, p, f);
}

/* A request seen before and now again. */
static void check_again(struct judge *j, const struct pkt *p, uint32_t flow, struct jflow *jf)
{
    struct half *h = jf->half;
    enum why_back why;

    check_same(j, p, flow, h);
    if (h->have_una && psn_diff(p->bth.psn, h->una) < 0 && !half_ask(h, p->bth.psn, 0) && jf->spurious++ == 0)
        jf->spurious_frame = frame_u32(p);
    if (psn_diff(p->bth.psn, h->cursor) >= 0)
        return; /* goes on where it was, or packets between were lost before the tap */
    why = half_why_back(h, p->bth.psn);
    if (why == BACK_RNR)
        check_rnr(j, p, flow, h);
    else if (why == BACK_SILENCE && !h->seq.have && half_sent(h, p->bth.psn))
        check_silence(j, p, flow, h);
    else if (why == BACK_SILENCE && half_sent(h, p->bth.psn) && (h->seq.resent || psn_diff(h->una, h->seq.psn) > 0))
        check_silence(j, p, flow, h);
    if (h->seq.have && !h->seq.resent)
        check_resume(j, p, flow, h);
    else if (why == BACK_IMPLIED)
        check_implied(j, p, flow, h);
    if (why == BACK_SEQ_NAK && p->frame->ts - h->seq.ts > jf->nak_reaction)
        jf->nak_reaction = p->frame->ts - h->seq.ts;
}

/* --- All of it -------------------------------------------------------------------------------------------------------------------- */

static void check_window(struct judge *j, const struct pkt *p, uint32_t flow, struct half *h)
{
    struct found f = about(RULE_SEQ_10, flow);
    uint32_t n = (p->bth.psn - h->una) & PSN_MASK;

    if (LIKELY(!h->have_una || n < PSN_HALF - 1))
        return;
    f.cause = h->una_frame;
    f.expected = say(j, "fewer than %u PSNs outstanding", PSN_HALF);
    f.seen = say(j, "%u", n + 1);
    f.text = "Old and new packets can no longer be told apart.";
    judge_found(j, p, f);
}

static void check_uc_again(struct judge *j, const struct pkt *p, uint32_t flow, struct half *h)
{
    const struct sent *s = half_sent(h, p->bth.psn);
    struct found f = about(RULE_SVC_06, flow);

    f.cause = s ? s->first : 0;
    f.expected = say(j, "PSN %u", h->next);
    f.seen = say(j, "PSN %u once more", p->bth.psn);
    f.text = "An unreliable connection never sends a packet twice.";
    judge_found(j, p, f);
}

static struct half *half_of(struct judge *j, const struct pkt *p, uint32_t flow)
{
    const struct flow *c = conn_flow_at(j->conns, flow);
    struct jflow *f = &j->flows[flow];
    struct half *h = f->half;

    if (LIKELY(h != NULL))
        return h;
    h = f->half = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    half_init(h, flow);
    half_set_pmtu(h, c->pmtu);
    h->from_start = c->have_psn && c->psn == p->bth.psn;
    f->mid_stream = !h->from_start;
    return h;
}

static void gap_begins(struct jflow *f, const struct pkt *p, const struct half *h)
{
    if (f->gap.have)
        return;
    f->gap = (struct pending_fail){.have = true,
                                   .psn = h->next,
                                   .frame = frame_u32(p),
                                   .conn_packets = (uint32_t)f->packets,
                                   .rule = h->service == SVC_UC ? RULE_SVC_06 : RULE_SEQ_01,
                                   .other = p->bth.psn};
}

void judge_request(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct jflow *f = &j->flows[flow];
    struct half *h = half_of(j, p, flow);
    enum seen_as as;

    if (!h)
        return;
    as = half_seen_as(h, p);
    judge_agreed(j, p, flow, as);
    if (LIKELY(as == SEEN_NEW || as == SEEN_GAP || as == SEEN_LATE)) {
        check_neighbour(j, p, flow, h);
        check_inside_read(j, p, flow, h);
        if (as == SEEN_NEW)
            check_window(j, p, flow, h);
        if (as != SEEN_LATE)
            check_depth(j, p, flow, h);
    } else if (as == SEEN_AGAIN && h->service == SVC_UC) {
        check_uc_again(j, p, flow, h);
    } else if (as == SEEN_AGAIN) {
        check_again(j, p, flow, f);
        if (p->op->flags & OPF_READ_REQ)
            check_reread(j, p, flow, h);
    }
    if (p->op->flags & OPF_WRITE && as != SEEN_COPY)
        check_write(j, p, flow, f);
    if (as == SEEN_GAP)
        gap_begins(f, p, h);
    f->ackreq_run = p->bth.ackreq ? 0 : f->ackreq_run + 1;
    f->ackreq_run_max = max_u32(f->ackreq_run_max, f->ackreq_run);
    half_request(h, p, as);
}
