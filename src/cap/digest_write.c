/* layer 1 (io): digests: the writer, and copies for somebody who follows some of the owners. */
#include "beside.h"
#include "src/cap/digest_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct digest_writer {
    int fd;
    int err;            /* negative errno of the first failure */
    struct buf out;     /* the encoded block */
    uint8_t *strings;   /* of the block */
    uint32_t n_strings; /* bytes of them */
    uint32_t n;         /* frames of the block */
    uint32_t longest;   /* captured bytes of a frame */
    uint64_t kept, all; /* captured bytes */
    struct digest_record records[DIGEST_FRAMES], sorted[DIGEST_FRAMES];
};

static void write_out(struct digest_writer *w)
{
    for (size_t at = 0; at < w->out.len && !w->err;) {
        ssize_t n = write(w->fd, w->out.p + at, w->out.len - at);
        if (n < 0 && errno != EINTR)
            w->err = -errno;
        at += n > 0 ? (size_t)n : 0;
    }
    if (w->out.err && !w->err)
        w->err = -ENOMEM;
    w->out.len = 0;
}

struct digest_writer *digest_create(const char *path)
{
    struct digest_writer *w = calloc(1, sizeof *w);

    if (w)
        w->strings = malloc(DIGEST_STRINGS + DIGEST_STRING_MAX + 8);
    if (!w || !w->strings) {
        free(w);
        errno = ENOMEM;
        return NULL;
    }
    w->fd = beside_hold(path);
    if (w->fd < 0) {
        free(w->strings);
        free(w);
        return NULL;
    }
    buf_mem(&w->out, DIGEST_MAGIC, DIGEST_MAGIC_LEN);
    write_out(w);
    return w;
}

/* --- A block ---------------------------------------------------------------------------------- */

static void put_varint(struct buf *b, uint64_t v)
{
    for (; v >= 128; v >>= 7)
        buf_char(b, (char)(v | 128));
    buf_char(b, (char)v);
}

static void put_le32(struct buf *b, uint32_t v)
{
    uint8_t le[4];

    store_le32(le, v);
    buf_mem(b, le, sizeof le);
}

/* Those of the `n` bytes (at most 8) at `s` that differ from `before`, which has `has` bytes, behind a mask of them.
 * Returns whether there are any. */
static bool put_eight(uint8_t **to, const uint8_t *s, uint32_t n, const uint8_t *before, uint32_t has)
{
    uint8_t *mask = *to, *q = mask + 1;

    if (n == 8 && has >= 8 && memcmp(s, before, 8) == 0)
        return false;
    *mask = 0;
    for (unsigned i = 0; i < n; i++)
        if (s[i] != (i < has ? before[i] : 0)) {
            *mask |= (uint8_t)(1u << i);
            *q++ = s[i];
        }
    if (*mask)
        *to = q;
    return *mask != 0;
}

/* What of a string differs from the one before: for each 64 bytes a mask of the groups of eight that do, and their
 * own masks. */
static void put_string(struct buf *b, const uint8_t *s, uint32_t n, const uint8_t *before, uint32_t has)
{
    uint8_t *to, *top = NULL;

    if (!buf_need(b, (size_t)(n / 64 + 1) * 73))
        return;
    to = (uint8_t *)b->p + b->len;
    for (uint32_t i = 0; i < n; i += 8) {
        if (i % 64 == 0) {
            top = to++;
            *top = 0;
        }
        if (put_eight(&to, s + i, min_u32(8, n - i), before + i, has > i ? has - i : 0))
            *top |= (uint8_t)(1u << i / 8 % 8);
    }
    b->len = (size_t)(to - (uint8_t *)b->p);
}

static void put_section(struct digest_writer *w, const struct digest_record *r, uint32_t n)
{
    struct digest_slots slots = {.last_n = 0};
    struct buf *b = &w->out;
    uint64_t number = 0;
    ns_t ts = 0;
    size_t head = b->len;

    if (!buf_need(b, DIGEST_SECTION))
        return;
    b->len += DIGEST_SECTION;
    for (uint32_t i = 0; i < n; i++, r++) {
        int64_t since = r->ts - ts;
        uint32_t has, before = digest_before(&slots, r->slot, &has);
        put_varint(b, r->number - number);
        put_varint(b, (uint64_t)since << 1 ^ (uint64_t)(since >> 63));
        buf_char(b, (char)r->slot);
        put_varint(b, r->n);
        put_string(b, w->strings + r->at, r->n, w->strings + before, has);
        digest_now(&slots, r->slot, r->at, r->n);
        number = r->number;
        ts = r->ts;
    }
    store_le32((uint8_t *)b->p + head, r[-1].owner);
    store_le32((uint8_t *)b->p + head + 4, n);
    store_le32((uint8_t *)b->p + head + 8, (uint32_t)(b->len - head - DIGEST_SECTION));
}

/* Sort the records by owner; those of an owner stay in their order. */
static void sort_records(struct digest_writer *w)
{
    uint32_t begin[DIGEST_OWNERS + 2] = {0};

    for (uint32_t i = 0; i < w->n; i++)
        begin[w->records[i].owner + 1]++;
    for (unsigned o = 0; o <= DIGEST_OWNERS; o++)
        begin[o + 1] += begin[o];
    for (uint32_t i = 0; i < w->n; i++)
        w->sorted[begin[w->records[i].owner]++] = w->records[i];
}

static void put_block(struct digest_writer *w)
{
    if (!w->n)
        return;
    sort_records(w);
    put_le32(&w->out, 0);
    put_le32(&w->out, w->n);
    for (uint32_t i = 0, n; i < w->n; i += n) {
        for (n = 1; i + n < w->n && w->sorted[i + n].owner == w->sorted[i].owner;)
            n++;
        put_section(w, &w->sorted[i], n);
    }
    if (!w->out.err)
        store_le32((uint8_t *)w->out.p, (uint32_t)(w->out.len - 4));
    write_out(w);
    w->n = w->n_strings = 0;
}

