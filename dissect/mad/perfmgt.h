/* layer 1 (wire): performance management: sampling and the basic counters (OpenSM ib_types.h, kernel rdma/ib_pma.h,
 * libibmad fields.c). */
#ifndef RDMATRACE_DISSECT_MAD_PERFMGT_H
#define RDMATRACE_DISSECT_MAD_PERFMGT_H

#include "dissect/mad/mad.h"
#include "dissect/mad/repeat.h"

/* PortSamplesControl: selects and starts the sampling of counters, 80 bytes. */
#define SAMPLESCONTROL_ENTRY(U, A, V, i)                                                                               \
    U(uint16_t, counterselect_##i, 304 + (i)*16, 16, FT_UINT16, BASE_HEX, NULL,                                        \
      "rdma.portsamplescontrol.counterselect", "CounterSelect " #i, "What this counter counts.")
#define SAMPLESCONTROL_FIELDS(U, A, V)                                                                                 \
    U(uint8_t, opcode, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portsamplescontrol.opcode", "OpCode", "What is sampled.") \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_DEC, NULL, "rdma.portsamplescontrol.portselect", "PortSelect",         \
      "Port.")                                                                                                         \
    U(uint8_t, tick, 16, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portsamplescontrol.tick", "Tick",                          \
      "Code of the unit of time of the intervals.")                                                                    \
    U(uint8_t, reserved, 24, 5, FT_UINT8, BASE_HEX, NULL, "rdma.portsamplescontrol.reserved", "Reserved", "Zero.")     \
    U(uint8_t, counterwidth, 29, 3, FT_UINT8, BASE_HEX, NULL, "rdma.portsamplescontrol.counterwidth", "CounterWidth",  \
      "Code of the width of the counters.")                                                                            \
    U(uint8_t, reserved2, 32, 2, FT_UINT8, BASE_HEX, NULL, "rdma.portsamplescontrol.reserved", "Reserved", "Zero.")    \
    U(uint32_t, countermasks0to9, 34, 30, FT_UINT32, BASE_HEX, NULL, "rdma.portsamplescontrol.countermasks0to9",       \
      "CounterMasks0to9", "Counters 0 to 9: 3 bits each that tell how well it is supported.")                          \
    U(uint8_t, reserved3, 64, 1, FT_UINT8, BASE_HEX, NULL, "rdma.portsamplescontrol.reserved", "Reserved", "Zero.")    \
    U(uint16_t, countermasks10to14, 65, 15, FT_UINT16, BASE_HEX, NULL, "rdma.portsamplescontrol.countermasks10to14",   \
      "CounterMasks10to14", "The same for counters 10 to 14.")                                                         \
    U(uint8_t, samplemechanisms, 80, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portsamplescontrol.samplemechanisms",          \
      "SampleMechanisms", "Sampling engines that are there.")                                                          \
    U(uint8_t, reserved4, 88, 6, FT_UINT8, BASE_HEX, NULL, "rdma.portsamplescontrol.reserved", "Reserved", "Zero.")    \
    U(uint8_t, samplestatus, 94, 2, FT_UINT8, BASE_HEX, &sample_status_desc, "rdma.portsamplescontrol.samplestatus",   \
      "SampleStatus", "State of the sampling.")                                                                        \
    U(uint64_t, optionmask, 96, 64, FT_UINT64, BASE_HEX, NULL, "rdma.portsamplescontrol.optionmask", "OptionMask",     \
      "Optional counters that can be sampled.")                                                                        \
    U(uint64_t, vendormask, 160, 64, FT_UINT64, BASE_HEX, NULL, "rdma.portsamplescontrol.vendormask", "VendorMask",    \
      "Counters of the vendor that can be sampled.")                                                                   \
    U(uint32_t, samplestart, 224, 32, FT_UINT32, BASE_DEC, NULL, "rdma.portsamplescontrol.samplestart", "SampleStart", \
      "Ticks until sampling starts.")                                                                                  \
    U(uint32_t, sampleinterval, 256, 32, FT_UINT32, BASE_DEC, NULL, "rdma.portsamplescontrol.sampleinterval",          \
      "SampleInterval", "Ticks that sampling lasts.")                                                                  \
    U(uint16_t, tag, 288, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portsamplescontrol.tag", "Tag",                         \
      "Identifies the sample.")                                                                                        \
    REP15(SAMPLESCONTROL_ENTRY, U, A, V)                                                                               \
    U(uint32_t, reserved5, 544, 32, FT_UINT32, BASE_HEX, NULL, "rdma.portsamplescontrol.reserved", "Reserved",         \
      "Zero.")                                                                                                         \
    U(uint64_t, samplesonlyoptionmask, 576, 64, FT_UINT64, BASE_HEX, NULL,                                             \
      "rdma.portsamplescontrol.samplesonlyoptionmask", "SamplesOnlyOptionMask", "Counters that can be sampled only.")

/* PortSamplesResult: the sampled counters, 32 bits each, 64 bytes. */
#define SAMPLESRESULT_ENTRY(U, A, V, i)                                                                                \
    U(uint32_t, counter_##i, 32 + (i)*32, 32, FT_UINT32, BASE_DEC, NULL, "rdma.portsamplesresult.counter",             \
      "Counter " #i, "What was counted.")
#define SAMPLESRESULT_FIELDS(U, A, V)                                                                                  \
    U(uint16_t, tag, 0, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portsamplesresult.tag", "Tag", "Identifies the sample.")  \
    U(uint16_t, reserved, 16, 14, FT_UINT16, BASE_HEX, NULL, "rdma.portsamplesresult.reserved", "Reserved", "Zero.")   \
    U(uint8_t, samplestatus, 30, 2, FT_UINT8, BASE_HEX, &sample_status_desc, "rdma.portsamplesresult.samplestatus",    \
      "SampleStatus", "State of the sampling.")                                                                        \
    REP15(SAMPLESRESULT_ENTRY, U, A, V)

/* PortSamplesResultExtended: the sampled counters, 64 bits each, 128 bytes. */
#define SAMPLESRESULTEXT_ENTRY(U, A, V, i)                                                                             \
    U(uint64_t, counter_##i, 64 + (i)*64, 64, FT_UINT64, BASE_DEC, NULL, "rdma.portsamplesresultext.counter",          \
      "Counter " #i, "What was counted.")
#define SAMPLESRESULTEXT_FIELDS(U, A, V)                                                                               \
    U(uint16_t, tag, 0, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portsamplesresultext.tag", "Tag",                         \
      "Identifies the sample.")                                                                                        \
    U(uint16_t, reserved, 16, 14, FT_UINT16, BASE_HEX, NULL, "rdma.portsamplesresultext.reserved", "Reserved",         \
      "Zero.")                                                                                                         \
    U(uint8_t, samplestatus, 30, 2, FT_UINT8, BASE_HEX, &sample_status_desc, "rdma.portsamplesresultext.samplestatus", \
      "SampleStatus", "State of the sampling.")                                                                        \
    U(uint8_t, extendedwidth, 32, 2, FT_UINT8, BASE_HEX, NULL, "rdma.portsamplesresultext.extendedwidth",              \
      "ExtendedWidth", "Code of the width of the counters.")                                                           \
    U(uint32_t, reserved2, 34, 30, FT_UINT32, BASE_HEX, NULL, "rdma.portsamplesresultext.reserved", "Reserved",        \
      "Zero.")                                                                                                         \
    REP15(SAMPLESRESULTEXT_ENTRY, U, A, V)

/* PortCounters: the basic counters of a port, at most 32 bits each, 44 bytes. */
#define PORTCOUNTERS_FIELDS(U, A, V)                                                                                   \
    U(uint8_t, reserved, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portcounters.reserved", "Reserved", "Zero.")            \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.portcounters.portselect", "PortSelect",         \
      "Port.")                                                                                                         \
    U(uint16_t, counterselect, 16, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.portcounters.counterselect",             \
      "CounterSelect", "Counters that a Set changes.")                                                                 \
    U(uint16_t, symbolerrorcounter, 32, 16, FT_UINT16, BASE_DEC, NULL, "infiniband.portcounters.symbolerrorcounter",   \
      "SymbolErrorCounter", "Errors of the physical layer.")                                                           \
    U(uint8_t, linkerrorrecoverycounter, 48, 8, FT_UINT8, BASE_DEC, NULL,                                              \
      "infiniband.portcounters.linkerrorrecoverycounter", "LinkErrorRecoveryCounter",                                  \
      "Times that the link recovered from errors.")                                                                    \
    U(uint8_t, linkdownedcounter, 56, 8, FT_UINT8, BASE_DEC, NULL, "infiniband.portcounters.linkdownedcounter",        \
      "LinkDownedCounter", "Times that the link went down.")                                                           \
    U(uint16_t, portrcverrors, 64, 16, FT_UINT16, BASE_DEC, NULL, "infiniband.portcounters.portrcverrors",             \
      "PortRcvErrors", "Packets that arrived with an error.")                                                          \
    U(uint16_t, portrcvremotephysicalerrors, 80, 16, FT_UINT16, BASE_DEC, NULL,                                        \
      "infiniband.portcounters.portrcvremotephysicalerrors", "PortRcvRemotePhysicalErrors",                            \
      "Packets that were marked bad on their way.")                                                                    \
    U(uint16_t, portrcvswitchrelayerrors, 96, 16, FT_UINT16, BASE_DEC, NULL,                                           \
      "infiniband.portcounters.portrcvswitchrelayerrors", "PortRcvSwitchRelayErrors",                                  \
      "Packets that the switch could not forward.")                                                                    \
    U(uint16_t, portxmitdiscards, 112, 16, FT_UINT16, BASE_DEC, NULL, "infiniband.portcounters.portxmitdiscards",      \
      "PortXmitDiscards", "Packets discarded on their way out.")                                                       \
    U(uint8_t, portxmitconstrainterrors, 128, 8, FT_UINT8, BASE_DEC, NULL,                                             \
      "infiniband.portcounters.portxmitconstrainterrors", "PortXmitConstraintErrors",                                  \
      "Packets not sent because of a constraint.")                                                                     \
    U(uint8_t, portrcvconstrainterrors, 136, 8, FT_UINT8, BASE_DEC, NULL,                                              \
      "infiniband.portcounters.portrcvconstrainterrors", "PortRcvConstraintErrors",                                    \
      "Packets discarded because of a constraint.")                                                                    \
    U(uint8_t, counterselect2, 144, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portcounters.counterselect2", "CounterSelect2", \
      "Further counters that a Set changes.")                                                                          \
    U(uint8_t, locallinkintegrityerrors, 152, 4, FT_UINT8, BASE_DEC, NULL,                                             \
      "infiniband.portcounters.locallinkintegrityerrors", "LocalLinkIntegrityErrors",                                  \
      "Times that local physical errors exceeded their threshold.")                                                    \
    U(uint8_t, excessivebufferoverrunerrors, 156, 4, FT_UINT8, BASE_DEC, NULL,                                         \
      "infiniband.portcounters.excessivebufferoverrunerrors", "ExcessiveBufferOverrunErrors",                          \
      "Times that buffer overruns exceeded their threshold.")                                                          \
    U(uint16_t, qp1dropped, 160, 16, FT_UINT16, BASE_DEC, NULL, "rdma.portcounters.qp1dropped", "QP1Dropped",          \
      "Packets to QP 1 dropped.")                                                                                      \
    U(uint16_t, vl15dropped, 176, 16, FT_UINT16, BASE_DEC, NULL, "infiniband.portcounters.vl15dropped", "VL15Dropped", \
      "Management packets dropped for lack of room.")                                                                  \
    U(uint32_t, portxmitdata, 192, 32, FT_UINT32, BASE_DEC, NULL, "infiniband.portcounters.portxmitdata",              \
      "PortXmitData", "Data sent in units of 4 bytes.")                                                                \
    U(uint32_t, portrcvdata, 224, 32, FT_UINT32, BASE_DEC, NULL, "infiniband.portcounters.portrcvdata", "PortRcvData", \
      "Data received in units of 4 bytes.")                                                                            \
    U(uint32_t, portxmitpkts, 256, 32, FT_UINT32, BASE_DEC, NULL, "infiniband.portcounters.portxmitpkts",              \
      "PortXmitPkts", "Packets sent.")                                                                                 \
    U(uint32_t, portrcvpkts, 288, 32, FT_UINT32, BASE_DEC, NULL, "infiniband.portcounters.portrcvpkts", "PortRcvPkts", \
      "Packets received.")                                                                                             \
    U(uint32_t, portxmitwait, 320, 32, FT_UINT32, BASE_DEC, NULL, "rdma.portcounters.portxmitwait", "PortXmitWait",    \
      "Ticks in which data waited for credits or arbitration.")

/* PortCountersExtended: the counters of a port, 64 bits each, 192 bytes. */
#define PORTCOUNTERSEXT_FIELDS(U, A, V)                                                                                \
    U(uint8_t, reserved, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portcounters_ext.reserved", "Reserved", "Zero.")        \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.portcounters_ext.portselect", "PortSelect",     \
      "Port.")                                                                                                         \
    U(uint16_t, counterselect, 16, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.portcounters_ext.counterselect",         \
      "CounterSelect", "Counters that a Set changes.")                                                                 \
    U(uint32_t, counterselect2, 32, 32, FT_UINT32, BASE_HEX, NULL, "rdma.portcounters_ext.counterselect2",             \
      "CounterSelect2", "Further counters that a Set changes.")                                                        \
    U(uint64_t, portxmitdata, 64, 64, FT_UINT64, BASE_DEC, NULL, "infiniband.portcounters_ext.portxmitdata",           \
      "PortXmitData", "Data sent in units of 4 bytes.")                                                                \
    U(uint64_t, portrcvdata, 128, 64, FT_UINT64, BASE_DEC, NULL, "infiniband.portcounters_ext.portrcvdata",            \
      "PortRcvData", "Data received in units of 4 bytes.")                                                             \
    U(uint64_t, portxmitpkts, 192, 64, FT_UINT64, BASE_DEC, NULL, "infiniband.portcounters_ext.portxmitpkts",          \
      "PortXmitPkts", "Packets sent.")                                                                                 \
    U(uint64_t, portrcvpkts, 256, 64, FT_UINT64, BASE_DEC, NULL, "infiniband.portcounters_ext.portrcvpkts",            \
      "PortRcvPkts", "Packets received.")                                                                              \
    U(uint64_t, portunicastxmitpkts, 320, 64, FT_UINT64, BASE_DEC, NULL,                                               \
      "infiniband.portcounters_ext.portunicastxmitpkts", "PortUnicastXmitPkts", "Unicast packets sent.")               \
    U(uint64_t, portunicastrcvpkts, 384, 64, FT_UINT64, BASE_DEC, NULL,                                                \
      "infiniband.portcounters_ext.portunicastrcvpkts", "PortUnicastRcvPkts", "Unicast packets received.")             \
    U(uint64_t, portmulticastxmitpkts, 448, 64, FT_UINT64, BASE_DEC, NULL,                                             \
      "infiniband.portcounters_ext.portmulticastxmitpkts", "PortMulticastXmitPkts", "Multicast packets sent.")         \
    U(uint64_t, portmulticastrcvpkts, 512, 64, FT_UINT64, BASE_DEC, NULL,                                              \
      "infiniband.portcounters_ext.portmulticastrcvpkts", "PortMulticastRcvPkts", "Multicast packets received.")       \
    U(uint64_t, symbolerrorcounter, 576, 64, FT_UINT64, BASE_DEC, NULL, "rdma.portcounters_ext.symbolerrorcounter",    \
      "SymbolErrorCounter", "Errors of the physical layer.")                                                           \
    U(uint64_t, linkerrorrecoverycounter, 640, 64, FT_UINT64, BASE_DEC, NULL,                                          \
      "rdma.portcounters_ext.linkerrorrecoverycounter", "LinkErrorRecoveryCounter",                                    \
      "Times that the link recovered from errors.")                                                                    \
    U(uint64_t, linkdownedcounter, 704, 64, FT_UINT64, BASE_DEC, NULL, "rdma.portcounters_ext.linkdownedcounter",      \
      "LinkDownedCounter", "Times that the link went down.")                                                           \
    U(uint64_t, portrcverrors, 768, 64, FT_UINT64, BASE_DEC, NULL, "rdma.portcounters_ext.portrcverrors",              \
      "PortRcvErrors", "Packets that arrived with an error.")                                                          \
    U(uint64_t, portrcvremotephysicalerrors, 832, 64, FT_UINT64, BASE_DEC, NULL,                                       \
      "rdma.portcounters_ext.portrcvremotephysicalerrors", "PortRcvRemotePhysicalErrors",                              \
      "Packets that were marked bad on their way.")                                                                    \
    U(uint64_t, portrcvswitchrelayerrors, 896, 64, FT_UINT64, BASE_DEC, NULL,                                          \
      "rdma.portcounters_ext.portrcvswitchrelayerrors", "PortRcvSwitchRelayErrors",                                    \
      "Packets that the switch could not forward.")                                                                    \
    U(uint64_t, portxmitdiscards, 960, 64, FT_UINT64, BASE_DEC, NULL, "rdma.portcounters_ext.portxmitdiscards",        \
      "PortXmitDiscards", "Packets discarded on their way out.")                                                       \
    U(uint64_t, portxmitconstrainterrors, 1024, 64, FT_UINT64, BASE_DEC, NULL,                                         \
      "rdma.portcounters_ext.portxmitconstrainterrors", "PortXmitConstraintErrors",                                    \
      "Packets not sent because of a constraint.")                                                                     \
    U(uint64_t, portrcvconstrainterrors, 1088, 64, FT_UINT64, BASE_DEC, NULL,                                          \
      "rdma.portcounters_ext.portrcvconstrainterrors", "PortRcvConstraintErrors",                                      \
      "Packets discarded because of a constraint.")                                                                    \
    U(uint64_t, locallinkintegrityerrors, 1152, 64, FT_UINT64, BASE_DEC, NULL,                                         \
      "rdma.portcounters_ext.locallinkintegrityerrors", "LocalLinkIntegrityErrors",                                    \
      "Times that local physical errors exceeded their threshold.")                                                    \
    U(uint64_t, excessivebufferoverrunerrors, 1216, 64, FT_UINT64, BASE_DEC, NULL,                                     \
      "rdma.portcounters_ext.excessivebufferoverrunerrors", "ExcessiveBufferOverrunErrors",                            \
      "Times that buffer overruns exceeded their threshold.")                                                          \
    U(uint64_t, vl15dropped, 1280, 64, FT_UINT64, BASE_DEC, NULL, "rdma.portcounters_ext.vl15dropped", "VL15Dropped",  \
      "Management packets dropped for lack of room.")                                                                  \
    U(uint64_t, portxmitwait, 1344, 64, FT_UINT64, BASE_DEC, NULL, "rdma.portcounters_ext.portxmitwait",               \
      "PortXmitWait", "Ticks in which data waited for credits or arbitration.")                                        \
    U(uint64_t, qp1dropped, 1408, 64, FT_UINT64, BASE_DEC, NULL, "rdma.portcounters_ext.qp1dropped", "QP1Dropped",     \
      "Packets to QP 1 dropped.")

/* PortRcvErrorDetails: received packets with errors, by cause, 16 bytes. */
#define RCVERRORDETAILS_FIELDS(U, A, V)                                                                                \
    U(uint8_t, reserved, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portrcverrordetails.reserved", "Reserved", "Zero.")     \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_DEC, NULL, "rdma.portrcverrordetails.portselect", "PortSelect",        \
      "Port.")                                                                                                         \
    U(uint16_t, counterselect, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portrcverrordetails.counterselect",            \
      "CounterSelect", "Counters that a Set changes.")                                                                 \
    U(uint16_t, portlocalphysicalerrors, 32, 16, FT_UINT16, BASE_DEC, NULL,                                            \
      "rdma.portrcverrordetails.portlocalphysicalerrors", "PortLocalPhysicalErrors",                                   \
      "Packets with an error on this link.")                                                                           \
    U(uint16_t, portmalformedpacketerrors, 48, 16, FT_UINT16, BASE_DEC, NULL,                                          \
      "rdma.portrcverrordetails.portmalformedpacketerrors", "PortMalformedPacketErrors",                               \
      "Packets with a wrong format.")                                                                                  \
    U(uint16_t, portbufferoverrunerrors, 64, 16, FT_UINT16, BASE_DEC, NULL,                                            \
      "rdma.portrcverrordetails.portbufferoverrunerrors", "PortBufferOverrunErrors",                                   \
      "Packets that did not fit into the buffer.")                                                                     \
    U(uint16_t, portdlidmappingerrors, 80, 16, FT_UINT16, BASE_DEC, NULL,                                              \
      "rdma.portrcverrordetails.portdlidmappingerrors", "PortDLIDMappingErrors",                                       \
      "Packets whose LID is not in the forwarding table.")                                                             \
    U(uint16_t, portvlmappingerrors, 96, 16, FT_UINT16, BASE_DEC, NULL,                                                \
      "rdma.portrcverrordetails.portvlmappingerrors", "PortVLMappingErrors", "Packets whose lane is not configured.")  \
    U(uint16_t, portloopingerrors, 112, 16, FT_UINT16, BASE_DEC, NULL, "rdma.portrcverrordetails.portloopingerrors",   \
      "PortLoopingErrors", "Packets that would go out by the port that they came in by.")

/* PortXmitDiscardDetails: packets discarded instead of sent, by cause, 12 bytes. */
#define XMITDISCARDDETAILS_FIELDS(U, A, V)                                                                             \
    U(uint8_t, reserved, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portxmitdiscarddetails.reserved", "Reserved", "Zero.")  \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_DEC, NULL, "rdma.portxmitdiscarddetails.portselect", "PortSelect",     \
      "Port.")                                                                                                         \
    U(uint16_t, counterselect, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portxmitdiscarddetails.counterselect",         \
      "CounterSelect", "Counters that a Set changes.")                                                                 \
    U(uint16_t, portinactivediscards, 32, 16, FT_UINT16, BASE_DEC, NULL,                                               \
      "rdma.portxmitdiscarddetails.portinactivediscards", "PortInactiveDiscards", "The port was not active.")          \
    U(uint16_t, portneighbormtudiscards, 48, 16, FT_UINT16, BASE_DEC, NULL,                                            \
      "rdma.portxmitdiscarddetails.portneighbormtudiscards", "PortNeighborMTUDiscards",                                \
      "The packet was longer than the MTU of the link.")                                                               \
    U(uint16_t, portswlifetimelimitdiscards, 64, 16, FT_UINT16, BASE_DEC, NULL,                                        \
      "rdma.portxmitdiscarddetails.portswlifetimelimitdiscards", "PortSwLifetimeLimitDiscards",                        \
      "The packet was too long in the switch.")                                                                        \
    U(uint16_t, portswhoqlifetimelimitdiscards, 80, 16, FT_UINT16, BASE_DEC, NULL,                                     \
      "rdma.portxmitdiscarddetails.portswhoqlifetimelimitdiscards", "PortSwHOQLifetimeLimitDiscards",                  \
      "The packet was too long at the head of its queue.")

/* PortOpRcvCounters: packets received with a selected opcode, 12 bytes. */
#define OPRCV_FIELDS(U, A, V)                                                                                          \
    U(uint8_t, opcode, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portoprcvcounters.opcode", "OpCode",                      \
      "Opcode that is counted.")                                                                                       \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_DEC, NULL, "rdma.portoprcvcounters.portselect", "PortSelect", "Port.") \
    U(uint16_t, counterselect, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portoprcvcounters.counterselect",              \
      "CounterSelect", "Counters that a Set changes.")                                                                 \
    U(uint32_t, portoprcvpkts, 32, 32, FT_UINT32, BASE_DEC, NULL, "rdma.portoprcvcounters.portoprcvpkts",              \
      "PortOpRcvPkts", "Packets received with it.")                                                                    \
    U(uint32_t, portoprcvdata, 64, 32, FT_UINT32, BASE_DEC, NULL, "rdma.portoprcvcounters.portoprcvdata",              \
      "PortOpRcvData", "Data received with it in units of 4 bytes.")

/* PortFlowCtlCounters: flow control packets sent and received, 12 bytes. */
#define FLOWCTL_FIELDS(U, A, V)                                                                                        \
    U(uint8_t, reserved, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portflowctlcounters.reserved", "Reserved", "Zero.")     \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_DEC, NULL, "rdma.portflowctlcounters.portselect", "PortSelect",        \
      "Port.")                                                                                                         \
    U(uint16_t, counterselect, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portflowctlcounters.counterselect",            \
      "CounterSelect", "Counters that a Set changes.")                                                                 \
    U(uint32_t, portxmitflowpkts, 32, 32, FT_UINT32, BASE_DEC, NULL, "rdma.portflowctlcounters.portxmitflowpkts",      \
      "PortXmitFlowPkts", "Flow control packets sent.")                                                                \
    U(uint32_t, portrcvflowpkts, 64, 32, FT_UINT32, BASE_DEC, NULL, "rdma.portflowctlcounters.portrcvflowpkts",        \
      "PortRcvFlowPkts", "Flow control packets received.")

/* PortRcvConCtrl: packets received with FECN or BECN, 12 bytes. */
#define RCVCONCTRL_FIELDS(U, A, V)                                                                                     \
    U(uint8_t, reserved, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portrcvconctrl.reserved", "Reserved", "Zero.")          \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_DEC, NULL, "rdma.portrcvconctrl.portselect", "PortSelect", "Port.")    \
    U(uint16_t, counterselect, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portrcvconctrl.counterselect",                 \
      "CounterSelect", "Counters that a Set changes.")                                                                 \
    U(uint32_t, portpktrcvfecn, 32, 32, FT_UINT32, BASE_DEC, NULL, "rdma.portrcvconctrl.portpktrcvfecn",               \
      "PortPktRcvFECN", "Packets received with FECN.")                                                                 \
    U(uint32_t, portpktrcvbecn, 64, 32, FT_UINT32, BASE_DEC, NULL, "rdma.portrcvconctrl.portpktrcvbecn",               \
      "PortPktRcvBECN", "Packets received with BECN.")

/* PortXmitConCtrl: time in congestion, 8 bytes. */
#define XMITCONCTRL_FIELDS(U, A, V)                                                                                    \
    U(uint8_t, reserved, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portxmitconctrl.reserved", "Reserved", "Zero.")         \
    U(uint8_t, portselect, 8, 8, FT_UINT8, BASE_DEC, NULL, "rdma.portxmitconctrl.portselect", "PortSelect", "Port.")   \
    U(uint16_t, counterselect, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portxmitconctrl.counterselect",                \
      "CounterSelect", "Counters that a Set changes.")                                                                 \
    U(uint32_t, portxmittimecong, 32, 32, FT_UINT32, BASE_DEC, NULL, "rdma.portxmitconctrl.portxmittimecong",          \
      "PortXmitTimeCong", "Ticks that the port was congested.")

/* All headers of this file: NAME_hdr. */
#define PERF_HDRS(X)                                                                                                   \
    X(samplescontrol)                                                                                                  \
    X(samplesresult)                                                                                                   \
    X(samplesresultext)                                                                                                \
    X(portcounters)                                                                                                    \
    X(portcountersext) X(rcverrordetails) X(xmitdiscarddetails) X(oprcv) X(flowctl) X(rcvconctrl) X(xmitconctrl)
PERF_HDRS(HDR_EXTERN)

#endif
