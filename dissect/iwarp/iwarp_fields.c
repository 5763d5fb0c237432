/* layer 1 (wire): iWARP: the fields of its headers, and what the packet list says of them. */
#include "dissect/iwarp/iwarp.h"

#include "scratch.h"

#define IWARP_HDR(id, filter_name, title, protocol, shown, bytes, text)                                                \
    const struct hdr id##_hdr = {.abbrev = filter_name,                                                                \
                                 .name = title,                                                                        \
                                 .proto = protocol,                                                                    \
                                 .column = shown,                                                                      \
                                 .fields = id##_fields,                                                                \
                                 .nfields = ARRAY_LEN(id##_fields),                                                    \
                                 .len = bytes,                                                                         \
                                 .type = FT_NONE,                                                                      \
                                 .info = text,                                                                         \
                                 .upper = true}
#define MPA  "iwarp_mpa"
#define DDP  "iwarp_ddp_rdmap"
#define BITS FLD_PLAIN

/* --- The packet list -------------------------------------------------------------------------- */

static void put_tagged(struct buf *b, const struct ddp *d, uint32_t payload)
{
    buf_printf(b, " STag 0x%x TO 0x%llx len %u%s", d->stag, (unsigned long long)d->to, payload, d->last ? " last" : "");
}

static void put_read(struct buf *b, const uint8_t *q)
{
    struct rdmap_read r;

    rdmap_read_get(&r, q);
    buf_printf(b, " size %u source STag 0x%x TO 0x%llx sink STag 0x%x TO 0x%llx", r.size, r.source_stag,
               (unsigned long long)r.source_to, r.sink_stag, (unsigned long long)r.sink_to);
}

static void put_atomic(struct buf *b, const uint8_t *q)
{
    static const char *const names[] = {"FetchAdd", "Swap", "CmpSwap"};
    struct rdmap_atomic a;

    rdmap_atomic_get(&a, q);
    buf_printf(b, " %s id %u STag 0x%x TO 0x%llx", a.opcode < ARRAY_LEN(names) ? names[a.opcode] : "?", a.id, a.stag,
               (unsigned long long)a.to);
}

/* What is behind the name of an untagged message, with `n` of `all` bytes of payload at `q`. */
static void put_untagged(struct buf *b, const struct ddp *d, const uint8_t *q, uint32_t n, uint32_t all)
{
    struct rdmap_terminate t;

    buf_printf(b, " MSN %u", d->msn);
    if (d->opcode == RDMAP_SEND_INV || d->opcode == RDMAP_SEND_SE_INV)
        buf_printf(b, " invalidates STag 0x%x", d->inval);
    if (d->opcode == RDMAP_READ_REQUEST && n >= RDMAP_READ_LEN) {
        put_read(b, q);
    } else if (d->opcode == RDMAP_ATOMIC_REQUEST && n >= RDMAP_ATOMIC_REQUEST_LEN) {
        put_atomic(b, q);
    } else if (d->opcode == RDMAP_TERMINATE && rdmap_terminate_get(&t, q, n)) {
        buf_char(b, ' ');
        rdmap_terminate_text(b, &t);
    } else {
        if (d->mo || !d->last)
            buf_printf(b, " MO %u", d->mo);
        buf_printf(b, " len %u%s", all, d->last ? " last" : "");
    }
}

/* An FPDU of `len` bytes. */
static void put_fpdu(struct buf *b, const uint8_t *q, uint32_t len, bool crc)
{
    uint32_t ulpdu = len >= MPA_LENGTH_LEN ? load_be16(q) : 0, n = mpa_fpdu_len((uint16_t)ulpdu), payload,
             there = ulpdu ? min_u32(ulpdu, len - MPA_LENGTH_LEN) : 0;
    const char *name;
    struct ddp d;

    if (!ddp_get(&d, q + MPA_LENGTH_LEN, there)) {
        buf_printf(b, "FPDU len %u", ulpdu);
        return;
    }
    payload = ulpdu - d.head;
    name = rdmap_opcode_str(d.opcode);
    if (name)
        buf_puts(b, name);
    else
        buf_printf(b, "RDMAP opcode %u", d.opcode);
    if (d.tagged)
        put_tagged(b, &d, payload);
    else
        put_untagged(b, &d, q + MPA_LENGTH_LEN + d.head, there - d.head, payload);
    if (len < n)
        buf_puts(b, " [bytes of it were not captured]");
    else if (crc && mpa_crc(q, n - MPA_CRC_LEN) != load_be32(q + n - MPA_CRC_LEN))
        buf_puts(b, " [bad CRC]");
}

