/* layer 3 (conform): what the capture of a test, as a whole, tells of the device: its window, how many requests an ACK
 * covers, goodput, what bounds it, what a CNP does to its rate, how evenly queue pairs share it, pause frames and CNPs.
 */
#ifndef RDMATRACE_GEN_CONFORM_MEASURE_H
#define RDMATRACE_GEN_CONFORM_MEASURE_H

#include "gen/conform/measures/metrics.h"
#include "gen/live/idle.h"
#include "gen/live/late.h"

/* A line of the battery, `measure KIND METRIC`. */
struct measure {
    uint8_t kind; /* number of measure_find() */
    struct token metric;
};

/* The kind of this name: `window`, `ack_ratio`, `goodput`, `requests` (of the device, a second), `atomics` and
 * `answers` (of it, a second), `rate_cut`, `rate_rec`, `fairness`, `pause` (quanta a second), `cnps`, `drain`, `nack`
 * `ackreq` (PSNs from one request of the device that asks for an ACK to the next) or `tries` (transmissions of the
 * first request of each queue pair of the device), `payload` (bit/s, of all packets of the device), `off_packet`,
 * `off_qp` or `off_shared` (by how many CNPs that model of their scope is wrong); -1: there is none. */
int measure_find(const struct token *name);

/* The tester while a capture was made, on a real network. In virtual time it takes no time. */
struct measure_tester {
    struct late late;        /* when it was late, by the clock of the capture */
    const struct idle *idle; /* how long it waited, by live_now() */
    ns_t epoch;              /* the time of the capture at live_now() 0 */
};

/* Read `capture`, in which the device has MAC address `mac`, and add what measures `m` tell to *to. What the
 * capture does not show, such as a rate behind a CNP that there is none of, is no sample. `tester`: NULL: time is
 * virtual. A rate leaves out the times in which it was late, and the packets that came in them; a sample of which too
 * little is left is left out. 0, or a negative errno. */
int measure_capture(const char *capture, const uint8_t mac[6], const struct measure *m, unsigned n,
                    const struct measure_tester *tester, struct metrics *to);

#endif
