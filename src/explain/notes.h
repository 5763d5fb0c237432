/* layer 3 (explain): what is remembered of a flow, by the question that it answers. */
#ifndef RDMATRACE_EXPLAIN_NOTES_H
#define RDMATRACE_EXPLAIN_NOTES_H

#include "src/explain/explain.h"

#define NOTED_RESPONSES 512
#define NOTED_BAD       8
#define NOTED_GAPS      8
#define NOTED_ODD       8
#define NOTED_KEYS      64
#define NOTED_CE        8
#define NO_INCIDENT     UINT32_MAX

/* What comes within this part of the shortest round trip is no response to what was sent just before. */
#define AT_ONCE 4

#define PASS_RUNS  3
#define PASS_ASKED 8

/* When requests passed the tap: which copies since their sender went back last, and since it had gone back the time
 * before. That tells which copy of a packet its receiver asks for again, for it had taken all that came before that one
 * in order. */
struct rounds {
    struct {
        uint32_t psn; /* UINT32_MAX: empty */
        /* of its latest copies, the latest one first: frame, and number among the requests of the flow; at 0: none */
        uint32_t frame[2], at[2];
    } seen[TRACK_SENT];
    uint32_t n; /* requests so far */
    struct {
        /* its first request, at 0: the first one of the flow; the PSN asked for, or else its first one */
        uint32_t at, psn;
        uint32_t resume; /* the PSN that would have followed, had its sender not gone back */
        bool asked;      /* a NAK asked for it */
    } runs[PASS_RUNS];   /* what was sent without going back, the latest one first */
    struct asked {
        uint32_t psn, nak, at; /* frame of the NAK, 0: empty; requests seen by then */
        uint32_t copy;         /* the copy that was lost behind the tap; 0: it did not pass */
        uint32_t instead;      /* the first packet behind it in that run; 0: none was seen */
        uint32_t dropped;      /* a copy of a run before, if none passed in that one; 0: none */
        bool late;             /* that packet came before the copy */
        bool answered;         /* the requester has gone back to the PSN since */
    } asked[PASS_ASKED];       /* what sequence NAKs asked for, as things were when they passed */
    uint32_t asked_at;
};

/* The requests of a flow. */
struct noted_requests {
    struct {
        uint32_t psn, rkey, len; /* len 0: none */
        uint64_t va;
    } keys[NOTED_KEYS]; /* of the latest requests that have an R_Key */
    uint32_t keys_at;
    struct {
        uint32_t psn, frame, incident;
    } bad[NOTED_BAD]; /* those with a bad ICRC */
    uint32_t bad_at;
    struct {
        uint32_t psn, frame; /* frame 0: none */
    } gaps[NOTED_GAPS]; /* PSNs that were not seen when a later one came first: the first one of each gap, and what came
                          instead */
    uint32_t gaps_at;
    uint32_t asks, answers; /* requests that ask for a response, retransmissions included, and responses */
    bool asked;             /* a request asked for a response; the last one by its PSN is asked_psn */
    bool owed;              /* that had none yet as something was sent again last */
    uint32_t asked_psn;
    ns_t asked_ts; /* of the latest such request */
    struct {
        uint32_t psn, frame; /* frame 0: none */
        ns_t ts;
    } wanted; /* the oldest request that asks for a response, and has none as far as seen */
    /* READ or atomic that went beyond what was agreed on, and how many were outstanding with it; 0: none */
    uint32_t deep_psn, deep;
};

/* The responses to the requests of a flow. */
struct noted_responses {
    struct {
        uint32_t psn, first, frame, icrc;
        uint32_t answer; /* latest frame of a READ's or atomic's response; 0: none */
        bool acked;      /* an ACK had passed over that one before */
        ns_t ts;
    } by_psn[NOTED_RESPONSES]; /* first and latest frame; ICRC and time of the latest */
    uint32_t last_frame;       /* of the latest one; 0: none was seen */
    ns_t last_ts;
    uint32_t next; /* PSN behind the latest READ response that was not late; UINT32_MAX: none was seen */
    /* PSN of the latest READ response, which was asked for again and comes behind later ones; else UINT32_MAX */
    uint32_t late;
    uint32_t overtaken_end; /* of one that was overtaken: the PSN behind what its receiver dropped */
    /* response of READs and atomics with which they went back last; frame 0: they never did */
    uint32_t run_frame, run_psn;
    uint32_t run_last; /* PSN of the latest one; UINT32_MAX: none was seen */
    /* the shortest time after which a response that was lost behind the tap was asked for again; 0: not known */
    ns_t loop;
    /* when a READ or atomic was asked for again last, and how long after the response had passed the tap; 0: its
     * requester waited */
    ns_t lost_ts, lost_loop;
    bool rests;      /* the flow's READs are asked for again from the response on that is missing */
    ns_t round_trip; /* the shortest time from a request sent once to its response; negative: not known */
    ns_t least_trip; /* and from the latest copy of any: the response may be to one before */
};

