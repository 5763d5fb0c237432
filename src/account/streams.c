/* layer 2b (account): iWARP: lost time of a direction, as states. */
#include "src/account/streams.h"

void stream_states(const ns_t lost[IWARP_TIMES], ns_t all, ns_t states[TIME_STATES])
{
    static const uint8_t state[IWARP_TIMES] = {[IWARP_TIME_DUPS] = TIME_LOSS_RETRANSMISSION,
                                               [IWARP_TIME_TIMER] = TIME_ACK_TIMEOUT,
                                               [IWARP_TIME_RESEND] = TIME_LOSS_RESEND};

    memset(states, 0, TIME_STATES * sizeof *states);
    all = all > 0 ? all : 0;
    for (unsigned i = 0; i < IWARP_TIMES; i++) {
        ns_t part = lost[i] < all ? lost[i] : all;
        states[state[i]] += part;
        all -= part;
    }
    states[TIME_NOT_KNOWN] = all;
}

void stream_account(const struct iwarp_conn *c, enum iwarp_side side, ns_t states[TIME_STATES])
{
    ns_t lost[IWARP_TIMES];

    iwarp_lost(c, side, lost);
    stream_states(lost, c->last - c->first, states);
}
