/* layer 0 (base): the clocks of this host. */
#ifndef RDMATRACE_CLOCK_H
#define RDMATRACE_CLOCK_H

#include "types.h"

#include <time.h>

/* What a clock shows, ns: CLOCK_REALTIME since 1970, the others since a start of their own. */
static inline ns_t clock_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

#endif
