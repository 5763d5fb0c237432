/* layer 3 (sim): the truth of a simulation, of two hosts or of a fabric: the outcome of each frame, and where the time
 * of each connection went, by the definitions of src/account/account.h. */
#ifndef RDMATRACE_GEN_SIM_TRUTH_H
#define RDMATRACE_GEN_SIM_TRUTH_H

#include "buf.h"
#include "gen/sim/sim.h"

struct truth;

/* Record simulation `s` from now on; it must outlive the truth. Memory grows with the frames sent. NULL: no memory. */
struct truth *truth_new(struct sim *s);
void truth_free(struct truth *t);
/* Append one JSON object: `account`, `requests`, `undecided`, `incidents`, `lost_frames` and `timers`; times are ns
 * since 1970, on the clock of ideal taps. `err` of the buffer is set without memory. */
void truth_json(struct buf *b, struct truth *t);

#endif
