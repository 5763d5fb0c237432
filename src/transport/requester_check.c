/* layer 2 (transport): the check half of a requester's sending: one predicate a rule. */
#include "src/transport/tx_check.h"
#include "src/transport/uc.h"
#include "src/transport/ud.h"

bool breaks_format(const struct pkt *p, struct verdict *v)
{
    const struct bth *h = &p->bth;

    if (UNLIKELY(h->tver != 0))
        return fail(v, RULE_FMT_02, "transport version", 0, h->tver);
    if (UNLIKELY(h->resv6 | h->resv7))
        return fail(v, RULE_FMT_04, "reserved bits", 0, h->resv6 ? h->resv6 : h->resv7);
    if (UNLIKELY((p->have & p->op->ext) != p->op->ext))
        return fail(v, p->op->ext & (H_IMMDT | H_IETH) & ~p->have ? RULE_SEQ_12 : RULE_FMT_06, "headers", p->op->ext,
                    p->have & H_EXT);
    if (UNLIKELY(p->op->flags & (OPF_FIRST | OPF_MIDDLE) ? h->padcnt != 0 : h->padcnt != (-p->payload_len & 3)))
        return fail(v, RULE_FMT_05, "pad count", p->op->flags & (OPF_FIRST | OPF_MIDDLE) ? 0 : -p->payload_len & 3,
                    h->padcnt);
    return false;
}

static bool breaks_tx_format(const struct tx_view *t, struct verdict *v)
{
    return breaks_format(t->p, v);
}

bool breaks_service(const struct tx_view *t, struct verdict *v)
{
    unsigned want = t->r->p.service, got = t->p->bth.opcode >> 5;

    if (LIKELY(want == got && t->p->op->name && t->flags & OPF_REQUEST))
        return false;
    if (t->p->op->name && (want == SVC_UD) != (got == SVC_UD))
        return fail(v, RULE_SVC_02, "service", want, got);
    return fail(v, RULE_FMT_03, "opcode", want << 5, t->p->bth.opcode);
}

/* Which rule forbids sending anything but r->psn_tx. */
static enum rule resume_rule(const struct requester *r)
{
    switch (r->cause) {
    case WHY_IMPLIED_NAK:
        return RULE_RTX_11;
    case WHY_RNR_NAK:
        return RULE_RTX_05;
    default:
        return RULE_RTX_01;
    }
}

/* Sent again without a NAK: a timeout must explain it. */
static bool breaks_silence(const struct tx_view *t, struct verdict *v)
{
    const struct requester *r = t->r;
    ns_t wait = ack_timeout(r->p.timeout), elapsed = r->timer == NS_NEVER ? 0 : t->now - r->timer;

    if (r->timer == NS_NEVER || wait == NS_NEVER || elapsed < wait - r->p.slack) {
        if (r->alt && r->alt_why == WHY_SEQUENCE_NAK && t->m && (t->m->kind == MSG_SEND || t->m->kind == MSG_WRITE) &&
            psn_diff(t->p->bth.psn, r->alt_low) < 0)
            return fail(v, RULE_RTX_01, "PSN", r->alt_psn, t->p->bth.psn);
        return fail(v, RULE_RTX_02, "ns", wait == NS_NEVER ? 0 : (uint64_t)wait, (uint64_t)elapsed);
    }
    if (psn_diff(t->p->bth.psn, r->una_lo) < 0 || psn_diff(t->p->bth.psn, r->una_hi) > 0)
        return fail(v, RULE_RTX_01, "PSN", r->una_hi, t->p->bth.psn);
    if (r->retry_left == 0 && !(r->p.rxe && r->p.retry_cnt == 7))
        return fail(v, RULE_RTX_04, "retries", r->p.retry_cnt, r->p.retry_cnt + 1u);
    if (!r->p.certain && (elapsed - r->p.slack) / 4 > wait)
        return fail(v, RULE_RTX_03, "ns", (uint64_t)wait * 4, (uint64_t)elapsed);
    return false;
}

/* Whether an end keeps to the answers before `psn`: they lack nothing that could be seen, and the queue pair may be
 * used anew. */
