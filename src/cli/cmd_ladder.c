/* layer 4 (tool): `rdmatrace ladder`: a connection as a sequence diagram. */
#include "dissect/pkt.h"
#include "src/cli/capture_cmd.h"
#include "src/cli/cli.h"
#include "src/cli/when.h"
#include "src/ladder/ladder.h"

#include <stdlib.h>

#define WIDTH_DEFAULT 110
#define WIDTH_MAX     400
#define LINES_DEFAULT 1000
#define AROUND        41 /* lines of --around if standard output is not a terminal */

enum {
    KEY_WIDTH = 256,
    KEY_AROUND,
    KEY_FROM,
    KEY_TO,
    KEY_NO_FOLD,
    KEY_HOSTS,
    KEY_ALIGN,
};

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    TRACE_CORES,
    TRACE_FILTER("draw"),
    {KEY_AROUND, "around", "FRAME",
     "draw the place of this frame: as many lines as the terminal has, or 20 before it and\n"
     "behind it; of several files FILE:FRAME, FILE being its name or number: FRAME counts in it, and alone\n"
     "in the first"},
    {KEY_FROM, "from", "TIME",
     "draw packets from this time on: seconds since the first frame, or a time as decode -t e,\n"
     "a or ad prints it; a time of day that ends with Z is UTC"},
    {KEY_TO, "to", "TIME", "draw packets up to this time"},
    {'c', "count", "N", "draw at most N lines (default 1000)"},
    {KEY_NO_FOLD, "no-fold", NULL, "a line for each packet, not one for a run of like ones"},
    {KEY_HOSTS, "hosts", NULL,
     "all connections between the two hosts of the connection; each packet names its queue pair"},
    {KEY_ALIGN, "align", "HOW",
     "clocks of two taps: auto (default) by packets that both saw, off, or FILE=OFFSET, such as\n"
     "b.pcap=+5ms: what the clock of FILE is ahead; may be repeated"},
    {KEY_WIDTH, "width", "COLUMNS", "width of the diagram, 40 to 400; else that of the terminal"},
    TRACE_OPTIONS_END,
};

void cmd_ladder_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmatrace ladder [options] FILE...\n\n"
                "Draw a connection as a sequence diagram: both ends, time, PSNs, lost and retransmitted packets "
                "(=).\nWithout --conn it is the connection with the worst trouble, or the first.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage or input that cannot be read.\n");
}

#define ALIGN_MAX 64

struct job {
    struct trace t;
    struct ladder *ladder;
    struct ladder_opts o;
    const char *around;
    struct when from, to;
    bool begun;
    const char *ahead[ALIGN_MAX]; /* arguments of --align */
    unsigned n_ahead;
    ns_t *offsets; /* by file: ns that its clock is ahead */
    uint64_t count, width;
};

static struct job *job_of(struct trace *t)
{
    return (struct job *)t;
}

/* Parse --align. "auto" and "off" are applied at once, offsets in FILE=OFFSET when all files are known. */
static int parse_align(struct job *job, const char *arg)
{
    if (strcmp(arg, "auto") == 0 || strcmp(arg, "off") == 0) {
        job->o.unaligned = arg[0] == 'o';
        job->n_ahead = 0;
        return EXIT_OK;
    }
    if (!strchr(arg, '=') || job->n_ahead == ALIGN_MAX)
        return cli_error("--align %s: expected auto, off, or FILE=OFFSET such as b.pcap=+5ms", arg);
    job->ahead[job->n_ahead++] = arg;
    job->o.unaligned = true;
    return EXIT_OK;
}

