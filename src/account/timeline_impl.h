/* layer 2b (account): internal: what is kept of each direction of requests for its account. */
#ifndef RDMATRACE_ACCOUNT_TIMELINE_IMPL_H
#define RDMATRACE_ACCOUNT_TIMELINE_IMPL_H

#include "dissect/link/macc.h"
#include "src/account/arrivals.h"
#include "src/account/timeline.h"
#include "src/taps/step.h"

/* Sets of states that a later state of account.h may replace: by a slow peer, by a wait for the READ depth, by
 * throttled, by a loss, by an RNR wait. Responses to READs come in order: while one is late, no depth would bring
 * another. */
#define BEFORE_SLOW      (1u << TIME_TRANSFER | 1u << TIME_RESPONSE | 1u << TIME_READ_DEPTH)
#define BEFORE_DEPTH     (SPANS_GOOD | 1u << TIME_READ_DEPTH)
#define BEFORE_THROTTLED (BEFORE_DEPTH | 1u << TIME_PEER_SLOW)
#define BEFORE_LOSS      (BEFORE_THROTTLED | 1u << TIME_CREDIT | 1u << TIME_THROTTLED)
#define BEFORE_RNR                                                                                                     \
    (BEFORE_LOSS | 1u << TIME_LOSS_NAK | 1u << TIME_LOSS_RETRANSMISSION | 1u << TIME_LOSS_RESEND |                     \
     1u << TIME_ACK_TIMEOUT)

#define FAR_TIMES 8 /* READs in a row that follow a response after the same time */

/* A NAK that was not yet answered by a retransmission. */
struct pending_nak {
    bool open;
    bool dropped; /* the response to an earlier READ or atomic was missing, so the requester may have dropped it */
    uint32_t psn;
    uint32_t ep; /* episode */
    ns_t ts;
};

/* A wait of the requester, ended by a response. Whether the requester really waited is known with its next request: if
 * it follows at once, the wait held it back.
 *
 *   READ 1  READ 2   (depth 2: READ 3 is not permitted)   response 1   READ 3
 *                  |------------ from ... to -----------|            at once: READ 3 was held back
 */
#define HELD_BEFORE 4
struct held {
    ns_t from, to; /* to 0: none */
    struct {
        ns_t from, to;
    } before[HELD_BEFORE]; /* waits that ended with a response that the requester dropped */
    unsigned n_before;
    ns_t over; /* when a response let the requester go on; 0: none did yet */
    /* credits: since when fewer messages than `window` were outstanding, if that window is not yet sure to be a limit
     * of the requester; 0: fewer all the time, or the limit is sure */
    ns_t freed;
    /* credits: nothing was outstanding, and one packet could have been sent without a credit: only a requester that
     * sends none so has waited */
    bool probe;
    uint32_t ep; /* episode of all such waits */
};

/* A wide gap before the first packet of a message: the gaps within later messages tell whether the pacer or the program
 * made it. */
struct open_gap {
    ns_t from;    /* when the packet before was sent */
    ns_t due, to; /* when the packet was due; when it was sent */
    uint32_t len; /* bytes of the packet before */
    bool ended;   /* a response came just before the packet was sent, */
    bool busy;    /* or while the port was busy until then, and the window had been full */
};
#define OPEN_GAPS 8 /* the first ones */

#define UNSURE_WAITS 8 /* the latest ones */
/* A wait for credits while as many messages as ever were outstanding: perhaps the requester's own limit, not the
 * credits, held it back. */
struct unsure {
    ns_t from, to;
    uint32_t window; /* so many */
};

#define PACE_EARLY 16 /* the first gaps change the pace fast: some of them may have been waits */

/* One of the first responses, until it is known how long one usually takes. */
struct early_response {
    ns_t from, to;         /* since the latest packet before it */
    ns_t sent_ts;          /* time of its request; 0: not known */
    uint32_t psn;          /* its PSN */
    uint32_t sent, answer; /* frames of the latest request, and of the response */
};
#define EARLY_PROGRESS 64 /* after so many responses it is too late to decide which of the first ones were slow */
#define SLOW_AFTER     8  /* after so many responses it is known how long one takes, without a REP */

