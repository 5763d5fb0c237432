/* layer 1 (io): writing capture files. */
#include "src/cap/write.h"
#include "src/cap/cap_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes that are written at once. */
#define BUFFER_SIZE ((size_t)256 << 10)
/* The same if they may wait, so that a live capture is back at its frames soon. */
#define PART_SIZE ((size_t)64 << 10)

/* Numbers of the interfaces in the output, by the interface's number in one input file. */
struct iface_map {
    uint32_t *id; /* place among all interfaces written, from 1; 0: not yet written */
    uint32_t n;
};

struct cap_writer {
    struct buf out;
    /* Full buffers that wait to be written, a ring: `queued` of `slots` from `oldest` on, with `waiting` bytes. The
     * others are empty, and used again. */
    struct buf *queue;
    uint32_t slots, oldest, queued;
    size_t full; /* bytes of a full buffer */
    size_t waiting;
    int fd;
    bool anonymous;           /* as in the options */
    bool own_fd, pcap, begun; /* begun: pcap: the file header, with the link type, is written */
    uint16_t linktype;        /* pcap: the one link type */
    uint32_t snaplen;         /* 0: no limit */
    uint32_t snaplen_first;   /* pcapng: snap length of interface 0, which simple packets refer to */
    const char *app;          /* as in the options */
    struct cap *input;        /* the one input file, whose sections become sections of the output; else NULL */
    uint32_t section;         /* of the input, which the output is at */
    struct iface_map *files;  /* by frame.file */
    uint32_t n_files;
    uint32_t n_ifaces;       /* written, of all sections */
    uint32_t section_first;  /* of them, those of sections before the one that is written */
    uint32_t input_first;    /* number in the input of the first interface of `section` */
    uint64_t frames, offset; /* written */
    struct buf comments;     /* options of the next frame, from cap_write_comment() */
    struct cap_error error;
};

static int writer_fail(struct cap_writer *w, int err, const char *fmt, ...) PRINTF_LIKE(3, 4);
static int writer_fail(struct cap_writer *w, int err, const char *fmt, ...)
{
    va_list ap;

    w->error.err = err;
    w->error.offset = w->offset;
    va_start(ap, fmt);
    vsnprintf(w->error.msg, sizeof w->error.msg, fmt, ap);
    va_end(ap);
    return err;
}

uint64_t cap_writer_size(const struct cap_writer *w)
{
    return w->offset + w->waiting + w->out.len;
}

static void write_buffer(struct cap_writer *w, struct buf *b)
{
    size_t done = 0;

    while (done < b->len && !w->error.err) {
        ssize_t n = write(w->fd, b->p + done, b->len - done);
        if (n < 0 && errno != EINTR)
            writer_fail(w, -errno, "write: %s", strerror(errno));
        if (n > 0) {
            done += (size_t)n;
            w->offset += (uint64_t)n;
        }
    }
    b->len = 0;
}

static void write_oldest(struct cap_writer *w)
{
    struct buf *b = &w->queue[w->oldest];

    w->waiting -= b->len;
    write_buffer(w, b);
    w->oldest = (w->oldest + 1) % w->slots;
    w->queued--;
}

int cap_writer_flush_some(struct cap_writer *w)
{
    if (!w->queued)
        return cap_writer_flush(w);
    write_oldest(w);
    return w->error.err ? w->error.err : 1;
}

int cap_writer_flush(struct cap_writer *w)
{
    if (w->out.err)
        return w->error.err ? w->error.err : writer_fail(w, -ENOMEM, "out of memory");
    while (w->queued)
        write_oldest(w);
    write_buffer(w, &w->out);
    return w->error.err;
}

/* The buffer is full: let it wait, or write it. */
static int put_aside(struct cap_writer *w)
{
    if (!w->slots || w->out.err)
        return cap_writer_flush(w);
    if (w->queued == w->slots)
        write_oldest(w);
    struct buf *free_one = &w->queue[(w->oldest + w->queued++) % w->slots], full = w->out;
    w->waiting += full.len;
    w->out = *free_one;
    *free_one = full;
    return w->error.err;
}

