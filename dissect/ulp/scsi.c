/* layer 1 (wire): SCSI: command descriptor blocks, status and sense data: names, text, fields. */
#include "dissect/ulp/scsi.h"

#include "dissect/ulp/upper_hdr.h"

/* --- Commands --------------------------------------------------------------------------------- */

/* Where a CDB has its logical block address and number of blocks. */
enum form {
    FORM_PLAIN,
    FORM_RW6,   /* 21 bits at byte 1, 8 bits at byte 4, 0: 256 */
    FORM_RW10,  /* 32 bits at byte 2, 16 at byte 7 */
    FORM_RW12,  /* 32 bits at byte 2, 32 at byte 6 */
    FORM_RW16,  /* 64 bits at byte 2, 32 at byte 10 */
    FORM_CAW16, /* COMPARE AND WRITE: 64 bits at byte 2, 8 at byte 13 */
    FORM_EVPD,  /* INQUIRY: bit 0 of byte 1 says that byte 2 is a page */
    FORM_PAGE,  /* MODE SENSE, LOG SENSE: 6 bits of byte 2 are a page */
};

#define ANY 0xff /* no service action tells the commands of this opcode apart */

static const struct command_name {
    uint8_t opcode, action; /* action: bits 4:0 of byte 1 */
    uint8_t form;           /* enum form */
    const char *name;
} commands[] = {
    {0x00, ANY, FORM_PLAIN, "TEST UNIT READY"},
    {0x03, ANY, FORM_PLAIN, "REQUEST SENSE"},
    {0x04, ANY, FORM_PLAIN, "FORMAT UNIT"},
    {0x07, ANY, FORM_PLAIN, "REASSIGN BLOCKS"},
    {0x08, ANY, FORM_RW6, "READ(6)"},
    {0x0a, ANY, FORM_RW6, "WRITE(6)"},
    {0x12, ANY, FORM_EVPD, "INQUIRY"},
    {0x15, ANY, FORM_PLAIN, "MODE SELECT(6)"},
    {0x16, ANY, FORM_PLAIN, "RESERVE(6)"},
    {0x17, ANY, FORM_PLAIN, "RELEASE(6)"},
    {0x1a, ANY, FORM_PAGE, "MODE SENSE(6)"},
    {0x1b, ANY, FORM_PLAIN, "START STOP UNIT"},
    {0x1d, ANY, FORM_PLAIN, "SEND DIAGNOSTIC"},
    {0x1e, ANY, FORM_PLAIN, "PREVENT ALLOW MEDIUM REMOVAL"},
    {0x25, ANY, FORM_PLAIN, "READ CAPACITY(10)"},
    {0x28, ANY, FORM_RW10, "READ(10)"},
    {0x2a, ANY, FORM_RW10, "WRITE(10)"},
    {0x2e, ANY, FORM_RW10, "WRITE AND VERIFY(10)"},
    {0x2f, ANY, FORM_RW10, "VERIFY(10)"},
    {0x34, ANY, FORM_RW10, "PRE-FETCH(10)"},
    {0x35, ANY, FORM_RW10, "SYNCHRONIZE CACHE(10)"},
    {0x3b, ANY, FORM_PLAIN, "WRITE BUFFER"},
    {0x41, ANY, FORM_RW10, "WRITE SAME(10)"},
    {0x42, ANY, FORM_PLAIN, "UNMAP"},
    {0x48, ANY, FORM_PLAIN, "SANITIZE"},
    {0x4c, ANY, FORM_PLAIN, "LOG SELECT"},
    {0x4d, ANY, FORM_PAGE, "LOG SENSE"},
    {0x55, ANY, FORM_PLAIN, "MODE SELECT(10)"},
    {0x5a, ANY, FORM_PAGE, "MODE SENSE(10)"},
    {0x5e, ANY, FORM_PLAIN, "PERSISTENT RESERVE IN"},
    {0x5f, ANY, FORM_PLAIN, "PERSISTENT RESERVE OUT"},
    {0x83, ANY, FORM_PLAIN, "EXTENDED COPY"},
    {0x84, ANY, FORM_PLAIN, "RECEIVE COPY RESULTS"},
    {0x88, ANY, FORM_RW16, "READ(16)"},
    {0x89, ANY, FORM_CAW16, "COMPARE AND WRITE"},
    {0x8a, ANY, FORM_RW16, "WRITE(16)"},
    {0x8e, ANY, FORM_RW16, "WRITE AND VERIFY(16)"},
    {0x8f, ANY, FORM_RW16, "VERIFY(16)"},
    {0x90, ANY, FORM_RW16, "PRE-FETCH(16)"},
    {0x91, ANY, FORM_RW16, "SYNCHRONIZE CACHE(16)"},
    {0x93, ANY, FORM_RW16, "WRITE SAME(16)"},
    {0x9e, 0x10, FORM_PLAIN, "READ CAPACITY(16)"},
    {0x9e, 0x12, FORM_PLAIN, "GET LBA STATUS"},
    {0x9e, ANY, FORM_PLAIN, "SERVICE ACTION IN(16)"},
    {0x9f, ANY, FORM_PLAIN, "SERVICE ACTION OUT(16)"},
    {0xa0, ANY, FORM_PLAIN, "REPORT LUNS"},
    {0xa3, 0x0c, FORM_PLAIN, "REPORT SUPPORTED OPERATION CODES"},
    {0xa3, ANY, FORM_PLAIN, "MAINTENANCE IN"},
    {0xa8, ANY, FORM_RW12, "READ(12)"},
    {0xaa, ANY, FORM_RW12, "WRITE(12)"},
    {0xae, ANY, FORM_RW12, "WRITE AND VERIFY(12)"},
    {0xaf, ANY, FORM_RW12, "VERIFY(12)"},
};

