/* layer 3b (tui): the screen. */
#include "src/tui/tui_impl.h"

#include <stdio.h>

#define READING_LEAST  1.0 /* s of reading before its speed is told */
#define WITH_FILTER    120 /* from this width on the title has the filter */
#define SUMMARY_LEAST  40  /* columns for what is known of the connection, at least */
#define DIGITS_COLUMNS 100 /* from this width on times have nine decimals */

static void put(const struct area *a, unsigned x, const char *s, enum look role)
{
    if (x < a->columns)
        term_put(a->y, a->x + x, a->columns - x, s, strlen(s), 0, role);
}

/* How much was read, how fast, and how long the rest takes: "reading 62 %  1.3 M packets/s  3 s left"; a script has no
 * time. */
static void put_reading(const struct tui *t, struct buf *b, double part)
{
    double seconds = (double)(now_ns() - t->began) / 1e9;

    buf_printf(b, "  reading %.0f %%", 100 * part);
    if (t->script || seconds < READING_LEAST || part <= 0)
        return;
    buf_printf(b, "  %.1f M packets/s", (double)t->seen / seconds / 1e6);
    if (t->columns >= DIGITS_COLUMNS)
        buf_printf(b, "  %.0f s left", seconds * (1 - part) / part + 0.5);
}

/* What is being done, and how far it is: "reading 62 %". */
static void put_progress(struct tui *t, struct buf *b)
{
    double part = t->ended ? 1 : t->o.progress(t->o.user);

    if (!t->ended && t->o.live)
        buf_puts(b, t->paused ? "  live, paused" : t->follow ? "  live, following" : "  live");
    else if (!t->ended && part >= 0)
        put_reading(t, b, part);
    else if (!t->ended)
        buf_puts(b, "  reading");
    for (unsigned i = 0; i < TASKS; i++) {
        const struct task *k = &t->tasks[i];
        uint64_t first = k->rows ? 0 : keep_first(t->keep), end = k->rows ? k->to : keep_end(t->keep);
        if (k->active && end > first && k->at < end)
            buf_printf(b, "  %s %.0f %%", k->doing,
                       100 * (double)(k->at > first ? k->at - first : 0) / (double)(end - first));
    }
}

/* The name of the file, of which the end remains if it is too long. */
static void put_name(const struct tui *t, struct buf *b)
{
    const char *name = strrchr(t->o.files[0], '/') ? strrchr(t->o.files[0], '/') + 1 : t->o.files[0];
    size_t n = strlen(name), room = t->columns * 2 / 5;

    if (n > room)
        buf_printf(b, " ...%s", name + n - room + 3);
    else
        buf_printf(b, " %s", name);
    if (t->o.n_files > 1)
        buf_printf(b, " + %s", count_str(t->o.n_files - 1, "file"));
}

static void draw_title(struct tui *t)
{
    const struct findings_totals sums = findings_totals(judge_findings(t->analyses.judge));
    struct buf text = {0};

    put_name(t, &text);
    buf_printf(&text, "  %s", count_str(t->seen, "packet"));
    if (t->failed)
        buf_puts(&text, "  not read to its end");
    if (t->full)
        buf_puts(&text, "  packets could not be kept");
    if (t->ended) {
        size_t n = 0;
        for (size_t i = 0; i < explain_n(t->analyses.explainer); i++)
            n += explain_is_shown(explain_at(t->analyses.explainer, i), 0);
        buf_printf(&text, "  %s", count_str(sums.connections, "connection"));
        buf_printf(&text, "  %u FAIL  %u ?  %s", sums.fail, sums.inconclusive, count_str(n, "incident"));
    }
    put_progress(t, &text);
    if (t->filter && t->columns >= WITH_FILTER)
        buf_printf(&text, "  filter: %s", buf_str(&t->filter_text));
    buf_fill(&text, ' ', t->columns > text.len ? t->columns - text.len : 0);
    put(&t->layout.title, 0, buf_str(&text), LOOK_TITLE);
    buf_free(&text);
}

