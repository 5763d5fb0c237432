/* layer 4 (tool): `rdmatrace flows`: throughput, latency and recovery of each connection. */
#include "src/account/timeline.h"
#include "src/cli/capture_cmd.h"
#include "src/cli/cli.h"
#include "src/cli/nearest.h"
#include "src/cli/runs/flows_part.h"
#include "src/cli/runs/host_owners.h"
#include "src/cli/when.h"
#include "src/measure/columns.h"
#include "src/measure/meter.h"
#include "src/ulp/ulp.h"
#include "tokens.h"

#include <stdlib.h>

enum {
    KEY_SORT = 256,
    KEY_INTERVAL,
    KEY_COLUMNS,
    KEY_ULP,
};

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    TRACE_CORES,
    TRACE_FILTER("measure"),
    {KEY_SORT, "sort", "FIELD",
     "order by this field, largest first: a name of -T csv, such as bytes, goodput_bps or\n"
     "message_latency_p99_ns; default connection"},
    {KEY_INTERVAL, "interval", "TIME", "show what each interval added instead: a time such as 10ms, 500us or 1s"},
    {'T', "format", "FORMAT", "text (default), json, ndjson or csv"},
    {KEY_COLUMNS, "columns", "NAMES",
     "with -T text: these columns, separated by commas: names of -T csv, and ends (source and\n"
     "destination); default: those that fit the terminal"},
    {KEY_ULP, "ulp", "END=PROTOCOL", ULP_HELP},
    {'V', "details", NULL, "with -T text: every value that is not 0"},
    TRACE_OPTIONS_END,
};

void cmd_flows_help(struct buf *b)
{
    buf_puts(b,
             "Usage: rdmatrace flows [options] FILE...\n\n"
             "Measure each connection and direction: packets, messages, goodput, retransmissions and what they cost,\n"
             "congestion, latencies. Each interface of a pcapng file is a separate tap.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage or input that cannot be read.\n");
}

struct job {
    struct trace t;
    struct meter_opts o;
    struct meter *meter;
    struct ulp *ulp; /* NULL with --interval */
    struct ulp_users users;
    const struct column *sort;
    struct ticks ticks;
    struct rows_opts rows;
    struct column_names columns;
    struct flows_part part;     /* with t.share */
    struct host_owners *owners; /* with t.in_parts */
};

enum { NO_TEXT = 1 };

static const struct opt_clash clashes[] = {
    {KEY_SORT, KEY_INTERVAL, 0, NULL},
    {'V', KEY_INTERVAL, 0, NULL},
    {KEY_COLUMNS, KEY_INTERVAL, 0, NULL},
    {KEY_ULP, KEY_INTERVAL, 0, NULL},
    {KEY_COLUMNS, 0, NO_TEXT, "is for -T text: json and csv have every value"},
    {'V', 0, NO_TEXT, "is for -T text: json and csv have every value"},
    {0, 0, 0, NULL},
};

static struct job *job_of(struct trace *t)
{
    return (struct job *)t;
}

static int no_column(const char *name)
{
    return cli_error("--columns: there is no column %s%s; names: ends, and those in the first line of -T csv", name,
                     nearest_is(column_nearest(name)).text);
}

static int take_columns(struct job *job, const char *arg)
{
    if (!column_names_parse(&job->columns, arg))
        return cli_error("--columns %s: expected at most %d names, separated by commas", arg, TABLE_COLUMNS);
    for (unsigned i = 0; i < job->columns.n; i++) {
        job->columns.names[i] = rows_text_name(job->columns.names[i]);
        if (!rows_text_has(job->columns.names[i]))
            return no_column(job->columns.names[i]);
    }
    job->rows.columns = &job->columns;
    return EXIT_OK;
}

static int no_field(const char *name)
{
    struct buf titles = {0};

    rows_text_titles(&titles);
    cli_error("--sort %s: there is no such field%s; those shown are %s; the first line of -T csv names all", name,
              nearest_is(column_nearest(name)).text, buf_str(&titles));
    buf_free(&titles);
    return EXIT_BAD;
}

static int option(struct trace *t, int key, const char *arg)
{
    struct job *job = job_of(t);

    switch (key) {
    case KEY_SORT:
        arg = strcmp(arg, "source > destination") == 0 ? "source" : rows_text_name(arg);
        job->sort = column_find(arg);
        return job->sort ? EXIT_OK : no_field(arg);
    case KEY_INTERVAL:
        return when_interval(arg, &job->o.interval);
    case KEY_COLUMNS:
        return take_columns(job, arg);
    case KEY_ULP:
        return ulp_option(&job->users, arg);
    case 'T':
        return opt_choice("-T", arg, rows_formats, &job->rows.format);
    default: /* -V */
        job->rows.details = true;
        return EXIT_OK;
    }
}

