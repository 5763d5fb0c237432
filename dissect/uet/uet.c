/* layer 1 (wire): Ultra Ethernet Transport: headers read, their fields. */
#include "dissect/uet/uet.h"

#include "dissect/decode_opts.h"
#include "dissect/field.h"

/* --- Which packet ----------------------------------------------------------------------------- */

/* Bytes of the header of each type, the prologue included; 0: there is no such type. */
static const uint8_t pds_len[32] = {
    [UET_TSS] = 12,     [UET_RUD_REQ] = 12,  [UET_ROD_REQ] = 12,    [UET_RUDI_REQ] = 8,   [UET_RUDI_RESP] = 8,
    [UET_UUD_REQ] = 4,  [UET_ACK] = 12,      [UET_ACK_CC] = 32,     [UET_ACK_CCX] = 40,   [UET_NACK] = 16,
    [UET_CONTROL] = 16, [UET_NACK_CCX] = 32, [UET_RUD_CC_REQ] = 16, [UET_ROD_CC_REQ] = 16};
static const uint8_t ses_len[16] = {[UET_SMALL] = 20,    [UET_MEDIUM] = 32,        [UET_STANDARD] = 44,
                                    [UET_RESPONSE] = 12, [UET_RESPONSE_DATA] = 20, [UET_RESPONSE_SMALL] = 12};

static unsigned type_of(const uint8_t *p)
{
    return p[0] >> 3;
}
static unsigned next_of(const uint8_t *p)
{
    return (p[0] & 7u) << 1 | p[1] >> 7;
}
static bool is_request_type(unsigned type)
{
    return (type >= UET_RUD_REQ && type <= UET_RUDI_REQ) || type == UET_UUD_REQ || type == UET_RUD_CC_REQ ||
           type == UET_ROD_CC_REQ;
}
static bool is_ack_type(unsigned type)
{
    return type == UET_RUDI_RESP || (type >= UET_ACK && type <= UET_ACK_CCX);
}
/* Bytes of the header; an encrypted packet has a source identifier more if its SP bit is set. */
static unsigned pds_len_of(const uint8_t *p)
{
    return pds_len[type_of(p)] + (type_of(p) == UET_TSS && p[0] & 0x04 ? 4 : 0);
}
/* NACKs and control packets have no next header: its place says more of them. */
static unsigned ses_of(const uint8_t *p)
{
    unsigned type = type_of(p);

    return is_request_type(type) || is_ack_type(type) ? next_of(p) : UET_NONE;
}

/* Whether the bytes, `len` of `wire` captured, are a packet: a type and a next header that exist, and that have room.
 * Requests are followed by requests, acknowledgements by responses. */
static bool is_packet(const uint8_t *p, uint32_t len, uint32_t wire)
{
    unsigned type, ses;

    if (len < 2 || !pds_len[type_of(p)] || len < pds_len_of(p))
        return false;
    type = type_of(p);
    ses = ses_of(p);
    if (ses == UET_NONE)
        return true;
    return ses_len[ses] && wire - pds_len[type] >= ses_len[ses] && is_request_type(type) == (ses <= UET_STANDARD);
}

/* --- Names ------------------------------------------------------------------------------------ */

static const struct vname types[] = {{UET_TSS, "TSS (encrypted)"},
                                     {UET_RUD_REQ, "RUD_REQ"},
                                     {UET_ROD_REQ, "ROD_REQ"},
                                     {UET_RUDI_REQ, "RUDI_REQ"},
                                     {UET_RUDI_RESP, "RUDI_RESP"},
                                     {UET_UUD_REQ, "UUD_REQ"},
                                     {UET_ACK, "ACK"},
                                     {UET_ACK_CC, "ACK_CC"},
                                     {UET_ACK_CCX, "ACK_CCX"},
                                     {UET_NACK, "NACK"},
                                     {UET_CONTROL, "CTRL"},
                                     {UET_NACK_CCX, "NACK_CCX"},
                                     {UET_RUD_CC_REQ, "RUD_CC_REQ"},
                                     {UET_ROD_CC_REQ, "ROD_CC_REQ"}};
static const struct vdesc type_desc = VDESC_NAMES(types);

static const struct vname next_headers[] = {{UET_NONE, "none"},
                                            {UET_SMALL, "small request"},
                                            {UET_MEDIUM, "medium request"},
                                            {UET_STANDARD, "standard request"},
                                            {UET_RESPONSE, "response"},
                                            {UET_RESPONSE_DATA, "response with data"},
                                            {UET_RESPONSE_SMALL, "response with small data"}};
