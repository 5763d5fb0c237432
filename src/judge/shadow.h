/* layer 3 (judge): replicas of both ends of a connection, driven by the packets seen at a tap.
 *
 * A replica is a requester or responder of src/transport with the ranges of src/transport/unknown.h. Each packet is
 * first checked, by the same checks that our own endpoint must pass, and then applied. A replica begins with the
 * parameters of CM, of a parameter exchange or of the user, or in mid-stream with the first request seen; unknown
 * values are learnt from packets. A shadow is for the requests of one direction: their requester and the responder at
 * the other end. It is allocated when the first request of a direction is seen, and its rings grow up to the sizes
 * below as long as there is room; where there is little left, only what is outstanding makes them grow
 * (include/room.h).
 *
 * Not judged by the replicas, but by the judge from what packets prove (src/conn/requests.h):
 * - skipped PSNs, and responses before their requests: packets captured out of order may explain them (pending.c);
 * - a path MTU that no CM message states: it may change with a new connection (values.c);
 * - a READ rejected without reason: only the responder knows the reason (response.c). */
#ifndef RDMATRACE_JUDGE_SHADOW_H
#define RDMATRACE_JUDGE_SHADOW_H

#include "room.h"
#include "src/conn/requests.h"
#include "src/judge/shadow_ends.h"

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
