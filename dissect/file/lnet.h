/* layer 1 (wire): LNet over RDMA (o2iblnd of Lustre): its messages and private data, in the byte order of the sender.
 *
 * Sources: lustre-release o2iblnd-idl.h and tshark's packet-lnet.c, which agree; no capture was at hand. Names of
 * fields are tshark's. What LNet carries (Lustre RPCs) is not read.
 *
 *    0         4           6      7         8         12        16        24       32        40      48
 *   +---------+-----------+------+---------+---------+---------+---------+--------+---------+-------+------
 *   | magic   | version   | type | credits | bytes   | checksum| source  | stamp  | dest.   | stamp | body
 *   | (4)     | (2)       | (1)  | (1)     | (4)     | (4)     | NID (8) | (8)    | NID (8) | (8)   |
 *   +---------+-----------+------+---------+---------+---------+---------+--------+---------+-------+------ */
#ifndef RDMATRACE_DISSECT_FILE_LNET_H
#define RDMATRACE_DISSECT_FILE_LNET_H

#include "dissect/ulp/ulp.h"

#define LNET_HEAD_LEN 48
#define LNET_LEN      72 /* bytes of the LNet header, the first of the body of some types */
#define LNET_FRAGS    256

enum lnet_type {
    LNET_CONNREQ = 0xc0,
    LNET_CONNACK = 0xc1,
    LNET_NOOP = 0xd0,
    LNET_IMMEDIATE = 0xd1, /* LNet header, data */
    LNET_PUT_REQ = 0xd2,   /* LNet header, cookie */
    LNET_PUT_NAK = 0xd3,   /* cookie, status */
    LNET_PUT_ACK = 0xd4,   /* cookie of the PUT_REQ, cookie of the receiver, its memory */
    LNET_PUT_DONE = 0xd5,  /* cookie of the receiver, status */
    LNET_GET_REQ = 0xd6,   /* LNet header, cookie, memory */
    LNET_GET_DONE = 0xd7,  /* cookie, status */
};

struct lnet {
    bool little; /* byte order of the sender */
    uint16_t version;
    uint8_t type; /* enum lnet_type */
    uint8_t credits;
    uint32_t bytes; /* of the whole message */
    bool has_head;  /* an LNet header: the next two */
    uint32_t what;  /* 0 ACK, 1 PUT, 2 GET, 3 REPLY, 4 HELLO */
    uint32_t payload;
    uint64_t cookie;  /* by which the answer names it; of PUT_ACK that of the PUT_REQ */
    uint64_t cookie2; /* of PUT_ACK: of the receiver */
    int32_t status;   /* of *_NAK and *_DONE; 0: no error */
    uint32_t rkey;    /* of PUT_ACK and GET_REQ: memory in `frags` pieces from byte `at` on */
    uint32_t frags, at;
};
/* False: no message, or what its type needs is not there. */
bool lnet_get(struct lnet *m, const uint8_t *b, uint32_t len);
/* A piece of memory, `i` below m->frags. */
struct lnet_frag {
    uint64_t va;
    uint32_t len;
};
struct lnet_frag lnet_frag(const struct lnet *m, const uint8_t *b, uint32_t i);
/* "PUT_REQ"; "PUT"; NULL: not known. */
const char *lnet_type_str(uint8_t type);
const char *lnet_what_str(uint32_t what);
/* A strict test: the magic number; either end may be the client. */
enum ulp_looks lnet_looks(const uint8_t *b, uint32_t len, bool whole);
bool lnet_private_fits(const uint8_t *b, uint32_t len);
/* What the private data of a REJ say, "stale connection"; NULL: not known. */
const char *lnet_refusal_str(const struct ulp_body *body);
void lnet_reject_layers(struct pkt *p, const struct ulp_body *body);
/* A message, also one in private data of a REQ or REP. */
void lnet_layers(struct pkt *p, const struct ulp_body *body);

/* clang-format off */
#define LNET_HDRS(X) X(lnet) X(lnet_frag) X(lnet_rej)
/* clang-format on */
#define LNET_DECLARE(name) extern const struct hdr name##_hdr;
LNET_HDRS(LNET_DECLARE)

#endif
