/* layer 3 (endpoint): internal: structs and functions shared by the files of the endpoint. */
#ifndef RDMATRACE_GEN_ENDPOINT_ENDPOINT_IMPL_H
#define RDMATRACE_GEN_ENDPOINT_ENDPOINT_IMPL_H

#include "dissect/ib/cc_wire.h"
#include "dissect/pkt.h"
#include "gen/endpoint/endpoint.h"
#include "gen/endpoint/timers.h"
#include "src/transport/ud.h"

/* A send work request in its queue; slot n % size belongs to message number n of the requester. */
struct ep_swqe {
    uint64_t wr_id;
    uint64_t remote_addr;
    uint64_t compare_add, swap;
    uint64_t mw_length;
    void *reg_mem;
    uint32_t len; /* bytes of all pieces */
    uint32_t rkey, imm_data, inv_rkey;
    uint32_t remote_qpn, remote_qkey, ah;
    uint32_t remote_srqn;
    uint32_t mr_key;
    uint32_t flush_length;
    uint8_t opcode, flags, mw_access, placement;
    bool whole_region;
    uint8_t num_sge;
    bool checked;   /* its L_Keys passed the check */
    bool window1;   /* BIND_MW: posted by ep_mw_bind() */
    uint8_t status; /* local operations: enum wc_status */
};

/* A posted receive. */
struct ep_rwqe {
    uint64_t wr_id;
    uint32_t len; /* bytes of all pieces */
    uint16_t num_sge;
};

#define RQ_SGE_MAX 64 /* pieces of a receive, at most */

/* A receive queue, of one queue pair or shared. */
struct ep_rq {
    struct ep_rwqe *wqe; /* mask + 1 */
    struct sge *sge;     /* max_sge for each */
    uint32_t head, tail, mask, max;
    uint16_t max_sge;
};

struct ep_srq {
    struct ep_rq rq;
    uint32_t pd;
    uint32_t limit; /* 0: off */
    uint32_t xrcd;  /* 0: none */
    int cq;         /* with `xrcd`: of its receives */
};

struct ep_cq {
    struct wc *wc; /* mask + 1 */
    uint32_t head, tail, mask;
    bool armed, armed_solicited;
    bool overflowed;
};

/* A queue pair's membership of a multicast group. */
struct ep_group {
    uint8_t gid[16];
    int qp;
};

struct ep_ah {
    struct path path;
    uint32_t pd;     /* protection domain */
    bool auto_sport; /* the UDP source port is the sending queue pair's */
    bool used;
};

struct ep_qp {
    struct endpoint *ep;
    int handle;
    void *user;
    struct path path;
    struct policies pol;
    struct policy_state ps;

    /* Send queue. Message numbers: req.msg_head is the oldest incomplete one, req.msg_tail the next to begin. */
    struct ep_swqe *swqe;
    struct sge *ssge;
    uint8_t *inline_data;
    uint32_t sq_tail; /* number of the next work request posted */
    uint32_t sq_mask, sq_max;
    uint32_t max_inline;
    uint16_t ud_sport;
    uint16_t max_ssge;
    bool sig_all;

    /* Receive queue; the receive in progress is a copy. */
    struct ep_rq rq;
    struct ep_rwqe cur;
    struct sge *cur_sge;
    int srq; /* XRC_TGT: that of the latest request which used one */
    uint32_t pd, xrcd;
    int send_cq, recv_cq;
    uint64_t refill_id;
    struct sge refill_sge;
    ns_t refill_at;

