/* layer 1 (wire): RDS: headers read, recognised, their fields. */
#include "dissect/socket/rds.h"

#include "dissect/ulp/upper_hdr.h"

#define PRIVATE_LEN  28
#define PRIVATE6_LEN 52

/* The ones' complement sum of the header is 0xffff, unless it has no checksum. */
static bool sum_fits(const uint8_t *b)
{
    uint32_t sum = 0;

    if (load_be16(b + 30) == 0)
        return true;
    for (unsigned i = 0; i < RDS_LEN; i += 2)
        sum += load_be16(b + i);
    sum = (sum & 0xffff) + (sum >> 16);
    return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

bool rds_get(struct rds *r, const uint8_t *b, uint32_t len)
{
    if (len < RDS_LEN || load_be32(b + 26) || b[24] & ~(RDS_FLAG_MAP | RDS_FLAG_ACK | RDS_FLAG_AGAIN) || !sum_fits(b))
        return false;
    *r = (struct rds){.seq = load_be64(b),
                      .ack = load_be64(b + 8),
                      .bytes = load_be32(b + 16),
                      .sport = load_be16(b + 20),
                      .dport = load_be16(b + 22),
                      .flags = b[24],
                      .credit = b[25]};
    return len - RDS_LEN <= RDS_FRAGMENT && len - RDS_LEN <= r->bytes;
}

/* Extensions: types with their bytes behind the type. */
static const struct ext {
    uint8_t type, len;
    const struct hdr *hdr;
} exts[] = {{1, 4, &rds_ext_version_hdr},
            {2, 4, &rds_ext_rdma_hdr},
            {3, 8, &rds_ext_dest_hdr},
            {5, 2, &rds_ext_paths_hdr},
            {6, 4, &rds_ext_gen_hdr}};

/* The extension at byte `at` of the header; NULL: the end, or one that is not known. */
static const struct ext *ext_at(const uint8_t *b, uint32_t at)
{
    for (unsigned i = 0; at < RDS_LEN && i < ARRAY_LEN(exts); i++)
        if (exts[i].type == b[at] && exts[i].len < RDS_LEN - at)
            return &exts[i];
    return NULL;
}

void rds_ext_get(struct rds_ext *x, const uint8_t *b)
{
    const struct ext *e;

    *x = (struct rds_ext){.freed = false};
    for (uint32_t at = RDS_LEN - RDS_EXT_LEN; (e = ext_at(b, at)) != NULL; at += 1u + e->len) {
        x->freed |= e->type == 2;
        x->dest |= e->type == 3;
        if (e->type == 2 || e->type == 3)
            x->rkey = load_be32(b + at + 1);
        if (e->type == 3)
            x->offset = load_be32(b + at + 5);
    }
}

enum ulp_looks rds_looks(const uint8_t *b, uint32_t len, bool whole)
{
    struct rds r;

    /* a checksum is what tells it: without one 48 bytes say too little */
    return whole && rds_get(&r, b, len) && load_be16(b + 30) ? LOOKS_CLIENT : LOOKS_OTHER;
}

/* Whether a version that RDS has begins there: 3 or 4, a minor one of 0 or 1, and some of the two protocols. */
static bool is_version(const uint8_t *b)
{
    uint32_t protocols = load_be16(b + 2);

    return (b[0] == 3 || b[0] == 4) && b[1] <= 1 && protocols && protocols <= 3;
}

bool rds_private_fits(const uint8_t *b, uint32_t len)
{
    for (unsigned v6 = 0; v6 < 2; v6++) {
        if (len >= (v6 ? PRIVATE6_LEN : PRIVATE_LEN) && is_version(b + (v6 ? 32 : 8)))
            return true;
    }
    return false;
}

/* --- Fields ----------------------------------------------------------------------------------- */

#define NUMBER(at, bits, base, abbrev, label, blurb)                                                                   \
    FIELD_ROW(NULL, 8 * (at), bits,                                                                                    \
              bits == 64   ? FT_UINT64                                                                                 \
              : bits == 32 ? FT_UINT32                                                                                 \
              : bits == 16 ? FT_UINT16                                                                                 \
                           : FT_UINT8,                                                                                 \
              base, NULL, 0, abbrev, label, blurb)
#define FLAG(bit, abbrev, label, blurb)                                                                                \
    FIELD_ROW(NULL, 8 * 24 + 7 - (bit), 1, FT_BOOL, BASE_NONE, NULL, 0, abbrev, label, blurb)

static const struct field rds_fields[] = {
    NUMBER(0, 64, BASE_DEC, "rdma.rds.sequence", "Sequence", "Number of the datagram."),
    NUMBER(8, 64, BASE_DEC, "rdma.rds.ack", "Acknowledged", "Number of the latest datagram that its sender received."),
    NUMBER(16, 32, BASE_DEC, "rdma.rds.length", "Length", "Bytes of the whole datagram."),
    NUMBER(20, 16, BASE_DEC, "rdma.rds.srcport", "Source Port", "Port of the sending socket; 0: none, or a ping."),
    NUMBER(22, 16, BASE_DEC, "rdma.rds.dstport", "Destination Port", "Port of the receiving socket."),
    FLAG(2, "rdma.rds.flags.retransmitted", "Retransmitted", "Sent again after the connection was lost."),
    FLAG(1, "rdma.rds.flags.ack_required", "ACK required", "The receiver is to acknowledge it at once."),
    FLAG(0, "rdma.rds.flags.map", "Congestion map", "The data are the map of congested ports."),
    NUMBER(25, 8, BASE_DEC, "rdma.rds.credit", "Credits", "SENDs that the receiver may post in addition."),
    NUMBER(30, 16, BASE_HEX, "rdma.rds.checksum", "Checksum", "Ones' complement sum over the header; 0: none."),
};
UPPER_HDR(rds, "rdma.rds", "Reliable Datagram Sockets", "rds", "RDS", RDS_LEN);

static const struct field rds_ext_version_fields[] = {
    NUMBER(1, 32, BASE_HEX, "rdma.rds.ext.version", "Version", "Version of the protocol."),
};
UPPER_HDR(rds_ext_version, "rdma.rds.ext_version", "RDS version extension", "rds", NULL, 5);
static const struct field rds_ext_rdma_fields[] = {
    NUMBER(1, 32, BASE_HEX, "rdma.rds.ext.freed_rkey", "R_Key", "Memory whose use is over: its owner gives it up."),
};
UPPER_HDR(rds_ext_rdma, "rdma.rds.ext_rdma", "RDS RDMA extension", "rds", NULL, 5);
static const struct field rds_ext_dest_fields[] = {
    NUMBER(1, 32, BASE_HEX, "rdma.rds.ext.rkey", "R_Key", "Memory of the sender for an RDMA operation."),
    NUMBER(5, 32, BASE_DEC, "rdma.rds.ext.offset", "Offset", "Where in that memory."),
};
UPPER_HDR(rds_ext_dest, "rdma.rds.ext_dest", "RDS RDMA destination extension", "rds", NULL, 9);
static const struct field rds_ext_paths_fields[] = {
    NUMBER(1, 16, BASE_DEC, "rdma.rds.ext.paths", "Paths", "Connections that its sender can use side by side."),
};
UPPER_HDR(rds_ext_paths, "rdma.rds.ext_paths", "RDS paths extension", "rds", NULL, 3);
static const struct field rds_ext_gen_fields[] = {
    NUMBER(1, 32, BASE_HEX, "rdma.rds.ext.generation", "Generation", "Changes when its sender restarts."),
};
UPPER_HDR(rds_ext_gen, "rdma.rds.ext_gen", "RDS generation extension", "rds", NULL, 5);

#define PRIVATE(ip, at)                                                                                                \
    FIELD_AT(NULL, 0, (at) / 2, ip, "rdma.rds.cm.saddr", "Source", "Address of its sender."),                          \
        FIELD_AT(NULL, (at) / 2, (at) / 2, ip, "rdma.rds.cm.daddr", "Destination", "Address of its receiver."),        \
        NUMBER(at, 8, BASE_DEC, "rdma.rds.cm.major", "Major Version", "Version of the protocol."),                     \
        NUMBER((at) + 1, 8, BASE_DEC, "rdma.rds.cm.minor", "Minor Version", "Version of the protocol."),               \
        NUMBER((at) + 2, 16, BASE_HEX, "rdma.rds.cm.minors", "Minor Versions", "Those that it supports, as bits."),    \
        NUMBER((at) + 8, 64, BASE_DEC, "rdma.rds.cm.ack", "Acknowledged", "Latest datagram that it has received."),    \
        NUMBER((at) + 16, 32, BASE_DEC, "rdma.rds.cm.credit", "Credits", "First credits; 0: no flow control.")
static const struct field rds_cm_fields[] = {PRIVATE(FT_IPV4, 8)};
UPPER_HDR(rds_cm, "rdma.rds.cm", "RDS private data", "rds", NULL, PRIVATE_LEN);
static const struct field rds_cm6_fields[] = {PRIVATE(FT_IPV6, 32)};
UPPER_HDR(rds_cm6, "rdma.rds.cm6", "RDS private data (IPv6)", "rds", NULL, PRIVATE6_LEN);

/* A number of Linux in the order of its CPU: the bytes tell it, as it is small. */
static bool error_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    const uint8_t *b = layer_bytes(p, l);

    v->u = min_u32(load_le32(b), load_be32(b));
    return true;
}
static const struct field rds_rej_fields[] = {
    FIELD_GET(error_get, FT_UINT32, BASE_DEC, NULL, 0, "rdma.rds.cm.error", "Error",
              "Why; 1: the version, or what has no value of its own."),
};
UPPER_HDR(rds_rej, "rdma.rds.rej", "RDS private data (REJ)", "rds", NULL, 4);

/* --- Layers ----------------------------------------------------------------------------------- */

void rds_layers(struct pkt *p, const struct ulp_body *body)
{
    const struct ext *e;

    ulp_layer(p, &rds_hdr, body, 0, RDS_LEN);
    for (uint32_t at = RDS_LEN - RDS_EXT_LEN; (e = ext_at(body->b, at)) != NULL; at += 1u + e->len)
        ulp_layer(p, e->hdr, body, at, 1u + e->len);
}

void rds_private_layers(struct pkt *p, const struct ulp_body *body)
{
    bool v4 = body->len >= 12 && (body->b[8] == 3 || body->b[8] == 4) && body->b[9] <= 1;

    ulp_layer(p, v4 ? &rds_cm_hdr : &rds_cm6_hdr, body, 0, v4 ? PRIVATE_LEN : PRIVATE6_LEN);
}

void rds_reject_layers(struct pkt *p, const struct ulp_body *body)
{
    ulp_layer(p, &rds_rej_hdr, body, 0, 4);
}
