/* layer 3 (explain): notes of a flow, by the question that they answer. */
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

/* A packet that comes sooner than this part of the shortest round trip does not answer the packet just before. */
#define AT_ONCE 4

#define PASS_RUNS  3
#define ROUND_NAKS 8

/* The rounds of requests at the tap: copies of each PSN since the requester last went back, and in the round before.
 * They tell which copy of a packet a NAK is about: the responder had received all earlier PSNs in order. */
struct copies {
    uint32_t psn; /* UINT32_MAX: empty */
    /* the two latest copies, latest first: frame, and count of requests (0: none) */
    uint32_t frame[2], at[2];
};
#define ROUNDS_MIN 16 /* slots at first */
struct rounds {
    /* Each PSN in slot `PSN modulo slots`. The number of slots, a power of two, doubles as long as PSNs collide; from
     * TRACK_SENT slots on, or without room, a later PSN replaces an earlier one. */
    struct copies *seen;
    uint32_t slots;
    uint32_t n; /* requests seen */
    struct {
        /* count of its first request, 0: the first round; the PSN that a NAK reported missing, else its first PSN */
        uint32_t at, psn;
        uint32_t resume; /* the PSN that would have followed, had the requester not gone back */
        bool by_nak;     /* a NAK triggered the round */
        /* its first request was sent after the one that passed before it, or some of its requests passed in the round
         * before: it was retransmitted */
        bool resent;
        bool alone;     /* behind its first request came the one of `resume`, or nothing yet */
        uint16_t ip_id; /* IP identification of its first request; 0: none */
    } runs[PASS_RUNS];  /* rounds, latest first: requests sent without going back */
    /* The requester retransmits the missing packet alone, and the responder keeps what came behind it: selective
     * repeat. Such a retransmission begins no round. `goes_back`: it was seen to retransmit what follows, too. */
    bool selective, goes_back;
    struct noted_nak {
        uint32_t psn, nak, at; /* frame of the NAK, 0: empty; requests seen before it */
        uint32_t copy;         /* the copy that was lost after the tap; 0: none passed */
        uint32_t instead;      /* the first packet after it in that round; 0: none seen */
        uint32_t dropped;      /* a copy of an earlier round, if none passed in that one; 0: none */
        bool stray;            /* `instead` may be of an earlier round, held back until then */
        bool late;             /* the later packet passed before the copy */
        bool skipped;   /* `dropped` may be the copy that was lost: the requester may not have retransmitted it */
        bool alone;     /* earlier copies were dropped: the round of `copy` began with a NAK for an earlier PSN */
        bool answered;  /* the requester has gone back to the PSN since */
    } naks[ROUND_NAKS]; /* sequence NAKs, and what had passed before them */
    uint32_t naks_at;
};

/* Requests of a flow. */
struct noted_requests {
    struct {
        uint32_t psn, rkey, len; /* len 0: none */
        uint64_t va;
    } keys[NOTED_KEYS]; /* of the latest requests that have an R_Key */
    uint32_t keys_at;
    struct {
        uint32_t psn, frame, incident;
    } bad[NOTED_BAD]; /* packets with a bad ICRC */
    uint32_t bad_at;
    struct {
        uint32_t psn, frame; /* frame 0: none */
        bool open;           /* no response has acknowledged it yet */
    } gaps[NOTED_GAPS];      /* the first PSN of each gap, and the frame that came in place of it */
    uint32_t gaps_at;
    unsigned gaps_open; /* of those */
    struct {
        ns_t from, to;            /* `to` 0: none */
        uint32_t frame, missing;  /* the request that came then, and the PSNs skipped before it */
    } hush;                       /* the longest time without a request behind which PSNs were missing */
    bool lacks;                   /* the capture lacks a request: it was acknowledged, and never seen */
    uint32_t soliciting, answers; /* packets that solicit a response, retransmissions included; and responses */
    bool solicited;               /* a request solicited a response; the last such PSN is solicited_psn */
    bool unanswered;              /* without a response at the latest retransmission */
    uint32_t solicited_psn;
    ns_t solicited_ts; /* of the latest request that solicits a response */
    struct {
        uint32_t psn, frame; /* frame 0: none */
        ns_t ts;
    } wanted; /* the oldest request without a response */
    /* READ or atomic beyond the negotiated depth, and how many were outstanding then; 0: none */
    uint32_t deep_psn, deep;
};

