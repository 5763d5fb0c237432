/* layer 1 (wire): RTRS (RDMA transport of RNBD) and RNBD (a network block device), little-endian.
 *
 * Sources: the kernel's ulp/rtrs/rtrs-pri.h and block/rnbd/rnbd-proto.h, and a capture of Linux 6.1. tshark has no
 * fields of either.
 *
 * A client writes each request into memory of the server (a chunk), by a WRITE with immediate data:
 *   +------+--------------+-------------+
 *   | data | user message | RTRS header |   the header is at the end
 *   +------+--------------+-------------+
 * The server answers by immediate data that name the chunk, after WRITEs of the data that were read. */
#ifndef RDMATRACE_DISSECT_ULP_RTRS_H
#define RDMATRACE_DISSECT_ULP_RTRS_H

#include "dissect/ulp/ulp.h"

/* Kinds of immediate data: the upper four bits. */
enum {
    RTRS_IMM_REQUEST = 0,
    RTRS_IMM_RESPONSE = 1,
    RTRS_IMM_RESPONSE_INV = 2,
    RTRS_IMM_HEARTBEAT = 8,
    RTRS_IMM_HEARTBEAT_ACK = 9
};
struct rtrs_imm {
    uint8_t kind;
    uint32_t payload; /* 28 bits: of a request the chunk and the byte of the header in it */
    uint16_t error;   /* of a response: errno, 0: none */
    uint32_t id;      /* of a response: number of the chunk */
};
#define RTRS_DEPTH_BITS                                                                                                \
    19 /* bits of an immediate below the number of the chunk, with 512 chunks: what Linux has by default */
void rtrs_imm_get(struct rtrs_imm *i, uint32_t imm);

/* Types of RTRS messages. */
enum { RTRS_INFO_REQ = 0, RTRS_INFO_RSP = 1, RTRS_WRITE = 2, RTRS_READ = 3, RTRS_RKEY_RSP = 4 };
#define RTRS_WRITE_LEN 4    /* bytes of the header of RTRS_WRITE */
#define RTRS_TAIL      1024 /* bytes at the end of a request that are read */

/* A request: what stands at the end of its bytes. */
struct rtrs {
    uint8_t type;  /* RTRS_WRITE or RTRS_READ */
    uint32_t at;   /* header, in the bytes that were given */
    uint32_t user; /* user message, likewise; up to `at` */
    uint16_t n;    /* descriptors of memory, of RTRS_READ */
};
/* The request that ends with the `len` bytes at `b`; false: none. `va`: address of the first of them; `offset`: of the
 * header in its chunk, from the immediate data: chunks begin at a page. */
bool rtrs_get(struct rtrs *r, const uint8_t *b, uint32_t len, uint64_t va, uint32_t offset);
/* What the WRITE of `len` bytes to `va` is, of which the end was cut: of a request only its type, and how many bytes
 * are before its header (`at`), by its place in the chunk. */
bool rtrs_get_cut(struct rtrs *r, uint64_t va, uint32_t len, uint32_t offset);
/* Memory of the client, descriptor `i` below r->n. */
struct rtrs_memory {
    uint64_t va;
    uint32_t rkey, len;
};
struct rtrs_memory rtrs_memory(const struct rtrs *r, const uint8_t *b, uint32_t i);

/* RNBD messages. */
enum { RNBD_SESS_INFO = 0, RNBD_SESS_INFO_RSP = 1, RNBD_OPEN = 2, RNBD_OPEN_RSP = 3, RNBD_IO = 4, RNBD_CLOSE = 5 };
struct rnbd {
    bool known; /* the type is one of these, and all of the message is there */
    uint16_t type;
    uint32_t device;     /* of IO and CLOSE */
    uint64_t sector;     /* of IO */
    uint32_t rw;         /* of IO: what, in bits 7:0, and flags */
    uint32_t size;       /* of IO: bytes */
    const uint8_t *name; /* of OPEN: the device's name */
    uint32_t name_len;
};
void rnbd_get(struct rnbd *m, const uint8_t *b, uint32_t len);
/* Likewise of the beginning of a message: without `size`, or a name. */
#define RNBD_LEAST 20
void rnbd_get_cut(struct rnbd *m, const uint8_t *b, uint32_t len);
/* "Read", "Open"; NULL: no name is known. */
const char *rnbd_name_str(uint16_t type, uint32_t rw);

/* A strict test of a SEND's bytes: messages about chunks and keys. */
enum ulp_looks rtrs_looks(const uint8_t *b, uint32_t len, bool whole);
enum ulp_looks rtrs_looks_cut(const uint8_t *b, uint32_t len, uint32_t all, bool whole);
/* Likewise of a WRITE with immediate data `imm` to `va`, of one packet: it ends with a request of RNBD. Of one that was
 * cut, `len` of its `all` bytes, only a request to read tells. */
enum ulp_looks rtrs_looks_write(const uint8_t *b, uint32_t len, uint32_t all, uint64_t va, uint32_t imm);
/* Whether private data of a REQ are those of RTRS: two zero bytes, a magic number. */
bool rtrs_private_fits(const uint8_t *b, uint32_t len);

/* Bits of an immediate below the number of the chunk, by the queue depth in the private data of a REP. */
unsigned rtrs_chunk_bits(const uint8_t *b, uint32_t len);
/* What the private data of a REJ say, which are those of a REP: "ECONNRESET"; NULL: not known. */
const char *rtrs_refusal_str(const struct ulp_body *body);

/* Layers: a SEND; a request (r, in `tail`); what an immediate says; private data of a REQ or REP. */
void rtrs_send_layers(struct pkt *p, const struct ulp_body *body);
void rtrs_request_layers(struct pkt *p, const struct ulp_body *tail, const struct rtrs *r);
void rtrs_private_layers(struct pkt *p, const struct ulp_body *body, bool reply);

/* clang-format off */
#define RTRS_HDRS(X) \
    X(rtrs_info_req) X(rtrs_info_rsp) X(rtrs_rkey_rsp) X(rtrs_request) X(rtrs_memory) \
    X(rnbd) X(rtrs_req) X(rtrs_rep)
/* clang-format on */
#define RTRS_DECLARE(name) extern const struct hdr name##_hdr;
RTRS_HDRS(RTRS_DECLARE)

#endif
