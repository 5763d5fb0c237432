/* layer 1 (wire): iSER (iSCSI Extensions for RDMA) and the iSCSI PDUs inside, all big-endian.
 *
 * Sources: the kernel's scsi/iser.h, scsi/iscsi_proto.h and its initiator and target, and captures of Linux 6.1. Names
 * are those of RFC 7143 and RFC 7145, filter names those of tshark. There are no digests over RDMA. */
#ifndef RDMATRACE_DISSECT_ULP_ISER_H
#define RDMATRACE_DISSECT_ULP_ISER_H

#include "dissect/ulp/ulp.h"

#define ISER_LEN  28 /* bytes of the iSER header */
#define ISCSI_LEN 48 /* bytes of the basic header segment that follows */

/* Kinds of iSER messages. */
enum { ISER_CONTROL = 1, ISER_HELLO = 2, ISER_HELLO_REPLY = 3 };

/* Opcodes: those of an initiator, and of a target. */
enum {
    ISCSI_NOP_OUT = 0x00,
    ISCSI_COMMAND = 0x01,
    ISCSI_TASK_MANAGEMENT = 0x02,
    ISCSI_LOGIN = 0x03,
    ISCSI_TEXT = 0x04,
    ISCSI_DATA_OUT = 0x05,
    ISCSI_LOGOUT = 0x06,
    ISCSI_SNACK = 0x10,
    ISCSI_NOP_IN = 0x20,
    ISCSI_RESPONSE = 0x21,
    ISCSI_TASK_MANAGEMENT_RESPONSE = 0x22,
    ISCSI_LOGIN_RESPONSE = 0x23,
    ISCSI_TEXT_RESPONSE = 0x24,
    ISCSI_DATA_IN = 0x25,
    ISCSI_LOGOUT_RESPONSE = 0x26,
    ISCSI_R2T = 0x31,
    ISCSI_ASYNC = 0x32,
    ISCSI_REJECT = 0x3f,
};
#define ISCSI_NO_TAG UINT32_C(0xffffffff)

/* The iSER header:
 *   0      1           4           8                   16          20                  28
 *   +------+-----------+-----------+-------------------+-----------+-------------------+
 *   |flags | reserved  |write STag | write base offset | read STag | read base offset  |
 *   +------+-----------+-----------+-------------------+-----------+-------------------+
 * Flags: kind 7:4, WSV 3 (the write STag is valid: the target READs there), RSV 2 (the read STag is: it WRITEs there).
 *
 * and what is read of the PDU: opcode (6 bits) at byte 0, flags, length of the additional header segments in words at
 * byte 4, of the data segment at byte 5 (3 bytes), LUN at byte 8, initiator task tag at byte 16. */
struct iser {
    uint8_t kind;
    bool wsv, rsv;
    uint32_t write_stag, read_stag;
    uint64_t write_va, read_va;
    /* of a control message */
    uint8_t opcode, flags;
    uint64_t lun;
    uint32_t itt, ttt;     /* initiator and target task tag; ttt only where the opcode has one */
    uint32_t expected;     /* of a command: bytes that it moves */
    uint32_t read;         /* of a command of both directions: bytes to the initiator, from its AHS; else 0 */
    const uint8_t *cdb;    /* of a command: SCSI_CDB_LEN bytes */
    uint16_t status;       /* of a response: see iser_status_text() */
    uint32_t residual;     /* of a SCSI response: bytes */
    uint32_t data, n_data; /* the data segment: first byte in the message, bytes as its length says, without padding */
};
/* The message at `b`. False if it is none: too short, or lengths that do not fit into `len` bytes (`whole`: they are
 * all).
 */
bool iser_get(struct iser *m, const uint8_t *b, uint32_t len, bool whole);
/* Likewise of one that was cut in its BHS: `len` of its `all` bytes, at least ISER_LEAST. The bytes are copied to
 * `padded`, ISER_LEN + ISCSI_LEN of them, with zeros for those that are missing. */
#define ISER_LEAST (ISER_LEN + 4) /* up to the status of a response */
bool iser_get_cut(struct iser *m, uint8_t *padded, const uint8_t *b, uint32_t len, uint32_t all);
/* Of a message of one packet (`whole`), or of its first packet. */
enum ulp_looks iser_looks_cut(const uint8_t *b, uint32_t len, uint32_t all, bool whole);
/* A strict test of a SEND's bytes. */
enum ulp_looks iser_looks(const uint8_t *b, uint32_t len, bool whole);
/* Whether private data of a REQ may be those of iSER: a byte with two flags, and zeros. */
bool iser_private_fits(const uint8_t *b, uint32_t len);
/* Bytes of the data segment that are there. */
struct ulp_body iser_data(const struct iser *m, const struct ulp_body *body);

/* A key of login and text negotiation. */
struct iscsi_key {
    uint32_t at, len; /* "Name=value" in the message, without the zero byte at its end */
};
/* A walk over the keys of a data segment; begin with *at = 0. False: there are no more. */
bool iscsi_next_key(const struct ulp_body *data, uint32_t *at, struct iscsi_key *k);

/* "Login", "NOP-In", "Task Management"; NULL: no name is known. */
const char *iscsi_opcode_str(uint8_t opcode);
/* "Abort Task"; NULL: no name is known. */
const char *iscsi_function_str(uint8_t function);
/* What a response to a request of this opcode says: status as in struct iser (Login: class and detail; Reject:
 * ISER_REJECTED | reason; else the code). Append "Success". */
#define ISER_REJECTED 0xff00
void iser_status_text(struct buf *b, uint8_t opcode, uint16_t status);

/* The message as layers; one that was cut in its BHS. */
void iser_layers(struct pkt *p, const struct ulp_body *body, const struct iser *m);
void iser_cut_layers(struct pkt *p, const struct ulp_body *body);
/* Private data of a REQ or REP. */
void iser_private_layers(struct pkt *p, const struct ulp_body *body);

/* clang-format off */
#define ISER_HDRS(X) X(iser) X(iser_private) X(iscsi) X(iscsi_key) X(iscsi_immediate) X(iscsi_ping)
/* clang-format on */
#define ISER_DECLARE(name) extern const struct hdr name##_hdr;
ISER_HDRS(ISER_DECLARE)

#endif
