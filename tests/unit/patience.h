/* layer 5 (test): limits of time that follow the speed of the machine */
#ifndef RDMATRACE_TEST_PATIENCE_H
#define RDMATRACE_TEST_PATIENCE_H

#include <stdlib.h>
#include <unistd.h>

/* From now on the test may take so many seconds, on a slow machine TIME_SCALE times as many (tests/run); what hangs is
 * ended by SIGALRM. */
static inline void hangs_after(unsigned seconds)
{
    const char *scale = getenv("TIME_SCALE");

    alarm(seconds * (scale ? (unsigned)strtoul(scale, NULL, 10) : 1));
}

#endif
