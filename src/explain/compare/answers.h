/* layer 3 (explain): compare taps: which responses each of them saw. */
#ifndef RDMATRACE_EXPLAIN_ANSWERS_H
#define RDMATRACE_EXPLAIN_ANSWERS_H

#include "src/explain/explain_impl.h"

/* Whether the first response with its PSN that the tap of a flow saw is the first one, `r`, of the tap of `other`. */
bool answers_are_one(const struct explainer *x, uint32_t flow, uint32_t other, const struct noted_response *r);
/* Whether this tap saw the first response `r` of another tap, too: it came, only later than the retransmission on ACK
 * timeout. */
bool answer_came_later(const struct explainer *x, const struct incident *st, uint32_t other,
                       const struct noted_response *r);
/* A request was retransmitted on ACK timeout; `n`: requests from that of the incident on that had been sent. Whether
 * the other tap saw a NAK or an RNR NAK for one of them that this tap lacks: it was lost between them, and the incident
 * says so. */
bool answers_compare_naks(struct explainer *x, struct incident *st, uint32_t other, unsigned n);
/* The other tap has request `s` as well, as `o`: find out whether it saw the response to it, or to one of `n`. */
void answers_compare(struct explainer *x, struct incident *st, const struct sent *s, const struct sent *o,
                     uint32_t other, unsigned n);

#endif
