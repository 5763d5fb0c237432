/* layer 4 (tool): `rdmatrace flows`: connections measured. */
#include "src/cli/cli.h"
#include "src/cli/trace.h"
#include "src/trace/flows.h"

#include <stdlib.h>
#include <unistd.h>

#define FLUSH_AT 65536

enum {
    KEY_SORT = 256,
    KEY_INTERVAL,
};

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    {'Y', "display-filter", "FILTER", "count only packets that match this display filter (rdmatrace-filter(7))"},
    {KEY_SORT, "sort", "KEY", "conn (default), bytes, packets, goodput or again (packets sent again)"},
    {KEY_INTERVAL, "interval", "TIME", "also a line for each flow and interval: a number and us, ms or s"},
    {'T', "format", "FORMAT", "text (default), json or csv"},
    {'h', "help", NULL, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_flows_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmatrace flows [options] FILE...\n\n"
                "Measure connections: for the requests of each direction packets, bytes, messages, goodput, recovery, latencies,\n"
                "and what was agreed on beside what was seen.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage or input that cannot be read.\n");
}

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV };

struct job {
    struct trace_input in;
    struct flows *flows;
    struct buf out;
    ns_t interval;
    enum flows_sort sort;
    enum format format;
    bool help;
};

static int parse_interval(struct job *job, const char *arg)
{
    char *end;
    double v = strtod(arg, &end);
    double unit = strcmp(end, "us") == 0 ? 1e3 : strcmp(end, "ms") == 0 ? 1e6 : strcmp(end, "s") == 0 ? 1e9 : 0;

    if (unit == 0 || !(v * unit >= 1000) || v * unit > 1e18)
        return cli_error("--interval %s: expected a number and us, ms or s, at least 1us", arg);
    job->interval = (ns_t)(v * unit);
    return EXIT_OK;
}

static int parse(struct job *job, int key, const char *arg)
{
    switch (key) {
    case 'Y':
        return trace_filter(&job->in, arg);
    case KEY_SORT:
        return flows_sort_parse(arg, &job->sort) ? EXIT_OK : cli_error("--sort %s: expected conn, bytes, packets, goodput or again", arg);
    case KEY_INTERVAL:
        return parse_interval(job, arg);
    case 'T':
        if (strcmp(arg, "text") != 0 && strcmp(arg, "json") != 0 && strcmp(arg, "csv") != 0)
            return cli_error("-T %s: expected text, json or csv", arg);
        job->format = *arg == 'j' ? FORMAT_JSON : *arg == 'c' ? FORMAT_CSV : FORMAT_TEXT;
        return EXIT_OK;
    default:
        job->help |= key == 'h';
        return EXIT_OK;
    }
}

static void on_packet(void *user, struct pkt *p)
{
    struct job *job = user;

    flows_packet(job->flows, p);
    if (UNLIKELY(job->out.len > FLUSH_AT))
        cli_flush(&job->out, STDOUT_FILENO);
}

static int run(struct job *job)
{
    struct trace_user u = {.user = job, .packet = on_packet};
    int status;

    if (job->interval && job->format != FORMAT_TEXT)
        return cli_error("flows: --interval needs -T text");
    job->flows = flows_new(job->interval, &job->out);
    if (!job->flows)
        return cli_error("out of memory");
    trace_pairs(&job->in, flows_conns(job->flows));
    status = trace_read(&job->in, &u);
    flows_end(job->flows, job->sort);
    if (job->format == FORMAT_JSON)
        flows_json(job->flows, &job->out);
    else if (job->format == FORMAT_CSV)
        flows_csv(job->flows, &job->out);
    else
        flows_text(job->flows, &job->out);
    flows_free(job->flows);
    return status;
}

int cmd_flows(int argc, char **argv)
{
    struct job job = {0};
    struct opt_state s;
    const char *arg;
    int key, operand = 0, status = EXIT_OK;

    if (!trace_start(&job.in, argc))
        return EXIT_BAD;
    opt_start(&s, defs, argc, argv);
    while (status == EXIT_OK && (key = opt_next(&s, &arg, &operand)) != 0) {
        if (key < 0)
            status = cli_error("flows: `rdmatrace help flows` lists the options");
        else if (!trace_option(&job.in, key, arg, &status))
            status = parse(&job, key, arg);
    }
    if (status == EXIT_OK && job.help)
        cmd_flows_help(&job.out);
    else if (status == EXIT_OK)
        status = trace_operands(&job.in, "flows", operand, argc, argv) == EXIT_OK ? run(&job) : EXIT_BAD;
    if (!cli_flush(&job.out, STDOUT_FILENO))
        status = EXIT_BAD;
    buf_free(&job.out);
    trace_free(&job.in);
    return status;
}
