/* layer 3 (verbs): connection management: what all providers share: events in words. */
#include "gen/verbs/rdmacm.h"

#include <stdio.h>

void rdmacm_why(const struct rdmacm_event *e, char *text, size_t size)
{
    if (e->type == RDMACM_REJECTED)
        snprintf(text, size, "the connection was refused: %s", cm_rej_reason_str((unsigned)e->status));
    else if (e->type == RDMACM_UNREACHABLE && e->status > 0)
        snprintf(text, size, "the service was refused: %s", cm_sidr_status_str((unsigned)e->status));
    else if (e->type == RDMACM_UNREACHABLE)
        snprintf(text, size, "the connection manager of the peer does not answer");
    else
        snprintf(text, size, "the peer has disconnected");
}
