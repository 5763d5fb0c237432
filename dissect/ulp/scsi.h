/* layer 1 (wire): SCSI: command descriptor blocks, status and sense data, which iSER and SRP carry; big-endian.
 *
 * Names and places of values are those of the T10 standards SPC and SBC, as tshark's tables of opcodes have them, and
 * were seen in captures of Linux 6.1; filter names are those of tshark. */
#ifndef RDMATRACE_DISSECT_ULP_SCSI_H
#define RDMATRACE_DISSECT_ULP_SCSI_H

#include "dissect/ulp/ulp.h"

#define SCSI_CDB_LEN 16 /* bytes of a command descriptor block in iSCSI and SRP; longer ones continue elsewhere */

/* Statuses that src/ulp asks for. */
enum { SCSI_GOOD = 0x00, SCSI_CHECK_CONDITION = 0x02, SCSI_CONDITION_MET = 0x04 };

/* What is read of a CDB. */
struct scsi_cdb {
    const char *name; /* "READ(10)"; NULL: no name is known */
    uint8_t opcode;
    bool has_lba;    /* `lba` and `blocks` */
    uint64_t lba;    /* first logical block */
    uint32_t blocks; /* logical blocks; 0 of SYNCHRONIZE CACHE and VERIFY: up to the end, or none */
    bool has_page;   /* `page`: of INQUIRY with EVPD, MODE SENSE and LOG SENSE */
    uint8_t page;
};
/* `cdb` has SCSI_CDB_LEN bytes. */
void scsi_cdb_get(struct scsi_cdb *c, const uint8_t *cdb);

/* How many of its bytes say what scsi_cdb_get() reads, by its first one. */
unsigned scsi_cdb_needs(uint8_t opcode);

/* Sense data, of fixed format (response codes 0x70, 0x71) or as descriptors (0x72, 0x73). */
struct scsi_sense {
    bool known; /* the following three */
    uint8_t key, asc, ascq;
};
/* False if `b` has no sense data of these formats. */
bool scsi_sense_get(struct scsi_sense *s, const uint8_t *b, uint32_t len);

/* "Good", "Check Condition"; NULL: no name is known. */
const char *scsi_status_str(uint8_t status);
/* Whether the command has done what it should. */
bool scsi_is_good(uint8_t status);
/* The logical unit's number in the eight bytes of `lun`, in host order (single level, peripheral or flat addressing);
 * else the eight bytes. */
uint64_t scsi_lun(uint64_t lun);
/* Append "READ(10)", or "opcode 0xc5". */
void scsi_name_text(struct buf *b, const uint8_t *cdb);
/* Append what tells apart commands of one name, with a space before: " lba 300 blocks 8", " page 0x83". */
void scsi_arguments_text(struct buf *b, const uint8_t *cdb);
/* Append the status: "Good", "Check Condition (Illegal Request, Invalid Field in CDB)". */
void scsi_status_text(struct buf *b, uint8_t status, const struct scsi_sense *s);

/* The CDB at byte `off` of the body; sense data there. */
void scsi_cdb_layer(struct pkt *p, const struct ulp_body *m, uint32_t off);
void scsi_sense_layer(struct pkt *p, const struct ulp_body *m, uint32_t off, uint32_t len);

extern const struct vdesc scsi_status_desc;

/* clang-format off */
#define SCSI_HDRS(X) X(scsi_cdb) X(scsi_sense)
/* clang-format on */
#define SCSI_DECLARE(name) extern const struct hdr name##_hdr;
SCSI_HDRS(SCSI_DECLARE)

#endif
