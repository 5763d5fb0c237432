/* layer 1 (wire): RTRS and RNBD: messages read, recognised, their fields. */
#include "dissect/ulp/rtrs.h"

#include "dissect/ulp/upper_hdr.h"

#define MEMORY_LEN   16 /* address, R_Key, length */
#define INFO_REQ_LEN 272
#define INFO_RSP_LEN 8
#define RKEY_RSP_LEN 8
#define WRITE_LEN    RTRS_WRITE_LEN
#define READ_LEN     8
#define PAGE         4096
#define MAGIC        0x1bbd
#define IMM_BITS     28 /* of an immediate, below its kind */

void rtrs_imm_get(struct rtrs_imm *i, uint32_t imm)
{
    *i = (struct rtrs_imm){.kind = (uint8_t)(imm >> 28), .payload = imm & 0x0fffffff};
    i->error = (uint16_t)(i->payload >> 19);
    i->id = i->payload & 0x7ffff;
}

/* --- Requests --------------------------------------------------------------------------------- */

/* Whether the header may be at byte `at`: there is as much before it as it says, and its place in its page is the one
 * that the immediate data state. */
static bool header_fits(const uint8_t *b, uint32_t at, unsigned type, uint64_t va, uint32_t offset)
{
    return load_le16(b + at) == type && load_le16(b + at + 2) <= at && ((va + at) ^ offset) % PAGE == 0;
}

bool rtrs_get(struct rtrs *r, const uint8_t *b, uint32_t len, uint64_t va, uint32_t offset)
{
    *r = (struct rtrs){.type = RTRS_WRITE};
    if (len >= WRITE_LEN && header_fits(b, len - WRITE_LEN, RTRS_WRITE, va, offset)) {
        r->at = len - WRITE_LEN;
        r->user = r->at - load_le16(b + r->at + 2);
        return true;
    }
    r->type = RTRS_READ;
    for (uint16_t n = 0; READ_LEN + (uint32_t)n * MEMORY_LEN <= len; n++) {
        r->at = len - READ_LEN - (uint32_t)n * MEMORY_LEN;
        r->n = n;
        if (load_le16(b + r->at + 6) != n || !header_fits(b, r->at, RTRS_READ, va, offset))
            continue;
        r->user = r->at - load_le16(b + r->at + 2);
        return true;
    }
    return false;
}

#define USER_LEAST  8   /* bytes of a user message */
#define USER_MOST   512 /* before the header of a request to read: a name and what is before it */
#define MEMORY_MOST 16  /* descriptors of one whose end was cut; Linux has one */

bool rtrs_get_cut(struct rtrs *r, uint64_t va, uint32_t len, uint32_t offset)
{
    *r = (struct rtrs){.type = RTRS_WRITE};
    if (len >= WRITE_LEN + USER_LEAST && ((va + len - WRITE_LEN) ^ offset) % PAGE == 0) {
        r->at = len - WRITE_LEN;
        return true;
    }
    r->type = RTRS_READ;
    for (r->n = 0; r->n <= MEMORY_MOST && READ_LEN + (uint32_t)r->n * MEMORY_LEN + USER_LEAST <= len; r->n++) {
        r->at = len - READ_LEN - (uint32_t)r->n * MEMORY_LEN;
        if (r->at <= USER_MOST && ((va + r->at) ^ offset) % PAGE == 0)
            return true;
    }
    return false;
}

struct rtrs_memory rtrs_memory(const struct rtrs *r, const uint8_t *b, uint32_t i)
{
    const uint8_t *p = b + r->at + READ_LEN + i * MEMORY_LEN;

    return (struct rtrs_memory){load_le64(p), load_le32(p + 8), load_le32(p + 12)};
}

/* --- RNBD ------------------------------------------------------------------------------------- */

/* Bytes of each type at least. */
static const uint16_t rnbd_len[] = {[RNBD_SESS_INFO] = 5, [RNBD_SESS_INFO_RSP] = 5, [RNBD_OPEN] = 8,
                                    [RNBD_OPEN_RSP] = 46, [RNBD_IO] = 26,           [RNBD_CLOSE] = 8};