/* Hypotheses that what comes next may revise: numbers of incidents, NO_INCIDENT for none. */
struct hypotheses {
    uint32_t open;                  /* about what has no response yet */
    uint32_t cost;                  /* because of which packets are being sent again */
    uint32_t dup, reorder, rnr;     /* these gather further frames */
    uint32_t soon, dup_rsp;         /* likewise; dup_rsp is like dup, of responses */
    uint32_t rnr_psn;               /* with rnr */
    uint32_t reorder_end;           /* with reorder: PSN behind what had been sent; its receiver dropped all that */
    uint32_t late;                  /* a PSN first seen behind later ones and after a NAK: was it sent again? */
    uint32_t late_alone;            /* the request before, if it was overtaken */
    uint32_t follows;               /* PSN behind the request before, if that was sent again; else UINT32_MAX */
    uint32_t silent;                /* the latest time that something was sent again for want of a response */
    uint32_t unheard;               /* a response that was lost behind the tap */
    uint32_t rsp_missing;           /* a READ response that was lost before the tap, it seems */
    uint32_t rsp_lost, rsp_reorder; /* the response to what was asked for again last; one that was overtaken */
};

/* Marks of congestion, of all packets of a flow; and the CNPs about it. */
struct marks {
    uint64_t ce_packets, cnps;
    uint32_t ce_frames[NOTED_CE], cnp_frame;
    ns_t cnp_ts;
    uint32_t before_cnp, after_cnp; /* requests within CNP_LOOK of the first CNP */
    ns_t recent[64];                /* times of the latest requests */
    uint32_t recent_at;
};
#define CNP_LOOK (200 * NS_PER_US)

/* A packet with a P_Key of its own. */
struct odd_key {
    uint32_t psn, frame;
    uint16_t pkey;
};

/* What the headers of all packets of a flow carry. */
struct noted_headers {
    bool seen, migreq, have_dscp, have_sl;
    uint16_t pkey;
    uint16_t vlan;                 /* VID of the first packet; 0: no tag */
    uint8_t dscp, sl;              /* of the first packet, if it has IP, or an LRH */
    uint32_t psn;                  /* of its first packet */
    ns_t ts;                       /* likewise */
    ns_t last_ts;                  /* of the latest packet */
    uint32_t packets, frame;       /* of the flow; its first frame */
    struct odd_key odd[NOTED_ODD]; /* the first packets with a P_Key other than that of the first one */
    uint32_t n_odd;
};

/* How a connection was closed. */
struct closing {
    uint32_t left_frame; /* the requester has said that it closes the connection; 0: not seen */
    ns_t left_ts;
    uint32_t closed_frame; /* the other end has said that it closes the connection */
    ns_t closed_ts;        /* either end has said so */
};

/* What is remembered of a flow. */
struct flow_notes {
    struct rounds rounds;
    struct noted_requests requests;
    struct noted_responses responses;
    struct hypotheses hypotheses;
    struct marks marks;
    struct noted_headers headers;
    struct closing closing;
};

/* Empty ones; NULL without memory. */
struct flow_notes *notes_new(void);
/* Latest frame of the response with a PSN, and frame of a damaged packet with it; 0: none. */
uint32_t response_frame(const struct flow_notes *t, uint32_t psn);
uint32_t damaged_frame(const struct flow_notes *t, uint32_t psn);
/* Latest frame of the part of a READ's or atomic's response with a PSN; 0: none. */
uint32_t answer_frame(const struct flow_notes *t, uint32_t psn);
/* Frame of a damaged packet with any of `n` PSNs from `psn` on, behind frame `since`; 0: none. */
uint32_t damaged_since(const struct flow_notes *t, uint32_t psn, uint32_t n, uint32_t since);

/* When requests passed: begin anew; take a request; take a sequence NAK, with noted_responses.least_trip and
 * .round_trip: the first tells on which side of the tap the packet was lost, the second which copy it was, if several
 * passed. */
void rounds_init(struct rounds *s);
void rounds_request(struct rounds *s, const struct event *e);
void rounds_nak(struct rounds *s, const struct event *e, ns_t least, ns_t round_trip);
/* What is known of the latest sequence NAK for a PSN; NULL for nothing. */
struct asked *rounds_asked(struct rounds *s, uint32_t psn);
/* Whether that PSN passed between the NAK and the latest request. */
bool rounds_since(const struct rounds *s, const struct asked *a);

#endif
