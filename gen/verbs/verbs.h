/* layer 3 (verbs): a provider of the verbs: the calls by which programs use an adapter, as one table of functions. A
 * program that knows no more than this header runs over every provider: over an endpoint, be it in a simulation or on a
 * real network (ep_verbs()), over one that counts or checks on its way to another, or over libibverbs.
 *
 * Handles of queue pairs, completion queues, shared receive queues and address handles are small numbers from 0 on;
 * those of protection domains are not 0. A call with a handle that the provider has not given out, or that was
 * destroyed, fails with -EINVAL. `now` is the time at which the caller acts, in ns; a provider with a clock of its own
 * ignores it. Connection management is a second table, gen/verbs/rdmacm.h. Frames and timers are no part of either: who
 * opens the provider drives it.
 *
 * A provider is a structure that holds a struct verbs, which points to its table; every function of the table is
 * there. */
#ifndef RDMATRACE_GEN_VERBS_VERBS_H
#define RDMATRACE_GEN_VERBS_VERBS_H

#include "src/transport/verbs.h"

#define EP_NO_SRQ (-1) /* in place of the handle of a shared receive queue */

struct verbs;

/* A shared receive queue of an XRC domain to be created (ibv_create_srq_ex()): XRC_TGT queue pairs of the domain take
 * its receives for requests that name its number. */
struct verbs_xrc_srq_init {
    uint32_t pd;      /* from pd_alloc(); of the memory of its receives */
    uint32_t depth;   /* receives that it holds */
    uint16_t max_sge; /* pieces of a receive, at most; 0: 1 */
    uint32_t xrcd;    /* from xrcd_alloc() */
    int cq;           /* handle: its receives complete there */
};

/* A queue pair to be created. */
struct verbs_qp_init {
    uint8_t type;                      /* enum qp_type */
    bool sq_sig_all;                   /* every send completes with an entry */
    uint32_t qpn;                      /* its number; 0: the provider's choice */
    uint32_t max_send_wr, max_recv_wr; /* work requests that the queues hold; 0: 16; max_recv_wr: ignored with an SRQ */
    uint16_t max_dest_rd;              /* RC: READs and atomics of the peer's served at a time, 1 to 128; 0: 16 */
    int send_cq, recv_cq;              /* handles */
    int srq;                           /* handle, or EP_NO_SRQ; XRC: EP_NO_SRQ */
    uint32_t pd;                       /* from pd_alloc() */
    uint32_t xrcd;                     /* XRC_TGT: from xrcd_alloc(); else 0 */
};

/* What a connected queue pair needs to know of the endpoint at the other end to go from RESET to RTS. */
struct ep_peer {
    struct av av;                                         /* addresses; sport 0: the provider's choice */
    uint32_t qpn;                                         /* the peer's queue pair */
    uint32_t rq_psn;                                      /* first PSN that the peer sends */
    uint32_t sq_psn;                                      /* first PSN to send: what the peer expects */
    uint16_t path_mtu;                                    /* bytes */
    uint8_t max_rd_atomic;                                /* initiator depth */
    uint8_t max_dest_rd_atomic;                           /* responder resources */
    uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer; /* codes, see struct qp_attr */
    uint8_t access;                                       /* ACCESS_REMOTE_* granted to the peer */
    uint32_t qkey;                                        /* UD */
    uint16_t pkey;                                        /* 0: the endpoint's */
};
/* PMTU 1024, depths 16, timeout 14, retries 7, RNR timer 12, all remote access. */
struct ep_peer ep_peer_default(void);

/* Whether `gid` is ::ffff:a.b.c.d. */
bool gid_is_ipv4(const uint8_t gid[16]);
/* ::ffff:`a`, `a` in host order (0x32323201 is 50.50.50.1). */
void gid_from_ipv4(uint8_t gid[16], uint32_t a);

