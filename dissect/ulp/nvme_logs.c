/* layer 1 (wire): NVMe over RDMA: log pages: errors, health, firmware, namespaces, effects, access, discovery. */
#include "dissect/ulp/nvme_rows.h"

#include "bits.h"

static const struct vname trtype_names[] = {
    {0, "none"}, {1, "RDMA"}, {2, "Fibre Channel"}, {3, "TCP"}, {0xfe, "intra-host (loop)"}};
static const struct vdesc trtype_desc = VDESC_NAMES(trtype_names);
static const struct vname adrfam_names[] = {{0, "none"},       {1, "IPv4"},          {2, "IPv6"},
                                            {3, "InfiniBand"}, {4, "Fibre Channel"}, {0xfe, "intra-host (loop)"}};
static const struct vdesc adrfam_desc = VDESC_NAMES(adrfam_names);
static const struct vname subtype_names[] = {{1, "referral"}, {2, "NVM subsystem"}, {3, "current discovery subsystem"}};
static const struct vdesc subtype_desc = VDESC_NAMES(subtype_names);
static const struct vname prtype_names[] = {{1, "none"}, {2, "InfiniBand"}, {3, "RoCE"}, {4, "RoCEv2"}, {5, "iWARP"}};
static const struct vdesc prtype_desc = VDESC_NAMES(prtype_names);
static const struct vname qptype_names[] = {{1, "connected"}, {2, "datagram"}};
static const struct vdesc qptype_desc = VDESC_NAMES(qptype_names);
static const struct vname cms_names[] = {{1, "RDMA_CM"}};
static const struct vdesc cms_desc = VDESC_NAMES(cms_names);
static const struct vname effects_cse_names[] = {
    {0, "no restriction"}, {1, "no other command to its namespace"}, {2, "no other command to any namespace"}};
static const struct vdesc effects_cse_desc = VDESC_NAMES(effects_cse_names);
static const struct vname ana_state_names[] = {
    {1, "optimized"}, {2, "non-optimized"}, {3, "inaccessible"}, {4, "persistent loss"}, {0xf, "change"}};
static const struct vdesc ana_state_desc = VDESC_NAMES(ana_state_names);

/* An entry. */
#define NAME "nvme.cmd.get_logpage.errinf."
static const struct field nvme_errinf_fields[] = {
    NUM(0, 8, FT_UINT64, BASE_DEC, NULL, "errcnt", "Error Count", "A number of each error; 0: the entry is not used."),
    NUM(8, 2, FT_UINT16, BASE_DEC, NULL, "sqid", "Submission Queue ID", "Submission Queue ID."),
    NUM(10, 2, FT_UINT16, BASE_HEX, NULL, "cid", "Command ID", "Command ID."),
    NUM(12, 2, FT_UINT16, BASE_HEX, NULL, "sf", "Status Field", "Status Field."),
    BITS(12, 2, 1, 15, FT_UINT16, BASE_HEX, NULL, "sf.val", "Status Field Value", "Status of the command."),
    BITS(12, 2, 0, 1, FT_UINT16, BASE_HEX, NULL, "sf.ptag", "Status Field Phase Tag", "Phase."),
    NUM(14, 2, FT_UINT16, BASE_HEX, NULL, "pel", "Parameter Error Location", "Parameter Error Location."),
    BITS(14, 2, 0, 8, FT_UINT16, BASE_DEC, NULL, "pel.bytee", "Byte in command that contained the error",
         "Byte of the command."),
    BITS(14, 2, 8, 3, FT_UINT16, BASE_DEC, NULL, "pel.bite", "Bit in command that contained the error",
         "Bit of that byte."),
    BITS(14, 2, 11, 5, FT_UINT16, BASE_DEC, NULL, "pel.rsvd", "Reserved", "Reserved."),
    NUM(16, 8, FT_UINT64, BASE_HEX, NULL, "lba", "LBA", "LBA."),
    NUM(24, 4, FT_UINT16, BASE_HEX, NULL, "nsid", "Namespace ID", "Namespace."),
    NUM(28, 1, FT_UINT8, BASE_HEX, NULL, "vsi", "Vendor Specific Information Available",
        "Log page with more about the error; 0: none."),
    NUM(29, 1, FT_UINT8, BASE_HEX, &trtype_desc, "trype", "Transport Type", "Transport Type."),
    RSVD(30, 2, 0, 0, 16, "rsvd0"),
    NUM(32, 8, FT_UINT64, BASE_HEX, NULL, "csi", "Command Specific Information", "Depends on the command."),
    NUM(40, 2, FT_UINT16, BASE_HEX, NULL, "tsi", "Transport Type Specific Information", "Depends on the transport."),
    PAD(42, 22, "rsvd1"),
};
#undef NAME
HDR(nvme_errinf, "rdma.nvme.log.errinf", "NVM Express (Error Information)", "nvme", 64);