void rnbd_get(struct rnbd *m, const uint8_t *b, uint32_t len)
{
    *m = (struct rnbd){.type = len >= 2 ? load_le16(b) : UINT16_MAX};
    m->known = m->type < ARRAY_LEN(rnbd_len) && len >= rnbd_len[m->type];
    if (!m->known)
        return;
    if (m->type == RNBD_IO || m->type == RNBD_CLOSE)
        m->device = load_le32(b + 4);
    if (m->type == RNBD_IO) {
        m->sector = load_le64(b + 8);
        m->rw = load_le32(b + 16);
        m->size = load_le32(b + 20);
    } else if (m->type == RNBD_OPEN) {
        const uint8_t *end = memchr(b + 6, 0, min_u32(len - 6, 255));
        m->name = b + 6;
        m->name_len = end ? (uint32_t)(end - m->name) : min_u32(len - 6, 255);
    }
}

void rnbd_get_cut(struct rnbd *m, const uint8_t *b, uint32_t len)
{
    uint8_t padded[26] = {0};

    *m = (struct rnbd){.type = UINT16_MAX};
    if (len < RNBD_LEAST)
        return;
    memcpy(padded, b, RNBD_LEAST);
    if (load_le16(b) != RNBD_OPEN)
        rnbd_get(m, padded, sizeof padded);
    else
        *m = (struct rnbd){.known = true, .type = RNBD_OPEN};
}

static const struct vname operations[] = {{0, "Read"},    {1, "Write"},        {2, "Flush"},
                                          {3, "Discard"}, {4, "Secure Erase"}, {5, "Write Same"}};
static const struct vname rnbd_types[] = {{RNBD_SESS_INFO, "Session Info"},
                                          {RNBD_SESS_INFO_RSP, "Session Info Response"},
                                          {RNBD_OPEN, "Open"},
                                          {RNBD_OPEN_RSP, "Open Response"},
                                          {RNBD_IO, "IO"},
                                          {RNBD_CLOSE, "Close"}};
static const struct vdesc rnbd_type_desc = VDESC_NAMES(rnbd_types);
static void operation_text(struct buf *b, uint64_t v)
{
    const char *name = vname_find(operations, ARRAY_LEN(operations), v & 0xff);

    if (name)
        buf_printf(b, "%s%s%s", name, v & 0x100 ? ", sync" : "", v & 0x200 ? ", FUA" : "");
}
static const struct vdesc operation_desc = VDESC_TEXT(operation_text);

const char *rnbd_name_str(uint16_t type, uint32_t rw)
{
    if (type == RNBD_IO)
        return vname_find(operations, ARRAY_LEN(operations), rw & 0xff);
    return vname_find(rnbd_types, ARRAY_LEN(rnbd_types), type);
}

/* --- Recognition ------------------------------------------------------------------------------ */

/* A path's name, up to zeros; `len` of `all` bytes. */
static bool is_info_request(const uint8_t *b, uint32_t len, uint32_t all)
{
    uint32_t at = 2;

    if (all != INFO_REQ_LEN || len < 8 || load_le16(b) != RTRS_INFO_REQ)
        return false;
    while (at < len && b[at] >= 0x20 && b[at] < 0x7f)
        at++;
    for (uint32_t i = at; i < len; i++)
        if (b[i])
            return false;
    return at > 2 && at < len;
}

/* A request to read, of which the beginning says so, and the immediate data where its header is. */
static bool is_cut_read(const uint8_t *b, uint32_t len, uint32_t all, uint64_t va, const struct rtrs_imm *i)
{
    struct rnbd m;
    struct rtrs r;

    if (!rtrs_get_cut(&r, va, all, i->payload & ((1u << RTRS_DEPTH_BITS) - 1)) || r.type != RTRS_READ)
        return false;
    rnbd_get_cut(&m, b, len);
    return m.known && (m.type != RNBD_IO || (m.rw & 0xff) == 0);
}

enum ulp_looks rtrs_looks_write(const uint8_t *b, uint32_t len, uint32_t all, uint64_t va, uint32_t imm)
{
    uint32_t n = len < RTRS_TAIL ? len : RTRS_TAIL;
    const uint8_t *tail = b + (len - n);
    struct rtrs_imm i;
    struct rnbd m;
    struct rtrs r;

