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

/* conn_tap_of() of the packets of a flow. */
uint32_t copies_tap(const struct explainer *x, uint32_t flow);
/* Of the first copies that taps `a` and `b` saw of request `psn`: the one that the other tap lacks. */
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

#endif
