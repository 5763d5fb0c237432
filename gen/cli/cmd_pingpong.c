/* layer 4 (tool): `rdmagen pingpong`: both sides of ibv_rc_pingpong, ibv_uc_pingpong and ibv_ud_pingpong, against real
 * peers. */
#include "gen/cli/live_cli.h"
#include "gen/pingpong.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define EXCHANGE_WAIT (20 * NS_PER_S)
#define EXCHANGE_STEP (2 * NS_PER_MS) /* how often the TCP connection is looked at */
#define DONE          "done"

struct job {
    struct live_config config;
    struct live live;
    struct pingpong_config talk;
    struct pingpong pp;
    struct pingpong_addr own[PINGPONG_QPS], peer[PINGPONG_QPS];
    const char *host, *tcp; /* tcp: HOST[:PORT] of the exchange */
    uint8_t gid[16];
    uint16_t port;
    bool server, quiet;
    ns_t timeout; /* of a message */
    ns_t began, ended;
};

enum { KEY_TCP = 256, KEY_TIMEOUT, KEY_RECVS };

static const struct opt_def defs[] = {
    {'s', "server", NULL, "be the server: wait for a client"},
    {'c', "connection", "TYPE", "RC (default), UC, UD, or SRQ: RC with a shared receive queue"},
    {'Q', "qps", "N", "SRQ: queue pairs (16)"},
    {'S', "size", "BYTES", "bytes of a message (4096; UD: the path MTU at most)"},
    {'n', "iters", "N", "messages each way (1000), on all queue pairs together"},
    {KEY_RECVS, "recvs", "N", "receives posted at a time (16; SRQ: 4 for each queue pair)"},
    {'p', "port", "PORT", "TCP port of the exchange of addresses (18515)"},
    {KEY_TCP, "tcp", "HOST", "exchange addresses with HOST instead"},
    {'V', "validate", NULL, "compare the data that arrives"},
    {'q', "quiet", NULL, "show nothing but errors"},
    {'6', "ipv6", NULL, "server: use the interface's IPv6 address"},
    {KEY_TIMEOUT, "timeout", "SECONDS", "longest time between two messages (10)"},
    LIVE_PSN_OPT,
    LIVE_OPTS,
    {'h', "help", NULL, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_pingpong_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmagen pingpong HOST [options]\n       rdmagen pingpong -s [options]\n\n"
                "Exchange messages with ibv_rc_pingpong, ibv_uc_pingpong, ibv_ud_pingpong or ibv_srq_pingpong on another "
                "host, as\nclient or as server.\n"
                "Both sides must be told the same size, number of messages and path MTU.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0 if all messages went both ways, 1 if not or if data differed, 2 for usage, or an "
                "interface or file\n"
                "that cannot be used.\n");
}

/* --- Exchange of addresses over TCP, while the endpoint goes on answering ARP --- */

/* Wait for the socket to become readable or writable: 0, -ETIMEDOUT, or as live_step(). */
static int wait_socket(struct job *j, int s, short events, ns_t end)
{
    struct pollfd p = {.fd = s, .events = events};

    while (poll(&p, 1, 0) == 0) {
        int r = live_now() > end ? -ETIMEDOUT : live_step(&j->live, live_now() + EXCHANGE_STEP);
        if (r < 0)
            return r;
    }
    return 0;
}

static int receive_text(struct job *j, int s, char *text, size_t len)
{
    ns_t end = live_now() + EXCHANGE_WAIT;

    for (size_t got = 0; got < len;) {
        int r = wait_socket(j, s, POLLIN, end);
        ssize_t n = r < 0 ? 0 : recv(s, text + got, len - got, 0);
        if (r < 0)
            return r;
        if (n <= 0)
            return n == 0 ? -ECONNRESET : -errno;
        got += (size_t)n;
    }
    return 0;
}

static int send_text(int s, const char *text, size_t len)
{
    ssize_t n = send(s, text, len, MSG_NOSIGNAL); /* 13 KiB at most, which fit into an empty queue */

    return n == (ssize_t)len ? 0 : n < 0 ? -errno : -EIO;
}

static int dial(struct job *j, const char *host)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *a = NULL;
    int s, err = 0, r;
    socklen_t len = sizeof err;
    char port[8];

    snprintf(port, sizeof port, "%u", j->port);
    if (getaddrinfo(host, port, &hints, &a) != 0)
        return -EADDRNOTAVAIL;
    s = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    r = s < 0 || (connect(s, a->ai_addr, a->ai_addrlen) < 0 && errno != EINPROGRESS) ? -errno : 0;
    freeaddrinfo(a);
    if (r == 0)
        r = wait_socket(j, s, POLLOUT, live_now() + EXCHANGE_WAIT);
    if (r == 0 && getsockopt(s, SOL_SOCKET, SO_ERROR, &err, &len) == 0 && err)
        r = -err;
    if (r < 0 && s >= 0)
        close(s);
    return r < 0 ? r : s;
}

