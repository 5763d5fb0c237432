/* layer 3 (show): addresses and names replaced by others: permutations of their classes, by a keyed hash. */
#include "src/show/pseudonym.h"

#include "bits.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>

_Static_assert(PSEUDONYM_KEY == crypto_shorthash_KEYBYTES, "the key of SipHash");

#define ROUNDS 10 /* of the Feistel network; four suffice for a large block, small ones want more */

/* What is permuted: the same number under two of these becomes different numbers. */
enum kind {
    KIND_MAC = 1,
    KIND_GROUP4,
    KIND_GROUP6,
    KIND_IP4,
    KIND_PREFIX,
    KIND_EUI64,
    KIND_NAME,
    KIND_KEY,
    KIND_STAG,
    KIND_QKEY,
    KIND_MKEY
};

int pseudonyms_init(struct pseudonyms *s, const char *key)
{
    if (sodium_init() < 0)
        return -EIO;
    if (key)
        crypto_generichash(s->key, sizeof s->key, (const uint8_t *)key, strlen(key), NULL, 0);
    else
        randombytes_buf(s->key, sizeof s->key);
    return 0;
}

static uint64_t hash(const struct pseudonyms *s, const void *p, size_t n)
{
    uint8_t h[crypto_shorthash_BYTES];

    crypto_shorthash(h, p, n, s->key);
    return load_be64(h);
}

/* Permute the numbers of `bits` bits (2 to 64): an alternating Feistel network over their two halves. `class` is what
 * is kept of the address. */
static uint64_t permute(const struct pseudonyms *s, enum kind kind, uint32_t class, unsigned bits, uint64_t v)
{
    unsigned low = bits / 2;
    uint64_t low_mask = (UINT64_C(1) << low) - 1, high_mask = (UINT64_C(1) << (bits - low)) - 1;
    uint64_t right = v & low_mask, left = v >> low & high_mask;
    uint8_t m[16] = {(uint8_t)kind, (uint8_t)bits};

    bits_put(m, 32, 32, class);
    for (uint8_t i = 0; i < ROUNDS; i++) {
        m[2] = i;
        bits_put(m, 64, 64, i & 1 ? left : right);
        if (i & 1)
            right ^= hash(s, m, sizeof m) & low_mask;
        else
            left ^= hash(s, m, sizeof m) & high_mask;
    }
    return left << low | right;
}

/* The classes of IPv4 addresses: `keep` leading bits are kept, 32: the whole address. The first row that fits. */
static const struct class4 {
    uint32_t prefix;
    uint8_t len, keep;
} classes4[] = {
    {0x00000000, 32, 32}, {0xffffffff, 32, 32}, {0x7f000001, 32, 32}, /* unspecified, broadcast, localhost */
    {0xe0000000, 24, 32}, {0xe0000000, 4, 9},                         /* groups of a link; other groups, as in a MAC */
    {0x7f000000, 8, 8},   {0xa9fe0000, 16, 16}, {0x0a000000, 8, 8},   /* loopback, link-local, private */
    {0xac100000, 12, 12}, {0xc0a80000, 16, 16}, {0, 0, 0},
};

static const struct class4 *class4_of(uint32_t v)
{
    const struct class4 *c = classes4;

    while (c->len && (v ^ c->prefix) >> (32 - c->len))
        c++;
    return c;
}

/* An IPv4 group: its low 23 bits, which its MAC address has, too. Below 0x100 they are those of the groups of a link.
 */
static uint32_t group4(const struct pseudonyms *s, uint32_t v)
{
    const uint32_t mask = 0x7fffff;
    uint32_t low = v & mask;

    if (low >= 0x100)
        do
            low = (uint32_t)permute(s, KIND_GROUP4, 0, 23, low);
        while (low < 0x100);
    return (v & ~mask) | low;
}

static uint32_t ip4(const struct pseudonyms *s, uint32_t v)
{
    const struct class4 *c = class4_of(v);

    if (c->keep == 32)
        return v;
    if (c->keep == 9)
        return group4(s, v);
    do /* until the address is of the same class: only the last class has others within its range */
        v = (uint32_t)((c->keep ? v >> (32 - c->keep) << (32 - c->keep) : 0) |
                       permute(s, KIND_IP4, c->prefix, 32 - c->keep, v & (UINT32_MAX >> c->keep)));
    while (class4_of(v) != c);
    return v;
}

void pseudonym_ip4(const struct pseudonyms *s, uint8_t *to)
{
    bits_put(to, 0, 32, ip4(s, load_be32(to)));
}

/* The low 32 bits of an IPv6 group, which its MAC address has, too; they may hold an IPv4 group. */
static uint32_t group6(const struct pseudonyms *s, uint32_t v)
{
    if (v < 0x100)
        return v;
    if (v >> 28 == 0xe)
        return ip4(s, v);
    do
        v = (uint32_t)permute(s, KIND_GROUP6, 0, 32, v);
    while (v >> 28 == 0xe || v < 0x100);
    return v;
}

