/* layer 1 (wire): CLC messages of SMC-D (memory shared inside one machine, which no RDMA carries), and the IP prefixes
 * of a proposal. */
#include "dissect/socket/smc.h"

#include "dissect/ulp/upper_hdr.h"

#define NUMBER(when, at, bytes, type, base, abbrev, label, blurb)                                                      \
    FIELD_ROW(when, 8 * (at), 8 * (bytes), type, base, NULL, 0, abbrev, label, blurb)
#define BYTE(at, abbrev, label, blurb) NUMBER(NULL, at, 1, FT_UINT8, BASE_DEC, abbrev, label, blurb)
#define LONG(at, abbrev, label, blurb) NUMBER(NULL, at, 8, FT_UINT64, BASE_HEX, abbrev, label, blurb)

#define PROPOSAL_LEN   40 /* without what its offsets lead to */
#define SUBNET_LEN     8
#define PREFIX_LEN     17
#define PREFIXES_SHOWN 8 /* at most */
#define V2_HEAD_LEN    8 /* of the values of version 2: up to the offset of those of SMC-D */
#define SEID_LEN       48
#define GID_LEN        10
#define GIDS_SHOWN     8  /* at most */
#define END_LEN        32 /* of Accept and Confirm, without CHID */
#define END_V2_LEN     74
#define CONTACT_LEN    36 /* of a new link group, behind it */
#define TRAILER        4

/* --- Proposal --------------------------------------------------------------------------------- */

static const struct field smc_subnet_fields[] = {
    FIELD_AT(NULL, 0, 4, FT_IPV4, "smc.outgoing.interface.subnet.mask", "Outgoing Interface Subnet Mask",
             "Subnet of the client."),
    FIELD_ROW(NULL, 32, 8, FT_UINT32, BASE_DEC, NULL, 0,
              "smc.outgoing.interface.subnet.mask.number.of.significant.bits",
              "Outgoing Interface Subnet Mask Number of Significant Bits", "Length of its prefix."),
    BYTE(7, "smc.proposal.ipv6.prefix.count", "IPv6 Prefix Count", "IPv6 prefixes that follow."),
};
UPPER_HDR(smc_subnet, "rdma.smc.subnet", "SMC-R subnet", "smc", "SMC-R", SUBNET_LEN);

static const struct field smc_prefix_fields[] = {
    FIELD_AT(NULL, 0, 16, FT_IPV6, "smc.proposal.ipv6.prefix.value", "IPv6 Prefix Value", "Prefix of the client."),
    BYTE(16, "smc.proposal.ipv6.prefix.length", "IPv6 Prefix Length", "Its length."),
};
UPPER_HDR(smc_prefix, "rdma.smc.prefix", "SMC-R IPv6 prefix", "smc", "SMC-R", PREFIX_LEN);

static const struct field smc_ism_fields[] = {
    LONG(0, "smc.proposal.ism.gid", "ISM GID", "SMC-D: GID of the client's device."),
    NUMBER(NULL, 8, 2, FT_UINT16, BASE_HEX, "smc.proposal.smc.chid", "ISMv2 CHID", "Its channel."),
};
UPPER_HDR(smc_ism, "rdma.smc.ism", "SMC-D device", "smc", "SMC-R", GID_LEN);

static const struct field smc_seid_fields[] = {
    FIELD_AT(NULL, 0, 32, FT_STRING, "smc.proposal.system.eid", "SEID", "SMC-D: identifier of the machine."),
};
UPPER_HDR(smc_seid, "rdma.smc.seid", "SMC-D system EID", "smc", "SMC-R", SEID_LEN);

void smc_subnet_layers(struct pkt *p, const struct ulp_body *m)
{
    uint32_t skip = load_be16(m->b + 38), at = PROPOSAL_LEN + skip, end = m->len - TRAILER;

    if (skip >= GID_LEN && PROPOSAL_LEN + GID_LEN <= end)
        ulp_layer(p, &smc_ism_hdr, m, PROPOSAL_LEN, GID_LEN);
    if (at + SUBNET_LEN > end)
        return;
    ulp_layer(p, &smc_subnet_hdr, m, at, SUBNET_LEN);
    for (unsigned i = 0, n = m->b[at + 7]; i < n && i < PREFIXES_SHOWN; i++) {
        uint32_t prefix = at + SUBNET_LEN + i * PREFIX_LEN;
        if (prefix + PREFIX_LEN > end)
            break;
        ulp_layer(p, &smc_prefix_hdr, m, prefix, PREFIX_LEN);
    }
}

