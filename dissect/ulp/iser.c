/* layer 1 (wire): iSER and iSCSI: messages read, recognised, their text and fields. */
#include "dissect/ulp/iser.h"

#include "dissect/ulp/scsi.h"
#include "dissect/ulp/upper_hdr.h"

/* --- Messages --------------------------------------------------------------------------------- */

static bool has_ttt(uint8_t opcode)
{
    return opcode == ISCSI_NOP_OUT || opcode == ISCSI_NOP_IN || opcode == ISCSI_TEXT || opcode == ISCSI_TEXT_RESPONSE;
}

static uint16_t status_of(const uint8_t *bhs)
{
    switch (bhs[0] & 0x3f) {
    case ISCSI_RESPONSE: /* without a SCSI status: the response code */
        return bhs[2] ? (uint16_t)(bhs[2] << 8) : bhs[3];
    case ISCSI_LOGIN_RESPONSE:
        return load_be16(bhs + 36);
    case ISCSI_TASK_MANAGEMENT_RESPONSE:
    case ISCSI_LOGOUT_RESPONSE:
        return bhs[2];
    case ISCSI_REJECT:
        return (uint16_t)(ISER_REJECTED | bhs[2]);
    default:
        return 0;
    }
}

/* The bytes that a command of both directions reads: an additional header segment of type 2. */
static uint32_t bidirectional_read(const uint8_t *ahs, uint32_t len)
{
    uint32_t at = 0;

    while (len - at >= 8) { /* length (without itself and the type), type, then as many bytes, padded */
        uint32_t n = (load_be16(ahs + at) + 3u + 3u) / 4 * 4;
        if (ahs[at + 2] == 2)
            return load_be32(ahs + at + 4);
        if (n > len - at)
            break;
        at += n;
    }
    return 0;
}

/* The PDU behind the header. */
static bool get_pdu(struct iser *m, const uint8_t *b, uint32_t len, bool whole)
{
    const uint8_t *bhs = b + ISER_LEN;
    uint32_t ahs;

    if (len < ISER_LEN + ISCSI_LEN)
        return false;
    ahs = 4u * bhs[4];
    m->opcode = bhs[0] & 0x3f;
    m->flags = bhs[1];
    m->n_data = load_be24(bhs + 5);
    m->data = ISER_LEN + ISCSI_LEN + ahs;
    m->lun = load_be64(bhs + 8);
    m->itt = load_be32(bhs + 16);
    m->ttt = has_ttt(m->opcode) ? load_be32(bhs + 20) : ISCSI_NO_TAG;
    m->status = status_of(bhs);
    if (whole && (m->data > len || m->n_data > len - m->data))
        return false;
    if (m->opcode == ISCSI_COMMAND) {
        m->expected = load_be32(bhs + 20);
        m->cdb = bhs + 32;
        if ((m->flags & 0x60) == 0x60)
            m->read = bidirectional_read(bhs + ISCSI_LEN, min_u32(ahs, len - ISER_LEN - ISCSI_LEN));
    } else if (m->opcode == ISCSI_RESPONSE) {
        m->residual = load_be32(bhs + 44);
    }
    return true;
}

bool iser_get(struct iser *m, const uint8_t *b, uint32_t len, bool whole)
{
    *m = (struct iser){0};
    if (len < ISER_LEN)
        return false;
    m->kind = b[0] >> 4;
    m->wsv = b[0] & 8;
    m->rsv = b[0] & 4;
    m->write_stag = load_be32(b + 4);
    m->write_va = load_be64(b + 8);
    m->read_stag = load_be32(b + 16);
    m->read_va = load_be64(b + 20);
    if (m->kind == ISER_HELLO || m->kind == ISER_HELLO_REPLY)
        return !whole || len == ISER_LEN;
    return m->kind == ISER_CONTROL && get_pdu(m, b, len, whole);
}

bool iser_get_cut(struct iser *m, uint8_t *padded, const uint8_t *b, uint32_t len, uint32_t all)
{
    if (len < ISER_LEAST || len >= ISER_LEN + ISCSI_LEN || all < ISER_LEN + ISCSI_LEN)
        return false;
    memset(padded, 0, ISER_LEN + ISCSI_LEN);
    memcpy(padded, b, len);
    return iser_get(m, padded, ISER_LEN + ISCSI_LEN, false);
}

