/* layer 1 (io): the pcap format, as read by libpcap, and Kuznetzov's variant of it. */
#include "src/cap/cap_impl.h"

#define FILE_HEADER     24
#define RECORD_HEADER   16
#define MODIFIED_HEADER 24

#define MAGIC_MICRO    UINT32_C(0xa1b2c3d4)
#define MAGIC_NANO     UINT32_C(0xa1b23c4d)
#define MAGIC_MODIFIED UINT32_C(0xa1b2cd34)

static int pcap_next(struct cap *c, struct frame *f)
{
    struct source *s = &c->src;
    const uint8_t *h = source_peek(s, c->record_head);

    if (UNLIKELY(!h))
        return cap_short(c, true, "packet record header", c->record_head);
    uint32_t caplen = cap_u32(c, h + 8), len = cap_u32(c, h + 12), iface = 0;
    if (UNLIKELY(c->lens_swapped) && (c->lens_swapped == 1 || caplen > len)) {
        uint32_t t = caplen;
        caplen = len;
        len = t;
    }
    if (UNLIKELY(caplen > FRAME_MAX))
        return cap_fail(c, source_offset(s), "captured length of %u bytes, at most %u can be", caplen, FRAME_MAX);
    h = source_peek(s, c->record_head + caplen);
    if (UNLIKELY(!h))
        return cap_short(c, false, "packet record", c->record_head + caplen);
    f->ts = (ns_t)cap_u32(c, h) * NS_PER_S + (ns_t)cap_u32(c, h + 4) * c->ts_unit;
    f->data = h + c->record_head;
    /* An ERF record has the more precise time. */
    if (UNLIKELY(c->ifaces[0].linktype == LINK_ERF) && caplen >= 16) {
        f->ts = erf_time(f->data);
        iface = erf_iface(c, f->data);
    }
    cap_frame(c, f, iface, caplen, len);
    source_took(s, c->record_head + caplen);
    c->frames++;
    return 1;
}

/* The magic number, in either byte order. */
static bool pcap_magic(struct cap *c, uint32_t little, uint32_t big)
{
    static const struct {
        uint32_t magic, record_head, ts_unit;
        enum cap_format format;
    } variants[] = {
        {MAGIC_MICRO, RECORD_HEADER, 1000, CAP_PCAP},
        {MAGIC_NANO, RECORD_HEADER, 1, CAP_PCAP},
        {MAGIC_MODIFIED, MODIFIED_HEADER, 1000, CAP_PCAP_MODIFIED},
    };

    for (size_t i = 0; i < ARRAY_LEN(variants); i++)
        if (little == variants[i].magic || big == variants[i].magic) {
            c->swap = big == variants[i].magic;
            c->record_head = variants[i].record_head;
            c->ts_unit = variants[i].ts_unit;
            c->info.format = variants[i].format;
            return true;
        }
    return false;
}

/* File header: magic 4, version major 2, minor 2, time zone 4, accuracy 4, snap length 4, link type 4. The link type's
 * upper half: bit 26 set if bits 28-31 are the length of the frame check sequence in units of 16 bits. */
int pcap_begin(struct cap *c)
{
    const uint8_t *h = source_peek(&c->src, 4);

    if (!h || !pcap_magic(c, load_le32(h), load_be32(h)))
        return 0;
    h = source_peek(&c->src, FILE_HEADER);
    if (!h)
        return cap_short(c, false, "pcap file header", FILE_HEADER);
    uint32_t major = cap_u16(c, h + 4), minor = cap_u16(c, h + 6), link = cap_u32(c, h + 20);
    if (major != 2 && major != 543)
        return cap_fail(c, 0, "pcap version %u.%u, 2.4 is expected", major, minor);
    struct cap_iface *i = cap_iface_add(c, 0);
    if (!i)
        return c->error.err;
    i->linktype = link & 0x03ff0000 ? UINT16_MAX : (uint16_t)link; /* no link type of more than 16 bits is known */
    i->fcs_len = link & UINT32_C(1) << 26 ? (uint8_t)((link >> 28) * 2) : 0;
    i->snaplen = cap_u32(c, h + 16);
    i->tsresol = c->ts_unit == 1 ? 9 : 6;
    if (major == 2)
        c->lens_swapped = minor < 3 ? 1 : minor == 3 ? 2 : 0;
    c->info.nanoseconds = c->ts_unit == 1;
    c->info.n_sections = 1;
    c->next = pcap_next;
    source_skip(&c->src, FILE_HEADER);
    return 1;
}
