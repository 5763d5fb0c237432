/* layer 2b (conn): why a requester went back: NAK, implied NAK, RNR NAK or ACK timeout.
 *
 *     S0 S1 S2   NAK 1       S1   a sequence NAK
 *     R0 S1      ACK 1       R0   an implied NAK: the response of READ 0 is missing
 *     S0         RNR NAK 0   S0   after the RNR timer
 *     S0         ...         S0   silence: the ACK timeout, or a NAK that was not captured */
#ifndef RDMATRACE_CONN_GO_BACK_H
#define RDMATRACE_CONN_GO_BACK_H

#include "src/conn/requests.h"

/* The latest retransmissions after an ACK timeout, whatever responses the tap has seen. */
struct tries {
    uint32_t psn;  /* PSN where they began */
    uint32_t n;    /* ACK timeouts at `psn` in a row; 0: the requester last went back for another reason */
    uint32_t next; /* req_dir.next at the latest of them */
};

/* A sequence NAK after which the requester has not gone back to its PSN yet. A first copy of that PSN which comes after
 * the NAK was reordered, and leaves the NAK open. */
struct open_nak {
    bool open;
    uint32_t psn; /* PSN of the NAK */
};
#define GO_BACK_NAKS 4 /* sequence NAKs remembered of a flow */

/* NAKs and retries of one direction of requests. Zero-initialise. */
struct go_backs {
    struct open_nak naks[GO_BACK_NAKS];
    uint32_t naks_at; /* sequence NAKs seen so far */
    /* The latest request for an open NAK: place of the NAK in `naks` plus 1, 0: none or settled; and the PSN that was
     * due instead. If that comes next, the request was no answer to the NAK but was overtaken by the go-back-N that it
     * belongs to. */
    uint32_t taken, due;
    struct tries tries;
};

/* A sequence NAK for `psn` was seen. */
static inline void go_back_nak(struct go_backs *g, uint32_t psn)
{
    g->naks[g->naks_at++ % GO_BACK_NAKS] = (struct open_nak){true, psn};
}
/* Request `psn` comes, after go_back_why() if that is called for it: a NAK for the request before is open again if that
 * one was overtaken. */
static inline void go_back_next(struct go_backs *g, uint32_t psn)
{
    struct open_nak *n = g->taken ? &g->naks[g->taken - 1] : NULL;

    if (!n || n->psn == psn)
        return;
    n->open = psn == g->due;
    g->taken = 0;
}
/* Why the requester of `h` goes back to request `p`, which is SEEN_AGAIN and before h->cursor. Call it before
 * req_dir_request(), with h->timeout set (0: not known). BACK_NONE: it does not go back: the packet belongs to a
 * retransmission already under way and was reordered. */
enum why_back go_back_why(struct go_backs *g, struct req_dir *h, const struct pkt *p);

#endif