static const struct command_name *command_of(const uint8_t *cdb)
{
    for (unsigned i = 0; i < ARRAY_LEN(commands); i++)
        if (commands[i].opcode == cdb[0] && (commands[i].action == ANY || commands[i].action == (cdb[1] & 31)))
            return &commands[i];
    return NULL;
}

static void take_range(struct scsi_cdb *c, uint64_t lba, uint32_t blocks)
{
    c->has_lba = true;
    c->lba = lba;
    c->blocks = blocks;
}

static void take_page(struct scsi_cdb *c, bool there, uint8_t page)
{
    c->has_page = there;
    c->page = page;
}

static void take_form(struct scsi_cdb *c, enum form form, const uint8_t *cdb)
{
    switch (form) {
    case FORM_RW6:
        take_range(c, load_be24(cdb + 1) & 0x1fffff, cdb[4] ? cdb[4] : 256);
        break;
    case FORM_RW10:
        take_range(c, load_be32(cdb + 2), load_be16(cdb + 7));
        break;
    case FORM_RW12:
        take_range(c, load_be32(cdb + 2), load_be32(cdb + 6));
        break;
    case FORM_RW16:
        take_range(c, load_be64(cdb + 2), load_be32(cdb + 10));
        break;
    case FORM_CAW16:
        take_range(c, load_be64(cdb + 2), cdb[13]);
        break;
    case FORM_EVPD:
        take_page(c, cdb[1] & 1, cdb[2]);
        break;
    case FORM_PAGE:
        take_page(c, true, cdb[2] & 0x3f);
        break;
    case FORM_PLAIN:
        break;
    }
}

/* The group of the opcode says how long the CDB is; behind byte 13 one of 16 bytes has its group number and control. */
unsigned scsi_cdb_needs(uint8_t opcode)
{
    static const uint8_t needs[] = {6, 10, 10, SCSI_CDB_LEN, 14, 12, SCSI_CDB_LEN, SCSI_CDB_LEN};

    return needs[opcode >> 5];
}

void scsi_cdb_get(struct scsi_cdb *c, const uint8_t *cdb)
{
    const struct command_name *n = command_of(cdb);

    *c = (struct scsi_cdb){.name = n ? n->name : NULL, .opcode = cdb[0]};
    if (n)
        take_form(c, (enum form)n->form, cdb);
}

uint64_t scsi_lun(uint64_t lun)
{
    if (lun << 16 == 0 && lun >> 62 <= 1)
        return lun >> 48 & 0x3fff;
    return lun;
}

/* --- Status ----------------------------------------------------------------------------------- */

