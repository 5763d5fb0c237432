/* layer 4 (tool): `rdmatrace all`: check, explain, flows, ops and ladder in one reading of the files. */
#include "beside.h"
#include "src/cli/capture_cmd.h"
#include "src/cli/cli.h"

#include <stdlib.h>

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    TRACE_CORES,
    {'T', "format", "FORMAT", "text (default) or json"},
    TRACE_OPTIONS_END,
};

void cmd_all_help(struct buf *b)
{
    buf_puts(
        b,
        "Usage: rdmatrace all [options] FILE...\n\n"
        "Print what check, explain, flows, ops and ladder print, but read the files once: captures from a pipe and\n"
        "large ones take the time of one command. With -T json: one object with a member for each but ladder, which\n"
        "only draws.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 1 if a rule of severity error failed, 2 for usage or input that cannot be read.\n");
}

/* In the order of their output. */
static const struct trace_cmd *const parts[] = {&check_cmd, &explain_cmd, &flows_cmd, &ops_cmd, &ladder_cmd};
#define PARTS ARRAY_LEN(parts)

struct job {
    struct trace t;
    struct trace *part[PARTS];
    bool started[PARTS];
    unsigned n; /* parts that are run: those that have the format */
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

    (void)key; /* -T alone */
    return opt_choice("-T", arg, formats, &job->format);
}

/* Start one command on the files and the observer of `t`. */
static int start_part(struct trace *t, unsigned i)
{
    struct job *job = job_of(t);
    struct trace *p = job->part[i] = trace_new(parts[i]);

    if (!p || !(p->spool = beside_nameless()))
        return cli_error("%s: cannot keep its output: no memory, or no temporary file", parts[i]->name);
    p->files = t->files;
    p->n_files = t->n_files;
    p->iface = t->iface;
    p->decode = t->decode;
    p->observer = t->observer;
    p->memory = t->memory;
    p->conn = t->conn;
    if (job->format == FORMAT_JSON && parts[i]->option(p, 'T', "json") != EXIT_OK)
        return EXIT_BAD;
    if (parts[i]->start(p) != EXIT_OK)
        return EXIT_BAD;
    job->started[i] = true;
    t->judging = p->judging ? p->judging : t->judging;
    if (parts[i]->conns)
        conn_learn_all(parts[i]->conns(p), t->pairs, t->n_pairs);
    return EXIT_OK;
}

static int start(struct trace *t)
{
    struct job *job = job_of(t);
    int status = EXIT_OK;

    job->n = job->format == FORMAT_JSON ? PARTS - 1 : PARTS; /* the last one, ladder, has no JSON */
    for (unsigned i = 0; i < job->n && status == EXIT_OK; i++)
        status = start_part(t, i);
    return status;
}

static void judge(struct trace *t, const struct pkt *p)
{
    for (unsigned i = 0; i < job_of(t)->n; i++)
        if (parts[i]->judge)
            parts[i]->judge(job_of(t)->part[i], p);
}

static void packet(struct trace *t, struct pkt *p, bool match)
{
    for (unsigned i = 0; i < job_of(t)->n; i++)
        if (parts[i]->packet)
            parts[i]->packet(job_of(t)->part[i], p, match);
}

static void drops(struct trace *t, uint16_t file, uint64_t n)
{
    for (unsigned i = 0; i < job_of(t)->n; i++)
        if (parts[i]->drops)
            parts[i]->drops(job_of(t)->part[i], file, n);
}

/* Append the output of a part: what it wrote to its temporary file, then what it still holds. */
static void join(struct trace *t, struct trace *p)
{
    char piece[16384];
    size_t n;

    rewind(p->spool);
    while ((n = fread(piece, 1, sizeof piece, p->spool)) > 0) {
        buf_mem(&t->out, piece, n);
        trace_flush(t);
    }
    t->broken |= p->broken || ferror(p->spool);
    buf_mem(&t->out, p->out.p, p->out.len);
}

/* Append the results of one command. */
static int end_part(struct trace *t, unsigned i)
{
    struct job *job = job_of(t);
    struct trace *p = job->part[i];
    int status;

    p->failed = t->failed;
    p->unread = t->unread;
    p->frames = t->frames;
    p->ifaces = t->ifaces;
    p->file_ifaces = t->file_ifaces;
    status = parts[i]->end(p);
    if (job->format == FORMAT_JSON)
        buf_printf(&t->out, "%s\"%s\": ", i ? "," : "{", parts[i]->name);
    else
        buf_printf(&t->out, "%s=== %s\n", i ? "\n" : "", parts[i]->name);
    join(t, p);
    return status;
}

/* Append all results. Returns the worst of the exit statuses. */
static int end(struct trace *t)
{
    int worst = EXIT_OK;

    for (unsigned i = 0; i < job_of(t)->n; i++) {
        int status = end_part(t, i);
        worst = status > worst ? status : worst;
    }
    if (job_of(t)->format == FORMAT_JSON)
        buf_puts(&t->out, "}\n");
    return worst;
}

static void stop(struct trace *t)
{
    struct job *job = job_of(t);

    for (unsigned i = 0; i < job->n && job->part[i]; i++) {
        if (job->started[i])
            parts[i]->stop(job->part[i]);
        if (job->part[i]->spool)
            fclose(job->part[i]->spool);
        buf_free(&job->part[i]->out);
        free(job->part[i]);
    }
}

TRACE_CMD(all, .option = option, .judge = judge, .packet = packet, .drops = drops, .stop = stop)
