/* layer 3b (tui): what the parts of the UI share. */
#ifndef RDMATRACE_TUI_TUI_IMPL_H
#define RDMATRACE_TUI_TUI_IMPL_H

#include "dissect/pkt.h"
#include "src/filter/filter.h"
#include "src/ladder/ladder.h"
#include "src/measure/columns.h"
#include "src/measure/wqe_print.h"
#include "src/show/marks.h"
#include "src/show/print.h"
#include "src/taps/taps.h"
#include "src/tui/far.h"
#include "src/tui/keep.h"
#include "src/tui/keys.h"
#include "src/tui/layout.h"
#include "src/tui/lines.h"
#include "src/tui/tui.h"

#include <stdio.h>

enum screen_id {
    SCREEN_CONNS,
    SCREEN_LADDER,
    SCREEN_PACKETS,
    SCREEN_REQUESTS,
    SCREEN_VERDICTS,
    SCREEN_INCIDENTS,
    SCREEN_RATES,
    SCREENS
};

/* What a screen shows and where its cursor is. */
struct view {
    uint64_t at, top;   /* row of the cursor, first row shown */
    unsigned left;      /* columns scrolled to the right */
    unsigned order;     /* of the rows, see sort_by_next() */
    bool inverted;      /* the other way around */
    bool made;          /* `lines` are up to date for `width` */
    uint64_t seen;      /* of a screen that grows: packets when they were made, */
    uint64_t next_make; /* and when they may be made again, ns */
    unsigned width;     /* columns that they were made for */
    unsigned rows;      /* beside: likewise */
    uint32_t conn;      /* beside: the connection that they are about */
    struct spot was;    /* while lines are made anew: what the cursor was at; frame 0: nothing */
    struct lines lines; /* of all screens but packets */
};

/* A screen: rows, what each is about, and its own keys. NULL: as for lines of text. */
struct screen {
    const char *name;
    unsigned place;              /* IN_* of keys.h */
    bool grows;                  /* while packets come it shows what is known so far */
    void (*make)(struct tui *t); /* fill the lines of its view */
    uint64_t (*rows)(struct tui *t);
    void (*draw)(struct tui *t, uint64_t row, const struct area *a); /* one row */
    bool (*about)(struct tui *t, uint64_t row, struct spot *p);      /* false: nothing */
    bool (*event)(struct tui *t, uint64_t row);
    void (*text)(struct tui *t, uint64_t row, struct buf *b); /* of a row, for the search */
};
extern const struct screen screens[SCREENS];

/* A line of the tree. */
struct tree_line {
    size_t at;                 /* in detail.text */
    const struct hdr *hdr;     /* of a heading, its header; NULL: none */
    const struct layer *layer; /* in detail.pkt; NULL: none */
    const struct field *field; /* NULL: none */
    uint32_t bit, bits;        /* in the frame; bits 0: none */
};

#define TREE_LINES 4096 /* lines of a tree, at most */
#define TURNED_MAX 32   /* headers that the user folded or unfolded */

/* Fields and bytes of the selected packet. */
struct detail {
    uint64_t index; /* of the packet among those kept, UINT64_MAX: none */
    struct kept stored;
    struct pkt pkt;
    struct buf text;
    struct tree_line lines[TREE_LINES];
    unsigned n;
    unsigned at, top;                     /* line of the cursor; first row shown */
    bool small;                           /* little room: headers are folded unless the user unfolds them */
    unsigned shown[TREE_LINES], n_shown;  /* rows: lines that are not folded away */
    const struct hdr *turned[TURNED_MAX]; /* folded or unfolded by the user, the other way than all */
    unsigned n_turned;
    uint32_t byte; /* of the cursor */
    uint32_t byte_top;
};

/* What is done to a header of the tree. */
enum fold { FOLD_OPEN, FOLD_CLOSE, FOLD_TURN };

/* Panes that the cursor can be in, in the order of pane-next; those from PANE_SIDE on are enum side. */
enum pane {
    PANE_LIST,
    PANE_TREE,
    PANE_BYTES,
    PANE_SIDE,
    PANE_CONNS = PANE_SIDE + SIDE_CONNS,
    PANE_RATES = PANE_SIDE + SIDE_RATES,
    PANE_INCIDENTS = PANE_SIDE + SIDE_INCIDENTS,
    PANE_VERDICTS = PANE_SIDE + SIDE_VERDICTS,
    PANES
};