enum ulp_looks iser_looks_cut(const uint8_t *b, uint32_t len, uint32_t all, bool whole)
{
    uint8_t padded[ISER_LEN + ISCSI_LEN];
    struct iser m;
    bool found = iser_get_cut(&m, padded, b, len, all) || iser_get(&m, b, len, false);

    if (!found || len < ISER_LEN + 8) /* the length of the data segment must be there, to fit */
        return LOOKS_OTHER;
    if (m.kind != ISER_CONTROL || b[1] || b[2] || b[3] || !iscsi_opcode_str(m.opcode))
        return LOOKS_OTHER;
    if (whole && m.data + (m.n_data + 3) / 4 * 4 != all && m.data + m.n_data != all)
        return LOOKS_OTHER;
    return m.opcode < ISCSI_NOP_IN ? LOOKS_CLIENT : LOOKS_SERVER;
}

enum ulp_looks iser_looks(const uint8_t *b, uint32_t len, bool whole)
{
    static const char name[] = "InitiatorName=";
    struct iser m;

    if (len < ISER_LEN + ISCSI_LEN || b[0] >> 4 != ISER_CONTROL || b[1] || b[2] || b[3])
        return LOOKS_OTHER;
    if (!iser_get(&m, b, len, whole) || !iscsi_opcode_str(m.opcode))
        return LOOKS_OTHER;
    if (whole && m.data + (m.n_data + 3) / 4 * 4 != len && m.data + m.n_data != len)
        return LOOKS_OTHER;
    if (m.opcode == ISCSI_LOGIN && m.n_data > sizeof name && len - m.data > sizeof name &&
        memcmp(b + m.data, name, sizeof name - 1) == 0)
        return LOOKS_FIRST;
    return m.opcode < ISCSI_NOP_IN ? LOOKS_CLIENT : LOOKS_SERVER;
}

bool iser_private_fits(const uint8_t *b, uint32_t len)
{
    for (uint32_t i = 1; i < len; i++)
        if (b[i])
            return false;
    return len >= 4 && !(b[0] & 0x3f);
}

struct ulp_body iser_data(const struct iser *m, const struct ulp_body *body)
{
    return ulp_part(body, m->data, m->n_data);
}

bool iscsi_next_key(const struct ulp_body *data, uint32_t *at, struct iscsi_key *k)
{
    const uint8_t *end;

    if (*at >= data->len)
        return false;
    end = memchr(data->b + *at, 0, data->len - *at);
    k->at = *at;
    k->len = end ? (uint32_t)(end - data->b) - *at : data->len - *at;
    *at += k->len + 1;
    return k->len > 0;
}

/* --- Names ------------------------------------------------------------------------------------ */

static const struct vname opcodes[] = {{ISCSI_NOP_OUT, "NOP-Out"},
                                       {ISCSI_COMMAND, "SCSI Command"},
                                       {ISCSI_TASK_MANAGEMENT, "Task Management"},
                                       {ISCSI_LOGIN, "Login"},
                                       {ISCSI_TEXT, "Text"},
                                       {ISCSI_DATA_OUT, "SCSI Data-Out"},
                                       {ISCSI_LOGOUT, "Logout"},
                                       {ISCSI_SNACK, "SNACK"},
                                       {ISCSI_NOP_IN, "NOP-In"},
                                       {ISCSI_RESPONSE, "SCSI Response"},
                                       {ISCSI_TASK_MANAGEMENT_RESPONSE, "Task Management Response"},
                                       {ISCSI_LOGIN_RESPONSE, "Login Response"},
                                       {ISCSI_TEXT_RESPONSE, "Text Response"},
                                       {ISCSI_DATA_IN, "SCSI Data-In"},
                                       {ISCSI_LOGOUT_RESPONSE, "Logout Response"},
                                       {ISCSI_R2T, "Ready To Transfer"},
                                       {ISCSI_ASYNC, "Asynchronous Message"},
                                       {ISCSI_REJECT, "Reject"}};