#define NAME "nvme.cmd.get_logpage.smart."
static const struct field nvme_smart_fields[] = {
    NUM(0, 1, FT_UINT8, BASE_HEX, NULL, "cw", "Critical Warning", "Critical Warning."),
    FLAG(0, 1, 0, "cw.sc", "Spare Capacity Below Threshold"),
    FLAG(0, 1, 1, "cw.temp", "Temperature Crossed Threshold"),
    FLAG(0, 1, 2, "cw.sme", "Reliability Degraded due to Significant Media Errors"),
    FLAG(0, 1, 3, "cw.ro", "Media Placed in RO State"),
    FLAG(0, 1, 4, "cw.bdf", "Volatile Memory Backup Device Has Failed"),
    FLAG(0, 1, 5, "cw.mrro", "Persistent Memory Region Placed in RO State"),
    RSVD(0, 1, 5, 3, 8, "cw.rsvd"),
    NUM(1, 2, FT_UINT16, BASE_DEC, NULL, "ct", "Composite Temperature (degrees K)", "Kelvin."),
    NUM(3, 1, FT_UINT8, BASE_DEC, NULL, "asc", "Available Spare Capacity (%)", "Percent."),
    NUM(4, 1, FT_UINT8, BASE_DEC, NULL, "ast", "Available Spare Capacity Threshold (%)",
        "Percent; a warning below it."),
    NUM(5, 1, FT_UINT8, BASE_DEC, NULL, "lae", "Life Age Estimate (%)", "Percent used; may exceed 100."),
    NUM(6, 1, FT_UINT8, BASE_HEX, NULL, "egcws", "Endurance Group Critical Warning Summary",
        "Endurance Group Critical Warning Summary."),
    FLAG(6, 1, 0, "egcws.sc", "Spare Capacity of Endurance Group Below Threshold"),
    BITS(6, 1, 1, 1, FT_BOOL, BASE_NONE, NULL, "egcws.rsvd0", "Reserved", "Reserved."),
    FLAG(6, 1, 2, "egcws.me", "Reliability of Endurance Group Degraded due to Media Errors"),
    FLAG(6, 1, 3, "egcws.ro", "A Namespace in Endurance Group Placed in RO State"),
    RSVD(6, 1, 4, 4, 8, "egcws.rsvd1"),
    PAD(7, 25, "rsvd0"),
    RAW(32, 16, FT_BYTES, "dur", "Data Units Read", "Units of 512,000 bytes."),
    RAW(48, 16, FT_BYTES, "duw", "Data Units Written", "Units of 512,000 bytes."),
    RAW(64, 16, FT_BYTES, "hrc", "Host Read Commands", "Host Read Commands."),
    RAW(80, 16, FT_BYTES, "hwc", "Host Write Commands", "Host Write Commands."),
    RAW(96, 16, FT_BYTES, "cbt", "Controller Busy Time (minutes)", "Minutes."),
    RAW(112, 16, FT_BYTES, "pc", "Power Cycles", "Power Cycles."),
    RAW(128, 16, FT_BYTES, "poh", "Power On Hours", "Power On Hours."),
    RAW(144, 16, FT_BYTES, "us", "Unsafe Shutdowns", "Unsafe Shutdowns."),
    RAW(160, 16, FT_BYTES, "mie", "Media Integrity Errors", "Media Integrity Errors."),
    RAW(176, 16, FT_BYTES, "ele", "Number of Error Information Log Entries",
        "Number of Error Information Log Entries."),
    NUM(192, 4, FT_UINT32, BASE_DEC, NULL, "wctt", "Warning Composite Temperature Time (minutes)", "Minutes."),
    NUM(196, 4, FT_UINT32, BASE_DEC, NULL, "cctt", "Critical Composite Temperature Time (minutes)", "Minutes."),
    RAW(200, 16, FT_BYTES, "ts", "Temperature Sensors", "Temperature Sensors."),
    NUM(200, 2, FT_UINT16, BASE_DEC, NULL, "ts.s1", "Temperature Sensor 1 (degrees K)", "Temperature Sensor 1."),
    NUM(202, 2, FT_UINT16, BASE_DEC, NULL, "ts.s2", "Temperature Sensor 2 (degrees K)", "Temperature Sensor 2."),
    NUM(204, 2, FT_UINT16, BASE_DEC, NULL, "ts.s3", "Temperature Sensor 3 (degrees K)", "Temperature Sensor 3."),
    NUM(206, 2, FT_UINT16, BASE_DEC, NULL, "ts.s4", "Temperature Sensor 4 (degrees K)", "Temperature Sensor 4."),
    NUM(208, 2, FT_UINT16, BASE_DEC, NULL, "ts.s5", "Temperature Sensor 5 (degrees K)", "Temperature Sensor 5."),
    NUM(210, 2, FT_UINT16, BASE_DEC, NULL, "ts.s6", "Temperature Sensor 6 (degrees K)", "Temperature Sensor 6."),
    NUM(212, 2, FT_UINT16, BASE_DEC, NULL, "ts.s7", "Temperature Sensor 7 (degrees K)", "Temperature Sensor 7."),
    NUM(214, 2, FT_UINT16, BASE_DEC, NULL, "ts.s8", "Temperature Sensor 8 (degrees K)", "Temperature Sensor 8."),
    NUM(216, 4, FT_UINT32, BASE_DEC, NULL, "tmt1c", "Thermal Management Temperature 1 Transition Count",
        "Thermal Management Temperature 1 Transition Count."),
    NUM(220, 4, FT_UINT32, BASE_DEC, NULL, "tmt2c", "Thermal Management Temperature 2 Transition Count",
        "Thermal Management Temperature 2 Transition Count."),
    NUM(224, 4, FT_UINT32, BASE_DEC, NULL, "tmt1t", "Total Time For Thermal Management Temperature 1 (seconds)",
        "Seconds."),
    NUM(228, 4, FT_UINT32, BASE_DEC, NULL, "tmt2t", "Total Time For Thermal Management Temperature 2 (seconds)",
        "Seconds."),
    PAD(232, 280, "rsvd1"),
};
#undef NAME
HDR(nvme_smart, "rdma.nvme.log.smart", "NVM Express (SMART / Health Information)", "nvme", 512);

