/* layer 4 (tool): `rdmagen sim`: reads its arguments, refuses what makes no sense together, runs. */
#include "gen/cli/sim/sim_cli.h"

#include <stdlib.h>

void cmd_sim_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmagen sim write|send|read|cas|faa|atomic_write|flush|mw1|mw2|fastreg|mixed [options]\n"
                "       rdmagen sim nvme|nfs|iser [options]\n"
                "       rdmagen sim FILE.rdma [options]\n"
                "       rdmagen sim --topology NETWORK --workload NAME [options]\n\n"
                "Play conversations between two hosts in virtual time, also those of a storage protocol, or a scenario "
                "file,\nrdmagen-scenario(5), or what many hosts send each other through switches.\n\n");
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

/* --- Combinations ------------------------------------------------------------------------------ */

enum {
    SCENARIO = 1,
    TRAFFIC = 2,
    ATOMICS = 4,
    WRONG_SIZE = 8, /* -s is not 8, for atomics */
    FETCHES = 16,   /* READs, atomics, ATOMIC WRITEs or FLUSHes */
    NO_RECEIVES = 32,
    UNRELIABLE = 64, /* UC or UD */
    ONE_KIND = 128,  /* not mixed */
    WORKLOAD = 256,  /* --workload */
    ANSWERED = 512,  /* each message is */
};

static const char scripted[] = "is for traffic: a scenario says it itself";
static const char reliable[] = "is for -c RC and XRC";
static const char two_hosts[] = "is for two hosts: a workload has many";

