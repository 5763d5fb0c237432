/* layer 3 (peers): short messages on a queue pair of their own. */
#include "gen/peers/oob_rdma.h"

#include <errno.h>

#define WR_SENT 1000 /* wr_id of sends; receives have the number of their slot */

int rchan_init(struct rchan *c, struct endpoint *ep)
{
    struct ep_qp_init init = {
        .type = QPT_RC, .max_send_wr = RCHAN_SLOTS, .max_recv_wr = RCHAN_SLOTS, .sq_sig_all = true, .srq = EP_NO_SRQ};
    int r;

    memset(c, 0, sizeof *c);
    c->ep = ep;
    c->qp = c->cq = -1;
    init.pd = ep_pd_alloc(ep);
    r = ep_mr_reg(ep, init.pd, c->mem, sizeof c->mem, (uintptr_t)c->mem, ACCESS_LOCAL_WRITE, &c->key);
    if (r < 0)
        return r;
    c->cq = init.send_cq = init.recv_cq = ep_cq_create(ep, 4 * RCHAN_SLOTS);
    if (c->cq < 0)
        return c->cq;
    c->qp = ep_qp_create(ep, &init);
    return c->qp < 0 ? c->qp : 0;
}

void rchan_free(struct rchan *c)
{
    if (c->ep && c->qp >= 0)
        ep_qp_destroy(c->ep, c->qp);
    if (c->ep)
        ep_cq_destroy(c->ep, c->cq);
    if (c->ep && c->key)
        ep_mr_dereg(c->ep, c->key);
    c->ep = NULL;
}

static void post_recv(struct rchan *c, unsigned slot, ns_t now)
{
    struct sge sge = {(uintptr_t)c->mem[slot], RCHAN_MAX, c->key};
    struct recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};

    c->failed = c->failed || ep_post_recv(c->ep, c->qp, &wr, now) < 0;
}

void rchan_poll(struct rchan *c, ns_t now)
{
    const struct qp *qp = ep_qp(c->ep, c->qp);
    struct wc wc;

    if (!c->ready && qp->state >= QPS_RTR && qp->state <= QPS_RTS) {
        c->ready = true;
        for (unsigned i = 0; i < RCHAN_SLOTS; i++)
            post_recv(c, i, now);
    }
    while (ep_poll(c->ep, c->cq, &wc, 1) == 1) {
        if (wc.status != WC_SUCCESS) {
            c->failed = true;
        } else if (wc.wr_id == WR_SENT) {
            c->sending--;
        } else if (c->n_got < RCHAN_SLOTS) {
            c->got[c->n_got].slot = (uint8_t)wc.wr_id;
            c->got[c->n_got++].len = (uint8_t)wc.byte_len;
        }
    }
}

int rchan_take(struct rchan *c, void *data, ns_t now)
{
    unsigned slot, len;

    if (!c->n_got)
        return -1;
    slot = c->got[0].slot;
    len = c->got[0].len;
    memcpy(data, c->mem[slot], len);
    memmove(c->got, c->got + 1, --c->n_got * sizeof c->got[0]);
    post_recv(c, slot, now);
    return (int)len;
}

int rchan_send(struct rchan *c, const void *data, size_t len, ns_t now)
{
    uint8_t *mem = c->mem[RCHAN_SLOTS + c->sent % RCHAN_SLOTS];
    struct sge sge = {(uintptr_t)mem, (uint32_t)len, c->key};
    struct send_wr wr = {.wr_id = WR_SENT, .opcode = WR_SEND, .num_sge = 1, .sg_list = &sge};

    if (len > RCHAN_MAX)
        return -EMSGSIZE;
    if (c->sending == RCHAN_SLOTS)
        return -EAGAIN;
    memcpy(mem, data, len);
    if (ep_post_send(c->ep, c->qp, &wr, now) < 0)
        return -EIO;
    c->sending++;
    c->sent++;
    return 0;
}
