/* layer 1 (io): the pcapng format (IETF draft-ietf-opsawg-pcapng). */
#include "src/cap/cap_impl.h"

#include <inttypes.h>

enum block_type {
    BLOCK_SECTION = 0x0a0d0d0a,
    BLOCK_INTERFACE = 1,
    BLOCK_PACKET = 2, /* obsolete */
    BLOCK_SIMPLE = 3,
    BLOCK_STATISTICS = 5,
    BLOCK_ENHANCED = 6,
};

enum option_code {
    OPT_END = 0,
    OPT_COMMENT = 1,
    SHB_HARDWARE = 2,
    SHB_OS = 3,
    SHB_USERAPPL = 4,
    IF_NAME = 2,
    IF_DESCRIPTION = 3,
    IF_SPEED = 8,
    IF_TSRESOL = 9,
    IF_FILTER = 11,
    IF_OS = 12,
    IF_FCSLEN = 13,
    IF_TSOFFSET = 14,
    ISB_IFRECV = 4,
    ISB_IFDROP = 5,
    ISB_OSDROP = 7,
    PACKET_FLAGS = 2, /* epb_flags and pack_flags */
    EPB_DROPCOUNT = 4,
};

#define BYTE_ORDER_MAGIC UINT32_C(0x1a2b3c4d)
/* Header (type, length) and trailer (length) of every block. */
#define BLOCK_HEAD 8
#define BLOCK_MIN  12
/* Bytes of a block before its options or packet, header included. */
#define SECTION_FIXED    24
#define INTERFACE_FIXED  16
#define PACKET_FIXED     28
#define SIMPLE_FIXED     12
#define STATISTICS_FIXED 20

static size_t pad4(size_t n)
{
    return (n + 3) & ~(size_t)3;
}

/* Read the next option of a block: 1 with *code, *val and *len, 0 after the last. Wrong lengths are an error. */
static int option_next(struct cap *c, const uint8_t **p, const uint8_t *end, uint16_t *code, const uint8_t **val,
                       uint16_t *len)
{
    if (end - *p < 4)
        return 0;
    *code = cap_u16(c, *p);
    *len = cap_u16(c, *p + 2);
    *val = *p + 4;
    if (*code == OPT_END)
        return 0;
    if ((size_t)(end - *val) < *len)
        return cap_fail(c, source_offset(&c->src), "option %u of %s, only %td left in its block", *code,
                        count_str(*len, "byte"), end - *val);
    *p = (size_t)(end - *val) < pad4(*len) ? end : *val + pad4(*len);
    return 1;
}

/* Fill in the conversion of time stamps of resolution `r` to ns: 10^-n s, or 2^-n s if bit 7 is set. */
static void iface_resolution(struct cap_iface *i, uint8_t r)
{
    uint8_t n = r & 0x7f;

    i->tsresol = r;
    i->ts_mul = i->ts_div = 1;
    i->ts_shift = 0;
    if (r & 0x80) {
        i->ts_mul = (uint64_t)NS_PER_S;
        i->ts_shift = n;
        return;
    }
    for (; n < 9; n++)
        i->ts_mul *= 10;
    if (n > 9 + 19)
        i->ts_mul = 0; /* the largest time stamp is less than 1 ns */
    for (; n > 9 && i->ts_mul; n--)
        i->ts_div *= 10;
}

/* Nanoseconds since the epoch, within the limits of frame.ts. */
static ns_t iface_time(const struct cap_iface *i, uint64_t ts)
{
    uint64_t most = (uint64_t)FRAME_TS_MAX / (i->ts_mul == 1 ? 1 : 1000);
    bool plain = !i->ts_shift && i->ts_div == 1 && !i->tsoffset && i->ts_mul <= 1000;
    __int128 ns;

    if (LIKELY(plain && ts <= most))
        return (ns_t)(ts * i->ts_mul);
    unsigned __int128 u = (unsigned __int128)ts * i->ts_mul;
    ns = (__int128)(i->ts_shift ? u >> i->ts_shift : u / i->ts_div);
    ns += (__int128)i->tsoffset * NS_PER_S;
    return ns > FRAME_TS_MAX ? FRAME_TS_MAX : ns < FRAME_TS_MIN ? FRAME_TS_MIN : (ns_t)ns;
}

