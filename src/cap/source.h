/* layer 1 (io): the bytes of a file in order: a buffer that read() or a decompressor fills. */
#ifndef RDMATRACE_SOURCE_H
#define RDMATRACE_SOURCE_H

#include "fetch.h"
#include "src/cap/cap.h"
#include "types.h"

#include <sys/types.h>

/* Bytes that source_peek() can return, at most: the largest record or block that is parsed. */
#define SOURCE_PEEK_MAX (UINT32_C(2) << 20)

struct unpacker;

/* A reader examines bytes with source_peek() and consumes them with source_skip(). */
struct source {
    const uint8_t *p;                 /* next byte to read */
    const uint8_t *end;               /* end of the bytes at hand */
    uint64_t base;                    /* offset of buf[0] in the uncompressed file */
    int err;                          /* negative errno once reading failed, see `why` */
    char why[120];                    /* the failure in words */
    int fd;                           /* of the file */
    bool own_fd;                      /* close fd at the end */
    enum cap_compression compression; /* as found by content */
    /* bytes of a regular file from where reading began (it may have grown since); 0: unknown */
    uint64_t size;
    uint64_t raw;               /* bytes read from fd */
    bool regular;               /* a regular file, not a pipe */
    uint64_t start;             /* of a regular file: offset at which reading began */
    uint64_t claimed;           /* likewise: where the latest claim ends, counted as `raw` */
    struct piece *pieces;       /* by thread: what it has claimed; NULL: nothing was */
    uint8_t *buf;               /* allocated buffer, of `chunks` if that is set */
    size_t buf_cap;             /* its size */
    size_t at_a_time;           /* its size unless a record is larger */
    size_t step;                /* bytes read at a time, at most, source_step(); 0: as many as it has room for */
    struct chunks *chunks;      /* as in struct cap_opts */
    bool has_frames;            /* data of frames are in `buf` */
    bool eof;                   /* no more bytes follow */
    struct unpacker *unpacker;  /* decompressor, NULL for plain files */
    void (*moving)(void *user); /* as in struct cap_opts */
    void *user;
    bool (*idle)(void *idle_user); /* as in struct cap_opts; NULL of a regular file */
    int idle_ms;
    void *idle_user;
};

/* Open `path` ("-": standard input). 0 or a negative errno with s->why set; source_close() is allowed in both cases. */
int source_open(struct source *s, const char *path, const struct cap_opts *opts);
void source_close(struct source *s);

/* Slow part of source_peek(): reads more bytes. */
const uint8_t *source_fill(struct source *s, size_t n);

/* With `chunks`: several threads take records by turns, and each reads the bytes for its next turn meanwhile. By the
 * thread whose turn it is: claim what follows all that was claimed, for its next turn; `others` have a turn before.
 * Not if that is impossible, as of a pipe, or there is no memory: then bytes are read when they are needed. */
void source_claim(struct source *s, unsigned others);
/* Whether the file can be read so, as far as it is known. */
bool source_claims(const struct source *s);
/* Read up to `n` bytes at a time from now on; fewer if there is no memory for so many in front of which the beginning
 * of a record has room. */
void source_step(struct source *s, size_t n);
/* By thread number `thread` (chunks_begin()), between its turns: read what it has claimed. */
void source_fetch(struct source *s, unsigned thread);

/* The next `n` bytes (at most SOURCE_PEEK_MAX), contiguous, valid until the next call of any function here; NULL if the
 * input ends or fails before. Then source_left() bytes are left, and s->err is set after a failure. */
static inline const uint8_t *source_peek(struct source *s, size_t n)
{
    return LIKELY((size_t)(s->end - s->p) >= n) ? s->p : source_fill(s, n);
}

/* Bytes in the buffer; after a failed source_peek(), all that the file still has. */
static inline size_t source_left(const struct source *s)
{
    return (size_t)(s->end - s->p);
}

/* Consume `n` bytes that were peeked at. */
static inline void source_skip(struct source *s, size_t n)
{
    s->p += n;
}

/* Consume a record of `n` bytes, and fetch the header of the next one into the caches, and the end of that one, if it
 * is as long. Of several files one record each is read by turns: the processor does not fetch the next one by itself.
 */
static inline void source_took(struct source *s, size_t n)
{
    s->p += n;
    if (LIKELY(source_left(s) > n)) {
        fetch(s->p, 2 * CACHE_LINE);
        fetch(s->p + n, CACHE_LINE);
    }
}

/* Consume `n` bytes that need not be in the buffer. Returns their number, less than `n` only if the input ends. */
uint64_t source_skip_far(struct source *s, uint64_t n);

/* Offset of the next byte in the uncompressed file. */
static inline uint64_t source_offset(const struct source *s)
{
    return s->base + (uint64_t)(s->p - s->buf);
}

/* Bytes of the (packed) file consumed so far. */
uint64_t source_consumed(const struct source *s);

/* Decompressors (unpack.c). Start with the `n` bytes already read from fd, at most s->buf_cap; 0 or a negative
 * errno. */
int unpack_start(struct source *s, const uint8_t *first, size_t n);
/* Write up to `cap` uncompressed bytes to `out`. Returns their number, 0 at the end, negative errno with s->why set. */
ssize_t unpack_read(struct source *s, uint8_t *out, size_t cap);
void unpack_stop(struct source *s);
/* read(), of a regular file pread(), that is repeated after a signal. Negative errno with s->why set, also if the file
 * ends before its size at opening. */
ssize_t source_read_fd(struct source *s, void *p, size_t n);

#endif
