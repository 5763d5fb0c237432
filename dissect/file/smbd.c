/* layer 1 (wire): SMB Direct and SMB2: messages read, recognised, their fields. */
#include "dissect/file/smbd.h"

#include "dissect/ulp/upper_hdr.h"

/* --- SMB Direct ------------------------------------------------------------------------------- */

#define VERSION 0x0100
#define LARGEST (UINT32_C(1) << 20) /* bytes of a message that are taken for possible */

/* The sizes of a negotiation tell which end sends it. */
static bool get_negotiation(struct smbd *m, const uint8_t *b, uint32_t len)
{
    if ((len != SMBD_NEGOTIATE_LEN && len != SMBD_NEGOTIATE_RESPONSE_LEN) || load_le16(b) != VERSION ||
        load_le16(b + 2) != VERSION)
        return false;
    m->kind = len == SMBD_NEGOTIATE_LEN ? SMBD_NEGOTIATE : SMBD_NEGOTIATE_RESPONSE;
    m->status = len == SMBD_NEGOTIATE_LEN ? 0 : load_le32(b + 12);
    m->granted = len == SMBD_NEGOTIATE_LEN ? 0 : load_le16(b + 10);
    return true;
}

bool smbd_get(struct smbd *m, const uint8_t *b, uint32_t len, bool greeting, bool whole)
{
    *m = (struct smbd){.kind = SMBD_DATA};
    if (greeting && get_negotiation(m, b, len))
        return true;
    if (len < 20 || load_le16(b + 6) || load_le16(b + 4) > 1)
        return false;
    m->granted = load_le16(b + 2);
    m->remaining = load_le32(b + 8);
    m->at = load_le32(b + 12);
    m->n_data = load_le32(b + 16);
    if (!m->n_data)
        return !m->remaining;
    if (m->at < SMBD_DATA_LEN || m->at % 8)
        return false;
    return whole ? m->at <= len && m->n_data <= len - m->at : m->at <= len;
}

static bool is_smb2(const uint8_t *b)
{
    return memcmp(b, "\xfeSMB", 4) == 0;
}

static bool responds(const uint8_t *b)
{
    return load_le32(b + 16) & 1;
}

/* Whether the values of a negotiation are what a client may ask for: that tells the protocol. */
static bool is_greeting(const uint8_t *b)
{
    uint32_t send = load_le32(b + 8), receive = load_le32(b + 12), all = load_le32(b + 16);

    return !load_le16(b + 4) && load_le16(b + 6) && send >= 128 && send <= LARGEST && receive >= 128 &&
           receive <= LARGEST && all >= receive && all >= 65536 && all <= 16 * LARGEST;
}

/* Bytes of an SMB2 header up to the flags, which tell who sent it. */
#define UP_TO_FLAGS 17

/* A data message of which `len` of `all` bytes are there, that begins with `least` bytes of an SMB2 header. */
static enum ulp_looks data_looks(const struct smbd *m, const uint8_t *b, uint32_t len, uint32_t all, uint32_t least,
                                 bool whole)
{
    if (m->at != SMBD_DATA_LEN || m->n_data < SMB2_LEN || len < SMBD_DATA_LEN + least)
        return LOOKS_OTHER;
    if ((whole && m->at + m->n_data != all) || !is_smb2(b + m->at) || load_le16(b + m->at + 4) != SMB2_LEN)
        return LOOKS_OTHER;
    if (len < m->at + UP_TO_FLAGS)
        return LOOKS_EITHER;
    return b[m->at + 16] & 1 ? LOOKS_SERVER : LOOKS_CLIENT;
}

enum ulp_looks smbd_looks(const uint8_t *b, uint32_t len, bool whole)
{
    struct smbd m;

    if (!smbd_get(&m, b, len, true, whole))
        return LOOKS_OTHER;
    if (m.kind == SMBD_NEGOTIATE)
        return is_greeting(b) ? LOOKS_FIRST : LOOKS_CLIENT;
    if (m.kind == SMBD_NEGOTIATE_RESPONSE)
        return LOOKS_SERVER;
    return data_looks(&m, b, len, len, SMB2_LEN, whole);
}

