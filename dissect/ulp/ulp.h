/* layer 1 (wire): what the dissectors of upper protocols share.
 *
 * A dissector of this folder gets bytes: a message (the payload of a SEND, in one packet or put together from several),
 * data that READs or WRITEs moved, or private data of CM. It keeps no state and looks at nothing but these bytes and
 * what its caller says of them. Bytes that do not fit never make a packet malformed: the protocol may have been
 * guessed. src/ulp/proto.h has the other half, the state. */
#ifndef RDMATRACE_DISSECT_ULP_ULP_H
#define RDMATRACE_DISSECT_ULP_ULP_H

#include "dissect/pkt.h"

/* The ends of a connection: the client sends commands and calls, the server answers them. */
enum ulp_side { ULP_CLIENT, ULP_SERVER, ULP_SIDES };
/* The peer of a side. */
static inline enum ulp_side ulp_other_side(enum ulp_side side)
{
    return side == ULP_CLIENT ? ULP_SERVER : ULP_CLIENT;
}

/* What a message looks like whose protocol is not known. */
enum ulp_looks {
    LOOKS_OTHER,  /* not of this protocol */
    LOOKS_CLIENT, /* what a client sends */
    LOOKS_SERVER,
    LOOKS_EITHER, /* what both ends send */
    LOOKS_FIRST,  /* what a client begins with: one message tells */
    LOOKS_FIRST_SERVER,
    LOOKS_FIRST_EITHER,
};
/* Whether one message is enough to recognise the protocol. */
static inline bool ulp_looks_first(enum ulp_looks l)
{
    return l >= LOOKS_FIRST;
}
/* Whether a message that looks so tells which side sent it. */
static inline bool ulp_looks_sided(enum ulp_looks l)
{
    return l != LOOKS_OTHER && l != LOOKS_EITHER && l != LOOKS_FIRST_EITHER;
}
/* Which side sent a message that looks so, if it tells. */
static inline enum ulp_side ulp_looks_side(enum ulp_looks l)
{
    return l == LOOKS_SERVER || l == LOOKS_FIRST_SERVER ? ULP_SERVER : ULP_CLIENT;
}

/* Bytes, and where they are. */
struct ulp_body {
    const uint8_t *b; /* the first byte */
    uint32_t len;     /* bytes that are there */
    uint32_t off;     /* of the first byte, as layer.off: in the frame, or in pkt.message with LAYER_MESSAGE */
    uint32_t more;    /* bytes behind them that passed, and were not captured (or not kept) */
};
/* The bytes of `m` from `at` on, at most `n`, and what of these was not captured. */
static inline struct ulp_body ulp_part(const struct ulp_body *m, uint32_t at, uint32_t n)
{
    uint32_t from = at < m->len ? at : m->len, len = m->len - from < n ? m->len - from : n;
    uint64_t passed = (uint64_t)m->len + m->more, left = passed > at ? passed - at : 0;

    left = left < n ? left : n;
    return (struct ulp_body){m->b + from, len, m->off + from, (uint32_t)(left - len)};
}

/* Add a layer for the header `hdr` of `len` bytes at byte `off` of the body; it gets what there is of them. Without any
 * of them, or if `p` is NULL, nothing is added. */
void ulp_layer(struct pkt *p, const struct hdr *hdr, const struct ulp_body *m, uint32_t off, uint32_t len);

/* Append "error 2 (ENOENT)", by the numbers of Linux. */
void ulp_error_text(struct buf *b, uint32_t error);

#endif
