/* layer 3 (peers): the protocols of ucmatose and udaddy. */
#include "gen/peers/ucmatose.h"

#include <errno.h>
#include <stdlib.h>

#define WR_SENT (UINT64_C(1) << 32) /* the wr_id of a receive is its slot */

/* Whether this side sends before it receives. */
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

static struct receives receives_of(const struct matose *m)
{
    uint32_t bytes = m->cfg.size + (m->cfg.ud ? UD_GRH_BYTES : 0);

    return (struct receives){.verbs = m->verbs,
                             .qp = m->qp,
                             .srq = EP_NO_SRQ,
                             .mem = m->mem + m->cfg.size,
                             .iova = (uintptr_t)m->mem + m->cfg.size,
                             .lkey = m->key,
                             .pitch = bytes,
                             .bytes = bytes,
                             .slots = slots(m)};
}

int matose_init(struct matose *m, struct verbs *verbs, const struct matose_config *cfg)
{
    struct verbs_qp_init init = {
        .type = cfg->ud ? QPT_UD : QPT_RC, .max_send_wr = cfg->count, .sq_sig_all = true, .srq = EP_NO_SRQ};
    size_t bytes;
    int r;

    *m = (struct matose){.cfg = *cfg, .verbs = verbs, .qp = -1, .cq = -1, .ah = -1};
    bytes = (size_t)cfg->size + (size_t)slots(m) * receives_of(m).pitch;
    m->mem = calloc(1, bytes);
    if (!m->mem)
        return -ENOMEM;
    for (uint32_t i = 0; i < cfg->size; i++)
        m->mem[i] = pattern(i);
    m->pd = init.pd = verbs_pd_alloc(verbs);
    init.max_recv_wr = slots(m);
    m->cq = init.send_cq = init.recv_cq = verbs_cq_create(verbs, cfg->count + slots(m));
    if (m->cq < 0)
        return m->cq;
    r = verbs_mr_reg(verbs, m->pd, m->mem, bytes, ACCESS_LOCAL_WRITE, &m->key);
    if (r < 0)
        return r;
    m->qp = verbs_qp_create(verbs, &init);
    m->receives = receives_of(m);
    return m->qp < 0 ? m->qp : 0;
}

void matose_free(struct matose *m)
{
    if (m->qp >= 0 && m->verbs)
        verbs_qp_destroy(m->verbs, m->qp);
    if (m->ah >= 0 && m->verbs)
        verbs_ah_destroy(m->verbs, m->ah);
    if (m->key)
        verbs_mr_dereg(m->verbs, m->key);
    free(m->mem);
    *m = (struct matose){.qp = -1, .cq = -1, .ah = -1};
}

/* Check the result of posting `n` receives. */
static void posted(struct matose *m, uint32_t n, int err)
{
    if (err < 0)
        why_set(m->why, "a receive could not be posted: %s", strerror(-err));
    m->recvs += n;
}

void matose_ready(struct matose *m, ns_t now)
{
    posted(m, m->receives.slots, receives_post_all(&m->receives, now));
}

int matose_open_ud(struct matose *m, uint32_t sq_psn, ns_t now)
{
    struct ep_peer p = ep_peer_default();
    int r;

    p.qkey = MATOSE_QKEY;
    p.sq_psn = sq_psn;
    r = verbs_qp_connect(m->verbs, m->qp, &p, now);
    if (r == 0)
        matose_ready(m, now);
    return r;
}

int matose_peer(struct matose *m, const struct av *av, uint32_t qpn, uint32_t qkey)
{
    m->peer_qpn = qpn;
    m->peer_qkey = qkey;
    m->ah = verbs_ah_create(m->verbs, m->pd, av);
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
                         .imm_data = verbs_qp_num(m->verbs, m->qp),
                         .remote_qpn = m->peer_qpn,
                         .remote_qkey = m->peer_qkey,
                         .ah = (uint32_t)m->ah};

    m->begun = true;
    while (m->posted < m->cfg.count && !*m->why) {
        int r = verbs_post_send(m->verbs, m->qp, &wr, now);
        if (r < 0)
            why_set(m->why, "a message could not be posted: %s", strerror(-r));
        m->posted++;
    }
}

void matose_start(struct matose *m, ns_t now)
{
    if (is_first(m) && !m->begun)
        send_all(m, m->mem, now);
}

/* Whether a received message equals the one that this side sent. */
static bool is_own(const struct matose *m, const uint8_t *data, uint32_t len)
{
    uint32_t from =
        m->cfg.ud ? 2 * UD_GRH_BYTES : 0; /* the GRH area of this receive, and the one that the peer sent back */

    if (len != m->receives.bytes)
        return false;
    for (uint32_t i = from; i < len; i++)
        if (data[i] != pattern(i - from))
            return false;
    return true;
}

/* UD, passive side: reply to the sender of the datagram. */
static void learn_peer(struct matose *m, const struct wc *wc, const uint8_t *data)
{
    uint8_t gid[16];
    struct av av;

    receives_source(data, gid);
    if (!m->cfg.path || !m->cfg.path(m->cfg.user, gid, &av) || matose_peer(m, &av, wc->imm_data, MATOSE_QKEY) < 0)
        why_set(m->why, "there is no way back to the sender of a datagram");
}

static void take_message(struct matose *m, const struct wc *wc, ns_t now)
{
    const uint8_t *data = receives_mem(&m->receives, wc->wr_id);

    m->received++;
    if (m->cfg.validate && is_first(m))
        m->mismatches += !is_own(m, data, wc->byte_len);
    if (m->cfg.ud && m->ah < 0)
        learn_peer(m, wc, data);
    if (!*m->why && !is_first(m) && m->received == m->cfg.count)
        send_all(m, data, now);
    if (!*m->why && m->recvs < m->cfg.count)
        posted(m, 1, receives_post(&m->receives, wc->wr_id, now));
}

void matose_poll(struct matose *m, ns_t now)
{
    struct wc wc;

    while (!*m->why && verbs_poll(m->verbs, m->cq, &wc, 1) == 1) {
        bool send = wc.wr_id == WR_SENT;
        if (wc.status != WC_SUCCESS)
            why_set(m->why, "%s completed with %s", send ? "a message" : "a receive", wc_status_str(wc.status));
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
