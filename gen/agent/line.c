/* layer 3 (agent): requests of the line protocol: words, arguments and their values. */
#include "gen/agent/line.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>

#define WORDS (3 + REQUEST_ARGS)

bool request_wrong(struct request *r, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(r->why, sizeof r->why, fmt, ap);
    va_end(ap);
    for (char *p = r->why; *p; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
    return false;
}

static bool wrong_value(struct request *r, const char *key, const struct token *t, const char *expected)
{
    return request_wrong(r, "%s=%.*s: expected %s", key, (int)(t->len < 40 ? t->len : 40), t->p, expected);
}

size_t line_data(const char *line, size_t len)
{
    size_t at = len, n = 0;

    while (at && line[at - 1] != ' ')
        at--;
    if (len - at < 6 || memcmp(line + at, "data=", 5) != 0)
        return 0;
    for (at += 5; at < len; at++) {
        if (line[at] < '0' || line[at] > '9')
            return 0;
        n = n * 10 + (size_t)(line[at] - '0');
        if (n > LINE_DATA)
            return LINE_DATA + 1;
    }
    return n;
}

static bool is_text(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (line[i] < ' ' || line[i] > '~')
            return false;
    return true;
}

static bool is_name_char(char c)
{
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), digit = c >= '0' && c <= '9';

    return letter || digit || c == '_' || c == '-' || c == '.';
}

static bool is_name(const struct token *t, size_t max)
{
    for (uint32_t i = 0; i < t->len; i++)
        if (!is_name_char(t->p[i]))
            return false;
    return t->len >= 1 && t->len <= max;
}

static bool take_args(struct request *r, const struct token *words, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct request_arg *a = &r->arg[r->n_args];
        if (!token_key(&words[i], &a->key, &a->value) || !is_name(&a->key, 32))
            return request_wrong(r, "expected key=value, not %.*s", (int)(words[i].len < 40 ? words[i].len : 40),
                                 words[i].p);
        for (unsigned k = 0; k < r->n_args; k++)
            if (r->arg[k].key.len == a->key.len && memcmp(r->arg[k].key.p, a->key.p, a->key.len) == 0)
                return request_wrong(r, "%.*s is given twice", (int)a->key.len, a->key.p);
        r->n_args++;
    }
    return true;
}

bool request_parse(struct request *r, const char *line, size_t len)
{
    struct token t[WORDS + 1];
    unsigned n, at = 1;

    memset(r, 0, offsetof(struct request, arg));
    r->n_args = 0;
    r->data = NULL;
    r->data_len = 0;
    r->why[0] = '\0';
    strcpy(r->id, "?");
    if (!is_text(line, len))
        return request_wrong(r, "a line has printable ASCII only");
    n = text_split(line, t, WORDS);
    if (n < 2)
        return request_wrong(r, "expected an ID and a verb");
    if (!is_name(&t[0], REQUEST_ID))
        return request_wrong(r, "an ID has 1 to %d letters, digits, _, - and .", REQUEST_ID);
    memcpy(r->id, t[0].p, t[0].len);
    r->id[t[0].len] = '\0';
    if (n > WORDS)
        return request_wrong(r, "more than %d arguments", REQUEST_ARGS);
    while (at < n && r->n_verb < 2 && is_name(&t[at], 32))
        r->verb[r->n_verb++] = t[at++];
    if (!r->n_verb)
        return request_wrong(r, "expected a verb");
    return n - at <= REQUEST_ARGS ? take_args(r, t + at, n - at) : request_wrong(r, "too many arguments");
}

const struct token *request_arg(const struct request *r, const char *key)
{
    for (unsigned i = 0; i < r->n_args; i++)
        if (token_is(&r->arg[i].key, key))
            return &r->arg[i].value;
    return NULL;
}

bool request_u64(struct request *r, const char *key, uint64_t min, uint64_t max, uint64_t *v)
{
    const struct token *t = request_arg(r, key);
    uint64_t got;
    char range[80];

    if (!t)
        return true;
    if ((token_u64(t, &got) || token_size(t, &got)) && got >= min && got <= max) {
        *v = got;
        return true;
    }
    snprintf(range, sizeof range, "a number from %llu to %llu", (unsigned long long)min, (unsigned long long)max);
    return wrong_value(r, key, t, range);
}

