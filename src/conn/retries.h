/* layer 2b (conn): how often a requester has retried, and whether it has given up. */
#ifndef RDMATRACE_CONN_RETRIES_H
#define RDMATRACE_CONN_RETRIES_H

#include "src/conn/observer.h"

#define RETRIES_MAX 7 /* largest retry count: it has three bits, so after so many ACK timeouts no requester goes on */

/* How often a half has sent the same again in a row for want of an answer, up to now and without progress. */
uint32_t retries_used(const struct observer *w, const struct req_dir *h);
/* Whether the requester of a half has run out of retries at `now`: as many timeouts without progress as were agreed on
 * or can be, as many as it asked the other end for and then nothing for as long as the `silence` (0: not known) before
 * one of them, or nothing for much longer. Not if the answers may only not have been captured. */
bool retries_gave_up(const struct observer *w, const struct req_dir *h, const struct conn_params *c, ns_t silence,
                     ns_t now);
/* Whether a half has sent the same again as often as is allowed, and nothing behind it: whatever answers the tap has
 * seen meanwhile, its requester had none of them before the last time. */
bool retries_spent(const struct observer *w, const struct req_dir *h, const struct conn_params *c);
/* Whether a requester without retries has given up a request after so long without an answer: the ACK timer may run up
 * to four times as long as its code says, but not shorter by more than the ticks in which software counts it, which
 * shows if it `closed` the connection. */
bool retries_timed_out(const struct conn_params *c, ns_t waited, bool closed);

#endif
