/* layer 4 (tool): `rdmatrace export`: packets, connections, work requests, findings and incidents as an SQLite
 * database, as a trace for Perfetto, or as the data of figures, in one reading of the files. */
#include "beside.h"
#include "dissect/pkt.h"
#include "src/analyses/analyses.h"
#include "src/cli/capture_cmd.h"
#include "src/cli/cli.h"
#include "src/cli/when.h"
#include "src/export/export.h"
#include "src/export/figures.h"
#include "src/export/perfetto.h"
#include "src/measure/columns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEY_SQLITE = 256, KEY_PERFETTO, KEY_CSV, KEY_INTERVAL, KEY_PACKETS, KEY_COUNTERS };

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    TRACE_CORES,
    TRACE_FILTER("write"),
    {KEY_SQLITE, "sqlite", "FILE", "write the database FILE; what it held before is replaced"},
    {KEY_PERFETTO, "perfetto", "FILE", "write the trace FILE for ui.perfetto.dev"},
    {KEY_CSV, "csv", "DIR", "write a CSV file for each figure, and scripts for gnuplot, to directory DIR"},
    {KEY_INTERVAL, "interval", "TIME", "length of the intervals of rates: a time such as 10ms, 500us or 1s (1ms)"},
    {KEY_PACKETS, "packets", "WHICH",
     "packets that have a row in the database: all, flagged (retransmissions, NAKs, CNPs, packets out of\n"
     "order, marked CE or with a wrong ICRC), none (all)"},
    {KEY_COUNTERS, "counters", "HOST=FILES",
     "write what the adapter of the host with this address has counted, FILE or BEFORE,AFTER, beside\n"
     "the trace, to the database; may be repeated"},
    TRACE_ANONYMIZE,
    TRACE_OPTIONS_END,
};

void cmd_export_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmatrace export --sqlite FILE | --perfetto FILE | --csv DIR [options] FILE...\n\n"
                "Write what check, explain, flows and ops find, and a row for each packet, as tables of an SQLite\n"
                "database; requests, lost time and rates as a trace for Perfetto; or the data behind the figures of\n"
                "report as CSV files, with scripts that draw them: rdmatrace-export(1) describes all three.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage or input that cannot be read; also if FILE was not written.\n");
}

/* Packets that have a row. */
enum packets { PACKETS_ALL, PACKETS_FLAGGED, PACKETS_NONE };

struct job {
    struct trace t;
    const char *path;          /* --sqlite; NULL: not given */
    const char *trace;         /* --perfetto; NULL: not given */
    const char *dir;           /* --csv; NULL: not given */
    ns_t interval;             /* of rates; 0: not given */
    enum packets packets;      /* --packets */
    struct judge_opts known;   /* its hosts: --counters */
    struct export *x;          /* with `path` */
    struct perfetto *perfetto; /* with `trace` */
    struct figures *figures;   /* with `dir` */
    struct analyses found;
    struct taps *clocks;         /* with `path`, of several taps */
    bool begun;                  /* the first packet came */
    struct export_packet packet; /* the current one */
    bool match;                  /* it passes -Y */
};

static struct job *job_of(struct trace *t)
{
    return (struct job *)t;
}

static const char *const packets_words[] = {"all", "flagged", "none", NULL}; /* enum packets */

static int packets_option(struct job *job, const char *arg)
{
    unsigned which;
    int status = opt_choice("--packets", arg, packets_words, &which);

    if (status == EXIT_OK)
        job->packets = (enum packets)which;
    return status;
}

static int option(struct trace *t, int key, const char *arg)
{
    struct job *job = job_of(t);

    if (key == KEY_INTERVAL)
        return when_interval(arg, &job->interval);
    if (key == KEY_COUNTERS)
        return counters_option(&job->known, arg);
    if (key == KEY_PACKETS)
        return packets_option(job, arg);
    *(key == KEY_SQLITE ? &job->path : key == KEY_CSV ? &job->dir : &job->trace) = arg;
    return EXIT_OK;
}

