/* layer 3b (tui): the UI as a whole: packets in, keys between them, the end. */
#include "src/tui/tui_impl.h"

#include "program.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define POLL_EVERY (4 * NS_PER_MS)   /* while packets are read: between looks for keys */
#define DRAW_EVERY (100 * NS_PER_MS) /* while something goes on: between screens */
#define POLL_CHECK 16                /* packets between looks at the clock */
#define FIRST_ROWS 200               /* packets before the first screen: more than it has lines */
#define IDLE_MS    50                /* to wait for a key while no packet is captured */
#define MAKE_EVERY (500 * NS_PER_MS) /* while packets come: between two versions of a screen that grows */

const struct screen screens[SCREENS] = {
    [SCREEN_CONNS] = {.name = "Conns", .place = IN_TEXT, .grows = true, .make = conns_make},
    [SCREEN_LADDER] = {.name = "Ladder", .place = IN_LADDER, .grows = true, .make = ladder_make},
    [SCREEN_PACKETS] = {.name = "Packets",
                        .place = IN_LIST,
                        .rows = packets_rows,
                        .draw = packets_draw,
                        .about = packets_about,
                        .event = packets_event,
                        .text = packets_text},
    [SCREEN_REQUESTS] = {.name = "Requests", .place = IN_TEXT, .make = requests_make},
    [SCREEN_VERDICTS] = {.name = "Verdicts", .place = IN_TEXT, .grows = true, .make = verdicts_make},
    [SCREEN_INCIDENTS] = {.name = "Incidents", .place = IN_TEXT, .grows = true, .make = incidents_make},
    [SCREEN_RATES] = {.name = "Rates", .place = IN_TEXT, .grows = true, .make = rates_make},
};

void tui_say(struct tui *t, enum look role, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    t->status.len = 0;
    buf_puts(&t->status, text);
    t->status_role = role;
}

/* --- Rows ------------------------------------------------------------------------------------- */

bool load_into(struct tui *t, uint64_t i, struct kept *stored, struct pkt *p)
{
    const struct pkt_mark *marks;
    unsigned n;

    if (!keep_get(t->keep, i, stored))
        return false;
    t->o.decode(t->o.user, p, &stored->frame);
    p->note = stored->note;
    p->message = stored->message;
    for (unsigned k = 0; k < stored->n_layers && p->n_layers < PKT_LAYERS; k++)
        p->layers[p->n_layers++] = stored->layers[k];
    marks = marks_of(&t->marks, &stored->frame, &n);
    pkt_marks(p, marks, n);
    return true;
}

bool load(struct tui *t, uint64_t i)
{
    return load_into(t, i, &t->stored, &t->pkt);
}

uint64_t row_count(struct tui *t)
{
    const struct screen *s = &screens[t->screen];

    return s->rows ? s->rows(t) : t->views[t->screen].lines.n;
}

bool row_about(struct tui *t, uint64_t row, struct spot *p)
{
    const struct screen *s = &screens[t->screen];
    const struct spot *of;

    if (s->about)
        return s->about(t, row, p);
    of = lines_place(&t->views[t->screen].lines, row);
    if (of)
        *p = *of;
    return of != NULL;
}

uint64_t selected(struct tui *t)
{
    struct spot p;
    uint64_t i;

    if (t->screen == SCREEN_PACKETS)
        return packets_at(t, t->views[SCREEN_PACKETS].at);
    if (t->screen != SCREEN_LADDER || !row_about(t, t->views[SCREEN_LADDER].at, &p))
        return UINT64_MAX;
    i = keep_find(t->keep, p.file, p.frame);
    return i != UINT64_MAX && keep_get(t->keep, i, &t->stored) && t->stored.frame.number == p.frame ? i : UINT64_MAX;
}

void move_to(struct tui *t, uint64_t row)
{
    uint64_t n = row_count(t);
    struct view *v = &t->views[t->screen];

    v->at = !n ? 0 : row < n ? row : n - 1;
    t->follow = t->o.live && !t->ended && t->screen == SCREEN_PACKETS && v->at + 1 >= n;
    if (t->screen == SCREEN_LADDER)
        ladder_moved(t);
}

/* Whether packets came since the lines were made that may have changed what they say. */
static bool has_grown(const struct tui *t)
{
    const struct view *v = &t->views[t->screen];

    if (t->screen == SCREEN_LADDER && !ladder_end_is_near(t))
        return false;
    return screens[t->screen].grows && !t->ended && !t->paused && v->seen != t->seen &&
           (t->script || now_ns() >= v->next_make);
}

