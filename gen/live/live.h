/* layer 3 (live): an endpoint on a real network: event loop around endpoint, connection manager, identity and
 * backend. */
#ifndef RDMATRACE_GEN_LIVE_LIVE_H
#define RDMATRACE_GEN_LIVE_LIVE_H

#include "buf.h"
#include "gen/cm/cm_agent.h"
#include "gen/endpoint/unreach.h"
#include "gen/live/backend.h"
#include "gen/live/clock_sync.h"
#include "gen/live/idle.h"
#include "gen/live/impair.h"
#include "gen/live/late.h"
#include "gen/live/neigh.h"
#include "gen/verbs/rdmacm.h"
#include "src/cap/write.h"

#include <poll.h>

#define LIVE_RESOLVE_WAIT (3 * NS_PER_S) /* longest search for a MAC address */
#define LIVE_LEAVE_WAIT   (2 * NS_PER_S) /* longest wait for the DREP, when a program ends */

/* A failure: one line, no newline. */
struct live_error {
    char msg[300];
};

struct live_config {
    const char *backend; /* "NAME" or "NAME:ARGS"; NULL: "packet" */
    const char *iface;   /* NULL: that of the route to `peer` */
    const char *addr;    /* own IPv4 or IPv6 address, not one of the host; NULL: the interface's */
    const char *mac;     /* own MAC address; NULL: the interface's, or derived from `addr` */
    uint8_t addresses;   /* with `addr`: how many own addresses there are, from that on; 0: one */
    /* MAC address of all peers, or of the router to them: no ARP then; NULL: not known */
    const char *peer_mac;
    const char *via;     /* address of the router to all peers; NULL: they are neighbours */
    const char *record;  /* capture file to write; NULL: none */
    uint16_t vlan;       /* VLAN id; 0: no tag */
    uint8_t pcp;         /* VLAN priority */
    const uint8_t *peer; /* GID of the peer, which selects interface and family; NULL: none, `want6` selects */
    bool want6;          /* passive: the interface's IPv6 address */
    uint16_t mtu;        /* path MTU in bytes; 0: the largest that the interface allows */
    uint8_t tclass;      /* TOS or traffic class of all packets */
    uint8_t hop_limit;   /* TTL or hop limit of all packets; 0: 64 */
    uint8_t profile;     /* enum ep_profile */
    uint8_t ack_timeout; /* local ACK timeout code; 0: the default, or that negotiated by RDMA-CM */
    uint64_t seed;       /* 0: from the clock */
    const struct backend_part *part; /* of one of several processes (gen/live/parts.h); NULL: it is alone */
    struct policies policies;
    struct ep_congestion congestion;
    const enum rule *faults; /* rules that the endpoint breaks on purpose, n_faults of them */
    unsigned n_faults;
    const struct net_config *net; /* nodes of the network for sent and received frames; NULL: none */
    struct event_list *events;    /* exact events; taken over; NULL: none */
    unsigned side;                /* number of this host for them: 0 the active side, 1 the passive one */
    /* Receives the frames that arrive, at live_now() `when`, instead of the endpoint; NULL: the endpoint receives
     * them. */
    void (*frame)(void *user, const uint8_t *data, uint32_t len, ns_t when);
    void *user; /* of frame(), and becomes live.user */
};

struct live {
    struct backend *backend;
    struct identity id;
    struct endpoint *ep;
    struct cm_agent *cm;
    struct live_net *net; /* NULL: neither events nor nodes */
    struct event_list *events;
    struct cap_writer *record;
    struct cap_iface record_iface;
    struct stamps stamps;               /* clock of the interface against that of the host */
    int record_err;                     /* first error of the capture file */
    uint64_t frames;                    /* recorded */
    struct buf waiting;                 /* frames that those received before them may still precede in the capture */
    size_t waiting_from;                /* offset of the first one */
    uint64_t record_from, dropped_from; /* what the backend had received, and lost, when the capture began */
    uint8_t via[16];                    /* next hop, when has_via */
    bool has_via;
    uint8_t peer_mac[6]; /* of the next hop, when has_peer_mac */
    bool has_peer_mac;
    uint8_t tclass, hop_limit;      /* live_config */
    uint16_t mtu;                   /* path MTU: the configured one, or the largest that the interface carries */
    struct unreachable unreachable; /* the latest ICMP error about a packet of ours */
    int udp;                        /* socket that holds UDP port 4791, or -1 */
    ns_t epoch;                     /* time of the day at live_now() 0 */
    /* set by the caller: frames that a step receives at most; 0: the default */
    unsigned burst;
    bool blocked;     /* the backend's queue is full */
    uint64_t unsent;  /* frames dropped because it stayed full */
    bool progressed;  /* `net` delivered a frame in this step: return before waiting */
    struct late late; /* since the caller's late_begin() */
    struct idle idle; /* since the caller's idle_begin() */
    uint64_t raised;  /* cm_agent_raised() when a step returned last: if there are more events, return before waiting */
    void *user;       /* config's */
    void (*frame)(void *user, const uint8_t *data, uint32_t len, ns_t when);
};

/* Open backend, identity, endpoint and connection manager. A negative errno with *err filled. -ENODEV: no such
 * interface; -EADDRINUSE: a RoCE device of the kernel, or another program, uses UDP port 4791 of the address. */
