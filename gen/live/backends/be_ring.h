/* layer 3 (live): the ring of received frames that AF_PACKET shares with the kernel, of TPACKET_V2. */
#ifndef RDMATRACE_GEN_LIVE_BE_RING_H
#define RDMATRACE_GEN_LIVE_BE_RING_H

#include "gen/live/backend.h"

#include <linux/if_packet.h>

struct ring {
    uint8_t *mem; /* blocks, each of whole slots */
    /* bytes of a block, bytes of a slot, slots, slots of a block, next slot */
    uint32_t block, slot, slots, per_block, at;
    struct tpacket2_hdr *held; /* slot that the last ring_next() handed out */
};

/* Return the last slot to the kernel and take the next one; NULL: no frame arrived. *f: its frame, stamped by the
 * interface or else by the kernel. *status: TP_STATUS_*. */
struct tpacket2_hdr *ring_next(struct ring *r, struct backend_frame *f, uint32_t *status);

#endif