static bool is_answered(const struct tx_view *t)
{
    return !t->r->p.certain && psn_diff(psn_add(t->m->psn, t->m->span), t->r->una_hi) <= 0;
}

/* Whether `psn` is where a NAK, which the requester may have received, tells it to resume: there, or behind what it
 * heard since. */
static bool is_alternative(const struct tx_view *t)
{
    const struct requester *r = t->r;

    if (r->alt && t->now >= r->alt_from && psn_diff(t->p->bth.psn, r->alt_low) >= 0 &&
        psn_diff(t->p->bth.psn, r->una_hi) <= 0)
        return true;
    /* While it sends again, an acknowledgement, the last seen or an earlier one, makes it skip what arrived. */
    return !r->p.certain && req_going_back(r) && psn_diff(t->p->bth.psn, r->una_hi) <= 0 &&
           psn_diff(t->p->bth.psn, r->psn_tx) > 0;
}

static bool breaks_psn(const struct tx_view *t, struct verdict *v)
{
    const struct requester *r = t->r;
    uint32_t psn = t->p->bth.psn;

    if (LIKELY(psn == r->psn_tx))
        return false;
    if (t->repeat && t->m && t->m->kind == MSG_READ && t->off && !(t->flags & OPF_READ_REQ) && !is_answered(t) &&
        !r->p.guess)
        return fail(v, RULE_RDA_01, "PSN", psn_add(t->m->psn, t->m->span), psn);
    if (t->repeat && r->alt && r->alt_why == WHY_RNR_NAK && psn == r->alt_psn && t->now >= r->alt_from &&
        r->rnr_left == 0 && r->p.rnr_retry != 7 && !r->p.certain)
        return fail(v, RULE_RTX_08, "RNR retries", r->p.rnr_retry, r->p.rnr_retry + 1u);
    if (is_alternative(t) || (!t->repeat && may_follow(r, psn)) ||
        (t->repeat && r->p.guess && psn_diff(psn, r->psn_tx) > 0))
        return false;
    if (t->repeat && t->r->alt && t->now < t->r->alt_from && psn == r->alt_psn)
        return fail(v, RULE_RTX_05, "ns", (uint64_t)(r->alt_from - r->alt_at), (uint64_t)(t->now - r->alt_at));
    if (t->repeat && r->alt && r->alt_why != WHY_RNR_NAK && psn_diff(psn, r->una_hi) > 0 &&
        psn_diff(psn, r->psn_tx) < 0)
        return fail(v, r->alt_why == WHY_IMPLIED_NAK ? RULE_RTX_11 : RULE_RTX_01, "PSN", r->una_hi, psn);
    if (!t->repeat || psn_diff(psn, r->psn_tx) > 0)
        return fail(v, req_going_back(r) && r->p.certain ? resume_rule(r) : RULE_SEQ_01, "PSN", r->psn_tx, psn);
    if (r->p.certain && psn_diff(psn, r->una_lo) < 0)
        return fail(v, RULE_RTX_01, "PSN", r->psn_tx, psn);
    return breaks_silence(t, v);
}

static bool breaks_rnr(const struct tx_view *t, struct verdict *v)
{
    const struct requester *r = t->r;

    if (UNLIKELY(r->rnr_wait && t->now < r->rnr_until && r->p.certain))
        return fail(v, RULE_RTX_05, "ns", (uint64_t)r->rnr_until, (uint64_t)t->now);
    return false;
}

bool breaks_order(const struct tx_view *t, struct verdict *v)
{
    const struct req_msg *m = t->m;

    if (t->repeat)
        return false;
    if (!t->r->p.certain && (t->p->bth.psn != t->r->psn_next || (t->r->msg_tail == 0 && !t->r->p.from_start)))
        return false; /* the packet before it was not seen */
    if (!m)
        return LIKELY(t->flags & OPF_START) ? false : fail(v, RULE_SEQ_03, "opcode", 0, t->p->bth.opcode);
    if (t->flags & OPF_START)
        return fail(v, t->flags & (OPF_SEND | OPF_WRITE) && kind_of(t->flags) == m->kind ? RULE_SEQ_03 : RULE_SEQ_02,
                    "opcode", m->opcode, t->p->bth.opcode);
    return kind_of(t->flags) == m->kind ? false : fail(v, RULE_SEQ_02, "opcode", m->opcode, t->p->bth.opcode);
}

