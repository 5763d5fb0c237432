/* layer 1 (wire): which upper-layer protocol a service id of the connection manager announces. */
#ifndef RDMATRACE_DISSECT_ULP_SERVICE_H
#define RDMATRACE_DISSECT_ULP_SERVICE_H

#include <stdint.h>

/* Upper-layer protocol that the service id of a REQ or SIDR_REQ announces, e.g. "NVMe/RDMA"; NULL if the id says
 * nothing. Ports of the RDMA IP CM service (annex A11) are looked up in a table; one that is not there is an "RDMA-CM
 * application". */
const char *ulp_of_service(uint64_t service_id);

#endif
