/* layer 1 (wire): upper-layer protocols by what CM says of a connection. */
#include "dissect/ulp/service.h"

#include "dissect/file/lnet.h"
#include "dissect/file/rpcrdma.h"
#include "dissect/mad/cm.h"
#include "dissect/socket/rds.h"
#include "dissect/ulp/iser.h"
#include "dissect/ulp/nvme.h"
#include "dissect/ulp/rtrs.h"
#include "dissect/ulp/srp.h"

const char ulp_ipoib_cm[] = "IPoIB connected mode";

#define APPLICATION "RDMA-CM application"

const char *ulp_of_service(uint64_t service_id)
{
    /* Ports of the RDMA IP CM service, in any port space; from IANA's registry and the sources of the programs. */
    static const struct vname ports[] = {
        {987, "LNet"},        {3260, "iSER"},  {4420, "NVMe/RDMA"},    {8009, "NVMe/RDMA"}, {445, "SMB Direct"},
        {5445, "SMB Direct"}, {18634, "RDS"},  {16385, "RDS"},         {20049, "NFS/RDMA"}, {1234, "RTRS"},
        {5640, "9P/RDMA"},    {7174, "rping"}, {7471, "RDMA-CM test"},
    };
    const char *name;

    if (service_id >> 56 == 0x10) /* RFC 4755; kernel ipoib_cm.c */
        return ulp_ipoib_cm;
    if (service_id >> 16 == 1) /* annex A4; RDMA_PS_SDP of the kernel's former rdma_cm.h */
        return "SDP";
    if (!cm_service_is_ip(service_id))
        return NULL;
    name = vname_find(ports, ARRAY_LEN(ports), service_id & 0xffff);
    return name ? name : APPLICATION;
}

/* What private data say of a protocol. */
enum proof {
    PROOF_MAGIC, /* they identify it on any port */
    PROOF_SHAPE, /* likewise, by lengths that fit and bytes that are zero */
    PROOF_PORT,  /* only the port identifies it; they are shown if they fit */
};
static const struct {
    const char *name;
    bool (*fits)(const uint8_t *b, uint32_t len);
    enum proof proof;
} privates[] = {
    {"NFS/RDMA", rpcrdma_private_fits, PROOF_MAGIC}, {"RTRS", rtrs_private_fits, PROOF_MAGIC},
    {"NVMe/RDMA", nvme_private_fits, PROOF_SHAPE},   {"SRP", srp_private_fits, PROOF_SHAPE},
    {"LNet", lnet_private_fits, PROOF_MAGIC},        {"RDS", rds_private_fits, PROOF_PORT},
    {"iSER", iser_private_fits, PROOF_PORT},
};

/* Whether private data that fit the protocol are believed at a port of `name`. */
static bool is_believed(enum proof proof, const char *protocol, const char *name)
{
    return proof != PROOF_PORT || (name && strcmp(name, protocol) == 0);
}

struct ulp_named ulp_of_req(uint64_t service_id, const uint8_t *b, uint32_t len)
{
    const char *name = ulp_of_service(service_id);
    bool vague = name && strcmp(name, APPLICATION) == 0;

    for (unsigned i = 0; i < ARRAY_LEN(privates); i++)
        if (privates[i].fits(b, len) && is_believed(privates[i].proof, privates[i].name, name))
            return (struct ulp_named){
                .name = privates[i].name, .by_private = privates[i].proof != PROOF_PORT, .fits = true};
    return (struct ulp_named){.name = name, .vague = vague};
}
