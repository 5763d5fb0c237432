/* layer 3 (show): a packet as one line, as a tree, and as bytes. */
#include "color.h"
#include "dissect/columns.h"
#include "dissect/pkt.h"
#include "src/show/print.h"

#include <time.h>

/* Escape sequence of the colour of a line: the first condition that holds. */
static const char *color_of(const struct pkt *p)
{
    if (p->flags & PKT_MALFORMED || p->icrc == CRC_BAD)
        return COLOR_ALERT;
    if (p->have & H_AETH && aeth_type(p->aeth.syndrome))
        return COLOR_RED;
    if (p->note.have & NOTE_RETRANS)
        return COLOR_MAGENTA;
    if (p->have & H_BTH && p->op->flags & OPF_CNP)
        return COLOR_YELLOW;
    if (p->have & H_MAD)
        return COLOR_CYAN;
    if (p->have & H_BTH && p->op->flags & OPF_RESPONSE)
        return COLOR_GREEN;
    return p->have & H_BTH ? "" : COLOR_DIM;
}

/* Append a duration in seconds with `digits` (6 or 9) decimals, right-aligned as by tshark. */
static void print_seconds(struct buf *b, ns_t t, unsigned digits)
{
    uint64_t v = t < 0 ? -(uint64_t)t : (uint64_t)t, s = v / (uint64_t)NS_PER_S;
    uint32_t frac = (uint32_t)(v % (uint64_t)NS_PER_S);
    char *q;

    if (!buf_need(b, 3 * FMT_DEC_MAX))
        return;
    q = b->p + b->len;
    if (UNLIKELY(t < 0)) {
        q = s < 10 ? FMT_LITERAL(q, " -") : FMT_LITERAL(q, "-");
        q = fmt_dec(q, s);
    } else {
        q = fmt_dec_pad(q, s, ' ', 3);
    }
    *q++ = '.';
    q = digits == 6 ? fmt_digits(q, frac / 1000, 6) : fmt_dec_pad(q, frac, '0', 9);
    b->len = (size_t)(q - b->p);
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
    if (how == TIME_UTC_CLOCK || how == TIME_UTC_DATE)
        gmtime_r(&s, &tm);
    else
        localtime_r(&s, &tm);
    strftime(text, sizeof text, how == TIME_UTC_DATE || how == TIME_ABSOLUTE_DATE ? "%Y-%m-%d %H:%M:%S" : "%H:%M:%S",
             &tm);
    buf_puts(b, text);
    buf_char(b, '.');
    buf_dec0(b, (uint64_t)(digits == 6 ? frac / 1000 : frac), digits);
}

void print_stamp(struct buf *b, ns_t ts, ns_t first, enum print_time how, unsigned digits)
{
    switch (how) {
    case TIME_RELATIVE:
    case TIME_DELTA:
    case TIME_DELTA_DISPLAYED:
        print_seconds(b, ts - first, digits);
        break;
    case TIME_EPOCH:
        print_seconds(b, ts, digits);
        break;
    default:
        print_clock(b, ts, how, digits);
    }
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
        print_seconds(b, p->delta, digits);
        break;
    case TIME_DELTA_DISPLAYED:
        print_seconds(b, p->delta_displayed, digits);
        break;
    case TIME_EPOCH:
        print_seconds(b, ts, digits);
        break;
    default:
        print_clock(b, ts, pr->opts.time, digits);
    }
}

#define ADDRESS_WIDTH 12 /* width of an address in columns, at least */

#define SPACES      "            " /* ADDRESS_WIDTH spaces */
#define ARROW       " \xe2\x86\x92 "
#define ARROW_ASCII " -> "

/* Columns missing from `n` to ADDRESS_WIDTH. */
static size_t lacking(size_t n)
{
    return n < ADDRESS_WIDTH ? ADDRESS_WIDTH - n : 0;
}

static void write_pair(struct print_pair *c, const struct pkt *p, bool ascii)
{
    char *q = memcpy(c->text, SPACES, ADDRESS_WIDTH), *dst;

    q = fmt_ipv4(q + lacking(fmt_ipv4_len(p->src)), p->src);
    dst = ascii ? FMT_LITERAL(q, ARROW_ASCII) : FMT_LITERAL(q, ARROW);
    q = fmt_ipv4(dst, p->dst);
    memcpy(q, SPACES, ADDRESS_WIDTH);
    c->len = (uint32_t)(q + lacking((size_t)(q - dst)) - c->text);
}

/* Append two IPv4 addresses, the most frequent kind: their text is cached for the following packets. */
static void print_ipv4_pair(struct printer *pr, struct buf *b, const struct pkt *p)
{
    uint32_t src = load_be32(p->src), dst = load_be32(p->dst);
    struct print_pair *c = &pr->pairs[(5 * src + dst) % PRINT_PAIRS];

    if (UNLIKELY(c->src != src || c->dst != dst || !c->len)) {
        c->src = src;
        c->dst = dst;
        write_pair(c, p, pr->opts.ascii);
    }
    memcpy(b->p + b->len, c->text, sizeof c->text);
    b->len += c->len;
}

