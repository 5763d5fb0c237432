/* layer 4 (tool): `rdmagen connect`: its connections and the events of the connection manager. */
#include "gen/cli/connect_cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

struct connect_node *connect_find(struct connect_job *j, int qp)
{
    for (unsigned i = 0; i < j->n; i++)
        if (j->nodes[i].used && j->nodes[i].m.qp == qp)
            return &j->nodes[i];
    return NULL;
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

static void show_open(const struct connect_job *j, const struct connect_node *n, const struct cm_conn *c)
{
    if (!j->verbose || j->run.quiet)
        return;
    printf("connection %u: %s, QPN 0x%06x to 0x%06x, %.3f ms", (unsigned)(n - j->nodes), live_addr_str(n->gid),
           ep_qp(j->run.live.ep, n->m.qp)->qpn, c->peer.qpn, (double)(live_now() - n->began) / 1e6);
    show_private(c->peer.private_data, c->peer.private_len);
    printf("\n");
    fflush(stdout);
}

/* CM parameters of this side. */
static void own_params(struct connect_job *j, struct connect_node *n, struct cm_params *p)
{
    live_cm_params(&j->run.live, p, n->m.qp, ep_pick_psn(j->run.live.ep), n->gid, j->port);
    if (j->talk.ud)
        p->service_id = cm_service_ip(CM_PS_UDP, j->port);
    p->qkey = MATOSE_QKEY;
    memcpy(p->private_data, j->data, j->data_len);
    p->private_len = j->data_len;
}

/* GID of the requester: in a SIDR_REQ only the RDMA-CM header has it. */
static void gid_of(uint8_t gid[16], const struct cm_conn *c, bool sidr)
{
    if (!sidr)
        memcpy(gid, c->peer.path.sgid, 16);
    else if (c->peer.ip.ip_version == 4)
        gid_from_ipv4(gid, load_be32(c->peer.ip.src + 12));
    else
        memcpy(gid, c->peer.ip.src, 16);
}

/* Accept a request, or reject it with a reason. */
static void take(struct connect_job *j, struct connect_node *n, const struct cm_conn *c, struct cm_answer *a)
{
    struct live *l = &j->run.live;

    gid_of(n->gid, c, j->talk.ud);
    if ((!j->talk.ud && !live_cm_peer(l, &a->peer, n->gid, 0)) || matose_init(&n->m, ep_verbs(l->ep), &j->talk) < 0) {
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

void connect_request(void *user, const struct cm_conn *c, struct cm_answer *a)
{
    struct connect_job *j = ((struct live *)user)->user;
    bool sidr = c->state == CM_ST_SIDR_REQ_RCVD;

    if (!j->run.server || sidr != j->talk.ud ||
        c->peer.service_id != cm_service_ip(sidr ? CM_PS_UDP : CM_PS_TCP, j->port))
        return;
    if (j->rejects) {
        a->reason = j->reject;
        j->refused++;
        return;
    }
    a->reason = sidr ? CM_SIDR_NO_QP : CM_REJ_CONSUMER_DEFINED; /* as ucmatose does when it has enough */
    if (j->taken < j->n)
        take(j, &j->nodes[j->taken], c, a);
}

/* A SIDR_REP has arrived. */
static void resolved(struct connect_job *j, struct connect_node *n, const struct cm_conn *c)
{
    char why[100];
    struct av av;

    if (c->sidr_status != CM_SIDR_SUCCESS) {
        snprintf(why, sizeof why, "the service was refused: %s", cm_sidr_status_str(c->sidr_status));
        connect_fail(j, n, why);
    } else if (!live_path(&j->run.live, n->gid, &av) || matose_peer(&n->m, &av, c->peer.qpn, c->peer.qkey) < 0 ||
               matose_open_ud(&n->m, ep_pick_psn(j->run.live.ep), live_now()) < 0) {
        connect_fail(j, n, "no queue pair for the service");
    } else {
        n->open = true;
        show_open(j, n, c);
    }
    n->over = !n->open;
}

void connect_event(void *user, int qp, enum cm_event e, const struct cm_conn *c)
{
    struct connect_job *j = ((struct live *)user)->user;
    struct connect_node *n = connect_find(j, qp);

    if (!n)
        return;
    if (e == CM_EV_CONNECTED) {
        n->open = true;
        show_open(j, n, c);
    } else if (e == CM_EV_SIDR_RESPONSE) {
        resolved(j, n, c);
    } else if (e == CM_EV_REJECTED || e == CM_EV_UNREACHABLE) {
        connect_fail(j, n, live_cm_why(e, c));
        n->over = true;
    } else if (e == CM_EV_DISCONNECTED) {
        /* not the completions of requests that were flushed */
        matose_poll(&n->m, live_now());
        if (!matose_done(&n->m))
            connect_fail(j, n, n->m.failed && !strstr(n->m.why, "WR_FLUSH_ERR") ? n->m.why : live_cm_why(e, c));
        n->over = true;
    }
}

int connect_start(struct connect_job *j, struct connect_node *n)
{
    struct live *l = &j->run.live;
    struct cm_params own;
    struct ep_peer peer;
    int r = matose_init(&n->m, ep_verbs(l->ep), &j->talk);

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
