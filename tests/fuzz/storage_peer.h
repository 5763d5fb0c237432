/* layer 5 (test): a provider of the verbs whose peer is the fuzzer: what it sends and what READs bring come from the
 * input. It asserts that an end of a storage protocol uses only memory that it has registered, and receives only as
 * many messages as it has posted receives. */
#ifndef RDMATRACE_TESTS_FUZZ_STORAGE_PEER_H
#define RDMATRACE_TESTS_FUZZ_STORAGE_PEER_H

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "gen/storage/storage.h"

#define PEER_REGIONS 4096
#define PEER_QPS     8
#define PEER_RECVS   512
#define PEER_WCS     2048
#define PEER_EVENTS  64

struct peer_region {
    uint8_t *mem;
    uint64_t iova, len;
};
struct peer_qp {
    bool used, up;
    int cq;
    uint64_t recv[PEER_RECVS]; /* wr_id, address and length of receives, a ring */
    struct sge sge[PEER_RECVS];
    unsigned head, tail;
};
struct peer {
    struct verbs verbs;
    struct rdmacm cm;
    const uint8_t *data; /* input that READs bring, again from its start where it ends */
    size_t size, at;
    struct peer_region region[PEER_REGIONS];
    uint32_t n_regions;
    struct peer_qp qp[PEER_QPS];
    struct wc wc[PEER_WCS]; /* a ring; .src_qp: the completion queue */
    unsigned wc_head, wc_tail;
    bool holds; /* READs do not complete, but are kept: */
    struct wc held[PEER_WCS];
    unsigned n_held;
    struct rdmacm_event event[PEER_EVENTS];
    unsigned event_head, event_tail;
    int ids;                /* given out */
    int qp_of[PEER_EVENTS]; /* by id; -1: none */
};

static struct peer peer;
static bool peer_discover; /* an asking end of NVMe reads the discovery log page, and no blocks */

/* The memory that an SGE names: it must be registered. */
static uint8_t *peer_mem(const struct sge *s)
{
    const struct peer_region *r = &peer.region[s->lkey % PEER_REGIONS];

    assert(s->lkey && s->lkey <= peer.n_regions && r->mem);
    assert(s->addr >= r->iova && s->length <= r->len && s->addr - r->iova <= r->len - s->length);
    return r->mem + (s->addr - r->iova);
}
static void peer_wc(int cq, struct wc wc)
{
    assert(peer.wc_tail - peer.wc_head < PEER_WCS);
    wc.src_qp = (uint32_t)cq;
    peer.wc[peer.wc_tail++ % PEER_WCS] = wc;
}
static void peer_event(struct rdmacm_event e)
{
    if (peer.event_tail - peer.event_head < PEER_EVENTS)
        peer.event[peer.event_tail++ % PEER_EVENTS] = e;
}
/* A message of the peer's to queue pair `n`; false: it is not there, or has no receive that is large enough. */
static bool peer_send(unsigned n, const uint8_t *data, size_t len, uint32_t invalidated)
{
    struct peer_qp *q = &peer.qp[n % PEER_QPS];
    struct wc wc = {.opcode = WC_RECV, .byte_len = (uint32_t)len, .inv_rkey = invalidated};
    struct sge *s = &q->sge[q->head % PEER_RECVS];

    if (!q->used || !q->up || q->head == q->tail || len > s->length)
        return false;
    memcpy(peer_mem(s), data, len);
    wc.flags = invalidated ? WC_WITH_INV : 0;
    wc.wr_id = q->recv[q->head++ % PEER_RECVS];
    peer_wc(q->cq, wc);
    return true;
}

/* A WRITE with immediate data of any length: it takes a receive, of whatever size, and leaves it as it is. */
static void peer_write_imm(unsigned n, uint32_t len)
{
    struct peer_qp *q = &peer.qp[n % PEER_QPS];
    struct wc wc = {.opcode = WC_RECV_RDMA_WITH_IMM, .byte_len = len, .flags = WC_WITH_IMM};

    if (!q->used || !q->up || q->head == q->tail)
        return;
    wc.wr_id = q->recv[q->head++ % PEER_RECVS];
    peer_wc(q->cq, wc);
}

