/* layer 3b (export): the data of figures: a CSV file for each, and a script with which gnuplot draws it. */
#include "src/export/figures.h"

#include "beside.h"
#include "dissect/link/macc.h"
#include "dissect/pkt.h"
#include "program.h"
#include "src/measure/hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FLUSH 65536 /* bytes of rows that are kept before they are written */

enum figure {
#define FIGURE(id, name, title, columns, drawing) FIGURE_##id,
#include "src/export/figures.def"
#undef FIGURE
    FIGURE_COUNT
};

static const struct {
    const char *name, *title, *columns, *drawing;
} figure_table[FIGURE_COUNT] = {
#define FIGURE(id, name, title, columns, drawing) {name, title, columns, drawing},
#include "src/export/figures.def"
#undef FIGURE
};

/* A file that is written beside its name. */
struct part {
    char *path, *unfinished;
    int fd; /* -1: it is closed */
    struct buf rows;
    uint64_t n; /* rows behind the head */
};

/* The PSNs that a flow carries. */
struct psn_lines {
    struct psn_line requests, responses; /* responses: while it is not known which flow has their requests */
};

struct figures {
    struct part of[FIGURE_COUNT], script[FIGURE_COUNT];
    ns_t interval, first;
    bool have_first;        /* first: time of the first frame that has a time stamp */
    unsigned completed;     /* operations of work requests that were completed: bits by enum wqe_op */
    int error;              /* errno of the first error */
    struct psn_lines *psns; /* by flow */
    size_t n_psns;
    int64_t psn;   /* of the packet of the last event, counted on beyond 2^24 */
    bool have_psn; /* it has one */
};

/* --- Files ------------------------------------------------------------------------------------ */

static void failed(struct figures *x)
{
    if (!x->error)
        x->error = errno ? errno : EIO;
}

static bool part_open(struct part *p, const char *dir, const char *name, const char *suffix)
{
    p->fd = -1;
    if (asprintf(&p->path, "%s/%s.%s", dir, name, suffix) < 0)
        p->path = NULL;
    return p->path && (p->unfinished = beside_new(p->path, &p->fd));
}

static void part_flush(struct figures *x, struct part *p)
{
    errno = 0;
    if (!x->error && (p->rows.err || !cli_flush(&p->rows, p->fd)))
        failed(x);
    p->rows.len = 0;
}

static void part_free(struct part *p)
{
    if (p->unfinished && p->fd >= 0)
        close(p->fd);
    beside_drop(p->unfinished);
    buf_free(&p->rows);
    free(p->path);
}

static void part_done(struct figures *x, struct part *p)
{
    char *name = p->unfinished;

    part_flush(x, p);
    if (close(p->fd) < 0)
        failed(x);
    p->fd = -1;
    if (x->error)
        return;
    p->unfinished = NULL;
    if (!beside_done(name, p->path))
        failed(x);
}

/* --- What is in them before the first row ----------------------------------------------------- */

static void put_script(struct buf *b, unsigned i, bool have_rows, unsigned operations)
{
    buf_printf(b,
               "# Draws %s.csv as %s.png: gnuplot %s.gp; of one connection: gnuplot -e connection=1 %s.gp\n"
               "reset\n"
               "set terminal pngcairo size 1200,600 noenhanced\n"
               "set output \"%s.png\"\n"
               "set datafile separator comma\n"
               "set datafile columnheaders\n"
               "set title \"%s\"\n"
               "set xlabel \"time since the first frame\"\n"
               "set format x \"%%.1s %%cs\"\n"
               "set xrange [0:*]\n"
               "set rmargin 6\n" /* half of the last label */
               "set yrange [0:*]\n"
               "CSV = \"%s.csv\"\n"
               "s(c) = column(c) * 1e-9 # ns to s\n"
               "s_log(c) = column(c) > 0 ? s(c) : column(c) == 0 ? 1e-9 : NaN # a logarithmic axis has no 0\n"
               "is(c, value) = strcol(c) eq value ? 1 : NaN\n"
               "within(c, from, to) = column(c) >= from && column(c) <= to ? 1 : NaN\n"
               "here(c) = !exists(\"connection\") || column(c) == connection ? 1 : NaN\n"
               "at(c) = s(c) * here(\"connection\")\n",
               figure_table[i].name, figure_table[i].name, figure_table[i].name, figure_table[i].name,
               figure_table[i].name, figure_table[i].title, figure_table[i].name);
    if (!have_rows) {
        buf_puts(b, "set label \"the capture has no such data\" at graph 0.5, 0.5 center\n"
                    "set yrange [0:1]\nplot 0 lc bgnd notitle\n");
        return;
    }
    if (i == FIGURE_LATENCY) {
        buf_puts(b, "OPERATIONS = \"");
        for (unsigned op = 0; op < WQE_OPS; op++)
            if (operations >> op & 1)
                buf_printf(b, " %s", wqe_op_str((enum wqe_op)op));
        buf_puts(b, "\"\n");
    }
    buf_puts(b, figure_table[i].drawing);
}

