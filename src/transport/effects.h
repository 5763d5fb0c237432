/* layer 2 (transport): what a transition asks its owner to do: an endpoint performs it, a validator records it. */
#ifndef RDMATRACE_EFFECTS_H
#define RDMATRACE_EFFECTS_H

#include "src/transport/verbs.h"

/* Masks. */
enum {
    EFF_DROP = 1u << 0,      /* the packet has no effect; `reason` says why */
    EFF_DUPLICATE = 1u << 1, /* duplicate of an earlier packet */
    /* At a responder */
    EFF_RECV_START = 1u << 2, /* take the next receive work request */
    EFF_RECV_DATA = 1u << 3,  /* put `len` bytes of payload at `offset` of the receive's pieces */
    EFF_RECV_DONE = 1u << 4,  /* complete the receive: `offset` + `len` bytes, immediate and key as in the packet */
    EFF_WRITE = 1u << 5,      /* put `len` bytes of payload at `va` (rkey checked) */
    EFF_INVALIDATE = 1u << 6, /* invalidate the key of the packet's IETH, before the completion */
    EFF_ATOMIC = 1u << 7,     /* execute the atomic of resource `msg` and tell rsp_atomic_done() */
    EFF_RESPOND = 1u << 8,    /* a response is due: rsp_due() says which */
    EFF_RECV_FAIL = 1u << 9,  /* the receive in progress fails with `status` */
    EFF_MESSAGE = 1u << 10,   /* a message is complete (MSN went up) */
    /* At a requester */
    EFF_ACKED = 1u << 11,       /* progress: the oldest unacknowledged PSN moved */
    EFF_READ_DATA = 1u << 12,   /* put `len` bytes of payload at `offset` of message `msg`'s pieces */
    EFF_ATOMIC_DATA = 1u << 13, /* put the original value into message `msg`'s piece */
    EFF_RETRANSMIT = 1u << 14,  /* it goes back to r->psn_tx; `reason` says why */
    EFF_WAIT = 1u << 15,        /* RNR: nothing is sent before r->rnr_until */
    EFF_CREDITS = 1u << 16,     /* more messages may be sent */
    /* At either */
    EFF_ERROR = 1u << 17, /* the queue pair fails: for a requester the oldest incomplete message with `status` */
};

/* Why a packet is dropped, or why requests are retransmitted. */
enum eff_reason {
    WHY_NONE,
    WHY_STALE,        /* an old response, or a duplicate that solicits no response */
    WHY_GHOST,        /* a response to a PSN that was not sent */
    WHY_GAP,          /* a PSN ahead of the expected one */
    WHY_SILENT,       /* PSN ahead, after the sequence NAK was sent */
    WHY_STATE,        /* not permitted in this queue pair state */
    WHY_NOT_READY,    /* no receive posted (UC, UD) */
    WHY_INVALID,      /* malformed, or of another service */
    WHY_ACCESS,       /* denied by a key or an access right (UC) */
    WHY_NO_RESOURCE,  /* a duplicate READ or atomic without its resource */
    WHY_SEQUENCE_NAK, /* retransmitted because of a sequence NAK */
    WHY_IMPLIED_NAK,  /* because a response acknowledges PSNs after a missing READ or atomic response */
    WHY_RNR_NAK,      /* because of an RNR NAK */
    WHY_TIMEOUT,      /* because the ACK timeout expired without a response */
    WHY_COUNT
};

struct effects {
    uint32_t flags;     /* EFF_* */
    uint8_t reason;     /* enum eff_reason */
    uint8_t status;     /* enum wc_status, with EFF_ERROR and EFF_RECV_FAIL */
    uint32_t msg;       /* requester: number of the message; responder: number of the resource */
    uint32_t completed; /* requester: messages completed, from r->msg_head before the call on */
    uint32_t offset;    /* of the payload in its message, bytes */
    uint32_t len;       /* bytes of payload */
    uint64_t va;        /* with EFF_WRITE */
    uint32_t rkey;      /* with EFF_WRITE */
};

#endif
