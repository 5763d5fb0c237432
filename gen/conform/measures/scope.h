/* layer 3 (conform): what the interval between a device's CNPs holds for, by a fit: how many CNPs each model would have
 * sent for the marks that were seen. */
#ifndef RDMATRACE_GEN_CONFORM_SCOPE_H
#define RDMATRACE_GEN_CONFORM_SCOPE_H

#include "types.h"

#include <stdbool.h>
#include <stdint.h>

#define SCOPE_EVENTS 4096 /* most marks and CNPs; what comes later is not looked at */

enum scope_model {
    SCOPE_PACKET, /* there is no interval: a CNP for each marked packet */
    SCOPE_QP,     /* each queue pair has an interval */
    SCOPE_SHARED, /* the queue pairs share one: of the address pair, of the destination address, or of the port */
    SCOPE_MODELS
};

/* Zero-initialise it. */
struct scope {
    struct scope_event {
        ns_t t;
        uint32_t qpn; /* to which it was sent */
        bool cnp;     /* a CNP of the device, or else a marked packet to it */
    } event[SCOPE_EVENTS];
    unsigned n;
};

void scope_add(struct scope *s, ns_t t, uint32_t qpn, bool cnp);
/* By how many CNPs the model is wrong, with the shortest time between two CNPs as its interval; -1: nothing is known,
 * as there were no marks to two queue pairs, or less than three CNPs. */
int64_t scope_off(const struct scope *s, enum scope_model model);

#endif