#define OVERTAKEN 8 /* the latest ones */

/* A silence before the first response that the tap saw, which a retransmission ended: an ACK timeout, if the tap sees
 * responses at all. */
struct blind_timeout {
    ns_t from, to;
    uint32_t psn;        /* of the retransmission */
    uint32_t sent, back; /* frames of the copy before, and of the retransmission */
};
#define BLIND_TIMEOUTS 8 /* the first ones */

/* A copy of a request that was retransmitted since. */
struct copy {
    uint32_t psn;
    ns_t ts; /* when it was sent */
};
#define COPIES 128 /* the latest ones */

/* CNPs to a queue pair: of the latest series, and since when they may have slowed it down. */
struct cnps {
    uint32_t frame, n; /* of the series: its first one; how many, 0: there is none */
    ns_t first, last;  /* times of the first and of the latest of the series */
    ns_t since;        /* time of the first of those that follow each other within CNP_LASTS */
};

struct direction {
    struct spans spans; /* first: direction_reset() leaves it as it is */
    /* Of the first request, and of the latest while there are pauses: its class, if it has a VLAN tag, and its DSCP. */
    bool classed, tagged;
    uint8_t pcp, dscp;
    struct pending_nak nak, rnr;
    /* A READ or atomic whose response was skipped. */
    struct {
        bool open;
        bool ignored;   /* the requester went back on a NAK just before: it does not go back a second time */
        uint32_t frame; /* of the response that came instead */
        ns_t ts;
    } stuck;
    /* A skipped response arrived after all, reordered: the requester may have dropped the responses that overtook it.
     */
    struct {
        uint32_t psn, behind; /* first PSN of the dropped responses, and the PSN after the last one; equal: none */
        uint32_t frame;       /* the first of them */
        ns_t ts;
    } overtaken[OVERTAKEN];
    unsigned n_overtaken; /* since the last go-back-N; the latest is at (n_overtaken - 1) % OVERTAKEN */
    /* The latest gap in the requests. */
    struct {
        uint32_t psn, frame; /* first PSN of the gap; frame that came instead, 0: none */
        ns_t ts;
    } gap;
    /* Requests that came damaged, one after another behind the latest good one: what is outstanding besides. */
    struct {
        bool on;
        uint32_t psn, end; /* of the first one; behind the last one */
        uint32_t frame;    /* of the latest copy of the first one */
    } damaged;
    /* A retransmission under way. */
    struct {
        bool requests;  /* requests are being retransmitted, until the request before `psn` was */
        bool responses; /* responses are being repeated, until the one before `rsp` was */
        bool back;      /* the latest response has an earlier PSN than the one before: late, or repeated */
        bool answered;  /* since then a READ or atomic response was accepted, or responses are repeated */
        uint32_t psn, rsp;
        uint32_t ep;
    } resend;
    /* CNPs to the requester. */
    struct {
        struct cnps got;
        uint32_t ep; /* episode of the series */
        /* time of the first that went to some queue pair of the requester's host, before its QPN was known; 0: none */
        ns_t guessed;
    } cnp;
    /* The spacing of packets after CNPs, learnt within messages, where packets wait for nothing but the pacer. */
    struct {
        uint32_t len;      /* bytes of a request; 0: not known */
        ns_t gap;          /* behind it; 0: as usual */
        ns_t shown_ts;     /* when the packet before the gap last learnt from was sent */
        uint32_t released; /* wide gaps in a row that ended with a response */
        uint32_t answers;  /* responses that acknowledged more since the latest new request */
        ns_t answered;     /* time of the first of them */
        bool first;        /* no response had come when the latest new request was sent */
        uint32_t proved;   /* PSN up to which they did */
        uint32_t freed;    /* PSNs that the latest of them acknowledged */
        unsigned n_open;
        struct open_gap open[OPEN_GAPS]; /* gaps before messages since the latest CNP, not yet decided */
    } cut;
    struct held depth, credit;
    struct copy copies[COPIES];
    uint32_t n_copies; /* so far; the latest is at (n_copies - 1) % COPIES */
    /* The queue pair was reset and starts again at its first PSN, without CM in the capture. */
    struct {
        bool on;            /* until its PSNs pass those sent before the reset */
        bool unsure;        /* no MSN has confirmed it yet */
        ns_t from, to;      /* the pause before */
        uint32_t msgs;      /* messages begun since */
        uint32_t next, una; /* PSN behind the last request, and behind the last one that was acknowledged */
    } again;
    bool have_first;   /* first */
    uint32_t first;    /* PSN of the first request */
    uint32_t progress; /* responses that acknowledged more than the ones before */
    uint32_t backs;    /* times that it went back, but for RNR NAKs that it obeyed, since a response that it accepted */
    bool by_nak;       /* it went back last for a NAK, explicit or implied; no response was accepted since */
    uint32_t reads_from;  /* req_dir.reads_at when the queue pair was reset */
    bool have_limit;      /* limit */
    bool have_msn;        /* msn_ahead */
    bool dead;            /* many retries had no response */
    uint32_t limit;       /* number of the last message that the credits permit, 24 bits */
    uint32_t window;      /* with have_limit: the most messages that the requester has had outstanding */
    uint8_t window_times; /* how often that many outstanding messages held back the next one; at most WINDOW_SURE */
    ns_t freed;           /* since when fewer than `window` are outstanding; 0: `window` are */
    struct unsure unsure[UNSURE_WAITS];
    uint32_t n_unsure;  /* so far; the latest is at (n_unsure - 1) % UNSURE_WAITS */
    uint32_t msn_ahead; /* MSN minus the number of messages seen */
    /* The one packet of a SEND that may be sent without a credit. */
    struct {
        bool on;      /* neither acknowledged nor permitted by credits yet */
        uint32_t psn; /* behind it */
        uint32_t msg; /* number of its message, as in limit */
    } probe;
    uint32_t row;        /* episode of the latest trouble, until a response shows progress beyond its PSN */
    uint32_t refused;    /* episode of the NAK that put the queue pair into the error state */
    uint32_t pause_ep;   /* episode of the latest pause */
    ns_t pause_since;    /* of that pause */
    bool waits;          /* the latest packet is a request */
    bool between;        /* the latest request ends a message */
    bool have_taken;     /* taken */
    uint32_t taken;      /* PSN up to which responses that the requester did not drop prove delivery */
    bool have_rsp;       /* rsp_next, rsp_high: a READ or atomic was seen */
    uint32_t rsp_next;   /* PSN of the next response to a READ or atomic that the requester accepts */
    uint32_t rsp_high;   /* PSN behind the highest one */
    uint32_t rsp_latest; /* PSN of the latest one */
    struct blind_timeout blind[BLIND_TIMEOUTS];
    unsigned n_blind;
    bool unheard;     /* timeline_unheard() */
    uint32_t tail;    /* ACK timeouts since the latest response */
    ns_t wait;        /* silence before the latest of them */
    uint32_t stop_ep; /* episode of the latest stop, if nothing explained it */
    ns_t stopped;     /* the latest silence within a message that may have been an ACK timeout; 0: none */
    ns_t expired;     /* time of the retransmission that the first of them brought about */
    ns_t last_rsp;    /* time of the latest response; 0: none */
    ns_t usual;       /* usual time from a request to the response that follows it; 0: not known, else at least 1 */
    ns_t spread;      /* usual difference of that time from `usual` */
    ns_t usual_rtt;   /* usual time from a request to the response to it; 0: not known */
    ns_t least;       /* as in req_dir: rtt, */
    ns_t least_first; /* rtt_first */
    ns_t by_rep;      /* time from the requester's REQ to the REP; 0: not known, or the other side sent the REQ */
    struct early_response early[SLOW_AFTER];
    unsigned n_early;
    struct early_response early_gap; /* meanwhile, the longest time between two packets of responses */
    ns_t early_rtt;     /* least_first at the last attempt to decide which of them were slow; 0: none yet */
    bool early_decided; /* decided which of them were slow */
    uint16_t waited;    /* how many responses without trouble went into `usual` */
    /* usual time from a request of any queue pair of the host to a new one of this, for PACE_BYTES; 0: not known */
    ns_t pace;
    uint8_t paces;     /* how many gaps went into `pace`; at most PACE_EARLY */
    struct port *host; /* of the requester; NULL: not known yet */
    struct port *peer; /* likewise, of the responder */
    ns_t last_answer;  /* time of the latest response */
    ns_t answered;     /* time of the latest response that its queue pair sent, to a request of the other side */
    ns_t answering;    /* of the first of those that follow each other within PAUSE_REACTION */
    /* Times from the last response, when nothing was outstanding, to the next request: how long such a rest is. */
    struct {
        ns_t latest; /* not one of the others yet; 0: none */
        ns_t longest,
            before; /* of the latest rests, fewer than RESTS; of the RESTS before them, 0: there are not so many */
        uint8_t n;  /* how many are in `longest` */
    } rest;
    bool joins; /* the responder acknowledges requests with AckReq together with a later READ or atomic */
    bool full;  /* the maximum of READs and atomics was outstanding when the latest response came */
    /* READs and atomics that follow such a response not at once, but always after the same time, as at a tap far from
     * the requester: when the latest such response came (0: none), that time, how often in a row, and these times until
     * they are enough */
    struct {
        ns_t over, loop;
        uint32_t times;
        bool near; /* one followed at once: the tap is not far */
        struct {
            ns_t from, to;
        } kept[FAR_TIMES];
    } far;
    uint32_t most; /* PSNs sent and not acknowledged, at most */
    /* Messages that the requester keeps outstanding, at most: one begins as soon as a response makes room for it. */
    struct {
        uint32_t messages;
        uint32_t times; /* how often one began so; KEEPS_SURE: it is a limit */
    } keeps;
    ns_t last_request; /* time of the latest request */
    ns_t patient;      /* the longest time that it waited for a response and did not go back: its ACK timer is longer */
    ns_t last_new;     /* time of the latest new one */
    uint32_t last_len; /* its bytes; PACE_BYTES at most */
};

