/* layer 1 (io): the bytes of a file in order: a buffer that read() or a decompressor fills. */
#include "src/cap/source.h"

#include "apart.h"
#include "src/cap/chunks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes in front of what a thread has claimed: for the beginning of a record that ends there. */
#define HEAD 65536

/* What a thread has claimed. */
struct piece {
    _Alignas(64) uint8_t *bytes; /* its memory, from HEAD on; NULL: it has claimed nothing */
    size_t size, want;           /* bytes of memory; bytes that are claimed */
    uint64_t at;                 /* its first byte, counted as source.raw */
    size_t got;                  /* bytes that were read */
};

/* Bytes that identify the compression of a file. */
#define MAGIC_SIZE 4

/* The end of a regular file: an error if it was larger when it was opened. 0 or a negative errno. */
static int source_ended(struct source *s)
{
    struct stat st;

    if (s->raw >= s->size || fstat(s->fd, &st) < 0)
        return 0;
    snprintf(s->why, sizeof s->why, "the file shrank to %llu bytes while it was read", (unsigned long long)st.st_size);
    return -EIO;
}

/* Wait for bytes of a pipe. False: the reader stops. */
static bool source_wait(struct source *s)
{
    struct pollfd p = {.fd = s->fd, .events = POLLIN};

    while (s->idle && poll(&p, 1, s->idle_ms) <= 0)
        if (!s->idle(s->idle_user))
            return false;
    return true;
}

/* read(); of a regular file the bytes from `at` on, counted as s->raw. */
static ssize_t read_at(const struct source *s, void *p, size_t n, uint64_t at)
{
    ssize_t got;

    do
        got = s->regular ? pread(s->fd, p, n, (off_t)(s->start + at)) : read(s->fd, p, n);
    while (got < 0 && errno == EINTR);
    return got;
}

static void count_read(struct source *s, size_t n)
{
    s->raw += n;
    if (s->size && s->raw > s->size)
        s->size = s->raw; /* the file grows */
}

ssize_t source_read_fd(struct source *s, void *p, size_t n)
{
    ssize_t got;

    if (!source_wait(s))
        return 0;
    got = read_at(s, p, n, s->raw);
    if (got < 0) {
        got = -errno;
        snprintf(s->why, sizeof s->why, "read: %s", strerror(errno));
    } else if (got == 0) {
        got = source_ended(s);
    } else {
        count_read(s, (size_t)got);
    }
    return got;
}

/* Other memory for `n` bytes and more: *to with *size bytes. False without memory. */
static bool source_memory(struct source *s, size_t n, uint8_t **to, size_t *size)
{
    *size = n > s->at_a_time ? n * 2 : s->at_a_time;
    *to = s->chunks ? chunks_get(s->chunks, s->buf, *size, size) : malloc(*size);
    if (!*to) {
        s->err = -ENOMEM;
        snprintf(s->why, sizeof s->why, "out of memory");
    }
    return *to != NULL;
}

/* Make room for `n` bytes from s->p on: the unread bytes move to the front, of other memory if the buffer must grow, or
 * has to stay as it is. */
static bool source_room(struct source *s, size_t n)
{
    size_t left = source_left(s), size = s->buf_cap;
    bool stays = s->chunks && s->has_frames;
    uint8_t *to = s->buf;

    if (s->moving && !s->chunks)
        s->moving(s->user);
    if ((stays || n > s->buf_cap) && !source_memory(s, n, &to, &size))
        return false;
    s->base = source_offset(s);
    memmove(to, s->p, left);
    if (to != s->buf && !s->chunks)
        free(s->buf);
    s->buf = to;
    s->buf_cap = size;
    s->has_frames = false;
    s->p = to;
    s->end = to + left;
    return true;
}

/* Whether the buffer has no place for `n` bytes from s->p on, none of its bytes is needed, or it is in the caches of
 * another processor. */
static bool source_is_full(const struct source *s, size_t n)
{
    if (s->chunks)
        return (size_t)(s->buf + s->buf_cap - s->p) < n || (s->has_frames && chunks_are_others(s->chunks, s->buf));
    return (size_t)(s->buf + s->buf_cap - s->p) < n || s->p == s->end;
}

/* --- What threads read between their turns --------------------------------------------------- */