/* Let READs complete late, or those that do, complete. */
static void peer_hold(bool holds)
{
    peer.holds = holds;
    for (unsigned i = 0; !holds && i < peer.n_held; i++)
        peer_wc((int)peer.held[i].src_qp, peer.held[i]);
    peer.n_held = holds ? peer.n_held : 0;
}

/* What a READ returns, or the peer WRITEs to memory that is lent to it. */
static void peer_bring(uint8_t *mem, uint64_t len)
{
    for (uint64_t i = 0; peer.size && i < len; i++)
        mem[i] = peer.data[peer.at++ % peer.size];
}

/* --- The table -------------------------------------------------------------------------------- */

static uint32_t peer_pd(struct verbs *v)
{
    (void)v;
    return 1;
}
static int peer_reg(struct verbs *v, uint32_t pd, void *mem, uint64_t len, uint64_t iova, uint8_t access, uint32_t *key)
{
    (void)v;
    (void)pd;
    (void)access;
    if (peer.n_regions + 1 >= PEER_REGIONS)
        return -ENOMEM;
    *key = ++peer.n_regions;
    peer.region[*key] = (struct peer_region){mem, iova, len};
    return 0;
}
static int peer_dereg(struct verbs *v, uint32_t key)
{
    (void)v;
    peer.region[key % PEER_REGIONS].mem = NULL;
    return 0;
}
static int peer_alloc(struct verbs *v, uint32_t pd, uint64_t most, uint32_t *key)
{
    (void)v;
    (void)pd;
    (void)most;
    *key = 0x100;
    return 0;
}
static int peer_cq(struct verbs *v, uint32_t depth)
{
    static int next;

    (void)v;
    (void)depth;
    return next++ & 0xffff;
}
static void peer_cq_destroy(struct verbs *v, int cq)
{
    (void)v;
    (void)cq;
}
static int peer_poll(struct verbs *v, int cq, struct wc *wc, int n)
{
    (void)v;
    assert(n == 1);
    for (unsigned i = peer.wc_head; i != peer.wc_tail; i++)
        if (peer.wc[i % PEER_WCS].src_qp == (uint32_t)cq) {
            *wc = peer.wc[i % PEER_WCS];
            for (; i != peer.wc_head; i--)
                peer.wc[i % PEER_WCS] = peer.wc[(i - 1) % PEER_WCS];
            peer.wc_head++;
            return 1;
        }
    return 0;
}
static int peer_qp_create(struct verbs *v, const struct verbs_qp_init *init)
{
    (void)v;
    for (int i = 0; i < PEER_QPS; i++)
        if (!peer.qp[i].used) {
            memset(&peer.qp[i], 0, sizeof peer.qp[i]);
            peer.qp[i].used = true;
            peer.qp[i].cq = init->send_cq;
            return i;
        }
    return -ENOMEM;
}
static int peer_qp_destroy(struct verbs *v, int qp)
{
    (void)v;
    peer.qp[qp].used = false;
    return 0;
}
static int peer_qp_state(struct verbs *v, int qp)
{
    (void)v;
    return peer.qp[qp].up ? QPS_RTS : QPS_RESET;
}
static bool peer_async(struct verbs *v, struct ep_event *e)
{
    (void)v;
    (void)e;
    return false;
}
static int peer_post_send(struct verbs *v, int qp, const struct send_wr *wr, ns_t now)
{
    struct wc wc = {.wr_id = wr->wr_id, .opcode = (uint8_t)wc_opcode_of((enum wr_opcode)wr->opcode)};
    uint8_t *mem = wr->num_sge ? peer_mem(wr->sg_list) : NULL;

    (void)v;
    (void)now;
    if (wr->opcode == WR_RDMA_READ)
        peer_bring(mem, wr->sg_list->length);
    if (wr->opcode == WR_REG_MR && wr->mw_access & ACCESS_REMOTE_WRITE)
        peer_bring(wr->reg_mem, wr->mw_length);
    wc.src_qp = (uint32_t)peer.qp[qp].cq;
    if (wr->opcode == WR_RDMA_READ && peer.holds && peer.n_held < PEER_WCS)
        peer.held[peer.n_held++] = wc;
    else
        peer_wc(peer.qp[qp].cq, wc);
    return 0;
}
static int peer_post_recv(struct verbs *v, int qp, const struct recv_wr *wr, ns_t now)
{
    struct peer_qp *q = &peer.qp[qp];

    (void)v;
    (void)now;
    if (q->tail - q->head == PEER_RECVS)
        return -ENOMEM;
    peer_mem(wr->sg_list);
    q->recv[q->tail % PEER_RECVS] = wr->wr_id;
    q->sge[q->tail++ % PEER_RECVS] = *wr->sg_list;
    return 0;
}
static int peer_channel(struct rdmacm *cm)
{
    (void)cm;
    return 0;
}
static int peer_channel_destroy(struct rdmacm *cm, int channel)
{
    (void)cm;
    (void)channel;
    return 0;
}
static bool peer_get_event(struct rdmacm *cm, int channel, struct rdmacm_event *e)
{
    (void)cm;
    (void)channel;
    if (peer.event_head == peer.event_tail)
        return false;
    *e = peer.event[peer.event_head++ % PEER_EVENTS];
    return true;
}
static int peer_new_id(void)
{
    if (peer.ids == PEER_EVENTS)
        return -ENOMEM;
    peer.qp_of[peer.ids] = -1;
    return peer.ids++;
}
static int peer_id_create(struct rdmacm *cm, int channel, uint8_t ps)
{
    (void)cm;
    (void)channel;
    (void)ps;
    return peer_new_id();
}
static int peer_id_destroy(struct rdmacm *cm, int id, ns_t now)
{
    (void)cm;
    (void)id;
    (void)now;
    return 0;
}
static int peer_resolve(struct rdmacm *cm, int id, const uint8_t gid[16], uint16_t port, ns_t timeout, ns_t now)
{
    (void)cm;
    (void)gid;
    (void)port;
    (void)timeout;
    (void)now;
    peer_event((struct rdmacm_event){.type = RDMACM_ROUTE_RESOLVED, .id = id, .listen_id = -1});
    return 0;
}
/* Connected at once; the private data are the input's. */
static int peer_joined(struct rdmacm *cm, int id, const struct rdmacm_param *p, ns_t now)
{
    struct rdmacm_event e = {.type = RDMACM_ESTABLISHED, .id = id, .listen_id = -1};

    (void)cm;
    (void)now;
    e.private_len = (uint8_t)(peer.size < 32 ? peer.size : 32);
    memcpy(e.private_data, peer.data, e.private_len);
    peer.qp_of[id] = p->qp;
    peer.qp[p->qp].up = true;
    peer_event(e);
    return 0;
}
static int peer_listen(struct rdmacm *cm, int id, uint16_t port, unsigned backlog)
{
    (void)cm;
    (void)id;
    (void)port;
    (void)backlog;
    return 0;
}
static int peer_reject(struct rdmacm *cm, int id, unsigned reason, const void *data, unsigned len, ns_t now)
{
    (void)cm;
    (void)id;
    (void)reason;
    (void)data;
    (void)len;
    (void)now;
    return 0;
}
static int peer_disconnect(struct rdmacm *cm, int id, ns_t now)
{
    (void)cm;
    (void)now;
    peer_event((struct rdmacm_event){.type = RDMACM_DISCONNECTED, .id = id, .listen_id = -1});
    return 0;
}

