/* layer 3 (explain): internal: the copies of a request that two taps saw: which of them one tap lacks. */
#ifndef RDMATRACE_EXPLAIN_COPIES_H
#define RDMATRACE_EXPLAIN_COPIES_H

#include "src/explain/explain_impl.h"

#define BEHIND_MOST (10 * NS_PER_MS) /* no packet takes longer from tap to tap */

/* A copy that one of two taps has and the other lacks. */
struct missing_copy {
    uint32_t frame;          /* 0: both taps have the same copies */
    bool other;              /* the other tap has it */
    const struct sent *sent; /* it, at the tap that has it */
};

/* What one tap keeps of the copies that it saw of a packet. */
struct seen_copies {
    uint32_t flow, tap;
    uint32_t psn, frame;       /* its PSN; the frame of the first one */
    uint32_t icrc_first, icrc; /* of the first and the latest one; 0: not captured */
    ns_t ts_first, ts;         /* likewise */
    unsigned n;                /* copies; 2 responses: 2 or more */
    bool response;
    bool doubled; /* an identical copy came soon after the latest one: it may be that, seen twice */
    bool unlike;  /* no two of them have one ICRC, unless the network duplicated it: each has an IP identification, or
                     there is none between the first and the latest one */
};

/* How the first copy that one tap saw stands to that of another tap. */
enum first_copies {
    FIRST_UNKNOWN,
    FIRST_SAME,
    FIRST_LATER,   /* it is a later copy: its tap lacks the first one of the other tap */
    FIRST_EARLIER, /* the other way round */
};

/* conn_tap_of() of the packets of a flow. */
uint32_t copies_tap(const struct explainer *x, uint32_t flow);
/* The copies that the tap of `h` saw of request `s`; that of flow `flow` of response `r`. */
struct seen_copies copies_of_request(const struct explainer *x, const struct req_dir *h, const struct sent *s);
struct seen_copies copies_of_response(const struct explainer *x, uint32_t flow, const struct noted_response *r);
/* The same of the request, or response, with that PSN, that the tap of a flow keeps. False: it has none. */
bool copies_at(const struct explainer *x, uint32_t flow, uint32_t psn, bool response, struct seen_copies *c);
/* How the first copy of `b` stands to that of `a`, of another tap: by their ICRCs, and if these do not tell copies
 * apart (frames are cut, or the IP identification is the same), by their times. */
enum first_copies copies_compare(const struct explainer *x, const struct seen_copies *a, const struct seen_copies *b);
/* Of the first copies that taps `a` and `b` saw of request `psn`: the one that the other tap lacks. None if one of them
 * saw no requests (NULL). */
struct missing_copy copies_lost_between(const struct explainer *x, struct req_dir *a, struct req_dir *b, uint32_t psn);
/* The first copy that one of two taps lacks, of `n` requests from `psn` on. */
struct missing_copy copies_first_missing(const struct explainer *x, struct req_dir *a, struct req_dir *b, uint32_t psn,
                                         unsigned n);
/* True if a tap saw more than two copies of request `s` that no ICRC tells apart: which of them another tap saw is not
 * known. */
bool copies_are_alike(const struct sent *s);
/* True if the first copy that the tap of `flow` saw of request `psn` is the first copy `s` that the tap of `other` saw,
 * so that it was only late. False, too, if copies are identical, or cut, and times do not tell. */
bool copies_are_one(const struct explainer *x, uint32_t flow, uint32_t other, const struct sent *s, uint32_t psn);
/* The packet of an incident passed the tap of flow `from`, and did not come to that of `to`, or only damaged or late.
 */
void copies_between(const struct explainer *x, struct incident *st, uint32_t from, uint32_t to);
/* Whether requests pass the tap of flow `first` before that of `then`, by the round trips that the two saw. */
bool copies_pass_first(const struct explainer *x, uint32_t first, uint32_t then);
/* It is known what was lost: frame `frame` of `tap` (0: none of those seen); the others that were called lost were not.
 */
void copies_only_lost(struct incident *st, uint32_t tap, uint32_t frame);
/* The last fact of an incident says that the tap of `flow` saw request `s`, or response `r`, of which another tap lacks
 * a copy, or has it damaged or late: keep what it saw. */
void copies_gone(struct incident *st, enum gone_how how, const struct seen_copies *c);
void copies_request_gone(const struct explainer *x, struct incident *st, uint32_t flow, const struct sent *s);
void copies_request_late(const struct explainer *x, struct incident *st, uint32_t flow, const struct sent *s);
/* The same of a retransmission of st->psn that its own tap saw; `fact` says that another tap lacks it. */
void copies_retransmission_gone(struct incident *st, unsigned fact);
void copies_response_gone(const struct explainer *x, struct incident *st, uint32_t flow,
                          const struct noted_response *r);

#endif