/* Make the lines of the present screen; the cursor stays at what it was at, in the same line of it. */
static void make(struct tui *t)
{
    struct view *v = &t->views[t->screen];
    const struct spot *at = lines_place(&v->lines, v->at);
    struct spot was = v->was = at ? *at : (struct spot){.frame = 0};
    bool follows = t->o.live && t->screen == SCREEN_LADDER && v->lines.n && v->at + 1 == v->lines.n;
    size_t begin = was.frame ? lines_find(&v->lines, was.file, was.frame) : 0;
    uint64_t below = v->width == t->layout.list.columns && v->at > begin ? v->at - begin : 0;

    lines_clear(&v->lines);
    v->made = true;
    v->width = t->layout.list.columns;
    v->seen = t->seen;
    screens[t->screen].make(t);
    lines_end(&v->lines);
    v->next_make = now_ns() + (uint64_t)MAKE_EVERY;
    if (was.frame)
        v->at = lines_find(&v->lines, was.file, was.frame) + below;
    if (follows && !t->ladder_more[1])
        v->at = v->lines.n - 1;
    save_remade(t);
}

void prepare(struct tui *t)
{
    struct view *v = &t->views[t->screen];

    if (screens[t->screen].make && (!v->made || v->width != t->layout.list.columns || has_grown(t)))
        make(t);
    if (t->follow && !t->paused && t->screen == SCREEN_PACKETS && row_count(t))
        v->at = row_count(t) - 1;
    if (v->at >= row_count(t))
        v->at = row_count(t) ? row_count(t) - 1 : 0;
}

void lay_out(struct tui *t)
{
    unsigned place = screens[t->screen].place, what = 0;

    if (t->help)
        what = 0;
    else if (place & IN_PACKETS && t->split)
        what = LAYOUT_DETAIL | LAYOUT_BESIDE;
    else if (place & IN_PACKETS)
        what = t->pane == PANE_TREE ? LAYOUT_TREE : t->pane == PANE_BYTES ? LAYOUT_BYTES : 0;
    else if (t->screen == SCREEN_RATES && t->split)
        what = LAYOUT_GRAPH;
    t->layout = layout_of(t->columns, t->lines, what, t->more);
    if (!pane_area(t, t->pane)->rows)
        t->pane = PANE_LIST;
}

bool cursor_about(struct tui *t, struct spot *p)
{
    const struct view *v = t->pane >= PANE_SIDE ? &t->sides[t->pane - PANE_SIDE] : NULL;
    const struct spot *of = v ? lines_place(&v->lines, v->at) : NULL;

    if (!v)
        return row_about(t, t->views[t->screen].at, p);
    if (of)
        *p = *of;
    return of != NULL;
}

/* --- Screens ---------------------------------------------------------------------------------- */

void go_to(struct tui *t, enum screen_id s, bool back)
{
    if (s == t->screen)
        return;
    if (back && t->n_back == BACK_MAX)
        memmove(t->back, t->back + 1, --t->n_back * sizeof *t->back);
    if (back)
        t->back[t->n_back++] = (struct was){(uint8_t)t->screen, t->views[t->screen].at};
    save_left(t);
    t->screen = s;
    t->pane = PANE_LIST;
    t->tasks[TASK_SEARCH].active = false;
    lay_out(t);
    prepare(t);
}

void go_back(struct tui *t)
{
    if (!t->n_back) {
        t->quit = true;
        return;
    }
    go_to(t, (enum screen_id)t->back[--t->n_back].screen, false);
    move_to(t, t->back[t->n_back].at);
}

/* --- Keys ------------------------------------------------------------------------------------- */

/* "@80x24": a size. */
static bool is_size(const char *s, unsigned *columns, unsigned *rows)
{
    if (*s != '@' || sscanf(s, "@%ux%u", columns, rows) != 2)
        return false;
    return *columns && *rows && *columns <= SCREEN_COLUMNS_MAX && *rows <= SCREEN_ROWS_MAX;
}

/* A word of the script: a size, or a key, or text that is typed. */
static void take_word(struct tui *t, const char *s, size_t n)
{
    unsigned columns, rows;

    t->n_typed = t->typed_at = t->count.digits = 0; /* only digits of one word are a count */
    if (n == 5 && memcmp(s, "@dump", n) == 0) {
        if (t->o.dump)
            term_dump(t->o.dump);
    } else if (is_size(s, &columns, &rows)) {
        term_resize(columns, rows);
    } else if (keys_parse(s, n)) {
        t->typed[t->n_typed++] = keys_parse(s, n);
    } else {
        for (size_t i = 0; i < n && t->n_typed < ARRAY_LEN(t->typed); i++)
            t->typed[t->n_typed++] = (uint8_t)s[i];
    }
}

