/* layer 3 (explain): what else an incident may be that is possible: the further causes that its sentence names. */
#include "dissect/ib/opcode.h"
#include "src/explain/explain_impl.h"

/* The other causes of a hypothesis, in the order of its sentence, each plus 1; 0: none. */
#define OR(cause)   (CAUSE_##cause + 1)
#define OR_RESPONSE (CAUSE_COUNT + 1) /* the loss of a response to the READ or atomic that the incident is about */
static const uint8_t others[SENTENCES][INCIDENT_CAUSES - 1] = {
    [SENTENCE_NO_ANSWER] = {OR(SILENT_PEER)},
    [SENTENCE_TIME_TIMEOUT] = {OR(SILENT_PEER)},
    [SENTENCE_NOTHING_ASKS] = {OR(EARLY_TIMEOUT)},
    [SENTENCE_RETRY_OR_NAK] = {OR(PACKET_LOSS)},
    [SENTENCE_ANSWER_NOT_SEEN] = {OR_RESPONSE, OR(SILENT_PEER)},
    [SENTENCE_RESPONSE_NOT_SEEN] = {OR_RESPONSE},
    [SENTENCE_REQUESTS_TWICE_OR_AGAIN] = {OR(PACKET_LOSS), OR_RESPONSE},
    [SENTENCE_TIME_SLOW] = {OR(PAUSE)},
};

/* Facts that name further causes. */
static const struct or_fact {
    uint16_t sentence;
    uint8_t others[INCIDENT_CAUSES - 1];
} or_facts[] = {
    {SENTENCE_PATH_REORDERS, {OR(REORDER)}},
    {SENTENCE_OR_STOPPED, {OR(SILENT_PEER)}},
    {SENTENCE_OR_EARLIER, {OR(LOST_READ_RESPONSE)}},
    {SENTENCE_TAP_ANSWERED_OR_LATE, {OR(EARLY_TIMEOUT)}},
    {SENTENCE_BLACK_HOLE_OR_GONE, {OR(SILENT_PEER)}},
    {SENTENCE_OUTAGE_CM_AT_ONCE, {OR(MTU_BLACK_HOLE), OR(SILENT_PEER)}},
};

static enum cause lost_response_of(const struct incident *s)
{
    return s->facts[0].op && ((s->facts[0].op - 1u) & 31) == OP_READ_REQUEST ? CAUSE_LOST_READ_RESPONSE
                                                                             : CAUSE_LOST_ACK;
}

static void add_all(struct incident *s, const uint8_t of[INCIDENT_CAUSES - 1])
{
    for (unsigned i = 0; i < INCIDENT_CAUSES - 1 && of[i] && s->n_causes < INCIDENT_CAUSES; i++) {
        enum cause c = of[i] == OR_RESPONSE ? lost_response_of(s) : (enum cause)(of[i] - 1);
        bool known = of[i] == OR_RESPONSE && !s->facts[0].op;
        for (unsigned k = 0; k < s->n_causes; k++)
            known |= s->causes[k] == c;
        if (!known)
            s->causes[s->n_causes++] = (uint8_t)c;
    }
}

/* Whether nothing decides between the causes that the hypothesis of an incident names: no other tap does. */
static bool is_open(struct incident *s)
{
    return !s->passed && !incident_fact(s, SENTENCE_TAP_ANSWERED_LATE);
}

/* Whether the connection failed, whatever was lost first. A black hole has its own sentences. */
static bool is_end(const struct incident *s)
{
    return cause_table[s->cause].weight >= WEIGHT_FAILED && s->cause != CAUSE_MTU_BLACK_HOLE;
}

void explain_or_causes(struct explainer *x)
{
    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *s = &x->incidents[i];
        s->causes[0] = s->cause;
        s->n_causes = 1;
        if (s->certainty != POSSIBLE || !s->n_facts || s->proved || is_end(s))
            continue;
        if (is_open(s))
            add_all(s, others[s->facts[0].sentence]);
        for (unsigned k = 0; k < ARRAY_LEN(or_facts); k++)
            if (incident_fact(s, or_facts[k].sentence))
                add_all(s, or_facts[k].others);
    }
}
