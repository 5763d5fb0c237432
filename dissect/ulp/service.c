/* layer 1 (wire): upper-layer protocols by CM service id. */
#include "dissect/ulp/service.h"

#include "dissect/mad/cm.h"

const char *ulp_of_service(uint64_t service_id)
{
    /* Ports of the RDMA IP CM service, in any port space; from IANA's registry and the sources of the programs. */
    static const struct vname ports[] = {
        {987, "LNet"},  {3260, "iSER"},      {4420, "NVMe/RDMA"}, {5445, "SMB Direct"},
        {18634, "RDS"}, {20049, "NFS/RDMA"}, {7174, "rping"},     {7471, "RDMA-CM test"},
    };
    const char *name;

    if (service_id >> 56 == 0x10) /* RFC 4755; kernel ipoib_cm.c */
        return "IPoIB connected mode";
    if (!cm_service_is_ip(service_id))
        return NULL;
    name = vname_find(ports, ARRAY_LEN(ports), service_id & 0xffff);
    return name ? name : "RDMA-CM application";
}
