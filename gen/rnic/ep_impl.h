/* layer 3 (rnic): an endpoint of ours as a device: private to ep_*.c. */
#ifndef RDMATRACE_GEN_RNIC_EP_IMPL_H
#define RDMATRACE_GEN_RNIC_EP_IMPL_H

#include "gen/rnic/ep_rnic.h"
#include "gen/verbs/rdmacm.h"

#define TWIN_USERS 4096 /* most queue pairs, and most queues of each kind */
#define TWIN_IDS   320  /* most ids of RDMA-CM */

struct twin {
    struct rnic base; /* first */
    struct ep_rnic_config c;
    void *cq_user[TWIN_USERS], *srq_user[TWIN_USERS]; /* by handle */
    unsigned cq_uses[TWIN_USERS];                     /* queues of queue pairs that complete there */
    int qp_cq[TWIN_USERS][2];                         /* by handle: where its queues complete */
    bool has_channel;
    int channel;                      /* of all ids */
    struct twin_id *id[TWIN_IDS];     /* by the number of the connection manager; NULL: none */
    struct twin_id *routed[TWIN_IDS]; /* whose route was asked for, the oldest first */
    unsigned n_routed;
};

static inline struct twin *twin_of(struct rnic *r)
{
    return (struct twin *)(void *)r;
}
static inline struct endpoint *twin_ep(struct rnic *r)
{
    return twin_of(r)->c.ep;
}
static inline ns_t twin_now(struct rnic *r)
{
    return *twin_of(r)->c.now;
}

/* Time stamps of completions (ep_stamps.c): members of struct rnic_ops. */
int twin_device_clock(struct rnic *r, uint64_t *ticks);
int twin_cq_poll_stamped(struct rnic *r, void *cq, struct rnic_wc *wc, int n);
/* RDMA-CM (ep_cm.c): members of struct rnic_ops. */
int twin_cm_create(struct rnic *r, uint32_t ps, void *user, void **id);
void twin_cm_own(struct rnic *r, void *id, void *user);
int twin_cm_destroy(struct rnic *r, void *id);
int twin_cm_bind(struct rnic *r, void *id, const uint8_t addr[16], uint16_t port);
int twin_cm_listen(struct rnic *r, void *id, uint32_t backlog);
int twin_cm_resolve(struct rnic *r, void *id, const uint8_t addr[16], uint16_t port, uint32_t ms);
int twin_cm_route(struct rnic *r, void *id, uint32_t ms);
int twin_cm_connect(struct rnic *r, void *id, const struct rnic_cm_param *p);
int twin_cm_accept(struct rnic *r, void *id, const struct rnic_cm_param *p);
int twin_cm_reject(struct rnic *r, void *id, const uint8_t *data, uint32_t n);
int twin_cm_establish(struct rnic *r, void *id);
int twin_cm_disconnect(struct rnic *r, void *id);
int twin_cm_no_group(struct rnic *r, void *id, const uint8_t addr[16]);
int twin_cm_no_option(struct rnic *r, void *id, uint32_t option, uint32_t value);
int twin_cm_modify(struct rnic *r, void *id, void *qp, uint32_t state);
/* Take the next event of RDMA-CM: 1, or 0 if there is none. */
int twin_cm_event(struct rnic *r, struct rnic_event *to);
/* Free the ids that are left. */
void twin_cm_free(struct twin *t);

#endif