/* A time in which no response came to the requests of a flow. */
struct response_gap {
    ns_t last;      /* time of the response before; 0: it was the first */
    ns_t cnp;       /* time of the latest CNP before its end; 0: none */
    ns_t from;      /* since when a response was due, `last` or later; 0: none was */
    ns_t to;        /* time of the response that ended it; 0: the place is free */
    uint32_t frame; /* its frame */
};
#define RESPONSE_GAPS      8         /* the longest ones, those in which a response was due first */
#define RESPONSE_GAP_LEAST NS_PER_MS /* shorter ones are not noted */

/* What a response says of its request: it had not arrived, its receiver was not ready, or something else. */
enum response_kind { RESPONSE_OTHER, RESPONSE_SEQ_NAK, RESPONSE_RNR_NAK };
/* Responses to the requests of a flow: those with one PSN. */
struct noted_response {
    uint32_t psn;                /* UINT32_MAX: empty */
    uint32_t first, frame, icrc; /* frame of the first and the latest one; ICRC of the latest */
    uint32_t icrc_first;         /* ICRC of the first; 0: not captured */
    uint32_t answer;             /* latest frame of a READ response or ATOMIC ACK; 0: none */
    bool acked;                  /* a later PSN had been acknowledged before */
    uint8_t kind;                /* enum response_kind of the first one */
    uint16_t ip_id;              /* of the latest one; 0 for IPv6 */
    ns_t ts, ts_first;           /* of the latest, of the first */
};
#define NOTED_RESPONSES_MIN 16 /* slots at first */
struct noted_responses {
    struct response_gap gaps[RESPONSE_GAPS];
    /* Responses, each in slot `PSN modulo slots`, up to NOTED_RESPONSES of them: as in struct rounds. */
    struct noted_response *by_psn;
    uint32_t slots;
    uint32_t last_frame; /* latest response; 0: none seen */
    ns_t last_ts;
    uint32_t largest; /* payload bytes of the largest READ response */
    uint32_t reads;   /* READ responses */
    bool strange;     /* some responses were captured before the flow was paired with its requests */
    uint32_t next;    /* PSN after the latest READ response in order; UINT32_MAX: none seen */
    /* PSN of the latest retransmitted READ response seen after later ones; else UINT32_MAX */
    uint32_t late;
    uint32_t behind;        /* PSN behind the latest READ response */
    uint32_t late_incident; /* about the latest READ response, if out of order and not requested again */
    bool repeats;           /* the latest READ responses repeat others in order */
    uint32_t overtaken_end; /* after a reordered response: the PSN after the last that the requester dropped */
    /* first response of the latest retransmitted READ or atomic; frame 0: none */
    uint32_t run_frame, run_psn;
    uint32_t run_last; /* PSN of the latest READ response or ATOMIC ACK; UINT32_MAX: none seen */
    /* shortest time from a response lost after the tap to the retransmitted READ; 0: not known */
    ns_t loop;
    /* when a READ or atomic was retransmitted last, and how long after its response had passed the tap; 0: on
     * timeout */
    ns_t lost_ts, lost_loop;
    bool rests;       /* this requester repeats READs from the missing response on */
    uint32_t implied; /* PSN to which it went back last for an implied NAK; UINT32_MAX: never */
    ns_t round_trip;  /* shortest time from a request sent once to its response; negative: not known */
    ns_t path_trip;   /* at the end: the shortest one of all flows at the tap to that host; negative: not known */
    ns_t least_trip;  /* likewise from the latest copy of any request; the response may be to an earlier copy */
};

