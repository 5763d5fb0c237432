/* layer 3 (commands): commands of upper protocols whose memory the peer was refused. */
#ifndef RDMATRACE_COMMANDS_REFUSALS_H
#define RDMATRACE_COMMANDS_REFUSALS_H

#include "src/commands/listed.h"
#include "src/commands/rows.h"
#include "src/explain/explain.h"

#define REFUSALS_KEPT 32 /* the first ones */

/* A command with a refusal. */
struct refused {
    uint64_t number, frame; /* of the command; of its message */
    struct listed at;
    struct ulp_refusal why;
    char *text; /* protocol and command */
};

/* Zero-initialise; release with refusals_free(). */
struct refusals {
    struct refused of[REFUSALS_KEPT];
    unsigned n, shown; /* kept; of them those that are not hidden */
    uint64_t all;      /* commands with one */
    bool no_memory;
};

/* A command is over: keep it if a request for its memory was refused. */
void refusals_add(struct refusals *r, const struct ulp_command *c, uint32_t conn, uint32_t tap);
void refusals_free(struct refusals *r);
/* Append a paragraph for each that is not hidden. */
void refusals_text(const struct refusals *r, const struct explainer *x, unsigned columns, struct buf *b);
/* Append the member `refused_commands`, a row for each that is not hidden, and the count `commands_refused`. */
void refusals_json(const struct refusals *r, const struct explainer *x, struct buf *b);

#endif
