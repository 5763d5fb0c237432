/* layer 1 (wire): CRCs of InfiniBand packets; the only file that uses the CRC libraries. */
#include "dissect/ib/icrc.h"

#include <isa-l/crc.h>
#include <libdeflate.h>

#define BTH_LEN       12
#define BTH_FECN_BYTE 4 /* FECN, BECN and six reserved bits, which the ICRC does not cover */
#define UDP_LEN       8
#define GRH_LEN       40
#define LRH_LEN       8
#define MASKED_MAX    (8 + ICRC_IP_MAX + UDP_LEN + BTH_LEN) /* bytes of dummy LRH, IP, UDP and BTH */

/* From this many bytes on ISA-L is faster, due to its wider carry-less multiplication; below it libdeflate is. */
#define LARGE 256

/* ISA-L leaves the upper halves of vector registers in use: from then on each SSE instruction of the compiler's waits
 * for them. This releases them. */
static inline void release_vectors(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx"))
        __asm__ volatile("vzeroupper" ::
                             : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                               "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
#endif
}

/* CRC-32 of IEEE 802.3 over `n` bytes, continuing `crc` (0 at the start). */
static uint32_t icrc_update(uint32_t crc, const void *p, size_t n)
{
    if (n < LARGE)
        return libdeflate_crc32(crc, p, n);
    crc = crc32_gzip_refl(crc, p, n);
    release_vectors();
    return crc;
}

uint32_t crc32_of(const uint8_t *p, size_t n)
{
    return icrc_update(0, p, n);
}

#define POLYNOMIAL UINT32_C(0xedb88320) /* of CRC-32, the lowest power in the highest bit */

/* A CRC is the remainder of a polynomial, so what bytes change of it does not depend on those around them: the register
 * that they lead to from 0. Zeros leave a register of 0 as it is, and four bytes behind them lead to the register that
 * 32 steps take those bytes to: here the steps are taken back. */
void icrc_stand_in(const uint8_t *p, size_t n, uint8_t stand_in[4])
{
    uint32_t reg = ~icrc_update(UINT32_MAX, p, n);

    for (unsigned i = 0; i < 32; i++)
        reg = reg >> 31 ? (reg ^ POLYNOMIAL) << 1 | 1 : reg << 1;
    store_le32(stand_in, reg);
}

/* Set the variant fields of an IPv4 header to ones: TOS, TTL, checksum. */
static void mask_ip4(uint8_t *p)
{
    p[1] = 0xff;
    p[8] = 0xff;
    p[10] = p[11] = 0xff;
}

/* Set the variant fields of an IPv6 header or GRH to ones: traffic class, flow label, hop limit. */
static void mask_ip6(uint8_t *p)
{
    p[0] |= 0x0f;
    p[1] = p[2] = p[3] = 0xff;
    p[7] = 0xff;
}

/* Up to this many bytes after the masked headers are copied too: for a small packet one CRC call is faster than two. */
#define SMALL 512

/* CRC over the first `masked` bytes of `m` and the `n` bytes at `rest`. `m` has room for SMALL more bytes. */
static uint32_t crc_masked(uint8_t *m, size_t masked, const uint8_t *rest, size_t n)
{
    if (n > SMALL)
        return icrc_update(icrc_update(0, m, masked), rest, n);
    memcpy(m + masked, rest, n);
    return icrc_update(0, m, masked + n);
}

uint32_t icrc_rocev2(const uint8_t *ip, const uint8_t *udp, size_t n)
{
    uint8_t m[MASKED_MAX + SMALL];
    size_t ip_len = (size_t)(udp - ip), head = n < UDP_LEN + BTH_LEN ? n : UDP_LEN + BTH_LEN;

    memset(m, 0xff, 8);
    memcpy(m + 8, ip, ip_len + head);
    if (ip[0] >> 4 == 4)
        mask_ip4(m + 8);
    else
        mask_ip6(m + 8);
    m[8 + ip_len + 6] = m[8 + ip_len + 7] = 0xff;
    m[8 + ip_len + UDP_LEN + BTH_FECN_BYTE] = 0xff;
    return crc_masked(m, 8 + ip_len + head, udp + head, n - head);
}

uint32_t icrc_rocev1(const uint8_t *grh, size_t n)
{
    uint8_t m[8 + GRH_LEN + BTH_LEN + SMALL];
    size_t head = n < BTH_LEN ? n : BTH_LEN;

    memset(m, 0xff, 8);
    memcpy(m + 8, grh, GRH_LEN + head);
    mask_ip6(m + 8);
    m[8 + GRH_LEN + BTH_FECN_BYTE] = 0xff;
    return crc_masked(m, 8 + GRH_LEN + head, grh + GRH_LEN + head, n - head);
}

uint32_t icrc_ib(const uint8_t *lrh, size_t n, bool has_grh)
{
    uint8_t m[LRH_LEN + GRH_LEN + BTH_LEN + SMALL];
    size_t bth = LRH_LEN + (has_grh ? GRH_LEN : 0), head = n < bth + BTH_LEN ? n : bth + BTH_LEN;

    if (n < bth)
        return 0;
    memcpy(m, lrh, head);
    if (has_grh) {
        memset(m, 0xff, LRH_LEN);
        mask_ip6(m + LRH_LEN);
    } else {
        m[0] |= 0xf0; /* virtual lane: variant */
    }
    if (head > bth + BTH_FECN_BYTE)
        m[bth + BTH_FECN_BYTE] = 0xff;
    return crc_masked(m, head, lrh + head, n - head);
}

/* CRC-16 with the polynomial 0x100B, reflected (IBTA 7.8.2): the register after one byte, by the byte's value. */
static uint16_t vcrc_table[256];

__attribute__((constructor)) static void vcrc_init(void)
{
    for (unsigned i = 0; i < 256; i++) {
        unsigned v = i;
        for (unsigned k = 0; k < 8; k++)
            v = v & 1 ? v >> 1 ^ 0xd008 : v >> 1;
        vcrc_table[i] = (uint16_t)v;
    }
}

uint16_t vcrc_ib(const uint8_t *p, size_t n)
{
    uint16_t crc = 0xffff;

    for (size_t i = 0; i < n; i++)
        crc = (uint16_t)(crc >> 8 ^ vcrc_table[(crc ^ p[i]) & 0xff]);
    return (uint16_t)~crc;
}

const char *crc_status_str(enum crc_status s)
{
    static const char *const names[] = {
        [CRC_ABSENT] = "", [CRC_UNKNOWN] = "unknown", [CRC_GOOD] = "good", [CRC_BAD] = "bad"};
    return names[s];
}