/* Whether it is a column of requests.csv: numbers name the tap as well. */
static bool is_column(const struct cell *c)
{
    return strcmp(c->name, "tap") != 0;
}

static void add_name(void *user, const struct cell *c)
{
    if (is_column(c))
        buf_printf(user, ",%s", c->name);
}

static void put_head(struct buf *b, unsigned i)
{
    buf_puts(b, figure_table[i].columns);
    if (i == FIGURE_REQUESTS) {
        buf_puts(b, "since_ns");
        wqe_columns(add_name, b);
    }
    buf_char(b, '\n');
}

struct figures *figures_new(const char *dir, ns_t interval)
{
    struct figures *x = calloc(1, sizeof *x);
    bool made = x && (mkdir(dir, 0777) == 0 || errno == EEXIST);

    if (x)
        x->interval = interval;
    for (unsigned i = 0; made && i < FIGURE_COUNT; i++) {
        made = part_open(&x->of[i], dir, figure_table[i].name, "csv") &&
               part_open(&x->script[i], dir, figure_table[i].name, "gp");
        put_head(&x->of[i].rows, i);
    }
    if (!made) {
        int error = errno;
        figures_free(x);
        errno = error;
        return NULL;
    }
    return x;
}

void figures_free(struct figures *x)
{
    if (!x)
        return;
    for (unsigned i = 0; i < FIGURE_COUNT; i++) {
        part_free(&x->of[i]);
        part_free(&x->script[i]);
    }
    free(x->psns);
    free(x);
}

/* --- Rows ------------------------------------------------------------------------------------- */

/* A row: begun, values appended to what is returned, each after a comma, and ended. `timed`: `at` is known. */
static struct buf *row_begin(struct figures *x, enum figure f, bool timed, ns_t at)
{
    struct buf *b = &x->of[f].rows;

    if (timed)
        buf_sdec(b, at - x->first);
    return b;
}

static void row_end(struct figures *x, enum figure f)
{
    struct part *p = &x->of[f];

    p->n++;
    buf_char(&p->rows, '\n');
    if (p->rows.len >= FLUSH)
        part_flush(x, p);
}

static void put_number(struct buf *b, uint64_t v)
{
    buf_char(b, ',');
    buf_dec(b, v);
}

static void put_word(struct buf *b, const char *word)
{
    buf_char(b, ',');
    buf_csv(b, word ? word : "");
}

static void put_addr(struct buf *b, const struct conn_addr *a)
{
    buf_char(b, ',');
    conn_addr_put(b, a);
}

/* A row whose first columns tell when it was, and at which tap. */
static struct buf *row_at(struct figures *x, enum figure f, bool timed, ns_t at, uint32_t tap)
{
    struct buf *b = row_begin(x, f, timed, at);

    buf_char(b, ',');
    if (timed)
        buf_dec(b, (uint64_t)at);
    put_number(b, tap >> 16);
    put_number(b, tap & 0xffff);
    return b;
}

static struct buf *row_of_frame(struct figures *x, enum figure f, const struct frame *frame, uint32_t tap)
{
    return row_at(x, f, frame->has_ts, frame->ts, tap);
}

static void put_ends(struct buf *b, const struct conn_addr *src, const struct conn_addr *dst, uint32_t dqpn)
{
    put_addr(b, src);
    put_addr(b, dst);
    put_number(b, dqpn);
}

void figures_frame(struct figures *x, const struct pkt *p)
{
    struct pause_frame f;

    if (!x->have_first && p->frame->has_ts) {
        x->first = p->frame->ts;
        x->have_first = true;
    }
    if (!pause_frame_of(&f, p) || !f.whole)
        return;
    for (unsigned i = 0; i < PAUSE_CLASSES; i++) {
        struct buf *b;
        if (!(f.classes >> i & 1) || (f.opcode == MACC_PAUSE && i))
            continue;
        b = row_of_frame(x, FIGURE_PAUSES, p->frame, conn_tap_of(p->frame));
        buf_char(b, ',');
        buf_mac(b, p->data + 6);
        buf_char(b, ',');
        if (f.opcode != MACC_PAUSE)
            buf_dec(b, i);
        put_number(b, f.quanta[i]);
        put_number(b, p->frame->number);
        row_end(x, FIGURE_PAUSES);
    }
}

/* The lines of flow `flow`; NULL without memory. */
static struct psn_lines *lines_of(struct figures *x, uint32_t flow)
{
    if (flow >= x->n_psns) {
        size_t n = (size_t)flow * 2 + 16;
        struct psn_lines *more = realloc(x->psns, n * sizeof *more);
        if (!more) {
            failed(x);
            return NULL;
        }
        memset(more + x->n_psns, 0, (n - x->n_psns) * sizeof *more);
        x->psns = more;
        x->n_psns = n;
    }
    return &x->psns[flow];
}

