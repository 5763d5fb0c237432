/* layer 1 (wire): headers of InfiniBand and RoCE packets, from the LRH to the payload (IBTA volume 1, chapters 7 to
 * 9). */
#ifndef RDMATRACE_DISSECT_IB_IB_H
#define RDMATRACE_DISSECT_IB_IB_H

#include "dissect/field.h"

#define UDP_PORT_ROCEV2 4791 /* UDP destination port of RoCEv2 (annex A17; IANA) */

extern const struct vdesc opcode_desc, aeth_opcode_desc, aeth_credit_desc, aeth_timer_desc, aeth_nak_desc, lnh_desc,
    feth_plt_desc, feth_sel_desc, psn_desc, pkey_desc;

/* How the InfiniBand transport is carried. */
enum encap {
    ENCAP_NONE,   /* no InfiniBand packet */
    ENCAP_ROCEV2, /* UDP over IPv4 or IPv6 */
    ENCAP_ROCEV1, /* EtherType 0x8915 and GRH */
    ENCAP_IB,     /* native InfiniBand: LRH */
};

/*
 * Local Route Header, 8 bytes: native InfiniBand only (7.7).
 *   0        4        8        12   14  16                               32
 *   +--------+--------+--------+----+---+--------------------------------+
 *   | VL     | LVer   | SL     | r2 |LNH|          Destination LID       |
 *   +--------+--------+--------+----+---+--------------------------------+
 *   | r5 | Packet length, 4-byte words    |          Source LID            |
 *   +--------+--------------------------+--------------------------------+
 */
