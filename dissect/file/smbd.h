/* layer 1 (wire): SMB Direct, and of the SMB2 messages inside the header, READ and WRITE; all little-endian.
 *
 * Sources: the kernel's fs/smb (client, server, common/smb2pdu.h) and captures of Linux 6.1. Names are those of MS-SMBD
 * and MS-SMB2, filter names those of tshark. */
#ifndef RDMATRACE_DISSECT_FILE_SMBD_H
#define RDMATRACE_DISSECT_FILE_SMBD_H

#include "dissect/ulp/ulp.h"

#define SMBD_NEGOTIATE_LEN          20
#define SMBD_NEGOTIATE_RESPONSE_LEN 32
#define SMBD_DATA_LEN               24 /* bytes before the data; 20 if there are none */
#define SMB2_LEN                    64 /* bytes of an SMB2 header */
#define SMB2_LEAST                  48 /* of them before the signature, which tells nothing */
#define SMB2_LEAST_RESPONSE         32 /* of a response, up to its MessageId */

/* A message of SMB Direct. A data message:
 *   0          2         4       6      8           12           16           20        24
 *   +----------+---------+-------+------+-----------+------------+------------+---------+------+
 *   | credits  | credits | flags | rsvd | remaining | data offset| data length| padding | data |
 *   |requested | granted |       |      |           |            |            |         |      |
 *   +----------+---------+-------+------+-----------+------------+------------+---------+------+
 * `remaining` bytes of the same SMB2 message follow in later messages of this sender. */
enum smbd_kind { SMBD_NEGOTIATE, SMBD_NEGOTIATE_RESPONSE, SMBD_DATA };
struct smbd {
    enum smbd_kind kind;
    uint32_t status;                /* of a negotiate response: NTSTATUS */
    uint32_t remaining, at, n_data; /* of a data message: at: first byte of the data, n_data: bytes of them */
    uint16_t granted;               /* messages that its receiver may send in addition; not of a negotiate request */
};
/* The message at `b`; false: it is none. `greeting`: it may be a negotiation; else 20 and 32 bytes are data messages.
 * `whole`: all bytes are there. */
bool smbd_get(struct smbd *m, const uint8_t *b, uint32_t len, bool greeting, bool whole);
/* A strict test of a message of one packet (`whole`), or of its first packet, of which `len` of `all` bytes were
 * captured.
 */
enum ulp_looks smbd_looks_cut(const uint8_t *b, uint32_t len, uint32_t all, bool whole);
/* Likewise of a SEND's bytes. */
enum ulp_looks smbd_looks(const uint8_t *b, uint32_t len, bool whole);

/* Commands that are read further. */
enum { SMB2_READ = 8, SMB2_WRITE = 9, SMB2_IOCTL = 11, SMB2_CANCEL = 12 };
#define SMB2_STATUS_PENDING UINT32_C(0x00000103) /* an interim response: another one follows */
#define SMB2_NO_MESSAGE     UINT64_MAX           /* MessageId of what the server sends unasked */

/* An SMB2 message; several may follow each other in a compound. */
struct smb2 {
    uint16_t command;
    bool response, async;
    uint32_t status;          /* of a response: NTSTATUS */
    uint16_t charge, credits; /* what a request takes; what it asks for, or its response grants */
    uint64_t message_id, session;
    uint32_t tree;
    uint32_t at, len;       /* in the compound; len: up to the next message or the end */
    bool cut;               /* bytes of its header or of what is read below were not captured: these are 0 */
    bool no_id, no_credits; /* MessageId and credits are among them: smb2_get_head() */
    /* of READ and WRITE */
    uint64_t offset;       /* of a request: in the file */
    uint32_t count;        /* of a request: bytes asked for; of a response: moved */
    uint32_t inside;       /* bytes of data in this message */
    uint32_t channel;      /* of a request: 0 none, 1 RDMA_V1, 2 RDMA_V1_INVALIDATE, 3 RDMA_TRANSFORM */
    uint32_t info, n_info; /* memory descriptors of a request: first byte in the compound, how many */
    bool lacks_info;       /* it has descriptors, and not all of them are there */
    uint32_t control;      /* of IOCTL: its code */
    uint32_t out, n_out;   /* of its response: the output, bytes of it that are there */
};
/* The message at byte `at` of the compound, of which `lost` bytes follow that were not captured; false: there is none
 * (an encrypted one is none either), or it was cut before SMB2_LEAST or SMB2_LEAST_RESPONSE. */
bool smb2_get(struct smb2 *s, const uint8_t *b, uint32_t len, uint32_t lost, uint32_t at);
/* Likewise the first message of a compound that was cut before these, behind its command. `by_server`: who sent it. */
#define SMB2_LEAST_HEAD 14
bool smb2_get_head(struct smb2 *s, const uint8_t *b, uint32_t len, bool by_server);
/* Where the next message of the compound begins; 0: it was the last one. */
uint32_t smb2_next(const struct smb2 *s, const uint8_t *b, uint32_t len);

/* Memory that a request offers. */
struct smb2_memory {
    uint64_t va;
    uint32_t token, len; /* token: R_Key */
};
/* Descriptor `i` (below n_info) of a request. */
struct smb2_memory smb2_memory(const struct smb2 *s, const uint8_t *b, uint32_t i);

/* "Create", "Read"; NULL: no name is known. */
const char *smb2_command_str(uint16_t command);
/* "FSCTL_PIPE_TRANSCEIVE", of an IOCTL; NULL: no name is known. */
const char *smb2_control_str(uint32_t control);
/* "STATUS_ACCESS_DENIED"; NULL: no name is known. */
const char *smb2_status_str(uint32_t status);
/* Whether a status is an error (severity 3) that ends the request without a result. */
bool smb2_is_error(uint32_t status);

/* A message of SMB Direct, and a whole compound of SMB2, as layers. */
void smbd_layers(struct pkt *p, const struct ulp_body *body, const struct smbd *m);
void smb2_layers(struct pkt *p, const struct ulp_body *compound);

/* clang-format off */
#define SMBD_HDRS(X) \
    X(smbd_negotiate) X(smbd_negotiate_response) X(smbd_data) X(smb2) X(smb2_read) \
    X(smb2_read_response) X(smb2_write) X(smb2_write_response) X(smb2_memory) X(smb2_ioctl) \
    X(smb2_interface)
/* clang-format on */
#define SMBD_DECLARE(name) extern const struct hdr name##_hdr;
SMBD_HDRS(SMBD_DECLARE)

#endif