static int answer_call(struct job *j)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons(j->port)}; /* any address, IPv4 too */
    int l = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, off = 0, s, r;

    if (l < 0)
        return -errno;
    setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(l, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(l, (struct sockaddr *)&at, sizeof at) < 0 || listen(l, 1) < 0) {
        r = -errno;
        close(l);
        return r;
    }
    r = wait_socket(j, l, POLLIN, NS_NEVER);
    s = r < 0 ? r : accept4(l, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (s < 0 && r == 0)
        s = -errno;
    close(l);
    return s;
}

/* Addresses that are exchanged. */
static unsigned addresses(const struct job *j)
{
    return j->talk.srq ? PINGPONG_QPS : 1;
}

/* Connect the queue pairs to those of the peer whose addresses have arrived. */
static int join(struct job *j)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && i < j->talk.qps; i++) {
        struct av av;
        r = live_resolve(&j->live, j->peer[i].gid, 3 * NS_PER_S);
        if (r < 0 || !live_path(&j->live, j->peer[i].gid, &av))
            break;
        r = pingpong_connect(&j->pp, i, &j->own[i], &j->peer[i], &av, j->live.mtu, live_now());
    }
    if (r == 0)
        pingpong_ready(&j->pp, live_now());
    return r;
}

static int send_own(struct job *j, int s)
{
    char text[PINGPONG_TEXT];
    int r = 0;

    for (unsigned i = 0; r == 0 && i < addresses(j); i++) {
        pingpong_addr_put(text, &j->own[i]);
        r = send_text(s, text, sizeof text);
    }
    return r;
}

static int receive_theirs(struct job *j, int s)
{
    char text[PINGPONG_TEXT];
    int r = 0;

    for (unsigned i = 0; r == 0 && i < addresses(j); i++) {
        r = receive_text(j, s, text, sizeof text);
        if (r == 0 && !pingpong_addr_get(&j->peer[i], text))
            r = -EPROTO;
    }
    return r;
}

/* On the connection: client and server tell their addresses; the server is ready before it answers. 0 or a negative
 * errno. */
static int tell(struct job *j, int s)
{
    char text[sizeof DONE];
    int r = j->server ? 0 : send_own(j, s);

    if (r == 0)
        r = receive_theirs(j, s);
    if (r == 0)
        r = join(j);
    if (r == 0)
        r = j->server ? send_own(j, s) : send_text(s, DONE, sizeof DONE);
    if (r == 0 && j->server)
        r = receive_text(j, s, text, sizeof text);
    return r;
}

static int exchange(struct job *j)
{
    int s = j->server ? answer_call(j) : dial(j, j->tcp ? j->tcp : j->host), r;

    if (s < 0)
        return s;
    r = tell(j, s);
    close(s);
    return r;
}

/* --- Messages --- */

