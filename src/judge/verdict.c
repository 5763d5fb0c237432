/* layer 3 (judge): verdicts of the transport's checks as findings: texts of their values, frames that prove them. */
#include "src/judge/judge_impl.h"

/* --- Texts and frames ------------------------------------------------------------------------- */

/* True if the rule's row in rules.def has a reason text; the other rules have checks in this directory. */
static bool is_explained(const struct verdict *v)
{
    return rule_table[v->rule].reason.text != NULL;
}

const char *response_name(const struct pkt *p)
{
    static const char *const types[] = {[AETH_ACK] = "ACK", [AETH_RNR] = "RNR NAK", [AETH_NAK] = "NAK"};
    unsigned type = response_type(p);

    if (!(p->op->flags & OPF_ACK) || type == AETH_RESERVED)
        return p->op->name;
    return type == AETH_NAK && aeth_value(p->aeth.syndrome) == NAK_PSN_SEQ ? "sequence NAK" : types[type];
}

/* Text for the length of a WRITE: the RETH length (`limit`), or the bytes sent. */
static const char *write_length(struct judge *j, const struct pkt *p, uint64_t n, bool limit)
{
    if (p->op->flags & OPF_FIRST)
        return limit ? say(j, "a RETH length above the %s of this first packet", count_str(p->payload_len, "byte"))
                     : say(j, "RETH length %u", p->reth.dmalen);
    if (limit)
        return say(j, "%s, as announced", count_str(n, "byte"));
    return say(j, p->op->flags & OPF_END ? "%s" : "%s, and more to follow", count_str(n, "byte"));
}

/* Text for a time in ns; `limit` and 0: there is no limit. */
static const char *time_value(struct judge *j, const struct judged *a, uint64_t n, bool limit)
{
    if (n >= NS_PER_US)
        return say(j, "%.6f ms", (double)n / 1e6);
    if (!limit || n)
        return say(j, "%llu ns", (unsigned long long)n);
    return judge_has_timeout(j, a->flow) ? "no timeout: it is off" : "the ACK timeout, which is not known";
}

/* Text for a value of a verdict: the one permitted (`limit`), or the one seen. */
static const char *value(struct judge *j, const struct judged *a, const struct verdict *v, bool limit)
{
    const struct pkt *p = a->p;
    uint64_t n = limit ? v->expected : v->seen;
    const char *about = v->about ? v->about : "";

    if (!*about)
        return limit ? "silence" : p->op->name;
    if (!limit && p->op->flags & OPF_RESPONSE && (rule_table[v->rule].reason.instead || strcmp(about, "PSN") == 0))
        return say(j, "%s of PSN %u", response_name(p), p->bth.psn);
    if (strcmp(about, "bytes") == 0) /* length of a WRITE */
        return write_length(j, p, n, limit);
    if (strcmp(about, "begun") == 0 && limit) /* the opcode of the message before, or none */
        return n ? say(j, "the rest of what %s has begun", opcode_name((uint8_t)n)) : "First or Only";
    if (strcmp(about, "SSN") == 0 && v->seen == v->expected) /* the probe is a single packet */
        return say(j, limit ? "one packet of SSN %llu" : "another packet of SSN %llu", (unsigned long long)n);
    if (strcmp(about, "opcode") == 0 || strcmp(about, "begun") == 0)
        return opcode_name((uint8_t)((p->bth.opcode & 0xe0) | (n & 31)));
    if (strcmp(about, "address") == 0 || strcmp(about, "R_Key") == 0 || strcmp(about, "original value") == 0)
        return say(j, "%s 0x%llx", about, (unsigned long long)n);
    if (strcmp(about, "ns") == 0)
        return time_value(j, a, n, limit);
    return say(j, "%s %llu", about, (unsigned long long)n);
}

static const char *permitted(struct judge *j, const struct judged *a, const struct verdict *v)
{
    const char *limit = rule_table[v->rule].reason.limit,
               *what = rule_table[v->rule].reason.instead ? rule_table[v->rule].reason.instead : value(j, a, v, true);

    return limit && v->expected && strcmp(v->about, "opcode") != 0 ? say(j, "%s%s", limit, what) : what;
}

