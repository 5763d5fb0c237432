/* layer 1 (io): digests: sets of pairs; the numbers of a frame; the end, written and read by the same description. */
#include "src/cap/digest_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- Pairs of addresses ----------------------------------------------------------------------- */

static int ascending(const void *x, const void *y)
{
    const uint64_t *a = x, *b = y;

    return (*a > *b) - (*a < *b);
}

void digest_pairs_sort(struct digest_pairs *s)
{
    size_t n = 0;

    if (s->n)
        qsort(s->of, s->n, sizeof *s->of, ascending);
    for (size_t i = 0; i < s->n; i++)
        if (!n || s->of[n - 1] != s->of[i])
            s->of[n++] = s->of[i];
    s->n = n;
    if (n > DIGEST_PAIRS)
        s->any = true;
    if (s->any)
        s->n = 0;
}

void digest_pairs_add(struct digest_pairs *s, uint64_t pair)
{
    if (s->any)
        return;
    if (!s->of)
        s->of = malloc(2 * DIGEST_PAIRS * sizeof *s->of);
    s->any = !s->of;
    if (s->n == (size_t)2 * DIGEST_PAIRS)
        digest_pairs_sort(s);
    if (!s->any)
        s->of[s->n++] = pair;
}

bool digest_pairs_has(const struct digest_pairs *s, uint64_t pair)
{
    return s->any || (s->n && bsearch(&pair, s->of, s->n, sizeof *s->of, ascending));
}

bool digest_pairs_meet(const struct digest_pairs *a, const struct digest_pairs *b)
{
    if ((a->any && (b->n || b->any)) || (b->any && a->n))
        return true;
    for (size_t i = 0, k = 0; i < a->n && k < b->n; a->of[i] < b->of[k] ? i++ : k++)
        if (a->of[i] == b->of[k])
            return true;
    return false;
}

/* --- A frame ---------------------------------------------------------------------------------- */

enum { HAS_TS = 1, HAS_IFACE = 2, ICRC_GOOD = 4 };

void digest_meta_put(uint8_t *meta, const struct frame *f, const struct digest_part *part)
{
    unsigned bits = (f->has_ts ? HAS_TS : 0) | (f->has_iface ? HAS_IFACE : 0) | (part->icrc_good ? ICRC_GOOD : 0);
    const uint32_t words[] = {f->caplen,
                              f->len,
                              part->gap_at,
                              part->gap,
                              f->iface,
                              f->flags,
                              f->iface_id,
                              (uint32_t)f->drops,
                              (uint32_t)(f->drops >> 32)};

    for (unsigned i = 0; i < ARRAY_LEN(words); i++)
        store_le32(meta + 4 * i, words[i]);
    store_le32(meta + 36, (uint32_t)f->linktype | (uint32_t)f->fcs_len << 16 | bits << 24);
}

void digest_meta_get(const uint8_t *meta, struct frame *f, struct digest_part *part)
{
    *part = (struct digest_part){.gap_at = load_le32(meta + 8), .gap = load_le32(meta + 12)};
    part->icrc_good = meta[39] & ICRC_GOOD;
    f->caplen = load_le32(meta);
    f->len = load_le32(meta + 4);
    f->iface = load_le32(meta + 16);
    f->flags = load_le32(meta + 20);
    f->iface_id = load_le32(meta + 24);
    f->drops = load_le64(meta + 28);
    f->linktype = load_le16(meta + 36);
    f->fcs_len = meta[38];
    f->has_ts = meta[39] & HAS_TS;
    f->has_iface = meta[39] & HAS_IFACE;
    f->icrc_good = part->icrc_good;
}

/* --- The end ---------------------------------------------------------------------------------- */

static void pack_pairs(struct pack *k, struct digest_pairs *s)
{
    PACK(k, s->any);
    PACK(k, s->n);
    if (!k->out && s->n) {
        k->bad |= s->n > DIGEST_PAIRS || s->n * 8 > (size_t)(k->end - k->p);
        s->of = k->bad ? NULL : calloc(s->n, sizeof *s->of);
        s->n = s->of ? s->n : 0;
    }
    for (size_t i = 0; i < s->n; i++)
        PACK(k, s->of[i]);
}

static void pack_iface(struct pack *k, struct cap_iface *i)
{
    PACK(k, i->linktype);
    PACK(k, i->fcs_len);
    PACK(k, i->tsresol);
    PACK(k, i->snaplen);
    PACK(k, i->tsoffset);
    PACK(k, i->section);
    PACK(k, i->id);
    PACK(k, i->speed);
    PACK(k, i->received);
    PACK(k, i->dropped);
    PACK(k, i->os_dropped);
    PACK(k, i->has_drops);
    pack_text(k, &i->name, CAP_TEXT_MAX);
    pack_text(k, &i->description, CAP_TEXT_MAX);
    pack_text(k, &i->comment, CAP_TEXT_MAX);
    pack_text(k, &i->filter, CAP_TEXT_MAX);
    pack_text(k, &i->os, CAP_TEXT_MAX);
}

