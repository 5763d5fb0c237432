/* layer 1 (wire): SRP: information units and logins read, recognised, their fields. */
#include "dissect/ulp/srp.h"

#include "dissect/ulp/scsi.h"
#include "dissect/ulp/upper_hdr.h"

#define MEMORY_LEN 16 /* address, R_Key, length */

/* --- Units ------------------------------------------------------------------------------------ */

static const struct unit {
    uint8_t type, side;     /* side: enum ulp_side of its sender */
    uint8_t len;            /* bytes at least */
    uint8_t zeros, n_zeros; /* reserved bytes of any sender: the first one, how many */
    const char *name;
} units[] = {
    {SRP_TSK_MGMT, ULP_CLIENT, 48, 2, 6, "SRP_TSK_MGMT"}, {SRP_CMD, ULP_CLIENT, SRP_CMD_LEN, 2, 3, "SRP_CMD"},
    {SRP_I_LOGOUT, ULP_CLIENT, 16, 1, 7, "SRP_I_LOGOUT"}, {SRP_CRED_RSP, ULP_CLIENT, 16, 1, 7, "SRP_CRED_RSP"},
    {SRP_AER_RSP, ULP_CLIENT, 16, 1, 7, "SRP_AER_RSP"},   {SRP_T_LOGOUT, ULP_SERVER, 16, 2, 2, "SRP_T_LOGOUT"},
    {SRP_CRED_REQ, ULP_SERVER, 16, 2, 2, "SRP_CRED_REQ"}, {SRP_AER_REQ, ULP_SERVER, 36, 2, 2, "SRP_AER_REQ"},
    {SRP_RSP, ULP_SERVER, 36, 2, 2, "SRP_RSP"},
};

static const struct unit *unit_of(uint8_t type)
{
    for (unsigned i = 0; i < ARRAY_LEN(units); i++)
        if (units[i].type == type)
            return &units[i];
    return NULL;
}

/* Bytes of the descriptors of one way. */
static uint32_t descriptors_len(uint8_t format, uint8_t count)
{
    switch (format) {
    case SRP_DIRECT:
        return MEMORY_LEN;
    case SRP_INDIRECT: /* where the whole list is, its length, and as many of it as are here */
        return MEMORY_LEN + 4 + (uint32_t)count * MEMORY_LEN;
    case SRP_IMMEDIATE:
        return 4;
    default:
        return 0;
    }
}

static bool get_command(struct srp *s, const uint8_t *b, uint32_t len, bool whole)
{
    uint32_t at = SRP_CMD_LEN + (b[31] & ~3u);

    s->cdb = b + 32;
    for (unsigned way = 0; way < 2; way++) {
        s->format[way] = way ? b[5] & 15 : b[5] >> 4;
        s->count[way] = b[6 + way];
        s->at[way] = at;
        at += descriptors_len(s->format[way], s->count[way]);
        if (s->format[way] > SRP_IMMEDIATE)
            return false;
    }
    return !whole || at <= len;
}

static bool get_response(struct srp *s, const uint8_t *b, uint32_t len, bool whole)
{
    s->credits = (int32_t)load_be32(b + 4);
    s->flags = b[18];
    s->status = b[19];
    s->residual[0] = load_be32(b + 20);
    s->residual[1] = load_be32(b + 24);
    s->n_sense = s->flags & 2 ? load_be32(b + 28) : 0;
    s->n_response = s->flags & 1 ? load_be32(b + 32) : 0;
    return !whole || (s->n_response <= len - 36 && s->n_sense <= len - 36 - s->n_response);
}

bool srp_get(struct srp *s, const uint8_t *b, uint32_t len, bool whole)
{
    const struct unit *u = len ? unit_of(b[0]) : NULL;

    *s = (struct srp){0};
    if (!u || len < u->len)
        return false;
    s->type = b[0];
    s->tag = load_be64(b + 8);
    if (s->type == SRP_CMD || s->type == SRP_TSK_MGMT || s->type == SRP_AER_REQ)
        s->lun = load_be64(b + 20);
    if (s->type == SRP_TSK_MGMT)
        s->function = b[30];
    if (s->type == SRP_CRED_REQ)
        s->credits = (int32_t)load_be32(b + 4);
    if (s->type == SRP_CMD)
        return get_command(s, b, len, whole);
    return s->type != SRP_RSP || get_response(s, b, len, whole);
}

