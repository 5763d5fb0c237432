/* layer 3 (verbs): connection management for programs over a provider of the verbs: the calls of librdmacm as one table
 * of functions. Event channels, ids and events have librdmacm's meaning, so that a provider over librdmacm forwards
 * most calls; what differs is noted there. No call waits: the program takes events when there are some.
 *
 *     active side    resolve()   ROUTE_RESOLVED   connect()            ESTABLISHED   ...   disconnect()   DISCONNECTED
 *     passive side   listen()    CONNECT_REQUEST  accept() reject()    ESTABLISHED   ...                  DISCONNECTED
 *
 * An id is a small number from 0 on, and so is an event channel. A call with one that the provider has not given out,
 * or that was destroyed, fails with -EINVAL; so does a call that the state of the id does not allow. Destroy the id
 * before its queue pair. `now` as in gen/verbs/verbs.h. */
#ifndef RDMATRACE_GEN_VERBS_RDMACM_H
#define RDMATRACE_GEN_VERBS_RDMACM_H

#include "dissect/mad/cm.h"
#include "gen/verbs/verbs.h"

#define RDMACM_PRIVATE_MAX 224 /* bytes of private data in any message */

/* Events, in the order in which they can occur for an id. */
enum rdmacm_event_type {
    RDMACM_ADDR_ERROR,      /* the path to the address of resolve() is not known; status: -ETIMEDOUT, -EHOSTUNREACH */
    RDMACM_ROUTE_RESOLVED,  /* it is: connect() */
    RDMACM_CONNECT_REQUEST, /* a REQ or SIDR_REQ came to `listen_id`: accept(), reject() or id_destroy() `id`, new */
    /* Connected: the active side may send; the passive side has the RTU, or a request of the peer. Datagrams, active
     * side: `av`, `qpn` and `qkey` say where the service is. */
    RDMACM_ESTABLISHED,
    /* The peer refused the REQ, or the REP, of this side; status: enum cm_rej_reason */
    RDMACM_REJECTED,
    /* status: -ETIMEDOUT: the peer does not answer; datagrams: > 0: enum cm_sidr_status, the service was refused */
    RDMACM_UNREACHABLE,
    RDMACM_DISCONNECTED,  /* after a DREQ of the peer's, or the DREP to that of this side; the queue pair is in error */
    RDMACM_TIMEWAIT_EXIT, /* packets in flight have died out: the queue pair's number may be used again */
};

struct rdmacm_event {
    uint8_t type;                /* enum rdmacm_event_type */
    int id;                      /* handle */
    int listen_id;               /* CONNECT_REQUEST: the listener; else -1 */
    int status;                  /* as noted above; else 0 */
    uint8_t gid[16];             /* the peer's address; IPv4: IPv4-mapped */
    uint32_t qpn;                /* the peer's queue pair, once known */
    uint32_t qkey;               /* datagrams, ESTABLISHED: of that queue pair */
    struct av av;                /* datagrams, ESTABLISHED: path to the service */
    uint8_t responder_resources; /* CONNECT_REQUEST: READs and atomics that the peer wants outstanding */
    uint8_t initiator_depth;     /* CONNECT_REQUEST: as many of this side's the peer serves at a time */
    uint8_t private_len; /* CONNECT_REQUEST, ESTABLISHED of the active side, REJECTED, UNREACHABLE: bytes of ... */
    uint8_t private_data[RDMACM_PRIVATE_MAX]; /* ... what the peer sent along; behind RDMA-CM's own header */
};

/* What a side announces in connect() or accept(). */
struct rdmacm_param {
    /* A handle. Connections: in RESET; it leaves it for RTR and RTS as the connection is made. Over librdmacm: of a
     * queue pair that the program owns, not one of rdma_create_qp(). */
    int qp;
    uint32_t qkey;               /* datagrams: of the queue pair; librdmacm takes its own, 0x01234567 */
    uint8_t access;              /* ACCESS_REMOTE_* granted to the peer */
    uint8_t responder_resources; /* READs and atomics of the peer's served at a time */
    uint8_t initiator_depth;     /* READs and atomics wanted outstanding */
    bool has_retry;              /* connections: else 7; librdmacm has its own member */
    uint8_t retry;               /* retry count that the peer is to have */
    bool has_rnr_retry;          /* connections: else 7; librdmacm has its own member */
    uint8_t rnr_retry;           /* RNR retry count that the peer is to have */
    uint16_t path_mtu;           /* bytes; 0: the largest that the port allows */
    uint8_t private_len;         /* bytes of ... */
    const void *private_data;    /* ... private data; copied */
};

struct rdmacm;

/* The calls. Errors are negative errnos. */
struct rdmacm_ops {
    /* rdma_create_event_channel(): a handle, or -ENOMEM. */
    int (*channel_create)(struct rdmacm *cm);
    /* No id uses it any more; events not taken are dropped. 0; -EBUSY: an id uses it. */
    int (*channel_destroy)(struct rdmacm *cm, int channel);
    /* rdma_get_cm_event() and rdma_ack_cm_event(): take an event of the channel into *e; false: there is none, or no
     * such channel. Those of an id come in their order; those of an id that was destroyed never do. */
    bool (*get_event)(struct rdmacm *cm, int channel, struct rdmacm_event *e);

