/* layer 3 (rnic): an RDMA device as the commands of the agent see it: the verbs, and RDMA-CM, as one table of
 * functions with every attribute as raw as the verbs have it. A real device stands behind ibv_rnic_open(); nothing else
 * in the agent knows libibverbs. A call that a device lacks is NULL in its table: the command answers ENOSYS.
 *
 * Objects are pointers of the provider's. `user` is the agent's own pointer for an object, which events name. All calls
 * return 0 or a negative errno, and none of them waits for the peer. */
#ifndef RDMATRACE_GEN_RNIC_RNIC_H
#define RDMATRACE_GEN_RNIC_RNIC_H

#include "buf.h"
#include "src/transport/verbs.h"

#define RNIC_SGES    64  /* most pieces of a work request */
#define RNIC_PRIVATE 256 /* most bytes of private data in a message of RDMA-CM */
#define RNIC_FDS     3   /* most descriptors of rnic_ops.fds() beside those of channels */

/* Types of queue pairs; values of libibverbs. */
enum rnic_qp_type {
    RNIC_QP_RC = 2,
    RNIC_QP_UC = 3,
    RNIC_QP_UD = 4,
    RNIC_QP_RAW = 8,
    RNIC_QP_XRC_SEND = 9,
    RNIC_QP_XRC_RECV = 10,
};

/* More rights of regions than those of src/transport/verbs.h; values of libibverbs, as all ACCESS_* up to MW_BIND. */
enum {
    RNIC_ACCESS_ZERO_BASED = 1u << 5,
    RNIC_ACCESS_ON_DEMAND = 1u << 6,
    RNIC_ACCESS_HUGETLB = 1u << 7,
    RNIC_ACCESS_FLUSH_GLOBAL = 1u << 8,
    RNIC_ACCESS_FLUSH_PERSISTENT = 1u << 9,
    RNIC_ACCESS_RELAXED_ORDERING = 1u << 20,
};

/* Operations that a queue pair has to be created for, bits of rnic_qp_init.send_ops_flags; values of libibverbs. */
enum {
    RNIC_OPS_FLUSH = 1u << 11,
    RNIC_OPS_ATOMIC_WRITE = 1u << 12,
};

/* More attributes of a queue pair than the QPA_* of src/transport/verbs.h; values of libibverbs. */
enum {
    RNIC_QPA_ALT_PATH = 1u << 14,
    RNIC_QPA_PATH_MIG_STATE = 1u << 18,
    RNIC_QPA_CAP = 1u << 19,
    RNIC_QPA_RATE_LIMIT = 1u << 25,
};

/* Attributes of a shared receive queue that are modified. */
enum {
    RNIC_SRQ_MAX_WR = 1u << 0,
    RNIC_SRQ_LIMIT = 1u << 1,
};

/* What of a region is changed. */
enum {
    RNIC_REREG_TRANSLATION = 1u << 0,
    RNIC_REREG_PD = 1u << 1,
    RNIC_REREG_ACCESS = 1u << 2,
};

/* A path: an address vector with nothing filled in. */
struct rnic_av {
    uint8_t dgid[16];
    uint32_t flow;       /* flow label */
    uint32_t sgid_index; /* of this device's GID table */
    uint32_t hop_limit;
    uint32_t tclass; /* traffic class */
    uint32_t dlid, sl, src_path_bits, static_rate;
    uint32_t port;      /* of this device, from 1 */
    uint32_t is_global; /* 1: with a GRH; always so on RoCE */
};

/* Attributes of a queue pair, and which of them are set. Numbers go to the device as they are, wrong ones too. */
struct rnic_qp_attr {
    uint32_t state, cur_state; /* enum qp_state */
    uint32_t path_mtu;         /* bytes; below 256: the code */
    uint32_t path_mig_state, qkey, rq_psn, sq_psn, dest_qpn;
    uint32_t access; /* ACCESS_* */
    uint32_t pkey_index, alt_pkey_index, en_sqd_async_notify, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port;
    uint32_t timeout, retry_cnt, rnr_retry, alt_port, alt_timeout, rate_limit;
    uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
    struct rnic_av av, alt_av;
};

