/* layer 1 (wire): SMC-R, versions 1 and 2: CLC messages in the TCP connection, LLC and CDC messages in SENDs;
 * big-endian.
 *
 * Sources: the kernel's net/smc, RFC 7609 as far as the kernel follows it, and captures of Linux 6.1. Filter names are
 * those of tshark. Linux writes the lengths of version 2 of LLC in the order of its CPU. */
#ifndef RDMATRACE_DISSECT_SOCKET_SMC_H
#define RDMATRACE_DISSECT_SOCKET_SMC_H

#include "dissect/ulp/ulp.h"

#define SMC_LEN 44 /* bytes of an LLC message of version 1, and of a CDC message */

/* --- CLC -------------------------------------------------------------------------------------- */

#define SMC_CLC_FIRST 0xe2 /* first byte of each CLC message */
enum { SMC_PROPOSAL = 1, SMC_ACCEPT = 2, SMC_CONFIRM = 3, SMC_DECLINE = 4 };

/* What Accept (of the server) and Confirm (of the client) of SMC-R say, from byte 38 on:
 *   38    41     45    46      50         51   52          60   61    64
 *   +-----+------+-----+-------+----------+----+-----------+----+-----+
 *   | QPN | rkey |index| token | size, MTU|rsvd|  address  |rsvd| PSN |
 *   +-----+------+-----+-------+----------+----+-----------+----+-----+ */
#define SMC_END_LEN 26
struct smc_end {
    uint32_t qpn, rkey, token, psn;
    uint32_t size; /* of the RMB element, bytes: 2 to the 14 and up */
    uint32_t mtu;  /* bytes */
    uint64_t va;   /* of the RMB element: its index, from 1, says which of the RMB it is */
};
/* `b` has SMC_END_LEN bytes. */
void smc_end_get(struct smc_end *e, const uint8_t *b);
/* The type of the CLC message at `b`; 0: there is none, or not all of it. */
unsigned smc_clc_type(const uint8_t *b, uint32_t len);
/* Whether this message, whose type is known, is about SMC-R; SMC-D uses the same messages. A Decline does not say. */
bool smc_clc_is_rdma(const uint8_t *b);
/* Accept or Confirm of SMC-R at `b` that sets up a link: where its SMC_END_LEN bytes are, and its GID (16 bytes); NULL:
 * it is another message. */
const uint8_t *smc_clc_end(const uint8_t *b, uint32_t len, const uint8_t **gid);
/* The message in a TCP segment as a layer. */
void smc_clc_layers(struct pkt *p, const struct ulp_body *body);

/* --- LLC and CDC ------------------------------------------------------------------------------ */

#define SMC_CDC 0xfe
enum {
    SMC_CONFIRM_LINK = 0x01,
    SMC_ADD_LINK = 0x02,
    SMC_ADD_LINK_CONT = 0x03,
    SMC_DELETE_LINK = 0x04,
    SMC_REQUEST_ADD_LINK = 0x05,
    SMC_CONFIRM_RKEY = 0x06,
    SMC_TEST_LINK = 0x07,
    SMC_CONFIRM_RKEY_CONT = 0x08,
    SMC_DELETE_RKEY = 0x09,
};

/* A cursor: how often the ring wrapped, and the byte in it. */
struct smc_cursor {
    uint16_t wrap;
    uint32_t count;
};
struct smc {
    uint8_t type;  /* SMC_CDC, or that of version 1: a message of version 2 has its type without 0x20 */
    bool v2;       /* of LLC */
    bool response; /* of LLC: it answers */
    bool refused;  /* of a response: Add Link was rejected, an RKey was not confirmed or deleted */
    bool has_link; /* of LLC: it has a link number, */
    uint8_t link;  /* which is this; else 0 */
    uint32_t rkey; /* of Confirm RKey: of the memory on this link; of Delete RKey: the first one */
    uint8_t rkeys; /* of Delete RKey: how many it names */
    uint64_t va;
    uint32_t token; /* of CDC: of the RMB element of its receiver */
    struct smc_cursor producer, consumer;
    bool failover;   /* of CDC: it only says where the ring is written, on a link that takes over from another one */
    bool blocked;    /* of CDC: its sender has more to write, and the ring has no room */
    uint8_t closing; /* of CDC: flags of the state of the connection: 80 sending done, 40 closed, 20 abnormal */
};
/* The message at `b`; false: it is none. */
bool smc_get(struct smc *m, const uint8_t *b, uint32_t len);
/* A strict test of a SEND's bytes. One CDC message or one Confirm Link is enough; of Confirm Link the server sends the
 * request, the client the response. Of other messages two are needed. CDC, and those of LLC that both ends send,
 * do not say which end is the client. */
