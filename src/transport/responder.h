/* layer 2 (transport): the responder: how requests are validated, and which responses are due (IBTA volume 1, 9.7,
 * 9.8). */
#ifndef RDMATRACE_RESPONDER_H
#define RDMATRACE_RESPONDER_H

#include "dissect/ib/ib.h"
#include "psn.h"
#include "src/transport/effects.h"
#include "src/transport/mr.h"
#include "src/transport/rules.h"
#include "src/transport/unknown.h"

struct pkt;

/* What the responder does with a request. */
enum rsp_answer {
    ANS_EXECUTE,   /* expected: executed */
    ANS_DUPLICATE, /* duplicate: acknowledged, executed again (READ) or answered from the saved result */
    ANS_DROP,      /* dropped silently */
    ANS_NAK_SEQ,   /* ahead of the expected PSN */
    ANS_RNR,       /* no receive posted */
    ANS_NAK_INVALID,
    ANS_NAK_ACCESS,
    ANS_NAK_OPERATIONAL,
};

/* The resource of a READ or atomic: response due, or kept for duplicates. Number n is at n modulo the ring's size. */
struct rsp_res {
    uint64_t va;   /* of the request */
    uint64_t orig; /* atomic: original value (ATOMIC ACK) */
    uint32_t rkey;
    uint32_t len;  /* READ: bytes */
    uint32_t psn;  /* first PSN of the request */
    uint32_t span; /* PSNs of the request and its responses */
    /* response in progress: its first PSN, counted from `psn` (more than 0 after a READ restart) */
    uint32_t from;
    uint32_t next;            /* next PSN due, counted from `psn` */
    uint32_t end;             /* PSN after its last, counted from `psn`; next == end: no response is due */
    uint32_t tail;            /* payload bytes of its last packet */
    uint8_t opcode;           /* of the request, lower five bits */
    bool executed;            /* atomic: `orig` is valid */
    bool replay;              /* the response repeats an earlier one */
    struct rsp_res_unknown u; /* validator only; zero at an endpoint */
};

struct rsp_params {
    uint8_t service;   /* enum service: SVC_RC, SVC_UC, SVC_UD, SVC_XRC */
    uint8_t access;    /* ACCESS_REMOTE_* of the queue pair */
    uint8_t max_rd;    /* responder resources */
    uint8_t rnr_timer; /* 5-bit code of RNR NAKs */
    bool credits;      /* advertises end-to-end credits (no shared receive queue, flow control agreed) */
    bool rxe; /* profile rxe: behaviour of soft-RoCE (sequence NAK after RNR NAK; NAK 63 for a message too long; every
             duplicate acknowledged; a READ restart is answered from a Middle or Last on) */
    uint16_t pmtu;
    uint32_t psn;  /* first PSN expected */
    uint32_t qkey; /* UD */
};

/* Memory and receive queue at this moment. NULL in the functions below: not known (a validator), their checks pass. */
struct rsp_env {
    const struct mr_table *mrs;
    uint32_t pd;
    uint32_t qpn;
    bool no_srq;       /* XRC: the request names no shared receive queue of the queue pair's XRC domain */
    uint32_t rq_avail; /* receives posted and unused */
    uint64_t rq_len;   /* bytes of the receive in progress, else of the next one */
};

/* Message being received. */
enum rsp_open {
    OPEN_NONE,
    OPEN_SEND,
    OPEN_WRITE,
};

struct responder {
    struct rsp_params p;

    /* From what is proved to what is possible; both equal at an endpoint. */
    uint32_t epsn_lo, epsn_hi; /* expected PSN */
    uint32_t msn_lo, msn_hi;   /* messages completed, 24 bits */

    /* Message in progress. */
    uint8_t open;    /* enum rsp_open */
    bool recv_taken; /* it uses a receive */
    bool resync;     /* UC: requests are dropped until a First or Only */
    uint32_t offset; /* bytes received */
    uint32_t rkey;   /* WRITE */
    uint64_t va;     /* WRITE: address of the next payload */
    uint32_t left;   /* WRITE: bytes of the RETH still to come */

