/* layer 4 (tool): `rdmatrace ops`: the work requests behind the packets. */
#include "src/cli/cli.h"
#include "src/cli/trace.h"
#include "src/trace/context.h"
#include "src/trace/print.h"
#include "src/trace/work_print.h"

#include <stdlib.h>
#include <unistd.h>

#define FLUSH_AT 65536

enum {
    KEY_FOLLOW = 256,
};

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    {'Y', "display-filter", "FILTER", "take only packets that match this display filter (rdmatrace-filter(7))"},
    {KEY_FOLLOW, "follow", "N", "show work request N with all its packets"},
    {'T', "format", "FORMAT", "text (default), json or csv"},
    {'h', "help", NULL, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_ops_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmatrace ops [options] FILE...\n\n"
                "Show the verbs behind the packets: a row for each work request, with its status.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage or input that cannot be read.\n");
}

/* A row that waits for its turn at the end. */
struct late_row {
    uint64_t id;
    size_t off, len; /* in job.late_text */
};

struct job {
    struct trace_input in;
    struct filter *filter;
    const char *filter_text;
    struct meter *meter;
    struct context *context; /* for the filter, and for the lines of --follow */
    struct printer printer;
    struct buf text;
    uint64_t follow, n; /* n: rows written */
    struct late_row *late;
    size_t n_late, cap_late;
    struct buf late_text, frames;
    ns_t origin;
    bool have_origin, ending, help, broken, no_memory;
    enum rows_format format;
};

static int parse(struct job *job, int key, const char *arg)
{
    switch (key) {
    case 'Y':
        job->filter_text = arg;
        return EXIT_OK;
    case KEY_FOLLOW:
        return opt_number(arg, 1, UINT64_MAX, &job->follow) ? EXIT_OK : cli_error("--follow %s: expected the number of a work request", arg);
    case 'T':
        return rows_format_parse(arg, &job->format) ? EXIT_OK : cli_error("-T %s: expected text, json or csv", arg);
    default:
        job->help |= key == 'h';
        return EXIT_OK;
    }
}

static void flush(struct job *job)
{
    if (!job->broken && !cli_flush(&job->text, STDOUT_FILENO))
        job->broken = true;
    job->text.len = 0;
}

static void put_row(struct job *job, const char *p, size_t n)
{
    if (job->format == ROWS_JSON)
        buf_puts(&job->text, job->n ? ",\n" : "\n");
    buf_mem(&job->text, p, n);
    job->n++;
    if (job->text.len >= FLUSH_AT)
        flush(job);
}

/* Remember a row of the end, so that these come in the order of their numbers. */
static void put_late(struct job *job, uint64_t id, size_t off)
{
    if (job->n_late == job->cap_late) {
        size_t cap = job->cap_late ? job->cap_late * 2 : 256;
        struct late_row *grown = realloc(job->late, cap * sizeof *grown);
        if (!grown) {
            job->no_memory = true;
            return;
        }
        job->late = grown;
        job->cap_late = cap;
    }
    job->late[job->n_late++] = (struct late_row){id, off, job->late_text.len - off};
}

static void on_over(void *user, const struct work *w, uint32_t flow)
{
    struct job *job = user;
    const struct meter_row *row = meter_row_of(job->meter, flow);
    size_t off;

    if (job->follow && w->id != job->follow)
        return;
    if (!job->ending)
        job->late_text.len = 0;
    off = job->late_text.len;
    work_print(&job->late_text, job->format, w, row, job->origin);
    if (job->follow && job->format == ROWS_JSON) {
        job->late_text.len -= 1; /* the brace: the frames are one more member */
        buf_printf(&job->late_text, ",\"frames\":[%s]}", buf_str(&job->frames));
    }
    if (job->ending)
        put_late(job, w->id, off);
    else
        put_row(job, job->late_text.p, job->late_text.len);
}

