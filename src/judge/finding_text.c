/* layer 3 (judge): the judge: what a verdict of the transport's checks means, and which frames prove it. */
#include "src/judge/judge_impl.h"

/* What is said of a rule that is broken. */
static const struct {
    const char *text;
    const char *limit;    /* stands before the value permitted; NULL: nothing */
    const char *expected; /* in place of the value permitted; NULL: none */
} sayings[RULE_COUNT] = {
    [RULE_SEQ_01] = {"The requester passed over a PSN."},
    [RULE_SEQ_02] = {"Messages of one queue pair do not interleave: the responder refuses the request as invalid."},
    [RULE_SEQ_03] =
        {"A message that has begun is continued to its Last packet, and nothing is continued that has not begun."},
    [RULE_SEQ_04] = {"First and Middle packets carry exactly a path MTU, a Last at least one byte."},
    [RULE_SEQ_05] = {"The path MTU of a queue pair does not change."},
    [RULE_SEQ_06] = {"The packets of the WRITE carry another number of bytes than its first packet announces."},
    [RULE_SEQ_07] = {"The responder refuses the request.", .limit = "at most "},
    [RULE_SEQ_08] = {"Only the end of a SEND or of a WRITE with immediate can raise an event.",
                     .expected = "no solicited event"},
    [RULE_SEQ_10] = {"Old and new packets can no longer be told apart.", .limit = "at most "},
    [RULE_SEQ_11] = {"A packet that is sent again is the same packet."},
    [RULE_RDA_01] = {"A READ request takes as many PSNs as it has responses; the next request follows them."},
    [RULE_RDA_02] = {"READ responses take the PSNs of their request one by one: Only, or First to Last."},
    [RULE_RDA_03] = {"The bytes asked for and the path MTU leave another length for this response."},
    [RULE_RDA_04] = {"A READ that is asked for again, in whole or from its first missing response on, stays inside of "
                     "the original."},
    [RULE_RDA_05] = {"No READ or atomic has this PSN."},
    [RULE_RDA_06] =
        {"REQ and REP agreed on fewer: the responder may refuse this one as invalid, which ends the connection.",
         .limit = "at most "},
    [RULE_RDA_08] =
        {"An atomic has an address that is a multiple of 8; an ATOMIC Acknowledge answers it, and nothing else."},
    [RULE_RDA_09] = {"The same atomic was answered before with another value: it was executed more than once."},
    [RULE_RDA_11] = {"Responses are strongly ordered: an answer to a READ or atomic leaves before acknowledgements of "
                     "what follows it."},
    [RULE_RDA_12] = {"An ATOMIC WRITE or FLUSH is answered by a READ Response Only without data."},
    [RULE_ACK_02] = {"ACKs do not go back, and nothing is acknowledged that has not arrived."},
    [RULE_ACK_03] = {"A request before it has not arrived, so it cannot have been executed."},
    [RULE_ACK_05] = {"What a READ asks for is answered by READ responses."},
    [RULE_ACK_06] = {"The MSN counts the messages completed: at least those acknowledged, at most those sent, and it "
                     "never decreases."},
    [RULE_ACK_07] =
        {"The MSN of a READ response counts messages like that of an ACK: at most those sent, and it never decreases."},
    [RULE_ACK_08] = {"The credits in ACKs permit no further message, but for a single one that asks for news."},
    [RULE_NAK_01] = {"The responder expects another PSN."},
    [RULE_NAK_02] =
        {"After a sequence NAK the responder ignores what is ahead, until the PSN that it expects has arrived.",
         .expected = "silence until the PSN arrives"},
    [RULE_NAK_03] = {"Every packet that came to this responder came in order.", .expected = "a gap"},
    [RULE_NAK_04] = {"A request was refused, so nothing from it on can succeed.",
                     .expected = "silence, or answers to earlier requests"},
    [RULE_NAK_07] = {"The packets behind the one that found no receive posted are not out of sequence: the requester "
                     "knows that it must send all again.",
                     .expected = "silence until the PSN arrives again"},
    [RULE_RTX_01] = {"The responder waits for the PSN that its NAK names; what lies before has arrived, and what "
                     "follows is ignored."},
    [RULE_RTX_02] = {"The packet was sent again although neither a NAK nor a gap in the answers was seen, before the "
                     "ACK timeout had run out.",
                     .limit = "at least "},
    [RULE_RTX_03] = {"The ACK timeout had run out long ago; the requester was slow to react.", .limit = "at most "},
    [RULE_RTX_04] = {"After the last retry the queue pair fails, and sends nothing more.", .limit = "at most "},
    [RULE_RTX_05] = {"The RNR NAK names the time to wait before the next try.", .limit = "a wait for "},
    [RULE_RTX_08] = {"After the last RNR retry the queue pair fails, and sends nothing more.", .limit = "at most "},
    [RULE_RTX_09] = {"The request was acknowledged before; sent again, it is acknowledged again."},
    [RULE_RTX_10] = {"Duplicates are answered in the order of their PSNs."},
    [RULE_RTX_11] = {"A part of the answer was lost, and is not asked for again."},
    [RULE_SVC_03] = {"The requests that it answers are of an unreliable connection."},
    [RULE_SVC_06] = {"An unreliable connection numbers its packets one by one, and never sends one twice."},
};

