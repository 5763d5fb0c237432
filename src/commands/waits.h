/* layer 3 (commands): what each command of an upper protocol waited for: its mark (ulp_command.mark). */
#ifndef RDMATRACE_COMMANDS_WAITS_H
#define RDMATRACE_COMMANDS_WAITS_H

#include "src/account/timeline.h"
#include "src/ulp/ulp.h"

/* What a command waits for: first what the transport lost, then its own parts. */
enum wait {
    WAIT_LOSS,
    WAIT_TIMEOUT,
    WAIT_RNR,
    WAIT_CREDIT,
    WAIT_DEPTH,
    WAIT_ACK,
    WAIT_PAUSE,
    WAIT_PACE,
    WAIT_DEAD,
    WAITS_LOST,
    WAIT_DATA = WAITS_LOST, /* until its data begin */
    WAIT_MOVE,              /* until they end */
    WAIT_RESPONSE,
    WAITS
};

struct wait_info {
    const char *name, *text; /* "loss", "for lost packets to be retransmitted" */
    bool way;                /* the time is the network's: it is spent between the ends */
};
extern const struct wait_info wait_table[WAITS];

/* How long a command waited for what; together its time. */
struct waited {
    ns_t of[WAITS];
    ns_t way[ULP_PARTS]; /* of each part of its time, what was lost on the way (wait_info.way) */
};

/* Fill the mark of a command whose response came, by the accounts of `timeline` up to now. */
void waits_timed(const struct timeline *timeline, struct ulp_command *c);
/* The mark of a command; all 0 if waits_timed() was not called. */
struct waited waits_of(const struct ulp_command *c);
/* What the transport lost of its time. */
ns_t waits_lost(const struct waited *w);
/* The ACK timeout of the queue pair that sent the response, if the command's own wait for it lasted as long, and at
 * most four times that: a response that is lost before the tap, and retransmitted, looks like one that was sent late.
 * 0: it did not, it waits for an event (ulp_command.waits), or no CM message states the timeout. In the functions of
 * ulp_opts. */
ns_t waits_like_loss(struct conn_table *conns, const struct ulp_command *c);
/* Whose time its latency was, by its mark: what was lost on the way is the network's. In the functions of ulp_opts. */
struct ulp_shares waits_shares(const struct ulp_command *c);

#endif