#define TAB_LEAST 3 /* columns of a tab without a name */
#define TAB_MAX   32

/* The tab of screen `i`, which begins at column `x`; its length. It has its name if there is room for those behind it,
 * and for the name of the present one. */
static unsigned tab_put(const struct tui *t, unsigned i, unsigned x, char text[TAB_MAX])
{
    bool here = i == t->screen;
    unsigned n = (unsigned)snprintf(text, TAB_MAX, here ? "[%u %s]" : " %u %s ", i + 1, screens[i].name);
    unsigned behind = here ? 0 : TAB_LEAST * (SCREENS - 1 - i);

    if (i < t->screen)
        behind += (unsigned)strlen(screens[t->screen].name) + 1;
    if (x + n + behind > t->columns)
        n = (unsigned)snprintf(text, TAB_MAX, here ? "[%u]" : " %u ", i + 1);
    return n;
}

enum screen_id tab_at(const struct tui *t, unsigned column)
{
    unsigned x = 1, i = 0;
    char text[TAB_MAX];

    for (; i < SCREENS; i++) {
        unsigned n = tab_put(t, i, x, text);
        if (column >= x && column < x + n)
            break;
        x += n;
    }
    return (enum screen_id)i;
}

static void draw_tabs(struct tui *t)
{
    unsigned x = 1;
    char text[TAB_MAX];

    for (unsigned i = 0; i < SCREENS; i++) {
        unsigned n = tab_put(t, i, x, text);
        put(&t->layout.tabs, x, text, i == t->screen ? LOOK_KEY : LOOK_NORMAL);
        x += n;
    }
    t->row.len = 0;
    if (screens[t->screen].place & IN_PACKETS && x + SUMMARY_LEAST < t->columns)
        about_conn_put(t, &t->row);
    if (t->row.len)
        put(&t->layout.tabs, x + 2, buf_str(&t->row), LOOK_NOTE);
}

static void draw_line(struct tui *t, const struct lines *l, uint64_t row, const struct area *a)
{
    const struct line *line = &l->v[row];
    enum look role = ladder_color(t, row, (enum look)line->role);

    if (line->indent < a->columns)
        term_put(a->y, a->x + line->indent, a->columns - line->indent, l->text.p + line->at, line->len,
                 t->views[t->screen].left, role);
}

static void draw_list(struct tui *t)
{
    struct view *v = &t->views[t->screen];
    const struct area *list = &t->layout.list;
    uint64_t n = row_count(t);

    v->top = layout_scroll(v->top, v->at, n, list->rows);
    for (unsigned y = 0; y < list->rows && v->top + y < n; y++) {
        const struct area a = {list->y + y, list->x, 1, list->columns};
        if (screens[t->screen].draw)
            screens[t->screen].draw(t, v->top + y, &a);
        else
            draw_line(t, &v->lines, v->top + y, &a);
        if (v->top + y == v->at)
            term_mark(a.y, a.x, a.columns, t->pane == PANE_LIST ? LOOK_SELECTED : LOOK_FIELD);
    }
}

static void draw_prompt(struct tui *t)
{
    static const char *const names[] = {
        [PROMPT_NONE] = "",     [PROMPT_FILTER] = "filter: ", [PROMPT_SEARCH] = "/",
        [PROMPT_COMMAND] = ":", [PROMPT_SAVE] = "save as: ",  [PROMPT_SAVE_LINES] = "save these rows as: ",
        [PROMPT_OVERWRITE] = ""};
    const struct area *a = &t->layout.status;
    const char *name = names[t->prompt], *text = buf_str(&t->input);
    unsigned x = (unsigned)strlen(name), room = a->columns - x - 1;
    unsigned skip = t->input.len > room ? (unsigned)t->input.len - room : 0;
    struct filter_error e;
    struct filter *f = t->prompt == PROMPT_FILTER ? filter_compile(text, &e) : NULL;

    if (t->prompt == PROMPT_OVERWRITE) {
        t->row.len = 0;
        buf_printf(&t->row, "%s is there: overwrite it? y: yes, any other key: no", buf_str(&t->save_as));
        put(a, 0, buf_str(&t->row), LOOK_KEY);
        return;
    }
    put(a, 0, name, LOOK_KEY);
    x += term_put(a->y, x, room, text, t->input.len, skip,
                  t->prompt != PROMPT_FILTER ? LOOK_NORMAL
                  : f                        ? LOOK_GOOD
                                             : LOOK_FAIL);
    filter_free(f);
    term_cursor(a->y, x);
}