enum ulp_looks smbd_looks_cut(const uint8_t *b, uint32_t len, uint32_t all, bool whole)
{
    struct smbd m;

    if (!smbd_get(&m, b, len, false, false))
        return LOOKS_OTHER;
    return data_looks(&m, b, len, all, SMB2_LEAST_HEAD, whole);
}

/* --- SMB2 ------------------------------------------------------------------------------------- */

#define MEMORY_LEN 16 /* offset, token, length */
#define BODY_LEN   48 /* of a READ or WRITE request, before its descriptors or data */

/* The descriptors of a request: `at` from the header of their message. */
static void get_info(struct smb2 *s, uint32_t at, uint32_t n)
{
    if (s->channel != 1 && s->channel != 2)
        return;
    s->lacks_info = at > s->len || n > s->len - at;
    if (s->lacks_info)
        return;
    s->info = s->at + at;
    s->n_info = n / MEMORY_LEN;
}

static void get_request(struct smb2 *s, const uint8_t *p, uint32_t len)
{
    if (len < BODY_LEN)
        return;
    s->count = load_le32(p + 4);
    s->offset = load_le64(p + 8);
    if (s->command == SMB2_READ) {
        s->channel = load_le32(p + 36);
        get_info(s, load_le16(p + 44), load_le16(p + 46));
        return;
    }
    s->channel = load_le32(p + 32);
    s->inside = s->channel ? 0 : s->count;
    if (s->channel)
        s->count = load_le32(p + 36);
    get_info(s, load_le16(p + 40), load_le16(p + 42));
}

static void get_response(struct smb2 *s, const uint8_t *p, uint32_t len)
{
    if (len < 16 || smb2_is_error(s->status))
        return;
    if (s->command == SMB2_READ) { /* data in the message, and data that were written */
        s->inside = load_le32(p + 4);
        s->count = s->inside + load_le32(p + 8);
    } else {
        s->count = load_le32(p + 4);
    }
}

#define IOCTL_LEN 48 /* before input and output */

static void get_ioctl(struct smb2 *s, const uint8_t *p, uint32_t len)
{
    uint32_t at, n;

    if (len < 8 || smb2_is_error(s->status))
        return;
    s->control = load_le32(p + 4);
    if (!s->response || len < IOCTL_LEN)
        return;
    at = load_le32(p + 32);
    n = load_le32(p + 36);
    if (at < SMB2_LEN || at > s->len)
        return;
    s->out = s->at + at;
    s->n_out = min_u32(n, s->len - at);
}

/* What is read of the body of a request or response. */
static void get_body(struct smb2 *s, const uint8_t *p, uint32_t len)
{
    if (s->command == SMB2_IOCTL)
        get_ioctl(s, p, len);
    else if (s->command != SMB2_READ && s->command != SMB2_WRITE)
        return;
    else if (s->response)
        get_response(s, p, len);
    else
        get_request(s, p, len);
}

bool smb2_get(struct smb2 *s, const uint8_t *b, uint32_t len, uint32_t lost, uint32_t at)
{
    uint32_t least = lost ? SMB2_LEAST_RESPONSE : SMB2_LEN, next;
    const uint8_t *p = b + at;

    *s = (struct smb2){.at = at};
    if (len < least || at > len - least || !is_smb2(p) || load_le16(p + 4) != SMB2_LEN)
        return false;
    if (!responds(p) && len - at < SMB2_LEAST)
        return false;
    next = load_le32(p + 20);
    s->len = next >= SMB2_LEN && next <= len - at ? next : len - at;
    s->command = load_le16(p + 12);
    s->response = responds(p);
    s->charge = load_le16(p + 6);
    s->credits = load_le16(p + 14);
    s->async = load_le32(p + 16) & 2;
    s->status = s->response ? load_le32(p + 8) : 0;
    s->message_id = load_le64(p + 24);
    if (len - at >= SMB2_LEAST) {
        s->tree = s->async ? 0 : load_le32(p + 36);
        s->session = load_le64(p + 40);
    }
    s->cut = lost && s->at + s->len == len && s->len < SMB2_LEN + (s->response ? 16 : BODY_LEN);
    if (s->len >= SMB2_LEN)
        get_body(s, p + SMB2_LEN, s->len - SMB2_LEN);
    return true;
}

