/* layer 2b (ulp): internal: SENDs of several FPDUs of iWARP, put together. */
#ifndef RDMATRACE_ULP_STREAMS_SENDING_H
#define RDMATRACE_ULP_STREAMS_SENDING_H

#include "src/iwarp/iwarp.h"

struct ulp;

/* A SEND of several FPDUs. */
struct sending {
    uint8_t *bytes;    /* from its first one up to the first that was not captured */
    uint32_t len, cap; /* of them; bytes that there is room for */
    uint32_t total;    /* bytes of it so far, with those that are missing */
    uint32_t fpdus;    /* of it so far */
    bool begun;        /* its last segment has not passed yet */
    bool cut;          /* bytes of it are missing from `len` on */
    uint32_t msn;      /* its message number */
    ns_t start;        /* time of its first byte */
    uint32_t seq;      /* sequence number of its first byte */
};

/* Keep the bytes of a segment of a SEND: of `d`, or of one that it begins. */
void sending_keep(struct ulp *u, struct sending *d, const struct iwarp_unit *w);

#endif