/* Integers of the file: little-endian. */
static void w16(struct buf *b, uint16_t v)
{
    buf_mem(b, (uint8_t[2]){(uint8_t)v, (uint8_t)(v >> 8)}, 2);
}
static void w32(struct buf *b, uint32_t v)
{
    uint8_t p[4];
    store_le32(p, v);
    buf_mem(b, p, 4);
}
static void w64(struct buf *b, uint64_t v)
{
    w32(b, (uint32_t)v);
    w32(b, (uint32_t)(v >> 32));
}
/* Write data, then zeros to a multiple of 4. */
static void wpad(struct buf *b, const void *p, size_t n)
{
    buf_mem(b, p, n);
    buf_fill(b, 0, -n & 3);
}
static void woption(struct buf *b, uint16_t code, const void *p, size_t n)
{
    if (n > UINT16_MAX)
        n = UINT16_MAX;
    w16(b, code);
    w16(b, (uint16_t)n);
    wpad(b, p, n);
}
static void woption_text(struct buf *b, uint16_t code, const char *s)
{
    if (s && *s)
        woption(b, code, s, strlen(s));
}
static void woption64(struct buf *b, uint16_t code, uint64_t v)
{
    w16(b, code);
    w16(b, 8);
    w64(b, v);
}
static size_t wblock(struct buf *b, uint32_t type)
{
    size_t at = b->len;
    w32(b, type);
    w32(b, 0);
    return at;
}
static void wblock_end(struct buf *b, size_t at)
{
    uint32_t len = (uint32_t)(b->len - at + 4);
    w32(b, len);
    if (!b->err)
        store_le32((uint8_t *)b->p + at + 4, len);
}

/* A section header; `o`: the choices whose comments it has, NULL: none. */
static void write_section(struct cap_writer *w, const char *app, const struct cap_writer_opts *o)
{
    size_t at = wblock(&w->out, 0x0a0d0d0a);

    w32(&w->out, 0x1a2b3c4d);
    w16(&w->out, 1);
    w16(&w->out, 0);
    w64(&w->out, UINT64_MAX); /* section length not stated */
    for (size_t i = 0; o && i < o->n_inputs && !o->anonymous; i++)
        woption_text(&w->out, 1, cap_info(o->inputs[i])->comment);
    woption_text(&w->out, 1, o ? o->comment : NULL);
    woption_text(&w->out, 4, app);
    w32(&w->out, 0);
    wblock_end(&w->out, at);
}

/* What a person wrote or a host is called. */
static void write_texts(struct buf *b, const struct cap_iface *i)
{
    woption_text(b, 1, i->comment);
    woption_text(b, 2, i->name);
    woption_text(b, 3, i->description);
    if (i->filter) {
        w16(b, 11);
        w16(b, (uint16_t)(strlen(i->filter) + 1));
        buf_char(b, 0); /* a filter string */
        buf_mem(b, i->filter, strlen(i->filter));
        buf_fill(b, 0, -(strlen(i->filter) + 1) & 3);
    }
    woption_text(b, 12, i->os);
}

static void write_interface(struct cap_writer *w, const struct cap_iface *i)
{
    struct buf *b = &w->out;
    uint32_t snaplen = w->snaplen && (!i->snaplen || w->snaplen < i->snaplen) ? w->snaplen : i->snaplen;
    size_t at = wblock(b, 1);

    w16(b, i->linktype);
    w16(b, 0);
    w32(b, snaplen);
    if (!w->anonymous)
        write_texts(b, i);
    if (i->speed)
        woption64(b, 8, i->speed);
    woption(b, 9, &(uint8_t){9}, 1); /* if_tsresol: nanoseconds */
    if (i->fcs_len)
        woption(b, 13, &i->fcs_len, 1);
    w32(b, 0);
    wblock_end(b, at);
    if (w->n_ifaces == w->section_first)
        w->snaplen_first = snaplen;
    w->n_ifaces++;
}

/* The place of an interface's number in the output; NULL without memory. */
static uint32_t *iface_slot(struct cap_writer *w, uint16_t file, uint32_t iface)
{
    if (file >= w->n_files) {
        struct iface_map *p = realloc(w->files, (file + 1u) * sizeof *p);
        if (!p)
            return NULL;
        memset(p + w->n_files, 0, (file + 1u - w->n_files) * sizeof *p);
        w->files = p;
        w->n_files = file + 1u;
    }
    struct iface_map *m = &w->files[file];
    if (iface >= m->n) {
        uint32_t n = max_u32(iface + 1, m->n * 2), *p;
        if (iface >= CAP_IFACES_MAX || !(p = realloc(m->id, n * sizeof *p)))
            return NULL;
        memset(p + m->n, 0, (n - m->n) * sizeof *p);
        m->id = p;
        m->n = n;
    }
    return &m->id[iface];
}

