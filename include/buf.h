/* layer 0 (base): a growing output buffer, and fast text formatting into it. */
#ifndef RDMATRACE_BUF_H
#define RDMATRACE_BUF_H

#include "types.h"

#include <stdarg.h>

/* Zero-initialise it; release it with buf_free(). An append that cannot get memory is dropped and sets `err`. */
struct buf {
    char *p;    /* text, not terminated (see buf_str()) */
    size_t len; /* bytes used */
    size_t cap; /* bytes allocated */
    bool err;   /* an append was dropped for lack of memory */
};

/* Grow until `n` more bytes fit. False, with `err` set, when there is no memory. buf_need() is the fast path. */
bool buf_grow(struct buf *b, size_t n);
/* Release the memory and zero the struct. */
void buf_free(struct buf *b);
/* The text as a C string; valid until the next append. */
const char *buf_str(struct buf *b);
/* Append text as printf() formats it. */
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Likewise, as vprintf() does. */
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);

/* fmt_*(): the formats of buf_*(), written to memory that the caller has reserved. Each writes at `q` and returns the
 * end of its text. They are for hot paths: reserve with buf_need(), write, set b->len. */
#define FMT_DEC_MAX 20 /* bytes of the longest decimal number */
/* Decimal, at most FMT_DEC_MAX bytes. */
char *fmt_dec(char *q, uint64_t v);
/* Decimal, right-aligned in `width` columns, filled with `pad`; at most the larger of FMT_DEC_MAX and `width` bytes. */
char *fmt_dec_pad(char *q, uint64_t v, char pad, unsigned width);
/* The last `digits` decimal digits of `v`; `digits` is even. */
char *fmt_digits(char *q, uint32_t v, unsigned digits);
/* Hexadecimal, padded with zeros to at least `digits` (1 to 16) digits. */
char *fmt_hex(char *q, uint64_t v, unsigned digits);
#define FMT_IPV4_MAX 16 /* bytes that fmt_ipv4() may overwrite; its text has 7 to 15 */
/* The IPv4 address at `p`. */
char *fmt_ipv4(char *q, const uint8_t *p);
/* Length of the text that fmt_ipv4() writes for the address at `p`. */
unsigned fmt_ipv4_len(const uint8_t *p);
/* Copy the string literal `text` to `q`; its value is the end of the copy. */
#define FMT_LITERAL(q, text) ((char *)memcpy(q, text, sizeof(text) - 1) + sizeof(text) - 1)

/* Make room for `n` more bytes; false when there is no memory. */
static inline bool buf_need(struct buf *b, size_t n)
{
    return LIKELY(b->cap - b->len >= n) || buf_grow(b, n);
}
/* Append one byte. */
static inline void buf_char(struct buf *b, char c)
{
    if (buf_need(b, 1))
        b->p[b->len++] = c;
}
/* Append `n` bytes. */
static inline void buf_mem(struct buf *b, const void *p, size_t n)
{
    if (n && buf_need(b, n)) {
        memcpy(b->p + b->len, p, n);
        b->len += n;
    }
}
/* Append a C string. */
static inline void buf_puts(struct buf *b, const char *s)
{
    buf_mem(b, s, strlen(s));
}
/* Append `c` `n` times. */
void buf_fill(struct buf *b, char c, size_t n);
/* Fill lines with the words of `text`: each line is indented by `indent` spaces and has at most `columns` columns,
 * unless a single word is longer. The last line ends with a newline too. */
void buf_paragraph(struct buf *b, const char *text, unsigned indent, unsigned columns);
/* Append `n` bytes of text, with each line that has more than `columns` columns broken between words. What is continued
 * stands below the last column of its line, as in a list of options, else it is indented. A word is never broken. */
void buf_fold(struct buf *b, const char *text, size_t n, unsigned columns);
/* Decimal. */
void buf_dec(struct buf *b, uint64_t v);
/* Decimal, right-aligned in at least `width` columns. */
void buf_dec_pad(struct buf *b, uint64_t v, unsigned width);
/* Decimal, padded with zeros to at least `digits` digits (at most 20). */
void buf_dec0(struct buf *b, uint64_t v, unsigned digits);
/* Decimal, signed. */
void buf_sdec(struct buf *b, int64_t v);
/* Hexadecimal, lower case, no prefix, padded with zeros to at least `digits` digits (1 to 16). */
void buf_hex(struct buf *b, uint64_t v, unsigned digits);
/* "0x", then as buf_hex(). */
void buf_0x(struct buf *b, uint64_t v, unsigned digits);
/* `n` bytes as pairs of hexadecimal digits, with `sep` between them (0: nothing). */
void buf_bytes(struct buf *b, const uint8_t *p, size_t n, char sep);
/* The IPv4 address in the 4 bytes at `p`. */
void buf_ipv4(struct buf *b, const uint8_t *p);
/* RFC 5952 text of an IPv6 address or GID, IPv4-mapped addresses as ::ffff:a.b.c.d. */
void buf_ipv6(struct buf *b, const uint8_t *p);
/* An IPv4-mapped GID as its IPv4 address, any other GID as buf_ipv6(). */
void buf_gid(struct buf *b, const uint8_t *p);
/* The MAC address in the 6 bytes at `p`, joined by colons. */
void buf_mac(struct buf *b, const uint8_t *p);
/* A time in ns as seconds with nine decimals, as in tshark's frame.time_epoch. */
void buf_time(struct buf *b, ns_t t);
/* "1.234568": seconds with six decimals, rounded. */
void buf_seconds(struct buf *b, ns_t t);
/* A duration in ns, in the unit that suits it: "4.096 us", "655.36 ms". */
void buf_duration(struct buf *b, ns_t t);
/* The same with three significant digits, as in a sentence: "67.1 ms", "4 us"; more than 1000 s in whole seconds. */
void buf_rounded(struct buf *b, ns_t t);
/* A number and its noun, with an s unless the number is 1: "1 packet", "0 packets". The text stays valid for the next
 * seven calls of the same thread. */
const char *count_str(uint64_t n, const char *noun);
/* `n` bytes of text for a terminal: invalid UTF-8, and characters that a terminal does not show but obeys (controls,
 * also those of the direction of text), become \xNN. */
void buf_printable(struct buf *b, const char *p, size_t n);
/* `n` bytes of text as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD, those characters \uNNNN. */
void buf_json(struct buf *b, const char *p, size_t n);
/* Append a text in which nothing is markup of HTML or XML: `<` as `&lt;` and so on, control characters but the end of a
 * line as `?`. */
void buf_markup(struct buf *b, const char *text);
/* A field of a CSV file (RFC 4180), quoted where necessary; what buf_printable() replaces becomes \xNN. */
void buf_csv(struct buf *b, const char *s);

#endif
