/* layer 3b (tui): the ladder: the packets around the cursor at once, more of them in slices between keys. */
#include "src/tui/tui_impl.h"

#include <stdlib.h>

#define NEAR_EACH   300   /* packets on each side that are drawn at once */
#define FAR_EACH    10000 /* and in slices */
#define LADDER_MAX  20000 /* lines of a ladder */
#define LINES_STEP  4     /* lines drawn in a step */
#define LOOK_FOR    4096  /* packets among which the first connection is looked for */
#define EVENTS_NEAR 512   /* packets among which the next event is looked for at first */
#define EVENTS_EACH 65536 /* and at a time, if it is far */

/* --- Which packets ---------------------------------------------------------------------------- */

/* Numbers of packets, ascending. */
struct numbers {
    uint64_t *v;
    size_t n, cap;
};

static bool numbers_need(struct numbers *s, size_t more)
{
    uint64_t *grown = s->n + more > s->cap ? realloc(s->v, (s->n + more) * 2 * sizeof *grown) : NULL;

    if (grown) {
        s->v = grown;
        s->cap = (s->n + more) * 2;
    }
    return s->n + more <= s->cap;
}

/* Of `n` ascending numbers keep those nearest to `at`: `each` below it and `each` from it on. more[]: there are others
 * below and above. */
static size_t nearest(uint64_t *v, size_t n, uint64_t at, uint32_t each, bool more[2])
{
    size_t below = 0;

    while (below < n && v[below] < at)
        below++;
    more[0] = below > each;
    more[1] = n - below > each;
    n = more[1] ? below + each : n;
    below = more[0] ? below - each : 0;
    if (below)
        memmove(v, v + below, (n - below) * sizeof *v);
    return n - below;
}

/* Put the `n` ascending numbers behind the others to their places; behind them there is room for as many. */
static void merge(struct numbers *s, size_t n)
{
    size_t low = s->n, to = s->n += n;
    const uint64_t *from = memcpy(s->v + s->n, s->v + low, n * sizeof *s->v);

    while (n && to--)
        s->v[to] = low && s->v[low - 1] > from[n - 1] ? s->v[--low] : from[--n];
}

/* Those of a key nearest to `at`, too; of all together the nearest are kept. */
static void add_key(struct tui *t, struct numbers *s, uint32_t key, uint64_t at, uint32_t each)
{
    bool more[2];

    if (!numbers_need(s, (size_t)2 * KEEP_ROOM(each)))
        return;
    merge(s, keep_near(t->keep, key, at, each, s->v + s->n));
    s->n = nearest(s->v, s->n, at, each, more);
}

/* All packets around `at`: those between two hosts may be of any number of connections. */
static void add_all(struct tui *t, struct numbers *s, uint64_t at, uint32_t each)
{
    uint64_t first = keep_first(t->keep), end = keep_end(t->keep), from = at > first + each ? at - each : first;

    for (uint64_t i = from; i < end && i < at + each && numbers_need(s, 1); i++)
        s->v[s->n++] = i;
}

/* Of connection `conn`: its flows at all taps, its FPDUs, and what belongs to no flow. */
static void add_conn(struct tui *t, struct numbers *s, uint32_t conn, uint64_t at, uint32_t each)
{
    struct conn_table *conns = observer_conns(t->observer);
    uint32_t flows = conn_counts(conns).flows;

    add_key(t, s, keep_key_of_flow(t->keep, FLOW_NONE), at, each);
    add_key(t, s, keep_key_of_stream(t->keep, conn), at, each);
    for (uint32_t i = 0; i < flows; i++)
        if (conn_flow_at(conns, i)->conn == conn)
            add_key(t, s, keep_key_of_flow(t->keep, i), at, each);
}

/* Those of connection `conn`, or of its hosts, that are nearest to `at`; see nearest(). */
static struct numbers numbers_near(struct tui *t, uint32_t conn, uint64_t at, uint32_t each, bool more[2])
{
    struct numbers s = {.n = 0};

    if (t->hosts)
        add_all(t, &s, at, each + 1);
    else
        add_conn(t, &s, conn, at, each + 1);
    s.n = nearest(s.v, s.n, at, each, more);
    return s;
}

/* The connection of packet `i`; 0: none, or it was evicted since. */
static uint32_t conn_of(struct tui *t, uint64_t i)
{
    struct conn_table *conns = observer_conns(t->observer);
    const struct ladder_seen *s = &t->stored.seen;

    if (!load(t, i))
        return 0;
    if (!s->drawn || s->flow == FLOW_NONE)
        return ladder_units_conn(s->units, s->units_len);
    if (conn_counts(conns).evicted && conn_flow_find(conns, &t->pkt) != s->flow)
        return 0;
    return conn_flow_at(conns, s->flow)->conn;
}