/* First frame of the message that request `psn` belongs to. */
static uint32_t message_frame(const struct judged *a, uint32_t psn)
{
    const struct requester *r = &a->f->shadow->req.r;
    uint32_t n = req_find_remembered(r, psn);
    const struct sent *s = req_dir_sent(a->h, n != r->msg_tail ? req_msg(r, n)->psn
                                              : r->msg_tail    ? req_msg(r, r->msg_tail - 1)->psn
                                                               : psn);

    return s ? s->first : 0;
}

static uint32_t oldest_read(const struct judged *a)
{
    struct read_req *oldest;

    req_dir_outstanding(a->h, &oldest);
    return oldest ? oldest->frame : 0;
}

/* First frame of the READ or atomic that the response belongs to; 0: none. */
static uint32_t original_read(const struct judged *a)
{
    struct read_req *k = req_dir_read(a->h, a->p->bth.psn, 0), *older;

    for (unsigned n = 1; k && n < 8 && (older = req_dir_read(a->h, a->p->bth.psn, n)) != NULL; n++)
        k = older;
    return k ? k->frame : 0;
}

/* The frame that proves a failure of this packet; 0: none. */
static uint32_t cause_of(const struct judged *a, enum rule_cause cause)
{
    static const struct sent not_sent;
    static const struct read_req not_asked;
    struct req_dir *h = a->h;
    uint32_t psn = a->p->bth.psn;
    const struct sent *s = req_dir_sent(h, psn), *before = req_dir_sent(h, psn_prev(psn));
    const struct read_req *k = req_dir_read(h, psn, 0);

    s = s ? s : &not_sent;
    before = before ? before : &not_sent;
    k = k ? k : &not_asked;
    switch (cause) {
    case CAUSE_REQUEST_BEFORE:
        return before->first;
    case CAUSE_MESSAGE:
        return message_frame(a, psn);
    case CAUSE_FIRST_COPY:
        return s->first;
    case CAUSE_LAST_COPY:
        return s->last;
    case CAUSE_LAST_REQUEST:
        return h->last_frame;
    case CAUSE_READ:
        return original_read(a);
    case CAUSE_OLDEST_READ:
        return oldest_read(a);
    case CAUSE_READ_PROGRESS:
        return k->rsp_last ? k->rsp_last : k->frame;
    case CAUSE_FIRST_RESPONSE:
        return k->rsp_first;
    case CAUSE_ACK:
        return h->have_ack ? h->ack_frame : s->first;
    case CAUSE_ACKED:
        return h->una_frame;
    case CAUSE_SEQ_NAK:
        return h->seq.frame;
    case CAUSE_RNR_NAK:
        return h->rnr.frame;
    case CAUSE_FATAL_NAK:
        return h->fatal.frame;
    default:
        return 0;
    }
}

/* True if the packet continues the message that probes for credits. It is not confirmed that only one packet of it may
 * be sent, and Linux' rdmavt sends all of it. */
static bool continues_probe(const struct verdict *v)
{
    return rule_table[v->rule].traits & T_CREDITS && v->seen <= v->expected;
}

/* ns; no response comes sooner, and nothing that it permits: the light in 30 m of fibre and the adapter take longer */
#define SHORTEST_ROUND_TRIP 300

/* True if a response that permits the request, or demands it, may be captured behind it. For a READ or atomic none can
 * if the oldest one outstanding was sent only just before. */
static bool may_cross(const struct judge *j, const struct judged *a, enum rule rule)
{
    struct read_req *oldest;

    if (!(rule_table[rule].traits & T_CROSSES) || rule_table[rule].reason.cause != CAUSE_OLDEST_READ)
        return rule_table[rule].traits & T_CROSSES;
    req_dir_outstanding(a->h, &oldest);
    return !oldest || a->p->frame->ts - oldest->ts >= SHORTEST_ROUND_TRIP || judge_step(j, a->p);
}

/* Report the failure `v` with the frames that prove it; `has` and `lacks` are N_* as in struct found. */
static void report(struct judge *j, const struct judged *a, const struct verdict *v, unsigned has, unsigned lacks)
{
    enum rule rule = (enum rule)v->rule;
    uint32_t cause = cause_of(a, rule_table[rule].reason.cause);
    struct found f = found_of(rule, a->flow);

    f.needs = v->needs;
    f.lacks = lacks;
    f.has = has;
    f.cause = cause == a->p->frame->number ? 0 : cause;
    if (continues_probe(v))
        f.severity = SEV_W;
    f.expected = permitted(j, a, v);
    f.seen = value(j, a, v, false);
    f.text = rule_table[rule].reason.text;
    if (may_cross(j, a, rule))
        pending_crossing(j, a, &f, v);
    else
        judge_found(j, a->p, f);
}

