/* layer 2b (taps): the longest RoCE frame of each interface: a switch that mirrors packets cuts all at one length, and
 * sends no longer frame. */
#ifndef RDMATRACE_TAPS_LONGEST_H
#define RDMATRACE_TAPS_LONGEST_H

#include "dissect/pkt.h"

/* Bytes of the longest frame of each interface; interfaces may share a place. Zero-initialise. */
#define LONGEST_TAPS 64
struct longest {
    uint32_t len[LONGEST_TAPS];
};
/* Note the length of the frame of `p`. */
void longest_note(struct longest *l, const struct pkt *p);
/* Set f->longer: a longer frame of its interface was noted. */
void longest_apply(const struct longest *l, struct frame *f);

#endif