bool smb2_get_head(struct smb2 *s, const uint8_t *b, uint32_t len, bool by_server)
{
    *s = (struct smb2){.len = len, .cut = true};
    if (len < SMB2_LEAST_HEAD || !is_smb2(b) || load_le16(b + 4) != SMB2_LEN)
        return false;
    s->response = len < UP_TO_FLAGS ? by_server : b[16] & 1;
    s->charge = load_le16(b + 6);
    s->status = s->response ? load_le32(b + 8) : 0;
    s->command = load_le16(b + 12);
    s->no_credits = len < 16;
    s->credits = s->no_credits ? 0 : load_le16(b + 14);
    s->no_id = len < SMB2_LEAST_RESPONSE;
    s->message_id = s->no_id ? 0 : load_le64(b + 24);
    return true;
}

uint32_t smb2_next(const struct smb2 *s, const uint8_t *b, uint32_t len)
{
    uint32_t next = load_le32(b + s->at + 20);

    return next >= SMB2_LEN && next % 8 == 0 && next < len - s->at ? s->at + next : 0;
}

struct smb2_memory smb2_memory(const struct smb2 *s, const uint8_t *b, uint32_t i)
{
    const uint8_t *p = b + s->info + i * MEMORY_LEN;

    return (struct smb2_memory){load_le64(p), load_le32(p + 8), load_le32(p + 12)};
}

/* --- Names ------------------------------------------------------------------------------------ */

static const struct vname commands[] = {
    {0, "Negotiate"},      {1, "Session Setup"}, {2, "Logoff"},    {3, "Tree Connect"}, {4, "Tree Disconnect"},
    {5, "Create"},         {6, "Close"},         {7, "Flush"},     {8, "Read"},         {9, "Write"},
    {10, "Lock"},          {11, "Ioctl"},        {12, "Cancel"},   {13, "Echo"},        {14, "Query Directory"},
    {15, "Change Notify"}, {16, "Query Info"},   {17, "Set Info"}, {18, "Oplock Break"}};
static const struct vdesc command_desc = VDESC_NAMES(commands);