struct rnic_qp_init {
    uint32_t type;                         /* enum rnic_qp_type */
    void *pd, *send_cq, *recv_cq;          /* NULL: none */
    void *srq, *xrcd;                      /* NULL: none */
    uint32_t max_send_wr, max_recv_wr;     /* in: at least so many; out: how many */
    uint32_t max_send_sge, max_recv_sge;   /* in and out */
    uint32_t max_inline;                   /* bytes; in and out */
    uint32_t create_flags, send_ops_flags; /* of libibverbs; 0: none */
    bool sig_all;
    uint32_t qpn; /* out */
};

struct rnic_srq_init {
    uint32_t max_wr, max_sge, limit;
    uint32_t max_tags, max_tag_ops; /* tag matching; 0: without it */
    void *pd, *xrcd, *cq;           /* xrcd: XRC only; cq: XRC and tag matching only */
    uint32_t srqn;                  /* out: XRC only */
};

/* A region. */
struct rnic_mr {
    void *pd;
    void *addr;          /* in this process */
    uint64_t len;        /* bytes */
    uint64_t iova;       /* its address in work requests; without ZERO_BASED only */
    bool has_iova;       /* else: `addr` */
    uint32_t access;     /* ACCESS_*, RNIC_ACCESS_* */
    uint32_t lkey, rkey; /* out */
};

/* Enhanced connection establishment, ibv_query_ece(3). */
struct rnic_ece {
    uint32_t vendor_id, options, comp_mask;
};

/* A rule of flow steering, ibv_create_flow(3). */
struct rnic_flow {
    uint32_t type, port, priority; /* type: IBV_FLOW_ATTR_* */
    bool has_mac, has_ip;
    uint8_t mac[6], ip[4]; /* destination */
    uint32_t udp_port;     /* destination; 0: any */
};

/* A work request: that of the verbs, with the objects it names. */
struct rnic_send {
    struct send_wr wr;  /* opcode, flags, pieces, addresses, keys */
    void *ah, *mw, *mr; /* UD; BIND_MW; NULL: none */
    uint32_t send_ops;  /* send_ops_flags of its queue pair */
    uint8_t data[8];    /* ATOMIC_WRITE: the bytes of its piece */
    struct sge sge[RNIC_SGES];
};

struct rnic_wc {
    struct wc wc;
    uint32_t vendor_err;
    uint32_t raw_status, raw_opcode, raw_flags; /* as the device gave them */
    uint32_t slid, sl, path_bits;
    uint64_t stamp; /* cq_poll_stamped(): when it completed, by the device's clock, in its ticks */
};

/* Something that happened; see rnic_ops.next_event(). */
struct rnic_event {
    enum { RNIC_ASYNC, RNIC_NOTIFY, RNIC_CM } what;
    const char *name;   /* "QP_FATAL", "CONNECT_REQUEST"; NOTIFY: "" */
    void *user;         /* the object; NULL: the device or a port */
    uint32_t port;      /* ASYNC without an object: the port, or 0 */
    void *id;           /* CM, CONNECT_REQUEST: the new id, the caller's from now on; else NULL */
    int status;         /* CM: as librdmacm gives it */
    uint32_t qpn, qkey; /* CM */
    uint32_t responder_resources, initiator_depth, retry_count, rnr_retry; /* CM: of a connection */
    struct rnic_av av;                                                     /* CM: datagrams and multicast */
    uint32_t n_private;
    uint8_t private_data[RNIC_PRIVATE];
};

/* What connect() and accept() announce. */
struct rnic_cm_param {
    uint32_t qpn; /* the queue pair is brought to its states by the caller */
    uint32_t responder_resources, initiator_depth, flow_control, retry_count, rnr_retry;
    bool srq;
    uint32_t n_private;
    uint8_t private_data[RNIC_PRIVATE];
};

struct rnic;

