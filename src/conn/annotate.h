/* layer 2b (conn): context for decoding: fills pkt.note from the packets before. */
#ifndef RDMATRACE_CONN_ANNOTATE_H
#define RDMATRACE_CONN_ANNOTATE_H

#include "src/conn/conn.h"

struct context;

/* With an observer of its own, which bounds the memory. NULL without memory. */
struct context *context_new(void);
void context_free(struct context *c);

/* Learn from a packet and note what the packets before say about it. Frames must come in the order of their capture. A
 * packet with a bad ICRC, which its receiver drops, is part of no message, no retransmission and no answer. */
void context_note(struct context *c, struct pkt *p);

/* The connections learnt so far. */
struct conn_table *context_conns(struct context *c);

#endif
