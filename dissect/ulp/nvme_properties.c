/* layer 1 (wire): NVMe over RDMA: the properties of a controller that commands set and get. */
#include "dissect/ulp/nvme_rows.h"

#define CC   "nvme.fabrics.prop_get_set.cc"
#define CSTS "nvme.fabrics.prop_get_set.csts"
#define CAP  "nvme.fabrics.prop_get.ccap"
#define VS   "nvme.fabrics.prop_get.vs"

static const struct field nvme_cc_fields[] = {
    FIELD_LE(NULL, 0, 4, FT_UINT32, BASE_HEX, NULL, CC, "Controller Configuration", "The property CC."),
    LE_BITS(NULL, 0, 4, 0, 1, FT_UINT32, BASE_HEX, NULL, CC ".en", "Enable", "1: the controller is enabled."),
    LE_BITS(NULL, 0, 4, 1, 3, FT_UINT32, BASE_HEX, NULL, CC ".rsvd0", "Reserved", "Reserved."),
    LE_BITS(NULL, 0, 4, 24, 8, FT_UINT32, BASE_HEX, NULL, CC ".rsvd1", "Reserved", "Reserved."),
    LE_BITS(NULL, 0, 4, 4, 3, FT_UINT32, BASE_HEX, NULL, CC ".css", "IO Command Set Selected", "Command set."),
    LE_BITS(NULL, 0, 4, 7, 4, FT_UINT32, BASE_DEC, NULL, CC ".mps", "Memory Page Size", "2^(12 + n) bytes."),
    LE_BITS(NULL, 0, 4, 11, 3, FT_UINT32, BASE_HEX, NULL, CC ".ams", "Arbitration Mechanism Selected", "Arbitration."),
    LE_BITS(NULL, 0, 4, 14, 2, FT_UINT32, BASE_HEX, NULL, CC ".shn", "Shutdown Notification",
            "1 normal, 2 abrupt shutdown."),
    LE_BITS(NULL, 0, 4, 16, 4, FT_UINT32, BASE_DEC, NULL, CC ".iosqes", "IO Submission Queue Entry Size", "2^n bytes."),
    LE_BITS(NULL, 0, 4, 20, 4, FT_UINT32, BASE_DEC, NULL, CC ".iocqes", "IO Completion Queue Entry Size", "2^n bytes."),
};
HDR(nvme_cc, "rdma.nvme.cc", "NVM Express (property CC)", "nvme-rdma", 4);

static const struct field nvme_csts_fields[] = {
    FIELD_LE(NULL, 0, 4, FT_UINT32, BASE_HEX, NULL, CSTS, "Controller Status", "The property CSTS."),
    LE_BITS(NULL, 0, 4, 0, 1, FT_UINT32, BASE_HEX, NULL, CSTS ".rdy", "Ready", "1: the controller is ready."),
    LE_BITS(NULL, 0, 4, 6, 26, FT_UINT32, BASE_HEX, NULL, CSTS ".rsvd", "Reserved", "Reserved."),
    LE_BITS(NULL, 0, 4, 1, 1, FT_UINT32, BASE_HEX, NULL, CSTS ".cfs", "Controller Fatal Status", "1: a fatal error."),
    LE_BITS(NULL, 0, 4, 2, 2, FT_UINT32, BASE_HEX, NULL, CSTS ".shst", "Shutdown Status",
            "0 none, 1 shutting down, 2 complete."),
    LE_BITS(NULL, 0, 4, 4, 1, FT_UINT32, BASE_HEX, NULL, CSTS ".nssro", "NVM Subsystem Reset Occurred", "1: it was."),
    LE_BITS(NULL, 0, 4, 5, 1, FT_UINT32, BASE_HEX, NULL, CSTS ".pp", "Processing Paused", "1: it is."),
};
HDR(nvme_csts, "rdma.nvme.csts", "NVM Express (property CSTS)", "nvme-rdma", 4);

