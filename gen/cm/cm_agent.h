/* layer 3 (cm): a connection manager: the state machines of src/transport/cm.h over the GSI queue pair (QP 1) of
 * an endpoint. */
#ifndef RDMATRACE_GEN_CM_CM_AGENT_H
#define RDMATRACE_GEN_CM_CM_AGENT_H

#include "gen/endpoint/endpoint.h"
#include "src/transport/cm.h"

struct cm_agent;

/* The response of a passive side to a REQ or SIDR_REQ. */
struct cm_answer {
    int qp;               /* queue pair to connect, in RESET; negative: reject */
    unsigned reason;      /* if rejected: enum cm_rej_reason, or enum cm_sidr_status */
    struct ep_peer peer;  /* parameters that the CM does not negotiate: access, RNR timer, MAC address, port */
    struct cm_params own; /* what the REP (or SIDR_REP) announces; of a REJ: the private data */
    ns_t ask_again;       /* of a REQ: not answered yet: the caller is asked again at this time; 0: answered */
    uint8_t mra;          /* with `ask_again`: exponent of the MRA to send; 0: none */
};

struct cm_agent_config {
    struct endpoint *ep; /* its struct verbs points to the connection manager, too: struct rdmacm */
    struct av peer;      /* path to the peer, if there is only one (`path` is NULL) */
    /* Set *av to the path to the host with this address; false: not known (yet). May be NULL; if set, a connection
     * accepts messages from the address of its peer only, and responses go to the source of the message. */
    bool (*path)(void *user, const uint8_t gid[16], struct av *av);
    /* With `path`: find out what path() needs. True: it is known. If not, a request is sent whenever the time is *again
     * (0 at first), which becomes the time of the next one. NULL: nothing is found out. */
    bool (*resolve)(void *user, const uint8_t gid[16], ns_t *again);
    /* Set *av to the path `path`, which is seen from this host; false: no port of this host has its source address, or
     * nobody there its destination. NULL: alternate paths are not supported. */
    bool (*alternate)(void *user, const struct cm_path *path, struct av *av);
    unsigned apr; /* with `alternate`: enum cm_apr_status that answers every LAP, without a look at its path; 0: none */
    uint32_t max_paths; /* with `path`: address handles kept at the same time; 0: 256 */
    uint64_t seed;
    uint32_t max_conns; /* 0: 65536; when all are in use, the oldest closed connection is reused */
    /* Longest time from our REP to the RTU, also if the REQ allows more; 0: as in the REQ. Then the connection ends
     * with CM_EV_UNREACHABLE. half_open_short applies once a REQ was rejected for lack of resources. */
    ns_t half_open, half_open_short;
    /* Called for a REQ or SIDR_REQ for which no id listens: fill *a, which holds qp -1 and the reason "no such
     * service". */
    void (*request)(void *user, const struct cm_conn *c, struct cm_answer *a);
    /* Called for an event of the connection of `qp`, if that has no id: CM_EV_CONNECTED, REJECTED, UNREACHABLE,
     * DISCONNECTED, TIMEWAIT_EXIT, SIDR_RESPONSE, and, once an alternate path is loaded, LAP (by the peer's), or APR
     * and LAP_ERROR (how an own LAP ended). */
    void (*event)(void *user, int qp, enum cm_event event, const struct cm_conn *c);
    void *user;
};

/* NULL: out of memory, or QP 1 is taken. */
struct cm_agent *cm_agent_new(const struct cm_agent_config *config);
void cm_agent_free(struct cm_agent *a);
/* Connect `qp` (in RESET) with `own`, whose qpn and psn are set; `peer` gives the attributes that the CM does not
 * negotiate. Returns the communication id; 0: no room, or the private data is too long. */
uint32_t cm_agent_connect(struct cm_agent *a, int qp, const struct cm_params *own, const struct ep_peer *peer,
                          ns_t now);
/* Resolve a datagram service (SIDR). */
uint32_t cm_agent_resolve(struct cm_agent *a, int qp, const struct cm_params *own, ns_t now);
/* Send a DREQ. 0; -ENOTCONN. */
int cm_agent_disconnect(struct cm_agent *a, int qp, ns_t now);
/* Send a LAP with this path, as the own side sees it; once the APR accepts it, it is loaded, and the queue pair rearms.
 * 0; -ENOTCONN; -EBUSY: another LAP is unanswered. */
int cm_agent_load(struct cm_agent *a, int qp, const struct cm_path *alt, ns_t now);
/* The queue pair has changed to its alternate path: from now on messages take this path as well. */
void cm_agent_migrated(struct cm_agent *a, int qp);
/* A request arrived on the queue pair before the RTU: the connection is established. */
void cm_agent_established(struct cm_agent *a, int qp);
/* Process received messages and expired timers, and post messages to the endpoint. */
void cm_agent_run(struct cm_agent *a, ns_t now);
/* When cm_agent_run() must be called next. */
ns_t cm_agent_next(const struct cm_agent *a);
/* Events that ids have raised, since the connection manager was opened. */
uint64_t cm_agent_raised(const struct cm_agent *a);
/* Messages sent, by kind (index: attribute id - 0x10), for statistics. */
uint64_t cm_agent_sent(const struct cm_agent *a, enum cm_attr attr);

/* Messages that were ignored: not decodable, for no connection, from another address than the peer's, or without
 * room. */
uint64_t cm_agent_ignored(const struct cm_agent *a);

#endif
