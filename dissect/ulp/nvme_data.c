/* layer 1 (wire): NVMe over RDMA: the data of commands: Connect, Identify, the discovery log page. */
#include "dissect/ulp/nvme.h"
#include "dissect/ulp/upper_hdr.h"

#include "bits.h"

#define HDR(id, filter_name, title, protocol, bytes) UPPER_HDR(id, filter_name, title, protocol, "NVMe", bytes)

static const struct field nvme_connect_data_fields[] = {
    FIELD_AT(NULL, 0, 16, FT_BYTES, "nvme.fabrics.cmd.connect.data.hostid", "Host Identifier", "UUID of the host."),
    FIELD_LE(NULL, 16, 2, FT_UINT16, BASE_HEX, NULL, "nvme.fabrics.cmd.connect.data.cntrlid", "Controller ID",
             "0xffff: any, dynamic; 0xfffe: any, static."),
    FIELD_AT(NULL, 256, 256, FT_STRING, "nvme.fabrics.cmd.connect.data.subnqn", "Subsystem NQN",
             "Name of the subsystem."),
    FIELD_AT(NULL, 512, 256, FT_STRING, "nvme.fabrics.cmd.connect.data.hostnqn", "Host NQN", "Name of the host."),
};
HDR(nvme_connect_data, "rdma.nvme.connect.data", "NVM Express Fabrics RDMA (Connect data)", "nvme-rdma", 1024);

static const struct field nvme_id_ctrl_fields[] = {
    FIELD_LE(NULL, 0, 2, FT_UINT16, BASE_HEX, NULL, "nvme.cmd.identify.ctrl.vid", "PCI Vendor ID (VID)", "Vendor."),
    FIELD_LE(NULL, 2, 2, FT_UINT16, BASE_HEX, NULL, "nvme.cmd.identify.ctrl.ssvid", "PCI Subsystem Vendor ID (SSVID)",
             "Vendor of the subsystem."),
    FIELD_AT(NULL, 4, 20, FT_STRING, "nvme.cmd.identify.ctrl.sn", "Serial Number (SN)", "Padded with spaces."),
    FIELD_AT(NULL, 24, 40, FT_STRING, "nvme.cmd.identify.ctrl.mn", "Model Number (MN)", "Padded with spaces."),
    FIELD_AT(NULL, 64, 8, FT_BYTES, "nvme.cmd.identify.ctrl.fr", "Firmware Revision (FR)", "Firmware."),
    FIELD_LE(NULL, 77, 1, FT_UINT8, BASE_DEC, NULL, "nvme.cmd.identify.ctrl.mdts", "Maximum Data Transfer Size (MDTS)",
             "2^n pages; 0: no limit."),
    FIELD_LE(NULL, 78, 2, FT_UINT16, BASE_HEX, NULL, "nvme.cmd.identify.ctrl.cntlid", "Controller ID (CNTLID)",
             "Controller."),
    FIELD_LE(NULL, 80, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.identify.ctrl.ver", "Version (VER)",
             "Version of the specification: major (16 bits), minor (8), tertiary (8)."),
    FIELD_LE(NULL, 111, 1, FT_UINT8, BASE_HEX, NULL, "nvme.cmd.identify.ctrl.cntrltype", "Controller Type (CNTRLTYPE)",
             "1: an I/O controller."),
    FIELD_LE(NULL, 320, 2, FT_UINT16, BASE_DEC, NULL, "nvme.cmd.identify.ctrl.kas", "Keep Alive Support (KAS)",
             "Granularity of the keep alive timer, 100 ms."),
    FIELD_LE(NULL, 512, 1, FT_UINT8, BASE_HEX, NULL, "nvme.cmd.identify.ctrl.sqes",
             "Submission Queue Entry Size (SQES)", "2^n bytes: the least, bits 3:0, and the most."),
    FIELD_LE(NULL, 513, 1, FT_UINT8, BASE_HEX, NULL, "nvme.cmd.identify.ctrl.cqes",
             "Completion Queue Entry Size (CQES)", "Likewise."),
    FIELD_LE(NULL, 514, 2, FT_UINT16, BASE_DEC, NULL, "nvme.cmd.identify.ctrl.maxcmd",
             "Maximum Outstanding Commands (MAXCMD)", "Commands outstanding in a queue."),
    FIELD_LE(NULL, 516, 4, FT_UINT32, BASE_DEC, NULL, "nvme.cmd.identify.ctrl.nn", "Number of Namespaces (NN)",
             "The highest namespace id."),
    FIELD_LE(NULL, 525, 1, FT_UINT8, BASE_HEX, NULL, "nvme.cmd.identify.ctrl.vwc", "Volatile Write Cache (VWC)",
             "Bit 0: there is one, and Flush empties it."),
    FIELD_LE(NULL, 536, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.identify.ctrl.sgls", "SGL Support (SGLS)",
             "Bits 1:0: SGLs, bit 2: keyed ones, bit 20: data in the capsule."),
    FIELD_AT(NULL, 768, 256, FT_STRING, "nvme.cmd.identify.ctrl.subnqn", "NVM Subsystem NVMe Qualified Name (SUBNQN)",
             "Name of the subsystem."),
    FIELD_LE(NULL, 1792, 4, FT_UINT32, BASE_DEC, NULL, "rdma.nvme.ioccsz", "I/O Queue Command Capsule Size",
             "Units of 16 bytes."),
    FIELD_LE(NULL, 1796, 4, FT_UINT32, BASE_DEC, NULL, "rdma.nvme.iorcsz", "I/O Queue Response Capsule Size",
             "Units of 16 bytes."),
    FIELD_LE(NULL, 1800, 2, FT_UINT16, BASE_DEC, NULL, "rdma.nvme.icdoff", "In Capsule Data Offset",
             "Units of 16 bytes, from byte 64 of the capsule."),
    FIELD_LE(NULL, 1803, 1, FT_UINT8, BASE_DEC, NULL, "rdma.nvme.msdbd", "Maximum SGL Data Block Descriptors",
             "Descriptors in a capsule; 0: no limit."),
};
HDR(nvme_id_ctrl, "rdma.nvme.identify.ctrl", "NVM Express (Identify Controller)", "nvme", 4096);

