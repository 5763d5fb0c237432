/* layer 4 (tool): `rdmatrace diff`: two captures compared by what they mean. */
#include "src/analyses/analyses.h"
#include "src/cli/capture_cmd.h"
#include "src/cli/cli.h"
#include "src/diff/diff.h"
#include "src/measure/columns.h"

#include <math.h>
#include <stdlib.h>

enum {
    KEY_TOLERANCE = 256,
    KEY_MATCH,
};
#define TOLERANCE 10 /* percent */

static const struct opt_def defs[] = {
    TRACE_OPTIONS_FILES,
    TRACE_CORES,
    {KEY_TOLERANCE, "tolerance", "PERCENT", "how much a value of B may differ from that of A (10)"},
    {KEY_MATCH, "match", "HOW",
     "which directions are compared: those between the same addresses (addresses), the first with\n"
     "the first, the second with the second (order), or by address and then by order (auto, the\n"
     "default)"},
    {'T', "format", "FORMAT", "text (default) or json"},
    {'v', "verbose", NULL, "show the values that do not differ, too"},
    TRACE_OPTIONS_END,
};

static const struct opt_foreign foreign[] = {
    {'i', "interface", "other commands",
     "two files are compared; save the packets first: rdmatrace decode -i IFACE -w FILE", NULL},
    {0, NULL, NULL, NULL, NULL},
};

void cmd_diff_help(struct buf *b)
{
    buf_puts(
        b, "Usage: rdmatrace diff [options] A B\n\n"
           "Compare two captures by what they mean: of each connection and direction the operations, sizes and order\n"
           "of its work requests, retransmissions, latencies and what was lost; the rules that were broken; the\n"
           "incidents. For two adapters, firmwares or settings under the same load.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 1 if they differ beyond the tolerance, 2 for usage or input that cannot be read.\n");
}

/* --- One capture ------------------------------------------------------------------------------ */

/* The analyses of a capture, and the side that they fill. */
struct reading {
    struct analyses found;
    struct diff_side *side;
    bool begun;
};

static void on_over(void *user, const struct wqe *w, uint32_t flow)
{
    struct reading *r = user;

    diff_request(r->side, w, meter_row_of(r->found.meter, flow));
}

static int reading_start(struct reading *r, struct trace *t)
{
    struct analyses_opts o = trace_analyses(t);

    o.meter.work = (struct wqe_user){.user = r, .over = on_over};
    r->begun = true;
    if (!analyses_begin(&r->found, t->observer, &o))
        return cli_error("out of memory");
    t->judging = r->found.judge;
    return EXIT_OK;
}

static int reading_end(struct reading *r)
{
    struct meter_row **rows;
    size_t n;

    analyses_end(&r->found);
    rows = meter_rows(r->found.meter, &n);
    return diff_side_rows(r->side, rows, n, meter_totals(r->found.meter)) ? EXIT_OK : cli_error("out of memory");
}

/* Count what was found, of one connection or of all. */
static void reading_count(struct reading *r, uint32_t conn)
{
    diff_side_found(r->side, judge_findings(r->found.judge), r->found.explainer, conn);
}

static void reading_stop(struct reading *r)
{
    if (r->begun)
        analyses_free(&r->found);
}

/* --- The first capture ------------------------------------------------------------------------ */

struct first {
    struct trace t; /* first */
    struct reading reading;
};

static struct first *first_of(struct trace *t)
{
    return (struct first *)t;
}

static int first_start(struct trace *t)
{
    return reading_start(&first_of(t)->reading, t);
}

static void judge_first(struct trace *t, const struct pkt *p)
{
    analyses_packet(&first_of(t)->reading.found, p);
}

static void first_drops(struct trace *t, uint16_t file, uint64_t n)
{
    analyses_drops(&first_of(t)->reading.found, file, n);
}

static int first_end(struct trace *t)
{
    int status = reading_end(&first_of(t)->reading);

    if (status == EXIT_OK)
        reading_count(&first_of(t)->reading, t->conn);
    return status;
}

static void first_stop(struct trace *t)
{
    reading_stop(&first_of(t)->reading);
}

