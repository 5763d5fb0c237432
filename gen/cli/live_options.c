/* layer 4 (tool): options and messages of the live subcommands. */
#include "gen/cli/live_options.h"
#include "gen/cli/specs.h"
#include "src/transport/flow_label.h"
#include "tokens.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define TIME_MAX (86400 * NS_PER_S)

int live_number(const char *option, const char *arg, uint64_t min, uint64_t max, uint64_t *v)
{
    if (opt_number(arg, min, max, v))
        return 0;
    return cli_error("%s %s: expected a number from %llu to %llu", option, arg, (unsigned long long)min,
                     (unsigned long long)max);
}

int live_number32(const char *option, const char *arg, uint32_t min, uint32_t max, uint32_t *v)
{
    uint64_t wide;
    int r = live_number(option, arg, min, max, &wide);

    if (r == 0)
        *v = (uint32_t)wide;
    return r;
}

int live_psn_pair(const char *arg, uint32_t *own, uint32_t *peer)
{
    const char *colon = strchr(arg, ':');
    char first[16];
    uint64_t v, w;

    if (snprintf(first, sizeof first, "%.*s", (int)strcspn(arg, ":"), arg) >= (int)sizeof first ||
        !opt_number(first, 0, 0xffffff, &v) || !opt_number(colon ? colon + 1 : first, 0, 0xffffff, &w))
        return cli_error("--psn %s: expected a PSN, or two with a colon between", arg);
    *own = (uint32_t)v;
    *peer = (uint32_t)w;
    return 0;
}

int live_port(const char *option, const char *arg, uint16_t min, uint16_t *port)
{
    uint32_t v;
    int r = live_number32(option, arg, min, UINT16_MAX, &v);

    if (r == 0)
        *port = (uint16_t)v;
    return r;
}

int live_time(const char *option, const char *arg, bool zero, ns_t *t)
{
    struct token w = token_of(arg);
    uint64_t v;

    if (opt_number(arg, 0, TIME_MAX / NS_PER_S, &v))
        *t = (ns_t)v * NS_PER_S;
    else if (!token_time(&w, t) || *t > TIME_MAX)
        *t = -1;
    if (*t < 0 || (*t == 0 && !zero))
        return cli_error("%s %s: expected seconds, or a time such as 10s or 500ms, of a day at most", option, arg);
    return 0;
}

int live_type(const char *arg, uint8_t *type)
{
    enum qp_type t = qp_type_of_service(arg);

    if (t == QP_TYPES)
        return cli_error("-c %s: expected RC, UC, UD or XRC", arg);
    *type = (uint8_t)t;
    return 0;
}

static int option_vlan(struct live_config *c, const char *arg)
{
    const char *colon = strchr(arg, ':');
    char id[16];
    uint64_t v, prio = 0;

    if (snprintf(id, sizeof id, "%.*s", (int)strcspn(arg, ":"), arg) >= (int)sizeof id ||
        !opt_number(id, 1, 4094, &v) || (colon && !opt_number(colon + 1, 0, 7, &prio)))
        return cli_error("--vlan %s: expected ID or ID:PRIORITY", arg);
    c->vlan = (uint16_t)v;
    c->pcp = (uint8_t)prio;
    return 0;
}

static int option_mtu(struct live_config *c, const char *arg)
{
    uint64_t v;

    if (!opt_number(arg, 256, 4096, &v) || v & (v - 1))
        return cli_error("--mtu %s: expected 256, 512, 1024, 2048 or 4096", arg);
    c->mtu = (uint16_t)v;
    return 0;
}

static int option_profile(struct live_config *c, const char *arg)
{
    if (ep_profile_find(arg) < 0)
        return cli_error("--profile %s: expected strict, rxe or nv", arg);
    c->profile = (uint8_t)ep_profile_find(arg);
    return 0;
}

/* Values of --net, --event, --fault, --cc and --cnp. */
static struct {
    struct net_config net;
    struct event_list *events; /* owned until live_open() */
    enum rule faults[FAULTS_MAX];
    unsigned n_faults;
    struct specs_cc cc;
} given;

static int option_event(struct live_config *c, const char *arg)
{
    if (!given.events)
        given.events = event_list_new();
    if (!given.events)
        return cli_error("out of memory");
    c->events = given.events;
    return specs_event(c->events, "--event", arg);
}

static int option_fault(struct live_config *c, const char *arg)
{
    if (given.n_faults == FAULTS_MAX)
        return cli_error("--fault %s: at most %d rules", arg, FAULTS_MAX);
    if (specs_fault(arg, arg, &given.faults[given.n_faults]))
        return EXIT_BAD;
    c->faults = given.faults;
    c->n_faults = ++given.n_faults;
    return 0;
}

static int option_congestion(struct live_config *c, int key, const char *arg)
{
    int r = key == KEY_CC ? specs_cc(&given.cc, arg) : specs_cnp(&given.cc, arg);

    if (r == 0)
        r = specs_cc_lacks(&given.cc, false);
    if (r == 0)
        specs_cc_settle(&given.cc, &c->congestion);
    return r;
}

