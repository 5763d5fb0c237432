/* layer 1 (wire): LNet over RDMA: messages read, recognised, their fields. */
#include "dissect/file/lnet.h"

#include "dissect/ulp/upper_hdr.h"

#define MAGIC    0x0be91b91
#define FRAG_LEN 12 /* length (4), address (8), not aligned */

static uint64_t number(const uint8_t *p, unsigned n, bool little)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < n; i++)
        v |= (uint64_t)p[little ? i : n - 1 - i] << 8 * i;
    return v;
}

/* The types, and where their parts begin in the message; 0: they have none. */
static const struct kind {
    uint8_t type;
    const char *name;
    bool head; /* an LNet header */
    uint8_t cookie, cookie2, status, memory;
    uint8_t len; /* bytes at least */
} kinds[] = {
    {LNET_CONNREQ, "CONNREQ", false, 0, 0, 0, 0, 56},     {LNET_CONNACK, "CONNACK", false, 0, 0, 0, 0, 56},
    {LNET_NOOP, "NOOP", false, 0, 0, 0, 0, 48},           {LNET_IMMEDIATE, "IMMEDIATE", true, 0, 0, 0, 0, 120},
    {LNET_PUT_REQ, "PUT_REQ", true, 120, 0, 0, 0, 128},   {LNET_PUT_NAK, "PUT_NAK", false, 48, 0, 56, 0, 60},
    {LNET_PUT_ACK, "PUT_ACK", false, 48, 56, 0, 64, 72},  {LNET_PUT_DONE, "PUT_DONE", false, 48, 0, 56, 0, 60},
    {LNET_GET_REQ, "GET_REQ", true, 120, 0, 0, 128, 136}, {LNET_GET_DONE, "GET_DONE", false, 48, 0, 56, 0, 60},
};

static const struct kind *kind_of(uint8_t type)
{
    for (unsigned i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].type == type)
            return &kinds[i];
    return NULL;
}

const char *lnet_type_str(uint8_t type)
{
    const struct kind *k = kind_of(type);

    return k ? k->name : NULL;
}

static const struct vname whats[] = {{0, "ACK"}, {1, "PUT"}, {2, "GET"}, {3, "REPLY"}, {4, "HELLO"}};
const char *lnet_what_str(uint32_t what)
{
    return vname_find(whats, ARRAY_LEN(whats), what);
}

static bool is_little(const uint8_t *b)
{
    return load_le32(b) == MAGIC;
}

bool lnet_get(struct lnet *m, const uint8_t *b, uint32_t len)
{
    const struct kind *k;
    bool le;

    if (len < LNET_HEAD_LEN || (load_le32(b) != MAGIC && load_be32(b) != MAGIC) || !(k = kind_of(b[6])) || len < k->len)
        return false;
    le = is_little(b);
    *m = (struct lnet){.little = le,
                       .version = (uint16_t)number(b + 4, 2, le),
                       .type = b[6],
                       .credits = b[7],
                       .bytes = (uint32_t)number(b + 8, 4, le)};
    m->has_head = k->head;
    if (k->head) {
        m->what = (uint32_t)number(b + LNET_HEAD_LEN + 24, 4, le);
        m->payload = (uint32_t)number(b + LNET_HEAD_LEN + 28, 4, le);
    }
    m->cookie = k->cookie ? number(b + k->cookie, 8, le) : 0;
    m->cookie2 = k->cookie2 ? number(b + k->cookie2, 8, le) : 0;
    m->status = k->status ? (int32_t)number(b + k->status, 4, le) : 0;
    if (k->memory) {
        m->rkey = (uint32_t)number(b + k->memory, 4, le);
        m->frags = (uint32_t)number(b + k->memory + 4, 4, le);
        m->at = k->memory + 8u;
        if (m->frags > LNET_FRAGS || m->frags > (len - m->at) / FRAG_LEN)
            return false;
    }
    return true;
}

struct lnet_frag lnet_frag(const struct lnet *m, const uint8_t *b, uint32_t i)
{
    const uint8_t *p = b + m->at + i * FRAG_LEN;

    return (struct lnet_frag){number(p + 4, 8, m->little), (uint32_t)number(p, 4, m->little)};
}

enum ulp_looks lnet_looks(const uint8_t *b, uint32_t len, bool whole)
{
    struct lnet m;