uint32_t ladder_conn_of(struct tui *t, const struct spot *p)
{
    uint64_t i = keep_find(t->keep, p->file, p->frame);

    return i < keep_end(t->keep) ? conn_of(t, i) : 0;
}

/* The connection with the worst incident, else the first one. */
static uint32_t any_conn(struct tui *t)
{
    const struct explainer *x = t->analyses.explainer;
    uint32_t conn = 0;

    for (size_t i = 0; i < explain_n(x); i++)
        if (explain_at(x, i)->conn)
            return explain_at(x, i)->conn;
    for (uint64_t i = keep_first(t->keep), n = 0; !conn && i < keep_end(t->keep) && n < LOOK_FOR; i++, n++)
        conn = conn_of(t, i);
    return conn;
}

/* --- Lines ------------------------------------------------------------------------------------ */

static void on_ladder_line(void *user, const struct ladder_line *l)
{
    static const uint8_t role[] = {
        [LADDER_REQUEST] = LOOK_NORMAL, [LADDER_RESPONSE] = LOOK_RESPONSE, [LADDER_AGAIN] = LOOK_AGAIN,
        [LADDER_NAK] = LOOK_NAK,        [LADDER_LOST] = LOOK_LOST,         [LADDER_CONCERNED] = LOOK_FAIL,
        [LADDER_CM] = LOOK_CM};
    struct tui *t = user;
    struct lines *lines = t->diagram.lines;
    const struct spot *at = &t->ladder_at;
    struct spot p = {.frame = l->frame,
                     .file = l->file,
                     .other = l->other,
                     .other_file = l->other_file,
                     .last = l->last,
                     .conn = l->conn};
    bool event =
        l->role == LADDER_AGAIN || l->role == LADDER_NAK || l->role == LADDER_LOST || l->role == LADDER_CONCERNED;

    if (l->other && l->other == at->frame && l->other_file == at->file) { /* the requested copy comes first */
        p.frame = l->other;
        p.file = l->other_file;
        p.other = l->frame;
        p.other_file = l->file;
    }
    lines_item(lines, lines->text.len, &p, (enum look)role[l->role], event);
}

/* The time of day, or microseconds since the packet before. */
static void put_time(void *user, struct buf *b, ns_t ts, ns_t before)
{
    const struct tui *t = user;
    ns_t delta = before && ts > before ? ts - before : 0;

    if (t->printer.opts.time == TIME_ABSOLUTE_DATE)
        print_stamp(b, ts, t->first, TIME_ABSOLUTE, 6);
    else if (t->printer.digits < 9)
        buf_printf(b, "%lld", (long long)(delta / NS_PER_US));
    else
        buf_printf(b, "%lld.%03lld", (long long)(delta / NS_PER_US), (long long)(delta % NS_PER_US));
}

/* A ladder of the packets around `at`, none of them put yet. False without memory. */
static bool begin(struct tui *t, struct diagram *d, uint64_t at, uint32_t each, struct lines *lines)
{
    enum print_time how = t->printer.opts.time;
    const struct ladder_found found = {t->observer, t->analyses.explainer, t->taps, t->first};
    const struct ladder_opts o = {.conn = t->ladder_conn,
                                  .hosts = t->hosts,
                                  .lines = LADDER_MAX,
                                  .unfolded = t->unfolded,
                                  .opened = t->opened,
                                  .n_opened = t->n_opened,
                                  .around = t->ladder_at.frame,
                                  .around_file = t->ladder_at.file,
                                  .around_in_run = t->ladder_in_run,
                                  .part = true,
                                  .files = t->o.files,
                                  .line = on_ladder_line,
                                  .put_time = how == TIME_RELATIVE ? NULL : put_time,
                                  .time_name = how == TIME_ABSOLUTE_DATE ? "time" : "delta us",
                                  .user = t};
    struct numbers s = numbers_near(t, t->ladder_conn, at, each, d->more);

    *d = (struct diagram){.around = at,
                          .ladder = ladder_of(&found, &o),
                          .numbers = s.v,
                          .n = s.n,
                          .lines = lines,
                          .more = {d->more[0], d->more[1]}};
    return d->ladder != NULL;
}

static void finish(struct diagram *d)
{
    ladder_free(d->ladder);
    free(d->numbers);
    d->ladder = NULL;
    d->numbers = NULL;
}

