/* layer 1 (io): live capture, by libpcap or AF_XDP, and capture filters. */
#ifndef RDMATRACE_LIVE_H
#define RDMATRACE_LIVE_H

#include "src/cap/cap.h"

/* Choices for live capture; all zero is the default. */
struct cap_live_opts {
    uint32_t snaplen;   /* bytes kept of each frame, 0: FRAME_MAX */
    bool no_promisc;    /* do not switch the interface to promiscuous mode */
    uint32_t buffer;    /* size of the kernel's buffer in bytes, 0: libpcap's default */
    const char *filter; /* capture filter, NULL: everything */
    bool inbound;       /* only frames that this host receives */
    /* AF_XDP with these words ("QUEUE,...,copy,busy,skb"; "": all queues) takes the received frames away from the
     * kernel, stamped when they are read; NULL: they are copies, by libpcap. `buffer` is that of each queue. */
    const char *xdp;
    bool no_wait; /* for cap_live_poll(); the kernel delivers each frame at once, not in blocks */
    /* Called, if not NULL, whenever cap_next() is about to wait, e.g. to flush output: true: there is more to do, so it
     * is called again at once if no frame arrived meanwhile. May call cap_live_break(). */
    bool (*idle)(void *user);
    /* Argument of idle(). */
    void *user;
};

/* Counters of the kernel since the capture began, of all interfaces. */
struct cap_live_stats {
    uint64_t received;   /* frames that passed the filter */
    uint64_t dropped;    /* frames dropped because the buffer was full */
    uint64_t if_dropped; /* frames dropped by the interface or its driver */
};

/* Capture from an interface of this host. Use the result with cap_next() (which waits for a frame, and returns it at
 * most 0.1 s after its arrival), cap_info(), cap_error() and cap_close(). 0 with *out set, or a negative errno with
 * *err filled: -EPERM without the permission, -ENODEV if there is no such interface, -ENOTSUP for an RDMA device that
 * has no sniffer, -EINVAL for a wrong filter. An RDMA device that libpcap does not know, as it was built without
 * rdmasniff, is captured from by src/cap/sniffer.h. */
int cap_live_open(struct cap **out, const char *iface, uint16_t file_index, const struct cap_live_opts *opts,
                  struct cap_error *err);
/* The same for up to CAP_LIVE_IFACES interfaces, each with its own buffer: the frames of all in the order
 * of time, at most 0.3 s after their arrival; frame.iface is the index in `ifaces`. Of several none may be an RDMA
 * device: -ENOTSUP. */
#define CAP_LIVE_IFACES 16
int cap_live_open_all(struct cap **out, const char *const *ifaces, unsigned n, uint16_t file_index,
                      const struct cap_live_opts *opts, struct cap_error *err);
/* With no_wait, in place of cap_next(): 1 with *f filled as by cap_next(); 0: no frame has arrived; a negative
 * errno. */
int cap_live_poll(struct cap *c, struct frame *f);
/* Descriptor to poll() for frames; -1: there is none. */
int cap_live_fd(const struct cap *c);
/* Make cap_next() return 0 soon, after the frames that arrived before. May be called from a signal handler. */
void cap_live_break(struct cap *c);
/* Get the counters so far; the interfaces in cap_info() have them from then on, too. 0 or a negative errno. */
int cap_live_stats(struct cap *c, struct cap_live_stats *out);
/* Append a line for each interface that can be captured from: name, tab, description. 0, or a negative errno with *err
 * filled. */
int cap_live_list(struct buf *out, struct cap_error *err);

/* A capture filter in the syntax of pcap-filter(7). */
struct cap_filter;

/* Compile `expr` for frames of `linktype` of at most `snaplen` bytes (0: FRAME_MAX). 0 with *out set, or -EINVAL with
 * libpcap's explanation in *err, whose file is "filter". */
int cap_filter_compile(struct cap_filter **out, const char *expr, uint16_t linktype, uint32_t snaplen,
                       struct cap_error *err);
/* Whether the frame passes: 1, 0, or -EINVAL if the expression is not valid for a link type other than the one it was
 * compiled for; see cap_filter_error(). Each further link type costs one compilation. */
int cap_filter_match(struct cap_filter *filter, const struct frame *f);
/* Why cap_filter_match() failed. */
const struct cap_error *cap_filter_error(const struct cap_filter *filter);
/* Free a filter; NULL is allowed. */
void cap_filter_free(struct cap_filter *filter);

#endif
