/* layer 3 (judge): internal: what the judge keeps of a flow. */
#ifndef RDMATRACE_JUDGE_FLOW_STATE_H
#define RDMATRACE_JUDGE_FLOW_STATE_H

#include "src/conn/requests.h"
#include "src/judge/header.h"

#define MTU_MAX 4096 /* no path MTU is larger */

/* A value that should not change. A change alone may be a queue pair used anew; a change and back again is not. */
struct steady {
    uint32_t value;
    uint32_t other;       /* with `pending`: the value that came instead, in frame other_frame */
    uint32_t value_frame; /* frame of the value seen last */
    uint32_t other_frame;
    uint16_t n_other; /* how often it came */
    bool have, pending;
    bool reported; /* with `pending`: the change was reported */
};
#define STEADY_MOVED 64 /* after so many the other value is the value */

/* Requests, and responses, of one flow. */
#define USUAL_WORDS (HEADER_BYTES / 8)
struct kind_state {
    uint64_t usual[USUAL_WORDS]; /* headers of a packet that broke no rule (fast_path.c); usual[0] 0: none */
    uint32_t tap;                /* with usual[] */
    uint32_t frame;              /* of the latest one like it; 0: values below know their frames */
    bool seen;
    struct steady sport, dscp, ect;
};
enum { KIND_REQ, KIND_RSP };

#define PENDING_PACKETS 16 /* packets of a flow within which a reordered one is expected to show up */

/* An accusation that a packet recorded late would refute. */
struct pending_fail {
    bool have;
    uint32_t psn;          /* the packet */
    uint32_t frame;        /* where it was missed */
    uint32_t conn_packets; /* count of the flow's packets then */
    uint8_t rule;
    uint8_t opcode;
    uint32_t other; /* a second PSN, for the text */
    ns_t ts;        /* of the packet */
};

/* A response, to know a copy of it by. */
struct rsp_id {
    bool have;
    uint8_t opcode;
    uint16_t ip_id;
    uint32_t psn, icrc;
    ns_t ts;
};

/* The oldest request since the latest response that asks for an answer, and has certainly arrived if the tap is at the
 * responder. */
struct ack_wait {
    uint32_t psn;
    uint32_t frame; /* 0: none */
    ns_t ts;
};

/* Take a value; `same`: the packet certainly follows the one before in its queue pair. True if there was a deviation
 * that was not reported yet: s->other in frame s->other_frame. A value that changed where the queue pair may have been
 * used anew is none, until the old one is back. */
static inline bool steady_put(struct steady *s, uint32_t v, uint32_t frame, bool same)
{
    if (LIKELY(s->have && v == s->value)) {
        bool news = s->pending && !s->reported;
        if (UNLIKELY(s->pending))
            s->pending = s->reported = false;
        else
            s->value_frame = frame;
        return news;
    }
    if (!s->have) {
        *s = (struct steady){.value = v, .value_frame = frame, .have = true};
    } else if (!s->pending || v != s->other) {
        bool news = same && !s->reported;
        s->pending = true;
        s->reported |= same;
        s->other = v;
        s->other_frame = frame;
        s->n_other = 1;
        return news;
    } else if (++s->n_other >= STEADY_MOVED) {
        *s = (struct steady){.value = v, .value_frame = frame, .have = true};
    }
    return false;
}

/* What a flow had carried when a CNP for its sender was seen. */
struct rate_mark {
    uint32_t frame; /* of the CNP; 0: none */
    ns_t ts;
    uint64_t bytes;
};

struct history; /* history.h */
struct shadow;  /* shadow.h */

struct jflow {
    /* What every packet touches comes first. */
    struct req_dir *dir;     /* the observer's, of the requests in this flow: what packets prove; NULL: none seen */
    struct shadow *shadow;   /* their requester and responder: what is permitted; there with `dir` */
    struct history *history; /* likewise */
    uint64_t packets;        /* all of the flow */
    uint32_t after;          /* PSN that follows the request seen last */
    uint32_t frame;          /* of the latest usual packet; 0: the values know their frames */
    uint32_t ackreq_run, ackreq_run_max; /* requests without AckReq in a row: a note */
    bool have_after;                     /* `after` is valid */
    bool has_rsp;                        /* responses were seen in this flow */
    bool closed;                         /* its sender has sent a DREQ or DREP */
    bool psn_checked;                    /* the first PSN was judged */
    bool acked;                          /* something in it was acknowledged */
    struct steady mtu;
    uint32_t long_frame; /* a Last or Only packet longer than the path MTU; 0: none */
    uint32_t long_len;   /* its payload in bytes */
    struct kind_state kind[2];
    struct steady service, pkey, migreq;
    uint32_t first_frame;
    ns_t first_ts;
    bool noted_port, ends_compared, dscp_compared;
    uint32_t rsp_frame;        /* with has_rsp: the first response */
    uint64_t unproved_rsp;     /* responses up to the last one that may be those of another queue pair */
    bool mid_stream;           /* its first packet was not the first of its queue pair */
    struct pending_fail gap;   /* a PSN that was passed over */
    struct pending_fail early; /* a response to a PSN not sent */
    /* Congestion. */
    uint64_t ce, cnps;
    uint64_t ce_data;             /* of those marked CE: requests and READ responses, whose receiver is to send CNPs */
    uint32_t ce_frame, cnp_frame; /* the first ones */
    ns_t cnp_ts, cnp_gap;         /* of the latest CNP; shortest spacing */
    struct rate_mark cnp_first, cnp_last; /* in the flow whose sender the CNPs are for */
    /* Notes. */
    uint32_t rnr_code; /* code + 1 of the RNR NAKs that answer this flow's requests */
    bool rnr_codes_differ;
    uint64_t spurious; /* sent again although answered */
    uint32_t spurious_frame;
    ns_t nak_reaction; /* longest time from a sequence NAK to the packet sent again */
    struct rsp_id rsp; /* latest response to its requests */
    struct ack_wait ack_wait;
    uint32_t closed_frame; /* with closed */
};

#endif
