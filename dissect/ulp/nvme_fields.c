/* layer 1 (wire): NVMe over RDMA: fields of commands and completions, private data of CM. */
#include "dissect/ulp/nvme_rows.h"

/* What the note of the packet says of the command. */
static bool cmd_in_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = p->note.ulp_command_in;
    return p->note.have & NOTE_ULP && v->u;
}
/* Milliseconds. */
static bool latency_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = (uint64_t)p->note.ulp_latency * 1000;
    return p->note.have & NOTE_ULP_DONE;
}
#define CMD_IN(name, latency)                                                                                          \
    FIELD_GET(cmd_in_get, FT_FRAMENUM, BASE_DEC, NULL, 0, name, "Cmd in", "Frame of the command that is completed."),  \
        FIELD_GET(latency_get, FT_DOUBLE, BASE_NONE, NULL, 0, latency, "Cmd Latency",                                  \
                  "Milliseconds since the command.")

static bool queue_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = p->note.ulp_queue;
    return p->note.have & NOTE_ULP && v->u != UINT16_MAX;
}
/* In READs and WRITEs; in completions it is a field of theirs. */
static bool data_cmd_in_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    bool send = p->have & H_BTH ? p->op->flags & OPF_SEND : !(p->note.have & NOTE_ULP_DATA); /* iWARP has no BTH */

    return !send && cmd_in_get(p, l, v);
}
static const struct field nvme_rdma_fields[] = {
    FIELD_GET(queue_get, FT_UINT16, BASE_HEX, NULL, 0, "nvme-rdma.cmd.qid", "Cmd Qid", "Queue; 0: the admin queue."),
    FIELD_GET(data_cmd_in_get, FT_FRAMENUM, BASE_DEC, NULL, 0, "nvme.fabrics.cmd_pkt", "Cmd in",
              "Frame of the command whose data these are."),
};
HDR(nvme_rdma, "nvme-rdma", "NVM Express Fabrics RDMA", "nvme-rdma", 0);

/* --- SGL -------------------------------------------------------------------------------------- */

static const struct vname sgl_types[] = {{0, "Data Block"},   {1, "Bit Bucket"},       {2, "Segment"},
                                         {3, "Last Segment"}, {4, "Keyed Data Block"}, {5, "Transport Data Block"}};
static const struct vdesc sgl_type_desc = VDESC_NAMES(sgl_types);
static const struct vname sgl_subtypes[] = {{0, "Address"}, {1, "Offset"}, {15, "Transport specific"}};
static const struct vdesc sgl_subtype_desc = VDESC_NAMES(sgl_subtypes);

static bool sgl_in(const uint8_t *p, uint32_t len)
{
    (void)p;
    return len >= 40;
}
static bool sgl_is_keyed(const uint8_t *p, uint32_t len)
{
    return sgl_in(p, len) && p[39] >> 4 == NVME_SGL_KEYED;
}
/* A data block, bit bucket or segment: a length of four bytes. */
static bool sgl_is_long(const uint8_t *p, uint32_t len)
{
    return sgl_in(p, len) && p[39] >> 4 < NVME_SGL_KEYED;
}
static bool sgl_is_bucket(const uint8_t *p, uint32_t len)
{
    return sgl_in(p, len) && p[39] >> 4 == NVME_SGL_BUCKET;
}
static bool sgl_has_address(const uint8_t *p, uint32_t len)
{
    return sgl_is_keyed(p, len) || (sgl_is_long(p, len) && !sgl_is_bucket(p, len));
}

