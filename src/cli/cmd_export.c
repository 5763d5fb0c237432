/* layer 4 (tool): `rdmatrace export`: packets, connections, work requests, findings and incidents as an SQLite
 * database, or as a trace for Perfetto, in one reading of the files. */
#include "dissect/pkt.h"
#include "src/cli/capture_cmd.h"
#include "src/cli/cli.h"
#include "src/export/export.h"
#include "src/export/perfetto.h"
#include "src/judge/judge.h"
#include "src/measure/request_parts.h"

#include <errno.h>
#include <stdlib.h>

enum { KEY_SQLITE = 256, KEY_PERFETTO };

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    TRACE_FILTER("write"),
    {KEY_SQLITE, "sqlite", "FILE", "write the database FILE; what it held before is replaced"},
    {KEY_PERFETTO, "perfetto", "FILE", "write the trace FILE for ui.perfetto.dev"},
    TRACE_OPTIONS_END,
};

void cmd_export_help(struct buf *b)
{
    buf_puts(
        b,
        "Usage: rdmatrace export --sqlite FILE | --perfetto FILE [options] FILE...\n\n"
        "Write what check, explain, flows and ops find, and a row for each packet, as tables of an SQLite\n"
        "database; or requests, lost time and rates as a trace for Perfetto: rdmatrace-export(1) describes both.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage or input that cannot be read; also if FILE was not written.\n");
}

struct job {
    struct trace t;
    const char *path;          /* --sqlite; NULL: not given */
    const char *trace;         /* --perfetto; NULL: not given */
    struct export *x;          /* with `path` */
    struct perfetto *perfetto; /* with `trace` */
    struct judge *judge;
    struct explainer *explainer;
    struct meter *meter;
    struct request_parts *parts;
    struct export_packet packet; /* the current one */
    bool match;                  /* it passes -Y */
};

static struct job *job_of(struct trace *t)
{
    return (struct job *)t;
}

