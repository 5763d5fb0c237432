/* layer 3 (sim): connections of a simulation: queue pairs at both hosts, joined directly or by connection managers. */
#include "gen/sim/sim.h"

#include <errno.h>
#include <stdlib.h>

#define SIM_PORT   18515 /* that the passive side listens on, as perftest does */
#define FIRST_PORT 40000 /* first port of the active side */
#define PORTS      20000 /* ports of the active side */

void sim_conn_config_init(struct sim_conn_config *c, enum qp_type type, uint16_t mtu)
{
    *c = (struct sim_conn_config){
        .type = (uint8_t)type, .max_send_wr = 128, .max_recv_wr = 128, .max_sge = 1, .srq = {EP_NO_SRQ, EP_NO_SRQ}};
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        c->peer[h] = ep_peer_default();
        c->peer[h].path_mtu = mtu;
        c->peer[h].qkey = 0x11111111;
    }
}

/* XRC: a domain, and a shared receive queue whose receives complete in the connection's completion queue. */
static int create_xrc(struct endpoint *ep, struct sim_conn *c, const struct sim_conn_config *cfg, unsigned h,
                      uint32_t *xrcd)
{
    *xrcd = ep_xrcd_alloc(ep);
    c->srq[h] = ep_srq_create(ep, cfg->pd[h], cfg->max_recv_wr, cfg->max_sge);
    return c->srq[h] < 0 ? c->srq[h] : ep_srq_to_xrc(ep, c->srq[h], *xrcd, c->cq[h]);
}

static struct endpoint *ep_at(const struct sim *s, const struct sim_conn *c, unsigned end)
{
    return s->ep[c->host[end]];
}

static int create_qp(struct sim *s, struct sim_conn *c, const struct sim_conn_config *cfg, unsigned h)
{
    struct endpoint *ep = ep_at(s, c, h);
    uint32_t depth = cfg->cq_depth ? cfg->cq_depth : cfg->max_send_wr + cfg->max_recv_wr;
    bool target = !sim_conn_requests(c, h), xrc = cfg->type == QPT_XRC_INI;
    struct ep_qp_init init = {.type = target ? QPT_XRC_TGT : cfg->type,
                              .qpn = cfg->qpn[h],
                              .max_send_wr = cfg->max_send_wr,
                              .max_recv_wr = cfg->max_recv_wr,
                              .max_send_sge = cfg->max_sge,
                              .max_recv_sge = cfg->max_sge,
                              .max_inline = cfg->max_inline,
                              .sq_sig_all = cfg->sig_all,
                              .srq = xrc ? EP_NO_SRQ : cfg->srq[h],
                              .xrcd = target ? cfg->xrcd : 0,
                              .pd = cfg->pd[h]};

    c->cq[h] = init.send_cq = init.recv_cq = ep_cq_create(ep, depth);
    if (c->cq[h] < 0)
        return c->cq[h];
    if (target && !init.xrcd) {
        int err = create_xrc(ep, c, cfg, h, &init.xrcd);
        if (err < 0)
            return err;
    }
    if (target)
        c->remote_srqn = ep_srq_number(ep, c->srq[h]);
    c->qp[h] = ep_qp_create(ep, &init);
    if (c->qp[h] >= 0)
        ep_qp_set_user(ep, c->qp[h], c);
    return c->qp[h];
}

static uint32_t qpn_of(const struct sim *s, const struct sim_conn *c, unsigned h)
{
    return ep_qp(ep_at(s, c, h), c->qp[h])->qpn;
}

/* Set the path and the attributes of each host's peer. */
static void fill_peers(const struct sim *s, struct sim_conn *c, const struct sim_conn_config *cfg)
{
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct ep_peer *p = &c->peer[h];
        struct av given = cfg->peer[h].av;
        *p = cfg->peer[h];
        p->av = sim_conn_path(s, c, h, 1);
        p->av.tclass = given.tclass;
        p->av.sl = given.sl;
        p->av.flow = given.flow;
        p->av.sport = given.sport;
        p->av.grh = given.grh;
        if (given.hop_limit)
            p->av.hop_limit = given.hop_limit;
        p->qpn = qpn_of(s, c, h ^ 1);
        p->sq_psn = cfg->psn[h];
        p->rq_psn = cfg->psn[h ^ 1];
    }
}