/* `whole`: the name of all of it; `in_...`: conditions of the command and of the descriptor. */
#define SGL_FIELDS(whole, in, in_address, in_bucket, in_keyed, in_long)                                                \
    FIELD_AT(in, 24, 16, FT_NONE, whole, "SGL1", "The SGL descriptor."),                                               \
        LE_BITS(in, 39, 1, 4, 4, FT_UINT8, BASE_HEX, &sgl_type_desc, "nvme.cmd.sgl.type", "Descriptor Type",           \
                "Type of the SGL descriptor."),                                                                        \
        LE_BITS(in, 39, 1, 0, 4, FT_UINT8, BASE_HEX, &sgl_subtype_desc, "nvme.cmd.sgl.subtype", "Descriptor Sub Type", \
                "Subtype; 15 of a keyed one: the controller invalidates the key."),                                    \
        FIELD_LE(in_address, 24, 8, FT_UINT64, BASE_HEX, NULL, "nvme.cmd.sgl1.addr", "Address",                        \
                 "Address in the host's memory; of subtype 1 the offset in the capsule, from its byte 64."),           \
        FIELD_LE(in_bucket, 24, 8, FT_UINT64, BASE_HEX, NULL, "nvme.cmd.sgl1.addr_rsvd", "Reserved", "Reserved."),     \
        FIELD_LE(in_keyed, 32, 3, FT_UINT24, BASE_DEC, NULL, "nvme.cmd.sgl1.len", "Length", "Bytes."),                 \
        FIELD_LE(in_keyed, 35, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.sgl1.key", "Key",                               \
                 "R_Key of the host's memory."),                                                                       \
        FIELD_LE(in_long, 32, 4, FT_UINT32, BASE_DEC, NULL, "nvme.cmd.sgl1.len", "Length", "Bytes."),                  \
        FIELD_AT(in_long, 36, 3, FT_BYTES, "nvme.cmd.sgl1.rsvd", "Reserved", "Reserved.")

/* --- Commands --------------------------------------------------------------------------------- */

#define COMMON(opcodes)                                                                                                \
    FIELD_LE(NULL, 0, 1, FT_UINT8, BASE_HEX, opcodes, "nvme.cmd.opc", "Opcode", "Opcode of the command."),             \
        LE_BITS(NULL, 1, 1, 0, 2, FT_UINT8, BASE_HEX, NULL, "nvme.cmd.fuse_op", "Fuse Operation",                      \
                "1 or 2: first or second of two fused commands."),                                                     \
        LE_BITS(NULL, 1, 1, 2, 4, FT_UINT8, BASE_HEX, NULL, "nvme.cmd.rsvd", "Reserved", "Zero."),                     \
        LE_BITS(NULL, 1, 1, 6, 2, FT_UINT8, BASE_HEX, NULL, "nvme.cmd.psdt", "PRP Or SGL",                             \
                "1: the command uses SGLs, as over fabrics always."),                                                  \
        FIELD_LE(NULL, 2, 2, FT_UINT16, BASE_HEX, NULL, "nvme.cmd.cid", "Command ID",                                  \
                 "Identifier of the command in its queue."),                                                           \
        FIELD_LE(NULL, 4, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.nsid", "Namespace Id",                               \
                 "Namespace; 0xffffffff: all."),                                                                       \
        FIELD_AT(NULL, 8, 8, FT_BYTES, "nvme.cmd.rsvd1", "Reserved", "cdw2 and cdw3."),                                \
        FIELD_LE(NULL, 16, 8, FT_UINT64, BASE_HEX, NULL, "nvme.cmd.mptr", "Metadata Pointer", "Metadata."),            \
        SGL_FIELDS("nvme.cmd.sgl1", sgl_in, sgl_has_address, sgl_is_bucket, sgl_is_keyed, sgl_is_long)

/* A dword of a command, as a number. */
#define DWORD(when, n, name) FIELD_LE(when, 4 * (n), 4, FT_UINT32, BASE_HEX, NULL, name, "DWORD" #n, "cdw" #n ".")
#define LOW_BITS(when, n, shift, bits, name, label, blurb)                                                             \
    LE_BITS(when, 4 * (n), 4, shift, bits, FT_UINT32, BASE_HEX, NULL, name, label, blurb)

#define OPCODE_IS(name, condition)                                                                                     \
    static bool name(const uint8_t *p, uint32_t len)                                                                   \
    {                                                                                                                  \
        return len >= NVME_SQE_LEN && (condition);                                                                     \
    }
OPCODE_IS(io_has_slba, p[0] == 1 || p[0] == 2 || p[0] == 4 || p[0] == 5 || p[0] == 8 || p[0] == 0x0c)
OPCODE_IS(io_is_rw, p[0] == 1 || p[0] == 2)
OPCODE_IS(io_is_other_blocks, io_has_slba(p, len) && !io_is_rw(p, len))
OPCODE_IS(io_is_not_rw, !io_is_rw(p, len))
OPCODE_IS(io_is_dsm, p[0] == 9)
OPCODE_IS(admin_is_identify, p[0] == NVME_ADMIN_IDENTIFY)
OPCODE_IS(admin_is_get_log, p[0] == NVME_ADMIN_GET_LOG)
OPCODE_IS(admin_is_set_features, p[0] == NVME_ADMIN_SET_FEATURES)
OPCODE_IS(admin_is_get_features, p[0] == NVME_ADMIN_GET_FEATURES)
OPCODE_IS(admin_is_other, p[0] != NVME_ADMIN_IDENTIFY && p[0] != NVME_ADMIN_GET_LOG &&
                              p[0] != NVME_ADMIN_SET_FEATURES && p[0] != NVME_ADMIN_GET_FEATURES)
/* Features of NVM sets have values there. */
OPCODE_IS(feature_is_of_set, p[40] >= 0x12 && p[40] <= 0x14)
OPCODE_IS(admin_has_plain_dword11,
          admin_is_other(p, len) || (admin_is_get_features(p, len) && !feature_is_of_set(p, len)) ||
              (admin_is_set_features(p, len) && (p[40] == 0x0d || p[40] == 0x0e || p[40] == 0x16)))
OPCODE_IS(admin_has_dword12, !admin_is_get_log(p, len) && !(admin_is_set_features(p, len) && feature_is_of_set(p, len)))
OPCODE_IS(any_admin, p[0] != NVME_FABRICS)

/* cdw12 counts the blocks from 0. */
static bool nlb_get(bool (*when)(const uint8_t *, uint32_t), const struct pkt *p, const struct layer *l,
                    struct value *v)
{
    const uint8_t *sqe = layer_bytes(p, l);

    if (!when(sqe, l->len))
        return false;
    v->u = (sqe[48] | (uint32_t)sqe[49] << 8) + 1;
    return true;
}
static bool rw_nlb_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    return nlb_get(io_is_rw, p, l, v);
}
static bool other_nlb_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    return nlb_get(io_is_other_blocks, p, l, v);
}