static const struct vdesc next_desc = VDESC_NAMES(next_headers);

static const struct vname controls[] = {{0, "noop"},           {1, "ACK request"},   {2, "clear"}, {3, "clear request"},
                                        {4, "close"},          {5, "close request"}, {6, "probe"}, {7, "credit"},
                                        {8, "credit request"}, {9, "negotiation"}};
static const struct vdesc control_desc = VDESC_NAMES(controls);

static const struct vname nacks[] = {{0x01, "trimmed"},
                                     {0x02, "trimmed at the last hop"},
                                     {0x03, "trimmed ACK"},
                                     {0x04, "no PDC"},
                                     {0x05, "no CCC"},
                                     {0x06, "no bitmap"},
                                     {0x07, "no packet buffer"},
                                     {0x08, "no state for guaranteed delivery"},
                                     {0x09, "no state for the message"},
                                     {0x0a, "no resource"},
                                     {0x0b, "PSN outside the window"},
                                     {0x0d, "ROD out of order"},
                                     {0x0e, "invalid DPDCID"},
                                     {0x0f, "header does not fit the PDC"},
                                     {0x10, "closing"},
                                     {0x11, "closing in error"},
                                     {0x12, "packet not received"},
                                     {0x13, "guaranteed response unavailable"},
                                     {0x14, "ACK with data"},
                                     {0x15, "invalid SYN"},
                                     {0x16, "PDC mode mismatch"},
                                     {0x17, "new start PSN"},
                                     {0x18, "received, in processing"},
                                     {0x19, "unexpected event"},
                                     {0x1a, "receiver inferred a loss"},
                                     {0xfd, "experimental"},
                                     {0xfe, "experimental error"},
                                     {0xff, "experimental, fatal"}};
static const struct vdesc nack_desc = VDESC_NAMES(nacks);

static const struct vname opcodes[] = {{0x0, "noop"},
                                       {0x1, "write"},
                                       {0x2, "read"},
                                       {0x3, "atomic"},
                                       {0x4, "fetching atomic"},
                                       {0x5, "send"},
                                       {0x6, "rendezvous send"},
                                       {0x7, "datagram send"},
                                       {0x8, "deferrable send"},
                                       {0x9, "tagged send"},
                                       {0xa, "rendezvous tagged send"},
                                       {0xb, "deferrable tagged send"},
                                       {0xc, "deferrable RTR"},
                                       {0xd, "tagged send atomic"},
                                       {0xe, "tagged send fetching atomic"},
                                       {0xf, "message error"}};
static const struct vdesc ses_opcode_desc = VDESC_NAMES(opcodes);

static const struct vname responses[] = {
    {0, "default response"}, {1, "response"}, {2, "response with data"}, {3, "no response"}};
static const struct vdesc response_desc = VDESC_NAMES(responses);

static const struct vname returns[] = {{0x00, "none"},
                                       {0x01, "ok"},
                                       {0x02, "bad generation"},
                                       {0x03, "disabled"},
                                       {0x04, "disabled, bad generation"},
                                       {0x05, "no match"},
                                       {0x06, "unsupported operation"},
                                       {0x07, "unsupported size"},
                                       {0x08, "invalid translation of the address"},
                                       {0x09, "translation not permitted"},
                                       {0x0a, "ATS failed"},
                                       {0x0b, "no translation"},
                                       {0x0c, "address out of range"},
                                       {0x0d, "poisoned"},
                                       {0x0e, "unsuccessful"},
                                       {0x0f, "unsupported atomic operation"},
                                       {0x10, "unsupported atomic type"},
                                       {0x11, "unsupported atomic size"},
                                       {0x12, "atomic alignment"},
                                       {0x13, "atomic: not a number"},
                                       {0x14, "atomic underflow"},
                                       {0x15, "atomic overflow"},
                                       {0x16, "atomic: inexact"},
                                       {0x17, "no permission"},
                                       {0x18, "operation violation"},
                                       {0x19, "bad index"},
                                       {0x1a, "bad PID"},
                                       {0x1b, "bad job"},
                                       {0x1c, "bad key"},
                                       {0x1d, "bad address"},
                                       {0x1e, "cancelled"},
                                       {0x1f, "undeliverable"},
                                       {0x20, "uncorrectable"},
                                       {0x21, "transient"},
                                       {0x22, "too long"},
                                       {0x23, "initiator error"},
                                       {0x24, "dropped"}};
