/* layer 0 (base): numbers and texts as bytes, written and read by the same functions. */
#ifndef RDMATRACE_PACK_H
#define RDMATRACE_PACK_H

#include "bits.h"
#include "buf.h"

#include <stdlib.h>

/* Where to, or from where. */
struct pack {
    struct buf *out; /* NULL: the bytes from p to end are read */
    const uint8_t *p, *end;
    bool bad; /* these ended too early, or make no sense: what is read is 0 from then on */
};

/* `n` bytes at `p`. */
static inline void pack_bytes(struct pack *k, void *p, size_t n)
{
    if (k->out) {
        buf_mem(k->out, p, n);
    } else if (!k->bad && n <= (size_t)(k->end - k->p)) {
        memcpy(p, k->p, n);
        k->p += n;
    } else {
        k->bad = true;
        memset(p, 0, n);
    }
}

/* A number, as eight bytes, little-endian. */
static inline uint64_t pack_number(struct pack *k, uint64_t v)
{
    uint8_t b[8];

    store_le32(b, (uint32_t)v);
    store_le32(b + 4, (uint32_t)(v >> 32));
    pack_bytes(k, b, sizeof b);
    return load_le64(b);
}
#define PACK(k, member) ((member) = (__typeof__(member))pack_number(k, (uint64_t)(member)))

/* A number of entries of at least `each` bytes, at most `most`. */
static inline uint64_t pack_count(struct pack *k, uint64_t n, uint64_t most, size_t each)
{
    n = pack_number(k, n);
    if (!k->out && (n > most || n > (size_t)(k->end - k->p) / each)) {
        k->bad = true;
        n = 0;
    }
    return n;
}

/* A text of at most `most` bytes, which is allocated when it is read; NULL is one of its own. */
static inline void pack_text(struct pack *k, char **s, size_t most)
{
    uint64_t n = pack_number(k, *s ? strlen(*s) + 1 : 0);

    if (k->out) {
        buf_mem(k->out, *s, n ? n - 1 : 0);
        return;
    }
    k->bad |= n > most + 1;
    *s = n && !k->bad ? (char *)calloc(1, n) : NULL;
    if (*s)
        pack_bytes(k, *s, n - 1);
    k->bad |= n && !*s;
}

#endif
