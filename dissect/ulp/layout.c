/* layer 1 (wire): messages of upper protocols written and read by the rows of their tables. */
#include "dissect/ulp/layout.h"

#include <assert.h>

#include "bits.h"
#include "le.h"

static const struct field *row_of(const struct hdr *h, const char *name)
{
    const struct field *f = h->fields;

    while (f < h->fields + h->nfields && (f->get || strcmp(f->abbrev, name) != 0))
        f++;
    assert(f < h->fields + h->nfields);
    return f;
}

/* The bits of a little-endian number that the row has. */
static uint64_t le_mask(const struct field *f)
{
    unsigned bits = f->le_bits ? f->le_bits : f->width;

    return (bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX) << f->le_shift;
}

void layout_set(const struct hdr *h, uint8_t *b, const char *name, uint64_t v)
{
    const struct field *f = row_of(h, name);
    uint8_t *p = b + f->bit / 8;
    uint64_t all;

    if (!(f->flags & FLD_LE)) {
        bits_put(b, f->bit, f->width, v);
        return;
    }
    all = (load_le(p, f->width / 8u) & ~le_mask(f)) | (v << f->le_shift & le_mask(f));
    store_le(p, f->width / 8u, all);
}

uint64_t layout_get(const struct hdr *h, const uint8_t *b, const char *name)
{
    const struct field *f = row_of(h, name);

    if (!(f->flags & FLD_LE))
        return bits_get(b, f->bit, f->width);
    return (load_le(b + f->bit / 8, f->width / 8u) & le_mask(f)) >> f->le_shift;
}

const uint8_t *layout_bytes(const struct hdr *h, const uint8_t *b, const char *name, uint32_t *len)
{
    const struct field *f = row_of(h, name);

    *len = f->width / 8u;
    return b + f->bit / 8;
}

void layout_set_text(const struct hdr *h, uint8_t *b, const char *name, const char *text, char pad)
{
    const struct field *f = row_of(h, name);
    uint8_t *p = b + f->bit / 8;
    size_t n = strlen(text), room = f->width / 8u;

    n = n < room ? n : room;
    memset(p, pad, room);
    memcpy(p, text, n);
}
