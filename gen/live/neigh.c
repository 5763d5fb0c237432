/* layer 3 (live): ARP (RFC 826) and neighbour discovery (RFC 4861) for one address. */
#include "gen/live/neigh.h"

#include "dissect/ib/ib.h"
#include "dissect/ip/ip.h"
#include "dissect/link/eth.h"
#include "gen/endpoint/build.h"

#define ARP_LEN     28
#define ARP_REQUEST 1
#define ARP_REPLY   2
#define ND_LEN      32 /* solicitation or advertisement with one option */
#define ND_SOLICIT  135
#define ND_ADVERT   136
#define ND_SOURCE   1 /* options: link-layer address of the source, of the target */
#define ND_TARGET   2
#define ND_HOP      255

/* Flags of a neighbour advertisement. */
enum { NA_SOLICITED = 0x40, NA_OVERRIDE = 0x20 };

static const uint8_t BROADCAST[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t ALL_NODES[16] = {0xff, 0x02, [15] = 1};

void identity_init(struct identity *id, const uint8_t mac[6], const uint8_t gid[16])
{
    memset(id, 0, sizeof *id);
    memcpy(id->mac, mac, 6);
    memcpy(id->gid, gid, 16);
    id->answer = true;
}

/* FNV-1a, to spread addresses over tables. */
static uint64_t hash(const uint8_t gid[16])
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (unsigned i = 0; i < 16; i++)
        h = (h ^ gid[i]) * UINT64_C(0x100000001b3);
    return h ^ h >> 32;
}

void identity_derive_mac(uint8_t mac[6], const uint8_t gid[16])
{
    uint64_t h = hash(gid);

    mac[0] = 0x02;
    for (unsigned i = 1; i < 6; i++)
        mac[i] = (uint8_t)(h >> 8 * i);
}

/* The own addresses with number `n`, 0: the first. */
static struct link_addr own_nth(const struct identity *id, uint32_t n)
{
    struct link_addr first = {0};

    memcpy(first.mac, id->mac, 6);
    memcpy(first.gid, id->gid, 16);
    return link_addr_nth(&first, n);
}

/* The number of the own address `gid`; -1: it is none. */
static int own_index(const struct identity *id, const uint8_t gid[16])
{
    uint32_t n = load_be32(gid + 12) - load_be32(id->gid + 12);

    return memcmp(gid, id->gid, 12) == 0 && n <= id->more ? (int)n : -1;
}

void identity_own_mac(const struct identity *id, uint32_t n, uint8_t mac[6])
{
    struct link_addr own = own_nth(id, n);

    memcpy(mac, own.mac, 6);
}

/* --- Neighbours ------------------------------------------------------------------------------- */

static struct neighbour *find_neighbour(struct identity *id, const uint8_t gid[16])
{
    for (unsigned i = 0; i < IDENTITY_NEIGHBOURS && id->neighbours[i].used; i++)
        if (memcmp(id->neighbours[i].gid, gid, 16) == 0)
            return &id->neighbours[i];
    return NULL;
}

static void set_mac(struct neighbour *n, const uint8_t mac[6])
{
    if (mac[0] & 1) /* a group address, not that of a station */
        return;
    memcpy(n->mac, mac, 6);
    n->known = true;
}

/* Learn the MAC address of a requested neighbour from its reply, or from its own request. */
static void learn_requested(struct identity *id, const uint8_t gid[16], const uint8_t mac[6])
{
    struct neighbour *n = find_neighbour(id, gid);

    int own = own_index(id, gid);
    uint8_t mine[6];

    if (own >= 0)
        identity_own_mac(id, (uint32_t)own, mine);
    if (own >= 0 && memcmp(mac, mine, 6) != 0)
        id->conflicts++;
    else if (n)
        set_mac(n, mac);
}

static void learn_seen(struct identity *id, const uint8_t gid[16], const uint8_t mac[6])
{
    struct neighbour *n = &id->seen[hash(gid) % IDENTITY_SEEN];

    memcpy(n->gid, gid, 16);
    n->used = true;
    n->known = false;
    set_mac(n, mac);
}

