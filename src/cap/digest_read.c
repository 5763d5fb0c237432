/* layer 1 (io): digests: the reader, one of the formats of cap_open(). */
#include "src/cap/cap_impl.h"
#include "src/cap/digest_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct reader {
    struct digest_end end;
    uint8_t *strings;                            /* of the block */
    struct digest_record records[DIGEST_FRAMES]; /* of the block, in the order of numbers; n 0: not read */
    uint32_t n, at;                              /* frames of the block; the next one */
    uint64_t before;                             /* frames of the blocks before it */
    uint8_t *ring;                               /* DIGEST_RING places for frames, all zeros but what they hold */
    struct held {
        uint32_t head, behind, n; /* bytes before the gap, where those behind it begin, and where they end */
    } held[DIGEST_RING];
    unsigned turn; /* the next place */
    bool none;     /* no frame is read */
};

/* The bytes of a section. */
struct cursor {
    const uint8_t *p, *end;
    bool bad;
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

/* The records of a section of the block behind the frames that were read. *used: bytes of strings. */
static bool get_section(struct cap *cap, struct cursor *c, uint32_t n, uint32_t *used)
{
    struct reader *r = cap->live;
    uint64_t first = r->before + 1;
    struct digest_slots slots = {.last_n = 0};
    uint64_t number = 0, since;
    ns_t ts = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t has, before, len;
        struct digest_record *k;
        uint8_t slot;
        number += get_varint(c);
        since = get_varint(c);
        ts = (ns_t)((uint64_t)ts + ((since >> 1) ^ -(since & 1)));
        slot = get_byte(c) % DIGEST_SLOTS;
        len = (uint32_t)get_varint(c);
        if (c->bad || len < DIGEST_META || len > DIGEST_STRINGS + DIGEST_STRING_MAX - *used)
            return false;
        if (number < first || number - first >= r->n || ts < FRAME_TS_MIN || ts > FRAME_TS_MAX)
            return false;
        before = digest_before(&slots, slot, &has);
        get_string(c, r->strings + *used, len, r->strings + before, has);
        k = &r->records[number - first];
        if (c->bad || k->n || !is_sound(cap, r->strings + *used, len))
            return false;
        *k = (struct digest_record){.ts = ts, .number = number, .at = *used, .n = len};
        digest_now(&slots, slot, *used, len);
        *used += len;
    }
    return true;
}

/* Whether the frames of an owner are read. */
static bool is_wanted(const struct cap *c, uint32_t owner)
{
    return !c->owners || owner >= DIGEST_OWNERS || c->owners[owner / 64] >> owner % 64 & 1;
}

static bool get_sections(struct cap *c, const uint8_t *p, const uint8_t *end)
{
    struct reader *r = c->live;
    uint32_t used = 0, all = 0, n, len;

    while (end - p >= DIGEST_SECTION) {
        bool wanted = is_wanted(c, load_le32(p));
        n = load_le32(p + 4);
        len = load_le32(p + 8);
        p += DIGEST_SECTION;
        if (len > (size_t)(end - p) || n > r->n - all)
            return false;
        if (wanted && !get_section(c, &(struct cursor){p, p + len, false}, n, &used))
            return false;
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
    r->at = 0;
    if (!r->n || r->n > DIGEST_FRAMES)
        return cap_fail(c, source_offset(&c->src), "a block of a scan with %u frames", r->n);
    memset(r->records, 0, r->n * sizeof *r->records);
    if (!get_sections(c, h + 8, h + 4 + n))
        return cap_fail(c, source_offset(&c->src), "a block of a scan is damaged");
    source_skip(&c->src, 4 + n);
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

/* Go to the next record that was read: 1; 0: there is none; a negative errno. */
static int find_record(struct cap *c)
{
    struct reader *r = c->live;
    int rc = r->none ? 0 : 1;

    while (rc > 0) {
        while (r->at < r->n && !r->records[r->at].n)
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
    const struct digest_record *k;
    struct digest_part part;
    int rc = find_record(c);

    if (rc == 0 && r->end.error.err) { /* so ended the reading of the shard */
        r->end.error.file = c->error.file;
        c->error = r->end.error;
        c->scanned_so = true;
        return c->error.err;
    }
    if (rc <= 0)
        return rc;
    k = &r->records[r->at++];
    memset(f, 0, sizeof *f);
    digest_meta_get(r->strings + k->at, f, &part);
    f->ts = k->ts;
    f->number = k->number;
    f->file = c->file;
    f->data = restore(c, r->strings + k->at + DIGEST_META, f, &part);
    c->frames++;
    return 1;
}

static void digest_close(struct cap *c)
{
    struct reader *r = c->live;

    free(r->strings);
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
    r->ring = calloc(DIGEST_RING, (size_t)r->end.longest + 1);
    c->next = digest_next;
    r->none = c->owners != NULL;
    for (unsigned i = 0; c->owners && i < DIGEST_OWNERS / 64; i++)
        r->none &= !c->owners[i];
    if (!r->strings || !r->ring)
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