/* Hypotheses that later packets may revise: numbers of incidents, NO_INCIDENT: none. */
struct hypotheses {
    uint32_t open;              /* its PSN is not acknowledged yet */
    uint32_t cost;              /* the reason of the present retransmission */
    uint32_t dup, reorder, rnr; /* these gather further frames */
    uint32_t soon, dup_rsp;     /* likewise; dup_rsp: duplicate responses */
    struct {
        uint32_t psn, lost, again;  /* frames of the previous copy and of the latest one; again 0: none */
        ns_t sent, ts;              /* when these came */
    } hasty;                        /* the latest copy that `soon` is about */
    uint32_t missed;                /* the latest request that never passed the tap, and was NAKed */
    uint32_t rnr_psn;               /* with rnr */
    uint32_t reorder_end;           /* with reorder: PSN after the last that the responder dropped */
    uint32_t late;                  /* PSN seen after later ones and a NAK: retransmitted, or reordered? */
    uint32_t resume;                /* with late, if it was seen before: PSN that was due; else UINT32_MAX */
    int late_order;                 /* with late: sent_order() of it and the packet that passed before it */
    uint32_t late_single;           /* the request before, if it was reordered */
    uint32_t follows;               /* PSN after the request before, if that was retransmitted; else UINT32_MAX */
    uint32_t silent;                /* the latest retransmission on ACK timeout */
    uint32_t not_received;          /* a response lost after the tap */
    uint32_t rsp_missing;           /* a READ response lost before the tap, it seems */
    uint32_t rsp_lost, rsp_reorder; /* the response to the latest READ retransmitted; a reordered one */
    uint32_t answered;              /* the latest retransmission on ACK timeout that a response ended, */
    uint32_t answered_psn;          /* the PSN of that response, */
    uint32_t answers_due;           /* and how many more are due if each copy of its request gets one */
    uint32_t had;                   /* the latest one whose first ACK tells that the next packet had not arrived, */
    ns_t had_back;                  /* and when its requester went back */
};

/* Requests of a short time: number of that time since 1970, and how many. */
struct cnp_slice {
    uint32_t at, n;
};
#define CNP_SLICE  (25 * NS_PER_US)
#define CNP_SLICES 9                 /* slices before the first CNP, that of the CNP included */
#define CNP_LOOK   (100 * NS_PER_US) /* the rate before the first CNP is known only from at least this time */

/* ECN marks on the packets of a flow, and CNPs for it. */
struct marks {
    uint64_t ce_packets, cnps;
    uint64_t early_cnps; /* CNPs in this flow before it was known which flow they are for */
    ns_t first_ce, latest_ce;
    uint32_t ce_frames[NOTED_CE], cnp_frame;
    uint32_t unmarked_cnps, unmarked_frame; /* CNPs before any mark or loss; the first of them */
    uint8_t cnp_class; /* of the latest CNP: the priority of its tag, else the upper bits of its DSCP */
    bool at_receiver;  /* explain_receiver_taps(): the tap is at the link of the receiver of several hosts' requests */
    ns_t cnp_ts;
    ns_t first_ts;                  /* of the first request */
    ns_t look;                      /* time before the first CNP in which its requests are known, up to 225 us */
    uint32_t before_cnp, after_cnp; /* requests in that time before the first CNP, and after it */
    struct cnp_slice slices[CNP_SLICES];
    ns_t latest_cnp;
    /* packets within messages soon after a CNP; how many of them are as close to their predecessor as any packet is */
    uint32_t near, near_close;
};
/* That is, from so long after a CNP on, when the requester has heeded it, up to so long. */
#define CNP_HEEDED (10 * NS_PER_US)
#define CNP_NEAR   (50 * NS_PER_US)

/* Direction of a packet at its tap, if the capture tells it. */
enum way { WAY_UNKNOWN, WAY_IN, WAY_OUT };
#define EPB_DIRECTION 3u /* of epb_flags */
static inline uint8_t frame_way(const struct frame *f)
{
    unsigned n = f->flags & EPB_DIRECTION;

    return n == 1 ? WAY_IN : n == 2 ? WAY_OUT : WAY_UNKNOWN;
}

/* A packet with another P_Key than the first one. */
struct odd_key {
    uint32_t psn, frame;
    uint16_t pkey;
};