/* Whether --conn selects connection `conn`. */
static bool is_asked_for(const struct job *job, uint64_t conn)
{
    return !job->t.conn || conn == job->t.conn;
}

/* --- Rows ------------------------------------------------------------------------------------- */

/* The packet in the trace, and what is outstanding behind it. */
static void trace_packet(struct job *job, const struct event *e)
{
    struct conn_table *conns = observer_conns(job->t.observer);

    if (e->own != FLOW_NONE)
        perfetto_packet(job->perfetto, &job->packet, conn_flow_at(conns, e->own));
    if (e->h && e->flow != FLOW_NONE)
        perfetto_outstanding(job->perfetto, conn_flow_at(conns, e->flow), e->h, e->p->frame->ts);
}

/* The same in the figures. */
static void draw_packet(struct job *job, const struct event *e)
{
    struct conn_table *conns = observer_conns(job->t.observer);

    if (e->own != FLOW_NONE)
        figures_packet(job->figures, &job->packet, conn_flow_at(conns, e->own));
    if (e->h && e->flow != FLOW_NONE)
        figures_outstanding(job->figures, e->p, conn_flow_at(conns, e->flow), e->h);
}

/* Whether the packet at hand has a row in the database. */
static bool has_row(const struct job *job)
{
    return job->packets == PACKETS_ALL || (job->packets == PACKETS_FLAGGED && export_is_flagged(&job->packet));
}

/* The observer and the meter are done with the packet: write its row. */
static void on_done(void *user, const struct event *e)
{
    struct job *job = user;

    job->packet.p = e->p;
    job->packet.conn = e->own == FLOW_NONE ? 0 : conn_flow_at(observer_conns(job->t.observer), e->own)->conn;
    if (!job->match || !(e->p->have & H_BTH) || !is_asked_for(job, job->packet.conn))
        return;
    job->packet.kind = e->kind;
    job->packet.as = e->as;
    if (job->x && has_row(job))
        export_packet(job->x, &job->packet);
    if (job->perfetto)
        trace_packet(job, e);
    if (job->figures)
        draw_packet(job, e);
}

/* on_done() follows only for packets that are evidence about requests. */
static void on_event(void *user, const struct event *e)
{
    struct job *job = user;

    if (job->figures)
        figures_event(job->figures, e);
    if (!e->h)
        on_done(user, e);
}

static void on_flow_over(void *user, uint32_t flow, bool restart)
{
    struct job *job = user;

    (void)restart;
    if (job->figures)
        figures_over(job->figures, flow);
}

/* A packet of a work request; of several that one response completes, it is a packet of the latest. */
static void on_work_packet(void *user, const struct wqe *w, const struct pkt *p, uint32_t flow)
{
    struct job *job = user;

    job->packet.request = w->id;
    request_parts_packet(job->found.parts, w, p, flow);
}

static void on_over(void *user, const struct wqe *w, uint32_t flow)
{
    struct job *job = user;
    struct wqe_row q = {.w = w, .row = meter_row_of(job->found.meter, flow)};
    ns_t states[TIME_STATES];

    request_account_over(job->found.parts, job->found.meter, w, flow, states, &q.accounted);
    q.lost = states_lost(states);
    if (!is_asked_for(job, q.row->conn))
        return;
    if (job->x)
        export_request(job->x, &q, q.accounted ? states : NULL);
    if (job->perfetto)
        perfetto_request(job->perfetto, &q);
    if (job->figures)
        figures_request(job->figures, &q);
}

static void on_command(void *user, const struct command_row *q)
{
    struct job *job = user;

    if (job->x && is_asked_for(job, q->row->conn))
        export_command(job->x, q);
}

static void on_tick(void *user, struct meter_row *row, ns_t begin, ns_t since, const struct meter_counts *added)
{
    struct job *job = user;

    (void)since;
    if (!is_asked_for(job, row->conn))
        return;
    if (job->x)
        export_interval(job->x, row, begin, added);
    if (job->perfetto)
        perfetto_rate(job->perfetto, row, begin, added);
    if (job->figures)
        figures_rate(job->figures, row, begin, added);
}

