/* layer 3b (tui): keys and actions: one table, from which help, hints, the manual page and completion follow. */
#ifndef RDMATRACE_TUI_KEYS_H
#define RDMATRACE_TUI_KEYS_H

#include "buf.h"

enum action {
    ACTION_NONE,
#define ACTION(id, name, keys, places, hint, text) ACTION_##id,
#include "src/tui/keys.def"
#undef ACTION
    ACTIONS
};

/* Where an action is offered; masks of these bits. */
enum {
    IN_LADDER = 1,
    IN_LIST = 2, /* the packets */
    IN_TEXT = 4, /* all other screens */
    IN_PACKETS = IN_LADDER | IN_LIST,
    IN_ALL = IN_PACKETS | IN_TEXT,
};

/* A key: a character, ^A as 1, or one of these. */
enum {
    KEY_NOTHING = 0, /* no key was pressed */
    KEYS_SPECIAL = 0x110000,
    KEYS_UP,
    KEYS_DOWN,
    KEYS_LEFT,
    KEYS_RIGHT,
    KEYS_PGUP,
    KEYS_PGDN,
    KEYS_HOME,
    KEYS_END,
    KEYS_BACKSPACE,
    KEYS_DELETE,
    KEYS_STAB,
    KEYS_RESIZE,
    KEYS_MOUSE,
    KEYS_F0, /* F1 is KEYS_F0 + 1 */
    KEYS_LAST = KEYS_F0 + 12,
};
#define KEYS_ENTER 13u
#define KEYS_TAB   9u
#define KEYS_ESC   27u

/* Keys and what they do; those of the table, and those that the user bound. */
struct keys;

/* NULL without memory. */
struct keys *keys_new(void);
void keys_free(struct keys *k);
/* Take lines "KEY ACTION" (# begins a comment; "none": the key does nothing) of a text. False: *line is the number of a
 * wrong one, and `why` (not NULL) says what is wrong with it. */
bool keys_bind(struct keys *k, const char *text, size_t len, unsigned *line, const char **why);
/* What `key` does at `place` (one of IN_*). */
enum action keys_action(const struct keys *k, uint32_t key, unsigned place);
/* The key of that name: "j", "^F", "PgDn", "Enter"; 0: there is none. */
uint32_t keys_parse(const char *name, size_t len);
/* The action of that name; ACTION_NONE: there is none. */
enum action action_named(const char *name, size_t len);
/* The only action name that begins with the first *len bytes of `name`, or the longest common beginning of several:
 * sets *len. NULL: none begins so. */
const char *action_complete(const char *name, size_t *len);

/* Append the names of actions that begin with `n` bytes, in at most `width` columns. */
void action_names(struct buf *b, const char *begin, size_t n, unsigned width);

/* Append the help for a place in lines of at most `columns`: each action, its keys first. */
void keys_help(const struct keys *k, struct buf *b, unsigned place, unsigned columns);
/* Append hints in at most `width` columns: "Enter enter  ] next-event". */
void keys_hints(const struct keys *k, struct buf *b, unsigned place, unsigned width);
/* Append the list of the manual page. */
void keys_man(struct buf *b);

#endif