static void pack_ifaces(struct pack *k, struct cap_info *info)
{
    struct cap_iface *ifaces = (struct cap_iface *)info->ifaces;

    PACK(k, info->n_ifaces);
    if (!k->out) {
        k->bad |= info->n_ifaces > CAP_IFACES_MAX;
        ifaces = k->bad ? NULL : calloc(info->n_ifaces + 1, sizeof *ifaces);
        info->ifaces = ifaces;
        info->n_ifaces = ifaces ? info->n_ifaces : 0;
    }
    for (uint32_t i = 0; i < info->n_ifaces && !k->bad; i++)
        pack_iface(k, &ifaces[i]);
}

#define ERRNO_MOST 4095 /* the kernel has none beyond it */

static void pack_error(struct pack *k, struct cap_error *e)
{
    e->err = (int)(int64_t)pack_number(k, (uint64_t)(int64_t)e->err);
    PACK(k, e->offset);
    PACK(k, e->frame);
    PACK(k, e->has_offset);
    PACK(k, e->unpacked);
    pack_bytes(k, e->msg, sizeof e->msg);
    e->msg[sizeof e->msg - 1] = 0;
    k->bad |= e->err > 0 || e->err < -ERRNO_MOST;
}

void digest_pack_end(struct pack *k, struct digest_end *e)
{
    pack_text(k, &e->shard, 65536);
    PACK(k, e->size);
    PACK(k, e->mtime);
    PACK(k, e->info.format);
    PACK(k, e->info.compression);
    PACK(k, e->info.big_endian);
    PACK(k, e->info.nanoseconds);
    PACK(k, e->info.n_sections);
    PACK(k, e->info.frames);
    pack_error(k, &e->error);
    PACK(k, e->longest);
    PACK(k, e->bytes_kept);
    PACK(k, e->bytes_all);
    pack_pairs(k, &e->asked);
    pack_pairs(k, &e->left_out);
    pack_ifaces(k, &e->info);
    k->bad |= e->longest > FRAME_MAX;
    PACK(k, e->may_share);
    if (!k->out)
        e->last = k->bad ? NULL : calloc(e->info.n_ifaces + 1, sizeof *e->last);
    k->bad |= !e->last && !k->out;
    for (uint32_t i = 0; i < e->info.n_ifaces && !k->bad; i++) {
        uint64_t last = pack_number(k, (uint64_t)(e->last ? e->last[i] : INT64_MIN));
        if (!k->out)
            e->last[i] = (int64_t)last;
    }
}

void digest_end_free(struct digest_end *e)
{
    for (uint32_t i = 0; i < e->info.n_ifaces; i++) {
        const struct cap_iface *f = &e->info.ifaces[i];
        free(f->name);
        free(f->description);
        free(f->comment);
        free(f->filter);
        free(f->os);
    }
    free((void *)e->info.ifaces);
    free(e->asked.of);
    free(e->left_out.of);
    free(e->last);
    free(e->shard);
    *e = (struct digest_end){0};
}

void digest_stamp(struct digest_end *e, const struct stat *st)
{
    e->size = (uint64_t)st->st_size;
    e->mtime = (uint64_t)st->st_mtim.tv_sec * NS_PER_S + (uint64_t)st->st_mtim.tv_nsec;
}

bool digest_is_of(const struct digest_end *e, const struct stat *st)
{
    struct digest_end now;

    digest_stamp(&now, st);
    return e->size == now.size && e->mtime == now.mtime;
}

#define END_MAX (UINT32_C(64) << 20) /* bytes of an end */

/* The end's bytes; NULL if there is none. */
static uint8_t *end_bytes(int fd, size_t *n)
{
    uint8_t tail[DIGEST_TAIL], *b;
    off_t size = lseek(fd, 0, SEEK_END);
    uint64_t len;

    if (size < DIGEST_MAGIC_LEN + DIGEST_TAIL || pread(fd, tail, sizeof tail, size - DIGEST_TAIL) != DIGEST_TAIL)
        return NULL;
    len = load_le64(tail);
    if (memcmp(tail + 8, DIGEST_END_MAGIC, 8) != 0 || len > END_MAX || (off_t)len > size - DIGEST_TAIL)
        return NULL;
    b = malloc(len + 1);
    if (b && pread(fd, b, len, size - DIGEST_TAIL - (off_t)len) != (ssize_t)len) {
        free(b);
        b = NULL;
    }
    *n = len;
    return b;
}

int digest_end_read(struct digest_end *e, const char *path)
{
    char magic[DIGEST_MAGIC_LEN];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t *b = NULL;
    size_t n = 0;
    struct pack k;

    *e = (struct digest_end){0};
    if (fd < 0)
        return -errno;
    if (pread(fd, magic, sizeof magic, 0) == sizeof magic && memcmp(magic, DIGEST_MAGIC, sizeof magic) == 0)
        b = end_bytes(fd, &n);
    close(fd);
    k = (struct pack){.p = b, .end = b ? b + n : NULL, .bad = !b};
    if (b)
        digest_pack_end(&k, e);
    free(b);
    if (!k.bad && e->shard)
        return 0;
    digest_end_free(e);
    return -EINVAL;
}
