/* layer 3 (judge): internal: the judge's state of a flow. */
#ifndef RDMATRACE_JUDGE_FLOW_STATE_H
#define RDMATRACE_JUDGE_FLOW_STATE_H

#include "src/conn/requests.h"
#include "src/judge/header.h"

#define MTU_MAX 4096 /* bytes; the largest path MTU */

#define HOT_LINES 3 /* of struct jflow */

/* A header value that must not change within a connection. A changed value may mean that the queue pair number is
 * used by a new connection; if the old value returns, it was a deviation. */
struct steady {
    uint32_t value;
    uint32_t other;       /* with `pending`: the deviating value, seen first in other_frame */
    uint32_t value_frame; /* frame in which `value` was seen last */
    uint32_t other_frame;
    uint16_t n_other; /* with `pending`: how often `other` was seen */
    bool have, pending;
    bool reported; /* with `pending`: the deviation was reported */
};
#define STEADY_MOVED 64 /* packets with the other value after which it replaces `value` */

#define HAS_TAG 0x10000 /* added to the tag control information, as a tag may be 0 */

/* State of the requests, or of the responses, of a flow. */
#define USUAL_WORDS (HEADER_BYTES / 8)
struct kind_state {
    /* What the fast path compares: a line of the cache. */
    _Alignas(CACHE_LINE)
        uint64_t usual[USUAL_WORDS]; /* masked headers of a packet that broke no rule (fast_path.c); usual[0] 0: none */
    uint32_t tap;                    /* tap of that packet */
    uint32_t frame;                  /* latest packet on the fast path since judge_usual_catch_up(); 0: none */
    uint32_t vlan;                   /* with `tagged`: the tag of the latest packet, with HAS_TAG; 0: it had none */
    uint32_t mac;   /* with `met`: the last four bytes of the source MAC address of the latest packet */
    uint32_t label; /* with `labelled`: the IPv6 flow label of the latest packet */
    uint8_t hops;   /* with `met`: its TTL or hop limit */
    bool tagged, met;
    bool verified; /* a packet like `usual` had a right ICRC, by which its sender is known (icrc_sources_count()) */
    bool labelled, seen;
    uint8_t ttl;         /* with `seen`: of the first packet */
    bool hops_vary;      /* others had another: packets were captured on both sides of a router */
    uint32_t path;       /* with path_frame: of the latest packet, see jflow.path */
    uint32_t path_frame; /* frame since which packets take that path; 0: none seen */
    bool path_changed;   /* packets took another path before */
    ns_t path_ts;        /* with path_changed: time of that frame; frames need not be numbered in the order of time */
    struct steady sport, dscp, ect;
};
enum { KIND_REQ, KIND_RSP };

#define CALM_RESPONSES  3  /* so many responses to all that had been seen show that clocks of both directions agree */
#define PENDING_PACKETS 16 /* a packet captured out of order is expected within this many packets of its flow */

/* A failure that a packet captured out of order would refute. */
struct pending_fail {
    uint32_t psn;          /* the PSN that was skipped, or the PSN of the response */
    uint32_t frame;        /* the frame that shows the failure */
    uint32_t conn_packets; /* jflow.packets at that frame */
    uint8_t rule;
    bool needs_start;   /* of skipped PSNs: all requests before them may be older than the capture, and sent again */
    bool told;          /* of skipped PSNs: a sequence NAK of the first of them has come, and that was reported */
    uint8_t ack_rule;   /* that the response of `ack_frame` breaks */
    const char *what;   /* name of the response, or of that of `ack_frame` */
    bool calm;          /* of a response: the clocks of both directions agree, and no request was missed */
    uint64_t again;     /* of a response: requests retransmitted until then */
    uint32_t other;     /* second PSN for the finding's text */
    uint32_t ack_psn;   /* of skipped PSNs: that of the first response that covers them, with `ack_frame` */
    uint32_t ack_frame; /* frame of that response; 0: none yet */
    ns_t ts;            /* time stamp of the response */
};