bool breaks_length(const struct tx_view *t, struct verdict *v)
{
    uint32_t pmtu = t->r->p.pmtu, len = t->len;

    if (UNLIKELY(t->r->p.guess && is_path_mtu(len)))
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
    if (!t->m || t->m->holes || (!t->repeat && t->p->bth.psn != t->r->psn_next && !t->r->p.certain))
        return false;
    total = t->repeat ? (uint64_t)t->off * t->r->p.pmtu + t->len : (uint64_t)t->m->sent + t->len;
    if (LIKELY(t->flags & OPF_LAST ? total == t->m->len : total < t->m->len) || total - t->len >= t->m->len)
        return false; /* or the packets before this one were too much already: once is enough */
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

/* READs and atomics that no response seen answers, nor any behind them: those which a requester certainly waits for. */
static uint32_t unanswered(const struct requester *r)
{
    uint32_t count = 0;

    for (uint32_t n = r->msg_tail; n != r->msg_head; n--) {
        const struct req_msg *m = req_msg(r, n - 1);
        if (psn_diff(psn_add(m->psn, m->span), r->heard) <= 0)
            break;
        count += m->kind == MSG_READ || m->kind == MSG_ATOMIC;
    }
    return count;
}

static bool breaks_depth(const struct tx_view *t, struct verdict *v)
{
    if (LIKELY(t->repeat || !(t->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ)) || t->r->rd_out < t->r->p.max_rd))
        return false;
    if (!t->r->p.certain && unanswered(t->r) < t->r->p.max_rd)
        return false;
    return fail(v, RULE_RDA_06, "READs and atomics outstanding", t->r->p.max_rd, t->r->rd_out + 1u);
}

static bool breaks_alignment(const struct tx_view *t, struct verdict *v)
{
    if (LIKELY(!(t->flags & OPF_ATOMIC_REQ) || t->p->atomiceth.va % 8 == 0))
        return false;
    return fail(v, RULE_RDA_08, "address modulo 8", 0, t->p->atomiceth.va % 8);
}

static bool breaks_credit(const struct tx_view *t, struct verdict *v)
{
    const struct requester *r = t->r;
    uint32_t ssn;

    if (LIKELY(r->unlimited) || t->repeat)
        return false;
    if (!(t->flags & OPF_SEND && t->flags & OPF_START) && !(t->flags & OPF_WRITE && t->p->op->ext & H_IMMDT))
        return false;
    ssn = t->flags & OPF_START ? psn_add(r->ssn, 1) : r->ssn;
    if (r->p.certain ? req_has_credit(r, ssn) : !r->counted || psn_diff(ssn, r->limit) <= 1)
        return false;
    fail(v, RULE_ACK_08, "SSN", psn_add(r->limit, 1), ssn);
    v->needs = r->p.certain ? 0 : N_TAP_REQ; /* else it may have been on its way before the ACK */
    return true;
}

/* Opcode that stands at `off` PSNs in message `m`: its first, a Middle, or its last one. */
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

    if (UNLIKELY(t->off && t->r->p.guess))
        return false;
    if (h->va != t->m->va + skip)
        return fail(v, RULE_RDA_04, "address", t->m->va + skip, h->va);
    if (skip + h->dmalen > t->m->len)
        return fail(v, RULE_RDA_04, "RETH length", t->m->len - skip, h->dmalen);
    return h->rkey == t->m->rkey ? false : fail(v, RULE_RDA_04, "R_Key", t->m->rkey, h->rkey);
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
    op = opcode_at(m, t->off, t->r->p.service);
    if (op != t->p->bth.opcode)
        return fail(v, RULE_SEQ_11, "opcode", op, t->p->bth.opcode);
    if (t->p->op->ext & H_RETH && (t->p->reth.va != m->va || t->p->reth.rkey != m->rkey || t->p->reth.dmalen != m->len))
        return fail(v, RULE_SEQ_11, "address", m->va, t->p->reth.va);
    if (t->p->op->ext & H_ATOMICETH && (t->p->atomiceth.va != m->va || t->p->atomiceth.rkey != m->rkey))
        return fail(v, RULE_SEQ_11, "address", m->va, t->p->atomiceth.va);
    len = m->kind == MSG_ATOMIC               ? 0
          : !m->open && t->off + 1 == m->span ? m->sent - t->off * t->r->p.pmtu
                                              : t->r->p.pmtu;
    return t->len == len ? false : fail(v, RULE_SEQ_11, "payload bytes", len, t->len);
}

