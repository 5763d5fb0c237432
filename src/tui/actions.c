/* layer 3b (tui): what keys do: actions, and the prompts for filter, search and command. */
#include "src/tui/tui_impl.h"

/* --- Moving ----------------------------------------------------------------------------------- */

/* Move in the pane that has the cursor. */
void move_by(struct tui *t, int64_t by)
{
    uint64_t at = view(t)->at;

    if (t->pane >= PANE_SIDE)
        side_move(t, (enum side)(t->pane - PANE_SIDE), by);
    else if (t->pane != PANE_LIST)
        detail_move(t, by, 0);
    else
        move_to(t, by < 0 && at < (uint64_t)-by ? 0 : at + (uint64_t)by);
}

unsigned page(const struct tui *t)
{
    const struct area *a = pane_area(t, t->pane);

    return a->rows > 1 ? a->rows - 1 : 1;
}

static void on_up(struct tui *t)
{
    move_by(t, -1);
}

static void on_down(struct tui *t)
{
    move_by(t, 1);
}

static void on_page_up(struct tui *t)
{
    move_by(t, -(int64_t)page(t));
}

static void on_page_down(struct tui *t)
{
    move_by(t, page(t));
}

static void on_half_up(struct tui *t)
{
    move_by(t, -(int64_t)(page(t) + 1) / 2);
}

static void on_half_down(struct tui *t)
{
    move_by(t, (page(t) + 1) / 2);
}

/* The first row, or the last one; the ladder, which may be a part of it, goes on to that of the connection. */
static bool in_ladder(const struct tui *t)
{
    return t->screen == SCREEN_LADDER && t->pane == PANE_LIST;
}

static void on_top(struct tui *t)
{
    if (in_ladder(t) && ladder_to_end(t, true))
        return;
    move_by(t, -(INT64_C(1) << 40));
}

static void on_bottom(struct tui *t)
{
    if (in_ladder(t) && ladder_to_end(t, false))
        return;
    move_by(t, INT64_C(1) << 40);
}

static void sideways(struct tui *t, int by)
{
    if (t->pane == PANE_BYTES)
        detail_move(t, 0, by);
    else if (t->pane == PANE_TREE)
        detail_fold(t, by > 0 ? FOLD_OPEN : FOLD_CLOSE);
    else if (t->pane == PANE_LIST && (by > 0 || view(t)->left))
        view(t)->left = by > 0 ? min_u32(view(t)->left + 8, SCREEN_COLUMNS_MAX) : view(t)->left - 8;
}

static void on_left(struct tui *t)
{
    sideways(t, -1);
}

static void on_right(struct tui *t)
{
    sideways(t, 1);
}

static bool is_event(struct tui *t, uint64_t row)
{
    const struct screen *s = &screens[t->screen];

    return s->event ? s->event(t, row) : row < view(t)->lines.n && view(t)->lines.v[row].event;
}

void to_event(struct tui *t, bool up)
{
    uint64_t n = row_count(t), row = view(t)->at;
    struct view *v = view(t);

    t->pane = PANE_LIST;
    while (up ? row-- > 0 : ++row < n)
        if (is_event(t, row)) {
            move_to(t, row);
            if (screens[t->screen].place == IN_TEXT && row >= v->top + t->layout.list.rows / 2)
                v->top = row; /* what is said of it is below */
            return;
        }
    if (t->screen == SCREEN_LADDER && ladder_to_event(t, up))
        return;
    tui_say(t, LOOK_NOTE, up ? "No event before this one." : "No event after this one.");
}

static void on_next_event(struct tui *t)
{
    to_event(t, false);
}

static void on_previous_event(struct tui *t)
{
    to_event(t, true);
}

/* --- Screens ---------------------------------------------------------------------------------- */

