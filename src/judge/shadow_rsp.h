/* layer 3 (judge): the replica of a responder: the transport's responder, of which not everything is known.
 *
 * A request that passes the tap may be lost before the responder; only the responder's own packets prove what arrived:
 *
 *     tap:  S0 S1 S2           ePSN is 0 to 3: none is known to have arrived
 *     tap:  S0 S1 S2   ACK 0   ePSN is 1 to 3
 *     tap:  S0 S1 S2   NAK 1   ePSN was 1 then: 1 was lost. The tap may see it again before it arrives. */
#ifndef RDMATRACE_JUDGE_SHADOW_RSP_H
#define RDMATRACE_JUDGE_SHADOW_RSP_H

#include "src/transport/responder.h"

struct shadow_rsp {
    struct responder r; /* epsn_lo: known to be executed before, epsn_hi: may be; msn_lo and msn_hi likewise */
    struct rsp_unknown u;
};

/* Begin with parameters `p`, what is unknown `u` (from_start, pmtu_unknown) and a ring of `n` entries (a power of two)
 * in the same allocation as `s`. */
void shadow_rsp_init(struct shadow_rsp *s, const struct rsp_params *p, const struct rsp_unknown *u,
                     struct rsp_res *ring, uint32_t n);
/* The path MTU became known: READs are given the PSNs that they take. */
void shadow_rsp_learn_pmtu(struct shadow_rsp *s, uint16_t pmtu);
/* Request `p` was seen on its way. Of memory and receives nothing is known: both permit it. */
void shadow_rsp_rx(struct shadow_rsp *s, const struct pkt *p, ns_t now);
/* Every request before `psn` was seen, in whatever order: they may all have arrived. */
void shadow_rsp_may_expect(struct shadow_rsp *s, uint32_t psn);
/* It is not known which of the READs and atomics seen were dropped when they came first: no answer is due, though one
 * may come. */
void shadow_rsp_settle(struct shadow_rsp *s);
/* Whether response `p` is nothing unusual: a plain ACK of what is after the last ACK and not after what was seen, while
 * no answer is due. No rule is broken then. */
bool shadow_rsp_tx_is_usual(const struct shadow_rsp *s, const struct pkt *p);
/* Response `p` was seen: it proves which requests arrived. */
void shadow_rsp_tx(struct shadow_rsp *s, const struct pkt *p);

#endif