    /* Scheduling. */
    struct ep_qp *next_ready;
    bool ready;              /* in the list, or parked */
    bool parked;             /* in the list of those whose class is stopped */
    bool paced;              /* waits for ps.next_send */
    uint8_t waits;           /* enum ep_wait: why the requester sent nothing when it last could */
    bool comm_est;           /* EP_EV_COMM_EST was raised */
    bool last_wqe;           /* EP_EV_LAST_WQE was raised */
    bool cq_overflowed;      /* a completion of it had no room: it fails */
    bool mig_err;            /* EP_EV_PATH_MIG_ERR was raised since it rearmed */
    bool draining;           /* SQD: EP_EV_SQ_DRAINED is not raised yet */
    bool repeat_again;       /* fault: send the response in `again` */
    bool spurious;           /* fault: the packet being sent is retransmitted without cause */
    bool mute;               /* fault: no response is sent */
    uint32_t stray_psn;      /* fault: of the request that is sent at stray_at after a fatal NAK */
    uint32_t tried;          /* fault: PSNs that were tried (intrude.c) */
    bool data_waits;         /* a READ response waits for congestion control */
    uint32_t cnps_due;       /* CNPs that are due, the first at cnp_at */
    ns_t cnp_at, cnp_next;   /* cnp_next: of the notification point */
    struct ep_cc *cc;        /* congestion control; NULL: none */
    struct ep_kept *kept[2]; /* EP_NV: requests, and responses, that came ahead; NULL: none ever did */
    struct rsp_due again;
    ns_t mute_from, mute_until; /* mute_until NS_NEVER: no duplicate request so far */
    ns_t stray_at;              /* fault: when a request is sent that must not be; 0: none is */
    struct timer timer;

    uint64_t faults_done; /* bits of ep->fault */
    struct ep_stats st;
    struct qp qp; /* last: its rings follow */
};

#define EP_EVENTS 1024
#define EP_PAUSES 64

struct endpoint {
    struct verbs verbs; /* the endpoint as a provider */
    struct ep_config cfg;
    struct ep_stats st;
    struct prng rng;
    uint32_t psn_n, qpn_n; /* numbers picked so far */
    uint16_t ip_id;
    uint32_t pds, xrcds;

    struct ep_qp **qp; /* by handle */
    uint32_t n_qp, cap_qp;
    int *free_qp; /* handles below n_qp that are free */
    uint32_t n_free_qp;
    uint32_t *map; /* hash of QPNs: handle + 1 */
    uint32_t map_mask;
    struct ep_qp *ready_head, *ready_tail;
    struct ep_qp *parked; /* ready, but of a class in `stopped` */
    uint8_t stopped;      /* mask of classes */
    struct timers timers;

    struct ep_cq **cq;
    uint32_t n_cq;
    uint8_t *cq_full; /* n_cq: 1: it holds completions */
    uint32_t cq_used; /* handles below this are in use */
    struct ep_srq **srq;
    uint32_t n_srq;
    struct ep_ah *ah;
    uint32_t n_ah;
    struct ep_group *group;
    uint32_t n_group;
    struct mr_table mrs;
    uint8_t **mem; /* host memory of each region */

    struct np np;                 /* with cfg.congestion.cnps */
    struct ep_grants *grants;     /* what senders may send to this endpoint; NULL: nobody has asked */
    const struct ep_watch *watch; /* NULL: none */
    struct ep_event event[EP_EVENTS];
    uint32_t ev_head, ev_tail;
    struct ep_pause pause[EP_PAUSES]; /* ring */
    uint32_t pause_head, pause_tail;

    const struct fault_info *fault[FAULTS_MAX];
    unsigned n_fault;
    uint64_t fault_rules[RULE_COUNT / 64 + 1]; /* faults of the configuration */
    uint64_t fault_met[RULE_COUNT / 64 + 1];   /* committed */
    uint32_t fault_choices;                    /* 1 << enum fault_choice, of the configuration */

    struct verdict refused;
    struct ep_sent sent;
    struct pkt rx; /* packet being received */
    struct pkt tx; /* packet being built */
};

extern const struct verbs_ops ep_verbs_ops; /* of endpoint.verbs */

static inline struct ep_qp *qp_of(const struct endpoint *ep, int handle)
{
    return handle >= 0 && (uint32_t)handle < ep->n_qp ? ep->qp[handle] : NULL;
}
static inline struct ep_swqe *swqe_of(const struct ep_qp *q, uint32_t n)
{
    return &q->swqe[n & q->sq_mask];
}
static inline uint32_t rq_count(const struct ep_rq *rq)
{
    return rq->tail - rq->head;
}
/* The receive queue of `q`. */
static inline struct ep_rq *rq_of(struct ep_qp *q)
{
    return q->srq == EP_NO_SRQ ? &q->rq : &q->ep->srq[q->srq]->rq;
}