void smc_seid_layers(struct pkt *p, const struct ulp_body *m, uint32_t v2)
{
    uint32_t skip = load_be16(m->b + v2 + 6), at = v2 + V2_HEAD_LEN + skip, end = m->len - TRAILER;

    if (!skip || at + SEID_LEN > end)
        return;
    ulp_layer(p, &smc_seid_hdr, m, at, SEID_LEN);
    for (unsigned i = 0, n = m->b[v2 + 1]; i < n && i < GIDS_SHOWN; i++) {
        uint32_t gid = at + SEID_LEN + i * GID_LEN;
        if (gid + GID_LEN > end)
            break;
        ulp_layer(p, &smc_ism_hdr, m, gid, GID_LEN);
    }
}

/* --- Accept and Confirm ----------------------------------------------------------------------- */

static bool is_v2(const uint8_t *p, uint32_t len)
{
    return len >= END_V2_LEN && p[7] >> 4 >= 2;
}
static bool has_contact(const uint8_t *p, uint32_t len)
{
    return len >= END_V2_LEN + CONTACT_LEN && p[7] >> 4 >= 2 && p[7] & 8;
}
/* The same layout; tshark names them apart. `who`: "server" or "client", which sends it. */
#define END_FIELDS(prefix, who)                                                                                        \
    NUMBER(NULL, 7, 1, FT_UINT8, BASE_HEX, prefix ".flags", "Flags", "Version, first contact, type."),                 \
        FIELD_ROW(NULL, 60, 1, FT_BOOL, BASE_NONE, NULL, 0, prefix ".first.contact", "First Contact",                  \
                  "The link group is new."),                                                                           \
        FIELD_ROW(NULL, 62, 2, FT_UINT8, BASE_DEC, NULL, 0, prefix ".smc.type", "SMC Type", "0 SMC-R, 1 SMC-D."),      \
        LONG(8, prefix ".sender." who ".ism.gid", "Sender ISM GID", "GID of the sender's device."),                    \
        LONG(16, prefix ".dmb.token", "DMB Token", "Token of its memory."),                                            \
        BYTE(24, prefix ".dmbe.conn.index", "DMBE Connection Index", "Element of the memory."),                        \
        FIELD_ROW(NULL, 200, 4, FT_UINT8, BASE_DEC, NULL, 0, prefix ".dmbe.buffer.size",                               \
                  "DMBE Buffers Size (Compressed Notation)", "0: 16 KiB, 1: 32 KiB, and so on."),                      \
        NUMBER(NULL, 28, 4, FT_UINT32, BASE_HEX, prefix "." who ".linkid", "Link ID", "Names the link group."),        \
        NUMBER(is_v2, 32, 2, FT_UINT16, BASE_HEX, prefix ".smc.chid", "ISMv2 CHID", "Channel of the device."),         \
        FIELD_AT(is_v2, 34, 32, FT_STRING, prefix ".eid", "Negotiated EID", "Enterprise identifier of both."),         \
        FIELD_ROW(has_contact, 600, 4, FT_UINT8, BASE_DEC, &smc_system_desc, 0, prefix ".os.type", "OS Type",          \
                  "Operating system."),                                                                                \
        FIELD_ROW(has_contact, 604, 4, FT_UINT8, BASE_DEC, NULL, 0, prefix ".smc.version.relnum",                      \
                  "SMC Version Release Number", "Release."),                                                           \
        FIELD_AT(has_contact, 78, 32, FT_STRING, prefix ".peer.host.name", "Peer Host Name", "Name of the sender.")

static const struct field smc_accept_d_fields[] = {END_FIELDS("smc.accept", "server")};
UPPER_HDR(smc_accept_d, "rdma.smc.accept_d", "SMC-D Accept", "smc", "SMC-R", END_LEN);

static const struct field smc_confirm_d_fields[] = {END_FIELDS("smc.confirm", "client")};
UPPER_HDR(smc_confirm_d, "rdma.smc.confirm_d", "SMC-D Confirm", "smc", "SMC-R", END_LEN);

void smc_end_d_layers(struct pkt *p, const struct ulp_body *m, bool accept)
{
    if (m->len >= END_LEN + TRAILER)
        ulp_layer(p, accept ? &smc_accept_d_hdr : &smc_confirm_d_hdr, m, 0, m->len - TRAILER);
}
