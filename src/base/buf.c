/* layer 0 (base): the growing output buffer of buf.h. */
#include "buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool buf_grow(struct buf *b, size_t n)
{
    size_t cap = b->cap ? b->cap : 256;
    char *p;

    while (cap - b->len < n) {
        if (cap > SIZE_MAX / 2)
            goto fail;
        cap *= 2;
    }
    p = realloc(b->p, cap);
    if (!p)
        goto fail;
    b->p = p;
    b->cap = cap;
    return true;
fail:
    b->err = true;
    return false;
}

void buf_free(struct buf *b)
{
    free(b->p);
    memset(b, 0, sizeof *b);
}

const char *buf_str(struct buf *b)
{
    if (!buf_need(b, 1))
        return "";
    b->p[b->len] = '\0';
    return b->p;
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    char small[256];
    va_list again;
    int n;

    va_copy(again, ap);
    n = vsnprintf(small, sizeof small, fmt, ap);
    if (n >= 0 && (size_t)n < sizeof small) {
        buf_mem(b, small, (size_t)n);
    } else if (n >= 0 && buf_need(b, (size_t)n + 1)) {
        vsnprintf(b->p + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

void buf_fill(struct buf *b, char c, size_t n)
{
    if (n && buf_need(b, n)) {
        memset(b->p + b->len, c, n);
        b->len += n;
    }
}

void buf_paragraph(struct buf *b, const char *s, unsigned indent, unsigned columns)
{
    size_t column = 0;

    while (*s) {
        size_t n = strcspn(s, " ");
        if (column && column + 1 + n > columns) {
            buf_char(b, '\n');
            column = 0;
        }
        if (column)
            buf_char(b, ' ');
        else
            buf_fill(b, ' ', indent);
        column = column ? column + 1 + n : indent + n;
        buf_mem(b, s, n);
        s += n;
        s += *s == ' ';
    }
    buf_char(b, '\n');
}

/* All pairs of digits, "00" to "99". */
static const char PAIRS[] =
    "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
    "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

/* Write the digits of `v` so that they end before `end`; returns their start. */
static char *dec_back(char *end, uint64_t v)
{
    uint32_t w;

    while (v > UINT32_MAX) {
        end -= 2;
        memcpy(end, PAIRS + v % 100 * 2, 2);
        v /= 100;
    }
    for (w = (uint32_t)v; w >= 10000; w /= 10000) {
        uint32_t four = w % 10000;
        end -= 4;
        memcpy(end, PAIRS + four / 100 * 2, 2);
        memcpy(end + 2, PAIRS + four % 100 * 2, 2);
    }
    for (; w >= 100; w /= 100) {
        end -= 2;
        memcpy(end, PAIRS + w % 100 * 2, 2);
    }
    if (w >= 10) {
        end -= 2;
        memcpy(end, PAIRS + w * 2, 2);
    } else {
        *--end = (char)('0' + w);
    }
    return end;
}

static const uint64_t POWERS[20] = {UINT64_C(0),
                                    UINT64_C(10),
                                    UINT64_C(100),
                                    UINT64_C(1000),
                                    UINT64_C(10000),
                                    UINT64_C(100000),
                                    UINT64_C(1000000),
                                    UINT64_C(10000000),
                                    UINT64_C(100000000),
                                    UINT64_C(1000000000),
                                    UINT64_C(10000000000),
                                    UINT64_C(100000000000),
                                    UINT64_C(1000000000000),
                                    UINT64_C(10000000000000),
                                    UINT64_C(100000000000000),
                                    UINT64_C(1000000000000000),
                                    UINT64_C(10000000000000000),
                                    UINT64_C(100000000000000000),
                                    UINT64_C(1000000000000000000),
                                    UINT64_C(10000000000000000000)};

/* Number of decimal digits of `v`: 1233 / 4096 is just above the decimal logarithm of 2. */
static unsigned dec_len(uint64_t v)
{
    unsigned t = (unsigned)(64 - __builtin_clzll(v | 1)) * 1233 >> 12;

    return t + (v >= POWERS[t]);
}

char *fmt_dec(char *q, uint64_t v)
{
    if (v < 100) {
        memcpy(q, PAIRS + v * 2 + (v < 10), 2);
        return q + 1 + (v >= 10);
    }
    q += dec_len(v);
    dec_back(q, v);
    return q;
}

char *fmt_dec_pad(char *q, uint64_t v, char pad, unsigned width)
{
    uint64_t eight = UINT64_C(0x0101010101010101) * (uint8_t)pad;
    unsigned n = dec_len(v);

    if (n < width) {
        for (unsigned i = 0; i < width - n; i += 8)
            memcpy(q + i, &eight, 8);
        q += width - n;
    }
    if (v < 100)
        return fmt_dec(q, v);
    dec_back(q + n, v);
    return q + n;
}

char *fmt_digits(char *q, uint32_t v, unsigned digits)
{
    for (unsigned i = digits; i >= 2; i -= 2, v /= 100)
        memcpy(q + i - 2, PAIRS + v % 100 * 2, 2);
    return q + digits;
}

void buf_dec(struct buf *b, uint64_t v)
{
    if (buf_need(b, FMT_DEC_MAX))
        b->len = (size_t)(fmt_dec(b->p + b->len, v) - b->p);
}

void buf_dec_pad(struct buf *b, uint64_t v, unsigned width)
{
    if (buf_need(b, FMT_DEC_MAX + (size_t)width))
        b->len = (size_t)(fmt_dec_pad(b->p + b->len, v, ' ', width) - b->p);
}

void buf_dec0(struct buf *b, uint64_t v, unsigned digits)
{
    if (buf_need(b, FMT_DEC_MAX + (size_t)digits))
        b->len = (size_t)(fmt_dec_pad(b->p + b->len, v, '0', digits) - b->p);
}

void buf_sdec(struct buf *b, int64_t v)
{
    if (v < 0)
        buf_char(b, '-');
    buf_dec(b, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

/* All bytes as two hexadecimal digits, and as decimal numbers with a dot; filled before main(). */
static char hex_pairs[256][2];
static struct {
    char text[4];
    uint32_t len;
} octets[256];

__attribute__((constructor)) static void tables_init(void)
{
    static const char digits[] = "0123456789abcdef";

    for (unsigned i = 0; i < 256; i++) {
        hex_pairs[i][0] = digits[i >> 4];
        hex_pairs[i][1] = digits[i & 15];
        octets[i].len = dec_len(i) + 1;
        dec_back(octets[i].text + octets[i].len - 1, i);
        octets[i].text[octets[i].len - 1] = '.';
    }
}

char *fmt_hex(char *q, uint64_t v, unsigned digits)
{
    unsigned n = (unsigned)(67 - __builtin_clzll(v | 1)) / 4;
    char *end;

    if (n < digits)
        n = digits;
    q += n;
    for (end = q; n >= 2; n -= 2, v >>= 8) {
        end -= 2;
        memcpy(end, hex_pairs[v & 0xff], 2);
    }
    if (n)
        end[-1] = hex_pairs[v & 15][1];
    return q;
}

void buf_hex(struct buf *b, uint64_t v, unsigned digits)
{
    if (buf_need(b, 16))
        b->len = (size_t)(fmt_hex(b->p + b->len, v, digits) - b->p);
}

void buf_0x(struct buf *b, uint64_t v, unsigned digits)
{
    if (buf_need(b, 18))
        b->len = (size_t)(fmt_hex(FMT_LITERAL(b->p + b->len, "0x"), v, digits) - b->p);
}

void buf_bytes(struct buf *b, const uint8_t *p, size_t n, char sep)
{
    char *q;

    if (!buf_need(b, n * 3))
        return;
    q = b->p + b->len;
    for (size_t i = 0; i < n; i++) {
        if (sep && i)
            *q++ = sep;
        q = (char *)memcpy(q, hex_pairs[p[i]], 2) + 2;
    }
    b->len = (size_t)(q - b->p);
}

char *fmt_ipv4(char *q, const uint8_t *p)
{
    for (unsigned i = 0; i < 4; i++) {
        memcpy(q, octets[p[i]].text, 4);
        q += octets[p[i]].len;
    }
    return q - 1;
}

unsigned fmt_ipv4_len(const uint8_t *p)
{
    return octets[p[0]].len + octets[p[1]].len + octets[p[2]].len + octets[p[3]].len - 1;
}

void buf_ipv4(struct buf *b, const uint8_t *p)
{
    if (buf_need(b, FMT_IPV4_MAX))
        b->len = (size_t)(fmt_ipv4(b->p + b->len, p) - b->p);
}

void buf_ipv6(struct buf *b, const uint8_t *p)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    unsigned best = 8, best_len = 1;

    if (memcmp(p, mapped, sizeof mapped) == 0) {
        buf_mem(b, "::ffff:", 7);
        buf_ipv4(b, p + 12);
        return;
    }
    for (unsigned i = 0; i < 8; i++) {
        unsigned n = 0;
        while (i + n < 8 && load_be16(p + 2 * (i + n)) == 0)
            n++;
        if (n > best_len) {
            best = i;
            best_len = n;
        }
    }
    for (unsigned i = 0; i < 8;) {
        if (i == best) {
            buf_mem(b, "::", 2);
            i += best_len;
        } else {
            if (i && i != best + best_len)
                buf_char(b, ':');
            buf_hex(b, load_be16(p + 2 * i), 1);
            i++;
        }
    }
}

void buf_gid(struct buf *b, const uint8_t *p)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    if (memcmp(p, mapped, sizeof mapped) == 0)
        buf_ipv4(b, p + 12);
    else
        buf_ipv6(b, p);
}

void buf_mac(struct buf *b, const uint8_t *p)
{
    buf_bytes(b, p, 6, ':');
}

void buf_time(struct buf *b, ns_t t)
{
    uint64_t v = t < 0 ? -(uint64_t)t : (uint64_t)t;

    if (t < 0)
        buf_char(b, '-');
    buf_dec(b, v / (uint64_t)NS_PER_S);
    buf_char(b, '.');
    buf_dec0(b, v % (uint64_t)NS_PER_S, 9);
}

static const struct {
    ns_t unit;
    const char *name;
} time_units[] = {{NS_PER_S, "s"}, {NS_PER_MS, "ms"}, {NS_PER_US, "us"}, {1, "ns"}};

void buf_duration(struct buf *b, ns_t t)
{
    unsigned i = 0;

    while (time_units[i].unit > 1 && t < time_units[i].unit && t > -time_units[i].unit)
        i++;
    buf_printf(b, "%.9g %s", (double)t / (double)time_units[i].unit, time_units[i].name);
}

/* length / unit with three significant digits, as "%.3g" prints it. False, and nothing, if it is not below 1000 or lies
 * in the middle of two such numbers: then printf() decides. */
static bool put_rounded(struct buf *b, bool negative, uint64_t length, uint64_t unit)
{
    uint32_t scale = length >= 100 * unit ? 1 : length >= 10 * unit ? 10 : 100, fraction;
    uint64_t v;

    if (length >= 1000 * unit - unit / 2 || (unit > 1 && length * scale % unit == unit / 2))
        return false;
    v = (length * scale + unit / 2) / unit;
    if (negative)
        buf_char(b, '-');
    buf_dec(b, v / scale);
    fraction = (uint32_t)(v % scale);
    if (fraction)
        buf_char(b, '.');
    for (scale /= 10; fraction; fraction %= scale, scale /= 10)
        buf_char(b, (char)('0' + fraction / scale));
    return true;
}

void buf_seconds(struct buf *b, ns_t t)
{
    uint64_t length = t < 0 ? -(uint64_t)t : (uint64_t)t, us = (length + NS_PER_US / 2) / NS_PER_US;

    if (t < 0)
        buf_char(b, '-');
    buf_dec(b, us / 1000000);
    buf_char(b, '.');
    buf_dec0(b, us % 1000000, 6);
}

/* A value that rounds to 1000 is printed in the next unit: 999.5 us is 1 ms. */
void buf_rounded(struct buf *b, ns_t t)
{
    uint64_t length = t < 0 ? -(uint64_t)t : (uint64_t)t, unit = NS_PER_S;
    unsigned i = 0;

    while (unit > 1 && length < unit - unit / 2000)
        unit = (uint64_t)time_units[++i].unit;
    if (put_rounded(b, t < 0, length, unit)) {
        buf_char(b, ' ');
        buf_puts(b, time_units[i].name);
        return;
    }
    buf_printf(b, length >= 1000 * unit - unit / 2 ? "%.0f %s" : "%.3g %s", (double)t / (double)time_units[i].unit,
               time_units[i].name);
}

const char *count_str(uint64_t n, const char *noun)
{
    static _Thread_local char text[8][64];
    static _Thread_local unsigned at;
    char *to = text[at++ % ARRAY_LEN(text)];

    snprintf(to, sizeof text[0], "%llu %s%s", (unsigned long long)n, noun, n == 1 ? "" : "s");
    return to;
}

/* Length of the valid UTF-8 character at `p` (`n` bytes left); 0: there is none (RFC 3629). */
static unsigned utf8_len(const uint8_t *p, size_t n)
{
    unsigned len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;

    if (len == 0 || n < len)
        return 0;
    for (unsigned i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool surrogate = p[0] == 0xed && p[1] > 0x9f, too_large = p[0] == 0xf4 && p[1] > 0x8f;

    return overlong || surrogate || too_large ? 0 : len;
}

/* The code point of the valid UTF-8 character at `p`, `len` bytes. */
static uint32_t utf8_code(const uint8_t *p, unsigned len)
{
    uint32_t code = len == 1 ? p[0] : p[0] & (0x7fu >> len);

    for (unsigned i = 1; i < len; i++)
        code = code << 6 | (p[i] & 0x3f);
    return code;
}

/* Whether a terminal does something else than to show the character: controls, C0, DEL and C1; line and paragraph
 * separators; marks, embeddings and isolates that change the direction of the text around them; the byte order mark. */
static bool is_control(uint32_t code)
{
    static const struct {
        uint32_t from, to;
    } ranges[] = {{0x7f, 0x9f}, {0x61c, 0x61c}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}};

    if (code < 0x20)
        return true;
    for (unsigned i = 0; i < ARRAY_LEN(ranges); i++)
        if (code >= ranges[i].from && code <= ranges[i].to)
            return true;
    return false;
}

void buf_printable(struct buf *b, const char *s, size_t n)
{
    const uint8_t *p = (const uint8_t *)s;

    for (size_t i = 0; i < n;) {
        unsigned len = utf8_len(p + i, n - i);
        if (len && !is_control(utf8_code(p + i, len))) {
            buf_mem(b, p + i, len);
            i += len;
        } else {
            buf_mem(b, "\\x", 2);
            buf_hex(b, p[i++], 2);
        }
    }
}

void buf_json(struct buf *b, const char *s, size_t n)
{
    const uint8_t *p = (const uint8_t *)s;

    buf_char(b, '"');
    for (size_t i = 0; i < n;) {
        unsigned len = utf8_len(p + i, n - i);
        if (len == 0) {
            buf_mem(b, "\xef\xbf\xbd", 3);
            i++;
        } else if (p[i] == '"' || p[i] == '\\') {
            buf_char(b, '\\');
            buf_char(b, (char)p[i++]);
        } else {
            uint32_t code = utf8_code(p + i, len);
            bool control = is_control(code);
            buf_mem(b, control ? "\\u" : (const char *)p + i, control ? 2 : len);
            if (control)
                buf_hex(b, code, 4);
            i += len;
        }
    }
    buf_char(b, '"');
}

/* A field without controls. */
static void put_csv(struct buf *b, const char *s)
{
    if (!strpbrk(s, ",\"\r\n")) {
        buf_puts(b, s);
        return;
    }
    buf_char(b, '"');
    for (; *s; s++) {
        if (*s == '"')
            buf_char(b, '"');
        buf_char(b, *s);
    }
    buf_char(b, '"');
}

void buf_csv(struct buf *b, const char *s)
{
    struct buf text = {0};

    buf_printable(&text, s, strlen(s));
    put_csv(b, buf_str(&text));
    b->err |= text.err;
    buf_free(&text);
}

void buf_markup(struct buf *b, const char *text)
{
    static const char *const names[] = {['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;", ['"'] = "&quot;"};

    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < ARRAY_LEN(names) && names[c])
            buf_puts(b, names[c]);
        else
            buf_char(b, (c < ' ' && c != '\n') || c == 0x7f ? '?' : *text);
    }
}