/* A packet of the work request that is followed. */
static void on_work_packet(void *user, const struct work *w, const struct pkt *p)
{
    struct job *job = user;

    if (w->id != job->follow)
        return;
    if (job->format == ROWS_JSON)
        buf_printf(&job->frames, "%s%llu", job->frames.len ? "," : "", (unsigned long long)p->frame->number);
    else if (job->format == ROWS_TEXT)
        print_packet(&job->printer, &job->text, p);
}

static void on_packet(void *user, struct pkt *p)
{
    struct job *job = user;

    if (!job->have_origin) {
        job->have_origin = true;
        job->origin = p->frame->ts;
    }
    if (job->context)
        context_note(job->context, p);
    if (job->follow) {
        job->printer.digits = 9;
        print_seen(&job->printer, p);
    }
    meter_packet(job->meter, p, !job->filter || filter_match(job->filter, p));
}

static int by_id(const void *a, const void *b)
{
    const struct late_row *x = a, *y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}

static void finish(struct job *job)
{
    job->ending = true;
    job->late_text.len = 0;
    meter_end(job->meter);
    if (job->n_late)
        qsort(job->late, job->n_late, sizeof *job->late, by_id);
    for (size_t i = 0; i < job->n_late; i++)
        put_row(job, job->late_text.p + job->late[i].off, job->late[i].len);
    if (job->format == ROWS_JSON)
        buf_puts(&job->text, "\n]\n");
    flush(job);
}

static int prepare(struct job *job)
{
    struct meter_opts o = {.work = {job, job->follow ? on_work_packet : NULL, on_over}};

    if (job->filter_text && cli_filter(&job->filter, job->filter_text) != EXIT_OK)
        return EXIT_BAD;
    if (job->follow || (job->filter && filter_needs(job->filter) & (FILTER_NEEDS_NOTE | FILTER_NEEDS_COLUMN)))
        if (!(job->context = context_new()))
            return cli_error("out of memory");
    job->meter = meter_new(&o);
    if (!job->meter)
        return cli_error("out of memory");
    trace_pairs(&job->in, meter_conns(job->meter));
    return EXIT_OK;
}

static int run(struct job *job)
{
    struct trace_user u = {.user = job, .packet = on_packet};
    int status = prepare(job);

    if (status == EXIT_OK) {
        if (!job->follow)
            work_print_head(&job->text, job->format);
        if (job->format == ROWS_JSON)
            buf_char(&job->text, '[');
        status = trace_read(&job->in, &u);
        finish(job);
        if (job->no_memory)
            status = cli_error("out of memory");
        else if (job->follow && !job->n && status == EXIT_OK)
            status = cli_error("--follow %llu: there is no such work request", (unsigned long long)job->follow);
        if (job->broken && status == EXIT_OK)
            status = EXIT_BAD;
    }
    meter_free(job->meter);
    context_free(job->context);
    filter_free(job->filter);
    free(job->late);
    buf_free(&job->late_text);
    buf_free(&job->frames);
    buf_free(&job->text);
    return status;
}

int cmd_ops(int argc, char **argv)
{
    struct job job = {0};
    struct opt_state s;
    struct buf b = {0};
    const char *arg;
    int key, operand = 0, status = EXIT_OK;

    if (!trace_start(&job.in, argc))
        return EXIT_BAD;
    opt_start(&s, defs, argc, argv);
    while (status == EXIT_OK && (key = opt_next(&s, &arg, &operand)) != 0) {
        if (key < 0)
            status = cli_error("ops: `rdmatrace help ops` lists the options");
        else if (!trace_option(&job.in, key, arg, &status))
            status = parse(&job, key, arg);
    }
    if (status == EXIT_OK && job.help) {
        cmd_ops_help(&b);
        status = cli_show(&b);
    } else if (status == EXIT_OK) {
        status = trace_operands(&job.in, "ops", operand, argc, argv);
        if (status == EXIT_OK)
            status = run(&job);
    }
    opt_end(&s);
    trace_free(&job.in);
    return status;
}
