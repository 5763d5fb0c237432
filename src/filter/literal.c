/* layer 3 (filter): display filters: turning literals into constants, once their type is known. */
#include "dissect/field.h"
#include "src/filter/filter_impl.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SHOWN 80 /* bytes of a literal that an error message quotes */

/* A literal that becomes a constant. */
struct literal {
    struct parser *ps;
    struct node *n;
    const char *s; /* its text: a word as written, a string without quotes and escapes */
    uint32_t len;
    const struct node *ctx; /* the field on the other side, or NULL */
};

static bool fail(const struct literal *l, const char *what)
{
    const char *s = l->ps->lx.text + l->n->pos;

    if (l->n->tok == TOK_WORD && (isalpha((unsigned char)*l->s) || *l->s == '_') && memchr(l->s, '.', l->len)) {
        lex_fail_name(&l->ps->lx, l->n->pos, l->n->len, s);
    } else {
        lex_fail(&l->ps->lx, l->n->pos, l->n->len, "\"%.*s\" is %s", (int)min_u32(l->len, SHOWN), l->s, what);
    }
    return false;
}

static bool is_text(const struct literal *l, const char *text)
{
    return strlen(text) == l->len && memcmp(text, l->s, l->len) == 0;
}

/* --- Numbers ---------------------------------------------------------------------------------- */

/* The value of `f` whose name is the literal. */
static bool value_named(const struct literal *l, const struct field *f, __int128 *out)
{
    struct buf b = {0};
    uint64_t count = f->width && f->width < 16 ? UINT64_C(1) << f->width : f->width == 16 ? 65536 : 256;
    bool found = false;

    if (!f->desc)
        return false;
    for (unsigned i = 0; !f->desc->text && i < f->desc->n; i++)
        if (is_text(l, f->desc->names[i].name)) {
            *out = f->desc->names[i].value;
            return true;
        }
    for (uint64_t v = 0; f->desc->text && !found && f->width <= 16 && v < count; v++) {
        b.len = 0;
        f->desc->text(&b, v);
        found = b.len == l->len && memcmp(b.p, l->s, b.len) == 0;
        if (found)
            *out = v;
    }
    buf_free(&b);
    return found;
}

static bool is_any_text(const struct literal *l, const char *a, const char *b, const char *c)
{
    return is_text(l, a) || is_text(l, b) || is_text(l, c);
}

static bool number_named(const struct literal *l, __int128 *out)
{
    if (!l->ctx)
        return false;
    for (uint32_t i = 0; i < l->ctx->n_refs; i++) {
        const struct field *f = l->ctx->refs[i].field;
        bool is_true = is_any_text(l, "True", "TRUE", "true");
        if (f && f->type == FT_BOOL && (is_true || is_any_text(l, "False", "FALSE", "false"))) {
            *out = is_true;
            return true;
        }
        if (f && value_named(l, f, out))
            return true;
    }
    return false;
}

/* The largest value of the field on the other side. */
static __int128 number_max(const struct literal *l)
{
    const struct field *f = l->ctx && l->ctx->n_refs ? l->ctx->refs[0].field : NULL;

    if (!f || f->type < FT_UINT8 || f->type > FT_INT64)
        return UINT64_MAX;
    switch (f->type) {
    case FT_INT8:
        return INT8_MAX;
    case FT_INT16:
        return INT16_MAX;
    case FT_INT32:
        return INT32_MAX;
    case FT_INT64:
        return INT64_MAX;
    default:
        return f->type == FT_UINT64 ? UINT64_MAX : (UINT64_C(1) << 4 * ftype_digits((enum ftype)f->type)) - 1;
    }
}

/* Decimal, 0x, 0b or octal. */
static bool number_parse(const struct literal *l, __int128 *out)
{
    unsigned base = 10;
    uint32_t at = 0;

    if (l->len > 2 && l->s[0] == '0' && (l->s[1] | 32) == 'x')
        base = 16, at = 2;
    else if (l->len > 2 && l->s[0] == '0' && (l->s[1] | 32) == 'b')
        base = 2, at = 2;
    else if (l->len > 1 && l->s[0] == '0')
        base = 8, at = 1;
    *out = 0;
    for (; at < l->len; at++) {
        char c = l->s[at];
        unsigned digit = isdigit((unsigned char)c)    ? (unsigned)(c - '0')
                         : isxdigit((unsigned char)c) ? (unsigned)((c | 32) - 'a' + 10)
                                                      : 99;
        if (digit >= base)
            return fail(l, "not a number");
        *out = *out * base + digit;
        if (*out > UINT64_MAX)
            return fail(l, "too big a number");
    }
    return true;
}

