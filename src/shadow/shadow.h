/* layer 2b (shadow): replicas of both ends of a connection, driven by the packets seen at a tap.
 *
 * A replica is a requester or responder of src/transport with the ranges of src/transport/unknown.h. Each packet is
 * first checked, by the same checks that our own endpoint must pass, and then applied. A replica begins with the
 * parameters of CM, of a parameter exchange or of the user, or in mid-stream with the first request seen; unknown
 * values are learnt from packets. A shadow is for the requests of one direction: their requester and the responder at
 * the other end. It is allocated when the first request of a direction is seen, and its rings grow up to the sizes
 * below as long as there is room; where there is little left, only what is outstanding makes them grow
 * (include/room.h).
 *
 * A response seen at the tap may be lost before it reaches the requester. So the replica never goes back by itself: it
 * notes where the requester may resume (struct req_unknown), and the next request seen shows what the requester
 * received:
 *
 *     tap:  S0 S1 S2   NAK 1         S3        the NAK is lost, or still on its way: S3 is permitted
 *     tap:  S0 S1 S2   NAK 1         S1        the NAK arrived: una_lo is 1 from now on, S2 is due next
 *     tap:  S0 S1 S2   NAK 1  ACK 2  S1 or S2  the NAK arrived before the ACK, or after it
 *
 * A request seen at the tap may be lost before it reaches the responder; only responses prove what arrived:
 *
 *     tap:  S0 S1 S2           ePSN is 0 to 3: none is known to have arrived
 *     tap:  S0 S1 S2   ACK 0   ePSN is 1 to 3
 *     tap:  S0 S1 S2   NAK 1   ePSN was 1 when the NAK was sent: S1 was lost; a retransmitted S1 may be on its way
 *
 * Not judged by the replicas, but in src/judge from what packets prove (src/conn/requests.h):
 * - skipped PSNs, and responses before their requests: packets captured out of order may explain them (pending.c);
 * - a path MTU that no CM message states: it may change with a new connection (values.c);
 * - a READ rejected without reason: only the responder knows the reason (response.c). */
#ifndef RDMATRACE_SHADOW_SHADOW_H
#define RDMATRACE_SHADOW_SHADOW_H

#include "room.h"
#include "src/conn/requests.h"
#include "src/transport/requester.h"
#include "src/transport/responder.h"
#include "src/transport/unknown.h"

struct shadow_req {
    struct requester r; /* una_lo: acknowledged for the requester with certainty, una_hi: at most */
    struct req_unknown u;
    bool acked_since;  /* after the NAK or implied NAK that may_resume is for, a response acknowledged more requests */
    uint32_t back_psn; /* PSN at which the latest retransmission began */
    bool resent;       /* no response has answered the packet of back_psn since it was sent again */
};

/* Initialise with parameters `p`, unknowns `u` (complete, from_start, pmtu_unknown, slack are used) and a ring of
 * `n` entries (a power of two) in the same allocation as `s`. */
void shadow_req_init(struct shadow_req *s, const struct req_params *p, const struct req_unknown *u,
                     struct req_msg *ring, uint32_t n);
/* The path MTU became known: set the number of PSNs of each READ. */
void shadow_req_learn_pmtu(struct shadow_req *s, uint16_t pmtu);
/* True if request `p` is the next packet of the SEND or WRITE in progress, or the first packet of the next one, and
 * nothing is being retransmitted, waited for or short of credits. It breaks no rule then: the checks can be skipped. */
bool shadow_req_tx_is_usual(const struct shadow_req *s, const struct pkt *p);
/* Request `p` was seen: new, with or without a gap before it, or retransmitted. */
void shadow_req_tx(struct shadow_req *s, const struct pkt *p, ns_t now);
/* The same for a packet for which shadow_req_tx_is_usual() was true before. */
void shadow_req_tx_usual(struct shadow_req *s, const struct pkt *p, ns_t now);
/* Response `p` was seen; the requester may receive it. */
void shadow_req_rx(struct shadow_req *s, const struct pkt *p, ns_t now);
/* True if the requester may send `psn` as a retransmission: a NAK or implied NAK demands it, or it is the next PSN
 * of a retransmission in progress. */
bool shadow_req_is_due_again(const struct shadow_req *s, uint32_t psn);

struct shadow_rsp {
    struct responder r; /* executed: before epsn_lo certainly, before epsn_hi possibly; msn_lo and msn_hi likewise */
    struct rsp_unknown u;
};

/* Initialise with parameters `p`, unknowns `u` (from_start, pmtu_unknown are used) and a ring of `n` entries (a
 * power of two) in the same allocation as `s`. */
void shadow_rsp_init(struct shadow_rsp *s, const struct rsp_params *p, const struct rsp_unknown *u,
                     struct rsp_res *ring, uint32_t n);
