/* layer 1 (wire): SRP (SCSI RDMA Protocol): information units, and logins in private data of CM, all big-endian.
 *
 * Sources: the kernel's scsi/srp.h, its initiator and target, and captures of Linux 6.1. Names are those of the T10
 * standard; tshark has no fields of SRP. */
#ifndef RDMATRACE_DISSECT_ULP_SRP_H
#define RDMATRACE_DISSECT_ULP_SRP_H

#include "dissect/ulp/ulp.h"

/* Types of information units: those of an initiator, and of a target. */
enum {
    SRP_LOGIN_REQ = 0x00,
    SRP_TSK_MGMT = 0x01,
    SRP_CMD = 0x02,
    SRP_I_LOGOUT = 0x03,
    SRP_CRED_RSP = 0x41,
    SRP_AER_RSP = 0x42,
    SRP_T_LOGOUT = 0x80,
    SRP_CRED_REQ = 0x81,
    SRP_AER_REQ = 0x82,
    SRP_LOGIN_RSP = 0xc0,
    SRP_RSP = 0xc1,
    SRP_LOGIN_REJ = 0xc2,
};

/* Formats of the data descriptors of a command. */
enum { SRP_NO_DATA, SRP_DIRECT, SRP_INDIRECT, SRP_IMMEDIATE };

#define SRP_CMD_LEN 48 /* bytes of a command before additional CDB and descriptors */

/* A command:
 *   0    1         5      6       7       8     16    20    28   30          31   32    48
 *   +----+---------+------+-------+-------+-----+-----+-----+----+-----------+----+-----+------------+-------------+
 *   |0x02| ...     |format|out cnt|in cnt | tag | ... | LUN |... |  attribute|len | CDB | add. CDB   | descriptors |
 *   +----+---------+------+-------+-------+-----+-----+-----+----+-----------+----+-----+------------+-------------+
 * `format` has that of data-out in its upper and that of data-in in its lower half; `len` is that of the additional
 * CDB, in words, shifted left by two. A descriptor is an address (8), an R_Key (4) and a length (4). */
struct srp {
    uint8_t type;
    uint64_t tag;
    uint64_t lun;                 /* of a command, task management, AER_REQ */
    const uint8_t *cdb;           /* of a command: SCSI_CDB_LEN bytes */
    uint8_t format[2];            /* of a command: of data-out, of data-in */
    uint8_t count[2];             /* descriptors of an indirect list, likewise */
    uint32_t at[2];               /* where the descriptors begin, likewise */
    uint8_t function;             /* of task management */
    int32_t credits;              /* of a response or CRED_REQ: how much the request limit changes */
    uint8_t flags;                /* of a response */
    uint8_t status;               /* of a response: SCSI status */
    uint32_t residual[2];         /* of a response: of data-out, of data-in */
    uint32_t n_response, n_sense; /* of a response: bytes behind it, first response data, then sense data */
};
/* The unit at `b`. False if it is none: too short, or descriptors that go beyond `len` (`whole`: they are all bytes).
 */
bool srp_get(struct srp *s, const uint8_t *b, uint32_t len, bool whole);
/* Likewise of a command that was cut before its descriptors: `len` of its `all` bytes, at least SRP_CMD_LEAST. The
 * bytes are copied to `padded`, SRP_CMD_LEN of them, with zeros for those that are missing. */
#define SRP_CMD_LEAST 33 /* up to the first byte of the CDB */
bool srp_get_cut(struct srp *s, uint8_t *padded, const uint8_t *b, uint32_t len, uint32_t all);
/* Of a message of one packet (`whole`), or of its first packet. */
enum ulp_looks srp_looks_cut(const uint8_t *b, uint32_t len, uint32_t all, bool whole);
/* A strict test of a SEND's bytes. */
enum ulp_looks srp_looks(const uint8_t *b, uint32_t len, bool whole);
/* Whether private data of a REQ are an SRP login, of RDMA-CM (56 bytes) or of IB CM (64 bytes). */
bool srp_private_fits(const uint8_t *b, uint32_t len);

/* A piece of memory that a command offers. */
struct srp_memory {
    uint64_t va;
    uint32_t rkey, len;
};
/* Piece `i` of data-out (`way` 0) or data-in (1). False: there is none, or its descriptor is not in the unit. */
bool srp_memory(const struct srp *s, const uint8_t *b, uint32_t len, unsigned way, unsigned i, struct srp_memory *m);
/* Whether the first `len` bytes say how many bytes the command moves this way. */
bool srp_has_len(const struct srp *s, uint32_t len, unsigned way);
/* Bytes that the command moves this way; those of immediate data are in the unit. */
uint32_t srp_data_len(const struct srp *s, const uint8_t *b, uint32_t len, unsigned way);

/* "LUN Reset"; NULL: no name is known. */
const char *srp_function_str(uint8_t function);
/* "SRP_CMD"; NULL: no name is known. */
const char *srp_type_str(uint8_t type);

/* The reason of a refused login, the private data of a REJ; NULL: they are none, or it has no name. */
const char *srp_refusal_str(const struct ulp_body *body);

/* The unit as layers; private data of a REQ, REP or REJ. */
void srp_layers(struct pkt *p, const struct ulp_body *body, const struct srp *s);
void srp_private_layers(struct pkt *p, const struct ulp_body *body);

/* clang-format off */
#define SRP_HDRS(X) X(srp) X(srp_memory) X(srp_login_cm) X(srp_login)
/* clang-format on */
#define SRP_DECLARE(name) extern const struct hdr name##_hdr;
SRP_HDRS(SRP_DECLARE)

#endif
