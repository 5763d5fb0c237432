/* layer 2 (cc): what CNPs do to the rate of a queue pair, as a capture at its sender shows it.
 *
 * Only packets inside a message count: between two messages the sender may have had nothing to send. Their rate is what
 * the adapter allows, whatever the program asks for.
 *
 *     CNPs      |  |  |  |  |  |  |  ...  a run: each at most CUTS_RUN_GAP after the one before
 *     packets  .. . . .  .  .   .   .     the rate of its second half against that of its first
 *
 *     CNP                |                alone: none within CUTS_ALONE before and after
 *     packets  . . . . .   .   .   .      the rate just after it against that just before
 */
#ifndef RDMATRACE_CC_CUTS_H
#define RDMATRACE_CC_CUTS_H

#include "src/cc/recovery.h"

/* No timer of a sender that is known raises its rate within a run: the shortest is 55 us. */
#define CUTS_RUN_GAP (55 * NS_PER_US)
#define CUTS_RUN     100 /* CNPs of a run */
#define CUTS_ALONE   NS_PER_MS
#define CUTS_PAUSE   NS_PER_S /* a longer time between two packets tells no rate */
#define CUTS_BEFORE  8        /* packets before a CNP alone */
#define CUTS_AFTER   4        /* and after it, without the one that was under way */

/* Bytes and time between packets inside messages, since the first CNP. */
struct cuts_sum {
    uint64_t bytes, packets;
    ns_t time;
};

/* Zero at first. */
struct cuts {
    ns_t last;    /* of the latest packet; 0: none */
    uint32_t psn; /* of that packet */
    struct cuts_sum sum;
    ns_t cnp;                            /* of the latest CNP; 0: none */
    uint32_t run;                        /* CNPs of the run so far */
    uint32_t run_frame;                  /* frame of its first one */
    struct cuts_sum at[2];               /* at its first CNP, and at that in the middle */
    struct cuts_sum before[CUTS_BEFORE]; /* the latest packets inside messages, a ring */
    uint32_t n_before;
    /* The CNP alone whose effect is being measured. */
    bool alone;
    bool skip; /* the next packet was under way */
    uint32_t n_after;
    struct cuts_sum base, after; /* before and after it */
    /* Rates just after a CNP alone, of 1000 just before it: how many, their sum, the lowest and the highest. */
    uint64_t ratios, ratio_sum, ratio_min, ratio_max;
    struct recovery recovery; /* how the rate rises between CNPs */
};

/* What a run did. */
struct cuts_run {
    uint32_t frame;         /* of its first CNP */
    uint64_t before, after; /* bit/s of the frames in its first and in its second half */
    uint64_t packets;       /* fewer of those of the two halves */
};

/* A frame of `bytes` with data of PSN `psn`; `inside`: it goes on with a message. One that is retransmitted ends a run:
 * the sender has another reason to slow down. */
void cuts_packet(struct cuts *c, uint32_t bytes, uint32_t psn, bool inside, ns_t ts);
/* A CNP for the queue pair, in `frame`. True: a run is over, *r says what it did. */
bool cuts_cnp(struct cuts *c, uint32_t frame, ns_t ts, struct cuts_run *r);

#endif