static void draw_status(struct tui *t)
{
    struct buf text = {0};

    if (t->prompt) {
        draw_prompt(t);
        return;
    }
    if (t->status.len) {
        put(&t->layout.status, 1, buf_str(&t->status), t->status_role);
    } else if (t->pane == PANE_TREE || t->pane == PANE_BYTES) {
        if (detail_filter(t, &text))
            buf_puts(&text, "   (y copies it, f makes it the filter)");
        put(&t->layout.status, 1, buf_str(&text), LOOK_KEY);
    } else if (detail_comment(t, &text)) {
        put(&t->layout.status, 1, buf_str(&text), LOOK_CM);
    } else if (t->filter && t->screen == SCREEN_PACKETS) {
        buf_printf(&text, "filter: %s", buf_str(&t->filter_text));
        put(&t->layout.status, 1, buf_str(&text), LOOK_NOTE);
    }
    buf_free(&text);
}

static void draw_hint(struct tui *t)
{
    struct buf text = {0};

    if (t->prompt && t->prompt != PROMPT_OVERWRITE)
        prompt_hints(t, &text, t->columns - 2);
    else if (!t->prompt)
        keys_hints(t->keys, &text, screens[t->screen].place, t->columns - 2);
    put(&t->layout.hint, 1, buf_str(&text), LOOK_NOTE);
    buf_free(&text);
}

static void draw_help(struct tui *t)
{
    const struct area *a = &t->layout.list;
    unsigned rows = t->lines - 3, n = 0;
    struct buf text = {0};

    if (t->ruled.rule || t->ruled.cause)
        rule_put(t, &text);
    else
        keys_help(t->keys, &text, screens[t->screen].place, t->columns - 1);
    for (const char *s = buf_str(&text); *s; s += strcspn(s, "\n") + 1)
        n++;
    t->help_top = (unsigned)layout_scroll(t->help_top, t->help_top, n, rows);
    n = 0;
    for (const char *s = buf_str(&text); *s; s += strcspn(s, "\n") + 1, n++)
        if (n >= t->help_top && n < t->help_top + rows)
            term_put(a->y + n - t->help_top, 0, a->columns, s, strcspn(s, "\n"), 0, LOOK_NORMAL);
    put(&t->layout.hint, 1, "Down and Up scroll, any other key goes back", LOOK_KEY);
    buf_free(&text);
}

static void draw_too_small(const struct tui *t)
{
    char text[64];

    snprintf(text, sizeof text, "%ux%u is too small: %ux%u needed", t->columns, t->lines, SCREEN_COLUMNS_MIN,
             SCREEN_ROWS_MIN);
    put(&t->layout.title, 0, text, LOOK_NORMAL);
}

void draw(struct tui *t)
{
    t->columns = min_u32(term_columns(), SCREEN_COLUMNS_MAX);
    t->lines = min_u32(term_rows(), SCREEN_ROWS_MAX);
    t->printer.digits = t->columns < DIGITS_COLUMNS ? 6 : 9;
    lay_out(t);
    term_clear();
    if (t->layout.too_small) {
        draw_too_small(t);
        term_show(t->repaint);
        return;
    }
    prepare(t);
    draw_title(t);
    draw_tabs(t);
    if (t->help) {
        draw_help(t);
    } else {
        draw_list(t);
        graph_draw(t, &t->layout.graph);
        side_draw(t);
        detail_show(t, selected(t));
        detail_draw(t);
        draw_status(t);
        draw_hint(t);
    }
    term_show(t->repaint);
    t->repaint = false;
}
