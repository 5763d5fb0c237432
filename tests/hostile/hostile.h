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
    /* for sweeps */
    bool upper;           /* it belongs to an upper protocol */
    bool swept, alone;    /* it is of a connection, or sets one up; no other one is changed in its pass */
    bool chosen;          /* it is changed in the next pass */
    uint32_t sparse_from; /* from this byte on only some are changed */
    uint32_t all, done;   /* changes */
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
void read_frames(const char *name, keep_frame *frame);
/* `fd` is that of `scratch`, which is overwritten. */
void cut_file(struct file_cuts *c, const char *name, const char *scratch, int fd, const struct share *s,
              keep_frame *keep);

/* Changes of the frames of a file, each within its own connection: the frame is cut at a byte of its payload (its IP
 * and UDP lengths say so), all bits of a byte are changed, or one. Changed frames and some behind them are printed;
 * ICRCs and CRCs count as good, so that what is changed is read as a message. */
struct sweep {
    struct kept *first;
    uint64_t all, done;       /* changes */
    uint64_t passes, packets; /* packets that were played for that */
    uint64_t upper,
        upper_now; /* packets of upper protocols that were not changed; those that are still known as such */
    uint32_t rounds;
};
/* What is changed, for a debugger or ASan's report. */
struct sweep_now {
    uint64_t frame;
    uint32_t byte, change;
};
extern struct sweep_now sweep_now;
/* The file's frames from `first` on. */
void sweep_begin(struct sweep *s, struct kept *first);
/* Some changes; false: none are left. */
bool sweep_pass(struct sweep *s);

#endif
