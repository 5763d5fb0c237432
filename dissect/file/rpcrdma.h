/* layer 1 (wire): RPC over RDMA, version 1, and the RPC header inside: all big-endian, in words of four bytes (XDR).
 *
 * Sources: the kernel's linux/sunrpc/rpc_rdma.h and net/sunrpc/xprtrdma, RFC 8166, RFC 8797 (private data), RFC 5531
 * (RPC), and captures of Linux 6.1. Filter names are those of tshark. */
#ifndef RDMATRACE_DISSECT_FILE_RPCRDMA_H
#define RDMATRACE_DISSECT_FILE_RPCRDMA_H

#include "dissect/ulp/ulp.h"

/* Kinds of messages. */
enum rpcrdma_proc { RPCRDMA_MSG, RPCRDMA_NOMSG, RPCRDMA_MSGP, RPCRDMA_DONE, RPCRDMA_ERROR };
/* Codes of RPCRDMA_ERROR. */
enum { RPCRDMA_ERR_VERS = 1, RPCRDMA_ERR_CHUNK = 2 };

#define RPCRDMA_FIXED 16 /* bytes before the chunk lists */

/* The transport header:
 *   0     4        8        12     16
 *   +-----+--------+--------+------+-----------+------------+-------------+
 *   | xid | version| credits| proc | read list | write list | reply chunk |
 *   +-----+--------+--------+------+-----------+------------+-------------+
 * The read list has {1, position, handle, length, offset (8)} for each segment, then 0; the write list {1, segments,
 * {handle, length, offset (8)} ...} for each chunk, then 0; the reply chunk is 0, or 1 and one such chunk. */
struct rpcrdma {
    uint32_t xid, version, credits;
    uint32_t proc;                       /* enum rpcrdma_proc, or a value that is not known */
    uint32_t n_reads, n_writes, n_reply; /* segments of the read list; chunks of the write list; reply chunk: 0, 1 */
    uint32_t error;                      /* of RPCRDMA_ERROR */
    uint32_t len;                        /* bytes of the header; an RPC message may follow */
    bool whole;                          /* the lists end within the bytes */
};

enum rpcrdma_list { RPCRDMA_READS, RPCRDMA_WRITES, RPCRDMA_REPLY, RPCRDMA_END };

/* A segment: memory that the sender of a call offers. */
struct rpcrdma_segment {
    enum rpcrdma_list list;
    uint32_t chunk;    /* of the write list: its place from 0 */
    bool first;        /* of its chunk, in the write list and the reply chunk */
    uint32_t position; /* of the read list: byte of the RPC message; 0: the message itself */
    uint32_t handle;   /* R_Key */
    uint32_t length;
    uint64_t offset; /* address */
    uint32_t at;     /* its first byte in the header */
    uint32_t count;  /* with `first`: segments of the chunk */
};

/* A walk over the segments. Begin with {.b, .len, .at = where the lists begin}. */
struct rpcrdma_walk {
    const uint8_t *b;
    uint32_t len, at;
    uint32_t left, count;         /* segments of the chunk that are to come, and all */
    uint32_t chunks[RPCRDMA_END]; /* entries of each list */
    enum rpcrdma_list list;       /* RPCRDMA_END: all lists end within the bytes */
    bool bad;                     /* they do not */
};
/* The next segment; false: there is none. It ends after at most `len` / 4 calls, whatever the bytes are. */
bool rpcrdma_next(struct rpcrdma_walk *w, struct rpcrdma_segment *s);
/* The walk over the lists of a header. */
struct rpcrdma_walk rpcrdma_segments(const struct rpcrdma *h, const uint8_t *b, uint32_t len);

/* Whether they may be a header of version 2, which is in no published standard: only its name is known. */
bool rpcrdma_is_2(const uint8_t *b, uint32_t len);
/* The header at `b`. False if it is none: too short, not version 1, a kind that is not known, or lists that are
 * damaged. Lists that go beyond `len` are no error, but clear `whole`. */
bool rpcrdma_get(struct rpcrdma *h, const uint8_t *b, uint32_t len);
/* A strict test of a SEND's bytes (`whole`: all of them): what a client or what a server sends. */
enum ulp_looks rpcrdma_looks(const uint8_t *b, uint32_t len, bool whole);
/* Likewise of one of `all` bytes of which `len` were captured: the xid that RPC has once more, and its version, tell.
 */
enum ulp_looks rpcrdma_looks_cut(const uint8_t *b, uint32_t len, uint32_t all, bool whole);
/* Whether private data of a REQ or REP are those of RFC 8797. */
bool rpcrdma_private_fits(const uint8_t *b, uint32_t len);

/* --- RPC -------------------------------------------------------------------------------------- */

enum {
    RPC_CALL = 0,
    RPC_REPLY = 1,
    RPC_CALL_LEN = 24, /* up to the credentials */
};
enum {
    RPC_PORTMAP = 100000,
    RPC_NFS = 100003,
    RPC_MOUNT = 100005,
    RPC_NLM = 100021,
    RPC_STAT = 100024,
    RPC_NFSACL = 100227,
    RPC_NFS_CB = 0x40000000
};

/* A call: xid, 0, RPC version 2, program, its version, procedure, credentials, verifier.
 * A reply: xid, 1, 0 accepted: verifier, status; or 1 denied: status. */
struct rpc {
    uint32_t xid, type;
    uint32_t program, version, procedure; /* of a call */
    bool denied;
    uint32_t status; /* of a reply: of an accepted one, or why it is denied */
    uint32_t at;     /* first byte of arguments or results; 0: not there, or there are none */
};
/* The RPC message at `b`. False if it is none; one that is cut is no error. */
bool rpc_get(struct rpc *r, const uint8_t *b, uint32_t len);
/* "NFS", "MOUNT"; NULL: no name is known. */
const char *rpc_program_str(uint32_t program);
/* "PROG_UNAVAIL", "AUTH_ERROR": of a reply that is not accepted and successful; NULL: no name is known. */
const char *rpc_status_str(bool denied, uint32_t status);

/* --- Layers ----------------------------------------------------------------------------------- */

void rpcrdma_layers(struct pkt *p, const struct ulp_body *m, const struct rpcrdma *h);
/* The RPC header of message `m`. `called`: three words, the program, its version and the procedure of the call that a
 * reply answers; NULL: not known. */
void rpc_layers(struct pkt *p, const struct ulp_body *m, const struct rpc *r, const struct ulp_body *called);
/* Private data of a REQ or REP. */
void rpcrdma_private_layers(struct pkt *p, const struct ulp_body *m);

extern const struct vdesc rpc_program_desc;

/* clang-format off */
#define RPCRDMA_HDRS(X) \
    X(rpcordma) X(rpcordma_chunk) X(rpcordma_read) X(rpcordma_segment) X(rpcordma_error) \
    X(rpcordma_private) X(rpc_call) X(rpc_cred) X(rpc_verf) X(rpc_reply) \
    X(rpc_called) X(rpc_accepted) X(rpc_denied)
/* clang-format on */
#define RPCRDMA_DECLARE(name) extern const struct hdr name##_hdr;
RPCRDMA_HDRS(RPCRDMA_DECLARE)

#endif
