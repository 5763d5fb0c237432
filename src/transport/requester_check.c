/* layer 2 (transport): checks of the requests that a requester sends: one predicate per rule. */
#include "src/transport/transport_impl.h"

bool reserved_is_set(const char *about, uint64_t expected, uint64_t seen, struct verdict *v)
{
    return fail(v, RULE_FMT_04, about, expected, seen);
}

bool breaks_format(const struct pkt *p, struct verdict *v)
{
    const struct bth *h = &p->bth;

    if (UNLIKELY(h->tver != 0))
        return fail(v, RULE_FMT_02, "transport version", 0, h->tver);
    if (UNLIKELY(h->resv6 | h->resv7))
        return reserved_is_set("reserved bits", 0, h->resv6 ? h->resv6 : h->resv7, v);
    if (UNLIKELY((p->have & p->op->ext) != p->op->ext))
        return fail(v, p->op->ext & (H_IMMDT | H_IETH) & ~p->have ? RULE_SEQ_12 : RULE_FMT_06, "headers", p->op->ext,
                    p->have & H_EXT);
    if (UNLIKELY(p->op->flags & (OPF_FIRST | OPF_MIDDLE) ? h->padcnt != 0 : h->padcnt != (-p->payload_len & 3)))
        return fail(v, RULE_FMT_05, "pad count", p->op->flags & (OPF_FIRST | OPF_MIDDLE) ? 0 : -p->payload_len & 3,
                    h->padcnt);
    return false;
}

bool breaks_pad(const struct pkt *p, struct verdict *v)
{
    if (LIKELY(p->bth.padcnt == (-p->payload_len & 3)))
        return false;
    return fail(v, RULE_FMT_05, "pad count", -p->payload_len & 3, p->bth.padcnt);
}

bool breaks_tx_format(const struct tx_view *t, struct verdict *v)
{
    return breaks_format(t->p, v);
}

bool wrong_operation(const struct pkt *p, uint32_t expected, struct verdict *v)
{
    return fail(v, RULE_FMT_03, "opcode", expected, p->bth.opcode);
}

enum rule service_rule(unsigned service, unsigned got)
{
    return (service == SVC_UD) != (got == SVC_UD) ? RULE_SVC_02 : RULE_FMT_03;
}

bool wrong_opcode(unsigned service, const struct pkt *p, struct verdict *v)
{
    unsigned got = p->bth.opcode >> 5;
    enum rule rule = service_rule(service, got);

    if (p->op->name && rule == RULE_SVC_02)
        return fail(v, rule, "service", service, got);
    return wrong_operation(p, service << 5, v);
}

bool breaks_service(const struct tx_view *t, struct verdict *v)
{
    unsigned want = t->r->p.service, got = t->p->bth.opcode >> 5;

    if (LIKELY(want == got && t->p->op->name && t->flags & OPF_REQUEST))
        return false;
    return wrong_opcode(want, t->p, v);
}

bool breaks_count(const struct tx_view *t, struct verdict *v)
{
    return LIKELY(t->p->bth.psn == t->r->psn_next) ? false : fail(v, RULE_SVC_06, "PSN", t->r->psn_next, t->p->bth.psn);
}

/* --- What is not known ------------------------------------------------------------------------ */

/* True if packets before this new one may have been missed. */
static bool may_follow_missed(const struct tx_view *t)
{
    return t->watched && t->p->bth.psn != t->r->psn_next;
}

/* True if the packet has the PSN from which a NAK requires a retransmission, or a later one not acknowledged since. The
 * requester may not have received the NAK. */
static bool may_resume_here(const struct tx_view *t)
{
    uint32_t psn = t->p->bth.psn;

    return t->u->may_resume && psn_diff(psn, t->u->resume_psn_lo) >= 0 && psn_diff(psn, t->r->una_hi) <= 0;
}

/* True if the requester may skip to this packet while it retransmits: an acknowledgement covers the packets before
 * it. */
