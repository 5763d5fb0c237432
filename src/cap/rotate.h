/* layer 1 (io): a capture written to file after file: when one is full, and what they are called. */
#ifndef RDMATRACE_ROTATE_H
#define RDMATRACE_ROTATE_H

#include "types.h"

/* Files that are kept, at most. */
#define ROTATE_FILES_MAX 100000

/* When the next file begins, and how many are kept; 0: not by that. */
struct rotation {
    uint64_t kilobytes; /* of the file, 1000 bytes each, as tshark has them */
    uint64_t seconds;   /* since it was begun */
    uint64_t packets;   /* in it */
    uint64_t files;     /* kept: beyond, the oldest is removed */
    /* Internal. */
    char **names;    /* of the files kept, by number modulo their count */
    uint64_t number; /* of the file at hand, from 1 */
    int64_t begun;   /* s since 1970 */
    char *latest;    /* its name */
};

/* Whether files end at all. */
static inline bool rotation_limited(const struct rotation *r)
{
    return r->kilobytes || r->seconds || r->packets;
}
/* Whether a file with so many bytes and packets is full. */
bool rotation_is_full(const struct rotation *r, uint64_t bytes, uint64_t packets);
/* The name of the next file, valid until the next call: "x_00001_20261123061500.pcapng" of "x.pcapng",
 * as tshark names it. Removes the oldest file if too many were kept. NULL without memory. */
const char *rotation_next(struct rotation *r, const char *path);
void rotation_free(struct rotation *r);

#endif