/* Read capture A, with the options of `t`. EXIT_BAD after a message; sets *cut if a part of it could be read. */
static int read_first(const struct trace *t, const char **file, struct diff_side *side, bool *cut)
{
    static const struct trace_cmd cmd = {.name = "diff",
                                         .size = sizeof(struct first),
                                         .start = first_start,
                                         .judge = judge_first,
                                         .drops = first_drops,
                                         .end = first_end,
                                         .stop = first_stop};
    struct first *f = (struct first *)trace_new(&cmd);
    int status;

    if (!f)
        return cli_error("out of memory");
    f->reading.side = side;
    f->t.conn = t->conn;
    f->t.memory = t->memory;
    f->t.cores = t->cores;
    f->t.joins = t->joins;
    f->t.n_pairs = t->n_pairs;
    memcpy(f->t.pairs, t->pairs, sizeof f->t.pairs);
    memcpy(f->t.pair_args, t->pair_args, sizeof f->t.pair_args);
    status = trace_other_files(&cmd, &f->t, file, 1, &t->decode);
    *cut = f->t.failed && f->t.frames;
    free(f);
    return *cut ? EXIT_OK : status;
}

/* --- The command ------------------------------------------------------------------------------ */

struct job {
    struct trace t; /* first */
    struct diff_opts o;
    enum { FORMAT_TEXT, FORMAT_JSON } format;
    const char *first; /* name of capture A */
    bool cut;          /* it could be read in part only */
    struct diff_side *a, *b;
    struct reading reading; /* of capture B */
};

static struct job *job_of(struct trace *t)
{
    return (struct job *)t;
}

static void init(struct trace *t)
{
    job_of(t)->o.tolerance = TOLERANCE;
}

static const char *const formats[] = {"text", "json", NULL};

static int take_tolerance(struct job *job, const char *arg)
{
    char *end;

    job->o.tolerance = strtod(arg, &end);
    if (end == arg || (*end && strcmp(end, "%") != 0) || !isfinite(job->o.tolerance) || job->o.tolerance < 0)
        return cli_error("--tolerance %s: expected a percentage, such as 5 or 0.5", arg);
    return EXIT_OK;
}

static int option(struct trace *t, int key, const char *arg)
{
    struct job *job = job_of(t);

    switch (key) {
    case KEY_TOLERANCE:
        return take_tolerance(job, arg);
    case KEY_MATCH:
        return opt_choice("--match", arg, diff_matches, &job->o.match);
    case 'T':
        return opt_choice("-T", arg, formats, &job->format);
    default: /* -v */
        job->o.verbose = true;
        return EXIT_OK;
    }
}

static int instead(struct trace *t)
{
    if (t->n_files != 2)
        return cli_error("diff: expected two captures, A and B, not %zu", t->n_files);
    return EXIT_OK;
}

static int start(struct trace *t)
{
    struct job *job = job_of(t);

    job->first = t->files[0];
    job->a = diff_side_new(t->files[0]);
    job->b = diff_side_new(t->files[1]);
    if (!job->a || !job->b)
        return cli_error("out of memory");
    if (read_first(t, &job->first, job->a, &job->cut) != EXIT_OK)
        return EXIT_BAD;
    t->files[0] = t->paths[0] = t->files[1]; /* the command itself reads B */
    t->n_files = 1;
    job->o.conn = t->conn;
    t->conn = 0; /* what it is in B its match says */
    job->reading.side = job->b;
    return reading_start(&job->reading, t);
}

static void judge(struct trace *t, const struct pkt *p)
{
    analyses_packet(&job_of(t)->reading.found, p);
}

static void drops(struct trace *t, uint16_t file, uint64_t n)
{
    analyses_drops(&job_of(t)->reading.found, file, n);
}

static int end(struct trace *t)
{
    struct job *job = job_of(t);
    struct diff *d;
    uint32_t conn = 0;
    int status = reading_end(&job->reading);

    if (status != EXIT_OK)
        return status;
    if (!(d = diff_new(job->a, job->b, &job->o)))
        return cli_error("out of memory");
    if (!job->o.conn || diff_conn_of_b(d, &conn))
        reading_count(&job->reading, conn);
    diff_compare(d);
    if (job->format == FORMAT_JSON)
        diff_json(d, &t->out);
    else
        diff_text(d, &t->out);
    status = job->cut ? EXIT_BAD : diff_differs(d) ? EXIT_FOUND : EXIT_OK;
    diff_free(d);
    return status;
}

static void stop(struct trace *t)
{
    reading_stop(&job_of(t)->reading);
    diff_side_free(job_of(t)->a);
    diff_side_free(job_of(t)->b);
}

TRACE_CMD(diff, .init = init, .option = option, .foreign = foreign, .instead = instead, .judge = judge, .drops = drops,
          .stop = stop, .compares = true)