/* When a flow was seen last. */
struct flow_times {
    bool any;
    ns_t last;
    ns_t closed, closed_last; /* times of the first and of the latest DREQ of its sender; 0: none */
};

/* A host, as the source of packets that belong to no connection: connection management, and what is no RDMA. */
struct host_seen {
    struct conn_addr addr;
    uint32_t tap;
    ns_t last;
    bool any;
};
#define HOSTS_SEEN 4096 /* further ones take the place of others */

/* The CNPs to a queue pair whose requests are not known yet, however many. */
struct early_cnp {
    uint32_t tap, qpn;
    struct conn_addr src, dst;
    struct cnps got; /* none: the place is free */
};
#define EARLY_CNPS   1024       /* queue pairs; further ones take the place of others */
#define GUESSES_MOST (1u << 24) /* more flows are not looked at: CNPs between hosts with many would take long */
#define EARLY_NEAR   8          /* each in one of so many places */

/* A request or response: queue pairs of a host send in turn. */
struct turn {
    uint32_t len;    /* its bytes */
    bool answer;     /* a response */
    ns_t ts, before; /* its time, and that of the packet before of the same queue pair */
};
#define TURNS 256 /* the latest ones */

/* The first request of a host and class that passed (`at`) after the latest frame of a pause, when that pause may
 * already have ended. `since`: when the pause began. */