static bool may_skip_to(const struct tx_view *t)
{
    uint32_t psn = t->p->bth.psn;

    return t->watched && req_going_back(t->r) && psn_diff(psn, t->r->una_hi) <= 0 && psn_diff(psn, t->r->psn_tx) > 0;
}

/* True if the PSN of the packet is possible: a validator does not know which NAKs the requester received, nor, without
 * the path MTU, how many PSNs a READ takes. */
static bool may_come_here(const struct tx_view *t)
{
    if ((may_resume_here(t) && t->now >= t->u->resume_from) || may_skip_to(t))
        return true;
    return t->repeat ? t->u->pmtu_unknown && psn_diff(t->p->bth.psn, t->r->psn_tx) > 0
                     : may_follow(t->r, t->u, t->p->bth.psn);
}

/* READs and atomics without a response to them or to a later request: the requester is certainly waiting for these. */
static uint32_t unanswered(const struct tx_view *t)
{
    uint32_t count = 0;

    for (uint32_t n = t->r->msg_tail; n != t->r->msg_head; n--) {
        const struct req_msg *m = req_msg(t->r, n - 1);
        if (psn_diff(psn_add(m->psn, m->span), t->u->answered) <= 0)
            break;
        count += req_takes_depth(m);
    }
    return count;
}

/* True if the requester may have received responses to some of the READs and atomics that count as outstanding. */
static bool may_have_room(const struct tx_view *t)
{
    return t->watched && unanswered(t) < t->r->p.max_rd;
}

/* True if credits permit the packet of message `ssn`: of a message that they do not permit one packet may be sent, to
 * ask for news. A validator that may have missed messages always permits it. */
static bool may_have_credit(const struct tx_view *t, uint32_t ssn)
{
    int32_t probes = t->flags & OPF_START || !(t->flags & OPF_SEND) ? 1 : 0;

    return t->watched ? !t->u->counted || psn_diff(ssn, t->r->limit) <= probes : req_has_credit(t->r, ssn);
}

/* --- PSN -------------------------------------------------------------------------------------- */

enum rule req_demand_rule(unsigned why)
{
    switch (why) {
    case WHY_IMPLIED_NAK:
        return RULE_RTX_11;
    case WHY_RNR_NAK:
        return RULE_RTX_05;
    default:
        return RULE_RTX_01;
    }
}

/* The rule that demands the PSN r->psn_tx. An endpoint knows why it went back, and takes the rule of that reason. */
static enum rule resume_rule(const struct tx_view *t)
{
    return t->watched || !req_going_back(t->r) ? RULE_SEQ_01 : req_demand_rule(t->r->cause);
}

/* True if the packet is the one that an RNR NAK rejected. */
static bool is_rnr_retry(const struct tx_view *t)
{
    return t->u->may_resume && t->u->resume_why == WHY_RNR_NAK && t->p->bth.psn == t->u->resume_psn;
}

/* True if a SEND or WRITE before the PSN of a sequence NAK is retransmitted. */
static bool ignores_sequence_nak(const struct tx_view *t)
{
    return t->u->may_resume && t->u->resume_why == WHY_SEQUENCE_NAK && t->m &&
           (t->m->kind == MSG_SEND || t->m->kind == MSG_WRITE) && psn_diff(t->p->bth.psn, t->u->resume_psn_lo) < 0;
}

/* True if the packet is retransmitted, but not the one before it without an answer: nothing permits that, whatever the
 * time. A validator need not know the ACK timeout. */
static bool skips_unanswered(const struct tx_view *t)
{
    return t->watched && ack_timeout(t->r->p.timeout) == NS_NEVER && psn_diff(t->p->bth.psn, t->r->una_hi) > 0;
}

/* When the ACK timer of the requester was last restarted, at the latest. */
static ns_t restarted(const struct tx_view *t)
{
    if (t->r->timer != NS_NEVER)
        return t->r->timer;
    return t->u->idle_since ? t->u->idle_since : t->now;
}