    if (!whole || !lnet_get(&m, b, len) || m.bytes != len)
        return LOOKS_OTHER;
    return m.version == 0x11 || m.version == 0x12 ? LOOKS_CLIENT : LOOKS_OTHER;
}

bool lnet_private_fits(const uint8_t *b, uint32_t len)
{
    struct lnet m;

    return lnet_get(&m, b, len) && (m.type == LNET_CONNREQ || m.type == LNET_CONNACK);
}

/* --- Fields ----------------------------------------------------------------------------------- */

/* A number of the message, of `n` bytes at byte `at`, if `condition` on struct lnet m holds. */
#define GET(name, at, n, condition)                                                                                    \
    static bool name(const struct pkt *p, const struct layer *l, struct value *v)                                      \
    {                                                                                                                  \
        struct lnet m;                                                                                                 \
        const uint8_t *b = layer_bytes(p, l);                                                                          \
        if (!lnet_get(&m, b, l->len) || !(condition) || (at) + (n) > l->len)                                           \
            return false;                                                                                              \
        v->u = number(b + (at), n, m.little);                                                                          \
        return true;                                                                                                   \
    }
#define IS_SETUP (m.type == LNET_CONNREQ || m.type == LNET_CONNACK)
#define IS_DONE  (m.type == LNET_PUT_NAK || m.type == LNET_PUT_DONE || m.type == LNET_GET_DONE)
GET(magic, 0, 4, true)
GET(version, 4, 2, true)
GET(bytes, 8, 4, true)
GET(checksum, 12, 4, true)
GET(source_nid, 16, 8, true)
GET(destination_nid, 32, 8, true)
GET(end_destination_nid, 48, 8, m.has_head)
GET(end_source_nid, 56, 8, m.has_head)
GET(destination_pid, 64, 4, m.has_head)
GET(source_pid, 68, 4, m.has_head)
GET(what, 72, 4, m.has_head)
GET(payload, 76, 4, m.has_head)
GET(depth, 48, 2, IS_SETUP)
GET(frags, 50, 2, IS_SETUP)
GET(size, 52, 4, IS_SETUP)
GET(cookie, m.has_head ? 120u : 48u, 8, m.cookie &&m.type != LNET_PUT_ACK)
GET(cookie_of, 48, 8, m.type == LNET_PUT_ACK)
GET(cookie_own, 56, 8, m.type == LNET_PUT_ACK)
GET(key, m.at - 8, 4, m.at)
GET(n_frags, m.at - 4, 4, m.at)
static bool status(const struct pkt *p, const struct layer *l, struct value *v)
{
    struct lnet m;

    if (!lnet_get(&m, layer_bytes(p, l), l->len) || !IS_DONE)
        return false;
    v->u = (uint64_t)(int64_t)m.status;
    return true;
}

static void type_text(struct buf *b, uint64_t v)
{
    const char *name = lnet_type_str((uint8_t)v);

    if (name)
        buf_puts(b, name);
}
static const struct vdesc type_desc = VDESC_TEXT(type_text), what_desc = VDESC_NAMES(whats);

/* "192.168.77.1@o2ib", "10.0.0.1@tcp3": the kind of network, its number and an address in it, from the upper bits on.
 */
static void nid_text(struct buf *b, uint64_t nid)
{
    static const struct vname networks[] = {{2, "tcp"}, {5, "o2ib"}, {9, "lo"}, {13, "gni"}};
    unsigned kind = (unsigned)(nid >> 48), number = (unsigned)(nid >> 32 & 0xffff);
    uint32_t addr = (uint32_t)nid;
    const char *name = vname_find(networks, ARRAY_LEN(networks), kind);

    if (kind == 2 || kind == 5)
        buf_printf(b, "%u.%u.%u.%u", addr >> 24, addr >> 16 & 255, addr >> 8 & 255, addr & 255);
    else
        buf_printf(b, name ? "%u" : "%x", addr);
    if (!name)
        buf_printf(b, "@<%u:%u>", kind, number);
    else if (number)
        buf_printf(b, "@%s%u", name, number);
    else
        buf_printf(b, "@%s", name);
}
static const struct vdesc nid_desc = VDESC_TEXT(nid_text);

