/* layer 1 (wire): ERSPAN types I, II and III: frames that a switch mirrors through GRE. */
#include "dissect/dissectors.h"
#include "dissect/link/link.h"

#define ERSPAN_SESSION 0x3ff                 /* session id, in bytes 2 and 3 */
#define ERSPAN3_FT(q)  ((q)[10] >> 2 & 0x1f) /* frame type of the mirrored frame, type III */
#define FRAME_TYPE_IP  2
#define ERSPAN3_O      0x01 /* flag in the last byte of type III: a platform subheader follows */

static const struct vname versions[] = {{1, "Type II"}, {2, "Type III"}};
static const struct vdesc version_desc = VDESC_NAMES(versions);
static const struct vname encaps[] = {{0, "no VLAN tag"}, {1, "ISL"}, {2, "802.1Q"}, {3, "VLAN tag preserved"}};
static const struct vdesc encap_desc = VDESC_NAMES(encaps);
static const struct vname frame_types[] = {{0, "Ethernet"}, {FRAME_TYPE_IP, "IP"}};
static const struct vdesc frame_type_desc = VDESC_NAMES(frame_types);
static const struct vname granularities[] = {{0, "100 us"}, {1, "100 ns"}, {2, "IEEE 1588"}, {3, "user configurable"}};
static const struct vdesc granularity_desc = VDESC_NAMES(granularities);
static const struct vname directions[] = {{0, "ingress"}, {1, "egress"}};
static const struct vdesc direction_desc = VDESC_NAMES(directions);

/*
 * The first word of types II and III.
 *   0       4              16    19    21  22               32
 *   +-------+--------------+-----+-----+---+----------------+
 *   |version|     VLAN     | COS | en  | T |  session id    |
 *   +-------+--------------+-----+-----+---+----------------+
 * Type II continues with reserved (12 bits) and port index (20 bits), type III with:
 *   |                     timestamp                         |
 *   | SGT (16)             |P| FT (5) | HW (6) |D|Gra (2)|O |
 *   and, if O is set, a platform subheader of 8 bytes.
 */
#define FIRST_WORD(en_abbrev, en_label, en_desc)                                                                       \
    FIELD_ROW(NULL, 0, 4, FT_UINT16, BASE_DEC, &version_desc, FLD_MEMBER, "erspan.version", "Version",                 \
              "1: type II, 2: type III."),                                                                             \
        FIELD_ROW(NULL, 4, 12, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "erspan.vlan", "Vlan",                           \
                  "VLAN of the mirrored frame."),                                                                      \
        FIELD_ROW(NULL, 16, 3, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "erspan.cos", "COS", "Its class of service."),   \
        FIELD_ROW(NULL, 19, 2, FT_UINT16, BASE_DEC, en_desc, FLD_MEMBER, en_abbrev, en_label,                          \
                  "State of the mirrored frame."),                                                                     \
        FIELD_ROW(NULL, 21, 1, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "erspan.truncated", "Truncated",                 \
                  "The switch cut the frame."),                                                                        \
        FIELD_ROW(NULL, 22, 10, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "erspan.spanid", "SpanID",                      \
                  "Mirroring session.")