/* Whether a frame without a time fits into a simple packet block without loss. */
static bool fits_simple(const struct cap_writer *w, const struct frame *f, uint32_t id, uint32_t caplen)
{
    uint32_t limit = w->snaplen_first ? w->snaplen_first : UINT32_MAX;
    bool has_options = f->flags || f->drops || f->comment || w->comments.len;

    return !f->has_ts && id == 0 && !has_options && caplen == min_u32(f->len, limit);
}

/* Write all comments of a packet. */
static void write_comments(struct buf *b, const struct frame *f)
{
    const uint8_t *p = f->options;
    uint32_t left = f->options_len;

    if (!p) {
        woption(b, 1, f->comment, f->comment_len);
        return;
    }
    while (left >= 4) {
        uint16_t code = f->options_be ? load_be16(p) : load_le16(p);
        uint16_t len = f->options_be ? load_be16(p + 2) : load_le16(p + 2);
        uint32_t step = 4 + ((len + 3u) & ~3u);
        if (code == 0 || len > left - 4)
            break;
        if (code == 1)
            woption(b, 1, p + 4, len);
        step = min_u32(step, left);
        p += step;
        left -= step;
    }
}

static void write_enhanced(struct cap_writer *w, const struct frame *f, uint32_t id, uint32_t caplen)
{
    struct buf *b = &w->out;
    uint64_t ts = f->has_ts && f->ts > 0 ? (uint64_t)f->ts : 0;
    size_t at = b->len;
    uint8_t head[28] = {6};

    store_le32(head + 8, id);
    store_le32(head + 12, (uint32_t)(ts >> 32));
    store_le32(head + 16, (uint32_t)ts);
    store_le32(head + 20, caplen);
    store_le32(head + 24, f->len);
    buf_mem(b, head, sizeof head);
    wpad(b, f->data, caplen);
    if (f->comment)
        write_comments(b, f);
    if (!f->has_ts)
        woption_text(b, 1, CAP_NO_TIME);
    buf_mem(b, w->comments.p, w->comments.len);
    if (f->flags) {
        w16(b, 2);
        w16(b, 4);
        w32(b, f->flags);
    }
    if (f->drops)
        woption64(b, 4, f->drops);
    if (f->comment || f->flags || f->drops || w->comments.len || !f->has_ts)
        w32(b, 0);
    wblock_end(b, at);
    w->comments.len = 0;
}

/* The number of an interface in the output, plus 1; a new interface is written. NULL without memory. */
static uint32_t *iface_known(struct cap_writer *w, uint16_t file, uint32_t number, const struct cap_iface *iface)
{
    uint32_t *slot = iface_slot(w, file, number);

    if (UNLIKELY(!slot)) {
        writer_fail(w, -ENOMEM, "out of memory for interface %u", number);
    } else if (UNLIKELY(*slot <= w->section_first)) {
        write_interface(w, iface);
        *slot = w->n_ifaces;
    }
    return slot;
}

int cap_write_iface(struct cap_writer *w, uint16_t file, uint32_t number, const struct cap_iface *iface)
{
    if (!w->error.err && !w->pcap)
        iface_known(w, file, number, iface);
    return w->error.err;
}

/* The input is at the section of `f`: so is the output, as simple packet blocks are of a section's first interface.
 * What is known of the interfaces of the section before is written now: afterwards their numbers mean others. */
static void next_section(struct cap_writer *w, const struct frame *f, const struct cap_iface *iface)
{
    const struct cap_info *info = cap_info(w->input);
    uint32_t from = w->input_first;

    w->section = iface->section;
    w->input_first = f->iface - min_u32(iface->id, f->iface);
    if (w->n_ifaces == w->section_first)
        return;
    for (uint32_t i = from; i < min_u32(w->input_first, info->n_ifaces); i++)
        if (info->ifaces[i].has_drops || info->ifaces[i].received)
            cap_write_stats(w, f->file, i, &info->ifaces[i]);
    w->section_first = w->n_ifaces;
    write_section(w, w->app, NULL);
}

