/* layer 3 (trace): a packet as one line, as a tree, and as bytes. */
#include "src/trace/print.h"

#include <time.h>

#define RESET "\x1b[0m"

/* What a line is coloured by: the first row that fits. */
static const char *color_of(const struct pkt *p)
{
    if (p->flags & PKT_MALFORMED || p->icrc == CRC_BAD)
        return "\x1b[1;31m";
    if (p->have & H_AETH && p->aeth.syndrome >> 5)
        return "\x1b[31m";
    if (p->have & H_BTH && p->op->flags & OPF_CNP)
        return "\x1b[33m";
    if (p->have & H_MAD)
        return "\x1b[36m";
    if (p->have & H_BTH && p->op->flags & OPF_RESPONSE)
        return "\x1b[32m";
    return p->have & H_BTH ? "" : "\x1b[2m";
}

/* A length of time in seconds with `digits` decimals, right-aligned as tshark does. */
static void print_seconds(struct buf *b, ns_t t, unsigned digits)
{
    uint64_t v = t < 0 ? -(uint64_t)t : (uint64_t)t, s = v / (uint64_t)NS_PER_S, frac = v % (uint64_t)NS_PER_S;
    unsigned width = 3;

    if (t < 0) {
        for (uint64_t k = s; k >= 10; k /= 10)
            width = width > 1 ? width - 1 : 1;
        buf_fill(b, ' ', width > 2 ? 1 : 0);
        buf_char(b, '-');
        buf_dec(b, s);
    } else {
        buf_dec_pad(b, s, width);
    }
    buf_char(b, '.');
    buf_dec0(b, digits == 6 ? frac / 1000 : frac, digits);
}

static void print_clock(struct buf *b, ns_t ts, enum print_time how, unsigned digits)
{
    time_t s = (time_t)(ts / NS_PER_S);
    ns_t frac = ts % NS_PER_S;
    struct tm tm = {0};
    char text[64];

    if (frac < 0) {
        frac += NS_PER_S;
        s--;
    }
    if (how == TIME_UTC || how == TIME_UTC_DATE)
        gmtime_r(&s, &tm);
    else
        localtime_r(&s, &tm);
    strftime(text, sizeof text, how == TIME_UTC_DATE || how == TIME_ABSOLUTE_DATE ? "%Y-%m-%d %H:%M:%S" : "%H:%M:%S", &tm);
    buf_puts(b, text);
    buf_char(b, '.');
    buf_dec0(b, (uint64_t)(digits == 6 ? frac / 1000 : frac), digits);
}

static void print_time(struct printer *pr, struct buf *b, const struct pkt *p)
{
    ns_t ts = p->frame->ts;
    unsigned digits = pr->digits ? pr->digits : 9;

    if (!p->frame->has_ts) {
        buf_fill(b, ' ', 4 + digits);
        return;
    }
    switch (pr->opts.time) {
    case TIME_RELATIVE:
        print_seconds(b, p->since, digits);
        break;
    case TIME_DELTA:
        print_seconds(b, ts - pr->before, digits);
        break;
    case TIME_DELTA_DISPLAYED:
        print_seconds(b, ts - pr->shown, digits);
        break;
    case TIME_EPOCH:
        print_seconds(b, ts, digits);
        break;
    default:
        print_clock(b, ts, pr->opts.time, digits);
    }
}

/* Move the text appended since `start` to the right, so that it fills `width` columns. */
static void align_right(struct buf *b, size_t start, size_t width)
{
    size_t n = b->len - start;

    if (n >= width || !buf_need(b, width - n))
        return;
    memmove(b->p + start + width - n, b->p + start, n);
    memset(b->p + start, ' ', width - n);
    b->len += width - n;
}

