/* layer 1 (wire): InfiniBand headers: field tables and names of values. */
#include "dissect/ib/ib.h"

#include "dissect/pkt.h"

static void opcode_text(struct buf *b, uint64_t op)
{
    const struct opinfo *info = &opcode_table[op & 0xff];

    buf_puts(b, service_str((enum service)(op >> 5 & 7)));
    buf_char(b, ' ');
    buf_puts(b, info->name ? info->name : "undefined");
}
const struct vdesc opcode_desc = VDESC_TEXT(opcode_text);

static const struct vname lnh_names[] = {
    {0, "raw, Ethertype"}, {1, "raw, IPv6"}, {2, "BTH (local)"}, {3, "GRH (global)"}};
const struct vdesc lnh_desc = VDESC_NAMES(lnh_names);

static const struct vname aeth_types[] = {
    {AETH_ACK, "ACK"}, {AETH_RNR, "RNR NAK"}, {AETH_RESERVED, "reserved"}, {AETH_NAK, "NAK"}};
const struct vdesc aeth_opcode_desc = VDESC_NAMES(aeth_types);

static const struct vname feth_sel_names[] = {{0, "memory region range"}, {1, "whole memory region"}};
const struct vdesc feth_sel_desc = VDESC_NAMES(feth_sel_names);

static const struct vname feth_plt_names[] = {
    {1, "global visibility"}, {2, "persistence"}, {3, "global visibility and persistence"}};
const struct vdesc feth_plt_desc = VDESC_NAMES(feth_plt_names);

const char *nak_code_str(unsigned code)
{
    static const char *const names[] = {"PSN sequence error", "invalid request", "remote access error",
                                        "remote operational error", "invalid RD request"};
    return code < ARRAY_LEN(names) ? names[code] : "reserved";
}

/* PSNs are decimal everywhere, P_Keys hexadecimal, whatever base tshark prints a field in. */
static void psn_text(struct buf *b, uint64_t psn)
{
    buf_dec(b, psn);
}
const struct vdesc psn_desc = VDESC_TEXT(psn_text);
static void pkey_text(struct buf *b, uint64_t pkey)
{
    buf_0x(b, pkey, 4);
}
const struct vdesc pkey_desc = VDESC_TEXT(pkey_text);

static void aeth_nak_text(struct buf *b, uint64_t code)
{
    buf_puts(b, nak_code_str((unsigned)code));
}
const struct vdesc aeth_nak_desc = VDESC_TEXT(aeth_nak_text);

ns_t rnr_time(unsigned code)
{
    /* Microseconds by timer code (IBTA volume 1, table 45). */
    static const uint32_t us[32] = {655360, 10,    20,    30,    40,    60,     80,     120,    160,    240,   320,
                                    480,    640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240, 15360,
                                    20480,  30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520};
    return us[code & 31] * NS_PER_US;
}

static void aeth_timer_text(struct buf *b, uint64_t code)
{
    buf_duration(b, rnr_time((unsigned)code));
}
const struct vdesc aeth_timer_desc = VDESC_TEXT(aeth_timer_text);

uint32_t aeth_credits(unsigned code)
{
    static const uint16_t credits[31] = {0,    1,    2,    3,    4,    6,     8,     12,    16,   24,   32,
                                         48,   64,   96,   128,  192,  256,   384,   512,   768,  1024, 1536,
                                         2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};
    return code < ARRAY_LEN(credits) ? credits[code] : UINT32_MAX;
}

static void aeth_credit_text(struct buf *b, uint64_t code)
{
    if (code == AETH_CREDIT_INVALID)
        buf_puts(b, "no limit");
    else
        buf_puts(b, count_str(aeth_credits((unsigned)code), "credit"));
}
const struct vdesc aeth_credit_desc = VDESC_TEXT(aeth_credit_text);