static const struct field nvme_id_ns_fields[] = {
    FIELD_LE(NULL, 0, 8, FT_UINT64, BASE_DEC, NULL, "nvme.cmd.identify.ns.nsze", "Namespace Size (NSZE)",
             "Logical blocks."),
    FIELD_LE(NULL, 8, 8, FT_UINT64, BASE_HEX, NULL, "nvme.cmd.identify.ns.ncap", "Namespace Capacity (NCAP)",
             "Logical blocks that may be allocated."),
    FIELD_LE(NULL, 16, 8, FT_UINT64, BASE_HEX, NULL, "nvme.cmd.identify.ns.nuse", "Namespace Utilization (NUSE)",
             "Logical blocks allocated."),
    FIELD_LE(NULL, 25, 1, FT_UINT8, BASE_DEC, NULL, "nvme.cmd.identify.ns.nlbaf", "Number of LBA Formats (NLBAF)",
             "Formats minus one."),
    FIELD_LE(NULL, 26, 1, FT_UINT8, BASE_DEC, NULL, "nvme.cmd.identify.ns.flbas", "Formatted LBA Size (FLBAS)",
             "Which format is in use, bits 3:0."),
    FIELD_LE(NULL, 130, 1, FT_UINT8, BASE_DEC, NULL, "rdma.nvme.lbads", "LBA Data Size (LBADS)",
             "Format 0: 2^n bytes are a logical block."),
};
HDR(nvme_id_ns, "rdma.nvme.identify.ns", "NVM Express (Identify Namespace)", "nvme", 4096);

/* One entry; the layer repeats up to the first zero. */
static const struct field nvme_ns_list_fields[] = {
    FIELD_LE(NULL, 0, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.identify.nslist.nsid", "Namespace list element",
             "Namespace id."),
};
HDR(nvme_ns_list, "rdma.nvme.identify.nslist", "NVM Express (Active Namespace ID)", "nvme", 4);

static const struct field nvme_discovery_fields[] = {
    FIELD_LE(NULL, 0, 8, FT_UINT64, BASE_DEC, NULL, "rdma.nvme.discovery.genctr", "Generation Counter (GENCTR)",
             "Version of the page."),
    FIELD_LE(NULL, 8, 8, FT_UINT64, BASE_DEC, NULL, "rdma.nvme.discovery.numrec", "Number of Records (NUMREC)",
             "Entries that follow."),
    FIELD_LE(NULL, 16, 2, FT_UINT16, BASE_DEC, NULL, "rdma.nvme.discovery.recfmt", "Record Format (RECFMT)", "0."),
};
HDR(nvme_discovery, "rdma.nvme.discovery", "NVM Express (Discovery Log Page)", "nvme", 1024);

static const struct vname trtypes[] = {{1, "RDMA"}, {2, "Fibre Channel"}, {3, "TCP"}, {0xfe, "intra-host (loop)"}};
static const struct vdesc trtype_desc = VDESC_NAMES(trtypes);
static const struct vname adrfams[] = {{1, "IPv4"}, {2, "IPv6"}, {3, "InfiniBand"}, {4, "Fibre Channel"}};
static const struct vdesc adrfam_desc = VDESC_NAMES(adrfams);
static const struct vname subtypes[] = {{1, "referral"}, {2, "NVM subsystem"}, {3, "current discovery subsystem"}};
static const struct vdesc subtype_desc = VDESC_NAMES(subtypes);
static const struct vname prtypes[] = {{1, "none"}, {2, "InfiniBand"}, {3, "RoCE"}, {4, "RoCEv2"}, {5, "iWARP"}};
static const struct vdesc prtype_desc = VDESC_NAMES(prtypes);

static const struct vname qptypes[] = {{1, "connected"}, {2, "datagram"}};
static const struct vdesc qptype_desc = VDESC_NAMES(qptypes);
static const struct vname cms[] = {{1, "RDMA_CM"}};
static const struct vdesc cms_desc = VDESC_NAMES(cms);

