/* layer 2 (transport): the rules of the transport and what a check says about one of them. */
#ifndef RDMATRACE_RULES_H
#define RDMATRACE_RULES_H

#include "types.h"

struct buf;

/* What must be known before a failure is reported; masks of these bits. */
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
    /* Needs of single failures, of no rule as such. */
    N_PAIRED = 1u << 9,  /* the two directions certainly belong together */
    N_SAME = 1u << 10,   /* all packets certainly belong to one connection of the queue pairs */
    N_OPENER = 1u << 11, /* which end opened the connection is known, and so at which end the tap is */
    N_ORDER = 1u << 12,  /* the tap had packets once, and in the order in which the end beside it had them */
    N_PACE = 1u << 13,   /* congestion control does not hold the packet back */
};

/* Packets that a rule applies to; masks of these bits. A rule is checked once one of its packets was seen, and passes
 * unless a failure is found. */
enum {
    ON_BTH = 1u << 0,       /* any packet with a BTH */
    ON_UDP = 1u << 1,       /* of RoCEv2 */
    ON_LINK = 1u << 2,      /* of RoCEv1 or InfiniBand: GRH or LRH */
    ON_CONN = 1u << 3,      /* of any service but UD */
    ON_RC = 1u << 4,        /* of any service but UD and UC */
    ON_UC = 1u << 5,        /* of the service UC */
    ON_XRC = 1u << 6,       /* of the service XRC */
    ON_UD = 1u << 7,        /* a datagram */
    ON_CM = 1u << 8,        /* a datagram with a MAD */
    ON_CNP = 1u << 9,       /* a CNP */
    ON_PAUSE = 1u << 10,    /* an Ethernet pause frame */
    ON_COUNTERS = 1u << 11, /* the counters of an adapter, at the end */
    ON_CAPTURE = 1u << 12,  /* the capture as a whole, at the end */
    ON_FPDU = 1u << 13,     /* an FPDU of iWARP */
};

/* Further properties of a rule; masks of these bits. */
enum {
    T_GAP = 1u << 0,        /* a missing packet breaks it */
    T_NOT_NV = 1u << 1,     /* not checked in profile nv: out-of-order placement, adaptive retransmission */
    T_TIMEOUT = 1u << 2,    /* needs the ACK timeout or the retry count, which the user may give */
    T_CM_TIMEOUT = 1u << 3, /* a failure is one of CM-10, too, if CM negotiated ACK timeout and retry count */
    T_CM_RNR = 1u << 4,     /* likewise the RNR retry count */
    /* Failures of transport checks: when src/judge/ reports them, or what may refute them. */
    T_WAITS = 1u << 5, /* a new PSN after a gap: reported when reordered packets have had time to come (pending.c) */
    T_TOO_LONG =
        1u << 6,         /* a packet that is too long for the path MTU: compared with what CM states, or packets show */
    T_CM_PMTU = 1u << 7, /* checked only where CM negotiated the path MTU */
    T_CREDITS = 1u << 8, /* not checked where CM negotiated no end-to-end flow control */
    T_AGAIN = 1u << 9,   /* a retransmission: a duplicate, or a packet captured out of order, looks the same */
    T_ORDER = 1u << 10,  /* likewise: only a tap at the requester shows its sending order */
    T_AHEAD = 1u << 11,  /* an ACK of requests that were not seen: a gap in the capture may hide them */
    T_UNSENT = 1u << 12, /* a response to a request that was not seen */
    T_MSN = 1u << 14,    /* the MSN of a response whose PSN fits */
    T_REST = 1u << 13,   /* may belong to a READ that began before the capture */
    T_BROKEN = 1u << 16, /* a message without its end, or without its beginning: how many there were is not certain */
    T_CROSSES = 1u << 15, /* a packet that one of the other direction permits or demands may be captured before it */
};

/* The earlier frame that the failing frame contradicts. */
enum rule_cause {
    CAUSE_NONE,
    CAUSE_REQUEST_BEFORE, /* the request of the PSN before */
    CAUSE_MESSAGE,        /* the first request of its message */
    CAUSE_FIRST_COPY,     /* the first transmission of this PSN */
    CAUSE_LAST_COPY,      /* its latest transmission */
    CAUSE_LAST_REQUEST,   /* the latest request */
    CAUSE_READ,           /* first transmission of the READ or atomic of this PSN */
    CAUSE_OLDEST_READ,    /* the oldest READ or atomic outstanding */
    CAUSE_READ_PROGRESS,  /* the latest response to the READ of this PSN, else that READ */
    CAUSE_FIRST_RESPONSE, /* the first response to the READ or atomic of this PSN */
    CAUSE_ACK,            /* the latest ACK, else the first transmission of this PSN */
    CAUSE_ACKED,          /* the response that acknowledges the furthest PSN */
    CAUSE_SEQ_NAK,        /* the latest sequence NAK */
    CAUSE_RNR_NAK,        /* the latest RNR NAK */
    CAUSE_FATAL_NAK,      /* the latest NAK that ends in the error state */
    RULE_CAUSES
};

