/* layer 3 (rnic): libibverbs and librdmacm, loaded when the agent starts, so that rdmagen runs where they are not. */
#ifndef RDMATRACE_GEN_RNIC_IBV_LIB_H
#define RDMATRACE_GEN_RNIC_IBV_LIB_H

#include "gen/rnic/rnic.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

/* Functions that are called; what verbs.h defines inline needs none. */
#define IBV_FUNCTIONS(X)                                                                                               \
    X(ibv_get_device_list)                                                                                             \
    X(ibv_free_device_list)                                                                                            \
    X(ibv_get_device_name)                                                                                             \
    X(ibv_open_device)                                                                                                 \
    X(ibv_close_device)                                                                                                \
    X(ibv_query_device)                                                                                                \
    X(_ibv_query_gid_table)                                                                                            \
    X(ibv_query_pkey)                                                                                                  \
    X(ibv_query_gid)                                                                                                   \
    X(ibv_alloc_pd)                                                                                                    \
    X(ibv_dealloc_pd)                                                                                                  \
    X(ibv_create_comp_channel)                                                                                         \
    X(ibv_destroy_comp_channel)                                                                                        \
    X(ibv_create_cq)                                                                                                   \
    X(ibv_resize_cq)                                                                                                   \
    X(ibv_destroy_cq)                                                                                                  \
    X(ibv_get_cq_event)                                                                                                \
    X(ibv_ack_cq_events)                                                                                               \
    X(ibv_get_async_event)                                                                                             \
    X(ibv_ack_async_event)                                                                                             \
    X(ibv_create_srq)                                                                                                  \
    X(ibv_modify_srq)                                                                                                  \
    X(ibv_query_srq)                                                                                                   \
    X(ibv_destroy_srq)                                                                                                 \
    X(ibv_reg_mr_iova2)                                                                                                \
    X(ibv_rereg_mr)                                                                                                    \
    X(ibv_dereg_mr)                                                                                                    \
    X(ibv_create_qp)                                                                                                   \
    X(ibv_modify_qp)                                                                                                   \
    X(ibv_query_qp)                                                                                                    \
    X(ibv_destroy_qp)                                                                                                  \
    X(ibv_create_ah)                                                                                                   \
    X(ibv_destroy_ah)                                                                                                  \
    X(ibv_qp_to_qp_ex)                                                                                                 \
    X(ibv_attach_mcast)                                                                                                \
    X(ibv_detach_mcast)
/* Those that older libraries lack: NULL then. */
#define IBV_LATER_FUNCTIONS(X)                                                                                         \
    X(ibv_query_ece)                                                                                                   \
    X(ibv_set_ece)                                                                                                     \
    X(ibv_reg_dmabuf_mr)
#define RDMACM_LATER_FUNCTIONS(X)                                                                                      \
    X(rdma_set_local_ece)                                                                                              \
    X(rdma_get_remote_ece)
#define RDMACM_FUNCTIONS(X)                                                                                            \
    X(rdma_create_event_channel)                                                                                       \
    X(rdma_destroy_event_channel)                                                                                      \
    X(rdma_create_id)                                                                                                  \
    X(rdma_destroy_id)                                                                                                 \
    X(rdma_bind_addr)                                                                                                  \
    X(rdma_listen)                                                                                                     \
    X(rdma_resolve_addr)                                                                                               \
    X(rdma_resolve_route)                                                                                              \
    X(rdma_connect)                                                                                                    \
    X(rdma_accept)                                                                                                     \
    X(rdma_reject)                                                                                                     \
    X(rdma_establish)                                                                                                  \
    X(rdma_disconnect)                                                                                                 \
    X(rdma_join_multicast)                                                                                             \
    X(rdma_leave_multicast)                                                                                            \
    X(rdma_set_option)                                                                                                 \
    X(rdma_init_qp_attr)                                                                                               \
    X(rdma_get_cm_event)                                                                                               \
    X(rdma_ack_cm_event)                                                                                               \
    X(rdma_event_str)

#define IBV_MEMBER(name) __typeof__(&name) name;
struct ibv_lib {
    IBV_FUNCTIONS(IBV_MEMBER)
    IBV_LATER_FUNCTIONS(IBV_MEMBER)
    RDMACM_FUNCTIONS(IBV_MEMBER)
    RDMACM_LATER_FUNCTIONS(IBV_MEMBER)
};
#undef IBV_MEMBER

/* Load both; again: nothing is done. 0, or -ENOSYS with the reason in `why`. */
int ibv_lib_load(char why[RNIC_WHY]);
/* Once it is loaded. */
extern struct ibv_lib ibv;

/* The device over libibverbs. */
struct ibv_rnic {
    struct rnic base; /* first */
    struct ibv_device **devices;
    struct ibv_context *context;   /* NULL: none is open */
    struct rdma_event_channel *cm; /* NULL: not needed yet */
};
static inline struct ibv_rnic *ibv_of(struct rnic *r)
{
    return (struct ibv_rnic *)(void *)r;
}
/* What a call returned, as 0 or a negative errno: they return an errno, or -1 and set errno. */
int ibv_result(int e);
/* A descriptor that is never to block. */
void ibv_unblock(int fd);

/* Post an ATOMIC WRITE or a FLUSH. -EOPNOTSUPP: the queue pair was not created for it. */
int ibv_later_post(struct ibv_qp *qp, const struct rnic_send *s);

