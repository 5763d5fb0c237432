/* layer 4 (tool): `rdmatrace ladder`: a connection as a sequence diagram. */
#include "src/cli/capture_cmd.h"
#include "src/cli/cli.h"
#include "src/ladder/ladder.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_DEFAULT 110
#define WIDTH_MAX     400

enum {
    KEY_WIDTH = 256,
};

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    TRACE_CONN("draw connection N; else the one with the worst trouble, or the first"),
    {'c', "count", "N", "draw at most N packets (default 1000)"},
    {KEY_WIDTH, "width", "COLUMNS", "width of the diagram, 40 to 400; else that of the terminal"},
    TRACE_OPTIONS_END,
};

void cmd_ladder_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmatrace ladder [options] FILE...\n\n"
                "Draw a connection as a sequence diagram: both ends, time, PSNs, lost and retransmitted packets "
                "(=).\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage or input that cannot be read.\n");
}

struct job {
    struct trace t;
    struct ladder *ladder;
    uint64_t count, width;
};

static struct job *job_of(struct trace *t)
{
    return (struct job *)t;
}

static int option(struct trace *t, int key, const char *arg)
{
    struct job *job = job_of(t);

    switch (key) {
    case 'c':
        return opt_number(arg, 1, LADDER_ROWS_MAX, &job->count)
                   ? EXIT_OK
                   : cli_error("-c %s: expected a number from 1 to %d", arg, LADDER_ROWS_MAX);
    default: /* KEY_WIDTH */
        return opt_number(arg, LADDER_WIDTH_MIN, WIDTH_MAX, &job->width)
                   ? EXIT_OK
                   : cli_error("--width %s: expected a number from %d to %d", arg, LADDER_WIDTH_MIN, WIDTH_MAX);
    }
}

static unsigned width_within(uint64_t columns)
{
    return columns < LADDER_WIDTH_MIN ? LADDER_WIDTH_MIN : columns > WIDTH_MAX ? WIDTH_MAX : (unsigned)columns;
}

/* Columns of the terminal, or of COLUMNS. */
static unsigned terminal_width(void)
{
    const char *columns = getenv("COLUMNS");
    struct winsize w;
    uint64_t v;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col)
        return width_within(w.ws_col);
    return columns && opt_number(columns, 1, UINT32_MAX, &v) ? width_within(v) : WIDTH_DEFAULT;
}

static int start(struct trace *t)
{
    struct job *job = job_of(t);

    job->ladder = ladder_new(t->observer, t->conn, (uint32_t)job->count);
    return job->ladder ? EXIT_OK : cli_error("out of memory");
}

static int end(struct trace *t)
{
    const struct job *job = job_of(t);

    ladder_draw(job->ladder, job->width ? (unsigned)job->width : terminal_width(), &t->out);
    return EXIT_OK;
}

static void stop(struct trace *t)
{
    ladder_free(job_of(t)->ladder);
}

static void init(struct trace *t)
{
    job_of(t)->count = 1000;
}

static const struct trace_cmd ladder_cmd = {.name = "ladder",
                                            .size = sizeof(struct job),
                                            .init = init,
                                            .defs = defs,
                                            .help = cmd_ladder_help,
                                            .option = option,
                                            .start = start,
                                            .end = end,
                                            .stop = stop};

int cmd_ladder(int argc, char **argv)
{
    return trace_main(&ladder_cmd, argc, argv);
}
