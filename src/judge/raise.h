/* layer 3 (judge): internal: how a check reports a failure or a value. */
#ifndef RDMATRACE_JUDGE_RAISE_H
#define RDMATRACE_JUDGE_RAISE_H

#include "src/conn/conn.h"
#include "src/judge/judge.h"

/* printf into one of six buffers that take turns. */
const char *say(struct judge *j, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A failure as it is found. */
struct found {
    enum rule rule;
    enum severity severity; /* the rule's, or a milder one */
    uint32_t flow;          /* of the requests concerned; FLOW_NONE: no connection */
    unsigned needs;         /* N_* besides the rule's */
    unsigned lacks;         /* N_* that are missing in this case */
    unsigned has;           /* N_* that are given in this case */
    uint64_t frame;         /* 0: the packet's */
    uint64_t cause;         /* 0: none */
    const char *wrong;      /* the headline, in place of that of the rule; NULL: the rule's */
    const char *expected, *seen, *text;
};
/* The common start of a finding about the requests of a flow. */
static inline struct found found_of(enum rule rule, uint32_t flow)
{
    return (struct found){.rule = rule, .severity = rule_table[rule].severity, .flow = flow};
}
/* Weigh a failure by what the capture gives of what its rule needs, and add it to the findings. `p` may be NULL. */
void judge_found(struct judge *j, const struct pkt *p, struct found f);
/* Something was seen that rules are judged by, ON_*: they count as judged from now on. */
void judge_applies(struct judge *j, unsigned on);
/* A note: frame 0 means none; `text` may be "". */
void judge_note(struct judge *j, enum rule rule, uint32_t flow, uint64_t frame, const char *seen, const char *text);
/* Likewise under a headline that is not the rule's, with "{seen}" for the value. */
void judge_note_as(struct judge *j, enum rule rule, uint32_t flow, uint64_t frame, const char *wrong, const char *seen,
                   const char *text);

/* --- What the capture gives ------------------------------------------------------------------- */

/* The side of a tap, as the user told it. */
enum tap_side judge_side(const struct judge *j, uint32_t tap);
/* N_* that are given for the requests of `flow`; `p` may be NULL. */
unsigned judge_have(const struct judge *j, uint32_t flow, const struct pkt *p);
/* Whether the user says that the capture lost no frame, and the tap is at the responder of the requests in `flow`. */
bool judge_tap_at_responder(const struct judge *j, uint32_t flow, const struct pkt *p);
/* Whether the ACK timeout of the requester in `flow` is known, be it off. */
bool judge_has_timeout(const struct judge *j, uint32_t flow);

/* --- Failures that need no connection --------------------------------------------------------- */

/* A failure that the packet alone proves; a warning likewise. */
void judge_bad(struct judge *j, const struct pkt *p, enum rule rule, const char *expected, const char *seen,
               const char *text);
void judge_warn(struct judge *j, const struct pkt *p, enum rule rule, const char *expected, const char *seen,
                const char *text);
/* Likewise under a headline that is not the rule's: rule, severity, wrong, expected, seen and text are given. */
void judge_bad_as(struct judge *j, const struct pkt *p, struct found f);

#endif
