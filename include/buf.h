/* layer 0 (base): a growing output buffer, and fast text formatting into it. */
#ifndef RDMATRACE_BUF_H
#define RDMATRACE_BUF_H

#include "types.h"

/* Zero-initialise; release with buf_free(). When memory runs out `err` is set and what does not fit is dropped. */
struct buf {
    char *p;    /* text, not terminated (see buf_str()) */
    size_t len; /* bytes used */
    size_t cap; /* bytes allocated */
    bool err;   /* an append was dropped for lack of memory */
};

/* Grow so that `n` more bytes fit; false and `err` when that is impossible. */
bool buf_grow(struct buf *b, size_t n);
void buf_free(struct buf *b);
/* The text as a C string; valid until the next append. */
const char *buf_str(struct buf *b);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The same formats at a place that has room: each writes at `q` and returns the end. For the few places where appending
 * piece by piece would be slow: reserve with buf_need(), write, set b->len. */
#define FMT_DEC_MAX 20
char *fmt_dec(char *q, uint64_t v);
/* Right-aligned in `width` columns, filled with `pad`; at most FMT_DEC_MAX or `width` bytes, whichever is more. */
char *fmt_dec_pad(char *q, uint64_t v, char pad, unsigned width);
/* The last `digits` (an even number) decimal digits of `v`. */
char *fmt_digits(char *q, uint32_t v, unsigned digits);
/* At least `digits` (1 to 16) hexadecimal digits. */
char *fmt_hex(char *q, uint64_t v, unsigned digits);
#define FMT_IPV4_MAX 16 /* one byte more than the text is scribbled on */
char *fmt_ipv4(char *q, const uint8_t *p);
/* Length of that text. */
unsigned fmt_ipv4_len(const uint8_t *p);
/* A text of constant length. */
#define FMT_LITERAL(q, text) ((char *)memcpy(q, text, sizeof(text) - 1) + sizeof(text) - 1)

/* Make room for `n` more bytes. */
static inline bool buf_need(struct buf *b, size_t n)
{
    return LIKELY(b->cap - b->len >= n) || buf_grow(b, n);
}
static inline void buf_char(struct buf *b, char c)
{
    if (buf_need(b, 1))
        b->p[b->len++] = c;
}
static inline void buf_mem(struct buf *b, const void *p, size_t n)
{
    if (n && buf_need(b, n)) {
        memcpy(b->p + b->len, p, n);
        b->len += n;
    }
}
static inline void buf_puts(struct buf *b, const char *s)
{
    buf_mem(b, s, strlen(s));
}
/* `c`, `n` times. */
void buf_fill(struct buf *b, char c, size_t n);
/* Words, each line indented by `indent` spaces and at most `columns` long where words allow it; ends with a newline. */
void buf_paragraph(struct buf *b, const char *text, unsigned indent, unsigned columns);
/* Decimal. */
void buf_dec(struct buf *b, uint64_t v);
/* Decimal, right-aligned in at least `width` columns. */
void buf_dec_pad(struct buf *b, uint64_t v, unsigned width);
/* Decimal, padded with zeros to at least `digits` digits (at most 20). */
void buf_dec0(struct buf *b, uint64_t v, unsigned digits);
void buf_sdec(struct buf *b, int64_t v);
/* Hexadecimal, lower case, no prefix, padded with zeros to at least `digits` digits (1 to 16). */
void buf_hex(struct buf *b, uint64_t v, unsigned digits);
/* "0x" and buf_hex(). */
void buf_0x(struct buf *b, uint64_t v, unsigned digits);
/* Bytes as hexadecimal pairs joined by `sep` (0 for none). */
void buf_bytes(struct buf *b, const uint8_t *p, size_t n, char sep);
void buf_ipv4(struct buf *b, const uint8_t *p);
/* RFC 5952 text of an IPv6 address or GID, IPv4-mapped addresses as ::ffff:a.b.c.d. */
void buf_ipv6(struct buf *b, const uint8_t *p);
/* A GID that stands for an IPv4 address as that address, others as buf_ipv6(). */
void buf_gid(struct buf *b, const uint8_t *p);
void buf_mac(struct buf *b, const uint8_t *p);
/* Seconds with nine decimals, as in tshark's frame.time_epoch. */
void buf_time(struct buf *b, ns_t t);
/* A length of time with the unit that suits it, for people: "4.096 us", "655.36 ms". */
void buf_duration(struct buf *b, ns_t t);
/* "1 packet", "2 packets", "0 packets": a number and the noun, to which an s is added; in one of eight buffers that
 * take turns. */
const char *count_str(uint64_t n, const char *noun);
/* Bytes made printable for a terminal: control characters and invalid UTF-8 as \xNN. */
void buf_printable(struct buf *b, const char *p, size_t n);
/* A JSON string with quotes; bytes that are not valid UTF-8 become U+FFFD. */
void buf_json(struct buf *b, const char *p, size_t n);
/* A field of comma-separated values (RFC 4180): in quotes if it needs them. */
void buf_csv(struct buf *b, const char *s);

#endif
