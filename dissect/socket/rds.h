/* layer 1 (wire): RDS (Reliable Datagram Sockets) over RDMA: its messages and private data, big-endian.
 *
 * Source: the kernel's net/rds (rds.h, ib_recv.c, rds_single_path.h, ib_cm.c); no capture was at hand. tshark has no
 * fields of it.
 *
 * Each SEND has a header; a datagram of more than 4,096 bytes is several SENDs, whose headers differ in `ack` and
 * credits only:
 *    0          8          16      20    22    24    25     26        30     32
 *   +----------+----------+-------+-----+-----+-----+------+---------+------+----------------+
 *   | sequence | ack      | bytes | from| to  |flags|credit| 0 (4)   | sum  | extensions (16)|
 *   | (8)      | (8)      | (4)   | port| port|     |      |         |      |                |
 *   +----------+----------+-------+-----+-----+-----+------+---------+------+----------------+ */
#ifndef RDMATRACE_DISSECT_SOCKET_RDS_H
#define RDMATRACE_DISSECT_SOCKET_RDS_H

#include "dissect/ulp/ulp.h"

#define RDS_LEN      48
#define RDS_FRAGMENT 4096 /* bytes of a datagram in a SEND, at most */
#define RDS_EXT_LEN  16

enum { RDS_FLAG_MAP = 1, RDS_FLAG_ACK = 2, RDS_FLAG_AGAIN = 4 };

struct rds {
    uint64_t seq;          /* number of the datagram */
    uint64_t ack;          /* of the latest one that its sender has received */
    uint32_t bytes;        /* of the whole datagram */
    uint16_t sport, dport; /* both 0, and no bytes: nothing but `ack` */
    uint8_t flags;         /* RDS_FLAG_* */
    uint8_t credit;        /* SENDs that the receiver may post in addition; 0: no more, or no flow control */
};
/* Extensions of a header. */
struct rds_ext {
    bool freed; /* `rkey` was used and is given up */
    bool dest;  /* `rkey` and `offset` name memory of the sender for an RDMA operation of the receiver */
    uint32_t rkey, offset;
};

/* False: fewer than RDS_LEN bytes, reserved ones that are not 0, a wrong checksum, or more bytes than its datagram. */
bool rds_get(struct rds *r, const uint8_t *b, uint32_t len);
void rds_ext_get(struct rds_ext *x, const uint8_t *b);
/* The same as a strict test: either end may be the client. */
enum ulp_looks rds_looks(const uint8_t *b, uint32_t len, bool whole);
/* Private data of a REQ or REP: with IPv4 addresses 28 bytes, with IPv6 ones 52. Version 3.1 or 4.1. */
bool rds_private_fits(const uint8_t *b, uint32_t len);

void rds_layers(struct pkt *p, const struct ulp_body *body);
void rds_private_layers(struct pkt *p, const struct ulp_body *body);
void rds_reject_layers(struct pkt *p, const struct ulp_body *body);

/* clang-format off */
#define RDS_HDRS(X) X(rds) X(rds_ext_version) X(rds_ext_rdma) X(rds_ext_dest) X(rds_ext_paths) X(rds_ext_gen) \
    X(rds_cm) X(rds_cm6) X(rds_rej)
/* clang-format on */
#define RDS_DECLARE(name) extern const struct hdr name##_hdr;
RDS_HDRS(RDS_DECLARE)

#endif
