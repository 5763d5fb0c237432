/* layer 2b (account): iWARP: what TCP lost, as states of an account. */
#ifndef RDMATRACE_ACCOUNT_STREAMS_H
#define RDMATRACE_ACCOUNT_STREAMS_H

#include "src/account/account.h"
#include "src/iwarp/iwarp.h"

/* The account of `all` ns, of which these were lost (`lost`, at most `all` of it); of the rest nothing is known. */
void stream_states(const ns_t lost[IWARP_TIMES], ns_t all, ns_t states[TIME_STATES]);
/* The account of all that `side` of a connection sent, from the first packet of the connection to its latest one. */
void stream_account(const struct iwarp_conn *c, enum iwarp_side side, ns_t states[TIME_STATES]);

#endif