static const struct vdesc return_desc = VDESC_NAMES(returns);

/* --- Fields ----------------------------------------------------------------------------------- */

#define ROW(when, bit, width, type, base, desc, abbrev, label, blurb)                                                  \
    FIELD_ROW(when, bit, width, type, base, desc, 0, abbrev, label, blurb)
#define HALF(when, at, abbrev, label, blurb)  ROW(when, 8 * (at), 16, FT_UINT16, BASE_DEC, NULL, abbrev, label, blurb)
#define WORD(when, at, abbrev, label, blurb)  ROW(when, 8 * (at), 32, FT_UINT32, BASE_DEC, NULL, abbrev, label, blurb)
#define FLAG(when, bit, abbrev, label, blurb) ROW(when, bit, 1, FT_BOOL, BASE_NONE, NULL, abbrev, label, blurb)
#define TYPE_IS(name, condition)                                                                                       \
    static bool name(const uint8_t *p, uint32_t len)                                                                   \
    {                                                                                                                  \
        const unsigned type = len >= 2 ? type_of(p) : 0;                                                               \
        return type && (condition);                                                                                    \
    }
#define IS_PDC_REQUEST (type == UET_RUD_REQ || type == UET_ROD_REQ || type == UET_RUD_CC_REQ || type == UET_ROD_CC_REQ)
#define IS_ACK         (type >= UET_ACK && type <= UET_ACK_CCX)
#define IS_NACK        (type == UET_NACK || type == UET_NACK_CCX)
TYPE_IS(is_pdc_request, IS_PDC_REQUEST)
TYPE_IS(is_ack, IS_ACK)
TYPE_IS(is_ack_cc, type == UET_ACK_CC || type == UET_ACK_CCX)
TYPE_IS(is_nack, IS_NACK)
TYPE_IS(is_control, type == UET_CONTROL)
TYPE_IS(is_rudi, type == UET_RUDI_REQ || type == UET_RUDI_RESP)
TYPE_IS(has_next, is_request_type(type) || is_ack_type(type))
TYPE_IS(has_psn, IS_PDC_REQUEST || type == UET_CONTROL)
TYPE_IS(has_pdc, IS_PDC_REQUEST || IS_ACK || IS_NACK || type == UET_CONTROL)
#define HAS_SYN (IS_PDC_REQUEST || type == UET_CONTROL)
#define OPENS   (HAS_SYN && p[1] & 0x04) /* SYN: the PDC of the receiver is not known yet */
TYPE_IS(opens, OPENS)
TYPE_IS(has_dpdcid, (HAS_SYN && !OPENS) || IS_ACK || IS_NACK)
TYPE_IS(has_syn, HAS_SYN)
TYPE_IS(has_retransmit, type != UET_TSS && type != UET_UUD_REQ)

TYPE_IS(is_tss, type == UET_TSS)
TYPE_IS(has_source, type == UET_TSS && p[0] & 0x04)
TYPE_IS(has_no_source, type == UET_TSS && !(p[0] & 0x04))
TYPE_IS(is_not_tss, type != UET_TSS)
TYPE_IS(has_mark, IS_ACK || IS_NACK || type == UET_RUDI_REQ || type == UET_RUDI_RESP)
TYPE_IS(asks_for_ack, IS_PDC_REQUEST || type == UET_CONTROL)
TYPE_IS(is_probe, (IS_ACK && p[1] & 0x08) || type == UET_CONTROL)
TYPE_IS(has_credit_target, type == UET_RUD_CC_REQ || type == UET_ROD_CC_REQ)
TYPE_IS(is_ccx, type == UET_ACK_CCX)
TYPE_IS(is_nscc, type == UET_ACK_CC && len >= 13 && p[12] >> 4 == 0)
TYPE_IS(is_credit, type == UET_ACK_CC && len >= 13 && p[12] >> 4 == 1)
TYPE_IS(counts_order, type == UET_ACK_CC && len >= 13 && p[12] >> 4 <= 1)
TYPE_IS(acknowledges, IS_ACK && !(p[1] & 0x08))

