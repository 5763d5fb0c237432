/* layer 0 (base): words of event specifications and scenario lines: splitting, numbers with units, errors with a
 * column. */
#ifndef RDMATRACE_TOKENS_H
#define RDMATRACE_TOKENS_H

#include "types.h"

/* A word of a line; not terminated. */
struct token {
    const char *p;
    uint32_t len;
    uint32_t col; /* of its first character, from 1 */
};

/* Takes a line for people, without a newline. */
typedef void told_fn(void *user, const char *line);

/* What is wrong with a line, and where. */
struct text_error {
    uint32_t col;  /* from 1; 0: the line as a whole */
    char msg[240]; /* one line, no newline */
};
/* Fill *e; returns false, so that parsers can end with it. */
bool text_fail(struct text_error *e, const struct token *t, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Split `line` at blanks into at most `max` words; a word that starts with # ends the line. Returns how many there are;
 * more than `max` count as max + 1. */
unsigned text_split(const char *line, struct token *t, unsigned max);
/* Whether the word is `s`. */
bool token_is(const struct token *t, const char *s);
/* Of "key=value": the part behind the '=' goes to *value and the part before it to *key; false (and *key is the whole
 * word) without '='. */
bool token_key(const struct token *t, struct token *key, struct token *value);
/* Split at the first `sep`; false if there is none. */
bool token_cut(const struct token *t, char sep, struct token *before, struct token *after);

/* Each reads the whole word; false if it is not one. */
/* Decimal or 0x hexadecimal. */
bool token_u64(const struct token *t, uint64_t *v);
/* Bytes: with an optional K, M or G (powers of 1024). */
bool token_size(const struct token *t, uint64_t *v);
/* Time: with ns, us, ms or s, up to nine decimals; without a unit only 0. */
bool token_time(const struct token *t, ns_t *v);
/* Bit/s: with an optional K, M or G (powers of 1000), decimals allowed. */
bool token_rate(const struct token *t, uint64_t *v);
/* Probability in parts per billion: "0.01", "1%", "1e-6", 0 to 1. */
bool token_ppb(const struct token *t, uint32_t *v);

/* The same for C strings, as options give them. */
struct token token_of(const char *s);

#endif
