/* layer 2b (conn): context for decoding: fills pkt.note from the packets before. */
#ifndef RDMATRACE_CONN_ANNOTATE_H
#define RDMATRACE_CONN_ANNOTATE_H

#include "src/conn/conn.h"

struct context;

/* NULL without memory. Memory is bounded: CONTEXT_FLOWS flows with CONTEXT_WINDOW packets each. */
struct context *context_new(void);
void context_free(struct context *c);

#define CONTEXT_FLOWS  4096
#define CONTEXT_WINDOW 128 /* PSNs of a flow that are remembered */

/* Learn from a packet and note what the packets before say about it. Frames must come in the order of their capture. */
void context_note(struct context *c, struct pkt *p);

/* The connections learnt so far. */
struct conn_table *context_conns(struct context *c);

#endif
