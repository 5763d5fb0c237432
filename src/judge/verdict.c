/* layer 3 (judge): a verdict of the transport as a finding: what its two values mean, and which frames prove it. */
#include "src/judge/judge_impl.h"

bool judge_explains(enum rule rule)
{
    return rule_table[rule].reason.text != NULL;
}

const char *opcode_name(uint8_t opcode)
{
    return opcode_table[opcode].name ? opcode_table[opcode].name : "another";
}

static const char *response_name(const struct pkt *p)
{
    static const char *const types[] = {[AETH_ACK] = "ACK", [AETH_RNR] = "RNR NAK", [AETH_NAK] = "NAK"};
    unsigned type = response_type(p);

    if (!(p->op->flags & OPF_ACK) || type == AETH_RESERVED)
        return p->op->name;
    return type == AETH_NAK && aeth_value(p->aeth.syndrome) == NAK_PSN_SEQ ? "sequence NAK" : types[type];
}

/* Bytes of a WRITE against what its RETH announces. */
static const char *write_length(struct judge *j, const struct pkt *p, uint64_t n, bool limit)
{
    if (p->op->flags & OPF_FIRST)
        return limit ? say(j, "a RETH length above the %s of this first packet", count_str(p->payload_len, "byte"))
                     : say(j, "RETH length %u", p->reth.dmalen);
    if (limit)
        return say(j, "%s, as announced", count_str(n, "byte"));
    return say(j, p->op->flags & OPF_END ? "%s" : "%s, and more to follow", count_str(n, "byte"));
}

/* A time; a limit of 0 means that there is none. */
static const char *time_value(struct judge *j, const struct judged *a, uint64_t n, bool limit)
{
    if (!limit || n)
        return say(j, "%.6f ms", (double)n / 1e6);
    return judge_has_timeout(j, a->flow) ? "no timeout: it is off" : "the ACK timeout, which is not known";
}

/* One of the two values of a verdict. `limit`: it is the one permitted. */
static const char *value(struct judge *j, const struct judged *a, const struct verdict *v, bool limit)
{
    const struct pkt *p = a->p;
    uint64_t n = limit ? v->expected : v->seen;
    const char *about = v->about ? v->about : "";

    if (!*about)
        return limit ? "silence" : p->op->name;
    if (!limit && p->op->flags & OPF_RESPONSE && (rule_table[v->rule].reason.instead || strcmp(about, "PSN") == 0))
        return say(j, "%s of PSN %u", response_name(p), p->bth.psn);
    if (v->rule == RULE_SEQ_06)
        return write_length(j, p, n, limit);
    if (strcmp(about, "opcode") == 0)
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

    return limit && v->expected ? say(j, "%s%s", limit, what) : what;
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

static uint32_t oldest_ask(const struct judged *a)
{
    struct read_req *oldest;

    req_dir_outstanding(a->h, &oldest);
    return oldest ? oldest->frame : 0;
}

/* The READ or atomic that the packet's PSN answers: its first request. */
static uint32_t original_ask(const struct judged *a)
{
    struct read_req *k = req_dir_ask(a->h, a->p->bth.psn, 0), *older;

    for (unsigned n = 1; k && n < 8 && (older = req_dir_ask(a->h, a->p->bth.psn, n)) != NULL; n++)
        k = older;
    return k ? k->frame : 0;
}

/* The frame that contradicts this one; 0: none. */
static uint32_t cause_of(const struct judged *a, enum rule_cause cause)
{
    struct req_dir *h = a->h;
    uint32_t psn = a->p->bth.psn;
    const struct sent *s = req_dir_sent(h, psn), *before = req_dir_sent(h, psn_prev(psn));
    const struct read_req *k = req_dir_ask(h, psn, 0);

    switch (cause) {
    case CAUSE_REQUEST_BEFORE:
        return before ? before->first : 0;
    case CAUSE_MESSAGE:
        return message_frame(a, psn);
    case CAUSE_FIRST_COPY:
        return s ? s->first : 0;
    case CAUSE_LAST_COPY:
        return s ? s->last : 0;
    case CAUSE_LAST_REQUEST:
        return h->last_frame;
    case CAUSE_READ:
        return original_ask(a);
    case CAUSE_OLDEST_READ:
        return oldest_ask(a);
    case CAUSE_READ_PROGRESS:
        return k ? k->rsp_last ? k->rsp_last : k->frame : 0;
    case CAUSE_FIRST_RESPONSE:
        return k ? k->rsp_first : 0;
    case CAUSE_ACK:
        return h->have_ack ? h->ack_frame : s ? s->first : 0;
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

void judge_verdict(struct judge *j, const struct judged *a, const struct verdict *v, unsigned has, unsigned lacks)
{
    enum rule rule = (enum rule)v->rule;
    uint32_t cause = cause_of(a, rule_table[rule].reason.cause);

    judge_found(j, a->p,
                (struct found){.rule = rule,
                               .severity = rule_table[rule].severity,
                               .flow = a->flow,
                               .needs = v->needs,
                               .lacks = lacks,
                               .has = has,
                               .cause = cause == a->p->frame->number ? 0 : cause,
                               .expected = permitted(j, a, v),
                               .seen = value(j, a, v, false),
                               .text = rule_table[rule].reason.text});
}
