/* layer 1 (wire): values of described fields: extraction, printing, and the search for a field by name. */
#include "dissect/field.h"

#include "dissect/pkt.h"
#include "le.h"
#include "tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

const char *vname_find(const struct vname *table, unsigned n, uint64_t value)
{
    for (unsigned i = 0; i < n; i++)
        if (table[i].value == value)
            return table[i].name;
    return NULL;
}

bool vdesc_print(struct buf *b, const struct vdesc *desc, uint64_t value)
{
    const char *name;

    if (!desc)
        return false;
    if (desc->text) {
        size_t before = b->len;
        desc->text(b, value);
        return b->len > before;
    }
    name = vname_find(desc->names, desc->n, value);
    if (name)
        buf_puts(b, name);
    return name != NULL;
}

const char *ftype_str(enum ftype t)
{
    static const char *const names[] = {"FT_NONE",          "FT_BOOLEAN",       "FT_UINT8",    "FT_UINT16", "FT_UINT24",
                                        "FT_UINT32",        "FT_UINT40",        "FT_UINT48",   "FT_UINT56", "FT_UINT64",
                                        "FT_INT8",          "FT_INT16",         "FT_INT32",    "FT_INT64",  "FT_BYTES",
                                        "FT_STRING",        "FT_ETHER",         "FT_IPv4",     "FT_IPv6",   "FT_EUI64",
                                        "FT_ABSOLUTE_TIME", "FT_RELATIVE_TIME", "FT_FRAMENUM", "FT_DOUBLE"};
    return names[t];
}

/* The value of a little-endian field at `p`. */
static uint64_t le_value(const uint8_t *p, const struct field *f)
{
    uint64_t v = load_le(p, f->width / 8u);

    return f->le_bits ? v >> f->le_shift & (UINT64_MAX >> (64 - f->le_bits)) : v;
}

/* Sign-extend a two's complement number of `width` bits to 64 bits. */
static uint64_t sign_extend(uint64_t v, unsigned width)
{
    return width >= 64 ? v : (uint64_t)((int64_t)(v << (64 - width)) >> (64 - width));
}

bool field_value(const struct field *f, const struct pkt *p, const struct layer *l, struct value *v)
{
    const uint8_t *h = layer_bytes(p, l);
    uint32_t first = f->bit / 8, last;

    v->type = f->type;
    if (FIELD_PLAIN(f, p, l, &v->u))
        return true;
    if (f->get)
        return f->get(p, l, v);
    last = f->width ? (uint32_t)(f->bit + f->width + 7) / 8 : l->len;
    if (last > l->len || first > last || (f->width == 0 && first == last))
        return false;
    if (f->when && !f->when(h, l->len))
        return false;
    if (f->type == FT_NONE)
        return true;
    if (ftype_is_number(f->type)) {
        v->u = f->flags & FLD_LE ? le_value(h + first, f) : bits_get(h, f->bit, f->width);
        if (f->type >= FT_INT8 && f->type <= FT_INT64)
            v->u = sign_extend(v->u, f->width);
        else if (f->type == FT_BOOL)
            v->u = v->u != 0;
    } else {
        v->p = h + first;
        v->len = last - first;
        if (f->type == FT_STRING) /* padded with zeros */
            v->len = (uint32_t)strnlen((const char *)v->p, v->len);
    }
    return true;
}

/* "Nov 21, 2026 01:25:52.060753000 UTC", in local time. */
static void print_date(struct buf *b, ns_t t)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    ns_t frac = (t % NS_PER_S + NS_PER_S) % NS_PER_S;
    time_t s = (time_t)((t - frac) / NS_PER_S);
    struct tm tm = {0};

    localtime_r(&s, &tm);
    buf_printf(b, "%.3s %2d, %d %02d:%02d:%02d.%09lld %s", months + 3 * tm.tm_mon, tm.tm_mday, tm.tm_year + 1900,
               tm.tm_hour, tm.tm_min, tm.tm_sec, (long long)frac, tm.tm_zone);
}

/* Billionths, as "1.153": without zeros at the end. */
static void print_fraction(struct buf *b, uint64_t v)
{
    char text[] = ".000000000";
    size_t n = sizeof text - 1;

    buf_dec(b, v / 1000000000);
    v %= 1000000000;
    for (size_t i = n; i-- > 1; v /= 10)
        text[i] = (char)('0' + v % 10);
    while (text[n - 1] == '0')
        n--;
    buf_mem(b, text, n > 1 ? n : 0);
}

/* Print a number that is signed, a time, a frame number or one with a fraction. */
static void print_number(struct buf *b, const struct field *f, const struct value *v)
{
    if (f->base == BASE_DATE)
        print_date(b, (ns_t)v->u);
    else if (v->type >= FT_INT8 && v->type <= FT_INT64)
        buf_sdec(b, (int64_t)v->u);
    else if (v->type == FT_ABS_TIME || v->type == FT_REL_TIME)
        buf_time(b, (ns_t)v->u);
    else if (v->type == FT_DOUBLE)
        print_fraction(b, v->u);
    else
        buf_dec(b, v->u);
}

