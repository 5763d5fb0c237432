/* layer 3 (conform): whether the tester was in time. On a busy host it may see a packet, or send one, so late that a
 * timer of the device expires meanwhile: what the device does then says nothing about it. */
#ifndef RDMATRACE_GEN_CONFORM_IN_TIME_H
#define RDMATRACE_GEN_CONFORM_IN_TIME_H

#include "gen/conform/measures/metrics.h"
#include "gen/live/late.h"

/* By how much the tester may be late in a scenario without a difference, ns: half of the shortest ACK timeout, a tenth
 * of the shortest time that it names, at least LATE_LEAST. */
ns_t in_time_least(const char *script);
/* Whether a sample `value` (a time: ns; 0: another one), taken between `from` and `to`, is what it would be without the
 * delays: those within this time last less than a tenth of it. */
bool in_time_during(const struct late *l, ns_t from, ns_t to, ns_t value);
/* Whether a time between two packets that the device sends by a timer of its own, at `from` and at `to`, is what it
 * would be without the delays, which matter only where they may have moved one of the two: those within a tenth of it
 * before each of them last less than a tenth of it together. */
bool in_time_at_ends(const struct late *l, ns_t from, ns_t to);
/* Whether enough samples are there, of all metrics of *m that were taken in `runs` runs: half as many as one run takes
 * if none is left out. */
bool in_time_enough(const struct metrics *m, unsigned runs);
/* Samples of *m that are there; that are left out. */
struct in_time_sum {
    unsigned there, left_out;
};
struct in_time_sum in_time_sum(const struct metrics *m);

#endif
