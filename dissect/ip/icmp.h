/* layer 1 (wire): ICMP and ICMPv6. */
#ifndef RDMATRACE_DISSECT_IP_ICMP_H
#define RDMATRACE_DISSECT_IP_ICMP_H

#include "dissect/field.h"

extern const struct hdr icmp_hdr, icmp6_hdr;

#endif