/* A response before any request was seen. */
struct unsolicited {
    uint32_t frame; /* 0: none */
    uint32_t psn;
    ns_t ts;
    const char *what; /* its name */
    uint8_t rule;     /* that it breaks */
};

/* A request whose ACK is outstanding: the oldest one with AckReq since the latest response that has
 * certainly arrived if the tap is at the responder. */
struct ack_wait {
    uint32_t psn;
    uint32_t frame; /* 0: none */
    uint32_t path;  /* of the request: kind_state.path */
    bool told;      /* reported: it is not sent again */
    ns_t ts;
    ns_t overdue; /* from then on new requests show that it is not sent again; NS_NEVER: no timeout is known */
};

/* Compare a packet's value `v` with the flow's. `same`: the packet is certainly of the same connection as the packet
 * before it. True if a deviation is to be reported: s->other in frame s->other_frame. Without `same` a changed value
 * is a deviation only once the old value returns. */
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

/* A DREQ, DREP or REJ. */
struct cm_closed {
    uint32_t frame; /* 0: none */
    ns_t ts;
    bool agreed; /* a DREP: it closes what its peer has closed, and its queue pair is in error */
};

/* A request whose PSN is too far from those before to be of the same connection, inside a connection of CM. */
struct leap {
    uint32_t frame; /* 0: none */
    uint32_t cause; /* frame of the request before */
    uint32_t next;  /* PSN expected */
    uint32_t psn;   /* its PSN */
};

/* Whether a new connection of the same queue pairs may have begun unnoticed. */
struct another {
    enum { ANOTHER_NO, ANOTHER_MAYBE, ANOTHER_LIKELY } is;
    bool leapt;    /* with ANOTHER_LIKELY: the capture missed very many PSNs, nothing else speaks for it */
    uint32_t end;  /* PSN after all requests seen when this was suspected: a response to a later one refutes it */
    uint32_t msgs; /* messages begun since then: a response that counts more refutes it */
};

/* The first request of a flow that was stamped just before the REP of its new connection: it belongs to that
 * connection. */
struct before_rep {
    bool have;
    uint32_t psn;
};

struct history; /* history.h */
struct shadow;  /* src/shadow/shadow.h */

#define RESTS_ON_SEVERAL UINT32_MAX /* jflow.rests_peer */

struct jflow {
    /* What every packet needs: three lines of the cache, and that of its kind (fast_path.c fetches them). */
    _Alignas(CACHE_LINE) uint64_t packets; /* packets of the flow */
    struct req_dir *dir;                   /* requests in this flow, owned by the observer; NULL: none seen */
    struct shadow *shadow;   /* replicas of their requester and responder: what is permitted; set with `dir` */
    struct history *history; /* set with `dir` */
    struct cuts *cuts;       /* what CNPs for the sender of this flow do; NULL: there are none */
    uint32_t after;          /* PSN after that of the latest request */
    uint32_t frame;          /* latest packet on the fast path since judge_usual_catch_up(); 0: none */
    uint32_t ackreq_run, ackreq_run_max; /* consecutive requests without AckReq: now, at most */
    bool have_after;                     /* `after` is valid */
    bool has_rsp;                        /* responses were seen in this flow */
    bool crossing;                       /* history.crossing is valid */
    bool psn_checked;                    /* the first PSN was compared with CM */
    bool acked;                          /* a request of the flow was acknowledged */
    bool is_refused;                     /* one was refused for good: dir->fatal */
    bool has_gap, has_early;             /* `gap`, `early` are valid */
    uint8_t owner;                       /* of its addresses, at its tap */

    struct steady mtu;
    uint32_t long_frame; /* frame of a Last or Only packet longer than the path MTU; 0: none */
    uint32_t rkey;       /* the latest R_Key in its requests */
    struct ack_wait ack_wait;
    /* wrong ICRCs of requests that no response has acknowledged: the first and the latest one, as index plus 1 in
     * judge.bad_icrc; 0: none */
    uint32_t bad_icrc;
    uint32_t calm; /* responses that acknowledged all requests seen until then */