struct rnic_ops {
    const char *name; /* "ibverbs" */
    void (*close)(struct rnic *r);
    /* Append " dev=NAME" for each device. */
    int (*list)(struct rnic *r, struct buf *out);
    /* Open the device of that name ("": the first); -ENODEV. */
    int (*open)(struct rnic *r, const char *name);
    /* Append " key=value" for attributes: of the device, of a port; its GIDs, as " gid=INDEX,GID,TYPE,NETDEV",
     * of all ports if `port` is 0; the P_Keys of a port, as " pkey=INDEX,0xVALUE". */
    int (*query)(struct rnic *r, struct buf *out);
    int (*query_port)(struct rnic *r, uint32_t port, struct buf *out);
    int (*query_gids)(struct rnic *r, uint32_t port, struct buf *out);
    int (*query_pkeys)(struct rnic *r, uint32_t port, struct buf *out);
    /* The name of the device that is open. */
    const char *(*device)(struct rnic *r);
    /* The clock of the time stamps of completions, in its ticks; -EOPNOTSUPP. NULL: the provider has none. */
    int (*device_clock)(struct rnic *r, uint64_t *ticks);
    /* Append " rdma.NAME=VALUE" for each counter; NULL: they are in sysfs. */
    void (*counters)(struct rnic *r, struct buf *out);

    int (*pd_alloc)(struct rnic *r, void **pd);
    int (*pd_free)(struct rnic *r, void *pd);
    int (*xrcd_open)(struct rnic *r, void **xrcd);
    int (*xrcd_close)(struct rnic *r, void *xrcd);
    int (*channel_create)(struct rnic *r, void **channel);
    int (*channel_destroy)(struct rnic *r, void *channel);
    int (*channel_fd)(struct rnic *r, void *channel);
    /* *entries: at least so many; out: how many. */
    int (*cq_create)(struct rnic *r, uint32_t *entries, void *channel, uint32_t vector, void *user, void **cq);
    int (*cq_resize)(struct rnic *r, void *cq, uint32_t *entries);
    int (*cq_arm)(struct rnic *r, void *cq, bool solicited);
    /* At most `n` completions; how many, or a negative errno. */
    int (*cq_poll)(struct rnic *r, void *cq, struct rnic_wc *wc, int n);
    int (*cq_destroy)(struct rnic *r, void *cq);
    /* One whose completions have the device's time stamps; it is polled by the second call only. NULL: the provider has
     * none. */
    int (*cq_create_stamped)(struct rnic *r, uint32_t *entries, void *channel, uint32_t vector, void *user, void **cq);
    int (*cq_poll_stamped)(struct rnic *r, void *cq, struct rnic_wc *wc, int n);
    int (*srq_create)(struct rnic *r, struct rnic_srq_init *init, void *user, void **srq);
    int (*srq_modify)(struct rnic *r, void *srq, uint32_t mask, uint32_t max_wr, uint32_t limit);
    int (*srq_query)(struct rnic *r, void *srq, struct rnic_srq_init *out);
    int (*srq_destroy)(struct rnic *r, void *srq);

    int (*mr_reg)(struct rnic *r, struct rnic_mr *mr, void **handle);
    int (*mr_rereg)(struct rnic *r, void *handle, uint32_t flags, struct rnic_mr *mr);
    int (*mr_dereg)(struct rnic *r, void *handle);
    /* Type 1 or 2; *rkey: its key. */
    int (*mw_alloc)(struct rnic *r, void *pd, uint32_t type, uint32_t *rkey, void **mw);
    /* Type 1: ibv_bind_mw(); `s` names the queue pair's work request as a BIND_MW does. *rkey: the new key. */
    int (*mw_bind)(struct rnic *r, void *qp, const struct rnic_send *s, uint32_t *rkey);
    int (*mw_free)(struct rnic *r, void *mw);

    /* What few devices have; NULL: the provider has none. A region without memory; one of `off` and further bytes of a
     * DMA buffer; advice about a piece of a region, IBV_ADVISE_MR_ADVICE_*. */
    int (*null_mr)(struct rnic *r, struct rnic_mr *mr, void **handle);
    int (*dmabuf_mr)(struct rnic *r, struct rnic_mr *mr, int fd, uint64_t off, void **handle);
    int (*advise)(struct rnic *r, void *pd, uint32_t advice, bool flush, const struct sge *piece);
    /* Memory of the device; `align`: logarithm to base 2. Its regions are zero based. */
    int (*dm_alloc)(struct rnic *r, uint64_t len, uint32_t align, void **dm);
    int (*dm_free)(struct rnic *r, void *dm);
    int (*dm_write)(struct rnic *r, void *dm, uint64_t off, const void *from, uint64_t n);
    int (*dm_read)(struct rnic *r, void *dm, uint64_t off, void *to, uint64_t n);
    int (*dm_mr)(struct rnic *r, struct rnic_mr *mr, void *dm, uint64_t off, void **handle);
    int (*ece_query)(struct rnic *r, void *qp, struct rnic_ece *ece);
    int (*ece_set)(struct rnic *r, void *qp, const struct rnic_ece *ece);
    int (*flow_create)(struct rnic *r, void *qp, const struct rnic_flow *f, void **flow);
    int (*flow_destroy)(struct rnic *r, void *flow);