/* A response counts with the requests that it answers, and does not carry on their line. */
static int64_t response_psn(struct figures *x, const struct event *e, struct psn_lines *own)
{
    struct psn_lines *l = e->flow == FLOW_NONE ? NULL : lines_of(x, e->flow);

    return l && l->requests.begun ? psn_line_at(&l->requests, e->p->bth.psn)
                                  : psn_line_go_on(&own->responses, e->p->bth.psn);
}

void figures_event(struct figures *x, const struct event *e)
{
    bool counts = e->own != FLOW_NONE && (e->kind == EVENT_REQUEST || e->kind == EVENT_RESPONSE);
    struct psn_lines *own = counts ? lines_of(x, e->own) : NULL;

    x->have_psn = own != NULL;
    if (!own)
        return;
    if (e->kind == EVENT_REQUEST && e->as == SEEN_RESTART)
        *own = (struct psn_lines){0};
    x->psn = e->kind == EVENT_REQUEST ? psn_line_go_on(&own->requests, e->p->bth.psn) : response_psn(x, e, own);
}

void figures_over(struct figures *x, uint32_t flow)
{
    if (flow < x->n_psns)
        x->psns[flow] = (struct psn_lines){0};
}

void figures_packet(struct figures *x, const struct export_packet *e, const struct flow *f)
{
    const struct pkt *p = e->p;
    struct buf *b = row_of_frame(x, FIGURE_PSN, p->frame, f->tap);

    put_number(b, f->conn);
    put_ends(b, &f->src, &f->dst, f->dqpn);
    put_number(b, p->frame->number);
    put_word(b, export_kind_str(e));
    put_word(b, export_seen_str(e));
    put_number(b, p->bth.psn);
    buf_char(b, ',');
    if (x->have_psn)
        buf_sdec(b, x->psn);
    buf_char(b, ',');
    if (p->have & H_AETH)
        buf_dec(b, p->aeth.syndrome);
    row_end(x, FIGURE_PSN);
}

void figures_outstanding(struct figures *x, const struct pkt *p, const struct flow *f, struct req_dir *h)
{
    struct read_req *oldest;
    struct buf *b = row_of_frame(x, FIGURE_OUTSTANDING, p->frame, f->tap);

    put_number(b, f->conn);
    put_ends(b, &f->src, &f->dst, f->dqpn);
    put_number(b, p->frame->number);
    put_number(b, req_dir_in_flight(h));
    put_number(b, h->reads_at ? req_dir_outstanding(h, &oldest) : 0);
    row_end(x, FIGURE_OUTSTANDING);
}

static void put_cell(void *user, const struct cell *c)
{
    if (!is_column(c))
        return;
    buf_char(user, ',');
    cell_csv(user, c);
}

static void put_latency(void *user, const struct cell *c)
{
    if (strcmp(c->name, "latency_ns") == 0)
        put_cell(user, c);
}

void figures_request(struct figures *x, const struct wqe_row *q)
{
    const struct wqe *w = q->w;
    struct buf *b = row_begin(x, FIGURE_REQUESTS, true, w->start);

    wqe_cells(q, put_cell, b);
    row_end(x, FIGURE_REQUESTS);
    if (!w->done_frame)
        return;
    x->completed |= 1u << w->op;
    b = row_at(x, FIGURE_LATENCY, true, w->start, row_tap(q->row));
    put_number(b, q->row->conn);
    put_number(b, w->id);
    put_word(b, wqe_op_str((enum wqe_op)w->op));
    put_number(b, w->bytes);
    wqe_cells(q, put_latency, b);
    row_end(x, FIGURE_LATENCY);
}

static struct buf *rate_begin(struct figures *x, enum figure f, const struct meter_row *r, ns_t start, uint64_t packets)
{
    struct buf *b = row_at(x, f, true, start, row_tap(r));

    put_number(b, r->conn);
    put_ends(b, &r->src, &r->dst, (uint32_t)r->dqpn);
    put_number(b, packets);
    return b;
}

void figures_rate(struct figures *x, const struct meter_row *r, ns_t start, const struct meter_counts *added)
{
    struct buf *b = rate_begin(x, FIGURE_GOODPUT, r, start, added->packets);

    put_number(b, added->bytes);
    put_number(b, added->payload);
    put_number(b, rate_bps(added->payload, x->interval));
    row_end(x, FIGURE_GOODPUT);
    b = rate_begin(x, FIGURE_CONGESTION, r, start, added->packets);
    put_number(b, added->again);
    put_number(b, added->ce);
    put_number(b, added->cnps);
    row_end(x, FIGURE_CONGESTION);
}

