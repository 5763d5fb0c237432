/* layer 3 (storage): what client and server of RPC over RDMA agree on: messages written and read as words (XDR), NFS
 * version 3 as far as they go. The headers are those of dissect/file/rpcrdma.h, which reads them. */
#ifndef RDMATRACE_GEN_STORAGE_RPC_H
#define RDMATRACE_GEN_STORAGE_RPC_H

#include "dissect/file/nfs.h"
#include "dissect/file/rpcrdma.h"

#define RPC_INLINE   4096 /* bytes of a message, in both directions: RFC 8797's private data say so */
#define NFS_FH_MAX   64
#define NFS_ROOT     "rdmagen root" /* handles of our server: its directory, and the one file in it */
#define NFS_FILE     "rdmagen file"
#define NFS_NAME     "data"
#define NFS_V3       3
#define NFS_ATTR_LEN 84

/* Procedures, statuses and how stable a write is: RFC 1813. */
enum {
    NFS3_NULL = 0,
    NFS3_GETATTR = 1,
    NFS3_LOOKUP = 3,
    NFS3_ACCESS = 4,
    NFS3_READ = 6,
    NFS3_WRITE = 7,
    NFS3_READDIR = 16,
    NFS3_READDIRPLUS = 17,
    NFS3_FSSTAT = 18,
    NFS3_FSINFO = 19,
    NFS3_PATHCONF = 20,
    NFS3_COMMIT = 21
};
enum { NFS3_OK = 0, NFS3ERR_NOENT = 2, NFS3ERR_NOTDIR = 20, NFS3ERR_INVAL = 22, NFS3ERR_FBIG = 27, NFS3ERR_STALE = 70 };
enum { NFS3_UNSTABLE = 0, NFS3_FILE_SYNC = 2 };
enum { RPC_SUCCESS = 0, RPC_PROG_UNAVAIL = 1, RPC_PROC_UNAVAIL = 3, RPC_GARBAGE_ARGS = 4 };

struct nfs_handle {
    uint8_t b[NFS_FH_MAX];
    uint32_t len;
};

/* A message in the making, of at most `room` bytes; what does not fit is left out, and sets `full`. */
struct xdr_out {
    uint8_t *b;
    uint32_t len, room;
    bool full;
};
void xdr_word(struct xdr_out *x, uint32_t v);
void xdr_long(struct xdr_out *x, uint64_t v);
/* Length, bytes, padding. */
void xdr_opaque(struct xdr_out *x, const void *p, uint32_t len);

/* A message that is read; behind its end all is zero, and `bad` is set. */
struct xdr_in {
    const uint8_t *b;
    uint32_t len, at;
    bool bad;
};
uint32_t xdr_get(struct xdr_in *x);
uint64_t xdr_get_long(struct xdr_in *x);
/* Length and bytes of at most `most`, which stay where they are; *len: 0 if they are not there. */
const uint8_t *xdr_get_opaque(struct xdr_in *x, uint32_t most, uint32_t *len);
void xdr_skip(struct xdr_in *x, uint32_t bytes);
/* post_op_attr: attributes that may be there. *size: of the file, if they are. */
void xdr_skip_attr(struct xdr_in *x, uint64_t *size);

/* The transport header with at most one segment: in the read list (at byte `position` of the call), or in the write
 * list; NULL: none. */
struct rpc_chunk {
    uint32_t position, key, len;
    uint64_t va;
};
void rpcrdma_put(struct xdr_out *x, uint32_t xid, uint32_t credits, const struct rpc_chunk *read,
                 const struct rpc_chunk *write);
/* Private data of RFC 8797: returns their bytes. `invalidate`: this side's keys may be invalidated. */
uint8_t rpcrdma_put_private(uint8_t *b, bool invalidate);

#endif
