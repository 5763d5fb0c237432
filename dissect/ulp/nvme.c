/* layer 1 (wire): NVMe over RDMA: capsules read, recognised and as one line. */
#include "dissect/ulp/nvme.h"

#include "le.h"

static void sgl_get(struct nvme_sgl *s, const uint8_t *p)
{
    s->type = p[15] >> 4;
    s->subtype = p[15] & 15;
    s->address = load_le(p, 8);
    s->length = (uint32_t)load_le(p + 8, s->type == NVME_SGL_KEYED ? 3 : 4);
    s->key = s->type == NVME_SGL_KEYED ? (uint32_t)load_le(p + 11, 4) : 0;
}

void nvme_cmd_get(struct nvme_cmd *c, const uint8_t *sqe)
{
    c->opc = sqe[0];
    c->flags = sqe[1];
    c->fctype = sqe[4];
    c->cid = (uint16_t)load_le(sqe + 2, 2);
    c->nsid = (uint32_t)load_le(sqe + 4, 4);
    for (unsigned i = 0; i < 6; i++)
        c->cdw[i] = (uint32_t)load_le(sqe + 40 + 4 * i, 4);
    sgl_get(&c->sgl, sqe + 24);
    c->lacks = 0;
}

void nvme_cqe_get(struct nvme_cqe *c, const uint8_t *cqe)
{
    c->result = load_le(cqe, 8);
    c->sqhd = (uint16_t)load_le(cqe + 8, 2);
    c->cid = (uint16_t)load_le(cqe + 12, 2);
    c->status = (uint16_t)(load_le(cqe + 14, 2) >> 1);
}

static void sgl_put(uint8_t *p, const struct nvme_sgl *s)
{
    bool keyed = s->type == NVME_SGL_KEYED;

    store_le(p, 8, s->address);
    store_le(p + 8, keyed ? 3 : 4, s->length);
    if (keyed)
        store_le(p + 11, 4, s->key);
    p[15] = (uint8_t)(s->type << 4 | s->subtype);
}

void nvme_cmd_put(uint8_t *sqe, const struct nvme_cmd *c)
{
    memset(sqe, 0, NVME_SQE_LEN);
    sqe[0] = c->opc;
    sqe[1] = c->flags ? c->flags : 0x40;
    store_le(sqe + 2, 2, c->cid);
    store_le(sqe + 4, 4, c->opc == NVME_FABRICS ? c->fctype : c->nsid);
    sgl_put(sqe + 24, &c->sgl);
    for (unsigned i = 0; i < ARRAY_LEN(c->cdw); i++)
        store_le(sqe + 40 + 4 * i, 4, c->cdw[i]);
}

void nvme_cqe_put(uint8_t *cqe, const struct nvme_cqe *c)
{
    memset(cqe, 0, NVME_CQE_LEN);
    store_le(cqe, 8, c->result);
    store_le(cqe + 8, 2, c->sqhd);
    store_le(cqe + 12, 2, c->cid);
    store_le(cqe + 14, 2, (uint64_t)c->status << 1);
}

/* Bytes of the list that SGL 1 names; 0: it names none. */
static uint32_t list_len(const struct nvme_sgl *s)
{
    bool has = s->type == NVME_SGL_LAST && s->subtype == NVME_SGL_OFFSET && s->length % NVME_SGL_LEN == 0;

    return has ? s->length : 0;
}

unsigned nvme_list(const struct nvme_cmd *c, const struct ulp_body *m)
{
    uint32_t n = list_len(&c->sgl), room = m->len > NVME_SQE_LEN ? m->len - NVME_SQE_LEN : 0;

    return c->sgl.address <= room && n <= room - c->sgl.address ? n / NVME_SGL_LEN : 0;
}

void nvme_list_get(struct nvme_sgl *s, const struct nvme_cmd *c, const struct ulp_body *m, unsigned i)
{
    sgl_get(s, m->b + NVME_SQE_LEN + c->sgl.address + (size_t)i * NVME_SGL_LEN);
}

/* The two bits that say which way data go: 1 from the host, 2 to the host. */
static unsigned direction(const struct nvme_cmd *c)
{
    return (c->opc == NVME_FABRICS ? c->fctype : c->opc) & 3;
}

