/* layer 4 (tool): `rdmatrace extract`: the memory that SENDs, WRITEs and READs carried, as files. */
#include "src/cli/capture_cmd.h"
#include "src/cli/cli.h"
#include "src/extract/extract.h"

#include <errno.h>
#include <sys/stat.h>

enum {
    KEY_MESSAGE = 256,
    KEY_REGION,
    KEY_FILES,
};

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    TRACE_CORES,
    {'o', "output", "DIR", "write the files into this directory, which is made if it does not exist"},
    {KEY_MESSAGE, "message", NULL, "a file for each SEND, WRITE and READ (default)"},
    {KEY_REGION, "region", NULL,
     "a file for each memory that an R_Key gave access to, with the latest that was\n"
     "written or read there"},
    {KEY_FILES, "files", "N", "at most N files (10000)"},
    {'T', "format", "FORMAT", "of the list of files: text (default) or json"},
    TRACE_OPTIONS_END,
};

void cmd_extract_help(struct buf *b)
{
    buf_puts(b,
             "Usage: rdmatrace extract -o DIR [options] FILE...\n\n"
             "Write what SENDs, WRITEs and READs carried into files, and list these. What the capture lacks is 0 in\n"
             "them, and named in the list.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage, input that cannot be read, or files that cannot be written.\n");
}

struct job {
    struct trace t; /* first */
    struct extract_opts o;
    struct extract *extract;
    struct meter *meter;
};

static struct job *job_of(struct trace *t)
{
    return (struct job *)t;
}

static void init(struct trace *t)
{
    job_of(t)->o.files = EXTRACT_FILES;
}

static const char *const formats[] = {"text", "json", NULL};

static int option(struct trace *t, int key, const char *arg)
{
    struct job *job = job_of(t);
    unsigned format;

    switch (key) {
    case 'o':
        job->o.dir = arg;
        return EXIT_OK;
    case KEY_FILES:
        return opt_number(arg, 1, 100000000, &job->o.files)
                   ? EXIT_OK
                   : cli_error("--files %s: expected a number from 1 to 100000000", arg);
    case 'T':
        if (opt_choice("-T", arg, formats, &format) != EXIT_OK)
            return EXIT_BAD;
        job->o.json = format == 1;
        return EXIT_OK;
    default:
        job->o.regions = key == KEY_REGION;
        return EXIT_OK;
    }
}

static const struct opt_clash clashes[] = {
    {KEY_MESSAGE, KEY_REGION, 0, NULL},
    {0, 0, 0, NULL},
};

/* 0: not known, or a datagram */
static uint32_t pmtu_of(const struct job *job, const struct wqe *w, uint32_t flow)
{
    const struct req_dir *h = w->service == SVC_UD ? NULL : observer_req_dir(job->t.observer, flow);

    return h ? h->pmtu : 0;
}

static void on_packet(void *user, const struct wqe *w, const struct pkt *p, uint32_t flow)
{
    struct job *job = user;

    extract_packet(job->extract, w, p, meter_row_of(job->meter, flow), pmtu_of(job, w, flow));
}

static void on_over(void *user, const struct wqe *w, uint32_t flow)
{
    (void)flow;
    extract_over(((struct job *)user)->extract, w);
}

static void flush(void *user)
{
    trace_flush(user);
}

static int instead(struct trace *t)
{
    return job_of(t)->o.dir ? EXIT_OK : cli_error("extract: -o DIR is needed: where to write");
}

static int start(struct trace *t)
{
    struct job *job = job_of(t);
    const struct meter_opts o = {.files = t->files, .work = {.user = job, .packet = on_packet, .over = on_over}};

    if (mkdir(job->o.dir, 0777) != 0 && errno != EEXIST)
        return cli_error("%s: %s", job->o.dir, strerror(errno));
    job->o.conn = t->conn;
    job->o.memory = t->memory;
    job->o.out = &t->out;
    job->o.flush = flush;
    job->o.user = t;
    if (!(job->extract = extract_new(&job->o)) || !(job->meter = meter_new(t->observer, &o)))
        return cli_error("out of memory");
    return EXIT_OK;
}

/* A line for what is not in the files. */
static int report(const struct job *job, const struct extract_sums *s)
{
    if (s->error)
        return cli_error("%s/%s: %s", job->o.dir, s->failed, strerror(s->error));
    if (s->left_out)
        return cli_error("extract: %s not written: more than %llu; choose with --conn, or give --files",
                         count_str(s->left_out, job->o.regions ? "region" : "message"),
                         (unsigned long long)job->o.files);
    if (s->no_memory)
        return cli_error(
            "extract: the regions, or their lists of holes, lack what there was no memory for: give more --memory");
    return EXIT_OK;
}

static int end(struct trace *t)
{
    struct job *job = job_of(t);
    struct extract_sums s;

    meter_end(job->meter);
    s = extract_end(job->extract);
    if (job->o.json)
        buf_puts(&t->out, s.files ? "\n]\n" : "[]\n");
    else if (!s.files)
        buf_puts(&t->out, "No bytes of SENDs, WRITEs or READs over RoCE or InfiniBand are in the capture; of iWARP "
                          "none are extracted.\n");
    else
        buf_printf(&t->out, "%s in %s, %s missing.\n", count_str(s.bytes, "byte"), count_str(s.files, "file"),
                   count_str(s.missing, "byte"));
    return report(job, &s);
}

static void stop(struct trace *t)
{
    meter_free(job_of(t)->meter);
    extract_free(job_of(t)->extract);
}

TRACE_CMD(extract, .init = init, .option = option, .instead = instead, .stop = stop, .clashes = clashes)