    /* rdma_create_id(): a handle; -ENOMEM; -EINVAL: no such channel, or port space. `ps`: CM_PS_TCP: a connection;
     * CM_PS_UDP: a datagram service, resolved by SIDR, for which each side brings its queue pair to RTS itself. */
    int (*id_create)(struct rdmacm *cm, int channel, uint8_t ps);
    /* rdma_destroy_id(). What the id has begun ends: a request that is not answered is refused (a REQ: consumer
     * defined), a connection not yet made is given up; of one that was made only the peer's DREQ is answered still
     * (librdmacm sends a DREQ: call disconnect() before). No events follow. */
    int (*id_destroy)(struct rdmacm *cm, int id, ns_t now);
    /* rdma_resolve_addr() and rdma_resolve_route(), as on RoCE the address gives the route: find the path to port
     * `port` of `gid` within `timeout` ns. ROUTE_RESOLVED or ADDR_ERROR follows. */
    int (*resolve)(struct rdmacm *cm, int id, const uint8_t gid[16], uint16_t port, ns_t timeout, ns_t now);
    /* After ROUTE_RESOLVED: send the REQ or SIDR_REQ. ESTABLISHED, REJECTED or UNREACHABLE follows. -EINVAL: also if
     * the private data is too long; -ENOMEM: no room for another connection. */
    int (*connect)(struct rdmacm *cm, int id, const struct rdmacm_param *p, ns_t now);

    /* rdma_bind_addr() to the address of this host, rdma_listen(): requests to `port` raise CONNECT_REQUEST with new
     * ids of the same channel; while `backlog` requests are not answered, or none can be kept, further ones are refused
     * (no resources). -EADDRINUSE: an id listens there. */
    int (*listen)(struct rdmacm *cm, int id, uint16_t port, unsigned backlog);
    /* After CONNECT_REQUEST: send the REP or SIDR_REP. The depths are reduced to what the REQ allows. Connections:
     * ESTABLISHED, REJECTED or UNREACHABLE follows; a datagram service is ready. -EINVAL: also if the private data is
     * too long; -EHOSTUNREACH: no path to the peer. The request is still unanswered then. */
    int (*accept)(struct rdmacm *cm, int id, const struct rdmacm_param *p, ns_t now);
    /* After CONNECT_REQUEST: send a REJ, or a SIDR_REP, with `reason`: enum cm_rej_reason or cm_sidr_status; over
     * librdmacm always consumer defined (28), or unsupported (1). No event follows. -EINVAL: also if the private data
     * is too long. */
    int (*reject)(struct rdmacm *cm, int id, unsigned reason, const void *data, unsigned len, ns_t now);
    /* Send a DREQ. DISCONNECTED follows, if need be after all retries. -ENOTCONN: not connected, or not any more. */
    int (*disconnect)(struct rdmacm *cm, int id, ns_t now);
};

/* The connection manager of an opened provider: struct verbs points to it. */
struct rdmacm {
    const struct rdmacm_ops *ops;
};

/* What REJECTED, UNREACHABLE or DISCONNECTED means, in words, in the `size` bytes at `text`. */
void rdmacm_why(const struct rdmacm_event *e, char *text, size_t size);

/* --- The calls by name ------------------------------------------------------------------------ */

static inline int rdmacm_channel_create(struct rdmacm *cm)
{
    return cm->ops->channel_create(cm);
}
static inline int rdmacm_channel_destroy(struct rdmacm *cm, int channel)
{
    return cm->ops->channel_destroy(cm, channel);
}
static inline bool rdmacm_get_event(struct rdmacm *cm, int channel, struct rdmacm_event *e)
{
    return cm->ops->get_event(cm, channel, e);
}
static inline int rdmacm_id_create(struct rdmacm *cm, int channel, uint8_t ps)
{
    return cm->ops->id_create(cm, channel, ps);
}
static inline int rdmacm_id_destroy(struct rdmacm *cm, int id, ns_t now)
{
    return cm->ops->id_destroy(cm, id, now);
}
static inline int rdmacm_resolve(struct rdmacm *cm, int id, const uint8_t gid[16], uint16_t port, ns_t timeout,
                                 ns_t now)
{
    return cm->ops->resolve(cm, id, gid, port, timeout, now);
}
static inline int rdmacm_connect(struct rdmacm *cm, int id, const struct rdmacm_param *p, ns_t now)
{
    return cm->ops->connect(cm, id, p, now);
}
static inline int rdmacm_listen(struct rdmacm *cm, int id, uint16_t port, unsigned backlog)
{
    return cm->ops->listen(cm, id, port, backlog);
}
static inline int rdmacm_accept(struct rdmacm *cm, int id, const struct rdmacm_param *p, ns_t now)
{
    return cm->ops->accept(cm, id, p, now);
}
static inline int rdmacm_reject(struct rdmacm *cm, int id, unsigned reason, const void *data, unsigned len, ns_t now)
{
    return cm->ops->reject(cm, id, reason, data, len, now);
}
static inline int rdmacm_disconnect(struct rdmacm *cm, int id, ns_t now)
{
    return cm->ops->disconnect(cm, id, now);
}

#endif