/* --- Requests --------------------------------------------------------------------------------- */

/* True if the rule does not apply to adapters with out-of-order placement and adaptive retransmission. */
static bool is_not_for_profile(const struct judge *j, enum rule rule)
{
    return j->o.profile == PROFILE_NV && rule_table[rule].traits & T_NOT_NV;
}

/* True if the failure is that of a retransmission. */
static bool is_of_copies(const struct verdict *v)
{
    return rule_table[v->rule].traits & T_AGAIN || rule_table[v->rule].reason.cause == CAUSE_FIRST_COPY;
}

/* True if another check reports the same failure: skipped PSNs are pending first (pending.c); lengths are compared
 * with the path MTU of CM (cm/params.c) or that of First and Middle packets (values.c); a packet of another sender is
 * no copy (security.c). */
static bool is_reported_elsewhere(const struct judge *j, const struct judged *a, const struct verdict *v)
{
    const struct flow *c = &j->flow[a->flow];
    unsigned traits = rule_table[v->rule].traits;
    bool too_long = v->seen > v->expected, ends = a->p->op->flags & OPF_END;
    bool length_elsewhere = too_long && (c->pmtu || ends || v->seen > MTU_MAX);
    unsigned elsewhere = (a->as != SEEN_AGAIN ? T_WAITS : 0) | (c->pmtu ? 0 : T_CM_PMTU) |
                         (c->params.no_credits ? T_CREDITS : 0) | (length_elsewhere ? T_TOO_LONG : 0);

    return traits & elsewhere || (a->forged && is_of_copies(v));
}

/* True if request `a->p` or an earlier one may have been duplicated by the network: without an IP identification a
 * duplicate and a retransmission look the same. Where a requester resumes (RTX-01) does not depend on it at its own
 * tap, whose packets have not been in the network yet, if nothing was captured twice there; rules about times do: what
 * is taken for a duplicate restarts no timer. */
static bool may_be_copy(const struct judge *j, const struct judged *a, const struct verdict *v)
{
    if (v->rule == RULE_RTX_01 && judge_have_tap(j, a->flow) & N_TAP_REQ && !a->h->copies)
        return false;
    return a->h->identical || (a->h->copies && !frame_ip_id(a->p));
}

/* True if the ACK timeout of a request sent at `since` may have expired, so that a retransmission is permitted. */
static bool may_time_out(const struct judge *j, const struct judged *a, ns_t since)
{
    return !judge_has_timeout(j, a->flow) || judge_timed_out(j, a->flow, a->p->frame->ts - since, a->p);
}

/* True if NAK `n` may have passed the tap, but not reached the requester yet when it sent something at time `ts`. */
static bool is_under_way(const struct judge *j, const struct judged *a, const struct nak *n, ns_t ts)
{
    return n->have && ts >= n->ts && ts - n->ts <= NAK_TAKES_EFFECT + judge_slack(j, a->p);
}

/* A queue pair that congestion control slows down sends a byte in this time at least. DCQCN goes down to 1 Mbit/s
 * (rp_min_rate), 8 us a byte; Swift without a least rate is slower still. */
#define SLOWEST_BYTE  (32 * NS_PER_US)
#define HEADERS_BYTES 128 /* of a frame, at most, besides the path MTU */

bool judge_may_be_paced(const struct judge *j, const struct judged *a)
{
    uint32_t peer = j->flow[a->flow].peer;
    const struct req_dir *asked = peer == FLOW_NONE ? NULL : j->flows[peer].dir;
    ns_t last = a->h->last_ts;

    if (asked && asked->rsp_packets && asked->rsp_ts > last)
        last = asked->rsp_ts;
    return a->p->frame->ts - last <= (a->f->shadow->req.r.p.pmtu + HEADERS_BYTES) * SLOWEST_BYTE;
}