/* What is printed about a failure of a transport check. */
struct rule_reason {
    enum rule_cause cause;
    const char *text;    /* what it means; NULL: the check is in src/judge/, which has the text */
    const char *limit;   /* printed before the value permitted, e.g. "at most "; NULL: nothing */
    const char *instead; /* printed in place of the value permitted; NULL: the value is */
};

/* Who can break a rule as a fault; masks of these bits. */
enum {
    F_NONE = 0,
    F_REQ = 1u << 0,       /* a requester */
    F_RSP = 1u << 1,       /* a responder */
    F_ANY = F_REQ | F_RSP, /* any sender */
    F_CM = 1u << 2,        /* a connection manager */
};

enum severity {
    SEV_E, /* error: a failure proves that an end misbehaves */
    SEV_W, /* warning: based on a "should", a heuristic or timing */
    SEV_I, /* observation: a measured value, never a failure */
};

enum rule {
    RULE_NONE, /* no rule: the verdict of a check that found nothing */
#define RULE(name, ...) RULE_##name,
#include "src/transport/rules.def"
#undef RULE
    RULE_COUNT
};

struct rule_info {
    const char *id;      /* "FMT-01" */
    const char *anchor;  /* compliance statement, section or other source */
    const char *meaning; /* one line: the rule */
    const char *wrong;   /* one line: its violation, with "{seen}" and "{expected}" for the values */
    const char *how;     /* how it is checked, or what is measured */
    const char *example; /* an example that breaks it (observation: an example) */
    struct rule_reason reason;
    uint16_t needs;   /* N_* */
    uint16_t applies; /* ON_*: not 0 */
    uint8_t severity; /* enum severity */
    uint8_t fault;    /* F_*: who can break it on purpose */
    uint32_t traits;  /* T_* */
};

/* One row per rule, indexed by enum rule; row 0 (RULE_NONE) has the id "" and no other text. */
extern const struct rule_info rule_table[RULE_COUNT];

/* The id, e.g. "FMT-01"; "" for RULE_NONE. */
const char *rule_str(enum rule rule);
/* The rule with this id ("FMT-01", any case); RULE_NONE: none. */
enum rule rule_find(const char *id);
/* "error", "warning", "note". */
const char *severity_str(enum severity s);
/* Name of a need in a report, e.g. "the responder's direction"; `need` has one bit set. */
const char *need_str(unsigned need);

enum result {
    V_PASS,         /* permitted */
    V_FAIL,         /* no possible state permits it */
    V_INCONCLUSIVE, /* it would fail, but `missing` is not known; or the state is not known */
};
/* "pass", "fail", "inconclusive". */
const char *result_str(enum result r);

/* Result of a check. A passing verdict has the rule RULE_NONE. */
struct verdict {
    uint8_t rule;      /* enum rule: the first rule broken */
    uint8_t result;    /* enum result */
    uint8_t answer;    /* rsp_rx_check() only: enum rsp_answer, the reaction of the responder */
    uint16_t needs;    /* N_* that this failure needs in addition to those of its rule */
    uint16_t missing;  /* with V_INCONCLUSIVE: N_* that are missing */
    uint64_t expected; /* value permitted (the nearest one) */
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
/* Verdicts about "begun": `expected` is the opcode of the message that the packet should have continued, and this bit;
 * 0: there is none. */
#define MESSAGE_BEGUN 0x100u
/* Weigh a failure: with a need that `have` (N_*) lacks it becomes inconclusive. */
static inline struct verdict verdict_weigh(struct verdict v, unsigned have)
{
    if (v.result != V_FAIL)
        return v;
    v.missing = (uint16_t)((rule_table[v.rule].needs | v.needs) & ~have);
    if (v.missing)
        v.result = V_INCONCLUSIVE;
    return v;
}

/* --- The rule catalogue: rule_docs.c ------------------------------------------------------------ */

/* Write the needs `needs` (N_*), separated by ", "; "nothing but the packet" for 0. */
void needs_text(struct buf *b, unsigned needs);

void catalog_table(struct buf *b);
/* The rows of the rules whose ids begin with `family` and a hyphen, such as "SEQ"; false: there are none. */
bool catalog_family(struct buf *b, const char *family);
void catalog_json(struct buf *b);
/* rdmatrace-rules(7). */
void catalog_man(struct buf *b);
/* All about one rule. */
void catalog_rule(struct buf *b, enum rule rule);

#endif
