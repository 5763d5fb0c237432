/* layer 1 (wire): options of IPv4. */
#ifndef RDMATRACE_DISSECT_IP_IP4OPT_H
#define RDMATRACE_DISSECT_IP_IP4OPT_H

#include "types.h"

struct pkt;

/* Note the options of the IPv4 header that ends at offset `end`; they start at `off`. */
void ip4_options_decode(struct pkt *p, uint32_t off, uint32_t end);

#endif