int live_option(struct live_config *c, int key, const char *arg, bool *mine)
{
    uint64_t v = 0;
    int r = 0;

    *mine = true;
    switch (key) {
    case 'I':
        c->iface = arg;
        break;
    case 'w':
        c->record = arg;
        break;
    case KEY_BACKEND:
        c->backend = arg;
        break;
    case KEY_ADDR:
        c->addr = arg;
        break;
    case KEY_MAC:
        c->mac = arg;
        break;
    case KEY_PEER_MAC:
        c->peer_mac = arg;
        break;
    case KEY_VIA:
        c->via = arg;
        break;
    case KEY_VLAN:
        return option_vlan(c, arg);
    case 'm':
        return option_mtu(c, arg);
    case KEY_PROFILE:
        return option_profile(c, arg);
    case KEY_EVENT:
        return option_event(c, arg);
    case KEY_NET:
        c->net = &given.net;
        return specs_net(&given.net, "--net", arg);
    case KEY_FAULT:
        return option_fault(c, arg);
    case KEY_CC:
    case KEY_CNP:
        return option_congestion(c, key, arg);
    case 'T':
        r = live_number("-T", arg, 0, 255, &v);
        c->tclass = (uint8_t)v;
        break;
    case KEY_PSN:
        r = live_number("--psn", arg, 0, 0xffffff, &c->policies.psn_arg);
        c->policies.psn = &number_fixed;
        break;
    case 'u':
        r = live_number("-u", arg, 1, 31, &v);
        c->ack_timeout = (uint8_t)v;
        break;
    case KEY_HOP_LIMIT:
        r = live_number("--hop_limit", arg, 1, 255, &v);
        c->hop_limit = (uint8_t)v;
        break;
    case KEY_SEED:
        r = live_number("--seed", arg, 1, UINT64_MAX, &c->seed);
        break;
    default:
        *mine = false;
    }
    return r;
}

void live_cli_say(const char *line)
{
    cli_error("%s", line);
}

int live_cli_open(struct live *l, const struct live_config *c)
{
    struct live_error err;

    struct live_config own = *c;

    live_catch_signals();
    given.events = NULL;
    own.tclass = specs_cc_tclass(&given.cc, c->tclass);
    if (live_open(l, &own, &err) < 0)
        return cli_error("%s", err.msg);
    l->backend->say = live_cli_say;
    if (c->mtu > l->mtu)
        cli_error("-m %u: the interface carries a path MTU of %u", c->mtu, l->mtu);
    if (*l->backend->note)
        cli_error("%s", l->backend->note);
    return 0;
}

void live_cli_ready(const struct live *l, unsigned port)
{
    printf("serving at %s, port %u, path MTU %u\n", live_addr_str(l->id.gid), port, l->mtu);
    fflush(stdout);
}

static void print_end(const char *side, const struct live_end *e, unsigned mtu)
{
    printf("%6s address: QPN 0x%06x PSN 0x%06x GID %s MTU %u\n", side, e->qpn, e->psn, live_addr_str(e->gid), mtu);
}

void live_cli_joined(const struct live *l, int qp, const struct live_end *peer)
{
    const struct qp *q = ep_qp(l->ep, qp);
    struct live_end own = {.qpn = q->qpn, .psn = q->attr.sq_psn},
                    there = {.qpn = q->attr.dest_qpn, .psn = q->attr.rq_psn};
    unsigned mtu = q->attr.path_mtu ? q->attr.path_mtu : l->mtu;

    memcpy(own.gid, l->id.gid, 16);
    memcpy(there.gid, q->attr.av.dgid, 16);
    print_end("local", &own, mtu);
    print_end("remote", peer ? peer : &there, mtu);
    fflush(stdout);
}

/* Report received packets that were dropped. */
static void report_dropped(struct live *l)
{
    const struct ep_stats *s = ep_stats(l->ep);
    const struct {
        uint64_t n;
        const char *what;
    } rows[] = {{s->malformed, "malformed"},
                {s->rx_icrc_encapsulated, "with a wrong ICRC"},
                {s->unknown_qp, "for no queue pair"},
                {s->other_source, "from another address than the peer's"},
                {s->bad_pkey, "with another P_Key"},
                {s->bad_qkey, "with another Q_Key"},
                {s->other_service, "of another service"},
                {s->out_of_sequence, "ahead of the expected PSN"}};
    uint64_t refused = cm_agent_sent(l->cm, CM_REJ), ignored = cm_agent_ignored(l->cm);
    struct buf b = {0};

    for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].n)
            buf_printf(&b, "%s %llu %s", b.len ? "," : "", (unsigned long long)rows[i].n, rows[i].what);
    if (b.len)
        cli_error("packets that were not taken:%s", buf_str(&b));
    if (refused || ignored)
        cli_error("requests of the connection manager refused: %llu, other messages of it ignored: %llu",
                  (unsigned long long)refused, (unsigned long long)ignored);
    buf_free(&b);
}

int live_cli_close(struct live *l, const struct live_config *c, int status)
{
    const struct backend_stats *s = backend_stats(l->backend);
    unsigned idle = l->events ? events_idle(l->events, specs_print, NULL) : 0;

    if (s->dropped)
        cli_error("%s lost on the way in: this program was too slow", count_str(s->dropped, "frame"));
    if (c->side)
        report_dropped(l);
    if (l->unsent)
        cli_error("%s not sent: the backend took none for too long", count_str(l->unsent, "frame"));
    if (s->late_stamps)
        cli_error("%s with the kernel's time stamp, not the interface's", count_str(s->late_stamps, "frame"));
    idle += ep_faults_idle(l->ep, NULL, "this side", specs_print, NULL);
    if (l->id.conflicts)
        cli_error("another station claims to be %s", live_addr_str(l->id.gid));
    live_close(l);
    if (l->record_err)
        return cli_error("%s: %s", c->record, strerror(-l->record_err));
    return idle && status == EXIT_OK ? EXIT_FOUND : status;
}

int live_cli_error(int err, const char *host)
{
    if (err == -EINTR)
        return cli_error("interrupted"), EXIT_FOUND;
    if (err == -ETIMEDOUT)
        return cli_error("%s does not answer: no such neighbour", host), EXIT_FOUND;
    return cli_error("the network failed: %s", strerror(-err)), EXIT_FOUND;
}