#define NUMBER(get, type, base, desc, abbrev, label, blurb) FIELD_GET(get, type, base, desc, 0, abbrev, label, blurb)
static const struct field lnet_fields[] = {
    NUMBER(magic, FT_UINT32, BASE_HEX, NULL, "lnet.ib.magic", "Magic of IB message", "0x0be91b91."),
    NUMBER(version, FT_UINT16, BASE_HEX, NULL, "lnet.ib.version", "Version", "Version."),
    FIELD_ROW(NULL, 48, 8, FT_UINT8, BASE_HEX, &type_desc, 0, "lnet.ib.type", "Type of IB message", "Which message."),
    FIELD_ROW(NULL, 56, 8, FT_UINT8, BASE_DEC, NULL, 0, "lnet.ib.credits", "Returned Credits",
              "Messages that the receiver may send in addition."),
    NUMBER(bytes, FT_UINT32, BASE_DEC, NULL, "lnet.ib.nob", "Number of Bytes", "Bytes of the whole message."),
    NUMBER(checksum, FT_UINT32, BASE_HEX, NULL, "lnet.ib_csum", "Checksum", "0: none."),
    NUMBER(source_nid, FT_UINT64, BASE_HEX, &nid_desc, "rdma.lnet.src_nid", "Source NID",
           "LNet address of the end of the connection that sends it."),
    NUMBER(destination_nid, FT_UINT64, BASE_HEX, &nid_desc, "rdma.lnet.dst_nid", "Destination NID",
           "Of the other end."),
    NUMBER(end_destination_nid, FT_UINT64, BASE_HEX, &nid_desc, "rdma.lnet.to", "To",
           "Host that it is for; another one than the end of the connection if that is a router."),
    NUMBER(end_source_nid, FT_UINT64, BASE_HEX, &nid_desc, "rdma.lnet.from", "From", "Host that it comes from."),
    NUMBER(destination_pid, FT_UINT32, BASE_DEC, NULL, "lnet.dest_pid", "Dest pid", "Process of the receiver."),
    NUMBER(source_pid, FT_UINT32, BASE_DEC, NULL, "lnet.src_pid", "Src pid", "Process of the sender."),
    NUMBER(what, FT_UINT32, BASE_DEC, &what_desc, "lnet.msg_type", "Message type", "What LNet is to do."),
    NUMBER(payload, FT_UINT32, BASE_DEC, NULL, "lnet.payload_length", "Payload length", "Bytes that are moved."),
    NUMBER(depth, FT_UINT16, BASE_DEC, NULL, "lnet.connparam.qdepth", "Queue Depth", "Messages under way at most."),
    NUMBER(frags, FT_UINT16, BASE_DEC, NULL, "lnet.connparam.max_frags", "Max Fragments", "Pieces of memory at most."),
    NUMBER(size, FT_UINT32, BASE_DEC, NULL, "lnet.connparam.max_size", "Max Msg Size", "Bytes of a message at most."),
    NUMBER(cookie, FT_UINT64, BASE_HEX, NULL, "lnet.o2ib.cookie", "O2IB Cookie", "Names the transfer."),
    NUMBER(cookie_of, FT_UINT64, BASE_HEX, NULL, "lnet.o2ib.src_cookie", "O2IB Source Cookie", "Of the PUT_REQ."),
    NUMBER(cookie_own, FT_UINT64, BASE_HEX, NULL, "lnet.o2ib.dest_cookie", "O2IB Dest Cookie", "For the PUT_DONE."),
    NUMBER(status, FT_INT32, BASE_DEC, NULL, "lnet.o2ib.status", "O2IB Status", "0, or an errno below 0."),
    NUMBER(key, FT_UINT32, BASE_HEX, NULL, "lnet.rdma.key", "RDMA Key", "R_Key of the memory."),
    NUMBER(n_frags, FT_UINT32, BASE_DEC, NULL, "lnet.rdma.nfrags", "RDMA # of Fragments", "Its pieces."),
};
UPPER_HDR(lnet, "lnet", "Lustre Network", "lnet", "LNet", 0);

/* Pieces are in the order of the sender: of one alone that cannot be told, so only those of little-endian senders have
 * fields. */