/* Asynchronous events. */
enum ep_event_type {
    EP_EV_QP_FATAL,      /* the queue pair is in error because of its own error */
    EP_EV_QP_REQ_ERR,    /* a request of the peer was invalid */
    EP_EV_QP_ACCESS_ERR, /* a request of the peer violated a key or an access right */
    EP_EV_COMM_EST,      /* first request arrived in RTR */
    EP_EV_SQ_DRAINED,    /* SQD: all sends that had begun are complete */
    EP_EV_SRQ_LIMIT,     /* fewer receives than the limit are left */
    EP_EV_LAST_WQE,      /* the queue pair with an SRQ is in error and consumes no more receives */
    EP_EV_CQ_ERR,        /* a completion queue overflowed */
    EP_EV_CQ_NOTIFY,     /* requested for a completion queue */
    EP_EV_PATH_MIG,      /* the queue pair has migrated to its alternate path */
    EP_EV_PATH_MIG_ERR,  /* the peer asked an armed queue pair to migrate, but not along its alternate path */
};
struct ep_event {
    uint8_t type; /* enum ep_event_type */
    int handle;   /* queue pair, SRQ or CQ */
    ns_t when;
};

/* What the provider has counted of a queue pair since it was created. */
struct verbs_counters {
    uint64_t rx_packets;        /* packets that arrived for it */
    uint64_t rx_payload;        /* payload bytes of new (not repeated) packets */
    uint64_t served;            /* requests of the peer's carried out to their last packet */
    uint64_t fetched;           /* of these, READs and atomics */
    uint64_t rnr_nak_retry_err; /* RNR NAKs received */
    uint64_t other_service;     /* packets of another service than the queue pair's */
};

/* The calls. Errors are negative errnos. */
struct verbs_ops {
    /* A protection domain, or 0: none is left. It lives as long as the provider. */
    uint32_t (*pd_alloc)(struct verbs *v);
    /* Register `len` bytes at `mem` under addresses from `iova` on, which SGEs and the peer use, with the rights
     * `access` (ACCESS_*). 0: *key is L_Key and R_Key; -ENOMEM: no region is left; -EINVAL: rights or range. `mem`
     * stays the caller's and must outlive the region. */
    int (*mr_reg)(struct verbs *v, uint32_t pd, void *mem, uint64_t len, uint64_t iova, uint8_t access, uint32_t *key);
    /* 0; -EINVAL: no such region; -EBUSY: windows are bound to it. */
    int (*mr_dereg)(struct verbs *v, uint32_t key);
    /* Allocate a region of up to `most` bytes for fast registration, by a send work request WR_REG_MR: until it
     * completes, and once invalidated, the key *key is refused. mr_dereg() frees it. 0; -EINVAL: no such protection
     * domain, or `most` is 0; -ENOMEM: no region is left. */
    int (*mr_alloc)(struct verbs *v, uint32_t pd, uint64_t most, uint32_t *key);
    /* Allocate a memory window of type 1 (bound by mw_bind()) or 2 (by a send work request WR_BIND_MW). 0: *key is its
     * R_Key, of which no access is granted until it is bound; -EINVAL: `type` or protection domain; -ENOMEM. */
    int (*mw_alloc)(struct verbs *v, uint32_t pd, unsigned type, uint32_t *key);
    /* Free a window, bound or not. 0; -EINVAL: no window has this key. */
    int (*mw_dealloc)(struct verbs *v, uint32_t key);
    /* ibv_bind_mw(): post to the send queue of `qp` a request that binds the type 1 window *key to mw_length bytes at
     * remote_addr of the region mr_key with the rights mw_access, or with length 0 unbinds it; wr_id and flags are
     * used, too. 0: posted, *key is the window's new key, valid once the request completes; -EINVAL: no type 1 window,
     * or wrong rights; else as post_send(). */
    int (*mw_bind)(struct verbs *v, int qp, const struct send_wr *wr, uint32_t *key, ns_t now);
    /* An address handle for UD; a handle, -ENOMEM or -EINVAL. */
    int (*ah_create)(struct verbs *v, uint32_t pd, const struct av *av);
    int (*ah_destroy)(struct verbs *v, int ah);

