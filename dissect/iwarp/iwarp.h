/* layer 1 (wire): iWARP: MPA, DDP and RDMAP, which carry RDMA over TCP: all big-endian.
 *
 *   TCP stream: MPA request | MPA reply, then FPDUs: | ULPDU length (2) | ULPDU | pad to 4 | CRC32c (4) |
 *   ULPDU: DDP and RDMAP headers, payload; with markers: 4 bytes every 512 bytes of the stream, wherever that is
 *
 * Sources: the kernel's drivers/infiniband/sw/siw (iwarp.h, siw_cm.c), captures of Linux 6.1 (siw) and of two adapters;
 * the documents are RFC 5044 (MPA), 6581 (revision 2), 5041 (DDP), 5040 (RDMAP), 7306 (atomics, immediate data). Filter
 * names are those of tshark. Bytes that do not fit never make a packet malformed. */
#ifndef RDMATRACE_DISSECT_IWARP_IWARP_H
#define RDMATRACE_DISSECT_IWARP_IWARP_H

#include "dissect/ulp/ulp.h"

/* --- MPA -------------------------------------------------------------------------------------- */

#define MPA_START_LEN    20    /* bytes of a request or reply before its private data */
#define MPA_PRIVATE_MAX  512   /* bytes of private data */
#define MPA_MARKER_LEN   4     /* reserved (2), FPDU pointer (2) */
#define MPA_MARKER_EVERY 512   /* bytes of the stream from one marker to the next */
#define MPA_LENGTH_LEN   2     /* the ULPDU length */
#define MPA_CRC_LEN      4     /* always there, also if no CRC was negotiated */
#define MPA_FPDU_MAX     65544 /* bytes of an FPDU without markers: a ULPDU of 65535 bytes */

/* How a stream begins. */
enum mpa_key { MPA_OTHER, MPA_PART, MPA_REQUEST, MPA_REPLY }; /* MPA_PART: fewer bytes than the key, but they fit */
enum mpa_key mpa_key_of(const uint8_t *b, uint32_t len);

/* A request or reply:
 *   0                        16      17         18             20
 *   +------------------------+-------+----------+--------------+--------------+
 *   | key (16 characters)    | flags | revision | private data | private data |
 *   |                        |       |          | length       |              |
 *   +------------------------+-------+----------+--------------+--------------+
 * In revision 2 with the enhanced flag the private data begin with IRD and ORD (2 bytes each). */
struct mpa_start {
    bool reply;
    bool markers;  /* its sender wants to receive markers */
    bool crc;      /* its sender wants CRCs, in both directions */
    bool rejected; /* of a reply: the connection is refused */
    bool enhanced; /* of revision 2: IRD and ORD follow */
    uint8_t revision;
    uint16_t private_len; /* as the header states */
    uint16_t ird, ord;    /* with `enhanced`: the words with their flags, MPA_V2_* */
};
#define MPA_V2_DEPTH 0x3fff /* of ird and ord: READs */
/* Of ird: the connection begins with a message of the initiator; it may be a SEND of no bytes. Of ord: it may be a
 * WRITE, a READ, of no bytes. */
#define MPA_V2_PEER_TO_PEER 0x8000
#define MPA_V2_RTR_SEND     0x4000
#define MPA_V2_RTR_WRITE    0x8000
#define MPA_V2_RTR_READ     0x4000
/* False if these are not the first bytes of a request or reply, or fewer than MPA_START_LEN. */
bool mpa_start_get(struct mpa_start *m, const uint8_t *b, uint32_t len);
/* Append "request markers CRC revision 2 IRD 4 ORD 4 private data 20". */
void mpa_start_text(struct buf *b, const struct mpa_start *m);

/* Bytes of an FPDU, CRC included, by its ULPDU length. */
static inline uint32_t mpa_fpdu_len(uint16_t ulpdu)
{
    return ((MPA_LENGTH_LEN + (uint32_t)ulpdu + 3) & ~UINT32_C(3)) + MPA_CRC_LEN;
}
/* The CRC32c of `len` bytes, as the FPDU carries it (its 4 bytes read as big-endian). */
uint32_t mpa_crc(const uint8_t *b, uint32_t len);
/* The same piece by piece: the state at first; with `len` more bytes; the CRC that it is. */
uint32_t mpa_crc_begin(void);
uint32_t mpa_crc_add(uint32_t state, const uint8_t *b, uint32_t len);
uint32_t mpa_crc_end(uint32_t state);

/* --- DDP and RDMAP ---------------------------------------------------------------------------- */

enum rdmap_opcode {
    RDMAP_WRITE,
    RDMAP_READ_REQUEST,
    RDMAP_READ_RESPONSE,
    RDMAP_SEND,
    RDMAP_SEND_INV,
    RDMAP_SEND_SE,
    RDMAP_SEND_SE_INV,
    RDMAP_TERMINATE,
    RDMAP_IMMEDIATE,
    RDMAP_IMMEDIATE_SE,
    RDMAP_ATOMIC_REQUEST,
    RDMAP_ATOMIC_RESPONSE,
    RDMAP_OPCODES
};
/* Queues of untagged messages. */
enum { DDP_QN_SEND, DDP_QN_REQUEST, DDP_QN_TERMINATE, DDP_QN_ATOMIC_RESPONSE, DDP_QUEUES };

#define DDP_TAGGED_LEN   14
#define DDP_UNTAGGED_LEN 18