static const struct field nvme_io_cmd_fields[] = {
    COMMON(&nvme_io_opcode_desc),
    FIELD_LE(io_is_rw, 40, 8, FT_UINT64, BASE_HEX, NULL, "nvme.cmd.slba", "Start LBA", "First logical block."),
    FIELD_GET(rw_nlb_get, FT_UINT16, BASE_DEC, NULL, 0, "nvme.cmd.nlb", "Absolute Number of Logical Blocks",
              "Number of logical blocks, from 1."),
    LE_BITS(io_is_rw, 50, 2, 14, 1, FT_UINT16, BASE_HEX, NULL, "nvme.cmd.fua", "Force Unit Access",
            "1: the data are on the medium before the completion."),
    LE_BITS(io_is_rw, 50, 2, 15, 1, FT_UINT16, BASE_HEX, NULL, "nvme.cmd.lr", "Limited Retry", "1: limited retry."),
    LE_BITS(io_is_rw, 50, 2, 0, 10, FT_UINT16, BASE_HEX, NULL, "nvme.cmd.rsvd2", "Reserved", "Reserved."),
    LE_BITS(io_is_rw, 50, 2, 10, 4, FT_UINT16, BASE_HEX, NULL, "nvme.cmd.prinfo", "Protection info fields",
            "What is done with protection information."),
    LE_BITS(io_is_rw, 50, 2, 10, 1, FT_UINT16, BASE_HEX, NULL, "nvme.cmd.prinfo.lbrtag",
            "check Logical block reference tag", "1: it is checked."),
    LE_BITS(io_is_rw, 50, 2, 11, 1, FT_UINT16, BASE_HEX, NULL, "nvme.cmd.prinfo.apptag", "check application tag field",
            "1: it is checked."),
    LE_BITS(io_is_rw, 50, 2, 12, 1, FT_UINT16, BASE_HEX, NULL, "nvme.cmd.prinfo.guard", "check guard field",
            "1: it is checked."),
    LE_BITS(io_is_rw, 50, 2, 13, 1, FT_UINT16, BASE_HEX, NULL, "nvme.cmd.prinfo.action", "action",
            "1: the controller inserts or removes it."),
    FIELD_AT(io_is_rw, 52, 1, FT_NONE, "nvme.cmd.dsm", "DSM Flags", "How the blocks will be used."),
    LE_BITS(io_is_rw, 52, 1, 0, 4, FT_UINT8, BASE_HEX, NULL, "nvme.cmd.dsm.access_freq", "Access frequency",
            "1 typical, 2 rare, 3 rarely written, 4 rarely read, 5 often, 6 once, 7 speculative, 8 soon overwritten."),
    LE_BITS(io_is_rw, 52, 1, 4, 2, FT_UINT8, BASE_HEX, NULL, "nvme.cmd.dsm.access_lat", "Access latency",
            "0 not said, 1 idle, 2 normal, 3 low."),
    LE_BITS(io_is_rw, 52, 1, 6, 1, FT_UINT8, BASE_HEX, NULL, "nvme.cmd.dsm.seq_req", "Sequential Request",
            "1: one of several in a row."),
    LE_BITS(io_is_rw, 52, 1, 7, 1, FT_UINT8, BASE_HEX, NULL, "nvme.cmd.dsm.incompressible", "Incompressible",
            "1: the data cannot be compressed."),
    FIELD_AT(io_is_rw, 53, 3, FT_BYTES, "nvme.cmd.rsvd3", "Reserved", "Reserved."),
    FIELD_LE(io_is_rw, 56, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.eilbrt",
             "Expected Initial Logical Block Reference Tag", "Of protection information."),
    FIELD_LE(io_is_rw, 60, 2, FT_UINT16, BASE_HEX, NULL, "nvme.cmd.elbat", "Expected Logical Block Application Tag",
             "Of protection information."),
    FIELD_LE(io_is_rw, 62, 2, FT_UINT16, BASE_HEX, NULL, "nvme.cmd.elbatm",
             "Expected Logical Block Application Tag Mask", "Bits of it that are compared."),
    FIELD_LE(io_is_other_blocks, 40, 8, FT_UINT64, BASE_HEX, NULL, "rdma.nvme.slba", "Start LBA",
             "First logical block of a command other than Read and Write."),
    FIELD_GET(other_nlb_get, FT_UINT16, BASE_DEC, NULL, 0, "rdma.nvme.nlb", "Number of Logical Blocks",
              "Number of logical blocks, from 1, likewise."),
    DWORD(io_is_not_rw, 10, "nvme.cmd.dword10"),
    DWORD(io_is_not_rw, 11, "nvme.cmd.dword11"),
    DWORD(io_is_not_rw, 12, "nvme.cmd.dword12"),
    DWORD(io_is_not_rw, 13, "nvme.cmd.dword13"),
    DWORD(io_is_not_rw, 14, "nvme.cmd.dword14"),
    DWORD(io_is_not_rw, 15, "nvme.cmd.dword15"),
    FIELD_LE(io_is_dsm, 40, 1, FT_UINT8, BASE_DEC, NULL, "rdma.nvme.dsm.nr", "Number of Ranges",
             "Ranges of a Dataset Management command minus one."),
    LE_BITS(io_is_dsm, 44, 4, 2, 1, FT_UINT32, BASE_DEC, NULL, "rdma.nvme.dsm.ad", "Deallocate",
            "1: the ranges may be deallocated."),
};
HDR(nvme_io_cmd, "nvme.cmd", "NVM Express (I/O command)", "nvme", NVME_SQE_LEN);

static const struct vname selects[] = {{0, "current"}, {1, "default"}, {2, "saved"}, {3, "capabilities"}};
static const struct vdesc select_desc = VDESC_NAMES(selects);

