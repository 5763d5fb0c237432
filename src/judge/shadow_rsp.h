/* layer 3 (judge): the replica of a responder: the transport's responder with unknowns.
 *
 * A request seen at the tap may be lost before it reaches the responder; only responses prove what arrived:
 *
 *     tap:  S0 S1 S2           ePSN is 0 to 3: none is known to have arrived
 *     tap:  S0 S1 S2   ACK 0   ePSN is 1 to 3
 *     tap:  S0 S1 S2   NAK 1   ePSN was 1 when the NAK was sent: S1 was lost; a retransmitted S1 may be on its way */
#ifndef RDMATRACE_JUDGE_SHADOW_RSP_H
#define RDMATRACE_JUDGE_SHADOW_RSP_H

#include "src/transport/responder.h"

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