/* Take the next word of the script. False at its end. */
static bool next_word(struct tui *t)
{
    size_t n;

    t->script += strspn(t->script, " ");
    n = strcspn(t->script, " ");
    if (!n)
        return false;
    take_word(t, t->script, n);
    t->script += n;
    while (t->typed_at < t->n_typed && !t->quit)
        press(t, t->typed[t->typed_at++]);
    return true;
}

/* The terminal is taken when there is something to show. False: it cannot be. */
static bool turn_on(struct tui *t)
{
    if (t->on)
        return true;
    t->on = term_start(&t->o.term);
    t->quit |= !t->on;
    if (t->on)
        draw(t);
    return t->on;
}

static void draw_now(struct tui *t)
{
    draw(t);
    t->next_draw = now_ns() + (uint64_t)DRAW_EVERY;
}

/* Look for keys for `ms`, work on tasks, draw if there is something new. */
static void look(struct tui *t, int ms)
{
    uint32_t key = term_key(ms);
    bool any = key != KEY_NOTHING, work = tasks_left(t);

    for (; key != KEY_NOTHING && !t->quit; key = term_key(0))
        press(t, key);
    if (any)
        draw_now(t);
    tasks_run(t, 0);
    if (term_signal())
        t->quit = true;
    if (now_ns() >= t->next_draw || (work && !tasks_left(t)))
        draw_now(t);
    t->next_look = now_ns() + (uint64_t)POLL_EVERY;
}

/* Between two packets. */
static void between(struct tui *t)
{
    if (t->script) {
        if (t->o.slice && t->seen % t->o.slice == 0 && turn_on(t)) {
            next_word(t);
            tasks_run(t, t->o.slice);
            draw(t);
        }
    } else if ((t->seen == FIRST_ROWS || (t->seen % POLL_CHECK == 0 && now_ns() >= t->next_look)) && turn_on(t)) {
        look(t, 0);
    }
}

bool tui_idle(struct tui *t)
{
    int ms = t->o.live ? IDLE_MS : 0; /* for bytes of a pipe its reader has waited */

    if ((t->seen || t->o.live) && !t->script && turn_on(t))
        look(t, ms);
    else
        poll(NULL, 0, ms);
    return !t->quit && !t->enough;
}

/* --- Packets ---------------------------------------------------------------------------------- */

static enum kind kind_of(const struct event *e)
{
    const struct pkt *p = e->p;

    if (e->kind == EVENT_BAD_ICRC || (p->flags & PKT_MALFORMED && p->have & H_BTH))
        return KIND_BAD;
    if (p->have & H_MAD)
        return KIND_CM;
    if (e->kind == EVENT_CNP)
        return KIND_CNP;
    if (e->kind == EVENT_RESPONSE)
        return response_type(p) == AETH_ACK ? KIND_RESPONSE : KIND_NAK;
    if (e->kind != EVENT_REQUEST)
        return KIND_OTHER;
    return e->as == SEEN_AGAIN ? KIND_AGAIN : e->as == SEEN_GAP ? KIND_GAP : KIND_REQUEST;
}

static void on_event(void *user, const struct event *e)
{
    struct tui *t = user;
    struct ladder_seen seen = ladder_look(t->observer, e);

    if (t->units.len) {
        seen.units = t->units.p;
        seen.units_len = (uint32_t)t->units.len;
    }
    if (!t->full && !keep_add(t->keep, e->p, t->decoded, kind_of(e), t->o.place(t->o.user, e->p->frame), &seen))
        t->full = true;
    t->units.len = 0;
}

bool tui_packet(struct tui *t, struct pkt *p, unsigned decoded)
{
    t->decoded = decoded;
    if (!t->seen++)
        t->first = p->frame->ts;
    analyses_packet(&t->analyses, p);
    between(t);
    return !t->quit && !t->enough;
}

void tui_drops(struct tui *t, uint16_t file, uint64_t n)
{
    analyses_drops(&t->analyses, file, n);
}

/* --- The end ---------------------------------------------------------------------------------- */

/* Once: there are no more packets. */
static void end_analyses(struct tui *t)
{
    struct view *v = t->views;

    analyses_end(&t->analyses);
    taps_end(t->taps);
    t->rows = meter_rows(t->analyses.meter, &t->n_rows);
    rates_so_far_end(t);
    t->ended = true;
    t->o.mark(t->o.user, &t->marks, judge_findings(t->analyses.judge), t->analyses.explainer);
    packets_marked(t);
    t->detail.index = UINT64_MAX; /* it may have marks now */
    for (unsigned i = 0; i < SCREENS; i++)
        v[i].made = false;
    for (unsigned i = 0; i < SIDES; i++)
        t->sides[i].made = false;
}

