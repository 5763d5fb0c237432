/* layer 3b (tui): what stands beside ladder and packets on a large terminal: connections, rates, incidents, and
 * verdicts of the connection that is selected. */
#include "src/tui/tui_impl.h"

#include <stdlib.h>

#define MAKE_EVERY    (500 * NS_PER_MS) /* while packets come: between two versions */
#define CONNS_MOST    1000              /* lines */
#define SHOWN_MOST    200               /* incidents, or verdicts */
#define FRAMES_NAMED  4                 /* of an incident */
#define SENTENCE_MOST 400               /* bytes of what is said of an incident */

/* --- What is wrong with a connection ------------------------------------------------------------ */

/* Letters, the worst first: a failed verdict, an incident, a warning, an undecided verdict. */
static const char worst[] = "FEW?.";

static void worsen(char *letters, uint32_t n, uint32_t conn, char letter)
{
    if (conn < n && strchr(worst, letter) < strchr(worst, letters[conn]))
        letters[conn] = letter;
}

char *conn_letters(struct tui *t, uint32_t *n)
{
    const struct findings *r = judge_findings(t->analyses.judge);
    const struct explainer *x = t->analyses.explainer;
    char *letters;

    *n = conn_counts(observer_conns(t->observer)).conns + 1;
    letters = malloc(*n);
    if (!letters) {
        *n = 0;
        return NULL;
    }
    memset(letters, '.', *n);
    for (size_t i = 0; i < findings_n(r); i++) {
        const struct finding *f = findings_at(r, i);
        if (f->severity != SEV_I)
            worsen(letters, *n, f->conn, f->result == V_INCONCLUSIVE ? '?' : f->severity == SEV_W ? 'W' : 'F');
    }
    for (size_t i = 0; i < explain_n(x); i++)
        if (explain_is_shown(explain_at(x, i), 0))
            worsen(letters, *n, explain_at(x, i)->conn, 'E');
    return letters;
}

char conn_letter(const char *letters, uint32_t n, uint64_t conn)
{
    return conn && conn < n ? letters[conn] : '.';
}

uint32_t conn_at_cursor(struct tui *t)
{
    struct spot p;

    if (row_about(t, t->views[t->screen].at, &p) && p.conn)
        t->side_conn = p.conn;
    else if (t->screen == SCREEN_LADDER && t->ladder_conn)
        t->side_conn = t->ladder_conn;
    for (size_t i = 0; !t->side_conn && i < t->n_rows; i++)
        t->side_conn = (uint32_t)t->rows[i]->conn;
    t->side_conn = conn_number_now(observer_conns(t->observer), t->side_conn);
    return t->side_conn;
}

/* --- Connections -------------------------------------------------------------------------------- */

#define HOSTS_COLUMN 2
static const struct text_column conn_columns[] = {
    {"letter", "V", 0, true, 1},
    {"connection", "conn", 0, false, 4},
    {"hosts", "hosts", 0, true, 24},
    {"messages", "msgs", 2, false, 5},
    {"goodput_bps", "goodput", 3, false, 11},
    {"retransmitted_packets", "again", 0, false, 5},
    {"packet_seq_err", "NAK", 5, false, 3},
    {"rnr_nak_retry_err", "RNR", 6, false, 3},
    {"local_ack_timeout_err", "t/o", 4, false, 3},
    {"message_latency_p99_ns", "p99", 1, false, 8},
};

/* A line: the row that sent most messages, of all that the connection has. */
struct conn_line {
    const struct meter_row *row;
    char letter;
};

static void put_conn_cell(struct buf *b, const void *of, unsigned column)
{
    const struct conn_line *l = of;

    if (column == 0) {
        buf_char(b, l->letter);
    } else if (column == HOSTS_COLUMN) {
        conn_addr_put(b, &l->row->src);
        buf_puts(b, " > ");
        conn_addr_put(b, &l->row->dst);
    } else {
        row_text_cell(b, l->row, column_find(conn_columns[column].name));
    }
}

/* Columns of the longest pair of hosts. */
static unsigned hosts_columns(const struct meter_row *const *of, uint32_t n)
{
    struct buf text = {0};
    size_t most = 0;

    for (uint32_t i = 0; of && i < n; i++) {
        const struct conn_line line = {.row = of[i]};
        text.len = 0;
        if (of[i])
            put_conn_cell(&text, &line, HOSTS_COLUMN);
        most = text.len > most ? text.len : most;
    }
    buf_free(&text);
    return (unsigned)most;
}