void digest_put(struct digest_writer *w, const struct frame *f, const struct digest_part *part)
{
    uint8_t *s = w->strings + w->n_strings, *to = s + DIGEST_META;
    uint32_t behind = part->gap_at + part->gap;

    digest_meta_put(s, f, part);
    memcpy(to, f->data, part->gap_at);
    memcpy(to + part->gap_at, f->data + behind, f->caplen - behind);
    if (part->stand_in)
        memcpy(to + part->gap_at, part->stand_in, 4);
    w->records[w->n] = (struct digest_record){.ts = f->ts,
                                              .number = f->number,
                                              .at = w->n_strings,
                                              .n = DIGEST_META + f->caplen - part->gap,
                                              .owner = part->owner,
                                              .slot = (uint8_t)(part->like % DIGEST_SLOTS)};
    w->n_strings += w->records[w->n].n;
    w->longest = max_u32(w->longest, f->caplen);
    w->kept += f->caplen - part->gap;
    w->all += f->caplen;
    if (++w->n == DIGEST_FRAMES || w->n_strings >= DIGEST_STRINGS)
        put_block(w);
}

/* --- The end ---------------------------------------------------------------------------------- */

static void put_end(struct digest_writer *w, struct digest_end *e)
{
    struct pack k = {.out = &w->out};
    size_t from;

    put_block(w);
    put_le32(&w->out, 0);
    from = w->out.len;
    e->longest = w->longest;
    e->bytes_kept = w->kept;
    e->bytes_all = w->all;
    digest_pack_end(&k, e);
    put_le32(&w->out, (uint32_t)(w->out.len - from));
    put_le32(&w->out, 0);
    buf_mem(&w->out, DIGEST_END_MAGIC, 8);
    write_out(w);
}

int digest_finish(struct digest_writer *w, struct digest_end *e)
{
    int err;

    if (e)
        put_end(w, e);
    if (close(w->fd) < 0 && !w->err)
        w->err = -errno;
    err = w->err;
    buf_free(&w->out);
    free(w->strings);
    free(w);
    return err;
}

/* --- A copy ----------------------------------------------------------------------------------- */

struct copy {
    FILE *from, *to;
    uint8_t *block;         /* DIGEST_BLOCK_MAX bytes */
    const uint64_t *owners; /* a bit each */
    uint16_t file;
};

static bool is_kept(const struct copy *c, uint32_t owner)
{
    return digest_owners_have(c->owners, owner, c->file);
}

/* Empty the sections of other owners in the `n` bytes of a block; how many bytes are left, 0: it is damaged. */
static uint32_t empty_sections(const struct copy *c, uint32_t n)
{
    uint32_t at = 4, to = 4;

    while (n - at >= DIGEST_SECTION) {
        uint8_t *s = c->block + at;
        uint32_t len = load_le32(s + 8), kept = is_kept(c, load_le32(s)) ? len : 0;
        if (len > n - at - DIGEST_SECTION)
            return 0;
        store_le32(s + 8, kept);
        memmove(c->block + to, s, DIGEST_SECTION + kept);
        at += DIGEST_SECTION + len;
        to += DIGEST_SECTION + kept;
    }
    return at == n ? to : 0;
}

/* Copy the next block. `*whole`: frames of blocks that are still copied whole. 1; 0: there is none; a negative errno.
 */
static int copy_block(struct copy *c, uint64_t *whole)
{
    uint8_t head[4];
    uint32_t n, frames, left;

    if (fread(head, sizeof head, 1, c->from) != 1)
        return -EINVAL;
    n = left = load_le32(head);
    if (n && (n < 4 || n > DIGEST_BLOCK_MAX || fread(c->block, n, 1, c->from) != 1))
        return -EINVAL;
    frames = n ? load_le32(c->block) : 0;
    if (n && !*whole && !(left = empty_sections(c, n)))
        return -EINVAL;
    *whole -= *whole < frames ? *whole : frames;
    store_le32(head, left);
    if (fwrite(head, sizeof head, 1, c->to) != 1 || (n && fwrite(c->block, left, 1, c->to) != 1))
        return -EIO;
    return n != 0;
}

/* What follows the blocks. */
static int copy_end(struct copy *c)
{
    size_t n;

    while ((n = fread(c->block, 1, DIGEST_BLOCK_MAX, c->from)) > 0)
        if (fwrite(c->block, n, 1, c->to) != 1)
            return -EIO;
    return ferror(c->from) ? -EIO : 0;
}

int digest_copy(const char *path, const char *to, const uint64_t *owners, uint16_t file, uint64_t whole)
{
    struct copy c = {.from = fopen(path, "re"), .to = fopen(to, "we"), .owners = owners, .file = file};
    uint8_t magic[DIGEST_MAGIC_LEN];
    int rc = c.from && c.to && (c.block = malloc(DIGEST_BLOCK_MAX)) ? 1 : -errno;

    if (rc > 0 && (fread(magic, sizeof magic, 1, c.from) != 1 || memcmp(magic, DIGEST_MAGIC, sizeof magic) != 0))
        rc = -EINVAL;
    if (rc > 0 && fwrite(magic, sizeof magic, 1, c.to) != 1)
        rc = -EIO;
    while (rc > 0)
        rc = copy_block(&c, &whole);
    if (rc == 0)
        rc = copy_end(&c);
    if (c.from)
        fclose(c.from);
    if (c.to && fclose(c.to) != 0 && rc == 0)
        rc = -EIO;
    free(c.block);
    return rc;
}
