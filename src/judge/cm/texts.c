/* layer 3 (judge): what a verdict of the transport about a message of connection management says. */
#include "src/judge/cm/cm.h"

/* What a failure means: by what the check compared, or else by the row of its rule. */
static const char *text_of(struct verdict v)
{
    static const char version[] = "The passive side cannot read the header of the RDMA-CM service and rejects the REQ.";
    static const struct {
        const char *about, *text;
    } texts[] = {
        {CM_WRONG_SIDE, "Of two ends only the other one sends this message."},
        {CM_MISPLACED,
         "Its receiver can be in no state in which this message means anything: what it answers was never sent."},
        {"MAD bytes", "Every MAD is 256 bytes long."},
        {"transaction id", "A message that is retransmitted, and an answer, keep the transaction id of the first."},
        {CM_COPY_DIFFERS, "A message that is retransmitted is the same message."},
        {CM_COPY_EARLY, "The receiver was not given the time to answer that the REQ grants it."},
        {"version", version},
        {"IP version", version},
        {CM_LATE_REJ, "Its sender has established the connection: what ends it is a DREQ."},
        {CM_SOURCE_QPN, "Messages of the connection manager come from QP 1, to which the answer goes."},
        {"MAD status", "The status of a MAD that is no answer is 0."},
        {"path MTU code", "The codes 1 to 5 are 256 to 4096 bytes; there is no other path MTU on RoCE."},
    };

    for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
        if (strcmp(texts[i].about, v.about) == 0)
            return texts[i].text;
    return rule_table[v.rule].reason.text;
}

static const char *number_str(struct judge *j, const char *about, uint64_t n)
{
    return say(j, n > 0xffff ? "%s 0x%llx" : "%s %llu", about, (unsigned long long)n);
}

/* What is in the first field in which message `m` is not `other`: "Local QPN 0x100". */
static const char *differing(struct judge *j, const struct cm_msg *m, const struct cm_msg *other)
{
    unsigned bit = cm_msg_differs(m, other), body = bit - MAD_HDR_LEN * 8, wide = body / 8;
    const struct field *f = bit < MAD_HDR_LEN * 8 ? NULL : cm_field_at(m->mad.attr_id, body);
    uint8_t bytes[MAD_LEN];

    cm_msg_encode(bytes, m);
    if (bit >= MAD_LEN * 8)
        return "another one"; /* not as far as both were captured */
    if (bit < MAD_HDR_LEN * 8)
        return say(j, "byte %u of the MAD header 0x%02x", bit / 8, bytes[bit / 8]);
    if (!f)
        return say(j, "byte %u of the private data 0x%02x", wide + cm_private_max(m->mad.attr_id) - CM_BODY_LEN,
                   bytes[bit / 8]);
    if (f->width > 57)
        return say(j, "byte %u of %s 0x%02x", wide - f->bit / 8u, f->label, bytes[bit / 8]);
    return say(j, f->base == BASE_DEC ? "%s %llu" : "%s 0x%llx", f->label,
               (unsigned long long)bits_get(bytes + MAD_HDR_LEN, f->bit, f->width));
}

struct found cm_found_of(struct judge *j, const struct cm_msg *m, struct verdict v, uint32_t cause)
{
    struct found f = {.rule = (enum rule)v.rule, .cause = cause, .text = text_of(v)};
    const char *instead = rule_table[v.rule].reason.instead;
    bool wrong_side = strcmp(v.about, CM_WRONG_SIDE) == 0;

    if (strcmp(v.about, CM_SOURCE_QPN) == 0)
        f.severity = SEV_W;
    if (wrong_side || strcmp(v.about, CM_MISPLACED) == 0 || strcmp(v.about, CM_LATE_REJ) == 0) {
        f.expected = wrong_side ? "a message of this side" : "a message that fits the state of its receiver";
        f.seen = cm_attr_str(m->mad.attr_id);
    } else if (strcmp(v.about, CM_COPY_EARLY) == 0) {
        f.wrong = "the CM message was retransmitted after {seen}, expected {expected}";
        f.expected = say(j, "a wait of %.0f ms", (double)v.expected / 1e6);
        f.seen = say(j, "%.0f ms", (double)v.seen / 1e6);
    } else {
        f.expected = instead && !v.expected ? instead : number_str(j, v.about, v.expected);
        f.seen = number_str(j, v.about, v.seen);
    }
    return f;
}

struct found cm_found_differing(struct judge *j, const struct cm_msg *m, const struct cm_msg *first, uint32_t cause)
{
    struct found f = cm_found_of(j, m, verdict_fail(RULE_CM_03, CM_COPY_DIFFERS, 0, 0), cause);

    f.wrong = "the retransmitted CM message differs: {seen}, expected {expected}";
    f.seen = differing(j, m, first);
    f.expected = differing(j, first, m);
    return f;
}
