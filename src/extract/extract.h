/* layer 3b (extract): the memory that SENDs, WRITEs and READs carried, as files.
 *
 * By message: a file for each work request, written while its packets pass; a packet is put where its PSN says. By
 * region: a file for each memory that R_Keys gave access to, from the lowest address that was accessed to the highest
 * one, with what the latest packet wrote or read there. Bytes that were not seen are 0 in the files, and listed. */
#ifndef RDMATRACE_EXTRACT_EXTRACT_H
#define RDMATRACE_EXTRACT_EXTRACT_H

#include "src/measure/meter.h"

#define EXTRACT_FILES 10000 /* files at most, unless something else is said */
#define EXTRACT_HOLES 16    /* holes that text lists of a file */
#define EXTRACT_GAP                                                                                                    \
    (UINT64_C(16) << 20) /* bytes: behind a larger gap between addresses a region goes on in another file */

struct extract_opts {
    const char *dir;           /* where the files are written; it exists */
    bool regions;              /* by region, not by message */
    bool json;                 /* rows are objects of JSON, not lines of text */
    uint32_t conn;             /* only this connection; 0: all */
    uint64_t memory;           /* bytes for regions; 0: ROOM_DEFAULT */
    uint64_t files;            /* at most */
    struct buf *out;           /* a row is appended for each file */
    void (*flush)(void *user); /* called after each row */
    void *user;
};

struct extract;

/* NULL: out of memory. */
struct extract *extract_new(const struct extract_opts *o);
void extract_free(struct extract *x);
/* For wqe_user.packet(): packet `p` of work request `w` of `row`. `pmtu`: path MTU in bytes, 0: not known. */
void extract_packet(struct extract *x, const struct wqe *w, const struct pkt *p, const struct meter_row *row,
                    uint32_t pmtu);
/* For wqe_user.over(): work request `w` gets no more packets. */
void extract_over(struct extract *x, const struct wqe *w);

/* What was done. */
struct extract_sums {
    uint64_t files;
    uint64_t bytes;    /* seen, in all files */
    uint64_t missing;  /* bytes of holes */
    uint64_t left_out; /* messages or regions without a file: more than extract_opts.files */
    bool no_memory;    /* regions, or their lists of holes, lack what there was no memory for */
    int error;         /* errno of a file that could not be written; 0: none */
    char failed[64];   /* its name */
};
/* After the last packet: write the regions. */
struct extract_sums extract_end(struct extract *x);

#endif