static enum aeth_type aeth_type_of(const uint8_t *p)
{
    return (enum aeth_type)(p[0] >> 5 & 3);
}
bool aeth_is_ack(const uint8_t *p, uint32_t len)
{
    return len > 0 && aeth_type_of(p) == AETH_ACK;
}
bool aeth_is_rnr(const uint8_t *p, uint32_t len)
{
    return len > 0 && aeth_type_of(p) == AETH_RNR;
}
bool aeth_is_reserved(const uint8_t *p, uint32_t len)
{
    return len > 0 && aeth_type_of(p) == AETH_RESERVED;
}
bool aeth_is_nak(const uint8_t *p, uint32_t len)
{
    return len > 0 && aeth_type_of(p) == AETH_NAK;
}

/* Tables of the headers, and their `struct hdr`. */
#define IB_HDR(id, LIST, filter_name, title, bytes)                                                                    \
    HDR_TABLE(id, LIST)                                                                                                \
    const struct hdr id##_hdr = {                                                                                      \
        .abbrev = filter_name,                                                                                         \
        .name = title,                                                                                                 \
        .proto = "infiniband",                                                                                         \
        .fields = id##_fields,                                                                                         \
        .nfields = ARRAY_LEN(id##_fields),                                                                             \
        .len = bytes,                                                                                                  \
        .type = FT_BYTES,                                                                                              \
    };
IB_HDR(lrh, LRH_FIELDS, "infiniband.lrh", "Local Route Header", 8)
IB_HDR(grh, GRH_FIELDS, "infiniband.grh", "Global Route Header", 40)
IB_HDR(rdeth, RDETH_FIELDS, "infiniband.rdeth", "RDETH - Reliable Datagram Extended Transport Header", EXT_LEN(H_RDETH))
IB_HDR(deth, DETH_FIELDS, "infiniband.deth", "DETH - Datagram Extended Transport Header", EXT_LEN(H_DETH))
IB_HDR(xrceth, XRCETH_FIELDS, "rdma.xrceth", "XRCETH - XRC Extended Transport Header", EXT_LEN(H_XRCETH))
IB_HDR(feth, FETH_FIELDS, "infiniband.feth", "FETH - FLUSH Extended Transport Header", EXT_LEN(H_FETH))
IB_HDR(reth, RETH_FIELDS, "infiniband.reth", "RETH - RDMA Extended Transport Header", EXT_LEN(H_RETH))
IB_HDR(atomiceth, ATOMICETH_FIELDS, "infiniband.atomiceth", "AtomicETH - Atomic Extended Transport Header",
       EXT_LEN(H_ATOMICETH))
IB_HDR(aeth, AETH_FIELDS, "infiniband.aeth", "AETH - ACK Extended Transport Header", EXT_LEN(H_AETH))
IB_HDR(atomicacketh, ATOMICACKETH_FIELDS, "infiniband.atomicacketh",
       "AtomicAckETH - Atomic ACK Extended Transport Header", EXT_LEN(H_ATOMICACKETH))
IB_HDR(immdt, IMMDT_FIELDS, "infiniband.immdt", "ImmDt - Immediate Data", EXT_LEN(H_IMMDT))

static void rwh_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    if (l->len >= 4)
        buf_printf(b, "raw packet, Ethertype 0x%04x", load_be16(p->data + l->off + 2));
}
HDR_TABLE(rwh, RWH_FIELDS)
const struct hdr rwh_hdr = {
    .abbrev = "infiniband.rwh",
    .name = "Raw Header",
    .proto = "infiniband",
    .column = "InfiniBand",
    .fields = rwh_fields,
    .nfields = ARRAY_LEN(rwh_fields),
    .len = 4,
    .type = FT_BYTES,
    .info = rwh_info,
};
IB_HDR(ieth, IETH_FIELDS, "infiniband.ieth", "IETH - Invalidate Extended Transport Header", EXT_LEN(H_IETH))

