/* layer 2 (transport): the verbs' vocabulary: queue pair attributes, work requests, completions (IBTA volume 1,
 * chapters 10, 11). */
#ifndef RDMATRACE_VERBS_H
#define RDMATRACE_VERBS_H

#include "types.h"

enum qp_type {
    QPT_RC,      /* reliable connection */
    QPT_UC,      /* unreliable connection */
    QPT_UD,      /* unreliable datagram; QP 1 (GSI) is one, too */
    QPT_XRC_INI, /* extended reliable connection, initiator: it has no receive queue */
    QPT_XRC_TGT, /* its target: no send queue; requests name a shared receive queue of its XRC domain */
    QP_TYPES
};
/* "RC", "UC", "UD", "XRC_INI", "XRC_TGT". */
const char *qp_type_str(enum qp_type t);
/* The type of a queue pair that sends requests, by the name of its service: "RC", "UC", "UD", "XRC"; QP_TYPES: none. */
enum qp_type qp_type_of_service(const char *name);
/* That name: "RC", "UC", "UD", or "XRC" for both ends. */
const char *qp_service_str(enum qp_type t);
/* The transport service of its packets, enum service. */
unsigned qp_service(enum qp_type t);
/* True if requests are acknowledged: RC and XRC. */
static inline bool qp_is_reliable(unsigned type)
{
    return type != QPT_UC && type != QPT_UD;
}

enum qp_state {
    QPS_RESET,
    QPS_INIT, /* receives may be posted */
    QPS_RTR,  /* ready to receive */
    QPS_RTS,  /* ready to send */
    QPS_SQD,  /* send queue drained: nothing new is started */
    QPS_SQE,  /* send queue error (UC, UD): the receive queue still works */
    QPS_ERR,  /* all work requests are flushed */
};
/* "RESET" ... "ERR". */
const char *qp_state_str(enum qp_state s);

/* Access rights of regions, windows and queue pairs; masks. Remote write and atomic need local write (10.6.3.1). */
enum {
    ACCESS_LOCAL_WRITE = 1u << 0,
    ACCESS_REMOTE_WRITE = 1u << 1,
    ACCESS_REMOTE_READ = 1u << 2,
    ACCESS_REMOTE_ATOMIC = 1u << 3,
    ACCESS_MW_BIND = 1u << 4,
    ACCESS_FLUSH_GLOBAL = 1u << 5,     /* FLUSH: to global visibility */
    ACCESS_FLUSH_PERSISTENT = 1u << 6, /* FLUSH: to persistence; of a region: its memory is persistent */
    ACCESS_ZERO_BASED = 1u << 7,       /* of a region or type 2 window: addresses count from its start */
};
#define ACCESS_REMOTE                                                                                                  \
    (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC | ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT)

/* Attributes of qp_modify(); masks. Values of the kernel (uapi/rdma/ib_user_verbs.h), so that its traces can be
 * read. */
enum {
    QPA_STATE = 1u << 0,
    QPA_CUR_STATE = 1u << 1,
    QPA_EN_SQD_ASYNC_NOTIFY = 1u << 2,
    QPA_ACCESS_FLAGS = 1u << 3,
    QPA_PKEY_INDEX = 1u << 4,
    QPA_PORT = 1u << 5,
    QPA_QKEY = 1u << 6,
    QPA_AV = 1u << 7,
    QPA_PATH_MTU = 1u << 8,
    QPA_TIMEOUT = 1u << 9,
    QPA_RETRY_CNT = 1u << 10,
    QPA_RNR_RETRY = 1u << 11,
    QPA_RQ_PSN = 1u << 12,
    QPA_MAX_QP_RD_ATOMIC = 1u << 13,
    QPA_ALT_PATH = 1u << 14,
    QPA_MIN_RNR_TIMER = 1u << 15,
    QPA_SQ_PSN = 1u << 16,
    QPA_MAX_DEST_RD_ATOMIC = 1u << 17,
    QPA_PATH_MIG_STATE = 1u << 18,
    QPA_DEST_QPN = 1u << 20,
};

