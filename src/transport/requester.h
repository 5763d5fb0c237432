/* layer 2 (transport): the requester: which requests may be sent, and what responses do (IBTA volume 1, 9.7, 9.8). */
#ifndef RDMATRACE_REQUESTER_H
#define RDMATRACE_REQUESTER_H

#include "psn.h"
#include "src/transport/effects.h"
#include "src/transport/rules.h"

struct pkt;

struct req_unknown;

/* Kind of a message. */
enum msg_kind {
    MSG_SEND,
    MSG_WRITE,
    MSG_READ,
    MSG_ATOMIC,
    MSG_PLACE, /* ATOMIC WRITE, FLUSH: the response is a READ response without data */
    MSG_LOCAL, /* no packet: bind, local invalidate */
};

/* A message that was begun. Message number n is at n modulo the ring's size. */
struct req_msg {
    uint64_t va; /* READ, WRITE, atomic: remote address */
    uint32_t rkey;
    uint32_t len;        /* READ, WRITE: bytes as in the RETH; SEND: bytes sent so far */
    uint32_t psn;        /* first PSN */
    uint32_t span;       /* PSNs used so far; a READ uses all of them with its request */
    uint32_t sent;       /* SEND, WRITE: payload bytes in these PSNs */
    uint32_t got;        /* READ, atomic: responses received in order */
    uint32_t ssn;        /* send sequence number, 24 bits */
    uint8_t kind;        /* enum msg_kind */
    uint8_t opcode;      /* of its first packet */
    uint8_t last_opcode; /* of its last packet, when not open */
    bool open;           /* its last packet is not sent yet */
    bool holes;          /* validator: packets of it were missed, so its lengths are not known */
    bool credit;         /* uses an end-to-end credit: SEND, WRITE with immediate (known at its last packet) */
};

/* Parameters of a requester, constant while it sends. */
struct req_params {
    uint8_t service;   /* enum service: SVC_RC, SVC_UC, SVC_UD, SVC_XRC */
    uint8_t timeout;   /* local ACK timeout, 4.096 us x 2^n; 0: none */
    uint8_t retry_cnt; /* 0 to 7 */
    uint8_t rnr_retry; /* 0 to 7; 7: no limit */
    uint8_t max_rd;    /* initiator depth */
    bool credits;      /* end-to-end flow control is in use */
    bool rxe;          /* profile rxe: soft-RoCE (retry count 7: no limit; a missing READ response is left
                          to the ACK timeout) */
    bool selective;    /* profile nv: a NAK, also an implied one, makes it retransmit the packet of that PSN alone: both
                          ends    keep what comes behind it. An ACK timeout means go-back-N all the same */
    uint16_t pmtu;     /* bytes */
    uint32_t psn;      /* first PSN */
};

/* Plain data: may be copied together with its ring (one block). */
struct requester {
    struct req_params p;

    /* What is sent. Message numbers count from 0 and wrap at 2^32. */
    uint32_t psn_next;  /* first PSN never used */
    uint32_t psn_tx;    /* next PSN due: psn_next, or an earlier one during go-back-N */
    uint32_t msg_head;  /* oldest incomplete message */
    uint32_t msg_tx;    /* message of psn_tx; msg_tail when that begins a new message */
    uint32_t msg_tail;  /* number of the next message */
    uint32_t ssn;       /* send sequence number of the latest message (0: none) */
    uint32_t rd_out;    /* READs and atomics outstanding */
    uint32_t place_out; /* ATOMIC WRITEs and FLUSHes outstanding */

    /* Acknowledged: every PSN before una_lo, none from una_hi on; those in between may be. Equal at an endpoint. */
    uint32_t una_lo;
    uint32_t una_hi;
    uint32_t limit;     /* end-to-end credits: last SSN that may be sent, 24 bits */
    bool unlimited;     /* no credits in use, or credit code 31 was received */
    bool learn_credits; /* validator: the first ACK tells whether credits are in use */
    bool probing;       /* the one packet permitted without credit is outstanding */
    uint32_t probe_end; /* with probing: PSN behind it */