bool srp_get_cut(struct srp *s, uint8_t *padded, const uint8_t *b, uint32_t len, uint32_t all)
{
    if (len < SRP_CMD_LEAST || len >= SRP_CMD_LEN || all < SRP_CMD_LEN || b[0] != SRP_CMD)
        return false;
    memset(padded, 0, SRP_CMD_LEN);
    memcpy(padded, b, len);
    return srp_get(s, padded, SRP_CMD_LEN, false);
}

bool srp_memory(const struct srp *s, const uint8_t *b, uint32_t len, unsigned way, unsigned i, struct srp_memory *m)
{
    uint32_t at = s->at[way];

    if (s->format[way] == SRP_INDIRECT)
        at += MEMORY_LEN + 4 + i * MEMORY_LEN;
    if (i >= (s->format[way] == SRP_DIRECT     ? 1u
              : s->format[way] == SRP_INDIRECT ? s->count[way]
                                               : 0u) ||
        len < MEMORY_LEN || at > len - MEMORY_LEN)
        return false;
    *m = (struct srp_memory){load_be64(b + at), load_be32(b + at + 8), load_be32(b + at + 12)};
    return true;
}

/* Where the length of this way's data is. */
static uint32_t len_at(const struct srp *s, unsigned way)
{
    static const uint8_t where[] = {[SRP_DIRECT] = 12, [SRP_INDIRECT] = MEMORY_LEN, [SRP_IMMEDIATE] = 0};

    return s->at[way] + where[s->format[way]];
}

bool srp_has_len(const struct srp *s, uint32_t len, unsigned way)
{
    return s->format[way] != SRP_NO_DATA && len >= 4 && len_at(s, way) <= len - 4;
}

uint32_t srp_data_len(const struct srp *s, const uint8_t *b, uint32_t len, unsigned way)
{
    return srp_has_len(s, len, way) ? load_be32(b + len_at(s, way)) : 0;
}

static enum ulp_looks side_of(const struct unit *u, const uint8_t *b)
{
    for (unsigned i = 0; i < u->n_zeros; i++)
        if (b[u->zeros + i])
            return LOOKS_OTHER;
    return u->side == ULP_CLIENT ? LOOKS_CLIENT : LOOKS_SERVER;
}

enum ulp_looks srp_looks(const uint8_t *b, uint32_t len, bool whole)
{
    const struct unit *u = len ? unit_of(b[0]) : NULL;
    bool has_one_length = u && u->type != SRP_CMD && u->type != SRP_RSP;
    struct srp s;

    if (!u || !srp_get(&s, b, len, whole) || (has_one_length && whole && len != u->len))
        return LOOKS_OTHER;
    return side_of(u, b);
}

enum ulp_looks srp_looks_cut(const uint8_t *b, uint32_t len, uint32_t all, bool whole)
{
    uint8_t padded[SRP_CMD_LEN];
    uint32_t end = 0;
    struct srp s;

    if (!srp_get_cut(&s, padded, b, len, all))
        return srp_looks(b, len, false);
    for (unsigned way = 0; way < 2; way++)
        end = s.at[way] + descriptors_len(s.format[way], s.count[way]);
    return whole && end > all ? LOOKS_OTHER : side_of(unit_of(SRP_CMD), b);
}

/* --- Logins ----------------------------------------------------------------------------------- */

static bool is_zero(const uint8_t *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (b[i])
            return false;
    return true;
}

/* Formats of buffers (direct 2, indirect 4), the longest unit, the port of the initiator. */
static bool login_fits(uint16_t formats, uint32_t iu_len, const uint8_t *port)
{
    return formats && !(formats & ~6u) && iu_len >= 64 && iu_len <= 65536 && !is_zero(port, 16);
}