    rtrs_imm_get(&i, imm);
    if (len < all)
        return i.kind == RTRS_IMM_REQUEST && is_cut_read(b, len, all, va, &i) ? LOOKS_CLIENT : LOOKS_OTHER;
    if (i.kind != RTRS_IMM_REQUEST || !rtrs_get(&r, tail, n, va + (len - n), i.payload & ((1u << RTRS_DEPTH_BITS) - 1)))
        return LOOKS_OTHER;
    rnbd_get(&m, tail + r.user, r.at - r.user);
    return m.known ? LOOKS_CLIENT : LOOKS_OTHER;
}

/* Bytes of an Info response, by its first INFO_RSP_LEN bytes; 0: it is none. */
static uint32_t info_response_len(const uint8_t *b)
{
    if (load_le16(b) != RTRS_INFO_RSP || load_le32(b + 4) || !load_le16(b + 2))
        return 0;
    return INFO_RSP_LEN + (uint32_t)load_le16(b + 2) * MEMORY_LEN;
}

enum ulp_looks rtrs_looks(const uint8_t *b, uint32_t len, bool whole)
{
    if (!whole || len < RKEY_RSP_LEN)
        return LOOKS_OTHER;
    if (is_info_request(b, len, len))
        return LOOKS_FIRST;
    return len == info_response_len(b) ? LOOKS_SERVER : LOOKS_OTHER;
}

enum ulp_looks rtrs_looks_cut(const uint8_t *b, uint32_t len, uint32_t all, bool whole)
{
    uint32_t said;

    if (whole && is_info_request(b, len, all))
        return LOOKS_CLIENT;
    if (len < INFO_RSP_LEN + MEMORY_LEN || !load_le32(b + INFO_RSP_LEN + 12))
        return LOOKS_OTHER;
    said = info_response_len(b);
    return said && (whole ? all == said : all < said) ? LOOKS_SERVER : LOOKS_OTHER;
}

bool rtrs_private_fits(const uint8_t *b, uint32_t len)
{
    return len >= 8 && b[0] == 0 && b[1] == 0 && load_le16(b + 2) == MAGIC;
}

/* --- Fields ----------------------------------------------------------------------------------- */

#define HALF(at, abbrev, label, blurb)       FIELD_LE(NULL, at, 2, FT_UINT16, BASE_DEC, NULL, abbrev, label, blurb)
#define WORD(when, at, abbrev, label, blurb) FIELD_LE(when, at, 4, FT_UINT32, BASE_DEC, NULL, abbrev, label, blurb)

static const struct vname types[] = {{RTRS_INFO_REQ, "Info Request"},
                                     {RTRS_INFO_RSP, "Info Response"},
                                     {RTRS_WRITE, "Write"},
                                     {RTRS_READ, "Read"},
                                     {RTRS_RKEY_RSP, "RKey Response"}};
static const struct vdesc type_desc = VDESC_NAMES(types);
#define TYPE FIELD_LE(NULL, 0, 2, FT_UINT16, BASE_DEC, &type_desc, "rdma.rtrs.type", "Type", "Which message.")

static const struct field rtrs_info_req_fields[] = {
    TYPE,
    FIELD_AT(NULL, 2, 255, FT_STRING, "rdma.rtrs.path", "Path Name", "Name of the session."),
};
UPPER_HDR(rtrs_info_req, "rdma.rtrs.info_req", "RTRS Info Request", "rtrs", "RTRS", 257);

static const struct field rtrs_info_rsp_fields[] = {
    TYPE,
    HALF(2, "rdma.rtrs.chunks", "Chunks", "Pieces of the server's memory that follow: the client's requests go there."),
};
UPPER_HDR(rtrs_info_rsp, "rdma.rtrs.info_rsp", "RTRS Info Response", "rtrs", "RTRS", INFO_RSP_LEN);

static const struct field rtrs_rkey_rsp_fields[] = {
    TYPE,
    HALF(2, "rdma.rtrs.chunk", "Chunk", "Which chunk has a new key."),
    FIELD_LE(NULL, 4, 4, FT_UINT32, BASE_HEX, NULL, "rdma.rtrs.rkey", "R_Key", "The new key."),
};
UPPER_HDR(rtrs_rkey_rsp, "rdma.rtrs.rkey_rsp", "RTRS RKey Response", "rtrs", "RTRS", RKEY_RSP_LEN);

