/* layer 4 (tool): `rdmagen connect`: its connections and the events of the connection manager. */
#include "gen/cli/connect_cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#define BACKLOG 1000

static struct rdmacm *cm_of(const struct connect_job *j)
{
    return j->verbs->cm;
}

void connect_fail(struct connect_job *j, struct connect_node *n, const char *why)
{
    if (n->reported)
        return;
    n->reported = true;
    j->failed++;
    cli_error("connection %u: %s", (unsigned)(n - j->nodes), why);
}

/* Print private data up to its last byte that is not zero: as text if all of it is printable, else hexadecimal. */
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

static void show_open(const struct connect_job *j, const struct connect_node *n)
{
    if (!j->verbose || j->run.quiet)
        return;
    printf("connection %u: %s, QPN 0x%06x to 0x%06x, %.3f ms", (unsigned)(n - j->nodes), live_addr_str(n->gid),
           verbs_qp_num(j->verbs, n->m.qp), n->qpn, (double)(live_now() - n->began) / 1e6);
    show_private(n->data, n->data_len);
    printf("\n");
    fflush(stdout);
}

/* Keep QPN and private data of the peer's request or reply. */
static void take_peer_params(struct connect_node *n, const struct rdmacm_event *e)
{
    n->qpn = e->qpn;
    n->data_len = e->private_len;
    memcpy(n->data, e->private_data, sizeof n->data);
}

/* CM parameters of this side. */
static struct rdmacm_param own_params(const struct connect_job *j, const struct connect_node *n)
{
    return (struct rdmacm_param){.qp = n->m.qp,
                                 .qkey = MATOSE_QKEY,
                                 .responder_resources = 1,
                                 .initiator_depth = 1,
                                 .private_data = j->data,
                                 .private_len = j->data_len};
}

/* --- The server ------------------------------------------------------------------------------- */

/* Accept a request for connection `n`: 0, or the reason of the REJ, or status of the SIDR_REP, to reject it with. */
static unsigned accept_request(struct connect_job *j, struct connect_node *n, const struct rdmacm_event *e)
{
    unsigned no = j->talk.ud ? CM_SIDR_NO_QP : CM_REJ_CONSUMER_DEFINED;
    struct rdmacm_param own;
    int r = matose_init(&n->m, j->verbs, &j->talk);

    memcpy(n->gid, e->gid, 16);
    n->id = e->id;
    n->began = live_now();
    own = own_params(j, n);
    if (r == 0 && j->talk.ud)
        r = matose_open_ud(&n->m, verbs_pick_psn(j->verbs), live_now());
    if (r == 0)
        r = rdmacm_accept(cm_of(j), n->id, &own, live_now());
    if (r < 0) {
        matose_free(&n->m);
        return no;
    }
    take_peer_params(n, e);
    n->used = true;
    n->open = j->talk.ud;
    j->taken++;
    if (n->open)
        show_open(j, n);
    return 0;
}

static void request(struct connect_job *j, const struct rdmacm_event *e)
{
    unsigned reason = j->talk.ud ? CM_SIDR_NO_QP : CM_REJ_CONSUMER_DEFINED; /* as ucmatose does when it has enough */

    if (j->rejects)
        reason = j->reject;
    else if (j->taken < j->n)
        reason = accept_request(j, &j->nodes[j->taken], e);
    if (!j->rejects && !reason)
        return;
    j->refused += j->rejects;
    rdmacm_reject(cm_of(j), e->id, reason, NULL, 0, live_now());
    rdmacm_id_destroy(cm_of(j), e->id, live_now());
}

static int listen_for_clients(struct connect_job *j)
{
    int r = j->listener = rdmacm_id_create(cm_of(j), j->channel, j->talk.ud ? CM_PS_UDP : CM_PS_TCP);

    if (r >= 0)
        r = rdmacm_listen(cm_of(j), j->listener, j->port, BACKLOG);
    if (r >= 0 && !j->run.quiet)
        live_cli_ready(&j->run.live, j->port);
    return r;
}