/* True if a timeout and the NAK that a retransmission seems to ignore may have crossed between tap and requester. */
static bool may_have_crossed(const struct judge *j, const struct judged *a, enum rule rule)
{
    const struct req_dir *h = a->h;
    const struct sent *s = req_dir_sent(a->h, a->p->bth.psn);

    /* the timeout, or an earlier NAK, came first, or the latest copy; now the NAK takes effect */
    if (rule == RULE_RTX_02)
        return h->seq.have && a->p->bth.psn == h->seq.psn &&
               ((psn_diff(h->back_psn, h->seq.psn) < 0 && is_under_way(j, a, &h->seq, h->back_ts)) ||
                (s && s->ts >= h->seq.ts && is_under_way(j, a, &h->seq, a->p->frame->ts)));
    return (rule == RULE_RTX_01 || rule == RULE_RTX_05) && s && may_time_out(j, a, s->ts) &&
           is_under_way(j, a, rule == RULE_RTX_05 ? &h->rnr : &h->seq, a->p->frame->ts);
}

/* True if the request was sent along another path first, and responses came since its latest copy: the requester drops
 * those that take the other path. */
static bool has_migrated(const struct judged *a)
{
    const struct kind_state *k = &a->f->kind[KIND_REQ];
    const struct sent *s = req_dir_sent(a->h, a->p->bth.psn);

    return k->path_changed && s && s->ts_first <= k->path_ts && a->h->rsp_packets && a->h->rsp_ts >= s->ts;
}

/* True if the response whose loss demands the retransmission may have come all the same. */
static bool may_be_answered(const struct judge *j, const struct judged *a, const struct verdict *v)
{
    return a->f->shadow->req.u.resume_why == WHY_IMPLIED_NAK && judge_may_have_come(j, a->flow, (uint32_t)v->expected);
}

/* Needs (N_*) of rule `v->rule` that are certainly met, or missing, for this request. */
static void needs_of_request(const struct judge *j, const struct judged *a, const struct verdict *v, unsigned *has,
                             unsigned *lacks)
{
    unsigned traits = rule_table[v->rule].traits;
    bool timer = judge_has_timeout(j, a->flow);
    bool unsure = may_be_copy(j, a, v) || may_be_answered(j, a, v) || a->h->disorder || a->as != SEEN_AGAIN;

    *has = *lacks = 0;
    if (traits & T_AGAIN) {
        *has = timer ? N_CM : 0;
        *lacks = !timer && traits & T_TIMEOUT ? N_CM : 0;
        *lacks |= unsure || has_migrated(a) || req_dir_is_unknown_read(a->h, a->p) ? N_COMPLETE : 0;
    } else if (traits & T_ORDER && unsure) {
        *lacks = N_TAP_REQ;
    }
    if (may_have_crossed(j, a, (enum rule)v->rule))
        *lacks |= N_TAP_REQ;
}

/* True if the requester resumes before the PSN of a NAK, which it may not have received. */
static bool is_before_nak(const struct verdict *v)
{
    return v->rule == RULE_RTX_01 && psn_diff((uint32_t)v->seen, (uint32_t)v->expected) < 0;
}

static bool is_of_length(const struct verdict *v)
{
    return v->about && strcmp(v->about, "payload bytes") == 0;
}

/* True if SEND and WRITE packets of the two operations may belong to one message. */
static bool are_of_one_operation(uint8_t opcode, uint8_t other)
{
    return !((opcode_table[opcode].flags ^ opcode_table[other].flags) & (OPF_SEND | OPF_WRITE));
}

/* True if verdict `v[i]` follows from another one: the packet goes on with a message into which another operation had
 * broken; or the bytes of a message are not those of its RETH because a packet of it has a wrong length. */
static bool follows_from_other(const struct judged *a, const struct verdict *v, unsigned i)
{
    const struct broken_into *b = &a->f->history->broken_into;
    const char *about = v[i].about ? v[i].about : "";

    if (strcmp(about, "begun") == 0)
        return b->have && !(a->p->op->flags & OPF_START) && are_of_one_operation(b->opcode, a->p->bth.opcode);
    if (strcmp(about, "bytes") != 0)
        return false;
    for (unsigned k = 0; k < i; k++)
        if (is_of_length(&v[k]) || rule_table[v[k].rule].reason.cause == CAUSE_FIRST_COPY)
            return true;
    return a->f->history->uneven && !(a->p->op->flags & OPF_START);
}

/* Keep what message another operation has broken into, until that goes on to its end; and whether a packet of the
 * message has a wrong length. */
