/* layer 1 (wire): performance management: counters by virtual lane, service level and FEC lane (OpenSM ib_types.h,
 * libibmad fields.c). */
#ifndef RDMATRACE_DISSECT_MAD_PERFMGT_VL_H
#define RDMATRACE_DISSECT_MAD_PERFMGT_VL_H

#include "dissect/mad/mad.h"
#include "dissect/mad/repeat.h"

/* PortVLOpPackets: packets received with a selected opcode, by virtual lane, 36 bytes. */
#define VLOPPACKETS_ENTRY(U, A, V, i)                                                                                  \
    U(uint16_t, portvloppackets_##i, 32 + (i)*16, 16, FT_UINT16, BASE_DEC, NULL, "rdma.portvloppackets.packets",       \
      "PortVLOpPackets " #i, "Packets received with it on this lane.")
#define VLOPPACKETS_FIELDS(U, A, V)                                                                                    \
    U(uint8_t, opcode, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portvloppackets.opcode", "OpCode",                        \
      "Opcode that is counted.")                                                                                       \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_DEC, NULL, "rdma.portvloppackets.portselect", "PortSelect", "Port.")   \
    U(uint16_t, counterselect, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portvloppackets.counterselect",                \
      "CounterSelect", "Counters that a Set changes.")                                                                 \
    REP16(VLOPPACKETS_ENTRY, U, A, V)

/* PortVLOpData: data received with a selected opcode, in units of 4 bytes, by virtual lane, 68 bytes. */
#define VLOPDATA_ENTRY(U, A, V, i)                                                                                     \
    U(uint32_t, portvlopdata_##i, 32 + (i)*32, 32, FT_UINT32, BASE_DEC, NULL, "rdma.portvlopdata.data",                \
      "PortVLOpData " #i, "Data received with it on this lane in units of 4 bytes.")
#define VLOPDATA_FIELDS(U, A, V)                                                                                       \
    U(uint8_t, opcode, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portvlopdata.opcode", "OpCode",                           \
      "Opcode that is counted.")                                                                                       \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_DEC, NULL, "rdma.portvlopdata.portselect", "PortSelect", "Port.")      \
    U(uint16_t, counterselect, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portvlopdata.counterselect", "CounterSelect",  \
      "Counters that a Set changes.")                                                                                  \
    REP16(VLOPDATA_ENTRY, U, A, V)

/* PortVLXmitFlowCtlUpdateErrors: flow control errors by virtual lane, 8 bytes. */
#define VLFLOWERRORS_ENTRY(U, A, V, i)                                                                                 \
    U(uint8_t, portvlxmitflowctlupdateerrors_##i, 32 + (i)*2, 2, FT_UINT8, BASE_DEC, NULL,                             \
      "rdma.portvlxmitflowctlupdateerrors.errors", "PortVLXmitFlowCtlUpdateErrors " #i,                                \
      "Errors of flow control updates of this lane.")
#define VLFLOWERRORS_FIELDS(U, A, V)                                                                                   \
    U(uint8_t, reserved, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portvlxmitflowctlupdateerrors.reserved", "Reserved",    \
      "Zero.")                                                                                                         \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_DEC, NULL, "rdma.portvlxmitflowctlupdateerrors.portselect",            \
      "PortSelect", "Port.")                                                                                           \
    U(uint16_t, counterselect, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portvlxmitflowctlupdateerrors.counterselect",  \
      "CounterSelect", "Counters that a Set changes.")                                                                 \
    REP16(VLFLOWERRORS_ENTRY, U, A, V)

/* PortVLXmitWaitCounters: ticks during which data waited to be sent, by virtual lane, 36 bytes. */
#define VLXMITWAIT_ENTRY(U, A, V, i)                                                                                   \
    U(uint16_t, portvlxmitwait_##i, 32 + (i)*16, 16, FT_UINT16, BASE_DEC, NULL, "rdma.portvlxmitwaitcounters.wait",    \
      "PortVLXmitWait " #i, "Ticks in which data of this lane waited.")
#define VLXMITWAIT_FIELDS(U, A, V)                                                                                     \
    U(uint8_t, reserved, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portvlxmitwaitcounters.reserved", "Reserved", "Zero.")  \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_DEC, NULL, "rdma.portvlxmitwaitcounters.portselect", "PortSelect",     \
      "Port.")                                                                                                         \
    U(uint16_t, counterselect, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portvlxmitwaitcounters.counterselect",         \
      "CounterSelect", "Counters that a Set changes.")                                                                 \
    REP16(VLXMITWAIT_ENTRY, U, A, V)

/* SwPortVLCongestion: congestion events of a switch port, by virtual lane, 36 bytes. */
#define VLCONGESTION_ENTRY(U, A, V, i)                                                                                 \
    U(uint16_t, swportvlcongestion_##i, 32 + (i)*16, 16, FT_UINT16, BASE_DEC, NULL,                                    \
      "rdma.swportvlcongestion.congestion", "SWPortVLCongestion " #i, "Congestion events of this lane.")
#define VLCONGESTION_FIELDS(U, A, V)                                                                                   \
    U(uint8_t, reserved, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.swportvlcongestion.reserved", "Reserved", "Zero.")      \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_DEC, NULL, "rdma.swportvlcongestion.portselect", "PortSelect",         \
      "Port.")                                                                                                         \
    U(uint16_t, counterselect, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.swportvlcongestion.counterselect",             \
      "CounterSelect", "Counters that a Set changes.")                                                                 \
    REP16(VLCONGESTION_ENTRY, U, A, V)

/* PortSLRcvFECN: packets received with FECN, by service level, 68 bytes. */
#define SLRCVFECN_ENTRY(U, A, V, i)                                                                                    \
    U(uint32_t, portslrcvfecn_##i, 32 + (i)*32, 32, FT_UINT32, BASE_DEC, NULL, "rdma.portslrcvfecn.packets",           \
      "PortSLRcvFECN " #i, "Packets with FECN of this service level.")
#define SLRCVFECN_FIELDS(U, A, V)                                                                                      \
    U(uint8_t, reserved, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portslrcvfecn.reserved", "Reserved", "Zero.")           \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_DEC, NULL, "rdma.portslrcvfecn.portselect", "PortSelect", "Port.")     \
    U(uint16_t, counterselect, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portslrcvfecn.counterselect", "CounterSelect", \
      "Counters that a Set changes.")                                                                                  \
    REP16(SLRCVFECN_ENTRY, U, A, V)

/* PortSLRcvBECN: packets received with BECN, by service level, 68 bytes. */
#define SLRCVBECN_ENTRY(U, A, V, i)                                                                                    \
    U(uint32_t, portslrcvbecn_##i, 32 + (i)*32, 32, FT_UINT32, BASE_DEC, NULL, "rdma.portslrcvbecn.packets",           \
      "PortSLRcvBECN " #i, "Packets with BECN of this service level.")
#define SLRCVBECN_FIELDS(U, A, V)                                                                                      \
    U(uint8_t, reserved, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portslrcvbecn.reserved", "Reserved", "Zero.")           \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_DEC, NULL, "rdma.portslrcvbecn.portselect", "PortSelect", "Port.")     \
    U(uint16_t, counterselect, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portslrcvbecn.counterselect", "CounterSelect", \
      "Counters that a Set changes.")                                                                                  \
    REP16(SLRCVBECN_ENTRY, U, A, V)

/* PortVLXmitTimeCong: ticks in congestion, by virtual lane, 64 bytes; lanes 0 to 14, as in libibmad. */
#define VLTIMECONG_ENTRY(U, A, V, i)                                                                                   \
    U(uint32_t, portvlxmittimecong_##i, 32 + (i)*32, 32, FT_UINT32, BASE_DEC, NULL, "rdma.portvlxmittimecong.time",    \
      "PortVLXmitTimeCong " #i, "Ticks that this lane was congested.")
#define VLTIMECONG_FIELDS(U, A, V)                                                                                     \
    U(uint8_t, reserved, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portvlxmittimecong.reserved", "Reserved", "Zero.")      \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_DEC, NULL, "rdma.portvlxmittimecong.portselect", "PortSelect",         \
      "Port.")                                                                                                         \
    U(uint16_t, counterselect, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portvlxmittimecong.counterselect",             \
      "CounterSelect", "Counters that a Set changes.")                                                                 \
    REP15(VLTIMECONG_ENTRY, U, A, V)

/* PortXmitDataSL: data sent, in units of 4 bytes, by service level, 68 bytes. */
#define XMITDATASL_ENTRY(U, A, V, i)                                                                                   \
    U(uint32_t, xmtdatasl_##i, 32 + (i)*32, 32, FT_UINT32, BASE_DEC, NULL, "rdma.portxmitdatasl.data",                 \
      "XmtDataSL " #i, "Data sent of this service level in units of 4 bytes.")
#define XMITDATASL_FIELDS(U, A, V)                                                                                     \
    U(uint8_t, reserved, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portxmitdatasl.reserved", "Reserved", "Zero.")          \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_DEC, NULL, "rdma.portxmitdatasl.portselect", "PortSelect", "Port.")    \
    U(uint16_t, counterselect, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portxmitdatasl.counterselect",                 \
      "CounterSelect", "Counters that a Set changes.")                                                                 \
    REP16(XMITDATASL_ENTRY, U, A, V)

/* PortRcvDataSL: data received, in units of 4 bytes, by service level, 68 bytes. */
#define RCVDATASL_ENTRY(U, A, V, i)                                                                                    \
    U(uint32_t, rcvdatasl_##i, 32 + (i)*32, 32, FT_UINT32, BASE_DEC, NULL, "rdma.portrcvdatasl.data", "RcvDataSL " #i, \
      "Data received of this service level in units of 4 bytes.")
#define RCVDATASL_FIELDS(U, A, V)                                                                                      \
    U(uint8_t, reserved, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portrcvdatasl.reserved", "Reserved", "Zero.")           \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_DEC, NULL, "rdma.portrcvdatasl.portselect", "PortSelect", "Port.")     \
    U(uint16_t, counterselect, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portrcvdatasl.counterselect", "CounterSelect", \
      "Counters that a Set changes.")                                                                                  \
    REP16(RCVDATASL_ENTRY, U, A, V)

/* PortExtendedSpeedsCounters: errors of links with 64b/66b encoding, by lane, 140 bytes. */
#define EXTSPEEDS_ENTRY(U, A, V, i)                                                                                    \
    U(uint16_t, errordetectioncounterlane_##i, 160 + (i)*16, 16, FT_UINT16, BASE_DEC, NULL,                            \
      "rdma.portextendedspeedscounters.errordetection", "ErrorDetectionCounterLane " #i,                               \
      "Errors detected on this lane.")
#define EXTSPEEDS_ENTRY2(U, A, V, i)                                                                                   \
    U(uint32_t, feccorrectableblockctrlane_##i, 352 + (i)*32, 32, FT_UINT32, BASE_DEC, NULL,                           \
      "rdma.portextendedspeedscounters.fecblocks", "FECCorrectableBlockCtrLane " #i,                                   \
      "Blocks corrected on this lane; symbols with RS-FEC.")
#define EXTSPEEDS_ENTRY3(U, A, V, i)                                                                                   \
    U(uint32_t, fecuncorrectableblockctrlane_##i, 736 + (i)*32, 32, FT_UINT32, BASE_DEC, NULL,                         \
      "rdma.portextendedspeedscounters.fecuncorrectableblocks", "FECUncorrectableBlockCtrLane " #i,                    \
      "Blocks that could not be corrected on this lane.")
#define EXTSPEEDS_FIELDS(U, A, V)                                                                                      \
    U(uint8_t, reserved, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portextendedspeedscounters.reserved", "Reserved",       \
      "Zero.")                                                                                                         \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_DEC, NULL, "rdma.portextendedspeedscounters.portselect", "PortSelect", \
      "Port.")                                                                                                         \
    U(uint64_t, reserved2, 16, 48, FT_UINT48, BASE_HEX, NULL, "rdma.portextendedspeedscounters.reserved", "Reserved",  \
      "Zero.")                                                                                                         \
    U(uint64_t, counterselect, 64, 64, FT_UINT64, BASE_HEX, NULL, "rdma.portextendedspeedscounters.counterselect",     \
      "CounterSelect", "Counters that a Set changes.")                                                                 \
    U(uint16_t, syncheadererrorcounter, 128, 16, FT_UINT16, BASE_DEC, NULL,                                            \
      "rdma.portextendedspeedscounters.syncheadererrorcounter", "SyncHeaderErrorCounter",                              \
      "Errors of the synchronisation header.")                                                                         \
    U(uint16_t, unknownblockcounter, 144, 16, FT_UINT16, BASE_DEC, NULL,                                               \
      "rdma.portextendedspeedscounters.unknownblockcounter", "UnknownBlockCounter", "Blocks of an unknown type.")      \
    REP12(EXTSPEEDS_ENTRY, U, A, V)                                                                                    \
    REP12(EXTSPEEDS_ENTRY2, U, A, V)                                                                                   \
    REP12(EXTSPEEDS_ENTRY3, U, A, V)

/* FEC counters of the whole port, after those by lane, 12 bytes. */
#define EXTSPEEDSRS_FIELDS(U, A, V)                                                                                    \
    U(uint32_t, portfeccorrectableblockctr, 0, 32, FT_UINT32, BASE_DEC, NULL,                                          \
      "rdma.portextendedspeedscounters.portfeccorrectableblockctr", "PortFECCorrectableBlockCtr", "Blocks corrected.") \
    U(uint32_t, portfecuncorrectableblockctr, 32, 32, FT_UINT32, BASE_DEC, NULL,                                       \
      "rdma.portextendedspeedscounters.portfecuncorrectableblockctr", "PortFECUncorrectableBlockCtr",                  \
      "Blocks that could not be corrected.")                                                                           \
    U(uint32_t, portfeccorrectedsymbolctr, 64, 32, FT_UINT32, BASE_DEC, NULL,                                          \
      "rdma.portextendedspeedscounters.portfeccorrectedsymbolctr", "PortFECCorrectedSymbolCtr", "Symbols corrected.")

/* All headers of this file: NAME_hdr. */
#define PERF_VL_HDRS(X)                                                                                                \
    X(vloppackets)                                                                                                     \
    X(vlopdata)                                                                                                        \
    X(vlflowerrors)                                                                                                    \
    X(vlxmitwait)                                                                                                      \
    X(vlcongestion) X(slrcvfecn) X(slrcvbecn) X(vltimecong) X(xmitdatasl) X(rcvdatasl) X(extspeeds) X(extspeedsrs)
PERF_VL_HDRS(HDR_EXTERN)

#endif