static const struct opt_clash clashes[] = {
    {'v', 0, TRAFFIC, "is for scenarios"},
    {'s', 0, SCENARIO, scripted},
    {'n', 0, SCENARIO, scripted},
    {'D', 0, SCENARIO, scripted},
    {'D', 'n', 0, NULL},
    {'D', 'Q', 0, NULL}, /* the last messages would not complete */
    {'q', 0, SCENARIO, scripted},
    {'c', 0, SCENARIO, scripted},
    {'t', 0, SCENARIO, scripted},
    {'r', 0, SCENARIO, scripted},
    {'o', 0, SCENARIO, scripted},
    {'b', 0, SCENARIO, scripted},
    {'u', 0, SCENARIO, scripted},
    {KEY_RETRY_COUNT, 0, SCENARIO, scripted},
    {KEY_RNR_RETRY, 0, SCENARIO, scripted},
    {KEY_RNR_TIMER, 0, SCENARIO, scripted},
    {'Q', 0, SCENARIO, scripted},
    {'l', 0, SCENARIO, scripted},
    {'l', 'Q', 0, NULL},
    {KEY_LATENCY, 0, SCENARIO, scripted},
    {KEY_LATENCY, 't', 0, NULL}, /* latency: one message at a time */
    {KEY_LATENCY, 'l', 0, NULL},
    {KEY_LATENCY, 'Q', 0, NULL},
    {KEY_VARY, 0, ANSWERED, "is not for --latency: the answer is as long as the message"},
    {'b', 0, ANSWERED, "changes nothing with --latency: both hosts send"},
    {'S', 0, SCENARIO, scripted},
    {'T', 0, SCENARIO, scripted},
    {KEY_HOP_LIMIT, 0, SCENARIO, scripted},
    {KEY_VARY, 0, SCENARIO, scripted},
    {KEY_MIX, 0, SCENARIO, scripted},
    {KEY_MIX, 0, ONE_KIND, "is for mixed"},
    {KEY_IMM, 0, SCENARIO, scripted},
    {KEY_ALTERNATE, 0, SCENARIO, scripted},
    {KEY_ALTERNATE, 0, UNRELIABLE, reliable},
    {KEY_GRH, 0, SCENARIO, scripted},
    {KEY_HOSTS, 0, SCENARIO, "is for traffic"},
    {KEY_TIME_LIMIT, 0, SCENARIO, scripted},
    {KEY_COMPLETIONS, 0, SCENARIO, scripted},
    {KEY_TRUTH, 0, SCENARIO, "is for traffic"},
    {KEY_CNP_CUT, KEY_CC, 0, NULL},
    {KEY_CNP, KEY_IB, 0, NULL},
    {KEY_CNP, KEY_ROCEV1, 0, NULL},
    {KEY_CNP_CUT, KEY_IB, 0, NULL}, /* only RoCEv2 has CNPs */
    {KEY_CNP_CUT, KEY_ROCEV1, 0, NULL},
    {KEY_JSON, 0, SCENARIO, "is for traffic: a scenario has no result but its expectations"},
    {'s', 0, WRONG_SIZE, "can only be 8 for atomics"},
    {KEY_VARY, 0, ATOMICS, "is not for atomics: their size is 8"},
    {KEY_IMM, 0, FETCHES, "is for SENDs and WRITEs"},
    {'r', 0, NO_RECEIVES, "is for SENDs and immediate data: nothing else needs receives"},
    {KEY_RECV_DELAY, 0, NO_RECEIVES, "is for SENDs and immediate data: nothing else needs receives"},
    {KEY_RECV_DELAY, 0, SCENARIO, scripted},
    {'o', 0, UNRELIABLE, reliable},
    {'u', 0, UNRELIABLE, reliable},
    {KEY_RETRY_COUNT, 0, UNRELIABLE, reliable},
    {KEY_RNR_RETRY, 0, UNRELIABLE, reliable},
    {KEY_RNR_TIMER, 0, UNRELIABLE, reliable},
    {KEY_ACK, 0, UNRELIABLE, reliable},
    {KEY_WINDOW, 0, UNRELIABLE, reliable},
    {KEY_CREDITS, 0, UNRELIABLE, reliable},
    {KEY_SLOW, 0, UNRELIABLE, reliable},
    {'c', 0, WORKLOAD, "is for traffic: workloads are RDMA WRITEs over RC"},
    {'r', 0, WORKLOAD, "is for traffic: workloads post as many receives as they need"},
    {'b', 0, WORKLOAD, two_hosts},
    {'Q', 0, WORKLOAD, "is for traffic"},
    {'D', 0, WORKLOAD, "is for traffic"},
    {'l', 0, WORKLOAD, "is for traffic"},
    {KEY_LATENCY, 0, WORKLOAD, "is for traffic"},
    {'v', 0, WORKLOAD, "is for scenarios"},
    {KEY_RECV_DELAY, 0, WORKLOAD, two_hosts},
    {KEY_VARY, 0, WORKLOAD, two_hosts},
    {KEY_MIX, 0, WORKLOAD, two_hosts},
    {KEY_IMM, 0, WORKLOAD, "is for traffic: workloads have immediate data always"},
    {KEY_PSN, 0, WORKLOAD, two_hosts},
    {KEY_NO_CM, 0, WORKLOAD, "is for traffic: the queue pairs of workloads are joined always"},
    {KEY_DIE, 0, WORKLOAD, two_hosts},
    {KEY_EVENT, 0, WORKLOAD, two_hosts},
    {KEY_NET, 0, WORKLOAD, "is for two hosts: --fabric changes links and switches"},
    {KEY_LOSS, 0, WORKLOAD, "is for two hosts: --fabric 'link loss=P' loses frames"},
    {KEY_ALTERNATE, 0, WORKLOAD, two_hosts},
    {KEY_HOSTS, 0, WORKLOAD, two_hosts},
    {KEY_IB, 0, WORKLOAD, "is for two hosts: a fabric is Ethernet"},
    {KEY_WORKLOAD, -KEY_TOPOLOGY, 0, NULL},
    {KEY_TOPOLOGY, -KEY_WORKLOAD, 0, NULL},
    {KEY_FABRIC, -KEY_TOPOLOGY, 0, NULL},
    {KEY_STATS, -KEY_TOPOLOGY, 0, NULL},
    {KEY_SUMMARY, -KEY_TOPOLOGY, 0, NULL},
    {KEY_FCT, -KEY_TOPOLOGY, 0, NULL},
    {KEY_PFC, -KEY_TOPOLOGY, 0, NULL},
    {KEY_HOSTS, KEY_ALTERNATE, 0, NULL},
    {KEY_HOSTS, KEY_IB, 0, NULL}, /* LIDs are not IP addresses */
    {KEY_IB, KEY_ROCEV1, 0, NULL},
    {KEY_IB, KEY_VLAN, 0, NULL},
    {KEY_SPORT, KEY_IB, 0, NULL}, /* only RoCEv2 has ports */
    {KEY_SPORT, KEY_ROCEV1, 0, NULL},
    {KEY_GRH, -KEY_IB, 0, NULL},
    {KEY_ERF, -KEY_IB, 0, NULL},
    {KEY_ERF, -'w', 0, NULL},
    {KEY_SNAPLEN, -'w', 0, NULL},
    {KEY_CAPTURE_DROP, -'w', 0, NULL},
    {KEY_CLOCK_OFFSET, -'w', 0, NULL},
    {KEY_CLOCK_SKEW, -'w', 0, NULL},
    {0, 0, 0, NULL},
};

