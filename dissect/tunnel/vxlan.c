/* layer 1 (wire): VXLAN (RFC 7348, with the group policy bits) and its generic protocol extension. */
#include "dissect/dissectors.h"
#include "dissect/link/link.h"

#include "dissect/link/eth.h"

#define VXLAN_LEN 8 /* bytes of the header, also of VXLAN-GPE */

/*
 * VXLAN header, 8 bytes.
 *   0                              16                     24       32
 *   +------------------------------+------------------------------+
 *   | flags: G...I...|..D..A..     |        group policy id       |
 *   +------------------------------+-----------------+------------+
 *   |                VNI                             |  reserved  |
 *   +------------------------------------------------+------------+
 */
static const struct field vxlan_fields[] = {
    FIELD_ROW(NULL, 0, 16, FT_UINT16, BASE_HEX, NULL, FLD_MEMBER, "vxlan.flags", "Flags", "Which fields are valid."),
    FIELD_ROW(NULL, 0, 1, FT_BOOL, BASE_NONE, NULL, 0, "vxlan.flag_g", "GBP Extension", "Group policy id present."),
    FIELD_ROW(NULL, 4, 1, FT_BOOL, BASE_NONE, NULL, 0, "vxlan.flag_i", "VXLAN Network ID (VNI)", "VNI present."),
    FIELD_ROW(NULL, 9, 1, FT_BOOL, BASE_NONE, NULL, 0, "vxlan.flag_d", "Don't Learn",
              "Do not learn the source address."),
    FIELD_ROW(NULL, 12, 1, FT_BOOL, BASE_NONE, NULL, 0, "vxlan.flag_a", "Policy Applied", "The policy was applied."),
    FIELD_ROW(NULL, 16, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "vxlan.gbp", "Group Policy ID",
              "Group of the source."),
    FIELD_ROW(NULL, 32, 24, FT_UINT24, BASE_DEC, NULL, FLD_MEMBER, "vxlan.vni", "VXLAN Network Identifier (VNI)",
              "Overlay network."),
    FIELD_ROW(NULL, 56, 8, FT_UINT8, BASE_DEC, NULL, FLD_MEMBER, "vxlan.reserved8", "Reserved", "Zero."),
};

/* Next protocol of VXLAN-GPE. */
enum { GPE_IPV4 = 1, GPE_IPV6 = 2, GPE_ETHERNET = 3, GPE_NSH = 4, GPE_MPLS = 5 };
static const struct vname next_protos[] = {{GPE_IPV4, "IPv4"},
                                           {GPE_IPV6, "IPv6"},
                                           {GPE_ETHERNET, "Ethernet"},
                                           {GPE_NSH, "Network Service Header"},
                                           {GPE_MPLS, "MPLS"}};
static const struct vdesc next_proto_desc = VDESC_NAMES(next_protos);
/*
 * VXLAN-GPE header, 8 bytes.
 *   0   2   4  5  6  7  8                          24              32
 *   +---+---+--+--+--+--+--------------------------+---------------+
 *   |0 0|ver| I| P| B| O|         reserved         | next protocol |
 *   +---+---+--+--+--+--+--------------------------+---------------+
 *   |                     VNI                      |   reserved    |
 *   +----------------------------------------------+---------------+
 */
static const struct field vxlan_gpe_fields[] = {
    FIELD_ROW(NULL, 0, 8, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "vxlan.flags", "Flags", "Which fields are valid."),
    FIELD_ROW(NULL, 2, 2, FT_UINT8, BASE_DEC, NULL, 0, "vxlan.ver", "Version", "0."),
    FIELD_ROW(NULL, 4, 1, FT_UINT8, BASE_DEC, NULL, 0, "vxlan.i_bit", "Instance", "VNI present."),
    FIELD_ROW(NULL, 5, 1, FT_UINT8, BASE_DEC, NULL, 0, "vxlan.p_bit", "Next Protocol Bit", "Next protocol present."),
    FIELD_ROW(NULL, 7, 1, FT_UINT8, BASE_DEC, NULL, 0, "vxlan.o_bit", "OAM bit", "Operations and management."),
    FIELD_ROW(NULL, 8, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "vxlan.reserved_16", "Reserved", "Zero."),
    FIELD_ROW(NULL, 24, 8, FT_UINT8, BASE_DEC, &next_proto_desc, FLD_MEMBER, "vxlan.next_proto", "Next Protocol",
              "What follows."),
    FIELD_ROW(NULL, 32, 24, FT_UINT24, BASE_DEC, NULL, FLD_MEMBER, "vxlan.vni", "VXLAN Network Identifier (VNI)",
              "Overlay network."),
    FIELD_ROW(NULL, 56, 8, FT_UINT8, BASE_DEC, NULL, FLD_MEMBER, "vxlan.reserved8", "Reserved", "Zero."),
};

static void vxlan_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    if (l->len >= VXLAN_LEN)
        buf_printf(b, "VXLAN VNI %u", load_be24(p->data + l->off + 4));
}
const struct hdr vxlan_hdr = {
    .abbrev = "vxlan",
    .name = "Virtual eXtensible Local Area Network",
    .proto = "vxlan",
    .column = "VXLAN",
    .fields = vxlan_fields,
    .nfields = ARRAY_LEN(vxlan_fields),
    .len = VXLAN_LEN,
    .info = vxlan_info,
};
const struct hdr vxlan_gpe_hdr = {
    .abbrev = "vxlan",
    .name = "Virtual eXtensible Local Area Network, GPE",
    .proto = "vxlan",
    .column = "VXLAN",
    .fields = vxlan_gpe_fields,
    .nfields = ARRAY_LEN(vxlan_gpe_fields),
    .len = VXLAN_LEN,
    .info = vxlan_info,
};

void vxlan_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    if (pkt_header(p, &vxlan_hdr, off, VXLAN_LEN, "VXLAN header") && pkt_tunnel(p, off))
        eth_decode(p, off + VXLAN_LEN, o);
}

void vxlan_gpe_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    const uint8_t *q = pkt_header(p, &vxlan_gpe_hdr, off, VXLAN_LEN, "VXLAN-GPE header");

    if (!q || !pkt_tunnel(p, off))
        return;
    off += VXLAN_LEN;
    switch (q[3]) {
    case GPE_IPV4:
    case GPE_IPV6:
        ip_decode(p, off, o);
        break;
    case GPE_ETHERNET:
        eth_decode(p, off, o);
        break;
    case GPE_MPLS:
        mpls_decode(p, off, o);
        break;
    default:
        break;
    }
}