static const struct verbs_ops peer_ops = {.pd_alloc = peer_pd,
                                          .mr_reg = peer_reg,
                                          .mr_dereg = peer_dereg,
                                          .mr_alloc = peer_alloc,
                                          .cq_create = peer_cq,
                                          .cq_destroy = peer_cq_destroy,
                                          .poll = peer_poll,
                                          .qp_create = peer_qp_create,
                                          .qp_destroy = peer_qp_destroy,
                                          .qp_state = peer_qp_state,
                                          .async_event = peer_async,
                                          .post_send = peer_post_send,
                                          .post_recv = peer_post_recv};
static const struct rdmacm_ops peer_cm_ops = {.channel_create = peer_channel,
                                              .channel_destroy = peer_channel_destroy,
                                              .get_event = peer_get_event,
                                              .id_create = peer_id_create,
                                              .id_destroy = peer_id_destroy,
                                              .resolve = peer_resolve,
                                              .connect = peer_joined,
                                              .listen = peer_listen,
                                              .accept = peer_joined,
                                              .reject = peer_reject,
                                              .disconnect = peer_disconnect};

/* --- A run ------------------------------------------------------------------------------------ */

/* What the peer does: a byte says what (below; bits 3:2: which queue pair), two bytes the length of what follows.
 * PEER_IMM: not a SEND but a WRITE with immediate data, of 16 times so many bytes; PEER_HOLDS: READs complete only
 * behind data without it. */
