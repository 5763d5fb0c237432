/* layer 3 (storage): one reliable connection of a storage protocol. */
#include "gen/storage/link.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define RESOLVE_WAIT (3 * NS_PER_S)
#define DEPTH        16 /* READs outstanding in each direction */

/* wr_id: what the work request is, and its slot. */
enum { WR_IS_SEND = 1, WR_IS_MOVE, WR_IS_LOCAL };
static uint64_t id_of(unsigned what, unsigned slot)
{
    return (uint64_t)what << 32 | slot;
}

/* --- Opening and closing ---------------------------------------------------------------------- */

static int make_qp(struct link *l)
{
    struct storage *s = l->s;
    struct verbs_qp_init init = {.type = QPT_RC,
                                 .max_send_wr = l->want.posts,
                                 .max_recv_wr = l->want.slots,
                                 .max_dest_rd = DEPTH,
                                 .sq_sig_all = true,
                                 .srq = EP_NO_SRQ,
                                 .pd = s->pd};

    l->cq = init.send_cq = init.recv_cq = verbs_cq_create(s->verbs, l->want.posts + l->want.slots);
    l->qp = l->cq < 0 ? l->cq : verbs_qp_create(s->verbs, &init);
    l->receives = (struct receives){.verbs = s->verbs,
                                    .qp = l->qp,
                                    .srq = EP_NO_SRQ,
                                    .mem = l->mem,
                                    .iova = l->iova,
                                    .lkey = l->key,
                                    .pitch = l->want.in,
                                    .bytes = l->want.in,
                                    .slots = l->want.slots,
                                    .id = RECEIVES_ID};
    return l->qp < 0 ? l->qp : 0;
}

static int prepare(struct link *l)
{
    size_t bytes = (size_t)l->want.slots * (l->want.in + l->want.out);
    int r;

    l->mem = calloc(1, bytes);
    r = l->mem ? storage_register(l->s, l->mem, bytes, ACCESS_LOCAL_WRITE, &l->iova, &l->key) : -ENOMEM;
    return r == 0 ? make_qp(l) : r;
}

/* A link with its queue pair, in the list of the end; NULL with *err set. */
static struct link *link_new(struct storage *s, const struct link_want *w, int *err)
{
    struct link *l = s->n_links < STORAGE_LINKS ? calloc(1, sizeof *l) : NULL;

    *err = -ENOMEM;
    if (!l)
        return NULL;
    *l = (struct link){.s = s, .id = -1, .qp = -1, .cq = -1, .want = *w, .user = w->user};
    *err = prepare(l);
    s->link[s->n_links++] = l;
    return l;
}

void link_free(struct link *l, ns_t now)
{
    struct verbs *v = l->s->verbs;

    if (l->id >= 0)
        rdmacm_id_destroy(v->cm, l->id, now);
    if (l->qp >= 0)
        verbs_qp_destroy(v, l->qp);
    if (l->cq >= 0)
        verbs_cq_destroy(v, l->cq);
    if (l->key)
        verbs_mr_dereg(v, l->key);
    free(l->mem);
    free(l);
}

struct link *link_connect(struct storage *s, const struct link_want *w, ns_t now, int *err)
{
    struct link *l = link_new(s, w, err);

    if (*err == 0)
        *err = l->id = rdmacm_id_create(s->verbs->cm, s->channel, CM_PS_TCP);
    if (*err >= 0)
        *err = rdmacm_resolve(s->verbs->cm, l->id, s->c.gid, s->c.port, RESOLVE_WAIT, now);
    return *err < 0 ? NULL : l;
}

static struct rdmacm_param param_of(const struct link *l)
{
    return (struct rdmacm_param){.qp = l->qp,
                                 .access = ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE,
                                 .responder_resources = DEPTH,
                                 .initiator_depth = DEPTH,
                                 .path_mtu = l->s->c.mtu,
                                 .private_len = l->want.private_len,
                                 .private_data = l->want.private_data};
}

struct link *link_accept(struct storage *s, const struct rdmacm_event *e, const struct link_want *w, ns_t now)
{
    struct rdmacm_param p;
    int err;
    struct link *l = link_new(s, w, &err);

    if (!l)
        return NULL;
    p = param_of(l);
    if (err == 0 && rdmacm_accept(s->verbs->cm, e->id, &p, now) == 0) {
        l->id = e->id;
        return l;
    }
    s->n_links--;
    link_free(l, now);
    return NULL;
}

void link_leave(struct link *l, ns_t now)
{
    l->closing = true;
    if (!l->up || rdmacm_disconnect(l->s->verbs->cm, l->id, now) < 0)
        l->gone = true;
}

void link_refuse(struct link *l, ns_t now, const char *fmt, ...)
{
    struct storage *s = l->s;
    char why[sizeof s->why];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    if (!s->c.server) {
        storage_fail(s, now, "%s", why);
        return;
    }
    if (!s->failed)
        memcpy(s->why, why, sizeof why);
    s->failed = true;
    if (!l->closing)
        link_leave(l, now);
}

void link_event(struct link *l, const struct rdmacm_event *e, ns_t now)
{
    struct rdmacm_param p = param_of(l);
    struct storage *s = l->s;
    char why[160];

    s->heard = now;
    if (e->type == RDMACM_ROUTE_RESOLVED) {
        int r = rdmacm_connect(s->verbs->cm, l->id, &p, now);
        if (r < 0)
            storage_fail(s, now, "no request to connect: %s", strerror(-r));
    } else if (e->type == RDMACM_ADDR_ERROR) {
        l->gone = true;
        storage_fail(s, now, "no path to the peer: %s", strerror(-e->status));
    } else if (e->type == RDMACM_ESTABLISHED) {
        l->up = true;
        if (s->joined)
            s->joined(s->user, l->qp);
        if (s->role->up)
            s->role->up(l, e->private_data, e->private_len, now);
    } else if (e->type == RDMACM_REJECTED || e->type == RDMACM_UNREACHABLE) {
        l->gone = true;
        rdmacm_why(e, why, sizeof why);
        link_refuse(l, now, "%s", why);
    } else if (e->type == RDMACM_DISCONNECTED) {
        l->gone = true;
    }
}

