/* layer 1 (io): opening a capture file of any format, errors, information. */
#include "src/cap/cap.h"
#include "apart.h"
#include "src/cap/cap_impl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Bytes of all texts of one file, at most; further ones are not kept. */
#define TEXT_TOTAL_MAX ((size_t)4 << 20)

void cap_error_line(const struct cap_error *e, struct buf *out)
{
    buf_puts(out, e->file);
    buf_puts(out, ": ");
    if (e->has_offset) {
        buf_puts(out, "byte ");
        buf_dec(out, e->offset);
        if (e->unpacked)
            buf_puts(out, " after decompression");
        if (e->frame) {
            buf_puts(out, ", frame ");
            buf_dec(out, e->frame);
        }
        buf_puts(out, ": ");
    }
    buf_puts(out, e->msg);
}

int cap_fail(struct cap *c, uint64_t offset, const char *fmt, ...)
{
    struct cap_error *e = &c->error;
    va_list ap;

    e->err = -EINVAL;
    e->offset = offset;
    e->frame = c->frames + 1;
    e->has_offset = c->info.format != CAP_LIVE;
    e->unpacked = c->src.compression != CAP_PLAIN;
    va_start(ap, fmt);
    vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    if (c->src.err) {
        e->err = c->src.err;
        snprintf(e->msg, sizeof e->msg, "%s", c->src.why);
    }
    return e->err;
}

int cap_short(struct cap *c, bool end_is_fine, const char *what, uint64_t need)
{
    uint64_t left = source_left(&c->src);

    if (left == 0 && end_is_fine && !c->src.err)
        return 0;
    return cap_fail(c, source_offset(&c->src), "%s of %llu bytes, the file ends after %llu", what,
                    (unsigned long long)need, (unsigned long long)left);
}

struct cap_iface *cap_iface_add(struct cap *c, uint64_t offset)
{
    if (c->n_ifaces >= CAP_IFACES_MAX) {
        cap_fail(c, offset, "interface number %u, at most %u are read", c->n_ifaces + 1, CAP_IFACES_MAX);
        return NULL;
    }
    if (c->n_ifaces == c->ifaces_cap) {
        uint32_t cap = c->ifaces_cap ? c->ifaces_cap * 2 : 4;
        struct cap_iface *p = apart_new(cap, sizeof *p);
        if (!p) {
            cap_fail(c, offset, "out of memory");
            return NULL;
        }
        if (c->n_ifaces)
            memcpy(p, c->ifaces, c->n_ifaces * sizeof *p);
        free(c->ifaces);
        c->ifaces = p;
        c->ifaces_cap = cap;
    }
    struct cap_iface *i = &c->ifaces[c->n_ifaces++];
    memset(i, 0, sizeof *i);
    return i;
}

void cap_text(struct cap *c, char **old, const uint8_t *p, size_t n)
{
    n = strnlen((const char *)p, n < CAP_TEXT_MAX ? n : CAP_TEXT_MAX);
    if (*old)
        c->text -= strlen(*old);
    free(*old);
    *old = n && c->text + n <= TEXT_TOTAL_MAX ? strndup((const char *)p, n) : NULL;
    if (*old)
        c->text += n;
}

/* Formats of compressed files that are recognised, but not read. */
static const struct {
    const char *program;
    size_t n; /* bytes of `magic` */
    const char *magic;
} packers[] = {{"xz", 6,
                "\xfd"
                "7zXZ\0"},
               {"bzip2", 3, "BZh"},
               {"lz4", 4, "\x04\x22\x4d\x18"}};

/* Recognise the format; 0 or a negative errno with c->error filled. */
static int cap_begin(struct cap *c)
{
    static int (*const begin[])(struct cap *) = {pcap_begin, pcapng_begin, erf_begin, digest_begin};
    char start[40] = "";

    for (size_t i = 0; i < ARRAY_LEN(begin); i++) {
        int rc = begin[i](c);
        if (rc)
            return rc < 0 ? rc : 0;
    }
    source_peek(&c->src, 8);
    size_t left = source_left(&c->src);
    if (left == 0)
        return cap_fail(c, 0, "the file is empty, not a capture");
    for (size_t i = 0; i < ARRAY_LEN(packers); i++)
        if (left >= packers[i].n && memcmp(c->src.p, packers[i].magic, packers[i].n) == 0)
            return cap_fail(c, 0, "compressed by %s, which is not read; unpack it: `%s -dc FILE | rdmatrace ... -`",
                            packers[i].program, packers[i].program);
    for (size_t i = 0; i < left && i < 8; i++)
        snprintf(start + 3 * i, sizeof start - 3 * i, " %02x", c->src.p[i]);
    return cap_fail(c, 0, "not a capture file of a known format (pcap, pcapng, ERF): it begins with%s", start);
}

