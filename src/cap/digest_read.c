/* layer 1 (io): digests: the reader, one of the formats of cap_open(). */
#include "src/cap/cap_impl.h"
#include "src/cap/digest_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* The bytes of a section. */
struct cursor {
    const uint8_t *p, *end;
    bool bad;
};

#define SECTIONS (DIGEST_OWNERS + 1) /* of a block, at most */

/* A section of a block, as far as it was read. */
struct section {
    struct cursor c;
    uint32_t left;   /* records whose number was not read */
    uint64_t number; /* of the latest record whose number was read */
    ns_t ts;         /* of the record before it */
    struct digest_slots slots;
};

struct reader {
    struct digest_end end;
    uint8_t *strings;           /* of the block, of the frames read so far: */
    uint32_t used;              /* bytes */
    struct section *sections;   /* of the block, those that are read */
    uint16_t of[DIGEST_FRAMES]; /* of the block, by number: 1 + the section whose next record is that of the frame */
    uint32_t n, at;             /* frames of the block; the next one */
    uint64_t before;            /* frames of the blocks before it */
    uint8_t *ring;              /* DIGEST_RING places for frames, all zeros but what they hold */
    struct held {
        uint32_t head, behind, n; /* bytes before the gap, where those behind it begin, and where they end */
    } held[DIGEST_RING];
    unsigned turn; /* the next place */
    bool none;     /* no frame is read */
};

static uint64_t get_varint(struct cursor *c)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64 && c->p < c->end; shift += 7) {
        uint8_t b = *c->p++;
        v |= (uint64_t)(b & 127) << shift;
        if (!(b & 128))
            return v;
    }
    c->bad = true;
    return 0;
}

static uint8_t get_byte(struct cursor *c)
{
    if (LIKELY(c->p < c->end))
        return *c->p++;
    c->bad = true;
    return 0;
}

/* The string at `s`, `n` bytes, which begins as the `has` bytes at `before`. */
static void get_string(struct cursor *c, uint8_t *s, uint32_t n, const uint8_t *before, uint32_t has)
{
    memcpy(s, before, min_u32(n, has));
    if (n > has)
        memset(s + has, 0, n - has);
    for (uint32_t i = 0; i < n && !c->bad; i += 64)
        for (unsigned top = get_byte(c); top; top &= top - 1) {
            uint32_t at = i + 8 * (uint32_t)__builtin_ctz(top);
            if (at >= n)
                break;
            for (unsigned mask = get_byte(c); mask; mask &= mask - 1) {
                uint32_t k = at + (uint32_t)__builtin_ctz(mask);
                c->bad |= k >= n;
                if (LIKELY(k < n))
                    s[k] = get_byte(c);
            }
        }
}

/* --- A block ---------------------------------------------------------------------------------- */

/* Whether a string says what can be of a frame. */
static bool is_sound(const struct cap *c, const uint8_t *s, uint32_t n)
{
    const struct reader *r = c->live;
    struct digest_part part;
    struct frame f;

    digest_meta_get(s, &f, &part);
    return f.iface < c->n_ifaces && f.caplen <= r->end.longest && part.gap <= f.caplen &&
           part.gap_at <= f.caplen - part.gap && n == DIGEST_META + f.caplen - part.gap;
}

/* Read the number of the next record of section `s`: so records are read in the order of frames, each when its frame is
 * wanted. False: it is damaged. */
static bool get_number(struct reader *r, uint32_t s)
{
    struct section *x = &r->sections[s];
    uint64_t i;

    if (!x->left)
        return true;
    x->left--;
    x->number += get_varint(&x->c);
    i = x->number - (r->before + 1);
    if (x->c.bad || x->number <= r->before || i < r->at || i >= r->n || r->of[i])
        return false;
    r->of[i] = (uint16_t)(s + 1);
    return true;
}

/* Read the rest of the record of section `x` whose number was read: its string, *at. False: it is damaged. */
static bool get_record(const struct cap *cap, struct section *x, uint32_t *at)
{
    struct reader *r = cap->live;
    uint64_t since = get_varint(&x->c);
    uint32_t has, before, len;
    uint8_t slot;

    x->ts = (ns_t)((uint64_t)x->ts + ((since >> 1) ^ -(since & 1)));
    slot = get_byte(&x->c) % DIGEST_SLOTS;
    len = (uint32_t)get_varint(&x->c);
    if (x->c.bad || len < DIGEST_META || len > DIGEST_STRINGS + DIGEST_STRING_MAX - r->used || x->ts < FRAME_TS_MIN ||
        x->ts > FRAME_TS_MAX)
        return false;
    before = digest_before(&x->slots, slot, &has);
    get_string(&x->c, r->strings + r->used, len, r->strings + before, has);
    if (x->c.bad || !is_sound(cap, r->strings + r->used, len))
        return false;
    digest_now(&x->slots, slot, r->used, len);
    *at = r->used;
    r->used += len;
    return true;
}

/* Whether the frames of an owner are read. */
static bool is_wanted(const struct cap *c, uint32_t owner)
{
    return !c->owners || digest_owners_have(c->owners, owner, c->file);
}

static bool get_sections(struct cap *c, const uint8_t *p, const uint8_t *end)
{
    struct reader *r = c->live;
    uint32_t all = 0, wanted = 0, n, len;

    while (end - p >= DIGEST_SECTION) {
        bool is = is_wanted(c, load_le32(p));
        n = load_le32(p + 4);
        len = load_le32(p + 8);
        p += DIGEST_SECTION;
        if (len > (size_t)(end - p) || n > r->n - all || (is && wanted == SECTIONS))
            return false;
        if (is) {
            r->sections[wanted] = (struct section){.c = {p, p + len, false}, .left = n};
            if (!get_number(r, wanted++))
                return false;
        }
        all += n;
        p += len;
    }
    return p == end && all == r->n;
}

