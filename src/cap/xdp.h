/* layer 1 (io): AF_XDP: frames of an interface's receive queues pass between memory shared with the kernel, without the
 * network stack. Each queue has a socket of its own, a lane. A program in front of the stack gives them the frames; it
 * leaves with the descriptor of its link, so also with a process that is killed. */
#ifndef RDMATRACE_XDP_H
#define RDMATRACE_XDP_H

#include "types.h"

#define XDP_QUEUES 64   /* lanes at most */
#define XDP_CHUNK  4096 /* bytes of the shared memory for a frame */
#define XDP_FRAME_MAX                                                                                                  \
    3840             /* bytes of a received frame: the kernel keeps 256 of a chunk free; longer ones are dropped */
#define XDP_BATCH 64 /* frames that are taken from a ring at a time, at most */
#define XDP_WHY   200

/* The words "QUEUE,...,copy,busy,skb". */
struct xdp_words {
    uint32_t queue[XDP_QUEUES]; /* queues of the interface, n of them */
    unsigned n;                 /* 0: none was named */
    bool copy;                  /* no zero copy, though the driver may have it */
    bool busy;                  /* our system calls poll the driver, not interrupts */
    bool skb;                   /* the program runs where the stack begins, not in the driver */
};
/* Parse them; "" is none. False: others, or more than XDP_QUEUES. */
bool xdp_words(struct xdp_words *w, const char *text);
/* Receive queues of the interface, as its driver tells; 1 if it does not. */
unsigned xdp_queues(const char *iface);

/* The MTU of the interface, if its frames may be longer than XDP_FRAME_MAX bytes; 0: they are not, or it has none. */
unsigned xdp_mtu_too_large(const char *iface);

/* The program in front of the network stack, and the map by which it finds the sockets: descriptors; -1: none. */
struct xdp_gate {
    int map, program, link;
};

/* Which interface, and how much memory. */
struct xdp_opts {
    const char *iface;
    struct xdp_words words; /* at least one queue is named */
    uint32_t rx, tx;        /* frames of each lane that may wait, powers of two; tx 0: no sending */
    bool promisc;           /* also frames to other addresses */
    /* Loads the program that gives frames to the sockets of `map`: its descriptor or a negative errno. The map
     * (BPF_MAP_TYPE_XSKMAP) has a socket at queue * parts + part. NULL: every frame, of one part. */
    int (*load)(int map, unsigned parts);
    unsigned part, parts; /* of several processes, which share `gate`; parts 0: there is one, with a gate of its own */
    const struct xdp_gate *gate;
};

/* Open it for the queues of `o`. 0; or a negative errno, `why` says it in words. Close it in both cases. */
int xdp_gate_open(struct xdp_gate *g, const struct xdp_opts *o, char why[XDP_WHY]);
void xdp_gate_close(struct xdp_gate *g);

struct xdp;

/* A frame received; `data` is valid until the next call of xdp_next(). */
struct xdp_frame {
    const uint8_t *data; /* Ethernet */
    uint32_t len;        /* bytes */
    ns_t ts;             /* when it was read, since 1970; AF_XDP has no time stamps */
};

/* 0; or a negative errno, `why` says it in words. */
int xdp_open(struct xdp **out, const struct xdp_opts *o, char why[XDP_WHY]);
/* NULL is allowed. */
void xdp_close(struct xdp *x);
/* Descriptor to poll() for frames. */
int xdp_fd(const struct xdp *x);
/* The next frame; false: none has arrived. Never waits. */
bool xdp_next(struct xdp *x, struct xdp_frame *f);
/* Frames that the kernel dropped since it was opened, because nobody read them in time or they were too long. */
uint64_t xdp_dropped(const struct xdp *x);
/* Frames that the interface lost since it was opened: it had no buffer for them. */
uint64_t xdp_missed(const struct xdp *x);

#endif
