/* layer 1 (wire): SMC-R: CLC messages, which set a connection up over TCP: read, their fields. */
#include "dissect/socket/smc.h"

#include "dissect/socket/smc_fields.h"

/* --- Messages --------------------------------------------------------------------------------- */

#define EYECATCHER    UINT32_C(0xe2d4c3d9) /* "SMCR" in EBCDIC */
#define EYECATCHER_D  UINT32_C(0xe2d4c3c4) /* "SMCD": Accept and Confirm of SMC-D have it */
#define CLC_LEN       8                    /* eyecatcher, type, length, flags */
#define CLC_TRAILER   4                    /* the eyecatcher again */
#define CLC_END       38                   /* where Accept and Confirm describe their sender's end */
#define FIRST_CONTACT 0x08                 /* flag of Accept and Confirm: they set up a link */

static bool is_eyecatcher(const uint8_t *b)
{
    return load_be32(b) == EYECATCHER || load_be32(b) == EYECATCHER_D;
}

unsigned smc_clc_type(const uint8_t *b, uint32_t len)
{
    uint32_t n;

    if (len < CLC_LEN + CLC_TRAILER || !is_eyecatcher(b) || b[4] < SMC_PROPOSAL || b[4] > SMC_DECLINE)
        return 0;
    n = load_be16(b + 5);
    return n >= CLC_LEN + CLC_TRAILER && n <= len && is_eyecatcher(b + n - CLC_TRAILER) ? b[4] : 0;
}

/* Likewise of one of which `more` bytes, the last ones, were not captured: it is as long as it says. */
static unsigned cut_type(const uint8_t *b, uint32_t len, uint32_t more)
{
    if (len < CLC_LEN || !is_eyecatcher(b) || b[4] < SMC_PROPOSAL || b[4] > SMC_DECLINE)
        return 0;
    return load_be16(b + 5) == (uint64_t)len + more ? b[4] : 0;
}

/* 0 SMC-R, 1 SMC-D, 2 none, 3 both */
static bool is_rdma(unsigned kind)
{
    return kind == 0 || kind == 3;
}

bool smc_clc_is_rdma(const uint8_t *b)
{
    if (b[4] == SMC_DECLINE)
        return true;
    return is_rdma(b[7] & 3) || (b[4] == SMC_PROPOSAL && b[7] >> 4 > 1 && is_rdma(b[7] >> 2 & 3));
}

const uint8_t *smc_clc_end(const uint8_t *b, uint32_t len, const uint8_t **gid)
{
    unsigned type = smc_clc_type(b, len);

    if ((type != SMC_ACCEPT && type != SMC_CONFIRM) || load_be16(b + 5) < CLC_END + SMC_END_LEN + CLC_TRAILER ||
        !(b[7] & FIRST_CONTACT) || b[7] & 3)
        return NULL;
    *gid = b + 16;
    return b + CLC_END;
}

void smc_end_get(struct smc_end *e, const uint8_t *b)
{
    unsigned before = b[7] ? b[7] - 1u : 0; /* elements of the RMB; Linux has one */

    *e = (struct smc_end){.qpn = load_be24(b),
                          .rkey = load_be32(b + 3),
                          .token = load_be32(b + 8),
                          .size = UINT32_C(1) << ((b[12] >> 4) + 14),
                          .mtu = (b[12] & 15) >= 1 && (b[12] & 15) <= 5 ? 128u << (b[12] & 15) : 0,
                          .psn = load_be24(b + 23)};
    e->va = load_be64(b + 14) + (uint64_t)before * e->size;
}

/* --- Names ------------------------------------------------------------------------------------ */

static const struct vname clc_types[] = {
    {SMC_PROPOSAL, "Proposal"}, {SMC_ACCEPT, "Accept"}, {SMC_CONFIRM, "Confirm"}, {SMC_DECLINE, "Decline"}};
static const struct vdesc clc_type_desc = VDESC_NAMES(clc_types);

static const struct vname systems[] = {{1, "z/OS"}, {2, "Linux"}, {3, "AIX"}};
const struct vdesc smc_system_desc = VDESC_NAMES(systems);

static const struct vname diagnoses[] = {{0x01010000, "no memory"},
                                         {0x02010000, "timeout of Confirm Link"},
                                         {0x02020000, "timeout of Add Link"},
                                         {0x03000000, "configuration error"},
                                         {0x03010000, "the peer does not speak SMC"},
                                         {0x03020000, "IPsec is used"},
                                         {0x03030000, "no SMC device was found"},
                                         {0x03030002, "no SMC-R device was found"},
                                         {0x03030004, "the peer has no extension of version 2"},
                                         {0x03030008, "no UEID is set"},
                                         {0x03040000, "the modes differ"},
                                         {0x03050000, "the peer has RMBE eyecatchers"},
                                         {0x03070000, "the IP prefixes differ"},
                                         {0x030c0000, "the versions differ"},
                                         {0x030e0000, "no route"},
                                         {0x04000000, "synchronization error"},
                                         {0x05000000, "the peer declined"}};
