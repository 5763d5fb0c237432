/* layer 1 (wire): congestion control (OpenSM ib_types.h, libibmad fields.c). */
#ifndef RDMATRACE_DISSECT_MAD_CC_H
#define RDMATRACE_DISSECT_MAD_CC_H

#include "dissect/mad/mad.h"
#include "dissect/mad/repeat.h"

/*
 * Congestion control header, 8 bytes after the MAD header. A CongestionLog follows at byte 32 of the MAD, any other
 * attribute at byte 64.
 *
 *   0                                                                   64
 *   +-------------------------------------------------------------------+
 *   |                         CC_Key                                    |
 *   +-------------------------------------------------------------------+
 */
#define CCHDR_FIELDS(U, A, V)                                                                                          \
    U(uint64_t, cc_key, 0, 64, FT_UINT64, BASE_HEX, NULL, "rdma.cc.cckey", "CC_Key",                                   \
      "Key that permits congestion management.")

/* CongestionInfo: what a node supports, 3 bytes. */
#define CONGINFO_FIELDS(U, A, V)                                                                                       \
    U(uint16_t, congestioninfo, 0, 16, FT_UINT16, BASE_HEX, NULL, "rdma.congestioninfo.info", "CongestionInfo",        \
      "Congestion control abilities of the node.")                                                                     \
    U(uint8_t, controltablecap, 16, 8, FT_UINT8, BASE_DEC, NULL, "rdma.congestioninfo.controltablecap",                \
      "ControlTableCap", "Blocks of 64 entries that the congestion control table has.")

/* CongestionKeyInfo: the CC_Key and its protection, 14 bytes. */
#define CONGKEY_FIELDS(U, A, V)                                                                                        \
    U(uint64_t, cc_key, 0, 64, FT_UINT64, BASE_HEX, NULL, "rdma.congestionkeyinfo.cckey", "CC_Key", "Key.")            \
    U(uint8_t, cc_keyprotectbit, 64, 1, FT_BOOL, BASE_DEC, NULL, "rdma.congestionkeyinfo.cckeyprotectbit",             \
      "CC_KeyProtectBit", "The key is checked.")                                                                       \
    U(uint16_t, reserved, 65, 15, FT_UINT16, BASE_HEX, NULL, "rdma.congestionkeyinfo.reserved", "Reserved", "Zero.")   \
    U(uint16_t, cc_keyleaseperiod, 80, 16, FT_UINT16, BASE_DEC, NULL, "rdma.congestionkeyinfo.cckeyleaseperiod",       \
      "CC_KeyLeasePeriod", "Seconds until the protection lapses; 0: never.")                                           \
    U(uint16_t, cc_keyviolations, 96, 16, FT_UINT16, BASE_DEC, NULL, "rdma.congestionkeyinfo.cckeyviolations",         \
      "CC_KeyViolations", "Datagrams with a wrong key.")

/* Start of a CongestionLog, 2 bytes. */
#define CONGLOG_FIELDS(U, A, V)                                                                                        \
    U(uint8_t, logtype, 0, 8, FT_UINT8, BASE_HEX, &cong_log_type_desc, "rdma.congestionlog.logtype", "LogType",        \
      "1 switch, 2 channel adapter.")                                                                                  \
    U(uint8_t, congestionflags, 8, 8, FT_UINT8, BASE_HEX, NULL, "rdma.congestionlog.congestionflags",                  \
      "CongestionFlags", "Flags.")

/* CongestionLog of a switch, 38 bytes after its start; 15 entries follow. */
#define CONGLOGSW_FIELDS(U, A, V)                                                                                      \
    U(uint16_t, logeventscounter, 0, 16, FT_UINT16, BASE_DEC, NULL, "rdma.congestionlog.logeventscounter",             \
      "LogEventsCounter", "Events since the last log.")                                                                \
    U(uint32_t, currenttimestamp, 16, 32, FT_UINT32, BASE_DEC, NULL, "rdma.congestionlog.currenttimestamp",            \
      "CurrentTimeStamp", "Time of the log.")                                                                          \
    A(portmap, 48, 256, FT_BYTES, "rdma.congestionlog.portmap", "PortMap", "Ports that marked packets with FECN.")

