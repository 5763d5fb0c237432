/* layer 4 (tool): `rdmagen connect`: connects, exchanges messages, disconnects, reports. */
#include "gen/cli/connect_cli.h"

#include <errno.h>
#include <stdio.h>

#define LINGER (200 * NS_PER_MS) /* acknowledge again if the peer retransmits its last requests */

/* Number of connections that are established or over; with `over`, of those that are over. */
static unsigned count_nodes(const struct connect_job *j, bool over)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < j->taken; i++)
        sum += over ? j->nodes[i].over : j->nodes[i].open || j->nodes[i].over;
    return sum;
}

/* One step of the event loop: 0 or a negative errno. */
static int step(struct connect_job *j, ns_t deadline)
{
    int r = live_step(&j->run.live, deadline), failed;
    const char *why;

    connect_events(j);
    while ((failed = verbs_failed_qp(j->verbs, &why)) >= 0)
        for (unsigned i = 0; i < j->taken; i++)
            if (j->nodes[i].m.qp == failed)
                connect_fail(j, &j->nodes[i], why);
    for (unsigned i = 0; i < j->taken; i++) {
        struct connect_node *n = &j->nodes[i];
        if (!n->ready && !j->talk.ud && verbs_qp_takes_receives(j->verbs, n->m.qp)) {
            matose_ready(&n->m, live_now());
            n->ready = true;
        }
    }
    return r;
}

/* Wait until all connections are established or have failed. */
static int make_connections(struct connect_job *j)
{
    ns_t deadline = j->run.server ? NS_NEVER : live_now() + j->timeout;
    int r = 0;

    for (unsigned i = 0; r == 0 && !j->run.server && i < j->n; i++)
        r = connect_start(j, &j->nodes[i]);
    while (r == 0 && (j->rejects ? j->refused : count_nodes(j, false)) < j->n) {
        r = step(j, deadline);
        if (r == 0 && live_now() >= deadline)
            r = -ETIMEDOUT;
    }
    return r;
}

/* Progress of all connections, a number that only grows. *done: all messages are complete. */
static uint64_t progress(struct connect_job *j, bool *done)
{
    uint64_t sum = 0;

    *done = true;
    for (unsigned i = 0; i < j->taken; i++) {
        struct connect_node *n = &j->nodes[i];
        if (n->open && !n->over) {
            matose_poll(&n->m, live_now());
            if (*n->m.why)
                connect_fail(j, n, n->m.why);
            *done = *done && (*n->m.why || matose_done(&n->m));
        }
        sum += n->m.sent + n->m.received;
    }
    return sum;
}

static int exchange_messages(struct connect_job *j)
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
        r = step(j, deadline);
    }
    return r;
}

/* Keep the connections for j->hold, or until the peer ends them. */
static int hold(struct connect_job *j)
{
    ns_t end = live_now() + j->hold;
    int r = 0;

    while (r == 0 && live_now() < end && count_nodes(j, true) < j->taken)
        r = step(j, end);
    return r;
}

static void disconnect_all(struct connect_job *j)
{
    for (unsigned i = 0; i < j->taken; i++)
        if (j->nodes[i].open && !j->nodes[i].over)
            rdmacm_disconnect(j->verbs->cm, j->nodes[i].id, live_now());
}

/* Disconnect, or wait for the peer to do so; then release everything. `asked`: do not wait, disconnect now. */
static void leave(struct connect_job *j, bool asked)
{
    ns_t end = live_now() + (asked ? LIVE_LEAVE_WAIT : j->timeout), linger = live_now() + LINGER;
    int r = 0;

    live_go_on();
    if (asked && !j->talk.ud)
        disconnect_all(j);
    while (r == 0 && live_now() < end && !j->talk.ud && count_nodes(j, true) < j->taken)
        r = step(j, end);
    if (!asked && count_nodes(j, true) < j->taken && !j->talk.ud && r == 0) {
        cli_error("the server does not disconnect");
        j->failed++;
        disconnect_all(j);
    }
    for (; r == 0 && live_now() < linger;)
        r = live_step(&j->run.live, linger);
    for (unsigned i = 0; i < 3 && r == 0; i++)
        r = live_step(&j->run.live, 0); /* send the last message */
}

static int report(struct connect_job *j, int r)
{
    uint64_t sent = 0, received = 0, wrong = 0;
    unsigned open = 0;

    for (unsigned i = 0; i < j->taken; i++) {
        const struct connect_node *n = &j->nodes[i];
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

int connect_run(struct connect_job *j)
{
    int r = make_connections(j), status;

    if (r == 0)
        r = exchange_messages(j);
    if (r == 0)
        r = hold(j);
    leave(j, r < 0 || j->run.server || j->leave || j->failed);
    status = report(j, r);
    for (unsigned i = 0; i < j->taken; i++)
        if (j->nodes[i].used)
            connect_free(j, &j->nodes[i]);
    return status;
}
