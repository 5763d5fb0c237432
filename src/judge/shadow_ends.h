/* layer 3 (judge): the replicas of a requester and of a responder: those of the transport, with unknowns.
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
 *     tap:  S0 S1 S2   NAK 1   ePSN was 1 when the NAK was sent: S1 was lost; a retransmitted S1 may be on its way */
#ifndef RDMATRACE_JUDGE_SHADOW_ENDS_H
#define RDMATRACE_JUDGE_SHADOW_ENDS_H

#include "src/transport/requester.h"
#include "src/transport/responder.h"
#include "src/transport/unknown.h"

struct shadow_req {
    struct requester r; /* una_lo: acknowledged for the requester with certainty, una_hi: at most */
    struct req_unknown u;
    bool acked_since;  /* after the NAK or implied NAK that may_resume is for, a response acknowledged more requests */
    uint32_t back_psn; /* PSN at which the latest retransmission began */
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

#endif
