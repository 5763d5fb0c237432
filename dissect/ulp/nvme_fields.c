/* layer 1 (wire): NVMe over RDMA: fields of commands and completions, private data of CM. */
#include "dissect/ulp/nvme.h"
#include "dissect/ulp/upper_hdr.h"

#define HDR(id, filter_name, title, protocol, bytes) UPPER_HDR(id, filter_name, title, protocol, "NVMe", bytes)

/* What the note of the packet says of the command. */
static bool cmd_in_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = p->note.ulp_command_in;
    return p->note.have & NOTE_ULP && v->u;
}
#define CMD_IN(name)                                                                                                   \
    FIELD_GET(cmd_in_get, FT_FRAMENUM, BASE_DEC, NULL, 0, name, "Cmd in", "Frame of the command that is completed.")

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
/* tshark reads every descriptor but one of type 0, subtype 1 (in the capsule) as a keyed one. */
static bool sgl_is_offset(const uint8_t *p, uint32_t len)
{
    return sgl_in(p, len) && p[39] == 0x01;
}
static bool sgl_is_keyed(const uint8_t *p, uint32_t len)
{
    return sgl_in(p, len) && p[39] != 0x01;
}

#define SGL_FIELDS(keyed, offset, any)                                                                                 \
    LE_BITS(any, 39, 1, 4, 4, FT_UINT8, BASE_HEX, &sgl_type_desc, "nvme.cmd.sgl.type", "Descriptor Type",              \
            "Type of the SGL descriptor."),                                                                            \
        LE_BITS(any, 39, 1, 0, 4, FT_UINT8, BASE_HEX, &sgl_subtype_desc, "nvme.cmd.sgl.subtype",                       \
                "Descriptor Sub Type", "Subtype; 15 of a keyed one: the controller invalidates the key."),             \
        FIELD_LE(keyed, 24, 8, FT_UINT64, BASE_HEX, NULL, "nvme.cmd.sgl1.addr", "Address",                             \
                 "Address in the host's memory."),                                                                     \
        FIELD_LE(keyed, 32, 3, FT_UINT24, BASE_DEC, NULL, "nvme.cmd.sgl1.len", "Length", "Bytes."),                    \
        FIELD_LE(keyed, 35, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.sgl1.key", "Key", "R_Key of the host's memory."),  \
        FIELD_LE(offset, 24, 8, FT_UINT64, BASE_HEX, NULL, "nvme.cmd.sgl1.addr", "Offset",                             \
                 "Offset of the data in the capsule, from its byte 64."),                                              \
        FIELD_LE(offset, 32, 4, FT_UINT32, BASE_DEC, NULL, "nvme.cmd.sgl1.len", "Length", "Bytes in the capsule.")

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
        FIELD_LE(NULL, 16, 8, FT_UINT64, BASE_HEX, NULL, "nvme.cmd.mptr", "Metadata Pointer", "Metadata."),            \
        SGL_FIELDS(sgl_is_keyed, sgl_is_offset, sgl_in)

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
OPCODE_IS(admin_is_set_features, p[0] == 9)
OPCODE_IS(admin_is_get_features, p[0] == 0x0a)
OPCODE_IS(admin_is_other, p[0] != NVME_ADMIN_IDENTIFY && p[0] != NVME_ADMIN_GET_LOG && p[0] != 9 && p[0] != 0x0a)

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
    FIELD_LE(io_is_other_blocks, 40, 8, FT_UINT64, BASE_HEX, NULL, "rdma.nvme.slba", "Start LBA",
             "First logical block of a command other than Read and Write."),
    FIELD_GET(other_nlb_get, FT_UINT16, BASE_DEC, NULL, 0, "rdma.nvme.nlb", "Number of Logical Blocks",
              "Number of logical blocks, from 1, likewise."),
    FIELD_LE(io_is_not_rw, 40, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.dword10", "DWORD10", "cdw10."),
    FIELD_LE(io_is_not_rw, 44, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.dword11", "DWORD11", "cdw11."),
    FIELD_LE(io_is_dsm, 40, 1, FT_UINT8, BASE_DEC, NULL, "rdma.nvme.dsm.nr", "Number of Ranges",
             "Ranges of a Dataset Management command minus one."),
    LE_BITS(io_is_dsm, 44, 4, 2, 1, FT_UINT32, BASE_DEC, NULL, "rdma.nvme.dsm.ad", "Deallocate",
            "1: the ranges may be deallocated."),
};
HDR(nvme_io_cmd, "nvme.cmd", "NVM Express (I/O command)", "nvme", NVME_SQE_LEN);

static const struct field nvme_admin_cmd_fields[] = {
    COMMON(&nvme_admin_opcode_desc),
    FIELD_LE(admin_is_identify, 40, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.identify.dword10", "DWORD10", "cdw10."),
    LE_BITS(admin_is_identify, 40, 4, 0, 8, FT_UINT32, BASE_HEX, &nvme_cns_desc, "nvme.cmd.identify.dword10.cns",
            "Controller or Namespace Structure (CNS)", "What is to be identified."),
    LE_BITS(admin_is_identify, 40, 4, 16, 16, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.identify.dword10.cntid",
            "Controller Identifier (CNTID)", "Controller, if the structure is one of a controller."),
    FIELD_LE(admin_is_get_log, 40, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.get_logpage.dword10", "DWORD 10", "cdw10."),
    LE_BITS(admin_is_get_log, 40, 4, 0, 8, FT_UINT32, BASE_DEC, &nvme_log_desc, "nvme.cmd.get_logpage.dword10.id",
            "Log Page Identifier (LID)", "Which log page."),
    LE_BITS(admin_is_get_log, 40, 4, 15, 1, FT_BOOL, BASE_NONE, NULL, "nvme.cmd.get_logpage.dword10.rae",
            "Retain Asynchronous Event (RAE)", "Reading the page does not clear its event."),
    LE_BITS(admin_is_get_log, 40, 4, 16, 16, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.get_logpage.dword10.numdl",
            "Number of Dwords Lower (NUMDL)", "Lower half of the number of dwords minus one."),
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
    FIELD_LE(admin_is_set_features, 44, 4, FT_UINT32, BASE_HEX, NULL, "rdma.nvme.set_features.value", "Value",
             "cdw11: the value of the feature."),
    LE_BITS(admin_is_get_features, 40, 4, 0, 8, FT_UINT32, BASE_HEX, &nvme_feature_desc,
            "nvme.cmd.get_features.dword10.fid", "Feature Identifier", "Which feature."),
    LE_BITS(admin_is_get_features, 40, 4, 8, 3, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.get_features.dword10.sel",
            "Select", "0 current, 1 default, 2 saved value, 3 capabilities."),
    FIELD_LE(admin_is_get_features, 44, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.dword11", "DWORD11", "cdw11."),
    FIELD_LE(admin_is_other, 40, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.dword10", "DWORD10", "cdw10."),
    FIELD_LE(admin_is_other, 44, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cmd.dword11", "DWORD11", "cdw11."),
};
HDR(nvme_admin_cmd, "nvme.cmd", "NVM Express (admin command)", "nvme", NVME_SQE_LEN);

OPCODE_IS(is_connect, p[4] == NVME_FCTYPE_CONNECT)
OPCODE_IS(is_property, p[4] == NVME_FCTYPE_PROP_GET || p[4] == NVME_FCTYPE_PROP_SET)
OPCODE_IS(is_prop_set, p[4] == NVME_FCTYPE_PROP_SET)
OPCODE_IS(connect_keyed, is_connect(p, len) && p[39] != 0x01)
OPCODE_IS(connect_offset, is_connect(p, len) && p[39] == 0x01)

static const struct field nvme_fabrics_cmd_fields[] = {
    FIELD_AT(NULL, 0, 1, FT_BYTES, "nvme.fabrics.cmd.opc", "Opcode", "0x7f: fabrics command."),
    FIELD_LE(NULL, 1, 1, FT_UINT8, BASE_HEX, NULL, "nvme.fabrics.cmd.rsvd", "Flags", "0x40: an SGL."),
    FIELD_LE(NULL, 2, 2, FT_UINT16, BASE_HEX, NULL, "nvme.fabrics.cmd.cid", "Command Identifier",
             "Identifier of the command in its queue."),
    FIELD_LE(NULL, 4, 1, FT_UINT8, BASE_HEX, &nvme_fctype_desc, "nvme.fabrics.cmd.fctype", "Fabric Command Type",
             "Which fabrics command."),
    SGL_FIELDS(connect_keyed, connect_offset, is_connect),
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
    FIELD_LE(is_connect, 48, 4, FT_UINT32, BASE_DEC, NULL, "nvme.fabrics.cmd.connect.kato", "Keep Alive Timeout",
             "Milliseconds; 0: none."),
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
    CMD_IN("nvme.cmd_pkt"),
    FIELD_LE(NULL, 0, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cqe.dword0", "DWORD0", "Result, lower half."),
    FIELD_LE(NULL, 4, 4, FT_UINT32, BASE_HEX, NULL, "nvme.cqe.dword1", "DWORD1", "Result, upper half."),
    CQE_FIELDS("nvme.cqe.status.p"),
};
HDR(nvme_cqe, "nvme.cqe", "NVM Express (completion)", "nvme", NVME_CQE_LEN);

static const struct field nvme_connect_cqe_fields[] = {
    CMD_IN("nvme.fabrics.cmd_pkt"),
    FIELD_LE(NULL, 0, 2, FT_UINT16, BASE_HEX, NULL, "nvme.fabrics.cqe.connect.cntrlid", "Controller ID",
             "Controller; of a refused Connect the offset of the wrong parameter."),
    FIELD_LE(NULL, 2, 2, FT_UINT16, BASE_HEX, NULL, "nvme.fabrics.cqe.connect.authreq", "Authentication Required",
             "Not 0: authentication is required; of a refused Connect: 1 if the parameter is in the data."),
    CQE_FIELDS("nvme.cqe.status.rsvd"),
};
HDR(nvme_connect_cqe, "nvme.fabrics.cqe", "NVM Express Fabrics RDMA (Connect completion)", "nvme-rdma", NVME_CQE_LEN);

static const struct field nvme_prop_get_cqe_fields[] = {
    CMD_IN("nvme.fabrics.cmd_pkt"),
    FIELD_AT(NULL, 0, 8, FT_BYTES, "nvme.fabrics.prop_get_set.data", "Property Data", "The value, 8 bytes."),
    CQE_FIELDS("nvme.cqe.status.rsvd"),
};
HDR(nvme_prop_get_cqe, "nvme.fabrics.cqe", "NVM Express Fabrics RDMA (Property Get completion)", "nvme-rdma",
    NVME_CQE_LEN);

static const struct field nvme_prop_set_cqe_fields[] = {
    CMD_IN("nvme.fabrics.cmd_pkt"),
    FIELD_AT(NULL, 0, 8, FT_BYTES, "nvme.fabrics.cqe.prop_set.rsvd", "Reserved", "Zero."),
    CQE_FIELDS("nvme.cqe.status.rsvd"),
};
HDR(nvme_prop_set_cqe, "nvme.fabrics.cqe", "NVM Express Fabrics RDMA (Property Set completion)", "nvme-rdma",
    NVME_CQE_LEN);

static const struct field nvme_fabrics_cqe_fields[] = {
    CMD_IN("nvme.fabrics.cmd_pkt"),
    FIELD_LE(NULL, 0, 8, FT_UINT64, BASE_HEX, NULL, "nvme.fabrics.cqe.sts", "Command specific status", "Result."),
    CQE_FIELDS("nvme.cqe.status.rsvd"),
};
HDR(nvme_fabrics_cqe, "nvme.fabrics.cqe", "NVM Express Fabrics RDMA (completion)", "nvme-rdma", NVME_CQE_LEN);

/* --- Properties ------------------------------------------------------------------------------- */

#define CC   "nvme.fabrics.prop_get_set.cc"
#define CSTS "nvme.fabrics.prop_get_set.csts"
#define CAP  "nvme.fabrics.prop_get.ccap"
#define VS   "nvme.fabrics.prop_get.vs"

static const struct field nvme_cc_fields[] = {
    FIELD_LE(NULL, 0, 4, FT_UINT32, BASE_HEX, NULL, CC, "Controller Configuration", "The property CC."),
    LE_BITS(NULL, 0, 4, 0, 1, FT_UINT32, BASE_HEX, NULL, CC ".en", "Enable", "1: the controller is enabled."),
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

/* The value of property `offset`, at byte `at`. */
static void property_layer(struct pkt *p, const struct ulp_body *m, uint32_t at, uint32_t offset)
{
    static const struct {
        uint32_t offset;
        const struct hdr *hdr;
    } known[] = {{0x00, &nvme_cap_hdr}, {0x08, &nvme_vs_hdr}, {0x14, &nvme_cc_hdr}, {0x1c, &nvme_csts_hdr}};

    for (unsigned i = 0; i < ARRAY_LEN(known); i++)
        if (known[i].offset == offset)
            ulp_layer(p, known[i].hdr, m, at, known[i].hdr->len);
}

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

static const struct field nvme_rdma_req_fields[] = {
    FIELD_LE(NULL, 0, 2, FT_UINT16, BASE_DEC, NULL, "nvme-rdma.cm.req.recfmt", "Record Format", "0."),
    FIELD_LE(NULL, 2, 2, FT_UINT16, BASE_HEX, NULL, "nvme-rdma.cm.req.qid", "Queue Id", "0: the admin queue."),
    FIELD_LE(NULL, 4, 2, FT_UINT16, BASE_DEC, NULL, "nvme-rdma.cm.req.hrqsize", "RDMA QP Host Receive Queue Size",
             "Receives that the host posts."),
    FIELD_LE(NULL, 6, 2, FT_UINT16, BASE_DEC, NULL, "nvme-rdma.cm.req.hsqsize", "RDMA QP Host Send Queue Size",
             "Entries of the submission queue minus one."),
    FIELD_LE(NULL, 8, 2, FT_UINT16, BASE_HEX, NULL, "nvme-rdma.cm.req.cntlid", "Controller ID",
             "Controller of an I/O queue; 0 from hosts that do not state it."),
};
UPPER_HDR(nvme_rdma_req, "rdma.nvme.cm.req", "NVM Express Fabrics RDMA (private data)", "nvme-rdma", NULL, 32);

static const struct field nvme_rdma_rep_fields[] = {
    FIELD_LE(NULL, 0, 2, FT_UINT16, BASE_DEC, NULL, "nvme-rdma.cm.rsp.recfmt", "Record Format", "0."),
    FIELD_LE(NULL, 2, 2, FT_UINT16, BASE_DEC, NULL, "nvme-rdma.cm.rsp.crqsize", "RDMA QP Controller Receive Queue Size",
             "Receives that the controller posts."),
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

void nvme_command_layers(struct pkt *p, const struct ulp_body *m, bool admin)
{
    const struct hdr *h = m->len && m->b[0] == NVME_FABRICS ? &nvme_fabrics_cmd_hdr
                          : admin                           ? &nvme_admin_cmd_hdr
                                                            : &nvme_io_cmd_hdr;

    ulp_layer(p, h, m, 0, NVME_SQE_LEN);
    if (h == &nvme_fabrics_cmd_hdr && m->len >= NVME_SQE_LEN && m->b[4] == NVME_FCTYPE_PROP_SET)
        property_layer(p, m, 48, m->b[44]);
}

void nvme_response_layers(struct pkt *p, const struct ulp_body *m, const struct nvme_cmd *c, bool admin)
{
    const struct hdr *h = &nvme_cqe_hdr;

    (void)admin;
    if (c && c->opc == NVME_FABRICS)
        h = c->fctype == NVME_FCTYPE_CONNECT    ? &nvme_connect_cqe_hdr
            : c->fctype == NVME_FCTYPE_PROP_GET ? &nvme_prop_get_cqe_hdr
            : c->fctype == NVME_FCTYPE_PROP_SET ? &nvme_prop_set_cqe_hdr
                                                : &nvme_fabrics_cqe_hdr;
    ulp_layer(p, h, m, 0, NVME_CQE_LEN);
    if (h == &nvme_prop_get_cqe_hdr && !(m->b[14] >> 1 | m->b[15]))
        property_layer(p, m, 0, c->cdw[1]);
}

void nvme_private_layers(struct pkt *p, const struct ulp_body *m, enum nvme_private which)
{
    static const struct hdr *const hdrs[] = {&nvme_rdma_req_hdr, &nvme_rdma_rep_hdr, &nvme_rdma_rej_hdr};

    ulp_layer(p, hdrs[which], m, 0, which == NVME_REJ ? 4 : 32);
}
