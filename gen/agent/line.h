/* layer 3 (agent): a request of the line protocol, `ID VERB [VERB] KEY=VALUE ...`: its words, its arguments, and their
 * values by type. It comes from the network: nothing of it is trusted.
 *
 * A getter returns true if the argument is not given (then what it would fill keeps its value), or has the form and
 * range that are asked for; otherwise false, and `why` says what is wrong. */
#ifndef RDMATRACE_GEN_AGENT_LINE_H
#define RDMATRACE_GEN_AGENT_LINE_H

#include "buf.h"
#include "tokens.h"

#define LINE_BYTES   (64 << 10) /* longest line, with its newline */
#define LINE_DATA    (1 << 20)  /* most bytes behind a line */
#define REQUEST_ID   32         /* longest ID */
#define REQUEST_ARGS 64         /* most arguments */

struct request {
    char id[REQUEST_ID + 1]; /* chosen by the client, repeated in the answer; "?" if it has none */
    struct token verb[2];    /* one word or two, such as `mem fill` */
    unsigned n_verb;
    struct request_arg {
        struct token key, value;
    } arg[REQUEST_ARGS];
    unsigned n_args;
    const uint8_t *data; /* the bytes behind the line, `data_len` of them */
    size_t data_len;
    char why[200]; /* what is wrong with it; "": nothing was found */
};

/* A name and the value that it stands for. Tables end with a NULL name. */
struct line_name {
    const char *name;
    uint64_t value;
};

/* How many bytes follow a line of `len` bytes: its last word is `data=N`. 0: none; more than LINE_DATA: too many. */
size_t line_data(const char *line, size_t len);
/* Split `line`, `len` bytes without the newline and terminated by NUL, which must live as long as *r. False: `why`. */
bool request_parse(struct request *r, const char *line, size_t len);
/* Say what is wrong; returns false. */
bool request_wrong(struct request *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The argument of that name, or NULL. */
const struct token *request_arg(const struct request *r, const char *key);

/* An unsigned number from `min` to `max`: decimal, hexadecimal after 0x; K, M, G are powers of 1024. */
bool request_u64(struct request *r, const char *key, uint64_t min, uint64_t max, uint64_t *v);
bool request_u32(struct request *r, const char *key, uint32_t min, uint32_t max, uint32_t *v);
/* 0 or 1. */
bool request_bool(struct request *r, const char *key, bool *v);
/* One of the names, or a number of 32 bits: also one that no name stands for. */
bool request_name(struct request *r, const char *key, const struct line_name *names, uint64_t *v);
/* Names joined by commas, or a number of 32 bits: the bits of all. `-` stands for none. */
bool request_flags(struct request *r, const char *key, const struct line_name *names, uint64_t *v);
/* An IPv4 or IPv6 address, or a GID: 16 bytes, IPv4 as ::ffff:a.b.c.d. */
bool request_gid(struct request *r, const char *key, uint8_t gid[16]);
/* Pairs of hexadecimal digits, at most `max` bytes; *n: how many. */
bool request_hex(struct request *r, const char *key, uint8_t *bytes, size_t max, size_t *n);
/* A short text, copied to the `size` bytes at `text`: letters, digits, `_`, `-` and `.` only, so that it cannot be a
 * path. */
bool request_text(struct request *r, const char *key, char *text, size_t size);

/* The name of a value, or NULL. */
const char *line_name_of(const struct line_name *names, uint64_t value);
/* Append the names of the bits of `flags`, joined by commas, with what has no name in hexadecimal; `-` for none. */
void line_flags(struct buf *b, const struct line_name *names, uint64_t flags);

#endif
