/* layer 4 (tool): `rdmagen inject`: options and the forwarding loop. */
#include "gen/cli/inject_cli.h"
#include "gen/cli/live_run.h"
#include "gen/live/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const struct opt_def defs[] = {
    {OPT_EVENT, "an exact event, rdmagen-scenario(5): 'conn=1 dir=req psn=5 iter=2 drop';\nmay be repeated"},
    {OPT_WRITE, "record both sides, with what was done as comments of the packets: pcapng, interface 0\n"
                "is the port of IF1, interface 1 that of IF2"},
    {OPT_DURATION, "end after TIME, seconds or such as 500ms (when interrupted)"},
    {OPT_COUNT, "end when N frames have come in"},
    {OPT_SEED, "of the bits that corrupt flips (1)"},
    {OPT_JSON, "the result as JSON"},
    {OPT_VERBOSE, "tell each time that an event matches"},
    {OPT_PING_QUIET, "tell nothing but errors"},
    {OPT_HELP, "show this help"},
    {0, NULL, NULL, NULL},
};

static const struct opt_clash clashes[] = {{'v', 'q', 0, NULL}, {0, 0, 0, NULL}};

void cmd_inject_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmagen inject IF1 IF2 [options]\n\n"
                "Forward all frames between two interfaces, and apply exact events to RDMA packets. IF1 and IF2 are\n"
                "interfaces, or NAME:ARGS as in `rdmagen backends`, such as unix:OWN,PEER.\n\n");
    opt_help(b, defs);
    buf_puts(
        b,
        "\nExit status: 0; 1 if an event never matched a packet, or could not be applied to any; 2 for usage, or an\n"
        "interface or file that cannot be used.\n");
}

/* --- Opening and closing ---------------------------------------------------------------------- */

static void print_match(void *user, unsigned port, const char *note)
{
    struct inject *j = user;
    struct buf b = {0};

    buf_time(&b, j->f.epoch + j->f.now);
    buf_printf(&b, " %s: %s\n", j->f.name[port], note + strlen("rdmagen: "));
    cli_text(&b, STDOUT_FILENO);
    buf_free(&b);
}

/* Warn about a port without a peer, and about a port on which this host itself has an address. */
static void warn_of_port(const struct inject *j, unsigned port)
{
    const struct backend *k = j->f.backend[port];
    const char *name = j->f.name[port];
    uint8_t gid[16];

    if (k->ops->alone && k->ops->alone(k))
        cli_error("%s: no peer on this port", name);
    else if (!strchr(name, ':') &&
             (host_address(name, false, NULL, gid) == 0 || host_address(name, true, NULL, gid) == 0))
        cli_error("%s: this host has address %s on this port, and answers besides the two bridged hosts", name,
                  live_addr_str(gid));
}

static int open_all(struct inject *j)
{
    struct backend_error e;
    struct cap_error err;

    live_catch_signals();
    j->f.say = live_cli_say;
    j->f.count = j->count;
    j->f.matched = j->verbose ? print_match : NULL;
    j->f.user = j;
    if (j->file && forward_record(&j->f, j->file, 0, &err) < 0)
        return cli_error("%s: %s", j->file, err.msg);
    if (forward_open(&j->f, &e) < 0)
        return cli_error("%s", e.msg);
    host_drop_capabilities();
    warn_of_port(j, 0);
    warn_of_port(j, 1);
    return forward_begin(&j->f, j->events, j->seed) ? 0 : cli_error("out of memory");
}

/* Forward frames until the end: 0, or the exit status. */
static int forward(struct inject *j)
{
    struct forward *f = &j->f;
    ns_t end = j->duration ? f->start + j->duration : NS_NEVER;
    int r = 0;

    while (r == 0 && f->now < end && f->received < j->count)
        r = forward_step(f, end);
    forward_end(f);
    return r < 0 && r != -EINTR ? cli_error("the network failed: %s", strerror(-r)) : 0;
}

/* Close everything: 0, or the exit status. */
static int close_all(struct inject *j)
{
    struct cap_error err;
    uint64_t lost;
    int r = forward_record_end(&j->f, &lost, &err) < 0 ? cli_error("%s: %s", j->file, err.msg) : 0;

    forward_close(&j->f);
    return r;
}

/* --- Options ---------------------------------------------------------------------------------- */

static int add_event(struct inject *j, const char *arg)
{
    struct token t[EVENT_WORDS];
    unsigned n = text_split(arg, t, ARRAY_LEN(t));
    struct text_error e;

    if (n > ARRAY_LEN(t))
        return cli_error("--event '%s': too many words", arg);
    if (!event_add(j->events, t, n, arg, &e))
        return cli_error("--event '%s': column %u: %s", arg, e.col, e.msg);
    return 0;
}

static int option(void *job, int key, const char *arg)
{
    struct inject *j = job;

    switch (key) {
    case KEY_EVENT:
        return add_event(j, arg);
    case 'D':
        return live_time("-D", arg, false, &j->duration);
    case 'C':
        return live_number("-C", arg, 1, UINT64_MAX, &j->count);
    case KEY_SEED:
        return live_number("--seed", arg, 0, UINT64_MAX, &j->seed);
    case KEY_JSON:
        report_file_option(&j->json, arg);
        break;
    case 'w':
        j->file = arg;
        break;
    case 'v':
        j->verbose = true;
        break;
    case 'q':
        j->quiet = true;
        break;
    }
    return 0;
}

static int operands(void *job, int n, char **argv)
{
    struct inject *j = job;

    if (n != 2)
        return cli_error("inject: two interfaces are expected");
    j->f.name[0] = argv[0];
    j->f.name[1] = argv[1];
    if (strcmp(j->f.name[0], j->f.name[1]) == 0)
        return cli_error("inject: %s is given twice", j->f.name[0]);
    return 0;
}

int cmd_inject(int argc, char **argv)
{
    static const struct live_cmd cmd = {
        .defs = defs, .help = cmd_inject_help, .option = option, .operands = operands, .clashes = clashes};
    struct inject j = {.count = UINT64_MAX, .seed = 1, .events = event_list_new()};
    int r, e;

    if (!j.events || !event_learn(j.events)) {
        event_list_free(j.events);
        return cli_error("out of memory");
    }
    r = live_cmd_parse(&cmd, NULL, &j, argc, argv);
    if (r < 0) {
        r = report_file_open(&j.json);
        if (r == 0)
            r = open_all(&j);
        if (r == 0) {
            inject_begin(&j);
            r = forward(&j);
            e = inject_report(&j);
            r = r ? r : e;
        }
        e = close_all(&j);
        r = e ? e : r;
        if (r)
            report_file_fail(&j.json);
    }
    event_list_free(j.events);
    return r;
}