static void drop_piece(struct source *s, struct piece *p)
{
    chunks_put(s->chunks, p->bytes);
    *p = (struct piece){.bytes = NULL};
}

/* Where the bytes begin that others do not read before: behind what they have claimed; or, if that was read already, as
 * a batch was longer than thought, behind what they will read. */
static uint64_t unclaimed(const struct source *s, unsigned others)
{
    uint64_t ahead = s->raw + (uint64_t)others * s->step;

    return s->claimed > ahead ? s->claimed : ahead;
}

bool source_claims(const struct source *s)
{
    return s->regular && s->chunks && !s->unpacker && s->at_a_time > 2 * HEAD;
}

void source_step(struct source *s, size_t n)
{
    s->step = source_claims(s) && n > s->at_a_time - HEAD ? s->at_a_time - HEAD : n;
}

void source_claim(struct source *s, unsigned others)
{
    bool may = source_claims(s) && !s->eof && !s->err;
    struct piece *p;

    if (may && !s->pieces)
        s->pieces = apart_new(CHUNKS_THREADS, sizeof *s->pieces);
    if (!may || !s->pieces)
        return;
    p = &s->pieces[chunks_reader(s->chunks)];
    drop_piece(s, p);
    s->claimed = unclaimed(s, others);
    if (s->claimed >= s->size || !(p->bytes = chunks_get(s->chunks, NULL, s->at_a_time, &p->size)))
        return;
    p->want = s->step && s->step < p->size - HEAD ? s->step : p->size - HEAD;
    p->at = s->claimed;
    s->claimed += p->want;
}

void source_fetch(struct source *s, unsigned thread)
{
    struct piece *p = s->pieces ? &s->pieces[thread] : NULL;
    ssize_t got = 1;

    while (p && p->bytes && p->got < p->want && got > 0) {
        got = read_at(s, p->bytes + HEAD + p->got, p->want - p->got, p->at + p->got);
        p->got += got > 0 ? (size_t)got : 0;
    }
}

/* The bytes of the piece follow those at hand: these move in front of them. */
static void use_piece(struct source *s, struct piece *p)
{
    size_t left = source_left(s);
    uint8_t *to = p->bytes + HEAD - left;

    s->base = source_offset(s) - (uint64_t)(to - p->bytes);
    memcpy(to, s->p, left);
    chunks_use(s->chunks, s->buf, p->bytes);
    s->buf = p->bytes;
    s->buf_cap = p->size;
    s->has_frames = false;
    s->p = to;
    s->end = p->bytes + HEAD + p->got;
    count_read(s, p->got);
    *p = (struct piece){.bytes = NULL};
}

/* What the thread whose turn it is has read ahead; NULL: nothing, or it was read already. */
static struct piece *own_piece(const struct source *s)
{
    struct piece *p = s->pieces ? &s->pieces[chunks_reader(s->chunks)] : NULL;

    return p && p->bytes && p->got && p->at >= s->raw ? p : NULL;
}

/* Read on: up to what the thread has read ahead. Their number, 0 at the end, or a negative errno. */
static ssize_t read_on(struct source *s, const struct piece *ahead)
{
    uint8_t *to = s->buf + (s->end - s->buf);
    size_t room = (size_t)(s->buf + s->buf_cap - to);

    if (s->step && room > s->step)
        room = s->step;
    if (ahead && ahead->at > s->raw && room > ahead->at - s->raw)
        room = ahead->at - s->raw;
    return s->unpacker ? unpack_read(s, to, room) : source_read_fd(s, to, room);
}

const uint8_t *source_fill(struct source *s, size_t n)
{
    if (s->eof || s->err)
        return NULL;
    while (source_left(s) < n) {
        struct piece *ahead = own_piece(s);
        ssize_t got;
        if (ahead && ahead->at == s->raw && source_left(s) <= HEAD) {
            use_piece(s, ahead);
            continue;
        }
        if (source_is_full(s, n) && !source_room(s, n))
            return NULL;
        got = read_on(s, ahead);
        if (got < 0)
            s->err = (int)got;
        if (got == 0)
            s->eof = true;
        if (got <= 0)
            return NULL;
        s->end += got;
    }
    return s->p;
}

