/* layer 3 (conform): what a run has done so far, a line of JSON for each test, so that it can be resumed: the outcome,
 * what the test measured, and what the device chose. */
#ifndef RDMATRACE_GEN_CONFORM_PROGRESS_H
#define RDMATRACE_GEN_CONFORM_PROGRESS_H

#include "gen/conform/conform.h"

/* Append the first line, which says what is tested, with which seed, and how often each test is run. */
void progress_begin(struct buf *b, const char *dut, uint64_t seed, unsigned repeat);
/* Append the line of a test: what it measured is in *m, what the device chose in it in *ids. */
void progress_put(struct buf *b, const struct conform_outcome *o, const struct metrics *m,
                  const struct identities *ids);

/* Read such a text, which begins with the same first line: the outcomes of tests of the battery, by their number there;
 * those of tests that are not in it, not `chosen` now, or that showed nothing about the device, have no `test`. Their
 * captures are in `keep`; a file that is not named after its test is none. What they measured is added to *m and *ids.
 * False, with the reason in *err: it is no such text, of another device, or a line is wrong; the last one may be cut
 * off. */
bool progress_take(const char *text, size_t len, const char *first, const char *keep,
                   const struct conform_battery *battery, const bool chosen[CONFORM_TESTS],
                   struct conform_outcome o[CONFORM_TESTS], struct metrics *m, struct identities *ids, struct buf *err);

#endif
