/* layer 3 (endpoint): an endpoint: adapter, memory and queue pairs without any I/O: frames go in, frames come out, time
 * is an argument.
 *
 * The calls, in the shape of ngtcp2's:
 *
 *     struct endpoint *ep = ep_new(&config);
 *     int qp = ep_qp_create(ep, &init);                 handle, 0 and up
 *     ep_qp_connect(ep, qp, &peer, now)                 or ep_qp_modify() step by step
 *     ep_post_recv(ep, qp, &recv, now); ep_post_send(ep, qp, &send, now);
 *     for (;;) {
 *         while ((n = ep_tx(ep, buf, sizeof buf, now)) > 0) give n bytes to the network;
 *         take a frame from the network: ep_rx(ep, frame, len, now);
 *         when the clock reaches ep_next_expiry(ep): ep_expire(ep, now);
 *         while (ep_poll(ep, cq, wc, ARRAY_LEN(wc)) > 0) ...; while (ep_event(ep, &event)) ...;
 *     }
 *
 * The endpoint sends nothing by itself: after any call ep_tx() may return frames, and ep_next_expiry() may have
 * changed. Handles are small indices; calls with a wrong handle return -EINVAL.
 */
#ifndef RDMATRACE_GEN_ENDPOINT_ENDPOINT_H
#define RDMATRACE_GEN_ENDPOINT_ENDPOINT_H

#include "dissect/link/macc.h"
#include "gen/endpoint/build.h"
#include "gen/endpoint/faults.h"
#include "gen/endpoint/policy.h"
#include "gen/verbs/verbs.h"
#include "src/cc/cc.h"
#include "src/cc/np.h"
#include "src/transport/effects.h"
#include "src/transport/qp.h"
#include "src/transport/ud.h"
#include "tokens.h"

struct endpoint;

/* Behaviour that differs from the defaults. */
enum ep_profile {
    EP_STRICT,
    /* soft-RoCE: no credits, MigReq 0, P_Key ffff, retry count 7 without limit, every duplicate acknowledged, see
     * responder.h */
    EP_RXE,
    /* Data are placed out of order, as adapters do that networks may spray: packets ahead of a missing one are kept,
     * see reorder.c; what is lost is retransmitted selectively. */
    EP_NV,
};
/* By name ("strict", "rxe", "nv"): -1: there is none. */
int ep_profile_find(const char *name);

/* What an endpoint does about congestion; all zero: nothing. */
struct ep_congestion {
    struct cc_config cc; /* of all queue pairs; no scheme, or `none`: there is none */
    bool cnps;           /* send CNPs for packets marked CE, as `np` says */
    struct np_config np;
};

/* What a scheme needs that there is not, in words; NULL: nothing. `switches`: the network is a fabric (gen/fabric). */
const char *ep_cc_lacks(const struct cc_scheme *scheme, bool switches);

struct ep_config {
    struct link_addr addr;    /* MAC address, VLAN, encapsulation, GID, LID */
    struct link_addr port2;   /* with two_ports: of the second port */
    bool two_ports;           /* paths may leave by port 2 (struct av) */
    uint16_t addrs;           /* consecutive addresses from `addr` on, each with a MAC address of its own (struct av:
                               * sgid_index); 0: 1. More than 1: on Ethernet only, and without two_ports */
    uint16_t mtu;             /* bytes of path MTU that the port allows: 256 to 4096; UD uses it; 0: 1024 */
    uint16_t pkey;            /* 0: 0xffff */
    uint8_t profile;          /* enum ep_profile */
    bool migreq;              /* MigReq bit of queue pairs that were never given a migration state */
    bool credits;             /* end-to-end flow control on queue pairs without SRQ: advertised and honoured */
    bool no_verify;           /* do not verify ICRCs of received frames */
    bool no_icrc;             /* nobody looks at the ICRCs of sent frames: they are not computed (for simulations) */
    bool no_payload;          /* nobody looks at payload: it is not copied, and undefined in frames (for simulations) */
    bool no_self_check;       /* do not check sent packets against the rules (for benchmarks) */
    struct policies policies; /* NULL members: defaults */
    const enum rule *faults;  /* rules to break; copied */
    unsigned n_faults;
    uint32_t flaws; /* bits 1 << enum flaw */
    uint64_t seed;
    struct ep_congestion congestion;
    uint64_t link_rate; /* bit/s of the port, which congestion control begins with; 0: 100 G */
    ns_t pace_slack;    /* struct cc_limits */
    ns_t reorder_wait;  /* EP_NV: a packet that is missing for so long counts as lost; 0: 20 us */
    uint8_t timeout;    /* local ACK timeout code of all queue pairs; 0: that of struct ep_peer */
    uint32_t max_qp;    /* 0: 65536 */
    uint32_t max_mr;    /* regions and windows, 0: 4096 */
};