/* --- The client ------------------------------------------------------------------------------- */

/* Resolve the path of connection `n`: 0 or a negative errno. */
static int find_server(struct connect_job *j, struct connect_node *n)
{
    int r = n->id = rdmacm_id_create(cm_of(j), j->channel, j->talk.ud ? CM_PS_UDP : CM_PS_TCP);
    ns_t end = live_now() + LIVE_RESOLVE_WAIT;

    if (r < 0)
        return r;
    n->used = true;
    n->m.qp = -1;
    n->began = live_now();
    memcpy(n->gid, j->run.gid, 16);
    j->taken++;
    r = rdmacm_resolve(cm_of(j), n->id, n->gid, j->port, LIVE_RESOLVE_WAIT, n->began);
    for (connect_events(j); r == 0 && !n->resolved; connect_events(j))
        r = n->lost ? n->lost : live_step(&j->run.live, end);
    return r;
}

int connect_start(struct connect_job *j, struct connect_node *n)
{
    struct rdmacm_param own;
    int r = n->resolved ? 0 : find_server(j, n);

    n->began = live_now();
    if (r == 0)
        r = matose_init(&n->m, j->verbs, &j->talk);
    if (r < 0)
        return r;
    own = own_params(j, n);
    return rdmacm_connect(cm_of(j), n->id, &own, live_now());
}

/* A connection is established, or a SIDR_REP has arrived. */
static void opened(struct connect_job *j, struct connect_node *n, const struct rdmacm_event *e)
{
    n->open = !j->talk.ud || (matose_peer(&n->m, &e->av, e->qpn, e->qkey) == 0 &&
                              matose_open_ud(&n->m, verbs_pick_psn(j->verbs), live_now()) == 0);
    n->over = !n->open;
    if (n->open)
        show_open(j, n);
    else
        connect_fail(j, n, "no queue pair for the service");
}

/* --- Both sides ------------------------------------------------------------------------------- */

static void disconnected(struct connect_job *j, struct connect_node *n, const char *why)
{
    matose_poll(&n->m, live_now()); /* poll, for the error of the first failed request */
    if (!matose_done(&n->m))
        connect_fail(j, n, *n->m.why && !strstr(n->m.why, "WR_FLUSH_ERR") ? n->m.why : why);
    n->over = true;
}

static void on_event(struct connect_job *j, struct connect_node *n, const struct rdmacm_event *e)
{
    char why[160];

    rdmacm_why(e, why, sizeof why);
    if (e->type == RDMACM_ROUTE_RESOLVED) {
        n->resolved = true;
    } else if (e->type == RDMACM_ADDR_ERROR) {
        n->lost = e->status;
    } else if (e->type == RDMACM_ESTABLISHED) {
        if (!j->run.server)
            take_peer_params(n, e);
        opened(j, n, e);
    } else if (e->type == RDMACM_REJECTED || e->type == RDMACM_UNREACHABLE) {
        connect_fail(j, n, why);
        n->over = true;
    } else if (e->type == RDMACM_DISCONNECTED) {
        disconnected(j, n, why);
    }
}

void connect_events(struct connect_job *j)
{
    struct rdmacm_event e;

    while (rdmacm_get_event(cm_of(j), j->channel, &e)) {
        if (e.type == RDMACM_CONNECT_REQUEST)
            request(j, &e);
        for (unsigned i = 0; i < j->taken; i++)
            if (j->nodes[i].id == e.id)
                on_event(j, &j->nodes[i], &e);
    }
}

int connect_open(struct connect_job *j)
{
    j->verbs = ep_verbs(j->run.live.ep);
    j->channel = rdmacm_channel_create(cm_of(j));
    return j->run.server ? listen_for_clients(j) : find_server(j, &j->nodes[0]);
}

void connect_free(struct connect_job *j, struct connect_node *n)
{
    rdmacm_id_destroy(cm_of(j), n->id, live_now());
    matose_free(&n->m);
}
