/* layer 3 (peers): the protocol of ibv_*_pingpong. */
#include "gen/peers/pingpong.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* wr_id of sends, plus the number of the queue pair; the wr_id of a receive is its slot */
#define WR_SENT (UINT64_C(1) << 32)

enum { PENDING_RECV = 1, PENDING_SEND = 2 };

void pingpong_addr_put(char *text, const struct pingpong_addr *a)
{
    int n = snprintf(text, PINGPONG_TEXT, "%04x:%06x:%06x:", a->lid, (unsigned)a->qpn & 0xffffff,
                     (unsigned)a->psn & 0xffffff);

    for (unsigned i = 0; i < 16; i++)
        snprintf(text + n + 2 * i, 3, "%02x", a->gid[i]);
}

/* Read `n` hexadecimal digits. */
static bool get_hex(const char *p, unsigned n, uint32_t *v)
{
    *v = 0;
    for (unsigned i = 0; i < n; i++) {
        char c = p[i] | 0x20;
        bool digit = p[i] >= '0' && p[i] <= '9';
        if (!digit && (c < 'a' || c > 'f'))
            return false;
        *v = *v << 4 | (uint32_t)(digit ? p[i] - '0' : c - 'a' + 10);
    }
    return true;
}

bool pingpong_addr_get(struct pingpong_addr *a, const char *text)
{
    uint32_t lid, byte;

    if (!get_hex(text, 4, &lid) || !get_hex(text + 5, 6, &a->qpn) || !get_hex(text + 12, 6, &a->psn))
        return false;
    if (text[4] != ':' || text[11] != ':' || text[18] != ':' || text[51])
        return false;
    a->lid = (uint16_t)lid;
    for (unsigned i = 0; i < 16; i++) {
        if (!get_hex(text + 19 + 2 * i, 2, &byte))
            return false;
        a->gid[i] = (uint8_t)byte;
    }
    return true;
}

static int make_qps(struct pingpong *p)
{
    struct verbs_qp_init init = {.type = p->cfg.type,
                                 .max_send_wr = 4,
                                 .max_recv_wr = p->cfg.recvs,
                                 .sq_sig_all = true,
                                 .srq = EP_NO_SRQ,
                                 .send_cq = p->cq,
                                 .recv_cq = p->cq,
                                 .pd = p->pd};

    if (p->cfg.srq) {
        p->srq = init.srq = verbs_srq_create(p->verbs, p->pd, p->cfg.recvs, 1);
        if (p->srq < 0)
            return p->srq;
    }
    for (unsigned i = 0; i < p->cfg.qps; i++) {
        p->q[i].qp = verbs_qp_create(p->verbs, &init);
        if (p->q[i].qp < 0)
            return p->q[i].qp;
        p->q[i].qpn = verbs_qp_num(p->verbs, p->q[i].qp);
    }
    return 0;
}

static struct receives receives_of(const struct pingpong *p)
{
    uint32_t grh = p->cfg.type == QPT_UD ? UD_GRH_BYTES : 0, bytes = p->cfg.size + grh;

    return (struct receives){.verbs = p->verbs,
                             .qp = p->q[0].qp,
                             .srq = p->srq,
                             .mem = p->mem + p->cfg.size,
                             .iova = (uintptr_t)p->mem + p->cfg.size,
                             .lkey = p->key,
                             .pitch = bytes,
                             .bytes = bytes,
                             .grh = grh,
                             .slots = p->cfg.recvs};
}

int pingpong_init(struct pingpong *p, struct verbs *verbs, const struct pingpong_config *cfg)
{
    size_t bytes;
    int r;

    *p = (struct pingpong){.verbs = verbs, .cfg = *cfg, .srq = EP_NO_SRQ, .ah = -1};
    for (unsigned i = 0; i < PINGPONG_QPS; i++)
        p->q[i] = (struct pingpong_qp){.qp = -1, .pending = PENDING_RECV};
    p->pd = verbs_pd_alloc(verbs);
    bytes = cfg->size + (size_t)cfg->recvs * receives_of(p).pitch;
    p->mem = calloc(1, bytes + 1);
    if (!p->mem)
        return -ENOMEM;
    memset(p->mem, PINGPONG_FILL, cfg->size);
    r = verbs_mr_reg(verbs, p->pd, p->mem, bytes + 1, ACCESS_LOCAL_WRITE, &p->key);
    if (r < 0)
        return r;
    p->cq = verbs_cq_create(verbs, cfg->recvs + 4 * cfg->qps + 32);
    r = p->cq < 0 ? p->cq : make_qps(p);
    p->receives = receives_of(p);
    return r;
}

