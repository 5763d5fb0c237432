/* layer 4 (tool): `rdmagen play`: scenario files against a live peer, and that peer (-s). */
#include "gen/cli/gen_cli.h"
#include "gen/cli/live_run.h"
#include "gen/peers/pingpong.h"
#include "gen/script/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PATIENCE  (10 * NS_PER_S)
#define TOLERANCE 1000 /* microseconds */

struct job {
    struct live_run run;
    struct live_config given; /* as the options set it; its events, nodes and faults go to the scenario */
    struct script_live peer;
    const char *tcp;
    char **files;
    int n_files;
    bool persistent, verbose, pingpong;
    uint64_t port, tolerance, rkey, va;
    ns_t timeout;
    bool has_va;
};

static const struct opt_def defs[] = {
    {OPT_SERVER, "be host b of the scenario that the other rdmagen plays"},
    {OPT_PERSISTENT, "server: serve one client after another"},
    {OPT_EXCHANGE, "who the peer is: rdmagen (default; `rdmagen play -s`), or pingpong:\n"
                   "ibv_rc_pingpong, ibv_uc_pingpong or ibv_ud_pingpong"},
    {OPT_PORT, "TCP port (18516; pingpong: 18515)"},
    {OPT_TCP, "speak TCP with HOST instead"},
    {OPT_TOLERANCE, "microseconds by which times may be off (1000)"},
    {OPT_TIMEOUT, "longest wait of an expectation (10)"},
    {OPT_PSN, "first PSN of queue pairs without psn= (random)"},
    {OPT_RKEY, "pingpong: R_Key of the peer's memory"},
    {OPT_VA, "pingpong: its address"},
    {OPT_VERBOSE, "show every packet"},
    {OPT_PING_QUIET, "show nothing but errors"},
    {OPT_IPV6, "server: use the interface's IPv6 address"},
    LIVE_OPTS_EITHER,
    {OPT_HELP, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_play_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmagen play HOST FILE... [options]\n       rdmagen play -s [options]\n\n"
                "Play scenarios, rdmagen-scenario(5), against a live peer: host a is here, host b is HOST.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0 if every expectation was met, 1 if not, 2 for usage, for a scenario that the peer "
                "cannot play, or "
                "an\ninterface or file that cannot be used.\n");
}

enum { WITH_RDMAGEN = AS_OWN };

static const struct opt_clash clashes[] = {
    {'P', 0, AS_CLIENT, "is for the server (-s)"},
    {KEY_EXCHANGE, 0, AS_SERVER, "is for the side that has the scenario"},
    {KEY_TCP, 0, AS_SERVER, "is for the side that has the scenario"},
    {KEY_RKEY, 0, WITH_RDMAGEN, "is for --exchange pingpong"},
    {KEY_RKEY, -KEY_VA, 0, NULL},
    {KEY_VA, -KEY_RKEY, 0, NULL},
    {'v', 'q', 0, NULL},
    {0, 0, 0, NULL},
};

/* Fill the configuration of a scenario before its first line. */
static void begin(struct job *j, struct script_opts *o)
{
    *o = (struct script_opts){
        .has_psn = j->given.policies.psn != NULL, .psn = (uint32_t)j->given.policies.psn_arg, .verbose = j->verbose};
    sim_config_init(&o->sim, j->given.seed ? j->given.seed : 1);
    o->sim.events = j->given.events;
    j->given.events = NULL;
    if (j->given.net)
        o->sim.net = *j->given.net;
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        o->sim.ep[h].profile = j->given.profile;
        o->sim.ep[h].mtu = j->run.live.mtu < 1024 ? j->run.live.mtu : 1024;
    }
    o->sim.ep[j->run.server].faults = j->given.faults;
    o->sim.ep[j->run.server].n_faults = j->given.n_faults;
    if (!o->sim.events)
        o->sim.events = event_list_new();
    j->peer.live = &j->run.live;
    j->peer.patience = j->timeout;
    j->peer.tolerance = (ns_t)j->tolerance * NS_PER_US;
    j->peer.has_memory = j->has_va;
    j->peer.va = j->va;
    j->peer.rkey = (uint32_t)j->rkey;
    j->peer.host = j->tcp ? j->tcp : j->run.host;
    j->peer.port = (uint16_t)j->port;
    j->peer.control.fd = -1;
}

