/* layer 4 (tool): `rdmagen ping`: both sides of rping, against real peers. */
#include "gen/cli/live_run.h"
#include "gen/peers/rping.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BACKLOG   16
#define LINE_MAX_ 72 /* bytes of data printed of a ping */

struct job {
    struct live_run run;
    uint16_t port;
    uint64_t count; /* 0: until interrupted */
    uint32_t size;
    bool persistent, validate, verbose;
    ns_t timeout; /* of connecting, and of a ping; ns */
    struct verbs *verbs;
    int channel, id; /* RDMA-CM: event channel; id of the connection */
    struct rping rping;
    bool busy;                         /* `rping` has a queue pair */
    bool ready;                        /* its receives are posted */
    bool connected, gone;              /* events of the connection manager */
    enum rdmacm_event_type end;        /* with `gone`: the event that ended the connection */
    char why[160];                     /* reason of a failed connection; empty after a disconnection */
    uint64_t done, mismatches, failed; /* of all connections */
    ns_t min, max, sum;
};

static const struct opt_def defs[] = {
    {OPT_SERVER, "be the server: wait for a client"},
    {OPT_PORT, "port of RDMA-CM (7174)"},
    {OPT_COUNT, "end after N pings (client: without end)"},
    {OPT_PING_SIZE, "bytes of a ping, 26 to 65536 (64)"},
    {OPT_VALIDATE, "compare the data echoed; server: the data of rping"},
    {OPT_VERBOSE, "show the data"},
    {OPT_PING_QUIET, "show nothing but errors"},
    {OPT_PERSISTENT, "server: serve one client after another"},
    {OPT_IPV6, "server: use the interface's IPv6 address"},
    {OPT_TIMEOUT, "longest time that connecting, or a ping, may take (10)"},
    LIVE_PSN_OPT,
    LIVE_OPTS_EITHER,
    {OPT_HELP, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_ping_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmagen ping HOST [options]\n       rdmagen ping -s [options]\n\n"
                "Exchange data with rping (rdmacm-utils) on another host by SEND, READ and WRITE, as its client or as "
                "its server.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0 if all data came back right, 1 if not or if a connection failed, 2 for usage, or an "
                "interface or file\n"
                "that cannot be used.\n");
}

static const struct opt_clash clashes[] = {
    {'P', 0, AS_CLIENT, "is for the server (-s)"},
    {'S', 0, AS_SERVER, "is for the client, which tells the server"},
    {'v', 'q', 0, NULL},
    {0, 0, 0, NULL},
};

/* --- Connection management -------------------------------------------------------------------- */

static struct rdmacm_param own_params(const struct job *p)
{
    return (struct rdmacm_param){.qp = p->rping.qp,
                                 .access = ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE,
                                 .responder_resources = 1,
                                 .initiator_depth = 1};
}

/* Accept a request; false: reject it. */
static bool take(struct job *p, const struct rdmacm_event *e)
{
    struct rdmacm_param own;

    if (p->busy)
        return false;
    if (rping_init(&p->rping, p->verbs, true, 0, p->validate) == 0) {
        own = own_params(p);
        p->busy = rdmacm_accept(p->verbs->cm, e->id, &own, live_now()) == 0;
    }
    if (!p->busy) {
        rping_free(&p->rping);
        return false;
    }
    memcpy(p->run.gid, e->gid, 16);
    p->id = e->id;
    p->ready = p->connected = p->gone = false;
    return true;
}

static void on_event(struct job *p, const struct rdmacm_event *e)
{
    if (e->type == RDMACM_CONNECT_REQUEST && !take(p, e)) {
        rdmacm_reject(p->verbs->cm, e->id, CM_REJ_NO_QP, NULL, 0, live_now());
        rdmacm_id_destroy(p->verbs->cm, e->id, live_now());
    }
    if (!p->busy || e->id != p->id)
        return;
    if (e->type == RDMACM_ESTABLISHED) {
        p->connected = true;
        if (!p->run.quiet)
            live_cli_joined(&p->run.live, p->rping.qp, NULL);
    } else if (e->type == RDMACM_REJECTED || e->type == RDMACM_UNREACHABLE || e->type == RDMACM_DISCONNECTED) {
        if (!p->gone && e->type != RDMACM_DISCONNECTED)
            rdmacm_why(e, p->why, sizeof p->why);
        p->gone = true;
        p->end = (enum rdmacm_event_type)e->type;
    }
}

/* --- Output ----------------------------------------------------------------------------------- */

