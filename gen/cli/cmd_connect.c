/* layer 4 (tool): `rdmagen connect`: both sides of ucmatose and udaddy, against real peers. */
#include "gen/cli/live_cli.h"
#include "gen/matose.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define CONNECTIONS  1000
#define MEMORY       (UINT64_C(1) << 30) /* bytes that all messages may take */
#define LEAVE_WAIT   (2 * NS_PER_S)
#define LINGER       (200 * NS_PER_MS) /* the peer may ask again for the last acknowledgements */

/* A connection. */
struct node {
    struct matose m;
    uint8_t gid[16];  /* the peer's */
    bool used, ready; /* ready: receives are posted */
    bool open, over;  /* over: refused, not answered, or disconnected */
    bool told;        /* its failure was reported */
    ns_t began;
};

struct job {
    struct live_config config;
    struct live live;
    struct matose_config talk;
    const char *host;
    uint8_t gid[16];
    uint16_t port;
    bool server, leave, verbose, quiet;
    int reject; /* reason or status to refuse requests with; negative: none */
    uint8_t data[196]; /* private data: what fits into a REP */
    uint8_t data_len;
    ns_t timeout, hold;
    unsigned n, taken, refused; /* connections wanted, begun, refused by us */
    unsigned failed;
    struct node *nodes;
};

enum { KEY_TIMEOUT = 256, KEY_RECVS, KEY_PRIVATE, KEY_REJECT, KEY_HOLD };

static const struct opt_def defs[] = {
    {'s', "server", NULL, "be the server: wait for clients"},
    {'u', "datagram", NULL, "UD: resolve a service by SIDR, as udaddy does"},
    {'p', "port", "PORT", "port of RDMA-CM (7471; with -u 7174)"},
    {'c', "connections", "N", "connections at once (1)"},
    {'C', "count", "N", "messages each way and connection (10); 0: none"},
    {'S', "size", "BYTES", "bytes of a message (100)"},
    {'V', "validate", NULL, "compare what comes back"},
    {'d', "disconnect", NULL, "client: disconnect when done, without waiting for the server"},
    {KEY_HOLD, "hold", "SECONDS", "keep the connections for so long after the messages (0)"},
    {KEY_RECVS, "recvs", "N", "receives posted at a time (-C)"},
    {KEY_PRIVATE, "private", "DATA", "private data: text, or hex:... (none)"},
    {KEY_REJECT, "reject", "CODE", "server: refuse, with this reason (with -u: status)"},
    {'v', "verbose", NULL, "show each connection, with the peer's private data"},
    {'q', "quiet", NULL, "show nothing but errors"},
    {'6', "ipv6", NULL, "server: use the interface's IPv6 address"},
    {KEY_TIMEOUT, "timeout", "SECONDS", "longest time without a sign of the peer (10)"},
    LIVE_PSN_OPT,
    LIVE_OPTS,
    {'h', "help", NULL, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_connect_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmagen connect HOST [options]\n       rdmagen connect -s [options]\n\n"
                "Make connections by RDMA-CM and exchange messages with ucmatose or udaddy (rdmacm-utils) on another "
                "host, as client\nor as server.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0 if all connections were made (with --reject: refused) and all messages went both "
                "ways, 1 if not or if\ndata differed, 2 for usage, or an interface or file that cannot be used.\n");
}

/* --- Connections --- */

static struct node *node_of(struct job *j, int qp)
{
    for (unsigned i = 0; i < j->n; i++)
        if (j->nodes[i].used && j->nodes[i].m.qp == qp)
            return &j->nodes[i];
    return NULL;
}

static void node_fail(struct job *j, struct node *n, const char *why)
{
    if (n->told)
        return;
    n->told = true;
    j->failed++;
    cli_error("connection %u: %s", (unsigned)(n - j->nodes), why);
}

/* Private data as far as it is not all zero: text if it is some, else hexadecimal. */
static void show_private(const uint8_t *data, unsigned len)
{
    bool text = true;

    while (len && !data[len - 1])
        len--;
    if (!len)
        return;
    for (unsigned i = 0; i < len; i++)
        text = text && isprint(data[i]);
    printf(text ? ", private data \"" : ", private data ");
    for (unsigned i = 0; i < len; i++)
        printf(text ? "%c" : "%02x", data[i]);
    printf(text ? "\"" : "");
}

