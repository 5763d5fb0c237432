/* layer 1 (wire): NVMe over RDMA: log pages that few controllers have. */
#include "dissect/ulp/nvme_rows.h"

#include "bits.h"

static const struct vname selftest_now_names[] = {{0, "none"}, {1, "short"}, {2, "extended"}, {0xe, "vendor specific"}};
static const struct vdesc selftest_now_desc = VDESC_NAMES(selftest_now_names);
static const struct vname selftest_type_names[] = {{1, "short"}, {2, "extended"}, {0xe, "vendor specific"}};
static const struct vdesc selftest_type_desc = VDESC_NAMES(selftest_type_names);
static const struct vname selftest_result_names[] = {{0, "passed"},
                                                     {1, "aborted by a command"},
                                                     {2, "aborted by a reset"},
                                                     {3, "aborted, a namespace was removed"},
                                                     {4, "aborted by Format NVM"},
                                                     {5, "fatal error"},
                                                     {6, "failed, segment not known"},
                                                     {7, "failed"},
                                                     {8, "aborted"},
                                                     {9, "aborted by Sanitize"},
                                                     {0xf, "not used"}};
static const struct vdesc selftest_result_desc = VDESC_NAMES(selftest_result_names);
static const struct vname notification_names[] = {
    {0, "empty"}, {1, "registration preempted"}, {2, "reservation released"}, {3, "reservation preempted"}};
static const struct vdesc notification_desc = VDESC_NAMES(notification_names);
static const struct vname sanitized_names[] = {
    {0, "never"}, {1, "successful"}, {2, "in progress"}, {3, "failed"}, {4, "successful, without deallocation"}};
static const struct vdesc sanitized_desc = VDESC_NAMES(sanitized_names);

#define NAME "nvme.cmd.get_logpage.selftest."
static const struct field nvme_selftest_fields[] = {
    NUM(0, 1, FT_UINT8, BASE_HEX, NULL, "csto", "Current Device Self-Test Operation",
        "Current Device Self-Test Operation."),
    BITS(0, 1, 0, 4, FT_UINT8, BASE_HEX, &selftest_now_desc, "csto.st", "Current Self-Test Operation Status",
         "Current Self-Test Operation Status."),
    RSVD(0, 1, 4, 4, 8, "csto.rsvd"),
    NUM(1, 1, FT_UINT8, BASE_HEX, NULL, "cstc", "Current Device Self-Test Completion",
        "Current Device Self-Test Completion."),
    BITS(1, 1, 0, 7, FT_UINT8, BASE_DEC, NULL, "cstc.pcnt", "Self-Test Completion Percent", "Percent."),
    RSVD(1, 1, 7, 1, 8, "cstc.rsvd"),
    RSVD(2, 2, 7, 1, 16, "rsvd"),
};
#undef NAME
HDR(nvme_selftest, "rdma.nvme.log.selftest", "NVM Express (Device Self-test)", "nvme", 4);