/* A PSN that the header states as the difference to the one at byte 4: its place, and whether it has it. */
#define PSN_OF(name, has, difference)                                                                                  \
    static bool name(const struct pkt *packet, const struct layer *l, struct value *v)                                 \
    {                                                                                                                  \
        const uint8_t *p = layer_bytes(packet, l);                                                                     \
        if (l->len < 12 || !has(p, l->len))                                                                            \
            return false;                                                                                              \
        v->u = (load_be32(p + 4) + (uint32_t)(difference)) & UINT32_MAX;                                               \
        return true;                                                                                                   \
    }
PSN_OF(clear_psn, is_pdc_request, (int16_t)load_be16(p + 2))
PSN_OF(ack_psn, acknowledges, (int16_t)load_be16(p + 2))
PSN_OF(start_psn, opens, -(load_be16(p + 10) & 0xfff))
#define PSN(get, abbrev, label, blurb) FIELD_GET(get, FT_UINT32, BASE_DEC, NULL, 0, abbrev, label, blurb)

static const struct vname ack_requests[] = {{1, "clear"}, {2, "close"}};
static const struct vdesc ack_request_desc = VDESC_NAMES(ack_requests);

static const struct field uet_pds_fields[] = {
    ROW(NULL, 0, 5, FT_UINT8, BASE_DEC, &type_desc, "uet.pds.type", "Type", "Type of the packet."),
    ROW(is_tss, 5, 1, FT_BOOL, BASE_NONE, NULL, "uet.tss.sp", "SP", "A source identifier follows."),
    ROW(is_tss, 7, 1, FT_UINT8, BASE_DEC, NULL, "uet.tss.an", "AN", "Which of two keys."),
    ROW(is_tss, 8, 24, FT_UINT24, BASE_DEC, NULL, "uet.tss.sdi", "SDI", "Identifier of the secure domain."),
    ROW(has_source, 32, 32, FT_UINT32, BASE_DEC, NULL, "uet.tss.ssi", "SSI", "Identifier of the source."),
    ROW(has_source, 64, 64, FT_UINT64, BASE_HEX, NULL, "uet.tss.tsc", "TSC", "Epoch (16 bits) and counter (48 bits)."),
    ROW(has_no_source, 32, 64, FT_UINT64, BASE_HEX, NULL, "uet.tss.tsc", "TSC",
        "Epoch (16 bits) and counter (48 bits)."),
    ROW(has_next, 5, 4, FT_UINT8, BASE_DEC, &next_desc, "uet.pds.nh", "Next Header", "What follows."),
    ROW(is_control, 5, 4, FT_UINT8, BASE_DEC, &control_desc, "uet.pds.ctl_type", "Control Type", "Which control."),
    ROW(is_not_tss, 9, 7, FT_UINT8, BASE_HEX, NULL, "uet.pds.flags", "Flags", "Flags of the type."),
    FLAG(has_mark, 10, "uet.pds.flags.m", "ECN Marked", "The packet that it answers was marked; of RUDI, itself."),
    FLAG(is_control, 10, "rdma.uet.pds.flags.isrod", "ISROD", "The context is one of ROD."),
    FLAG(has_retransmit, 11, "uet.pds.flags.retx", "Retransmission", "The packet is sent again."),
    FLAG(asks_for_ack, 12, "uet.pds.flags.ar", "ACK Request", "The sender asks for an ACK."),
    FLAG(is_ack, 12, "uet.pds.flags.p", "Probe", "It answers a probe."),
    FLAG(is_nack, 12, "uet.pds.flags.nt", "NACK Type", "Of a packet of RUDI: the PSN is its identifier."),
    FLAG(has_syn, 13, "uet.pds.flags.syn", "SYN", "The packet opens a PDC."),
    ROW(is_ack, 13, 2, FT_UINT8, BASE_DEC, &ack_request_desc, "uet.pds.flags.req", "Request",
        "What the sender of the ACK asks for."),
    PSN(clear_psn, "uet.pds.clear_psn", "Clear PSN", "Up to which PSN state may be cleared."),
    ROW(is_pdc_request, 16, 16, FT_INT16, BASE_DEC, NULL, "rdma.uet.pds.clear_psn_offset", "Clear PSN Offset",
        "The same, from the PSN."),
    PSN(ack_psn, "uet.pds.ack_psn", "ACK PSN", "The PSN that is acknowledged."),
    ROW(acknowledges, 16, 16, FT_INT16, BASE_DEC, NULL, "rdma.uet.pds.ack_psn_offset", "ACK PSN Offset",
        "The same, from the cumulative one."),
    ROW(is_probe, 16, 16, FT_UINT16, BASE_HEX, NULL, "uet.pds.ctrl_probe_opaque", "Opaque",
        "Which probe, for its sender."),
    ROW(is_nack, 16, 8, FT_UINT8, BASE_DEC, &nack_desc, "uet.pds.nack.code", "NACK Code", "Why."),
    ROW(is_nack, 24, 8, FT_UINT8, BASE_DEC, NULL, "uet.pds.nack.vendor_code", "Vendor Code", "Of the vendor."),
    WORD(has_psn, 4, "uet.pds.psn", "PSN", "Number of the packet."),
    WORD(is_ack, 4, "uet.pds.cack_psn", "Cumulative ACK PSN", "All packets up to here have arrived."),
    WORD(is_nack, 4, "uet.pds.nack.psn", "NACK PSN", "The packet that is meant."),
    WORD(is_rudi, 4, "uet.pds.rudi.pkt_id", "Packet ID", "Identifier of the packet."),
    HALF(has_pdc, 8, "uet.pds.spdcid", "SPDCID", "Context of the sender."),
    HALF(has_dpdcid, 10, "uet.pds.dpdcid", "DPDCID", "Context of the receiver."),
    ROW(opens, 80, 4, FT_UINT8, BASE_HEX, NULL, "rdma.uet.pds.pdc_info", "PDC Info",
        "With SYN: the kind of context. One bit asks for a reserved one; sources differ on whether it is 8 or 1."),
    ROW(opens, 84, 12, FT_UINT16, BASE_DEC, NULL, "uet.pds.psn_offset", "PSN Offset",
        "With SYN, in place of the DPDCID: packets since the first PSN of the context."),
    PSN(start_psn, "uet.pds.start_psn", "Start PSN", "The first PSN of the context."),
    ROW(has_credit_target, 96, 8, FT_UINT8, BASE_DEC, NULL, "uet.pds.cc_state.ccc_id", "CCC ID",
        "Context of congestion control."),
    ROW(has_credit_target, 104, 24, FT_UINT24, BASE_HEX, NULL, "uet.pds.cc_state.credit_target", "Credit Target",
        "Credits that the sender wants."),
    ROW(is_nack, 96, 32, FT_UINT32, BASE_HEX, NULL, "rdma.uet.nack.payload", "Payload", "Depends on the code."),
    ROW(is_control, 96, 32, FT_UINT32, BASE_HEX, NULL, "uet.pds.ctrl_payload", "Payload", "Depends on the control."),
    ROW(is_ack_cc, 96, 4, FT_UINT8, BASE_DEC, NULL, "uet.pds.ack.cc_type", "CC Type", "Kind of congestion control."),
    ROW(is_ack_cc, 100, 4, FT_UINT8, BASE_HEX, NULL, "rdma.uet.ack.cc_flags", "CC Flags", "Of that kind."),
    ROW(is_ack_cc, 104, 8, FT_UINT8, BASE_DEC, NULL, "uet.pds.ack.mpr", "Maximum PSN Range",
        "Packets that the receiver keeps beyond the cumulative PSN; its unit was not verified."),
    ROW(is_ack_cc, 112, 16, FT_INT16, BASE_DEC, NULL, "rdma.uet.ack.sack_offset", "SACK PSN Offset",
        "First PSN of the bitmap, from the cumulative one."),
    ROW(is_ack_cc, 128, 64, FT_UINT64, BASE_HEX, NULL, "uet.pds.ack.sack_bitmap", "SACK Bitmap",
        "Packets that have arrived."),
    ROW(is_nscc, 192, 16, FT_UINT16, BASE_DEC, NULL, "uet.pds.ack.cc_state.service_time", "Service Time",
        "Of the receiver."),
    FLAG(is_nscc, 208, "uet.pds.ack.cc_state.rc", "Restore Window", "The sender is to restore its window."),
    ROW(is_nscc, 209, 7, FT_UINT8, BASE_DEC, NULL, "uet.pds.ack.cc_state.rcv_cwnd_pend", "Window Penalty",
        "Of the receiver."),
    ROW(is_nscc, 216, 24, FT_UINT24, BASE_DEC, NULL, "uet.pds.ack.cc_state.rcvd_bytes", "Received Bytes",
        "That have arrived; its unit was not verified."),
    ROW(is_credit, 192, 24, FT_UINT24, BASE_DEC, NULL, "uet.pds.ack.cc_state.credit", "Credit",
        "Granted to the sender."),
    ROW(counts_order, 240, 16, FT_UINT16, BASE_DEC, NULL, "uet.pds.ack.cc_state.ooo_count", "Out of Order",
        "Packets that came out of order."),
    FIELD_AT(is_ccx, 24, 16, FT_BYTES, "uet.pds.ack.ccx_state", "CCX State", "Of an extended congestion control."),
};
static void put_name(struct buf *b, const struct vname *names, size_t n, uint64_t v)
{
    const char *name = vname_find(names, n, v);

    if (name)
        buf_printf(b, " (%s)", name);
}
/* What the layer behind that of PDS asks for. */
static void put_request(struct buf *b, const struct pkt *p, const struct layer *l)
{
    const struct layer *next = l + 1;
    const char *name;

    if (next == p->layers + p->n_layers || next->hdr == &uet_response_hdr)
        return;
    name = vname_find(opcodes, ARRAY_LEN(opcodes), p->data[next->off] & 0x3f);
    if (name)
        buf_printf(b, " | %s", name);
    if (++next < p->layers + p->n_layers && (next->hdr == &uet_atomic_hdr || next->hdr == &uet_swap_hdr))
        uet_atomic_text(b, p->data + next->off);
}
/* What a packet with SYN has in place of the receiver's context. */
static void put_opening(struct buf *b, const uint8_t *q)
{
    unsigned v = load_be16(q + 10), offset = v & 0xfff;

    buf_printf(b, " PDC %u PSN offset %u", load_be16(q + 8), offset);
    if (offset)
        buf_printf(b, " (starts at %u)", load_be32(q + 4) - offset);
    if (v >> 12)
        buf_printf(b, " PDC info 0x%x", v >> 12);
}
static void pds_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    const uint8_t *q = p->data + l->off;
    const char *name = vname_find(types, ARRAY_LEN(types), type_of(q));

    buf_printf(b, "UET %s", name ? name : "");
    if (is_control(q, l->len))
        put_name(b, controls, ARRAY_LEN(controls), next_of(q));
    if (opens(q, l->len))
        buf_puts(b, " SYN");
    if (is_pdc_request(q, l->len) || is_control(q, l->len))
        buf_printf(b, " PSN %u", load_be32(q + 4));
    else if (is_ack(q, l->len))
        buf_printf(b, " CACK PSN %u", load_be32(q + 4));
    else if (is_nack(q, l->len))
        buf_printf(b, " PSN %u code 0x%02x", load_be32(q + 4), q[2]);
    if (is_nack(q, l->len))
        put_name(b, nacks, ARRAY_LEN(nacks), q[2]);
    if (opens(q, l->len))
        put_opening(b, q);
    else if (has_pdc(q, l->len))
        buf_printf(b, " PDC %u > %u", load_be16(q + 8), load_be16(q + 10));
    put_request(b, p, l);
}
UET_HDR(uet_pds, "uet", "Ultra Ethernet Transport", 2, pds_info);