void print_line(struct printer *pr, struct buf *b, const struct pkt *p)
{
    const char *color = pr->opts.color ? color_of(p) : "";
    size_t start;

    buf_puts(b, color);
    buf_dec_pad(b, p->frame->number, 5);
    buf_char(b, ' ');
    print_time(pr, b, p);
    buf_char(b, ' ');
    start = b->len;
    pkt_source(b, p);
    align_right(b, start, 12);
    buf_mem(b, " \xe2\x86\x92 ", 5);
    start = b->len;
    pkt_destination(b, p);
    if (b->len - start < 12)
        buf_fill(b, ' ', 12 - (b->len - start));
    buf_char(b, ' ');
    buf_puts(b, pkt_column(p));
    buf_char(b, ' ');
    buf_dec(b, p->frame->len);
    buf_char(b, ' ');
    pkt_info(b, p);
    if (*color)
        buf_puts(b, RESET);
    buf_char(b, '\n');
}

static void indent(struct buf *b, unsigned level)
{
    buf_fill(b, ' ', 4 * (size_t)level);
}

static void tree_field(struct buf *b, const struct field *f, const struct value *v, unsigned level)
{
    indent(b, level);
    buf_puts(b, f->label);
    if (v->type != FT_NONE) {
        buf_mem(b, ": ", 2);
        value_text(b, f, v);
    }
    buf_char(b, '\n');
}

/* The fields of one layer; bytes of a header without any. */
static void tree_layer(struct buf *b, const struct pkt *p, const struct layer *l, unsigned level)
{
    struct value v;

    indent(b, level);
    buf_puts(b, l->hdr->name);
    if (l->hdr->nfields == 0 && l->len) {
        buf_printf(b, ": %u bytes: ", l->len);
        buf_bytes(b, p->data + l->off, l->len, 0);
    } else if (l->len < l->hdr->len) {
        buf_printf(b, " [%u of %u bytes]", l->len, l->hdr->len);
    }
    buf_char(b, '\n');
    for (unsigned i = 0; i < l->hdr->nfields; i++) {
        const struct field *f = &l->hdr->fields[i];
        if (!(f->flags & FLD_HIDDEN) && field_value(f, p, l, &v))
            tree_field(b, f, &v, level + 1);
    }
}

/* What is wrong or missing. */
static void tree_marks(struct buf *b, const struct pkt *p)
{
    if (p->flags & PKT_MALFORMED)
        buf_printf(b, "[Malformed at byte %u: %s]\n", p->why_off, p->why);
    if (p->flags & PKT_CUT)
        buf_printf(b, "[Cut by the snap length: %u of %u bytes captured]\n", p->caplen, p->frame->len);
    if (p->flags & PKT_GUESS)
        buf_puts(b, "[Service 0x40-0x5f taken for DC on RoCE, RD on InfiniBand: a guess; --rd or --dc decides]\n");
}

void print_tree(struct buf *b, const struct pkt *p)
{
    const struct layer note = {&rdma_hdr, 0, 0};
    bool inside = false;

    buf_printf(b, "Frame %llu: %u bytes on wire, %u bytes captured\n", (unsigned long long)p->frame->number, p->frame->len,
               p->caplen);
    for (unsigned i = 0; i < p->n_layers; i++) {
        const struct layer *l = &p->layers[i];
        bool ib = strcmp(l->hdr->proto, "infiniband") == 0;
        if (ib && !inside)
            buf_puts(b, "InfiniBand\n");
        inside = ib;
        tree_layer(b, p, l, ib);
    }
    if (p->note.have)
        tree_layer(b, p, &note, 0);
    tree_marks(b, p);
    buf_char(b, '\n');
}

void print_hex(struct buf *b, const uint8_t *data, uint32_t len)
{
    for (uint32_t i = 0; i < len; i += 16) {
        uint32_t n = min_u32(16, len - i);
        buf_hex(b, i, 4);
        buf_char(b, ' ');
        for (uint32_t k = 0; k < 16; k++) {
            buf_char(b, ' ');
            if (k < n)
                buf_hex(b, data[i + k], 2);
            else
                buf_mem(b, "  ", 2);
        }
        buf_mem(b, "  ", 2);
        for (uint32_t k = 0; k < n; k++)
            buf_char(b, data[i + k] >= 0x20 && data[i + k] < 0x7f ? (char)data[i + k] : '.');
        buf_char(b, '\n');
    }
    buf_char(b, '\n');
}
