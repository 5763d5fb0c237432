/* layer 4 (test): fuzzes upper protocols: messages, memory, READs and WRITEs of connections, whose protocol the user
 * states (QP 7 of host 2 and each 32nd QP behind it, one for each of words[]), or the first bytes tell. The input is a
 * sequence of packets, each after six bytes: what it is (FROM_SERVER, OTHER_QP, LOST, and from bit 3 on its place in
 * words[]), its opcode, how much its PSN differs from the one before, how many bytes follow the BTH (two bytes,
 * little-endian), and one that is not used. */
#include "dissect/ip/ip.h"
#include "src/ulp/ulp.h"
#include "tests/fuzz/print.h"

#include <stdlib.h>

enum { FROM_SERVER = 1, OTHER_QP = 2, LOST = 4, PROTOCOL = 3 };
static const char *const words[] = {"nvme", "nfs",   "iser", "srp",  "smbdirect", "smcr",
                                    "rtrs", "rping", "rds",  "lnet", "9p",        "perftest"};
#define HEAD 40 /* IPv4, UDP, BTH */
#define MOST 4200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t put_frame(uint8_t *p, uint8_t what, uint8_t opcode, uint32_t psn, const uint8_t *bytes, uint16_t n)
{
    uint8_t from = what & FROM_SERVER ? 2 : 1;
    uint16_t len = (uint16_t)(HEAD + n + 4);
    struct ip4 ip = {.version = 4, .ihl = 5, .ttl = 64, .proto = 17, .len = len, .src = {10, 0, 0, from}};
    struct udp udp = {.sport = 49152, .dport = UDP_PORT_ROCEV2, .len = (uint16_t)(len - 20)};
    struct bth bth = {.opcode = opcode & 31, .pkey = 0xffff, .psn = psn};

    bth.dqpn = (what & FROM_SERVER ? 9u : 7u) + (what & OTHER_QP ? 16 : 0) + 32u * (what >> PROTOCOL);
    memcpy(ip.dst, (uint8_t[]){10, 0, 0, (uint8_t)(3 - from)}, 4);
    memset(p, 0, len);
    ip4_put(p, &ip);
    udp_put(p + 20, &udp);
    bth_put(p + 28, &bth);
    memcpy(p + HEAD, bytes, n);
    return len;
}

/* Whose requests the PSN counts: those of the sender, or of its peer if the packet is a response. */
static unsigned requester(const uint8_t *data)
{
    unsigned op = data[1] & 31;

    return (data[0] & FROM_SERVER) ^ (op >= 13 && op <= 18);
}

static struct ulp_users users(void)
{
    struct ulp_users u = {.n = ARRAY_LEN(words)};

    for (unsigned i = 0; i < u.n; i++) {
        u.user[i].addr = (struct conn_addr){.b = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2}};
        u.user[i].number = 7 + 32 * i;
        u.user[i].proto = ulp_named(words[i], strlen(words[i]));
    }
    return u;
}

static void take_over(void *user, const struct ulp_command *c)
{
    struct buf *b = user;

    ulp_command_text(b, c);
    ulp_status_text(b, c);
    b->len = 0;
}

static void show(struct buf *b, struct pkt *p, const struct frame *f, struct context *c)
{
    static const struct decode_opts o;

    pkt_decode(p, f, &o);
    context_note(c, p);
    print_as(b, p, PRINT_NDJSON);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pkt p;
    static struct buf b, text;
    struct ulp_users u = users();
    struct context *c = context_new(1 << 20);
    uint32_t psn[256] = {0};
    uint64_t number = 0;

    if (!c || !ulp_of_context(c, &(struct ulp_opts){.users = &u, .user = &text, .over = take_over}))
        abort();
    while (size >= 6) {
        uint16_t n = (uint16_t)(data[3] | data[4] << 8);
        uint32_t *next = &psn[(data[0] & ~(LOST | FROM_SERVER)) | requester(data)];
        uint8_t *bytes;
        struct frame f = {.number = number + 1, .has_ts = true, .linktype = LINK_IPV4, .ts = (ns_t)number * 1000};
        number++;
        if (n > MOST || n > size - 6)
            break;
        *next = (*next + (uint32_t)(int8_t)data[2]) & 0xffffff;
        bytes = malloc(HEAD + n + 4u);
        f.caplen = f.len = put_frame(bytes, data[0], data[1], *next, data + 6, n);
        f.data = bytes;
        if (!(data[0] & LOST))
            show(&b, &p, &f, c);
        free(bytes);
        size -= 6u + n;
        data += 6u + n;
    }
    context_free(c);
    return 0;
}
