/* layer 3 (endpoint): building frames. */
#include "gen/endpoint/build.h"

#include <errno.h>

#include "dissect/ip/ip.h"
#include "dissect/link/eth.h"
#include "dissect/pkt.h"

#define BTH_LEN  12
#define ICRC_LEN 4
#define VCRC_LEN 2
#define LRH_LEN  8

#define DSCP_CLASSES 5 /* lower bits of the TOS, without the class */

bool gid_is_group(const uint8_t gid[16])
{
    return gid_is_ipv4(gid) ? gid[12] >> 4 == 14 : gid[0] == 0xff;
}

void gid_group_mac(const uint8_t gid[16], uint8_t mac[6])
{
    static const uint8_t v4[3] = {0x01, 0x00, 0x5e};

    if (gid_is_ipv4(gid)) {
        memcpy(mac, v4, 3);
        memcpy(mac + 3, gid + 13, 3);
        mac[3] &= 0x7f;
    } else {
        mac[0] = mac[1] = 0x33;
        memcpy(mac + 2, gid + 12, 4);
    }
}

uint8_t frame_class(const uint8_t *frame, uint32_t len)
{
    uint16_t type = len >= ETH_LEN + 4 ? load_be16(frame + 12) : 0;

    switch (type) {
    case ETHERTYPE_VLAN:
        return frame[14] >> 5;
    case ETHERTYPE_IPV4:
        return frame[15] >> DSCP_CLASSES;
    case ETHERTYPE_IPV6:
        return (uint8_t)(load_be16(frame + 14) >> 4) >> DSCP_CLASSES;
    default:
        return 0;
    }
}

struct link_addr link_addr_nth(const struct link_addr *first, uint32_t n)
{
    struct link_addr a = *first;

    store_be32(a.gid + 12, load_be32(a.gid + 12) + n);
    store_be32(a.mac + 2, load_be32(a.mac + 2) + n);
    return a;
}

/* --- Paths ------------------------------------------------------------------------------------ */

static uint8_t *put_ethernet(uint8_t *q, const struct link_addr *own, const struct av *to, uint16_t type)
{
    struct eth e;
    struct vlan v = {.pcp = to->sl & 7, .vid = own->vlan, .type = type};

    memcpy(e.dst, to->dmac, 6);
    memcpy(e.src, own->mac, 6);
    e.type = own->has_vlan ? ETHERTYPE_VLAN : type;
    eth_put(q, &e);
    if (!own->has_vlan)
        return q + 14;
    vlan_put(q + 14, &v);
    return q + 18;
}

static uint8_t hop_limit(const struct av *to)
{
    return to->hop_limit ? to->hop_limit : 64;
}

static uint8_t *put_udp(uint8_t *q, const struct av *to)
{
    struct udp u = {.sport = to->sport ? to->sport : 0xc000, .dport = UDP_PORT_ROCEV2};

    udp_put(q, &u);
    return q + UDP_LEN;
}

static uint8_t *put_ip4(struct path *path, uint8_t *q, const struct link_addr *own, const struct av *to)
{
    struct ip4 h = {.version = 4,
                    .ihl = 5,
                    .dscp = to->tclass >> 2,
                    .ecn = to->tclass & 3,
                    .df = 1,
                    .ttl = hop_limit(to),
                    .proto = IPPROTO_UDP_};

    memcpy(h.src, own->gid + 12, 4);
    memcpy(h.dst, to->dgid + 12, 4);
    ip4_put(q, &h);
    path->ip4 = true;
    path->ip_sum = 0;
    for (unsigned i = 0; i < IP4_LEN; i += 2)
        path->ip_sum += load_be16(q + i);
    return q + IP4_LEN;
}

static uint8_t *put_ip6(uint8_t *q, const struct link_addr *own, const struct av *to, uint8_t next)
{
    struct ip6 h = {.version = 6,
                    .dscp = to->tclass >> 2,
                    .ecn = to->tclass & 3,
                    .flow = to->flow & 0xfffff,
                    .nxt = next,
                    .hlim = hop_limit(to)};

    memcpy(h.src, own->gid, 16);
    memcpy(h.dst, to->dgid, 16);
    ip6_put(q, &h);
    return q + IP6_LEN;
}

static uint8_t *put_lrh(uint8_t *q, const struct link_addr *own, const struct av *to)
{
    struct lrh h = {.sl = to->sl & 15, .lnh = to->grh ? 3 : 2, .dlid = to->dlid, .slid = own->lid};

    lrh_put(q, &h);
    return q + LRH_LEN;
}

