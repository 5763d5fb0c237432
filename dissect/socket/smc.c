/* layer 1 (wire): SMC-R: LLC and CDC messages read, recognised, their fields. */
#include "dissect/socket/smc.h"

#include "dissect/socket/smc_fields.h"

/* --- LLC and CDC ------------------------------------------------------------------------------ */

#define LLC_MAX 8192 /* bytes of a message of version 2 */

/* Lengths of version 2, which Linux writes in the order of its CPU. */
static bool length_fits(const uint8_t *b, uint32_t len)
{
    return load_be16(b + 1) == len || load_le16(b + 1) == len;
}

static bool is_llc(uint8_t type)
{
    return type >= SMC_CONFIRM_LINK && type <= SMC_DELETE_RKEY;
}

/* Messages of version 2 are as long as they need to be: none continues another one. */
static bool is_continuation(uint8_t type)
{
    return type == SMC_ADD_LINK_CONT || type == SMC_CONFIRM_RKEY_CONT;
}

static void get_cursor(struct smc_cursor *c, const uint8_t *b)
{
    *c = (struct smc_cursor){load_be16(b + 2), load_be32(b + 4)};
}

static void get_cdc(struct smc *m, const uint8_t *b)
{
    m->token = load_be32(b + 4);
    get_cursor(&m->producer, b + 8);
    get_cursor(&m->consumer, b + 16);
    m->blocked = b[24] & 0x80;
    m->failover = b[24] & 0x08;
    m->closing = b[25];
}

static void get_llc(struct smc *m, const uint8_t *b)
{
    uint8_t flags = b[3];

    m->response = flags & 0x80;
    m->has_link = m->type >= SMC_CONFIRM_LINK && m->type <= SMC_DELETE_LINK;
    m->refused = m->response && (m->type == SMC_ADD_LINK ? flags & 0x40 : flags & 0x20);
    switch (m->type) {
    case SMC_CONFIRM_LINK:
        m->link = b[29];
        m->refused = false;
        break;
    case SMC_ADD_LINK:
        m->link = b[31];
        break;
    case SMC_ADD_LINK_CONT:
    case SMC_DELETE_LINK:
        m->link = b[4];
        m->refused = false;
        break;
    case SMC_CONFIRM_RKEY:
        m->rkey = load_be32(b + 5);
        m->va = load_be64(b + 9);
        break;
    case SMC_DELETE_RKEY:
        m->rkeys = b[4];
        m->rkey = m->rkeys ? load_be32(b + SMC_DELETED_AT) : 0;
        break;
    default:
        break;
    }
}

bool smc_get(struct smc *m, const uint8_t *b, uint32_t len)
{
    *m = (struct smc){0};
    if (len < SMC_LEN || len > LLC_MAX)
        return false;
    m->type = b[0];
    if (b[0] == SMC_CDC) {
        get_cdc(m, b);
        return len == SMC_LEN && b[1] == SMC_LEN;
    }
    m->v2 = b[0] >> 4 == 2;
    m->type = m->v2 ? b[0] & 0x0f : b[0];
    if (!is_llc(m->type) || (m->v2 && is_continuation(m->type)) ||
        (m->v2 ? !length_fits(b, len) : len != SMC_LEN || b[1] != SMC_LEN))
        return false;
    get_llc(m, b);
    return true;
}

static bool is_zero(const uint8_t *b, unsigned from, unsigned to)
{
    while (from < to)
        if (b[from++])
            return false;
    return true;
}

/* Who sent a message of LLC: Add Link of version 2, its continuations are asked for by the server, Request Add Link
 * by the client; of version 1 the client may send Add Link, too. */
static enum ulp_looks sender_of(const struct smc *m)
{
    bool by_server = (m->type == SMC_ADD_LINK && (m->v2 || m->response)) || m->type == SMC_ADD_LINK_CONT;

    if (by_server)
        return m->response ? LOOKS_CLIENT : LOOKS_SERVER;
    if (m->type == SMC_REQUEST_ADD_LINK)
        return m->response ? LOOKS_SERVER : LOOKS_CLIENT;
    return LOOKS_EITHER;
}

enum ulp_looks smc_looks(const uint8_t *b, uint32_t len, bool whole)
{
    struct smc m;

    if (!whole || !smc_get(&m, b, len))
        return LOOKS_OTHER;
    if (m.type == SMC_CDC)
        return m.token && is_zero(b, 8, 10) && is_zero(b, 16, 18) && is_zero(b, 26, SMC_LEN) ? LOOKS_FIRST_EITHER
                                                                                             : LOOKS_OTHER;
    if (m.type != SMC_CONFIRM_LINK)
        return sender_of(&m);
    return !is_zero(b, 35, SMC_LEN) ? LOOKS_OTHER : m.response ? LOOKS_FIRST : LOOKS_FIRST_SERVER;
}