static const struct vname statuses[] = {{0x00, "Good"},
                                        {0x02, "Check Condition"},
                                        {0x04, "Condition Met"},
                                        {0x08, "Busy"},
                                        {0x10, "Intermediate"},
                                        {0x14, "Intermediate Condition Met"},
                                        {0x18, "Reservation Conflict"},
                                        {0x28, "Task Set Full"},
                                        {0x30, "ACA Active"},
                                        {0x40, "Task Aborted"}};
const struct vdesc scsi_status_desc = VDESC_NAMES(statuses);

const char *scsi_status_str(uint8_t status)
{
    return vname_find(statuses, ARRAY_LEN(statuses), status);
}

bool scsi_is_good(uint8_t status)
{
    return status == SCSI_GOOD || status == SCSI_CONDITION_MET || status == 0x10 || status == 0x14;
}

static const struct vname keys[] = {{0x0, "No Sense"},        {0x1, "Recovered Error"}, {0x2, "Not Ready"},
                                    {0x3, "Medium Error"},    {0x4, "Hardware Error"},  {0x5, "Illegal Request"},
                                    {0x6, "Unit Attention"},  {0x7, "Data Protect"},    {0x8, "Blank Check"},
                                    {0x9, "Vendor Specific"}, {0xa, "Copy Aborted"},    {0xb, "Aborted Command"},
                                    {0xd, "Volume Overflow"}, {0xe, "Miscompare"}};
static const struct vdesc key_desc = VDESC_NAMES(keys);

/* Additional sense code and qualifier of frequent errors. */
static const struct vname additional[] = {{0x0000, "no additional sense information"},
                                          {0x0400, "logical unit not ready, cause not reportable"},
                                          {0x0401, "logical unit is becoming ready"},
                                          {0x0402, "logical unit not ready, initializing command required"},
                                          {0x0409, "logical unit not ready, self-test in progress"},
                                          {0x0800, "logical unit communication failure"},
                                          {0x0c02, "write error, auto reallocation failed"},
                                          {0x0c03, "write error, recommend reassignment"},
                                          {0x1100, "unrecovered read error"},
                                          {0x1d00, "miscompare during verify operation"},
                                          {0x2000, "invalid command operation code"},
                                          {0x2100, "logical block address out of range"},
                                          {0x2400, "invalid field in CDB"},
                                          {0x2500, "logical unit not supported"},
                                          {0x2600, "invalid field in parameter list"},
                                          {0x2601, "parameter not supported"},
                                          {0x2602, "parameter value invalid"},
                                          {0x2700, "write protected"},
                                          {0x2900, "power on, reset, or bus device reset occurred"},
                                          {0x2901, "power on occurred"},
                                          {0x2902, "SCSI bus reset occurred"},
                                          {0x2a01, "mode parameters changed"},
                                          {0x2a03, "reservations preempted"},
                                          {0x2a04, "reservations released"},
                                          {0x2a05, "registrations preempted"},
                                          {0x2c00, "command sequence error"},
                                          {0x3a00, "medium not present"},
                                          {0x3f01, "microcode has been changed"},
                                          {0x3f03, "INQUIRY data have changed"},
                                          {0x3f0e, "reported LUNs data have changed"},
                                          {0x4400, "internal target failure"},
                                          {0x4703, "information unit CRC error detected"},
                                          {0x4b00, "data phase error"}};
static const struct vdesc additional_desc = VDESC_NAMES(additional);

static bool is_fixed(const uint8_t *p, uint32_t len)
{
    return len >= 14 && (p[0] & 0x7e) == 0x70;
}
static bool is_descriptors(const uint8_t *p, uint32_t len)
{
    return len >= 4 && (p[0] & 0x7e) == 0x72;
}

bool scsi_sense_get(struct scsi_sense *s, const uint8_t *b, uint32_t len)
{
    *s = (struct scsi_sense){0};
    if (is_fixed(b, len))
        *s = (struct scsi_sense){true, b[2] & 15, b[12], b[13]};
    else if (is_descriptors(b, len))
        *s = (struct scsi_sense){true, b[1] & 15, b[2], b[3]};
    return s->known;
}

/* --- Text ------------------------------------------------------------------------------------- */

void scsi_name_text(struct buf *b, const uint8_t *cdb)
{
    const struct command_name *n = command_of(cdb);

    if (n)
        buf_puts(b, n->name);
    else
        buf_printf(b, "opcode 0x%02x", cdb[0]);
}