static int option(struct trace *t, int key, const char *arg)
{
    struct job *job = job_of(t);

    switch (key) {
    case KEY_AROUND:
        job->around = arg;
        return EXIT_OK;
    case KEY_FROM:
        return when_option("--from", arg, &job->from);
    case KEY_TO:
        return when_option("--to", arg, &job->to);
    case KEY_NO_FOLD:
        job->o.unfolded = true;
        return EXIT_OK;
    case KEY_HOSTS:
        job->o.hosts = true;
        return EXIT_OK;
    case KEY_ALIGN:
        return parse_align(job, arg);
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

static unsigned terminal_width(void)
{
    struct terminal t = terminal_size();

    return t.columns ? width_within(t.columns) : WIDTH_DEFAULT;
}

/* Lines of the terminal, less head and prompt; without a terminal AROUND. */
static uint64_t lines_around(void)
{
    struct terminal t = terminal_size();

    return t.rows > 10 ? t.rows - 4u : AROUND;
}

#define NO_FILE   (-1)
#define TWO_FILES (-2)

/* The number, from 0, of the file whose path is or ends with `name`, or whose number, from 1, it is; NO_FILE; or
 * TWO_FILES: the paths of several end with it. */
static int file_named(const struct trace *t, const char *name, size_t n)
{
    char number[12];
    uint64_t k;
    int found = NO_FILE;

    for (size_t i = 0; i < t->n_files; i++) {
        size_t len = strlen(t->files[i]);
        bool ends = len >= n && memcmp(t->files[i] + len - n, name, n) == 0;
        if (ends && len == n)
            return (int)i;
        if (ends && t->files[i][len - n - 1] == '/')
            found = found == NO_FILE ? (int)i : TWO_FILES;
    }
    snprintf(number, sizeof number, "%.*s", (int)min_u32((uint32_t)n, sizeof number - 1), name);
    if (found == NO_FILE && n < sizeof number && opt_number(number, 1, t->n_files, &k))
        return (int)k - 1;
    return found;
}

/* Why file_named() found none. */
static int not_named(const char *option, const char *value, int why)
{
    return why == TWO_FILES
               ? cli_error("%s %s: several files have this name: give its path or its number, from 1", option, value)
               : cli_error("%s %s: there is no file of this name or number among those read", option, value);
}

/* Parse --around: "FRAME", "FILE:FRAME", or "2/14", as decode shows frame 14 of file 2. */
static int take_around(struct job *job)
{
    const char *colon = strrchr(job->around, ':'), *slash = strchr(job->around, '/'), *frame;
    int file = 0;

    if (!colon && slash && strspn(job->around, "0123456789") == (size_t)(slash - job->around))
        colon = slash;
    frame = colon ? colon + 1 : job->around;
    if (!opt_number(frame, 1, UINT32_MAX, &job->o.around))
        return cli_error("--around %s: expected the number of a frame, or FILE:FRAME", job->around);
    if (colon)
        file = file_named(&job->t, job->around, (size_t)(colon - job->around));
    if (file < 0)
        return not_named("--around", job->around, file);
    job->o.around_file = (uint16_t)file;
    return EXIT_OK;
}

/* Parse an offset: "+5ms", "-120us", "3000ns", "1s". */
static bool parse_offset(const char *s, ns_t *ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end;
    double v = strtod(s, &end);

    for (unsigned i = 0; end != s && i < ARRAY_LEN(units); i++)
        if (strcmp(end, units[i].name) == 0 && v * units[i].ns < 9e18 && v * units[i].ns > -9e18) {
            *ns = (ns_t)(v * units[i].ns);
            return true;
        }
    return false;
}

static int take_offsets(struct job *job)
{
    struct trace *t = &job->t;

    job->o.ahead = job->offsets = calloc(t->n_files, sizeof *job->offsets);
    if (!job->offsets)
        return cli_error("out of memory");
    for (unsigned i = 0; i < job->n_ahead; i++) {
        const char *eq = strrchr(job->ahead[i], '=');
        int file = file_named(t, job->ahead[i], (size_t)(eq - job->ahead[i]));
        if (file < 0)
            return not_named("--align", job->ahead[i], file);
        if (!parse_offset(eq + 1, &job->offsets[file]))
            return cli_error("--align %s: expected an offset such as +5ms, -120us, 3000ns", job->ahead[i]);
    }
    return EXIT_OK;
}

static int start(struct trace *t)
{
    struct job *job = job_of(t);

    if ((job->around && take_around(job) != EXIT_OK) || take_offsets(job) != EXIT_OK)
        return EXIT_BAD;
    if (!job->count)
        job->count = job->around ? lines_around() : LINES_DEFAULT;
    job->o.conn = t->conn;
    job->o.lines = (uint32_t)job->count;
    job->o.files = t->files;
    job->ladder = ladder_new(t->observer, &job->o);
    return job->ladder ? EXIT_OK : cli_error("out of memory");
}

static void packet(struct trace *t, struct pkt *p, bool match)
{
    struct job *job = job_of(t);
    ns_t first = p->frame->ts;

    ladder_show(job->ladder, match);
    if (job->begun)
        return;
    job->begun = true;
    ladder_between(job->ladder, job->from.kind ? when_resolve(&job->from, first) : INT64_MIN,
                   job->to.kind ? when_resolve(&job->to, first) : INT64_MAX);
}

static int end(struct trace *t)
{
    const struct job *job = job_of(t);

    if (!ladder_reached(job->ladder))
        return cli_error("--around %s: there is no such frame", job->around);
    ladder_draw(job->ladder, job->width ? (unsigned)job->width : terminal_width(), &t->out);
    return EXIT_OK;
}

static void stop(struct trace *t)
{
    ladder_free(job_of(t)->ladder);
    free(job_of(t)->offsets);
}

TRACE_CMD(ladder, .option = option, .packet = packet, .filter_shows = true, .stop = stop)
