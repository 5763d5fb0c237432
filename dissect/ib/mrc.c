/* layer 1 (wire): MRC, Multipath Reliable Connection (Open Compute Project, revision 1.0, 2026-03-21): RDMA WRITEs over
 * many paths, with opcodes of its own in RoCEv2 over IPv6. The layouts are those on which two independent
 * implementations agree, not read in the specification itself: https://github.com/anichol67/MRC-Client
 * (core/mrc_headers.py) and a header for ns-3. */
#include "dissect/dissectors.h"
#include "psn.h"

#define FIRST_OPCODE       0xc0
#define BTH_RETRANSMISSION 0x20 /* in the byte of AckReq, behind it and the bit of a response */
#define BTH_TIMESTAMP      0x10 /* a TSETH follows */

/* Header behind the BTH, in this order. */
enum {
    METH = 1u << 0,
    TSETH = 1u << 1, /* only with BTH_TIMESTAMP */
    RETH = 1u << 2,
    IMMDT = 1u << 3,
    AETH = 1u << 4,
    ERTH = 1u << 5,
    EETH = 1u << 6,
    SETH = 1u << 7,
    CC_STATE = 1u << 8,
    NETH = 1u << 9,
    PETH = 1u << 10,
    PAYLOAD = 1u << 11,
};

#define WRITE (METH | TSETH | RETH | PAYLOAD)
static const struct {
    const char *name; /* NULL: MRC has no such opcode */
    unsigned headers;
} ops[32] = {
    [0x06] = {"RDMA WRITE First", WRITE},
    [0x07] = {"RDMA WRITE Middle", WRITE},
    [0x08] = {"RDMA WRITE Last", WRITE},
    [0x09] = {"RDMA WRITE Last with Immediate", WRITE | IMMDT},
    [0x0a] = {"RDMA WRITE Only", WRITE},
    [0x0b] = {"RDMA WRITE Only with Immediate", WRITE | IMMDT},
    [0x11] = {"Acknowledge", AETH},
    [0x18] = {"Endpoint Request", ERTH},
    [0x19] = {"Endpoint Response", EETH},
    [0x1c] = {"SACK", SETH | CC_STATE},
    [0x1d] = {"NACK", NETH},
    [0x1e] = {"Probe", PETH},
};

/* --- Fields ----------------------------------------------------------------------------------- */

static uint8_t bth_bits(const struct pkt *p)
{
    return p->data[p->bth_off + 8];
}
static bool op_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->p = (const uint8_t *)ops[p->bth.opcode & 31].name;
    v->len = (uint32_t)strlen(ops[p->bth.opcode & 31].name);
    return true;
}
static bool retransmission_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = (bth_bits(p) & BTH_RETRANSMISSION) != 0;
    return true;
}
static const struct field mrc_fields[] = {
    FIELD_GET(op_get, FT_STRING, BASE_NONE, NULL, 0, "rdma.mrc.opcode", "Operation", "Name of the opcode in MRC."),
    FIELD_GET(retransmission_get, FT_BOOL, BASE_NONE, NULL, 0, "rdma.mrc.retransmission", "Retransmission",
              "The sender says that it sent the packet before (third bit of the BTH's ninth byte)."),
};

static const struct field meth_fields[] = {
    FIELD_ROW(NULL, 0, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "rdma.mrc.meth.rq_msn", "Receive Queue MSN",
              "Number of messages that take a receive work request, modulo 65536."),
    FIELD_ROW(NULL, 16, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "rdma.mrc.meth.msn", "MSN",
              "Number of the message, modulo 65536."),
};

