/* layer 4 (tool): interfaces that count as one tap: the two directions of a full-duplex tap, the members of a LAG. */
#ifndef RDMATRACE_CLI_JOIN_H
#define RDMATRACE_CLI_JOIN_H

#include "frame.h"

#define JOINS_MAX 32

struct joins {
    struct join {
        uint32_t of, to; /* taps, see conn_tap_of(): frames of the first one count as those of the other */
    } join[JOINS_MAX];
    unsigned n;
};

/* Take the argument of --join: "IFACE,IFACE" of the first file, or "FILE:IFACE,FILE:IFACE", files from 1. EXIT_OK, or
 * EXIT_BAD after a message. */
int joins_option(struct joins *j, const char *arg);
/* Find interfaces of one file that have one direction each, by the beginning of the files. Does nothing if any of them
 * is no regular file. */
void joins_find(struct joins *j, const char *const *files, size_t n);
/* Say in `f` which tap it counts for. */
void joins_apply(const struct joins *j, struct frame *f);

#endif
