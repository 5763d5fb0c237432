/* layer 4 (tool): common part of the live subcommands. */
#include "gen/cli/live_run.h"

#include <stdlib.h>

#define HELP (-2) /* in place of an exit status: --help was given */

/* Read -s, -q or -6; false: another option. */
static bool side_option(struct live_run *run, int key)
{
    switch (key) {
    case 's':
        run->server = true;
        return true;
    case 'q':
        run->quiet = true;
        return true;
    case '6':
        run->config.want6 = true;
        return true;
    default:
        return false;
    }
}

static int option(const struct live_cmd *cmd, struct live_run *run, void *job, int key, const char *arg)
{
    bool mine = false;
    int r = 0;

    if (key < 0 || key == 'h')
        return key < 0 ? EXIT_BAD : HELP;
    if (run)
        r = live_option(&run->config, key, arg, &mine);
    if (mine || (cmd->sides && side_option(run, key)))
        return r;
    return cmd->option(job, key, arg);
}

/* Refuse combinations of options without a meaning: 0 or the exit status. */
static int refuse(const struct live_cmd *cmd, const struct live_run *run, const void *job, const struct opt_state *s)
{
    static const struct opt_clash common[] = {{KEY_MAC, -KEY_ADDR, 0, NULL}, {0, 0, 0, NULL}};
    static const struct opt_clash sides[] = {{'6', 0, AS_CLIENT, "is for the server (-s): HOST tells the family"},
                                             {0, 0, 0, NULL}};
    unsigned cases = (cmd->cases ? cmd->cases(job) : 0) | (cmd->sides ? run->server ? AS_SERVER : AS_CLIENT : 0);
    int r = run ? opt_refuse(s, common, cases) : 0;

    if (r == 0 && cmd->sides)
        r = opt_refuse(s, sides, cases);
    return r ? r : opt_refuse(s, cmd->clashes, cases);
}

int live_cmd_parse(const struct live_cmd *cmd, struct live_run *run, void *job, int argc, char **argv)
{
    int key, operand = argc, r = 0;
    struct opt_state s;
    struct buf b = {0};
    const char *arg;

    opt_start(&s, cmd->defs, argc, argv);
    s.foreign = cmd->foreign;
    while (r == 0 && (key = opt_next(&s, &arg, &operand)) != 0)
        r = option(cmd, run, job, key, arg);
    if (r == 0)
        r = refuse(cmd, run, job, &s);
    opt_end(&s);
    if (r == HELP) {
        cmd->help(&b);
        return cli_show(&b);
    }
    if (r == 0 && cmd->begin)
        r = cmd->begin(job);
    if (r == 0)
        r = cmd->operands(job, argc - operand, argv + operand);
    return r ? r : -1;
}

int live_cmd_host(struct live_run *run, const char *host)
{
    const char *scope = strchr(host, '%'); /* the interface of a link-local IPv6 address */

    if (!live_parse_host(host, run->gid))
        return cli_error("%s is no address, and no host of this name is known", host);
    if (scope && run->config.iface && strcmp(scope + 1, run->config.iface) != 0)
        return cli_error("%s is an address on another interface than %s (-I)", host, run->config.iface);
    if (scope)
        run->config.iface = scope + 1;
    run->host = host;
    run->config.peer = run->gid;
    return 0;
}

int live_cmd_peer(void *job, int n, char **argv)
{
    struct live_run *run = job;

    if (run->server)
        return n == 0 ? 0 : cli_error("%s -s takes no HOST", run->name);
    return n == 1 ? live_cmd_host(run, argv[0]) : cli_error("%s: one HOST is expected (or -s)", run->name);
}

int live_cmd_cores(struct live_run *run, const char *arg)
{
    return live_number32("-j", arg, 1, PARTS_MAX, &run->cores);
}

int live_cmd_cores_check(const struct live_run *run)
{
    const struct live_config *c = &run->config;
    const char *what = c->record     ? "-w: the packets of each thread would need a file"
                       : c->events   ? "--event: each thread would count packets of its own"
                       : c->n_faults ? "--fault: each thread would break the rule"
                       : c->net      ? "--net: each thread would have a network"
                                     : NULL;

    return run->cores > 1 && what ? cli_error("-j excludes %s", what) : 0;
}

static int open_and_run(const struct live_cmd *cmd, struct live_run *run)
{
    int r;

    run->config.side = run->server;
    r = live_cli_open(&run->live, &run->config);
    if (r)
        return r;
    r = cmd->run(run);
    if (run->parts && r)
        parts_fail(run->parts);
    if (run->parts)
        parts_await_others(run->parts, run->part.part);
    return live_cli_close(&run->live, &run->config, r);
}

/* A command in several processes. */
struct together {
    const struct live_cmd *cmd;
    struct live_run *run;
};

static int run_part(void *user, unsigned part)
{
    const struct together *t = user;

    t->run->part = parts_of(t->run->parts, part);
    t->run->config.part = &t->run->part;
    return open_and_run(t->cmd, t->run);
}

static void part_lost(void *user, unsigned part, int signal)
{
    const struct together *t = user;

    if (t->cmd->lost)
        t->cmd->lost(t->run, part);
    cli_error("thread %u was lost (%s)%s", part, strsignal(signal), part ? "" : ", and with it management: all end");
}

/* Begin the processes, wait for them, and report all. */
static int run_together(const struct live_cmd *cmd, struct live_run *run)
{
    const char *backend = run->config.backend ? run->config.backend : "packet";
    struct together t = {cmd, run};
    struct backend_error why = {""};
    struct live_error err;
    char iface[LIVE_IFACE];
    int r = cmd->share ? cmd->share(run) : 0;

    if (r)
        return r;
    if (live_iface(&run->config, iface, &err) < 0)
        return cli_error("%s", err.msg);
    if (parts_share(run->parts, backend, *iface ? iface : NULL, &why) < 0)
        return cli_error("%s", why.msg);
    r = parts_run(run->parts, &(struct parts_work){run_part, part_lost, &t});
    return r < 0 ? cli_error("-j: no further process: %s", strerror(-r)) : cmd->sum(run, r);
}

static int open_together(const struct live_cmd *cmd, struct live_run *run)
{
    int r;

    run->parts = parts_new(run->cores, cmd->part_size);
    r = run->parts ? run_together(cmd, run) : cli_error("out of memory");
    parts_free(run->parts);
    run->parts = NULL;
    return r;
}

int live_cmd_main(const struct live_cmd *cmd, int argc, char **argv)
{
    struct live_run *run = calloc(1, cmd->size);
    int r;

    if (!run)
        return cli_error("out of memory");
    run->name = argv[0];
    run->config.user = run;
    if (cmd->defaults)
        cmd->defaults(run);
    r = live_cmd_parse(cmd, run, run, argc, argv);
    if (r < 0)
        r = run->cores > 1 ? open_together(cmd, run) : open_and_run(cmd, run);
    if (r && cmd->fail)
        cmd->fail(run);
    if (cmd->stop)
        cmd->stop(run);
    free(run);
    return r;
}
