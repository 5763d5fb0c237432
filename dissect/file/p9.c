/* layer 1 (wire): 9P: messages read, recognised, their fields. */
#include "dissect/file/p9.h"

#include "dissect/ulp/upper_hdr.h"

#define VERSION 100

static const struct vname names[] = {
    {6, "lerror"},    {8, "statfs"},    {12, "lopen"},    {14, "lcreate"}, {16, "symlink"},   {18, "mknod"},
    {20, "rename"},   {22, "readlink"}, {24, "getattr"},  {26, "setattr"}, {30, "xattrwalk"}, {32, "xattrcreate"},
    {40, "readdir"},  {50, "fsync"},    {52, "lock"},     {54, "getlock"}, {70, "link"},      {72, "mkdir"},
    {74, "renameat"}, {76, "unlinkat"}, {100, "version"}, {102, "auth"},   {104, "attach"},   {106, "error"},
    {108, "flush"},   {110, "walk"},    {112, "open"},    {114, "create"}, {116, "read"},     {118, "write"},
    {120, "clunk"},   {122, "remove"},  {124, "stat"},    {126, "wstat"},
};

const char *p9_name_str(uint8_t type)
{
    return vname_find(names, ARRAY_LEN(names), type & ~1u);
}

/* Requests whose body begins with the number of a file. */
static bool has_fid(uint8_t type)
{
    return !(type & 1) && type != VERSION && type != 102 && type != 108 && type != 74 && type != 106 && type != 6;
}

bool p9_get(struct p9 *m, const uint8_t *b, uint32_t len, bool whole)
{
    const uint8_t *body = b + P9_LEN;
    uint32_t n;

    if (len < P9_LEN || !p9_name_str(b[4]) || load_le32(b) < P9_LEN || (whole && load_le32(b) != len))
        return false;
    *m = (struct p9){.size = load_le32(b), .type = b[4], .tag = load_le16(b + 5)};
    n = len - P9_LEN;
    if (has_fid(m->type) && n >= 4) {
        m->has_fid = true;
        m->fid = load_le32(body);
    }
    if (m->type == P9_RLERROR && n >= 4)
        m->error = load_le32(body);
    if ((m->type == P9_TREAD || m->type == P9_TWRITE || m->type == P9_TREADDIR) && n >= 16) {
        m->has_count = true;
        m->offset = load_le64(body + 4);
        m->count = load_le32(body + 12);
    } else if ((m->type == P9_RREAD || m->type == P9_RWRITE || m->type == P9_RREADDIR) && n >= 4) {
        m->has_count = true;
        m->count = load_le32(body);
    }
    return true;
}

enum ulp_looks p9_looks(const uint8_t *b, uint32_t len, bool whole)
{
    struct p9 m;

    if (!whole || !p9_get(&m, b, len, true))
        return LOOKS_OTHER;
    return m.type & 1 ? LOOKS_SERVER : LOOKS_CLIENT;
}

/* --- Fields ----------------------------------------------------------------------------------- */

static void type_text(struct buf *b, uint64_t v)
{
    const char *name = p9_name_str((uint8_t)v);

    if (name)
        buf_printf(b, "%c%s", v & 1 ? 'R' : 'T', name);
}
static const struct vdesc type_desc = VDESC_TEXT(type_text);

#define P9_IS(name, condition)                                                                                         \
    static bool name(const uint8_t *p, uint32_t len)                                                                   \
    {                                                                                                                  \
        struct p9 m;                                                                                                   \
        return p9_get(&m, p, len, false) && (condition);                                                               \
    }
P9_IS(is_of_fid, m.has_fid)
P9_IS(is_asked, m.has_count &&m.has_fid)
P9_IS(is_answered, m.has_count && !m.has_fid)
P9_IS(is_error, m.type == P9_RLERROR && len >= P9_LEN + 4)
P9_IS(is_version, (m.type & ~1u) == VERSION && len >= P9_LEN + 4)
static const struct field p9_fields[] = {
    FIELD_LE(NULL, 0, 4, FT_UINT32, BASE_DEC, NULL, "9p.msglen", "Msg length", "Bytes of the whole message."),
    FIELD_ROW(NULL, 32, 8, FT_UINT8, BASE_DEC, &type_desc, 0, "9p.msgtype", "Msg Type", "Which message."),
    FIELD_LE(NULL, 5, 2, FT_UINT16, BASE_DEC, NULL, "9p.tag", "Tag", "Names the request in its response."),
    FIELD_LE(is_of_fid, 7, 4, FT_UINT32, BASE_DEC, NULL, "9p.fid", "Fid", "File of the client."),
    FIELD_LE(is_asked, 11, 8, FT_UINT64, BASE_DEC, NULL, "9p.offset", "Offset", "Where in the file."),
    FIELD_LE(is_asked, 19, 4, FT_UINT32, BASE_DEC, NULL, "9p.count", "Count", "Bytes of data."),
    FIELD_LE(is_answered, 7, 4, FT_UINT32, BASE_DEC, NULL, "9p.count", "Count", "Bytes of data."),
    FIELD_LE(is_error, 7, 4, FT_UINT32, BASE_DEC, NULL, "rdma.9p.error", "Error", "The errno with which it failed."),
    FIELD_LE(is_version, 7, 4, FT_UINT32, BASE_DEC, NULL, "9p.maxsize", "Max msg size", "Bytes of a message at most."),
};
UPPER_HDR(p9, "9p", "Plan 9", "9p", "9P", P9_LEN);

void p9_layers(struct pkt *p, const struct ulp_body *body)
{
    ulp_layer(p, &p9_hdr, body, 0, min_u32(body->len, 23));
}
