/* layer 1 (wire): RPC over RDMA: fields of the headers of the transport and of RPC, private data of CM. */
#include "dissect/file/rpcrdma.h"
#include "dissect/ulp/upper_hdr.h"

/* A number of four bytes at byte `at`. */
#define WORD(when, at, base, desc, abbrev, label, blurb)                                                               \
    FIELD_ROW(when, 8 * (at), 32, FT_UINT32, base, desc, 0, abbrev, label, blurb)

/* --- The transport header --------------------------------------------------------------------- */

static const struct vname procs[] = {
    {0, "RDMA_MSG"}, {1, "RDMA_NOMSG"}, {2, "RDMA_MSGP"}, {3, "RDMA_DONE"}, {4, "RDMA_ERROR"}};
static const struct vdesc proc_desc = VDESC_NAMES(procs);

/* The entries of a list of the header in layer `l`. */
static bool count_get(const struct pkt *p, const struct layer *l, struct value *v, enum rpcrdma_list list)
{
    struct rpcrdma h;

    if (!rpcrdma_get(&h, layer_bytes(p, l), l->len) || h.proc == RPCRDMA_ERROR || h.proc == RPCRDMA_DONE)
        return false;
    v->u = list == RPCRDMA_READS ? h.n_reads : list == RPCRDMA_WRITES ? h.n_writes : h.n_reply;
    return true;
}
static bool reads_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    return count_get(p, l, v, RPCRDMA_READS);
}
static bool writes_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    return count_get(p, l, v, RPCRDMA_WRITES);
}
static bool reply_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    return count_get(p, l, v, RPCRDMA_REPLY);
}
static bool is_padded(const uint8_t *p, uint32_t len)
{
    return len >= RPCRDMA_FIXED && load_be32(p + 12) == RPCRDMA_MSGP;
}

static const struct field rpcordma_fields[] = {
    WORD(NULL, 0, BASE_HEX, NULL, "rpcordma.xid", "XID", "Identifier of the RPC."),
    WORD(NULL, 4, BASE_DEC, NULL, "rpcordma.version", "Version", "Version of RPC over RDMA: 1."),
    WORD(NULL, 8, BASE_DEC, NULL, "rpcordma.flow_control", "Flow Control",
         "Credits: of a call those asked for, of a reply those granted."),
    WORD(NULL, 12, BASE_DEC, &proc_desc, "rpcordma.msg_type", "Message Type",
         "RDMA_MSG: the RPC message follows; RDMA_NOMSG: it is in a chunk."),
    WORD(is_padded, 16, BASE_DEC, NULL, "rpcordma.rdma_align", "RDMA align", "Alignment of a padded message."),
    WORD(is_padded, 20, BASE_DEC, NULL, "rpcordma.rdma_thresh", "RDMA threshold", "Threshold of a padded message."),
    FIELD_GET(reads_get, FT_UINT32, BASE_DEC, NULL, 0, "rpcordma.reads_count", "Read list",
              "Segments that the server READs."),
    FIELD_GET(writes_get, FT_UINT32, BASE_DEC, NULL, 0, "rpcordma.writes_count", "Write list",
              "Chunks that the server WRITEs results to."),
    FIELD_GET(reply_get, FT_UINT32, BASE_DEC, NULL, 0, "rpcordma.reply_count", "Reply chunk",
              "1: there is a chunk for the whole reply."),
};
UPPER_HDR(rpcordma, "rpcordma", "RPC over RDMA", "rpcordma", "RPCoRDMA", RPCRDMA_FIXED);

static const struct field rpcordma_chunk_fields[] = {
    WORD(NULL, 0, BASE_DEC, NULL, "rpcordma.segment_count", "Write chunk segment count", "Segments of the chunk."),
};
UPPER_HDR(rpcordma_chunk, "rdma.rpcordma.chunk", "RPC over RDMA (chunk)", "rpcordma", "RPCoRDMA", 4);

#define SEGMENT(at)                                                                                                    \
    WORD(NULL, at, BASE_HEX, NULL, "rpcordma.rdma_handle", "RDMA handle", "R_Key of the memory."),                     \
        WORD(NULL, (at) + 4, BASE_DEC, NULL, "rpcordma.rdma_length", "RDMA length",                                    \
             "Bytes: of a call those offered, of a reply those written."),                                             \
        FIELD_ROW(NULL, 8 * ((at) + 8), 64, FT_UINT64, BASE_HEX, NULL, 0, "rpcordma.rdma_offset", "RDMA offset",       \
                  "Address of the memory.")
