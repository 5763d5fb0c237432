/* layer 3 (measure): the work requests of one direction of a connection, reconstructed from its packets.
 *
 * A work request is identified by the PSNs of its packets (of a READ: of its responses). The latest WQE_MAX of a
 * direction are kept in PSN order, to find the work request of a retransmission: a requester retransmits only requests
 * that are not complete for it. The oldest gets a status and is handed over when a new one needs its place, or at the
 * end. */
#ifndef RDMATRACE_MEASURE_WQE_H
#define RDMATRACE_MEASURE_WQE_H

#include "src/conn/observer.h"
#include "src/transport/verbs.h"

#define WQE_MAX 256 /* work requests remembered for each direction */

enum wqe_op {
    WQE_SEND,
    WQE_SEND_IMM,
    WQE_SEND_INV,
    WQE_WRITE,
    WQE_WRITE_IMM,
    WQE_READ,
    WQE_CMP_SWAP,
    WQE_FETCH_ADD,
    WQE_FLUSH,
    WQE_ATOMIC_WRITE,
    WQE_OPS
};
/* "SEND", "SEND with immediate", ... "ATOMIC WRITE". */
const char *wqe_op_str(enum wqe_op op);

/* Why a status is not known. */
enum wqe_reason {
    WQE_KNOWN,
    WQE_UNRELIABLE, /* UC, UD: there are no acknowledgements */
    WQE_CAPTURE_ENDS,
    WQE_NO_ACK, /* the capture has no packet of the responder */
    /* acknowledged, but an earlier request was retransmitted afterwards: a send queue completes in order */
    WQE_BEHIND,
    WQE_NO_ANSWER, /* responses to a READ or atomic are missing, although later requests were acknowledged */
    WQE_RNR_WAIT,  /* RNR NAK; no retransmission in the capture */
    WQE_RESTART,   /* the queue pair was reconnected */
    WQE_FORGOTTEN, /* its flow was evicted: see observer_opts.memory */
    WQE_TOO_MANY,  /* no response although WQE_MAX later work requests were seen */
    WQE_LEFT,      /* either end sent a DREQ before the response */
    WQE_REPEATED,  /* acknowledged, but the requester used its last retry for it and sent nothing new */
};
/* A few words; "" for WQE_KNOWN. */
const char *wqe_reason_str(enum wqe_reason r);

#define WQE_STATUS_UNKNOWN 0xff

struct wqe {
    const char *name;                 /* of an operation that enum wqe_op does not have; NULL: that of `op` */
    uint64_t id;                      /* from 1, in the order of the first packets */
    uint64_t bytes;                   /* payload; of a READ: the requested length */
    uint64_t va;                      /* with have_remote */
    uint64_t first_frame, last_frame; /* requests, retransmissions included */
    uint64_t done_frame;              /* of the response that completes it; 0: none */
    ns_t start;                       /* of the first packet */
    ns_t last;                        /* of the latest request packet */
    ns_t done;                        /* with done_frame */
    /* acknowledged by this response, while the response to an earlier READ or atomic was missing; 0: none */
    uint64_t proof_frame;
    ns_t proof;       /* with proof_frame */
    uint32_t psn;     /* its first PSN */
    uint32_t end;     /* the PSN after the last one seen; for a READ see wqe_end() */
    uint32_t rkey;    /* with have_remote */
    uint32_t imm;     /* immediate, or the rkey to invalidate; by op */
    uint32_t packets; /* request packets, retransmissions included */
    uint32_t again;   /* of them retransmissions; identical copies of a frame are not counted */
    uint32_t got;     /* responses seen in order, without a gap */
    uint32_t rnr_naks, seq_naks;
    uint8_t op;       /* enum wqe_op */
    uint8_t service;  /* enum service */
    uint8_t status;   /* enum wc_status, or WQE_STATUS_UNKNOWN */
    uint8_t reason;   /* enum wqe_reason */
    bool begun;       /* its first packet was seen */
    bool ended;       /* its last packet was seen */
    bool have_remote; /* va and rkey */
    bool refused;     /* a NAK ended it: `status` */
    bool missed;      /* a later response arrived first, then it was retransmitted: its response is missing */
};