/* The headers of a ULPDU:
 *   0          1          2                                       14     18
 *   +----------+----------+------------------+--------------------+
 *   | T L r DV | RV r  op | STag (4)         | offset (8)         |          T: tagged
 *   +----------+----------+------------------+--------+-----------+------+
 *   | T L r DV | RV r  op | invalidated STag | queue  | MSN       | MO   |   untagged
 *   +----------+----------+------------------+--------+-----------+------+ */
struct ddp {
    bool tagged, last;              /* last: the last segment of its message */
    uint8_t version, rdmap_version; /* both 1 */
    uint8_t reserved;               /* reserved bits of both bytes: 0 */
    uint8_t opcode;                 /* enum rdmap_opcode, or a value that is not defined */
    uint32_t stag;                  /* tagged: of the memory that the payload goes to */
    uint64_t to;                    /* tagged: offset there */
    uint32_t inval;                 /* untagged: STag to invalidate, in two of the opcodes */
    uint32_t qn, msn, mo;           /* untagged: queue, number of the message from 1, offset in it */
    uint32_t head;                  /* bytes of the headers */
};
/* False if the headers do not fit into `len` bytes. */
bool ddp_get(struct ddp *d, const uint8_t *b, uint32_t len);
/* What contradicts the documents in the headers of a ULPDU with `payload` bytes behind them: the version, the opcode,
 * a buffer model or queue that the opcode does not have, too few bytes. DDP_RIGHT: nothing. */
enum ddp_wrong { DDP_RIGHT, DDP_VERSION, DDP_RDMAP_VERSION, DDP_OPCODE, DDP_MODEL, DDP_QUEUE, DDP_SHORT };
enum ddp_wrong ddp_check(const struct ddp *d, uint32_t payload);
/* "RDMA WRITE", "SEND with Invalidate"; NULL: not defined. */
const char *rdmap_opcode_str(unsigned opcode);
extern const struct vdesc rdmap_opcode_desc;

#define RDMAP_READ_LEN            28 /* payload of a READ request */
#define RDMAP_ATOMIC_REQUEST_LEN  52
#define RDMAP_ATOMIC_RESPONSE_LEN 12
#define RDMAP_IMMEDIATE_LEN       8

/* The payload of a READ request: sink STag (4), sink offset (8), size (4), source STag (4), source offset (8). */
struct rdmap_read {
    uint32_t sink_stag, size, source_stag;
    uint64_t sink_to, source_to;
};
void rdmap_read_get(struct rdmap_read *r, const uint8_t *b);

/* The payload of an atomic request: opcode (4), request identifier (4), STag (4), offset (8), data to add or swap (8),
 * mask (8), data to compare (8), mask (8). */
struct rdmap_atomic {
    uint8_t opcode; /* 0 FetchAdd, 1 Swap, 2 CmpSwap */
    uint32_t id, stag;
    uint64_t to;
};
void rdmap_atomic_get(struct rdmap_atomic *a, const uint8_t *b);

/* --- Terminate -------------------------------------------------------------------------------- */

enum { TERM_RDMAP, TERM_DDP, TERM_MPA };

/* The payload of a Terminate: layer (4 bits), type (4), code (8), M, D, R (1 each), reserved (13), then with M the
 * length of the segment that was refused (2), with D its DDP header, with R its RDMAP header.
 *
 * The kernel's siw writes the bit fields in the order of its CPU: on a little-endian one the layer is in the lower four
 * bits, and M, D and R are the lowest bits of the third byte. */
struct rdmap_terminate {
    uint8_t layer, type, code;
    bool m, d, r;
    bool swapped;                                  /* read in siw's order */
    uint16_t segment_len;                          /* with `m`; siw's is not reliable */
    uint32_t ddp_at, ddp_len, rdmap_at, rdmap_len; /* the headers in the payload; lengths 0: not there */
};
/* False if there are fewer than 4 bytes. */
bool rdmap_terminate_get(struct rdmap_terminate *t, const uint8_t *b, uint32_t len);
/* "RDMAP", "DDP", "MPA"; the type; the code: never NULL. */
const char *term_layer_str(unsigned layer);
const char *term_type_str(unsigned layer, unsigned type);
const char *term_code_str(unsigned layer, unsigned type, unsigned code);
/* Append "RDMAP: remote protection error: invalid STag". */
void rdmap_terminate_text(struct buf *b, const struct rdmap_terminate *t);

/* --- Layers ----------------------------------------------------------------------------------- */

/* A request or reply. */
void mpa_start_layers(struct pkt *p, const struct ulp_body *m);
/* An FPDU without its markers; `crc`: a CRC was negotiated. */
void mpa_fpdu_layers(struct pkt *p, const struct ulp_body *m, bool crc);
/* A marker of an FPDU. */
void mpa_marker_layer(struct pkt *p, const struct ulp_body *m);

/* clang-format off */
#define IWARP_HDRS(X) \
    X(mpa_request) X(mpa_reply) X(mpa_v2) X(mpa_fpdu) X(mpa_fpdu_crc) X(mpa_marker) \
    X(ddp_tagged) X(ddp_untagged) X(rdmap_tagged) X(rdmap_untagged) X(rdmap_read) X(rdmap_terminate) \
    X(rdmap_terminate_siw) X(rdmap_atomic) X(rdmap_atomic_answer) X(rdmap_immediate) X(rdmap_payload)
/* clang-format on */
#define IWARP_DECLARE(name) extern const struct hdr name##_hdr;
IWARP_HDRS(IWARP_DECLARE)

#endif
