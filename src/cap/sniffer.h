/* layer 1 (io): the sniffer of an RDMA device: a flow that gives a raw packet queue pair a copy of all that passes its
 * port, by libibverbs, which is loaded when it is needed. */
#ifndef RDMATRACE_SNIFFER_H
#define RDMATRACE_SNIFFER_H

#include "types.h"

#define SNIFFER_FRAME_MAX 9344 /* bytes of a frame: a jumbo frame with its headers */
#define SNIFFER_WHY       200

struct sniffer;

/* A frame; `data` is valid until the next call of sniffer_next(). */
struct sniffed {
    const uint8_t *data; /* Ethernet */
    uint32_t len;
    ns_t ts; /* of the device, in ns since 1970, if sniffer_has_clock(); else 0 */
};

/* Sniff at port 1 of the device of this name, with room for `buffer` bytes of frames (0: 8 MiB). 0; -ENODEV: there is
 * no such device, or no libibverbs; -ENOTSUP: it has no raw packet queue pairs, or no sniffer; -EPERM: without the
 * permission; another negative errno. `why` says it in words. */
int sniffer_open(struct sniffer **out, const char *device, uint32_t buffer, char why[SNIFFER_WHY]);
void sniffer_close(struct sniffer *s);
/* The next frame: 1; 0: none has arrived; a negative errno: the device failed. Never waits. */
int sniffer_next(struct sniffer *s, struct sniffed *f);
/* Descriptor to poll() for frames. */
int sniffer_fd(const struct sniffer *s);
/* Whether the device stamps the time of frames, in ns since 1970. */
bool sniffer_has_clock(const struct sniffer *s);
/* Frames lost since it was opened, as the device counts what found no receive (out_of_buffer of its port): that of
 * other queue pairs counts as well. UINT64_MAX: the device has no such counter. */
uint64_t sniffer_lost(const struct sniffer *s);

#endif
