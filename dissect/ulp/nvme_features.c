/* layer 1 (wire): NVMe over RDMA: features: values in commands and completions, structures that they move; events. */
#include "dissect/ulp/nvme_rows.h"

static const struct vname range_type_names[] = {
    {0, "general"}, {1, "file system"}, {2, "RAID"}, {3, "cache"}, {4, "page or swap file"}};
static const struct vdesc range_type_desc = VDESC_NAMES(range_type_names);
static const struct vname sensor_names[] = {{0, "composite"}, {1, "sensor 1"}, {2, "sensor 2"}, {3, "sensor 3"},
                                            {4, "sensor 4"},  {5, "sensor 5"}, {6, "sensor 6"}, {7, "sensor 7"},
                                            {8, "sensor 8"},  {0xf, "all"}};
static const struct vdesc sensor_desc = VDESC_NAMES(sensor_names);
static const struct vname threshold_names[] = {{0, "over"}, {1, "under"}};
static const struct vdesc threshold_desc = VDESC_NAMES(threshold_names);
static const struct vname protection_names[] = {
    {0, "none"}, {1, "protected"}, {2, "protected until the next power cycle"}, {3, "protected for ever"}};
static const struct vdesc protection_desc = VDESC_NAMES(protection_names);
static const struct vname window_names[] = {{1, "deterministic"}, {2, "non-deterministic"}};
const struct vdesc nvme_window_desc = VDESC_NAMES(window_names);
static const struct vname event_names[] = {
    {0, "error"}, {1, "SMART / health"}, {2, "notice"}, {6, "of a command set"}, {7, "vendor specific"}};
static const struct vdesc event_desc = VDESC_NAMES(event_names);

