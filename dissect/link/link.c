/* layer 1 (wire): the dissector of each link type but Ethernet; BSD loopback. */
#include "dissect/link/link.h"
#include "dissect/dissectors.h"

/* Address family of BSD loopback, 4 bytes: LINK_LOOP is big-endian, LINK_NULL has the byte order of the capturing host.
 * All families are below 0x10000, which tells the byte order. */
static uint32_t family(const uint8_t *h)
{
    uint32_t v = load_be32(h);

    return v <= 0xffff ? v : __builtin_bswap32(v);
}
static bool family_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    if (l->len < 4)
        return false;
    v->u = family(p->data + l->off);
    return true;
}
static const struct vname families[] = {{2, "IP"}, {10, "IPv6"}, {24, "IPv6"}, {28, "IPv6"}, {30, "IPv6"}};
static const struct vdesc family_desc = VDESC_NAMES(families);
static const struct field null_fields[] = {
    FIELD_GET(family_get, FT_UINT32, BASE_DEC, &family_desc, 0, "null.family", "Family",
              "Address family of the capturing system."),
};
static void null_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    if (l->len >= 4)
        buf_printf(b, "address family %u", family(p->data + l->off));
}
const struct hdr null_hdr = {
    .abbrev = "null",
    .name = "Null/Loopback",
    .proto = "null",
    .column = "NULL",
    .fields = null_fields,
    .nfields = ARRAY_LEN(null_fields),
    .info = null_info,
};

static void null_decode(struct pkt *p, const struct decode_opts *o)
{
    const uint8_t *q = pkt_header(p, &null_hdr, 0, 4, "address family");

    if (q && vname_find(families, ARRAY_LEN(families), family(q)))
        ip_decode(p, 4, o);
}

/* Link types that are not decoded, only named. */
static const struct vname linktypes[] = {
    {3, "AX.25"},       {6, "802.5"},         {7, "ARCNET"},    {8, "SLIP"},           {9, "PPP"},
    {10, "FDDI"},       {50, "PPP HDLC"},     {51, "PPPoE"},    {100, "ATM RFC 1483"}, {104, "Cisco HDLC"},
    {105, "802.11"},    {107, "Frame Relay"}, {117, "PFLOG"},   {119, "802.11 Prism"}, {127, "802.11 radiotap"},
    {138, "Firewire"},  {147, "USER0"},       {189, "USB"},     {192, "PPI"},          {220, "USB with padding"},
    {227, "SocketCAN"}, {239, "NFLOG"},       {249, "USBPcap"}, {253, "Netlink"},      {258, "PKTAP"},
};
static bool linktype_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = p->frame->linktype;
    return true;
}
static const struct vdesc linktype_desc = VDESC_NAMES(linktypes);
static const struct field linktype_fields[] = {
    FIELD_GET(linktype_get, FT_UINT16, BASE_DEC, &linktype_desc, 0, "rdma.linktype", "Link type",
              "LINKTYPE_* of the capture file."),
};
static void linktype_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    (void)l;
    link_type_put(b, p->frame->linktype);
}
const struct hdr linktype_hdr = {
    .abbrev = "rdma.link",
    .name = "Link that is not decoded",
    .proto = "rdma",
    .column = "Unknown",
    .fields = linktype_fields,
    .nfields = ARRAY_LEN(linktype_fields),
    .info = linktype_info,
};

#define LINK_PACKET_LEN 6 /* bytes of a flow control packet; any other InfiniBand packet is longer */

static void infiniband_decode(struct pkt *p, const struct decode_opts *o)
{
    if (p->end == LINK_PACKET_LEN)
        iblink_decode(p, 0, o);
    else
        ib_decode(p, 0, o);
}

static void raw_decode(struct pkt *p, const struct decode_opts *o)
{
    ip_decode(p, 0, o);
}

static const struct {
    uint16_t linktype;
    void (*decode)(struct pkt *p, const struct decode_opts *o);
} links[] = {
    {LINK_SLL, sll_decode},     {LINK_SLL2, sll2_decode}, {LINK_RAW, raw_decode},
    {LINK_IPV4, raw_decode},    {LINK_IPV6, raw_decode},  {LINK_INFINIBAND, infiniband_decode},
    {LINK_ERF, erf_decode},     {LINK_NULL, null_decode}, {LINK_LOOP, null_decode},
    {LINK_IPOIB, ipoib_decode},
};

void link_decode(struct pkt *p, const struct decode_opts *o)
{
    for (unsigned i = 0; i < ARRAY_LEN(links); i++)
        if (links[i].linktype == p->frame->linktype) {
            links[i].decode(p, o);
            return;
        }
    pkt_layer(p, &linktype_hdr, 0, p->caplen);
}

bool link_is_decoded(uint16_t linktype)
{
    for (unsigned i = 0; i < ARRAY_LEN(links); i++)
        if (links[i].linktype == linktype)
            return true;
    return linktype == LINK_ETHERNET;
}

void link_type_put(struct buf *b, uint16_t linktype)
{
    const char *name = vname_find(linktypes, ARRAY_LEN(linktypes), linktype);

    buf_printf(b, "link type %u", linktype);
    if (name)
        buf_printf(b, " (%s)", name);
}
