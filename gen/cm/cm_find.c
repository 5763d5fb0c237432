/* layer 3 (cm): finding a connection of a connection manager by its id, its peer's id or its queue pair. */
#include "gen/cm/cm_agent_impl.h"

#include <stdlib.h>

bool agent_tables(struct cm_agent *a)
{
    bool good = true;

    a->conn = calloc(a->cap, sizeof *a->conn);
    a->news = calloc(a->cap, 1);
    a->unsent = calloc(a->cap, 1);
    a->timers.heap = calloc(a->cap + 1, sizeof *a->timers.heap);
    for (unsigned k = 0; k < KEYS; k++)
        good &= chains_init(&a->by[k], a->cap);
    return good && a->conn && a->news && a->unsent && a->timers.heap;
}

void agent_tables_free(struct cm_agent *a)
{
    for (unsigned k = 0; k < KEYS; k++)
        chains_free(&a->by[k]);
    free(a->conn);
    free(a->news);
    free(a->unsent);
    free(a->timers.heap);
}

bool agent_is_over(const struct agent_conn *c)
{
    return c->cm.state == CM_ST_CLOSED && !c->cm.pending && !c->cm.events && !(c->id && c->id->events);
}

/* Set or remove one key of a connection. */
static void find_by(struct cm_agent *a, struct agent_conn *c, unsigned k, uint32_t key, bool found)
{
    if (c->found[k] == found && c->key[k] == key)
        return;
    if (c->found[k])
        chains_drop(&a->by[k], c->key[k], c->number);
    if (found)
        chains_put(&a->by[k], key, c->number);
    c->key[k] = key;
    c->found[k] = found;
}

bool agent_half_open(const struct agent_conn *c)
{
    return c->cm.state == CM_ST_REP_SENT || c->cm.state == CM_ST_MRA_REP_RCVD;
}

bool agent_undecided(const struct agent_conn *c)
{
    return c->ask_again && (c->cm.state == CM_ST_REQ_RCVD || c->cm.state == CM_ST_MRA_REQ_SENT);
}

void agent_settle(struct cm_agent *a, struct agent_conn *c)
{
    ns_t when = cm_next_expiry(&c->cm);

    if (agent_half_open(c) && c->limit < when)
        when = c->limit;
    if (agent_undecided(c) && c->ask_again < when)
        when = c->ask_again;
    find_by(a, c, BY_LOCAL, c->cm.local_id, c->cm.state != CM_ST_IDLE);
    find_by(a, c, BY_REMOTE, c->cm.remote_id, c->cm.state != CM_ST_IDLE && !c->cm.active);
    find_by(a, c, BY_QP, (uint32_t)c->qp, c->qp >= 0);
    if (when == NS_NEVER)
        timer_stop(&a->timers, &c->timer);
    else if (!c->timer.place || c->timer.when != when)
        timer_set(&a->timers, &c->timer, when);
}

void agent_clear(struct cm_agent *a, struct agent_conn *c)
{
    uint32_t number = c->number;

    for (unsigned k = 0; k < KEYS; k++)
        find_by(a, c, k, 0, false);
    timer_stop(&a->timers, &c->timer);
    if (c->id)
        c->id->conn = NULL;
    memset(c, 0, sizeof *c);
    c->number = number;
    c->qp = -1;
}

struct agent_conn *agent_of_qp(const struct cm_agent *a, int qp)
{
    struct agent_conn *best = NULL; /* queue pair handles are reused */

    for (uint32_t i = chains_first(&a->by[BY_QP], (uint32_t)qp); i; i = chains_next(&a->by[BY_QP], i - 1)) {
        struct agent_conn *c = a->conn[i - 1];
        if (c->qp == qp && (!best || agent_is_over(best) > agent_is_over(c) ||
                            (agent_is_over(best) == agent_is_over(c) && c->number > best->number)))
            best = c;
    }
    return best;
}

/* The first connection with this key that a message is for, if it comes before `best`. */
static struct agent_conn *first_for(const struct cm_agent *a, unsigned k, uint32_t key, const struct cm_msg *m,
                                    struct agent_conn *best)
{
    struct cm_conn *hit;

    for (uint32_t i = chains_first(&a->by[k], key); i; i = chains_next(&a->by[k], i - 1)) {
        struct agent_conn *c = a->conn[i - 1];
        if (c->key[k] == key && (!best || c->number < best->number) && cm_route(&c->cm, 1, m, &hit) == CM_ROUTE_CONN)
            best = c;
    }
    return best;
}

/* A REQ or SIDR_REQ, and a REJ without a remote communication id, are found by the id of their sender; all other
 * messages by the id of the receiver's connection. */
struct agent_conn *agent_of_msg(const struct cm_agent *a, const struct cm_msg *m)
{
    switch (m->mad.attr_id) {
    case CM_REQ:
        return first_for(a, BY_REMOTE, m->req.local_id, m, NULL);
    case CM_SIDR_REQ:
        return first_for(a, BY_REMOTE, m->sidr_req.request_id, m, NULL);
    case CM_SIDR_REP:
        return first_for(a, BY_LOCAL, m->sidr_rep.request_id, m, NULL);
    case CM_REJ:
        return first_for(a, BY_REMOTE, m->rej.local_id, m, first_for(a, BY_LOCAL, m->rej.remote_id, m, NULL));
    default:
        return first_for(a, BY_LOCAL, m->rtu.remote_id, m, NULL);
    }
}