struct pause_passed {
    ns_t since, at;
};
#define PAUSES_OVER 2 /* of a host and class that are kept: the latest ones, as of two stations */

/* What a host sends, as a tap sees it: all its queue pairs together. */
struct port {
    struct conn_addr addr;
    uint32_t tap;
    uint32_t len;      /* of the latest request: bytes, */
    ns_t ts;           /* and time; 0: none yet */
    ns_t pace;         /* direction.pace of it; 0: not known */
    ns_t least;        /* the shortest time from any request to the next one, for PACE_BYTES; 0: not known */
    ns_t loop;         /* the shortest time from a packet that it had to wait for to the request that it sent then */
    ns_t still, awake; /* the latest time in which it sent no request for STOP_LEAST or longer */
    struct turn turns[TURNS];
    uint32_t n_turns;                                       /* so far; the latest is at (n_turns - 1) % TURNS */
    struct arrivals in;                                     /* requests to it */
    struct pause_passed passed[PAUSE_CLASSES][PAUSES_OVER]; /* by class, of the usual map of DSCPs or of the VLAN tag */
};
#define PORTS_MOST 65536 /* all further ones count as one */

/* A pause that a station asked for. */
struct paused {
    uint32_t tap, frame; /* frame: first one of the pause */
    uint8_t mac[6];
    ns_t since, until; /* until: at most, from the latest pause frame */
    ns_t asked;        /* the latest pause frame */
    ns_t sure;         /* until then, from the latest pause frame, it holds at any rate of the link */
    uint8_t classes;   /* that it pauses, a mask */
    uint64_t passed;   /* DSCPs of requests that passed meanwhile, a mask */
};
#define PAUSES         256              /* the latest ones */
#define PAUSE_REACTION (20 * NS_PER_US) /* a sender resumes within this time after a pause */

