/* layer 3 (net): a simulated network: chains of small nodes in virtual time, one chain for each direction.
 *
 *            from host 0                                                                    to host 1
 *            tap requester | before... | 1/2 delay | tap middle | events | after... | 1/2 delay | tap responder
 *
 * and likewise from host 1 to host 0. A node takes a frame and drops it, changes it, passes it on at once or holds it
 * for a time. Every node has its own random numbers: adding a node does not change what the other nodes do. A node
 * holds a bounded number of frames; more are dropped and counted.
 */
#ifndef RDMATRACE_GEN_NET_NET_H
#define RDMATRACE_GEN_NET_NET_H

#include "gen/endpoint/endpoint.h"
#include "gen/endpoint/rewrite.h"
#include "gen/net/event.h"
#include "gen/net/tap.h"
#include "tokens.h"

#define NET_HOSTS 2

/* A frame on its way. */
struct net_frame {
    struct net_frame *next;
    ns_t due;                   /* when the node that holds it releases it */
    uint64_t order;             /* order among frames due at the same time */
    uint32_t left;              /* reorder: frames that must still pass it */
    uint32_t passed;            /* reorder: frames that have passed it */
    ns_t decided;               /* with event_done: when the events were applied */
    uint32_t len;               /* bytes at data */
    uint8_t dir;                /* host that sent it: 0 or 1 */
    uint8_t path;               /* that it takes: 1, or 2 if it comes from the second port of its host */
    bool event_done;            /* the exact events were applied to it */
    uint64_t serial;            /* number of the frame sent, from 1; a copy has that of its original */
    uint32_t copy;              /* 0: the frame itself, else the number of a copy made by events */
    struct event_result result; /* with event_done: the decision */
    uint8_t data[NET_FRAME_MAX];
};

enum net_kind {
    NET_DELAY,    /* a constant delay, and a jitter that keeps the order */
    NET_RATE,     /* a rate, a queue with tail drop, ECN marks by threshold or RED */
    NET_LOSS,     /* random loss of single frames */
    NET_BURST,    /* Gilbert model: all frames are lost in the bad state */
    NET_EVERY,    /* every n-th frame is lost */
    NET_REORDER,  /* a frame is held back until other frames have passed it */
    NET_DUP,      /* a frame is sent twice */
    NET_CORRUPT,  /* a bit is flipped */
    NET_TRUNCATE, /* the end of the frame is cut off */
    NET_MTU,      /* frames that are too long are dropped */
    NET_PAUSE,    /* a port sends pause frames, and its neighbour holds frames back */
    NET_DOWN,     /* all frames are lost for a time */
    NET_TAP,      /* writes frames to capture files */
    NET_EVENTS,   /* the exact events */
};

struct net_counters {
    uint64_t in;        /* frames received */
    uint64_t out;       /* frames passed on */
    uint64_t dropped;   /* frames lost on purpose */
    uint64_t overflow;  /* dropped because the queue was full */
    uint64_t marked;    /* frames marked: ECN CE or FECN */
    uint64_t damaged;   /* corrupted or cut */
    uint64_t held;      /* held back for reordering */
    uint64_t doubled;   /* copies made */
    uint64_t rewritten; /* frames changed by exact events that neither drop, hold nor copy them */
};

/* Parameters and state of a node; the kind says which members are valid. */
struct net_node {
    uint8_t kind;   /* enum net_kind */
    uint8_t ecn;    /* NET_RATE: enum net_ecn */
    uint8_t damage; /* NET_CORRUPT: enum frame_damage */
    bool bad;       /* NET_BURST: in the bad state; NET_PAUSE: pausing */
    bool before;    /* NET_PAUSE: between the sender and the middle */
    uint8_t class;  /* NET_PAUSE: priority paused */
    uint8_t path;   /* frames of the other path pass it untouched; 0: it is on both */
    uint8_t mac[6]; /* NET_PAUSE: source of the pause frames */
    struct prng prng;
    uint32_t ppb;      /* probability per frame, in 10^-9; NET_BURST: of going bad; RED: of a mark at kmax */
    uint32_t ppb_back; /* NET_BURST: of becoming good */
    /* NET_EVERY: n; NET_REORDER: frames that pass; NET_TRUNCATE: bytes cut; NET_MTU: bytes of the longest frame */
    uint32_t n;
    uint32_t count;           /* NET_EVERY: frames since the last loss */
    ns_t delay, jitter;       /* NET_DELAY; NET_REORDER: longest time held; NET_PAUSE: of a pause */
    ns_t from, until;         /* NET_DOWN */
    uint64_t rate;            /* NET_RATE: bit/s; 0: infinite */
    uint64_t other_rate;      /* NET_RATE: bit/s in every second stretch of `delay`; 0: always `rate` */
    uint64_t limit;           /* NET_RATE: bytes of the queue */
    uint64_t kmin, kmax;      /* NET_RATE: marks begin, and reach ppb, at these lengths in bytes */
    struct frame_field field; /* NET_CORRUPT */
    struct tap_set *taps;     /* NET_TAP; NET_PAUSE: those that see the pause frames; may be NULL */
    uint64_t backlog;         /* NET_RATE: bytes held */
    /* NET_RATE: when the line is free; NET_DELAY: when the last frame leaves; NET_PAUSE: when the pause ends */
    ns_t free_at;
    struct net_frame *head, *tail; /* held, by time */
    uint32_t held, held_max;       /* held_max: frames held at most; 0: NET_HELD_MAX */
    struct net_counters stat;
};
enum net_ecn { NET_ECN_OFF, NET_ECN_THRESHOLD, NET_ECN_RED };