/* tag (8), formats (2), flags, type, longest unit (4), ports of initiator and target (16 each), offset of immediate
 * data (2) */
static bool is_login_of_rdma_cm(const uint8_t *b, uint32_t len)
{
    return len >= 56 && b[11] == SRP_LOGIN_REQ && is_zero(b + 50, 6) &&
           login_fits(load_be16(b + 8), load_be32(b + 12), b + 16);
}
static bool is_login_of_ib_cm(const uint8_t *b, uint32_t len)
{
    return len >= 64 && is_zero(b, 8) && is_zero(b + 20, 4) && login_fits(load_be16(b + 24), load_be32(b + 16), b + 32);
}

bool srp_private_fits(const uint8_t *b, uint32_t len)
{
    return is_login_of_rdma_cm(b, len) || is_login_of_ib_cm(b, len);
}

/* --- Names ------------------------------------------------------------------------------------ */

static const struct vname types[] = {
    {SRP_LOGIN_REQ, "SRP_LOGIN_REQ"}, {SRP_TSK_MGMT, "SRP_TSK_MGMT"}, {SRP_CMD, "SRP_CMD"},
    {SRP_I_LOGOUT, "SRP_I_LOGOUT"},   {SRP_CRED_RSP, "SRP_CRED_RSP"}, {SRP_AER_RSP, "SRP_AER_RSP"},
    {SRP_T_LOGOUT, "SRP_T_LOGOUT"},   {SRP_CRED_REQ, "SRP_CRED_REQ"}, {SRP_AER_REQ, "SRP_AER_REQ"},
    {SRP_LOGIN_RSP, "SRP_LOGIN_RSP"}, {SRP_RSP, "SRP_RSP"},           {SRP_LOGIN_REJ, "SRP_LOGIN_REJ"}};
static const struct vdesc type_desc = VDESC_NAMES(types);

static const struct vname functions[] = {
    {0x01, "Abort Task"}, {0x02, "Abort Task Set"}, {0x04, "Clear Task Set"}, {0x08, "LUN Reset"}, {0x40, "Clear ACA"}};
static const struct vdesc function_desc = VDESC_NAMES(functions);

static const struct vname reasons[] = {{0x00010000, "unable to establish an RDMA channel"},
                                       {0x00010001, "insufficient resources"},
                                       {0x00010002, "requested information units are too large"},
                                       {0x00010003, "unable to associate the channel with an I_T nexus"},
                                       {0x00010004, "unsupported format of data descriptors"},
                                       {0x00010005, "no support for several channels"},
                                       {0x00010006, "limit of channels reached, or (Linux) no ACL for the initiator"}};
static const struct vdesc reason_desc = VDESC_NAMES(reasons);

static const struct vname formats[] = {{0, "none"}, {1, "direct"}, {2, "indirect"}, {3, "immediate"}};
static const struct vdesc format_desc = VDESC_NAMES(formats);

const char *srp_function_str(uint8_t function)
{
    return vname_find(functions, ARRAY_LEN(functions), function);
}

const char *srp_type_str(uint8_t type)
{
    return vname_find(types, ARRAY_LEN(types), type);
}

/* --- Fields ----------------------------------------------------------------------------------- */

#define NUMBER(when, at, bytes, type, base, desc, abbrev, label, blurb)                                                \
    FIELD_ROW(when, 8 * (at), 8 * (bytes), type, base, desc, 0, abbrev, label, blurb)
#define WORD(when, at, abbrev, label, blurb)  NUMBER(when, at, 4, FT_UINT32, BASE_DEC, NULL, abbrev, label, blurb)
#define FLAG(when, bit, abbrev, label, blurb) FIELD_ROW(when, bit, 1, FT_BOOL, BASE_NONE, NULL, 0, abbrev, label, blurb)
#define TYPE_IS(name, condition)                                                                                       \
    static bool name(const uint8_t *p, uint32_t len)                                                                   \
    {                                                                                                                  \
        return len >= 16 && (condition);                                                                               \
    }
