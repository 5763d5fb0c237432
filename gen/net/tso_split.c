/* layer 3 (net): splitting joined TCP segments. */
#include "gen/net/tso_split.h"
#include "gen/endpoint/rewrite.h"
#include "gen/net/tap.h"
#include "src/cap/cap.h"

enum { TCP_FIN = 1, TCP_SYN = 2, TCP_RST = 4, TCP_PSH = 8, TCP_CWR = 0x80 };

/* Offsets in a frame. */
struct layout {
    uint32_t ip, tcp, data, end;
    bool v4;
};

/* Where the IP packet begins; 0: there is none. */
static uint32_t find_ip(const uint8_t *p, uint32_t len)
{
    uint32_t ip = 14;

    while (ip + 20 <= len && (load_be16(p + ip - 2) == 0x8100 || load_be16(p + ip - 2) == 0x88a8))
        ip += 4;
    if (ip + 20 > len)
        return 0;
    if (load_be16(p + ip - 2) == 0x0800 && p[ip] >> 4 == 4)
        return ip;
    return load_be16(p + ip - 2) == 0x86dd && ip + 40 <= len ? ip : 0;
}

static uint32_t ip_len(const uint8_t *ip)
{
    return ip[0] >> 4 == 4 ? load_be16(ip + 2) : 40u + load_be16(ip + 4);
}

bool segment_needed(const uint8_t *data, uint32_t len, uint32_t mtu)
{
    uint32_t ip = find_ip(data, len);

    return ip && ip_len(data + ip) > mtu;
}

static bool find_tcp(struct layout *l, const uint8_t *p, uint32_t len)
{
    l->ip = find_ip(p, len);
    if (!l->ip)
        return false;
    l->v4 = p[l->ip] >> 4 == 4;
    if (l->v4 ? p[l->ip + 9] != 6 || load_be16(p + l->ip + 6) & 0x3fff : p[l->ip + 6] != 6)
        return false;
    l->tcp = l->ip + (l->v4 ? (p[l->ip] & 15u) * 4 : 40);
    l->end = l->ip + ip_len(p + l->ip);
    if (l->tcp < l->ip + 20 || l->end > len || l->tcp + 20 > l->end)
        return false;
    l->data = l->tcp + (p[l->tcp + 12] >> 4) * 4u;
    return l->data >= l->tcp + 20 && l->data <= l->end && !(p[l->tcp + 13] & (TCP_SYN | TCP_RST));
}

/* Update the headers of segment number `n`, with `len` bytes of data from `at` on. */
static void fix(uint8_t *p, const struct layout *l, unsigned n, uint32_t at, uint32_t len)
{
    uint32_t end = l->data + len;

    if (l->v4) {
        store_be16(p + l->ip + 2, (uint16_t)(end - l->ip));
        store_be16(p + l->ip + 4, (uint16_t)(load_be16(p + l->ip + 4) + n));
    } else {
        store_be16(p + l->ip + 4, (uint16_t)(end - l->ip - 40));
    }
    store_be32(p + l->tcp + 4, load_be32(p + l->tcp + 4) + at);
    if (l->data + at + len < l->end)
        p[l->tcp + 13] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
    if (n)
        p[l->tcp + 13] &= (uint8_t)~TCP_CWR;
    frame_fix_ip(p, end, LINK_ETHERNET);
    frame_fix_l4(p, end);
}

unsigned segment_tcp(const uint8_t *data, uint32_t len, uint32_t mtu,
                     void (*each)(void *user, const uint8_t *data, uint32_t len), void *user)
{
    uint8_t frame[NET_FRAME_MAX];
    struct layout l;
    uint32_t room;
    unsigned n = 0;

    if (!find_tcp(&l, data, len) || l.ip + mtu <= l.data)
        return 0;
    room = min_u32(l.ip + mtu, sizeof frame) - l.data;
    for (uint32_t at = 0; l.data + at < l.end; at += room, n++) {
        uint32_t part = min_u32(room, l.end - l.data - at);
        memcpy(frame, data, l.data);
        memcpy(frame + l.data, data + l.data + at, part);
        fix(frame, &l, n, at, part);
        each(user, frame, l.data + part);
    }
    return n;
}
