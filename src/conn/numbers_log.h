/* layer 2b (conn): what happens to the numbers of connections, noted by several processes that share out a capture, and
 * let happen again in the order of one. A connection may have been followed by several of them: then each has noted the
 * same. */
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

/* Zero-initialise. */
struct numbers_log {
    struct number_place now; /* where the packet at hand is: of the user */
    bool failed; /* a number was taken by a connection of TCP, or there was no memory: this log is of no use */
    /* internal */
    struct number_change {
        struct number_place at;
        uint32_t what, a, b; /* as conn_on_numbered() says */
    } * of;
    uint32_t n;
    uint32_t *number; /* numbers_replay(): by the number of this log, that of one process */
};

/* Note what happens to the numbers of `t`. */
void numbers_note(struct numbers_log *l, struct conn_table *t);
/* As bytes; the log is empty when they are read. */
void numbers_pack(struct pack *k, struct numbers_log *l);
/* Let what `n` logs tell happen to the connections of `t`, which has none yet; it may be done again, to other ones.
 * False: they contradict each other, or without memory. */
bool numbers_replay(struct numbers_log *logs, uint32_t n, struct conn_table *t);
/* After numbers_replay(): the number that one process gives to connection `number` of the log; 0: none. */
uint32_t numbers_of(const struct numbers_log *l, uint64_t number);
void numbers_free(struct numbers_log *l);

#endif
