/* layer 3 (sim): what the files of the truth share. */
#ifndef RDMATRACE_GEN_SIM_TRUTH_IMPL_H
#define RDMATRACE_GEN_SIM_TRUTH_IMPL_H

#include "gen/sim/truth.h"
#include "psn.h"
#include "src/account/account.h"
#include "src/conn/addr.h"

/* A frame that a host sent. Ends of connections are 0 and 1, those of struct sim_conn. */
struct truth_frame {
    ns_t sent, arrived;           /* virtual time; arrived: undamaged at the other host; NS_NEVER: never */
    uint32_t conn;                /* number; 0: none */
    uint32_t psn, span;           /* span: PSNs of a request */
    uint32_t len;                 /* bytes, without preamble and frame check sequence */
    uint16_t class;               /* one of PC_* */
    uint16_t cm;                  /* attribute of a CM message */
    uint16_t ip_id;               /* with has_ip_id */
    uint8_t opcode;               /* BTH */
    uint8_t from;                 /* end that sent it; without a connection the host */
    uint16_t host;                /* host that sent it */
    uint8_t priority;             /* class of its queues, 0 to 7 */
    uint8_t outcomes;             /* bits: 1 << enum net_outcome */
    uint8_t node;                 /* enum net_kind of the node that caused it */
    bool before;                  /* that node is between the sender and the middle */
    bool on_link;                 /* fabric: it was lost on the link behind port `at`, else in its queue */
    const struct fabric_port *at; /* fabric: where it was lost; NULL: it was not */
    bool request, repeat, has_ip_id;
};

/* Events at the requester of a flow. */
enum truth_what {
    AT_SENT,    /* a request leaves */
    AT_ARRIVED, /* a response arrives, damaged or not */
    AT_CM,      /* a CM message is sent or arrives */
    AT_POSTED,  /* a work request is posted */
    AT_EFFECT,  /* a response or a timer has effects */
    AT_WAITS,   /* it sends no more: `why`; EP_WAIT_CUT: `other`: when it could send without CNPs */
    AT_SLOW,    /* the responder is slow: no response until `other` */
    AT_FAILED,  /* it enters the error state: `why` */
};
struct truth_event {
    ns_t at;
    ns_t other;             /* AT_WAITS, AT_SLOW */
    uint64_t frame;         /* its serial; 0: none */
    uint32_t flags;         /* AT_EFFECT: EFF_* */
    uint32_t una, next;     /* requester: oldest unacknowledged PSN, next new PSN */
    uint32_t head, message; /* messages complete; AT_SENT: number of the message */
    uint8_t what;           /* enum truth_what */
    uint8_t why;            /* AT_EFFECT: enum eff_reason; AT_WAITS: enum ep_wait; AT_FAILED: enum wc_status */
    uint8_t left;           /* retries left */
    bool busy;              /* work requests are outstanding */
    bool going;             /* during go-back-N */
    bool full, spent;       /* a READ or atomic, a SEND would have to wait: for the depth, for credits */
};

/* One direction of a connection: its requester is at one end. */
struct truth_flow {
    struct truth_event *ev;
    size_t n, cap;
    uint32_t posted;   /* work requests */
    uint8_t waits;     /* enum ep_wait noted last */
    uint64_t requests; /* packets sent */
    ns_t first, last;  /* frames of the connection at the end; NS_NEVER: none */
    ns_t received;     /* last undamaged frame of the connection that arrived there; NS_NEVER: none */
    ns_t shortest;     /* transit time of a frame of the end; NS_NEVER: none arrived */
    uint64_t newest;   /* fabric: of the frames that arrived there, but CNPs, the serial of that sent last */
    /* When all is over (truth_join_pairs): the directions between the same hosts, of t->pair, and the last undamaged
     * frame that arrived at the host of the end in any of them; NS_NEVER: none. */
    size_t pair_first, pair_end;
    ns_t heard;
};

/* A direction, and the hosts between which it runs. */
struct truth_pair {
    uint64_t hosts; /* that of the requester << 32, and that of its peer */
    size_t flow;    /* of t->flows */
};

/* A span of time in one state. */
struct truth_span {
    ns_t from, to;
    uint8_t state;     /* enum time_state */
    uint32_t incident; /* number; 0: none */
};
struct truth_spans {
    struct truth_span *s;
    size_t n, cap;
};

struct truth_incident {
    uint8_t cause;   /* enum cause */
    uint8_t host;    /* end of the requester that lost the time */
    bool ended;      /* it gets no further time */
    uint32_t conn;   /* number */
    uint16_t paused; /* CAUSE_PAUSE, fabric: host whose port, or whose switch's port, was paused */
    uint32_t psn;    /* oldest unacknowledged PSN */
    uint64_t frame;  /* serial of the frame that was lost; 0: none */
    ns_t start, end; /* of the time on its bill; NS_NEVER: none yet */
    ns_t bill;
    unsigned timeouts; /* ACK timeouts that expired */
};
struct truth_timer {
    uint32_t conn, psn;
    ns_t at;
    uint8_t host, try; /* try: how many of this kind expired without progress, from 1 */
    bool rnr;          /* RNR timer, else ACK timeout */
};
/* A pause of a host's port, or of its switch's port to it. */
struct truth_pause {
    ns_t from, to;
    uint16_t host;
    uint8_t classes; /* a mask */
};
/* A queue pair changed to its alternate path. */
struct truth_migration {
    ns_t at;
    uint32_t conn;
    uint8_t host, why; /* why: enum ep_migration */
};
struct truth_request {
    uint32_t conn, number; /* number: from 0 */
    uint8_t host;
    ns_t start, end;
};

