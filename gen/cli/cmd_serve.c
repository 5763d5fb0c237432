/* layer 4 (tool): `rdmagen serve`: the passive side of perftest's clients, ibv_*_pingpong and rping. */
#include "gen/cli/perf_cli.h"
#include "gen/serve.h"
#include "gen/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct job {
    struct live_config config;
    struct live live;
    struct serve serve;
    struct serve_config options;
    uint64_t max; /* clients; 0: without end */
    uint64_t wrong;
    bool quiet;
};

enum { KEY_ROOM = 256, KEY_ONCE, KEY_MAX, KEY_RPING_PORT, KEY_QUIET, KEY_TIMEOUT };

static const struct opt_def defs[] = {
    {'p', "port", "PORT", "port of the exchange, of TCP and of RDMA-CM (18515)"},
    {KEY_RPING_PORT, "rping-port", "PORT", "port of RDMA-CM for rping (7174); 0: none"},
    {'c', "connection", "TYPE", "type of queue pairs that are exchanged by TCP: RC (default), UC or UD"},
    {'s', "size", "BYTES", "bytes of the messages of ib_write_lat, which does not tell them (2)"},
    {KEY_ROOM, "room", "BYTES", "memory for each queue pair, and its largest message (1M); K, M and G are powers of 1024"},
    {'L', "latency", NULL, "clients that SEND want answers, as ib_send_lat (that is found out otherwise, which takes 100 ms)"},
    {KEY_ONCE, "once", NULL, "end after one client"},
    {KEY_MAX, "max", "N", "end after N clients"},
    {'6', "ipv6", NULL, "use the interface's IPv6 address"},
    {KEY_QUIET, "quiet", NULL, "show nothing but errors"},
    {KEY_TIMEOUT, "timeout", "SECONDS", "longest silence of a client (10)"},
    LIVE_OPTS,
    {'h', "help", NULL, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_serve_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmagen serve [options]\n\n"
                "Serve clients of perftest (ib_write_bw, ib_read_bw, ib_send_bw, ib_atomic_bw and their kind with _lat, with and "
                "without -R),\nof ibv_rc_pingpong and its kind, of rping, and `rdmagen write` and its kind: whatever comes.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0 if all clients came to a good end, 1 if not or if data differed, 2 for usage, or an interface or "
                "file that\ncannot be used.\n");
}

static void on_over(void *user, const struct serve_session *s)
{
    struct job *j = user;
    uint64_t wrong = serve_wrong(s), messages = 0;

    for (unsigned i = 0; i < s->n_qps; i++)
        messages += s->qp[i].received;
    j->wrong += wrong;
    if (!s->done)
        cli_error("%s: %s", live_addr_str(s->gid), s->why);
    if (wrong)
        cli_error("%s: %llu messages were not what they should be", live_addr_str(s->gid), (unsigned long long)wrong);
    if (j->quiet || !s->done)
        return;
    if (s->rping.ep)
        printf("%s: rping, %llu pings\n", live_addr_str(s->gid), (unsigned long long)s->rping.done);
    else
        printf("%s: %s%s, queue pairs %u, messages %llu, bytes received %llu, wrong %llu\n", live_addr_str(s->gid),
               serve_kind_str((enum serve_kind)s->kind), s->answering ? " with answers" : "", s->n_qps, (unsigned long long)messages,
               (unsigned long long)s->bytes, (unsigned long long)wrong);
    fflush(stdout);
}

static bool enough(const struct job *j)
{
    return j->max && j->serve.served + j->serve.failed >= j->max;
}

static int run(struct job *j)
{
    int r = serve_open(&j->serve, &j->live, &j->options);

    if (r < 0)
        return cli_error("port %u: %s", j->options.port, strerror(-r));
    if (!j->quiet) {
        printf("serving at %s, port %u\n", live_addr_str(j->live.id.gid), j->options.port);
        fflush(stdout);
    }
    while (r == 0 && !enough(j))
        r = live_step(&j->live, serve_poll(&j->serve, live_now()));
    serve_close(&j->serve);
    if (r < 0 && r != -EINTR)
        return live_cli_error(r, "the clients");
    return j->serve.failed || j->wrong ? EXIT_FOUND : EXIT_OK;
}

static int option_bytes(const char *name, const char *arg, uint32_t *to)
{
    struct token t = token_of(arg);
    uint64_t v;

    if (!token_size(&t, &v) || v < 1 || v > SERVE_MEMORY / 4)
        return cli_error("%s %s: expected a number from 1 to 256M", name, arg);
    *to = (uint32_t)v;
    return 0;
}

static int option(struct job *j, int key, const char *arg)
{
    bool mine;
    uint64_t v = 0;
    int r = live_option(&j->config, key, arg, &mine);

    if (mine)
        return r;
    switch (key) {
    case 'p':
        r = live_number("-p", arg, 1, 65535, &v);
        j->options.port = (uint16_t)v;
        break;
    case KEY_RPING_PORT:
        r = live_number("--rping-port", arg, 0, 65535, &v);
        j->options.rping_port = (uint16_t)v;
        break;
    case 'c':
        return live_type(arg, &j->options.type);
    case 's':
        return option_bytes("-s", arg, &j->options.size);
    case KEY_ROOM:
        return option_bytes("--room", arg, &j->options.room);
    case 'L':
        j->options.latency = true;
        break;
    case KEY_ONCE:
        j->max = 1;
        break;
    case KEY_MAX:
        return live_number("--max", arg, 1, UINT64_MAX, &j->max);
    case '6':
        j->config.want6 = true;
        break;
    case KEY_QUIET:
        j->quiet = true;
        break;
    case KEY_TIMEOUT:
        r = live_number("--timeout", arg, 1, 86400, &v);
        j->options.wait = (ns_t)v * NS_PER_S;
        break;
    }
    return r;
}

/* -1: go on, else the exit status. */
static int parse(struct job *j, int argc, char **argv)
{
    struct opt_state s;
    struct buf b = {0};
    const char *arg;
    int key, operand = argc, r = 0;

    opt_start(&s, defs, argc, argv);
    while (r == 0 && (key = opt_next(&s, &arg, &operand)) != 0)
        r = key == 'h' ? -2 : key < 0 ? EXIT_BAD : option(j, key, arg);
    opt_end(&s);
    if (r == -2) {
        cmd_serve_help(&b);
        return cli_show(&b);
    }
    if (r == 0 && operand != argc)
        r = cli_error("serve takes no operands");
    if (r == 0 && j->options.rping_port == j->options.port)
        r = cli_error("--rping-port %u: that is the port of perftest", j->options.port);
    return r ? r : -1;
}

int cmd_serve(int argc, char **argv)
{
    struct job *j = calloc(1, sizeof *j);
    int r;

    if (!j)
        return cli_error("out of memory");
    j->options = (struct serve_config){
        .port = PERFTEST_PORT, .rping_port = RPING_PORT, .room = 1 << 20, .size = 2, .wait = 10 * NS_PER_S};
    j->serve.over = on_over;
    j->serve.user = j;
    j->config.request = serve_request;
    j->config.event = serve_event;
    j->config.user = &j->serve;
    r = parse(j, argc, argv);
    if (r < 0) {
        r = live_cli_open(&j->live, &j->config);
        if (r == 0)
            r = live_cli_close(&j->live, &j->config, run(j));
    }
    free(j);
    return r;
}