static void note_broken(const struct judged *a, const struct verdict *v, unsigned n)
{
    struct broken_into *b = &a->f->history->broken_into;
    bool *uneven = &a->f->history->uneven,
         ends = a->p->op->flags & OPF_END && are_of_one_operation(b->opcode, a->p->bth.opcode);

    b->have &= !ends;
    *uneven &= !(a->p->op->flags & OPF_START);
    for (unsigned i = 0; i < n; i++) {
        uint8_t begun = (uint8_t)((a->p->bth.opcode & 0xe0) | (v[i].expected & 31));
        if (v[i].about && strcmp(v[i].about, "begun") == 0 && v[i].expected &&
            !are_of_one_operation(begun, a->p->bth.opcode))
            *b = (struct broken_into){true, begun};
        *uneven |= is_of_length(&v[i]);
    }
    *uneven &= !(a->p->op->flags & OPF_END);
}

void judge_request_verdicts(struct judge *j, const struct judged *a)
{
    struct verdict v[SHADOW_FOUND];
    const struct sent *sent;
    unsigned n, has, lacks;

    if (LIKELY(a->usual))
        return;
    sent = req_dir_sent(a->h, a->p->bth.psn);
    a->f->shadow->req.u.slack = judge_slack(j, a->p);
    a->f->shadow->req.u.sent = sent ? sent->ts : 0;
    n = shadow_check_request(a->f->shadow, a->p, v);
    for (unsigned i = 0; i < n; i++) {
        if (rule_table[v[i].rule].traits & T_BROKEN)
            msn_broken_message(a);
        if (!is_explained(&v[i]) || is_not_for_profile(j, (enum rule)v[i].rule) || is_reported_elsewhere(j, a, &v[i]))
            continue;
        if (follows_from_other(a, v, i)) {
            judge_is_broken(j, a->p);
            continue;
        }
        needs_of_request(j, a, &v[i], &has, &lacks);
        v[i].needs |= is_before_nak(&v[i]) && !judge_has_timeout(j, a->flow) ? N_CM : 0; /* or is it a timeout? */
        v[i].needs |= a->h->pmtu_from_response ? N_RSP : 0; /* that response must be of this connection */
        v[i].needs |= v[i].rule == RULE_RTX_03 && judge_may_be_paced(j, a) ? N_PACE : 0;
        report(j, a, &v[i], has, lacks);
    }
    if (UNLIKELY(n || a->f->history->broken_into.have || a->f->history->uneven))
        note_broken(a, v, n);
}

/* --- Responses -------------------------------------------------------------------------------- */

/* True if the READ may be a partial retransmission of a READ from before the capture. */
static bool may_be_rest_of_read(struct req_dir *h, const struct pkt *p)
{
    const struct read_req *first = req_dir_read(h, p->bth.psn, 0);

    return first && psn_diff(first->psn, h->start) <= 0 && !h->from_start;
}

/* Missing needs for an ACK of a PSN that was not seen: a retransmission, or a request on another path, may explain
 * it. */
static unsigned ahead_lacks(const struct req_dir *h, const struct verdict *v)
{
    unsigned lacks = h->vague || h->gaps ? N_COMPLETE : 0;

    if (rule_table[v->rule].needs & N_TAP_RSP)
        return lacks | (h->again || h->copies || h->late ? N_TAP_RSP : 0);
    return lacks | (h->late ? N_COMPLETE : 0);
}

/* True if the PSN is before the first one of the connection, whose first request was captured. */
static bool is_before_first(const struct req_dir *h, uint32_t psn)
{
    return h->from_start && psn_diff(psn, h->start) < 0 && psn_diff(h->next, h->start) >= 0;
}

/* A response of READ or atomic with a PSN for which none was sent. */
static void needs_of_unsent(const struct judged *a, unsigned *has, unsigned *lacks)
{
    uint32_t psn = a->p->bth.psn;

    *lacks = req_dir_sent(a->h, psn) || is_before_first(a->h, psn) ? 0 : N_COMPLETE;
    if (req_dir_data(a->h, psn))
        *has = N_COMPLETE | N_START; /* also if packets were missed: this PSN is not of a READ or atomic */
}

