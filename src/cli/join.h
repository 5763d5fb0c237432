/* layer 4 (tool): interfaces that count as one tap: the two directions of a full-duplex tap, the members of a LAG. */
#ifndef RDMATRACE_CLI_JOIN_H
#define RDMATRACE_CLI_JOIN_H

#include "frame.h"

struct pkt;

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
/* The longest RoCE frame of each interface, bytes; interfaces may share a place. A mirror cuts all frames at one
 * length, and no packet within it is longer. */
#define LONGEST_TAPS 64
struct longest {
    uint32_t len[LONGEST_TAPS];
};
/* Note the length of a packet's frame. */
void longest_note(struct longest *l, const struct pkt *p);
/* Set f->longer. */
void longest_apply(const struct longest *l, struct frame *f);

/* Read the beginning of the files: find interfaces of one file that have one direction each, and the longest frames.
 * Does nothing if any of them is no regular file. */
void joins_find(struct joins *j, struct longest *l, const char *const *files, size_t n);
/* Say in `f` which tap it counts for. */
void joins_apply(const struct joins *j, struct frame *f);

#endif