/* Whether a connection is shown by row `r` rather than by `than`: the direction with trouble, else with messages. */
static bool says_more(const struct meter_row *r, const struct meter_row *than)
{
    uint64_t trouble = r->c.again + r->c.seq_naks + r->c.rnr_naks;
    uint64_t other = than ? than->c.again + than->c.seq_naks + than->c.rnr_naks : 0;

    return !than || trouble > other || (trouble == other && r->messages > than->messages);
}

/* The row of each connection, by number, up to `n`; to be released. */
static const struct meter_row **main_rows(struct tui *t, uint32_t n)
{
    const struct meter_row **of = calloc(n, sizeof(struct meter_row *));

    for (size_t i = 0; of && i < t->n_rows; i++) {
        const struct meter_row *r = t->rows[i];
        if (r->conn && r->conn < n && says_more(r, of[r->conn]))
            of[r->conn] = r;
    }
    return of;
}

static void put_conn(struct lines *l, const struct table *table, const struct meter_row *row, char letter)
{
    const struct conn_line line = {row, letter};
    const struct spot p = {
        .frame = row->first_frame, .file = (uint16_t)row->file, .conn = (uint32_t)row->conn, .ts = row->first};
    bool trouble = letter == 'F' || letter == 'E';
    struct buf none = {0};

    lines_item(l, l->text.len, &p, letter == 'F' ? LOOK_FAIL : trouble ? LOOK_UNSURE : LOOK_NORMAL, trouble);
    table_row(table, &l->text, conn_columns, put_conn_cell, &line, &none);
    buf_free(&none);
}

/* In the order of the screen of connections, each once. */
static void conns_side(struct tui *t, struct lines *l, const struct area *a)
{
    struct table table;
    uint32_t n, shown = 0;
    char *letters = conn_letters(t, &n);
    const struct meter_row **of;
    struct meter_row **rows;
    size_t n_rows = 0;

    if (!t->ended)
        conns_so_far(t);
    of = main_rows(t, n);
    rows = conns_rows(t, &n_rows);
    table_of(&table, conn_columns, ARRAY_LEN(conn_columns));
    table.widths[HOSTS_COLUMN] = max_u32(table.widths[HOSTS_COLUMN], hosts_columns(of, n));
    table_fit(&table, a->columns);
    lines_item(l, 0, NULL, LOOK_KEY, false);
    table_head(&table, &l->text);
    for (size_t i = 0; of && rows && i < n_rows && shown < CONNS_MOST; i++) {
        uint64_t conn = rows[i]->conn < n ? rows[i]->conn : 0;
        if (!conn || !of[conn])
            continue;
        put_conn(l, &table, of[conn], conn_letter(letters, n, conn));
        of[conn] = NULL;
        shown++;
    }
    lines_item(l, l->text.len, NULL, LOOK_NOTE, false);
    if (shown == CONNS_MOST)
        buf_puts(&l->text, "Further connections: 1\n");
    free(of);
    free(rows);
    free(letters);
}

/* --- Rates, incidents, verdicts ------------------------------------------------------------------ */

static void rates_side(struct tui *t, struct lines *l, const struct area *a)
{
    graph_make(t, t->side_conn, a->columns, a->rows, l);
}

/* Bytes of the sentences that fit into SENTENCE_MOST; of the first one, if it is longer. */
static size_t whole_sentences(const struct buf *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->len; i++)
        if (b->p[i] == '.' && (i + 1 == b->len || b->p[i + 1] == ' ') && (!n || i < SENTENCE_MOST))
            n = i + 1;
    return n ? n : b->len;
}