bool nvme_is_to_host(const struct nvme_cmd *c)
{
    return direction(c) == 2;
}

uint32_t nvme_data_len(const struct nvme_cmd *c)
{
    return direction(c) == 0 || (c->sgl.type != NVME_SGL_KEYED && c->sgl.type != NVME_SGL_DATA) ? 0 : c->sgl.length;
}

static bool is_zero(const uint8_t *b, unsigned from, unsigned to)
{
    while (from < to)
        if (b[from++])
            return false;
    return true;
}

/* Whether the descriptor is one that a host sends; data of `len` bytes follow the command, if the capsule is `whole`.
 */
static bool sgl_plausible(const uint8_t *sqe, uint32_t len, bool whole)
{
    unsigned type = sqe[39];
    uint64_t offset = load_le(sqe + 24, 8), n = load_le(sqe + 32, 4);

    if (type == 0x01 && !whole) /* what it describes ends in a later packet */
        return offset <= len && n > len - offset && is_zero(sqe, 36, 39);
    if (type == 0x01)
        return offset <= len && n <= len - offset;
    if (type == 0x31)
        return whole && n && n % NVME_SGL_LEN == 0 && offset <= len && n == len - offset;
    return (type == 0x40 || type == 0x4f || type == 0x00) && whole && len == 0;
}

/* Connect with its 1,024 bytes of data, by which a queue begins. */
static bool is_connect(const uint8_t *b)
{
    uint32_t data = b[39] >> 4 == 4 ? (uint32_t)load_le(b + 32, 3) : (uint32_t)load_le(b + 32, 4);

    return b[4] == 1 && b[1] == 0x40 && is_zero(b, 5, 24) && (b[39] >> 4 == 4 || b[39] == 0x01) && data == 1024 &&
           load_le(b + 40, 2) == 0 && load_le(b + 44, 2) && is_zero(b, 52, NVME_SQE_LEN);
}

enum ulp_looks nvme_looks(const uint8_t *b, uint32_t len, bool whole)
{
    if (len < NVME_SQE_LEN || (b[1] & 0xfc) != 0x40)
        return LOOKS_OTHER;
    if (b[0] == NVME_FABRICS)
        return is_connect(b) ? LOOKS_FIRST : b[4] <= 8 ? LOOKS_CLIENT : LOOKS_OTHER;
    return sgl_plausible(b, len - NVME_SQE_LEN, whole) ? LOOKS_CLIENT : LOOKS_OTHER;
}

enum ulp_looks nvme_looks_cut(const uint8_t *b, uint32_t len, uint32_t all, bool whole)
{
    if (len < NVME_SQE_LEAST || all < NVME_SQE_LEN || (b[1] & 0xfc) != 0x40)
        return LOOKS_OTHER;
    if (b[0] == NVME_FABRICS)
        return b[4] <= 8 ? LOOKS_CLIENT : LOOKS_OTHER;
    return sgl_plausible(b, all - NVME_SQE_LEN, whole) ? LOOKS_CLIENT : LOOKS_OTHER;
}

bool nvme_responds(const uint8_t *b, uint32_t len, const struct ulp_body *asked)
{
    return len == NVME_CQE_LEN && asked->len >= NVME_SQE_LEAST && b[12] == asked->b[2] && b[13] == asked->b[3];
}

/* Record format, queue id, sizes of the receive queue and (from 0) the send queue, controller id: five numbers of two
 * bytes. The rest is zero. */
bool nvme_private_fits(const uint8_t *b, uint32_t len)
{
    uint16_t qid, hrqsize, hsqsize;

    if (len < 32 || b[0] || b[1])
        return false;
    qid = (uint16_t)load_le(b + 2, 2);
    hrqsize = (uint16_t)load_le(b + 4, 2);
    hsqsize = (uint16_t)load_le(b + 6, 2);
    for (unsigned i = 10; i < 32; i++)
        if (b[i])
            return false;
    return qid < 4096 && hrqsize >= 2 && hsqsize >= 1 && hrqsize <= 16384 && hsqsize <= 16384;
}

/* --- Names ------------------------------------------------------------------------------------ */