/* --- Names ------------------------------------------------------------------------------------ */

static const struct vname types[] = {{SMC_CONFIRM_LINK, "Confirm Link"},
                                     {SMC_ADD_LINK, "Add Link"},
                                     {SMC_ADD_LINK_CONT, "Add Link Continuation"},
                                     {SMC_DELETE_LINK, "Delete Link"},
                                     {SMC_REQUEST_ADD_LINK, "Request Add Link"},
                                     {SMC_CONFIRM_RKEY, "Confirm RKey"},
                                     {SMC_TEST_LINK, "Test Link"},
                                     {SMC_CONFIRM_RKEY_CONT, "Confirm RKey Continuation"},
                                     {SMC_DELETE_RKEY, "Delete RKey"},
                                     {SMC_CDC, "CDC"}};

const char *smc_type_str(uint8_t type)
{
    return vname_find(types, ARRAY_LEN(types), type);
}

static void type_text(struct buf *b, uint64_t v)
{
    const char *name = smc_type_str((uint8_t)(v >> 4 == 2 ? v & 15 : v));

    if (name)
        buf_printf(b, "%s%s", name, v >> 4 == 2 ? " (v2)" : "");
}
static const struct vdesc type_desc = VDESC_TEXT(type_text);

/* --- Fields of LLC and CDC -------------------------------------------------------------------- */

#define TYPE_IS(name, which)                                                                                           \
    static bool name(const uint8_t *p, uint32_t len)                                                                   \
    {                                                                                                                  \
        struct smc m;                                                                                                  \
        return len >= SMC_LEN && (p[0] & 15) == (which) && smc_get(&m, p, len);                                        \
    }
TYPE_IS(is_confirm_link, SMC_CONFIRM_LINK)
TYPE_IS(is_add_link, SMC_ADD_LINK)
static bool is_add_link_v2(const uint8_t *p, uint32_t len)
{
    return len >= SMC_RKEYS_AT && p[0] >> 4 == 2 && is_add_link(p, len);
}
TYPE_IS(is_delete_link, SMC_DELETE_LINK)
TYPE_IS(is_confirm_rkey, SMC_CONFIRM_RKEY)
TYPE_IS(is_add_link_cont, SMC_ADD_LINK_CONT)
TYPE_IS(is_request_add_link, SMC_REQUEST_ADD_LINK)
TYPE_IS(is_test_link, SMC_TEST_LINK)
TYPE_IS(is_delete_rkey, SMC_DELETE_RKEY)
TYPE_IS(is_confirm_rkey_cont, SMC_CONFIRM_RKEY_CONT)
static bool names_other(const uint8_t *p, uint32_t len)
{
    return is_confirm_rkey(p, len) && p[4] >= 1;
}
static bool names_others(const uint8_t *p, uint32_t len)
{
    return is_confirm_rkey(p, len) && p[4] >= 2;
}
#define CONTINUES(name, n)                                                                                             \
    static bool name(const uint8_t *p, uint32_t len)                                                                   \
    {                                                                                                                  \
        return is_confirm_rkey_cont(p, len) && p[4] >= (n);                                                            \
    }
CONTINUES(continues_1, 1)
CONTINUES(continues_2, 2)
CONTINUES(continues_3, 3)
/* The same memory on another link. */
#define OTHER_LINK(when, at, name)                                                                                     \
    NUMBER(when, at, 1, FT_UINT8, BASE_HEX, NULL, name ".link.number", "Link Number", "Another link."),                \
        WORD(when, (at) + 1, name ".new.rkey", "New Rkey for that link", "R_Key of the memory there."),                \
        LONG(when, (at) + 5, name ".new.virt", "New RMB virtual address for that link", "Its address there.")
static bool has_pair(const uint8_t *p, uint32_t len)
{
    return is_add_link_cont(p, len) && p[5] >= 1;
}
static bool has_pairs(const uint8_t *p, uint32_t len)
{
    return is_add_link_cont(p, len) && p[5] >= 2;
}
#define DELETES(name, i)                                                                                               \
    static bool name(const uint8_t *p, uint32_t len)                                                                   \
    {                                                                                                                  \
        return smc_deleted(p, len) > (i);                                                                              \
    }
