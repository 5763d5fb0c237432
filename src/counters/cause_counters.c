/* layer 2b (counters): counters of the adapters that confirm a cause. */
#include "src/counters/cause_counters.h"

/* Counters of both ends that confirm a cause, the most important first. */
static const struct {
    uint8_t cause, concept;
    bool responder;
} asked[] = {
    {CAUSE_RETRY_EXCEEDED, COUNTED_RETRIES_EXCEEDED, false},
    {CAUSE_RETRY_EXCEEDED, COUNTED_ACK_TIMEOUT, false},
    {CAUSE_RETRY_EXCEEDED, COUNTED_NIC_DISCARD, true},
    {CAUSE_SILENT_PEER, COUNTED_ACK_TIMEOUT, false},
    {CAUSE_SILENT_PEER, COUNTED_RECEIVED, true},
    {CAUSE_HOST_SILENT, COUNTED_SENT, true},
    {CAUSE_MTU_BLACK_HOLE, COUNTED_ACK_TIMEOUT, false},
    {CAUSE_MTU_BLACK_HOLE, COUNTED_RECEIVED, true},
    {CAUSE_RNR_EXCEEDED, COUNTED_RNR_RETRIES_EXCEEDED, false},
    {CAUSE_RNR_EXCEEDED, COUNTED_RNR_NAK_SENT, true},
    {CAUSE_RNR_EXCEEDED, COUNTED_NO_RECEIVE, true},
    {CAUSE_ACCESS_ERROR, COUNTED_ACCESS_ERROR, false},
    {CAUSE_ACCESS_ERROR, COUNTED_ACCESS_ERROR, true},
    {CAUSE_DEPTH_EXCEEDED, COUNTED_INVALID_REQUEST, false},
    {CAUSE_INVALID_REQUEST, COUNTED_INVALID_REQUEST, false},
    {CAUSE_OPERATION_ERROR, COUNTED_OPERATION_ERROR, false},
    {CAUSE_LINK_DOWN, COUNTED_ACK_TIMEOUT, false},
    {CAUSE_BAD_ICRC, COUNTED_ICRC_RECEIVED, true},
    {CAUSE_PACKET_LOSS, COUNTED_SEQ_NAK_RECEIVED, false},
    {CAUSE_PACKET_LOSS, COUNTED_OUT_OF_SEQUENCE, true},
    {CAUSE_PACKET_LOSS, COUNTED_SEQ_NAK_SENT, true},
    {CAUSE_PACKET_LOSS, COUNTED_NIC_DISCARD, true},
    {CAUSE_LOST_LAST_PACKET, COUNTED_ACK_TIMEOUT, false},
    {CAUSE_LOST_LAST_PACKET, COUNTED_NIC_DISCARD, true},
    {CAUSE_LOST_READ_RESPONSE, COUNTED_IMPLIED_NAK, false},
    {CAUSE_LOST_READ_RESPONSE, COUNTED_ACK_TIMEOUT, false},
    {CAUSE_LOST_READ_RESPONSE, COUNTED_DUPLICATE_REQUEST, true},
    {CAUSE_LOST_ACK, COUNTED_ACK_TIMEOUT, false},
    {CAUSE_LOST_ACK, COUNTED_NIC_DISCARD, false},
    {CAUSE_LOST_ACK, COUNTED_DUPLICATE_REQUEST, true},
    {CAUSE_EARLY_TIMEOUT, COUNTED_ACK_TIMEOUT, false},
    {CAUSE_EARLY_TIMEOUT, COUNTED_ADAPTIVE, false},
    {CAUSE_EARLY_TIMEOUT, COUNTED_DUPLICATE_REQUEST, true},
    {CAUSE_RNR, COUNTED_RNR_NAK_RECEIVED, false},
    {CAUSE_RNR, COUNTED_RNR_NAK_SENT, true},
    {CAUSE_RNR, COUNTED_NO_RECEIVE, true},
    {CAUSE_PEER_SLOW, COUNTED_NIC_DISCARD, true},
    {CAUSE_PEER_SLOW, COUNTED_PAUSE, true},
    {CAUSE_THROTTLED, COUNTED_CNP_RECEIVED, false},
    {CAUSE_THROTTLED, COUNTED_CE_RECEIVED, true},
    {CAUSE_THROTTLED, COUNTED_CNP_SENT, true},
    {CAUSE_INCAST, COUNTED_CNP_RECEIVED, false},
    {CAUSE_INCAST, COUNTED_CE_RECEIVED, true},
    {CAUSE_INCAST, COUNTED_CNP_SENT, true},
    {CAUSE_PAUSE, COUNTED_PAUSE, false},
    {CAUSE_PAUSE, COUNTED_PAUSE, true},
    {CAUSE_PAUSE_STORM, COUNTED_PAUSE, false},
    {CAUSE_PAUSE_STORM, COUNTED_PAUSE, true},
    {CAUSE_PFC_DEADLOCK, COUNTED_PAUSE, false},
    {CAUSE_PFC_DEADLOCK, COUNTED_PAUSE, true},
    {CAUSE_LOST_CNP, COUNTED_CNP_RECEIVED, false},
    {CAUSE_LOST_CNP, COUNTED_CNP_SENT, true},
    {CAUSE_BLOCKED_CNP, COUNTED_CNP_RECEIVED, false},
    {CAUSE_CNP_WITHOUT_CE, COUNTED_CE_RECEIVED, true},
    {CAUSE_CNP_WITHOUT_CE, COUNTED_CNP_SENT, true},
    {CAUSE_MISSING_DATAGRAM, COUNTED_NO_RECEIVE, true},
    {CAUSE_MISSING_DATAGRAM, COUNTED_NIC_DISCARD, true},
    {CAUSE_REORDER, COUNTED_OUT_OF_SEQUENCE, true},
    {CAUSE_REORDER, COUNTED_SEQ_NAK_SENT, true},
    {CAUSE_CE_WITHOUT_CNP, COUNTED_CE_RECEIVED, true},
    {CAUSE_CE_WITHOUT_CNP, COUNTED_CNP_SENT, true},
    {CAUSE_CNP_WITHOUT_SLOWDOWN, COUNTED_CNP_RECEIVED, false},
    {CAUSE_DUPLICATE, COUNTED_DUPLICATE_REQUEST, true},
};

