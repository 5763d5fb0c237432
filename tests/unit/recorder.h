/* layer 3 (verbs) tests: a provider that forwards every call to another one, counts calls, and records misuse. */
#ifndef RDMATRACE_TEST_RECORDER_H
#define RDMATRACE_TEST_RECORDER_H

#include "gen/verbs/verbs.h"

#include <stddef.h>

#define RECORDER_QPS   16
#define RECORDER_SENDS 1024

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
    struct verbs *to; /* gets the calls */
    unsigned calls, posts, completions;
    unsigned qps, regions, handles; /* existing queue pairs, regions and address handles */
    unsigned unknown;               /* calls with a queue pair that does not exist */
    unsigned too_many;              /* posts to a queue that was full */
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
    return verbs_srq_create(recorder_of(v)->to, pd, depth, max_sge);
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

static inline int rec_post_send(struct verbs *v, int qp, const struct send_wr *wr, ns_t now)
{
    struct recorder *r = recorder_of(v);
    struct recorded_qp *q = recorded(r, qp);
    int err = verbs_post_send(r->to, qp, wr, now);

    r->posts++;
    if (q && q->posted - q->retired >= q->max_send)
        r->too_many++;
    if (q && err == 0)
        q->signaled[q->posted++ % RECORDER_SENDS] = q->sig_all || (wr->flags & SEND_SIGNALED);
    return err;
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

static inline void recorder_open(struct recorder *r, struct verbs *to)
{
    static const struct verbs_ops ops = {.pd_alloc = rec_pd_alloc,
                                         .mr_reg = rec_mr_reg,
                                         .mr_dereg = rec_mr_dereg,
                                         .ah_create = rec_ah_create,
                                         .ah_destroy = rec_ah_destroy,
                                         .cq_create = rec_cq_create,
                                         .cq_destroy = rec_cq_destroy,
                                         .poll = rec_poll,
                                         .srq_create = rec_srq_create,
                                         .qp_create = rec_qp_create,
                                         .qp_destroy = rec_qp_destroy,
                                         .qp_connect = rec_qp_connect,
                                         .qp_num = rec_qp_num,
                                         .qp_state = rec_qp_state,
                                         .pick_psn = rec_pick_psn,
                                         .qp_hold = rec_qp_hold,
                                         .qp_counters = rec_qp_counters,
                                         .post_send = rec_post_send,
                                         .post_recv = rec_post_recv,
                                         .post_srq_recv = rec_post_srq_recv};

    *r = (struct recorder){.verbs = {&ops}, .to = to};
}

#endif