static const struct field nvme_cap_fields[] = {
    FIELD_LE(NULL, 0, 8, FT_UINT64, BASE_HEX, NULL, CAP, "Controller Capabilities", "The property CAP."),
    LE_BITS(NULL, 0, 8, 0, 16, FT_UINT64, BASE_DEC, NULL, CAP ".mqes", "Maximum Queue Entries Supported",
            "Entries minus one."),
    LE_BITS(NULL, 0, 8, 16, 1, FT_BOOL, BASE_NONE, NULL, CAP ".cqr", "Contiguous Queues Required", "Queues."),
    LE_BITS(NULL, 0, 8, 17, 1, FT_BOOL, BASE_NONE, NULL, CAP ".ams.wrr",
            "Weighted Round Robin with Urgent Priority Class", "1: this arbitration is supported."),
    LE_BITS(NULL, 0, 8, 18, 1, FT_BOOL, BASE_NONE, NULL, CAP ".ams.vs", "Vendor Specific Arbitration",
            "1: such arbitration is supported."),
    LE_BITS(NULL, 0, 8, 19, 5, FT_UINT64, BASE_HEX, NULL, CAP ".rsvd0", "Reserved", "Reserved."),
    LE_BITS(NULL, 0, 8, 32, 4, FT_UINT64, BASE_DEC, NULL, CAP ".dstrd", "Doorbell Stride", "2^(2 + n) bytes."),
    LE_BITS(NULL, 0, 8, 36, 1, FT_BOOL, BASE_NONE, NULL, CAP ".nssrs", "NVM Subsystem Reset Supported", "1: yes."),
    LE_BITS(NULL, 0, 8, 45, 1, FT_BOOL, BASE_NONE, NULL, CAP ".bps", "Boot Partition Support", "1: yes."),
    LE_BITS(NULL, 0, 8, 46, 2, FT_UINT64, BASE_HEX, NULL, CAP ".rsdv1", "Reserved", "Reserved."),
    LE_BITS(NULL, 0, 8, 56, 1, FT_BOOL, BASE_NONE, NULL, CAP ".pmrs", "Persistent Memory Region Supported", "1: yes."),
    LE_BITS(NULL, 0, 8, 57, 1, FT_BOOL, BASE_NONE, NULL, CAP ".cmbs", "Controller Memory Buffer Supported", "1: yes."),
    LE_BITS(NULL, 0, 8, 58, 6, FT_UINT64, BASE_HEX, NULL, CAP ".rsvd2", "Reserved", "Reserved."),
    LE_BITS(NULL, 0, 8, 24, 8, FT_UINT64, BASE_DEC, NULL, CAP ".to", "Timeout (to ready status)", "Units of 500 ms."),
    LE_BITS(NULL, 0, 8, 37, 8, FT_UINT64, BASE_DEC, NULL, CAP ".css", "Command Sets Supported", "A bit for each."),
    LE_BITS(NULL, 0, 8, 48, 4, FT_UINT64, BASE_DEC, NULL, CAP ".mpsmin", "Memory Page Size Minimum",
            "2^(12 + n) bytes."),
    LE_BITS(NULL, 0, 8, 52, 4, FT_UINT64, BASE_DEC, NULL, CAP ".mpsmax", "Memory Page Size Maximum",
            "2^(12 + n) bytes."),
};
HDR(nvme_cap, "rdma.nvme.cap", "NVM Express (property CAP)", "nvme-rdma", 8);

static const struct field nvme_vs_fields[] = {
    FIELD_LE(NULL, 0, 4, FT_UINT32, BASE_HEX, NULL, VS, "Version", "The property VS."),
    LE_BITS(NULL, 0, 4, 0, 8, FT_UINT32, BASE_DEC, NULL, VS ".ter", "Tertiary Version", "Third number."),
    LE_BITS(NULL, 0, 4, 8, 8, FT_UINT32, BASE_DEC, NULL, VS ".mnr", "Minor Version", "Second number."),
    LE_BITS(NULL, 0, 4, 16, 16, FT_UINT32, BASE_DEC, NULL, VS ".mjr", "Major Version", "First number."),
};
HDR(nvme_vs, "rdma.nvme.vs", "NVM Express (property VS)", "nvme-rdma", 4);

/* What follows a property of 4 bytes in a completion. */
static const struct field nvme_short_fields[] = {
    FIELD_LE(NULL, 0, 4, FT_UINT32, BASE_HEX, NULL, "nvme.fabrics.prop_get_set.data.rsvd", "Reserved", "Reserved."),
};
HDR(nvme_short, "rdma.nvme.property.reserved", "NVM Express (behind a property)", "nvme-rdma", 4);
static const struct field nvme_other_fields[] = {
    FIELD_LE(NULL, 0, 8, FT_UINT64, BASE_HEX, NULL, "nvme.fabrics.prop_get_set.data.8B", "Value", "Its value."),
};
HDR(nvme_other, "rdma.nvme.property", "NVM Express (another property)", "nvme-rdma", 8);

unsigned nvme_property_layer(struct pkt *p, const struct ulp_body *m, uint32_t at, uint32_t offset)
{
    static const struct {
        uint32_t offset;
        const struct hdr *hdr;
    } known[] = {{NVME_PROP_CAP, &nvme_cap_hdr},
                 {NVME_PROP_VS, &nvme_vs_hdr},
                 {NVME_PROP_CC, &nvme_cc_hdr},
                 {NVME_PROP_CSTS, &nvme_csts_hdr}};

    for (unsigned i = 0; i < ARRAY_LEN(known); i++)
        if (known[i].offset == offset) {
            ulp_layer(p, known[i].hdr, m, at, known[i].hdr->len);
            return known[i].hdr->len;
        }
    return 0;
}