/* Go to a frame in the ladder: in the present one, if it has it. */
static void to_ladder(struct tui *t, const struct spot *p)
{
    const struct lines *l = &t->views[SCREEN_LADDER].lines;
    size_t i = lines_find(l, p->file, p->frame);
    const struct spot *at = lines_place(l, i);
    bool there = (t->hosts || t->ladder_conn == p->conn) && at && (at->frame == p->frame || at->other == p->frame);

    if (!there)
        ladder_ask(t, p->conn, p, false);
    go_to(t, SCREEN_LADDER, true);
    if (there)
        move_to(t, i);
}

/* Another screen; ladder and packets at the frame that is selected. */
static void open_screen(struct tui *t, enum screen_id s)
{
    struct spot p;
    bool about = row_about(t, view(t)->at, &p) && p.frame, in_ladder = t->screen == SCREEN_LADDER;

    if (s == t->screen)
        return;
    if (s == SCREEN_LADDER && about && p.conn) {
        to_ladder(t, &p);
        return;
    }
    go_to(t, s, true);
    if (s == SCREEN_PACKETS && in_ladder && about)
        packets_go(t, p.file, p.frame);
}

#define OPEN(name, id)                                                                                                 \
    static void on_##name(struct tui *t)                                                                               \
    {                                                                                                                  \
        open_screen(t, id);                                                                                            \
    }
OPEN(conns, SCREEN_CONNS)
OPEN(ladder, SCREEN_LADDER)
OPEN(packets, SCREEN_PACKETS)
OPEN(requests, SCREEN_REQUESTS)
OPEN(verdicts, SCREEN_VERDICTS)
OPEN(incidents, SCREEN_INCIDENTS)
OPEN(rates, SCREEN_RATES)

/* The first packet kept that was captured at `ts` or later. */
static uint64_t packet_from(struct tui *t, ns_t ts)
{
    uint64_t low = keep_first(t->keep), high = keep_end(t->keep);

    while (low < high) {
        uint64_t half = low + (high - low) / 2;
        if (keep_get(t->keep, half, &t->stored) && t->stored.frame.ts < ts)
            low = half + 1;
        else
            high = half;
    }
    return low;
}

void go_to_time(struct tui *t, ns_t ts)
{
    uint64_t i = packet_from(t, ts);

    go_to(t, SCREEN_PACKETS, true);
    move_to(t, packets_row(t, i));
}

void show_frame(struct tui *t, uint16_t file, uint64_t number)
{
    go_to(t, SCREEN_PACKETS, true);
    packets_go(t, file, number);
}

void show_place(struct tui *t, const struct spot *p)
{
    struct spot of = *p;

    if (p->frame && !p->conn)
        of.conn = ladder_conn_of(t, p); /* what is said of a host has frames of its connections */
    if (p->frame && of.conn) {
        to_ladder(t, &of);
    } else if (p->frame) {
        show_frame(t, p->file, p->frame);
    } else if (p->ts) {
        go_to_time(t, p->ts);
    } else {
        to_event(t, false);
    }
}

const struct area *pane_area(const struct tui *t, enum pane p)
{
    static const struct area none;

    if (p == PANE_RATES) /* it has nothing to select */
        return &none;
    return p >= PANE_SIDE    ? &t->layout.side[p - PANE_SIDE]
           : p == PANE_TREE  ? &t->layout.tree
           : p == PANE_BYTES ? &t->layout.bytes
                             : &t->layout.list;
}

/* The next pane that there is, `by` 1 or PANES - 1. */
static void next_pane(struct tui *t, unsigned by)
{
    unsigned p = t->pane;

    if (!t->layout.rule.rows)
        return;
    do
        p = (p + by) % PANES;
    while (t->split && !pane_area(t, (enum pane)p)->rows);
    t->pane = t->split || p < PANE_SIDE ? (enum pane)p : PANE_LIST;
}

static void on_pane(struct tui *t)
{
    next_pane(t, 1);
}

static void on_pane_back(struct tui *t)
{
    next_pane(t, PANES - 1);
}