int live_open(struct live *l, const struct live_config *c, struct live_error *err);
/* Close all; an error of the capture file is then in l->record_err. */
void live_close(struct live *l);

/* The interface of `c`, as live_open() finds it: "" if none was given, and the backend needs none. 0, or a negative
 * errno with *err filled. */
#define LIVE_IFACE 16
int live_iface(const struct live_config *c, char iface[LIVE_IFACE], struct live_error *err);
/* Monotonic time. */
ns_t live_now(void);
/* Begin a capture file with `snaplen` bytes of each frame (0: all), when there is none; live_config.record does so. End
 * it: its first error is in l->record_err. 0, or a negative errno with *err filled. */
int live_record_to(struct live *l, const char *path, uint32_t snaplen, struct live_error *err);
void live_record_end(struct live *l);
/* Write a frame to the capture file, if there is one, with a comment (NULL: none) and the time of now, behind those
 * that were received before. */
void live_record(struct live *l, const uint8_t *data, uint32_t len, bool inbound, const char *comment);
/* Likewise, a received frame that was stamped with `ts`, ns since 1970; 0: now. */
void live_record_in(struct live *l, const uint8_t *data, uint32_t len, ns_t ts);
/* All frames that had been received were passed to live_record_in(): frames sent need not wait for them. */
void live_record_caught_up(struct live *l);
/* Receive frames, run timers, send what is due. If there was nothing to do, wait until there is, or until `deadline`.
 * 0, also while the interface is down; -EINTR: live_stop() was called; -ENODEV: the interface is gone; another negative
 * errno: the backend failed. */
int live_step(struct live *l, ns_t deadline);
/* Likewise, but the caller only looks after something else from `deadline` on: it is a delay if that comes behind
 * `due`. */
int live_look(struct live *l, ns_t deadline, ns_t due);
/* Take the next event of event channel `channel` into *e, and wait for it until `end`: 0; -ETIMEDOUT; or as
 * live_step(). */
int live_cm_event(struct live *l, int channel, struct rdmacm_event *e, ns_t end);
/* A new RDMA-CM id of event channel `channel`, with the path to `port` of `gid` resolved: the id. Or a negative errno,
 * and no id: -ETIMEDOUT, -EHOSTUNREACH: no such neighbour; else as rdmacm_id_create() or live_step(). Events of other
 * ids are dropped meanwhile. */
int live_cm_resolve(struct live *l, int channel, const uint8_t gid[16], uint16_t port);
/* Wait until one of `n` descriptors is ready, or until `when`, at most a second. 0; -EINTR: live_stop() was called;
 * another negative errno. */
int live_wait(struct pollfd *fds, unsigned n, ns_t when);
/* With config's frame(): queue a frame. It is lost if the queue is full. */
void live_send(struct live *l, const uint8_t *data, uint32_t len);
/* Queue a frame of ARP or of neighbour discovery, if `len` is not 0. If the queue is full it is lost, and the next
 * request repeats it. */
void live_send_link(struct live *l, const uint8_t *frame, uint32_t len);
/* True if live_send() has room for a frame now. */
bool live_can_send(struct live *l);
/* From now on live_step() and live_wait() return -EINTR, to end the program. live_catch_signals() makes SIGINT and
 * SIGTERM call it. */
void live_stop(void);
void live_catch_signals(void);
/* And so do, for a command that has something to remove at its end, SIGHUP and SIGPIPE, unless they are ignored. */
void live_catch_ends(void);
/* Whether it was called. */
bool live_stopped(void);
/* Undo live_stop(), to disconnect from the peer. */
void live_go_on(void);

/* The source of the time stamps, and their quality, in words: "the kernel". Returns a static buffer. */
const char *live_stamps_str(const struct live *l);

/* Find the MAC address of the host at `gid`, or of the router to it: 0, -ETIMEDOUT after `timeout`, or as
 * live_step(). */
int live_resolve(struct live *l, const uint8_t gid[16], ns_t timeout);
/* Likewise without waiting: true if the address is known. If not, a request is sent whenever the time is *again (0 at
 * first), which then becomes the time of the next one; live_step() receives the reply. */
bool live_ask(struct live *l, const uint8_t gid[16], ns_t *again);
/* What an ICMP error says of packets to the host at `gid`, and who: "port unreachable, says 10.0.0.2". NULL: there was
 * none. Returns a static buffer. */
const char *live_unreachable(const struct live *l, const uint8_t gid[16]);
/* Path to a host that was resolved, or that has sent something. False: not known. */
bool live_path(struct live *l, const uint8_t gid[16], struct av *av);

/* Largest path MTU (bytes) for an interface that carries IP packets of `mtu` bytes; 0: not even 256. As Linux: 96 bytes
 * go to headers. */
uint16_t live_path_mtu(uint32_t mtu);
/* The first RoCE device below `sysfs` ("/sys/class/infiniband") that has a GID on `iface`: true with its name. */
bool live_roce_device(const char *sysfs, const char *iface, char *name, size_t size);
/* GID of a numeric address or a host name. False: there is none. */
bool live_parse_host(const char *text, uint8_t gid[16]);
/* For messages: the address in text, without ::ffff: for IPv4. Returns a static buffer. */
const char *live_addr_str(const uint8_t gid[16]);

#endif
