/* layer 1 (wire): Ethernet, 802.1Q and QinQ; what an EtherType announces. */
#include "dissect/eth.h"

#include "dissect/pkt.h"

static const struct vname ethertypes[] = {
    {ETHERTYPE_IPV4, "IPv4"},       {ETHERTYPE_ARP, "ARP"},   {ETHERTYPE_VLAN, "802.1Q"},
    {ETHERTYPE_IPV6, "IPv6"},       {ETHERTYPE_QINQ, "QinQ"}, {ETHERTYPE_ROCEV1, "RoCE"},
};
const struct vdesc ethertype_desc = VDESC_NAMES(ethertypes);

HDR_TABLE_PLUS(eth, ETH_FIELDS,
               FIELD_ALIAS(0, 48, FT_ETHER, BASE_NONE, "eth.addr", "Address", "Source or destination."),
               FIELD_ALIAS(48, 48, FT_ETHER, BASE_NONE, "eth.addr", "Address", "Source or destination."))
const struct hdr eth_hdr = {"eth", "Ethernet II", "eth", "Ethernet", eth_fields, ARRAY_LEN(eth_fields), 14, FT_NONE, NULL};

HDR_TABLE(vlan, VLAN_FIELDS)
const struct hdr vlan_hdr = {"vlan", "802.1Q Virtual LAN", "vlan", "VLAN", vlan_fields, ARRAY_LEN(vlan_fields), 4, FT_NONE, NULL};

static void vlan_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    const uint8_t *q = pkt_header(p, &vlan_hdr, off, 4, "VLAN tag of 4 bytes");

    if (!q)
        return;
    p->have |= H_VLAN;
    p->vlan = load_be16(q);
    ethertype_decode(p, off + 4, load_be16(q + 2), o);
}

void ethertype_decode(struct pkt *p, uint32_t off, uint16_t type, const struct decode_opts *o)
{
    switch (type) {
    case ETHERTYPE_IPV4:
    case ETHERTYPE_IPV6:
        ip_decode(p, off, o);
        break;
    case ETHERTYPE_VLAN:
    case ETHERTYPE_QINQ:
        vlan_decode(p, off, o);
        break;
    case ETHERTYPE_ROCEV1:
        rocev1_decode(p, off, o);
        break;
    default:
        break;
    }
}

void eth_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    const uint8_t *q = pkt_header(p, &eth_hdr, off, 14, "Ethernet header of 14 bytes");

    if (!q)
        return;
    p->have |= H_ETH;
    ethertype_decode(p, off + 14, load_be16(q + 12), o);
}
