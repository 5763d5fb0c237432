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
void rping_layers(struct pkt *p, const struct ulp_body *body);

/* clang-format off */
#define RPING_HDRS(X) X(rping)
/* clang-format on */
#define RPING_DECLARE(name) extern const struct hdr name##_hdr;
RPING_HDRS(RPING_DECLARE)

#endif