TYPE_IS(is_command, p[0] == SRP_CMD)
TYPE_IS(is_task, p[0] == SRP_TSK_MGMT)
TYPE_IS(is_response, p[0] == SRP_RSP)
TYPE_IS(has_lun, p[0] == SRP_CMD || p[0] == SRP_TSK_MGMT || p[0] == SRP_AER_REQ)
TYPE_IS(has_credits, p[0] == SRP_RSP || p[0] == SRP_CRED_REQ)
TYPE_IS(is_target_logout, p[0] == SRP_T_LOGOUT)

#define TYPE_ROW(at)                                                                                                   \
    NUMBER(NULL, at, 1, FT_UINT8, BASE_HEX, &type_desc, "rdma.srp.type", "Type", "Type of the information unit.")
#define TAG_ROW(at)                                                                                                    \
    NUMBER(NULL, at, 8, FT_UINT64, BASE_HEX, NULL, "rdma.srp.tag", "Tag",                                              \
           "Identifier of the request, which its response repeats.")

static const struct field srp_fields[] = {
    TYPE_ROW(0),
    FIELD_ROW(is_command, 40, 4, FT_UINT8, BASE_DEC, &format_desc, 0, "rdma.srp.out.format", "Data-out Format",
              "How the command describes the data that the target READs."),
    FIELD_ROW(is_command, 44, 4, FT_UINT8, BASE_DEC, &format_desc, 0, "rdma.srp.in.format", "Data-in Format",
              "How it describes the memory that the target WRITEs."),
    NUMBER(is_command, 6, 1, FT_UINT8, BASE_DEC, NULL, "rdma.srp.out.count", "Data-out Descriptors",
           "Descriptors of an indirect list in this unit."),
    NUMBER(is_command, 7, 1, FT_UINT8, BASE_DEC, NULL, "rdma.srp.in.count", "Data-in Descriptors", "Likewise."),
    FIELD_ROW(has_credits, 32, 32, FT_INT32, BASE_DEC, NULL, 0, "rdma.srp.credits", "Request Limit Delta",
              "By how much the number of requests changes that the initiator may send."),
    NUMBER(is_target_logout, 4, 4, FT_UINT32, BASE_HEX, NULL, "rdma.srp.logout.reason", "Reason",
           "Why the target ends the session."),
    TAG_ROW(8),
    NUMBER(has_lun, 20, 8, FT_UINT64, BASE_HEX, NULL, "rdma.srp.lun", "LUN", "Logical unit, all eight bytes."),
    FIELD_ROW(is_command, 8 * 29 + 5, 3, FT_UINT8, BASE_DEC, NULL, 0, "rdma.srp.attribute", "Task Attribute",
              "0 simple, 1 head of queue, 2 ordered, 4 ACA."),
    FIELD_ROW(is_command, 8 * 31, 6, FT_UINT8, BASE_DEC, NULL, 0, "rdma.srp.additional_cdb", "Additional CDB",
              "Length of what follows the CDB, in words of four bytes."),
    NUMBER(is_task, 30, 1, FT_UINT8, BASE_HEX, &function_desc, "rdma.srp.function", "Function",
           "What is to be done with tasks."),
    NUMBER(is_task, 32, 8, FT_UINT64, BASE_HEX, NULL, "rdma.srp.task_tag", "Task Tag",
           "Tag of the task that is meant."),
    FLAG(is_response, 8 * 18 + 7, "rdma.srp.flags.response", "Response Data", "Response data follow."),
    FLAG(is_response, 8 * 18 + 6, "rdma.srp.flags.sense", "Sense Data", "Sense data follow."),
    FLAG(is_response, 8 * 18 + 5, "rdma.srp.flags.out_over", "Data-out Overflow", "More bytes would have been read."),
    FLAG(is_response, 8 * 18 + 4, "rdma.srp.flags.out_under", "Data-out Underflow", "Fewer bytes were read."),
    FLAG(is_response, 8 * 18 + 3, "rdma.srp.flags.in_over", "Data-in Overflow", "More bytes would have been written."),
    FLAG(is_response, 8 * 18 + 2, "rdma.srp.flags.in_under", "Data-in Underflow", "Fewer bytes were written."),
    NUMBER(is_response, 19, 1, FT_UINT8, BASE_HEX, &scsi_status_desc, "rdma.srp.status", "Status", "SCSI status."),
    WORD(is_response, 20, "rdma.srp.out.residual", "Data-out Residual", "Bytes not read, or too many."),
    WORD(is_response, 24, "rdma.srp.in.residual", "Data-in Residual", "Bytes not written, or too many."),
    WORD(is_response, 28, "rdma.srp.sense_len", "Sense Length", "Bytes of sense data."),
    WORD(is_response, 32, "rdma.srp.response_len", "Response Length", "Bytes of response data."),
};
UPPER_HDR(srp, "rdma.srp", "SCSI RDMA Protocol", "srp", "SRP", 16);