static const struct field rpcordma_read_fields[] = {
    WORD(NULL, 0, BASE_DEC, NULL, "rpcordma.position", "Position in XDR",
         "Byte of the RPC message where the data belong; 0: they are the message."),
    SEGMENT(4),
};
UPPER_HDR(rpcordma_read, "rdma.rpcordma.read", "RPC over RDMA (read segment)", "rpcordma", "RPCoRDMA", 20);

static const struct field rpcordma_segment_fields[] = {SEGMENT(0)};
UPPER_HDR(rpcordma_segment, "rdma.rpcordma.segment", "RPC over RDMA (write segment)", "rpcordma", "RPCoRDMA", 16);

static const struct vname errors[] = {{RPCRDMA_ERR_VERS, "RDMA_ERR_VERS"}, {RPCRDMA_ERR_CHUNK, "RDMA_ERR_CHUNK"}};
static const struct vdesc error_desc = VDESC_NAMES(errors);
static bool is_of_version(const uint8_t *p, uint32_t len)
{
    return len >= 12 && load_be32(p) == RPCRDMA_ERR_VERS;
}
static const struct field rpcordma_error_fields[] = {
    WORD(NULL, 0, BASE_DEC, &error_desc, "rpcordma.errcode", "Error code",
         "What the server makes nothing of: the version, or the chunks."),
    WORD(is_of_version, 4, BASE_DEC, NULL, "rpcordma.vers_low", "Version low", "Lowest version that it takes."),
    WORD(is_of_version, 8, BASE_DEC, NULL, "rpcordma.vers_high", "Version high", "Highest version that it takes."),
};
UPPER_HDR(rpcordma_error, "rdma.rpcordma.error", "RPC over RDMA (error)", "rpcordma", "RPCoRDMA", 4);

/* Sizes are stored as (bytes / 1024) - 1. */
static bool size_get(const struct pkt *p, const struct layer *l, struct value *v, uint32_t at)
{
    if (l->len <= at)
        return false;
    v->u = (layer_bytes(p, l)[at] + UINT64_C(1)) * 1024;
    return true;
}
static bool send_size_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    return size_get(p, l, v, 6);
}
static bool receive_size_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    return size_get(p, l, v, 7);
}
static const struct field rpcordma_private_fields[] = {
    WORD(NULL, 0, BASE_HEX, NULL, "rdma.rpcordma.cm.magic", "Magic number", "0xf6ab0e18."),
    FIELD_ROW(NULL, 32, 8, FT_UINT8, BASE_DEC, NULL, 0, "rdma.rpcordma.cm.version", "Version", "1."),
    FIELD_ROW(NULL, 47, 1, FT_BOOL, BASE_NONE, NULL, 0, "rdma.rpcordma.cm.invalidate", "Remote Invalidation",
              "The sender takes SEND with Invalidate."),
    FIELD_GET(send_size_get, FT_UINT32, BASE_DEC, NULL, 0, "rdma.rpcordma.cm.send_size", "Inline send size",
              "Bytes of the longest message that it sends."),
    FIELD_GET(receive_size_get, FT_UINT32, BASE_DEC, NULL, 0, "rdma.rpcordma.cm.receive_size", "Inline receive size",
              "Bytes of the longest message that it takes."),
};
UPPER_HDR(rpcordma_private, "rdma.rpcordma.cm", "RPC over RDMA (private data)", "rpcordma", NULL, 8);

/* --- RPC -------------------------------------------------------------------------------------- */

static const struct vname types[] = {{RPC_CALL, "Call"}, {RPC_REPLY, "Reply"}};
static const struct vdesc type_desc = VDESC_NAMES(types);

#define RPC_HEAD                                                                                                       \
    WORD(NULL, 0, BASE_HEX, NULL, "rpc.xid", "XID", "Identifier of the call, which the reply repeats."),               \
        WORD(NULL, 4, BASE_DEC, &type_desc, "rpc.msgtyp", "Message Type", "0 call, 1 reply.")
#define RPC_PROGRAM(at)                                                                                                \
    WORD(NULL, at, BASE_DEC, &rpc_program_desc, "rpc.program", "Program", "Which service."),                           \
        WORD(NULL, (at) + 4, BASE_DEC, NULL, "rpc.programversion", "Program Version", "Version of the service."),      \
        WORD(NULL, (at) + 8, BASE_DEC, NULL, "rpc.procedure", "Procedure", "Procedure of the service.")

static const struct field rpc_call_fields[] = {
    RPC_HEAD,
    WORD(NULL, 8, BASE_DEC, NULL, "rpc.version", "RPC Version", "2."),
    RPC_PROGRAM(12),
};
UPPER_HDR(rpc_call, "rpc", "Remote Procedure Call (call)", "rpc", "RPC", RPC_CALL_LEN);

