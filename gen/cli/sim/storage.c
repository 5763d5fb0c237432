/* layer 4 (tool): `rdmagen sim nvme`, `nfs`, `iser`: both ends of a storage protocol in virtual time. */
#include "gen/cli/sim/sim_cli.h"
#include "gen/cli/specs.h"
#include "gen/cli/storage_cli.h"

#include <stdlib.h>

#define TIME_LIMIT (3600 * NS_PER_S) /* virtual, if there is none */
#define END_WAIT   (60 * NS_PER_S)   /* virtual, for the next thing to happen: a DREQ is sent again */

static const char for_traffic[] = "is not for storage protocols";
static const struct opt_clash clashes[] = {
    {'v', 0, 1, for_traffic},
    {'D', 0, 1, for_traffic},
    {'c', 0, 1, for_traffic},
    {'r', 0, 1, for_traffic},
    {'o', 0, 1, for_traffic},
    {'b', 0, 1, for_traffic},
    {'u', 0, 1, for_traffic},
    {'Q', 0, 1, for_traffic},
    {'l', 0, 1, for_traffic},
    {'S', 0, 1, for_traffic},
    {'T', 0, 1, for_traffic},
    {KEY_RETRY_COUNT, 0, 1, for_traffic},
    {KEY_RNR_RETRY, 0, 1, for_traffic},
    {KEY_RNR_TIMER, 0, 1, for_traffic},
    {KEY_LATENCY, 0, 1, for_traffic},
    {KEY_HOP_LIMIT, 0, 1, for_traffic},
    {KEY_VARY, 0, 1, for_traffic},
    {KEY_MIX, 0, 1, for_traffic},
    {KEY_IMM, 0, 1, for_traffic},
    {KEY_PSN, 0, 1, for_traffic},
    {KEY_NO_CM, 0, 1, for_traffic},
    {KEY_RECV_DELAY, 0, 1, for_traffic},
    {KEY_ALTERNATE, 0, 1, for_traffic},
    {KEY_GRH, 0, 1, for_traffic},
    {KEY_HOSTS, 0, 1, for_traffic},
    {KEY_COMPLETIONS, 0, 1, for_traffic},
    {KEY_TRUTH, 0, 1, for_traffic},
    {KEY_JSON, 0, 1, for_traffic},
    {0, 0, 0, NULL},
};

struct play {
    struct sim sim;
    struct storage end[NET_HOSTS];
};

static ns_t on_run(void *user, ns_t now)
{
    struct play *p = user;
    ns_t next = NS_NEVER;

    for (unsigned h = 0; h < NET_HOSTS; h++) {
        ns_t due;
        storage_step(&p->end[h], now);
        due = storage_done(&p->end[h], now) ? NS_NEVER : storage_next(&p->end[h]);
        next = due < next ? due : next;
    }
    return next;
}

/* Settings of both ends. */
static struct storage_config config_of(const struct sim_job *job)
{
    struct storage_config c = storage_defaults();

    c.write = true;
    c.seed = job->sim.seed;
    c.iters = job->traffic.iters;
    c.size = job->traffic.size;
    c.depth = job->traffic.tx_depth;
    c.queues = job->traffic.qps;
    c.mtu = job->conn.peer[0].path_mtu;
    return c;
}

int sim_storage_settle(const struct sim_job *job, const struct opt_state *s)
{
    struct storage_config c = config_of(job);

    if (job->traffic.qps > 1 && !job->storage->queues)
        return cli_error("sim: -q %u: %s has one connection", job->traffic.qps, job->storage->name);
    if (job->traffic.qps > STORAGE_LINKS / 4)
        return cli_error("sim: -q %u: at most %u I/O queues", job->traffic.qps, STORAGE_LINKS / 4);
    return opt_refuse(s, clashes, 1) ? EXIT_BAD : storage_settle("sim", job->storage, &c);
}

static int open_ends(struct play *p, const struct sim_job *job)
{
    struct storage_config c = config_of(job);
    int r = 0;

    memcpy(c.gid, p->sim.addr[1].gid, 16);
    for (unsigned h = NET_HOSTS; h-- > 0 && r == 0;) { /* the serving end first */
        int err;
        p->sim.foreign[h] = true;
        c.server = h == 1;
        err = storage_open(&p->end[h], job->storage, &c, ep_verbs(p->sim.ep[h]), p->sim.now);
        r = err < 0 ? cli_error("sim: %s", strerror(-err)) : 0;
    }
    return r;
}

/* Run until both ends are done, and nothing happens any more. */
static void run(struct play *p, ns_t limit)
{
    while (!storage_done(&p->end[0], p->sim.now) && sim_step(&p->sim, limit))
        ;
    if (storage_done(&p->end[0], p->sim.now))
        while (!storage_done(&p->end[1], p->sim.now) && sim_step(&p->sim, p->sim.now + END_WAIT))
            ;
}

static int report(const struct sim_job *job, struct play *p)
{
    static const char *const who[NET_HOSTS] = {"the requester", "the responder"};
    int status = EXIT_OK;
    struct buf b = {0};

    for (unsigned h = 0; h < NET_HOSTS; h++) {
        if (*p->end[h].why)
            cli_error("sim: %s: %s", h ? "server" : "client", p->end[h].why);
        storage_text(&b, &p->end[h]);
        if (storage_status(&p->end[h]) != EXIT_OK)
            status = EXIT_FOUND;
    }
    if (sim_show(job, &b) != 0)
        status = EXIT_BAD;
    return sim_idle(&p->sim, who, specs_print, NULL) && status == EXIT_OK ? EXIT_FOUND : status;
}

static int play(struct sim_job *job, struct play *p)
{
    struct sim_app app = {.run = on_run, .user = p}, none = {0};
    int status, err = sim_init(&p->sim, &job->sim, &none);

    status = err < 0 ? cli_error("sim: %s", strerror(-err)) : open_ends(p, job);
    if (status == 0) {
        p->sim.app = app;
        run(p, job->traffic.time_limit ? job->traffic.time_limit : TIME_LIMIT);
        status = report(job, p);
    }
    for (unsigned h = 0; h < NET_HOSTS && err == 0; h++)
        storage_close(&p->end[h]);
    sim_free(&p->sim);
    return status;
}

int sim_storage(struct sim_job *job)
{
    struct tap_set sets[TAP_PLACES];
    struct play *p = calloc(1, sizeof *p);
    int status = p ? sim_open_taps(job, sets) : cli_error("out of memory"), closed;

    if (status) {
        event_list_free(job->sim.events);
        free(p);
        return status;
    }
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        job->sim.ep[h].faults = job->faults[h];
        job->sim.ep[h].n_faults = job->n_faults[h];
        job->sim.ep[h].max_mr = 16384;
    }
    status = play(job, p);
    closed = sim_close_taps(sets);
    free(p);
    return closed ? closed : status;
}