/* Pages of vital product data that INQUIRY asks for. */
static const struct vname vital_pages[] = {{0x00, "Supported Vital Product Data Pages"},
                                           {0x80, "Unit Serial Number"},
                                           {0x83, "Device Identification"},
                                           {0xb0, "Block Limits"},
                                           {0xb1, "Block Device Characteristics"},
                                           {0xb2, "Logical Block Provisioning"}};

void scsi_arguments_text(struct buf *b, const uint8_t *cdb)
{
    struct scsi_cdb c;
    const char *page;

    scsi_cdb_get(&c, cdb);
    if (c.has_lba)
        buf_printf(b, " lba %llu blocks %u", (unsigned long long)c.lba, c.blocks);
    if (!c.has_page)
        return;
    buf_printf(b, " page 0x%02x", c.page);
    page = cdb[0] == 0x12 ? vname_find(vital_pages, ARRAY_LEN(vital_pages), c.page) : NULL;
    if (page)
        buf_printf(b, " (%s)", page);
}

void scsi_status_text(struct buf *b, uint8_t status, const struct scsi_sense *s)
{
    const char *name = scsi_status_str(status), *key, *why;

    if (name)
        buf_puts(b, name);
    else
        buf_printf(b, "status 0x%02x", status);
    if (!s->known)
        return;
    key = vname_find(keys, ARRAY_LEN(keys), s->key);
    why = vname_find(additional, ARRAY_LEN(additional), (uint32_t)s->asc << 8 | s->ascq);
    if (key)
        buf_printf(b, " (%s, ", key);
    else
        buf_printf(b, " (sense key %u, ", s->key);
    if (why)
        buf_printf(b, "%s)", why);
    else
        buf_printf(b, "ASC 0x%02x ASCQ 0x%02x)", s->asc, s->ascq);
}

/* --- Fields ----------------------------------------------------------------------------------- */

static void opcode_text(struct buf *b, uint64_t v)
{
    for (unsigned i = 0; i < ARRAY_LEN(commands); i++)
        if (commands[i].opcode == v && commands[i].action == ANY) {
            buf_puts(b, commands[i].name);
            return;
        }
}
static const struct vdesc cdb_opcode_desc = VDESC_TEXT(opcode_text);

static const struct command_name *there(const uint8_t *p, uint32_t len)
{
    return len >= SCSI_CDB_LEN ? command_of(p) : NULL;
}
static bool is_unknown(const uint8_t *p, uint32_t len)
{
    return !there(p, len);
}
static bool is_known(const uint8_t *p, uint32_t len)
{
    return there(p, len) != NULL;
}
#define FORM_IS(name, which)                                                                                           \
    static bool name(const uint8_t *p, uint32_t len)                                                                   \
    {                                                                                                                  \
        return there(p, len) && there(p, len)->form == (which);                                                        \
    }
FORM_IS(is_rw6, FORM_RW6)
FORM_IS(is_rw10, FORM_RW10)
FORM_IS(is_rw12, FORM_RW12)
FORM_IS(is_rw16, FORM_RW16)
#define CDB_IS(name, condition)                                                                                        \
    static bool name(const uint8_t *p, uint32_t len)                                                                   \
    {                                                                                                                  \
        return len >= SCSI_CDB_LEN && (condition);                                                                     \
    }
CDB_IS(is_rw10_or_12, is_rw10(p, len) || is_rw12(p, len))
CDB_IS(is_page, p[0] == 0x12 && p[1] & 1)
CDB_IS(is_mode_sense, p[0] == 0x1a || p[0] == 0x5a)
CDB_IS(is_mode_sense6, p[0] == 0x1a)
CDB_IS(is_mode_sense10, p[0] == 0x5a)
CDB_IS(is_inquiry, p[0] == 0x12)
CDB_IS(is_report_luns, p[0] == 0xa0)
CDB_IS(is_reserve_in, p[0] == 0x5e)
CDB_IS(is_service_in, p[0] == 0x9e)
CDB_IS(is_read_capacity16, p[0] == 0x9e && (p[1] & 31) == 0x10)
CDB_IS(is_maintenance_in, p[0] == 0xa3)
CDB_IS(is_report_opcodes, p[0] == 0xa3 && (p[1] & 31) == 0x0c)
CDB_IS(has_control5, p[0] < 0x20 && p[0] != 0x12)
CDB_IS(has_control9, p[0] >= 0x20 && p[0] < 0x60 && !is_unknown(p, len))
CDB_IS(has_control11, p[0] >= 0xa0 && p[0] < 0xc0 && !is_unknown(p, len))
CDB_IS(has_control15, p[0] >= 0x80 && p[0] < 0xa0 && !is_unknown(p, len))