    int (*qp_create)(struct rnic *r, struct rnic_qp_init *init, void *user, void **qp);
    int (*qp_modify)(struct rnic *r, void *qp, uint32_t mask, const struct rnic_qp_attr *a);
    int (*qp_query)(struct rnic *r, void *qp, struct rnic_qp_attr *a);
    int (*qp_destroy)(struct rnic *r, void *qp);
    int (*ah_create)(struct rnic *r, void *pd, const struct rnic_av *av, void **ah);
    int (*ah_destroy)(struct rnic *r, void *ah);
    int (*mcast)(struct rnic *r, void *qp, const uint8_t gid[16], uint16_t lid, bool attach);

    int (*post_send)(struct rnic *r, void *qp, const struct rnic_send *s);
    int (*post_recv)(struct rnic *r, void *qp, const struct recv_wr *wr);
    int (*post_srq)(struct rnic *r, void *srq, const struct recv_wr *wr);

    /* Descriptors that become readable when there are events; how many. */
    int (*fds)(struct rnic *r, int fd[RNIC_FDS]);
    /* The oldest event: 1, or 0 if there is none. `channel`: of this completion channel; NULL: all others. */
    int (*next_event)(struct rnic *r, void *channel, struct rnic_event *e);

    /* RDMA-CM: the calls of librdmacm. `ps`: of its port spaces. `addr`: 16 bytes, IPv4-mapped. */
    int (*cm_create)(struct rnic *r, uint32_t ps, void *user, void **id);
    /* `user` of an id that came with CONNECT_REQUEST. */
    void (*cm_own)(struct rnic *r, void *id, void *user);
    int (*cm_destroy)(struct rnic *r, void *id);
    int (*cm_bind)(struct rnic *r, void *id, const uint8_t addr[16], uint16_t port);
    int (*cm_listen)(struct rnic *r, void *id, uint32_t backlog);
    int (*cm_resolve)(struct rnic *r, void *id, const uint8_t addr[16], uint16_t port, uint32_t ms);
    int (*cm_route)(struct rnic *r, void *id, uint32_t ms);
    int (*cm_connect)(struct rnic *r, void *id, const struct rnic_cm_param *p);
    int (*cm_accept)(struct rnic *r, void *id, const struct rnic_cm_param *p);
    int (*cm_reject)(struct rnic *r, void *id, const uint8_t *data, uint32_t n);
    int (*cm_establish)(struct rnic *r, void *id);
    int (*cm_disconnect)(struct rnic *r, void *id);
    int (*cm_join)(struct rnic *r, void *id, const uint8_t addr[16]);
    int (*cm_leave)(struct rnic *r, void *id, const uint8_t addr[16]);
    int (*cm_option)(struct rnic *r, void *id, uint32_t option, uint32_t value);
    /* ECE that the REQ or REP of an id is to announce, and what its peer announced; NULL: there is no such thing. */
    int (*cm_ece_set)(struct rnic *r, void *id, const struct rnic_ece *ece);
    int (*cm_ece)(struct rnic *r, void *id, struct rnic_ece *ece);
    /* Modify `qp` to `state` with what the connection says (rdma_init_qp_attr()). */
    int (*cm_modify)(struct rnic *r, void *id, void *qp, uint32_t state);
};

/* A device that was opened, or can be: its provider's structure begins with it. */
struct rnic {
    const struct rnic_ops *ops;
};

/* What the provider over libibverbs and librdmacm cannot do, in words. */
#define RNIC_WHY 200
/* Load libibverbs and librdmacm, and make a device of them that is not open yet. 0; -ENOSYS with the reason in `why`:
 * the libraries are not there, or the program was built without their headers. */
int ibv_rnic_open(struct rnic **r, char why[RNIC_WHY]);

#endif
