/* layer 1 (wire): Ultra Ethernet Transport: extension headers behind a request: of an atomic, of a compare and swap, of
 * a rendezvous. */
#include "dissect/field.h"
#include "dissect/uet/uet.h"

#define LEN_ATOMIC     4
#define LEN_SWAP       36
#define LEN_RENDEZVOUS 24

/* --- Names ------------------------------------------------------------------------------------ */

static const struct vname operations[] = {
    {0x00, "min"},      {0x01, "max"},   {0x02, "sum"},      {0x03, "diff"},     {0x04, "prod"},     {0x05, "lor"},
    {0x06, "land"},     {0x07, "bor"},   {0x08, "band"},     {0x09, "lxor"},     {0x0a, "bxor"},     {0x0b, "read"},
    {0x0c, "write"},    {0x0d, "cswap"}, {0x0e, "cswap ne"}, {0x0f, "cswap le"}, {0x10, "cswap lt"}, {0x11, "cswap ge"},
    {0x12, "cswap gt"}, {0x13, "mswap"}, {0x14, "inval"}};
static const struct vdesc operation_desc = VDESC_NAMES(operations);

static const struct vname data_types[] = {{0x00, "int8"},          {0x01, "uint8"},
                                          {0x02, "int16"},         {0x03, "uint16"},
                                          {0x04, "int32"},         {0x05, "uint32"},
                                          {0x06, "int64"},         {0x07, "uint64"},
                                          {0x08, "int128"},        {0x09, "uint128"},
                                          {0x0a, "float"},         {0x0b, "double"},
                                          {0x0c, "float complex"}, {0x0d, "double complex"},
                                          {0x0e, "long double"},   {0x0f, "long double complex"},
                                          {0x10, "bf16"},          {0x11, "fp16"}};
static const struct vdesc data_type_desc = VDESC_NAMES(data_types);

void uet_atomic_text(struct buf *b, const uint8_t *ext)
{
    const char *op = vname_find(operations, ARRAY_LEN(operations), ext[0]),
               *type = vname_find(data_types, ARRAY_LEN(data_types), ext[1]);

    if (op)
        buf_printf(b, " %s", op);
    if (op && type)
        buf_printf(b, " of %s", type);
}

/* --- Fields ----------------------------------------------------------------------------------- */

#define ROW(bit, width, type, base, desc, abbrev, label, blurb)                                                        \
    FIELD_ROW(NULL, bit, width, type, base, desc, 0, abbrev, label, blurb)
#define ATOMIC_ROWS(name)                                                                                              \
    ROW(0, 8, FT_UINT8, BASE_DEC, &operation_desc, name ".atomic_opcode", "Atomic Opcode", "What it does."),           \
        ROW(8, 8, FT_UINT8, BASE_DEC, &data_type_desc, name ".atomic_data_type", "Atomic Data Type",                   \
            "Type of its operands."),                                                                                  \
        ROW(16, 8, FT_UINT8, BASE_HEX, NULL, name ".sem_ctl", "Semantic Control",                                      \
            "Bits for cacheable and CPU coherent; sources differ on which.")

static const struct field uet_atomic_fields[] = {ATOMIC_ROWS("uet.ses.atomic_op_ext_hdr")};
static const struct field uet_swap_fields[] = {
    ATOMIC_ROWS("uet.ses.comp_swap_ext_hdr"),
    FIELD_AT(NULL, 4, 16, FT_BYTES, "uet.ses.comp_swap_ext_hdr.comp_value", "Compare Value", "Compared with."),
    FIELD_AT(NULL, 20, 16, FT_BYTES, "uet.ses.comp_swap_ext_hdr.swap_value", "Swap Value", "Written."),
};
static const struct field uet_rendezvous_fields[] = {
    ROW(0, 32, FT_UINT32, BASE_DEC, NULL, "uet.ses.rendv_ext_hdr.eager_length", "Eager Length",
        "Bytes that the sender sends at once."),
    ROW(32, 8, FT_UINT8, BASE_DEC, NULL, "rdma.uet.ses.rendv_ext_hdr.generation", "Read Generation",
        "Of the resource index."),
    ROW(40, 12, FT_UINT16, BASE_DEC, NULL, "uet.ses.rendv_ext_hdr.read_pid_on_fep", "Read PID on FEP",
        "Process whose memory is to be read."),
    ROW(52, 12, FT_UINT16, BASE_DEC, NULL, "uet.ses.rendv_ext_hdr.read_resource_index", "Read Resource Index",
        "Its resource."),
    ROW(64, 64, FT_UINT64, BASE_HEX, NULL, "uet.ses.rendv_ext_hdr.read_offset", "Read Offset", "In its memory."),
    ROW(128, 64, FT_UINT64, BASE_HEX, NULL, "uet.ses.rendv_ext_hdr.read_match_bits", "Read Match Bits or Memory Key",
        "Which memory."),
};
UET_HDR(uet_atomic, "uet.ses.atomic_op_ext_hdr", "UET atomic", LEN_ATOMIC, NULL);
UET_HDR(uet_swap, "uet.ses.comp_swap_ext_hdr", "UET compare and swap", LEN_SWAP, NULL);
UET_HDR(uet_rendezvous, "uet.ses.rendv_ext_hdr", "UET rendezvous", LEN_RENDEZVOUS, NULL);

const struct hdr *uet_ext_hdr(unsigned opcode, bool standard, const uint8_t *b, uint32_t len)
{
    const struct hdr *hdr = NULL;

    switch (opcode) {
    case UET_OP_ATOMIC:
    case UET_OP_FETCHING_ATOMIC:
    case UET_OP_TSEND_ATOMIC:
    case UET_OP_TSEND_FETCHING_ATOMIC:
        hdr = len && b[0] >= 0x0d && b[0] <= 0x12 ? &uet_swap_hdr : &uet_atomic_hdr;
        break;
    case UET_OP_RENDEZVOUS:
    case UET_OP_TAGGED_RENDEZVOUS:
        hdr = standard ? &uet_rendezvous_hdr : NULL;
        break;
    default:
        break;
    }
    return hdr && len >= hdr->len ? hdr : NULL;
}
