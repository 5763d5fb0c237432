/* layer 3 (verbs) tests: a provider that forwards every call to another one, counts calls, and records misuse. */
#ifndef RDMATRACE_TEST_RECORDER_H
#define RDMATRACE_TEST_RECORDER_H

#include "gen/verbs/rdmacm.h"

#include <stddef.h>

#define RECORDER_QPS   16
#define RECORDER_SENDS 1024
#define RECORDER_IDS   64

/* What the recorder knows of a queue pair. */
struct recorded_qp {
    bool open;
    uint32_t qpn, max_send, max_recv; /* as asked for */
    bool sig_all;                     /* as asked for */
    bool signaled[RECORDER_SENDS];    /* of sends posted, by number */
    uint32_t posted, retired;         /* sends */
    uint32_t receives;                /* sends posted and not completed */
};

struct recorder {
    struct verbs verbs;
    struct rdmacm cm; /* of verbs, if `to` has one */
    struct verbs *to; /* gets the calls */
    unsigned calls, posts, completions;
    unsigned qps, regions, handles; /* existing queue pairs, regions and address handles */
    unsigned windows;               /* existing */
    unsigned queues;                /* existing shared receive queues */
    unsigned unknown;               /* calls with a queue pair that does not exist */
    unsigned too_many;              /* posts to a queue that was full */
    unsigned channels, ids;         /* existing event channels and ids of RDMA-CM */
    unsigned events;                /* of RDMA-CM */
    unsigned unknown_id;            /* calls with an id, or event channel, that does not exist */
    unsigned bereft;                /* queue pairs that were destroyed before their ids */
    bool channel[RECORDER_IDS];     /* these exist */
    bool id[RECORDER_IDS];          /* these exist */
    int id_qp[RECORDER_IDS];        /* queue pair of each; -1: none yet */
    struct recorded_qp qp[RECORDER_QPS];
};

static inline struct recorder *recorder_of(struct verbs *v)
{
    struct recorder *r = (struct recorder *)(void *)((char *)v - offsetof(struct recorder, verbs));

    r->calls++;
    return r;
}

/* The queue pair of a call; NULL: it does not exist, which counts as misuse. */
static inline struct recorded_qp *recorded(struct recorder *r, int qp)
{
    bool known = qp >= 0 && qp < RECORDER_QPS && r->qp[qp].open;

    r->unknown += !known;
    return known ? &r->qp[qp] : NULL;
}

static inline uint32_t rec_pd_alloc(struct verbs *v)
{
    return verbs_pd_alloc(recorder_of(v)->to);
}
static inline int rec_mr_reg(struct verbs *v, uint32_t pd, void *mem, uint64_t len, uint64_t iova, uint8_t access,
                             uint32_t *key)
{
    struct recorder *r = recorder_of(v);
    int err = verbs_mr_reg_iova(r->to, pd, mem, len, iova, access, key);

    r->regions += err == 0;
    return err;
}
static inline int rec_mr_dereg(struct verbs *v, uint32_t key)
{
    struct recorder *r = recorder_of(v);
    int err = verbs_mr_dereg(r->to, key);

    r->regions -= err == 0;
    return err;
}
static inline int rec_mr_alloc(struct verbs *v, uint32_t pd, uint64_t most, uint32_t *key)
{
    struct recorder *r = recorder_of(v);
    int err = verbs_mr_alloc(r->to, pd, most, key);

    r->regions += err == 0;
    return err;
}
static inline int rec_mw_alloc(struct verbs *v, uint32_t pd, unsigned type, uint32_t *key)
{
    struct recorder *r = recorder_of(v);
    int err = verbs_mw_alloc(r->to, pd, type, key);

    r->windows += err == 0;
    return err;
}
static inline int rec_mw_dealloc(struct verbs *v, uint32_t key)
{
    struct recorder *r = recorder_of(v);
    int err = verbs_mw_dealloc(r->to, key);

    r->windows -= err == 0;
    return err;
}
static inline int rec_ah_create(struct verbs *v, uint32_t pd, const struct av *av)
{
    struct recorder *r = recorder_of(v);
    int ah = verbs_ah_create(r->to, pd, av);

    r->handles += ah >= 0;
    return ah;
}
static inline int rec_ah_destroy(struct verbs *v, int ah)
{
    struct recorder *r = recorder_of(v);
    int err = verbs_ah_destroy(r->to, ah);

    r->handles -= err == 0;
    return err;
}
static inline int rec_cq_create(struct verbs *v, uint32_t depth)
{
    return verbs_cq_create(recorder_of(v)->to, depth);
}
static inline void rec_cq_destroy(struct verbs *v, int cq)
{
    verbs_cq_destroy(recorder_of(v)->to, cq);
}
static inline int rec_srq_create(struct verbs *v, uint32_t pd, uint32_t depth, uint16_t max_sge)
{
    struct recorder *r = recorder_of(v);
    int srq = verbs_srq_create(r->to, pd, depth, max_sge);

    r->queues += srq >= 0;
    return srq;
}