DELETES(deletes_1, 0)
DELETES(deletes_2, 1)
DELETES(deletes_3, 2)
DELETES(deletes_4, 3)
DELETES(deletes_5, 4)
DELETES(deletes_6, 5)
DELETES(deletes_7, 6)
DELETES(deletes_8, 7)
#define DELETED(when, i)                                                                                               \
    WORD(when, SMC_DELETED_AT + 4 * (i), "smc.delete.rkey.deleted", "RKey", "Of memory that is to be no more.")
static bool rejects(const uint8_t *p, uint32_t len)
{
    return is_add_link(p, len) && p[3] & 0x40;
}
static bool is_not_v2(const uint8_t *p, uint32_t len)
{
    return len >= 2 && p[0] >> 4 != 2;
}

#define MESSAGE                                                                                                        \
    NUMBER(NULL, 0, 1, FT_UINT8, BASE_HEX, &type_desc, "smc.llc_msg", "LLC Message", "Type of the message."),          \
        NUMBER(is_not_v2, 1, 1, FT_UINT16, BASE_DEC, NULL, "smc.length", "SMC Length", "Bytes of the message.")
static const struct vname eyecatchers[] = {{0, "rings begin with an eyecatcher"}, {3, "rings begin with data"}};
static const struct vdesc eyecatcher_desc = VDESC_NAMES(eyecatchers);
static const struct field smc_llc_fields[] = {
    MESSAGE,
    FLAG(is_confirm_rkey_cont, 24, "rdma.smc.llc.response", "Response", "It answers a request."),
    FLAG(is_confirm_rkey_cont, 26, "rdma.smc.confirm_rkey_cont.negative", "Negative", "The memory was not taken."),
    FLAG(is_confirm_link, 24, "smc.confirm.link.response", "Response", "It answers a request."),
    FIELD_ROW(is_confirm_link, 30, 2, FT_UINT8, BASE_HEX, &eyecatcher_desc, 0, "rdma.smc.confirm.link.no_eyecatcher",
              "No RMBE Eyecatcher", "0: each of the sender's rings begins with an eyecatcher of four bytes."),
    FLAG(is_add_link, 24, "smc.add.link.response", "Response", "It answers a request."),
    FLAG(is_add_link_cont, 24, "smc.add.link.cont.response", "Response", "It answers a request."),
    FLAG(is_request_add_link, 24, "smc.request.add.link.response", "Response", "It answers a request."),
    FLAG(is_delete_link, 24, "smc.delete.link.response", "Response", "It answers a request."),
    FLAG(is_delete_link, 25, "smc.delete.link.all", "All", "All links of the group are to go."),
    FLAG(is_delete_link, 26, "smc.delete.link.orderly", "Orderly", "What is under way is to end before."),
    FLAG(is_confirm_rkey, 24, "smc.confirm.rkey.response", "Response", "It answers a request."),
    FLAG(is_confirm_rkey, 26, "smc.confirm.rkey.negative.response", "Negative", "The memory was not taken."),
    FLAG(is_confirm_rkey, 27, "smc.confirm.rkey.retry.rkey.set", "Retry", "It may be tried again."),
    FLAG(is_test_link, 24, "smc.test.link.response", "Response", "It answers a request."),
    FLAG(is_delete_rkey, 24, "smc.delete.rkey.response", "Response", "It answers a request."),
    FLAG(is_delete_rkey, 26, "smc.delete.rkey.negative.response", "Negative", "Some were not deleted."),
    FLAG(is_add_link, 25, "smc.add.link.response.rejected", "Add Link Rejected", "The link is not wanted."),
    FIELD_AT(is_confirm_link, 4, 6, FT_ETHER, "smc.confirm.link.sender.mac", "Sender MAC Address", "Of the link."),
    NUMBER(is_confirm_link, 26, 3, FT_UINT24, BASE_HEX, NULL, "smc.confirm.link.sender.qp.number", "Sender QP Number",
           "Of the link."),
    NUMBER(is_confirm_link, 29, 1, FT_UINT8, BASE_HEX, NULL, "smc.confirm.link.number", "Link Number", "Of the link."),
    WORD(is_confirm_link, 30, "smc.confirm.link.sender.link.userid", "Sender Link User ID", "Of the link."),
    NUMBER(is_confirm_link, 34, 1, FT_UINT8, BASE_HEX, NULL, "smc.confirm.link.max.links", "Max Links",
           "Links that the sender takes."),
    FIELD_AT(is_add_link, 4, 6, FT_ETHER, "smc.add.link.sender.mac", "Sender MAC Address", "Of the new link."),
    FIELD_AT(is_add_link, 12, 16, FT_IPV6, "smc.add.link.sender.gid", "Sender GID", "Of the new link."),
    NUMBER(is_add_link, 28, 3, FT_UINT24, BASE_HEX, NULL, "smc.add.link.sender.qp.number", "Sender QP Number",
           "Of the new link."),
    NUMBER(is_add_link, 31, 1, FT_UINT8, BASE_HEX, NULL, "smc.add.link.link.number", "Link Number", "Of the new link."),
    FIELD_ROW(rejects, 20, 4, FT_UINT8, BASE_HEX, NULL, 0, "smc.add.link.response.reject_reason", "Reject Reason",
              "Why the link is not wanted."),
    FIELD_ROW(is_add_link, 260, 4, FT_UINT8, BASE_DEC, NULL, 0, "smc.add.link.qp.mtu.value", "QP MTU",
              "Code of the path MTU: 3: 1024, 5: 4096."),
    NUMBER(is_add_link_cont, 4, 1, FT_UINT8, BASE_HEX, NULL, "smc.add.link.cont.link.number", "Link Number",
           "Of the new link."),
    NUMBER(is_add_link_cont, 5, 1, FT_UINT8, BASE_DEC, NULL, "smc.add.link.cont.rkey.number", "Number of RKeys",
           "Memory of which keys follow."),
    WORD(has_pair, 8, "smc.add.link.cont.rmb.RTok1.Rkey1", "RKey 1", "Its R_Key on this link."),
    WORD(has_pair, 12, "smc.add.link.cont.rmb.RTok1.Rkey2", "New RKey 1", "Its R_Key on the new link."),
    LONG(has_pair, 16, "smc.add.link.cont.rmb.RTok1.virt", "Virtual Address 1", "Its address on the new link."),
    WORD(has_pairs, 24, "smc.add.link.cont.rmb.RTok2.Rkey1", "RKey 2", "Its R_Key on this link."),
    WORD(has_pairs, 28, "smc.add.link.cont.rmb.RTok2.Rkey2", "New RKey 2", "Its R_Key on the new link."),
    LONG(has_pairs, 32, "smc.add.link.cont.rmb.RTok1.virt", "Virtual Address 2", "Its address on the new link."),
    NUMBER(is_add_link, 33, 3, FT_UINT24, BASE_HEX, NULL, "smc.add.link.initial.psn", "Initial PSN",
           "Of the new link."),
    FLAG(is_add_link_v2, 352, "rdma.smc.add_link.direct", "Direct", "The peers are in one subnet."),
    FIELD_AT(is_add_link_v2, 46, 16, FT_IPV6, "rdma.smc.add_link.client_gid", "Client Target GID",
             "GID of the client that the new link is to use."),
    NUMBER(is_delete_link, 4, 1, FT_UINT8, BASE_HEX, NULL, "smc.delete.link.number", "Link Number", "Which link."),
    WORD(is_delete_link, 5, "smc.delete.link.reason.code", "Reason Code", "Why."),
    FIELD_AT(is_test_link, 4, 16, FT_BYTES, "rdma.smc.test_link.data", "User Data", "Returned by the answer."),
    NUMBER(is_delete_rkey, 4, 1, FT_UINT8, BASE_DEC, NULL, "smc.delete.rkey.count", "RKey Count", "Keys that follow."),
    NUMBER(is_delete_rkey, 5, 1, FT_UINT8, BASE_HEX, NULL, "smc.delete.rkey.error.mask", "Error Mask",
           "Those that were not deleted."),
    DELETED(deletes_1, 0),
    DELETED(deletes_2, 1),
    DELETED(deletes_3, 2),
    DELETED(deletes_4, 3),
    DELETED(deletes_5, 4),
    DELETED(deletes_6, 5),
    DELETED(deletes_7, 6),
    DELETED(deletes_8, 7),
    NUMBER(is_confirm_rkey, 4, 1, FT_UINT8, BASE_DEC, NULL, "smc.confirm.rkey.number.qp", "Number of other QPs",
           "Links whose keys follow those of this one."),
    WORD(is_confirm_rkey, 5, "smc.confirm.rkey.new.rkey", "New Rkey for this link", "R_Key of the memory."),
    LONG(is_confirm_rkey, 9, "smc.confirm.rkey.new.virt", "New RMB virtual address for this link", "Its address."),
    OTHER_LINK(names_other, 17, "smc.confirm.rkey"),
    OTHER_LINK(names_others, 30, "smc.confirm.rkey"),
    NUMBER(is_confirm_rkey_cont, 4, 1, FT_UINT8, BASE_DEC, NULL, "rdma.smc.confirm_rkey_cont.left", "Links left",
           "Links whose keys were not in messages before."),
    OTHER_LINK(continues_1, 5, "rdma.smc.confirm_rkey_cont"),
    OTHER_LINK(continues_2, 18, "rdma.smc.confirm_rkey_cont"),
    OTHER_LINK(continues_3, 31, "rdma.smc.confirm_rkey_cont"),
};
UPPER_HDR(smc_llc, "rdma.smc.llc", "SMC-R LLC", "smc", "SMC-R", SMC_LEN);

