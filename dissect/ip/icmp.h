/* layer 1 (wire): ICMP and ICMPv6. */
#ifndef RDMATRACE_DISSECT_IP_ICMP_H
#define RDMATRACE_DISSECT_IP_ICMP_H

#include "dissect/field.h"

/* Types of errors. */
enum {
    ICMP_UNREACHABLE = 3,
    ICMP6_UNREACHABLE = 1,
    ICMP6_TOO_BIG = 2,
};

extern const struct hdr icmp_hdr, icmp6_hdr;

/* True for the type of an error, which quotes the packet that caused it. */
bool icmp_is_error(uint8_t type);
bool icmp6_is_error(uint8_t type);

#endif