static const struct vname io_opcodes[] = {{NVME_IO_FLUSH, "Flush"},
                                          {NVME_IO_WRITE, "Write"},
                                          {NVME_IO_READ, "Read"},
                                          {0x04, "Write Uncorrectable"},
                                          {0x05, "Compare"},
                                          {0x08, "Write Zeroes"},
                                          {0x09, "Dataset Management"},
                                          {0x0c, "Verify"},
                                          {0x0d, "Reservation Register"},
                                          {0x0e, "Reservation Report"},
                                          {0x11, "Reservation Acquire"},
                                          {0x15, "Reservation Release"},
                                          {0x79, "Zone Management Send"},
                                          {0x7a, "Zone Management Receive"},
                                          {0x7d, "Zone Append"},
                                          {NVME_FABRICS, "Fabrics Command"}};
const struct vdesc nvme_io_opcode_desc = VDESC_NAMES(io_opcodes);

static const struct vname admin_opcodes[] = {{0x00, "Delete I/O Submission Queue"},
                                             {0x01, "Create I/O Submission Queue"},
                                             {NVME_ADMIN_GET_LOG, "Get Log Page"},
                                             {0x04, "Delete I/O Completion Queue"},
                                             {0x05, "Create I/O Completion Queue"},
                                             {NVME_ADMIN_IDENTIFY, "Identify"},
                                             {0x08, "Abort"},
                                             {NVME_ADMIN_SET_FEATURES, "Set Features"},
                                             {NVME_ADMIN_GET_FEATURES, "Get Features"},
                                             {NVME_ADMIN_AER, "Asynchronous Event Request"},
                                             {0x0d, "Namespace Management"},
                                             {0x10, "Firmware Commit"},
                                             {0x11, "Firmware Image Download"},
                                             {0x14, "Device Self-test"},
                                             {0x15, "Namespace Attachment"},
                                             {NVME_ADMIN_KEEP_ALIVE, "Keep Alive"},
                                             {0x19, "Directive Send"},
                                             {0x1a, "Directive Receive"},
                                             {0x1c, "Virtualization Management"},
                                             {0x1d, "NVMe-MI Send"},
                                             {0x1e, "NVMe-MI Receive"},
                                             {0x7c, "Doorbell Buffer Config"},
                                             {NVME_FABRICS, "Fabrics Command"},
                                             {0x80, "Format NVM"},
                                             {0x81, "Security Send"},
                                             {0x82, "Security Receive"},
                                             {0x84, "Sanitize"},
                                             {0x86, "Get LBA Status"}};
const struct vdesc nvme_admin_opcode_desc = VDESC_NAMES(admin_opcodes);

static const struct vname fctypes[] = {{NVME_FCTYPE_PROP_SET, "Property Set"}, {NVME_FCTYPE_CONNECT, "Connect"},
                                       {NVME_FCTYPE_PROP_GET, "Property Get"}, {0x05, "Authentication Send"},
                                       {0x06, "Authentication Receive"},       {0x08, "Disconnect"}};
const struct vdesc nvme_fctype_desc = VDESC_NAMES(fctypes);

static const struct vname properties[] = {{NVME_PROP_CAP, "Controller Capabilities"},
                                          {NVME_PROP_VS, "Version"},
                                          {0x0c, "Interrupt Mask Set"},
                                          {0x10, "Interrupt Mask Clear"},
                                          {NVME_PROP_CC, "Controller Configuration"},
                                          {NVME_PROP_CSTS, "Controller Status"},
                                          {0x20, "NVM Subsystem Reset"}};
const struct vdesc nvme_property_desc = VDESC_NAMES(properties);

static const struct vname log_pages[] = {{0x01, "Error Information"},
                                         {0x02, "SMART / Health Information"},
                                         {0x03, "Firmware Slot Information"},
                                         {0x04, "Changed Namespace List"},
                                         {0x05, "Commands Supported and Effects"},
                                         {0x06, "Device Self-test"},
                                         {0x07, "Telemetry Host-Initiated"},
                                         {0x08, "Telemetry Controller-Initiated"},
                                         {0x09, "Endurance Group Information"},
                                         {0x0a, "Predictable Latency Per NVM Set"},
                                         {0x0b, "Predictable Latency Event Aggregate"},
                                         {0x0c, "Asymmetric Namespace Access"},
                                         {0x0e, "LBA Status Information"},
                                         {0x0f, "Endurance Group Event Aggregate"},
                                         {NVME_LOG_DISCOVERY, "Discovery"},
                                         {0x80, "Reservation Notification"},
                                         {0x81, "Sanitize Status"}};