static bool is_read(const uint8_t *p, uint32_t len)
{
    return len >= READ_LEN && load_le16(p) == RTRS_READ;
}
static const struct field rtrs_request_fields[] = {
    TYPE,
    HALF(2, "rdma.rtrs.user_len", "User Length", "Bytes of the user message before the header."),
    LE_BITS(is_read, 4, 2, 0, 1, FT_BOOL, BASE_NONE, NULL, "rdma.rtrs.invalidate", "Need Invalidate",
            "The server is to invalidate the key."),
    FIELD_LE(is_read, 6, 2, FT_UINT16, BASE_DEC, NULL, "rdma.rtrs.descriptors", "Descriptors",
             "Pieces of the client's memory that follow."),
};
UPPER_HDR(rtrs_request, "rdma.rtrs.request", "RTRS request", "rtrs", "RTRS", WRITE_LEN);

static const struct field rtrs_memory_fields[] = {
    FIELD_LE(NULL, 0, 8, FT_UINT64, BASE_HEX, NULL, "rdma.rtrs.memory.va", "Address", "Address of the memory."),
    FIELD_LE(NULL, 8, 4, FT_UINT32, BASE_HEX, NULL, "rdma.rtrs.memory.rkey", "R_Key", "R_Key of the memory."),
    WORD(NULL, 12, "rdma.rtrs.memory.length", "Length", "Its bytes."),
};
UPPER_HDR(rtrs_memory, "rdma.rtrs.memory", "RTRS memory descriptor", "rtrs", "RTRS", MEMORY_LEN);

#define RNBD_IS(name, condition)                                                                                       \
    static bool name(const uint8_t *p, uint32_t len)                                                                   \
    {                                                                                                                  \
        struct rnbd m;                                                                                                 \
        rnbd_get(&m, p, len);                                                                                          \
        return m.known && (condition);                                                                                 \
    }
RNBD_IS(is_io, m.type == RNBD_IO)
RNBD_IS(has_device, m.type == RNBD_IO || m.type == RNBD_CLOSE || m.type == RNBD_OPEN_RSP)
RNBD_IS(is_opened, m.type == RNBD_OPEN_RSP)
static bool name_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    struct rnbd m;

    rnbd_get(&m, layer_bytes(p, l), l->len);
    v->p = m.name;
    v->len = m.name_len;
    return m.known && m.name;
}
static const struct field rnbd_fields[] = {
    FIELD_LE(NULL, 0, 2, FT_UINT16, BASE_DEC, &rnbd_type_desc, "rdma.rnbd.type", "Type", "Which message."),
    WORD(has_device, 4, "rdma.rnbd.device", "Device", "Number of the device."),
    FIELD_GET(name_get, FT_STRING, BASE_NONE, NULL, 0, "rdma.rnbd.name", "Name", "Name of the device at the server."),
    FIELD_LE(is_io, 8, 8, FT_UINT64, BASE_DEC, NULL, "rdma.rnbd.sector", "Sector", "First sector of 512 bytes."),
    FIELD_LE(is_io, 16, 4, FT_UINT32, BASE_HEX, &operation_desc, "rdma.rnbd.rw", "Operation", "What is to be done."),
    WORD(is_io, 20, "rdma.rnbd.size", "Size", "Bytes."),
    FIELD_LE(is_opened, 8, 8, FT_UINT64, BASE_DEC, NULL, "rdma.rnbd.sectors", "Sectors", "Size of the device."),
};
UPPER_HDR(rnbd, "rdma.rnbd", "RDMA Network Block Device", "rnbd", "RNBD", 2);

static const struct field rtrs_req_fields[] = {
    FIELD_LE(NULL, 2, 2, FT_UINT16, BASE_HEX, NULL, "rdma.rtrs.cm.magic", "Magic number", "0x1bbd."),
    FIELD_LE(NULL, 4, 2, FT_UINT16, BASE_HEX, NULL, "rdma.rtrs.cm.version", "Version", "Version."),
    HALF(6, "rdma.rtrs.cm.cid", "Connection", "0: the one for messages; others: requests."),
    HALF(8, "rdma.rtrs.cm.cids", "Connections", "Of the session."),
    HALF(10, "rdma.rtrs.cm.reconnect", "Reconnects", "How often the session was set up again."),
    FIELD_AT(NULL, 12, 16, FT_BYTES, "rdma.rtrs.cm.session", "Session UUID", "Of the path."),
    FIELD_AT(NULL, 28, 16, FT_BYTES, "rdma.rtrs.cm.paths", "Paths UUID", "Of the session of all paths."),
};
UPPER_HDR(rtrs_req, "rdma.rtrs.req", "RTRS private data (REQ)", "rtrs", NULL, 44);