/* All FPDUs of a packet, or its request or reply. */
static void iwarp_info(struct buf *b, const struct pkt *p, const struct layer *last)
{
    const char *sep = "";
    struct mpa_start m;

    (void)last;
    for (unsigned i = 0; i < p->n_layers; i++) {
        const struct layer *l = &p->layers[i];
        bool fpdu = l->hdr == &mpa_fpdu_hdr || l->hdr == &mpa_fpdu_crc_hdr;
        bool start =
            (l->hdr == &mpa_request_hdr || l->hdr == &mpa_reply_hdr) && mpa_start_get(&m, layer_bytes(p, l), l->len);
        if (!fpdu && !start)
            continue;
        buf_puts(b, sep);
        sep = "; ";
        if (fpdu) {
            put_fpdu(b, layer_bytes(p, l), l->len, l->hdr == &mpa_fpdu_crc_hdr);
        } else {
            buf_puts(b, "MPA ");
            mpa_start_text(b, &m);
        }
    }
}

/* --- MPA -------------------------------------------------------------------------------------- */

static bool private_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    const uint8_t *q = layer_bytes(p, l);

    if (l->len <= MPA_START_LEN)
        return false;
    v->p = q + MPA_START_LEN;
    v->len = min_u32(l->len - MPA_START_LEN, load_be16(q + 18));
    return v->len > 0;
}

#define MPA_START_ROWS(key, what)                                                                                      \
    FIELD_AT(NULL, 0, 16, FT_BYTES, key, what, "The characters by which it begins."),                                  \
        FIELD_ROW(NULL, 128, 1, FT_BOOL, BASE_NONE, NULL, BITS, MPA ".marker_flag", "Marker flag",                     \
                  "The sender wants to receive markers."),                                                             \
        FIELD_ROW(NULL, 129, 1, FT_BOOL, BASE_NONE, NULL, BITS, MPA ".crc_flag", "CRC flag",                           \
                  "The sender wants CRCs in both directions."),                                                        \
        FIELD_ROW(NULL, 130, 1, FT_BOOL, BASE_NONE, NULL, BITS, MPA ".rej_flag", "Connection rejected flag",           \
                  "The connection is refused."),                                                                       \
        FIELD_ROW(NULL, 131, 5, FT_UINT8, BASE_HEX, NULL, BITS, MPA ".res", "Reserved",                                \
                  "Five bits, the first of which is the enhanced flag of revision 2."),                                \
        FIELD_ROW(NULL, 136, 8, FT_UINT8, BASE_DEC, NULL, BITS, MPA ".rev", "Revision", "1 or 2."),                    \
        FIELD_ROW(NULL, 144, 16, FT_UINT16, BASE_DEC, NULL, BITS, MPA ".pdlength", "Private data length",              \
                  "Bytes of private data."),                                                                           \
        FIELD_GET(private_get, FT_BYTES, BASE_NONE, NULL, 0, MPA ".privatedata", "Private data",                       \
                  "In revision 2 they begin with IRD and ORD.")
static const struct field mpa_request_fields[] = {MPA_START_ROWS(MPA ".key.req", "ID Req frame")};
static const struct field mpa_reply_fields[] = {MPA_START_ROWS(MPA ".key.rep", "ID Rep frame")};
IWARP_HDR(mpa_request, MPA ".req", "Request frame header", MPA, "MPA", MPA_START_LEN, iwarp_info);
IWARP_HDR(mpa_reply, MPA ".rep", "Reply frame header", MPA, "MPA", MPA_START_LEN, iwarp_info);