static void show_open(const struct job *j, const struct node *n, const struct cm_conn *c)
{
    if (!j->verbose || j->quiet)
        return;
    printf("connection %u: %s, QPN 0x%06x to 0x%06x, %.3f ms", (unsigned)(n - j->nodes), live_addr_str(n->gid),
           ep_qp(j->live.ep, n->m.qp)->qpn, c->peer.qpn, (double)(live_now() - n->began) / 1e6);
    show_private(c->peer.private_data, c->peer.private_len);
    printf("\n");
    fflush(stdout);
}

/* Parameters of our side; `active`: of the request. */
static void own_params(struct job *j, struct node *n, struct cm_params *p)
{
    live_cm_params(&j->live, p, n->m.qp, ep_pick_psn(j->live.ep), n->gid, j->port);
    if (j->talk.ud)
        p->service_id = cm_service_ip(CM_PS_UDP, j->port);
    p->qkey = MATOSE_QKEY;
    memcpy(p->private_data, j->data, j->data_len);
    p->private_len = j->data_len;
}

/* Address of who asks: in a SIDR_REQ it is in RDMA-CM's header only. */
static void gid_of(uint8_t gid[16], const struct cm_conn *c, bool sidr)
{
    if (!sidr)
        memcpy(gid, c->peer.path.sgid, 16);
    else if (c->peer.ip.ip_version == 4)
        gid_from_ipv4(gid, load_be32(c->peer.ip.src + 12));
    else
        memcpy(gid, c->peer.ip.src, 16);
}

/* A request for which there is room: take it, or say why not. */
static void take(struct job *j, struct node *n, const struct cm_conn *c, struct cm_answer *a)
{
    struct live *l = &j->live;

    gid_of(n->gid, c, j->talk.ud);
    if ((!j->talk.ud && !live_cm_peer(l, &a->peer, n->gid, 0)) || matose_init(&n->m, l->ep, &j->talk) < 0) {
        matose_free(&n->m);
        return;
    }
    n->began = live_now();
    own_params(j, n, &a->own);
    a->reason = j->talk.ud ? 0 : (unsigned)cm_refusal(c, &a->own);
    if (j->talk.ud && matose_open_ud(&n->m, ep_pick_psn(l->ep), live_now()) < 0)
        a->reason = CM_SIDR_NO_QP;
    if (a->reason) {
        matose_free(&n->m);
        return;
    }
    a->own.has_ip = 0;
    a->own.tid = 0;
    a->qp = n->m.qp;
    n->used = true;
    n->open = j->talk.ud;
    j->taken++;
    if (n->open)
        show_open(j, n, c);
}

static void on_request(void *user, const struct cm_conn *c, struct cm_answer *a)
{
    struct job *j = ((struct live *)user)->user;
    bool sidr = c->state == CM_ST_SIDR_REQ_RCVD;

    if (!j->server || sidr != j->talk.ud ||
        c->peer.service_id != cm_service_ip(sidr ? CM_PS_UDP : CM_PS_TCP, j->port))
        return;
    if (j->reject >= 0) {
        a->reason = (unsigned)j->reject;
        j->refused++;
        return;
    }
    a->reason = sidr ? CM_SIDR_NO_QP : CM_REJ_CONSUMER_DEFINED; /* ucmatose's, when it has enough */
    if (j->taken < j->n)
        take(j, &j->nodes[j->taken], c, a);
}

/* The datagram service has answered. */
static void resolved(struct job *j, struct node *n, const struct cm_conn *c)
{
    char why[100];
    struct av av;

    if (c->sidr_status != CM_SIDR_SUCCESS) {
        snprintf(why, sizeof why, "the service was refused: %s", cm_sidr_status_str(c->sidr_status));
        node_fail(j, n, why);
    } else if (!live_path(&j->live, n->gid, &av) || matose_peer(&n->m, &av, c->peer.qpn, c->peer.qkey) < 0 ||
               matose_open_ud(&n->m, ep_pick_psn(j->live.ep), live_now()) < 0) {
        node_fail(j, n, "no queue pair for the service");
    } else {
        n->open = true;
        show_open(j, n, c);
    }
    n->over = !n->open;
}

