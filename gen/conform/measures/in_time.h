/* layer 3 (conform): whether the tester was in time. On a busy host it may see a packet, or send one, so late that a
 * timer of the device expires meanwhile: what the device does then says nothing about it. */
#ifndef RDMATRACE_GEN_CONFORM_IN_TIME_H
#define RDMATRACE_GEN_CONFORM_IN_TIME_H

#include "gen/conform/measures/metrics.h"
#include "gen/live/late.h"

/* By how much the tester may be late in a scenario without a difference, ns: half of the shortest ACK timeout, a tenth
 * of the shortest time that it names, at least LATE_LEAST. */
ns_t in_time_least(const char *script);
/* Whether the samples of a run that took `took` ns are what they would be without the delays: of a time, most samples
 * lie outside of them, or they are short beside its median; of another value, they took less than a tenth of the
 * run. */
bool in_time_for(const struct metrics *m, const struct late *l, ns_t took);

#endif
