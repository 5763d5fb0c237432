/* layer 3 (fabric): a network of hosts, switches and links in virtual time.
 *
 * A link has a port at either end. A frame occupies the port that sends it for as long as its bits take at the rate of
 * the link (with preamble, frame check sequence and gap), and arrives whole after the delay of the link. A switch puts
 * it into the queue of its class at the port of the next link, if its shared buffer has room; the scheduler of the port
 * chooses the queue that sends next. The class of a frame is the priority of its tag, or the upper three bits of its
 * DSCP. A switch with lossless classes pauses its neighbours by frames of priority-based flow control, IEEE 802.1Qbb;
 * ports of hosts and of switches obey them.
 *
 * Hosts are numbered from 0, in the order of the topology; a host has one port.
 */
#ifndef RDMATRACE_GEN_FABRIC_FABRIC_H
#define RDMATRACE_GEN_FABRIC_FABRIC_H

#include "buf.h"
#include "gen/endpoint/build.h"
#include "gen/fabric/topology.h"
#include "gen/net/tap.h"

struct fabric;
struct fabric_port;

/* Counters of a port. */
struct fabric_counters {
    uint64_t sent, sent_bytes; /* frames put on the link, and their bytes without frame check sequence */
    uint64_t received;         /* frames that arrived */
    uint64_t dropped;          /* frames for this port that found no room in the buffer */
    uint64_t lost;             /* frames lost on the link, or because it is down */
    uint64_t marked;           /* frames marked CE when they left the queue */
    uint64_t pauses_sent;      /* pause frames that begin or prolong a pause */
    uint64_t resumes_sent;     /* pause frames that end one */
    uint64_t pauses_received;  /* likewise, of the neighbour */
    uint64_t storms;           /* queues emptied by the watchdog */
    uint64_t depth_max;        /* longest queue of a class, bytes */
    ns_t paused[TOPO_CLASSES]; /* how long the class was stopped */
};

/* Who uses the fabric. */
struct fabric_user {
    /* A frame arrives at a host; pause frames, too. */
    void (*deliver)(void *user, unsigned host, const uint8_t *data, uint32_t len, ns_t now);
    /* The port of a host may send what it was not allowed to: fabric_stopped() has changed. */
    void (*resumed)(void *user, unsigned host, ns_t now);
    void *user;
};

/* An observer of what becomes of the frames that hosts send; a frame is known by its serial, from 1. Members must not
 * be NULL. */
struct fabric_watch {
    /* A host sends a frame. */
    void (*sent)(void *user, uint64_t serial, unsigned host, const uint8_t *data, uint32_t len, ns_t now);
    /* It is lost: on the link behind port `at`, which sent it; else in the queue of that port, or, if no path leads to
     * its host, behind that port, by which it came. */
    void (*lost)(void *user, uint64_t serial, const struct fabric_port *at, bool on_link, ns_t now);
    /* It arrives at its host. */
    void (*arrived)(void *user, uint64_t serial, unsigned host, ns_t now);
    /* The port of a host, or that of the switch to which it is linked, does not send a class from `from` until `until`.
     * The same `from` again: the pause has become longer, or shorter. Times are those of the pause frames at the
     * host. */
    void (*paused)(void *user, unsigned host, unsigned class, ns_t from, ns_t until);
    void *user;
};

/* Addresses of host number `h`: RoCEv2, 50.60.0.1 and on, or 2001:db8:0:3c::1 if `ipv6`. */
struct link_addr fabric_addr(unsigned h, bool ipv6);
/* Build the network; `seed`: of the marks, losses, and paths. NULL with *err set: -ENOMEM; -ENOBUFS:
 * the headroom of a switch is more than its buffer. `t` is not kept. */
struct fabric *fabric_new(const struct topology *t, const struct fabric_user *user, uint64_t seed, int *err);
/* Before the first frame: switches tell senders the fair rate of a queue, by topo_switch.fair; they write telemetry
 * into packets that ask for it. False: no memory. */
bool fabric_tells(struct fabric *f, bool rates, bool telemetry);
void fabric_free(struct fabric *f);
unsigned fabric_hosts(const struct fabric *f);
/* Name of a host in the topology. */
const char *fabric_host_name(const struct fabric *f, unsigned h);