/* A result. */
#define NAME "nvme.cmd.get_logpage.selftest."
static const struct field nvme_selftest_result_fields[] = {
    RAW(0, 24, FT_BYTES, "res", "Latest Self-test Result Data Structure", "Latest Self-test Result Data Structure."),
    NUM(0, 1, FT_UINT8, BASE_HEX, NULL, "res.status", "Device Self-test Status", "Device Self-test Status."),
    BITS(0, 1, 0, 4, FT_UINT8, BASE_HEX, &selftest_result_desc, "res.status.result", "Device Self-test Result",
         "Device Self-test Result."),
    BITS(0, 1, 4, 4, FT_UINT8, BASE_HEX, &selftest_type_desc, "res.status.type", "Device Self-test Type",
         "Device Self-test Type."),
    NUM(1, 1, FT_UINT8, BASE_DEC, NULL, "res.sn", "Segment Number", "Segment in which it failed."),
    NUM(2, 1, FT_UINT8, BASE_HEX, NULL, "res.vdi", "Valid Diagnostic Information", "Valid Diagnostic Information."),
    FLAG(2, 1, 0, "res.vdi.nsid", "Namespace Identifier (NSID) Field Valid"),
    FLAG(2, 1, 1, "res.vdi.flba", "Failing LBA (FLBA) Field Valid"),
    FLAG(2, 1, 2, "res.vdi.sct", "Status Code Type (SCT) Field Valid"),
    FLAG(2, 1, 3, "res.vdi.sc", "Status Code (SC) Field Valid"),
    BITS(2, 1, 4, 4, FT_BOOL, BASE_NONE, NULL, "res.vdi.rsvd", "Reserved", "Reserved."),
    RSVD(3, 1, 0, 0, 8, "res.rsvd"),
    NUM(4, 8, FT_UINT64, BASE_DEC, NULL, "res.poh", "Power On Hours (POH)", "Power On Hours."),
    NUM(12, 4, FT_UINT32, BASE_HEX, NULL, "res.nsid", "Namespace Identifier (NSID)", "Namespace."),
    NUM(16, 8, FT_UINT64, BASE_HEX, NULL, "res.flba", "Failing LBA", "Failing LBA."),
    NUM(24, 1, FT_UINT8, BASE_HEX, NULL, "res.sct", "Status Code Type", "Status Code Type."),
    BITS(24, 1, 0, 3, FT_UINT8, BASE_HEX, NULL, "res.sct.ai", "Additional Information", "Additional Information."),
    RSVD(24, 1, 3, 5, 8, "res.sct.rsvd"),
    NUM(25, 1, FT_UINT8, BASE_HEX, NULL, "res.sc", "Status Code", "Status Code."),
    NUM(26, 2, FT_UINT16, BASE_HEX, NULL, "res.vs", "Vendor Specific", "Vendor Specific."),
};
#undef NAME
HDR(nvme_selftest_result, "rdma.nvme.log.selftest_result", "NVM Express (Device Self-test Result)", "nvme", 28);

#define NAME "nvme.cmd.get_logpage.telemetry."
static const struct field nvme_telemetry_fields[] = {
    NUM(0, 1, FT_UINT8, BASE_HEX, NULL, "li", "Log Identifier",
        "0x07: asked for by the host, 0x08: by the controller."),
    RSVD(1, 4, 0, 0, 8, "rsvd0"),
    NUM(5, 3, FT_UINT32, BASE_HEX, NULL, "ieee", "IEEE OUI Identifier (IEEE)", "OUI of the vendor."),
    NUM(8, 2, FT_UINT16, BASE_DEC, NULL, "da1b", "Telemetry Data Area 1 Last Block",
        "Telemetry Data Area 1 Last Block."),
    NUM(10, 2, FT_UINT16, BASE_DEC, NULL, "da2b", "Telemetry Data Area 2 Last Block",
        "Telemetry Data Area 2 Last Block."),
    NUM(12, 3, FT_UINT16, BASE_DEC, NULL, "da3b", "Telemetry Data Area 3 Last Block",
        "Telemetry Data Area 3 Last Block."),
    PAD(14, 368, "rsvd1"),
    BITS(382, 1, 0, 0, FT_BOOL, BASE_NONE, NULL, "da", "Telemetry Data Available", "1: there are data."),
    NUM(383, 1, FT_UINT8, BASE_DEC, NULL, "dgn", "Telemetry Data Generation Number", "Changes with the data."),
    RAW(384, 128, FT_BYTES, "ri", "Reason Identifier", "Reason Identifier."),
};
#undef NAME
HDR(nvme_telemetry, "rdma.nvme.log.telemetry", "NVM Express (Telemetry)", "nvme", 512);

/* A block. */
#define NAME "nvme.cmd.get_logpage.telemetry."
static const struct field nvme_telemetry_block_fields[] = {
    RAW(0, 512, FT_BYTES, "db", "Telemetry Data Block", "Blocks of 512 bytes."),
};
#undef NAME
HDR(nvme_telemetry_block, "rdma.nvme.log.telemetry_block", "NVM Express (Telemetry Data Block)", "nvme", 512);

