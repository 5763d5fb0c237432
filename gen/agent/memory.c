/* layer 3 (agent): patterns and checksums of memory, and the commands of memory. */
#include "gen/agent/memory.h"
#include "bits.h"
#include "folded.h"
#include "gen/agent/agent.h"

#include <errno.h>
#include <isa-l/crc.h>
#include <sodium.h>

#define PIECE 4096 /* bytes that are compared at a time; a multiple of 8 */

/* `len` bytes of a pattern from byte `at`, a multiple of 8, on. */
static void pattern_at(uint8_t *p, uint64_t at, uint64_t len, enum memory_pattern pattern, uint64_t arg)
{
    struct prng r = {.state = arg + at / 8 * UINT64_C(0x9e3779b97f4a7c15)};
    uint64_t word = 0;

    if (pattern == MEMORY_BYTE) {
        memset(p, (int)(arg & 0xff), len);
        return;
    }
    for (uint64_t i = 0; i < len; i++, word >>= 8) {
        if (pattern == MEMORY_PRNG && i % 8 == 0)
            word = prng_next(&r);
        p[i] = (uint8_t)(pattern == MEMORY_PRNG ? word : at + i + arg);
    }
}

void memory_fill(uint8_t *p, uint64_t len, enum memory_pattern pattern, uint64_t arg)
{
    pattern_at(p, 0, len, pattern, arg);
}

uint64_t memory_differs(const uint8_t *p, uint64_t len, enum memory_pattern pattern, uint64_t arg)
{
    uint8_t want[PIECE];

    for (uint64_t at = 0; at < len; at += PIECE) {
        uint64_t n = len - at < PIECE ? len - at : PIECE;
        pattern_at(want, at, n, pattern, arg);
        if (memcmp(p + at, want, n) != 0)
            for (uint64_t i = 0; i < n; i++)
                if (p[at + i] != want[i])
                    return at + i;
    }
    return len;
}

uint32_t memory_crc32c(const uint8_t *p, uint64_t len)
{
    uint32_t crc = UINT32_MAX;

    while (len) {
        int n = len < (1 << 30) ? (int)len : 1 << 30;
        crc = crc32_iscsi((unsigned char *)(uintptr_t)p, n, crc);
        p += n;
        len -= (uint64_t)n;
    }
    return ~crc;
}

void memory_sha256(const uint8_t *p, uint64_t len, uint8_t hash[32])
{
    crypto_hash_sha256(hash, p, len);
}

/* --- Commands --------------------------------------------------------------------------------- */

static const struct line_name patterns[] = {
    {"byte", MEMORY_BYTE}, {"seq", MEMORY_SEQ}, {"prng", MEMORY_PRNG}, {NULL, 0}};

/* The piece of memory that mem=, off= and len= name; without len=: all from off= on. */
static bool piece(struct agent *a, struct request *r, uint8_t **p, uint64_t *len)
{
    struct object *o;
    uint64_t off = 0;

    if (!agent_object(a, r, "mem", OBJECT_MEM, &o) || !request_u64(r, "off", 0, o->len, &off))
        return false;
    *len = o->len - off;
    *p = o->bytes + off;
    return request_u64(r, "len", 0, *len, len);
}

static bool pattern(struct request *r, enum memory_pattern *p, uint64_t *arg)
{
    uint64_t v = MEMORY_BYTE;

    if (!request_name(r, "pattern", patterns, &v) || !request_u64(r, "arg", 0, UINT64_MAX, arg))
        return false;
    if (v > MEMORY_PRNG)
        return request_wrong(r, "pattern=: expected byte, seq or prng");
    *p = (enum memory_pattern)v;
    return true;
}

static int cmd_mem(struct agent *a, struct request *r)
{
    struct object *o;
    uint64_t len = 0, part = 0;
    bool dmabuf = false;
    int e;

    if (!request_u64(r, "len", 1, UINT64_MAX >> 1, &len) || !request_bool(r, "dmabuf", &dmabuf) ||
        !request_u64(r, "repeat", FOLDED_PAGE, UINT64_MAX >> 1, &part))
        return -EINVAL;
    o = object_new(&a->objects, OBJECT_MEM);
    if (!o)
        return -ENOMEM;
    e = agent_made(a, o, object_mem_map(&a->objects, o, len, part, dmabuf));
    if (e == 0)
        buf_printf(&a->reply, " addr=0x%llx len=%llu", (unsigned long long)(uintptr_t)o->bytes,
                   (unsigned long long)o->len);
    return e;
}

