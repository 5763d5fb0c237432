/* layer 3 (live): the TCP exchange of parameters in the capture. */
#include "gen/live/record_tcp.h"

#include "dissect/ip/ip.h"
#include "dissect/ip/tcp.h"
#include "dissect/link/eth.h"
#include "gen/endpoint/rewrite.h"
#include "gen/live/host.h"

#include <netinet/in.h>
#include <sys/socket.h>

#define SEGMENT_MAX 1024
#define PROTO_TCP   6
#define WINDOW      65535
#define NOTE        "rdmagen: a socket's bytes; the segments of the kernel were not captured"

/* An end of the connection: [0] is ours. */
struct end {
    uint8_t gid[16], mac[6];
    uint16_t port;
};

static bool end_of(struct end *e, int fd, int (*name)(int, struct sockaddr *, socklen_t *))
{
    struct sockaddr_storage a = {0};
    socklen_t len = sizeof a;

    /* sin_port and sin6_port are at the same place */
    if (name(fd, (struct sockaddr *)&a, &len) != 0 || !host_gid((struct sockaddr *)&a, e->gid))
        return false;
    e->port = load_be16((const uint8_t *)&a + offsetof(struct sockaddr_in, sin_port));
    return true;
}

/* Write the IP header; returns the end of it. */
static uint8_t *put_ip(uint8_t *q, const struct end *from, const struct end *to, size_t len)
{
    bool v4 = gid_is_ipv4(from->gid);
    struct ip4 h4 = {.version = 4, .ihl = 5, .len = (uint16_t)(IP4_LEN + len), .df = 1, .ttl = 64, .proto = PROTO_TCP};
    struct ip6 h6 = {.version = 6, .plen = (uint16_t)len, .nxt = PROTO_TCP, .hlim = 64};

    store_be16(q - 2, v4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
    memcpy(h4.src, from->gid + 12, 4);
    memcpy(h4.dst, to->gid + 12, 4);
    memcpy(h6.src, from->gid, 16);
    memcpy(h6.dst, to->gid, 16);
    if (v4)
        ip4_put(q, &h4);
    else
        ip6_put(q, &h6);
    return q + (v4 ? IP4_LEN : IP6_LEN);
}

static void segment(struct live *l, const struct end e[2], bool sent, struct tcp h, const void *data, size_t len)
{
    const struct end *from = &e[!sent], *to = &e[sent];
    uint8_t frame[ETH_LEN + IP6_LEN + TCP_LEN + SEGMENT_MAX] = {0}, *q;

    memcpy(frame, to->mac, 6);
    memcpy(frame + 6, from->mac, 6);
    q = put_ip(frame + ETH_LEN, from, to, TCP_LEN + len);
    h.sport = from->port;
    h.dport = to->port;
    h.doff = TCP_LEN / 4;
    h.window = WINDOW;
    tcp_put(q, &h);
    memcpy(q + TCP_LEN, data, len);
    q += TCP_LEN + len;
    frame_fix_ip(frame, (uint32_t)(q - frame), LINK_ETHERNET);
    frame_fix_l4(frame, (uint32_t)(q - frame));
    live_record(l, frame, (uint32_t)(q - frame), !sent, NOTE);
}

void record_tcp(struct tcp_stream *t, int fd, bool sent, const void *data, size_t len)
{
    struct live *l = t->live;
    struct end e[2] = {0};

    if (!l || !l->record || !end_of(&e[0], fd, getsockname) || !end_of(&e[1], fd, getpeername))
        return;
    memcpy(e[0].mac, l->id.mac, 6);
    identity_lookup(&l->id, e[1].gid, e[1].mac);
    if (!t->begun) {
        segment(l, e, sent, (struct tcp){.seq = 0, .syn = 1}, "", 0);
        segment(l, e, !sent, (struct tcp){.seq = 0, .ack = 1, .ackf = 1, .syn = 1}, "", 0);
        *t = (struct tcp_stream){.live = l, .begun = true, .seq = {1, 1}};
    }
    for (size_t at = 0, n; at < len; at += n) {
        n = len - at < SEGMENT_MAX ? len - at : SEGMENT_MAX;
        segment(l, e, sent, (struct tcp){.seq = t->seq[!sent], .ack = t->seq[sent], .ackf = 1, .psh = 1},
                (const uint8_t *)data + at, n);
        t->seq[!sent] += (uint32_t)n;
    }
}