/* Header fields of all packets of a flow. */
struct noted_headers {
    bool seen, migreq, have_dscp, have_sl;
    bool right_icrc; /* a packet with a right ICRC was counted */
    uint16_t pkey;
    uint16_t vlan;                 /* VID of the first packet; 0: no tag */
    uint8_t dscp, sl;              /* of the first packet, if it has IP or an LRH */
    uint32_t psn;                  /* of the first packet */
    ns_t ts;                       /* of the first packet */
    ns_t last_ts;                  /* of the latest packet */
    uint8_t way;                   /* of the first packet: enum way */
    uint8_t class;                 /* of the first packet: the priority of its tag, else the upper bits of its DSCP */
    bool tagged;                   /* it had a tag with a priority */
    uint64_t dmac, smac;           /* of the first packet; 0: no Ethernet */
    uint64_t passed;               /* pauses of its tap that do not hold it: a mask of struct congestion's pausers */
    uint32_t packets, frame;       /* packets; frame of the first */
    struct odd_key odd[NOTED_ODD]; /* first packets with another P_Key than the first one */
    uint32_t n_odd;
};

/* How a connection was closed: DREQ. */
struct closing {
    uint32_t left_frame; /* the requester closed it; 0: not seen */
    ns_t left_ts;
    uint32_t closed_frame; /* the responder closed it; 0: not seen */
    ns_t closed_ts;        /* when either closed it */
};

/* Notes of a flow. */
struct flow_notes {
    struct rounds rounds;
    struct noted_requests requests;
    struct noted_responses responses;
    struct hypotheses hypotheses;
    struct marks marks;
    struct noted_headers headers;
    struct closing closing;
};

/* New notes; NULL: no memory. */
struct flow_notes *notes_new(void);
/* Release them; what their tables took is given back to `room`. NULL is allowed for both. */
void notes_free(struct flow_notes *t, struct room *room);
/* The slot of the responses with a PSN, which may hold another one. */
static inline struct noted_response *response_slot(const struct flow_notes *t, uint32_t psn)
{
    return &t->responses.by_psn[psn & (t->responses.slots - 1)];
}
/* What is noted of the response with a PSN; NULL: nothing. NULL is allowed. */
static inline const struct noted_response *response_noted(const struct flow_notes *t, uint32_t psn)
{
    const struct noted_response *r = t ? response_slot(t, psn) : NULL;

    return r && r->psn == psn ? r : NULL;
}
/* The slot for a response that comes: the table grows from `room` before it forgets another PSN. */
struct noted_response *response_slot_new(struct flow_notes *t, uint32_t psn, struct room *room);
/* Frame of the latest response with a PSN; frame of a packet with a bad ICRC and this PSN; 0: none. */
uint32_t response_frame(const struct flow_notes *t, uint32_t psn);
uint32_t damaged_frame(const struct flow_notes *t, uint32_t psn);
/* Frame of the latest READ response or ATOMIC ACK with a PSN; 0: none. */
uint32_t answer_frame(const struct flow_notes *t, uint32_t psn);
/* Frame of a packet with a bad ICRC and one of `n` PSNs from `psn` on, after frame `since`; 0: none. */
uint32_t damaged_since(const struct flow_notes *t, uint32_t psn, uint32_t n, uint32_t since);

#define SENT_NEAR 256 /* IP identifications that differ by more are not counted one by one */
/* Which of two packets of a host was sent first, by their IP identifications: < 0: the first one, > 0: the other one;
 * 0: not known. */
static inline int sent_order(uint16_t first, uint16_t other)
{
    int d = first && other ? (int16_t)(first - other) : 0;

    return d > -SENT_NEAR && d < SENT_NEAR ? d : 0;
}

/* Rounds: forget what was seen, but not the memory; note a request; note a sequence NAK, with
 * noted_responses.least_trip (decides on which side of the tap the packet was lost) and .round_trip (decides which
 * copy, if several passed). */
void rounds_init(struct rounds *s);
void rounds_request(struct rounds *s, const struct event *e);
void rounds_nak(struct rounds *s, const struct event *e, ns_t least, ns_t round_trip);
/* Note a response, after a NAK was: it may acknowledge what passed before that NAK only, and so was kept. */
void rounds_response(struct rounds *s, const struct event *e);
/* What is noted of the latest sequence NAK for a PSN; NULL: nothing. */
struct noted_nak *rounds_nak_of(struct rounds *s, uint32_t psn);
/* True if that PSN passed between the NAK and the latest request. */
bool rounds_since(const struct rounds *s, const struct noted_nak *a);

#endif