static const struct field srp_memory_fields[] = {
    NUMBER(NULL, 0, 8, FT_UINT64, BASE_HEX, NULL, "rdma.srp.memory.va", "Address", "Address of the memory."),
    NUMBER(NULL, 8, 4, FT_UINT32, BASE_HEX, NULL, "rdma.srp.memory.rkey", "R_Key", "R_Key of the memory."),
    WORD(NULL, 12, "rdma.srp.memory.length", "Length", "Its bytes."),
};
UPPER_HDR(srp_memory, "rdma.srp.memory", "SRP memory descriptor", "srp", NULL, MEMORY_LEN);

#define MULTICHANNEL(when, at, blurb)                                                                                  \
    FIELD_ROW(when, 8 * (at) + 6, 2, FT_UINT8, BASE_DEC, NULL, 0, "rdma.srp.login.channels", "Channels", blurb)
#define IMMEDIATE_AT(when, at)                                                                                         \
    NUMBER(when, at, 2, FT_UINT16, BASE_DEC, NULL, "rdma.srp.login.immediate_at", "Immediate Data Offset",             \
           "Byte of a command at which its immediate data begin.")

static const struct field srp_login_cm_fields[] = {
    TYPE_ROW(11),
    TAG_ROW(0),
    NUMBER(NULL, 8, 2, FT_UINT16, BASE_HEX, NULL, "rdma.srp.login.formats", "Buffer Formats",
           "Formats of descriptors: 2 direct, 4 indirect."),
    FLAG(NULL, 80, "rdma.srp.login.immediate", "Immediate Data", "The initiator wants to send data in commands."),
    MULTICHANNEL(NULL, 10, "Multichannel action: what becomes of other channels."),
    WORD(NULL, 12, "rdma.srp.login.iu_len", "Requested IU Length", "Bytes of the longest unit of the initiator."),
    FIELD_AT(NULL, 16, 16, FT_BYTES, "rdma.srp.login.initiator", "Initiator Port", "Identifier of the initiator."),
    FIELD_AT(NULL, 32, 16, FT_BYTES, "rdma.srp.login.target", "Target Port", "Identifier of the target."),
    IMMEDIATE_AT(NULL, 48),
};
UPPER_HDR(srp_login_cm, "rdma.srp.login_cm", "SRP login (RDMA-CM)", "srp", NULL, 56);