static int interface_options(struct cap *c, struct cap_iface *i, const uint8_t *p, const uint8_t *end)
{
    const uint8_t *val;
    uint16_t code, len;
    int rc;

    while ((rc = option_next(c, &p, end, &code, &val, &len)) > 0) {
        if (code == OPT_COMMENT && !i->comment)
            cap_text(c, &i->comment, val, len);
        else if (code == IF_NAME)
            cap_text(c, &i->name, val, len);
        else if (code == IF_DESCRIPTION)
            cap_text(c, &i->description, val, len);
        else if (code == IF_OS)
            cap_text(c, &i->os, val, len);
        else if (code == IF_FILTER && len > 1 && val[0] == 0)
            cap_text(c, &i->filter, val + 1, len - 1u);
        else if (code == IF_TSRESOL && len >= 1)
            iface_resolution(i, val[0]);
        else if (code == IF_FCSLEN && len >= 1)
            i->fcs_len = val[0];
        else if (code == IF_TSOFFSET && len >= 8)
            i->tsoffset = (int64_t)cap_u64(c, val);
        else if (code == IF_SPEED && len >= 8)
            i->speed = cap_u64(c, val);
    }
    return rc;
}

/* Link type 2, reserved 2, snap length 4, options. */
static int block_interface(struct cap *c, const uint8_t *b, uint32_t len)
{
    struct cap_iface *i = cap_iface_add(c, source_offset(&c->src));

    if (!i)
        return c->error.err;
    i->linktype = cap_u16(c, b + 8);
    i->snaplen = cap_u32(c, b + 12);
    i->section = c->info.n_sections - 1;
    i->id = c->n_ifaces - 1 - c->section_first;
    iface_resolution(i, 6);
    return interface_options(c, i, b + INTERFACE_FIXED, b + len - 4);
}

/* Interface 4, time stamp 8, options. */
static int block_statistics(struct cap *c, const uint8_t *b, uint32_t len)
{
    const uint8_t *p = b + STATISTICS_FIXED, *end = b + len - 4, *val;
    uint32_t id = cap_u32(c, b + 8);
    uint16_t code, n;
    int rc;

    if (id >= c->n_ifaces - c->section_first)
        return cap_fail(c, source_offset(&c->src), "statistics of interface %u, the section has %u", id,
                        c->n_ifaces - c->section_first);
    struct cap_iface *i = &c->ifaces[c->section_first + id];
    while ((rc = option_next(c, &p, end, &code, &val, &n)) > 0) {
        if (n < 8)
            continue;
        if (code == ISB_IFRECV)
            i->received = cap_u64(c, val);
        else if (code == ISB_IFDROP)
            i->dropped = cap_u64(c, val);
        else if (code == ISB_OSDROP)
            i->os_dropped = cap_u64(c, val);
        if (code == ISB_IFDROP || code == ISB_OSDROP)
            i->has_drops = true;
    }
    return rc;
}

/* Byte-order magic 4, version major 2, minor 2, section length 8, options. */
static int block_section(struct cap *c, const uint8_t *b, uint32_t len)
{
    const uint8_t *p = b + SECTION_FIXED, *end = b + len - 4, *val;
    struct cap_info *info = &c->info;
    uint16_t code, n;
    int rc;

    if (cap_u16(c, b + 12) != 1)
        return cap_fail(c, source_offset(&c->src), "section of pcapng version %u.%u, 1.0 is expected",
                        cap_u16(c, b + 12), cap_u16(c, b + 14));
    info->n_sections++;
    c->section_first = c->n_ifaces;
    cap_text(c, &info->hardware, p, 0);
    cap_text(c, &info->os, p, 0);
    cap_text(c, &info->app, p, 0);
    cap_text(c, &info->comment, p, 0);
    while ((rc = option_next(c, &p, end, &code, &val, &n)) > 0) {
        if (code == OPT_COMMENT && !info->comment)
            cap_text(c, &info->comment, val, n);
        else if (code == SHB_HARDWARE)
            cap_text(c, &info->hardware, val, n);
        else if (code == SHB_OS)
            cap_text(c, &info->os, val, n);
        else if (code == SHB_USERAPPL)
            cap_text(c, &info->app, val, n);
    }
    return rc;
}

/* Options of a packet: comment, flags, drops. */
static int packet_options(struct cap *c, struct frame *f, const uint8_t *p, const uint8_t *end, bool enhanced)
{
    const uint8_t *val, *first = p;
    uint16_t code, len;
    int rc;

    while ((rc = option_next(c, &p, end, &code, &val, &len)) > 0) {
        if (code == OPT_COMMENT && !f->comment) {
            f->comment = (const char *)val;
            f->comment_len = len;
        } else if (code == OPT_COMMENT) {
            f->options = first;
            f->options_len = (uint32_t)(end - first);
            f->options_be = c->swap;
        } else if (code == PACKET_FLAGS && len >= 4) {
            f->flags = cap_u32(c, val);
            /* Bits 5 to 8: length of the frame check sequence, 0 if unknown. */
            if (f->flags >> 5 & 15)
                f->fcs_len = f->flags >> 5 & 15;
        } else if (code == EPB_DROPCOUNT && len >= 8 && enhanced) {
            f->drops = cap_u64(c, val);
        }
    }
    return rc;
}

