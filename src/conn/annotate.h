/* layer 2b (conn): notes for decode: fills pkt.note from earlier packets. */
#ifndef RDMATRACE_CONN_ANNOTATE_H
#define RDMATRACE_CONN_ANNOTATE_H

#include "src/conn/conn.h"

struct context;
struct event;
struct observer;

/* The context has its own observer, which bounds the memory. NULL without memory. */
struct context *context_new(uint64_t memory);
void context_free(struct context *c);

/* Fill p->note from the packets before, and learn from `p`. Frames must come in the order of the capture. A packet with
 * a bad ICRC, which its receiver drops, belongs to no message, and is no retransmission and no response. */
void context_note(struct context *c, struct pkt *p);

/* Another thread than before goes on with the packets: observer_fetch() of the context's observer. NULL is
 * allowed. */
void context_fetch(struct context *c);

/* The observer of the context: others may subscribe before the first packet. */
struct observer *context_observer(struct context *c);
/* Call `more` for each packet after its note is filled; `e` is its event. One function, which `release` follows when
 * the context is freed. */
typedef void context_more(void *user, struct pkt *p, const struct event *e);
void context_extend(struct context *c, context_more *more, void (*release)(void *user), void *user);

/* The connections learnt so far. */
struct conn_table *context_conns(struct context *c);

#endif