static const struct field mpa_v2_fields[] = {
    FIELD_ROW(NULL, 0, 1, FT_BOOL, BASE_NONE, NULL, BITS, "rdma.mpa.peer_to_peer", "Peer-to-peer",
              "The initiator sends a first message of no bytes (RTR)."),
    FIELD_ROW(NULL, 1, 1, FT_BOOL, BASE_NONE, NULL, BITS, "rdma.mpa.rtr_send", "RTR may be a SEND", "Of no bytes."),
    FIELD_ROW(NULL, 2, 14, FT_UINT16, BASE_DEC, NULL, BITS, "rdma.mpa.ird", "IRD", "Incoming READs at a time."),
    FIELD_ROW(NULL, 16, 1, FT_BOOL, BASE_NONE, NULL, BITS, "rdma.mpa.rtr_write", "RTR may be a WRITE", "Of no bytes."),
    FIELD_ROW(NULL, 17, 1, FT_BOOL, BASE_NONE, NULL, BITS, "rdma.mpa.rtr_read", "RTR may be a READ", "Of no bytes."),
    FIELD_ROW(NULL, 18, 14, FT_UINT16, BASE_DEC, NULL, BITS, "rdma.mpa.ord", "ORD", "Outgoing READs at a time."),
};
IWARP_HDR(mpa_v2, "rdma.mpa", "Enhanced connection setup", MPA, NULL, 4, NULL);

/* Bytes of the FPDU up to its CRC; 0: not all of it is there. */
static uint32_t crc_at(const struct pkt *p, const struct layer *l)
{
    uint32_t n = l->len >= MPA_LENGTH_LEN ? mpa_fpdu_len(load_be16(layer_bytes(p, l))) : 0;

    return n && n <= l->len ? n - MPA_CRC_LEN : 0;
}
static bool pad_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    uint32_t end = crc_at(p, l), begin = end ? MPA_LENGTH_LEN + (uint32_t)load_be16(layer_bytes(p, l)) : 0;

    v->p = layer_bytes(p, l) + begin;
    v->len = end - begin;
    return v->len > 0;
}
static bool crc_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    uint32_t at = crc_at(p, l);

    if (at)
        v->u = load_be32(layer_bytes(p, l) + at);
    return at != 0;
}
static bool crc_good_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    uint32_t at = crc_at(p, l);

    if (at)
        v->u = mpa_crc(layer_bytes(p, l), at) == load_be32(layer_bytes(p, l) + at);
    return at != 0;
}

#define MPA_FPDU_ROWS                                                                                                  \
    FIELD_ROW(NULL, 0, 16, FT_UINT16, BASE_DEC, NULL, BITS, MPA ".ulpdulength", "ULPDU length",                        \
              "Bytes of DDP and RDMAP headers and payload."),                                                          \
        FIELD_GET(pad_get, FT_BYTES, BASE_NONE, NULL, 0, MPA ".pad", "Padding", "Up to a multiple of four bytes.")
static const struct field mpa_fpdu_fields[] = {
    MPA_FPDU_ROWS,
    FIELD_GET(crc_get, FT_UINT32, BASE_HEX, NULL, 0, MPA ".crc", "CRC", "No CRC was negotiated: of no meaning."),
};
static const struct field mpa_fpdu_crc_fields[] = {
    MPA_FPDU_ROWS,
    FIELD_GET(crc_get, FT_UINT32, BASE_HEX, NULL, 0, MPA ".crc_check", "CRC check", "The CRC32c of what is before it."),
    FIELD_GET(crc_good_get, FT_BOOL, BASE_NONE, NULL, 0, "rdma.mpa.crc_good", "CRC is right", "As calculated."),
};
IWARP_HDR(mpa_fpdu, MPA ".fpdu", "FPDU", MPA, "MPA", MPA_LENGTH_LEN, iwarp_info);
IWARP_HDR(mpa_fpdu_crc, MPA ".fpdu", "FPDU", MPA, "MPA", MPA_LENGTH_LEN, iwarp_info);

static const struct field mpa_marker_fields[] = {
    FIELD_ROW(NULL, 0, 16, FT_UINT16, BASE_HEX, NULL, BITS, MPA ".marker_res", "Reserved", "Zero."),
    FIELD_ROW(NULL, 16, 16, FT_UINT16, BASE_DEC, NULL, BITS, MPA ".marker_fpduptr", "FPDU back pointer",
              "Bytes of the stream from the FPDU's first byte to the marker."),
};
IWARP_HDR(mpa_marker, MPA ".markers", "Markers", MPA, NULL, MPA_MARKER_LEN, NULL);

/* --- DDP and RDMAP ---------------------------------------------------------------------------- */