/* Work on the packets kept, done in slices between keys. */
enum task_id { TASK_FILTER, TASK_SEARCH, TASK_LADDER, TASK_SAVE, TASKS };
struct task {
    bool active;
    bool waits;        /* until the whole capture was read */
    bool after_ladder; /* until the ladder is drawn whole */
    const char *doing; /* "filtering" */
    bool rows;         /* `at` counts rows of the screen, not packets of those kept */
    uint64_t at, to;   /* next one; the one after the last; UINT64_MAX: all there will be */
    /* one packet or row; false: the work is done */
    bool (*step)(struct tui *t, uint64_t at);
    void (*done)(struct tui *t); /* after the last one; NULL: nothing */
};

#define REQUESTS_MAX 200000 /* that are kept of each kind */

/* Work requests, or commands of upper protocols, that are over. */
struct requests {
    struct table table; /* their columns */
    struct request *v;
    size_t n, cap;
    struct buf text; /* a line of each */
    struct buf csv;  /* likewise of commands, in CSV: what is saved */
    struct far kept; /* likewise of work requests: struct kept_request */
    uint64_t left_out;
};

/* A ladder that is being drawn. */
struct diagram {
    uint64_t around;       /* the packet at the cursor */
    struct ladder *ladder; /* NULL: none is */
    uint64_t *numbers;     /* its packets */
    size_t n;
    struct lines *lines; /* get its lines */
    bool more[2];        /* there are packets before and behind these */
    bool drawing, left;  /* the head is drawn; lines are not drawn yet */
};

enum prompt_kind {
    PROMPT_NONE,
    PROMPT_FILTER,
    PROMPT_SEARCH,
    PROMPT_COMMAND,
    PROMPT_SAVE,
    PROMPT_SAVE_LINES,
    PROMPT_OVERWRITE, /* the file save_as is there: y or not */
};

/* What the colours of packets tell. */
enum color_by { COLOR_ROLE, COLOR_CONN, COLOR_MESSAGE, COLORS_BY };

#define BACK_MAX       32
#define MARKED_LETTERS 26
#define OPENED_MAX     64      /* runs of the ladder that are not folded */
#define CHOSEN_MAX     1000000 /* packets chosen for saving */

/* A screen to go back to. */
struct was {
    uint8_t screen;
    uint64_t at;
};

/* Digits that were typed: a count, if a motion follows. Each has opened its screen by then, so what was shown before
 * the first one is kept. */
struct count {
    unsigned digits; /* 0: none */
    uint64_t n;
    bool plain;      /* the first one opened no screen */
    uint64_t latest; /* when the latest one was typed, ns */
    uint8_t screen;  /* the members that follow: what was before */
    uint8_t pane;    /* enum pane */
    unsigned n_back; /* of `back` */
    struct was back[BACK_MAX];
    uint64_t at[SCREENS], top[SCREENS]; /* of the views */
    uint32_t ladder_conn;
    struct spot ladder_at;
    bool ladder_in_run;
};