#define RESTS         8  /* so many rests tell how long they usually are */
#define REST_OUTLASTS 4  /* a rest so many times as long as the longest of those before is not the requester's own */
#define REST_LITTLE   32 /* a pause takes almost all of a rest if no more than such a part of it is left, */
#define REST_LEAST    NS_PER_MS /* and it lasts so long: shorter ones begin and end with a rest by chance */

/* Nothing of a direction passed. */
struct silence {
    uint32_t flow;
    ns_t from, to;
    ns_t usual; /* the longest usual rest before it; 0: not known */
};
#define SILENCES    16384           /* the latest ones */
#define PAUSE_LEAST (2 * NS_PER_US) /* shorter ones are not explained by pauses, and not kept */

#define STOP_LEAST NS_PER_MS /* a shorter silence within a message is none that is looked at */

#define LAST_FILES 64 /* further files share places */

#define TICK_TAPS 1024 /* interfaces whose time stamps are examined; further ones are not */

#define SLOW_TIMES  4                 /* a response is slow that takes so many times the usual time, */
#define SLOW_SPREAD 16                /* so many times the usual spread more than the usual time, */
#define SLOW_LEAST  (200 * NS_PER_US) /* at least this, */
#define SLOW_TICKS  16                /* and so many times the resolution of the time stamps */

/* By quotients: the times of damaged captures are of any length, and so would products be. */
static inline bool timeline_is_long(ns_t took, ns_t usual)
{
    return usual && took > SLOW_LEAST && (took - 1) / SLOW_TIMES >= usual;
}
static inline bool timeline_is_slow(ns_t took, ns_t usual, ns_t spread)
{
    return timeline_is_long(took, usual) && (took - usual - 1) / SLOW_SPREAD >= spread;
}

/* A request with a wrong ICRC that came before the first good one of its flow. */
struct early_damaged {
    struct conn_addr src, dst;
    uint32_t tap, dqpn, psn, frame;
    ns_t ts;
    bool on;
};
#define EARLY_DAMAGED 16 /* the latest ones */