static const struct vdesc pdu_desc = VDESC_NAMES(opcodes);

static const struct vname functions[] = {{1, "Abort Task"},        {2, "Abort Task Set"},     {3, "Clear ACA"},
                                         {4, "Clear Task Set"},    {5, "Logical Unit Reset"}, {6, "Target Warm Reset"},
                                         {7, "Target Cold Reset"}, {8, "Task Reassign"}};
static const struct vdesc function_desc = VDESC_NAMES(functions);

static const struct vname login_statuses[] = {{0x000, "Success"},
                                              {0x101, "Target moved temporarily"},
                                              {0x102, "Target moved permanently"},
                                              {0x200, "Initiator error"},
                                              {0x201, "Authentication failure"},
                                              {0x202, "Authorization failure"},
                                              {0x203, "Target not found"},
                                              {0x204, "Target removed"},
                                              {0x205, "Unsupported version"},
                                              {0x206, "Too many connections"},
                                              {0x207, "Missing parameter"},
                                              {0x208, "Cannot be included in the session"},
                                              {0x209, "Session type not supported"},
                                              {0x20a, "Session does not exist"},
                                              {0x20b, "Invalid request during login"},
                                              {0x300, "Target error"},
                                              {0x301, "Service unavailable"},
                                              {0x302, "Out of resources"}};
static const struct vdesc login_status_desc = VDESC_NAMES(login_statuses);

static const struct vname task_responses[] = {{0, "Function complete"},
                                              {1, "Task does not exist"},
                                              {2, "LUN does not exist"},
                                              {3, "Task still allegiant"},
                                              {4, "Task allegiance reassignment not supported"},
                                              {5, "Function not supported"},
                                              {6, "Function authorization failed"},
                                              {255, "Function rejected"}};
static const struct vdesc task_response_desc = VDESC_NAMES(task_responses);

static const struct vname logout_reasons[] = {
    {0, "close the session"}, {1, "close the connection"}, {2, "remove the connection for recovery"}};
static const struct vdesc logout_reason_desc = VDESC_NAMES(logout_reasons);
static const struct vname logout_responses[] = {
    {0, "Closed"}, {1, "CID not found"}, {2, "Connection recovery not supported"}, {3, "Cleanup failed"}};
static const struct vdesc logout_response_desc = VDESC_NAMES(logout_responses);

static const struct vname reject_reasons[] = {{0x02, "Data digest error"},
                                              {0x03, "SNACK reject"},
                                              {0x04, "Protocol error"},
                                              {0x05, "Command not supported"},
                                              {0x06, "Too many immediate commands"},
                                              {0x07, "Task in progress"},
                                              {0x08, "Invalid data ACK"},
                                              {0x09, "Invalid PDU field"},
                                              {0x0a, "Long operation reject"},
                                              {0x0b, "Negotiation reset"},
                                              {0x0c, "Waiting for logout"}};
static const struct vdesc reject_reason_desc = VDESC_NAMES(reject_reasons);

const char *iscsi_opcode_str(uint8_t opcode)
{
    return vname_find(opcodes, ARRAY_LEN(opcodes), opcode);
}

const char *iscsi_function_str(uint8_t function)
{
    return vname_find(functions, ARRAY_LEN(functions), function);
}

void iser_status_text(struct buf *b, uint8_t opcode, uint16_t status)
{
    const struct vdesc *desc = opcode == ISCSI_LOGIN             ? &login_status_desc
                               : opcode == ISCSI_TASK_MANAGEMENT ? &task_response_desc
                               : opcode == ISCSI_LOGOUT          ? &logout_response_desc
                                                                 : NULL;

    if (status >> 8 == ISER_REJECTED >> 8 && opcode != ISCSI_LOGIN) {
        buf_puts(b, "rejected: ");
        desc = &reject_reason_desc;
        status &= 0xff;
    }
    if (!desc)
        buf_puts(b, "answered");
    else if (!vdesc_print(b, desc, status))
        buf_printf(b, "status 0x%x", status);
}