static int conn_create(struct sim *s, struct sim_conn *c, const struct sim_conn_config *cfg)
{
    struct conn_id id = {.psn = {cfg->psn[0], cfg->psn[1]}, .ud = cfg->type == QPT_UD};

    c->type = cfg->type;
    c->initiator = cfg->initiator;
    c->alternate = cfg->alternate;
    memcpy(c->srq, cfg->srq, sizeof c->srq);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        c->host[h] = s->fabric ? cfg->host[h] : (uint16_t)h;
        c->sgid_index[h] = s->fabric ? 0 : (uint16_t)(s->n_conns % s->addrs[h]);
        int r = create_qp(s, c, cfg, h);
        if (r < 0)
            return r;
    }
    fill_peers(s, c, cfg);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct link_addr own = sim_addr(s, c, h, 1);
        id.qpn[h] = qpn_of(s, c, h);
        memcpy(id.addr[h].b, own.gid, sizeof id.addr[h].b);
        c->ah[h] = cfg->type == QPT_UD ? ep_ah_create(ep_at(s, c, h), cfg->pd[h], &c->peer[h].av) : -1;
        if (cfg->type == QPT_UD && c->ah[h] < 0)
            return c->ah[h];
        c->remote_qpn[h] = c->peer[h].qpn;
        c->remote_qkey[h] = cfg->peer[h ^ 1].qkey;
    }
    c->number = conns_add(event_conns(s->events), &id);
    return c->number ? 0 : -ENOMEM;
}

struct sim_conn *sim_conn_add(struct sim *s, const struct sim_conn_config *cfg, int *err)
{
    struct sim_conn *c = calloc(1, sizeof *c), **all;
    bool grow = (s->n_conns & (s->n_conns + 1)) == 0;
    uint8_t *news = grow ? realloc(s->news, 2 * (s->n_conns + 1)) : s->news;

    s->news = news ? news : s->news;
    all = c && grow ? realloc(s->conn, 2 * (s->n_conns + 1) * sizeof(struct sim_conn *)) : s->conn;
    s->conn = all ? all : s->conn;
    if (!c || !all || !news) {
        free(c);
        *err = -ENOMEM;
        return NULL;
    }
    *err = conn_create(s, c, cfg);
    if (*err < 0) {
        free(c);
        return NULL;
    }
    s->news[s->n_conns] = 1;
    s->conn[s->n_conns++] = c;
    return c;
}

/* Load the other path as alternate path at both ends, without messages of connection management. */
static int load_both(struct sim *s, const struct sim_conn *c)
{
    int r = 0;

    for (unsigned h = 0; h < NET_HOSTS && r == 0; h++) {
        struct av av = sim_conn_path(s, c, h, sim_other_port(s, c, h));
        r = ep_qp_load_path(s->ep[h], c->qp[h], &av, c->peer[h].timeout, s->now);
    }
    return r;
}

int sim_conn_join(struct sim *s, struct sim_conn *c)
{
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        int r = ep_qp_connect(ep_at(s, c, h), c->qp[h], &c->peer[h], s->now);
        if (r < 0)
            return r;
        c->state[h] = SIM_CONN_UP;
    }
    return c->alternate ? load_both(s, c) : 0;
}

/* --- With connection managers ----------------------------------------------------------------- */

/* Packet life time code for which the other side chooses this ACK timeout, twice the packet life time. */
static uint8_t life_of(uint8_t timeout)
{
    return timeout ? (uint8_t)(timeout - 1) : 0;
}

/* Port of the passive side. */
static uint16_t cm_port(const struct sim *s)
{
    return s->port ? s->port : SIM_PORT;
}

/* Port of the active side. */
static uint16_t port_of(const struct sim_conn *c)
{
    return (uint16_t)(FIRST_PORT + c->number % PORTS);
}

/* The path of connection `c` (NULL: between first addresses) by the ports `port` of the hosts, as `h` announces it. */
static struct cm_path path_by(const struct sim *s, const struct sim_conn *c, const struct cm_path *like, unsigned h,
                              unsigned port)
{
    struct link_addr own = sim_addr(s, c, h, port), other = sim_addr(s, c, h ^ 1, port);
    struct cm_path p = *like;

    memcpy(p.sgid, own.gid, 16);
    memcpy(p.dgid, other.gid, 16);
    if (own.encap == ENCAP_IB) {
        p.slid = own.lid;
        p.dlid = other.lid;
    }
    return p;
}