static const struct vdesc diagnosis_desc = VDESC_NAMES(diagnoses);

/* --- Fields ----------------------------------------------------------------------------------- */

static const struct field smc_clc_fields[] = {
    NUMBER(NULL, 4, 1, FT_UINT8, BASE_DEC, &clc_type_desc, "smc.clc_msg", "CLC Message", "Type of the message."),
    HALF(5, BASE_DEC, "smc.length", "SMC Length", "Bytes of the message."),
    BITS(56, 4, NULL, "smc.proposal.smc.version", "SMC Version", "Version."),
};
static void clc_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    const uint8_t *clc = layer_bytes(p, l);
    const char *name = l->len >= CLC_LEN ? vname_find(clc_types, ARRAY_LEN(clc_types), clc[4]) : NULL;

    buf_printf(b, "%u > %u SMC-%c CLC %s, version %u", p->sport, p->dport, name && !smc_clc_is_rdma(clc) ? 'D' : 'R',
               name ? name : "", l->len >= 8 ? clc[7] >> 4 : 0);
}
const struct hdr smc_clc_hdr = {.abbrev = "smc",
                                .name = "Shared Memory Communications over RDMA",
                                .proto = "smc",
                                .column = "SMC-R",
                                .fields = smc_clc_fields,
                                .nfields = ARRAY_LEN(smc_clc_fields),
                                .len = CLC_LEN,
                                .type = FT_NONE,
                                .info = clc_info,
                                .upper = true};

static bool is_v1(const uint8_t *p, uint32_t len)
{
    return len >= 40 && (p[7] & 3) != 2;
}
static bool is_v2(const uint8_t *p, uint32_t len)
{
    return len >= 52 && p[7] >> 4 >= 2;
}
static bool says_v1(const uint8_t *p, uint32_t len)
{
    return len >= CLC_LEN && (p[7] & 3) != 2;
}
static bool says_v2(const uint8_t *p, uint32_t len)
{
    return len >= CLC_LEN && p[7] >> 4 >= 2;
}
static const struct field smc_proposal_fields[] = {
    BYTE(7, BASE_HEX, "smc.proposal.flags", "Flags", "Version and types."),
    FIELD_ROW(says_v2, 60, 2, FT_UINT8, BASE_DEC, NULL, 0, "smc.proposal.smcv2.type", "SMC(v2) Type",
              "0 SMC-R, 1 SMC-D, 2 none, 3 both."),
    FIELD_ROW(NULL, 62, 2, FT_UINT8, BASE_DEC, NULL, 0, "smc.proposal.smc.type", "SMC(v1) Type",
              "0 SMC-R, 1 SMC-D, 2 none, 3 both."),
    LONG(NULL, 8, "smc.proposal.sender.client.peer.id", "Sender (Client) Peer ID", "Identifier of the client."),
    FIELD_AT(says_v1, 16, 16, FT_IPV6, "smc.proposal.client.preferred.gid", "Client Preferred GID",
             "GID of the client."),
    FIELD_AT(says_v1, 32, 6, FT_ETHER, "smc.proposal.client.preferred.mac", "Client Preferred MAC Address",
             "MAC address of the client."),
    NUMBER(is_v1, 38, 2, FT_UINT16, BASE_HEX, NULL, "smc.proposal.smcv1_subnet_ext_offset",
           "SMCv1 IP Subnet Extension Offset", "Where the subnets are, from byte 40 on."),
    NUMBER(is_v2, 50, 2, FT_UINT16, BASE_HEX, NULL, "smc.proposal.smcv2_ext_offset", "SMCv2 Extension Offset",
           "Where version 2 has its values, from byte 52 on."),
};
UPPER_HDR(smc_proposal, "rdma.smc.proposal", "SMC-R Proposal", "smc", "SMC-R", 40);