/* True if `q` has receives of its own. */
static inline bool has_own_receives(const struct ep_qp *q)
{
    return q->srq == EP_NO_SRQ && q->qp.type < QPT_XRC_INI;
}
/* Protection domain of its receives. */
static inline uint32_t recv_pd(const struct ep_qp *q)
{
    return q->srq == EP_NO_SRQ ? q->pd : q->ep->srq[q->srq]->pd;
}

/* resources.c */
/* False: the queue had no room. */
bool ep_complete(struct endpoint *ep, int cq, const struct wc *wc, bool solicited);
void ep_raise(struct endpoint *ep, enum ep_event_type type, int handle, ns_t now);
/* A shared receive queue; NULL: no such handle, or destroyed. */
struct ep_srq *ep_srq_of(const struct endpoint *ep, int handle);
/* The shared receive queue of this number in an XRC domain; EP_NO_SRQ: none. */
int ep_srq_of_number(const struct endpoint *ep, uint32_t number, uint32_t xrcd);
int rq_init(struct ep_rq *rq, uint32_t depth, uint16_t max_sge);
void rq_free(struct ep_rq *rq);
int rq_post(struct ep_rq *rq, const struct recv_wr *wr);
/* Copy payload between a frame and memory, unless nobody looks at it. */
static inline void ep_copy(const struct endpoint *ep, void *to, const void *from, uint32_t len)
{
    if (LIKELY(!ep->cfg.no_payload))
        memcpy(to, from, len);
}
/* The same between a frame and the SGEs, from byte `offset` of the SGEs on. False: an SGE fails its L_Key check. */
bool sge_copy(const struct endpoint *ep, uint32_t pd, const struct sge *sge, unsigned n, uint32_t offset, uint8_t *data,
              uint32_t len, bool to_memory);
/* True if all SGEs pass their L_Key check. */
bool sge_check(const struct endpoint *ep, uint32_t pd, const struct sge *sge, unsigned n, uint8_t access);
/* Host memory of `len` bytes at `va` under `rkey`; NULL: access denied. */
uint8_t *ep_remote_mem(const struct endpoint *ep, const struct ep_qp *q, uint32_t rkey, uint64_t va, uint64_t len,
                       uint8_t access);

/* sched.c */
void ep_ready(struct ep_qp *q);
void ep_timer(struct ep_qp *q, ns_t when);
/* When ep_expire() must next be called for `q`; NS_NEVER: never. */
ns_t ep_qp_deadline(const struct ep_qp *q);
void ep_timer_remove(struct ep_qp *q);
void ep_unready(struct ep_qp *q);

/* qp.c */
/* Prepare the headers of the primary path. */
void ep_set_path(struct ep_qp *q);
struct ep_qp *ep_lookup(const struct endpoint *ep, uint32_t qpn);
/* Complete the `n` oldest send work requests with success. */
void ep_send_done(struct ep_qp *q, uint32_t first, uint32_t n, ns_t now);
/* Move the queue pair to the error state: its oldest send completes with `status` (WC_SUCCESS: no send failed), all
 * other work requests are flushed. */
void ep_qp_fail(struct ep_qp *q, enum wc_status status, ns_t now);
/* A packet was received or sent: a queue pair whose completion had no room fails. */
static inline void ep_check_overflow(struct ep_qp *q, ns_t now)
{
    if (UNLIKELY(q->cq_overflowed))
        ep_qp_fail(q, WC_SUCCESS, now);
}
void ep_recv_complete(struct ep_qp *q, struct wc *wc, ns_t now);
/* The queue pair is in error: complete its receives with WC_WR_FLUSH_ERR, those of its own queue. */
void ep_flush_recv(struct ep_qp *q, ns_t now);
/* Post the receives that the refill policy demands. */
void ep_refill(struct ep_qp *q, ns_t now);