/* Path migration state of a connected queue pair (17.2.8); values of enum ibv_mig_state. */
enum mig_state {
    MIG_MIGRATED, /* packets carry MigReq 1; also before any alternate path is loaded */
    MIG_REARM,    /* an alternate path is loaded, packets carry MigReq 0; armed once the peer's do, too */
    MIG_ARMED,    /* may migrate: packets carry MigReq 0 */
    MIG_STATES,
};
/* "MIGRATED", "REARM", "ARMED". */
const char *mig_state_str(enum mig_state s);

/* The path to a peer: what goes into the headers below the BTH. */
struct av {
    uint8_t dgid[16];    /* IPv6 address, or IPv4-mapped (::ffff:a.b.c.d) */
    uint8_t dmac[6];     /* Ethernet: the next hop */
    uint16_t dlid;       /* native InfiniBand */
    uint16_t sport;      /* RoCEv2: UDP source port; 0: chosen by the endpoint's policy */
    uint32_t flow;       /* flow label of IPv6 and GRH, 20 bits */
    uint8_t tclass;      /* TOS or traffic class: DSCP in the upper 6 bits, ECN in the lower 2 */
    uint8_t hop_limit;   /* TTL or hop limit; 0: 64 */
    uint8_t sl;          /* native InfiniBand: service level; RoCE: VLAN priority */
    bool grh;            /* native InfiniBand: with a GRH (RoCE always has its network header) */
    uint8_t port;        /* own port that the packets leave by, 1 or 2; 0: 1 */
    uint16_t sgid_index; /* own address, of an endpoint that has several: 0 to addrs - 1 (struct ep_config) */
};

/* Attributes of a queue pair (11.2.5). The mask says which are used. */
struct qp_attr {
    uint8_t state;              /* enum qp_state: the state to go to */
    uint8_t cur_state;          /* enum qp_state: the present state, to be verified */
    uint8_t access;             /* ACCESS_REMOTE_*: what incoming requests may do */
    uint8_t port;               /* 1 */
    uint16_t pkey;              /* the partition key itself (a table of one, so its index is 0) */
    uint32_t qkey;              /* UD: key of this queue pair */
    uint32_t dest_qpn;          /* connected: the peer */
    uint32_t rq_psn;            /* first PSN expected */
    uint32_t sq_psn;            /* first PSN sent */
    uint16_t path_mtu;          /* bytes: 256, 512, 1024, 2048, 4096 */
    uint8_t max_rd_atomic;      /* initiator depth: READs and atomics outstanding, 0 to 255 */
    uint8_t max_dest_rd_atomic; /* responder resources: READs and atomics accepted from the peer, 0 to 255 */
    uint8_t min_rnr_timer;      /* 5-bit code sent in RNR NAKs */
    uint8_t timeout;            /* local ACK timeout: 4.096 us x 2^n, n 0 to 31; 0: none */
    uint8_t retry_cnt;          /* 0 to 7 */
    uint8_t rnr_retry;          /* 0 to 7; 7: no limit */
    struct av av;
    struct av alt_av;    /* the alternate path */
    uint16_t alt_pkey;   /* its partition key */
    uint8_t alt_timeout; /* its local ACK timeout, as `timeout` */
    uint8_t mig_state;   /* enum mig_state; MIG_MIGRATED or MIG_REARM may be given, ARMED follows by itself */
};

enum wr_opcode {
    WR_SEND,
    WR_SEND_WITH_IMM,
    WR_SEND_WITH_INV,
    WR_RDMA_WRITE,
    WR_RDMA_WRITE_WITH_IMM,
    WR_RDMA_READ,
    WR_ATOMIC_CMP_AND_SWP,
    WR_ATOMIC_FETCH_AND_ADD,
    WR_ATOMIC_WRITE, /* 8 bytes, written at once */
    WR_FLUSH,        /* earlier WRITEs become visible or persistent at the peer */
    WR_BIND_MW,      /* local: bind a type 2 memory window */
    WR_LOCAL_INV,    /* local: invalidate a key */
    WR_REG_MR,       /* local: fast registration of an allocated region */
};
/* "SEND", "RDMA_WRITE_WITH_IMM", ... as in ibverbs without the prefix. */
const char *wr_opcode_str(enum wr_opcode op);

