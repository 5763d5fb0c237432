/* layer 3b (tui): the terminal: cells with roles, keys, and what remains of it at the end. The only user of curses. */
#ifndef RDMATRACE_TUI_TERM_H
#define RDMATRACE_TUI_TERM_H

#include "buf.h"

/* What a text is. Each role has a colour and, for terminals without, bold, dim, underlined or reversed text; the text
 * itself has a letter, a word or a sign for it, too. */
enum look {
    LOOK_NORMAL,
    LOOK_TITLE,
    LOOK_SELECTED,
    LOOK_FIELD, /* the bytes of the selected field */
    LOOK_KEY,
    LOOK_REQUEST,
    LOOK_RESPONSE,
    LOOK_CM,
    LOOK_AGAIN,
    LOOK_NAK,
    LOOK_LOST,
    LOOK_FAIL,
    LOOK_UNSURE, /* inconclusive, a warning */
    LOOK_NOTE,
    LOOK_GOOD,
    LOOKS
};

struct term_opts {
    bool color;             /* with colours, if the terminal has any */
    bool ascii;             /* no character above 0x7e */
    bool mouse;             /* take clicks and the wheel */
    bool none;              /* no terminal: cells are only remembered, for term_dump() */
    unsigned columns, rows; /* with `none`: size */
};

/* Take over the terminal. False after a message: it cannot show a screen. */
bool term_start(const struct term_opts *o);
/* Whether standard output is a terminal that shows screens: $TERM is known, and not "dumb". */
bool term_is_there(void);
/* Give it back as it was; may be called twice, and without term_start(). */
void term_end(void);
/* The signal that ended the program: SIGINT, SIGTERM, SIGHUP; 0: none did. */
int term_signal(void);

unsigned term_columns(void);
unsigned term_rows(void);
/* With term_opts.none: another size. */
void term_resize(unsigned columns, unsigned rows);

/* Clear the screen that is drawn next; show what was drawn since; `repaint`: repaint the whole screen. */
void term_clear(void);
void term_show(bool repaint);
/* Write up to `width` columns of `n` bytes of UTF-8, skipping the first `skip` columns. What is not printable is a dot.
 * Returns the columns written. */
unsigned term_put(unsigned y, unsigned x, unsigned width, const char *s, size_t n, unsigned skip, enum look role);
/* Give cells another role. */
void term_mark(unsigned y, unsigned x, unsigned width, enum look role);
/* A horizontal line. */
void term_rule(unsigned y, unsigned x, unsigned width);
/* Show the cursor there; only until the next term_clear(). */
void term_cursor(unsigned y, unsigned x);

/* The next key: a character, or KEYS_* of keys.h; KEY_NOTHING after `ms` milliseconds without one. */
uint32_t term_key(int ms);
/* Where the mouse was pressed, after KEYS_MOUSE; *wheel: -1 up, 1 down, 0 a click. */
void term_mouse(unsigned *y, unsigned *x, int *wheel);
/* Put a text into the clipboard of the terminal (OSC 52). */
void term_copy(const char *text, size_t n);
/* Append the screen: each row, and below it a row with a letter for the role of each cell, unless all are normal. */
void term_dump(struct buf *b);

#endif