static void put_incident(struct lines *l, const struct incident *i)
{
    struct spot p = {.conn = i->conn, .ts = i->start, .cause = (uint8_t)(i->cause + 1)};
    struct buf text = {0};

    if (i->n_frames) {
        p.frame = i->frames[0];
        p.file = i->files[0];
    }
    lines_item(l, l->text.len, &p, i->certainty == CERTAIN ? LOOK_LOST : LOOK_UNSURE, true);
    buf_printf(&l->text, "E%u %s", i->number, cause_table[i->cause].name);
    place_put(&l->text, (enum place)i->place, i->passed, i->missed);
    if (i->conn)
        buf_printf(&l->text, ", conn %u", i->conn);
    for (unsigned k = 0; k < i->n_frames && k < FRAMES_NAMED; k++)
        buf_printf(&l->text, k ? " %u" : ", frames %u", i->frames[k]);
    if (i->bill) {
        buf_puts(&l->text, ", lost ");
        buf_rounded(&l->text, i->bill);
    }
    explain_text_of(i, &text);
    buf_printf(&l->text, "\n   %.*s\n", (int)whole_sentences(&text), text.len ? text.p : "");
    buf_free(&text);
}

static void incidents_side(struct tui *t, struct lines *l, const struct area *a)
{
    struct explainer *x = t->analyses.explainer;
    unsigned shown = 0;

    l->wrap = a->columns;
    for (size_t i = 0; t->ended && i < explain_n(x) && shown < SHOWN_MOST; i++)
        if (explain_is_shown(explain_at(x, i), 0)) {
            put_incident(l, explain_at(x, i));
            shown++;
        }
    lines_item(l, l->text.len, NULL, LOOK_NOTE, false);
    if (!t->ended)
        put_so_far(t, &l->text, "incidents are known");
    else if (!shown)
        buf_puts(&l->text, "No incident.\n");
}

static void put_verdict(struct tui *t, struct lines *l, const struct finding *f)
{
    const struct findings *r = judge_findings(t->analyses.judge);
    struct spot p = {.conn = f->conn, .file = f->file, .rule = f->rule};

    p.ts = f->ts == FINDING_NO_TIME ? 0 : f->ts;
    p.frame = f->n_frames ? f->frames[0] : f->n_causes ? f->causes[0] : 0;
    lines_item(l, l->text.len, &p, verdict_look(f), true);
    buf_printf(&l->text, "%s %s", rule_table[f->rule].id,
               f->result == V_INCONCLUSIVE ? "?"
               : f->severity == SEV_W      ? "warning"
                                           : "FAIL");
    for (unsigned k = 0; k < f->n_frames && k < FRAMES_NAMED; k++)
        buf_printf(&l->text, k ? " %llu" : ", frames %llu", (unsigned long long)f->frames[k]);
    buf_puts(&l->text, ": ");
    findings_headline(r, f, &l->text);
    if (f->times > 1)
        buf_printf(&l->text, " (%llu times)", (unsigned long long)f->times);
    buf_char(&l->text, '\n');
}

static void verdicts_side(struct tui *t, struct lines *l, const struct area *a)
{
    const struct findings *r = judge_findings(t->analyses.judge);
    unsigned shown = 0;

    l->wrap = a->columns;
    for (size_t i = 0; i < findings_n(r) && shown < SHOWN_MOST; i++) {
        const struct finding *f = findings_at(r, i);
        if (f->conn != t->side_conn || f->severity == SEV_I)
            continue;
        put_verdict(t, l, f);
        shown++;
    }
    lines_item(l, l->text.len, NULL, LOOK_NOTE, false);
    if (!t->ended)
        put_so_far(t, &l->text, "verdicts that need the end come");
    else if (!shown && t->side_conn)
        buf_printf(&l->text, "No rule was broken by connection %u, and none is undecided.\n", t->side_conn);
}

/* --- All ---------------------------------------------------------------------------------------- */

static const struct {
    const char *name; /* in the rule above */
    bool of_conn;     /* it is of the connection that is selected */
    void (*make)(struct tui *t, struct lines *l, const struct area *a);
} sides[SIDES] = {
    [SIDE_CONNS] = {"", false, conns_side},
    [SIDE_RATES] = {"rates (7)", true, rates_side},
    [SIDE_INCIDENTS] = {"incidents (6)", false, incidents_side},
    [SIDE_VERDICTS] = {"verdicts of the connection (5)", true, verdicts_side},
};

