/* layer 1 (wire): MPLS label stacks (RFC 3032) and Ethernet pseudowires in them (RFC 4448). */
#include "dissect/dissectors.h"
#include "dissect/link/eth.h"
#include "dissect/link/link.h"

#define LABEL_IPV4  0 /* IPv4 explicit null */
#define LABEL_IPV6  2
#define MPLS_BOTTOM 1 /* flag in the third byte: bottom of the stack, the last entry */

static const struct vname labels[] = {{LABEL_IPV4, "IPv4 Explicit-Null"},
                                      {1, "Router Alert"},
                                      {LABEL_IPV6, "IPv6 Explicit-Null"},
                                      {3, "Implicit-Null"},
                                      {7, "Entropy Label Indicator"}};
static const struct vdesc label_desc = VDESC_NAMES(labels);

/*
 * Label stack entry, 4 bytes.
 *   0                      20    23  24          32
 *   +----------------------+-----+---+-----------+
 *   |        label         | TC  | S |    TTL    |
 *   +----------------------+-----+---+-----------+
 */
static const struct field mpls_fields[] = {
    FIELD_ROW(NULL, 0, 20, FT_UINT32, BASE_DEC, &label_desc, FLD_MEMBER, "mpls.label", "MPLS Label", "Label value."),
    FIELD_ROW(NULL, 20, 3, FT_UINT32, BASE_DEC, NULL, FLD_MEMBER, "mpls.exp", "MPLS Experimental Bits",
              "Traffic class."),
    FIELD_ROW(NULL, 23, 1, FT_UINT32, BASE_DEC, NULL, FLD_MEMBER, "mpls.bottom", "MPLS Bottom Of Label Stack",
              "1: the last entry."),
    FIELD_ROW(NULL, 24, 8, FT_UINT32, BASE_DEC, NULL, FLD_MEMBER, "mpls.ttl", "MPLS TTL", "Hops left."),
};
static void mpls_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    if (l->len >= 4)
        buf_printf(b, "MPLS label %u", load_be32(p->data + l->off) >> 12);
}
const struct hdr mpls_hdr = {
    .abbrev = "mpls",
    .name = "MultiProtocol Label Switching Header",
    .proto = "mpls",
    .column = "MPLS",
    .fields = mpls_fields,
    .nfields = ARRAY_LEN(mpls_fields),
    .len = 4,
    .info = mpls_info,
};

/* Pseudowire control word, 4 bytes: 0 (4 bits), reserved (12 bits), sequence number (16 bits). */
static const struct field mpls_cw_fields[] = {
    FIELD_ROW(NULL, 0, 16, FT_UINT16, BASE_HEX, NULL, FLD_MEMBER, "rdma.pwethcw.reserved", "Reserved", "Zero."),
    FIELD_ROW(NULL, 16, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "pweth.cw.sequence_number", "Sequence number",
              "0: not used."),
};
const struct hdr mpls_cw_hdr = {
    .abbrev = "pwethcw",
    .name = "PW Ethernet Control Word",
    .proto = "pwethcw",
    .fields = mpls_cw_fields,
    .nfields = ARRAY_LEN(mpls_cw_fields),
    .len = 4,
};

static bool known_ethertype(const struct pkt *p, uint32_t eth)
{
    uint32_t end = min_u32(p->end, p->caplen);

    return eth + 14 <= end && vname_find(ethertype_desc.names, ethertype_desc.n, load_be16(p->data + eth + 12));
}

/* Decode what follows the last label. MPLS has no protocol field: an explicit null label or a first nibble of 4 or 6
 * means IP, 1 an associated channel; anything else is taken for an Ethernet pseudowire, with or without a control word.
 */
static void bottom_decode(struct pkt *p, uint32_t off, uint32_t label, const struct decode_opts *o)
{
    const uint8_t *q = pkt_need(p, off, 1, "payload of the MPLS label stack");
    unsigned nibble;

    if (!q)
        return;
    nibble = q[0] >> 4;
    if (nibble == 4 || nibble == 6 || label == LABEL_IPV4 || label == LABEL_IPV6) {
        ip_decode(p, off, o);
    } else if (nibble == 0 && (known_ethertype(p, off + 4) || !known_ethertype(p, off))) {
        if (pkt_header(p, &mpls_cw_hdr, off, 4, "pseudowire control word"))
            eth_decode(p, off + 4, o);
    } else if (nibble != 1) { /* 1: associated channel, not decoded */
        eth_decode(p, off, o);
    }
}

void mpls_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    const uint8_t *q;

    for (; pkt_nest(p, off); off += 4) {
        q = pkt_header(p, &mpls_hdr, off, 4, "MPLS label");
        if (!q)
            return;
        if (q[2] & MPLS_BOTTOM) {
            bottom_decode(p, off + 4, load_be32(q) >> 12, o);
            return;
        }
    }
}