int path_init(struct path *path, const struct link_addr *own, const struct av *to)
{
    uint8_t *q = path->head;
    bool v4 = gid_is_ipv4(own->gid);

    memset(path, 0, sizeof *path);
    path->encap = own->encap;
    switch (own->encap) {
    case ENCAP_ROCEV2:
        if (v4 != gid_is_ipv4(to->dgid))
            return -EINVAL;
        q = put_ethernet(q, own, to, v4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
        path->net_off = (uint8_t)(q - path->head);
        q = v4 ? put_ip4(path, q, own, to) : put_ip6(q, own, to, IPPROTO_UDP_);
        q = put_udp(q, to);
        break;
    case ENCAP_ROCEV1:
        q = put_ethernet(q, own, to, ETHERTYPE_ROCEV1);
        path->net_off = (uint8_t)(q - path->head);
        q = put_ip6(q, own, to, GRH_NXTHDR_BTH);
        break;
    case ENCAP_IB:
        q = put_lrh(q, own, to);
        path->net_off = to->grh ? LRH_LEN : 0;
        if (to->grh)
            q = put_ip6(q, own, to, GRH_NXTHDR_BTH);
        path->wire_extra = VCRC_LEN;
        break;
    default:
        return -EINVAL;
    }
    path->head_len = (uint8_t)(q - path->head);
    return 0;
}

#define TAG_OFF 12 /* of an 802.1Q tag */

void path_set_class(struct path *path, uint64_t dscp, uint64_t prio)
{
    uint8_t *tag = path->head + TAG_OFF, *ip = path->head + path->net_off;
    uint32_t before = load_be16(ip);

    if (path->encap == ENCAP_IB)
        return;
    if (prio < 8 && load_be16(tag) == ETHERTYPE_VLAN)
        tag[2] = (uint8_t)((tag[2] & 0x1f) | prio << 5);
    if (dscp >= 64)
        return;
    if (path->ip4) {
        ip[1] = (uint8_t)((ip[1] & 3) | dscp << 2);
        path->ip_sum += load_be16(ip) - before;
    } else {
        store_be16(ip, (uint16_t)((before & 0xf03f) | (uint32_t)dscp << 6));
    }
}

void path_set_sport(struct path *path, uint16_t sport)
{
    if (path->encap == ENCAP_ROCEV2)
        store_be16(path->head + path->head_len - UDP_LEN, sport);
}

/* --- Frames ----------------------------------------------------------------------------------- */

static const struct build_tweak no_tweak;

uint32_t build_size(const struct path *path, const struct opinfo *op, uint32_t payload_len)
{
    return path->head_len + BTH_LEN + op->ext_len + payload_len + (-payload_len & 3) + ICRC_LEN + path->wire_extra;
}

static uint16_t ip_checksum(uint32_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static void patch_ip4(const struct path *path, uint8_t *ip, uint32_t len, uint16_t id, const struct build_tweak *t)
{
    uint32_t sum = path->ip_sum + (len & 0xffff) + id;

    store_be16(ip + 2, (uint16_t)len);
    store_be16(ip + 4, id);
    if (UNLIKELY(t->no_df)) {
        ip[6] &= (uint8_t)~0x40;
        sum -= 0x4000;
    }
    if (UNLIKELY(t->has_ttl)) {
        sum += ((uint32_t)t->ttl << 8) - ((uint32_t)ip[8] << 8);
        ip[8] = t->ttl;
    }
    if (UNLIKELY(t->tos_xor)) {
        sum += (uint32_t)(ip[1] ^ t->tos_xor) - ip[1];
        ip[1] ^= t->tos_xor;
    }
    if (UNLIKELY(t->src_xor)) {
        sum += (uint32_t)(ip[15] ^ t->src_xor) - ip[15];
        ip[15] ^= t->src_xor;
    }
    store_be16(ip + 10, ip_checksum(sum));
}

static void patch_ip6(uint8_t *ip, uint32_t payload, const struct build_tweak *t)
{
    store_be16(ip + 4, (uint16_t)payload);
    ip[6] ^= t->grh_nxthdr_xor;
    ip[23] ^= t->src_xor;
    ip[7] = t->has_ttl ? t->ttl : ip[7];
    ip[0] ^= t->tos_xor >> 4;
    ip[1] ^= (uint8_t)(t->tos_xor << 4);
}

/* Lengths, identification and checksum; `after` bytes follow the prepared headers, up to and including the ICRC. */
static void patch_head(const struct path *path, uint8_t *buf, uint32_t after, uint16_t id, const struct build_tweak *t)
{
    uint8_t *udp = buf + path->head_len - UDP_LEN;
    uint32_t below = after + (path->encap == ENCAP_ROCEV2 ? UDP_LEN : 0);

    if (path->encap == ENCAP_ROCEV2) {
        store_be16(udp + 4, (uint16_t)(below + (uint32_t)t->udp_len_add));
        store_be16(udp + 6, t->udp_csum);
        if (UNLIKELY(t->udp_dport))
            store_be16(udp + 2, t->udp_dport);
        if (UNLIKELY(t->udp_sport_xor))
            store_be16(udp, load_be16(udp) ^ t->udp_sport_xor);
    }
    if (path->encap == ENCAP_IB) {
        store_be16(buf + 4, (uint16_t)((path->head_len + after) / 4));
        buf[0] |= t->lver & 15;
    } else {
        buf[5] ^= t->mac_xor;
    }
    if (path->ip4)
        patch_ip4(path, buf + path->net_off, below + IP4_LEN + (uint32_t)t->ip_len_add, id, t);
    else if (path->net_off)
        patch_ip6(buf + path->net_off, below + (uint32_t)t->ip_len_add, t);
}

uint8_t *build_ext(uint8_t *q, const struct pkt *p)
{
#define EXT(bit, name, bytes, arg)                                                                                     \
    case bit:                                                                                                          \
        name##_put(q, &p->name);                                                                                       \
        q += bytes;                                                                                                    \
        break;
    for (uint32_t ext = p->op->ext; ext; ext &= ext - 1) {
        switch (ext & -ext) {
            EXT_HEADERS(EXT, )
        default:
            memset(q, 0, DCCETH_LEN);
            q += DCCETH_LEN;
        }
    }
    return q;
#undef EXT
}

int build_begin(struct frame_out *out, const struct path *path, struct pkt *p, uint32_t payload_len, uint16_t ip_id,
                const struct build_tweak *tweak)
{
    const struct build_tweak *t = tweak ? tweak : &no_tweak;
    uint32_t pad = -payload_len & 3, after = BTH_LEN + p->op->ext_len + payload_len + pad + t->trailing + ICRC_LEN;

    if (out->cap < path->head_len + after + path->wire_extra)
        return -ENOSPC;
    if (!t->keep_padcnt)
        p->bth.padcnt = (uint8_t)pad;
    memcpy(out->buf, path->head, path->head_len);
    patch_head(path, out->buf, after, ip_id, t);
    bth_put(out->buf + path->head_len, &p->bth);
    out->payload = build_ext(out->buf + path->head_len + BTH_LEN, p);
    out->len = path->head_len + after + path->wire_extra;
    return 0;
}

static uint32_t icrc_of(const struct path *path, const uint8_t *buf, uint32_t icrc_off)
{
    switch (path->encap) {
    case ENCAP_ROCEV2:
        return icrc_rocev2(buf + path->net_off, buf + path->head_len - UDP_LEN, icrc_off - (path->head_len - UDP_LEN));
    case ENCAP_ROCEV1:
        return icrc_rocev1(buf + path->net_off, icrc_off - path->head_len);
    default:
        return icrc_ib(buf, icrc_off, path->net_off != 0);
    }
}

void build_end(struct frame_out *out, const struct path *path, const struct pkt *p, uint32_t payload_len,
               const struct build_tweak *tweak)
{
    const struct build_tweak *t = tweak ? tweak : &no_tweak;
    uint32_t pad = -payload_len & 3, icrc_off = out->len - path->wire_extra - ICRC_LEN;

    (void)p;
    if (UNLIKELY(t->payload_xor && payload_len))
        out->payload[0] ^= t->payload_xor;
    if (pad)
        memset(out->payload + payload_len, t->pad_byte, pad);
    if (UNLIKELY(t->trailing))
        memset(out->payload + payload_len + pad, 0, t->trailing);
    if (LIKELY(!path->no_icrc))
        store_le32(out->buf + icrc_off, icrc_of(path, out->buf, icrc_off) ^ t->icrc_xor);
    if (path->wire_extra) {
        uint16_t v = vcrc_ib(out->buf, icrc_off + ICRC_LEN) ^ t->vcrc_xor;
        out->buf[icrc_off + ICRC_LEN] = (uint8_t)v;
        out->buf[icrc_off + ICRC_LEN + 1] = (uint8_t)(v >> 8);
    }
}

bool build_fix_crc(uint8_t *frame, uint32_t len, uint16_t linktype)
{
    static const struct decode_opts opts = {.verify = true};
    struct frame f = {.data = frame, .caplen = len, .len = len, .linktype = linktype};
    struct pkt p;

    pkt_decode(&p, &f, &opts);
    if (p.icrc != CRC_GOOD && p.icrc != CRC_BAD)
        return false;
    store_be32(frame + p.icrc_off, p.icrc_want);
    build_fix_vcrc(frame, len, linktype);
    return true;
}

bool build_fix_vcrc(uint8_t *frame, uint32_t len, uint16_t linktype)
{
    static const struct decode_opts opts = {.verify = true};
    struct frame f = {.data = frame, .caplen = len, .len = len, .linktype = linktype};
    struct pkt p;

    pkt_decode(&p, &f, &opts);
    if (p.vcrc != CRC_GOOD && p.vcrc != CRC_BAD)
        return false;
    store_be16(frame + p.icrc_off + ICRC_LEN, p.vcrc_want);
    return true;
}