/* Host with the number by which files name it: see struct topology, by_node; -1: there is none. */
int fabric_host_numbered(const struct fabric *f, uint64_t number);
/* Append to `b` (NULL: no more) a line for each pause of a class that a port obeys, "TIME NODE SWITCH PORT 1", and for
 * each one that its neighbour ends, the same with 0 at the end: ns, the number of the node, 1 if it is a switch, and
 * the number of the port, from 1, as pfc.txt of the HPCC simulator. */
void fabric_log_pauses(struct fabric *f, struct buf *b);

/* Set the observer (NULL: none); it must outlive the fabric. */
void fabric_set_watch(struct fabric *f, const struct fabric_watch *w);
/* bit/s of the link of a host. */
uint64_t fabric_host_rate(const struct fabric *f, unsigned h);

/* Memory in which a frame may be written before it is sent, so that it need not be copied: of `most` bytes, of
 * NET_FRAME_MAX at most. False: no memory. */
bool fabric_draft_open(struct fabric *f, uint32_t most);
/* That memory, until the next fabric_send(). */
uint8_t *fabric_draft(const struct fabric *f);
/* A host sends a frame, of NET_FRAME_MAX bytes at most: returns when its port can send the next one. It must not be
 * called before that time. `data` may be the draft, whose contents are lost then. */
ns_t fabric_send(struct fabric *f, unsigned host, const uint8_t *data, uint32_t len, ns_t now);
/* Mask of the classes that the port of a host must not send now. */
uint8_t fabric_stopped(const struct fabric *f, unsigned host, ns_t now);
/* When fabric_run() must be called next; NS_NEVER: nothing is under way. */
ns_t fabric_next(const struct fabric *f);
/* Do what is due. */
void fabric_run(struct fabric *f, ns_t now);
/* How long `bytes` of payload take from host to host through empty queues, in frames of at most `mtu` bytes of payload
 * and `head` bytes around it, until the response of `reply` bytes is back; 0: until the data is there. */
ns_t fabric_ideal(const struct fabric *f, unsigned from, unsigned to, uint64_t bytes, uint32_t mtu, uint32_t head,
                  uint32_t reply);

/* --- Paths ------------------------------------------------------------------------------------ */

/* Flows for which a port was one of several on shortest paths. */
struct path_counts {
    uint32_t flows; /* that take it */
    uint32_t may;   /* that or another one */
};
/* Count a flow, whose frames begin with `head`, at the ports of switches where its path was chosen by its hash. `c`: by
 * number of the port. Where switches spray packets the flow has no path. */
void fabric_count_path(const struct fabric *f, unsigned from, unsigned to, const uint8_t *head, uint32_t len,
                       struct path_counts *c);

/* --- Ports ------------------------------------------------------------------------------------ */

/* The port by its name: "HOST", or "SWITCH.N" (N: its links in the order of the topology, from 1), or
 * "SWITCH.NEIGHBOUR"; NULL: there is none. */
struct fabric_port *fabric_port_find(const struct fabric *f, const char *name, size_t len);
/* Port number `i` of all, from 0; NULL: there are no more. */
struct fabric_port *fabric_port_nth(const struct fabric *f, uint32_t i);
/* Whether two ports belong to one host or switch; its ports have numbers in a row. */
bool fabric_port_same_node(const struct fabric_port *a, const struct fabric_port *b);
/* Append its name: "h1", "leaf1.spine2". */
void fabric_port_name(struct buf *b, const struct fabric *f, const struct fabric_port *p);
/* Append where a frame is lost, see fabric_watch: "link h2", "queue s.h1". */
void fabric_place_name(struct buf *b, const struct fabric_port *p, bool on_link);
/* Counters until `now`. */
struct fabric_counters fabric_port_counters(const struct fabric_port *p, ns_t now);
/* Bytes in its queues now. */
uint64_t fabric_port_depth(const struct fabric_port *p);
/* bit/s of its link. */
uint64_t fabric_port_rate(const struct fabric_port *p);
/* Show all frames that the port sends and receives to `taps` (kept); NULL: none. */
void fabric_port_tap(struct fabric_port *p, struct tap_set *taps);
/* The counters of all ports together; depth_max: the longest. */
struct fabric_counters fabric_total(const struct fabric *f, ns_t now);
/* Packets forwarded by ports, of hosts and switches: one for each link that a packet passes. */
uint64_t fabric_hops(const struct fabric *f);

#endif
