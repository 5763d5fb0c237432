/* layer 4 (tool): times in options, as `decode -t` prints them. */
#ifndef RDMATRACE_CLI_WHEN_H
#define RDMATRACE_CLI_WHEN_H

#include "src/show/print.h"
#include "types.h"

/* A time, as given. */
struct when {
    enum when_kind {
        WHEN_NOT,    /* not given */
        WHEN_SINCE,  /* ns since the first frame */
        WHEN_EPOCH,  /* ns since 1970 */
        WHEN_OF_DAY, /* ns since midnight of the first frame's day, or of the next day */
    } kind;
    ns_t ns;  /* meaning by `kind` */
    bool utc; /* WHEN_OF_DAY: UTC, not local time */
};

/* Parse "1.25" (seconds since the first frame), "1795224551.664316" (seconds since 1970, from 10^8 on), "12:03:07.5",
 * "12:03" (local time of day), "2026-11-21 12:03:07.5"; the latter two may end with Z: UTC. False if it is none of
 * these. */
bool when_parse(const char *text, struct when *w);
/* Parse the argument `text` of option `name`. EXIT_OK, or EXIT_BAD after a message. */
int when_option(const char *name, const char *text, struct when *w);
/* The time in ns since 1970, for a capture whose first frame came at `first`. A time of day more than 12 hours before
 * that of the first frame belongs to the next day. */
ns_t when_resolve(const struct when *w, ns_t first);

/* Parse the argument of -t of a command that does not show frames one by one: r, e, a, ad, u or ud. EXIT_OK, or
 * EXIT_BAD after a message. */
int when_format(const char *text, enum print_time *how);
/* Append the time `t` in that format, without spaces before it; `first`: time of the first frame. */
void when_put(struct buf *b, ns_t t, ns_t first, enum print_time how);
/* Parse the argument of --interval, such as 10ms, 500us or 1s. EXIT_OK, or EXIT_BAD after a message. */
int when_interval(const char *text, ns_t *interval);
/* The row of this option. */
#define WHEN_FORMAT_OPTION                                                                                             \
    {                                                                                                                  \
        't', "time", "FORMAT", "r since the first frame, e epoch, a or ad (default) local time, u or ud UTC"           \
    }

#endif