/* Entry of a switch's CongestionLog: a marked packet, 12 bytes. */
#define CONGLOGSWENT_FIELDS(U, A, V)                                                                                   \
    U(uint16_t, slid, 0, 16, FT_UINT16, BASE_HEX, NULL, "rdma.congestionlog.slid", "SLID",                             \
      "Source of the marked packet.")                                                                                  \
    U(uint16_t, dlid, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.congestionlog.dlid", "DLID",                            \
      "Destination of the marked packet.")                                                                             \
    U(uint8_t, sl, 32, 4, FT_UINT8, BASE_DEC, NULL, "rdma.congestionlog.sl", "SL", "Service level.")                   \
    U(uint32_t, reserved, 36, 28, FT_UINT32, BASE_HEX, NULL, "rdma.congestionlog.reserved", "Reserved", "Zero.")       \
    U(uint32_t, timestamp, 64, 32, FT_UINT32, BASE_DEC, NULL, "rdma.congestionlog.timestamp", "Timestamp",             \
      "Time of the event.")

/* CongestionLog of a channel adapter, 10 bytes after its start; 13 entries follow. */
#define CONGLOGCA_FIELDS(U, A, V)                                                                                      \
    U(uint16_t, thresholdeventcounter, 0, 16, FT_UINT16, BASE_DEC, NULL, "rdma.congestionlog.thresholdeventcounter",   \
      "ThresholdEventCounter", "Events since the last log.")                                                           \
    U(uint16_t, thresholdcongestioneventmap, 16, 16, FT_UINT16, BASE_HEX, NULL,                                        \
      "rdma.congestionlog.thresholdcongestioneventmap", "ThresholdCongestionEventMap", "Service levels with events.")  \
    U(uint16_t, reserved, 32, 16, FT_UINT16, BASE_HEX, NULL, "rdma.congestionlog.reserved", "Reserved", "Zero.")       \
    U(uint32_t, currenttimestamp, 48, 32, FT_UINT32, BASE_DEC, NULL, "rdma.congestionlog.currenttimestamp",            \
      "CurrentTimeStamp", "Time of the log.")

/* Entry of a channel adapter's CongestionLog: a QP that reached its threshold, 16 bytes (layout of OpenSM). */
#define CONGLOGCAENT_FIELDS(U, A, V)                                                                                   \
    U(uint32_t, localqp, 0, 24, FT_UINT24, BASE_HEX, NULL, "rdma.congestionlog.localqp", "LocalQP",                    \
      "QP that reached its threshold.")                                                                                \
    U(uint8_t, reserved, 24, 8, FT_UINT8, BASE_HEX, NULL, "rdma.congestionlog.reserved", "Reserved", "Zero.")          \
    U(uint32_t, remoteqp, 32, 24, FT_UINT24, BASE_HEX, NULL, "rdma.congestionlog.remoteqp", "RemoteQP",                \
      "QP that it is connected to.")                                                                                   \
    U(uint8_t, sl, 56, 4, FT_UINT8, BASE_DEC, NULL, "rdma.congestionlog.sl", "SL", "Service level of the local QP.")   \
    U(uint8_t, servicetype, 60, 4, FT_UINT8, BASE_HEX, &cong_service_desc, "rdma.congestionlog.servicetype",           \
      "ServiceType", "Service type of the local QP.")                                                                  \
    U(uint16_t, remotelid, 64, 16, FT_UINT16, BASE_HEX, NULL, "rdma.congestionlog.remotelid", "RemoteLID",             \
      "LID of the remote port.")                                                                                       \
    U(uint16_t, reserved2, 80, 16, FT_UINT16, BASE_HEX, NULL, "rdma.congestionlog.reserved", "Reserved", "Zero.")      \
    U(uint32_t, timestamp, 96, 32, FT_UINT32, BASE_DEC, NULL, "rdma.congestionlog.timestamp", "Timestamp",             \
      "Time of the event.")

/* SwitchCongestionSetting, 76 bytes. */
#define SWCONG_FIELDS(U, A, V)                                                                                         \
    U(uint32_t, controlmap, 0, 32, FT_UINT32, BASE_HEX, NULL, "rdma.switchcongestionsetting.controlmap", "ControlMap", \
      "Settings that are valid.")                                                                                      \
    A(victimmask, 32, 256, FT_BYTES, "rdma.switchcongestionsetting.victimmask", "VictimMask",                          \
      "Ports that mark packets even if they are only victims.")                                                        \
    A(creditmask, 288, 256, FT_BYTES, "rdma.switchcongestionsetting.creditmask", "CreditMask",                         \
      "Ports that apply credit starvation.")                                                                           \
    U(uint8_t, threshold, 544, 4, FT_UINT8, BASE_DEC, NULL, "rdma.switchcongestionsetting.threshold", "Threshold",     \
      "How aggressively packets are marked.")                                                                          \
    U(uint8_t, reserved, 548, 4, FT_UINT8, BASE_HEX, NULL, "rdma.switchcongestionsetting.reserved", "Reserved",        \
      "Zero.")                                                                                                         \
    U(uint8_t, packetsize, 552, 8, FT_UINT8, BASE_DEC, NULL, "rdma.switchcongestionsetting.packetsize", "PacketSize",  \
      "Packets smaller than this are not marked.")                                                                     \
    U(uint8_t, cs_threshold, 560, 4, FT_UINT8, BASE_DEC, NULL, "rdma.switchcongestionsetting.csthreshold",             \
      "CS_Threshold", "How aggressively credits are withheld.")                                                        \
    U(uint16_t, reserved2, 564, 12, FT_UINT16, BASE_HEX, NULL, "rdma.switchcongestionsetting.reserved", "Reserved",    \
      "Zero.")                                                                                                         \
    U(uint16_t, cs_returndelay, 576, 16, FT_UINT16, BASE_HEX, NULL, "rdma.switchcongestionsetting.csreturndelay",      \
      "CS_ReturnDelay", "Rate at which credits return.")                                                               \
    U(uint16_t, markingrate, 592, 16, FT_UINT16, BASE_DEC, NULL, "rdma.switchcongestionsetting.markingrate",           \
      "MarkingRate", "Mean number of packets between marks.")

/* SwitchPortCongestionSetting: a block of 32 ports, 128 bytes; the attribute modifier is the number of the block. */
#define SWPORTCONG_ENTRY(U, A, V, i)                                                                                   \
    U(uint8_t, valid_##i, (i)*32, 1, FT_BOOL, BASE_DEC, NULL, "rdma.switchportcongestionsetting.valid", "Valid " #i,   \
      "The entry counts.")                                                                                             \
    U(uint8_t, controltype_##i, 1 + (i)*32, 1, FT_BOOL, BASE_DEC, NULL,                                                \
      "rdma.switchportcongestionsetting.controltype", "ControlType " #i, "0 congestion control, 1 credit starvation.") \
    U(uint8_t, reserved_##i, 2 + (i)*32, 2, FT_UINT8, BASE_HEX, NULL, "rdma.switchportcongestionsetting.reserved",     \
      "reserved " #i, "Zero.")                                                                                         \
    U(uint8_t, threshold_##i, 4 + (i)*32, 4, FT_UINT8, BASE_DEC, NULL, "rdma.switchportcongestionsetting.threshold",   \
      "Threshold " #i, "Threshold of the port.")                                                                       \
    U(uint8_t, packetsize_##i, 8 + (i)*32, 8, FT_UINT8, BASE_DEC, NULL, "rdma.switchportcongestionsetting.packetsize", \
      "PacketSize " #i, "Packets smaller than this are not marked.")                                                   \
    U(uint16_t, congparm_##i, 16 + (i)*32, 16, FT_UINT16, BASE_DEC, NULL,                                              \
      "rdma.switchportcongestionsetting.markingrate", "CongParm " #i, "Mean number of packets between marks.")
#define SWPORTCONG_FIELDS(U, A, V) REP32(SWPORTCONG_ENTRY, U, A, V)

/* CACongestionSetting: settings of a channel adapter by service level, 132 bytes. */
#define CACONG_ENTRY(U, A, V, i)                                                                                       \
    U(uint16_t, ccti_timer_##i, 32 + (i)*64, 16, FT_UINT16, BASE_DEC, NULL, "rdma.cacongestionsetting.timer",          \
      "CCTI_Timer " #i, "Time after which the table index falls by one.")                                              \
    U(uint8_t, ccti_increase_##i, 48 + (i)*64, 8, FT_UINT8, BASE_DEC, NULL, "rdma.cacongestionsetting.increase",       \
      "CCTI_Increase " #i, "Rise of the table index for a BECN.")                                                      \
    U(uint8_t, triggerthreshold_##i, 56 + (i)*64, 8, FT_UINT8, BASE_DEC, NULL, "rdma.cacongestionsetting.trigger",     \
      "TriggerThreshold " #i, "Table index at which an event is logged.")                                              \
    U(uint8_t, ccti_min_##i, 64 + (i)*64, 8, FT_UINT8, BASE_DEC, NULL, "rdma.cacongestionsetting.min", "CCTI_Min " #i, \
      "Least table index.")                                                                                            \
    U(uint32_t, reserved_##i, 72 + (i)*64, 24, FT_UINT24, BASE_HEX, NULL, "rdma.cacongestionsetting.reserved",         \
      "reserved " #i, "Zero.")
#define CACONG_FIELDS(U, A, V)                                                                                         \
    U(uint16_t, portcontrol, 0, 16, FT_UINT16, BASE_HEX, NULL, "rdma.cacongestionsetting.portcontrol", "PortControl",  \
      "How congestion is controlled at the port.")                                                                     \
    U(uint16_t, controlmap, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.cacongestionsetting.controlmap", "ControlMap",    \
      "Service levels whose entries are valid.")                                                                       \
    REP16(CACONG_ENTRY, U, A, V)

/* CongestionControlTable: a block of 64 entries, 132 bytes; the attribute modifier is the number of the block. */
#define CCTABLE_ENTRY(U, A, V, i)                                                                                      \
    U(uint8_t, shift_##i, 32 + (i)*16, 2, FT_UINT8, BASE_DEC, NULL, "rdma.congestioncontroltable.shift", "Shift " #i,  \
      "The multiplier is shifted right by this.")                                                                      \
    U(uint16_t, multiplier_##i, 34 + (i)*16, 14, FT_UINT16, BASE_DEC, NULL, "rdma.congestioncontroltable.multiplier",  \
      "Multiplier " #i, "Delay between packets in units of packet times.")
#define CCTABLE_FIELDS(U, A, V)                                                                                        \
    U(uint16_t, ccti_limit, 0, 16, FT_UINT16, BASE_DEC, NULL, "rdma.congestioncontroltable.cctilimit", "CCTI_Limit",   \
      "Last entry of the table.")                                                                                      \
    U(uint16_t, reserved, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.congestioncontroltable.reserved", "Reserved",       \
      "Zero.")                                                                                                         \
    REP64(CCTABLE_ENTRY, U, A, V)

/* TimeStamp: the clock of the node, 4 bytes. */
#define CCTIMESTAMP_FIELDS(U, A, V)                                                                                    \
    U(uint32_t, timestamp, 0, 32, FT_UINT32, BASE_DEC, NULL, "rdma.cctimestamp.timestamp", "TimeStamp",                \
      "Free running time.")

/* All headers of this file: NAME_hdr. */
#define CC_HDRS(X)                                                                                                     \
    X(cchdr)                                                                                                           \
    X(conginfo)                                                                                                        \
    X(congkey)                                                                                                         \
    X(conglog)                                                                                                         \
    X(conglogsw)                                                                                                       \
    X(conglogswent) X(conglogca) X(conglogcaent) X(swcong) X(swportcong) X(cacong) X(cctable) X(cctimestamp)
CC_HDRS(HDR_EXTERN)

#endif
