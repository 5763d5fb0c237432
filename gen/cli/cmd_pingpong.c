/* layer 4 (tool): `rdmagen pingpong`: both sides of ibv_rc_pingpong, ibv_uc_pingpong and ibv_ud_pingpong, against real
 * peers. */
#include "gen/cli/live_run.h"
#include "gen/peers/oob_tcp.h"
#include "gen/peers/pingpong.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DONE "done"

struct job {
    struct live_run run;
    struct pingpong_config talk;
    struct pingpong pp;
    struct pingpong_addr own[PINGPONG_QPS], peer[PINGPONG_QPS];
    const char *tcp; /* address of the exchange, HOST[:PORT] */
    uint16_t port;
    ns_t timeout; /* for a message, ns */
    ns_t began, ended;
};

static const struct opt_def defs[] = {
    {OPT_SERVER, "be the server: wait for a client"},
    {OPT_CONNECTION, "RC (default), UC, UD, or SRQ: RC with a shared receive queue"},
    {OPT_PING_QP, "SRQ: queue pairs (16)"},
    {OPT_PING_SIZE, "bytes of a message (4096; UD: the path MTU at most)"},
    {OPT_ITERS, "messages each way (1000), on all queue pairs together"},
    {OPT_RX_DEPTH, "receives posted at a time (16; SRQ: 4 for each queue pair)"},
    {OPT_PORT, "TCP port of the exchange of addresses (18515)"},
    {OPT_TCP, "exchange addresses with HOST instead"},
    {OPT_VALIDATE, "compare the data that arrives"},
    {OPT_PING_QUIET, "show nothing but errors"},
    {OPT_IPV6, "server: use the interface's IPv6 address"},
    {OPT_TIMEOUT, "longest time between two messages (10)"},
    LIVE_ACK_OPT,
    LIVE_PSN_OPT,
    LIVE_OPTS_EITHER,
    {OPT_HELP, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_pingpong_help(struct buf *b)
{
    buf_puts(b,
             "Usage: rdmagen pingpong HOST [options]\n       rdmagen pingpong -s [options]\n\n"
             "Exchange messages with ibv_rc_pingpong, ibv_uc_pingpong, ibv_ud_pingpong or ibv_srq_pingpong on another "
             "host, as\nclient or as server.\n"
             "Both sides must be given the same size, number of messages and path MTU.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0 if all messages went both ways, 1 if not or if data differed, 2 for usage, or an "
                "interface or file\n"
                "that cannot be used.\n");
}

enum { ONE_QUEUE_PAIR = AS_OWN };

static const struct opt_foreign letters[] = {
    {'Q', "cq-mod", "perftest", "--qp is the number of queue pairs", "qps"},
    {0, NULL, NULL, NULL, NULL},
};

static const struct opt_clash clashes[] = {
    {KEY_TCP, 0, AS_SERVER, "is for the client"},
    {KEY_QP, 0, ONE_QUEUE_PAIR, "is for -c SRQ"},
    {0, 0, 0, NULL},
};

/* --- Exchange of addresses -------------------------------------------------------------------- */

/* Number of addresses that are exchanged. */
static unsigned addresses(const struct job *j)
{
    return j->talk.srq ? PINGPONG_QPS : 1;
}

/* Connect the queue pairs to those whose addresses the peer sent. */
static int join(struct job *j)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && i < j->talk.qps; i++) {
        struct av av;
        r = live_resolve(&j->run.live, j->peer[i].gid, 3 * NS_PER_S);
        if (r < 0 || !live_path(&j->run.live, j->peer[i].gid, &av))
            break;
        r = pingpong_connect(&j->pp, i, &j->own[i], &j->peer[i], &av, j->run.live.mtu, live_now());
    }
    for (unsigned i = 0; r == 0 && i < j->talk.qps && !j->run.quiet; i++) {
        struct live_end peer = {.qpn = j->peer[i].qpn, .psn = j->peer[i].psn};
        memcpy(peer.gid, j->peer[i].gid, 16);
        live_cli_joined(&j->run.live, j->pp.q[i].qp, &peer);
    }
    if (r == 0)
        pingpong_ready(&j->pp, live_now());
    return r;
}

