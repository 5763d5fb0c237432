/* layer 0 (base): words of event specifications and scenario lines: splitting, numbers with units, errors with a
 * column. */
#ifndef RDMATRACE_TOKENS_H
#define RDMATRACE_TOKENS_H

#include "types.h"

/* A word of a line: `len` bytes at `p`, not terminated. */
struct token {
    const char *p;
    uint32_t len;
    uint32_t col; /* column of the first character, from 1 */
};

/* Callback that takes one line of text, without a newline; `user` is what the caller passed along. */
typedef void report_fn(void *user, const char *line);

/* An error in a line: message and column. */
struct text_error {
    uint32_t col;  /* column, from 1, also of an error about the whole line */
    char msg[240]; /* one line without a newline, printable */
};
/* Fill *e with a message about word `t` (NULL: about the whole line). Always returns false, so that a parser can return
 * the call. */
bool text_fail(struct text_error *e, const struct token *t, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The number of characters to insert, delete or change that turn `a` (`na` bytes) into `b` (`nb` bytes), at most
 * `limit`; `limit` for names of more than 127 bytes. */
unsigned text_distance(const char *a, size_t na, const char *b, size_t nb, unsigned limit);
/* The name nearest to a mistyped word among those that were tried. */
struct text_nearest {
    const char *word;
    size_t len;
    unsigned least;   /* a name has to be nearer than this */
    const char *name; /* NULL: none is near; as long as the names tried live */
};
static inline struct text_nearest text_nearest_to(const char *word, size_t len)
{
    return (struct text_nearest){word, len, (unsigned)(len + 4) / 3, NULL};
}
/* Try one more name; true if it is the nearest so far. */
bool text_nearest_try(struct text_nearest *n, const char *name);
/* Split `line` at white space into at most `max` words; a word that starts with # starts a comment. Returns the number
 * of words, or max + 1 if there are more than `max`. */
unsigned text_split(const char *line, struct token *t, unsigned max);
/* True if the word is `s`. */
bool token_is(const struct token *t, const char *s);
/* Split "key=value" at the first '=' into *key and *value. Without '=': false, and *key is the whole word. */
bool token_key(const struct token *t, struct token *key, struct token *value);
/* Split at the first `sep` into *before and *after. Without `sep`: false, and *before is the whole word. */
bool token_cut(const struct token *t, char sep, struct token *before, struct token *after);

/* The functions below parse a whole word; false if it is not of the form that they take. */
/* A number: decimal, or hexadecimal after 0x. */
bool token_u64(const struct token *t, uint64_t *v);
/* A size in bytes, with an optional K, M or G (powers of 1024). */
bool token_size(const struct token *t, uint64_t *v);
/* A time, stored in ns: a number with up to nine decimals and ns, us, ms or s. Only 0 needs no unit. */
bool token_time(const struct token *t, ns_t *v);
/* A rate in bit/s, with an optional K, M or G (powers of 1000); decimals are allowed. */
bool token_rate(const struct token *t, uint64_t *v);
/* A probability from 0 to 1, stored in parts per billion: "0.01", "1%", "1e-6". */
bool token_ppb(const struct token *t, uint32_t *v);

/* The C string `s` as a word at column 1, for arguments of options. */
struct token token_of(const char *s);

#endif
