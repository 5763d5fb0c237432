/* layer 3 (endpoint): ICMP errors that say a host, or its RoCE port, cannot be reached. */
#include "gen/endpoint/unreach.h"

#include "dissect/ib/ib.h"
#include "dissect/ip/icmp.h"
#include "dissect/ip/ip.h"
#include "dissect/link/eth.h"
#include "gen/endpoint/build.h"

#define ICMP_HEAD 8 /* bytes before the packet quoted */

/* An IP packet, or the beginning of one. */
struct ip_part {
    uint8_t src[16], dst[16];
    uint8_t proto;
    const uint8_t *body;
    uint32_t len; /* of `body` */
};

static bool ip4_part(struct ip_part *o, const uint8_t *p, uint32_t len)
{
    uint32_t head = len >= IP4_LEN ? (p[0] & 15u) * 4 : 0;

    if (head < IP4_LEN || head > len || p[0] >> 4 != 4)
        return false;
    gid_from_ipv4(o->src, load_be32(p + 12));
    gid_from_ipv4(o->dst, load_be32(p + 16));
    o->proto = p[9];
    o->body = p + head;
    o->len = len - head;
    return true;
}

static bool ip6_part(struct ip_part *o, const uint8_t *p, uint32_t len)
{
    if (len < IP6_LEN || p[0] >> 4 != 6)
        return false;
    memcpy(o->src, p + 8, 16);
    memcpy(o->dst, p + 24, 16);
    o->proto = p[6];
    o->body = p + IP6_LEN;
    o->len = len - IP6_LEN;
    return true;
}

/* The IP packet of a frame. */
static bool frame_part(struct ip_part *o, bool *v6, const uint8_t *frame, uint32_t len)
{
    uint32_t at = 12;

    if (len < ETH_LEN)
        return false;
    if (load_be16(frame + at) == ETHERTYPE_VLAN)
        at += 4;
    if (len < at + 2)
        return false;
    *v6 = load_be16(frame + at) == ETHERTYPE_IPV6;
    if (!*v6 && load_be16(frame + at) != ETHERTYPE_IPV4)
        return false;
    return (*v6 ? ip6_part : ip4_part)(o, frame + at + 2, len - at - 2);
}

bool unreachable_rx(struct unreachable *u, const uint8_t own[16], const uint8_t *frame, uint32_t len)
{
    struct ip_part ip, of;
    bool v6;

    if (!frame_part(&ip, &v6, frame, len) || ip.proto != (v6 ? IPPROTO_ICMP6_ : IPPROTO_ICMP_) || ip.len < ICMP_HEAD)
        return false;
    if (ip.body[0] != (v6 ? ICMP6_UNREACHABLE : ICMP_UNREACHABLE))
        return false;
    if (!(v6 ? ip6_part : ip4_part)(&of, ip.body + ICMP_HEAD, ip.len - ICMP_HEAD))
        return true;
    if (of.proto != IPPROTO_UDP_ || of.len < 4 || load_be16(of.body + 2) != UDP_PORT_ROCEV2 ||
        memcmp(of.src, own, 16) != 0)
        return true;
    *u = (struct unreachable){.known = true, .v6 = v6, .code = ip.body[1]};
    memcpy(u->gid, of.dst, 16);
    memcpy(u->from, ip.src, 16);
    return true;
}

const char *unreachable_str(const struct unreachable *u)
{
    static const char *const codes[] = {[0] = "network unreachable",          [1] = "host unreachable",
                                        [2] = "protocol unreachable",         [3] = "port unreachable",
                                        [4] = "packet too long for the path", [9] = "administratively prohibited",
                                        [10] = "administratively prohibited", [13] = "administratively prohibited"};
    static const char *const codes6[] = {[0] = "no route to the host",
                                         [1] = "administratively prohibited",
                                         [3] = "host unreachable",
                                         [4] = "port unreachable"};
    const char *const *of = u->v6 ? codes6 : codes;
    unsigned n = u->v6 ? ARRAY_LEN(codes6) : ARRAY_LEN(codes);

    return u->code < n && of[u->code] ? of[u->code] : "destination unreachable";
}