/* What all requests begin with, by the names of one of them. */
#define REQUEST_ROWS(name, flags, generation)                                                                          \
    ROW(NULL, 2, 6, FT_UINT8, BASE_DEC, &ses_opcode_desc, name ".opcode", "Opcode", "What is asked for."),             \
        ROW(NULL, 8, 2, FT_UINT8, BASE_DEC, NULL, name flags ".ver", "Version", "0."),                                 \
        FLAG(NULL, 10, name flags ".dc", "DC", "Its delivery is to be complete before it is answered."),               \
        FLAG(NULL, 11, name flags ".ie", "IE", "The initiator has found an error."),                                   \
        FLAG(NULL, 12, name flags ".rel", "REL", "Addressing is relative to the job."),                                \
        FLAG(NULL, 14, name ".eom", "EOM", "Last packet of the message."),                                             \
        FLAG(NULL, 15, name ".som", "SOM", "First packet of the message."),                                            \
        ROW(NULL, 32, 8, FT_UINT8, BASE_DEC, NULL, name generation, "Generation", "Of the resource index."),           \
        ROW(NULL, 40, 24, FT_UINT24, BASE_DEC, NULL, name ".job_id", "Job ID", "Job."),                                \
        ROW(NULL, 68, 12, FT_UINT16, BASE_DEC, NULL, name ".pidonfep", "PID on FEP", "Process."),                      \
        ROW(NULL, 84, 12, FT_UINT16, BASE_DEC, NULL, name ".resource_index", "Resource Index",                         \
            "Resource of the process.")