/* Enhanced: interface 4, time stamp high 4, low 4, captured length 4, length 4, data, options.
 * The obsolete one differs in: interface 2, drops 2. 1 or a negative errno. */
static int block_packet(struct cap *c, struct frame *f, const uint8_t *b, uint32_t block, bool enhanced)
{
    uint32_t id = enhanced ? cap_u32(c, b + 8) : cap_u16(c, b + 8);
    uint32_t caplen = cap_u32(c, b + 20), count = c->n_ifaces - c->section_first;

    if (UNLIKELY(id >= count))
        return cap_fail(c, source_offset(&c->src), "packet of interface %u, the section has %u", id, count);
    if (UNLIKELY(caplen > FRAME_MAX))
        return cap_fail(c, source_offset(&c->src), "captured length of %u bytes, at most %u can be", caplen, FRAME_MAX);
    if (UNLIKELY(caplen > block - PACKET_FIXED - 4))
        return cap_fail(c, source_offset(&c->src), "captured length of %u bytes in a block that has room for %u",
                        caplen, block - PACKET_FIXED - 4);
    id += c->section_first;
    cap_frame(c, f, id, caplen, cap_u32(c, b + 24));
    f->ts = iface_time(&c->ifaces[id], (uint64_t)cap_u32(c, b + 12) << 32 | cap_u32(c, b + 16));
    f->data = b + PACKET_FIXED;
    if (!enhanced && cap_u16(c, b + 10) != 0xffff)
        f->drops = cap_u16(c, b + 10);
    size_t options = PACKET_FIXED + pad4(caplen);
    if (options + 8 > block)
        return 1;
    int rc = packet_options(c, f, b + options, b + block - 4, enhanced);
    return rc < 0 ? rc : 1;
}

/* Length 4, data: of the section's first interface, cut at its snap length; no time. */
static int block_simple(struct cap *c, struct frame *f, const uint8_t *b, uint32_t block)
{
    uint32_t len = cap_u32(c, b + 8), room = block - SIMPLE_FIXED - 4, caplen = len;

    if (c->n_ifaces == c->section_first)
        return cap_fail(c, source_offset(&c->src), "packet of interface 0, the section has 0");
    uint32_t snaplen = c->ifaces[c->section_first].snaplen;
    if (snaplen)
        caplen = min_u32(caplen, snaplen);
    caplen = min_u32(caplen, room);
    if (caplen > FRAME_MAX)
        return cap_fail(c, source_offset(&c->src), "captured length of %u bytes, at most %u can be", caplen, FRAME_MAX);
    cap_frame(c, f, c->section_first, caplen, len);
    f->ts = 0;
    f->has_ts = false;
    f->data = b + SIMPLE_FIXED;
    return 1;
}

/* Minimal length of a block of this type, trailer included. */
static uint32_t block_least(uint32_t type)
{
    switch (type) {
    case BLOCK_SECTION:
        return SECTION_FIXED + 4;
    case BLOCK_INTERFACE:
        return INTERFACE_FIXED + 4;
    case BLOCK_PACKET:
    case BLOCK_ENHANCED:
        return PACKET_FIXED + 4;
    case BLOCK_SIMPLE:
        return SIMPLE_FIXED + 4;
    case BLOCK_STATISTICS:
        return STATISTICS_FIXED + 4;
    default:
        return BLOCK_MIN;
    }
}

/* Determine the byte order of a section from its header. Negative errno if it has none. */
static int section_order(struct cap *c)
{
    const uint8_t *b = source_peek(&c->src, BLOCK_HEAD + 4);

    if (!b)
        return cap_short(c, false, "section header block", SECTION_FIXED + 4);
    if (load_le32(b + 8) != BYTE_ORDER_MAGIC && load_be32(b + 8) != BYTE_ORDER_MAGIC)
        return cap_fail(c, source_offset(&c->src), "byte-order magic 0x%08x, 0x1a2b3c4d is expected", load_be32(b + 8));
    c->swap = load_be32(b + 8) == BYTE_ORDER_MAGIC;
    return 0;
}

static bool block_skipped(uint32_t type)
{
    return type != BLOCK_SECTION && type != BLOCK_INTERFACE && type != BLOCK_PACKET && type != BLOCK_SIMPLE &&
           type != BLOCK_STATISTICS && type != BLOCK_ENHANCED;
}