/* What a work request is. */
struct wr_info {
    uint8_t kind;                      /* enum msg_kind */
    bool receive;                      /* it uses a receive of the peer */
    bool data;                         /* its pieces are sent */
    bool fills;                        /* its pieces receive what the response brings */
    bool eight;                        /* its pieces have 8 bytes */
    uint8_t first, middle, last, only; /* operations */
};
/* By enum wr_opcode (send.c). */
const struct wr_info *wr_info_of(unsigned opcode);

/* send.c, respond.c: the next frame of `q`; 0: none; -ENOSPC. */
int ep_tx_request(struct ep_qp *q, uint8_t *buf, uint32_t cap, ns_t now);
int ep_tx_response(struct ep_qp *q, uint8_t *buf, uint32_t cap, ns_t now);

/* congestion.c */
#define EP_TIMED 16 /* packets whose round trip is measured at a time */
/* Congestion control of a queue pair. */
struct ep_cc {
    struct cc c;
    bool started;
    uint32_t ackreq_every; /* packets; 0: the policy's */
    /* Packets that ask for a response, the oldest at `head`. */
    struct {
        uint32_t psn;
        ns_t sent;
    } timed[EP_TIMED];
    uint32_t head, tail;
    /* Quotas: frame bytes of requests that were sent, retransmitted ones each time; of those that were posted and never
     * sent; what the peer is granted. */
    uint64_t sent, unsent;
    bool grant_due;
    uint64_t granted;
    uint64_t kept; /* the rate behind the latest CNP, see FLAW_RATE_STAYS; 0: none came */
    /* Telemetry of the latest request. */
    uint8_t hops;
    struct int_hop hop[INT_HOPS_MAX];
};
/* Before any queue pair: what all have in common. 0, or -ENOMEM. */
int ep_cc_open(struct endpoint *ep);
void ep_cc_close(struct endpoint *ep);
/* A new queue pair. 0, or -ENOMEM. */
int ep_cc_create(struct ep_qp *q);
/* Its object, begun with the first packet. */
struct cc *ep_cc_begun(struct ep_qp *q, ns_t now);
/* bit/s of the port. */
uint64_t ep_link_rate(const struct endpoint *ep);
/* Whether a request may be sent as far as quotas go. */
bool ep_cc_has_budget(const struct ep_qp *q);
/* When the queue pair may send data next: by hold and pacing policy, and by congestion control. */
ns_t ep_next_send(struct ep_qp *q, ns_t now);
/* The time of the next send, and of the next timer, for a queue pair that is held back: NS_NEVER: none. */
ns_t ep_cc_deadline(const struct ep_qp *q);
/* Packets outstanding, at most: of the window policy, and of congestion control. */
uint32_t ep_window(const struct ep_qp *q);
/* This packet asks for an ACK: as many as policy or congestion control allow have left without (ps.since_ackreq, which
 * counts this one), or as many as take a quarter of the ACK timeout at the rate of congestion control. */
bool ep_ackreq_is_due(const struct ep_qp *q);
/* A packet of data, which takes `len` bytes as a frame, is sent. */
void ep_cc_sent(struct ep_qp *q, const struct pkt *p, uint32_t len, bool repeat, ns_t now);
/* A response arrived, which acknowledges `packets` more. */
void ep_cc_response(struct ep_qp *q, const struct pkt *p, const struct effects *e, uint32_t packets, ns_t now);
/* A CNP arrived. */
void ep_cc_cnp(struct ep_qp *q, ns_t now);
/* What a CNP does to the rate. */
void ep_cc_slow_down(struct ep_qp *q, ns_t now);
/* A timer may have expired. */
void ep_cc_expire(struct ep_qp *q, ns_t now);
/* A packet arrived: a CNP is due if it is marked. */
void ep_cc_mark(struct ep_qp *q, const struct pkt *p, ns_t now);
/* The path to the peer in the class of CNPs. */
struct path ep_cnp_path(const struct ep_qp *q);
/* Whether the class of CNPs is not stopped. */
bool ep_cnp_may_go(const struct ep_qp *q);
/* Send a CNP that is due: as ep_tx_response(). */
int ep_cc_send_cnp(struct ep_qp *q, uint8_t *buf, uint32_t cap, ns_t now);

