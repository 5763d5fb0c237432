/* layer 3 (conform): this program between two devices under test: it forwards their frames, lets events happen to them,
 * and records both sides, as `rdmagen inject` does. */
#ifndef RDMATRACE_GEN_CONFORM_BETWEEN_H
#define RDMATRACE_GEN_CONFORM_BETWEEN_H

#include "gen/live/forward.h"
#include "gen/script/live.h"

/* The caller sets name, say and count of `forward`, and opens it after between_init() and closes it. */
struct between {
    struct forward forward;
    struct script_middle middle;
    struct script_live *peer;
    uint64_t seed; /* of the bits that corrupt flips */
};

/* Fill the rest of *b, and the middle of *peer. Both are to stay where they are. */
void between_init(struct between *b, struct script_live *peer);

#endif
