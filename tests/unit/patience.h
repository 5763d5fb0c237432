/* layer 5 (test): limits of time that follow the speed of the machine */
#ifndef RDMATRACE_TEST_PATIENCE_H
#define RDMATRACE_TEST_PATIENCE_H

#include <stdlib.h>
#include <unistd.h>

/* How many times as long as elsewhere something may take on this machine: TIME_SCALE (tests/run). */
static inline unsigned patience(void)
{
    const char *scale = getenv("TIME_SCALE");

    return scale ? (unsigned)strtoul(scale, NULL, 10) : 1;
}

/* From now on the test may take so many seconds, on a slow machine TIME_SCALE times as many; what hangs is ended by
 * SIGALRM. */
static inline void hangs_after(unsigned seconds)
{
    alarm(seconds * patience());
}

#endif