static bool convert_number(const struct literal *l, struct fval *v)
{
    v->is_num = true;
    if (l->n->tok == TOK_CHAR) {
        v->n = l->n->str[0];
        return true;
    }
    if (number_named(l, &v->n))
        return true;
    if (l->n->tok == TOK_STRING || !isdigit((unsigned char)l->s[0]))
        return fail(l, "neither a number nor the name of a value of this field");
    if (!number_parse(l, &v->n))
        return false;
    if (v->n > number_max(l)) {
        lex_fail(&l->ps->lx, l->n->pos, l->n->len, "\"%.*s\" is too big for this field, maximum %llu",
                 (int)min_u32(l->len, SHOWN), l->s, (unsigned long long)number_max(l));
        return false;
    }
    if (l->n->negative)
        v->n = -v->n;
    return true;
}

/* --- Times ------------------------------------------------------------------------------------ */

/* ".123456789": decimals of a second at `*s`, in ns. */
static int64_t decimals(const char **s)
{
    int64_t ns = 0, unit = NS_PER_S;

    if (**s != '.')
        return 0;
    for (++*s; isdigit((unsigned char)**s); ++*s) {
        unit /= 10;
        ns += unit * (**s - '0');
    }
    return ns;
}

/* "Z", "UTC", "+01:30" at `s`; true if it is one, with its seconds. */
static bool zone_parse(const char *s, long *seconds)
{
    unsigned h, m;
    int used = 0;
    char sign;

    while (*s == ' ')
        s++;
    *seconds = 0;
    if (strcmp(s, "Z") == 0 || strcmp(s, "UTC") == 0)
        return true;
    if ((sscanf(s, "%c%2u:%2u%n", &sign, &h, &m, &used) != 3 || s[used]) &&
        (sscanf(s, "%c%2u%2u%n", &sign, &h, &m, &used) != 3 || s[used]))
        return false;
    if ((sign != '+' && sign != '-') || h > 14 || m > 59)
        return false;
    *seconds = (long)(h * 3600 + m * 60) * (sign == '-' ? -1 : 1);
    return true;
}

/* "2020-07-04T12:34:56.5Z", "2020-07-04", "Sep 26, 2004 23:18:04.954975": local time unless a zone is named. */
static bool convert_date(const struct literal *l, struct fval *v)
{
    static const char *const formats[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%b %d, %Y %H:%M:%S",
                                          "%Y-%m-%dT%H:%M",    "%Y-%m-%d %H:%M",    "%Y-%m-%d"};
    char text[64];
    struct tm tm;
    const char *rest = NULL;
    int64_t ns;
    long zone;
    time_t t;

    if (l->len < sizeof text && !memchr(l->s, 0, l->len)) {
        memcpy(text, l->s, l->len);
        text[l->len] = 0;
        for (unsigned i = 0; i < ARRAY_LEN(formats) && !rest; i++) {
            memset(&tm, 0, sizeof tm);
            rest = strptime(text, formats[i], &tm);
        }
    }
    if (!rest)
        return fail(l, "not a time");
    ns = decimals(&rest);
    tm.tm_isdst = -1;
    if (*rest && !zone_parse(rest, &zone))
        return fail(l, "not a time");
    t = *rest ? timegm(&tm) - zone : mktime(&tm);
    v->n = (__int128)t * NS_PER_S + ns;
    return true;
}

static bool convert_time(const struct literal *l, struct fval *v)
{
    const char *s = l->s, *end = l->s + l->len;
    int64_t unit = NS_PER_S;
    bool fraction = false;

    v->is_num = true;
    if (l->n->tok == TOK_STRING)
        return convert_date(l, v);
    v->n = 0;
    for (; s < end && l->n->tok == TOK_WORD; s++) {
        if (*s == '.' && !fraction && s + 1 < end) {
            fraction = true;
            continue;
        }
        if (!isdigit((unsigned char)*s) || v->n > (__int128)INT64_MAX)
            return fail(l, "not a time in seconds");
        if (fraction)
            v->n += (unit /= 10) * (*s - '0');
        else
            v->n = v->n * 10 + (*s - '0') * NS_PER_S;
    }
    if (l->n->tok != TOK_WORD)
        return fail(l, "not a time in seconds");
    if (l->n->negative)
        v->n = -v->n;
    return true;
}

/* --- Bytes and addresses ---------------------------------------------------------------------- */

static unsigned hex_digit(char c)
{
    return isdigit((unsigned char)c) ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a' + 10);
}

/* Read hexadecimal digits in groups joined by : . or -; a group of one digit is one byte. Returns the number of bytes;
 * -1: the text has another form. */
