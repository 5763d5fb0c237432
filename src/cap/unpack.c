/* layer 1 (io): gzip and zstd input, streaming, any number of members or frames one after another. */
#include "src/cap/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

/* zstd windows larger than those of zstd --long=27 are refused: they would take too much memory. */
#define ZSTD_WINDOW_LOG_MAX 27

struct unpacker {
    size_t pos, len; /* bytes of `in` from pos to len are not unpacked yet */
    bool in_eof;     /* fd is at its end */
    bool inside;     /* in the middle of a member or frame */
    z_stream gz;
    ZSTD_DStream *zstd;
    size_t in_cap;
    uint8_t in[]; /* packed bytes */
};

static int unpack_fail(struct source *s, const char *what, const char *why)
{
    snprintf(s->why, sizeof s->why, "%s: %s", what, why);
    return -EINVAL;
}

int unpack_start(struct source *s, const uint8_t *first, size_t n)
{
    struct unpacker *u = calloc(1, sizeof *u + s->buf_cap);

    if (!u)
        return -ENOMEM;
    u->in_cap = s->buf_cap;
    memcpy(u->in, first, n);
    u->len = n;
    s->unpacker = u;
    if (s->compression == CAP_GZIP)
        return inflateInit2(&u->gz, 15 + 16) == Z_OK ? 0 : -ENOMEM;
    u->zstd = ZSTD_createDStream();
    if (!u->zstd || ZSTD_isError(ZSTD_DCtx_setParameter(u->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX)))
        return -ENOMEM;
    return 0;
}

void unpack_stop(struct source *s)
{
    if (!s->unpacker)
        return;
    if (s->compression == CAP_GZIP)
        inflateEnd(&s->unpacker->gz);
    ZSTD_freeDStream(s->unpacker->zstd);
    free(s->unpacker);
    s->unpacker = NULL;
}

/* Read more packed bytes after those in `in`; 0 or a negative errno. */
static int unpack_more(struct source *s, struct unpacker *u)
{
    memmove(u->in, u->in + u->pos, u->len - u->pos);
    u->len -= u->pos;
    u->pos = 0;
    ssize_t got = source_read_fd(s, u->in + u->len, u->in_cap - u->len);
    if (got < 0)
        return (int)got;
    u->in_eof = got == 0;
    u->len += (size_t)got;
    return 0;
}

/* Between gzip members: 1 if another one begins, 0 at the end. Zero padding, as on tapes, is skipped. */
static int gzip_member(struct source *s, struct unpacker *u)
{
    for (;;) {
        while (u->pos < u->len && u->in[u->pos] == 0)
            u->pos++;
        if (u->len - u->pos >= 2)
            break;
        if (u->in_eof && u->pos == u->len)
            return 0;
        if (u->in_eof)
            return unpack_fail(s, "gzip", "bytes after the last member that are no gzip");
        int rc = unpack_more(s, u);
        if (rc < 0)
            return rc;
    }
    if (u->in[u->pos] != 0x1f || u->in[u->pos + 1] != 0x8b)
        return unpack_fail(s, "gzip", "bytes after the last member that are no gzip");
    inflateReset(&u->gz);
    u->inside = true;
    return 1;
}

static ssize_t gzip_read(struct source *s, struct unpacker *u, uint8_t *out, size_t cap)
{
    u->gz.next_out = out;
    u->gz.avail_out = (uInt)cap;
    while (u->gz.avail_out == cap) {
        if (!u->inside) {
            int more = gzip_member(s, u);
            if (more <= 0)
                return more;
        }
        if (u->pos == u->len) {
            int rc = unpack_more(s, u);
            if (rc < 0)
                return rc;
            if (u->in_eof)
                return unpack_fail(s, "gzip", "the compressed data end in the middle");
        }
        u->gz.next_in = u->in + u->pos;
        u->gz.avail_in = (uInt)(u->len - u->pos);
        int rc = inflate(&u->gz, Z_NO_FLUSH);
        u->pos = u->len - u->gz.avail_in;
        if (rc == Z_STREAM_END)
            u->inside = false;
        else if (rc != Z_OK && u->gz.avail_out == cap)
            return rc == Z_MEM_ERROR
                       ? -ENOMEM
                       : unpack_fail(s, "gzip", u->gz.msg ? u->gz.msg : "the compressed data are damaged");
        else if (rc != Z_OK)
            break; /* first return the bytes before the damage; the next call fails */
    }
    return (ssize_t)(cap - u->gz.avail_out);
}

static ssize_t zstd_read(struct source *s, struct unpacker *u, uint8_t *out, size_t cap)
{
    ZSTD_outBuffer o = {.dst = out, .size = cap};

    while (o.pos == 0) {
        if (u->pos == u->len && !u->in_eof) {
            int rc = unpack_more(s, u);
            if (rc < 0)
                return rc;
        }
        if (u->pos == u->len && u->in_eof && !u->inside)
            return 0;
        ZSTD_inBuffer i = {.src = u->in, .size = u->len, .pos = u->pos};
        size_t rc = ZSTD_decompressStream(u->zstd, &o, &i);
        if (ZSTD_isError(rc))
            return unpack_fail(s, "zstd", ZSTD_getErrorName(rc));
        bool stuck = i.pos == u->pos && o.pos == 0;
        u->pos = i.pos;
        u->inside = rc != 0;
        if (stuck && u->in_eof)
            return u->inside ? unpack_fail(s, "zstd", "the compressed data end in the middle") : 0;
    }
    return (ssize_t)o.pos;
}

ssize_t unpack_read(struct source *s, uint8_t *out, size_t cap)
{
    return s->compression == CAP_GZIP ? gzip_read(s, s->unpacker, out, cap) : zstd_read(s, s->unpacker, out, cap);
}
