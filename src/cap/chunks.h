/* layer 1 (io): memory for the bytes of capture files that stays as it is until several threads are done with it, so
 * that no frame has to be copied. All but chunks_done() are called by who reads, one thread at a time. */
#ifndef RDMATRACE_CAP_CHUNKS_H
#define RDMATRACE_CAP_CHUNKS_H

#include "src/cap/reorder.h"

#define CHUNKS_THREADS 16 /* that read by turns, at most */

struct chunks;

/* `w`: the window through which the frames go; NULL: each goes into the batch at hand before the next one is read. NULL
 * without memory. */
struct chunks *chunks_new(struct window *w);
/* After the files are closed; NULL is allowed. */
void chunks_free(struct chunks *c);
/* The frames that leave the window from now on belong to batch `batch`: each number is one more than the one before.
 * Thread number `thread` reads: it gets memory that it has used, which is in its processor's caches. */
void chunks_begin(struct chunks *c, uint64_t batch, unsigned thread);
/* Whether a batch has so much memory that it must end, however few frames it has: what is between them is in it. */
bool chunks_are_many(const struct chunks *c);
/* By any thread: nothing of batches before `batch` is used any more. */
void chunks_done(struct chunks *c, uint64_t batch);
/* Memory for at least `n` bytes, *size bytes, in place of `old`, which stays as it is while the window or a batch that
 * is not done has frames there. `old` NULL: there is none. NULL without memory: `old` stays in use. */
uint8_t *chunks_get(struct chunks *c, uint8_t *old, size_t n, size_t *size);
/* `bytes`, which chunks_get() gave without `old`, take the place of `old` from now on. */
void chunks_use(struct chunks *c, uint8_t *old, uint8_t *bytes);
/* Number of the thread that reads. */
unsigned chunks_reader(const struct chunks *c);
/* Whether another thread than the one that reads now has got this memory. */
bool chunks_are_others(const struct chunks *c, uint8_t *bytes);
/* `old` is not read to any more. NULL is allowed. */
void chunks_put(struct chunks *c, uint8_t *old);

#endif