struct ep_qp_init {
    uint8_t type;          /* enum qp_type */
    uint32_t qpn;          /* 0: the policy chooses; 1: the GSI (UD, Q_Key 0x80010000) */
    uint32_t max_send_wr;  /* rounded up to a power of two; 0: 16 */
    uint32_t max_recv_wr;  /* 0: 16; ignored with an SRQ */
    uint16_t max_send_sge; /* 0: 1 */
    uint16_t max_recv_sge; /* 0: 1 */
    /* bytes of SEND_INLINE, whose SGEs hold pointers of the caller, not addresses of a region */
    uint32_t max_inline;
    /* RC, XRC_TGT: responder resources (limit of max_dest_rd_atomic), 1 to 128; 0: 16 */
    uint16_t max_dest_rd;
    bool sq_sig_all;                 /* every send is signaled */
    int send_cq, recv_cq;            /* handles */
    int srq;                         /* handle, or EP_NO_SRQ; XRC: EP_NO_SRQ */
    uint32_t pd;                     /* from ep_pd_alloc() */
    uint32_t xrcd;                   /* XRC_TGT: from ep_xrcd_alloc() */
    const struct policies *policies; /* NULL: the endpoint's; copied */
};

/* Counters of an endpoint, and of each queue pair. Named as in the kernel and mlx5 where they count the same. */
struct ep_stats {
    uint64_t tx_packets, tx_bytes;   /* frames sent */
    uint64_t rx_packets, rx_bytes;   /* frames received */
    uint64_t tx_payload, rx_payload; /* payload bytes, without retransmissions and duplicates */
    uint64_t messages;               /* requests completed with success */
    uint64_t served;                 /* requests of the peer executed up to their last packet */
    uint64_t fetched;                /* of these, READs and atomics */
    uint64_t retransmitted;          /* request packets retransmitted */
    uint64_t out_of_sequence;        /* requests ahead of the expected PSN */
    uint64_t packet_seq_err;         /* sequence NAKs received */
    uint64_t duplicate_request;      /* duplicate requests received */
    uint64_t implied_nak_seq_err;    /* implied NAKs */
    uint64_t local_ack_timeout_err;  /* ACK timeouts expired */
    uint64_t rnr_nak_retry_err;      /* RNR NAKs received */
    uint64_t out_of_buffer;          /* requests for which no receive was posted */
    uint64_t nak_sent;               /* all NAKs but RNR */
    uint64_t seq_nak_sent;           /* of these: sequence NAKs */
    uint64_t rnr_nak_sent;
    uint64_t acks_sent;            /* plain ACKs */
    uint64_t rp_cnp_handled;       /* CNPs received */
    uint64_t dropped;              /* frames ignored, all reasons */
    uint64_t rx_icrc_encapsulated; /* of these: wrong ICRC */
    uint64_t bad_qkey, bad_pkey;   /* among these */
    /* among these: malformed RDMA packets, and other packets to UDP port 4791 */
    uint64_t malformed;
    uint64_t unknown_qp;         /* among these: to a queue pair that does not exist, or cannot receive in its state */
    uint64_t other_source;       /* among these: from another address than the queue pair's peer */
    uint64_t other_service;      /* packets of another service than the queue pair's */
    uint64_t faults;             /* faults committed */
    uint64_t own_check_failures; /* packets sent although a check failed: 0 without faults */
    uint64_t migrated;           /* times that queue pairs changed to their alternate path */
};

/* NULL: out of memory. `config` is copied. */
struct endpoint *ep_new(const struct ep_config *config);
void ep_free(struct endpoint *ep);

/* The endpoint as a provider of the verbs; it lives as long as the endpoint. */
struct verbs *ep_verbs(struct endpoint *ep);