static void show(const struct job *p)
{
    const struct rping *r = &p->rping;
    const char *text;
    uint32_t n = rping_text(r, &text, LINE_MAX_);

    if (p->run.quiet)
        return;
    if (!p->run.server)
        printf("%s from %s: ping %llu time=%.3f ms\n", count_str(r->got, "byte"), live_addr_str(p->run.gid),
               (unsigned long long)r->done - 1, (double)r->took / 1e6);
    if (p->verbose)
        printf("%sping data: %.*s\n", p->run.server ? "server " : "", (int)n, text);
    fflush(stdout);
}

static void account(struct job *p)
{
    const struct rping *r = &p->rping;

    p->min = p->done == 0 || r->took < p->min ? r->took : p->min;
    p->max = r->took > p->max ? r->took : p->max;
    p->sum += r->took;
    p->done++;
    if (r->mismatches > p->mismatches)
        cli_error("ping %llu: the data differs", (unsigned long long)r->done - 1);
    p->mismatches = r->mismatches;
    show(p);
}

static int summary(const struct job *p)
{
    if (!p->run.quiet && p->run.server)
        printf("%s served, %llu wrong\n", count_str(p->done, "ping"), (unsigned long long)p->mismatches);
    else if (!p->run.quiet && p->done)
        printf("%s, %llu wrong, time min/avg/max = %.3f/%.3f/%.3f ms\n", count_str(p->done, "ping"),
               (unsigned long long)p->mismatches, (double)p->min / 1e6, (double)p->sum / (double)p->done / 1e6,
               (double)p->max / 1e6);
    else if (!p->run.quiet)
        printf("0 pings\n");
    fflush(stdout);
    return p->failed || p->mismatches ? EXIT_FOUND : EXIT_OK;
}

/* --- A connection ----------------------------------------------------------------------------- */

/* One step of the event loop: 0 or a negative errno. */
static int step(struct job *p, ns_t deadline)
{
    int r = live_step(&p->run.live, deadline), failed;
    struct rdmacm_event e;
    const char *why;

    while (rdmacm_get_event(p->verbs->cm, p->channel, &e))
        on_event(p, &e);
    while ((failed = verbs_failed_qp(p->verbs, &why)) >= 0)
        if (p->busy && failed == p->rping.qp)
            rping_fail(&p->rping, "%s", why);
    if (p->busy && !p->ready && verbs_qp_takes_receives(p->verbs, p->rping.qp)) {
        rping_ready(&p->rping, live_now());
        p->ready = true;
    }
    return r;
}

/* Disconnect, wait briefly for the DREP, and release the queue pair. */
static void leave(struct job *p)
{
    ns_t end = live_now() + LIVE_LEAVE_WAIT;
    int r = 0;

    live_go_on();
    if (!p->gone)
        r = rdmacm_disconnect(p->verbs->cm, p->id, live_now());
    while (r == 0 && !p->gone && live_now() < end)
        r = step(p, end);
    for (unsigned i = 0; i < 3 && r == 0; i++)
        r = live_step(&p->run.live, 0); /* send the last message */
    rdmacm_id_destroy(p->verbs->cm, p->id, live_now());
    rping_free(&p->rping);
    p->busy = false;
}

static int start_client(struct job *p)
{
    struct rdmacm_param own;
    int r = p->id = live_cm_resolve(&p->run.live, p->channel, p->run.gid, p->port);

    if (r < 0)
        return live_cli_error(r, p->run.host);
    r = rping_init(&p->rping, p->verbs, false, p->size, p->validate);
    p->busy = true;
    own = own_params(p);
    if (r == 0)
        r = rdmacm_connect(p->verbs->cm, p->id, &own, live_now());
    return r < 0 ? cli_error("%s", strerror(-r)) : 0;
}

static int start_server(struct job *p)
{
    int r = rdmacm_id_create(p->verbs->cm, p->channel, CM_PS_TCP);

    if (r >= 0)
        r = rdmacm_listen(p->verbs->cm, r, p->port, BACKLOG);
    if (r >= 0 && !p->run.quiet)
        live_cli_ready(&p->run.live, p->port);
    return r < 0 ? cli_error("%s", strerror(-r)) : 0;
}

static bool finished(const struct job *p)
{
    return p->count && p->done >= p->count;
}

/* Poll the completions; true: they completed a ping. */
static bool take_completions(struct job *p)
{
    bool any = false;

    while (p->busy && rping_poll(&p->rping, live_now())) {
        account(p);
        any = true;
    }
    return any;
}