static const struct vname statuses[] = {{0x00000000, "STATUS_SUCCESS"},
                                        {0x00000103, "STATUS_PENDING"},
                                        {0x0000010c, "STATUS_NOTIFY_ENUM_DIR"},
                                        {0x80000005, "STATUS_BUFFER_OVERFLOW"},
                                        {0x80000006, "STATUS_NO_MORE_FILES"},
                                        {0x8000002d, "STATUS_STOPPED_ON_SYMLINK"},
                                        {0xc0000001, "STATUS_UNSUCCESSFUL"},
                                        {0xc0000004, "STATUS_INFO_LENGTH_MISMATCH"},
                                        {0xc0000008, "STATUS_INVALID_HANDLE"},
                                        {0xc000000d, "STATUS_INVALID_PARAMETER"},
                                        {0xc000000f, "STATUS_NO_SUCH_FILE"},
                                        {0xc0000010, "STATUS_INVALID_DEVICE_REQUEST"},
                                        {0xc0000011, "STATUS_END_OF_FILE"},
                                        {0xc0000016, "STATUS_MORE_PROCESSING_REQUIRED"},
                                        {0xc0000022, "STATUS_ACCESS_DENIED"},
                                        {0xc0000023, "STATUS_BUFFER_TOO_SMALL"},
                                        {0xc0000033, "STATUS_OBJECT_NAME_INVALID"},
                                        {0xc0000034, "STATUS_OBJECT_NAME_NOT_FOUND"},
                                        {0xc0000035, "STATUS_OBJECT_NAME_COLLISION"},
                                        {0xc000003a, "STATUS_OBJECT_PATH_NOT_FOUND"},
                                        {0xc0000043, "STATUS_SHARING_VIOLATION"},
                                        {0xc0000054, "STATUS_FILE_LOCK_CONFLICT"},
                                        {0xc0000055, "STATUS_LOCK_NOT_GRANTED"},
                                        {0xc0000056, "STATUS_DELETE_PENDING"},
                                        {0xc000006d, "STATUS_LOGON_FAILURE"},
                                        {0xc000007f, "STATUS_DISK_FULL"},
                                        {0xc000009a, "STATUS_INSUFFICIENT_RESOURCES"},
                                        {0xc00000b5, "STATUS_IO_TIMEOUT"},
                                        {0xc00000ba, "STATUS_FILE_IS_A_DIRECTORY"},
                                        {0xc00000bb, "STATUS_NOT_SUPPORTED"},
                                        {0xc00000c9, "STATUS_NETWORK_NAME_DELETED"},
                                        {0xc00000cc, "STATUS_BAD_NETWORK_NAME"},
                                        {0xc00000d0, "STATUS_REQUEST_NOT_ACCEPTED"},
                                        {0xc0000101, "STATUS_DIRECTORY_NOT_EMPTY"},
                                        {0xc0000120, "STATUS_CANCELLED"},
                                        {0xc0000128, "STATUS_FILE_CLOSED"},
                                        {0xc0000185, "STATUS_IO_DEVICE_ERROR"},
                                        {0xc000019c, "STATUS_FS_DRIVER_REQUIRED"},
                                        {0xc0000203, "STATUS_USER_SESSION_DELETED"},
                                        {0xc0000205, "STATUS_INSUFF_SERVER_RESOURCES"},
                                        {0xc0000225, "STATUS_NOT_FOUND"},
                                        {0xc000035c, "STATUS_NETWORK_SESSION_EXPIRED"}};
static const struct vdesc status_desc = VDESC_NAMES(statuses);

static const struct vname channels[] = {{0, "none"}, {1, "RDMA_V1"}, {2, "RDMA_V1_INVALIDATE"}, {3, "RDMA_TRANSFORM"}};
static const struct vdesc channel_desc = VDESC_NAMES(channels);

#define NETWORK_INTERFACES 0x001401fc
static const struct vname controls[] = {{0x00060194, "FSCTL_DFS_GET_REFERRALS"},
                                        {0x000601b0, "FSCTL_DFS_GET_REFERRALS_EX"},
                                        {0x000900a4, "FSCTL_SET_REPARSE_POINT"},
                                        {0x000900a8, "FSCTL_GET_REPARSE_POINT"},
                                        {0x00098208, "FSCTL_FILE_LEVEL_TRIM"},
                                        {0x00110018, "FSCTL_PIPE_WAIT"},
                                        {0x0011400c, "FSCTL_PIPE_PEEK"},
                                        {0x0011c017, "FSCTL_PIPE_TRANSCEIVE"},
                                        {0x00140078, "FSCTL_SRV_REQUEST_RESUME_KEY"},
                                        {0x001401d4, "FSCTL_LMR_REQUEST_RESILIENCY"},
                                        {NETWORK_INTERFACES, "FSCTL_QUERY_NETWORK_INTERFACE_INFO"},
                                        {0x00140204, "FSCTL_VALIDATE_NEGOTIATE_INFO"},
                                        {0x00144064, "FSCTL_SRV_ENUMERATE_SNAPSHOTS"},
                                        {0x001440f2, "FSCTL_SRV_COPYCHUNK"},
                                        {0x001441bb, "FSCTL_SRV_READ_HASH"},
                                        {0x001480f2, "FSCTL_SRV_COPYCHUNK_WRITE"}};
static const struct vdesc control_desc = VDESC_NAMES(controls);

const char *smb2_control_str(uint32_t control)
{
    return vname_find(controls, ARRAY_LEN(controls), control);
}

const char *smb2_command_str(uint16_t command)
{
    return vname_find(commands, ARRAY_LEN(commands), command);
}

const char *smb2_status_str(uint32_t status)
{
    return vname_find(statuses, ARRAY_LEN(statuses), status);
}

