/* layer 0 (base): integer helpers, time, byte order. */
#ifndef RDMATRACE_TYPES_H
#define RDMATRACE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Time in ns. A capture counts from the epoch (1970, UTC), a simulation from the start of its run. */
typedef int64_t ns_t;

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)
#define NS_NEVER  INT64_MAX

#define ARRAY_LEN(a)           (sizeof(a) / sizeof((a)[0]))
#define ALWAYS_INLINE          static inline __attribute__((always_inline))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define CACHE_LINE             64 /* bytes */
#define LIKELY(x)              __builtin_expect(!!(x), 1)
#define UNLIKELY(x)            __builtin_expect(!!(x), 0)

/* The smaller and the larger of two numbers. */
static inline uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}
static inline uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Loads of big-endian (network order) integers from unaligned memory. */
ALWAYS_INLINE uint16_t load_be16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap16(v);
}
ALWAYS_INLINE uint32_t load_be24(const uint8_t *p)
{
    return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}
ALWAYS_INLINE uint32_t load_be32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap32(v);
}
ALWAYS_INLINE uint64_t load_be64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap64(v);
}

/* Loads of little-endian integers from unaligned memory. */
ALWAYS_INLINE uint16_t load_le16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}
ALWAYS_INLINE uint32_t load_le32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
ALWAYS_INLINE uint64_t load_le64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Stores of big-endian and little-endian integers to unaligned memory. */
ALWAYS_INLINE void store_be16(uint8_t *p, uint16_t v)
{
    v = __builtin_bswap16(v);
    memcpy(p, &v, sizeof v);
}
ALWAYS_INLINE void store_be24(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 16);
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)v;
}
ALWAYS_INLINE void store_be32(uint8_t *p, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(p, &v, sizeof v);
}
ALWAYS_INLINE void store_be64(uint8_t *p, uint64_t v)
{
    v = __builtin_bswap64(v);
    memcpy(p, &v, sizeof v);
}
ALWAYS_INLINE void store_le32(uint8_t *p, uint32_t v)
{
    memcpy(p, &v, sizeof v);
}

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the loads and stores above assume a little-endian machine"
#endif

#endif
