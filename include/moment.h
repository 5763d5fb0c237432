/* layer 0 (base): points in time as text. */
#ifndef RDMATRACE_MOMENT_H
#define RDMATRACE_MOMENT_H

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
/* The time in ns since 1970, for a capture whose first frame came at `first`. A time of day more than 12 hours before
 * that of the first frame belongs to the next day. */
ns_t when_resolve(const struct when *w, ns_t first);

#endif
