/* layer 2b (conn): notes for decode: fills pkt.note from earlier packets. */
#ifndef RDMATRACE_CONN_ANNOTATE_H
#define RDMATRACE_CONN_ANNOTATE_H

#include "src/conn/conn.h"

struct context;

/* The context has an observer of its own, which bounds the memory. NULL without memory. */
struct context *context_new(uint64_t memory);
void context_free(struct context *c);

/* Fill p->note from the packets before, and learn from `p`. Frames must come in the order of the capture. A packet with
 * a bad ICRC, which its receiver drops, belongs to no message, and is no retransmission and no response. */
void context_note(struct context *c, struct pkt *p);

/* The connections learnt so far. */
struct conn_table *context_conns(struct context *c);

#endif