static int option(struct trace *t, int key, const char *arg)
{
    *(key == KEY_SQLITE ? &job_of(t)->path : &job_of(t)->trace) = arg;
    return EXIT_OK;
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

/* The observer and the meter are done with the packet: write its row. */
static void on_done(void *user, const struct event *e)
{
    struct job *job = user;

    if (!job->match || !(e->p->have & H_BTH))
        return;
    job->packet.p = e->p;
    job->packet.conn = e->own == FLOW_NONE ? 0 : conn_flow_at(observer_conns(job->t.observer), e->own)->conn;
    job->packet.kind = e->kind;
    job->packet.as = e->as;
    if (job->x)
        export_packet(job->x, &job->packet);
    if (job->perfetto)
        trace_packet(job, e);
}

/* on_done() follows only for packets that are evidence about requests. */
static void on_event(void *user, const struct event *e)
{
    if (!e->h)
        on_done(user, e);
}

/* A packet of a work request; of several that one response completes, it is a packet of the latest. */
static void on_work_packet(void *user, const struct wqe *w, const struct pkt *p, uint32_t flow)
{
    struct job *job = user;

    job->packet.request = w->id;
    request_parts_packet(job->parts, w, p, flow);
}

static void on_over(void *user, const struct wqe *w, uint32_t flow)
{
    struct job *job = user;
    struct wqe_row q = {.w = w, .row = meter_row_of(job->meter, flow)};
    ns_t states[TIME_STATES], end = request_parts_over(job->parts, w, flow, states);

    q.accounted = request_parts_known(job->t.observer, flow, states, end - w->start);
    q.lost = states_lost(states);
    if (job->x)
        export_request(job->x, &q, q.accounted ? states : NULL);
    if (job->perfetto)
        perfetto_request(job->perfetto, &q);
}

static void on_tick(void *user, struct meter_row *row, ns_t begin, ns_t since, const struct meter_counts *added)
{
    (void)since;
    perfetto_rate(((struct job *)user)->perfetto, row, begin, added);
}

/* --- The command ------------------------------------------------------------------------------ */

static int failed(const struct job *job)
{
    return cli_error("%s", export_error(job->x));
}

/* Begin the files that are to be written. */
static int open_files(struct job *job)
{
    struct trace *t = &job->t;

    if (!job->path && !job->trace)
        return cli_error("export: --sqlite FILE or --perfetto FILE is needed: where to write");
    if (job->path && !(job->x = export_new(job->path, t->files, t->n_files)))
        return cli_error("out of memory");
    if (job->path && export_error(job->x))
        return failed(job);
    if (job->trace && !(job->perfetto = perfetto_new(job->trace, t->files)))
        return cli_error("%s: %s", job->trace, strerror(errno));
    return EXIT_OK;
}

static int start(struct trace *t)
{
    struct job *job = job_of(t);
    const struct observer_sub s = {.user = job, .before = on_event, .after = on_done};
    const struct meter_opts o = {.interval = job->trace ? PERFETTO_INTERVAL : 0,
                                 .tick = on_tick,
                                 .files = t->files,
                                 .work = {job, on_work_packet, on_over},
                                 .user = job};
    const struct judge_opts judged = {
        .ack_timeout = -1, .retry_cnt = -1, .memory = t->memory, .no_icrc = !t->decode.verify};
    struct timeline *timeline = timeline_of(t->observer);

    if (open_files(job) != EXIT_OK)
        return EXIT_BAD;
    job->judge = judge_new(&judged);
    job->explainer = explain_new(t->observer);
    job->parts = timeline ? request_parts_new(timeline) : NULL;
    job->meter = meter_new(t->observer, &o);
    if (!job->judge || !job->explainer || !job->parts || !job->meter || !observer_subscribe(t->observer, &s) ||
        (t->n_files > 1 && !explain_align(job->explainer)))
        return cli_error("out of memory");
    for (unsigned k = 0; k < t->n_pairs; k++)
        conn_learn(judge_conns(job->judge), &t->pairs[k]);
    return EXIT_OK;
}

static void packet(struct trace *t, struct pkt *p, bool match)
{
    struct job *job = job_of(t);

    job->match = match;
    job->packet.request = 0;
    judge_packet(job->judge, p);
}

static void drops(struct trace *t, uint16_t file, uint64_t n)
{
    judge_drops(job_of(t)->judge, file, n);
}

/* Flows that turned out to be one connection after rows with their first numbers were written. */
static void renumber(struct job *job)
{
    struct conn_table *c = observer_conns(job->t.observer);

    for (uint32_t n = 1; n <= conn_counts(c).conns; n++)
        if (conn_number_now(c, n) != n)
            export_renumber(job->x, n, conn_number_now(c, n));
}

/* The rows that are known at the end, and the file. */
static int end_sqlite(struct job *job)
{
    size_t n;
    struct meter_row **rows = meter_rows(job->meter, &n);

    for (size_t i = 0; i < n; i++)
        export_flow(job->x, rows[i]);
    export_findings(job->x, judge_findings(job->judge));
    export_incidents(job->x, job->explainer);
    renumber(job);
    return export_end(job->x) ? EXIT_OK : failed(job);
}

static int end_perfetto(struct job *job)
{
    perfetto_incidents(job->perfetto, job->explainer);
    perfetto_findings(job->perfetto, judge_findings(job->judge));
    return perfetto_end(job->perfetto) ? EXIT_OK : cli_error("%s: %s", job->trace, strerror(errno));
}

static int end(struct trace *t)
{
    struct job *job = job_of(t);
    int status = EXIT_OK;

    judge_end(job->judge);
    explain_end(job->explainer);
    meter_end(job->meter);
    if (job->x)
        status = end_sqlite(job);
    if (job->perfetto && end_perfetto(job) != EXIT_OK)
        status = EXIT_BAD;
    return status;
}

static void stop(struct trace *t)
{
    struct job *job = job_of(t);

    meter_free(job->meter);
    request_parts_free(job->parts);
    explain_free(job->explainer);
    judge_free(job->judge);
    export_free(job->x);
    perfetto_free(job->perfetto);
}

TRACE_CMD(export, .option = option, .packet = packet, .drops = drops, .filter_shows = true, .stop = stop)