const struct vdesc nvme_log_desc = VDESC_NAMES(log_pages);

static const struct vname cns_values[] = {{NVME_CNS_NS, "Namespace"},
                                          {NVME_CNS_CTRL, "Controller"},
                                          {NVME_CNS_LIST, "Active Namespace ID list"},
                                          {NVME_CNS_DESCRIPTORS, "Namespace Identification Descriptor list"},
                                          {0x05, "Namespace, I/O command set"},
                                          {0x06, "Controller, I/O command set"},
                                          {0x08, "Namespace, independent of the command set"}};
const struct vdesc nvme_cns_desc = VDESC_NAMES(cns_values);

static const struct vname features[] = {{0x01, "Arbitration"},
                                        {0x02, "Power Management"},
                                        {0x03, "LBA Range Type"},
                                        {0x04, "Temperature Threshold"},
                                        {0x05, "Error Recovery"},
                                        {0x06, "Volatile Write Cache"},
                                        {NVME_FEATURE_QUEUES, "Number of Queues"},
                                        {0x08, "Interrupt Coalescing"},
                                        {0x09, "Interrupt Vector Configuration"},
                                        {0x0a, "Write Atomicity Normal"},
                                        {NVME_FEATURE_EVENTS, "Asynchronous Event Configuration"},
                                        {0x0c, "Autonomous Power State Transition"},
                                        {0x0d, "Host Memory Buffer"},
                                        {0x0e, "Timestamp"},
                                        {NVME_FEATURE_KEEP_ALIVE, "Keep Alive Timer"},
                                        {0x10, "Host Controlled Thermal Management"},
                                        {0x11, "Non-Operational Power State Config"},
                                        {0x12, "Read Recovery Level Config"},
                                        {0x13, "Predictable Latency Mode Config"},
                                        {0x14, "Predictable Latency Mode Window"},
                                        {0x15, "LBA Status Information Report Interval"},
                                        {0x16, "Host Behavior Support"},
                                        {0x17, "Sanitize Config"},
                                        {0x18, "Endurance Group Event Configuration"},
                                        {0x80, "Software Progress Marker"},
                                        {0x81, "Host Identifier"},
                                        {0x82, "Reservation Notification Mask"},
                                        {0x83, "Reservation Persistence"},
                                        {0x84, "Namespace Write Protection Config"}};
const struct vdesc nvme_feature_desc = VDESC_NAMES(features);

static const struct vname scts[] = {{0, "Generic Command Status"},
                                    {1, "Command Specific Status"},
                                    {2, "Media and Data Integrity Errors"},
                                    {3, "Path Related Status"},
                                    {7, "Vendor Specific"}};
const struct vdesc nvme_sct_desc = VDESC_NAMES(scts);

