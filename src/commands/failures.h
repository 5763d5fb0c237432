/* layer 3 (commands): commands of upper protocols that failed: the response says so. */
#ifndef RDMATRACE_COMMANDS_FAILURES_H
#define RDMATRACE_COMMANDS_FAILURES_H

#include "src/commands/listed.h"
#include "src/commands/rows.h"

#define FAILURES_KEPT 32 /* the first ones */

/* A command that failed. */
struct failure {
    uint64_t number, frame, response; /* of the command; of its message; of its response */
    struct listed at;
    char *text;   /* protocol and command */
    char *status; /* of the response, in the protocol's words */
};

/* Zero-initialise; release with failures_free(). */
struct failures {
    struct failure of[FAILURES_KEPT];
    unsigned n;
    uint64_t all; /* these and those that are not kept */
    bool no_memory;
};

/* A command is over: keep it if it failed. */
void failures_add(struct failures *f, const struct ulp_command *c, uint32_t conn, uint32_t tap);
void failures_free(struct failures *f);
/* Append a paragraph for each of the first `most` that are not hidden, and how many more of them there are; if not
 * all are kept, only that there are more. */
void failures_text(const struct failures *f, unsigned most, unsigned columns, struct buf *b);
/* Append the member `failed_commands`, a row for each that is not hidden; without a comma behind it. */
void failures_json(const struct failures *f, struct buf *b);

#endif
