/* layer 2b (ulp): commands of SCSI, whichever protocol carries them: their text and values. */
#include "src/ulp/scsi.h"

#include <stdio.h>

static bool has_arguments(const struct scsi_task *t)
{
    return t->lacks < SCSI_CDB_LEN && t->lacks + scsi_cdb_needs(t->cdb[0]) <= SCSI_CDB_LEN;
}

void scsi_task_arguments(struct buf *b, const struct scsi_task *t)
{
    if (t->no_lun)
        buf_puts(b, " lun not captured");
    else
        buf_printf(b, " lun %llu", (unsigned long long)scsi_lun(t->lun));
    if (has_arguments(t))
        scsi_arguments_text(b, t->cdb);
}

/* The bytes of the CDB that are there, "28 00 ...". */
static const char *cdb_text(char *s, const struct scsi_task *t)
{
    unsigned n = SCSI_CDB_LEN - t->lacks;

    for (unsigned i = 0; i < n; i++)
        snprintf(s + 3 * (size_t)i, 4, "%02x ", t->cdb[i]);
    s[n ? 3 * n - 1 : 0] = 0;
    return s;
}

void scsi_task_values(const struct scsi_task *t, bool answered, ulp_take *take, void *user)
{
    const char *status = scsi_status_str(t->status);
    char cdb[3 * SCSI_CDB_LEN + 1];
    bool whole = has_arguments(t);
    struct scsi_cdb c;

    scsi_cdb_get(&c, t->cdb);
    const struct ulp_value values[] = {
        {"scsi_command", c.name ? c.name : "", 0, t->lacks < SCSI_CDB_LEN},
        {"opcode", NULL, c.opcode, t->lacks < SCSI_CDB_LEN},
        {"lun", NULL, scsi_lun(t->lun), !t->no_lun},
        {"cdb", cdb_text(cdb, t), 0, t->lacks < SCSI_CDB_LEN},
        {"lba", NULL, c.lba, c.has_lba && whole},
        {"blocks", NULL, c.blocks, c.has_lba && whole},
        {"page", NULL, c.page, c.has_page && whole},
        {"residual", NULL, t->residual, answered && !t->no_residual},
        {"scsi_status", NULL, t->status, answered},
        {"scsi_status_name", status && answered ? status : "", 0, answered},
        {"sense_key", NULL, t->sense.key, t->sense.known},
        {"asc", NULL, t->sense.asc, t->sense.known},
        {"ascq", NULL, t->sense.ascq, t->sense.known},
    };
    for (unsigned i = 0; i < ARRAY_LEN(values); i++)
        take(user, &values[i]);
}
