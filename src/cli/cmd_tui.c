/* layer 4 (tool): `rdmatrace tui`: the terminal UI. */
#include "src/tui/tui.h"

#include "dissect/pkt.h"
#include "src/cap/merge.h"
#include "src/cli/capture_cmd.h"
#include "src/cli/cli.h"
#include "src/cli/found.h"
#include "src/tui/keep.h"
#include "src/tui/keys.h"
#include "src/tui/layout.h"
#include "tokens.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    KEY_RING = 256,
    KEY_INDEX,
    KEY_ASCII,
    KEY_NO_MOUSE,
    KEY_COPY,
    KEY_KEYS,
    KEY_SCREEN,
    KEY_SLICE,
    KEY_DUMP,
    KEY_MAN,
};

#define COLUMNS_DEFAULT 80
#define ROWS_DEFAULT    24
#define INDEX_MEMORY    (UINT64_C(256) << 20)
#define BINDINGS_MAX    65536 /* bytes of the file of keys that are read */

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    {KEY_RING, "ring", "N", "with -i: keep the latest N packets, at least; default all"},
    {KEY_INDEX, "index-memory", "SIZE",
     "memory for the index of packets, about 10 bytes each; more is kept in a file (256M)"},
    COLOR_OPTION,
    {KEY_ASCII, "ascii", NULL, "no character outside ASCII; without it where the locale is not UTF-8"},
    {KEY_NO_MOUSE, "no-mouse", NULL, "leave the mouse to the terminal"},
    {KEY_COPY, "copy", "COMMAND", "what is copied goes to this command, not to the terminal's clipboard"},
    {KEY_KEYS, "keys", "KEYS", "press these keys, separated by spaces, without a terminal"},
    {KEY_SCREEN, "screen", "SIZE", "with --keys: size of the screen, COLUMNSxROWS (80x24)"},
    {KEY_SLICE, "slice", "N", "with --keys: press a key after each N packets, not when all were read"},
    {KEY_DUMP, "dump", NULL, "with --keys: print the screen at the end"},
    {KEY_MAN, "list-keys", NULL, "list the keys for the manual page"},
    TRACE_OPTIONS_END,
};

void cmd_tui_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmatrace tui [options] FILE...\n\n"
                "Look around in a capture on the terminal: packets with fields and bytes, ladder, connections, work\n"
                "requests, verdicts and incidents; ? shows the keys.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage, input that cannot be read, or a terminal that shows no screens.\n");
}

struct job {
    struct trace t;
    struct tui_opts o;
    struct tui *tui;
    struct buf dumped, bindings, bindings_file, filter;
    bool dump;
};

static struct job *job_of(struct trace *t)
{
    return (struct job *)t;
}

static void init(struct trace *t)
{
    struct term_opts *o = &job_of(t)->o.term;

    cli_color("auto", &o->color);
    o->mouse = true;
    o->ascii = !cli_utf8();
    job_of(t)->o.index_memory = INDEX_MEMORY;
    o->columns = COLUMNS_DEFAULT;
    o->rows = ROWS_DEFAULT;
}

static int parse_screen(struct term_opts *o, const char *arg)
{
    char end;

    if (sscanf(arg, "%3ux%3u%c", &o->columns, &o->rows, &end) == 2 && o->columns && o->rows &&
        o->columns <= SCREEN_COLUMNS_MAX && o->rows <= SCREEN_ROWS_MAX)
        return EXIT_OK;
    return cli_error("--screen %s: expected a size such as 80x24, at most %dx%d", arg, SCREEN_COLUMNS_MAX,
                     SCREEN_ROWS_MAX);
}

static int parse_index_memory(struct tui_opts *o, const char *arg)
{
    const struct token size = {arg, (uint32_t)strlen(arg), 0};

    if (token_size(&size, &o->index_memory) && o->index_memory <= UINT64_C(1) << 40)
        return EXIT_OK;
    return cli_error("--index-memory %s: expected a size such as 256M, at most 1024G", arg);
}

static int option(struct trace *t, int key, const char *arg)
{
    struct job *job = job_of(t);

    switch (key) {
    case KEY_RING:
        return opt_number(arg, 1, UINT64_C(1) << 40, &job->o.ring)
                   ? EXIT_OK
                   : cli_error("--ring %s: expected a number of packets", arg);
    case KEY_INDEX:
        return parse_index_memory(&job->o, arg);
    case KEY_SLICE:
        return opt_number(arg, 1, UINT64_C(1) << 40, &job->o.slice)
                   ? EXIT_OK
                   : cli_error("--slice %s: expected a number of packets", arg);
    case KEY_COLOR:
        return cli_color(arg, &job->o.term.color);
    case KEY_COPY:
        job->o.copy = arg;
        return EXIT_OK;
    case KEY_KEYS:
        job->o.script = arg;
        return EXIT_OK;
    case KEY_SCREEN:
        return parse_screen(&job->o.term, arg);
    case KEY_MAN:
        keys_man(&t->out);
        t->answered = true;
        return EXIT_OK;
    default:
        job->o.term.ascii |= key == KEY_ASCII;
        job->o.term.mouse &= key != KEY_NO_MOUSE;
        job->dump |= key == KEY_DUMP;
        return EXIT_OK;
    }
}