#define COUNTERS_SHOWN 16 /* of a driver, in a sentence, at most */

/* True if another counter of the driver says more of the concept: of all packets, where this one counts some. */
static bool is_part(const struct counter_info *c)
{
    if (c->relation != RELATION_LOCAL)
        return false;
    for (const struct counter_info *o = counter_table; o->name; o++) {
        if (o->driver == c->driver && o->concept == c->concept && o->relation < RELATION_LOCAL)
            return true;
    }
    return false;
}

size_t counters_for_cause(enum cause cause, enum counter_driver driver, bool responder,
                          const struct counter_info *out[], size_t max)
{
    size_t n = 0;

    for (unsigned i = 0; i < ARRAY_LEN(asked); i++)
        for (const struct counter_info *c = counter_table; c->name; c++) {
            bool fits = asked[i].cause == cause && asked[i].responder == responder && asked[i].concept == c->concept;
            if (fits && c->driver == driver && c->relation != RELATION_AGAIN && !is_part(c) && n < max)
                out[n++] = c;
        }
    return n;
}

void counters_for_cause_put(struct buf *b, enum cause cause, bool responder)
{
    const char *sep = "";

    for (unsigned d = 0; d < DRIVERS; d++) {
        const struct counter_info *found[COUNTERS_SHOWN];
        size_t n = counters_for_cause(cause, (enum counter_driver)d, responder, found, COUNTERS_SHOWN);
        if (n)
            buf_printf(b, "%s%s ", sep, counter_driver_str((enum counter_driver)d));
        for (size_t i = 0; i < n; i++)
            buf_printf(b, "%s%s", i ? ", " : "", found[i]->name);
        sep = n ? "; " : sep;
    }
}