/* Append source, right-aligned, and destination, left-aligned. */
static void print_addresses(struct printer *pr, struct buf *b, const struct pkt *p)
{
    size_t start = b->len, n;

    if (!buf_need(b, 2 * FMT_IPV4_MAX + 4 * ADDRESS_WIDTH))
        return;
    if (LIKELY(p->addr_len == 4)) {
        print_ipv4_pair(pr, b, p);
        return;
    }
    pkt_source(b, p);
    n = b->len - start;
    buf_fill(b, ' ', lacking(n));
    memmove(b->p + start + lacking(n), b->p + start, n);
    memset(b->p + start, ' ', lacking(n));
    buf_puts(b, pr->opts.ascii ? ARROW_ASCII : ARROW);
    start = b->len;
    pkt_destination(b, p);
    buf_fill(b, ' ', lacking(b->len - start));
}

#define COLUMN_MAX 32 /* bytes of the Protocol column, at most */

static void print_column_and_length(struct buf *b, const struct pkt *p)
{
    const char *column = pkt_column(p);
    size_t n = strnlen(column, COLUMN_MAX);
    char *q;

    if (!buf_need(b, COLUMN_MAX + FMT_DEC_MAX + 3))
        return;
    q = b->p + b->len;
    *q++ = ' ';
    q = (char *)memcpy(q, column, n) + n;
    *q++ = ' ';
    q = fmt_dec(q, pkt_wire_len(p));
    *q++ = ' ';
    b->len = (size_t)(q - b->p);
}

void print_line(struct printer *pr, struct buf *b, const struct pkt *p)
{
    const char *color = pr->opts.color ? color_of(p) : "";

    if (UNLIKELY(*color))
        buf_puts(b, color);
    if (pr->opts.n_files > 1) {
        buf_dec(b, p->frame->file + 1u);
        buf_char(b, '/');
    }
    buf_dec_pad(b, p->frame->number, 5);
    buf_char(b, ' ');
    print_time(pr, b, p);
    buf_char(b, ' ');
    print_addresses(pr, b, p);
    print_column_and_length(b, p);
    pkt_info(b, p);
    if (*color)
        buf_puts(b, COLOR_RESET);
    buf_char(b, '\n');
}

#define INDENT_MAX 16
static void indent(struct buf *b, unsigned level)
{
    buf_mem(b, "                ", 4 * (level < INDENT_MAX / 4 ? level : INDENT_MAX / 4));
}

#define TREE_BYTES 36 /* bytes that the tree shows of a field or payload, as tshark does */

/* Append bytes; of many the first. */
static void tree_bytes(const struct print_opts *o, struct buf *b, const uint8_t *bytes, uint32_t len)
{
    buf_bytes(b, bytes, min_u32(len, TREE_BYTES), 0);
    if (len > TREE_BYTES)
        buf_puts(b, o->ascii ? "..." : "\xe2\x80\xa6");
}

/* Append "    Label: value". Unsigned numbers without names, the most frequent kind, are written at once. */
static void tree_field(const struct print_opts *o, struct buf *b, const struct field *f, const struct value *v,
                       unsigned level)
{
    size_t n = field_label_len(f);
    char *q;

    if (!buf_need(b, n + INDENT_MAX + FMT_DEC_MAX + 4))
        return;
    memcpy(b->p + b->len, "                ", INDENT_MAX);
    q = b->p + b->len + 4 * (size_t)level;
    q = (char *)memcpy(q, f->label, n) + n;
    if (v->type != FT_NONE)
        q = FMT_LITERAL(q, ": ");
    if (v->type > FT_BOOL && v->type <= FT_UINT64 && !f->desc) {
        q = f->base == BASE_HEX ? fmt_hex(FMT_LITERAL(q, "0x"), v->u, ftype_digits(v->type)) : fmt_dec(q, v->u);
    } else if (v->type != FT_NONE) {
        b->len = (size_t)(q - b->p);
        if (v->type == FT_BYTES)
            tree_bytes(o, b, v->p, v->len);
        else
            value_text(b, f, v);
        buf_char(b, '\n');
        return;
    }
    *q++ = '\n';
    b->len = (size_t)(q - b->p);
}

/* Append the bytes of a layer without fields. */
static void tree_payload(const struct print_opts *o, struct buf *b, const struct pkt *p, const struct layer *l)
{
    buf_mem(b, ": ", 2);
    buf_dec(b, l->len);
    buf_mem(b, " bytes: ", 8);
    tree_bytes(o, b, layer_bytes(p, l), l->len);
}

/* Whether a list of names, separated by commas, has this one. */
static bool has_name(const char *list, const char *name)
{
    size_t n = strlen(name);

    for (const char *s = list; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL)
        if (strncmp(s, name, n) == 0 && (s[n] == ',' || s[n] == '\0'))
            return true;
    return false;
}

