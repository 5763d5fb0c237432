/* layer 2b (counters): counters of the adapters that confirm a cause. */
#ifndef RDMATRACE_COUNTERS_CAUSE_COUNTERS_H
#define RDMATRACE_COUNTERS_CAUSE_COUNTERS_H

#include "src/account/account.h"
#include "src/counters/counters.h"

/* Counters of `driver` that confirm a cause: write at most `max` to `out`, the most important first. `responder`: those
 * of the responder's adapter, else of the requester's. Returns their number. */
size_t counters_for_cause(enum cause cause, enum counter_driver driver, bool responder,
                          const struct counter_info *out[], size_t max);
/* Append those of all drivers: "mlx5 out_of_sequence, duplicate_request; rxe out_of_seq_request";
 * nothing if there are none. */
void counters_for_cause_put(struct buf *b, enum cause cause, bool responder);

#endif