const struct hdr dcceth_hdr = {
    .abbrev = "rdma.dcceth",
    .name = "DCCETH - Dynamically Connected (layout not public)",
    .proto = "infiniband",
    .len = DCCETH_LEN,
    .type = FT_BYTES,
};
const struct hdr ib_payload_hdr = {
    .abbrev = "infiniband.payload",
    .name = "Payload",
    .proto = "infiniband",
    .type = FT_BYTES,
};
const struct hdr ib_pad_hdr = {
    .abbrev = "rdma.pad",
    .name = "Pad",
    .proto = "infiniband",
    .type = FT_BYTES,
};

/* CNP: 16 reserved bytes after the BTH (annex A17). */
static const struct field cnp_fields[] = {
    {"rdma.cnp.reserved", "Reserved", "Zero.", NULL, NULL, NULL, 0, 128, FT_BYTES, BASE_NONE, FLD_MEMBER}};
const struct hdr cnp_hdr = {
    .abbrev = "rdma.cnp",
    .name = "CNP - Congestion Notification Packet",
    .proto = "infiniband",
    .fields = cnp_fields,
    .nfields = 1,
    .len = 16,
    .type = FT_BYTES,
};

static bool status_value(enum crc_status s, struct value *v)
{
    if (s == CRC_ABSENT)
        return false;
    v->p = (const uint8_t *)crc_status_str(s);
    v->len = (uint32_t)strlen((const char *)v->p);
    return true;
}
static bool icrc_status_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    return status_value(p->icrc, v);
}
static bool icrc_want_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = p->icrc_want;
    return p->icrc == CRC_BAD;
}
static bool icrc_reason_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    if (p->icrc != CRC_UNKNOWN || !p->unverified)
        return false;
    v->p = (const uint8_t *)p->unverified;
    v->len = (uint32_t)strlen(p->unverified);
    return true;
}
static bool vcrc_status_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    return status_value(p->vcrc, v);
}
static bool vcrc_want_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = p->vcrc_want;
    return p->vcrc == CRC_BAD;
}

/* The ICRC is sent least significant byte first. It is shown as tshark shows it: its bytes in the order of the wire. */
static const struct field icrc_fields[] = {
    {"infiniband.invariant.crc", "Invariant CRC", "Invariant CRC as it stands in the packet.", NULL, NULL, NULL, 0, 32,
     FT_UINT32, BASE_HEX, FLD_MEMBER},
    {"rdma.icrc.status", "ICRC status", "good, bad, or unknown.", NULL, icrc_status_get, NULL, 0, 0, FT_STRING,
     BASE_NONE, 0},
    {"rdma.icrc.calculated", "ICRC calculated", "What the ICRC should be, when it is bad.", NULL, icrc_want_get, NULL,
     0, 0, FT_UINT32, BASE_HEX, 0},
    {"rdma.icrc.reason", "ICRC not verified", "Why the ICRC's status is unknown.", NULL, icrc_reason_get, NULL, 0, 0,
     FT_STRING, BASE_NONE, 0},
};
const struct hdr icrc_hdr = {
    .abbrev = "rdma.icrc",
    .name = "Invariant CRC",
    .proto = "infiniband",
    .fields = icrc_fields,
    .nfields = ARRAY_LEN(icrc_fields),
    .len = 4,
};

static const struct field vcrc_fields[] = {
    {"infiniband.variant.crc", "Variant CRC", "Variant CRC as it stands in the packet.", NULL, NULL, NULL, 0, 16,
     FT_UINT16, BASE_HEX, FLD_MEMBER},
    {"rdma.vcrc.status", "VCRC status", "good, bad, or unknown.", NULL, vcrc_status_get, NULL, 0, 0, FT_STRING,
     BASE_NONE, 0},
    {"rdma.vcrc.calculated", "VCRC calculated", "What the VCRC should be, when it is bad.", NULL, vcrc_want_get, NULL,
     0, 0, FT_UINT16, BASE_HEX, 0},
};
const struct hdr vcrc_hdr = {
    .abbrev = "rdma.vcrc",
    .name = "Variant CRC",
    .proto = "infiniband",
    .fields = vcrc_fields,
    .nfields = ARRAY_LEN(vcrc_fields),
    .len = 2,
};