/* By status code type (bits 10:8) and status code. */
static const struct vname statuses[] = {{NVME_OK, "Successful Completion"},
                                        {NVME_INVALID_OPCODE, "Invalid Command Opcode"},
                                        {NVME_INVALID_FIELD, "Invalid Field in Command"},
                                        {0x003, "Command ID Conflict"},
                                        {0x004, "Data Transfer Error"},
                                        {0x006, "Internal Error"},
                                        {0x007, "Command Abort Requested"},
                                        {0x008, "Command Aborted due to SQ Deletion"},
                                        {NVME_INVALID_NAMESPACE, "Invalid Namespace or Format"},
                                        {NVME_SEQUENCE_ERROR, "Command Sequence Error"},
                                        {0x00d, "Invalid SGL Segment Descriptor"},
                                        {0x00e, "Invalid Number of SGL Descriptors"},
                                        {NVME_SGL_LENGTH, "Data SGL Length Invalid"},
                                        {0x010, "Metadata SGL Length Invalid"},
                                        {NVME_SGL_TYPE, "SGL Descriptor Type Invalid"},
                                        {0x016, "SGL Offset Invalid"},
                                        {0x018, "Host Identifier Inconsistent Format"},
                                        {0x019, "Keep Alive Timer Expired"},
                                        {0x01a, "Keep Alive Timeout Invalid"},
                                        {0x020, "Namespace is Write Protected"},
                                        {NVME_LBA_RANGE, "LBA Out of Range"},
                                        {0x081, "Capacity Exceeded"},
                                        {0x082, "Namespace Not Ready"},
                                        {0x083, "Reservation Conflict"},
                                        {NVME_INVALID_QUEUE, "Invalid Queue Identifier"},
                                        {0x102, "Invalid Queue Size"},
                                        {0x103, "Abort Command Limit Exceeded"},
                                        {0x105, "Asynchronous Event Request Limit Exceeded"},
                                        {NVME_INVALID_LOG_PAGE, "Invalid Log Page"},
                                        {0x10d, "Feature Identifier Not Saveable"},
                                        {0x10e, "Feature Not Changeable"},
                                        {0x10f, "Feature Not Namespace Specific"},
                                        {0x280, "Write Fault"},
                                        {0x281, "Unrecovered Read Error"},
                                        {0x282, "End-to-end Guard Check Error"},
                                        {0x283, "End-to-end Application Tag Check Error"},
                                        {0x284, "End-to-end Reference Tag Check Error"},
                                        {0x285, "Compare Failure"},
                                        {0x286, "Access Denied"},
                                        {0x287, "Deallocated or Unwritten Logical Block"},
                                        {0x300, "Internal Path Error"},
                                        {0x301, "Asymmetric Access Persistent Loss"},
                                        {0x302, "Asymmetric Access Inaccessible"},
                                        {0x303, "Asymmetric Access Transition"},
                                        {0x360, "Controller Pathing Error"},
                                        {0x370, "Host Pathing Error"},
                                        {0x371, "Command Aborted By Host"}};
/* Codes that mean one thing for a fabrics command, another for an I/O command. */
static const struct vname fabrics_statuses[] = {
    {0x180, "Connect Incompatible Format"},
    {0x181, "Connect Controller Busy"},
    {NVME_CONNECT_INVALID, "Connect Invalid Parameters"},
    {0x183, "Connect Restart Discovery"},
    {0x184, "Connect Invalid Host"},
    {0x190, "Discovery Restart"},
    {0x191, "Authentication Required"},
};
static const struct vname io_statuses[] = {{0x180, "Conflicting Attributes"},
                                           {0x181, "Invalid Protection Information"},
                                           {0x182, "Attempted Write to Read Only Range"}};
#define FIND(table, value) vname_find(table, ARRAY_LEN(table), value)

const char *nvme_command_str(const struct nvme_cmd *c, bool admin)
{
    if (c->opc == NVME_FABRICS)
        return FIND(fctypes, c->fctype);
    return admin ? FIND(admin_opcodes, c->opc) : FIND(io_opcodes, c->opc);
}

const char *nvme_status_str(const struct nvme_cmd *c, bool admin, uint16_t status)
{
    const char *name = FIND(statuses, status & 0x7ff);

    if (!name && c && c->opc == NVME_FABRICS)
        name = FIND(fabrics_statuses, status & 0x7ff);
    else if (!name && c && !admin)
        name = FIND(io_statuses, status & 0x7ff);
    return name;
}

const char *nvme_subject_str(const struct nvme_cmd *c, bool admin)
{
    if (c->opc == NVME_FABRICS)
        return c->fctype == NVME_FCTYPE_PROP_GET || c->fctype == NVME_FCTYPE_PROP_SET ? FIND(properties, c->cdw[1])
                                                                                      : NULL;
    if (!admin)
        return NULL;
    switch (c->opc) {
    case NVME_ADMIN_GET_LOG:
        return FIND(log_pages, c->cdw[0] & 0xff);
    case NVME_ADMIN_IDENTIFY:
        return FIND(cns_values, c->cdw[0] & 0xff);
    case NVME_ADMIN_SET_FEATURES:
    case NVME_ADMIN_GET_FEATURES:
        return FIND(features, c->cdw[0] & 0xff);
    default:
        return NULL;
    }
}

/* --- One line --------------------------------------------------------------------------------- */