/* Why a requester sends no request. */
enum ep_wait {
    EP_WAIT_NONE,   /* nothing to send, or the window is full */
    EP_WAIT_DEPTH,  /* initiator depth: no further READ or atomic may be outstanding */
    EP_WAIT_CREDIT, /* no end-to-end credit */
    EP_WAIT_CUT,    /* spacing of packets increased because of CNPs */
};
/* Why a queue pair migrates. */
enum ep_migration {
    EP_MIG_RETRIES,  /* no response along the primary path, and no retry is left */
    EP_MIG_ASKED,    /* a packet of the peer came along the alternate path, with MigReq 1 */
    EP_MIG_SOFTWARE, /* the verb */
};
/* An observer of the queue pairs of an endpoint; `qp`: handles. Members must not be NULL. */
struct ep_watch {
    /* A send work request was posted. */
    void (*posted)(void *user, int qp, ns_t now);
    /* A response or a timer had effects on the requester. */
    void (*requester)(void *user, int qp, const struct effects *e, ns_t now);
    /* The requester cannot send more, for the reason `why`. EP_WAIT_CUT: it could send again at `usual` if there had
     * been no CNPs. */
    void (*waits)(void *user, int qp, enum ep_wait why, ns_t usual, ns_t now);
    /* The responder is slow: it sends no response from `now` on until `until`. */
    void (*slow)(void *user, int qp, ns_t now, ns_t until);
    /* The queue pair enters the error state; WC_SUCCESS: no send failed. */
    void (*failed)(void *user, int qp, enum wc_status status, ns_t now);
    /* The queue pair has changed to its alternate path. */
    void (*migrated)(void *user, int qp, enum ep_migration why, ns_t now);
    void *user;
};
/* Set the observer (NULL: none); it must outlive the endpoint. */
void ep_set_watch(struct endpoint *ep, const struct ep_watch *w);

/* --- Resources; handles and keys, or a negative errno ----------------------------------------- */

/* A protection domain; numbers from 1. */
uint32_t ep_pd_alloc(struct endpoint *ep);
/* A completion queue of at least `depth` entries. */
int ep_cq_create(struct endpoint *ep, uint32_t depth);
/* Destroy a completion queue that no queue pair uses any more. */
void ep_cq_destroy(struct endpoint *ep, int cq);
/* Request one EP_EV_CQ_NOTIFY at the next completion or, with `solicited_only`, at the next solicited or failed one. */
int ep_cq_arm(struct endpoint *ep, int cq, bool solicited_only);
/* A shared receive queue of `depth` receives with up to `max_sge` pieces. */
int ep_srq_create(struct endpoint *ep, uint32_t pd, uint32_t depth, uint16_t max_sge);
/* Destroy a shared receive queue; its receives are forgotten, and its handle and number are given out again. -EINVAL:
 * no such queue; -EBUSY: a queue pair uses it, or an XRC_TGT queue pair is in the midst of a message with one of its
 * receives. */
int ep_srq_destroy(struct endpoint *ep, int srq);
/* An XRC domain; numbers from 1. */
uint32_t ep_xrcd_alloc(struct endpoint *ep);
/* Make a shared receive queue one of the XRC domain `xrcd`: XRC_TGT queue pairs of the domain take its receives for
 * requests that name its number, and complete them in `cq`. It must not be that of a queue pair. */
int ep_srq_to_xrc(struct endpoint *ep, int srq, uint32_t xrcd, int cq);
/* Number of a shared receive queue, 24 bits; 0 for a wrong handle. */
uint32_t ep_srq_number(const struct endpoint *ep, int srq);
/* EP_EV_SRQ_LIMIT once when fewer than `limit` receives are left; 0: off. */
int ep_srq_limit(struct endpoint *ep, int srq, uint32_t limit);
int ep_post_srq_recv(struct endpoint *ep, int srq, const struct recv_wr *wr, ns_t now);
/* Register `len` bytes at `mem` under addresses from `iova`, with ACCESS_ZERO_BASED from 0 (SGEs and the peer use
 * these). 0: success, *key is L_Key and R_Key. -ENOMEM: table full; -EINVAL: rights or range. The caller frees `mem`,
 * after the region. */
int ep_mr_reg(struct endpoint *ep, uint32_t pd, void *mem, uint64_t len, uint64_t iova, uint8_t access, uint32_t *key);
/* Allocate a region of up to `most` bytes that WR_REG_MR registers: until then, and once invalidated, its key *key is
 * refused. -EINVAL: no such protection domain, or `most` is 0; -ENOMEM: table full. */
