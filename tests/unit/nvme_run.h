/* layer 2b tests: commands and completions of NVMe over RDMA as packets of a run. */
#ifndef RDMATRACE_TEST_NVME_RUN_H
#define RDMATRACE_TEST_NVME_RUN_H

#include "dissect/ulp/nvme.h"
#include "le.h"
#include "tests/unit/ulp_run.h"

#define RKEY 0x1234
#define VA   UINT64_C(0xffff888000001000)

/* A command; `sgl` is the last byte of its descriptor: 0x40 keyed, 1 in the capsule. */
static inline const uint8_t *sqe(uint8_t opc, uint16_t cid, uint8_t sgl, uint32_t len)
{
    static uint8_t b[NVME_SQE_LEN];

    memset(b, 0, sizeof b);
    b[0] = opc;
    b[1] = 0x40;
    store_le(b + 2, 2, cid);
    store_le(b + 4, 4, 1);
    b[39] = sgl;
    if (sgl == 1) {
        store_le(b + 32, 4, len);
    } else {
        store_le(b + 24, 8, VA);
        store_le(b + 32, 3, len);
        store_le(b + 35, 4, RKEY);
    }
    store_le(b + 40, 8, 300);
    store_le(b + 48, 2, 7);
    return b;
}

static inline struct pkt *command(struct run *r, uint32_t psn, uint8_t opc, uint16_t cid, uint32_t len)
{
    return put(r, HOST, OP_SEND_ONLY, psn, NULL, 0, sqe(opc, cid, 0x40, len), NVME_SQE_LEN);
}

/* A command, acknowledged: its PSN pairs the two flows. */
static inline struct pkt *acked(struct run *r, uint32_t psn, uint8_t opc, uint16_t cid, uint32_t len)
{
    static struct pkt first;
    static char text[128];
    uint8_t ack[4] = {0x1f, 0, 0, 1};

    first = *command(r, psn, opc, cid, len);
    snprintf(text, sizeof text, "%s", first.note.have & NOTE_ULP ? first.note.ulp : "");
    first.note.ulp = text;
    put(r, TARGET, OP_ACKNOWLEDGE, psn, ack, 4, NULL, 0);
    return &first;
}

static inline struct pkt *completion(struct run *r, uint32_t psn, uint16_t cid, uint16_t status)
{
    uint8_t b[NVME_CQE_LEN] = {0};

    store_le(b + 12, 2, cid);
    store_le(b + 14, 2, (uint64_t)status << 1);
    return put(r, TARGET, OP_SEND_ONLY, psn, NULL, 0, b, sizeof b);
}

#endif