/* cc_wire.c: queue pairs with q->cc only. */
/* A work request with `len` bytes was posted. */
void ep_cc_posted(struct ep_qp *q, const struct wr_info *i, uint32_t len);
/* Whether the receiver is to be asked for more, by ep_cc_send_ask(): as ep_tx_request(). */
bool ep_cc_asks(struct ep_qp *q, ns_t now);
int ep_cc_send_ask(struct ep_qp *q, uint8_t *buf, uint32_t cap, ns_t now);
/* Send the grant that is due: as ep_tx_response(). */
int ep_cc_send_grant(struct ep_qp *q, uint8_t *buf, uint32_t cap);
/* A packet with a manufacturer specific opcode arrived; false: it is none about quotas. Any queue pair. */
bool ep_cc_quota(struct ep_qp *q, const struct pkt *p, ns_t now);
/* A frame of `len` bytes arrived: count what was granted, keep its telemetry. */
void ep_cc_arrived(struct ep_qp *q, const struct pkt *p, uint32_t len, ns_t now);
/* Append to a request what switches are to fill; to an ACK what they wrote. Returns its length; there are `room` bytes
 * at `at`. */
uint32_t ep_cc_collect(const struct ep_qp *q, uint8_t *at, uint32_t room);
uint32_t ep_cc_return(const struct ep_qp *q, uint8_t *at, uint32_t room);
/* A response arrived, whose request took `rtt`: use the telemetry that it returns. */
void ep_cc_telemetry(struct ep_qp *q, const struct pkt *p, ns_t rtt, ns_t now);
/* A packet that is no RDMA: a fair rate for one of the queue pairs? */
bool ep_cc_fair(struct endpoint *ep, const struct pkt *p, ns_t now);
/* The grants of the endpoint: when one is due; give what is due; the sender of `q` is gone; free. */
ns_t ep_grants_next(const struct endpoint *ep);
void ep_grants_expire(struct endpoint *ep, ns_t now);
void ep_grants_forget(const struct ep_qp *q);
void ep_grants_close(struct endpoint *ep);

/* recv.c */
/* Handle a packet that is its queue pair's next; false: it was dropped. */
bool ep_take(struct ep_qp *q, const struct pkt *p, ns_t now);

/* reorder.c */
/* EP_NV: keep packet `p` (its frame: `len` bytes at `data`) if it came ahead of one that is missing. */
bool ep_reorder_keep(struct ep_qp *q, const struct pkt *p, const uint8_t *data, uint32_t len, ns_t now);
/* Handle the kept packets whose turn it is. */
void ep_reorder_go_on(struct ep_qp *q, ns_t now);
/* When a missing packet counts as lost; NS_NEVER: none is missing. */
ns_t ep_reorder_deadline(const struct ep_qp *q);
void ep_reorder_expire(struct ep_qp *q, ns_t now);
/* Forget what was kept. */
void ep_reorder_forget(struct ep_qp *q);

/* migrate.c */
/* The addresses of port 1 or 2 (0: 1); NULL: there is no such port. */
const struct link_addr *ep_port(const struct endpoint *ep, unsigned port);
/* The port that a packet is addressed to; 0: none. */
unsigned ep_port_addressed(const struct endpoint *ep, const struct pkt *p);
/* The own addresses of a path. False: there is no such port or address. */
bool ep_source(const struct endpoint *ep, const struct av *av, struct link_addr *own);
/* The headers of a path. 0; -EINVAL: no such port, or addresses that do not fit. */
int ep_path_init(const struct endpoint *ep, const struct av *av, struct path *path);
/* True if the packet came along the path that its queue pair accepts: the alternate path if the packet asks an armed
 * queue pair to migrate, else the primary path. */
bool ep_path_ok(const struct ep_qp *q, const struct pkt *p);
/* A packet with a right ICRC came along a path that is not accepted: raise the event if it asked to migrate. */
void ep_path_refused(struct ep_qp *q, const struct pkt *p, ns_t now);
/* A packet came along the accepted path: it may arm the queue pair, or make it migrate. */
void ep_path_confirmed(struct ep_qp *q, const struct pkt *p, ns_t now);
/* Retries are exhausted (`e`): true if the queue pair migrates instead of failing, with a full retry count. The caller
 * then handles the event that exhausted the retries once more. */