int ep_mr_alloc(struct endpoint *ep, uint32_t pd, uint64_t most, uint32_t *key);
int ep_mr_dereg(struct endpoint *ep, uint32_t key);
/* Give a region other rights, under the same key: as mr_set_access(). */
int ep_mr_access(struct endpoint *ep, uint32_t key, uint8_t access);
/* Allocate a window: MR_WINDOW1 or MR_WINDOW2. */
int ep_mw_alloc(struct endpoint *ep, uint32_t pd, enum mr_kind kind, uint32_t *key);
/* The verb that binds a type 1 window: post to the send queue of `qp` a request to bind the window *key to mw_length
 * bytes at remote_addr of the region mr_key with the rights mw_access, or with length 0 to unbind it; wr_id and flags
 * are used, too. 0: posted, and *key is the new key, its low 8 bits moved on; it is valid once the request completes.
 * -EINVAL: no type 1 window, or as ep_post_send(). */
int ep_mw_bind(struct endpoint *ep, int qp, const struct send_wr *wr, uint32_t *key, ns_t now);
/* The table of regions and windows (for mr_check(), mw_bind(), mr_invalidate()). */
struct mr_table *ep_mr_table(struct endpoint *ep);
/* An address handle for UD: number, or -errno. A message of a queue pair of another protection domain completes with
 * WC_LOC_QP_OP_ERR. */
int ep_ah_create(struct endpoint *ep, uint32_t pd, const struct av *av);
int ep_ah_destroy(struct endpoint *ep, int ah);

/* --- Queue pairs ------------------------------------------------------------------------------ */

/* Handle; -ENOMEM, -EINVAL (CQ, SRQ or PD unknown, QPN taken). The state is RESET. */
int ep_qp_create(struct endpoint *ep, const struct ep_qp_init *init);
/* Bytes of memory of an RC queue pair with such queues. */
size_t ep_qp_memory(uint32_t sends, uint16_t send_sge, uint32_t receives, uint16_t recv_sge);
int ep_qp_destroy(struct endpoint *ep, int qp);
/* As qp_modify(); also flushes, and updates timers and headers. */
int ep_qp_modify(struct endpoint *ep, int qp, const struct qp_attr *attr, uint32_t mask, ns_t now);
/* RESET to RTS in one step (UD too: only qkey and sq_psn are used). */
int ep_qp_connect(struct endpoint *ep, int qp, const struct ep_peer *peer, ns_t now);
/* RESET to RTR, and RTR to RTS, for connection managers: the passive side is RTR from REP on, and RTS from RTU on. */
int ep_qp_to_rtr(struct endpoint *ep, int qp, const struct ep_peer *peer, ns_t now);
int ep_qp_to_rts(struct endpoint *ep, int qp, const struct ep_peer *peer, ns_t now);
/* Load the alternate path `av` with the local ACK timeout `timeout`, and rearm. The queue pair is ARMED once a packet
 * of the peer shows that it has rearmed as well. -EINVAL: not connected, or no such path. */
int ep_qp_load_path(struct endpoint *ep, int qp, const struct av *av, uint8_t timeout, ns_t now);
/* The state of a queue pair, read only: state, attr, req, rsp; NULL for a wrong handle. Valid until the next call with
 * `ep`. */
const struct qp *ep_qp(const struct endpoint *ep, int qp);
/* Handle of the queue pair number `qpn`, or -ENOENT. */
int ep_qp_find(const struct endpoint *ep, uint32_t qpn);
/* A starting PSN by the endpoint's policy. */
uint32_t ep_pick_psn(struct endpoint *ep);
/* Send no request of this queue pair before `until`; NS_NEVER: never. A requester may delay its requests at will. */
void ep_qp_hold(struct endpoint *ep, int qp, ns_t until);
/* A pointer of the caller, for agents. */
void ep_qp_set_user(struct endpoint *ep, int qp, void *user);
void *ep_qp_user(const struct endpoint *ep, int qp);

/* A UD queue pair joins the multicast group `gid` (IPv4-mapped or ff00::/8): it receives the datagrams to QP 0xffffff
 * of that group. -EINVAL: not UD, or no group; -ENOMEM. */
int ep_qp_attach(struct endpoint *ep, int qp, const uint8_t gid[16]);

/* 0; -EINVAL: state or operation not allowed; -ENOMEM: queue full; -E2BIG: too many pieces, too much inline, or a
 * message of 2^23 packets and more (the limit of 2^31 bytes included). Errors of keys and lengths come as
 * completions. */
int ep_post_send(struct endpoint *ep, int qp, const struct send_wr *wr, ns_t now);
int ep_post_recv(struct endpoint *ep, int qp, const struct recv_wr *wr, ns_t now);
/* The SGE shared by all receives of the refill policy; without it they have no memory and can receive empty messages
 * only. Their wr_ids count from 0. To be called before RTR. */