/* Needs (N_*) that are certainly met, or missing, by the traits of the rule. */
static void needs_by_traits(const struct judged *a, struct verdict *v, unsigned *has, unsigned *lacks)
{
    unsigned traits = rule_table[v->rule].traits;

    *has = *lacks = 0;
    if (traits & T_AHEAD)
        *lacks = ahead_lacks(a->h, v);
    if (traits & T_UNSENT)
        needs_of_unsent(a, has, lacks);
    if (traits & T_REST) {
        v->needs |= N_RSP; /* the response must be of this connection */
        v->needs |= may_be_rest_of_read(a->h, a->p) ? N_START : 0;
    }
}

/* True if a message ends from PSN `psn` to `last`: an ACK of `last` counts it in its MSN. */
static bool ends_message(struct req_dir *h, uint32_t psn, uint32_t last)
{
    for (uint32_t n = 0; n < TRACK_SENT && psn_diff(psn, last) <= 0; n++, psn = psn_add(psn, 1)) {
        const struct sent *s = req_dir_sent(h, psn);
        if (s && opcode_table[s->opcode].flags & OPF_END)
            return true;
    }
    return false;
}

/* A NAK has the same MSN as the previous ACK. If that ACK acknowledges no further message, the two may have been
 * reordered: then the verdict needs a tap at the responder. */
static void weigh_refusal(const struct judged *a, struct verdict *v, unsigned *lacks)
{
    const struct shadow_rsp *r = &a->f->shadow->rsp;

    if (r->u.all_seen || ends_message(a->h, a->p->bth.psn, r->r.ack_psn))
        return;
    v->needs |= N_TAP_RSP;
    *lacks = N_TAP_RSP;
}

/* True if the NAK is for the first packet of a message, and its MSN counts no message behind those that were
 * acknowledged: the message that ends just before its PSN has not arrived. */
static bool lacks_message(const struct judged *a)
{
    const struct sent *s = req_dir_sent(a->h, a->p->bth.psn),
                      *last = a->h->have_una ? req_dir_sent(a->h, psn_prev(a->h->una)) : NULL;

    return a->h->began == BEGAN_SEEN && s && opcode_table[s->opcode].flags & OPF_START && last &&
           psn_diff(s->psn, a->h->una) > 0 && last->msg == a->p->aeth.msn;
}

#define FEW_RESPONSES 4 /* fewer prove neither a pairing by PSN nor how far the responder is */

/* Needs (N_*) of rule `v->rule` that are certainly met, or missing, for this response. */
static void needs_of_response(const struct judged *a, struct verdict *v, unsigned *has, unsigned *lacks)
{
    struct req_dir *h = a->h;
    const struct sent *sent;
    bool ahead = v->needs & N_START; /* what it names may have come before the capture */

    needs_by_traits(a, v, has, lacks);
    if (ahead && (lacks_message(a) || h->rsp_packets - h->rsp_inside >= FEW_RESPONSES))
        *has |= N_START; /* responses show how far the responder is */
    switch (v->rule) {
    case RULE_NAK_02:
        *has = h->seq.have && h->seq.icrc != icrc_of(a->p) ? N_TAP_RSP : 0; /* another ICRC: it is no identical copy */
        *lacks = !*has && h->copies * 4 >= h->packets ? N_TAP_RSP : 0;      /* many packets are captured twice */
        break;
    case RULE_NAK_11: /* a copy that had come before the RNR NAK may have been executed behind it */
        sent = req_dir_sent(h, h->rnr.psn);
        *lacks = !a->f->shadow->rsp.u.all_seen || (sent && (sent->copies > 1 || sent->same)) ? N_TAP_RSP : 0;
        break;
    case RULE_NAK_07: /* a sequence NAK of before a copy that came late, behind the RNR NAK of that copy */
        sent = req_dir_sent(h, a->p->bth.psn);
        v->needs |= sent && (sent->copies > h->rnr.times || sent->same || sent->late) ? N_TAP_RSP : 0;
        *lacks = v->needs & N_TAP_RSP && !a->f->shadow->rsp.u.all_seen ? N_TAP_RSP : 0;
        break;
    case RULE_NAK_03:
        *lacks = h->vague ? N_COMPLETE : 0;
        break;
    case RULE_RDA_02: /* maybe a partial retransmission of a READ; its length or the path MTU is not certain */
        v->needs |= may_be_rest_of_read(h, a->p) ? N_START : 0;
        *lacks = h->pmtu_from_response && req_dir_read(h, a->p->bth.psn, 1) ? N_CM : 0;
        v->needs |= *lacks;
        break;
    case RULE_RDA_03:
        v->needs |= (may_be_rest_of_read(h, a->p) ? N_START : 0) |
                    (h->again ? N_COMPLETE : 0); /* it may answer a retransmitted READ that was not captured */
        break;
    case RULE_RTX_09:
        weigh_refusal(a, v, lacks);
        break;
    case RULE_SVC_03:
        v->needs |=
            req_dir_sent(h, a->p->bth.psn) ? 0 : N_COMPLETE; /* else the queue pair may belong to a new connection */
        break;
    default:
        break;
    }
}

