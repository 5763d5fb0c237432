/* layer 3 (storage): messages of RPC over RDMA, written and read as words. */
#include "gen/storage/rpc.h"

void xdr_word(struct xdr_out *x, uint32_t v)
{
    x->full |= x->len + 4 > x->room;
    if (x->full)
        return;
    store_be32(x->b + x->len, v);
    x->len += 4;
}

void xdr_long(struct xdr_out *x, uint64_t v)
{
    xdr_word(x, (uint32_t)(v >> 32));
    xdr_word(x, (uint32_t)v);
}

void xdr_opaque(struct xdr_out *x, const void *p, uint32_t len)
{
    uint32_t padded = (len + 3) & ~UINT32_C(3);

    xdr_word(x, len);
    x->full |= padded > x->room - x->len;
    if (x->full)
        return;
    memset(x->b + x->len, 0, padded);
    memcpy(x->b + x->len, p, len);
    x->len += padded;
}

void xdr_skip(struct xdr_in *x, uint32_t bytes)
{
    x->bad |= bytes > x->len - x->at;
    x->at = x->bad ? x->len : x->at + bytes;
}

uint32_t xdr_get(struct xdr_in *x)
{
    uint32_t at = x->at;

    xdr_skip(x, 4);
    return x->bad ? 0 : load_be32(x->b + at);
}

uint64_t xdr_get_long(struct xdr_in *x)
{
    uint64_t high = xdr_get(x);

    return high << 32 | xdr_get(x);
}

const uint8_t *xdr_get_opaque(struct xdr_in *x, uint32_t most, uint32_t *len)
{
    uint32_t n = xdr_get(x), at = x->at;

    x->bad |= n > most;
    if (!x->bad)
        xdr_skip(x, (n + 3) & ~UINT32_C(3));
    *len = x->bad ? 0 : n;
    return x->b + at;
}

void xdr_skip_attr(struct xdr_in *x, uint64_t *size)
{
    if (!xdr_get(x))
        return;
    xdr_skip(x, 20); /* type, mode, links, uid, gid */
    *size = xdr_get_long(x);
    xdr_skip(x, NFS_ATTR_LEN - 28);
}

static void put_segment(struct xdr_out *x, const struct rpc_chunk *c)
{
    xdr_word(x, c->key);
    xdr_word(x, c->len);
    xdr_long(x, c->va);
}

void rpcrdma_put(struct xdr_out *x, uint32_t xid, uint32_t credits, const struct rpc_chunk *read,
                 const struct rpc_chunk *write)
{
    xdr_word(x, xid);
    xdr_word(x, 1);
    xdr_word(x, credits);
    xdr_word(x, RPCRDMA_MSG);
    if (read) {
        xdr_word(x, 1);
        xdr_word(x, read->position);
        put_segment(x, read);
    }
    xdr_word(x, 0);
    if (write) {
        xdr_word(x, 1);
        xdr_word(x, 1);
        put_segment(x, write);
    }
    xdr_word(x, 0);
    xdr_word(x, 0);
}

uint8_t rpcrdma_put_private(uint8_t *b, bool invalidate)
{
    store_be32(b, UINT32_C(0xf6ab0e18));
    b[4] = 1;
    b[5] = invalidate;
    b[6] = b[7] = RPC_INLINE / 1024 - 1;
    return 8;
}
