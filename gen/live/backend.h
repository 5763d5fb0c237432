/* layer 3 (live): backends: ways of sending and receiving frames, behind one small interface. */
#ifndef RDMATRACE_GEN_LIVE_BACKEND_H
#define RDMATRACE_GEN_LIVE_BACKEND_H

#include "types.h"

/* Bytes that a frame to be sent may take: a jumbo frame, Ethernet header and tag included. */
#define BACKEND_FRAME_MAX 9234

/* Source of the time stamps of received frames. */
enum backend_stamps {
    BACKEND_STAMPS_NONE,     /* none: the time of reading is used */
    BACKEND_STAMPS_KERNEL,   /* the kernel, some microseconds late */
    BACKEND_STAMPS_HARDWARE, /* the interface, with its own clock */
};
/* "the program", "the kernel", "the interface". */
const char *backend_stamps_str(enum backend_stamps s);

/* A frame received; `data` is valid until the next call of rx(). */
struct backend_frame {
    const uint8_t *data; /* Ethernet, with the VLAN tag in its place */
    uint32_t len;        /* bytes at data */
    uint32_t lost;       /* bytes at the end of the frame that did not fit into the buffer */
    /* time of arrival, since the epoch of the clock of `stamp`; 0: the backend has no time stamps */
    ns_t ts;
    uint8_t stamp; /* with a ts: BACKEND_STAMPS_KERNEL or BACKEND_STAMPS_HARDWARE */
};

/* Counted since the backend was opened. */
struct backend_stats {
    uint64_t sent, received;
    uint64_t dropped;     /* received frames lost because they were read too late */
    uint64_t unsent;      /* not sent: no peer, or its queue was full */
    uint64_t late_stamps; /* with BACKEND_STAMPS_HARDWARE: frames stamped by the kernel nevertheless */
};

/* State of an interface. */
enum backend_link {
    BACKEND_UP,
    BACKEND_DOWN, /* frames are lost both ways, as if the cable were out */
    BACKEND_GONE, /* removed; a new interface of the same name is another one */
};

/* Why a backend could not be opened. */
struct backend_error {
    char msg[200]; /* one line, no newline */
};

struct backend;

/* The part of one of several processes that share an interface (gen/live/parts.h): it receives packets for the queue
 * pairs with qpn_part() `part` of `parts`. */
struct backend_part {
    unsigned part, parts;
    int map; /* of struct backend_shared */
};
/* What the processes share, descriptors; -1: none. */
struct backend_shared {
    int map, program, link; /* of AF_XDP */
};

/* A kind of backend. I/O functions return 0, or a negative errno; none of them blocks. */
struct backend_ops {
    const char *name;
    const char *args;    /* syntax after the name, for help: ":PATH"; in brackets if optional */
    const char *summary; /* one line */
    bool needs_iface;    /* -I is required */
    /* `args`: the text after "NAME:", "" if none; `iface`: the interface, or NULL. Fills *err on failure. */
    int (*open)(struct backend **out, const char *args, const char *iface, struct backend_error *err);
    /* Likewise, for one of several processes; NULL: they cannot share an interface. */
    int (*open_part)(struct backend **out, const char *args, const char *iface, const struct backend_part *part,
                     struct backend_error *err);
    /* Prepare what `parts` processes share; NULL: nothing. Fills *err on failure. */
    int (*share)(struct backend_shared *s, const char *args, const char *iface, unsigned parts,
                 struct backend_error *err);
    /* Space of BACKEND_FRAME_MAX bytes for the next frame; NULL: the queue is full, flush first. */
    uint8_t *(*room)(struct backend *b);
    /* Queue the frame of `len` bytes written there. */
    void (*push)(struct backend *b, uint32_t len);
    /* Pass the queued frames to the system. -EAGAIN: some are left, try again when the descriptor is writable. */
    int (*flush)(struct backend *b);
    /* The next received frame: 1; 0: none. */
    int (*rx)(struct backend *b, struct backend_frame *f);
    /* True if no peer is connected now; NULL: not known. */
    bool (*alone)(const struct backend *b);
    /* Receive frames to this MAC address, too, and all multicast frames; NULL: the backend receives every frame. */
    int (*join)(struct backend *b, const uint8_t mac[6]);
    /* Update b->stats; NULL: they are always up to date. */
    void (*count)(struct backend *b);
    void (*close)(struct backend *b);
};

