/* layer 3 (trace): frames put into the order of time, as far as a bounded number of them allows. */
#ifndef RDMATRACE_WINDOW_H
#define RDMATRACE_WINDOW_H

#include "frame.h"

#define WINDOW_FRAMES 128                /* held back at a time, a power of two */
#define WINDOW_BYTES (UINT32_C(8) << 20) /* and bytes; beyond either the earliest frame is let go */

struct window;

/* NULL without memory. */
struct window *window_new(void);
void window_free(struct window *w);
/* Take a frame (a copy is made; its comment and options are left out). False without memory. Only when window_full() is false. */
bool window_put(struct window *w, const struct frame *f);
/* Whether the earliest frame must be taken out first. */
bool window_full(const struct window *w);
/* Take out the earliest frame; of equal times the one that was put in first. False if there is none. *f is valid until
 * the next window_put(). */
bool window_get(struct window *w, struct frame *f);

#endif
