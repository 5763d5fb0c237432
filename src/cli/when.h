/* layer 4 (tool): times in options, as `decode -t` prints them. */
#ifndef RDMATRACE_CLI_WHEN_H
#define RDMATRACE_CLI_WHEN_H

#include "types.h"

/* A time as it was named. */
struct when {
    enum when_kind {
        WHEN_NOT,
        WHEN_SINCE,  /* after the first frame */
        WHEN_EPOCH,  /* since 1970 */
        WHEN_OF_DAY, /* of the day of the first frame, or of the next one */
    } kind;
    ns_t ns;
    bool utc; /* of a time of day: not local time */
};

/* "1.25" (seconds since the first frame), "1795224551.664316" (since 1970, from 10^8 on), "12:03:07.5" (local time of
 * day), "2026-11-21 12:03:07.5"; the latter two may end with Z: UTC. False if it is none of these. */
bool when_parse(const char *text, struct when *w);
/* The same for option `name`: EXIT_OK, or EXIT_BAD after a message. */
int when_option(const char *name, const char *text, struct when *w);
/* The same since 1970, of a capture whose first frame came at `first`. A time of day before that of the first frame is
 * of the next day. */
ns_t when_resolve(const struct when *w, ns_t first);

#endif
