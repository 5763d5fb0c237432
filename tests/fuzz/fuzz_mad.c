/* layer 4 (test): fuzzes the decoding of management datagrams: the input is the payload of a UD packet to QP 1. */
#include "dissect/ip/ip.h"
#include "tests/fuzz/print.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* IPv4, UDP, BTH and DETH before a MAD of `n` bytes; 48 bytes. */
static void put_headers(uint8_t *p, uint32_t n)
{
    struct ip4 ip = {.version = 4, .ihl = 5, .ttl = 64, .proto = 17, .len = (uint16_t)(52 + n)};
    struct udp udp = {.sport = 49152, .dport = UDP_PORT_ROCEV2, .len = (uint16_t)(32 + n)};
    struct bth bth = {.opcode = OPCODE(SVC_UD, OP_SEND_ONLY), .pkey = 0xffff, .dqpn = 1};
    struct deth deth = {.qkey = 0x80010000, .srcqp = 1};

    ip4_put(p, &ip);
    udp_put(p + 20, &udp);
    bth_put(p + 28, &bth);
    deth_put(p + 40, &deth);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pkt p;
    static struct buf b;
    static const struct decode_opts o;

    if (size > 4096)
        return 0;
    uint32_t n = (uint32_t)size, len = 48 + n + 4;
    uint8_t *frame = calloc(1, len);
    put_headers(frame, n);
    if (n)
        memcpy(frame + 48, data, n);
    struct frame f = {.data = frame, .caplen = len, .len = len, .number = 1, .has_ts = true, .linktype = LINK_RAW};
    print_everything(&b, &p, &f, &o, NULL);
    free(frame);
    return 0;
}