/* Severity 3; a step of authentication that asks for the next one is none. */
bool smb2_is_error(uint32_t status)
{
    return status >> 30 == 3 && status != UINT32_C(0xc0000016);
}

/* --- Fields of SMB Direct --------------------------------------------------------------------- */

#define HALF(when, at, base, abbrev, label, blurb) FIELD_LE(when, at, 2, FT_UINT16, base, NULL, abbrev, label, blurb)
#define WORD(when, at, abbrev, text, blurb)        FIELD_LE(when, at, 4, FT_UINT32, BASE_DEC, NULL, abbrev, text, blurb)
#define VERSIONS                                                                                                       \
    HALF(NULL, 0, BASE_HEX, "smb_direct.version.min", "MinVersion", "Lowest version."),                                \
        HALF(NULL, 2, BASE_HEX, "smb_direct.version.max", "MaxVersion", "Highest version.")
#define REQUESTED(at)                                                                                                  \
    HALF(NULL, at, BASE_DEC, "smb_direct.credits.requested", "CreditsRequested", "Credits that the sender wants.")
#define GRANTED(at)                                                                                                    \
    HALF(NULL, at, BASE_DEC, "smb_direct.credits.granted", "CreditsGranted",                                           \
         "Messages that the receiver of this may send in addition.")
#define SIZES(at)                                                                                                      \
    WORD(NULL, at, "smb_direct.preferred_send_size", "PreferredSendSize", "Bytes of messages that the sender sends."), \
        WORD(NULL, (at) + 4, "smb_direct.max_receive_size", "MaxReceiveSize", "Bytes of messages that it takes."),     \
        WORD(NULL, (at) + 8, "smb_direct.max_fragmented_size", "MaxFragmentedSize",                                    \
             "Bytes of an SMB2 message that it takes in several.")

static const struct field smbd_negotiate_fields[] = {VERSIONS, REQUESTED(6), SIZES(8)};
UPPER_HDR(smbd_negotiate, "smb_direct.negotiate_request", "SMB Direct Negotiate Request", "smb_direct", "SMBDirect",
          SMBD_NEGOTIATE_LEN);

static const struct field smbd_negotiate_response_fields[] = {
    VERSIONS,
    HALF(NULL, 4, BASE_HEX, "smb_direct.version.negotiated", "NegotiatedVersion", "The version that is spoken."),
    REQUESTED(8),
    GRANTED(10),
    FIELD_LE(NULL, 12, 4, FT_UINT32, BASE_HEX, &status_desc, "smb_direct.status", "Status",
             "Whether the server takes the connection."),
    WORD(NULL, 16, "smb_direct.max_read_write_size", "MaxReadWriteSize", "Bytes of a READ or WRITE of the server."),
    SIZES(20),
};
UPPER_HDR(smbd_negotiate_response, "smb_direct.negotiate_response", "SMB Direct Negotiate Response", "smb_direct",
          "SMBDirect", SMBD_NEGOTIATE_RESPONSE_LEN);

static const struct field smbd_data_fields[] = {
    REQUESTED(0),
    GRANTED(2),
    HALF(NULL, 4, BASE_HEX, "smb_direct.flags", "Flags", "Flags."),
    LE_BITS(NULL, 4, 2, 0, 1, FT_BOOL, BASE_NONE, NULL, "smb_direct.flags.response_requested", "ResponseRequested",
            "The sender asks for an answer at once."),
    WORD(NULL, 8, "smb_direct.remaining_length", "RemainingLength",
         "Bytes of the SMB2 message that follow in later messages."),
    WORD(NULL, 12, "smb_direct.data_offset", "DataOffset", "First byte of the data."),
    WORD(NULL, 16, "smb_direct.data_length", "DataLength", "Bytes of data."),
};
UPPER_HDR(smbd_data, "smb_direct.data_message", "SMB Direct Data Message", "smb_direct", "SMBDirect", SMBD_DATA_LEN);

/* --- Fields of SMB2 --------------------------------------------------------------------------- */