/* Likewise, at the earliest. If a PSN that was acknowledged at the tap is retransmitted, the requester did not receive
 * that ACK: its timer may have run since the packet was sent. If the timer had run out before the latest responses
 * came, the retransmission may have waited since then: for its turn, or for the rate of congestion control. */
static ns_t may_have_restarted(const struct tx_view *t)
{
    bool unheard = psn_diff(t->p->bth.psn, t->r->una_hi) < 0 && t->u->sent;
    ns_t at = unheard && t->u->sent < restarted(t) ? t->u->sent : restarted(t);

    return t->u->overdue && t->u->overdue < at ? t->u->overdue : at;
}

/* Retransmitted without a NAK: the ACK timeout must have expired. */
static bool breaks_silence(const struct tx_view *t, struct verdict *v)
{
    const struct requester *r = t->r;
    ns_t wait = ack_timeout(r->p.timeout), most = t->now - may_have_restarted(t), least = t->now - restarted(t);

    if (wait == NS_NEVER || most < wait - t->u->slack) {
        if (ignores_sequence_nak(t))
            return fail(v, RULE_RTX_01, "PSN", t->u->resume_psn, t->p->bth.psn);
        if (skips_unanswered(t))
            return fail(v, RULE_RTX_01, "PSN", r->una_hi, t->p->bth.psn);
        return fail(v, RULE_RTX_02, "ns", wait == NS_NEVER ? 0 : (uint64_t)wait, (uint64_t)most);
    }
    if (psn_diff(t->p->bth.psn, r->una_lo) < 0 || psn_diff(t->p->bth.psn, r->una_hi) > 0)
        return fail(v, RULE_RTX_01, "PSN", r->una_hi, t->p->bth.psn);
    if (req_no_retry_left(r))
        return fail(v, RULE_RTX_04, "retries", r->p.retry_cnt, r->p.retry_cnt + 1u);
    if (t->watched && (least - t->u->slack) / 4 > wait)
        return fail(v, RULE_RTX_03, "ns", (uint64_t)wait * 4, (uint64_t)least);
    return false;
}

/* True if a request other than a READ has a PSN within those of a READ. */
static bool breaks_into_read(const struct tx_view *t)
{
    return t->m && t->m->kind == MSG_READ && t->off && !(t->flags & OPF_READ_REQ) && !t->u->pmtu_unknown;
}

/* True if the packet is retransmitted, but after the PSN that a sequence NAK or an implied NAK requires. */
static bool resumes_too_late(const struct tx_view *t)
{
    uint32_t psn = t->p->bth.psn;

    return t->u->may_resume && t->u->resume_why != WHY_RNR_NAK && psn_diff(psn, t->r->una_hi) > 0 &&
           psn_diff(psn, t->r->psn_tx) < 0;
}

static bool breaks_psn_of_retransmission(const struct tx_view *t, struct verdict *v)
{
    const struct requester *r = t->r;
    const struct req_unknown *u = t->u;
    uint32_t psn = t->p->bth.psn;

    if (u->may_resume && t->now < u->resume_from && psn == u->resume_psn)
        return fail(v, RULE_RTX_05, "ns", (uint64_t)u->rnr_time, (uint64_t)(t->now - u->rnr_seen));
    if (resumes_too_late(t))
        return fail(v, u->resume_why == WHY_IMPLIED_NAK ? RULE_RTX_11 : RULE_RTX_01, "PSN", r->una_hi, psn);
    if (psn_diff(psn, r->psn_tx) > 0)
        return fail(v, resume_rule(t), "PSN", r->psn_tx, psn);
    if (!t->watched && psn_diff(psn, r->una_lo) < 0)
        return fail(v, RULE_RTX_01, "PSN", r->psn_tx, psn);
    return breaks_silence(t, v);
}