#define DDP_CONTROL_ROWS                                                                                               \
    FIELD_ROW(NULL, 0, 1, FT_BOOL, BASE_NONE, NULL, BITS, "iwarp_ddp.tagged_flag", "Tagged flag",                      \
              "The payload goes to memory that its STag names."),                                                      \
        FIELD_ROW(NULL, 1, 1, FT_BOOL, BASE_NONE, NULL, BITS, "iwarp_ddp.last_flag", "Last flag",                      \
                  "The last segment of its message."),                                                                 \
        FIELD_ROW(NULL, 2, 4, FT_UINT8, BASE_HEX, NULL, BITS, "iwarp_ddp.rsvd", "Reserved", "Zero."),                  \
        FIELD_ROW(NULL, 6, 2, FT_UINT8, BASE_DEC, NULL, BITS, "iwarp_ddp.dv", "DDP protocol version", "1.")
static const struct field ddp_tagged_fields[] = {
    DDP_CONTROL_ROWS,
    FIELD_ROW(NULL, 16, 32, FT_UINT32, BASE_HEX, NULL, BITS, "iwarp_ddp.stag", "(Data Sink) Steering Tag",
              "Of the memory that the payload goes to."),
    FIELD_ROW(NULL, 48, 64, FT_UINT64, BASE_HEX, NULL, BITS, "iwarp_ddp.tagged_offset", "(Data Sink) Tagged offset",
              "Where it goes there."),
};
static const struct field ddp_untagged_fields[] = {
    DDP_CONTROL_ROWS,
    FIELD_AT(NULL, 1, 5, FT_BYTES, "iwarp_ddp.rsvdulp", "Reserved for use by the ULP", "What RDMAP has put there."),
    FIELD_ROW(NULL, 48, 32, FT_UINT32, BASE_DEC, NULL, BITS, "iwarp_ddp.qn", "Queue number",
              "0 SEND, 1 READ and atomic requests, 2 Terminate, 3 atomic responses."),
    FIELD_ROW(NULL, 80, 32, FT_UINT32, BASE_DEC, NULL, BITS, "iwarp_ddp.msn", "Message sequence number",
              "Of the queue, from 1."),
    FIELD_ROW(NULL, 112, 32, FT_UINT32, BASE_DEC, NULL, BITS, "iwarp_ddp.mo", "Message offset",
              "Of the payload in its message."),
};
IWARP_HDR(ddp_tagged, "iwarp_ddp", "DDP header", DDP, "DDP/RDMA", DDP_TAGGED_LEN, iwarp_info);
IWARP_HDR(ddp_untagged, "iwarp_ddp", "DDP header", DDP, "DDP/RDMA", DDP_UNTAGGED_LEN, iwarp_info);

static bool invalidates(const uint8_t *q, uint32_t len)
{
    return len && ((q[0] & 15) == RDMAP_SEND_INV || (q[0] & 15) == RDMAP_SEND_SE_INV);
}
static bool does_not_invalidate(const uint8_t *q, uint32_t len)
{
    return !invalidates(q, len);
}

#define RDMAP_CONTROL_ROWS                                                                                             \
    FIELD_ROW(NULL, 0, 2, FT_UINT8, BASE_DEC, NULL, BITS, "iwarp_rdma.version", "Version", "1."),                      \
        FIELD_ROW(NULL, 2, 2, FT_UINT8, BASE_HEX, NULL, BITS, "iwarp_rdma.rsv", "Reserved", "Zero."),                  \
        FIELD_ROW(NULL, 4, 4, FT_UINT8, BASE_HEX, &rdmap_opcode_desc, BITS, "iwarp_rdma.opcode", "OpCode",             \
                  "What the message is.")
static const struct field rdmap_tagged_fields[] = {RDMAP_CONTROL_ROWS};
static const struct field rdmap_untagged_fields[] = {
    RDMAP_CONTROL_ROWS,
    FIELD_AT(does_not_invalidate, 1, 4, FT_BYTES, "iwarp_rdma.reserved", "Reserved", "Zero."),
    FIELD_ROW(invalidates, 8, 32, FT_UINT32, BASE_DEC, NULL, 0, "iwarp_rdma.inval_stag", "Invalidate STag",
              "The STag that the receiver invalidates."),
};
IWARP_HDR(rdmap_tagged, "iwarp_rdma", "RDMAP header", DDP, NULL, 1, iwarp_info);
IWARP_HDR(rdmap_untagged, "iwarp_rdma", "RDMAP header", DDP, NULL, 5, iwarp_info);