/* A time stamp of the sender, which the receiver returns: 4 bytes. */
#define TIMESTAMP_ROWS(bit, prefix)                                                                                    \
    FIELD_ROW(NULL, bit, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, prefix ".timestamp", "Time stamp",                 \
              "Sender's clock; its unit is the sender's own."),                                                        \
        FIELD_ROW(NULL, (bit) + 16, 1, FT_BOOL, BASE_NONE, NULL, FLD_MEMBER, prefix ".tsr", "TSR",                     \
                  "A bit of the time stamp; its meaning was not verified."),                                           \
        FIELD_ROW(NULL, (bit) + 17, 11, FT_UINT16, BASE_HEX, NULL, FLD_MEMBER, prefix ".reserved_time", "Reserved",    \
                  "Zero."),                                                                                            \
        FIELD_ROW(NULL, (bit) + 28, 4, FT_UINT8, BASE_DEC, NULL, FLD_MEMBER, prefix ".ftype", "Type",                  \
                  "Type of the time stamp; its values were not verified.")

static const struct field tseth_fields[] = {TIMESTAMP_ROWS(0, "rdma.mrc.tseth")};

/* The paths of a packet: the entropy that the sender put into it, and its ports. */
#define PATH_ROWS(bit, prefix)                                                                                         \
    FIELD_ROW(NULL, bit, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, prefix ".spdcid", "SPDCID",                        \
              "An identifier of the source; its meaning was not verified."),                                           \
        FIELD_ROW(NULL, (bit) + 16, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, prefix ".dpdcid", "DPDCID",             \
                  "An identifier of the destination; its meaning was not verified.")

static const struct vname skip_names[] = {{0, "none"}, {1, "skip once"}, {2, "always skip"}};
static const struct vdesc skip_desc = VDESC_NAMES(skip_names);