void pseudonym_mac(const struct pseudonyms *s, uint8_t *to)
{
    uint64_t v = bits_get(to, 0, 48), kept = v & UINT64_C(0x030000000000), rest;

    if (v == 0 || v == UINT64_C(0xffffffffffff) || v >> 24 == 0x0180c2)
        return;
    if (v >> 23 == 0x01005e << 1) {
        bits_put(to, 24, 24, group4(s, (uint32_t)v & 0x7fffff));
    } else if (v >> 32 == 0x3333) {
        bits_put(to, 16, 32, group6(s, (uint32_t)v));
    } else {
        rest = permute(s, KIND_MAC, (uint32_t)(kept >> 40), 46, (v >> 42) << 40 | (v & UINT64_C(0xffffffffff)));
        bits_put(to, 0, 48, (rest >> 40) << 42 | kept | (rest & UINT64_C(0xffffffffff)));
    }
}

/* GUIDs that are made of a MAC address: the two bytes in their middle, and whether the bit of local administration is
 * inverted (RFC 4291; the GUIDs of ports and of adapters). */
static const struct mac_guid {
    uint16_t middle;
    uint8_t invert;
} mac_guids[] = {{0xfffe, 2}, {0x0300, 0}, {0x0003, 0}};

void pseudonym_eui64(const struct pseudonyms *s, uint8_t *to)
{
    uint64_t v = load_be64(to);

    for (unsigned i = 0; i < ARRAY_LEN(mac_guids); i++)
        if (load_be16(to + 3) == mac_guids[i].middle) {
            uint8_t mac[6] = {to[0] ^ mac_guids[i].invert, to[1], to[2], to[5], to[6], to[7]};
            pseudonym_mac(s, mac);
            mac[0] ^= mac_guids[i].invert;
            memcpy(to, mac, 3);
            memcpy(to + 5, mac + 3, 3);
            return;
        }
    if (v)
        bits_put(to, 0, 64, permute(s, KIND_EUI64, 0, 64, v));
}

void pseudonym_prefix(const struct pseudonyms *s, uint8_t *to)
{
    uint64_t v = load_be64(to);
    /* Link-local: kept. Unique local: 7 bits are kept, global: 3, others: 16. */
    unsigned keep = v >> 57 == 0xfc >> 1 ? 7 : v >> 61 == 1 ? 3 : 16;

    if (v == 0 || v >> 54 == 0xfe80 >> 6)
        return;
    bits_put(to, keep, 64 - keep,
             permute(s, KIND_PREFIX, (uint32_t)(v >> (64 - keep)), 64 - keep, v & (UINT64_MAX >> keep)));
}

/* A group: its flags and scope are kept, and the forms of its middle that name no host: zeros, the IPv4 address, the
 * groups of IPoIB. */
static void group_ip6(const struct pseudonyms *s, uint8_t *to)
{
    uint64_t middle = bits_get(to, 16, 64);
    unsigned sign = (unsigned)(middle >> 48);

    if (middle && sign != 0x401b && sign != 0x601b)
        bits_put(to, 16, 64, permute(s, KIND_GROUP6, 1, 64, middle));
    bits_put(to, 96, 32, group6(s, load_be32(to + 12)));
}

void pseudonym_ip6(const struct pseudonyms *s, uint8_t *to)
{
    uint64_t high = load_be64(to);

    if (to[0] == 0xff) {
        group_ip6(s, to);
    } else if (high == 0 && (load_be32(to + 8) == 0xffff || load_be32(to + 8) == 0)) {
        if (load_be32(to + 8) || load_be32(to + 12) > 1)
            pseudonym_ip4(s, to + 12);
    } else {
        pseudonym_prefix(s, to);
        pseudonym_eui64(s, to + 8);
    }
}

void pseudonym_key(const struct pseudonyms *s, uint8_t *to)
{
    uint8_t kind = KIND_KEY;
    uint32_t v = load_be32(to), by = (uint32_t)hash(s, &kind, 1) | 1;

    if (v)
        store_be32(to, v + by ? v + by : by);
}

uint8_t pseudonym_stag_byte(const struct pseudonyms *s, const uint8_t *before, unsigned i, uint8_t v)
{
    uint32_t class = i << 24; /* the bytes before, and how many they are */

    for (unsigned k = 0; k < i; k++)
        class |= (uint32_t)before[k] << 8 * k;
    return (uint8_t)permute(s, KIND_STAG, class, 8, v);
}

/* Q_Keys that protocols prescribe. */
static bool is_known_qkey(uint32_t v)
{
    return v == 0 || v == UINT32_C(0x80010000) || v == UINT32_C(0x01234567);
}

void pseudonym_qkey(const struct pseudonyms *s, uint8_t *to)
{
    uint32_t v = load_be32(to), privileged = v >> 31 << 31;

    if (is_known_qkey(v))
        return;
    do
        v = privileged | (uint32_t)permute(s, KIND_QKEY, privileged, 31, v & ~privileged);
    while (is_known_qkey(v));
    store_be32(to, v);
}

void pseudonym_mkey(const struct pseudonyms *s, uint8_t *to)
{
    uint64_t v = load_be64(to);

    if (v == 0)
        return;
    do
        v = permute(s, KIND_MKEY, 0, 64, v);
    while (v == 0);
    bits_put(to, 0, 64, v);
}

void pseudonym_name(const struct pseudonyms *s, uint8_t *to, size_t len)
{
    char name[16];
    size_t n = strnlen((const char *)to, len);
    uint8_t kind = KIND_NAME;

    if (!n)
        return;
    snprintf(name, sizeof name, "node-%08x", (unsigned)(hash(s, to, n) ^ hash(s, &kind, 1)) & UINT32_MAX);
    memset(to, 0, len);
    memcpy(to, name, len < 13 ? len : 13);
}