/* --- Fields of iSER --------------------------------------------------------------------------- */

#define NUMBER(when, at, bytes, type, base, desc, abbrev, label, blurb)                                                \
    FIELD_ROW(when, 8 * (at), 8 * (bytes), type, base, desc, 0, abbrev, label, blurb)
#define WORD(when, at, abbrev, label, blurb)  NUMBER(when, at, 4, FT_UINT32, BASE_DEC, NULL, abbrev, label, blurb)
#define TAG(when, at, abbrev, label, blurb)   NUMBER(when, at, 4, FT_UINT32, BASE_HEX, NULL, abbrev, label, blurb)
#define FLAG(when, bit, abbrev, label, blurb) FIELD_ROW(when, bit, 1, FT_BOOL, BASE_NONE, NULL, 0, abbrev, label, blurb)

static const struct vname iser_kinds[] = {
    {ISER_CONTROL, "iSCSI Control-Type PDU"}, {ISER_HELLO, "Hello"}, {ISER_HELLO_REPLY, "HelloReply"}};
static const struct vdesc iser_kind_desc = VDESC_NAMES(iser_kinds);

static bool is_control(const uint8_t *p, uint32_t len)
{
    return len >= ISER_LEN && p[0] >> 4 == ISER_CONTROL;
}
static bool is_hello(const uint8_t *p, uint32_t len)
{
    return len >= 4 && (p[0] >> 4 == ISER_HELLO || p[0] >> 4 == ISER_HELLO_REPLY);
}
static bool is_hello_reply(const uint8_t *p, uint32_t len)
{
    return len >= 4 && p[0] >> 4 == ISER_HELLO_REPLY;
}

static const struct field iser_fields[] = {
    NUMBER(NULL, 0, 1, FT_UINT8, BASE_HEX, NULL, "iser.flags", "Flags", "Kind and flags."),
    FIELD_ROW(NULL, 0, 4, FT_UINT8, BASE_HEX, &iser_kind_desc, 0, "iser.flags.opcode", "Opcode", "Kind of message."),
    FLAG(is_control, 4, "iser.flags.wsv", "WSV", "The write STag is valid: the target READs the data."),
    FLAG(is_control, 5, "iser.flags.rsv", "RSV", "The read STag is valid: the target WRITEs the data."),
    FLAG(is_hello_reply, 7, "iser.flags.rej", "REJ", "The connection is rejected."),
    NUMBER(is_hello, 2, 2, FT_UINT16, BASE_DEC, NULL, "iser.ird", "IRD or ORD",
           "Of a Hello the READs that the initiator takes, of a HelloReply those that the target begins."),
    TAG(is_control, 4, "iser.write_stag", "Write STag", "R_Key of the data that the target READs."),
    NUMBER(is_control, 8, 8, FT_UINT64, BASE_HEX, NULL, "iser.write_base_offset", "Write Base Offset",
           "Address of the data that the target READs; those in the message are not counted."),
    TAG(is_control, 16, "iser.read_stag", "Read STag", "R_Key of the memory that the target WRITEs."),
    NUMBER(is_control, 20, 8, FT_UINT64, BASE_HEX, NULL, "iser.read_base_offset", "Read Base Offset", "Its address."),
};
UPPER_HDR(iser, "iser", "iSCSI Extensions for RDMA", "iser", "iSER", ISER_LEN);

static const struct field iser_private_fields[] = {
    FLAG(NULL, 0, "rdma.iser.cm.zbva_not", "ZBVA not supported", "The sender takes no zero-based addresses."),
    FLAG(NULL, 1, "rdma.iser.cm.invalidate_not", "Remote Invalidation not supported",
         "The sender takes no SEND with Invalidate."),
};
UPPER_HDR(iser_private, "rdma.iser.cm", "iSER private data", "iser", NULL, 4);

/* --- Fields of iSCSI -------------------------------------------------------------------------- */

#define OPCODE_IS(name, condition)                                                                                     \
    static bool name(const uint8_t *p, uint32_t len)                                                                   \
    {                                                                                                                  \
        const uint8_t op = len >= 4 ? p[0] & 0x3f : 0xff; /* each field is shown only if its bytes are there */        \
        return op != 0xff && (condition);                                                                              \
    }