enum { PEER_CONNECTS, PEER_SENDS, PEER_LEAVES, PEER_READ_DATA, PEER_INVALIDATES = 16, PEER_IMM = 32, PEER_HOLDS = 32 };

/* A record: bytes of the input that it takes, 0: no more. */
static size_t peer_record(struct storage *s, const uint8_t *p, size_t left, ns_t now)
{
    size_t len = left < 3 ? 0 : (size_t)load_le16(p + 1);
    unsigned qp = left ? p[0] >> 2 & 3 : 0;

    if (left < 3)
        return 0;
    len = len < left - 3 ? len : left - 3;
    switch (p[0] & 3) {
    case PEER_CONNECTS:
        if (s->c.server && peer.ids < PEER_EVENTS) {
            struct rdmacm_event e = {.type = RDMACM_CONNECT_REQUEST, .id = peer_new_id(), .listen_id = s->listener};
            e.private_len = (uint8_t)(len < RDMACM_PRIVATE_MAX ? len : RDMACM_PRIVATE_MAX);
            memcpy(e.private_data, p + 3, e.private_len);
            peer_event(e);
        }
        break;
    case PEER_SENDS:
        if (p[0] & PEER_IMM)
            peer_write_imm(qp, 16 * (uint32_t)load_le16(p + 1));
        else
            peer_send(qp, p + 3, len, p[0] & PEER_INVALIDATES ? 0x101 : 0);
        break;
    case PEER_LEAVES:
        for (int i = 0; i < peer.ids; i++)
            if (peer.qp_of[i] == (int)qp && peer.qp[qp].used)
                peer_event((struct rdmacm_event){.type = RDMACM_DISCONNECTED, .id = i, .listen_id = -1});
        break;
    default:
        peer.data = p + 3;
        peer.size = len;
        peer.at = 0;
        peer_hold(p[0] & PEER_HOLDS);
    }
    storage_step(s, now);
    return 3 + len;
}

/* A peer that has done nothing yet. */
static void peer_begin(const uint8_t *data, size_t size)
{
    memset(&peer, 0, sizeof peer);
    peer.verbs = (struct verbs){&peer_ops, &peer.cm};
    peer.cm.ops = &peer_cm_ops;
    peer.data = data;
    peer.size = size;
}

/* Run an end of the protocol `kind` against the records of the input; storage_close() follows. */
static inline void peer_play(struct storage *s, const struct storage_kind *kind, bool server, const uint8_t *data,
                             size_t size)
{
    struct storage_config c = {.server = server,
                               .persistent = true,
                               .room = 1 << 16,
                               .write = true,
                               .iters = peer_discover ? 0 : 4,
                               .discover = peer_discover,
                               .size = 4096,
                               .depth = 2,
                               .queues = 2,
                               .queue_size = 16,
                               .timeout = NS_PER_S,
                               .nqn = "n",
                               .hostnqn = "h",
                               .file = "f",
                               .targetname = "t"};
    ns_t now = 1;
    size_t n;

    peer_begin(data, size);
    if (storage_open(s, kind, &c, &peer.verbs, now) == 0) {
        storage_step(s, now);
        while ((n = peer_record(s, data, size, ++now)) > 0 && !storage_done(s, now)) {
            data += n;
            size -= n;
        }
        storage_step(s, now + 10 * NS_PER_S);
    }
}

#endif