static bool breaks_psn(const struct tx_view *t, struct verdict *v)
{
    const struct requester *r = t->r;
    uint32_t psn = t->p->bth.psn;

    if (LIKELY(psn == r->psn_tx))
        return false;
    if (t->repeat && breaks_into_read(t))
        return fail(v, RULE_RDA_01, "PSN", psn_add(t->m->psn, t->m->span), psn);
    if (t->repeat && is_rnr_retry(t) && t->now >= t->u->resume_from && r->rnr_left == 0 && r->p.rnr_retry != 7)
        return fail(v, RULE_RTX_08, "RNR retries", r->p.rnr_retry, r->p.rnr_retry + 1u);
    if (may_come_here(t))
        return false;
    if (t->repeat)
        return breaks_psn_of_retransmission(t, v);
    return fail(v, resume_rule(t), "PSN", r->psn_tx, psn);
}

static bool breaks_rnr(const struct tx_view *t, struct verdict *v)
{
    if (UNLIKELY(t->r->rnr_wait && t->now < t->r->rnr_until))
        return fail(v, RULE_RTX_05, "ns", (uint64_t)t->r->rnr_until, (uint64_t)t->now);
    return false;
}

/* --- Message ---------------------------------------------------------------------------------- */

bool breaks_order(const struct tx_view *t, struct verdict *v)
{
    const struct req_msg *m = t->m;

    if (t->repeat)
        return false;
    if (may_follow_missed(t) || (t->watched && t->r->msg_tail == 0 && !t->u->from_start))
        return false; /* the packet before it was not seen */
    if (!m)
        return LIKELY(t->flags & OPF_START) ? false : fail(v, RULE_SEQ_03, "begun", 0, t->p->bth.opcode);
    if (t->flags & OPF_START)
        return fail(v, t->flags & (OPF_SEND | OPF_WRITE) && kind_of(t->flags) == m->kind ? RULE_SEQ_03 : RULE_SEQ_02,
                    "begun", MESSAGE_BEGUN | m->opcode, t->p->bth.opcode);
    return kind_of(t->flags) == m->kind ? false
                                        : fail(v, RULE_SEQ_02, "begun", MESSAGE_BEGUN | m->opcode, t->p->bth.opcode);
}

bool breaks_length(const struct tx_view *t, struct verdict *v)
{
    uint32_t pmtu = t->r->p.pmtu, len = t->len;

    if (UNLIKELY(t->u->pmtu_unknown && is_path_mtu(len)))
        return false;
    if (t->flags & (OPF_FIRST | OPF_MIDDLE)) {
        if (LIKELY(len == pmtu))
            return false;
        return fail(v,
                    !is_path_mtu(len) ? RULE_SEQ_04
                    : len > pmtu      ? RULE_CM_08
                                      : RULE_SEQ_05,
                    "payload bytes", pmtu, len);
    }
    if (UNLIKELY(len > pmtu))
        return fail(v, RULE_SEQ_04, "payload bytes", pmtu, len);
    if (UNLIKELY(t->flags & OPF_LAST && len == 0))
        return fail(v, RULE_SEQ_04, "payload bytes", 1, 0);
    return false;
}

bool breaks_reth(const struct tx_view *t, struct verdict *v)
{
    uint64_t total;

    if (t->p->op->ext & H_RETH && UNLIKELY(t->p->reth.dmalen > UINT32_C(1) << 31))
        return fail(v, RULE_SEQ_07, "RETH length", UINT32_C(1) << 31, t->p->reth.dmalen);
    if (!(t->flags & OPF_WRITE))
        return false;
    if (t->flags & OPF_START)
        return LIKELY(t->flags & OPF_ONLY ? t->p->reth.dmalen == t->len : t->p->reth.dmalen > t->len)
                   ? false
                   : fail(v, RULE_SEQ_06, "bytes", t->p->reth.dmalen, t->len);
    if (!t->m || t->m->holes || (!t->repeat && may_follow_missed(t)))
        return false;
    total = t->repeat ? (uint64_t)t->off * t->r->p.pmtu + t->len : (uint64_t)t->m->sent + t->len;
    if (LIKELY(t->flags & OPF_LAST ? total == t->m->len : total < t->m->len) || total - t->len >= t->m->len)
        return false; /* or the packets before this one exceeded the length already: reported once */
    return fail(v, RULE_SEQ_06, "bytes", t->m->len, total);
}

