/* layer 2b (ulp): SENDs of several FPDUs of iWARP, put together. */
#include "src/ulp/streams/sending.h"

#include "src/ulp/ulp_impl.h"

#include <stdlib.h>

/* Room for the first `need` bytes of a SEND; false: there is none. */
static bool reserve(struct ulp *u, struct sending *d, uint32_t need)
{
    uint32_t cap = d->cap ? d->cap : 4096;
    uint8_t *grown;

    while (cap < need)
        cap *= 2;
    if (cap == d->cap)
        return true;
    if (!room_take(observer_room(u->observer), cap - d->cap, true))
        return false;
    grown = realloc(d->bytes, cap);
    if (!grown) {
        room_give(observer_room(u->observer), cap - d->cap);
        return false;
    }
    d->bytes = grown;
    d->cap = cap;
    return true;
}

void sending_keep(struct ulp *u, struct sending *d, const struct iwarp_unit *w)
{
    uint32_t n = w->captured;

    if (w->ddp.mo == 0 || !d->begun || d->msn != w->ddp.msn) {
        d->len = d->fpdus = 0;
        d->begun = true;
        d->cut = w->ddp.mo != 0;
        d->msn = w->ddp.msn;
        d->start = w->first;
        d->seq = w->seq;
    }
    d->fpdus++;
    d->cut |= w->ddp.mo != d->len || d->len + (uint64_t)n > ULP_MESSAGE_MAX;
    d->total = w->ddp.mo + w->payload_len;
    if (d->cut || !n) {
        d->cut |= n < w->payload_len;
        return;
    }
    if (!reserve(u, d, d->len + n)) {
        d->cut = true;
        return;
    }
    memcpy(d->bytes + d->len, iwarp_payload(w), n);
    d->len += n;
    d->cut |= n < w->payload_len;
}