static int trailer_wrong(struct cap *c, uint64_t offset, uint32_t len, uint32_t trailer)
{
    return cap_fail(c, offset, "block of %u bytes ends with a length of %u", len, trailer);
}

/* Skip a block of any length without parsing it. */
static int block_skip(struct cap *c, uint32_t len)
{
    uint64_t offset = source_offset(&c->src);
    uint64_t got = source_skip_far(&c->src, len - 4);
    const uint8_t *t = got == len - 4 ? source_peek(&c->src, 4) : NULL;

    if (!t)
        return cap_fail(c, offset, "block of %u bytes, the file ends after %" PRIu64, len, got + source_left(&c->src));
    if (cap_u32(c, t) != len)
        return trailer_wrong(c, offset, len, cap_u32(c, t));
    source_skip(&c->src, 4);
    return 0;
}

/* The block at the next byte, complete in the buffer. NULL: it was skipped because its type is not parsed, or it is
 * malformed or too large; *rc is the result. */
static const uint8_t *block_get(struct cap *c, uint32_t type, uint32_t len, int *rc)
{
    if (UNLIKELY(len < block_least(type) || len % 4)) {
        *rc = cap_fail(c, source_offset(&c->src), "block of type 0x%x with a length of %u: %s", type, len,
                       len % 4 ? "not a multiple of 4" : "too short");
        return NULL;
    }
    if (UNLIKELY(block_skipped(type))) {
        *rc = block_skip(c, len);
        return NULL;
    }
    if (UNLIKELY(len > SOURCE_PEEK_MAX)) {
        *rc = cap_fail(c, source_offset(&c->src), "block of type 0x%x with a length of %u, at most %u are read", type,
                       len, SOURCE_PEEK_MAX);
        return NULL;
    }
    const uint8_t *b = source_peek(&c->src, len);
    if (UNLIKELY(!b))
        *rc = cap_short(c, false, "block", len);
    else if (UNLIKELY(cap_u32(c, b + len - 4) != len))
        *rc = trailer_wrong(c, source_offset(&c->src), len, cap_u32(c, b + len - 4));
    else
        return b;
    return NULL;
}

/* Parse a block other than packets. */
static int block_other(struct cap *c, uint32_t type, const uint8_t *b, uint32_t len)
{
    if (type == BLOCK_SECTION)
        return block_section(c, b, len);
    if (type == BLOCK_INTERFACE)
        return block_interface(c, b, len);
    return block_statistics(c, b, len);
}

static int pcapng_next(struct cap *c, struct frame *f)
{
    for (;;) {
        const uint8_t *h = source_peek(&c->src, BLOCK_HEAD), *b;
        int rc = 0;
        if (UNLIKELY(!h))
            return cap_short(c, true, "block header", BLOCK_HEAD);
        uint32_t type = cap_u32(c, h);
        if (UNLIKELY(type == BLOCK_SECTION)) {
            rc = section_order(c);
            if (rc < 0)
                return rc;
            h = c->src.p;
        }
        uint32_t len = cap_u32(c, h + 4);
        b = block_get(c, type, len, &rc);
        if (UNLIKELY(!b)) {
            if (rc < 0)
                return rc;
            continue;
        }
        if (LIKELY(type == BLOCK_ENHANCED || type == BLOCK_PACKET))
            rc = block_packet(c, f, b, len, type == BLOCK_ENHANCED);
        else if (type == BLOCK_SIMPLE)
            rc = block_simple(c, f, b, len);
        else
            rc = block_other(c, type, b, len);
        if (UNLIKELY(rc < 0))
            return rc;
        source_took(&c->src, len);
        if (LIKELY(rc > 0)) {
            c->frames++;
            return 1;
        }
    }
}

int pcapng_begin(struct cap *c)
{
    const uint8_t *h = source_peek(&c->src, 4);

    if (!h || load_le32(h) != BLOCK_SECTION)
        return 0;
    c->info.format = CAP_PCAPNG;
    h = source_peek(&c->src, BLOCK_HEAD);
    if (!h)
        return cap_short(c, false, "block header", BLOCK_HEAD);
    int rc = section_order(c);
    if (rc < 0)
        return rc;
    uint32_t len = cap_u32(c, c->src.p + 4);
    const uint8_t *b = block_get(c, BLOCK_SECTION, len, &rc);
    if (!b || (rc = block_section(c, b, len)) < 0)
        return rc;
    source_skip(&c->src, len);
    c->next = pcapng_next;
    return 1;
}
