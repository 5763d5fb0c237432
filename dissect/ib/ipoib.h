/* layer 1 (wire): IP over InfiniBand. */
#ifndef RDMATRACE_DISSECT_IB_IPOIB_H
#define RDMATRACE_DISSECT_IB_IPOIB_H

#include "dissect/pkt.h"

/* Decode a frame of link type 242. */
void ipoib_decode(struct pkt *p, const struct decode_opts *o);

#endif