struct truth_host {
    struct truth *t;
    unsigned host;
    struct ep_watch watch;
    struct conn_addr addr; /* as frames have it */
    ns_t last;             /* of its last frame of any connection, when all is over */
};

struct truth {
    struct sim *s;
    struct net_watch net;
    struct fabric_watch fabric;
    struct truth_host *hosts;
    struct truth_frame *frames; /* by serial - 1 */
    size_t n_frames, cap_frames;
    struct truth_flow *flows; /* by (connection - 1) * NET_HOSTS + end of the requester */
    size_t n_flows, cap_flows;
    struct truth_pair *pair;          /* of all directions, those between the same hosts together */
    struct truth_incident *incidents; /* by number - 1 */
    size_t n_incidents, cap_incidents;
    struct truth_timer *timers;
    size_t n_timers, cap_timers;
    struct truth_pause *pauses; /* by time */
    size_t n_pauses, cap_pauses;
    struct truth_migration *migrations; /* by time */
    size_t n_migrations, cap_migrations;
    bool failed; /* no memory */
};

/* Make room for one more element in an array with `n` of `cap` elements. */
bool truth_grow(struct truth *t, void *array, size_t *cap, size_t n, size_t size);
/* Frame `serial`, from 1. */
static inline struct truth_frame *truth_frame(const struct truth *t, uint64_t serial)
{
    return &t->frames[serial - 1];
}

/* The host at an end of a connection. */
static inline unsigned truth_host_of(const struct truth *t, unsigned conn, unsigned end)
{
    return t->s->conn[conn - 1]->host[end];
}
/* The queue pair there. */
static inline const struct qp *truth_qp(const struct truth *t, unsigned conn, unsigned end)
{
    return ep_qp(t->s->ep[truth_host_of(t, conn, end)], t->s->conn[conn - 1]->qp[end]);
}
/* Find the directions that run between the same hosts. */
void truth_join_pairs(struct truth *t);

/* A frame at a host. */
struct truth_seen {
    const uint8_t *data;
    uint32_t len;
    uint64_t serial;
    uint16_t host; /* that sent it */
    bool learn;    /* its addresses are the first ones of the hosts */
};
/* A host sends it; it arrives at the other one. */
void truth_sent(struct truth *t, const struct truth_seen *seen, ns_t now);
void truth_arrived(struct truth *t, const struct truth_seen *seen, struct truth_frame *f, ns_t now);
/* truth_fabric.c: observe a fabric. */
void truth_fabric_watch(struct truth *t);

/* Work requests and their results. */
struct truth_requests {
    struct truth_request *r;
    size_t n, cap;
    ns_t undecided[TIME_STATES]; /* ns, see truth_undecided_pass() */
};

/* truth_walk.c: the spans of a direction, which may overlap, and its work requests; adds incidents and timers to
 * `t`. */
void truth_walk(struct truth *t, unsigned conn, unsigned host, struct truth_spans *out, struct truth_requests *done);
/* The requester has gone back; the retransmission is not sent yet. */
struct truth_back {
    bool on;
    uint8_t why;       /* enum eff_reason */
    ns_t at, latest;   /* when, and the packet of the direction before */
    ns_t since;        /* implied NAK: when the first response came that skipped the missing one; else as `at` */
    ns_t lost;         /* sequence NAK: when the missing frame was sent */
    uint32_t incident; /* number */
};
/* PSNs sent before are retransmitted. */
struct truth_resend {
    bool on;
    bool responses; /* READ: until response `until` arrives */
    ns_t from;
    uint64_t request; /* serial of the first one */
    uint32_t until;
    uint32_t incident;
};

