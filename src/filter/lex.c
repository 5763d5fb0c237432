/* layer 3 (filter): display filters: from text to tokens. */
#include "src/filter/filter_impl.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void lex_fail_name(struct lexer *lx, uint32_t pos, uint32_t len, const char *name)
{
    lex_fail(lx, pos, len, "no field is called \"%.*s\"%s", (int)min_u32(len, 80), name, field_unknown(name, len));
}

void lex_fail(struct lexer *lx, uint32_t pos, uint32_t len, const char *fmt, ...)
{
    va_list ap;

    lx->tok.kind = TOK_BAD;
    if (lx->failed)
        return;
    lx->failed = true;
    lx->err->pos = pos;
    lx->err->len = len ? len : 1;
    va_start(ap, fmt);
    vsnprintf(lx->err->msg, sizeof lx->err->msg, fmt, ap);
    va_end(ap);
    for (char *c = lx->err->msg; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
}

/* The spelling of an operator, and its token. */
struct spelling {
    const char *text;
    uint8_t tok, op, quant;
};

/* Operators of punctuation; a longer operator stands before those that it begins with. */
static const struct spelling operators[] = {
    {"===", TOK_CMP, CMP_EQ, QUANT_ALL},
    {"!==", TOK_CMP, CMP_NE, QUANT_ANY},
    {"==", TOK_CMP, CMP_EQ, QUANT_ANY},
    {"!=", TOK_CMP, CMP_NE, QUANT_ALL},
    {"~=", TOK_CMP, CMP_NE, QUANT_ANY},
    {">=", TOK_CMP, CMP_GE, QUANT_DEFAULT},
    {"<=", TOK_CMP, CMP_LE, QUANT_DEFAULT},
    {"&&", TOK_AND, 0, 0},
    {"||", TOK_OR, 0, 0},
    {"^^", TOK_XOR, 0, 0},
    {"..", TOK_DOTDOT, 0, 0},
    {">", TOK_CMP, CMP_GT, QUANT_DEFAULT},
    {"<", TOK_CMP, CMP_LT, QUANT_DEFAULT},
    {"~", TOK_MATCHES, 0, 0},
    {"!", TOK_NOT, 0, 0},
    {"&", TOK_ARITH, AR_AND, 0},
    {"+", TOK_ARITH, AR_ADD, 0},
    {"-", TOK_ARITH, AR_SUB, 0},
    {"*", TOK_ARITH, AR_MUL, 0},
    {"/", TOK_ARITH, AR_DIV, 0},
    {"%", TOK_ARITH, AR_MOD, 0},
    {"(", TOK_LPAREN, 0, 0},
    {")", TOK_RPAREN, 0, 0},
    {"{", TOK_LBRACE, 0, 0},
    {"}", TOK_RBRACE, 0, 0},
    {"[", TOK_LBRACKET, 0, 0},
    {",", TOK_COMMA, 0, 0},
    {"#", TOK_HASH, 0, 0},
};

/* Operators that are words. */
static const struct spelling keywords[] = {
    {"and", TOK_AND, 0, 0},
    {"or", TOK_OR, 0, 0},
    {"xor", TOK_XOR, 0, 0},
    {"not", TOK_NOT, 0, 0},
    {"in", TOK_IN, 0, 0},
    {"any", TOK_ANY, 0, 0},
    {"all", TOK_ALL, 0, 0},
    {"contains", TOK_CONTAINS, 0, 0},
    {"matches", TOK_MATCHES, 0, 0},
    {"bitwise_and", TOK_ARITH, AR_AND, 0},
    {"eq", TOK_CMP, CMP_EQ, QUANT_ANY},
    {"any_eq", TOK_CMP, CMP_EQ, QUANT_ANY},
    {"all_eq", TOK_CMP, CMP_EQ, QUANT_ALL},
    {"ne", TOK_CMP, CMP_NE, QUANT_ALL},
    {"all_ne", TOK_CMP, CMP_NE, QUANT_ALL},
    {"any_ne", TOK_CMP, CMP_NE, QUANT_ANY},
    {"gt", TOK_CMP, CMP_GT, QUANT_DEFAULT},
    {"lt", TOK_CMP, CMP_LT, QUANT_DEFAULT},
    {"ge", TOK_CMP, CMP_GE, QUANT_DEFAULT},
    {"le", TOK_CMP, CMP_LE, QUANT_DEFAULT},
};

/* The operator at `pos`. */
static struct token token_of(const struct spelling *s, uint32_t pos)
{
    return (struct token){(enum tok)s->tok, s->op, s->quant, pos, (uint32_t)strlen(s->text)};
}

static char peek(const struct lexer *lx, uint32_t ahead)
{
    return lx->at + ahead < lx->len ? lx->text[lx->at + ahead] : 0;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == ':' || (unsigned char)c >= 0x80;
}

/* Whether the word of `n` bytes at `s` is an address: then "/24" after it is a prefix length, not a division. */
static bool is_address(const char *s, uint32_t n)
{
    char text[INET6_ADDRSTRLEN];
    uint8_t addr[16];

    if (n >= sizeof text)
        return false;
    memcpy(text, s, n);
    text[n] = 0;
    return inet_pton(AF_INET, text, addr) == 1 || inet_pton(AF_INET6, text, addr) == 1;
}

static void lex_word(struct lexer *lx)
{
    uint32_t start = lx->at;
    struct token *t = &lx->tok;

    for (;; lx->at++) {
        char c = peek(lx, 0);
        if (c == '.' && peek(lx, 1) == '.')
            break;
        if (!is_word(c) && !(c == '-' && is_word(peek(lx, 1))))
            break;
    }
    if (peek(lx, 0) == '/' && isdigit((unsigned char)peek(lx, 1)) && is_address(lx->text + start, lx->at - start))
        for (lx->at++; isdigit((unsigned char)peek(lx, 0));)
            lx->at++;
    *t = (struct token){.kind = TOK_WORD, .pos = start, .len = lx->at - start};
    for (unsigned i = 0; i < ARRAY_LEN(keywords); i++)
        if (strlen(keywords[i].text) == t->len && memcmp(keywords[i].text, lx->text + start, t->len) == 0)
            *t = token_of(&keywords[i], start);
}

/* "..." , r"..." or '...', with the quotes. */
static void lex_quoted(struct lexer *lx, enum tok kind)
{
    uint32_t start = lx->at;
    char quote;

    if (peek(lx, 0) != '"' && peek(lx, 0) != '\'')
        lx->at++;
    quote = lx->text[lx->at++];
    while (lx->at < lx->len && lx->text[lx->at] != quote)
        lx->at += lx->text[lx->at] == '\\' ? 2 : 1;
    if (lx->at >= lx->len) {
        lx->at = lx->len;
        lex_fail(lx, start, 1, "the final quote is missing");
        return;
    }
    lx->at++;
    lx->tok = (struct token){.kind = kind, .pos = start, .len = lx->at - start};
}

static void lex_operator(struct lexer *lx)
{
    for (unsigned i = 0; i < ARRAY_LEN(operators); i++) {
        uint32_t n = (uint32_t)strlen(operators[i].text);
        if (n > lx->len - lx->at || memcmp(operators[i].text, lx->text + lx->at, n) != 0)
            continue;
        lx->tok = token_of(&operators[i], lx->at);
        lx->at += n;
        return;
    }
    if (peek(lx, 0) == '=')
        lex_fail(lx, lx->at, 1, "\"=\" is no operator; equality is written ==");
    else if (peek(lx, 0) == '|')
        lex_fail(lx, lx->at, 1, "\"|\" is no operator; \"or\" is written ||");
    else
        lex_fail(lx, lx->at, 1, "\"%c\" has no meaning here", peek(lx, 0));
}

void lex_next(struct lexer *lx)
{
    char c;

    if (lx->failed)
        return;
    while (lx->at < lx->len && isspace((unsigned char)lx->text[lx->at]))
        lx->at++;
    c = peek(lx, 0);
    if (lx->at >= lx->len)
        lx->tok = (struct token){.kind = TOK_END, .pos = lx->len, .len = 1};
    else if (c == '"' || (c == 'r' && peek(lx, 1) == '"'))
        lex_quoted(lx, TOK_STRING);
    else if (c == '\'')
        lex_quoted(lx, TOK_CHAR);
    else if (is_word(c) && !(c == '.' && peek(lx, 1) == '.'))
        lex_word(lx);
    else
        lex_operator(lx);
}

/* A number of a range, with its sign; false if there is none. */
static bool range_number(struct lexer *lx, int32_t *out)
{
    char text[16], *end;
    uint32_t n = 0, start = lx->at;
    long v;

    if (peek(lx, 0) == '-')
        text[n++] = '-';
    while (n < sizeof text - 1 && isalnum((unsigned char)peek(lx, n)))
        text[n] = peek(lx, n), n++;
    text[n] = 0;
    errno = 0;
    v = strtol(text, &end, 0);
    if (end == text || *end || v > INT32_MAX || v < -INT32_MAX) {
        lex_fail(lx, start, n, "a range of bytes needs a number here");
        return false;
    }
    lx->at += n;
    *out = (int32_t)v;
    return true;
}

static void skip_space(struct lexer *lx)
{
    while (isspace((unsigned char)peek(lx, 0)))
        lx->at++;
}

/* Read what follows the start of a range: ":length", "-last", ":" or nothing. */
static bool range_tail(struct lexer *lx, struct range *r, uint32_t start)
{
    int32_t v;
    char c = peek(lx, 0);

    if (c != ':' && c != '-') {
        r->how = RANGE_LEN;
        r->len = 1;
        return true;
    }
    lx->at++;
    skip_space(lx);
    if (c == ':' && (peek(lx, 0) == ',' || peek(lx, 0) == ']')) {
        r->how = RANGE_REST;
        return true;
    }
    if (!range_number(lx, &v))
        return false;
    r->how = c == ':' ? RANGE_LEN : RANGE_LAST;
    r->last = v;
    r->len = v > 0 ? (uint32_t)v : 0;
    if (c == ':' && v <= 0)
        lex_fail(lx, start, lx->at - start, "the length of a range must be positive");
    else if (c == '-' && (r->start < 0) == (v < 0) && v < r->start)
        lex_fail(lx, start, lx->at - start, "a range must not end before it starts");
    return !lx->failed;
}

unsigned lex_ranges(struct lexer *lx, struct range *out)
{
    unsigned n = 0;

    for (;;) {
        struct range r = {.start = 0};
        uint32_t start;
        skip_space(lx);
        start = lx->at;
        if (peek(lx, 0) != ':' && !range_number(lx, &r.start))
            return 0;
        skip_space(lx);
        if (!range_tail(lx, &r, start))
            return 0;
        out[n++] = r;
        skip_space(lx);
        if (peek(lx, 0) == ']')
            break;
        if (peek(lx, 0) != ',') {
            lex_fail(lx, lx->at, 1, "a range ends with \"]\"");
            return 0;
        }
        if (n == RANGES_MAX) {
            lex_fail(lx, lx->at, 1, "more than %d ranges", RANGES_MAX);
            return 0;
        }
        lx->at++;
    }
    lx->at++;
    lex_next(lx);
    return lx->failed ? 0 : n;
}

/* Append a Unicode code point as UTF-8. Returns the number of bytes. */
static uint32_t put_utf8(uint8_t *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (uint8_t)(0xc0 | c >> 6);
        out[1] = (uint8_t)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xe0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 63));
        out[2] = (uint8_t)(0x80 | (c & 63));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | c >> 18);
    out[1] = (uint8_t)(0x80 | (c >> 12 & 63));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 63));
    out[3] = (uint8_t)(0x80 | (c & 63));
    return 4;
}