    /* Responses. */
    bool nak_sent;    /* a NAK was sent for epsn: requests ahead are dropped silently until epsn arrives (C9-114) */
    bool rnr_sent;    /* the NAK was an RNR NAK */
    uint32_t seen_hi; /* PSN after the furthest request seen */
    bool dead;        /* a fatal NAK was sent or is due */
    bool ack_due;     /* an ACK is due: requested, or for a duplicate */
    bool nak_due;     /* a NAK is due: nak_syndrome for nak_psn */
    bool started;     /* a request was executed */
    bool last_is_res; /* the message executed last is a READ or atomic */
    bool acked;       /* ack_psn is valid */
    uint8_t nak_syndrome;
    uint32_t nak_psn;
    uint32_t ack_psn;    /* PSN of the last plain ACK; validator that misses responses: the furthest one */
    uint32_t msn_sent;   /* MSN of the last response */
    uint32_t avail_sent; /* credits advertised last, in messages; UINT32_MAX: none yet */

    /* READs and atomics. */
    uint32_t res_head; /* oldest in the ring */
    uint32_t res_next; /* oldest with a response due; res_tail: none */
    uint32_t res_tail; /* number of the next one */
    uint32_t res_end;  /* PSN after the furthest of them; valid after the first one */
    int32_t res_off;   /* bytes from this structure to the first struct rsp_res */
    uint32_t res_mask; /* entries - 1 */
};

/* The response that is due next. */
struct rsp_due {
    uint8_t kind;     /* enum due_kind */
    uint8_t opcode;   /* operation (lower five bits) */
    uint8_t syndrome; /* of the AETH, if any; with p.credits the caller fills in the credits */
    uint32_t psn;
    uint32_t msn;
    uint32_t res; /* DUE_READ, DUE_ATOMIC: number of the resource */
    uint64_t va;  /* DUE_READ: where the data is */
    uint32_t rkey;
    uint32_t len;  /* DUE_READ: payload bytes */
    uint64_t orig; /* DUE_ATOMIC */
};
enum due_kind {
    DUE_NOTHING,
    DUE_READ,
    DUE_ATOMIC,
    DUE_NAK,
    DUE_ACK,
};

/* Begin with parameters `p` and a ring of `n` entries (a power of two, at least p->max_rd) in the same allocation as
 * `r`. */
void rsp_init(struct responder *r, const struct rsp_params *p, struct rsp_res *ring, uint32_t n);

/* Resource number `n`; valid from res_head to res_tail. */
static inline struct rsp_res *rsp_res(const struct responder *r, uint32_t n)
{
    return (struct rsp_res *)(uintptr_t)((const char *)r + r->res_off) + (n & r->res_mask);
}

/* Validate request `p`. A failure is the requester's; `answer`: the reaction of the responder. Order of the
 * specification: PSN, opcode sequence, opcode, resources, length, R_Key. */
struct verdict rsp_rx_check(const struct responder *r, const struct rsp_env *env, const struct pkt *p, ns_t now);
/* The request `p` arrived. */
struct effects rsp_rx(struct responder *r, const struct rsp_env *env, const struct pkt *p, ns_t now);
/* The atomic of resource `res` was executed and found `orig`. */
void rsp_atomic_done(struct responder *r, uint32_t res, uint64_t orig);
/* The request just given to rsp_rx(), with effects `e`, failed in local memory: it counts as not executed. */
void rsp_undo(struct responder *r, const struct effects *e);
/* The data of a READ, or the execution of an atomic, failed: a NAK with `syndrome` replaces the response. */
void rsp_fail(struct responder *r, uint8_t syndrome);
/* Likewise the data of READ `res`, which is answered once more: its key was invalidated since. The response is not
 * sent, as for a duplicate whose resource is gone. */
void rsp_skip(struct responder *r, uint32_t res);
/* The next response due, in the order of 9.5 and C9-27: READs and atomics, then a NAK, then an ACK. `ack` false: ACKs
 * wait. */
struct rsp_due rsp_due(const struct responder *r, bool ack);
/* May the response `p` be sent now? */
struct verdict rsp_tx_check(const struct responder *r, const struct pkt *p, ns_t now);
/* All rules that `p` breaks, at most `max`; returns their number. `u`: what a validator does not know; NULL at an
 * endpoint. */
unsigned rsp_tx_check_all(const struct responder *r, const struct rsp_unknown *u, const struct pkt *p, ns_t now,
                          struct verdict *out, unsigned max);
/* `p` was sent. */
struct effects rsp_tx(struct responder *r, const struct pkt *p, ns_t now);
/* Credit code (0 to 30) for `n` receives: the largest that stands for at most `n`. */
uint8_t credit_code(uint32_t n);

#define SYNDROME_ACK(credit) ((uint8_t)(AETH_ACK << 5 | (credit)))
#define SYNDROME_RNR(timer)  ((uint8_t)(AETH_RNR << 5 | (timer)))
#define SYNDROME_NAK(code)   ((uint8_t)(AETH_NAK << 5 | (code)))

#endif