/* Make its lines, if they are not those of now. */
static void refresh(struct tui *t, enum side s)
{
    struct view *v = &t->sides[s];
    const struct area *a = &t->layout.side[s];
    bool grown = !t->ended && !t->paused && v->seen != t->seen && (t->script || now_ns() >= v->next_make);
    bool other = sides[s].of_conn && v->conn != t->side_conn;

    if (v->made && v->width == a->columns && v->rows == a->rows && !other && !grown)
        return;
    lines_clear(&v->lines);
    v->made = true;
    v->width = a->columns;
    v->rows = a->rows;
    v->seen = t->seen;
    v->conn = t->side_conn;
    sides[s].make(t, &v->lines, a);
    lines_end(&v->lines);
    v->next_make = now_ns() + (uint64_t)MAKE_EVERY;
    if (other)
        v->at = v->top = 0;
    if (v->at >= v->lines.n)
        v->at = v->lines.n ? v->lines.n - 1 : 0;
}

/* The number of the incident that names the selected frame; 0: none. */
static uint32_t incident_here(struct tui *t)
{
    const struct pkt_mark *m;
    struct spot p;
    unsigned n;

    if (!row_about(t, t->views[t->screen].at, &p) || !p.frame)
        return 0;
    m = marks_of(&t->marks, &(struct frame){.file = p.file, .number = p.frame}, &n);
    for (unsigned k = 0; k < n; k++)
        if (m[k].cause)
            return m[k].number;
    return 0;
}

/* The cursor of a pane without the keys goes with the selected line. */
static void go_along(struct tui *t, enum side s)
{
    struct view *v = &t->sides[s];
    uint32_t number = s == SIDE_INCIDENTS ? incident_here(t) : 0;
    const struct incident *i = number ? explain_at(t->analyses.explainer, number - 1) : NULL;

    for (size_t k = 0; k < v->lines.n && (i || s == SIDE_CONNS); k++) {
        const struct spot *p = lines_place(&v->lines, k);
        if (p && (i ? p->frame == i->frames[0] && p->file == i->files[0] : p->conn == t->side_conn)) {
            v->at = k;
            return;
        }
    }
}

static void draw_side(struct tui *t, enum side s)
{
    struct view *v = &t->sides[s];
    const struct area *a = &t->layout.side[s], *rule = &t->layout.side_rule[s];
    bool here = t->pane == PANE_SIDE + s;

    refresh(t, s);
    if (!here)
        go_along(t, s);
    v->top = layout_scroll(v->top, v->at, v->lines.n, a->rows);
    if (rule->rows) {
        term_rule(rule->y, rule->x, rule->columns);
        t->row.len = 0;
        buf_printf(&t->row, " %s ", sides[s].name);
        term_put(rule->y, rule->x + 2, rule->columns - 2, t->row.p, t->row.len, 0, LOOK_KEY);
    }
    for (unsigned y = 0; y < a->rows && v->top + y < v->lines.n; y++) {
        const struct line *l = &v->lines.v[v->top + y];
        if (l->indent < a->columns)
            term_put(a->y + y, a->x + l->indent, a->columns - l->indent, v->lines.text.p + l->at, l->len, 0,
                     (enum look)l->role);
        if (v->top + y == v->at && lines_place(&v->lines, v->at) && (here || s != SIDE_VERDICTS))
            term_mark(a->y + y, a->x, a->columns, here ? LOOK_SELECTED : LOOK_FIELD);
    }
}

void side_draw(struct tui *t)
{
    const struct area *d = &t->layout.divider;

    if (!d->rows)
        return;
    conn_at_cursor(t);
    for (unsigned s = 0; s < SIDES; s++)
        draw_side(t, (enum side)s);
    for (unsigned y = 0; y < d->rows; y++)
        term_put(d->y + y, d->x, 1, t->o.term.ascii ? "|" : "\xe2\x94\x82", t->o.term.ascii ? 1 : 3, 0, LOOK_NOTE);
}

void side_move(struct tui *t, enum side s, int64_t by)
{
    struct view *v = &t->sides[s];
    int64_t to = (int64_t)v->at + by;

    v->at = to < 0 || !v->lines.n ? 0 : (uint64_t)to < v->lines.n ? (uint64_t)to : v->lines.n - 1;
}

void graph_draw(struct tui *t, const struct area *a)
{
    struct lines l = {.n = 0};

    if (!a->rows)
        return;
    conn_at_cursor(t);
    graph_make(t, t->side_conn, a->columns, a->rows, &l);
    lines_end(&l);
    for (unsigned y = 0; y < a->rows && y < l.n; y++)
        term_put(a->y + y, a->x, a->columns, l.text.p + l.v[y].at, l.v[y].len, 0, (enum look)l.v[y].role);
    lines_free(&l);
}
