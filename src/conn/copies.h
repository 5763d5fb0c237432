/* layer 2b (conn): what two copies of a request have in common: headers, payload, and whether one sender has sent both;
 * and whether a request along another path goes on with the others. */
#ifndef RDMATRACE_CONN_COPIES_H
#define RDMATRACE_CONN_COPIES_H

#include "src/conn/conn.h"
#include "src/conn/requests.h"

struct pkt;

/* Whether request `p` and the latest copy `s` of its PSN have the same headers and length. */
bool copy_has_same_headers(const struct pkt *p, const struct sent *s);
/* Whether request `p` may retransmit the request of its PSN, or ask for the rest of the READ among whose responses that
 * PSN is. False if neither is remembered. */
bool copy_may_repeat(struct req_dir *h, const struct pkt *p);
/* Whether request `p`, with the headers and length of the latest copy `s`, certainly carries other bytes: both ICRCs
 * were right, and differ by more than what else may differ accounts for (IP identification, UDP source port, flags of
 * the BTH). */
bool copy_has_other_payload(const struct pkt *p, const struct sent *s);
/* The copy of request `p` that somebody else has sent: it is the only one so far, is not the same request, and came
 * another way (packet_way()) than `p` and the request of the PSN before, or else behind. NULL: there is none. Before
 * req_dir_request(). */
const struct sent *copy_of_another_sender(struct req_dir *h, const struct pkt *p);

/* Whether that copy, `s`, was acknowledged before the request of its requester came: the responder has executed it. */
static inline bool copy_was_executed(const struct req_dir *h, const struct sent *s)
{
    return h->have_una && psn_diff(h->una, s->psn) > 0;
}
/* Whether request `p`, with MigReq set, continues the requests of `h`, which had it clear: it has the next PSN, or
 * retransmits a request. That one may have been acknowledged: the ACK may have been lost on the failed path. It may
 * also retransmit one that the failed path lost before the tap, whose PSN is ahead of all that were seen, or before.
 * `paired`: the flow of the other direction is known. */
enum goes_on copy_goes_on(struct req_dir *h, bool paired, const struct pkt *p);
/* Whether request `s` came another way than the request of the PSN before. */
bool sent_came_elsewhere(struct req_dir *h, const struct sent *s);

#endif