#define NAME "nvme.cmd.get_logpage.egroup."
static const struct field nvme_endurance_fields[] = {
    NUM(0, 1, FT_UINT8, BASE_HEX, NULL, "cw", "Critical Warning", "Critical Warning."),
    FLAG(0, 1, 0, "cw.asc", "Available Spare Capacity Below Threshold"),
    BITS(0, 1, 1, 1, FT_BOOL, BASE_NONE, NULL, "cw.rsvd0", "Reserved", "Reserved."),
    FLAG(0, 1, 2, "cw.rd", "Reliability of Endurance Group Degraded due to Media Errors"),
    FLAG(0, 1, 3, "cw.ro", "All Namespaces in Endurance Group Placed in RO State"),
    BITS(0, 1, 4, 4, FT_BOOL, BASE_NONE, NULL, "cw.rsvd1", "Reserved", "Reserved."),
    RSVD(1, 2, 0, 0, 16, "rsvd0"),
    NUM(3, 1, FT_UINT8, BASE_DEC, NULL, "as", "Available Spare Capacity %", "Available Spare Capacity %."),
    NUM(4, 1, FT_UINT8, BASE_DEC, NULL, "ast", "Available Spare Threshold %", "Percent; a warning below it."),
    NUM(5, 1, FT_UINT8, BASE_DEC, NULL, "pu", "Life Age (Percentage Used) %", "Life Age %."),
    PAD(6, 26, "rsvd1"),
    RAW(32, 16, FT_BYTES, "ee", "Endurance Estimate (GB that may be written)", "Endurance Estimate."),
    RAW(48, 16, FT_BYTES, "dur", "Data Units Read (GB)", "Units of 10^9 bytes."),
    RAW(64, 16, FT_BYTES, "duw", "Data Units Written (GB)", "Units of 10^9 bytes."),
    RAW(80, 16, FT_BYTES, "muw", "Media Units Written (GB)", "Units of 10^9 bytes."),
    RAW(96, 16, FT_BYTES, "hrc", "Host Read Commands", "Host Read Commands."),
    RAW(112, 16, FT_BYTES, "hwc", "Host Write Commands", "Host Write Commands."),
    RAW(128, 16, FT_BYTES, "mdie", "Media and Data Integrity Errors", "Media and Data Integrity Errors."),
    RAW(144, 16, FT_BYTES, "ele", "Number of Error Information Log Entries",
        "Number of Error Information Log Entries."),
    PAD(160, 352, "rsvd2"),
};
#undef NAME
HDR(nvme_endurance, "rdma.nvme.log.endurance", "NVM Express (Endurance Group Information)", "nvme", 512);

