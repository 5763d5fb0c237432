/* layer 3 (net): a transmit queue: frames that wait, in order, until a port can send them. */
#ifndef RDMATRACE_GEN_NET_TXQ_H
#define RDMATRACE_GEN_NET_TXQ_H

#include "types.h"

struct outbox_frame {
    struct outbox_frame *next;
    char *note;   /* the comment of the frame; NULL: none */
    uint32_t len; /* bytes at data */
    uint8_t data[];
};

struct outbox {
    struct outbox_frame *head, *tail; /* NULL: empty */
    uint32_t n;                       /* frames */
};

/* Append a copy of the frame and of its note ("": none). False: `max` frames are queued already, or no memory. */
bool outbox_put(struct outbox *o, uint32_t max, const uint8_t *data, uint32_t len, const char *note);
/* Remove the first frame; there must be one. */
void outbox_pop(struct outbox *o);
/* Remove all frames. */
void outbox_clear(struct outbox *o);

#endif