static int write_pcapng(struct cap_writer *w, const struct frame *f, const struct cap_iface *iface, uint32_t caplen)
{
    if (UNLIKELY(iface->section > w->section && w->input))
        next_section(w, f, iface);
    uint32_t *slot = iface_known(w, f->file, f->iface, iface);

    if (!slot)
        return w->error.err;
    uint32_t id = *slot - 1 - w->section_first; /* within the section */
    if (UNLIKELY(fits_simple(w, f, id, caplen))) {
        size_t at = wblock(&w->out, 3);
        w32(&w->out, f->len);
        wpad(&w->out, f->data, caplen);
        wblock_end(&w->out, at);
    } else {
        write_enhanced(w, f, id, caplen);
    }
    return 0;
}

/* `fcs_len`: bytes of frame check sequence that end each frame, stored in the upper bits of the link type. */
static void write_pcap_header(struct cap_writer *w, uint16_t linktype, uint8_t fcs_len)
{
    uint32_t fcs = fcs_len ? UINT32_C(1) << 26 | (uint32_t)(fcs_len / 2 & 15) << 28 : 0;

    w32(&w->out, 0xa1b23c4d); /* time stamps of nanoseconds */
    w16(&w->out, 2);
    w16(&w->out, 4);
    w64(&w->out, 0);
    w32(&w->out, w->snaplen ? w->snaplen : FRAME_MAX);
    w32(&w->out, linktype | fcs);
    w->linktype = linktype;
    w->begun = true;
}

static int write_pcap(struct cap_writer *w, const struct frame *f, const struct cap_iface *iface, uint32_t caplen)
{
    struct buf *b = &w->out;
    uint16_t linktype = iface->linktype;
    uint64_t ts = f->ts > 0 && f->has_ts ? (uint64_t)f->ts : 0, sec = ts / (uint64_t)NS_PER_S;
    uint8_t head[16];

    if (!w->begun)
        write_pcap_header(w, linktype, iface->fcs_len);
    if (linktype != w->linktype)
        return writer_fail(w, -EINVAL, "a pcap file holds one link type, these frames have %u and %u: write pcapng",
                           w->linktype, linktype);
    store_le32(head, sec > UINT32_MAX ? UINT32_MAX : (uint32_t)sec);
    store_le32(head + 4, (uint32_t)(ts % (uint64_t)NS_PER_S));
    store_le32(head + 8, caplen);
    store_le32(head + 12, f->len);
    buf_mem(b, head, sizeof head);
    buf_mem(b, f->data, caplen);
    return 0;
}

int cap_write(struct cap_writer *w, const struct frame *f, const struct cap_iface *iface)
{
    uint32_t caplen = w->snaplen ? min_u32(f->caplen, w->snaplen) : f->caplen;

    if (UNLIKELY(w->error.err))
        return w->error.err;
    w->error.frame = w->frames + 1;
    int rc = w->pcap ? write_pcap(w, f, iface, caplen) : write_pcapng(w, f, iface, caplen);
    if (rc < 0)
        return rc;
    w->frames++;
    return UNLIKELY(w->out.len >= w->full || w->out.err) ? put_aside(w) : 0;
}

void cap_write_comment(struct cap_writer *w, const char *text, size_t len)
{
    if (!w->pcap)
        woption(&w->comments, 1, text, len);
}

int cap_write_stats(struct cap_writer *w, uint16_t file, uint32_t iface, const struct cap_iface *stats)
{
    if (w->error.err)
        return w->error.err;
    if (w->pcap || file >= w->n_files || iface >= w->files[file].n || w->files[file].id[iface] <= w->section_first)
        return 0;
    size_t at = wblock(&w->out, 5);
    w32(&w->out, w->files[file].id[iface] - 1 - w->section_first);
    w64(&w->out, 0);
    if (stats->received)
        woption64(&w->out, 4, stats->received);
    if (stats->has_drops) {
        woption64(&w->out, 5, stats->dropped);
        woption64(&w->out, 7, stats->os_dropped);
    }
    w32(&w->out, 0);
    wblock_end(&w->out, at);
    return 0;
}

