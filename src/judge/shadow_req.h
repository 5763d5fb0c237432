/* layer 3 (judge): the replica of a requester: the transport's requester, of which not everything is known.
 *
 * A response that passes the tap may be lost before the requester. So the replica never goes back by itself: it notes
 * where the requester may resume (struct req_unknown), and the next request seen tells what it received:
 *
 *     tap:  S0 S1 S2   NAK 1         S3        the NAK is lost, or still on its way: S3 is permitted
 *     tap:  S0 S1 S2   NAK 1         S1        it arrived: una_lo is 1 from now on, S2 is due next
 *     tap:  S0 S1 S2   NAK 1  ACK 2  S1 or S2  it arrived before the ACK, or after it */
#ifndef RDMATRACE_JUDGE_SHADOW_REQ_H
#define RDMATRACE_JUDGE_SHADOW_REQ_H

#include "src/transport/requester.h"
#include "src/transport/unknown.h"

struct shadow_req {
    struct requester r; /* una_lo: known to have been received, una_hi: may have been */
    struct req_unknown u;
    bool acked_since;  /* after the response that demands a resumption, another one acknowledged more */
    uint32_t back_psn; /* PSN at which the latest retransmission began */
};

/* Begin with parameters `p`, what is unknown `u` (complete, from_start, pmtu_unknown, slack) and a ring of `n` entries
 * (a power of two) in the same allocation as `s`. */
void shadow_req_init(struct shadow_req *s, const struct req_params *p, const struct req_unknown *u,
                     struct req_msg *ring, uint32_t n);
/* The path MTU became known: READs are given the PSNs that they take. */
void shadow_req_learn_pmtu(struct shadow_req *s, uint16_t pmtu);
/* Whether request `p` is nothing unusual: the next packet of the message in progress, or the first of the next one, of
 * SEND or WRITE, while nothing is retransmitted, waits or lacks credit. No rule is broken then: the checks need not be
 * asked. */
bool shadow_req_tx_is_usual(const struct shadow_req *s, const struct pkt *p);
/* Request `p` was seen: new, with or without a gap before it, or retransmitted. */
void shadow_req_tx(struct shadow_req *s, const struct pkt *p, ns_t now);
/* The same for a packet of which shadow_req_tx_is_usual() said so before it. */
void shadow_req_tx_usual(struct shadow_req *s, const struct pkt *p, ns_t now);
/* Response `p` was seen; the requester may receive it. */
void shadow_req_rx(struct shadow_req *s, const struct pkt *p, ns_t now);
/* Whether the requester may resume at `psn`, because a response demands it or because it retransmits and `psn` is
 * due. */
bool shadow_req_is_due_again(const struct shadow_req *s, uint32_t psn);

#endif
