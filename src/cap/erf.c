/* layer 1 (io): native ERF files (Endace extensible record format), records without a file header. */
#include "src/cap/cap_impl.h"

#define ERF_HEADER   16
#define ERF_EXT      8
#define ERF_ETH      2
#define ERF_META     27
#define ERF_PAD      48
#define ERF_TYPE_MAX 33
/* Bytes examined to recognise the format. */
#define ERF_PROBE 65536

/* Record header: time stamp 8 (little-endian, 32.32 fixed-point seconds), type 1 (bit 7: extension headers follow),
 * flags 1, record length 2, counter 2, wire length 2 (big-endian). */
struct erf {
    uint64_t ts;
    uint8_t type;
    bool ext;
    uint16_t rlen, wlen;
};

static struct erf erf_header(const uint8_t *h)
{
    return (struct erf){.ts = load_le64(h),
                        .type = h[8] & 0x7f,
                        .ext = h[8] >> 7,
                        .rlen = load_be16(h + 10),
                        .wlen = load_be16(h + 14)};
}

ns_t erf_time(const uint8_t *h)
{
    uint64_t ts = load_le64(h), frac = (ts & UINT32_MAX) * (uint64_t)NS_PER_S;

    return (ns_t)(ts >> 32) * NS_PER_S + (ns_t)((frac + (UINT64_C(1) << 31)) >> 32);
}

uint32_t erf_iface(struct cap *c, const uint8_t *h)
{
    unsigned port = h[9] & 3, known = 0;
    struct cap_iface *i, first = c->ifaces[0];

    if (LIKELY(c->erf_ports[port]))
        return c->erf_ports[port] - 1u;
    for (unsigned k = 0; k < ARRAY_LEN(c->erf_ports); k++)
        known += c->erf_ports[k] != 0;
    if (known) { /* the first port uses interface 0 */
        i = cap_iface_add(c, source_offset(&c->src));
        if (!i)
            return 0;
        i->linktype = first.linktype;
        i->tsresol = first.tsresol;
        i->snaplen = first.snaplen;
        i->id = known;
    }
    c->erf_ports[port] = (uint8_t)(known + 1);
    return known;
}

static bool erf_is_ethernet(uint8_t type)
{
    return type == 2 || type == 11 || type == 16 || type == 20;
}

/* Bytes before the packet in a record; more than rlen if the extension headers do not fit. */
static uint32_t erf_lead(const struct erf *e, const uint8_t *h)
{
    uint32_t lead = ERF_HEADER;

    for (bool more = e->ext; more && lead + ERF_EXT <= e->rlen; lead += ERF_EXT)
        more = h[lead] >> 7;
    return lead + (erf_is_ethernet(e->type) ? ERF_ETH : 0);
}

static int erf_next(struct cap *c, struct frame *f)
{
    const uint8_t *h;
    struct erf e;

    for (;; source_skip(&c->src, e.rlen)) {
        h = source_peek(&c->src, ERF_HEADER);
        if (UNLIKELY(!h))
            return cap_short(c, true, "ERF record header", ERF_HEADER);
        e = erf_header(h);
        if (UNLIKELY(e.rlen < ERF_HEADER))
            return cap_fail(c, source_offset(&c->src), "ERF record with a length of %u, at least %d is expected",
                            e.rlen, ERF_HEADER);
        h = source_peek(&c->src, e.rlen);
        if (UNLIKELY(!h))
            return cap_short(c, false, "ERF record", e.rlen);
        if (e.type != ERF_PAD)
            break;
    }
    /* Padding after the packet is left out, as in pcap files with ERF records. */
    uint32_t len = e.type == ERF_META ? e.rlen : erf_lead(&e, h) + e.wlen;
    cap_frame(c, f, e.type == ERF_META ? 0 : erf_iface(c, h), min_u32(e.rlen, len), len);
    f->ts = erf_time(h);
    f->data = h;
    source_skip(&c->src, e.rlen);
    c->frames++;
    return 1;
}

/* Whether the record at `h`, of which `n` bytes are in the buffer, is plausible: a known type, lengths that agree, a
 * time at most a second earlier than the one before. *ts is the time of the record before, and set to this one's. */
static bool erf_plausible(const uint8_t *h, size_t n, uint64_t *ts)
{
    struct erf e = erf_header(h);

    if (e.rlen < ERF_HEADER || (e.type != ERF_PAD && (e.type == 0 || e.type > ERF_TYPE_MAX)))
        return false;
    if (e.type == ERF_PAD)
        return true;
    if (e.ts >> 32 == 0 || e.ts + (UINT64_C(1) << 32) < *ts)
        return false;
    *ts = e.ts;
    if (n < e.rlen)
        return true;
    uint32_t lead = erf_lead(&e, h);
    /* At most padding to 8 bytes and a check sequence may follow the packet; the length field of meta records means
     * something else. */
    return lead <= e.rlen && (e.type == ERF_META || e.rlen - lead <= e.wlen + 16u);
}

/* ERF has no magic number: every record in the first bytes must be plausible, and at least one complete. */
int erf_begin(struct cap *c)
{
    source_peek(&c->src, ERF_PROBE);
    const uint8_t *p = c->src.p;
    size_t left = source_left(&c->src);
    uint64_t ts = 0;
    bool whole = false;

    while (left >= ERF_HEADER) {
        if (!erf_plausible(p, left, &ts))
            return 0;
        size_t rlen = load_be16(p + 10);
        if (left < rlen)
            break;
        whole = true;
        p += rlen;
        left -= rlen;
    }
    if (!whole)
        return 0;
    struct cap_iface *i = cap_iface_add(c, 0);
    if (!i)
        return c->error.err;
    i->linktype = LINK_ERF;
    i->tsresol = 0x80 | 32;
    c->info.format = CAP_ERF;
    c->info.n_sections = 1;
    c->next = erf_next;
    return 1;
}
