/* layer 4 (tool): `rdmagen connect`: both sides of ucmatose and udaddy, against real peers. */
#include "gen/cli/live_cmd.h"
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
    struct live_run run;
    struct matose_config talk;
    uint16_t port;
    bool leave, verbose;
    bool rejects;
    uint32_t reject; /* rejects: reason or status to refuse requests with */
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

enum { DATAGRAMS = AS_OWN };

static const struct opt_clash clashes[] = {
    {'d', 0, AS_SERVER, "is for the client"},
    {'d', 0, DATAGRAMS, "is for connections, not for datagrams"},
    {KEY_REJECT, 0, AS_CLIENT, "is for the server (-s)"},
    {'v', 'q', 0, NULL},
    {0, 0, 0, NULL},
};

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
    if (!j->verbose || j->run.quiet)
        return;
    printf("connection %u: %s, QPN 0x%06x to 0x%06x, %.3f ms", (unsigned)(n - j->nodes), live_addr_str(n->gid),
           ep_qp(j->run.live.ep, n->m.qp)->qpn, c->peer.qpn, (double)(live_now() - n->began) / 1e6);
    show_private(c->peer.private_data, c->peer.private_len);
    printf("\n");
    fflush(stdout);
}

/* Parameters of our side; `active`: of the request. */
static void own_params(struct job *j, struct node *n, struct cm_params *p)
{
    live_cm_params(&j->run.live, p, n->m.qp, ep_pick_psn(j->run.live.ep), n->gid, j->port);
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
    struct live *l = &j->run.live;

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

    if (!j->run.server || sidr != j->talk.ud ||
        c->peer.service_id != cm_service_ip(sidr ? CM_PS_UDP : CM_PS_TCP, j->port))
        return;
    if (j->rejects) {
        a->reason = j->reject;
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
    } else if (!live_path(&j->run.live, n->gid, &av) || matose_peer(&n->m, &av, c->peer.qpn, c->peer.qkey) < 0 ||
               matose_open_ud(&n->m, ep_pick_psn(j->run.live.ep), live_now()) < 0) {
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
    struct live *l = &j->run.live;
    struct cm_params own;
    struct ep_peer peer;
    int r = matose_init(&n->m, l->ep, &j->talk);

    n->used = true;
    n->began = live_now();
    j->taken++;
    memcpy(n->gid, j->run.gid, 16);
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
    int r = live_step(&j->run.live, deadline), failed;
    const char *why;

    while ((failed = live_failed_qp(&j->run.live, &why)) >= 0)
        if (node_of(j, failed))
            node_fail(j, node_of(j, failed), why);
    for (unsigned i = 0; i < j->taken; i++) {
        struct node *n = &j->nodes[i];
        const struct qp *qp = n->used ? ep_qp(j->run.live.ep, n->m.qp) : NULL;
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
    ns_t deadline = j->run.server ? NS_NEVER : live_now() + j->timeout;
    int r = 0;

    for (unsigned i = 0; r == 0 && !j->run.server && i < j->n; i++)
        r = start_node(j, &j->nodes[i]);
    while (r == 0 && (j->rejects ? j->refused : count_nodes(j, false)) < j->n) {
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
            cm_agent_disconnect(j->run.live.cm, j->nodes[i].m.qp, live_now());
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
        r = live_step(&j->run.live, linger);
    for (unsigned i = 0; i < 3 && r == 0; i++)
        r = live_step(&j->run.live, 0); /* the last message leaves */
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
        live_cli_error(r, j->run.host ? j->run.host : "peer");
    if (wrong)
        cli_error("%s came back different", count_str(wrong, "message"));
    if (!j->run.quiet && j->rejects)
        printf("%u refused\n", j->refused);
    else if (!j->run.quiet)
        printf("%s, %llu sent, %llu received, %llu wrong\n", count_str(open, "connection"), (unsigned long long)sent,
               (unsigned long long)received, (unsigned long long)wrong);
    fflush(stdout);
    return r < 0 || j->failed || wrong ? EXIT_FOUND : EXIT_OK;
}

static int make_and_use(struct job *j)
{
    int r = make_connections(j), status;

    if (r == 0)
        r = converse(j);
    if (r == 0)
        r = hold(j);
    leave(j, r < 0 || j->run.server || j->leave || j->failed);
    status = report(j, r);
    for (unsigned i = 0; i < j->taken; i++)
        if (j->nodes[i].used)
            matose_free(&j->nodes[i].m);
    return status;
}

static int run(void *job)
{
    struct job *j = job;
    int r;

    if (j->talk.ud && j->talk.size > j->run.live.mtu)
        return cli_error("-S %u: a datagram has at most %u bytes here", j->talk.size, j->run.live.mtu);
    j->nodes = calloc(j->n, sizeof *j->nodes);
    if (!j->nodes)
        return cli_error("out of memory");
    r = j->run.server ? 0 : live_resolve(&j->run.live, j->run.gid, 3 * NS_PER_S);
    return r < 0 ? live_cli_error(r, j->run.host) : make_and_use(j);
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

static int option(void *job, int key, const char *arg)
{
    struct job *j = job;

    switch (key) {
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
    case KEY_PRIVATE:
        return option_private(j, arg);
    case 'p':
        return live_port("-p", arg, 1, &j->port);
    case 'c':
        return live_number32("-c", arg, 1, CONNECTIONS, &j->n);
    case 'C':
        return live_number32("-C", arg, 0, 100000, &j->talk.count);
    case 'S':
        return live_number32("-S", arg, 1, 1u << 20, &j->talk.size);
    case KEY_RECVS:
        return live_number32("--recvs", arg, 1, 100000, &j->talk.recvs);
    case KEY_HOLD:
        return live_seconds("--hold", arg, 0, &j->hold);
    case KEY_REJECT:
        j->rejects = true;
        return live_number32("--reject", arg, 1, 65535, &j->reject);
    case KEY_TIMEOUT:
        return live_seconds("--timeout", arg, 1, &j->timeout);
    }
    return 0;
}

/* What options must not be given together: 0 or the exit status. */
static int consistent(struct job *j)
{
    unsigned attr = j->talk.ud ? j->run.server ? CM_SIDR_REP : CM_SIDR_REQ : j->run.server ? CM_REP : CM_REQ;
    unsigned room = cm_private_max(attr) - (j->run.server ? 0 : CM_IP_LEN);

    if (j->reject > 255 && j->talk.ud)
        return cli_error("--reject %u: a status is at most 255", j->reject);
    if (j->data_len > room)
        return cli_error("--private: there is room for %s here", count_str(room, "byte"));
    if ((uint64_t)j->n * j->talk.count * j->talk.size > MEMORY)
        return cli_error("-c %u -C %u -S %u: more than 1 GiB of messages", j->n, j->talk.count, j->talk.size);
    if (!j->port)
        j->port = j->talk.ud ? MATOSE_UD_PORT : MATOSE_PORT;
    j->talk.passive = j->run.server;
    return 0;
}

static unsigned cases(const void *job)
{
    return ((const struct job *)job)->talk.ud ? DATAGRAMS : 0;
}

static int operands(void *job, int n, char **argv)
{
    int r = consistent(job);

    return r ? r : live_cmd_peer(job, n, argv);
}

static bool path_of(void *user, const uint8_t gid[16], struct av *av)
{
    return live_path(user, gid, av);
}

static void defaults(void *job)
{
    struct job *j = job;

    j->n = 1;
    j->timeout = 10 * NS_PER_S;
    j->talk = (struct matose_config){.size = MATOSE_SIZE, .count = MATOSE_COUNT, .path = path_of, .user = &j->run.live};
    j->run.config.request = on_request;
    j->run.config.event = on_event;
}

static void stop(void *job)
{
    free(((struct job *)job)->nodes);
}

int cmd_connect(int argc, char **argv)
{
    static const struct live_cmd cmd = LIVE_CMD(cmd_connect_help, .sides = true, .clashes = clashes, .cases = cases, .stop = stop);

    return live_cmd_main(&cmd, argc, argv);
}
