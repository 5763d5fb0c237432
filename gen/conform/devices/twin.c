/* layer 3 (conform): a simulated device behind the agent's commands, as a device under test. */
#include "gen/conform/devices/twin.h"

#include "gen/agent/agent.h"
#include "gen/rnic/ep_rnic.h"

#include <stdlib.h>

struct twin_dut {
    unsigned host;
    struct sim *sim;
    struct agent agent;
    bool begun;
};

/* As agents on a host with little memory. */
static const struct agent_limits limits = {.max_mem = 256u << 20, .max_qp = 1024, .max_objs = 8192};

static ns_t now_of(void *user)
{
    const struct twin_dut *t = user;

    return t->sim->now;
}

static bool pause(void *user, struct agent *a, ns_t until)
{
    struct twin_dut *t = user;

    (void)a;
    if (!sim_step(t->sim, until) && t->sim->now < until)
        t->sim->now = until;
    return true;
}

/* Both hosts are on one network. */
static bool resolve(void *user, const uint8_t gid[16], uint8_t mac[6])
{
    const struct twin_dut *t = user;

    for (unsigned h = 0; h < NET_HOSTS; h++) {
        int n = ep_sgid_index(t->sim->ep[h], gid);
        struct link_addr a;
        if (n < 0)
            continue;
        a = link_addr_nth(&t->sim->addr[h], (uint32_t)n);
        memcpy(mac, a.mac, 6);
        return true;
    }
    return false;
}

static void established(void *user, int qp)
{
    struct twin_dut *t = user;

    if (t->sim->cm[t->host])
        cm_agent_established(t->sim->cm[t->host], qp);
}

static bool start(void *user, struct sim *sim)
{
    struct twin_dut *t = user;
    struct agent_driver driver = {.user = t, .pause = pause, .now = now_of};
    struct ep_rnic_config c = {
        .ep = sim->ep[t->host], .now = &sim->now, .resolve = resolve, .established = established, .user = t};
    struct rnic *r = ep_rnic_new(&c);

    if (!r)
        return false;
    t->sim = sim;
    sim->foreign[t->host] = true;
    agent_begin(&t->agent, r, &limits, &driver);
    t->begun = true;
    return true;
}

static bool ask(void *user, const char *line, const uint8_t *data, size_t n, struct buf *said, struct buf *bulk)
{
    struct agent *a = &((struct twin_dut *)user)->agent;
    size_t text;

    a->out.len = 0;
    for (size_t len; *line; line += len + (line[len] == '\n')) { /* several: a batch */
        char *one = strndup(line, len = strcspn(line, "\n"));
        if (!one)
            return false;
        agent_line(a, one, len, data, n);
        free(one);
    }
    if (a->n_bulk > a->out.len)
        return false;
    text = a->out.len - a->n_bulk;
    buf_mem(said, a->out.p, text);
    buf_mem(bulk, a->out.p + text, a->n_bulk);
    return !a->out.err && !said->err && !bulk->err;
}

static void stop(void *user)
{
    struct twin_dut *t = user;
    struct rnic *r = t->agent.rnic;

    if (!t->begun)
        return;
    agent_end(&t->agent);
    r->ops->close(r);
    t->begun = false;
}

struct twin_dut *twin_dut_new(struct script_dut *dut, unsigned host)
{
    struct twin_dut *t = calloc(1, sizeof *t);

    if (t)
        t->host = host;
    *dut = (struct script_dut){.start = start, .ask = ask, .stop = stop, .user = t};
    return t;
}

void twin_dut_free(struct twin_dut *t)
{
    free(t);
}
