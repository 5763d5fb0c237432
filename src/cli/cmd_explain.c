/* layer 4 (tool): `rdmatrace explain`: what went wrong, in plain words. */
#include "src/cli/cli.h"
#include "src/cli/trace.h"
#include "src/trace/explain.h"


enum {
    KEY_CONN = 256,
    KEY_CAUSES,
};

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    {KEY_CONN, "conn", "N", "only connection N (its number is that of `rdmatrace decode` and `rdmatrace flows`)"},
    {KEY_CAUSES, "causes", NULL, "list the causes that are told apart"},
    {'T', "format", "FORMAT", "text (default) or json"},
    {'h', "help", NULL, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_explain_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmatrace explain [options] FILE...\n\n"
                "Say what went wrong in captures, worst first: which packets were lost and where, who stopped answering, what\n"
                "the recovery cost, and what to look at next.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage or input that cannot be read.\n");
}

struct job {
    struct trace_input in;
    uint64_t conn;
    bool json, help, causes;
};

static int parse(struct job *job, int key, const char *arg)
{
    switch (key) {
    case KEY_CONN:
        return opt_number(arg, 1, UINT32_MAX, &job->conn) ? EXIT_OK : cli_error("--conn %s: expected the number of a connection", arg);
    case 'T':
        job->json = strcmp(arg, "json") == 0;
        return job->json || strcmp(arg, "text") == 0 ? EXIT_OK : cli_error("-T %s: expected text or json", arg);
    default:
        job->causes |= key == KEY_CAUSES;
        job->help |= key == 'h';
        return EXIT_OK;
    }
}

static void on_packet(void *user, struct pkt *p)
{
    explain_packet(user, p);
}

static int run(struct job *job, struct buf *b)
{
    struct explainer *x = explain_new();
    struct trace_user u = {.user = x, .packet = on_packet};
    int status;

    if (!x)
        return cli_error("out of memory");
    trace_pairs(&job->in, explain_conns(x));
    status = trace_read(&job->in, &u);
    explain_end(x);
    if (job->json)
        explain_json(x, (uint32_t)job->conn, b);
    else
        explain_text(x, (uint32_t)job->conn, b);
    explain_free(x);
    return status;
}

int cmd_explain(int argc, char **argv)
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
            status = cli_error("explain: `rdmatrace help explain` lists the options");
        else if (!trace_option(&job.in, key, arg, &status))
            status = parse(&job, key, arg);
    }
    opt_end(&s);
    if (status == EXIT_OK && job.help)
        cmd_explain_help(&b);
    else if (status == EXIT_OK && job.causes)
        explain_causes(&b);
    else if (status == EXIT_OK)
        status = trace_operands(&job.in, "explain", operand, argc, argv) == EXIT_OK ? run(&job, &b) : EXIT_BAD;
    if (cli_show(&b) != EXIT_OK)
        status = EXIT_BAD;
    trace_free(&job.in);
    return status;
}
