/* layer 1 (io): frames put into the order of time, as far as a bounded number of them allows. Where the clock of an
 * interface was set back, the order of its file is kept. */
#ifndef RDMATRACE_CAP_REORDER_H
#define RDMATRACE_CAP_REORDER_H

#include "frame.h"

#define WINDOW_FRAMES 128                 /* held back at a time, a power of two */
#define WINDOW_BYTES  (UINT32_C(8) << 20) /* and bytes of them; beyond either the earliest frame is let go */
/* from this on a step back of an interface's time is no disorder: its clock was set */
#define WINDOW_BACK NS_PER_S

struct window;

/* NULL without memory. */
struct window *window_new(void);
void window_free(struct window *w);
/* Take a frame; its comment and options are left out. Its data must stay where they are until window_own(), or until it
 * is taken out. False without memory. Only when window_full() is false. */
bool window_put(struct window *w, const struct frame *f);
/* Copy the data of the frames held: those put in may move or vanish now. */
void window_own(struct window *w);
/* Whether the earliest frame must be taken out first. */
bool window_full(const struct window *w);
/* Take out the earliest frame, by times to which the steps back of its interface are added; of equal times the one that
 * was put in first. NULL if there is none. It is valid until the next call here, its data until window_own(). */
const struct frame *window_get(struct window *w);

#endif