#define OFFSET(when, at, name)                                                                                         \
    ROW(when, 8 * (at), 64, FT_UINT64, BASE_HEX, NULL, name ".buffer_offset", "Buffer Offset", "In the memory.")
#define KEY(when, at, name)                                                                                            \
    ROW(NULL, 8 * (at), 32, FT_UINT32, BASE_HEX, NULL, name ".initiator", "Initiator", "Who asks."),                   \
        ROW(when, 8 * (at) + 32, 64, FT_UINT64, BASE_HEX, NULL, name ".mem_key_match_bits",                            \
            "Match Bits or Memory Key", "Which memory.")

static const struct field uet_small_fields[] = {
    REQUEST_ROWS("uet.ses.small_req", ".flags", ".index_generation"),
    ROW(NULL, 18, 14, FT_UINT16, BASE_DEC, NULL, "uet.ses.small_req.req_length", "Length", "Bytes."),
    OFFSET(NULL, 12, "uet.ses.small_req"),
};
UET_HDR(uet_small, "uet.ses.small_req", "UET small request", 20, NULL);

/* Its bytes 2 and 3 have a name in no two sources: a message identifier, or a length. */
static const struct field uet_medium_fields[] = {
    REQUEST_ROWS("uet.ses.med_req", ".flags", ".resource_index_generation"),
    FLAG(NULL, 13, "uet.ses.med_req.flags.hd", "HD", "It has header data."),
    ROW(NULL, 96, 64, FT_UINT64, BASE_HEX, NULL, "rdma.uet.ses.med_req.data", "Header Data or Buffer Offset",
        "Header data of a send; where in the memory of a WRITE, READ or atomic."),
    KEY(NULL, 20, "uet.ses.med_req"),
};
UET_HDR(uet_medium, "uet.ses.med_req", "UET medium request", 32, NULL);