static bool is_header(const uint8_t *p, uint32_t len)
{
    return len >= SMB2_LEN && p[0] == 0xfe;
}
#define HEADER_IS(name, condition)                                                                                     \
    static bool name(const uint8_t *p, uint32_t len)                                                                   \
    {                                                                                                                  \
        return is_header(p, len) && (condition);                                                                       \
    }
HEADER_IS(is_response, p[16] & 1)
HEADER_IS(is_request, !(p[16] & 1))
HEADER_IS(is_async, p[16] & 2)
HEADER_IS(is_sync, !(p[16] & 2))

static bool answered_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    v->u = p->note.ulp_command_in;
    return p->note.have & NOTE_ULP_DONE && is_response(layer_bytes(p, l), l->len);
}
static bool time_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    v->u = (uint64_t)p->note.ulp_latency;
    return p->note.have & NOTE_ULP_DONE && is_response(layer_bytes(p, l), l->len);
}

#define FLAG(bit, abbrev, label, blurb) LE_BITS(NULL, 16, 4, bit, 1, FT_BOOL, BASE_NONE, NULL, abbrev, label, blurb)
static const struct field smb2_fields[] = {
    FIELD_ROW(NULL, 0, 32, FT_UINT32, BASE_HEX, NULL, 0, "smb2.protocol_id", "ProtocolId", "0xfe534d42."),
    HALF(NULL, 4, BASE_DEC, "smb2.header_len", "Header Length", "64."),
    HALF(NULL, 6, BASE_DEC, "smb2.credit.charge", "Credit Charge", "Credits that the request takes."),
    FIELD_LE(is_response, 8, 4, FT_UINT32, BASE_HEX, &status_desc, "smb2.nt_status", "NT Status",
             "How the request ended."),
    FIELD_LE(NULL, 12, 2, FT_UINT16, BASE_DEC, &command_desc, "smb2.cmd", "Command", "Which command."),
    HALF(is_request, 14, BASE_DEC, "smb2.credits.requested", "Credits requested", "Credits that the client wants."),
    HALF(is_response, 14, BASE_DEC, "smb2.credits.granted", "Credits granted", "Credits that the server grants."),
    FIELD_LE(NULL, 16, 4, FT_UINT32, BASE_HEX, NULL, "smb2.flags", "Flags", "Flags."),
    FLAG(0, "smb2.flags.response", "Response", "It is a response."),
    FLAG(1, "smb2.flags.async", "Async command", "The command is asynchronous."),
    FLAG(2, "smb2.flags.chained", "Chained", "It is related to the message before it."),
    FLAG(3, "smb2.flags.signature", "Signing", "It is signed."),
    FIELD_LE(NULL, 20, 4, FT_UINT32, BASE_HEX, NULL, "smb2.chain_offset", "Chain Offset",
             "Where the next message of the compound begins; 0: there is none."),
    FIELD_LE(NULL, 24, 8, FT_UINT64, BASE_DEC, NULL, "smb2.msg_id", "Message ID", "Identifier of the request."),
    FIELD_LE(is_sync, 32, 4, FT_UINT32, BASE_HEX, NULL, "smb2.pid", "Process Id", "Process of the client."),
    FIELD_LE(is_async, 32, 8, FT_UINT64, BASE_HEX, NULL, "smb2.aid", "Async Id",
             "Identifier of an asynchronous command."),
    FIELD_LE(is_sync, 36, 4, FT_UINT32, BASE_HEX, NULL, "smb2.tid", "Tree Id", "Identifier of the share."),
    FIELD_LE(NULL, 40, 8, FT_UINT64, BASE_HEX, NULL, "smb2.sesid", "Session Id", "Identifier of the session."),
    FIELD_GET(answered_get, FT_FRAMENUM, BASE_DEC, NULL, 0, "smb2.response_to", "Response to", "Frame of the request."),
    FIELD_GET(time_get, FT_REL_TIME, BASE_NONE, NULL, 0, "smb2.time", "Time from request",
              "Time since the first packet of the request."),
};
UPPER_HDR(smb2, "smb2", "SMB2", "smb2", "SMB2", SMB2_LEN);

