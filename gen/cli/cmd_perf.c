/* layer 4 (tool): `rdmagen write|read|send|cas|faa`: traffic like that of perftest's clients, to a real peer. */
#include "gen/cli/live_options.h"
#include "gen/cli/live_run.h"
#include "gen/cli/report_file.h"
#include "gen/peers/perf_client.h"
#include "gen/peers/pingpong.h"
#include "tokens.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SIZE_BW   65536 /* defaults, as perftest's */
#define SIZE_LAT  2
#define SIZE_PATH 0 /* replaced by the path MTU, which is known when the interface is open */
#define SIZE_MAX_ (1u << 30)

struct job {
    struct live_run run;
    struct perf_client perf;
    const char *tcp;
    struct report_file json;
    bool memory[2];  /* --rkey, --va were given */
    bool given_qps;  /* -q was given */
    char error[200]; /* first error */
};

static const struct opt_def defs[] = {
    {OPT_SIZE, "bytes of a message (65536; with --latency 2; atomics: 8); K and M are powers of 1024"},
    {OPT_ITERS, "messages of each queue pair (1000)"},
    {OPT_DURATION, "so long instead of a number of messages"},
    {OPT_QP, "queue pairs (1, or one for each thread)"},
    {OPT_CORES, "threads (1), up to 64: the queue pairs are shared out among them, each has rings of its own"},
    {OPT_CONNECTION, "RC (default), UC, UD or XRC"},
    {OPT_TX_DEPTH, "messages under way on each queue pair (128)"},
    {OPT_OUTS, "READs and atomics outstanding on each queue pair, 1 to 16 (16)"},
    {OPT_POST_LIST, "messages posted at a time, with one completion (1)"},
    {OPT_RATE_LIMIT, "bit/s of payload, all queue pairs together, with K, M or G (as fast as possible)"},
    {OPT_LATENCY, "one message at a time and the peer's answer, as ib_*_lat"},
    {OPT_PERF_VALIDATE, "compare the data, as far as it can be known: see the manual"},
    {OPT_PORT, "port of the exchange: of TCP or, with -R, of RDMA-CM (18515)"},
    {OPT_RDMA_CM, "connect by RDMA-CM and exchange by SENDs, as perftest -R"},
    {OPT_TCP, "exchange with HOST instead"},
    {OPT_EXCHANGE, "perftest (default), or pingpong: as ibv_rc_pingpong and its kind do, for send"},
    {OPT_DEST_QP, "no exchange, everything is known: the peer's queue pair"},
    {OPT_PSN_PAIR, "with --dest-qp: the first PSN that we send, and that the peer sends (the same)"},
    {OPT_QPN, "with --dest-qp: the number of our queue pair (random)"},
    {OPT_RKEY, "with --dest-qp: key of the peer's memory"},
    {OPT_VA, "with --dest-qp: address of the peer's memory"},
    {OPT_JSON, "the result as JSON"},
    {OPT_QUIET, "show nothing but errors"},
    {OPT_TIMEOUT, "longest time without progress (10)"},
    {OPT_CPU_FREQ, "nothing: it is accepted because command lines of perftest have it"},
    LIVE_ACK_OPT,
    LIVE_OPTS,
    {OPT_HELP, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_perf_help(struct buf *b)
{
    buf_puts(b,
             "Usage: rdmagen write|read|send|cas|faa HOST [options]\n\n"
             "Send traffic to ib_write_bw, ib_read_bw, ib_send_bw, ib_atomic_bw (perftest), their kind with _lat, or "
             "`rdmagen serve`\non another host, and measure it. Both sides must be given the same kind of test, size, "
             "number of "
             "messages and queue pairs.\n\n");
    opt_help(b, defs);
    buf_puts(
        b, "\nExit status: 0 if all completed, 1 if not or if data differed, 2 for usage, or an interface or file that "
           "cannot be used.\n");
}

enum { WRONG_SIZE = AS_OWN, ONE_WAY = 2 * AS_OWN, SENDS = 4 * AS_OWN };

static const struct opt_clash clashes[] = {
    {'s', 0, WRONG_SIZE, "can only be 8 for atomics"},
    {'o', 0, ONE_WAY, "is for READs and atomics"},
    {'n', 'D', 0, NULL},
    {KEY_LATENCY, 't', 0, NULL}, /* latency: one message at a time */
    {KEY_LATENCY, 'l', 0, NULL},
    {KEY_DEST_QP, -KEY_PSN_PAIR, 0, NULL},
    {KEY_PSN_PAIR, -KEY_DEST_QP, 0, NULL},
    {KEY_QPN, -KEY_DEST_QP, 0, NULL},
    {KEY_RKEY, -KEY_DEST_QP, 0, NULL},
    {KEY_VA, -KEY_DEST_QP, 0, NULL},
    {KEY_RKEY, 0, SENDS, "is not for SENDs, which name no memory"},
    {KEY_VA, 0, SENDS, "is not for SENDs, which name no memory"},
    {KEY_DEST_QP, KEY_EXCHANGE, 0, NULL},
    {KEY_DEST_QP, KEY_TCP, 0, NULL},
    {KEY_DEST_QP, 'p', 0, NULL},
    {'R', KEY_DEST_QP, 0, NULL},
    {'R', KEY_TCP, 0, NULL},
    {0, 0, 0, NULL},
};

/* --- Options ---------------------------------------------------------------------------------- */

static int option_size(struct traffic_config *c, const char *arg)
{
    struct token t = token_of(arg);
    uint64_t v;

    if (!token_size(&t, &v) || v < 1 || v > SIZE_MAX_)
        return cli_error("-s %s: expected a number from 1 to 1G, such as 4096 or 64K", arg);
    c->size = (uint32_t)v;
    return 0;
}

static int option_outs(struct traffic_config *c, const char *arg)
{
    uint64_t v = 0;
    int r = live_number("-o", arg, 1, 16, &v);

    c->outs = (uint8_t)v;
    return r;
}

static int option_rate(struct traffic_config *c, const char *arg)
{
    struct token t = token_of(arg);

    return token_rate(&t, &c->rate) && c->rate ? 0 : cli_error("--rate_limit %s: expected bit/s, as 100M", arg);
}

static int option_exchange(struct perf_client *p, const char *arg)
{
    if (strcmp(arg, "perftest") != 0 && strcmp(arg, "pingpong") != 0)
        return cli_error("--exchange %s: expected perftest or pingpong", arg);
    p->exchange = arg[1] == 'e' ? PERF_PERFTEST : PERF_PINGPONG;
    return 0;
}

static int option_psn(struct perf_client *p, const char *arg)
{
    p->psn_given = true;
    return live_psn_pair(arg, &p->own_psn, &p->by_hand.psn);
}

/* Options that describe a peer without an exchange. */
static int option_hand(struct job *j, int key, const char *arg, bool *mine)
{
    struct perftest_keys *k = &j->perf.by_hand;
    uint64_t v = 0;
    int r = 0;

    *mine = key == KEY_DEST_QP || key == KEY_PSN_PAIR || key == KEY_QPN || key == KEY_RKEY || key == KEY_VA;
    if (!*mine)
        return 0;
    if (key == KEY_DEST_QP)
        j->perf.exchange = PERF_BY_HAND;
    if (key == KEY_RKEY || key == KEY_VA)
        j->memory[key == KEY_VA] = true;
    if (key == KEY_PSN_PAIR)
        return option_psn(&j->perf, arg);
    if (key == KEY_QPN) {
        r = live_number("--qpn", arg, 2, 0xfffffe, &v);
        j->perf.config.qpn = (uint32_t)v;
        return r;
    }
    r = live_number(key == KEY_DEST_QP ? "--dest-qp"
                    : key == KEY_RKEY  ? "--rkey"
                                       : "--va",
                    arg, 0,
                    key == KEY_DEST_QP ? 0xffffff
                    : key == KEY_RKEY  ? UINT32_MAX
                                       : UINT64_MAX,
                    &v);
    if (key == KEY_DEST_QP)
        k->qpn = (uint32_t)v;
    else if (key == KEY_RKEY)
        k->rkey = (uint32_t)v;
    else
        k->vaddr = v;
    return r;
}

static int option(void *job, int key, const char *arg)
{
    struct job *j = job;
    struct traffic_config *c = &j->perf.config;
    bool mine;
    int r = option_hand(j, key, arg, &mine);

    if (mine)
        return r;
    switch (key) {
    case 's':
        return option_size(c, arg);
    case 'n':
        return live_number("-n", arg, 1, UINT64_MAX, &c->iters);
    case 'D':
        return live_time("-D", arg, false, &c->duration);
    case 'q':
        j->given_qps = true;
        return live_number32("-q", arg, 1, 1024, &c->qps);
    case 'j':
        return live_cmd_cores(&j->run, arg);
    case 't':
        return live_number32("-t", arg, 1, 16384, &c->tx_depth);
    case 'o':
        return option_outs(&j->perf.config, arg);
    case 'l':
        return live_number32("-l", arg, 1, 16384, &c->batch);
    case 'c':
        return live_type(arg, &c->type);
    case KEY_RATE_LIMIT:
        return option_rate(c, arg);
    case KEY_LATENCY:
        c->latency = true;
        break;
    case KEY_VALIDATE:
        c->verify = true;
        break;
    case 'p':
        return live_port("-p", arg, 1, &j->perf.port);
    case 'R':
        j->perf.rdma_cm = true;
        break;
    case KEY_TCP:
        j->tcp = arg;
        break;
    case KEY_EXCHANGE:
        return option_exchange(&j->perf, arg);
    case KEY_JSON:
        report_file_option(&j->json, arg);
        break;
    case KEY_QUIET:
        j->run.quiet = true;
        break;
    case KEY_TIMEOUT:
        return live_time("--timeout", arg, false, &j->perf.timeout);
    }
    return 0;
}

static unsigned cases(const void *job)
{
    const struct traffic_config *c = &((const struct job *)job)->perf.config;
    bool atomic = traffic_is_atomic(c->op);

    return (atomic && c->size != 8 ? WRONG_SIZE : 0) | (atomic || c->op == TRAFFIC_READ ? 0 : ONE_WAY) |
           (c->op == TRAFFIC_SEND ? SENDS : 0);
}

/* The same for -j. */
static int settle_cores(struct job *j)
{
    struct traffic_config *c = &j->perf.config;
    uint32_t n = j->run.cores;

    if (n > 1 && !j->given_qps)
        c->qps = n;
    if (n > c->qps)
        return cli_error("-j %u: more threads than queue pairs (-q %u)", n, c->qps);
    if (n > 1 && j->perf.rdma_cm)
        return cli_error("-j excludes -R: one thread alone has the connection manager");
    return live_cmd_cores_check(&j->run);
}

/* Check combinations of options, and fill in defaults: 0 or the exit status. */
static int settle(struct job *j)
{
    struct perf_client *p = &j->perf;
    struct traffic_config *c = &p->config;
    bool atomic = traffic_is_atomic(c->op);

    int r = settle_cores(j);

    if (r)
        return r;
    if (!c->duration && !c->iters)
        c->iters = 1000;
    if (p->exchange == PERF_PINGPONG && c->op != TRAFFIC_SEND)
        return cli_error("--exchange pingpong is for `rdmagen send`");
    if (p->exchange == PERF_PINGPONG)
        c->latency = true;
    if (!qp_is_reliable(c->type) && (c->op == TRAFFIC_READ || atomic))
        return cli_error("-c %s: READs and atomics need RC or XRC", qp_service_str((enum qp_type)c->type));
    if (c->type == QPT_XRC_INI && p->exchange != PERF_PERFTEST)
        return cli_error("-c XRC: only with the exchange of perftest, which tells the shared receive queue");
    if (c->type == QPT_UD && c->op != TRAFFIC_SEND)
        return cli_error("-c UD: datagrams are for `rdmagen send`");
    if (c->qps > 1 && (c->latency || p->exchange == PERF_BY_HAND))
        return cli_error("-q %u: one queue pair only with %s", c->qps, c->latency ? "--latency" : "--dest-qp");
    if (p->exchange == PERF_BY_HAND && c->latency && c->op == TRAFFIC_WRITE)
        return cli_error("--latency needs an exchange for write: the peer must know where to answer");
    if (p->exchange == PERF_BY_HAND && c->op != TRAFFIC_SEND && !(j->memory[0] && j->memory[1]))
        return cli_error("--dest-qp needs --rkey and --va for this");
    if (p->rdma_cm && p->exchange != PERF_PERFTEST)
        return cli_error("-R excludes --exchange pingpong");
    if (p->rdma_cm && c->type != QPT_RC)
        return cli_error("-R: RC only");
    if (c->batch > c->tx_depth)
        return cli_error("-l %u: more than the %u messages under way (-t)", c->batch, c->tx_depth);
    if (atomic)
        c->size = 8;
    else if (!c->size)
        c->size = p->exchange == PERF_PINGPONG ? 4096 : c->latency ? SIZE_LAT : c->type == QPT_UD ? SIZE_PATH : SIZE_BW;
    return 0;
}

static int operands(void *job, int n, char **argv)
{
    struct job *j = job;
    int r = n == 1 ? settle(j) : cli_error("%s: one HOST is expected", j->run.name);

    return r ? r : live_cmd_host(&j->run, argv[0]);
}

/* --- Running ---------------------------------------------------------------------------------- */

static void show_progress(void *user, const struct perf *l)
{
    (void)user;
    if (!l->t.c.duration)
        fprintf(stderr, "\r%3u %%", traffic_progress(&l->t) / 10);
    else
        fprintf(stderr, "\r%llu", (unsigned long long)l->t.r.completed);
}

/* Print the values that the user must enter at a peer without an exchange. */
static void show_keys(void *user, const struct perf *l)
{
    const struct job *j = user;
    const struct perftest_keys *k = &l->qp[0].own;

    if (!j->run.quiet && j->perf.exchange == PERF_BY_HAND) {
        printf("local address %s, QPN 0x%06x, first PSN 0x%06x\n", live_addr_str(j->run.live.id.gid), k->qpn, k->psn);
        fflush(stdout);
    }
}

static void show_ends(void *user, const struct perf *l)
{
    const struct job *j = user;

    if (j->run.parts) {
        parts_next(j->run.parts);
        if (!parts_meet(j->run.parts))
            live_stop();
    }
    for (unsigned i = 0; i < l->t.c.qps && !j->run.quiet && !report_file_alone(&j->json); i++) {
        const struct perftest_keys *k = &l->qp[i].peer;
        struct live_end peer = {.qpn = k->qpn, .psn = k->psn};
        memcpy(peer.gid, k->gid, 16);
        live_cli_joined(&j->run.live, l->qp[i].qp, j->perf.rdma_cm ? NULL : &peer);
    }
}

/* One report of all threads. */
static int sum(void *job, int status)
{
    struct job *j = job;
    const struct traffic_config *c = &j->perf.config;
    struct buf b = {0};
    int r = 0;

    if (!j->run.quiet && !report_file_alone(&j->json) && (!status || perf_parts_any(j->run.parts))) {
        perf_parts_text(&b, j->run.parts, c);
        r = cli_show(&b);
    }
    if (r == 0) {
        b = (struct buf){0};
        perf_parts_json(&b, j->run.parts, c);
        r = report_file_write(&j->json, &b);
        buf_free(&b);
    }
    return r ? r : status;
}

static int report(struct job *j)
{
    struct buf b = {0};
    int r = 0;

    if (j->run.parts) {
        perf_part_fill(parts_result(j->run.parts, j->run.part.part), &j->perf, j->error);
        return 0;
    }
    if (!j->run.quiet && !report_file_alone(&j->json) && (!*j->error || j->perf.traffic.t.r.completed)) {
        perf_text(&b, &j->perf);
        r = cli_show(&b);
    }
    if (r == 0) {
        b = (struct buf){0};
        perf_json(&b, &j->perf, j->error);
        r = report_file_write(&j->json, &b);
        buf_free(&b);
    }
    return r;
}

/* Report an error; the first one becomes the report's `error`. */
static PRINTF_LIKE(2, 3) void failed(struct job *j, const char *fmt, ...)
{
    char text[sizeof j->error];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    cli_error("%s", text);
    if (!*j->error)
        memcpy(j->error, text, sizeof text);
}

/* Report the errors of a run. `r`: result of perf_client_run(). */
static void report_errors(struct job *j, int r)
{
    struct perf_client *p = &j->perf;
    const struct traffic_result *done = &p->traffic.t.r;

    if (r == -EINTR)
        failed(j, "interrupted: %s with %s was not over", p->step, p->host);
    else if (r < 0)
        failed(j, "%s with %s failed: %s", p->step, p->host,
               *p->why        ? p->why
               : r == -EPROTO ? "it does not speak as expected"
                              : strerror(-r));
    else if (p->interrupted)
        failed(j, "interrupted");
    if (*p->traffic.why)
        failed(j, "%s", p->traffic.why);
    if (done->mismatches)
        failed(j, "%s not what was expected", count_str(done->mismatches, "message"));
    if (p->wrong)
        failed(j, "%s arrived, but not as sent", count_str(p->wrong, "message"));
    if (p->counted && done->completed && !p->arrived)
        failed(j, "%s sent, but none arrived: both sides must have the same -c", count_str(done->completed, "message"));
}

/* This thread's queue pairs, and its turn to connect them: a server with as many threads takes them in this order.
 * False: another thread has failed before. */
static bool share_out(struct job *j)
{
    struct traffic_config *c = &j->perf.config;
    unsigned parts = parts_count(j->run.parts), part = j->run.part.part;
    uint32_t own = c->qps / parts + (part < c->qps % parts);

    if (c->rate) /* 0 is no limit */
        c->rate = (uint64_t)((unsigned __int128)c->rate * own / c->qps) + (c->rate < c->qps);
    c->qps = own;
    return parts_await_turn(j->run.parts, part) || live_stopped();
}

static int measure(struct job *j)
{
    struct perf_client *p = &j->perf;
    bool show = !j->run.quiet && !j->run.parts && isatty(STDERR_FILENO);
    int r;

    p->live = &j->run.live;
    p->host = j->tcp && !p->rdma_cm ? j->tcp : j->run.host;
    p->gid = j->run.gid;
    p->progress = show ? show_progress : NULL;
    p->made = show_keys;
    p->joined = show_ends;
    p->user = j;
    if (j->run.parts && !share_out(j))
        return EXIT_FOUND;
    r = perf_client_run(p);
    if (show)
        fputs("\r                    \r", stderr);
    report_errors(j, r);
    r = report(j);
    return r ? r : *j->error ? EXIT_FOUND : EXIT_OK;
}

static int run(void *job)
{
    struct job *j = job;
    struct traffic_config *c = &j->perf.config;
    int r;

    if (c->size == SIZE_PATH)
        c->size = j->run.live.mtu;
    if (c->type == QPT_UD && c->size > j->run.live.mtu)
        return cli_error("-s %u: a datagram has at most %u bytes here", c->size, j->run.live.mtu);
    r = measure(j);
    perf_client_free(&j->perf);
    return r;
}

static int begin(void *job)
{
    return report_file_open(&((struct job *)job)->json);
}

static void fail(void *job)
{
    report_file_fail(&((struct job *)job)->json);
}

static void defaults(void *job)
{
    struct job *j = job;

    j->perf.config = (struct traffic_config){
        .op = (uint8_t)traffic_op_find(j->run.name), .qps = 1, .tx_depth = 128, .batch = 1, .outs = 16};
    j->perf.port = PERFTEST_PORT;
    j->perf.timeout = 10 * NS_PER_S;
}

int cmd_perf(int argc, char **argv)
{
    static const struct live_cmd cmd =
        LIVE_CMD(cmd_perf_help, .clashes = clashes, .foreign = perftest_letters, .cases = cases, .begin = begin,
                 .fail = fail, .part_size = sizeof(struct perf_part), .sum = sum);

    return live_cmd_main(&cmd, argc, argv);
}
