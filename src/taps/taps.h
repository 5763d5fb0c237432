/* layer 2b (taps): the clock offsets between the taps of a capture, from packets that two taps saw.
 *
 * A packet is the same at two taps if addresses, destination queue pair, opcode, PSN, IP identification and ICRC agree.
 * Packets that a tap may have seen twice (retransmitted, or captured twice) are ignored. Memory is bounded: only a
 * sample of the packets waiting for their copy at another tap is kept. The sample depends on the packets alone, so that
 * all taps keep the same packets; it covers the whole capture however large the offsets are. */
#ifndef RDMATRACE_TAPS_TAPS_H
#define RDMATRACE_TAPS_TAPS_H

#include "src/conn/observer.h"
#include "src/taps/clock_hull.h"
#include "src/taps/marking.h"

#define TAPS_WAITING 32768 /* packets waiting for their copy */
#define TAPS_LINKS   64    /* pairs of taps, for each two hosts that they see */

struct taps;

/* Subscribe to `o`, which must outlive the taps. NULL: no memory. */
struct taps *taps_new(struct observer *o);
void taps_free(struct taps *t);

/* After the last packet. Before, what follows leaves the latest few packets out. */
void taps_end(struct taps *t);

/* Offset of the clocks of two taps at a time. */
struct tap_offset {
    bool known;      /* else nothing below is: too few common packets, or in one direction only */
    ns_t offset;     /* time at tap b minus time at tap a, ns */
    ns_t bound;      /* the true offset is within this, ns, if delays are not negative; resolution of time stamps
                        included */
    double skew_ppm; /* change of the offset, millionths */
    uint32_t steps;  /* times that one of the clocks was set */
};

/* The offset of the clocks of `tap_b` and `tap_a` (conn_tap_of()) at time `ts` of `tap_a`. */
struct tap_offset taps_offset(const struct taps *t, uint32_t tap_a, uint32_t tap_b, ns_t ts);

/* Which of two taps a packet from `src` to `dst` passes first. */
enum tap_order {
    TAPS_UNKNOWN,
    TAPS_A_FIRST,
    TAPS_B_FIRST,
};
enum tap_order taps_order(const struct taps *t, uint32_t tap_a, uint32_t tap_b, const struct conn_addr *src,
                          const struct conn_addr *dst);

/* How packets were marked between two taps whose clocks are known, the most marked ones first: how many reports. After
 * taps_end(). */
size_t taps_marking(const struct taps *t, struct marking_report to[MARKING_REPORTS]);

/* Append "+5.000 ms +20.0 ppm +-3.0 us"; without ppm if that is CLOCK_DRIFT_PPM: too short a capture tells no less. */
void tap_offset_put(struct buf *b, const struct tap_offset *o);

#endif