static void put_packet(struct tui *t, uint64_t i)
{
    if (load(t, i))
        ladder_put(t->diagram.ladder, &t->pkt, &t->stored.seen);
}

static void put_head(struct tui *t)
{
    struct diagram *d = &t->diagram;

    lines_item(d->lines, 0, NULL, LOOK_KEY, false);
    d->drawing = true;
    d->left = ladder_draw_head(d->ladder, t->views[SCREEN_LADDER].width, &d->lines->text);
    if (d->left && d->more[0])
        buf_puts(&d->lines->text, "Packets before these: up from the first line.\n");
}

/* False: all lines are there. */
static bool put_lines(struct tui *t, uint32_t n)
{
    struct diagram *d = &t->diagram;
    bool any = d->left;

    d->left = any && ladder_draw_lines(d->ladder, n, &d->lines->text);
    if (!any || d->left)
        return d->left;
    if (d->more[1]) {
        lines_item(d->lines, d->lines->text.len, NULL, LOOK_NORMAL, false);
        buf_puts(&d->lines->text, "Packets behind these: down from the last line.\n");
    }
    return false;
}

/* --- More of it, in slices -------------------------------------------------------------------- */

/* Which packets. */
static bool first_step(struct tui *t)
{
    bool begun = begin(t, &t->diagram, t->diagram.around, FAR_EACH, &t->longer);

    t->tasks[TASK_LADDER].to = 1 + t->diagram.n + LADDER_MAX + 2;
    return begun;
}

/* Then a packet, then some lines. */
static bool step(struct tui *t, uint64_t at)
{
    struct diagram *d = &t->diagram;

    if (!d->ladder)
        return first_step(t);
    if (at <= d->n) {
        put_packet(t, d->numbers[at - 1]);
        return true;
    }
    if (!d->drawing) {
        put_head(t);
        return true;
    }
    return put_lines(t, LINES_STEP);
}

/* Show the longer ladder in place of the short one; the cursor stays at its packet, in the same line of the screen. */
static void show_longer(struct tui *t)
{
    struct view *v = &t->views[SCREEN_LADDER];
    struct lines was = v->lines;
    const struct spot *at = lines_place(&was, v->at);
    struct spot p = at ? *at : t->ladder_at;
    size_t begin = lines_find(&was, p.file, p.frame), below = v->at > begin ? v->at - begin : 0;
    uint64_t above = v->at > v->top ? v->at - v->top : 0;

    v->lines = t->longer;
    t->longer = was;
    lines_clear(&t->longer);
    lines_end(&v->lines);
    v->at = lines_find(&v->lines, p.file, p.frame) + below;
    v->top = v->at > above ? v->at - above : 0;
    memcpy(t->ladder_more, t->diagram.more, sizeof t->ladder_more);
    if (t->screen == SCREEN_LADDER)
        save_remade(t);
}

/* Without memory the short one stays. */
static void done(struct tui *t)
{
    if (t->diagram.ladder)
        show_longer(t);
    finish(&t->diagram);
}

static void go_on(struct tui *t, uint64_t at)
{
    const struct task task = {.rows = true, .doing = "drawing the ladder", .to = 1, .step = step, .done = done};

    lines_clear(&t->longer);
    t->diagram.around = at;
    task_start(t, TASK_LADDER, &task);
}

void diagram_stop(struct tui *t)
{
    t->tasks[TASK_LADDER].active = false;
    finish(&t->diagram);
}

void diagram_free(struct tui *t)
{
    diagram_stop(t);
    lines_free(&t->longer);
}

/* --- The screen ------------------------------------------------------------------------------- */

/* Draw what is near. */
static void draw_near(struct tui *t, uint64_t at, struct lines *l)
{
    if (begin(t, &t->diagram, at, NEAR_EACH, l)) {
        for (size_t i = 0; i < t->diagram.n; i++)
            put_packet(t, t->diagram.numbers[i]);
        put_head(t);
        put_lines(t, UINT32_MAX);
    } else {
        buf_puts(&l->text, "Out of memory.\n");
    }
    memcpy(t->ladder_more, t->diagram.more, sizeof t->ladder_more);
    finish(&t->diagram);
}