static const struct opt_clash clashes[] = {
    {KEY_RING, -'i', 0, NULL},
    {KEY_SCREEN, -KEY_KEYS, 0, NULL},
    {KEY_SLICE, -KEY_KEYS, 0, NULL},
    {KEY_DUMP, -KEY_KEYS, 0, NULL},
    {0, 0, 0, NULL},
};

/* --- Callbacks of the UI ---------------------------------------------------------------------- */

static void decode(void *user, struct pkt *p, const struct frame *f)
{
    const struct trace *t = user;

    pkt_decode(p, f, &t->decode);
    networks_apply(t->first.networks, p);
}

static uint64_t place(void *user, const struct frame *f)
{
    const struct trace *t = user;
    const struct cap_info *i = cap_info(cap_merge_file(t->in, f->file));
    bool again = i->format != CAP_LIVE && i->compression == CAP_PLAIN && i->size && strcmp(t->files[f->file], "-") != 0;

    return again ? cap_data_offset(i, f) : KEEP_BYTES;
}

static void mark(void *user, struct marks *m, const struct findings *findings, const struct explainer *explainer)
{
    (void)user;
    found_findings(m, findings, false);
    found_incidents(m, explainer, 0);
    marks_sort(m);
}

static double progress(void *user)
{
    const struct trace *t = user;
    uint64_t size = 0, consumed = 0;

    for (size_t i = 0; t->in && i < cap_merge_count(t->in); i++) {
        const struct cap_info *info = cap_info(cap_merge_file(t->in, i));
        if (!info->size)
            return -1;
        size += info->size;
        consumed += info->consumed;
    }
    return size ? (double)consumed / (double)size : -1;
}

/* --- The command ------------------------------------------------------------------------------ */

/* Read ~/.config/rdmatrace/keys, if there is one. */
static void read_bindings(struct job *job)
{
    const char *home = getenv("XDG_CONFIG_HOME"), *suffix = "/rdmatrace/keys";
    FILE *f;

    if (!home || !*home) {
        home = getenv("HOME");
        suffix = "/.config/rdmatrace/keys";
    }
    buf_printf(&job->bindings_file, "%s%s", home ? home : "", suffix);
    f = home ? fopen(buf_str(&job->bindings_file), "re") : NULL;
    if (!f)
        return;
    if (buf_need(&job->bindings, BINDINGS_MAX))
        job->bindings.len = fread(job->bindings.p, 1, BINDINGS_MAX, f);
    fclose(f);
    job->o.bindings = buf_str(&job->bindings);
    job->o.bindings_file = buf_str(&job->bindings_file);
}

/* Whether there is a terminal that shows screens. False after a message. */
static bool has_terminal(const struct job *job)
{
    if (job->o.script || term_is_there())
        return true;
    cli_error("tui: no terminal that shows screens; `rdmatrace decode` and `rdmatrace all` print the same as text");
    return false;
}

static void idle(struct trace *t)
{
    t->enough |= !tui_idle(job_of(t)->tui);
}

static int start(struct trace *t)
{
    struct job *job = job_of(t);
    struct tui_opts *o = &job->o;

    if (!has_terminal(job))
        return EXIT_BAD;
    read_bindings(job);
    if (!o->script && terminal_size().columns)
        o->term.columns = terminal_size().columns;
    o->term.none = o->script != NULL;
    o->files = t->files;
    o->n_files = t->n_files;
    o->analyses = trace_analyses(t);
    o->live = t->iface != NULL;
    if (t->conn)
        buf_printf(&job->filter, "rdma.conn == %u", t->conn);
    o->filter = t->conn ? buf_str(&job->filter) : NULL;
    o->dump = job->dump ? &job->dumped : NULL;
    o->user = t;
    o->decode = decode;
    o->place = place;
    o->mark = mark;
    o->progress = progress;
    job->tui = tui_new(o, t->observer);
    t->notes = true;
    return job->tui ? EXIT_OK : EXIT_BAD;
}

static void packet(struct trace *t, struct pkt *p, bool match)
{
    (void)match; /* no -Y */
    t->enough |= !tui_packet(job_of(t)->tui, p, t->decoded);
}

static void drops(struct trace *t, uint16_t file, uint64_t n)
{
    tui_drops(job_of(t)->tui, file, n);
}

static int end(struct trace *t)
{
    struct job *job = job_of(t);

    tui_end(job->tui, t->failed, t->ifaces);
    if (term_signal() == SIGTERM || term_signal() == SIGHUP) {
        signal(term_signal(), SIG_DFL);
        raise(term_signal());
    }
    buf_mem(&t->out, job->dumped.p, job->dumped.len);
    return EXIT_OK;
}

static void stop(struct trace *t)
{
    struct job *job = job_of(t);

    tui_free(job->tui);
    buf_free(&job->dumped);
    buf_free(&job->filter);
    buf_free(&job->bindings);
    buf_free(&job->bindings_file);
}

TRACE_CMD(tui, .init = init, .option = option, .packet = packet, .idle = idle, .pipes = true, .drops = drops,
          .stop = stop, .clashes = clashes)
