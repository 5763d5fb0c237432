/* layer 4 (tool): `rdmagen serve`: the passive side of perftest's clients, ibv_*_pingpong and rping. */
#include "gen/cli/live_options.h"
#include "gen/cli/live_run.h"
#include "gen/peers/perf_client.h"
#include "gen/peers/serve.h"
#include "tokens.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define ROOM_MIN 4096 /* bytes: perftest spreads smaller messages over a page */

struct job {
    struct live_run run;
    struct serve serve;
    struct serve_config options;
    uint8_t tcp[16]; /* options.tcp points to it */
    uint64_t max;    /* clients; 0: no limit */
    uint64_t wrong;
};

/* What a thread (-j) served. */
struct served {
    uint64_t clients, failed, messages, bytes, wrong;
    uint64_t active;     /* clients that it is serving */
    atomic_ullong begun; /* of the first thread: clients of all, over or not */
};

static const struct opt_def defs[] = {
    {OPT_PORT, "port of the exchange, of TCP and of RDMA-CM (18515)"},
    {OPT_TCP, "an address of this host at which the exchange by TCP is to be (all)"},
    {OPT_RPING_PORT, "port of RDMA-CM for rping (7174); 0: none"},
    {OPT_CONNECTION, "type of queue pairs that are exchanged by TCP: RC (default), UC, UD or XRC"},
    {OPT_SIZE, "bytes of the messages of ib_write_lat, which does not tell them (2)"},
    {OPT_ROOM, "memory for each queue pair, and its largest message (1M); K, M and G are powers of 1024"},
    {OPT_LATENCY, "clients that SEND want answers, as ib_send_lat (that is found out otherwise, which takes 100 ms)"},
    {OPT_CORES,
     "threads (1), up to 64: clients are shared out among them in turn, those of RDMA-CM are the first one's"},
    {OPT_ONCE, "end after one client"},
    {OPT_MAX, "end after N clients"},
    {OPT_IPV6, "use the interface's IPv6 address"},
    {OPT_QUIET, "show nothing but errors"},
    {OPT_TIMEOUT, "longest silence of a client (10)"},
    LIVE_ACK_OPT,
    LIVE_OPTS_SERVER,
    {OPT_HELP, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_serve_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmagen serve [options]\n\n"
                "Serve clients of perftest (ib_write_bw, ib_read_bw, ib_send_bw, ib_atomic_bw and their kind with "
                "_lat, with and "
                "without -R),\nof ibv_rc_pingpong and its kind, of rping, and `rdmagen write` and its kind: whatever "
                "comes.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0 if all clients came to a good end, 1 if not or if data differed, 2 for usage, or an "
                "interface or "
                "file that\ncannot be used.\n");
}

static const struct opt_clash clashes[] = {{KEY_ONCE, KEY_MAX, 0, NULL}, {0, 0, 0, NULL}};

static void count(struct served *d, const struct serve_session *s, uint64_t messages, uint64_t wrong)
{
    d->active -= d->active > 0;
    d->clients += s->done;
    d->failed += !s->done;
    d->messages += messages;
    d->bytes += s->bytes;
    d->wrong += wrong;
}

/* What all threads served so far. */
static struct served served_by_all(const struct job *j)
{
    struct served all = {0};

    for (unsigned i = 0; i < parts_count(j->run.parts); i++) {
        const struct served *d = parts_result(j->run.parts, i);
        all.clients += d->clients;
        all.failed += d->failed;
        all.active += d->active;
        all.messages += d->messages;
        all.bytes += d->bytes;
        all.wrong += d->wrong;
    }
    return all;
}

static void on_over(void *user, const struct serve_session *s, uint64_t messages)
{
    struct job *j = user;
    uint64_t wrong = serve_wrong(s);

    if (j->run.parts)
        count(parts_result(j->run.parts, j->run.part.part), s, messages, wrong);
    j->wrong += wrong;
    if (!s->done)
        cli_error("%s: %s", live_addr_str(s->gid), s->why);
    if (wrong)
        cli_error("%s: %s not what was expected", live_addr_str(s->gid), count_str(wrong, "message"));
    if (j->run.quiet || !s->done)
        return;
    if (s->rping.verbs)
        printf("%s: rping, %s\n", live_addr_str(s->gid), count_str(s->rping.done, "ping"));
    else
        printf("%s: %s%s, queue pairs %u, messages %llu, bytes received %llu, wrong %llu\n", live_addr_str(s->gid),
               serve_kind_str((enum serve_kind)s->kind), s->answering ? " with answers" : "", s->n_qps,
               (unsigned long long)messages, (unsigned long long)s->bytes, (unsigned long long)wrong);
    fflush(stdout);
}

static void on_joined(void *user, int qp, const struct perftest_keys *peer)
{
    struct job *j = user;
    struct live_end there;

    if (peer) {
        there = (struct live_end){.qpn = peer->qpn, .psn = peer->psn};
        memcpy(there.gid, peer->gid, 16);
    }
    if (!j->run.quiet)
        live_cli_joined(&j->run.live, qp, peer ? &there : NULL);
}

static bool enough(const struct job *j)
{
    struct served all = {.clients = j->serve.served, .failed = j->serve.failed};

    if (j->max && j->run.parts)
        all = served_by_all(j);
    return j->max && all.clients + all.failed >= j->max;
}

static bool turn(void *user, bool over)
{
    const struct live_run *run = user;

    if (over)
        parts_next(run->parts);
    return parts_turn(run->parts, run->part.part);
}