bool request_u32(struct request *r, const char *key, uint32_t min, uint32_t max, uint32_t *v)
{
    uint64_t got = *v;
    bool good = request_u64(r, key, min, max, &got);

    if (good)
        *v = (uint32_t)got;
    return good;
}

bool request_bool(struct request *r, const char *key, bool *v)
{
    uint64_t got = *v;
    bool good = request_u64(r, key, 0, 1, &got);

    if (good)
        *v = got != 0;
    return good;
}

static bool name_value(const struct token *t, const struct line_name *names, uint64_t *v)
{
    for (; names->name; names++)
        if (token_is(t, names->name)) {
            *v = names->value;
            return true;
        }
    return token_u64(t, v) && *v <= UINT32_MAX;
}

static bool wrong_name(struct request *r, const char *key, const struct token *t, const struct line_name *names)
{
    struct buf b = {0};

    for (; names->name; names++)
        buf_printf(&b, "%s%s", b.len ? ", " : "", names->name);
    buf_puts(&b, " or a number");
    wrong_value(r, key, t, buf_str(&b));
    buf_free(&b);
    return false;
}

bool request_name(struct request *r, const char *key, const struct line_name *names, uint64_t *v)
{
    const struct token *t = request_arg(r, key);
    uint64_t got;

    if (!t)
        return true;
    if (!name_value(t, names, &got))
        return wrong_name(r, key, t, names);
    *v = got;
    return true;
}

bool request_flags(struct request *r, const char *key, const struct line_name *names, uint64_t *v)
{
    const struct token *t = request_arg(r, key);
    struct token rest, first;
    uint64_t all = 0, one;
    bool more;

    if (!t)
        return true;
    rest = *t;
    if (token_is(t, "-"))
        rest.len = 0;
    for (more = rest.len != 0; more; all |= one) {
        struct token next = {0};
        more = token_cut(&rest, ',', &first, &next);
        if (!name_value(&first, names, &one))
            return wrong_name(r, key, &first, names);
        rest = next;
    }
    *v = all;
    return true;
}

bool request_gid(struct request *r, const char *key, uint8_t gid[16])
{
    const struct token *t = request_arg(r, key);
    char text[INET6_ADDRSTRLEN];

    if (!t)
        return true;
    if (t->len < sizeof text) {
        memcpy(text, t->p, t->len);
        text[t->len] = '\0';
        if (inet_pton(AF_INET6, text, gid) == 1)
            return true;
        if (inet_pton(AF_INET, text, gid + 12) == 1) {
            memset(gid, 0, 10);
            gid[10] = gid[11] = 0xff;
            return true;
        }
    }
    return wrong_value(r, key, t, "an address or a GID");
}

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c | 0x20) : NULL;

    return !at || (c < '0') ? -1 : (int)(at - digits);
}

bool request_hex(struct request *r, const char *key, uint8_t *bytes, size_t max, size_t *n)
{
    const struct token *t = request_arg(r, key);

    if (!t)
        return true;
    if (t->len % 2 || t->len / 2 > max)
        return request_wrong(r, "%s: expected at most %zu bytes, as pairs of hexadecimal digits", key, max);
    for (uint32_t i = 0; i < t->len; i += 2) {
        int high = hex_digit(t->p[i]), low = hex_digit(t->p[i + 1]);
        if (high < 0 || low < 0)
            return wrong_value(r, key, t, "pairs of hexadecimal digits");
        bytes[i / 2] = (uint8_t)(high << 4 | low);
    }
    *n = t->len / 2;
    return true;
}

bool request_text(struct request *r, const char *key, char *text, size_t size)
{
    const struct token *t = request_arg(r, key);

    if (!t)
        return true;
    if (!is_name(t, size - 1) || t->p[0] == '.')
        return wrong_value(r, key, t, "a name");
    memcpy(text, t->p, t->len);
    text[t->len] = '\0';
    return true;
}

const char *line_name_of(const struct line_name *names, uint64_t value)
{
    for (; names->name; names++)
        if (names->value == value)
            return names->name;
    return NULL;
}

void line_flags(struct buf *b, const struct line_name *names, uint64_t flags)
{
    const char *sep = "";

    if (!flags)
        buf_char(b, '-');
    for (; names->name; names++)
        if (flags & names->value) {
            buf_printf(b, "%s%s", sep, names->name);
            flags &= ~names->value;
            sep = ",";
        }
    if (flags)
        buf_printf(b, "%s0x%llx", sep, (unsigned long long)flags);
}
