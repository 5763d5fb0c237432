/* layer 4 (tool): `rdmagen sim`: reads its arguments and runs traffic or a scenario. */
#include "gen/cli/sim_cli.h"

#include <stdlib.h>

void cmd_sim_help(struct buf *b)
{
    buf_puts(b,
             "Usage: rdmagen sim write|send|read|cas|faa|atomic_write|flush|mw1|mw2|fastreg|mixed [options]\n"
             "       rdmagen sim FILE.rdma [options]\n"
             "       rdmagen sim --topology NETWORK --workload NAME [options]\n\n"
             "Play conversations between two hosts in virtual time, or a scenario file, rdmagen-scenario(5), or what "
             "many hosts\n"
             "send each other through switches.\n\n");
    opt_help(b, sim_options);
    buf_puts(b,
             "\nExit status: 0 if all completed, 1 if not or if an event or fault was never triggered, 2 for usage or "
             "files that cannot be\n"
             "read or written.\n");
}

static void job_init(struct sim_job *job)
{
    sim_config_init(&job->sim, 1);
    sim_conn_config_init(&job->conn, QPT_RC, 1024);
    job->sim.events = event_list_new();
    job->traffic.size = 65536;
    job->traffic.iters = 1000;
    job->traffic.qps = 1;
    job->traffic.tx_depth = 128;
    job->traffic.disconnect = true;
}

static bool is_pause(const struct net_node *n)
{
    return n->kind == NET_PAUSE;
}

static bool is_on_second_path(const struct net_node *n)
{
    return n->path == 2;
}

/* Whether the network has such a node. */
static bool net_has(const struct net_config *c, bool (*is)(const struct net_node *n))
{
    for (unsigned d = 0; d < NET_HOSTS; d++)
        for (unsigned i = 0; i < c->n[d]; i++)
            if (is(&c->node[d][i]))
                return true;
    return false;
}

/* One CNP in 50 us for a queue pair, in the class of what it answers. */
static struct np_config plain_cnps(void)
{
    struct np_config np = np_config_default();

    np.dscp = NP_DSCP_COPY;
    np.prio = NP_PRIO_COPY;
    return np;
}

/* --cnp-cut: hosts without a rate limit send at their port's rate. */
static void settle_pace(struct sim_config *c)
{
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct policies *p = &c->ep[h].policies;
        if (p->cnp_cut && p->pace != &pace_rate)
            p->pace_arg = c->port_rate;
        if (p->cnp_cut) {
            p->pace = &pace_cut;
            if (!c->ep[h].congestion.cnps)
                c->ep[h].congestion.np = plain_cnps();
            c->ep[h].congestion.cnps = true;
        }
    }
}

/* --hosts: 0, or EXIT_BAD after a message. */
static int settle_hosts(struct sim_job *job, const struct opt_state *s, const char *what)
{
    if (!job->hosts)
        return 0;
    if (!opt_given(s, 'q'))
        job->traffic.qps = job->hosts;
    if (job->traffic.qps < job->hosts)
        return cli_error("sim %s: --hosts %u: more than the connections (-q %u)", what, job->hosts, job->traffic.qps);
    sim_config_many(&job->sim, 0, (uint16_t)job->hosts, job->ipv6);
    return 0;
}

