/* layer 4 (tool): the frames of a command's files in the order of time, and the packets made of them, which the command
 * gets: by one thread, or by several. */
#ifndef RDMATRACE_CLI_READING_H
#define RDMATRACE_CLI_READING_H

#include "src/cap/merge.h"
#include "src/cli/capture_cmd.h"

struct window;
struct cores;
struct chunks;

/* The frames of the files in their order, and the packets made of them. */
struct input {
    const struct trace_cmd *cmd;
    struct trace *t;
    struct cap_merge *m;
    struct window *w;      /* sorts the frames by time */
    struct cores *cores;   /* with `as_one` */
    struct chunks *chunks; /* else */
    bool as_one;           /* one thread reads, dissects and analyses */
    bool judged;           /* packets are judged by turns of their own, before they are delivered */
    /* Of the thread that reads, which uses nothing that the one that takes writes for each packet: a cache line that
     * two threads write costs each of them more than the packet. */
    struct reading {
        _Alignas(64) struct cap_merge *m;
        struct window *w;
        struct input *as_one; /* NULL: another thread takes the packets */
        struct joins joins;
        uint64_t most;  /* frames, at most */
        uint64_t read;  /* frames */
        bool own;       /* a frame is overwritten by the next one */
        bool ended;     /* there are no more frames but those of the window */
        bool no_memory; /* of the window */
        char apart[64];
    } reading;
};

/* Open the live capture or the files of i->t. EXIT_OK, or EXIT_BAD after a message. */
int input_open(struct input *i);
/* Deliver all frames of the open files, then the drops that the files state. Returns an exit status. */
int input_read(struct input *i);

#endif
