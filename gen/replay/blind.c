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

enum blind blind_make(const struct blind_opts *o, const struct pkt *p, uint8_t *to)
{
    bool ip4 = gid_is_ipv4(o->gid[1]);
    uint32_t need = H_ETH | H_UDP | H_BTH | (ip4 ? H_IP4 : H_IP6);

    if (p->frame->linktype != LINK_ETHERNET || (p->have & need) != need || p->encap != ENCAP_ROCEV2 ||
        p->flags & (PKT_TUNNEL | PKT_MALFORMED))
        return BLIND_OTHER;
    if (p->end > p->caplen)
        return BLIND_CUT;
    memcpy(to, p->data, p->caplen);
    memcpy(to, o->mac[1], 6);
    memcpy(to + 6, o->mac[0], 6);
    put_addresses(o, to + p->ip_off, ip4);
    if (o->has_qpn && p->bth.dqpn != 1)
        put24(to + p->bth_off + BTH_QPN, o->qpn);
    if (o->has_psn)
        put24(to + p->bth_off + BTH_PSN, psn_add(p->bth.psn, o->shift));
    frame_fix(to, p->caplen, LINK_ETHERNET);
    if (load_be16(to + p->udp_off + 6) != 0)
        frame_fix_l4(to, p->caplen);
    return BLIND_MADE;
}
