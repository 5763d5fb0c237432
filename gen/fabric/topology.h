/* layer 3 (fabric): what a network of many hosts is made of, and its notation: hosts, switches, links, a line each.
 *
 *     host h1 h2                                     hosts, in the order of their numbers
 *     switch leaf1 buffer=12M pfc=3 red=5K/200K/1%   a switch, or words for one that is there; without a name: for all
 *     link h1 leaf1 rate=40G delay=1us               a link, or words for one that is there; without ends: for all
 *
 * Words of a switch: buffer=BYTES, alpha=A[/B] (a queue of a lossy class takes at most this share of what is free),
 * pfc=CLASSES (lossless ones, such as 3,4), xoff=BYTES|A/B (a port that holds so much of a class pauses its neighbour;
 * a share: of what is free), xon=BYTES (less than xoff by which it resumes), headroom=BYTES (for each port and lossless
 * class), reserve=BYTES (likewise, before the shared buffer), quanta=N, watchdog=TIME[/TIME], red=KMIN/KMAX/P
 * or mark=PARAM=VALUE,... (ECN marks, see mp_parse()), fair=PARAM=VALUE,... (fair rates, see fair_parse()),
 * strict=CLASSES, weight=CLASS:N,..., paths=ecmp|spray, reroute=TIME. Words of a link: rate=BPS, delay=TIME,
 * reaction=TIME, loss=P, down=TIME[/TIME], storm=TIME[/TIME].
 */
#ifndef RDMATRACE_GEN_FABRIC_TOPOLOGY_H
#define RDMATRACE_GEN_FABRIC_TOPOLOGY_H

#include "src/cc/mp.h"
#include "tokens.h"

#define TOPO_NAME      32 /* bytes of a name, with its NUL */
#define TOPO_HOSTS_MAX 1024
#define TOPO_NODES_MAX 2048
#define TOPO_LINKS_MAX 65536
#define TOPO_CLASSES   8
#define TOPO_FAIR      112                  /* bytes of the parameters of congestion points */
#define TOPO_TIME_MAX  (1000000 * NS_PER_S) /* of each time but the delay, which is below a second */

#define TOPO_AUTO UINT64_MAX

/* num / den */
struct topo_share {
    uint32_t num, den;
};

/* Parameters of a switch. */
struct topo_switch {
    uint64_t buffer;               /* bytes, of all ports together */
    struct topo_share alpha;       /* longest queue of a lossy class, of the free shared buffer */
    uint8_t lossless;              /* mask of the classes with PFC */
    uint64_t xoff;                 /* bytes of a port and class that pause its neighbour; 0: xoff_share */
    struct topo_share xoff_share;  /* of the free shared buffer */
    uint64_t xon;                  /* it resumes when there are so many bytes less than xoff */
    uint64_t headroom;             /* bytes reserved for each port and lossless class; TOPO_AUTO: what its link needs */
    uint64_t reserve;              /* bytes of each port and lossless class that are not taken from what is shared */
    uint16_t quanta;               /* of the pause frames */
    ns_t watchdog;                 /* a queue stopped this long is emptied; 0: never */
    ns_t restore;                  /* and its frames are dropped until it was not stopped for so long */
    struct mp_config mark;         /* of its queues */
    char fair[TOPO_FAIR];          /* parameters of its congestion points (fair_parse()), as text */
    uint8_t strict;                /* mask of the classes that go first, the highest before the others */
    uint32_t weight[TOPO_CLASSES]; /* of the others: 1 and up */
    bool spray;                    /* each packet takes any of the shortest paths; else its flow's */
    ns_t reroute;                  /* from the failure of a link until no path uses it */
};

/* A host or a switch. */
struct topo_node {
    char name[TOPO_NAME];
    bool is_switch;
    uint32_t links;        /* links that end here */
    struct topo_switch sw; /* with is_switch */
};

/* A link between the nodes number `end`, both ways. */
struct topo_link {
    uint32_t end[2];
    uint64_t rate; /* bit/s */
    ns_t delay;
    ns_t reaction;     /* from the arrival of a pause frame until the port obeys it */
    uint32_t loss_ppb; /* frames lost, in 10^-9 */
    ns_t down, up;     /* not usable from `down` until `up`; NS_NEVER: never */
    ns_t storm, calm;  /* its host pauses all lossless classes of the switch from `storm` until `calm`, likewise */
};

struct topology {
    struct topo_node *node; /* in the order of definition */
    struct topo_link *link;
    uint32_t n_nodes, n_links, n_hosts;
    struct topo_switch sw; /* of switches to come */
    struct topo_link like; /* of links to come */
    bool by_node;          /* workloads name a host by the number of its node; else by its own, from 0 */
};

/* No nodes; links of `rate` bit/s and `delay` unless they say otherwise. */
void topology_init(struct topology *t, uint64_t rate, ns_t delay);
void topology_free(struct topology *t);
/* True if `spec` is "star:N" (hosts h1 to hN around a switch `s`) or "leafspine:LEAVES,SPINES,HOSTS" (hosts of each
 * leaf; hosts h1 ..., switches leaf1 ..., spine1 ...) and not the name of a file. */
bool topology_is_built_in(const char *spec);
/* Make a built-in one. False with *e filled: wrong numbers, or no memory. */
bool topology_make(struct topology *t, const char *spec, struct text_error *e);
/* Read a line of the notation; empty ones and comments (#) do nothing. False with *e filled. */
bool topology_line(struct topology *t, const char *line, struct text_error *e);
/* Read a file: `text`, which is changed, has lines of the notation, or is a topology.txt of ns3-rdma or of the HPCC
 * simulator. False with *e and the number of the line filled. */
bool topology_read(struct topology *t, char *text, unsigned *number, struct text_error *e);
/* Whether the network is whole: two hosts or more, each with one link, to a switch; links of less than a second. False
 * with *e filled. */
bool topology_check(const struct topology *t, struct text_error *e);
/* Number of the node with this name, or -1. */
int topology_find(const struct topology *t, const char *name, size_t len);

#endif