/* Derive and check what depends on several options. EXIT_OK, or EXIT_BAD after a message. */
static int job_settle(struct sim_job *job, const struct opt_state *s, const char *what)
{
    struct traffic_config *t = &job->traffic;
    uint16_t mtu = job->conn.peer[0].path_mtu;

    t->op = job->workload ? TRAFFIC_WRITE : (uint8_t)traffic_op_find(what);
    if (sim_refuse(s, job) != 0)
        return EXIT_BAD;
    if (job->sim.ep[0].addr.encap == ENCAP_IB && net_has(&job->sim.net, is_pause))
        return cli_error("sim %s: pause frames are Ethernet's, --ib has none", what);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        uint8_t *tclass = &job->conn.peer[h].av.tclass;
        specs_cc_settle(&job->cc, &job->sim.ep[h].congestion);
        *tclass = specs_cc_tclass(&job->cc, *tclass);
    }
    settle_pace(&job->sim);
    if (job->workload)
        return EXIT_OK;
    if (settle_hosts(job, s, what))
        return EXIT_BAD;
    if (t->op == TRAFFIC_OPS) {
        job->scenario = what;
        return EXIT_OK;
    }
    if (t->op < TRAFFIC_OPS && 1u << t->op & TRAFFIC_LENDS & ~traffic_of_service(t->type))
        return cli_error("sim %s: keys are lent over RC only", what);
    if (t->type == QPT_UD && t->op != TRAFFIC_SEND && t->op != TRAFFIC_MIXED)
        return cli_error("sim %s: datagrams can only be sent", what);
    if (t->type == QPT_UC && t->op >= TRAFFIC_READ && t->op != TRAFFIC_MIXED)
        return cli_error("sim %s: UC has neither READs nor atomics", what);
    if (t->mix & ~traffic_of_service(t->type))
        return cli_error("sim mixed: --mix: %s has %s", qp_service_str((enum qp_type)t->type),
                         t->type == QPT_UD        ? "only send"
                         : t->type == QPT_XRC_INI ? "neither mw1 nor mw2 nor fastreg"
                                                  : "only write and send");
    if (!job->conn.alternate && net_has(&job->sim.net, is_on_second_path))
        return cli_error("sim %s: --net: path=2 is the alternate path: --alternate makes one", what);
    if (t->type == QPT_UD && !opt_given(s, 's'))
        t->size = mtu;
    if (t->type == QPT_UD && t->size > mtu)
        return cli_error("sim %s: a datagram of %u bytes does not fit the MTU of %u", what, t->size, mtu);
    if (traffic_has_8_bytes(t->op))
        t->size = 8;
    if (t->signal_every > t->tx_depth)
        return cli_error("sim %s: -Q %u: more than the %u messages under way (-t)", what, t->signal_every, t->tx_depth);
    if (t->batch > t->tx_depth)
        return cli_error("sim %s: -l %u: more than the %u messages under way (-t)", what, t->batch, t->tx_depth);
    if (t->latency && t->op == TRAFFIC_WRITE && !t->size)
        return cli_error("sim %s: --latency: an empty WRITE cannot be waited for", what);
    if (t->duration)
        t->iters = 0;
    if ((uint64_t)t->tx_depth * t->size > UINT64_C(1) << 32)
        return cli_error("sim %s: %u messages of %u bytes under way need more than 4 GiB", what, t->tx_depth, t->size);
    return EXIT_OK;
}

int cmd_sim(int argc, char **argv)
{
    struct sim_job *job = calloc(1, sizeof *job);
    struct opt_state s;
    struct buf b = {0};
    const char *arg;
    int key, operand, status = -1;

    if (!job)
        return cli_error("out of memory");
    job_init(job);
    opt_start(&s, sim_options, argc, argv);
    while (status < 0 && (key = opt_next(&s, &arg, &operand)) != 0) {
        if (key == 'h') {
            cmd_sim_help(&b);
            status = cli_show(&b);
        } else if (key < 0 || sim_option(job, key, arg) != 0) {
            status = EXIT_BAD;
        }
    }
    if (status < 0 && (job->workload || job->topology) && operand != s.argc)
        status = cli_error("sim: with --workload there is no operand, and '%s' is one", s.argv[operand]);
    else if (status < 0 && operand + 1 != s.argc && !job->workload && !job->topology)
        status = operand == s.argc ? cli_error("sim: expected an operation (write, send, read, cas, faa, atomic_write, "
                                               "flush, mw1, mw2, fastreg, mixed) or a scenario file")
                                   : cli_error("sim: unexpected '%s'", s.argv[operand + 1]);
    if (status < 0 && job_settle(job, &s, operand < s.argc ? argv[operand] : "workload") != EXIT_OK)
        status = EXIT_BAD;
    opt_end(&s);
    if (status < 0) /* these functions free the events */
        status = job->workload ? sim_workload(job) : job->scenario ? sim_scenario(job) : sim_traffic(job);
    else
        event_list_free(job->sim.events);
    free(job);
    return status;
}