/* Skip up to `n` bytes of a regular file; the buffer is empty. Returns their number. */
static uint64_t source_jump(struct source *s, uint64_t n)
{
    uint64_t rest = s->size > s->raw && !s->unpacker ? s->size - s->raw : 0;
    uint8_t *to = s->chunks ? s->buf + s->buf_cap : s->buf; /* what chunks have stays as it is */

    if (n > rest)
        n = rest;
    if (n < s->buf_cap)
        return 0;
    s->raw += n;
    s->base = source_offset(s) + n - (uint64_t)(to - s->buf);
    s->p = s->end = to;
    return n;
}

uint64_t source_skip_far(struct source *s, uint64_t n)
{
    uint64_t todo = n;

    for (;;) {
        size_t step = todo < source_left(s) ? (size_t)todo : source_left(s);
        s->p += step;
        todo -= step;
        if (todo)
            todo -= source_jump(s, todo);
        if (!todo || !source_peek(s, 1))
            return n - todo;
    }
}

static enum cap_compression compression_of(const uint8_t *p, size_t n)
{
    if (n >= 2 && p[0] == 0x1f && p[1] == 0x8b)
        return CAP_GZIP;
    /* zstd frame, or a skippable frame that may precede it */
    if (n >= 4 && (load_le32(p) == 0xfd2fb528 || (load_le32(p) & 0xfffffff0) == 0x184d2a50))
        return CAP_ZSTD;
    return CAP_PLAIN;
}

/* Read the first bytes into the buffer, and start a decompressor if they are packed. */
static int source_begin(struct source *s, size_t size)
{
    s->at_a_time = size;
    s->step = s->chunks ? CAP_BUFFER : 0; /* until it is known how long its records are */
    if (!source_memory(s, 1, &s->buf, &s->buf_cap))
        return s->err;
    s->p = s->end = s->buf;
    source_peek(s, MAGIC_SIZE);
    if (s->err)
        return s->err;
    s->compression = compression_of(s->p, source_left(s));
    if (s->compression == CAP_PLAIN)
        return 0;
    s->err = unpack_start(s, s->p, source_left(s));
    s->end = s->p;
    s->eof = false;
    return s->err;
}

int source_open(struct source *s, const char *path, const struct cap_opts *opts)
{
    struct stat st;

    memset(s, 0, sizeof *s);
    s->moving = opts->moving;
    s->chunks = opts->chunks;
    s->idle_ms = opts->idle_ms;
    s->idle_user = opts->idle_user;
    s->user = opts->user;
    s->own_fd = strcmp(path, "-") != 0;
    s->fd = s->own_fd ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (s->fd < 0 || fstat(s->fd, &st) < 0 || (S_ISDIR(st.st_mode) && (errno = EISDIR))) {
        s->err = -errno;
        snprintf(s->why, sizeof s->why, "%s", strerror(errno));
        return s->err;
    }
    if (S_ISREG(st.st_mode)) {
        off_t at = lseek(s->fd, 0, SEEK_CUR);
        s->regular = true;
        s->start = at > 0 ? (uint64_t)at : 0;
        s->size = st.st_size > at ? (uint64_t)(st.st_size - at) : 0;
        posix_fadvise(s->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    } else {
        s->idle = opts->idle; /* a regular file always has bytes, or its end */
    }
    int rc = source_begin(s, opts->buffer ? opts->buffer : CAP_BUFFER);
    if (rc < 0 && !s->why[0])
        snprintf(s->why, sizeof s->why, "%s", strerror(-rc));
    return rc;
}

void source_close(struct source *s)
{
    unpack_stop(s);
    for (unsigned i = 0; s->pieces && i < CHUNKS_THREADS; i++)
        drop_piece(s, &s->pieces[i]);
    free(s->pieces);
    if (s->chunks)
        chunks_put(s->chunks, s->buf);
    else
        free(s->buf);
    if (s->own_fd && s->fd >= 0)
        close(s->fd);
    else if (s->regular) /* standard input: others go on behind what was read */
        lseek(s->fd, (off_t)(s->start + s->raw), SEEK_SET);
    memset(s, 0, sizeof *s);
    s->fd = -1;
}

uint64_t source_consumed(const struct source *s)
{
    return s->unpacker ? s->raw : source_offset(s);
}