/* From a line about nothing, such as a head: to the next event, or else to the next line about something. */
static void to_event_or_line(struct tui *t)
{
    uint64_t was = view(t)->at, n = row_count(t), row = was + 1;
    struct spot p;

    to_event(t, false);
    if (view(t)->at != was)
        return;
    while (row < n && !row_about(t, row, &p))
        row++;
    if (row < n) {
        move_to(t, row);
        t->status.len = 0;
    }
}

static void on_enter(struct tui *t)
{
    struct spot p;

    if (t->pane >= PANE_SIDE) {
        bool about = cursor_about(t, &p);
        t->pane = PANE_LIST;
        if (about)
            show_place(t, &p);
    } else if (screens[t->screen].place & IN_PACKETS) {
        t->split = true;
        lay_out(t);
        t->pane = t->pane == PANE_BYTES ? PANE_LIST : t->pane + 1;
    } else if (row_about(t, view(t)->at, &p)) {
        show_place(t, &p);
    } else {
        to_event_or_line(t);
    }
}

static void on_back(struct tui *t)
{
    if (t->pane != PANE_LIST)
        t->pane = PANE_LIST;
    else
        go_back(t);
}

static void on_quit(struct tui *t)
{
    t->quit = true;
}

static void on_split(struct tui *t)
{
    t->split = !t->split;
    if (t->pane >= PANE_SIDE)
        t->pane = PANE_LIST;
}

/* The pane with the cursor gets `by` more rows, as far as there is room. */
static void grow(struct tui *t, int by)
{
    int more = t->more + (t->pane == PANE_LIST ? by : -by);
    int was = t->more;
    unsigned rows = t->layout.list.rows;

    t->more = more;
    lay_out(t);
    if (t->layout.list.rows == rows)
        t->more = was;
}

static void on_larger(struct tui *t)
{
    grow(t, 1);
}

static void on_smaller(struct tui *t)
{
    grow(t, -1);
}

static void on_equal(struct tui *t)
{
    t->more = 0;
}

static void on_verbose(struct tui *t)
{
    t->verbose = !t->verbose;
    t->views[SCREEN_VERDICTS].made = false;
    save_changed(t, SCREEN_VERDICTS);
}

static void on_time(struct tui *t)
{
    static const enum print_time next[] = {[TIME_RELATIVE] = TIME_DELTA,
                                           [TIME_DELTA] = TIME_DELTA_DISPLAYED,
                                           [TIME_DELTA_DISPLAYED] = TIME_ABSOLUTE_DATE,
                                           [TIME_ABSOLUTE_DATE] = TIME_RELATIVE};
    static const char *const names[] = {[TIME_RELATIVE] = "since the first frame",
                                        [TIME_DELTA] = "since the frame before",
                                        [TIME_DELTA_DISPLAYED] = "since the frame before that is shown",
                                        [TIME_ABSOLUTE_DATE] = "of day"};

    t->printer.opts.time = next[t->printer.opts.time];
    t->views[SCREEN_VERDICTS].made = t->views[SCREEN_INCIDENTS].made = t->views[SCREEN_LADDER].made = false;
    tui_say(t, LOOK_KEY, "time: %s", names[t->printer.opts.time]);
}

static void fold(struct tui *t, const struct spot *p)
{
    ladder_ask(t, t->ladder_conn, p->frame ? p : NULL, true);
}

static void on_fold(struct tui *t)
{
    struct spot p = {.frame = 0};
    unsigned i = 0;

    if (t->pane == PANE_TREE || t->screen != SCREEN_LADDER) {
        detail_fold(t, FOLD_TURN);
        return;
    }
    row_about(t, view(t)->at, &p);
    while (i < t->n_opened &&
           !(t->opened[i].file == p.file && t->opened[i].first <= p.frame && t->opened[i].last >= p.frame))
        i++;
    if (i < t->n_opened) {
        t->opened[i] = t->opened[--t->n_opened];
        fold(t, &p);
    } else if (p.last && t->n_opened < OPENED_MAX) {
        t->opened[t->n_opened++] = (struct ladder_run){p.frame, p.last, p.file};
        fold(t, &p);
    } else {
        tui_say(t, LOOK_NOTE, p.last ? "No more runs can be shown: Z shows all." : "This line is no run of packets.");
    }
}

