/* layer 1 (wire): IP over InfiniBand in capture files (LINKTYPE_IPOIB; RFC 4391). */

#include "dissect/dissectors.h"
#include "dissect/link/eth.h"
#include "dissect/link/link.h"

#define PSEUDO_LEN 40

/*
 * Known files have 40 bytes before the header of RFC 4391. Received frame: a GRH with the source QP in its second
 * 4-byte word. Sent frame: 20 zero bytes and the link-layer address of the destination: reserved (1), QPN (3), GID
 * (16).
 */
static const struct field ipoib_dst_fields[] = {
    FIELD_ROW(NULL, 0, 168, FT_BYTES, BASE_NONE, NULL, FLD_MEMBER, "rdma.ipoib.unused", "Unused", "Zero."),
    FIELD_ROW(NULL, 168, 24, FT_UINT24, BASE_HEX, NULL, FLD_MEMBER, "ipoib.daddr.qpn", "Destination QPN",
              "Destination queue pair."),
    FIELD_ROW(NULL, 192, 128, FT_IPV6, BASE_NONE, NULL, FLD_MEMBER, "ipoib.dgid", "Destination GID",
              "Destination port."),
};
const struct hdr ipoib_dst_hdr = {
    .abbrev = "ipoib.daddr",
    .name = "Destination address",
    .proto = "ipoib",
    .fields = ipoib_dst_fields,
    .nfields = ARRAY_LEN(ipoib_dst_fields),
    .len = PSEUDO_LEN,
};

static const struct field ipoib_grh_fields[] = {
    FIELD_ROW(NULL, 0, 4, FT_UINT8, BASE_DEC, NULL, FLD_MEMBER, "ipoib.grh.ipver", "IP Version", "6."),
    FIELD_ROW(NULL, 4, 8, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "ipoib.grh.tclass", "Traffic Class", "Traffic class."),
    FIELD_ROW(NULL, 12, 20, FT_UINT32, BASE_DEC, NULL, FLD_MEMBER, "ipoib.grh.flowlabel", "Flow Label", "Flow label."),
    FIELD_ROW(NULL, 32, 8, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "rdma.ipoib.reserved8", "Reserved", "Any value."),
    FIELD_ROW(NULL, 40, 24, FT_UINT24, BASE_HEX, NULL, FLD_MEMBER, "ipoib.grh.sqpn", "Source QPN",
              "Queue pair that sent the packet."),
    FIELD_ROW(NULL, 64, 128, FT_IPV6, BASE_NONE, NULL, FLD_MEMBER, "ipoib.grh.sgid", "Source GID", "Source port."),
    FIELD_ROW(NULL, 192, 128, FT_IPV6, BASE_NONE, NULL, FLD_MEMBER, "ipoib.dgid", "Destination GID",
              "Destination port."),
};
const struct hdr ipoib_grh_hdr = {
    .abbrev = "ipoib.grh",
    .name = "Global Route Header",
    .proto = "ipoib",
    .fields = ipoib_grh_fields,
    .nfields = ARRAY_LEN(ipoib_grh_fields),
    .len = PSEUDO_LEN,
};

/* The header of RFC 4391, 4 bytes: | EtherType (2) | reserved (2) | */
static const struct field ipoib_fields[] = {
    FIELD_ROW(NULL, 0, 16, FT_UINT16, BASE_HEX, &ethertype_desc, FLD_MEMBER, "ipoib.type", "Type", "What follows."),
    FIELD_ROW(NULL, 16, 16, FT_UINT16, BASE_HEX, NULL, FLD_MEMBER, "ipoib.reserved", "Reserved", "Zero."),
};
static void ipoib_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    if (l->len >= 2)
        buf_printf(b, "IP over InfiniBand, type 0x%04x", load_be16(p->data + l->off));
}
const struct hdr ipoib_hdr = {
    .abbrev = "ipoib",
    .name = "IP over Infiniband",
    .proto = "ipoib",
    .column = "IPoIB",
    .fields = ipoib_fields,
    .nfields = ARRAY_LEN(ipoib_fields),
    .len = 4,
    .info = ipoib_info,
};

/* True if the frame starts with the header of RFC 4391, as the registry of link types defines it: the EtherType of IP,
 * a reserved 0 and an IP header of that version. */
static bool starts_with_header(const struct pkt *p)
{
    const uint8_t *q = p->data;

    if (p->caplen < 5 || load_be16(q + 2) != 0)
        return false;
    return (load_be16(q) == ETHERTYPE_IPV4 && q[4] >> 4 == 4) || (load_be16(q) == ETHERTYPE_IPV6 && q[4] >> 4 == 6);
}

void ipoib_decode(struct pkt *p, const struct decode_opts *o)
{
    const uint8_t *q;
    uint32_t off = 0;

    if (!starts_with_header(p)) {
        q = pkt_need(p, 0, 1, "IPoIB pseudo-header");
        if (!q || !pkt_header(p, q[0] ? &ipoib_grh_hdr : &ipoib_dst_hdr, 0, PSEUDO_LEN, "IPoIB pseudo-header"))
            return;
        off = PSEUDO_LEN;
    }
    q = pkt_header(p, &ipoib_hdr, off, 4, "IPoIB header");
    if (q)
        ethertype_decode(p, off + 4, load_be16(q), o);
}
