/* layer 4 (test): fuzzes the context across packets: connections, messages, answers. The input is a sequence of
 * packets, each after two bytes: what it is (FROM_PEER, IN_TCP, OTHER_TAP) and how many bytes follow the UDP or TCP
 * header. */
#include "dissect/ip/ip.h"
#include "tests/fuzz/print.h"

#include <stdlib.h>

enum { FROM_PEER = 1, IN_TCP = 2, OTHER_TAP = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* IPv4 and UDP (28 bytes) or TCP (40 bytes) headers before `n` bytes of payload, and these bytes; returns the frame's
 * length. */
static uint32_t put_frame(uint8_t *p, uint8_t what, const uint8_t *payload, uint8_t n)
{
    uint8_t from = what & FROM_PEER ? 2 : 1;
    uint32_t hdr = what & IN_TCP ? 40 : 28;
    struct ip4 ip = {.version = 4, .ihl = 5, .ttl = 64, .len = (uint16_t)(hdr + n), .src = {10, 0, 0, from}};
    struct udp udp = {.sport = 49152, .dport = UDP_PORT_ROCEV2, .len = (uint16_t)(8 + n)};

    ip.proto = what & IN_TCP ? 6 : 17;
    memcpy(ip.dst, (uint8_t[]){10, 0, 0, (uint8_t)(3 - from)}, 4);
    memset(p, 0, hdr);
    ip4_put(p, &ip);
    if (what & IN_TCP) {
        store_be16(p + 20, from == 1 ? 40000 : 18515);
        store_be16(p + 22, from == 1 ? 18515 : 40000);
        p[32] = 0x50; /* 5 words of header */
        p[33] = 0x18; /* PSH, ACK */
    } else {
        udp_put(p + 20, &udp);
    }
    memcpy(p + hdr, payload, n);
    return hdr + n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pkt p;
    static struct buf b;
    static const struct decode_opts o;
    struct context *c = context_new(0);
    uint64_t number = 0;

    while (c && size >= 2 && size - 2 >= data[1]) {
        uint8_t *bytes = malloc(40 + data[1]);
        struct frame f = {.data = bytes, .number = ++number, .has_ts = true, .linktype = LINK_IPV4};
        f.caplen = f.len = put_frame(bytes, data[0], data + 2, data[1]);
        f.iface = data[0] & OTHER_TAP ? 1 : 0;
        print_everything(&b, &p, &f, &o, c);
        free(bytes);
        size -= 2u + data[1];
        data += 2u + data[1];
    }
    context_free(c);
    return 0;
}