static int converse(struct job *j)
{
    struct pingpong *p = &j->pp;
    ns_t deadline = live_now() + j->timeout;
    const char *why;
    uint64_t last = 0;
    int r = 0;

    j->began = live_now();
    if (!j->server)
        pingpong_start(p, j->began);
    while (r == 0 && !p->failed && !pingpong_done(p)) {
        r = live_step(&j->live, deadline);
        if (live_failed_qp(&j->live, &why) >= 0)
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
    /* The peer may ask again for the last acknowledgement. */
    for (ns_t end = live_now() + 200 * NS_PER_MS; r == 0 && live_now() < end;)
        r = live_step(&j->live, end);
    return r;
}

static int report(struct job *j, int r)
{
    const struct pingpong *p = &j->pp;
    double s = (double)(j->ended - j->began) / 1e9;

    if (p->failed)
        cli_error("%s", p->why);
    else if (r == -ETIMEDOUT)
        cli_error("nothing came for %.0f s", (double)j->timeout / 1e9);
    else if (r < 0 && r != -EINTR && r != -EPROTO)
        live_cli_error(r, j->host);
    if (p->mismatches)
        cli_error("%llu messages were not what they should be", (unsigned long long)p->mismatches);
    if (!j->quiet && s > 0)
        printf("%llu sent, %llu received, %llu wrong, %.3f s, %.2f us for one and its answer\n",
               (unsigned long long)p->sent, (unsigned long long)p->received, (unsigned long long)p->mismatches, s,
               p->received ? s * 1e6 / (double)p->received : 0.0);
    return pingpong_done(p) && !p->failed && !p->mismatches ? EXIT_OK : EXIT_FOUND;
}

static int run(struct job *j)
{
    struct live *l = &j->live;
    int r = pingpong_init(&j->pp, l->ep, &j->talk), status;

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
        status = EXIT_FOUND;
    else if (r < 0)
        status = (cli_error("no addresses were exchanged%s%s: %s", j->host ? " with " : "", j->host ? j->host : "",
                            strerror(-r)),
                  EXIT_FOUND);
    else
        status = report(j, converse(j));
    pingpong_free(&j->pp);
    return status;
}

/* --- Options --- */

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

static int option_number(struct job *j, int key, const char *arg)
{
    uint64_t v = 0;
    int r = 0;

    switch (key) {
    case 'S':
        r = live_number("-S", arg, 1, 1u << 30, &v);
        j->talk.size = (uint32_t)v;
        break;
    case 'n':
        r = live_number("-n", arg, 1, UINT64_MAX, &j->talk.iters);
        break;
    case 'Q':
        r = live_number("-Q", arg, 1, PINGPONG_QPS, &v);
        j->talk.qps = (unsigned)v;
        break;
    case 'p':
        r = live_number("-p", arg, 1, 65535, &v);
        j->port = (uint16_t)v;
        break;
    case KEY_RECVS:
        r = live_number("--recvs", arg, 1, 100000, &v);
        j->talk.recvs = (uint32_t)v;
        break;
    case KEY_TIMEOUT:
        r = live_number("--timeout", arg, 1, 86400, &v);
        j->timeout = (ns_t)v * NS_PER_S;
        break;
    }
    return r;
}

static int option(struct job *j, int key, const char *arg)
{
    bool mine;
    int r = live_option(&j->config, key, arg, &mine);

    if (mine)
        return r;
    switch (key) {
    case 's':
        j->server = true;
        break;
    case 'V':
        j->talk.validate = true;
        break;
    case 'q':
        j->quiet = true;
        break;
    case '6':
        j->config.want6 = true;
        break;
    case KEY_TCP:
        j->tcp = arg;
        break;
    case 'c':
        return option_type(j, arg);
    default:
        return option_number(j, key, arg);
    }
    return 0;
}

/* What was not given, from what was: 0 or the exit status. */
static int complete(struct job *j)
{
    struct pingpong_config *c = &j->talk;

    if (!c->srq && c->qps)
        return cli_error("-Q is for -c SRQ");
    if (!c->qps)
        c->qps = c->srq ? 16 : 1;
    if (!c->recvs)
        c->recvs = c->srq ? 4 * c->qps : PINGPONG_RECVS;
    c->client = !j->server;
    return 0;
}

static int operands(struct job *j, int n, char **argv)
{
    int r = complete(j);

    if (r)
        return r;
    if (j->server ? n != 0 : n != 1)
        return cli_error(j->server ? "pingpong -s takes no HOST" : "pingpong: one HOST is expected (or -s)");
    j->host = j->server ? NULL : argv[0];
    if (j->host && !live_parse_host(j->host, j->gid))
        return cli_error("%s is no address, and no host of this name is known", j->host);
    if (j->host)
        j->config.peer = j->gid;
    return -1;
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
        cmd_pingpong_help(&b);
        return cli_show(&b);
    }
    return r ? r : operands(j, argc - operand, argv + operand);
}

static int open_and_run(struct job *j)
{
    int r = live_cli_open(&j->live, &j->config);

    if (r)
        return r;
    if (!j->talk.size)
        j->talk.size = j->talk.type == QPT_UD ? min_u32(2048, j->live.mtu) : 4096;
    if (j->talk.type == QPT_UD && j->talk.size > j->live.mtu)
        r = cli_error("-S %u: a datagram has at most %u bytes here", j->talk.size, j->live.mtu);
    return live_cli_close(&j->live, &j->config, r ? r : run(j));
}

int cmd_pingpong(int argc, char **argv)
{
    struct job *j = calloc(1, sizeof *j);
    int r;

    if (!j)
        return cli_error("out of memory");
    j->port = PINGPONG_PORT;
    j->talk.iters = 1000;
    j->timeout = 10 * NS_PER_S;
    r = parse(j, argc, argv);
    if (r < 0)
        r = open_and_run(j);
    free(j);
    return r;
}