/* What became of a frame. */
enum net_outcome {
    NET_SENT,    /* it enters the network */
    NET_DROPPED, /* a node drops it, on purpose or because a queue is full */
    NET_DAMAGED, /* bits are changed, or its end is cut off; events may keep its ICRC right */
    NET_BEHIND,  /* it is held back until other frames have passed it */
    NET_DOUBLED, /* a copy follows it */
    NET_ARRIVED, /* it reaches the host at the other end */
};
/* An observer of the outcome of each frame. */
struct net_watch {
    /* `f`: in its present state; f->serial identifies it; `node`: the node concerned, NULL for NET_SENT and
     * NET_ARRIVED. */
    void (*outcome)(void *user, const struct net_frame *f, enum net_outcome outcome, const struct net_node *node,
                    ns_t now);
    /* Frames of host `dir` are held back from `now` until `until`: a pause frame was sent. */
    void (*paused)(void *user, unsigned dir, ns_t now, ns_t until);
    void *user;
};

#define NET_CHAIN_MAX 40    /* nodes of a direction */
#define NET_HELD_MAX  65536 /* frames that a node holds at most */

struct net {
    struct net_node chain[NET_HOSTS][NET_CHAIN_MAX];
    unsigned n[NET_HOSTS];
    unsigned middle[NET_HOSTS]; /* nodes of the chain before the middle */
    uint16_t linktype;
    uint64_t order;
    uint64_t serial; /* of the frame sent last */
    uint64_t rate;   /* bit/s of the hosts' ports, for the quanta of pauses; 0: 100 G */
    /* the second ports of the hosts; NULL: there are none */
    const struct link_addr *port2[NET_HOSTS];
    bool hosts_stop;               /* the hosts obey `stopped_until`; else frames are held in the network */
    ns_t stopped_until[NET_HOSTS]; /* a pause frame stops the port of the host until then */
    ns_t next_at;                  /* when the next held frame is due, if `next_known` */
    bool next_known;
    struct net_frame *spare;   /* unused frames */
    struct event_list *events; /* may be NULL */
    /* A frame arrives at host `to`. */
    void (*deliver)(void *user, unsigned to, const uint8_t *data, uint32_t len, ns_t now);
    /* A pause frame arrives at host `to`; it belongs to no frame of the other host. May be NULL. */
    void (*paused)(void *user, unsigned to, const uint8_t *data, uint32_t len, ns_t now);
    /* The exact events were applied to a frame, before it continues. May be NULL. */
    void (*decided)(void *user, const struct net_frame *f, ns_t now);
    void *user;
    const struct net_watch *watch; /* NULL: nobody */
    bool learns;                   /* bridge: only RDMA packets count as passing a held frame */
    const struct net_frame *frame; /* during deliver(): the frame */
    uint64_t lost_memory;          /* frames dropped for lack of memory */
};

/* The nodes of a network, collected for net_build(). */
struct net_config {
    ns_t delay;                                     /* one way */
    struct net_node node[NET_HOSTS][NET_CHAIN_MAX]; /* in the order in which they are passed */
    bool before[NET_HOSTS][NET_CHAIN_MAX];          /* between the sender and the middle tap */
    unsigned n[NET_HOSTS];
};

/* Add a node written as "loss=1%", "burst=0.001/0.3", "every=50", "delay=5us" (more delay), "jitter=2us", "rate=10G
 * queue=64K ecn=20K" or "red=5K/200K/1%" or "change=1G/50us" (one node), "reorder=1%/3", "dup=0.1%",
 * "corrupt=0.1%[/icrc|/FIELD]", "truncate=0.1%/20", "mtu=1500", "pause=1%/50us", "down=1ms[/20ms]"; `dirs`: bit 0
 * frames of host 0, bit 1 those of host 1. Words: `n` at `t`. "before" puts them before the middle tap, "path=2" into
 * the second path only.
 */
bool net_parse(struct net_config *c, const struct token *t, unsigned n, unsigned dirs, struct text_error *e);

/* Build the chains. `taps[0..2]`: requester, middle, responder, each may be NULL; `seed`: of the random numbers. 0;
 * -ENOSPC: too many nodes; -EINVAL: pauses without Ethernet. */
int net_build(struct net *net, const struct net_config *c, struct tap_set *const taps[3], struct event_list *events,
              uint16_t linktype, uint64_t seed);
/* Build a network that only applies exact events. reorder=N holds a frame for `hold` at most; each direction holds
 * `held_max` frames at most. */
void net_build_events(struct net *net, struct event_list *events, uint16_t linktype, uint64_t seed, ns_t hold,
                      uint32_t held_max);
void net_free(struct net *net);
/* Host `from` sends a frame; false if there is no memory for it, or it is longer than NET_FRAME_MAX. */
bool net_send(struct net *net, unsigned from, const uint8_t *data, uint32_t len, ns_t now);
/* When net_run() must be called next; NS_NEVER: no frame is held. */
ns_t net_next(struct net *net);
/* Pass on all frames that are due. */
void net_run(struct net *net, ns_t now);
/* At the end: pass on all frames, due or not. */
void net_end(struct net *net, ns_t now);
/* True if `node`, in the chain of host `dir`, lies between that host and the middle. */
bool net_before_middle(const struct net *net, unsigned dir, const struct net_node *node);
/* Counters of all nodes of one direction; in and out: of the first and the last. */
struct net_counters net_total(const struct net *net, unsigned dir);
/* Frames marked, damaged, held back, doubled or rewritten. */
uint64_t net_changed(const struct net_counters *c);

#endif