struct tui {
    struct tui_opts o;
    struct observer *observer;
    struct keys *keys;
    struct keep *keep;
    uint64_t seen;    /* packets handed over */
    uint64_t began;   /* ns: when it was made */
    ns_t first;       /* time of the first packet, valid with `seen` */
    unsigned decoded; /* layers of the packet at hand that pkt_decode() made */
    bool full;        /* packets could not be kept */
    struct analyses analyses;
    struct requests requests[2]; /* work requests that are over; commands of upper protocols */
    bool commands;               /* the latter are shown */
    struct meter_row **rows;
    size_t n_rows;
    struct rows_so_far *so_far; /* before the end, `rows` are these */
    bool ended, failed;         /* all was read and explained; not to its end */
    uint32_t first_incident;    /* internal of incidents_make() */
    size_t marks_above;         /* likewise */
    uint32_t ifaces;
    struct marks marks; /* findings and incidents by frame, with `ended` */
    /* the screen */
    bool on, quit, enough; /* the terminal was taken; the user quits; ends a live capture */
    unsigned columns, lines;
    struct layout layout;
    enum screen_id screen;
    struct view sides[SIDES]; /* beside it */
    uint32_t side_conn;       /* the connection that they are about */
    struct view views[SCREENS];
    struct was back[BACK_MAX];
    unsigned n_back;
    enum pane pane;
    int more; /* rows of the list beyond its half of the screen */
    enum color_by color_by;
    bool split, verbose, unfolded, paused, help, repaint;
    bool hosts;        /* the ladder is that of all connections between two hosts */
    bool follow;       /* the last packet stays selected */
    uint64_t stopped;  /* with `paused`: packets shown */
    struct spot ruled; /* the rule or cause whose text is shown in place of the help; none: the help */
    unsigned help_top;
    uint64_t next_look; /* ns: when keys are looked for, and the screen is drawn */
    uint64_t next_draw;
    struct buf status; /* what the status line says until the next key */
    enum look status_role;
    struct buf row; /* scratch: text of a row */
    struct printer printer;
    struct pkt pkt;     /* scratch */
    struct kept stored; /* of `pkt` */
    struct detail detail;
    struct count count;
    enum action awaits; /* ACTION_MARK or ACTION_TO_MARK: the next key is its letter */
    struct spot marked[MARKED_LETTERS + 1];
    /* the prompt */
    enum prompt_kind prompt;
    struct buf input;
    const char *script; /* rest of tui_opts.script */
    uint32_t typed[64]; /* keys of a word of it */
    unsigned n_typed, typed_at;
    /* packets that pass the filter */
    struct filter *filter; /* NULL: all do */
    struct buf filter_text;
    struct far passing; /* numbers of packets kept, ascending, uint32_t */
    struct buf search;  /* the text */
    uint64_t search_from;
    bool search_up, found;
    struct task tasks[TASKS];
    /* the file that is being saved; NULL: none */
    struct cap_writer *save;
    FILE *save_lines; /* likewise, of lines */
    struct buf save_as;
    enum rows_format save_format; /* of save_lines */
    struct printer save_printer;  /* of packets in it */
    uint64_t saved;               /* packets or lines in it */
    uint64_t *chosen;             /* numbers of packets kept, ascending */
    size_t n_chosen, cap_chosen;
    /* the ladder that is shown */
    struct ladder_run opened[OPENED_MAX]; /* runs that are not folded */
    unsigned n_opened;
    uint32_t ladder_conn;  /* asked for; 0: any */
    struct spot ladder_at; /* frame asked for */
    bool ladder_in_run;    /* it may be in a folded run */
    bool ladder_more[2];   /* the connection has packets before those of the ladder, and behind them */
    struct taps *taps;
    struct buf units; /* FPDUs of the packet at hand */
    /* the one that is being drawn, and the lines that are about to replace those of the screen */
    struct diagram diagram;
    struct lines longer;
    struct rates_so_far *rates;
};

