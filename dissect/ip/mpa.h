/* layer 1 (wire): iWARP: the MPA request that opens it in a TCP stream (RFC 5044, section 7.1). */
#ifndef RDMATRACE_DISSECT_IP_MPA_H
#define RDMATRACE_DISSECT_IP_MPA_H

#include "dissect/pkt.h"

/* Whether the captured payload of a packet that is a TCP segment begins with the key of an MPA request. */
bool mpa_is_request(const struct pkt *p);

#endif