    /* A completion queue of at least `depth` entries: a handle or -ENOMEM. */
    int (*cq_create)(struct verbs *v, uint32_t depth);
    /* No queue pair uses it any more. */
    void (*cq_destroy)(struct verbs *v, int cq);
    /* Take the oldest completions, at most `n`, into `wc`; returns how many. */
    int (*poll)(struct verbs *v, int cq, struct wc *wc, int n);
    /* A shared receive queue of `depth` receives with up to `max_sge` pieces: a handle, -ENOMEM or -EINVAL. */
    int (*srq_create)(struct verbs *v, uint32_t pd, uint32_t depth, uint16_t max_sge);
    /* Likewise one of an XRC domain. -EINVAL: also without such a domain or completion queue. */
    int (*xrc_srq_create)(struct verbs *v, const struct verbs_xrc_srq_init *init);
    /* 0: its receives are forgotten; -EINVAL: no such queue; -EBUSY: a queue pair uses it. */
    int (*srq_destroy)(struct verbs *v, int srq);
    /* ibv_get_srq_num(): its number, 24 bits, by which XRC requests name it; 0: no such queue. */
    uint32_t (*srq_num)(struct verbs *v, int srq);
    /* An XRC domain, not 0. It lives as long as the provider. */
    uint32_t (*xrcd_alloc)(struct verbs *v);

    /* A queue pair in RESET: a handle; -ENOMEM; -EINVAL: CQ, SRQ or PD unknown, QPN taken. */
    int (*qp_create)(struct verbs *v, const struct verbs_qp_init *init);
    int (*qp_destroy)(struct verbs *v, int qp);
    /* From RESET to RTS in one step (UD: only qkey and sq_psn are used). 0; -EINVAL: state or values. */
    int (*qp_connect)(struct verbs *v, int qp, const struct ep_peer *peer, ns_t now);
    /* Its number, 24 bits; 0: no such queue pair. */
    uint32_t (*qp_num)(struct verbs *v, int qp);
    /* Its state, enum qp_state; a connection manager may have changed it. */
    int (*qp_state)(struct verbs *v, int qp);
    /* A PSN to start from, 24 bits. */
    uint32_t (*pick_psn)(struct verbs *v);
    /* Send no request before `until`; NS_NEVER: what is posted is never sent (again). -ENOTSUP: it cannot. */
    int (*qp_hold)(struct verbs *v, int qp, ns_t until);
    /* 0; -ENOTSUP: such things are not counted, *c is all zero. */
    int (*qp_counters)(struct verbs *v, int qp, struct verbs_counters *c);

    /* ibv_get_async_event(): take the oldest asynchronous event into *e; false: there is none. Those of a simulated
     * host go to the simulator. */
    bool (*async_event)(struct verbs *v, struct ep_event *e);

    /* 0; -EINVAL: state or operation not allowed; -ENOMEM: the queue is full; -E2BIG: too many pieces, or too long a
     * message. Errors of keys and lengths come as completions. What `wr` points to is copied. */
    int (*post_send)(struct verbs *v, int qp, const struct send_wr *wr, ns_t now);
    int (*post_recv)(struct verbs *v, int qp, const struct recv_wr *wr, ns_t now);
    int (*post_srq_recv)(struct verbs *v, int srq, const struct recv_wr *wr, ns_t now);
};

struct rdmacm;

/* An opened provider. */
struct verbs {
    const struct verbs_ops *ops;
    struct rdmacm *cm; /* its connection manager (gen/verbs/rdmacm.h); NULL: none */
};

/* --- The calls by name ------------------------------------------------------------------------ */