bool breaks_solicited(const struct tx_view *t, struct verdict *v)
{
    if (LIKELY(!t->p->bth.se) || (t->flags & OPF_END && (t->flags & OPF_SEND || t->p->op->ext & H_IMMDT)))
        return false;
    return fail(v, RULE_SEQ_08, "solicited event", 0, 1);
}

static bool breaks_window(const struct tx_view *t, struct verdict *v)
{
    uint32_t after = req_outstanding(t->r) + t->span;

    if (LIKELY(t->repeat || after < PSN_HALF))
        return false;
    return fail(v, RULE_SEQ_10, "outstanding PSNs", PSN_HALF - 1, after);
}

static bool breaks_depth(const struct tx_view *t, struct verdict *v)
{
    if (LIKELY(t->repeat || !(t->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ)) || t->r->rd_out < t->r->p.max_rd))
        return false;
    if (may_have_room(t))
        return false;
    return fail(v, RULE_RDA_06, "READs and atomics outstanding", t->r->p.max_rd, t->r->rd_out + 1u);
}

bool breaks_alignment(const struct pkt *p, struct verdict *v)
{
    if (LIKELY(!(p->op->flags & OPF_ATOMIC_REQ) || p->atomiceth.va % 8 == 0))
        return false;
    return fail(v, RULE_RDA_08, "address modulo 8", 0, p->atomiceth.va % 8);
}

static bool breaks_tx_alignment(const struct tx_view *t, struct verdict *v)
{
    return breaks_alignment(t->p, v);
}

static bool breaks_credit(const struct tx_view *t, struct verdict *v)
{
    const struct requester *r = t->r;
    uint32_t ssn;

    if (LIKELY(r->unlimited) || t->repeat)
        return false;
    if (!(t->flags & OPF_SEND && (t->watched || t->flags & OPF_START)) &&
        !(t->flags & OPF_WRITE && t->p->op->ext & H_IMMDT))
        return false;
    ssn = t->flags & OPF_START ? psn_add(r->ssn, 1) : r->ssn;
    if (may_have_credit(t, ssn))
        return false;
    fail(v, RULE_ACK_08, "SSN", psn_add(r->limit, 1), ssn);
    v->needs = t->watched ? N_TAP_REQ : 0; /* else it may have been sent before the ACK */
    return true;
}

/* Opcode at `off` PSNs in message `m`: First, Middle or Last. */
static uint8_t opcode_at(const struct req_msg *m, uint32_t off, uint8_t service)
{
    if (off == 0)
        return m->opcode;
    if (!m->open && off + 1 == m->span)
        return m->last_opcode;
    return OPCODE(service, m->kind == MSG_SEND ? OP_SEND_MIDDLE : OP_WRITE_MIDDLE);
}

static bool breaks_reread(const struct tx_view *t, struct verdict *v)
{
    uint64_t skip = (uint64_t)t->off * t->r->p.pmtu;
    const struct reth *h = &t->p->reth;

    if (UNLIKELY(t->off && t->u->pmtu_unknown))
        return false;
    if (h->va != t->m->va + skip)
        return fail(v, RULE_RDA_04, "address", t->m->va + skip, h->va);
    if (skip + h->dmalen > t->m->len)
        return fail(v, RULE_RDA_04, "RETH length", t->m->len - skip, h->dmalen);
    return h->rkey == t->m->rkey ? false : fail(v, RULE_RDA_04, "R_Key", t->m->rkey, h->rkey);
}

