/* layer 3 (filter): display filters in Wireshark's syntax (rdmatrace-filter(7)): compile once, match many packets. */
#ifndef RDMATRACE_FILTER_FILTER_H
#define RDMATRACE_FILTER_FILTER_H

#include "buf.h"

struct pkt;

/* Limits of a filter: bytes of text, and levels of nesting. */
#define FILTER_TEXT_MAX  65536
#define FILTER_DEPTH_MAX 200

/* Why a text is not a filter. */
struct filter_error {
    size_t pos;    /* first byte of the text that is wrong, from 0; the text's length when it ends too early */
    size_t len;    /* bytes that are wrong, at least 1 (for the caret line) */
    char msg[256]; /* what is wrong, one line, without a full stop; control characters of the text are replaced */
};

/* What must be computed before a filter runs; masks of these bits. */
enum {
    FILTER_NEEDS_NOTE = 1u << 0,   /* rdma.* of pkt_note: context across packets */
    FILTER_NEEDS_CRC = 1u << 1,    /* rdma.icrc.* or rdma.vcrc.*: decode_opts.verify */
    FILTER_NEEDS_COLUMN = 1u << 2, /* _ws.col.* */
    FILTER_NEEDS_STREAM = 1u << 4, /* udp.stream, tcp.stream: streams_see() */
    FILTER_NEEDS_MARKS = 1u << 3,  /* rdma.finding, rdma.incident, rdma.cause: a first pass over the capture */
};

struct filter;

/* Compile `text`. Returns NULL and fills *err if the text is wrong or memory ran out. An empty text passes every
 * packet. */
struct filter *filter_compile(const char *text, struct filter_error *err);

/* Append two lines for people: the part of `text` around the error, and carets below what is wrong. */
void filter_error_show(struct buf *b, const char *text, const struct filter_error *err);

/* Whether the packet passes. Allocates nothing once warm. A filter keeps scratch memory of its own, so one filter
 * serves one thread at a time. Values that do not fit the scratch memory (1 MiB of text made by functions and joined
 * slices, 4096 values) are left out. A regular expression that exceeds its match limit does not match. */
bool filter_match(const struct filter *f, const struct pkt *p);

/* FILTER_NEEDS_* of the fields that the filter uses. */
unsigned filter_needs(const struct filter *f);

/* Release; NULL is allowed. */
void filter_free(struct filter *f);

#endif
