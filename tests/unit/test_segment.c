/* layer 3 tests: TCP segments that an offload has joined, taken apart. */
#include "gen/net/tso_split.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define DATA 5000
#define MTU  1500

static uint8_t joined[200 + DATA], out[200 + DATA];
static uint32_t headers, arrived, longest;
static unsigned segments;
static bool v4;

/* The ones' complement sum of a range, which with a right checksum in it is 0xffff. */
static uint32_t sum(uint32_t start, const uint8_t *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        start += (uint32_t)p[i] << (i & 1 ? 0 : 8);
    while (start >> 16)
        start = (start & 0xffff) + (start >> 16);
    return start;
}

/* A frame with `tags` VLAN tags and DATA bytes of data. */
static uint32_t make(bool ip4, unsigned tags, uint8_t flags)
{
    uint32_t ip = 14 + 4 * tags, tcp = ip + (ip4 ? 20 : 40);

    memset(joined, 0, sizeof joined);
    for (unsigned i = 0; i < tags; i++)
        store_be16(joined + 12 + 4 * i, i + 1 < tags ? 0x88a8 : 0x8100);
    store_be16(joined + ip - 2, ip4 ? 0x0800 : 0x86dd);
    headers = tcp + 32;
    if (ip4) {
        joined[ip] = 0x45;
        store_be16(joined + ip + 2, (uint16_t)(headers + DATA - ip));
        store_be16(joined + ip + 4, 0xffff);
        joined[ip + 9] = 6;
    } else {
        joined[ip] = 0x60;
        store_be16(joined + ip + 4, (uint16_t)(headers + DATA - tcp));
        joined[ip + 6] = 6;
    }
    store_be32(joined + tcp + 4, 0xfffffff0); /* the sequence number wraps */
    joined[tcp + 12] = 8 << 4;
    joined[tcp + 13] = flags;
    for (uint32_t i = 0; i < DATA; i++)
        joined[headers + i] = (uint8_t)(i * 7 + i / 256);
    v4 = ip4;
    arrived = longest = segments = 0;
    return headers + DATA;
}

static void each(void *user, const uint8_t *p, uint32_t len)
{
    uint32_t tcp = headers - 32, ip = tcp - (v4 ? 20 : 40), n = len - headers;
    bool last = arrived + n == DATA;

    (void)user;
    memcpy(out + arrived, p + headers, n);
    cr_assert_eq(load_be32(p + tcp + 4), (uint32_t)(0xfffffff0 + arrived));
    cr_assert_eq(p[tcp + 13], (last ? 0x19 : 0x10) | (segments ? 0 : 0x80));
    if (v4) {
        cr_assert_eq(load_be16(p + ip + 2), len - ip);
        cr_assert_eq(load_be16(p + ip + 4), (uint16_t)(0xffff + segments));
        cr_assert_eq(sum(0, p + ip, 20), 0xffff);
    } else {
        cr_assert_eq(load_be16(p + ip + 4), len - tcp);
    }
    cr_assert_eq(sum(6 + len - tcp, p + ip + (v4 ? 12 : 8), len - ip - (v4 ? 12 : 8)), 0xffff, "checksum of TCP");
    arrived += n;
    longest = len - ip > longest ? len - ip : longest;
    segments++;
}

Test(segment, joined_segments_are_cut_to_the_mtu)
{
    for (unsigned k = 0; k < 6; k++) {
        uint32_t len = make(k & 1, k / 2, 0x99); /* CWR, ACK, PSH, FIN */
        cr_assert(segment_needed(joined, len, MTU));
        cr_assert_eq(segment_tcp(joined, len, MTU, each, NULL), 4);
        cr_assert_eq(arrived, DATA);
        cr_assert_eq(longest, MTU);
        cr_assert_arr_eq(out, joined + headers, DATA);
    }
}

Test(segment, what_fits_needs_no_cut)
{
    uint32_t len = make(true, 0, 0x10), ip = headers + DATA - 14;

    cr_assert(segment_needed(joined, len, ip - 1));
    cr_assert_not(segment_needed(joined, len, ip));
    cr_assert_not(segment_needed(joined, 30, 10));
    store_be16(joined + 12, 0x0806);
    cr_assert_not(segment_needed(joined, len, 10));
}

Test(segment, what_cannot_be_cut_is_refused)
{
    uint32_t len = make(true, 0, 0x10);

    cr_assert_eq(segment_tcp(joined, len - 1, MTU, each, NULL), 0, "not all there");
    cr_assert_eq(segment_tcp(joined, len, headers - 14, each, NULL), 0, "no room for data");
    joined[14 + 9] = 17;
    cr_assert_eq(segment_tcp(joined, len, MTU, each, NULL), 0, "UDP");
    make(true, 0, 0x12);
    cr_assert_eq(segment_tcp(joined, len, MTU, each, NULL), 0, "SYN");
    make(true, 0, 0x10);
    joined[14 + 6] = 0x20;
    cr_assert_eq(segment_tcp(joined, len, MTU, each, NULL), 0, "a fragment");
    cr_assert_eq(segments, 0);
}

static void count(void *user, const uint8_t *p, uint32_t len)
{
    *(uint64_t *)user += len + p[len - 1] % 2;
}

Test(segment, random_headers_do_no_harm)
{
    uint64_t n = 0;

    srand(4);
    for (unsigned i = 0; i < 20000; i++) {
        uint32_t len = make(i & 1, i % 3, 0x10);
        uint8_t *exact;
        for (unsigned k = 0; k < 3; k++)
            joined[12 + (unsigned)rand() % headers] = (uint8_t)rand();
        len = i % 4 ? len : 14 + (uint32_t)rand() % 100;
        exact = malloc(len); /* so that a read behind its end is seen */
        memcpy(exact, joined, len);
        if (segment_needed(exact, len, MTU))
            segment_tcp(exact, len, i % 5 ? MTU : (uint32_t)rand() % 200, count, &n);
        free(exact);
    }
    cr_assert(n > 0);
}
