/* layer 3 (cores): work that a thread of its own does, piece by piece, in the order in which it is put. */
#ifndef RDMATRACE_CORES_WORKER_H
#define RDMATRACE_CORES_WORKER_H

#include <stdbool.h>

#define WORKER_PIECES 32 /* that are not done yet, at most */

struct worker;

/* `work` is called for each piece that worker_put() gets, for one at a time. `threads`: as in struct turns_opts; with
 * one, or if the system refuses another, worker_put() calls it. The thread is started with the first piece. NULL
 * without memory. */
struct worker *worker_new(unsigned threads, void (*work)(void *user, void *piece), void *user);
/* Do what was put, end the thread and release it; NULL is allowed. */
void worker_free(struct worker *w);
/* Put a piece. When this returns, all pieces but the latest WORKER_PIECES are done. */
void worker_put(struct worker *w, void *piece);
/* Wait until all pieces are done: what `work` uses may be used by the caller until the next piece is put. */
void worker_wait(struct worker *w);

#endif