static const struct field rdmap_read_fields[] = {
    FIELD_ROW(NULL, 0, 32, FT_UINT32, BASE_HEX, NULL, BITS, "iwarp_rdma.sinkstag", "Data Sink STag",
              "Of the memory that the response goes to."),
    FIELD_ROW(NULL, 32, 64, FT_UINT64, BASE_HEX, NULL, BITS, "iwarp_rdma.sinkto", "Data Sink Tagged Offset",
              "Where it goes there."),
    FIELD_ROW(NULL, 96, 32, FT_UINT32, BASE_DEC, NULL, BITS, "iwarp_rdma.rdmardsz", "RDMA Read Message Size",
              "Bytes to be read."),
    FIELD_ROW(NULL, 128, 32, FT_UINT32, BASE_HEX, NULL, BITS, "iwarp_rdma.srcstag", "Data Source STag",
              "Of the memory that is read."),
    FIELD_ROW(NULL, 160, 64, FT_UINT64, BASE_HEX, NULL, BITS, "iwarp_rdma.srcto", "Data Source Tagged Offset",
              "What is read there."),
};
IWARP_HDR(rdmap_read, "iwarp_rdma.rr", "Read request", DDP, NULL, RDMAP_READ_LEN, NULL);

static const struct vname atomic_names[] = {{0, "FetchAdd"}, {1, "Swap"}, {2, "CmpSwap"}};
static const struct vdesc atomic_desc = VDESC_NAMES(atomic_names);

static unsigned atomic_opcode(const uint8_t *q, uint32_t len)
{
    return len >= 4 ? q[3] & 15 : 15;
}
static bool is_add(const uint8_t *q, uint32_t len)
{
    return atomic_opcode(q, len) == 0;
}
static bool is_swap(const uint8_t *q, uint32_t len)
{
    return atomic_opcode(q, len) != 0;
}
static const struct field rdmap_atomic_fields[] = {
    FIELD_ROW(NULL, 0, 28, FT_UINT32, BASE_DEC, NULL, BITS, "iwarp_rdma.atomic.reserved", "Reserved", "Zero."),
    FIELD_ROW(NULL, 28, 4, FT_UINT32, BASE_DEC, &atomic_desc, BITS, "iwarp_rdma.atomic.opcode", "OpCode",
              "What is done."),
    FIELD_ROW(NULL, 32, 32, FT_UINT32, BASE_DEC, NULL, BITS, "iwarp_rdma.atomic.request_identifier",
              "Request Identifier", "By which the response names the request."),
    FIELD_ROW(NULL, 64, 32, FT_UINT32, BASE_DEC, NULL, BITS, "iwarp_rdma.atomic.remote_stag", "Remote STag",
              "Of the memory that is changed."),
    FIELD_ROW(NULL, 96, 64, FT_UINT64, BASE_DEC, NULL, BITS, "iwarp_rdma.atomic.remote_tagged_offset",
              "Remote Tagged Offset", "What is changed there."),
    FIELD_ROW(is_add, 160, 64, FT_UINT64, BASE_DEC, NULL, 0, "iwarp_rdma.atomic.add_data", "Add Data", "The addend."),
    FIELD_ROW(is_add, 224, 64, FT_UINT64, BASE_HEX, NULL, 0, "iwarp_rdma.atomic.add_mask", "Add Mask",
              "Bits behind which a carry ends."),
    FIELD_ROW(is_swap, 160, 64, FT_UINT64, BASE_DEC, NULL, 0, "iwarp_rdma.atomic.swap_data", "Swap Data",
              "The new value."),
    FIELD_ROW(is_swap, 224, 64, FT_UINT64, BASE_HEX, NULL, 0, "iwarp_rdma.atomic.swap_mask", "Swap Mask",
              "The bits that are changed."),
    FIELD_ROW(is_swap, 288, 64, FT_UINT64, BASE_DEC, NULL, 0, "iwarp_rdma.atomic.compare_data", "Compare Data",
              "The value that is expected."),
    FIELD_ROW(is_swap, 352, 64, FT_UINT64, BASE_HEX, NULL, 0, "iwarp_rdma.atomic.compare_mask", "Compare Mask",
              "The bits that are compared."),
};
static const struct field rdmap_atomic_answer_fields[] = {
    FIELD_ROW(NULL, 0, 32, FT_UINT32, BASE_DEC, NULL, BITS, "iwarp_rdma.atomic.original_request_identifier",
              "Original Request Identifier", "Of the request."),
    FIELD_ROW(NULL, 32, 64, FT_UINT64, BASE_DEC, NULL, BITS, "iwarp_rdma.atomic.original_remote_data_value",
              "Original Remote Data Value", "The value before."),
};
IWARP_HDR(rdmap_atomic, "iwarp_rdma.atomic", "Atomic request", DDP, NULL, RDMAP_ATOMIC_REQUEST_LEN, NULL);
IWARP_HDR(rdmap_atomic_answer, "iwarp_rdma.atomic", "Atomic response", DDP, NULL, RDMAP_ATOMIC_RESPONSE_LEN, NULL);