static const struct field lnet_frag_fields[] = {
    FIELD_LE(NULL, 0, 4, FT_UINT32, BASE_DEC, NULL, "lnet.rdma_frag.size", "RDMA Frag Size (bytes)", "Its bytes."),
    FIELD_LE(NULL, 4, 8, FT_UINT64, BASE_HEX, NULL, "lnet.rdma_frag.addr", "RDMA Frag Address", "Its address."),
};
UPPER_HDR(lnet_frag, "rdma.lnet.frag", "LNet memory", "lnet", NULL, FRAG_LEN);

/* --- Rejects ---------------------------------------------------------------------------------- */

/* magic, version (2), why (1), filler (1), incarnation (8), queue depth (2), fragments (2), message size (4) */
#define REJ_LEN 24

static const struct vname reasons[] = {
    {1, "connection race"},      {2, "no resources"},       {3, "fatal error"},
    {4, "incompatible version"}, {5, "stale connection"},   {6, "number of RDMA fragments"},
    {7, "queue depth"},          {8, "invalid service id"}, {9, "too early"}};
static const struct vdesc reason_desc = VDESC_NAMES(reasons);

static bool is_reject(const uint8_t *b, uint32_t len)
{
    return len >= REJ_LEN && (load_le32(b) == MAGIC || load_be32(b) == MAGIC);
}

const char *lnet_refusal_str(const struct ulp_body *body)
{
    return is_reject(body->b, body->len) ? vname_find(reasons, ARRAY_LEN(reasons), body->b[6]) : NULL;
}

#define GET_REJ(name, at, n)                                                                                           \
    static bool name(const struct pkt *p, const struct layer *l, struct value *v)                                      \
    {                                                                                                                  \
        const uint8_t *b = layer_bytes(p, l);                                                                          \
        if (!is_reject(b, l->len))                                                                                     \
            return false;                                                                                              \
        v->u = number(b + (at), n, is_little(b));                                                                      \
        return true;                                                                                                   \
    }
GET_REJ(rej_magic, 0, 4)
GET_REJ(rej_version, 4, 2)
GET_REJ(rej_incarnation, 8, 8)
GET_REJ(rej_depth, 16, 2)
GET_REJ(rej_frags, 18, 2)
GET_REJ(rej_size, 20, 4)
static const struct field lnet_rej_fields[] = {
    NUMBER(rej_magic, FT_UINT32, BASE_HEX, NULL, "rdma.lnet.rej.magic", "Magic number", "0x0be91b91."),
    NUMBER(rej_version, FT_UINT16, BASE_HEX, NULL, "rdma.lnet.rej.version", "Version", "Version."),
    FIELD_ROW(NULL, 48, 8, FT_UINT8, BASE_DEC, &reason_desc, 0, "rdma.lnet.rej.why", "Reason", "Why."),
    NUMBER(rej_incarnation, FT_UINT64, BASE_HEX, NULL, "rdma.lnet.rej.incarnation", "Incarnation",
           "Changes when the sender restarts."),
    NUMBER(rej_depth, FT_UINT16, BASE_DEC, NULL, "rdma.lnet.rej.depth", "Queue Depth", "That the sender takes."),
    NUMBER(rej_frags, FT_UINT16, BASE_DEC, NULL, "rdma.lnet.rej.frags", "Fragments", "That the sender takes."),
    NUMBER(rej_size, FT_UINT32, BASE_DEC, NULL, "rdma.lnet.rej.size", "Message Size", "That the sender takes."),
};
UPPER_HDR(lnet_rej, "rdma.lnet.rej", "LNet private data (REJ)", "lnet", NULL, REJ_LEN);

/* --- Layers ----------------------------------------------------------------------------------- */

#define SHOWN 8 /* pieces that are shown */

void lnet_layers(struct pkt *p, const struct ulp_body *body)
{
    struct lnet m;

    if (!lnet_get(&m, body->b, body->len))
        return;
    ulp_layer(p, &lnet_hdr, body, 0, m.at ? m.at + m.frags * FRAG_LEN : min_u32(body->len, 136));
    for (uint32_t i = 0; m.little && i < m.frags && i < SHOWN; i++)
        ulp_layer(p, &lnet_frag_hdr, body, m.at + i * FRAG_LEN, FRAG_LEN);
}

void lnet_reject_layers(struct pkt *p, const struct ulp_body *body)
{
    if (is_reject(body->b, body->len))
        ulp_layer(p, &lnet_rej_hdr, body, 0, REJ_LEN);
}
