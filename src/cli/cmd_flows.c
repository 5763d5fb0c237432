/* layer 4 (tool): `rdmatrace flows`: what each connection did, and how well. */
#include "src/cli/cli.h"
#include "src/cli/trace.h"
#include "src/trace/context.h"
#include "src/trace/filter.h"
#include "src/trace/meter.h"
#include "src/trace/rows.h"

#include <stdlib.h>
#include <unistd.h>

#define FLUSH_AT 65536

enum {
    KEY_SORT = 256,
    KEY_INTERVAL,
};

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    {'Y', "display-filter", "FILTER", "measure only packets that match this display filter (rdmatrace-filter(7))"},
    {KEY_SORT, "sort", "FIELD", "order by this field, largest first: a name of -T csv, such as bytes, goodput_bps or\n"
                                "message_latency_p99_ns; default connection"},
    {KEY_INTERVAL, "interval", "TIME", "show what each interval added instead: a time such as 10ms, 500us or 1s"},
    {'T', "format", "FORMAT", "text (default), json or csv"},
    {'V', "details", NULL, "with -T text: every value that is not 0"},
    {'h', "help", NULL, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_flows_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmatrace flows [options] FILE...\n\n"
                "Measure each connection and direction: packets, messages, goodput, retransmissions and what they cost,\n"
                "congestion, latencies. Each interface of a pcapng file is a tap of its own.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage or input that cannot be read.\n");
}

struct job {
    struct trace_input in;
    struct meter_opts o;
    struct meter *meter;
    struct filter *filter;   /* -Y; NULL: all */
    struct context *context; /* if the filter needs it */
    const char *filter_text;
    const struct column *sort;
    struct ticks ticks;
    struct buf text;
    enum rows_format format;
    bool help, details, broken;
};

/* A number and a unit of time. */
static int parse_interval(struct job *job, const char *arg)
{
    static const struct {
        const char *name;
        ns_t ns;
    } units[] = {{"ns", 1}, {"us", NS_PER_US}, {"ms", NS_PER_MS}, {"s", NS_PER_S}};
    char *end;
    double v = strtod(arg, &end);

    for (unsigned i = 0; end != arg && i < ARRAY_LEN(units); i++)
        if (strcmp(end, units[i].name) == 0 && v * (double)units[i].ns >= 1 && v * (double)units[i].ns < 1e18) {
            job->o.interval = (ns_t)(v * (double)units[i].ns);
            return EXIT_OK;
        }
    return cli_error("--interval %s: expected a time such as 10ms, 500us or 1s", arg);
}

static int parse(struct job *job, int key, const char *arg)
{
    switch (key) {
    case 'Y':
        job->filter_text = arg;
        return EXIT_OK;
    case KEY_SORT:
        job->sort = column_find(arg);
        return job->sort ? EXIT_OK : cli_error("--sort %s: there is no such field; the first line of -T csv names them", arg);
    case KEY_INTERVAL:
        return parse_interval(job, arg);
    case 'T':
        return rows_format_parse(arg, &job->format) ? EXIT_OK : cli_error("-T %s: expected text, json or csv", arg);
    default:
        job->details |= key == 'V';
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

static void on_tick(void *user, const struct meter_row *row, ns_t start, const struct meter_counts *added)
{
    struct job *job = user;

    ticks_add(&job->ticks, row, start, added);
    if (job->text.len >= FLUSH_AT)
        flush(job);
}

static void on_packet(void *user, struct pkt *p)
{
    struct job *job = user;

    if (job->context)
        context_note(job->context, p);
    meter_packet(job->meter, p, !job->filter || filter_match(job->filter, p));
}

static int prepare(struct job *job)
{
    if (job->filter_text && cli_filter(&job->filter, job->filter_text) != EXIT_OK)
        return EXIT_BAD;
    if (job->filter && filter_needs(job->filter) & (FILTER_NEEDS_NOTE | FILTER_NEEDS_COLUMN) && !(job->context = context_new()))
        return cli_error("out of memory");
    job->o.user = job;
    job->o.tick = on_tick;
    job->meter = meter_new(&job->o);
    if (!job->meter)
        return cli_error("out of memory");
    trace_pairs(&job->in, meter_conns(job->meter));
    return EXIT_OK;
}

static void print(struct job *job)
{
    struct meter_totals t = meter_totals(job->meter);
    struct meter_row **rows;
    size_t n;

    if (job->o.interval) {
        ticks_end(&job->ticks, &t);
    } else {
        rows = meter_rows(job->meter, &n);
        if (job->sort)
            rows_sort(rows, n, job->sort);
        rows_print(&job->text, job->format, job->details, rows, n, &t);
    }
    flush(job);
}

static int run(struct job *job)
{
    struct trace_user u = {.user = job, .packet = on_packet};
    int status = prepare(job);

    if (status == EXIT_OK) {
        job->ticks = (struct ticks){.format = job->format, .b = &job->text};
        if (job->o.interval)
            ticks_begin(&job->ticks);
        status = trace_read(&job->in, &u);
        meter_end(job->meter);
        print(job);
        if (job->broken && status == EXIT_OK)
            status = EXIT_BAD;
    }
    meter_free(job->meter);
    context_free(job->context);
    filter_free(job->filter);
    buf_free(&job->text);
    return status;
}

int cmd_flows(int argc, char **argv)
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
            status = cli_error("flows: `rdmatrace help flows` lists the options");
        else if (!trace_option(&job.in, key, arg, &status))
            status = parse(&job, key, arg);
    }
    if (status == EXIT_OK && job.help) {
        cmd_flows_help(&b);
        status = cli_show(&b);
    } else if (status == EXIT_OK) {
        status = trace_operands(&job.in, "flows", operand, argc, argv);
        if (status == EXIT_OK)
            status = run(&job);
    }
    opt_end(&s);
    trace_free(&job.in);
    return status;
}
