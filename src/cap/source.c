/* layer 1 (io): the bytes of a file in order: a sliding mapped window, or a buffer over a pipe or a decompressor. */
#include "src/cap/source.h"
#include "src/cap/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW_DEFAULT ((size_t)4 << 20)
#define BUFFER_SIZE    ((size_t)1 << 20)
/* Bytes that tell how a file is compressed. */
#define MAGIC_SIZE 4

static size_t page_round(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (n + page - 1) & ~(page - 1);
}

static void source_shrank(struct source *s)
{
    s->err = -EIO;
    snprintf(s->why, sizeof s->why, "the file shrank to %llu bytes while it was read", (unsigned long long)s->size);
}

/* Look at the file's size again; false if that is impossible. */
static bool source_resize(struct source *s)
{
    struct stat st;

    if (fstat(s->fd, &st) < 0) {
        s->err = -errno;
        snprintf(s->why, sizeof s->why, "cannot read on: %s", strerror(errno));
        return false;
    }
    bool shrank = (uint64_t)st.st_size < s->size;
    s->size = (uint64_t)st.st_size;
    if (shrank)
        source_shrank(s);
    return true;
}

bool source_intact(struct source *s)
{
    if (!s->area)
        return true;
    if (s->err == 0)
        source_resize(s);
    if (s->err == 0 && s->gone)
        source_shrank(s);
    return s->err == 0;
}

/* The bytes handed out are about to move or vanish. */
static void source_moving(const struct source *s)
{
    if (s->moving)
        s->moving(s->user);
}

/* Move the window so that it begins with the page of the next byte. */
static const uint8_t *window_fill(struct source *s, size_t n)
{
    uint64_t off = source_offset(s);
    size_t page = page_round(1), lead = (size_t)(off & (page - 1));

    if (!source_resize(s))
        return NULL;
    if (off >= s->size) {
        s->end = s->p;
        return NULL;
    }
    size_t len = lead + (n > s->window ? n : s->window);
    if (len > s->size - (off - lead))
        len = (size_t)(s->size - (off - lead));
    int flags = MAP_SHARED | MAP_FIXED;
    source_moving(s);
    if (mmap(s->area, len, PROT_READ, flags, s->fd, (off_t)(off - lead)) == MAP_FAILED) {
        s->err = -errno;
        snprintf(s->why, sizeof s->why, "cannot map %zu bytes: %s", len, strerror(errno));
        s->end = s->p;
        return NULL;
    }
    s->bytes = s->area;
    s->base = off - lead;
    s->p = s->area + lead;
    s->end = s->area + len;
    return len - lead >= n ? s->p : NULL;
}

ssize_t source_read_fd(struct source *s, void *p, size_t n)
{
    ssize_t got;

    do
        got = read(s->fd, p, n);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        got = -errno;
        snprintf(s->why, sizeof s->why, "read: %s", strerror(errno));
    } else {
        s->raw += (uint64_t)got;
    }
    return got;
}

/* Room for `n` bytes from s->p on: what is left moves to the front, the buffer grows if it must. */
static bool stream_room(struct source *s, size_t n)
{
    size_t left = source_left(s);

    source_moving(s);
    if (n > s->buf_cap) {
        uint8_t *q = malloc(n * 2);
        if (!q) {
            s->err = -ENOMEM;
            snprintf(s->why, sizeof s->why, "out of memory");
            return false;
        }
        if (left)
            memcpy(q, s->p, left);
        s->base = source_offset(s);
        free(s->buf);
        s->buf = q;
        s->buf_cap = n * 2;
    } else {
        s->base = source_offset(s);
        memmove(s->buf, s->p, left);
    }
    s->bytes = s->p = s->buf;
    s->end = s->buf + left;
    return true;
}

