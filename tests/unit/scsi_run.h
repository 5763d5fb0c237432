/* layer 2b tests: what a host and a target of SCSI over RDMA say. */
#ifndef RDMATRACE_TESTS_SCSI_RUN_H
#define RDMATRACE_TESTS_SCSI_RUN_H

#include "dissect/ulp/scsi.h"
#include "tests/unit/ulp_run.h"

#define RKEY 0x1234
#define VA   UINT64_C(0xffff888000001000)

static const uint8_t read10[SCSI_CDB_LEN] = {0x28, 0, 0, 0, 1, 0x2c, 0, 0, 8};
static const uint8_t write10[SCSI_CDB_LEN] = {0x2a, 0, 0, 0, 1, 0x2c, 0, 0, 24};

/* A message in the making. */
struct pdu {
    uint8_t b[1024];
    unsigned len;
};

static inline struct pkt *say(struct run *r, unsigned from, uint32_t psn, const struct pdu *p)
{
    return put(r, from, OP_SEND_ONLY, psn, NULL, 0, p->b, p->len);
}

/* What the host says first. */
static inline const char *first(struct run *r, const struct pdu *p)
{
    return acknowledged(r, say(r, HOST, 5, p));
}

#endif