static int writer_queue(struct cap_writer *w, size_t delay)
{
    static const uint8_t zero[PART_SIZE];

    w->fd = -1;
    w->full = delay ? PART_SIZE : BUFFER_SIZE;
    if (!delay)
        return 0;
    w->slots = (uint32_t)((delay - 1) / PART_SIZE + 1);
    w->queue = calloc(w->slots, sizeof *w->queue);
    for (uint32_t i = 0; w->queue && i < w->slots; i++) {
        struct buf *b = &w->queue[i];
        buf_mem(b, zero, sizeof zero); /* the pages are there before the frames are */
        b->len = 0;
        if (b->err)
            return writer_fail(w, -ENOMEM, "out of memory");
    }
    return w->queue ? 0 : writer_fail(w, -ENOMEM, "out of memory");
}

/* Open the file, and truncate it only if it is none of the inputs. */
static int writer_file(struct cap_writer *w, const char *path, const struct cap_writer_opts *o)
{
    struct stat st, in;

    w->own_fd = strcmp(path, "-") != 0;
    w->fd = w->own_fd ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : STDOUT_FILENO;
    if (w->fd < 0 || fstat(w->fd, &st) < 0)
        return writer_fail(w, -errno, "%s", strerror(errno));
    for (size_t i = 0; S_ISREG(st.st_mode) && i < o->n_inputs; i++)
        if (o->inputs[i]->src.fd >= 0 && fstat(o->inputs[i]->src.fd, &in) == 0 && in.st_dev == st.st_dev &&
            in.st_ino == st.st_ino)
            return writer_fail(w, -EEXIST, "is being read as %s and cannot be written over",
                               cap_error(o->inputs[i])->file);
    if (w->own_fd && S_ISREG(st.st_mode) && ftruncate(w->fd, 0) < 0)
        return writer_fail(w, -errno, "%s", strerror(errno));
    return 0;
}

int cap_writer_open(struct cap_writer **out, const char *path, const struct cap_writer_opts *opts,
                    struct cap_error *err)
{
    static const struct cap_writer_opts none;
    const struct cap_writer_opts *o = opts ? opts : &none;
    const char *name = strcmp(path, "-") == 0 ? "standard output" : path;
    struct cap_writer *w = calloc(1, sizeof *w);
    size_t n = strlen(path);

    if (!w) {
        *err = (struct cap_error){.file = name, .err = -ENOMEM, .msg = "out of memory"};
        return -ENOMEM;
    }
    w->error.file = name;
    w->anonymous = o->anonymous;
    w->snaplen = o->snaplen;
    w->linktype = o->linktype ? o->linktype : LINK_ETHERNET;
    w->app = o->app ? o->app : "rdmatrace";
    w->input = o->n_inputs == 1 ? o->inputs[0] : NULL;
    w->pcap =
        o->format == CAP_WRITE_PCAP || (o->format == CAP_WRITE_BY_NAME && n >= 5 && strcmp(path + n - 5, ".pcap") == 0);
    if (writer_queue(w, o->delay) < 0 || writer_file(w, path, o) < 0)
        return cap_writer_close(w, err);
    if (!w->pcap)
        write_section(w, w->app, o);
    *out = w;
    return 0;
}

const struct cap_error *cap_writer_error(const struct cap_writer *w)
{
    return &w->error;
}

int cap_writer_close(struct cap_writer *w, struct cap_error *err)
{
    if (!w)
        return 0;
    if (w->pcap && !w->begun && !w->error.err)
        write_pcap_header(w, w->linktype, 0);
    int rc = w->error.err ? w->error.err : cap_writer_flush(w);
    if (w->own_fd && w->fd >= 0 && close(w->fd) < 0 && rc == 0)
        rc = writer_fail(w, -errno, "close: %s", strerror(errno));
    if (err)
        *err = w->error;
    for (uint32_t i = 0; i < w->n_files; i++)
        free(w->files[i].id);
    free(w->files);
    for (uint32_t i = 0; w->queue && i < w->slots; i++)
        buf_free(&w->queue[i]);
    free(w->queue);
    buf_free(&w->out);
    buf_free(&w->comments);
    free(w);
    return rc;
}
