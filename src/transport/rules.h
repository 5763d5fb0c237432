/* layer 2 (transport): the rules of the transport and what a check says about one of them. */
#ifndef RDMATRACE_RULES_H
#define RDMATRACE_RULES_H

#include "types.h"

/* What a judge must have before a failure counts; masks of these bits. */
enum {
    N_REQ = 1u << 0,      /* the requester's direction was captured */
    N_RSP = 1u << 1,      /* the responder's direction was captured */
    N_START = 1u << 2,    /* the connection was seen from its start */
    N_COMPLETE = 1u << 3, /* the capture lost no frame */
    N_PAYLOAD = 1u << 4,  /* packets were captured in full */
    N_CM = 1u << 5,       /* the connection's parameters are known */
    N_TAP_REQ = 1u << 6,  /* the tap is at the requester */
    N_TAP_RSP = 1u << 7,  /* the tap is at the responder */
    N_CLOCK = 1u << 8,    /* time stamps can be trusted */
};

/* Who can break a rule on purpose; masks of these bits. */
enum {
    F_NONE = 0,
    F_REQ = 1u << 0,       /* a requester */
    F_RSP = 1u << 1,       /* a responder */
    F_ANY = F_REQ | F_RSP, /* whoever sends packets */
    F_CM = 1u << 2,        /* a connection manager */
};

enum severity {
    SEV_E, /* error: a failure proves that an end misbehaves */
    SEV_W, /* warning: it rests on a "should", a heuristic or on timing */
    SEV_I, /* observation: a value, never a verdict */
};

enum rule {
    RULE_NONE, /* no rule: the verdict of a check that found nothing */
#define RULE(name, id, severity, anchor, needs, fault, meaning) RULE_##name,
#include "src/transport/rules.def"
#undef RULE
    RULE_COUNT
};

struct rule_info {
    const char *id;      /* "NAK-02" */
    const char *anchor;  /* compliance statement, section or other source */
    const char *meaning; /* one line: what holds when the rule is kept */
    uint16_t needs;      /* N_* */
    uint8_t severity;    /* enum severity */
    uint8_t fault;       /* F_*: who can break it on purpose */
};

/* One row a rule, indexed by enum rule; row 0 (RULE_NONE) has the id "". */
extern const struct rule_info rule_table[RULE_COUNT];

/* The id, e.g. "NAK-02"; "" for RULE_NONE. */
const char *rule_str(enum rule rule);
/* The rule with this id ("NAK-02", case does not matter); RULE_NONE if there is none. */
enum rule rule_find(const char *id);
/* "error", "warning", "note". */
const char *severity_str(enum severity s);
/* What a need is called in a report, e.g. "the responder's direction"; `need` has one bit set. */
const char *need_str(unsigned need);

enum result {
    V_PASS,         /* permitted */
    V_FAIL,         /* no value of the state permits it */
    V_INCONCLUSIVE, /* it would fail, but `missing` is not given; or the state does not know */
};
/* "pass", "fail", "inconclusive". */
const char *result_str(enum result r);

/* What a check half says. A passing verdict has the rule RULE_NONE. */
struct verdict {
    uint8_t rule;      /* enum rule: the first one that is broken */
    uint8_t result;    /* enum result */
    uint8_t answer;    /* from rsp_rx_check() only: enum rsp_answer, what the responder does with the packet */
    uint16_t needs;    /* N_* that this failure needs beside those of its rule */
    uint16_t missing;  /* with V_INCONCLUSIVE: N_* that would be needed */
    uint64_t expected; /* value that would have been permitted (the nearest, where there are many) */
    uint64_t seen;     /* value found */
    const char *about; /* what the two values are: "PSN", "payload bytes"; NULL if there are none */
};

/* The verdict of a check that found nothing. */
static inline struct verdict verdict_pass(void)
{
    return (struct verdict){0};
}
static inline struct verdict verdict_fail(enum rule rule, const char *about, uint64_t expected, uint64_t seen)
{
    return (struct verdict){
        .rule = (uint8_t)rule, .result = V_FAIL, .expected = expected, .seen = seen, .about = about};
}
static inline bool verdict_ok(struct verdict v)
{
    return v.result == V_PASS;
}
/* What the engine does to every failure: with a need that `have` (N_*) lacks it becomes inconclusive. */
struct verdict verdict_weigh(struct verdict v, unsigned have);

#endif