static inline uint32_t verbs_pd_alloc(struct verbs *v)
{
    return v->ops->pd_alloc(v);
}
static inline int verbs_mr_reg_iova(struct verbs *v, uint32_t pd, void *mem, uint64_t len, uint64_t iova,
                                    uint8_t access, uint32_t *key)
{
    return v->ops->mr_reg(v, pd, mem, len, iova, access, key);
}
/* With addresses as they are in this process. */
static inline int verbs_mr_reg(struct verbs *v, uint32_t pd, void *mem, uint64_t len, uint8_t access, uint32_t *key)
{
    return v->ops->mr_reg(v, pd, mem, len, (uintptr_t)mem, access, key);
}
static inline int verbs_mr_dereg(struct verbs *v, uint32_t key)
{
    return v->ops->mr_dereg(v, key);
}
static inline int verbs_mr_alloc(struct verbs *v, uint32_t pd, uint64_t most, uint32_t *key)
{
    return v->ops->mr_alloc(v, pd, most, key);
}
static inline int verbs_mw_alloc(struct verbs *v, uint32_t pd, unsigned type, uint32_t *key)
{
    return v->ops->mw_alloc(v, pd, type, key);
}
static inline int verbs_mw_dealloc(struct verbs *v, uint32_t key)
{
    return v->ops->mw_dealloc(v, key);
}
static inline int verbs_mw_bind(struct verbs *v, int qp, const struct send_wr *wr, uint32_t *key, ns_t now)
{
    return v->ops->mw_bind(v, qp, wr, key, now);
}
static inline int verbs_ah_create(struct verbs *v, uint32_t pd, const struct av *av)
{
    return v->ops->ah_create(v, pd, av);
}
static inline int verbs_ah_destroy(struct verbs *v, int ah)
{
    return v->ops->ah_destroy(v, ah);
}
static inline int verbs_cq_create(struct verbs *v, uint32_t depth)
{
    return v->ops->cq_create(v, depth);
}
static inline void verbs_cq_destroy(struct verbs *v, int cq)
{
    v->ops->cq_destroy(v, cq);
}
static inline int verbs_poll(struct verbs *v, int cq, struct wc *wc, int n)
{
    return v->ops->poll(v, cq, wc, n);
}
static inline int verbs_srq_create(struct verbs *v, uint32_t pd, uint32_t depth, uint16_t max_sge)
{
    return v->ops->srq_create(v, pd, depth, max_sge);
}
static inline int verbs_xrc_srq_create(struct verbs *v, const struct verbs_xrc_srq_init *init)
{
    return v->ops->xrc_srq_create(v, init);
}
static inline int verbs_srq_destroy(struct verbs *v, int srq)
{
    return v->ops->srq_destroy(v, srq);
}
static inline uint32_t verbs_srq_num(struct verbs *v, int srq)
{
    return v->ops->srq_num(v, srq);
}
static inline uint32_t verbs_xrcd_alloc(struct verbs *v)
{
    return v->ops->xrcd_alloc(v);
}
static inline int verbs_qp_create(struct verbs *v, const struct verbs_qp_init *init)
{
    return v->ops->qp_create(v, init);
}
static inline int verbs_qp_destroy(struct verbs *v, int qp)
{
    return v->ops->qp_destroy(v, qp);
}
static inline int verbs_qp_connect(struct verbs *v, int qp, const struct ep_peer *peer, ns_t now)
{
    return v->ops->qp_connect(v, qp, peer, now);
}
static inline uint32_t verbs_qp_num(struct verbs *v, int qp)
{
    return v->ops->qp_num(v, qp);
}
static inline int verbs_qp_state(struct verbs *v, int qp)
{
    return v->ops->qp_state(v, qp);
}
/* Whether receives may be posted to a queue pair that a connection manager connects. */
static inline bool verbs_qp_takes_receives(struct verbs *v, int qp)
{
    int state = v->ops->qp_state(v, qp);

    return state >= QPS_RTR && state <= QPS_RTS;
}
static inline uint32_t verbs_pick_psn(struct verbs *v)
{
    return v->ops->pick_psn(v);
}
static inline int verbs_qp_hold(struct verbs *v, int qp, ns_t until)
{
    return v->ops->qp_hold(v, qp, until);
}
static inline struct verbs_counters verbs_qp_counters(struct verbs *v, int qp)
{
    struct verbs_counters c;

    v->ops->qp_counters(v, qp, &c);
    return c;
}
/* Take asynchronous events up to one of a queue pair that a request of the peer's moved to the error state: its handle,
 * and the reason in words, *why; -1: there is none. */
int verbs_failed_qp(struct verbs *v, const char **why);
static inline int verbs_post_send(struct verbs *v, int qp, const struct send_wr *wr, ns_t now)
{
    return v->ops->post_send(v, qp, wr, now);
}

#endif