static void on_event(void *user, int qp, enum cm_event e, const struct cm_conn *c)
{
    struct job *j = ((struct live *)user)->user;
    struct node *n = node_of(j, qp);

    if (!n)
        return;
    if (e == CM_EV_CONNECTED) {
        n->open = true;
        show_open(j, n, c);
    } else if (e == CM_EV_SIDR_RESPONSE) {
        resolved(j, n, c);
    } else if (e == CM_EV_REJECTED || e == CM_EV_UNREACHABLE) {
        node_fail(j, n, live_cm_why(e, c));
        n->over = true;
    } else if (e == CM_EV_DISCONNECTED) {
        /* Requests under way were flushed, whose completions say less. */
        matose_poll(&n->m, live_now());
        if (!matose_done(&n->m))
            node_fail(j, n, n->m.failed && !strstr(n->m.why, "WR_FLUSH_ERR") ? n->m.why : live_cm_why(e, c));
        n->over = true;
    }
}

static int start_node(struct job *j, struct node *n)
{
    struct live *l = &j->live;
    struct cm_params own;
    struct ep_peer peer;
    int r = matose_init(&n->m, l->ep, &j->talk);

    n->used = true;
    n->began = live_now();
    j->taken++;
    memcpy(n->gid, j->gid, 16);
    if (r < 0)
        return r;
    live_cm_peer(l, &peer, n->gid, 0);
    own_params(j, n, &own);
    if (j->talk.ud)
        return cm_agent_resolve(l->cm, n->m.qp, &own, live_now()) ? 0 : -ENOMEM;
    return cm_agent_connect(l->cm, n->m.qp, &own, &peer, live_now()) ? 0 : -ENOMEM;
}

/* --- The course of things --- */

/* Number of connections that stand, or, with `over`, that are over. */
static unsigned count_nodes(const struct job *j, bool over)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < j->taken; i++)
        sum += over ? j->nodes[i].over : j->nodes[i].open || j->nodes[i].over;
    return sum;
}

/* One turn of the loop: 0 or a negative errno. */
static int turn(struct job *j, ns_t deadline)
{
    int r = live_step(&j->live, deadline), failed;
    const char *why;

    while ((failed = live_failed_qp(&j->live, &why)) >= 0)
        if (node_of(j, failed))
            node_fail(j, node_of(j, failed), why);
    for (unsigned i = 0; i < j->taken; i++) {
        struct node *n = &j->nodes[i];
        const struct qp *qp = n->used ? ep_qp(j->live.ep, n->m.qp) : NULL;
        if (qp && !n->ready && !j->talk.ud && qp->state >= QPS_RTR && qp->state <= QPS_RTS) {
            matose_ready(&n->m, live_now());
            n->ready = true;
        }
    }
    return r;
}

/* Until all connections stand, or failed to. */
static int make_connections(struct job *j)
{
    ns_t deadline = j->server ? NS_NEVER : live_now() + j->timeout;
    int r = 0;

    for (unsigned i = 0; r == 0 && !j->server && i < j->n; i++)
        r = start_node(j, &j->nodes[i]);
    while (r == 0 && (j->reject >= 0 ? j->refused : count_nodes(j, false)) < j->n) {
        r = turn(j, deadline);
        if (r == 0 && live_now() >= deadline)
            r = -ETIMEDOUT;
    }
    return r;
}

/* Progress of all connections as one number that grows; *done: no messages are missing. */
static uint64_t progress(struct job *j, bool *done)
{
    uint64_t sum = 0;

    *done = true;
    for (unsigned i = 0; i < j->taken; i++) {
        struct node *n = &j->nodes[i];
        if (n->open && !n->over) {
            matose_poll(&n->m, live_now());
            if (n->m.failed)
                node_fail(j, n, n->m.why);
            *done = *done && (n->m.failed || matose_done(&n->m));
        }
        sum += n->m.sent + n->m.received;
    }
    return sum;
}

static int converse(struct job *j)
{
    ns_t deadline = live_now() + j->timeout;
    uint64_t now, last = 0;
    bool done = false;
    int r = 0;

    for (unsigned i = 0; i < j->taken && j->talk.count; i++)
        if (j->nodes[i].open && !j->nodes[i].over)
            matose_start(&j->nodes[i].m, live_now());
    while (r == 0) {
        now = progress(j, &done);
        if (done)
            break;
        if (now != last)
            deadline = live_now() + j->timeout;
        else if (live_now() >= deadline)
            return -ETIMEDOUT;
        last = now;
        r = turn(j, deadline);
    }
    return r;
}

