/* layer 1 (wire): how packets are to be decoded. */
#ifndef RDMATRACE_DISSECT_DECODE_OPTS_H
#define RDMATRACE_DISSECT_DECODE_OPTS_H

#include "types.h"

/* How opcodes 0x40-0x5f are read. */
enum rd_or_dc {
    RD_OR_DC_GUESS, /* not known: DC on RoCE, RD on native InfiniBand */
    RD_OR_DC_RD,
    RD_OR_DC_DC,
};

/* What pkt_decode() is told; all zero: the defaults. */
struct decode_opts {
    uint16_t udp_ports[8]; /* UDP destination ports that carry RoCEv2 besides 4791 */
    unsigned n_udp_ports;  /* at most 8 */
    enum rd_or_dc rd_or_dc;
    bool verify; /* verify ICRC and VCRC */
    /* stop after the extended transport headers: no payload, pad, ICRC, management datagram */
    bool headers_only;
};

#endif