static int play_text(struct job *j, const char *name, const char *text, struct script_opts *o)
{
    struct buf out = {0};
    enum script_result r = script_run(name, text, o, &out);

    if (r == SCRIPT_FAILED)
        buf_printf(&out, "%s: times are those of %s; they may be off by %llu us\n", name, script_live_times(&j->peer),
                   (unsigned long long)j->tolerance);
    else if (r == SCRIPT_OK && !j->run.quiet)
        buf_printf(&out, "%s: all as expected (times by %s, give or take %llu us)\n", name, script_live_times(&j->peer),
                   (unsigned long long)j->tolerance);
    cli_text(&out, r == SCRIPT_OK ? STDOUT_FILENO : STDERR_FILENO);
    buf_free(&out);
    return r == SCRIPT_OK ? EXIT_OK : r == SCRIPT_FAILED ? EXIT_FOUND : EXIT_BAD;
}

static bool is_not_listening(int r)
{
    return r == -ECONNREFUSED || r == -ECONNRESET;
}

/* Connect to the other rdmagen, with retries: between two clients a server does not listen for a moment. */
static int connect_rdmagen(struct job *j, struct script_opts *o)
{
    ns_t end = live_now() + NS_PER_S;
    int r;

    do {
        r = chan_dial(&j->peer.control, &j->run.live, j->peer.host, j->peer.port, j->peer.patience);
        j->peer.control.stream.live = NULL; /* only rdmagen understands this channel */
        if (r == 0 && (r = script_live_init(&j->peer, o)) < 0)
            chan_close(&j->peer.control);
        for (ns_t next = live_now() + NS_PER_S / 50; is_not_listening(r) && live_now() < next;)
            if (live_step(&j->run.live, next) < 0)
                return -EINTR;
    } while (is_not_listening(r) && live_now() < end);
    return r;
}

static int play(struct job *j, const char *file)
{
    struct script_opts o;
    struct buf text = {0};
    int r = sim_read_file(file, &text), status = EXIT_BAD;

    if (r < 0) {
        buf_free(&text);
        return cli_error("%s: %s", file, strerror(-r));
    }
    begin(j, &o);
    if (!j->pingpong)
        r = connect_rdmagen(j, &o);
    else
        r = script_live_init(&j->peer, &o);
    if (r == -EHOSTUNREACH)
        cli_error("%s does not answer: no such neighbour", j->run.host);
    else if (r == -EINTR)
        cli_error("interrupted");
    else if (r < 0)
        cli_error("%s, TCP port %llu: %s: is `rdmagen play -s` running there?", j->peer.host,
                  (unsigned long long)j->port, strerror(-r));
    if (r < 0)
        event_list_free(o.sim.events);
    else
        status = play_text(j, file, buf_str(&text), &o);
    if (j->peer.control.fd >= 0)
        chan_close(&j->peer.control);
    buf_free(&text);
    return status;
}

static int client(struct job *j)
{
    int worst = 0;

    for (int i = 0; i < j->n_files; i++) {
        int r = play(j, j->files[i]);
        worst = r > worst ? r : worst;
    }
    return worst;
}

/* Serve one client of `listener` until it closes its connection. */
static int serve_one(struct job *j, int listener)
{
    struct script_opts o;
    int r;

    memset(&j->peer, 0, sizeof j->peer);
    begin(j, &o);
    r = chan_accept(&j->peer.control, &j->run.live, listener, CHAN_WAIT);
    j->peer.control.stream.live = NULL;
    if (r < 0) {
        event_list_free(o.sim.events);
        return r;
    }
    r = script_live_serve(&j->peer, &o);
    chan_close(&j->peer.control);
    return r;
}

