/* layer 3 (net): pause frames of priority-based flow control, IEEE 802.1Qbb. */
#ifndef RDMATRACE_GEN_NET_PAUSE_H
#define RDMATRACE_GEN_NET_PAUSE_H

#include "dissect/link/macc.h"

#define PAUSE_FRAME_LEN 60 /* bytes, without the frame check sequence */

/* Quanta for at least `time` on a port of `rate` bit/s (0: 100 G), PAUSE_QUANTA_MAX at most; and the time of these
 * quanta. */
unsigned pause_quanta(ns_t time, uint64_t rate);
ns_t pause_time(unsigned quanta, uint64_t rate);
/* Write the frame by which port `from` pauses a class for this long; 0: ends the pause. */
void pause_build(uint8_t frame[PAUSE_FRAME_LEN], const uint8_t from[6], unsigned class, unsigned quanta);

#endif
