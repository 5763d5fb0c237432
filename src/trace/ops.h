/* layer 3 (trace): the verbs behind the packets: a row for each work request. */
#ifndef RDMATRACE_OPS_H
#define RDMATRACE_OPS_H

#include "src/trace/watch.h"
#include "src/transport/verbs.h"

#define OPS_OPEN 256 /* work requests of a flow that wait for their end; older ones are given up */

enum op_status {
    OP_OPEN,        /* not over */
    OP_DONE,        /* `wc` says how it ended */
    OP_UNANSWERED,  /* no answer in this capture */
    OP_GIVEN_UP,    /* more were outstanding than are kept */
    OP_UNRELIABLE,  /* of UC or UD: nothing tells whether it arrived */
    OP_FLUSHED,     /* behind one that failed */
};

struct op {
    uint64_t number;      /* from 1, by first packet */
    uint32_t flow, conn;
    uint8_t status;       /* enum op_status */
    uint8_t wc;           /* enum wc_status, with OP_DONE */
    uint8_t opcode;       /* of its first packet seen, lower five bits */
    uint8_t service;
    bool has_imm, has_inv, remote, whole; /* remote: va and rkey are valid; whole: its last packet was seen */
    uint32_t psn, end;    /* first PSN, and the one behind its last (valid with `whole`) */
    uint64_t bytes;
    uint64_t va;
    uint32_t rkey, imm;
    uint32_t first, last, done; /* frames: first and last packet of the request, and the one that ended it */
    ns_t ts, ts_done;
    uint32_t again;       /* packets sent again */
    uint32_t dqpn;
    struct conn_addr src, dst;
};

struct ops;
/* A work request is over. */
typedef void ops_emit(void *user, const struct op *op);

/* NULL without memory. With `follow` above 0 the packets of that work request are written to `lines`. */
struct ops *ops_new(ops_emit *emit, void *user, uint64_t follow, struct buf *lines);
void ops_free(struct ops *o);
struct conn_table *ops_conns(struct ops *o);
void ops_packet(struct ops *o, const struct pkt *p);
void ops_end(struct ops *o);

/* "SEND", "RDMA_WRITE_WITH_IMM" ... */
const char *op_name(const struct op *op);
/* "SUCCESS", "REM_ACCESS_ERR" ..., or "unknown"; and why it is unknown ("" if it is not). */
const char *op_status_text(const struct op *op);
const char *op_reason(const struct op *op);

void op_text_head(struct buf *b);
void op_text(struct buf *b, const struct op *op);
void op_json(struct buf *b, const struct op *op);
void op_csv_head(struct buf *b);
void op_csv(struct buf *b, const struct op *op);

#endif