enum ulp_looks smc_looks(const uint8_t *b, uint32_t len, bool whole);
/* Memory of the sender of Add Link of version 2, or of Add Link Continuation: its R_Keys on the link that carries the
 * message and on the new one, and its address on the new one. Linux writes their number in version 2 in the order of
 * its CPU; a continuation has two at most, and says how many are left. */
struct smc_rkey {
    uint32_t rkey, rkey_new;
    uint64_t va;
};
#define SMC_RKEY_LEN 16
#define SMC_RKEYS_AT 72 /* in Add Link of version 2 */
#define SMC_CONT_AT  8  /* in Add Link Continuation */
/* Those in the message at `b`, none if it is another one. */
unsigned smc_rkeys(const uint8_t *b, uint32_t len);
/* Number `i` of them. */
void smc_rkey_get(struct smc_rkey *r, const uint8_t *b, unsigned i);
#define SMC_DELETED_AT 8 /* R_Keys of Delete RKey */
/* The R_Keys that Delete RKey names: how many; number `i` of them. */
unsigned smc_deleted(const uint8_t *b, uint32_t len);
uint32_t smc_deleted_rkey(const uint8_t *b, unsigned i);
/* The same memory on other links, of Confirm RKey or its continuation: how many; number `i` of them. A continuation is
 * of the Confirm RKey before it, and says how many links are left. */
struct smc_other {
    uint8_t link;
    uint32_t rkey;
    uint64_t va;
};
unsigned smc_others(const uint8_t *b, uint32_t len);
void smc_other_get(struct smc_other *o, const uint8_t *b, unsigned i);
/* The sender's end of a link, of Add Link (the new one) and Confirm Link (that of the message); false: another message.
 */
struct smc_new_end {
    uint32_t qpn;
    const uint8_t *gid;
};
bool smc_new_end_get(struct smc_new_end *e, const uint8_t *b, uint32_t len);
/* "Confirm Link"; NULL: no name is known. `type`: as in struct smc. */
const char *smc_type_str(uint8_t type);

void smc_layers(struct pkt *p, const struct ulp_body *body, const struct smc *m);

/* smc_d.c: layers of a Proposal of version 1: what it says of SMC-D, and IP prefixes; of one of version 2, whose values
 * begin at byte `v2`: what it says of SMC-D; of Accept or Confirm of SMC-D. */
void smc_subnet_layers(struct pkt *p, const struct ulp_body *m);
void smc_seid_layers(struct pkt *p, const struct ulp_body *m, uint32_t v2);
void smc_end_d_layers(struct pkt *p, const struct ulp_body *m, bool accept);
/* Operating systems. */
extern const struct vdesc smc_system_desc;

/* clang-format off */
#define SMC_HDRS(X) \
    X(smc_clc) X(smc_proposal) X(smc_proposal_v2) X(smc_eid) X(smc_accept) X(smc_confirm) \
    X(smc_decline) X(smc_llc) X(smc_rkey) X(smc_cdc) X(smc_subnet) X(smc_prefix) X(smc_ism) \
    X(smc_seid) X(smc_accept_d) X(smc_confirm_d)
/* clang-format on */
#define SMC_DECLARE(name) extern const struct hdr name##_hdr;
SMC_HDRS(SMC_DECLARE)

#endif