#define NAME "nvme.cmd.get_logpage.pred_lat."
static const struct field nvme_latency_fields[] = {
    NUM(0, 1, FT_UINT8, BASE_HEX, NULL, "status", "Predictable Latency NVM Set Status",
        "Predictable Latency NVM Set Status."),
    BITS(0, 1, 0, 3, FT_UINT8, BASE_HEX, &nvme_window_desc, "status.ws", "Enabled Window Setting",
         "Enabled Window Setting."),
    RSVD(0, 1, 3, 5, 8, "status.rsvd"),
    RSVD(1, 1, 0, 0, 8, "rsvd0"),
    NUM(2, 2, FT_UINT16, BASE_HEX, NULL, "etype", "Event Type", "Event Type."),
    FLAG(2, 2, 0, "etype.rw", "DTWIN Reads Warning"),
    FLAG(2, 2, 1, "etype.ww", "DTWIN Writes Warning"),
    FLAG(2, 2, 2, "etype.tw", "DTWIN Time Warning"),
    RSVD(2, 2, 3, 11, 16, "etype.rsvd"),
    FLAG(2, 2, 14, "etype.atve", "Autonomous transition from DTWIN to NDWIN due to typical or maximum value exceeded"),
    FLAG(2, 2, 15, "etype.atde", "Autonomous transition from DTWIN to NDWIN due to Deterministic Excursion"),
    PAD(4, 28, "rsvd1"),
    NUM(32, 8, FT_UINT64, BASE_DEC, NULL, "dtwin_rt", "DTWIN Reads Typical (4 KiB blocks)", "DTWIN Reads Typical."),
    NUM(40, 8, FT_UINT64, BASE_DEC, NULL, "dtwin_wt", "DTWIN Writes Typical (optimal block size)",
        "DTWIN Writes Typical."),
    NUM(48, 8, FT_UINT64, BASE_DEC, NULL, "dtwin_tm", "DTWIN Time Maximum (ms)", "DTWIN Time Maximum."),
    NUM(56, 8, FT_UINT64, BASE_DEC, NULL, "ndwin_tmh", "NDWIN Time Minimum High (ms)", "NDWIN Time Minimum High."),
    NUM(64, 8, FT_UINT64, BASE_DEC, NULL, "ndwin_tml", "NDWIN Time Minimum Low (ms)", "NDWIN Time Minimum Low."),
    PAD(72, 56, "rsvd2"),
    NUM(128, 8, FT_UINT64, BASE_DEC, NULL, "dtwin_re", "DTWIN Reads Estimate (4 KiB blocks)", "DTWIN Reads Estimate."),
    NUM(136, 8, FT_UINT64, BASE_DEC, NULL, "dtwin_we", "DTWIN Writes Estimate (optimal block size)",
        "DTWIN Writes Estimate."),
    NUM(144, 8, FT_UINT64, BASE_DEC, NULL, "dtwin_te", "DTWIN Time Estimate (ms)", "DTWIN Time Estimate."),
    PAD(152, 360, "rsvd3"),
};
#undef NAME
HDR(nvme_latency, "rdma.nvme.log.latency", "NVM Express (Predictable Latency Per NVM Set)", "nvme", 512);

#define NAME "nvme.cmd.get_logpage.pred_lat_aggreg."
static const struct field nvme_latency_sets_fields[] = {
    NUM(0, 8, FT_UINT64, BASE_DEC, NULL, "ne", "Number of Entries", "Entries that follow."),
};
#undef NAME
HDR(nvme_latency_sets, "rdma.nvme.log.latency_sets", "NVM Express (Predictable Latency Event Aggregate)", "nvme", 8);

/* A set. */
#define NAME "nvme.cmd.get_logpage.pred_lat_aggreg."
static const struct field nvme_latency_set_fields[] = {
    NUM(0, 2, FT_UINT16, BASE_HEX, NULL, "nset", "NVM Set with Pending Predictable Latency Event",
        "NVM Set with Pending Predictable Latency Event."),
};
#undef NAME
HDR(nvme_latency_set, "rdma.nvme.log.latency_set", "NVM Express (NVM Set)", "nvme", 2);

#define NAME "nvme.cmd.get_logpage.egroup_agreg."
static const struct field nvme_endurance_events_fields[] = {
    NUM(0, 8, FT_UINT64, BASE_DEC, NULL, "ne", "Number of Entries", "Entries that follow."),
};
#undef NAME
HDR(nvme_endurance_events, "rdma.nvme.log.endurance_events", "NVM Express (Endurance Group Event Aggregate)", "nvme",
    8);

/* A group. */
#define NAME "nvme.cmd.get_logpage.egroup_agreg."
static const struct field nvme_endurance_event_fields[] = {
    NUM(0, 2, FT_UINT16, BASE_HEX, NULL, "eg", "Endurance Group", "Endurance Group."),
};
#undef NAME
HDR(nvme_endurance_event, "rdma.nvme.log.endurance_event", "NVM Express (Endurance Group)", "nvme", 2);

#define NAME "nvme.cmd.get_logpage.lba_status."
static const struct field nvme_lba_status_fields[] = {
    NUM(0, 4, FT_UINT32, BASE_DEC, NULL, "lslplen", "LBA Status Log Page Length (LSLPLEN)", "Bytes."),
    NUM(4, 4, FT_UINT32, BASE_DEC, NULL, "nlslne", "Number of LBA Status Log Namespace Elements (NLSLNE)",
        "Number of LBA Status Log Namespace Elements."),
    NUM(8, 4, FT_UINT32, BASE_DEC, NULL, "estulb", "Estimate of Unrecoverable Logical Blocks (ESTULB)",
        "Estimate of Unrecoverable Logical Blocks."),
    RSVD(12, 2, 0, 0, 16, "rsvd"),
    NUM(14, 2, FT_UINT16, BASE_HEX, NULL, "lsgc", "LBA Status Generation Counter (LSGC)",
        "LBA Status Generation Counter."),
};
#undef NAME
HDR(nvme_lba_status, "rdma.nvme.log.lba_status", "NVM Express (LBA Status Information)", "nvme", 16);

