/* layer 3b (tui): what a screen shows, as CSV and JSON: that of flows, ops, check, explain and decode. */
#include "src/commands/rows.h"
#include "src/tui/tui_impl.h"

#include <stdlib.h>
#include <strings.h>

enum rows_format save_format_of(const char *path)
{
    const char *end = strrchr(path, '.');

    return !end                            ? ROWS_TEXT
           : strcasecmp(end, ".csv") == 0  ? ROWS_CSV
           : strcasecmp(end, ".json") == 0 ? ROWS_JSON
                                           : ROWS_TEXT;
}

/* --- Packets: of the list, and of the ladder ---------------------------------------------------- */

/* What CSV has of a packet. */
static const char *const packet_columns[] = {"frame.number",
                                             "frame.time_epoch",
                                             "frame.len",
                                             "rdma.conn",
                                             "ip.src",
                                             "ip.dst",
                                             "ipv6.src",
                                             "ipv6.dst",
                                             "infiniband.bth.opcode",
                                             "infiniband.bth.destqp",
                                             "infiniband.bth.psn",
                                             "_ws.col.Info"};

static void packets_begin(struct tui *t, struct buf *b)
{
    struct print_opts *o = &t->save_printer.opts;
    unsigned n = ARRAY_LEN(packet_columns);

    save_rows_free(t);
    t->save_printer.digits = 9;
    *o = (struct print_opts){.format = t->save_format == ROWS_JSON ? PRINT_JSON : PRINT_FIELDS,
                             .separator = ',',
                             .aggregator = ' ',
                             .occurrence = 'a',
                             .quote = '"',
                             .header = true,
                             .columns = calloc(n, sizeof *o->columns)};
    for (unsigned i = 0; o->columns && i < n; i++) {
        struct print_column *c = &o->columns[i];
        c->name = packet_columns[i];
        c->n_refs = field_find(c->name, strlen(c->name), c->refs, PRINT_REFS);
        o->n_columns = i + 1;
    }
    print_begin(&t->save_printer, b);
}

static void packet_put(struct tui *t, uint64_t i, struct buf *b)
{
    if (i == UINT64_MAX || !load(t, i))
        return;
    t->pkt.since = t->pkt.frame->ts - t->first;
    t->saved++;
    print_packet(&t->save_printer, b, &t->pkt);
    t->save_printer.n_shown++;
}

static void packets_put(struct tui *t, uint64_t row, struct buf *b)
{
    packet_put(t, packets_at(t, row), b);
}

/* The packets of a line of the ladder: of a folded run all of them; not of a line that goes on with one. */
static void ladder_put_row(struct tui *t, uint64_t row, struct buf *b)
{
    const struct lines *l = &t->views[SCREEN_LADDER].lines;
    const struct spot *p = lines_place(l, row);
    uint64_t first, last;

    if (!p || !p->frame || (row && l->v[row].item == l->v[row - 1].item))
        return;
    first = keep_find(t->keep, p->file, p->frame);
    last = p->last ? keep_find(t->keep, p->file, p->last) : first;
    for (uint64_t i = first; i <= last && i < keep_end(t->keep); i++)
        if (keep_get(t->keep, i, &t->stored) && t->stored.frame.file == p->file &&
            (i == first || i == last || t->stored.note.conn == p->conn))
            packet_put(t, i, b);
}

static void packets_end(struct tui *t, struct buf *b)
{
    print_end(&t->save_printer, b);
    save_rows_free(t);
}

void save_rows_free(struct tui *t)
{
    free(t->save_printer.opts.columns);
    t->save_printer = (struct printer){.digits = 9};
}

/* --- Requests ----------------------------------------------------------------------------------- */

/* The next field of a line of CSV, without quotes, to `to`; *quoted: it had some. */
static const char *csv_field(const char *s, const char *end, struct buf *to, bool *quoted)
{
    *quoted = s < end && *s == '"';
    to->len = 0;
    for (s += *quoted; s < end; s++) {
        if (*quoted && *s == '"' && (s + 1 == end || s[1] != '"'))
            break;
        if (!*quoted && (*s == ',' || *s == '\n'))
            break;
        s += *quoted && *s == '"';
        buf_char(to, *s);
    }
    s += *quoted;
    return s < end ? s + 1 : end; /* behind the comma */
}

/* A line of CSV about a command on its way to an object of JSON. */
struct csv_line {
    const char *at, *end;
    struct buf field;
    struct cell_row to;
};

static void csv_cell(void *user, const struct cell *c)
{
    struct csv_line *l = user;
    bool quoted;

    l->at = csv_field(l->at, l->end, &l->field, &quoted);
    buf_printf(l->to.b, "%s\"%s\":", l->to.n++ ? "," : "{", c->name);
    if (!l->field.len && !quoted)
        buf_puts(l->to.b, "null");
    else if (c->kind == CELL_TEXT)
        buf_json(l->to.b, buf_str(&l->field), l->field.len);
    else
        buf_mem(l->to.b, l->field.p, l->field.len);
}

static void requests_begin(struct tui *t, struct buf *b)
{
    if (t->save_format == ROWS_JSON)
        buf_char(b, '[');
    else if (t->commands)
        command_print_head(b, ROWS_CSV, NULL);
    else
        wqe_print_head(b, ROWS_CSV, NULL);
}

