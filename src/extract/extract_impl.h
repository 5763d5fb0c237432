/* layer 3b (extract): what its files share. */
#ifndef RDMATRACE_EXTRACT_EXTRACT_IMPL_H
#define RDMATRACE_EXTRACT_EXTRACT_IMPL_H

#include "src/extract/extract.h"
#include "src/extract/seen.h"

#define NAME_MAX_BYTES 96 /* of a file, with its end */

/* A file of the directory. */
struct piece {
    char name[NAME_MAX_BYTES];
    int slot;  /* in files.open, or -1 */
    bool made; /* it exists */
};

#define FILES_OPEN 64 /* files that are open at a time */

/* The directory: files that are written piece by piece, few of them open at a time. */
struct files {
    int dir;
    struct {
        int fd;
        struct piece *of; /* NULL: free */
    } open[FILES_OPEN];
    unsigned next; /* that is closed next */
    int error;     /* the first errno; 0: none */
    char failed[NAME_MAX_BYTES];
};

bool files_open(struct files *s, const char *dir);
/* Write `n` bytes at `at`; with n 0 the file is only created. After an error nothing is written. */
void files_write(struct files *s, struct piece *p, uint64_t at, const uint8_t *b, size_t n);
/* Make it `len` bytes long, unless there was an error, and close it. */
void files_close(struct files *s, struct piece *p, uint64_t len);
void files_free(struct files *s);

/* --- regions.c ---------------------------------------------------------------------------------- */

struct regions;

/* `memory`: bytes for all pages. NULL: out of memory. */
struct regions *regions_new(uint64_t memory);
void regions_free(struct regions *r);
/* Bytes of a request. */
struct region_bytes {
    uint64_t from, to; /* addresses that the request asked for: [from, to) */
    uint64_t va;       /* of the first byte */
    const uint8_t *b;
    uint32_t n; /* may be 0: the capture has none of the packet */
};
/* Bytes of memory of `owner`, to which `rkey` gives access. What was asked for, and is not put, is a hole. */
void regions_put(struct regions *r, const struct conn_addr *owner, uint32_t rkey, const struct region_bytes *v);
/* Some bytes had no room. */
bool regions_lack(const struct regions *r);
/* Write a file for each region, and a row. */
void regions_write(struct regions *r, struct extract *x);

/* --- rows.c ------------------------------------------------------------------------------------- */

/* What is said of a file. */
struct extract_row {
    const char *file;
    const struct wqe *w;          /* a message; NULL: a region */
    const struct meter_row *ends; /* of the message */
    struct conn_addr owner;       /* of the region */
    uint32_t rkey;                /* with `memory` */
    uint64_t va;                  /* likewise: of the first byte of the file */
    bool memory;                  /* it has an address */
    bool open_end;                /* the length is not known: the file ends with the last byte that was seen */
    bool open_begin;              /* bytes before the first byte of the file are missing, as many as nobody knows */
    uint64_t len;                 /* of the file */
    uint64_t seen;                /* bytes of it */
    const struct seen *pieces;
};
void row_put(struct extract *x, const struct extract_row *r);

struct extract {
    struct extract_opts o;
    struct files files;
    struct regions *regions;
    struct message **chain; /* hash of messages under way, by number */
    struct extract_sums sums;
    uint64_t rows;
};

#endif
