/* layer 3 (ladder): a connection as a sequence diagram in text. */
#ifndef RDMATRACE_LADDER_LADDER_H
#define RDMATRACE_LADDER_LADDER_H

#include "src/taps/taps.h"

#define LADDER_WIDTH_MIN 40
#define LADDER_ROWS_MAX  100000 /* packets kept, and lines drawn, at most */

/* What is drawn, and how. */
struct ladder_opts {
    uint32_t conn;            /* 0: that of the frame `around`, else the one with the worst incident, else the first */
    uint32_t lines;           /* at most */
    bool unfolded;            /* a line for each packet */
    uint64_t around;          /* the frame that stands in the middle; 0: none */
    uint16_t around_file;     /* its file, from 0 */
    const char *const *files; /* names of the capture files, ended by NULL */
    bool unaligned;           /* times of several taps as they are */
    const ns_t *ahead;        /* with `unaligned`: what the clock of each file is ahead, ns; NULL: nothing */
};

struct ladder;

/* Subscribes to `o`, which must live as long, as must what `opts` points to. NULL without memory. */
struct ladder *ladder_new(struct observer *o, const struct ladder_opts *opts);
void ladder_free(struct ladder *l);
/* Draw only packets from `from` to `to`, since 1970. */
void ladder_between(struct ladder *l, ns_t from, ns_t to);
/* Before a packet is handed to the observer: whether it is to be drawn, if it is one of the connection. */
void ladder_show(struct ladder *l, bool show);
/* After the last packet: whether the frame `around` was there; true without one. */
bool ladder_reached(const struct ladder *l);
/* After the last packet: draw it; no line is longer than `width`, which is at least LADDER_WIDTH_MIN. */
void ladder_draw(struct ladder *l, unsigned width, struct buf *b);

#endif
