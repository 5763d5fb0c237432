/* layer 4 (test): hostile input in one process: frames that are kept, the time that is left, and its parts. */
#ifndef RDMATRACE_TESTS_HOSTILE_H
#define RDMATRACE_TESTS_HOSTILE_H

#include "src/cap/cap.h"

#include <stdio.h>

/* A frame of a file, kept in memory. */
struct kept {
    struct frame frame; /* without its data */
    struct kept *next;  /* of all files */
    /* The frames before and behind it in its file; NULL: there is none. */
    struct kept *before, *behind;
    uint32_t conn; /* number of its connection in its file, 0: of none that was recognised */
    uint32_t pair; /* a hash of its two addresses, 0: it has none */
    bool setup;    /* a MAD: it may set up a connection between the two */
    bool upper;    /* it belongs to a command of an upper protocol */
    uint8_t bytes[];
};

/* What is done within SECONDS of CPU time; all of it if they are 0. */
struct share {
    ns_t deadline; /* by spent(); 0: none */
};
/* CPU time of this process. */
ns_t spent(void);
bool is_over(const struct share *s);

/* Frames of the file, cut at each record's start and around it (files.c); `keep` gets each of its frames. */
struct file_cuts {
    uint64_t files;
    uint64_t cuts;   /* of files that were read */
    uint64_t left;   /* skipped for lack of time */
    uint64_t failed; /* cut files that gave wrong frames */
};
typedef void keep_frame(const struct frame *f);
/* `fd` is that of `scratch`, which is overwritten. */
void cut_file(struct file_cuts *c, const char *name, const char *scratch, int fd, const struct share *s,
              keep_frame *keep);

/* Note the connections of the frames of a file, from `first` on (states.c). */
void find_connections(struct kept *first);
/* It belongs to a connection, or sets one up. */
bool has_state(const struct kept *k);
/* The frame belongs to a command, too, if only those packets come before it that disturb_in_state() plays. */
bool is_upper_in_state(const struct kept *k);
/* The frame cut at byte `i` of its payload (its IP and UDP lengths say so), and with byte `i` changed (all bits, or
 * one), as it comes in its own connection: behind what set that up and the packets before it, and before those behind
 * it. These are printed; ICRCs and CRCs count as good, so that what is changed is read as a message. Returns how many
 * packets were decoded. */
uint64_t disturb_in_state(struct kept *k, uint32_t i);

#endif