static bool is_first(const uint8_t *p, uint32_t len)
{
    return len == 44 && p[1] & 1;
}
static bool is_later(const uint8_t *p, uint32_t len)
{
    return len == 44 && !(p[1] & 1);
}
static bool is_deferrable(const uint8_t *p, uint32_t len)
{
    return len == 44 && ((p[0] & 0x3f) == UET_OP_DEFERRABLE || (p[0] & 0x3f) == UET_OP_TAGGED_DEFERRABLE);
}
static bool is_restart(const uint8_t *p, uint32_t len)
{
    return len == 44 && (p[0] & 0x3f) == UET_OP_READY_TO_RESTART;
}
static bool has_offset(const uint8_t *p, uint32_t len)
{
    return len == 44 && !is_deferrable(p, len);
}
static bool has_key(const uint8_t *p, uint32_t len)
{
    return len == 44 && !is_restart(p, len);
}
#define TOKEN(when, at)                                                                                                \
    ROW(when, 8 * (at), 64, FT_UINT64, BASE_HEX, NULL, "uet.ses.std.restart_token", "Restart Token",                   \
        "Of the initiator (first half) and the target, for a send that is deferred.")
static const struct field uet_request_fields[] = {
    REQUEST_ROWS("uet.ses.std", "", ".index_generation"),
    FLAG(NULL, 13, "uet.ses.std.hd", "HD", "It has header data."),
    HALF(NULL, 2, "uet.ses.std.message_id", "Message ID", "Identifier of the message."),
    OFFSET(has_offset, 12, "uet.ses.std"),
    TOKEN(is_deferrable, 12),
    KEY(has_key, 20, "uet.ses.std"),
    TOKEN(is_restart, 24),
    ROW(is_first, 256, 64, FT_UINT64, BASE_HEX, NULL, "uet.ses.std.header_data", "Header Data", "For the receiver."),
    ROW(is_later, 274, 14, FT_UINT16, BASE_DEC, NULL, "uet.ses.std.payload_length", "Payload Length", "Bytes here."),
    WORD(is_later, 36, "uet.ses.std.message_offset", "Message Offset", "Where they are in the message."),
    WORD(NULL, 40, "uet.ses.std.request_length", "Request Length", "Bytes of the message."),
};
UET_HDR(uet_request, "uet.ses.std", "UET request", 44, NULL);

