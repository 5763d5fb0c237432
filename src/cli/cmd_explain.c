/* layer 4 (tool): `rdmatrace explain`: what went wrong, in plain words. */
#include "src/cli/capture_cmd.h"
#include "src/cli/cli.h"
#include "src/explain/explain.h"

enum {
    KEY_CAUSES = 256,
};

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    TRACE_CONN("only connection N (its number is that of `rdmatrace decode` and `rdmatrace flows`)"),
    {KEY_CAUSES, "causes", NULL, "list the causes"},
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
    default: /* KEY_CAUSES */
        explain_causes(&t->out);
        t->answered = true;
        return EXIT_OK;
    }
}

static int start(struct trace *t)
{
    struct job *job = job_of(t);

    job->explainer = explain_new(t->observer);
    return job->explainer ? EXIT_OK : cli_error("out of memory");
}

static int end(struct trace *t)
{
    const struct job *job = job_of(t);
    const struct explain_opts o = {.conn = t->conn, .files = t->files, .n_files = t->n_files};

    explain_end(job->explainer);
    (job->format == FORMAT_JSON ? explain_json : explain_text)(job->explainer, &o, &t->out);
    return EXIT_OK;
}

static void stop(struct trace *t)
{
    explain_free(job_of(t)->explainer);
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