#define NAME "nvme.cmd.get_logpage.fw_slot."
static const struct field nvme_fw_slot_fields[] = {
    NUM(0, 1, FT_UINT8, BASE_HEX, NULL, "afi", "Active Firmware Info (AFI)", "Active Firmware Info."),
    BITS(0, 1, 0, 3, FT_UINT8, BASE_HEX, NULL, "afi.afs", "Active Firmware Slot", "Slot of the firmware that runs."),
    RSVD(0, 1, 3, 1, 8, "afi.rsvd0"),
    BITS(0, 1, 4, 3, FT_UINT8, BASE_HEX, NULL, "afi.nfs", "Next Reset Firmware Slot",
         "Slot of the firmware that runs after a reset."),
    RSVD(0, 1, 7, 1, 8, "afi.rsvd1"),
    RSVD(1, 7, 0, 0, 64, "rsvd0"),
    RAW(8, 56, FT_BYTES, "frs", "Firmware Slot Revisions", "Firmware Slot Revisions."),
    NUM(8, 8, FT_UINT64, BASE_HEX, NULL, "frs.s1", "Firmware Revision for Slot 1", "Firmware Revision for Slot 1."),
    NUM(16, 8, FT_UINT64, BASE_HEX, NULL, "frs.s2", "Firmware Revision for Slot 2", "Firmware Revision for Slot 2."),
    NUM(24, 8, FT_UINT64, BASE_HEX, NULL, "frs.s3", "Firmware Revision for Slot 3", "Firmware Revision for Slot 3."),
    NUM(32, 8, FT_UINT64, BASE_HEX, NULL, "frs.s4", "Firmware Revision for Slot 4", "Firmware Revision for Slot 4."),
    NUM(40, 8, FT_UINT64, BASE_HEX, NULL, "frs.s5", "Firmware Revision for Slot 5", "Firmware Revision for Slot 5."),
    NUM(48, 8, FT_UINT64, BASE_HEX, NULL, "frs.s6", "Firmware Revision for Slot 6", "Firmware Revision for Slot 6."),
    NUM(56, 8, FT_UINT64, BASE_HEX, NULL, "frs.s7", "Firmware Revision for Slot 7", "Firmware Revision for Slot 7."),
    PAD(64, 448, "rsvd1"),
};
#undef NAME
HDR(nvme_fw_slot, "rdma.nvme.log.fw_slot", "NVM Express (Firmware Slot Information)", "nvme", 512);