#define LRH_FIELDS(U, A, V)                                                                                            \
    U(uint8_t, vl, 0, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.lrh.vl", "Virtual Lane", "Virtual lane of the link.")   \
    U(uint8_t, lver, 4, 4, FT_UINT8, BASE_DEC, NULL, "infiniband.lrh.lver", "Link Version", "0 in this version.")      \
    U(uint8_t, sl, 8, 4, FT_UINT8, BASE_DEC, NULL, "infiniband.lrh.sl", "Service Level", "Service level.")             \
    U(uint8_t, resv2, 12, 2, FT_UINT8, BASE_DEC, NULL, "infiniband.lrh.reserved2", "Reserved (2 bits)", "Zero.")       \
    U(uint8_t, lnh, 14, 2, FT_UINT8, BASE_HEX, &lnh_desc, "infiniband.lrh.lnh", "Link Next Header",                    \
      "What follows: 0 raw with Ethertype, 1 raw IPv6, 2 BTH, 3 GRH and BTH.")                                         \
    U(uint16_t, dlid, 16, 16, FT_UINT16, BASE_DEC, NULL, "infiniband.lrh.dlid", "Destination Local ID",                \
      "Local identifier of the destination port.")                                                                     \
    U(uint8_t, resv5, 32, 5, FT_UINT16, BASE_DEC, NULL, "infiniband.lrh.reserved5", "Reserved (5 bits)", "Zero.")      \
    U(uint16_t, pktlen, 37, 11, FT_UINT16, BASE_DEC, NULL, "infiniband.lrh.pktlen", "Packet Length",                   \
      "Length from the LRH to the ICRC, in 4-byte words.")                                                             \
    U(uint16_t, slid, 48, 16, FT_UINT16, BASE_DEC, NULL, "infiniband.lrh.slid", "Source Local ID",                     \
      "Local identifier of the source port.")
HDR_STRUCT(lrh, LRH_FIELDS)

/*
 * Global Route Header, 40 bytes, laid out as an IPv6 header (8.3).
 *   0        4                 12                   32
 *   +--------+-----------------+--------------------+
 *   | IPVer  |  Traffic class  |     Flow label     |
 *   +--------+--------+--------+---------+----------+
 *   |  Payload length          | NxtHdr  | HopLmt   |
 *   +--------------------------+---------+----------+
 *   |                Source GID, 16 bytes           |
 *   |           Destination GID, 16 bytes           |
 *   +-----------------------------------------------+
 */
#define GRH_FIELDS(U, A, V)                                                                                            \
    U(uint8_t, ipver, 0, 4, FT_UINT8, BASE_DEC, NULL, "infiniband.grh.ipver", "IP Version", "6.")                      \
    U(uint8_t, tclass, 4, 8, FT_UINT16, BASE_DEC, NULL, "infiniband.grh.tclass", "Traffic Class", "Traffic class.")    \
    U(uint32_t, flow, 12, 20, FT_UINT32, BASE_DEC, NULL, "infiniband.grh.flowlabel", "Flow Label", "Flow label.")      \
    U(uint16_t, paylen, 32, 16, FT_UINT16, BASE_DEC, NULL, "infiniband.grh.paylen", "Payload Length",                  \
      "Bytes after the GRH up to and including the ICRC.")                                                             \
    U(uint8_t, nxthdr, 48, 8, FT_UINT8, BASE_DEC, NULL, "infiniband.grh.nxthdr", "Next Header",                        \
      "0x1b: an InfiniBand transport header follows.")                                                                 \
    U(uint8_t, hoplmt, 56, 8, FT_UINT8, BASE_DEC, NULL, "infiniband.grh.hoplmt", "Hop Limit", "Hop limit.")            \
    A(sgid, 64, 128, FT_IPV6, "infiniband.grh.sgid", "Source GID", "Global identifier of the source port.")            \
    A(dgid, 192, 128, FT_IPV6, "infiniband.grh.dgid", "Destination GID", "Global identifier of the destination port.")
HDR_STRUCT(grh, GRH_FIELDS)

#define GRH_NXTHDR_BTH 0x1b

/*
 * Base Transport Header, 12 bytes: in every transport packet (9.2).
 *   0                 8  9  10   12     16                               32
 *   +-----------------+--+--+----+------+--------------------------------+
 *   |     OpCode      |SE|M | Pad| TVer |             P_Key              |
 *   +--+--+-----------+--+--+----+------+--------------------------------+
 *   |F |B | reserved 6|            Destination QP                        |
 *   +--+--+-----------+--------------------------------------------------+
 *   |A | reserved 7   |            PSN                                   |
 *   +--+--------------+--------------------------------------------------+
 */
#define BTH_FIELDS(U, A, V)                                                                                            \
    U(uint8_t, opcode, 0, 8, FT_UINT8, BASE_DEC, &opcode_desc, "infiniband.bth.opcode", "Opcode",                      \
      "Transport service (upper 3 bits) and operation (lower 5 bits).")                                                \
    U(uint8_t, se, 8, 1, FT_BOOL, BASE_NONE, NULL, "infiniband.bth.se", "Solicited Event",                             \
      "The responder is asked to raise a completion event.")                                                           \
    U(uint8_t, migreq, 9, 1, FT_BOOL, BASE_NONE, NULL, "infiniband.bth.m", "MigReq",                                   \
      "State of path migration: 1 is 'migrated'.")                                                                     \
    U(uint8_t, padcnt, 10, 2, FT_UINT8, BASE_DEC, NULL, "infiniband.bth.padcnt", "Pad Count",                          \
      "Bytes appended to the payload to make it a multiple of 4.")                                                     \
    U(uint8_t, tver, 12, 4, FT_UINT8, BASE_DEC, NULL, "infiniband.bth.tver", "Header Version", "0 in this version.")   \
    U(uint16_t, pkey, 16, 16, FT_UINT16, BASE_DEC, &pkey_desc, "infiniband.bth.p_key", "Partition Key",                \
      "Partition; the upper bit says full member.")                                                                    \
    U(uint8_t, fecn, 32, 1, FT_BOOL, BASE_NONE, NULL, "rdma.bth.fecn", "FECN",                                         \
      "Forward explicit congestion notification; unused on RoCEv2.")                                                   \
    U(uint8_t, becn, 33, 1, FT_BOOL, BASE_NONE, NULL, "rdma.bth.becn", "BECN",                                         \
      "Backward explicit congestion notification; set in CNPs by some adapters.")                                      \
    U(uint8_t, resv6, 34, 6, FT_UINT8, BASE_DEC, NULL, "rdma.bth.reserved6", "Reserved (6 bits)", "Zero.")             \
    U(uint32_t, dqpn, 40, 24, FT_UINT24, BASE_HEX, NULL, "infiniband.bth.destqp", "Destination Queue Pair",            \
      "Queue pair that the packet is for.")                                                                            \
    U(uint8_t, ackreq, 64, 1, FT_BOOL, BASE_NONE, NULL, "infiniband.bth.a", "Acknowledge Request",                     \
      "The responder is asked to acknowledge.")                                                                        \
    U(uint8_t, resv7, 65, 7, FT_UINT8, BASE_DEC, NULL, "infiniband.bth.reserved7", "Reserved (7 bits)", "Zero.")       \
    U(uint32_t, psn, 72, 24, FT_UINT24, BASE_DEC, NULL, "infiniband.bth.psn", "Packet Sequence Number",                \
      "Sequence number of the packet; of the packet answered in ACKs.")
HDR_STRUCT(bth, BTH_FIELDS)

/*
 * Reliable Datagram Extended Transport Header, 4 bytes (9.3.1).
 *   0                 8                                                  32
 *   +-----------------+--------------------------------------------------+
 *   |    reserved     |            EE context                            |
 *   +-----------------+--------------------------------------------------+
 */
#define RDETH_FIELDS(U, A, V)                                                                                          \
    U(uint8_t, resv, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.rdeth.reserved", "Reserved", "Zero.")                       \
    U(uint32_t, eecnxt, 8, 24, FT_UINT24, BASE_DEC, NULL, "infiniband.rdeth.eecnxt", "E2E Context",                    \
      "End-to-end context at the destination.")
HDR_STRUCT(rdeth, RDETH_FIELDS)

/*
 * Datagram Extended Transport Header, 8 bytes (9.3.2).
 *   0                 8                                                  32
 *   +-----------------+--------------------------------------------------+
 *   |                           Q_Key                                    |
 *   +-----------------+--------------------------------------------------+
 *   |    reserved     |            Source QP                             |
 *   +-----------------+--------------------------------------------------+
 */
#define DETH_FIELDS(U, A, V)                                                                                           \
    U(uint32_t, qkey, 0, 32, FT_UINT64, BASE_HEX, NULL, "infiniband.deth.q_key", "Queue Key",                          \
      "Must match the destination queue pair's key.")                                                                  \
    U(uint8_t, resv, 32, 8, FT_UINT8, BASE_HEX, NULL, "rdma.deth.reserved", "Reserved", "Zero.")                       \
    U(uint32_t, srcqp, 40, 24, FT_UINT32, BASE_HEX, NULL, "infiniband.deth.srcqp", "Source Queue Pair",                \
      "Queue pair that sent the packet.")
HDR_STRUCT(deth, DETH_FIELDS)

/*
 * XRC Extended Transport Header, 4 bytes: after the BTH of every XRC request packet (annex A14).
 *   0                 8                                                  32
 *   +-----------------+--------------------------------------------------+
 *   |    reserved     |            XRCSRQ                                |
 *   +-----------------+--------------------------------------------------+
 */
#define XRCETH_FIELDS(U, A, V)                                                                                         \
    U(uint8_t, resv, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.xrceth.reserved", "Reserved", "Zero.")                      \
    U(uint32_t, srqn, 8, 24, FT_UINT24, BASE_HEX, NULL, "rdma.xrceth.srqn", "XRC Shared Receive Queue",                \
      "Shared receive queue that takes the message.")
HDR_STRUCT(xrceth, XRCETH_FIELDS)

/*
 * FLUSH Extended Transport Header, 4 bytes (annex A19; layout as in the Linux kernel's rdma_rxe and Wireshark 4.4).
 *   0                                                 26         28     32
 *   +-------------------------------------------------+----------+------+
 *   |                  reserved (26)                  | SEL (2)  | PLT 4|
 *   +-------------------------------------------------+----------+------+
 */
#define FETH_FIELDS(U, A, V)                                                                                           \
    U(uint32_t, resv, 0, 26, FT_UINT32, BASE_HEX, NULL, "infiniband.feth.reserved27", "Reserved", "Zero.")             \
    U(uint8_t, sel, 26, 2, FT_UINT8, BASE_HEX, &feth_sel_desc, "infiniband.feth.sel", "Selectivity Level",             \
      "What is flushed: 0 a range, 1 the whole memory region.")                                                        \
    U(uint8_t, plt, 28, 4, FT_UINT8, BASE_HEX, &feth_plt_desc, "infiniband.feth.plt", "Placement Type",                \
      "Bit 0: global visibility, bit 1: persistence.")
HDR_STRUCT(feth, FETH_FIELDS)

/*
 * RDMA Extended Transport Header, 16 bytes (9.3.3).
 *   0                                                                    32
 *   +--------------------------------------------------------------------+
 *   |                     Virtual address (63:32)                        |
 *   |                     Virtual address (31:0)                         |
 *   +--------------------------------------------------------------------+
 *   |                     R_Key                                          |
 *   +--------------------------------------------------------------------+
 *   |                     DMA length                                     |
 *   +--------------------------------------------------------------------+
 */
#define RETH_FIELDS(U, A, V)                                                                                           \
    U(uint64_t, va, 0, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.reth.va", "Virtual Address",                         \
      "First byte of the remote buffer.")                                                                              \
    U(uint32_t, rkey, 64, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.reth.r_key", "Remote Key",                        \
      "Key of the remote memory region.")                                                                              \
    U(uint32_t, dmalen, 96, 32, FT_UINT32, BASE_DEC, NULL, "infiniband.reth.dmalen", "DMA Length",                     \
      "Length of the whole operation in bytes.")
HDR_STRUCT(reth, RETH_FIELDS)

/*
 * Atomic Extended Transport Header, 28 bytes (9.3.5).
 *   0                                                                    32
 *   +--------------------------------------------------------------------+
 *   |                     Virtual address (64)                           |
 *   |                     R_Key                                          |
 *   |                     Swap (or add) data (64)                        |
 *   |                     Compare data (64)                              |
 *   +--------------------------------------------------------------------+
 */
#define ATOMICETH_FIELDS(U, A, V)                                                                                      \
    U(uint64_t, va, 0, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.reth.va", "Virtual Address",                         \
      "Address of the 8 remote bytes, a multiple of 8.")                                                               \
    U(uint32_t, rkey, 64, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.reth.r_key", "Remote Key",                        \
      "Key of the remote memory region.")                                                                              \
    U(uint64_t, swap, 96, 64, FT_UINT64, BASE_DEC, NULL, "infiniband.atomiceth.swapdt", "Swap (Or Add) Data",          \
      "Value to store (COMPARE & SWAP) or to add (FETCH & ADD).")                                                      \
    U(uint64_t, cmp, 160, 64, FT_UINT64, BASE_DEC, NULL, "infiniband.atomiceth.cmpdt", "Compare Data",                 \
      "Value that COMPARE & SWAP expects to find.")
HDR_STRUCT(atomiceth, ATOMICETH_FIELDS)

/* Type of an AETH: bits 6 and 5 of the syndrome (9.7.5.1.1). */
enum aeth_type {
    AETH_ACK = 0,
    AETH_RNR = 1,
    AETH_RESERVED = 2,
    AETH_NAK = 3,
};
/* Type of an AETH (enum aeth_type) from its syndrome. Bit 7 of the syndrome is reserved and ignored. */
static inline unsigned aeth_type(uint8_t syndrome)
{
    return syndrome >> 5 & 3u;
}
/* The low five bits of a syndrome: the credit code of an ACK, the timer code of an RNR NAK, or the enum nak_code of a
 * NAK. */
static inline unsigned aeth_value(uint8_t syndrome)
{
    return syndrome & 31u;
}
/* NAK codes: the low five bits of the syndrome (9.7.5.2). */
enum nak_code {
    NAK_PSN_SEQ = 0,
    NAK_INVALID_REQUEST = 1,
    NAK_REMOTE_ACCESS = 2,
    NAK_REMOTE_OPERATIONAL = 3,
    NAK_INVALID_RD_REQUEST = 4, /* the last one that is defined */
};
/* Whether a syndrome is neither ACK nor RNR NAK, nor a NAK with a code that is defined. */
static inline bool aeth_is_undefined(uint8_t syndrome)
{
    unsigned type = aeth_type(syndrome);

    return type == AETH_RESERVED || (type == AETH_NAK && aeth_value(syndrome) > NAK_INVALID_RD_REQUEST);
}
/* Name of a NAK code, the syndromes 0x60 to 0x64: "PSN sequence error", "invalid request", "remote access error"
 * (0x62), "remote operational error", "invalid RD request"; "reserved" for codes above 4. */
const char *nak_code_str(unsigned code);
/* RNR timer in ns from the timer code (0 to 31) of an RNR NAK (9.7.5.2.8): code 0 is 655.36 ms, 1 is 10 us. */
ns_t rnr_time(unsigned code);
/* End-to-end credits, in messages, from the credit code (0 to 31) of an ACK. Code 31, AETH_CREDIT_INVALID, means no
 * limit: UINT32_MAX. */
uint32_t aeth_credits(unsigned code);
#define AETH_CREDIT_INVALID 31

/* True if `n` is a path MTU in bytes: 256, 512, 1024, 2048 or 4096. */
static inline bool is_path_mtu(uint32_t n)
{
    return n >= 256 && n <= 4096 && (n & (n - 1)) == 0;
}

/* Conditions of the views below: the type of the AETH at `p`, of which `len` bytes were captured. */
bool aeth_is_ack(const uint8_t *p, uint32_t len);
bool aeth_is_rnr(const uint8_t *p, uint32_t len);
bool aeth_is_reserved(const uint8_t *p, uint32_t len);
bool aeth_is_nak(const uint8_t *p, uint32_t len);

/*
 * ACK Extended Transport Header, 4 bytes (9.3.5.3, 9.7.5.1).
 *   0  1    3        8                                                  32
 *   +--+----+--------+--------------------------------------------------+
 *   |r |type| value  |            MSN                                   |
 *   +--+----+--------+--------------------------------------------------+
 *   `----syndrome----'
 */
#define AETH_FIELDS(U, A, V)                                                                                           \
    U(uint8_t, syndrome, 0, 8, FT_UINT8, BASE_DEC, NULL, "infiniband.aeth.syndrome", "Syndrome",                       \
      "Kind of acknowledgement and its value.")                                                                        \
    V(NULL, 0, 1, FT_UINT8, BASE_DEC, NULL, "infiniband.aeth.syndrome.reserved", "Reserved", "Zero.")                  \
    V(NULL, 1, 2, FT_UINT8, BASE_DEC, &aeth_opcode_desc, "infiniband.aeth.syndrome.opcode", "OpCode",                  \
      "0 ACK, 1 RNR NAK, 3 NAK.")                                                                                      \
    V(aeth_is_ack, 3, 5, FT_UINT8, BASE_DEC, &aeth_credit_desc, "infiniband.aeth.syndrome.credit_count",               \
      "Credit Count", "Code of the end-to-end credits; 31: no limit.")                                                 \
    V(aeth_is_rnr, 3, 5, FT_UINT8, BASE_DEC, &aeth_timer_desc, "infiniband.aeth.syndrome.timer", "Timer",              \
      "Code of the time to wait before the next try.")                                                                 \
    V(aeth_is_reserved, 3, 5, FT_UINT8, BASE_DEC, NULL, "infiniband.aeth.syndrome.reserved_value", "Reserved",         \
      "Value of the reserved type.")                                                                                   \
    V(aeth_is_nak, 3, 5, FT_UINT8, BASE_DEC, &aeth_nak_desc, "infiniband.aeth.syndrome.error_code", "Error Code",      \
      "Why the request was refused.")                                                                                  \
    U(uint32_t, msn, 8, 24, FT_UINT24, BASE_DEC, NULL, "infiniband.aeth.msn", "Message Sequence Number",               \
      "Messages that the responder has completed, modulo 2^24.")
HDR_STRUCT(aeth, AETH_FIELDS)

/* Atomic ACK Extended Transport Header, 8 bytes: the value in memory before the operation (9.3.5.4). */
#define ATOMICACKETH_FIELDS(U, A, V)                                                                                   \
    U(uint64_t, orig, 0, 64, FT_UINT64, BASE_DEC, NULL, "infiniband.atomicacketh.origremdt", "Original Remote Data",   \
      "Value in memory before the atomic operation.")
HDR_STRUCT(atomicacketh, ATOMICACKETH_FIELDS)

/* Immediate data, 4 bytes, opaque to the transport (9.3.6). */
#define IMMDT_FIELDS(U, A, V)                                                                                          \
    U(uint32_t, data, 0, 32, FT_UINT32, BASE_HEX, NULL, "rdma.immdt.data", "Immediate Data",                           \
      "Value handed to the responder's completion.")
HDR_STRUCT(immdt, IMMDT_FIELDS)

/* Invalidate Extended Transport Header, 4 bytes: the R_Key to invalidate (9.3.7). */
#define IETH_FIELDS(U, A, V)                                                                                           \
    U(uint32_t, rkey, 0, 32, FT_UINT32, BASE_HEX, NULL, "rdma.ieth.r_key", "Remote Key", "Key that is invalidated.")
HDR_STRUCT(ieth, IETH_FIELDS)

/* Raw header, 4 bytes: after the LRH of a raw packet with LNH 0 (7.7). */
#define RWH_FIELDS(U, A, V)                                                                                            \
    U(uint16_t, resv, 0, 16, FT_UINT16, BASE_HEX, NULL, "rdma.rwh.reserved", "Reserved", "Zero.")                      \
    U(uint16_t, etype, 16, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.rwh.etype", "Ethertype", "What follows.")
HDR_STRUCT(rwh, RWH_FIELDS)

extern const struct hdr lrh_hdr, grh_hdr, bth_hdr, rdeth_hdr, deth_hdr, xrceth_hdr, dcceth_hdr, feth_hdr, reth_hdr,
    atomiceth_hdr, aeth_hdr, atomicacketh_hdr, immdt_hdr, ieth_hdr, ib_payload_hdr, ib_pad_hdr, icrc_hdr, vcrc_hdr,
    cnp_hdr, rwh_hdr, mrc_hdr, mrc_meth_hdr, mrc_tseth_hdr, mrc_seth_hdr, mrc_cc_hdr, mrc_neth_hdr, mrc_peth_hdr,
    mrc_erth_hdr, mrc_eeth_hdr;

#endif