/* --- Messages --------------------------------------------------------------------------------- */

static void posted(struct link *l, int err, const char *what, ns_t now)
{
    if (err < 0 && !l->gone && !l->closing)
        link_refuse(l, now, "%s could not be posted: %s", what, strerror(-err));
}

void link_receive(struct link *l, unsigned slot, ns_t now)
{
    posted(l, receives_post(&l->receives, slot, now), "a receive", now);
}

static void post(struct link *l, const struct send_wr *wr, ns_t now)
{
    posted(l, verbs_post_send(l->s->verbs, l->qp, wr, now), wr_opcode_str((enum wr_opcode)wr->opcode), now);
}

void link_send(struct link *l, unsigned slot, uint32_t len, uint32_t invalidate, ns_t now)
{
    struct sge sge = {l->iova + (uint64_t)(link_out(l, slot) - l->mem), len, l->key};
    struct send_wr wr = {.wr_id = id_of(WR_IS_SEND, slot),
                         .opcode = invalidate ? WR_SEND_WITH_INV : WR_SEND,
                         .inv_rkey = invalidate,
                         .num_sge = 1,
                         .sg_list = &sge};

    post(l, &wr, now);
}

void link_move(struct link *l, bool read, unsigned slot, const struct sge *own, uint64_t va, uint32_t rkey, ns_t now)
{
    struct send_wr wr = {.wr_id = id_of(WR_IS_MOVE, slot),
                         .opcode = read ? WR_RDMA_READ : WR_RDMA_WRITE,
                         .num_sge = 1,
                         .sg_list = own,
                         .remote_addr = va,
                         .rkey = rkey};

    post(l, &wr, now);
}

static void take(struct link *l, const struct wc *wc, ns_t now)
{
    bool recv = wc->wr_id & RECEIVES_ID;
    unsigned slot = (uint32_t)wc->wr_id;
    const struct storage_role *role = l->s->role;

    if (wc->status != WC_SUCCESS) {
        if (wc->status != WC_WR_FLUSH_ERR && !l->closing)
            link_refuse(l, now, "%s completed with %s", recv ? "a receive" : wc_opcode_str((enum wc_opcode)wc->opcode),
                        wc_status_str((enum wc_status)wc->status));
        return;
    }
    l->s->heard = now;
    if (recv && wc->opcode != WC_RECV) /* its bytes are not in the receive */
        link_refuse(l, now, "a WRITE with immediate data, of %u bytes", wc->byte_len);
    else if (recv)
        role->message(l, slot, wc, now);
    else if (wc->wr_id >> 32 == WR_IS_SEND)
        role->sent ? role->sent(l, slot, now) : link_receive(l, slot, now);
    else if (wc->wr_id >> 32 == WR_IS_MOVE)
        role->moved(l, slot, now);
}

void link_poll(struct link *l, ns_t now)
{
    struct verbs *v = l->s->verbs;
    struct wc wc;

    if (!l->ready && !l->gone && verbs_qp_takes_receives(v, l->qp)) {
        l->ready = true;
        posted(l, receives_post_all(&l->receives, now), "a receive", now);
    }
    while (l->up && verbs_poll(v, l->cq, &wc, 1) == 1) /* messages may come before the RTU, but not be answered */
        take(l, &wc, now);
}

/* --- Loans ------------------------------------------------------------------------------------ */

int loan_open(struct link *l, struct loan *n, uint32_t len)
{
    struct storage *s = l->s;
    int r;

    n->len = len;
    n->mem = calloc(1, len);
    r = n->mem ? storage_register(s, n->mem, len, ACCESS_LOCAL_WRITE, &n->iova, &n->lkey) : -ENOMEM;
    return r == 0 ? s->verbs->ops->mr_alloc(s->verbs, s->pd, len, &n->key) : r;
}

void loan_close(struct link *l, struct loan *n)
{
    if (n->key)
        verbs_mr_dereg(l->s->verbs, n->key);
    if (n->lkey)
        verbs_mr_dereg(l->s->verbs, n->lkey);
    free(n->mem);
    *n = (struct loan){0};
}

void loan_lend(struct link *l, struct loan *n, uint32_t len, bool write, ns_t now)
{
    uint32_t next = (n->key & ~UINT32_C(0xff)) | ((n->key + 1) & 0xff);
    struct send_wr wr = {.wr_id = id_of(WR_IS_LOCAL, 0),
                         .opcode = WR_REG_MR,
                         .remote_addr = n->iova,
                         .mw_length = len,
                         .reg_mem = n->mem,
                         .mw_access = write ? ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE : ACCESS_REMOTE_READ,
                         .inv_rkey = n->key,
                         .rkey = next};

    post(l, &wr, now);
    n->key = next;
    n->lent = true;
}

void loan_return(struct link *l, struct loan *n, const struct wc *wc, ns_t now)
{
    struct send_wr wr = {.wr_id = id_of(WR_IS_LOCAL, 0), .opcode = WR_LOCAL_INV, .inv_rkey = n->key};
    bool invalidated = wc->flags & WC_WITH_INV && wc->inv_rkey == n->key;

    if (n->lent && !invalidated)
        post(l, &wr, now);
    n->lent = false;
}
