/* layer 3 (peers): the conversations of ucmatose and udaddy. */
#include "gen/peers/ucmatose.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define WR_SENT (UINT64_C(1) << 32) /* receives are told apart by their slot */

static void __attribute__((format(printf, 2, 3))) fail(struct matose *m, const char *fmt, ...)
{
    va_list ap;

    if (m->failed)
        return;
    m->failed = true;
    va_start(ap, fmt);
    vsnprintf(m->why, sizeof m->why, fmt, ap);
    va_end(ap);
}

/* Whether this side sends before it has received. */
static bool is_first(const struct matose *m)
{
    return m->cfg.ud != m->cfg.passive;
}

static uint8_t pattern(uint32_t i)
{
    return (uint8_t)(1 + i * 31 + (i >> 8));
}

static uint32_t slots(const struct matose *m)
{
    return m->cfg.recvs && m->cfg.recvs < m->cfg.count ? m->cfg.recvs : m->cfg.count;
}

static uint8_t *slot_mem(const struct matose *m, uint64_t slot)
{
    return m->mem + m->cfg.size + slot * m->slot;
}

int matose_init(struct matose *m, struct endpoint *ep, const struct matose_config *cfg)
{
    struct ep_qp_init init = {
        .type = cfg->ud ? QPT_UD : QPT_RC, .max_send_wr = cfg->count, .sq_sig_all = true, .srq = EP_NO_SRQ};
    size_t bytes;
    int r;

    *m = (struct matose){.cfg = *cfg, .ep = ep, .qp = -1, .cq = -1, .ah = -1};
    m->slot = cfg->size + (cfg->ud ? UD_GRH_BYTES : 0);
    bytes = (size_t)cfg->size + (size_t)slots(m) * m->slot;
    m->mem = calloc(1, bytes);
    if (!m->mem)
        return -ENOMEM;
    for (uint32_t i = 0; i < cfg->size; i++)
        m->mem[i] = pattern(i);
    m->pd = init.pd = ep_pd_alloc(ep);
    init.max_recv_wr = slots(m);
    m->cq = init.send_cq = init.recv_cq = ep_cq_create(ep, cfg->count + slots(m));
    if (m->cq < 0)
        return m->cq;
    r = ep_mr_reg(ep, m->pd, m->mem, bytes, (uintptr_t)m->mem, ACCESS_LOCAL_WRITE, &m->key);
    if (r < 0)
        return r;
    m->qp = ep_qp_create(ep, &init);
    return m->qp < 0 ? m->qp : 0;
}

void matose_free(struct matose *m)
{
    if (m->qp >= 0 && m->ep)
        ep_qp_destroy(m->ep, m->qp);
    if (m->ah >= 0 && m->ep)
        ep_ah_destroy(m->ep, m->ah);
    if (m->key)
        ep_mr_dereg(m->ep, m->key);
    free(m->mem);
    *m = (struct matose){.qp = -1, .cq = -1, .ah = -1};
}

static void post_recv(struct matose *m, uint64_t slot, ns_t now)
{
    struct sge sge = {(uintptr_t)slot_mem(m, slot), m->slot, m->key};
    struct recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};
    int r = ep_post_recv(m->ep, m->qp, &wr, now);

    if (r < 0)
        fail(m, "a receive could not be posted: %s", strerror(-r));
    m->recvs++;
}

void matose_ready(struct matose *m, ns_t now)
{
    for (uint32_t i = 0; i < slots(m); i++)
        post_recv(m, i, now);
}

int matose_open_ud(struct matose *m, uint32_t sq_psn, ns_t now)
{
    struct ep_peer p = ep_peer_default();
    int r;

    p.qkey = MATOSE_QKEY;
    p.sq_psn = sq_psn;
    r = ep_qp_connect(m->ep, m->qp, &p, now);
    if (r == 0)
        matose_ready(m, now);
    return r;
}

int matose_peer(struct matose *m, const struct av *av, uint32_t qpn, uint32_t qkey)
{
    m->peer_qpn = qpn;
    m->peer_qkey = qkey;
    m->ah = ep_ah_create(m->ep, m->pd, av);
    return m->ah < 0 ? m->ah : 0;
}

/* Send all messages, from `data`. */
static void send_all(struct matose *m, const uint8_t *data, ns_t now)
{
    struct sge sge = {(uintptr_t)data, m->cfg.size, m->key};
    struct send_wr wr = {.wr_id = WR_SENT,
                         .opcode = m->cfg.ud ? WR_SEND_WITH_IMM : WR_SEND,
                         .flags = SEND_SIGNALED,
                         .num_sge = 1,
                         .sg_list = &sge,
                         .imm_data = ep_qp(m->ep, m->qp)->qpn,
                         .remote_qpn = m->peer_qpn,
                         .remote_qkey = m->peer_qkey,
                         .ah = (uint32_t)m->ah};

    m->begun = true;
    while (m->posted < m->cfg.count && !m->failed) {
        int r = ep_post_send(m->ep, m->qp, &wr, now);
        if (r < 0)
            fail(m, "a message could not be posted: %s", strerror(-r));
        m->posted++;
    }
}

void matose_start(struct matose *m, ns_t now)
{
    if (is_first(m) && !m->begun)
        send_all(m, m->mem, now);
}

/* Whether it is what this side had sent. */
static bool is_own(const struct matose *m, const uint8_t *data, uint32_t len)
{
    uint32_t from = m->cfg.ud ? 2 * UD_GRH_BYTES : 0; /* the header in front of it, and the one that came back */

    if (len != m->slot)
        return false;
    for (uint32_t i = from; i < len; i++)
        if (data[i] != pattern(i - from))
            return false;
    return true;
}

/* UD, passive: answers go where the datagram came from. */
static void learn_peer(struct matose *m, const struct wc *wc, const uint8_t *data)
{
    uint8_t gid[16];
    struct av av;

    ep_grh_source(data, gid);
    if (!m->cfg.path || !m->cfg.path(m->cfg.user, gid, &av) || matose_peer(m, &av, wc->imm_data, MATOSE_QKEY) < 0)
        fail(m, "there is no way back to the sender of a datagram");
}

static void take_message(struct matose *m, const struct wc *wc, ns_t now)
{
    const uint8_t *data = slot_mem(m, wc->wr_id);

    m->received++;
    if (m->cfg.validate && is_first(m))
        m->mismatches += !is_own(m, data, wc->byte_len);
    if (m->cfg.ud && m->ah < 0)
        learn_peer(m, wc, data);
    if (!m->failed && !is_first(m) && m->received == m->cfg.count)
        send_all(m, data, now);
    if (!m->failed && m->recvs < m->cfg.count)
        post_recv(m, wc->wr_id, now);
}

void matose_poll(struct matose *m, ns_t now)
{
    struct wc wc;

    while (!m->failed && ep_poll(m->ep, m->cq, &wc, 1) == 1) {
        bool send = wc.wr_id == WR_SENT;
        if (wc.status != WC_SUCCESS)
            fail(m, "%s completed with %s", send ? "a message" : "a receive", wc_status_str(wc.status));
        else if (send)
            m->sent++;
        else
            take_message(m, &wc, now);
    }
}

bool matose_done(const struct matose *m)
{
    return m->sent >= m->cfg.count && m->received >= m->cfg.count;
}