int cap_open(struct cap **out, const char *path, uint16_t file_index, const struct cap_opts *opts,
             struct cap_error *err)
{
    static const struct cap_opts none;
    struct cap *c = apart_new(1, sizeof *c);
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;

    if (!c) {
        *err = (struct cap_error){.file = name, .err = -ENOMEM, .msg = "out of memory"};
        return -ENOMEM;
    }
    c->file = file_index;
    c->error.file = name;
    c->owners = opts ? opts->owners : NULL;
    int rc = source_open(&c->src, path, opts ? opts : &none);
    bool opened = rc == 0;
    if (opened)
        rc = cap_begin(c);
    else
        cap_fail(c, 0, "cannot open");
    if (rc < 0) {
        *err = c->error;
        err->frame = 0;
        err->has_offset = opened;
        cap_close(c);
        return rc;
    }
    c->info.compression = c->src.compression;
    *out = c;
    return 0;
}

bool cap_is_capture(const char *path)
{
    struct cap_error err;
    struct cap *c = NULL;
    struct stat st;
    bool is = stat(path, &st) == 0 && S_ISREG(st.st_mode) && cap_open(&c, path, 0, NULL, &err) == 0;

    cap_close(c);
    return is;
}

int cap_next(struct cap *c, struct frame *f)
{
    int rc;

    if (UNLIKELY(c->error.err))
        return c->error.err;
    rc = c->next(c, f);
    if (UNLIKELY(rc != 1))
        return rc;
    c->src.has_frames = !c->live;
    f->file_name = c->error.file;
    f->iface_name = f->iface < c->n_ifaces ? c->ifaces[f->iface].name : NULL;
    return 1;
}

const struct cap_error *cap_error(const struct cap *c)
{
    return &c->error;
}

bool cap_was_scanned_so(const struct cap *c)
{
    return c->scanned_so;
}

const struct cap_info *cap_info(struct cap *c)
{
    c->info.big_endian = c->swap;
    c->info.ifaces = c->ifaces;
    c->info.n_ifaces = c->n_ifaces;
    c->info.size = c->src.size;
    c->info.consumed = source_consumed(&c->src);
    c->info.frames = c->frames;
    return &c->info;
}

const struct cap_iface *cap_iface_of(struct cap *c, const struct frame *f)
{
    return f->iface < c->n_ifaces ? &c->ifaces[f->iface] : NULL;
}

uint64_t cap_data_offset(const struct cap_info *i, const struct frame *f)
{
    switch (i->format) {
    case CAP_PCAP:
        return f->offset + 16;
    case CAP_PCAP_MODIFIED:
        return f->offset + 24;
    case CAP_PCAPNG: /* only a Simple Packet Block has no time: its head is shorter than those of the others */
        return f->offset + (f->has_ts ? 28 : 12);
    default:
        return f->offset;
    }
}

bool cap_keeps(const struct cap *c)
{
    return c->src.chunks && !c->live;
}

/* Bytes of the next record, as far as the first of its bytes, of which there are `n`, tell. */
static uint64_t record_bytes(const struct cap *c, size_t n)
{
    switch (c->info.format) {
    case CAP_PCAP:
    case CAP_PCAP_MODIFIED:
        return n < c->record_head ? c->record_head : (uint64_t)c->record_head + cap_u32(c, c->src.p + 8);
    case CAP_PCAPNG:
        return n < 8 ? 8 : cap_u32(c, c->src.p + 4);
    default:
        return 4096; /* the largest path MTU */
    }
}

void cap_read_at_a_time(struct cap *c, size_t n)
{
    source_step(&c->src, n);
}

bool cap_claims(const struct cap *c)
{
    return source_claims(&c->src);
}

void cap_claim(struct cap *c, unsigned others)
{
    source_claim(&c->src, others);
}

void cap_fetch(struct cap *c, unsigned thread)
{
    source_fetch(&c->src, thread);
}

bool cap_runs_out(const struct cap *c)
{
    size_t n = source_left(&c->src);

    return n < record_bytes(c, n);
}

void cap_close(struct cap *c)
{
    if (!c)
        return;
    if (c->close)
        c->close(c);
    for (uint32_t i = 0; i < c->n_ifaces; i++) {
        free(c->ifaces[i].name);
        free(c->ifaces[i].description);
        free(c->ifaces[i].comment);
        free(c->ifaces[i].filter);
        free(c->ifaces[i].os);
    }
    free(c->ifaces);
    free(c->info.hardware);
    free(c->info.os);
    free(c->info.app);
    free(c->info.comment);
    source_close(&c->src);
    free(c);
}
