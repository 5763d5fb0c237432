/* layer 2b (ulp): what commands of SCSI keep, whichever protocol carries them. */
#ifndef RDMATRACE_ULP_SCSI_H
#define RDMATRACE_ULP_SCSI_H

#include "dissect/ulp/scsi.h"
#include "src/ulp/ulp.h"

struct scsi_task {
    uint8_t cdb[SCSI_CDB_LEN];
    uint8_t lacks;     /* bytes at the end of `cdb` that were not captured, and are 0 */
    bool no_residual;  /* `residual` was not captured */
    bool no_lun;       /* `lun` was not captured */
    uint64_t lun;      /* as on the wire */
    uint32_t residual; /* of the response: bytes not moved, or too many */
    uint8_t status;    /* of the response */
    struct scsi_sense sense;
};

/* Append " lun 0 lba 300 blocks 8"; of a CDB that was cut " lun 0"; " lun not captured". */
void scsi_task_arguments(struct buf *b, const struct scsi_task *t);
/* The values of a command for programs; `answered`: the response has a SCSI status. */
void scsi_task_values(const struct scsi_task *t, bool answered, ulp_take *take, void *user);

#endif