/* A RETH or AtomicETH that is sent again names the same memory. */
static bool differs_in_memory(const struct tx_view *t, const struct req_msg *m, struct verdict *v)
{
    bool reth = t->p->op->ext & H_RETH;
    uint64_t va = reth ? t->p->reth.va : t->p->atomiceth.va;
    uint32_t rkey = reth ? t->p->reth.rkey : t->p->atomiceth.rkey;

    if (!(t->p->op->ext & (H_RETH | H_ATOMICETH)))
        return false;
    if (va != m->va)
        return fail(v, RULE_SEQ_11, "address", m->va, va);
    if (rkey != m->rkey)
        return fail(v, RULE_SEQ_11, "R_Key", m->rkey, rkey);
    return reth && t->p->reth.dmalen != m->len ? fail(v, RULE_SEQ_11, "RETH length", m->len, t->p->reth.dmalen) : false;
}

static bool breaks_repeat(const struct tx_view *t, struct verdict *v)
{
    const struct req_msg *m = t->m;
    uint32_t len;
    uint8_t op;

    if (LIKELY(!t->repeat) || !m || m->holes)
        return false;
    if (m->kind == MSG_READ && t->flags & OPF_READ_REQ)
        return breaks_reread(t, v);
    if (m->kind == MSG_READ && t->off)
        return false; /* breaks_psn() */
    op = opcode_at(m, t->off, t->r->p.service);
    if (op != t->p->bth.opcode)
        return fail(v, RULE_SEQ_11, "opcode", op, t->p->bth.opcode);
    if (differs_in_memory(t, m, v))
        return true;
    len = m->kind == MSG_ATOMIC               ? 0
          : !m->open && t->off + 1 == m->span ? m->sent - t->off * t->r->p.pmtu
                                              : t->r->p.pmtu;
    return t->len == len ? false : fail(v, RULE_SEQ_11, "payload bytes", len, t->len);
}

/* For new and for retransmitted packets; the order decides which rule is reported first. */
static const tx_rule rc_rules[] = {
    breaks_service,   breaks_psn,       breaks_rnr,    breaks_repeat, breaks_order,        breaks_length, breaks_reth,
    breaks_tx_format, breaks_solicited, breaks_window, breaks_depth,  breaks_tx_alignment, breaks_credit};

struct tx_view tx_view_of(const struct requester *r, const struct req_unknown *u, const struct pkt *p)
{
    static const struct req_unknown nothing;

    return (struct tx_view){.r = r,
                            .u = u ? u : &nothing,
                            .p = p,
                            .flags = p->op->flags,
                            .len = p->payload_len,
                            .span = 1,
                            .watched = u != NULL};
}

/* Message number of the retransmitted packet. */
static uint32_t message_of(const struct tx_view *t)
{
    uint32_t psn = t->p->bth.psn;

    if (t->watched)
        return req_find_remembered(t->r, psn);
    return psn == t->r->psn_tx ? t->r->msg_tx : req_find(t->r, psn);
}

static void view_rc(struct tx_view *t, ns_t now)
{
    const struct requester *r = t->r;
    uint32_t n;

    t->now = now;
    t->span = request_span(t->p, r->p.pmtu);
    t->repeat = psn_diff(t->p->bth.psn, r->psn_next) < 0;
    if (LIKELY(!t->repeat)) {
        const struct req_msg *m = req_msg(r, r->msg_tail - 1);
        if (r->msg_tail && m->kind != MSG_LOCAL && m->open)
            t->m = m;
        return;
    }
    n = message_of(t);
    if (n != r->msg_tail) {
        t->m = req_msg(r, n);
        t->off = (t->p->bth.psn - t->m->psn) & PSN_MASK;
    }
}

unsigned req_tx_check_all(const struct requester *r, const struct req_unknown *u, const struct pkt *p, ns_t now,
                          struct verdict *out, unsigned max)
{
    struct tx_view t = tx_view_of(r, u, p);

    if (is_unreliable(r->p.service))
        return unreliable_ops(r->p.service)->tx_check(&t, out, max);
    view_rc(&t, now);
    return tx_run(rc_rules, ARRAY_LEN(rc_rules), &t, out, max);
}

struct verdict req_tx_check(const struct requester *r, const struct pkt *p, ns_t now)
{
    struct verdict v;

    return req_tx_check_all(r, NULL, p, now, &v, 1) ? v : verdict_pass();
}