static int32_t bytes_parse(const char *s, uint32_t len, uint8_t *out)
{
    uint32_t n = 0;

    if (len > 2 && s[0] == '0' && (s[1] | 32) == 'x') { /* 0xff is one byte */
        s += 2;
        len -= 2;
        if (len > 2)
            return -1;
    } else if (len > 1 && s[0] == ':' && s[1] != ':') { /* a colon before a byte string marks it as one */
        s++;
        len--;
    }
    for (uint32_t at = 0; at < len; at++) {
        uint32_t digits = 0;
        while (at + digits < len && isxdigit((unsigned char)s[at + digits]))
            digits++;
        if (!digits || (digits > 1 && digits % 2))
            return -1;
        if (digits == 1)
            out[n++] = (uint8_t)hex_digit(s[at]);
        for (uint32_t i = 0; digits > 1 && i < digits; i += 2)
            out[n++] = (uint8_t)(hex_digit(s[at + i]) << 4 | hex_digit(s[at + i + 1]));
        at += digits;
        if (at < len && (!strchr(":.-", s[at]) || at + 1 == len))
            return -1;
    }
    return n ? (int32_t)n : -1;
}

static bool convert_bytes(const struct literal *l, struct fval *v)
{
    const struct field *f = l->ctx && l->ctx->n_refs ? l->ctx->refs[0].field : NULL;
    uint32_t want = !f ? 0 : f->type == FT_ETHER ? 6 : f->type == FT_EUI64 ? 8 : 0;
    uint8_t *out;
    int32_t n;

    if (l->n->tok != TOK_WORD) {
        if (want)
            return fail(l, "in quotes, but addresses are written without");
        v->p = l->n->str;
        v->len = l->n->str_len;
        return true;
    }
    out = filter_alloc(l->ps->f, l->len);
    if (!out)
        return fail(l, "too much: out of memory");
    n = l->n->negative ? -1 : bytes_parse(l->s, l->len, out);
    if (n < 0)
        return fail(l, "not a byte string such as 0a:1b:2c");
    if (want && (uint32_t)n != want)
        return fail(l, want == 6 ? "not an Ethernet address of 6 bytes" : "not a GUID of 8 bytes");
    v->p = out;
    v->len = (uint32_t)n;
    return true;
}

/* IPv4 or IPv6 address of `bytes` bytes, with or without a prefix length. */
static bool convert_address(const struct literal *l, struct fval *v, uint32_t bytes)
{
    const char *what = bytes == 4 ? "not an IPv4 address" : "not an IPv6 address", *slash = memchr(l->s, '/', l->len);
    uint32_t n = slash ? (uint32_t)(slash - l->s) : l->len;
    char text[INET6_ADDRSTRLEN];
    uint8_t *addr = filter_alloc(l->ps->f, 16);
    unsigned long prefix;

    if (!addr)
        return fail(l, "too much: out of memory");
    if (l->n->tok != TOK_WORD)
        return fail(l, "in quotes, but addresses are written without");
    if (n >= sizeof text || l->n->negative)
        return fail(l, what);
    memcpy(text, l->s, n);
    text[n] = 0;
    if (inet_pton(bytes == 4 ? AF_INET : AF_INET6, text, addr) != 1)
        return fail(l, what);
    if (slash) {
        prefix =
            l->len - n > 4 ? 999 : strtoul(slash + 1, NULL, 10); /* the lexer read digits only, and a space follows */
        if (prefix > bytes * 8)
            return fail(l, bytes == 4 ? "not a network: its prefix exceeds 32 bits"
                                      : "not a network: its prefix exceeds 128 bits");
        if (prefix < bytes * 8)
            v->prefix = (uint8_t)prefix;
    }
    v->p = addr;
    v->len = bytes;
    return true;
}

bool literal_convert(struct parser *ps, struct node *lit, enum vtype type, const struct node *ctx)
{
    struct literal l = {ps, lit, ps->lx.text + lit->pos, lit->len, ctx};
    struct fval v = {.prefix = PREFIX_NONE};
    bool ok;

    if (lit->tok != TOK_WORD) {
        l.s = (const char *)lit->str;
        l.len = lit->str_len;
    } else if (lit->negative) {
        while (!isalnum((unsigned char)*l.s) && *l.s != ':' && *l.s != '.' && l.len > 1)
            l.s++, l.len--;
    }
    switch (type) {
    case VT_NUM:
        ok = convert_number(&l, &v);
        break;
    case VT_TIME:
        ok = convert_time(&l, &v);
        break;
    case VT_STRING:
        v.p = (const uint8_t *)l.s;
        v.len = l.len;
        ok = lit->tok != TOK_WORD || fail(&l, "not in quotes, as text must be");
        break;
    case VT_IP4:
        ok = convert_address(&l, &v, 4);
        break;
    case VT_IP6:
        ok = convert_address(&l, &v, 16);
        break;
    default:
        ok = convert_bytes(&l, &v);
        break;
    }
    if (!ok)
        return false;
    lit->kind = N_CONST;
    lit->type = (uint8_t)type;
    lit->val = v;
    return true;
}
