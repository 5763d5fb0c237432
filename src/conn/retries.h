/* layer 2b (conn): how often a requester has retried, and whether it has given up. */
#ifndef RDMATRACE_CONN_RETRIES_H
#define RDMATRACE_CONN_RETRIES_H

#include "src/conn/observer.h"

#define RETRIES_MAX 7 /* largest retry count, a field of three bits: no requester retries more often */

/* ACK timeouts in a row without progress, up to now. */
uint32_t retries_used(const struct observer *w, const struct req_dir *h);
/* Whether the requester has given up at `now`: its ACK timeouts without progress reached the retry count that CM
 * states, or RETRIES_MAX; or they reached the retry count that its REQ sets for its peer, and it has sent nothing for
 * `silence` since, the time that passed before one of the timeouts (0: not known); or it has sent nothing for several
 * times `silence`. False if the capture may only lack the responses, and if it goes on behind the last try (to `now`)
 * for less than the ACK timeout: a response may still come. */
bool retries_gave_up(const struct observer *w, const struct req_dir *h, const struct conn_params *c, ns_t silence,
                     ns_t now);
/* Whether the requester used its last retry and sent nothing new: responses that the tap saw meanwhile did not reach it
 * before that retry. */
bool retries_spent(const struct observer *w, const struct req_dir *h, const struct conn_params *c);
/* Whether a requester with retry count 0 has given up a request that had no response for `waited` ns: the ACK timer may
 * run up to four times its nominal timeout (9.7.6.1.3), so that much must have passed; if the requester `closed` the
 * connection, the nominal timeout is enough. */
bool retries_timed_out(const struct conn_params *c, ns_t waited, bool closed);
/* Whether the RNR retry count is known and allows one more retry after the latest RNR NAK (h->rnr). */
bool retries_left_rnr(const struct conn_params *c, const struct req_dir *h);
/* Whether the requester that retransmits at `now` for the latest RNR NAK (h->rnr) comes far later than the RNR timer.
 */
bool retries_outlast_rnr(const struct req_dir *h, ns_t now);
/* The ACK timeout that explains why it comes so late, as its code states, ns; 0: it does not, or comes in time. The
 * RNR NAK most likely did not reach the requester, or its retry not the tap. `timeout`: code of the ACK timeout; 0: not
 * known, so that any code will do that is near, as the NAK comes at most a round trip after its request. */
ns_t retries_timer_of_rnr(const struct req_dir *h, unsigned timeout, ns_t now);

#endif
