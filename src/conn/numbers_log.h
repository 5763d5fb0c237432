/* layer 2b (conn): what happens to flows, and so to the numbers of connections, noted by several processes that share
 * out a capture, and let happen again in the order of one. A flow may have been followed by several of them: then each
 * has noted the same. */
#ifndef RDMATRACE_CONN_NUMBERS_LOG_H
#define RDMATRACE_CONN_NUMBERS_LOG_H

#include "pack.h"
#include "src/conn/conn.h"

/* A place in the order of a capture: a frame. */
struct number_place {
    ns_t ts;
    uint32_t file;
    uint64_t frame;
};

/* Less than 0, 0 or more than 0, as `a` is before, at or behind `b`. */
static inline int number_place_compare(const struct number_place *a, const struct number_place *b)
{
    if (a->ts != b->ts)
        return a->ts < b->ts ? -1 : 1;
    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    return (a->frame > b->frame) - (a->frame < b->frame);
}

/* Which numbers are none of a connection any more, since when, and which its connection has then. Zero-initialise. */
struct numbers_now {
    /* internal */
    struct number_over {
        struct number_place at;
        uint32_t to; /* 0: it is one */
    } * over;        /* by number */
    uint32_t n;
    struct number_place at; /* what happens just now */
};

/* Zero-initialise. */
struct numbers_log {
    struct number_place now; /* where the packet at hand is: of the user */
    bool failed; /* a number was taken by a connection of TCP, or there was no memory: this log is of no use */
    /* internal */
    struct number_change {
        struct number_place at;
        struct conn_change c;
    } * of;
    uint32_t n;
    struct conn_replayed replayed; /* numbers_replay() */
    uint32_t *number;              /* by the number of this log, that which one process gave */
    const struct numbers_now *now_in;
};

/* Note what happens to the flows of `t`. */
void numbers_note(struct numbers_log *l, struct conn_table *t);
/* As bytes; the log is empty when they are read. */
void numbers_pack(struct pack *k, struct numbers_log *l);
/* Let what `n` logs tell happen to the connections of `t`, which has none yet; it may be done again, to other ones.
 * False: they contradict each other, or without memory. `w`, which is zero, has to outlive the calls of
 * numbers_of(). */
bool numbers_replay(struct numbers_log *logs, uint32_t n, struct conn_table *t, struct numbers_now *w);
void numbers_now_free(struct numbers_now *w);
/* After numbers_replay(): the number that connection `number` of the log has in one process behind a place; NULL: at
 * the end. 0: none. */
uint32_t numbers_of(const struct numbers_log *l, uint64_t number, const struct number_place *at);
void numbers_free(struct numbers_log *l);

#endif
