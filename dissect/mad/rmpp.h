/* layer 1 (wire): the reliable multi-packet protocol of management datagrams (OpenSM ib_types.h, kernel
 * rdma/ib_mad.h). */
#ifndef RDMATRACE_DISSECT_MAD_RMPP_H
#define RDMATRACE_DISSECT_MAD_RMPP_H

#include "dissect/mad/mad.h"

/* Conditions of the views of the RMPP header at `p` (`len` bytes captured), by RMPPType. */
bool rmpp_is_data(const uint8_t *p, uint32_t len);
bool rmpp_is_ack(const uint8_t *p, uint32_t len);

/*
 * RMPP header, 12 bytes after the MAD header.
 *   0                8                16          21   24               32
 *   +----------------+----------------+-----------+----+----------------+
 *   |    version     |      type      | resp time |flag|     status     |
 *   +----------------+----------------+-----------+----+----------------+
 *   |      data 1: segment number (DATA, ACK)                           |
 *   +-------------------------------------------------------------------+
 *   |      data 2: payload length (DATA), new window last (ACK)         |
 *   +-------------------------------------------------------------------+
 */
#define RMPP_FIELDS(U, A, V)                                                                                           \
    U(uint8_t, rmppversion, 0, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.rmpp.rmppversion", "RMPP Type", "Version, 1.") \
    U(uint8_t, rmpptype, 8, 8, FT_UINT8, BASE_HEX, &rmpp_type_desc, "infiniband.rmpp.rmpptype", "RMPP Type",           \
      "What the packet is to the transfer.")                                                                           \
    U(uint8_t, rresptime, 16, 5, FT_UINT8, BASE_HEX, NULL, "infiniband.rmpp.rresptime", "R Resp Time",                 \
      "Code of the time in which the other side answers; 31: none stated.")                                            \
    U(uint8_t, rmppflags, 21, 3, FT_UINT8, BASE_HEX, &rmpp_flags_desc, "infiniband.rmpp.rmppflags", "RMPP Flags",      \
      "Bit 0 active, bit 1 first, bit 2 last.")                                                                        \
    U(uint8_t, rmppstatus, 24, 8, FT_UINT8, BASE_HEX, &rmpp_status_desc, "infiniband.rmpp.rmppstatus", "RMPP Status",  \
      "Why a transfer is stopped or aborted.")                                                                         \
    U(uint32_t, data1, 32, 32, FT_UINT32, BASE_HEX, NULL, "rdma.rmpp.data1", "Data1",                                  \
      "Segment number in DATA and ACK, else reserved.")                                                                \
    U(uint32_t, data2, 64, 32, FT_UINT32, BASE_HEX, NULL, "rdma.rmpp.data2", "Data2",                                  \
      "Payload length in DATA, end of the window in ACK, else reserved.")                                              \
    V(rmpp_is_data, 32, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.rmpp.segmentnumber", "Segment Number",              \
      "Number of the segment, from 1.")                                                                                \
    V(rmpp_is_data, 64, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.rmpp.payloadlength", "Payload Length",              \
      "First: bytes of the whole transfer; last: bytes of this segment; both with the SA headers.")                    \
    V(rmpp_is_ack, 32, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.rmpp.segmentnumber", "Segment Number",               \
      "Last segment that arrived.")                                                                                    \
    V(rmpp_is_ack, 64, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.rmpp.newwindowlast", "New Window Last",              \
      "Last segment that may be sent.")

/* All headers of this file: NAME_hdr. */
#define RMPP_HDRS(X) X(rmpp)
RMPP_HDRS(HDR_EXTERN)

#define RMPP_LEN 12
enum rmpp_type {
    RMPP_DATA = 1,
    RMPP_ACK = 2,
    RMPP_STOP = 3,
    RMPP_ABORT = 4,
};
/* Bits of RMPPFlags. */
#define RMPP_ACTIVE 1
#define RMPP_FIRST  2
#define RMPP_LAST   4
HDR_STRUCT(rmpp, RMPP_FIELDS)

#endif