OPCODE_IS(is_command, op == ISCSI_COMMAND)
OPCODE_IS(is_response, op == ISCSI_RESPONSE)
OPCODE_IS(is_login, op == ISCSI_LOGIN)
OPCODE_IS(is_login_response, op == ISCSI_LOGIN_RESPONSE)
OPCODE_IS(is_any_login, op == ISCSI_LOGIN || op == ISCSI_LOGIN_RESPONSE)
OPCODE_IS(is_text, op == ISCSI_TEXT || op == ISCSI_TEXT_RESPONSE)
OPCODE_IS(is_logout, op == ISCSI_LOGOUT)
OPCODE_IS(is_logout_response, op == ISCSI_LOGOUT_RESPONSE)
OPCODE_IS(is_task, op == ISCSI_TASK_MANAGEMENT)
OPCODE_IS(is_task_response, op == ISCSI_TASK_MANAGEMENT_RESPONSE)
OPCODE_IS(is_reject, op == ISCSI_REJECT)
OPCODE_IS(is_async, op == ISCSI_ASYNC)
OPCODE_IS(is_of_initiator, op < ISCSI_NOP_IN)
OPCODE_IS(is_immediate, op < ISCSI_NOP_IN && op != ISCSI_LOGIN)
OPCODE_IS(is_of_target, op >= ISCSI_NOP_IN)
OPCODE_IS(has_flags, op == ISCSI_COMMAND || op == ISCSI_RESPONSE || op == ISCSI_TEXT || op == ISCSI_TEXT_RESPONSE)
OPCODE_IS(has_lun, op == ISCSI_COMMAND || op == ISCSI_TEXT || op == ISCSI_TEXT_RESPONSE ||
                       op == ISCSI_TASK_MANAGEMENT || op == ISCSI_NOP_OUT)
OPCODE_IS(has_itt, op != ISCSI_REJECT && op != ISCSI_ASYNC)
OPCODE_IS(has_target_tag, has_ttt(op))
OPCODE_IS(has_cmdsn, op < ISCSI_NOP_IN && op != ISCSI_DATA_OUT && op != ISCSI_SNACK)
OPCODE_IS(has_cid, op == ISCSI_LOGIN || op == ISCSI_LOGOUT)

static bool request_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    v->u = p->note.ulp_command_in;
    return p->note.have & NOTE_ULP && v->u && is_response(layer_bytes(p, l), l->len);
}
static bool time_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    v->u = (uint64_t)p->note.ulp_latency;
    return p->note.have & NOTE_ULP_DONE && is_response(layer_bytes(p, l), l->len);
}

static const struct vname attributes[] = {
    {0, "Untagged"}, {1, "Simple"}, {2, "Ordered"}, {3, "Head of Queue"}, {4, "ACA"}};
static const struct vdesc attribute_desc = VDESC_NAMES(attributes);
static const struct vname stages[] = {
    {0, "Security negotiation"}, {1, "Operational negotiation"}, {3, "Full feature phase"}};
static const struct vdesc stage_desc = VDESC_NAMES(stages);
static const struct vname response_codes[] = {{0, "Command completed at target"}, {1, "Target failure"}};
static const struct vdesc response_code_desc = VDESC_NAMES(response_codes);
static const struct vname events[] = {{0, "SCSI asynchronous event, in the sense data"},
                                      {1, "Target requests logout"},
                                      {2, "Target drops the connection"},
                                      {3, "Target drops all connections"},
                                      {4, "Target requests parameter negotiation"}};
static const struct vdesc event_desc = VDESC_NAMES(events);

