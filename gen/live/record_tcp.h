/* layer 3 (live): the TCP exchange of parameters in the capture: segments made of what a socket sent and received. */
#ifndef RDMATRACE_GEN_LIVE_RECORD_TCP_H
#define RDMATRACE_GEN_LIVE_RECORD_TCP_H

#include "gen/live/live.h"

/* A TCP connection in the capture. Zeroed but for `live` before the first bytes. */
struct tcp_stream {
    struct live *live; /* whose capture; NULL: none */
    bool begun;        /* SYN and SYN, ACK were written */
    uint32_t seq[2];   /* number of the next byte that is sent, and received */
};

/* Write `len` bytes that socket `fd` has sent, or received, to the capture file, if there is one: Ethernet frames with
 * the socket's addresses and ports. The first bytes open the connection: their sender is the client. The kernel's
 * own segments are not known; a comment on each frame says so. */
void record_tcp(struct tcp_stream *t, int fd, bool sent, const void *data, size_t len);

#endif
