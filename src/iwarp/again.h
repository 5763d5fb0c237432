/* layer 2b (iwarp): which TCP segments were retransmitted, for those who count them by what their bytes belong to. */
#ifndef RDMATRACE_IWARP_AGAIN_H
#define RDMATRACE_IWARP_AGAIN_H

#include "types.h"

/* How far sequence number `a` lies behind `b`; below 0: before it. */
static inline int32_t seq_diff(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b);
}
#define AGAIN_KEPT 16 /* the latest ones of a direction */

/* Sequence numbers [from, to); none if they are equal. */
struct seq_span {
    uint32_t from, to;
};

static inline bool seq_spans_meet(const struct seq_span *a, const struct seq_span *b)
{
    return seq_diff(b->to, a->from) > 0 && seq_diff(a->to, b->from) > 0;
}

/* More of what has the bytes `s`, behind them. */
static inline void seq_span_add(struct seq_span *s, uint32_t from, uint32_t to)
{
    *s = (struct seq_span){s->from == s->to ? from : s->from, to};
}

/* Zero-initialise. */
struct again {
    struct {
        struct seq_span at;
        uint64_t counted; /* for what it was counted last; 0: for nothing */
    } of[AGAIN_KEPT];
    uint32_t n; /* so far */
};

static inline void again_add(struct again *a, const struct seq_span *at)
{
    a->of[a->n % AGAIN_KEPT].at = *at;
    a->of[a->n++ % AGAIN_KEPT].counted = 0;
}

/* Whether the latest segment has bytes of `s`, and was not counted for `what` (not 0): now it is. */
static inline bool again_latest(struct again *a, const struct seq_span *s, uint64_t what)
{
    uint32_t i = (a->n - 1) % AGAIN_KEPT;

    if (!a->n || a->of[i].counted == what || !seq_spans_meet(&a->of[i].at, s))
        return false;
    a->of[i].counted = what;
    return true;
}

/* How many segments have bytes of `s`, and were not counted for `what` (not 0): now they are. */
static inline uint32_t again_count(struct again *a, const struct seq_span *s, uint64_t what)
{
    uint32_t all = 0;

    for (uint32_t i = 0; i < a->n && i < AGAIN_KEPT; i++)
        if (a->of[i].counted != what && seq_spans_meet(&a->of[i].at, s)) {
            a->of[i].counted = what;
            all++;
        }
    return all;
}

#endif
