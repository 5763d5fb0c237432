/* layer 1 (io): AF_XDP: the sockets and their memory, for those who also send. */
#ifndef RDMATRACE_XDP_LANE_H
#define RDMATRACE_XDP_LANE_H

#include "src/cap/xdp.h"

#include <xdp/xsk.h>

/* The socket of a queue, with its memory: rx chunks, then tx chunks. */
struct xdp_lane {
    struct xsk_socket *xsk;
    struct xsk_umem *umem;
    uint8_t *memory;
    size_t size; /* of the memory, bytes */
    struct xsk_ring_prod fill, tx;
    struct xsk_ring_cons completion, rx;
    int fd;
    struct xdp_desc batch[XDP_BATCH]; /* frames taken from the ring; their chunks go back when all are read */
    uint32_t got, at;                 /* frames of the batch; those that were read */
};

struct xdp {
    struct xdp_lane lane[XDP_QUEUES];
    unsigned n;           /* lanes */
    unsigned next;        /* lane that is asked next for a frame */
    struct xdp_gate gate; /* its own; none: it is shared */
    int promisc;          /* socket that holds the interface in promiscuous mode; -1: none */
    int fd;               /* to poll for frames: readable when there is one */
    ns_t now;             /* when the batch was taken, by the wall clock */
    uint64_t missed_from; /* frames that the interface had lost when it was opened */
    char iface[16];       /* its name */
};

#endif