/* The first member of the struct of each backend. */
struct backend {
    const struct backend_ops *ops;
    struct backend_stats stats;
    int fd;       /* to poll for frames; -1: none */
    uint32_t mtu; /* largest IP packet, bytes */
    bool has_mac; /* mac is that of the interface */
    uint8_t mac[6];
    uint8_t stamps; /* enum backend_stamps */
    char iface[16]; /* name of the interface, and its index: set by backend_on(); "" and 0: none */
    int index;
    uint8_t link; /* enum backend_link, as seen last */
    bool trouble; /* an error occurred: check the interface */
    /* Called with a line (no newline) when the state of the interface changes; may be NULL. */
    void (*say)(const char *line);
    char note[200]; /* a requested feature that is not available, in one line; "": none */
};

/* All kinds, the default of this system first; ends with NULL. */
extern const struct backend_ops *const backends[];

/* The kind of "NAME" or "NAME:ARGS"; NULL: unknown. */
const struct backend_ops *backend_find(const char *spec);
/* Open by "NAME" or "NAME:ARGS". -ENOENT: unknown kind; -EINVAL: interface or arguments missing or wrong; else the
 * errno of the failure. Fills *err on failure. */
int backend_open(struct backend **out, const char *spec, const char *iface, struct backend_error *err);
/* The same for one of several processes; `part` NULL: for the only one. -ENOTSUP: that kind cannot be shared. */
int backend_open_part(struct backend **out, const char *spec, const char *iface, const struct backend_part *part,
                      struct backend_error *err);
/* Before these processes begin: prepare what they share, until backend_unshare(). As backend_open(). */
int backend_share(struct backend_shared *s, const char *spec, const char *iface, unsigned parts,
                  struct backend_error *err);
void backend_unshare(struct backend_shared *s);
/* NULL is allowed. Queued frames that were not flushed are lost. */
void backend_close(struct backend *b);
/* Queue a whole frame: 0; -EAGAIN: the queue is full; -EMSGSIZE. */
int backend_send(struct backend *b, const uint8_t *frame, uint32_t len);
/* The statistics so far. */
const struct backend_stats *backend_stats(struct backend *b);

/* To be called before each turn of the loop: after an error it checks the interface, and reports to `say` that it went
 * down, came up or is gone. 0: continue, even if it is down; -ENODEV: it is gone; another negative errno: the
 * descriptor failed. */
int backend_check(struct backend *b);
/* Pass on the result of poll() for b->fd. */
void backend_polled(struct backend *b, short revents);
/* After rx() or flush() failed with `error`: -ENODEV if the interface is gone, else `error`. */
int backend_why(struct backend *b, int error);

/* For backends: set the interface used, which exists. */
void backend_on(struct backend *b, const char *iface);
/* For backends: true if a frame not sent with this errno counts as lost: the queue of the interface dropped it, it is
 * too long, or the interface is down or gone. */
bool backend_lost(struct backend *b, int error);
/* For backends: fill *err by a format and return `error` (negative errno). */
int backend_fail(struct backend_error *err, int error, const char *fmt, ...) PRINTF_LIKE(3, 4);

extern const struct backend_ops backend_packet;
extern const struct backend_ops backend_libnet;
extern const struct backend_ops backend_unix;
extern const struct backend_ops backend_file;
extern const struct backend_ops backend_memory;
extern const struct backend_ops backend_verbs;
extern const struct backend_ops backend_xdp;

#endif