static const struct field iscsi_fields[] = {
    FIELD_ROW(NULL, 2, 6, FT_UINT8, BASE_HEX, &pdu_desc, 0, "iscsi.opcode", "Opcode", "Which PDU."),
    FLAG(is_immediate, 1, "iscsi.I", "I", "Immediate delivery."),
    NUMBER(has_flags, 1, 1, FT_UINT8, BASE_HEX, NULL, "iscsi.flags", "Flags", "Flags of the opcode."),
    FLAG(is_command, 8, "iscsi.scsicommand.F", "F", "The final PDU of the command."),
    FLAG(is_command, 9, "iscsi.scsicommand.R", "R", "Data are read from the target."),
    FLAG(is_command, 10, "iscsi.scsicommand.W", "W", "Data are written to the target."),
    FIELD_ROW(is_command, 13, 3, FT_UINT8, BASE_HEX, &attribute_desc, 0, "iscsi.scsicommand.attr", "Attr",
              "Attribute of the task."),
    FLAG(is_text, 8, "iscsi.text.F", "F", "The final PDU of the sequence."),
    FLAG(is_text, 9, "iscsi.text.C", "C", "The text is continued."),
    FLAG(is_any_login, 8, "iscsi.login.T", "T", "Transit to the next stage."),
    FLAG(is_any_login, 9, "iscsi.login.C", "C", "The text is continued."),
    FIELD_ROW(is_any_login, 12, 2, FT_UINT8, BASE_HEX, &stage_desc, 0, "iscsi.login.csg", "CSG", "Current stage."),
    FIELD_ROW(is_any_login, 14, 2, FT_UINT8, BASE_HEX, &stage_desc, 0, "iscsi.login.nsg", "NSG", "Next stage."),
    FIELD_ROW(is_task, 9, 7, FT_UINT8, BASE_HEX, &function_desc, 0, "iscsi.taskmanfun.function", "Function",
              "What is to be done with tasks."),
    FIELD_ROW(is_logout, 9, 7, FT_UINT8, BASE_HEX, &logout_reason_desc, 0, "iscsi.logout.reason", "Reason",
              "What is to be closed."),
    FLAG(is_response, 11, "iscsi.scsiresponse.o", "o", "Overflow of the read part of a bidirectional command."),
    FLAG(is_response, 12, "iscsi.scsiresponse.u", "u", "Underflow of the read part of a bidirectional command."),
    FLAG(is_response, 13, "iscsi.scsiresponse.O", "O", "More bytes than expected would have been moved."),
    FLAG(is_response, 14, "iscsi.scsiresponse.U", "U", "Fewer bytes than expected were moved."),
    NUMBER(is_response, 2, 1, FT_UINT8, BASE_HEX, &response_code_desc, "iscsi.scsiresponse.response", "Response",
           "0: the command was completed, the status says how."),
    NUMBER(is_response, 3, 1, FT_UINT8, BASE_HEX, &scsi_status_desc, "iscsi.scsiresponse.status", "Status",
           "SCSI status."),
    NUMBER(is_task_response, 2, 1, FT_UINT8, BASE_HEX, &task_response_desc, "iscsi.taskmanfun.response", "Response",
           "What became of it."),
    NUMBER(is_logout_response, 2, 1, FT_UINT8, BASE_HEX, &logout_response_desc, "iscsi.logout.response", "Response",
           "What became of it."),
    NUMBER(is_reject, 2, 1, FT_UINT8, BASE_HEX, &reject_reason_desc, "iscsi.reject.reason", "Reason",
           "Why a PDU was rejected; its header is in the data segment."),
    NUMBER(is_any_login, 2, 1, FT_UINT8, BASE_HEX, NULL, "iscsi.versionmax", "VersionMax", "Highest version."),
    NUMBER(is_login, 3, 1, FT_UINT8, BASE_HEX, NULL, "iscsi.versionmin", "VersionMin", "Lowest version."),
    NUMBER(is_login_response, 3, 1, FT_UINT8, BASE_HEX, NULL, "iscsi.versionactive", "VersionActive", "Version."),
    NUMBER(NULL, 4, 1, FT_UINT8, BASE_DEC, NULL, "iscsi.totalahslength", "TotalAHSLength",
           "Length of additional header segments, in words of four bytes."),
    NUMBER(NULL, 5, 3, FT_UINT32, BASE_DEC, NULL, "iscsi.datasegmentlength", "DataSegmentLength",
           "Bytes behind the headers, without padding."),
    FIELD_ROW(has_lun, 66, 14, FT_UINT16, BASE_HEX, NULL, 0, "scsi.lun", "LUN", "Logical unit."),
    FIELD_AT(is_any_login, 8, 6, FT_BYTES, "iscsi.isid", "ISID", "The initiator's part of the session identifier."),
    NUMBER(is_any_login, 14, 2, FT_UINT16, BASE_HEX, NULL, "iscsi.tsih", "TSIH",
           "The target's session handle; 0: a new session."),
    TAG(has_itt, 16, "iscsi.initiatortasktag", "InitiatorTaskTag", "Identifier of the task."),
    WORD(is_command, 20, "iscsi.scsicommand.expecteddatatransferlength", "ExpectedDataTransferLength",
         "Bytes that the command is to move."),
    TAG(has_target_tag, 20, "iscsi.targettransfertag", "TargetTransferTag", "The target's tag."),
    TAG(is_task, 20, "iscsi.taskmanfun.referencedtasktag", "ReferencedTaskTag", "Tag of the task that is meant."),
    NUMBER(has_cid, 20, 2, FT_UINT16, BASE_HEX, NULL, "iscsi.cid", "CID", "Connection of the session."),
    WORD(has_cmdsn, 24, "iscsi.cmdsn", "CmdSN", "Sequence number of the command."),
    WORD(is_of_initiator, 28, "iscsi.expstatsn", "ExpStatSN", "Sequence number of the status that is expected."),
    WORD(is_of_target, 24, "iscsi.statsn", "StatSN", "Sequence number of the status."),
    WORD(is_of_target, 28, "iscsi.expcmdsn", "ExpCmdSN", "Sequence number of the command that is expected."),
    WORD(is_of_target, 32, "iscsi.maxcmdsn", "MaxCmdSN", "The last command that the target takes."),
    NUMBER(is_login_response, 36, 2, FT_UINT16, BASE_HEX, &login_status_desc, "iscsi.login.status", "Status",
           "Class and detail."),
    TAG(is_response, 36, "iscsi.expdatasn", "ExpDataSN", "Number of data PDUs that the target sent."),
    WORD(is_response, 40, "iscsi.scsiresponse.bidireadresidualcount", "BidiReadResidualCount",
         "Bytes that the read part of a bidirectional command lacks, or has too many."),
    WORD(is_response, 44, "iscsi.scsiresponse.residualcount", "ResidualCount",
         "Bytes that were not moved, or would have been too many."),
    NUMBER(is_logout_response, 40, 2, FT_UINT16, BASE_HEX, NULL, "iscsi.time2wait", "Time2Wait",
           "Seconds before a connection may be set up again."),
    NUMBER(is_logout_response, 42, 2, FT_UINT16, BASE_HEX, NULL, "iscsi.time2retain", "Time2Retain",
           "Seconds that tasks are kept."),
    NUMBER(is_async, 36, 1, FT_UINT8, BASE_HEX, &event_desc, "iscsi.asyncevent", "AsyncEvent", "What happened."),
    FIELD_GET(request_get, FT_FRAMENUM, BASE_DEC, NULL, 0, "iscsi.request_frame", "Request in",
              "Frame of the command."),
    FIELD_GET(time_get, FT_REL_TIME, BASE_NONE, NULL, 0, "iscsi.time", "Time from request",
              "Time since the first packet of the command."),
};
UPPER_HDR(iscsi, "iscsi", "iSCSI", "iscsi", "iSCSI", ISCSI_LEN);