static int cmd_fill(struct agent *a, struct request *r)
{
    enum memory_pattern how = MEMORY_BYTE;
    uint64_t len, arg = 0;
    uint8_t *p;

    if (!piece(a, r, &p, &len) || !pattern(r, &how, &arg))
        return -EINVAL;
    memory_fill(p, len, how, arg);
    return 0;
}

static int cmd_compare(struct agent *a, struct request *r)
{
    enum memory_pattern how = MEMORY_BYTE;
    uint64_t len, arg = 0, at;
    uint8_t *p;

    if (!piece(a, r, &p, &len) || !pattern(r, &how, &arg))
        return -EINVAL;
    at = memory_differs(p, len, how, arg);
    buf_printf(&a->reply, " same=%d", at == len);
    if (at < len)
        buf_printf(&a->reply, " at=%llu byte=0x%02x", (unsigned long long)at, p[at]);
    return 0;
}

static int cmd_hash(struct agent *a, struct request *r)
{
    uint8_t *p, sha[32];
    uint64_t len;

    if (!piece(a, r, &p, &len))
        return -EINVAL;
    memory_sha256(p, len, sha);
    buf_printf(&a->reply, " crc32c=0x%08x sha256=", memory_crc32c(p, len));
    buf_bytes(&a->reply, sha, sizeof sha, 0);
    return 0;
}

static int cmd_read(struct agent *a, struct request *r)
{
    uint64_t len;
    uint8_t *p;

    if (!piece(a, r, &p, &len))
        return -EINVAL;
    if (len > LINE_DATA)
        return request_wrong(r, "more than %d bytes: read it in pieces", LINE_DATA), -EMSGSIZE;
    a->bulk = p;
    a->n_bulk = len;
    return 0;
}

static int cmd_write(struct agent *a, struct request *r)
{
    uint64_t len;
    uint8_t *p;

    if (!piece(a, r, &p, &len))
        return -EINVAL;
    if (r->data_len > len)
        return request_wrong(r, "more bytes than the memory has there"), -EINVAL;
    if (r->data_len)
        memcpy(p, r->data, r->data_len);
    return 0;
}

struct word {
    const uint8_t *at;
    uint64_t size, mask, value, seen;
};

/* As the host stores it: little endian here. */
static bool word_is(struct agent *a, void *arg)
{
    struct word *w = arg;

    (void)a;
    w->seen = 0;
    for (unsigned i = 0; i < w->size; i++)
        w->seen |= (uint64_t) * (const volatile uint8_t *)(w->at + i) << 8 * i;
    return (w->seen & w->mask) == w->value;
}

static int cmd_wait_mem(struct agent *a, struct request *r)
{
    struct word w = {.size = 1, .mask = UINT64_MAX};
    uint64_t ms = 1000, len;
    uint8_t *p;
    int e;

    if (!piece(a, r, &p, &len) || !request_u64(r, "size", 1, 8, &w.size) || !request_u64(r, "ms", 0, 600000, &ms) ||
        !request_u64(r, "value", 0, UINT64_MAX, &w.value) || !request_u64(r, "mask", 0, UINT64_MAX, &w.mask))
        return -EINVAL;
    if (w.size > len)
        return request_wrong(r, "the memory ends before the word"), -EINVAL;
    w.at = p;
    e = agent_wait(a, ms, word_is, &w);
    buf_printf(&a->reply, " value=0x%llx t=%lld", (unsigned long long)w.seen, (long long)agent_time(a));
    return e;
}

#define WHERE "mem=MEM [off=N] [len=N]"

const struct agent_command agent_memory[] = {
    {"mem", "len=BYTES [dmabuf=0|1] [repeat=BYTES]", "allocate memory, zero, in whole pages, or of such that repeat",
     cmd_mem, 0},
    {"mem fill", WHERE " pattern=byte|seq|prng [arg=N]", "fill it", cmd_fill, 0},
    {"mem compare", WHERE " pattern=byte|seq|prng [arg=N]", "whether it holds the pattern", cmd_compare, 0},
    {"mem hash", WHERE, "its CRC-32C and SHA-256", cmd_hash, 0},
    {"mem read", WHERE, "its bytes, behind the answer", cmd_read, 0},
    {"mem write", "mem=MEM [off=N] data=BYTES", "store the bytes behind the line", cmd_write, 0},
    {"mem wait", "mem=MEM [off=N] [size=BYTES] [mask=N] value=N [ms=N]", "wait until a little-endian word has a value",
     cmd_wait_mem, 0},
    {NULL, NULL, NULL, NULL, 0},
};