/* Flags of a send work request; masks. */
enum {
    SEND_FENCE = 1u << 0,     /* wait until the READs and atomics before it are complete */
    SEND_SIGNALED = 1u << 1,  /* generate a completion */
    SEND_SOLICITED = 1u << 2, /* solicited event at the peer */
    SEND_INLINE = 1u << 3,    /* the data is copied when posted; no L_Key is needed */
};

/* Placement types of FLUSH; masks, as in the FETH. */
enum {
    FLUSH_GLOBAL = 1u << 0,
    FLUSH_PERSISTENT = 1u << 1,
};

/* Scatter/gather element: a piece of local memory. */
struct sge {
    uint64_t addr;   /* in the address space of the region's `iova` */
    uint32_t length; /* bytes */
    uint32_t lkey;
};

struct send_wr {
    uint64_t wr_id;            /* the caller's, returned in the completion */
    uint8_t opcode;            /* enum wr_opcode */
    uint8_t flags;             /* SEND_* */
    uint16_t num_sge;          /* pieces at sg_list */
    const struct sge *sg_list; /* copied when posted */
    uint32_t imm_data;         /* WITH_IMM: host order */
    uint32_t inv_rkey;         /* WITH_INV: the peer's key; LOCAL_INV: the key; BIND_MW, REG_MR: the present key */
    uint64_t remote_addr;      /* RDMA, atomics, FLUSH; BIND_MW, REG_MR: start of the window or region */
    uint32_t rkey;             /* RDMA, atomics, FLUSH; BIND_MW, REG_MR: the new key (its low 8 bits may change) */
    uint64_t compare_add;      /* atomics: value compared, or added */
    uint64_t swap;             /* COMPARE & SWAP: value stored */
    uint32_t remote_qpn;       /* UD */
    uint32_t remote_qkey;      /* UD; upper bit set: the queue pair's own key is used */
    uint32_t ah;               /* UD: address handle */
    uint32_t remote_srqn;      /* XRC: number of the peer's shared receive queue, 24 bits */
    uint32_t mr_key;           /* BIND_MW: L_Key of the region */
    uint64_t mw_length;        /* BIND_MW, REG_MR: bytes of the window or region */
    void *reg_mem;         /* REG_MR: its memory, the caller's until the region is deregistered or registered again */
    uint32_t flush_length; /* FLUSH: bytes from remote_addr on, up to 2^31 */
    uint8_t placement;     /* FLUSH: FLUSH_GLOBAL, FLUSH_PERSISTENT or both */
    bool whole_region;     /* FLUSH: all of the region of `rkey`; address and length do not matter */
    uint8_t mw_access;     /* BIND_MW: ACCESS_REMOTE_*, ACCESS_ZERO_BASED; REG_MR: ACCESS_* but that */
};

struct recv_wr {
    uint64_t wr_id;
    const struct sge *sg_list; /* copied when posted */
    uint16_t num_sge;
};