#define CHANNEL(at)                                                                                                    \
    FIELD_LE(NULL, at, 4, FT_UINT32, BASE_HEX, &channel_desc, "smb2.channel", "Channel",                               \
             "How the data are moved; 1 and 2: by READs and WRITEs of the server."),                                   \
        WORD(NULL, (at) + 4, "smb2.remaining_bytes", "Remaining Bytes", "Of a WRITE over RDMA: bytes to be read.")
#define OFFSET FIELD_LE(NULL, 8, 8, FT_UINT64, BASE_DEC, NULL, "smb2.file_offset", "File Offset", "In the file.")

static const struct field smb2_read_fields[] = {
    WORD(NULL, 4, "smb2.read_length", "Read Length", "Bytes asked for."),
    OFFSET,
    WORD(NULL, 32, "smb2.min_count", "Min Count", "Fewer bytes are an error."),
    CHANNEL(36),
};
UPPER_HDR(smb2_read, "rdma.smb2.read", "SMB2 Read Request", "smb2", "SMB2", 48);

static const struct field smb2_read_response_fields[] = {
    WORD(NULL, 4, "rdma.smb2.read.inside", "Data Length", "Bytes in the message."),
    WORD(NULL, 8, "smb2.read_remaining", "Read Remaining", "Bytes that the server wrote over RDMA."),
};
UPPER_HDR(smb2_read_response, "rdma.smb2.read_response", "SMB2 Read Response", "smb2", "SMB2", 16);

static const struct field smb2_write_fields[] = {
    WORD(NULL, 4, "smb2.write_length", "Write Length", "Bytes in the message."),
    OFFSET,
    CHANNEL(32),
};
UPPER_HDR(smb2_write, "rdma.smb2.write", "SMB2 Write Request", "smb2", "SMB2", 48);

static const struct field smb2_write_response_fields[] = {
    WORD(NULL, 4, "smb2.write.count", "Write Count", "Bytes written."),
};
UPPER_HDR(smb2_write_response, "rdma.smb2.write_response", "SMB2 Write Response", "smb2", "SMB2", 16);

static const struct field smb2_memory_fields[] = {
    FIELD_LE(NULL, 0, 8, FT_UINT64, BASE_HEX, NULL, "rdma.smb2.memory.va", "Offset", "Address of the memory."),
    FIELD_LE(NULL, 8, 4, FT_UINT32, BASE_HEX, NULL, "rdma.smb2.memory.token", "Token", "R_Key of the memory."),
    WORD(NULL, 12, "rdma.smb2.memory.length", "Length", "Its bytes."),
};
UPPER_HDR(smb2_memory, "rdma.smb2.memory", "SMB2 memory descriptor", "smb2", "SMB2", MEMORY_LEN);

static const struct field smb2_ioctl_fields[] = {
    FIELD_LE(NULL, 4, 4, FT_UINT32, BASE_HEX, &control_desc, "smb2.ioctl.function", "Function", "What is asked for."),
};
UPPER_HDR(smb2_ioctl, "rdma.smb2.ioctl", "SMB2 Ioctl", "smb2", "SMB2", 8);

/* An interface of the server, for the client to choose:
 *   0      4       8            12         16          24       26     28
 *   +------+-------+------------+----------+-----------+--------+------+---------
 *   | next | index |capabilities|rss queues|link speed | family | port | address
 *   +------+-------+------------+----------+-----------+--------+------+---------
 * Of IPv6 4 bytes of flow information are before the address. */
