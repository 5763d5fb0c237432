/* layer 3 (commands): which commands of upper protocols took long, and what they waited for.
 *
 * A command's time, from the first packet of its message to its response, has up to three parts: until its data begin,
 * until they end, and until the response. In each of them the accounts of the connection (src/account) tell how much
 * was lost: time of recovery, or in which a packet could not be sent. Of the direction in which the command was sent it
 * counts until the other end reacts, losses until the command was sent last; of the other direction all the time. What
 * is left of a part is its own wait. */
#ifndef RDMATRACE_COMMANDS_DELAYS_H
#define RDMATRACE_COMMANDS_DELAYS_H

#include "src/commands/rows.h"
#include "src/explain/explain.h"

#define DELAYS_KEPT 32 /* commands that are kept: of the most delayed ones, and of those slowest for their kind */

struct delays;

struct delays_opts {
    uint32_t conn;                             /* only commands of this connection; 0: all */
    struct ulp_users users;                    /* --ulp */
    bool (*wanted)(void *user, uint32_t conn); /* at the end: whether a connection is selected; NULL: all are */
    void *user;
    const ns_t *since, *until; /* of explain_opts; read when a command is over */
};

/* Subscribe to `o`, after the explainer `x` has. *opts must outlive the result. NULL without memory. */
struct delays *delays_new(struct observer *o, struct explainer *x, const struct delays_opts *opts);
void delays_free(struct delays *d);
/* After explain_end(): all packets are there. */
void delays_end(struct delays *d);
/* Append how many commands there were, and paragraphs about the worst: all that are kept if o->all, else a few; nothing
 * if there are none. */
void delays_text(struct delays *d, const struct explain_opts *o, struct buf *b);
/* Append the members `commands`, a row for each that is kept, and counts; without a comma behind the last. */
void delays_json(struct delays *d, struct buf *b);

#endif