/* An entry; the layer repeats up to the first zero. */
#define NAME "nvme.cmd.get_logpage."
static const struct field nvme_changed_ns_fields[] = {
    NUM(0, 4, FT_UINT32, BASE_HEX, NULL, "changed_nslist", "Changed Namespace",
        "Namespace whose data changed; 0xffffffff: more than fit."),
};
#undef NAME
HDR(nvme_changed_ns, "rdma.nvme.log.changed_ns", "NVM Express (Changed Namespace)", "nvme", 4);

/* What an entry is of: its place in the page, which the layer before tells. */
static bool effects_opcode_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    const struct layer *page = l;

    while (page > p->layers && page->hdr != &nvme_effects_page_hdr)
        page--;
    v->u = (l->off - page->off) / 4;
    return page->hdr == &nvme_effects_page_hdr;
}
static bool effects_is_io_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    bool known = effects_opcode_get(p, l, v);

    v->u = v->u >= 256;
    return known;
}
static bool effects_of_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    bool known = effects_opcode_get(p, l, v);

    v->u &= 255;
    return known;
}
static const struct field nvme_effects_page_fields[] = {
    FIELD_AT(NULL, 0, 0, FT_BYTES, "rdma.nvme.log.effects.page", "Page",
             "Four bytes for each opcode: admin commands, then those of I/O queues."),
};
HDR(nvme_effects_page, "rdma.nvme.log.effects", "NVM Express (Commands Supported and Effects)", "nvme", 0);