static bool is_mapped(const uint8_t *p, uint32_t len)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    return len >= 24 && memcmp(p + 8, mapped, sizeof mapped) == 0;
}
static bool is_not_mapped(const uint8_t *p, uint32_t len)
{
    return !is_mapped(p, len);
}
static const struct field smc_proposal_v2_fields[] = {
    BYTE(0, BASE_DEC, "smc.proposal.eid.count", "EID Count", "Enterprise identifiers that follow."),
    BYTE(1, BASE_DEC, "smc.proposal.ismv2_gid_count", "ISMv2 GID Count", "GIDs of SMC-D."),
    BYTE(3, BASE_HEX, "smc.proposal.extflags.2", "Flag 2", "Release, and whether a system EID follows."),
    BITS(24, 4, NULL, "smc.proposal.smc.version.relnum", "SMC Version Release Number", "Release."),
    FLAG(NULL, 31, "smc.proposal.smc.seid", "SEID Indicator", "A system EID follows."),
    HALF(6, BASE_HEX, "smc.proposal.smcdv2_ext_offset", "SMC-Dv2 Extension Offset", "Where SMC-D has its values."),
    FIELD_AT(is_mapped, 20, 4, FT_IPV4, "smc.proposal.rocev2.gid.ipv4", "RoCEv2 GID IPv4 Address", "The client's."),
    FIELD_AT(is_not_mapped, 8, 16, FT_IPV6, "smc.proposal.rocev2.gid.ipv6", "RoCEv2 GID IPv6 Address", "The client's."),
};
UPPER_HDR(smc_proposal_v2, "rdma.smc.proposal_v2", "SMC-R Proposal, version 2", "smc", "SMC-R", 40);

static const struct field smc_eid_fields[] = {
    FIELD_AT(NULL, 0, 32, FT_STRING, "smc.proposal.eid", "EID",
             "An enterprise identifier: both ends need one of them."),
};
UPPER_HDR(smc_eid, "rdma.smc.eid", "SMC-R EID", "smc", "SMC-R", 32);

static bool has_eid(const uint8_t *p, uint32_t len)
{
    return len >= 96 && p[7] >> 4 >= 2;
}
static bool has_contact(const uint8_t *p, uint32_t len)
{
    return len >= 140 && p[7] >> 4 >= 2 && p[7] & FIRST_CONTACT;
}
/* Accept and Confirm have the same layout; tshark has other names for the two, and few in common. */
#define END_FIELDS(contact, peer, gid, mac, qpn, rkey, index, token, flags2, size, mtu, va, initial, eid, os, release, \
                   host)                                                                                               \
    FLAG(NULL, 60, contact, "First Contact", "The link is new."),                                                      \
        LONG(NULL, 8, peer, "Sender Peer ID", "Identifier of the sender."),                                            \
        FIELD_AT(NULL, 16, 16, FT_IPV6, gid, "GID", "GID of the sender."),                                             \
        FIELD_AT(NULL, 32, 6, FT_ETHER, mac, "MAC Address", "MAC address of the sender."),                             \
        NUMBER(NULL, 38, 3, FT_UINT24, BASE_HEX, NULL, qpn, "QP Number", "Queue pair of the sender."),                 \
        WORD(NULL, 41, rkey, "RMB Rkey", "R_Key of its memory."),                                                      \
        BYTE(45, BASE_DEC, index, "TCP Connection Index", "Element of the memory."),                                   \
        WORD(NULL, 46, token, "RMB Element Alert Token", "Token by which CDC messages to the sender name it."),        \
        BYTE(50, BASE_HEX, flags2, "Flags 2", "Size and MTU."),                                                        \
        BITS(400, 4, NULL, size, "RMB Buffers Size (Compressed Notation)", "0: 16 KiB, 1: 32 KiB, and so on."),        \
        BITS(404, 4, NULL, mtu, "QP MTU Value (enumerated value)", "3: 1024, 5: 4096."),                               \
        LONG(NULL, 52, va, "RMB Virtual Address", "Address of its memory."),                                           \
        NUMBER(NULL, 61, 3, FT_UINT24, BASE_HEX, NULL, initial, "Initial PSN", "First PSN that the sender sends."),    \
        FIELD_AT(has_eid, 64, 32, FT_STRING, eid, "Negotiated EID", "Enterprise identifier of both."),                 \
        FLAG(has_contact, 832, "smc.accept.v2_lg.type", "V2 LG Type", "The peers are in one subnet."),                 \
        FIELD_ROW(has_contact, 840, 4, FT_UINT8, BASE_DEC, &smc_system_desc, 0, os, "OS Type", "Operating system."),   \
        FIELD_ROW(has_contact, 844, 4, FT_UINT8, BASE_DEC, NULL, 0, release, "SMC Version Release Number",             \
                  "Release."),                                                                                         \
        FIELD_AT(has_contact, 108, 32, FT_STRING, host, "Peer Host Name", "Name of the sender.")

