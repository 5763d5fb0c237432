/* layer 1 (io): live capture and capture filters, through libpcap. */
#ifndef RDMATRACE_LIVE_H
#define RDMATRACE_LIVE_H

#include "src/cap/cap.h"

/* Choices for live capture; all zero is the default. */
struct cap_live_opts {
    uint32_t snaplen;   /* longest captured length, 0: FRAME_MAX */
    bool no_promisc;    /* do not switch the interface to promiscuous mode */
    uint32_t buffer;    /* bytes of the kernel's buffer, 0: libpcap's default */
    const char *filter; /* capture filter, NULL: everything */
    bool inbound;       /* not what this host sends */
    bool no_wait;       /* for cap_live_poll(); frames are not held back to be handed over together */
    /* Called, if not NULL, whenever cap_next() is about to wait: the time to write what was held back. May call
     * cap_live_break(). */
    void (*idle)(void *user);
    void *user;
};

/* What the kernel counted since the capture began. */
struct cap_live_stats {
    uint64_t received;   /* frames that passed the filter */
    uint64_t dropped;    /* for want of room in the buffer */
    uint64_t if_dropped; /* by the interface or its driver */
};

/* Capture from an interface of this host. The result works with cap_next() (which waits for a frame, and has it at most
 * 0.1 s after it came), cap_info(), cap_error() and cap_close(). 0 with *out set, or a negative errno with *err filled:
 * -EPERM without the permission, -ENODEV if there is no such interface, -ENOTSUP for an RDMA device if libpcap was
 * built without rdmasniff, -EINVAL for a wrong filter. */
int cap_live_open(struct cap **out, const char *iface, uint16_t file_index, const struct cap_live_opts *opts,
                  struct cap_error *err);
/* With no_wait, instead of cap_next(): 1 and the next frame; 0: none is there; a negative errno. *f as of
 * cap_next(). */
int cap_live_poll(struct cap *c, struct frame *f);
/* Descriptor to wait for frames at; -1: there is none. */
int cap_live_fd(const struct cap *c);
/* Let cap_next() return 0 soon, after the frames that came before. May be called from a signal handler. */
void cap_live_break(struct cap *c);
/* What was dropped so far; its interface in cap_info() tells it from then on as well. 0 or a negative errno. */
int cap_live_stats(struct cap *c, struct cap_live_stats *out);
/* One line for each interface that can be captured from: name, tab, description. 0, or a negative errno with *err
 * filled. */
int cap_live_list(struct buf *out, struct cap_error *err);

/* A capture filter in the syntax of pcap-filter(7). */
struct cap_filter;

/* Compile `expr` for frames of `linktype` of at most `snaplen` bytes (0: FRAME_MAX). 0 with *out set, or -EINVAL with
 * libpcap's explanation in *err, whose file is "filter". */
int cap_filter_compile(struct cap_filter **out, const char *expr, uint16_t linktype, uint32_t snaplen,
                       struct cap_error *err);
/* Whether the frame passes: 1, 0, or -EINVAL if the expression makes no sense for the frame's link type, when that is
 * not the one it was compiled for: see cap_filter_error(). Each further link type costs one compilation. */
int cap_filter_match(struct cap_filter *filter, const struct frame *f);
const struct cap_error *cap_filter_error(const struct cap_filter *filter);
/* NULL is allowed. */
void cap_filter_free(struct cap_filter *filter);

#endif