static void own_private(const struct sim_cm *cm, unsigned h, struct cm_params *p)
{
    p->private_len = cm->len[h];
    for (unsigned i = 0; i < p->private_len; i++)
        p->private_data[i] = SIM_PRIVATE_BYTE(i);
}

static void own_params(const struct sim *s, const struct sim_conn *c, unsigned h, struct cm_params *p)
{
    static const uint8_t transports[QP_TYPES] = {[QPT_UC] = CM_TRANSPORT_UC, [QPT_XRC_INI] = CM_TRANSPORT_EXT};
    const struct ep_peer *peer = &c->peer[h];
    struct link_addr own = sim_addr(s, c, h, 1), other = sim_addr(s, c, h ^ 1, 1);

    cm_params_linux(p);
    cm_params_ip(p, own.gid, other.gid, c->type == QPT_UD ? CM_PS_UDP : CM_PS_TCP, port_of(c), cm_port(s));
    p->qpn = qpn_of(s, c, h);
    p->psn = peer->rq_psn;
    p->qkey = peer->qkey;
    p->transport = transports[c->type];
    p->ext_transport = c->type == QPT_XRC_INI;
    p->mtu = (uint8_t)cm_mtu_code(peer->path_mtu);
    p->resp_res = peer->max_dest_rd_atomic;
    p->init_depth = peer->max_rd_atomic;
    p->retry_count = peer->retry_cnt;
    p->rnr_retry = peer->rnr_retry;
    p->ack_timeout = peer->timeout;
    p->ack_delay = 0;
    p->flow_ctrl = s->credits[h];
    p->srq = c->srq[h] != EP_NO_SRQ;
    if (!sim_conn_requests(c, h)) { /* as librdmacm's examples do */
        p->private_len = 4;
        store_be32(p->private_data, ep_srq_number(s->ep[h], c->srq[h]));
    }
    if (c->cm && c->cm->gives[h])
        own_private(c->cm, h, p);
    p->path.life = life_of(peer->timeout);
    p->path.flow = peer->av.flow;
    p->path.tclass = peer->av.tclass;
    p->path.hop = peer->av.hop_limit;
    p->path.sl = peer->av.sl;
    p->path.subnet_local = s->addr[h].encap == ENCAP_IB && !peer->av.grh;
    p->path = path_by(s, c, &p->path, h, 1);
    p->has_alt = c->alternate && s->net.port2[h];
    p->alt = path_by(s, c, &p->path, h, 2);
    p->alt_timeout = peer->timeout;
}

/* A path that REQ or LAP names. */
static bool alternate(const struct sim *s, unsigned h, const struct cm_path *path, struct av *av)
{
    for (unsigned port = 1; port <= 2; port++) {
        struct cm_path p = path_by(s, NULL, path, h, port);
        if (memcmp(p.sgid, path->sgid, 16) != 0 || memcmp(p.dgid, path->dgid, 16) != 0)
            continue;
        *av = sim_path(s, h, port);
        return true;
    }
    return false;
}

static bool alternate0(void *user, const struct cm_path *path, struct av *av)
{
    return alternate(user, 0, path, av);
}
static bool alternate1(void *user, const struct cm_path *path, struct av *av)
{
    return alternate(user, 1, path, av);
}

/* The path from host `h` to the address `gid` of the other one; the manager chooses the own address. */
static bool path_of_gid(const struct sim *s, unsigned h, const uint8_t gid[16], struct av *av)
{
    int n = ep_sgid_index(s->ep[h ^ 1], gid);
    struct sim_conn at = {.host = {0, 1}};

    if (n < 0)
        return false;
    at.sgid_index[h ^ 1] = (uint16_t)n;
    *av = sim_conn_path(s, &at, h, 1);
    return true;
}

static bool path0(void *user, const uint8_t gid[16], struct av *av)
{
    return path_of_gid(user, 0, gid, av);
}
static bool path1(void *user, const uint8_t gid[16], struct av *av)
{
    return path_of_gid(user, 1, gid, av);
}

/* Whether host `h` is not this simulation's endpoint of it. */
static bool is_elsewhere(const struct sim *s, unsigned h)
{
    return s->foreign[h] || (s->wire && s->wire->local != h);
}

/* The connection whose requester has this queue pair. */
static struct sim_conn *conn_of_qpn(const struct sim *s, unsigned h, uint32_t qpn)
{
    for (uint32_t i = 0; is_elsewhere(s, h) && i < s->n_conns; i++)
        if (s->conn[i]->remote_qpn[h ^ 1] == qpn)
            return s->conn[i];
    if (is_elsewhere(s, h))
        return NULL;
    int qp = ep_qp_find(s->ep[h], qpn);

