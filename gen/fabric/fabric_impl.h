/* layer 3 (fabric): what the files of the fabric share: frames, queues, ports, switches. */
#ifndef RDMATRACE_GEN_FABRIC_FABRIC_IMPL_H
#define RDMATRACE_GEN_FABRIC_FABRIC_IMPL_H

#include "gen/endpoint/timers.h"
#include "gen/fabric/fabric.h"
#include "prng.h"
#include "src/cc/fair.h"

#define FCS_LEN  4  /* of Ethernet, not in the frames */
#define WIRE_GAP 20 /* preamble and gap between frames */

#define FRAME_SIZES 5 /* sizes of memory for frames */

/* A frame on its way. Each has a line of the cache of its own, all of them lie together: a switch reads nothing else of
 * most frames. */
struct fab_frame {
    _Alignas(CACHE_LINE) struct fab_frame *next;
    uint8_t *data;   /* from the Ethernet header on */
    ns_t due;        /* on a link: when it arrives */
    uint64_t hash;   /* of its flow */
    uint64_t serial; /* of those that hosts send; 0: it is a switch's own */
    uint32_t len;    /* bytes at data */
    uint16_t to;     /* host */
    uint16_t in;     /* in a queue: number of the port by which it came into the switch */
    uint8_t class;   /* 0 to 7 */
    uint8_t size;    /* which of frame_sizes */
    bool pause;      /* it is a pause frame */
};

/* Frames, those in use and spare ones. */
struct fab_frames {
    struct fab_frames *next;
    struct fab_frame frame[64];
};

struct fab_queue {
    struct fab_frame *head, *tail;
    uint64_t bytes;
    struct mp mark;     /* which packets it marks */
    int64_t deficit;    /* bytes that it may send in this round */
    ns_t stopped_from;  /* obeyed pause: from here ... */
    ns_t stopped_until; /* ... until here; 0: none */
    ns_t paused;        /* how long it was stopped before */
    ns_t storm_until;   /* watchdog: frames are dropped until then; 0: not */
    bool in_turn;       /* it got its deficit of this round */
};

/* What a port of a switch holds of a class that came in by it. */
struct fab_ingress {
    uint64_t used;     /* bytes in the reserve, and above it in the shared buffer */
    uint64_t headroom; /* bytes in the headroom */
    bool pausing;      /* the neighbour was told to pause */
    ns_t refresh;      /* when it is told again */
};

/* One end of a link. */
struct fabric_port {
    struct timer turn;   /* when it may send again what waits */
    struct timer arrive; /* when the first frame on the link arrives at the peer */
    struct fabric *f;
    struct fabric_port *peer;
    uint32_t node;   /* number in the topology */
    uint16_t number; /* of the node, from 0 */
    uint64_t rate;
    ns_t delay, reaction;
    uint32_t loss_ppb;
    ns_t storm, calm;                      /* a host pauses its switch from `storm` until `calm` */
    ns_t down, up;                         /* the link cannot be used from `down` until `up` */
    ns_t free_at;                          /* end of the frame that is being sent */
    uint64_t ahead;                        /* by how much that was rounded up: ns times `rate` */
    struct fab_frame *link, *link_end;     /* on the link */
    struct fab_frame *urgent, *urgent_end; /* pause frames that wait for the port */
    uint8_t waiting;                       /* classes whose queues have frames, a mask */
    ns_t paused_until;                     /* no pause of any class lasts longer */
    struct fab_queue q[TOPO_CLASSES];
    struct fab_ingress in[TOPO_CLASSES];
    struct fair *fair; /* congestion points of its queues, by class; NULL: none */
    struct fair_config fair_config;
    uint64_t headroom;  /* bytes reserved for each lossless class that comes in here */
    uint8_t turn_class; /* of the class whose turn it is */
    struct tap_set *taps;
    struct fabric_counters n;
};

struct fab_switch {
    struct topo_switch c;
    struct timer watch;   /* of pause frames that are to be repeated */
    ns_t tell_period;     /* of its congestion points */
    struct timer tell;    /* of fair rates, while a queue has frames or holds its flows back */
    uint64_t shared;      /* bytes of the buffer without headroom and reserves */
    uint64_t shared_used; /* of these */
    uint64_t seed;        /* of the choice of paths */
    uint32_t *route;      /* by node of the last switch: first of its ports in `hop`, and behind them the next one's */
    uint16_t *hop;        /* numbers of ports on shortest paths */
};

struct fab_node {
    char name[TOPO_NAME];
    struct fabric_port *port; /* its ports */
    uint32_t n_ports;
    uint16_t host;         /* number of the host; FAB_NO_HOST: a switch */
    struct fab_switch *sw; /* NULL: a host */
};
#define FAB_NO_HOST UINT16_MAX

struct fabric {
    struct fabric_user user;
    struct fab_node *node;
    uint32_t n_nodes;
    uint16_t *host; /* by number: its node */
    uint16_t n_hosts;
    struct fabric_port *port; /* of all nodes, by node */
    uint32_t n_ports;
    struct timers timers;
    struct timer reroute; /* when routes change next */
    struct timer storm;   /* when a host pauses its switch without a reason, or ends that */
    struct prng prng;
    struct fab_frames *frames; /* all */
    unsigned unused;           /* of the first of these, those that never had data: its first ones */
    struct fab_frame *spare[FRAME_SIZES];
    struct fab_frame *draft;          /* see fabric_draft() */
    struct fair *fair;                /* all congestion points; NULL: switches tell no fair rates */
    bool telemetry;                   /* switches write telemetry */
    uint64_t serial;                  /* of the frame that a host sent last */
    const struct fabric_watch *watch; /* NULL: nobody */
    struct buf *pauses;               /* see fabric_log_pauses(); NULL: none */
    bool by_node;                     /* see struct topology */
};