/* --- At the end ------------------------------------------------------------------------------- */

void figures_incidents(struct figures *x, struct explainer *e, uint32_t conn)
{
    for (size_t i = 0; i < explain_n(e); i++) {
        const struct incident *s = explain_at(e, i);
        struct incident_row row;
        struct buf *b;
        explain_row(s, &row);
        if (!explain_is_shown(s, conn))
            continue;
        b = row_at(x, FIGURE_STALLS, true, row.start, s->tap);
        put_number(b, s->conn);
        put_ends(b, &s->src, &s->dst, s->qpn);
        put_number(b, s->number);
        put_word(b, cause_table[s->cause].name);
        put_number(b, s->n_frames ? s->frames[0] : 0);
        put_number(b, (uint64_t)(row.end > row.start ? row.end - row.start : 0));
        put_number(b, (uint64_t)row.bill);
        row_end(x, FIGURE_STALLS);
    }
}

void figures_hosts(struct figures *x, struct meter_row *const *rows, size_t n)
{
    struct host_pairs *pairs = calloc(1, sizeof *pairs);

    if (!pairs) {
        failed(x);
        return;
    }
    host_pairs_add(pairs, rows, n);
    for (unsigned i = 0; i < pairs->n; i++) {
        const struct host_pair *p = &pairs->of[i];
        struct buf *b = &x->of[FIGURE_HOSTS].rows;
        buf_dec(b, p->row->file);
        put_number(b, p->row->iface);
        put_addr(b, &p->row->src);
        put_addr(b, &p->row->dst);
        put_number(b, p->packets);
        put_number(b, p->bytes);
        put_number(b, p->again);
        put_number(b, p->ce);
        put_number(b, p->lost);
        put_number(b, p->p99);
        row_end(x, FIGURE_HOSTS);
    }
    free(pairs);
}

/* Which column of a head has the number of the connection, from 0; -1: none. */
static int connection_column(const char *head)
{
    int n = 0;

    for (const char *at = head; *at; at++, n++) {
        size_t len = strcspn(at, ",\n");
        if (len == strlen("connection") && memcmp(at, "connection", len) == 0)
            return n;
        at += len;
        if (!*at)
            break;
    }
    return -1;
}

/* Append a line with the number that its connection has in the end. The columns before it need no quotes. */
static void put_renumbered(struct buf *b, const char *line, int column, struct conn_table *conns)
{
    const char *at = line;
    char *end;
    unsigned long n;

    for (int i = 0; i < column && at; i++)
        at = (at = strchr(at, ',')) ? at + 1 : NULL;
    n = at ? strtoul(at, &end, 10) : 0;
    buf_mem(b, line, n ? (size_t)(at - line) : strlen(line));
    if (n) {
        buf_dec(b, conn_number_now(conns, (uint32_t)n));
        buf_puts(b, end);
    }
}

/* Write the rows of a file again. */
static void renumber(struct figures *x, struct part *p, struct conn_table *conns)
{
    struct part old = *p;
    FILE *f;
    char *line = NULL;
    size_t cap = 0;
    int column = -1;

    part_flush(x, p);
    old.rows = (struct buf){0};
    p->unfinished = beside_new(p->path, &p->fd);
    if (!p->unfinished || lseek(old.fd, 0, SEEK_SET) < 0 || !(f = fdopen(old.fd, "r"))) {
        failed(x);
        old.path = NULL;
        part_free(&old);
        return;
    }
    for (bool head = true; getline(&line, &cap, f) > 0; head = false) {
        if (head)
            column = connection_column(line);
        put_renumbered(&p->rows, line, head ? -1 : column, conns);
        if (p->rows.len >= FLUSH)
            part_flush(x, p);
    }
    if (ferror(f))
        failed(x);
    fclose(f);
    free(line);
    beside_drop(old.unfinished);
}

/* Whether rows may have another number than a connection has in the end. */
static bool is_renumbered(struct conn_table *conns)
{
    for (uint32_t n = 1; n <= conn_counts(conns).conns; n++)
        if (conn_number_now(conns, n) != n)
            return true;
    return false;
}

bool figures_end(struct figures *x, struct conn_table *conns)
{
    bool again = is_renumbered(conns);

    for (unsigned i = 0; i < FIGURE_COUNT && !x->error; i++) {
        if (again && i != FIGURE_HOSTS && i != FIGURE_PAUSES)
            renumber(x, &x->of[i], conns);
        if (!x->error)
            part_flush(x, &x->of[i]);
    }
    for (unsigned i = 0; i < FIGURE_COUNT && !x->error; i++) {
        put_script(&x->script[i].rows, i, x->of[i].n > 0, x->completed);
        part_done(x, &x->of[i]);
        part_done(x, &x->script[i]);
    }
    errno = x->error;
    return !x->error;
}