/* Read up to `max` digits of `base` at `*at`, before `end`; false if there is no digit. */
static bool escape_number(const char *text, uint32_t *at, uint32_t end, unsigned base, unsigned max, uint32_t *out)
{
    unsigned n = 0;

    *out = 0;
    for (; n < max && *at < end && isxdigit((unsigned char)text[*at]); n++, ++*at) {
        char c = text[*at];
        unsigned digit = isdigit((unsigned char)c) ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a' + 10);
        if (digit >= base)
            break;
        *out = *out * base + digit;
    }
    return n > 0;
}

/* Read one escape sequence; *at is after the backslash. Returns the number of bytes written, 0 after an error. A
 * sequence is never shorter than the bytes that it stands for. */
static uint32_t unescape(struct lexer *lx, uint32_t *at, uint32_t end, uint8_t *out)
{
    static const char from[] = "'\"\\abfnrtv", to[] = "'\"\\\a\b\f\n\r\t\v";
    uint32_t start = *at - 1, value;
    char c = lx->text[*at];
    const char *simple = memchr(from, c, sizeof from - 1);
    bool ok;

    if (simple) {
        ++*at;
        out[0] = (uint8_t)to[simple - from];
        return 1;
    }
    if (c >= '0' && c <= '7') {
        ok = escape_number(lx->text, at, end, 8, 3, &value) && value < 256;
    } else {
        unsigned digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0; /* at most; of u and U exactly */
        ++*at;
        ok = digits && escape_number(lx->text, at, end, 16, digits, &value) &&
             (c == 'x' || *at == start + 2 + digits) && value < 0x110000;
    }
    if (!ok) {
        lex_fail(lx, start, *at - start, "no valid escape sequence");
        return 0;
    }
    if (c == 'u' || c == 'U')
        return put_utf8(out, value);
    out[0] = (uint8_t)value;
    return 1;
}

int32_t lex_unescape(struct lexer *lx, const struct token *tok, uint8_t *out)
{
    bool raw = lx->text[tok->pos] == 'r';
    uint32_t at = tok->pos + 1 + raw, end = tok->pos + tok->len - 1, n = 0;

    while (at < end) {
        if (raw || lx->text[at] != '\\') {
            out[n++] = (uint8_t)lx->text[at++];
        } else {
            uint32_t got;
            at++;
            got = unescape(lx, &at, end, out + n);
            if (!got)
                return -1;
            n += got;
        }
    }
    return (int32_t)n;
}