void pingpong_free(struct pingpong *p)
{
    for (unsigned i = 0; p->verbs && i < p->cfg.qps; i++)
        if (p->q[i].qp >= 0)
            verbs_qp_destroy(p->verbs, p->q[i].qp);
    if (p->verbs && p->srq != EP_NO_SRQ)
        verbs_srq_destroy(p->verbs, p->srq);
    if (p->verbs && p->ah >= 0)
        verbs_ah_destroy(p->verbs, p->ah);
    if (p->verbs && p->key)
        verbs_mr_dereg(p->verbs, p->key);
    free(p->mem);
    memset(p, 0, sizeof *p);
}

/* Check the result of posting receives. */
static void posted(struct pingpong *p, int err)
{
    if (err < 0)
        why_set(p->why, "a receive could not be posted: %s", strerror(-err));
}

static void post_send(struct pingpong *p, unsigned i, ns_t now)
{
    struct sge sge = {(uintptr_t)p->mem, p->cfg.size, p->key};
    struct send_wr wr = {.wr_id = WR_SENT + i,
                         .opcode = WR_SEND,
                         .flags = SEND_SIGNALED,
                         .num_sge = p->cfg.size ? 1 : 0,
                         .sg_list = &sge,
                         .remote_qpn = p->peer_qpn,
                         .remote_qkey = PINGPONG_QKEY,
                         .ah = (uint32_t)p->ah};
    int r = verbs_post_send(p->verbs, p->q[i].qp, &wr, now);

    if (r < 0)
        why_set(p->why, "a message could not be posted: %s", strerror(-r));
    p->posted += r == 0;
    p->q[i].pending = PENDING_RECV | PENDING_SEND;
}

int pingpong_connect(struct pingpong *p, unsigned i, const struct pingpong_addr *own, const struct pingpong_addr *peer,
                     const struct av *av, uint16_t mtu, ns_t now)
{
    struct ep_peer e = ep_peer_default();

    e.av = *av;
    e.qpn = p->peer_qpn = peer->qpn;
    e.rq_psn = peer->psn;
    e.sq_psn = own->psn;
    e.path_mtu = mtu;
    e.qkey = PINGPONG_QKEY;
    e.access = 0;
    if (p->cfg.type == QPT_UD) {
        p->ah = verbs_ah_create(p->verbs, p->pd, av);
        if (p->ah < 0)
            return p->ah;
    }
    return verbs_qp_connect(p->verbs, p->q[i].qp, &e, now);
}

void pingpong_ready(struct pingpong *p, ns_t now)
{
    posted(p, receives_post_all(&p->receives, now));
}

void pingpong_start(struct pingpong *p, ns_t now)
{
    for (unsigned i = 0; i < p->cfg.qps; i++)
        post_send(p, i, now);
}

static bool is_right(const struct pingpong *p, const uint8_t *data)
{
    /* ibv_srq_pingpong sends from its one receive buffer, which is zero until a message has arrived: so the first
     * messages of a client, or parts of them, are zero. */
    uint8_t other = p->cfg.srq && !p->cfg.client ? 0 : PINGPONG_FILL;

    for (uint32_t i = 0; i < p->cfg.size; i++)
        if (data[i] != PINGPONG_FILL && data[i] != other)
            return false;
    return true;
}

static void take_message(struct pingpong *p, const struct wc *wc, ns_t now)
{
    uint32_t len;
    const uint8_t *data = receives_data(&p->receives, wc->wr_id, wc, &len);

    p->mismatches += p->cfg.validate && !(len == p->cfg.size && is_right(p, data));
    p->received++;
    posted(p, receives_post(&p->receives, wc->wr_id, now));
}

/* Number of the queue pair of a completion; PINGPONG_QPS: none of ours. */
static unsigned qp_of(const struct pingpong *p, const struct wc *wc)
{
    unsigned i = 0;

    if (wc->wr_id >= WR_SENT)
        return (unsigned)(wc->wr_id - WR_SENT);
    while (i < p->cfg.qps && p->q[i].qpn != wc->qpn)
        i++;
    return i < p->cfg.qps ? i : PINGPONG_QPS;
}

void pingpong_poll(struct pingpong *p, ns_t now)
{
    struct wc wc;

    while (!*p->why && verbs_poll(p->verbs, p->cq, &wc, 1) == 1) {
        bool send = wc.wr_id >= WR_SENT;
        unsigned i = qp_of(p, &wc);
        if (wc.status != WC_SUCCESS)
            why_set(p->why, "%s completed with %s", send ? "a message" : "a receive", wc_status_str(wc.status));
        else if (send)
            p->sent++;
        else if (wc.wr_id < p->cfg.recvs)
            take_message(p, &wc, now);
        if (*p->why || i == PINGPONG_QPS)
            continue;
        /* As the examples of libibverbs do: send the next message when the previous SEND has completed and the message
         * of the peer has arrived. */
        p->q[i].pending &= (uint8_t) ~(send ? PENDING_SEND : PENDING_RECV);
        if (!p->q[i].pending && p->sent < p->cfg.iters)
            post_send(p, i, now);
    }
}

bool pingpong_done(const struct pingpong *p)
{
    return p->sent >= p->cfg.iters && p->received >= p->cfg.iters;
}