void ladder_make(struct tui *t)
{
    struct view *v = &t->views[SCREEN_LADDER];
    uint64_t at = keep_first(t->keep);

    diagram_stop(t);
    if (v->was.frame) {
        t->ladder_at = v->was;
        t->ladder_in_run = true;
    }
    if (t->ladder_at.frame)
        at = keep_find(t->keep, t->ladder_at.file, t->ladder_at.frame);
    if (!t->ladder_conn)
        t->ladder_conn = t->ladder_at.frame ? conn_of(t, at) : 0;
    if (!t->ladder_conn)
        t->ladder_conn = any_conn(t);
    t->ladder_conn = conn_number_now(observer_conns(t->observer), t->ladder_conn);
    if (none_so_far(t))
        put_so_far(t, &v->lines.text, "");
    else
        draw_near(t, at, &v->lines);
    lines_end(&v->lines);
    if (!v->was.frame) {
        v->at = lines_find(&v->lines, t->ladder_at.file, t->ladder_at.frame);
        v->top = v->at > 3 ? v->at - 3 : 0;
    }
    if (t->ladder_more[0] || t->ladder_more[1])
        go_on(t, at);
}

void ladder_ask(struct tui *t, uint32_t conn, const struct spot *at, bool in_run)
{
    struct view *v = &t->views[SCREEN_LADDER];

    diagram_stop(t);
    save_changed(t, SCREEN_LADDER);
    t->ladder_at = at ? *at : (struct spot){.conn = conn};
    t->ladder_in_run = in_run;
    t->ladder_conn = conn;
    lines_clear(&v->lines);
    lines_end(&v->lines);
    v->made = false;
}

bool ladder_end_is_near(const struct tui *t)
{
    const struct view *v = &t->views[SCREEN_LADDER];

    return v->at + t->layout.list.rows >= v->lines.n;
}

void ladder_moved(struct tui *t)
{
    struct view *v = &t->views[SCREEN_LADDER];
    uint64_t n = v->lines.n, margin = t->layout.list.rows;
    bool low = t->ladder_more[0] && v->at < margin, high = t->ladder_more[1] && ladder_end_is_near(t);

    while (low && v->at + 1 < n && !lines_place(&v->lines, v->at))
        v->at++;
    while (high && v->at && !lines_place(&v->lines, v->at))
        v->at--;
    if ((low || high) && lines_place(&v->lines, v->at))
        v->made = false; /* it is drawn again around the cursor */
}

/* --- Far places ------------------------------------------------------------------------------- */

/* Draw the ladder around packet `i`. */
static void ask_at(struct tui *t, uint64_t i)
{
    struct spot p = {.conn = t->ladder_conn};

    if (!keep_get(t->keep, i, &t->stored))
        return;
    p.frame = t->stored.frame.number;
    p.file = t->stored.frame.file;
    ladder_ask(t, t->ladder_conn, &p, true);
    prepare(t);
}

bool ladder_to_end(struct tui *t, bool first)
{
    bool more[2];
    struct numbers s;

    if (!t->ladder_more[!first])
        return false;
    s = numbers_near(t, t->ladder_conn, first ? 0 : UINT64_MAX, 1, more);
    if (s.n)
        ask_at(t, first ? s.v[0] : s.v[s.n - 1]);
    free(s.v);
    return s.n > 0;
}

static bool is_drawn_as_event(enum kind k)
{
    return k == KIND_AGAIN || k == KIND_NAK || k == KIND_BAD;
}

/* The number of the next event of the connection from packet `at` on, or before it; UINT64_MAX: there is none. */
static uint64_t event_from(struct tui *t, uint64_t at, bool up)
{
    uint64_t found = UINT64_MAX;
    bool more[2] = {true, true};

    for (uint32_t each = EVENTS_NEAR; found == UINT64_MAX && more[!up]; each = min_u32(2 * each, EVENTS_EACH)) {
        struct numbers s = numbers_near(t, t->ladder_conn, at, each, more);
        for (size_t k = 0; k < s.n && found == UINT64_MAX; k++) {
            uint64_t i = s.v[up ? s.n - 1 - k : k];
            if (up ? i < at : i >= at)
                found = is_drawn_as_event(keep_kind(t->keep, i)) ? i : UINT64_MAX;
        }
        more[!up] &= s.n > 0;
        at = !s.n ? at : up ? s.v[0] : s.v[s.n - 1] + 1;
        free(s.v);
    }
    return found;
}

bool ladder_to_event(struct tui *t, bool up)
{
    const struct lines *l = &t->views[SCREEN_LADDER].lines;
    const struct spot *p = NULL;
    uint64_t i;

    if (!t->ladder_more[!up])
        return false;
    for (size_t k = 0; k < l->n && !p; k++)
        p = lines_place(l, up ? k : l->n - 1 - k);
    if (!p)
        return false;
    i = event_from(t, keep_find(t->keep, p->file, p->frame) + !up, up);
    if (i != UINT64_MAX)
        ask_at(t, i);
    return i != UINT64_MAX;
}