struct timeline {
    struct observer *observer;
    struct early_damaged damaged[EARLY_DAMAGED];
    uint32_t n_damaged;      /* so far; the latest is at (n_damaged - 1) % EARLY_DAMAGED */
    struct direction **dirs; /* observer_flows() */
    struct flow_times *seen; /* likewise */
    struct episode *episodes;
    uint32_t n, cap;
    struct timeline_row *rows;
    size_t n_rows, rows_cap;
    struct host_seen hosts[HOSTS_SEEN];
    struct port **ports; /* hash table with room for ports_cap, n_ports of them; NULL: free */
    uint32_t n_ports, ports_cap;
    struct port spare; /* of all hosts for which there is no memory */
    struct early_cnp cnps[EARLY_CNPS];
    bool have_cnps;       /* any of them */
    bool gathers, peers;  /* as in struct timeline_use */
    uint32_t cnp_guesses; /* flows looked at for them, GUESSES_MOST at most */
    struct paused pauses[PAUSES];
    uint64_t unpaused[PAUSE_CLASSES]; /* by class: DSCPs of which requests passed while it was paused, a mask */
    uint64_t dscps;                   /* of requests without a VLAN tag, a mask */
    uint32_t n_pauses;                /* so far; the latest is at (n_pauses - 1) % PAUSES */
    struct silence *silences;         /* NULL: there is one tap only */
    uint32_t n_silences;              /* so far, likewise */
    ns_t last[LAST_FILES];            /* time of the latest packet, by file: each has a clock of its own */
    /* resolution of the time stamps, of all taps the finest: a power of 10 ns, 1 s at most. The first ones of each tap
     * tell it, which all see that share out a capture. */
    ns_t tick;
    struct ts_step ticks[TICK_TAPS];
    bool ended;
};

/* Time of the latest packet of the file of `tap`. */
static inline ns_t *timeline_last(struct timeline *t, uint32_t tap)
{
    return &t->last[(tap >> 16) % LAST_FILES];
}

/* timeline.c. An episode begins; NO_EPISODE if there is no room. What episode_at() returned before is not valid any
 * more. */
uint32_t episode_new(struct timeline *t, uint32_t flow, enum trouble why, uint32_t psn, ns_t now);
struct episode *episode_at(struct timeline *t, uint32_t n);
/* Forget what is known of the queue pair but its spans. */
void direction_reset(struct direction *d);
/* Bill the time between `from` and `to` to `ep` in state `state`, but only time that so far has a state of the set
 * `over` (1 << state). */
void timeline_claim(struct timeline *t, struct direction *d, ns_t from, ns_t to, uint32_t over, enum time_state state,
                    uint32_t ep);
/* The tap sees responses, as it turns out: the silences before were ACK timeouts. */
void timeline_sees_responses(struct timeline *t, struct direction *d, uint32_t flow);
/* Bill the time up to `to` to `ep`; with NO_EPISODE it becomes not_known. */
void timeline_bill(struct timeline *t, struct direction *d, ns_t to, enum time_state state, uint32_t ep);
/* Account for the time up to `now` that has no cause of its own: it is idle, transfer or response, or, during a
 * retransmission, billed to that one. */
void timeline_pass(struct timeline *t, struct direction *d, const struct req_dir *h, ns_t now, bool response);
/* READs and atomics that the requester waits for. */
uint32_t timeline_reads(const struct direction *d, const struct req_dir *h);
/* Whether requests are outstanding, as far as the tap has seen. */
bool timeline_outstanding(const struct direction *d, const struct req_dir *h);
/* Whether a silence is so long that the ACK timer of the requests in `f` may have run out. */
bool timeline_is_silence(const struct flow *f, const struct direction *d, ns_t silence);

/* Whether a retransmission is under way. */
static inline bool is_resending(const struct direction *d)
{
    return d->resend.requests || d->resend.responses;
}

/* timeline_naks.c. Acknowledge packet `e`: nothing unless it is a NAK. */
void timeline_nak(struct timeline *t, struct direction *d, const struct event *e, ns_t now);

/* timeline_tries.c. Episode `ep` is about the packet of the episode before: it is one row of trouble. */
void timeline_chain(struct timeline *t, struct direction *d, uint32_t ep);
/* Request `e`, with which the requester goes back: why, and what the time before it was lost to. */
void timeline_back(struct timeline *t, struct direction *d, const struct event *e, ns_t now);
/* A packet with a wrong ICRC came: if it is the next request of its flow, it is outstanding from now on. */
void timeline_damaged(struct timeline *t, const struct event *e);
/* Those that came before the first good request of `flow`, of which direction `d` is new: when the first of them came;
 * `now`: there are none. */