/* Completion status (11.6.2). Values as in ibverbs. */
enum wc_status {
    WC_SUCCESS = 0,
    WC_LOC_LEN_ERR = 1,         /* message longer than the receive buffer, or than a path allows */
    WC_LOC_QP_OP_ERR = 2,       /* the queue pair cannot do this */
    WC_LOC_EEC_OP_ERR = 3,      /* reliable datagram: not used */
    WC_LOC_PROT_ERR = 4,        /* a piece of local memory is not covered by its L_Key */
    WC_WR_FLUSH_ERR = 5,        /* the queue pair was in error */
    WC_MW_BIND_ERR = 6,         /* a window cannot be bound like this */
    WC_BAD_RESP_ERR = 7,        /* unexpected response of the responder */
    WC_LOC_ACCESS_ERR = 8,      /* the responder's own buffer failed (WRITE with immediate) */
    WC_REM_INV_REQ_ERR = 9,     /* NAK: invalid request */
    WC_REM_ACCESS_ERR = 10,     /* NAK: remote access error */
    WC_REM_OP_ERR = 11,         /* NAK: remote operational error */
    WC_RETRY_EXC_ERR = 12,      /* no response after all retries */
    WC_RNR_RETRY_EXC_ERR = 13,  /* RNR NAK after all retries */
    WC_LOC_RDD_VIOL_ERR = 14,   /* reliable datagram: not used */
    WC_REM_INV_RD_REQ_ERR = 15, /* reliable datagram: not used */
    WC_REM_ABORT_ERR = 16,      /* the peer aborted */
    WC_INV_EECN_ERR = 17,       /* reliable datagram: not used */
    WC_INV_EEC_STATE_ERR = 18,  /* reliable datagram: not used */
    WC_FATAL_ERR = 19,
    WC_RESP_TIMEOUT_ERR = 20,
    WC_GENERAL_ERR = 21,
};
/* The verbs' name without its prefix: "SUCCESS", "RETRY_EXC_ERR"; "?" for other values. */
const char *wc_status_str(enum wc_status s);

enum wc_opcode {
    WC_SEND,
    WC_RDMA_WRITE,
    WC_RDMA_READ,
    WC_COMP_SWAP,
    WC_FETCH_ADD,
    WC_ATOMIC_WRITE,
    WC_FLUSH,
    WC_BIND_MW,
    WC_LOCAL_INV,
    WC_REG_MR,
    WC_RECV,
    WC_RECV_RDMA_WITH_IMM,
};
/* "SEND", "RECV_RDMA_WITH_IMM", ... */
const char *wc_opcode_str(enum wc_opcode op);
/* Operation in the completion of a work request. */
enum wc_opcode wc_opcode_of(enum wr_opcode op);

/* Flags of a completion; masks. */
enum {
    WC_GRH = 1u << 0,       /* UD: the first 40 bytes of the buffer hold a network header */
    WC_WITH_IMM = 1u << 1,  /* imm_data is valid */
    WC_WITH_INV = 1u << 2,  /* inv_rkey is valid */
    WC_SOLICITED = 1u << 3, /* the sender solicited an event */
};

struct wc {
    uint64_t wr_id;
    uint8_t status;    /* enum wc_status */
    uint8_t opcode;    /* enum wc_opcode; valid for receives also after an error */
    uint8_t flags;     /* WC_* */
    uint16_t pkey;     /* UD receives */
    uint32_t byte_len; /* receives, READs and atomics: bytes (UD: with the 40 of the network header) */
    uint32_t qpn;      /* local queue pair */
    uint32_t src_qp;   /* UD receives */
    uint32_t imm_data; /* host order */
    uint32_t inv_rkey; /* key that the peer invalidated */
    ns_t when;         /* time of completion */
};

/* 4.096 us x 2^n, the code of all InfiniBand timeouts (9.7.6.1.3); n 1 to 31, else NS_NEVER. */
static inline ns_t ack_timeout(unsigned n)
{
    return n == 0 || n > 31 ? NS_NEVER : INT64_C(4096) << n;
}
/* The tolerance of ACK timeouts and RNR timers: the earliest time at which a timer of `t` may expire, an eighth sooner,
 * because hosts count in ticks and the tap has another clock. */
static inline ns_t timer_earliest(ns_t t)
{
    return t - t / 8;
}
/* The longest time for which an ACK timer of `t` may run: four times that of its code (9.7.6.1.3). */
static inline ns_t timer_latest(ns_t t)
{
    return 4 * t;
}

#endif
