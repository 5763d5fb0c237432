/* layer 3 (peers): short messages on a queue pair of their own. */
#include "gen/peers/oob_rdma.h"

#include <errno.h>

#define WR_SENT 1000 /* wr_id of sends; the wr_id of a receive is its slot */

int rchan_init(struct rchan *c, struct verbs *verbs)
{
    struct verbs_qp_init init = {
        .type = QPT_RC, .max_send_wr = RCHAN_SLOTS, .max_recv_wr = RCHAN_SLOTS, .sq_sig_all = true, .srq = EP_NO_SRQ};
    int r;

    memset(c, 0, sizeof *c);
    c->verbs = verbs;
    c->qp = c->cq = -1;
    init.pd = verbs_pd_alloc(verbs);
    r = verbs_mr_reg(verbs, init.pd, c->mem, sizeof c->mem, ACCESS_LOCAL_WRITE, &c->key);
    if (r < 0)
        return r;
    c->cq = init.send_cq = init.recv_cq = verbs_cq_create(verbs, 4 * RCHAN_SLOTS);
    if (c->cq < 0)
        return c->cq;
    c->qp = verbs_qp_create(verbs, &init);
    c->receives = (struct receives){.verbs = verbs,
                                    .qp = c->qp,
                                    .srq = EP_NO_SRQ,
                                    .mem = c->mem[0],
                                    .iova = (uintptr_t)c->mem,
                                    .lkey = c->key,
                                    .pitch = RCHAN_MAX,
                                    .bytes = RCHAN_MAX,
                                    .slots = RCHAN_SLOTS};
    return c->qp < 0 ? c->qp : 0;
}

void rchan_free(struct rchan *c)
{
    if (c->verbs && c->qp >= 0)
        verbs_qp_destroy(c->verbs, c->qp);
    if (c->verbs)
        verbs_cq_destroy(c->verbs, c->cq);
    if (c->verbs && c->key)
        verbs_mr_dereg(c->verbs, c->key);
    c->verbs = NULL;
}

void rchan_poll(struct rchan *c, ns_t now)
{
    struct wc wc;

    if (!c->ready && verbs_qp_takes_receives(c->verbs, c->qp)) {
        c->ready = true;
        c->failed |= receives_post_all(&c->receives, now) < 0;
    }
    while (verbs_poll(c->verbs, c->cq, &wc, 1) == 1) {
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
    c->failed |= receives_post(&c->receives, slot, now) < 0;
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
    if (verbs_post_send(c->verbs, c->qp, &wr, now) < 0)
        return -EIO;
    c->sending++;
    c->sent++;
    return 0;
}
