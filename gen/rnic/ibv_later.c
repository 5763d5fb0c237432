/* layer 3 (rnic): ATOMIC WRITE and FLUSH, which libibverbs takes by its later calls (ibv_wr_post(3)) only. The
 * headers of rdma-core 44 lack FLUSH; but structures of the library grow at their end only, and a queue pair that was
 * created for an operation has its call. */
#include "gen/rnic/ibv_lib.h"

#include <errno.h>
#include <stddef.h>

typedef void (*atomic_write_call)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, const void *data);
typedef void (*flush_call)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len, uint8_t type, uint8_t level);

/* Calls behind wr_abort, which all headers have: number 0 is wr_atomic_write, number 1 wr_flush. */
static void call_of(const struct ibv_qp_ex *x, unsigned n, void *call)
{
    size_t at = offsetof(struct ibv_qp_ex, wr_abort) + (n + 1) * sizeof(atomic_write_call);

    memcpy(call, (const uint8_t *)x + at, sizeof(atomic_write_call));
}

static void request(struct ibv_qp_ex *x, const struct rnic_send *s)
{
    atomic_write_call atomic_write;
    flush_call flush;

    if (s->wr.opcode == WR_FLUSH) {
        call_of(x, 1, &flush);
        flush(x, s->wr.rkey, s->wr.remote_addr, s->wr.flush_length, s->wr.placement, s->wr.whole_region);
    } else {
        call_of(x, 0, &atomic_write);
        atomic_write(x, s->wr.rkey, s->wr.remote_addr, s->data);
    }
}

int ibv_later_post(struct ibv_qp *qp, const struct rnic_send *s)
{
    uint32_t needs = s->wr.opcode == WR_FLUSH ? RNIC_OPS_FLUSH : RNIC_OPS_ATOMIC_WRITE;
    struct ibv_qp_ex *x = s->send_ops & needs ? ibv.ibv_qp_to_qp_ex(qp) : NULL;

    if (!x)
        return -EOPNOTSUPP;
    x->wr_id = s->wr.wr_id;
    x->wr_flags = s->wr.flags;
    x->wr_start(x);
    request(x, s);
    return ibv_result(x->wr_complete(x));
}
