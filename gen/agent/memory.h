/* layer 3 (agent): patterns and checksums of memory. */
#ifndef RDMATRACE_GEN_AGENT_MEMORY_H
#define RDMATRACE_GEN_AGENT_MEMORY_H

#include "types.h"

/* What memory can be filled with; byte number n depends on n and `arg` only. */
enum memory_pattern {
    MEMORY_BYTE, /* `arg` */
    MEMORY_SEQ,  /* n + `arg` */
    MEMORY_PRNG, /* byte n % 8, from the lowest, of the number n / 8 of prng.h with seed `arg` */
};

/* Fill `len` bytes. */
void memory_fill(uint8_t *p, uint64_t len, enum memory_pattern pattern, uint64_t arg);
/* The first byte that differs from the pattern; `len`: none. */
uint64_t memory_differs(const uint8_t *p, uint64_t len, enum memory_pattern pattern, uint64_t arg);
/* CRC-32C (Castagnoli, RFC 3720). */
uint32_t memory_crc32c(const uint8_t *p, uint64_t len);
/* SHA-256. */
void memory_sha256(const uint8_t *p, uint64_t len, uint8_t hash[32]);

#endif