/* Both what is new and what is sent again; the order decides which rule is named first. */
static const tx_rule rc_rules[] = {breaks_service, breaks_psn,       breaks_rnr,       breaks_repeat,    breaks_order,
                                   breaks_length,  breaks_reth,      breaks_tx_format, breaks_solicited, breaks_window,
                                   breaks_depth,   breaks_alignment, breaks_credit};

static void view(struct tx_view *t, const struct requester *r, const struct pkt *p, ns_t now)
{
    uint32_t n;

    t->r = r;
    t->p = p;
    t->now = now;
    t->flags = p->op->flags;
    t->len = p->payload_len;
    t->span = request_span(p, r->p.pmtu);
    t->repeat = psn_diff(p->bth.psn, r->psn_next) < 0;
    t->m = NULL;
    t->off = 0;
    if (LIKELY(!t->repeat)) {
        const struct req_msg *m = req_msg(r, r->msg_tail - 1);
        if (r->msg_tail && m->kind != MSG_LOCAL && m->open)
            t->m = m;
        return;
    }
    n = r->p.certain && p->bth.psn == r->psn_tx ? r->msg_tx : req_find(r, p->bth.psn);
    if (n != r->msg_tail) {
        t->m = req_msg(r, n);
        t->off = (p->bth.psn - t->m->psn) & PSN_MASK;
    }
}

/* What a packet carries beside its place in the message: RETH and payload of a WRITE agree. `sent`: bytes before it. */
static bool is_usual_write(const struct pkt *p, const struct req_msg *m)
{
    uint32_t len = p->payload_len;

    if (p->op->flags & OPF_START)
        return p->op->flags & OPF_ONLY ? p->reth.dmalen == len
                                       : p->reth.dmalen > len && p->reth.dmalen <= UINT32_C(1) << 31;
    return m->holes || (p->op->flags & OPF_LAST ? m->sent + len == m->len : m->sent + len < m->len);
}

bool req_tx_is_usual(const struct requester *r, const struct pkt *p)
{
    const struct req_msg *m = req_msg(r, r->msg_tail - 1);
    const struct bth *h = &p->bth;
    uint32_t flags = p->op->flags, len = p->payload_len;

    if (UNLIKELY(h->psn != r->psn_next || h->psn != r->psn_tx || r->rnr_wait || !r->unlimited ||
                 req_outstanding(r) + 1 >= PSN_HALF))
        return false;
    if (UNLIKELY(h->opcode >> 5 != SVC_RC || r->p.service != SVC_RC ||
                 h->tver | h->resv6 | h->resv7 | h->padcnt | h->se || len & 3 || !(flags & (OPF_SEND | OPF_WRITE)) ||
                 p->op->ext & ~p->have))
        return false;
    if (r->msg_tail && m->open ? flags & OPF_START || m->kind != kind_of(flags) : !(flags & OPF_START))
        return false;
    if (flags & (OPF_FIRST | OPF_MIDDLE) ? len != r->p.pmtu : len > r->p.pmtu || (flags & OPF_LAST && !len))
        return false;
    return flags & OPF_SEND || is_usual_write(p, m);
}

unsigned req_tx_check_all(const struct requester *r, const struct pkt *p, ns_t now, struct verdict *out, unsigned max)
{
    struct tx_view t;

    if (r->p.service == SVC_UC)
        return uc_tx_check(r, p, out, max);
    if (r->p.service == SVC_UD)
        return ud_tx_check(r, p, out, max);
    view(&t, r, p, now);
    return tx_run(rc_rules, ARRAY_LEN(rc_rules), &t, out, max);
}

struct verdict req_tx_check(const struct requester *r, const struct pkt *p, ns_t now)
{
    struct verdict v;

    return req_tx_check_all(r, p, now, &v, 1) ? v : verdict_pass();
}