/* Serve clients. With -P the listener stays open, so further clients wait in its queue. */
static int serve(struct job *j)
{
    int listener = chan_listen(NULL, (uint16_t)j->port), r;

    if (listener < 0)
        return cli_error("TCP port %llu: %s", (unsigned long long)j->port, strerror(-listener));
    if (!j->run.quiet)
        live_cli_ready(&j->run.live, (unsigned)j->port);
    do {
        r = serve_one(j, listener);
        if (r < 0 && r != -EINTR)
            cli_error("the other rdmagen: %s", strerror(-r));
    } while (j->persistent && r != -EINTR && r != -ENODEV); /* until interrupted, or the interface is gone */
    close(listener);
    return r == 0 || r == -EINTR ? EXIT_OK : EXIT_FOUND;
}

/* --- Options ---------------------------------------------------------------------------------- */

static int option_exchange(struct job *j, const char *arg)
{
    if (strcmp(arg, "rdmagen") != 0 && strcmp(arg, "pingpong") != 0)
        return cli_error("--exchange %s: expected rdmagen or pingpong", arg);
    j->pingpong = *arg == 'p';
    return 0;
}

static int option(void *job, int key, const char *arg)
{
    struct job *j = job;

    switch (key) {
    case 'P':
        j->persistent = true;
        return 0;
    case 'v':
        j->verbose = true;
        return 0;
    case KEY_EXCHANGE:
        return option_exchange(j, arg);
    case KEY_TCP:
        j->tcp = arg;
        return 0;
    case 'p':
        return live_number("-p", arg, 1, 65535, &j->port);
    case KEY_TOLERANCE:
        return live_number("--tolerance", arg, 0, 1000000000, &j->tolerance);
    case KEY_TIMEOUT:
        return live_time("--timeout", arg, false, &j->timeout);
    case KEY_RKEY:
        return live_number("--rkey", arg, 0, UINT32_MAX, &j->rkey);
    default:
        j->has_va = true;
        return live_number("--va", arg, 0, UINT64_MAX, &j->va);
    }
}

/* Pass events, nodes and faults to the scenario, which applies them itself. */
static void hand_over(struct job *j)
{
    struct live_config *c = &j->run.config;

    j->given = *c;
    c->events = NULL;
    c->net = NULL;
    c->n_faults = 0;
}

static unsigned cases(const void *job)
{
    return ((const struct job *)job)->pingpong ? 0 : WITH_RDMAGEN;
}

static int operands(void *job, int n, char **argv)
{
    struct job *j = job;

    if (!j->port)
        j->port = j->pingpong ? PINGPONG_PORT : SCRIPT_LIVE_PORT;
    if (j->run.server && n)
        return cli_error("play -s takes no operands");
    if (!j->run.server && n < 2)
        return cli_error("play: expected a host and the file of a scenario");
    if (n > 2 && j->run.config.events)
        return cli_error("play: --event is for one scenario at a time");
    if (!j->run.server) {
        if (!live_parse_host(argv[0], j->run.gid))
            return cli_error("%s: there is no such host", argv[0]);
        j->run.host = argv[0];
        j->files = argv + 1;
        j->n_files = n - 1;
        memcpy(j->peer.peer, j->run.gid, 16);
        j->run.config.peer = j->run.gid;
    }
    hand_over(j);
    return 0;
}

static void defaults(void *job)
{
    struct job *j = job;

    j->timeout = PATIENCE;
    j->tolerance = TOLERANCE;
    j->run.config.frame = script_live_frame;
    j->run.config.user = &j->peer;
}

static int run(void *job)
{
    struct job *j = job;

    return j->run.server ? serve(j) : client(j);
}

static void stop(void *job)
{
    event_list_free(((struct job *)job)->given.events);
}

int cmd_play(int argc, char **argv)
{
    static const struct live_cmd cmd =
        LIVE_CMD(cmd_play_help, .sides = true, .clashes = clashes, .cases = cases, .stop = stop);

    return live_cmd_main(&cmd, argc, argv);
}