static const struct vname flavors[] = {{0, "AUTH_NULL"}, {1, "AUTH_UNIX"}, {6, "RPCSEC_GSS"}};
static const struct vdesc flavor_desc = VDESC_NAMES(flavors);
#define AUTH                                                                                                           \
    WORD(NULL, 0, BASE_DEC, &flavor_desc, "rpc.auth.flavor", "Flavor", "Kind of credentials."),                        \
        WORD(NULL, 4, BASE_DEC, NULL, "rpc.auth.length", "Length", "Bytes of them.")

static bool is_unix(const uint8_t *p, uint32_t len)
{
    return len >= 16 && load_be32(p) == 1;
}
/* The word `n` behind the name of the machine: user, group. */
static bool unix_word_get(const struct pkt *p, const struct layer *l, struct value *v, uint32_t n)
{
    const uint8_t *b = layer_bytes(p, l);
    uint32_t name;

    if (!is_unix(b, l->len))
        return false;
    name = load_be32(b + 12);
    if (name > 255 || 16 + (name + 3) / 4 * 4 + 4 * n + 4 > l->len)
        return false;
    v->u = load_be32(b + 16 + (name + 3) / 4 * 4 + 4 * n);
    return true;
}
static bool uid_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    return unix_word_get(p, l, v, 0);
}
static bool gid_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    return unix_word_get(p, l, v, 1);
}
static bool machine_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    const uint8_t *b = layer_bytes(p, l);

    if (!is_unix(b, l->len) || load_be32(b + 12) > l->len - 16)
        return false;
    v->p = b + 16;
    v->len = load_be32(b + 12);
    return true;
}
static const struct field rpc_cred_fields[] = {
    AUTH,
    WORD(is_unix, 8, BASE_HEX, NULL, "rpc.auth.stamp", "Stamp", "Any number."),
    FIELD_GET(machine_get, FT_STRING, BASE_NONE, NULL, 0, "rpc.auth.machinename", "Machine Name",
              "Name of the client."),
    FIELD_GET(uid_get, FT_UINT32, BASE_DEC, NULL, 0, "rpc.auth.uid", "UID", "User."),
    FIELD_GET(gid_get, FT_UINT32, BASE_DEC, NULL, 0, "rpc.auth.gid", "GID", "Group."),
};
UPPER_HDR(rpc_cred, "rdma.rpc.cred", "Remote Procedure Call (credentials)", "rpc", "RPC", 8);

static const struct field rpc_verf_fields[] = {AUTH};
UPPER_HDR(rpc_verf, "rdma.rpc.verf", "Remote Procedure Call (verifier)", "rpc", "RPC", 8);

static bool call_in_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = p->note.ulp_command_in;
    return p->note.have & NOTE_ULP && v->u;
}
static bool time_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = (uint64_t)p->note.ulp_latency;
    return p->note.have & NOTE_ULP_DONE;
}
static const struct vname states[] = {{0, "accepted"}, {1, "denied"}};
static const struct vdesc state_desc = VDESC_NAMES(states);
static const struct field rpc_reply_fields[] = {
    RPC_HEAD,
    WORD(NULL, 8, BASE_DEC, &state_desc, "rpc.replystat", "Reply State", "0 accepted, 1 denied."),
    FIELD_GET(call_in_get, FT_FRAMENUM, BASE_DEC, NULL, 0, "rpc.repframe", "Call in", "Frame of the call."),
    FIELD_GET(time_get, FT_REL_TIME, BASE_NONE, NULL, 0, "rpc.time", "Time from request",
              "From the first packet of the call to the last one of the reply."),
};
UPPER_HDR(rpc_reply, "rpc", "Remote Procedure Call (reply)", "rpc", "RPC", 12);

static const struct field rpc_called_fields[] = {RPC_PROGRAM(0)};
UPPER_HDR(rpc_called, "rdma.rpc.called", "Remote Procedure Call (what was called)", "rpc", "RPC", 12);