/* --- The command ------------------------------------------------------------------------------ */

static int failed(const struct job *job)
{
    return cli_error("%s", export_error(job->x));
}

/* Whether the files can be written: what is complete is renamed, so none is standard output. */
static int check_names(const struct job *job)
{
    const struct trace *t = &job->t;
    const struct {
        const char *option, *name;
    } to[] = {{"sqlite", job->path}, {"perfetto", job->trace}, {"csv", job->dir}};

    for (unsigned i = 0; i < ARRAY_LEN(to); i++)
        if (to[i].name && strcmp(to[i].name, "-") == 0)
            return cli_error("export: --%s writes no standard output; for a file of this name: ./-", to[i].option);
    if (!job->path && !job->trace && !job->dir)
        return cli_error("export: --sqlite FILE, --perfetto FILE or --csv DIR is needed: where to write");
    if (job->path && beside_replaces(job->path, t->files, t->n_files))
        return cli_error("export: --sqlite %s is one of the captures", job->path);
    if (job->trace && beside_replaces(job->trace, t->files, t->n_files))
        return cli_error("export: --perfetto %s is one of the captures", job->trace);
    if (job->path && cap_is_capture(job->path))
        return cli_error("export: --sqlite %s is a capture, and would be replaced", job->path);
    if (job->trace && cap_is_capture(job->trace) && !perfetto_is_trace(job->trace))
        return cli_error("export: --perfetto %s is a capture, and would be replaced", job->trace);
    return EXIT_OK;
}

/* Begin the files that are to be written. */
static int open_files(struct job *job)
{
    struct trace *t = &job->t;
    int status = check_names(job);

    if (status != EXIT_OK)
        return status;
    if (!job->interval)
        job->interval = EXPORT_INTERVAL;
    if (!job->path && (job->packets || job->known.n_hosts))
        return cli_error("export: --packets and --counters are of the database, --sqlite FILE");
    if (job->path && !(job->x = export_new(job->path, t->files, t->n_files, t->cores)))
        return cli_error("out of memory");
    if (job->path && export_error(job->x))
        return failed(job);
    if (job->trace && !(job->perfetto = perfetto_new(job->trace, t->files, job->interval)))
        return cli_error("%s: %s", job->trace, strerror(errno));
    if (job->dir && !(job->figures = figures_new(job->dir, job->interval)))
        return cli_error("%s: %s", job->dir, strerror(errno));
    return EXIT_OK;
}

static int start(struct trace *t)
{
    struct job *job = job_of(t);
    const struct observer_sub s = {.user = job, .over = on_flow_over, .before = on_event, .after = on_done};
    struct analyses_opts o = trace_analyses(t);

    if (open_files(job) != EXIT_OK)
        return EXIT_BAD;
    o.meter.tick = on_tick;
    o.meter.interval = job->interval;
    o.meter.work = (struct wqe_user){job, on_work_packet, on_over};
    o.meter.user = job;
    o.command = job->x ? on_command : NULL;
    o.hosts = job->known.hosts;
    o.n_hosts = job->known.n_hosts;
    o.user = job;
    if (!analyses_begin(&job->found, t->observer, &o) || !observer_subscribe(t->observer, &s))
        return cli_error("out of memory");
    t->judging = job->found.judge;
    return EXIT_OK;
}

/* At the first packet, when the interfaces are known: compare the clocks of several taps. Without memory they are not
 * known. */
static void compare_clocks(struct job *job)
{
    const struct trace *t = &job->t;

    job->begun = true;
    if (job->x && (t->n_files > 1 || t->ifaces_given.n > 1 || t->first.several))
        job->clocks = taps_new(t->observer);
}

static void packet(struct trace *t, struct pkt *p, bool match)
{
    struct job *job = job_of(t);

    if (!job->begun)
        compare_clocks(job);
    job->match = match;
    job->packet.request = 0;
    if (job->x)
        export_frame(job->x, p);
    if (job->perfetto)
        perfetto_pause(job->perfetto, p);
    if (job->figures)
        figures_frame(job->figures, p);
}

