/* layer 3 (judge): replicas of both ends of a connection, driven by what a tap saw.
 *
 * A replica is made of the transport's own parts, and of what is not known (src/transport/unknown.h): each packet is
 * first checked, by the very checks that an endpoint of ours must pass, and then applied. It begins with what CM, a
 * parameter exchange or the user told, or in mid-stream with the first request seen; what is not known is learnt. One
 * shadow is for one direction of requests: their requester, and the responder at the other end. Plain data of constant
 * size, about 24 KiB; made when a direction is first used.
 *
 * Kept beside it, because evidence about packets (requests.h) is better there: gaps in PSNs and
 * responses that come before their requests, which wait for packets recorded late; a path MTU
 * that no CM message states, which a queue pair used anew may change; a READ refused without reason,
 * of which only the responder knows whether it has one. */
#ifndef RDMATRACE_JUDGE_SHADOW_H
#define RDMATRACE_JUDGE_SHADOW_H

#include "src/conn/requests.h"
#include "src/judge/shadow_req.h"
#include "src/judge/shadow_rsp.h"

#define SHADOW_MSGS  256 /* messages remembered */
#define SHADOW_RES   128 /* READs and atomics remembered */
#define SHADOW_FOUND 12  /* verdicts about one packet at most */

/* What is known of a connection when its shadow begins. */
struct shadow_params {
    uint8_t service;   /* enum service */
    uint8_t timeout;   /* local ACK timeout, 4.096 us x 2^n; 0: none, or not known */
    uint8_t retry_cnt; /* UINT8_MAX: not known */
    uint8_t rnr_retry; /* 7: for ever, or not known */
    uint8_t depth;     /* READs and atomics outstanding at most; UINT8_MAX: not known */
    bool rxe;          /* habits of soft-RoCE */
    bool complete;     /* the capture lost no frame */
    bool from_start;   /* `psn` is the first one of the queue pair */
    uint16_t pmtu;     /* bytes, 0: not known */
    uint32_t psn;      /* of the first request of the queue pair, or else of the next one */
    bool thorough;     /* ask every check, also where nothing is unusual: for tests, which compare */
};

struct shadow {
    bool thorough;  /* every check is asked, also where nothing is unusual */
    uint32_t start; /* first PSN that the replicas know of */
    struct shadow_req req;
    struct shadow_rsp rsp;
    struct req_msg msgs[SHADOW_MSGS];
    struct rsp_res res[SHADOW_RES];
};

/* Begin, or begin anew. */
void shadow_begin(struct shadow *r, const struct shadow_params *k);
/* The path MTU became known. */
static inline void shadow_learn_pmtu(struct shadow *r, uint16_t pmtu)
{
    shadow_req_learn_pmtu(&r->req, pmtu);
    shadow_rsp_learn_pmtu(&r->rsp, pmtu);
}
/* Whether nothing about request `p`, which is SEEN_NEW, is unusual: no check fails. */
static inline bool shadow_is_usual(const struct shadow *r, const struct pkt *p)
{
    return shadow_req_tx_is_usual(&r->req, p) && !r->thorough;
}
/* What the checks say of request `p`: the failures, at most SHADOW_FOUND, to `out`; returns how many. */
unsigned shadow_check_request(const struct shadow *r, const struct pkt *p, struct verdict *out);
/* Take request `p`, which is `as` to the requests `h`; after req_dir_request(). `usual`: as shadow_is_usual() said
 * before. */
void shadow_request(struct shadow *r, const struct pkt *p, enum seen_as as, const struct req_dir *h, bool usual);
/* What the checks say of response `p`, likewise; `at_responder`: the capture is complete and its tap at the responder,
 * so that everything is seen in the order in which the responder took and sent it. */
unsigned shadow_check_response(struct shadow *r, const struct pkt *p, bool at_responder, struct verdict *out);
void shadow_response(struct shadow *r, const struct pkt *p);

#endif