/* Keep the connections, until the time is over or the peer ends them. */
static int hold(struct job *j)
{
    ns_t end = live_now() + j->hold;
    int r = 0;

    while (r == 0 && live_now() < end && count_nodes(j, true) < j->taken)
        r = turn(j, end);
    return r;
}

static void disconnect_all(struct job *j)
{
    for (unsigned i = 0; i < j->taken; i++)
        if (j->nodes[i].open && !j->nodes[i].over)
            cm_agent_disconnect(j->live.cm, j->nodes[i].m.qp, live_now());
}

/* Disconnect, or wait for the peer to do so; then give everything back. `asked`: disconnect now. */
static void leave(struct job *j, bool asked)
{
    ns_t end = live_now() + (asked ? LEAVE_WAIT : j->timeout), linger = live_now() + LINGER;
    int r = 0;

    live_go_on();
    if (asked && !j->talk.ud)
        disconnect_all(j);
    while (r == 0 && live_now() < end && !j->talk.ud && count_nodes(j, true) < j->taken)
        r = turn(j, end);
    if (!asked && count_nodes(j, true) < j->taken && !j->talk.ud && r == 0) {
        cli_error("the server does not disconnect");
        j->failed++;
        disconnect_all(j);
    }
    for (; r == 0 && live_now() < linger;)
        r = live_step(&j->live, linger);
    for (unsigned i = 0; i < 3 && r == 0; i++)
        r = live_step(&j->live, 0); /* the last message leaves */
}

static int report(struct job *j, int r)
{
    uint64_t sent = 0, received = 0, wrong = 0;
    unsigned open = 0;

    for (unsigned i = 0; i < j->taken; i++) {
        const struct node *n = &j->nodes[i];
        open += n->open;
        sent += n->m.sent;
        received += n->m.received;
        wrong += n->m.mismatches;
    }
    if (r == -ETIMEDOUT)
        cli_error("nothing came for %.0f s", (double)j->timeout / 1e9);
    else if (r < 0)
        live_cli_error(r, j->host ? j->host : "peer");
    if (wrong)
        cli_error("%llu messages came back different", (unsigned long long)wrong);
    if (!j->quiet && j->reject >= 0)
        printf("%u refused\n", j->refused);
    else if (!j->quiet)
        printf("%u connections, %llu sent, %llu received, %llu wrong\n", open, (unsigned long long)sent,
               (unsigned long long)received, (unsigned long long)wrong);
    fflush(stdout);
    return r < 0 || j->failed || wrong ? EXIT_FOUND : EXIT_OK;
}

static int run(struct job *j)
{
    int r = j->server ? 0 : live_resolve(&j->live, j->gid, 3 * NS_PER_S), status;

    if (r < 0)
        return live_cli_error(r, j->host);
    r = make_connections(j);
    if (r == 0)
        r = converse(j);
    if (r == 0)
        r = hold(j);
    leave(j, r < 0 || j->server || j->leave || j->failed);
    status = report(j, r);
    for (unsigned i = 0; i < j->taken; i++)
        if (j->nodes[i].used)
            matose_free(&j->nodes[i].m);
    return status;
}

/* --- Options --- */

static int option_private(struct job *j, const char *arg)
{
    size_t len = strlen(arg);

    if (strncmp(arg, "hex:", 4) != 0) {
        if (len > sizeof j->data)
            return cli_error("--private: at most %zu bytes are possible", sizeof j->data);
        memcpy(j->data, arg, len);
        j->data_len = (uint8_t)len;
        return 0;
    }
    for (arg += 4; *arg; arg += 2) {
        unsigned byte;
        if (!isxdigit((unsigned char)arg[0]) || !isxdigit((unsigned char)arg[1]) || sscanf(arg, "%2x", &byte) != 1 ||
            j->data_len == sizeof j->data)
            return cli_error("--private hex:...: expected at most %zu bytes of two digits each", sizeof j->data);
        j->data[j->data_len++] = (uint8_t)byte;
    }
    return 0;
}

