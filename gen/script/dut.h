/* layer 3 (script): a device under test as a host: what a scenario says of the host is said to `rdmagen agent`, line by
 * line, by whoever plays the scenario. */
#ifndef RDMATRACE_GEN_SCRIPT_DUT_H
#define RDMATRACE_GEN_SCRIPT_DUT_H

#include "gen/sim/sim.h"

/* A session with an agent, not begun yet. */
struct script_dut {
    /* Begin it: the hosts exist now, and `sim` is theirs. False: it cannot be begun. */
    bool (*start)(void *user, struct sim *sim);
    /* Say one line, without its newline, and the `n` bytes behind it; append to *said the lines that come back, with
     * the answer as the last of them, and to *bulk the bytes behind the answer. False: the session is broken. */
    bool (*ask)(void *user, const char *line, const uint8_t *data, size_t n, struct buf *said, struct buf *bulk);
    /* End it: the hosts are destroyed next. */
    void (*stop)(void *user);
    /* Why it could not be begun, or broke: a line without a newline. NULL: the reason is not known. */
    const char *(*why)(void *user);
    void *user;
};

#endif