/* The functions of the table, by file: ibv_queues.c, ibv_posts.c, ibv_rare.c, ibv_cm.c. */
int ibv_be_null_mr(struct rnic *r, struct rnic_mr *mr, void **handle);
int ibv_be_dmabuf_mr(struct rnic *r, struct rnic_mr *mr, int fd, uint64_t off, void **handle);
int ibv_be_advise(struct rnic *r, void *pd, uint32_t advice, bool flush, const struct sge *piece);
int ibv_be_dm_alloc(struct rnic *r, uint64_t len, uint32_t align, void **dm);
int ibv_be_dm_free(struct rnic *r, void *dm);
int ibv_be_dm_write(struct rnic *r, void *dm, uint64_t off, const void *from, uint64_t n);
int ibv_be_dm_read(struct rnic *r, void *dm, uint64_t off, void *to, uint64_t n);
int ibv_be_dm_mr(struct rnic *r, struct rnic_mr *mr, void *dm, uint64_t off, void **handle);
int ibv_be_ece_query(struct rnic *r, void *qp, struct rnic_ece *ece);
int ibv_be_ece_set(struct rnic *r, void *qp, const struct rnic_ece *ece);
int ibv_be_flow_create(struct rnic *r, void *qp, const struct rnic_flow *f, void **flow);
int ibv_be_flow_destroy(struct rnic *r, void *flow);
int ibv_be_channel_create(struct rnic *r, void **channel);
int ibv_be_channel_destroy(struct rnic *r, void *channel);
int ibv_be_channel_fd(struct rnic *r, void *channel);
int ibv_be_cq_create(struct rnic *r, uint32_t *entries, void *channel, uint32_t vector, void *user, void **cq);
int ibv_be_cq_resize(struct rnic *r, void *cq, uint32_t *entries);
int ibv_be_cq_arm(struct rnic *r, void *cq, bool solicited);
int ibv_be_cq_poll(struct rnic *r, void *cq, struct rnic_wc *wc, int n);
int ibv_be_cq_destroy(struct rnic *r, void *cq);
int ibv_be_device_clock(struct rnic *r, uint64_t *ticks);
int ibv_be_cq_create_stamped(struct rnic *r, uint32_t *entries, void *channel, uint32_t vector, void *user, void **cq);
int ibv_be_cq_poll_stamped(struct rnic *r, void *cq, struct rnic_wc *wc, int n);
int ibv_be_srq_create(struct rnic *r, struct rnic_srq_init *init, void *user, void **srq);
int ibv_be_srq_modify(struct rnic *r, void *srq, uint32_t mask, uint32_t max_wr, uint32_t limit);
int ibv_be_srq_query(struct rnic *r, void *srq, struct rnic_srq_init *out);
int ibv_be_srq_destroy(struct rnic *r, void *srq);
int ibv_be_qp_create(struct rnic *r, struct rnic_qp_init *init, void *user, void **qp);
int ibv_be_qp_modify(struct rnic *r, void *qp, uint32_t mask, const struct rnic_qp_attr *a);
int ibv_be_qp_query(struct rnic *r, void *qp, struct rnic_qp_attr *a);
int ibv_be_qp_destroy(struct rnic *r, void *qp);
int ibv_be_ah_create(struct rnic *r, void *pd, const struct rnic_av *av, void **ah);
int ibv_be_ah_destroy(struct rnic *r, void *ah);
int ibv_be_mcast(struct rnic *r, void *qp, const uint8_t gid[16], uint16_t lid, bool attach);
int ibv_be_post_send(struct rnic *r, void *qp, const struct rnic_send *s);
int ibv_be_post_recv(struct rnic *r, void *qp, const struct recv_wr *wr);
int ibv_be_post_srq(struct rnic *r, void *srq, const struct recv_wr *wr);
int ibv_be_mw_bind(struct rnic *r, void *qp, const struct rnic_send *s, uint32_t *rkey);
int ibv_be_next_event(struct rnic *r, void *channel, struct rnic_event *e);
int ibv_be_cm_create(struct rnic *r, uint32_t ps, void *user, void **id);
void ibv_be_cm_own(struct rnic *r, void *id, void *user);
int ibv_be_cm_destroy(struct rnic *r, void *id);
int ibv_be_cm_bind(struct rnic *r, void *id, const uint8_t addr[16], uint16_t port);
int ibv_be_cm_listen(struct rnic *r, void *id, uint32_t backlog);
int ibv_be_cm_resolve(struct rnic *r, void *id, const uint8_t addr[16], uint16_t port, uint32_t ms);
int ibv_be_cm_route(struct rnic *r, void *id, uint32_t ms);
int ibv_be_cm_connect(struct rnic *r, void *id, const struct rnic_cm_param *p);
int ibv_be_cm_accept(struct rnic *r, void *id, const struct rnic_cm_param *p);
int ibv_be_cm_reject(struct rnic *r, void *id, const uint8_t *data, uint32_t n);
int ibv_be_cm_establish(struct rnic *r, void *id);
int ibv_be_cm_disconnect(struct rnic *r, void *id);
int ibv_be_cm_join(struct rnic *r, void *id, const uint8_t addr[16]);
int ibv_be_cm_leave(struct rnic *r, void *id, const uint8_t addr[16]);
int ibv_be_cm_option(struct rnic *r, void *id, uint32_t option, uint32_t value);
int ibv_be_cm_ece_set(struct rnic *r, void *id, const struct rnic_ece *ece);
int ibv_be_cm_ece(struct rnic *r, void *id, struct rnic_ece *ece);
int ibv_be_cm_modify(struct rnic *r, void *id, void *qp, uint32_t state);
int ibv_be_cm_event(struct ibv_rnic *r, struct rnic_event *e);

#endif