static const struct field erspan2_fields[] = {
    FIRST_WORD("erspan.encap", "Encap", &encap_desc),
    FIELD_ROW(NULL, 32, 12, FT_UINT32, BASE_DEC, NULL, FLD_MEMBER, "erspan.reserved", "Reserved", "Zero."),
    FIELD_ROW(NULL, 44, 20, FT_UINT32, BASE_DEC, NULL, FLD_MEMBER, "erspan.index", "Index", "Port that was mirrored."),
};
static const struct field erspan3_fields[] = {
    FIRST_WORD("erspan.bso", "Bad/Short/Oversized", NULL),
    FIELD_ROW(NULL, 32, 32, FT_UINT32, BASE_DEC, NULL, FLD_MEMBER, "erspan.timestamp", "Timestamp",
              "In units of the granularity."),
    FIELD_ROW(NULL, 64, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "erspan.sgt", "Security Group Tag",
              "Security group."),
    FIELD_ROW(NULL, 80, 1, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "erspan.p", "Has Ethernet PDU", "A frame follows."),
    FIELD_ROW(NULL, 81, 5, FT_UINT16, BASE_DEC, &frame_type_desc, FLD_MEMBER, "erspan.ft", "Frame Type",
              "0 Ethernet, 2 IP."),
    FIELD_ROW(NULL, 86, 6, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "erspan.hw", "Hardware ID", "Engine in the switch."),
    FIELD_ROW(NULL, 92, 1, FT_BOOL, BASE_NONE, &direction_desc, FLD_MEMBER, "erspan.direction", "Direction",
              "0 ingress, 1 egress."),
    FIELD_ROW(NULL, 93, 2, FT_UINT16, BASE_DEC, &granularity_desc, FLD_MEMBER, "erspan.gra", "Timestamp granularity",
              "Unit of the timestamp."),
    FIELD_ROW(NULL, 95, 1, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "erspan.o", "Optional Sub headers",
              "A platform header follows."),
};
/* Platform subheader, 8 bytes: the platform id (6 bits), then what that platform defines. */
static bool is_platform3(const uint8_t *h, uint32_t len)
{
    return len > 0 && h[0] >> 2 == 3;
}
static bool is_platform5(const uint8_t *h, uint32_t len)
{
    return len > 0 && h[0] >> 2 == 5;
}
static const struct field erspan_platform_fields[] = {
    FIELD_ROW(NULL, 0, 6, FT_UINT32, BASE_DEC, NULL, FLD_MEMBER, "erspan.platid", "Platform ID",
              "Says what the rest means."),
    FIELD_ROW(NULL, 6, 26, FT_UINT32, BASE_HEX, NULL, FLD_MEMBER, "rdma.erspan.platform_info", "Platform information",
              "First word."),
    FIELD_ROW(NULL, 32, 32, FT_UINT32, BASE_HEX, NULL, FLD_MEMBER, "rdma.erspan.platform_info2", "Platform information",
              "Second word."),
    FIELD_ROW(is_platform3, 18, 14, FT_UINT32, BASE_DEC, NULL, 0, "erspan.pid3.port_index", "Port ID/Index",
              "Port that was mirrored."),
    FIELD_ROW(is_platform3, 32, 32, FT_UINT32, BASE_DEC, NULL, 0, "erspan.pid3.timestamp", "Upper 32-bit Timestamp",
              "Upper half of the time."),
    FIELD_ROW(is_platform5, 6, 10, FT_UINT32, BASE_DEC, NULL, 0, "erspan.pid5.switchid", "Switch ID",
              "Switch that mirrored."),
    FIELD_ROW(is_platform5, 16, 16, FT_UINT32, BASE_DEC, NULL, 0, "erspan.pid5.port_index", "Port ID/Index",
              "Port that was mirrored."),
    FIELD_ROW(is_platform5, 32, 32, FT_UINT32, BASE_DEC, NULL, 0, "erspan.pid5.timestamp", "Timestamp (seconds)",
              "Seconds of the time."),
};

static void erspan_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    buf_puts(b, "ERSPAN");
    if (l->len >= 4)
        buf_printf(b, " session %u", load_be16(p->data + l->off + 2) & ERSPAN_SESSION);
}
#define ERSPAN_TITLE "Encapsulated Remote Switch Packet ANalysis "
/* Type I has no header: its layer is empty. */
const struct hdr erspan1_hdr = {
    .abbrev = "erspan",
    .name = ERSPAN_TITLE "Type I",
    .proto = "erspan",
    .column = "ERSPAN",
    .info = erspan_info,
};
const struct hdr erspan2_hdr = {
    .abbrev = "erspan",
    .name = ERSPAN_TITLE "Type II",
    .proto = "erspan",
    .column = "ERSPAN",
    .fields = erspan2_fields,
    .nfields = ARRAY_LEN(erspan2_fields),
    .len = 8,
    .info = erspan_info,
};
const struct hdr erspan3_hdr = {
    .abbrev = "erspan",
    .name = ERSPAN_TITLE "Type III",
    .proto = "erspan",
    .column = "ERSPAN",
    .fields = erspan3_fields,
    .nfields = ARRAY_LEN(erspan3_fields),
    .len = 12,
    .info = erspan_info,
};
const struct hdr erspan_platform_hdr = {
    .abbrev = "rdma.erspan.platform",
    .name = "ERSPAN platform specific subheader",
    .proto = "erspan",
    .fields = erspan_platform_fields,
    .nfields = ARRAY_LEN(erspan_platform_fields),
    .len = 8,
};

void erspan_decode(struct pkt *p, uint32_t off, unsigned type, const struct decode_opts *o)
{
    const uint8_t *q;

    if (type == 1) {
        pkt_layer(p, &erspan1_hdr, off, 0);
        eth_decode(p, off, o);
        return;
    }
    if (type == 2) {
        if (pkt_header(p, &erspan2_hdr, off, 8, "ERSPAN type II header"))
            eth_decode(p, off + 8, o);
        return;
    }
    q = pkt_header(p, &erspan3_hdr, off, 12, "ERSPAN type III header");
    if (!q)
        return;
    off += 12;
    if (q[11] & ERSPAN3_O) {
        if (!pkt_header(p, &erspan_platform_hdr, off, 8, "ERSPAN platform subheader"))
            return;
        off += 8;
    }
    if (ERSPAN3_FT(q) == FRAME_TYPE_IP)
        ip_decode(p, off, o);
    else
        eth_decode(p, off, o);
}