static const struct field nvme_admin_cmd_fields[] = {
    COMMON(&nvme_admin_opcode_desc),
    FIELD_LE(admin_is_identify, 40, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.identify.dword10", "DWORD10", "cdw10."),
    LE_BITS(admin_is_identify, 40, 4, 0, 8, FT_UINT32, BASE_HEX, &nvme_cns_desc, "nvme.cmd.identify.dword10.cns",
            "Controller or Namespace Structure (CNS)", "What is to be identified."),
    LE_BITS(admin_is_identify, 40, 4, 16, 16, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.identify.dword10.cntid",
            "Controller Identifier (CNTID)", "Controller, if the structure is one of a controller."),
    LOW_BITS(admin_is_identify, 10, 8, 8, "nvme.cmd.identify.dword10.rsvd", "Reserved", "Reserved."),
    DWORD(admin_is_identify, 11, "nvme.cmd.identify.dword11"),
    LOW_BITS(admin_is_identify, 11, 0, 16, "nvme.cmd.identify.dwrod11.nvmesetid", "NVM Set Identifier (NVMSETID)",
             "Which NVM set."),
    LOW_BITS(admin_is_identify, 11, 16, 16, "nvme.cmd.identify.dword11.rsvd", "Reserved", "Reserved."),
    DWORD(admin_is_identify, 14, "nvme.cmd.identify.dword14"),
    LOW_BITS(admin_is_identify, 14, 0, 7, "nvme.cmd.identify.dword14.uuid_index", "UUID Index", "Of the UUID list."),
    LOW_BITS(admin_is_identify, 14, 7, 25, "nvme.cmd.identify.dword14.rsvd", "Reserved", "Reserved."),
    FIELD_LE(admin_is_get_log, 40, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.get_logpage.dword10", "DWORD 10", "cdw10."),
    LE_BITS(admin_is_get_log, 40, 4, 0, 8, FT_UINT32, BASE_DEC, &nvme_log_desc, "nvme.cmd.get_logpage.dword10.id",
            "Log Page Identifier (LID)", "Which log page."),
    LE_BITS(admin_is_get_log, 40, 4, 15, 1, FT_BOOL, BASE_NONE, NULL, "nvme.cmd.get_logpage.dword10.rae",
            "Retain Asynchronous Event (RAE)", "Reading the page does not clear its event."),
    LE_BITS(admin_is_get_log, 40, 4, 16, 16, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.get_logpage.dword10.numdl",
            "Number of Dwords Lower (NUMDL)", "Lower half of the number of dwords minus one."),
    LOW_BITS(admin_is_get_log, 10, 8, 5, "nvme.cmd.get_logpage.dword10.lsp", "Log Specific Field (LSP)",
             "Depends on the page."),
    LOW_BITS(admin_is_get_log, 10, 13, 2, "nvme.cmd.get_logpage.dword10.rsvd", "Reserved", "Reserved."),
    DWORD(admin_is_get_log, 11, "nvme.cmd.get_logpage.dword11"),
    LOW_BITS(admin_is_get_log, 11, 16, 16, "nvme.cmd.get_logpage.dword11.lsi", "Log Specific Identifier",
             "Depends on the page."),
    DWORD(admin_is_get_log, 14, "nvme.cmd.get_logpage.dword14"),
    LOW_BITS(admin_is_get_log, 14, 0, 6, "nvme.cmd.identify.get_logpage.dword14.uuid_index", "UUID Index",
             "Of the UUID list."),
    LOW_BITS(admin_is_get_log, 14, 6, 26, "nvme.cmd.identify.get_logpage.dword14.rsvd", "Reserved", "Reserved."),
    FIELD_LE(admin_is_get_log, 42, 4, FT_UINT32, BASE_DEC, NULL, "nvme.cmd.get_logpage.numd", "Number of Dwords",
             "Number of dwords minus one."),
    LE_BITS(admin_is_get_log, 44, 4, 0, 16, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.get_logpage.dword11.numdu",
            "Number of Dwords Upper (NUMDU)", "Upper half of it."),
    FIELD_LE(admin_is_get_log, 48, 8, FT_UINT64, BASE_DEC, NULL, "nvme.cmd.get_logpage.lpo", "Log Page Offset",
             "Byte of the log page with which the data begin."),
    FIELD_LE(admin_is_set_features, 40, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.set_features.dword10", "DWORD 10",
             "cdw10."),
    LE_BITS(admin_is_set_features, 40, 4, 0, 8, FT_UINT32, BASE_HEX, &nvme_feature_desc,
            "nvme.cmd.set_features.dword10.fid", "Feature Identifier", "Which feature."),
    LE_BITS(admin_is_set_features, 40, 4, 31, 1, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.set_features.dword10.sv", "Save",
            "1: the value outlasts a power cycle."),
    LOW_BITS(admin_is_set_features, 10, 8, 23, "nvme.cmd.set_features.dword10.rsvd", "Reserved", "Reserved."),
    DWORD(admin_is_set_features, 14, "nvme.cmd.set_features.dword14"),
    LOW_BITS(admin_is_set_features, 14, 0, 7, "nvme.cmd.set_features.dword14.uuid", "UUID Index", "Of the UUID list."),
    LOW_BITS(admin_is_set_features, 14, 7, 25, "nvme.cmd.set_features.dword14.rsvd", "Reserved", "Reserved."),
    FIELD_LE(admin_is_set_features, 44, 4, FT_UINT32, BASE_HEX, NULL, "rdma.nvme.set_features.value", "Value",
             "cdw11: the value of the feature."),
    LE_BITS(admin_is_get_features, 40, 4, 0, 8, FT_UINT32, BASE_HEX, &nvme_feature_desc,
            "nvme.cmd.get_features.dword10.fid", "Feature Identifier", "Which feature."),
    DWORD(admin_is_get_features, 10, "nvme.cmd.get_features.dword10"),
    LE_BITS(admin_is_get_features, 40, 4, 8, 3, FT_UINT32, BASE_HEX, &select_desc, "nvme.cmd.set_features.dword10.sel",
            "Select", "Which value; tshark names it so."),
    LOW_BITS(admin_is_get_features, 10, 11, 21, "nvme.cmd.get_features.dword10.rsvd", "Reserved", "Reserved."),
    DWORD(admin_is_get_features, 14, "nvme.cmd.get_features.dword14"),
    LOW_BITS(admin_is_get_features, 14, 0, 7, "nvme.cmd.get_features.dword14.uuid", "UUID Index", "Of the UUID list."),
    LOW_BITS(admin_is_get_features, 14, 7, 25, "nvme.cmd.get_features.dword14.rsvd", "Reserved", "Reserved."),
    DWORD(admin_has_plain_dword11, 11, "nvme.cmd.dword11"),
    DWORD(admin_is_other, 10, "nvme.cmd.dword10"),
    DWORD(admin_has_dword12, 12, "nvme.cmd.dword12"),
    DWORD(any_admin, 13, "nvme.cmd.dword13"),
    DWORD(admin_is_other, 14, "nvme.cmd.dword14"),
    DWORD(any_admin, 15, "nvme.cmd.dword15"),
};
HDR(nvme_admin_cmd, "nvme.cmd", "NVM Express (admin command)", "nvme", NVME_SQE_LEN);

OPCODE_IS(is_connect, p[4] == NVME_FCTYPE_CONNECT)
OPCODE_IS(is_property, p[4] == NVME_FCTYPE_PROP_GET || p[4] == NVME_FCTYPE_PROP_SET)
OPCODE_IS(is_prop_set, p[4] == NVME_FCTYPE_PROP_SET)
OPCODE_IS(is_prop_get, p[4] == NVME_FCTYPE_PROP_GET)
OPCODE_IS(is_short_prop_set, is_prop_set(p, len) && (p[40] & 7) == 0)
OPCODE_IS(is_auth, p[4] == NVME_FCTYPE_AUTH_SEND || p[4] == NVME_FCTYPE_AUTH_RECEIVE)
OPCODE_IS(is_disconnect, p[4] == NVME_FCTYPE_DISCONNECT)
OPCODE_IS(is_connect_or_auth, is_connect(p, len) || is_auth(p, len))
#define FABRICS_SGL(name)                                                                                              \
    static bool fabrics_##name(const uint8_t *p, uint32_t len)                                                         \
    {                                                                                                                  \
        return is_connect_or_auth(p, len) && sgl_##name(p, len);                                                       \
    }
FABRICS_SGL(has_address)
FABRICS_SGL(is_bucket)
FABRICS_SGL(is_keyed)
FABRICS_SGL(is_long)

static const struct field nvme_fabrics_cmd_fields[] = {
    FIELD_AT(NULL, 0, 1, FT_BYTES, "nvme.fabrics.cmd.opc", "Opcode", "0x7f: fabrics command."),
    FIELD_LE(NULL, 1, 1, FT_UINT8, BASE_HEX, NULL, "nvme.fabrics.cmd.rsvd", "Flags", "0x40: an SGL."),
    FIELD_LE(NULL, 2, 2, FT_UINT16, BASE_HEX, NULL, "nvme.fabrics.cmd.cid", "Command Identifier",
             "Identifier of the command in its queue."),
    FIELD_LE(NULL, 4, 1, FT_UINT8, BASE_HEX, &nvme_fctype_desc, "nvme.fabrics.cmd.fctype", "Fabric Command Type",
             "Which fabrics command."),
    FIELD_AT(is_connect, 5, 19, FT_BYTES, "nvme.fabrics.cmd.connect.rsvd1", "Reserved", "Reserved."),
    SGL_FIELDS("rdma.nvme.fabrics.sgl1", is_connect_or_auth, fabrics_has_address, fabrics_is_bucket, fabrics_is_keyed,
               fabrics_is_long),
    FIELD_AT(is_connect, 24, 16, FT_NONE, "nvme.fabrics.cmd.connect.sgl1", "SGL1", "Likewise."),
    FIELD_LE(is_connect, 40, 2, FT_UINT16, BASE_DEC, NULL, "nvme.fabrics.cmd.connect.recfmt", "Record Format", "0."),
    FIELD_LE(is_connect, 42, 2, FT_UINT16, BASE_DEC, NULL, "nvme.fabrics.cmd.connect.qid", "Queue ID",
             "0: the admin queue."),
    FIELD_LE(is_connect, 44, 2, FT_UINT16, BASE_DEC, NULL, "nvme.fabrics.cmd.connect.sqsize", "Submission Queue Size",
             "Entries of the queue minus one."),
    FIELD_LE(is_connect, 46, 1, FT_UINT8, BASE_HEX, NULL, "nvme.fabrics.cmd.connect.cattr", "Connect Attributes",
             "Attributes of the connection."),
    LE_BITS(is_connect, 46, 1, 0, 2, FT_UINT8, BASE_HEX, NULL, "nvme.fabrics.cmd.connect.cattr.pc", "Priority Class",
            "0 urgent to 3 low."),
    LE_BITS(is_connect, 46, 1, 2, 1, FT_UINT8, BASE_HEX, NULL, "nvme.fabrics.cmd.connect.cattr.dfc",
            "Disable SQ Flow Control", "1: no flow control by the SQ head."),
    LE_BITS(is_connect, 46, 1, 3, 1, FT_UINT8, BASE_HEX, NULL, "nvme.fabrics.cmd.connect.cattr.dioq",
            "Support Deletion of IO Queues", "1: I/O queues may be deleted one by one."),
    LE_BITS(is_connect, 46, 1, 4, 4, FT_UINT8, BASE_HEX, NULL, "nvme.fabrics.cmd.connect.cattr.rsvd", "Reserved",
            "Reserved."),
    FIELD_AT(is_connect, 47, 1, FT_BYTES, "nvme.fabrics.cmd.connect.rsvd2", "Reserved", "Reserved."),
    FIELD_AT(is_connect, 52, 12, FT_BYTES, "nvme.fabrics.cmd.connect.rsvd3", "Reserved", "Reserved."),
    FIELD_LE(is_connect, 48, 4, FT_UINT32, BASE_DEC, NULL, "nvme.fabrics.cmd.connect.kato", "Keep Alive Timeout",
             "Milliseconds; 0: none."),
    FIELD_AT(is_property, 5, 35, FT_BYTES, "nvme.fabrics.cmd.prop_get_set.rsvd0", "Reserved", "Reserved."),
    LE_BITS(is_property, 40, 1, 0, 3, FT_UINT8, BASE_HEX, NULL, "nvme.fabrics.cmd.prop_get_set.attrib", "Attributes",
            "The size."),
    LE_BITS(is_property, 40, 1, 3, 5, FT_UINT8, BASE_HEX, NULL, "nvme.fabrics.cmd.prop_get_set.attrib.rsvd", "Reserved",
            "Reserved."),
    FIELD_AT(is_property, 41, 3, FT_BYTES, "nvme.fabrics.cmd.prop_get_set.rsvd1", "Reserved", "Reserved."),
    FIELD_AT(is_prop_get, 48, 16, FT_BYTES, "nvme.fabrics.cmd.prop_get.rsvd2", "Reserved", "Reserved."),
    FIELD_LE(is_short_prop_set, 52, 4, FT_UINT32, BASE_HEX, NULL, "nvme.fabrics.prop_get_set.data.rsvd", "Reserved",
             "Of a property of 4 bytes."),
    FIELD_AT(is_prop_set, 56, 8, FT_BYTES, "nvme.fabrics.cmd.prop_set.rsvd", "Reserved", "Reserved."),
    FIELD_AT(is_auth, 5, 19, FT_BYTES, "nvme.fabrics.cmd.auth.rsvd1", "Reserved", "Reserved."),
    FIELD_AT(is_auth, 24, 16, FT_NONE, "nvme.fabrics.cmd.auth.sgl1", "SGL1", "The SGL descriptor."),
    FIELD_LE(is_auth, 40, 1, FT_UINT8, BASE_HEX, NULL, "nvme.fabrics.cmd.auth.rsvd2", "Reserved", "Reserved."),
    FIELD_LE(is_auth, 41, 1, FT_UINT8, BASE_HEX, NULL, "nvme.fabrics.cmd.auth.spsp0", "SP Specific 0", "1."),
    FIELD_LE(is_auth, 42, 1, FT_UINT8, BASE_HEX, NULL, "nvme.fabrics.cmd.auth.spsp1", "SP Specific 1", "1."),
    FIELD_LE(is_auth, 43, 1, FT_UINT8, BASE_HEX, NULL, "nvme.fabrics.cmd.auth.secp", "Security Protocol",
             "0xe9: that of NVMe."),
    FIELD_LE(is_auth, 44, 4, FT_UINT32, BASE_DEC, NULL, "nvme.fabrics.cmd.auth.al", "Allocation Length",
             "Bytes of the message, or room for it."),
    FIELD_AT(is_auth, 48, 16, FT_BYTES, "nvme.fabrics.cmd.auth.rsvd3", "Reserved", "Reserved."),
    FIELD_AT(is_disconnect, 5, 35, FT_BYTES, "nvme.fabrics.cmd.disconnect.rsvd0", "Reserved", "Reserved."),
    FIELD_LE(is_disconnect, 40, 2, FT_UINT16, BASE_DEC, NULL, "nvme.fabrics.cmd.disconnect.recfmt", "Record Format",
             "0."),
    FIELD_AT(is_disconnect, 42, 22, FT_BYTES, "nvme.fabrics.cmd.disconnect.rsvd1", "Reserved", "Reserved."),
    LE_BITS(is_property, 40, 1, 0, 3, FT_UINT8, BASE_HEX, NULL, "nvme.fabrics.cmd.prop_get_set.attrib.size",
            "Property Size", "0: 4 bytes, 1: 8 bytes."),
    FIELD_LE(is_property, 44, 4, FT_UINT32, BASE_HEX, &nvme_property_desc, "nvme.fabrics.cmd.prop_get_set.offset",
             "Offset", "Which property."),
    FIELD_AT(is_prop_set, 48, 8, FT_BYTES, "nvme.fabrics.prop_get_set.data", "Property Data", "The value, 8 bytes."),
};
HDR(nvme_fabrics_cmd, "nvme.fabrics.cmd", "NVM Express Fabrics RDMA (command)", "nvme-rdma", NVME_SQE_LEN);

/* --- Completions ------------------------------------------------------------------------------ */

/* `bit0`: row of the bit that is the phase in PCIe. */
#define CQE_FIELDS(bit0)                                                                                               \
    FIELD_LE(NULL, 8, 2, FT_UINT16, BASE_HEX, NULL, "nvme.cqe.sqhd", "SQ Head Pointer",                                \
             "The controller has taken the entries before this one; 0xffff: no flow control."),                        \
        FIELD_LE(NULL, 10, 2, FT_UINT16, BASE_HEX, NULL, "nvme.cqe.sqid", "SQ Identifier", "0 over fabrics."),         \
        FIELD_LE(NULL, 12, 2, FT_UINT16, BASE_HEX, NULL, "nvme.cqe.cid", "Command Identifier",                         \
                 "Command that is completed."),                                                                        \
        FIELD_LE(NULL, 14, 2, FT_UINT16, BASE_HEX, NULL, "nvme.cqe.status", "Status Field", "Status, with bit 0."),    \
        LE_BITS(NULL, 14, 2, 0, 1, FT_UINT16, BASE_HEX, NULL, bit0, "Bit 0", "Not used over fabrics."),                \
        LE_BITS(NULL, 14, 2, 1, 8, FT_UINT16, BASE_HEX, NULL, "nvme.cqe.status.sc", "Status Code",                     \
                "Status code of its type."),                                                                           \
        LE_BITS(NULL, 14, 2, 9, 3, FT_UINT16, BASE_HEX, &nvme_sct_desc, "nvme.cqe.status.sct", "Status Code Type",     \
                "Type of the status code."),                                                                           \
        LE_BITS(NULL, 14, 2, 12, 2, FT_UINT16, BASE_HEX, NULL, "nvme.cqe.status.crd", "Command Retry Delay",           \
                "Which of the controller's delays before a retry."),                                                   \
        LE_BITS(NULL, 14, 2, 14, 1, FT_BOOL, BASE_NONE, NULL, "nvme.cqe.status.m", "More Information in Log Page",     \
                "The error log has more."),                                                                            \
        LE_BITS(NULL, 14, 2, 15, 1, FT_BOOL, BASE_NONE, NULL, "nvme.cqe.status.dnr", "Do not Retry",                   \
                "The same command would fail again.")

static const struct field nvme_cqe_fields[] = {
    CMD_IN("nvme.cmd_pkt", "nvme.cmd_latency"),
    FIELD_LE(NULL, 0, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cqe.dword0", "DWORD0", "Result, lower half."),
    FIELD_LE(NULL, 4, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cqe.dword1", "DWORD1", "Result, upper half."),
    CQE_FIELDS("nvme.cqe.status.p"),
};
HDR(nvme_cqe, "nvme.cqe", "NVM Express (completion)", "nvme", NVME_CQE_LEN);

static const struct field nvme_connect_cqe_fields[] = {
    CMD_IN("nvme.fabrics.cmd_pkt", "nvme.fabrics.cmd_latency"),
    FIELD_LE(NULL, 0, 2, FT_UINT16, BASE_HEX, NULL, "nvme.fabrics.cqe.connect.cntrlid", "Controller ID",
             "Controller; of a refused Connect the offset of the wrong parameter."),
    FIELD_LE(NULL, 2, 2, FT_UINT16, BASE_HEX, NULL, "nvme.fabrics.cqe.connect.authreq", "Authentication Required",
             "Not 0: authentication is required; of a refused Connect: 1 if the parameter is in the data."),
    FIELD_AT(NULL, 4, 4, FT_BYTES, "nvme.fabrics.cqe.connect.rsvd", "Reserved", "Reserved."),
    CQE_FIELDS("nvme.cqe.status.rsvd"),
};
HDR(nvme_connect_cqe, "nvme.fabrics.cqe", "NVM Express Fabrics RDMA (Connect completion)", "nvme-rdma", NVME_CQE_LEN);

static const struct field nvme_prop_get_cqe_fields[] = {
    CMD_IN("nvme.fabrics.cmd_pkt", "nvme.fabrics.cmd_latency"),
    FIELD_AT(NULL, 0, 8, FT_BYTES, "nvme.fabrics.prop_get_set.data", "Property Data", "The value, 8 bytes."),
    CQE_FIELDS("nvme.cqe.status.rsvd"),
};
HDR(nvme_prop_get_cqe, "nvme.fabrics.cqe", "NVM Express Fabrics RDMA (Property Get completion)", "nvme-rdma",
    NVME_CQE_LEN);

static const struct field nvme_prop_set_cqe_fields[] = {
    CMD_IN("nvme.fabrics.cmd_pkt", "nvme.fabrics.cmd_latency"),
    FIELD_AT(NULL, 0, 8, FT_BYTES, "nvme.fabrics.cqe.prop_set.rsvd", "Reserved", "Zero."),
    CQE_FIELDS("nvme.cqe.status.rsvd"),
};
HDR(nvme_prop_set_cqe, "nvme.fabrics.cqe", "NVM Express Fabrics RDMA (Property Set completion)", "nvme-rdma",
    NVME_CQE_LEN);

static const struct field nvme_fabrics_cqe_fields[] = {
    CMD_IN("nvme.fabrics.cmd_pkt", "nvme.fabrics.cmd_latency"),
    FIELD_LE(NULL, 0, 8, FT_UINT64, BASE_HEX, NULL, "nvme.fabrics.cqe.sts", "Command specific status", "Result."),
    CQE_FIELDS("nvme.cqe.status.rsvd"),
};
HDR(nvme_fabrics_cqe, "nvme.fabrics.cqe", "NVM Express Fabrics RDMA (completion)", "nvme-rdma", NVME_CQE_LEN);

/* --- Private data of CM ----------------------------------------------------------------------- */

static const struct vname rej_statuses[] = {{1, "invalid length"},
                                            {2, "invalid record format"},
                                            {3, "invalid queue id"},
                                            {4, "invalid host send queue size"},
                                            {5, "invalid host receive queue size"},
                                            {6, "no resources"},
                                            {7, "invalid IRD"},
                                            {8, "invalid ORD"},
                                            {9, "invalid controller id"}};
static const struct vdesc rej_desc = VDESC_NAMES(rej_statuses);

const char *nvme_refusal_str(const struct ulp_body *body)
{
    return body->len >= 4 ? vname_find(rej_statuses, ARRAY_LEN(rej_statuses), load_le16(body->b + 2)) : NULL;
}

static const struct field nvme_rdma_req_fields[] = {
    FIELD_LE(NULL, 0, 2, FT_UINT16, BASE_DEC, NULL, "nvme-rdma.cm.req.recfmt", "Record Format", "0."),
    FIELD_LE(NULL, 2, 2, FT_UINT16, BASE_HEX, NULL, "nvme-rdma.cm.req.qid", "Queue Id", "0: the admin queue."),
    FIELD_LE(NULL, 4, 2, FT_UINT16, BASE_DEC, NULL, "nvme-rdma.cm.req.hrqsize", "RDMA QP Host Receive Queue Size",
             "Receives that the host posts."),
    FIELD_LE(NULL, 6, 2, FT_UINT16, BASE_DEC, NULL, "nvme-rdma.cm.req.hsqsize", "RDMA QP Host Send Queue Size",
             "Entries of the submission queue minus one."),
    FIELD_LE(NULL, 8, 2, FT_UINT16, BASE_HEX, NULL, "nvme-rdma.cm.req.cntlid", "Controller ID",
             "Controller of an I/O queue; 0 from hosts that do not state it."),
    FIELD_AT(NULL, 10, 22, FT_BYTES, "nvme-rdma.cm.req.reserved", "Reserved", "Reserved."),
};
UPPER_HDR(nvme_rdma_req, "rdma.nvme.cm.req", "NVM Express Fabrics RDMA (private data)", "nvme-rdma", NULL, 32);

static const struct field nvme_rdma_rep_fields[] = {
    FIELD_LE(NULL, 0, 2, FT_UINT16, BASE_DEC, NULL, "nvme-rdma.cm.rsp.recfmt", "Record Format", "0."),
    FIELD_LE(NULL, 2, 2, FT_UINT16, BASE_DEC, NULL, "nvme-rdma.cm.rsp.crqsize", "RDMA QP Controller Receive Queue Size",
             "Receives that the controller posts."),
    FIELD_AT(NULL, 4, 28, FT_BYTES, "nvme-rdma.cm.rsp.reserved", "Reserved", "Reserved."),
};
UPPER_HDR(nvme_rdma_rep, "rdma.nvme.cm.rsp", "NVM Express Fabrics RDMA (private data)", "nvme-rdma", NULL, 32);

static const struct field nvme_rdma_rej_fields[] = {
    FIELD_LE(NULL, 0, 2, FT_UINT16, BASE_DEC, NULL, "nvme-rdma.cm.rej.recfmt", "Record Format", "0."),
    FIELD_LE(NULL, 2, 2, FT_UINT16, BASE_DEC, &rej_desc, "nvme-rdma.cm.rej.status", "Status",
             "Why the controller refused."),
};
UPPER_HDR(nvme_rdma_rej, "rdma.nvme.cm.rej", "NVM Express Fabrics RDMA (private data)", "nvme-rdma", NULL, 4);

/* --- Layers ----------------------------------------------------------------------------------- */

void nvme_queue_layer(struct pkt *p)
{
    if (p && p->n_layers < PKT_LAYERS - 8)
        p->layers[p->n_layers++] =
            (struct layer){.hdr = &nvme_rdma_hdr, .off = p->have & H_BTH ? p->payload_off : 0, .len = 0};
}

/* The value that a whole command has. */
static void command_value_layers(struct pkt *p, const struct ulp_body *m, bool admin)
{
    struct nvme_cmd c;

    nvme_cmd_get(&c, m->b);
    if (c.opc == NVME_FABRICS && c.fctype == NVME_FCTYPE_PROP_SET)
        nvme_property_layer(p, m, 48, c.cdw[1]);
    else if (admin && (c.opc == NVME_ADMIN_SET_FEATURES || c.opc == NVME_ADMIN_GET_FEATURES))
        nvme_feature_command_layers(p, m, &c);
}

void nvme_command_layers(struct pkt *p, const struct ulp_body *m, bool admin)
{
    const struct hdr *h = m->len && m->b[0] == NVME_FABRICS ? &nvme_fabrics_cmd_hdr
                          : admin                           ? &nvme_admin_cmd_hdr
                                                            : &nvme_io_cmd_hdr;

    ulp_layer(p, h, m, 0, NVME_SQE_LEN);
    if (m->len >= NVME_SQE_LEN)
        command_value_layers(p, m, admin);
}

/* The property that a Property Get returned, if it was `done`. */
static void returned_layers(struct pkt *p, const struct ulp_body *m, const struct nvme_cmd *c, bool done)
{
    unsigned len = done ? nvme_property_layer(p, m, 0, c->cdw[1]) : 0;

    if (len == 0)
        ulp_layer(p, &nvme_other_hdr, m, 0, 8);
    else if (len == 4)
        ulp_layer(p, &nvme_short_hdr, m, 4, 4);
}

void nvme_response_layers(struct pkt *p, const struct ulp_body *m, const struct nvme_cmd *c, bool admin)
{
    const struct hdr *h = &nvme_cqe_hdr;
    bool done;

    if (c && c->opc == NVME_FABRICS)
        h = c->fctype == NVME_FCTYPE_CONNECT    ? &nvme_connect_cqe_hdr
            : c->fctype == NVME_FCTYPE_PROP_GET ? &nvme_prop_get_cqe_hdr
            : c->fctype == NVME_FCTYPE_PROP_SET ? &nvme_prop_set_cqe_hdr
                                                : &nvme_fabrics_cqe_hdr;
    ulp_layer(p, h, m, 0, NVME_CQE_LEN);
    if (m->len < NVME_CQE_LEN || !c)
        return;
    done = !(m->b[14] >> 1 | m->b[15]);
    if (h == &nvme_prop_get_cqe_hdr)
        returned_layers(p, m, c, done);
    else if (done && admin && (c->opc == NVME_ADMIN_SET_FEATURES || c->opc == NVME_ADMIN_GET_FEATURES))
        nvme_feature_response_layers(p, m, c);
    else if (admin && c->opc == NVME_ADMIN_AER)
        ulp_layer(p, &nvme_event_hdr, m, 0, nvme_event_hdr.len);
}

void nvme_private_layers(struct pkt *p, const struct ulp_body *m, enum nvme_private which)
{
    static const struct hdr *const hdrs[] = {&nvme_rdma_req_hdr, &nvme_rdma_rep_hdr, &nvme_rdma_rej_hdr};

    ulp_layer(p, hdrs[which], m, 0, which == NVME_REJ ? 4 : 32);
}
