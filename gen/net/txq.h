/* layer 3 (net): frames that found no room at a port, in their order, until it takes them. */
#ifndef RDMATRACE_GEN_NET_TXQ_H
#define RDMATRACE_GEN_NET_TXQ_H

#include "types.h"

struct outbox_frame {
    struct outbox_frame *next;
    char *note;   /* a text that goes with it; NULL: none */
    uint32_t len; /* bytes at data */
    uint8_t data[];
};

struct outbox {
    struct outbox_frame *head, *tail; /* NULL: empty */
    uint32_t n;                       /* frames */
};

/* A copy of the frame and of its note ("": none) goes to the end. False: there are `max` frames already, or no memory
 * is left. */
bool outbox_put(struct outbox *o, uint32_t max, const uint8_t *data, uint32_t len, const char *note);
/* The first one has left; there must be one. */
void outbox_pop(struct outbox *o);
/* Drop all. */
void outbox_clear(struct outbox *o);

#endif