/* A command that is supported. */
#define NAME "nvme.cmd.get_logpage.cmd_and_eff."
static const struct field nvme_effects_fields[] = {
    RAW(0, 4, FT_BYTES, "cs", "Command Supported Entry", "Command Supported Entry."),
    NUM(0, 4, FT_UINT32, BASE_HEX, NULL, "cseds", "Commands Supported and Effects Data Structure",
        "Commands Supported and Effects Data Structure."),
    FLAG(0, 4, 0, "cseds.csupp", "Command Supported (CSUPP)"),
    FLAG(0, 4, 1, "cseds.lbcc", "Logical Block Content Change (LBCC)"),
    FLAG(0, 4, 2, "cseds.ncc", "Namespace Capability Change (NCC)"),
    FLAG(0, 4, 3, "cseds.nic", "Namespace Inventory Change (NIC)"),
    FLAG(0, 4, 4, "cseds.ccc", "Controller Capability Change (CCC)"),
    RSVD(0, 4, 5, 11, 32, "cseds.rsvd0"),
    BITS(0, 4, 16, 3, FT_UINT32, BASE_HEX, &effects_cse_desc, "cseds.cse", "Command Submission and Execution (CSE)",
         "Command Submission and Execution."),
    FLAG(0, 4, 19, "cseds.uss", "UUID Selection Supported"),
    RSVD(0, 4, 20, 12, 32, "cseds.rsvd1"),
    FIELD_GET(effects_is_io_get, FT_BOOL, BASE_NONE, NULL, 0, "rdma.nvme.log.effects.io", "I/O Command",
              "1: of I/O queues."),
    FIELD_GET(effects_of_get, FT_UINT8, BASE_HEX, NULL, 0, "rdma.nvme.log.effects.opcode", "Opcode",
              "Opcode of the command."),
};
#undef NAME
HDR(nvme_effects, "rdma.nvme.log.effects.command", "NVM Express (Effects of a Command)", "nvme", 4);

#define NAME "nvme.cmd.get_logpage.ana."
static const struct field nvme_ana_fields[] = {
    NUM(0, 8, FT_UINT64, BASE_DEC, NULL, "chcnt", "Change Count", "Changes so far."),
    NUM(8, 2, FT_UINT16, BASE_DEC, NULL, "ngd", "Number of ANA Group Descriptors", "Groups that follow."),
    RSVD(10, 6, 0, 0, 64, "rsvd"),
};
#undef NAME
HDR(nvme_ana, "rdma.nvme.log.ana", "NVM Express (Asymmetric Namespace Access)", "nvme", 16);

/* A group; its namespaces follow. */
#define NAME "nvme.cmd.get_logpage.ana."
static const struct field nvme_ana_group_fields[] = {
    NUM(0, 4, FT_UINT32, BASE_HEX, NULL, "grp.id", "ANA Group ID", "ANA Group ID."),
    NUM(4, 4, FT_UINT32, BASE_DEC, NULL, "grp.nns", "Number of NSID Values", "Namespaces of the group."),
    NUM(8, 8, FT_UINT64, BASE_DEC, NULL, "grp.chcnt", "Change Count", "Changes so far."),
    BITS(16, 1, 0, 4, FT_UINT8, BASE_HEX, NULL, "grp.anas", "ANA State", "ANA State."),
    BITS(16, 1, 0, 4, FT_UINT8, BASE_HEX, &ana_state_desc, "grp.anas.state", "Asymmetric Namespace Access State",
         "Asymmetric Namespace Access State."),
    RSVD(16, 1, 4, 4, 8, "grp.anas.rsvd"),
    PAD(17, 15, "grp.rsvd"),
};
#undef NAME
HDR(nvme_ana_group, "rdma.nvme.log.ana_group", "NVM Express (ANA Group)", "nvme", 32);

/* One of them. */
#define NAME "nvme.cmd.get_logpage.ana."
static const struct field nvme_ana_ns_fields[] = {
    NUM(0, 4, FT_UINT32, BASE_HEX, NULL, "grp.nsid", "Namespace Identifier", "Namespace."),
};
#undef NAME
HDR(nvme_ana_ns, "rdma.nvme.log.ana_ns", "NVM Express (Namespace of an ANA Group)", "nvme", 4);

#define NAME "nvme.cmd.get_logpage.identify."
static const struct field nvme_discovery_fields[] = {
    NUM(0, 8, FT_UINT64, BASE_DEC, NULL, "genctr", "Generation Counter (GENCTR)", "Version of the page."),
    NUM(8, 8, FT_UINT64, BASE_DEC, NULL, "numrec", "Number of Records (NUMREC)", "Entries that follow."),
    NUM(16, 2, FT_UINT16, BASE_DEC, NULL, "recfmt", "Record Format (RECFMT)", "Record Format."),
    PAD(18, 1006, "rsvd"),
};
#undef NAME
HDR(nvme_discovery, "rdma.nvme.discovery", "NVM Express (Discovery Log Page)", "nvme", 1024);

