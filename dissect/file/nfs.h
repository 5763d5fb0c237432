/* layer 1 (wire): NFS versions 3 and 4.0 to 4.2 in RPC messages, big-endian (XDR).
 *
 * Sources: RFC 1813, 7530, 8881, 7862 and 8276 by the XDR files of nfs-ganesha (nfs23.x, nfsv41.x), RFC 8267 for what
 * chunks carry, and captures of Linux 6.1 with what the kernels traced. Filter names are those of tshark. */
#ifndef RDMATRACE_DISSECT_FILE_NFS_H
#define RDMATRACE_DISSECT_FILE_NFS_H

#include "dissect/file/rpcrdma.h"

#define NFS_OPS_MAX  15 /* operations of a compound that are kept */
#define NFS_NAME_MAX 23 /* bytes of a name that are kept */

/* Bytes of an RPC message that are not in it, but in chunks: at most NFS_CHUNKS of them are known. */
#define NFS_CHUNKS 4
struct nfs_chunk {
    uint32_t position; /* of a call: byte of the message where they belong */
    uint32_t length;
};
struct nfs_chunks {
    uint32_t n;
    struct nfs_chunk chunk[NFS_CHUNKS];
};

/* What is kept of a call. */
struct nfs_call {
    uint64_t offset;
    uint32_t count, fh_hash;
    uint32_t inside;          /* bytes of a file's data that are in the message */
    uint16_t n_ops;           /* of a compound: as it states */
    uint16_t access;          /* rights that ACCESS asks for, or is granted: bits of RFC 1813 and 8276 */
    uint8_t ops[NFS_OPS_MAX]; /* opcodes; those above 255 as 0 */
    uint8_t known;            /* how many of `ops` are known */
    uint8_t main;             /* the opcode of the operation that the compound is sent for; 0: none */
    uint8_t minor, stable;
    bool have_fh : 1, have_offset : 1, have_count : 1, have_stable : 1, have_access : 1;
    char name[NFS_NAME_MAX + 1]; /* the last one in the arguments, as text */
};

/* What a reply says. */
struct nfs_reply {
    uint32_t status;
    uint32_t n_ops;  /* of a compound: operations with a result; the last of them has failed if `status` is not 0 */
    uint32_t inside; /* bytes of a file's data that are in the message */
    bool known;      /* there is a status */
    /* of version 3: file handle, count and what was made stable, as a call has them; of version 4: the operations with
     * a result; of both: the rights that were granted, if it is a reply to ACCESS; nothing else is valid */
    struct nfs_call found;
};

/* Arguments of the call `r` and results of the call `called` (from byte `at` of the RPC message `m` on); `p` gets their
 * layers (NULL: none), what is not interpreted in a layer of its own. `chunks`: what the message lacks; NULL: nothing.
 * A program or version that is not known leaves *c and *reply empty. */
void nfs_call_read(struct nfs_call *c, const struct rpc *r, const struct ulp_body *m, const struct nfs_chunks *chunks,
                   struct pkt *p);
void nfs_reply_read(struct nfs_reply *reply, const struct rpc *called, uint32_t at, const struct ulp_body *m,
                    const struct nfs_chunks *chunks, struct pkt *p);

/* What a compound of `n` operations is for, by those that are known of it: the opcode of one; 0: they do not tell. */
uint8_t nfs_main(const struct nfs_call *c, uint32_t n);
/* The layer that names the procedure, the word at byte `at` of `m`, if it is one of NFS. */
void nfs_called_layer(struct pkt *p, const struct rpc *r, const struct ulp_body *m, uint32_t at);

/* "READ", "COMPOUND", "GETACL"; NULL: no name is known. */
const char *nfs_procedure_str(uint32_t program, uint32_t version, uint32_t procedure);
/* "READ", "SEQUENCE": of an operation of version 4; NULL: no name is known. */
const char *nfs_op_str(uint32_t opcode);
/* Append "NFS3ERR_NOENT", "NFS4_OK"; false: no name is known. */
bool nfs_status_put(struct buf *b, uint32_t version, uint32_t status);
/* "UNSTABLE", "DATA_SYNC", "FILE_SYNC"; NULL: no name is known. */
const char *nfs_stable_str(uint32_t stable);
/* Append what tells calls apart: " fh 0xcb4058e5 offset 0 count 4096". */
void nfs_arguments_text(struct buf *b, const struct nfs_call *c);

extern const struct vdesc nfs_op_desc, nfs_proc3_desc, nfs_proc4_desc, nfs_status3_desc, nfs_status4_desc,
    nfs_stable_desc;

/* clang-format off */
#define NFS_HDRS(X) \
    X(nfs3) X(nfs3_status) X(nfs3_access) X(nfs3_rights) X(nfs3_io) X(nfs3_write) X(nfs3_read_result) \
    X(nfs3_write_result) X(nfs4) X(nfs4_status) X(nfs4_tag) X(nfs4_minor) \
    X(nfs4_ops) X(nfs4_op) X(nfs4_result) X(nfs_fh) X(nfs_name) \
    X(nfs_stateid) X(nfs_rest)
/* clang-format on */
#define NFS_DECLARE(name) extern const struct hdr name##_hdr;
NFS_HDRS(NFS_DECLARE)

#endif