static int send_own(struct job *j, struct chan *c)
{
    char text[PINGPONG_TEXT];
    int r = 0;

    for (unsigned i = 0; r == 0 && i < addresses(j); i++) {
        pingpong_addr_put(text, &j->own[i]);
        r = chan_send(c, text, sizeof text);
    }
    return r;
}

static int receive_theirs(struct job *j, struct chan *c)
{
    char text[PINGPONG_TEXT];
    int r = 0;

    for (unsigned i = 0; r == 0 && i < addresses(j); i++) {
        r = chan_recv(c, text, sizeof text);
        if (r == 0 && !pingpong_addr_get(&j->peer[i], text))
            r = -EPROTO;
    }
    return r;
}

/* Exchange addresses; the server connects its queue pairs before it responds. 0 or a negative errno. */
static int exchange_addresses(struct job *j, struct chan *c)
{
    char text[sizeof DONE];
    int r = j->run.server ? 0 : send_own(j, c);

    if (r == 0)
        r = receive_theirs(j, c);
    if (r == 0)
        r = join(j);
    if (r == 0)
        r = j->run.server ? send_own(j, c) : chan_send(c, DONE, sizeof DONE);
    if (r == 0 && j->run.server)
        r = chan_recv(c, text, sizeof text);
    return r;
}

static int exchange(struct job *j)
{
    struct chan c;
    int listener = j->run.server ? chan_listen(NULL, j->port) : -1, r = j->run.server ? listener : 0;

    if (listener >= 0 && !j->run.quiet)
        live_cli_ready(&j->run.live, j->port);
    if (listener >= 0) {
        r = chan_accept(&c, &j->run.live, listener, CHAN_WAIT);
        close(listener);
    } else if (r >= 0) {
        r = chan_dial(&c, &j->run.live, j->tcp ? j->tcp : j->run.host, j->port, CHAN_WAIT);
    }
    if (r < 0)
        return r;
    r = exchange_addresses(j, &c);
    chan_close(&c);
    return r;
}

/* --- Messages --------------------------------------------------------------------------------- */

static int exchange_messages(struct job *j)
{
    struct pingpong *p = &j->pp;
    ns_t deadline = live_now() + j->timeout;
    const char *why;
    uint64_t last = 0;
    int r = 0;

    j->began = live_now();
    if (!j->run.server)
        pingpong_start(p, j->began);
    while (r == 0 && !*p->why && !pingpong_done(p)) {
        r = live_step(&j->run.live, deadline);
        if (verbs_failed_qp(ep_verbs(j->run.live.ep), &why) >= 0)
            return cli_error("%s", why), -EPROTO;
        pingpong_poll(p, live_now());
        if (p->sent + p->received != last) {
            last = p->sent + p->received;
            deadline = live_now() + j->timeout;
        } else if (live_now() >= deadline) {
            return -ETIMEDOUT;
        }
    }
    j->ended = live_now();
    /* acknowledge again if the peer retransmits its last request */
    for (ns_t end = live_now() + 200 * NS_PER_MS; r == 0 && live_now() < end;)
        r = live_step(&j->run.live, end);
    return r;
}

static int report(struct job *j, int r)
{
    const struct pingpong *p = &j->pp;
    double s = (double)(j->ended - j->began) / 1e9;

    if (*p->why)
        cli_error("%s", p->why);
    else if (r == -ETIMEDOUT)
        cli_error("nothing came for %.0f s", (double)j->timeout / 1e9);
    else if (r < 0 && r != -EINTR && r != -EPROTO)
        live_cli_error(r, j->run.host);
    if (p->mismatches)
        cli_error("%s not what was expected", count_str(p->mismatches, "message"));
    if (!j->run.quiet && s > 0)
        printf("%llu sent, %llu received, %llu wrong, %.3f s, %.2f us for one and its answer\n",
               (unsigned long long)p->sent, (unsigned long long)p->received, (unsigned long long)p->mismatches, s,
               p->received ? s * 1e6 / (double)p->received : 0.0);
    return pingpong_done(p) && !*p->why && !p->mismatches ? EXIT_OK : EXIT_FOUND;
}