static bool is_rdma_entry(const uint8_t *p, uint32_t len)
{
    return len > 0 && p[0] == 1;
}
static bool is_tcp_entry(const uint8_t *p, uint32_t len)
{
    return len > 0 && p[0] == 3;
}
#define NAME "nvme.cmd.get_logpage.identify."
static const struct field nvme_discovery_entry_fields[] = {
    RAW(0, 1024, FT_BYTES, "rcrd", "Discovery Log Entry", "Discovery Log Entry."),
    NUM(0, 1, FT_UINT8, BASE_HEX, &trtype_desc, "rcrd.trtype", "Transport Type (TRTYPE)", "Transport Type."),
    NUM(1, 1, FT_UINT8, BASE_HEX, &adrfam_desc, "rcrd.adrfam", "Address Family (ADRFAM)", "Address Family."),
    NUM(2, 1, FT_UINT8, BASE_HEX, &subtype_desc, "rcrd.subtype", "Subsystem Type (SUBTYPE)", "Subsystem Type."),
    NUM(3, 1, FT_UINT8, BASE_HEX, NULL, "rcrd.treq", "Transport Requirements (TREQ)", "Transport Requirements."),
    FLAG(3, 1, 0, "rcrd.treq.secch", "Secure Channel Connection Requirement"),
    FLAG(3, 1, 1, "rcrd.treq.sqfc", "Disable SQ Flow Control Support"),
    RSVD(3, 1, 3, 5, 8, "rcrd.treq.rsvd"),
    NUM(4, 2, FT_UINT16, BASE_HEX, NULL, "rcrd.portid", "Port ID (PORTID)", "Port."),
    NUM(6, 2, FT_UINT16, BASE_HEX, NULL, "rcrd.cntlid", "Controller ID (CNTLID)", "0xffff: dynamic."),
    NUM(8, 2, FT_UINT16, BASE_DEC, NULL, "rcrd.asqsz", "Admin Max SQ Size (ASQSZ)", "Entries of the admin queue."),
    PAD(10, 22, "rcrd.rsvd0"),
    RAW(32, 32, FT_STRING, "rcrd.trsvcid", "Transport Service Identifier (TRSVCID)", "Port as text."),
    PAD(64, 192, "rcrd.rsvd1"),
    RAW(256, 256, FT_STRING, "rcrd.subnqn", "NVM Subsystem Qualified Name (SUBNQN)", "NVM Subsystem Qualified Name."),
    RAW(512, 256, FT_STRING, "rcrd.traddr", "Transport Address (TRADDR)", "Address as text."),
    RAW(768, 256, FT_BYTES, "rcrd.tsas", "Transport Specific Address Subtype (TSAS)", "Depends on the transport."),
    FIELD_LE(is_rdma_entry, 768, 1, FT_UINT8, BASE_HEX, &qptype_desc, NAME "rcrd.tsas.rdma_qptype",
             "RDMA QP Service Type", "Kind of queue pair."),
    FIELD_LE(is_rdma_entry, 769, 1, FT_UINT8, BASE_HEX, &prtype_desc, NAME "rcrd.tsas.rdma_prtype",
             "RDMA Provider Type", "Kind of RDMA."),
    FIELD_LE(is_rdma_entry, 770, 1, FT_UINT8, BASE_HEX, &cms_desc, NAME "rcrd.tsas.rdma_cms",
             "RDMA Connection Management Service", "How connections are made."),
    FIELD_AT(is_rdma_entry, 771, 5, FT_BYTES, NAME "rcrd.tsas.rdma_rsvd0", "Reserved", "Reserved."),
    FIELD_LE(is_rdma_entry, 776, 2, FT_UINT16, BASE_HEX, NULL, NAME "rcrd.tsas.rdma_pkey", "RDMA Partition Key",
             "P_Key."),
    FIELD_AT(is_rdma_entry, 778, 246, FT_BYTES, NAME "rcrd.tsas.rdma_rsvd1", "Reserved", "Reserved."),
    FIELD_LE(is_tcp_entry, 768, 1, FT_UINT8, BASE_HEX, NULL, NAME "rcrd.tsas.tcp_sectype", "Security Type",
             "0 none, 1 TLS 1.2, 2 TLS 1.3."),
    FIELD_AT(is_tcp_entry, 769, 255, FT_BYTES, NAME "rcrd.tsas.tcp_rsvd", "Reserved", "Reserved."),
};
#undef NAME
HDR(nvme_discovery_entry, "rdma.nvme.discovery.entry", "NVM Express (Discovery Log Page Entry)", "nvme", 1024);