/* The script, with all work done after each key. */
static void run_script(struct tui *t)
{
    do {
        while (!t->o.slice && tasks_left(t))
            tasks_run(t, 0);
        tasks_run(t, t->o.slice);
        draw(t);
    } while (!t->quit && next_word(t));
}

void tui_end(struct tui *t, bool failed, uint32_t ifaces)
{
    t->failed = failed;
    t->ifaces = ifaces;
    if (t->quit)
        return;
    end_analyses(t);
    if (!turn_on(t))
        return;
    if (t->script) {
        run_script(t);
        if (t->o.dump)
            term_dump(t->o.dump);
    }
    t->next_draw = 0;
    while (!t->script && !t->quit)
        look(t, tasks_left(t) ? 0 : t->next_draw ? 500 : 0);
    term_end();
}

/* --- Making it -------------------------------------------------------------------------------- */

static void on_work_packet(void *user, const struct wqe *w, const struct pkt *p, uint32_t flow)
{
    struct tui *t = user;

    if (t->requests[0].n < REQUESTS_MAX) /* no account of a request that will not be shown */
        request_parts_packet(t->analyses.parts, w, p, flow);
}

static void on_over(void *user, const struct wqe *w, uint32_t flow)
{
    requests_add(user, w, flow);
}

static void on_upper_command(void *user, const struct command_row *q)
{
    commands_add(user, q);
}

/* The analyses. False without memory. */
static bool subscribe(struct tui *t, struct observer *o)
{
    const struct observer_sub s = {.user = t, .before = on_event};
    struct analyses_opts a = t->o.analyses;

    a.meter.interval = RATES_SHORTEST;
    a.meter.tick = rates_so_far_tick;
    a.meter.user = t;
    a.meter.work = (struct wqe_user){t, on_work_packet, on_over};
    a.command = on_upper_command;
    a.user = t;
    t->taps = taps_new(o);
    return t->taps && rates_so_far_begin(t) && analyses_begin(&t->analyses, o, &a) && observer_subscribe(o, &s) &&
           ladder_units(o, &t->units);
}

/* Bind the user's keys. False after a message. */
static bool take_bindings(struct tui *t)
{
    const char *why;
    unsigned line;

    if (!t->o.bindings || keys_bind(t->keys, t->o.bindings, strlen(t->o.bindings), &line, &why))
        return true;
    cli_error("%s: line %u: %s: expected a key and an action, such as \"^N down\"", t->o.bindings_file, line, why);
    return false;
}

struct tui *tui_new(const struct tui_opts *opts, struct observer *o)
{
    struct tui *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->o = *opts;
    t->began = now_ns();
    t->script = opts->script;
    t->observer = o;
    t->screen = SCREEN_PACKETS;
    t->split = true;
    t->follow = opts->live;
    t->ifaces = 1;
    t->detail.index = UINT64_MAX;
    far_init(&t->passing, sizeof(uint32_t), opts->index_memory / 2);
    t->printer.opts.ascii = opts->term.ascii;
    t->printer.digits = 9;
    t->keys = keys_new();
    t->keep = keep_new(opts->files, opts->n_files, observer_flows(o), opts->ring, opts->index_memory);
    requests_init(t);
    if (!t->keys || !t->keep || !subscribe(t, o))
        cli_error("tui: out of memory, or no temporary file");
    else if (take_bindings(t) && (!opts->filter || packets_filter(t, opts->filter)))
        return t;
    tui_free(t);
    return NULL;
}

void tui_free(struct tui *t)
{
    if (!t)
        return;
    term_end();
    rates_so_far_free(t);
    diagram_free(t);
    analyses_free(&t->analyses);
    taps_free(t->taps);
    buf_free(&t->units);
    keep_free(t->keep);
    keys_free(t->keys);
    filter_free(t->filter);
    for (unsigned i = 0; i < SCREENS; i++)
        lines_free(&t->views[i].lines);
    for (unsigned i = 0; i < SIDES; i++)
        lines_free(&t->sides[i].lines);
    buf_free(&t->status);
    buf_free(&t->row);
    buf_free(&t->input);
    buf_free(&t->filter_text);
    buf_free(&t->search);
    buf_free(&t->detail.text);
    marks_free(&t->marks);
    rows_so_far_free(t->so_far);
    requests_free(t);
    save_stop(t);
    buf_free(&t->save_as);
    save_rows_free(t);
    free(t->chosen);
    far_free(&t->passing);
    free(t);
}