/* A namespace; its ranges follow. */
#define NAME "nvme.cmd.get_logpage.lba_status."
static const struct field nvme_lba_element_fields[] = {
    NUM(0, 4, FT_UINT32, BASE_HEX, NULL, "nel.ne.neid", "Namespace Element Identifier (NEID)",
        "Namespace Element Identifier."),
    NUM(4, 4, FT_UINT32, BASE_DEC, NULL, "nel.ne.nlrd", "Number of LBA Range Descriptors (NLRD)",
        "Ranges that follow."),
    NUM(8, 1, FT_UINT8, BASE_HEX, NULL, "nel.ne.ratype", "Recommended Action Type (RATYPE)",
        "Recommended Action Type."),
    PAD(9, 7, "nel.ne.rsvd"),
};
#undef NAME
HDR(nvme_lba_element, "rdma.nvme.log.lba_element", "NVM Express (LBA Status Log Namespace Element)", "nvme", 16);

/* A range. */
#define NAME "nvme.cmd.get_logpage.lba_status."
static const struct field nvme_lba_range_fields[] = {
    RAW(0, 16, FT_BYTES, "nel.ne.rd", "LBA Range Descriptor", "LBA Range Descriptor."),
    NUM(0, 8, FT_UINT64, BASE_HEX, NULL, "nel.ne.rd.rslba", "Range Starting LBA (RSLBA)", "Range Starting LBA."),
    NUM(8, 4, FT_UINT32, BASE_DEC, NULL, "nel.ne.rd.rnlb", "Range Number of Logical Blocks (RNLB)", "Logical blocks."),
    RSVD(12, 4, 0, 0, 32, "nel.ne.rd.rsvd"),
};
#undef NAME
HDR(nvme_lba_range, "rdma.nvme.log.lba_range", "NVM Express (LBA Range Descriptor)", "nvme", 16);

#define NAME "nvme.cmd.get_logpage.reserv_notif."
static const struct field nvme_reservation_fields[] = {
    NUM(0, 8, FT_UINT64, BASE_HEX, NULL, "lpc", "Log Page Count", "Counts the pages; 0: no page."),
    NUM(8, 1, FT_UINT8, BASE_HEX, &notification_desc, "lpt", "Reservation Notification Log Page Type",
        "Reservation Notification Log Page Type."),
    NUM(9, 1, FT_UINT8, BASE_DEC, NULL, "nalp", "Number of Available Log Pages", "Pages that wait to be read."),
    RSVD(10, 2, 0, 0, 16, "rsvd0"),
    NUM(12, 4, FT_UINT32, BASE_HEX, NULL, "nsid", "Namespace ID", "Namespace."),
    PAD(16, 48, "rsvd1"),
};
#undef NAME
HDR(nvme_reservation, "rdma.nvme.log.reservation", "NVM Express (Reservation Notification)", "nvme", 64);