#define FEATURE_HDR(id, set_or_get, bytes)                                                                             \
    HDR(nvme_##set_or_get##_##id, "rdma.nvme.feature", "NVM Express (value of a feature)", "nvme", bytes);

#define NAME "nvme.cmd.set_features.dword11."
#define FEATURE(id, ...)                                                                                               \
    static const struct field nvme_set_##id##_fields[] = {__VA_ARGS__};                                                \
    FEATURE_HDR(id, set, 4)
#include "dissect/ulp/nvme_features.def"
#undef FEATURE
#undef NAME
#define NAME "nvme.cqe.dword0.get_features."
#define FEATURE(id, ...)                                                                                               \
    static const struct field nvme_get_##id##_fields[] = {__VA_ARGS__};                                                \
    FEATURE_HDR(id, get, 4)
#include "dissect/ulp/nvme_features.def"
#undef FEATURE
#undef NAME

/* Those whose values differ, or of which Get Features has one, too. */
#define NAME "nvme."
/* A dword that says of which NVM set the value is. */
#define NVM_SET(name)                                                                                                  \
    NUM(0, 4, FT_UINT32, BASE_HEX, NULL, name, "Value", "Value."),                                                     \
        BITS(0, 4, 0, 16, FT_UINT32, BASE_HEX, NULL, name ".nvmsetid", "NVM Set Identifier", "NVM Set Identifier."),   \
        RSVD(0, 4, 16, 16, 32, name ".rsvd")
static const struct field nvme_set_nq_fields[] = {
    NUM(0, 4, FT_UINT32, BASE_HEX, NULL, "cmd.set_features.dword11.nq", "Value", "Value."),
    BITS(0, 4, 0, 16, FT_UINT32, BASE_DEC, NULL, "cmd.set_features.dword11.nq.nsqr",
         "Number of IO Submission Queues Requested", "Queues, minus one."),
    BITS(0, 4, 16, 16, FT_UINT32, BASE_DEC, NULL, "cmd.set_features.dword11.nq.ncqr",
         "Number of IO Completion Queues Requested", "Queues, minus one."),
};
FEATURE_HDR(nq, set, 4)
static const struct field nvme_get_nq_fields[] = {
    NUM(0, 4, FT_UINT32, BASE_HEX, NULL, "cqe.dword0.get_features.nq", "Value", "Value."),
    BITS(0, 4, 0, 16, FT_UINT32, BASE_DEC, NULL, "cqe.dword0.get_features.nq.nsqa",
         "Number of IO Submission Queues Allocated", "Queues, minus one."),
    BITS(0, 4, 16, 16, FT_UINT32, BASE_DEC, NULL, "cqe.dword0.get_features.nq.ncqa",
         "Number of IO Completion Queues Allocated", "Queues, minus one."),
};
FEATURE_HDR(nq, get, 4)
static const struct field nvme_given_nq_fields[] = {
    NUM(0, 4, FT_UINT32, BASE_HEX, NULL, "cqe.dword0.set_features.nq", "Value", "Value."),
    BITS(0, 4, 0, 16, FT_UINT32, BASE_DEC, NULL, "cqe.dword0.set_features.nq.nsqa",
         "Number of IO Submission Queues Allocated", "Queues, minus one."),
    BITS(0, 4, 16, 16, FT_UINT32, BASE_DEC, NULL, "cqe.dword0.set_features.ncqa",
         "Number of IO Completion Queues Allocated", "Queues, minus one."),
};
FEATURE_HDR(nq, given, 4)
static const struct field nvme_set_rrl_fields[] = {
    NVM_SET("cmd.set_features.dword11.rrl"),
    NUM(4, 4, FT_UINT32, BASE_HEX, NULL, "cmd.set_features.dword12.rrl", "Second Value", "0 is the best."),
    BITS(4, 4, 0, 4, FT_UINT32, BASE_HEX, NULL, "cmd.set_features.dword12.rrl.rrl", "Read Recovery Level",
         "0 is the best."),
    RSVD(4, 4, 4, 28, 32, "cmd.set_features.dword12.rrl.rsvd"),
};
FEATURE_HDR(rrl, set, 8)
static const struct field nvme_ask_rrl_fields[] = {
    NUM(0, 4, FT_UINT32, BASE_HEX, NULL, "cmd.get_features.dword11.rrl", "Value", "0 is the best."),
    RSVD(0, 4, 16, 16, 32, "cmd.get_features.dword11.rrl.rsvd"),
    BITS(0, 4, 0, 16, FT_UINT32, BASE_HEX, NULL, "cmd_get_features.dword11.rrl.nvmsetid", "NVM Set Identifier",
         "NVM Set Identifier."),
};
FEATURE_HDR(rrl, ask, 4)
static const struct field nvme_get_rrl_fields[] = {
    NUM(0, 4, FT_UINT32, BASE_HEX, NULL, "cqe.dword0.get_features.rrl", "Value", "0 is the best."),
    BITS(0, 4, 0, 4, FT_UINT32, BASE_HEX, NULL, "cqe.dword0.get_features.rrl.rrl", "Read Recovery Level",
         "0 is the best."),
    RSVD(0, 4, 4, 28, 32, "cqe.dword0.get_features.rrl.rsvd"),
};
FEATURE_HDR(rrl, get, 4)
static const struct field nvme_set_plmc_fields[] = {
    NVM_SET("cmd.set_features.dword11.plmc"),
    NUM(4, 4, FT_UINT32, BASE_HEX, NULL, "cmd.set_features.dword12.plmc", "Second Value", "Second Value."),
    FLAG(4, 4, 0, "cmd.set_features.dword12.plmc.ple", "Predictable Latency Enable"),
    RSVD(4, 4, 1, 31, 32, "cmd.set_features.dword12.plmc.rsvd"),
};
FEATURE_HDR(plmc, set, 8)
static const struct field nvme_ask_plmc_fields[] = {
    NVM_SET("cmd.get_features.dword11.plmc"),
};
FEATURE_HDR(plmc, ask, 4)
static const struct field nvme_get_plmc_fields[] = {
    NUM(0, 4, FT_UINT32, BASE_HEX, NULL, "cqe.dword0.get_features.plmc", "Value", "Value."),
    BITS(0, 4, 0, 1, FT_UINT32, BASE_HEX, NULL, "cqe.dword0.get_features.plmc.ple", "Predictable Latency Enable",
         "Predictable Latency Enable."),
    RSVD(0, 4, 1, 31, 32, "cqe.dword0.get_features.plmc.rsvd"),
};
FEATURE_HDR(plmc, get, 4)
static const struct field nvme_set_plmw_fields[] = {
    NVM_SET("cmd.set_features.dword11.plmw"),
    NUM(4, 4, FT_UINT32, BASE_HEX, NULL, "cmd.set_features.dword12.plmw", "Second Value", "Second Value."),
    BITS(4, 4, 0, 3, FT_UINT32, BASE_HEX, &nvme_window_desc, "cmd.set_features.dword12.plmw.ws", "Window Select",
         "Window Select."),
    RSVD(4, 4, 3, 29, 32, "cmd.set_features.dword12.plmw.rsvd"),
};
FEATURE_HDR(plmw, set, 8)
static const struct field nvme_ask_plmw_fields[] = {
    NVM_SET("cmd.get_features.dword11.plmw"),
};
FEATURE_HDR(plmw, ask, 4)
static const struct field nvme_get_plmw_fields[] = {
    NUM(0, 4, FT_UINT32, BASE_HEX, NULL, "cqe.dword0.get_features.plmw", "Value", "Value."),
    LE_BITS(NULL, 0, 4, 0, 3, FT_UINT32, BASE_HEX, &nvme_window_desc, "rdma.nvme.get_features.plmw.ws", "Window Select",
            "Window Select."),
};
FEATURE_HDR(plmw, get, 4)
#undef NAME

/* Structures that Set Features and Get Features move. */
#define NAME "nvme.set_features."
static const struct field nvme_lba_range_type_fields[] = {
    RAW(0, 64, FT_BYTES, "lbart", "LBA Range Structure", "LBA Range Structure."),
    NUM(0, 1, FT_UINT8, BASE_HEX, &range_type_desc, "lbart.type", "Type", "Type."),
    NUM(1, 1, FT_UINT8, BASE_HEX, NULL, "lbart.attr", "Attributes", "Attributes."),
    FLAG(1, 1, 0, "lbart.attr.ovw", "LBA Range may be overwritten"),
    FLAG(1, 1, 1, "lbart.attr.hid", "LBA Range shall be hidden from OS/EFI/BIOS"),
    RSVD(1, 1, 2, 6, 8, "lbart.attr.rsvd"),
    PAD(2, 14, "lbart.rsvd0"),
    NUM(16, 8, FT_UINT64, BASE_HEX, NULL, "lbart.slba", "Starting LBA", "Starting LBA."),
    NUM(24, 8, FT_UINT64, BASE_HEX, NULL, "lbart.nlb", "Number of Logical Blocks", "Number of Logical Blocks."),
    RAW(32, 16, FT_BYTES, "lbart.guid", "Unique Identifier", "Unique Identifier."),
    PAD(48, 16, "lbart.rsvd1"),
};
HDR(nvme_lba_range_type, "rdma.nvme.feature.data", "NVM Express (LBA Range Type)", "nvme", 64);
static const struct field nvme_apst_fields[] = {
    NUM(0, 8, FT_UINT64, BASE_HEX, NULL, "lbart.apst", "Autonomous Power State Transition Structure",
        "Autonomous Power State Transition Structure."),
    RSVD(0, 8, 0, 3, 64, "lbart.apst.rsvd0"),
    BITS(0, 8, 3, 5, FT_UINT64, BASE_HEX, NULL, "lbart.apst.itps", "Idle Transition Power State",
         "The state it goes to."),
    BITS(0, 8, 8, 20, FT_UINT64, BASE_HEX, NULL, "lbart.apst.itpt", "Idle Time Prior to Transition (ms)",
         "Milliseconds without work."),
    RSVD(0, 8, 32, 32, 64, "lbart.apst.rsvd1"),
};
HDR(nvme_apst, "rdma.nvme.feature.data", "NVM Express (Autonomous Power State Transition)", "nvme", 8);
static const struct field nvme_timestamp_fields[] = {
    NUM(0, 8, FT_UINT64, BASE_HEX, NULL, "tst", "Timestamp Structure", "Timestamp Structure."),
    BITS(0, 8, 0, 48, FT_UINT64, BASE_HEX, NULL, "tst.ms", "Timestamp (milliseconds since 01-Jan-1970)",
         "Milliseconds since 1970."),
    RSVD(0, 8, 48, 16, 64, "tst.rsvd"),
};
HDR(nvme_timestamp, "rdma.nvme.feature.data", "NVM Express (Timestamp)", "nvme", 8);
static const struct field nvme_latency_config_fields[] = {
    RAW(0, 512, FT_BYTES, "plmc", "Predictable Latency Mode Structure", "Predictable Latency Mode Structure."),
    NUM(0, 2, FT_UINT16, BASE_HEX, NULL, "plmc.ee", "Enable Event", "Enable Event."),
    FLAG(0, 2, 0, "plmc.ee.dtwinr", "DTWIN Reads Warning"),
    FLAG(0, 2, 1, "plmc.ee.dtwinw", "DTWIN Writes Warning"),
    FLAG(0, 2, 2, "plmc.ee.dtwint", "DTWIN Time Warning"),
    RSVD(0, 2, 3, 11, 16, "plmc.ee.rsvd"),
    FLAG(0, 2, 14, "plmc.ee.ndtwindv", "DTWIN to NDWIN transition due to typical or maximum value exceeded"),
    FLAG(0, 2, 15, "plmc.ee.ndtwindde", "DTWIN to NDWIN transition due to Deterministic Excursion"),
    PAD(2, 30, "plmc.rsvd0"),
    NUM(32, 8, FT_UINT64, BASE_HEX, NULL, "plmc.dtwinrt", "DTWIN Reads Threshold", "DTWIN Reads Threshold."),
    NUM(40, 8, FT_UINT64, BASE_HEX, NULL, "plmc.dtwinwt", "DTWIN Writes Threshold", "DTWIN Writes Threshold."),
    NUM(48, 8, FT_UINT64, BASE_HEX, NULL, "plmc.dtwintt", "DTWIN Time Threshold", "DTWIN Time Threshold."),
    PAD(56, 456, "plmc.rsvd1"),
};
HDR(nvme_latency_config, "rdma.nvme.feature.data", "NVM Express (Predictable Latency Mode Config)", "nvme", 512);
static const struct field nvme_host_behavior_fields[] = {
    RAW(0, 512, FT_BYTES, "hbs", "Host Behavior Support Structure", "Host Behavior Support Structure."),
    NUM(0, 1, FT_UINT8, BASE_HEX, NULL, "hbs.acre", "Advanced Command Retry Enable", "Advanced Command Retry Enable."),
    PAD(1, 511, "hbs.rsvd"),
};
HDR(nvme_host_behavior, "rdma.nvme.feature.data", "NVM Express (Host Behavior Support)", "nvme", 512);
#undef NAME

/* --- Events ----------------------------------------------------------------------------------- */

#define NAME "nvme.cqe.dword0."
static const struct field nvme_event_fields[] = {
    NUM(0, 4, FT_UINT32, BASE_HEX, NULL, "aev", "Value", "Value."),
    BITS(0, 4, 0, 3, FT_UINT32, BASE_HEX, &event_desc, "aev.aet", "Asynchronous Event Type",
         "Asynchronous Event Type."),
    RSVD(0, 4, 3, 5, 32, "aev.rsvd0"),
    BITS(0, 4, 8, 8, FT_UINT32, BASE_HEX, NULL, "aev.aei", "Asynchronous Event Information", "Depends on the type."),
    BITS(0, 4, 16, 8, FT_UINT32, BASE_DEC, NULL, "aev.lpi", "Log Page Identifier", "Log page that has more."),
    RSVD(0, 4, 24, 8, 32, "aev.rsvd1"),
};
HDR(nvme_event, "rdma.nvme.event", "NVM Express (asynchronous event)", "nvme", 4);
#undef NAME

/* --- Layers ----------------------------------------------------------------------------------- */

#define CDW11 44 /* of a command */

#define SELECT_CAPABILITIES 3 /* in bits 10:8 of cdw10 of Get Features */

/* What a feature has: the value of Set Features, what Get Features asks for, what each returns, and its data. */
static const struct feature {
    const struct hdr *set, *ask, *given, *got, *data;
    uint8_t fid;
    uint8_t n_data; /* structures of data that follow each other */
} features[] = {
#define PLAIN(id, number) {.fid = number, .set = &nvme_set_##id##_hdr, .got = &nvme_get_##id##_hdr},
    NVME_PLAIN_FEATURES(PLAIN)
#undef PLAIN
        {.fid = 0x03,
         .set = &nvme_set_lbart_hdr,
         .got = &nvme_get_lbart_hdr,
         .data = &nvme_lba_range_type_hdr,
         .n_data = 1},
    {.fid = 0x07, .set = &nvme_set_nq_hdr, .given = &nvme_given_nq_hdr, .got = &nvme_get_nq_hdr},
    {.fid = 0x0c, .set = &nvme_set_apst_hdr, .got = &nvme_get_apst_hdr, .data = &nvme_apst_hdr, .n_data = 32},
    {.fid = 0x0e, .data = &nvme_timestamp_hdr, .n_data = 1},
    {.fid = 0x12, .set = &nvme_set_rrl_hdr, .ask = &nvme_ask_rrl_hdr, .got = &nvme_get_rrl_hdr},
    {.fid = 0x13,
     .set = &nvme_set_plmc_hdr,
     .ask = &nvme_ask_plmc_hdr,
     .got = &nvme_get_plmc_hdr,
     .data = &nvme_latency_config_hdr,
     .n_data = 1},
    {.fid = 0x14, .set = &nvme_set_plmw_hdr, .ask = &nvme_ask_plmw_hdr, .got = &nvme_get_plmw_hdr},
    {.fid = 0x16, .data = &nvme_host_behavior_hdr, .n_data = 1},
};

static const struct feature *feature_of(const struct nvme_cmd *c)
{
    static const struct feature none;

    for (unsigned i = 0; i < ARRAY_LEN(features); i++)
        if (features[i].fid == (c->cdw[0] & 0xff))
            return &features[i];
    return &none;
}

/* Get Features that asks what may be done with the feature: its value does not come back. */
static bool asks_capabilities(const struct nvme_cmd *c)
{
    return c->opc == NVME_ADMIN_GET_FEATURES && (c->cdw[0] >> 8 & 7) == SELECT_CAPABILITIES;
}

static void value_layer(struct pkt *p, const struct ulp_body *m, const struct hdr *h, uint32_t at)
{
    if (h)
        ulp_layer(p, h, m, at, h->len);
}

void nvme_feature_command_layers(struct pkt *p, const struct ulp_body *m, const struct nvme_cmd *c)
{
    const struct feature *f = feature_of(c);

    value_layer(p, m, c->opc == NVME_ADMIN_SET_FEATURES ? f->set : f->ask, CDW11);
}

void nvme_feature_response_layers(struct pkt *p, const struct ulp_body *m, const struct nvme_cmd *c)
{
    const struct feature *f = feature_of(c);

    if (c->opc == NVME_ADMIN_SET_FEATURES)
        value_layer(p, m, f->given, 0);
    else if (!asks_capabilities(c))
        value_layer(p, m, f->got, 0);
}

void nvme_feature_data_layers(struct pkt *p, const struct ulp_body *m, const struct nvme_cmd *c)
{
    const struct feature *f = feature_of(c);

    if (f->data && !asks_capabilities(c))
        nvme_repeated_layers(p, m, f->data, 0, f->n_data);
}
