/* layer 3 (gen): the pingpong conversation. */
#include "gen/pingpong.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define WR_SENT 1000 /* wr_id of sends; receives have the number of their slot */

void pingpong_addr_put(char *text, const struct pingpong_addr *a)
{
    int n = snprintf(text, PINGPONG_TEXT, "%04x:%06x:%06x:", a->lid, (unsigned)a->qpn & 0xffffff,
                     (unsigned)a->psn & 0xffffff);

    for (unsigned i = 0; i < 16; i++)
        snprintf(text + n + 2 * i, 3, "%02x", a->gid[i]);
}

/* `n` hexadecimal digits. */
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

    if (!get_hex(text, 4, &lid) || text[4] != ':' || !get_hex(text + 5, 6, &a->qpn) || text[11] != ':' ||
        !get_hex(text + 12, 6, &a->psn) || text[18] != ':' || text[51])
        return false;
    a->lid = (uint16_t)lid;
    for (unsigned i = 0; i < 16; i++) {
        if (!get_hex(text + 19 + 2 * i, 2, &byte))
            return false;
        a->gid[i] = (uint8_t)byte;
    }
    return true;
}

static void __attribute__((format(printf, 2, 3))) fail(struct pingpong *p, const char *fmt, ...)
{
    va_list ap;

    if (p->failed)
        return;
    p->failed = true;
    va_start(ap, fmt);
    vsnprintf(p->why, sizeof p->why, fmt, ap);
    va_end(ap);
}

int pingpong_init(struct pingpong *p, struct endpoint *ep, enum qp_type type, uint32_t size, uint64_t iters,
                  bool validate)
{
    struct ep_qp_init init = {
        .type = (uint8_t)type, .max_send_wr = 4, .max_recv_wr = PINGPONG_RECVS, .sq_sig_all = true, .srq = EP_NO_SRQ};
    size_t bytes;
    int r;

    memset(p, 0, sizeof *p);
    *p = (struct pingpong){
        .ep = ep, .type = (uint8_t)type, .size = size, .iters = iters, .validate = validate, .qp = -1, .ah = -1};
    p->pd = init.pd = ep_pd_alloc(ep);
    p->slot = size + (type == QPT_UD ? UD_GRH_BYTES : 0);
    bytes = size + (size_t)PINGPONG_RECVS * p->slot;
    p->mem = calloc(1, bytes + 1);
    if (!p->mem)
        return -ENOMEM;
    memset(p->mem, PINGPONG_FILL, size);
    r = ep_mr_reg(ep, init.pd, p->mem, bytes + 1, (uintptr_t)p->mem, ACCESS_LOCAL_WRITE, &p->key);
    if (r < 0)
        return r;
    p->cq = init.send_cq = init.recv_cq = ep_cq_create(ep, 4 * PINGPONG_RECVS);
    if (p->cq < 0)
        return p->cq;
    p->qp = ep_qp_create(ep, &init);
    return p->qp < 0 ? p->qp : 0;
}

void pingpong_free(struct pingpong *p)
{
    if (p->ep && p->qp >= 0)
        ep_qp_destroy(p->ep, p->qp);
    if (p->ep && p->ah >= 0)
        ep_ah_destroy(p->ep, p->ah);
    if (p->ep && p->key)
        ep_mr_dereg(p->ep, p->key);
    free(p->mem);
    memset(p, 0, sizeof *p);
}

static uint8_t *slot_mem(struct pingpong *p, uint64_t slot)
{
    return p->mem + p->size + slot * p->slot;
}

static void post_recv(struct pingpong *p, uint64_t slot, ns_t now)
{
    struct sge sge = {(uintptr_t)slot_mem(p, slot), p->slot, p->key};
    struct recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = p->slot ? 1 : 0};
    int r = ep_post_recv(p->ep, p->qp, &wr, now);

    if (r < 0)
        fail(p, "a receive could not be posted: %s", strerror(-r));
}

static void post_send(struct pingpong *p, ns_t now)
{
    struct sge sge = {(uintptr_t)p->mem, p->size, p->key};
    struct send_wr wr = {.wr_id = WR_SENT,
                         .opcode = WR_SEND,
                         .flags = SEND_SIGNALED,
                         .num_sge = p->size ? 1 : 0,
                         .sg_list = &sge,
                         .remote_qpn = p->peer_qpn,
                         .remote_qkey = PINGPONG_QKEY,
                         .ah = (uint32_t)p->ah};
    int r = ep_post_send(p->ep, p->qp, &wr, now);

    if (r < 0)
        fail(p, "a message could not be posted: %s", strerror(-r));
    p->posted += r == 0;
}

int pingpong_connect(struct pingpong *p, const struct pingpong_addr *own, const struct pingpong_addr *peer,
                     const struct av *av, uint16_t mtu, ns_t now)
{
    struct ep_peer e = ep_peer_default();
    int r;

    e.av = *av;
    e.qpn = p->peer_qpn = peer->qpn;
    e.rq_psn = peer->psn;
    e.sq_psn = own->psn;
    e.path_mtu = mtu;
    e.qkey = PINGPONG_QKEY;
    e.access = 0;
    if (p->type == QPT_UD) {
        p->ah = ep_ah_create(p->ep, p->pd, av);
        if (p->ah < 0)
            return p->ah;
    }
    r = ep_qp_connect(p->ep, p->qp, &e, now);
    for (uint64_t i = 0; r == 0 && i < PINGPONG_RECVS; i++)
        post_recv(p, i, now);
    return r;
}

void pingpong_start(struct pingpong *p, ns_t now)
{
    p->client = true;
    post_send(p, now);
}

static void take_message(struct pingpong *p, const struct wc *wc, ns_t now)
{
    uint32_t grh = p->type == QPT_UD ? UD_GRH_BYTES : 0;
    const uint8_t *data = slot_mem(p, wc->wr_id) + grh;
    bool same = wc->byte_len == p->size + grh;

    for (uint32_t i = 0; p->validate && same && i < p->size; i++)
        same = data[i] == PINGPONG_FILL;
    p->mismatches += p->validate && !same;
    p->received++;
    post_recv(p, wc->wr_id, now);
}

void pingpong_poll(struct pingpong *p, ns_t now)
{
    struct wc wc;

    while (!p->failed && ep_poll(p->ep, p->cq, &wc, 1) == 1) {
        bool send = wc.wr_id == WR_SENT;
        if (wc.status != WC_SUCCESS)
            fail(p, "%s completed with %s", send ? "a message" : "a receive", wc_status_str(wc.status));
        else if (send)
            p->sent++;
        else if (wc.wr_id < PINGPONG_RECVS)
            take_message(p, &wc, now);
        /* As the examples do: the next one goes when the last one is gone and the answer is there. */
        if (!p->failed && p->posted < p->iters && p->sent == p->posted && p->received > p->posted - p->client)
            post_send(p, now);
    }
}

bool pingpong_done(const struct pingpong *p)
{
    return p->sent >= p->iters && p->received >= p->iters;
}