bool ep_migrate_instead(struct ep_qp *q, const struct effects *e, ns_t now);
/* The queue pair now has the attributes of its alternate path: update headers, raise the event, call the observer. */
void ep_migrated(struct ep_qp *q, enum ep_migration why, ns_t now);
/* The MigReq bit of packets that the queue pair sends. */
static inline bool ep_migreq(const struct ep_qp *q)
{
    return q->qp.attr_set & QPA_PATH_MIG_STATE ? q->qp.attr.mig_state == MIG_MIGRATED : q->ep->cfg.migreq;
}

/* fault_commit.c */
static inline bool ep_faulty(const struct endpoint *ep, enum rule rule)
{
    return UNLIKELY(ep->n_fault) && ep->fault_rules[rule / 64] >> (rule % 64) & 1;
}
static inline bool ep_may_choose(const struct endpoint *ep, enum fault_choice c)
{
    return UNLIKELY(ep->n_fault) && ep->fault_choices >> c & 1;
}
/* True if `q` is to do now what a rule forbids: the fault is configured and `q` has not committed it yet; counts it. */
bool ep_fault_choice(struct ep_qp *q, enum fault_choice c);
/* True if the endpoint has this flaw (gen/endpoint/flaws.c). */
static inline bool ep_has_flaw(const struct endpoint *ep, unsigned flaw)
{
    return UNLIKELY(ep->cfg.flaws >> flaw & 1);
}
/* Request `p` as an endpoint with flaws takes it: `p`, or *changed. */
const struct pkt *ep_flaw_request(const struct ep_qp *q, const struct pkt *p, struct pkt *changed);
/* Flaw FLAW_RECEIVE_OVERRUN: the next receive is as long as the datagram `p` needs. */
void ep_flaw_receive(struct ep_qp *q, const struct pkt *p);
/* A CNP came for `q`. True: a flaw has made of it what it does. */
bool ep_flaw_cnp(struct ep_qp *q, ns_t now);
/* Flaw FLAW_RATE_STAYS: no more than the rate behind the latest CNP. */
void ep_flaw_rate(struct ep_qp *q);
/* Effects `e` of a response on the requester: plan the later request that faults CHOICE_AFTER_FATAL and
 * CHOICE_IN_RNR_WAIT send. */
void ep_plan_stray(struct ep_qp *q, const struct effects *e, ns_t now);
/* Retries are exhausted (`e`): true if a fault allows one more retry; then pass the event that exhausted them again. */
bool ep_one_more_try(struct ep_qp *q, const struct effects *e);
/* Apply the first fault of `hook` that fits the packet; returns the rule broken, or RULE_NONE. */
enum rule ep_fault_packet(struct ep_qp *q, enum fault_hook hook, struct fault_ctx *c);
/* Note the verdict on a packet about to be sent: a violation counts as a failure of the endpoint, unless it has
 * faults. */
void ep_self_check(struct ep_qp *q, struct verdict v);

/* intrude.c. The packet of message `n` at `off` PSNs is about to be sent: a packet of somebody else that a fault has
 * sent before it, its bytes in `buf` of `cap`; 0: none. */
int ep_intrude(struct ep_qp *q, uint32_t n, uint32_t off, uint8_t *buf, uint32_t cap);

/* Fill p with the packet of message `n` at `off` PSNs; the payload begins at *skip bytes of the message. */
void ep_fill_request(struct ep_qp *q, struct pkt *p, uint32_t n, uint32_t off, uint32_t *skip);
/* Fill the BTH for `q` in ep->tx. */
void ep_fill_bth(struct ep_qp *q, struct pkt *p, uint8_t opcode, uint32_t psn);
/* Tell the observer that a response or a timer had effects on the requester. */
static inline void ep_tell_requester(const struct ep_qp *q, const struct effects *e, ns_t now)
{
    const struct ep_watch *w = q->ep->watch;

    if (UNLIKELY(w))
        w->requester(w->user, q->handle, e, now);
}

/* Count a frame sent. */
void ep_count_tx(struct ep_qp *q, uint32_t len);

#endif