/* Run pings until their number is reached, the peer disconnects, or something fails: 0, or a negative errno. */
static int run_pings(struct job *p)
{
    ns_t deadline = NS_NEVER;
    bool idle = true;
    int r = 0;

    take_completions(p); /* the first SEND may have come with the RTU */
    while (!finished(p) && !p->gone && p->rping.state != RPING_FAILED) {
        if (!p->run.server && p->rping.state == RPING_IDLE) {
            rping_start(&p->rping, live_now());
        }
        if (p->rping.state == RPING_IDLE) {
            deadline = NS_NEVER;
            idle = true;
        } else if (idle) {
            deadline = live_now() + p->timeout;
            idle = false;
        }
        r = step(p, deadline);
        idle |= take_completions(p); /* the next one may have begun already */
        if (r < 0)
            break;
        if (p->rping.state != RPING_IDLE && live_now() > deadline)
            rping_fail(&p->rping, "no answer within %.0f s", (double)p->timeout / 1e9);
    }
    return r;
}

/* Report the error of a connection, if any. */
static void report_error(struct job *p, int r)
{
    bool flushed = p->gone && p->end == RDMACM_DISCONNECTED;

    if (r < 0 && r != -EINTR) {
        live_cli_error(r, p->run.host);
        p->failed++;
    } else if (flushed) { /* not the completions of requests that were flushed */
        if (!p->run.server && !finished(p)) {
            cli_error("the peer has disconnected");
            p->failed++;
        }
    } else if (p->rping.state == RPING_FAILED) {
        cli_error("%s", p->rping.why);
        p->failed++;
    } else if (*p->why) {
        cli_error("%s", p->why);
        p->failed++;
    }
}

static int client(struct job *p)
{
    ns_t end = live_now() + p->timeout;
    int r = start_client(p);
    const char *told = NULL;

    if (r != 0)
        return r;
    while (r == 0 && !p->connected && !p->gone && !told && live_now() < end) {
        r = step(p, end);
        told = live_unreachable(&p->run.live, p->run.gid);
    }
    if (r == 0 && p->connected)
        r = run_pings(p);
    else if (r == 0 && told)
        snprintf(p->why, sizeof p->why, "%s does not take RoCE packets: %s", p->run.host, told);
    else if (r == 0 && !p->gone)
        snprintf(p->why, sizeof p->why,
                 "%s does not answer the request to connect within %.0f s: is rping -s running there?", p->run.host,
                 (double)p->timeout / 1e9);
    report_error(p, r);
    leave(p);
    return summary(p);
}

static int server(struct job *p)
{
    int r = start_server(p);

    if (r != 0)
        return r;
    do {
        while (r == 0 && !p->busy)
            r = step(p, NS_NEVER);
        while (r == 0 && p->busy && !p->connected && !p->gone)
            r = step(p, NS_NEVER);
        if (r == 0)
            r = run_pings(p);
        if (p->busy) {
            report_error(p, r);
            leave(p);
        }
        p->why[0] = 0;
    } while (r == 0 && p->persistent && !finished(p));
    if (r < 0 && r != -EINTR)
        return live_cli_error(r, "peer");
    return summary(p);
}

/* --- Options ---------------------------------------------------------------------------------- */

static int option(void *job, int key, const char *arg)
{
    struct job *p = job;

    switch (key) {
    case 'P':
        p->persistent = true;
        break;
    case 'V':
        p->validate = true;
        break;
    case 'v':
        p->verbose = true;
        break;
    case 'p':
        return live_port("-p", arg, 1, &p->port);
    case 'C':
        return live_number("-C", arg, 1, UINT64_MAX, &p->count);
    case 'S':
        return live_number32("-S", arg, RPING_SIZE_MIN, RPING_SIZE_MAX, &p->size);
    case KEY_TIMEOUT:
        return live_time("--timeout", arg, false, &p->timeout);
    }
    return 0;
}

static int operands(void *job, int n, char **argv)
{
    return live_cmd_peer(job, n, argv);
}

static void defaults(void *job)
{
    struct job *p = job;

    p->port = RPING_PORT;
    p->size = 64;
    p->timeout = 10 * NS_PER_S;
}

static int run(void *job)
{
    struct job *p = job;

    p->verbs = ep_verbs(p->run.live.ep);
    p->channel = rdmacm_channel_create(p->verbs->cm);
    return p->run.server ? server(p) : client(p);
}

int cmd_ping(int argc, char **argv)
{
    static const struct live_cmd cmd = LIVE_CMD(cmd_ping_help, .sides = true, .clashes = clashes);

    return live_cmd_main(&cmd, argc, argv);
}
