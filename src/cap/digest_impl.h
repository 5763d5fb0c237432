/* layer 1 (io): internal: what the writer and the reader of digests share. */
#ifndef RDMATRACE_CAP_DIGEST_IMPL_H
#define RDMATRACE_CAP_DIGEST_IMPL_H

#include "pack.h"
#include "src/cap/digest.h"

#define DIGEST_MAGIC      "rdmatrace-scan2\n" /* 16 bytes */
#define DIGEST_END_MAGIC  "scan-end"          /* 8 bytes */
#define DIGEST_MAGIC_LEN  16
#define DIGEST_TAIL       16 /* length of the end, and its magic */
#define DIGEST_META       40 /* bytes of struct frame in a string */
#define DIGEST_SECTION    12 /* bytes in front of the records of a section */
#define DIGEST_STRING_MAX (DIGEST_META + FRAME_MAX)
/* Bytes of an encoded block, at most: the strings, one of which may exceed DIGEST_STRINGS, their masks, and the
 * numbers of each record and section. */
#define DIGEST_BLOCK_MAX                                                                                               \
    ((DIGEST_STRINGS + DIGEST_STRING_MAX) / 64 * 73 + DIGEST_FRAMES * 48u + (DIGEST_OWNERS + 1) * 10u + 4096)

/* What a record has of its frame beside its string. */
struct digest_record {
    ns_t ts;
    uint64_t number;
    uint32_t at, n; /* its string: offset among the strings of the block, bytes */
    uint16_t owner;
    uint8_t slot;
};

/* The strings of a slot: the one before it, else the latest of the section. */
struct digest_slots {
    uint32_t at[DIGEST_SLOTS], n[DIGEST_SLOTS];
    uint32_t last_at, last_n; /* of the section; n 0: there is none */
};
/* The string that the next one of `slot` is compared with: its offset, and its bytes, 0: there is none. */
static inline uint32_t digest_before(const struct digest_slots *s, unsigned slot, uint32_t *n)
{
    *n = s->n[slot] ? s->n[slot] : s->last_n;
    return s->n[slot] ? s->at[slot] : s->last_at;
}
static inline void digest_now(struct digest_slots *s, unsigned slot, uint32_t at, uint32_t n)
{
    s->at[slot] = s->last_at = at;
    s->n[slot] = s->last_n = n;
}

/* Whether a section of owner `owner` in file number `file` is one of these owners, or concerns all. */
static inline bool digest_owners_have(const uint64_t *owners, uint32_t owner, uint16_t file)
{
    uint32_t n = (owner + file * (uint32_t)DIGEST_STEP) % DIGEST_OWNERS;

    return owner >= DIGEST_OWNERS || owners[n / 64] >> n % 64 & 1;
}
/* The META bytes at `meta`: from *f and *part, or into them. */
void digest_meta_put(uint8_t *meta, const struct frame *f, const struct digest_part *part);
void digest_meta_get(const uint8_t *meta, struct frame *f, struct digest_part *part);
/* The end, in either direction. */
void digest_pack_end(struct pack *k, struct digest_end *e);

#endif