int ep_qp_set_refill(struct endpoint *ep, int qp, const struct sge *piece);
/* Poll at most `n` completions into `wc`; returns their number. */
int ep_poll(struct endpoint *ep, int cq, struct wc *wc, int n);
/* The first completion queue from handle `from` on that holds completions; -ENOENT: none. */
int ep_cq_next(const struct endpoint *ep, int from);
/* "QP_FATAL", ... */
const char *ep_event_str(enum ep_event_type t);
/* The oldest asynchronous event; false: none. */
bool ep_event(struct endpoint *ep, struct ep_event *event);

/* A pause frame that arrived, PAUSE or PFC. */
struct ep_pause {
    ns_t when;
    struct pause_frame frame;
};
/* Take the oldest one, of the last 64; false: there is none. The endpoint does not obey them: its host's port does. */
bool ep_pause(struct endpoint *ep, struct ep_pause *p);

/* --- Frames and time -------------------------------------------------------------------------- */

/* Receive a frame: Ethernet, or from the LRH on for native InfiniBand (with or without VCRC); its bytes may be hostile.
 * False: the frame was dropped, or not addressed to this endpoint. */
bool ep_rx(struct endpoint *ep, const uint8_t *frame, uint32_t len, ns_t now);
/* The next frame due, at most `cap` bytes at `buf`: its length; 0: nothing is due now; -ENOSPC. */
int ep_tx(struct endpoint *ep, uint8_t *buf, uint32_t cap, ns_t now);
/* Queue pairs of these classes (a mask, see frame_class()) send nothing until another call: the port is paused. */
void ep_stop(struct endpoint *ep, uint8_t classes);
/* The last frame of ep_tx(). */
struct ep_sent {
    int qp;         /* handle of the queue pair */
    bool request;   /* a request, not a response */
    bool repeat;    /* a retransmitted request */
    uint64_t wr_id; /* request: wr_id of its work request */
    uint32_t psn;   /* request */
};
struct ep_sent ep_tx_last(const struct endpoint *ep);
/* When ep_expire() must be called next; may be earlier than the next timeout. NS_NEVER: no timer runs. */
ns_t ep_next_expiry(struct endpoint *ep);
void ep_expire(struct endpoint *ep, ns_t now);
/* Index of the endpoint's own address `gid`, 0 to addrs - 1 of struct ep_config; -1: not an own address. */
int ep_sgid_index(const struct endpoint *ep, const uint8_t gid[16]);
/* Link type of all frames: LINK_ETHERNET or LINK_INFINIBAND. */
uint16_t ep_linktype(const struct endpoint *ep);
#define EP_MTU_MAX   4096
#define EP_FRAME_MAX (EP_MTU_MAX + 256) /* space for the largest frame: the MTU, and what is around it */

/* Counter `i` of EP_COUNTERS, in the order of struct ep_stats: its name, which is the member's, and its value. */
#define EP_COUNTERS (sizeof(struct ep_stats) / sizeof(uint64_t))
const char *ep_counter_str(unsigned i);
uint64_t ep_counter(const struct ep_stats *s, unsigned i);

const struct ep_stats *ep_stats(const struct endpoint *ep);
/* Counters of one queue pair; NULL for a wrong handle. */
const struct ep_stats *ep_qp_stats(const struct endpoint *ep, int qp);
/* The headers of what one queue pair sends; NULL for a wrong handle. */
const struct path *ep_qp_path(const struct endpoint *ep, int qp);
/* Congestion control of one queue pair; NULL: it has none, or has not begun to send. */
const struct cc *ep_qp_cc(const struct endpoint *ep, int qp);
/* Verdict on the first sent packet that broke a rule (with faults: perhaps as intended); passes if there was none. */
struct verdict ep_first_refused(const struct endpoint *ep);
/* True if `rule` is among the faults of this endpoint. */
bool ep_has_fault(const struct endpoint *ep, enum rule rule);
/* Count a fault committed by an agent of the endpoint (connection manager). */
void ep_count_fault(struct endpoint *ep, enum rule rule);
/* Report each fault of the endpoint, which the report calls `who`, that was never committed; returns their number. A
 * fault of the connection manager counts as committed if `partner` (may be NULL) committed it. */
unsigned ep_faults_idle(const struct endpoint *ep, const struct endpoint *partner, const char *who, report_fn *report,
                        void *user);

#endif