static const uint8_t *stream_fill(struct source *s, size_t n)
{
    if (s->eof || s->err)
        return NULL;
    if ((size_t)(s->buf + s->buf_cap - s->p) < n && !stream_room(s, n))
        return NULL;
    while (source_left(s) < n) {
        if (s->p == s->end)
            stream_room(s, n);
        uint8_t *to = s->buf + (s->end - s->buf);
        size_t room = (size_t)(s->buf + s->buf_cap - s->end);
        ssize_t got = s->unpacker ? unpack_read(s, to, room) : source_read_fd(s, to, room);
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

const uint8_t *source_fill(struct source *s, size_t n)
{
    return s->area ? window_fill(s, n) : stream_fill(s, n);
}

uint64_t source_skip_far(struct source *s, uint64_t n)
{
    uint64_t todo = n;

    if (s->area && n > source_left(s)) {
        uint64_t off = source_offset(s);
        if (!source_resize(s))
            return 0;
        uint64_t left = s->size > off ? s->size - off : 0;
        todo = n < left ? n : left;
        s->base = off + todo;
        s->bytes = s->p = s->end = s->area;
        return todo;
    }
    for (;;) {
        size_t step = todo < source_left(s) ? (size_t)todo : source_left(s);
        s->p += step;
        todo -= step;
        if (!todo || !source_peek(s, 1))
            return n - todo;
    }
}

/* Map a regular file; false if it must be read as a stream. */
static bool source_map(struct source *s, const struct cap_opts *opts)
{
    s->window = page_round(opts->window ? opts->window : WINDOW_DEFAULT);
    s->area_len = s->window + SOURCE_PEEK_MAX + 2 * page_round(1);
    void *area = mmap(NULL, s->area_len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED)
        return false;
    if (!guard_add(area, s->area_len, &s->gone)) {
        munmap(area, s->area_len);
        return false;
    }
    s->area = area;
    s->bytes = s->p = s->end = s->area;
    posix_fadvise(s->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return true;
}

static enum cap_compression compression_of(const uint8_t *p, size_t n)
{
    if (n >= 2 && p[0] == 0x1f && p[1] == 0x8b)
        return CAP_GZIP;
    /* A zstd frame, or a skippable one that may precede it. */
    if (n >= 4 && (load_le32(p) == 0xfd2fb528 || (load_le32(p) & 0xfffffff0) == 0x184d2a50))
        return CAP_ZSTD;
    return CAP_PLAIN;
}

/* A buffer over fd, of which the first bytes decide about decompression. */
static int source_stream(struct source *s)
{
    s->buf = malloc(BUFFER_SIZE);
    if (!s->buf)
        return -ENOMEM;
    s->buf_cap = BUFFER_SIZE;
    s->bytes = s->p = s->end = s->buf;
    while (source_left(s) < MAGIC_SIZE) {
        ssize_t got = source_read_fd(s, s->buf + source_left(s), MAGIC_SIZE - source_left(s));
        if (got < 0)
            return s->err = (int)got;
        if (got == 0)
            break;
        s->end += got;
    }
    size_t n = source_left(s);
    s->compression = compression_of(s->p, n);
    if (s->compression == CAP_PLAIN)
        return 0;
    s->end = s->p;
    return s->err = unpack_start(s, s->p, n);
}

int source_open(struct source *s, const char *path, const struct cap_opts *opts)
{
    struct stat st;
    uint8_t first[MAGIC_SIZE];

    memset(s, 0, sizeof *s);
    s->moving = opts->moving;
    s->user = opts->user;
    s->own_fd = strcmp(path, "-") != 0;
    s->fd = s->own_fd ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (s->fd < 0 || fstat(s->fd, &st) < 0 || (S_ISDIR(st.st_mode) && (errno = EISDIR))) {
        s->err = -errno;
        snprintf(s->why, sizeof s->why, "%s", strerror(errno));
        return s->err;
    }
    if (S_ISREG(st.st_mode)) {
        s->size = (uint64_t)st.st_size;
        ssize_t n = pread(s->fd, first, sizeof first, 0);
        bool plain = n > 0 && compression_of(first, (size_t)n) == CAP_PLAIN;
        if (plain && !opts->stream && lseek(s->fd, 0, SEEK_CUR) == 0 && source_map(s, opts))
            return 0;
    }
    int rc = source_stream(s);
    if (rc < 0 && !s->why[0])
        snprintf(s->why, sizeof s->why, "%s", strerror(-rc));
    return rc;
}

void source_close(struct source *s)
{
    if (s->area) {
        guard_remove(s->area);
        munmap(s->area, s->area_len);
    }
    unpack_stop(s);
    free(s->buf);
    if (s->own_fd && s->fd >= 0)
        close(s->fd);
    memset(s, 0, sizeof *s);
    s->fd = -1;
}

uint64_t source_consumed(const struct source *s)
{
    return s->unpacker ? s->raw : source_offset(s);
}