TYPE_IS(is_login_req, p[0] == SRP_LOGIN_REQ)
TYPE_IS(is_login_rsp, p[0] == SRP_LOGIN_RSP)
TYPE_IS(is_login_rej, p[0] == SRP_LOGIN_REJ)
static const struct field srp_login_fields[] = {
    TYPE_ROW(0),
    FIELD_ROW(is_login_rsp, 32, 32, FT_INT32, BASE_DEC, NULL, 0, "rdma.srp.credits", "Request Limit Delta",
              "How many requests the initiator may send."),
    NUMBER(is_login_rej, 4, 4, FT_UINT32, BASE_HEX, &reason_desc, "rdma.srp.login.reason", "Reason",
           "Why the target refuses the login."),
    TAG_ROW(8),
    WORD(is_login_req, 16, "rdma.srp.login.iu_len", "Requested IU Length",
         "Bytes of the longest unit of the initiator."),
    WORD(is_login_rsp, 16, "rdma.srp.login.max_it", "Max Initiator IU Length",
         "Bytes of the longest unit that the target takes."),
    WORD(is_login_rsp, 20, "rdma.srp.login.max_ti", "Max Target IU Length",
         "Bytes of the longest unit that the target sends."),
    NUMBER(NULL, 24, 2, FT_UINT16, BASE_HEX, NULL, "rdma.srp.login.formats", "Buffer Formats",
           "Formats of descriptors: 2 direct, 4 indirect."),
    FLAG(is_login_req, 8 * 26, "rdma.srp.login.immediate", "Immediate Data",
         "The initiator wants to send data in commands."),
    FLAG(is_login_rsp, 8 * 26, "rdma.srp.login.immediate", "Immediate Data", "The target takes data in commands."),
    MULTICHANNEL(is_login_req, 26, "Multichannel action: what becomes of other channels."),
    MULTICHANNEL(is_login_rsp, 26, "Multichannel result: what became of them."),
    IMMEDIATE_AT(is_login_req, 28),
    FIELD_AT(is_login_req, 32, 16, FT_BYTES, "rdma.srp.login.initiator", "Initiator Port",
             "Identifier of the initiator."),
    FIELD_AT(is_login_req, 48, 16, FT_BYTES, "rdma.srp.login.target", "Target Port", "Identifier of the target."),
};
UPPER_HDR(srp_login, "rdma.srp.login", "SRP login", "srp", NULL, 32);

/* --- Layers ----------------------------------------------------------------------------------- */

#define SHOWN 8 /* descriptors that are shown */

static void command_layers(struct pkt *p, const struct ulp_body *body, const struct srp *s)
{
    struct srp_memory m;

    scsi_cdb_layer(p, body, 32);
    for (unsigned way = 0; way < 2; way++)
        for (unsigned i = 0; i < SHOWN && srp_memory(s, body->b, body->len, way, i, &m); i++)
            ulp_layer(p, &srp_memory_hdr, body,
                      s->at[way] + (s->format[way] == SRP_INDIRECT ? MEMORY_LEN + 4 + i * MEMORY_LEN : 0), MEMORY_LEN);
}

const char *srp_refusal_str(const struct ulp_body *body)
{
    if (body->len < 32 || body->b[0] != SRP_LOGIN_REJ)
        return NULL;
    return vname_find(reasons, ARRAY_LEN(reasons), load_be32(body->b + 4));
}

void srp_layers(struct pkt *p, const struct ulp_body *body, const struct srp *s)
{
    const struct unit *u = unit_of(s->type);

    ulp_layer(p, &srp_hdr, body, 0, u->len);
    if (s->type == SRP_CMD)
        command_layers(p, body, s);
    else if (s->type == SRP_RSP && s->n_sense && s->n_response < body->len)
        scsi_sense_layer(p, body, u->len + s->n_response, s->n_sense);
}

void srp_private_layers(struct pkt *p, const struct ulp_body *body)
{
    if (body->len >= 32 && (body->b[0] == SRP_LOGIN_RSP || body->b[0] == SRP_LOGIN_REJ))
        ulp_layer(p, &srp_login_hdr, body, 0, body->b[0] == SRP_LOGIN_RSP ? 52 : 32);
    else if (is_login_of_rdma_cm(body->b, body->len))
        ulp_layer(p, &srp_login_cm_hdr, body, 0, 56);
    else if (is_login_of_ib_cm(body->b, body->len))
        ulp_layer(p, &srp_login_hdr, body, 0, 64);
}