static bool multicast_mac(const uint8_t gid[16], uint8_t mac[6])
{
    if (gid_is_ipv4(gid) && gid[12] >> 4 == 14)
        memcpy(mac, (uint8_t[]){0x01, 0x00, 0x5e, gid[13] & 0x7f, gid[14], gid[15]}, 6);
    else if (gid[0] == 0xff)
        memcpy(mac, (uint8_t[]){0x33, 0x33, gid[12], gid[13], gid[14], gid[15]}, 6);
    else
        return false;
    return true;
}

bool identity_lookup(const struct identity *id, const uint8_t gid[16], uint8_t mac[6])
{
    const struct neighbour *n = find_neighbour((struct identity *)(uintptr_t)id, gid);

    if (multicast_mac(gid, mac))
        return true;
    if (!n || !n->known)
        n = &id->seen[hash(gid) % IDENTITY_SEEN];
    if (!n->known || memcmp(n->gid, gid, 16) != 0)
        return false;
    memcpy(mac, n->mac, 6);
    return true;
}

/* --- Frames sent ------------------------------------------------------------------------------ */

static uint8_t *put_link(const struct identity *id, const struct link_addr *me, uint8_t *q, const uint8_t dst[6],
                         uint16_t type)
{
    struct eth e = {.type = id->has_vlan ? ETHERTYPE_VLAN : type};
    struct vlan v = {.pcp = id->pcp, .vid = id->vlan, .type = type};

    memcpy(e.dst, dst, 6);
    memcpy(e.src, me->mac, 6);
    eth_put(q, &e);
    if (!id->has_vlan)
        return q + 14;
    vlan_put(q + 14, &v);
    return q + 18;
}

static uint32_t put_arp(const struct identity *id, uint32_t own, uint8_t *out, const uint8_t dst[6], uint16_t op,
                        const uint8_t tmac[6], const uint8_t tip[4])
{
    struct link_addr me = own_nth(id, own);
    uint8_t *q = put_link(id, &me, out, dst, ETHERTYPE_ARP);

    memcpy(q, (uint8_t[]){0, 1, 8, 0, 6, 4, 0, (uint8_t)op}, 8);
    memcpy(q + 8, me.mac, 6);
    memcpy(q + 14, me.gid + 12, 4);
    memcpy(q + 18, tmac, 6);
    memcpy(q + 24, tip, 4);
    return (uint32_t)(q + ARP_LEN - out);
}