static void on_fold_all(struct tui *t)
{
    struct spot p = {.frame = 0};

    row_about(t, view(t)->at, &p);
    t->unfolded = !t->unfolded;
    t->n_opened = 0;
    fold(t, &p);
}

static void on_hosts(struct tui *t)
{
    struct spot p;
    bool about = row_about(t, view(t)->at, &p) && p.frame;

    t->hosts = !t->hosts;
    ladder_ask(t, about ? p.conn : t->ladder_conn, about ? &p : NULL, false);
}

static void on_pause(struct tui *t)
{
    t->paused = t->o.live && !t->paused;
    t->stopped = keep_end(t->keep);
}

static void on_end_capture(struct tui *t)
{
    t->enough = t->o.live;
}

static void on_redraw(struct tui *t)
{
    t->repaint = true;
}

static void on_help(struct tui *t)
{
    t->help = true;
    t->help_top = 0;
    t->ruled = (struct spot){.frame = 0};
}

/* Of a live capture: the last packet stays selected while packets come. */
void on_follow(struct tui *t)
{
    on_bottom(t);
    if (t->paused)
        on_pause(t);
    tui_say(t, LOOK_GOOD, "following: the last packet stays selected; any move up stops that, f goes on");
}

static void (*const act[ACTIONS])(struct tui *t) = {
    [ACTION_HELP] = on_help,
    [ACTION_QUIT] = on_quit,
    [ACTION_BACK] = on_back,
    [ACTION_ENTER] = on_enter,
    [ACTION_NEXT_EVENT] = on_next_event,
    [ACTION_PREV_EVENT] = on_previous_event,
    [ACTION_FILTER] = on_filter,
    [ACTION_FIELD_FILTER] = on_field_filter,
    [ACTION_SEARCH] = on_search,
    [ACTION_AGAIN] = on_search_next,
    [ACTION_BEFORE] = on_search_previous,
    [ACTION_COPY] = on_copy,
    [ACTION_COPY_LINE] = on_copy_line,
    [ACTION_SAVE] = on_save,
    [ACTION_SAVE_LINES] = on_save_lines,
    [ACTION_CHOOSE] = on_choose,
    [ACTION_MARK] = on_mark,
    [ACTION_TO_MARK] = on_to_mark,
    [ACTION_TO_CAUSE] = on_to_cause,
    [ACTION_NEXT_INCIDENT] = on_next_incident,
    [ACTION_NEXT_VERDICT] = on_next_verdict,
    [ACTION_PREV_VERDICT] = on_previous_verdict,
    [ACTION_TO_REQUEST] = on_to_request,
    [ACTION_RULE] = on_rule,
    [ACTION_COMMAND] = on_command,
    [ACTION_PANE] = on_pane,
    [ACTION_PANE_BACK] = on_pane_back,
    [ACTION_SPLIT] = on_split,
    [ACTION_LARGER] = on_larger,
    [ACTION_SMALLER] = on_smaller,
    [ACTION_EQUAL] = on_equal,
    [ACTION_COLORS] = on_colors,
    [ACTION_VERBOSE] = on_verbose,
    [ACTION_COMMANDS] = on_commands,
    [ACTION_SORT] = sort_by_next,
    [ACTION_SORT_BACK] = sort_by_last,
    [ACTION_INVERT] = sort_other_way,
    [ACTION_TIME] = on_time,
    [ACTION_FOLD] = on_fold,
    [ACTION_FOLD_ALL] = on_fold_all,
    [ACTION_HOSTS] = on_hosts,
    [ACTION_PAUSE] = on_pause,
    [ACTION_END_CAPTURE] = on_end_capture,
    [ACTION_REDRAW] = on_redraw,
    [ACTION_UP] = on_up,
    [ACTION_DOWN] = on_down,
    [ACTION_LEFT] = on_left,
    [ACTION_RIGHT] = on_right,
    [ACTION_PAGE_UP] = on_page_up,
    [ACTION_PAGE_DOWN] = on_page_down,
    [ACTION_HALF_UP] = on_half_up,
    [ACTION_HALF_DOWN] = on_half_down,
    [ACTION_TOP] = on_top,
    [ACTION_BOTTOM] = on_bottom,
    [ACTION_CONNS] = on_conns,
    [ACTION_LADDER] = on_ladder,
    [ACTION_PACKETS] = on_packets,
    [ACTION_REQUESTS] = on_requests,
    [ACTION_VERDICTS] = on_verdicts,
    [ACTION_INCIDENTS] = on_incidents,
    [ACTION_RATES] = on_rates,
};

