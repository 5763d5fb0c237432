/* layer 1 (wire): upper-layer protocols by CM service id. */
#ifndef RDMATRACE_DISSECT_ULP_SERVICE_H
#define RDMATRACE_DISSECT_ULP_SERVICE_H

#include <stdint.h>

/* Upper-layer protocol of the service id (host order) of a REQ or SIDR_REQ, e.g. "NVMe/RDMA". A port of the RDMA IP CM
 * service (annex A11) that is not well known gives "RDMA-CM application", any other unknown id NULL. */
const char *ulp_of_service(uint64_t service_id);

#endif