/* Sum of RFC 1071 over an ICMPv6 message of `n` bytes (even) and the pseudo header; 0xffff if its checksum is right. */
static uint16_t icmp6_sum(const uint8_t *ip, const uint8_t *msg, uint32_t n)
{
    uint64_t sum = n + IPPROTO_ICMP6_;

    for (unsigned i = 8; i < IP6_LEN; i += 2)
        sum += load_be16(ip + i);
    for (uint32_t i = 0; i + 1 < n; i += 2)
        sum += load_be16(msg + i);
    if (n & 1)
        sum += (uint64_t)msg[n - 1] << 8;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

static uint32_t put_nd(const struct identity *id, uint32_t own, uint8_t *out, const uint8_t dmac[6],
                       const uint8_t dst[16], uint8_t type, uint8_t flags, const uint8_t target[16])
{
    struct link_addr me = own_nth(id, own);
    uint8_t *ip = put_link(id, &me, out, dmac, ETHERTYPE_IPV6), *q = ip + IP6_LEN;
    struct ip6 h = {.version = 6, .plen = ND_LEN, .nxt = IPPROTO_ICMP6_, .hlim = ND_HOP};

    memcpy(h.src, me.gid, 16);
    memcpy(h.dst, dst, 16);
    ip6_put(ip, &h);
    memset(q, 0, ND_LEN);
    q[0] = type;
    q[4] = flags;
    memcpy(q + 8, target, 16);
    q[24] = type == ND_SOLICIT ? ND_SOURCE : ND_TARGET;
    q[25] = 1; /* in units of 8 bytes */
    memcpy(q + 26, me.mac, 6);
    store_be16(q + 2, (uint16_t)~icmp6_sum(ip, q, ND_LEN));
    return (uint32_t)(q + ND_LEN - out);
}

uint32_t identity_ask(struct identity *id, const uint8_t gid[16], uint8_t *out)
{
    static const uint8_t nobody[6] = {0};
    struct neighbour *n = find_neighbour(id, gid);
    uint8_t group[16] = {0xff, 0x02, [11] = 1, [12] = 0xff, gid[13], gid[14], gid[15]}, mac[6];

    if (multicast_mac(gid, mac) || gid_is_ipv4(gid) != gid_is_ipv4(id->gid))
        return 0;
    for (unsigned i = 0; i < IDENTITY_NEIGHBOURS && !n; i++)
        if (!id->neighbours[i].used)
            n = &id->neighbours[i];
    for (unsigned i = 0; i < IDENTITY_NEIGHBOURS && !n; i++)
        if (!id->neighbours[i].known) /* no reply so far: reuse its entry */
            n = &id->neighbours[i];
    if (!n)
        return 0;
    n->used = true;
    memcpy(n->gid, gid, 16);
    if (gid_is_ipv4(gid))
        return put_arp(id, 0, out, BROADCAST, ARP_REQUEST, nobody, gid + 12);
    multicast_mac(group, mac);
    return put_nd(id, 0, out, mac, group, ND_SOLICIT, 0, gid);
}

uint32_t identity_announce(struct identity *id, uint8_t *out)
{
    uint8_t mac[6];

    if (gid_is_ipv4(id->gid))
        return put_arp(id, 0, out, BROADCAST, ARP_REQUEST, id->mac, id->gid + 12);
    multicast_mac(ALL_NODES, mac);
    return put_nd(id, 0, out, mac, ALL_NODES, ND_ADVERT, NA_OVERRIDE, id->gid);
}

/* --- Frames received -------------------------------------------------------------------------- */

static uint32_t rx_arp(struct identity *id, const uint8_t *p, uint32_t len, uint8_t *out)
{
    static const uint8_t ethernet_ipv4[6] = {0, 1, 8, 0, 6, 4};
    uint8_t sender[16], target[16];
    int own;

    if (len < ARP_LEN || memcmp(p, ethernet_ipv4, 6) != 0)
        return 0;
    gid_from_ipv4(sender, load_be32(p + 14));
    gid_from_ipv4(target, load_be32(p + 24));
    learn_requested(id, sender, p + 8);
    own = own_index(id, target);
    if (load_be16(p + 6) != ARP_REQUEST || own < 0 || memcmp(sender, target, 16) == 0 || !id->answer || p[8] & 1)
        return 0;
    id->answered++;
    return put_arp(id, (uint32_t)own, out, p + 8, ARP_REPLY, p + 8, p + 14);
}

/* The link-layer address in the options of `n` bytes at `p`; NULL: none, or malformed. */
static const uint8_t *nd_option(const uint8_t *p, uint32_t n, uint8_t type)
{
    for (uint32_t at = 0; at + 8 <= n && p[at + 1]; at += 8u * p[at + 1])
        if (p[at] == type && p[at + 1] == 1)
            return p + at + 2;
    return NULL;
}

/* Whether it is a neighbour solicitation or advertisement that was sent on this link and is intact. `ip`: the IPv6
 * header; `p`: `n` bytes of an ICMPv6 message. */
static bool is_nd(const uint8_t *ip, const uint8_t *p, uint32_t n)
{
    if (n < 24 || (p[0] != ND_SOLICIT && p[0] != ND_ADVERT))
        return false;
    return p[1] == 0 && ip[7] == ND_HOP && icmp6_sum(ip, p, n) == 0xffff;
}

/* `ip`: the IPv6 header; `p`: `n` bytes of an ICMPv6 message. */
static uint32_t rx_nd(struct identity *id, const uint8_t src_mac[6], const uint8_t *ip, const uint8_t *p, uint32_t n,
                      uint8_t *out)
{
    static const uint8_t unspecified[16] = {0};
    const uint8_t *src = ip + 8, *mac;
    bool probe = memcmp(src, unspecified, 16) == 0; /* duplicate address detection */
    uint8_t all_nodes_mac[6];
    int own;

    if (!is_nd(ip, p, n))
        return 0;
    mac = nd_option(p + 24, n - 24, p[0] == ND_SOLICIT ? ND_SOURCE : ND_TARGET);
    if (p[0] == ND_ADVERT) {
        if (mac || !(p[4] & NA_SOLICITED))
            learn_requested(id, p + 8, mac ? mac : src_mac);
        return 0;
    }
    if (mac && !probe)
        learn_requested(id, src, mac);
    own = own_index(id, p + 8);
    if (own < 0 || !id->answer)
        return 0;
    id->answered++;
    multicast_mac(ALL_NODES, all_nodes_mac);
    if (probe)
        return put_nd(id, (uint32_t)own, out, all_nodes_mac, ALL_NODES, ND_ADVERT, NA_OVERRIDE, p + 8);
    return put_nd(id, (uint32_t)own, out, mac && !(mac[0] & 1) ? mac : src_mac, src, ND_ADVERT,
                  NA_SOLICITED | NA_OVERRIDE, p + 8);
}

/* Learn the MAC address of the sender of a RoCE packet to us. */
static void see_udp(struct identity *id, const uint8_t src_mac[6], const uint8_t src[16], const uint8_t dst[16],
                    const uint8_t *udp, uint32_t n)
{
    if (n >= 8 && load_be16(udp + 2) == UDP_PORT_ROCEV2 && own_index(id, dst) >= 0)
        learn_seen(id, src, src_mac);
}

static void rx_ip4(struct identity *id, const uint8_t src_mac[6], const uint8_t *p, uint32_t len)
{
    uint8_t src[16], dst[16];
    uint32_t head = len ? (p[0] & 15u) * 4 : 0;

    if (len < 20 || head < 20 || len < head || p[9] != IPPROTO_UDP_)
        return;
    gid_from_ipv4(src, load_be32(p + 12));
    gid_from_ipv4(dst, load_be32(p + 16));
    see_udp(id, src_mac, src, dst, p + head, len - head);
}

static uint32_t rx_ip6(struct identity *id, const uint8_t src_mac[6], const uint8_t *p, uint32_t len, uint8_t *out)
{
    uint32_t n;

    if (len < IP6_LEN)
        return 0;
    n = min_u32(load_be16(p + 4), len - IP6_LEN);
    if (p[6] == IPPROTO_ICMP6_)
        return rx_nd(id, src_mac, p, p + IP6_LEN, n, out);
    if (p[6] == IPPROTO_UDP_)
        see_udp(id, src_mac, p + 8, p + 24, p + IP6_LEN, n);
    return 0;
}

uint32_t identity_rx(struct identity *id, const uint8_t *frame, uint32_t len, uint8_t *out)
{
    uint32_t at = 14;
    struct vlan v;
    uint16_t type;

    if (len < 14)
        return 0;
    type = load_be16(frame + 12);
    if (type == ETHERTYPE_VLAN && len >= 18) {
        vlan_get(&v, frame + 14);
        if (v.vid && (!id->has_vlan || v.vid != id->vlan))
            return 0;
        if (!v.vid && id->has_vlan)
            return 0;
        at = 18;
        type = v.type;
    } else if (id->has_vlan) {
        return 0;
    }
    if (type == ETHERTYPE_ARP)
        return gid_is_ipv4(id->gid) ? rx_arp(id, frame + at, len - at, out) : 0;
    if (type == ETHERTYPE_IPV4)
        rx_ip4(id, frame + 6, frame + at, len - at);
    else if (type == ETHERTYPE_IPV6)
        return rx_ip6(id, frame + 6, frame + at, len - at, out);
    return 0;
}