#define NAME "nvme.cmd.get_logpage.sanitize."
static const struct field nvme_sanitize_fields[] = {
    NUM(0, 2, FT_UINT16, BASE_HEX, NULL, "sprog", "Sanitize Progress (SPROG)", "65536ths."),
    NUM(2, 2, FT_UINT16, BASE_HEX, NULL, "sstat", "Sanitize Status (SSTAT)", "Sanitize Status."),
    BITS(2, 2, 0, 3, FT_UINT16, BASE_HEX, &sanitized_desc, "sstat.mrst", "Status of the most recent Sanitize Operation",
         "Status of the most recent Sanitize Operation."),
    BITS(2, 2, 3, 5, FT_UINT16, BASE_HEX, NULL, "sstat.cop", "Number of Completed Overwrite Passes", "Passes."),
    FLAG(2, 2, 8, "sstat.gde", "Global Data Erased"),
    RSVD(2, 2, 9, 7, 16, "sstat.rsvd"),
    NUM(4, 4, FT_UINT32, BASE_HEX, NULL, "scdw10", "Sanitize Command Dword 10 Information (SCDW10)",
        "Sanitize Command Dword 10 Information."),
    NUM(8, 4, FT_UINT32, BASE_HEX, NULL, "eto", "Estimated Time For Overwrite (seconds)",
        "Seconds; 0xffffffff: not known."),
    NUM(12, 4, FT_UINT32, BASE_HEX, NULL, "etbe", "Estimated Time For Block Erase (seconds)",
        "Seconds; 0xffffffff: not known."),
    NUM(16, 4, FT_UINT32, BASE_HEX, NULL, "etce", "Estimated Time For Crypto Erase (seconds)",
        "Seconds; 0xffffffff: not known."),
    NUM(20, 4, FT_UINT32, BASE_HEX, NULL, "etond", "Estimated Time For Overwrite (seconds) with No-Deallocate",
        "Seconds; 0xffffffff: not known."),
    NUM(24, 4, FT_UINT32, BASE_HEX, NULL, "etbend", "Estimated Time For Block Erase (seconds) with No-Deallocate",
        "Seconds; 0xffffffff: not known."),
    NUM(28, 4, FT_UINT32, BASE_HEX, NULL, "etcend", "Estimated Time For Crypto Erase (seconds) with No-Deallocate",
        "Seconds; 0xffffffff: not known."),
};
#undef NAME
HDR(nvme_sanitize, "rdma.nvme.log.sanitize", "NVM Express (Sanitize Status)", "nvme", 512);

/* --- Layers ----------------------------------------------------------------------------------- */

/* The number of 8 bytes that the page begins with, and as many things. */
static void aggregate_layers(struct pkt *p, const struct ulp_body *m, const struct hdr *head, const struct hdr *h)
{
    ulp_layer(p, head, m, 0, 8);
    nvme_repeated_layers(p, m, h, 8, m->len >= 8 ? load_le64(m->b) : 0);
}

static void lba_layers(struct pkt *p, const struct ulp_body *m)
{
    ulp_layer(p, &nvme_lba_status_hdr, m, 0, 16);
    ulp_layer(p, &nvme_lba_element_hdr, m, 16, 16);
    nvme_repeated_layers(p, m, &nvme_lba_range_hdr, 32, m->len >= 24 ? load_le32(m->b + 20) : 0);
}

void nvme_rare_log_layers(struct pkt *p, const struct ulp_body *m, unsigned lid)
{
    static const struct {
        unsigned lid;
        const struct hdr *hdr;
    } plain[] = {{0x06, &nvme_selftest_hdr},  {0x07, &nvme_telemetry_hdr}, {0x08, &nvme_telemetry_hdr},
                 {0x09, &nvme_endurance_hdr}, {0x0a, &nvme_latency_hdr},   {0x80, &nvme_reservation_hdr},
                 {0x81, &nvme_sanitize_hdr}};

    for (unsigned i = 0; i < ARRAY_LEN(plain); i++)
        if (plain[i].lid == lid)
            ulp_layer(p, plain[i].hdr, m, 0, plain[i].hdr->len);
    if (lid == 0x06)
        nvme_repeated_layers(p, m, &nvme_selftest_result_hdr, 4, 20);
    else if (lid == 0x07 || lid == 0x08)
        nvme_repeated_layers(p, m, &nvme_telemetry_block_hdr, 512, NVME_LIST_MAX);
    else if (lid == 0x0b)
        aggregate_layers(p, m, &nvme_latency_sets_hdr, &nvme_latency_set_hdr);
    else if (lid == 0x0f)
        aggregate_layers(p, m, &nvme_endurance_events_hdr, &nvme_endurance_event_hdr);
    else if (lid == 0x0e)
        lba_layers(p, m);
}
