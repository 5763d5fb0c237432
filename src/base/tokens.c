/* layer 0 (base): words of event specifications and scenario lines. */
#include "tokens.h"

#include "buf.h"

#include <stdarg.h>
#include <stdio.h>

bool text_fail(struct text_error *e, const struct token *t, const char *fmt, ...)
{
    char raw[sizeof e->msg];
    struct buf shown = {0};
    va_list ap;

    e->col = t ? t->col : 1;
    va_start(ap, fmt);
    vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    buf_printable(&shown, raw, strlen(raw));
    snprintf(e->msg, sizeof e->msg, "%s", buf_str(&shown));
    buf_free(&shown);
    return false;
}

unsigned text_distance(const char *a, size_t na, const char *b, size_t nb, unsigned limit)
{
    unsigned row[128];

    if (nb >= ARRAY_LEN(row) || na >= ARRAY_LEN(row) || (na > nb ? na - nb : nb - na) >= limit)
        return limit;
    for (unsigned j = 0; j <= nb; j++)
        row[j] = j;
    for (unsigned i = 1; i <= na; i++) {
        unsigned diagonal = row[0], least = i;
        row[0] = i;
        for (unsigned j = 1; j <= nb; j++) {
            unsigned best = min_u32(min_u32(row[j], row[j - 1]) + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = row[j];
            row[j] = best;
            least = min_u32(least, best);
        }
        if (least >= limit) /* it never becomes less */
            return limit;
    }
    return min_u32(row[nb], limit);
}

bool text_nearest_try(struct text_nearest *n, const char *name)
{
    unsigned d = text_distance(n->word, n->len, name, strlen(name), n->least);

    if (d >= n->least)
        return false;
    n->least = d;
    n->name = name;
    return true;
}

unsigned text_split(const char *line, struct token *t, unsigned max)
{
    unsigned n = 0;
    const char *p = line;

    for (;;) {
        p += strspn(p, " \t\r\n");
        if (!*p || *p == '#')
            return n;
        if (n == max)
            return max + 1;
        t[n].p = p;
        t[n].len = (uint32_t)strcspn(p, " \t\r\n");
        t[n].col = (uint32_t)(p - line) + 1;
        p += t[n++].len;
    }
}

bool token_is(const struct token *t, const char *s)
{
    return strlen(s) == t->len && memcmp(t->p, s, t->len) == 0;
}

bool token_cut(const struct token *t, char sep, struct token *before, struct token *after)
{
    const char *q = memchr(t->p, sep, t->len);
    struct token whole = *t;

    *before = whole;
    if (!q)
        return false;
    before->len = (uint32_t)(q - whole.p);
    *after = (struct token){q + 1, whole.len - before->len - 1, whole.col + before->len + 1};
    return true;
}

bool token_key(const struct token *t, struct token *key, struct token *value)
{
    return token_cut(t, '=', key, value);
}

struct token token_of(const char *s)
{
    return (struct token){s, (uint32_t)strlen(s), 1};
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

/* Parse digits from *p on; false if there are none, or the number is too large. */
static bool digits(const char **p, const char *end, unsigned base, uint64_t *v)
{
    const char *start = *p;

    for (*v = 0; *p < end && (unsigned)digit(**p) < base; ++*p)
        if (__builtin_mul_overflow(*v, base, v) || __builtin_add_overflow(*v, (uint64_t)digit(**p), v))
            return false;
    return *p > start;
}

bool token_u64(const struct token *t, uint64_t *v)
{
    const char *p = t->p, *end = p + t->len;

    if (t->len > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
        p += 2;
        return digits(&p, end, 16, v) && p == end;
    }
    return digits(&p, end, 10, v) && p == end;
}

/* Parse a decimal fraction in units of 10^-9; *unit, *n: the unit that follows it. */
static bool fraction(const struct token *t, unsigned __int128 *v, const char **unit, size_t *n)
{
    const char *p = t->p, *end = p + t->len;
    uint64_t whole, part = 0, scale = 1000000000;

    if (!digits(&p, end, 10, &whole))
        return false;
    if (p < end && *p == '.')
        for (p++; p < end && *p >= '0' && *p <= '9'; p++) {
            if (scale == 1)
                return false;
            scale /= 10;
            part += (uint64_t)(*p - '0') * scale;
        }
    *v = (unsigned __int128)whole * 1000000000 + part;
    *unit = p;
    *n = (size_t)(end - p);
    return true;
}

/* Multiply `v` (in 10^-9) by `factor`; false if the result is not a whole number, or too large. */
static bool scaled(unsigned __int128 v, uint64_t factor, uint64_t *out)
{
    unsigned __int128 r;

    if (__builtin_mul_overflow(v, (unsigned __int128)factor, &r) || r % 1000000000 || r / 1000000000 > INT64_MAX)
        return false;
    *out = (uint64_t)(r / 1000000000);
    return true;
}

/* Factor of the prefix K, M or G. */
static bool prefix_of(const char *unit, size_t n, uint64_t base, uint64_t *factor)
{
    static const char letters[] = "KMG";
    const char *q;

    *factor = 1;
    if (n == 0)
        return true;
    q = n == 1 ? strchr(letters, *unit >= 'a' ? *unit - 32 : *unit) : NULL;
    if (!q || !*q)
        return false;
    for (int i = 0; i <= q - letters; i++)
        *factor *= base;
    return true;
}

bool token_size(const struct token *t, uint64_t *v)
{
    unsigned __int128 f;
    const char *unit;
    uint64_t factor;
    size_t n;

    return token_u64(t, v) || (fraction(t, &f, &unit, &n) && prefix_of(unit, n, 1024, &factor) && scaled(f, factor, v));
}

bool token_rate(const struct token *t, uint64_t *v)
{
    unsigned __int128 f;
    const char *unit;
    uint64_t factor;
    size_t n;

    return fraction(t, &f, &unit, &n) && prefix_of(unit, n, 1000, &factor) && scaled(f, factor, v);
}

bool token_time(const struct token *t, ns_t *v)
{
    static const struct {
        const char *unit;
        uint64_t ns;
    } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
    unsigned __int128 f;
    const char *unit;
    uint64_t u;
    size_t n;

    if (!fraction(t, &f, &unit, &n))
        return false;
    *v = 0;
    if (n == 0)
        return f == 0;
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (strlen(units[i].unit) == n && memcmp(unit, units[i].unit, n) == 0 && scaled(f, units[i].ns, &u)) {
            *v = (ns_t)u;
            return true;
        }
    return false;
}

bool token_ppb(const struct token *t, uint32_t *v)
{
    unsigned __int128 f;
    const char *unit;
    size_t n;

    if (!fraction(t, &f, &unit, &n))
        return false;
    if (n == 1 && *unit == '%')
        f /= 100;
    else if (n == 4 && memcmp(unit, "e-", 2) == 0 && unit[2] == '0' && unit[3] >= '0' && unit[3] <= '9')
        for (int i = unit[3] - '0'; i > 0; i--)
            f /= 10;
    else if (n == 3 && memcmp(unit, "e-", 2) == 0 && unit[2] >= '0' && unit[2] <= '9')
        for (int i = unit[2] - '0'; i > 0; i--)
            f /= 10;
    else if (n)
        return false;
    *v = (uint32_t)f;
    return f <= 1000000000;
}
