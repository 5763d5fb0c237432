/* layer 4 (tool): interfaces that count as one tap: the two directions of a full-duplex tap, the members of a LAG. */
#ifndef RDMATRACE_CLI_JOIN_H
#define RDMATRACE_CLI_JOIN_H

#include "src/conn/conn.h"

#define JOINS_MAX 32

struct joins {
    struct join {
        uint32_t of, to; /* taps, see conn_tap_of(): frames of `of` count as those of `to` */
    } join[JOINS_MAX];
    unsigned n;
    bool all; /* all interfaces of all files are one tap */
};

/* Take the argument of --join: "IFACE,IFACE" of the first file, "FILE:IFACE,FILE:IFACE", files from 1, or "all".
 * EXIT_OK, or EXIT_BAD after a message. */
int joins_option(struct joins *j, const char *arg);
/* At the end, when all interfaces are known: whether those joined exist in the `n` files, file i having ifaces[i].
 * EXIT_OK, or EXIT_BAD after a message. */
int joins_check(const struct joins *j, size_t n, const uint32_t *ifaces);
/* Set f->counts_for: the tap that the frame counts for. */
void joins_apply(const struct joins *j, struct frame *f);

/* The directions of RDMA packets at each tap. Zero-initialise. */
#define WAYS_MAX 256
struct ways {
    struct way {
        uint32_t tap; /* conn_tap_of() */
        struct conn_addr src, dst;
    } way[WAYS_MAX];
    unsigned n;
};
void ways_note(struct ways *w, const struct pkt *p);
/* Join the interfaces of one file that have one direction each. Does nothing if `w` is full. */
void joins_find(struct joins *j, const struct ways *w);

#endif
