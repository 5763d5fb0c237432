/* layer 1 (wire): Linux cooked captures. */
#ifndef RDMATRACE_DISSECT_LINK_SLL_H
#define RDMATRACE_DISSECT_LINK_SLL_H

#include "dissect/pkt.h"

/* Decode a frame of link type 113 (version 1) or 276 (version 2). */
void sll_decode(struct pkt *p, const struct decode_opts *o);
void sll2_decode(struct pkt *p, const struct decode_opts *o);

#endif