static inline int rec_xrc_srq_create(struct verbs *v, const struct verbs_xrc_srq_init *init)
{
    struct recorder *r = recorder_of(v);
    int srq = verbs_xrc_srq_create(r->to, init);

    r->queues += srq >= 0;
    return srq;
}
static inline int rec_srq_destroy(struct verbs *v, int srq)
{
    struct recorder *r = recorder_of(v);
    int err = verbs_srq_destroy(r->to, srq);

    r->queues -= err == 0;
    return err;
}
static inline uint32_t rec_srq_num(struct verbs *v, int srq)
{
    return verbs_srq_num(recorder_of(v)->to, srq);
}
static inline uint32_t rec_xrcd_alloc(struct verbs *v)
{
    return verbs_xrcd_alloc(recorder_of(v)->to);
}

/* A completion: of a receive, or of the sends up to the next signalled one. */
static inline void rec_completed(struct recorder *r, const struct wc *wc)
{
    r->completions++;
    for (int i = 0; i < RECORDER_QPS; i++) {
        struct recorded_qp *q = &r->qp[i];
        if (!q->open || q->qpn != wc->qpn)
            continue;
        if (wc->opcode >= WC_RECV)
            q->receives -= q->receives > 0;
        else
            while (q->retired < q->posted && !q->signaled[q->retired++ % RECORDER_SENDS])
                continue;
    }
}
static inline int rec_poll(struct verbs *v, int cq, struct wc *wc, int n)
{
    struct recorder *r = recorder_of(v);
    int got = verbs_poll(r->to, cq, wc, n);

    for (int i = 0; i < got; i++)
        rec_completed(r, &wc[i]);
    return got;
}

static inline int rec_qp_create(struct verbs *v, const struct verbs_qp_init *init)
{
    struct recorder *r = recorder_of(v);
    int qp = verbs_qp_create(r->to, init);

    if (qp >= 0 && qp < RECORDER_QPS) {
        r->qps++;
        r->qp[qp] = (struct recorded_qp){.open = true,
                                         .qpn = verbs_qp_num(r->to, qp),
                                         .max_send = init->max_send_wr,
                                         .max_recv = init->max_recv_wr,
                                         .sig_all = init->sq_sig_all};
    }
    return qp;
}
static inline int rec_qp_destroy(struct verbs *v, int qp)
{
    struct recorder *r = recorder_of(v);
    struct recorded_qp *q = recorded(r, qp);

    for (int i = 0; i < RECORDER_IDS; i++)
        r->bereft += r->id[i] && r->id_qp[i] == qp;
    if (q) {
        q->open = false;
        r->qps--;
    }
    return verbs_qp_destroy(r->to, qp);
}
static inline int rec_qp_connect(struct verbs *v, int qp, const struct ep_peer *peer, ns_t now)
{
    struct recorder *r = recorder_of(v);

    recorded(r, qp);
    return verbs_qp_connect(r->to, qp, peer, now);
}
static inline uint32_t rec_qp_num(struct verbs *v, int qp)
{
    struct recorder *r = recorder_of(v);

    recorded(r, qp);
    return verbs_qp_num(r->to, qp);
}
static inline int rec_qp_state(struct verbs *v, int qp)
{
    struct recorder *r = recorder_of(v);

    recorded(r, qp);
    return verbs_qp_state(r->to, qp);
}
static inline uint32_t rec_pick_psn(struct verbs *v)
{
    return verbs_pick_psn(recorder_of(v)->to);
}
static inline int rec_qp_hold(struct verbs *v, int qp, ns_t until)
{
    struct recorder *r = recorder_of(v);

    recorded(r, qp);
    return verbs_qp_hold(r->to, qp, until);
}
static inline int rec_qp_counters(struct verbs *v, int qp, struct verbs_counters *c)
{
    struct recorder *r = recorder_of(v);

    recorded(r, qp);
    return r->to->ops->qp_counters(r->to, qp, c);
}

