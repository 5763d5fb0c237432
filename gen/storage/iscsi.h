/* layer 3 (storage): what initiator and target of iSER agree on: a PDU in the making, by the rows of
 * dissect/ulp/iser.h. */
#ifndef RDMATRACE_GEN_STORAGE_ISCSI_H
#define RDMATRACE_GEN_STORAGE_ISCSI_H

#include "dissect/ulp/iser.h"
#include "dissect/ulp/layout.h"
#include "dissect/ulp/scsi.h"

#define ISCSI_HEAD      (ISER_LEN + ISCSI_LEN) /* bytes in front of the data segment */
#define ISCSI_TEXT_MAX  8192                   /* bytes of a data segment */
#define ISCSI_INITIATOR "iqn.2026-01.rdmagen:initiator"
#define ISCSI_BURST     "1048576" /* MaxBurstLength: STORAGE_SIZE_MAX */
#define SCSI_BLOCK      512

/* Operation codes of SCSI commands. */
enum {
    SCSI_TEST_UNIT_READY = 0x00,
    SCSI_INQUIRY = 0x12,
    SCSI_READ_CAPACITY = 0x25,
    SCSI_READ = 0x28,
    SCSI_WRITE = 0x2a,
    SCSI_SYNCHRONIZE_CACHE = 0x35,
    SCSI_SERVICE_ACTION_IN = 0x9e,
    SCSI_REPORT_LUNS = 0xa0,
};
#define SCSI_READ_CAPACITY_16 0x10 /* a service action */
#define SCSI_INQUIRY_LEN      36
#define SCSI_CAPACITY_LEN     8
#define SCSI_CAPACITY_16_LEN  32
#define SCSI_LUNS_LEN         16

/* Operational negotiation and full feature phase, stages of a login. */
enum { ISCSI_OPERATIONAL = 1, ISCSI_FULL_FEATURE = 3 };

/* Begin a PDU at `b`: the iSER header of a control message and a BHS of this opcode and task; the rest is zero. */
void iscsi_begin(uint8_t *b, uint8_t opcode, uint32_t itt);
/* Set a field of its BHS. */
static inline void iscsi_set(uint8_t *b, const char *name, uint64_t v)
{
    layout_set(&iscsi_hdr, b + ISER_LEN, name, v);
}
static inline uint64_t iscsi_value(const uint8_t *b, const char *name)
{
    return layout_get(&iscsi_hdr, b + ISER_LEN, name);
}
/* Append "name=value" and its zero byte to the data segment, if there is room. */
void iscsi_add_key(uint8_t *b, const char *name, const char *value);
/* Append the keys that both sides send in operational negotiation. */
void iscsi_add_keys(uint8_t *b);
/* Bytes of the message with its data segment, padded. */
uint32_t iscsi_len(const uint8_t *b);

#endif