/* The cases of struct opt_clash that apply. */
static unsigned cases(const struct sim_job *job)
{
    const struct traffic_config *t = &job->traffic;
    bool atomics = traffic_has_8_bytes(t->op);

    if (job->workload)
        return WORKLOAD;
    if (t->op == TRAFFIC_OPS)
        return SCENARIO;
    return TRAFFIC | (atomics ? ATOMICS : 0) | (atomics && t->size != 8 ? WRONG_SIZE : 0) |
           (atomics || t->op == TRAFFIC_READ || t->op == TRAFFIC_FLUSH ? FETCHES : 0) |
           (traffic_receives(t) ? 0 : NO_RECEIVES) | (qp_is_reliable(t->type) ? 0 : UNRELIABLE) |
           (t->op == TRAFFIC_MIXED ? 0 : ONE_KIND) | (traffic_answers(t) ? ANSWERED : 0);
}

/* Refuse the first option given that has no meaning for what is played (for a scenario traffic.op is TRAFFIC_OPS): 0,
 * or EXIT_BAD after a message. */
static int refuse(const struct opt_state *s, const struct sim_job *job)
{
    return opt_refuse(s, clashes, cases(job));
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

/* A storage protocol has defaults of its own: 0, or EXIT_BAD after a message. */
static int settle_storage(struct sim_job *job, const struct opt_state *s)
{
    struct traffic_config *t = &job->traffic;

    if (!opt_given(s, 'n'))
        t->iters = 100;
    if (!opt_given(s, 't'))
        t->tx_depth = 16;
    return sim_storage_settle(job, s);
}

/* Derive and check what depends on several options. EXIT_OK, or EXIT_BAD after a message. */
static int job_settle(struct sim_job *job, const struct opt_state *s, const char *what)
{
    struct traffic_config *t = &job->traffic;
    uint16_t mtu = job->conn.peer[0].path_mtu;

    job->storage = job->workload ? NULL : storage_kind_find(what);
    t->op = job->workload || job->storage ? TRAFFIC_WRITE : (uint8_t)traffic_op_find(what);
    if (job->storage && settle_storage(job, s) != 0)
        return EXIT_BAD;
    if (refuse(s, job) != 0 || sim_settle_files(job) != 0)
        return EXIT_BAD;
    if (job->sim.ep[0].addr.encap == ENCAP_IB && net_has(&job->sim.net, is_pause))
        return cli_error("sim %s: pause frames are Ethernet's, --ib has none", what);
    if (specs_cc_lacks(&job->cc, job->topology != NULL))
        return EXIT_BAD;
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        uint8_t *tclass = &job->conn.peer[h].av.tclass;
        specs_cc_settle(&job->cc, &job->sim.ep[h].congestion);
        *tclass = specs_cc_tclass(&job->cc, *tclass);
    }
    settle_pace(&job->sim);
    if (job->workload || job->storage)
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
        status = operand == s.argc
                     ? cli_error("sim: expected an operation (write, send, read, cas, faa, atomic_write, "
                                 "flush, mw1, mw2, fastreg, mixed), a storage protocol (nvme, nfs, iser) or a "
                                 "scenario file")
                     : cli_error("sim: unexpected '%s'", s.argv[operand + 1]);
    if (status < 0 && job_settle(job, &s, operand < s.argc ? argv[operand] : "workload") != EXIT_OK)
        status = EXIT_BAD;
    opt_end(&s);
    if (status < 0) /* these functions free the events */
        status = job->workload   ? sim_workload(job)
                 : job->storage  ? sim_storage(job)
                 : job->scenario ? sim_scenario(job)
                                 : sim_traffic(job);
    else
        event_list_free(job->sim.events);
    free(job);
    return status;
}
