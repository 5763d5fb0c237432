/* layer 4 (tool): `rdmatrace ladder`: a connection as a sequence diagram. */
#include "src/cli/cli.h"
#include "src/cli/trace.h"
#include "src/trace/ladder.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_DEFAULT 110
#define WIDTH_MAX 400

enum {
    KEY_CONN = 256,
    KEY_WIDTH,
};

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    {KEY_CONN, "conn", "N", "draw connection N; else the one with the worst trouble, or the first"},
    {'c', "count", "N", "draw at most N packets (default 1000)"},
    {KEY_WIDTH, "width", "COLUMNS", "width of the diagram, 80 to 400; else that of the terminal"},
    {'h', "help", NULL, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_ladder_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmatrace ladder [options] FILE...\n\n"
                "Draw a connection as a sequence diagram: both ends, time, PSNs, what was lost and what was sent again (=).\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage or input that cannot be read.\n");
}

struct job {
    struct trace_input in;
    uint64_t conn, count, width;
    bool help;
};

static int parse(struct job *job, int key, const char *arg)
{
    switch (key) {
    case KEY_CONN:
        return opt_number(arg, 1, UINT32_MAX, &job->conn) ? EXIT_OK : cli_error("--conn %s: expected the number of a connection", arg);
    case 'c':
        return opt_number(arg, 1, LADDER_ROWS_MAX, &job->count) ? EXIT_OK : cli_error("-c %s: expected a number from 1 to %d", arg, LADDER_ROWS_MAX);
    case KEY_WIDTH:
        return opt_number(arg, LADDER_WIDTH_MIN, WIDTH_MAX, &job->width)
                   ? EXIT_OK
                   : cli_error("--width %s: expected a number from %d to %d", arg, LADDER_WIDTH_MIN, WIDTH_MAX);
    default:
        job->help |= key == 'h';
        return EXIT_OK;
    }
}

/* Columns of the terminal, or of COLUMNS. */
static unsigned terminal_width(void)
{
    const char *columns = getenv("COLUMNS");
    struct winsize w;
    uint64_t v;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col)
        return w.ws_col < WIDTH_MAX ? w.ws_col : WIDTH_MAX;
    return columns && opt_number(columns, LADDER_WIDTH_MIN, WIDTH_MAX, &v) ? (unsigned)v : WIDTH_DEFAULT;
}

static void on_packet(void *user, struct pkt *p)
{
    ladder_packet(user, p);
}

static int run(struct job *job, struct buf *b)
{
    struct ladder *l = ladder_new((uint32_t)job->conn, (uint32_t)job->count);
    struct trace_user u = {.user = l, .packet = on_packet};
    int status;

    if (!l)
        return cli_error("out of memory");
    trace_pairs(&job->in, ladder_conns(l));
    status = trace_read(&job->in, &u);
    ladder_draw(l, job->width ? (unsigned)job->width : terminal_width(), b);
    ladder_free(l);
    return status;
}

int cmd_ladder(int argc, char **argv)
{
    struct job job = {.count = 1000};
    struct opt_state s;
    struct buf b = {0};
    const char *arg;
    int key, operand = 0, status = EXIT_OK;

    if (!trace_start(&job.in, argc))
        return EXIT_BAD;
    opt_start(&s, defs, argc, argv);
    while (status == EXIT_OK && (key = opt_next(&s, &arg, &operand)) != 0) {
        if (key < 0)
            status = cli_error("ladder: `rdmatrace help ladder` lists the options");
        else if (!trace_option(&job.in, key, arg, &status))
            status = parse(&job, key, arg);
    }
    opt_end(&s);
    if (status == EXIT_OK && job.help)
        cmd_ladder_help(&b);
    else if (status == EXIT_OK)
        status = trace_operands(&job.in, "ladder", operand, argc, argv) == EXIT_OK ? run(&job, &b) : EXIT_BAD;
    if (cli_show(&b) != EXIT_OK)
        status = EXIT_BAD;
    trace_free(&job.in);
    return status;
}