static const struct field smc_rkey_fields[] = {
    WORD(NULL, 0, "rdma.smc.rkey", "RKey", "R_Key of memory of the sender on the link that carries the message."),
    WORD(NULL, 4, "rdma.smc.rkey.new", "New RKey", "Its R_Key on the new link."),
    LONG(NULL, 8, "rdma.smc.rkey.va", "Virtual Address", "Its address on the new link."),
};
UPPER_HDR(smc_rkey, "rdma.smc.memory", "SMC-R RKeys", "smc", "SMC-R", SMC_RKEY_LEN);

static const struct field smc_cdc_fields[] = {
    MESSAGE,
    HALF(2, BASE_HEX, "smc.rmbe.ctrl.seqno", "Sequence Number", "Counts CDC messages."),
    WORD(NULL, 4, "smc.rmbe.ctrl.alert.token", "Alert Token", "Token of the RMB element of the receiver."),
    HALF(10, BASE_HEX, "smc.rmbe.ctrl.prod.wrap.seq", "Producer window wrap sequence number",
         "How often the sender wrapped in the receiver's ring."),
    WORD(NULL, 12, "smc.rmbe.ctrl.peer.prod.curs", "Peer Producer Cursor", "Up to which byte the ring is written."),
    HALF(18, BASE_HEX, "smc.rmbe.ctrl.prod.wrap.seq", "Consumer window wrap sequence number",
         "How often the sender wrapped in its own ring."),
    WORD(NULL, 20, "smc.rmbe.ctrl.peer.prod.curs", "Peer Consumer Cursor", "Up to which byte its ring is read."),
    BYTE(24, BASE_HEX, "smc.rmbe.ctrl.conn.rw.status.flags", "Connection read/write status flags", "Flags."),
    FLAG(NULL, 192, "smc.rmbe.ctrl.write.blocked", "Write Blocked", "The receiver's ring is full."),
    FLAG(NULL, 193, "smc.rmbe.ctrl.urgent.pending", "Urgent Data Pending", "Urgent data are to come."),
    FLAG(NULL, 194, "smc.rmbe.ctrl.urgent.present", "Urgent Data Present", "Urgent data are in the ring."),
    FLAG(NULL, 195, "smc.rmbe.ctrl.cons.update.requested", "Consumer Cursor Update Requested",
         "The sender waits for the consumer cursor."),
    FLAG(NULL, 196, "smc.rmbe.ctrl.failover.validation", "Failover Validation Indicator",
         "The message validates a failover to another link."),
    BYTE(25, BASE_HEX, "smc.rmbe.ctrl.peer.conn.state.flags", "Peer Connection State Flags", "Flags."),
    FLAG(NULL, 200, "smc.rmbe.ctrl.peer.sending.done", "Peer Sending Done", "The sender sends nothing more."),
    FLAG(NULL, 201, "smc.rmbe.ctrl.peer.closed.conn", "Peer Closed Connection", "The sender has closed."),
    FLAG(NULL, 202, "smc.rmbe.ctrl.peer.abnormal.close", "Peer Abnormal Close", "The sender has given up."),
};
UPPER_HDR(smc_cdc, "rdma.smc.cdc", "SMC-R CDC", "smc", "SMC-R", SMC_LEN);

/* --- Layers ----------------------------------------------------------------------------------- */

#define RKEYS_SHOWN 8 /* at most, of Add Link */

void smc_layers(struct pkt *p, const struct ulp_body *body, const struct smc *m)
{
    unsigned n = m->type == SMC_ADD_LINK ? min_u32(smc_rkeys(body->b, body->len), RKEYS_SHOWN) : 0;

    ulp_layer(p, m->type == SMC_CDC ? &smc_cdc_hdr : &smc_llc_hdr, body, 0, m->type == SMC_CDC ? SMC_LEN : body->len);
    for (unsigned i = 0; i < n; i++)
        ulp_layer(p, &smc_rkey_hdr, body, SMC_RKEYS_AT + i * SMC_RKEY_LEN, SMC_RKEY_LEN);
}
