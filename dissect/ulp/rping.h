/* layer 1 (wire): the messages of rping: a piece of memory, 16 bytes, big-endian (rdma-core,
 * librdmacm/examples/rping.c). */
#ifndef RDMATRACE_DISSECT_ULP_RPING_H
#define RDMATRACE_DISSECT_ULP_RPING_H

#include "dissect/ulp/ulp.h"

#define RPING_LEN 16

/* Address (8), R_Key (4), bytes (4). What the server sends says no more than that it goes on. */
struct rping {
    uint64_t va;
    uint32_t rkey, len;
};
/* `b` has RPING_LEN bytes. */
void rping_get(struct rping *r, const uint8_t *b);
/* A strict test of a SEND's bytes: LOOKS_CLIENT for memory of a program. Two are needed, or one and its response. */
enum ulp_looks rping_looks(const uint8_t *b, uint32_t len, bool whole);
/* Whether a whole message of the server, zeros, goes on behind `asked`. */
bool rping_responds(const uint8_t *b, uint32_t len, const struct ulp_body *asked);
void rping_layers(struct pkt *p, const struct ulp_body *body);

/* clang-format off */
#define RPING_HDRS(X) X(rping)
/* clang-format on */
#define RPING_DECLARE(name) extern const struct hdr name##_hdr;
RPING_HDRS(RPING_DECLARE)

#endif
