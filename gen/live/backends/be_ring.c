/* layer 3 (live): the ring of received frames that AF_PACKET shares with the kernel. */
#include "gen/live/backends/be_ring.h"

struct tpacket2_hdr *ring_next(struct ring *r, struct backend_frame *f, uint32_t *status)
{
    struct tpacket2_hdr *h;

    if (r->held)
        __atomic_store_n(&r->held->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    r->held = NULL;
    h = (struct tpacket2_hdr *)(void *)(r->mem + (size_t)(r->at / r->per_block) * r->block +
                                        (size_t)(r->at % r->per_block) * r->slot);
    *status = __atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE);
    if (!(*status & TP_STATUS_USER))
        return NULL;
    r->at = (r->at + 1) % r->slots;
    r->held = h;
    *f = (struct backend_frame){.data = (uint8_t *)h + h->tp_mac,
                                .len = h->tp_snaplen,
                                .lost = h->tp_len - h->tp_snaplen,
                                .ts = h->tp_sec * NS_PER_S + h->tp_nsec,
                                .stamp = *status & TP_STATUS_TS_RAW_HARDWARE ? BACKEND_STAMPS_HARDWARE
                                                                             : BACKEND_STAMPS_KERNEL};
    return h;
}