    struct cm_closed closed; /* its sender sent a DREQ, DREP or REJ */
    struct another another;  /* of the requests of this flow */
    uint64_t n_rsp;          /* responses to its requests */
    uint64_t alike;          /* number of the latest one that equals an earlier one; 0: none */
    struct kind_state kind[2];

    /* Other state. */
    uint32_t bad_icrc_last; /* see bad_icrc */
    bool lacking; /* the ICRC of a request that was acknowledged is wrong in the capture only: this lacks the request */
    bool refused; /* with `closed`: by a REJ */
    uint32_t long_len; /* with long_frame: its payload in bytes */
    struct steady service, pkey, migreq;
    uint64_t sure_from;   /* `packets` from which on those along its path, which is guessed, are certainly its own */
    uint32_t path;        /* hash of the two addresses of the latest packet, the same for both directions */
    uint32_t service_psn; /* with service.pending: PSN that the requests of the service before would go on with */
    ns_t service_ts;      /* with service.pending: time of the first packet of the other service */
    uint32_t first_frame;
    ns_t first_ts;
    bool noted_port, noted_vlan, noted_label, noted_way, ends_compared, marks_compared;
    uint8_t encap;         /* enum encap of its latest request; 0: none */
    uint32_t encap_frame;  /* with `encap`: that request */
    uint32_t rsp_frame;    /* with has_rsp: frame of the first response */
    uint64_t unproved_rsp; /* so many of the responses do not prove that they belong to these requests */
    uint64_t unfit_rsp;    /* so many fitted no request, contradicted them, or were like one before */
    bool misfit;           /* one of them contradicted the requests */
    /* failures of connection rests_conn rest on few responses, those of flow rests_peer - 1, being those to these
     * requests; 0: none does, RESTS_ON_SEVERAL: on those of several flows */
    uint32_t rests_peer, rests_conn;
    bool mid_stream;           /* the first request seen was not the first one of the queue pair */
    struct pending_fail gap;   /* with has_gap: skipped PSNs */
    struct leap leap;          /* that was not acknowledged */
    struct pending_fail early; /* with has_early: a response with a PSN that was not sent */
    /* Congestion: packets of this flow marked CE; CNPs in this flow. */
    uint64_t ce, cnps;
    uint32_t ce_frame, ce_psn; /* frame and PSN of the latest request marked CE; frame 0: none */
    uint64_t unmarked_cnps;    /* CNPs in this flow, without a mark before */
    uint32_t unmarked_frame;   /* of the first one */
    bool coarse;               /* with `cuts`: by coarse time stamps */
    bool deaf;                 /* reported: CNPs do not slow down its sender */
    uint32_t close_frame;      /* the latest of CNPs in it that follow each other too closely; 0: none do */
    ns_t close_span;           /* with close_frame: their time */
    /* For the notes. */
    uint32_t rnr_code; /* timer code + 1 of the latest RNR NAK for this flow's requests; 0: none */
    bool rnr_codes_differ;
    uint64_t spurious; /* packets retransmitted although a response to them was seen */
    uint32_t spurious_frame;
    ns_t nak_reaction; /* longest time from a sequence NAK to the retransmission, ns */
    struct before_rep before_rep;
    uint32_t unmatched_first, unmatched_last; /* PSNs of the responses, as long as their requests are not known */
    uint64_t unmatched;                       /* how many there were */
    uint32_t unsolicited_psn;                 /* the latest response before any request was seen or known */
    ns_t unsolicited_ts;                      /* its time; 0: none */
    bool unsolicited_asks;                    /* it is a sequence NAK: the request that it names may follow it */
    struct unsolicited unsolicited;           /* the first one */
    bool two_way;                             /* its ends open connections and accept some */
    uint8_t two_way_side;                     /* with two_way: enum tap_side; at which of them the tap is */
    uint32_t found_as;                        /* finding.flow of its findings; 0: it has none yet */
    uint64_t two_way_next;                    /* packets of the capture at which this is looked at again */
};

#endif