/* Read the next block: 1; 0: there is none; a negative errno. */
static int get_block(struct cap *c)
{
    struct reader *r = c->live;
    const uint8_t *h = source_peek(&c->src, 4);
    uint32_t n = h ? load_le32(h) : 0;

    if (h && !n)
        return 0;
    r->before += r->n;
    if (n > DIGEST_BLOCK_MAX || !(h = source_peek(&c->src, 4 + n)) || n < 4)
        return cap_fail(c, source_offset(&c->src), "a block of a scan of %u bytes, which is not there", n);
    r->n = load_le32(h + 4);
    r->at = r->used = 0;
    if (!r->n || r->n > DIGEST_FRAMES)
        return cap_fail(c, source_offset(&c->src), "a block of a scan with %u frames", r->n);
    memset(r->of, 0, r->n * sizeof *r->of);
    if (!get_sections(c, h + 8, h + 4 + n))
        return cap_fail(c, source_offset(&c->src), "a block of a scan is damaged");
    source_skip(&c->src, 4 + n); /* its bytes stay until the next one is looked at */
    return 1;
}

/* --- Frames ----------------------------------------------------------------------------------- */

/* Put the bytes of a frame into the next place, which has zeros in its gap. */
static const uint8_t *restore(struct cap *c, const uint8_t *bytes, const struct frame *f,
                              const struct digest_part *part)
{
    struct reader *r = c->live;
    struct held *h = &r->held[r->turn];
    uint8_t *to = r->ring + (size_t)r->turn * (r->end.longest + 1);

    memset(to, 0, h->head);
    memset(to + h->behind, 0, h->n - h->behind);
    *h = (struct held){part->gap_at, part->gap_at + part->gap, f->caplen};
    memcpy(to, bytes, h->head);
    memcpy(to + h->behind, bytes + h->head, h->n - h->behind);
    r->turn = (r->turn + 1) % DIGEST_RING;
    return to;
}

/* Go to the next frame that is read: 1; 0: there is none; a negative errno. */
static int find_record(struct cap *c)
{
    struct reader *r = c->live;
    int rc = r->none ? 0 : 1;

    while (rc > 0) {
        while (r->at < r->n && !r->of[r->at])
            r->at++;
        if (r->at < r->n)
            break;
        rc = get_block(c);
    }
    return rc;
}

static int digest_next(struct cap *c, struct frame *f)
{
    struct reader *r = c->live;
    struct digest_part part;
    struct section *x;
    uint32_t at, section;
    int rc = find_record(c);

    if (rc == 0 && c->owners) /* others have read the rest */
        c->frames = r->end.info.frames;
    if (rc == 0 && r->end.error.err) { /* so ended the reading of the shard */
        r->end.error.file = c->error.file;
        c->error = r->end.error;
        c->scanned_so = true;
        return c->error.err;
    }
    if (rc <= 0)
        return rc;
    section = r->of[r->at++] - 1u;
    x = &r->sections[section];
    memset(f, 0, sizeof *f);
    f->number = x->number;
    if (!get_record(c, x, &at) || !get_number(r, section))
        return cap_fail(c, source_offset(&c->src), "a block of a scan is damaged");
    f->ts = x->ts;
    digest_meta_get(r->strings + at, f, &part);
    f->file = c->file;
    f->data = restore(c, r->strings + at + DIGEST_META, f, &part);
    f->brief = true;
    c->frames++;
    return 1;
}

static void digest_close(struct cap *c)
{
    struct reader *r = c->live;

    free(r->strings);
    free(r->sections);
    free(r->ring);
    digest_end_free(&r->end);
    free(r);
}

/* What the end says of the whole file, from its beginning. */
static int adopt(struct cap *c, struct reader *r)
{
    c->live = r;
    c->close = digest_close;
    c->ifaces = (struct cap_iface *)r->end.info.ifaces;
    c->n_ifaces = c->ifaces_cap = r->end.info.n_ifaces;
    r->end.info.ifaces = NULL;
    r->end.info.n_ifaces = 0;
    c->info = r->end.info;
    r->strings = malloc(DIGEST_STRINGS + DIGEST_STRING_MAX);
    r->sections = calloc(SECTIONS, sizeof *r->sections);
    r->ring = calloc(DIGEST_RING, (size_t)r->end.longest + 1);
    c->next = digest_next;
    r->none = c->owners != NULL;
    for (unsigned i = 0; c->owners && i < DIGEST_OWNERS / 64; i++)
        r->none &= !c->owners[i];
    if (!r->strings || !r->sections || !r->ring)
        return cap_fail(c, 0, "out of memory");
    c->error.file = r->end.shard;
    return 1;
}

int digest_begin(struct cap *c)
{
    const uint8_t *h = source_peek(&c->src, DIGEST_MAGIC_LEN);
    struct reader *r;

    if (!h || memcmp(h, DIGEST_MAGIC, DIGEST_MAGIC_LEN) != 0)
        return 0;
    r = calloc(1, sizeof *r);
    if (!r || digest_end_read(&r->end, c->error.file) != 0) {
        free(r);
        return cap_fail(c, 0, "a scan that was not finished");
    }
    source_skip(&c->src, DIGEST_MAGIC_LEN);
    return adopt(c, r);
}