#define NUMBER(when, at, bytes, type, base, desc, abbrev, label, blurb)                                                \
    FIELD_ROW(when, 8 * (at), 8 * (bytes), type, base, desc, 0, abbrev, label, blurb)
#define CONTROL(when, at)                                                                                              \
    NUMBER(when, at, 1, FT_UINT8, BASE_HEX, NULL, "scsi.cdb.control", "Control", "The control byte.")

static const struct field scsi_cdb_fields[] = {
    NUMBER(is_known, 0, 1, FT_UINT8, BASE_HEX, &cdb_opcode_desc, "scsi_sbc.opcode", "Opcode", "Operation code."),
    NUMBER(is_unknown, 0, 1, FT_UINT8, BASE_HEX, NULL, "scsi.spc.opcode", "Opcode",
           "Operation code of a command that has no name here."),
    FIELD_ROW(is_service_in, 11, 5, FT_UINT8, BASE_HEX, NULL, 0, "scsi_sbc.sa", "Service Action",
              "Which command; 0x10: READ CAPACITY(16)."),
    FIELD_ROW(is_maintenance_in, 11, 5, FT_UINT8, BASE_HEX, NULL, 0, "scsi.mpi.service_action", "Service Action",
              "Which command; 0x0c: REPORT SUPPORTED OPERATION CODES."),
    FIELD_ROW(is_reserve_in, 11, 5, FT_UINT8, BASE_HEX, NULL, 0, "scsi.persresvin.svcaction", "Service Action",
              "What is asked for; 0: the keys."),
    FIELD_ROW(is_rw6, 12, 20, FT_UINT24, BASE_DEC, NULL, 0, "scsi_sbc.rdwr6.lba", "Logical Block Address (LBA)",
              "First logical block."),
    NUMBER(is_rw6, 4, 1, FT_UINT24, BASE_DEC, NULL, "scsi_sbc.rdwr6.xferlen", "Transfer Length",
           "Logical blocks; 0: 256."),
    NUMBER(is_rw10_or_12, 2, 4, FT_UINT32, BASE_DEC, NULL, "scsi_sbc.rdwr10.lba", "Logical Block Address (LBA)",
           "First logical block."),
    NUMBER(is_rw10, 7, 2, FT_UINT16, BASE_DEC, NULL, "scsi_sbc.rdwr10.xferlen", "Transfer Length", "Logical blocks."),
    NUMBER(is_rw12, 6, 4, FT_UINT32, BASE_DEC, NULL, "scsi_sbc.rdwr12.xferlen", "Transfer Length", "Logical blocks."),
    FIELD_AT(is_rw16, 2, 8, FT_BYTES, "scsi_sbc.rdwr16.lba", "Logical Block Address (LBA)", "First logical block."),
    NUMBER(is_rw16, 10, 4, FT_UINT32, BASE_DEC, NULL, "scsi_sbc.rdwr12.xferlen", "Transfer Length", "Logical blocks."),
    NUMBER(is_page, 2, 1, FT_UINT8, BASE_HEX, NULL, "scsi.inquiry.evpd.pagecode", "VPD Page Code",
           "Page of vital product data."),
    FIELD_ROW(is_mode_sense, 16, 2, FT_UINT8, BASE_DEC, NULL, 0, "scsi.mode.pc", "Page Control",
              "0 current, 1 changeable, 2 default, 3 saved values."),
    NUMBER(is_inquiry, 3, 2, FT_UINT16, BASE_DEC, NULL, "scsi.cdb.alloclen16", "Allocation Length",
           "Bytes that the initiator takes."),
    NUMBER(is_mode_sense6, 4, 1, FT_UINT8, BASE_DEC, NULL, "scsi.cdb.alloclen", "Allocation Length",
           "Bytes that the initiator takes."),
    NUMBER(is_mode_sense10, 7, 2, FT_UINT16, BASE_DEC, NULL, "scsi.cdb.alloclen16", "Allocation Length",
           "Bytes that the initiator takes."),
    NUMBER(is_reserve_in, 7, 2, FT_UINT16, BASE_DEC, NULL, "scsi.cdb.alloclen16", "Allocation Length",
           "Bytes that the initiator takes."),
    NUMBER(is_report_luns, 2, 1, FT_UINT8, BASE_HEX, NULL, "scsi.spc.select_report", "Select Report",
           "Which logical units are to be listed; 0: all but well-known ones."),
    NUMBER(is_report_luns, 6, 4, FT_UINT32, BASE_DEC, NULL, "scsi.cdb.alloclen32", "Allocation Length",
           "Bytes that the initiator takes."),
    NUMBER(is_report_opcodes, 6, 4, FT_UINT32, BASE_DEC, NULL, "scsi.cdb.alloclen32", "Allocation Length",
           "Bytes that the initiator takes."),
    NUMBER(is_read_capacity16, 10, 4, FT_UINT32, BASE_DEC, NULL, "scsi_sbc.alloclen32", "Allocation Length",
           "Bytes that the initiator takes."),
    CONTROL(has_control5, 5),
    NUMBER(is_inquiry, 5, 1, FT_UINT8, BASE_HEX, NULL, "scsi.cdb.inq.control", "Control", "The control byte."),
    CONTROL(has_control9, 9),
    CONTROL(has_control11, 11),
    CONTROL(has_control15, 15),
};
UPPER_HDR(scsi_cdb, "scsi", "SCSI CDB", "scsi", NULL, SCSI_CDB_LEN);