static inline bool rec_async_event(struct verbs *v, struct ep_event *e)
{
    struct recorder *r = recorder_of(v);

    return r->to->ops->async_event(r->to, e);
}

/* A send was posted to `q`, with result `err`. */
static inline int rec_posted(struct recorder *r, struct recorded_qp *q, const struct send_wr *wr, int err)
{
    r->posts++;
    if (q && q->posted - q->retired >= q->max_send)
        r->too_many++;
    if (q && err == 0)
        q->signaled[q->posted++ % RECORDER_SENDS] = q->sig_all || (wr->flags & SEND_SIGNALED);
    return err;
}
static inline int rec_post_send(struct verbs *v, int qp, const struct send_wr *wr, ns_t now)
{
    struct recorder *r = recorder_of(v);
    struct recorded_qp *q = recorded(r, qp);

    return rec_posted(r, q, wr, verbs_post_send(r->to, qp, wr, now));
}
static inline int rec_mw_bind(struct verbs *v, int qp, const struct send_wr *wr, uint32_t *key, ns_t now)
{
    struct recorder *r = recorder_of(v);
    struct recorded_qp *q = recorded(r, qp);

    return rec_posted(r, q, wr, verbs_mw_bind(r->to, qp, wr, key, now));
}
static inline int rec_post_recv(struct verbs *v, int qp, const struct recv_wr *wr, ns_t now)
{
    struct recorder *r = recorder_of(v);
    struct recorded_qp *q = recorded(r, qp);
    int err = r->to->ops->post_recv(r->to, qp, wr, now);

    r->posts++;
    if (q && q->receives >= q->max_recv)
        r->too_many++;
    if (q && err == 0)
        q->receives++;
    return err;
}
static inline int rec_post_srq_recv(struct verbs *v, int srq, const struct recv_wr *wr, ns_t now)
{
    struct recorder *r = recorder_of(v);

    r->posts++;
    return r->to->ops->post_srq_recv(r->to, srq, wr, now);
}

/* --- Connection management -------------------------------------------------------------------- */

static inline struct recorder *recorder_of_cm(struct rdmacm *cm)
{
    struct recorder *r = (struct recorder *)(void *)((char *)cm - offsetof(struct recorder, cm));

    r->calls++;
    return r;
}

/* The recorder of a call with an id; one that does not exist counts as misuse. */
static inline struct recorder *recorder_of_id(struct rdmacm *cm, int id)
{
    struct recorder *r = recorder_of_cm(cm);

    r->unknown_id += id < 0 || id >= RECORDER_IDS || !r->id[id];
    return r;
}

/* The result `id` of a call is a new id, if it is one. */
static inline int rec_new_id(struct recorder *r, int id)
{
    if (id >= 0 && id < RECORDER_IDS) {
        r->ids++;
        r->id[id] = true;
        r->id_qp[id] = -1;
    }
    return id;
}

