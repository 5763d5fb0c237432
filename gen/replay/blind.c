/* layer 3 (replay): frames sent again, to other addresses. */
#include "gen/replay/blind.h"

#include "bits.h"
#include "dissect/link/eth.h"
#include "gen/endpoint/rewrite.h"
#include "gen/verbs/verbs.h"
#include "psn.h"

#define BTH_QPN 5 /* bytes from the start of the BTH: destination queue pair, 24 bits */
#define BTH_PSN 9 /* PSN, 24 bits */

static void put24(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 16);
    store_be16(p + 1, (uint16_t)v);
}

/* Source and destination address of the IP header at `ip`. */
static void put_addresses(const struct blind_opts *o, uint8_t *ip, bool ip4)
{
    for (unsigned i = 0; i < 2; i++)
        if (ip4)
            memcpy(ip + 12 + 4 * i, o->gid[i] + 12, 4);
        else
            memcpy(ip + 8 + 16 * i, o->gid[i], 16);
}

/* Returns the end of the Ethernet header. */
static uint8_t *put_eth(const struct blind_opts *o, uint8_t *to, uint16_t type)
{
    const struct vlan tag = {.pcp = o->pcp & 7, .vid = o->vlan, .type = type};
    struct eth e = {.type = o->vlan ? ETHERTYPE_VLAN : type};

    memcpy(e.src, o->mac[0], 6);
    memcpy(e.dst, o->mac[1], 6);
    eth_put(to, &e);
    if (!o->vlan)
        return to + 14;
    vlan_put(to + 14, &tag);
    return to + 18;
}

enum blind blind_make(const struct blind_opts *o, const struct pkt *p, uint8_t *to, uint32_t *len)
{
    bool ip4 = gid_is_ipv4(o->gid[1]);
    uint32_t need = H_UDP | H_BTH | (ip4 ? H_IP4 : H_IP6);
    uint8_t *ip, *udp, *bth;

    if ((p->have & need) != need || p->encap != ENCAP_ROCEV2 || p->flags & (PKT_TUNNEL | PKT_MALFORMED))
        return BLIND_OTHER;
    if (p->end > p->caplen)
        return BLIND_CUT;
    ip = put_eth(o, to, ip4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
    udp = ip + (p->udp_off - p->ip_off);
    bth = ip + (p->bth_off - p->ip_off);
    memcpy(ip, p->data + p->ip_off, p->end - p->ip_off);
    *len = (uint32_t)(ip - to) + p->end - p->ip_off;
    put_addresses(o, ip, ip4);
    if (o->has_qpn && p->bth.dqpn != 1)
        put24(bth + BTH_QPN, o->qpn);
    if (o->has_psn)
        put24(bth + BTH_PSN, psn_add(p->bth.psn, o->shift));
    frame_fix(to, *len, LINK_ETHERNET);
    if (load_be16(udp + 6) != 0)
        frame_fix_l4(to, *len);
    return BLIND_MADE;
}
