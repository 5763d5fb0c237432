/* layer 4 (tool): `rdmatrace explain`: what went wrong, in plain words. */
#include "src/cli/annotate.h"
#include "src/cli/capture_cmd.h"
#include "src/cli/cli.h"
#include "src/cli/found.h"
#include "src/explain/explain.h"
#include "src/measure/meter.h"

enum {
    KEY_CAUSES = 256,
    KEY_ANNOTATE,
};

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    TRACE_CONN("only connection N (its number is that of `rdmatrace decode` and `rdmatrace flows`)"),
    {KEY_CAUSES, "causes", NULL, "list the causes"},
    ANNOTATE_OPTION(KEY_ANNOTATE, "incidents"),
    {'T', "format", "FORMAT", "text (default) or json"},
    TRACE_OPTIONS_END,
};

void cmd_explain_help(struct buf *b)
{
    buf_puts(
        b,
        "Usage: rdmatrace explain [options] FILE...\n\n"
        "Say what went wrong in captures, worst first: which packets were lost and where, who stopped answering, what\n"
        "the recovery cost, and what to look at next.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage or input that cannot be read.\n");
}

struct job {
    struct trace t;
    struct explainer *explainer;
    const char *annotate; /* --annotate; NULL: not */
    struct meter *meter;  /* of JSON: the work requests */
    FILE *requests;       /* their objects, as they are over */
    struct buf row;
    enum { FORMAT_TEXT, FORMAT_JSON } format;
};

static struct job *job_of(struct trace *t)
{
    return (struct job *)t;
}

static const char *const formats[] = {"text", "json", NULL};

static int option(struct trace *t, int key, const char *arg)
{
    struct job *job = job_of(t);

    switch (key) {
    case 'T':
        return opt_choice("-T", arg, formats, &job->format);
    case KEY_ANNOTATE:
        job->annotate = arg;
        return EXIT_OK;
    default: /* KEY_CAUSES */
        explain_causes(&t->out);
        t->answered = true;
        return EXIT_OK;
    }
}

/* A work request is over: where its time went. */
static void on_over(void *user, const struct wqe *w, uint32_t flow)
{
    struct job *job = user;
    const struct meter_row *m = meter_row_of(job->meter, flow);
    struct request_account r = {.conn = (uint32_t)m->conn, .number = w->id, .start = w->start};
    struct buf from = {0};

    if (!r.conn || (job->t.conn && job->t.conn != r.conn))
        return;
    r.end = w->done_frame && w->done > w->start ? w->done : w->last > w->start ? w->last : w->start;
    timeline_between(timeline_of(job->t.observer), flow, r.start, r.end, r.states);
    conn_end_put(&from, &m->src, m->sqpn != METER_NONE, (uint32_t)m->sqpn);
    r.from = buf_str(&from);
    job->row.len = 0;
    buf_puts(&job->row, ftello(job->requests) ? ",\n" : "\n");
    request_account_json(&job->row, &r);
    fwrite(job->row.p, 1, job->row.len, job->requests);
    buf_free(&from);
}

/* The work requests are told as they end, and written to a file until then: there may be any number of them. */
static int watch_requests(struct job *job)
{
    const struct meter_opts o = {.work = {job, NULL, on_over}};

    job->requests = tmpfile();
    if (!job->requests)
        return cli_error("cannot keep the work requests: no temporary file");
    job->meter = meter_new(job->t.observer, &o);
    return job->meter ? EXIT_OK : cli_error("out of memory");
}

static int start(struct trace *t)
{
    struct job *job = job_of(t);

    if (job->annotate && !annotate_possible(job->annotate, t->files, t->n_files))
        return EXIT_BAD;
    job->explainer = explain_new(t->observer);
    if (!job->explainer)
        return cli_error("out of memory");
    return job->format == FORMAT_JSON ? watch_requests(job) : EXIT_OK;
}

/* The member `requests`, in place of the end of the object. */
static int put_requests(struct job *job)
{
    struct buf *b = &job->t.out;
    char part[65536];
    size_t n;

    meter_end(job->meter);
    b->len -= strlen("}\n");
    buf_puts(b, ",\"requests\":[");
    rewind(job->requests);
    while ((n = fread(part, 1, sizeof part, job->requests)) > 0) {
        buf_mem(b, part, n);
        trace_flush(&job->t);
    }
    buf_puts(b, "]}\n");
    return ferror(job->requests) ? cli_error("the work requests could not be kept: the temporary file is full")
                                 : EXIT_OK;
}

/* "incident 2, packet-loss: SEND Middle with PSN ..." */
static void comment(void *user, const struct pkt_mark *mark, struct buf *b)
{
    buf_printf(b, "rdmatrace explain: incident %u, %s: ", mark->number, mark->cause);
    explain_text_of(explain_at(user, mark->number - 1), b);
}

static int annotate(const struct job *job)
{
    struct marks m = {0};
    int status;

    found_incidents(&m, job->explainer, job->t.conn);
    marks_sort(&m);
    status = annotate_files(job->annotate, job->t.files, job->t.n_files, &m, comment, job->explainer);
    marks_free(&m);
    return status;
}

static int end(struct trace *t)
{
    struct job *job = job_of(t);
    const struct explain_opts o = {.conn = t->conn, .files = t->files, .n_files = t->n_files};

    explain_end(job->explainer);
    (job->format == FORMAT_JSON ? explain_json : explain_text)(job->explainer, &o, &t->out);
    if (job->format == FORMAT_JSON && put_requests(job) != EXIT_OK)
        return EXIT_BAD;
    return job->annotate ? annotate(job) : EXIT_OK;
}

static void stop(struct trace *t)
{
    struct job *job = job_of(t);

    explain_free(job->explainer);
    meter_free(job->meter);
    buf_free(&job->row);
    if (job->requests)
        fclose(job->requests);
}

const struct trace_cmd explain_cmd = {.name = "explain",
                                      .size = sizeof(struct job),
                                      .defs = defs,
                                      .help = cmd_explain_help,
                                      .option = option,
                                      .start = start,
                                      .end = end,
                                      .stop = stop};

int cmd_explain(int argc, char **argv)
{
    return trace_main(&explain_cmd, argc, argv);
}