    return qp >= 0 ? ep_qp_user(s->ep[h], qp) : NULL;
}

/* The passive side's connection for a request: found by the queue pair or port of the active side. */
static struct sim_conn *conn_of_request(const struct sim *s, unsigned h, const struct cm_conn *cm)
{
    struct sim_conn *c = conn_of_qpn(s, h ^ 1, cm->peer.qpn);
    /* number of the first connection with this port */
    uint32_t first = (cm->peer.ip.sport + 2u * PORTS - FIRST_PORT) % PORTS;

    if (cm->state != CM_ST_SIDR_REQ_RCVD)
        return c && c->type != QPT_UD && c->state[h] == SIM_CONN_NEW ? c : NULL;
    for (uint32_t n = first ? first : PORTS; n <= s->n_conns; n += PORTS) {
        c = s->conn[n - 1];
        if (c->type == QPT_UD && cm->peer.ip.sport == port_of(c) && c->state[h] != SIM_CONN_UP)
            return c;
    }
    return NULL;
}

/* A host outside of the simulation chooses the first PSN of the requests sent to it. */
static void learn_psn(struct sim *s, const struct sim_conn *c, unsigned h, const struct cm_conn *cm)
{
    if (is_elsewhere(s, h ^ 1) && c->type != QPT_UD)
        event_conns(s->events)->c[c->number - 1].psn[h] = cm->peer.psn;
}

static void keep_told(struct sim_conn *c, unsigned h, const struct cm_conn *cm)
{
    if (!c->cm)
        return;
    memcpy(c->cm->told[h], cm->peer.private_data, min_u32(cm->peer.private_len, sizeof c->cm->told[h]));
    c->cm->reason[h] = cm->rej_reason;
}

/* The request is not accepted now: true. */
static bool put_off(const struct sim *s, struct sim_conn *c, unsigned h, struct cm_answer *a)
{
    struct sim_cm *cm = c->cm;

    if (cm && cm->hold) {
        a->mra = cm->mra;
        a->ask_again = s->now + cm->hold;
        cm->hold = 0;
        return true;
    }
    if (!cm || !cm->refuses)
        return false;
    a->reason = CM_REJ_CONSUMER_DEFINED;
    own_private(cm, h, &a->own);
    c->state[h] = SIM_CONN_FAILED;
    s->news[c->number - 1] = 1;
    return true;
}

static void request(struct sim *s, unsigned h, const struct cm_conn *cm, struct cm_answer *a)
{
    struct sim_conn *c = conn_of_request(s, h, cm);
    bool sidr = cm->state == CM_ST_SIDR_REQ_RCVD;

    if (s->foreign[h] || cm->peer.service_id != cm_service_ip(sidr ? CM_PS_UDP : CM_PS_TCP, cm_port(s)))
        return;
    a->reason = sidr ? CM_SIDR_NO_QP : CM_REJ_NO_QP;
    if (!c || ep_has_fault(s->ep[h], RULE_CM_05)) /* that fault is about a reject */
        return;
    keep_told(c, h, cm);
    if (put_off(s, c, h, a))
        return;
    own_params(s, c, h, &a->own);
    a->own.has_ip = 0;
    a->own.tid = 0;
    a->peer = c->peer[h];
    a->qp = c->qp[h];
    c->state[h] = SIM_CONN_PENDING;
    s->news[c->number - 1] = 1;
    conns_set_cm(event_conns(s->events), c->number, h, cm->local_id);
    learn_psn(s, c, h, cm);
    if (c->type == QPT_UD && ep_qp_connect(s->ep[h], c->qp[h], &c->peer[h], s->now) == 0)
        c->state[h] = SIM_CONN_UP;
}

static void request0(void *user, const struct cm_conn *cm, struct cm_answer *a)
{
    request(user, 0, cm, a);
}
static void request1(void *user, const struct cm_conn *cm, struct cm_answer *a)
{
    request(user, 1, cm, a);
}