static void accepted_text(struct buf *b, uint64_t v)
{
    const char *name = v <= UINT32_MAX ? rpc_status_str(false, (uint32_t)v) : NULL;

    if (name)
        buf_puts(b, name);
}
static const struct vdesc accepted_desc = VDESC_TEXT(accepted_text);
static bool is_mismatch(const uint8_t *p, uint32_t len)
{
    return len >= 12 && load_be32(p) == 2;
}
static const struct field rpc_accepted_fields[] = {
    WORD(NULL, 0, BASE_DEC, &accepted_desc, "rpc.state_accept", "Accept State", "0: the call was executed."),
    WORD(is_mismatch, 4, BASE_DEC, NULL, "rpc.programversion.min", "Program Version (Minimum)",
         "Lowest version of the program that the server has."),
    WORD(is_mismatch, 8, BASE_DEC, NULL, "rpc.programversion.max", "Program Version (Maximum)",
         "Highest version of the program that the server has."),
};
UPPER_HDR(rpc_accepted, "rdma.rpc.accepted", "Remote Procedure Call (accepted)", "rpc", "RPC", 4);

static const struct vname rejects[] = {{0, "RPC_MISMATCH"}, {1, "AUTH_ERROR"}};
static const struct vdesc reject_desc = VDESC_NAMES(rejects);
static bool is_version(const uint8_t *p, uint32_t len)
{
    return len >= 12 && load_be32(p) == 0;
}
static bool is_auth(const uint8_t *p, uint32_t len)
{
    return len >= 8 && load_be32(p) == 1;
}
static const struct field rpc_denied_fields[] = {
    WORD(NULL, 0, BASE_DEC, &reject_desc, "rpc.state_reject", "Reject State", "0 RPC version, 1 authentication."),
    WORD(is_version, 4, BASE_DEC, NULL, "rpc.version.min", "RPC Version (Minimum)", "Lowest version of RPC."),
    WORD(is_version, 8, BASE_DEC, NULL, "rpc.version.max", "RPC Version (Maximum)", "Highest version of RPC."),
    WORD(is_auth, 4, BASE_DEC, NULL, "rpc.state_auth", "Auth State", "Why authentication failed."),
};
UPPER_HDR(rpc_denied, "rdma.rpc.denied", "Remote Procedure Call (denied)", "rpc", "RPC", 4);

/* --- Layers ----------------------------------------------------------------------------------- */

#define SEGMENTS_SHOWN 12 /* of a message: the layers of a packet are bounded */

void rpcrdma_layers(struct pkt *p, const struct ulp_body *m, const struct rpcrdma *h)
{
    struct rpcrdma_walk w = rpcrdma_segments(h, m->b, min_u32(h->len, m->len));
    struct rpcrdma_segment s;

    ulp_layer(p, &rpcordma_hdr, m, 0, h->proc == RPCRDMA_ERROR ? RPCRDMA_FIXED : h->len);
    if (h->proc == RPCRDMA_ERROR)
        ulp_layer(p, &rpcordma_error_hdr, m, RPCRDMA_FIXED, h->len - RPCRDMA_FIXED);
    for (unsigned i = 0; i < SEGMENTS_SHOWN && rpcrdma_next(&w, &s); i++) {
        if (s.first)
            ulp_layer(p, &rpcordma_chunk_hdr, m, s.at - 4, 4);
        if (s.list == RPCRDMA_READS)
            ulp_layer(p, &rpcordma_read_hdr, m, s.at, 20);
        else
            ulp_layer(p, &rpcordma_segment_hdr, m, s.at, 16);
    }
}

/* Credentials or a verifier at byte `at`. Returns the byte behind them. */
static uint32_t auth_layer(struct pkt *p, const struct hdr *h, const struct ulp_body *m, uint32_t at)
{
    uint32_t n = at + 8 <= m->len ? load_be32(m->b + at + 4) : 0;

    n = n > 400 ? 0 : (n + 3) / 4 * 4;
    ulp_layer(p, h, m, at, 8 + n);
    return at + 8 + n;
}

void rpc_layers(struct pkt *p, const struct ulp_body *m, const struct rpc *r, const struct ulp_body *called)
{
    if (r->type == RPC_CALL) {
        ulp_layer(p, &rpc_call_hdr, m, 0, RPC_CALL_LEN);
        auth_layer(p, &rpc_verf_hdr, m, auth_layer(p, &rpc_cred_hdr, m, RPC_CALL_LEN));
        return;
    }
    ulp_layer(p, &rpc_reply_hdr, m, 0, 12);
    if (called)
        ulp_layer(p, &rpc_called_hdr, called, 0, 12);
    if (r->denied)
        ulp_layer(p, &rpc_denied_hdr, m, 12, 12);
    else
        ulp_layer(p, &rpc_accepted_hdr, m, auth_layer(p, &rpc_verf_hdr, m, 12), r->status == 2 ? 12 : 4);
}

void rpcrdma_private_layers(struct pkt *p, const struct ulp_body *m)
{
    if (rpcrdma_private_fits(m->b, m->len))
        ulp_layer(p, &rpcordma_private_hdr, m, 0, 8);
}