static void command_as_json(struct buf *b, const struct buf *csv)
{
    struct csv_line l = {.at = csv->p, .end = csv->p + csv->len, .to = {.b = b}};

    command_columns(csv_cell, &l);
    buf_char(b, '}');
    buf_free(&l.field);
}

static void requests_put(struct tui *t, uint64_t row, struct buf *b)
{
    struct buf text = {0};

    if (requests_row(t, row, t->save_format, &text)) {
        if (t->save_format == ROWS_JSON)
            buf_puts(b, t->saved ? ",\n" : "\n");
        t->saved++;
        if (t->save_format == ROWS_JSON && t->commands)
            command_as_json(b, &text);
        else
            buf_mem(b, text.p, text.len);
    }
    buf_free(&text);
}

static void requests_end(struct tui *t, struct buf *b)
{
    if (t->save_format == ROWS_JSON)
        buf_puts(b, "\n]\n");
}

/* --- All at once -------------------------------------------------------------------------------- */

static void conns_put(struct tui *t, struct buf *b)
{
    const struct rows_opts o = {.format = t->save_format};
    const struct meter_totals sums = meter_totals(t->analyses.meter);
    size_t n = 0;
    struct meter_row **rows = conns_rows(t, &n);

    if (rows)
        rows_print(b, &o, rows, n, &sums);
    t->saved = n;
    free(rows);
}

static bool counts_finding(void *user, const struct finding *f)
{
    struct tui *t = user;

    t->saved += verdict_is_listed(t, f);
    return verdict_is_listed(t, f);
}

/* Whose undecided verdicts are only counted on the screen: in a file they are listed. */
static void verdicts_put(struct tui *t, struct buf *b)
{
    const struct findings *r = judge_findings(t->analyses.judge);
    struct shown_findings a;
    struct findings_opts o = verdicts_opts(t, &a);
    struct cell_row head = {.b = b};

    o.user = t;
    o.wanted = counts_finding;
    o.put_time = NULL;
    o.undecided = NULL;
    if (t->save_format == ROWS_JSON) {
        findings_json(r, &o, b);
        for (size_t i = t->saved = 0; i < findings_n(r); i++)
            counts_finding(t, findings_at(r, i));
        return;
    }
    finding_columns(cell_row_name, &head);
    buf_char(b, '\n');
    for (size_t i = 0; i < findings_n(r); i++) {
        struct cell_row row = {.b = b};
        if (!counts_finding(t, findings_at(r, i)))
            continue;
        finding_cells(r, i, t->o.files, cell_row_csv, &row);
        buf_char(b, '\n');
    }
}

static void incidents_put(struct tui *t, struct buf *b)
{
    struct explainer *x = t->analyses.explainer;
    const struct explain_opts o = {.all = true, .files = t->o.files, .n_files = t->o.n_files, .once = true};
    struct cell_row head = {.b = b};

    for (size_t i = 0; i < explain_n(x); i++)
        t->saved += explain_is_shown(explain_at(x, i), 0);
    if (t->save_format == ROWS_JSON) {
        explain_json(x, &o, b);
        return;
    }
    incident_columns(cell_row_name, &head);
    buf_char(b, '\n');
    for (size_t i = 0; i < explain_n(x); i++) {
        struct cell_row row = {.b = b};
        if (!explain_is_shown(explain_at(x, i), 0))
            continue;
        explain_cells(x, explain_at(x, i), t->o.files, cell_row_csv, &row);
        buf_char(b, '\n');
    }
}

static void all_rates_put(struct tui *t, struct buf *b)
{
    t->saved = rates_put(t, t->save_format, 0, b);
}

/* --- Screens ------------------------------------------------------------------------------------ */

/* Rows are put one by one, or all at once at the end. */
static const struct {
    void (*begin)(struct tui *t, struct buf *b);
    void (*put)(struct tui *t, uint64_t row, struct buf *b);
    void (*end)(struct tui *t, struct buf *b);
} rows_of[SCREENS] = {
    [SCREEN_CONNS] = {.end = conns_put},
    [SCREEN_LADDER] = {packets_begin, ladder_put_row, packets_end},
    [SCREEN_PACKETS] = {packets_begin, packets_put, packets_end},
    [SCREEN_REQUESTS] = {requests_begin, requests_put, requests_end},
    [SCREEN_VERDICTS] = {.end = verdicts_put},
    [SCREEN_INCIDENTS] = {.end = incidents_put},
    [SCREEN_RATES] = {.end = all_rates_put},
};

void save_rows_begin(struct tui *t, struct buf *b)
{
    if (t->save_format != ROWS_TEXT && rows_of[t->screen].begin)
        rows_of[t->screen].begin(t, b);
}

void save_rows_put(struct tui *t, uint64_t row, struct buf *b)
{
    if (rows_of[t->screen].put)
        rows_of[t->screen].put(t, row, b);
}

void save_rows_end(struct tui *t, struct buf *b)
{
    if (t->save_format != ROWS_TEXT)
        rows_of[t->screen].end(t, b);
}