bool judge_explains(enum rule rule)
{
    return sayings[rule].text != NULL;
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

/* A time. A limit of 0 is none. */
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
    if (!limit && p->op->flags & OPF_RESPONSE && (sayings[v->rule].expected || strcmp(about, "PSN") == 0))
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
    const char *limit = sayings[v->rule].limit,
               *what = sayings[v->rule].expected ? sayings[v->rule].expected : value(j, a, v, true);

    return limit && v->expected ? say(j, "%s%s", limit, what) : what;
}

/* First frame of the message that request `psn` belongs to. */
static uint32_t message_frame(const struct judged *a, uint32_t psn)
{
    const struct requester *r = &a->f->replay->req.r;
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

/* The READ or atomic whose answer takes the packet's PSN: as it was asked for first. */
static uint32_t original_ask(const struct judged *a)
{
    struct read_req *k = req_dir_ask(a->h, a->p->bth.psn, 0), *older;

    for (unsigned n = 1; k && n < 8 && (older = req_dir_ask(a->h, a->p->bth.psn, n)) != NULL; n++)
        k = older;
    return k ? k->frame : 0;
}

/* The frame that stands against this one. */
static uint32_t cause_of(const struct judged *a, enum rule rule)
{
    struct req_dir *h = a->h;
    uint32_t psn = a->p->bth.psn;
    const struct sent *s = req_dir_sent(h, psn), *before = req_dir_sent(h, psn_prev(psn));
    const struct read_req *k = req_dir_ask(h, psn, 0);

    switch (rule) {
    case RULE_SEQ_02:
    case RULE_SEQ_03:
        return before ? before->first : 0;
    case RULE_SEQ_06:
        return message_frame(a, psn);
    case RULE_SEQ_10:
        return h->una_frame;
    case RULE_SEQ_11:
    case RULE_RTX_04:
    case RULE_SVC_06:
        return s ? s->first : 0;
    case RULE_RTX_02:
    case RULE_RTX_03:
        return s ? s->last : 0;
    case RULE_RTX_01:
        return h->seq.frame;
    case RULE_RTX_05:
    case RULE_RTX_08:
    case RULE_NAK_07:
        return h->rnr.frame;
    case RULE_RTX_11:
        return k ? k->rsp_last ? k->rsp_last : k->frame : 0;
    case RULE_RDA_06:
    case RULE_RDA_11:
        return oldest_ask(a);
    case RULE_RDA_01:
    case RULE_RDA_02:
    case RULE_RDA_03:
    case RULE_RDA_04:
    case RULE_RDA_08:
    case RULE_RDA_12:
    case RULE_ACK_05:
        return original_ask(a);
    case RULE_RDA_05:
        return s ? s->last : 0;
    case RULE_RDA_09:
        return k ? k->rsp_first : 0;
    case RULE_NAK_02:
        return h->seq.frame;
    case RULE_NAK_04:
        return h->fatal.frame;
    case RULE_SVC_03:
        return h->last_frame;
    case RULE_ACK_02:
    case RULE_ACK_06:
    case RULE_ACK_07:
    case RULE_ACK_08:
    case RULE_NAK_01:
    case RULE_RTX_09:
        return h->have_ack ? h->ack_frame : s ? s->first : 0;
    default:
        return 0;
    }
}

void judge_verdict(struct judge *j, const struct judged *a, const struct verdict *v, unsigned has, unsigned lacks)
{
    enum rule rule = (enum rule)v->rule;
    uint32_t cause = cause_of(a, rule);

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
                               .text = sayings[rule].text});
}