/* --- Layers ----------------------------------------------------------------------------------- */

#define DISCOVERY_LEN 1024

/* The log page from byte `from` on; a host may read its header first. */
static void discovery_layers(struct pkt *p, const struct ulp_body *m, uint64_t from)
{
    if (from % DISCOVERY_LEN)
        return;
    if (from == 0)
        ulp_layer(p, &nvme_discovery_hdr, m, 0, DISCOVERY_LEN);
    nvme_repeated_layers(p, m, &nvme_discovery_entry_hdr, from ? 0 : DISCOVERY_LEN, NVME_LIST_MAX);
}

static void error_layers(struct pkt *p, const struct ulp_body *m, uint64_t from)
{
    if (from % nvme_errinf_hdr.len == 0)
        nvme_repeated_layers(p, m, &nvme_errinf_hdr, 0, NVME_LIST_MAX);
}

/* The commands that are supported, of a page from its beginning on. */
static void effects_layers(struct pkt *p, const struct ulp_body *m, uint64_t from)
{
    unsigned n = 0;

    if (from)
        return;
    ulp_layer(p, &nvme_effects_page_hdr, m, 0, 2048);
    for (uint32_t at = 0; n < NVME_LIST_MAX && at + 4 <= m->len && at < 2048; at += 4)
        if (m->b[at] & 1 && ++n)
            ulp_layer(p, &nvme_effects_hdr, m, at, 4);
}

static void ana_layers(struct pkt *p, const struct ulp_body *m, uint64_t from)
{
    uint32_t at = nvme_ana_hdr.len, n = 0, groups = m->len >= 10 ? load_le16(m->b + 8) : 0;

    if (from)
        return;
    ulp_layer(p, &nvme_ana_hdr, m, 0, nvme_ana_hdr.len);
    for (uint32_t g = 0; g < groups && n < NVME_LIST_MAX && at + 32 <= m->len; g++, n++) {
        uint32_t namespaces = load_le32(m->b + at + 4);
        ulp_layer(p, &nvme_ana_group_hdr, m, at, 32);
        for (at += 32; namespaces > 0 && n < NVME_LIST_MAX && at + 4 <= m->len; namespaces--, n++, at += 4)
            ulp_layer(p, &nvme_ana_ns_hdr, m, at, 4);
    }
}

void nvme_log_layers(struct pkt *p, const struct ulp_body *m, unsigned lid, uint64_t from)
{
    switch (lid) {
    case 0x01:
        error_layers(p, m, from);
        break;
    case 0x04:
        nvme_listed_layers(p, m, &nvme_changed_ns_hdr);
        break;
    case 0x05:
        effects_layers(p, m, from);
        break;
    case 0x0c:
        ana_layers(p, m, from);
        break;
    case NVME_LOG_DISCOVERY:
        discovery_layers(p, m, from);
        break;
    case 0x02:
        if (!from)
            ulp_layer(p, &nvme_smart_hdr, m, 0, nvme_smart_hdr.len);
        break;
    case 0x03:
        if (!from)
            ulp_layer(p, &nvme_fw_slot_hdr, m, 0, nvme_fw_slot_hdr.len);
        break;
    default:
        if (!from)
            nvme_rare_log_layers(p, m, lid);
    }
}
