/* layer 3 (measure): the work requests behind the packets of a half.
 *
 * A work request is known by the PSNs that its packets (a READ's: its responses) take. Those of a half are kept in the
 * order of their PSNs until there are too many, so that a retransmission still finds the one it belongs to: what the
 * requester sends again, it has not seen completed. Then, or at the end, each is given a status and handed over. */
#ifndef RDMATRACE_MEASURE_WQE_H
#define RDMATRACE_MEASURE_WQE_H

#include "src/conn/retries.h"
#include "src/transport/verbs.h"

#define WORK_MAX 256 /* work requests of a half that are remembered */

enum work_op {
    WORK_SEND,
    WORK_SEND_IMM,
    WORK_SEND_INV,
    WORK_WRITE,
    WORK_WRITE_IMM,
    WORK_READ,
    WORK_CMP_SWAP,
    WORK_FETCH_ADD,
    WORK_FLUSH,
    WORK_ATOMIC_WRITE,
    WORK_OPS
};
/* "SEND", "SEND with immediate", ... "ATOMIC WRITE". */
const char *work_op_str(enum work_op op);

/* Why a status is not known. */
enum work_reason {
    WORK_KNOWN,
    WORK_UNRELIABLE, /* UC, UD: no answer is ever sent */
    WORK_CAPTURE_ENDS,
    WORK_NO_ACK, /* nothing came from the other end at all */
    /* it was acknowledged, but one before it was then sent again for want of an answer: a send queue completes in
     * order */
    WORK_BEHIND,
    WORK_NO_ANSWER, /* responses to a READ or atomic are missing, although later requests were acknowledged */
    WORK_RNR_WAIT,  /* the receiver was not ready; the request was not seen again */
    WORK_RESTART,   /* the queue pair was set up anew */
    WORK_FORGOTTEN, /* its flow gave its place to another one */
    WORK_TOO_MANY,  /* more than WORK_MAX later work requests, and still no answer */
    WORK_LEFT,      /* either end asked for a disconnect before an answer came */
    WORK_REPEATED,  /* acknowledged, but sent again in spite of that, as often as is allowed, and nothing follows */
};
/* A few words; "" for WORK_KNOWN. */
const char *work_reason_str(enum work_reason r);

#define WORK_STATUS_UNKNOWN 0xff

struct work {
    uint64_t id;                      /* from 1, in the order in which they were seen first */
    uint64_t bytes;                   /* payload; of a READ: asked for */
    uint64_t va;                      /* with have_remote */
    uint64_t first_frame, last_frame; /* requests, repetitions included */
    uint64_t done_frame;              /* that completes it; 0: none */
    ns_t start;                       /* of the first packet */
    ns_t last;                        /* of the latest request packet */
    ns_t done;                        /* with done_frame */
    /* not complete by then: what acknowledged it although the answer to one before was missing. 0: nothing */
    uint64_t proof_frame;
    ns_t proof;       /* with proof_frame */
    uint32_t psn;     /* first one */
    uint32_t end;     /* behind the last one, as far as seen; for a READ see work_end() */
    uint32_t rkey;    /* with have_remote */
    uint32_t imm;     /* immediate, or the rkey to invalidate; by op */
    uint32_t packets; /* requests, repetitions included; answers are not counted */
    uint32_t again;   /* of them repetitions (not those that are identical to the last bit) */
    uint32_t got;     /* responses seen without a hole */
    uint32_t rnr_naks, seq_naks;
    uint8_t op;       /* enum work_op */
    uint8_t service;  /* enum service */
    uint8_t status;   /* enum wc_status, or WORK_STATUS_UNKNOWN */
    uint8_t reason;   /* enum work_reason */
    bool begun;       /* its first packet was seen */
    bool ended;       /* its last packet was seen */
    bool have_remote; /* va and rkey */
    bool refused;     /* a NAK ended it: `status` */
    bool missed;      /* its answer was passed over, and it was asked for again: the requester had not got it */
};

/* What happens to work requests. */
struct work_user {
    void *user;
    /* A packet concerns work request `w`: one of its requests, responses or NAKs, or the ACK that completes it. May be
     * NULL. */
    void (*packet)(void *user, const struct work *w, const struct pkt *p);
    /* It is over; `flow` is that of its requests. */
    void (*over)(void *user, const struct work *w, uint32_t flow);
};

struct work_ring {
    uint32_t head, n; /* slots (head + i) % WORK_MAX, i below n */
    uint32_t open;    /* the first `open` of them are completed */
    /* the requester has since refused a request of its peer's: its queue pair is in the error state */
    bool stopped;
    bool blocked;         /* one that was handed over was missed, and had no answer */
    ns_t blocked_at;      /* when it was asked for last */
    ns_t silence;         /* time without a packet before the latest timeout */
    uint32_t backs;       /* times in a row that something was sent again, each from no later PSN than the one before */
    uint32_t backs_psn;   /* from here on, the latest time */
    bool in_vain;         /* work_flush(): the answers to one, and to all behind it, may not have come */
    ns_t fresh;           /* of the latest request that was not sent before */
    uint64_t fresh_frame; /* likewise */
    ns_t closed;          /* when either end asked for a disconnect; 0: not seen */
    /* what was sent again last, from PSN `unheeded_psn` on, had been answered before one of the times in a row */
    bool unheeded;
    uint32_t unheeded_psn;
    bool left;         /* the requester has, and has sent nothing since */
    bool gave_up;      /* with `left`: it had run out of retries by then */
    bool dead;         /* one failed: those behind it are flushed */
    uint32_t dead_psn; /* behind which they are */
    struct work slot[WORK_MAX];
};

/* The rest of what a decision needs. */
struct work_env {
    const struct observer *observer;
    struct req_dir *half;
    const struct conn_params *params; /* of the half's requests */
    const struct work_user *user;
    uint64_t *next_id;
};

/* Behind the last PSN of `w`. */
uint32_t work_end(const struct req_dir *h, const struct work *w);
/* The request `p`, which is `as`; after req_dir_request(), or before it for SEEN_RESTART (then call work_flush()
 * first). */
void work_request(struct work_ring *r, const struct work_env *e, const struct pkt *p, enum seen_as as);
/* The response `p`; after req_dir_response(). */
void work_response(struct work_ring *r, const struct work_env *e, const struct pkt *p);
/* The requester has sent a NAK that ends its own queue pair: what is not complete is flushed, and what comes for it
 * dropped. */
void work_stop(struct work_ring *r);
/* Either end has asked for a disconnect at `now`. If the requester did (`own`), it takes no answer any more. */
void work_close(struct work_ring *r, const struct work_env *e, ns_t now, bool own);
/* Hand over all that are left: WORK_RESTART, WORK_FORGOTTEN, or WORK_CAPTURE_ENDS with `now` the time of the capture's
 * last frame. */
void work_flush(struct work_ring *r, const struct work_env *e, enum work_reason why, ns_t now);
/* A datagram: handed over at once. */
void work_datagram(const struct work_user *u, uint64_t *next_id, const struct pkt *p, uint32_t flow);

#endif
