/* layer 1 (io): sorts frames by time within a bounded window. If the clock of an interface was set back, the order of
 * its file is kept. */
#ifndef RDMATRACE_CAP_REORDER_H
#define RDMATRACE_CAP_REORDER_H

#include "frame.h"

#define WINDOW_FRAMES 128 /* frames held at a time, a power of two */
#define WINDOW_BYTES                                                                                                   \
    (UINT32_C(8) << 20) /* bytes of frames held; beyond either limit the earliest frame is released                    \
                         */
/* a time stamp that runs backwards by this or more is no reordering: the interface's clock was set back */
#define WINDOW_BACK NS_PER_S

struct window;

/* NULL without memory. */
struct window *window_new(void);
void window_free(struct window *w);
/* Where the next frame may be made that is added: it need not be copied then. Valid until the next call here but
 * window_holds(), window_own() and window_put(). NULL without memory. Call it only if window_full() is false. */
struct frame *window_room(struct window *w);
/* Add a frame, that of window_room() or a copy of *f; its comment and options are dropped. Its data must stay valid
 * until window_own(), until the frame is taken out, or, of a brief frame, until WINDOW_FRAMES + 1 more were added: one
 * that a later one overtakes is held longer, and is copied then. False without memory. Call it only if window_full() is
 * false. */
bool window_put(struct window *w, const struct frame *f);
/* Copy the data of the frames held: afterwards the callers' memory may move or vanish. */
void window_own(struct window *w);
/* Another thread goes on: fetch what the last one has written, all at once. */
void window_fetch(const struct window *w);
/* Whether a frame's data are among the `n` bytes at `p`, of those held without a copy. */
bool window_holds(const struct window *w, const uint8_t *p, size_t n);
/* Frames that were taken out so far. */
uint64_t window_taken(const struct window *w);
/* Whether the data of the frame taken out last are a copy, which lasts until the next call. */
bool window_copied(const struct window *w);
/* Whether the earliest frame must be taken out first. */
bool window_full(const struct window *w);
/* Take out the earliest frame; NULL if there is none. Frames are ordered by their time plus all steps back of their
 * interface's clock so far; of equal times the frame added first comes first. The result is valid until the next call
 * here, its data until window_own(). */
const struct frame *window_get(struct window *w);

#endif
