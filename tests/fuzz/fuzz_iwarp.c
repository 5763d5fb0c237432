/* layer 4 (test): fuzzes iWARP: TCP segments of one connection, whose sequence numbers and bytes the input chooses. The
 * input is a sequence of segments, each after six bytes: flags (FROM_SERVER, SYN, FIN, CUT, RAW), how far its first
 * byte is from the next one of its end (signed, in steps of 4), how many bytes follow (two bytes, little-endian), how
 * much is acknowledged, and one that is not used. Without RAW the CRC in the last four bytes is made right. */
#include "dissect/ip/ip.h"
#include "dissect/ip/tcp.h"
#include "src/conn/observer.h"
#include "src/iwarp/iwarp.h"
#include "tests/fuzz/print.h"

#include <stdlib.h>

enum { FROM_SERVER = 1, SYN = 2, FIN = 4, CUT = 8, RAW = 16 };
#define HEAD 40
#define MOST 3000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t put_frame(uint8_t *p, uint8_t what, uint32_t seq, uint32_t ack, const uint8_t *bytes, uint16_t n)
{
    uint8_t from = what & FROM_SERVER ? 2 : 1;
    struct ip4 ip = {
        .version = 4, .ihl = 5, .ttl = 64, .proto = 6, .len = (uint16_t)(HEAD + n), .src = {10, 0, 0, from}};
    struct tcp tcp = {.sport = from == 1 ? 50000 : 4420,
                      .dport = from == 1 ? 4420 : 50000,
                      .seq = seq,
                      .ack = ack,
                      .ackf = 1,
                      .syn = (what & SYN) != 0,
                      .fin = (what & FIN) != 0,
                      .doff = 5};

    memcpy(ip.dst, (uint8_t[]){10, 0, 0, (uint8_t)(3 - from)}, 4);
    memset(p, 0, HEAD);
    ip4_put(p, &ip);
    tcp_put(p + 20, &tcp);
    memcpy(p + HEAD, bytes, n);
    if (!(what & RAW) && n >= 20)
        store_be32(p + HEAD + n - 4, mpa_crc(p + HEAD, n - 4u));
    return HEAD + (uint32_t)n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct decode_opts opts = {0};
    static struct buf text;
    static struct pkt p;
    struct context *c = context_new(1 << 20);
    uint32_t next[2] = {1000, 2000};
    uint64_t number = 0;

    if (!c)
        abort();
    while (size >= 6) {
        unsigned from = data[0] & FROM_SERVER;
        uint16_t n = (uint16_t)(load_le16(data + 2) % MOST);
        uint32_t seq = next[from] + (uint32_t)((int8_t)data[1] * 4);
        struct frame f = {.number = number + 1, .has_ts = true, .linktype = LINK_IPV4, .ts = (ns_t)number * 1000};
        uint8_t *bytes;
        number++;
        if (n > size - 6)
            n = (uint16_t)(size - 6);
        bytes = malloc(HEAD + n + 1u);
        f.len = f.caplen = put_frame(bytes, data[0], seq, next[!from] - data[4], data + 6, n);
        if (data[0] & CUT)
            f.caplen = HEAD + n / 2u;
        f.data = bytes;
        print_everything(&text, &p, &f, &opts, c);
        free(bytes);
        next[from] = seq + n + ((data[0] & SYN) != 0);
        size -= 6u + n;
        data += 6u + n;
    }
    iwarp_finish(observer_iwarp(context_observer(c)), NULL);
    context_free(c);
    return 0;
}