/* The three responses are told apart by their opcode and the length of the layer. */
static bool has_small_data(const uint8_t *p, uint32_t len)
{
    return len == 12 && (p[0] & 0x3f) == 2;
}
static bool is_response(const uint8_t *p, uint32_t len)
{
    return !has_small_data(p, len);
}
static bool is_alone(const uint8_t *p, uint32_t len)
{
    return len == 12 && !has_small_data(p, len);
}
static bool has_data(const uint8_t *p, uint32_t len)
{
    (void)p;
    return len == 20;
}
static const struct field uet_response_fields[] = {
    ROW(NULL, 0, 2, FT_UINT8, BASE_DEC, NULL, "uet.ses.rsp.list", "List", "0 expected, 1 overflow."),
    ROW(NULL, 2, 6, FT_UINT8, BASE_DEC, &response_desc, "uet.ses.rsp.opcode", "Opcode", "Kind of response."),
    ROW(NULL, 8, 2, FT_UINT8, BASE_DEC, NULL, "uet.ses.rsp.ver", "Version", "0."),
    ROW(NULL, 10, 6, FT_UINT8, BASE_DEC, &return_desc, "uet.ses.rsp.return_code", "Return Code", "How it ended."),
    HALF(is_response, 2, "uet.ses.rsp.message_id", "Message ID", "Identifier of the message."),
    ROW(has_small_data, 18, 14, FT_UINT16, BASE_DEC, NULL, "uet.ses.rsp.payload_length", "Payload Length",
        "Bytes here."),
    ROW(is_response, 32, 8, FT_UINT8, BASE_DEC, NULL, "uet.ses.rsp.resource_index_gen", "Generation",
        "Of the resource index."),
    ROW(NULL, 40, 24, FT_UINT24, BASE_DEC, NULL, "uet.ses.rsp.job_id", "Job ID", "Job."),
    WORD(is_alone, 8, "uet.ses.rsp.mod_length", "Modified Length", "Bytes that were taken."),
    WORD(has_small_data, 8, "rdma.uet.ses.rsp.request_psn", "Request PSN", "PSN of the request."),
    HALF(has_data, 8, "uet.ses.rsp.read_req_message_id", "Read Request Message ID", "The READ that is answered."),
    ROW(has_data, 82, 14, FT_UINT16, BASE_DEC, NULL, "uet.ses.rsp.payload_length", "Payload Length", "Bytes here."),
    WORD(has_data, 12, "uet.ses.rsp.mod_length", "Modified Length", "Bytes that were taken."),
    WORD(has_data, 16, "uet.ses.rsp.message_offset", "Message Offset", "Where they are in the message."),
};
UET_HDR(uet_response, "uet.ses.rsp", "UET response", 12, NULL);

/* --- The packet ------------------------------------------------------------------------------- */

#define LAYERS_FREE 4

static void add(struct pkt *p, const struct hdr *hdr, uint32_t off, uint32_t len)
{
    if (p->n_layers < PKT_LAYERS - LAYERS_FREE)
        p->layers[p->n_layers++] = (struct layer){.hdr = hdr, .off = off, .len = len};
}

static const struct hdr *ses_hdr(unsigned ses)
{
    return ses == UET_SMALL      ? &uet_small_hdr
           : ses == UET_MEDIUM   ? &uet_medium_hdr
           : ses == UET_STANDARD ? &uet_request_hdr
                                 : &uet_response_hdr;
}

void uet_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    uint32_t end = min_u32(p->caplen, p->end), len = end > off ? end - off : 0, at, next;
    const uint8_t *b = p->data + off;
    const struct hdr *ext;
    unsigned ses;

    (void)o;
    if (!is_packet(b, len, p->end > off ? p->end - off : 0))
        return;
    at = pds_len_of(b);
    add(p, &uet_pds_hdr, off, at);
    ses = ses_of(b);
    if (ses == UET_NONE || len - at < ses_len[ses])
        return;
    add(p, ses_hdr(ses), off + at, ses_len[ses]);
    next = at + ses_len[ses];
    ext = ses > UET_STANDARD ? NULL : uet_ext_hdr(b[at] & 0x3f, ses == UET_STANDARD, b + next, len - next);
    if (ext)
        add(p, ext, off + next, ext->len);
}