    /* Retransmission: go-back-N. */
    bool went_back; /* no progress since the last go-back-N after a NAK or an implied NAK */
    bool rnr_wait;  /* RNR NAK: nothing is sent until rnr_until */
    bool dead;      /* error state: nothing more is sent */
    uint8_t cause;  /* enum eff_reason of the last go-back-N */
    uint8_t retry_left;
    uint8_t rnr_left;
    uint32_t rtx_end; /* PSNs before this had been sent at the last go-back-N */
    ns_t timer;       /* when the transport timer was (re)started; NS_NEVER: not running */
    ns_t rnr_until;

    /* The ring, relative to this structure: a copy of the block needs no fix-up. */
    int32_t msg_off;   /* bytes from this structure to the first struct req_msg */
    uint32_t msg_mask; /* entries - 1 */
};

/* Begin with parameters `p` and a ring of `n` entries (a power of two) in the same allocation as `r`. */
void req_init(struct requester *r, const struct req_params *p, struct req_msg *ring, uint32_t n);

/* Message number `n`; valid while it is among the last msg_mask + 1 ones. */
static inline struct req_msg *req_msg(const struct requester *r, uint32_t n)
{
    return (struct req_msg *)(uintptr_t)((const char *)r + r->msg_off) + (n & r->msg_mask);
}

/* PSNs outstanding: sent and not known to be acknowledged. */
static inline uint32_t req_outstanding(const struct requester *r)
{
    return (r->psn_next - r->una_hi) & PSN_MASK;
}
/* True while it retransmits. */
static inline bool req_going_back(const struct requester *r)
{
    return r->psn_tx != r->psn_next;
}
/* True if responses to READs or atomics are outstanding; *psn is that of the next one. */
bool req_next_response(const struct requester *r, uint32_t *psn);
/* True if the ring has room for one more message. */
static inline bool req_has_room(const struct requester *r)
{
    return r->msg_tail - r->msg_head <= r->msg_mask;
}
/* True if end-to-end credits permit message `ssn`; the one beyond the limit is the probe. */
static inline bool req_has_credit(const struct requester *r, uint32_t ssn)
{
    return r->unlimited || psn_diff(ssn, r->limit) <= (r->probing ? 0 : 1);
}
/* Requests outstanding that use a responder resource. */
static inline uint32_t req_resources(const struct requester *r)
{
    return r->rd_out + r->place_out;
}
/* The message of PSN `psn`, by binary search; r->msg_tail if it was not sent or is complete. */
uint32_t req_find(const struct requester *r, uint32_t psn);
/* Likewise, complete messages included, as far as they are still in the ring. */
uint32_t req_find_remembered(const struct requester *r, uint32_t psn);

/* The rule that a requester breaks which does not resume where a response demands it, for the reason `why` (enum
 * eff_reason). */
enum rule req_demand_rule(unsigned why);
/* The rule that a packet of service `got` breaks which belongs to a queue pair of another service (enum service). */
enum rule service_rule(unsigned service, unsigned got);
/* May `p` be sent now? Only `have`, `bth`, `op`, `payload_len` and the headers in `have` must be set. */
struct verdict req_tx_check(const struct requester *r, const struct pkt *p, ns_t now);
/* All rules that `p` breaks, at most `max`; returns their number. `u`: what a validator does not know; NULL at an
 * endpoint. */
unsigned req_tx_check_all(const struct requester *r, const struct req_unknown *u, const struct pkt *p, ns_t now,
                          struct verdict *out, unsigned max);
/* `p` was sent. Also for a packet that the check rejected; never asserts. An endpoint begins a message only if
 * req_has_room(). */
struct effects req_tx(struct requester *r, const struct pkt *p, ns_t now);
/* The response `p` arrived. */
struct effects req_rx(struct requester *r, const struct pkt *p, ns_t now);
/* Begin a local message (bind, invalidate): it completes in the order of the send queue. */
void req_local(struct requester *r);
/* Complete messages at the head that need no response: local ones, and all that UC and UD have sent. */
struct effects req_settle(struct requester *r);
/* When to call req_expire(): end of an RNR wait, or the ACK timer; NS_NEVER: no timer runs. */
ns_t req_expiry(const struct requester *r);
/* The timer has expired at `now`: EFF_RETRANSMIT, or EFF_ERROR when retries are exhausted; nothing if it has not. */
struct effects req_expire(struct requester *r, ns_t now);

#endif
