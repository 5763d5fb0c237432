/* layer 3 (live): several processes, one for a core, share an interface and an address: each has its part of the queue
 * pairs, by their numbers, and rings of its own. Management, which queue pairs 0 and 1 receive, is part 0's. */
#ifndef RDMATRACE_GEN_LIVE_PARTS_H
#define RDMATRACE_GEN_LIVE_PARTS_H

#include "gen/live/backend.h"

#define PARTS_MAX 64

struct parts;

/* The parts of `n` processes (2 to PARTS_MAX), each with `size` bytes of results, zeroed, which all may read. NULL
 * without memory. */
struct parts *parts_new(unsigned n, size_t size);
/* NULL is allowed. */
void parts_free(struct parts *p);
unsigned parts_count(const struct parts *p);
/* Results of part `i`. */
void *parts_result(struct parts *p, unsigned i);
/* Prepare what the processes share of the interface, before they begin: 0 or a negative errno, *err is filled. */
int parts_share(struct parts *p, const char *backend, const char *iface, struct backend_error *err);
/* What a part does, and what is done when its process was ended by a signal. */
struct parts_work {
    int (*run)(void *user, unsigned part);
    void (*lost)(void *user, unsigned part, int signal); /* in the first process */
    void *user;
};
/* Run each part in a process of its own, and wait for all: its exit status is what run() returns. SIGINT and SIGTERM
 * are passed on to each. The others go on without one that is lost, but not without part 0: then they get SIGTERM.
 * Returns the highest exit status; -errno: a process could not be made. */
int parts_run(struct parts *p, const struct parts_work *w);

/* In the process of part `i`: what its backend has to know. */
struct backend_part parts_of(const struct parts *p, unsigned i);
/* Whether it is the turn of part `i`: at first that of part 0; parts that have ended are passed over. */
bool parts_turn(const struct parts *p, unsigned i);
/* It is the next part's turn. */
void parts_next(struct parts *p);
/* Wait for the turn of part `i`. False: another part failed, or live_stop() was called. */
bool parts_await_turn(const struct parts *p, unsigned i);
/* Wait until every part has called it. False: likewise. */
bool parts_meet(struct parts *p);
/* A part has failed: nobody waits for its turn, or to meet it. */
void parts_fail(struct parts *p);
/* In part 0: wait until the others are over; it holds what they share. */
void parts_await_others(const struct parts *p, unsigned i);

#endif