static const struct field rdmap_immediate_fields[] = {
    FIELD_ROW(NULL, 0, 64, FT_UINT64, BASE_HEX, NULL, BITS, "rdma.iwarp.immediate", "Immediate Data", "Eight bytes."),
};
IWARP_HDR(rdmap_immediate, "rdma.iwarp.imm", "Immediate Data", DDP, NULL, RDMAP_IMMEDIATE_LEN, NULL);

const struct hdr rdmap_payload_hdr = {
    .abbrev = "rdma.iwarp.payload", .name = "Payload", .proto = DDP, .type = FT_BYTES, .upper = true};

/* --- Terminate -------------------------------------------------------------------------------- */

enum term_part {
    TERM_LAYER,
    TERM_TYPE_RDMA,
    TERM_TYPE_DDP,
    TERM_TYPE_LLP,
    TERM_TYPE,
    TERM_CODE_RDMA,
    TERM_CODE_TAGGED,
    TERM_CODE_UNTAGGED,
    TERM_CODE_LLP,
    TERM_CODE,
    TERM_M,
    TERM_D,
    TERM_R,
};

/* The field under which tshark shows the type of an error, and its code. */
static enum term_part type_part(const struct rdmap_terminate *t)
{
    return t->layer == TERM_RDMAP ? TERM_TYPE_RDMA
           : t->layer == TERM_DDP ? TERM_TYPE_DDP
           : t->layer == TERM_MPA ? TERM_TYPE_LLP
                                  : TERM_TYPE;
}
static enum term_part code_part(const struct rdmap_terminate *t)
{
    if (t->layer == TERM_RDMAP && (t->type == 1 || t->type == 2))
        return TERM_CODE_RDMA;
    if (t->layer == TERM_DDP && t->type == 1)
        return TERM_CODE_TAGGED;
    if (t->layer == TERM_DDP && t->type == 2)
        return TERM_CODE_UNTAGGED;
    return t->layer == TERM_MPA && t->type == 0 ? TERM_CODE_LLP : TERM_CODE;
}

static bool term_get(const struct pkt *p, const struct layer *l, struct value *v, enum term_part part)
{
    struct rdmap_terminate t;

    if (!rdmap_terminate_get(&t, layer_bytes(p, l), l->len))
        return false;
    if (part == TERM_LAYER)
        v->u = t.layer;
    else if (part >= TERM_M)
        v->u = part == TERM_M ? t.m : part == TERM_D ? t.d : t.r;
    else
        v->u = part <= TERM_TYPE ? t.type : t.code;
    return part == TERM_LAYER || part >= TERM_M || part == type_part(&t) || part == code_part(&t);
}
#define TERM_GET(name, part)                                                                                           \
    static bool name##_get(const struct pkt *p, const struct layer *l, struct value *v)                                \
    {                                                                                                                  \
        return term_get(p, l, v, part);                                                                                \
    }
TERM_GET(term_layer, TERM_LAYER)
TERM_GET(type_rdma, TERM_TYPE_RDMA)
TERM_GET(type_ddp, TERM_TYPE_DDP)
TERM_GET(type_llp, TERM_TYPE_LLP)
TERM_GET(type_any, TERM_TYPE)
TERM_GET(code_rdma, TERM_CODE_RDMA)
TERM_GET(code_tagged, TERM_CODE_TAGGED)
TERM_GET(code_untagged, TERM_CODE_UNTAGGED)
TERM_GET(code_llp, TERM_CODE_LLP)
TERM_GET(code_any, TERM_CODE)
TERM_GET(term_m, TERM_M)
TERM_GET(term_d, TERM_D)
TERM_GET(term_r, TERM_R)