/* fabric.c */
/* A frame with a copy of `data`; NULL: no memory. */
struct fab_frame *frame_new(struct fabric *f, const uint8_t *data, uint32_t len);
void frame_free(struct fabric *f, struct fab_frame *m);
/* Free a frame that is lost, see fabric_watch. */
void frame_lost(const struct fabric_port *at, struct fab_frame *m, bool on_link, ns_t now);
/* The same for a frame that enters the network: whom it is for, its class and flow are set. */
struct fab_frame *fabric_frame(struct fabric *f, const uint8_t *data, uint32_t len);
/* Append `more` bytes, whose contents are the caller's; false: no room. */
bool frame_grow(struct fab_frame *m, uint32_t more);
/* ns that a frame of `len` bytes occupies the port, rounded up. */
ns_t port_time(const struct fabric_port *p, uint32_t len);
/* ns that so many of them in a row take at least. */
ns_t port_least(const struct fabric_port *p, uint64_t frames, uint32_t len);
/* The port puts a frame on its link, behind one that is being sent. */
void port_send(struct fabric_port *p, struct fab_frame *m, ns_t now);
/* Show a frame to the taps of the port. */
void port_show(const struct fabric_port *p, const struct fab_frame *m, bool inbound, ns_t now);
static inline bool port_is_down(const struct fabric_port *p, ns_t now)
{
    return UNLIKELY(p->down <= now) && now < p->up;
}
static inline struct fab_switch *switch_at(const struct fabric_port *p)
{
    return p->f->node[p->node].sw;
}

/* route.c */
/* Find all paths again, without the links that are down at `now`. False: no memory, and there are no paths. */
bool routes_find(struct fabric *f, ns_t now);
/* Set the timer for the next change of the links. */
void routes_watch(struct fabric *f, ns_t now);
/* The port by which the switch sends the frame on; NULL: no path leads there. */
struct fabric_port *route_of(struct fabric *f, struct fab_node *at, const struct fab_frame *m);
/* The flow of a frame, as a number: addresses, protocol and ports. */
uint64_t flow_hash(const uint8_t *data, uint32_t len);

/* switch.c */
/* A frame arrives at a switch by this port. */
void switch_take(struct fabric_port *in, struct fab_frame *m, ns_t now);
/* The port sends what it may, if it is free. */
void port_turn(struct fabric_port *p, ns_t now);
/* Drop all frames of a queue. */
void queue_flush(struct fabric_port *p, unsigned class, ns_t now);

/* Put a frame of the switch's own ahead of all that waits at the port. */
void port_urgent(struct fabric_port *p, struct fab_frame *m, ns_t now);

/* tell.c */
/* Congestion points for all queues of switches. False: no memory. */
bool tell_open(struct fabric *f);
/* A frame waits at the port: the congestion points of its switch work from now on. */
static inline void tell_wake(const struct fabric_port *p, ns_t now)
{
    struct fab_switch *s = switch_at(p);

    if (UNLIKELY(p->fair != NULL) && !s->tell.place)
        timer_set(&p->f->timers, &s->tell, now + s->tell_period);
}
/* Their period has ended. */
void tell_rates(struct fabric *f, struct fab_node *n, ns_t now);
/* The frame leaves the port: the switch writes a hop of telemetry, if the frame asks for it. */
void tell_hop(const struct fabric_port *p, struct fab_frame *m, ns_t now);

/* pfc.c */
/* Link address of a port of a switch. */
void port_mac(const struct fabric_port *p, uint8_t mac[6]);
/* Bytes of a port and class from which it pauses its neighbour. */
uint64_t pfc_xoff(const struct fab_switch *s);
/* Of the bytes that a port holds of a class, those that are taken from the shared buffer: what is above the reserve. */
uint64_t pfc_shared(const struct fab_switch *s, uint64_t used);
/* The port holds more, or less, of the class than before: pause or resume the neighbour if it is time. */
void pfc_check(struct fabric_port *in, unsigned class, ns_t now);
/* A pause frame arrives at the port. */
void pfc_take(struct fabric_port *p, const struct fab_frame *m, ns_t now);
/* Mask of the classes that the port must not send now. */
uint8_t pfc_stopped(const struct fabric_port *p, ns_t now);
/* When the first of the classes in `mask` may be sent again; NS_NEVER: none is stopped. */
ns_t pfc_resumes(const struct fabric_port *p, uint8_t mask, ns_t now);
/* Repeat the pause frames of the switch that are due, and set its timer. */
void pfc_refresh(struct fabric *f, struct fab_node *n, ns_t now);
/* How long the class was stopped until now. */
ns_t pfc_paused(const struct fab_queue *q, ns_t now);
/* Whether the watchdog keeps the class from being sent; it empties queues that were stopped too long. */
bool pfc_storm(struct fabric_port *p, unsigned class, ns_t now);
/* Hosts that pause their switches: what is due, and when that is next. Before the first frame: `now` -1. */
void pfc_host_storms(struct fabric *f, ns_t now);

#endif