/* Bytes of the name of a key; its length: there is no "=". */
static uint32_t name_len(const uint8_t *b, uint32_t len)
{
    const uint8_t *end = len ? memchr(b, '=', len) : NULL;

    return end ? (uint32_t)(end - b) : len;
}

static bool is_no_pair(const uint8_t *b, uint32_t len)
{
    uint32_t n = name_len(b, len);

    return !n || n == len;
}

static bool key_name_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    const uint8_t *b = layer_bytes(p, l);

    *v = (struct value){.type = FT_STRING, .p = b, .len = name_len(b, l->len)};
    return !is_no_pair(b, l->len);
}

static bool key_value_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    const uint8_t *b = layer_bytes(p, l);
    uint32_t n = name_len(b, l->len);

    if (is_no_pair(b, l->len))
        return false;
    *v = (struct value){.type = FT_STRING, .p = b + n + 1, .len = l->len - n - 1};
    return true;
}

static const struct field iscsi_key_fields[] = {
    FIELD_AT(NULL, 0, 0, FT_STRING, "iscsi.keyvalue", "KeyValue", "A key of the negotiation."),
    FIELD_GET(key_name_get, FT_STRING, BASE_NONE, NULL, FLD_HIDDEN, "rdma.iscsi.key.name", "Name",
              "What is negotiated."),
    FIELD_GET(key_value_get, FT_STRING, BASE_NONE, NULL, FLD_HIDDEN, "rdma.iscsi.key.value", "Value",
              "What its sender says."),
    FIELD_ROW(is_no_pair, 0, 0, FT_NONE, BASE_NONE, NULL, 0, "iscsi.keyvalue.invalid", "Invalid key/value pair",
              "It is no name with a value."),
};
UPPER_HDR(iscsi_key, "rdma.iscsi.key", "iSCSI key", "iscsi", NULL, 0);

