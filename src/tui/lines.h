/* layer 3b (tui): text of a printer as lines on the screen, each with the frame that it is about. */
#ifndef RDMATRACE_TUI_LINES_H
#define RDMATRACE_TUI_LINES_H

#include "buf.h"
#include "src/tui/term.h"

/* What lines are about. Several lines that follow each other may share it. */
struct spot {
    uint64_t frame; /* 0: none */
    uint16_t file;  /* of the frame, from 0 */
    uint16_t other_file;
    uint64_t other; /* the same packet at another tap: frame and file; 0: none */
    uint64_t last;  /* of a folded run of packets: frame of the last one; 0: it is none */
    uint32_t conn;  /* number of the connection, 0: none */
    uint8_t rule;   /* enum rule, of a verdict; 0: none */
    uint8_t cause;  /* enum cause plus 1, of an incident; 0: none */
    ns_t ts;        /* the time of it, ns since 1970; 0: not known. Used if `frame` is 0 */
};

struct line {
    size_t at;      /* in lines.text */
    uint32_t len;   /* bytes, without the line end */
    uint8_t indent; /* columns before it, if it goes on with a line that was too long */
    uint32_t item;  /* in lines.items, plus 1; 0: it is about nothing */
    uint8_t role;   /* enum look */
    bool event;     /* [ and ] stop here: the first line of an item that is one */
};

/* Zero-initialise. Whoever appends to `text` calls lines_item() for each item, and lines_end() at last. */
struct lines {
    struct buf text;
    struct line *v;
    size_t n, cap;
    struct mark *marks; /* where items begin */
    size_t n_marks, cap_marks;
    bool short_of_memory;
    unsigned wrap; /* columns behind which a line is broken at a space; 0: it is not */
};

/* Remove all lines. */
void lines_clear(struct lines *l);
void lines_free(struct lines *l);
/* What begins at byte `at` of the text, up to the next item or empty line, is about `p`, which is copied; NULL: about
 * nothing. `role` is that of the first line. Items come in the order of the text; of two with the same `at` the later
 * one counts. */
void lines_item(struct lines *l, size_t at, const struct spot *p, enum look role, bool event);
/* Split the text into lines. */
void lines_end(struct lines *l);
/* What line `i` is about; NULL: nothing. */
const struct spot *lines_place(const struct lines *l, size_t i);
/* The first line about that frame, else the first one of an item; 0 if there is none. */
size_t lines_find(const struct lines *l, uint16_t file, uint64_t frame);

#endif