static inline int rec_channel_create(struct rdmacm *cm)
{
    struct recorder *r = recorder_of_cm(cm);
    int channel = rdmacm_channel_create(r->to->cm);

    if (channel >= 0 && channel < RECORDER_IDS) {
        r->channels++;
        r->channel[channel] = true;
    }
    return channel;
}
static inline struct recorder *recorder_of_channel(struct rdmacm *cm, int channel)
{
    struct recorder *r = recorder_of_cm(cm);

    r->unknown_id += channel < 0 || channel >= RECORDER_IDS || !r->channel[channel];
    return r;
}
static inline int rec_channel_destroy(struct rdmacm *cm, int channel)
{
    struct recorder *r = recorder_of_channel(cm, channel);
    int err = rdmacm_channel_destroy(r->to->cm, channel);

    if (err == 0) {
        r->channels--;
        r->channel[channel] = false;
    }
    return err;
}
static inline bool rec_get_event(struct rdmacm *cm, int channel, struct rdmacm_event *e)
{
    struct recorder *r = recorder_of_channel(cm, channel);
    bool got = rdmacm_get_event(r->to->cm, channel, e);

    r->events += got;
    if (got && e->type == RDMACM_CONNECT_REQUEST)
        rec_new_id(r, e->id);
    return got;
}
static inline int rec_id_create(struct rdmacm *cm, int channel, uint8_t ps)
{
    struct recorder *r = recorder_of_channel(cm, channel);

    return rec_new_id(r, rdmacm_id_create(r->to->cm, channel, ps));
}
static inline int rec_id_destroy(struct rdmacm *cm, int id, ns_t now)
{
    struct recorder *r = recorder_of_id(cm, id);
    int err = rdmacm_id_destroy(r->to->cm, id, now);

    if (err == 0 && id < RECORDER_IDS) {
        r->ids--;
        r->id[id] = false;
    }
    return err;
}
static inline int rec_resolve(struct rdmacm *cm, int id, const uint8_t gid[16], uint16_t port, ns_t timeout, ns_t now)
{
    return rdmacm_resolve(recorder_of_id(cm, id)->to->cm, id, gid, port, timeout, now);
}
static inline int rec_connect(struct rdmacm *cm, int id, const struct rdmacm_param *p, ns_t now)
{
    struct recorder *r = recorder_of_id(cm, id);
    int err = rdmacm_connect(r->to->cm, id, p, now);

    recorded(r, p->qp);
    if (err == 0 && id < RECORDER_IDS)
        r->id_qp[id] = p->qp;
    return err;
}
static inline int rec_listen(struct rdmacm *cm, int id, uint16_t port, unsigned backlog)
{
    return rdmacm_listen(recorder_of_id(cm, id)->to->cm, id, port, backlog);
}
static inline int rec_accept(struct rdmacm *cm, int id, const struct rdmacm_param *p, ns_t now)
{
    struct recorder *r = recorder_of_id(cm, id);
    int err = rdmacm_accept(r->to->cm, id, p, now);

    recorded(r, p->qp);
    if (err == 0 && id < RECORDER_IDS)
        r->id_qp[id] = p->qp;
    return err;
}
static inline int rec_reject(struct rdmacm *cm, int id, unsigned reason, const void *data, unsigned len, ns_t now)
{
    return rdmacm_reject(recorder_of_id(cm, id)->to->cm, id, reason, data, len, now);
}
static inline int rec_disconnect(struct rdmacm *cm, int id, ns_t now)
{
    return rdmacm_disconnect(recorder_of_id(cm, id)->to->cm, id, now);
}

static inline void recorder_open(struct recorder *r, struct verbs *to)
{
    static const struct verbs_ops ops = {.pd_alloc = rec_pd_alloc,
                                         .mr_reg = rec_mr_reg,
                                         .mr_dereg = rec_mr_dereg,
                                         .mr_alloc = rec_mr_alloc,
                                         .mw_alloc = rec_mw_alloc,
                                         .mw_dealloc = rec_mw_dealloc,
                                         .mw_bind = rec_mw_bind,
                                         .ah_create = rec_ah_create,
                                         .ah_destroy = rec_ah_destroy,
                                         .cq_create = rec_cq_create,
                                         .cq_destroy = rec_cq_destroy,
                                         .poll = rec_poll,
                                         .srq_create = rec_srq_create,
                                         .xrc_srq_create = rec_xrc_srq_create,
                                         .srq_destroy = rec_srq_destroy,
                                         .srq_num = rec_srq_num,
                                         .xrcd_alloc = rec_xrcd_alloc,
                                         .qp_create = rec_qp_create,
                                         .qp_destroy = rec_qp_destroy,
                                         .qp_connect = rec_qp_connect,
                                         .qp_num = rec_qp_num,
                                         .qp_state = rec_qp_state,
                                         .pick_psn = rec_pick_psn,
                                         .qp_hold = rec_qp_hold,
                                         .qp_counters = rec_qp_counters,
                                         .async_event = rec_async_event,
                                         .post_send = rec_post_send,
                                         .post_recv = rec_post_recv,
                                         .post_srq_recv = rec_post_srq_recv};
    static const struct rdmacm_ops cm_ops = {.channel_create = rec_channel_create,
                                             .channel_destroy = rec_channel_destroy,
                                             .get_event = rec_get_event,
                                             .id_create = rec_id_create,
                                             .id_destroy = rec_id_destroy,
                                             .resolve = rec_resolve,
                                             .connect = rec_connect,
                                             .listen = rec_listen,
                                             .accept = rec_accept,
                                             .reject = rec_reject,
                                             .disconnect = rec_disconnect};

    *r = (struct recorder){.verbs = {.ops = &ops}, .cm = {&cm_ops}, .to = to};
    r->verbs.cm = to->cm ? &r->cm : NULL;
}

#endif