void perform(struct tui *t, enum action a)
{
    if (act[a])
        act[a](t);
}

/* --- All keys --------------------------------------------------------------------------------- */

static bool is_in(const struct area *a, unsigned y, unsigned x)
{
    return y >= a->y && y < a->y + a->rows && x >= a->x && x < a->x + a->columns;
}

/* The pane beside that has the cell; PANES: none. */
static enum pane side_at(const struct tui *t, unsigned y, unsigned x)
{
    unsigned p = PANE_SIDE;

    while (p < PANES && !is_in(pane_area(t, (enum pane)p), y, x))
        p++;
    return (enum pane)p;
}

_Static_assert((int)ACTION_RATES - (int)ACTION_CONNS == (int)SCREENS - 1, "an action for each screen, in their order");

/* A click selects a row, or a screen by its tab; the wheel moves. */
static void mouse(struct tui *t)
{
    const struct view *s;
    unsigned y, x;
    int wheel;

    term_mouse(&y, &x, &wheel);
    if (wheel) {
        move_by(t, 3 * wheel);
    } else if (is_in(&t->layout.tabs, y, x)) {
        if (tab_at(t, x) < SCREENS)
            perform(t, (enum action)(ACTION_CONNS + tab_at(t, x)));
    } else if (is_in(&t->layout.list, y, x)) {
        t->pane = PANE_LIST;
        move_to(t, view(t)->top + y - t->layout.list.y);
    } else if (side_at(t, y, x) < PANES) {
        t->pane = side_at(t, y, x);
        s = &t->sides[t->pane - PANE_SIDE];
        side_move(t, (enum side)(t->pane - PANE_SIDE),
                  (int64_t)(s->top + y - pane_area(t, t->pane)->y) - (int64_t)s->at);
    } else if (is_in(&t->layout.tree, y, x)) {
        t->pane = PANE_TREE;
        detail_move(t, (int64_t)t->detail.top + y - t->layout.tree.y - fold_row(&t->detail, t->detail.at), 0);
    }
}

static void help_key(struct tui *t, enum action a)
{
    if (a == ACTION_DOWN || a == ACTION_PAGE_DOWN)
        t->help_top += a == ACTION_DOWN ? 1 : page(t);
    else if (a == ACTION_UP || a == ACTION_PAGE_UP)
        t->help_top -= min_u32(t->help_top, a == ACTION_UP ? 1 : page(t));
    else
        t->help = false;
}

void press(struct tui *t, uint32_t key)
{
    enum action a = keys_action(t->keys, key, screens[t->screen].place);

    if (key == KEYS_RESIZE)
        return;
    t->status.len = 0;
    if (t->prompt)
        prompt_key(t, key);
    else if (t->awaits)
        letter_key(t, key);
    else if (t->help)
        help_key(t, a);
    else if (key == KEYS_MOUSE)
        mouse(t);
    else if (key >= '0' && key <= '9')
        count_digit(t, key, a);
    else if (!count_taken(t, a))
        perform(t, a);
}