ns_t timeline_early_damaged(struct timeline *t, struct direction *d, uint32_t flow, ns_t now);
/* Request `e` comes behind damaged ones: if it is the first of them again after an ACK timeout, that becomes
 * ack_timeout. */
void timeline_came_damaged(struct timeline *t, struct direction *d, const struct event *e, ns_t now);
/* Whether request `e` ends an RNR wait although its requester does not go back with it: it was retransmitting already
 * when the RNR NAK came, and goes on with the packet that the NAK is for. */
bool timeline_ends_rnr(const struct timeline *t, const struct direction *d, const struct event *e, ns_t now);
/* A response shows that the responder has received what an RNR NAK is for, by an earlier or later copy: the wait ends.
 */
void timeline_rnr_over(struct timeline *t, struct direction *d, ns_t now);
/* Likewise for the retransmission of a NAKed request whose first copy the tap has not seen. */
void timeline_late(struct timeline *t, struct direction *d, const struct event *e, ns_t now);

/* timeline_reads.c. Whether response `e` skips one to a READ or atomic: its requester drops it. */
bool timeline_skips(const struct direction *d, const struct event *e);
/* Response `e` answers a request after SENDs and WRITEs: those have no response that the requester could miss, so
 * advance rsp_next over them. */
void timeline_pass_others(struct direction *d, const struct event *e);
/* The first response that skips one to a READ or atomic. */
void timeline_note_skip(struct direction *d, const struct event *e, ns_t now);
/* A response to a READ or atomic. */
void timeline_note_read_response(struct direction *d, const struct event *e);

/* timeline_waits.c. The time up to a request of `flow` that is no retransmission. */
void timeline_pass_request(struct timeline *t, struct direction *d, uint32_t flow, const struct req_dir *h, ns_t now);
/* The time up to request `e`, with which the requester does not go back, and what it waited for. */
void timeline_request(struct timeline *t, struct direction *d, const struct event *e, ns_t now);
/* Response `e`, the first packet of the direction since `from`: decide whether the requester waited for it (READ depth,
 * credits). */
void timeline_response(struct timeline *t, struct direction *d, const struct event *e, ns_t from, ns_t now);
/* A request came `took` after a packet without which its requester would not have sent it. */
void timeline_note_loop(const struct direction *d, ns_t took);
/* Whether a request counts towards the depth: a READ or atomic. */
bool timeline_uses_depth(const struct pkt *p);
/* The messages behind `una` that were begun; 0: not known. */
uint32_t timeline_messages(struct req_dir *h, uint32_t una);
/* timeline_stops.c. What is known of a silence before a new request `e` that goes on with a message, before that one
 * counts as the latest of its host. */
struct stop {
    bool on, others; /* it is a stop; as in struct episode */
    ns_t from;
};
struct stop timeline_stop(const struct direction *d, const struct event *e, ns_t now);
/* What that silence was lost to, unless what the requester waited for explains it. */
void timeline_claim_stop(struct timeline *t, struct direction *d, const struct event *e, const struct stop *s,
                         ns_t now);
/* timeline_slow.c. The time up to response `e`: a response may be slow. */
void timeline_pass_response(struct timeline *t, struct direction *d, const struct event *e, ns_t now);

/* timeline_pace.c. A CNP. */
void timeline_cnp(struct timeline *t, const struct event *e);
/* The first response `e` of a direction names the requester's QPN: assign the CNPs seen earlier to it. */
void timeline_early_cnps(struct timeline *t, struct direction *d, const struct event *e);
/* Response `e`, after CNPs: it may have let the requester go on. */
void timeline_note_answer(struct direction *d, const struct event *e);
/* A new request `e`, the first packet of the direction since `from`: learn how fast requests follow each other. `held`:
 * it waited for a credit. */