/* Callbacks. */
struct wqe_user {
    void *user;
    /* A packet of work request `w`: a request, response or NAK, or the ACK that completes it (done_frame or proof_frame
     * is then that of `p`); `flow`: that of its requests. May be NULL. */
    void (*packet)(void *user, const struct wqe *w, const struct pkt *p, uint32_t flow);
    /* Its status is decided; `flow` as above. */
    void (*over)(void *user, const struct wqe *w, uint32_t flow);
};

struct wqe_ring {
    uint32_t slots;   /* a power of two; doubles up to WQE_MAX as more are open at a time */
    uint32_t head, n; /* slots (head + i) % slots, i below n */
    uint32_t open;    /* the first `open` of them are completed */
    /* the requester sent a NAK that puts its queue pair into the error state */
    bool stopped;
    bool blocked;         /* a work request handed over had no response */
    ns_t blocked_at;      /* time of its latest request packet */
    ns_t silence;         /* time without a packet before the latest ACK timeout */
    uint32_t backs;       /* consecutive go-backs without progress: none from a later PSN than the previous one */
    uint32_t backs_psn;   /* PSN of the latest one */
    bool in_vain;         /* wqe_flush(): responses to one and all later ones may not have reached the requester */
    ns_t fresh;           /* time of the latest new request */
    uint64_t fresh_frame; /* likewise */
    ns_t closed;          /* time of a DREQ of either end; 0: not seen */
    /* the request of the latest go-back, PSN `unheeded_psn`, had been answered before an earlier go-back of the row:
     * that response may not have reached the requester */
    bool unheeded;
    uint32_t unheeded_psn;
    bool left;         /* the requester sent a DREQ, and no request since */
    bool gave_up;      /* with `left`: it had exhausted its retries */
    bool dead;         /* one failed: later work requests are flushed */
    uint32_t dead_psn; /* PSN of the failed one */
    struct wqe *slot;  /* `slots` of them */
};

/* Further input of a decision. */
struct wqe_env {
    const struct observer *observer;
    struct req_dir *dir;
    const struct conn_params *params; /* of the requests in `dir` */
    const struct wqe_user *user;
    uint64_t *next_id;
};

/* Begin with a few slots; false without memory. */
bool wqe_ring_init(struct wqe_ring *r);
/* Copy ring `from`, with its slots, to `to`. False without memory: `to` has no slots then. */
bool wqe_ring_copy(struct wqe_ring *to, const struct wqe_ring *from);
void wqe_ring_free(struct wqe_ring *r);

/* The PSN after the last one of `w`. */
uint32_t wqe_end(const struct req_dir *h, const struct wqe *w);
/* Request `p`, which is `as`; after req_dir_request(), or before it for SEEN_RESTART (then call wqe_flush() first). */
void wqe_request(struct wqe_ring *r, const struct wqe_env *e, const struct pkt *p, enum seen_as as);
/* Response `p`; after req_dir_response(). */
void wqe_response(struct wqe_ring *r, const struct wqe_env *e, const struct pkt *p);
/* The requester sent a NAK that puts its own queue pair into the error state: open work requests are flushed, later
 * responses dropped. */
void wqe_stop(struct wqe_ring *r);
/* Either end sent a DREQ at `now`. If the requester did (`own`), it ignores later responses. */
void wqe_close(struct wqe_ring *r, const struct wqe_env *e, ns_t now, bool own);
/* Hand over all open ones: WQE_RESTART, WQE_FORGOTTEN, or WQE_CAPTURE_ENDS with `now` the time of the capture's
 * last frame. */
void wqe_flush(struct wqe_ring *r, const struct wqe_env *e, enum wqe_reason why, ns_t now);
/* A datagram: handed over at once. */
void wqe_datagram(const struct wqe_user *u, uint64_t *next_id, const struct pkt *p, uint32_t flow);

#endif