static void judge(struct trace *t, const struct pkt *p)
{
    analyses_packet(&job_of(t)->found, p);
}

static void drops(struct trace *t, uint16_t file, uint64_t n)
{
    analyses_drops(&job_of(t)->found, file, n);
}

/* Flows that turned out to be one connection after rows with their first numbers were written. */
static void renumber(struct job *job)
{
    struct conn_table *c = observer_conns(job->t.observer);

    for (uint32_t n = 1; n <= conn_counts(c).conns; n++)
        if (conn_number_now(c, n) != n)
            export_renumber(job->x, n, conn_number_now(c, n));
}

/* What the tables hold, and what of the captures they lack. */
static void put_meta(const struct job *job)
{
    char number[24];

    export_meta(job->x, "packets", packets_words[job->packets]);
    snprintf(number, sizeof number, "%lld", (long long)job->interval);
    export_meta(job->x, "interval_ns", number);
    if (job->t.filter_text)
        export_meta(job->x, "display_filter", job->t.filter_text);
    snprintf(number, sizeof number, "%u", job->t.conn);
    if (job->t.conn)
        export_meta(job->x, "connection", number);
    if (job->t.unread)
        export_meta(job->x, "unread", job->t.unread);
}

/* The rows that are known at the end, and the file. */
static int end_sqlite(struct job *job)
{
    size_t n;
    struct meter_row **rows = meter_rows(job->found.meter, &n);

    n = rows_of_conn(rows, n, job->t.conn);
    for (size_t i = 0; i < n; i++)
        export_flow(job->x, rows[i]);
    if (job->clocks)
        taps_end(job->clocks);
    export_taps(job->x, job->clocks, job->t.in);
    for (unsigned i = 0; i < job->known.n_hosts; i++)
        export_counters(job->x, judge_host(job->found.judge, i));
    export_findings(job->x, judge_findings(job->found.judge), job->t.conn);
    export_incidents(job->x, job->found.explainer, job->t.conn);
    renumber(job);
    put_meta(job);
    if (!export_end(job->x))
        return failed(job);
    cli_written(job->path);
    return EXIT_OK;
}

static int end_perfetto(struct job *job)
{
    perfetto_incidents(job->perfetto, job->found.explainer, job->t.conn);
    perfetto_findings(job->perfetto, judge_findings(job->found.judge), job->t.conn);
    if (!perfetto_end(job->perfetto))
        return cli_error("%s: %s", job->trace, strerror(errno));
    cli_written(job->trace);
    return EXIT_OK;
}

static int end_figures(struct job *job)
{
    size_t n;
    struct meter_row **rows = meter_rows(job->found.meter, &n);

    figures_incidents(job->figures, job->found.explainer, job->t.conn);
    figures_hosts(job->figures, rows, rows_of_conn(rows, n, job->t.conn));
    if (!figures_end(job->figures, observer_conns(job->t.observer)))
        return cli_error("%s: %s", job->dir, strerror(errno));
    cli_written(job->dir);
    return EXIT_OK;
}

static int end(struct trace *t)
{
    struct job *job = job_of(t);
    int status = EXIT_OK;

    analyses_end(&job->found);
    if (job->x)
        status = end_sqlite(job);
    if (job->perfetto && end_perfetto(job) != EXIT_OK)
        status = EXIT_BAD;
    if (job->figures && end_figures(job) != EXIT_OK)
        status = EXIT_BAD;
    return status;
}

static void stop(struct trace *t)
{
    struct job *job = job_of(t);

    analyses_free(&job->found);
    taps_free(job->clocks);
    export_free(job->x);
    perfetto_free(job->perfetto);
    figures_free(job->figures);
}

TRACE_CMD(export, .option = option, .judge = judge, .packet = packet, .drops = drops, .filter_shows = true,
          .stop = stop)
