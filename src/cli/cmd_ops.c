/* layer 4 (tool): `rdmatrace ops`: the work requests behind the packets. */
#include "src/cli/cli.h"
#include "src/cli/trace.h"
#include "src/trace/ops.h"

#include <unistd.h>

#define FLUSH_AT 65536

enum {
    KEY_FOLLOW = 256,
};

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    {'Y', "display-filter", "FILTER", "look only at packets that match this display filter (rdmatrace-filter(7))"},
    {KEY_FOLLOW, "follow", "N", "show work request N with all its packets"},
    {'T', "format", "FORMAT", "text (default), json or csv"},
    {'h', "help", NULL, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_ops_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmatrace ops [options] FILE...\n\n"
                "Show the verbs behind the packets: a row for each work request, when it is over.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage or input that cannot be read.\n");
}

struct job {
    struct trace_input in;
    struct ops *ops;
    struct buf out, lines;
    uint64_t follow;
    uint64_t rows;
    char format; /* 't', 'j' or 'c' */
    bool help;
};

static int parse(struct job *job, int key, const char *arg)
{
    switch (key) {
    case 'Y':
        return trace_filter(&job->in, arg);
    case KEY_FOLLOW:
        return opt_number(arg, 1, UINT64_MAX, &job->follow) ? EXIT_OK : cli_error("--follow %s: expected the number of a work request", arg);
    case 'T':
        if (strcmp(arg, "text") != 0 && strcmp(arg, "json") != 0 && strcmp(arg, "csv") != 0)
            return cli_error("-T %s: expected text, json or csv", arg);
        job->format = *arg;
        return EXIT_OK;
    default:
        job->help |= key == 'h';
        return EXIT_OK;
    }
}

static void on_op(void *user, const struct op *op)
{
    struct job *job = user;

    if (job->follow && op->number != job->follow)
        return;
    if (job->format == 'j') {
        buf_puts(&job->out, job->rows ? ",\n" : "\n");
        op_json(&job->out, op);
    } else if (job->format == 'c') {
        op_csv(&job->out, op);
    } else {
        op_text(&job->out, op);
    }
    job->rows++;
}

static void on_packet(void *user, struct pkt *p)
{
    struct job *job = user;

    ops_packet(job->ops, p);
    if (UNLIKELY(job->out.len > FLUSH_AT))
        cli_flush(&job->out, STDOUT_FILENO);
}

static int run(struct job *job)
{
    struct trace_user u = {.user = job, .packet = on_packet};
    int status;

    job->ops = ops_new(on_op, job, job->follow, &job->lines);
    if (!job->ops)
        return cli_error("out of memory");
    trace_pairs(&job->in, ops_conns(job->ops));
    if (job->format == 'j')
        buf_puts(&job->out, "[");
    else if (job->format == 'c')
        op_csv_head(&job->out);
    else
        op_text_head(&job->out);
    status = trace_read(&job->in, &u);
    ops_end(job->ops);
    if (job->format == 'j')
        buf_puts(&job->out, "]\n");
    if (job->format == 't')
        buf_mem(&job->out, job->lines.p, job->lines.len);
    ops_free(job->ops);
    if (job->follow && !job->rows && status == EXIT_OK)
        status = cli_error("ops: there is no work request %llu", (unsigned long long)job->follow);
    return status;
}

int cmd_ops(int argc, char **argv)
{
    struct job job = {.format = 't'};
    struct opt_state s;
    const char *arg;
    int key, operand = 0, status = EXIT_OK;

    if (!trace_start(&job.in, argc))
        return EXIT_BAD;
    opt_start(&s, defs, argc, argv);
    while (status == EXIT_OK && (key = opt_next(&s, &arg, &operand)) != 0) {
        if (key < 0)
            status = cli_error("ops: `rdmatrace help ops` lists the options");
        else if (!trace_option(&job.in, key, arg, &status))
            status = parse(&job, key, arg);
    }
    if (status == EXIT_OK && job.help)
        cmd_ops_help(&job.out);
    else if (status == EXIT_OK)
        status = trace_operands(&job.in, "ops", operand, argc, argv) == EXIT_OK ? run(&job) : EXIT_BAD;
    if (!cli_flush(&job.out, STDOUT_FILENO))
        status = EXIT_BAD;
    buf_free(&job.out);
    buf_free(&job.lines);
    trace_free(&job.in);
    return status;
}
