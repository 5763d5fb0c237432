/* layer 1 (wire): TCP header (RFC 9293). */
#ifndef RDMATRACE_DISSECT_IP_TCP_H
#define RDMATRACE_DISSECT_IP_TCP_H

#include "dissect/field.h"

/*
 * TCP header, 20 bytes and options.
 *   0                          16                              32
 *   +--------------------------+--------------------------------+
 *   |       source port        |        destination port        |
 *   |                      sequence number                      |
 *   |                   acknowledgment number                   |
 *   | offset (4) | res (3) | flags (9) |        window          |
 *   |        checksum          |         urgent pointer         |
 *   +--------------------------+--------------------------------+
 */
#define TCP_LEN 20 /* without options */
#define TCP_FIELDS(U, A, V)                                                                                            \
    U(uint16_t, sport, 0, 16, FT_UINT16, BASE_DEC, NULL, "tcp.srcport", "Source Port", "Source port.")                 \
    U(uint16_t, dport, 16, 16, FT_UINT16, BASE_DEC, NULL, "tcp.dstport", "Destination Port", "Destination port.")      \
    U(uint32_t, seq, 32, 32, FT_UINT32, BASE_DEC, NULL, "tcp.seq_raw", "Sequence Number", "Of the first byte.")        \
    U(uint32_t, ack, 64, 32, FT_UINT32, BASE_DEC, NULL, "tcp.ack_raw", "Acknowledgment number", "Next byte expected.") \
    U(uint8_t, doff, 96, 4, FT_UINT8, BASE_DEC, NULL, "rdma.tcp.doff", "Header Length in words", "In 4-byte words.")   \
    V(NULL, 100, 12, FT_UINT16, BASE_HEX, NULL, "tcp.flags", "Flags", "All flags.")                                    \
    U(uint8_t, res, 100, 3, FT_BOOL, BASE_NONE, NULL, "tcp.flags.res", "Reserved", "Zero.")                            \
    U(uint8_t, ae, 103, 1, FT_BOOL, BASE_NONE, NULL, "tcp.flags.ae", "Accurate ECN", "AE.")                            \
    U(uint8_t, cwr, 104, 1, FT_BOOL, BASE_NONE, NULL, "tcp.flags.cwr", "Congestion Window Reduced", "CWR.")            \
    U(uint8_t, ece, 105, 1, FT_BOOL, BASE_NONE, NULL, "tcp.flags.ece", "ECN-Echo", "ECE.")                             \
    U(uint8_t, urg, 106, 1, FT_BOOL, BASE_NONE, NULL, "tcp.flags.urg", "Urgent", "URG.")                               \
    U(uint8_t, ackf, 107, 1, FT_BOOL, BASE_NONE, NULL, "tcp.flags.ack", "Acknowledgment", "ACK.")                      \
    U(uint8_t, psh, 108, 1, FT_BOOL, BASE_NONE, NULL, "tcp.flags.push", "Push", "PSH.")                                \
    U(uint8_t, rst, 109, 1, FT_BOOL, BASE_NONE, NULL, "tcp.flags.reset", "Reset", "RST.")                              \
    U(uint8_t, syn, 110, 1, FT_BOOL, BASE_NONE, NULL, "tcp.flags.syn", "Syn", "SYN.")                                  \
    U(uint8_t, fin, 111, 1, FT_BOOL, BASE_NONE, NULL, "tcp.flags.fin", "Fin", "FIN.")                                  \
    U(uint16_t, window, 112, 16, FT_UINT16, BASE_DEC, NULL, "tcp.window_size_value", "Window", "Before scaling.")      \
    U(uint16_t, csum, 128, 16, FT_UINT16, BASE_HEX, NULL, "tcp.checksum", "Checksum", "RFC 1071 sum.")                 \
    U(uint16_t, urgp, 144, 16, FT_UINT16, BASE_DEC, NULL, "tcp.urgent_pointer", "Urgent Pointer", "With URG.")
HDR_STRUCT(tcp, TCP_FIELDS)

extern const struct hdr tcp_hdr;

/* The TCP header, if it is the innermost layer but for those of upper protocols, which were added because of earlier
 * packets; NULL: it is not. */
const struct layer *tcp_layer(const struct pkt *p);
/* The captured payload of the TCP segment that is the innermost layer of `p`, as tcp_layer() says; *len: its bytes, *h:
 * its header. NULL if the packet is no TCP segment, is an IP fragment, or no payload was captured. */
const uint8_t *tcp_payload(const struct pkt *p, struct tcp *h, uint32_t *len);
/* Captured bytes of payload of the segment whose header is `l`; 0: none. */
uint32_t tcp_payload_cap(const struct pkt *p, const struct layer *l);
/* Whether that layer is a TCP segment with SYN, and without ACK: a client opens a connection. */
bool tcp_opens(const struct pkt *p);

#endif
