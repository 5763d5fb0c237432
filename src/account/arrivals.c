/* layer 2b (account): where the time of each direction of requests went: what all hosts together send to one. */
#include "src/account/arrivals.h"

/* Time that a frame of `len` bytes takes on the link. */
static ns_t takes(const struct arrivals *a, uint32_t len)
{
    return a->least * (len + FRAME_EXTRA) / PACE_BYTES;
}

void arrivals_add(struct arrivals *a, const void *from, uint32_t len, ns_t now)
{
    ns_t near = now - a->ts;

    if (a->ts && near > 0 && near < PACE_MOST && (!a->least || near < takes(a, a->len)))
        a->least = near * PACE_BYTES / (a->len + FRAME_EXTRA) + 1;
    if (a->ts && near - takes(a, a->len) > takes(a, a->len) / 4)
        a->rested = now;
    if (a->ts && near >= ARRIVALS_LONG) {
        a->from_long = a->ts;
        a->long_to = now;
    }
    if (a->ts && a->from != from)
        a->mixed = now;
    a->from = from;
    a->len = len;
    a->ts = now;
}

bool arrivals_rested(const struct arrivals *a, ns_t last, ns_t *until)
{
    if (a->rested <= last)
        return false;
    *until = a->rested;
    return true;
}

bool arrivals_went_on(const struct arrivals *a, ns_t last)
{
    return a->mixed > last && (a->long_to > last ? a->from_long : a->ts) - last >= ARRIVALS_LONG;
}