static unsigned cases(struct trace *t)
{
    return job_of(t)->rows.format != ROWS_TEXT ? NO_TEXT : 0;
}

static void on_tick(void *user, struct meter_row *row, ns_t begin, ns_t since, const struct meter_counts *added)
{
    struct job *job = user;

    if (!job->t.conn || row->conn == job->t.conn)
        ticks_add(&job->ticks, row, begin, since, added);
    trace_flush(&job->t);
}

static void on_command(void *user, const struct ulp_command *c)
{
    struct job *job = user;

    job->part.hosts.why = HOSTS_CARRY;
    meter_command(job->meter, c);
}

/* Before the meter: when a connection ends, its commands do while the meter still has its rows. */
static bool create_commands(struct job *job)
{
    const struct ulp_opts o = {.users = &job->users, .user = job, .over = on_command};

    return job->o.interval || (job->ulp = ulp_new(job->t.observer, &o, false));
}

static bool needs_all(const struct job *job)
{
    return job->o.interval || job->users.n;
}

static int start(struct trace *t)
{
    struct job *job = job_of(t);

    trace_tell_filter(t);
    job->rows.width = terminal_size().columns;
    job->o.user = job;
    job->o.tick = on_tick;
    job->o.files = t->files;
    if (!job->o.interval && !timeline_of(t->observer))
        return trace_no_memory(t);
    if (create_commands(job))
        job->meter = meter_new(t->observer, &job->o);
    if (!job->meter)
        return trace_no_memory(t);
    if (t->share && !flows_part_begin(&job->part, t, needs_all(job)))
        return trace_no_memory(t);
    if (!t->share)
        job->owners = host_owners_new(&flows_cmd, t, needs_all(job));
    t->in_parts = host_owners_in(job->owners);
    job->ticks = (struct ticks){.format = job->rows.format, .width = job->rows.width, .b = &t->out};
    if (job->o.interval)
        ticks_begin(&job->ticks);
    return EXIT_OK;
}

static void packet(struct trace *t, struct pkt *p, bool match)
{
    struct job *job = job_of(t);

    (void)match;
    if (UNLIKELY(t->share != NULL))
        flows_part_packet(&job->part, t->share, p, job->meter);
}

static const char *join(struct trace *t)
{
    struct job *job = job_of(t);
    const char *why;

    t->share = host_owners_join(job->owners, &why);
    if (t->share && !flows_part_begin(&job->part, t, false))
        return "out of memory";
    return t->share ? NULL : why;
}

/* The rows, of all that was read, or of what several processes have found. */
static struct meter_row **end_rows(struct job *job, size_t *n, struct meter_totals *sums)
{
    struct trace *t = &job->t;

    if (job->part.rows) {
        *n = job->part.n;
        *sums = job->part.sums;
        return job->part.rows;
    }
    if (observer_timeline(t->observer))
        timeline_end(observer_timeline(t->observer));
    return meter_rows(job->meter, n);
}

static int end(struct trace *t)
{
    struct job *job = job_of(t);
    struct meter_totals sums;
    struct meter_row **rows;
    size_t n;

    if (job->ulp)
        ulp_finish(job->ulp);
    if (t->share && t->share->found)
        hosts_part_last_frames(t, job->meter);
    meter_end(job->meter);
    sums = meter_totals(job->meter);
    if (job->o.interval) {
        ticks_end(&job->ticks, &sums);
        return EXIT_OK;
    }
    rows = end_rows(job, &n, &sums);
    if (t->share && t->share->found)
        return flows_part_save(&job->part, t, job->meter, rows, n);
    n = rows_of_conn(rows, n, t->conn);
    if (job->sort)
        rows_sort(rows, n, job->sort);
    rows_print(&t->out, &job->rows, rows, n, &sums);
    if (job->rows.format == ROWS_TEXT && !n)
        buf_puts(&t->out, t->filter ? "No packet of a connection matches -Y.\n" : "There is no connection.\n");
    if (job->rows.format == ROWS_TEXT)
        cli_unread(t->unread, &t->out);
    return EXIT_OK;
}

static void stop(struct trace *t)
{
    ulp_free(job_of(t)->ulp);
    meter_free(job_of(t)->meter);
    flows_part_free(&job_of(t)->part);
    host_owners_free(job_of(t)->owners);
}

TRACE_CMD(flows, .digests = true, .shares = true, .by_hosts = true, .rows = "flow", .option = option, .packet = packet,
          .join = join, .stop = stop, .clashes = clashes, .cases = cases)