/* Whether the tree shows the fields of a header (-O). */
static bool is_detailed(const struct print_opts *o, const struct hdr *h)
{
    return !o->protocols || has_name(o->protocols, h->proto) || has_name(o->protocols, h->abbrev);
}

/* Append what the heading of a header says whose fields are not shown: ", Src: 10.0.0.1, Dst: 10.0.0.2". */
static void tree_summary(struct buf *b, const struct pkt *p, const struct layer *l)
{
    static const struct {
        const char *abbrev, *label;
    } told[] = {
        {"eth.src", ", Src: "},
        {"eth.dst", ", Dst: "},
        {"ip.src", ", Src: "},
        {"ip.dst", ", Dst: "},
        {"ipv6.src", ", Src: "},
        {"ipv6.dst", ", Dst: "},
        {"udp.srcport", ", Src Port: "},
        {"udp.dstport", ", Dst Port: "},
        {"tcp.srcport", ", Src Port: "},
        {"tcp.dstport", ", Dst Port: "},
        {"infiniband.invariant.crc", ": "},
    };
    struct value v;

    for (unsigned k = 0; k < ARRAY_LEN(told); k++)
        for (unsigned i = 0; i < l->hdr->nfields; i++)
            if (strcmp(l->hdr->fields[i].abbrev, told[k].abbrev) == 0 && field_value(&l->hdr->fields[i], p, l, &v)) {
                buf_puts(b, told[k].label);
                value_text(b, &l->hdr->fields[i], &v);
            }
}

/* Tell the caller of the line that follows. */
static void hand_out(const struct print_opts *o, const struct layer *l, const struct field *f)
{
    if (UNLIKELY(o->tree_line != NULL))
        o->tree_line(o->user, l, f);
}

/* Append the fields of one layer; the bytes of a header without fields. */
static void tree_layer(const struct print_opts *o, struct buf *b, const struct pkt *p, const struct layer *l,
                       unsigned level)
{
    bool detailed = is_detailed(o, l->hdr);
    struct value v;

    if (!detailed && (l->hdr == &frame_hdr || l->hdr == &rdma_hdr))
        return; /* the line above the tree is the heading of one, the other is no header of the packet */
    hand_out(o, l, NULL);
    indent(b, level);
    buf_puts(b, l->hdr->name);
    if (l->hdr->nfields == 0 && l->len) {
        tree_payload(o, b, p, l);
    } else if (l->len < l->hdr->len) {
        buf_printf(b, " [%u of %u bytes]", l->len, l->hdr->len);
    }
    if (!detailed)
        tree_summary(b, p, l);
    buf_char(b, '\n');
    for (unsigned i = 0; i < l->hdr->nfields && detailed; i++) {
        const struct field *f = &l->hdr->fields[i];
        v.type = f->type;
        if (!FIELD_PLAIN(f, p, l, &v.u) && (f->flags & FLD_HIDDEN || !field_value(f, p, l, &v)))
            continue;
        hand_out(o, l, f);
        tree_field(o, b, f, &v, level + 1);
    }
}

/* Append marks of malformed and cut packets, and of opcodes decoded on an assumption. */
static void tree_marks(struct buf *b, const struct pkt *p)
{
    if (p->flags & PKT_MALFORMED)
        buf_printf(b, "[Malformed at byte %u: %s]\n", p->why_off, p->why);
    if (p->flags & PKT_CUT && p->flags & PKT_SHORT)
        buf_printf(b, "[Cut before the capture: %u of %u bytes are there]\n", p->caplen, p->end);
    else if (p->flags & PKT_CUT)
        buf_printf(b, "[Cut by the snap length: %u of %u bytes captured]\n", p->caplen, p->frame->len);
    if (p->flags & PKT_GUESS)
        buf_puts(b, "[Service 0x40-0x5f taken for DC on RoCE, RD on InfiniBand: a guess; --rd or --dc decides]\n");
}

void print_tree(const struct print_opts *o, struct buf *b, const struct pkt *p)
{
    const struct layer note = {&rdma_hdr, 0, 0};
    bool inside = false;

    hand_out(o, NULL, NULL);
    buf_mem(b, "Frame ", 6);
    buf_dec(b, p->frame->number);
    if (o->n_files > 1)
        buf_printf(b, " in file %u", p->frame->file + 1u);
    buf_mem(b, ": ", 2);
    buf_dec(b, pkt_wire_len(p));
    buf_mem(b, " bytes on wire, ", 16);
    buf_dec(b, pkt_wire_caplen(p));
    buf_mem(b, " bytes captured\n", 16);
    for (unsigned i = 0; i < p->n_layers; i++) {
        const struct layer *l = &p->layers[i];
        bool ib = hdr_is_infiniband(l->hdr);
        if (ib && !inside) {
            hand_out(o, NULL, NULL);
            buf_puts(b, "InfiniBand\n");
        }
        inside = ib;
        tree_layer(o, b, p, l, ib);
    }
    if (p->note.have)
        tree_layer(o, b, p, &note, 0);
    hand_out(o, NULL, NULL);
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