/* --- tui.c ------------------------------------------------------------------------------------ */
/* Say something in the status line. */
void tui_say(struct tui *t, enum look role, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Read packet `i` of those kept into t->pkt, with what is known of it from earlier packets. */
bool load(struct tui *t, uint64_t i);
/* The same into *stored and *p; both are valid until another packet is read. */
bool load_into(struct tui *t, uint64_t i, struct kept *stored, struct pkt *p);
/* Go to a screen; `back`: remember this one. */
void go_to(struct tui *t, enum screen_id s, bool back);
void go_back(struct tui *t);
/* The view of the present screen. */
static inline struct view *view(struct tui *t)
{
    return &t->views[t->screen];
}
/* Place the cursor. */
void move_to(struct tui *t, uint64_t row);
/* Make the lines of the present screen, if they are not. */
void prepare(struct tui *t);
/* Rows of the present screen. */
uint64_t row_count(struct tui *t);
bool row_about(struct tui *t, uint64_t row, struct spot *p);
/* The packet that the present screen has selected, as a number among those kept; UINT64_MAX: none. */
uint64_t selected(struct tui *t);

/* Lay out the present screen. */
void lay_out(struct tui *t);
/* What the line with the cursor is about, in whichever pane it is. */
bool cursor_about(struct tui *t, struct spot *p);
/* Where a pane is; no rows: nowhere. */
const struct area *pane_area(const struct tui *t, enum pane p);

/* --- actions.c ------------------------------------------------------------------------------------ */
/* A key was pressed. */
void press(struct tui *t, uint32_t key);
void perform(struct tui *t, enum action a);
/* Show a frame: in the ladder of its connection, or among the packets. */
void show_place(struct tui *t, const struct spot *p);
/* Show a frame among the packets. */
void show_frame(struct tui *t, uint16_t file, uint64_t number);
/* Show the first packet at `ts` or later. */
void go_to_time(struct tui *t, ns_t ts);

/* Move in the pane that has the cursor, by lines; lines of a page of it. */
void move_by(struct tui *t, int64_t by);
unsigned page(const struct tui *t);

/* Of a live capture: the last packet stays selected while packets come. */
void on_follow(struct tui *t);

/* --- copy.c --- */
void on_copy(struct tui *t);
void on_copy_line(struct tui *t);
void on_field_filter(struct tui *t);

/* --- count.c: counts before motions ------------------------------------------------------------------- */
/* A digit was typed, which does `a`. */
void count_digit(struct tui *t, uint32_t key, enum action a);
/* A key that is no digit was pressed, which does `a`: if digits were typed before it and it is a motion, do it so
 * often, or go to that frame, from what was shown before the digits. False: it is to be done as it is. */
bool count_taken(struct tui *t, enum action a);

/* --- jumps.c ------------------------------------------------------------------------------------ */
void on_mark(struct tui *t);
void on_to_mark(struct tui *t);
void on_to_cause(struct tui *t);
void on_to_request(struct tui *t);
void on_rule(struct tui *t);
void on_next_incident(struct tui *t);
void on_next_verdict(struct tui *t);
void on_previous_verdict(struct tui *t);
/* The next event of the screen, or the one before. */
void to_event(struct tui *t, bool up);
/* The text that on_rule() asked for. */
void rule_put(struct tui *t, struct buf *b);
/* The key behind on_mark() or on_to_mark(). */
void letter_key(struct tui *t, uint32_t key);

/* --- prompt.c: filter, search, command ------------------------------------------------------------- */
void prompt_key(struct tui *t, uint32_t key);
/* What may follow in the prompt: the names that begin like the last one. */
void prompt_hints(struct tui *t, struct buf *b, unsigned width);
void on_filter(struct tui *t);
void on_search(struct tui *t);
void on_search_next(struct tui *t);
void on_search_previous(struct tui *t);
void on_command(struct tui *t);
void on_save(struct tui *t);
void on_save_lines(struct tui *t);
/* The text of a row of the present screen. */
void text_of_row(struct tui *t, uint64_t row, struct buf *b);

/* --- save.c --- */
/* Save the packets that pass the filter to `path`, which must not be there. */
void on_save_as(struct tui *t, const char *path);
/* Save the rows of the screen to `path`: as CSV or JSON if its name ends so, else as the text that is shown. The user
 * is asked first if there is such a file. */
void save_lines_as(struct tui *t, const char *path);
/* The key behind that question. */
void overwrite_key(struct tui *t, uint32_t key);
/* What was saved so far stays. */
void save_stop(struct tui *t);
/* What is being saved of the rows of a screen ends before the last one, and that is said: the screen is left; or its
 * rows become others, such as in another order. */
void save_left(struct tui *t);
void save_changed(struct tui *t, enum screen_id s);
/* The rows of the present screen were made anew: if none of them was saved yet, all of the new ones are, else the file
 * is not whole, which is said. */
void save_remade(struct tui *t);

/* --- save_rows.c: rows of the screen as CSV and JSON -------------------------------------------------- */
/* The format of a file by the end of its name; ROWS_TEXT: neither CSV nor JSON. */
enum rows_format save_format_of(const char *path);
/* Append what precedes the rows, row `row` of the present screen, and what follows, as t->save_format; count them in
 * t->saved. What a screen shows but as rows (verdicts, incidents) all follows. */
void save_rows_begin(struct tui *t, struct buf *b);
void save_rows_put(struct tui *t, uint64_t row, struct buf *b);
void save_rows_end(struct tui *t, struct buf *b);
void save_rows_free(struct tui *t);

/* --- draw.c ------------------------------------------------------------------------------------- */
void draw(struct tui *t);
/* The screen whose tab is at a column; SCREENS: none is. */
enum screen_id tab_at(const struct tui *t, unsigned column);

/* --- packets.c: the list of packets, and the filter -------------------------------------------------- */
uint64_t packets_rows(struct tui *t);
void packets_draw(struct tui *t, uint64_t row, const struct area *a);
bool packets_about(struct tui *t, uint64_t row, struct spot *p);
bool packets_event(struct tui *t, uint64_t row);
void packets_text(struct tui *t, uint64_t row, struct buf *b);
/* The packet of a row, as a number among those kept; UINT64_MAX: none. */
uint64_t packets_at(struct tui *t, uint64_t row);
/* The row of packet `i`, or the one before it. */
uint64_t packets_row(struct tui *t, uint64_t i);
/* Show only what passes `text`; "": all. False after saying what is wrong. */
bool packets_filter(struct tui *t, const char *text);
/* The frames of findings and incidents are known now: repeat the filtering if the filter reads them. */
void packets_marked(struct tui *t);
enum look role_of_kind(enum kind k);
/* Go to frame `number` of file `file`. */
void packets_go(struct tui *t, uint16_t file, uint64_t number);

/* --- choose.c --------------------------------------------------------------------------------- */
void on_choose(struct tui *t);
/* Whether packet `i` of those kept is chosen. */
bool is_chosen(const struct tui *t, uint64_t i);
void on_colors(struct tui *t);
/* The role in whose colour a packet is drawn that has `role`. */
enum look color_of(const struct tui *t, const struct pkt_note *note, enum look role);
/* Likewise of a line of the ladder; on other screens `role`. */
enum look ladder_color(struct tui *t, uint64_t row, enum look role);

/* --- detail.c: fields and bytes --------------------------------------------------------------------- */
/* Show packet `i` of those kept. */
void detail_show(struct tui *t, uint64_t i);
void detail_draw(struct tui *t);
/* Move the cursor of the pane by lines (bytes: of 16) and columns. */
void detail_move(struct tui *t, int64_t lines, int columns);
/* Fold or unfold the header of the selected field. */
void detail_fold(struct tui *t, enum fold how);
/* Append the comment of the packet, made printable; false: it has none. */
bool detail_comment(struct tui *t, struct buf *b);
/* Append a filter that the packet passes because of the selected field; false: there is none. */
bool detail_filter(struct tui *t, struct buf *b);

/* --- side/fold.c: headers of the tree that are folded ----------------------------------------------------- */
/* Find the lines that are shown in a tree of `rows`. */
void fold_lines(struct detail *d, unsigned rows);
/* The row of a line that is shown. */
unsigned fold_row(const struct detail *d, unsigned line);
/* Fold or unfold the header of the line with the cursor. */
void fold_turn(struct detail *d, enum fold how);
/* Append the text of a line; of a folded header with what its fields say. */
void fold_text(const struct detail *d, unsigned line, struct buf *b);

/* --- texts.c: screens of text: connections, verdicts, incidents ------------------------------------------- */
void conns_make(struct tui *t);
void verdicts_make(struct tui *t);
void incidents_make(struct tui *t);
/* Whether packets come, and none of RDMA came so far. */
bool none_so_far(const struct tui *t);
/* Before the end: append that the screen is of the packets so far, and `what` follows, or that there are none. */
void put_so_far(const struct tui *t, struct buf *b, const char *what);
void rows_so_far_free(struct rows_so_far *r);
/* The connections in the order of the screen, to be released; *n of them. NULL without memory. */
struct meter_row **conns_rows(struct tui *t, size_t *n);
/* What the screen of verdicts shows of findings, and how. */
struct shown_findings {
    struct tui *t;
    const struct finding *last; /* internal */
    size_t totals;              /* byte of the text where the totals begin */
};
/* The rows as they are so far, by connection; of many those with the latest packets. */
void conns_so_far(struct tui *t);
enum look verdict_look(const struct finding *f);
bool verdict_is_listed(const struct tui *t, const struct finding *f);
/* Options for the findings that it shows; *a must outlive them. */
struct findings_opts verdicts_opts(struct tui *t, struct shown_findings *a);
/* Sort the present screen by the next of its columns, or the other way around. */
void sort_by_next(struct tui *t);
void sort_by_last(struct tui *t);
void sort_other_way(struct tui *t);
/* The account of all connections as a bar of `columns`, and what its letters mean. */
void account_bar(struct tui *t, struct buf *b, unsigned columns);

/* --- requests.c ------------------------------------------------------------------------------- */
void requests_make(struct tui *t);
/* A work request is over. */
void requests_add(struct tui *t, const struct wqe *w, uint32_t flow);
/* So is a command of an upper protocol. */
void commands_add(struct tui *t, const struct command_row *q);
void on_commands(struct tui *t);
/* The name of an order of requests, below REQUEST_ORDERS. */
#define REQUEST_ORDERS 5
const char *requests_order_name(unsigned order);
/* Append the command of a row of the screen in CSV, with the line end, or the work request in `format`. False: there is
 * none. */
bool requests_row(struct tui *t, uint64_t row, enum rows_format format, struct buf *b);
void requests_init(struct tui *t);
void requests_free(struct tui *t);
/* The first frame of the work request that t->pkt, of connection `conn`, belongs to or answers; 0: none that is over.
 */
uint64_t requests_first_of(struct tui *t, uint32_t conn);

/* --- side/: beside ladder and packets --------------------------------------------------------------------- */
/* The connection of the selected line, else the last one that was selected. */
uint32_t conn_at_cursor(struct tui *t);
void side_draw(struct tui *t);
/* Move the cursor of a pane. */
void side_move(struct tui *t, enum side s, int64_t by);
/* What is wrong with each connection, by number: the worst. `n` letters, to be released; NULL without memory. */
char *conn_letters(struct tui *t, uint32_t *n);
/* The letter of one; "." if there is nothing. */
char conn_letter(const char *letters, uint32_t n, uint64_t conn);
/* Append a graph of connection `conn` in `columns` and `rows`: bytes in each moment, and what went wrong. */
void graph_make(struct tui *t, uint32_t conn, unsigned columns, unsigned rows, struct lines *l);
void graph_draw(struct tui *t, const struct area *a);
/* What of the connection of the selected line is known, short; what is said of the selected frame. */
void about_conn_put(struct tui *t, struct buf *b);
bool said_put(struct tui *t, struct buf *b);

/* --- diagram.c: the ladder -------------------------------------------------------------------- */
void ladder_make(struct tui *t);
/* The connection of a frame; 0: it has none, or is not kept. */
uint32_t ladder_conn_of(struct tui *t, const struct spot *p);
/* Draw the ladder of connection `conn`, or of that of a frame (`at` not NULL), which has a line of its own unless
 * `in_run`. */
void ladder_ask(struct tui *t, uint32_t conn, const struct spot *at, bool in_run);
/* The cursor was moved: near the first or the last line the ladder goes on. */
void ladder_moved(struct tui *t);
/* The cursor is near the last line: packets that came since belong there. Else they are drawn when it gets there. */
bool ladder_end_is_near(const struct tui *t);
/* Go to the first packet of the connection, or the last one, or to its next event, that the ladder does not have.
 * False: it has all there are. */
bool ladder_to_end(struct tui *t, bool first);
bool ladder_to_event(struct tui *t, bool up);
/* Draw no more; free all. */
void diagram_stop(struct tui *t);
void diagram_free(struct tui *t);

/* --- rates.c: the rates ----------------------------------------------------------------------- */
/* Make t->rates. False without memory. */
bool rates_so_far_begin(struct tui *t);
void rates_so_far_free(struct tui *t);
/* For meter_opts.tick of a meter that begins with intervals of RATES_SHORTEST; `user` is the tui. */
#define RATES_SHORTEST NS_PER_US
meter_tick rates_so_far_tick;
/* t->rows are final: so are the names of connections. */
void rates_so_far_end(struct tui *t);
void rates_make(struct tui *t);
/* The rates of a connection in columns of equal length, `most` at most: bytes in the direction that has most of them,
 * all other counts of both, at one tap. */
struct rates_columns {
    unsigned n;                /* columns */
    ns_t begin, length;        /* of the first one, and of each */
    struct conn_addr src, dst; /* the direction of the bytes */
    struct meter_counts *of;   /* to be released; NULL: there are none */
};
struct rates_columns rates_columns_of(struct tui *t, uint32_t conn, unsigned most);
/* Append what the screen shows as `format`, or as text in lines of `width`. Returns how many rows. */
uint64_t rates_put(struct tui *t, enum rows_format format, unsigned width, struct buf *b);

/* --- tasks.c ---------------------------------------------------------------------------------- */
void task_start(struct tui *t, enum task_id id, const struct task *task);
/* Work for some time, or on `packets` packets (0: for a time). */
void tasks_run(struct tui *t, uint64_t packets);
bool tasks_left(const struct tui *t);

/* ns of a clock that does not go back. */
uint64_t now_ns(void);

#endif
