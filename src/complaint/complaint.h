/* layer 3 (complaint): error messages of applications about failed connections, from logs of NCCL, UCX and perftest.
 *
 * Formats, as their programs print them and users quote them:
 *   NCCL (net_ib.cc, NVIDIA/nccl issues 1405, 1664, 1814, 2397); RCCL prints the same:
 *     [2026-03-03 12:11:38] host:1:2 [1] net_ib.cc:2453 NCCL WARN NET/IB: Got completion from peer 10.0.0.2<51161> with
 *       status=12 opcode=0 len=0 vendor err 129 (Send) localGid ::ffff:10.1.0.1 remoteGids::ffff:10.1.0.2 hca mlx5_1
 *     or with status=IBV_WC_RETRY_EXC_ERR(12), with "vendor_err=129", and, in older versions, with
 *     "with error 12, opcode 0, len 0, vendor err 129 (Recv)"; time and GIDs may be missing
 *   UCX (ib_mlx5_log.c, openucx/ucx issues 2973, 5199, 5634, 9590): the CQE's syndrome, in the next line the queue pair
 *     [host:1:0:1] ib_mlx5_log.c:177  Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15 vend 0x81 hw_synd 0/0)
 *     [host:1:0:1] ib_mlx5_log.c:177  DCI QP 0xd16 wqe[6168]: SEND s-e [rqpn 0x17de rlid 1037] [inl len 61]
 *   perftest (perftest_resources.c):
 *      Completion with error at client
 *      Failed status 12: wr_id 0 syndrom 0x81 */
#ifndef RDMATRACE_COMPLAINT_COMPLAINT_H
#define RDMATRACE_COMPLAINT_COMPLAINT_H

#include "src/conn/addr.h"

#define COMPLAINTS_MAX 64 /* different messages kept; further ones are counted */

enum complaint_by { BY_NCCL, BY_UCX, BY_PERFTEST };
/* "NCCL", "UCX", "perftest". */
const char *complaint_by_str(enum complaint_by by);

#define STATUS_UNKNOWN 255

/* An error message, and the number of messages like it. */
struct complaint {
    uint8_t by;               /* enum complaint_by */
    uint8_t status;           /* enum wc_status (src/transport/verbs.h); STATUS_UNKNOWN: not stated */
    bool have_peer;           /* peer is known */
    bool have_local;          /* gid[0] is known */
    bool have_remote;         /* gid[1] is known */
    bool have_ts;             /* ts is known */
    bool have_qpn;            /* qpn is known */
    bool have_remote_qpn;     /* remote_qpn is known */
    struct conn_addr peer;    /* address of the peer's out-of-band connection: need not be that of its adapter */
    struct conn_addr gid[2];  /* local and remote GID */
    uint32_t qpn, remote_qpn; /* local and remote QPN */
    uint32_t vendor_err;      /* vendor's error code; 0: not stated */
    char hca[32];             /* name of the adapter, "mlx5_1"; "": not stated */
    ns_t ts;                  /* of the first message, ns since 1970 */
    uint64_t line;            /* line number of the first message, from 1 */
    uint32_t times;           /* messages that differ only in their times */
};

struct complaints {
    struct complaint of[COMPLAINTS_MAX];
    uint32_t n;        /* of `of` */
    uint64_t left_out; /* messages not kept, beyond COMPLAINTS_MAX */
    uint64_t line;     /* lines read */
};

/* Read a line of a log, without its newline; bytes after the first 4096 are ignored. */
void complaint_line(struct complaints *all, const char *s, size_t len);
/* Read a log ("-": standard input) into *all, which is cleared first. 0 or a negative errno. */
int complaint_read(const char *path, struct complaints *all);
/* Whether the message may be about a connection between two addresses, in either direction: its GIDs are these, or, if
 * it states none, its peer is one of them. A message without any address matches every connection. */
bool complaint_matches(const struct complaint *c, const struct conn_addr *a, const struct conn_addr *b);
/* Whether the message names this address. */
bool complaint_names(const struct complaint *c, const struct conn_addr *a);
/* Whether it may be about requests to this queue pair: it names no queue pairs, or this one. */
bool complaint_is_about(const struct complaint *c, uint32_t qpn);
/* Append "NCCL: RETRY_EXC_ERR from peer 10.0.0.2, 10.1.0.1 to 10.1.0.2, mlx5_1 (line 12, 3 times)". */
void complaint_put(struct buf *b, const struct complaint *c);

#endif
