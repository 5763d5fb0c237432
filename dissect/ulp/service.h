/* layer 1 (wire): upper-layer protocols by what CM says of a connection. */
#ifndef RDMATRACE_DISSECT_ULP_SERVICE_H
#define RDMATRACE_DISSECT_ULP_SERVICE_H

#include "types.h"

/* Upper-layer protocol of the service id (host order) of a REQ or SIDR_REQ, e.g. "NVMe/RDMA". A port of the RDMA IP CM
 * service (annex A11) that is not well known gives "RDMA-CM application", any other unknown id NULL. */
const char *ulp_of_service(uint64_t service_id);

/* The name that it returns for IP over InfiniBand in connected mode. */
extern const char ulp_ipoib_cm[];

/* What a REQ says of its upper protocol. */
struct ulp_named {
    const char *name; /* as ulp_of_service(); NULL: not known */
    bool by_private;  /* its private data fit, and tell the protocol */
    bool fits;        /* they fit */
    bool vague;       /* only that it uses the RDMA-CM */
};
/* The protocol of a REQ with `len` bytes of the consumer's private data at `b` (behind the header of the RDMA IP CM
 * service). Private data that identify a protocol decide, on any port, then well-known ports. */
struct ulp_named ulp_of_req(uint64_t service_id, const uint8_t *b, uint32_t len);

#endif