static void fabrics_text(struct buf *b, const struct nvme_cmd *c)
{
    if (c->fctype == NVME_FCTYPE_CONNECT)
        buf_printf(b, "qid %u sqsize %u kato %u ms", c->cdw[0] >> 16, (c->cdw[1] & 0xffff) + 1, c->cdw[2]);
    else if (c->fctype == NVME_FCTYPE_PROP_GET)
        buf_printf(b, "offset 0x%x", c->cdw[1]);
    else if (c->fctype == NVME_FCTYPE_PROP_SET)
        buf_printf(b, "offset 0x%x value 0x%llx", c->cdw[1], (unsigned long long)c->cdw[3] << 32 | c->cdw[2]);
}

static void admin_text(struct buf *b, const struct nvme_cmd *c)
{
    switch (c->opc) {
    case NVME_ADMIN_GET_LOG:
        buf_printf(b, "lid 0x%x numd %llu offset %llu", c->cdw[0] & 0xff,
                   ((unsigned long long)(c->cdw[1] & 0xffff) << 16 | c->cdw[0] >> 16) + 1,
                   (unsigned long long)c->cdw[3] << 32 | c->cdw[2]);
        break;
    case NVME_ADMIN_IDENTIFY:
        buf_printf(b, "cns 0x%x cntid %u", c->cdw[0] & 0xff, c->cdw[0] >> 16);
        break;
    case NVME_ADMIN_SET_FEATURES:
        buf_printf(b, "fid 0x%x cdw11 0x%x", c->cdw[0] & 0xff, c->cdw[1]);
        break;
    case NVME_ADMIN_GET_FEATURES:
        buf_printf(b, "fid 0x%x", c->cdw[0] & 0xff);
        break;
    case NVME_ADMIN_ABORT:
        buf_printf(b, "sqid %u cid 0x%x", c->cdw[0] & 0xffff, c->cdw[0] >> 16);
        break;
    default:
        break;
    }
}

/* Opcodes of I/O commands whose cdw10 to cdw12 name logical blocks. */
static bool has_blocks(unsigned opc)
{
    static const uint8_t codes[] = {0x01, 0x02, 0x04, 0x05, 0x08, 0x0c, 0x7d};

    return memchr(codes, (int)opc, sizeof codes) != NULL;
}

void nvme_arguments_text(struct buf *b, const struct nvme_cmd *c, bool admin)
{
    if (c->opc == NVME_FABRICS)
        fabrics_text(b, c);
    else if (admin)
        admin_text(b, c);
    else if (has_blocks(c->opc))
        buf_printf(b, "slba %llu nlb %u%s", (unsigned long long)c->cdw[1] << 32 | c->cdw[0], (c->cdw[2] & 0xffff) + 1,
                   c->cdw[2] >> 30 & 1 ? " FUA" : "");
    else if (c->opc == 0x09)
        buf_printf(b, "ranges %u%s", (c->cdw[0] & 0xff) + 1, c->cdw[1] & 4 ? " deallocate" : "");
}

static void name_text(struct buf *b, const struct nvme_cmd *c, bool admin)
{
    const char *name = nvme_command_str(c, admin), *subject = c->lacks ? NULL : nvme_subject_str(c, admin);

    if (name)
        buf_puts(b, name);
    else if (c->opc == NVME_FABRICS)
        buf_printf(b, "Fabrics Command type 0x%x", c->fctype);
    else
        buf_printf(b, "opcode 0x%x", c->opc);
    if (subject)
        buf_printf(b, " (%s)", subject);
}

void nvme_command_text(struct buf *b, const struct nvme_cmd *c, bool admin)
{
    size_t before;

    name_text(b, c, admin);
    buf_printf(b, " cid 0x%x", c->cid);
    if (c->opc != NVME_FABRICS && c->nsid)
        buf_printf(b, c->nsid == UINT32_MAX ? " nsid all" : " nsid %u", c->nsid);
    if (c->lacks)
        return;
    before = b->len;
    buf_char(b, ' ');
    nvme_arguments_text(b, c, admin);
    if (b->len == before + 1)
        b->len = before;
}

void nvme_status_text(struct buf *b, const struct nvme_cmd *c, bool admin, uint16_t status)
{
    const char *name = nvme_status_str(c, admin, status);

    if (name)
        buf_puts(b, name);
    else
        buf_printf(b, "status code type %u code 0x%x", status >> 8 & 7, status & 0xff);
    if (status & 0x4000)
        buf_puts(b, ", do not retry");
}