static void happened(struct sim *s, unsigned h, int qp, enum cm_event e, const struct cm_conn *cm)
{
    struct sim_conn *c = qp >= 0 && !s->foreign[h] ? ep_qp_user(s->ep[h], qp) : NULL;

    if (!c)
        return;
    s->news[c->number - 1] = 1;
    if (e == CM_EV_CONNECTED || e == CM_EV_REJECTED)
        keep_told(c, h, cm);
    if (e == CM_EV_CONNECTED) {
        c->state[h] = SIM_CONN_UP;
        learn_psn(s, c, h, cm);
        if (c->type == QPT_XRC_INI && c->initiator == h)
            c->remote_srqn = load_be32(cm->peer.private_data);
    } else if (e == CM_EV_SIDR_RESPONSE) {
        bool good = cm->sidr_status == CM_SIDR_SUCCESS && ep_qp_connect(s->ep[h], qp, &c->peer[h], s->now) == 0;
        c->state[h] = good ? SIM_CONN_UP : SIM_CONN_FAILED;
        c->remote_qpn[h] = cm->peer.qpn;
        c->remote_qkey[h] = cm->peer.qkey;
    } else if (e == CM_EV_REJECTED || e == CM_EV_UNREACHABLE) {
        c->state[h] = c->state[h] == SIM_CONN_CLOSING ? SIM_CONN_DOWN : SIM_CONN_FAILED;
    } else if (e == CM_EV_DISCONNECTED) {
        c->state[h] = cm->state == CM_ST_DREQ_SENT ? SIM_CONN_CLOSING : SIM_CONN_DOWN;
    } else if (e == CM_EV_TIMEWAIT_EXIT) {
        c->state[h] = SIM_CONN_DOWN;
    }
}

static void happened0(void *user, int qp, enum cm_event e, const struct cm_conn *cm)
{
    happened(user, 0, qp, e, cm);
}
static void happened1(void *user, int qp, enum cm_event e, const struct cm_conn *cm)
{
    happened(user, 1, qp, e, cm);
}

int sim_cm_open(struct sim *s, const struct sim_config *c)
{
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct cm_agent_config a = {.ep = s->ep[h],
                                    .peer = sim_path(s, h, 1),
                                    .seed = c->seed * 2 + h + 77,
                                    .request = h ? request1 : request0,
                                    .event = h ? happened1 : happened0,
                                    .apr = c->apr[h],
                                    .user = s};
        if (s->addrs[0] > 1 || s->addrs[1] > 1) {
            a.path = h ? path1 : path0;
            a.max_paths = s->addrs[0] + s->addrs[1];
        }
        if (c->ep[h].two_ports)
            a.alternate = h ? alternate1 : alternate0;
        s->cm[h] = cm_agent_new(&a);
        if (!s->cm[h])
            return -ENOMEM;
    }
    return 0;
}

int sim_conn_connect(struct sim *s, struct sim_conn *c, unsigned from)
{
    struct cm_params p;
    uint32_t id;

    if (!s->cm[from])
        return -ENOTCONN;
    own_params(s, c, from, &p);
    c->state[from] = SIM_CONN_PENDING;
    id = c->type == QPT_UD ? cm_agent_resolve(s->cm[from], c->qp[from], &p, s->now)
                           : cm_agent_connect(s->cm[from], c->qp[from], &p, &c->peer[from], s->now);
    if (!id)
        return -ENOMEM;
    conns_set_cm(event_conns(s->events), c->number, from, id);
    return 0;
}

int sim_conn_flood(struct sim *s, const struct sim_conn *c, unsigned from, uint32_t times)
{
    struct cm_params p;

    if (!s->cm[from])
        return -ENOTCONN;
    own_params(s, c, from, &p);
    for (uint32_t i = 0; i < times; i++) {
        p.qpn = SIM_FLOOD_QPN + i;
        if (!cm_agent_connect(s->cm[from], c->qp[from], &p, &c->peer[from], s->now))
            return -ENOMEM;
    }
    return 0;
}

int sim_conn_load(struct sim *s, struct sim_conn *c, unsigned from)
{
    struct cm_params p;
    struct cm_path path;

    if (!s->cm[from])
        return -ENOTCONN;
    own_params(s, c, from, &p);
    path = path_by(s, c, &p.path, from, s->net.port2[from] ? sim_other_port(s, c, from) : 1);
    if (!s->net.port2[from])
        path.sgid[15] ^= 1;
    return cm_agent_load(s->cm[from], c->qp[from], &path, s->now);
}

int sim_conn_disconnect(struct sim *s, struct sim_conn *c, unsigned from)
{
    if (!s->cm[from])
        return -ENOTCONN;
    c->state[from] = SIM_CONN_CLOSING;
    return cm_agent_disconnect(s->cm[from], c->qp[from], s->now);
}