static int run(void *job)
{
    struct job *j = job;
    struct live *l = &j->run.live;
    int r, status;

    if (!j->talk.size)
        j->talk.size = j->talk.type == QPT_UD ? min_u32(2048, l->mtu) : 4096;
    if (j->talk.type == QPT_UD && j->talk.size > l->mtu)
        return cli_error("-S %u: a datagram has at most %u bytes here", j->talk.size, l->mtu);
    r = pingpong_init(&j->pp, ep_verbs(l->ep), &j->talk);
    if (r < 0) {
        pingpong_free(&j->pp);
        return cli_error("%s", strerror(-r));
    }
    for (unsigned i = 0; i < j->talk.qps; i++) {
        j->own[i] = (struct pingpong_addr){.qpn = ep_qp(l->ep, j->pp.q[i].qp)->qpn, .psn = ep_pick_psn(l->ep)};
        memcpy(j->own[i].gid, l->id.gid, 16);
    }
    r = exchange(j);
    if (r == -EINTR)
        status = live_cli_error(r, j->run.host);
    else if (r < 0)
        status = (cli_error("no addresses were exchanged%s%s: %s", j->run.host ? " with " : "",
                            j->run.host ? j->run.host : "", strerror(-r)),
                  EXIT_FOUND);
    else
        status = report(j, exchange_messages(j));
    pingpong_free(&j->pp);
    return status;
}

/* --- Options ---------------------------------------------------------------------------------- */

static int option_type(struct job *j, const char *arg)
{
    j->talk.srq = strcmp(arg, "SRQ") == 0;
    j->talk.type = QPT_RC;
    if (j->talk.srq)
        return 0;
    for (enum qp_type t = QPT_RC; t <= QPT_UD; t++)
        if (strcmp(arg, qp_type_str(t)) == 0) {
            j->talk.type = (uint8_t)t;
            return 0;
        }
    return cli_error("-c %s: expected RC, UC, UD or SRQ", arg);
}

static int option(void *job, int key, const char *arg)
{
    struct job *j = job;

    switch (key) {
    case 'V':
        j->talk.validate = true;
        break;
    case KEY_TCP:
        j->tcp = arg;
        break;
    case 'c':
        return option_type(j, arg);
    case 'S':
        return live_number32("-S", arg, 1, 1u << 30, &j->talk.size);
    case 'n':
        return live_number("-n", arg, 1, UINT64_MAX, &j->talk.iters);
    case KEY_QP:
        return live_number32("--qp", arg, 1, PINGPONG_QPS, &j->talk.qps);
    case 'p':
        return live_port("-p", arg, 1, &j->port);
    case 'r':
        return live_number32("-r", arg, 1, 100000, &j->talk.recvs);
    case KEY_TIMEOUT:
        return live_time("--timeout", arg, false, &j->timeout);
    }
    return 0;
}

/* Derive options that were not given from the others. */
static void complete(struct job *j)
{
    struct pingpong_config *c = &j->talk;

    if (!c->qps)
        c->qps = c->srq ? 16 : 1;
    if (!c->recvs)
        c->recvs = c->srq ? 4 * c->qps : PINGPONG_RECVS;
    c->client = !j->run.server;
}

static unsigned cases(const void *job)
{
    return ((const struct job *)job)->talk.srq ? 0 : ONE_QUEUE_PAIR;
}

static int operands(void *job, int n, char **argv)
{
    complete(job);
    return live_cmd_peer(job, n, argv);
}

static void defaults(void *job)
{
    struct job *j = job;

    j->port = PINGPONG_PORT;
    j->talk.iters = 1000;
    j->timeout = 10 * NS_PER_S;
}

int cmd_pingpong(int argc, char **argv)
{
    static const struct live_cmd cmd =
        LIVE_CMD(cmd_pingpong_help, .sides = true, .clashes = clashes, .foreign = letters, .cases = cases);

    return live_cmd_main(&cmd, argc, argv);
}