static const struct field iscsi_immediate_fields[] = {
    FIELD_AT(NULL, 0, 0, FT_BYTES, "iscsi.immediatedata", "ImmediateData", "Data of the command, in its message."),
};
UPPER_HDR(iscsi_immediate, "rdma.iscsi.immediate", "iSCSI immediate data", "iscsi", NULL, 0);

static const struct field iscsi_ping_fields[] = {
    FIELD_AT(NULL, 0, 0, FT_BYTES, "iscsi.pingdata", "PingData", "Data of a NOP."),
};
UPPER_HDR(iscsi_ping, "rdma.iscsi.ping", "iSCSI ping data", "iscsi", NULL, 0);

/* --- Layers ----------------------------------------------------------------------------------- */

static void key_layers(struct pkt *p, const struct ulp_body *data)
{
    struct iscsi_key k;
    uint32_t at = 0;

    while (iscsi_next_key(data, &at, &k))
        ulp_layer(p, &iscsi_key_hdr, data, k.at, k.len);
}

static void data_layers(struct pkt *p, const struct iser *m, const struct ulp_body *data)
{
    switch (m->opcode) {
    case ISCSI_LOGIN:
    case ISCSI_LOGIN_RESPONSE:
    case ISCSI_TEXT:
    case ISCSI_TEXT_RESPONSE:
        key_layers(p, data);
        break;
    case ISCSI_COMMAND:
        ulp_layer(p, &iscsi_immediate_hdr, data, 0, data->len);
        break;
    case ISCSI_RESPONSE: /* length of the sense data, then they */
        if (data->len > 2)
            scsi_sense_layer(p, data, 2, load_be16(data->b));
        break;
    case ISCSI_NOP_OUT:
    case ISCSI_NOP_IN:
        ulp_layer(p, &iscsi_ping_hdr, data, 0, data->len);
        break;
    default:
        break;
    }
}

void iser_cut_layers(struct pkt *p, const struct ulp_body *body)
{
    ulp_layer(p, &iser_hdr, body, 0, ISER_LEN);
    if (body->b[0] >> 4 == ISER_CONTROL)
        ulp_layer(p, &iscsi_hdr, body, ISER_LEN, ISCSI_LEN);
}

void iser_layers(struct pkt *p, const struct ulp_body *body, const struct iser *m)
{
    const struct ulp_body data = iser_data(m, body);

    ulp_layer(p, &iser_hdr, body, 0, ISER_LEN);
    if (m->kind != ISER_CONTROL)
        return;
    ulp_layer(p, &iscsi_hdr, body, ISER_LEN, ISCSI_LEN);
    if (m->opcode == ISCSI_COMMAND)
        scsi_cdb_layer(p, body, ISER_LEN + 32);
    data_layers(p, m, &data);
}

void iser_private_layers(struct pkt *p, const struct ulp_body *body)
{
    ulp_layer(p, &iser_private_hdr, body, 0, 4);
}