static const struct field smc_accept_fields[] = {
    BYTE(7, BASE_HEX, "smc.accept.flags", "Flags", "Version, first contact, type."),
    END_FIELDS("smc.proposal.first.contact", "smc.accept.sender.server.peer.id", "smc.accept.server.preferred.gid",
               "smc.accept.server.preferred.mac", "smc.accept.server.qp.number", "smc.accept.server.rmb.rkey",
               "smc.accept.server.tcp.conn.index", "smc.accept.server.rmb.element.alert.token", "smc.accept.flags.2",
               "smc.accept.rmb.buffer.size", "smc.accept.qp.mtu.value", "smc.accept.server.rmb.virtual.address",
               "smc.accept.initial.psn", "smc.accept.eid", "smc.accept.os.type", "smc.accept.smc.version.relnum",
               "smc.accept.peer.host.name"),
};
UPPER_HDR(smc_accept, "rdma.smc.accept", "SMC-R Accept", "smc", "SMC-R", 64);

static const struct field smc_confirm_fields[] = {
    BYTE(7, BASE_HEX, "smc.confirm.flags", "Flags", "Version, first contact, type."),
    BITS(62, 2, NULL, "smc.confirm.smc.type", "SMC Type", "0 SMC-R, 1 SMC-D."),
    END_FIELDS("smc.confirm.first.contact", "smc.confirm.sender.client.peer.id", "smc.client.gid",
               "smc.confirm.client.mac", "smc.confirm.client.qp.number", "smc.confirm.client.rmb.rkey",
               "smc.confirm.client.tcp.conn.index", "smc.client.rmb.element.alert.token", "smc.confirm.flags.2",
               "smc.confirm.rmb.buffer.size", "smc.confirm.qp.mtu.value", "smc.client.rmb.virtual.address",
               "smc.initial.psn", "smc.confirm.eid", "smc.confirm.os.type", "smc.confirm.smc.version.relnum",
               "smc.confirm.peer.host.name"),
};
UPPER_HDR(smc_confirm, "rdma.smc.confirm", "SMC-R Confirm", "smc", "SMC-R", 64);

static const struct field smc_decline_fields[] = {
    BYTE(7, BASE_HEX, "smc.decline.flags", "Flags", "Version, and whether the ends are out of step."),
    LONG(NULL, 8, "rdma.smc.decline.peer", "Sender Peer ID", "Identifier of the sender."),
    NUMBER(NULL, 16, 4, FT_UINT32, BASE_HEX, &diagnosis_desc, "rdma.smc.decline.diagnosis", "Diagnosis",
           "Why the connection stays one of TCP."),
};
UPPER_HDR(smc_decline, "rdma.smc.decline", "SMC-R Decline", "smc", "SMC-R", 24);

/* --- Layers ----------------------------------------------------------------------------------- */

#define EIDS 8 /* at most, in a proposal */

static void proposal_layers(struct pkt *p, const struct ulp_body *m)
{
    uint32_t at = 52;

    ulp_layer(p, &smc_proposal_hdr, m, 0, min_u32(m->len, 52));
    if (is_v1(m->b, m->len))
        smc_subnet_layers(p, m);
    if (!is_v2(m->b, m->len))
        return;
    at += load_be16(m->b + 50);
    if (at + 40 > m->len)
        return;
    ulp_layer(p, &smc_proposal_v2_hdr, m, at, 40);
    for (unsigned i = 0; i < m->b[at] && i < EIDS && at + 40 + 32 * (i + 1) + CLC_TRAILER <= m->len; i++)
        ulp_layer(p, &smc_eid_hdr, m, at + 40 + 32 * i, 32);
    smc_seid_layers(p, m, at);
}

void smc_clc_layers(struct pkt *p, const struct ulp_body *body)
{
    unsigned type = body->more ? cut_type(body->b, body->len, body->more) : smc_clc_type(body->b, body->len);
    struct ulp_body m = *body;

    if (!type)
        return;
    m.len = min_u32(m.len, load_be16(m.b + 5));
    ulp_layer(p, &smc_clc_hdr, &m, 0, CLC_LEN);
    if (type == SMC_PROPOSAL)
        proposal_layers(p, &m);
    else if (type == SMC_DECLINE)
        ulp_layer(p, &smc_decline_hdr, &m, 0, m.len);
    else if (!(m.b[7] & 3) && (m.more || m.len >= CLC_END + SMC_END_LEN)) /* of SMC-R */
        ulp_layer(p, type == SMC_ACCEPT ? &smc_accept_hdr : &smc_confirm_hdr, &m, 0,
                  min_u32(m.len, load_be16(m.b + 5) - CLC_TRAILER));
    else if ((m.b[7] & 3) == 1)
        smc_end_d_layers(p, &m, type == SMC_ACCEPT);
}