static bool segment_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    struct rdmap_terminate t;

    v->p = layer_bytes(p, l) + 4;
    v->len = 2;
    return rdmap_terminate_get(&t, layer_bytes(p, l), l->len) && t.m && l->len >= 6;
}
static bool ddp_copy_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    struct rdmap_terminate t;

    if (!rdmap_terminate_get(&t, layer_bytes(p, l), l->len) || !t.ddp_len)
        return false;
    v->p = layer_bytes(p, l) + t.ddp_at;
    v->len = t.ddp_len;
    return true;
}
static bool rdmap_copy_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    struct rdmap_terminate t;

    if (!rdmap_terminate_get(&t, layer_bytes(p, l), l->len) || !t.rdmap_len)
        return false;
    v->p = layer_bytes(p, l) + t.rdmap_at;
    v->len = t.rdmap_len;
    return true;
}
/* The error in words. */
static bool error_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    struct buf *text;
    struct rdmap_terminate t;

    if (!rdmap_terminate_get(&t, layer_bytes(p, l), l->len))
        return false;
    text = scratch_of(SCRATCH_TERMINATE);
    rdmap_terminate_text(text, &t);
    v->p = (const uint8_t *)buf_str(text);
    v->len = (uint32_t)text->len;
    return true;
}

#define TERM_VALUE(function, type, base, abbrev, label, blurb)                                                         \
    FIELD_GET(function##_get, type, base, NULL, 0, "iwarp_rdma." abbrev, label, blurb)
#define TERM_ROWS                                                                                                      \
    TERM_VALUE(term_layer, FT_UINT8, BASE_HEX, "term_layer", "Layer", "Which layer found the error."),                 \
        TERM_VALUE(type_rdma, FT_UINT8, BASE_HEX, "term_etype_rdma", "Error Types for RDMA layer", "Of RDMAP."),       \
        TERM_VALUE(type_ddp, FT_UINT8, BASE_HEX, "term_etype_ddp", "Error Types for DDP layer", "Of DDP."),            \
        TERM_VALUE(type_llp, FT_UINT8, BASE_HEX, "term_etype_llp", "Error Types for LLP layer", "Of MPA and TCP."),    \
        TERM_VALUE(type_any, FT_UINT8, BASE_HEX, "term_etype", "Error Types", "Of a layer that is not defined."),      \
        TERM_VALUE(code_rdma, FT_UINT8, BASE_HEX, "term_errcode_rdma", "Error Code for RDMA layer", "The error."),     \
        TERM_VALUE(code_tagged, FT_UINT8, BASE_HEX, "term_errcode_ddp_tagged", "Error Code for DDP Tagged Buffer",     \
                   "The error."),                                                                                      \
        TERM_VALUE(code_untagged, FT_UINT8, BASE_HEX, "term_errcode_ddp_untagged",                                     \
                   "Error Code for DDP Untagged Buffer", "The error."),                                                \
        TERM_VALUE(code_any, FT_UINT8, BASE_HEX, "term_errcode", "Error Code", "The error."),                          \
        TERM_VALUE(code_llp, FT_UINT8, BASE_HEX, "term_errcode_llp", "Error Code for LLP layer", "The error."),        \
        FIELD_GET(error_get, FT_STRING, BASE_NONE, NULL, 0, "rdma.iwarp.error", "Error", "In words."),                 \
        TERM_VALUE(term_m, FT_BOOL, BASE_NONE, "term_hdrct_m", "M bit", "The segment length follows."),                \
        TERM_VALUE(term_d, FT_BOOL, BASE_NONE, "hdrct_d", "D bit", "The DDP header follows."),                         \
        TERM_VALUE(term_r, FT_BOOL, BASE_NONE, "hdrct_r", "R bit", "The RDMAP header follows.")
#define TERM_COPIES                                                                                                    \
    FIELD_GET(segment_get, FT_BYTES, BASE_NONE, NULL, 0, "iwarp_rdma.term_ddp_seg_len", "DDP Segment Length",          \
              "Of the segment that was refused; not reliable from siw."),                                              \
        FIELD_GET(ddp_copy_get, FT_BYTES, BASE_NONE, NULL, 0, "iwarp_rdma.term_ddp_h", "Terminated DDP Header",        \
                  "Of the segment that was refused."),                                                                 \
        FIELD_GET(rdmap_copy_get, FT_BYTES, BASE_NONE, NULL, 0, "iwarp_rdma.term_rdma_h", "Terminated RDMA Header",    \
                  "Of the READ request that was refused.")
static const struct field rdmap_terminate_fields[] = {
    TERM_ROWS,
    FIELD_ROW(NULL, 19, 13, FT_UINT16, BASE_HEX, NULL, BITS, "iwarp_rdma.term_rsvd", "Reserved", "Zero."),
    TERM_COPIES,
};
static const struct field rdmap_terminate_siw_fields[] = {TERM_ROWS, TERM_COPIES};
IWARP_HDR(rdmap_terminate, "iwarp_rdma.terminate", "Terminate", DDP, NULL, 4, NULL);
IWARP_HDR(rdmap_terminate_siw, "iwarp_rdma.terminate", "Terminate, bit fields in the order of siw", DDP, NULL, 4, NULL);

/* --- Layers ----------------------------------------------------------------------------------- */

void mpa_start_layers(struct pkt *p, const struct ulp_body *m)
{
    struct mpa_start s;

    if (!mpa_start_get(&s, m->b, m->len))
        return;
    ulp_layer(p, s.reply ? &mpa_reply_hdr : &mpa_request_hdr, m, 0, m->len);
    if (s.enhanced)
        ulp_layer(p, &mpa_v2_hdr, m, MPA_START_LEN, 4);
}

/* The layers of the payload of an untagged message, `n` bytes at byte `at`. */
static void payload_layers(struct pkt *p, const struct ulp_body *m, const struct ddp *d, uint32_t at, uint32_t n)
{
    struct rdmap_terminate t;
    const struct hdr *h = &rdmap_payload_hdr;
    uint32_t len = n;

    if (d->opcode == RDMAP_READ_REQUEST && n >= RDMAP_READ_LEN) {
        h = &rdmap_read_hdr;
        len = RDMAP_READ_LEN;
    } else if (d->opcode == RDMAP_ATOMIC_REQUEST && n >= RDMAP_ATOMIC_REQUEST_LEN) {
        h = &rdmap_atomic_hdr;
        len = RDMAP_ATOMIC_REQUEST_LEN;
    } else if (d->opcode == RDMAP_ATOMIC_RESPONSE && n >= RDMAP_ATOMIC_RESPONSE_LEN) {
        h = &rdmap_atomic_answer_hdr;
        len = RDMAP_ATOMIC_RESPONSE_LEN;
    } else if (d->opcode == RDMAP_TERMINATE && rdmap_terminate_get(&t, m->b + at, n)) {
        h = t.swapped ? &rdmap_terminate_siw_hdr : &rdmap_terminate_hdr;
    } else if ((d->opcode == RDMAP_IMMEDIATE || d->opcode == RDMAP_IMMEDIATE_SE) && n >= RDMAP_IMMEDIATE_LEN) {
        h = &rdmap_immediate_hdr;
        len = RDMAP_IMMEDIATE_LEN;
    }
    ulp_layer(p, h, m, at, len);
}

void mpa_fpdu_layers(struct pkt *p, const struct ulp_body *m, bool crc)
{
    uint32_t ulpdu = m->len >= MPA_LENGTH_LEN ? min_u32(load_be16(m->b), m->len - MPA_LENGTH_LEN) : 0;
    struct ddp d;

    ulp_layer(p, crc ? &mpa_fpdu_crc_hdr : &mpa_fpdu_hdr, m, 0, m->len);
    if (!ulpdu || !ddp_get(&d, m->b + MPA_LENGTH_LEN, ulpdu))
        return;
    ulp_layer(p, d.tagged ? &ddp_tagged_hdr : &ddp_untagged_hdr, m, MPA_LENGTH_LEN, d.head);
    ulp_layer(p, d.tagged ? &rdmap_tagged_hdr : &rdmap_untagged_hdr, m, MPA_LENGTH_LEN + 1, d.tagged ? 1 : 5);
    if (d.tagged)
        ulp_layer(p, &rdmap_payload_hdr, m, MPA_LENGTH_LEN + d.head, ulpdu - d.head);
    else
        payload_layers(p, m, &d, MPA_LENGTH_LEN + d.head, ulpdu - d.head);
}

void mpa_marker_layer(struct pkt *p, const struct ulp_body *m)
{
    ulp_layer(p, &mpa_marker_hdr, m, 0, m->len);
}
