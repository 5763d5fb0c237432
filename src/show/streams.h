/* layer 3 (show): conversations of UDP and TCP, numbered in the order in which they begin, as tshark numbers them. */
#ifndef RDMATRACE_SHOW_STREAMS_H
#define RDMATRACE_SHOW_STREAMS_H

#include "types.h"

struct pkt;

#define STREAMS_MAX (UINT32_C(1) << 20) /* conversations that are numbered; later ones have no number */

struct streams;

/* NULL without memory. */
struct streams *streams_new(void);
void streams_free(struct streams *s);
/* Set p->streams from the headers of the packet. Frames must come in the order of the capture. */
void streams_see(struct streams *s, struct pkt *p);

#endif
