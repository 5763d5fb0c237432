/* layer 3 (ladder): a connection as a sequence diagram in text. */
#ifndef RDMATRACE_LADDER_LADDER_H
#define RDMATRACE_LADDER_LADDER_H

#include "src/explain/explain.h"

#define LADDER_WIDTH_MIN 40
#define LADDER_ROWS_MAX  100000

struct ladder;

/* Subscribes to `o`, which must live as long. A diagram of connection `conn` (0: the one with the worst
 * incident, else the first), of at most `rows` packets. NULL without memory. */
struct ladder *ladder_new(struct observer *o, uint32_t conn, uint32_t rows);
void ladder_free(struct ladder *l);
/* After the last packet: draw it; no line is longer than `width`, which is at least LADDER_WIDTH_MIN. */
void ladder_draw(struct ladder *l, unsigned width, struct buf *b);

#endif