/* True if packets are captured in the order in which the responder received and sent them, and none that it may have
 * received is missing. */
static bool at_responder(const struct judge *j, const struct judged *a)
{
    const struct req_dir *h = a->h;
    bool alike = a->f->alike && a->f->n_rsp - a->f->alike < RSP_IDS;

    return j->o.profile != PROFILE_NV && !h->unsettled && !alike && h->copies * 4 < h->packets &&
           judge_tap_at_responder(j, a->flow, a->p);
}

/* True if the failure is reported once the skipped PSNs have not come late (pending.c), or follows from that of a
 * request: a SEND or WRITE inside the PSNs of a READ (RDA-01), which is acknowledged. */
static bool is_told_elsewhere(const struct judged *a, const struct verdict *v)
{
    if (v->rule == RULE_ACK_05)
        return req_dir_data(a->h, a->p->bth.psn) != NULL;
    return rule_table[v->rule].traits & T_AHEAD && a->f->has_gap && a->f->gap.ack_frame == frame_u32(a->p);
}

/* True if the responder does this because it keeps requests ahead of a missing one, as profile nv permits. */
static bool was_kept(const struct judge *j, const struct judged *a, const struct verdict *v)
{
    bool answers_kept = rule_table[v->rule].traits & T_UNSENT && req_dir_read(a->h, a->p->bth.psn, 0);

    return is_not_for_profile(j, (enum rule)v->rule) || (j->o.profile == PROFILE_NV && answers_kept);
}

/* What the response breaks. If the tap counts as one at the responder, it is looked at anew whether it is one. */
static unsigned check_response(struct judge *j, const struct judged *a, struct verdict *v)
{
    bool at = at_responder(j, a);
    unsigned n = shadow_check_response(a->f->shadow, a->p, at, v);

    if (LIKELY(!n || !at))
        return n;
    a->f->two_way_next = 0;
    return at_responder(j, a) ? n : shadow_check_response(a->f->shadow, a->p, false, v);
}

/* True if the response may answer the requests of another queue pair: it is of another kind than its request, and so
 * few responses were seen that these two queue pairs may have been paired wrongly. */
static bool is_of_other_requests(const struct judge *j, const struct judged *a, const struct verdict *v)
{
    bool data = a->p->op->flags & (OPF_READ_RESP | OPF_ATOMIC_ACK); /* RDA-05 */
    bool of_other_kind = v->about && v->rule != RULE_RDA_02 &&
                         (strcmp(v->about, "opcode") == 0 || (data && strcmp(v->about, "PSN") == 0));

    return of_other_kind && j->flow[a->flow].paired_by == PAIR_PSN && !judge_sees_all(j, a->flow) &&
           a->h->rsp_packets - a->h->rsp_inside < FEW_RESPONSES;
}

/* True if the responder has migrated and the requester has not, as far as was seen: requests along the other path may
 * count as those of another connection. */
static bool is_of_other_path(const struct judge *j, const struct judged *a)
{
    return j->flows[a->own].path != a->f->path;
}

void judge_response_verdicts(struct judge *j, const struct judged *a)
{
    struct verdict v[SHADOW_FOUND];
    unsigned n = check_response(j, a, v), has, lacks;

    for (unsigned i = 0; i < n; i++) {
        bool repeats = i && v[i].rule == v[i - 1].rule;
        if (repeats || !is_explained(&v[i]) || is_told_elsewhere(a, &v[i]) || was_kept(j, a, &v[i]))
            continue;
        if (rule_table[v[i].rule].traits & T_MSN && msn_is_told(j, a))
            continue;
        needs_of_response(a, &v[i], &has, &lacks);
        if (is_of_other_requests(j, a, &v[i]) || is_of_other_path(j, a)) {
            v[i].needs |= N_PAIRED;
            lacks |= N_PAIRED;
        }
        report(j, a, &v[i], has, lacks);
    }
}