static const struct field seth_fields[] = {
    FIELD_ROW(NULL, 0, 9, FT_UINT16, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.seth.reserved1", "Type and Next",
              "Zero in revision 1.0."),
    FIELD_ROW(NULL, 9, 2, FT_UINT8, BASE_DEC, &skip_desc, FLD_MEMBER, "rdma.mrc.seth.m", "Path",
              "What the sender should do with the path of the packet."),
    FIELD_ROW(NULL, 11, 3, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.seth.reserved2", "Reserved", "Zero."),
    FIELD_ROW(NULL, 14, 1, FT_BOOL, BASE_NONE, NULL, FLD_MEMBER, "rdma.mrc.seth.pr", "PR",
              "A flag; its meaning was not verified."),
    FIELD_ROW(NULL, 15, 1, FT_BOOL, BASE_NONE, NULL, FLD_MEMBER, "rdma.mrc.seth.reserved3", "Reserved", "Zero."),
    FIELD_ROW(NULL, 16, 16, FT_INT16, BASE_DEC, NULL, FLD_MEMBER, "rdma.mrc.seth.ack_psn_offset", "ACK PSN offset",
              "PSN of the packet that is acknowledged, less the cumulative PSN."),
    FIELD_ROW(NULL, 32, 32, FT_UINT32, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.seth.entropy", "Entropy",
              "Path of the packet that is acknowledged."),
    PATH_ROWS(64, "rdma.mrc.seth"),
    FIELD_ROW(NULL, 96, 8, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.seth.reserved4", "Reserved", "Zero."),
    FIELD_ROW(NULL, 104, 24, FT_UINT24, BASE_DEC, NULL, FLD_MEMBER, "rdma.mrc.seth.cack_psn", "Cumulative ACK PSN",
              "All packets up to this PSN have arrived."),
    FIELD_ROW(NULL, 128, 4, FT_UINT8, BASE_DEC, NULL, FLD_MEMBER, "rdma.mrc.seth.cc_type", "CC type",
              "Layout of the congestion control state."),
    FIELD_ROW(NULL, 132, 4, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.seth.cc_flags", "CC flags",
              "Flags of congestion control."),
    FIELD_ROW(NULL, 136, 8, FT_UINT8, BASE_DEC, NULL, FLD_MEMBER, "rdma.mrc.seth.mpr", "Maximum PSN range",
              "Packets beyond the cumulative PSN that the receiver keeps; one implementation counts in 128."),
    FIELD_ROW(NULL, 144, 16, FT_INT16, BASE_DEC, NULL, FLD_MEMBER, "rdma.mrc.seth.sack_offset", "SACK offset",
              "PSN of the first bit of the bitmap, less the cumulative PSN."),
    FIELD_ROW(NULL, 160, 64, FT_UINT64, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.seth.bitmap", "SACK bitmap",
              "Packets that have arrived."),
};

static const struct field cc_fields[] = {
    FIELD_ROW(NULL, 0, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "rdma.mrc.cc.timestamp", "Time stamp",
              "Time stamp of the packet that is acknowledged."),
    FIELD_ROW(NULL, 16, 1, FT_BOOL, BASE_NONE, NULL, FLD_MEMBER, "rdma.mrc.cc.reserved", "Reserved", "Zero."),
    FIELD_ROW(NULL, 17, 15, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "rdma.mrc.cc.ooo", "Out of order",
              "Packets that arrived out of order."),
    FIELD_ROW(NULL, 32, 1, FT_BOOL, BASE_NONE, NULL, FLD_MEMBER, "rdma.mrc.cc.r_c", "R_C",
              "Its meaning was not verified."),
    FIELD_ROW(NULL, 33, 7, FT_UINT8, BASE_DEC, NULL, FLD_MEMBER, "rdma.mrc.cc.window", "Receive window",
              "About the receive window; its meaning was not verified."),
    FIELD_ROW(NULL, 40, 24, FT_UINT24, BASE_DEC, NULL, FLD_MEMBER, "rdma.mrc.cc.bytes", "Received bytes",
              "Bytes that have arrived; its unit was not verified."),
};

static const struct vname nack_names[] = {
    {0x01, "trimmed"},     {0x02, "trimmed at the last hop"}, {0x06, "no bitmap"},       {0x07, "no packet buffer"},
    {0x0a, "no resource"}, {0x0b, "PSN out of window"},       {0x19, "unexpected event"}};
static const struct vdesc nack_desc = VDESC_NAMES(nack_names);

static const struct field neth_fields[] = {
    FIELD_ROW(NULL, 0, 16, FT_UINT16, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.neth.reserved1", "Type, Next, Reserved",
              "Zero in revision 1.0."),
    FIELD_ROW(NULL, 16, 8, FT_UINT8, BASE_HEX, &nack_desc, FLD_MEMBER, "rdma.mrc.neth.reason", "Reason",
              "Why the packet was not taken."),
    FIELD_ROW(NULL, 24, 8, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.neth.vendor", "Vendor information",
              "Of the vendor."),
    FIELD_ROW(NULL, 32, 32, FT_UINT32, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.neth.entropy", "Entropy",
              "Path of the packet."),
    PATH_ROWS(64, "rdma.mrc.neth"),
    FIELD_ROW(NULL, 96, 8, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.neth.reserved2", "Reserved", "Zero."),
    FIELD_ROW(NULL, 104, 24, FT_UINT24, BASE_DEC, NULL, FLD_MEMBER, "rdma.mrc.neth.psn", "NACK PSN",
              "PSN of the packet."),
    FIELD_ROW(NULL, 128, 4, FT_UINT8, BASE_DEC, NULL, FLD_MEMBER, "rdma.mrc.neth.cc_type", "CC type",
              "Layout of the congestion control state."),
    FIELD_ROW(NULL, 132, 4, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.neth.cc_flags", "CC flags",
              "Flags of congestion control."),
    FIELD_ROW(NULL, 136, 8, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.neth.reserved3", "Reserved", "Zero."),
    FIELD_ROW(NULL, 144, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "rdma.mrc.neth.timestamp", "Time stamp",
              "Time stamp of the packet."),
};

static const struct field peth_fields[] = {
    FIELD_ROW(NULL, 0, 24, FT_UINT24, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.peth.reserved1", "Type, Next, Reserved",
              "Zero in revision 1.0."),
    FIELD_ROW(NULL, 24, 8, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.peth.vendor", "Vendor information",
              "Of the vendor."),
    FIELD_ROW(NULL, 32, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "rdma.mrc.peth.probe_id", "Probe ID",
              "Number of the probe."),
    FIELD_ROW(NULL, 48, 16, FT_UINT16, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.peth.reserved2", "Reserved", "Zero."),
    PATH_ROWS(64, "rdma.mrc.peth"),
    TIMESTAMP_ROWS(96, "rdma.mrc.peth"),
};

static const struct vname endpoint_names[] = {{0, "port status update"}, {1, "entropy probe"}};
static const struct vdesc endpoint_desc = VDESC_NAMES(endpoint_names);

static const struct field erth_fields[] = {
    FIELD_ROW(NULL, 0, 14, FT_UINT16, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.erth.reserved1", "Type, Next, Reserved",
              "Zero in revision 1.0."),
    FIELD_ROW(NULL, 14, 2, FT_UINT8, BASE_DEC, &endpoint_desc, FLD_MEMBER, "rdma.mrc.erth.op", "Request",
              "What is asked for."),
    FIELD_ROW(NULL, 16, 8, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.erth.reserved2", "Reserved", "Zero."),
    FIELD_ROW(NULL, 24, 8, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.erth.vendor", "Vendor information",
              "Of the vendor."),
    FIELD_ROW(NULL, 32, 32, FT_UINT32, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.erth.ports", "Port status mask",
              "Ports that can be used."),
    FIELD_ROW(NULL, 64, 32, FT_UINT32, BASE_HEX, NULL, FLD_MEMBER, "rdma.mrc.erth.reserved3", "Reserved", "Zero."),
    TIMESTAMP_ROWS(96, "rdma.mrc.erth"),
};

/* --- Headers ---------------------------------------------------------------------------------- */

static void mrc_info(struct buf *b, const struct pkt *p, const struct layer *l);

#define MRC_HDR(id, filter_name, title, bytes, kind, ...)                                                              \
    const struct hdr id##_hdr = {.abbrev = filter_name,                                                                \
                                 .name = title,                                                                        \
                                 .proto = "mrc",                                                                       \
                                 .len = bytes,                                                                         \
                                 .type = kind,                                                                         \
                                 .info = mrc_info,                                                                     \
                                 __VA_ARGS__};
#define FIELDS_OF(table) .fields = table, .nfields = ARRAY_LEN(table)
MRC_HDR(mrc, "rdma.mrc", "Multipath Reliable Connection", 0, FT_NONE, FIELDS_OF(mrc_fields))
MRC_HDR(mrc_meth, "rdma.mrc.meth", "METH - Message Extended Transport Header", 4, FT_BYTES, FIELDS_OF(meth_fields))
MRC_HDR(mrc_tseth, "rdma.mrc.tseth", "TSETH - Time Stamp Extended Transport Header", 4, FT_BYTES,
        FIELDS_OF(tseth_fields))
MRC_HDR(mrc_seth, "rdma.mrc.seth", "SETH - SACK Extended Transport Header", 28, FT_BYTES, FIELDS_OF(seth_fields))
MRC_HDR(mrc_cc, "rdma.mrc.cc", "Congestion Control State", 8, FT_BYTES, FIELDS_OF(cc_fields))
MRC_HDR(mrc_neth, "rdma.mrc.neth", "NETH - NACK Extended Transport Header", 20, FT_BYTES, FIELDS_OF(neth_fields))
MRC_HDR(mrc_peth, "rdma.mrc.peth", "PETH - Probe Extended Transport Header", 16, FT_BYTES, FIELDS_OF(peth_fields))
MRC_HDR(mrc_erth, "rdma.mrc.erth", "ERTH - Endpoint Request Extended Transport Header", 16, FT_BYTES,
        FIELDS_OF(erth_fields))
MRC_HDR(mrc_eeth, "rdma.mrc.eeth", "EETH - Endpoint Response Extended Transport Header (layout not verified)", 36,
        FT_BYTES)

static const struct {
    unsigned bit;
    const struct hdr *hdr;
} headers[] = {
    {METH, &mrc_meth_hdr},   {TSETH, &mrc_tseth_hdr}, {RETH, &reth_hdr},     {IMMDT, &immdt_hdr},
    {AETH, &aeth_hdr},       {ERTH, &mrc_erth_hdr},   {EETH, &mrc_eeth_hdr}, {SETH, &mrc_seth_hdr},
    {CC_STATE, &mrc_cc_hdr}, {NETH, &mrc_neth_hdr},   {PETH, &mrc_peth_hdr},
};

/* --- Decoding --------------------------------------------------------------------------------- */

static unsigned headers_of(const struct pkt *p)
{
    unsigned h = p->bth.opcode >= FIRST_OPCODE ? ops[p->bth.opcode & 31].headers : 0;

    return bth_bits(p) & BTH_TIMESTAMP ? h : h & ~(unsigned)TSETH;
}

static uint32_t length_of(unsigned set)
{
    uint32_t n = 0;

    for (unsigned i = 0; i < ARRAY_LEN(headers); i++)
        n += set & headers[i].bit ? headers[i].hdr->len : 0;
    return n;
}

/* The bytes of the header `bit` of packet `p`; NULL if they were not captured. */
static const uint8_t *bytes_of(const struct pkt *p, unsigned bit)
{
    uint32_t off = p->payload_off + length_of(headers_of(p) & (bit - 1)), len = length_of(bit);

    return off <= p->caplen && len <= p->caplen - off ? p->data + off : NULL;
}

static void write_info(struct buf *b, const struct pkt *p)
{
    const uint8_t *meth = bytes_of(p, METH), *at = bytes_of(p, RETH);
    struct reth r;

    if (meth)
        buf_printf(b, " MSN %u", load_be16(meth + 2));
    if (!at)
        return;
    reth_get(&r, at);
    buf_printf(b, " va 0x%llx rkey 0x%x len %u", (unsigned long long)r.va, r.rkey, r.dmalen);
}

static void sack_info(struct buf *b, const struct pkt *p)
{
    const uint8_t *s = bytes_of(p, SETH);

    if (s)
        buf_printf(b, " up to PSN %u, bitmap 0x%llx from PSN %u", load_be32(s + 12) & PSN_MASK,
                   (unsigned long long)load_be64(s + 20),
                   (load_be32(s + 12) + (uint32_t)(int16_t)load_be16(s + 18)) & PSN_MASK);
}

static void nack_info(struct buf *b, const struct pkt *p)
{
    const uint8_t *n = bytes_of(p, NETH);

    if (!n)
        return;
    buf_printf(b, " of PSN %u: ", load_be32(n + 12) & PSN_MASK);
    if (!vdesc_print(b, &nack_desc, n[2]))
        buf_printf(b, "reason 0x%02x", n[2]);
}

static void mrc_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    unsigned h = headers_of(p);

    (void)l;
    buf_printf(b, "MRC %s QP 0x%06x PSN %u", ops[p->bth.opcode & 31].name, p->bth.dqpn, p->bth.psn);
    if (bth_bits(p) & BTH_RETRANSMISSION)
        buf_puts(b, " retransmission");
    if (h & METH)
        write_info(b, p);
    else if (h & SETH)
        sack_info(b, p);
    else if (h & NETH)
        nack_info(b, p);
}

/* A WRITE has no more payload than its RETH asks for; other packets have nothing behind their headers. */
static bool fits(const struct pkt *p, unsigned h, uint32_t len)
{
    const uint8_t *reth = bytes_of(p, RETH);

    if (!(h & PAYLOAD))
        return p->payload_len == len;
    return p->payload_len >= len && (!reth || p->payload_len - len <= load_be32(reth + 12));
}

bool mrc_decode(struct pkt *p)
{
    unsigned h = headers_of(p);
    uint32_t off = p->payload_off, len = length_of(h);

    if (!h || !(p->have & H_IP6) || p->encap != ENCAP_ROCEV2 || !fits(p, h, len))
        return false;
    pkt_layer(p, &mrc_hdr, off, 0);
    for (unsigned i = 0; i < ARRAY_LEN(headers) && off < p->caplen; i++)
        if (h & headers[i].bit) {
            pkt_layer(p, headers[i].hdr, off, headers[i].hdr->len);
            off += headers[i].hdr->len;
        }
    off = p->payload_off + len;
    if (p->payload_len > len && off < p->payload_off + p->payload_cap)
        pkt_layer(p, &ib_payload_hdr, off, p->payload_len - len);
    return true;
}
