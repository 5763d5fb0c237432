/* layer 3 (live): connections by RDMA-CM on a real network. */
#include "gen/live/live_cm.h"

#include <stdio.h>

static uint64_t guid_of(const uint8_t mac[6])
{
    uint8_t g[8] = {mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};

    return load_be64(g);
}

void live_cm_params(struct live *l, struct cm_params *p, int qp, uint32_t psn, const uint8_t gid[16], uint16_t port)
{
    uint32_t r = ep_pick_psn(l->ep);

    cm_params_linux(p);
    cm_params_ip(p, l->id.gid, gid, CM_PS_TCP, (uint16_t)(32768 + r % 28000), port);
    p->ca_guid = guid_of(l->id.mac);
    p->qpn = ep_qp(l->ep, qp)->qpn;
    p->psn = psn;
    p->mtu = (uint8_t)cm_mtu_code(l->mtu);
    p->path.flow = r & 0xfffff;
    p->path.tclass = l->tclass;
    p->path.sl = l->id.pcp;
}

bool live_cm_peer(struct live *l, struct ep_peer *p, const uint8_t gid[16], uint8_t access)
{
    *p = ep_peer_default();
    p->access = access;
    return live_path(l, gid, &p->av);
}

int live_failed_qp(struct live *l, const char **why)
{
    struct ep_event e;

    while (ep_event(l->ep, &e)) {
        *why = e.type == EP_EV_QP_ACCESS_ERR ? "the peer asked for memory that it may not read or write like this"
               : e.type == EP_EV_QP_REQ_ERR  ? "the peer sent an invalid request"
                                             : NULL;
        if (*why)
            return e.handle;
    }
    return -1;
}

const char *live_cm_why(enum cm_event e, const struct cm_conn *c)
{
    static char text[160];

    if (e == CM_EV_REJECTED)
        snprintf(text, sizeof text, "the connection was refused: %s", cm_rej_reason_str(c->rej_reason));
    else if (e == CM_EV_UNREACHABLE)
        snprintf(text, sizeof text, "the connection manager of the peer does not answer");
    else
        snprintf(text, sizeof text, "the peer has disconnected");
    return text;
}