static const struct vname errors[] = {{1, "EPERM"},   {12, "ENOMEM"}, {16, "EBUSY"},      {17, "EEXIST"},
                                      {22, "EINVAL"}, {71, "EPROTO"}, {104, "ECONNRESET"}};

const char *rtrs_refusal_str(const struct ulp_body *body)
{
    if (body->len < 6 || load_le16(body->b) != MAGIC)
        return NULL;
    return vname_find(errors, ARRAY_LEN(errors), (uint16_t)-load_le16(body->b + 4));
}

unsigned rtrs_chunk_bits(const uint8_t *b, uint32_t len)
{
    unsigned depth = len >= 8 && load_le16(b) == MAGIC ? load_le16(b + 6) : 0, bits = IMM_BITS;

    for (unsigned last = depth ? depth - 1 : 0; last; last >>= 1)
        bits--;
    return depth > 1 ? bits : RTRS_DEPTH_BITS;
}

static const struct field rtrs_rep_fields[] = {
    FIELD_LE(NULL, 0, 2, FT_UINT16, BASE_HEX, NULL, "rdma.rtrs.cm.magic", "Magic number", "0x1bbd."),
    FIELD_LE(NULL, 2, 2, FT_UINT16, BASE_HEX, NULL, "rdma.rtrs.cm.version", "Version", "Version."),
    FIELD_LE(NULL, 4, 2, FT_INT16, BASE_DEC, NULL, "rdma.rtrs.cm.error", "Error",
             "Why the server refuses: an errno below 0; 0: it does not."),
    HALF(6, "rdma.rtrs.cm.depth", "Queue Depth", "Chunks of the server: requests at a time."),
    WORD(NULL, 8, "rdma.rtrs.cm.max_io", "Max IO Size", "Bytes of a request's data."),
    WORD(NULL, 12, "rdma.rtrs.cm.max_header", "Max Header Size", "Bytes of its messages."),
};
UPPER_HDR(rtrs_rep, "rdma.rtrs.rep", "RTRS private data (REP)", "rtrs", NULL, 20);

/* --- Layers ----------------------------------------------------------------------------------- */

#define SHOWN 8 /* descriptors that are shown */

void rtrs_send_layers(struct pkt *p, const struct ulp_body *body)
{
    unsigned type = body->len >= 8 ? load_le16(body->b) : UINT16_MAX;

    if (type == RTRS_INFO_REQ)
        ulp_layer(p, &rtrs_info_req_hdr, body, 0, 257);
    else if (type == RTRS_RKEY_RSP && body->len == RKEY_RSP_LEN)
        ulp_layer(p, &rtrs_rkey_rsp_hdr, body, 0, RKEY_RSP_LEN);
    else if (type == RTRS_INFO_RSP) {
        ulp_layer(p, &rtrs_info_rsp_hdr, body, 0, INFO_RSP_LEN);
        for (uint32_t i = 0; i < load_le16(body->b + 2) && i < SHOWN; i++)
            ulp_layer(p, &rtrs_memory_hdr, body, INFO_RSP_LEN + i * MEMORY_LEN, MEMORY_LEN);
    }
}

void rtrs_request_layers(struct pkt *p, const struct ulp_body *tail, const struct rtrs *r)
{
    if (r->at - r->user >= 2)
        ulp_layer(p, &rnbd_hdr, tail, r->user, r->at - r->user);
    ulp_layer(p, &rtrs_request_hdr, tail, r->at, r->type == RTRS_READ ? READ_LEN : WRITE_LEN);
    for (uint32_t i = 0; i < r->n && i < SHOWN; i++)
        ulp_layer(p, &rtrs_memory_hdr, tail, r->at + READ_LEN + i * MEMORY_LEN, MEMORY_LEN);
}

void rtrs_private_layers(struct pkt *p, const struct ulp_body *body, bool reply)
{
    if (reply)
        ulp_layer(p, &rtrs_rep_hdr, body, 0, 20);
    else
        ulp_layer(p, &rtrs_req_hdr, body, 0, 44);
}