/* The path MTU became known: set the number of PSNs of each READ. */
void shadow_rsp_learn_pmtu(struct shadow_rsp *s, uint16_t pmtu);
/* Request `p` was seen at the tap. Memory and receives of the responder are not known: both are taken to permit it. */
void shadow_rsp_rx(struct shadow_rsp *s, const struct pkt *p, ns_t now);
/* Every request before `psn` was seen, in any order: all of them may have arrived. */
void shadow_rsp_may_expect(struct shadow_rsp *s, uint32_t psn);
/* After a loss: any of the READs and atomics seen may have been dropped by the responder. No response is due, but
 * each may come. */
void shadow_rsp_settle(struct shadow_rsp *s);
/* True if response `p` is a plain ACK of a PSN after the latest ACK and before epsn_hi, while no READ or ATOMIC
 * response is due. It breaks no rule then, so the checks can be skipped. */
bool shadow_rsp_tx_is_usual(const struct shadow_rsp *s, const struct pkt *p);
/* Response `p` was seen: it proves which requests arrived. */
void shadow_rsp_tx(struct shadow_rsp *s, const struct pkt *p);

/* --- Both ends of a connection ---------------------------------------------------------------- */

#define SHADOW_MSGS  256 /* messages of the requester, at most */
#define SHADOW_RES   128 /* READs and atomics of the responder, at most */
#define SHADOW_FOUND 12  /* maximum number of verdicts about one packet */

/* Known parameters of a connection when its shadow begins. */
struct shadow_params {
    uint8_t service;   /* enum service */
    uint8_t timeout;   /* local ACK timeout, 4.096 us x 2^n; 0: off, or not known */
    uint8_t retry_cnt; /* UINT8_MAX: not known */
    uint8_t rnr_retry; /* 7: no limit, or not known */
    uint8_t depth;     /* maximum of outstanding READs and atomics; UINT8_MAX: not known */
    bool rxe;          /* PROFILE_RXE */
    bool complete;     /* the user says that the capture lost no frame */
    bool from_start;   /* `psn` is the first one of the queue pair */
    uint16_t pmtu;     /* bytes, 0: not known */
    uint32_t psn;      /* from_start: the first PSN of the queue pair; else that of the first request seen */
    bool thorough;     /* for tests: run every check, also for packets that *_is_usual() would exempt */
};

struct shadow {
    bool thorough;     /* as in shadow_params */
    uint32_t start;    /* first PSN that the replicas know */
    struct room *room; /* from which the rings grow; NULL: no limit */
    struct shadow_req req;
    struct shadow_rsp rsp;
    /* behind it, in the same allocation, the rings: struct req_msg, then struct rsp_res */
};
static inline struct req_msg *shadow_msgs(struct shadow *r)
{
    return (struct req_msg *)(r + 1);
}
/* `msgs`: entries of the ring before it. */
static inline struct rsp_res *shadow_res(struct shadow *r, uint32_t msgs)
{
    return (struct rsp_res *)(shadow_msgs(r) + msgs);
}

/* Allocate the replicas of a flow; NULL without memory. */
struct shadow *shadow_new(struct room *room);
void shadow_free(struct shadow *r);
/* Initialise; also for a new connection of the same queue pairs. */
void shadow_begin(struct shadow *r, const struct shadow_params *k);
/* Whether a ring has no empty place for what the next request may begin. */
static inline bool shadow_is_full(const struct shadow *r)
{
    const struct requester *q = &r->req.r;

    return !(q->msg_tail & q->msg_mask) || !req_has_room(q) ||
           r->rsp.r.res_tail - r->rsp.r.res_head > r->rsp.r.res_mask;
}
/* With shadow_is_full(): enlarge what is full, if there is room. Returns `r`, or where it is now. */
struct shadow *shadow_grow(struct shadow *r);
/* The path MTU became known. */
static inline void shadow_learn_pmtu(struct shadow *r, uint16_t pmtu)
{
    shadow_req_learn_pmtu(&r->req, pmtu);
    shadow_rsp_learn_pmtu(&r->rsp, pmtu);
}
/* True if no check can fail for request `p`, which is SEEN_NEW (shadow_req_tx_is_usual()). */
static inline bool shadow_is_usual(const struct shadow *r, const struct pkt *p)
{
    return shadow_req_tx_is_usual(&r->req, p) && !r->thorough;
}
/* Check request `p`: write the failures, at most SHADOW_FOUND, to `out` and return their number. */
unsigned shadow_check_request(const struct shadow *r, const struct pkt *p, struct verdict *out);
/* Apply request `p` to both replicas; after req_dir_request(), which classified it as `as` for the requests `h`.
 * `usual`: shadow_is_usual() before that. */
void shadow_request(struct shadow *r, const struct pkt *p, enum seen_as as, const struct req_dir *h, bool usual);
/* Check response `p` in the same way. `at_responder`: the capture is complete and the tap is at the responder, so
 * packets are seen in the order in which the responder received and sent them. */
unsigned shadow_check_response(struct shadow *r, const struct pkt *p, bool at_responder, struct verdict *out);
void shadow_response(struct shadow *r, const struct pkt *p);

#endif
