/* layer 3 (storage): what host and target of NVMe over RDMA agree on. */
#ifndef RDMATRACE_GEN_STORAGE_NVME_H
#define RDMATRACE_GEN_STORAGE_NVME_H

#include "types.h"

#define NVME_ADMIN_QUEUE 32                /* entries of the admin queue, as Linux has it */
#define NVME_PAGE        4096              /* bytes that Identify returns */
#define NVME_DYNAMIC     0xffff            /* controller id in the Connect of the admin queue: any */
#define NVME_SGLS_KEYED  UINT32_C(0x5)     /* SGLS: SGLs, also keyed ones */
#define NVME_SGLS_OFFSET UINT32_C(1 << 20) /* SGLS: data in the capsule */

#endif