void value_print(struct buf *b, const struct field *f, const struct value *v)
{
    if (LIKELY(v->type >= FT_BOOL && v->type <= FT_UINT64)) {
        if (f->base == BASE_HEX)
            buf_0x(b, v->u, ftype_digits(v->type));
        else
            buf_dec(b, v->u);
        return;
    }
    if (ftype_is_number(v->type)) {
        print_number(b, f, v);
        return;
    }
    switch (v->type) {
    case FT_STRING:
        buf_printable(b, (const char *)v->p, v->len);
        break;
    case FT_ETHER:
        buf_mac(b, v->p);
        break;
    case FT_EUI64:
        buf_bytes(b, v->p, 8, ':');
        break;
    case FT_IPV4:
        buf_ipv4(b, v->p);
        break;
    case FT_IPV6:
        buf_ipv6(b, v->p);
        break;
    case FT_BYTES:
        buf_bytes(b, v->p, v->len, 0);
        break;
    default:
        break;
    }
}

void value_text(struct buf *b, const struct field *f, const struct value *v)
{
    if (v->type == FT_BOOL && !f->desc) {
        buf_puts(b, v->u ? "True" : "False");
        return;
    }
    if (ftype_is_number(v->type) && vdesc_print(b, f->desc, v->u)) {
        buf_mem(b, " (", 2);
        value_print(b, f, v);
        buf_char(b, ')');
        return;
    }
    value_print(b, f, v);
}

unsigned field_find(const char *abbrev, size_t len, struct field_ref *refs, unsigned max)
{
    unsigned n = 0;

    for (const struct hdr *const *h = all_headers; *h; h++) {
        if (n < max && strlen((*h)->abbrev) == len && memcmp((*h)->abbrev, abbrev, len) == 0)
            refs[n++] = (struct field_ref){*h, NULL};
        for (unsigned i = 0; i < (*h)->nfields && n < max; i++) {
            const struct field *f = &(*h)->fields[i];
            if (strlen(f->abbrev) == len && memcmp(f->abbrev, abbrev, len) == 0)
                refs[n++] = (struct field_ref){*h, f};
        }
    }
    return n;
}

/* Words that people use for a protocol, and its name in filters. */
static const char *const spoken[][2] = {
    {"roce", "infiniband"},    {"rroce", "infiniband"}, {"rocev1", "infiniband"},    {"rocev2", "infiniband"},
    {"rrocev2", "infiniband"}, {"ib", "infiniband"},    {"rdma_cm", "infiniband.cm"}};

const char *field_nearest(const char *abbrev, size_t len)
{
    const char *best = "";
    unsigned least = (unsigned)len / 3 + 1; /* a third of it may differ */

    for (unsigned i = 0; i < ARRAY_LEN(spoken); i++)
        if (strlen(spoken[i][0]) == len && strncasecmp(spoken[i][0], abbrev, len) == 0)
            return spoken[i][1];

    for (const struct hdr *const *h = all_headers; *h; h++)
        for (unsigned i = 0; i <= (*h)->nfields; i++) {
            const char *name = i ? (*h)->fields[i - 1].abbrev : (*h)->abbrev;
            unsigned d = text_distance(abbrev, len, name, strlen(name), least);
            if (d < least) {
                least = d;
                best = name;
            }
        }
    return best;
}

const char *field_complete(const char *name, size_t *len)
{
    const char *found = NULL;
    size_t common = 0;

    for (const struct hdr *const *h = all_headers; *h; h++)
        for (unsigned i = 0; i <= (*h)->nfields; i++) {
            const char *s = i ? (*h)->fields[i - 1].abbrev : (*h)->abbrev;
            if (strncmp(s, name, *len) != 0)
                continue;
            found = found ? found : s;
            common = s == found ? strlen(s) : common;
            for (size_t k = 0; k < common; k++)
                common = s[k] == found[k] ? common : k;
        }
    if (found)
        *len = common;
    return found;
}

/* Append a part of a name unless it is there. False: there is no room. */
static bool put_part(struct buf *b, size_t begin, const char *part, size_t n, unsigned columns)
{
    for (size_t at = begin; at + n <= b->len; at++)
        if (memcmp(b->p + at, part, n) == 0 && (at == begin || b->p[at - 1] == ' ') &&
            (at + n == b->len || b->p[at + n] == ' '))
            return true;
    if (b->len - begin + n + 2 > columns)
        return false;
    buf_puts(b, b->len > begin ? "  " : "");
    buf_mem(b, part, n);
    return true;
}

void field_parts(struct buf *b, const char *name, size_t len, unsigned columns)
{
    size_t begin = b->len, from = len;

    while (from && name[from - 1] != '.')
        from--;
    for (const struct hdr *const *h = all_headers; *h; h++)
        for (unsigned i = 0; i <= (*h)->nfields; i++) {
            const char *s = i ? (*h)->fields[i - 1].abbrev : (*h)->abbrev;
            if (strncmp(s, name, len) == 0 && s[from] &&
                !put_part(b, begin, s + from, len - from + strcspn(s + len, "."), columns))
                return;
        }
}

const char *field_unknown(const char *abbrev, size_t len)
{
    static _Thread_local char text[120];
    const char *near = field_nearest(abbrev, len);

    if (!*near)
        return "; `rdmatrace decode -G fields` lists the names";
    if (strlen(near) == len && !memcmp(near, abbrev, len))
        return " that is a number of at most 64 bits";
    snprintf(text, sizeof text, "; the nearest name is %s", near);
    return text;
}