static const struct vname kinds[] = {{0x70, "current, fixed format"},
                                     {0x71, "deferred, fixed format"},
                                     {0x72, "current, descriptors"},
                                     {0x73, "deferred, descriptors"}};
static const struct vdesc kind_desc = VDESC_NAMES(kinds);

static const struct field scsi_sense_fields[] = {
    FIELD_ROW(NULL, 1, 7, FT_UINT8, BASE_HEX, &kind_desc, 0, "scsi.sns.errtype", "Response Code",
              "Format of the sense data, and whether they are those of this command."),
    FIELD_ROW(is_fixed, 20, 4, FT_UINT8, BASE_HEX, &key_desc, 0, "scsi.sns.key", "Sense Key", "What went wrong."),
    FIELD_ROW(is_descriptors, 12, 4, FT_UINT8, BASE_HEX, &key_desc, 0, "scsi.sns.key", "Sense Key", "What went wrong."),
    NUMBER(is_fixed, 3, 4, FT_UINT32, BASE_HEX, NULL, "scsi.sns.info", "Information",
           "Depends on the command, often a logical block."),
    NUMBER(is_fixed, 7, 1, FT_UINT8, BASE_DEC, NULL, "scsi.sns.addlen", "Additional Sense Length",
           "Bytes behind this one."),
    NUMBER(is_fixed, 12, 2, FT_UINT16, BASE_HEX, &additional_desc, "scsi.sns.ascascq",
           "Additional Sense Code and Qualifier", "Why it went wrong."),
    NUMBER(is_fixed, 12, 1, FT_UINT8, BASE_HEX, NULL, "scsi.sns.asc", "Additional Sense Code", "Its first byte."),
    NUMBER(is_fixed, 13, 1, FT_UINT8, BASE_HEX, NULL, "scsi.sns.ascq", "Additional Sense Code Qualifier",
           "Its second byte."),
    NUMBER(is_descriptors, 2, 2, FT_UINT16, BASE_HEX, &additional_desc, "scsi.sns.ascascq",
           "Additional Sense Code and Qualifier", "Why it went wrong."),
};
UPPER_HDR(scsi_sense, "rdma.scsi.sense", "SCSI sense data", "scsi", NULL, 4);

void scsi_cdb_layer(struct pkt *p, const struct ulp_body *m, uint32_t off)
{
    ulp_layer(p, &scsi_cdb_hdr, m, off, SCSI_CDB_LEN);
}

void scsi_sense_layer(struct pkt *p, const struct ulp_body *m, uint32_t off, uint32_t len)
{
    ulp_layer(p, &scsi_sense_hdr, m, off, len);
}