#define INTERFACE_LEN 152
static bool is_of_family(const uint8_t *p, uint32_t len, unsigned family)
{
    return len == INTERFACE_LEN && load_le16(p + 24) == family;
}
static bool has_ip4(const uint8_t *p, uint32_t len)
{
    return is_of_family(p, len, 2);
}
static bool has_ip6(const uint8_t *p, uint32_t len)
{
    return is_of_family(p, len, 23);
}
static const struct field smb2_interface_fields[] = {
    WORD(NULL, 4, "smb2.ioctl.network_interfaces.index", "Interface Index", "Which interface."),
    FIELD_LE(NULL, 8, 4, FT_UINT32, BASE_HEX, NULL, "smb2.ioctl.network_interfaces.capabilities",
             "Interface Capabilities", "What it can."),
    LE_BITS(NULL, 8, 4, 1, 1, FT_BOOL, BASE_NONE, NULL, "smb2.ioctl.network_interfaces.capabilities.rdma", "RDMA",
            "The client may use SMB Direct there."),
    LE_BITS(NULL, 8, 4, 0, 1, FT_BOOL, BASE_NONE, NULL, "smb2.ioctl.network_interfaces.capabilities.rss", "RSS",
            "It has several receive queues."),
    WORD(NULL, 12, "smb2.ioctl.network_interfaces.rss_queue_count", "RSS Queue Count", "How many."),
    FIELD_LE(NULL, 16, 8, FT_UINT64, BASE_DEC, NULL, "smb2.ioctl.network_interfaces.link_speed", "Link Speed",
             "Bits a second."),
    FIELD_AT(has_ip4, 28, 4, FT_IPV4, "rdma.smb2.interface.ipv4", "Address", "Its address."),
    FIELD_AT(has_ip6, 32, 16, FT_IPV6, "rdma.smb2.interface.ipv6", "Address", "Its address."),
};
UPPER_HDR(smb2_interface, "rdma.smb2.interface", "SMB2 Network Interface", "smb2", "SMB2", INTERFACE_LEN);

/* --- Layers ----------------------------------------------------------------------------------- */

void smbd_layers(struct pkt *p, const struct ulp_body *body, const struct smbd *m)
{
    static const struct hdr *const hdrs[] = {&smbd_negotiate_hdr, &smbd_negotiate_response_hdr, &smbd_data_hdr};

    ulp_layer(p, hdrs[m->kind], body, 0, hdrs[m->kind]->len);
}

#define SHOWN 8 /* descriptors of a request, and interfaces, that are shown */

static void interface_layers(struct pkt *p, const struct ulp_body *compound, const struct smb2 *s)
{
    uint32_t at = 0;

    for (unsigned i = 0; i < SHOWN && at + INTERFACE_LEN <= s->n_out; i++) {
        uint32_t next = load_le32(compound->b + s->out + at);
        ulp_layer(p, &smb2_interface_hdr, compound, s->out + at, INTERFACE_LEN);
        if (next < INTERFACE_LEN || next > s->n_out - at)
            break;
        at += next;
    }
}

static void message_layers(struct pkt *p, const struct ulp_body *compound, const struct smb2 *s)
{
    const struct hdr *read = s->response ? &smb2_read_response_hdr : &smb2_read_hdr,
                     *write = s->response ? &smb2_write_response_hdr : &smb2_write_hdr,
                     *hdr = s->command == SMB2_READ    ? read
                            : s->command == SMB2_WRITE ? write
                                                       : NULL;

    if (s->len < SMB2_LEN)
        return;
    ulp_layer(p, &smb2_hdr, compound, s->at, SMB2_LEN);
    if (s->control)
        ulp_layer(p, &smb2_ioctl_hdr, compound, s->at + SMB2_LEN, smb2_ioctl_hdr.len);
    if (s->control == NETWORK_INTERFACES)
        interface_layers(p, compound, s);
    if (!hdr || s->cut || (s->response && smb2_is_error(s->status)))
        return;
    ulp_layer(p, hdr, compound, s->at + SMB2_LEN, min_u32(hdr->len, s->len - SMB2_LEN));
    for (uint32_t i = 0; i < s->n_info && i < SHOWN; i++)
        ulp_layer(p, &smb2_memory_hdr, compound, s->info + i * MEMORY_LEN, MEMORY_LEN);
}

void smb2_layers(struct pkt *p, const struct ulp_body *compound)
{
    uint32_t at = 0;
    struct smb2 s;

    while (smb2_get(&s, compound->b, compound->len, compound->more, at)) {
        message_layers(p, compound, &s);
        at = smb2_next(&s, compound->b, compound->len);
        if (!at)
            break;
    }
}