void timeline_pace(struct timeline *t, struct direction *d, const struct event *e, ns_t from, ns_t now, bool held);
/* When a queue pair that may send from `since` on, not before its latest request, has its turn: first each other one of
 * the host that sent later sends a frame. A response that the queue pair sends takes its turn. */
ns_t timeline_its_turn(const struct direction *d, ns_t since);
/* Whether a new request at `now` came later after the host's latest requests than usual; `slack`: by at least so much,
 * while the time that a frame takes is not known. */
bool timeline_is_stalled(const struct direction *d, ns_t now, ns_t slack);
/* Whether a new request at `now` was sent in its turn: requests of others of the host, each of which had one since the
 * latest request, filled the time. */
bool timeline_awaits_turn(const struct direction *d, ns_t now);
/* Whether the latest request, sent at `now`, had its turn then, if its queue pair could send from `since` on: requests
 * of others, each the first one since the request of the queue pair before, filled the time. */
bool timeline_had_turn(const struct direction *d, ns_t since, ns_t now);
/* A response `e` takes a turn of the responder's host. */
void timeline_answer_turn(struct timeline *t, struct direction *d, const struct event *e, ns_t now);
/* A request `e` that is not new. */
void timeline_turn(struct timeline *t, struct direction *d, const struct event *e, ns_t now);
/* Time that a frame of `len` bytes of the requester's host takes; 0: not known. */
ns_t timeline_frame_takes(const struct direction *d, uint32_t len);
/* When the latest packet of the direction was over: a request occupies the port of its requester for a time. */
ns_t timeline_latest_over(const struct direction *d);

/* timeline_pauses.c */
/* A packet that may be a pause frame. */
void timeline_pause(struct timeline *t, const struct pkt *p);
/* Nothing was outstanding for so long before a request. */
void timeline_note_rest(struct direction *d, ns_t rest);
/* The longest time that nothing is outstanding before a request; 0: not known. */
ns_t timeline_rest(const struct direction *d);
/* What pause frames explain of the time between `from` and `now`, in which nothing of the direction passed. */
void timeline_paused(struct timeline *t, struct direction *d, uint32_t flow, ns_t from, ns_t now);
/* Request `p` passes: note its class, before timeline_paused(). */
void timeline_note_class(struct timeline *t, struct direction *d, const struct pkt *p);

/* timeline_ports.c. The port of a host; there always is one. */
struct port *timeline_port(struct timeline *t, const struct conn_addr *a, uint32_t tap);
/* The turn that was taken `i` turns ago, from 1; NULL: it is not kept. */
static inline const struct turn *port_turn(const struct port *p, uint32_t i)
{
    return i <= TURNS && i <= p->n_turns ? &p->turns[(p->n_turns - i) % TURNS] : NULL;
}
void timeline_ports_free(struct timeline *t);

/* timeline_end.c. The place of a host in timeline.hosts. */
uint32_t timeline_host(const struct conn_addr *a, uint32_t tap);
/* A packet of no connection: its host is alive; a DREQ ends a connection. */
void timeline_other(struct timeline *t, const struct pkt *p);
/* The last retries had no response: time lost to them since the latest response becomes peer_dead. */
void timeline_peer_failed(struct timeline *t, struct direction *d, const struct req_dir *h);
/* The time from the latest packet of a direction to the end of the capture. */
void timeline_finish(struct timeline *t, uint32_t flow);

/* timeline_tries.c. Whether request `e` shows that the queue pair was reset and starts again at its first PSN, without
 * connection management. */
bool timeline_begins_again(const struct timeline *t, const struct direction *d, const struct event *e, ns_t now);
/* The queue pair was reset: the time before `e` was idle. */
void timeline_again(struct direction *d, const struct event *e, ns_t now);
/* Every request and response: keep what timeline_begins_again() needs, and find out whether a reset was assumed
 * wrongly. */
void timeline_note_request(struct direction *d, const struct event *e);
void timeline_note_response(struct timeline *t, struct direction *d, const struct event *e);

#endif