static const struct field nvme_discovery_entry_fields[] = {
    FIELD_LE(NULL, 0, 1, FT_UINT8, BASE_DEC, &trtype_desc, "rdma.nvme.discovery.trtype", "Transport Type (TRTYPE)",
             "Transport."),
    FIELD_LE(NULL, 1, 1, FT_UINT8, BASE_DEC, &adrfam_desc, "rdma.nvme.discovery.adrfam", "Address Family (ADRFAM)",
             "Kind of the address."),
    FIELD_LE(NULL, 2, 1, FT_UINT8, BASE_DEC, &subtype_desc, "rdma.nvme.discovery.subtype", "Subsystem Type (SUBTYPE)",
             "What the entry describes."),
    FIELD_LE(NULL, 3, 1, FT_UINT8, BASE_HEX, NULL, "rdma.nvme.discovery.treq", "Transport Requirements (TREQ)",
             "Bits 1:0: secure channel."),
    FIELD_LE(NULL, 4, 2, FT_UINT16, BASE_DEC, NULL, "rdma.nvme.discovery.portid", "Port ID (PORTID)", "Port."),
    FIELD_LE(NULL, 6, 2, FT_UINT16, BASE_HEX, NULL, "rdma.nvme.discovery.cntlid", "Controller ID (CNTLID)",
             "0xffff: dynamic."),
    FIELD_LE(NULL, 8, 2, FT_UINT16, BASE_DEC, NULL, "rdma.nvme.discovery.asqsz", "Admin Max SQ Size (ASQSZ)",
             "Entries of the admin queue."),
    FIELD_AT(NULL, 32, 32, FT_STRING, "rdma.nvme.discovery.trsvcid", "Transport Service Identifier (TRSVCID)",
             "Port as text."),
    FIELD_AT(NULL, 256, 256, FT_STRING, "rdma.nvme.discovery.subnqn", "NVM Subsystem Qualified Name (SUBNQN)",
             "Name of the subsystem."),
    FIELD_AT(NULL, 512, 256, FT_STRING, "rdma.nvme.discovery.traddr", "Transport Address (TRADDR)", "Address as text."),
    FIELD_LE(NULL, 768, 1, FT_UINT8, BASE_DEC, &qptype_desc, "rdma.nvme.discovery.rdma_qptype", "RDMA QP Service Type",
             "Kind of queue pair."),
    FIELD_LE(NULL, 769, 1, FT_UINT8, BASE_DEC, &prtype_desc, "rdma.nvme.discovery.rdma_prtype", "RDMA Provider Type",
             "Kind of RDMA."),
    FIELD_LE(NULL, 770, 1, FT_UINT8, BASE_DEC, &cms_desc, "rdma.nvme.discovery.rdma_cms",
             "RDMA Connection Management Service", "How connections are made."),
};
HDR(nvme_discovery_entry, "rdma.nvme.discovery.entry", "NVM Express (Discovery Log Page Entry)", "nvme", 1024);

/* --- Layers ----------------------------------------------------------------------------------- */

#define LIST_MAX      16 /* entries of a list that become layers, at most */
#define DISCOVERY_LEN 1024

static void list_layers(struct pkt *p, const struct ulp_body *m)
{
    for (uint32_t i = 0; i < LIST_MAX && 4 * i + 4 <= m->len && load_le32(m->b + 4 * i); i++)
        ulp_layer(p, &nvme_ns_list_hdr, m, 4 * i, 4);
}

/* The log page from byte `from` on; a host may read its header first. */
static void discovery_layers(struct pkt *p, const struct ulp_body *m, uint64_t from)
{
    uint32_t at = 0;

    if (from % DISCOVERY_LEN)
        return;
    if (from == 0) {
        ulp_layer(p, &nvme_discovery_hdr, m, 0, DISCOVERY_LEN);
        at = DISCOVERY_LEN;
    }
    for (unsigned i = 0; i < LIST_MAX && at < m->len; i++, at += DISCOVERY_LEN)
        ulp_layer(p, &nvme_discovery_entry_hdr, m, at, DISCOVERY_LEN);
}

static void identify_layers(struct pkt *p, const struct ulp_body *m, unsigned cns)
{
    if (cns == 0)
        ulp_layer(p, &nvme_id_ns_hdr, m, 0, 4096);
    else if (cns == 1)
        ulp_layer(p, &nvme_id_ctrl_hdr, m, 0, 4096);
    else if (cns == 2)
        list_layers(p, m);
}

void nvme_data_layers(struct pkt *p, const struct ulp_body *m, const struct nvme_cmd *c, bool admin)
{
    if (c->opc == NVME_FABRICS) {
        if (c->fctype == NVME_FCTYPE_CONNECT)
            ulp_layer(p, &nvme_connect_data_hdr, m, 0, 1024);
    } else if (admin && c->opc == NVME_ADMIN_IDENTIFY) {
        identify_layers(p, m, c->cdw[0] & 0xff);
    } else if (admin && c->opc == NVME_ADMIN_GET_LOG && (c->cdw[0] & 0xff) == NVME_LOG_DISCOVERY) {
        discovery_layers(p, m, (uint64_t)c->cdw[3] << 32 | c->cdw[2]);
    }
}