static int option_number(struct job *j, int key, const char *arg)
{
    uint64_t v = 0;
    int r;

    switch (key) {
    case 'p':
        r = live_number("-p", arg, 1, 65535, &v);
        j->port = (uint16_t)v;
        break;
    case 'c':
        r = live_number("-c", arg, 1, CONNECTIONS, &v);
        j->n = (unsigned)v;
        break;
    case 'C':
        r = live_number("-C", arg, 0, 100000, &v);
        j->talk.count = (uint32_t)v;
        break;
    case 'S':
        r = live_number("-S", arg, 1, 1u << 20, &v);
        j->talk.size = (uint32_t)v;
        break;
    case KEY_RECVS:
        r = live_number("--recvs", arg, 1, 100000, &v);
        j->talk.recvs = (uint32_t)v;
        break;
    case KEY_HOLD:
        r = live_number("--hold", arg, 0, 86400, &v);
        j->hold = (ns_t)v * NS_PER_S;
        break;
    case KEY_REJECT:
        r = live_number("--reject", arg, 1, 65535, &v);
        j->reject = (int)v;
        break;
    default:
        r = live_number("--timeout", arg, 1, 86400, &v);
        j->timeout = (ns_t)v * NS_PER_S;
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
    case 'u':
        j->talk.ud = true;
        break;
    case 'V':
        j->talk.validate = true;
        break;
    case 'd':
        j->leave = true;
        break;
    case 'v':
        j->verbose = true;
        break;
    case 'q':
        j->quiet = true;
        break;
    case '6':
        j->config.want6 = true;
        break;
    case KEY_PRIVATE:
        return option_private(j, arg);
    default:
        return option_number(j, key, arg);
    }
    return 0;
}

/* What options must not be given together: 0 or the exit status. */
static int consistent(struct job *j)
{
    unsigned attr = j->talk.ud ? j->server ? CM_SIDR_REP : CM_SIDR_REQ : j->server ? CM_REP : CM_REQ;
    unsigned room = cm_private_max(attr) - (j->server ? 0 : CM_IP_LEN);

    if (!j->server && j->reject >= 0)
        return cli_error("--reject is for the server (-s)");
    if (j->reject > 255 && j->talk.ud)
        return cli_error("--reject %d: a status is at most 255", j->reject);
    if (j->data_len > room)
        return cli_error("--private: there is room for %u bytes here", room);
    if ((uint64_t)j->n * j->talk.count * j->talk.size > MEMORY)
        return cli_error("-c %u -C %u -S %u: more than 1 GiB of messages", j->n, j->talk.count, j->talk.size);
    if (!j->port)
        j->port = j->talk.ud ? MATOSE_UD_PORT : MATOSE_PORT;
    j->talk.passive = j->server;
    return 0;
}

static int operands(struct job *j, int n, char **argv)
{
    int r = consistent(j);

    if (r)
        return r;
    if (j->server ? n != 0 : n != 1)
        return cli_error(j->server ? "connect -s takes no HOST" : "connect: one HOST is expected (or -s)");
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
        cmd_connect_help(&b);
        return cli_show(&b);
    }
    return r ? r : operands(j, argc - operand, argv + operand);
}

static bool path_of(void *user, const uint8_t gid[16], struct av *av)
{
    return live_path(user, gid, av);
}

static int open_and_run(struct job *j)
{
    int r;

    j->config.side = j->server;
    r = live_cli_open(&j->live, &j->config);

    if (r)
        return r;
    if (j->talk.ud && j->talk.size > j->live.mtu)
        r = cli_error("-S %u: a datagram has at most %u bytes here", j->talk.size, j->live.mtu);
    return live_cli_close(&j->live, &j->config, r ? r : run(j));
}

int cmd_connect(int argc, char **argv)
{
    struct job *j = calloc(1, sizeof *j);
    int r;

    if (!j)
        return cli_error("out of memory");
    j->n = 1;
    j->reject = -1;
    j->timeout = 10 * NS_PER_S;
    j->talk = (struct matose_config){.size = MATOSE_SIZE, .count = MATOSE_COUNT, .path = path_of, .user = &j->live};
    j->config.request = on_request;
    j->config.event = on_event;
    j->config.user = j;
    r = parse(j, argc, argv);
    if (r < 0) {
        j->nodes = calloc(j->n, sizeof *j->nodes);
        r = j->nodes ? open_and_run(j) : cli_error("out of memory");
    }
    free(j->nodes);
    free(j);
    return r;
}