/* Threads take clients at the same time: the last one is one thread's. */
static bool full(void *user, int take)
{
    struct job *j = user;
    struct served *first = parts_result(j->run.parts, 0);
    unsigned long long begun = atomic_load(&first->begun);

    do
        if (take >= 0 && j->max && begun >= j->max)
            return true;
    while (take && !atomic_compare_exchange_weak(&first->begun, &begun, begun + (unsigned long long)take));
    ((struct served *)parts_result(j->run.parts, j->run.part.part))->active += (uint64_t)take;
    return false;
}

static int no_port(const struct job *j, int error)
{
    return cli_error("port %u: %s%s", j->options.port, strerror(-error),
                     error == -EADDRINUSE ? " (give another with -p, or the address with --tcp)" : "");
}

/* Of several threads: one socket for the clients of all; the first thread has management packets to itself. */
static int share(void *job)
{
    struct job *j = job;

    j->options.turn = turn;
    j->options.full = full;
    j->options.turns = &j->run;
    j->options.listener = serve_listen(&j->options);
    return j->options.listener < 0 ? no_port(j, j->options.listener) : 0;
}

/* The clients of a thread that was lost have failed. */
static void lost(void *job, unsigned part)
{
    const struct job *j = job;
    struct served *d = parts_result(j->run.parts, part);

    d->failed += d->active;
    d->active = 0;
}

static void served_line(struct buf *b, const char *who, const struct served *d)
{
    buf_printf(b, "%s: %s, messages %llu, bytes received %llu, wrong %llu", who, count_str(d->clients, "client"),
               (unsigned long long)d->messages, (unsigned long long)d->bytes, (unsigned long long)d->wrong);
    if (d->failed)
        buf_printf(b, ", failed %llu", (unsigned long long)d->failed);
    buf_char(b, '\n');
}

static int sum(void *job, int status)
{
    const struct job *j = job;
    struct served all = served_by_all(j);
    struct buf b = {0};
    char who[32];
    int r;

    for (unsigned i = 0; i < parts_count(j->run.parts); i++) {
        snprintf(who, sizeof who, "thread %u", i);
        served_line(&b, who, parts_result(j->run.parts, i));
    }
    snprintf(who, sizeof who, "%u threads", parts_count(j->run.parts));
    served_line(&b, who, &all);
    if (j->run.quiet)
        buf_free(&b);
    r = j->run.quiet ? 0 : cli_show(&b);
    return status ? status : r;
}

static int run(void *job)
{
    struct job *j = job;
    bool first = j->run.part.part == 0;
    int r;

    j->options.no_cm = !first;
    j->options.max = j->max;
    r = serve_open(&j->serve, &j->run.live, &j->options);
    if (r < 0)
        return no_port(j, r);
    if (j->run.parts && !parts_meet(j->run.parts))
        live_stop();
    if (!j->run.quiet && first)
        live_cli_ready(&j->run.live, j->options.port);
    while (r == 0 && !enough(j))
        r = live_step(&j->run.live, serve_poll(&j->serve, live_now()));
    serve_close(&j->serve);
    if (r < 0 && r != -EINTR)
        return live_cli_error(r, "the clients");
    return j->serve.failed || j->wrong ? EXIT_FOUND : EXIT_OK;
}

static int option_bytes(const char *name, const char *arg, uint32_t min, uint32_t *to)
{
    struct token t = token_of(arg);
    uint64_t v;

    if (!token_size(&t, &v) || v < min || v > SERVE_MEMORY / 4)
        return cli_error("%s %s: expected a number from %u to 256M", name, arg, min);
    *to = (uint32_t)v;
    return 0;
}

static int option(void *job, int key, const char *arg)
{
    struct job *j = job;

    switch (key) {
    case 'p':
        return live_port("-p", arg, 1, &j->options.port);
    case KEY_RPING_PORT:
        return live_port("--rping-port", arg, 0, &j->options.rping_port);
    case 'c':
        return live_type(arg, &j->options.type);
    case 's':
        return option_bytes("-s", arg, 1, &j->options.size);
    case KEY_TCP:
        if (!live_parse_host(arg, j->tcp))
            return cli_error("--tcp %s: expected an address", arg);
        j->options.tcp = j->tcp;
        break;
    case KEY_ROOM:
        return option_bytes("--room", arg, ROOM_MIN, &j->options.room);
    case KEY_LATENCY:
        j->options.latency = true;
        break;
    case 'j':
        return live_cmd_cores(&j->run, arg);
    case KEY_ONCE:
        j->max = 1;
        break;
    case KEY_MAX:
        return live_number("--max", arg, 1, UINT64_MAX, &j->max);
    case '6':
        j->run.config.want6 = true;
        break;
    case KEY_QUIET:
        j->run.quiet = true;
        break;
    case KEY_TIMEOUT:
        return live_time("--timeout", arg, false, &j->options.wait);
    }
    return 0;
}

static int operands(void *job, int n, char **argv)
{
    const struct job *j = job;

    (void)argv;
    if (n)
        return cli_error("serve takes no operands");
    if (j->options.rping_port == j->options.port)
        return cli_error("--rping-port %u: that is the port of perftest", j->options.port);
    return live_cmd_cores_check(&j->run);
}

static void defaults(void *job)
{
    struct job *j = job;

    j->options = (struct serve_config){
        .port = PERFTEST_PORT, .rping_port = RPING_PORT, .room = 1 << 20, .size = 2, .wait = 10 * NS_PER_S};
    j->serve.over = on_over;
    j->serve.joined = on_joined;
    j->serve.user = j;
    j->run.server = true;
}

int cmd_serve(int argc, char **argv)
{
    static const struct live_cmd cmd =
        LIVE_CMD(cmd_serve_help, .clashes = clashes, .foreign = perftest_letters, .part_size = sizeof(struct served),
                 .share = share, .lost = lost, .sum = sum);

    return live_cmd_main(&cmd, argc, argv);
}
