/* layer 2b (conn): why a requester went back: NAK, implied NAK, RNR NAK or ACK timeout.
 *
 *     S0 S1 S2   NAK 1       S1   a sequence NAK
 *     R0 S1      ACK 1       R0   an implied NAK: the response of READ 0 is missing
 *     S0         RNR NAK 0   S0   after the RNR timer
 *     S0         ...         S0   silence: the ACK timeout, or a NAK that was not captured */
#ifndef RDMATRACE_CONN_GO_BACK_H
#define RDMATRACE_CONN_GO_BACK_H

#include "src/conn/requests.h"

/* The latest requests that were retransmitted after an ACK timeout, whatever responses the tap has seen. */
struct tries {
    uint32_t psn;  /* where they began */
    uint32_t n;    /* times in a row; 0: the latest had another reason */
    uint32_t next; /* req_dir.next at the latest */
};

/* A sequence NAK to which no request has gone back yet. That its PSN was seen since, in passing or for the first time,
 * does not answer it: the packet may have been reordered. */
struct open_nak {
    bool open;
    uint32_t psn;
};
#define GO_BACK_NAKS 4 /* sequence NAKs that are remembered of a flow */

/* What is remembered of one direction of requests; all zero: nothing. */
struct go_backs {
    struct open_nak naks[GO_BACK_NAKS];
    uint32_t naks_at; /* how many there were */
    struct tries tries;
};

/* A sequence NAK for `psn` was seen. */
static inline void go_back_nak(struct go_backs *g, uint32_t psn)
{
    g->naks[g->naks_at++ % GO_BACK_NAKS] = (struct open_nak){true, psn};
}
/* Why the requester of `h` goes back to request `p`, which is SEEN_AGAIN and before h->cursor; before
 * req_dir_request(). BACK_NONE: it does not: the packet belongs to a retransmission already under way and was
 * reordered. h->timeout is known by now, or 0. */
enum why_back go_back_why(struct go_backs *g, struct req_dir *h, const struct pkt *p);

#endif
