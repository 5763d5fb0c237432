/* layer 1 (wire): ERF records. */
#ifndef RDMATRACE_DISSECT_LINK_ERF_H
#define RDMATRACE_DISSECT_LINK_ERF_H

#include "dissect/pkt.h"

/* Decode a frame that starts with an ERF record header. */
void erf_decode(struct pkt *p, const struct decode_opts *o);

#endif