struct truth_walk {
    struct truth *t;
    const struct truth_flow *f;
    struct truth_spans *out;
    struct truth_requests *done;
    unsigned conn, host; /* host: the end of the requester */
    ns_t rtt;            /* shortest round trip of the connection */
    ns_t at;             /* time of the event before */
    ns_t latest;         /* time of the packet of the direction before; NS_NEVER: none */
    ns_t posted;         /* time of the latest work request */
    bool busy;           /* after the event before */
    bool dead;           /* the queue pair has failed */
    ns_t busy_since;
    uint64_t response; /* serial of the latest response */
    uint64_t sent;     /* serial of the latest request; 0: none */
    bool any_response;
    uint32_t newest; /* with any_response: PSN of the newest READ response or ATOMIC ACK */
    struct truth_back back;
    struct truth_resend resend;
    ns_t nak_lost;       /* after a sequence NAK: when the packet was sent that was lost; else NS_NEVER */
    ns_t skipped;        /* when a response arrived that skipped the oldest missing one; NS_NEVER: none did */
    uint32_t incident;   /* number of the open one; 0: none */
    uint32_t previous;   /* number of the latest one but RNR; 0: none */
    unsigned tries[2];   /* timers expired without progress: ACK timeout, RNR */
    ns_t unanswered;     /* when the first ACK timeout without progress expired; NS_NEVER: none has */
    ns_t cm_from, cm_to; /* connection management, before or after the requests; NS_NEVER: none */
    bool cm_closing;
    ns_t *start; /* of work requests, a ring: first packet */
    uint32_t start_mask;
    enum ep_wait wait;                   /* why the requester sends nothing */
    ns_t wait_from;                      /* since when that is billed */
    bool wait_answered;                  /* a response has come since it began */
    uint32_t wait_bill[EP_WAIT_CUT + 1]; /* incidents of the direction; 0: none yet */
    ns_t slow_from, slow_until;          /* the responder is slow; slow_from NS_NEVER: it is not */
    size_t pause;                        /* the first pause that is not over */
    uint32_t pause_bill;                 /* incident of pause `billed`; 0: none yet */
    size_t pause_billed;
    uint32_t begun, head; /* work requests begun, and complete */
    bool reliable;
    bool full, spent; /* after the event before */
    ns_t maybe[2];    /* time with `full`, `spent` since the latest request */
    ns_t lifted[2];   /* when it ended last */
};

/* truth_walk.c */
void truth_walk_paint(struct truth_walk *w, enum time_state state, ns_t from, ns_t to, uint32_t incident);
/* Number of a new incident; 0: no memory. */
uint32_t truth_incident_new(struct truth_walk *w, enum cause cause, const struct truth_event *e, uint64_t frame);
/* truth_waits.c */
/* The requester begins to wait. A pacer's wait that ended without a request held back nothing. */
void truth_wait_begins(struct truth_walk *w, const struct truth_event *e);
/* A request is sent, or the queue pair fails. */
void truth_wait_over(struct truth_walk *w, const struct truth_event *e);
/* A response arrives: if the READ depth or credits limit the requester, a new wait begins. */
void truth_wait_goes_on(struct truth_walk *w, const struct truth_event *e);
/* Account for the time up to event `e` in which a READ or atomic would have had to wait for the depth, or a SEND for
 * credits, if one was posted. It is undecided if the next request is one and follows at once when the limit is lifted:
 * posting a work request sends no packet, so that two programs look the same on every wire. One posts early, and its
 * queue pair waits; the other keeps as many requests under way itself, and posts the next one when one completes. The
 * truth knows which it was and has the time in the state only of the first; who calls it that state of the second says
 * all that packets show. A request that comes later than at once is not excused: it shows that the limit did not hold
 * it back. */
void truth_undecided_pass(struct truth_walk *w, const struct truth_event *e);
void truth_slow_begins(struct truth_walk *w, const struct truth_event *e);
/* The first response after the responder was slow: the time by which it was delayed, since the last packet of the
 * direction. */
void truth_slow_ends(struct truth_walk *w, const struct truth_event *e, const struct truth_frame *f);
/* Paused time from `from` to event `e`; no packet of the direction was seen in between. */
void truth_take_pauses(struct truth_walk *w, const struct truth_event *e, ns_t from);

/* truth_blame.c: the cause of a retransmission, and in *frame the serial of the lost frame (0: none). CAUSE_COUNT:
 * nothing new, a consequence of an earlier loss. `e`: the event; `way`: the time that a request takes at least;
 * `response`: serial of the response that triggered it. */
enum cause truth_blame(const struct truth *t, unsigned conn, unsigned host, const struct truth_event *e, ns_t way,
                       uint64_t response, uint64_t *frame);
/* The copy of request `psn` whose absence a NAK reports that was sent at `sent`: the latest one that was not on its way
 * still. Serial; 0: none. */
uint64_t truth_nacked(const struct truth *t, unsigned conn, unsigned host, uint32_t psn, ns_t way, ns_t sent);
/* The latest request of a host before `before` with `psn`: its serial; 0: none. */
uint64_t truth_request_of(const struct truth *t, unsigned conn, unsigned host, uint32_t psn, ns_t before);
/* Whether request `request` had not arrived by `now`, or arrived out of order and was dropped by its receiver. */
bool truth_is_missing(const struct truth *t, uint64_t request, ns_t now);
/* The cause of a work request that completes with `status`. */
enum cause truth_cause_of(enum wc_status status);
/* truth_account.c */
/* Append a span, if it is not empty. */
void truth_paint(struct truth *t, struct truth_spans *out, enum time_state state, ns_t from, ns_t to,
                 uint32_t incident);
/* From overlapping spans (reordered) to a timeline from `first` to `last`, each moment in one state. */
void truth_resolve(struct truth *t, struct truth_spans *in, ns_t first, ns_t last, struct truth_spans *out);
/* Add up the time of each state between two moments. */
void truth_sum(const struct truth_spans *line, ns_t from, ns_t to, ns_t states[TIME_STATES]);

#endif
